"""Rules over counters: what binds a kernel, how far it is from that roof, and what keeps it there.

Each rule looks at the kernels of a case and gives the one of which most could be won: at most what is left of its
busiest part, times its share of the time of all kernels.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.hits import Hit
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.rules.hits import Context

    Remark = tuple[float, str, str, str, str]  # what could be won (%), what, do, fact, advice

__all__ = ["LATENCY", "RULES", "bound_by", "kernel_advice", "room_pct"]

LATENCY: Final = "latency"
_BOUND_PCT: Final = 60.0  # of a part's peak, from which a kernel is bound by it, as ncu says too
_SURELY_PCT: Final = 80.0  # where the other parts were not measured
_DRAM_BOUND_PCT: Final = 55.0  # DRAM reaches no more than some 90 % of its peak
_GOOD_PCT: Final = 80.0  # of DRAM's peak: hardly more can be had
_UNCOALESCED_PCT: Final = 50.0  # of the bytes of a sector that are used
_EFFICIENCIES: Final = {"loads": "gld_efficiency", "stores": "gst_efficiency"}
_COALESCE: Final = (
    "Let the threads of a warp use neighbouring addresses (threadIdx.x along the contiguous index), or go through"
    " shared memory."
)
_SCATTERED: Final = 8.0  # sectors of a request, from which its threads use other sectors than their neighbours
# kernels of libraries, which a user can only call differently: names that nobody gives to a kernel of his own
_LIBRARY: Final = re.compile(
    r"cublas|cudnn|cutlass|nvjet_|xmma_|(?:maxwell|volta|turing|ampere|hopper|sm\d\d)_|gemvx|splitKreduce|at::native|"
    r"(?:vectorized|unrolled|distribution)_elementwise|elementwise_kernel<|reduce_kernel<|multi_tensor_apply|"
    r"vectorized_layer_norm|CatArrayBatched|softmax_warp_|cunn_|fused_dropout_kernel_vec|max_pool_(?:for|back)ward_n|"
    r"bn_[bf]w_|op_generic_tensor|nchwToNhwc|nhwcToNchw|trt_|triton_(?:poi|red|per|tem|for)_|nccl(?:Dev)?Kernel|"
    r"cub::|thrust::|Device(?:RadixSort|Scan|Reduce|Select)"
)
_LOW_OCCUPANCY_PCT: Final = 75.0  # theoretical
_FEW_WAVES: Final = 0.8
_FEW_SM_PCT: Final = 10.0  # of the SMs at work
_CONFLICTS_PCT: Final = 50.0  # shared efficiency
_SPILLS_PCT: Final = 5.0  # local memory in the traffic between L1 and L2
_FLUSHED_PCT: Final = 20.0  # of DRAM's peak
_WORTH_PCT: Final = 5.0  # of the kernels' time that could be won
_MUCH_PCT: Final = 10.0  # of the kernels' time
_FLUSHED: Final = "flushed caches"
_SHORT_NS: Final = 10e3
_LITTLE_PCT: Final = 10.0
_ADVICE_PCT: Final = 10.0
_TELLS: Final = re.compile(r"\d")  # a figure of this kernel: other sentences explain what a rule is about
_WARP: Final = {"memory dependency": "for memory", "long scoreboard": "for memory"}


def bound_by(kernel: KernelRow) -> str | None:
    """What binds a kernel: DRAM, L1 or L2, computing, or latency where no part is busy; None: not measured."""
    memory, sm, dram = kernel.memory_pct, kernel.sm_pct, kernel.dram_pct
    if memory is None or sm is None:
        busiest = max(
            ((share or 0.0, name) for share, name in ((dram, "DRAM"), (sm, "computing"), (memory, "L1 or L2")))
        )
        return busiest[1] if busiest[0] >= _SURELY_PCT else None
    if dram is not None and dram >= max(_DRAM_BOUND_PCT, 0.9 * memory, sm):
        return "DRAM"
    if max(memory, sm) < _BOUND_PCT:
        return LATENCY
    return "computing" if sm > memory else "L1 or L2"


def room_pct(kernel: KernelRow) -> float:
    """What is left of the kernel's busiest part: no change of the kernel alone wins more of its time."""
    busiest = max(
        (share for share in (kernel.sm_pct, kernel.memory_pct, kernel.dram_pct) if share is not None), default=0.0
    )
    return max(0.0, 100.0 - busiest)


