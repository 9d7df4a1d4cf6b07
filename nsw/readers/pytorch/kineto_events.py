"""The events of a Chrome trace, one after another in bounded memory, and what is kept of each.

Python's own JSON scanner parses event by event out of a sliding window: on traces of PyTorch it is faster than ijson
(208 MB: 3.7 s against 6.0 s) and, unlike ijson and orjson, it reads the NaN, Infinity and raw control characters
that profilers write. Of each event a few integers are kept, so that millions of them fit in memory.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.apart import Allowance, TooMuchError
from nsw.readers.invariants import LONGEST_NS
from nsw.readers.model import Report
from nsw.readers.untrusted_files import GZIP_MAGIC, unpack_chunks
from nsw.safe_files import open_to_read

if TYPE_CHECKING:
    import numpy as np


__all__ = ["MISSING", "EventStream", "Trace"]


_WINDOW = 1 << 18  # bytes read at a time; to meet a fault costs as much as the window is long
_LARGEST = 1 << 26  # a value beside the events, such as stack frames
_NEAR_END = 16  # characters: an error this near the window's end may be a value cut in two
_OVERLAP = 512
_BLANK = re.compile(r"[\s,]*")
_XLA_GPU = re.compile(r"/device:GPU:(\d{1,6})")
_XLA_STREAM = re.compile(r"Stream #(\d{1,9})")
_XLA_COPY = re.compile(r"Memcpy([HDP])2([HDP])")
_NEXT_EVENT = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|args|s|id|ts)")')


class _DamagedError(Exception):
    """The text is no JSON."""


class _CutError(Exception):
    """The file ends here, too early."""


class EventStream:
    """Iterate over the events; `header` fills with what is beside them."""

    def __init__(self, path: Path, report: Report, max_unpacked: int | None = None) -> None:
        self.header: dict[str, Any] = {}
        self._path = path
        self._max_unpacked = max_unpacked
        self._report = report
        self._scan = json.JSONDecoder(strict=False).scan_once  # type: ignore[attr-defined]  # undocumented, in every CPython
        self._window = ""
        self._chunks: Iterator[bytes] = iter(())
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._at = 0
        self._line = 1  # of the window's first character
        self._ended = False
        self._fault = ""
        self._damaged = 0
        self._first_damage = 0

    def __iter__(self) -> Iterator[Any]:
        """The events; faults of the file become problems of the report."""
        with open_to_read(self._path) as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            allowance = Allowance(self._path.stat().st_size, self._max_unpacked)
            self._chunks = unpack_chunks(raw, allowance) if packed else iter(lambda: raw.read(_WINDOW), b"")
            try:
                yield from self._read_document()
            except _CutError:
                detail = f" ({self._fault})" if self._fault else ""
                self._report.error(
                    f"the file ends too early{detail}: everything before this point was read",
                    line=self._current_line(),
                    fix="the profiler or the copy was cut short: run or copy again",
                )
            except TooMuchError as fault:
                self._report.refuse_unpacking(fault, but="everything before this point was read")
            except _DamagedError as fault:
                self._report.error(
                    f"not valid JSON: {fault}; everything before this point was read", line=self._current_line()
                )
        if self._damaged:
            self._report.error(f"{self._damaged} damaged events were skipped", line=self._first_damage)

    def _read_document(self) -> Iterator[Any]:
        first = self._next_token_character()
        if first == "[":
            self._at += 1
            yield from self._read_events(closed=False)
            return
        if first != "{":
            raise _DamagedError("neither an object nor a list of events")
        self._at += 1
        while self._next_token_character() != "}":
            key = self._read_value()
            if not isinstance(key, str) or self._next_token_character() != ":":
                raise _DamagedError("a key was expected")
            self._at += 1
            if key == "traceEvents" and self._next_token_character() == "[":
                self._at += 1
                yield from self._read_events(closed=True)
            else:
                self._next_token_character()
                self.header[key] = self._read_value()

    def _read_events(self, *, closed: bool) -> Iterator[Any]:
        """The members of the list that has just begun; a bare list need not be closed (Chrome's format)."""
        while True:
            match = _BLANK.match(self._window, self._at)
            try:  # nearly always the whole event is in the window
                event, self._at = self._scan(self._window, match.end() if match else self._at)
                if isinstance(event, dict):
                    yield event
                else:
                    self._count_damage()
                continue
            except (StopIteration, ValueError, RecursionError):
                pass
            try:
                if self._next_token_character() == "]":
                    self._at += 1
                    return
                event = self._read_value()
            except _CutError:
                if closed or self._at < len(self._window):
                    raise
                return
            except _DamagedError:
                self._count_damage()
                self._find_next_event()
                continue
            yield event

    def _count_damage(self) -> None:
        """Count an event that is none."""
        self._damaged += 1
        self._first_damage = self._first_damage or self._current_line()

    def _next_token_character(self) -> str:
        """The next character that is no blank or comma."""
        while True:
            match = _BLANK.match(self._window, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._fill_window():
                raise _CutError

    def _read_value(self) -> Any:
        while True:
            try:
                value, end = self._scan(self._window, self._at)
            except json.JSONDecodeError as fault:
                cut = fault.pos >= len(self._window) - _NEAR_END or fault.msg.startswith("Unterminated")
                message = fault.msg
            except StopIteration as fault:
                cut = fault.value >= len(self._window) - _NEAR_END
                message = "a value was expected"
            except (RecursionError, ValueError) as fault:  # nested too deep; a number of thousands of digits
                raise _DamagedError(str(fault)) from None
            else:
                if end < len(self._window) or isinstance(value, dict | list | str) or not self._fill_window():
                    self._at = end
                    return value
                continue
            if not cut:
                raise _DamagedError(message)
            waits = len(self._window) - self._at
            if waits > _LARGEST:  # its end is lacking, and it would swallow all events behind it
                raise _DamagedError(f"a value of more than {_LARGEST >> 20} MiB")
            if not self._fill_window(2 * waits):  # twice as much: it is scanned from its start again
                raise _CutError

    def _fill_window(self, min_length: int = 0) -> bool:
        """Read on, until about so many characters wait; False where the file ends, or can be read no further."""
        if self._ended:
            return False
        self._drop_read(self._at)
        parts, length = [self._window], len(self._window)
        while not self._ended and (len(parts) == 1 or length < min_length):
            try:
                data = next(self._chunks, b"")
            except (OSError, EOFError, zlib.error) as fault:  # a truncated or damaged .gz, a failing disk
                self._fault = str(fault)
                data = b""
            parts.append(self._decoder.decode(data, final=not data))
            length += len(parts[-1])
            self._ended = not data
        before, self._window = len(self._window), "".join(parts)
        return not self._ended or len(self._window) > before

    def _drop_read(self, until: int) -> None:
        self._line += self._window.count("\n", 0, until)
        self._window = self._window[until:]
        self._at = 0

    def _current_line(self) -> int:
        return self._line + self._window.count("\n", 0, self._at)

    def _find_next_event(self) -> None:
        """Move behind a damaged event."""
        start = self._at + 1
        while True:
            match = _NEXT_EVENT.search(self._window, start)
            if match:
                self._at = match.end()
                return
            self._at = max(self._at, len(self._window) - _OVERLAP)
            if not self._fill_window():
                self._at = len(self._window)
                raise _CutError
            start = 0


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
_OTHER_CATEGORIES = frozenset({"gpu_user_annotation", _OVERHEAD})
_NO_SPANS = ("s", "t", "f", "i", "I", "M", "C", "E", "e")  # arrows, instants, names, counters, ends of what began
MISSING = -1
_LARGEST_US = 9e15  # of a time: in ns still an int64
_MOST_PROCESSES = 100
_STEP = "ProfilerStep#"


def _int_array() -> array[int]:
    return array("q")


def _float_array() -> array[float]:
    return array("d")


@dataclass(slots=True)
class Events:
    """What events of host and GPUs have, parallel arrays; times in ns; MISSING where an event says nothing."""

    kind: array[int] = field(default_factory=_int_array)
    name: array[int] = field(default_factory=_int_array)
    start: array[int] = field(default_factory=_int_array)
    duration: array[int] = field(default_factory=_int_array)
    external: array[int] = field(default_factory=_int_array)
    correlation: array[int] = field(default_factory=_int_array)


@dataclass(slots=True)
class Host(Events):
    """Operators, annotations and CUDA calls."""

    thread: array[int] = field(default_factory=_int_array)


@dataclass(slots=True)
class Device(Events):
    """Work of the GPUs; MISSING or NaN where the event says nothing."""

    device: array[int] = field(default_factory=_int_array)
    lane: array[int] = field(default_factory=_int_array)  # process, stream and graph node, as a number
    size: array[int] = field(default_factory=_int_array)
    blocks_per_sm: array[float] = field(default_factory=_float_array)
    occupancy: array[float] = field(default_factory=_float_array)


class Trace:
    """Everything of a trace that the tables need."""

    def __init__(self, each_gpu: Callable[[dict[str, Any], int, int, int], None] | None = None) -> None:
        self.names: dict[str, int] = {}
        self.threads: dict[tuple[Any, Any], int] = {}
        self.lanes: dict[tuple[Any, ...], int] = {}
        self.host = Host()
        self.gpu = Device()
        self.steps: list[tuple[int, int]] = []
        # begin and end of the profiler's own pauses; of no thread that is named
        self.overhead: list[tuple[int, int]] = []
        self.projected = Host()  # ranges projected on a GPU
        self.peaks: dict[tuple[int, int], list[int]] = {}  # (device type, id): bytes allocated, reserved
        self.collectives: dict[int, dict[str, Any]] = {}  # by index of the kernel in `gpu`
        self.pids: set[int] = set()
        self.xla_gpus: dict[str, int] = {}  # by process: those of XLA, whose events have no category
        self.xla_streams: dict[tuple[str, str], int] = {}  # by process and thread
        self.processes: set[str] = set()  # what the trace calls its processes; the first of them
        self.timeless = 0
        self.begin_events = 0  # of kernels, calls and operators, not whole (ph X)
        self.whole_us = 0  # durations printed without a fraction
        self.latest_us = 0.0
        self._each_gpu = each_gpu

    def add(self, events: Iterable[Any]) -> None:
        """Take the events that matter."""
        for event in events:
            phase = event.get("ph")
            if phase == "X":
                category = event.get("cat")
                if isinstance(category, str):
                    self._take_span(event, category.lower())
                elif (str(event.get("pid")), str(event.get("tid"))) in self.xla_streams:
                    self._take_xla_work(event)
                elif isinstance(process := event.get("pid"), str) and len(self.processes) < _MOST_PROCESSES:
                    self.processes.add(process[:200])
            elif phase not in _NO_SPANS and str(event.get("cat")).lower() in _TIMED:
                self.begin_events += 1
            elif phase == "i" and event.get("name") == "[memory]":
                self._take_memory(_as_dict(event.get("args")))
            elif phase == "M" and len(self.processes) < _MOST_PROCESSES:
                self._take_label(event)

    def _take_label(self, event: dict[str, Any]) -> None:
        """Take what the trace calls a process or a thread."""
        label, process = str(_as_dict(event.get("args")).get("name"))[:200], str(event.get("pid"))
        if event.get("name") == "process_name":
            self.processes.add(label)
            if match := _XLA_GPU.search(label):
                self.xla_gpus[process] = int(match[1])
        elif event.get("name") == "thread_name" and process in self.xla_gpus and (match := _XLA_STREAM.match(label)):
            self.xla_streams[process, str(event.get("tid"))] = int(match[1])

    def _take_xla_work(self, event: dict[str, Any]) -> None:
        """Take a GPU's work in a trace of XLA (JAX, TensorFlow) as Kineto would have written it."""
        process, name, args = str(event.get("pid")), str(event.get("name")), _as_dict(event.get("args"))
        work = args | {
            "device": self.xla_gpus[process],
            "stream": self.xla_streams[process, str(event.get("tid"))],
            "correlation": args.get("correlation_id"),
        }
        category = "kernel"
        if copied := _XLA_COPY.fullmatch(name):
            details = dict(part.split(":", 1) for part in str(args.get("memcpy_details")).split() if ":" in part)
            kinds = [details.get(f"kind_{end}", "unknown").capitalize() for end in ("src", "dst")]
            category, name = "gpu_memcpy", f"Memcpy {copied[1]}to{copied[2]} ({kinds[0]} -> {kinds[1]})"
            work["bytes"] = details.get("size")
        elif name.startswith("Memset"):
            category = "gpu_memset"
        self._take_span(event | {"name": name, "args": work}, category)

    def _take_span(self, event: dict[str, Any], category: str) -> None:
        gpu, host = GPU.get(category), HOST.get(category)
        if gpu is None and host is None and category not in _OTHER_CATEGORIES:
            return
        start, duration, name = _as_ns(event.get("ts")), _as_ns(event.get("dur")), event.get("name")
        if start is None or duration is None or not 0 <= duration <= LONGEST_NS or not isinstance(name, str):
            self.timeless += 1
            return
        self.whole_us += isinstance(event["dur"], int)
        if isinstance(event["ts"], float) and abs(event["ts"]) > self.latest_us:
            self.latest_us = abs(event["ts"])
        args = _as_dict(event.get("args"))
        if gpu is not None:
            self._append_gpu(event, args, gpu, start, duration)
        elif host is not None:
            self._take_host_event(event, args, host, start, duration)
        elif category == _OVERHEAD:
            self.overhead.append((start, start + duration))
        else:
            label = f"{_STEP[:-1]}*" if name.startswith(_STEP) else name
            self._append_host(self.projected, event, args, (ANNOTATION, label, start, duration))

    def _take_host_event(
        self, event: dict[str, Any], args: dict[str, Any], kind: int, start: int, duration: int
    ) -> None:
        name = event["name"]
        if name.startswith(_STEP):
            self.steps.append((start, start + duration))
            name, kind = f"{_STEP[:-1]}*", ANNOTATION
        if isinstance(pid := event.get("pid"), int):
            self.pids.add(pid)
        self._append_host(self.host, event, args, (kind, name, start, duration))

    def _append_host(
        self, host: Host, event: dict[str, Any], args: dict[str, Any], span: tuple[int, str, int, int]
    ) -> None:
        kind, name, start, duration = span
        thread = (str(event.get("pid")), str(event.get("tid")))
        host.kind.append(kind)
        host.name.append(self.names.setdefault(name, len(self.names)))
        host.start.append(start)
        host.duration.append(duration)
        host.external.append(_as_int(args.get("External id", args.get("external id"))))
        host.correlation.append(_as_int(args.get("correlation")))
        host.thread.append(self.threads.setdefault(thread, len(self.threads)))

    def _append_gpu(self, event: dict[str, Any], args: dict[str, Any], kind: int, start: int, duration: int) -> None:
        gpu, name = self.gpu, event["name"]
        index = len(gpu.kind)
        gpu.kind.append(kind)
        gpu.name.append(self.names.setdefault(name, len(self.names)))
        gpu.start.append(start)
        gpu.duration.append(duration)
        gpu.external.append(_as_int(args.get("External id", args.get("external id"))))
        gpu.correlation.append(_as_int(args.get("correlation")))
        gpu.device.append(_as_int(args.get("device", event.get("pid"))))
        lane = (
            str(event.get("pid")),
            str(event.get("tid")),
            _as_int(args.get("stream")),
            _as_int(args.get("graph node id")),
        )
        gpu.lane.append(self.lanes.setdefault(lane, len(self.lanes)))
        gpu.size.append(_as_int(args.get("bytes")))
        gpu.blocks_per_sm.append(_as_float(args.get("blocks per SM")))
        gpu.occupancy.append(_as_float(args.get("est. achieved occupancy %")))
        if "Collective name" in args:
            self.collectives[index] = {k: args[k] for k in _COLLECTIVE if k in args}
        if self._each_gpu is not None:
            self._each_gpu(event, kind, start, duration)

    def of_operators(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether an operator or annotation has the external id, of each work of the GPUs."""
        import numpy as np

        ids = np.asarray(self.host.external)[np.asarray(self.host.kind) != CALL]
        return np.isin(np.asarray(self.gpu.external), ids[ids != MISSING])

    def share_without_operator(self) -> float:
        """The share of the kernels' time, in %, that is of no operator; 0 where there are no operators."""
        import numpy as np

        is_kernel, duration = np.asarray(self.gpu.kind) == 0, np.asarray(self.gpu.duration, float)
        total = float(duration[is_kernel].sum())
        alone = float(duration[is_kernel & ~self.of_operators()].sum())
        return 100.0 * alone / total if total and OP in self.host.kind else 0.0

    def _take_memory(self, args: dict[str, Any]) -> None:
        device_key = (_as_int(args.get("Device Type")), _as_int(args.get("Device Id")))
        peak = self.peaks.setdefault(device_key, [MISSING, MISSING])
        for index, key in enumerate(("Total Allocated", "Total Reserved")):
            peak[index] = max(peak[index], _as_int(args.get(key)))


_COLLECTIVE = ("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size")


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_ns(value: Any) -> int | None:
    """Microseconds, as a number or as text, in whole ns; None where they are no time."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST_US:
        return None
    return value * 1000 if isinstance(value, int) else round(value * 1000)


def _as_int(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else MISSING


def _as_float(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e15 else math.nan
