"""Rules over counters: which part of the GPU binds a kernel, and how much of what that part carries is useful.

What a cure wins is the wasted share of the part that binds, down to what binds next: the kernel is taken to keep its
distance from the roof. Only where nothing is wasted is a kernel at its roof, and that is said too. A rule speaks where
its counters were measured, and of the kernel of which most could be won. Names decide nothing but whether a kernel is a
library's, which can only be called differently.
"""

from __future__ import annotations

import math
import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.kernels import KernelRow, sm_active_share
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.gaps import detect_framework
from nsw.analysis.rules.hits import Context, Hit
from nsw.metrics import find_chip, ncu_metric_request
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.kernels import Advice

__all__ = [
    "LATENCY",
    "RULES",
    "binding_part",
    "busiest_part_pct",
    "follow_up_metrics_by_kernel",
    "is_compute_bound",
    "is_library_kernel_name",
    "kernel_advice_text",
    "launch_shape_text",
    "missing_counters_of_largest_kernel",
    "names_limit",
    "reportable_remarks",
    "rule_sentence",
]

LATENCY: Final = "latency"
DRAM, L2, L1, SHARED, CACHES, MEMORY = "DRAM", "L2", "L1", "shared memory", "L1 or L2", "memory"
FP64, XU, FMA, ALU, LSU, TENSOR = "FP64 pipe", "XU pipe", "FMA pipe", "ALU pipe", "load-store unit", "tensor cores"
ISSUE, COMPUTING = "issue slots", "SM"
_MEMORY: Final = frozenset({DRAM, L2, L1, SHARED, CACHES, MEMORY})
_BOUND_PCT: Final = 60.0  # of a part's peak, from which a kernel is bound by it, as ncu says too
_SURELY_PCT: Final = 80.0  # where the other parts were not measured
_ROOF_PCT: Final = 75.0  # from which a part is at its roof: DRAM reaches some 92 % at most
_FEEDS_PCT: Final = 5.0  # that memory may be busier than the tensor cores which it feeds, and L2 than DRAM
_DIVIDES_PCT: Final = 45.0  # of a pipe's peak, from which divisions bind: each is a chain of dependent instructions
_WITH_RECIPROCALS: Final = 1.3  # instructions of the XU pipe for each that converts: a division has its reciprocal too
_BUSY_PCT: Final = 30.0  # of a level of memory, below which its waste delays nothing
_WORTH_PCT: Final = 5.0  # of the kernels' time that could be won
_LEAST_PCT: Final = 10.0  # of a kernel's time, likewise
_MUCH_PCT: Final = 10.0  # of the kernels' time, from which what binds a healthy kernel is said
_USED_PCT: Final = 62.5  # of a sector: half of it is used by a stride of two
_SCATTERED: Final = 8.0  # sectors of a request, from which its threads use other sectors than their neighbours
_AGAIN: Final = 2.0  # times what DRAM moves: bytes that are asked for again and again
_NO_INDICES: Final = 4.2 / 32  # used of each sector: all loads are scattered, and none is of indices side by side
_WALK: Final = 8  # loads of a thread, by which it could use all of a sector itself
_CONFLICTS: Final = 0.25  # of the wavefronts of shared memory
_LOCAL: Final = 0.2  # of the memory instructions
_WIDEST_SPILL: Final = 16.5  # sectors an instruction: 16 of 16 bytes a thread
_EACH_LOCAL: Final = 3  # instructions an access: itself, its address, and the loop around it
_LANES_PCT: Final = 62.5  # threads active an instruction: 20 of 32
_PREDICATED_PCT: Final = 45.0  # threads that are active and not predicated off: in healthy code many are off at times
_WARP: Final = 32
_REPLAYED: Final = 1.5  # times the passes of 32 threads in one bank, which are 32: more are of atomic operations alone
_SHORT_NS: Final = 10e3
_LITTLE_PCT: Final = 10.0
_HANDFUL: Final = 4  # blocks, which are too few for any GPU
_NUMBER: Final = re.compile(r"\d+")
_CLOCK_BOUND_PCT: Final = 90.0  # of the kernels' time, from which a program's time follows the clock of the SMs
_LOW_PCT: Final = 75.0  # theoretical occupancy
_HALF: Final = 0.5
_FAR_PCT: Final = 50.0  # of a part's peak, below which a kernel is surely far from its roof
_REACHED_PCT: Final = 95.0  # of a part's peak: what kernels with enough in flight reach
_NARROW: Final = 2.2  # bytes a thread
_INTEGERS_A_MOVE: Final = 10  # integer instructions for each memory instruction: address, unpacking, a sum
_EACH_SPECIAL: Final = 8  # instructions of an accurate exponential, root or division of floats, at the least
_LONG_SUM: Final = 64  # products that a stored value is the sum of, from which it may be of matrices
_HARDLY: Final = 0.02  # of the FP64 instructions
_EVENLY: Final = 0.85  # of the time that the mean SM has work, from which blocks are alike
_STALLED_PCT: Final = 30.0  # of the active warps, which a reason explains
_WIDEST_ACCESS: Final = 4.5  # passes through shared memory of an instruction without conflicts: 4, of 16 bytes a thread
_MANY_WAVES: Final = 8  # of blocks, from which how fast blocks begin decides
_FULL_REGISTERS: Final = 250  # of 255 a thread
_REGISTER_STEP: Final = 8  # limits of registers are multiples of it
_READ_AGAIN: Final = 1.25  # times the program's memory
_DRIVER_BYTES: Final = 0.5e9  # of that memory: what the driver takes itself on H100 and H200
_NEARLY_ALL, _LOADED_OFTEN = 0.9, 8.0  # loads a store to local memory

# kernels of libraries, which a user can only call differently: names that nobody gives to a kernel of his own
_LIBRARY: Final = re.compile(
    r"cublas|cudnn|cutlass|nvjet_|xmma_|(?:maxwell|volta|turing|ampere|hopper|sm\d\d)_|gemvx|splitKreduce|at::native|"
    r"(?:vectorized|unrolled|distribution)_elementwise|elementwise_kernel<|reduce_kernel<|multi_tensor_apply|"
    r"vectorized_layer_norm|CatArrayBatched|softmax_warp_|cunn_|fused_dropout_kernel_vec|max_pool_(?:for|back)ward_n|"
    r"bn_[bf]w_|op_generic_tensor|nchwToNhwc|nhwcToNchw|trt_|triton_(?:poi|red|per|tem|for)_|nccl(?:Dev)?Kernel|"
    r"\bphi::(?:funcs|fusion|kps)::|\bpaddle::|\btensorflow::|cub::|thrust::|Device(?:RadixSort|Scan|Reduce|Select)|"
    r"^(?:(?:loop|input|gemm|transpose|concatenate|scatter)_\w*fusion\w*|fusion(?:_\d+)?|wrapped_\w+)$"
)
_PYTHON_FRAMEWORKS: Final = frozenset({"pytorch", "jax"})
# what calls can change of a library's kernel
_OF_CALLS: Final = frozenset({"too-few-blocks", "small-launches"})
_OF_LIBRARIES: Final = _OF_CALLS | {"tensor-cores-unused"}


class Remark(NamedTuple):
    """What a rule says of a kernel: what could be won (%), the cause, what is wrong in a few words, and a sentence."""

    won: float
    cause: str
    what: str
    fact: str


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
        (kernel.memory_pct, MEMORY if kernel.dram_pct is None else CACHES, _MEMORY),
        (kernel.sm_pct, COMPUTING, known.keys() - _MEMORY),
    ):
        if share is not None and share > 1.1 * max((known.get(member, 0.0) for member in members), default=0.0):
            known[name] = share
    return known


def _busiest_part(parts: Mapping[str, float]) -> str:
    """The part nearest to its peak.

    Tensor cores come before the memory that feeds them, since Hopper's read shared memory, and DRAM before L2, through
    which all of its bytes pass.
    """
    part = max(parts, key=lambda name: parts[name], default="")
    if part == L2 and parts.get(DRAM, 0.0) >= max(_ROOF_PCT, parts[L2] - _FEEDS_PCT):
        part = DRAM
    return TENSOR if parts.get(TENSOR, 0.0) >= max(_ROOF_PCT, parts.get(part, 0.0) - _FEEDS_PCT) else part


