"""nvprof's --csv tables: quoted as nvprof writes them, and as spreadsheets and people leave them.

A line of titles, then mostly a line of units (`,%,ms,,us,us,ms,`: a unit for each column, changing from file
to file), then the rows. What came through a spreadsheet has lost its quotes, and names have commas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from nsw.readers.nvprof.text.counters import DAMAGED, UNITS_NAME, UNITS_SIGN, add_metric, add_units, are_of_one_kind
from nsw.readers.nvprof.text.other_tables import add_memory_row, is_lone_total, misplaced_count, size_of
from nsw.readers.nvprof.text.state import Stream, cells_of
from nsw.readers.nvprof.text.summaries import SECTIONS, add_summary_row, calls_of, figures_of
from nsw.readers.nvprof.text.traces import TraceColumns, is_unit
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import QUANTITY, duration, parse_integer, percent

__all__ = ["csv_table", "header_of"]


_MARKS = re.compile(r'"?(?:Type|Time\(%\)|Start|Device|Invocations|Context)"?\s*[,;\t]')
_DEVICE = re.compile(r"\(\d{1,4}\)\s*\Z")
_NEAR = 1  # cells that a row may lack, or have too many, to be taken for a damaged one
_CSV_TAIL: Final = re.compile(rf'"{UNITS_NAME}"(?:,"(?P<text>[^"]*)")?,,,(?P<values>.*)\Z')
_KINDS = meaning_by_word("nvprof-csv kinds")


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
            for needed, kind in _KINDS.items():
                if set(needed.split("|")) <= set(titles):
                    return kind, titles, mark
    return None


class CsvTable:
    """One CSV table being read."""

    def __init__(self, stream: Stream, kind: str, titles: list[str], mark: str, number: int, padded: int) -> None:
        self._stream = stream
        self._titles = titles
        self._padded = padded  # cells of the line of titles, with empty ones behind them that a spreadsheet adds
        self._mark = mark
        self._kind = kind
        # where a name with commas of its own may spread over several cells
        self._flexible = next((titles.index(t) for t in ("Name", "Kernel") if t in titles), len(titles) - 1)
        self._units: list[str] = [""] * len(titles)
        self._add_row: Callable[[Sequence[str], int], bool] | None = None
        self._is_damaged = False  # the units do not fit the titles: no number has a unit that is known
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row or the line of units."""
        if self._kind == "metrics" and UNITS_SIGN in text:
            return self._take_units_of_gpu(number, text)
        if self._mark not in text or text.startswith("="):
            return False
        cells = cells_of(text.strip(" ") if self._mark != "\t" else text, self._mark)
        if not cells:  # one is longer than Python's csv module takes
            return self._report_cut_row(number, [cell.strip(' "') for cell in text.split(self._mark)])
        if not self.rows and self._take_units(cells):
            return True
        fitted = None if self._is_damaged else self._fit_to_titles(cells, quoted='"' in text)
        if fitted is None:
            return self._report_cut_row(number, cells)
        if self._add_row is None:
            self._add_row = self._row_adder()
        if not self._add_row(fitted, number):
            return self._report_cut_row(number, cells)
        self.rows += 1
        return True

    def _take_units_of_gpu(self, number: int, text: str) -> bool:
        """A row of the values of all units of a GPU."""
        match = _CSV_TAIL.search(text)
        cells = cells_of(text[: match.start()].strip(), self._mark) if match is not None else []
        at = [self._titles.index(t) if t in self._titles else len(cells) for t in ("Device", "Kernel", "Invocations")]
        if match is None or max(at) >= len(cells):
            self._stream.sink.fault(DAMAGED, number)
            return True
        device, kernel, calls = (cells[position].strip() for position in at)
        self._stream.set_device(device)
        if add_units(self._stream, number, kernel or None, parse_integer(calls), match.groupdict()):
            self.rows += 1
        return True

    def _row_adder(self) -> Callable[[Sequence[str], int], bool]:
        """What puts the cells of a row, of the line of this number, into the sink."""
        if self._kind == "trace":
            columns = TraceColumns(self._stream, self._titles, self._units)
            return lambda cells, _: columns.add(cells)
        return partial(_ADDERS[self._kind], self._stream, Titles(self._titles, self._units))

    def _report_cut_row(self, number: int, cells: Sequence[str]) -> bool:
        if not cells or not self._looks_like_a_row(cells):
            return False  # a line of the program's own
        self._stream.sink.fault("a row of a CSV table is cut short or damaged", number)
        return True

    def _looks_like_a_row(self, cells: Sequence[str]) -> bool:
        if self._kind == "memory" or cells[0][:1].isdigit() or cells[0].strip() in SECTIONS:
            return True
        # one that lost its first cell, or what is in it; the first of a metric is a name
        is_near = abs(len(cells) - len(self._titles)) <= _NEAR
        if self._kind == "metrics":
            return is_near or bool(_DEVICE.search(cells[0]))
        return is_near and not cells[0].strip()

    def _take_units(self, cells: Sequence[str]) -> bool:
        stripped = [c.strip() for c in cells]
        if not any(stripped) or not all(c in {"", "%"} or is_unit(c) for c in stripped):
            return False
        width = len(self._titles)
        self._units = (stripped + [""] * width)[:width]
        self._is_damaged = not width <= len(stripped) <= self._padded or any(stripped[width:])
        return True

    def _fit_to_titles(self, cells: list[str], *, quoted: bool) -> list[str] | None:
        """The cells, as many as there are titles: a name that was split at its commas is joined again.

        In quotes a name is one cell, and none begins with a number: then there is a cell too many or a title missing.
        """
        width = len(self._titles)
        if len(cells) > width and '"' not in "".join(cells[width:]):
            while len(cells) > width and not cells[-1].strip():
                cells.pop()
        if len(cells) == width:
            return None if cells[self._flexible].count('"') % 2 else cells
        if len(cells) < width:
            return None
        extra = len(cells) - width
        at = self._flexible
        if quoted or QUANTITY.fullmatch(cells[at].strip()):
            return None
        return [*cells[:at], self._mark.join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]


