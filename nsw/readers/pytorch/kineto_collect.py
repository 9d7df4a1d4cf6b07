"""What is kept of each event of a trace: a few integers, so that millions of them fit in memory."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsw.readers.invariants import LONGEST_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np

# Categories of 2021 (Operator, Kernel ...) to today, in small letters.
GPU = {
    "kernel": 0, "concurrent_kernel": 0, "gpu_memcpy": 1, "memcpy": 1, "gpu_memset": 2, "memset": 2,
}  # fmt: skip
OP, ANNOTATION, CALL = 0, 1, 2
HOST = {
    "cpu_op": OP, "operator": OP, "user_annotation": ANNOTATION, "cuda_runtime": CALL, "cuda_driver": CALL,
    "runtime": CALL, "xpu_runtime": CALL, "privateuse1_runtime": CALL, "privateuse1_driver": CALL,
}  # fmt: skip
_TIMED = GPU.keys() | HOST.keys()
_OVERHEAD = "overhead"
_OTHERS = frozenset({"gpu_user_annotation", _OVERHEAD})
_NO_SPANS = ("s", "t", "f", "i", "I", "M", "C", "E", "e")  # arrows, instants, names, counters, ends of what began
NONE = -1
_LARGEST_US = 9e15  # of a time: in ns still an int64
_MOST_PROCESSES = 100
_STEP = "ProfilerStep#"


def _ints() -> array[int]:
    return array("q")


def _floats() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Host:
    """Operators, annotations and CUDA calls, parallel arrays; times in ns."""

    kind: array[int] = field(default_factory=_ints)
    name: array[int] = field(default_factory=_ints)
    start: array[int] = field(default_factory=_ints)
    duration: array[int] = field(default_factory=_ints)
    thread: array[int] = field(default_factory=_ints)
    external: array[int] = field(default_factory=_ints)
    correlation: array[int] = field(default_factory=_ints)


@dataclass(slots=True)
class Device:
    """Work of the GPUs, parallel arrays; times in ns; NONE or NaN where the event says nothing."""

    kind: array[int] = field(default_factory=_ints)
    name: array[int] = field(default_factory=_ints)
    start: array[int] = field(default_factory=_ints)
    duration: array[int] = field(default_factory=_ints)
    device: array[int] = field(default_factory=_ints)
    external: array[int] = field(default_factory=_ints)
    correlation: array[int] = field(default_factory=_ints)
    lane: array[int] = field(default_factory=_ints)  # process, stream and graph node, as a number
    size: array[int] = field(default_factory=_ints)
    blocks_per_sm: array[float] = field(default_factory=_floats)
    occupancy: array[float] = field(default_factory=_floats)


class Trace:
    """Everything of a trace that the tables need."""

    def __init__(self, each_gpu: Callable[[dict[str, Any], int, int, int], None] | None = None) -> None:
        self.names: dict[str, int] = {}
        self.threads: dict[tuple[Any, Any], int] = {}
        self.lanes: dict[tuple[Any, ...], int] = {}
        self.host = Host()
        self.gpu = Device()
        self.steps: list[tuple[int, int]] = []
        self.overhead: list[
            tuple[int, int]
        ] = []  # begin and end of the profiler's own pauses; of no thread that is named
        self.projected = Host()  # ranges projected on a GPU
        self.peaks: dict[tuple[int, int], list[int]] = {}  # (device type, id): bytes allocated, reserved
        self.collectives: dict[int, dict[str, Any]] = {}  # by index of the kernel in `gpu`
        self.pids: set[int] = set()
        self.processes: set[str] = set()  # what the trace calls its processes; the first of them
        self.timeless = 0
        self.begun = 0  # of kernels, calls and operators, not whole (ph X)
        self.whole_us = 0  # durations printed without a fraction
        self.latest_us = 0.0
        self._each_gpu = each_gpu

    def add(self, events: Iterable[Any]) -> None:
        """Take the events that matter."""
        for event in events:
            if not isinstance(event, dict):
                continue
            phase = event.get("ph")
            if phase == "X":
                category = event.get("cat")
                if isinstance(category, str):
                    self._span(event, category.lower())
                elif isinstance(whose := event.get("pid"), str) and len(self.processes) < _MOST_PROCESSES:
                    self.processes.add(whose[:200])
            elif phase not in _NO_SPANS and str(event.get("cat")).lower() in _TIMED:
                self.begun += 1
            elif phase == "i" and event.get("name") == "[memory]":
                self._memory(_dict(event.get("args")))
            elif phase == "M" and len(self.processes) < _MOST_PROCESSES and event.get("name") == "process_name":
                self.processes.add(str(_dict(event.get("args")).get("name"))[:200])

    def _span(self, event: dict[str, Any], category: str) -> None:
        gpu, host = GPU.get(category), HOST.get(category)
        if gpu is None and host is None and category not in _OTHERS:
            return
        start, duration, name = _ns(event.get("ts")), _ns(event.get("dur")), event.get("name")
        if start is None or duration is None or not 0 <= duration <= LONGEST_NS or not isinstance(name, str):
            self.timeless += 1
            return
        self.whole_us += isinstance(event["dur"], int)
        if isinstance(event["ts"], float) and abs(event["ts"]) > self.latest_us:
            self.latest_us = abs(event["ts"])
        args = _dict(event.get("args"))
        if gpu is not None:
            self._gpu(event, args, gpu, start, duration)
        elif host is not None:
            self._host(event, args, host, start, duration)
        elif category == _OVERHEAD:
            self.overhead.append((start, start + duration))
        else:
            label = f"{_STEP[:-1]}*" if name.startswith(_STEP) else name
            self._append(self.projected, event, args, (ANNOTATION, label, start, duration))

    def _host(self, event: dict[str, Any], args: dict[str, Any], kind: int, start: int, duration: int) -> None:
        name = event["name"]
        if name.startswith(_STEP):
            self.steps.append((start, start + duration))
            name, kind = f"{_STEP[:-1]}*", ANNOTATION
        if isinstance(pid := event.get("pid"), int):
            self.pids.add(pid)
        self._append(self.host, event, args, (kind, name, start, duration))

    def _append(self, host: Host, event: dict[str, Any], args: dict[str, Any], what: tuple[int, str, int, int]) -> None:
        kind, name, start, duration = what
        thread = (str(event.get("pid")), str(event.get("tid")))
        host.kind.append(kind)
        host.name.append(self.names.setdefault(name, len(self.names)))
        host.start.append(start)
        host.duration.append(duration)
        host.thread.append(self.threads.setdefault(thread, len(self.threads)))
        host.external.append(_int(args.get("External id", args.get("external id"))))
        host.correlation.append(_int(args.get("correlation")))

    def _gpu(self, event: dict[str, Any], args: dict[str, Any], kind: int, start: int, duration: int) -> None:
        gpu, name = self.gpu, event["name"]
        index = len(gpu.kind)
        gpu.kind.append(kind)
        gpu.name.append(self.names.setdefault(name, len(self.names)))
        gpu.start.append(start)
        gpu.duration.append(duration)
        gpu.device.append(_int(args.get("device", event.get("pid"))))
        gpu.external.append(_int(args.get("External id", args.get("external id"))))
        gpu.correlation.append(_int(args.get("correlation")))
        lane = str(event.get("pid")), str(event.get("tid")), _int(args.get("stream")), _int(args.get("graph node id"))
        gpu.lane.append(self.lanes.setdefault(lane, len(self.lanes)))
        gpu.size.append(_int(args.get("bytes")))
        gpu.blocks_per_sm.append(_float(args.get("blocks per SM")))
        gpu.occupancy.append(_float(args.get("est. achieved occupancy %")))
        if "Collective name" in args:
            self.collectives[index] = {k: args[k] for k in _COLLECTIVE if k in args}
        if self._each_gpu is not None:
            self._each_gpu(event, kind, start, duration)

    def of_operators(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether an operator or annotation has the external id, of each work of the GPUs."""
        import numpy as np

        ids = np.asarray(self.host.external)[np.asarray(self.host.kind) != CALL]
        return np.isin(np.asarray(self.gpu.external), ids[ids != NONE])

    def share_without_operator(self) -> float:
        """The share of the kernels' time, in %, that is of no operator; 0 where there are no operators."""
        import numpy as np

        is_kernel, duration = np.asarray(self.gpu.kind) == 0, np.asarray(self.gpu.duration, float)
        total = float(duration[is_kernel].sum())
        alone = float(duration[is_kernel & ~self.of_operators()].sum())
        return 100.0 * alone / total if total and OP in self.host.kind else 0.0

    def _memory(self, args: dict[str, Any]) -> None:
        where = (_int(args.get("Device Type")), _int(args.get("Device Id")))
        peak = self.peaks.setdefault(where, [NONE, NONE])
        for place, key in enumerate(("Total Allocated", "Total Reserved")):
            peak[place] = max(peak[place], _int(args.get(key)))


_COLLECTIVE = ("Collective name", "In msg nelems", "dtype")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _ns(value: Any) -> int | None:
    """Microseconds, as a number or as text, in whole ns; None where they are no time."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_US:
        return None
    return value * 1000 if isinstance(value, int) else round(value * 1000)


def _int(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else NONE


def _float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e15 else math.nan
