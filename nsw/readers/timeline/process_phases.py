"""Phases of a timeline of one process in memory, or of a printed trace: from its operations and calls to tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.timeline.columns import ABSENT, whole_numbers, words
from nsw.readers.timeline.iterations import Iterations, Kernels, Marks, few_repetitions, generic, of_kernels, of_marks
from nsw.readers.timeline.phases import (
    COMMUNICATION,
    KERNEL,
    MEMORY,
    PHASES,
    Operations,
    Phased,
    Timeline,
    nccl_operation,
    phase_tables,
    phased,
)
from nsw.readers.timeline.statistics import Groups, Some, statistics
from nsw.tables import Row, TableData, count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.model import Options, Report
    from nsw.readers.timeline.columns import Chosen, IntArray

KINDS: Final = ("kernel", "memcpy", "memset")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of a process; times in ns. All arrays of one prefix have one length.

    Attributes:
        names: Names of operations and calls, by their codes.
        named: The columns of an operation's name.
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
    """

    names: Sequence[str]
    named: Callable[[str], Row]
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
    marks: Sequence[Marks] = field(default=())
    steps: Iterations | None = None
    contexts: Sequence[int] = ()

    def work(self) -> Operations:
        """The operations, as phases see them."""
        nccl = np.array([nccl_operation(name) is not None for name in self.names], dtype=bool)
        what = np.where(self.gpu_kind == 0, KERNEL, MEMORY)
        if len(what):
            what = np.where((what == KERNEL) & nccl[self.gpu_name], COMMUNICATION, what)
        launched = np.where(self.launched < 0, self.start, self.launched)
        return Operations(self.start, self.start + self.duration, launched, self.device, what)


def tables_of_process(
    of: Recorded, span: tuple[int, int], *, named_step: str | None, warmup: int | None, every: bool
) -> dict[str, list[Row]]:
    """The tables of phases and iterations; with `every` also a row an iteration. Empty without GPU work.

    Args:
        of: What was recorded.
        span: The first and the last time of the process.
        named_step: The mark that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
        every: Whether `iteration_trace` is wanted.
    """
    work = of.work()
    if not len(work.start):
        return {}
    found = iterations_of(of, work, named_step)
    one = None if found is None else phased(work, found, warmup)
    origin = {"device": device} if (device := _only_device(work)) is not None else {}
    summary = [] if one is None else _by_phase(of, work, one)
    few = few_repetitions(_kernels(of, work)) if one is None else 0
    timeline = Timeline(origin, work, span, one, few, of.contexts)
    tables = phase_tables([timeline], [origin | row for row in summary], every=every)
    first = min(int(work.start.min()), span[0])
    for rows in tables.values():
        for row in rows:
            if "start_ns" in row:  # a profiler's clock counts from 1970 or the boot: tables from the first time
                row["start_ns"] -= first
    return tables


def phases_of_operations(of: Recorded, named_step: str | None, warmup: int | None) -> list[str] | None:
    """The phase of each operation, in their order; None without iterations."""
    work = of.work()
    found = iterations_of(of, work, named_step) if len(work.start) else None
    if found is None:
        return None
    return [PHASES[code] for code in phased(work, found, warmup).phase(work.launched).tolist()]


def iterations_of(of: Recorded, work: Operations, named_step: str | None) -> Iterations | None:
    """The profiler's own steps, else marks that repeat, else the repetition of the kernels."""
    if named_step is None and of.steps is not None:
        return of.steps
    found = of_marks(of.marks, named=named_step) or of_marks(of.marks)
    if found is not None:
        return found
    return of_kernels(_kernels(of, work))


def _kernels(of: Recorded, work: Operations) -> Kernels:
    kernels = np.flatnonzero(work.what != MEMORY)
    return Kernels(
        of.gpu_name[kernels], work.start[kernels], of.duration[kernels], work.launched[kernels], work.device[kernels]
    )


