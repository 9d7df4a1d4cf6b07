"""Rules over counters: which part of the GPU binds a kernel, and how much of what that part carries is useful.

What a cure wins is the wasted share of the part that binds, down to what binds next: the kernel is taken to keep its
distance from the roof. Only where nothing is wasted is a kernel at its roof, and that is said too. A rule speaks where
its counters were measured, and of the kernel of which most could be won. Names decide nothing but whether a kernel is a
library's, which can only be called differently.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsw.analysis.kernel_classes import is_fp32_matrix_kernel
from nsw.analysis.kernels import ALL_KERNELS, kernel_share_base, kernels_of_start
from nsw.analysis.rules.binding import (
    ALU,
    COMPUTING,
    CONFLICTS,
    COUNTED,
    DRAM,
    FAR_PCT,
    FP64,
    HALF,
    L2,
    LATENCY,
    LEAST_PCT,
    LEAST_TENSOR_PCT,
    MEMORY_PARTS,
    REACHED_PCT,
    ROOF_PCT,
    SHARED,
    SHORT_NS,
    SURELY_PCT,
    TENSOR,
    WARP,
    Remark,
    binding_part,
    busiest_part,
    busiest_part_pct,
    busy_pct_by_part,
)
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import ALL_TIME, AMPERE, Context, Hit, detect_framework
from nsw.analysis.rules.instructions import (
    binding_pipe,
    divergence_remark,
    fp64_remark,
    matrix_product_remark,
    multiply_add_product_remark,
    special_function_remark,
    unfused_multiply_add_remark,
)
from nsw.analysis.rules.latency import (
    barrier_or_fetch_stall_remark,
    block_reduction_remark,
    few_warps_text,
    flushed_cache_remark,
    is_shared_memory_busy_with_barriers,
    latency_remark,
    small_tiles_remark,
    unbalanced_grid_remark,
)
from nsw.analysis.rules.memory_access import (
    atomic_contention_remark,
    bank_conflict_remark,
    dram_bytes_of_launch,
    global_accesses,
    local_memory_remark,
    misaligned_rows_remark,
    narrow_access_remark,
    repeated_reads_remark,
    scattered_access_remark,
    scattered_atomics_remark,
    useful_shares_by_level,
)
from nsw.metrics import find_chip, ncu_metric_request
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import duration
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.idle_gpu import IdleGpu
    from nsw.analysis.kernels import Advice, KernelRow

__all__ = [
    "RULES",
    "follow_up_metrics_by_kernel",
    "is_library_kernel_name",
    "is_rule_on_limit",
    "is_waste",
    "kernel_advice_text",
    "kernel_fault",
    "largest_remarks",
    "metrics_behind",
    "missing_counters_of_largest_kernel",
    "reportable_remarks",
    "rule_sentence",
    "share_of_time_with_kernels",
]

_WORTH_PCT: Final = 5.0  # of the kernels' time that could be won by a cure
_PART_PCT: Final = 2.0  # likewise of a kernel that others share a cure with
_MUCH_PCT: Final = 10.0  # of the kernels' time, from which what binds a healthy kernel is said

# kernels of libraries, which a user can only call differently: names that nobody gives to a kernel of his own
_LIBRARY: Final = re.compile(
    r"cublas|cudnn|cutlass|nvjet_|xmma_|(?:maxwell|volta|turing|ampere|hopper|sm\d\d)_|gemvx|splitKreduce|at::native|"
    r"^void (?:at|native)::|convolve_common_engine|implicit_convolve_sgemm|elementwise_kernel_with_index|"
    r"(?:vectorized|unrolled|distribution)_elementwise|elementwise_kernel<|reduce_kernel<|multi_tensor_apply|"
    r"vectorized_layer_norm|CatArrayBatched|softmax_warp_|cunn_|fused_dropout_kernel_vec|max_pool_(?:for|back)ward_n|"
    r"bn_[bf]w_|op_generic_tensor|nchwToNhwc|nhwcToNchw|trt_|triton_(?:poi|red|per|tem|for)_|nccl(?:Dev)?Kernel|"
    r"\bphi::(?:funcs|fusion|kps)::|\bpaddle::|\btensorflow::|cub::|thrust::|Device(?:RadixSort|Scan|Reduce|Select)|"
    r"^(?:(?:loop|input|gemm|transpose|concatenate|scatter)_\w*fusion\w*|fusion(?:_\d+)?|wrapped_\w+)$|"
    r"\b(?:regular|vector|prime|composite_\dway|(?:regular|multi)_bluestein)_fft(?:_\w+)?(?:<|$)|"
    r"\b[sd]p(?:Radix|Vector|RealComplex)\w*::|(?:pre|post)process_kernel<.*loadstore_modifier|cusparse|cusolver|"
    r"generate_seed_pseudo|gen_sequenced<|Device(?:MergeSort|Segmented|Histogram|Partition|RunLength|AdjacentDifference)"
)
_PYTHON_FRAMEWORKS: Final = frozenset({"pytorch", "jax"})
# which no compiler fuses
_UNFUSED: Final = re.compile(r"cub::|thrust::|Device\w+Kernel|sort|scan|topk|gemm|xmma_|nvjet", re.IGNORECASE)
# what calls can change of a library's kernel
_OF_CALLS: Final = frozenset({"too-few-blocks", "small-launches"})
_OF_LIBRARIES: Final = _OF_CALLS | {"tensor-cores-unused", "misaligned-rows"}


_SORT: Final = re.compile(r"DeviceRadixSort(?!Histogram)")
_EACH_SORT: Final = re.compile(r"DeviceRadixSortHistogram")  # launched once a sort
# what sorts, by a kernel that it launches once for each sort
_SORTERS: Final = (
    (re.compile(r"randperm_handle_duplicate_keys"), "which sorts for torch.randperm"),
    (re.compile(r"krn_partials_per_segment"), "which sorts for the gradient of an embedding (a sort a lookup)"),
)
_CURED_ALIKE: Final = {"array-of-structures": "uncoalesced-access"}  # which counters hardly tell apart
_OF_PIPES: Final = "compute-bound"
_HEALTHY: Final = {DRAM: "dram-bound", L2: "l2-bound", SHARED: "shared-memory-bound"}
_LONG_NAME: Final = 60  # characters of a kernel's name and share, of which a sentence names no second
_NAMED: Final = 4  # kernels that a sentence names beside its first
_LARGE_PCT: Final = 25.0  # of the kernels' time, from which a healthy kernel is named
_ALONE_PCT: Final = 95.0  # of a kernel's time, that most SMs have no work: one block decides, whatever else it wastes
_IDLE_XU_PCT: Final = 1.0  # of its peak, with which an integer division in a hundred instructions would be more
_CLOCK: Final = 0.9  # of the base clock, at which ncu itself locks the SMs
_EMPTY_LAUNCH_NS: Final = 2e3  # which a kernel takes that does nothing
_NCU_PCT: Final = 90.0  # no estimate of a rule is better
_LATENCY_CAUSES: Final = frozenset({"dependent-chain", "small-launches", "flushed-caches", "low-clock", "ncu-rule"})
# what rules of ncu say -> the cause
_OF_NCU: Final = (
    ("bank conflict", "bank-conflicts"),
    ("transmitted per sector", "uncoalesced-access"),
    ("threads being active", "divergence"),
    ("non-fused", "unfused-multiply-add"),
    ("CTA barrier", "barriers"),
    ("partial wave", "tail-wave"),
    ("less than the GPU's", "too-few-blocks"),
    ("SMs have a much", "unequal-blocks"),
)
_OF_MEMORY: Final = frozenset({
    "array-of-structures", "bank-conflicts", "local-array-indexing", "misaligned-rows", "narrow-access",
    "random-gather", "register-spills", "uncoalesced-access",
})  # fmt: skip
_MOST_PCT: Final = 50.0  # of the kernels' time, from which a kernel's second waste is said too
# waste, which the busiest part may be busy with
_OF_WASTE: Final = frozenset({"bank-conflicts", "uncoalesced-access", "divergence", "unfused-multiply-add"})
_NAMES_LIMIT: Final = re.compile(r" is limited by ")
_TELLS: Final = re.compile(r"\d")  # a figure of this kernel: other sentences explain what a rule is about


def _kernel_remarks(kernel: KernelRow) -> list[Remark]:
    """What is wrong with a kernel, the first to cure first.

    No cure takes less than an empty launch does, but those that save the launch: operators that are fused.
    """
    is_fusable = _is_library_kernel(kernel) and not _UNFUSED.search(kernel.name)
    each = kernel.launch_ns
    limit_pct = 100 * max(0.0, 1 - _EMPTY_LAUNCH_NS / each) if each else 100.0
    return [
        remark
        if remark.cause == "small-launches" or (is_fusable and remark.cause in _OF_CALLS)
        else remark._replace(won=min(remark.won, limit_pct))
        for remark in _uncapped_remarks(kernel)
    ]


def _uncapped_remarks(kernel: KernelRow) -> list[Remark]:
    """What is wrong with a kernel, the first to cure first: waste, and latency where there is none.

    More warps may help a kernel with waste too, as long as no part is at its roof: they win of what is left then. They
    are the first to have where addresses come from data, which the program cannot choose.
    """
    if _is_library_kernel(kernel):
        return _library_kernel_remarks(kernel)
    few = latency_remark(kernel)
    for tier in _TIERS:
        remarks = [remark for look in tier if (remark := look(kernel)) is not None and remark.won >= LEAST_PCT]
        if not remarks:
            continue
        best = [max(remarks)]
        if tier is _WASTE and few is not None and few.cause.startswith("occupancy") and few.won >= LEAST_PCT:
            is_gather = any(remark.cause == "random-gather" for remark in remarks)
            best = [few] if is_gather else [*best, few._replace(won=few.won * (1 - best[0].won / 100))]
        if tier is _WASTE:  # work that is wasted, and work that lies on few SMs, are cured apart
            uneven = [remark for remark in remarks if remark.cause == "unequal-blocks" and remark.won >= _LARGE_PCT]
            best = uneven if any(remark.won >= _ALONE_PCT for remark in uneven) else [
                *best, *(remark for remark in uneven if remark not in best)
            ]  # fmt: skip
        return best
    remark = _at_roof_remark(kernel) or _ncu_rule_remark(kernel)
    return [] if remark is None else [remark]


def _library_kernel_remarks(kernel: KernelRow) -> list[Remark]:
    """What calls can change of a library's kernel most; its own waste is not said, and hides that it is at its roof."""
    looks = (*_LIBRARY_LOOKS, *(look for tier in _TIERS for look in tier))
    remarks = [remark for look in looks if (remark := look(kernel)) is not None and remark.won >= LEAST_PCT]
    of_calls = [remark for remark in remarks if remark.cause in _OF_LIBRARIES]
    if remarks:
        return [max(of_calls)] if of_calls else []
    remark = _at_roof_remark(kernel)
    return [] if remark is None else [remark]


