"""Rules over the kernels of a timeline: arithmetic without tensor cores, layouts, casts, grids, streams."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.kernel_classes import OTHER_KERNELS, cached_pattern_search, classify_gpu_operation
from nsw.analysis.kernels import ALL_KERNELS
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import is_library_kernel_name
from nsw.analysis.rules.hits import (
    AMPERE,
    MOSTLY,
    MOSTLY_PCT,
    OF_GPU_TIME,
    WORTH_PCT,
    Context,
    Hit,
    compute_capability,
    detect_framework,
    iteration_count,
    make_hit,
)
from nsw.analysis.rules.idle_causes import SHORT
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct
from nsw.quantities import duration
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary, Share
    from nsw.analysis.spent import Spent

__all__ = ["RULES", "counters_command_text"]

_MANY: Final = 20  # operations of an iteration
_HARDLY: Final = 0.05  # of the kernels' time that is beside other kernels
_OFTEN_BETWEEN: Final = 0.1  # times a kernel that work of the default stream comes behind another stream's
_LONGER_NS: Final = 8e3  # of a kernel, which its launch does not decide
_BINDS: Final = 0.7  # of the time: what kernels take that bind it
_OWN, _LIBRARYS = 0.8, 0.25  # of the SMs, that have a block: a library chooses its grids
_FEW_BLOCKS: Final = 32  # of a kernel that fills a part of any GPU
_EMPTY: Final = 0.75  # of the GPU, that a kernel of 32 blocks leaves empty at least
_SEVERAL: Final = 4  # kernels of an iteration, of which some may be independent
_FP32_PCT: Final = 20.0  # of GPU time
_TENSOR_GAIN: Final = 0.3  # of that time: what whole programs win by TF32; it costs accuracy
_LARGE_GAIN, _LARGE_NS = 0.7, 300e3  # the same of large problems, by the mean of their kernels
_LAYOUT_PCT: Final = 8.0  # of GPU time
_CONVOLVES_PCT: Final = 10.0  # of GPU time: a network of convolutions, whose layout is one setting
_FILLED: Final = 0.03  # of the time: zeros for a gradient of most parameters, over which Adam passes 18 times unfused
_OF_STEP: Final = 7 / 4  # kernels of Adam's update of a parameter, of which four have a name of their own
_OPTIMIZER_PCT, _STEP_PCT, _SCORES_PCT, _CAST_PCT, _TABLE_PCT = 20.0, 10.0, 20.0, 30.0, 40.0
_COUNTED_PCT: Final = 10.0  # of the GPU's work, from which a kernel's counters are worth a run
_SECOND_PCT: Final = 30.0  # likewise, from which it is measured beside a larger one
_LAUNCHES_SHOWN: Final = 10  # of a kernel, that ncu is told to profile
_IDLE_PCT: Final = 40.0  # above it less GPU work wins nothing
_LEAST_BUSY_PCT: Final = 25.0  # below it GPU work is not worth a sentence beside what keeps the GPU idle
_SHORT_PCT: Final = 50.0  # of the kernels
_ELEMENTWISE_PCT: Final = 25.0  # of GPU time
_UNFUSED_PCT: Final = 40.0  # of GPU time; networks of convolutions have a quarter to a third, and are called busy
_CHAIN: Final = 6  # elementwise operations, of which some follow each other
_MOST_OF_CHAIN: Final = 0.6  # of their time in one kernel, which has no others to be fused with
_FUSED_PASSES: Final = 0.5  # of their time: what fusing saves
# but copies, and the steps of an optimizer
_ELEMENTWISE: Final = re.compile(
    r"^(?!.*(?:direct_copy|float16_copy|FillFunctor|addcmul|addcdiv|lerp|multi_tensor)).*at::native::.*"
    r"(?:elementwise_kernel|masked_scale|fused_dropout)"
)
_LONG_MEAN_NS: Final = 20e3  # of elementwise kernels, beside which a launch is little
_THREADS: Final = 1024  # that one SM of any GPU holds
_MUCH_PCT: Final = 25.0  # of GPU time
_MUCH_OF_TIME_PCT: Final = 15.0
_LONG_NS: Final = 20e3  # of a launch, from which more threads would have work

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
_FUSE_STEP: Final = "fused=True of torch.optim, which passes over the parameters once."
_PASSES: Final = 3  # kernels over all parameters, from which they are an optimizer's step and no norm of gradients
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
_NORMALISES: Final = re.compile(r"bn_fw_inf|batch_norm_(?:transform_input|elementwise)")
_TRAINS: Final = re.compile(r"bn_(?:fw_tr|bw)|batch_norm_(?:collect_stat|backward)|dgrad|wgrad")
_VECTORS_PCT: Final = 30.0  # of GPU time
_SPARSE_PRODUCT: Final = re.compile(r"csrmm|csrmv|spmm|spmv", re.IGNORECASE)
_COALESCES: Final = re.compile(r"coalesceValues|coo_?to_?csr|coo2csr", re.IGNORECASE)
_GATHERS: Final = re.compile(r"at::native::(?:vectorized_gather|index(?:Select|_elementwise_kernel)|gather)")
_ADDS_BY_INDEX: Final = re.compile(
    r"at::native::(?:indexFunc\w+.*ReduceAdd|_?scatter_gather_elementwise_kernel.*ReduceAdd|\w*segment_reduce)"
)
_GATHERED_PCT, _MESSAGES_PCT, _MESSAGES_GAIN = 10.0, 40.0, 0.75
_CAST: Final = re.compile(
    rf"^(?!.*{_STRIDED}).*(?:float16_copy|LoadWithCast|direct_copy_kernel|to_copy)", re.IGNORECASE
)
_HALF: Final = re.compile(r"half|bfloat|f16|bf16|_hss|_tss|hgemm", re.IGNORECASE)
_EMBEDDING: Final = re.compile(r"embedding|compute_grad_weight|sum_and_scatter", re.IGNORECASE)
_TABLE_GRADIENT: Final = re.compile(r"embedding_backward|compute_grad_weight|embedding_dense_backward", re.IGNORECASE)
_NEARLY_EACH: Final = 0.8  # of the tables, for which a kernel is launched at least
_TABLES: Final = 4  # whose sparse steps cost more launches than they save work
_FILL: Final = re.compile(r"FillFunctor")
_TABLE_WORK: Final = re.compile(
    r"embedding|FillFunctor|multi_tensor_apply|addcmul|addcdiv|lerp|sqrt_kernel|CUDAFunctor_add"
)
_EACH: Final = 0.1  # of the operations of an iteration that has few
_FUSED_LAUNCHES: Final = 0.9  # of such kernels' launches: what a cure saves
# what of their time it saves
_GAINS: Final = {
    "layout-conversion": 1.0, "unfused-optimizer": 0.6, "unfused-attention": 0.8, "autocast-weight-casts": 0.9,
    "dense-embedding-gradient": 0.9, "inference-normalisation": 1.0,
}  # fmt: skip


# kernels that a framework launches within the operator that needs them
_WITHIN_OPERATORS: Final = frozenset({"autocast-weight-casts", "layout-conversion"})


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
    if saved < WORTH_PCT:
        return None
    return make_hit(
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
    if use["kernel_ns"] > (1 + _HARDLY) * use["computing_ns"] or small < MOSTLY * use["kernel_ns"]:
        return None
    if use["kernel_ns"] / kernels < _LONGER_NS or use["computing_ns"] < _BINDS * idle.med_ns:  # launches decide
        return None
    if _are_small_kernels_apart(case):  # which depend on what is between them
        return None
    saved = 100 * small * _EMPTY / idle.med_ns
    if saved < WORTH_PCT:
        return None
    together = "one stream" if streams <= 1 else f"{streams:.0f} streams, which wait for one another (events)"
    return make_hit(
        case, "kernels-not-concurrent", saved, "small kernels one after the other",
        f"{100 * small / idle.med_ns:.0f} % of {'an iteration' if idle.is_iteration else 'the time'} is kernels of"
        f" {_small_grid_text(case, use)}, each of which fills a part of the GPU, one after the other in"
        f" {together}; where they are independent they fit beside each other", f"{saved:.0f} %", "gpu_use",
    )  # fmt: skip


def _are_small_kernels_apart(case: CaseSummary) -> bool:
    """Whether most of the time of kernels of few blocks is in such that one of more blocks follows."""
    small = [work for work in case.gpu_work if 0 < case.blocks.get(work.name, 0) <= _FEW_BLOCKS]
    followed = {work.name: case.blocks.get(case.successors.get(work.name, ""), 0) > _FEW_BLOCKS for work in small}
    total_ns = sum(work.total_ns or 0.0 for work in small)
    return sum(work.total_ns or 0.0 for work in small if followed[work.name]) > MOSTLY * total_ns


def _small_grid_text(case: CaseSummary, use: Mapping[str, float]) -> str:
    """How many blocks small kernels have, beside the SMs of the GPU; their mean where all kernels are small."""
    kernels = use["kernels"] - use.get("collectives", 0.0)
    is_mean_of_small = use.get("blocks") and use["small_ns"] >= use["kernel_ns"]
    blocks = f"{use['blocks'] / kernels:.0f} blocks on average" if is_mean_of_small else "at most 32 blocks"
    return blocks + (f" (the GPU has {case.sm_count:.0f} SMs)" if case.sm_count else "")


def _few_threads_hit(case: CaseSummary, _: Context) -> Hit | None:
    """A kernel that takes much of the GPU's time with fewer threads than one SM holds."""
    is_split = case.idle_gpu is not None  # then a rule over blocks looks at what runs beside
    few = [
        work for work in case.gpu_work
        if work.share_pct >= _MUCH_PCT and (work.total_ns or 0.0) >= _LONG_NS * (work.calls or 1.0)
        and (case.threads.get(work.name, _THREADS) < _THREADS or (case.blocks.get(work.name) == 1 and not is_split))
    ]  # fmt: skip
    if not few:
        return None
    kernel, cause = few[0], causes()["too-few-blocks"]
    threads, is_librarys = case.threads.get(kernel.name), is_library_kernel_name(kernel.name)
    count = "1 block" if threads is None else "1 thread" if threads == 1 else f"{threads:,.0f} threads"
    return Hit(
        cause.id, case.id, kernel.share_pct, f"{kernel.short_name} runs on {count}",
        "larger or fused calls" if is_librarys else "launch more threads",
        f"{kernel.share_pct:.0f} % of GPU time is {kernel.short_name}, which is launched with {count} in all"
        + (": one SM has work, and the others none" if case.blocks.get(kernel.name) == 1
           else ", of the 2,048 that one SM holds"),
        cause.remedy("library") if is_librarys
        else "Give each element of the work its own thread: blocks of 128 or 256 threads, at least one an SM.",
        count, "hotspots",
    )  # fmt: skip


