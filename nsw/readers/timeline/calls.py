"""What the host calls, by kind, and the time that intervals cover together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.text.known_words import meaning_by_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.timeline.statistics import IntArray

CALL_KINDS: Final = (
    "launch", "synchronise", "copy", "allocate", "load", "other", "read", "write", "open", "lock", "receive",
    "spawn",
)  # fmt: skip
LAUNCH, SYNCHRONISE, COPY, ALLOCATE, LOAD, OTHER, READ, WRITE, OPEN, LOCK, RECEIVE, SPAWN = range(len(CALL_KINDS))
_ALL_KINDS: Final = tuple(range(len(CALL_KINDS)))


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


@dataclass(frozen=True, slots=True)
class Calls:
    """What the host of a process calls, CUDA's and the system's, in order of their start; ns of the host's clock."""

    start: IntArray
    end: IntArray
    kind: IntArray  # an index of CALL_KINDS
    lock_threads: int = 0  # threads of the process that wait for a lock with a time limit
    _covered: dict[tuple[int, ...], Covered] = field(default_factory=dict, repr=False, compare=False)

    def ends_of(self, starts: IntArray) -> IntArray:
        """When the calls that began at these times end; of none the time itself."""
        if not len(self.start):
            return starts
        at = np.minimum(np.searchsorted(self.start, starts), len(self.start) - 1)
        return np.where(self.start[at] == starts, self.end[at], starts)

    def time_in_kinds(self, *kinds: int) -> Covered:
        """The time in calls of these kinds, computed once for all who ask."""
        if kinds not in self._covered:
            is_chosen = np.zeros(len(CALL_KINDS) + 1, bool)  # the last one is of those without a kind
            is_chosen[list(kinds)] = True
            chosen = is_chosen[self.kind]
            if not chosen.all():
                self._covered[kinds] = Covered(self.start[chosen], self.end[chosen])
            else:
                self._covered[kinds] = (
                    Covered(self.start, self.end) if kinds == _ALL_KINDS else self.time_in_kinds(*_ALL_KINDS)
                )
        return self._covered[kinds]


def time_order(times: IntArray) -> Any:
    """What puts times in order, those that are equal in their own: an index; a slice of all where they are in order."""
    return slice(None) if bool((times[1:] >= times[:-1]).all()) else np.argsort(times, kind="stable")


def reach(end: IntArray) -> IntArray:
    """The latest of each end and those before it; the ends themselves where they are in order."""
    return end if bool((end[1:] >= end[:-1]).all()) else np.maximum.accumulate(end)


class Covered:
    """The time that intervals cover together."""

    def __init__(self, start: IntArray, end: IntArray) -> None:
        order = time_order(start)
        self.start, self.reach = start[order], reach(end[order])
        covered = self.reach - self.start
        np.subtract(self.reach[1:], np.maximum(self.start[1:], self.reach[:-1]), out=covered[1:])
        np.maximum(covered, 0, out=covered)
        self.total = np.cumsum(covered, out=covered)

    def covered_before(self, times: IntArray) -> IntArray:
        """How much of the time before each of these moments is covered, ns."""
        if not len(self.start):
            return np.zeros(len(times), np.int64)
        at = np.searchsorted(self.start, times, "right") - 1
        until = np.where(at >= 0, self.total[at] - np.maximum(self.reach[at] - times, 0), 0)
        return np.asarray(until)

    def covered_within(self, start: IntArray, end: IntArray) -> IntArray:
        """How much of each stretch is covered, ns."""
        return self.covered_before(end) - self.covered_before(start)