_WASTE: Final[tuple[Callable[[KernelRow], Remark | None], ...]] = (
    scattered_access_remark, narrow_access_remark, bank_conflict_remark, local_memory_remark,
    atomic_contention_remark, divergence_remark, fp64_remark, special_function_remark,
    unfused_multiply_add_remark, unbalanced_grid_remark,
    barrier_or_fetch_stall_remark, block_reduction_remark, small_tiles_remark,
)  # fmt: skip


def _is_library_kernel(kernel: KernelRow) -> bool:
    return is_library_kernel_name(kernel.name)


def is_library_kernel_name(name: str) -> bool:
    """Whether a kernel of this name is a library's, which can only be called differently."""
    return _LIBRARY.search(name) is not None


def _library_product_remark(kernel: KernelRow) -> Remark | None:
    """A library's product in FP32, by its name, on a GPU whose tensor cores multiply TF32."""
    chip, tensor = find_chip(kernel.device_name), kernel.tensor_pct
    if chip is None or not chip.capability or chip.capability < AMPERE or not is_fp32_matrix_kernel(kernel.name):
        return None
    return None if tensor is None or tensor > LEAST_TENSOR_PCT else multiply_add_product_remark(kernel, "FP32")


_CONVOLVES: Final = re.compile(r"fprop|dgrad|wgrad|convolve")
_PREDICATED_PCT: Final = 7.0  # of the active threads, from which they are worth a word
_LIBRARY_LOOKS: Final = (misaligned_rows_remark, _library_product_remark)


