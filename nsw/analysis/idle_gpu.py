"""How a GPU of a case is used: how long an iteration is, and the gaps in it by what the host does in them.

The GPU that is idle most decides: where processes meet in collectives, the others wait for it. GPUs on which a process
does no more than hold a context have no rows of iterations, and do not count. Without iterations the time from the
first kernel on counts, without its long gaps, which may be set-up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsw.analysis.groups import group_by
from nsw.analysis.steady import APART, EARLIER, SLOW, gpu_labels, process_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

_LEFT_OUT: Final = 0.05  # of the time: long gaps that are not counted, from which shares name what they are of
BUSY_PCT: Final = 90.0  # at and above it a GPU is not called idle
_SHARED_PCT: Final = 60.0  # of processes that may share a GPU: what they keep busy together
_FEWEST, _FEWEST_IDLE = 3, 2  # iterations; those of a GPU that is idle most of the time
_MOSTLY_IDLE_PCT: Final = 50.0  # busy
_NEARLY_ALL: Final = 0.95  # of the copies
# times the median iteration, between which the mean one is as long: more with pauses, less where streams take turns
_USUAL: Final = (0.87, 1.5)
_LOADS: Final = re.compile(r"cu(?:da)?(?:ModuleLoad|LibraryLoad)")
_EVERYWHERE: Final = 0.1  # long gaps an operation, without iterations: no pauses, but what the program is like
_LEAST_LAUNCHES: Final = 20  # without iterations: of fewer nothing is said
_FEWEST_REGULAR, _REGULAR = 5, 2.0  # long gaps, the longest of so many times the median: of a loop
_ALIKE: Final = 3.0  # times the median: the longest of ten or more between the same operations, which are of a loop
_EVEN: Final = 0.25  # of the time of long gaps: what all take if each were the median one, where no few take nearly all
_MUCH_OF_GAPS: Final = 0.2  # of the time of long gaps: one that takes as much is the start of the program
_OF_SETUP: Final = frozenset({"load", "allocate"})  # causes of long gaps, of which a set-up has many


class Sides(NamedTuple):
    """What lies before and behind long gaps, as in table gaps; bytes where many are alike."""

    before: str
    before_bytes: int | None
    behind: str
    behind_bytes: int | None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps of a cause and length; counts and ns of an iteration, as in table gaps.

    What was not recorded is 0; `poll_ns` and `sides` are None in tables made before they were measured, or where they
    do not apply.
    """

    cause: str
    length: str
    gaps: float
    total_ns: float
    to_gpu: float = 0.0
    cuda_ns: float = 0.0
    read_ns: float = 0.0
    write_ns: float = 0.0
    open_ns: float = 0.0
    lock_ns: float = 0.0
    writing: float = 0.0
    from_gpu: float = 0.0
    opening: float = 0.0
    poll_ns: float | None = field(default=None, kw_only=True)
    sides: Sides | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of a direction and memory; counts, ns and bytes of an iteration, as in table host_copies."""

    direction: str
    memory: str | None
    calls: float
    total_ns: float
    alone_ns: float
    total_bytes: float | None
    med_bytes: float | None
    late_pct: float


@dataclass(frozen=True, slots=True)
class IdleGpu:
    """The GPU of a case that is idle most, with its process, in an iteration of its steady state.

    Attributes:
        is_iteration: Whether it has iterations; else it is all time from the first kernel on.
        busy_pct: Share of the time in which its GPU is at work, NCCL's kernels included.
        med_ns: How long an iteration takes: the median one, or the mean where `is_mean`.
        operations: GPU operations.
        gaps: Its gaps; empty: the tables were made before gaps were measured.
        copies: Its copies.
        use: Its row of gpu_use, divided by the iterations; empty where that table was not made.
        calls: ns of each CUDA call of the host.
        processes: How many processes the run has.
        collectives: Whether they meet in NCCL kernels.
        gpu: Which one it is, in words.
        loads: Modules that are loaded in the steady state.
        has_calls: Whether the report has the host's CUDA calls, by which gaps are told apart.
        mean_busy_pct: As busy_pct, of all iterations together; None where that is not known.
        is_mean: Whether times are means over all iterations: of those with many pauses the median says little.
        slow_gaps: The gaps of a slow iteration, without those that are short beside its longest.
        earlier_gaps: The long gaps of the iterations' work before the steady state.
        left_out_ns: Without iterations: long gaps that are not counted, as they may be set-up or another phase.
    """

    is_iteration: bool
    busy_pct: float
    med_ns: float
    operations: float
    gaps: tuple[Gaps, ...]
    copies: tuple[Copies, ...]
    use: Mapping[str, float]
    calls: Mapping[str, float]
    processes: int
    collectives: bool
    gpu: str
    loads: float = 0.0
    has_calls: bool = True
    mean_busy_pct: float | None = None
    is_mean: bool = False
    slow_gaps: tuple[Gaps, ...] = ()
    earlier_gaps: tuple[Gaps, ...] = ()
    left_out_ns: float = 0.0

    @property
    def idle_ns(self) -> float:
        """Time of an iteration in which its GPU is idle."""
        return self.med_ns * (1 - self.busy_pct / 100)

    @property
    def counted_time(self) -> str:
        """What shares of a case without iterations are of."""
        is_all = self.left_out_ns < _LEFT_OUT * (self.med_ns + self.left_out_ns)
        return "the time" if is_all else "the time without rare long gaps"

    def in_gaps(self, *causes: str, lengths: Sequence[str] = ("short", "middle", "long")) -> float:
        """The time in gaps of these causes and lengths, ns; scaled, so that all gaps are the idle time."""
        selected_ns = sum(gaps.total_ns for gaps in self.gaps if gaps.cause in causes and gaps.length in lengths)
        return self.gap_scale * selected_ns

    @property
    def gap_scale(self) -> float:
        """The factor, a number without unit, by which gaps are multiplied so that all of them are the idle time."""
        total = sum(gaps.total_ns for gaps in self.gaps)
        return self.idle_ns / total if total else 0.0


def find_most_idle_gpu(iterations: Iterable[Row], tables: Mapping[str, Sequence[Row]]) -> IdleGpu | None:
    """The GPU that is idle most in the middle one of the runs; None where it is not known.

    Args:
        iterations: The rows of table iterations of the case's timelines.
        tables: Those of phase_summary, gaps, host_copies and gpu_use.
    """
    by_run = group_by(iterations, lambda row: row.get("run"))
    steady = _steady_rows_by_process(tables["phase_summary"])
    runs = (
        [_most_idle_gpu_of_run(rows, steady, tables) for rows in by_run.values()]
        if by_run
        else _idle_gpus_of_unsplit_runs(tables)
    )
    idle = sorted((run_idle for run_idle in runs if run_idle is not None), key=lambda run_idle: run_idle.busy_pct)
    middle = len(runs) // 2
    return idle[middle] if middle < len(idle) else None


def _idle_gpus_of_unsplit_runs(tables: Mapping[str, Sequence[Row]]) -> list[IdleGpu | None]:
    """Of runs whose only process has no iterations, on its only GPU."""
    return [
        _idle_gpu_of_unsplit_run(rows[0], tables)
        if len(rows) == 1 and (rows[0]["kernels"] or 0) >= _LEAST_LAUNCHES
        else None
        for rows in group_by(tables["gpu_use"], lambda row: row.get("run")).values()
    ]


def _idle_gpu_of_unsplit_run(use: Row, tables: Mapping[str, Sequence[Row]]) -> IdleGpu | None:
    rows = [row for row in tables["gaps"] if _is_same_gpu(row, use)]
    long = [row for row in rows if row["length"] == "long"]
    often = sum(row["gaps"] for row in long) >= max(_EVERYWHERE * use["operations"], _LEAST_LAUNCHES)
    counted = rows
    if not often or use.get("late_compiles"):  # pauses, set-up, compilers
        recurring = _recurring_gaps(long, is_compiling=bool(use.get("late_compiles")))
        counted = [*(row for row in rows if row["length"] != "long"), *recurring]
    gaps = _gaps_of_gpu(use, counted, 1)
    span = use["busy_ns"] + sum(part.total_ns for part in gaps)
    if not span:
        return None
    return IdleGpu(
        False, 100 * use["busy_ns"] / span, span, use["operations"], gaps,
        _copies_of_gpu(use, tables["host_copies"], 1),
        _use_per_iteration(use, 1), {}, 1, False, "the GPU",
        left_out_ns=sum(row["total_ns"] or 0.0 for row in rows) - sum(row["total_ns"] or 0.0 for row in counted),
    )  # fmt: skip


def _recurring_gaps(long_gaps: Sequence[Row], *, is_compiling: bool) -> list[Row]:
    """Long gaps that come again and again, without those of set-up.

    Those between the same operations where they are about as long; of the others of a cause all or a part, where
    no compiler works.
    """
    work = [row for row in long_gaps if row["cause"] not in _OF_SETUP]
    alike = [row for row in work if _has_sizes(row) and row["max_ns"] <= _ALIKE * row["med_ns"]]
    if is_compiling:
        return alike
    rest = [row for row in work if row not in alike]
    groups = group_by(rest, lambda row: "input" if row["cause"] == "spawn" else row["cause"]).values()
    return alike + [row for rows in groups for row in _recurring_part(rows)]


def _has_sizes(row: Row) -> bool:
    """Whether gaps are between operations of the same sizes."""
    return row.get("before_bytes") is not None or row.get("behind_bytes") is not None


def _recurring_part(rows: Sequence[Row]) -> list[Row]:
    """Of long gaps of a cause those that come again and again.

    Without the longest where it is much of them; of which a few take nearly all, as where a compiler works, as much as
    if each were the median one.
    """
    longest_ns, total_ns = max(row.get("max_ns") or 0.0 for row in rows), sum(row["total_ns"] for row in rows)
    count = sum(row["gaps"] for row in rows)
    medians = sorted((row.get("med_ns") or 0.0, row["gaps"]) for row in rows)
    passed = accumulate(gaps for _, gaps in medians)
    med_ns = next(med for (med, _), so_far in zip(medians, passed, strict=True) if 2 * so_far >= count)
    usual_ns = count * med_ns
    is_regular = count >= _FEWEST_REGULAR and 0 < longest_ns <= _REGULAR * med_ns
    if not (is_regular or count >= _LEAST_LAUNCHES):
        return []
    if is_regular or (longest_ns < _MUCH_OF_GAPS * total_ns and usual_ns >= _EVEN * total_ns):
        return [*rows]
    first = next(row for row in rows if (row.get("max_ns") or 0.0) == longest_ns)
    if usual_ns < _EVEN * (total_ns - longest_ns):
        return [_part_of_row(row, usual_ns / total_ns) for row in rows]
    shorter = _part_of_row(first, 1 - longest_ns / first["total_ns"]) | {"gaps": first["gaps"] - 1}
    return [shorter if row is first else row for row in rows if row is not first or row["gaps"] > 1]


def _part_of_row(row: Row, share: float) -> dict[str, Any]:
    """A row of gaps with a part of its times, 0 to 1."""
    return {**row, **{name: share * value for name, value in row.items() if name.endswith("_ns") and value}}


def _steady_rows_by_process(phase_summary: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each process's steady state."""
    steady: dict[tuple[Any, ...], list[Row]] = {}
    for row in phase_summary:
        if row["phase"] == "steady":
            steady.setdefault(process_key(row), []).append(row)
    return steady


