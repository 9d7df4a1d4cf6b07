"""Traces of PyTorch's profiler (Kineto): .pt.trace.json, .json and .json.gz, read event by event."""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.model import PHASE_TABLES, Options, Report, Sample
from nsw.readers.pytorch.kineto_events import ANNOTATION, CALL, MISSING, OP, EventStream, Trace
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.untrusted_files import unpack_beginning
from nsw.resources import csv_rows
from nsw.tables import TRACES, Row, to_arrow
from nsw.tables.names import demangle, short_name
from nsw.wording import singular_or_count

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["GpuTrace", "communication_rows", "gpu_summary", "name_columns", "operator_rows", "read", "sniff"]


_KINETO = re.compile(
    r'"(?:schemaVersion|deviceProperties|traceName|cpu_op|gpu_memcpy|cuda_runtime)"|ProfilerStep#|"aten::'
)
_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_]?(\d{1,6})(?!\d)", re.IGNORECASE)
# What tensorboard_trace_handler names a file: HOST_PID.TIME.pt.trace.json
_HANDLER_NAME = re.compile(r"(.+)_(\d+)\.\d+\.pt\.trace\.json(?:\.gz)?")
# Whose trace it is by the names of its processes: the pattern, the tool, and what to read in place of the trace.
_OTHER_TOOLS = (
    (re.compile(r"\A(?:CPU|CUDA) functions\Z"), "PyTorch's autograd profiler of before 1.8.1"),
    (re.compile(r"/job:|/gpu:\d+/context#"), "TensorFlow's timeline"),
    (re.compile(r"/host:\w|/device:(?:GPU|TPU|CPU)"), "the JAX or TensorFlow profiler (XLA)"),
    (re.compile(r"\w_(?:[Aa]llreduce|[Bb]roadcast|[Aa]llgather)|Horovod"), "Horovod's timeline"),
)
_NOTABLE = 25.0  # % of the kernels' time: some are launched by no operator
_UNROUNDED = frozenset(PHASE_TABLES) - {"phase_summary"}
_VERSIONS = ("cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version")


def sniff(sample: Sample) -> int:
    """By `traceEvents` at the beginning, or a bare list of events; also compressed."""
    text = unpack_beginning(sample.head).decode(errors="replace").lstrip("\ufeff \t\r\n")
    if text.startswith("{") and '"traceEvents"' in text:
        return 95 if _KINETO.search(text) else 70
    if text.startswith("{") and '"schemaVersion"' in text and '"deviceProperties"' in text:
        return 80
    return 55 if re.match(r"\[\s*\{", text) and '"ph"' in text else 0


def read(path: Path, options: Options) -> Report:
    """Fill summaries, operators and facts; `gpu_trace` when asked for by name."""
    from nsw.readers.pytorch import kineto_steps  # with numpy: this module is loaded to look at other files too

    report = Report(str(path), tool="pytorch", format="kineto")
    gpu_trace = GpuTrace() if options.wants("gpu_trace", default=False) else None
    trace = Trace(gpu_trace.add if gpu_trace else None)
    stream = EventStream(path, report, options.max_unpacked)
    trace.add(stream)
    if trace.xla_streams:
        report.tool = "jax"
    if trace.timeless:
        events = "1 event has" if trace.timeless == 1 else f"{trace.timeless} events have"
        report.error(f"{events} no valid time or duration and left out", fix="profile again, or copy the trace again")
    if trace.begin_events:
        events = singular_or_count(
            trace.begin_events, "1 event of a kernel, call or operator is", "events of kernels, calls or operators are"
        )
        report.error(
            f"{events} not whole (a begin, ph B, or no known ph): left out",
            fix="profile again, or copy the trace again: PyTorch writes such events whole (ph X)",
        )
    if (share := trace.share_without_operator()) > _NOTABLE:
        report.warn(
            f"kernels of {share:.0f} % of the time have no operator's External id: device times of operators lack them"
        )
    try:
        _fill_report(report, options, trace, stream.header)
    except OverflowError as fault:
        report.error(
            f"no summary: {fault}: an event holds a duration of years", fix="profile again, or drop that event"
        )
    if gpu_trace is not None and gpu_trace.count:
        phases = kineto_steps.phase_of_operations(trace, options.steps, options.warmup)
        # starts since 1970 in microseconds are more digits than JSON's numbers hold
        spacing = math.ulp(trace.latest_us) * 1000
        halves = spacing / 2 if spacing > 0.5 else _duration_pm(trace), _duration_pm(trace)
        report.tables["gpu_trace"] = gpu_trace.table(*halves, phases=phases)
    if not (len(trace.host.kind) or len(trace.gpu.kind) or trace.peaks or report.problems):
        _report_foreign_trace(report, trace)
    _set_origin(report, path, trace, stream.header)
    return report


