"""Times in which a GPU has no work, by what the host does in them; copies by what runs beside them; slow iterations.

A gap belongs to what keeps the host from launching the operation behind it: a wait for the GPU that ends in it, a
value of a few bytes that was read, an allocation, a module that is loaded, a blocking copy, input from another process,
else the launch itself.
Beside a page of unified memory that moves it belongs to the page fault, of the GPU or of the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nsw.readers.timeline.calls import (
    ALLOCATE,
    CALL_KINDS,
    COPY,
    LAUNCH,
    LOAD,
    LOCK,
    OPEN,
    OTHER,
    POLL,
    READ,
    RECEIVE,
    SPAWN,
    SYNCHRONISE,
    WRITE,
    Calls,
    Covered,
)  # fmt: skip
from nsw.readers.timeline.columns import narrowest_copy, row_slices, stretch_or_mask
from nsw.readers.timeline.phases import (
    COMMUNICATION,
    FROM_GPU,
    KERNEL,
    MEMORIES,
    MEMORY,
    TO_GPU,
    Operations,
    Phased,
    Timeline,
    of_each_device,
    order_operations,
)
from nsw.readers.timeline.statistics import IntArray, distinct
from nsw.tables import Row

__all__ = ["USE_TABLES", "use_tables", "usual_stretches"]


USE_TABLES: Final = ("gaps", "host_copies", "gpu_use", "collectives")

SLOW, EARLIER = "slow", "earlier"  # phases of gaps: of slow iterations; of their work before the steady state

COPY_WAYS: Final = ("to the GPU", "from the GPU", "on the GPU")
WAYS_OF_GAPS: Final = (
    "queued", "launch", "synchronise", "value", "copy", "allocate", "load", "migration", "input", "spawn",
)  # fmt: skip
(
    QUEUED, BY_LAUNCH, BY_WAIT, BY_VALUE, BY_COPY, BY_ALLOCATION, BY_LOAD, BY_MIGRATION, BY_INPUT, BY_SPAWN,
) = range(len(WAYS_OF_GAPS))  # fmt: skip
LENGTHS: Final = ("short", "middle", "long")
# bounds of lengths: the price of launches; a framework, a wait; the host's own work
SHORT_NS, LONG_NS = 20_000, 500_000
_FEWEST_ALIKE: Final = 10  # long gaps between operations of the same kinds and sizes: a row of their own
_BYTES_BITS: Final = 48  # more bytes than a copy has
_EARLIER: Final = 10.0  # iterations' work before the steady state that is looked at
_CLOCKS_NS: Final = 2_000  # by which the clocks of host and GPU differ, and the GPU tells the host that it is done
_GRAIN_NS: Final = 100  # of a recording: no operation begins sooner behind another for which it waits
_PAGES: Final = 256 << 10  # bytes that a page fault moves at most; a prefetch moves 2 MiB at once
_PART: Final = 0.25  # of a gap: calls that take as much explain it
_VALUE: Final = 4096  # bytes of a copy that takes no longer than one of a single value
_USUAL: Final = 1.5  # times the median: longer iterations are looked at by themselves
_LOADS_NS: Final = 1_000_000  # that a launch of a loaded kernel never takes
_PAUSES, _LITTLE = 10, 0.4  # longer iterations; the share of the time that the usual ones take at least
_SINGLE_SLOW: Final = 3.0  # times the usual iteration: a single one that is looked at by itself
_OF_LONGEST: Final = 0.05  # of the longest gap of a slow iteration: those that may explain it
_SLOW, _SLOWER_NS = 1.3, 20_000  # an iteration that is slower than the usual one
_MANY_TIMES: Final = 10.0  # times the usual iteration, from which two slow ones are more than chance
_AT_MOST: Final = 2.0  # times what the median slow iteration takes longer, that each of them counts
_FEWEST_SLOW: Final = 3
_EVEN: Final = 0.5  # of what the slow ones take longer: so much less than the median a tenth of all take
_REGULAR: Final = 0.8  # of the distances between slow iterations
_FEW_BLOCKS: Final = 32  # fewer than a quarter of the SMs of any GPU of a data centre
_COMPILES_NS: Final = 50_000_000  # a gap with a module loaded in it: libraries load in ms, compilers take longer
_MOST_COLLECTIVES: Final = 2_000  # of a GPU: those of the first iterations
_DEFAULT_STREAM: Final = 7  # the legacy default stream, as CUPTI numbers it
_LOOKED_AT: Final = 1 << 17  # kernels: those of the first iterations
_FEWEST_SAME: Final = 4  # launches, of which one of the faster quarter is the usual one
_ALIKE: Final = 1.25  # times the fastest of the same launches: the usual one takes no longer
_DELAYED, _DELAYED_NS = 1.5, 300_000  # times the usual launch; ns longer: time slices of a GPU are 1 ms and more
_WORKS: Final = 0.05  # of the kernels' time: less makes no stream that works


def use_tables(timelines: Sequence[Timeline]) -> dict[str, list[Row]]:
    """The tables gaps, host_copies, gpu_use and collectives: of each GPU that a process works on.

    Args:
        timelines: The processes.
    """
    tables: dict[str, list[Row]] = {name: [] for name in USE_TABLES}
    for timeline in timelines:
        for device, recorded in of_each_device(timeline.work, timeline.phased):
            work = order_operations(recorded, recorded.start)
            stretches = usual_stretches(work, timeline.phased, timeline.calls)
            shared = timeline.origin | ({"device": device} if device >= 0 else {})
            in_phase = shared | {"phase": "all" if timeline.phased is None else "steady"}
            busy = Covered(work.start, work.duration)
            slow = None if timeline.phased is None else _slow_stretches(timeline.phased)
            slow_gaps = [] if slow is None else _gap_rows(work, busy, slow, timeline.calls, of_longest=_OF_LONGEST)
            tables["gaps"] += [shared | {"phase": SLOW} | row for row in slow_gaps]
            use = _use_row(work, busy, stretches, timeline)
            if timeline.phased is not None and use.get("earlier_ns"):
                until = timeline.phased.edges[timeline.phased.warmup :][:1]
                earlier_gaps = _gap_rows(work, busy, (until - int(use["earlier_ns"]), until), timeline.calls)
                tables["gaps"] += [shared | {"phase": EARLIER} | row for row in earlier_gaps if row["length"] == "long"]
            for name, rows in (
                ("gaps", _gap_rows(work, busy, stretches, timeline.calls)),
                ("host_copies", _copy_rows(work, stretches)),
                ("gpu_use", [use]),
                ("collectives", _collective_rows(work, busy, timeline.phased)),
            ):  # fmt: skip
                tables[name] += [(shared if name == "collectives" else in_phase) | row for row in rows]
            del recorded, work, busy  # before those of the next GPU are copied
    return tables


def usual_stretches(work: Operations, phases: Phased | None, calls: Calls | None = None) -> tuple[IntArray, IntArray]:
    """The stretches of a timeline that are looked at: the usual iterations, else from the first kernel to the end.

    All iterations where the others take most of the time, in many pauses that load no modules: then the time is lost
    between the usual ones.

    Args:
        work: The operations of one GPU.
        phases: Its iterations; None: it has none.
        calls: What the host calls; None: not recorded.
    """
    if phases is not None:
        durations, edges = phases.durations[phases.warmup :], phases.edges[phases.warmup :]
        usual = durations <= _USUAL * np.median(durations)
        if calls is not None and durations[usual].sum() < _LITTLE * durations.sum():
            pauses = durations[~usual]
            loads = calls.time_in_kinds(LOAD).covered_within(edges[:-1][~usual], edges[1:][~usual]) > 0
            if len(pauses) >= _PAUSES and pauses[loads].sum() < pauses[~loads].sum():
                usual[:] = True
        return edges[:-1][usual], edges[1:][usual]
    kernels = work.category != MEMORY
    first = work.start[kernels] if kernels.any() else work.start
    return first.min(keepdims=True), np.array([work.last_end()])


def _is_in_stretches(times: IntArray, stretches: tuple[IntArray, IntArray]) -> Any:
    """Which of some times in order lie in one of the stretches, which follow one another."""
    near = slice(0)
    if len(times):
        near = slice(
            *np.searchsorted(stretches[1], times[:1], "right"), *np.searchsorted(stretches[0], times[-1:], "right")
        )
    bounds = np.stack([np.searchsorted(times, edge[near]) for edge in stretches], axis=1).ravel()
    is_inside = np.arange(len(bounds) + 1) % 2 == 1
    return np.repeat(is_inside, np.diff(bounds, prepend=0, append=len(times)))


def _gaps(work: Operations, busy: Covered, shortest: int) -> Iterator[IntArray]:
    """Yield the operations behind which a GPU has no work for so many ns or longer, some at a time."""
    for rows in row_slices(len(work.start) - 1):
        idle = work.start[rows.start + 1 : rows.stop + 1] - busy.reach(rows)
        yield np.flatnonzero(idle >= shortest) + rows.start


def _longest_gaps(work: Operations, busy: Covered, stretches: tuple[IntArray, IntArray]) -> IntArray:
    """The longest gap that begins in each of some stretches, ns; 0 where there is none."""
    longest = np.zeros(len(stretches[0]), np.int64)
    for gap in _gaps(work, busy, _GRAIN_NS):
        begin = busy.reach(gap)
        inside = _is_in_stretches(begin, stretches)
        number = np.searchsorted(stretches[0], begin[inside], "right") - 1
        np.maximum.at(longest, number, (work.start[gap + 1] - begin)[inside])
    return longest


def _gap_rows(
    work: Operations,
    busy: Covered,
    stretches: tuple[IntArray, IntArray],
    calls: Calls | None,
    *,
    of_longest: float = 0.0,
) -> list[Row]:
    """The gaps between a GPU's operations, one row a cause and length; of long ones also what lies before and behind.

    Args:
        work: The operations of one GPU, in order of their start.
        busy: The time that they cover.
        stretches: Starts and ends of what is looked at, ns.
        calls: What the host calls; None: not recorded.
        of_longest: The share of the longest gap of its stretch that a gap takes at least, 0 to 1.
    """
    least_ns = of_longest * _longest_gaps(work, busy, stretches) if of_longest else None
    lengths: dict[int, list[IntArray]] = {}
    sums: dict[int, dict[str, int]] = {}
    long_gaps: list[tuple[IntArray, dict[str, Any]]] = []  # cause and neighbours, a row each, and the columns
    last = 0  # the operation that ends last so far
    for rows in row_slices(len(work.start) - 1):
        begin = busy.reach(rows)
        before = np.maximum.accumulate(np.where(work.ends(rows) == begin, np.arange(rows.start, rows.stop), last))
        last = int(before[-1])
        is_gap = work.start[rows.start + 1 : rows.stop + 1] - begin >= _GRAIN_NS
        gap = np.flatnonzero(is_gap & _is_in_stretches(begin, stretches))
        if least_ns is not None:
            number = np.searchsorted(stretches[0], begin[gap], "right") - 1
            gap = gap[work.start[gap + rows.start + 1] - begin[gap] >= least_ns[number]]
        codes, columns = _gap_causes(work, before[gap], gap + rows.start + 1, calls)
        is_long = codes % len(LENGTHS) == len(LENGTHS) - 1
        if is_long.any():
            sides = (_operation_keys(work, side) for side in (before[gap][is_long], gap[is_long] + rows.start + 1))
            keys = np.stack([codes[is_long], *sides], axis=1)
            long_gaps.append((keys, {name: values[is_long].astype(np.int64) for name, values in columns.items()}))
        for code in np.flatnonzero(np.bincount(codes[~is_long])).tolist():
            mine = codes == code
            lengths.setdefault(code, []).append(narrowest_copy(columns["total_ns"][mine]))
            so_far = sums.setdefault(code, dict.fromkeys(columns, 0))
            sums[code] = {name: so_far[name] + int(values[mine].sum()) for name, values in columns.items()}
    rows_of_short = [_gap_row(code, np.concatenate(lengths[code]), sums[code]) for code in sorted(lengths)]
    return rows_of_short + _long_gap_rows(long_gaps)


def _gap_row(code: int, lengths: IntArray, sums: Mapping[str, int]) -> Row:
    """A row of table gaps."""
    return {
        "cause": WAYS_OF_GAPS[code // len(LENGTHS)], "length": LENGTHS[code % len(LENGTHS)],
        "gaps": len(lengths), "med_ns": float(np.median(lengths)), "max_ns": float(lengths.max()),
    } | {name: float(value) if name.endswith("_ns") else value for name, value in sums.items()}  # fmt: skip


def _long_gap_rows(parts: Sequence[tuple[IntArray, dict[str, Any]]]) -> list[Row]:
    """Long gaps, a row a cause and kinds of the operations before and behind; with their sizes where many are alike."""
    if not parts:
        return []
    keys = np.concatenate([keys for keys, _ in parts])
    columns = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
    _, group, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    few = counts[group.ravel()] < _FEWEST_ALIKE
    keys[few, 1:] |= (1 << _BYTES_BITS) - 1  # no size
    order = np.lexsort(keys.T[::-1])
    first = np.flatnonzero(_starts_new_group(*keys[order].T))
    sums = {name: np.add.reduceat(values[order], first).tolist() for name, values in columns.items()}
    lengths = np.split(columns["total_ns"][order], first[1:])
    return [
        _gap_row(code, lengths[number], {name: values[number] for name, values in sums.items()})
        | _neighbour_columns("before", before) | _neighbour_columns("behind", behind)
        for number, (code, before, behind) in enumerate(keys[order[first]].tolist())
    ]  # fmt: skip


def _operation_keys(work: Operations, rows: IntArray) -> IntArray:
    """What these operations are as integers: of copies the way, the host's memory and, in the last bits, the bytes."""
    way, memory, size = (
        np.full(len(rows), -1) if column is None else column[rows].astype(np.int64)
        for column in (work.way, work.memory, work.size)
    )
    is_copy = way >= 0
    kind = np.where(is_copy, 2 + way * (len(MEMORIES) + 1) + memory + 1, work.category[rows] == MEMORY)
    return kind << _BYTES_BITS | np.where(is_copy & (size >= 0), size, (1 << _BYTES_BITS) - 1)


