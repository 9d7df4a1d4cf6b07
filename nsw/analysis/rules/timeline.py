"""Rules over timelines: idle GPUs and why, copies, communication, arithmetic without tensor cores, layouts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from nsw.analysis.comparison import is_time
from nsw.analysis.idle_gpu import BUSY_PCT, IdleGpu
from nsw.analysis.kernel_classes import LAYOUT, OPTIMIZER
from nsw.analysis.rules.hits import Context, Hit, direction
from nsw.analysis.rules.host import host_work_while_idle
from nsw.metrics import find_chip
from nsw.quantities import format_ns, rate
from nsw.wording import and_more, one_or, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Copy
    from nsw.analysis.figures import Figure
    from nsw.analysis.placement import StrayContext
    from nsw.analysis.spent import Spent

__all__ = ["RULES", "busy_pct", "idle_reason", "slowed_times"]

_PART: Final = 0.25  # of the idle time: a call that takes as much explains it
_LONG: Final = 0.5  # of the idle time: a gap that is as long is what to look for
_MANY: Final = 20  # operations of an iteration, of which each waits for its launch
_ALLOCATES: Final = re.compile(r"cu(?:da)?(?:Malloc|Free|Mem(?:Alloc|Free)|Host(?:Alloc|Register))")
_A_TIME: Final = re.compile(r"(?:/|\bper )\s*(?:s|secs?|seconds?|min|minutes?|h|hours?)$|\bs\^?-1$", re.IGNORECASE)
_COPIES: Final = re.compile(r"cu(?:da)?Memcpy")
_HOST_SHOWN: Final = (
    "A pass `host: {tool: torch}` (PyTorch) or `host: {tool: cprofile}` (Python) shows what the host does."
)
_COPIED_PCT: Final = 20.0  # of an iteration, or of GPU time without iterations
_MOSTLY_PCT: Final = 50.0  # of GPU time without iterations
_ALONE_PCT: Final = 8.0  # of an iteration, in which only copies are at work
_PAGEABLE: Final = 16e9  # byte/s: what pageable memory gives at most over PCIe 4 and 5
_SLOWEST: Final = 1e9  # what it gives at least
_PAGEABLE_PCIE_3: Final = 8e9  # of GPUs before those of capability 8
_FAST: Final = 20e9  # byte/s, which only pinned memory gives
_LARGE: Final = 64 << 10  # bytes of a copy, below which its rate says little
_MUCH_FASTER: Final = 2.0
_EXPOSED_PCT: Final = 10.0  # of an iteration
_WAITING: Final = 1 / 3  # of the time in NCCL's kernels
_FP32_PCT: Final = 20.0  # of GPU time
_AMPERE: Final = (8, 0)  # compute capability from which tensor cores multiply TF32, over PCIe 4
_TENSOR_GAIN: Final = 0.3  # of that time: what whole programs win by TF32; it costs accuracy
_LAYOUT_PCT: Final = 8.0  # of GPU time
_OPTIMIZER_PCT: Final = 20.0
_IDLE_PCT: Final = 40.0  # above it less GPU work wins nothing
_SHORT_PCT: Final = 50.0  # of the kernels
_ELEMENTWISE_PCT: Final = 25.0  # of GPU time
_NAMED: Final = 4  # processes in a sentence
_FEW_ITERATIONS: Final = 8  # of fewer no one is an exception
_SLOW_TIMES: Final = 3.0  # the median
_VALUE: Final = 64  # bytes that are a value or a few
_ONCE, _FEW = 0.9, 3.5  # times an iteration
_WORTH_IDLE_PCT: Final = 10.0
_BUCKETS, _BUCKETS_PCT = 8, 2.0  # copies an iteration, and what they take of GPU time
_SMALL_PAGE: Final = 64 << 10  # bytes of a migration
_MIGRATIONS: Final = 1000

_OF_HOST: Final = frozenset({"gap", "host"})  # reasons that only a profile of the host explains

Reason = Literal["call", "gap", "host", "synchronisation", "launches"]


def slowed_times(case: CaseSummary, pass_name: str | None = None) -> float:
    """How many times slower the program's own rates and times are under a profiler; 1 where that is not known.

    Args:
        case: The case.
        pass_name: The profiler's pass; by default the one of the case's timeline.
    """
    profiled_pass = case.traced_by if pass_name is None else pass_name
    times = [
        profiled.median / baseline.median if is_time(baseline.unit) else baseline.median / profiled.median
        for baseline in case.figures
        if not baseline.profiled and baseline.median > 0 and _is_speed(baseline.unit)
        for profiled in case.figures
        if profiled.pass_name == profiled_pass and profiled.name == baseline.name and profiled.median > 0
        if not _within_scatter(baseline, profiled)
    ]
    return max(1.0, *times) if times else 1.0


def _within_scatter(baseline: Figure, profiled: Figure) -> bool:
    """Whether repeats show that the two may be the same."""
    return min(baseline.runs, profiled.runs) > 1 and profiled.least <= baseline.most and baseline.least <= profiled.most


def _is_speed(unit: str | None) -> bool:
    return is_time(unit) or _A_TIME.search(unit or "") is not None


def busy_pct(case: CaseSummary) -> float | None:
    """How much of an iteration the GPU is at work that is so least, as without the profiler."""
    idle = case.spent.most_idle_pct if case.spent else None
    if idle is None and case.idle_gpu is not None:
        idle = 100 - case.idle_gpu.busy_pct
    return None if idle is None else min(100.0, (100 - idle) * slowed_times(case))


def idle_reason(idle: IdleGpu) -> Reason:
    """What the GPU waits for, as far as the data tells."""
    if idle.call and idle.call_ns >= _PART * idle.idle_ns:
        return "call"
    if idle.gap_ns is not None and idle.gap_ns >= _LONG * idle.idle_ns:
        return "gap"
    if idle.operations < _MANY:
        return "host"
    return "synchronisation" if idle.synchronisations >= _PART * idle.operations else "launches"


def _idle(reason: Reason) -> Callable[[CaseSummary, Context], Hit | None]:
    """The rule for GPUs that are idle for one reason."""

    def rule(case: CaseSummary, _: Context) -> Hit | None:
        idle = case.idle_gpu
        if idle is None or idle_reason(idle) != reason:
            return None
        if idle.gap_ns is None and reason != "call":  # the table was made before gaps were read: it may be one gap
            return None
        slowed = slowed_times(case)
        idle = replace(idle, med_ns=idle.med_ns / slowed, busy_pct=idle.busy_pct * slowed)  # as without the profiler
        if idle.busy_pct >= BUSY_PCT:
            return None
        cause, do, explanation, advice = _IDLE_TEXTS[reason](idle)
        name, size = f"idle: {reason}", f"{100 - idle.busy_pct:.0f} %"
        profiled = host_work_while_idle(case, _longest_wait(idle)) if reason in _OF_HOST else None
        if profiled is not None:
            name, work, cause, do, explanation, advice = profiled
            size += f", {work}"
        elif reason in _OF_HOST and (case.loading_ns or 0.0) >= _PART * idle.idle_ns:
            loading = format_ns(min(case.loading_ns or 0.0, idle.idle_ns))  # medians of different things
            name = "idle: loader"
            cause, do = f"waits {loading} for the DataLoader", "more loader workers"
            explanation = f"for {loading} of that the program waits for its DataLoader"
            advice = (
                "More workers (num_workers), cheaper decoding, or data that are ready (cached, resized) shorten that."
            )
        other_gpus = ""
        if idle.processes > 1:
            other_gpus = (
                " The others wait for it in NCCL kernels." if idle.collectives else " Or it waits for another process."
            )
        return Hit(
            name, case.id, 100 - idle.busy_pct, cause, do,
            f"{idle.gpu} is idle {100 - idle.busy_pct:.0f} % of {_an_iteration(case, idle.med_ns)}: {explanation}",
            advice + other_gpus, size, "iterations",
        )  # fmt: skip

    return rule


def _longest_wait(idle: IdleGpu) -> float:
    """What a GPU waits at once, or in all where no gap stands out; medians differ: never more than all idle time."""
    gap = idle.gap_ns or 0.0
    return min(gap, idle.idle_ns) if gap >= _LONG * idle.idle_ns else idle.idle_ns


def _an_iteration(case: CaseSummary, med_ns: float) -> str:
    """An iteration with its time: of a few their range, whose median says little."""
    iterations = case.iterations
    if iterations is None or iterations.count >= _FEW_ITERATIONS:
        return f"an iteration of {format_ns(med_ns)}"
    return f"iterations of {format_ns(iterations.least_ns)} to {format_ns(iterations.most_ns)}"


def _call(idle: IdleGpu) -> tuple[str, str, str, str]:
    took = f"{idle.call} {format_ns(idle.call_ns)} an iteration"
    if _ALLOCATES.match(idle.call):
        do, advice = (
            "allocate once, or pool",
            "Allocate before the loop, or from a pool (cudaMallocAsync; no empty_cache()).",
        )
    elif _COPIES.match(idle.call):
        do, advice = "copy from pinned memory", "Copy from pinned memory with cudaMemcpyAsync, while kernels run."
    else:
        do, advice = "move it out of the loop", "Move it out of the loop."
    return took, do, f"the host spends {format_ns(idle.call_ns)} of it in {idle.call}", advice


def _gap(idle: IdleGpu) -> tuple[str, str, str, str]:
    gap = format_ns(_longest_wait(idle))
    calls = "and no CUDA call explains it" if idle.calls_known else "CUDA calls were not recorded"
    return (
        f"one gap of {gap}{', no CUDA call' if idle.calls_known else ''}",
        "look at the loader" if idle.calls_known else "look at the host there",
        f"{gap} of that are one gap, {calls}",
        f"The host does something else there, such as loading data, I/O or computing. {_HOST_SHOWN}",
    )  # fmt: skip


def _host(idle: IdleGpu) -> tuple[str, str, str, str]:
    return (
        f"waits for the host, {idle.operations:.0f} operations", "look at the host",
        f"between its {idle.operations:.0f} operations it waits for the host", _HOST_SHOWN,
    )  # fmt: skip


def _waits(idle: IdleGpu) -> tuple[str, str, str, str]:
    return (
        f"{idle.synchronisations:.0f} waits for the GPU an iteration", "keep results on the GPU",
        f"the host waits for the GPU {idle.synchronisations:.0f} times in it, each time without launching ahead",
        "Synchronise less often: no .item(), printing of tensors or cudaDeviceSynchronize in the loop.",
    )  # fmt: skip


def _launches(idle: IdleGpu) -> tuple[str, str, str, str]:
    work = idle.busy_pct / 100 * idle.med_ns / idle.operations
    spacing = idle.med_ns / idle.operations
    call = f", a launch call {format_ns(idle.launch_ns)}" if idle.launch_ns is not None else ""
    graphs = "more CUDA graphs" if idle.graph_launches >= 1 else "CUDA graphs, larger batch"
    advice = (
        "CUDA graphs launch some of them: put more of the iteration into graphs."
        if idle.graph_launches >= 1
        else "The host cannot launch faster: launch them together as CUDA graphs, or give it fewer and larger"
        " operations (fused kernels, torch.compile, a larger batch)."
    )
    return (
        f"{idle.operations:,.0f} operations of {format_ns(work)}",
        graphs,
        (
            f"{idle.operations:,.0f} operations, one every {format_ns(spacing)}, keep it busy for {format_ns(work)}"
            f" each{call}"
        ),
        advice,
    )


_IDLE_TEXTS: Final[Mapping[Reason, Callable[[IdleGpu], tuple[str, str, str, str]]]] = {
    "call": _call, "gap": _gap, "host": _host, "synchronisation": _waits, "launches": _launches,
}  # fmt: skip


def _slow_copies(case: CaseSummary, context: Context) -> Hit | None:
    """Copies between host and GPU that take much of the time, as slow as from pageable memory."""
    largest_copy = _most_copied(case)
    if (
        largest_copy is None
        or largest_copy.bytes_per_s is None
        or not largest_copy.total_bytes
        or largest_copy.total_bytes < _LARGE * largest_copy.calls
    ):
        return None
    share = _copied_pct(case, [largest_copy])
    certain = "Pageable" in largest_copy.name
    if share < _COPIED_PCT or not case.kernel_ns or not (certain or _is_pageables(case, largest_copy.bytes_per_s)):
        return None
    best, fastest_case = context.copies.get(direction(largest_copy.name), (0.0, ""))
    faster = best / largest_copy.bytes_per_s
    comparison = f" ({fastest_case}: {_gigabytes(best)})" if faster >= _MUCH_FASTER and fastest_case != case.id else ""
    kind = "pageable copies" if certain else "slow copies"
    both = [copy for copy in case.copies if direction(copy.name) and _copied_pct(case, [copy]) >= _COPIED_PCT / 2]
    one_way = f" {_direction_text(largest_copy)}" if len(both) > 1 else ""
    share_base = "of an iteration" if case.iterations else "of all GPU time, set-up included,"
    pinned = (
        f"Pinned memory (cudaHostAlloc, in PyTorch pin_memory=True) gives {faster:.1f} times that here, in"
        f" {fastest_case},"
        if comparison
        else f"{'P' if certain else 'If it is pageable, p'}inned memory (cudaHostAlloc, in PyTorch pin_memory=True)"
        " reaches the link's speed (PCIe 3 x8: 6 GB/s, x16: 12, PCIe 5: 50)"
    )
    often = (
        " and lets copies run beside kernels."
        if case.iterations
        else "; it pays where the same memory is copied often."
    )
    return Hit(
        "slow copies",
        case.id,
        share * (1 - 1 / faster if comparison else 0.6),
        f"{share:.0f} % {kind}{one_way}, {_gigabytes(largest_copy.bytes_per_s)}",
        f"pin it{comparison}",
        f"{share:.0f} % {share_base} is copying {_direction_text(largest_copy)} at"
        f" {rate(largest_copy.bytes_per_s)}, as slow as from pageable memory"
        if not certain
        else (
            f"{share:.0f} % {share_base} is copying pageable memory {_direction_text(largest_copy)} at"
            f" {rate(largest_copy.bytes_per_s)}"
        ),
        f"{pinned}{often}",
        f"{share:.0f} %",
        "copies",
    )


def _is_pageables(case: CaseSummary, bytes_per_s: float) -> bool:
    """Whether a speed is one of copies of pageable memory: less is the link's, or that of something beside it."""
    return _SLOWEST <= bytes_per_s <= (_PAGEABLE if _capability(case) >= _AMPERE else _PAGEABLE_PCIE_3)


