"""Plots of an answer's blocks as SVG, for a page, a file and a notebook: one way of drawing each kind of block.

A plot is complete without scripts: a mark that stands for a row has its index (`data-row`), and says what it is where
the pointer rests on it. What is drawn needs no colour to be told apart: series have shapes, bars have hatches.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import (
    Bars,
    Curve,
    HeatMap,
    Intervals,
    Scatter,
    StackedBars,
    Table,
    Timeline,
    Waterfall,
)  # fmt: skip
from nsw.present.summary_view import as_text
from nsw.present.svg import (
    FONT,
    Axis,
    cut,
    hatch,
    line,
    linear,
    logarithmic,
    marker,
    node,
    path,
    rect,
    room,
    spread_out,
    text,
    tip,
    words,
)  # fmt: skip
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.blocks import Ceiling


__all__ = ["svg_of"]

_SERIES: Final = 8  # that are drawn: there are no more colours that everybody tells apart
_DECADES: Final = 16.0  # times, from which an axis is logarithmic
_SMALL: Final = 11  # px of the small text
_TICK: Final = 11


@dataclass(frozen=True, slots=True)
class _Picture:
    """What is drawn below the title: its parts, where it ends (px), and what it is in words."""

    parts: Sequence[str]
    bottom: float
    words: str


def svg_of(block: Table, *, width: int = 720, title: bool = True) -> str | None:
    """A block as SVG, one element; None where it has no picture, or one of a single point.

    Args:
        block: The block.
        width: px that it is made for; it scales.
        title: Whether its title is written above it.
    """
    draw = _PICTURES.get(block.kind)
    heading = title and bool(block.title)
    picture = draw(block, float(width), 30.0 if heading else 8.0) if draw and block.rows else None
    if picture is None:
        return None
    head = [text(block.title, 8, 20, size=15, bold=True, within=width - 16)] if heading else []
    height = round(picture.bottom)
    return node(
        "svg", node("title", words(block.title or block.name)), node("desc", words(picture.words)), *head,
        *picture.parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width,
        height=height, role="img", font_family=FONT, class_="plot",
    )  # fmt: skip


# --- rows -----------------------------------------------------------------------------------------------------------


def _at(block: Table, name: str) -> int:
    return next(n for n, column in enumerate(block.columns) if column.name == name)


def _number(cell: Any) -> float | None:
    """A cell that an axis can hold."""
    known = isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell)
    return float(cell) if known else None


def _range_of(block: Table, row: Sequence[Any]) -> tuple[float, float] | None:
    """The scatter of a row's value: its cell of unit `range`."""
    pair = next((row[n] for n, column in enumerate(block.columns) if column.unit == "range"), None)
    if not isinstance(pair, tuple) or len(pair) != 2:
        return None
    low, high = map(_number, pair)
    return None if low is None or high is None else (low, high)


def _says(block: Table, row: int, *more: str) -> str:
    """A row in words, a cell a line, and where it is from."""
    cells = zip(block.columns, block.rows[row], strict=True)
    known = [f"{column.title}: {as_text(cell, column.unit)}" for column, cell in cells if cell not in {None, ""}]
    return tip(*more, *known, *_source(block, row))


def _source(block: Table, row: int) -> list[str]:
    """The table that proves a row, and whose rows of it."""
    return [
        f"source: table {e.table}" + (f" of {e.cases[row]}" if len(e.cases) == len(block.rows) else
                                      f" of {e.cases[0]}" if len(e.cases) == 1 else "")
        for e in block.evidence
    ]  # fmt: skip