def _heaviest_kernel_rule(
    name: str, look: Callable[[KernelRow], Remark | None]
) -> Callable[[CaseSummary, Context], Hit | None]:
    """A rule that takes of all kernels the one of which most could be won."""

    def rule(case: CaseSummary, _: Context) -> Hit | None:
        several = len(case.kernels) > 1
        remarks = [
            (kernel, share, remark)
            for kernel in case.kernels
            if (share := kernel.share_pct if several else 100.0) is not None  # else which one matters is not known
            and (remark := _worth(kernel, share, name=name, look=look)) is not None
        ]
        if not remarks:
            return None
        kernel, share, (won, problem, do, fact, advice) = max(remarks, key=lambda item: item[2][0] * item[1])
        share_text = f" ({share:.0f} % of the kernels' time)" if several else ""
        return Hit(
            name,
            case.id,
            won * share / 100,
            problem,
            do,
            f"{kernel.short_name}{share_text} {fact}",
            advice,
            problem,
            "kernels",
        )

    return rule


def _worth(kernel: KernelRow, share: float, *, name: str, look: Callable[[KernelRow], Remark | None]) -> Remark | None:
    """What a rule says of a kernel with this share of the time (%), where enough could be won.

    Of a library's kernel it is what calls can change.
    """
    remark = look(kernel)
    if remark is None or (remark[0] * share < 100 * _WORTH_PCT if name != _FLUSHED else share < _MUCH_PCT):
        return None
    if name == _FLUSHED or not _is_librarys(kernel):
        return remark
    if name not in {"few blocks", "DRAM-bound", "latency-bound"}:
        return None
    won, problem, _, fact, _ = remark
    return (
        won, problem, "larger or fused calls", fact,
        "It is a library's kernel: give it a larger problem, batch calls, or fuse them.",
    )  # fmt: skip


def _is_librarys(kernel: KernelRow) -> bool:
    return _LIBRARY.search(kernel.name) is not None


def _uncoalesced(kernel: KernelRow) -> Remark | None:
    """Caches that are what binds, by sectors of which threads use little; no broadcasts, which use little too."""
    efficiencies = {
        word: used
        for word, name in _EFFICIENCIES.items()
        if (used := kernel.metrics.get(name))  # 0 %: it has none
        and kernel.metrics.get(name.replace("efficiency", "transactions_per_request"), _SCATTERED) >= _SCATTERED
    }
    word, used = min(efficiencies.items(), key=lambda item: item[1], default=("", 100.0))
    memory, dram = kernel.memory_pct, kernel.dram_pct
    if memory is None or bound_by(kernel) != "L1 or L2":  # nvprof does not measure that
        return None
    if used >= _UNCOALESCED_PCT or (dram or 0.0) >= 0.9 * memory:
        return None
    return (
        100 - used, f"uncoalesced: {used:.0f} % of sectors used", "neighbours side by side",
        f"uses {used:.0f} % of the bytes that its {word} move in sectors of 32, and memory is {memory:.0f} % busy"
        + ("" if dram is None else f" (DRAM {dram:.0f} %)"),
        _COALESCE,
    )  # fmt: skip


def _occupancy(kernel: KernelRow) -> Remark | None:
    limit, reached = kernel.theoretical_occupancy_pct, kernel.achieved_occupancy_pct
    room = room_pct(kernel)
    fits_at_once = kernel.metrics.get("waves_per_sm", 0.0) < 1  # or not known; then the grid may be what is small
    if limit is None or limit >= _LOW_OCCUPANCY_PCT or room < 100 - _GOOD_PCT or fits_at_once:
        return None
    problem, do = _limiter(kernel)
    reached_text = "" if reached is None else f"{reached:.0f} of "
    return (
        min(room, 100 - limit),
        f"occupancy {reached_text}{limit:.0f} % ({kernel.occupancy_limiter or 'limited'})",
        do,
        (
            f"has room for {limit:.0f} % of the warps{'' if reached is None else f' and reaches {reached:.0f} %'}:"
            f" {problem}"
        ),
        f"{do[:1].upper()}{do[1:]}: more warps hide more of the latency.",
    )


