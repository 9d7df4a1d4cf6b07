"""GPU work gathered by the place of its API call among the NVTX ranges of the call's thread.

The starts and ends of a thread's ranges cut its time into pieces. Calls that start in the same piece and end in the
same piece lie in the same ranges: they make a cell, and what they launched is only counted and added up. So the
work is streamed, and what stays in memory grows with the calls by 8 bytes each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.readers.nsys.export.source import NULL, narrow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.columns import IntArray

_PROCESS = ~0xFFFFFF  # a serialized global id without its thread
_NOWHERE = -1  # the code of a call that lies in no range


class Boundaries:
    """Starts and ends of ranges by thread. The code of a call says between which of them it starts and ends."""

    def __init__(self, thread: IntArray, start: IntArray, end: IntArray) -> None:
        import numpy as np

        self.threads, counts = np.unique(thread, return_counts=True)
        self.first = np.concatenate(([0], np.cumsum(counts)))  # of each thread, in the two below
        self.starts = start[np.lexsort((start, thread))]
        self.ends = end[np.lexsort((end, thread))]

    def codes(self, thread: IntArray, start: IntArray, end: IntArray) -> IntArray:
        """The code of each call, equal for calls in the same ranges; no thread may be without ranges."""
        import numpy as np

        codes = np.full(len(thread), _NOWHERE, np.int64)
        for place in np.unique(np.searchsorted(self.threads, thread)).tolist():
            mine = (thread == self.threads[place]).nonzero()[0]
            low, high = int(self.first[place]), int(self.first[place + 1])
            began = np.searchsorted(self.starts[low:high], start[mine], "right") - 1
            ends = np.searchsorted(self.ends[low:high], end[mine], "left")
            inside = (began >= 0) & (ends < high - low)
            codes[mine[inside]] = (began[inside] + low) * len(self.starts) + ends[inside] + low
        return codes


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells that launched GPU work, those of one thread together, in the order of `call_start`.

    `call_start` and `call_end` stand for those of every call of the cell: they lie in the same ranges. `count`,
    `busy` (ns), `first` and `last` (ns) are of the operations that the calls launched.
    """

    place: IntArray  # of the thread in `Boundaries.threads`
    call_start: IntArray
    call_end: IntArray
    count: IntArray
    busy: IntArray
    first: IntArray
    last: IntArray


def gather(boundaries: Boundaries, calls: Iterable[Batch], operations: Iterable[Batch]) -> Cells:
    """The operations by the cell of the call that has their process and correlation id; of several the first."""
    import numpy as np

    index = _CallIndex()
    for batch in calls:
        codes = boundaries.codes(batch["globalTid"], batch["start"], batch["end"])
        index.add(batch["globalTid"] & _PROCESS, batch["correlationId"], codes)
    codes = index.finish()
    sums = _Sums(len(codes))
    for batch in operations:
        cells = index.cells(batch["globalPid"] & _PROCESS, batch["correlationId"])
        known = cells >= 0
        if known.any():
            sums.add(cells[known], batch["start"][known], batch["end"][known])
    some = ((sums.count > 0) & (codes != _NOWHERE)).nonzero()[0]
    began, ended = np.divmod(codes[some], max(len(boundaries.starts), 1))
    place = np.asarray(np.searchsorted(boundaries.first, began, "right") - 1)
    return Cells(
        place, boundaries.starts[began], boundaries.ends[ended],
        sums.count[some], sums.busy[some], sums.first[some], sums.last[some],
    )  # fmt: skip


class _CallIndex:
    """From process and correlation id to the number of a cell."""

    def __init__(self) -> None:
        self._parts: dict[int, list[tuple[IntArray, IntArray, IntArray]]] = {}
        self._lookups: dict[int, Lookup] = {}

    def add(self, process: IntArray, correlation: IntArray, codes: IntArray) -> None:
        import numpy as np

        for one in np.unique(process).tolist():
            mine = process == one
            different, which = np.unique(codes[mine], return_inverse=True)
            self._parts.setdefault(one, []).append((narrow(correlation[mine]), different, which.astype(np.int32)))

    def finish(self) -> IntArray:
        """The different codes, ascending: the place of one is the number of its cell."""
        import numpy as np

        found = [different for parts in self._parts.values() for _, different, _ in parts]
        codes = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
        for process in list(self._parts):
            parts = self._parts.pop(process)
            keys = np.concatenate([key for key, _, _ in parts])
            cells = np.concatenate([np.searchsorted(codes, d).astype(np.int32)[which] for _, d, which in parts])
            self._lookups[process] = Lookup(keys, cells)
        return codes

    def cells(self, process: IntArray, correlation: IntArray) -> IntArray:
        """The cell of each, -1 where no call has this process and correlation id."""
        import numpy as np

        out = np.full(len(process), -1, np.int64)
        for one in np.unique(process).tolist():
            if one in self._lookups:
                mine = process == one
                out[mine] = self._lookups[one].of(correlation[mine])
        return out


class Lookup:
    """Values by key; of equal keys the first counts, and NULL is no key."""

    def __init__(self, keys: IntArray, values: IntArray) -> None:
        import numpy as np

        if len(keys) and int(keys.min()) == NULL:
            known = keys != NULL
            keys, values = keys[known], values[known]
        self._low, self._high = (int(keys.min()), int(keys.max())) if len(keys) else (0, -1)
        self._table: IntArray | None = None
        if self._high - self._low <= 8 * len(keys) + 1024:  # correlation ids count up: a table beats a search
            self._table = np.full(self._high - self._low + 2, -1, np.int32)  # the last place is of all other keys
            for end in range(len(keys), 0, -_SLICE):  # a slice at a time, from the last to the first
                part = slice(max(end - _SLICE, 0), end)
                self._table[keys[part][::-1].astype(np.int64) - self._low] = values[part][::-1]
            return
        order = np.argsort(keys, kind="stable")
        self._keys, self._values = keys[order], values[order]

    def of(self, wanted: IntArray) -> IntArray:
        """The value of each key, -1 where there is none."""
        import numpy as np

        if self._table is not None:
            if len(wanted) and self._low <= int(wanted.min()) and int(wanted.max()) <= self._high:
                return self._table[wanted - self._low]
            inside = (wanted >= self._low) & (wanted <= self._high)
            return self._table[np.where(inside, wanted.astype(np.int64) - self._low, -1)]
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, self._values[at], -1)


_SLICE = 1 << 20  # keys put into a table at a time


class _Sums:
    """Count, time, first start and last end of the operations of each cell."""

    def __init__(self, cells: int) -> None:
        import numpy as np

        self.count, self.busy = np.zeros(cells, np.int64), np.zeros(cells, np.int64)
        self.first, self.last = np.full(cells, np.iinfo(np.int64).max), np.full(cells, np.iinfo(np.int64).min)

    def add(self, cells: IntArray, start: IntArray, end: IntArray) -> None:
        """Take operations; those of one cell mostly follow each other and are folded first."""
        import numpy as np

        heads = np.flatnonzero(np.concatenate(([True], cells[1:] != cells[:-1])))
        at = cells[heads]
        np.add.at(self.count, at, np.diff(np.append(heads, len(cells))))
        np.add.at(self.busy, at, np.add.reduceat(end - start, heads))
        np.minimum.at(self.first, at, np.minimum.reduceat(start, heads))
        np.maximum.at(self.last, at, np.maximum.reduceat(end, heads))
