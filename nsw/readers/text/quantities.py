"""Printed numbers with units -> a value and the half-width of its last printed digit.

`4.2567ms` is 4256700 ns, give or take 50: what was printed is all that is known, so the half-width goes into
the table beside the value. Digits are moved as integers, never multiplied as floats: `302.355298` ms is
302355298 ns exactly. All functions return None for what is no such quantity ("-", "n/a", "", "nan").

A number proves its decimal mark by one that occurs once with other digits behind it than a group has, or with nothing
but a zero before it, or by the later of two different marks. A mark that repeats separates groups.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple

# Powers of ten of a nanosecond.
TIME_UNITS = {
    **dict.fromkeys(("ns", "nsec", "nsecond", "nseconds", "nanosecond", "nanoseconds"), 0),
    **dict.fromkeys(("us", "µs", "μs", "usec", "usecond", "useconds", "microsecond", "microseconds"), 3),
    **dict.fromkeys(("ms", "msec", "msecond", "mseconds", "millisecond", "milliseconds"), 6),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 9),
}
_PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_SIZE_UNIT = re.compile(r"([kmgtpe]?)(i?)(?:b|byte|bytes)\Z", re.IGNORECASE)
_SPLIT = re.compile(r"([-+]?[\d.,'\u00a0\u202f]*\d[\d.,]*(?:[eE][-+]?\d{1,3})?)\s*([^\d\s(][^\d(]{0,24})?\Z")
# What is a number, with a unit or without, and no name.
QUANTITY = re.compile(r"[-+]?\d[\d.,]*(?:[eE][-+]?\d{1,3})?\s*(?:%|[numµ]?s|[KMGT]?i?B(?:/s)?)?")
_PLAIN = re.compile(r"([-+]?)(\d+)(?:\.(\d*))?(?:[eE]([-+]?\d{1,3}))?\Z|([-+]?)\.(\d+)(?:[eE]([-+]?\d{1,3}))?\Z")
_LONGEST = 64  # no profiler prints a longer number; a hostile file may
_GREATEST_EXPONENT = 60

THREE: Final = (3,)
_MARKED: Final = re.compile(r"[+-]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009 _]*%?")
# versions have points only
_OTHER_MARK: Final = re.compile(r"[+-]?(?:\d+\.\d+|\d[\d.]*,[\d.,]*\d|\d{1,3}(?:\.\d{3}){2,})")

Mark = Literal[".", ","]


class Quantity(NamedTuple):
    """A value and half the width of its last printed digit, in the same unit; a null half-width: exact."""

    value: float
    pm: float | None


class Digits(NamedTuple):
    """A printed decimal number as mantissa * 10 ** exponent: nothing lost."""

    mantissa: int
    exponent: int

    def scaled(self, power: int = 0) -> Quantity:
        """The number times 10 ** power, with the half-width of its last digit."""
        return Quantity(_decimal_value(self.mantissa, self.exponent + power), _half_width(self.exponent + power))


@lru_cache(maxsize=65536)
def digits(text: str, mark: Mark = ".") -> Digits | None:
    """A decimal number as printed: optional sign, thousands separators, `e-03`; `mark` is the decimal mark.

    Separators are taken out only where they can be separators: in groups of three, `1,234,567`.
    """
    if len(text) > _LONGEST:
        return None
    match = _PLAIN.match(text if mark == "." and "," not in text else _without_separators(text, mark))
    if match is None:
        return None
    sign, integer, fraction, power = match[1], match[2], match[3] or "", match[4]
    if integer is None:
        sign, integer, fraction, power = match[5], "", match[6], match[7]
    mantissa = int(f"{sign}{integer}{fraction}")
    exponent = int(power or 0) - len(fraction)
    return Digits(mantissa, exponent) if abs(exponent) <= _GREATEST_EXPONENT else None


def _without_separators(text: str, mark: Mark) -> str:
    separators = ",'\u00a0\u202f " if mark == "." else ".'\u00a0\u202f "
    integer, decimal_mark, fraction = text.strip().partition(mark)
    groups = re.split(f"[{re.escape(separators)}]", integer)
    if any(len(g) != 3 for g in groups[1:]) or (len(groups) > 1 and not 1 <= len(groups[0].lstrip("+-")) <= 3):
        return "?"  # `1,5` with a decimal point elsewhere: no number that can be trusted
    return "".join(groups) + ("." + fraction if decimal_mark else "")


def number(text: str, mark: Mark = ".") -> Quantity | None:
    """A bare number; a whole one is exact, the rest carry the half-width of the last digit."""
    parsed = digits(text.strip(), mark)
    if parsed is None:
        return None
    return Quantity(_decimal_value(*parsed), None if parsed.exponent >= 0 else _half_width(parsed.exponent))


def parse_integer(text: str) -> int | None:
    """A count: an integer without a fraction."""
    parsed = digits(text.strip())
    return parsed.mantissa * 10**parsed.exponent if parsed and parsed.exponent >= 0 else None


@lru_cache(maxsize=16384)
def percent(text: str) -> Quantity | None:
    """`41.68%` or `41.68` as 41.68, in per cent."""
    parsed = digits(text.strip().removesuffix("%").rstrip())
    return parsed.scaled() if parsed else None


@lru_cache(maxsize=65536)
def split_unit(text: str) -> tuple[str, str]:
    """`1.5GB/s` as ("1.5", "GB/s"); ("", text) when it does not begin with a number."""
    match = _SPLIT.match(text.strip()) if len(text) <= 2 * _LONGEST else None
    return (match[1], (match[2] or "").strip()) if match else ("", text.strip())


@lru_cache(maxsize=65536)
def duration(text: str, unit: str | None = None) -> Quantity | None:
    """A time in ns; the unit follows the number or is given (for a column)."""
    printed, printed_unit = split_unit(text)
    power = TIME_UNITS.get(printed_unit or unit or "")
    parsed = digits(printed) if power is not None else None
    return parsed.scaled(power or 0) if parsed else None


@lru_cache(maxsize=16384)
def size(text: str, unit: str | None = None, *, base: Literal[1000, 1024] = 1000) -> Quantity | None:
    """A size in bytes; None if the text is no size. `KiB` is 1024 bytes whatever the tool.

    Args:
        text: The number, with its unit or without.
        unit: The unit of a number that has none, such as that of its column.
        base: How many bytes the tool's K is (nvprof: 1024).
    """
    printed, printed_unit = split_unit(text)
    return _in_bytes(printed, size_factor(printed_unit or unit or "", base), is_exact_in_bytes=True)


def rate(text: str, unit: str | None = None, *, base: Literal[1000, 1024] = 1000) -> Quantity | None:
    """A rate in bytes per second, from `19.105MB/s` or `1.5 Gbyte/second`; None if the text is no rate.

    Args:
        text: The number, with its unit or without.
        unit: The unit of a number that has none, such as that of its column.
        base: How many bytes the tool's K is (nvprof: 1024).
    """
    printed, printed_unit = split_unit(text)
    amount, _, per = (printed_unit or unit or "").partition("/")
    factor = size_factor(amount, base) if per.strip() in {"s", "sec", "second"} else None
    return _in_bytes(printed, factor, is_exact_in_bytes=False)


def _in_bytes(printed: str, factor: int | None, *, is_exact_in_bytes: bool) -> Quantity | None:
    """A number of units of so many bytes; whole bytes may be exact."""
    parsed = digits(printed) if factor is not None else None
    if parsed is None or factor is None:
        return None
    value, pm = parsed.scaled()
    exact = is_exact_in_bytes and factor == 1 and parsed.exponent >= 0
    return Quantity(value * factor, None if exact or pm is None else pm * factor)


def size_factor(unit: str, base: Literal[1000, 1024]) -> int | None:
    """Bytes in one `unit` (B, KB, KiB, Kbyte ...), or None when it is no unit of size."""
    match = _SIZE_UNIT.match(unit.strip())
    if match is None:
        return None
    step = 1024 if match[2] else base
    return int(step ** _PREFIXES[match[1].lower()])


def _decimal_value(mantissa: int, exponent: int) -> float:
    return float(mantissa * 10**exponent) if exponent >= 0 else mantissa / 10**-exponent


def _half_width(exponent: int) -> float:
    return _decimal_value(5, exponent - 1)


def is_marked(text: str) -> bool:
    """Whether the text is a number with a comma or a point."""
    return ("," in text or "." in text) and _MARKED.fullmatch(text) is not None


def last_marks(text: str) -> tuple[Mark, Mark]:
    """The mark that occurs last in a number, and the other one."""
    return (",", ".") if text.rfind(",") > text.rfind(".") else (".", ",")


def proven_mark(text: str, groups: tuple[int, ...] = THREE) -> Mark | None:
    """The decimal mark that one number proves; None where it proves none.

    Args:
        text: As printed.
        groups: How many digits a group can have.
    """
    if not is_marked(text):
        return None
    mark, other_mark = last_marks(text)
    if other_mark in text:
        return mark if text.count(mark) == 1 else None
    if text.count(mark) > 1:
        return other_mark
    head, _, tail = text.lstrip("+-").rstrip("%").partition(mark)
    proves = len(tail) not in groups or head == "0" or len(head) > max(groups)
    return mark if proves and tail.isdigit() else None


def has_other_mark(text: str) -> bool:
    """Whether a text that is no number would be one with the other decimal mark, or with its groups in order."""
    return _OTHER_MARK.fullmatch(text) is not None


class Votes:
    """Numbers that prove a decimal mark. One is no proof against others: it may be the damaged one."""

    def __init__(self) -> None:
        self._votes: Counter[str] = Counter()

    def add(self, marks: Iterable[Mark | None]) -> None:
        """Count what numbers prove."""
        self._votes.update(filter(None, marks))

    def join(self, votes: Votes) -> None:
        """Count those of others too."""
        self._votes += votes._votes

    @property
    def total(self) -> int:
        """How many there are."""
        return self._votes.total()

    @property
    def winner(self) -> Mark | None:
        """The mark that most of them prove, of equally many the point; None without any."""
        if not self._votes:
            return None
        return "," if self._votes[","] > self._votes["."] else "."
