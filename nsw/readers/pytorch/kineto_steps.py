"""Where the time of a training step went, and the phases of a trace.

As in the TensorBoard plugin of PyTorch, which was withdrawn, each moment of a step belongs to the first of these that
was under way: kernel, memcpy, memset, communication, runtime (CUDA calls), data loader, CPU operator; what is left is
other. So the categories add up to the step. Communication is NCCL kernels, by their names, and the annotations `nccl:`
and `gloo:`. A step lasts from its start on the host, or the end of the GPU work before it if that is later, to the end
of the last GPU work that it launched; a trace without steps is one, of all its operators. Other than the plugin, nsw
knows the names of newer kernels and operators, calls fp32 kernels (`_ffma_`) none of tensor cores, and finds the data
loader in newer traces. Phases follow from step markers, else from annotations, else from the kernels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from nsw.readers.pytorch.kineto import name_columns
from nsw.readers.pytorch.kineto_events import ANNOTATION, CALL, OP, Trace
from nsw.readers.timeline import process_phases
from nsw.readers.timeline.iterations import Iterations, Marks
from nsw.readers.timeline.statistics import IntArray
from nsw.tables import Row

Spans: TypeAlias = tuple[IntArray, IntArray]  # starts and ends, disjoint, ascending

__all__ = [
    "CATEGORIES",
    "intersect_spans",
    "merge_spans",
    "phase_of_operations",
    "phase_tables",
    "step_facts",
    "subtract_spans",
    "uses_tensor_cores",
]


CATEGORIES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other")
_NCCL_KERNEL = re.compile(r"nccl(?:Dev)?Kernel|^nccl\w*Kernel")
_COMMUNICATION = re.compile(r"(?:nccl|gloo):|c10d::|record_param_comms")
_DATA_LOADER = re.compile(r"enumerate\(Data(?:Loader\)#.*\.__next__$|Pipe\)#)")

# Kernels that use tensor cores by their names: PyProf's list, with the instructions of newer chips.
TENSOR_CORE = re.compile(
    r"[hsi]884|[hsci]1688|hmma|i8816|16816|dgrad_1x1_stride_2x2|first_layer_wgrad_kernel|conv1x1|conv2d_c1_k1"
    r"|direct_group|xmma_(?:[fdw]\w{4}_)?(?:implicit_gemm|indexed)|xmma_sparse_conv|xmma_warp_specialized_implicit_gemm|xmma_gemm|xmma_sparse_gemm"
    r"|tensorop|wgmma|64x\d+x16gemm|nvjet|utcmma|tcgen05|flash_fwd|flash_bwd"
)
_NO_TENSOR_CORE = re.compile(r"_simt_|_ffma_|f32f32_f32f32_f32_|sgemm_\d+x\d+_\d*+(?:x\d*+)?_?[nt][nt]")


def step_facts(trace: Trace) -> list[Row]:
    """The mean step and its parts in ns, and for each GPU how it was used during the steps."""
    starts, ends = _step_spans(trace)
    if not len(starts) or int(ends[-1]) <= int(starts[0]):
        return []
    left = merge_spans(starts, ends)
    total = _total_length(left)
    count = len(trace.steps)
    divisor = max(count, 1)
    rows: list[Row] = [
        {"key": "steps", "value": count},
        {"key": "step_time_ns", "value": total / divisor, "unit": "ns"},
    ]
    for category, spans in zip(CATEGORIES, _spans_by_category(trace), strict=False):
        overlap = intersect_spans(left, spans)
        left = subtract_spans(left, overlap)
        rows.append({"key": f"step_{category}_ns", "value": _total_length(overlap) / divisor, "unit": "ns"})
    rows.append({"key": "step_other_ns", "value": _total_length(left) / divisor, "unit": "ns"})
    window = (np.array([starts[0]]), np.array([ends.max()]))
    uses = np.array([uses_tensor_cores(n) for n in trace.names], dtype=bool)[np.asarray(trace.gpu.name)]
    of_operator = _is_launched_by_operator(trace)
    for device, kernel_rows in _kernels_of_each_device(trace):
        facts_here = _gpu_facts(trace, kernel_rows, window)
        if (share := _tensor_core_share(trace, kernel_rows, uses, of_operator)) is not None:
            facts_here.append({"key": "tensor_core_time_pct", "value": share, "unit": "%"})
        rows += [row | {"device": device} for row in facts_here]
    return rows


def _kernels_of_each_device(trace: Trace) -> Iterator[tuple[int, IntArray]]:
    """Each device that is known, and the places of its kernels: found together, since a trace may name thousands."""
    devices = np.asarray(trace.gpu.device)
    kernels = np.flatnonzero(np.asarray(trace.gpu.kind) == 0)
    kernels = kernels[np.argsort(devices[kernels], kind="stable")]
    distinct = np.unique(devices[devices >= 0])
    first, last = (np.searchsorted(devices[kernels], distinct, side) for side in ("left", "right"))
    for device, start, end in zip(distinct.tolist(), first.tolist(), last.tolist(), strict=True):
        yield device, kernels[start:end]


def _gpu_facts(trace: Trace, kernel_rows: IntArray, window: Spans) -> list[Row]:
    """Utilisation, and means over the kernels of one GPU, weighted by their time within the steps."""
    gpu = trace.gpu
    starts = np.asarray(gpu.start)[kernel_rows]
    ends = starts + np.asarray(gpu.duration)[kernel_rows]
    busy = _total_length(intersect_spans(window, merge_spans(starts, ends)))
    rows: list[Row] = [{"key": "gpu_utilization_pct", "value": 100.0 * busy / _total_length(window), "unit": "%"}]
    if (efficiency := _sm_efficiency(starts, ends, np.asarray(gpu.blocks_per_sm)[kernel_rows], window)) is not None:
        rows.append({"key": "est_sm_efficiency_pct", "value": efficiency, "unit": "%"})
    weights = (np.minimum(ends, window[1][0]) - np.maximum(starts, window[0][0])).clip(0).astype(np.float64)
    for key, values, unit in (
        ("mean_blocks_per_sm", gpu.blocks_per_sm, None),
        ("mean_est_achieved_occupancy_pct", gpu.occupancy, "%"),
    ):
        figures = np.asarray(values)[kernel_rows]
        present = ~np.isnan(figures)
        if weights[present].sum() > 0:
            mean = float(np.average(figures[present], weights=weights[present]))
            rows.append({"key": key, "value": mean, "unit": unit})
    return rows


def _is_launched_by_operator(trace: Trace) -> Any:
    """Of each GPU event, whether an operator launched it."""
    operators = np.asarray(trace.host.external)[np.asarray(trace.host.kind) == OP]
    return np.isin(np.asarray(trace.gpu.external), operators[operators >= 0])


def _tensor_core_share(trace: Trace, kernel_rows: IntArray, uses: Any, of_operator: Any) -> float | None:
    """Per cent of the time of these kernels, of those that an operator launched where operators are known."""
    launched = kernel_rows[of_operator[kernel_rows]]
    chosen = launched if len(launched) else kernel_rows
    times = np.asarray(trace.gpu.duration)[chosen].astype(np.float64)
    return 100.0 * float(times[uses[chosen]].sum() / times.sum()) if times.sum() > 0 else None


def _sm_efficiency(starts: IntArray, ends: IntArray, blocks: Any, window: Spans) -> float | None:
    """Mean of the blocks per SM of all kernels under way, where more than 1 counts as 1; per cent of the window."""
    has_blocks = blocks > 0  # NaN is not
    if not has_blocks.any():
        return None
    starts, ends = (points[has_blocks].clip(window[0][0], window[1][0]) for points in (starts, ends))
    points = np.concatenate((starts, ends))
    order = np.argsort(points, kind="stable")
    level = np.cumsum(np.concatenate((blocks[has_blocks], -blocks[has_blocks]))[order])[:-1]
    lengths = np.diff(points[order])
    return 100.0 * float((level.clip(0.0, 1.0) * lengths).sum()) / _total_length(window)


def uses_tensor_cores(kernel: str) -> bool:
    """Whether the name of a kernel says that it uses tensor cores: a list of names, no measurement."""
    return TENSOR_CORE.search(kernel) is not None and _NO_TENSOR_CORE.search(kernel) is None


def _step_spans(trace: Trace) -> Spans:
    """Starts and ends of the steps; of the whole trace where there are none."""
    gpu_start = np.asarray(trace.gpu.start)
    gpu_end = gpu_start + np.asarray(trace.gpu.duration)
    steps = sorted(trace.steps) or _span_of_operators(trace)
    if not steps:
        empty = np.empty(0, np.int64)
        return (gpu_start.min(keepdims=True), gpu_end.max(keepdims=True)) if len(gpu_start) else (empty, empty)
    times = gpu_launch_times(trace)
    inside = [(times >= start) & (times <= end) for start, end in steps]
    before = steps[0][0]
    if inside[0].any():
        # what ran before the first step's own work was launched by a step that is not in the trace
        foreign = ~np.logical_or.reduce(inside) & (gpu_end < gpu_start[inside[0]].min())
        before = max([before, *gpu_end[foreign].tolist()])
    starts_, ends_ = [], []
    for (start, end), is_inside in zip(steps, inside, strict=True):
        first = max(start, before)
        before = max([first, end, *gpu_end[is_inside].tolist()])
        starts_.append(first)
        ends_.append(before)
    return np.array(starts_, np.int64), np.array(ends_, np.int64)


def _span_of_operators(trace: Trace) -> list[tuple[int, int]]:
    """From the start of the first operator to the end of the last, as one step; none without operators."""
    chosen = np.asarray(trace.host.kind) == OP
    starts = np.asarray(trace.host.start)[chosen]
    ends = starts + np.asarray(trace.host.duration)[chosen]
    return [(int(starts.min()), int(ends.max()))] if len(starts) else []


def gpu_launch_times(trace: Trace) -> IntArray:
    """When the host launched each GPU event; -1 where no call tells."""
    kind, correlation = np.asarray(trace.host.kind), np.asarray(trace.host.correlation)
    calls = np.flatnonzero((kind == CALL) & (correlation >= 0))
    return process_phases.launch_times(
        np.asarray(trace.gpu.correlation), correlation[calls], np.asarray(trace.host.start)[calls]
    )


def _spans_by_category(trace: Trace) -> list[Spans]:
    """The spans of each category but other, in the order of precedence."""
    names = list(trace.names)
    nccl = np.array([bool(_NCCL_KERNEL.search(n)) for n in names], dtype=bool)
    talk = np.array([bool(_COMMUNICATION.match(n)) for n in names], dtype=bool)
    load = np.array([bool(_DATA_LOADER.match(n)) for n in names], dtype=bool)
    gpu, host = trace.gpu, trace.host
    gpu_kind, gpu_name = np.asarray(gpu.kind), np.asarray(gpu.name)
    kind, name = np.asarray(host.kind), np.asarray(host.name)
    on_cpu = (kind == OP) | (kind == ANNOTATION)
    collective = (gpu_kind == 0) & nccl[gpu_name]

    def on_gpu(chosen: Any) -> Spans:
        starts = np.asarray(gpu.start)[chosen]
        return merge_spans(starts, starts + np.asarray(gpu.duration)[chosen])

    def on_host(chosen: Any) -> Spans:
        starts = np.asarray(host.start)[chosen]
        return merge_spans(starts, starts + np.asarray(host.duration)[chosen])

    communication = merge_spans(
        *(np.concatenate(pair) for pair in zip(on_gpu(collective), on_host(on_cpu & talk[name]), strict=True))
    )
    return [
        on_gpu((gpu_kind == 0) & ~nccl[gpu_name]),
        on_gpu(gpu_kind == 1),
        on_gpu(gpu_kind == 2),
        communication,
        on_host(kind == CALL),
        on_host(on_cpu & load[name]),
        on_host((kind == OP) & ~load[name] & ~talk[name]),
    ]


def merge_spans(starts: IntArray, ends: IntArray) -> Spans:
    """Spans that may overlap as spans that do not."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate(([True], starts[1:] > ends[:-1]))
    last = np.concatenate((first[1:], [True]))
    return starts[first], ends[last]