def _capability(case: CaseSummary) -> tuple[int, int]:
    """The compute capability of a case's GPU; (0, 0): not known."""
    chip = find_chip(case.gpus[0]) if case.gpus else None
    return (chip and chip.capability) or (0, 0)


def _copies(case: CaseSummary, _: Context) -> Hit | None:
    """Copies that take more than the kernels, and whose rate is not known, or good."""
    largest_copy = _most_copied(case)
    alone_known = case.spent is not None and case.spent.copies_pct is not None
    if (
        alone_known
        or largest_copy is None
        or not case.kernel_ns
        or _is_pageables(case, largest_copy.bytes_per_s or 0.0)
    ):
        return None
    moved = [copy for copy in case.copies if direction(copy.name)]
    share, part = _copied_pct(case, moved), 100 * largest_copy.total_ns / sum(copy.total_ns for copy in moved)
    if share < _MOSTLY_PCT:
        return None
    speed = f" at {rate(largest_copy.bytes_per_s)}" if largest_copy.bytes_per_s else ""
    do, advice = "keep data on the GPU", "Copy less, or keep on the GPU what several kernels use."
    if (
        largest_copy.bytes_per_s
        and largest_copy.bytes_per_s < _SLOWEST
        and (largest_copy.total_bytes or 0.0) >= _LARGE * largest_copy.calls
    ):
        do = "check the link"
        advice = (
            "Even pageable memory gives 3 to 6 GB/s: look at the link (`nvidia-smi -q`: PCIe generation and width), and"
            " at what else uses it."
        )
    if (largest_copy.bytes_per_s or 0.0) >= _FAST:
        do, advice = "move fewer bytes", "That is a speed of pinned memory: fewer bytes would win."
    return Hit(
        "copies", case.id, share, f"{share:.0f} % copies", do,
        f"{share:.0f} % of all GPU time, set-up included, is copies between host and GPU, {part:.0f} % of them"
        f" {_direction_text(largest_copy)}{speed}", advice, f"{share:.0f} %", "copies",
    )  # fmt: skip


