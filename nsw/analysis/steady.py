"""The steady state: the rows that shares, findings and the choice of kernels are made of.

A report whose timeline was split counts with what its steady state took; one without iterations with all that it
holds, which is reported beside its numbers.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.groups import group_by, sum_by
from nsw.tables.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

SLOW, EARLIER = "slow", "earlier"  # phases of table gaps: of slow iterations; of their work before the steady state
APART: Final = frozenset({SLOW, EARLIER})  # which are not of the usual iterations
PHASES: Final = ("setup", "warmup", "steady", "end")
_STEADY: Final = ("steady", "all")  # `all`: a process without iterations, beside others that have some
PROCESS: Final = ("run", "report", "rank", "pid")
_COPYING: Final = ("cudaMemcpy", "cuMemcpy")
_EVENT_WAIT: Final = re.compile(r"cu(?:da)?Event(?:Synchronize|ElapsedTime)")
_NEARLY_ALL: Final = 0.75  # of the traced time, from which the iterations stand for the run
_LISTED: Final = 3  # names for what a phase was spent on


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase of a case: the mean of its processes; `iterations` and `what` as in its longest process.

    Times in ns: `duration_ns` on the wall, `gpu_busy_ns` of that a GPU at work, `gpu_ns` and `api_ns` sums of
    operations and calls. `what` are the names that took most, with their ns; `times_kernels` whether the host waits for
    events, as who tries kernels does; `largest` the kernel that takes most of its GPU time, with its ns.
    """

    phase: str
    duration_ns: float
    gpu_ns: float
    gpu_busy_ns: float
    api_ns: float | None
    iterations: int | None
    what: tuple[tuple[str, float], ...] = ()
    times_kernels: bool = False
    largest: tuple[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of a case's steady state.

    `med_gpu_busy_pct` is the share of an iteration, where the reports tell it; `gpu_busy_pct` that of all time. The
    medians are the median of its processes' GPUs; `least_ns` and `most_ns` the shortest and longest of all; `slowest`
    the number of the longest, counted from 0, with its share of time in which a GPU was at work. `gpu_ns` is the sum
    of the durations of one iteration's operations, of all processes of a run. `memory_alone_pct` is the share of GPU
    busy time in which only copies and sets were at work; `memory_pct` counts those that kernels hide as well.
    """

    found_by: str
    name: str | None
    count: int
    warmup: int
    processes: int
    med_ns: float
    least_ns: float
    most_ns: float
    slowest: int
    slowest_busy_pct: float | None
    gpu_ns: float
    gpu_busy_pct: float | None
    med_gpu_busy_pct: float | None
    memory_pct: float | None
    communication_pct: float | None
    memory_alone_pct: float | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """What of the time in NCCL kernels is waiting at least, in per cent of GPU time, and for whom most of it is.

    What tells why that one is late, beside the mean of the others: `late_work_pct` how much longer its kernels other
    than NCCL's take, `late_kernels_pct` how many more they are, `late_blocks_pct` how many more blocks they have,
    `late_delayed_pct` how much more of their time equal launches differ by, `late_gap_ns` how much longer its GPU waits
    for its host in an iteration, `late_input` whether most of these waits end with a copy to the GPU.
    """

    pct: float
    late: str
    late_work_pct: float | None = None
    late_kernels_pct: float | None = None
    late_blocks_pct: float | None = None
    late_delayed_pct: float | None = None
    late_gap_ns: float = 0.0
    late_input: bool = False


@dataclass(frozen=True, slots=True)
class Collectives:
    """The collectives of a GPU, of an iteration where there are iterations.

    `own_ns` is the duration of the median one on the GPU that waits least for the others; `channels` how many blocks
    the longer ones have there: NCCL's channels. `share_pct` of the GPUs' work is in collectives, `own_pct` without
    waiting.
    """

    calls: float
    own_ns: float
    channels: float | None
    share_pct: float
    own_pct: float


def summarize_collectives(rows: Sequence[Row]) -> Collectives | None:
    """The collectives of a case by its rows of gpu_use; None where fewer than two GPUs take part."""
    mine = [row for row in rows if row.get("collectives")]
    if len(mine) < 2:
        return None
    least = min(mine, key=lambda row: row["collective_ns"])
    work = sum(row["kernel_ns"] for row in mine)
    return Collectives(
        statistics.median(row["collectives"] / (row.get("iterations") or 1) for row in mine),
        least["collective_ns"], least.get("channels"),
        100 * sum(row["communication_ns"] for row in mine) / work,
        100 * sum(row["collectives"] for row in mine) * least["collective_ns"] / work,
    )  # fmt: skip


def steady_state_rows(name: str, summary_rows: Iterable[Row], parts: Iterable[Row]) -> list[Row]:
    """The rows of a summary that speak of the steady state.

    Args:
        name: The summary: gpu_summary, api_summary or communication.
        summary_rows: Its rows.
        parts: Rows of phase_summary; those of the same runs and reports take their place.
    """
    split: dict[tuple[Any, Any], list[Row]] = {}
    for row in parts:
        if row["summary"] == name:
            report_rows = split.setdefault(_report_key(row), [])
            if row["phase"] in _STEADY:
                report_rows.append(row)
    unsplit_rows = [row for row in summary_rows if _report_key(row) not in split]
    return [*(row for rows in split.values() for row in rows), *unsplit_rows]


def steady_state_columns(name: str, summary_rows: Sequence[Columns], parts: Sequence[Columns]) -> Columns:
    """The same as columns, which takes less time where there are many rows.

    Args:
        name: The summary.
        summary_rows: Its rows, run by run.
        parts: Those of phase_summary, run by run.
    """
    split, unsplit = [], []
    for rows, run_parts in zip(summary_rows, parts, strict=True):
        summary_parts = run_parts.at([at for at, summary in enumerate(run_parts["summary"]) if summary == name])
        report_order = {report: at for at, report in enumerate(dict.fromkeys(summary_parts["report"]))}
        steady = [at for at, phase in enumerate(summary_parts["phase"]) if phase in _STEADY]
        if len(report_order) > 1:
            steady.sort(key=lambda at: report_order[summary_parts["report"][at]])
        split.append(summary_parts.at(steady))
        unsplit.append(rows.at([at for at, report in enumerate(rows["report"]) if report not in report_order]))
    return Columns.joined([*split, *unsplit])


def summarize_phases(rows: Sequence[Row], parts: Sequence[Row]) -> tuple[Phase, ...]:
    """The phases of a case's processes, in their order; none where no process has iterations."""
    case_phases: list[Phase] = []
    kernels = [row for row in parts if row["summary"] == "gpu_summary" and row.get("kind") == "kernel"]
    parts = [row for row in parts if row["summary"] == "api_summary" or row.get("kind") in {"memcpy", "um"}]
    for phase in PHASES:
        phase_rows = [r for r in rows if r["phase"] == phase]
        if not phase_rows:
            continue
        longest = max(phase_rows, key=lambda r: r["duration_ns"])
        processes = {process_key(r) for r in phase_rows}
        in_phase = [r for r in parts if r["phase"] == phase and process_key(r) in processes]
        api = [r["api_ns"] for r in phase_rows if r.get("api_ns") is not None]
        case_phases.append(
            Phase(
                phase,
                _column_mean(phase_rows, "duration_ns"),
                _column_mean(phase_rows, "gpu_ns"),
                _column_mean(phase_rows, "gpu_busy_ns"),
                sum(api) / len(api) if api else None,
                longest.get("iterations"),
                _longest_calls(in_phase, len(processes)),
                any(_EVENT_WAIT.match(r["name"]) for r in in_phase if r["summary"] == "api_summary"),
                _largest_kernel((row for row in kernels if row["phase"] == phase), len(processes)),
            )
        )
    return tuple(case_phases)


def time_of_few_iterations(phases: Iterable[Phase]) -> tuple[float, float] | None:
    """How long the iterations take together, and all phases, ns; None where they are nearly all, or there are none."""
    times = {phase.phase: phase.duration_ns for phase in phases}
    steady_ns, all_ns = times.get("steady", 0.0), sum(times.values())
    return (steady_ns, all_ns) if 0 < steady_ns < _NEARLY_ALL * all_ns else None


def unsplit_timeline_reason(rows: Sequence[Row]) -> str | None:
    """Why the timelines of a case were not split; None where one was, or where no report has a timeline."""
    split = any(row["phase"] != "all" for row in rows)
    return None if split else next((row["reason"] for row in rows if row.get("reason")), None)


def _longest_calls(rows: Iterable[Row], processes: int) -> tuple[tuple[str, float], ...]:
    """The calls and copies that took most; the call of a copy takes the same time once more, and does not count."""
    took = sum_by(
        (row.get("short_name") or row["name"], (row["total_ns"] or 0.0) / processes)
        for row in rows
        if (row["summary"] == "api_summary" and not row["name"].startswith(_COPYING))
        or row.get("kind") in {"memcpy", "um"}
    )
    return tuple(sorted(took.items(), key=lambda item: -item[1])[:_LISTED])


def _largest_kernel(rows: Iterable[Row], processes: int) -> tuple[str, float] | None:
    took = sum_by((row.get("short_name") or row["name"], row["total_ns"] / processes) for row in rows)
    return max(took.items(), key=lambda item: item[1], default=None)


def summarize_iterations(rows: Sequence[Row]) -> Iterations | None:
    """The iterations of all processes of a case together; None where none were found."""
    if not rows:
        return None
    slowest = max(rows, key=lambda r: (r["max_ns"], r.get("slowest_gpu_busy_pct") or 0.0))
    runs = len({r.get("run") for r in rows})
    return Iterations(
        rows[0]["found_by"], rows[0].get("name"), rows[0]["steady"], rows[0]["warmup"],
        len({process_key(r) for r in rows}) // runs,
        statistics.median(r["med_ns"] for r in rows), min(r["min_ns"] for r in rows), slowest["max_ns"],
        slowest["slowest"], slowest.get("slowest_gpu_busy_pct"),
        sum(r.get("med_gpu_ns") or 0.0 for r in rows) / runs,
        *(column_median(rows, c)
         for c in ("gpu_busy_pct", "med_gpu_busy_pct", "med_memory_pct", "med_communication_pct",
                                     "med_memory_alone_pct")),
    )  # fmt: skip


def summarize_nccl_waiting(
    rows: Sequence[Row], gpu_ns: float, use: Sequence[Row] = (), gaps: Sequence[Row] = ()
) -> Waiting | None:
    """How much of the time in NCCL kernels is waiting for a late rank, at least.

    A collective ends everywhere when the last rank has come: the kernel of the last is the shortest, and what those
    of the others take longer is waiting. Summed up: what each rank takes more than the least of them.

    Args:
        rows: The steady rows of `communication`, with process or rank.
        gpu_ns: All steady GPU time.
        use: Rows of gpu_use.
        gaps: Rows of gaps.
    """
    by_run: dict[Any, dict[tuple[Any, ...], list[Row]]] = {}
    for row in rows:
        if row.get("library") == "nccl" or row.get("kind") == "nccl":
            by_run.setdefault(row.get("run"), {}).setdefault(process_key(row), []).append(row)
    waited, late, latest_rank = 0.0, "", ()
    for ranks in by_run.values():
        calls = {sum(r.get("calls") or 0 for r in rank_rows) for rank_rows in ranks.values()}
        if len(ranks) < 2 or len(calls) != 1:
            return None  # a report of all ranks together, or ranks that do not do the same
        took = {rank: sum(r.get("total_ns") or 0.0 for r in rank_rows) for rank, rank_rows in ranks.items()}
        latest_rank = min(took, key=lambda rank: took[rank])
        waited += sum(took.values()) - len(took) * took[latest_rank]
        late = process_label(ranks[latest_rank][0], ranks[latest_rank][0].get("device"))
    if not late or not gpu_ns:
        return None
    processes = {process_key(row) for rank_rows in ranks.values() for row in rank_rows}
    return Waiting(100 * waited / gpu_ns, late, *_late_process_differences(latest_rank, processes, use, gaps))


def _late_process_differences(
    late: tuple[Any, ...], processes: set[tuple[Any, ...]], use: Sequence[Row], gaps: Sequence[Row]
) -> tuple[Any, ...]:
    """What differs between a late process and the others of its run, as in `Waiting`."""
    rows = {process_key(row): row for row in use if process_key(row) in processes and row.get("iterations")}
    if late not in rows or len(rows) < 2:
        return ()
    measured: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for key, row in rows.items():
        waits = [
            gap for gap in gaps if process_key(gap) == key and gap["length"] == "long" and gap.get("phase") not in APART
        ]
        for_input = [gap for gap in waits if 2 * (gap.get("to_gpu") or 0) >= gap["gaps"]]
        measured[key] = tuple(
            value / row["iterations"]
            for value in (
                row["kernel_ns"] - row["communication_ns"], row["kernels"], row.get("blocks") or 0,
                (row.get("delayed_pct") or 0.0) * row["iterations"],
                sum(gap["total_ns"] for gap in waits), sum(gap["total_ns"] for gap in for_input),
            )
        )  # fmt: skip
    others = [statistics.mean(values) for values in zip(*(measured[key] for key in rows if key != late), strict=True)]
    work, kernels, blocks, delayed_pct, gap, for_input_ns = (
        mine - other for mine, other in zip(measured[late], others, strict=True)
    )
    has_blocks = all(row.get("blocks") is not None for row in rows.values())
    return (
        100 * work / max(others[0], 1.0), 100 * kernels / max(others[1], 1.0),
        100 * blocks / max(others[2], 1.0) if has_blocks else None, delayed_pct if has_blocks else None,
        max(gap, 0.0), for_input_ns >= max(gap, 1.0) / 2,
    )  # fmt: skip


def rows_of_working_gpus(gpu: Columns, iterations: Iterable[Row]) -> Columns:
    """The rows of `gpu` without those of GPUs on which a process does no more than hold a context.

    Args:
        gpu: Rows of gpu_summary of the steady state, by process and GPU.
        iterations: Rows of iterations.
    """
    devices = {key: {row.get("device") for row in rows} for key, rows in group_by(iterations, process_key).items()}
    owners = [*gpu.rows("device", *PROCESS)]
    working = {
        (device, *process)
        for device, *process in set(owners)
        if device is None or not {device, None}.isdisjoint(devices.get(tuple(process), {None}))
    }
    return gpu.at([at for at, owner in enumerate(owners) if owner in working])


def gpu_labels(rows: Sequence[Row]) -> list[str]:
    """The GPU of each row of iterations, for people: by its number where a process has several, else by its process."""
    gpus = Counter(map(process_key, rows))
    one_process = len(gpus) == len({row.get("run") for row in rows})
    devices = Counter((row.get("run"), row.get("device")) for row in rows)
    names = []
    for row in rows:
        device = row.get("device")
        of = process_label(row, device if devices[row.get("run"), device] == 1 else None)
        if gpus[process_key(row)] > 1:
            of = f"GPU {device}" if one_process else f"GPU {device} of {process_label(row, None)}"
        names.append(of.removeprefix("the process on "))
    return names


def process_label(row: Row, device: int | None) -> str:
    """A process for people: by its rank, else by its only GPU."""
    if row.get("rank") is not None:
        return f"rank {row['rank']}"
    if device is not None:
        return f"the process on GPU {device}"
    return "the process" if row.get("pid") is None else f"process {row['pid']}"


def _report_key(row: Row) -> tuple[Any, Any]:
    return row.get("run"), row.get("report")


def process_key(row: Row) -> tuple[Any, ...]:
    """What tells a process from the others of a campaign."""
    return tuple(map(row.get, PROCESS))


def _column_mean(rows: Sequence[Row], column: str) -> float:
    return sum(r[column] or 0.0 for r in rows) / len(rows)


def column_median(rows: Sequence[Row], column: str) -> float | None:
    """The median of a column; None where no row has a value."""
    values = [r[column] for r in rows if r.get(column) is not None]
    return statistics.median(values) if values else None
