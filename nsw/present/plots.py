"""Plots of an answer's blocks as SVG, for a page, a file and a notebook: one way of drawing each kind of block.

A plot is complete without scripts: a mark that stands for a row has its index (`data-row`), and says what it is where
the pointer rests on it. What is drawn needs no colour to be told apart: series have shapes, bars have hatches.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsw.analysis.blocks import (
    NUMBERS,
    Bars,
    Curve,
    Finding,
    HeatMap,
    Intervals,
    Lanes,
    Note,
    Scatter,
    StackedBars,
    Table,
    Timeline,
    Waterfall,
)  # fmt: skip
from nsw.analysis.first_screen import HEADLINE
from nsw.errors import NswError, UsageError, did_you_mean
from nsw.present import svg
from nsw.present.plots_of_planes import plot_heat_map, plot_lanes, plot_scatter
from nsw.present.summary_view import as_text, column_cells
from nsw.quantities import in_one_unit
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.blocks import Block

_SERIES: Final = 8  # that are drawn: there are no more colours that everybody tells apart
_WIDTH: Final = 720  # px that a plot is made for; it scales
_DECADES: Final = 16.0  # times, from which an axis is logarithmic


def svg_of(block: Table) -> str | None:
    """A block as SVG, one element; None where it has no picture, or one of a single point."""
    draw = _PICTURES.get(block.kind)
    picture = draw(block, float(_WIDTH), 30.0 if block.title else 8.0) if draw and block.rows else None
    if picture is None:
        return None
    head = [svg.text(block.title, 8, 20, size=15, bold=True, within=_WIDTH - 16)] if block.title else []
    height = round(picture.bottom)
    return svg.node(
        "svg", svg.node("title", svg.escape_text(block.title or block.name)),
        svg.node("desc", svg.escape_text(picture.words)), *head, *picture.parts,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}", width=_WIDTH, height=height, role="img",
        font_family=svg.FONT, class_="plot",
    )  # fmt: skip


# --- curves ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Point:
    row: int
    x: float
    y: float
    range: tuple[float, float] | None
    ideal: float | None


def _curve_points(block: Curve, rows: Iterable[int]) -> list[_Point]:
    x_at, y_at = svg.column_of(block, block.x), svg.column_of(block, block.y)
    points = []
    for n in rows:
        x, y = svg.number_of(block.rows[n][x_at]), svg.number_of(block.rows[n][y_at])
        if x is not None and y is not None:
            points.append(
                _Point(n, x, y, svg.range_of(block, block.rows[n]), block.ideals[n] if block.ideals else None)
            )
    return sorted(points, key=lambda point: point.x)


def _plot_curve(block: Any, width: float, top: float) -> svg.Picture | None:
    """Lines with a marker a point, ranges as whiskers, the ideal dotted; names at the lines' ends."""
    every = {name: _curve_points(block, rows) for name, rows in svg.series_of(block, block.series).items()}
    lines = dict([(name, points) for name, points in every.items() if points][:_SERIES])
    points = [point for series_points in lines.values() for point in series_points]
    if len({point.x for point in points}) < 2:
        return None
    notes = _curve_notes(points, left_out=sum(map(bool, every.values())) - len(lines))
    top += 20 if notes else 4
    bottom = top + 300
    highs = [value for p in points for value in (p.y, p.ideal, p.range and p.range[1]) if value is not None]
    lows = [value for p in points for value in (p.y, p.ideal, p.range and p.range[0]) if value is not None]
    x_unit, y_unit = (block.columns[svg.column_of(block, name)] for name in (block.x, block.y))
    xs = sorted({point.x for point in points})
    log = xs[0] > 0 and xs[-1] / xs[0] >= _DECADES
    log_y = log and min(lows) > 0 and max(highs) / min(lows) >= _DECADES
    make_y = svg.logarithmic_axis if log_y else svg.linear_axis
    from_zero = block.from_zero and not log_y
    y = make_y(min(0.0, *lows) if from_zero else min(lows), max(highs), bottom, top, unit=y_unit.unit)
    left, right = svg.left_margin(y), width - 20 - min(170.0, max(svg.text_width(name) + 4 for name in lines))
    x = _curve_x_axis(xs, left, right, log=log)
    parts = [
        *svg.y_axis(y, left, right, y_unit.title),
        *svg.x_axis(x, top, bottom, x_unit.title),
        svg.line(left, bottom, right, bottom, "axis"),
    ]
    parts += [svg.text(notes, left, top - 8, size=svg.SMALL, within=width - left)] if notes else []
    for n, series_points in enumerate(lines.values()):
        ideal = [(x.at(p.x), y.at(p.ideal)) for p in series_points if p.ideal is not None]
        parts += [svg.path(ideal, svg.series_class(n), width=1.5, dash="2 4")] if len(ideal) > 1 else []
    for n, series_points in enumerate(lines.values()):
        parts += _draw_series(block, series_points, n, x, y)
    ends = svg.spread_labels([y.at(series_points[-1].y) for series_points in lines.values()], 15, top + 4, bottom)
    for n, (name, end) in enumerate(zip(lines, ends, strict=True)):
        if name:
            parts.append(svg.text(name, right + 12, end + 4, within=width - right - 16))
        if name and abs(end - y.at(lines[name][-1].y)) > 3:
            parts.append(
                svg.line(
                    x.at(lines[name][-1].x) + 5,
                    y.at(lines[name][-1].y),
                    right + 10,
                    end,
                    svg.series_class(n),
                    width=0.7,
                )
            )
    description = f"{plural(len(points), 'point')} of {y_unit.title} over {x_unit.title}" + (
        f" in {len(lines)} series" if len(lines) > 1 else ""
    )
    return svg.Picture(parts, bottom + 48, description)