def _busy_part_text(part: str, share: float) -> str:
    return f"{'' if part in _MEMORY else 'the '}{part} {'are' if part in {ISSUE, TENSOR} else 'is'} {share:.0f} % busy"


def _multiply_known(share: float | None, factor: float) -> float | None:
    return None if share is None else share * factor


def _largest_known(*shares: float | None) -> float | None:
    return max((share for share in shares if share is not None), default=None)


def _is_mostly_shared_memory(kernel: KernelRow) -> bool:
    """Whether shared memory is most of what L1 does."""
    shared, both = kernel.metrics.get("shared_wavefronts"), kernel.metrics.get("l1_wavefronts")
    if shared is not None and both:
        return shared >= _HALF * both
    share, whole = kernel.metrics.get("shared_utilization"), kernel.metrics.get("l1_throughput")
    return share is not None and whole is not None and share >= _HALF * whole


def binding_part(kernel: KernelRow) -> str | None:
    """The part that binds a kernel, or latency where none is busy; None: not measured."""
    parts = busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    if kernel.memory_pct is None or kernel.sm_pct is None:
        return part if part and parts[part] >= _SURELY_PCT else None
    return part if parts[part] >= _BOUND_PCT else LATENCY


def is_compute_bound(case: CaseSummary) -> bool:
    """Whether its GPUs are busy with kernels that a part of the SMs binds, so that its time follows their clock."""
    bound = sum(
        kernel.share_pct or 0.0
        for kernel in case.kernels
        if (part := binding_part(kernel)) is not None and part != LATENCY and part not in _MEMORY
    )
    idle = case.spent.idle_pct if case.spent is not None else None
    return bound >= _CLOCK_BOUND_PCT and idle is not None and idle <= _LITTLE_PCT


def busiest_part_pct(kernel: KernelRow) -> float:
    """How busy the part that is named as the busiest is, in per cent of its peak."""
    parts = busy_pct_by_part(kernel)
    return parts.get(_busiest_part(parts), 0.0)


def _gain_pct(kernel: KernelRow, left: Mapping[str, float]) -> float:
    """What is won (%) if of what these parts carry only such a share is left, and the kernel is as near its roof."""
    parts = busy_pct_by_part(kernel)
    now = max(parts.values(), default=0.0)
    after = max((share * left.get(name, 1.0) for name, share in parts.items()), default=0.0)
    return 100 * (1 - after / now) if now else 0.0


# --- memory -------------------------------------------------------------------------------------------------------


class _Access(NamedTuple):
    """Global loads or stores: used bytes of a sector (share), sectors a request, sectors (None: not measured)."""

    word: str
    used: float
    each: float | None
    sectors: float | None

    @property
    def is_scattered(self) -> bool:
        """Whether threads use other sectors than their neighbours, and little of each."""
        return 100 * self.used < _USED_PCT and (self.each is None or self.each >= _SCATTERED)


def _global_accesses(kernel: KernelRow) -> list[_Access]:
    metrics = kernel.metrics
    accesses = []
    for (word, kind), requests in zip(_ACCESSES, _global_memory_instructions(kernel), strict=True):
        sectors, each = metrics.get(f"{kind}_transactions"), metrics.get(f"{kind}_transactions_per_request")
        if requests and sectors is not None and each is None:
            each = sectors / requests
        elif requests is not None and each is not None and sectors is None:
            sectors = each * requests
        if used := metrics.get(f"{kind}_efficiency"):  # 0 %: it has none
            accesses.append(_Access(word, used / 100, each, sectors))
    if accesses or not (used := metrics.get("global_access_efficiency")):
        return accesses
    all_sectors = [metrics.get(f"{kind}_transactions") for _, kind in _ACCESSES]
    moved = sum(filter(None, all_sectors)) if any(all_sectors) else None
    return [_Access("loads and stores", used / 100, metrics.get("gld_transactions_per_request"), moved)]


_ACCESSES: Final = (("loads", "gld"), ("stores", "gst"))


def _scattered_access_remark(kernel: KernelRow) -> Remark | None:
    """Sectors of global memory of which threads use little, in the level of memory that binds."""
    accesses = _global_accesses(kernel)
    bad = [access for access in accesses if access.is_scattered]
    parts = busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    if not bad or part not in _MEMORY - {SHARED} or parts[part] < _BUSY_PCT:
        return None
    useful = _useful_shares_by_level(kernel, accesses)
    won = _gain_pct(kernel, useful)
    worst = min(bad, key=lambda access: access.used)
    cause = _scattered_access_cause(kernel, bad, useful)
    level = f"while {_busy_part_text(part, parts[part])}"
    return Remark(
        won,
        cause,
        f"{worst.used * 32:.0f} of 32 bytes of a sector used",
        f"uses {worst.used * 32:.1f} of the 32 bytes of each sector that its {worst.word} move, {level}",
    )


def _useful_shares_by_level(kernel: KernelRow, accesses: list[_Access]) -> dict[str, float]:
    """The share of what each level moves that threads asked for; 1 where it is not known.

    A byte that several instructions use may be counted several times: then less is called waste than there is.
    """
    metrics = kernel.metrics
    known = [(access.used, access.sectors) for access in accesses if access.sectors is not None]
    if len(known) < len(accesses):
        used = max(access.used for access in accesses)
        misses = 1 - metrics.get("tex_cache_hit_rate", 100.0) / 100
        to_l2 = min(1.0, used / misses) if misses > 0 else 1.0
        further = misses * (1 - metrics.get("l2_tex_hit_rate", 100.0) / 100)
        to_dram = min(1.0, used / further) if further > 0 else 1.0
        return {L1: used, CACHES: used, L2: to_l2, DRAM: to_dram}
    moved = sum(sectors for _, sectors in known)
    asked = sum(used * sectors for used, sectors in known)
    share = asked / moved if moved else 1.0
    sectors_of_l2 = [metrics.get(name) for name in ("l2_tex_read_transactions", "l2_tex_write_transactions")]
    beyond_l1 = sum(filter(None, sectors_of_l2)) if all(count is not None for count in sectors_of_l2) else None
    if beyond_l1 is None:
        misses = 1 - metrics.get("tex_cache_hit_rate", 0.0) / 100  # of loads; all stores go through
        beyond_l1 = sum((a.sectors or 0.0) * (misses if a.word == "loads" else 1.0) for a in accesses)
    beyond_l2 = (_dram_bytes_of_launch(kernel) or 0.0) / 32
    return {
        L1: share, CACHES: share,
        L2: min(1.0, asked / beyond_l1) if beyond_l1 else 1.0,
        DRAM: min(1.0, asked / beyond_l2) if beyond_l2 else 1.0,
    }  # fmt: skip


def _dram_bytes_of_launch(kernel: KernelRow) -> float | None:
    """What a launch moves from and to DRAM."""
    rate, time = kernel.dram_bytes_per_s, kernel.metrics.get("duration")
    return kernel.metrics.get("dram_bytes", None if rate is None or time is None else rate * time / 1e9)


def _scattered_access_cause(kernel: KernelRow, bad: list[_Access], useful: Mapping[str, float]) -> str:
    """What scatters them, as far as counters tell: whether the rest of each sector is thrown away, and by whom.

    A gather loads its indices side by side too: its mean request has fewer sectors than threads. DRAM, which serves
    neighbouring sectors best, is less busy with one than L2. From a table that L2 holds it loads each byte again and
    again; where rows and columns cross, DRAM moves what is asked for, or L1 has the rest of a sector.
    """
    parts, access = busy_pct_by_part(kernel), bad[0]
    is_loads = len(bad) == 1 and access.word == "loads"
    is_rest_used = useful[DRAM] >= _USED_PCT / 100  # by others: rows and columns
    asked, moved = 32 * access.used * (access.sectors or 0.0), _dram_bytes_of_launch(kernel)
    l1_hits = kernel.metrics.get("tex_cache_hit_rate", 100.0)
    if is_rest_used and not (is_loads and moved and asked >= _AGAIN * moved and l1_hits < 100 * _HALF):
        return "uncoalesced-access"
    has_indices = access.each is not None and access.each < _WARP - 1 and access.used > _NO_INDICES
    if is_loads and (has_indices or parts.get(DRAM, 0.0) < min(parts.get(L2, 0.0), _ROOF_PCT)):
        return "random-gather"
    threads, (loads, _) = kernel.metrics.get("threads"), _global_memory_instructions(kernel)
    walks = threads is None or loads is None or loads * _WARP >= _WALK * threads
    if l1_hits < _LITTLE_PCT and kernel.metrics.get("l2_tex_hit_rate", 100.0) < 100 * _HALF:
        walks = False  # the rest of a sector is in no cache when its turn comes, or has none
    return "uncoalesced-access" if is_rest_used or walks else "array-of-structures"