def _low_clock_remark(kernel: KernelRow) -> Remark | None:
    """A clock far below the chip's, where the SM binds; busy tensor cores reach the power limit, which lowers it."""
    gpu, clock = find_gpu(kernel.device_name), kernel.metrics.get("sm_frequency")
    part, _ = binding_pipe(kernel)
    base = gpu.base_clock_hz if gpu else 0.0
    is_by_power = busiest_part(kernel) == TENSOR
    if not clock or not part or is_by_power or clock >= _CLOCK * base or (kernel.launch_ns or 0.0) < SHORT_NS:
        return None
    return Remark(
        100 * (1 - clock / base), "low-clock", f"SM clock {clock / 1e6:.0f} of at least {base / 1e6:.0f} MHz",
        f"ran at an SM clock of {clock / 1e6:.0f} MHz, below the chip's base clock of {base / 1e6:.0f} MHz",
    )  # fmt: skip


_TIERS: Final[tuple[tuple[Callable[[KernelRow], Remark | None], ...], ...]] = (
    _WASTE, (matrix_product_remark,), (repeated_reads_remark, scattered_atomics_remark), (flushed_cache_remark,),
    (latency_remark, _low_clock_remark),
)  # fmt: skip


def _at_roof_remark(kernel: KernelRow) -> Remark | None:
    """That a part is at its roof, and that what it carries is useful; None where that was not measured."""
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    busy = parts.get(part, 0.0)
    through = parts.get(L2, 0.0) if part == DRAM else busy  # what DRAM moves passes through L2
    if max(busy, through) < (SURELY_PCT if part == SHARED else ROOF_PCT):
        return None
    if kernel.memory_pct is None or kernel.sm_pct is None:
        return None
    used = _useful_work_text(kernel, part)
    cause = _HEALTHY.get(part) or (_OF_PIPES if part not in MEMORY_PARTS else None)
    if used is None or cause is None:
        return None
    state = f"{part} {busy:.0f} %{f' and L2 {through:.0f} %' if busy < ROOF_PCT else ''}, {used}"
    occupancy = kernel.theoretical_occupancy_pct
    if occupancy is not None and occupancy <= FAR_PCT:
        state += f"; its occupancy of {occupancy:.0f} % is enough"
    if part != FP64 and part not in MEMORY_PARTS and parts.get(FP64, 0.0) >= FAR_PCT:
        state += f"; its FP64 pipe is {parts[FP64]:.0f} % busy: where FP32 is accurate enough, it takes less"
    if part == DRAM and (moved := _moved_text(kernel)):  # counters do not tell how large its data are
        state += f". A launch moves {moved}"
    what = used if "predicated" in used or part == SHARED else f"nothing wasted: {used}"
    return Remark(0.0, cause, what, f"is at its roof: {state}")


