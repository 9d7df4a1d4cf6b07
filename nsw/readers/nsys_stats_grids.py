"""Find the tables of `nsys stats` in a text, whatever stands around them.

All of nsys's formats are known: `column` (columns under dashes), `table` (boxes of + - |), `csv`, `tsv`, `json`,
`hdoc` and `htable`. Nothing here knows what a column means; `nsys_stats_columns` says which headers are nsys's own.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from nsw.readers.nsys_stats_columns import (
    are_damaged,
    are_numbers,
    are_rows,
    is_header,
    is_known,
    is_row,
    lacks_its_first,
)
from nsw.readers.nsys_stats_markup import html_rows, json_rows
from nsw.readers.peeked_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.ranked_lines import Line

_PART = 50_000  # rows of one table given at a time
_TITLES = 5  # lines before a table that may say what it is
_LONGEST_RECORD = 100  # lines of one CSV record: names may hold line ends
_MANY = 500  # rows looked at together
_STRAY = 2  # lines of other programs that may stand between two rows

_LONGEST_RULE = 16_384  # characters of a line of dashes: to look for one costs the square of its parts
_DASHES = re.compile(r"^(.*?)(?<!-)(-{3,}(?:\s+-{3,})+)\s*$")
_BORDER = re.compile(r"^(.*?)(\+-{3,}(?:\+-{3,})+\+)\s*$")
# Of titles that do not stand above their dashes these words are left.
_TITLE_WORDS = re.compile(
    r"Total|Instances|Calls|Operations|Av(?:g|erage)|Med|Min|Max|StdDev|Start|Duration|CorrId|Ctx"
)
_ENOUGH_TITLES = 4
_ROWISH = re.compile(r'(?:"?-?\d[^,;\t]{0,30}|"")?[,;\t]')
_PIPE_RULE = re.compile(r".{0,40}?\|?(?:\s*:?-{2,}:?\s*\|){3,}(?:\s*:?-{2,}:?\s*)?")
_SECOND_TITLES = ("Total Time (", "Duration (")
_FIGURES = re.compile(r"\d\s+\d[\d.,]*\s+\d")
_REMARK = re.compile(r"\s*(?:#|//|<-|\u2190)")  # an author's, behind the name
_COMMENT = re.compile(r"^\W*(?=\w)")
_FIRST_CELL = re.compile(
    r'"?(?:Time ?\(%\)|Total \(|Start \(|API Start|NVTX Range|PID[,;\t]TID|Range[,;\t]Style|Total HtoD)'
)
# what nsys prints between tables: no row follows it
_BETWEEN = re.compile(
    r"\W*(?:Processing \[|Running \[|SKIPPED: |Generating |\[\d+/\d+\] |\*\* |[A-Z][\w ]{0,60}(?:Statistics|Summary)\b)"
)


# where a table of HTML, or an array of JSON with one of nsys's titles, begins
_OPENS = re.compile(r'\s*(?:(<table\b)|\[\s*(?:$|\{\s*"(?:Time|Total|Start|Range|API Start|PID)\b))', re.IGNORECASE)


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
    is_damaged: bool = False  # a title is missing or there twice: which column is which is not known, and rows is empty


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
            if not line[1].strip() and (below := lines.peek()) is not None and _DASHES.match(below[1]):
                continue  # every other line is blank
            before.append(held[1].strip())
            yield held
        held = line
    if held is not None and held[1].strip():
        yield held


def _grids_at(line: Line, held: Line | None, lines: Lines, before: deque[str]) -> Iterator[Grid]:
    """The parts of the table that begins at this line, if one does."""
    _, text = line
    is_short = len(text) <= _LONGEST_RULE
    if held is not None and is_short and (dashes := _DASHES.match(text)):
        layout = _under_dashes(dashes)
        headers = layout.titles(held[1])
        if headers is not None and is_header(headers):
            grid = Grid(held[0], headers, tuple(before), "column", is_damaged=are_damaged(headers))
            yield from _filled(grid, _printed_rows(lines, grid, layout))
        elif len(set(_TITLE_WORDS.findall(held[1]))) >= _ENOUGH_TITLES:
            yield Grid(held[0], [], tuple(before), "column", is_damaged=True)
    elif is_short and (border := _BORDER.match(text)):
        yield from _boxed(line, border, lines, [*before, held[1].strip() if held else ""])
    elif _PIPE_RULE.fullmatch(text) and held is not None and held[1].count("|") > 3:
        yield from _piped(held, lines, tuple(before))
    elif held is not None and (headers := _bare_titles(held[1], text)) is not None:
        lines.give_back([line])
        grid = Grid(held[0], headers, tuple(before), "column", is_damaged=are_damaged(headers))
        yield from _filled(grid, _printed_rows(lines, grid, _Layout(tuple((0, 0) for _ in headers), "")))
    elif (opens := _OPENS.match(text)) is not None:
        lines.give_back([line])
        yield from _marked_up(lines, tuple(before) + ((held[1].strip(),) if held else ()), is_html=bool(opens[1]))
    elif (first := _FIRST_CELL.search(text)) and (delimiter := _delimiter(text, first.start())):
        headers = _cells(text[first.start() :], delimiter)
        if headers is not None and is_header(headers):
            titles = (*before, held[1].strip()) if held else tuple(before)
            grid = Grid(line[0], headers, titles, "csv", is_damaged=are_damaged(headers))
            yield from _filled(grid, _csv_rows(lines, grid, first.start(), delimiter))
    elif (headers := _beheaded(text)) is not None:
        yield Grid(line[0], headers, tuple(before), "csv", is_damaged=True)


def _beheaded(text: str) -> list[str] | None:
    """Titles of a CSV table that lost their first, without which the table is not known for one."""
    if not any(words in text for words in _SECOND_TITLES) or not (delimiter := _delimiter(text, 0)):
        return None
    headers = _cells(text, delimiter)
    return headers if headers is not None and is_header(headers) and lacks_its_first(headers) else None


def _piped(header: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """A table that an author, or a script, wrote with Markdown's pipes."""
    headers = _pipe_cells(header[1])
    if not is_header(headers):
        return

    def rows() -> Iterator[tuple[int, list[str]]]:
        while (line := lines.peek()) is not None and "|" in line[1]:
            cells = _pipe_cells(line[1])
            if len(cells) == len(headers) and is_row(headers, cells):
                yield line[0], cells
            else:
                grid.stray.append(line[0])
            lines.take()

    grid = Grid(header[0], headers, titles, "table", is_damaged=are_damaged(headers))
    yield from _filled(grid, rows())