def _narrow_access_remark(kernel: KernelRow) -> Remark | None:
    """Memory instructions of 1 or 2 bytes a thread: L1, the load-store unit, issuing or the wait for memory binds.

    So does the integer arithmetic that comes with each of them, where it is little.
    """
    parts = busy_pct_by_part(kernel)
    part, accesses = _busiest_part(parts), _global_accesses(kernel)
    busy = parts.get(part, 0.0)
    moves = _WARP * sum(filter(None, _global_memory_instructions(kernel)))
    has_few_integers = kernel.metrics.get("inst_integer", math.inf) <= _INTEGERS_A_MOVE * moves
    binds = busy >= _BOUND_PCT and (part in {L1, LSU, ISSUE, CACHES, COMPUTING} or (part == ALU and has_few_integers))
    waits = _LITTLE_PCT <= busy < _ROOF_PCT and kernel.metrics.get("stall_memory_dependency", 0.0) >= _STALLED_PCT
    if not accesses or not (binds or waits):
        return None
    share = kernel.metrics.get("narrow_access_share")
    widths = [access.each * access.used for access in accesses if access.each]  # bytes a thread
    is_narrow = 0 < max(widths, default=0.0) <= _NARROW and min(access.used for access in accesses) >= _HALF
    if not (is_narrow if share is None else share >= 100 * _HALF):
        return None
    quarter = dict.fromkeys((L1, LSU, ISSUE, CACHES, COMPUTING, *([ALU] if has_few_integers else [])), 0.25)
    if all(access.each is not None and access.each <= 1 for access in accesses):
        quarter[L2] = 0.25  # which is busy with requests of one sector each
    text = f"{share:.0f} % of its memory instructions move" if share is not None else "its memory instructions move"
    return Remark(
        _gain_pct(kernel, quarter) if binds else 100 * (1 - max(0.25, busy / _REACHED_PCT)),
        "narrow-access", "1 or 2 bytes a thread and instruction",
        f"loads and stores little at once: {text} 1 or 2 bytes a thread"
        + (f", while {_busy_part_text(part, parts[part])}" if binds else ", and no part is at its roof")
        + ("" if DRAM not in parts else f" (DRAM {parts[DRAM]:.0f} %)"),
    )  # fmt: skip


def _bank_conflict_remark(kernel: KernelRow) -> Remark | None:
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    added, wavefronts = metrics.get("shared_bank_conflicts"), metrics.get("shared_wavefronts")
    part = _busiest_part(parts)
    if added and not wavefronts and not parts.keys() & _MEMORY:
        return _bank_conflict_remark_by_cycles(kernel, added)
    if not added or not wavefronts or added < _CONFLICTS * wavefronts or part not in {L1, SHARED, CACHES}:
        return None
    if parts[part] < _BUSY_PCT:
        return None
    share, whole = (
        metrics.get("shared_utilization"),
        metrics.get("l1_wavefront_utilization", metrics.get("l1_throughput")),
    )
    every = metrics.get("l1_wavefronts") or (wavefronts * whole / share if share and whole else wavefronts)
    left = max(0.0, 1 - added / max(every, wavefronts))
    won = _gain_pct(kernel, dict.fromkeys((L1, SHARED, CACHES), left))
    loads, stores = metrics.get("inst_executed_shared_loads"), metrics.get("inst_executed_shared_stores")
    if (
        loads is not None and stores is not None and wavefronts > _REPLAYED * _WARP * (loads + stores)
    ):  # more than theirs
        return Remark(
            won, "contended-atomics", "atomics on few addresses of shared memory",
            f"has atomic operations on few addresses of shared memory: repeating them is"
            f" {100 * added / wavefronts:.0f} % of its passes, and it is {parts[part]:.0f} % busy",
        )  # fmt: skip
    return Remark(
        won, "bank-conflicts",
        f"bank conflicts: {100 * added / wavefronts:.0f} % of shared memory's passes",
        f"has bank conflicts: they add {100 * added / wavefronts:.0f} % of the passes through shared memory,"
        f" which is {parts[part]:.0f} % busy",
    )  # fmt: skip


def _bank_conflict_remark_by_cycles(kernel: KernelRow, added: float) -> Remark | None:
    """Bank conflicts by the cycles that they take of the SMs, where how busy memory is was not measured.

    Args:
        kernel: The kernel.
        added: Passes through shared memory that conflicts add: each takes a cycle of an SM.
    """
    sm_count, duration_ns = kernel.metrics.get("sm_count"), kernel.launch_ns
    clock = kernel.metrics.get("sm_frequency")
    cycles = kernel.metrics.get("elapsed_cycles") or (clock * duration_ns / 1e9 if clock and duration_ns else None)
    if not sm_count or not cycles or added < _CONFLICTS * sm_count * cycles:
        return None
    share = min(100.0, 100 * added / (sm_count * cycles))
    return Remark(
        share, "bank-conflicts", f"bank conflicts: {share:.0f} % of the cycles",
        f"has bank conflicts: the passes that they add through shared memory take {share:.0f} % of the SMs' cycles",
    )  # fmt: skip


def _global_memory_instructions(kernel: KernelRow) -> tuple[float | None, float | None]:
    """Instructions that load and store global memory; L1 has a request for each."""
    metrics = kernel.metrics
    return (
        metrics.get("inst_executed_global_loads", metrics.get("global_load_requests")),
        metrics.get("inst_executed_global_stores", metrics.get("global_store_requests")),
    )


