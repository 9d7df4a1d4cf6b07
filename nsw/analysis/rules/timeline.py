"""Rules over timelines: idle GPUs and why, copies, communication, arithmetic without tensor cores, layouts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.comparison import is_time_unit
from nsw.analysis.groups import group_by
from nsw.analysis.idle_gpu import BUSY_PCT, IdleGpu
from nsw.analysis.kernel_classes import NCCL, OTHER_KERNELS, cached_pattern_search, classify_gpu_operation
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import is_library_kernel_name
from nsw.analysis.rules.gaps import (
    LITTLE_OF_SLOWER,
    MOST_OF_SLOWER,
    SHORT,
    detect_framework,
    find_slow_iterations,
    idle_gpu_hits,
    idle_time_parts_text,
    is_cause_of_slow_iterations_known,
    remove_profiler_slowdown,
)
from nsw.analysis.rules.hits import Context, Hit, gpu_copy_direction
from nsw.analysis.spent import NOT_SHOWN, Spent, remove_profiler_idle_time
from nsw.analysis.stragglers import DELAYED, DELAYED_PCT
from nsw.metrics import find_chip
from nsw.quantities import duration, format_ns, rate
from nsw.quantities import size as size_text
from nsw.wording import and_more, first_of, one_or, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Copy
    from nsw.analysis.figures import Figure
    from nsw.analysis.idle_gpu import Copies
    from nsw.analysis.placement import StrayContext
    from nsw.analysis.steady import Collectives, Waiting

__all__ = ["RULES", "healthy_gpu_hit", "least_gpu_busy_pct", "profiler_slowdown", "time_without_profiler"]

_PART: Final = 0.25  # of slow iterations
_MANY: Final = 20  # operations of an iteration
_A_TIME: Final = re.compile(r"(?:/|\bper )\s*(?:s|secs?|seconds?|min|minutes?|h|hours?)$|\bs\^?-1$", re.IGNORECASE)
_HOST_SHOWN: Final = (
    "A pass `host: {tool: torch}` (PyTorch) or `host: {tool: cprofile}` (Python) shows what the host does."
)
_WORTH_PCT: Final = 8.0  # of an iteration
_COPIED_PCT: Final = 20.0  # of an iteration, or of GPU time without iterations
_MOSTLY_PCT: Final = 50.0  # of GPU time without iterations
_PAGEABLE: Final = 16e9  # byte/s: what pageable memory gives at most over PCIe 4 and 5
_SLOWEST: Final = 1e9  # what it gives at least
_PAGEABLE_PCIE_3: Final = 8e9  # of GPUs before those of capability 8
_PINNED, _PINNED_PCIE_4, _PINNED_PCIE_3 = 50e9, 25e9, 12e9  # byte/s: what pinned memory gives
_LINK_REACHED: Final = 0.78  # of what a link's lanes carry: the same of any link
_LINK_FULL: Final = 0.7  # likewise, from which a copy has the link's speed
_OF_ALL_GPU_TIME: Final = "of all GPU time, one-off copies included,"
_OF_GPU_TIME, _OF_ITERATION = "of GPU time is", "of an iteration is"  # between a share and its class
_FAST: Final = 20e9  # byte/s, which only pinned memory gives
_LARGE: Final = 64 << 10  # bytes of a copy, below which its rate says little
_MUCH_FASTER: Final = 2.0
_OFTEN, _LATE_PCT = 10, 25.0  # copies, and those in the second half of the time: fewer are set-up
_APART: Final = 0.8  # of the time in copies: with no kernel beside
_BESIDE: Final = 1.1  # times the busy time
_HARDLY: Final = 0.05  # of the kernels' time that is beside other kernels
_OFTEN_BETWEEN: Final = 0.1  # times a kernel that work of the default stream comes behind another stream's
_LONGER_NS: Final = 8e3  # of a kernel, which its launch does not decide
_BINDS: Final = 0.7  # of the time: what kernels take that bind it
_EMPTY: Final = 0.75  # of the GPU, that a kernel of 32 blocks leaves empty at least
_SEVERAL: Final = 4  # kernels of an iteration, of which some may be independent
_MOSTLY: Final = 0.5
_EXPOSED_PCT: Final = 10.0  # of an iteration
_WAITING: Final = 1 / 3  # of the time in NCCL's kernels
_COLLECTIVES, _FEW_BUCKETS = 16, 8  # an iteration: many, and as many as suffice
_SMALL_COLLECTIVE_NS: Final = 50e3  # of which starting, and meeting the other GPUs, is most
_FEW_CHANNELS, _LARGE_COLLECTIVE_NS = 4, 500e3  # NCCL's over PCIe or the host's memory; over NVLink it has 16 or more
_NVLINK: Final = 0.8  # of such a collective's time: what NVLink saves at least
_HIDDEN: Final = 0.1  # times the exposed time: hardly anything is hidden
_BACKWARD: Final = 0.6  # of computing: beside which collectives can run
_LEAST_WORK_PCT: Final = 1.0  # of an iteration: less computing is none
_LATE_GAP: Final = 0.05  # of an iteration: what the late rank's GPU waits longer for its host
_MORE_WORK_PCT, _SAME_KERNELS_PCT, _SAME_BLOCKS_PCT = 5.0, 3.0, 5.0
_FP32_PCT: Final = 20.0  # of GPU time
_AMPERE: Final = (8, 0)  # compute capability from which tensor cores multiply TF32, over PCIe 4
_HOPPER: Final = (9, 0)  # over PCIe 5
_TENSOR_GAIN: Final = 0.3  # of that time: what whole programs win by TF32; it costs accuracy
_LARGE_GAIN, _LARGE_NS = 0.7, 300e3  # the same of large problems, by the mean of their kernels
_LAYOUT_PCT: Final = 8.0  # of GPU time
_CONVOLVES_PCT: Final = 10.0  # of GPU time: a network of convolutions, whose layout is one setting
_FILLED: Final = 0.03  # of the time: zeros for a gradient of most parameters, over which Adam passes 18 times unfused
_OF_STEP: Final = 7 / 4  # kernels of Adam's update of a parameter, of which four have a name of their own
_OPTIMIZER_PCT, _STEP_PCT, _SCORES_PCT, _CAST_PCT, _TABLE_PCT = 20.0, 10.0, 20.0, 30.0, 40.0
_LAUNCHES_SHOWN: Final = 10  # of a kernel, that ncu is told to profile
_IDLE_PCT: Final = 40.0  # above it less GPU work wins nothing
_LEAST_BUSY_PCT: Final = 25.0  # below it GPU work is not worth a sentence beside what keeps the GPU idle
_SHORT_PCT: Final = 50.0  # of the kernels
_ELEMENTWISE_PCT: Final = 25.0  # of GPU time
_LONG_MEAN_NS: Final = 20e3  # of elementwise kernels, beside which a launch is little
_NAMED: Final = 4  # processes in a sentence
_FEW_ITERATIONS: Final = 8  # of fewer no one is an exception
_SLOW_TIMES: Final = 3.0  # the median
_PAUSE_NS: Final = 10e6  # that one iteration takes longer: shorter pauses are the system's, or the profiler's
_SLOWER_PCT: Final = 5.0  # of the steady state, that slow iterations take longer
_AS_FAST: Final = 2.0  # times the usual time of a launch
_FIRST_PCT: Final = 30.0  # of all iterations' time
_FIRST: Final = 3  # iterations that try or compile kernels: more that are slow alike have a slow GPU
_TUNES: Final = 2.0  # times the GPU's work of an iteration
_OF_START: Final = 0.5  # of the gain: what is right for a long run
_COMPILES, _LATE_COMPILES = 3, 2  # in a run without iterations; behind half of its work: others are its start
_BUCKETS, _BUCKETS_PCT = 8, 2.0  # copies an iteration, and what they take of GPU time
_PIECE: Final = 256 << 10  # bytes of a migration by page faults at most; a prefetch moves 2 MiB at once
_MIGRATIONS: Final = 500
_FAULTS: Final = 0.25  # of the kernels' time
_THREADS: Final = 1024  # that one SM of any GPU holds
_MUCH_PCT: Final = 25.0  # of GPU time
_LONG_NS: Final = 20e3  # of a launch, from which more threads would have work
_EMPTY_NS: Final = 5e3  # of a kernel: hardly more than a launch that does nothing
_FEW_LAUNCHES: Final = 20  # more may be of a model that prints nothing
_ONE_OFF: Final = 4  # copies, which are of inputs or results, each once
_DIVISIBLE_NS: Final = 1e6  # of a copy, whose pieces are worth a start each
_LARGE_INPUT: Final = 64 << 20  # bytes, which no kernel reads in so little time

_LOOK_AT_KERNELS: Final = (
    "Its GPU work takes longer: look at its kernels (`--table gpu_trace`), and whether its input is larger."
)

# kernels of libraries, by their names
_OF_LIBRARIES: Final = re.compile(
    r"\bat::|at_cuda_detail|cudnn|cublas|nvjet|cutlass|xmma|gemm|elementwise_kernel|multi_tensor_apply|softmax_warp|cunn_"
    r"|triton_|nchwTo|nhwcTo|tensorTransform|embedding|fmha|flash|\bcub\b|cusparse|CooToCsr|compute_grad_weight|sum_and_scatter",
    re.IGNORECASE,
)  # fmt: skip
# PyTorch's copy of a tensor that is not contiguous, without a cast: neither vectorized nor unrolled
_STRIDED: Final = r"(?<!_)elementwise_kernel<(?:(?!LoadWithCast).)*gpu_kernel_impl_nocast<[^)]*direct_copy_kernel"
_LAYOUT: Final = re.compile(
    rf"nchwToNhwc|nhwcToNchw|tensorTransform|transposeTensor|batch_transpose|{_STRIDED}", re.IGNORECASE
)
_UNFUSED_STEP: Final = re.compile(r"^(?!.*multi_tensor).*(?:addcmul|addcdiv|lerp|sqrt_kernel)", re.IGNORECASE)
_FOREACH: Final = re.compile(r"multi_tensor_apply")
_FUSED: Final = re.compile(r"Fused")
# not those of a loss, which take the logarithm
_SOFTMAX: Final = re.compile(
    r"^(?!.*(?:log_?softmax|softmax_warp_\w+<[^<>]*, (?:\(bool\)1|true), (?:\(bool\)[01]|true|false)>)).*softmax",
    re.IGNORECASE,
)
_SCORES: Final = re.compile(r"softmax|masked_fill|(?:Mul|Div)Functor|dropout|direct_copy", re.IGNORECASE)
_SCALING: Final = re.compile(r"at::native::.*(?:(?:Mul|Div)Functor|masked_fill)", re.IGNORECASE)
_SPARSE_CONVERSION: Final = re.compile(
    r"coalesceValues|merge_sort|unique_by_key|flatten_indices|coo_?to_?csr|coo2csr", re.IGNORECASE
)
_SPARSE_PRODUCT: Final = re.compile(r"csrmm|csrmv|spmm|spmv", re.IGNORECASE)
_COALESCES: Final = re.compile(r"coalesceValues|coo_?to_?csr|coo2csr", re.IGNORECASE)
_CAST: Final = re.compile(
    rf"^(?!.*{_STRIDED}).*(?:float16_copy|LoadWithCast|direct_copy_kernel|to_copy)", re.IGNORECASE
)
_HALF: Final = re.compile(r"half|bfloat|f16|bf16|_hss|_tss|hgemm", re.IGNORECASE)
_EMBEDDING: Final = re.compile(r"embedding|compute_grad_weight|sum_and_scatter", re.IGNORECASE)
_FILL: Final = re.compile(r"FillFunctor")
_TABLE_WORK: Final = re.compile(
    r"embedding|FillFunctor|multi_tensor_apply|addcmul|addcdiv|lerp|sqrt_kernel|CUDAFunctor_add"
)
_EACH: Final = 0.1  # of the operations of an iteration that has few
_FUSED_LAUNCHES: Final = 0.9  # of such kernels' launches: what a cure saves
# what of their time it saves
_GAINS: Final = {
    "layout-conversion": 1.0, "unfused-optimizer": 0.6, "unfused-attention": 0.8, "autocast-weight-casts": 0.9,
    "dense-embedding-gradient": 0.9,
}  # fmt: skip


# kernels that a framework launches within the operator that needs them
_WITHIN_OPERATORS: Final = frozenset({"autocast-weight-casts", "layout-conversion"})


def profiler_slowdown(case: CaseSummary, pass_name: str | None = None) -> float:
    """How many times slower the program's own rates and times are under a profiler; 1 where that is not known.

    Args:
        case: The case.
        pass_name: The profiler's pass; by default the one of the case's timeline.
    """
    profiled_pass = case.traced_by if pass_name is None else pass_name
    times = [
        profiled.median / baseline.median if is_time_unit(baseline.unit) else baseline.median / profiled.median
        for baseline in case.figures
        if not baseline.profiled and baseline.median > 0 and _is_rate_unit(baseline.unit)
        for profiled in case.figures
        if profiled.pass_name == profiled_pass and profiled.name == baseline.name and profiled.median > 0
        if not _is_within_scatter(baseline, profiled)
    ]
    return max(1.0, *times) if times else 1.0


def _is_within_scatter(baseline: Figure, profiled: Figure) -> bool:
    """Whether repeats show that the two may be the same."""
    return min(baseline.runs, profiled.runs) > 1 and profiled.least <= baseline.most and baseline.least <= profiled.most


def _is_rate_unit(unit: str | None) -> bool:
    return is_time_unit(unit) or _A_TIME.search(unit or "") is not None


def least_gpu_busy_pct(case: CaseSummary) -> float | None:
    """How much of an iteration the GPU is at work that is so least, as without the profiler."""
    idle = case.spent.most_idle_pct if case.spent else None
    if idle is None and case.idle_gpu is not None:
        idle = 100 - case.idle_gpu.busy_pct
    return None if idle is None else min(100.0, (100 - idle) * profiler_slowdown(case))


def time_without_profiler(case: CaseSummary) -> Spent | None:
    """Where the time of a case goes, as without the profiler."""
    return case.spent and remove_profiler_idle_time(case.spent, profiler_slowdown(case))


def _pageable_copy_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies of pageable memory again and again, by what the timeline tells of their memory."""
    idle = case.idle_gpu
    if (
        idle is None
        or "computing_ns" not in idle.use
        or any(copy.memory is None for copy in idle.copies if copy.direction != "on the GPU")
    ):
        return _slow_copy_hit(case, context)
    link = _pinned_copy_bytes_per_s(case)
    pageable_copies = [copy for copy in idle.copies if copy.memory == "pageable" and (copy.med_bytes or 0.0) >= _LARGE]
    if not idle.is_iteration:  # what is copied once, at set-up, is not worth it
        pageable_copies = [copy for copy in pageable_copies if copy.calls >= _OFTEN and copy.late_pct >= _LATE_PCT]
    if not pageable_copies:
        return None
    took, speed = _time_and_rate(pageable_copies)
    staged = idle.in_gaps("copy") if idle.is_iteration else 0.0  # the host copies into its own pinned buffer
    alone = sum(copy.alone_ns for copy in pageable_copies)
    gain = 100 * (alone * max(0.0, 1 - speed / link) + staged) / idle.med_ns
    if gain < _WORTH_PCT:
        return None
    by_direction = group_by(pageable_copies, lambda copy: copy.direction)
    direction = max(by_direction, key=lambda towards: _time_and_rate(by_direction[towards])[0])
    one_way_ns, one_way_speed = _time_and_rate(by_direction[direction])
    listed_copies = [
        copy for copy in case.copies if gpu_copy_direction(copy.name) and _direction_text(copy) == direction
    ]
    listed_rates = [copy.bytes_per_s for copy in listed_copies if copy.bytes_per_s]
    same_way_copies = [copy for copy in idle.copies if copy.direction == direction]
    if len(listed_rates) == 1 and by_direction[direction] == same_way_copies:
        one_way_speed = listed_rates[0]  # as the table of GPU work has it, slow iterations included
    share, reverse_pct = 100 * one_way_ns / idle.med_ns, 100 * (took - one_way_ns) / idle.med_ns
    also = f", and {reverse_pct:.0f} % the other way" if reverse_pct >= _WORTH_PCT else ""
    span = "of an iteration" if idle.is_iteration else "of the time in which the GPU has work"
    return _make_hit(
        case, "pageable-copies", gain, f"{share:.0f} % pageable copies, {_gigabytes_per_s_text(one_way_speed)}",
        f"{share:.0f} % {span} is copying pageable memory {direction} at {rate(one_way_speed)}{also}, where pinned"
        f" memory reaches some {_gigabytes_per_s_text(link)}", f"{share:.0f} %", "host_copies", f"{span} is",
    )  # fmt: skip


