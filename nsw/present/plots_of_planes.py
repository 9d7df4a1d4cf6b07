"""Plots whose both axes mean something: heat maps, rooflines, and the timeline of an iteration."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from nsw.present import svg
from nsw.present.summary_view import as_text
from nsw.present.untrusted_text import clean_line
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.blocks import Ceiling

# --- two parameters -------------------------------------------------------------------------------------------------


_FIELDS: Final = 40  # in a row or column: of more nobody reads the names


def plot_heat_map(block: Any, width: float, top: float) -> svg.Picture | None:
    """Draw a field a row, the darker the larger, with its value.

    Args:
        block: A HeatMap.
        width: px.
        top: px above what is drawn.
    """
    x_at, y_at, value_at = (svg.column_of(block, name) for name in (block.x, block.y, block.value))
    values_by_row = {
        n: value for n, row in enumerate(block.rows) if (value := svg.number_of(row[value_at])) is not None
    }
    xs, ys = (_sorted_distinct(row[at] for row in block.rows) for at in (x_at, y_at))
    if not values_by_row or not 2 <= len(xs) <= _FIELDS or not 2 <= len(ys) <= _FIELDS:
        return None
    unit = block.columns[value_at]
    names = [as_text(y, block.columns[y_at].unit) for y in ys]
    left = 40 + min(0.3 * width, max(svg.text_width(name) for name in names))
    across, down = min(150.0, (width - left - 16) / len(xs)), 34.0
    low, high = min(values_by_row.values()), max(values_by_row.values())
    notes = f"{unit.title}: from {as_text(low, unit.unit)} to {as_text(high, unit.unit)}"
    top += 22
    parts = [svg.node("g", svg.text(notes, left, top - 8, size=svg.SMALL, within=width - left), data_note="")]
    positions = places_of(block, block.value)
    for n, row in enumerate(block.rows):
        x, y = left + xs.index(row[x_at]) * across, top + (len(ys) - 1 - ys.index(row[y_at])) * down
        shade = (
            0.0
            if n not in values_by_row
            else 0.65
            if high == low
            else 0.08 + 0.57 * (values_by_row[n] - low) / (high - low)
        )
        tip_text = svg.row_tip(block, n, positions=positions)
        parts.append(svg.rect(x + 1, y + 1, across - 2, down - 2, "s1", tip_text, row=n, opacity=shade))
        value_text = as_text(row[value_at], unit.unit)
        fits = svg.text_width(value_text, svg.SMALL) < across - 6
        if block.others or fits:
            written = svg.text(
                value_text if fits else "", x + across / 2, y + down / 2 + 4, anchor="middle", size=svg.SMALL
            )
            parts.append(svg.node("g", written, data_text=n))
    bottom = top + len(ys) * down
    parts += [
        svg.text(name, left - 8, bottom - (n + 0.5) * down + 4, anchor="end", within=left - 40)
        for n, name in enumerate(names)
    ]
    parts += [svg.text(as_text(x, block.columns[x_at].unit), left + (n + 0.5) * across, bottom + 16, anchor="middle",
                   size=svg.TICK, within=across - 4) for n, x in enumerate(xs)]  # fmt: skip
    parts.append(svg.text(block.columns[x_at].title, left + len(xs) * across / 2, bottom + 36, anchor="middle"))
    parts.append(
        svg.text(block.columns[y_at].title, 16, (top + bottom) / 2, anchor="middle", turned=90, within=bottom - top)
    )
    return svg.Picture(parts, bottom + 48, f"{plural(len(values_by_row), 'field')} of {unit.title}")


def places_of(block: Any, value: str) -> list[int]:
    """The columns that are said of a field: a value with its range, and those that are no values."""
    at = svg.column_of(block, value)
    values = {svg.column_of(block, name) for name in (block.value, *block.others)}
    return [n for n, column in enumerate(block.columns)
            if (n == at if n in values else column.unit != "range" or n == at + 1)]  # fmt: skip


def _sorted_distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once: numbers by size, others as they come."""
    once = list(dict.fromkeys(values))
    return sorted(once) if all(svg.number_of(value) is not None for value in once) else once


