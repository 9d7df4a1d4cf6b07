"""The tables of `nsys stats` in a text, whatever is around them.

nsys prints `column` (columns under dashes), `csv` and `tsv`; other forms are no tables here. `reports.py` says which
headers are nsys's own.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from nsw.readers.nsys.stats.reports import are_damaged, are_rows, is_header, is_known, is_row
from nsw.readers.text.lines import Line, Lines, Span, delimited_cells, ruled_cells, ruled_spans

__all__ = ["Grid", "find_grids"]


_TITLES = 5  # lines before a table that may say what it is
_PART = 50_000  # rows of one table given at a time
_RUN = re.compile("(-+)")
_BORDER = re.compile(r"(?:\+-{3,}){2,}\+\s*\Z")
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
_LONGEST_RECORD = 100  # lines of one CSV record: names may hold line ends
_MANY = 500  # rows looked at together
_FIRST_FEW = (1, 8, 64)  # of them looked at before, since titles that no rows follow may come by the thousand
_STRAY = 2  # lines of other programs that may be between two rows
_ROWISH = re.compile(r'(?:"?-?\d[^,;\t]{0,30}|"")?[,;\t]')
_SHORT_TITLES = re.compile(r'"?CPU Page Faults"?[,;\t]"?CPU I')  # the only table of two columns
_FIGURES = re.compile(r"\d\s+\d[\d.,]*\s+\d")


@dataclass(slots=True)
class Grid:
    """A table, or the next rows of a long one (`part` above 0)."""

    line: int
    headers: list[str]
    titles: tuple[str, ...]
    style: Literal["column", "csv"]
    rows: list[tuple[int, list[str]]] = field(default_factory=list)
    part: int = 0
    stray: list[int] = field(default_factory=list)
    report: str | None = None  # what nsys calls it, as far as that is known
    is_damaged: bool = False  # a title is missing or there twice: which column is which is not known, and rows is empty


def find_grids(source: Iterable[Line]) -> Iterator[Grid | Line]:
    """The tables of a text, and between them every other line that is not blank, in their order."""
    lines = Lines(source)
    before: deque[str] = deque(maxlen=_TITLES)
    pending: Line | None = None  # it may prove to be a header
    while (line := lines.take()) is not None:
        parts = _grids_at(line, pending, lines, before)
        first = next(parts, None)
        if first is not None:
            yield first
            yield from parts
            before.clear()
            pending = None
            continue
        if pending is not None and pending[1].strip():
            before.append(pending[1].strip())
            yield pending
        pending = line
    if pending is not None and pending[1].strip():
        yield pending


def _grids_at(line: Line, pending: Line | None, lines: Lines, before: deque[str]) -> Iterator[Grid]:
    """The parts of the table that begins at this line, if one does."""
    _, text = line
    titles = tuple(before)
    nearer = (*titles, pending[1].strip()) if pending else titles  # with the line right before this one
    if "--" in text and pending is not None and (dashes := _dashes_in(text)):
        yield from _dashed_table(dashes, pending, lines, titles)
    elif _first_cell(text) is not None:
        yield from _delimited_table(line, lines, nearer)


@dataclass(frozen=True, slots=True)
class _Ruler:
    """The dashes that end a line, which say where columns are: their text, where it starts, and what is before it."""

    before: str
    start: int
    dashes: str


def _dashes_in(text: str) -> _Ruler | None:
    """`----  ---  ----`: two columns at least, to the end of the line."""
    body = text.rstrip()
    first = len(body.rstrip(_BLANKS + "-"))
    runs = list(_RUN.finditer(body, first)) if "---" in body[first:] else []
    count = next((n for n, run in enumerate(reversed(runs)) if len(run[1]) < _LEAST_DASHES), len(runs))
    if count < 2:
        return None
    start = runs[-count].start()
    return _Ruler(text[:start], start, body[start:])


def _first_cell(text: str) -> re.Match[str] | None:
    """Where the titles of a table begin in the line, if they do."""
    return _FIRST_CELL.search(text) if any(word in text for word in _IN_FIRST_CELLS) else None


def _is_table_border(text: str) -> bool:
    """Whether the line ends a table, or begins one."""
    return (
        _BETWEEN.match(text) is not None
        or _dashes_in(text) is not None
        or _BORDER.search(text) is not None
        or _first_cell(text) is not None
    )


def _table_parts_with_rows(grid: Grid, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Grid]:
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


def _delimited_table(line: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of the table whose titles this line is; nothing where it is none."""
    number, text = line
    first = _first_cell(text)
    delimiter = _find_delimiter(text, first.start()) if first else None
    if first is None or delimiter is None:
        return
    start = _titles_start(text, first.start(), delimiter)
    headers = delimited_cells(text[start:], delimiter)
    if is_header(headers):
        grid = Grid(number, headers, titles, "csv", is_damaged=are_damaged(headers))
        yield from _table_parts_with_rows(grid, _csv_rows(lines, grid, start, delimiter))


def _titles_start(text: str, known_start: int, delimiter: str) -> int:
    """Where the titles begin: at the first known one, or what is before it is another column."""
    cells = delimited_cells(text, delimiter) if known_start else []
    return 0 if cells and is_known(cells[0]) else known_start


def _find_delimiter(text: str, start: int) -> str | None:
    rest = text[start:]
    delimiter = max(",;\t", key=rest.count)
    min_count = 1 if _SHORT_TITLES.match(rest) else 3
    return delimiter if rest.count(delimiter) >= min_count else None


