"""Sizes and rates of traces, of which each copy may have its own: bytes and the twin, read fast.

What is no plain number with a unit of nvprof's, whose K is 1024, goes through `quantities`; both give the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from nsw.readers.text.quantities import rate, size

if TYPE_CHECKING:
    from nsw.readers.text.quantities import Quantity

Pair: TypeAlias = "tuple[float | None, float | None]"  # a value and its twin

_FACTORS: Final = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
_RATES: Final = {f"{unit}/s": factor for unit, factor in _FACTORS.items()}
_UNIT: Final = "KMGTPB/s"  # characters of these units
_HALVES: Final = tuple(5 / 10 ** (places + 1) for places in range(16))
_TENS: Final = tuple(10**places for places in range(16))
_MOST_DIGITS: Final = 15  # whole numbers of as many are exact as floats
_REMEMBERED: Final = 16384
_NOTHING: Final = (None, None)


@lru_cache(_REMEMBERED)
def byte_size(text: str, unit: str | None = None) -> Pair:
    """Bytes of `1.5000MB`, or of `1.5000` with the unit of its column; None where there is no size."""
    found = _plain(text, unit, _FACTORS)
    if found is None:
        return _NOTHING if text in {"", "-"} else _pair(size(text, unit, base=1024))
    value, half, factor = found
    return value * factor, None if factor == 1 and half is _HALVES[0] else half * factor


@lru_cache(_REMEMBERED)
def byte_rate(text: str, unit: str | None = None) -> Pair:
    """Bytes a second of `19.105MB/s`, likewise."""
    found = _plain(text, unit, _RATES)
    if found is None:
        return _NOTHING if text in {"", "-"} else _pair(rate(text, unit, base=1024))
    value, half, factor = found
    return value * factor, half * factor


def _plain(text: str, unit: str | None, factors: dict[str, int]) -> tuple[float, float, int] | None:
    """The number, half of its last digit, and the bytes in its unit."""
    printed = text.rstrip(_UNIT)
    factor = factors.get(text[len(printed) :] or unit or "")
    whole, _, fraction = printed.partition(".")
    digits = whole + fraction
    if factor is None or not whole or len(digits) > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    places = len(fraction)
    return int(digits) / _TENS[places], _HALVES[places], factor


def _pair(quantity: Quantity | None) -> Pair:
    return quantity or _NOTHING
