"""Values of metrics and events as nvprof prints them: each with a unit of its own, or in words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.readers.text.quantities import number, size_factor, split_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVEL: Final = re.compile(r"([A-Za-z]+) \((\d{1,3})\)\Z")
_LONGEST_UNIT: Final = 12
_REMEMBERED: Final = 16384
_MEAN_STEP: Final = 1e6  # byte/s
_EXACTLY: Final = 1e3  # byte/s: a mean that is printed less exactly may be a multiple of 10^6 by chance


class Value(NamedTuple):
    """One printed value: the number, half of its last digit, its unit, the text where it is in words."""

    number: float | None
    pm: float | None
    unit: str | None
    text: str | None

    @property
    def text_alone(self) -> str | None:
        """The text of what is no number."""
        return self.text if self.number is None else None


@lru_cache(_REMEMBERED)
def metric_value(printed: str) -> Value:
    """`64.607GB/s`, `92.62%`, `Low (2)` (which is 2), `0.834779`, `n/a`."""
    printed = printed.strip()
    if level := _LEVEL.match(printed):
        return Value(float(level[2]), None, None, level[1])
    digits, unit = split_unit(printed)
    quantity = number(digits)
    if quantity is None or len(unit) > _LONGEST_UNIT:
        return Value(None, None, None, printed if printed not in {"", "-"} else None)
    return Value(quantity.value, quantity.pm, unit or None, None)


def are_of_one_kind(printed: Sequence[str]) -> bool:
    """Whether values can be the least, greatest and mean of one metric: numbers of one kind of unit, or words."""
    values = [metric_value(text) for text in printed]
    kinds = {_kind(value.unit) for value in values if value.number is not None}
    return len(kinds) <= 1 and not any((value.text_alone or "")[:1].isdigit() for value in values)


def _kind(unit: str | None) -> str:
    """What a unit counts, less its prefix: `GB/s` and `MB/s` are one kind."""
    return next((kind for kind in ("B/s", "B") if unit is not None and unit.endswith(kind)), unit or "")


def of_mean(value: Value, most: float | None) -> Value:
    """The mean of a throughput with what nvprof knows of it: it computes them in whole 10^6 byte/s.

    `361.442566MB/s` is 379,000,000 byte/s and `0.000000B/s` anything below 10^6, though more digits are printed.
    """
    if value.number is None or value.number == most or value.pm is None or not (value.unit or "").endswith("B/s"):
        return value
    factor = size_factor((value.unit or "").removesuffix("/s"), 1024)
    if factor is None or value.pm * factor > _EXACTLY:
        return value
    rest = abs(value.number * factor - round(value.number * factor / _MEAN_STEP) * _MEAN_STEP)
    return value._replace(pm=_MEAN_STEP / factor) if rest <= value.pm * factor else value


def in_unit(value: Value, unit: str | None) -> tuple[float | None, float | None]:
    """The value and its twin in the unit of its row.

    nvprof picks one for each cell (`0.00000B/s  4.0291GB/s  1.2132GB/s`); of what is no such unit there is none.
    """
    if value.number is None or value.unit == unit:
        return value.number, value.pm
    factor = size_factor((value.unit or "").removesuffix("/s"), 1024)
    wanted = size_factor((unit or "").removesuffix("/s"), 1024)
    if factor is None or wanted is None or (value.unit or "").endswith("/s") != (unit or "").endswith("/s"):
        return None, None
    ratio = factor / wanted
    return value.number * ratio, None if value.pm is None else value.pm * ratio