def _csv_rows(lines: Lines, grid: Grid, prefix: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    record_lines: list[Line] = []

    def one_record() -> Iterator[str]:
        while len(record_lines) < _LONGEST_RECORD and (line := lines.take()) is not None:
            record_lines.append(line)
            yield line[1][prefix:] + "\n"

    def is_record(text: str) -> bool:
        return _fits_grid(grid, delimited_cells(text[prefix:], delimiter))

    for row in itertools.count():
        if row % _MANY == 0:  # where they hold something else, the next hundreds are looked at one by one
            yield from _many_csv_rows(lines, grid, prefix, delimiter)
        record_lines.clear()
        try:
            cells = next(csv.reader(one_record(), delimiter=delimiter), None)
        except csv.Error:
            cells = None
        if sum(text.count('"') for _, text in record_lines) % 2:  # the file ends within a cell
            cells = None
        if cells is None or not _fits_grid(grid, cells):
            lines.give_back(record_lines)
            skipped = _skip_stray_lines(lines, is_record)
            last = lines.peek()
            if not skipped and last is not None and _is_damaged_row(last[1], grid, prefix, delimiter):
                lines.take()
                skipped = [last[0]]
            if not skipped:
                return
            grid.stray.extend(skipped)
            continue
        yield record_lines[0][0], [cell.strip() for cell in cells]


def _fits_grid(grid: Grid, cells: list[str] | None) -> bool:
    return cells is not None and len(cells) == len(grid.headers) and is_row(grid.headers, cells)


def _is_damaged_row(text: str, grid: Grid, prefix: int, delimiter: str) -> bool:
    return _ROWISH.match(text, prefix) is not None and text.count(delimiter) >= len(grid.headers) // 3


def _many_csv_rows(lines: Lines, grid: Grid, prefix: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows as long as hundreds together are nothing but rows: some ten times faster than one by one."""
    sizes: tuple[int, ...] = (*_FIRST_FEW, _MANY)
    while True:
        part: list[Line] = []
        rows: list[list[str]] | None = None
        for size in sizes:
            part += [line for _, line in zip(range(size - len(part)), iter(lines.take, None), strict=False)]
            texts = [text[prefix:] for _, text in part] if prefix else [text for _, text in part]
            rows = _parse_if_all_rows(texts, grid.headers, delimiter) if len(part) == size else None
            if rows is None:
                lines.give_back(part)
                return
        for (number, _), cells in zip(part, rows or (), strict=True):
            yield number, cells
        sizes = (_MANY,)


def _parse_if_all_rows(texts: list[str], headers: list[str], delimiter: str) -> list[list[str]] | None:
    """The cells of lines each of which is a row; None where one is none, however the lines go on."""
    try:
        records = list(csv.reader(texts, delimiter=delimiter))
    except csv.Error:
        return None
    rows = [list(map(str.strip, cells)) for cells in records if len(cells) == len(headers)]
    return rows if len(rows) == len(texts) and are_rows(headers, rows) else None


def _dashed_table(dashes: _Ruler, header: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of the table whose titles, `header`, are above a line of dashes."""
    spans = list(ruled_spans(dashes.before + dashes.dashes, dashes.start))
    if not dashes.before.strip():  # numbers may begin left of their dashes
        spans[0] = (0, spans[0][1])
    headers = ruled_cells(header[1], spans, is_last_open=True)
    if headers is not None and is_header(headers):
        grid = Grid(header[0], headers, titles, "column", is_damaged=are_damaged(headers))
        yield from _table_parts_with_rows(grid, _printed_rows(lines, grid, spans))


def _printed_rows(lines: Lines, grid: Grid, spans: Sequence[Span]) -> Iterator[tuple[int, list[str]]]:
    while (line := lines.peek()) is not None:
        cells = _printed_row(line[1], grid.headers, spans)
        if cells is None:
            skipped = _skip_stray_lines(
                lines, lambda text: _fits_grid(grid, ruled_cells(text, spans, is_last_open=True))
            )
            if not skipped:
                if _FIGURES.search(line[1]) and not _is_table_border(line[1]):
                    grid.stray.append(line[0])
                return
            grid.stray.extend(skipped)
            continue
        lines.take()
        yield line[0], cells


def _printed_row(text: str, headers: list[str], spans: Sequence[Span]) -> list[str] | None:
    cells = ruled_cells(text, spans, is_last_open=True)
    if cells is not None and is_row(headers, cells):
        return cells
    if not _FIGURES.search(text):
        return None
    # a row that does not keep to its columns: numbers first, then at most one text
    parts = [part.strip() for part in text[spans[0][0] :].split(None, len(spans) - 1)]
    return parts if len(parts) == len(spans) and is_row(headers, parts) else None


def _skip_stray_lines(lines: Lines, is_row_of_it: Callable[[str], bool]) -> list[int]:
    """Take the lines that another program printed between two rows; their numbers."""
    for ahead in range(_STRAY):
        current, following = lines.peek(ahead), lines.peek(ahead + 1)
        if current is None or following is None or not current[1].strip() or _is_table_border(current[1]):
            break
        if is_row_of_it(following[1]):
            return [line[0] for line in itertools.islice(iter(lines.take, None), ahead + 1)]
    return []