def _local_memory_remark(kernel: KernelRow) -> Remark | None:
    """Local memory: registers that spill, or arrays that are indexed at run time."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    local = metrics.get("inst_executed_local")
    loads, stores = (metrics.get(f"inst_executed_local_{kind}") for kind in ("loads", "stores"))
    if local is None and loads is not None and stores is not None:
        local = loads + stores
    shared = (metrics.get("inst_executed_shared_loads"), metrics.get("inst_executed_shared_stores"))
    others = [count for count in (*_global_memory_instructions(kernel), *shared) if count is not None]
    if not local or not others or local < _LOCAL * (local + sum(others)):
        return None
    share = local / (local + sum(others))
    part = _busiest_part(parts)
    if parts.get(part, 0.0) >= _BOUND_PCT and part in _MEMORY | {LSU, ISSUE, ALU, COMPUTING}:
        issued = min(1.0, _EACH_LOCAL * local / (metrics.get("inst_executed") or _EACH_LOCAL * local))
        won = _gain_pct(
            kernel, dict.fromkeys((*_MEMORY, LSU), 1 - share) | dict.fromkeys((ISSUE, ALU, COMPUTING), 1 - issued)
        )
    else:
        waits = ("stall_memory_dependency", "stall_lg_throttle")
        won = share * sum(metrics.get(name, 0.0) for name in waits)
    registers = kernel.registers or 0.0
    if (spilled := metrics.get("spilling_inst")) is not None:
        spills = spilled > 0
    elif kernel.source is not None and kernel.source.indexed is not None:
        spills = kernel.source.indexed < _HALF
    elif (sectors := _sectors_of_local_access(metrics)) is not None and sectors > _WIDEST_SPILL:
        spills = False  # threads are at different places of their arrays
    else:  # who spills a value loads it again, but for the last time, and then not many times
        is_reloaded = loads is None or stores is None or _HALF * stores <= loads <= _LOADED_OFTEN * stores
        spills = registers >= _FULL_REGISTERS or (registers % _REGISTER_STEP == 0 and is_reloaded)
    head = f"{100 * share:.0f} % of its memory instructions go to local memory"
    if spills:
        return Remark(
            won, "register-spills", f"spills: {100 * share:.0f} % of memory instructions",
            f"spills registers: {head}, and it uses {registers:.0f} registers a thread",
        )  # fmt: skip
    return Remark(
        won, "local-array-indexing", f"local arrays: {100 * share:.0f} % of memory instructions",
        f"keeps an array of each thread in local memory: {head}, with only {registers:.0f} registers a thread",
    )  # fmt: skip


def _sectors_of_local_access(metrics: Mapping[str, float]) -> float | None:
    """Sectors an instruction: the threads of a warp spill a value of 4 bytes side by side, into 4 sectors."""
    instructions = metrics.get("inst_executed_local_loads", 0.0) + metrics.get("inst_executed_local_stores", 0.0)
    sectors = [metrics.get(f"local_{kind}_transactions") for kind in ("load", "store")]
    return sum(filter(None, sectors)) / instructions if instructions and None not in sectors else None


def _atomic_contention_remark(kernel: KernelRow) -> Remark | None:
    """Atomic operations on few addresses, which one slice of L2 carries out one after the other."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    operations = [metrics.get("inst_executed_global_atomics"), metrics.get("inst_executed_global_reductions")]
    atomic_sectors = metrics.get("l2_atomic_transactions", 0.0) / 2
    if not atomic_sectors and not any(operations):
        return None
    busiest, others = metrics.get("l2_throughput_max"), max(parts.values(), default=0.0)
    sectors = metrics.get("l2_sectors")
    if busiest is not None:
        few = sectors is not None and atomic_sectors < 0.1 * sectors
        if few or busiest < max(_BUSY_PCT, 2.5 * parts.get(L2, 0.0)) or busiest < others:
            return None
        return Remark(
            100 * (1 - others / busiest), "contended-atomics", f"atomics: one L2 slice {busiest:.0f} % busy",
            f"has atomic operations on few addresses: the busiest slice of L2 is {busiest:.0f} % busy, the mean one"
            f" {parts.get(L2, 0.0):.0f} %",
        )  # fmt: skip
    # at most one atomic sector a cycle and slice: so many of them would keep one slice busy
    cycles = metrics.get("elapsed_cycles")
    if not cycles or atomic_sectors < _HALF * cycles or others >= _BOUND_PCT:
        return None
    return Remark(
        100 - max(others, _BOUND_PCT / 2), "contended-atomics", "atomics, and no part is busy",
        f"has {atomic_sectors:,.0f} atomic operations at L2 in {cycles:,.0f} cycles, and keeps no part busy: as many as"
        " one slice of L2 takes on few addresses",
    )  # fmt: skip


# --- instructions -------------------------------------------------------------------------------------------------


def _divergence_remark(kernel: KernelRow) -> Remark | None:
    """Instructions of which few threads of a warp take part, where instructions or latency bind."""
    lanes, switched_on = (
        kernel.metrics.get(name) for name in ("warp_execution_efficiency", "warp_nonpred_execution_efficiency")
    )
    parts = busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    if lanes is None or not lanes or (part in _MEMORY and parts[part] >= _BOUND_PCT):
        return None
    used = min(lanes, switched_on) if switched_on and switched_on < _PREDICATED_PCT else lanes
    if used > _LANES_PCT:
        return None
    threads = kernel.metrics.get("threads_per_block", float(_WARP))
    won = _gain_pct(
        kernel, {name: used / 100 for name in parts if name not in _MEMORY} | {L1: used / 100, SHARED: used / 100}
    )
    fact = f"has {used * _WARP / 100:.1f} of the 32 threads of a warp active an instruction"
    if threads % _WARP and threads < _WARP:
        return Remark(
            won, "occupancy-block-size", f"blocks of {threads:.0f} threads",
            f"{fact}: its blocks have {threads:.0f} threads, less than a warp",
        )  # fmt: skip
    return Remark(won, "divergence", f"{used * _WARP / 100:.0f} of 32 threads active", fact)


def _binding_pipe(kernel: KernelRow) -> tuple[str, float]:
    """The busiest pipe of the SM, and how busy it is, where it is what binds; else nothing."""
    parts = busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    return (part, parts[part]) if part and part not in _MEMORY and parts[part] >= _BOUND_PCT else ("", 0.0)


def _fp64_remark(kernel: KernelRow) -> Remark | None:
    """FP64 beside FP32 data, where FP64 instructions or their conversions bind, or nothing is at its roof."""
    part, busy = _binding_pipe(kernel)
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    double = metrics.get("inst_fp_64") or metrics.get("flop_count_dp")
    if not double:
        return None
    single = (metrics.get("inst_fp_32") if metrics.get("inst_fp_64") else metrics.get("flop_count_sp")) or 0.0
    converted = metrics.get("inst_bit_convert", 0.0)
    if single < 0.25 * double and converted < 0.1 * double and not _converts_half_of_loads(kernel, converted):
        return None
    widths = [access.each * access.used for access in _global_accesses(kernel) if access.each]  # bytes a thread
    if single < _HARDLY * double and widths and all(7 < width < 8.5 for width in widths):
        return None  # its data are FP64: integers are converted
    share = parts.get(FP64, 0.0)
    converts = part == XU and converted > _HALF * double
    if part in {FP64, XU, COMPUTING, ISSUE} and (share >= _HALF * busy or converts):
        gpu = find_gpu(kernel.device_name)
        rate = gpu.flop_per_s["flop_count_dp"] / gpu.flop_per_s["flop_count_sp"] if gpu else _HALF
        instructions = metrics.get("inst_executed", 0.0) * _WARP
        issued_share = (
            max(rate, 1 - double / instructions) if instructions else 1.0
        )  # FP32 functions have fewer instructions
        won = _gain_pct(kernel, {FP64: rate, COMPUTING: rate, ISSUE: issued_share, XU: 0.2 if converted else 1.0})
    elif share >= _BUSY_PCT and busiest_part_pct(kernel) < _ROOF_PCT:  # its long latencies bind, and its registers
        others = max((pct for name, pct in parts.items() if name not in {FP64, XU, ISSUE, COMPUTING}), default=0.0)
        won = min(share, 100 * (1 - others / _REACHED_PCT))
    else:
        return None
    beside = f"{converted:,.0f} conversions" if converted >= single else "FP32 arithmetic"
    also = "" if part in {"", FP64} else f", and {_busy_part_text(part, busy)}"
    return Remark(
        won, "fp64-by-accident", f"FP64 beside FP32, {part or FP64} {busy or share:.0f} % busy",
        f"computes in FP64 beside {beside}: the FP64 pipe is {share:.0f} % busy{also}",
    )  # fmt: skip


def _converts_half_of_loads(kernel: KernelRow, converted: float) -> bool:
    """Whether at least half of the FP32 values that it loads are converted: so many FP64 programs convert none."""
    loaded = sum(
        8 * access.used * (access.sectors or 0.0) for access in _global_accesses(kernel) if access.word == "loads"
    )
    return 0 < _HALF * loaded <= converted


def _integer_division_remark(kernel: KernelRow) -> Remark | None:
    """Divisions of integers, whose conversions and reciprocals are the XU pipe's; they are chains, which bind early."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    integer, converted = metrics.get("inst_integer"), metrics.get("inst_bit_convert", 0.0)
    every, part = _thread_instructions(kernel), _busiest_part(parts)
    if integer is None or not every or part not in {XU, ALU, FMA, ISSUE, COMPUTING}:
        return None
    has_reciprocals = _share_of_xu(parts) >= _WITH_RECIPROCALS * converted / every
    if parts[part] < (_DIVIDES_PCT if has_reciprocals else _BOUND_PCT):
        return None
    if converted < 0.015 * every or integer < max(0.5 * every, 2 * metrics.get("inst_fp_32", 0.0)):
        return None
    kept = 1 - 0.8 * integer / every  # of some 20 instructions of a division a few stay
    return Remark(
        _gain_pct(kernel, {XU: 0.1, ALU: kept, FMA: kept, ISSUE: kept, COMPUTING: kept}), "integer-division",
        f"integer division, {part} {parts[part]:.0f} % busy",
        f"divides integers: {100 * integer / every:.0f} % of its instructions are of integers and"
        f" {100 * converted / every:.0f} % convert them, and {_busy_part_text(part, parts[part])}",
    )  # fmt: skip


def _thread_instructions(kernel: KernelRow) -> float:
    """The instructions of all threads."""
    lanes = kernel.metrics.get("warp_execution_efficiency", 100.0) / 100
    return kernel.metrics.get("inst_executed", 0.0) * _WARP * lanes


def _share_of_xu(parts: Mapping[str, float]) -> float:
    """The share of all instructions that the XU pipe executes: half a warp's a cycle, of the four that an SM issues."""
    return parts.get(XU, 0.0) / (8 * parts[ISSUE]) if parts.get(ISSUE) else 0.0


