"""nvprof's --csv tables: quoted as nvprof writes them, and as spreadsheets and people leave them.

A line of titles, then mostly a line of units (`,%,ms,,us,us,ms,`: a unit for each column, changing from file
to file), then the rows. What came through a spreadsheet has lost its quotes, and names have commas.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text.csv_rows import MemoryRows, MetricRows, SummaryRows, Titles, TraceRows
from nsw.readers.nvprof.text.damaged_titles import are_damaged_titles
from nsw.readers.nvprof.text.summary_rows import SECTIONS
from nsw.readers.text.quantities import QUANTITY, TIME_UNITS, size_factor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.nvprof.text.csv_rows import Rows
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

_MARKS = re.compile(r'"?(?:Type|Time\(%\)|Start|Device|Invocations|Context)"?\s*[,;\t]')
_DEVICE = re.compile(r"\(\d{1,4}\)\s*\Z")
_NEAR = 1  # cells that a row may lack, or have too many, to be taken for a damaged one
_LONGEST_CELLS = 4096  # columns of a row; a hostile line has more
_ROWS: Final[dict[str, Callable[[Sink, Stream, Titles], Rows]]] = {
    "summary": SummaryRows,
    "metrics": MetricRows,
    "memory": MemoryRows,
    "trace": TraceRows,
}
_KINDS = (
    ("summary", {"Time(%)", "Time", "Calls", "Name"}),
    ("summary", {"Time(%)", "Time", "Calls (host)", "Name"}),
    ("trace", {"Start", "Duration", "Name"}),
    ("metrics", {"Kernel", "Invocations", "Metric Name"}),
    ("metrics", {"Kernel", "Invocations", "Event Name"}),
    ("memory", {"Count", "Avg Size", "Total Size"}),
    ("trace", {"Device", "Context", "Stream", "Kernel"}),
)


def header_of(text: str) -> tuple[str, list[str], str] | None:
    """The kind of table that a line of titles begins, the titles, the character between them."""
    if not _MARKS.match(text.lstrip(" \t\ufeff")):
        return None
    for mark in (",", ";", "\t"):
        if text.count(mark) >= 2:
            titles = [t.strip() for t in cells_of(text.strip(" \ufeff"), mark)]
            if "Total Time" not in titles:
                while titles and not titles[-1]:
                    titles.pop()
            for kind, needed in _KINDS:
                if needed <= set(titles):
                    return kind, titles, mark
    return None


def cells_of(text: str, mark: str) -> list[str]:
    """The cells of one line; a quote that is never closed closes at the line's end. None where one is too long."""
    if '"' not in text:
        return text.split(mark)
    try:
        return next(csv.reader([text], delimiter=mark), [])
    except csv.Error:
        return []


class CsvTable:
    """One CSV table being read."""

    def __init__(
        self, sink: Sink, stream: Stream, kind: str, titles: list[str], mark: str, number: int, padded: int
    ) -> None:
        self._sink = sink
        self._stream = stream
        self._titles = titles
        self._padded = padded  # cells of the line of titles, with empty ones behind them that a spreadsheet adds
        self._mark = mark
        self._kind = kind
        # where a name with commas of its own may spread over several cells
        self._flexible = next((titles.index(t) for t in ("Name", "Kernel") if t in titles), len(titles) - 1)
        self._units: list[str] = [""] * len(titles)
        self._made: Rows | None = None
        self._is_damaged = False  # the units do not fit the titles: no number has a unit that is known
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row or the line of units."""
        if self._mark not in text or text.startswith("="):
            return False
        cells = cells_of(text.strip(" ") if self._mark != "\t" else text, self._mark)
        if not cells:  # one is longer than Python's csv module takes
            return self._fault(number, [cell.strip(' "') for cell in text.split(self._mark)])
        if not self.rows and self._take_units(cells):
            return True
        fitted = None if self._is_damaged else self._fit(cells, quoted='"' in text)
        if fitted is None:
            return self._fault(number, cells)
        if self._made is None:
            self._made = _ROWS[self._kind](self._sink, self._stream, Titles(self._titles, self._units))
        if not self._made.add(fitted, number):
            return self._fault(number, cells)
        self.rows += 1
        return True

    def _fault(self, number: int, cells: Sequence[str]) -> bool:
        if not cells or not self._looks_like_a_row(cells):
            return False  # a line of the program's own
        self._sink.fault("a row of a CSV table is cut short or damaged", number)
        return True

    def _looks_like_a_row(self, cells: Sequence[str]) -> bool:
        if self._kind == "memory" or cells[0][:1].isdigit() or cells[0].strip() in SECTIONS:
            return not are_damaged_titles(",".join(cells))
        # one that lost its first cell, or what is in it; the first of a metric is a name
        is_near = abs(len(cells) - len(self._titles)) <= _NEAR and not are_damaged_titles(",".join(cells))
        if self._kind == "metrics":
            return is_near or bool(_DEVICE.search(cells[0]))
        return is_near and not cells[0].strip()

    def _take_units(self, cells: Sequence[str]) -> bool:
        stripped = [c.strip() for c in cells]
        if not any(stripped) or not all(not c or _is_unit(c) for c in stripped):
            return False
        width = len(self._titles)
        self._units = (stripped + [""] * width)[:width]
        self._is_damaged = not width <= len(stripped) <= self._padded or any(stripped[width:])
        return True

    def _fit(self, cells: list[str], *, quoted: bool) -> list[str] | None:
        """The cells, as many as there are titles: a name that was split at its commas is joined again.

        In quotes a name is one cell, and none begins with a number: then there is a cell too many or a title missing.
        """
        width = len(self._titles)
        if len(cells) > width and '"' not in "".join(cells[width:]):
            while len(cells) > width and not cells[-1].strip():
                cells.pop()
        if len(cells) == width:
            return None if cells[self._flexible].count('"') % 2 else cells
        if len(cells) < width or len(cells) > _LONGEST_CELLS:
            return None
        extra = len(cells) - width
        at = self._flexible
        if quoted or QUANTITY.fullmatch(cells[at].strip()):
            return None
        return [*cells[:at], self._mark.join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]


def _is_unit(cell: str) -> bool:
    return cell == "%" or cell in TIME_UNITS or size_factor(cell.removesuffix("/s"), 1024) is not None


def csv_table(sink: Sink, stream: Stream, text: str, number: int) -> RowTaker | None:
    """The table that a line of titles begins, or None when it is no such line."""
    found = header_of(text)
    if found is None:
        return None
    kind, titles, mark = found
    return CsvTable(sink, stream, kind, titles, mark, number, len(cells_of(text.strip(" \ufeff"), mark)))