def _limiter(kernel: KernelRow) -> tuple[str, str]:
    """What limits the warps of an SM, with its numbers, and what to change."""
    word = (kernel.occupancy_limiter or "").split(", ")[-1]
    blocks = kernel.metrics.get(f"occupancy_limit_{word.replace(' ', '_')}")
    an_sm = "" if blocks is None else f", {blocks:.0f} blocks an SM"
    if word == "registers" and kernel.registers is not None:
        return f"{kernel.registers:.0f} registers a thread{an_sm}", "use fewer registers"
    if word == "shared memory" and kernel.shared_memory_bytes is not None:
        return f"{kernel.shared_memory_bytes:,.0f} B of shared memory a block{an_sm}", "less shared memory a block"
    if word in {"registers", "shared memory"}:
        return f"{word}{an_sm}", "fewer registers" if word == "registers" else "less shared memory a block"
    if word in {"warps", "blocks"}:
        return f"{kernel.metrics.get('threads_per_block', 0):.0f} threads a block{an_sm}", "choose another block size"
    if word == "grid":
        return "the grid has too few blocks", "launch more blocks"
    return word or "what limits it was not measured", "choose another block size"


def _few_blocks(kernel: KernelRow) -> Remark | None:
    waves, busy = kernel.metrics.get("waves_per_sm"), kernel.metrics.get("sm_efficiency")
    blocks = kernel.metrics.get("blocks")
    grid = "" if blocks is None else f" ({blocks:,.0f} {'block' if blocks == 1 else 'blocks'})"
    if busy is None and waves is not None and waves < _FEW_WAVES:
        return (
            100 - 100 * waves, f"grid fills {100 * waves:.0f} % of the GPU once",
            "merge launches" if (kernel.launch_ns or _SHORT_NS) < _SHORT_NS / 2 else "launch more blocks",
            f"has a grid that fills {100 * waves:.0f} % of the GPU once{grid}",
            "Launch more blocks, merge launches, or run other kernels beside it.",
        )  # fmt: skip
    if busy is None or busy >= _FEW_SM_PCT or (waves is not None and waves >= 1):
        return None
    return (
        100 - busy, f"uses {busy:.0f} % of the GPU{grid}", "launch more blocks",
        f"keeps {busy:.0f} % of the SMs at work{grid}", "Launch more blocks, or run other kernels beside it.",
    )  # fmt: skip


def _memory_bound(kernel: KernelRow) -> Remark | None:
    dram = kernel.dram_pct
    if bound_by(kernel) != "DRAM" or dram is None or dram >= _GOOD_PCT:
        return None
    return (
        100 - dram, f"DRAM-bound, {dram:.0f} % of its peak", "move fewer bytes",
        f"is bound by DRAM at {dram:.0f} % of its peak: at most {100 / dram:.1f}x is left{_waits(kernel)}",
        "Keep more loads in flight (several elements a thread), or move fewer bytes (reuse, smaller types).",
    )  # fmt: skip


def _latency(kernel: KernelRow) -> Remark | None:
    if bound_by(kernel) != LATENCY or _few_blocks(kernel) is not None:
        return None
    if _occupancy(kernel) is not None and not _is_librarys(kernel):
        return None
    memory, sm = kernel.memory_pct or 0.0, kernel.sm_pct or 0.0
    each = kernel.launch_ns
    if each is not None and each < _SHORT_NS and max(memory, sm) < _LITTLE_PCT:
        return (
            room_pct(kernel), f"too little work: {each / 1e3:.1f} us a launch", "more work a launch",
            f"has too little work for the GPU: {each / 1e3:.1f} us a launch, memory {memory:.0f} %, SM {sm:.0f} % busy",
            "Give a launch more work, or merge launches.",
        )  # fmt: skip
    return (
        room_pct(kernel), f"latency-bound: SM {sm:.0f}, memory {memory:.0f} %", "more work in flight",
        f"keeps no part of the GPU busy (memory {memory:.0f} %, SM {sm:.0f} %){_waits(kernel)}",
        "Give each thread more independent work (unroll, several elements a thread), or launch more warps.",
    )  # fmt: skip


def _waits(kernel: KernelRow) -> str:
    """What its warps wait for most."""
    if not kernel.stalls:
        return ""
    stall = kernel.stalls[0]
    return f"; {stall.pct:.0f} % of the active warps wait {_WARP.get(stall.reason, f'({stall.reason})')}"


