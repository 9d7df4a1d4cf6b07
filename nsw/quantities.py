"""Numbers for people: quantities as texts that remember value and unit, so that a column of them can get one unit."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Final

# units of a kind, the largest first: name and how much it is
TIMES: Final = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
BYTES: Final = tuple((unit, float(1 << power)) for unit, power in (
    ("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)))  # fmt: skip
PERCENT: Final = (("%", 1.0),)
_SMALLEST: Final = 0.1  # of a unit: a column whose smallest is below gets a smaller unit,
_LARGEST: Final = 1e6  # unless its largest would have so many of it

_HALVED, _DOUBLED = -50.0, 100.0  # per cent: at and beyond them a change is a factor, on every screen
_NO_CHANGE: Final = 0.05  # per cent: less is no change
NO_CHANGE: Final = "the same"
JOULE: Final = "J"
ENERGY: Final = "energy"  # the figures that nsw makes of the power
ENERGY_PER: Final = f"{ENERGY}_per_"
MOMENTS: Final = frozenset({"started", "ended"})  # columns of table `runs` that hold Unix seconds

Units = tuple[tuple[str, float], ...]


def is_energy(name: str) -> bool:
    """Whether a figure of this name is what nsw made of the power."""
    return name == ENERGY or name.startswith(ENERGY_PER)


class Quantity(str):
    """A text such as `1.234 ms` that knows its value and the units that it may be shown in."""

    __slots__ = ("units", "value")
    value: float
    units: Units

    @classmethod
    def from_value(cls, text: str, value: float, units: Units) -> Quantity:
        """The text with what it says."""
        quantity = cls(text)
        quantity.value, quantity.units = value, units
        return quantity


def rate_units(unit_name: str) -> Units:
    """Units of things a second: powers of 1000, as in data sheets."""
    return tuple(
        (f"{unit}{unit_name}/s", step) for unit, step in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
    )


def in_one_unit(head: str, cells: Sequence[object], related_values: Sequence[float] = ()) -> tuple[str, list[object]]:
    """A column whose quantities all have one unit, named in the heading; other columns as they are.

    Args:
        head: The heading.
        cells: The column.
        related_values: Values of columns that are to have the same unit.
    """
    quantities = [cell for cell in cells if isinstance(cell, Quantity)]
    other_cells = {cell for cell in cells if not isinstance(cell, Quantity)}
    if not quantities or not other_cells <= {None, "", "-"} or len({quantity.units for quantity in quantities}) > 1:
        return head, list(cells)
    unit, scale = common_unit([*(quantity.value for quantity in quantities), *related_values], quantities[0].units)
    end = ">" if head.endswith(">") else ""
    numbers = [_number(cell.value / scale, unit) if isinstance(cell, Quantity) else cell for cell in cells]
    return f"{head.removesuffix('>')} ({unit}){end}", numbers


def common_unit(values: Sequence[float], units: Units) -> tuple[str, float]:
    """The unit for all of these: that of the largest, or a smaller one where the smallest would be lost in it."""
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return units[-1]
    at = next((n for n, (_, scale) in enumerate(units) if max(sizes) >= scale), len(units) - 1)
    while at + 1 < len(units) and min(sizes) < units[at][1] * _SMALLEST and max(sizes) < units[at + 1][1] * _LARGEST:
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


def factor_digits(times: float) -> str:
    """How many times, in digits that show a difference: 1.02, 5.56, 1,028."""
    small = f"{times:.2f}" if times >= 1.01 else f"{times:.3f}"
    return f"{times:,.0f}" if times >= 10 else f"{times:.3g}" if times >= 2 else small


def percent_digits(percent: float) -> str:
    """Per cent in sentences: two digits, from 10 on whole numbers."""
    return f"{percent:.2g}" if percent < 10 else f"{percent:.0f}"


def is_factor(ratio: float) -> bool:
    """Whether a change is printed as a factor, and so all changes beside it: of twice or half and more."""
    return not 1 + _HALVED / 100 < ratio < 1 + _DOUBLED / 100


def change_of_speed(ratio: float, *, is_time: bool = False, as_factor: bool | None = None) -> str:
    """What got faster or slower, in percent of the figure that is printed; twice and more as a factor, `5.6x slower`.

    Args:
        ratio: Of speeds: of rates the second by the first, of times the first by the second.
        is_time: Whether the figure is a time: `46 % longer`, `32 % less time`; else `9.6 % slower`.
        as_factor: Whether it is a factor, as another change beside it is; None: by its size.
    """
    if ratio <= 0:
        return "0x"
    change_pct = 100 * ((1 / ratio if is_time else ratio) - 1)
    if abs(change_pct) < _NO_CHANGE:
        return NO_CHANGE
    if is_factor(ratio) if as_factor is None else as_factor:
        return f"{factor_digits(max(ratio, 1 / ratio))}x {'faster' if ratio > 1 else 'slower'}"
    words = ("longer", "less time") if is_time else ("faster", "slower")
    return f"{percent_digits(abs(change_pct))} % {words[change_pct < 0]}"


def merged_range(low: str, high: str) -> str:
    """From one change to another, without what both end with: `36 to 60 % faster`, `48 % to 2.7x faster`."""
    if low == high:
        return low
    ends = [re.match(r"([\d,.]+)(x| %)? ?(.*)", text) for text in (low, high)]
    if None in ends or ends[0][3] != ends[1][3]:  # type: ignore[index]  # None is not among them
        return f"{low} to {high}"
    (first, first_unit, _), (_, second_unit, _) = (end.groups() for end in ends if end)
    return f"{first}{'' if first_unit == second_unit else first_unit} to {high}"


def duration(ns: float | None) -> str:
    """Nanoseconds for people, four digits or more: 1.234 ms, 1,234.5 s."""
    if ns is None:
        return "-"
    return Quantity.from_value(_in_units(ns, TIMES), ns, TIMES)


def format_sum_and_parts(parts: Sequence[float]) -> tuple[str, list[str]]:
    """The sum of times and each of them, `1.500 ms less`, in one unit and so rounded that they add up.

    Args:
        parts: ns, of both signs.

    Returns:
        The sum, and the parts in their order; empty for a part that rounds to nothing.
    """
    total = sum(parts)
    most = max(map(abs, (total, *parts)))
    unit, scale = next((unit for unit in TIMES if most >= unit[1]), TIMES[-1])
    digits = 3 if most < 10 * scale else 2 if most < 100 * scale else 1
    rounded = [round(part / scale, digits) for part in parts]
    largest = max(range(len(parts)), key=lambda at: abs(parts[at]))
    rounded[largest] = round(round(total / scale, digits) - sum(rounded) + rounded[largest], digits)

    def text(value: float) -> str:
        return f"{abs(value):,.{digits}f} {unit} {'more' if value > 0 else 'less'}" if value else ""

    return text(round(total / scale, digits)), [text(value) for value in rounded]


def format_ns(ns: float | None) -> str:
    """Nanoseconds for sentences, three digits: 1.23 ms."""
    if ns is None:
        return "-"
    return next((f"{ns / size:.3g} {unit}" for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)) if ns >= size),
                duration(ns))  # fmt: skip


def size(count: float | None) -> str:
    """Bytes for people, powers of 1024: 1.234 GiB."""
    if count is None:
        return "-"
    return Quantity.from_value(_in_units(count, BYTES), count, BYTES)


def rate(per_second: float | None, unit_name: str = "B") -> str:
    """Bytes (or other things) a second for people, powers of 1000 as in data sheets: 1.234 GB/s."""
    if per_second is None:
        return "-"
    units = rate_units(unit_name)
    return Quantity.from_value(_in_units(per_second, units), per_second, units)


def seconds(value: float | None) -> str:
    """Seconds for people: 0.31 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if value is None:
        return "-"
    if value < 10:
        return f"{value:.2f} s"
    rounded = round(value)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s" if rounded % 60 else f"{rounded // 60} min"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


def number(value: float | None) -> str:
    """A number with thousands separated, at least three digits of it, or `-`: 50,110.1, 12.34, 0.0312."""
    if value is None:
        return "-"
    if value and abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.{1 if abs(value) >= 100 else 2}f}"