def _moved_text(kernel: KernelRow) -> str:
    """How much a launch moves from and to DRAM; by DRAM's share of its data sheet's rate where it was not counted."""
    if moved := dram_bytes_of_launch(kernel):
        return f"{moved / 1e9:.3g} GB"
    gpu, busy_pct, ns = find_gpu(kernel.device_name), kernel.dram_pct, kernel.launch_ns
    return f"some {busy_pct / 100 * gpu.dram_bytes_per_s * ns / 1e18:.2g} GB" if gpu and busy_pct and ns else ""


def _useful_work_text(kernel: KernelRow, part: str) -> str | None:
    """What of a part's work is useful, in a few words; None where it was not measured, or not all is."""
    metrics = kernel.metrics
    if part in {DRAM, L2}:
        accesses = global_accesses(kernel)
        if not accesses:
            return None
        scattered = [access for access in accesses if access.is_scattered]
        if scattered and (any(access.sectors is None for access in accesses) or dram_bytes_of_launch(kernel) is None):
            return None
        share = useful_shares_by_level(kernel, accesses)[part] if scattered else 1.0
        return "all bytes used" if share >= SURELY_PCT / 100 else None
    if part == SHARED:
        added, wavefronts = metrics.get("shared_bank_conflicts"), metrics.get("shared_wavefronts", 0.0)
        is_useful = added is not None and added <= CONFLICTS * wavefronts
        return "no bank conflicts" if is_useful and not is_shared_memory_busy_with_barriers(kernel) else None
    if part == TENSOR:  # a product is of a whole warp, whatever the threads do that bring its operands
        return "by matrix products"
    lanes = metrics.get("warp_execution_efficiency")
    if not _are_operations_known(kernel, part):
        return None
    if lanes is None or lanes < SURELY_PCT:
        return None
    off = 100 - metrics.get("warp_nonpred_execution_efficiency", lanes) / lanes * 100
    return "all threads active" + (f", {off:.0f} % of them predicated off" if off >= _PREDICATED_PCT else "")


