"""Phases of a timeline of one process in memory, or of a printed trace: from its operations and calls to tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.timeline import iterations as loops
from nsw.readers.timeline import phases as timeline
from nsw.readers.timeline.calls import SYNCHRONISE, Calls, call_kinds, time_order
from nsw.readers.timeline.gaps import use_tables
from nsw.readers.timeline.statistics import ABSENT, Durations, Groups, duration_statistics, text_codes, whole_numbers
from nsw.tables import Row, TableData, row_count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.model import Options, Report
    from nsw.readers.timeline.statistics import Chosen, IntArray

KINDS: Final = ("kernel", "memcpy", "memset")
_WAYS: Final = (
    (timeline.TO_GPU, ("HtoD", "Host-to-Device")), (timeline.FROM_GPU, ("DtoH", "Device-to-Host")),
    (timeline.ON_GPU, ("DtoD", "Device-to-Device")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of a process; times in ns. All arrays of one prefix have one length.

    Attributes:
        names: Names of operations and calls, by their codes.
        name_columns: The columns of an operation's name.
        gpu_name: Codes of the operations' names.
        gpu_kind: Indices of KINDS.
        start: When each began, by the GPU's clock.
        duration: How long it took.
        launched: When the host called for it; -1 where that is not known.
        device: The GPU; below zero where it is not known.
        size: Bytes copied or set; below zero where they are not known.
        call_name: Codes of the API calls' names.
        call_start: When each began.
        call_duration: How long it took.
        marks: Ranges of the program.
        steps: Iterations that the profiler itself marked.
        contexts: The devices on which the process has a CUDA context, as far as that is recorded.
        stream: The stream of each operation; None: not recorded.
        memory: Of copies the host's memory, an index of MEMORIES, -1: none; None: only names may show it.
    """

    names: Sequence[str]
    name_columns: Callable[[str], Row]
    gpu_name: IntArray
    gpu_kind: IntArray
    start: IntArray
    duration: IntArray
    launched: IntArray
    device: IntArray
    size: IntArray
    call_name: IntArray
    call_start: IntArray
    call_duration: IntArray
    marks: Sequence[loops.Marks] = field(default=())
    steps: loops.Iterations | None = None
    contexts: Sequence[int] = ()
    stream: IntArray | None = None
    memory: IntArray | None = None

    def work(self) -> timeline.Operations:
        """The operations, as phases see them."""
        nccl = np.array([timeline.nccl_operation(name) is not None for name in self.names], dtype=bool)
        categories = np.where(self.gpu_kind == 0, timeline.KERNEL, timeline.MEMORY)
        if len(categories):
            categories = np.where(
                (categories == timeline.KERNEL) & nccl[self.gpu_name], timeline.COMMUNICATION, categories
            )
        launched = timeline.assumed_launches(self.launched, self.start, self.launched < 0)
        ways, memories = self._copy_ways()
        return timeline.Operations(
            self.start, self.duration, self.start - launched, self.device, categories, self.size, ways,
            memories if self.memory is None else self.memory, self.stream,
        )  # fmt: skip

    def _copy_ways(self) -> tuple[IntArray, IntArray]:
        """The way of each operation that is a copy, and the host's memory, by its name; -1 where it does not tell."""
        ways = np.full(len(self.names), -1, np.int64)
        memories = ways.copy()
        for code, name in enumerate(self.names):
            for way, spellings in _WAYS:
                if any(spelling in name for spelling in spellings):
                    ways[code] = way
            for memory, word in enumerate(timeline.MEMORIES):
                if word in name.lower():
                    memories[code] = memory
        copies = (self.gpu_kind == KINDS.index("memcpy")) if len(self.gpu_kind) else np.empty(0, bool)
        if not len(self.names):
            return ways, memories
        return np.where(copies, ways[self.gpu_name], -1), np.where(copies, memories[self.gpu_name], -1)

    def calls(self) -> Calls | None:
        """What the host calls of CUDA; None: not recorded."""
        if not len(self.call_name):
            return None
        codes, code = np.unique(self.call_name, return_inverse=True)
        kinds = call_kinds([self.names[c] for c in codes.tolist()])[code]
        order = time_order(self.call_start)
        start = self.call_start[order]
        return Calls(start, self.call_duration[order], kinds[order])