def format_range(lowest: float | None, highest: float | None) -> str:
    """The range of several measurements: 18,948 .. 28,247."""
    return "-" if lowest is None or highest is None else f"{number(lowest)} .. {number(highest)}"


def percent(value: float | None) -> str:
    """A percentage with one digit, or `-`."""
    return "-" if value is None else Quantity.from_value(f"{value:,.1f} %", value, PERCENT)


def format_change(value: float, digits: int = 1, *, as_factor: bool = False) -> str:
    """A change in percent, `+12.3 %`; twice as much and more, a half and less as a factor, `210x higher`, `15x lower`.

    Args:
        value: The change, in percent.
        digits: Behind the point.
        as_factor: Whether it is a factor whatever its size, as another change beside it is.
    """
    if _HALVED < value < _DOUBLED and not as_factor:
        return f"{value:+,.{digits}f} %"
    if value <= -100:
        return "0x"
    if abs(value) < _NO_CHANGE:
        return NO_CHANGE
    times = 1 + value / 100
    return f"{factor_digits(times)}x higher" if times > 1 else f"{factor_digits(1 / times)}x lower"


def format_rate_change(value: float, *, as_factor: bool | None = None) -> str:
    """A change of a rate in percent, with its direction."""
    return change_of_speed(1 + value / 100, as_factor=as_factor)


def format_time_change(value: float, *, as_factor: bool | None = None) -> str:
    """A change of a time in percent, with its direction."""
    return change_of_speed(1 / (1 + value / 100) if value > -100 else math.inf, is_time=True, as_factor=as_factor)


def format_magnitude(value: float, digits: int = 1) -> str:
    """The size of a change in percent, before "faster" or "more": `12.3 %`; from twice on a factor, `77 times`."""
    return f"{abs(value):.{digits}f} %" if value < _DOUBLED else f"{factor_digits(1 + value / 100)} times"


def change_in_sentence(value: float) -> str:
    """The same in a sentence, after "by": `+12 %`, `a factor of 210`, `a factor of 1/15`."""
    number, is_factor, direction = format_change(value, 0).partition("x ")
    return f"a factor of {'1/' * (direction == 'lower')}{number}" if is_factor else number


def _in_units(value: float, units: Units) -> str:
    for unit, scale in units[:-1]:
        if abs(value) >= scale:
            return f"{_four_digits(value / scale)} {unit}"
    return f"{value:,.0f} {units[-1][0]}"


def _four_digits(value: float) -> str:
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:,.{digits}f}"


def format_moment(seconds: float) -> str:
    """Unix seconds as the local clock shows them, to the second."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
