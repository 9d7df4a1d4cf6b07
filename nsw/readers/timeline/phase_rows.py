"""The rows of tables `phases`, `iterations` and `iteration_trace`, whatever the timeline was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.timeline.phases import PHASES, SETUP, STEADY, Operations, Phased, busy_between
from nsw.readers.timeline.statistics import statistics, with_shares

if TYPE_CHECKING:
    from nsw.readers.timeline.array_types import IntArray
    from nsw.tables import Row

NO_ITERATIONS: Final = "no NVTX range, step marker or sequence of kernels repeats"
_TIMES: Final = ("med_ns", "avg_ns", "min_ns", "max_ns", "stddev_ns")


@dataclass(frozen=True, slots=True)
class Timeline:
    """One process: where its rows come from, its GPU work, first and last time (ns), and its phases if it has any."""

    origin: Row
    work: Operations
    span: tuple[int, int]
    phased: Phased | None


def phase_rows(timeline: Timeline) -> list[Row]:
    """One row a phase; of a process without iterations one row, `all`, that says why."""
    import numpy as np

    first, last = timeline.span
    one = timeline.phased
    if one is None:
        busy = busy_between(timeline.work, np.array([first], np.int64))
        row: Row = {
            "phase": "all", "found_by": "none", "reason": NO_ITERATIONS, "start_ns": first, "duration_ns": last - first,
            "gpu_ns": float((timeline.work.end - timeline.work.start).sum()), "gpu_busy_ns": float(busy.sum()),
        }  # fmt: skip
        return [timeline.origin | row]
    edges = np.maximum.accumulate(np.array([first, *one.bounds, last], np.int64)).tolist()
    warm, steady = slice(None, one.warmup), slice(one.warmup, None)
    gpu = (one.before.gpu, one.gpu[warm].sum(), one.gpu[steady].sum(), one.after.gpu)
    busy_ns = (one.before.busy, one.busy[warm].sum(), one.busy[steady].sum(), one.after.busy)
    counts = (None, one.warmup, len(one.iterations) - one.warmup, None)
    about = {"found_by": one.iterations.found_by, "name": one.iterations.name}
    return [
        timeline.origin | about
        | {"phase": phase, "iterations": counts[at], "start_ns": edges[at], "duration_ns": edges[at + 1] - edges[at],
           "gpu_ns": float(gpu[at]), "gpu_busy_ns": float(busy_ns[at])}
        for at, phase in enumerate(PHASES)
        if at in (SETUP, STEADY) or edges[at + 1] > edges[at] or gpu[at]
    ]  # fmt: skip


def iterations_row(timeline: Timeline) -> Row | None:
    """The iterations of the steady state: how long they take, the slowest, and what fills them."""
    import numpy as np

    one = timeline.phased
    if one is None:
        return None
    steady = slice(one.warmup, None)
    durations = one.durations[steady]
    slowest = int(np.argmax(durations))
    told = statistics(np.sort(durations))
    row: Row = timeline.origin | {
        "found_by": one.iterations.found_by, "name": one.iterations.name, "iterations": len(one.iterations),
        "warmup": one.warmup, "steady": len(durations), **{c: told[c] for c in _TIMES},
        "slowest": one.warmup + slowest,
    }  # fmt: skip
    if len(timeline.work.start):
        row |= {
            "slowest_gpu_busy_pct": _pct(one.busy[steady][slowest], durations[slowest]),
            "gpu_busy_pct": _pct(one.busy[steady].sum(), durations.sum()),
            "med_gpu_busy_pct": _median_share(one.busy[steady], durations),
            "med_longest_gap_ns": float(np.median(one.gap[steady])),
            "med_gpu_ops": float(np.median(one.operations[steady])),
            "med_gpu_ns": float(np.median(one.gpu[steady])),
            "med_memory_pct": _median_share(one.memory[steady], one.gpu[steady]),
            "med_memory_alone_pct": _median_share(one.memory_alone[steady], one.busy[steady]),
            "med_communication_pct": _median_share(one.communication[steady], one.gpu[steady]),
        }
    return row


def iteration_rows(timeline: Timeline) -> list[Row]:
    """One row an iteration, in order."""
    one = timeline.phased
    if one is None:
        return []
    columns = (one.edges[:-1], one.durations, one.busy, one.operations, one.gpu, one.memory, one.communication)
    names = ("start_ns", "duration_ns", "gpu_busy_ns", "gpu_ops", "gpu_ns", "memory_ns", "communication_ns")
    return [
        timeline.origin
        | {"iteration": number, "phase": "warmup" if number < one.warmup else "steady"}
        | dict(zip(names, values, strict=True))
        for number, values in enumerate(zip(*(c.tolist() for c in columns), strict=True))
    ]


def with_phase_shares(rows: list[Row]) -> list[Row]:
    """The rows of `phase_summary`, each with its share of its summary's time in its phase of its process."""
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        together.setdefault((row["summary"], row.get("pid"), row["phase"]), []).append(row)
    return [row for some in together.values() for row in with_shares(some)]


def _pct(part: Any, whole: Any) -> float | None:
    return 100.0 * float(part) / float(whole) if whole > 0 else None


def _median_share(part: IntArray, whole: IntArray) -> float | None:
    import numpy as np

    some = whole > 0
    return float(np.median(100.0 * part[some] / whole[some])) if some.any() else None