def launch_times(wanted: IntArray, keys: IntArray, starts: IntArray) -> IntArray:
    """When the call of each correlation id began, of several the first; -1 where none has it, or it is below zero.

    Args:
        wanted: Shape (n,), the correlation ids of operations.
        keys: Shape (m,), those of the calls.
        starts: Shape (m,), ns.
    """
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    place = np.searchsorted(keys, wanted).clip(0, len(keys) - 1)
    return np.where((keys[place] == wanted) & (wanted >= 0), starts[order][place], -1)


def marks_by_name(
    names: Sequence[str], threads: Sequence[Any], starts: IntArray, ends: IntArray, launching: set[Any] | None = None
) -> list[Marks]:
    """Ranges as marks by name and thread; numbers in names do not count.

    Args:
        names: Of each range.
        threads: Of each range.
        starts: Shape (n,), ns.
        ends: Shape (n,), ns.
        launching: The threads that make CUDA calls; None: all do, as far as is known.
    """
    places: dict[tuple[str, Any], list[int]] = {}
    generics = {name: generic(name) for name in dict.fromkeys(names)}
    for index, (name, thread) in enumerate(zip(names, threads, strict=True)):
        places.setdefault((generics[name], thread), []).append(index)
    found = []
    for (name, thread), where in places.items():
        order = np.argsort(starts[where], kind="stable")
        own = {names[n] for n in where}
        launches = launching is None or thread in launching
        found.append(Marks(own.pop() if len(own) == 1 else name, starts[where][order], ends[where][order], launches))
    return found


def _only_device(work: Operations) -> int | None:
    device = int(work.device[0])
    return device if device >= 0 and bool((work.device == device).all()) else None