def _are_operations_known(kernel: KernelRow, part: str) -> bool:
    """Whether it is known which instructions keep a pipe busy.

    Integer arithmetic and comparisons keep the ALU pipe busy where the XU pipe, which converts and divides, is idle.
    """
    xu = kernel.metrics.get("special_fu_utilization")
    return (part == ALU and xu is not None and xu < _IDLE_XU_PCT) or kernel.metrics.keys() >= _OPERATIONS


def _ncu_rule_remark(kernel: KernelRow) -> Remark | None:
    """The best rule of Nsight Compute itself, where a report has no counters that nsw's own rules need."""
    advice = kernel.advice
    if advice is None or not advice.message or {"gld_efficiency", "gst_efficiency"} & kernel.metrics.keys():
        return None
    if advice.speedup_type not in {None, "global"}:  # a local one is no share of the kernel's time
        return None
    if "Occupancy" in advice.rule and kernel.metrics.get("waves_per_sm", 0.0) < 1:  # all blocks may have room already
        return None
    cause = next((cause for words, cause in _OF_NCU if words in advice.message), "ncu-rule")
    won = min(advice.speedup_pct, _NCU_PCT)
    if cause not in _OF_WASTE:
        won = min(won, 100 - 100 * busiest_part_pct(kernel) / REACHED_PCT)
    if won < LEAST_PCT:
        return None
    each = "" if kernel.launch_ns is None else f"takes {duration(kernel.launch_ns)}; "
    return Remark(
        won, cause, f"ncu's rule {advice.rule}: at most {won:.0f} %",
        f"{each}ncu's rule {advice.rule} says: {rule_sentence(advice)}",
    )  # fmt: skip


def is_rule_on_limit(advice: Advice) -> bool:
    """Whether a rule names what limits the kernel."""
    return _NAMES_LIMIT.search(advice.message) is not None


def rule_sentence(advice: Advice) -> str:
    """The sentence of a rule that names what limits the kernel, else one that has a figure of it, else the first."""
    sentences = advice.message.split(". ")
    telling = (text for pattern in (_NAMES_LIMIT, _TELLS) for text in sentences if pattern.search(text))
    return next(telling, sentences[0]).rstrip(".")


def _is_worth_reporting(remark: Remark, share: float, least_pct: float = _WORTH_PCT) -> bool:
    """Whether a remark on a kernel with this share (%) of the kernels' time is for a person."""
    cause = causes()[remark.cause]
    if cause.group == "healthy":
        return share >= _LARGE_PCT
    return share >= _MUCH_PCT if remark.cause == "flushed-caches" else remark.won * share >= 100 * least_pct


def reportable_remarks(kernels: Sequence[KernelRow]) -> list[tuple[KernelRow, float, Remark]]:
    """The kernels of which something is worth a remark, each with its share (%) of the time that shares are of."""
    return [entry for group in _remarks_by_cause(kernels) for entry in group]


def _remarks_to_group(kernels: Sequence[KernelRow]) -> Iterator[tuple[KernelRow, float, Remark]]:
    start, base = kernels_of_start(kernels), kernel_share_base(kernels)
    convolutions = {kernel.name for kernel in kernels if _CONVOLVES.search(kernel.name)}
    may_use_tf32 = any("tf32" in name for name in convolutions)  # and cuDNN chose FP32
    for kernel in kernels:
        share = base.share(kernel.share_pct) if len(kernels) > 1 else 100.0
        if share is None or kernel.name in start:
            continue  # without shares nobody knows which kernel matters
        for remark in _kernel_remarks(kernel):
            is_chosen = remark.cause == "tensor-cores-unused" and may_use_tf32 and kernel.name in convolutions
            if _is_worth_reporting(remark, share, _PART_PCT) and not is_chosen:
                yield kernel, share, remark