def _copies_alone(case: CaseSummary, context: Context) -> Hit | None:
    """Copies that no kernel hides, and that are not slow."""
    spent, largest_copy = case.spent, _most_copied(case)
    alone = spent.copies_pct if spent else None
    if alone is None or alone < _ALONE_PCT or largest_copy is None or _slow_copies(case, context) is not None:
        return None
    speed = f" at {rate(largest_copy.bytes_per_s)}" if largest_copy.bytes_per_s else ""
    do, proposal = (
        ("prefetch on its own stream", "Copy the next input")
        if direction(largest_copy.name) == "to"
        else ("copy on its own stream", "Copy the last results")
    )
    return Hit(
        "copies alone", case.id, alone, f"{alone:.0f} % copies, no kernel beside", do,
        f"{alone:.0f} % of an iteration is copying {_direction_text(largest_copy)}{speed} with no kernel beside it",
        f"{proposal} on a stream of its own while kernels run (non_blocking=True with pinned memory).",
        f"{alone:.0f} %", "copies",
    )  # fmt: skip


def _read_back(case: CaseSummary, _: Context) -> Hit | None:
    """A value of a few bytes that the host reads in every iteration, and waits for."""
    busy, each = busy_pct(case), _each_iteration(case)
    if busy is None or not each or 100 - busy < _WORTH_IDLE_PCT:
        return None
    if case.idle_gpu is not None and idle_reason(case.idle_gpu) in {"gap", "call"}:  # which explains the idle time
        return None
    small = sum(
        c.calls
        for c in case.copies
        if direction(c.name) == "from" and c.total_bytes is not None and c.total_bytes <= _VALUE * c.calls
    )
    if not _ONCE <= small / each <= _FEW:
        return None
    return Hit(
        "reads a value back", case.id, min(100 - busy, _WORTH_IDLE_PCT), "reads a value every iteration",
        "no .item() in the loop",
        f"in every iteration the host waits for {_values(small / each)} of a few bytes from the GPU, which is idle"
        f" {100 - busy:.0f} % of the time",
        "Read it every hundredth iteration, where that is enough (.item()); GradScaler.step reads one in each.",
        _values(small / each), "copies",
    )  # fmt: skip