def _report_foreign_trace(report: Report, trace: Trace) -> None:
    """Add the error that a trace holds nothing of PyTorch's, with the tool that wrote it where that is known."""
    other_tool = next((tool for words, tool in _OTHER_TOOLS if any(map(words.search, trace.processes))), None)
    report.error(
        f"a trace of {other_tool}, which nsw does not read"
        if other_tool
        else "a trace without events of PyTorch's profiler",
        fix="profile the program with nsys, and read its report",
    )


def _fill_report(report: Report, options: Options, trace: Trace, header: dict[str, Any]) -> None:
    from nsw.readers.pytorch import kineto_steps

    half = _duration_pm(trace)
    device_kind = "XPU" if any("xpu" in str(key).lower() for key in header) else "CUDA"
    rows, eligible = operator_rows(trace, device_kind)
    tables: dict[str, list[Row]] = {
        "gpu_summary": gpu_summary(trace),
        "api_summary": _host_summary(trace, CALL),
        "operators": rows,
        "nvtx_summary": [row | {"style": "pushpop"} for row in _host_summary(trace, ANNOTATION)],
        "nvtx_gpu_summary": _projected_rows(trace),
        "communication": communication_rows(trace),
        "bandwidth": _bandwidth_rows(trace),
    }
    if options.phase_tables():
        every = options.wants("iteration_trace", default=False)
        tables |= kineto_steps.phase_tables(trace, named_step=options.steps, warmup=options.warmup, every=every)
    for name, table in tables.items():
        if table and options.wants(name, default=name not in TRACES):
            if name not in _UNROUNDED:
                _add_rounding(table, half)
            report.tables[name] = table
    if options.wants("facts"):
        facts = _header_facts(header) + _memory_peaks(trace) + kineto_steps.step_facts(trace)
        if eligible is not None:
            facts.append({"key": "tensor_core_eligible_pct", "value": eligible, "unit": "%"})
        if len(trace.host.kind) or len(trace.gpu.kind):
            report.tables["facts"] = facts


def _add_rounding(table: list[Row], half: float | None) -> None:
    """Give times printed in whole microseconds their half-widths."""
    if half is None:
        return
    for row in table:
        calls = row.get("calls") or 1
        for column in [c for c in row if c.endswith("_ns") and c not in ("gpu_ns", "projected_ns")]:
            is_sum = column in ("total_ns", "cpu_ns", "self_cpu_ns", "device_ns", "self_device_ns")
            row[f"{column}_pm"] = half * calls if is_sum else half


def _duration_pm(trace: Trace) -> float | None:
    """Half a microsecond where durations have no fraction, as in traces until 2023."""
    counted = len(trace.host.kind) + len(trace.gpu.kind)
    return 500.0 if trace.whole_us * 2 > counted else None


def _host_summary(trace: Trace, kind: int) -> list[Row]:
    """Statistics by name of one kind of host event."""
    import numpy as np

    from nsw.readers.timeline.statistics import duration_statistics, group_by_key, with_shares

    chosen = np.asarray(trace.host.kind) == kind
    grouped = group_by_key(np.asarray(trace.host.name)[chosen], np.asarray(trace.host.duration)[chosen])
    names = list(trace.names)
    return with_shares(
        [{"name": names[k]} | duration_statistics(grouped.values_of(i)) for i, k in enumerate(grouped.keys)]
    )


def _projected_rows(trace: Trace) -> list[Row]:
    durations_by_name: dict[int, list[int]] = {}
    for name, duration in zip(trace.projected.name, trace.projected.duration, strict=True):
        durations_by_name.setdefault(name, []).append(duration)
    names = list(trace.names)
    return [
        {"name": names[name], "calls": len(durations), "projected_ns": sum(durations)}
        for name, durations in durations_by_name.items()
    ]