def follow_up_metrics_by_kernel(case: CaseSummary) -> dict[str, tuple[str, ...]]:
    """The kernels of which a second stage would tell more, each with what it measures: metrics, section:NAME."""
    asked = {kernel.name: causes()[remark.cause].asks for kernel, _, remark in reportable_remarks(case.kernels)}
    return {name: metrics for name, metrics in asked.items() if metrics}


def _kernel_hits_by_cause(case: CaseSummary, _: Context) -> list[Hit]:
    several = len(case.kernels) > 1
    return [_remarks_to_hit(case, group, several=several) for group in _remarks_by_cause(case.kernels)]


def largest_remarks(kernels: Sequence[KernelRow]) -> list[tuple[KernelRow, float, Remark]]:
    """Of each cause the kernel of which most could be won, with its share (%) of the kernels' time."""
    return [group[0] for group in _remarks_by_cause(kernels)]


def _remarks_by_cause(kernels: Sequence[KernelRow]) -> list[list[tuple[KernelRow, float, Remark]]]:
    """The kernels of each cause and remedy: first that of which most could be won, then the others by their shares.

    Of healthy kernels the first alone, whose figures its sentence has.
    """
    groups: dict[tuple[str, bool], list[tuple[KernelRow, float, Remark]]] = {}
    for kernel, share, remark in _remarks_to_group(kernels):
        cause = _CURED_ALIKE.get(remark.cause, remark.cause)
        groups.setdefault((cause, _is_library_kernel(kernel)), []).append((kernel, share, remark))
    return [ordered for group in groups.values() if (ordered := _order_group(group))]


def _order_group(group: Sequence[tuple[KernelRow, float, Remark]]) -> list[tuple[KernelRow, float, Remark]]:
    """First the kernel of which most could be won; empty: the cure of all is not worth a remark."""
    first = max(group, key=lambda entry: (entry[2].won * entry[1], entry[1]))
    if causes()[first[2].cause].group == "healthy":
        return [first]
    won = sum(remark.won * share for _, share, remark in group)
    if won < 100 * _WORTH_PCT and not any(_is_worth_reporting(remark, share) for _, share, remark in group):
        return []
    return [first, *(entry for entry in sorted(group, key=lambda entry: -entry[1]) if entry is not first)]


class _Watched(dict[str, float]):
    """Metrics that remember which of them were looked at."""

    def __init__(self, metrics: Mapping[str, float]) -> None:
        super().__init__(metrics)
        self.seen: dict[str, float] = {}

    def __getitem__(self, name: str) -> float:
        self.seen[name] = super().__getitem__(name)
        return self.seen[name]

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


def metrics_behind(kernel: KernelRow, remark: Remark) -> dict[str, float]:
    """The metrics that a remark on a kernel follows from: all that its rule looked at."""
    for look in (*(look for tier in _TIERS for look in tier), *_LIBRARY_LOOKS, _at_roof_remark):
        metrics = _Watched(kernel.metrics)
        again = look(replace(kernel, metrics=metrics))
        if again is not None and again.fact == remark.fact:
            return metrics.seen
    return {}


def _remedy_text(cause: str, *, is_librarys: bool) -> str:
    return "larger or fused calls" if is_librarys and cause in _OF_CALLS else causes()[cause].do


def share_of_time_with_kernels(idle: IdleGpu) -> float:
    """For how much of the time a kernel is at work, 0 to 1; the GPU, where copies are not told apart.

    Args:
        idle: How the GPU is used.
    """
    computing_ns, span_ns = idle.use.get("computing_ns", 0.0), idle.use.get("span_ns", 0.0)
    return min(computing_ns / span_ns if computing_ns and span_ns else 1.0, idle.busy_pct / 100)