def _special_function_remark(kernel: KernelRow) -> Remark | None:
    """Special functions, or the conversions of integer divisions, on the XU pipe."""
    part, busy = _binding_pipe(kernel)
    if _fp64_remark(kernel) is not None:  # whose conversions they are
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
        if around < _HALF:
            return None
        left = max(0.0, 1 - around)
        return Remark(
            _gain_pct(kernel, {XU: 0.0, ISSUE: left, FMA: left, ALU: left, COMPUTING: left}), "special-functions",
            f"special functions, {part} {busy:.0f} % busy",
            f"computes special functions (exponential, root, division): their unit is {parts[XU]:.0f} % busy, and the"
            f" instructions around them keep the {part} {busy:.0f} % busy",
        )  # fmt: skip
    if part != XU:
        return None
    return Remark(
        _gain_pct(kernel, {XU: 0.0, ISSUE: 1 - of_all}), "special-functions",
        f"special functions, XU pipe {busy:.0f} % busy",
        f"keeps the unit of special functions (sine, exponential, root, division) {busy:.0f} % busy",
    )  # fmt: skip


def _unfused_multiply_add_remark(kernel: KernelRow) -> Remark | None:
    """Additions and multiplications in pairs, and hardly a fused multiply-add."""
    part, busy = _binding_pipe(kernel)
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
            _gain_pct(kernel, {pipe: kept, ISSUE: kept, COMPUTING: kept}), "unfused-multiply-add",
            f"{word} multiplications and additions unfused",
            f"has {pairs:.3g} {word} additions behind as many multiplications and only {fma:.3g} fused multiply-adds,"
            f" and {_busy_part_text(part, busy)}",
        )  # fmt: skip
    return None


def _matrix_product_remark(kernel: KernelRow) -> Remark | None:
    """Fused multiply-adds alone on data of shared memory, or on rows and columns of global memory."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    if kernel.tensor_pct is None or kernel.tensor_pct > 1 or part in {DRAM, L2} or parts.get(part, 0.0) < _FAR_PCT:
        return None
    halves = metrics.get("flop_count_hp_fma") or 0.0
    add, mul, fma = (metrics.get(f"flop_count_sp_{name}") or 0.0 for name in ("add", "mul", "fma"))
    products, others, word = (
        (halves, metrics.get("flop_count_hp_add") or 0.0, "FP16") if halves > fma else (fma, add + mul, "FP32")
    )
    (loads, _), shared = _global_memory_instructions(kernel), metrics.get("inst_executed_shared_loads")
    if not products or others > 0.1 * products or loads is None or shared is None:
        return None
    if products < 0.25 * _WARP * metrics.get("inst_executed", 0.0):  # constants are moved by FP16 multiply-adds too
        return None
    if (parts.get(XU) or 0.0) > 5:
        return None
    stored = sum(
        8 * access.used * (access.sectors or 0.0) for access in _global_accesses(kernel) if access.word == "stores"
    )
    if 0 < products < _LONG_SUM * stored:  # a stencil or a small filter: no tile of tensor cores is filled
        return None
    warps = products / _WARP
    from_shared = shared >= 0.03 * warps and (metrics.get("stall_barrier") or 0.0) > 0
    each = metrics.get("gld_transactions_per_request")
    # half of the loads read one value for the whole warp, the other half neighbouring ones
    broadcast = loads >= 0.1 * warps and each is not None and 1.2 <= each <= 2.9 and loads <= 2.2 * warps
    if not (from_shared or broadcast):
        return None
    return Remark(
        _gain_pct(
            kernel, {FMA: 0.1, ISSUE: 0.2, COMPUTING: 0.2, L1: 0.4, SHARED: 0.4, CACHES: 0.4, LSU: 0.2, ALU: 0.3}
        ),
        "tensor-cores-unused",
        f"{word} multiply-adds, tensor cores idle",
        f"computes a product by {word} multiply-adds ({part} {parts[part]:.0f} % busy), and tensor cores are idle",
    )


# --- launch and latency -------------------------------------------------------------------------------------------


def _unbalanced_grid_remark(kernel: KernelRow) -> Remark | None:
    """Blocks that leave SMs without work: too few, a last wave that is nearly empty, or blocks of unequal work."""
    metrics = kernel.metrics
    blocks, waves, sms = metrics.get("blocks"), metrics.get("waves_per_sm"), _gpu_sm_count(kernel)
    active = sm_active_share(kernel.metrics)
    busiest, mean = metrics.get("sm_active_cycles_max"), metrics.get("sm_active_cycles")
    if busiest and mean:
        active = mean / busiest
    if blocks is not None and sms and blocks < sms:
        return _few_blocks_remark(kernel, blocks, sms)
    if not sms and (kernel.launch_ns or 0.0) >= _SHORT_NS and (few := _handful_remark(kernel)) is not None:
        return few
    if active is None:
        return None
    idle = 100 * (1 - active)
    room = (
        100 - 100 * busiest_part_pct(kernel) / _REACHED_PCT
    )  # what SMs share may be busy enough without those that are idle
    is_short = (kernel.launch_ns or _SHORT_NS) < _SHORT_NS  # most of which is the launch itself
    if waves is not None and 1 < waves <= 6 and not is_short:
        last = waves % 1 or 1.0
        empty = 100 * (1 - waves / -(-waves // 1))
        if last <= _HALF and idle >= _HALF * empty and idle <= empty + 5:
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
    return Remark(
        min(idle, room), "unequal-blocks", f"the mean SM works {100 - idle:.0f} % of the time",
        f"has blocks of unequal work: the busiest SM works {busiest:,.0f} cycles, the mean one"
        f" {mean:,.0f}",
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
    return prod(map(int, _NUMBER.findall(grid))), prod(map(int, _NUMBER.findall(block)))


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
    if (kernel.launch_ns or _SHORT_NS) < _SHORT_NS / 2:  # of which more blocks win nothing
        return None
    count = f"{blocks:,.0f} {'block' if blocks == 1 else 'blocks'}"
    of_all = f"{count} for {'' if 'sm_count' in kernel.metrics else 'some '}{sms:.0f} SMs"  # waves are rounded
    return Remark(
        100 * (1 - max(blocks / sms, shared / 100)), "too-few-blocks", of_all, f"has {of_all}",
    )  # fmt: skip


def _latency_remark(kernel: KernelRow) -> Remark | None:
    """No part is at its roof: what its warps wait for, and whether more of them would fill the waits."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    busiest = max(parts.values(), default=0.0)
    if binding_part(kernel) is None or busiest >= _SURELY_PCT:
        return None
    room = 100 * (1 - busiest / _REACHED_PCT)
    each = kernel.launch_ns
    if each is not None and each < _SHORT_NS:
        if busiest >= _LITTLE_PCT:
            return None
        return _handful_remark(kernel) or Remark(
            room, "small-launches", f"too little work: {each / 1e3:.1f} us a launch",
            f"has too little work for the GPU: {each / 1e3:.1f} us a launch, its busiest part {busiest:.0f} % busy",
        )  # fmt: skip
    if kernel.stalls and 0 < _latency_stall_pct(kernel) < 100 * _HALF:
        return None  # queues that are full are not emptied by more warps
    limit, waves = kernel.theoretical_occupancy_pct, metrics.get("waves_per_sm")
    reached = kernel.achieved_occupancy_pct
    threads = metrics.get("threads_per_block", 0.0)
    if reached and limit and reached < _HALF * limit and (waves or 0.0) >= _MANY_WAVES and 0 < threads <= 2 * _WARP:
        return Remark(
            room, "occupancy-block-size", f"blocks of {threads:.0f} threads",
            f"keeps no part busy (at most {busiest:.0f} %), and reaches {reached:.0f} of {limit:.0f} % of the warps:"
            f" its {metrics.get('blocks', 0.0):,.0f} blocks of {threads:.0f} threads end as fast as others begin",
        )  # fmt: skip
    if limit is not None and (waves is None or waves >= 1) and (reached is None or reached >= _HALF * limit):
        # the fewer warps there are, the nearer to its roof a part may be and still gain by more of them
        bound = next((bound for most_warps, bound in _WORTH_MORE_WARPS if limit <= most_warps), 0.0)
        waits = [stall for stall in kernel.stalls[:1] if stall.reason == "memory dependency"]
        if busiest < bound and (busiest < _BOUND_PCT or waits):
            return _low_occupancy_remark(kernel, limit, busiest)
    decided = kernel.stalls and _COUNTED & metrics.keys() and (sm_active_share(metrics) or 0.0) >= _EVENLY
    return _dependency_chain_remark(kernel, busiest) if busiest < _FAR_PCT and decided else None