def _neighbour_columns(side: str, key: int) -> Row:
    """The columns of one side of a gap, of a key of `_operation_keys`."""
    kind, size = key >> _BYTES_BITS, key & (1 << _BYTES_BITS) - 1
    if kind < 2:
        return {side: ("kernel", "memset")[kind], f"{side}_bytes": None}
    way, memory = divmod(kind - 2, len(MEMORIES) + 1)
    return {
        side: f"copy {COPY_WAYS[way]}{f', {MEMORIES[memory - 1]}' if memory else ''}",
        f"{side}_bytes": None if size + 1 == 1 << _BYTES_BITS else size,
    }


def _gap_causes(
    work: Operations, before: IntArray, behind: IntArray, calls: Calls | None
) -> tuple[IntArray, dict[str, Any]]:
    """Cause * len(LENGTHS) + length of each gap, and the columns of a row that are sums over gaps.

    Args:
        work: The operations of one GPU, in order of their start.
        before: The operation that ends last before each gap.
        behind: The one that ends it.
        calls: What the host calls; None: not recorded.
    """
    begin, until, launched = work.ends(before), work.start[behind], work.launches(behind)
    length = until - begin
    cause = np.full(len(length), BY_LAUNCH)
    to_gpu = work.detail("way", behind) == TO_GPU
    results = _is_copy_back(work, before) & ~_is_small_copy_back(work, before)
    columns: dict[str, Any] = {"total_ns": length, "to_gpu": to_gpu, "from_gpu": results}
    if calls is not None:
        times: dict[Covered, IntArray] = {}  # of kinds that the host does not call, and of a single one, the same

        def time_in(*kinds: int) -> IntArray:
            covered = calls.time_in_kinds(*kinds)
            if covered not in times:
                times[covered] = covered.covered_within(begin, until)
            return times[covered]

        took = [time_in(kind) for kind in range(len(CALL_KINDS))]
        host_late = calls.ends_of(launched) > begin  # else it was launched before the GPU came to it
        waits = calls.time_in_kinds(SYNCHRONISE)
        ended = waits.covered_within(begin - _CLOCKS_NS, np.maximum(launched, begin + 1)) > 0
        blocked = calls.time_in_kinds(COPY, ALLOCATE).covered_within(begin - _CLOCKS_NS, begin + 1) > _CLOCKS_NS // 2
        value, to_host = _is_small_copy_back(work, before), _is_small_copy_back(work, behind)
        copying = took[COPY] >= _PART * length
        cause[~host_late] = QUEUED
        cause[host_late & ended] = BY_WAIT
        cause[host_late & copying] = BY_COPY
        cause[host_late & (to_host | (value & (ended | blocked))) & ~(value & to_host & copying)] = BY_VALUE
        input_late = host_late & to_gpu & ~results & (length >= LONG_NS)
        cause[input_late & (took[RECEIVE] > 0)] = BY_INPUT
        cause[input_late & (took[SPAWN] >= _PART * length)] = BY_SPAWN
        cause[took[ALLOCATE] >= _PART * length] = BY_ALLOCATION
        cause[took[LOAD] >= _PART * length] = BY_LOAD
        columns |= {
            "launch_ns": took[LAUNCH], "cuda_ns": time_in(*range(OTHER + 1)),
            "poll_ns": took[POLL], "read_ns": took[READ], "write_ns": took[WRITE], "open_ns": took[OPEN],
            "lock_ns": took[LOCK],
            "writing": took[WRITE] > 0, "opening": took[OPEN] > 0,
        }  # fmt: skip
    cause[_are_page_migrations(work, before) | _are_page_migrations(work, behind)] = BY_MIGRATION
    lengths = (length >= SHORT_NS).astype(np.int64) + (length >= LONG_NS)
    return cause * len(LENGTHS) + lengths, columns


