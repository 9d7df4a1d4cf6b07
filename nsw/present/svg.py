"""Parts of a plot in SVG: elements, text cut to its room, axes with round ticks, the palette and its second marks.

Presentation attributes only, so that a page's security policy may forbid styles. What has a colour has a class too:
`s1` to `s8` (series), `axis`, `grid`, `label`, `ceiling`, and `upon` (text upon a mark, which stays dark).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape, quoteattr

from nsw.analysis.groups import group_by
from nsw.present.summary_view import as_text
from nsw.present.untrusted_text import clean_line
from nsw.quantities import BYTES, TIMES, Units, common_unit, rate_units

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from nsw.analysis.blocks import Table, Unit

# Okabe and Ito's palette, which people with any colour blindness tell apart; its yellow darker, to be seen on white
COLOURS: Final = {
    "s1": "#4C80D6", "s2": "#E69F00", "s3": "#009E73", "s4": "#CC79A7", "s5": "#56B4E9", "s6": "#D55E00",
    "s7": "#CCBB44", "s8": "#999999", "axis": "#444444", "grid": "#E0E0E0", "label": "#222222", "ceiling": "#444444",
    "upon": "#111111",
}  # fmt: skip
FONT: Final = "Helvetica, Arial, DejaVu Sans, sans-serif"
_NO_XML: Final = re.compile("[\ufffe\uffff]")
_EAST_ASIAN: Final = 0x2E7F  # letters beyond are as wide as high
_NARROW, _WIDE = frozenset("ijlft.,:;|!'()[]/ 1"), frozenset("mwMW@%")
_SHAPES: Final = ("circle", "square", "triangle", "diamond", "down", "cross", "plus", "bar")
_GAP: Final = 6.0  # between the lines of a hatch
_MIN_TICKS: Final = 4  # of a linear axis


def node(name: str, *children: str, **attributes: object) -> str:
    """An element; an underscore in an attribute's name is a hyphen, one at its end goes, and None leaves it out."""
    present_attributes = {
        key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None
    }
    head = name + "".join(
        f" {key}={quoteattr(_svg_number(value) if isinstance(value, float) else str(value))}"
        for key, value in present_attributes.items()
    )
    return f"<{head}>{''.join(children)}</{name}>" if children else f"<{head}/>"


def _svg_number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def escape_text(content: object) -> str:
    """A text of others as content of an element."""
    return escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", clean_line(content)))


def tooltip(*lines: str) -> str:
    """What a mark says of itself where the pointer rests on it."""
    return node("title", "\n".join(map(escape_text, lines)))


def text(
    content: str,
    x: float,
    y: float,
    *,
    anchor: str = "start",
    size: int = 12,
    css_class: str = "label",
    bold: bool = False,
    turned: float = 0.0,
    within: float = math.inf,
) -> str:
    """A text that ends in an ellipsis where it has no room; then the whole is its tip.

    Args:
        content: The text.
        x: px, of its anchor.
        y: px, of its base line.
        anchor: start, middle or end.
        size: px.
        css_class: Its class, and so its colour.
        bold: Whether it is bold.
        turned: Degrees, counter-clockwise around the anchor.
        within: px that it may take.
    """
    visible = cut_to_width(content, within, size)
    return node(
        "text", escape_text(visible), *([tooltip(content)] if visible != clean_line(content) else []),
        x=x, y=y, text_anchor=anchor, font_size=size, font_weight="bold" if bold else None,
        fill=COLOURS[css_class], class_=css_class,
        transform=f"rotate({_svg_number(-turned)} {_svg_number(x)} {_svg_number(y)})" if turned else None,
    )  # fmt: skip


def text_width(content: str, size: int = 12) -> float:
    """Estimate the width of a text in px; the viewer's font is not known."""
    return size * sum(map(_letter_width, content))


@cache
def _letter_width(letter: str) -> float:
    """The width of a letter, as a share of the font size."""
    if letter in _NARROW:
        return 0.36
    return 0.95 if letter in _WIDE or ord(letter) > _EAST_ASIAN else 0.7 if letter.isupper() else 0.6


def cut_to_width(content: str, within: float, size: int = 12) -> str:
    """The text, or as much of its beginning as has room, with an ellipsis.

    Args:
        content: The text.
        within: px.
        size: px of its letters.
    """
    content = clean_line(content)
    ends = list(accumulate(map(_letter_width, content)))
    if not ends or size * ends[-1] <= within + 0.01:  # px: sums of floats differ by their order
        return content
    return content[: bisect_right(ends, within / size - _letter_width("…"))].rstrip() + "…"