# --- rooflines ------------------------------------------------------------------------------------------------------

_NAMED_POINTS: Final = 12  # points of a scatter plot


def plot_scatter(block: Any, width: float, top: float) -> svg.Picture | None:
    """Draw points under their roofs on logarithmic axes, each with a shape for its series, the largest named.

    Args:
        block: A Scatter.
        width: px.
        top: px above what is drawn.
    """
    x_at, y_at = svg.column_of(block, block.x), svg.column_of(block, block.y)
    series = svg.series_of(block, block.series)
    points = [
        (n, across, up, number)
        for number, rows in enumerate(series.values())
        for n in rows
        if (across := svg.number_of(block.rows[n][x_at]) or 0.0) > 0
        and (up := svg.number_of(block.rows[n][y_at]) or 0.0) > 0
    ]
    if len(points) < 2:
        return None
    names = list(series)
    legend, top = (
        svg.legend_of(names, top + 12, width - 16, lambda n, x, y: svg.marker(x + 8, y - 4, n))
        if any(names)
        else ([], top)
    )
    roofs = _highest_ceilings(block.ceilings)
    flat: list[Any] = [roof for roof in roofs if roof.y is not None]
    slopes: list[Any] = [roof for roof in roofs if roof.slope is not None]
    ridges = [roof.y / slope.slope for roof in flat for slope in slopes]
    xs, ys = [x for _, x, _, _ in points], [y for _, _, y, _ in points]
    unit = block.columns[y_at]
    top, bottom = top + 6, top + 366
    y = svg.logarithmic_axis(min(ys) / 1.5, 1.3 * max([*ys, *(roof.y for roof in flat)]), bottom, top, unit=unit.unit)
    left, right = svg.left_margin(y), width - 16
    x = svg.logarithmic_axis(min(xs) / 2, 2 * max([*xs, *ridges]), left, right)
    parts = [*legend, *svg.y_axis(y, left, right, unit.title), *svg.x_axis(x, top, bottom, block.columns[x_at].title)]
    parts += _draw_ceilings(flat, slopes, x, y)
    # the square root of its share, so that the area shows the share
    shares = {n: svg.number_of(block.rows[n][svg.column_of(block, block.size[0])]) if block.size else None
              for n, _, _, _ in points}  # fmt: skip
    radius = {
        n: 4.5 if share is None else 3.0 + 4.0 * math.sqrt(max(0.0, min(share, 100.0)) / 100)
        for n, share in shares.items()
    }
    parts += [
        svg.marker(x.at(a), y.at(b), number, svg.row_tip(block, n), row=n, size=radius[n]) for n, a, b, number in points
    ]
    at = {n: (x.at(a), y.at(b)) for n, a, b, _ in points}
    lines = [[(x.at(end), y.at(roof.slope * end)) for end in (x.low, x.high)] for roof in slopes]
    parts += _draw_point_names(block, at, radius, within=(left, right), lines=lines)
    description = f"{plural(len(points), 'point')} under {', '.join(roof.name for roof in roofs) or 'no roof'}"
    return svg.Picture(parts, bottom + 48, description)


def _highest_ceilings(ceilings: Iterable[Ceiling]) -> list[Ceiling]:
    """The highest roof of each name: those of other clocks are hardly lower, and would be drawn upon each other."""
    highest: dict[tuple[str, bool], Ceiling] = {}
    for roof in ceilings:
        key = roof.name, roof.y is not None
        if key not in highest or (roof.y or roof.slope or 0.0) > (highest[key].y or highest[key].slope or 0.0):
            highest[key] = roof
    return list(highest.values())


