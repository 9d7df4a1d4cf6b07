"""Traces that `nsys stats` prints and nsw has no trace for, added up to the summary that they are the events of.

NVTX push/pop ranges, the GPU work of ranges, MPI calls, page faults by instruction. The figures are those that a
reading of the database itself gives; where times were printed in another unit than ns their half-widths are known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsw.readers.nsys.stats.rows import add_projected, put, range_name
from nsw.readers.nsys.stats.traces import Columns
from nsw.readers.text.quantities import Quantity
from nsw.readers.timeline.communication_by_name import bytes_are_sent
from nsw.readers.timeline.statistics import statistics, with_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nsw.readers.nsys.stats.columns import Marks
    from nsw.readers.nsys.stats.grids import Grid
    from nsw.readers.nsys.stats.reports import Kind
    from nsw.tables import Row

_LONGEST = 2**53  # ns, 104 days: exact as a float
TALLIED: dict[Kind, str] = {
    "nvtx_trace": "nvtx_summary",
    "nvtx_gpu_trace": "nvtx_gpu_summary",
    "mpi_trace": "communication",
    "cpu_faults": "um_summary",
}


@dataclass(slots=True)
class _Times:
    """Durations of one name in ns, and the greatest half-width among them: None where all are exact."""

    values: list[float] = field(default_factory=list)
    pm: float | None = None

    def add(self, duration: Quantity) -> None:
        self.values.append(duration.value)
        if duration.pm is not None:
            self.pm = max(self.pm or 0.0, duration.pm)


class Tally:
    """One printed trace as its parts come."""

    def __init__(self, kind: Kind, first: Grid, rank: int | None) -> None:
        self.table = TALLIED[kind]
        self.first = first
        self.rank = rank
        self.contradictions: list[int] = []  # lines of rows whose end is not their start and their duration
        self.unended = 0
        self._times: dict[str, _Times] = {}
        self._projected: dict[str, Row] = {}
        self._sent: dict[str, list[Quantity]] = {}
        self._ranks: set[int | None] = set()
        self._faults = 0
        self._take: Callable[[Grid, Columns], None] = {
            "nvtx_trace": self._ranges, "nvtx_gpu_trace": self._projections, "mpi_trace": self._mpi,
        }.get(kind, self._page_faults)  # fmt: skip

    def add(self, grid: Grid, marks: Marks) -> None:
        """Take the next rows of the trace."""
        if grid.rows:
            self._take(grid, Columns(grid, marks))

    def rows(self) -> list[Row]:
        """The summary."""
        if self._projected:
            return list(self._projected.values())
        if self._faults:
            return [{"name": "CPU page faults", "calls": self._faults}]
        if self.table == "nvtx_summary":
            return _shared([{"name": name, "style": "pushpop"} | _figures(t) for name, t in self._times.items()])
        return _shared([self._call(name, times) for name, times in self._times.items()])

    def _call(self, name: str, times: _Times) -> Row:
        row: Row = {"library": "mpi", "name": name} | _figures(times)
        if sent := self._sent.get(name):
            put(row, "total_bytes", _sum(sent))
        if len(self._ranks) == 1:
            row["rank"] = next(iter(self._ranks))
        return row

    def _ranges(self, grid: Grid, columns: Columns) -> None:
        names = columns.texts("name")
        for place, duration in self._ended(grid, columns):
            self._times.setdefault(range_name(names[place]), _Times()).add(duration)

    def _projections(self, grid: Grid, columns: Columns) -> None:
        del grid
        figures = zip(
            columns.texts("name"), columns.counts("rangeid"),
            columns.counts("numgpuops"), columns.times("projected duration"),
            strict=True,
        )  # fmt: skip
        for name, number, operations, projected in figures:
            if number is None:
                continue  # 2023 has a row of what was launched in no range
            add_projected(self._projected, range_name(name), 1, operations, projected)

    def _mpi(self, grid: Grid, columns: Columns) -> None:
        self._ranks |= set(columns.counts("rank"))
        names = columns.texts("event")
        sizes = [columns.sizes(name) for name in ("size", "collsendsize")]
        for place, duration in self._ended(grid, columns):
            name = names[place]
            self._times.setdefault(name, _Times()).add(duration)
            sent = next((size[place] for size in sizes if size[place] is not None), None)
            if sent is not None and bytes_are_sent(name):
                self._sent.setdefault(name, []).append(sent)

    def _page_faults(self, grid: Grid, columns: Columns) -> None:
        del grid
        self._faults += sum(count for count in columns.counts("cpu page faults") if count is not None)

    def _ended(self, grid: Grid, columns: Columns) -> Iterator[tuple[int, Quantity]]:
        """Place and duration of each event that has an end, and the end that it should have."""
        times = zip(columns.times("start"), columns.times("end"), columns.times("duration"), strict=True)
        for place, (start, end, duration) in enumerate(times):
            if duration is None and end is None and start is not None:
                self.unended += 1
            elif start is None or end is None or duration is None or not _fits(start, end, duration):
                self.contradictions.append(grid.rows[place][0])
            else:
                yield place, duration


def _fits(start: Quantity, end: Quantity, duration: Quantity) -> bool:
    slack = sum(q.pm or 0.0 for q in (start, end, duration))
    apart = abs(start.value + duration.value - end.value)
    return apart <= slack * 1.001 and 0 <= duration.value < _LONGEST


def _figures(times: _Times) -> Row:
    import numpy as np

    values = np.sort(np.array(times.values, np.float64))
    n, pm = len(values), times.pm
    if pm is None and values[-1] * n < 2**62:
        return statistics(values.astype(np.int64))
    row: dict[str, Any] = {"calls": n}
    put(row, "total_ns", Quantity(float(values.sum()), pm and n * pm))
    middle = (values[(n - 1) // 2] + values[n // 2]) / 2
    for key, value in (("avg", values.mean()), ("med", middle), ("min", values[0]), ("max", values[-1])):
        put(row, f"{key}_ns", Quantity(float(value), pm))
    if n > 1:  # no deviation from the mean moves by more than what all values together can
        put(row, "stddev_ns", Quantity(float(values.std(ddof=1)), pm and pm * math.sqrt(n / (n - 1))))
    return row


def _sum(quantities: Sequence[Quantity]) -> Quantity:
    widths = [q.pm for q in quantities if q.pm is not None]
    return Quantity(float(sum(q.value for q in quantities)), float(sum(widths)) if widths else None)


def _shared(rows: list[Row]) -> list[Row]:
    """With shares of their sum, which rounded times do not have."""
    return rows if any("total_ns_pm" in row for row in rows) else with_shares(rows)