def line(
    x1: float, y1: float, x2: float, y2: float, css_class: str, *, width: float = 1.0, dash: str | None = None
) -> str:
    """A straight line.

    Args:
        x1: px, of its beginning.
        y1: px.
        x2: px, of its end.
        y2: px.
        css_class: Its class, and so its colour.
        width: px.
        dash: Lengths of dashes and gaps; None: it is solid.
    """
    return node(
        "line",
        x1=x1,
        y1=y1,
        x2=x2,
        y2=y2,
        stroke=COLOURS[css_class],
        stroke_width=width,
        stroke_dasharray=dash,
        class_=css_class,
    )


def path(points: Iterable[tuple[float, float]], css_class: str, *, width: float = 2.0, dash: str | None = None) -> str:
    """A line through points.

    Args:
        points: (x, y) in px.
        css_class: Its class, and so its colour.
        width: px.
        dash: Lengths of dashes and gaps; None: it is solid.
    """
    through = "M" + "L".join(f"{_svg_number(x)} {_svg_number(y)}" for x, y in points)
    return node("path", d=through, fill="none", stroke=COLOURS[css_class], stroke_width=width, stroke_dasharray=dash,
                stroke_linejoin="round", class_=css_class)  # fmt: skip


def rect(
    x: float, y: float, width: float, height: float, css_class: str, *inside: str, row: int | None = None,
    opacity: float | None = None,
) -> str:  # fmt: skip
    """A bar or field.

    Args:
        x: px, of its left side.
        y: px, of its upper side.
        width: px.
        height: px.
        css_class: Its class, and so its colour.
        *inside: Its tip.
        row: The index of the row that it stands for.
        opacity: 0 to 1; None: 1.
    """
    return node("rect", *inside, x=x, y=y, width=width, height=height, fill=COLOURS[css_class], fill_opacity=opacity,
                class_=css_class, data_row=row)  # fmt: skip


def marker(x: float, y: float, series: int, *inside: str, row: int | None = None, size: float = 4.5) -> str:
    """A point, of another shape and colour for each series.

    Args:
        x: px, of its middle.
        y: px.
        series: From 0.
        *inside: Its tip.
        row: The index of the row that it stands for.
        size: px, its radius.
    """
    css_class, shape, r = f"s{series % 8 + 1}", _SHAPES[series % 8], size
    common_attributes = {
        "fill": COLOURS[css_class],
        "stroke": COLOURS[css_class],
        "stroke_width": 1.5,
        "class_": css_class,
        "data_row": row,
        "data_x": x,
        "data_y": y,
    }
    if shape == "circle":
        return node("circle", *inside, cx=x, cy=y, r=r, **common_attributes)
    corners: dict[str, Sequence[tuple[float, float]]] = {
        "square": ((-r, -r), (r, -r), (r, r), (-r, r)),
        "triangle": ((0, -1.2 * r), (1.2 * r, r), (-1.2 * r, r)),
        "diamond": ((0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)),
        "down": ((0, 1.2 * r), (1.2 * r, -r), (-1.2 * r, -r)),
        "cross": ((-r, -r), (r, r), (0, 0), (r, -r), (-r, r), (0, 0)),
        "plus": ((-r, 0), (r, 0), (0, 0), (0, -r), (0, r), (0, 0)),
        "bar": ((-r / 3, -1.4 * r), (r / 3, -1.4 * r), (r / 3, 1.4 * r), (-r / 3, 1.4 * r)),
    }
    d = "M" + "L".join(f"{_svg_number(x + dx)} {_svg_number(y + dy)}" for dx, dy in corners[shape]) + "Z"
    return node("path", *inside, d=d, **common_attributes)


def hatch(x: float, y: float, width: float, height: float, series: int) -> str:
    """Thin lines over a bar, in another direction for each series: colour is not alone.

    Args:
        x: px, of the bar's left side.
        y: px, of its upper side.
        width: px.
        height: px.
        series: From 0.
    """
    kinds = _HATCHES[series % 8]
    strokes = "".join(stroke for kind in kinds for stroke in _hatch_strokes(x, y, width, height, kind))
    if not strokes:
        return ""
    return node("path", d=strokes, fill="none", stroke=COLOURS["upon"], stroke_width=0.7, stroke_opacity=0.55,
                pointer_events="none", class_="upon")  # fmt: skip


