"""Rules over counters of launches and waits: too few blocks, uneven blocks, barriers, occupancy, dependencies."""

from __future__ import annotations

import math
import re
from typing import Final

from nsw.analysis.kernels import KernelRow, sm_active_share
from nsw.analysis.rules.binding import (
    BOUND_PCT,
    CACHES,
    COMPUTING,
    CONFLICTS,
    COUNTED,
    DRAM,
    FAR_PCT,
    FEW_THREADS,
    HALF,
    L1,
    L2,
    LEAST_PCT,
    LEAST_TENSOR_PCT,
    LITTLE_PCT,
    REACHED_PCT,
    SHARED,
    SHORT_NS,
    STALLED_PCT,
    SURELY_PCT,
    THREADS_OF_SM,
    WARP,
    Remark,
    binding_part,
    busiest_part,
    busiest_part_pct,
    busy_pct_by_part,
    gain_pct,
)
from nsw.analysis.rules.memory_access import global_memory_instructions, most_bytes_touched
from nsw.metrics.catalogue import find_gpu
from nsw.wording import plural

__all__ = [
    "barrier_or_fetch_stall_remark",
    "block_reduction_remark",
    "few_warps_text",
    "flushed_cache_remark",
    "is_shared_memory_busy_with_barriers",
    "largest_stall_text",
    "latency_remark",
    "launch_shape_text",
    "small_tiles_remark",
    "unbalanced_grid_remark",
]

_NO_ROOF_PCT: Final = 70.0  # of a part's peak, below which one that all warps wait for is no roof
_FULL_PCT: Final = 80.0  # occupancy, from which more warps fill no waits
_WAITING_PCT: Final = 70.0  # of the active warps
_HANDFUL: Final = 4  # blocks, which are too few for any GPU
_NUMBER: Final = re.compile(r"\d+")
_LOW_PCT: Final = 75.0  # theoretical occupancy
_EVENLY: Final = 0.85  # of the time that the mean SM has work, from which blocks are alike
_WIDEST_ACCESS: Final = 4.5  # passes through shared memory of an instruction without conflicts: 4, of 16 bytes a thread
_FEW_WARPS: Final = 2.0  # of a scheduler, which cannot hide their waits
_SOME_WAVES: Final = 0.1  # of blocks
_FEW_WORKING: Final = 2.0  # SMs at work in the mean, by which all blocks but one are done early
_EMPTY_WAVES: Final = 0.5  # of blocks, up to which most of the GPU's places for warps are empty
_MANY_WAVES: Final = 8  # of blocks, from which how fast blocks begin decides


