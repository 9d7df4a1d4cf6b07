"""Phases of a process's timeline: set-up, warm-up, steady state, end.

An operation of a GPU belongs to the iteration that launched it. An iteration lasts from its first operation on the
GPU to that of the next one, so that a loop which launches ahead of the GPU is not taken to be faster than it is; the
last one to the end of its last operation, or of its mark and of the usual time from a mark to its first operation.
Iterations without GPU work are timed on the host.
Warm-up are the first iterations as long as they take clearly longer than those of the later half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.timeline.calls import Calls, Covered, time_order
from nsw.readers.timeline.columns import RunningSums, many_rows, select_rows
from nsw.readers.timeline.statistics import IntArray, distinct, duration_statistics, with_shares
from nsw.tables import Row

if TYPE_CHECKING:
    from nsw.readers.timeline.iterations import Iterations

_NCCL = re.compile(
    r"\bnccl(?:Dev)?(?:Kernel)?_?(AllReduce|AllGather|AllToAllV?|ReduceScatter|Broadcast|Reduce|SendRecv|Gather|Scatter"
    r"|Generic)",
    re.IGNORECASE,
)
_NCCL_KERNEL = re.compile(r"\bnccl(?:Dev)?Kernel|\bnccl\w*Kernel")


def nccl_operation(kernel: str) -> str | None:
    """The collective of an NCCL kernel, AllReduce of ncclDevKernel_AllReduce_Sum_f32_RING(...); or None."""
    head = kernel.split("(", 1)[0]
    if not _NCCL_KERNEL.search(head):
        return None
    match = _NCCL.search(head)
    return match[1] if match else "other"


PHASES: Final = ("setup", "warmup", "steady", "end")
SETUP, WARMUP, STEADY, END = range(4)
KERNEL, COMMUNICATION, MEMORY = range(3)  # what an operation is: COMMUNICATION is a kernel of NCCL's
TO_GPU, FROM_GPU, ON_GPU = range(3)  # the way of a copy
MEMORIES: Final = ("pageable", "pinned", "managed")  # of the host, that a copy reads or writes
_CLEARLY: Final = 1.25  # times the median
WORKED_ON: Final = 0.05  # of the time of the kernels on the GPU that has most of it


@dataclass(frozen=True, slots=True)
class Operations:
    """GPU work of one process, in any order; times in ns. A device that is not known is below zero."""

    start: IntArray
    duration: IntArray
    delay: IntArray  # from the launch, by the host's clock, to the start; 0 where no call is known
    device: IntArray
    category: IntArray  # KERNEL, COMMUNICATION or MEMORY
    # where a report tells them, else None; -1 where one operation has none
    size: IntArray | None = None  # bytes of copies and sets
    way: IntArray | None = None  # of copies: TO_GPU, FROM_GPU or ON_GPU
    memory: IntArray | None = None  # of copies: the host's memory, an index of MEMORIES
    stream: IntArray | None = None
    blocks: IntArray | None = None  # of kernels
    kernel: IntArray | None = None  # of kernels: alike where their names are

    def detail(self, column: str, rows: Any = slice(None)) -> Any:
        """Size, way or memory of these operations; -1 where there is none."""
        values = getattr(self, column)
        return np.full(len(self.start[rows]), -1, np.int8) if values is None else values[rows]

    def ends(self, rows: Any = slice(None)) -> Any:
        """When these operations end (ns)."""
        return self.start[rows] + self.duration[rows]

    def last_end(self) -> int:
        """When the last of all operations ends (ns); there must be one."""
        return max(int(self.ends(rows).max()) for rows in many_rows(len(self.start)))

    def launches(self, rows: Any = slice(None)) -> Any:
        """When these operations were launched (ns)."""
        return self.start[rows] - self.delay[rows]


@dataclass(frozen=True, slots=True)
class OnGpu:
    """What the iterations do on one GPU, one value an iteration; times in ns.

    `busy` is the time it was at work, `gap` the longest time in which it was not, `gpu` the sum of the operations'
    durations, `memory` and `communication` those of copies and sets and of NCCL kernels among them, `memory_alone` the
    time in which it was at work on copies and sets with no kernel beside them, and `communication_alone` on NCCL
    kernels with no other kernel beside them.
    """

    device: int
    busy: IntArray
    gpu: IntArray
    memory: IntArray
    memory_alone: IntArray
    communication: IntArray
    communication_alone: IntArray
    operations: IntArray
    gap: IntArray


@dataclass(frozen=True, slots=True)
class Phased:
    """The phases of one process.

    `host` are the times by the host's clock at which warm-up, steady state and end begin; `edges` the starts of the
    iterations, and the end of the last, by the GPU's clock (the host's where they have no GPU work). `gpu` is the sum
    of the durations of all GPU operations, `busy` the time a GPU was at work, of several that the process works on the
    mean: before the first iteration, in each, and after the last. `gpus` are those that the process works on.
    """

    iterations: Iterations
    warmup: int
    host: tuple[int, int, int]
    edges: IntArray
    gpu: IntArray
    busy: IntArray
    gpus: tuple[OnGpu, ...]

    def phase_codes(self, times: IntArray) -> IntArray:
        """The phase of what the host did at these times, as an index of PHASES."""
        codes: np.ndarray[Any, np.dtype[Any]] = np.zeros(len(times), np.int8)
        for bound in self.host:
            codes += times >= bound
        return codes

    @property
    def bounds(self) -> tuple[int, int, int]:
        """When warm-up, steady state and end begin, by the clock of `edges`."""
        return int(self.edges[0]), int(self.edges[self.warmup]), int(self.edges[-1])

    @property
    def durations(self) -> IntArray:
        """Of the iterations, in ns."""
        return self.edges[1:] - self.edges[:-1]


def assumed_launches(launched: IntArray, starts: IntArray, unknown: Any) -> IntArray:
    """Launch times with those that were not recorded: no later than of what starts behind them.

    Args:
        launched: Shape (n,), ns; any value where it is unknown.
        starts: Shape (n,), ns, on the GPU.
        unknown: Shape (n,), whether no launch was recorded, as of what was launched before the recording began.
    """
    if not unknown.any():
        return launched
    order = np.argsort(starts, kind="stable")
    times = np.where(unknown, starts, launched)
    earliest: IntArray = np.empty_like(times)
    earliest[order] = np.minimum.accumulate(times[order][::-1])[::-1]
    return np.where(unknown, earliest, times)


def split_phases(work: Operations, iterations: Iterations, warmup: int | None = None) -> Phased:
    """Split a process's timeline by its iterations.

    Args:
        work: Its GPU work; may be empty.
        iterations: Its iterations.
        warmup: How many of them are warm-up; by default as many as take clearly longer than the later ones.
    """
    starts, marks = iterations.starts, [*iterations.starts.tolist(), iterations.end]
    work = Operations(work.start, work.duration, work.delay, work.device, work.category)
    ordered = order_operations(work, work.launches())
    at = np.searchsorted(ordered.launches(), marks)
    devices = gpus_worked_on(_select_operations(ordered, slice(at[0], at[-1]))) or gpus_worked_on(work)
    edges = _iteration_edges(_on_devices(ordered, devices), iterations)
    count = _warmup_count(edges[1:] - edges[:-1]) if warmup is None else min(warmup, len(starts) - 1)
    host = int(starts[0]), int(starts[count]), iterations.end
    busy, gpus = [], []
    for device in devices:
        mine = _on_devices(ordered, [device])
        covered = Covered(mine.start, mine.duration)
        busy.append(_covered_between(covered, edges))
        gpus.append(_on_gpu(mine, device, marks, edges, busy[-1][1:-1], longest_gaps(covered, edges)))
        del mine, covered  # before those of the next GPU are copied
    return Phased(
        iterations, count, host, edges, _sums_between(ordered.duration, at), _mean_busy(busy, edges), tuple(gpus)
    )


def _on_gpu(
    work: Operations, device: int, marks: Sequence[int], edges: IntArray, busy: IntArray, gap: IntArray
) -> OnGpu:
    """What the iterations do on the GPU whose operations these are, in order of launch, and that is busy so long."""
    at = np.searchsorted(work.launches(), marks)
    durations = work.duration
    gpu = _sums_between(durations, at)[1:-1]
    memory, communication = (
        _sums_between(np.where(of_kind, durations, 0), at)[1:-1]
        if (of_kind := work.category == what).any()
        else gpu * 0
        for what in (MEMORY, COMMUNICATION)
    )

    def at_work_on(mine: Any) -> IntArray:
        return _covered_between(Covered(work.start[mine], work.duration[mine]), edges)[1:-1]

    kernels = at_work_on(work.category != MEMORY) if memory.any() else busy
    computing = at_work_on(work.category == KERNEL) if communication.any() else kernels
    return OnGpu(
        device, busy, gpu, memory, busy - kernels, communication, kernels - computing, np.diff(at), gap,
    )  # fmt: skip


def gpus_worked_on(work: Operations) -> list[int]:
    """The devices that a process works on, ascending: where its kernels take `WORKED_ON` of those where most are.

    A device with less has a context that the process hardly uses, such as PyTorch makes on GPU 0 for a process that
    chooses its own GPU too late. Copies and sets count only where there are no kernels at all: a process touches others
    to copy.
    """
    if not len(work.start):
        return []
    if bool((work.device == work.device[0]).all()):
        return [int(work.device[0])]
    counts = np.ones(len(work.start), bool) if bool((work.category == MEMORY).all()) else work.category != MEMORY
    took = {
        device: int(work.duration[mine].sum())
        for device in distinct(work.device)
        if (mine := counts & (work.device == device)).any()
    }
    most = max(took.values())
    return sorted(one for one, ns in took.items() if ns >= WORKED_ON * most)


def _select_operations(work: Operations, which: Any) -> Operations:
    start, rest = work.start[which], (getattr(work, column) for column in work.__slots__[1:])
    columns: Any = (None if column is None else select_rows(column, which, len(start)) for column in rest)
    return Operations(start, *columns)


def order_operations(work: Operations, times: IntArray) -> Operations:
    """The operations in the order of these times, one each; those with equal ones as they were."""
    order = time_order(times)
    return work if isinstance(order, slice) else _select_operations(work, order)


def of_each_device(work: Operations, phases: Phased | None) -> Iterator[tuple[int, Operations]]:
    """Yield the GPUs that a process works on, each with its operations, in the order in which they were."""
    for device in gpus_worked_on(work) if phases is None else [gpu.device for gpu in phases.gpus]:
        yield device, _on_devices(work, [device])


def _on_devices(work: Operations, devices: Sequence[int]) -> Operations:
    """The operations on these devices."""
    mine = np.zeros(len(work.device), bool)
    for device in devices:
        mine |= work.device == device
    return work if mine.all() else _select_operations(work, mine)


def shared_warmup(processes: list[Phased]) -> int | None:
    """The number of warm-up iterations of processes that iterate together: that of the one that is warm last.

    Returns:
        None where the processes have different iterations.
    """
    alike = len({(p.iterations.found_by, p.iterations.name, len(p.iterations)) for p in processes}) == 1
    return max(p.warmup for p in processes) if alike else None


def _iteration_edges(work: Operations, iterations: Iterations) -> IntArray:
    """The iterations' starts and the last one's end, by their operations in order of launch."""
    at = np.searchsorted(work.launches(), [*iterations.starts.tolist(), iterations.end])
    has_work = np.diff(at) > 0
    edges = np.append(iterations.starts, iterations.end)
    if iterations.found_by == "profiler_step":  # from mark to mark, or to the end of its work where that is later
        reach = np.maximum.accumulate(np.concatenate((edges[:1], work.ends())))
        return np.maximum.accumulate(np.maximum(edges, reach[at]))
    if 2 * int(has_work.sum()) < len(has_work):
        return edges
    heads = at[:-1][has_work]
    inside = slice(int(at[0]), int(at[-1]))
    edges[:-1][has_work] = np.minimum.reduceat(work.start[inside], heads - at[0])
    edges[-1] = _select_operations(work, inside).last_end()
    if iterations.found_by != "kernel_sequence":  # the next one would begin behind the mark, as late as the others do
        late = edges[:-1][has_work] - iterations.starts[has_work]
        # no later than the first: all together take no longer than from the first mark to the end of the last
        edges[-1] = max(edges[-1], iterations.end + min(int(np.median(late)), int(late[0])))
    # where one of the iterations has no GPU work, or streams overtake each other, none begins before the one before it
    return np.maximum.accumulate(edges)


def _sums_between(values: IntArray, at: IntArray) -> IntArray:
    """The sums of the values before the first place, between each and the next, and after the last."""
    sums = RunningSums.of_values(values)
    return np.diff(sums.before(at), prepend=0, append=sums.total)


def _warmup_count(durations: IntArray) -> int:
    """The first iterations that take clearly longer than those of the later half; at most half of all."""
    later = durations[len(durations) // 2 :]
    low, middle, high = np.quantile(later, (0.25, 0.5, 0.75)).tolist()
    slow = durations > max(_CLEARLY * middle, high + 1.5 * (high - low))
    count = len(slow) if bool(slow.all()) else int(np.argmin(slow))
    return min(count, len(durations) // 2)


def _mean_busy(busy: Sequence[IntArray], edges: IntArray) -> IntArray:
    """The mean of the times in which GPUs were at work; of none zero."""
    return np.asarray(sum(busy) // len(busy)) if busy else np.zeros(len(edges) + 1, np.int64)


def longest_gaps(covered: Covered, edges: IntArray) -> IntArray:
    """The longest time between each edge and the next in which no GPU was at work; ns, one less than edges."""
    if len(edges) < 2:
        return np.zeros(0, np.int64)
    at = np.searchsorted(covered.start, edges, "right")
    before = np.where(at > 0, covered.reach(at - 1), edges[0]) if len(covered.start) else edges[:1].repeat(len(edges))
    longest: IntArray = np.maximum(edges[1:] - np.maximum(edges[:-1], before[1:]), 0)
    heads = np.flatnonzero(np.diff(at))
    if len(heads):
        gaps = covered.start[at[0] : at[-1]].copy()
        for rows in many_rows(len(gaps) - 1):
            gaps[rows.start + 1 : rows.stop + 1] -= covered.reach(slice(at[0] + rows.start, at[0] + rows.stop))
        first = at[heads] - at[0]
        gaps[first] = covered.start[at[heads]] - np.maximum(edges[heads], before[heads])
        longest[heads] = np.maximum(longest[heads], np.maximum.reduceat(gaps, first))
    return longest


def _covered_between(covered: Covered, edges: IntArray) -> IntArray:
    """The time that is covered before the first edge, between each and the next, and after the last; ns."""
    return np.diff(covered.covered_before(edges), prepend=0, append=covered.total)


_NO_ITERATIONS: Final = "no NVTX range, step marker or sequence of kernels repeats"
_TIMES: Final = ("med_ns", "avg_ns", "min_ns", "max_ns", "stddev_ns")


@dataclass(frozen=True, slots=True)
class Timeline:
    """One process: where its rows come from, its GPU work, first and last time (ns), and its phases if it has any.

    `repetitions`: how often its kernels repeat where that is too seldom for iterations. `contexts`: the devices on
    which it has a CUDA context, as far as that is recorded. `layers`: the layers of a network that repeat in place of
    iterations.
    """

    origin: Row
    work: Operations
    span: tuple[int, int]
    phased: Phased | None
    repetitions: int = 0
    contexts: Sequence[int] = ()
    calls: Calls | None = None
    layers: str = ""


def phase_tables(timelines: Sequence[Timeline], summary: list[Row], *, every: bool) -> dict[str, list[Row]]:
    """The tables of phases and iterations; with `every` also a row an iteration.

    Args:
        timelines: The processes.
        summary: The rows of `phase_summary`, without their shares.
        every: Whether `iteration_trace` is wanted.
    """
    tables = {
        "phases": [row for timeline in timelines for row in _phase_rows(timeline)],
        "iterations": [row for timeline in timelines for row in _iterations_rows(timeline)],
        "iteration_trace": [row for timeline in timelines for row in _iteration_rows(timeline)] if every else [],
        "phase_summary": _with_phase_shares(summary),
        "process_gpus": [row for timeline in timelines for row in _gpu_rows(timeline)],
    }
    in_calls: dict[tuple[Any, str], float] = {}
    for row in summary:
        if row["summary"] == "api_summary":
            key = row.get("pid"), row["phase"]
            in_calls[key] = in_calls.get(key, 0.0) + row["total_ns"]
    for row in tables["phases"] if in_calls else ():
        row["api_ns"] = in_calls.get((row.get("pid"), row["phase"]), 0.0)
    return tables


def _phase_rows(timeline: Timeline) -> list[Row]:
    """One row a phase; of a process without iterations one row, `all`, that says why."""
    first, last = timeline.span
    phases = timeline.phased
    if phases is None:
        work = timeline.work
        at_first = np.array([first], np.int64)
        on_gpus = of_each_device(work, None)
        busy = _mean_busy(
            [_covered_between(Covered(mine.start, mine.duration), at_first) for _, mine in on_gpus], at_first
        )
        row: Row = {
            "phase": "all", "found_by": "none", "reason": _no_iterations_reason(timeline),
            "start_ns": first, "duration_ns": last - first,
            "gpu_ns": float(work.duration.sum()), "gpu_busy_ns": float(busy.sum()),
        }  # fmt: skip
        return [timeline.origin | row]
    edges = np.maximum.accumulate(np.array([first, *phases.bounds, last], np.int64)).tolist()
    parts = slice(0, 1), slice(1, phases.warmup + 1), slice(phases.warmup + 1, -1), slice(-1, None)
    gpu, busy_ns = ([float(values[part].sum()) for part in parts] for values in (phases.gpu, phases.busy))
    counts = (None, phases.warmup, len(phases.iterations) - phases.warmup, None)
    labels = {"found_by": phases.iterations.found_by, "name": phases.iterations.name}
    return [
        timeline.origin | labels
        | {"phase": phase, "iterations": counts[at], "start_ns": edges[at], "duration_ns": edges[at + 1] - edges[at],
           "gpu_ns": gpu[at], "gpu_busy_ns": busy_ns[at]}
        for at, phase in enumerate(PHASES)
        if at in (SETUP, STEADY) or edges[at + 1] > edges[at] or gpu[at]
    ]  # fmt: skip


def _no_iterations_reason(timeline: Timeline) -> str:
    """Why there are no iterations."""
    if timeline.layers:
        return f"what repeats are layers of a network (NVTX ranges {timeline.layers})"
    if timeline.repetitions < 2:
        return _NO_ITERATIONS
    return f"a sequence of kernels repeats only {timeline.repetitions} times, and five are wanted"


def _iterations_rows(timeline: Timeline) -> list[Row]:
    """The iterations of the steady state: how long they take, the slowest, and what fills them on each GPU."""
    phases = timeline.phased
    if phases is None:
        return []
    steady = slice(phases.warmup, None)
    durations = phases.durations[steady]
    slowest = int(np.argmax(durations))
    figures = duration_statistics(np.sort(durations))
    row: Row = timeline.origin | {
        "found_by": phases.iterations.found_by, "name": phases.iterations.name, "iterations": len(phases.iterations),
        "warmup": phases.warmup, "steady": len(durations), **{c: figures[c] for c in _TIMES},
        "slowest": phases.warmup + slowest,
    }  # fmt: skip
    return [
        row | _device_column(gpu.device) | {
            "slowest_gpu_busy_pct": _pct_or_none(gpu.busy[steady][slowest], durations[slowest]),
            "gpu_busy_pct": _pct_or_none(gpu.busy[steady].sum(), durations.sum()),
            "med_gpu_busy_pct": _median_share(gpu.busy[steady], durations),
            "med_longest_gap_ns": float(np.median(gpu.gap[steady])),
            "med_gpu_ops": float(np.median(gpu.operations[steady])),
            "med_gpu_ns": float(np.median(gpu.gpu[steady])),
            "med_memory_pct": _median_share(gpu.memory[steady], gpu.gpu[steady]),
            "med_memory_alone_pct": _median_share(gpu.memory_alone[steady], gpu.busy[steady]),
            "med_communication_pct": _median_share(gpu.communication[steady], gpu.gpu[steady]),
            "med_communication_alone_pct": _median_share(gpu.communication_alone[steady], gpu.busy[steady]),
        }
        for gpu in phases.gpus
    ] or [row]  # fmt: skip


def _iteration_rows(timeline: Timeline) -> list[Row]:
    """One row an iteration and GPU, in order."""
    phases = timeline.phased
    if phases is None:
        return []
    names = ("start_ns", "duration_ns", "gpu_busy_ns", "gpu_ops", "gpu_ns", "memory_ns", "communication_ns")
    nothing = np.zeros_like(phases.durations)
    on_gpus = [
        (_device_column(gpu.device), (gpu.busy, gpu.operations, gpu.gpu, gpu.memory, gpu.communication))
        for gpu in phases.gpus
    ] or [({}, (nothing,) * 5)]
    rows = [
        (number, timeline.origin | device
        | {"iteration": number, "phase": "warmup" if number < phases.warmup else "steady"}
        | dict(zip(names, values, strict=True)))
        for device, columns in on_gpus
        for number, values in enumerate(
            zip(*(c.tolist() for c in (phases.edges[:-1], phases.durations, *columns)), strict=True)
        )
    ]  # fmt: skip
    return [row for _, row in sorted(rows, key=itemgetter(0))]


def _gpu_rows(timeline: Timeline) -> list[Row]:
    """One row a GPU on which a process has work or a context."""
    work, one = timeline.work, timeline.phased
    worked = frozenset(gpus_worked_on(work) if one is None else (gpu.device for gpu in one.gpus))
    rows = []
    took, inside = work.duration, None
    if one is not None:
        launched = work.launches()
        inside = (launched >= one.iterations.starts[0]) & (launched < one.iterations.end)
        del launched  # 8 bytes an operation
    for device in sorted({*distinct(work.device), *timeline.contexts}):
        mine = work.device == device
        copies = int(np.count_nonzero(mine & (work.category == MEMORY)))
        row = timeline.origin | _device_column(device) | {
            "works": device in worked, "kernels": int(mine.sum()) - copies, "copies": copies,
            "gpu_ns": int(took[mine].sum()),
        }  # fmt: skip
        if one is not None and inside is not None:
            row["iteration_gpu_ns"] = float(took[mine & inside].sum()) / len(one.iterations)
        rows.append(row)
    return rows


def _device_column(device: int) -> Row:
    return {"device": device} if device >= 0 else {}


def _with_phase_shares(rows: list[Row]) -> list[Row]:
    """The rows of `phase_summary`, each with its share of its summary's time in its phase of its process."""
    together: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        together.setdefault((row["summary"], row.get("pid"), row["phase"]), []).append(row)
    return [row for group in together.values() for row in with_shares(group)]


def _pct_or_none(part: Any, total: Any) -> float | None:
    return 100.0 * float(part) / float(total) if total > 0 else None


def _median_share(part: IntArray, total: IntArray) -> float | None:
    nonzero = total > 0
    return float(np.median(100.0 * part[nonzero] / total[nonzero])) if nonzero.any() else None
