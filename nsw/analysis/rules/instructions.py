"""Rules over counters of instructions: divergence, and pipes that carry more than the work needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.binding import (
    ALU,
    BOUND_PCT,
    BUSY_PCT,
    CACHES,
    COMPUTING,
    DRAM,
    FAR_PCT,
    FMA,
    FP64,
    HALF,
    ISSUE,
    L1,
    L2,
    LEAST_TENSOR_PCT,
    LSU,
    MEMORY_PARTS,
    REACHED_PCT,
    ROOF_PCT,
    SHARED,
    WARP,
    XU,
    Remark,
    busiest_part,
    busiest_part_pct,
    busy_part_text,
    busy_pct_by_part,
    gain_pct,
)
from nsw.analysis.rules.memory_access import global_accesses, global_memory_instructions
from nsw.metrics.catalogue import find_gpu

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.analysis.kernels import KernelRow


__all__ = [
    "binding_pipe",
    "divergence_remark",
    "fp64_remark",
    "matrix_product_remark",
    "multiply_add_product_remark",
    "special_function_remark",
    "unfused_multiply_add_remark",
]

_DIVIDES_PCT: Final = 45.0  # of a pipe's peak, from which divisions bind: each is a chain of dependent instructions
_WITH_RECIPROCALS: Final = 1.3  # instructions of the XU pipe for each that converts: a division has its reciprocal too
_LANES_PCT: Final = 62.5  # threads active an instruction: 20 of 32
_PREDICATED_PCT: Final = 45.0  # threads that are active and not predicated off: in healthy code many are off at times
_EACH_SPECIAL: Final = 8  # instructions of an accurate exponential, root or division of floats, at the least
_LONG_SUM: Final = 64  # products that a stored value is the sum of, from which it may be of matrices
_OF_EACH_LOADED: Final = 8.0  # conversions of a value that is loaded, at most
_HARDLY: Final = 0.02  # of the FP64 instructions


def divergence_remark(kernel: KernelRow) -> Remark | None:
    """Instructions of which few threads of a warp take part, where instructions or latency bind."""
    lanes, switched_on = (
        kernel.metrics.get(name) for name in ("warp_execution_efficiency", "warp_nonpred_execution_efficiency")
    )
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    if lanes is None or not lanes or (part in MEMORY_PARTS - {L1} and parts[part] >= BOUND_PCT):
        return None
    used = min(lanes, switched_on) if switched_on and switched_on < _PREDICATED_PCT else lanes
    if used > _LANES_PCT:
        return None
    threads = kernel.metrics.get("threads_per_block", float(WARP))
    won = gain_pct(
        kernel, {name: used / 100 for name in parts if name not in MEMORY_PARTS} | {L1: used / 100, SHARED: used / 100}
    )
    fact = f"has {used * WARP / 100:.1f} of the 32 threads of a warp active an instruction"
    if threads % WARP and threads < WARP:
        return Remark(
            won, "occupancy-block-size", f"blocks of {threads:.0f} threads",
            f"{fact}: its blocks have {threads:.0f} threads, less than a warp",
        )  # fmt: skip
    waves = kernel.metrics.get("waves_per_sm", 1.0)
    if waves < HALF and parts.get(part, 0.0) < BOUND_PCT:  # it takes as long as its longest warp
        room = 100 * (1 - parts.get(part, 0.0) / REACHED_PCT)
        return Remark(
            room, "long-items", f"{used * WARP / 100:.0f} of 32 threads active",
            f"{fact}, and its blocks fill {100 * waves:.0f} % of the GPU, so that the longest of its warps decides",
        )  # fmt: skip
    return Remark(won, "divergence", f"{used * WARP / 100:.0f} of 32 threads active", fact)


def binding_pipe(kernel: KernelRow) -> tuple[str, float]:
    """The busiest pipe of the SM, and how busy it is, where it is what binds; else nothing."""
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    return (part, parts[part]) if part and part not in MEMORY_PARTS and parts[part] >= BOUND_PCT else ("", 0.0)


def fp64_remark(kernel: KernelRow) -> Remark | None:
    """FP64 beside FP32 data, where FP64 instructions or their conversions bind, or nothing is at its roof."""
    part, busy = binding_pipe(kernel)
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    double = metrics.get("inst_fp_64") or metrics.get("flop_count_dp")
    if not double:
        return None
    single = (metrics.get("inst_fp_32") if metrics.get("inst_fp_64") else metrics.get("flop_count_sp")) or 0.0
    converted = metrics.get("inst_bit_convert", 0.0)
    accesses = global_accesses(kernel)
    are_results_double = any(a.each and 7 < a.each * a.used < 8.5 for a in accesses if a.word == "stores")
    if (
        single < 0.25 * double
        and converted < 0.1 * double
        and (are_results_double or not _converts_half_of_loads(kernel, converted))
    ):
        return None
    widths = [access.each * access.used for access in accesses if access.each]  # bytes a thread
    if single < _HARDLY * double and widths and all(7 < width < 8.5 for width in widths):
        return None  # its data are FP64: integers are converted
    share = parts.get(FP64, 0.0)
    converts = part == XU and converted > HALF * double
    if part in {FP64, XU, COMPUTING, ISSUE} and (share >= HALF * busy or converts):
        gpu = find_gpu(kernel.device_name)
        rate = gpu.flop_per_s["flop_count_dp"] / gpu.flop_per_s["flop_count_sp"] if gpu else HALF
        instructions = metrics.get("inst_executed", 0.0) * WARP
        issued_share = (
            max(rate, 1 - double / instructions) if instructions else 1.0
        )  # FP32 functions have fewer instructions
        won = gain_pct(kernel, {FP64: rate, COMPUTING: rate, ISSUE: issued_share, XU: 0.2 if converted else 1.0})
    elif share >= BUSY_PCT and busiest_part_pct(kernel) < ROOF_PCT:  # its long latencies bind, and its registers
        others = max((pct for name, pct in parts.items() if name not in {FP64, XU, ISSUE, COMPUTING}), default=0.0)
        won = min(share, 100 * (1 - others / REACHED_PCT))
    else:
        return None
    beside = f"{converted:,.0f} conversions" if converted >= single else "FP32 arithmetic"
    also = "" if part in {"", FP64} else f", and {busy_part_text(part, busy)}"
    return Remark(
        won, "fp64-by-accident", f"FP64 beside FP32, {part or FP64} {busy or share:.0f} % busy",
        f"computes in FP64 beside {beside}: the FP64 pipe is {share:.0f} % busy{also}",
    )  # fmt: skip


def _converts_half_of_loads(kernel: KernelRow, converted: float) -> bool:
    """Whether about as many values are converted as it loads: of FP64 programs so few, or so many more, are none."""
    loaded = sum(
        8 * access.used * (access.sectors or 0.0) for access in global_accesses(kernel) if access.word == "loads"
    )
    return 0 < HALF * loaded <= converted <= _OF_EACH_LOADED * loaded


def _integer_division_remark(kernel: KernelRow) -> Remark | None:
    """Divisions of integers, whose conversions and reciprocals are the XU pipe's; they are chains, which bind early."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    integer, converted = metrics.get("inst_integer"), metrics.get("inst_bit_convert", 0.0)
    every, part = _thread_instructions(kernel), busiest_part(kernel)
    if integer is None or not every or part not in {XU, ALU, FMA, ISSUE, COMPUTING}:
        return None
    has_reciprocals = _share_of_xu(parts) >= _WITH_RECIPROCALS * converted / every
    if parts[part] < (_DIVIDES_PCT if has_reciprocals else BOUND_PCT):
        return None
    if converted < 0.015 * every or integer < max(0.5 * every, 2 * metrics.get("inst_fp_32", 0.0)):
        return None
    kept = 1 - 0.8 * integer / every  # of some 20 instructions of a division a few stay
    return Remark(
        gain_pct(kernel, {XU: 0.1, ALU: kept, FMA: kept, ISSUE: kept, COMPUTING: kept}), "integer-division",
        f"integer division, {part} {parts[part]:.0f} % busy",
        f"divides integers: {100 * integer / every:.0f} % of its instructions are of integers and"
        f" {100 * converted / every:.0f} % convert them, and {busy_part_text(part, parts[part])}",
    )  # fmt: skip