# of each series: lines that rise (/), fall (\\), lie (-) and stand (|)
_HATCHES: Final = ("/\\", "/", "\\", "-", "", "-|", "|", "")


def _hatch_strokes(x: float, y: float, width: float, height: float, kind: str) -> Iterator[str]:
    if kind == "-":
        yield from (
            f"M{_svg_number(x)} {_svg_number(y + at)}h{_svg_number(width)}" for at in _axis_steps(_GAP / 2, height)
        )
    elif kind == "|":
        yield from (
            f"M{_svg_number(x + at)} {_svg_number(y)}v{_svg_number(height)}" for at in _axis_steps(_GAP / 2, width)
        )
    else:
        for at in _axis_steps(_GAP - height, width):
            first, last = max(at, 0.0), min(at + height, width)  # it may begin at the bar's left, and end at its right
            ends = [end - at if kind == "\\" else height - end + at for end in (first, last)]
            yield (
                f"M{_svg_number(x + first)} {_svg_number(y + ends[0])}"
                f"L{_svg_number(x + last)} {_svg_number(y + ends[1])}"
            )


def _axis_steps(first: float, end: float) -> Iterator[float]:
    count = max(0, math.ceil((end - first) / _GAP))
    return (first + n * _GAP for n in range(count))


def spread_labels(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Where labels go that would overlap.

    Args:
        heights: px, where each of them would be best.
        gap: px that they are apart at least.
        low: px, the highest place on the screen.
        high: px, the lowest one.

    Returns:
        px, in the order of `heights`.
    """
    order = sorted(range(len(heights)), key=lambda n: heights[n])
    placed = [0.0] * len(heights)
    at = low - gap
    for n in order:
        at = placed[n] = max(heights[n], at + gap)
    at = high + gap
    for n in reversed(order):
        at = placed[n] = min(placed[n], at - gap)
    return placed


# --- axes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """Values to px.

    Attributes:
        low: The value at `first`.
        high: The value at `last`.
        first: px.
        last: px.
        ticks: Round values within.
        is_log: Whether it is logarithmic.
        scale: Value of the unit that ticks are in.
        unit: Its name; empty: the column's own.
    """

    low: float
    high: float
    first: float
    last: float
    ticks: tuple[float, ...]
    is_log: bool = False
    scale: float = 1.0
    unit: str = ""

    def at(self, value: float) -> float:
        """The position of a value on the axis, in px."""
        if self.is_log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    @property
    def labels(self) -> list[str]:
        """The ticks' texts."""
        steps = [abs(b - a) / self.scale for a, b in zip(self.ticks, self.ticks[1:], strict=False)]
        return [_tick_label(tick / self.scale, tick / self.scale if self.is_log else min(steps, default=1.0))
                for tick in self.ticks]  # fmt: skip

    def title(self, name: str) -> str:
        """The axis' title: its unit, and where it begins if that is not zero."""
        notes = [self.unit] if self.unit else []
        notes += ["log"] if self.is_log else []
        notes += [f"from {_tick_label(self.low / self.scale, self.low / self.scale)}"] if self.low else []
        return f"{name} ({', '.join(notes)})" if notes else name


def _tick_label(value: float, step: float) -> str:
    """A round value, with the digits that the step to the next one needs."""
    if not value:
        return "0"
    if abs(value) >= 1e7:
        return f"{value:.3g}"
    digits = max(0, -math.floor(math.log10(abs(step)) + 1e-9)) if step else 0
    number_text = f"{value:,.{digits + 2}f}"  # one or two more than the step's first, where it needs them: 2.5, 0.25
    return number_text.rstrip("0").rstrip(".") if "." in number_text else number_text


def axis_unit(high: float, unit: Unit) -> tuple[float, str]:
    """How large the unit is that an axis up to a value has, and its name, which is empty where the column has one."""
    units: dict[str, Units] = {"ns": TIMES, "byte": BYTES, "byte/s": rate_units("B"), "FLOP/s": rate_units("FLOP")}
    if unit in units:
        name, scale = common_unit([high], units[unit])
        return scale, name
    return 1.0, {"%": "%", "whole %": "%", "change %": "%", "GB/s": "GB/s"}.get(unit, "")


def linear_axis(
    low: float,
    high: float,
    first: float,
    last: float,
    *,
    unit: Unit = "number",
    exact: bool = False,
) -> Axis:
    """A linear axis with round ticks.

    Args:
        low: The least value.
        high: The largest value.
        first: px of `low`.
        last: px of `high`.
        unit: Of the values; ticks are in a unit of this kind that suits them.
        exact: Whether the axis ends at `low` and `high`; else its ends are ticks too.
    """
    if high <= low:
        high = low + (abs(low) or 1.0)
    scale, name = axis_unit(max(abs(low), abs(high)), unit)
    longest_step = (high - low) / scale / _MIN_TICKS
    power = 10.0 ** math.floor(math.log10(longest_step))
    step = power * max(n for n in (1, 2, 5) if n * power <= longest_step * (1 + 1e-9)) * scale
    if not exact:
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    count = math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9)
    begin = math.ceil(low / step - 1e-9)
    ticks = tuple((begin + n) * step for n in range(count + 1))
    return Axis(low, high, first, last, ticks, scale=scale, unit=name)