def _curve_notes(points: Sequence[_Point], *, left_out: int) -> str:
    """What signs mean that no name explains."""
    notes = ["dotted: ideal"] if any(point.ideal is not None for point in points) else []
    notes += ["upright lines: least to most"] if any(point.range for point in points) else []
    notes += [f"{left_out} more series are in the table"] if left_out else []
    return "; ".join(notes)


def _curve_x_axis(xs: Sequence[float], left: float, right: float, *, log: bool) -> svg.Axis:
    """The x axis, from zero or logarithmic; its ticks are the values themselves where they have room."""
    axis = (svg.logarithmic_axis(xs[0], xs[-1], left + 12, right - 12, exact=True) if log
            else svg.linear_axis(min(0.0, xs[0]), xs[-1], left, right - 12, exact=True))  # fmt: skip
    positions = [axis.at(x) for x in xs]
    least_distance = min((b - a for a, b in itertools.pairwise(positions)), default=0.0)
    if len(xs) <= 12 and least_distance > 10 + max(svg.text_width(f"{x:,g}", svg.TICK) for x in xs):
        ticks = tuple(xs) if log or axis.low else tuple(dict.fromkeys((0.0, *xs)))
        return svg.Axis(axis.low, axis.high, axis.first, axis.last, ticks, is_log=log)
    return axis


def _draw_series(block: Table, points: Sequence[_Point], series: int, x: svg.Axis, y: svg.Axis) -> list[str]:
    parts = [svg.path([(x.at(p.x), y.at(p.y)) for p in points], svg.series_class(series))] if len(points) > 1 else []
    parts += [svg.whisker(y.at(p.range[0]), y.at(p.range[1]), x.at(p.x), svg.series_class(series), upright=True)
              for p in points if p.range and p.range[0] < p.range[1]]  # fmt: skip
    for p in points:
        ideal = [f"ideal: {as_text(p.ideal, 'number')}"] if p.ideal is not None else []
        parts.append(svg.marker(x.at(p.x), y.at(p.y), series, svg.row_tip(block, p.row, *ideal), row=p.row))
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
    positions: tuple[float, ...]

    @property
    def bottom(self) -> float:
        return (self.positions[-1] if self.positions else self.top) + _STEP


def _place_rows(labels: Sequence[str], width: float, top: float, *, right: float, groups: Sequence[Any] = ()) -> _Rows:
    """The positions of labels and bars, with a gap where another group begins."""
    left = min(0.36 * width, 16 + max(svg.text_width(label) for label in labels))
    positions, at = [], top
    for n in range(len(labels)):
        at += 8 if n and groups and groups[n] != groups[n - 1] else 0
        positions.append(at)
        at += _STEP
    return _Rows(left, width - right, top, tuple(positions))