def _latency_stall_pct(kernel: KernelRow) -> float:
    """How much of the active warps wait for results, %: those waits other warps can fill."""
    reasons = ("memory_dependency", "short_scoreboard", "wait")
    return sum(kernel.metrics.get(f"stall_{reason}", 0.0) for reason in reasons)


def _barrier_or_fetch_stall_remark(kernel: KernelRow) -> Remark | None:
    """Warps that wait at barriers or for instructions most of all, where no part is at its roof.

    The unit that carries out barriers has no counter of its own: it is what keeps SMs busy where no other part does.
    """
    waits = {
        reason: kernel.metrics.get(f"stall_{reason}", 0.0) for reason in ("barrier", "inst_fetch", "memory_dependency")
    }
    most = max(waits, key=lambda reason: waits[reason])
    of_barriers, min_stall_pct = set[str](), _STALLED_PCT
    if most == "barrier":
        of_barriers = {COMPUTING, SHARED, L1, CACHES} if _is_shared_memory_busy_with_barriers(kernel) else {COMPUTING}
        min_stall_pct = _STALLED_PCT / 2 if len(of_barriers) > 1 else min_stall_pct
    parts = busy_pct_by_part(kernel)
    busiest = max((share for part, share in parts.items() if part not in of_barriers), default=0.0)
    if most not in _WAITS or waits[most] < min_stall_pct or binding_part(kernel) is None or busiest >= _SURELY_PCT:
        return None
    cause, what = _WAITS[most]
    room = 100 - 100 * busiest / _REACHED_PCT
    head = f"keeps no part at its roof (at most {busiest:.0f} %)"
    if len(of_barriers) > 1:
        head = f"keeps shared memory busy with its barriers, other parts at most {busiest:.0f} %"
    return Remark(
        room if len(of_barriers) > 1 else min(room, waits[most]), cause, f"{waits[most]:.0f} % {what}",
        f"{head}: {waits[most]:.0f} % of the active warps {what}",
    )  # fmt: skip