def logarithmic_axis(
    low: float, high: float, first: float, last: float, *, unit: Unit = "number", exact: bool = False
) -> Axis:
    """A logarithmic axis: ticks at 1, 2, 5 of each decade; of many decades at their beginnings.

    Args:
        low: The least value, above 0.
        high: The largest value.
        first: px of `low`.
        last: px of `high`.
        unit: Of the values; ticks are in a unit of this kind that suits them.
        exact: Whether the axis ends at `low` and `high`; else its ends are ticks too.
    """
    scale, name = axis_unit(high, unit)
    decades = math.log10(high / low)
    steps = (1, 2, 5) if decades < 3.2 else (1,)
    marks = [
        n * 10.0**power
        for power in range(math.floor(math.log10(low / scale)) - 1, math.ceil(math.log10(high / scale)) + 1)
        for n in steps
    ]
    if not exact:
        low = scale * max(mark for mark in marks if mark * scale <= low * (1 + 1e-9))
        high = scale * min([mark for mark in [*marks, 10 * marks[-1]] if mark * scale >= high * (1 - 1e-9)])
    ticks = tuple(mark * scale for mark in marks if low * (1 - 1e-9) <= mark * scale <= high * (1 + 1e-9))
    return Axis(low, high, first, last, ticks, is_log=True, scale=scale, unit=name)


SMALL: Final = 11  # px of the small text
TICK: Final = 11


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn below the title: its parts, where it ends (px), and what it is in words."""

    parts: Sequence[str]
    bottom: float
    words: str


# --- rows -----------------------------------------------------------------------------------------------------------


def column_of(block: Table, name: str) -> int:
    """Which cell of a row is of that column."""
    return next(n for n, column in enumerate(block.columns) if column.name == name)


def number_of(cell: Any) -> float | None:
    """The number in a cell, in the column's unit; None for text, booleans, NaN and infinities."""
    is_number = isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell)
    return float(cell) if is_number else None


def range_of(block: Table, row: Sequence[Any]) -> tuple[float, float] | None:
    """The scatter of a row's value: its cell of unit `range`."""
    pair = next((row[n] for n, column in enumerate(block.columns) if column.unit == "range"), None)
    if not isinstance(pair, tuple) or len(pair) != 2:
        return None
    low, high = map(number_of, pair)
    return None if low is None or high is None else (low, high)


def row_tip(block: Table, row: int, *first_lines: str, positions: Collection[int] | None = None) -> str:
    """A row in words, a cell a line, and where it is from.

    Args:
        block: The table.
        row: The row's index.
        *first_lines: Lines above those of the cells.
        positions: The columns that are shown; None: all.
    """
    cells = [
        cell
        for n, cell in enumerate(zip(block.columns, block.rows[row], strict=True))
        if not positions or n in positions
    ]
    cell_texts = [f"{column.title}: {as_text(cell, column.unit)}" for column, cell in cells if cell not in {None, ""}]
    return tooltip(*first_lines, *cell_texts, *row_sources(block, row))


def row_sources(block: Table, row: int) -> list[str]:
    """The table that proves a row, and whose rows of it."""
    return [
        f"source: table {e.table}" + (f" of {e.cases[row]}" if len(e.cases) == len(block.rows) else
                                      f" of {e.cases[0]}" if len(e.cases) == 1 else "")
        for e in block.evidence
    ]  # fmt: skip


