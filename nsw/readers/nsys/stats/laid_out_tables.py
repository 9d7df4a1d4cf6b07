"""Tables of `nsys stats` whose cells are in columns: under dashes, in boxes, in Markdown's pipes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.readers.nsys.stats.columns import are_damaged, are_numbers, is_header, is_known, is_row
from nsw.readers.nsys.stats.printed_table import Grid, Ruler, border_in, filled, first_cell, is_between
from nsw.readers.text.table_layouts import piped_cells, ruled_cells, ruled_spans, spaced_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.text.peeked_lines import Lines
    from nsw.readers.text.ranked_lines import Line
    from nsw.readers.text.table_layouts import Span

_STRAY = 2  # lines of other programs that may be between two rows
# Words that remain of titles that are not above their dashes.
_TITLE_WORDS = re.compile(
    r"Total|Instances|Calls|Operations|Av(?:g|erage)|Med|Min|Max|StdDev|Start|Duration|CorrId|Ctx"
)
_ENOUGH_TITLES = 4
_FIGURES = re.compile(r"\d\s+\d[\d.,]*\s+\d")
_REMARK = re.compile(r"\s*(?:#|//|<-|\u2190)")  # an author's, behind the name
_COMMENT = re.compile(r"^\W*(?=\w)")


def under_dashes(dashes: Ruler, header: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of the table whose titles, `header`, are above a line of dashes."""
    layout = _under_dashes(dashes)
    headers = layout.titles(header[1])
    if headers is not None and is_header(headers):
        grid = Grid(header[0], headers, titles, "column", is_damaged=are_damaged(headers))
        yield from filled(grid, _printed_rows(lines, grid, layout))
    elif len(set(_TITLE_WORDS.findall(header[1]))) >= _ENOUGH_TITLES:
        yield Grid(header[0], [], titles, "column", is_damaged=True)


def without_dashes(header: Line, headers: list[str], lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of a table below bare titles."""
    grid = Grid(header[0], headers, titles, "column", is_damaged=are_damaged(headers))
    yield from filled(grid, _printed_rows(lines, grid, _Layout(tuple((0, 0) for _ in headers), "")))


def boxed(line: Line, border: Ruler, lines: Lines, before: tuple[str, ...]) -> Iterator[Grid]:
    """The parts of the table whose upper border is `line`."""
    marks = [border.start + m.start() for m in re.finditer(r"\+", border.dashes)]
    layout = _Layout(tuple((a + 1, b) for a, b in itertools.pairwise(marks)), "|")
    header, below = lines.peek(0), lines.peek(1)
    if header is None or below is None or border_in(below[1]) is None:
        return
    headers = layout.cut(header[1])
    if headers is None or not is_header(headers):
        return
    lines.take()
    lines.take()
    titles = tuple(b for b in before if b)
    grid = Grid(line[0] + 1, headers, titles, "table", is_damaged=are_damaged(headers))
    yield from filled(grid, _printed_rows(lines, grid, layout))


def piped(header: Line, lines: Lines, titles: tuple[str, ...]) -> Iterator[Grid]:
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
    yield from filled(grid, rows())


def _pipe_cells(text: str) -> list[str]:
    return [cell.strip("`*") for cell in piped_cells(text[text.find("|") :])]


def bare_titles(above: str, below: str) -> list[str] | None:
    """Titles with a row right below them: somebody left out the dashes. Only the last may be of a text."""
    if not (first_cell(above) and _FIGURES.search(below)):
        return None
    headers = spaced_cells(_COMMENT.sub("", above))
    if not (len(headers) > 3 and all(map(is_known, headers)) and are_numbers(headers[:-1])):
        return None
    cells = below.split(None, len(headers) - 1)
    return headers if len(cells) == len(headers) and is_row(headers, cells) else None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where the cells of a printed row are."""

    spans: tuple[Span, ...]
    gap: str  # what is between cells

    def cut(self, text: str) -> list[str] | None:
        """The cells, or None where text is between them."""
        begin, stop = self.spans[0][0], self.spans[-1][1]
        if self.gap:
            return ruled_cells(text, self.spans, mark=self.gap) if text[begin - 1 : begin] == self.gap else None
        is_remarked = _REMARK.match(text, stop) is not None and text[stop - 1 : stop] == " "
        return ruled_cells(text, self.spans, is_last_open=not is_remarked)

    def titles(self, text: str) -> list[str] | None:
        """The titles above the dashes; where an author's editor moved them, the blanks between them tell."""
        cut = self.cut(text)
        if cut is not None and all(map(is_known, cut)):
            return cut
        apart = spaced_cells(_COMMENT.sub("", text))
        return apart if len(apart) == len(self.spans) and is_header(apart) else cut

    def split(self, text: str) -> list[str] | None:
        """The cells of a row that does not keep to its columns: numbers first, then at most one text."""
        cells = text[self.spans[0][0] :].split(None, len(self.spans) - 1) if text.strip() else []
        return [cell.strip() for cell in cells] if len(cells) == len(self.spans) else None


def _under_dashes(dashes: Ruler) -> _Layout:
    spans = list(ruled_spans(dashes.before + dashes.dashes, dashes.start))
    if not dashes.before.strip():  # numbers may begin left of their dashes
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
                if _FIGURES.search(line[1]) and not is_between(line[1]):
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


def _strays(lines: Lines, headers: list[str], layout: _Layout) -> list[int]:
    """Take the lines that another program printed between two rows; their numbers."""
    for ahead in range(_STRAY):
        here, later = lines.peek(ahead), lines.peek(ahead + 1)
        if here is None or later is None or not here[1].strip() or is_between(here[1]):
            return []
        cells = layout.cut(later[1])
        if cells is not None and is_row(headers, cells):
            taken = [lines.take() for _ in range(ahead + 1)]
            return [line[0] for line in taken if line is not None]
    return []