def unbalanced_grid_remark(kernel: KernelRow) -> Remark | None:
    """Blocks that leave SMs without work: too few, a last wave that is nearly empty, or blocks of unequal work."""
    metrics = kernel.metrics
    blocks, waves, sms = metrics.get("blocks"), metrics.get("waves_per_sm"), _gpu_sm_count(kernel)
    active = sm_active_share(kernel.metrics)
    busiest, mean = metrics.get("sm_active_cycles_max"), metrics.get("sm_active_cycles")
    if busiest and mean:
        active = mean / busiest
    if blocks is not None and sms and blocks < sms:
        return _few_blocks_remark(kernel, blocks, sms)
    if not sms and (kernel.launch_ns or 0.0) >= SHORT_NS and (few := _handful_remark(kernel)) is not None:
        return few
    if active is None:
        return None
    idle = 100 * (1 - active)
    room = (
        100 - 100 * busiest_part_pct(kernel) / REACHED_PCT
    )  # what SMs share may be busy enough without those that are idle
    is_short = (kernel.launch_ns or SHORT_NS) < SHORT_NS  # most of which is the launch itself
    if waves is not None and 1 < waves <= 6 and not is_short:
        last = waves % 1 or 1.0
        empty = 100 * (1 - waves / -(-waves // 1))
        if last <= HALF and idle >= HALF * empty and idle <= empty + 5:
            return Remark(
                min(idle, empty, room), "tail-wave", f"last wave {100 * last:.0f} % full",
                f"has {waves:.2f} waves of blocks: in the last {100 * last:.0f} % of the places have a block, and SMs"
                f" are idle {idle:.0f} % of the time",
            )  # fmt: skip
    each = blocks / sms if blocks is not None and sms else 0.0
    if busiest is not None and 1 < each <= 6 and 15 <= idle <= 105 - 100 * each / -(-each // 1) and not is_short:
        return Remark(
            min(idle, room), "tail-wave", f"{blocks:,.0f} blocks for {sms:.0f} SMs",
            f"has {blocks:,.0f} blocks for {sms:.0f} SMs, so that some have one more than others, and SMs are idle"
            f" {idle:.0f} % of the time",
        )  # fmt: skip
    if busiest is None or mean is None or is_short or (waves is not None and waves < 1 and (blocks is None or not sms)):
        return None
    lanes = WARP * metrics.get("warp_execution_efficiency", 100.0) / 100
    loops = (
        f"; of a warp {lanes:.0f} threads are active: single threads loop over long items" if lanes < WARP / 4 else ""
    )
    if active and sms and active * sms <= _FEW_WORKING:
        loops = ": one block works, or a thread of it, and the others are done"
    return Remark(
        min(idle, room), "unequal-blocks", f"the mean SM works {100 - idle:.0f} % of the time",
        f"has blocks of unequal work: the busiest SM works {busiest:,.0f} cycles, the mean one"
        f" {mean:,.0f}{loops}",
    ) if idle >= 15 else None  # fmt: skip


def _gpu_sm_count(kernel: KernelRow) -> float | None:
    """The SMs of the GPU, as the report has them or as waves imply."""
    metrics = kernel.metrics
    if count := metrics.get("sm_count"):
        return count
    limits = [value for name, value in metrics.items() if name.startswith("occupancy_limit_")]
    blocks, waves = metrics.get("blocks"), metrics.get("waves_per_sm")
    return round(blocks / (waves * min(limits))) if blocks and waves and limits and min(limits) else None


def _launch_size(grid: str, block: str) -> tuple[float, float]:
    """The blocks of a launch, and the threads of each, by their shapes: (2, 1, 1), or 2,1,1."""
    return math.prod(map(int, _NUMBER.findall(grid))), math.prod(map(int, _NUMBER.findall(block)))


def _launch_size_text(blocks: float, threads: float) -> str:
    return f"{blocks:,.0f} {'block' if blocks == 1 else 'blocks'} of {threads:,.0f} threads"


def launch_shape_text(grid: str, block: str) -> str:
    """The blocks of a launch and the threads of each, in words."""
    return _launch_size_text(*_launch_size(grid, block))


def _handful_remark(kernel: KernelRow) -> Remark | None:
    """A kernel whose launches have so few blocks that they use a small part of any GPU; None: it has more."""
    metrics = kernel.metrics
    sizes = [_launch_size(grid, block) for grid, block in kernel.shapes] or [
        (metrics.get("blocks", 0.0), metrics.get("threads_per_block", 0.0))
    ]
    blocks, threads = max(sizes)
    if not 0 < blocks <= _HANDFUL or blocks % 1 or not threads:  # a mean over launches may be of any number
        return None
    parts, sms = busy_pct_by_part(kernel), metrics.get("sm_count")
    busiest = max(parts.values(), default=0.0)
    shared = max((parts.get(name, 0.0) for name in (DRAM, L2)), default=0.0)
    count = _launch_size_text(blocks, threads)
    of_all = f" of {sms:.0f}" if sms else ""
    uses = f"uses one SM{of_all}" if blocks == 1 else f"use at most {blocks:.0f} SMs{of_all}"
    return Remark(
        100 - shared, "too-few-blocks", count,
        f"has {'at most ' if len(sizes) > 1 else ''}{count} a launch, which {uses}; its busiest part is"
        f" {busiest:.0f} % busy",
    )  # fmt: skip


def _few_blocks_remark(kernel: KernelRow, blocks: float, sms: float) -> Remark | None:
    parts = busy_pct_by_part(kernel)
    shared = max((parts.get(name, 0.0) for name in (DRAM, L2)), default=0.0)
    if (kernel.launch_ns or SHORT_NS) < SHORT_NS / 2:  # of which more blocks win nothing
        return None
    count = _block_count_text(kernel, blocks)
    of_all = f"{count} for {'' if 'sm_count' in kernel.metrics else 'some '}{sms:.0f} SMs"  # waves are rounded
    threads, busiest = kernel.metrics.get("threads_per_block", 0.0), max(parts.values(), default=0.0)
    filled = blocks * threads / (sms * THREADS_OF_SM)
    if 0 < filled < FEW_THREADS and 0 < busiest < LITTLE_PCT:  # all blocks wait: it lacks more than those of idle SMs
        text = f"{count} of {threads:,.0f} threads{of_all.removeprefix(count)}"
        return Remark(
            100 * (1 - busiest / REACHED_PCT), "too-few-blocks", text,
            f"has {text}, {100 * filled:.0f} % of the threads that the GPU holds; its busiest part is {busiest:.0f} %"
            " busy",
        )  # fmt: skip
    return Remark(
        100 * (1 - max(blocks / sms, shared / 100)), "too-few-blocks", of_all, f"has {of_all}",
    )  # fmt: skip


def _block_count_text(kernel: KernelRow, blocks: float) -> str:
    """How many blocks its launches have, from the fewest to the most; `blocks` is their mean."""
    counts = [_launch_size(grid, block)[0] for grid, block in kernel.shapes] or [blocks]
    if min(counts) < max(counts):
        return f"{min(counts):,.0f} to {max(counts):,.0f} blocks"
    return f"{blocks:,.0f} {'block' if blocks == 1 else 'blocks'}"


def few_warps_text(kernel: KernelRow) -> str:
    """That schedulers have too few warps to fill their waits, and why; empty: enough, or not measured."""
    metrics, limit = kernel.metrics, kernel.theoretical_occupancy_pct
    waves, warps = metrics.get("waves_per_sm", 1.0), metrics.get("active_warps_per_scheduler", _FEW_WARPS)
    texts = (
        [f"{waves:.1f} waves of blocks" if waves >= _SOME_WAVES else f"{waves:.1g} waves of blocks"]
        if waves < 1
        else []
    )
    texts += [f"{warps:.1f} warps a scheduler"] if warps < _FEW_WARPS else []
    if texts and waves >= 1 and limit is not None and limit < FAR_PCT:  # else all blocks have room
        texts.append(f"occupancy at most {limit:.0f} % ({kernel.occupancy_limiter or 'limited'})")
    return ", ".join(texts)


def latency_remark(kernel: KernelRow) -> Remark | None:
    """No part is at its roof: what its warps wait for, and whether more of them would fill the waits."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    busiest = max(parts.values(), default=0.0)
    if binding_part(kernel) is None or busiest >= SURELY_PCT:
        return None
    room = 100 * (1 - busiest / REACHED_PCT)
    each = kernel.launch_ns
    if each is not None and each < SHORT_NS:
        if busiest >= LITTLE_PCT:
            return None
        return _handful_remark(kernel) or Remark(
            room, "small-launches", f"too little work: {each / 1e3:.1f} us a launch",
            f"has too little work for the GPU: {each / 1e3:.1f} us a launch, its busiest part {busiest:.0f} % busy",
        )  # fmt: skip
    if kernel.stalls and 0 < _latency_stall_pct(kernel) < 100 * HALF:
        return None  # queues that are full are not emptied by more warps
    limit, waves = kernel.theoretical_occupancy_pct, metrics.get("waves_per_sm")
    reached = kernel.achieved_occupancy_pct
    threads = metrics.get("threads_per_block", 0.0)
    if reached and limit and reached < HALF * limit and (waves or 0.0) >= _MANY_WAVES and 0 < threads <= 2 * WARP:
        return Remark(
            room, "occupancy-block-size", f"blocks of {threads:.0f} threads",
            f"keeps no part busy (at most {busiest:.0f} %), and reaches {reached:.0f} of {limit:.0f} % of the warps:"
            f" its {metrics.get('blocks', 0.0):,.0f} blocks of {threads:.0f} threads end as fast as others begin",
        )  # fmt: skip
    if limit is not None and (waves is None or waves >= 1) and (reached is None or reached >= HALF * limit):
        # the fewer warps there are, the nearer to its roof a part may be and still gain by more of them
        bound = next((bound for most_warps, bound in _WORTH_MORE_WARPS if limit <= most_warps), 0.0)
        waits = [stall for stall in kernel.stalls[:1] if stall.reason == "memory dependency"]
        if busiest < bound and (busiest < BOUND_PCT or waits):
            return _low_occupancy_remark(kernel, limit, busiest)
    if not COUNTED & metrics.keys():
        return None
    if not kernel.stalls or (sm_active_share(metrics) or 0.0) < _EVENLY:
        return _small_grid_remark(kernel, busiest)
    if busiest < _NO_ROOF_PCT and (reached or 0.0) >= _FULL_PCT and _memory_wait_pct(kernel) >= _WAITING_PCT:
        return _memory_latency_remark(kernel, busiest)
    return _dependency_chain_remark(kernel, busiest) if busiest < FAR_PCT else None


def _small_grid_remark(kernel: KernelRow, busiest: float) -> Remark | None:
    """A grid that leaves most places for warps empty, though each SM has a block; None: it fills more."""
    waves = kernel.metrics.get("waves_per_sm")
    blocks, threads = (kernel.metrics.get(name) for name in ("blocks", "threads_per_block"))
    if waves is None or waves > _EMPTY_WAVES or busiest >= FAR_PCT or not blocks or not threads:
        return None
    return Remark(
        100 * (1 - max(waves, busiest / REACHED_PCT)), "too-few-blocks",
        f"{blocks:,.0f} blocks fill {100 * waves:.0f} % of the GPU",
        f"has {_launch_size_text(blocks, threads)}, which fill {100 * waves:.0f} % of the GPU; its busiest part is"
        f" {busiest:.0f} % busy",
    )  # fmt: skip


def _memory_wait_pct(kernel: KernelRow) -> float:
    """How much of the active warps wait for memory, or at barriers behind such waits, %."""
    return sum(kernel.metrics.get(f"stall_{reason}", 0.0) for reason in ("memory_dependency", "barrier"))


def _memory_latency_remark(kernel: KernelRow, busiest: float) -> Remark:
    """Warps enough, all of which wait for memory: only more loads in flight a thread help."""
    barriers = kernel.metrics.get("stall_barrier", 0.0)
    waits = f"{kernel.metrics.get('stall_memory_dependency', 0.0):.0f} % of the active warps wait for memory"
    waits += f" and {barriers:.0f} % at barriers" if barriers >= LITTLE_PCT else ""
    return Remark(
        100 * (1 - busiest / REACHED_PCT), "memory-latency", f"memory's latency, busiest part {busiest:.0f} %",
        f"keeps no part of the GPU busy (at most {busiest:.0f} %) with {kernel.achieved_occupancy_pct:.0f} % of the"
        f" warps that an SM holds: {waits}",
    )  # fmt: skip


def _latency_stall_pct(kernel: KernelRow) -> float:
    """How much of the active warps wait for results, %: those waits other warps can fill."""
    reasons = ("memory_dependency", "short_scoreboard", "wait")
    return sum(kernel.metrics.get(f"stall_{reason}", 0.0) for reason in reasons)


def barrier_or_fetch_stall_remark(kernel: KernelRow) -> Remark | None:
    """Warps that wait at barriers or for instructions most of all, where no part is at its roof.

    The unit that carries out barriers has no counter of its own: it is what keeps SMs busy where no other part does.
    """
    waits = {reason: kernel.metrics.get(f"stall_{reason}", 0.0) for reason in (*_WAITS, "memory_dependency")}
    is_by_barriers = is_shared_memory_busy_with_barriers(kernel)
    if not is_by_barriers:  # whose own queue it is else
        waits["shared_memory"] = sum(kernel.metrics.get(f"stall_{reason}", 0.0) for reason in _OF_SHARED_MEMORY)
    most = max(waits, key=lambda reason: waits[reason])
    of_barriers, min_stall_pct = set[str](), STALLED_PCT
    if most == "barrier":
        of_barriers = {COMPUTING, SHARED, L1, CACHES} if is_by_barriers else {COMPUTING}
        min_stall_pct = STALLED_PCT / 2 if len(of_barriers) > 1 else min_stall_pct
    parts = busy_pct_by_part(kernel)
    busiest = max((share for part, share in parts.items() if part not in of_barriers), default=0.0)
    if most not in _WAITS or waits[most] < min_stall_pct or binding_part(kernel) is None or busiest >= SURELY_PCT:
        return None
    cause, what = _WAITS[most]
    room = 100 - 100 * busiest / REACHED_PCT
    head = f"keeps no part at its roof (at most {busiest:.0f} %)"
    if len(of_barriers) > 1:
        head = f"keeps shared memory busy with its barriers, other parts at most {busiest:.0f} %"
    return Remark(
        room if len(of_barriers) > 1 else min(room, waits[most]), cause, f"{waits[most]:.0f} % {what}",
        f"{head}: {waits[most]:.0f} % of the active warps {what}",
    )  # fmt: skip


def block_reduction_remark(kernel: KernelRow) -> Remark | None:
    """A value a thread, which each block combines in shared memory: its barriers and steps outweigh what it loads."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    part, (loads, stores) = busiest_part(kernel), global_memory_instructions(kernel)
    if parts.get(part, 0.0) < BOUND_PCT or part in {DRAM, L2} or not is_shared_memory_busy_with_barriers(kernel):
        return None
    if not loads or stores is None or stores > loads / 4 or loads * WARP > 2 * metrics.get("threads", 0.0):
        return None
    accesses = sum(metrics[f"inst_executed_shared_{kind}"] for kind in ("loads", "stores"))
    return Remark(
        gain_pct(kernel, dict.fromkeys(parts.keys() - {DRAM, L2}, 0.25)), "barriers", "a value a thread, and barriers",
        f"has blocks that combine a value or two of each thread: shared memory is {parts[part]:.0f} % busy, with"
        f" {metrics['shared_wavefronts'] / accesses:.1f} passes for each access, most of them of barriers",
    )  # fmt: skip


def is_shared_memory_busy_with_barriers(kernel: KernelRow) -> bool:
    """Whether shared memory carries more than its accesses can need: barriers pass through it too.

    So do the operands of tensor cores, which are no loads: where those are at work nobody knows.
    """
    metrics = kernel.metrics
    if (kernel.tensor_pct or 0.0) >= LEAST_TENSOR_PCT:
        return False
    passes, loads, stores = (
        metrics.get(name) for name in ("shared_wavefronts", "inst_executed_shared_loads", "inst_executed_shared_stores")
    )
    if passes is None or loads is None or stores is None:
        return False
    return passes - metrics.get("shared_bank_conflicts", 0.0) > _WIDEST_ACCESS * (loads + stores)


def small_tiles_remark(kernel: KernelRow) -> Remark | None:
    """Tensor cores that wait for shared memory: each operand that it hands on enters too few products.

    Tiles of twice the side halve what passes through shared memory, and what L2 brings there.
    """
    parts, tensor = busy_pct_by_part(kernel), kernel.tensor_pct
    metrics = kernel.metrics
    if binding_part(kernel) != SHARED or tensor is None or not LEAST_TENSOR_PCT <= tensor < FAR_PCT:
        return None
    waits = sum(metrics.get(f"stall_{reason}", 0.0) for reason in _OF_SHARED_MEMORY)
    if waits <= metrics.get("stall_barrier", 0.0):
        return None
    if metrics.get("shared_bank_conflicts", 0.0) >= CONFLICTS * metrics.get("shared_wavefronts", math.inf):
        return None
    return Remark(
        gain_pct(kernel, dict.fromkeys((SHARED, L1, CACHES, L2), HALF)), "small-tiles",
        f"tensor cores {tensor:.0f} % busy, behind shared memory",
        f"uses what shared memory holds too few times: shared memory is {parts[SHARED]:.0f} % busy, the tensor cores"
        f" {tensor:.0f} %, and {waits:.0f} % of the active warps wait for it",
    )  # fmt: skip


_OF_SHARED_MEMORY: Final = ("mio_throttle", "short_scoreboard")  # waits for its queue, and for its data
_WAITS: Final = {
    "barrier": ("barriers", "wait at barriers"),
    "inst_fetch": ("instruction-cache", "wait for instructions"),
}
_WORTH_MORE_WARPS: Final = ((25.0, 80.0), (50.0, 70.0), (_LOW_PCT, 60.0))  # theoretical occupancy, busiest part


_LIMITERS: Final = {"registers": "occupancy-registers", "shared memory": "occupancy-shared-memory"}


def _low_occupancy_remark(kernel: KernelRow, limit: float, busiest: float) -> Remark:
    limiters = (kernel.occupancy_limiter or "").split(", ")
    # barriers bound as many blocks as an SM holds: a tie with its blocks
    word = next((limiter for limiter in reversed(limiters) if limiter != "barriers"), limiters[-1])
    blocks = kernel.metrics.get(f"occupancy_limit_{word.replace(' ', '_')}")
    an_sm = "" if blocks is None else f", {plural(round(blocks), 'block')} an SM"
    if word == "registers" and kernel.registers is not None:
        problem = f"{kernel.registers:.0f} registers a thread{an_sm}"
    elif word == "shared memory" and kernel.shared_memory_bytes is not None:
        problem = f"{kernel.shared_memory_bytes:,.0f} B of shared memory a block{an_sm}"
    else:
        problem = f"{kernel.metrics.get('threads_per_block', 0):.0f} threads a block{an_sm}"
    # a part is idle where no warp has work for it; with twice the warps that share is squared
    idle = max(0.0, 1 - busiest / 100) ** (100 / limit)
    won = 100 * (1 - busiest / min(REACHED_PCT, 100 * (1 - idle))) if busiest else 100 - limit
    if kernel.stalls:  # more warps do not shorten the other waits
        won *= min(1.0, _latency_stall_pct(kernel) / 100)
    return Remark(
        won, _LIMITERS.get(word, "occupancy-block-size"),
        f"only {limit:.0f} % of the warps fit ({word or 'limited'})",
        f"keeps no part busy, and only {limit:.0f} % of an SM's warps fit: {problem}{_stall_clause(kernel)}",
    )  # fmt: skip


def _dependency_chain_remark(kernel: KernelRow, busiest: float) -> Remark:
    occupancy = kernel.achieved_occupancy_pct
    few = "" if occupancy is None else f", with {occupancy:.0f} % of the warps that an SM holds"
    return Remark(
        100 * (1 - busiest / REACHED_PCT), "dependent-chain", f"latency: busiest part {busiest:.0f} %",
        f"keeps no part of the GPU busy (at most {busiest:.0f} %){few}{_stall_clause(kernel)}",
    )  # fmt: skip


_WAITED_FOR: Final = {
    "memory dependency": "for memory", "long scoreboard": "for memory", "wait": "for the instruction before",
    "short scoreboard": "for shared memory or special functions", "exec dependency": "for the instruction before",
}  # fmt: skip


def largest_stall_text(kernel: KernelRow) -> str:
    """What its warps wait for most; empty: not measured."""
    if not kernel.stalls:
        return ""
    stall = kernel.stalls[0]
    return f"{stall.pct:.0f} % of the active warps wait {_WAITED_FOR.get(stall.reason, f'({stall.reason})')}"


def _stall_clause(kernel: KernelRow) -> str:
    return f"; {text}" if (text := largest_stall_text(kernel)) else ""


def flushed_cache_remark(kernel: KernelRow) -> Remark | None:
    """What ncu measured with empty caches, of a kernel that DRAM binds and whose data fit L2 in the run."""
    gpu, touched = find_gpu(kernel.device_name), most_bytes_touched(kernel)
    if gpu is None or not gpu.l2_bytes or touched is None or touched > gpu.l2_bytes or binding_part(kernel) != DRAM:
        return None
    return Remark(
        LEAST_PCT, "flushed-caches", f"fits L2 ({touched / 1e6:.0f} of {gpu.l2_bytes / 1e6:.0f} MB)",
        f"touches at most {touched / 1e6:.0f} MB, which fit into L2, and ncu empties caches: its share of DRAM is not"
        " the run's",
    )  # fmt: skip
