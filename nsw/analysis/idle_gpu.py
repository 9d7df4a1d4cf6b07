"""GPUs that are idle in the steady state: how much of an iteration, and what the timeline knows of the host meanwhile.

The GPU that is idle most decides: where processes meet in collectives, the others wait for it. GPUs on which a process
does no more than hold a context have no rows of iterations, and do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.steady import gpu_names, process_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

BUSY_PCT: Final = 60.0  # at and above it a GPU is not called idle
_FEWEST: Final = 3  # iterations
_LAUNCH: Final = re.compile(r"cu(?:da)?(?:Graph)?Launch")
_GRAPH: Final = re.compile(r"cu(?:da)?GraphLaunch")
_SYNCHRONISE: Final = re.compile(r"cu\w*Synchronize")
_QUEUED: Final = re.compile(r"cu(?:da)?Mem(?:cpy|set)\w*Async|cu\w*Event|cu\w*StreamWait")
_MEMCPY: Final = re.compile(r"cu(?:da)?Memcpy")


@dataclass(frozen=True, slots=True)
class IdleGpu:
    """The GPU of a case that is idle most, with its process: medians of an iteration of its steady state.

    Attributes:
        busy_pct: Share of the time in which its GPU is at work, NCCL's kernels included.
        med_ns: How long an iteration takes.
        operations: GPU operations.
        gap_ns: The longest time without GPU work; None: the table was made before this was read.
        calls_known: Whether the timeline holds CUDA API calls; without them the rest is 0.
        graph_launches: CUDA graphs launched.
        synchronisations: Calls that wait for the GPU.
        launch_ns: A call that launches a kernel; None: not known.
        call: The other call that takes most; empty: there is none.
        call_ns: What this call takes, without the copies on the GPU that it waits for.
        processes: How many processes the run has.
        collectives: Whether they meet in NCCL kernels.
        gpu: Which one it is, in words.
    """

    busy_pct: float
    med_ns: float
    operations: float
    gap_ns: float | None
    calls_known: bool
    graph_launches: float
    synchronisations: float
    launch_ns: float | None
    call: str
    call_ns: float
    processes: int
    collectives: bool
    gpu: str

    @property
    def idle_ns(self) -> float:
        """Time of an iteration in which its GPU is idle."""
        return self.med_ns * (1 - self.busy_pct / 100)


def idle_gpu(iterations: Iterable[Row], phase_summary: Iterable[Row]) -> IdleGpu | None:
    """The GPU that is idle most in the middle one of the runs; None where no GPU is, or it is not known.

    Args:
        iterations: The rows of table iterations of the case's timelines.
        phase_summary: Those of phase_summary.
    """
    by_run: dict[Any, list[Row]] = {}
    for row in iterations:
        by_run.setdefault(row.get("run"), []).append(row)
    steady = _steady(phase_summary)
    runs = [_of_run(rows, steady) for rows in by_run.values()]
    idle = sorted((one for one in runs if one is not None), key=lambda one: one.busy_pct)
    middle = len(runs) // 2
    return idle[middle] if middle < len(idle) else None


def _steady(phase_summary: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows of each process's steady state."""
    steady: dict[tuple[Any, ...], list[Row]] = {}
    for row in phase_summary:
        if row["phase"] == "steady":
            steady.setdefault(process_of(row), []).append(row)
    return steady


def may_share_gpus(iterations: Sequence[Row], phase_summary: Iterable[Row]) -> bool:
    """Whether processes of a run may work on one GPU, so that what one leaves idle may be busy with another."""
    if len(iterations) < 2:
        return False
    steady = _steady(phase_summary)
    devices: dict[tuple[Any, Any], list[int | None]] = {}
    for row in iterations:
        if not row.get("med_communication_pct"):  # NCCL refuses two ranks on one GPU
            devices.setdefault((row.get("run"), row.get("host")), []).append(_device(row, steady))
    return any(len(some) > 1 and (None in some or len({*some}) < len(some)) for some in devices.values())