def _draw_ceilings(flat: Sequence[Any], slopes: Sequence[Any], x: svg.Axis, y: svg.Axis) -> list[str]:
    """Flat roofs from where the steepest slope reaches them, slopes up to the highest flat roof; each with its name."""
    parts = []
    steepest = max((roof.slope for roof in slopes), default=None)
    highest = max((roof.y for roof in flat), default=y.high)
    for roof in flat:
        begin = x.low if steepest is None else min(max(roof.y / steepest, x.low), x.high)
        drawn = svg.line(x.at(begin), y.at(roof.y), x.last, y.at(roof.y), "ceiling", width=1.5)
        label = f"{roof.name} {as_text(roof.y, 'FLOP/s')}"
        name = svg.text(label, x.last - 2, y.at(roof.y) - 5, anchor="end", size=svg.SMALL)
        parts.append(svg.node("g", drawn, name, data_roof=clean_line(roof.name)))
    for roof in slopes:
        begin, end = max(x.low, y.low / roof.slope), min(x.high, highest / roof.slope)
        if begin >= end:
            continue
        a, b = (x.at(begin), y.at(roof.slope * begin)), (x.at(end), y.at(roof.slope * end))
        turn = math.atan2(a[1] - b[1], b[0] - a[0])
        at = (b[0] - 24 * math.cos(turn) - 5 * math.sin(turn), b[1] + 24 * math.sin(turn) - 5 * math.cos(turn))
        label = f"{roof.name} {as_text(roof.slope, 'byte/s')}"
        name = svg.text(label, *at, anchor="end", size=svg.SMALL, turned=math.degrees(turn))
        parts.append(svg.node("g", svg.path([a, b], "ceiling", width=1.5), name, data_roof=clean_line(roof.name)))
    return parts


def _draw_point_names(
    block: Any, at: Mapping[int, tuple[float, float]], radius: Mapping[int, float], *, within: tuple[float, float],
    lines: Sequence[Sequence[tuple[float, float]]],
) -> list[str]:  # fmt: skip
    """The names of the largest points, each once, beside them where nothing else is."""
    label_at = svg.column_of(block, block.label)
    occupied = [(x - radius[n], y - radius[n], x + radius[n], y + radius[n]) for n, (x, y) in at.items()]
    parts: list[str] = []
    boxes_by_name: dict[str, tuple[float, float, float, float]] = {}
    for n in sorted(at, key=lambda n: (-round(radius[n]), at[n][0])):
        name = svg.cut_to_width(as_text(block.rows[n][label_at], "name"), 170.0, svg.SMALL)
        if name in boxes_by_name or len(boxes_by_name) >= _NAMED_POINTS:
            continue
        x, y = at[n]
        wide = svg.text_width(name, svg.SMALL)
        for left, base in _label_positions(x, y, radius[n], wide):
            box = (left - 1, base - 10, left + wide + 1, base + 3)
            lead = (x - 1, y + radius[n], x + 1, max(base - 12, y + radius[n]))
            free = (
                within[0] < box[0]
                and box[2] < within[1]
                and not any(_boxes_overlap(box, occupied_box) for occupied_box in occupied)
            )
            seen = not any(_line_crosses_box(ends, box) for ends in lines) and not any(
                _boxes_overlap(lead, b) for b in boxes_by_name.values()
            )
            if free and seen:
                boxes_by_name[name] = box
                occupied += [box, lead]
                ends = left < x  # text is about as wide as it is taken for: it is set at the end that is near the point
                label_parts = [
                    svg.text(name, left + wide * ends, base, anchor="end" if ends else "start", size=svg.SMALL)
                ]
                if lead[3] > lead[1] + 2:
                    label_parts.append(svg.line(x, lead[1], x, base - 11, "axis", width=0.7))
                parts.append(svg.node("g", *label_parts, data_name=n))
                break
    return parts


