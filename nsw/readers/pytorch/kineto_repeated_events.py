"""Events that a trace holds twice are counted once: a trace that was merged with itself doubles every figure.

A call and what it launches have a correlation id, an operator and a range an external id. Two events with the same id,
name, time and thread (of a GPU: device, stream and graph node) are one. Without an id two events may well be alike.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from nsw.readers.pytorch.kineto_collect import CALL
from nsw.wording import one_or

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.pytorch.kineto_collect import Device, Host, Trace
    from nsw.readers.timeline.array_types import Chosen, IntArray


@dataclass(frozen=True, slots=True)
class Repeated:
    """What was left out: how many `works` of the GPUs (`kept`: which of all are left), how many `others`."""

    works: int
    others: int
    kept: Chosen | None

    def message(self) -> str | None:
        """What to report, or None where nothing was left out."""
        parts = [one_or(self.works, "a kernel or copy", "kernels or copies")] if self.works else []
        parts += [one_or(self.others, "a call, operator or range", "calls, operators or ranges")] if self.others else []
        if not parts:
            return None
        verb = "is" if self.works + self.others == 1 else "are"
        return f"{' and '.join(parts)} {verb} in the trace twice, at one time under one id: counted once"


def leave_out_repeated(trace: Trace) -> Repeated:
    """Take out of a trace, which is read to its end, every event that equals one before it."""
    gpu = trace.gpu
    kept = _kept(gpu.correlation, (gpu.start, gpu.kind, gpu.name, gpu.duration, gpu.device, gpu.lane))
    if kept is not None:
        places = {old: new for new, old in enumerate(kept.nonzero()[0].tolist())}
        trace.collectives = {places[at]: args for at, args in trace.collectives.items() if at in places}
    works, on_host = _keep(gpu, kept), _leave_out_of(trace.host)
    others = on_host + _leave_out_of(trace.projected)
    if others:  # steps and pauses have no ids of their own
        trace.steps, trace.overhead = list(dict.fromkeys(trace.steps)), list(dict.fromkeys(trace.overhead))
    trace.left_out = works + on_host
    return Repeated(works, others, kept)


def _leave_out_of(events: Host) -> int:
    import numpy as np

    ids = np.where(np.asarray(events.kind) == CALL, np.asarray(events.correlation), np.asarray(events.external))
    return _keep(events, _kept(ids, (events.start, events.kind, events.name, events.duration, events.thread)))


def _kept(ids: Any, columns: Sequence[array[int]]) -> Chosen | None:
    """Which events are the first with their id (above zero) and columns, the starts first; None: all are."""
    import numpy as np

    start, known = np.asarray(columns[0]), np.asarray(ids) > 0
    ordered = np.sort(start[known])
    often: IntArray = ordered[1:][ordered[1:] == ordered[:-1]]
    if not len(often):  # as nearly always, and found in a tenth of the time
        return None
    places = np.flatnonzero(known & np.isin(start, often))
    compared = [np.asarray(column)[places] for column in (ids, *columns)]
    order = np.lexsort(compared)  # which leaves what is equal in its order
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in compared])
    if not same.any():
        return None
    kept = np.ones(len(start), bool)
    kept[places[order[1:][same]]] = False
    return kept


def _keep(events: Device | Host, kept: Chosen | None) -> int:
    """Leave the other events out of all columns; how many they were."""
    import numpy as np

    if kept is None:
        return 0
    for column in fields(events):
        values: array[Any] = getattr(events, column.name)
        setattr(events, column.name, array(values.typecode, np.asarray(values)[kept].tobytes()))
    return int((~kept).sum())
