"""Which kernels of a timeline were launched inside an NVTX range: those that ncu sees with --nvtx-include.

ncu counts the launches of a kernel inside the range alone, over the instances that are asked for (docs/gpu.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_Row: TypeAlias = "Mapping[str, Any]"


@dataclass(frozen=True, slots=True)
class Within:
    """An NVTX range: its name, domain (None: the default one), style, and instances from 1 (empty: all)."""

    name: str
    domain: str | None = None
    start_end: bool = False
    instances: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class _Spans:
    """The stretches of one thread, or of a process: starts in order, and the greatest end up to each."""

    starts: Sequence[int]
    ends: Sequence[int]

    def hold(self, start: int, end: int) -> bool:
        at = bisect_right(self.starts, start) - 1
        return at >= 0 and self.ends[at] >= end


def launched_inside(
    kernels: Iterable[_Row], calls: Iterable[_Row], ranges: Iterable[_Row], within: Within
) -> list[_Row]:
    """The kernels that were launched inside the range.

    Args:
        kernels: Rows of table gpu_trace.
        calls: Rows of table api_trace, in the same time.
        ranges: Rows of table nvtx_trace, in the same time.
        within: The range.
    """
    spans = _spans(ranges, within)
    launched: set[tuple[Any, Any]] = set()
    for call in calls:
        found = spans.get((call["pid"], None if within.start_end else call["tid"]))
        if found is not None and found.hold(call["start_ns"], call["start_ns"] + (call["duration_ns"] or 0)):
            launched.add((call["pid"], call["correlation"]))
    return [row for row in kernels if (row["pid"], row["correlation"]) in launched]


def names_of(ranges: Iterable[_Row], within: Within) -> list[str]:
    """The names of the ranges of the asked style and domain."""
    return list(dict.fromkeys(row["name"] for row in ranges if row["name"] and _is_like(row, within)))


def _is_like(row: _Row, within: Within) -> bool:
    style = "startend" if within.start_end else "pushpop"
    return row["style"] == style and (row["domain"] or None) == within.domain


def _spans(ranges: Iterable[_Row], within: Within) -> dict[tuple[Any, Any], _Spans]:
    """The asked instances by process and thread; the instances of a process are counted by their start."""
    mine = sorted(
        (row for row in ranges if row["name"] == within.name and _is_like(row, within)),
        key=lambda row: row["start_ns"],
    )
    counts: dict[Any, int] = defaultdict(int)
    found: dict[tuple[Any, Any], list[tuple[int, int]]] = defaultdict(list)
    for row in mine:
        counts[row["pid"]] += 1
        if not within.instances or counts[row["pid"]] in within.instances:
            span = (row["start_ns"], row["start_ns"] + (row["duration_ns"] or 0))
            found[row["pid"], None if within.start_end else row["tid"]].append(span)
    return {
        key: _Spans([start for start, _ in some], list(accumulate((end for _, end in some), max)))
        for key, some in found.items()
    }