def _values(count: float) -> str:
    return "a value" if count < 1.5 else f"{count:.0f} values"


def _bucket_copies(case: CaseSummary, _: Context) -> Hit | None:
    """Copies on the GPU beside NCCL: gradients into and out of buckets."""
    spent, each = case.spent, _each_iteration(case)
    if spent is None or not each or not spent.share_pct("NCCL"):
        return None
    inside = [c for c in case.copies if "Device-to-Device" in c.name or "DtoD" in c.name]
    calls, share = sum(c.calls for c in inside) / each, 100 * sum(c.total_ns for c in inside) / (case.gpu_ns or 1.0)
    if calls < _BUCKETS or share < _BUCKETS_PCT:
        return None
    return Hit(
        "bucket copies", case.id, share, f"{calls:.0f} copies into buckets", "gradient_as_bucket_view=True",
        f"{calls:.0f} copies on the GPU an iteration move gradients into buckets and back ({share:.0f} % of GPU time)",
        "DistributedDataParallel(..., gradient_as_bucket_view=True) saves them.", f"{calls:.0f}", "copies",
    )  # fmt: skip


def _each_iteration(case: CaseSummary) -> int:
    """How many iterations the copies of a case are of: those of all its processes."""
    return case.iterations.count * case.iterations.processes if case.iterations else 0