def _time_and_rate(copies: Sequence[Copies]) -> tuple[float, float]:
    """The time that copies take, and how many bytes they move in a second."""
    took = sum(copy.total_ns for copy in copies)
    return took, 1e9 * sum(copy.total_bytes or 0.0 for copy in copies) / took


def _pinned_copy_bytes_per_s(case: CaseSummary) -> float:
    """What copies of pinned memory reach, byte/s."""
    if case.link is not None:
        return _LINK_REACHED * case.link.bytes_per_s
    capability = _compute_capability(case)
    if capability >= _HOPPER:
        return _PINNED
    return _PINNED_PCIE_3 if (0, 0) < capability < _AMPERE else _PINNED_PCIE_4


def _has_pinned_memory(case: CaseSummary) -> bool:
    """Whether a program pins its memory and copies asynchronously alone; frameworks pin buffers of their own."""
    calls = case.longest_calls_ns.keys()
    copies = {call for call in calls if call.startswith("cudaMemcpy")}
    return (
        detect_framework(case) == "any"
        and any(call.startswith(("cudaHostAlloc", "cudaMallocHost", "cudaHostRegister")) for call in calls)
        and bool(copies)
        and all("Async" in call for call in copies)
    )


def _has_link_speed(case: CaseSummary, copy: Copy) -> bool:
    """Whether a copy is as fast as the link that the report records; an idle link may be recorded slower than it is."""
    if case.link is None or copy.bytes_per_s is None:
        return False
    return _LINK_FULL * case.link.bytes_per_s <= copy.bytes_per_s <= case.link.bytes_per_s


def _single_copy_text(copy: Copy) -> str:
    """How much of the time of copies a single one takes, where it is most of it."""
    if copy.longest_ns is None or copy.calls < 2 or copy.longest_ns < _MOSTLY * copy.total_ns:
        return ""
    return f"; one copy is {100 * copy.longest_ns / copy.total_ns:.0f} % of that"


def _full_link_hit(case: CaseSummary) -> Hit | None:
    """Copies that take much of the time, at the speed of the link."""
    copy = _dominant_copy(case)
    if copy is None or case.link is None or not case.kernel_ns or not _has_link_speed(case, copy):
        return None
    share = _copy_time_pct(case, [copy])
    if share < _COPIED_PCT or (copy.total_bytes or 0.0) < _LARGE * copy.calls:
        return None
    speed = rate(copy.bytes_per_s or 0.0)
    return Hit(
        "copies-dominate", case.id, share, f"{share:.0f} % copies at the link's speed", "move fewer bytes",
        f"{share:.0f} % {_OF_ALL_GPU_TIME} is copying {_direction_text(copy)} at {speed}, the speed of the GPU's link"
        f" ({case.link.name}){_single_copy_text(copy)}",
        "The link is full: pinned memory gains little speed. Move fewer bytes (smaller types), or let copies run beside"
        " kernels, which needs pinned memory.", f"{share:.0f} %", "copies", _OF_GPU_TIME,
    )  # fmt: skip