def may_share_gpus(iterations: Sequence[Row], phase_summary: Iterable[Row]) -> bool:
    """Whether processes of a run may work on one GPU, so that what one leaves idle may be busy with another."""
    if len(iterations) < 2:
        return False
    steady = _steady_rows_by_process(phase_summary)
    devices: dict[tuple[Any, Any], list[int | None]] = {}
    for row in iterations:
        if not row.get("med_communication_pct"):  # NCCL refuses two ranks on one GPU
            devices.setdefault((row.get("run"), row.get("host")), []).append(_gpu_number(row, steady))
    return any(
        len(host_devices) > 1 and (None in host_devices or len({*host_devices}) < len(host_devices))
        for host_devices in devices.values()
    )


def _most_idle_gpu_of_run(
    rows: Sequence[Row], steady: Mapping[tuple[Any, ...], Sequence[Row]], tables: Mapping[str, Sequence[Row]]
) -> IdleGpu | None:
    """The GPU that is idle most; None where other processes may be what it is busy with."""
    rows = [{**row, "device": _gpu_number(row, steady)} for row in rows]
    known = [
        row
        for row in rows
        if row.get("med_gpu_ops") and (busy := highest_gpu_busy_pct(row)) is not None
        if row["steady"] >= (_FEWEST if busy >= _MOSTLY_IDLE_PCT else _FEWEST_IDLE)
    ]
    if not known:
        return None
    least = min(known, key=lambda row: highest_gpu_busy_pct(row) or 0.0)
    sharing = [row for row in rows if row is not least and _may_share_gpu(least, row)]
    if sharing and sum(highest_gpu_busy_pct(row) or 0.0 for row in (least, *sharing)) >= _SHARED_PCT:
        return None
    name = gpu_labels(rows)[rows.index(least)]
    use = next((row for row in tables["gpu_use"] if _is_same_gpu(row, least)), None)
    count = (use and use.get("iterations")) or 1
    calls: dict[str, float] = {}
    loads = 0.0
    for part in steady.get(process_key(least), ()):
        if part["summary"] == "api_summary":
            loads += (part["calls"] or 0.0) if _LOADS.match(part["name"]) else 0.0
            calls[part["name"]] = calls.get(part["name"], 0.0) + (part["total_ns"] or 0.0) / least["steady"]
    busy_pct, iteration_ns = highest_gpu_busy_pct(least) or 0.0, least["med_ns"]
    mean_ns = use["span_ns"] / count if use else 0.0
    # slow iterations are not in gpu_use
    shortest_ns = max(mean_ns, least.get("avg_ns") or mean_ns)
    is_mean = mean_ns > _USUAL[1] * iteration_ns or 0 < shortest_ns < _USUAL[0] * iteration_ns
    if use and is_mean:
        busy_pct, iteration_ns = 100 * use["busy_ns"] / use["span_ns"], mean_ns
    copies = _copies_of_gpu(least, tables["host_copies"], count)
    return IdleGpu(
        is_iteration=True,
        busy_pct=busy_pct,
        med_ns=iteration_ns,
        operations=use["operations"] / count if use and is_mean else least["med_gpu_ops"],
        gaps=_with_copies_as_launches(_gaps_of_gpu(least, tables["gaps"], count), copies),
        copies=copies,
        use=_use_per_iteration(use, count) if use else {},
        calls=calls,
        processes=len({process_key(row) for row in rows}),
        collectives=any((row.get("med_communication_pct") or 0.0) > 0 for row in rows),
        gpu="the GPU" if len(rows) == 1 else name if name.startswith("GPU ") else f"the GPU of {name}",
        loads=loads,
        has_calls=use is None or use.get("launches") is not None,
        mean_busy_pct=least.get("gpu_busy_pct"),
        is_mean=is_mean,
        slow_gaps=_gaps_of_gpu(least, tables["gaps"], (use and use.get("slow")) or 1, SLOW),
        earlier_gaps=_gaps_of_gpu(least, tables["gaps"], 1, EARLIER),
    )