def _few_blocks_hit(case: CaseSummary, context: Context) -> Hit | None:
    """A kernel that takes much of the time, with none beside it, and has fewer blocks than the GPU has SMs.

    Of a library's, which chooses its grids, for a quarter of them.
    """
    use, busy = case.idle_gpu.use if case.idle_gpu else {}, least_gpu_busy_pct(case)
    if not case.sm_count or busy is None or not use.get("computing_ns"):
        return None
    if use["kernel_ns"] > (1 + _HARDLY) * use["computing_ns"] or any(kernel.metrics for kernel in case.kernels):
        return None
    most = {name: case.sm_count * (_LIBRARYS if is_library_kernel_name(name) else _OWN) for name in case.blocks}
    few = [
        work for work in case.gpu_work
        if 0 < case.blocks.get(work.name, 0) < most.get(work.name, 0)
        and work.share_pct * busy / 100 >= WORTH_PCT and (work.total_ns or 0.0) >= _LONG_NS * (work.calls or 1.0)
    ]  # fmt: skip
    share = sum(work.share_pct for work in few)
    others = (_few_threads_hit, _serial_small_kernel_hit, _serial_stream_hit)
    if share * busy / 100 < _MUCH_OF_TIME_PCT or any(rule(case, context) for rule in others):
        return None
    cause, blocks = causes()["too-few-blocks"], max(case.blocks[work.name] for work in few)
    # a block is half of what an SM holds at most
    gain = sum(work.share_pct * busy / 100 * (1 - case.blocks[work.name] / case.sm_count / 2) for work in few)
    if gain < WORTH_PCT:
        return None
    names, count = [work.short_name for work in few], plural(round(blocks), "block")
    listed = " and ".join(names) if len(names) == 2 else first_names(names, 2)
    have, at_most = ("have", "at most ") if len(few) > 1 else ("has", "")
    return Hit(
        cause.id, case.id, gain, f"{listed} {have} {at_most}{count}", cause.do,
        f"{share:.0f} % of GPU time is {listed}, which {have} {at_most}{count} for {case.sm_count:.0f} SMs and"
        f" run{'' if len(few) > 1 else 's'} with no other kernel beside {'them' if len(few) > 1 else 'it'}",
        cause.remedy("library" if is_library_kernel_name(few[0].name) else "any"), f"{blocks:.0f}", "hotspots",
    )  # fmt: skip


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
    if spent is None or not spent.gpu_ns or compute_capability(case) < AMPERE:
        return None
    busy = 100.0 if busy is None else busy
    is_idle = 100 - busy >= _IDLE_PCT
    share = 100 * spent.fp32_ns / spent.gpu_ns
    if share < (MOSTLY_PCT if is_idle else _FP32_PCT) or busy < _LEAST_BUSY_PCT:
        return None
    class_names = " and ".join(part.name for part in spent.parts if part.name in {"GEMM", "convolution"})
    arithmetic = [part for part in spent.parts if part.name in {"GEMM", "convolution"}]
    large = sum(part.ns for part in arithmetic) >= _LARGE_NS * sum(part.operations for part in arithmetic)
    when = "Once the GPU is less idle, and if" if is_idle else "If"
    gain = (_LARGE_GAIN if large else _TENSOR_GAIN) * share * busy / 100
    return Hit(
        "tensor-cores-unused", case.id, _gain_beside_host(case, gain) if is_idle else gain,
        f"{share:.0f} % FP32 {class_names}, no tensor cores", "TF32 or bf16, if accurate enough",
        f"{share:.0f} % of GPU time is {class_names} in FP32, without tensor cores",
        f"{when} the accuracy allows it, try TF32 (torch.set_float32_matmul_precision('high'), and for convolutions"
        " torch.backends.cudnn.allow_tf32) or bf16.", f"{share:.0f} %", "hotspots", OF_GPU_TIME, costs_accuracy=True,
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


def _optimizer_hit(case: CaseSummary, context: Context) -> Hit | None:
    """An optimizer of a kernel a parameter and operation, or one of several passes over all parameters."""
    if _dense_embedding_gradient_hit(case, context) is not None:  # which has the step in its time
        return None
    hit = _kernel_pattern_hit(
        case,
        "unfused-optimizer",
        _UNFUSED_STEP,
        _STEP_PCT,
        "is an optimizer's step, parameter by parameter",
        least=_MANY,
        of_each=_OF_STEP,
        may_be_setup=False,
    )
    if hit is not None:
        return hit
    hit = _kernel_pattern_hit(
        case, "unfused-optimizer", _FOREACH, _OPTIMIZER_PCT, "is the optimizer's step", without=_FUSED
    )
    return hit and replace(hit, advice=_FUSE_STEP)


def _counted_optimizer_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Passes of an optimizer over all parameters in a report of counters alone, which may be a part of an iteration."""
    if case.spent is not None or any(_FUSED.search(kernel.name) for kernel in case.kernels):
        return None

    def share_of(pattern: re.Pattern[str]) -> float:
        return sum(kernel.share_pct or 0.0 for kernel in case.kernels if pattern.search(kernel.name))

    passes = sum(_FOREACH.search(kernel.name) is not None for kernel in case.kernels)
    if passes < _PASSES or share_of(_FOREACH) < _OPTIMIZER_PCT:
        return None
    share, of_table = share_of(_FOREACH), share_of(_TABLE_WORK)
    if share_of(_TABLE_GRADIENT) and share_of(_FILL) >= _FILLED * of_table and of_table >= _TABLE_PCT:
        what = f"{of_table:.0f} % the dense gradient of an embedding's table and its step"
        fact = f"{of_table:.0f} % of {ALL_KERNELS} is {what.partition(' % ')[2]}, probably of few rows that are used"
        return make_hit(case, "dense-embedding-gradient", _GAINS["dense-embedding-gradient"] * of_table, what, fact,
                        f"{of_table:.0f} %", "kernels")  # fmt: skip
    hit = make_hit(
        case, "unfused-optimizer", _GAINS["unfused-optimizer"] * share, f"{share:.0f} % an unfused optimizer's step",
        f"{share:.0f} % of {ALL_KERNELS} is the optimizer's step, in {passes} kernels that each pass over the"
        " parameters", f"{share:.0f} %", "kernels",
    )  # fmt: skip
    return replace(hit, advice=_FUSE_STEP)


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
        " stored between two products", needs=_SOFTMAX, one_each=True,
    )  # fmt: skip


def _own_softmax_hit(case: CaseSummary) -> Hit | None:
    """A product, a scaling and a kernel of the user's, one after the other, of which the product takes least.

    A layer of a network has such an order too, but its product takes longer than what is done with its result.
    """
    if not case.successors:
        return None
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
    if not worked or filled < _FILLED * worked:
        return None
    hit = _kernel_pattern_hit(
        case, "dense-embedding-gradient", _TABLE_WORK, _TABLE_PCT,
        "is the dense gradient of an embedding's table and its step, probably of few rows that are used",
        needs=_EMBEDDING,
    )  # fmt: skip
    gradients = (share.calls or 0.0 for share in case.gpu_work if _TABLE_GRADIENT.search(share.name))
    tables = round(max(gradients, default=0.0) / (iteration_count(case) or 1))
    if hit is None or tables < _TABLES:
        return hit
    advice = (
        f"Hold the {tables} tables in one, with an offset added to the ids of each: one lookup, one gradient, and then"
        " Embedding(sparse=True) with SparseAdam or SGD, which would take many launches for each table apart."
    )
    idle, work = case.idle_gpu, case.gpu_work
    if idle is not None:  # sorts, look-ups and sums of each table, of which one table has one each
        calls = sum(share.calls or 0.0 for share in work if share.kind == "kernel")
        count = iteration_count(case)
        merged = sum(
            share.calls or 0.0 for share in work
            if _is_launched_for_each(share, tables, count) and not _TABLE_WORK.search(share.name)  # which counts
        )  # fmt: skip
        merged *= 1 - 1 / tables
        hit = replace(
            hit, gain_pct=hit.gain_pct + 100 * merged / calls * idle.in_gaps("launch", lengths=SHORT) / idle.med_ns
        )
    headline = f"{tables} embedding tables, each with launches and gradients of its own"
    return replace(hit, what=headline, share_of="", do="one table, sparse gradients", advice=advice)


def _is_launched_for_each(share: Share, tables: int, iterations: int) -> bool:
    """Whether a kernel is launched about once an iteration for each of so many tables."""
    calls = (share.calls or 0.0) / (iterations or 1)
    return share.kind == "kernel" and tables * _NEARLY_EACH <= calls <= tables / _NEARLY_EACH


def _gather_scatter_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Rows that are gathered by index, and rows that are added by index, as of a graph's messages."""
    work = _gpu_work_with_share(case)
    total = sum(share.total_ns or 0.0 for share in case.gpu_work)
    if work is None or not total:
        return None
    gathered, added = (
        100 * sum(share.total_ns or 0.0 for share in case.gpu_work if matches(share.name)) / total
        for matches in map(cached_pattern_search, (_GATHERS, _ADDS_BY_INDEX))
    )
    share = gathered + added
    if min(gathered, added) < _GATHERED_PCT or share < _MESSAGES_PCT:
        return None
    return make_hit(
        case, "gather-scatter", _MESSAGES_GAIN * share * work[1] / 100, f"{share:.0f} % gathers and adds rows by index",
        f"{gathered:.0f} % of GPU time gathers rows by index, and {added:.0f} % adds rows by index, as messages along"
        " the edges of a graph", f"{share:.0f} %", "hotspots", "of GPU time",
    )  # fmt: skip


def _matrix_vector_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Products of a matrix and a single vector, which read all weights for few operations."""
    work = _gpu_work_with_share(case)
    share = work[0].share_pct("matrix-vector") if work else 0.0
    if work is None or share < _VECTORS_PCT:
        return None
    return make_hit(
        case, "matrix-vector", 0.75 * share * work[1] / 100, f"{share:.0f} % products of a matrix and one vector",
        f"{share:.0f} % of GPU time is products of a matrix and one vector (gemv), each of which reads all weights for"
        " few operations", f"{share:.0f} %", "hotspots", OF_GPU_TIME,
    )  # fmt: skip


def _inference_normalisation_hit(case: CaseSummary, _: Context) -> Hit | None:
    return _kernel_pattern_hit(
        case, "inference-normalisation", _NORMALISES, _CONVOLVES_PCT, "is batch normalisation of inference",
        without=_TRAINS,
    )  # fmt: skip


def _kernel_pattern_hit(
    case: CaseSummary, cause: str, pattern: re.Pattern[str], least_pct: float, description: str, *, least: float = 0,
    needs: re.Pattern[str] | None = None, without: re.Pattern[str] | None = None, of_each: float = 1.0,
    may_be_setup: bool = True, by_launches: bool = True, one_each: bool = False,
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
        one_each: Whether of each kernel no more counts than one for each kernel of `needs`: others have the name too.
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
    most = sum(kernel.calls or 0.0 for kernel in mine if needs and needs.search(kernel.name)) if one_each else math.inf
    counted = [(kernel, min(1.0, most / kernel.calls) if kernel.calls else 1.0) for kernel in mine]
    share = 100 * sum(part * (kernel.total_ns or 0.0) for kernel, part in counted) / total if total else 0.0
    mine_calls = sum(part * (kernel.calls or 0.0) for kernel, part in counted)
    count = mine_calls / (iteration_count(case) or 1)
    if case.idle_gpu is not None:
        least = min(least, _EACH * case.idle_gpu.operations)  # a layer, or a part of a step
    calls = sum(share.calls or 0.0 for share in case.gpu_work if share.kind == "kernel")
    launched = 100 * mine_calls / calls if calls else 0.0
    idle = case.idle_gpu.in_gaps("launch", lengths=SHORT) / case.idle_gpu.med_ns if case.idle_gpu else 0.0
    gain = (
        min(100.0, of_each * share) * busy / 100 * _GAINS[cause]
        + min(100.0, of_each * launched) * idle * _FUSED_LAUNCHES
    )
    if case.idle_gpu is not None and idle > MOSTLY and cause in _WITHIN_OPERATORS:
        use = case.idle_gpu.use
        in_calls = (use.get("cuda_ns", 0.0) - use.get("wait_ns", 0.0)) / (use.get("span_ns") or case.idle_gpu.med_ns)
        gain = min(gain, launched * (max(in_calls, 0.0) + idle) / 2)  # a launch costs its call at least
    if not idle > MOSTLY:
        gain = _gain_beside_host(case, gain)
    if (
        gain < WORTH_PCT
        or max(share, launched * (by_launches and idle > MOSTLY)) < least_pct
        or count < least
        or (needs and not any(needs.search(name) for name in names))
    ):
        return None
    if without and any(without.search(name) for name in names):
        return None
    return make_hit(
        case, cause, gain, f"{share:.0f} % {description.partition(' (')[0]}",
        f"{share:.0f} % of GPU time, and {launched:.0f} % of the launches, {description}", f"{share:.0f} %", "hotspots",
        "of GPU time",
    )  # fmt: skip


def _gain_beside_host(case: CaseSummary, gain: float) -> float:
    """What less work of the GPU wins, %, where the host takes nearly as long as it: then the host is the limit."""
    if case.idle_gpu is None or not (host_ns := case.idle_gpu.use.get("host_ns")):
        return gain
    return min(gain, max(100 * (1 - host_ns / case.idle_gpu.med_ns), gain / 4))


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
        "short-kernels", case.id, share, f"{work[0].short_pct:.0f} % of the kernels take less than 5 us", "fuse",
        f"{work[0].short_pct:.0f} % of the kernels take less than 5 us, and elementwise ones {share:.0f} % of GPU time",
        causes()["short-kernels"].remedy("pytorch"), f"{share:.0f} %", "hotspots",
    )  # fmt: skip


def _long_elementwise_hit(case: CaseSummary, context: Context) -> Hit | None:
    """Elementwise operations on large arrays, each of which reads and writes them again."""
    work = _gpu_work_with_share(case)
    total = sum(share.total_ns or 0.0 for share in case.gpu_work)
    if work is None or not total or case.iterations is None or _attention_hit(case, context) is not None:
        return None
    kernels = [share for share in case.gpu_work if _is_long_elementwise(share.name, share.total_ns, share.calls)]
    times = [share.total_ns or 0.0 for share in kernels]
    calls = sum(share.calls or 0.0 for share in kernels)
    count, share = calls / (iteration_count(case) or 1), 100 * sum(times) / total
    if count < _CHAIN or share < _UNFUSED_PCT or max(times) > _MOST_OF_CHAIN * sum(times):
        return None
    each = duration(sum(times) / calls)
    return make_hit(
        case, "unfused-elementwise", _FUSED_PASSES * share * work[1] / 100, f"{share:.0f} % elementwise, unfused",
        f"{share:.0f} % of GPU time is elementwise operations, {count:,.0f} an iteration of {each} each, all"
        " of which read and write their arrays", f"{share:.0f} %", "hotspots", OF_GPU_TIME,
    )  # fmt: skip


def _is_long_elementwise(name: str, total_ns: float | None, launches: float | None) -> bool:
    """Whether a kernel is an elementwise operation of PyTorch on large arrays."""
    is_long = (total_ns or 0.0) >= _LONG_MEAN_NS * (launches or math.inf)
    return is_long and _ELEMENTWISE.search(name) is not None


def counters_command_text(case: CaseSummary) -> str:
    """How to measure what binds the kernel of one's own that takes most; of a graph, how to see its kernels.

    Empty where a library's kernels take nearly all: nobody can change them.
    """
    total = sum(share.total_ns or 0.0 for share in case.gpu_work)
    if case.gpu_work and case.gpu_work[0].kind == "graph":
        return "`nsys profile --cuda-graph-trace=node` shows the kernels in the graph."
    own = [share for share in case.gpu_work if share.kind == "kernel" and not is_library_kernel_name(share.name)]
    if not own or 100 * (own[0].total_ns or 0.0) < _COUNTED_PCT * total:
        return ""
    shown = [share for share in own if 100 * (share.total_ns or 0.0) >= _SECOND_PCT * total] or own[:1]
    names = list(dict.fromkeys(share.short_name.partition("<")[0].rpartition("::")[2] for share in shown))
    count = skipped = 0  # launches of an iteration may differ; the first may be unlike the others
    for share in shown:
        each = share.calls / (iteration_count(case) or 1) if share.calls and case.iterations else 1.0
        count += max(1, min(_LAUNCHES_SHOWN, round(each)))
        skipped += min(round(share.calls or 0.0) // 2, _LAUNCHES_SHOWN)
    if not all(map(str.isidentifier, names)):  # ncu knows no parameters
        return "`ncu -c 1` shows what binds kernels (in a recipe: `counters:`)."
    chosen = names[0] if len(names) == 1 else f"'regex:^({'|'.join(names)})$'"
    options = f"-k {chosen}{f' -s {skipped}' if skipped else ''} -c {count}"
    return f"`ncu {options}` shows what binds {' and '.join(names)} (in a recipe: `counters:`)."


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    "default stream": _serial_stream_hit,
    "kernels one after the other": _serial_small_kernel_hit,
    "few threads": _few_threads_hit,
    "few blocks": _few_blocks_hit,
    "FP32 arithmetic": _fp32_matrix_hit,
    "layout": _layout_conversion_hit,
    "sparse matrices": _sparse_conversion_hit,
    "optimizer": _optimizer_hit,
    "optimizer, by counters": _counted_optimizer_hit,
    "attention": _attention_hit,
    "casts": _cast_hit,
    "embedding": _dense_embedding_gradient_hit,
    "messages of a graph": _gather_scatter_hit,
    "one vector": _matrix_vector_hit,
    "normalisation": _inference_normalisation_hit,
    "short kernels": _short_kernel_hit,
    "elementwise operations": _long_elementwise_hit,
}