def _second_waste_text(kernel: KernelRow, remark: Remark) -> str:
    """What to look at after memory that is wasted: threads that are off, or a small grid; empty: neither."""
    if remark.cause not in _OF_MEMORY:
        return ""
    lanes, waves = kernel.metrics.get("warp_execution_efficiency", 100.0), kernel.metrics.get("waves_per_sm", 1.0)
    wastes = [f"{lanes * WARP / 100:.1f} of the 32 threads of a warp are active"] if lanes < 100 * HALF else []
    wastes += [f"its blocks fill {100 * waves:.0f} % of the GPU"] if waves < HALF else []
    return f"; after that: {', and '.join(wastes)}" if wastes else ""


def _sorter_text(kernel: KernelRow, kernels: Sequence[KernelRow]) -> str:
    """Which operator a library's sort belongs to, by the kernels beside it; empty: no sort, or not known."""
    if not _SORT.search(kernel.name):
        return ""
    sorts = sum(other.launches for other in kernels if _EACH_SORT.search(other.name))
    for name, text in _SORTERS:
        launches = sum(other.launches for other in kernels if name.search(other.name))
        if launches and launches <= sorts <= launches + 1:  # counters may end between the two
            return f", {text},"
    return ""


def _remarks_to_hit(case: CaseSummary, group: Sequence[tuple[KernelRow, float, Remark]], *, several: bool) -> Hit:
    """What is wrong with the first kernel of a group, which names the others; its gain is that of all."""
    (kernel, share, remark), cause = group[0], causes()[group[0][2].cause]
    others = [f"{kernel.short_name} ({share:.0f} %)" for kernel, share, _ in group[1:]]
    if len(others) > 1 and max(map(len, others)) > _LONG_NAME:  # which tell nobody apart
        others = [f"{len(others)} others ({sum(share for _, share, _ in group[1:]):.0f} % together)"]
    also = f"; likewise {first_names(others, _NAMED)}" if others else ""
    line = kernel.source.worst.get(cause.memory) if kernel.source else None
    access = "" if line is None else f"; worst access: {line}"
    base = kernel_share_base(case.kernels).name
    share_text = f" ({share:.0f} % of {base})" if several else ""
    subject = f"{kernel.short_name}{share_text}{_sorter_text(kernel, case.kernels)}"
    after = _second_waste_text(kernel, remark) if share >= _MOST_PCT else ""
    is_librarys = _is_library_kernel(kernel)
    framework = detect_framework(case)
    if is_librarys:
        is_unfused = remark.cause in _OF_CALLS and _UNFUSED.search(kernel.name)
        framework = framework if framework in _PYTHON_FRAMEWORKS and not is_unfused else "library"
    else:  # Triton's kernels have no parameters in their names
        framework = "triton" if framework in _PYTHON_FRAMEWORKS and "(" not in kernel.name else "cuda"
    at_work, gain_of = 1.0, ALL_TIME if base == ALL_KERNELS else base
    if case.idle_gpu is not None:
        at_work = share_of_time_with_kernels(case.idle_gpu)
    elif case.gpu_work and case.kernel_ns and case.gpu_ns and base == ALL_KERNELS:  # whose copies are beside them
        at_work, gain_of = case.kernel_ns / case.gpu_ns, "GPU time"
    return Hit(
        remark.cause, case.id, at_work * sum(remark.won * share for _, share, remark in group) / 100, remark.what,
        _remedy_text(remark.cause, is_librarys=is_librarys),
        f"{subject} {remark.fact}{access}{after}{also}", cause.remedy(framework), remark.what,
        "kernels", costs_accuracy=remark.what.startswith("FP32 multiply-adds"),
        gain_of=gain_of,
    )  # fmt: skip


class Lacking(NamedTuple):
    """What is not known of a kernel, and the names of ncu's metrics that tell it."""

    subject: str
    metrics: tuple[str, ...]
    sections: tuple[str, ...] = ()  # of ncu, which tell it in place of the metrics

    @property
    def ncu_options(self) -> str:
        """The options by which ncu measures it."""
        by_section = " ".join(f"--section {name}" for name in self.sections)
        return by_section or f"--metrics {','.join(self.metrics)}"


