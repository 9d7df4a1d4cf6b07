"""A table of `nsys stats` as it is in a text, and the lines that begin or end one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART = 50_000  # rows of one table given at a time
_RUN = re.compile("-+")
_BLANKS = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_LEAST_DASHES = 3  # of a column
_FIRST_CELL = re.compile(
    r'"?(?:Time ?\(%\)|Total \(|Start \(|API Start|NVTX Range|PID[,;\t]TID|Range[,;\t]Style|Total HtoD'
    r'|Total Message Volume|Name"?[,;\t]"?Projected Start \(|Virtual Address"?[,;\t]|CPU Page Faults"?[,;\t]"?CPU I'
    r"|Utilization \(%\))"
)
# to look for these first is ten times faster
_IN_FIRST_CELLS = ("Time", "Total", "Start", "NVTX", "PID", "Range", "Virtual Address", "CPU Page", "Utilization")
# what nsys prints between tables: no row follows it
_BETWEEN = re.compile(
    r"\W*(?:Processing \[|Running \[|SKIPPED: |Generating |\[\d+/\d+\] |\*\* |[A-Z][\w ]{0,60}(?:Statistics|Summary)\b)"
)


@dataclass(slots=True)
class Grid:
    """A table, or the next rows of a long one (`part` above 0)."""

    line: int
    headers: list[str]
    titles: tuple[str, ...]
    style: Literal["column", "table", "csv", "json", "html"]
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    part: int = 0
    stray: list[int] = field(default_factory=list)
    report: str | None = None  # what nsys calls it, as far as that is known
    is_damaged: bool = False  # a title is missing or there twice: which column is which is not known, and rows is empty


@dataclass(frozen=True, slots=True)
class Ruler:
    """The dashes that end a line, which say where columns are: their text, where it starts, and what is before it."""

    before: str
    start: int
    dashes: str


def dashes_in(text: str) -> Ruler | None:
    """`----  ---  ----`: two columns at least, to the end of the line."""
    first = len(text.rstrip(_BLANKS + "-"))
    runs = list(_RUN.finditer(text, first)) if "---" in text[first:] else []
    count = next((n for n, run in enumerate(reversed(runs)) if len(run[0]) < _LEAST_DASHES), len(runs))
    if count < 2:
        return None
    start = runs[-count].start()
    return Ruler(text[:start], start, text[start:].rstrip())


def border_in(text: str) -> Ruler | None:
    """`+----+---+`: two columns at least, to the end of the line."""
    body = text.rstrip()
    runs = body[len(body.rstrip("+-")) :].split("+")
    if not (body.endswith("+") and "---" in body):
        return None
    columns = runs[1:-1]  # what is before the first + and behind the last is none
    count = next((n for n, run in enumerate(reversed(columns)) if len(run) < _LEAST_DASHES), len(columns))
    if count < 2:
        return None
    start = len(body) - 1 - sum(len(run) + 1 for run in columns[-count:])
    return Ruler(text[:start], start, body[start:])


def first_cell(text: str) -> re.Match[str] | None:
    """Where the titles of a table begin in the line, if they do."""
    return _FIRST_CELL.search(text) if any(word in text for word in _IN_FIRST_CELLS) else None


def is_between(text: str) -> bool:
    """Whether the line ends a table, or begins one."""
    return _BETWEEN.match(text) is not None or bool(dashes_in(text) or border_in(text)) or first_cell(text) is not None


def filled(grid: Grid, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Grid]:
    """The table with its rows, a part at a time; it has none where its titles are damaged."""
    for row in rows:
        if grid.is_damaged:
            continue
        grid.rows.append(row)
        if len(grid.rows) == _PART:
            yield grid
            grid = replace(grid, rows=[], part=grid.part + 1)
    if grid.rows or grid.part == 0 or grid.stray:
        yield grid