def _is_same_gpu(row: Row, gpu: Row) -> bool:
    return process_key(row) == process_key(gpu) and (
        row.get("device") == gpu.get("device") or row.get("device") is None
    )


def _gaps_of_gpu(gpu: Row, rows: Iterable[Row], count: float, phase: str | None = None) -> tuple[Gaps, ...]:
    columns = (
        "gaps", "total_ns", "to_gpu", "cuda_ns", "read_ns", "write_ns", "open_ns", "lock_ns", "writing", "from_gpu",
        "opening",
    )  # fmt: skip
    gaps = [
        Gaps(
            row["cause"],
            row["length"],
            *((row.get(column) or 0.0) / count for column in columns),
            poll_ns=None if row.get("poll_ns") is None else row["poll_ns"] / count,
            sides=_sides_of(row),
        )
        for row in rows
        if _is_same_gpu(row, gpu) and (row.get("phase") if row.get("phase") in APART else None) == phase
    ]
    return tuple(part for gap in gaps for part in _without_work_of_host(gap))


def _with_copies_as_launches(gaps: tuple[Gaps, ...], copies: Sequence[Copies]) -> tuple[Gaps, ...]:
    """The gaps; before copies on the GPU, for which no host waits, they are those of any launch."""
    on_gpu = sum(copy.calls for copy in copies if copy.direction == "on the GPU")
    if on_gpu < _NEARLY_ALL * sum(copy.calls for copy in copies):
        return gaps
    return tuple(replace(gap, cause="launch") if gap.cause == "copy" and gap.length != "long" else gap for gap in gaps)