def _make_hit(
    case: CaseSummary, cause: str, gain: float, what: str, fact: str, size: str, table: str, share_of: str = ""
) -> Hit:
    """A hit with the remedies of its cause."""
    known = causes()[cause]
    return Hit(cause, case.id, gain, what, known.do, fact, known.remedy(detect_framework(case)), size, table, share_of)


def _unoverlapped_copy_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Large copies that do not run at all while kernels or copies the other way do."""
    idle = case.idle_gpu
    if idle is None or not idle.is_iteration or "computing_ns" not in idle.use:
        return _unoverlapped_copy_hit_by_totals(case)
    copies = [copy for copy in idle.copies if copy.direction != "on the GPU" and (copy.med_bytes or 0.0) >= _LARGE]
    took, alone = (sum(getattr(copy, column) for copy in copies) for column in ("total_ns", "alone_ns"))
    computing = idle.use.get("computing_ns", 0.0)
    if not took or alone < _APART * took or any(copy.memory in {"managed", "pageable"} for copy in copies):
        return None
    if took + computing > _BESIDE * idle.use.get("busy_ns", 0.0):  # copies of both ways run beside each other
        return None
    saved = 100 * min(alone, computing) / idle.med_ns
    if saved < _WORTH_PCT:
        return None
    largest = max(copies, key=lambda copy: copy.total_ns)
    speed = f" at {rate(largest.total_bytes / largest.total_ns * 1e9)}" if largest.total_bytes else ""
    return _make_hit(
        case, "no-copy-overlap", saved, f"{100 * alone / idle.med_ns:.0f} % copies, no kernel beside",
        f"{100 * alone / idle.med_ns:.0f} % of an iteration is copying {largest.direction}{speed} with no kernel beside"
        f" it: copies and kernels alternate, and could overlap", f"{100 * alone / idle.med_ns:.0f} %", "host_copies",
        _OF_ITERATION,
    )  # fmt: skip


def _unoverlapped_copy_hit_by_totals(case: CaseSummary) -> Hit | None:
    """The same by tables that only tell how long copies are alone."""
    spent, largest = time_without_profiler(case), _dominant_copy(case)
    alone = spent.copies_pct if spent else None
    if alone is None or alone < _WORTH_PCT or largest is None or (case.idle_gpu is not None and case.idle_gpu.copies):
        return None
    if _slow_copy_hit(case, Context()) is not None:
        return None
    speed = f" at {rate(largest.bytes_per_s)}" if largest.bytes_per_s else ""
    return _make_hit(
        case, "no-copy-overlap", min(alone, 100 - alone), f"{alone:.0f} % copies, no kernel beside",
        f"{alone:.0f} % of an iteration is copying {_direction_text(largest)}{speed} with no kernel beside it",
        f"{alone:.0f} %", "copies", _OF_ITERATION,
    )  # fmt: skip


def _serial_stream_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Kernels of several streams, none or few beside another, with work in the default stream between them."""
    use = case.idle_gpu.use if case.idle_gpu else {}
    computing = use.get("computing_ns", 0.0)
    if use.get("streams", 0.0) < 2 or not computing or case.idle_gpu is None:
        return None
    apart, between = use.get("default_stream", 0.0), use["kernels"]
    if apart < _OFTEN_BETWEEN * between or least_gpu_busy_pct(case) is None:
        return None
    fits = computing if use["kernel_ns"] > (1 + _HARDLY) * computing else use.get("small_ns", 0.0)  # some do already
    # one stream's gaps between kernels, and the work of the default stream, run beside kernels of the others
    hidden = case.idle_gpu.in_gaps("queued") + max(use.get("busy_ns", 0.0) - computing, 0.0)
    saved_ns = min(computing - use["kernel_ns"] / use["streams"], fits) + hidden * (1 - 1 / use["streams"])
    saved = 100 * saved_ns / case.idle_gpu.med_ns
    if saved < _WORTH_PCT:
        return None
    return _make_hit(
        case, "default-stream", saved, f"{use['streams']:.0f} streams, {use['kernel_ns'] / computing:.1f} at a time",
        f"kernels of {use['streams']:.0f} streams run {use['kernel_ns'] / computing:.1f} at a time, with work in the"
        " default stream between them, for which all streams wait", f"{saved:.0f} %", "gpu_use",
    )  # fmt: skip


def _serial_small_kernel_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Kernels of few blocks, each long enough, that fill a small part of the GPU one after the other."""
    idle = case.idle_gpu
    use = idle.use if idle else {}
    small, kernels = use.get("small_ns", 0.0), use.get("kernels", 0.0)
    streams = use.get("streams", 0.0)
    if idle is None or not small or kernels < _SEVERAL or not streams or use.get("default_stream"):
        return None
    if use["kernel_ns"] > (1 + _HARDLY) * use["computing_ns"] or small < _MOSTLY * use["kernel_ns"]:
        return None
    if use["kernel_ns"] / kernels < _LONGER_NS or use["computing_ns"] < _BINDS * idle.med_ns:  # launches decide
        return None
    saved = 100 * small * _EMPTY / idle.med_ns
    if saved < _WORTH_PCT:
        return None
    together = "one stream" if streams <= 1 else f"{streams:.0f} streams, which wait for one another (events)"
    return _make_hit(
        case, "kernels-not-concurrent", saved, "small kernels one after the other",
        f"{100 * small / idle.med_ns:.0f} % of {'an iteration' if idle.is_iteration else 'the time'} is kernels of"
        f" {_small_grid_text(case, use)}, each of which fills a part of the GPU, one after the other in"
        f" {together}; where they are independent they fit beside each other", f"{saved:.0f} %", "gpu_use",
    )  # fmt: skip


def _small_grid_text(case: CaseSummary, use: Mapping[str, float]) -> str:
    """How many blocks small kernels have, beside the SMs of the GPU; their mean where all kernels are small."""
    kernels = use["kernels"] - use.get("collectives", 0.0)
    is_mean_of_small = use.get("blocks") and use["small_ns"] >= use["kernel_ns"]
    blocks = f"{use['blocks'] / kernels:.0f} blocks on average" if is_mean_of_small else "at most 32 blocks"
    return blocks + (f" (the GPU has {case.sm_count:.0f} SMs)" if case.sm_count else "")


def _slow_copy_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies between host and GPU that take much of the time, as slow as from pageable memory."""
    largest_copy = _dominant_copy(case)
    if (
        largest_copy is None
        or (not case.iterations and largest_copy.calls < _OFTEN)
        or largest_copy.bytes_per_s is None
        or not largest_copy.total_bytes
        or largest_copy.total_bytes < _LARGE * largest_copy.calls
        or _has_link_speed(case, largest_copy)
    ):
        return None
    share = _copy_time_pct(case, [largest_copy])
    certain = "Pageable" in largest_copy.name
    if (
        share < _COPIED_PCT
        or not case.kernel_ns
        or not (certain or _is_pageable_copy_rate(case, largest_copy.bytes_per_s))
    ):
        return None
    best, fastest_case = context.copies.get(gpu_copy_direction(largest_copy.name), (0.0, ""))
    faster = best / largest_copy.bytes_per_s
    comparison = (
        f" ({fastest_case}: {_gigabytes_per_s_text(best)})"
        if faster >= _MUCH_FASTER and fastest_case != case.id
        else ""
    )
    if _has_pinned_memory(case) and not comparison:  # which that of PyTorch with GEMM alone is taken for
        return None
    kind = "pageable copies" if certain else "slow copies"
    both = [
        copy
        for copy in case.copies
        if gpu_copy_direction(copy.name) and _copy_time_pct(case, [copy]) >= _COPIED_PCT / 2
    ]
    one_way = f" {_direction_text(largest_copy)}" if len(both) > 1 else ""
    share_base = "of an iteration" if case.iterations else _OF_ALL_GPU_TIME
    pinned = (
        f"Pinned memory (cudaHostAlloc, in PyTorch pin_memory=True) copies at {faster:.1f} times that rate in"
        f" {fastest_case},"
        if comparison
        else f"{'P' if certain else 'If it is pageable, p'}inned memory (cudaHostAlloc, in PyTorch pin_memory=True)"
        f" reaches {_link_speed_text(case)}"
    )
    often = (
        " and lets copies run beside kernels."
        if case.iterations
        else "; it pays where the same memory is copied often."
    )
    return Hit(
        "pageable-copies",
        case.id,
        share * (1 - 1 / faster if comparison else 0.6),
        f"{share:.0f} % {kind}{one_way}, {_gigabytes_per_s_text(largest_copy.bytes_per_s)}",
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
        _OF_ITERATION if case.iterations else _OF_GPU_TIME,
        cured_case=fastest_case if comparison else None,
    )


def _link_speed_text(case: CaseSummary) -> str:
    """What pinned memory reaches: of the recorded link, else of usual ones."""
    if case.link is None:
        return "the link's speed (PCIe 3 x8: 6 GB/s, x16: 12, PCIe 4: 25, PCIe 5: 50)"
    return f"some {_gigabytes_per_s_text(_pinned_copy_bytes_per_s(case))} over the GPU's link ({case.link.name})"


def _is_pageable_copy_rate(case: CaseSummary, bytes_per_s: float) -> bool:
    """Whether a speed is one of copies of pageable memory: less is the link's, or that of something beside it."""
    return _SLOWEST <= bytes_per_s <= (_PAGEABLE if _compute_capability(case) >= _AMPERE else _PAGEABLE_PCIE_3)


def _compute_capability(case: CaseSummary) -> tuple[int, int]:
    """The compute capability of a case's GPU; (0, 0): not known."""
    chip = find_chip(case.gpus[0]) if case.gpus else None
    return (chip and chip.capability) or (0, 0)