def _block_reduction_remark(kernel: KernelRow) -> Remark | None:
    """A value a thread, which each block combines in shared memory: its barriers and steps outweigh what it loads."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    part, (loads, stores) = _busiest_part(parts), _global_memory_instructions(kernel)
    if parts.get(part, 0.0) < _BOUND_PCT or part in {DRAM, L2} or not _is_shared_memory_busy_with_barriers(kernel):
        return None
    if not loads or stores is None or stores > loads / 4 or loads * _WARP > 2 * metrics.get("threads", 0.0):
        return None
    accesses = sum(metrics[f"inst_executed_shared_{kind}"] for kind in ("loads", "stores"))
    return Remark(
        _gain_pct(kernel, dict.fromkeys(parts.keys() - {DRAM, L2}, 0.25)), "barriers", "a value a thread, and barriers",
        f"has blocks that combine a value or two of each thread: shared memory is {parts[part]:.0f} % busy, with"
        f" {metrics['shared_wavefronts'] / accesses:.1f} passes for each access, most of them of barriers",
    )  # fmt: skip


def _is_shared_memory_busy_with_barriers(kernel: KernelRow) -> bool:
    """Whether shared memory carries more than its accesses can need: barriers pass through it too."""
    metrics = kernel.metrics
    passes, loads, stores = (
        metrics.get(name) for name in ("shared_wavefronts", "inst_executed_shared_loads", "inst_executed_shared_stores")
    )
    if passes is None or loads is None or stores is None:
        return False
    return passes - metrics.get("shared_bank_conflicts", 0.0) > _WIDEST_ACCESS * (loads + stores)


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
    an_sm = "" if blocks is None else f", {blocks:.0f} blocks an SM"
    if word == "registers" and kernel.registers is not None:
        problem = f"{kernel.registers:.0f} registers a thread{an_sm}"
    elif word == "shared memory" and kernel.shared_memory_bytes is not None:
        problem = f"{kernel.shared_memory_bytes:,.0f} B of shared memory a block{an_sm}"
    else:
        problem = f"{kernel.metrics.get('threads_per_block', 0):.0f} threads a block{an_sm}"
    reached = kernel.achieved_occupancy_pct
    # a part is idle where no warp has work for it; with twice the warps that share is squared
    idle = max(0.0, 1 - busiest / 100) ** (100 / limit)
    won = 100 * (1 - busiest / min(_REACHED_PCT, 100 * (1 - idle))) if busiest else 100 - limit
    if kernel.stalls:  # more warps do not shorten the other waits
        won *= min(1.0, _latency_stall_pct(kernel) / 100)
    return Remark(
        won, _LIMITERS.get(word, "occupancy-block-size"),
        f"occupancy {'' if reached is None else f'{reached:.0f} of '}{limit:.0f} % ({word or 'limited'})",
        f"keeps no part busy, and has room for {limit:.0f} % of the warps: {problem}{_largest_stall_text(kernel)}",
    )  # fmt: skip


def _dependency_chain_remark(kernel: KernelRow, busiest: float) -> Remark:
    occupancy = kernel.achieved_occupancy_pct
    few = "" if occupancy is None else f", with {occupancy:.0f} % of the warps that an SM holds"
    return Remark(
        100 * (1 - busiest / _REACHED_PCT), "dependent-chain", f"latency: busiest part {busiest:.0f} %",
        f"keeps no part of the GPU busy (at most {busiest:.0f} %){few}{_largest_stall_text(kernel)}",
    )  # fmt: skip


_WAITED_FOR: Final = {
    "memory dependency": "for memory", "long scoreboard": "for memory", "wait": "for the instruction before",
    "short scoreboard": "for shared memory or special functions", "exec dependency": "for the instruction before",
}  # fmt: skip


def _largest_stall_text(kernel: KernelRow) -> str:
    """What its warps wait for most."""
    if not kernel.stalls:
        return ""
    stall = kernel.stalls[0]
    return f"; {stall.pct:.0f} % of the active warps wait {_WAITED_FOR.get(stall.reason, f'({stall.reason})')}"


def _flushed_cache_remark(kernel: KernelRow) -> Remark | None:
    """What ncu measured with empty caches, of a kernel whose bytes fit L2 in the run."""
    gpu, moved = find_gpu(kernel.device_name), kernel.metrics.get("dram_bytes")
    if gpu is None or not gpu.l2_bytes or moved is None or (kernel.dram_pct or 0.0) < _BUSY_PCT:
        return None
    if moved > gpu.l2_bytes:
        return None
    return Remark(
        _LEAST_PCT, "flushed-caches", f"fits L2 ({moved / 1e6:.0f} of {gpu.l2_bytes / 1e6:.0f} MB)",
        f"moves {moved / 1e6:.0f} MB, which fit into L2, and ncu empties caches: its share of DRAM is not the run's",
    )  # fmt: skip


# --- what is said of a kernel -------------------------------------------------------------------------------------

_OF_PIPES: Final = "compute-bound"
_HEALTHY: Final = {DRAM: "dram-bound", L2: "l2-bound", SHARED: "shared-memory-bound"}
_LARGE_PCT: Final = 25.0  # of the kernels' time, from which a healthy kernel is named
_CLOCK: Final = 0.9  # of the base clock, at which ncu itself locks the SMs
_NCU_PCT: Final = 90.0  # no estimate of a rule is better
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
# waste, which the busiest part may be busy with
_OF_WASTE: Final = frozenset({"bank-conflicts", "uncoalesced-access", "divergence", "unfused-multiply-add"})
_NAMES_LIMIT: Final = re.compile(r" is limited by ")
_TELLS: Final = re.compile(r"\d")  # a figure of this kernel: other sentences explain what a rule is about


def _repeated_reads_remark(kernel: KernelRow) -> Remark | None:
    """DRAM at its roof, with more bytes read in a launch than the program holds on the GPU: the same data come again.

    L2 is as busy then with what it fetches as with what it hands on.
    """
    parts, held, read = busy_pct_by_part(kernel), kernel.program_bytes, _dram_bytes_read(kernel)
    if held is None or read is None or read < _READ_AGAIN * held:
        return None
    if parts.get(DRAM, 0.0) < _ROOF_PCT or _busiest_part(parts) not in {DRAM, L2}:
        return None
    left = {DRAM: max(0.0, held - _DRIVER_BYTES) / read, L2: _HALF}
    return Remark(
        _gain_pct(kernel, left), "l2-capacity", "the same data come from DRAM again",
        f"reads {read / 1e9:.3g} GB from DRAM in a launch, {read / held:.1f} times all that the program holds on the"
        f" GPU ({held / 1e9:.3g} GB), while {_busy_part_text(DRAM, parts[DRAM])}: the same data come again, past L2",
    )  # fmt: skip


def _scattered_atomics_remark(kernel: KernelRow) -> Remark | None:
    """Atomic operations whose data L2 does not hold: beyond loads and stores DRAM moves a sector for most of them."""
    metrics = kernel.metrics
    atomics, moved, hit = (metrics.get(name) for name in ("l2_atomic_transactions", "dram_bytes", "l2_tex_hit_rate"))
    if not atomics or moved is None or hit is None or metrics.get("stall_memory_dependency", 0.0) < 100 * _HALF:
        return None
    atomic_bytes = moved - 32 * (metrics.get("gld_transactions", 0.0) + metrics.get("gst_transactions", 0.0))
    if not 32 * _HALF * atomics <= atomic_bytes <= 3 * 32 * atomics:  # read, and written back
        return None
    if atomic_bytes < _HALF * moved:  # what else it loads is not in L2
        return None
    return Remark(
        _HALF * (100 - hit), "l2-capacity", "atomic operations past L2",
        f"updates {atomics:.3g} values by atomic operations, of which L2 holds {hit:.0f} %: DRAM moves"
        f" {atomic_bytes / atomics:.0f} bytes for each",
    )  # fmt: skip


def _dram_bytes_read(kernel: KernelRow) -> float | None:
    """What a launch reads from DRAM at least: all that it moves, less all that it can have written."""
    metrics = kernel.metrics
    if (read := metrics.get("dram_read_bytes")) is not None:
        return read
    moved, stored = metrics.get("dram_bytes"), metrics.get("gst_transactions")
    if moved is None or stored is None or metrics.get("inst_executed_local", 0.0):
        return None
    return moved - 32 * (stored + metrics.get("l2_atomic_transactions", 0.0))


def _kernel_remarks(kernel: KernelRow) -> list[Remark]:
    """What is wrong with a kernel, the first to cure first: waste, and latency where there is none.

    More warps may help a kernel with waste too, as long as no part is at its roof: they win of what is left then. They
    are the first to have where addresses come from data, which the program cannot choose.
    """
    few = _latency_remark(kernel)
    for tier in _TIERS:
        remarks = [remark for look in tier if (remark := look(kernel)) is not None and remark.won >= _LEAST_PCT]
        if not remarks:
            continue
        best = [max(remarks)]
        if tier is _WASTE and few is not None and few.cause.startswith("occupancy") and few.won >= _LEAST_PCT:
            is_gather = any(remark.cause == "random-gather" for remark in remarks)
            best = [few] if is_gather else [*best, few._replace(won=few.won * (1 - best[0].won / 100))]
        if tier is _WASTE:  # work that is wasted, and work that lies on few SMs, are cured apart
            uneven = [remark for remark in remarks if remark.cause == "unequal-blocks" and remark.won >= _LARGE_PCT]
            best += [remark for remark in uneven if remark not in best]
        return best if not _is_library_kernel(kernel) or best[0].cause in _OF_LIBRARIES else []
    remark = _at_roof_remark(kernel) or (None if _is_library_kernel(kernel) else _ncu_rule_remark(kernel))
    return [] if remark is None else [remark]


_WASTE: Final[tuple[Callable[[KernelRow], Remark | None], ...]] = (
    _scattered_access_remark, _narrow_access_remark, _bank_conflict_remark, _local_memory_remark,
    _atomic_contention_remark, _divergence_remark, _fp64_remark, _special_function_remark,
    _unfused_multiply_add_remark, _unbalanced_grid_remark,
    _barrier_or_fetch_stall_remark, _block_reduction_remark,
)  # fmt: skip


def _is_library_kernel(kernel: KernelRow) -> bool:
    return is_library_kernel_name(kernel.name)


def is_library_kernel_name(name: str) -> bool:
    """Whether a kernel of this name is a library's, which can only be called differently."""
    return _LIBRARY.search(name) is not None


def _low_clock_remark(kernel: KernelRow) -> Remark | None:
    """A clock far below the chip's, where the SM binds; busy tensor cores reach the power limit, which lowers it."""
    gpu, clock = find_gpu(kernel.device_name), kernel.metrics.get("sm_frequency")
    part, _ = _binding_pipe(kernel)
    base = gpu.base_clock_hz if gpu else 0.0
    is_by_power = _busiest_part(busy_pct_by_part(kernel)) == TENSOR
    if not clock or not part or is_by_power or clock >= _CLOCK * base or (kernel.launch_ns or 0.0) < _SHORT_NS:
        return None
    return Remark(
        100 * (1 - clock / base), "low-clock", f"SM clock {clock / 1e6:.0f} of at least {base / 1e6:.0f} MHz",
        f"ran at an SM clock of {clock / 1e6:.0f} MHz, below the chip's base clock of {base / 1e6:.0f} MHz",
    )  # fmt: skip


_TIERS: Final[tuple[tuple[Callable[[KernelRow], Remark | None], ...], ...]] = (
    _WASTE, (_matrix_product_remark,), (_repeated_reads_remark, _scattered_atomics_remark), (_flushed_cache_remark,),
    (_latency_remark, _low_clock_remark),
)  # fmt: skip


def _at_roof_remark(kernel: KernelRow) -> Remark | None:
    """That a part is at its roof, and that what it carries is useful; None where that was not measured."""
    parts = busy_pct_by_part(kernel)
    part = _busiest_part(parts)
    if (
        not part
        or parts[part] < (_SURELY_PCT if part == SHARED else _ROOF_PCT)
        or kernel.memory_pct is None
        or kernel.sm_pct is None
    ):
        return None
    used = _useful_work_text(kernel, part)
    cause = _HEALTHY.get(part) or (_OF_PIPES if part not in _MEMORY else None)
    if used is None or cause is None:
        return None
    state = f"{part} {parts[part]:.0f} %, {used}"
    occupancy, moved = kernel.theoretical_occupancy_pct, kernel.metrics.get("dram_bytes")
    if occupancy is not None and occupancy <= _FAR_PCT:
        state += f"; its occupancy of {occupancy:.0f} % is enough"
    if part == DRAM and moved:  # counters do not tell how large its data are
        state += f". A launch moves {moved / 1e9:.3g} GB"
    return Remark(0.0, cause, f"nothing wasted: {used}", f"is at its roof: {state}")


