"""Which part of the GPU binds a kernel, and what a cure of waste in it wins.

What a cure wins is the wasted share of the part that binds, down to what binds next: the kernel is taken to keep its
distance from the roof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.kernels import KernelRow, sm_active_share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.analysis.cases import CaseSummary

__all__ = [
    "ALU",
    "BOUND_PCT",
    "BUSY_PCT",
    "CACHES",
    "COMPUTING",
    "CONFLICTS",
    "COUNTED",
    "DRAM",
    "FAR_PCT",
    "FEW_THREADS",
    "FMA",
    "FP64",
    "HALF",
    "ISSUE",
    "L1",
    "L2",
    "LATENCY",
    "LEAST_PCT",
    "LEAST_TENSOR_PCT",
    "LITTLE_PCT",
    "LSU",
    "MEMORY_PARTS",
    "PER_ACTIVE_CYCLE",
    "REACHED_PCT",
    "ROOF_PCT",
    "SHARED",
    "SHORT_NS",
    "STALLED_PCT",
    "SURELY_PCT",
    "TENSOR",
    "THREADS_OF_SM",
    "WARP",
    "XU",
    "Remark",
    "binding_part",
    "busiest_part",
    "busiest_part_pct",
    "busy_part_text",
    "busy_pct_by_part",
    "gain_pct",
    "is_compute_bound",
]

LATENCY: Final = "latency"
DRAM, L2, L1, SHARED, CACHES, MEMORY = "DRAM", "L2", "L1", "shared memory", "L1 or L2", "memory"
FP64, XU, FMA, ALU, LSU, TENSOR = "FP64 pipe", "XU pipe", "FMA pipe", "ALU pipe", "load-store unit", "tensor cores"
ISSUE, COMPUTING = "issue slots", "SM"
MEMORY_PARTS: Final = frozenset({DRAM, L2, L1, SHARED, CACHES, MEMORY})
BOUND_PCT: Final = 60.0  # of a part's peak, from which a kernel is bound by it, as ncu says too
SURELY_PCT: Final = 80.0  # where the other parts were not measured
ROOF_PCT: Final = 75.0  # from which a part is at its roof: DRAM reaches some 92 % at most
_FEEDS_PCT: Final = 5.0  # that memory may be busier than the tensor cores which it feeds, and L2 than DRAM
_NEAR_PCT: Final = 20.0  # that L2 may be busier than DRAM, where ncu's figure of the memory system is DRAM's
_ROUNDED_PCT: Final = 1.0  # by which means over launches of the same figure differ
BUSY_PCT: Final = 30.0  # of a level of memory, below which its waste delays nothing
LEAST_PCT: Final = 10.0  # of a kernel's time, likewise
LEAST_TENSOR_PCT: Final = 1.0  # of the tensor cores, from which a kernel uses them
CONFLICTS: Final = 0.25  # of the wavefronts of shared memory
WARP: Final = 32
THREADS_OF_SM: Final = 2048  # at most; fewer on some GPUs of consumers
FEW_THREADS: Final = 0.1  # of those that a GPU holds, which fill none of its waits
SHORT_NS: Final = 10e3
LITTLE_PCT: Final = 10.0
_CLOCK_BOUND_PCT: Final = 90.0  # of the kernels' time, from which a program's time follows the clock of the SMs
HALF: Final = 0.5
FAR_PCT: Final = 50.0  # of a part's peak, below which a kernel is surely far from its roof
REACHED_PCT: Final = 95.0  # of a part's peak: what kernels with enough in flight reach
STALLED_PCT: Final = 30.0  # of the active warps, which a reason explains


class Remark(NamedTuple):
    """What a rule says of a kernel: what could be won (%), the cause, what is wrong in a few words, and a sentence."""

    won: float
    cause: str
    what: str
    fact: str


PER_ACTIVE_CYCLE: Final = frozenset({
    "l1_throughput", "double_precision_fu_utilization", "special_fu_utilization", "single_precision_fu_utilization",
    "fmaheavy_utilization", "alu_pipe_utilization", "ldst_fu_utilization", "issue_slot_utilization",
})  # fmt: skip  # per cent of the cycles in which an SM is active


def busy_pct_by_part(kernel: KernelRow) -> dict[str, float]:
    """How busy each part of the GPU that was measured is, in per cent of its peak over the launch."""
    metrics = kernel.metrics
    active = sm_active_share(kernel.metrics) or 1.0
    parts: dict[str, float | None] = {
        DRAM: kernel.dram_pct,
        L2: metrics.get("l2_throughput"),
        L1: _multiply_known(metrics.get("l1_throughput"), active),
    }
    pipes = {
        FP64: metrics.get("double_precision_fu_utilization"),
        XU: metrics.get("special_fu_utilization"),
        FMA: _largest_known(metrics.get("single_precision_fu_utilization"), metrics.get("fmaheavy_utilization")),
        ALU: metrics.get("alu_pipe_utilization"),
        LSU: metrics.get("ldst_fu_utilization"),
        TENSOR: kernel.tensor_pct,
        ISSUE: metrics.get("issue_slot_utilization"),
    }
    if kernel.sm_pct is not None:  # else of nvprof, whose pipes are levels
        parts |= {name: _multiply_known(share, active) for name, share in pipes.items()}
    known = {name: share for name, share in parts.items() if share is not None}
    if L1 in known and _is_mostly_shared_memory(kernel):
        known[SHARED] = known.pop(L1)
    # of two sums that ncu gives, what no part explains
    for share, name, members in (
        (kernel.memory_pct, MEMORY if kernel.dram_pct is None else CACHES, MEMORY_PARTS),
        (kernel.sm_pct, COMPUTING, known.keys() - MEMORY_PARTS),
    ):
        if share is not None and share > 1.1 * max((known.get(member, 0.0) for member in members), default=0.0):
            known[name] = share
    return known


def busiest_part(kernel: KernelRow) -> str:
    """The part nearest to its peak; empty: none was measured.

    Tensor cores come before the memory that feeds them, since Hopper's read shared memory, and DRAM before L2, through
    which all of its bytes pass: where DRAM is near its peak, or ncu's own figure of the memory system is that of DRAM.
    """
    parts = busy_pct_by_part(kernel)
    part = max(parts, key=lambda name: parts[name], default="")
    dram = parts.get(DRAM, 0.0)
    is_figure_of_dram = kernel.memory_pct is not None and kernel.memory_pct <= dram + _ROUNDED_PCT
    if part == L2 and (
        dram >= min(SURELY_PCT, max(ROOF_PCT, parts[L2] - _FEEDS_PCT))
        or (is_figure_of_dram and dram >= max(BOUND_PCT, parts[L2] - _NEAR_PCT))
    ):
        part = DRAM
    return TENSOR if parts.get(TENSOR, 0.0) >= max(ROOF_PCT, parts.get(part, 0.0) - _FEEDS_PCT) else part


def busy_part_text(part: str, share: float) -> str:
    """How busy a part is, as a sentence: `DRAM is 88 % busy`."""
    article, verb = "" if part in MEMORY_PARTS else "the ", "are" if part in {ISSUE, TENSOR} else "is"
    return f"{article}{part} {verb} {share:.0f} % busy"


def _multiply_known(share: float | None, factor: float) -> float | None:
    return None if share is None else share * factor


def _largest_known(*shares: float | None) -> float | None:
    return max((share for share in shares if share is not None), default=None)


def _is_mostly_shared_memory(kernel: KernelRow) -> bool:
    """Whether shared memory is most of what L1 does."""
    shared, both = kernel.metrics.get("shared_wavefronts"), kernel.metrics.get("l1_wavefronts")
    if shared is not None and both:
        return shared >= HALF * both
    share, whole = kernel.metrics.get("shared_utilization"), kernel.metrics.get("l1_throughput")
    return share is not None and whole is not None and share >= HALF * whole


def binding_part(kernel: KernelRow) -> str | None:
    """The part that binds a kernel, or latency where none is busy; None: not measured."""
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    if kernel.memory_pct is None or kernel.sm_pct is None:
        return part if part and parts[part] >= SURELY_PCT else None
    return part if parts[part] >= BOUND_PCT else LATENCY


def is_compute_bound(case: CaseSummary) -> bool:
    """Whether its GPUs are busy with kernels that a part of the SMs binds, so that its time follows their clock."""
    bound = sum(
        kernel.share_pct or 0.0
        for kernel in case.kernels
        if (part := binding_part(kernel)) is not None and part != LATENCY and part not in MEMORY_PARTS
    )
    idle = case.spent.idle_pct if case.spent is not None else None
    return bound >= _CLOCK_BOUND_PCT and idle is not None and idle <= LITTLE_PCT


def busiest_part_pct(kernel: KernelRow) -> float:
    """How busy the part that is named as the busiest is, in per cent of its peak."""
    parts = busy_pct_by_part(kernel)
    return parts.get(busiest_part(kernel), 0.0)


def gain_pct(kernel: KernelRow, left: Mapping[str, float]) -> float:
    """What is won (%) if of what these parts carry only such a share is left, and the kernel is as near its roof."""
    parts = busy_pct_by_part(kernel)
    now = max(parts.values(), default=0.0)
    after = max((share * left.get(name, 1.0) for name, share in parts.items()), default=0.0)
    return 100 * (1 - after / now) if now else 0.0


COUNTED: Final = frozenset({"l2_atomic_transactions", "inst_executed_global_reductions"})