def _copy_only_iteration_hit(case: CaseSummary, idle: IdleGpu) -> Hit | None:
    """Iterations that are copies between host and GPU, with hardly a kernel that could run beside them."""
    copies = [copy for copy in idle.copies if copy.direction != "on the GPU" and (copy.med_bytes or 0.0) >= _LARGE]
    alone = sum(copy.alone_ns for copy in copies)
    share = 100 * alone / idle.med_ns
    if share < _MOSTLY_PCT or 100 * idle.use.get("computing_ns", 0.0) / idle.med_ns >= _WORTH_PCT:
        return None
    largest = max(copies, key=lambda copy: copy.total_ns)
    speed = f" at {rate(largest.total_bytes / largest.total_ns * 1e9)}" if largest.total_bytes else ""
    return Hit(
        "copies-dominate", case.id, share, f"{share:.0f} % copies", "keep data on the GPU",
        f"{share:.0f} % of an iteration is copying {largest.direction}{speed}, with hardly a kernel to run beside it",
        "Keep on the GPU what several iterations use, or move fewer bytes (smaller types).", f"{share:.0f} %",
        "host_copies", _OF_ITERATION,
    )  # fmt: skip


def _copies_outweigh_kernels_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Copies that take more than the kernels, and whose rate is not known, or good."""
    if case.idle_gpu is not None and case.idle_gpu.is_iteration and "computing_ns" in case.idle_gpu.use:
        return None if _pageable_copy_hit(case, context) else _copy_only_iteration_hit(case, case.idle_gpu)
    if not case.iterations and (full := _full_link_hit(case)) is not None:
        return full
    largest_copy = _dominant_copy(case)
    alone_known = case.spent is not None and case.spent.copies_pct is not None
    if alone_known or largest_copy is None or not case.kernel_ns or _slow_copy_hit(case, context) is not None:
        return None
    moved = [copy for copy in case.copies if gpu_copy_direction(copy.name)]
    share, part = _copy_time_pct(case, moved), 100 * largest_copy.total_ns / sum(copy.total_ns for copy in moved)
    if share < _MOSTLY_PCT:
        return None
    if (unread := _unread_result_hit(case, share)) is not None:
        return unread
    speed = f" at {rate(largest_copy.bytes_per_s)}" if largest_copy.bytes_per_s else ""
    do, advice = "keep data on the GPU", "Copy less, or keep on the GPU what several kernels use."
    once = _single_copy_text(largest_copy)
    if detect_framework(case) == "openacc":
        advice = (
            "Keep the arrays on the GPU: a data region around the loop, and update directives for what the host reads."
        )
    if (faster := _faster_opposite_copy(largest_copy, moved)) is not None:
        do = "copy into pinned memory"
        advice = (
            f"Copies {_direction_text(faster)} reach {rate(faster.bytes_per_s or 0.0)} over the same link: copy into"
            " pinned memory (cudaMallocHost), which is allocated once."
        )
    elif (once or largest_copy.calls <= _ONE_OFF) and (largest_copy.longest_ns or 0.0) >= _DIVISIBLE_NS:
        do = "copy beside kernels"
        advice = "Copy in pieces beside the kernels that use them (streams, pinned memory), or move fewer bytes."
    elif _is_pageable_copy_rate(case, largest_copy.bytes_per_s or 0.0):
        advice += (
            " The speed is one of pageable memory: pinned memory (cudaHostAlloc) is faster where the same memory is"
            " copied often."
        )
    if (
        faster is None
        and largest_copy.bytes_per_s
        and largest_copy.bytes_per_s < _SLOWEST
        and (largest_copy.total_bytes or 0.0) >= _LARGE * largest_copy.calls
    ):
        do = "check the link"
        advice = (
            "Even pageable memory gives 3 to 6 GB/s: look at the link (`nvidia-smi -q`: PCIe generation and width), and"
            " at what else uses it."
        )
    is_pinned = _has_pinned_memory(case)
    if (largest_copy.bytes_per_s or 0.0) >= _FAST or is_pinned:
        do = "move fewer bytes"
        advice = (
            f"{'The memory is pinned' if is_pinned else 'That is a speed of pinned memory'}. Move fewer bytes, or let"
            " kernels and copies of both directions run at the same time (streams)."
        )
    if case.uses_fsdp and gpu_copy_direction(largest_copy.name) == "to":
        do = "keep parameters on the GPU"
        advice = (
            "If FSDP offloads parameters to the CPU, each layer's are copied at each use. Keep them on the GPUs"
            " (sharded, without CPUOffload), or let the next layer's copy run beside kernels (forward_prefetch=True)."
        )
    return Hit(
        "copies-dominate", case.id, share, f"{share:.0f} % copies", do,
        f"{share:.0f} % {_OF_ALL_GPU_TIME} is copies between host and GPU, {part:.0f} % of them"
        f" {_direction_text(largest_copy)}{speed}{once}", advice, f"{share:.0f} %", "copies", _OF_GPU_TIME,
    )  # fmt: skip


def _faster_opposite_copy(largest_copy: Copy, moved: Sequence[Copy]) -> Copy | None:
    """The large copies the other way, where they are much faster: the host's memory is what is slow, not the link."""
    opposite = "to" if gpu_copy_direction(largest_copy.name) == "from" else "from"
    fast = [
        copy
        for copy in moved
        if gpu_copy_direction(copy.name) == opposite
        and (copy.total_bytes or 0.0) >= _LARGE * copy.calls
        and (largest_copy.total_bytes or 0.0) >= _LARGE * largest_copy.calls
        and (copy.bytes_per_s or 0.0) >= _MUCH_FASTER * (largest_copy.bytes_per_s or math.inf)
    ]
    return max(fast, key=lambda copy: copy.bytes_per_s or 0.0, default=None)


def _unread_result_hit(case: CaseSummary, share: float) -> Hit | None:
    """Kernels that are as short as empty ones, of large inputs, and whose results no copy brings back."""
    kernels = [work for work in case.gpu_work if work.kind == "kernel" and work.calls and work.total_ns]
    launches, kernel_ns = sum(work.calls or 0.0 for work in kernels), sum(work.total_ns or 0.0 for work in kernels)
    inputs = [copy for copy in case.copies if gpu_copy_direction(copy.name) == "to"]
    input_ns, input_bytes = sum(copy.total_ns for copy in inputs), sum(copy.total_bytes or 0.0 for copy in inputs)
    others = any("memset" not in copy.name for copy in case.copies if copy not in inputs)
    cut = case.spent is not None and case.spent.share_pct(NOT_SHOWN) > 0
    if (
        others
        or cut
        or case.iterations
        or not 0 < launches <= _FEW_LAUNCHES
        or kernel_ns >= _EMPTY_NS * launches
        or input_bytes < _LARGE_INPUT
    ):
        return None
    largest = max(kernels, key=lambda work: work.total_ns or 0.0).short_name
    return Hit(
        "copies-dominate", case.id, share,
        f"{duration(input_ns)} of copies to the GPU, {duration(kernel_ns)} of kernels, nothing copied back",
        "check the kernels",
        f"{size_text(input_bytes)} are copied to the GPU in {duration(input_ns)}, its kernels take"
        f" {duration(kernel_ns)} in all, and no copy brings a result back",
        f"Check that {largest} does its work: its grid, cudaGetLastError() after the launch, the use of its result.",
        f"{share:.0f} %", "copies",
    )  # fmt: skip


def _few_threads_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A kernel that takes much of the GPU's time with fewer threads than one SM holds."""
    few = [
        work for work in case.gpu_work
        if case.threads.get(work.name, _THREADS) < _THREADS and work.share_pct >= _MUCH_PCT
        and (work.total_ns or 0.0) >= _LONG_NS * (work.calls or 1.0)
    ]  # fmt: skip
    if not few:
        return None
    kernel, cause = few[0], causes()["too-few-blocks"]
    threads, is_librarys = case.threads[kernel.name], is_library_kernel_name(kernel.name)
    count = "1 thread" if threads == 1 else f"{threads:,.0f} threads"
    return Hit(
        cause.id, case.id, kernel.share_pct, f"{kernel.short_name} runs on {count}",
        "larger or fused calls" if is_librarys else "launch more threads",
        f"{kernel.share_pct:.0f} % of GPU time is {kernel.short_name}, which is launched with {count} in all: one SM"
        " holds them, and the others have no work",
        cause.remedy("library") if is_librarys
        else "Give each element of the work its own thread: blocks of 128 or 256 threads, at least one an SM.",
        count, "hotspots",
    )  # fmt: skip


def _few_blocks_hit(case: CaseSummary, context: Context) -> Hit | None:
    """A user's kernel that takes much of the time, with none beside it, and has fewer blocks than the GPU has SMs."""
    use, busy = case.idle_gpu.use if case.idle_gpu else {}, least_gpu_busy_pct(case)
    if not case.sm_count or busy is None or not use.get("computing_ns"):
        return None
    if use["kernel_ns"] > (1 + _HARDLY) * use["computing_ns"] or any(kernel.metrics for kernel in case.kernels):
        return None
    few = [
        work for work in case.gpu_work
        if 0 < case.blocks.get(work.name, 0) < case.sm_count and work.share_pct * busy / 100 >= _MUCH_PCT
        and (work.total_ns or 0.0) >= _LONG_NS * (work.calls or 1.0) and not is_library_kernel_name(work.name)
    ]  # fmt: skip
    if not few or _few_threads_hit(case, context) or _serial_small_kernel_hit(case, context):
        return None
    kernel, cause = few[0], causes()["too-few-blocks"]
    blocks = case.blocks[kernel.name]
    gain = kernel.share_pct * busy / 100 * (1 - blocks / case.sm_count)
    if gain < _WORTH_PCT:
        return None
    return Hit(
        cause.id, case.id, gain, f"{kernel.short_name} has {plural(round(blocks), 'block')}", cause.do,
        f"{kernel.share_pct:.0f} % of GPU time is {kernel.short_name}, which has {plural(round(blocks), 'block')} for"
        f" {case.sm_count:.0f} SMs and runs with no other kernel beside it",
        cause.remedy(), f"{blocks:.0f}", "hotspots",
    )  # fmt: skip