def _of_run(rows: Sequence[Row], steady: Mapping[tuple[Any, ...], Sequence[Row]]) -> IdleGpu | None:
    """The GPU that is idle most; None where other processes may be what it is busy with."""
    rows = [{**row, "device": _device(row, steady)} for row in rows]
    known = [row for row in rows if row.get("med_gpu_ops") and row["steady"] >= _FEWEST and busy_share(row) is not None]
    if not known:
        return None
    least = min(known, key=lambda row: busy_share(row) or 0.0)
    sharing = [row for row in rows if row is not least and _may_share(least, row)]
    if sum(busy_share(row) or 0.0 for row in (least, *sharing)) >= BUSY_PCT:
        return None
    name = gpu_names(rows)[rows.index(least)]
    return _of_process(
        least,
        steady.get(process_of(least), ()),
        processes=len({process_of(row) for row in rows}),
        collectives=any((row.get("med_communication_pct") or 0.0) > 0 for row in rows),
        gpu="the GPU" if len(rows) == 1 else name if name.startswith("GPU ") else f"the GPU of {name}",
    )


def _of_process(row: Row, steady: Sequence[Row], *, processes: int, collectives: bool, gpu: str) -> IdleGpu:
    """What one process's row of iterations and its rows of phase_summary in the steady state tell of its host."""
    each = 1.0 / row["steady"]
    calls = [part for part in steady if part["summary"] == "api_summary"]
    launches = [part for part in calls if _LAUNCH.match(part["name"]) and not _GRAPH.match(part["name"])]
    launched = _sum(launches, "calls")
    copied = _sum(
        (part for part in steady if part["summary"] == "gpu_summary" and part["kind"] == "memcpy"), "total_ns"
    )
    took: dict[str, float] = {}
    for part in calls:
        name = part["name"]
        if not any(known.match(name) for known in (_LAUNCH, _SYNCHRONISE, _QUEUED)):
            alone = (part["total_ns"] or 0.0) - (copied if _MEMCPY.match(name) else 0.0)
            took[name] = took.get(name, 0.0) + alone * each
    call = max(took, key=lambda name: took[name], default="")
    return IdleGpu(
        busy_pct=busy_share(row) or 0.0,
        med_ns=row["med_ns"],
        operations=row["med_gpu_ops"],
        gap_ns=row.get("med_longest_gap_ns"),
        calls_known=bool(calls),
        graph_launches=each * _sum((part for part in calls if _GRAPH.match(part["name"])), "calls"),
        synchronisations=each * _sum((part for part in calls if _SYNCHRONISE.match(part["name"])), "calls"),
        launch_ns=_sum(launches, "total_ns") / launched if launched else None,
        call=call,
        call_ns=max(0.0, took.get(call, 0.0)),
        processes=processes,
        collectives=collectives,
        gpu=gpu,
    )


def _sum(rows: Iterable[Row], column: str) -> float:
    return sum(row[column] or 0 for row in rows)


def busy_share(row: Row) -> float | None:
    """Of all time or of the median iteration, whichever is more: one slow iteration may make up most of the time."""
    known = [row[name] for name in ("gpu_busy_pct", "med_gpu_busy_pct") if row.get(name) is not None]
    return max(known, default=None)


def _device(row: Row, steady: Mapping[tuple[Any, ...], Sequence[Row]]) -> int | None:
    """The GPU of a row of iterations; in tables made before it was read there, the only one of its kernels."""
    if row.get("device") is not None:
        return int(row["device"])
    parts = steady.get(process_of(row), ())
    found = {part.get("device") for part in parts if part["summary"] == "gpu_summary" and part["kind"] == "kernel"}
    return found.pop() if len(found) == 1 else None


def _may_share(one: Row, other: Row) -> bool:
    """Whether two processes may work on one GPU.

    Each of several ranks may show its GPU as number 0 (CUDA_VISIBLE_DEVICES); NCCL refuses two ranks on one GPU.
    """
    if (one.get("med_communication_pct") or 0.0) > 0 and (other.get("med_communication_pct") or 0.0) > 0:
        return False
    hosts = {one.get("host"), other.get("host")}
    if None not in hosts and len(hosts) > 1:
        return False
    numbers = {one["device"], other["device"]}
    return None in numbers or len(numbers) == 1