def missing_counters_of_largest_kernel(case: CaseSummary) -> Lacking | None:
    """What was not measured of the kernel that takes most, so that nothing can be said of it; None: something is."""
    kernel = next(iter(case.kernels), None)
    if kernel is None or _kernel_remarks(kernel) or _is_library_kernel(kernel):
        return None
    if binding_part(kernel) == LATENCY and not kernel.stalls:
        if (kernel.launch_ns or SHORT_NS) < SHORT_NS or few_warps_text(kernel):
            return None
        counted = "active_warps_per_scheduler" in kernel.metrics
        sections = ("WarpStateStats",) if counted else ("WarpStateStats", "SchedulerStats")
        return Lacking(f"what the warps of {kernel.short_name} wait for", (), sections)
    if (part := binding_part(kernel)) is None:
        is_partly_known = kernel.memory_pct is not None or kernel.sm_pct is not None
        names = (*_OF_PARTS, *(_OF_SHARED if "shared_bank_conflicts" in kernel.metrics else ()))
        return _missing_counters(kernel, f"what binds {kernel.short_name}", names) if is_partly_known else None
    if part == LATENCY:
        subject = "whether {} waits for atomic operations"
        lacks = busiest_part_pct(kernel) < FAR_PCT and not COUNTED & kernel.metrics.keys()
        names = _OF_WAITS
    elif part in MEMORY_PARTS:
        lacks = not global_accesses(kernel) if part != SHARED else "shared_bank_conflicts" not in kernel.metrics
        subject = "whether bank conflicts slow {}" if part == SHARED else "how many of the bytes that {} moves are used"
        names = _OF_SHARED if part == SHARED else _OF_GLOBAL
    else:
        subject = f"which instructions keep the {'SMs' if part == COMPUTING else part} busy in {{}}"
        lacks = not _are_operations_known(kernel, part) or "warp_execution_efficiency" not in kernel.metrics
        names = (*_PIPES, *_OF_PIPE) if part == COMPUTING else _OF_PIPE
    if not lacks:
        return None
    return _missing_counters(kernel, subject.format(kernel.short_name), names)


def _missing_counters(kernel: KernelRow, subject: str, names: Sequence[str]) -> Lacking | None:
    """What to ask ncu for beside what the report has; None: it has all."""
    lacking_names = [name for name in names if name not in kernel.metrics]
    metrics = ncu_metric_request(lacking_names, find_chip(kernel.device_name)).metrics
    return Lacking(subject, metrics) if metrics else None


_OF_WAITS: Final[tuple[str, ...]] = (
    "stall_memory_dependency", "stall_short_scoreboard", "stall_wait", "stall_barrier", "stall_inst_fetch",
    "l2_atomic_transactions",
)  # fmt: skip
_OF_GLOBAL: Final = ("gld_efficiency", "gst_efficiency")
_OF_SHARED: Final = ("shared_bank_conflicts", "shared_wavefronts")
_OF_PIPE: Final = ("warp_execution_efficiency", "inst_integer", "inst_bit_convert", "flop_count_sp_fma")
_PIPES: Final = ("ldst_fu_utilization", "single_precision_fu_utilization", "alu_pipe_utilization")
_OF_PARTS: Final = ("sm_throughput", "memory_throughput", "l1_throughput", "l2_throughput", "dram_utilization")
_OPERATIONS: Final = frozenset({"inst_integer", "inst_bit_convert", "special_fu_utilization", "flop_count_sp_fma"})

RULES: Final[Mapping[str, Callable[[CaseSummary, Context], list[Hit]]]] = {"kernels": _kernel_hits_by_cause}


def kernel_fault(kernel: KernelRow, share: float | None) -> Remark | None:
    """The first fault of a kernel with this share (%) of the kernels' time that is worth a remark."""
    return next((remark for remark in _kernel_remarks(kernel) if _is_worth_reporting(remark, share or 0.0)), None)


def is_waste(remark: Remark) -> bool:
    """Whether a remark names waste, rather than too little work."""
    return remark.cause not in _LATENCY_CAUSES and not remark.cause.startswith("occupancy-")


def kernel_advice_text(kernel: KernelRow, share: float | None, fault: Remark | None = None) -> str:
    """What to try with a kernel, in a few words; empty where little could be won, or too little was measured.

    Args:
        kernel: The kernel.
        share: Its share of the kernels' time, %.
        fault: What is said of it already, with kernels of the same cure.
    """
    fault = fault or kernel_fault(kernel, share)
    return "" if fault is None else _remedy_text(fault.cause, is_librarys=_is_library_kernel(kernel))
