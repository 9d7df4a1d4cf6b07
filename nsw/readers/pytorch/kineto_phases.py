"""The phases of a trace of PyTorch's profiler: by its step markers, else by annotations, else by the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.readers.pytorch.kineto_breakdown import launch_times
from nsw.readers.pytorch.kineto_collect import ANNOTATION, CALL, Trace
from nsw.readers.pytorch.kineto_gpu import KINDS, named
from nsw.readers.timeline.communication import nccl_operation
from nsw.readers.timeline.iterations import Iterations, Marks, generic, of_marks
from nsw.readers.timeline.kernel_sequence import repetitions
from nsw.readers.timeline.phase_groups import Groups
from nsw.readers.timeline.phase_rows import Timeline, iteration_rows, iterations_row, phase_rows, with_phase_shares
from nsw.readers.timeline.phases import COMMUNICATION, KERNEL, MEMORY, PHASES, Operations, Phased, phased
from nsw.readers.timeline.statistics import statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.readers.timeline.phase_groups import Some
    from nsw.tables import Row

_STEPS: Final = "ProfilerStep#"


def phase_tables(trace: Trace, *, named_step: str | None, warmup: int | None, every: bool) -> dict[str, list[Row]]:
    """The tables of phases and iterations; with `every` also a row an iteration. Empty without GPU work.

    Args:
        trace: The trace.
        named_step: The annotation that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
        every: Whether `iteration_trace` is wanted.
    """
    work = _work(trace)
    if not len(work.start):
        return {}
    found = _iterations(trace, work, named_step)
    one = None if found is None else phased(work, found, warmup)
    first, span = int(work.start.min()), _span(trace, work)
    origin = {"device": first_device} if (first_device := _only_device(work)) is not None else {}
    timeline = Timeline(origin, work, span, one)
    tables = {
        "phases": phase_rows(timeline),
        "iterations": [row] if (row := iterations_row(timeline)) else [],
        "iteration_trace": iteration_rows(timeline) if every else [],
        "phase_summary": [] if one is None else _by_phase(trace, work, one, origin),
    }
    for rows in tables.values():
        for row in rows:
            if "start_ns" in row:  # times of a trace count from 1970: those of tables from its first operation
                row["start_ns"] -= min(first, span[0])
    in_calls: dict[str, float] = {}
    for row in tables["phase_summary"]:
        if row["summary"] == "api_summary":
            in_calls[row["phase"]] = in_calls.get(row["phase"], 0.0) + row["total_ns"]
    for row in tables["phases"] if in_calls else ():
        row["api_ns"] = in_calls.get(row["phase"], 0.0)
    return tables


def of_operations(trace: Trace, named_step: str | None, warmup: int | None) -> list[str] | None:
    """The phase of each GPU operation, in the trace's order; None without iterations."""
    work = _work(trace)
    found = _iterations(trace, work, named_step) if len(work.start) else None
    if found is None:
        return None
    return [PHASES[code] for code in phased(work, found, warmup).phase(work.launched).tolist()]


def _work(trace: Trace) -> Operations:
    import numpy as np

    gpu = trace.gpu
    start = np.asarray(gpu.start)
    launched = launch_times(trace)
    nccl = np.array([nccl_operation(n) is not None for n in trace.names], dtype=bool)
    what = np.where(np.asarray(gpu.kind) == 0, KERNEL, MEMORY)
    what = np.where((what == KERNEL) & nccl[np.asarray(gpu.name)], COMMUNICATION, what) if len(what) else what
    return Operations(
        start, start + np.asarray(gpu.duration), np.where(launched < 0, start, launched), np.asarray(gpu.device), what
    )


def _only_device(work: Operations) -> int | None:
    device = int(work.device[0])
    return device if device >= 0 and bool((work.device == device).all()) else None


def _span(trace: Trace, work: Operations) -> tuple[int, int]:
    import numpy as np

    start = np.asarray(trace.host.start)
    if not len(start):
        return int(work.start.min()), int(work.end.max())
    end = start + np.asarray(trace.host.duration)
    return min(int(work.start.min()), int(start.min())), max(int(work.end.max()), int(end.max()))


def _iterations(trace: Trace, work: Operations, named_step: str | None) -> Iterations | None:
    import numpy as np

    if named_step is None and trace.steps:
        steps = np.array(sorted(trace.steps), np.int64)
        return Iterations("profiler_step", _STEPS, steps[:, 0], int(steps[:, 1].max()))
    marks = _marks(trace)
    found = of_marks(marks, named=named_step) or of_marks(marks)
    if found is not None:
        return found
    kernels = np.flatnonzero(work.what != MEMORY)
    kernels = kernels[np.argsort(work.launched[kernels], kind="stable")]
    start, launched = work.start[kernels], work.launched[kernels]
    repeated = repetitions(np.asarray(trace.gpu.name)[kernels], start, work.end[kernels] - start)
    if repeated is None:
        return None
    heads, behind = repeated
    end = int(launched[behind]) if behind < len(launched) else int(launched[-1]) + 1
    return Iterations("kernel_sequence", None, launched[heads], end)


def _marks(trace: Trace) -> list[Marks]:
    """The annotations by name and thread."""
    import numpy as np

    host = trace.host
    chosen = np.flatnonzero(np.asarray(host.kind) == ANNOTATION)
    names = list(trace.names)
    places: dict[tuple[str, int], list[int]] = {}
    for index, name, thread in zip(
        chosen.tolist(), np.asarray(host.name)[chosen].tolist(), np.asarray(host.thread)[chosen].tolist(), strict=True
    ):
        places.setdefault((generic(names[name]), thread), []).append(index)
    found = []
    for (name, _), where in places.items():
        starts = np.asarray(host.start)[where]
        order = np.argsort(starts, kind="stable")
        ends = starts + np.asarray(host.duration)[where]
        own = {names[n] for n in np.asarray(host.name)[where].tolist()}
        found.append(Marks(own.pop() if len(own) == 1 else name, starts[order], ends[order]))
    return found


def _by_phase(trace: Trace, work: Operations, one: Phased, origin: Row) -> list[Row]:
    import numpy as np

    names, gpu, host = list(trace.names), trace.gpu, trace.host
    durations, parts = work.end - work.start, one.phase(work.launched)
    size = np.asarray(gpu.size)
    known = bool((size[work.what == MEMORY] >= 0).all())
    groups = Groups.of(
        np.asarray(gpu.name) * 4 + np.asarray(gpu.kind), durations, parts, len(PHASES), np.maximum(size, 0)
    )

    def operation(name: tuple[int, int], some: Some) -> Row:
        sizes = {"total_bytes": float(some.size)} if name[1] and known and some.size is not None else {}
        return named(names[name[0]]) | {"kind": KINDS[name[1]]} | statistics(some.values) | sizes

    rows = _rows("gpu_summary", groups, lambda key: divmod(key, 4), operation)
    talk = {number: nccl_operation(name) for name, number in trace.names.items()}
    rows += _rows(
        "communication", groups, lambda key: talk[key // 4] if key % 4 == 0 else None,
        lambda name, some: {"kind": "nccl", "name": name, "short_name": name} | statistics(some.values),
    )  # fmt: skip
    calls = np.flatnonzero(np.asarray(host.kind) == CALL)
    if len(calls):
        of_calls = Groups.of(
            np.asarray(host.name)[calls], np.asarray(host.duration)[calls],
            one.phase(np.asarray(host.start)[calls]), len(PHASES),
        )  # fmt: skip
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