def _header_facts(header: dict[str, Any]) -> list[Row]:
    facts: list[Row] = []
    devices = header.get("deviceProperties")
    for entry in devices if isinstance(devices, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), int):
            continue
        device = {"device": entry["id"]}
        if isinstance(entry.get("name"), str):
            facts.append(device | {"key": "gpu_name", "text": entry["name"]})
        for key, field, unit in (("gpu_sms", "numSms", None), ("gpu_memory_bytes", "totalGlobalMem", "byte")):
            if _is_count(entry.get(field)):
                facts.append(device | {"key": key, "value": entry[field], "unit": unit})
    facts += [{"key": key, "text": str(header[key])} for key in _VERSIONS if _is_count(header.get(key))]
    distributed = header.get("distributedInfo")
    if isinstance(distributed, dict):
        if _is_count(distributed.get("world_size")):
            facts.append({"key": "ranks", "value": distributed["world_size"]})
        if isinstance(distributed.get("backend"), str):
            facts.append({"key": "distributed_backend", "text": distributed["backend"][:80]})
    return facts


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _memory_peaks(trace: Trace) -> list[Row]:
    """Most memory that PyTorch's allocator gave out and held at once, by GPU."""
    facts: list[Row] = []
    for (kind, device), peak in sorted(trace.peaks.items()):
        if kind == 0:  # for CPUs PyTorch counts only what was allocated since the profile began
            continue
        for memory_kind, value in zip(("allocated", "reserved"), peak, strict=True):
            if value != MISSING:
                row: Row = {"key": f"peak_device_{memory_kind}_bytes", "value": value, "unit": "byte"}
                facts.append(row | ({"device": device} if device != MISSING else {}))
    return facts


def _set_origin(report: Report, path: Path, trace: Trace, header: dict[str, Any]) -> None:
    """Set rank, host and process of all rows, where the file tells."""
    origin: Row = {}
    distributed = header.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    if _is_count(rank):
        origin["rank"] = rank
    elif in_name := _RANK_IN_NAME.search(path.name):
        origin["rank"] = int(in_name[1])
        report.warn(f"the trace does not contain its rank: {in_name[1]} is taken from the file name")
    handler = _HANDLER_NAME.fullmatch(path.name)
    if handler and int(handler[2][:18]) in trace.pids:
        origin |= {"host": handler[1], "pid": int(handler[2])}
    for table in report.tables.values():
        if isinstance(table, list):
            for row in table:
                row.update(origin)


KINDS = ("kernel", "memcpy", "memset")
_CHUNK = 50_000
_COPY = re.compile(r"\((\w+) -> (\w+)\)")
_COPY_OR_SET = re.compile(r"Mem(?:cpy|set) (?:\w+ )?\(\w[\w ]*(?: -> [\w ]+)?\)\Z")  # no function with parameters
_DTYPE_BYTES = {
    "Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Int": 4, "Long": 8, "Short": 2, "Byte": 1, "Char": 1, "Bool": 1,
    "Float8_e4m3fn": 1, "Float8_e5m2": 1,
}  # fmt: skip
_IDS = meaning_by_word("kineto ids")
_SIZES = {"bytes": "bytes", "shared memory": "smem_bytes"}  # static and dynamic in one figure


