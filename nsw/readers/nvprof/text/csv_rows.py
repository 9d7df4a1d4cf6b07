"""The cells of nvprof's CSV tables -> rows: of summaries, metrics and events, Unified Memory and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from nsw.readers.nvprof.text.metric_rows import add_metric
from nsw.readers.nvprof.text.summary_rows import SECTIONS, add_summary_row, calls_of, figures_of
from nsw.readers.nvprof.text.trace_rows import TraceColumns
from nsw.readers.nvprof.text.unified_memory import (
    add_memory_row,
    is_lone_total,
    misplaced_count,
    size_of,
)
from nsw.readers.nvprof.text.values import are_of_one_kind
from nsw.readers.text.quantities import duration, percent, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.text.state import Sink, Stream

_TIMES: Final = ("Time", "Avg", "Min", "Max")
_SUMMARY: Final = ("Name", "Type", "Calls", "Calls (host)", "Calls (device)", "Time(%)", *_TIMES)
_METRICS: Final = (
    *("Device", "Kernel", "Metric Name", "Event Name", "Metric Description", "Invocations"), *("Min", "Max", "Avg"),
)  # fmt: skip
_SIZES: Final = ("Avg Size", "Min Size", "Max Size", "Total Size")


class Rows(Protocol):
    """What the rows of a table of one kind become."""

    def add(self, cells: Sequence[str], number: int) -> bool:
        """One row, of the line of this number; whether its cells are what the titles say."""


class Titles:
    """Where in a row the cell of each title is, and the unit of its column."""

    def __init__(self, titles: Sequence[str], units: Sequence[str]) -> None:
        self.titles, self.units = titles, units
        self._at = {title: at for at, title in enumerate(titles)}

    def picked(self, cells: Sequence[str], wanted: Sequence[str]) -> list[str]:
        """The cells of these titles; "" for a title that there is not."""
        return ["" if (at := self._at.get(title)) is None else cells[at].strip() for title in wanted]

    def unit(self, title: str) -> str | None:
        """The unit of a column."""
        at = self._at.get(title)
        return None if at is None else self.units[at] or None


class SummaryRows:
    """Rows of summaries, with the Type column and without."""

    def __init__(self, sink: Sink, stream: Stream, titles: Titles) -> None:
        self._sink, self._stream, self._titles = sink, stream, titles
        self._units = [titles.unit(title) for title in _TIMES]

    def add(self, cells: Sequence[str], number: int) -> bool:
        """One row."""
        name, label, either, host, device, share, *times = self._titles.picked(cells, _SUMMARY)
        calls = calls_of(host or either, device)
        total, avg, low, high = map(duration, times, self._units)
        if not name or calls is None or total is None:
            return False
        self._stream.section = _section(self._stream, label)
        add_summary_row(
            self._sink, self._stream, number, figures_of(percent(share), calls, total, avg, low, high), name
        )
        return True


def _section(stream: Stream, label: str) -> str:
    if label:
        return SECTIONS.get(label.rstrip(":"), "other")
    return stream.section or "gpu"


class MetricRows:
    """Rows of metrics and events."""

    def __init__(self, sink: Sink, stream: Stream, titles: Titles) -> None:
        self._sink, self._stream, self._titles = sink, stream, titles

    def add(self, cells: Sequence[str], _: int) -> bool:
        """One row."""
        device, kernel, metric, event, description, invocations, *values = self._titles.picked(cells, _METRICS)
        calls = whole(invocations)
        if not kernel or not (metric or event) or calls is None or not all(values):
            return False
        if not are_of_one_kind(values[:3]):
            return False
        self._stream.set_device(device)
        add_metric(self._sink, self._stream, kernel, metric or event, description or None, calls, values)
        return True


class MemoryRows:
    """Rows of Unified Memory."""

    def __init__(self, sink: Sink, stream: Stream, titles: Titles) -> None:
        self._sink, self._stream, self._titles = sink, stream, titles
        self._units = [titles.unit(title) for title in _SIZES]

    def add(self, cells: Sequence[str], _: int) -> bool:
        """One row."""
        name = cells[-1].strip()
        if not name or name in self._titles.titles:
            return False
        device, count, time, *printed = self._titles.picked(cells, ("Device", "Count", "Total Time", *_SIZES))
        self._stream.set_device(device)
        counted = whole(count)
        sizes = list(map(size_of, printed, self._units))
        misplaced = misplaced_count(name, count, printed[3])
        if misplaced is not None:
            counted, sizes[3] = misplaced, None
        elif is_lone_total(counted, sizes):
            return False
        # some versions print a time without any unit; it is then no time
        took = duration(time, self._titles.unit("Total Time"))
        if name.startswith("Remote mapping"):
            took = None  # nvprof prints the bytes there, as a time
        add_memory_row(self._sink, self._stream, counted, sizes, took, name)
        return True


class TraceRows:
    """Rows of traces."""

    def __init__(self, sink: Sink, stream: Stream, titles: Titles) -> None:
        self._columns = TraceColumns(sink, stream, titles.titles, titles.units)

    def add(self, cells: Sequence[str], _: int) -> bool:
        """One row."""
        return self._columns.add(cells)