_TIMES: Final = ("Time", "Avg", "Min", "Max")
_SUMMARY: Final = ("Name", "Type", "Calls", "Calls (host)", "Calls (device)", "Time(%)", *_TIMES)
_METRICS: Final = (
    *("Device", "Kernel", "Metric Name", "Event Name", "Metric Description", "Invocations"), *("Min", "Max", "Avg"),
)  # fmt: skip
_SIZES: Final = ("Avg Size", "Min Size", "Max Size", "Total Size")


class Titles:
    """Where in a row the cell of each title is, and the unit of its column."""

    def __init__(self, titles: Sequence[str], units: Sequence[str]) -> None:
        self.titles, self.units = titles, units
        self._at = {title: at for at, title in enumerate(titles)}

    def cells_of_titles(self, cells: Sequence[str], requested: Sequence[str]) -> list[str]:
        """The cells of these titles; "" for a title that there is not."""
        return ["" if (at := self._at.get(title)) is None else cells[at].strip() for title in requested]

    def unit(self, title: str) -> str | None:
        """The unit of a column."""
        at = self._at.get(title)
        return None if at is None else self.units[at] or None


def _add_summary(stream: Stream, titles: Titles, cells: Sequence[str], number: int) -> bool:
    """A row of a summary, with the Type column or without; whether its cells are what the titles say."""
    name, label, plain_calls, host, device, share, *times = titles.cells_of_titles(cells, _SUMMARY)
    calls = calls_of(host or plain_calls, device)
    total, avg, low, high = map(duration, times, map(titles.unit, _TIMES))
    if not name or calls is None or total is None:
        return False
    stream.section = _section_of_label(stream, label)
    add_summary_row(stream, number, figures_of(percent(share), calls, total, avg, low, high), name)
    return True


def _section_of_label(stream: Stream, label: str) -> str:
    if label:
        return SECTIONS.get(label.rstrip(":"), "other")
    return stream.section or "gpu"


def _add_counter(stream: Stream, titles: Titles, cells: Sequence[str], _: int) -> bool:
    """A row of metrics or events."""
    device, kernel, metric, event, description, invocations, *values = titles.cells_of_titles(cells, _METRICS)
    calls = parse_integer(invocations)
    if not kernel or not (metric or event) or calls is None or not all(values):
        return False
    if not are_of_one_kind(values[:3]):
        return False
    stream.set_device(device)
    add_metric(stream, kernel, metric or event, description or None, calls, values)
    return True


def _add_memory(stream: Stream, titles: Titles, cells: Sequence[str], _: int) -> bool:
    """A row of Unified Memory."""
    name = cells[-1].strip()
    if not name or name in titles.titles:
        return False
    device, count, time, *printed = titles.cells_of_titles(cells, ("Device", "Count", "Total Time", *_SIZES))
    stream.set_device(device)
    counted = parse_integer(count)
    sizes = list(map(size_of, printed, map(titles.unit, _SIZES)))
    misplaced = misplaced_count(name, count, printed[3])
    if misplaced is not None:
        counted, sizes[3] = misplaced, None
    elif is_lone_total(counted, sizes):
        return False
    # some versions print a time without any unit; it is then no time
    took = duration(time, titles.unit("Total Time"))
    if name.startswith("Remote mapping"):
        took = None  # nvprof prints the bytes there, as a time
    add_memory_row(stream, counted, sizes, took, name)
    return True


_ADDERS: Final = {"summary": _add_summary, "metrics": _add_counter, "memory": _add_memory}


def csv_table(stream: Stream, text: str, number: int, header: tuple[str, list[str], str]) -> CsvTable:
    """The CSV table that a line of titles begins.

    Args:
        stream: Takes the rows, and names process and device.
        text: The line.
        number: Its number, from 1.
        header: What `header_of` made of the line: kind of table, titles, delimiter.
    """
    padded = len(cells_of(text.strip(" \ufeff"), header[2]))
    return CsvTable(stream, *header, number, padded)
