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
    Curve,
    Table,
)  # fmt: skip
from nsw.present.summary_view import as_text
from nsw.present.svg import (
    FONT,
    Axis,
    cut,
    line,
    linear,
    logarithmic,
    marker,
    node,
    path,
    room,
    spread_out,
    text,
    tip,
    words,
)  # fmt: skip
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


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
            text(axis.title(title), 16, middle, anchor="middle", turned=True, within=whole)]  # fmt: skip


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


_PICTURES: Final[Mapping[str, Callable[[Any, float, float], _Picture | None]]] = {
    Curve.kind: _curve,
}
