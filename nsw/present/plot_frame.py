"""What all plots share: the cells of a block, the tip of a mark, axes with their grid, legends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.present.summary_view import as_text
from nsw.present.svg import Axis, cut, line, path, room, text, tip

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from nsw.analysis.blocks import Table

__all__ = [
    "SMALL", "TICK", "Picture", "class_of", "column_of", "label_of", "left_of", "legend_of", "number_of", "range_of",
    "row_tip", "series_of", "source_of", "whisker", "x_axis", "y_axis",
]  # fmt: skip

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
    """A cell that an axis can hold."""
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
    """A row in words, a cell a line (all, or those at some places), and where it is from."""
    cells = [
        cell
        for n, cell in enumerate(zip(block.columns, block.rows[row], strict=True))
        if not positions or n in positions
    ]
    cell_texts = [f"{column.title}: {as_text(cell, column.unit)}" for column, cell in cells if cell not in {None, ""}]
    return tip(*first_lines, *cell_texts, *source_of(block, row))


def source_of(block: Table, row: int) -> list[str]:
    """The table that proves a row, and whose rows of it."""
    return [
        f"source: table {e.table}" + (f" of {e.cases[row]}" if len(e.cases) == len(block.rows) else
                                      f" of {e.cases[0]}" if len(e.cases) == 1 else "")
        for e in block.evidence
    ]  # fmt: skip


def series_of(block: Table, names: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each series, by its name."""
    positions = [column_of(block, name) for name in names]
    rows_by_series: dict[str, list[int]] = {}
    for n, row in enumerate(block.rows):
        name = ", ".join(filter(None, (_cell_label(block, row, position, with_title=True) for position in positions)))
        rows_by_series.setdefault(name, []).append(n)
    return rows_by_series


def _cell_label(block: Table, row: Sequence[Any], position: int, *, with_title: bool = False) -> str:
    column = block.columns[position]
    cell = as_text(row[position], column.unit)
    return f"{column.title} {cell}" if with_title and column.name.startswith("param.") else cell


def label_of(block: Table, row: Sequence[Any], name: str) -> str:
    """What a bar is called: its label, and the columns before it, by which rows are grouped."""
    positions = range(column_of(block, name) + 1)
    return ", ".join(
        _cell_label(block, row, n, with_title=len(positions) > 1 and n < len(positions) - 1) for n in positions
    )


# --- around the marks -------------------------------------------------------------------------------------------------


def x_axis(axis: Axis, top: float, bottom: float, title: str) -> list[str]:
    """Ticks below, lines of the grid up to the top, and the title."""
    parts = []
    free = -math.inf
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        x, half = axis.at(tick), room(label, TICK) / 2
        parts.append(line(x, top, x, bottom, "grid"))
        if x - half > free:
            parts.append(text(label, x, bottom + 16, anchor="middle", size=TICK))
            free = x + half + 6
    middle = (axis.first + axis.last) / 2
    return [*parts, line(axis.first, bottom, axis.last, bottom, "axis"),
            text(axis.title(title), middle, bottom + 36, anchor="middle")]  # fmt: skip


def y_axis(axis: Axis, left: float, right: float, title: str) -> list[str]:
    """Ticks at the left, lines of the grid to the right, and the title, turned."""
    parts = []
    for tick, label in zip(axis.ticks, axis.labels, strict=True):
        y = axis.at(tick)
        parts += [line(left, y, right, y, "grid"), text(label, left - 7, y + 4, anchor="end", size=TICK)]
    middle, height = (axis.first + axis.last) / 2, abs(axis.last - axis.first)
    return [*parts, line(left, axis.first, left, axis.last, "axis"),
            text(axis.title(title), 16, middle, anchor="middle", turned=90, within=height)]  # fmt: skip


def left_of(axis: Axis) -> float:
    """The room that ticks and title at the left need."""
    return 34 + max(room(label, TICK) for label in axis.labels)


def whisker(low: float, high: float, across: float, css_class: str, *, upright: bool) -> str:
    """A range with its ends (px)."""
    ends = [((across, low), (across, high))] + [((across - 4, at), (across + 4, at)) for at in (low, high)]
    return "".join(path(pair if upright else [(y, x) for x, y in pair], css_class, width=1.4) for pair in ends)


def legend_of(
    entries: Sequence[str], x: float, y: float, width: float, sign: Callable[[int, float, float], str]
) -> tuple[list[str], float]:
    """Names with their signs in lines of text, and where they end (px)."""
    parts, at = [], x
    for n, entry in enumerate(entries):
        label = cut(entry, min(260.0, width - 24))
        if at > x and at + 24 + room(label) > x + width:
            at, y = x, y + 18
        parts += [sign(n, at, y), text(entry, at + 20, y, within=min(260.0, width - 24))]
        at += 38 + room(label)
    return parts, y + 10


def class_of(series: int) -> str:
    """The class, and so the colour, of a series (from 0)."""
    return f"s{series % 8 + 1}"