def _sides_of(row: Row) -> Sides | None:
    """What lies before and behind long gaps; None where their row has it not."""
    if not row.get("behind"):
        return None
    return Sides(row["before"], row.get("before_bytes"), row["behind"], row.get("behind_bytes"))


def _without_work_of_host(gap: Gaps) -> tuple[Gaps, ...]:
    """Long gaps in which memory is allocated, apart from the time that the host spends outside of CUDA calls."""
    own_ns = gap.total_ns - gap.cuda_ns
    if gap.cause != "allocate" or gap.length != "long" or own_ns <= gap.cuda_ns:
        return (gap,)
    work = replace(gap, cause="launch", total_ns=own_ns, cuda_ns=0.0)
    return replace(gap, total_ns=gap.cuda_ns), work


def _copies_of_gpu(gpu: Row, rows: Iterable[Row], count: float) -> tuple[Copies, ...]:
    return tuple(
        Copies(
            row["direction"], row.get("memory"), row["calls"] / count, row["total_ns"] / count, row["alone_ns"] / count,
            None if row.get("total_bytes") is None else row["total_bytes"] / count, row.get("med_bytes"),
            100 * row["late_calls"] / row["calls"],
        )
        for row in rows
        if _is_same_gpu(row, gpu)
    )  # fmt: skip