def _is_small_copy_back(work: Operations, chosen: Any) -> Any:
    """Which of the chosen operations are copies of a few bytes to the host."""
    size = work.detail("size", chosen)
    return _is_copy_back(work, chosen) & (size >= 0) & (size <= _VALUE)


def _is_copy_back(work: Operations, chosen: Any) -> Any:
    """Which of the chosen operations are copies to the host."""
    return work.detail("way", chosen) == FROM_GPU


def _are_page_migrations(work: Operations, chosen: Any) -> Any:
    """Which of the chosen operations move unified memory by page faults."""
    return (work.detail("memory", chosen) == MEMORIES.index("managed")) & (work.detail("size", chosen) <= _PAGES)


def _copy_rows(work: Operations, stretches: tuple[IntArray, IntArray]) -> list[Row]:
    """The copies of a GPU, one row a direction and kind of the host's memory."""
    if work.way is None or work.memory is None:
        return []
    copies = np.flatnonzero(work.way >= 0)
    copies = copies[_is_in_stretches(work.start[copies], stretches)]
    if not len(copies):
        return []
    kernels = work.category != MEMORY
    covered = Covered(work.start[kernels], work.duration[kernels])
    start, end, size = work.start[copies], work.ends(copies), work.detail("size", copies)
    code = work.detail("way", copies) * 8 + work.detail("memory", copies) + 1
    alone = end - start - covered.covered_within(start, end)
    middle = (int(stretches[0][0]) + int(stretches[1][-1])) // 2
    rows = []
    for which in np.unique(code).tolist():
        mine = code == which
        sizes = size[mine]
        known = bool((sizes >= 0).all())
        rows.append({
            "direction": COPY_WAYS[which // 8], "memory": MEMORIES[which % 8 - 1] if which % 8 else None,
            "calls": int(mine.sum()), "total_ns": float((end - start)[mine].sum()),
            "alone_ns": float(alone[mine].sum()),
            "total_bytes": float(sizes.sum()) if known else None,
            "med_bytes": float(np.median(sizes)) if known else None,
            "late_calls": int((start[mine] >= middle).sum()),
        })  # fmt: skip
    return rows


def _use_row(work: Operations, busy: Covered, stretches: tuple[IntArray, IntArray], timeline: Timeline) -> Row:
    """How a GPU is used, by its operations in order of their start and the time that they cover."""
    (start, end), calls, phases = stretches, timeline.calls, timeline.phased
    inside = _is_in_stretches(work.start, stretches)
    is_kernel, talk = (work.category != MEMORY) & inside, work.category == COMMUNICATION
    kernels = stretch_or_mask(is_kernel)
    busy_ns = float(busy.covered_within(start, end).sum())
    took = work.duration[kernels]
    row: Row = {
        "iterations": None if phases is None else len(start),
        "span_ns": float((end - start).sum()), "busy_ns": busy_ns,
        "operations": int(inside.sum()), "kernels": len(took), "kernel_ns": float(took.sum()),
        "communication_ns": float(took[talk[kernels]].sum()),
        "computing_ns": float(Covered(work.start[kernels], took).total),
    }  # fmt: skip
    if (talk & inside).any():
        lasted = work.duration[talk & inside]
        row["collectives"], row["collective_ns"] = len(lasted), float(np.median(lasted))
        if work.blocks is not None:
            row["channels"] = int(np.median(work.blocks[talk & inside][lasted >= np.median(lasted)]))
    if calls is not None:
        steady = stretches if phases is None else (phases.edges[phases.warmup :][:1], phases.edges[-1:])
        row["compiles"], row["late_compiles"], row["compile_ns"] = _compile_gaps(work, busy, steady, calls)
        values = np.flatnonzero(_is_small_copy_back(work, inside))
        called = calls.kind[_is_in_stretches(calls.start, stretches)]
        row["launches"] = int((called == LAUNCH).sum())
        for column, covered in (
            ("cuda_ns", calls.time_in_kinds(*range(OTHER + 1))),
            ("wait_ns", calls.time_in_kinds(SYNCHRONISE)),
            ("copy_ns", calls.time_in_kinds(COPY)),
        ):
            row[column] = float(covered.covered_within(start, end).sum())
        row["lock_threads"], row["spawns"] = calls.lock_threads, int((calls.kind == SPAWN).sum())
        row["waits"] = int((called == SYNCHRONISE).sum())
        row["values"] = len(values)
    if work.stream is not None and len(took):
        stream = work.stream[kernels]
        in_streams = [int(took.sum(where=stream == number)) for number in distinct(stream)]
        row["streams"] = sum(ns >= _WORKS * int(took.sum()) for ns in in_streams)
        in_default = work.stream[inside] == _DEFAULT_STREAM
        first = np.flatnonzero(in_default[1:] & ~in_default[:-1])
        covered = Covered(work.start[inside], work.duration[inside]) if len(first) else busy
        row["default_stream"] = int(np.count_nonzero(covered.start[first + 1] >= covered.reach(first)))  # none beside
    if work.blocks is not None and len(took):
        row["small_ns"] = float(took[(work.blocks[kernels] > 0) & (work.blocks[kernels] <= _FEW_BLOCKS)].sum())
        kernel_blocks = work.blocks[stretch_or_mask(is_kernel & ~talk)]
        row["blocks"] = int(kernel_blocks.sum()) if bool((kernel_blocks >= 0).all()) else None
    if work.kernel is not None and phases is not None and talk.any():
        edges = phases.edges[phases.warmup :]  # slow iterations too
        computes = (work.category == KERNEL) & _is_in_stretches(work.start, (edges[:1], edges[-1:]))
        row["delayed_pct"] = _delayed_kernels_pct(work, np.flatnonzero(computes)[:_LOOKED_AT], edges)
    if phases is None:
        return row
    earlier = _earlier_work(work, busy, phases, calls)
    return row | earlier | _slow_period(phases, work, busy, calls) | _host_pace(phases, calls)


def _earlier_work(work: Operations, busy: Covered, phases: Phased, calls: Calls | None) -> Row:
    """The iterations' work before the steady state, by the kernel that takes most of it: how much, and for how long."""
    first, last = int(phases.edges[phases.warmup]), int(phases.edges[-1])
    if work.kernel is None or calls is None:
        return {}
    kernels = np.flatnonzero(work.category == KERNEL)
    kernel, start = work.kernel[kernels], work.start[kernels]
    steady = (start >= first) & (start < last)
    if not steady.any():
        return {}
    names, number = np.unique(kernel[steady], return_inverse=True)
    largest = names[np.argmax(np.bincount(number.ravel(), work.duration[kernels][steady]))]
    earlier = start[(kernel == largest) & (start < first)]
    count = len(earlier) * (len(phases.durations) - phases.warmup) / int((kernel[steady] == largest).sum())
    if count < _EARLIER:
        return {}
    stretch = np.array([earlier.min()]), np.array([first])
    loads, _, load_ns = _compile_gaps(work, busy, stretch, calls)
    return {
        "earlier_iterations": count, "earlier_ns": float(first - stretch[0][0]), "earlier_loads": loads,
        "earlier_load_ns": load_ns,
    }  # fmt: skip


def _delayed_kernels_pct(work: Operations, rows: IntArray, iterations: IntArray) -> float:
    """How much of the time of kernels is what some launches take longer than the same launches of other iterations.

    Launches are the same if their names, their numbers of blocks and their places among such in an iteration are.

    Args:
        work: What the GPU does, in order.
        rows: The kernels that are looked at.
        iterations: When the iterations start.
    """
    if work.kernel is None or work.blocks is None or not len(rows):
        return 0.0
    took, keys = work.duration[rows], (work.kernel[rows], work.blocks[rows])
    iteration_numbers = np.searchsorted(iterations, work.start[rows], side="right")
    order = np.lexsort((iteration_numbers, *keys))
    new = _starts_new_group(iteration_numbers[order], *(key[order] for key in keys))
    ordinal = np.empty(len(rows), np.int64)
    ordinal[order] = np.arange(len(rows)) - np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    order = np.lexsort((took, ordinal, *keys))
    first = np.flatnonzero(_starts_new_group(ordinal[order], *(key[order] for key in keys)))
    counts = np.diff(np.append(first, len(rows)))
    took = took[order].astype(np.int64)
    usual = took[first + counts // 4]
    alike = (counts >= _FEWEST_SAME) & (usual <= _ALIKE * took[first])
    usual = np.repeat(usual, counts)
    delayed = np.repeat(alike, counts) & (took >= _DELAYED * usual) & (took - usual >= _DELAYED_NS)
    return float(100 * (took - usual)[delayed].sum() / max(took.sum(), 1))


def _starts_new_group(*columns: IntArray) -> Any:
    """Where a row differs from the one before it in any of the columns; the first does."""
    return np.append(True, np.any([column[1:] != column[:-1] for column in columns], axis=0))


def _compile_gaps(
    work: Operations, busy: Covered, stretches: tuple[IntArray, IntArray], calls: Calls
) -> tuple[int, int, float]:
    """Gaps so long that a module which is loaded in them was compiled: how many, how many late, how long (ns).

    Late is behind half of the work: at their first use libraries are loaded, which may take most of a short run.
    """
    rows = np.concatenate([np.zeros(0, np.int64), *_gaps(work, busy, _COMPILES_NS)])
    rows = rows[_is_in_stretches(busy.reach(rows), stretches)]
    rows = rows[calls.time_in_kinds(LOAD).covered_within(busy.reach(rows), work.start[rows + 1]) > 0]
    late = rows >= (len(work.start) - 1) // 2
    return len(rows), int(late.sum()), float((work.start[rows + 1] - busy.reach(rows)).sum())


def _host_pace(phases: Phased, calls: Calls | None) -> Row:
    """How long the host takes for the median iteration without waits, and to load modules in the longest."""
    starts = phases.iterations.starts[phases.warmup :]
    if len(starts) < 2 or calls is None:
        return {}
    waits = calls.time_in_kinds(SYNCHRONISE, COPY).covered_within(starts[:-1], starts[1:])
    longest = phases.warmup + int(np.argmax(phases.durations[phases.warmup :]))
    since, until = phases.edges[longest : longest + 1], phases.edges[longest + 1 : longest + 2]
    first, last = np.searchsorted(calls.start, (since[0] - int(calls.duration.max()), until[0])).tolist()
    near = np.flatnonzero(calls.ends(slice(first, last)) >= since[0]) + first
    kind, start, took = calls.kind[near], calls.start[near], calls.duration[near]
    # a launch that takes so long loads its kernel first, or waits for room in the queue of a busy GPU
    loads = (kind == LOAD) | ((kind == LAUNCH) & (took >= _LOADS_NS))
    return {
        "host_ns": float(np.median(np.diff(starts) - waits)),
        "slowest_load_ns": float(Covered(start[loads], took[loads]).covered_within(since, until).sum()),
        "slowest_spawns": int(((kind == SPAWN) & (start >= since)).sum()),
    }


def _slow_stretches(phases: Phased) -> tuple[IntArray, IntArray] | None:
    """The iterations that are slow again and again, else the longest where it is many times the usual one."""
    durations, edges = phases.durations[phases.warmup :], phases.edges[phases.warmup :]
    slow = _slow_iterations(durations)[0]
    if slow is None and len(durations) and durations.max() >= _SINGLE_SLOW * np.median(durations):
        slow = np.arange(len(durations)) == np.argmax(durations)
    return None if slow is None else (edges[:-1][slow], edges[1:][slow])


def _slow_iterations(durations: IntArray) -> tuple[Any, int | None]:
    """Which iterations are slow again and again, and their distance where it is constant; None: none are."""
    if not len(durations):
        return None, None
    usual = float(np.median(durations))
    excess = durations - usual
    clearly = durations > max(_SLOW * usual, usual + _SLOWER_NS)
    fewest = 2 if np.sort(durations)[-2:].min() >= _MANY_TIMES * usual else _FEWEST_SLOW
    if clearly.sum() < fewest:
        return None, None
    # those that are hardly slow among others that are so many times are none; the first of a period may take longest
    slow, others = (clearly & (excess >= _PART * most) for most in (excess.max(), np.sort(excess)[-_FEWEST_SLOW]))
    period = _constant_distance(slow)
    if period is None and (period := _constant_distance(others)) is not None:
        slow = others
    if slow.sum() < fewest or 2 * slow.sum() >= len(slow) or np.flatnonzero(slow)[-1] < len(slow) // 2:
        return None, None  # those of the first half alone are its start
    if period is None and usual - np.quantile(durations, 0.1) >= _EVEN * np.median(excess[slow]):
        return None, None  # others are as much shorter: iterations of many lengths
    return slow, period


def _slow_period(phases: Phased, work: Operations, busy: Covered, calls: Calls | None) -> Row:
    """Slow iterations that come again and again: how far apart, how much slower, and what of that is the GPU's.

    Args:
        phases: The iterations.
        work: The operations of one GPU, in order of their start.
        busy: The time that they cover.
        calls: What the host calls; None: not recorded.
    """
    durations, gpu = phases.durations[phases.warmup :], phases.gpu[phases.warmup + 1 : -1]
    slow, period = _slow_iterations(durations)
    if slow is None:
        return {}
    rest = ~slow
    operations, copies = (
        np.sum([getattr(one, column)[phases.warmup :] for one in phases.gpus], axis=0)
        for column in ("operations", "memory")
    )
    host: Row = {}
    if calls is not None:
        edges = phases.edges[phases.warmup :]
        times = _receiving_times(_gaps_before_input(work, busy), calls, edges)
        host["slower_input_ns"] = max(float(np.median(times[slow]) - np.median(times[rest])), 0.0)
        host["slower_spawns"] = int((calls.time_in_kinds(SPAWN).covered_within(edges[:-1], edges[1:]) > 0)[slow].sum())
    excess = durations[slow] - np.median(durations[rest])
    slower_ns = float(np.median(excess))
    return host | {
        "period": period, "slow": int(slow.sum()),
        "slower_ns": slower_ns,
        "slower_gpu_ns": max(float(np.median(gpu[slow]) - np.median(gpu[rest])), 0.0),
        "slower_copy_ns": max(float(np.median(copies[slow]) - np.median(copies[rest])), 0.0),
        "slower_operations": max(int(np.median(operations[slow]) - np.median(operations[rest])), 0),
        # the first of them may compile too, which does not come again
        "slower_pct": 100 * float(np.minimum(excess, _AT_MOST * slower_ns).sum() / durations.sum()),
    }  # fmt: skip


def _receiving_times(gaps: tuple[IntArray, IntArray], calls: Calls, edges: IntArray) -> IntArray:
    """How long in each iteration the host reads or receives in gaps that end with a copy to the GPU, ns."""
    begin, end = gaps
    read_ns = np.append(0, np.cumsum(calls.time_in_kinds(READ, RECEIVE).covered_within(begin, end)))
    return np.asarray(np.diff(read_ns[np.searchsorted(end, edges, "right")]))


def _constant_distance(slow: Any) -> int | None:
    """How many iterations the slow ones are apart, where that is nearly constant."""
    distances, counts = np.unique(np.diff(np.flatnonzero(slow)), return_counts=True)
    if counts.sum() < _FEWEST_SLOW - 1:
        return None
    period = int(distances[np.argmax(counts)])
    return period if counts.max() >= _REGULAR * counts.sum() and period > 1 else None


def _collective_rows(work: Operations, busy: Covered, phases: Phased | None) -> list[Row]:
    """The collectives of the steady state on one GPU, one row each, in order of their start; none without iterations.

    A collective ends on all GPUs when the last one has come, so that those of one collective tell who came last by
    their durations alone, whatever the clocks of their nodes say.

    Args:
        work: The operations on that GPU, in order of their start; times in ns.
        busy: The time that they cover.
        phases: The iterations.
    """
    if phases is None or not bool((work.category == COMMUNICATION).any()):
        return []
    first, end = phases.host[1], phases.host[2]
    every = np.flatnonzero(work.category == COMMUNICATION)
    launched = work.launches(every)
    places = every[(launched >= first) & (launched < end)][:_MOST_COLLECTIVES]
    if not len(places):
        return []
    start, duration = work.start[places], work.duration[places].astype(np.int64)
    iteration = np.searchsorted(phases.iterations.starts, work.launches(places), "right") - 1
    number = np.arange(len(places)) - np.searchsorted(iteration, iteration)
    computes, communicates = work.category == KERNEL, work.category == COMMUNICATION
    computing = Covered(work.start[computes], work.duration[computes])
    own = Covered(work.start[~communicates], work.duration[~communicates])
    begin, until = _gaps_before_input(work, busy)
    waits = Covered(begin, until - begin)
    earlier = work.start[every[launched < first]]
    before = int(earlier.max()) if len(earlier) else int(phases.edges[phases.warmup])
    since, until = np.append(min(before, int(start[0])), start[:-1]), start
    computing_ns, own_ns = computing.covered_within(since, until), own.covered_within(since, until)
    columns = {
        "iteration": iteration, "number": number, "start_ns": start, "duration_ns": duration,
        "alone_ns": duration - own.covered_within(start, start + duration), "computing_ns": computing_ns,
        "copies_ns": own_ns - computing_ns, "idle_ns": until - since - busy.covered_within(since, until),
        "input_ns": waits.covered_within(since, until),
    }  # fmt: skip
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def _gaps_before_input(work: Operations, busy: Covered) -> tuple[IntArray, IntArray]:
    """Begin and end of the gaps without work that end with a copy to the GPU, in order."""
    way = work.detail("way")
    gap = np.concatenate([np.zeros(0, np.int64), *(gap[way[gap + 1] == TO_GPU] for gap in _gaps(work, busy, 1))])
    return busy.reach(gap), work.start[gap + 1]