def tables_of_process(
    recorded: Recorded, span: tuple[int, int], *, named_step: str | None, warmup: int | None, every: bool
) -> dict[str, list[Row]]:
    """The tables of phases and iterations; with `every` also a row an iteration. Empty without GPU work.

    Args:
        recorded: What was recorded.
        span: The first and the last time of the process.
        named_step: The mark that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
        every: Whether `iteration_trace` is wanted.
    """
    work = recorded.work()
    if not len(work.start):
        return {}
    iterations = iterations_of(recorded, work, named_step)
    phases = None if iterations is None else timeline.split_phases(work, iterations, warmup)
    origin = {"device": device} if (device := _only_device(work)) is not None else {}
    summary = [] if phases is None else _by_phase(recorded, work, phases)
    few = loops.count_rare_repetitions(_own_kernels(recorded, work)) if phases is None else 0
    process = timeline.Timeline(origin, work, span, phases, few, recorded.contexts, recorded.calls())
    tables = timeline.phase_tables([process], [origin | row for row in summary], every=every) | use_tables([process])
    first = min(int(work.start.min()), span[0])
    for rows in tables.values():
        for row in rows:
            if "start_ns" in row:  # a profiler's clock counts from 1970 or the boot: tables from the first time
                row["start_ns"] -= first
    return tables


def phases_of_operations(recorded: Recorded, named_step: str | None, warmup: int | None) -> list[str] | None:
    """The phase of each GPU operation, in the order of the operations; None without iterations.

    Args:
        recorded: What was recorded of the process.
        named_step: The mark that a recipe names as its step; None: the iterations are detected.
        warmup: How many iterations are warm-up; None: this is detected.
    """
    work = recorded.work()
    iterations = iterations_of(recorded, work, named_step) if len(work.start) else None
    if iterations is None:
        return None
    return [
        timeline.PHASES[code]
        for code in timeline.split_phases(work, iterations, warmup).phase_codes(work.launches()).tolist()
    ]


def iterations_of(recorded: Recorded, work: timeline.Operations, named_step: str | None) -> loops.Iterations | None:
    """The iterations of a process: the profiler's own steps, else marks that repeat, else kernels that repeat.

    Args:
        recorded: What was recorded of the process.
        work: Its GPU operations.
        named_step: The mark that a recipe names as its step; others are used only where it yields none.

    Returns:
        None where nothing repeats.
    """
    if named_step is None and recorded.steps is not None:
        return recorded.steps
    launched = loops.LaunchedWork(work.launches(), work.duration)
    iterations = loops.iterations_by_marks(recorded.marks, launched, named_step=named_step)
    if iterations is None and named_step is not None:
        iterations = loops.iterations_by_marks(recorded.marks, launched)
    if iterations is not None:
        return iterations
    calls = recorded.calls()
    waits = [] if calls is None else [calls.start[calls.kind == SYNCHRONISE]]
    optimizers, autotuners = (
        [code for code, name in enumerate(recorded.names) if is_one(name)]
        for is_one in (loops.is_optimizer, loops.is_autotuner)
    )
    kernels = loops.without_trials(_own_kernels(recorded, work), autotuners)
    from_gpu, to_gpu = (work.launches(work.detail("way") == way) for way in (timeline.FROM_GPU, timeline.TO_GPU))
    return loops.iterations_by_kernels(kernels, [*waits, from_gpu], to_gpu, optimizers, operations=work.launches)


def _own_kernels(recorded: Recorded, work: timeline.Operations) -> loops.Kernels:
    own = work.category == timeline.KERNEL
    # NCCL's come where a bucket is full
    kernels = np.flatnonzero(
        own if 2 * int(own.sum()) > int((work.category != timeline.MEMORY).sum()) else work.category != timeline.MEMORY
    )
    return loops.Kernels(
        recorded.gpu_name[kernels],
        work.start[kernels],
        recorded.duration[kernels],
        work.delay[kernels],
        work.device[kernels],
    )