def _most_copied(case: CaseSummary) -> Copy | None:
    """The copy between host and GPU that takes most, where it is most of all copies' time."""
    largest_copy = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    return largest_copy if largest_copy is not None and direction(largest_copy.name) else None


def _direction_text(copy: Copy) -> str:
    return "to the GPU" if direction(copy.name) == "to" else "from the GPU"


def _copied_pct(case: CaseSummary, copies: Sequence[Copy]) -> float:
    """What copies take: of an iteration, their part of what all take alone; without iterations of all GPU time."""
    ns, alone = sum(copy.total_ns for copy in copies), case.spent.copies_pct if case.spent else None
    if alone is not None:
        return alone * ns / sum(copy.total_ns for copy in case.copies)
    gpu_ns = case.gpu_ns if case.spent is None or case.iterations else case.spent.gpu_ns  # with what a report cut off
    return 100 * ns / gpu_ns if gpu_ns else 0.0


def _migrations(case: CaseSummary, _: Context) -> Hit | None:
    """Unified memory that moves page by page."""
    moved = [copy for copy in case.copies if "Unified" in copy.name or "UM" in copy.name.split()]
    calls, ns = sum(copy.calls for copy in moved), sum(copy.total_ns for copy in moved)
    size = sum(copy.total_bytes or 0.0 for copy in moved)
    if calls < _MIGRATIONS or size > _SMALL_PAGE * calls or not case.gpu_ns:
        return None
    return Hit(
        "unified memory",
        case.id,
        min(100.0, 100 * ns / case.gpu_ns),
        f"{calls:,.0f} migrations of {size / calls / 1024:.0f} KiB",
        "cudaMemPrefetchAsync",
        f"unified memory moves in {calls:,.0f} pieces of {size / calls / 1024:.0f} KiB on average,"
        f" {format_ns(ns)} in all",
        "Prefetch what a kernel needs (cudaMemPrefetchAsync), or copy it explicitly.",
        f"{calls:,.0f}",
        "copies",
    )