def _useful_work_text(kernel: KernelRow, part: str) -> str | None:
    """What of a part's work is useful, in a few words; None where it was not measured, or not all is."""
    metrics = kernel.metrics
    if part in {DRAM, L2}:
        accesses = _global_accesses(kernel)
        if not accesses:
            return None
        scattered = [access for access in accesses if access.is_scattered]
        if scattered and (any(access.sectors is None for access in accesses) or _dram_bytes_of_launch(kernel) is None):
            return None
        share = _useful_shares_by_level(kernel, accesses)[part] if scattered else 1.0
        return "all bytes used" if share >= _SURELY_PCT / 100 else None
    if part == SHARED:
        added, wavefronts = metrics.get("shared_bank_conflicts"), metrics.get("shared_wavefronts", 0.0)
        is_useful = added is not None and added <= _CONFLICTS * wavefronts
        return "no bank conflicts" if is_useful and not _is_shared_memory_busy_with_barriers(kernel) else None
    if part == TENSOR:  # a product is of a whole warp, whatever the threads do that bring its operands
        return "by matrix products"
    lanes = metrics.get("warp_execution_efficiency")
    if not metrics.keys() >= _OPERATIONS:  # which instructions they are is not known
        return None
    return "all threads active" if lanes is not None and lanes >= _SURELY_PCT else None


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
        won = min(won, 100 - 100 * busiest_part_pct(kernel) / _REACHED_PCT)
    if won < _LEAST_PCT:
        return None
    each = "" if kernel.launch_ns is None else f" of {duration(kernel.launch_ns)}"
    return Remark(
        won, cause, f"ncu's rule {advice.rule}: at most {won:.0f} %",
        f"could win at most {won:.0f} %{each} by ncu's rule {advice.rule}: {rule_sentence(advice)}",
    )  # fmt: skip


def names_limit(advice: Advice) -> bool:
    """Whether a rule names what limits the kernel."""
    return _NAMES_LIMIT.search(advice.message) is not None


def rule_sentence(advice: Advice) -> str:
    """The sentence of a rule that names what limits the kernel, else one that has a figure of it, else the first."""
    sentences = advice.message.split(". ")
    telling = (text for pattern in (_NAMES_LIMIT, _TELLS) for text in sentences if pattern.search(text))
    return next(telling, sentences[0]).rstrip(".")


def _is_worth_reporting(remark: Remark, share: float) -> bool:
    """Whether a remark on a kernel with this share (%) of the kernels' time is for a person."""
    cause = causes()[remark.cause]
    if cause.group == "healthy":
        return share >= _LARGE_PCT
    return share >= _MUCH_PCT if remark.cause == "flushed-caches" else remark.won * share >= 100 * _WORTH_PCT


def reportable_remarks(kernels: Sequence[KernelRow]) -> Iterator[tuple[KernelRow, float, Remark]]:
    """The kernels of which something is worth a remark, each with its share (%) of the kernels' time."""
    for kernel in kernels:
        share = kernel.share_pct if len(kernels) > 1 else 100.0
        if share is None:
            continue  # without shares nobody knows which kernel matters
        yield from ((kernel, share, remark) for remark in _kernel_remarks(kernel) if _is_worth_reporting(remark, share))


def follow_up_metrics_by_kernel(case: CaseSummary) -> dict[str, tuple[str, ...]]:
    """The kernels of which a second stage would tell more, each with what it measures: metrics, section:NAME."""
    asked = {kernel.name: causes()[remark.cause].asks for kernel, _, remark in reportable_remarks(case.kernels)}
    return {name: metrics for name, metrics in asked.items() if metrics}


def _kernel_hits_by_cause(case: CaseSummary, _: Context) -> list[Hit]:
    """Of each cause the kernel of which most could be won."""
    several = len(case.kernels) > 1
    best: dict[str, tuple[float, float, Remark, KernelRow]] = {}
    for kernel, share, remark in reportable_remarks(case.kernels):
        weight = remark.won * share / 100
        if (weight, share) > best.get(remark.cause, (-1.0, 0.0))[:2]:
            best[remark.cause] = (weight, share, remark, kernel)
    return [
        _remark_to_hit(case, kernel, remark, share if several else None) for _, share, remark, kernel in best.values()
    ]


def _remedy_text(cause: str, *, is_librarys: bool) -> str:
    return "larger or fused calls" if is_librarys and cause in _OF_CALLS else causes()[cause].do


def _remark_to_hit(case: CaseSummary, kernel: KernelRow, remark: Remark, share: float | None) -> Hit:
    cause = causes()[remark.cause]
    line = kernel.source.worst.get(cause.memory) if kernel.source else None
    access = "" if line is None else f"; worst access: {line}"
    share_text = "" if share is None else f" ({share:.0f} % of the kernels' time)"
    is_librarys = _is_library_kernel(kernel)
    framework = detect_framework(case)
    if is_librarys:
        framework = framework if framework in _PYTHON_FRAMEWORKS else "library"
    else:  # Triton's kernels have no parameters in their names
        framework = "triton" if framework in _PYTHON_FRAMEWORKS and "(" not in kernel.name else "cuda"
    is_short = remark.cause in _OF_CALLS and (kernel.launch_ns or _SHORT_NS) < _SHORT_NS
    says_no_more = remark.won <= _LEAST_PCT or is_short or remark.fact.startswith("could win")
    saved = "" if says_no_more else f"; this cure alone saves an estimated {remark.won:.0f} % of its time"
    at_work = 1.0 if case.idle_gpu is None else case.idle_gpu.busy_pct / 100
    return Hit(
        remark.cause, case.id, at_work * remark.won * (100.0 if share is None else share) / 100, remark.what,
        _remedy_text(remark.cause, is_librarys=is_librarys),
        f"{kernel.short_name}{share_text} {remark.fact}{access}{saved}", cause.remedy(framework), remark.what,
        "kernels", costs_accuracy=remark.what.startswith("FP32 multiply-adds"),
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
    if kernel is None or _kernel_remarks(kernel):
        return None
    if binding_part(kernel) == LATENCY and not kernel.stalls:
        return Lacking(f"what the warps of {kernel.short_name} wait for", (), ("WarpStateStats", "SchedulerStats"))
    if _is_library_kernel(kernel):
        return None
    if (part := binding_part(kernel)) is None:
        is_partly_known = kernel.memory_pct is not None or kernel.sm_pct is not None
        names = (*_OF_PARTS, *(_OF_SHARED if "shared_bank_conflicts" in kernel.metrics else ()))
        return _missing_counters(kernel, f"what binds {kernel.short_name}", names) if is_partly_known else None
    if part == LATENCY:
        subject = "whether {} waits for atomic operations"
        lacks = busiest_part_pct(kernel) < _FAR_PCT and not _COUNTED & kernel.metrics.keys()
        names = _OF_WAITS
    elif part in _MEMORY:
        lacks = not _global_accesses(kernel) if part != SHARED else "shared_bank_conflicts" not in kernel.metrics
        subject = "whether bank conflicts slow {}" if part == SHARED else "how many of the bytes that {} moves are used"
        names = _OF_SHARED if part == SHARED else _OF_GLOBAL
    else:
        subject = f"which instructions keep the {'SMs' if part == COMPUTING else part} busy in {{}}"
        lacks = not kernel.metrics.keys() >= _OPERATIONS or "warp_execution_efficiency" not in kernel.metrics
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
_COUNTED: Final = frozenset({"l2_atomic_transactions", "inst_executed_global_reductions"})
_OPERATIONS: Final = frozenset({"inst_integer", "inst_bit_convert", "special_fu_utilization", "flop_count_sp_fma"})

RULES: Final[Mapping[str, Callable[[CaseSummary, Context], list[Hit]]]] = {"kernels": _kernel_hits_by_cause}


def kernel_advice_text(kernel: KernelRow, share: float | None) -> str:
    """What to try with a kernel, in a few words; empty where little could be won, or too little was measured.

    Args:
        kernel: The kernel.
        share: Its share of the time of all kernels (%), where it is known.
    """
    worth = [remark for remark in _kernel_remarks(kernel) if _is_worth_reporting(remark, share or 0.0)]
    return _remedy_text(worth[0].cause, is_librarys=_is_library_kernel(kernel)) if worth else ""
