"""Times in which a GPU has no work, by what the host does in them; copies by what runs beside them; slow iterations.

A gap belongs to what keeps the host from launching the operation behind it: a wait for the GPU that ends in it, a
value of a few bytes that was read, an allocation, a module that is loaded, a blocking copy, else the launch itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.timeline.calls import (
    ALLOCATE,
    CALL_KINDS,
    COPY,
    LAUNCH,
    LOAD,
    LOCK,
    OPEN,
    OTHER,
    READ,
    SYNCHRONISE,
    WRITE,
    Calls,
    Covered,
)  # fmt: skip
from nsw.readers.timeline.phases import COMMUNICATION, FROM_GPU, MEMORIES, MEMORY, TO_GPU, of_each_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.timeline.phases import Operations, Phased, Timeline
    from nsw.readers.timeline.statistics import IntArray
    from nsw.tables import Row

__all__ = ["USE_TABLES", "use_tables"]

USE_TABLES: Final = ("gaps", "host_copies", "gpu_use")

COPY_WAYS: Final = ("to the GPU", "from the GPU", "on the GPU")
WAYS_OF_GAPS: Final = ("queued", "launch", "synchronise", "value", "copy", "allocate", "load")
QUEUED, BY_LAUNCH, BY_WAIT, BY_VALUE, BY_COPY, BY_ALLOCATION, BY_LOAD = range(len(WAYS_OF_GAPS))
LENGTHS: Final = ("short", "middle", "long")
SHORT_NS, LONG_NS = (
    20_000,
    500_000,
)  # bounds of lengths: the price of launches; a framework, a wait; the host's own work
_CLOCKS_NS: Final = 2_000  # by which the clocks of host and GPU differ, and the GPU tells the host that it is done
_PART: Final = 0.25  # of a gap: calls that take as much explain it
_VALUE: Final = 4096  # bytes of a copy that takes no longer than one of a single value
_USUAL: Final = 1.5  # times the median: longer iterations are looked at by themselves
_SLOW, _SLOWER_NS = 1.3, 20_000  # an iteration that is slower than the usual one
_FEWEST_SLOW: Final = 3
_REGULAR: Final = 0.8  # of the distances between slow iterations
_FEW_BLOCKS: Final = 32  # fewer than a quarter of the SMs of any GPU of a data centre
_COMPILES_NS: Final = 50_000_000  # a gap with a module loaded in it: libraries load in ms, compilers take longer
_DEFAULT_STREAM: Final = 7  # the legacy default stream, as CUPTI numbers it
_WORKS: Final = 0.05  # of the kernels' time: less makes no stream that works


def use_tables(timelines: Sequence[Timeline]) -> dict[str, list[Row]]:
    """The tables gaps, host_copies and gpu_use: of each GPU that a process works on.

    Args:
        timelines: The processes.
    """
    tables: dict[str, list[Row]] = {name: [] for name in USE_TABLES}
    for timeline in timelines:
        for device, work in of_each_device(timeline.work, timeline.phased).items():
            stretches = _stretches(work, timeline.phased)
            shared = timeline.origin | ({"device": device} if device >= 0 else {})
            shared["phase"] = "all" if timeline.phased is None else "steady"
            for name, rows in (
                ("gaps", _gap_rows(work, stretches, timeline.calls)),
                ("host_copies", _copy_rows(work, stretches)),
                ("gpu_use", [_use_row(work, stretches, timeline.calls, timeline.phased)]),
            ):  # fmt: skip
                tables[name] += [shared | row for row in rows]
    return tables


def _stretches(work: Operations, phases: Phased | None) -> tuple[IntArray, IntArray]:
    """The stretches of a timeline that are looked at: the usual iterations, else from the first kernel to the end."""
    if phases is not None:
        durations, edges = phases.durations[phases.warmup :], phases.edges[phases.warmup :]
        usual = durations <= _USUAL * np.median(durations)
        return edges[:-1][usual], edges[1:][usual]
    kernels = work.category != MEMORY
    first = work.start[kernels] if kernels.any() else work.start
    return first.min(keepdims=True), work.end.max(keepdims=True)


def _inside(times: IntArray, stretches: tuple[IntArray, IntArray]) -> Any:
    """Which times lie in one of the stretches."""
    at = np.searchsorted(stretches[0], times, "right") - 1
    return (at >= 0) & (times < stretches[1][at])


def _gap_rows(work: Operations, stretches: tuple[IntArray, IntArray], calls: Calls | None) -> list[Row]:
    """The gaps between a GPU's operations, one row a cause and length.

    Args:
        work: The operations of one GPU.
        stretches: Starts and ends of what is looked at, ns.
        calls: What the host calls; None: not recorded.
    """
    order = np.argsort(work.start, kind="stable")
    start, end, launched = work.start[order], work.end[order], work.launched[order]
    reach = np.maximum.accumulate(end)
    gap = np.flatnonzero((start[1:] > reach[:-1]) & _inside(reach[:-1], stretches))
    begin, until = reach[gap], start[gap + 1]
    last = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0))[gap]  # the operation that ended there
    before, behind = order[last], order[gap + 1]
    length = until - begin
    took = np.zeros((len(CALL_KINDS), len(gap)), np.int64)
    cause = np.full(len(gap), BY_LAUNCH)
    if calls is not None:
        for kind in range(len(CALL_KINDS)):
            took[kind] = calls.of(kind).within(begin, until)
        host_late = calls.ends_of(launched[gap + 1]) > begin  # else it was launched before the GPU came to it
        waits = calls.of(SYNCHRONISE)
        ended = waits.within(begin - _CLOCKS_NS, np.maximum(launched[gap + 1], begin + 1)) > 0
        blocked = calls.of(COPY, ALLOCATE).within(begin - _CLOCKS_NS, begin + 1) > _CLOCKS_NS // 2
        value, to_host = _values(work)[before], _values(work)[behind]
        copying = took[COPY] >= _PART * length
        cause[~host_late] = QUEUED
        cause[host_late & ended] = BY_WAIT
        cause[host_late & copying] = BY_COPY
        cause[host_late & (to_host | (value & (ended | blocked))) & ~(value & to_host & copying)] = BY_VALUE
        cause[took[ALLOCATE] >= _PART * length] = BY_ALLOCATION
        cause[took[LOAD] >= _PART * length] = BY_LOAD
        none = length - calls.of(*range(OTHER + 1)).within(begin, until)
    else:
        none = np.zeros(len(gap), np.int64)
    to_gpu = (work.way[behind] == TO_GPU) if work.way is not None else np.zeros(len(gap), bool)
    lengths = (length >= SHORT_NS).astype(np.int64) + (length >= LONG_NS)
    rows = []
    for code in np.unique(cause * len(LENGTHS) + lengths).tolist():
        mine = cause * len(LENGTHS) + lengths == code
        rows.append({
            "cause": WAYS_OF_GAPS[code // len(LENGTHS)], "length": LENGTHS[code % len(LENGTHS)],
            "gaps": int(mine.sum()), "total_ns": float(length[mine].sum()), "med_ns": float(np.median(length[mine])),
            "to_gpu": int(to_gpu[mine].sum()),
        } | ({} if calls is None else {
            "launch_ns": float(took[LAUNCH][mine].sum()), "cuda_ns": float((length - none)[mine].sum()),
            "read_ns": float(took[READ][mine].sum()), "write_ns": float(took[WRITE][mine].sum()),
            "open_ns": float(took[OPEN][mine].sum()), "lock_ns": float(took[LOCK][mine].sum()),
            "writing": int((took[WRITE][mine] > 0).sum()),
        }))  # fmt: skip
    return rows


def _values(work: Operations) -> Any:
    """Which operations are copies of a few bytes to the host."""
    if work.way is None or work.size is None:
        return np.zeros(len(work.start), bool)
    return (work.way == FROM_GPU) & (work.size >= 0) & (work.size <= _VALUE)


def _copy_rows(work: Operations, stretches: tuple[IntArray, IntArray]) -> list[Row]:
    """The copies of a GPU, one row a direction and kind of the host's memory."""
    if work.way is None or work.memory is None:
        return []
    kernels = work.category != MEMORY
    covered = Covered(work.start[kernels], work.end[kernels])
    copies = np.flatnonzero((work.way >= 0) & _inside(work.start, stretches))
    start, end, code = work.start[copies], work.end[copies], work.way[copies] * 8 + work.memory[copies] + 1
    alone = end - start - covered.within(start, end)
    middle = (int(stretches[0][0]) + int(stretches[1][-1])) // 2
    rows = []
    for which in np.unique(code).tolist():
        mine = code == which
        sizes = work.size[copies][mine] if work.size is not None else np.full(int(mine.sum()), -1)
        known = bool((sizes >= 0).all())
        rows.append({
            "direction": COPY_WAYS[which // 8], "memory": MEMORIES[which % 8 - 1] if which % 8 else None,
            "calls": int(mine.sum()), "total_ns": float((end - start)[mine].sum()),
            "alone_ns": float(alone[mine].sum()),
            "total_bytes": float(sizes.sum()) if known else None,
            "med_bytes": float(np.median(sizes)) if known else None,
            "late_calls": int((start[mine] >= middle).sum()),
        })  # fmt: skip
    return rows


def _use_row(work: Operations, stretches: tuple[IntArray, IntArray], calls: Calls | None, phases: Phased | None) -> Row:
    """How a GPU is used."""
    start, end = stretches
    inside = _inside(work.start, stretches)
    kernels = (work.category != MEMORY) & inside
    at_work, computing = Covered(work.start, work.end), Covered(work.start[kernels], work.end[kernels])
    took = (work.end - work.start)[kernels]
    talk = work.category == COMMUNICATION
    row: Row = {
        "iterations": None if phases is None else len(start),
        "span_ns": float((end - start).sum()), "busy_ns": float(at_work.within(start, end).sum()),
        "operations": int(inside.sum()), "kernels": int(kernels.sum()), "kernel_ns": float(took.sum()),
        "communication_ns": float(took[talk[kernels]].sum()),
        "computing_ns": float(computing.total[-1]) if len(computing.total) else 0.0,
    }  # fmt: skip
    if (talk & inside).any():
        lasted = (work.end - work.start)[talk & inside]
        row["collectives"], row["collective_ns"] = len(lasted), float(np.median(lasted))
        if work.blocks is not None:
            row["channels"] = int(np.median(work.blocks[talk & inside][lasted >= np.median(lasted)]))
    if calls is not None:
        row["compiles"], row["late_compiles"], row["compile_ns"] = _compiles(work, stretches, calls)
        values = np.flatnonzero(_values(work) & inside)
        row["launches"] = int((_inside(calls.start, stretches) & (calls.kind == LAUNCH)).sum())
        for column, covered in (
            ("cuda_ns", calls.of(*range(OTHER + 1))), ("wait_ns", calls.of(SYNCHRONISE)), ("copy_ns", calls.of(COPY)),
        ):  # fmt: skip
            row[column] = float(covered.within(start, end).sum())
        row["lock_threads"] = calls.lock_threads
        row["waits"] = int((_inside(calls.start, stretches) & (calls.kind == SYNCHRONISE)).sum())
        row["values"] = len(values)
    if work.stream is not None and len(took):
        _, which = np.unique(work.stream[kernels], return_inverse=True)
        of_stream = np.bincount(which, weights=took)
        row["streams"] = int((of_stream >= _WORKS * took.sum()).sum())
        ordered = work.stream[inside][np.argsort(work.start[inside], kind="stable")]
        row["default_stream"] = int(((ordered[1:] == _DEFAULT_STREAM) & (ordered[:-1] != _DEFAULT_STREAM)).sum())
    if work.blocks is not None and len(took):
        row["small_ns"] = float(took[(work.blocks[kernels] > 0) & (work.blocks[kernels] <= _FEW_BLOCKS)].sum())
    return row | (_period(phases) | _pace(phases, calls) if phases is not None else {})


def _compiles(work: Operations, stretches: tuple[IntArray, IntArray], calls: Calls) -> tuple[int, int, float]:
    """Gaps so long that a module which is loaded in them was compiled: how many, how many late, how long (ns).

    Late is behind half of the work: at their first use libraries are loaded, which may take most of a short run.
    """
    order = np.argsort(work.start, kind="stable")
    until, begin = work.start[order][1:], np.maximum.accumulate(work.end[order])[:-1]
    mine = (until - begin >= _COMPILES_NS) & _inside(begin, stretches)
    mine[mine] = calls.of(LOAD).within(begin[mine], until[mine]) > 0
    late = mine & (np.arange(len(mine)) >= len(mine) // 2)
    return int(mine.sum()), int(late.sum()), float((until - begin)[mine].sum())


def _pace(phases: Phased, calls: Calls | None) -> Row:
    """How long the host takes for an iteration without the time in which it waits for the GPU: the median."""
    starts = phases.iterations.starts[phases.warmup :]
    if len(starts) < 2 or calls is None:
        return {}
    waits = calls.of(SYNCHRONISE, COPY).within(starts[:-1], starts[1:])
    return {"host_ns": float(np.median(np.diff(starts) - waits))}


def _period(phases: Phased) -> Row:
    """Slow iterations that come at equal distances: how far, how much slower, what of it is the GPU's."""
    durations, gpu = phases.durations[phases.warmup :], phases.gpu[phases.warmup + 1 : -1]
    usual = float(np.median(durations))
    slow = durations > max(_SLOW * usual, usual + _SLOWER_NS)
    if slow.any():  # those that are hardly slow among others that are so many times are none
        slow &= durations - usual >= _PART * float((durations - usual).max())
    places = np.flatnonzero(slow)
    if len(places) < _FEWEST_SLOW or 2 * len(places) >= len(durations):
        return {}
    distances, counts = np.unique(np.diff(places), return_counts=True)
    period = int(distances[np.argmax(counts)])
    regular = counts.max() >= _REGULAR * counts.sum() and period > 1
    rest = ~slow
    return {
        "period": period if regular else None, "slow": len(places),
        "slower_ns": float(np.median(durations[slow]) - np.median(durations[rest])),
        "slower_gpu_ns": max(float(np.median(gpu[slow]) - np.median(gpu[rest])), 0.0),
        "slower_pct": 100 * float((durations[slow] - np.median(durations[rest])).sum() / durations.sum()),
    }  # fmt: skip