def intersect_spans(a: Spans, b: Spans) -> Spans:
    """What is in both."""
    points = np.concatenate((a[0], a[1], b[0], b[1]))
    depth = np.concatenate([np.full(len(x), s) for x, s in ((a[0], 1), (a[1], -1), (b[0], 1), (b[1], -1))])
    order = np.lexsort((depth, points))  # at one moment ends come before starts
    points, level = points[order], np.cumsum(depth[order])
    inside = np.flatnonzero(level[:-1] == 2) if len(level) else np.empty(0, np.int64)
    return points[inside], points[inside + 1]


def subtract_spans(a: Spans, b: Spans) -> Spans:
    """What is in `a` and not in `b`, which lies within `a`."""
    if not len(b[0]):
        return a
    starts = np.sort(np.concatenate((a[0], b[1])))
    ends = np.sort(np.concatenate((a[1], b[0])))
    nonempty = ends > starts
    return starts[nonempty], ends[nonempty]


def _total_length(spans: Spans) -> int:
    return int((spans[1] - spans[0]).sum())


_STEPS: Final = "ProfilerStep#"


def phase_tables(trace: Trace, *, named_step: str | None, warmup: int | None, every: bool) -> dict[str, list[Row]]:
    """The tables of phases and iterations; with `every` also a row an iteration. Empty without GPU work.

    Args:
        trace: The trace.
        named_step: The annotation that a recipe names as its step.
        warmup: How many iterations are warm-up, where a recipe says so.
        every: Whether `iteration_trace` is wanted.
    """
    recorded = _recorded_events(trace)
    if not len(recorded.start):
        return {}
    return process_phases.tables_of_process(
        recorded, _recorded_span(trace, recorded), named_step=named_step, warmup=warmup, every=every
    )