def _bucket_copy_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Copies on the GPU beside NCCL: gradients into and out of buckets."""
    spent, each = case.spent, _iteration_count(case)
    if spent is None or not each or not spent.share_pct("NCCL"):
        return None
    inside = [c for c in case.copies if "Device-to-Device" in c.name or "DtoD" in c.name]
    calls, took = (sum(values) / each for values in ([c.calls for c in inside], [c.total_ns for c in inside]))
    share = 100 * took * each / (case.gpu_ns or 1.0)
    if calls < _BUCKETS or share < _BUCKETS_PCT:
        return None
    return Hit(
        "bucket-copies", case.id, share, f"{calls:.0f} copies into buckets", "gradient_as_bucket_view=True",
        f"{calls:.0f} copies on the GPU an iteration move gradients into buckets and back in {format_ns(took)}",
        "DistributedDataParallel(..., gradient_as_bucket_view=True) saves them.", f"{calls:.0f}", "copies",
    )  # fmt: skip


def _iteration_count(case: CaseSummary) -> int:
    """How many iterations the copies of a case are of: those of all its processes."""
    return case.iterations.count * case.iterations.processes if case.iterations else 0


def _dominant_copy(case: CaseSummary) -> Copy | None:
    """The copy between host and GPU that takes most, where it is most of all copies' time."""
    largest_copy = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    return largest_copy if largest_copy is not None and gpu_copy_direction(largest_copy.name) else None


def _direction_text(copy: Copy) -> str:
    return "to the GPU" if gpu_copy_direction(copy.name) == "to" else "from the GPU"


def _copy_time_pct(case: CaseSummary, copies: Sequence[Copy]) -> float:
    """What copies take: of an iteration, their part of what all take alone; without iterations of all GPU time."""
    ns, spent = sum(copy.total_ns for copy in copies), time_without_profiler(case)
    if spent is not None and spent.copies_pct is not None:
        return spent.copies_pct * ns / sum(copy.total_ns for copy in case.copies)
    gpu_ns = case.gpu_ns if case.spent is None or case.iterations else case.spent.gpu_ns  # with what a report cut off
    return 100 * ns / gpu_ns if gpu_ns else 0.0


def _page_migration_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Unified memory that moves page by page."""
    moved = [copy for copy in case.copies if "Unified" in copy.name or "UM" in copy.name.split()]
    calls, ns = sum(copy.calls for copy in moved), sum(copy.total_ns for copy in moved)
    size = sum(copy.total_bytes or 0.0 for copy in moved)
    if calls < _MIGRATIONS or size > _PIECE * calls or not case.gpu_ns:
        return _page_fault_hit(case)
    share, span = 100 * ns / case.gpu_ns, f"{100 * ns / case.gpu_ns:.0f} % of GPU time"
    waits, idle = "", case.idle_gpu
    pieces = f"{size / calls / 1024:.0f} KiB on average"
    paged = [copy for copy in idle.copies if copy.memory == "managed"] if idle is not None else []
    if idle is not None and idle.is_iteration and paged:  # kernels and the host wait for the pages
        calls, ns, size = (sum(getattr(c, name) or 0.0 for c in paged) for name in ("calls", "total_ns", "total_bytes"))
        share = 100 * max(0.0, ns + idle.idle_ns - 1e9 * size / _pinned_copy_bytes_per_s(case)) / idle.med_ns
        span = f"{100 * ns / idle.med_ns:.0f} % of an iteration"
        if gaps_ns := idle.in_gaps("migration"):
            gaps = [gap for gap in idle.gaps if gap.cause == "migration"]
            of_host = sum(gap.to_gpu for gap in gaps) < _MOSTLY * sum(gap.gaps for gap in gaps)
            waits = f", and the GPU is idle {format_ns(gaps_ns)} ({100 * gaps_ns / idle.med_ns:.0f} %)"
            waits += " while the host touches pages" if of_host else " between them"
    elif idle is not None and idle.is_iteration:  # pages move before its iterations
        share = 0.0
    if share < _WORTH_PCT:
        return None
    each = " an iteration" if paged and idle is not None and idle.is_iteration else ""
    headline = f"{calls:,.0f} page migrations take {format_ns(ns)}"
    if each:
        headline = f"{calls:,.0f} migrations of {pieces.removesuffix(' on average')}"
    elif case.kernel_ns:
        headline += f", kernels {format_ns(case.kernel_ns)}"
    return _make_hit(
        case, "page-faults", min(95.0, share), headline,
        f"unified memory moves by page faults: {calls:,.0f} migrations{each} of {pieces} take {format_ns(ns)}, {span}"
        f"{waits}", f"{calls:,.0f}", "gaps" if waits else "copies",
    )  # fmt: skip


def _page_fault_hit(case: CaseSummary) -> Hit | None:
    """Page faults of the GPU that take much of the kernels' time, by the sum that a report prints."""
    if case.iterations or case.page_fault_ns < _FAULTS * (case.kernel_ns or math.inf):
        return None
    faults, kernels = format_ns(case.page_fault_ns), format_ns(case.kernel_ns)
    return _make_hit(
        case, "page-faults", min(95.0, 100 * case.page_fault_ns / (case.gpu_ns or case.page_fault_ns)),
        f"GPU page faults take {faults}, kernels {kernels}",
        f"GPU page faults of unified memory take {faults}, and kernels, which wait for them, {kernels}",
        faults, "um_summary",
    )  # fmt: skip


def _exposed_communication_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Communication that nothing hides, and why: a late rank, small buckets, a slow link, none beside computing."""
    spent, talk = time_without_profiler(case), case.collectives
    many_small = talk is not None and talk.calls >= _COLLECTIVES and talk.own_ns < _SMALL_COLLECTIVE_NS
    exposed = spent.exposed_pct if spent else None
    if talk is not None and many_small and exposed is None and talk.share_pct >= _EXPOSED_PCT:
        head = f"{talk.share_pct:.0f} % of the time in kernels, set-up included, is NCCL"
        return _small_collective_hit(case, talk, min(talk.own_pct, talk.share_pct), head)
    if exposed is None or spent is None or exposed < _EXPOSED_PCT or not spent.span_ns:
        return None
    hidden = f", and {spent.hidden_pct:.0f} % more beside kernels" if round(spent.hidden_pct or 0.0) else ""
    head = f"NCCL alone takes {exposed:.0f} % of an iteration{hidden}"
    late = not case.stragglers and _nccl_waiting_share(case) >= _WAITING  # of four ranks and more each is looked at
    if late and case.waiting is not None and _is_late_rank_explained(case.waiting, spent.span_ns):
        return _late_rank_hit(case, case.waiting, exposed, head)
    if talk is not None and many_small:
        return _small_collective_hit(case, talk, exposed, head)
    if talk is not None and talk.own_ns >= _LARGE_COLLECTIVE_NS and 0 < (talk.channels or 0) <= _FEW_CHANNELS:
        return _make_hit(
            case, "slow-link", _NVLINK * exposed, f"NCCL alone {exposed:.0f} %, on {talk.channels:.0f} channels",
            f"{head}, in {talk.calls:.0f} collectives of {format_ns(talk.own_ns)} on {talk.channels:.0f} channels, as"
            " over PCIe or the host's memory; over NVLink NCCL uses 16 or more", f"{exposed:.0f} %", "gpu_use",
        )  # fmt: skip
    if (spent.hidden_pct or 0.0) < _HIDDEN * exposed and spent.share_pct(NCCL):
        computing = spent.computing_pct or 0.0
        if _LEAST_WORK_PCT <= computing < exposed:
            return _make_hit(
                case, "too-little-work", exposed - computing / 2,
                f"NCCL alone {exposed:.0f} %, computing {computing:.0f} %",
                f"{head}, computing only {computing:.0f} %: communication dominates, since a GPU has so little work",
                f"{exposed:.0f} %", "communication",
            )  # fmt: skip
        return _make_hit(
            case, "no-backward-overlap", min(exposed, _BACKWARD * computing),
            f"NCCL alone {exposed:.0f} %, none hidden",
            f"{head}{_late_rank_text(case)}: the collectives begin after the backward pass, and none runs beside it",
            f"{exposed:.0f} %", "communication",
        )  # fmt: skip
    first, do = "", "overlap or shrink communication"
    if late and case.waiting is not None:
        do = f"let {_short_process_name(case.waiting.late)} launch sooner, overlap the rest"
        first = "Let the host of the late process launch sooner (CUDA graphs, less work between launches). "
    held_up = sum(entry.cost_pct for entry in case.stragglers if entry.late)
    return Hit(
        "exposed-communication", case.id, max(exposed - held_up, 0.0) * (1 - _nccl_waiting_share(case) * late),
        f"NCCL alone {exposed:.0f} %", do, f"{head}{_late_rank_text(case)}",
        f"{first}Overlap it with computing (fewer and larger collectives), or move less (bf16 gradients).",
        f"{exposed:.0f} %", "communication",
    )  # fmt: skip


def _small_collective_hit(case: CaseSummary, talk: Collectives, share: float, head: str) -> Hit:
    """Many collectives that move little each."""
    each = " an iteration" if case.iterations else ""
    return _make_hit(
        case, "small-buckets", share * (1 - _FEW_BUCKETS / talk.calls),
        f"{talk.calls:.0f} collectives of {format_ns(talk.own_ns)}",
        f"{head}, in {talk.calls:.0f} collectives{each} a GPU that move little: without waiting the median one takes"
        f" {format_ns(talk.own_ns)}", f"{talk.calls:.0f} collectives", "gpu_use",
    )  # fmt: skip


def _is_late_rank_explained(waiting: Waiting, span_ns: float) -> bool:
    """Whether the late rank's own timeline shows a reason, where it was looked at."""
    work = waiting.late_work_pct
    return work is None or work >= _MORE_WORK_PCT or waiting.late_gap_ns >= _LATE_GAP * span_ns