def _exposed(case: CaseSummary, _: Context) -> Hit | None:
    """Communication that nothing hides, and whether it is waiting for a late rank."""
    spent = case.spent
    exposed = spent.exposed_pct if spent else None
    if exposed is None or spent is None or exposed < _EXPOSED_PCT:
        return None
    late = case.waiting is not None and case.waiting.pct >= _WAITING * spent.share_pct("NCCL")
    head = f"NCCL alone takes {exposed:.0f} % of an iteration ({spent.hidden_pct or 0:.0f} % more are hidden)"
    if late and case.waiting is not None:
        return Hit(
            "exposed communication", case.id, exposed,
            f"{_short(case.waiting.late)} is late, NCCL alone {exposed:.0f} %",
            f"look at the host of {_short(case.waiting.late)}",
            f"{head}, most of it waiting: {case.waiting.late} reaches the collectives last",
            "Look at what delays it, not at the network.", f"{exposed:.0f} %", "communication",
        )  # fmt: skip
    return Hit(
        "exposed communication", case.id, exposed, f"NCCL alone {exposed:.0f} %", "overlap or shrink communication",
        f"{head}, {_who_is_late(case)}",
        "Overlap it with computing (fewer and larger collectives), or move less (bf16 gradients).",
        f"{exposed:.0f} %", "communication",
    )  # fmt: skip