def _thread_instructions(kernel: KernelRow) -> float:
    """The instructions of all threads."""
    lanes = kernel.metrics.get("warp_execution_efficiency", 100.0) / 100
    return kernel.metrics.get("inst_executed", 0.0) * WARP * lanes


def _share_of_xu(parts: Mapping[str, float]) -> float:
    """The share of all instructions that the XU pipe executes: half a warp's a cycle, of the four that an SM issues."""
    return parts.get(XU, 0.0) / (8 * parts[ISSUE]) if parts.get(ISSUE) else 0.0


def special_function_remark(kernel: KernelRow) -> Remark | None:
    """Special functions, or the conversions of integer divisions, on the XU pipe."""
    part, busy = binding_pipe(kernel)
    if fp64_remark(kernel) is not None:  # whose conversions they are
        return None
    if (division := _integer_division_remark(kernel)) is not None:
        return division
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    every, of_all = _thread_instructions(kernel), _share_of_xu(parts)
    double = metrics.get("inst_fp_64", metrics.get("flop_count_dp", 0.0 if parts.get(FP64, 0.0) < 5 else None))
    is_mix_known = {"inst_integer", "inst_bit_convert"} <= metrics.keys()
    if not is_mix_known and (double != 0 or part != XU):
        return None  # whose conversions the XU pipe does is not known
    if part in {ISSUE, FMA, ALU, COMPUTING}:
        converted = metrics.get("inst_bit_convert", 0.0) / every if every else 0.0
        around = _EACH_SPECIAL * (of_all - converted)
        if around < HALF:
            return None
        left = max(0.0, 1 - around)
        return Remark(
            gain_pct(kernel, {XU: 0.0, ISSUE: left, FMA: left, ALU: left, COMPUTING: left}), "special-functions",
            f"special functions, {part} {busy:.0f} % busy",
            f"computes special functions (exponential, root, division): their unit is {parts[XU]:.0f} % busy, and the"
            f" instructions around them keep the {part} {busy:.0f} % busy",
        )  # fmt: skip
    if part != XU:
        return None
    return Remark(
        gain_pct(kernel, {XU: 0.0, ISSUE: 1 - of_all}), "special-functions",
        f"special functions, XU pipe {busy:.0f} % busy",
        f"keeps the unit of special functions (sine, exponential, root, division) {busy:.0f} % busy",
    )  # fmt: skip


