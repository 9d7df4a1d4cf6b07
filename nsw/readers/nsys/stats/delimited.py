"""Tables of `nsys stats` as CSV and TSV, whatever is before each of their lines."""

from __future__ import annotations

import csv
import itertools
import re
from typing import TYPE_CHECKING

from nsw.readers.nsys.stats.columns import are_damaged, are_rows, is_header, is_known, is_row, lacks_its_first
from nsw.readers.nsys.stats.printed_table import Grid, filled, first_cell, is_between

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.text.peeked_lines import Lines
    from nsw.readers.text.ranked_lines import Line

_LONGEST_RECORD = 100  # lines of one CSV record: names may hold line ends
_MANY = 500  # rows looked at together
_FIRST_FEW = (1, 8, 64)  # of them looked at before, since titles that no rows follow may come by the thousand
_STRAY = 2  # lines of other programs that may be between two rows
_ROWISH = re.compile(r'(?:"?-?\d[^,;\t]{0,30}|"")?[,;\t]')
_SHORT_TITLES = re.compile(r'"?CPU Page Faults"?[,;\t]"?CPU I')  # the only table of two columns
_SECOND_TITLES = ("Total Time (", "Duration (")


def may_be_delimited(text: str) -> bool:
    """Whether a line may be the titles of a table; of nearly all that are none it says so fast."""
    return first_cell(text) is not None or any(words in text for words in _SECOND_TITLES)


def delimited(line: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of the table whose titles this line is; nothing where it is none."""
    number, text = line
    first = first_cell(text)
    delimiter = _delimiter(text, first.start()) if first else None
    if first is None or delimiter is None:
        if (headers := _beheaded(text)) is not None:
            yield Grid(number, headers, titles, "csv", is_damaged=True)
        return
    start = _beginning(text, first.start(), delimiter)
    headers = _cells(text[start:], delimiter)
    if headers is not None and is_header(headers):
        grid = Grid(number, headers, titles, "csv", is_damaged=are_damaged(headers))
        yield from filled(grid, _csv_rows(lines, grid, start, delimiter))


def _beginning(text: str, found: int, delimiter: str) -> int:
    """Where the titles begin: at the first known one, or what is before it is another column."""
    whole = _cells(text, delimiter) if found else None
    return 0 if whole and is_known(whole[0]) else found


def _beheaded(text: str) -> list[str] | None:
    """Titles of a CSV table that lost their first, without which the table is not known for one."""
    if not any(words in text for words in _SECOND_TITLES) or not (delimiter := _delimiter(text, 0)):
        return None
    headers = _cells(text, delimiter)
    return headers if headers is not None and is_header(headers) and lacks_its_first(headers) else None


def _delimiter(text: str, start: int) -> str | None:
    rest = text[start:]
    found = max(",;\t", key=rest.count)
    least = 1 if _SHORT_TITLES.match(rest) else 3
    return found if rest.count(found) >= least else None


def _csv_rows(lines: Lines, grid: Grid, prefix: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    taken: list[Line] = []

    def one_record() -> Iterator[str]:
        while len(taken) < _LONGEST_RECORD and (line := lines.take()) is not None:
            taken.append(line)
            yield line[1][prefix:] + "\n"

    for row in itertools.count():
        if row % _MANY == 0:  # where they hold something else, the next hundreds are looked at one by one
            yield from _many_csv_rows(lines, grid, prefix, delimiter)
        taken.clear()
        try:
            cells = next(csv.reader(one_record(), delimiter=delimiter), None)
        except csv.Error:
            cells = None
        if sum(text.count('"') for _, text in taken) % 2:  # the file ends within a cell
            cells = None
        if cells is None or len(cells) != len(grid.headers) or not is_row(grid.headers, cells):
            lines.give_back(taken)
            skipped = _csv_strays(lines, grid.headers, prefix, delimiter)
            if not skipped:
                return
            grid.stray.extend(skipped)
            continue
        yield taken[0][0], [cell.strip() for cell in cells]


def _many_csv_rows(lines: Lines, grid: Grid, prefix: int, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows as long as hundreds together are nothing but rows: some ten times faster than one by one."""
    sizes: tuple[int, ...] = (*_FIRST_FEW, _MANY)
    while True:
        part: list[Line] = []
        rows: list[list[str]] | None = None
        for size in sizes:
            part += [line for _, line in zip(range(size - len(part)), iter(lines.take, None), strict=False)]
            texts = [text[prefix:] for _, text in part] if prefix else [text for _, text in part]
            rows = _nothing_but_rows(texts, grid.headers, delimiter) if len(part) == size else None
            if rows is None:
                lines.give_back(part)
                return
        for (number, _), cells in zip(part, rows or (), strict=True):
            yield number, cells
        sizes = (_MANY,)


def _nothing_but_rows(texts: list[str], headers: list[str], delimiter: str) -> list[list[str]] | None:
    """The cells of lines each of which is a row; None where one is none, however the lines go on."""
    try:
        found = list(csv.reader(texts, delimiter=delimiter))
    except csv.Error:
        return None
    rows = [list(map(str.strip, cells)) for cells in found if len(cells) == len(headers)]
    return rows if len(rows) == len(texts) and are_rows(headers, rows) else None


def _csv_strays(lines: Lines, headers: list[str], prefix: int, delimiter: str) -> list[int]:
    """Take the lines that are no rows between two rows, or a last row that is damaged; their numbers."""
    for ahead in range(_STRAY):
        here, later = lines.peek(ahead), lines.peek(ahead + 1)
        if here is None or not here[1].strip() or is_between(here[1]):
            break
        cells = _cells(later[1][prefix:], delimiter) if later else None
        if cells and len(cells) == len(headers) and is_row(headers, cells):
            taken = [lines.take() for _ in range(ahead + 1)]
            return [line[0] for line in taken if line is not None]
    last = lines.peek()
    if last is not None and _ROWISH.match(last[1], prefix) and last[1].count(delimiter) >= len(headers) // 3:
        lines.take()
        return [last[0]]
    return []


def _cells(text: str, delimiter: str) -> list[str] | None:
    try:
        return next(csv.reader([text], delimiter=delimiter), None)
    except csv.Error:
        return None
