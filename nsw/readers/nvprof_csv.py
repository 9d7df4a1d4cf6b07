"""nvprof's --csv tables: quoted as nvprof writes them, and as spreadsheets and people leave them.

A line of titles, then mostly a line of units (`,%,ms,,us,us,ms,`: a unit for each column, changing from file
to file), then the rows. What came through a spreadsheet has lost its quotes, and names have commas.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

from nsw.readers.nvprof_memory import add_memory_row, is_lone_total, misplaced_count, size_of
from nsw.readers.nvprof_metrics import add_metric
from nsw.readers.nvprof_state import split_device
from nsw.readers.nvprof_summary import SECTIONS, add_summary_row, calls_of, statistics
from nsw.readers.nvprof_titles import are_damaged_titles
from nsw.readers.nvprof_trace_columns import TraceColumns, less_id
from nsw.readers.quantities import QUANTITY, TIME_UNITS, duration, percent, size_factor, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.nvprof_state import RowTaker, Sink, Stream

_MARKS = re.compile(r'"?(?:Type|Time\(%\)|Start|Device|Invocations|Context)"?\s*[,;\t]')
_TIMES = ("Time", "Avg", "Min", "Max")
_PICKED = {
    "summary": ("Name", "Type", "Calls", "Calls (host)", "Calls (device)", "Time(%)", *_TIMES),
    "metrics": (
        *("Kernel", "Metric Name", "Event Name", "Device", "Metric Description", "Invocations"), *("Min", "Max", "Avg"),
    ),
}  # fmt: skip
_DEVICE = re.compile(r"\(\d{1,4}\)\s*\Z")
_NEAR = 1  # cells that a row may lack, or have too many, to be taken for a damaged one
_LONGEST_CELLS = 4096  # columns of a row; a hostile line has more
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
            while titles and not titles[-1] and "Total Time" not in titles:
                titles.pop()
            for kind, needed in _KINDS:
                if needed <= set(titles):
                    return kind, titles, mark
    return None


def cells_of(text: str, mark: str) -> list[str]:
    """The cells of one line; a quote that is never closed closes at the line's end."""
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
        self._names_at = {t: i for i, t in enumerate(titles)}
        # where a name with commas of its own may spread over several cells
        self._flexible = next((self._names_at[t] for t in ("Name", "Kernel") if t in self._names_at), len(titles) - 1)
        self._units: list[str] = [""] * len(titles)
        self._pick = [self._names_at.get(t, _LONGEST_CELLS + 1) for t in _PICKED.get(kind, ())]
        self._time_units: list[str | None] = [None] * len(_TIMES)
        self._add: Callable[[Sequence[str]], bool] | None = None
        self._trace: TraceColumns | None = None  # both when the rows of a trace may be regular
        self._regular: re.Pattern[str] | None = None
        self._is_damaged = False  # the units do not fit the titles: no number has a unit that is known
        self.number = self._number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row or the line of units."""
        if self._mark not in text or text.startswith("="):
            return False
        regular = self._regular.match(text) if self._regular is not None else None
        if regular is None or self._trace is None:
            return self._take_cells(number, text)
        start, took, rest, id_ = regular.groups()
        correlation = int(id_) if id_ else None
        if rest[-2:] in {']"', ')"'}:
            rest, named = less_id(rest[:-1])
            if named is not None and correlation not in {None, named}:
                return self._take_cells(number, text)
            correlation = named if correlation is None else correlation
        at = self._trace.size_at
        if at is not None and rest[:1] == self._mark:  # no grid: a copy or a set
            cells = rest.split(self._mark, at + 2)
            if len(cells) == at + 3 and cells[at]:
                return self._take_move(number, text, (start, took, cells), correlation)
        if self._trace.add_known(start, took, rest, correlation):
            self.rows += 1
            return True
        taken = self._take_cells(number, text)
        self._trace.learn(rest, correlation)
        return taken

    def _take_move(self, number: int, text: str, row: tuple[str, str, list[str]], correlation: int | None) -> bool:
        trace = self._trace
        if trace is None:
            return self._take_cells(number, text)
        if trace.add_move(*row, correlation):
            self.rows += 1
            return True
        taken = self._take_cells(number, text)
        trace.learn_move(row[2], correlation)
        return taken

    def _take_cells(self, number: int, text: str) -> bool:
        cells = cells_of(text.strip(" ") if self._mark != "\t" else text, self._mark)
        if not self.rows and self._take_units(cells):
            return True
        self._number = number
        fitted = None if self._is_damaged else self._fit(cells, quoted='"' in text)
        if fitted is None:
            return self._fault(number, cells)
        if self._add is None:
            self._add = self._adder()
        if not self._add(fitted):
            return self._fault(number, cells)
        self.rows += 1
        return True

    def _fault(self, number: int, cells: Sequence[str]) -> bool:
        if not cells or not self._looks_like_a_row(cells):
            return False  # a line of the program's own
        self._sink.fault("a row of a CSV table is cut short or damaged", number, "copy the report again")
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
        self._time_units = [self._unit(t) for t in _TIMES]
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

    def _adder(self) -> Callable[[Sequence[str]], bool]:
        if self._kind == "trace":
            columns = TraceColumns(self._sink, self._stream, self._titles, self._units)
            if columns.is_regular and self._mark != "\t":
                self._trace, self._regular = columns, _regular_row(self._mark, has_ids=columns.has_ids)
            return columns.add
        return {"summary": self._add_summary, "metrics": self._add_metric, "memory": self._add_memory}[self._kind]

    def _cell(self, cells: Sequence[str], title: str) -> str:
        at = self._names_at.get(title)
        return cells[at].strip() if at is not None else ""

    def _unit(self, title: str) -> str | None:
        at = self._names_at.get(title)
        return (self._units[at] or None) if at is not None else None

    def _add_summary(self, cells: Sequence[str]) -> bool:
        name, label, host, either, device, share, *times = self._picked(cells)
        calls = calls_of(host or either, device)
        total, avg, low, high = [duration(t, unit) for t, unit in zip(times, self._time_units, strict=True)]
        if not name or calls is None or total is None:
            return False
        if label:
            self._stream.section = SECTIONS.get(label.rstrip(":"), "other")
        elif self._stream.section is None:
            self._stream.section = "gpu"
        row = statistics(percent(share), total, calls, avg, low, high)
        add_summary_row(self._sink, self._stream, self._number, row, name)
        return True

    def _add_metric(self, cells: Sequence[str]) -> bool:
        kernel, metric, event, device, description, invocations, *values = self._picked(cells)
        metric = metric or event
        calls = whole(invocations)
        if not kernel or not metric or calls is None or not all(values):
            return False
        self._stream.set_device(device)
        add_metric(self._sink, self._stream, kernel, metric, description or None, calls, values)
        return True

    def _picked(self, cells: Sequence[str]) -> list[str]:
        """The cells that `_PICKED` names for this kind of table; "" for those it has not."""
        width = len(cells)
        return [cells[at].strip() if at < width else "" for at in self._pick]

    def _add_memory(self, cells: Sequence[str]) -> bool:
        name = cells[-1].strip()
        if not name or name in self._titles:
            return False
        device = self._cell(cells, "Device")
        self._stream.device_name, self._stream.device = split_device(device)
        count, total = self._cell(cells, "Count"), self._cell(cells, "Total Size")
        counted = whole(count)
        sizes = [
            size_of(self._cell(cells, t), self._unit(t)) for t in ("Avg Size", "Min Size", "Max Size", "Total Size")
        ]
        misplaced = misplaced_count(name, count, total)
        if misplaced is not None:
            counted, sizes[3] = misplaced, None
        elif is_lone_total(counted, sizes):
            return False
        # some versions print a time without any unit; it is then no time
        time = duration(self._cell(cells, "Total Time"), self._unit("Total Time"))
        if name.startswith("Remote mapping"):
            time = None  # nvprof prints the bytes there, as a time
        add_memory_row(self._sink, self._stream, counted, sizes, time, name)
        return True


def _regular_row(mark: str, *, has_ids: bool) -> re.Pattern[str]:
    """Start, duration, what lies between, and the id at the end of a row of a trace."""
    tail = rf"(.*){mark}([0-9]{{1,18}})" if has_ids else "(.*[^ ])()"
    return re.compile(rf' *([0-9][^"{mark}]*){mark}([^"{mark}]*){mark}{tail} *\Z')


def _is_unit(cell: str) -> bool:
    return cell == "%" or cell in TIME_UNITS or size_factor(cell.removesuffix("/s"), 1024) is not None


def csv_table(sink: Sink, stream: Stream, text: str, number: int) -> RowTaker | None:
    """The table that a line of titles begins, or None when it is no such line."""
    found = header_of(text)
    if found is None:
        return None
    kind, titles, mark = found
    return CsvTable(sink, stream, kind, titles, mark, number, len(cells_of(text.strip(" \ufeff"), mark)))
