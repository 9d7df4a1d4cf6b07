"""Rules over counters of memory: how many of the bytes that a kernel moves are used, conflicts, spills, atomics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.rules.binding import (
    ALU,
    BOUND_PCT,
    BUSY_PCT,
    CACHES,
    COMPUTING,
    CONFLICTS,
    DRAM,
    HALF,
    ISSUE,
    L1,
    L2,
    LEAST_TENSOR_PCT,
    LITTLE_PCT,
    LSU,
    MEMORY_PARTS,
    REACHED_PCT,
    ROOF_PCT,
    SHARED,
    STALLED_PCT,
    WARP,
    Remark,
    busiest_part,
    busy_part_text,
    busy_pct_by_part,
    gain_pct,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.kernels import KernelRow


__all__ = [
    "atomic_contention_remark",
    "bank_conflict_remark",
    "dram_bytes_of_launch",
    "global_accesses",
    "global_memory_instructions",
    "local_memory_remark",
    "misaligned_rows_remark",
    "most_bytes_touched",
    "narrow_access_remark",
    "repeated_reads_remark",
    "scattered_access_remark",
    "scattered_atomics_remark",
    "useful_shares_by_level",
]

_USED_PCT: Final = 62.5  # of a sector: half of it is used by a stride of two
_MISALIGNED: Final = (0.5, 0.7)  # used of sectors where runs of a sector's size straddle two: a half and more
_SCATTERED: Final = 8.0  # sectors of a request, from which its threads use other sectors than their neighbours
_FEW_ACTIVE: Final = 24.0  # threads an instruction
_OWN_SECTOR: Final = 0.9  # sectors of a request for each of them, and of all that loads move
_AGAIN: Final = 2.0  # times what DRAM moves: bytes that are asked for again and again
_NO_INDICES: Final = 4.2 / 32  # used of each sector: all loads are scattered, and none is of indices side by side
_OF_NODES: Final = 80.0  # hits of L1 (%) at least
_INDEXED, _OF_TABLE = 0.3, 90.0  # used of each sector at most; hits of L2 (%) at least
_WALK: Final = 8  # loads of a thread, by which it could use all of a sector itself
_LOCAL: Final = 0.2  # of the memory instructions
_WIDEST_SPILL: Final = 16.5  # sectors an instruction: 16 of 16 bytes a thread
_CAPPED_THREADS: Final = 256  # a block, for less of which nobody keeps registers so few
_EACH_LOCAL: Final = 3  # instructions an access: itself, its address, and the loop around it
_REPLAYED: Final = 1.5  # times the passes of 32 threads in one bank, which are 32: more are of atomic operations alone
_NARROW: Final = 2.2  # bytes a thread
_INTEGERS_A_MOVE: Final = 10  # integer instructions for each memory instruction: address, unpacking, a sum
_FULL_REGISTERS: Final = 250  # of 255 a thread
_REGISTER_STEP: Final = 8  # limits of registers are multiples of it
_READ_AGAIN: Final = 1.25  # times the program's memory
_DRIVER_BYTES: Final = 0.5e9  # of that memory: what the driver takes itself on H100 and H200
_LOADS_A_STORE: Final = 2.0  # where neither was counted
_PASSES: Final = 2.5  # through L1 for each instruction: a copy by 16 bytes a thread takes 2.4
_LOADED_OFTEN: Final = 8.0  # loads a store to local memory


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


def global_accesses(kernel: KernelRow) -> list[_Access]:
    """The loads and the stores of global memory, as far as counters know them."""
    metrics = kernel.metrics
    accesses = []
    for (word, kind), requests in zip(_ACCESSES, global_memory_instructions(kernel), strict=True):
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


def scattered_access_remark(kernel: KernelRow) -> Remark | None:
    """Sectors of global memory of which threads use little, in the level of memory that binds."""
    accesses = global_accesses(kernel)
    bad = [access for access in accesses if access.is_scattered]
    parts = busy_pct_by_part(kernel)
    part = busiest_part(kernel)
    if not bad or part not in MEMORY_PARTS - {SHARED} or parts[part] < BUSY_PCT or _moves_mostly_other_bytes(kernel):
        return None
    useful = useful_shares_by_level(kernel, accesses)
    won = gain_pct(kernel, useful)
    worst = min(bad, key=lambda access: access.used)
    cause = _scattered_access_cause(kernel, bad, useful)
    level, word = f"while {busy_part_text(part, parts[part])}", worst.word
    if len(bad) > 1 and max(access.used for access in bad) <= 2 * worst.used:
        word = "loads and stores"
    return Remark(
        won,
        cause,
        f"{worst.used * 32:.0f} of 32 bytes of a sector used",
        f"uses {worst.used * 32:.1f} of the 32 bytes of each sector that its {word} move, {level}",
    )


def _moves_mostly_other_bytes(kernel: KernelRow) -> bool:
    """Whether local memory moves more sectors than global memory, or atomic operations most of what L2 carries."""
    metrics = kernel.metrics
    moved, local = (
        sum(metrics.get(f"{kind}_transactions", 0.0) for kind in kinds)
        for kinds in (("gld", "gst"), ("local_load", "local_store"))
    )
    return local > moved or _atomic_share_of_l2(kernel) > HALF


def _atomic_share_of_l2(kernel: KernelRow) -> float:
    """What of the sectors that L2 reads, or writes if these are more, are those of atomic operations, 0 to 1.

    Where neither was measured, of all sectors.
    """
    sectors = [kernel.metrics.get(f"l2_{way}_transactions", 0.0) for way in ("read", "write")]
    if not any(sectors):
        sectors = [kernel.metrics.get("l2_sectors", kernel.metrics.get("l2_bytes", 0.0) / 32)]
    return min(kernel.metrics.get("l2_atomic_transactions", 0.0) / 2 / max(sectors), 1.0) if any(sectors) else 0.0


def misaligned_rows_remark(kernel: KernelRow) -> Remark | None:
    """Runs of bytes that begin between sectors, loads and stores alike: two sectors move where one would do."""
    (least, most), accesses = _MISALIGNED, global_accesses(kernel)
    remark = scattered_access_remark(kernel)
    if remark is None or len(accesses) < len(_ACCESSES) or not all(least <= access.used <= most for access in accesses):
        return None
    fact = f"{remark.fact}: loads and stores alike, as where rows begin between sectors"
    return remark._replace(cause="misaligned-rows", fact=fact)


def useful_shares_by_level(kernel: KernelRow, accesses: list[_Access]) -> dict[str, float]:
    """The share of what each level moves that threads asked for; 1 where it is not known.

    A byte that several instructions use may be counted several times: then less is called waste than there is.
    """
    metrics = kernel.metrics
    known = [(access.used, access.sectors) for access in accesses if access.sectors is not None]
    if len(known) < len(accesses):
        used = max(access.used for access in accesses)
        misses = 1 - metrics.get("tex_cache_hit_rate", 100.0) / 100
        by_word = {access.word: access.used for access in accesses}
        is_both = by_word.keys() == {word for word, _ in _ACCESSES}
        loads, stores = _LOADS_A_STORE, 1.0
        if is_both and _has_wide_requests(kernel):  # bytes, of which those that are scattered fill L1
            loads, stores = loads / by_word["loads"], stores / by_word["stores"]
            used = (_LOADS_A_STORE + 1) / (loads + stores)
        if is_both:  # L1 hands on all stores, and of loads what it lacks
            asked = loads * by_word["loads"] + stores * by_word["stores"]
            to_l2 = min(1.0, asked / (loads * misses + stores))
        else:
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
    beyond_l2 = (dram_bytes_of_launch(kernel) or 0.0) / 32
    return {
        L1: share, CACHES: share,
        L2: min(1.0, asked / beyond_l1) if beyond_l1 else 1.0,
        DRAM: min(1.0, asked / beyond_l2) if beyond_l2 else 1.0,
    }  # fmt: skip


def _has_wide_requests(kernel: KernelRow) -> bool:
    """Whether L1 takes more passes for an instruction of any kind than loads and stores side by side can need.

    Those of 16 bytes a thread need four passes, and come with other instructions.
    """
    metrics = kernel.metrics
    share, instructions = metrics.get("l1_throughput", 0.0), metrics.get("inst_executed")
    if share < BUSY_PCT or not instructions or (kernel.tensor_pct or 0.0) >= LEAST_TENSOR_PCT:
        return False
    cycles = metrics.get("sm_active_cycles", 0.0) * metrics.get("sm_count", 0.0)
    return share / 100 * cycles - metrics.get("shared_wavefronts", 0.0) >= _PASSES * instructions


def dram_bytes_of_launch(kernel: KernelRow) -> float | None:
    """The bytes that a launch moves from and to DRAM; None: not measured."""
    rate, time = kernel.dram_bytes_per_s, kernel.metrics.get("duration")
    return kernel.metrics.get("dram_bytes", None if rate is None or time is None else rate * time / 1e9)


def most_bytes_touched(kernel: KernelRow) -> float | None:
    """The most bytes that a launch can touch; None: not measured.

    What DRAM moves may be less: what is written may still lie in L2 at the end.
    """
    metrics = kernel.metrics
    stored = metrics.get("gst_transactions")
    loaded = [
        metrics[name] * width for name, width in (("dram_read_bytes", 1), ("gld_transactions", 32)) if name in metrics
    ]
    if stored is None or not loaded:
        return None
    written = sum(metrics.get(name, 0.0) for name in ("local_store_transactions", "l2_atomic_transactions"))
    return min(loaded) + 32 * (stored + written)


def _scattered_access_cause(kernel: KernelRow, bad: list[_Access], useful: Mapping[str, float]) -> str:
    """What scatters them, as far as counters tell: whether the rest of each sector is thrown away, and by whom.

    A gather loads its indices side by side too: its mean request has fewer sectors than threads. DRAM, which serves
    neighbouring sectors best, is less busy with one than L2. From a table that L2 holds it loads each byte again and
    again; where rows and columns cross, DRAM moves what is asked for, or L1 has the rest of a sector.
    """
    parts, access = busy_pct_by_part(kernel), bad[0]
    if _reads_apart(kernel, bad):
        return "random-gather"
    is_loads = len(bad) == 1 and access.word == "loads"
    is_rest_used = useful[DRAM] >= _USED_PCT / 100  # by others: rows and columns
    asked, moved = 32 * access.used * (access.sectors or 0.0), dram_bytes_of_launch(kernel)
    l1_hits = kernel.metrics.get("tex_cache_hit_rate", 100.0)
    if is_rest_used and not (is_loads and moved and asked >= _AGAIN * moved and l1_hits < 100 * HALF):
        return "uncoalesced-access"
    has_indices = access.each is not None and access.each < WARP - 1 and access.used > _NO_INDICES
    is_stride = access.each is not None and access.each >= WARP - 0.1 and access.used > _NO_INDICES
    if is_loads and (has_indices or (not is_stride and parts.get(DRAM, 0.0) < min(parts.get(L2, 0.0), ROOF_PCT))):
        return "random-gather"
    threads, (loads, _) = kernel.metrics.get("threads"), global_memory_instructions(kernel)
    walks = threads is None or loads is None or loads * WARP >= _WALK * threads
    if l1_hits < LITTLE_PCT and kernel.metrics.get("l2_tex_hit_rate", 100.0) < 100 * HALF:
        walks = False  # the rest of a sector is in no cache when its turn comes, or has none
    return "uncoalesced-access" if is_rest_used or walks else "array-of-structures"


def _reads_apart(kernel: KernelRow, bad: Sequence[_Access]) -> bool:
    """Whether each of the few active threads reads a sector of its own, as of lists; a stride has all active."""
    lanes, threads = (kernel.metrics.get(name) for name in ("warp_execution_efficiency", "threads_per_block"))
    loads, moved = bad[0], sum(access.sectors or 0.0 for access in bad)
    if lanes is None or loads.word != "loads" or (threads or 0.0) < WARP:
        return False
    active = WARP * lanes / 100
    are_stores_better = all(loads.used <= HALF * access.used for access in bad[1:])
    if active < _FEW_ACTIVE and are_stores_better and kernel.metrics.get("tex_cache_hit_rate", 0.0) >= _OF_NODES:
        return True  # each walks through structures of its own, of which L1 has the next members
    if loads.each is None:  # not counted: indices are loaded side by side, and what they name is in L2
        is_table = kernel.metrics.get("l2_tex_hit_rate", 0.0) >= _OF_TABLE
        return active < _FEW_ACTIVE and _NO_INDICES < loads.used < _INDEXED and is_table
    if loads.each >= WARP - 0.5:  # all threads load, and fewer go on
        return False
    return active < _FEW_ACTIVE and loads.each >= _OWN_SECTOR * active and (loads.sectors or 0.0) >= _OWN_SECTOR * moved


def narrow_access_remark(kernel: KernelRow) -> Remark | None:
    """Memory instructions of 1 or 2 bytes a thread: L1, the load-store unit, issuing or the wait for memory binds.

    So does the integer arithmetic that comes with each of them, where it is little.
    """
    parts = busy_pct_by_part(kernel)
    part, accesses = busiest_part(kernel), global_accesses(kernel)
    busy = parts.get(part, 0.0)
    moves = WARP * sum(filter(None, global_memory_instructions(kernel)))
    has_few_integers = kernel.metrics.get("inst_integer", math.inf) <= _INTEGERS_A_MOVE * moves
    binds = busy >= BOUND_PCT and (part in {L1, LSU, ISSUE, CACHES, COMPUTING} or (part == ALU and has_few_integers))
    waits = LITTLE_PCT <= busy < ROOF_PCT and kernel.metrics.get("stall_memory_dependency", 0.0) >= STALLED_PCT
    if not accesses or not (binds or waits):
        return None
    share = kernel.metrics.get("narrow_access_share")
    widths = [access.each * access.used for access in accesses if access.each]  # bytes a thread
    is_narrow = 0 < max(widths, default=0.0) <= _NARROW and min(access.used for access in accesses) >= HALF
    if not (is_narrow if share is None else share >= 100 * HALF):
        return None
    quarter = dict.fromkeys((L1, LSU, ISSUE, CACHES, COMPUTING, *([ALU] if has_few_integers else [])), 0.25)
    if all(access.each is not None and access.each <= 1 for access in accesses):
        quarter[L2] = 0.25  # which is busy with requests of one sector each
    text = f"{share:.0f} % of its memory instructions move" if share is not None else "its memory instructions move"
    return Remark(
        gain_pct(kernel, quarter) if binds else 100 * (1 - max(0.25, busy / REACHED_PCT)),
        "narrow-access", "1 or 2 bytes a thread and instruction",
        f"loads and stores little at once: {text} 1 or 2 bytes a thread"
        + (f", while {busy_part_text(part, parts[part])}" if binds else ", and no part is at its roof")
        + ("" if DRAM not in parts else f" (DRAM {parts[DRAM]:.0f} %)"),
    )  # fmt: skip


def bank_conflict_remark(kernel: KernelRow) -> Remark | None:
    """Passes through shared memory that conflicts of banks add."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    added, wavefronts = metrics.get("shared_bank_conflicts"), metrics.get("shared_wavefronts")
    part = busiest_part(kernel)
    if added and not wavefronts and not parts.keys() & MEMORY_PARTS:
        return _bank_conflict_remark_by_cycles(kernel, added)
    if not added or not wavefronts or added < CONFLICTS * wavefronts or part not in {L1, SHARED, CACHES}:
        return None
    if parts[part] < BUSY_PCT:
        return None
    share, whole = (
        metrics.get("shared_utilization"),
        metrics.get("l1_wavefront_utilization", metrics.get("l1_throughput")),
    )
    every = metrics.get("l1_wavefronts") or (wavefronts * whole / share if share and whole else wavefronts)
    left = max(0.0, 1 - added / max(every, wavefronts))
    won = gain_pct(kernel, dict.fromkeys((L1, SHARED, CACHES), left))
    loads, stores = metrics.get("inst_executed_shared_loads"), metrics.get("inst_executed_shared_stores")
    if (
        loads is not None and stores is not None and wavefronts > _REPLAYED * WARP * (loads + stores)
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
    if not sm_count or not cycles or added < CONFLICTS * sm_count * cycles:
        return None
    share = min(100.0, 100 * added / (sm_count * cycles))
    return Remark(
        share, "bank-conflicts", f"bank conflicts: {share:.0f} % of the cycles",
        f"has bank conflicts: the passes that they add through shared memory take {share:.0f} % of the SMs' cycles",
    )  # fmt: skip


def global_memory_instructions(kernel: KernelRow) -> tuple[float | None, float | None]:
    """Instructions that load and store global memory; L1 has a request for each."""
    metrics = kernel.metrics
    return (
        metrics.get("inst_executed_global_loads", metrics.get("global_load_requests")),
        metrics.get("inst_executed_global_stores", metrics.get("global_store_requests")),
    )


def local_memory_remark(kernel: KernelRow) -> Remark | None:
    """Local memory: registers that spill, or arrays that are indexed at run time."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    local = metrics.get("inst_executed_local")
    loads, stores = (metrics.get(f"inst_executed_local_{kind}") for kind in ("loads", "stores"))
    if local is None and loads is not None and stores is not None:
        local = loads + stores
    shared = (metrics.get("inst_executed_shared_loads"), metrics.get("inst_executed_shared_stores"))
    others = [count for count in (*global_memory_instructions(kernel), *shared) if count is not None]
    if not local or not others or local < _LOCAL * (local + sum(others)):
        return None
    share = local / (local + sum(others))
    part = busiest_part(kernel)
    if parts.get(part, 0.0) >= BOUND_PCT and part in MEMORY_PARTS | {LSU, ISSUE, ALU, COMPUTING}:
        issued = min(1.0, _EACH_LOCAL * local / (metrics.get("inst_executed") or _EACH_LOCAL * local))
        won = gain_pct(
            kernel, dict.fromkeys((*MEMORY_PARTS, LSU), 1 - share) | dict.fromkeys((ISSUE, ALU, COMPUTING), 1 - issued)
        )
    else:
        waits = ("stall_memory_dependency", "stall_lg_throttle")
        won = share * sum(metrics.get(name, 0.0) for name in waits)
    registers = kernel.registers or 0.0
    if (spilled := metrics.get("spilling_inst")) is not None:
        spills = spilled > 0
    elif kernel.source is not None and kernel.source.indexed is not None:
        spills = kernel.source.indexed < HALF
    elif (sectors := _sectors_of_local_access(metrics)) is not None and sectors > _WIDEST_SPILL:
        spills = False  # threads are at different places of their arrays
    else:  # who spills a value loads it again, but for the last time, and then not many times
        is_reloaded = loads is None or stores is None or HALF * stores <= loads <= _LOADED_OFTEN * stores
        is_capped = registers % _REGISTER_STEP == 0 and metrics.get("threads_per_block", math.inf) >= _CAPPED_THREADS
        spills = registers >= _FULL_REGISTERS or (is_capped and is_reloaded)
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


def atomic_contention_remark(kernel: KernelRow) -> Remark | None:
    """Atomic operations on few addresses, which one slice of L2 carries out one after the other."""
    metrics, parts = kernel.metrics, busy_pct_by_part(kernel)
    operations = [metrics.get("inst_executed_global_atomics"), metrics.get("inst_executed_global_reductions")]
    atomic_sectors = metrics.get("l2_atomic_transactions", 0.0) / 2
    if not atomic_sectors and not any(operations):
        return None
    busiest, others = metrics.get("l2_throughput_max"), max(parts.values(), default=0.0)
    sectors = metrics.get("l2_sectors")
    if busiest is not None:
        if parts.get(L2, 0.0) >= ROOF_PCT and (share := _atomic_share_of_l2(kernel)) > HALF:
            return Remark(
                gain_pct(kernel, {L2: HALF}), "contended-atomics", f"atomics: {100 * share:.0f} % of L2's work",
                f"has so many atomic operations that they are {100 * share:.0f} % of what L2 carries, which is"
                f" {parts[L2]:.0f} % busy",
            )  # fmt: skip
        few = sectors is not None and atomic_sectors < 0.1 * sectors
        if few or busiest < max(BUSY_PCT, 2.5 * parts.get(L2, 0.0)) or busiest < others:
            return None
        return Remark(
            100 * (1 - others / busiest), "contended-atomics", f"atomics: one L2 slice {busiest:.0f} % busy",
            f"has atomic operations on few addresses: the busiest slice of L2 is {busiest:.0f} % busy, the mean one"
            f" {parts.get(L2, 0.0):.0f} %",
        )  # fmt: skip
    # at most one atomic sector a cycle and slice: so many of them would keep one slice busy
    cycles = metrics.get("elapsed_cycles")
    if not cycles or atomic_sectors < HALF * cycles or others >= BOUND_PCT:
        return None
    return Remark(
        100 - max(others, BOUND_PCT / 2), "contended-atomics", "atomics, and no part is busy",
        f"has {atomic_sectors:,.0f} atomic operations at L2 in {cycles:,.0f} cycles, and keeps no part busy: as many as"
        " one slice of L2 takes on few addresses",
    )  # fmt: skip


def repeated_reads_remark(kernel: KernelRow) -> Remark | None:
    """DRAM at its roof, with more bytes read in a launch than the program holds on the GPU: the same data come again.

    L2 is as busy then with what it fetches as with what it hands on.
    """
    parts, held, read = busy_pct_by_part(kernel), kernel.program_bytes, _dram_bytes_read(kernel)
    if held is None or read is None or read < _READ_AGAIN * held:
        return None
    if parts.get(DRAM, 0.0) < ROOF_PCT or busiest_part(kernel) not in {DRAM, L2}:
        return None
    left = {DRAM: max(0.0, held - _DRIVER_BYTES) / read, L2: HALF}
    return Remark(
        gain_pct(kernel, left), "l2-capacity", "the same data come from DRAM again",
        f"reads {read / 1e9:.3g} GB from DRAM in a launch, {read / held:.1f} times all that the program holds on the"
        f" GPU ({held / 1e9:.3g} GB), while {busy_part_text(DRAM, parts[DRAM])}: the same data come again, past L2",
    )  # fmt: skip


def scattered_atomics_remark(kernel: KernelRow) -> Remark | None:
    """Atomic operations whose data L2 does not hold: beyond loads and stores DRAM moves a sector for most of them."""
    metrics = kernel.metrics
    atomics, moved, hit = (metrics.get(name) for name in ("l2_atomic_transactions", "dram_bytes", "l2_tex_hit_rate"))
    if not atomics or moved is None or hit is None or metrics.get("stall_memory_dependency", 0.0) < 100 * HALF:
        return None
    atomic_bytes = moved - 32 * (metrics.get("gld_transactions", 0.0) + metrics.get("gst_transactions", 0.0))
    if not 32 * HALF * atomics <= atomic_bytes <= 3 * 32 * atomics:  # read, and written back
        return None
    if atomic_bytes < HALF * moved:  # what else it loads is not in L2
        return None
    return Remark(
        HALF * (100 - hit), "l2-capacity", "atomic operations past L2",
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