def gpu_summary(trace: Trace) -> list[Row]:
    """A row a kernel, copy or memset name, most time first."""
    import numpy as np

    from nsw.readers.timeline.statistics import duration_statistics, group_by_key, with_shares

    gpu = trace.gpu
    if not len(gpu.kind):
        return []
    kind, name, device, size = (np.asarray(a) for a in (gpu.kind, gpu.name, gpu.device, gpu.size))
    key = name * 4 + kind
    names = list(trace.names)
    grouped = group_by_key(key, np.asarray(gpu.duration))
    devices = {k: _single_device(device[key == k]) for k in grouped.keys} if len(np.unique(device)) > 1 else None
    only_device = _single_device(device)
    rows = []
    for i, k in enumerate(grouped.keys):
        row = name_columns(names[k // 4]) | {"kind": KINDS[k % 4]} | duration_statistics(grouped.values_of(i))
        row["device"] = devices[k] if devices else only_device
        if k % 4:
            moved = size[key == k]
            row["total_bytes"] = int(moved.sum()) if (moved != MISSING).all() else None
        rows.append(row)
    return with_shares(rows)


def _single_device(devices: Any) -> int | None:
    return int(devices[0]) if devices[0] >= 0 and (devices == devices[0]).all() else None


def name_columns(name: str) -> Row:
    """The name of a GPU row, demangled, and what to call it."""
    text = name.encode("utf-8", "replace").decode()  # JSON may hold half a character
    clear = demangle(text)
    mangled = {"mangled_name": text} if clear != text else {}
    short = clear if _COPY_OR_SET.match(clear) else short_name(clear)
    return {"name": clear, "short_name": short} | mangled


def communication_rows(trace: Trace) -> list[Row]:
    """NCCL kernels by collective; bytes where each of them tells its elements and their type."""
    import numpy as np

    from nsw.readers.timeline.phases import nccl_operation
    from nsw.readers.timeline.statistics import duration_statistics, with_shares

    operations = {number: nccl_operation(name) for name, number in trace.names.items() if "nccl" in name}
    by_operation: dict[str, tuple[list[int], list[int | None]]] = {}
    for index, number in enumerate(trace.gpu.name):
        operation = operations.get(number)
        if operation is None or trace.gpu.kind[index] != 0:
            continue
        durations, sizes = by_operation.setdefault(operation, ([], []))
        durations.append(trace.gpu.duration[index])
        sizes.append(_message_bytes(trace.collectives.get(index, {})))
    rows: list[Row] = []
    for operation, (durations, sizes) in by_operation.items():
        row = {"library": "nccl", "name": operation} | duration_statistics(np.sort(np.array(durations, np.int64)))
        known_sizes = [s for s in sizes if s is not None]
        row["total_bytes"] = sum(known_sizes) if len(known_sizes) == len(sizes) else None
        rows.append(row)
    return with_shares(rows)


# kinds of collectives by PyTorch's names; one kernel of the coalesced ones does several, of which it tells one
_OPERATIONS: Final = {
    "allreduce": "AllReduce", "_allgather_base": "AllGather", "allgather": "AllGather", "all_gather": "AllGather",
    "_reduce_scatter_base": "ReduceScatter", "reduce_scatter": "ReduceScatter", "broadcast": "Broadcast",
    "reduce": "Reduce", "all_to_all": "AllToAll", "all_to_allv": "AllToAll", "send": "Send", "recv": "Recv",
}  # fmt: skip


def _bandwidth_rows(trace: Trace) -> list[Row]:
    """Speeds of the collectives whose kernels tell what they do."""
    from nsw.readers.timeline.bandwidth import Collective, bandwidth_rows

    collectives = []
    for index, args in trace.collectives.items():
        operation, ranks = _OPERATIONS.get(str(args["Collective name"])), args.get("Group size")
        if operation is None or trace.gpu.kind[index] != 0:
            continue
        sizes = [_message_bytes(args, key) for key in ("In msg nelems", "Out msg nelems")]
        message = None if None in sizes else max(size for size in sizes if size is not None)
        group = 2 if operation in {"Send", "Recv"} else ranks if isinstance(ranks, int) and ranks > 0 else None
        collectives.append(Collective(operation, group, message, trace.gpu.duration[index]))
    return bandwidth_rows(collectives)


def _message_bytes(args: dict[str, Any], key: str = "In msg nelems") -> int | None:
    elements, each = args.get(key), _DTYPE_BYTES.get(str(args.get("dtype")))
    if each is None or not isinstance(elements, int) or not 0 <= elements < 2**53:
        return None
    return elements * each


class GpuTrace:
    """The rows of `gpu_trace`, as Arrow so that millions fit in memory."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[Row] = []
        self._chunks: list[pa.Table] = []

    def add(self, event: dict[str, Any], kind: int, start: int, duration: int) -> None:
        """Add one event as a row.

        Args:
            event: The event of the trace, with `name` and `args`.
            kind: The index of its kind in `KINDS`.
            start: When it started (ns).
            duration: How long it took (ns).
        """
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        row = name_columns(event["name"]) | {"kind": KINDS[kind], "start_ns": start, "duration_ns": duration}
        for key, column in (_IDS | _SIZES).items():
            value = args.get(key)
            if isinstance(value, int) and 0 <= value < 2**63:
                row[column] = value
        for key in ("grid", "block"):
            extent = args.get(key)
            if (
                isinstance(extent, list)
                and len(extent) == 3
                and all(isinstance(e, int) and 0 <= e < 2**31 for e in extent)
            ):
                row |= dict(zip((f"{key}_x", f"{key}_y", f"{key}_z"), extent, strict=True))
        if kind == 1 and (copy := _COPY.search(event["name"])):
            row |= {"src_memory": copy[1].lower(), "dst_memory": copy[2].lower()}
        rate = args.get("memory bandwidth (GB/s)")
        if isinstance(rate, int | float) and 0 <= rate < 1e9:
            row["bytes_per_s"] = rate * 1e9
        self._rows.append(row)
        self.count += 1
        if len(self._rows) == _CHUNK:
            self._chunks.append(to_arrow("gpu_trace", self._rows))
            self._rows = []

    def table(self, start_pm: float | None, duration_pm: float | None, phases: list[str] | None = None) -> pa.Table:
        """The rows in order of start, which counts from the first of them.

        Args:
            start_pm: Half of what a start is rounded to, ns.
            duration_pm: The same of durations.
            phases: Of the rows, in the order that they came.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = pa.concat_tables([*self._chunks, to_arrow("gpu_trace", self._rows)])
        if phases is not None:
            at = table.schema.get_field_index("phase")
            table = table.set_column(at, table.schema.field(at), pa.array(phases, pa.string()))
        table = table.sort_by("start_ns")
        starts = table["start_ns"]
        table = table.set_column(
            table.schema.get_field_index("start_ns"), "start_ns", pc.subtract(starts, pc.min(starts))
        )
        for column, half in (("start_ns_pm", start_pm), ("duration_ns_pm", duration_pm)):
            values = pa.array([half] * table.num_rows, pa.float64())
            table = table.set_column(table.schema.get_field_index(column), column, values)
        return table


# Operators that can run on tensor cores: the TensorBoard plugin's list, with attention and scaled products.
_ELIGIBLE = frozenset(row["operator"] for row in csv_rows("readers/data/tensor_core_operators.csv"))


def operator_rows(trace: Trace, device_kind: str | None) -> tuple[list[Row], float | None]:
    """Rows of `operators`, and the share of kernel time launched by operators that could use tensor cores.

    Operators of a thread nest by time; CUDA calls and annotations count as children, as in PyTorch. GPU work
    is of the operator with the same external id; `device_ns` of an operator holds that of its children. An operator
    that does nothing but call one of its own name (another overload) is one call with it, as in PyTorch's tables. The
    share is in per cent of the kernels' time whose operator is known, and counts the kernels that the lowest such
    operator launched itself; None without any.

    The profiler's own pauses (category `overhead`) are taken off the operator they fell into, as in PyTorch's table.
    A trace does not name their thread: it is the one with an operator around them; where several have one they stay.
    """
    walk = _Walk(trace)
    sums = walk.sums
    names = list(trace.names)
    has_device = bool(trace.of_operators().any())
    total_self = sum(s[2] for s in sums.values()) or None
    total_device = sum(s[4] for s in sums.values()) or None
    rows: list[Row] = []
    for name, (calls, cpu, own_cpu, on_device, own_device) in sums.items():
        row: Row = {"name": names[name], "calls": calls, "cpu_ns": cpu, "self_cpu_ns": own_cpu}
        row["cpu_avg_ns"] = cpu / calls
        if total_self:
            row |= {"self_cpu_pct": 100.0 * own_cpu / total_self}
        if has_device:
            row |= {"device_kind": device_kind, "device_ns": on_device, "self_device_ns": own_device}
            row |= {"device_avg_ns": on_device / calls}
            if total_device:
                row["self_device_pct"] = 100.0 * own_device / total_device
        rows.append(row)
    rows.sort(key=lambda row: -row["self_cpu_ns"])
    return rows, 100.0 * walk.eligible / walk.in_kernels if walk.in_kernels else None


def _device_time(trace: Trace, *, kernels: bool = False) -> dict[int, int]:
    """Time of the GPU work, or of the kernels alone, of each external id, ns."""
    gpu = trace.gpu
    times: dict[int, int] = {}
    for kind, external, duration in zip(gpu.kind, gpu.external, gpu.duration, strict=True):
        if external != MISSING and not (kernels and kind):
            times[external] = times.get(external, 0) + duration
    return times


@dataclass(slots=True)
class _Open:
    """An event that has begun; times in ns."""

    end: int
    name: int
    kind: int
    duration: int
    own_device: int = 0
    own_kernels: int = 0
    eligible_below: bool = False
    children: int = 0  # how many
    children_time: int = 0
    device_below: int = 0
    same_child: _Open | None = None  # the first child, ended, when it is an operator of the same name


def _profiler_pauses(trace: Trace) -> Any:
    """Start, duration and thread of the profiler's pauses within operators of one thread, and within no call."""
    import numpy as np

    begin, end = np.array(trace.overhead, np.int64).reshape(-1, 2).T
    host = trace.host
    kind, start, thread = (np.asarray(column, np.int64) for column in (host.kind, host.start, host.thread))
    ends = start + np.asarray(host.duration, np.int64)
    owner_thread, threads = np.full(len(begin), MISSING, np.int64), np.zeros(len(begin), np.int64)
    in_call = np.zeros(len(begin), bool)
    for number in range(len(trace.threads) if len(begin) else 0):
        for event_kind in (OP, CALL):
            chosen = np.flatnonzero((thread == number) & (kind == event_kind))
            chosen = chosen[np.argsort(start[chosen], kind="stable")]
            latest = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(ends[chosen])])
            within = latest[np.searchsorted(start[chosen], begin, "right")] >= end
            if event_kind == CALL:
                in_call |= within
            else:
                threads += within
                owner_thread[within] = number
    usable = (threads == 1) & ~in_call
    return begin[usable], (end - begin)[usable], owner_thread[usable]