def _late_rank_hit(case: CaseSummary, waiting: Waiting, exposed: float, head: str) -> Hit:
    """A rank that reaches the collectives last, with the reason that its own timeline shows beside the others'."""
    name, cause = _short_process_name(waiting.late), "late-rank-host"
    text = f"{head}; {_nccl_waiting_text(case)}: {waiting.late} reaches the collectives last"
    if waiting.late_work_pct is not None and waiting.late_work_pct >= _MORE_WORK_PCT:
        text += f"; its kernels other than NCCL's take {waiting.late_work_pct:.0f} % longer than the others'"
        if (waiting.late_blocks_pct or 0.0) >= _SAME_BLOCKS_PCT:
            cause = "uneven-work"
            text += f", and have {waiting.late_blocks_pct:.0f} % more blocks: it has more work"
        elif abs(waiting.late_kernels_pct or 0.0) >= _SAME_KERNELS_PCT:
            cause = "uneven-work"
            text += ": it has more work"
        elif (waiting.late_delayed_pct or 0.0) >= DELAYED_PCT:
            cause = "late-rank-shared-gpu"
            text += f", {waiting.late_delayed_pct:.0f} % of their time in {DELAYED}"
        else:
            cause = "late-rank-heat"
            text += " at the same number of them: a lower clock, or another process on its GPU"
    elif waiting.late_input:
        cause = "late-rank-data"
        text += f"; its GPU waits {format_ns(waiting.late_gap_ns)} an iteration for its input"
    elif waiting.late_gap_ns:
        text += f"; its GPU waits {format_ns(waiting.late_gap_ns)} an iteration for its host"
    known = causes()[cause]
    ranks = max(case.iterations.processes if case.iterations else 2, 2)
    gain = min(95.0, exposed * ranks / (ranks - 1))  # of those that wait: the late one does not
    return Hit(cause, case.id, gain, f"{name} is late, NCCL alone {exposed:.0f} %", known.do, text,
               known.remedy(detect_framework(case)), f"{exposed:.0f} %", "communication")  # fmt: skip


def _late_rank_text(case: CaseSummary) -> str:
    """For whom NCCL's kernels wait, behind what they take."""
    if case.waiting is None:
        return ", which may be waiting for a late rank"
    if _nccl_waiting_share(case) >= _WAITING and not case.stragglers:
        return f"; {_nccl_waiting_text(case)} for {case.waiting.late}, whose launches come last"
    if late := [entry for entry in case.stragglers if entry.late]:
        names = first_of([entry.name for entry in late], _NAMED)
        return f"; {sum(entry.cost_pct for entry in late):.0f} % of an iteration is waiting for {names}"
    return ", on all ranks alike: no rank is late throughout"


def _nccl_waiting_text(case: CaseSummary) -> str:
    """What of NCCL's time is waiting for the latest rank, of an iteration of the mean GPU."""
    spent = time_without_profiler(case)
    exposed, hidden = (spent.exposed_pct or 0.0, spent.hidden_pct or 0.0) if spent else (0.0, 0.0)
    alike = ", hidden or not," if round(hidden) else ""
    return f"{_nccl_waiting_share(case) * (exposed + hidden):.0f} % of an iteration{alike} is waiting"


def _nccl_waiting_share(case: CaseSummary) -> float:
    """How much of the time in NCCL's kernels is waiting for the latest rank, 0 to 1."""
    share_pct = case.spent.share_pct(NCCL) if case.spent else 0.0
    return min(case.waiting.pct / share_pct, 1.0) if case.waiting and share_pct else 0.0


def _short_process_name(process: str) -> str:
    return process.removeprefix("the process on ")


def _gpu_work_with_share(case: CaseSummary) -> tuple[Spent, float] | None:
    """Where the time goes and how many per cent of it the GPU's work is, where less of that would win time."""
    spent = case.spent
    if spent is None or not spent.gpu_ns:
        return None
    busy = least_gpu_busy_pct(case)
    return None if busy is not None and 100 - busy >= _IDLE_PCT else (spent, 100.0 if busy is None else busy)


def _fp32_matrix_hit(case: CaseSummary, _: Context) -> Hit | None:
    """GEMM and convolution in FP32 on a GPU whose tensor cores could do TF32."""
    spent, busy = case.spent, least_gpu_busy_pct(case)
    if spent is None or not spent.gpu_ns or _compute_capability(case) < _AMPERE:
        return None
    busy = 100.0 if busy is None else busy
    is_idle = 100 - busy >= _IDLE_PCT
    share = 100 * spent.fp32_ns / spent.gpu_ns
    if share < (_MOSTLY_PCT if is_idle else _FP32_PCT) or busy < _LEAST_BUSY_PCT:
        return None
    class_names = " and ".join(part.name for part in spent.parts if part.name in {"GEMM", "convolution"})
    arithmetic = [part for part in spent.parts if part.name in {"GEMM", "convolution"}]
    large = sum(part.ns for part in arithmetic) >= _LARGE_NS * sum(part.operations for part in arithmetic)
    when = "Once the GPU is less idle, and if" if is_idle else "If"
    return Hit(
        "tensor-cores-unused", case.id, (_LARGE_GAIN if large else _TENSOR_GAIN) * share * busy / 100,
        f"{share:.0f} % FP32 {class_names}, no tensor cores", "TF32 or bf16, if accurate enough",
        f"{share:.0f} % of GPU time is {class_names} in FP32, without tensor cores",
        f"{when} the accuracy allows it, try TF32 (torch.set_float32_matmul_precision('high'), and for convolutions"
        " torch.backends.cudnn.allow_tf32) or bf16.", f"{share:.0f} %", "hotspots", _OF_GPU_TIME, costs_accuracy=True,
    )  # fmt: skip


def _layout_conversion_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Kernels that convert layouts, or that copy tensors which are not contiguous, whichever take more."""
    matches = cached_pattern_search(_LAYOUT)
    kernels = [share for share in case.gpu_work if matches(share.name)]
    copied_ns = sum(share.total_ns or 0.0 for share in kernels if "direct_copy" in share.name)
    is_copy = 2 * copied_ns > sum(share.total_ns or 0.0 for share in kernels)
    does = "copies tensors that are not contiguous" if is_copy else "converts layouts (NCHW/NHWC, transposing)"
    hit = _kernel_pattern_hit(case, "layout-conversion", _LAYOUT, _LAYOUT_PCT, does)
    if hit is None or not is_copy or (case.spent and case.spent.share_pct("convolution") >= _CONVOLVES_PCT):
        return hit
    advice = (
        "Keep tensors in the order in which the next operation reads them: fewer permute, reshape and .contiguous()"
        " between operations, or torch.compile."
    )
    return replace(hit, do="avoid the copies", advice=advice)


def _optimizer_hit(case: CaseSummary, _: Context) -> Hit | None:
    """An optimizer of a kernel a parameter and operation, or one of several passes over all parameters."""
    return _kernel_pattern_hit(
        case,
        "unfused-optimizer",
        _UNFUSED_STEP,
        _STEP_PCT,
        "is an optimizer's step, parameter by parameter",
        least=_MANY,
        of_each=_OF_STEP,
        may_be_setup=False,
    ) or _kernel_pattern_hit(
        case, "unfused-optimizer", _FOREACH, _OPTIMIZER_PCT, "is the optimizer's step", without=_FUSED
    )


def _sparse_conversion_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Sparse matrices that are sorted and converted beside their products."""
    hit = _kernel_pattern_hit(
        case, "layout-conversion", _SPARSE_CONVERSION, _LAYOUT_PCT,
        "sorts, coalesces and converts sparse matrices (COO to CSR) for their products", needs=_SPARSE_PRODUCT,
    )  # fmt: skip
    if hit is None or not any(_COALESCES.search(share.name) for share in case.gpu_work):
        return None
    advice = (
        "If the matrices do not change, build them and their transposes once, before the loop, and keep them as CSR"
        " (torch: .coalesce(), .to_sparse_csr())."
    )
    return replace(hit, do="convert once", advice=advice)


def _attention_hit(case: CaseSummary, _: Context) -> Hit | None:
    if case.spent is None or case.spent.share_pct("attention"):
        return None
    return _own_softmax_hit(case) or _kernel_pattern_hit(
        case, "unfused-attention", _SCORES, _SCORES_PCT,
        "is softmax and elementwise work on attention's scores, which are"
        " stored between two products", needs=_SOFTMAX,
    )  # fmt: skip


