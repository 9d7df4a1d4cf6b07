"""Traces of PyTorch's profiler (Kineto): .pt.trace.json, .json and .json.gz, read event by event."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from nsw.readers.model import Options, Report, Sample
from nsw.readers.pytorch.kineto_events import ANNOTATION, CALL, MISSING, EventStream, Trace
from nsw.readers.pytorch.kineto_tables import GpuTrace, communication, gpu_summary, operators
from nsw.readers.untrusted_files import unpacked_beginning
from nsw.tables import TRACES
from nsw.wording import one_or

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.tables import Row

__all__ = ["read", "sniff"]

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
_UNROUNDED = ("phases", "iterations", "iteration_trace", "process_gpus", "gaps", "host_copies", "gpu_use")
_VERSIONS = ("cuda_runtime_version", "cuda_driver_version", "cupti_version", "hip_runtime_version")


def sniff(sample: Sample) -> int:
    """By `traceEvents` at the beginning, or a bare list of events; also compressed."""
    text = unpacked_beginning(sample.head).decode(errors="replace").lstrip("\ufeff \t\r\n")
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
    if trace.timeless:
        events = "1 event has" if trace.timeless == 1 else f"{trace.timeless} events have"
        report.error(f"{events} no valid time or duration and left out", fix="profile again, or copy the trace again")
    if trace.begin_events:
        events = one_or(
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
        _fill(report, options, trace, stream.header)
    except OverflowError as fault:
        report.error(
            f"no summary: {fault}: an event holds a duration of years", fix="profile again, or drop that event"
        )
    if gpu_trace is not None and gpu_trace.count:
        phases = kineto_steps.of_operations(trace, options.steps, options.warmup)
        halves = _start_pm(trace), _duration_pm(trace)
        report.tables["gpu_trace"] = gpu_trace.table(*halves, phases=phases)
    if not (len(trace.host.kind) or len(trace.gpu.kind) or trace.peaks or report.problems):
        _say_whose(report, trace)
    _say_where(report, path, trace, stream.header)
    return report


def _say_whose(report: Report, trace: Trace) -> None:
    """Name the tool of a trace in which nothing is PyTorch's."""
    other_tool = next((tool for words, tool in _OTHER_TOOLS if any(map(words.search, trace.processes))), None)
    report.error(
        f"a trace of {other_tool}, which nsw does not read"
        if other_tool
        else "a trace without events of PyTorch's profiler",
        fix="profile the program with nsys, and read its report",
    )


def _fill(report: Report, options: Options, trace: Trace, header: dict[str, Any]) -> None:
    from nsw.readers.pytorch import kineto_steps

    half = _duration_pm(trace)
    rows, eligible = operators(trace, _device_kind(header))
    tables: dict[str, list[Row]] = {
        "gpu_summary": gpu_summary(trace),
        "api_summary": _summary(trace, CALL),
        "operators": rows,
        "nvtx_summary": [row | {"style": "pushpop"} for row in _summary(trace, ANNOTATION)],
        "nvtx_gpu_summary": _projected(trace),
        "communication": communication(trace),
    }
    if options.phase_tables():
        every = options.wants("iteration_trace", default=False)
        tables |= kineto_steps.phase_tables(trace, named_step=options.steps, warmup=options.warmup, every=every)
    for name, table in tables.items():
        if table and options.wants(name, default=name not in TRACES):
            if name not in _UNROUNDED:
                _round(table, half)
            report.tables[name] = table
    if options.wants("facts"):
        facts = _header_facts(header) + _peaks(trace) + kineto_steps.facts(trace)
        if eligible is not None:
            facts.append({"key": "tensor_core_eligible_pct", "value": eligible, "unit": "%"})
        if len(trace.host.kind) or len(trace.gpu.kind):
            report.tables["facts"] = facts


def _round(table: list[Row], half: float | None) -> None:
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


def _start_pm(trace: Trace) -> float | None:
    """Starts since 1970 in microseconds are more digits than JSON's numbers hold."""
    spacing = math.ulp(trace.latest_us) * 1000
    return spacing / 2 if spacing > 0.5 else _duration_pm(trace)


def _summary(trace: Trace, kind: int) -> list[Row]:
    """Statistics by name of one kind of host event."""
    import numpy as np

    from nsw.readers.timeline.statistics import group, statistics, with_shares

    chosen = np.asarray(trace.host.kind) == kind
    grouped = group(np.asarray(trace.host.name)[chosen], np.asarray(trace.host.duration)[chosen])
    names = list(trace.names)
    return with_shares([{"name": names[k]} | statistics(grouped.values_of(i)) for i, k in enumerate(grouped.keys)])


def _projected(trace: Trace) -> list[Row]:
    durations_by_name: dict[int, list[int]] = {}
    for name, duration in zip(trace.projected.name, trace.projected.duration, strict=True):
        durations_by_name.setdefault(name, []).append(duration)
    names = list(trace.names)
    return [
        {"name": names[name], "calls": len(durations), "projected_ns": sum(durations)}
        for name, durations in durations_by_name.items()
    ]


def _device_kind(header: dict[str, Any]) -> str:
    return "XPU" if any("xpu" in str(key).lower() for key in header) else "CUDA"


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


def _peaks(trace: Trace) -> list[Row]:
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


def _say_where(report: Report, path: Path, trace: Trace, header: dict[str, Any]) -> None:
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