def _bank_conflicts(kernel: KernelRow) -> Remark | None:
    used = kernel.metrics.get("shared_efficiency")
    if used is None or not 0 < used < _CONFLICTS_PCT or bound_by(kernel) != "L1 or L2":
        return None
    return (
        min(room_pct(kernel), 100 - used), f"shared memory {used:.0f} % efficient", "pad arrays, use all lanes",
        f"uses {used:.0f} % of what its accesses to shared memory could move: bank conflicts, or idle lanes of warps",
        "Pad the arrays in shared memory by one element, swizzle their indices, and let all lanes of a warp take part.",
    )  # fmt: skip


def _spills(kernel: KernelRow) -> Remark | None:
    share = kernel.metrics.get("local_memory_overhead")
    if share is None or share < _SPILLS_PCT or bound_by(kernel) not in {"L1 or L2", "DRAM"}:
        return None
    return (
        min(room_pct(kernel), share), f"spills: {share:.0f} % of L1-L2 traffic", "fewer registers in use",
        f"spills registers: local memory is {share:.0f} % of the traffic between L1 and L2",
        "Allow more registers (__launch_bounds__), split the kernel, or index local arrays by constants.",
    )  # fmt: skip


def _advice(kernel: KernelRow) -> Remark | None:
    """The best rule of Nsight Compute itself, with an estimate that the roof allows."""
    advice = kernel.advice
    if advice is None or not advice.message or any(look(kernel) for look in _CERTAIN):
        return None
    if advice.speedup_type not in {None, "global"}:  # a local one is no share of the kernel's time
        return None
    if "Occupancy" in advice.rule and kernel.metrics.get("waves_per_sm", 0.0) < 1:  # all blocks may have room already
        return None
    won = min(advice.speedup_pct, room_pct(kernel))
    if won < _ADVICE_PCT:
        return None
    sentences = advice.message.split(". ")
    message = next((text for text in sentences if _TELLS.search(text)), sentences[0]).rstrip(".")
    each = "" if kernel.launch_ns is None else f" of {duration(kernel.launch_ns)}"
    return (
        won, f"ncu's rule {advice.rule}: at most {won:.0f} %", "see table rules",
        f"could win at most {won:.0f} %{each} by ncu's rule {advice.rule}: {message}",
        "Its whole message is in table rules.",
    )  # fmt: skip


def _flushed(kernel: KernelRow) -> Remark | None:
    """What ncu measured with empty caches, of a kernel whose bytes fit L2 in the run."""
    gpu, moved = find_gpu(kernel.device_name), kernel.metrics.get("dram_bytes")
    if gpu is None or not gpu.l2_bytes or moved is None or (kernel.dram_pct or 0.0) < _FLUSHED_PCT:
        return None
    if moved > gpu.l2_bytes:
        return None
    return (
        1.0, f"fits L2 ({moved / 1e6:.0f} of {gpu.l2_bytes / 1e6:.0f} MB)", "ncu --cache-control none",
        f"moves {moved / 1e6:.0f} MB, which fit into L2, and ncu empties caches: its share of DRAM is not the run's",
        "Measure it with `options: [--cache-control, none]`, or judge it by the timeline.",
    )  # fmt: skip


_CERTAIN: Final = (_uncoalesced, _occupancy, _few_blocks, _memory_bound, _bank_conflicts, _spills)


_LOOKS: Final[Mapping[str, Callable[[KernelRow], Remark | None]]] = {
    "uncoalesced access": _uncoalesced,
    "occupancy": _occupancy,
    "few blocks": _few_blocks,
    "DRAM-bound": _memory_bound,
    "latency-bound": _latency,
    "bank conflicts": _bank_conflicts,
    "register spills": _spills,
    _FLUSHED: _flushed,
    "Nsight Compute": _advice,
}
RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    name: _heaviest_kernel_rule(name, look) for name, look in _LOOKS.items()
}


def kernel_advice(kernel: KernelRow, share: float | None) -> str:
    """What to try with a kernel, in a few words; empty where little could be won, or too little was measured.

    Args:
        kernel: The kernel.
        share: Its share of the time of all kernels (%), where it is known.
    """
    looks = {} if share is None else {name: look for name, look in _LOOKS.items() if name != _FLUSHED}
    remarks = [_worth(kernel, share or 0.0, name=name, look=look) for name, look in looks.items()]
    return max((remark for remark in remarks if remark is not None), default=(0.0, "", "", "", ""))[2]
