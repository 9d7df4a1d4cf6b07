"""GPU work projected on the NVTX ranges under which it was launched.

A GPU operation belongs to every range, on any level of the stack, of the thread that launched it, whose span
holds the API call with the operation's correlation id in the same process. The range's projection is the span
from the first start to the last end of its operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.readers.nsys_extremes import Extremes
from nsw.readers.nsys_source import (
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    NULL,
    NVTX,
    RUNTIME,
    TableFault,
    has_columns,
    require_integers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.nsys_nvtx import Ranges
    from nsw.readers.nsys_source import Batch, IntArray, Source
    from nsw.tables import Row

_MOST = 10**9  # pairs of such a range and a call that are looked at; a sound report has none
_PROCESS = ~0xFFFFFF  # a serialized global id without its thread


@dataclass(slots=True)
class _Launched:
    """GPU operations with the call that launched each."""

    thread: IntArray
    call_start: IntArray
    call_end: IntArray
    start: IntArray
    end: IntArray

    def take(self, which: IntArray | slice) -> _Launched:
        return _Launched(
            self.thread[which],
            self.call_start[which],
            self.call_end[which],
            self.start[which],
            self.end[which],
        )


def nvtx_gpu_summary(source: Source, ranges: Ranges) -> list[Row]:
    """One row a range name and domain with GPU work, most projected time first.

    Raises:
        TableFault: A table that is needed is damaged.
    """
    import numpy as np

    usable = ~np.isin(ranges.label, list(ranges.marks)) & (ranges.thread != NULL)
    # ended on another thread: it covers no stretch of one thread's calls
    usable &= (ranges.end_thread == NULL) | (ranges.end_thread == ranges.thread)
    chosen = usable.nonzero()[0]
    if not len(chosen) or not has_columns(source, RUNTIME, "start", "end", "globalTid", "correlationId"):
        return []
    launched = _launched(source, ranges, chosen)
    if launched is None:
        return []
    names = [label[1:] for label in ranges.labels]
    numbers: dict[tuple[str | None, str | None], int] = {}
    number = np.array([numbers.setdefault(n, len(numbers)) for n in names], np.int64)
    totals = np.zeros((4, len(numbers)), np.int64)
    for part, operations in _by_thread(ranges, chosen, launched):
        figures = _project(ranges.start[part], ranges.end[part], operations)
        _add(totals, number[ranges.label[part]], figures)
    rows = [
        {
            "domain": domain, "name": name, "calls": calls, "gpu_ops": ops,
            "gpu_ns": float(busy), "projected_ns": float(projected),
        }
        for (domain, name), (calls, ops, busy, projected) in zip(numbers, totals.T.tolist(), strict=True)
        if calls
    ]  # fmt: skip
    return sorted(rows, key=lambda r: -r["projected_ns"])


def _add(totals: IntArray, label: IntArray, figures: IntArray) -> None:
    import numpy as np

    for row, values in zip(totals, figures, strict=True):
        np.add.at(row, label, values)


def _by_thread(ranges: Ranges, chosen: IntArray, launched: _Launched) -> Iterator[tuple[IntArray, _Launched]]:
    """Ranges and operations of one thread at a time, the operations in order of their calls' start."""
    import numpy as np

    order = np.lexsort((launched.call_start, launched.thread))
    launched = launched.take(order)
    by_thread = chosen[np.argsort(ranges.thread[chosen], kind="stable")]
    threads = ranges.thread[by_thread]
    for thread in np.unique(threads).tolist():
        low, high = np.searchsorted(launched.thread, (thread, thread + 1)).tolist()
        if low < high:
            first, last = np.searchsorted(threads, (thread, thread + 1)).tolist()
            yield by_thread[first:last], launched.take(slice(low, high))


def _project(start: IntArray, end: IntArray, ops: _Launched) -> IntArray:
    """For each range: 1 if it has operations, how many, their time, their span; shape (4, ranges)."""
    import numpy as np

    low = np.searchsorted(ops.call_start, start, "left")
    high = np.searchsorted(ops.call_start, end, "right")
    figures = np.zeros((4, len(start)), np.int64)
    some = (low < high).nonzero()[0]
    if not len(some):
        return figures
    low, high = low[some], high[some]
    before = np.concatenate(([0], np.cumsum(ops.end - ops.start)))
    first, last = Extremes(ops.start, np.minimum).of(low, high), Extremes(ops.end, np.maximum).of(low, high)
    figures[:, some] = (np.ones_like(low), high - low, before[high] - before[low], last - first)
    over = Extremes(ops.call_end, np.maximum).of(low, high) > end[some]
    if int((high - low)[over].sum()) > _MOST:
        raise TableFault(NVTX, "too many ranges end in the middle of API calls to be projected on the GPU")
    for index in over.nonzero()[0].tolist():
        figures[:, some[index]] = _one(ops.take(slice(low[index], high[index])), int(end[some[index]]))
    return figures


