"""Find the tables of `nsys stats` in a text, whatever is around them.

All of nsys's formats are known: `column` (columns under dashes), `table` (boxes of + - |), `csv`, `tsv`, `json`,
`hdoc` and `htable`. Nothing here knows what a column means; `nsys_stats_columns` says which headers are nsys's own.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from nsw.readers.nsys.stats.columns import are_damaged, is_header, is_row
from nsw.readers.nsys.stats.delimited import delimited, may_be_delimited
from nsw.readers.nsys.stats.laid_out_tables import bare_titles, boxed, piped, under_dashes, without_dashes
from nsw.readers.nsys.stats.markup import html_rows, json_rows
from nsw.readers.nsys.stats.printed_table import Grid, border_in, dashes_in, filled
from nsw.readers.text.peeked_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.text.ranked_lines import Line

_TITLES = 5  # lines before a table that may say what it is
_PIPE_RULE = re.compile(r".{0,40}?\|?(?:\s*:?-{2,}:?\s*\|){3,}(?:\s*:?-{2,}:?\s*)?")
# where a table of HTML, or an array of JSON with one of nsys's titles, begins
_OPENS = re.compile(
    r'\s*(?:(<table\b)|\[\s*(?:$|\{\s*"(?:Time|Total|Start|Range|API Start|PID|Name|NVTX Range|Virtual|CPU|Util)))',
    re.IGNORECASE,
)


def find_grids(source: Iterable[Line]) -> Iterator[Grid | Line]:
    """The tables of a text, and between them every other line that is not blank, in their order."""
    lines = Lines(source)
    before: deque[str] = deque(maxlen=_TITLES)
    held: Line | None = None  # it may prove to be a header
    while (line := lines.take()) is not None:
        parts = _grids_at(line, held, lines, before)
        first = next(parts, None)
        if first is not None:
            yield first
            yield from parts
            before.clear()
            held = None
            continue
        if held is not None and held[1].strip():
            if not line[1].strip() and (below := lines.peek()) is not None and dashes_in(below[1]):
                continue  # every other line is blank
            before.append(held[1].strip())
            yield held
        held = line
    if held is not None and held[1].strip():
        yield held


def _grids_at(line: Line, held: Line | None, lines: Lines, before: deque[str]) -> Iterator[Grid]:
    """The parts of the table that begins at this line, if one does."""
    _, text = line
    titles = tuple(before)
    nearer = (*titles, held[1].strip()) if held else titles  # with the line right before this one
    is_ruled = "--" in text
    if is_ruled and held is not None and (dashes := dashes_in(text)):
        yield from under_dashes(dashes, held, lines, titles)
    elif is_ruled and (border := border_in(text)):
        yield from boxed(line, border, lines, nearer)
    elif is_ruled and held is not None and held[1].count("|") > 3 and _PIPE_RULE.fullmatch(text):
        yield from piped(held, lines, titles)
    elif held is not None and (headers := bare_titles(held[1], text)) is not None:
        lines.give_back([line])
        yield from without_dashes(held, headers, lines, titles)
    elif ("[" in text or "<" in text) and (opens := _OPENS.match(text)) is not None:
        lines.give_back([line])
        yield from _marked_up(lines, nearer, is_html=bool(opens[1]))
    elif may_be_delimited(text):
        yield from delimited(line, lines, nearer)


def _marked_up(lines: Lines, titles: tuple[str, ...], *, is_html: bool) -> Iterator[Grid]:
    """A table of HTML or an array of JSON; what is neither is put back."""
    taken: list[Line] = []

    def watched() -> Iterator[Line]:
        while (line := lines.take()) is not None:
            taken.append(line)
            yield line

    rows = html_rows(watched()) if is_html else _json_cells(json_rows(watched()))
    first = next(rows, None)
    if first is None or not is_header(first[1]):
        lines.give_back(taken[1:])  # less the line that looked like one
        return
    grid = Grid(first[0], first[1], titles, "html" if is_html else "json", is_damaged=are_damaged(first[1]))
    yield from filled(grid, _fitting(rows, grid, taken))


def _json_cells(rows: Iterator[tuple[int, dict[str, str]]]) -> Iterator[tuple[int, list[str]]]:
    """The titles, and then the cells below them; a row with other titles has none."""
    titles: list[str] | None = None
    for number, row in rows:
        if titles is None:
            titles = list(row)
            yield number, titles
        yield number, list(row.values()) if list(row) == titles else []


def _fitting(rows: Iterator[tuple[int, list[str]]], grid: Grid, taken: list[Line]) -> Iterator[tuple[int, list[str]]]:
    for number, cells in rows:
        taken.clear()
        if len(cells) == len(grid.headers) and is_row(grid.headers, cells):
            yield number, [cell.strip() for cell in cells]
        else:
            grid.stray.append(number)