def series_of(block: Table, names: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each series, by its name."""
    positions = [column_of(block, name) for name in names]

    def name(n: int) -> str:
        labels = (_cell_label(block, block.rows[n], position, with_title=True) for position in positions)
        return ", ".join(filter(None, labels))

    return group_by(range(len(block.rows)), name)


def _cell_label(block: Table, row: Sequence[Any], position: int, *, with_title: bool = False) -> str:
    column = block.columns[position]
    cell = as_text(row[position], column.unit)
    return f"{column.title} {cell}" if with_title and column.name.startswith("param.") else cell


def bar_label(block: Table, row: Sequence[Any], name: str) -> str:
    """The name of a bar: its label, and the columns before it, by which rows are grouped.

    Args:
        block: The table.
        row: The row.
        name: The column of the label.
    """
    positions = range(column_of(block, name) + 1)
    return ", ".join(
        _cell_label(block, row, n, with_title=len(positions) > 1 and n < len(positions) - 1) for n in positions
    )


# --- around the marks -------------------------------------------------------------------------------------------------


def x_axis(axis: Axis, top: float, bottom: float, title: str) -> list[str]:
    """Ticks below, lines of the grid up to the top, and the title.

    Args:
        axis: The axis.
        top: px, where the lines end.
        bottom: px, where the axis is.
        title: The name of its values.
    """
    parts = []
    free = -math.inf
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        x, half = axis.at(tick), text_width(label, TICK) / 2
        parts.append(line(x, top, x, bottom, "grid"))
        if x - half > free:
            parts.append(text(label, x, bottom + 16, anchor="middle", size=TICK))
            free = x + half + 6
    middle = (axis.first + axis.last) / 2
    return [*parts, line(axis.first, bottom, axis.last, bottom, "axis"),
            text(axis.title(title), middle, bottom + 36, anchor="middle")]  # fmt: skip


def y_axis(axis: Axis, left: float, right: float, title: str) -> list[str]:
    """Ticks at the left, lines of the grid to the right, and the title, turned.

    Args:
        axis: The axis.
        left: px, where the axis is.
        right: px, where the lines end.
        title: The name of its values.
    """
    parts = []
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        y = axis.at(tick)
        parts += [line(left, y, right, y, "grid"), text(label, left - 7, y + 4, anchor="end", size=TICK)]
    middle, height = (axis.first + axis.last) / 2, abs(axis.last - axis.first)
    return [*parts, line(left, axis.first, left, axis.last, "axis"),
            text(axis.title(title), 16, middle, anchor="middle", turned=90, within=height)]  # fmt: skip


def left_margin(axis: Axis) -> float:
    """The width in px that ticks and title need at the left of a vertical axis."""
    return 34 + max(text_width(label, TICK) for label in axis.labels)


def whisker(low: float, high: float, across: float, css_class: str, *, upright: bool) -> str:
    """A range with its ends.

    Args:
        low: px, of its beginning.
        high: px, of its end.
        across: px, on the other axis.
        css_class: Its class, and so its colour.
        upright: Whether it stands.
    """
    ends = [((across, low), (across, high))] + [((across - 4, at), (across + 4, at)) for at in (low, high)]
    return "".join(path(pair if upright else [(y, x) for x, y in pair], css_class, width=1.4) for pair in ends)


_LEFT: Final = 8.0  # px, of the first sign in a line of a legend


def legend_of(
    entries: Sequence[str], y: float, width: float, sign: Callable[[int, float, float], str]
) -> tuple[list[str], float]:
    """Names with their signs, in as many lines as they need.

    Args:
        entries: The names.
        y: px, of the first line.
        width: px that a line may take.
        sign: Draws the sign of an entry (its index, x and y in px).

    Returns:
        The parts, and where they end (px).
    """
    parts, at = [], _LEFT
    for n, entry in enumerate(entries):
        label = cut_to_width(entry, min(260.0, width - 24))
        if at > _LEFT and at + 24 + text_width(label) > _LEFT + width:
            at, y = _LEFT, y + 18
        parts += [sign(n, at, y), text(entry, at + 20, y, within=min(260.0, width - 24))]
        at += 38 + text_width(label)
    return parts, y + 10


def series_class(series: int) -> str:
    """The class, and so the colour, of a series (from 0)."""
    return f"s{series % 8 + 1}"