def _draw_frame(rows: _Rows, labels: Sequence[str], axis: svg.Axis, title: str) -> list[str]:
    """The axis below the rows, and their labels."""
    texts = (
        svg.text(label, rows.left - 8, at + _BAR - 5, anchor="end", within=rows.left - 12)
        for label, at in zip(labels, rows.positions, strict=True)
    )
    return [*svg.x_axis(axis, rows.top - 2, rows.bottom, title), *texts]


def _plot_bars(block: Any, width: float, top: float) -> svg.Picture | None:
    """A bar a row from zero, its value beside it, its range as a whisker."""
    label_at, value_at = svg.column_of(block, block.label), svg.column_of(block, block.value)
    numbered_values = [
        (n, value) for n, row in enumerate(block.rows) if (value := svg.number_of(row[value_at])) is not None
    ]
    left_out, numbered_values = numbered_values[_MAX_BARS:], numbered_values[:_MAX_BARS]
    if len(numbered_values) < 2:
        return None
    unit = block.columns[value_at]
    labels = [svg.bar_label(block, block.rows[n], block.label) for n, _ in numbered_values]
    values = [as_text(value, unit.unit) for _, value in numbered_values]
    ranges = [svg.range_of(block, block.rows[n]) or (value, value) for n, value in numbered_values]
    rows = _place_rows(
        labels,
        width,
        top,
        right=24 + max(map(svg.text_width, values)),
        groups=[block.rows[n][:label_at] for n, _ in numbered_values],
    )
    high, low = max(pair[1] for pair in ranges), min(0.0, *(pair[0] for pair in ranges))
    axis = svg.linear_axis(low, max(high, 0.0), rows.left, rows.right, unit=unit.unit)
    parts = _draw_frame(rows, labels, axis, unit.title)
    for (n, value), value_text, (low_end, high_end), at in zip(
        numbered_values, values, ranges, rows.positions, strict=True
    ):
        x, zero = axis.at(value), axis.at(0.0)
        parts.append(svg.rect(min(x, zero), at, abs(x - zero), _BAR, "s1", svg.row_tip(block, n), row=n))
        if low_end < high_end:
            parts.append(svg.whisker(axis.at(low_end), axis.at(high_end), at + _BAR / 2, "axis", upright=False))
        parts.append(svg.text(value_text, max(x, zero, axis.at(high_end)) + 6, at + _BAR - 5, size=svg.SMALL))
    return svg.Picture(
        [*parts, *_omitted_rows_note(left_out, rows)],
        rows.bottom + 48,
        f"{plural(len(numbered_values), 'bar')} of {unit.title}",
    )


_MAX_BARS: Final = 40  # bars


def _omitted_rows_note(rows: Sequence[Any], rows_frame: _Rows) -> list[str]:
    omitted = f"{plural(len(rows), 'more row')}: see the table"
    return [svg.text(omitted, 8, rows_frame.bottom + 36, size=svg.SMALL)] if rows else []


class _Piece(NamedTuple):
    """A part of a stacked bar: its length, its series (from 0), the row that it is of and what it says."""

    length: float
    series: int
    row: int
    tip: str


def _plot_stacked_bars(block: Any, width: float, top: float) -> svg.Picture | None:
    columns = [svg.column_of(block, name) for name in block.values]
    labels: list[str] = []
    bars: list[list[_Piece]] = []
    for n, row in list(enumerate(block.rows))[:_MAX_BARS]:
        lengths = [svg.number_of(row[at]) or 0.0 for at in columns]
        total, label = sum(lengths), svg.bar_label(block, row, block.label)
        labels.append(label)
        bars.append([])
        for series, (at, length) in enumerate(zip(columns, lengths, strict=True)):
            if length > 0:
                text = f"{block.columns[at].title}: {as_text(length, block.columns[at].unit)}"
                tip = svg.tooltip(label, f"{text}, {100 * length / total:.1f} %", *svg.row_sources(block, n))
                bars[-1].append(_Piece(length, series, n, tip))
    names = [block.columns[at].title for at in columns]
    colours = _colour_indices([block.columns[at].name for at in columns])
    unit = block.columns[columns[0]].unit if columns else "number"
    return _draw_stacked_bars(
        labels, bars, names, colours, unit=unit, size=(width, top), left_out=block.rows[_MAX_BARS:]
    )


