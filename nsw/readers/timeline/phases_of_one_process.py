"""Phases of a timeline of one process that is in memory: from its operations, calls and marks to the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.timeline.communication_by_name import nccl_operation
from nsw.readers.timeline.durations_by_phase import Groups
from nsw.readers.timeline.iterations import Iterations, Marks, generic, of_marks
from nsw.readers.timeline.kernel_sequence import of_kernels
from nsw.readers.timeline.phase_rows import Timeline, iteration_rows, iterations_row, phase_rows, with_phase_shares
from nsw.readers.timeline.phases import COMMUNICATION, KERNEL, MEMORY, PHASES, Operations, Phased, phased
from nsw.readers.timeline.statistics import statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.timeline.array_types import IntArray
    from nsw.readers.timeline.durations_by_phase import Some
    from nsw.tables import Row

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

    def work(self) -> Operations:
        """The operations, as phases see them."""
        import numpy as np

        nccl = np.array([nccl_operation(name) is not None for name in self.names], dtype=bool)
        what = np.where(self.gpu_kind == 0, KERNEL, MEMORY)
        if len(what):
            what = np.where((what == KERNEL) & nccl[self.gpu_name], COMMUNICATION, what)
        launched = np.where(self.launched < 0, self.start, self.launched)
        return Operations(self.start, self.start + self.duration, launched, self.device, what)


def phase_tables(
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
    timeline = Timeline(origin, work, span, one)
    tables = {
        "phases": phase_rows(timeline),
        "iterations": [row] if (row := iterations_row(timeline)) else [],
        "iteration_trace": iteration_rows(timeline) if every else [],
        "phase_summary": [] if one is None else _by_phase(of, work, one, origin),
    }
    first = min(int(work.start.min()), span[0])
    for rows in tables.values():
        for row in rows:
            if "start_ns" in row:  # a profiler's clock counts from 1970 or the boot: tables from the first time
                row["start_ns"] -= first
    in_calls: dict[str, float] = {}
    for row in tables["phase_summary"]:
        if row["summary"] == "api_summary":
            in_calls[row["phase"]] = in_calls.get(row["phase"], 0.0) + row["total_ns"]
    for row in tables["phases"] if in_calls else ():
        row["api_ns"] = in_calls.get(row["phase"], 0.0)
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
    import numpy as np

    if named_step is None and of.steps is not None:
        return of.steps
    found = of_marks(of.marks, named=named_step) or of_marks(of.marks)
    if found is not None:
        return found
    kernels = np.flatnonzero(work.what != MEMORY)
    return of_kernels(of.gpu_name[kernels], work.start[kernels], of.duration[kernels], work.launched[kernels])


def launch_times(wanted: IntArray, keys: IntArray, starts: IntArray) -> IntArray:
    """When the call of each correlation id began, of several the first; -1 where none has it, or it is below zero.

    Args:
        wanted: Shape (n,), the correlation ids of operations.
        keys: Shape (m,), those of the calls.
        starts: Shape (m,), ns.
    """
    import numpy as np

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
    import numpy as np

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


def _by_phase(of: Recorded, work: Operations, one: Phased, origin: Row) -> list[Row]:
    import numpy as np

    names = of.names
    known = bool((of.size[work.what == MEMORY] >= 0).all())
    groups = Groups.of(
        of.gpu_name * 4 + of.gpu_kind, of.duration, one.phase(work.launched), len(PHASES), np.maximum(of.size, 0)
    )

    def operation(name: tuple[int, int], some: Some) -> Row:
        sizes = {"total_bytes": float(some.size)} if name[1] and known and some.size is not None else {}
        return of.named(names[name[0]]) | {"kind": KINDS[name[1]]} | statistics(some.values) | sizes

    rows = _rows("gpu_summary", groups, lambda key: divmod(key, 4), operation)
    talk = [nccl_operation(name) for name in names]
    rows += _rows(
        "communication", groups, lambda key: talk[key // 4] if key % 4 == 0 else None,
        lambda name, some: {"kind": "nccl", "name": name, "short_name": name} | statistics(some.values),
    )  # fmt: skip
    if len(of.call_name):
        of_calls = Groups.of(of.call_name, of.call_duration, one.phase(of.call_start), len(PHASES))
        rows += _rows(
            "api_summary", of_calls, lambda key: names[key],
            lambda name, some: {"name": name, "short_name": name} | statistics(some.values),
        )  # fmt: skip
    return [origin | row for row in with_phase_shares(rows)]


def _rows(summary: str, groups: Groups, label: Callable[[int], Any], make: Callable[[Any, Some], Row]) -> list[Row]:
    return [
        {"phase": PHASES[part], "summary": summary} | make(name, some)
        for part, found in groups.by_part(label).items()
        for name, some in found.items()
    ]