def unfused_multiply_add_remark(kernel: KernelRow) -> Remark | None:
    """Additions and multiplications in pairs, and hardly a fused multiply-add."""
    part, busy = binding_pipe(kernel)
    metrics = kernel.metrics
    for kind, pipe, word in (("sp", FMA, "FP32"), ("dp", FP64, "FP64")):
        add, mul, fma = (metrics.get(f"flop_count_{kind}_{name}") for name in ("add", "mul", "fma"))
        if add is None or mul is None or fma is None or part not in {pipe, ISSUE, COMPUTING}:
            continue
        pairs = min(add, mul)
        if not pairs or fma > 0.2 * pairs or pairs < 0.4 * max(add, mul):
            continue
        kept = 1 - pairs / (add + mul + fma)
        return Remark(
            gain_pct(kernel, {pipe: kept, ISSUE: kept, COMPUTING: kept}), "unfused-multiply-add",
            f"{word} multiplications and additions unfused",
            f"has {pairs:.3g} {word} additions behind as many multiplications and only {fma:.3g} fused multiply-adds,"
            f" and {busy_part_text(part, busy)}",
        )  # fmt: skip
    return None


def matrix_product_remark(kernel: KernelRow) -> Remark | None:
    """Fused multiply-adds alone on data of shared memory, or on rows and columns of global memory."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    if (
        kernel.tensor_pct is None
        or kernel.tensor_pct > LEAST_TENSOR_PCT
        or part in {DRAM, L2}
        or parts.get(part, 0.0) < FAR_PCT
    ):
        return None
    halves = metrics.get("flop_count_hp_fma") or 0.0
    add, mul, fma = (metrics.get(f"flop_count_sp_{name}") or 0.0 for name in ("add", "mul", "fma"))
    products, others, word = (
        (halves, metrics.get("flop_count_hp_add") or 0.0, "FP16") if halves > fma else (fma, add + mul, "FP32")
    )
    (loads, _), shared = global_memory_instructions(kernel), metrics.get("inst_executed_shared_loads")
    if not products or others > 0.1 * products or loads is None or shared is None:
        return None
    if products < 0.25 * WARP * metrics.get("inst_executed", 0.0):  # constants are moved by FP16 multiply-adds too
        return None
    if (parts.get(XU) or 0.0) > 5:
        return None
    stored = sum(
        8 * access.used * (access.sectors or 0.0) for access in global_accesses(kernel) if access.word == "stores"
    )
    if 0 < products < _LONG_SUM * stored:  # a stencil or a small filter: no tile of tensor cores is filled
        return None
    warps = products / WARP
    from_shared = shared >= 0.03 * warps and (metrics.get("stall_barrier") or 0.0) > 0
    each = metrics.get("gld_transactions_per_request")
    # half of the loads read one value for the whole warp, the other half neighbouring ones
    broadcast = loads >= 0.1 * warps and each is not None and 1.2 <= each <= 2.9 and loads <= 2.2 * warps
    if not (from_shared or broadcast):
        return None
    return multiply_add_product_remark(kernel, word)


def multiply_add_product_remark(kernel: KernelRow, word: str) -> Remark | None:
    """A product by multiply-adds of this type, which an SM's own parts bind: tensor cores take their place."""
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    if part in {DRAM, L2} or parts.get(part, 0.0) < FAR_PCT:
        return None
    return Remark(
        gain_pct(kernel, {FMA: 0.1, ISSUE: 0.2, COMPUTING: 0.2, L1: 0.4, SHARED: 0.4, CACHES: 0.4, LSU: 0.2, ALU: 0.3}),
        "tensor-cores-unused",
        f"{word} multiply-adds, tensor cores idle",
        f"computes a product by {word} multiply-adds ({part} {parts[part]:.0f} % busy), and tensor cores are idle",
    )