def phase_of_operations(trace: Trace, named_step: str | None, warmup: int | None) -> list[str] | None:
    """The phase of each GPU operation, in the order of the trace; None without iterations.

    Args:
        trace: The trace.
        named_step: The annotation that a recipe names as its step; None: the iterations are detected.
        warmup: How many iterations are warm-up; None: this is detected.
    """
    return process_phases.phases_of_operations(_recorded_events(trace), named_step, warmup)


def _recorded_events(trace: Trace) -> process_phases.Recorded:
    gpu, host = trace.gpu, trace.host
    calls = np.flatnonzero(np.asarray(host.kind) == CALL)
    return process_phases.Recorded(
        names=list(trace.names),
        name_columns=name_columns,
        gpu_name=np.asarray(gpu.name),
        gpu_kind=np.asarray(gpu.kind),
        start=np.asarray(gpu.start),
        duration=np.asarray(gpu.duration),
        launched=gpu_launch_times(trace),
        device=np.asarray(gpu.device),
        size=np.asarray(gpu.size),
        call_name=np.asarray(host.name)[calls],
        call_start=np.asarray(host.start)[calls],
        call_duration=np.asarray(host.duration)[calls],
        marks=_annotation_marks(trace),
        steps=_profiler_steps(trace),
    )


def _profiler_steps(trace: Trace) -> Iterations | None:
    if not trace.steps:
        return None
    steps = np.array(sorted(trace.steps), np.int64)
    return Iterations("profiler_step", _STEPS, steps[:, 0], int(steps[:, 1].max()))


def _recorded_span(trace: Trace, recorded: process_phases.Recorded) -> tuple[int, int]:
    first, last = int(recorded.start.min()), int((recorded.start + recorded.duration).max())
    start = np.asarray(trace.host.start)
    if not len(start):
        return first, last
    end = start + np.asarray(trace.host.duration)
    return min(first, int(start.min())), max(last, int(end.max()))


def _annotation_marks(trace: Trace) -> list[Marks]:
    """The annotations by name and thread."""
    host, names = trace.host, list(trace.names)
    chosen = np.flatnonzero(np.asarray(host.kind) == ANNOTATION)
    starts = np.asarray(host.start)[chosen]
    ends = starts + np.asarray(host.duration)[chosen]
    range_names = [names[code] for code in np.asarray(host.name)[chosen].tolist()]
    return process_phases.marks_by_name(range_names, np.asarray(host.thread)[chosen].tolist(), starts, ends)