def _own_softmax_hit(case: CaseSummary) -> Hit | None:
    """A product, a scaling and a kernel of the user's, one after the other, of which the product takes least.

    A layer of a network has such an order too, but its product takes longer than what is done with its result.
    """
    kernels = {share.name: share for share in case.gpu_work if share.kind == "kernel" and share.calls}
    busy, candidates = least_gpu_busy_pct(case), []
    for product in kernels.values():
        scaling = kernels.get(case.successors.get(product.name, ""))
        behind = kernels.get(case.successors.get(scaling.name, "")) if scaling else None
        if (
            scaling and behind
            and classify_gpu_operation(product.name) == "GEMM" and _SCALING.search(scaling.name)
            and not is_library_kernel_name(behind.name) and classify_gpu_operation(behind.name) == OTHER_KERNELS
            and min(scaling.total_ns or 0.0, behind.total_ns or 0.0) >= (product.total_ns or 0.0)
        ):  # fmt: skip
            candidates.append((scaling.share_pct + behind.share_pct, behind))
    share, softmax = max(candidates, key=lambda pair: pair[0], default=(0.0, None))
    if softmax is None or share < _SCORES_PCT:
        return None
    cause = causes()["unfused-attention"]
    return Hit(
        cause.id, case.id, share * (100.0 if busy is None else busy) / 100 * _GAINS[cause.id],
        f"{share:.0f} % a scaling and {softmax.short_name} behind a product", cause.do,
        f"{share:.0f} % of GPU time is a scaling and then {softmax.short_name}, behind a matrix product that is shorter"
        " than either: probably attention written out, whose scores are stored",
        f"If so: {cause.remedy(detect_framework(case))} Else let {softmax.short_name} do the scaling, which"
        " saves a pass over these values.", f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _cast_hit(case: CaseSummary, _: Context) -> Hit | None:
    return _kernel_pattern_hit(case, "autocast-weight-casts", _CAST, _CAST_PCT,
     "is casts between FP32 and half precision",
                       least=_MANY, needs=_HALF, by_launches=False)  # fmt: skip


def _dense_embedding_gradient_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A gradient that is filled with zeros and updated as a table, though few rows are used."""
    filled, worked = (
        sum(share.total_ns or 0.0 for share in case.gpu_work if matches(share.name))
        for matches in map(cached_pattern_search, (_FILL, _TABLE_WORK))
    )
    if filled < _FILLED * worked:
        return None
    return _kernel_pattern_hit(
        case, "dense-embedding-gradient", _TABLE_WORK, _TABLE_PCT,
        "is the dense gradient of an embedding's table and its step, of which few rows are used", needs=_EMBEDDING,
    )  # fmt: skip


def _kernel_pattern_hit(
    case: CaseSummary, cause: str, pattern: re.Pattern[str], least_pct: float, description: str, *, least: float = 0,
    needs: re.Pattern[str] | None = None, without: re.Pattern[str] | None = None, of_each: float = 1.0,
    may_be_setup: bool = True, by_launches: bool = True,
) -> Hit | None:  # fmt: skip
    """Kernels of libraries that take much of the GPU's work, by their names.

    Args:
        case: The case.
        cause: Its id.
        pattern: Their names.
        least_pct: The least share of the GPU's time.
        description: What they do, behind `12 % of GPU time`.
        least: How many there are at least in an iteration of as many operations.
        needs: A kernel that there must be too.
        without: A kernel that there must not be.
        of_each: How many kernels there are for each that has such a name.
        may_be_setup: Whether a program's set-up has such kernels too: a run without iterations tells nothing then.
        by_launches: Whether the share of the launches counts too, where launches bind.
    """
    busy = least_gpu_busy_pct(case)
    busy = 100.0 if busy is None else busy
    if case.spent is None or not case.spent.gpu_ns or (case.one_phase and may_be_setup):
        return None
    matches, of_library = cached_pattern_search(pattern), cached_pattern_search(_OF_LIBRARIES)
    mine = [share for share in case.gpu_work if matches(share.name) and of_library(share.name)]
    if not mine:
        return None
    names = [share.name for share in case.gpu_work if of_library(share.name)]
    total = sum(share.total_ns or 0.0 for share in case.gpu_work)
    share = 100 * sum(kernel.total_ns or 0.0 for kernel in mine) / total if total else 0.0
    count = sum(kernel.calls or 0.0 for kernel in mine) / (_iteration_count(case) or 1)
    if case.idle_gpu is not None:
        least = min(least, _EACH * case.idle_gpu.operations)  # a layer, or a part of a step
    calls = sum(share.calls or 0.0 for share in case.gpu_work if share.kind == "kernel")
    launched = 100 * sum(kernel.calls or 0.0 for kernel in mine) / calls if calls else 0.0
    idle = case.idle_gpu.in_gaps("launch", lengths=SHORT) / case.idle_gpu.med_ns if case.idle_gpu else 0.0
    gain = (
        min(100.0, of_each * share) * busy / 100 * _GAINS[cause]
        + min(100.0, of_each * launched) * idle * _FUSED_LAUNCHES
    )
    if case.idle_gpu is not None and idle > _MOSTLY and cause in _WITHIN_OPERATORS:
        use = case.idle_gpu.use
        in_calls = (use.get("cuda_ns", 0.0) - use.get("wait_ns", 0.0)) / (use.get("span_ns") or case.idle_gpu.med_ns)
        gain = min(gain, launched * (max(in_calls, 0.0) + idle) / 2)  # a launch costs its call at least
    if case.idle_gpu is not None and (host_ns := case.idle_gpu.use.get("host_ns")) and not idle > _MOSTLY:
        gain = min(gain, max(100 * (1 - host_ns / case.idle_gpu.med_ns), gain / 4))  # then the host is the limit
    if (
        gain < _WORTH_PCT
        or max(share, launched * (by_launches and idle > _MOSTLY)) < least_pct
        or count < least
        or (needs and not any(needs.search(name) for name in names))
    ):
        return None
    if without and any(without.search(name) for name in names):
        return None
    return _make_hit(
        case, cause, gain, f"{share:.0f} % {description.partition(' (')[0]}",
        f"{share:.0f} % of GPU time, and {launched:.0f} % of the launches, {description}", f"{share:.0f} %", "hotspots",
        "of GPU time",
    )  # fmt: skip


def _short_kernel_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Many kernels that are hardly more than their launch."""
    work = _gpu_work_with_share(case)
    if work is None or work[0].short_pct < _SHORT_PCT or work[0].operations < _MANY:
        return None
    share = work[0].share_pct("elementwise")
    if share < _ELEMENTWISE_PCT or detect_framework(case) != "pytorch":  # a user's kernel may have any name
        return None
    elementwise = [part for part in work[0].parts if part.name == "elementwise"]
    if sum(part.ns for part in elementwise) >= _LONG_MEAN_NS * sum(part.operations for part in elementwise):
        return None  # their time is in a few long ones
    return Hit(
        "short-kernels", case.id, share / 2, f"{work[0].short_pct:.0f} % of the kernels take less than 5 us", "fuse",
        f"{work[0].short_pct:.0f} % of the kernels take less than 5 us, and elementwise ones {share:.0f} % of GPU time",
        "Fuse them (torch.compile, a kernel of your own).", f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _recompilation_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A run without iterations in which modules are compiled and loaded again and again."""
    idle = case.idle_gpu
    use = idle.use if idle else {}
    if idle is None or idle.is_iteration or use.get("compiles", 0) < _COMPILES or use["late_compiles"] < _LATE_COMPILES:
        return None
    share = 100 * use["compile_ns"] / use["span_ns"]
    if share < _WORTH_PCT:
        return None
    return _make_hit(
        case, "recompilation", share, f"compiles {use['compiles']:.0f} times, {format_ns(use['compile_ns'])}",
        f"{share:.0f} % of the time from the first kernel on is {use['compiles']:.0f} gaps of"
        f" {format_ns(use['compile_ns'] / use['compiles'])}, at the end of each of which a module is loaded: a compiler"
        " compiles again, or libraries try kernels", f"{share:.0f} %", "gpu_use",
    )  # fmt: skip


def _periodic_slow_iteration_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Iterations at equal distances that take longer than the others, and what differs in them."""
    use, iterations = case.idle_gpu.use if case.idle_gpu else {}, case.iterations
    share = use.get("slower_pct", 0.0)
    if iterations is None or case.idle_gpu is None or share < _SLOWER_PCT or not use.get("slow"):
        return None
    more, gpu = use["slower_ns"], max(use.get("slower_gpu_ns", 0.0), 0.0)
    if case.idle_gpu.loads >= _PART * use["slow"] and not use.get("period") and gpu <= LITTLE_OF_SLOWER * more:
        if case.idle_gpu.loads <= _MOSTLY * use["slow"]:  # of kernels at their first use
            return None
        return _make_hit(
            case, "recompilation", share, f"{use['slow']:.0f} iterations compile anew",
            f"{use['slow']:.0f} of {iterations.count} iterations take {format_ns(more)} longer than the usual"
            f" {format_ns(iterations.med_ns)}, and modules are loaded in them: a compiler compiles again",
            f"{share:.0f} %", "iterations",
        )  # fmt: skip
    slow = find_slow_iterations(case)
    if slow is None or is_cause_of_slow_iterations_known(case, profiler_slowdown(case)):
        return None
    takes, is_launched = f"{slow.subject} {slow.verb('take')}", False
    if gpu >= MOST_OF_SLOWER * more:
        differs = f"{format_ns(min(gpu, more))} of that are more work of the GPU: evaluation, or a larger input"
    elif is_launched := slow.is_of_host and _is_launching(use, iterations.med_ns):
        count = use["slower_operations"]
        differs = (
            f"the host launches {count:,.0f} more operations in it, one every {format_ns(more / count)}, and they keep"
            f" the GPU busy for {format_ns(gpu)}: launch-bound"
        )
    elif slow.is_of_host:
        differs = f"the GPU has no more work in it: {_host_work_in_gaps_text(case.idle_gpu)}"
    else:
        differs = f"{format_ns(gpu)} of that are more work of the GPU, the rest the host's"
    hit = _make_hit(
        case, "periodic-slow-iteration", share, f"{takes} {format_ns(more)} more",
        f"{takes} {format_ns(more)} longer than the usual {format_ns(iterations.med_ns)}; {differs}",
        f"{format_ns(more)} longer", "iterations",
    )  # fmt: skip
    if is_launched:
        known = causes()["launch-bound"]
        return replace(hit, do=known.do, advice=known.remedy(detect_framework(case)))
    return replace(hit, do="look at its kernels", advice=_LOOK_AT_KERNELS) if gpu >= MOST_OF_SLOWER * more else hit


def _is_launching(use: Mapping[str, float], usual_ns: float) -> bool:
    """Whether slow iterations take longer to launch more operations, about as fast as the usual ones launch theirs."""
    added = use.get("slower_operations", 0.0)
    usual = use["operations"] - added * use["slow"] / use["iterations"]
    return usual > 0 and use["slower_ns"] <= _AS_FAST * added * usual_ns / usual


def _host_work_in_gaps_text(idle: IdleGpu) -> str:
    """What the host does in long gaps: their files, where those take much of them."""
    gaps = [gap for gap in idle.gaps if gap.length == "long"]
    writes, reads = (sum(ns) for ns in ((g.write_ns for g in gaps), (g.read_ns + g.open_ns for g in gaps)))
    if writes + reads < _PART * sum(gap.total_ns for gap in gaps) or not gaps:
        return "the host does something else (a simulation, a checkpoint, garbage collection, a log)"
    return "the host writes files (a checkpoint, a log)" if writes >= reads else "the host reads files"


def _slow_iteration_hit(case: CaseSummary, _: Context) -> Hit | None:
    """An iteration that takes many times the median: it spoils means and totals, not the other iterations."""
    iterations = case.iterations
    if (
        iterations is None
        or not iterations.med_ns
        or iterations.most_ns < _SLOW_TIMES * iterations.med_ns
        or iterations.most_ns - iterations.med_ns < _PAUSE_NS
        or iterations.count < _FEW_ITERATIONS
        or (case.idle_gpu is not None and case.idle_gpu.use.get("slow"))
    ):
        return None
    busy = iterations.slowest_busy_pct
    all_ns = iterations.count * iterations.med_ns + iterations.most_ns - iterations.med_ns
    gain = 100 * (iterations.most_ns - iterations.med_ns) / all_ns
    if gain < _SLOWER_PCT:
        return None
    works = busy is not None and busy >= BUSY_PCT
    use = case.idle_gpu.use if case.idle_gpu is not None else {}
    load_ns = use.get("slowest_load_ns", 0.0)
    if not works and load_ns >= _PART * (
        iterations.most_ns - iterations.med_ns
    ):  # kernels at their first use, which is once
        return None
    which = f"iteration {iterations.slowest} of {iterations.count + iterations.warmup} (counted from 0)"
    if use.get("compile_ns", 0.0) >= MOST_OF_SLOWER * (iterations.most_ns - iterations.med_ns):
        return _make_hit(
            case, "recompilation", gain, f"{which} compiles",
            f"{which} takes {format_ns(iterations.most_ns)}, {iterations.most_ns / iterations.med_ns:.0f} times the"
            f" median of {format_ns(iterations.med_ns)}: the GPU waits in it, and then modules are loaded: a compiler"
            " has compiled again, or for the first time what this iteration alone uses",
            format_ns(iterations.most_ns), "iterations",
        )  # fmt: skip
    fact = (
        f"{which} takes {format_ns(iterations.most_ns)}, {iterations.most_ns / iterations.med_ns:.0f} times the median"
        f" of {format_ns(iterations.med_ns)}{'' if busy is None else f', with a GPU at work {busy:.0f} % of it'}"
    )
    advice = (
        _LOOK_AT_KERNELS
        if works
        else "Look at what the host does then (a checkpoint, garbage collection, a log, I/O)."
        + ("" if case.host and case.host.profiled_by else f" {_HOST_SHOWN}")
    )
    do = "look at its kernels" if works else "look at the host there"
    return Hit("slow-iteration", case.id, gain, f"{which} takes {format_ns(iterations.most_ns)}", do, fact, advice,
               format_ns(iterations.most_ns), "iterations")  # fmt: skip


def _slow_start_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A start in which the GPU works much more than in the iterations: kernels are tried, or compiled."""
    iterations, of = case.iterations, {phase.phase: phase for phase in case.phases}
    if (
        iterations is None or "steady" not in of or iterations.processes > 1 or not iterations.gpu_ns
    ):  # ranks start apart
        return None
    setup, warmup, steady = of.get("setup"), of.get("warmup"), of["steady"]
    copied = sum(ns for name, ns in setup.what if name.startswith("[CUDA mem")) if setup else 0.0
    if (
        warmup is not None
        and warmup.iterations
        and warmup.iterations <= _FIRST
        and warmup.gpu_ns >= _TUNES * warmup.iterations * iterations.gpu_ns
    ):
        more = warmup.duration_ns - warmup.iterations * iterations.med_ns
        count = (
            "the first iteration takes" if warmup.iterations == 1 else f"the first {warmup.iterations} iterations take"
        )
        start = warmup
    elif setup is not None and setup.times_kernels and setup.gpu_ns - copied > steady.gpu_ns:  # else it makes its data
        more, count, start = setup.duration_ns, "the start takes", setup
    else:  # libraries are loaded at each start
        return None
    share = 100 * more / (start.duration_ns + steady.duration_ns)
    if share < _FIRST_PCT:
        return None
    return _make_hit(
        case, "slow-first-iteration", share * _OF_START, f"{count} {format_ns(start.duration_ns)}",
        f"{count} {format_ns(start.duration_ns)}, as long as {start.duration_ns / iterations.med_ns:,.0f} later"
        f" iterations, with {start.gpu_ns / iterations.gpu_ns:,.0f} times the GPU's work of one (initialisation, or"
        " kernels that are tried: autotuning)", format_ns(start.duration_ns), "phases",
    )  # fmt: skip


def _stray_context_hit(case: CaseSummary, _: Context) -> Hit | None:
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
        "stray-context", case.id, min(100.0, 100 * each / med_ns) if med_ns else 0.0, what,
        "set the device before the first CUDA call",
        f"{what}{others} that is {use}",
        "It takes some hundred MB of that GPU's memory, and comes mostly of a CUDA call before the process chooses its"
        " GPU: call torch.cuda.set_device(local_rank) (cudaSetDevice) before all others, or set CUDA_VISIBLE_DEVICES,"
        " and load with map_location.", str(len(held)), "process_gpus",
    )  # fmt: skip


def _gigabytes_per_s_text(per_second: float) -> str:
    return f"{per_second / 1e9:.3g} GB/s"


def _counters_command_text(case: CaseSummary) -> str:
    """How to measure what binds the kernel that takes most."""
    largest = next((share for share in case.gpu_work if share.kind == "kernel"), None)
    name = largest.short_name.partition("<")[0].rpartition("::")[2] if largest else ""  # ncu knows no parameters
    each = largest.calls / (_iteration_count(case) or 1) if largest and largest.calls and case.iterations else 1.0
    count = max(1, min(_LAUNCHES_SHOWN, round(each)))  # those of an iteration may differ
    chosen = f"-k {name} -c {count}" if name.isidentifier() else "-c 1"
    return f"`ncu {chosen}` shows what binds {name if name.isidentifier() else 'kernels'} (in a recipe: `counters:`)."


def healthy_gpu_hit(case: CaseSummary) -> Hit | None:
    """That a GPU is busy, of a case of which nothing else is said."""
    idle, busy = case.idle_gpu, least_gpu_busy_pct(case)
    if idle is None or busy is None or idle.operations < 1:
        return None
    if busy < BUSY_PCT:
        return _partly_idle_gpu_hit(case, idle)
    copied = sum(copy.total_ns - copy.alone_ns for copy in idle.copies if copy.direction != "on the GPU")
    cause, also = "gpu-busy", ""
    if idle.collectives and (spent := time_without_profiler(case)) is not None and spent.hidden_pct:
        cause, also = "scales", f", collectives hidden behind other work ({spent.hidden_pct:.0f} %)"
    elif copied >= _COPIED_PCT / 100 * idle.med_ns:
        cause, also = "overlapped", ", copies beside kernels"
    elif any(name.startswith(("cudaGraphLaunch", "cuGraphLaunch")) for name in idle.calls):
        cause, also = "graphs", ", launched by CUDA graphs"
    span = f"an iteration of {format_ns(idle.med_ns)}" if idle.is_iteration else "the time in which it has work"
    known = causes()[cause]
    counters = "" if any(kernel.metrics for kernel in case.kernels) else f" {_counters_command_text(case)}"
    return Hit(cause, case.id, 0.0, f"GPU busy {busy:.0f} %", known.do,
               f"{idle.gpu} is busy {busy:.0f} % of {span}{also}; nothing stands out",
               known.remedy() + counters, f"{busy:.0f} %", "iterations")  # fmt: skip


def _partly_idle_gpu_hit(case: CaseSummary, measured: IdleGpu) -> Hit | None:
    """That a GPU is idle for reasons of which each takes little, with what a profiler adds to each launch in them."""
    idle = remove_profiler_slowdown(measured, profiler_slowdown(case))
    parts = idle_time_parts_text(case, idle)
    if not idle.is_iteration or not parts:
        return None
    return Hit("gpu-busy", case.id, 0.0, f"GPU busy {idle.busy_pct:.0f} %", "fewer, longer operations",
               f"{idle.gpu} is busy {idle.busy_pct:.0f} % of an iteration of {format_ns(idle.med_ns)} with"
               f" {plural(round(idle.operations), 'operation')}; {parts}; nothing stands out",
               "Fewer, longer operations leave fewer gaps.", f"{idle.busy_pct:.0f} %", "gaps")  # fmt: skip


def _idle_gpu_hits(case: CaseSummary, context: Context) -> list[Hit]:
    return idle_gpu_hits(case, profiler_slowdown(case), rereadable=context.rereadable)


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | Sequence[Hit] | None]]] = {
    "idle": _idle_gpu_hits,
    "pageable copies": _pageable_copy_hit,
    "copies": _copies_outweigh_kernels_hit,
    "no overlap of copies": _unoverlapped_copy_hit,
    "default stream": _serial_stream_hit,
    "kernels one after the other": _serial_small_kernel_hit,
    "few threads": _few_threads_hit,
    "few blocks": _few_blocks_hit,
    "bucket copies": _bucket_copy_hit,
    "unified memory": _page_migration_hit,
    "communication": _exposed_communication_hit,
    "FP32 arithmetic": _fp32_matrix_hit,
    "layout": _layout_conversion_hit,
    "sparse matrices": _sparse_conversion_hit,
    "optimizer": _optimizer_hit,
    "attention": _attention_hit,
    "casts": _cast_hit,
    "embedding": _dense_embedding_gradient_hit,
    "short kernels": _short_kernel_hit,
    "recompilation": _recompilation_hit,
    "slow first iteration": _slow_start_hit,
    "periodic iteration": _periodic_slow_iteration_hit,
    "slow iteration": _slow_iteration_hit,
    "stray context": _stray_context_hit,
}