_NOT_DIVIDED: Final = frozenset(
    {"iterations", "streams", "lock_threads", "host_ns", "period", "slow", "slower_ns", "slower_gpu_ns",
     "slower_copy_ns",
     "earlier_iterations", "earlier_ns", "earlier_loads", "earlier_load_ns",
     "slower_input_ns", "slower_spawns", "slower_operations", "slower_pct", "slowest_load_ns",
     "slowest_spawns", "spawns", "compiles", "late_compiles", "compile_ns", "collective_ns", "channels"}
)  # fmt: skip


def _use_per_iteration(use: Row, count: float) -> dict[str, float]:
    return {
        name: value if name in _NOT_DIVIDED else value / count
        for name, value in use.items()
        if isinstance(value, (int, float)) and name not in {"pid", "device", "rank", "block"}
    }


def highest_gpu_busy_pct(row: Row) -> float | None:
    """Return the percentage of time that a GPU was busy, over all iterations or in the median one, whichever is higher.

    One slow iteration may make up most of the time. None where neither is known.
    """
    shares = [row[name] for name in ("gpu_busy_pct", "med_gpu_busy_pct") if row.get(name) is not None]
    return max(shares, default=None)


def _gpu_number(row: Row, steady: Mapping[tuple[Any, ...], Sequence[Row]]) -> int | None:
    """The GPU of a row of iterations; in tables made before it was read there, the only one of its kernels."""
    if row.get("device") is not None:
        return int(row["device"])
    parts = steady.get(process_key(row), ())
    found = {part.get("device") for part in parts if part["summary"] == "gpu_summary" and part["kind"] == "kernel"}
    return found.pop() if len(found) == 1 else None


def _may_share_gpu(first: Row, second: Row) -> bool:
    """Whether two processes may work on one GPU.

    Each of several ranks may show its GPU as number 0 (CUDA_VISIBLE_DEVICES); NCCL refuses two ranks on one GPU.
    """
    if (first.get("med_communication_pct") or 0.0) > 0 and (second.get("med_communication_pct") or 0.0) > 0:
        return False
    hosts = {first.get("host"), second.get("host")}
    if None not in hosts and len(hosts) > 1:
        return False
    numbers = {first["device"], second["device"]}
    return None in numbers or len(numbers) == 1