def _who_is_late(case: CaseSummary) -> str:
    if case.waiting is None:
        return "which may be waiting for a late rank"
    return "on all ranks alike: no rank is late throughout"


def _short(process: str) -> str:
    return process.removeprefix("the process on ")


def _work(case: CaseSummary) -> tuple[Spent, float] | None:
    """Where the time goes and how many per cent of it the GPU's work is, where less of that would win time."""
    spent = case.spent
    if spent is None or not spent.gpu_ns:
        return None
    busy = busy_pct(case)
    return None if busy is not None and 100 - busy >= _IDLE_PCT else (spent, 100.0 if busy is None else busy)


def _fp32(case: CaseSummary, _: Context) -> Hit | None:
    """GEMM and convolution in FP32 on a GPU whose tensor cores could do TF32."""
    work = _work(case)
    if work is None or _capability(case) < _AMPERE:
        return None
    spent, busy = work
    share = 100 * spent.fp32_ns / spent.gpu_ns
    if share < _FP32_PCT:
        return None
    class_names = " and ".join(part.name for part in spent.parts if part.name in {"GEMM", "convolution"})
    return Hit(
        "FP32 arithmetic", case.id, _TENSOR_GAIN * share * busy / 100,
        f"{share:.0f} % FP32 {class_names}, no tensor cores", "try TF32 or bf16",
        f"{share:.0f} % of GPU time is {class_names} in FP32, without tensor cores",
        "If the accuracy allows it, try TF32 (torch.set_float32_matmul_precision('high'), and for convolutions"
        " torch.backends.cudnn.allow_tf32) or bf16.", f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _layout(case: CaseSummary, _: Context) -> Hit | None:
    return _of_class(
        case, LAYOUT, _LAYOUT_PCT, "converts layouts (NCHW/NHWC, transposing)", "channels_last",
        "Keep tensors in the layout that the kernels want: in PyTorch channels_last for the model and its input.",
    )  # fmt: skip


def _optimizer(case: CaseSummary, _: Context) -> Hit | None:
    return _of_class(
        case, OPTIMIZER, _OPTIMIZER_PCT, "is the optimizer's step", "fused optimizer",
        "Try the fused optimizer (torch.optim: fused=True), or a larger batch for each step.",
    )  # fmt: skip


def _of_class(case: CaseSummary, name: str, least_pct: float, description: str, do: str, advice: str) -> Hit | None:
    """A class of kernels that takes much of the GPU's work."""
    work = _work(case)
    share = work[0].share_pct(name) if work else 0.0
    if work is None or share < least_pct or any("Fused" in part.top for part in work[0].parts if part.name == name):
        return None
    return Hit(
        name, case.id, share * work[1] / 100, f"{share:.0f} % {description.partition(' (')[0]}", do,
        f"{share:.0f} % of GPU time {description}", advice, f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _short_kernels(case: CaseSummary, _: Context) -> Hit | None:
    """Many kernels that are hardly more than their launch."""
    work = _work(case)
    if work is None or work[0].short_pct < _SHORT_PCT or work[0].operations < _MANY:
        return None
    share = work[0].share_pct("elementwise")
    if share < _ELEMENTWISE_PCT:
        return None
    return Hit(
        "short kernels", case.id, share / 2, f"{work[0].short_pct:.0f} % of the kernels take less than 5 us", "fuse",
        f"{work[0].short_pct:.0f} % of the kernels take less than 5 us, and elementwise ones {share:.0f} % of GPU time",
        "Fuse them (torch.compile, a kernel of your own).", f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _slow_iteration(case: CaseSummary, _: Context) -> Hit | None:
    """An iteration that takes many times the median: it spoils means and totals, not the other iterations."""
    iterations = case.iterations
    if (
        iterations is None
        or not iterations.med_ns
        or iterations.most_ns < _SLOW_TIMES * iterations.med_ns
        or iterations.count < _FEW_ITERATIONS
    ):
        return None
    number, busy = iterations.slowest + 1, iterations.slowest_busy_pct
    all_ns = iterations.count * iterations.med_ns + iterations.most_ns - iterations.med_ns
    works = busy is not None and busy >= BUSY_PCT
    do = "look at its kernels" if works else "look at the host there"
    advice = (
        "Its GPU work takes longer: look at its kernels (`--table iteration_trace`), and whether its input is larger."
        if works
        else "Look at what the host does then (a checkpoint, garbage collection, a log, I/O)."
        + ("" if case.host and case.host.profiled_by else f" {_HOST_SHOWN}")
    )
    return Hit(
        "slow iteration",
        case.id,
        100 * (iterations.most_ns - iterations.med_ns) / all_ns,
        f"iteration {number} of {iterations.count + iterations.warmup} takes {format_ns(iterations.most_ns)}",
        do,
        f"iteration {number} of {iterations.count + iterations.warmup} takes {format_ns(iterations.most_ns)},"
        f" {iterations.most_ns / iterations.med_ns:.0f} times"
        f" the median of"
        f" {format_ns(iterations.med_ns)}{'' if busy is None else f', with a GPU at work {busy:.0f} % of it'}",
        advice,
        format_ns(iterations.most_ns),
        "iterations",
    )


def _stray_context(case: CaseSummary, _: Context) -> Hit | None:
    """Contexts that processes hold on GPUs on which they do not work: of the GPU that has most of them."""
    by_gpu: dict[int, list[StrayContext]] = {}
    for context in case.stray_contexts:
        by_gpu.setdefault(context.device, []).append(context)
    if not by_gpu:
        return None
    gpu, held = max(by_gpu.items(), key=lambda item: len(item[1]))
    whose, holds = and_more([context.process for context in held], _NAMED), "holds" if len(held) == 1 else "hold"
    kernels, copies = sum(context.kernels for context in held), sum(context.copies for context in held)
    work = [plural(kernels, "kernel")] * bool(kernels) + [one_or(copies, "1 copy or set", "copies or sets")] * bool(
        copies
    )
    use = f"hardly used: {' and '.join(work)}, {format_ns(sum(c.gpu_ns for c in held))} in all" if work else "not used"
    each, med_ns = max(c.iteration_ns or 0.0 for c in held), case.iterations.med_ns if case.iterations else 0.0
    use += f", {format_ns(each)} an iteration" if each else ""
    others = f" (and {plural(len(by_gpu) - 1, 'GPU')} more)" if len(by_gpu) > 1 else ""
    what = f"{whose} also {holds} a context on GPU {gpu}"
    return Hit(
        "stray context", case.id, min(100.0, 100 * each / med_ns) if med_ns else 0.0, what,
        "set the device before the first CUDA call",
        f"{what}{others} that is {use}",
        "It takes some hundred MB of that GPU's memory, and comes mostly of a CUDA call before the process chooses its"
        " GPU: call torch.cuda.set_device(local_rank) (cudaSetDevice) before all others, or set CUDA_VISIBLE_DEVICES,"
        " and load with map_location.", str(len(held)), "process_gpus",
    )  # fmt: skip


def _gigabytes(per_second: float) -> str:
    return f"{per_second / 1e9:.3g} GB/s"


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    **{f"idle: {reason}": _idle(reason) for reason in _IDLE_TEXTS},
    "slow copies": _slow_copies,
    "copies": _copies,
    "copies alone": _copies_alone,
    "reads a value back": _read_back,
    "bucket copies": _bucket_copies,
    "unified memory": _migrations,
    "exposed communication": _exposed,
    "FP32 arithmetic": _fp32,
    LAYOUT: _layout,
    OPTIMIZER: _optimizer,
    "short kernels": _short_kernels,
    "slow iteration": _slow_iteration,
    "stray context": _stray_context,
}
