"""The phases of a trace of PyTorch's profiler: by its step markers, else by annotations, else by the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.pytorch.kineto_breakdown import launched
from nsw.readers.pytorch.kineto_collect import ANNOTATION, CALL, Trace
from nsw.readers.pytorch.kineto_gpu import named
from nsw.readers.timeline import phases_of_one_process
from nsw.readers.timeline.iterations import Iterations
from nsw.readers.timeline.phases_of_one_process import Recorded, marks_by_name, phases_of_operations

if TYPE_CHECKING:
    from nsw.readers.timeline.iterations import Marks
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
    of = _recorded(trace)
    if not len(of.start):
        return {}
    return phases_of_one_process.phase_tables(of, _span(trace, of), named_step=named_step, warmup=warmup, every=every)


def of_operations(trace: Trace, named_step: str | None, warmup: int | None) -> list[str] | None:
    """The phase of each GPU operation, in the trace's order; None without iterations."""
    return phases_of_operations(_recorded(trace), named_step, warmup)


def _recorded(trace: Trace) -> Recorded:
    import numpy as np

    gpu, host = trace.gpu, trace.host
    calls = np.flatnonzero(np.asarray(host.kind) == CALL)
    return Recorded(
        names=list(trace.names),
        named=named,
        gpu_name=np.asarray(gpu.name),
        gpu_kind=np.asarray(gpu.kind),
        start=np.asarray(gpu.start),
        duration=np.asarray(gpu.duration),
        launched=launched(trace),
        device=np.asarray(gpu.device),
        size=np.asarray(gpu.size),
        call_name=np.asarray(host.name)[calls],
        call_start=np.asarray(host.start)[calls],
        call_duration=np.asarray(host.duration)[calls],
        marks=_marks(trace),
        steps=_steps(trace),
    )


def _steps(trace: Trace) -> Iterations | None:
    import numpy as np

    if not trace.steps:
        return None
    steps = np.array(sorted(trace.steps), np.int64)
    return Iterations("profiler_step", _STEPS, steps[:, 0], int(steps[:, 1].max()))


def _span(trace: Trace, of: Recorded) -> tuple[int, int]:
    import numpy as np

    first, last = int(of.start.min()), int((of.start + of.duration).max())
    start = np.asarray(trace.host.start)
    if not len(start):
        return first, last
    end = start + np.asarray(trace.host.duration)
    return min(first, int(start.min())), max(last, int(end.max()))


def _marks(trace: Trace) -> list[Marks]:
    """The annotations by name and thread."""
    import numpy as np

    host, names = trace.host, list(trace.names)
    chosen = np.flatnonzero(np.asarray(host.kind) == ANNOTATION)
    starts = np.asarray(host.start)[chosen]
    ends = starts + np.asarray(host.duration)[chosen]
    own = [names[code] for code in np.asarray(host.name)[chosen].tolist()]
    return marks_by_name(own, np.asarray(host.thread)[chosen].tolist(), starts, ends)
