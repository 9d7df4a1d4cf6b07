"""Values of metrics and events as nvprof prints them: each with a unit of its own, or in words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.readers.nvprof.text.numbers import less_units, shapes
from nsw.readers.text.quantities import Digits, number, size_factor, split_unit

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN: Final = re.compile(r"0{1,15}(?:\.(0{1,15}))?(%|[KMGT]?B(?:/s)?)?\Z")  # digits as zeros
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


class Values(NamedTuple):
    """A column of such values."""

    numbers: list[float | None]
    pms: list[float | None]
    units: list[str | None]
    texts: list[str | None]


def metric_values(cells: Sequence[str]) -> Values:
    """`metric_value` of each cell, sooner."""
    plain = list(map(_plain, shapes("\n".join(cells))))
    in_words = [at for at, found in enumerate(plain) if found is None]
    printed = list(cells)
    for at in in_words:
        printed[at], plain[at] = "0", (None, None)
    pms, units = map(list, zip(*filter(None, plain), strict=True))
    numbers: list[float | None] = list(less_units("\n".join(printed), {unit or "" for unit in set(units)}))
    values = Values(numbers, pms, units, [None] * len(printed))
    for at in in_words:
        values.numbers[at], pms[at], units[at], values.texts[at] = metric_value(cells[at])
    return values


def are_of_one_kind(printed: Sequence[str]) -> bool:
    """Whether values can be the least, greatest and mean of one metric: numbers of one kind of unit, or words."""
    values = [metric_value(text) for text in printed]
    kinds = {_kind(value.unit) for value in values if value.number is not None}
    return len(kinds) <= 1 and not any((value.text_alone or "")[:1].isdigit() for value in values)


def columns_are_of_one_kind(columns: Sequence[Values]) -> bool:
    """The same of each row of these columns."""
    units = set(zip(*(column.units for column in columns), strict=True))
    torn = any(text is not None and text[:1].isdigit() for column in columns for text in column.texts)
    return not torn and all(len({_kind(unit) for unit in row}) == 1 for row in units)


def _kind(unit: str | None) -> str:
    """What a unit counts, less its prefix: `GB/s` and `MB/s` are one kind."""
    return next((kind for kind in ("B/s", "B") if unit is not None and unit.endswith(kind)), unit or "")


def in_units(values: Values, units: Sequence[str | None]) -> tuple[list[float | None], list[float | None]]:
    """`in_unit` of each value, which is changed."""
    numbers, pms = values.numbers, values.pms
    if values.units != units:
        for at, (own, unit) in enumerate(zip(values.units, units, strict=True)):
            if own != unit:
                numbers[at], pms[at] = in_unit(Value(numbers[at], pms[at], own, None), unit)
    return numbers, pms


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


def of_means(values: Values, most: Sequence[float | None]) -> None:
    """`of_mean` of each value, which is changed."""
    for at, unit in enumerate(values.units):
        if unit is not None and unit.endswith("B/s"):
            values.pms[at] = of_mean(Value(values.numbers[at], values.pms[at], unit, None), most[at]).pm


@lru_cache(_REMEMBERED)
def _plain(shape: str) -> tuple[float | None, str | None] | None:
    """What is the same of all plain numbers that look alike."""
    found = _PLAIN.match(shape)
    if found is None:
        return None
    return (Digits(0, -len(found[1])).scaled().pm if found[1] else None), found[2]


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