def _series(block: Table, names: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each series, by its name."""
    places = [_at(block, name) for name in names]
    found: dict[str, list[int]] = {}
    for n, row in enumerate(block.rows):
        name = ", ".join(_named(block, row, place, with_title=True) for place in places)
        found.setdefault(name, []).append(n)
    return found


def _named(block: Table, row: Sequence[Any], place: int, *, with_title: bool = False) -> str:
    column = block.columns[place]
    cell = as_text(row[place], column.unit)
    return f"{column.title} {cell}" if with_title and column.name.startswith("param.") else cell


def _label(block: Table, row: Sequence[Any], name: str) -> str:
    """What a bar is called: its label, and the columns before it, by which rows are grouped."""
    places = range(_at(block, name) + 1)
    return ", ".join(_named(block, row, n, with_title=len(places) > 1 and n < len(places) - 1) for n in places)


# --- around the marks -------------------------------------------------------------------------------------------------


def _x_axis(axis: Axis, top: float, bottom: float, title: str) -> list[str]:
    """Ticks below, lines of the grid up to the top, and the title."""
    parts = []
    free = -math.inf
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        x, half = axis.at(tick), room(label, _TICK) / 2
        parts.append(line(x, top, x, bottom, "grid"))
        if x - half > free:
            parts.append(text(label, x, bottom + 16, anchor="middle", size=_TICK))
            free = x + half + 6
    middle = (axis.first + axis.last) / 2
    return [*parts, line(axis.first, bottom, axis.last, bottom, "axis"),
            text(axis.title(title), middle, bottom + 36, anchor="middle")]  # fmt: skip


def _y_axis(axis: Axis, left: float, right: float, title: str) -> list[str]:
    """Ticks at the left, lines of the grid to the right, and the title, turned."""
    parts = []
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        y = axis.at(tick)
        parts += [line(left, y, right, y, "grid"), text(label, left - 7, y + 4, anchor="end", size=_TICK)]
    middle, whole = (axis.first + axis.last) / 2, abs(axis.last - axis.first)
    return [*parts, line(left, axis.first, left, axis.last, "axis"),
            text(axis.title(title), 16, middle, anchor="middle", turned=90, within=whole)]  # fmt: skip


def _left_of(axis: Axis) -> float:
    """The room that ticks and title at the left need."""
    return 34 + max(room(label, _TICK) for label in axis.labels)


def _whisker(low: float, high: float, across: float, of: str, *, upright: bool) -> str:
    """A range with its ends (px)."""
    ends = [((across, low), (across, high))] + [((across - 4, at), (across + 4, at)) for at in (low, high)]
    return "".join(path(pair if upright else [(y, x) for x, y in pair], of, width=1.4) for pair in ends)


def _legend(
    entries: Sequence[str], x: float, y: float, width: float, sign: Callable[[int, float, float], str]
) -> tuple[list[str], float]:
    """Names with their signs in lines of text, and where they end (px)."""
    parts, at = [], x
    for n, entry in enumerate(entries):
        shown = cut(entry, min(260.0, width - 24))
        if at > x and at + 24 + room(shown) > x + width:
            at, y = x, y + 18
        parts += [sign(n, at, y), text(entry, at + 20, y, within=min(260.0, width - 24))]
        at += 38 + room(shown)
    return parts, y + 10


def _of(series: int) -> str:
    return f"s{series % 8 + 1}"


# --- curves ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Point:
    row: int
    x: float
    y: float
    range: tuple[float, float] | None
    ideal: float | None


def _points(block: Curve, rows: Iterable[int]) -> list[_Point]:
    x_at, y_at = _at(block, block.x), _at(block, block.y)
    found = []
    for n in rows:
        x, y = _number(block.rows[n][x_at]), _number(block.rows[n][y_at])
        if x is not None and y is not None:
            found.append(_Point(n, x, y, _range_of(block, block.rows[n]), block.ideals[n] if block.ideals else None))
    return sorted(found, key=lambda point: point.x)


def _curve(block: Any, width: float, top: float) -> _Picture | None:
    """Lines with a marker a point, ranges as whiskers, the ideal dotted; names at the lines' ends."""
    every = {name: _points(block, rows) for name, rows in _series(block, block.series).items()}
    lines = dict([(name, points) for name, points in every.items() if points][:_SERIES])
    points = [point for some in lines.values() for point in some]
    if len({point.x for point in points}) < 2:
        return None
    notes = _notes_of_curve(points, left_out=sum(map(bool, every.values())) - len(lines))
    top += 20 if notes else 4
    bottom = top + 300
    highs = [value for p in points for value in (p.y, p.ideal, p.range and p.range[1]) if value is not None]
    lows = [value for p in points for value in (p.y, p.ideal, p.range and p.range[0]) if value is not None]
    x_unit, y_unit = (block.columns[_at(block, name)] for name in (block.x, block.y))
    xs = sorted({point.x for point in points})
    log = xs[0] > 0 and xs[-1] / xs[0] >= _DECADES
    log_y = log and min(lows) > 0 and max(highs) / min(lows) >= _DECADES
    make_y = logarithmic if log_y else linear
    y = make_y(min(lows) if log_y else min(0.0, *lows), max(highs), bottom, top, unit=y_unit.unit)
    left, right = _left_of(y), width - _right_of(lines)
    x = _x_of_curve(xs, left, right, log=log)
    parts = [*_y_axis(y, left, right, y_unit.title), *_x_axis(x, top, bottom, x_unit.title)]
    parts += [text(notes, left, top - 8, size=_SMALL, within=width - left)] if notes else []
    for n, some in enumerate(lines.values()):
        parts += _ideal(some, n, x, y)
    for n, some in enumerate(lines.values()):
        parts += _line(block, some, n, x, y)
    ends = spread_out([y.at(some[-1].y) for some in lines.values()], 15, top + 4, bottom)
    for n, (name, end) in enumerate(zip(lines, ends, strict=True)):
        if name:
            parts.append(text(name, right + 12, end + 4, within=width - right - 16))
        if name and abs(end - y.at(lines[name][-1].y)) > 3:
            parts.append(line(x.at(lines[name][-1].x) + 5, y.at(lines[name][-1].y), right + 10, end, _of(n), width=0.7))
    said = f"{plural(len(points), 'point')} of {y_unit.title} over {x_unit.title}" + (
        f" in {len(lines)} series" if len(lines) > 1 else ""
    )
    return _Picture(parts, bottom + 48, said)


def _notes_of_curve(points: Sequence[_Point], *, left_out: int) -> str:
    """What signs mean that no name explains."""
    notes = ["dotted: ideal"] if any(point.ideal is not None for point in points) else []
    notes += ["upright lines: least to most"] if any(point.range for point in points) else []
    notes += [f"{left_out} more series are in the table"] if left_out else []
    return "; ".join(notes)


def _right_of(names: Iterable[str]) -> float:
    """The room that names at the right need."""
    return 20 + min(170.0, max(room(name) + 4 for name in names))


def _x_of_curve(xs: Sequence[float], left: float, right: float, *, log: bool) -> Axis:
    """From zero, or logarithmic; its ticks are the values themselves where they have room."""
    axis = (logarithmic(xs[0], xs[-1], left, right - 12, exact=True) if log
            else linear(min(0.0, xs[0]), xs[-1], left, right - 12, exact=True))  # fmt: skip
    places = [axis.at(x) for x in xs]
    apart = min((b - a for a, b in itertools.pairwise(places)), default=0.0)
    if len(xs) <= 12 and apart > 10 + max(room(f"{x:,g}", _TICK) for x in xs):
        ticks = tuple(xs) if log or axis.low else tuple(dict.fromkeys((0.0, *xs)))
        return Axis(axis.low, axis.high, axis.first, axis.last, ticks, is_log=log)
    return axis


def _ideal(points: Sequence[_Point], series: int, x: Axis, y: Axis) -> list[str]:
    ideal = [(x.at(p.x), y.at(p.ideal)) for p in points if p.ideal is not None]
    return [path(ideal, _of(series), width=1.5, dash="2 4")] if len(ideal) > 1 else []


def _line(block: Table, points: Sequence[_Point], series: int, x: Axis, y: Axis) -> list[str]:
    parts = [path([(x.at(p.x), y.at(p.y)) for p in points], _of(series))] if len(points) > 1 else []
    parts += [_whisker(y.at(p.range[0]), y.at(p.range[1]), x.at(p.x), _of(series), upright=True)
              for p in points if p.range and p.range[0] < p.range[1]]  # fmt: skip
    for p in points:
        ideal = [f"ideal: {as_text(p.ideal, 'number')}"] if p.ideal is not None else []
        parts.append(marker(x.at(p.x), y.at(p.y), series, _says(block, p.row, *ideal), row=p.row))
    return parts


# --- bars -----------------------------------------------------------------------------------------------------------

_BAR: Final = 18.0  # px
_STEP: Final = 26.0


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where rows of bars are: their labels at the left, their values along the axis."""

    left: float
    right: float
    top: float
    places: tuple[float, ...]

    @property
    def bottom(self) -> float:
        return (self.places[-1] if self.places else self.top) + _STEP


def _rows(labels: Sequence[str], width: float, top: float, *, right: float, groups: Sequence[Any] = ()) -> _Rows:
    """Room for labels and bars; a gap where another group begins."""
    left = min(0.36 * width, 16 + max(room(label) for label in labels))
    places, at = [], top
    for n in range(len(labels)):
        at += 8 if n and groups and groups[n] != groups[n - 1] else 0
        places.append(at)
        at += _STEP
    return _Rows(left, width - right, top, tuple(places))


def _labels(rows: _Rows, labels: Sequence[str]) -> list[str]:
    return [
        text(label, rows.left - 8, at + _BAR - 5, anchor="end", within=rows.left - 12)
        for label, at in zip(labels, rows.places, strict=True)
    ]


def _bars(block: Any, width: float, top: float) -> _Picture | None:
    """A bar a row from zero, its value beside it, its range as a whisker."""
    label_at, value_at = _at(block, block.label), _at(block, block.value)
    known = [(n, value) for n, row in enumerate(block.rows) if (value := _number(row[value_at])) is not None]
    left_out, known = known[_MOST:], known[:_MOST]
    if len(known) < 2:
        return None
    unit = block.columns[value_at]
    labels = [_label(block, block.rows[n], block.label) for n, _ in known]
    values = [as_text(value, unit.unit) for _, value in known]
    ranges = [_range_of(block, block.rows[n]) or (value, value) for n, value in known]
    rows = _rows(
        labels, width, top, right=24 + max(map(room, values)), groups=[block.rows[n][:label_at] for n, _ in known]
    )
    high, low = max(pair[1] for pair in ranges), min(0.0, *(pair[0] for pair in ranges))
    axis = linear(low, max(high, 0.0), rows.left, rows.right, unit=unit.unit)
    parts = [*_x_axis(axis, rows.top - 2, rows.bottom, unit.title), *_labels(rows, labels)]
    for (n, value), shown, (least, most), at in zip(known, values, ranges, rows.places, strict=True):
        x, zero = axis.at(value), axis.at(0.0)
        parts.append(rect(min(x, zero), at, abs(x - zero), _BAR, "s1", _says(block, n), row=n))
        if least < most:
            parts.append(_whisker(axis.at(least), axis.at(most), at + _BAR / 2, "axis", upright=False))
        parts.append(text(shown, max(x, zero, axis.at(most)) + 6, at + _BAR - 5, size=_SMALL))
    return _Picture(
        [*parts, *_left_out(left_out, rows)], rows.bottom + 48, f"{plural(len(known), 'bar')} of {unit.title}"
    )


_MOST: Final = 40  # bars


def _left_out(rows: Sequence[Any], where: _Rows) -> list[str]:
    more = f"{plural(len(rows), 'more row')}: see the table"
    return [text(more, 8, where.bottom + 36, size=_SMALL)] if rows else []


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a stacked bar: its length, its series (from 0), the row that it is of and what it says."""

    length: float
    series: int
    row: int
    tip: str


def _stacked_bars(block: Any, width: float, top: float) -> _Picture | None:
    columns = [_at(block, name) for name in block.values]
    labels, bars = [], []
    for n, row in list(enumerate(block.rows))[:_MOST]:
        whole = sum(_number(row[at]) or 0.0 for at in columns)
        pieces = []
        for series, at in enumerate(columns):
            length = _number(row[at]) or 0.0
            about = f"{block.columns[at].title}: {as_text(length, block.columns[at].unit)}"
            share = f", {100 * length / whole:.1f} %" if whole else ""
            pieces.append(
                _Piece(length, series, n, tip(_label(block, row, block.label), about + share, *_source(block, n)))
            )
        labels.append(_label(block, row, block.label))
        bars.append([piece for piece in pieces if piece.length > 0])
    names = [block.columns[at].title for at in columns]
    colours = _colours([block.columns[at].name for at in columns])
    unit = block.columns[columns[0]].unit if columns else "number"
    return _stacks(labels, bars, names, colours, unit=unit, size=(width, top))


def _timeline(block: Any, width: float, top: float) -> _Picture | None:
    """One bar: stretches that follow each other."""
    label_at, length_at = _at(block, block.label), _at(block, block.length)
    lengths = [_number(row[length_at]) or 0.0 for row in block.rows]
    bar = [_Piece(length, n, n, _says(block, n)) for n, length in enumerate(lengths) if length > 0]
    names = [as_text(row[label_at], "text") for row in block.rows]
    return _stacks([block.case or ""], [bar], names, _colours(names), unit="ns", size=(width, top))


# of what has the same one in each plot; all others have these in turn, dark blue last since text is written upon them
_OWN: Final = {"copies_ns": 6, "nccl_ns": 5, "idle_ns": 7}
_TURNS: Final = (4, 1, 2, 3, 0, 6, 5, 7)


def _colours(names: Sequence[str]) -> list[int]:
    """The series, and so the colour and hatch, of each part."""
    turns = iter(_TURNS * (1 + len(names) // len(_TURNS)))
    return [_OWN[name] if name in _OWN else next(turns) for name in names]


def _stacks(
    labels: Sequence[str], bars: Sequence[Sequence[_Piece]], names: Sequence[str], colours: Sequence[int], *,
    unit: Any, size: tuple[float, float],
) -> _Picture | None:  # fmt: skip
    """Stacked bars with a legend above them; a part that has room for it bears its share."""
    width, top = size
    if sum(map(len, bars)) < 2:
        return None

    def sign(n: int, x: float, y: float) -> str:
        return rect(x, y - 11, 14, 13, _of(colours[n])) + hatch(x, y - 11, 14, 13, colours[n])

    legend, top = _legend(names, 8, top + 12, width - 16, sign)
    rows = _rows(labels, width, top + 4, right=24)
    axis = linear(0.0, max(sum(piece.length for piece in bar) for bar in bars), rows.left, rows.right, unit=unit)
    parts = [*legend, *_x_axis(axis, rows.top - 2, rows.bottom, "time" if unit == "ns" else ""), *_labels(rows, labels)]
    for bar, at in zip(bars, rows.places, strict=True):
        done, whole = 0.0, sum(piece.length for piece in bar)
        for piece in bar:
            x, end = axis.at(done), axis.at(done + piece.length)
            parts.append(rect(x, at, end - x, _BAR, _of(colours[piece.series]), piece.tip, row=piece.row))
            share = f"{100 * piece.length / whole:.0f} %"
            if end - x > room(share, _SMALL) + 10:
                parts.append(_plate(share, (x + end) / 2, at, (x, end), colours[piece.series]))
            else:
                parts.append(hatch(x, at, end - x, _BAR, colours[piece.series]))
            done += piece.length
    return _Picture(parts, rows.bottom + 48, f"{plural(len(bars), 'bar')}, each of {', '.join(names)}")


def _plate(content: str, middle: float, at: float, ends: tuple[float, float], kind: int) -> str:
    """A text upon a bar, whose hatch leaves room for it."""
    half = room(content, _SMALL) / 2 + 3
    left, right = middle - half, middle + half
    return (
        hatch(ends[0], at, left - ends[0], _BAR, kind)
        + hatch(right, at, ends[1] - right, _BAR, kind)
        + text(content, middle, at + _BAR - 5, anchor="middle", size=_SMALL, of="upon")
    )


# --- a comparison ---------------------------------------------------------------------------------------------------


_DECIDED: Final = frozenset({"faster", "slower", "higher", "lower"})


def _intervals(block: Any, width: float, top: float) -> _Picture | None:
    """A ratio a row with its interval, beside 1: a circle where it is decided, else a bar in grey."""
    value_at, interval_at, verdict_at = (_at(block, name) for name in (block.value, block.interval, block.verdict))
    known = [(n, value, _range_of(block, row) or (value, value)) for n, row in enumerate(block.rows)
             if (value := _number(row[value_at])) is not None and value > 0]  # fmt: skip
    if len(known) < 2:
        return None
    labels = [_label(block, block.rows[n], block.label) for n, _, _ in known]
    values = [as_text(value, "times") for _, value, _ in known]
    rows = _rows(labels, width, top + 4, right=30 + max(map(room, values)))
    low, high = min(1.0, *(pair[0] for _, _, pair in known)), max(1.0, *(pair[1] for _, _, pair in known))
    wide = high / low > 4
    axis = (logarithmic if wide else linear)(low, high, rows.left, rows.right, unit="times")
    one = axis.at(1.0)
    parts = [*_x_axis(axis, rows.top - 2, rows.bottom, block.columns[value_at].title), *_labels(rows, labels),
             line(one, rows.top - 2, one, rows.bottom, "axis", width=1.5)]  # fmt: skip
    for (n, value, (least, most)), shown, at in zip(known, values, rows.places, strict=True):
        decided = block.rows[n][verdict_at] in _DECIDED
        series, middle = 0 if decided else 7, at + _BAR / 2
        parts.append(_whisker(axis.at(least), axis.at(most), middle, _of(series), upright=False))
        parts.append(marker(axis.at(value), middle, series, _says(block, n), row=n))
        parts.append(text(shown, rows.right + 12, at + _BAR - 5, size=_SMALL))
    said = f"{plural(len(known), 'ratio')} with {block.columns[interval_at].title}"
    return _Picture(parts, rows.bottom + 48, said)


def _waterfall(block: Any, width: float, top: float) -> _Picture | None:
    """The first whole, what came and went, the last whole; what takes more is hatched."""
    start_at, end_at = _at(block, block.start), _at(block, block.end)
    steps = [(_number(row[start_at]) or 0.0, _number(row[end_at]) or 0.0) for row in block.rows]
    if len(steps) < 3:
        return None
    labels = [_label(block, row, block.label) for row in block.rows]
    unit = block.columns[end_at].unit
    changes = [("+" if end > start else "\N{MINUS SIGN}") + as_text(abs(end - start), unit) for start, end in steps]
    values = [as_text(steps[0][1], unit), *changes[1:-1], as_text(steps[-1][1], unit)]
    rows = _rows(labels, width, top + 4, right=24 + max(map(room, values)))
    ends = [value for step in steps[1:-1] for value in step]
    moved = max(ends) - min(ends)
    low = max(0.0, min(ends) - moved) if moved < 0.3 * max(ends) else 0.0
    axis = linear(low, max(ends), rows.left, rows.right, unit=unit)
    parts = [*_x_axis(axis, rows.top - 2, rows.bottom, "time"), *_labels(rows, labels)]
    for n, ((start, end), shown, at) in enumerate(zip(steps, values, rows.places, strict=True)):
        whole = n in {0, len(steps) - 1}
        a, b = sorted((axis.at(max(start, axis.low)), axis.at(end)))
        of, kind = ("s8", 7) if whole else ("s6", 1) if end > start else ("s3", 4)
        parts += [rect(a, at, max(b - a, 1.0), _BAR, of, _says(block, n), row=n), hatch(a, at, b - a, _BAR, kind)]
        parts.append(text(shown, b + 6, at + _BAR - 5, size=_SMALL))
        if n + 1 < len(steps):
            parts.append(line(axis.at(end), at + _BAR, axis.at(end), rows.places[n + 1], "axis", width=0.7))
    return _Picture(parts, rows.bottom + 48, f"from {values[0]} to {values[-1]} in {plural(len(steps) - 2, 'step')}")


# --- two parameters -------------------------------------------------------------------------------------------------


def _heat_map(block: Any, width: float, top: float) -> _Picture | None:
    """A field a row, the darker the larger, with its value."""
    x_at, y_at, value_at = (_at(block, name) for name in (block.x, block.y, block.value))
    known = [(n, value) for n, row in enumerate(block.rows) if (value := _number(row[value_at])) is not None]
    xs, ys = (_in_order(block.rows[n][at] for n, _ in known) for at in (x_at, y_at))
    if len(xs) < 2 or len(ys) < 2:
        return None
    unit = block.columns[value_at]
    names = [as_text(y, block.columns[y_at].unit) for y in ys]
    left = 40 + min(0.3 * width, max(room(name) for name in names))
    across, down = min(120.0, (width - left - 16) / len(xs)), 34.0
    low, high = min(value for _, value in known), max(value for _, value in known)
    notes = f"{unit.title}: {as_text(low, unit.unit)} (light) to {as_text(high, unit.unit)} (dark)"
    top += 22
    parts = [text(notes, left, top - 8, size=_SMALL, within=width - left)]
    for n, value in known:
        x, y = left + xs.index(block.rows[n][x_at]) * across, top + (len(ys) - 1 - ys.index(block.rows[n][y_at])) * down
        share = (value - low) / (high - low) if high > low else 1.0
        parts.append(
            rect(x + 1, y + 1, across - 2, down - 2, "s1", _says(block, n), row=n, opacity=0.08 + 0.57 * share)
        )
        shown = as_text(value, unit.unit)
        if room(shown, _SMALL) < across - 6:
            parts.append(text(shown, x + across / 2, y + down / 2 + 4, anchor="middle", size=_SMALL))
    bottom = top + len(ys) * down
    parts += [
        text(name, left - 8, bottom - (n + 0.5) * down + 4, anchor="end", within=left - 40)
        for n, name in enumerate(names)
    ]
    parts += [text(as_text(x, block.columns[x_at].unit), left + (n + 0.5) * across, bottom + 16, anchor="middle",
                   size=_TICK, within=across - 4) for n, x in enumerate(xs)]  # fmt: skip
    parts.append(text(block.columns[x_at].title, left + len(xs) * across / 2, bottom + 36, anchor="middle"))
    parts.append(
        text(block.columns[y_at].title, 16, (top + bottom) / 2, anchor="middle", turned=90, within=bottom - top)
    )
    return _Picture(parts, bottom + 48, f"{plural(len(known), 'field')} of {unit.title}")


def _in_order(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers by size, others as they come."""
    once = list(dict.fromkeys(values))
    return sorted(once) if all(_number(value) is not None for value in once) else once


# --- rooflines ------------------------------------------------------------------------------------------------------

_NAMED: Final = 12  # points of a scatter plot


def _scatter(block: Any, width: float, top: float) -> _Picture | None:
    """Points under their roofs on logarithmic axes, each with a shape for its series, the largest named."""
    x_at, y_at = _at(block, block.x), _at(block, block.y)
    series = _series(block, block.series)
    points = [
        (n, across, up, number)
        for number, rows in enumerate(series.values())
        for n in rows
        if (across := _number(block.rows[n][x_at]) or 0.0) > 0 and (up := _number(block.rows[n][y_at]) or 0.0) > 0
    ]
    if len(points) < 2:
        return None
    names = list(series)
    legend, top = (
        _legend(names, 8, top + 12, width - 16, lambda n, x, y: marker(x + 8, y - 4, n)) if any(names) else ([], top)
    )
    roofs = _roofs(block.ceilings)
    flat: list[Any] = [roof for roof in roofs if roof.y is not None]
    slopes: list[Any] = [roof for roof in roofs if roof.slope is not None]
    ridges = [roof.y / slope.slope for roof in flat for slope in slopes]
    xs, ys = [x for _, x, _, _ in points], [y for _, _, y, _ in points]
    unit = block.columns[y_at]
    top, bottom = top + 6, top + 366
    y = logarithmic(min(ys) / 1.5, 1.3 * max([*ys, *(roof.y for roof in flat)]), bottom, top, unit=unit.unit)
    left, right = _left_of(y), width - 16
    x = logarithmic(min(xs) / 2, 2 * max([*xs, *ridges]), left, right)
    parts = [*legend, *_y_axis(y, left, right, unit.title), *_x_axis(x, top, bottom, block.columns[x_at].title)]
    parts += _ceilings(flat, slopes, x, y)
    radius = {n: _radius(block, block.rows[n]) for n, _, _, _ in points}
    parts += [marker(x.at(a), y.at(b), number, _says(block, n), row=n, size=radius[n]) for n, a, b, number in points]
    at = {n: (x.at(a), y.at(b)) for n, a, b, _ in points}
    parts += _names_of_points(block, at, radius, right)
    said = f"{plural(len(points), 'point')} under {', '.join(roof.name for roof in roofs) or 'no roof'}"
    return _Picture(parts, bottom + 48, said)


def _radius(block: Any, row: Sequence[Any]) -> float:
    """By the square root of a share, so that the area tells it."""
    share = _number(row[_at(block, block.size[0])]) if block.size else None
    return 4.5 if share is None else 3.0 + 4.0 * math.sqrt(max(0.0, min(share, 100.0)) / 100)


def _roofs(ceilings: Iterable[Ceiling]) -> list[Ceiling]:
    """The highest roof of each name: those of other clocks are hardly lower, and would be drawn upon each other."""
    highest: dict[tuple[str, bool], Ceiling] = {}
    for roof in ceilings:
        key = roof.name, roof.y is not None
        if key not in highest or (roof.y or roof.slope or 0.0) > (highest[key].y or highest[key].slope or 0.0):
            highest[key] = roof
    return list(highest.values())


def _ceilings(flat: Sequence[Any], slopes: Sequence[Any], x: Axis, y: Axis) -> list[str]:
    """Flat roofs from where the steepest slope reaches them, slopes up to the highest flat roof; each with its name."""
    parts = []
    steepest = max((roof.slope for roof in slopes), default=None)
    highest = max((roof.y for roof in flat), default=y.high)
    for roof in flat:
        begin = x.low if steepest is None else min(max(roof.y / steepest, x.low), x.high)
        parts.append(line(x.at(begin), y.at(roof.y), x.last, y.at(roof.y), "ceiling", width=1.5))
        label = f"{roof.name} {as_text(roof.y, 'FLOP/s')}"
        parts.append(text(label, x.last - 2, y.at(roof.y) - 5, anchor="end", size=_SMALL))
    for roof in slopes:
        begin, end = max(x.low, y.low / roof.slope), min(x.high, highest / roof.slope)
        if begin >= end:
            continue
        a, b = (x.at(begin), y.at(roof.slope * begin)), (x.at(end), y.at(roof.slope * end))
        parts.append(path([a, b], "ceiling", width=1.5))
        turn = math.atan2(a[1] - b[1], b[0] - a[0])
        at = (b[0] - 24 * math.cos(turn) - 5 * math.sin(turn), b[1] + 24 * math.sin(turn) - 5 * math.cos(turn))
        label = f"{roof.name} {as_text(roof.slope, 'byte/s')}"
        parts.append(text(label, *at, anchor="end", size=_SMALL, turned=math.degrees(turn)))
    return parts


def _names_of_points(
    block: Any, at: Mapping[int, tuple[float, float]], radius: Mapping[int, float], right: float
) -> list[str]:
    """The names of the largest points, each once, beside them where nothing else is."""
    label_at = _at(block, block.label)
    taken = [(x - radius[n], y - radius[n], x + radius[n], y + radius[n]) for n, (x, y) in at.items()]
    parts: list[str] = []
    named: set[str] = set()
    for n in sorted(at, key=lambda n: (-radius[n], at[n][1])):
        name = cut(as_text(block.rows[n][label_at], "name"), 170.0, _SMALL)
        x, y = at[n]
        wide = room(name, _SMALL)
        r = radius[n]
        beside = ((x + r + 5, y + 4), (x - r - 5 - wide, y + 4), (x - wide / 2, y - r - 6), (x - wide / 2, y + r + 14))
        for left, base in beside:
            box = (left - 1, base - 10, left + wide + 1, base + 3)
            if name not in named and box[2] < right and not any(_overlap(box, one) for one in taken):
                named.add(name)
                taken.append(box)
                parts.append(text(name, left, base, size=_SMALL))
        if len(named) >= _NAMED:
            break
    return parts


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


_PICTURES: Final[Mapping[str, Callable[[Any, float, float], _Picture | None]]] = {
    Curve.kind: _curve,
    Bars.kind: _bars,
    StackedBars.kind: _stacked_bars,
    Timeline.kind: _timeline,
    Intervals.kind: _intervals,
    Waterfall.kind: _waterfall,
    HeatMap.kind: _heat_map,
    Scatter.kind: _scatter,
}