class _Walk:
    """Goes through the events of each thread, children within parents, and adds each operator up when it ends."""

    def __init__(self, trace: Trace) -> None:
        self.sums: dict[int, list[int]] = {}  # by name: calls, CPU, own CPU, device, own device
        self.eligible = self.in_kernels = 0  # ns in kernels, of operators that could use tensor cores and of all
        self._device, self._kernels = _device_time(trace), _device_time(trace, kernels=True)  # each id is taken once
        self._eligible = {number for name, number in trace.names.items() if name in _ELIGIBLE}
        self._stack: list[_Open] = []
        self._walk_trace(trace)

    def _walk_trace(self, trace: Trace) -> None:
        import numpy as np

        host = trace.host
        pauses = _profiler_pauses(trace)
        columns = [
            np.concatenate([np.asarray(host_column, np.int64), pauses[at]])
            for at, host_column in enumerate((host.start, host.duration, host.thread))
        ]
        order = np.lexsort((-columns[1], columns[0], columns[2]))
        start, duration, thread = (array("q", column.tobytes()) for column in columns)
        current, events = MISSING, len(host.kind)
        for i in order.tolist():
            if thread[i] != current:
                current = thread[i]
                self._close_ended(None)
            self._close_ended(start[i])
            if i >= events or host.kind[i] == CALL:
                if self._stack:
                    self._stack[-1].children += 1
                    self._stack[-1].children_time += duration[i]
            else:
                self._open_event(host.kind[i], host.name[i], host.start[i], host.duration[i], host.external[i])
        self._close_ended(None)

    def _open_event(self, kind: int, name: int, start: int, duration: int, external: int) -> None:
        opened = _Open(start + duration, name, kind, duration)
        if kind == OP:
            opened.own_device = self._device.pop(external, 0)
            opened.own_kernels = self._kernels.pop(external, 0)
        self._stack.append(opened)

    def _close_ended(self, now: int | None) -> None:
        """End what ends by `now`; everything when None."""
        stack = self._stack
        while stack and (now is None or stack[-1].end <= now):
            done = stack.pop()
            # count the kernels of an operator, and whether it is the lowest that could use tensor cores
            self.in_kernels += done.own_kernels
            if done.kind == OP and done.name in self._eligible and not done.eligible_below:
                self.eligible += done.own_kernels
                done.eligible_below = True
            if done.children == 1:
                if (child := done.same_child) is not None:  # one call with the child of the same name
                    done.children_time, done.device_below = child.children_time, child.device_below
                    done.own_device += child.own_device
                    done.same_child = None
            elif done.same_child is not None:
                self._add_closed(done.same_child)
            waits = False
            if stack:
                above = stack[-1]
                above.eligible_below |= done.eligible_below
                above.children += 1
                above.children_time += done.duration
                above.device_below += done.own_device + done.device_below
                if waits := above.children == 1 and above.name == done.name and above.kind == done.kind == OP:
                    above.same_child = done
            if not waits:
                self._add_closed(done)

    def _add_closed(self, done: _Open) -> None:
        if done.kind == OP:
            total = self.sums.setdefault(done.name, [0, 0, 0, 0, 0])
            total[0] += 1
            total[1] += done.duration
            total[2] += max(done.duration - done.children_time, 0)
            total[3] += done.own_device + done.device_below
            total[4] += done.own_device