def _label_positions(x: float, y: float, radius: float, wide: float) -> list[tuple[float, float]]:
    """Where the name of a point may begin: right and left of it, above it, then further and further below."""
    near = [(x + radius + 5, y + 4), (x - radius - 5 - wide, y + 4), (x - wide / 2, y - radius - 6)]
    return near + [(x + 5 - wide, y + radius + 15 * step) for step in (1, 2, 3, 4, 5)]


def _line_crosses_box(ends: Sequence[tuple[float, float]], box: tuple[float, float, float, float]) -> bool:
    """Whether a line that rises goes through a box."""
    (x0, y0), (x1, y1) = ends
    at_left, at_right = (y0 + (x - x0) / (x1 - x0) * (y1 - y0) for x in (box[0], box[2]))
    return at_right < box[3] and at_left > box[1]


def _boxes_overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# --- a timeline -----------------------------------------------------------------------------------------------------

_LANE: Final = 18.0  # px
_SAMPLES: Final = "samples"  # whose height tells their share
# series of what has the same colour in each plot; the largest of the others have these in turn, what is left one
_FIXED_COLOURS: Final = {"NCCL": 5, "copies": 6, "NVTX": 7, "CPU": 7, _SAMPLES: 0}
_TURNS: Final = (4, 1, 2, 3)
_OTHER_COLOUR: Final = 0
_NAMED_FROM: Final = 44.0  # px of a box


def plot_lanes(block: Any, width: float, top: float) -> svg.Picture | None:
    """Draw a lane a process and stream, a box a stretch of time, with its name where that has room.

    Args:
        block: Lanes.
        width: px.
        top: px above what is drawn.
    """
    if len(block.rows) < 2:
        return None
    start_at, length_at, name_at = (svg.column_of(block, part) for part in (block.start, block.length, block.label))
    rows = svg.series_of(block, block.series)
    colours, by_time = _class_colours(block)
    coloured = [name for name in by_time if name in colours]
    signs = [*(colours[name] for name in coloured), _OTHER_COLOUR]
    entries = [*coloured, *(["other"] if len(coloured) < len(by_time) else [])]
    legend, top = svg.legend_of(
        entries, top + 12, width - 16, lambda n, x, y: svg.rect(x, y - 11, 14, 13, svg.series_class(signs[n]))
    )
    keys = list(dict.fromkeys(_lane_key(block, row) for row in block.rows))
    tops, bottom = _lane_tops(keys, top)
    left = 24 + max(svg.text_width(key[0]) for key in keys) + max(svg.text_width(key[-1], svg.SMALL) for key in keys)
    end = max(row[start_at] + row[length_at] for row in block.rows)
    axis = svg.linear_axis(0.0, end, left, width - 16, unit="ns", exact=True)
    field = svg.node("rect", x=left, y=top - 2, width=axis.last - left, height=bottom - top + 2, fill="none",
                 data_end=end, data_lanes=" ".join(f"{tops[key]:g}" for key in keys))  # fmt: skip
    parts = [field, *legend, *svg.x_axis(axis, top - 2, bottom, "time"), *_draw_lane_names(keys, tops, left)]
    for name, members in rows.items():
        css_class = svg.series_class(colours.get(name, _OTHER_COLOUR))
        boxes, names = [], []
        for n in members:
            row = block.rows[n]
            start, length, what = row[start_at], row[length_at], row[name_at]
            x = axis.at(start)
            wide = max(axis.at(start + length) - x, 0.4)
            level = row[svg.column_of(block, block.level[0])] if block.level else None
            height = (_LANE - 3) * (1.0 if level is None else level / 100)
            y = tops[_lane_key(block, row)] + _LANE - 3 - height
            group = ", ".join(str(row[svg.column_of(block, part)]) for part in block.series)
            tip = svg.tooltip(what, f"{as_text(length, 'ns')} from {as_text(start, 'ns')} on, {group}")
            boxes.append(svg.node("rect", tip, x=x, y=y, width=wide, height=height, data_row=n))
            if wide > _NAMED_FROM and name != _SAMPLES:
                label = svg.escape_text(svg.cut_to_width(what, wide - 6, 10))
                names.append(svg.node("text", label, x=x + 3, y=y + 11, font_size=10, fill=svg.COLOURS["upon"],
                                      class_="upon", pointer_events="none"))  # fmt: skip
        parts += [svg.node("g", *boxes, fill=svg.COLOURS[css_class], class_=css_class), *names]
    description = f"{len(block.rows):,} boxes in {plural(len(keys), 'lane')} over {as_text(end, 'ns')}"
    return svg.Picture(parts, bottom + 48, description)


