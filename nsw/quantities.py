"""Numbers for people: quantities as texts that remember value and unit, so that a column of them can get one unit."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# units of a kind, the largest first: name and how much it is
TIMES: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
BYTES: Final = tuple((unit, float(1 << power)) for unit, power in (
    ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)))  # fmt: skip
PERCENT: Final = (("%", 1.0),)
_LEAST: Final = 0.1  # of a unit: a column whose smallest is below gets a smaller unit,
_MOST: Final = 1e6  # unless its largest would have so many of it

_TENTH, _TENFOLD = -90.0, 900.0  # per cent: beyond them a factor is easier to read
MOMENTS: Final = frozenset({"started", "ended"})  # columns of table `runs` that hold Unix seconds

Units = tuple[tuple[str, float], ...]


class Quantity(str):
    """A text such as `1.234 ms` that knows its value and the units that it may be shown in."""

    __slots__ = ("units", "value")
    value: float
    units: Units

    @classmethod
    def of(cls, text: str, value: float, units: Units) -> Quantity:
        """The text with what it says."""
        made = cls(text)
        made.value, made.units = value, units
        return made


def rates(of: str) -> Units:
    """Units of things a second: powers of 1000, as in data sheets."""
    return tuple((f"{unit}{of}/s", step) for unit, step in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)))


def in_one_unit(head: str, cells: Sequence[object], beside: Sequence[float] = ()) -> tuple[str, list[object]]:
    """A column whose quantities all have one unit, named in the heading; other columns as they are.

    Args:
        head: The heading.
        cells: The column.
        beside: Values of columns that are to have the same unit.
    """
    found = [cell for cell in cells if isinstance(cell, Quantity)]
    others = {cell for cell in cells if not isinstance(cell, Quantity)}
    if not found or not others <= {None, "", "-"} or len({one.units for one in found}) > 1:
        return head, list(cells)
    unit, scale = common([*(one.value for one in found), *beside], found[0].units)
    end = ">" if head.endswith(">") else ""
    shown = [_number(cell.value / scale, unit) if isinstance(cell, Quantity) else cell for cell in cells]
    return f"{head.removesuffix('>')} ({unit}){end}", shown


def common(values: Sequence[float], units: Units) -> tuple[str, float]:
    """The unit for all of these: that of the largest, or a smaller one where the smallest would be lost in it."""
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return units[-1]
    at = next((n for n, (_, scale) in enumerate(units) if max(sizes) >= scale), len(units) - 1)
    while at + 1 < len(units) and min(sizes) < units[at][1] * _LEAST and max(sizes) < units[at + 1][1] * _MOST:
        at += 1
    return units[at]


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:,.1f}"
    if unit in {"ns", "B"} and value == int(value):
        return f"{int(value):,}"
    if value and abs(value) < 1:
        return f"{value:.{2 - math.floor(math.log10(abs(value)))}f}"
    return f"{value:,.{1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 3}f}"


def duration(ns: float | None) -> str:
    """Nanoseconds for people, four digits or more: 1.234 ms, 1,234.5 s."""
    if ns is None:
        return "-"
    return Quantity.of(_in_units(ns, TIMES), ns, TIMES)


def about(ns: float | None) -> str:
    """Nanoseconds for sentences, three digits: 1.23 ms."""
    if ns is None:
        return "-"
    return next((f"{ns / size:.3g} {unit}" for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if ns >= size),
                duration(ns))  # fmt: skip


def size(count: float | None) -> str:
    """Bytes for people, powers of 1024: 1.234 GiB."""
    if count is None:
        return "-"
    return Quantity.of(_in_units(count, BYTES), count, BYTES)


def rate(per_second: float | None, of: str = "B") -> str:
    """Bytes (or other things) a second for people, powers of 1000 as in data sheets: 1.234 GB/s."""
    if per_second is None:
        return "-"
    units = rates(of)
    return Quantity.of(_in_units(per_second, units), per_second, units)


def seconds(value: float | None) -> str:
    """Seconds for people: 0.31 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.2f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def number(value: float | None) -> str:
    """A number with thousands separated, at least three digits of it, or `-`: 50,110.1, 12.34, 0.0312."""
    if value is None:
        return "-"
    if value and abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.{1 if abs(value) >= 100 else 2}f}"


def spread(least: float | None, most: float | None) -> str:
    """The range of several measurements: 18,948 .. 28,247."""
    return "-" if least is None or most is None else f"{number(least)} .. {number(most)}"


def percent(value: float | None) -> str:
    """A percentage with one digit, or `-`."""
    return "-" if value is None else Quantity.of(f"{value:,.1f} %", value, PERCENT)


def change(value: float, digits: int = 1) -> str:
    """A change in percent, `+12.3 %`; ten times as much and more, a tenth and less as a factor, `x 210`."""
    if _TENTH < value < _TENFOLD:
        return f"{value:+,.{digits}f} %"
    factor = 1 + value / 100
    return f"x {factor:,.0f}" if factor >= 1 else f"x {factor:.2g}"


def changed_by(value: float) -> str:
    """The same in a sentence, after "by": `+12 %`, `a factor of 210`."""
    return change(value, 0).replace("x ", "a factor of ")


def _in_units(value: float, units: Units) -> str:
    for unit, scale in units[:-1]:
        if abs(value) >= scale:
            return f"{_four(value / scale)} {unit}"
    return f"{value:,.0f} {units[-1][0]}"


def _four(value: float) -> str:
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:,.{digits}f}"


def moment(seconds: float) -> str:
    """Unix seconds as the local clock shows them, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