def launch_times(correlation_ids: IntArray, keys: IntArray, starts: IntArray) -> IntArray:
    """When the call of each correlation id began, of several the first; -1 where none has it, or it is below zero.

    Args:
        correlation_ids: Shape (n,), the correlation ids of operations.
        keys: Shape (m,), those of the calls.
        starts: Shape (m,), ns.
    """
    if not len(keys):
        return np.full(len(correlation_ids), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    index = np.searchsorted(keys, correlation_ids).clip(0, len(keys) - 1)
    return np.where((keys[index] == correlation_ids) & (correlation_ids >= 0), starts[order][index], -1)


def marks_by_name(
    names: Sequence[str], threads: Sequence[Any], starts: IntArray, ends: IntArray, launching: set[Any] | None = None
) -> list[loops.Marks]:
    """Ranges as marks by name and thread; numbers in names do not count.

    Args:
        names: Of each range.
        threads: Of each range.
        starts: Shape (n,), ns.
        ends: Shape (n,), ns.
        launching: The threads that make CUDA calls; None: all do, as far as is known.
    """
    rows_by_name: dict[tuple[str, Any], list[int]] = {}
    generics = {name: loops.name_without_numbers(name) for name in dict.fromkeys(names)}
    for index, (name, thread) in enumerate(zip(names, threads, strict=True)):
        rows_by_name.setdefault((generics[name], thread), []).append(index)
    marks = []
    for (name, thread), rows in rows_by_name.items():
        order = np.argsort(starts[rows], kind="stable")
        exact_names = {names[n] for n in rows}
        launches = launching is None or thread in launching
        marks.append(
            loops.Marks(
                exact_names.pop() if len(exact_names) == 1 else name, starts[rows][order], ends[rows][order], launches
            )
        )
    return marks


def _only_device(work: timeline.Operations) -> int | None:
    device = int(work.device[0])
    return device if device >= 0 and bool((work.device == device).all()) else None


def _by_phase(recorded: Recorded, work: timeline.Operations, phases: timeline.Phased) -> list[Row]:
    names = recorded.names
    has_sizes = bool((recorded.size[work.category == timeline.MEMORY] >= 0).all())
    devices, device = np.unique(work.device, return_inverse=True)
    origins: list[Row] = [{"device": number} if number >= 0 else {} for number in devices.tolist()]
    groups = Groups.from_durations(
        recorded.gpu_name * 4 + recorded.gpu_kind,
        recorded.duration,
        device * len(timeline.PHASES) + phases.phase_codes(work.launches()),
        len(devices) * len(timeline.PHASES),
        np.maximum(recorded.size, 0),
    )

    def operation_row(name: tuple[int, int], durations: Durations) -> Row:
        sizes = {"total_bytes": float(durations.size)} if name[1] and has_sizes and durations.size is not None else {}
        return (
            recorded.name_columns(names[name[0]])
            | {"kind": KINDS[name[1]]}
            | duration_statistics(durations.values)
            | sizes
        )

    rows = _phase_rows("gpu_summary", origins, groups, lambda key: divmod(key, 4), operation_row)
    talk = [timeline.nccl_operation(name) for name in names]
    rows += _phase_rows(
        "communication", origins, groups, lambda key: talk[key // 4] if key % 4 == 0 else None,
        lambda name, durations: {"kind": "nccl", "name": name, "short_name": name}
        | duration_statistics(durations.values),
    )  # fmt: skip
    if len(recorded.call_name):
        of_calls = Groups.from_durations(
            recorded.call_name, recorded.call_duration, phases.phase_codes(recorded.call_start), len(timeline.PHASES)
        )
        rows += _phase_rows(
            "api_summary", [{}], of_calls, lambda key: names[key],
            lambda name, durations: {"name": name, "short_name": name} | duration_statistics(durations.values),
        )  # fmt: skip
    return rows


def _phase_rows(
    summary: str,
    origins: Sequence[Row],
    groups: Groups,
    label: Callable[[int], Any],
    make: Callable[[Any, Durations], Row],
) -> list[Row]:
    """The rows of a summary by phase and device."""
    return [
        origins[part // len(timeline.PHASES)]
        | {"phase": timeline.PHASES[part % len(timeline.PHASES)], "summary": summary}
        | make(name, durations)
        for part, names in groups.by_part(label).items()
        for name, durations in names.items()
    ]


_FEWEST: Final = 15  # kernels: five repetitions of three
_ORIGIN: Final = ("block", "rank", "pid")
_NAME: Final = ("name", "short_name", "mangled_name")
_NO_OPERATION: Final = -1


def add_phases(report: Report, options: Options) -> None:
    """Add the tables of phases to a report whose traces show iterations; others are left as they are."""
    requested = options.phase_tables()
    trace = report.tables.get("gpu_trace", [])
    if not requested or row_count(trace) < _FEWEST:
        return
    kinds = _operation_kinds(trace)
    chosen = kinds != _NO_OPERATION
    if not chosen.any() or not bool((_has_times(trace) | ~chosen).all()):
        return
    origin = _single_origin(trace, chosen)
    if origin is None:
        return

    recorded = _recorded_events(trace, kinds, report.tables.get("api_trace", []))
    first, last = int(recorded.start.min()), int((recorded.start + recorded.duration).max())
    every = "iteration_trace" in requested
    tables = tables_of_process(recorded, (first, last), named_step=None, warmup=options.warmup, every=every)
    if not tables.get("phase_summary"):
        return
    report.tables.update({name: [origin | row for row in tables[name]] for name in requested if tables.get(name)})


def _operation_kinds(trace: TableData) -> IntArray:
    """What each row of a trace is, as an index of KINDS, or `_NO_OPERATION`."""
    codes, kinds = text_codes(trace, "kind")
    kind_codes = [KINDS.index(kind) if kind in KINDS else _NO_OPERATION for kind in kinds]
    return np.array(kind_codes, np.int64)[codes]


def _has_times(trace: TableData) -> Chosen:
    """Which rows have a start and a duration."""
    timed: Chosen = whole_numbers(trace, "start_ns")[1] & whole_numbers(trace, "duration_ns")[1]
    return timed


def _single_origin(trace: TableData, chosen: Chosen) -> Row | None:
    """Where the chosen rows come from; None where that is not one process."""
    origin: Row = {}
    for column in _ORIGIN:
        values, is_present = (array[chosen] for array in whole_numbers(trace, column))
        if not bool((is_present == is_present[0]).all() and (values == values[0]).all()):
            return None
        origin[column] = int(values[0]) if is_present[0] else None
    return origin


def _recorded_events(trace: TableData, kinds: IntArray, calls: TableData) -> Recorded:
    """What the rows of a kind, and the calls that have times, say of their process."""
    chosen, timed = kinds != _NO_OPERATION, _has_times(calls)

    def of_operations(column: str) -> IntArray:
        values: IntArray = whole_numbers(trace, column)[0][chosen]
        return values

    def of_calls(column: str) -> IntArray:
        values: IntArray = whole_numbers(calls, column)[0][timed]
        return values

    gpu_name, names = text_codes(trace, "name", chosen)
    name_rows = _name_rows(trace, np.flatnonzero(chosen), gpu_name, names)
    call_name, call_names = text_codes(calls, "name", timed)
    name_codes = {name: code for code, name in enumerate(names)}
    call_codes = np.array([name_codes.setdefault(name, len(name_codes)) for name in call_names], np.int64)
    call_start, correlation = of_calls("start_ns"), of_calls("correlation")
    has_id = correlation != ABSENT
    # backwards: of calls with one correlation id the last one launched
    keys, starts = correlation[has_id][::-1], call_start[has_id][::-1]
    return Recorded(
        gpu_name=gpu_name,
        call_name=call_codes[call_name],
        names=list(name_codes),
        name_columns=name_rows.__getitem__,
        gpu_kind=kinds[chosen],
        start=of_operations("start_ns"),
        duration=of_operations("duration_ns"),
        launched=launch_times(of_operations("correlation"), keys, starts),
        device=of_operations("device"),
        size=of_operations("bytes"),
        call_start=call_start,
        call_duration=of_calls("duration_ns"),
    )


def _name_rows(trace: TableData, row_indices: IntArray, codes: IntArray, names: list[str]) -> dict[str, Row]:
    """The columns of each name, of the last of the rows at `row_indices` that has it."""
    last = np.zeros(len(names), np.int64)
    last[codes] = row_indices
    if isinstance(trace, list):
        rows = [trace[index] for index in last.tolist()]
    else:
        rows = trace.select([c for c in _NAME if c in trace.column_names]).take(last).to_pylist()
    return {name: {c: row.get(c) for c in _NAME} for name, row in zip(names, rows, strict=True)}