def _pipe_cells(text: str) -> list[str]:
    inside = text[text.find("|") :].strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("`*") for cell in inside.split("|")]


def _bare_titles(above: str, below: str) -> list[str] | None:
    """Titles with a row right below them: somebody left out the dashes. Only the last may be of a text."""
    if not (_FIRST_CELL.search(above) and _FIGURES.search(below)):
        return None
    headers = re.split(r"\s{2,}", _COMMENT.sub("", above).strip())
    if not (len(headers) > 3 and all(map(is_known, headers)) and are_numbers(headers[:-1])):
        return None
    cells = below.split(None, len(headers) - 1)
    return headers if len(cells) == len(headers) and is_row(headers, cells) else None


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
    yield from _filled(grid, _fitting(rows, grid, taken))


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


def _filled(grid: Grid, rows: Iterator[tuple[int, list[str]]]) -> Iterator[Grid]:
    for row in rows:
        if grid.is_damaged:
            continue
        grid.rows.append(row)
        if len(grid.rows) == _PART:
            yield grid
            grid = Grid(grid.line, grid.headers, grid.titles, grid.style, part=grid.part + 1, stray=grid.stray)
    if grid.rows or grid.part == 0 or grid.stray:
        yield grid


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the cells of a printed row are."""

    spans: tuple[tuple[int, int], ...]
    gap: str  # what stands between cells

    def cut(self, text: str) -> list[str] | None:
        """The cells, or None where text stands between them."""
        end = self.spans[0][0]
        for (_, stop), (start, _) in itertools.pairwise(self.spans):
            if text[stop:start].strip() not in ("", self.gap):
                return None
        if self.gap and text[end - 1 : end] != self.gap:
            return None
        cells = [text[start:stop].strip() for start, stop in self.spans]
        if not self.gap:  # the last column may be longer than its dashes
            start, stop = self.spans[-1]
            if not (_REMARK.match(text, stop) and text[stop - 1 : stop] == " "):
                cells[-1] = text[start:].strip()
        return cells

    def titles(self, text: str) -> list[str] | None:
        """The titles above the dashes; where an author's editor moved them, the blanks between them tell."""
        cut = self.cut(text)
        if cut is not None and all(map(is_known, cut)):
            return cut
        apart = re.split(r"\s{2,}", _COMMENT.sub("", text).strip())
        return apart if len(apart) == len(self.spans) and is_header(apart) else cut

    def split(self, text: str) -> list[str] | None:
        """The cells of a row that does not keep to its columns: numbers first, then at most one text."""
        cells = text[self.spans[0][0] :].split(None, len(self.spans) - 1) if text.strip() else []
        return [cell.strip() for cell in cells] if len(cells) == len(self.spans) else None


