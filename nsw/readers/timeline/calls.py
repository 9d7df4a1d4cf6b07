"""What the host calls, by kind, and the time that intervals cover together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Final

import numpy as np

from nsw.readers.text.known_words import meaning_by_pattern
from nsw.readers.timeline.columns import RunningSums, row_slices, search_near
from nsw.readers.timeline.statistics import IntArray

CALL_KINDS: Final = (
    "launch", "synchronise", "copy", "allocate", "load", "other", "read", "write", "open", "lock", "receive",
    "spawn", "poll",
)  # fmt: skip
LAUNCH, SYNCHRONISE, COPY, ALLOCATE, LOAD, OTHER, READ, WRITE, OPEN, LOCK, RECEIVE, SPAWN, POLL = range(len(CALL_KINDS))


def call_kinds(names: Sequence[str], *, of_system: bool = False) -> Any:
    """The kind of each call by its name, as indices of CALL_KINDS; -1: none that matters.

    Args:
        names: The calls, without or with their version (`cudaMalloc_v3020`).
        of_system: Whether they are calls of the operating system, else of CUDA.
    """
    kinds = [
        (p, CALL_KINDS.index(kind)) for p, kind in meaning_by_pattern("system calls" if of_system else "cuda calls")
    ]
    return np.array([next((kind for p, kind in kinds if p.match(name)), -1) for name in names], np.int8)


@dataclass(frozen=True)
class Calls:
    """What the host of a process calls, CUDA's and the system's, in order of their start; ns of the host's clock."""

    start: IntArray
    duration: IntArray
    kind: IntArray  # an index of CALL_KINDS
    lock_threads: int = 0  # threads of the process that wait for a lock with a time limit
    _covered: dict[frozenset[int], Covered] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def kinds(self) -> frozenset[int]:
        """The kinds that there are; -1 among them where some calls have none."""
        return frozenset((np.flatnonzero(np.bincount(self.kind.astype(np.int64) + 1)) - 1).tolist())

    def ends(self, rows: Any) -> Any:
        """When these calls end."""
        return self.start[rows] + self.duration[rows]

    def ends_of(self, starts: IntArray) -> IntArray:
        """When the calls that began at these times end; of none the time itself."""
        if not len(self.start):
            return starts
        at = np.minimum(search_near(self.start, starts), len(self.start) - 1)
        return np.where(self.start[at] == starts, self.ends(at), starts)

    def time_in_kinds(self, *kinds: int) -> Covered:
        """The time in calls of these kinds, computed once for all who ask."""
        present = self.kinds.intersection(kinds)
        if present not in self._covered:
            masks, empty = (self.kind == kind for kind in present), np.zeros(len(self.kind), bool)
            chosen: Any = slice(None) if present == self.kinds else reduce(np.logical_or, masks, empty)
            self._covered[present] = Covered(self.start[chosen], self.duration[chosen])
        return self._covered[present]


def time_order(times: IntArray) -> Any:
    """What puts times in order, those that are equal in their own: an index; a slice of all where they are in order."""
    return slice(None) if bool((times[1:] >= times[:-1]).all()) else np.argsort(times, kind="stable")


class Covered:
    """The time that intervals cover together."""

    def __init__(self, start: IntArray, duration: IntArray) -> None:
        order = time_order(start)
        self.start, self._length = start[order], duration[order]
        self._sums = RunningSums(len(start), self._covered_times(self._length))
        self.total = self._sums.total

    def _covered_times(self, duration: IntArray) -> Iterator[IntArray]:
        """The time that each interval covers and none before it; `_length` becomes that to the latest end so far."""
        latest = np.iinfo(np.int64).min
        for rows in row_slices(len(duration)):
            start = self.start[rows]
            end = start + duration[rows]
            reach = np.maximum.accumulate(np.append(latest, end))
            if self._length is duration and bool((reach[1:] > end).any()):
                self._length = duration.copy()
            if self._length is not duration:
                self._length[rows] = reach[1:] - start
            yield np.maximum(reach[1:] - np.maximum(start, reach[:-1]), 0)
            latest = reach[-1]

    def reach(self, rows: Any) -> Any:
        """The latest end of each of these intervals, in order of their start, and of those before it."""
        return self.start[rows] + self._length[rows]

    def covered_before(self, times: IntArray) -> IntArray:
        """How much of the time before each of these moments is covered, ns."""
        if not len(self.start):
            return np.zeros(len(times), np.int64)
        count = search_near(self.start, times, "right")
        overlap = np.where(count > 0, np.maximum(self.reach(count - 1) - times, 0), 0)
        return self._sums.before(count) - overlap

    def covered_within(self, start: IntArray, end: IntArray) -> IntArray:
        """How much of each stretch is covered, ns."""
        return self.covered_before(end) - self.covered_before(start)