def _by_phase(of: Recorded, work: Operations, one: Phased) -> list[Row]:
    names = of.names
    known = bool((of.size[work.what == MEMORY] >= 0).all())
    devices, device = np.unique(work.device, return_inverse=True)
    origins: list[Row] = [{"device": number} if number >= 0 else {} for number in devices.tolist()]
    groups = Groups.of(
        of.gpu_name * 4 + of.gpu_kind, of.duration, device * len(PHASES) + one.phase(work.launched),
        len(devices) * len(PHASES), np.maximum(of.size, 0),
    )  # fmt: skip

    def operation(name: tuple[int, int], some: Some) -> Row:
        sizes = {"total_bytes": float(some.size)} if name[1] and known and some.size is not None else {}
        return of.named(names[name[0]]) | {"kind": KINDS[name[1]]} | statistics(some.values) | sizes

    rows = _rows("gpu_summary", origins, groups, lambda key: divmod(key, 4), operation)
    talk = [nccl_operation(name) for name in names]
    rows += _rows(
        "communication", origins, groups, lambda key: talk[key // 4] if key % 4 == 0 else None,
        lambda name, some: {"kind": "nccl", "name": name, "short_name": name} | statistics(some.values),
    )  # fmt: skip
    if len(of.call_name):
        of_calls = Groups.of(of.call_name, of.call_duration, one.phase(of.call_start), len(PHASES))
        rows += _rows(
            "api_summary", [{}], of_calls, lambda key: names[key],
            lambda name, some: {"name": name, "short_name": name} | statistics(some.values),
        )  # fmt: skip
    return rows


def _rows(
    summary: str, origins: Sequence[Row], groups: Groups, label: Callable[[int], Any], make: Callable[[Any, Some], Row]
) -> list[Row]:
    """The rows of a summary by phase and device."""
    return [
        origins[part // len(PHASES)] | {"phase": PHASES[part % len(PHASES)], "summary": summary} | make(name, some)
        for part, found in groups.by_part(label).items()
        for name, some in found.items()
    ]


_FEWEST: Final = 15  # kernels: five repetitions of three
_ORIGIN: Final = ("block", "rank", "pid")
_NAME: Final = ("name", "short_name", "mangled_name")
_NO_OPERATION: Final = -1


def add_phases(report: Report, options: Options) -> None:
    """Add the tables of phases to a report whose traces show iterations; others are left as they are."""
    asked = options.phase_tables()
    trace = report.tables.get("gpu_trace", [])
    if not asked or count(trace) < _FEWEST:
        return
    kinds = _kinds(trace)
    chosen = kinds != _NO_OPERATION
    if not chosen.any() or not bool((_timed(trace) | ~chosen).all()):
        return
    origin = _one_origin(trace, chosen)
    if origin is None:
        return

    of = _recorded(trace, kinds, report.tables.get("api_trace", []))
    first, last = int(of.start.min()), int((of.start + of.duration).max())
    every = "iteration_trace" in asked
    made = tables_of_process(of, (first, last), named_step=None, warmup=options.warmup, every=every)
    if not made.get("phase_summary"):
        return
    report.tables.update({name: [origin | row for row in made[name]] for name in asked if made.get(name)})


def _kinds(trace: TableData) -> IntArray:
    """What each row of a trace is, as an index of KINDS, or `_NO_OPERATION`."""
    codes, kinds = words(trace, "kind")
    known = [KINDS.index(kind) if kind in KINDS else _NO_OPERATION for kind in kinds]
    return np.array(known, np.int64)[codes]


def _timed(trace: TableData) -> Chosen:
    """Which rows have a start and a duration."""
    timed: Chosen = whole_numbers(trace, "start_ns")[1] & whole_numbers(trace, "duration_ns")[1]
    return timed


def _one_origin(trace: TableData, chosen: Chosen) -> Row | None:
    """Where the chosen rows come from; None where that is not one process."""
    origin: Row = {}
    for column in _ORIGIN:
        values, known = (found[chosen] for found in whole_numbers(trace, column))
        if not bool((known == known[0]).all() and (values == values[0]).all()):
            return None
        origin[column] = int(values[0]) if known[0] else None
    return origin


def _recorded(trace: TableData, kinds: IntArray, calls: TableData) -> Recorded:
    """What the rows of a kind, and the calls that have times, say of their process."""
    chosen, timed = kinds != _NO_OPERATION, _timed(calls)

    def of_operations(column: str) -> IntArray:
        values: IntArray = whole_numbers(trace, column)[0][chosen]
        return values

    def of_calls(column: str) -> IntArray:
        values: IntArray = whole_numbers(calls, column)[0][timed]
        return values

    gpu_name, names = words(trace, "name", chosen)
    named = _name_rows(trace, np.flatnonzero(chosen), gpu_name, names)
    call_name, call_names = words(calls, "name", timed)
    places = {name: place for place, name in enumerate(names)}
    call_place = np.array([places.setdefault(name, len(places)) for name in call_names], np.int64)
    call_start, correlation = of_calls("start_ns"), of_calls("correlation")
    has_id = correlation != ABSENT
    # backwards: of calls with one correlation id the last one launched
    keys, starts = correlation[has_id][::-1], call_start[has_id][::-1]
    return Recorded(
        gpu_name=gpu_name,
        call_name=call_place[call_name],
        names=list(places),
        named=named.__getitem__,
        gpu_kind=kinds[chosen],
        start=of_operations("start_ns"),
        duration=of_operations("duration_ns"),
        launched=launch_times(of_operations("correlation"), keys, starts),
        device=of_operations("device"),
        size=of_operations("bytes"),
        call_start=call_start,
        call_duration=of_calls("duration_ns"),
    )


def _name_rows(trace: TableData, places: IntArray, codes: IntArray, names: list[str]) -> dict[str, Row]:
    """The columns of each name, of the last of the rows at `places` that has it."""
    last = np.zeros(len(names), np.int64)
    last[codes] = places
    if isinstance(trace, list):
        rows = [trace[place] for place in last.tolist()]
    else:
        rows = trace.select([c for c in _NAME if c in trace.column_names]).take(last).to_pylist()
    return {name: {c: row.get(c) for c in _NAME} for name, row in zip(names, rows, strict=True)}