def _under_dashes(dashes: re.Match[str]) -> _Layout:
    start = dashes.start(2)
    spans = [(start + m.start(), start + m.end()) for m in re.finditer("-+", dashes[2])]
    if not dashes[1].strip():  # numbers may begin left of their dashes
        spans[0] = (0, spans[0][1])
    return _Layout(tuple(spans), "")


def _printed_rows(lines: Lines, grid: Grid, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    while (line := lines.peek()) is not None:
        cells = _printed_row(line[1], grid.headers, layout)
        if cells is None and not line[1].strip() and _is_spread(lines, grid.headers, layout):
            lines.take()
            continue
        if cells is None:
            skipped = _strays(lines, grid.headers, layout)
            if not skipped:
                if _FIGURES.search(line[1]) and not _is_between(line[1]):
                    grid.stray.append(line[0])
                return
            grid.stray.extend(skipped)
            continue
        lines.take()
        yield line[0], cells


def _is_spread(lines: Lines, headers: list[str], layout: _Layout) -> bool:
    """Whether a row follows the blank line here: nsys never puts one there, some who paste its output do."""
    below = lines.peek(1)
    cells = layout.cut(below[1]) if below is not None and below[1].strip() else None
    return cells is not None and is_row(headers, cells)


def _printed_row(text: str, headers: list[str], layout: _Layout) -> list[str] | None:
    cells = layout.cut(text)
    if cells is not None and is_row(headers, cells):
        return cells
    if layout.gap or not _FIGURES.search(text):
        return None
    if (cells := _moved_row(text, headers, layout)) is not None:
        return cells
    cells = layout.split(text)
    return cells if cells is not None and is_row(headers, cells) else None


def _moved_row(text: str, headers: list[str], layout: _Layout) -> list[str] | None:
    """A row that lost the blanks before its first number, and whose cells may hold blanks."""
    for moved in range(1, layout.spans[0][1]):
        cells = layout.cut(" " * moved + text)
        if cells is not None and is_row(headers, cells):
            return cells
    return None


def _is_between(text: str) -> bool:
    """Whether the line ends a table, or begins one."""
    return any(words.match(text) for words in (_BETWEEN, _DASHES, _BORDER)) or bool(_FIRST_CELL.search(text))


def _strays(lines: Lines, headers: list[str], layout: _Layout) -> list[int]:
    """Take the lines that another program printed between two rows; their numbers."""
    for ahead in range(_STRAY):
        here, later = lines.peek(ahead), lines.peek(ahead + 1)
        if here is None or later is None or not here[1].strip() or _is_between(here[1]):
            return []
        cells = layout.cut(later[1])
        if cells is not None and is_row(headers, cells):
            taken = [lines.take() for _ in range(ahead + 1)]
            return [line[0] for line in taken if line is not None]
    return []


def _boxed(line: Line, border: re.Match[str], lines: Lines, before: list[str]) -> Iterator[Grid]:
    marks = [border.start(2) + m.start() for m in re.finditer(r"\+", border[2])]
    layout = _Layout(tuple((a + 1, b) for a, b in itertools.pairwise(marks)), "|")
    header, below = lines.peek(0), lines.peek(1)
    if header is None or below is None or not _BORDER.match(below[1]):
        return
    headers = layout.cut(header[1])
    if headers is None or not is_header(headers):
        return
    lines.take()
    lines.take()
    titles = tuple(b for b in before if b)
    grid = Grid(line[0] + 1, headers, titles, "table", is_damaged=are_damaged(headers))
    yield from _filled(grid, _printed_rows(lines, grid, layout))


def _delimiter(text: str, start: int) -> str | None:
    rest = text[start:]
    found = max(",;\t", key=rest.count)
    return found if rest.count(found) >= 3 else None


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
    while True:
        part = [line for _, line in zip(range(_MANY), iter(lines.take, None), strict=False)]
        texts = [text[prefix:] for _, text in part] if prefix else [text for _, text in part]
        try:
            found = list(csv.reader(texts, delimiter=delimiter))
        except csv.Error:
            found = []
        rows = [list(map(str.strip, cells)) for cells in found if len(cells) == len(grid.headers)]
        if len(part) < _MANY or len(rows) < len(part) or not are_rows(grid.headers, rows):
            lines.give_back(part)
            return
        for (number, _), cells in zip(part, rows, strict=True):
            yield number, cells


def _csv_strays(lines: Lines, headers: list[str], prefix: int, delimiter: str) -> list[int]:
    """Take the lines that are no rows between two rows, or a last row that is damaged; their numbers."""
    for ahead in range(_STRAY):
        here, later = lines.peek(ahead), lines.peek(ahead + 1)
        if here is None or not here[1].strip() or _is_between(here[1]):
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