def _one(ops: _Launched, end: int) -> tuple[int, int, int, int]:
    """The figures of one range of which some calls go on after its end; those do not count."""
    inside = ops.call_end <= end
    if not inside.any():
        return (0, 0, 0, 0)
    starts, ends = ops.start[inside], ops.end[inside]
    return (1, len(starts), int((ends - starts).sum()), int(ends.max() - starts.min()))


def _launched(source: Source, ranges: Ranges, chosen: IntArray) -> _Launched | None:
    """Every GPU operation whose launching call may lie in a range."""
    import numpy as np

    threads = np.unique(ranges.thread[chosen])
    span = int(ranges.start[chosen].min()), int(ranges.end[chosen].max())
    calls = _joined(_calls(source, threads, span))
    if calls is None or not len(calls["start"]):
        return None
    asked = calls["correlationId"]
    operations = _joined(_operations(source, (int(asked.min()), int(asked.max()))))
    if operations is None:
        return None
    call = _match(
        operations["globalPid"] & _PROCESS, operations["correlationId"],
        calls["globalTid"] & _PROCESS, calls["correlationId"],
    )  # fmt: skip
    known = call >= 0
    call = call[known]
    if not len(call):
        return None
    return _Launched(
        calls["globalTid"][call], calls["start"][call], calls["end"][call],
        operations["start"][known], operations["end"][known],
    )  # fmt: skip


def _calls(source: Source, threads: IntArray, span: tuple[int, int]) -> Iterator[Batch]:
    import numpy as np

    within = {"start": span, "globalTid": (int(threads[0]), int(threads[-1]))}
    for batch in source.scan(RUNTIME, ["start", "end", "globalTid", "correlationId"], within=within):
        require_integers(RUNTIME, batch, "start", "end")
        wanted = (batch["correlationId"] != NULL) & np.isin(batch["globalTid"], threads)
        yield {name: values[wanted] for name, values in batch.items()}


def _operations(source: Source, asked: tuple[int, int]) -> Iterator[Batch]:
    within = {"correlationId": asked}
    for table in (KERNEL, MEMCPY, MEMSET, GRAPH):
        if has_columns(source, table, "start", "end", "correlationId", "globalPid"):
            for batch in source.scan(table, ["start", "end", "correlationId", "globalPid"], within=within):
                require_integers(table, batch, "start", "end")
                wanted = batch["globalPid"] != NULL
                yield {name: values[wanted] for name, values in batch.items()}


def _joined(batches: Iterator[Batch]) -> Batch | None:
    import numpy as np

    parts = list(batches)
    if not parts:
        return None
    return {name: np.concatenate([p.pop(name) for p in parts]) for name in list(parts[0])}


def _match(process: IntArray, key: IntArray, of_process: IntArray, of_key: IntArray) -> IntArray:
    """For each (process, key) the index of its first match among (of_process, of_key), or -1."""
    import numpy as np

    out = np.full(len(key), -1, np.int64)
    for one in np.unique(of_process).tolist():
        mine, theirs = (process == one).nonzero()[0], (of_process == one).nonzero()[0]
        if len(mine):
            found = _lookup(key[mine], of_key[theirs])
            out[mine] = np.where(found >= 0, theirs[found], -1)
    return out


def _lookup(wanted: IntArray, keys: IntArray) -> IntArray:
    """The index in `keys` of the first that equals each wanted, or -1."""
    import numpy as np

    low, high = int(keys.min()), int(keys.max())
    if high - low <= 8 * (len(keys) + len(wanted)) + 1024:  # correlation ids count up: a table beats a search
        table = np.full(high - low + 2, -1, np.int32)
        table[keys[::-1] - low] = np.arange(len(keys) - 1, -1, -1, dtype=np.int32)
        inside = (wanted >= low) & (wanted <= high)
        return table[np.where(inside, wanted - low, high - low + 1)].astype(np.int64)
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    return np.where(keys[order[at]] == wanted, order[at], -1)