def boxes_of(block: Any) -> dict[str, Any]:
    """The boxes of a timeline before short ones were merged, for a program that zooms: lane after lane in columns.

    `lanes` and `classes` have names with the number of boxes and the class of colour, `names` what a box is with the
    place of its class. Times are whole ns: `from` since the start of the box before it, `length`; `name` is a place.
    `level` is in percent of the lane's height; null: all of it.
    """
    start_at, length_at, name_at = (svg.column_of(block, part) for part in (block.start, block.length, block.label))
    unmerged = replace(block, rows=block.unmerged)
    colours, classes = _class_colours(block)
    class_of_row = {n: name for name, members in svg.series_of(unmerged, unmerged.series).items() for n in members}
    name_and_class = [(clean_line(row[name_at]), classes.index(class_of_row[n])) for n, row in enumerate(unmerged.rows)]
    indices = {name: at for at, name in enumerate(dict.fromkeys(name_and_class))}
    starts = [round(row[start_at]) for row in unmerged.rows]
    lengths = Counter(_lane_key(unmerged, row) for row in unmerged.rows)
    return {
        "lanes": [[*map(clean_line, key), count] for key, count in lengths.items()],
        "classes": [[clean_line(name), svg.series_class(colours.get(name, _OTHER_COLOUR))] for name in classes],
        "names": list(indices),
        "from": [start - before for before, start in pairwise([0, *starts])],
        "length": [round(row[length_at]) for row in unmerged.rows],
        "name": [indices[name] for name in name_and_class],
    } | ({"level": [row[svg.column_of(block, block.level[0])] for row in unmerged.rows]} if block.level else {})


def _class_colours(block: Any) -> tuple[dict[str, int], list[str]]:
    """The colour of each class that has its own, and all classes, those that take most first."""
    unmerged = replace(block, rows=block.unmerged) if block.unmerged else block
    length_at, rows = svg.column_of(unmerged, unmerged.length), svg.series_of(unmerged, unmerged.series)
    by_time = sorted(rows, key=lambda name: -sum(unmerged.rows[n][length_at] for n in rows[name]))
    return _FIXED_COLOURS | dict(
        zip((name for name in by_time if name not in _FIXED_COLOURS), _TURNS, strict=False)
    ), by_time


def _lane_key(block: Any, row: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(row[svg.column_of(block, name)]) for name in block.lane)


def _lane_tops(keys: Sequence[tuple[str, ...]], top: float) -> tuple[dict[tuple[str, ...], float], float]:
    """Where each lane is, with a gap between processes, and where the last one ends."""
    tops: dict[tuple[str, ...], float] = {}
    for n, key in enumerate(keys):
        top += 8 if n and key[0] != keys[n - 1][0] else 0
        tops[key] = top
        top += _LANE
    return tops, top


def _draw_lane_names(keys: Sequence[tuple[str, ...]], tops: Mapping[tuple[str, ...], float], left: float) -> list[str]:
    lanes_of = [svg.text(key[-1], left - 8, tops[key] + 12, anchor="end", size=svg.SMALL) for key in keys]
    firsts = {key[0]: tops[key] for key in reversed(keys)}
    return [*lanes_of, *(svg.text(name, 8, at + 12) for name, at in firsts.items())]
