"""GPU work projected on the NVTX ranges under which it was launched.

A GPU operation belongs to every range, on any level of the stack, of the thread that launched it, whose span
holds the API call with the operation's correlation id in the same process. The range's projection is the span
from the first start to the last end of its operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.readers.nsys.export.gpu_work_by_range import Boundaries, gather
from nsw.readers.nsys.export.slice_extremes import Extremes
from nsw.readers.nsys.export.source import NULL, NVTX, TableFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.nsys.export.collect import Collected
    from nsw.readers.nsys.export.gpu_work_by_range import Cells
    from nsw.readers.nsys.export.nvtx import Ranges
    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.columns import IntArray
    from nsw.tables import Row

_MOST = 10**9  # pairs of such a range and a cell that are looked at; a sound report has none


def nvtx_gpu_summary(ranges: Ranges, calls: Collected | None, gpu: Iterable[Collected]) -> list[Row]:
    """One row a range name and domain with GPU work, most projected time first.

    Args:
        ranges: The ranges.
        calls: The CUDA API calls, with start, correlationId and globalTid.
        gpu: The tables of GPU work, with start, correlationId and globalPid.

    Raises:
        TableFault: A table that is needed is damaged.
    """
    import numpy as np

    usable = ~np.isin(ranges.label, list(ranges.marks)) & (ranges.thread != NULL)
    # ended on another thread: it covers no stretch of one thread's calls
    usable &= (ranges.end_thread == NULL) | (ranges.end_thread == ranges.thread)
    chosen = usable.nonzero()[0]
    if not len(chosen) or calls is None:
        return []
    chosen = chosen[np.argsort(ranges.thread[chosen], kind="stable")]
    start, end, thread, label = (a[chosen] for a in (ranges.start, ranges.end, ranges.thread, ranges.label))
    boundaries = Boundaries(thread, start, end)
    span = int(start.min()), int(end.max())
    cells = gather(boundaries, _calls(calls, boundaries.threads, span), _operations(gpu))
    names = [name for _, *name in ranges.labels]
    numbers: dict[tuple[str | None, ...], int] = {}
    number = np.array([numbers.setdefault(tuple(n), len(numbers)) for n in names], np.int64)[label]
    totals = np.zeros((4, len(numbers)), np.int64)
    spans: list[tuple[IntArray, IntArray]] = []  # the labels and projections of the ranges with operations
    for place in range(len(boundaries.threads)):
        low, high = np.searchsorted(cells.place, (place, place + 1)).tolist()
        mine = slice(int(boundaries.first[place]), int(boundaries.first[place + 1]))
        if low < high:
            figures = _project(start[mine], end[mine], _part(cells, slice(low, high)))
            _add(totals, number[mine], figures)
            some = figures[0] > 0
            spans.append((number[mine][some], figures[3][some]))
    medians = _medians(spans)
    rows = [
        {
            "domain": domain, "name": name, "calls": calls, "gpu_ops": ops,
            "gpu_ns": float(busy), "projected_ns": float(projected), "projected_med_ns": medians.get(at),
        }
        for at, ((domain, name), (calls, ops, busy, projected)) in enumerate(
            zip(numbers, totals.T.tolist(), strict=True)
        )
        if calls
    ]  # fmt: skip
    return sorted(rows, key=lambda r: -r["projected_ns"])


def _add(totals: IntArray, label: IntArray, figures: IntArray) -> None:
    import numpy as np

    for row, values in zip(totals, figures, strict=True):
        np.add.at(row, label, values)


def _medians(spans: list[tuple[IntArray, IntArray]]) -> dict[int, float]:
    """The median projection of each label."""
    import numpy as np

    from nsw.readers.timeline.statistics import group

    if not spans:
        return {}
    grouped = group(*(np.concatenate(column) for column in zip(*spans, strict=True)))
    return {key: float(np.median(grouped.of(at))) for at, key in enumerate(grouped.keys)}


def _part(cells: Cells, which: IntArray | slice) -> Cells:
    return type(cells)(*(getattr(cells, name)[which] for name in cells.__slots__))


def _project(start: IntArray, end: IntArray, cells: Cells) -> IntArray:
    """For each range: 1 if it has operations, how many, their time, their span; shape (4, ranges)."""
    import numpy as np

    low = np.searchsorted(cells.call_start, start, "left")
    high = np.searchsorted(cells.call_start, end, "right")
    figures = np.zeros((4, len(start)), np.int64)
    some = (low < high).nonzero()[0]
    if not len(some):
        return figures
    low, high = low[some], high[some]
    count, busy = (np.concatenate(([0], np.cumsum(values))) for values in (cells.count, cells.busy))
    first, last = Extremes(cells.first, np.minimum).of(low, high), Extremes(cells.last, np.maximum).of(low, high)
    figures[:, some] = (np.ones_like(low), count[high] - count[low], busy[high] - busy[low], last - first)
    over = Extremes(cells.call_end, np.maximum).of(low, high) > end[some]
    if int((high - low)[over].sum()) > _MOST:
        raise TableFault(NVTX, "too many ranges end in the middle of API calls to be projected on the GPU")
    for index in over.nonzero()[0].tolist():
        figures[:, some[index]] = _one(_part(cells, slice(low[index], high[index])), int(end[some[index]]))
    return figures


def _one(cells: Cells, end: int) -> tuple[int, int, int, int]:
    """The figures of one range of which some calls go on after its end; those do not count."""
    inside = cells.call_end <= end
    if not inside.any():
        return (0, 0, 0, 0)
    mine = _part(cells, inside.nonzero()[0])
    return (1, int(mine.count.sum()), int(mine.busy.sum()), int(mine.last.max() - mine.first.min()))


def _calls(calls: Collected, threads: IntArray, span: tuple[int, int]) -> Iterator[Batch]:
    """The calls of these threads within the span, in batches."""
    import numpy as np

    for batch in calls.batches("globalTid", "correlationId"):
        wanted = (batch["correlationId"] != NULL) & (batch["start"] >= span[0]) & (batch["start"] <= span[1])
        wanted &= np.isin(batch["globalTid"], threads)
        if wanted.any():
            yield batch if wanted.all() else {name: values[wanted] for name, values in batch.items()}


def _operations(gpu: Iterable[Collected]) -> Iterator[Batch]:
    """All work of the GPUs whose process is known, in batches."""
    for found in gpu:
        for batch in found.batches("globalPid", "correlationId"):
            wanted = (batch["globalPid"] != NULL) & (batch["correlationId"] != NULL)
            yield batch if wanted.all() else {name: values[wanted] for name, values in batch.items()}
