"""A table of `nsys stats` as it stands in a text, and the lines that begin or end one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART = 50_000  # rows of one table given at a time
DASHES = re.compile(r"^(.*?)(?<!-)(-{3,}(?:\s+-{3,})+)\s*$")
BORDER = re.compile(r"^(.*?)(\+-{3,}(?:\+-{3,})+\+)\s*$")
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


def first_cell(text: str) -> re.Match[str] | None:
    """Where the titles of a table begin in the line, if they do."""
    return _FIRST_CELL.search(text) if any(word in text for word in _IN_FIRST_CELLS) else None


def is_between(text: str) -> bool:
    """Whether the line ends a table, or begins one."""
    return any(words.match(text) for words in (_BETWEEN, DASHES, BORDER)) or first_cell(text) is not None


def filled(grid: Grid, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Grid]:
    """The table with its rows, a part at a time; it has none where its titles are damaged."""
    for row in rows:
        if grid.is_damaged:
            continue
        grid.rows.append(row)
        if len(grid.rows) == _PART:
            yield grid
            grid = Grid(
                grid.line,
                grid.headers,
                grid.titles,
                grid.style,
                part=grid.part + 1,
                stray=grid.stray,
                report=grid.report,
            )
    if grid.rows or grid.part == 0 or grid.stray:
        yield grid