def _plot_timeline(block: Any, width: float, top: float) -> svg.Picture | None:
    """One bar: stretches that follow each other."""
    label_at, length_at = svg.column_of(block, block.label), svg.column_of(block, block.length)
    lengths = [svg.number_of(row[length_at]) or 0.0 for row in block.rows]
    bar = [_Piece(length, n, n, svg.row_tip(block, n)) for n, length in enumerate(lengths) if length > 0]
    names = [as_text(row[label_at], "text") for row in block.rows]
    return _draw_stacked_bars([block.case or ""], [bar], names, _colour_indices(names), unit="ns", size=(width, top))


# of what has the same one in each plot; all others have these in turn
_FIXED_COLOURS: Final = {"copies_ns": 6, "nccl_ns": 5, "idle_ns": 7}
_TURNS: Final = (4, 1, 2, 3, 0, 6, 5, 7)


def _colour_indices(names: Sequence[str]) -> list[int]:
    """The index of the colour and hatch of each part."""
    turns = iter(_TURNS * (1 + len(names) // len(_TURNS)))
    return [_FIXED_COLOURS[name] if name in _FIXED_COLOURS else next(turns) for name in names]


def _draw_stacked_bars(
    labels: Sequence[str], bars: Sequence[Sequence[_Piece]], names: Sequence[str], colours: Sequence[int], *,
    unit: Any, size: tuple[float, float], left_out: Sequence[Any] = (),
) -> svg.Picture | None:  # fmt: skip
    """Stacked bars with a legend above them; a part that has room for it bears its share."""
    width, top = size
    if sum(map(len, bars)) < 2:
        return None

    def legend_mark(n: int, x: float, y: float) -> str:
        return svg.rect(x, y - 11, 14, 13, svg.series_class(colours[n])) + svg.hatch(x, y - 11, 14, 13, colours[n])

    legend, top = svg.legend_of(names, top + 12, width - 16, legend_mark)
    rows = _place_rows(labels, width, top + 4, right=24)
    axis = svg.linear_axis(
        0.0, max(sum(piece.length for piece in bar) for bar in bars), rows.left, rows.right, unit=unit
    )
    parts = [*legend, *_draw_frame(rows, labels, axis, "time" if unit == "ns" else "")]
    for bar, at in zip(bars, rows.positions, strict=True):
        done, total = 0.0, sum(piece.length for piece in bar)
        for piece in bar:
            x, end = axis.at(done), axis.at(done + piece.length)
            parts.append(
                svg.rect(x, at, end - x, _BAR, svg.series_class(colours[piece.series]), piece.tip, row=piece.row)
            )
            share = f"{100 * piece.length / total:.0f} %"
            if end - x > svg.text_width(share, svg.SMALL) + 10:
                parts.append(_draw_text_on_bar(share, at, (x, end), colours[piece.series]))
            else:
                parts.append(svg.hatch(x, at, end - x, _BAR, colours[piece.series]))
            done += piece.length
    parts += _omitted_rows_note(left_out, rows)
    return svg.Picture(parts, rows.bottom + 48, f"{plural(len(bars), 'bar')}, each of {', '.join(names)}")


def _draw_text_on_bar(content: str, at: float, ends: tuple[float, float], kind: int) -> str:
    """A text upon a bar, whose hatch leaves room for it."""
    middle = sum(ends) / 2
    half = svg.text_width(content, svg.SMALL) / 2 + 3
    left, right = middle - half, middle + half
    return (
        svg.hatch(ends[0], at, left - ends[0], _BAR, kind)
        + svg.hatch(right, at, ends[1] - right, _BAR, kind)
        + svg.text(content, middle, at + _BAR - 5, anchor="middle", size=svg.SMALL, css_class="upon")
    )


# --- a comparison ---------------------------------------------------------------------------------------------------


_DECIDED: Final = frozenset({"faster", "slower", "higher", "lower"})


def _plot_intervals(block: Any, width: float, top: float) -> svg.Picture | None:
    """A ratio a row with its interval, beside 1: a circle where it is decided, else a bar in grey."""
    value_at, interval_at, verdict_at = (
        svg.column_of(block, name) for name in (block.value, block.interval, block.verdict)
    )
    numbered_values = [(n, value, svg.range_of(block, row) or (value, value)) for n, row in enumerate(block.rows)
             if (value := svg.number_of(row[value_at])) is not None and value > 0]  # fmt: skip
    if len(numbered_values) < 2:
        return None
    labels = [svg.bar_label(block, block.rows[n], block.label) for n, _, _ in numbered_values]
    values = [as_text(value, "times") for _, value, _ in numbered_values]
    rows = _place_rows(labels, width, top + 4, right=30 + max(map(svg.text_width, values)))
    ends = [end for _, _, pair in numbered_values for end in pair]
    low, high = min(1.0, *ends), max(1.0, *ends)
    wide = high / low > 4
    axis = (svg.logarithmic_axis if wide else svg.linear_axis)(low, high, rows.left, rows.right, unit="times")
    one_x = axis.at(1.0)
    parts = [*_draw_frame(rows, labels, axis, block.columns[value_at].title),
             svg.line(one_x, rows.top - 2, one_x, rows.bottom, "axis", width=1.5)]  # fmt: skip
    for (n, value, (low_end, high_end)), value_text, at in zip(numbered_values, values, rows.positions, strict=True):
        decided = block.rows[n][verdict_at] in _DECIDED
        series, middle = 0 if decided else 7, at + _BAR / 2
        parts.append(svg.whisker(axis.at(low_end), axis.at(high_end), middle, svg.series_class(series), upright=False))
        parts.append(svg.marker(axis.at(value), middle, series, svg.row_tip(block, n), row=n))
        parts.append(svg.text(value_text, rows.right + 12, at + _BAR - 5, size=svg.SMALL))
    description = f"{plural(len(numbered_values), 'ratio')} with {block.columns[interval_at].title}"
    return svg.Picture(parts, rows.bottom + 48, description)


def _plot_waterfall(block: Any, width: float, top: float) -> svg.Picture | None:
    """The first total, the changes, and the last total; parts that grew are hatched."""
    start_at, end_at = svg.column_of(block, block.start), svg.column_of(block, block.end)
    steps = [(svg.number_of(row[start_at]) or 0.0, svg.number_of(row[end_at]) or 0.0) for row in block.rows]
    if len(steps) < 3:
        return None
    labels = [svg.bar_label(block, row, block.label) for row in block.rows]
    unit = block.columns[end_at].unit
    changes = [("+" if end > start else "\N{MINUS SIGN}") + as_text(abs(end - start), unit) for start, end in steps]
    values = [as_text(steps[0][1], unit), *changes[1:-1], as_text(steps[-1][1], unit)]
    rows = _place_rows(labels, width, top + 4, right=24 + max(map(svg.text_width, values)))
    ends = [value for step in steps[1:-1] for value in step]
    moved = max(ends) - min(ends)
    low = max(0.0, min(ends) - moved) if moved < 0.3 * max(ends) else 0.0
    axis = svg.linear_axis(low, max(ends), rows.left, rows.right, unit=unit)
    parts = _draw_frame(rows, labels, axis, "time")
    for n, ((start, end), value_text, at) in enumerate(zip(steps, values, rows.positions, strict=True)):
        is_total = n in {0, len(steps) - 1}
        a, b = sorted((axis.at(max(start, axis.low)), axis.at(end)))
        css_class, kind = ("s8", 7) if is_total else ("s6", 1) if end > start else ("s3", 4)
        parts += [
            svg.rect(a, at, max(b - a, 1.0), _BAR, css_class, svg.row_tip(block, n), row=n),
            svg.hatch(a, at, b - a, _BAR, kind),
        ]
        parts.append(svg.text(value_text, b + 6, at + _BAR - 5, size=svg.SMALL))
        if n + 1 < len(steps):
            parts.append(svg.line(axis.at(end), at + _BAR, axis.at(end), rows.positions[n + 1], "axis", width=0.7))
    return svg.Picture(parts, rows.bottom + 48, f"from {values[0]} to {values[-1]} in {plural(len(steps) - 2, 'step')}")


_PICTURES: Final[Mapping[str, Callable[[Any, float, float], svg.Picture | None]]] = {
    Curve.kind: _plot_curve,
    Bars.kind: _plot_bars,
    StackedBars.kind: _plot_stacked_bars,
    Timeline.kind: _plot_timeline,
    Intervals.kind: _plot_intervals,
    Waterfall.kind: _plot_waterfall,
    HeatMap.kind: plot_heat_map,
    Scatter.kind: plot_scatter,
    Lanes.kind: plot_lanes,
}


_PLOTS: Final = 4


def html_of(blocks: Iterable[Block]) -> str:
    """The headline, the first table, the findings and the first plots of what is of no single case.

    Args:
        blocks: The whole answer, or its first screen.
    """
    overall = [block for block in blocks if block.case is None]
    heads = [
        svg.node("p", svg.node("b", svg.escape_text(b.text)))
        for b in overall
        if isinstance(b, Note) and b.name == HEADLINE
    ]
    tables = [_html_table(block) for block in overall if isinstance(block, Table) and block.shown == "always"]
    findings = [svg.node("li", svg.escape_text(block.text)) for block in overall
                if isinstance(block, Finding) and block.shown == "always"]  # fmt: skip
    plots = islice(filter(None, (svg_of(block) for block in overall if isinstance(block, Table))), _PLOTS)
    return svg.node("div", *heads, *tables[:1], *([svg.node("ul", *findings)] if findings else []), *plots)


def _html_table(block: Table) -> str:
    columns = [
        in_one_unit(column.title, column_texts)
        for column, column_texts in zip(block.columns, column_cells(block), strict=True)
    ]
    sides = ["right" if column.unit in NUMBERS else "left" for column in block.columns]
    heads = [svg.node("th", svg.escape_text(head), align=side) for (head, _), side in zip(columns, sides, strict=True)]
    rows = zip(*(column_texts for _, column_texts in columns), strict=True)
    lines = [
        svg.node("tr", *(svg.node("td", svg.escape_text(c), align=side) for c, side in zip(row, sides, strict=True)))
        for row in rows
    ]  # fmt: skip
    return svg.node("table", svg.node("thead", svg.node("tr", *heads)), svg.node("tbody", *lines))


_ZOOM: Final = 2  # dots for each px, for a screen and a slide
_LETTER: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="15" font-family="{}">{}</text></svg>'
)


def plot_of(blocks: Iterable[Block], name: str | None, more: Sequence[str] = ()) -> str:
    """The plot of that name as SVG, or the first one.

    Args:
        blocks: The answer.
        name: The plot; None: the first one.
        more: Plots that the caller makes of other rows, for a hint.

    Raises:
        UsageError: There is none.
    """
    names: dict[str, None] = {}
    for block in blocks:
        if isinstance(block, Table) and (drawn := svg_of(block)) is not None:
            if name in {None, block.name}:
                return drawn
            names[block.name] = None
    if name is None:
        raise UsageError("there is no plot: nothing was measured that more than one point would show")
    all_names = [*names, *more]
    listed = f"plots: {', '.join(all_names) or 'none'}"
    raise UsageError(f"there is no plot {name}", hint=did_you_mean(name, all_names) or listed)


def png_of(plot: str) -> bytes:
    """The plot as PNG on white.

    Raises:
        NswError: The library that draws it is not installed, or this machine has no font.
    """
    try:
        resvg = import_module("resvg_py")
    except ImportError:
        raise NswError(
            "a plot as PNG needs the package resvg-py", hint="pip install 'nsw[png]', or write SVG: -o plot.svg"
        ) from None
    letter, blank = (resvg.svg_to_bytes(svg_string=_LETTER.format(svg.FONT, text)) for text in ("A", ""))
    if letter == blank:
        raise NswError("no font was found, so that a PNG would have no text", hint="write SVG: -o plot.svg")
    return bytes(resvg.svg_to_bytes(svg_string=plot, background="white", zoom=_ZOOM))
