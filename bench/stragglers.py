"""How often nsw names the rank or node that holds the others up, and why: simulated jobs of 8 to 512 ranks.

    python bench/stragglers.py [--seed 1] [--cases 60] [--healthy 20] [--racks 0] [--verbose]

A job is a data-parallel training: an iteration has segments of kernels with a collective behind each, some of which
run beside the next segment. All ranks scatter; of an ill job one rank, two in turn, one now and then, or a node is
slower, with `--racks N` also a rack of N nodes, for a reason that is drawn. Every rank's report has a clock of its own.
Named is a late rank that is first or second, and right is the kind of its cause; of a healthy job nobody may be called
late.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsw.analysis.clocks import clocks_by_report
from nsw.analysis.stragglers import OF_STRAGGLERS, find_stragglers
from nsw.readers.timeline.gaps import use_tables
from nsw.readers.timeline.iterations import Iterations
from nsw.readers.timeline.phases import (
    COMMUNICATION,
    KERNEL,
    MEMORY,
    TO_GPU,
    Operations,
    Timeline,
    phase_tables,
    split_phases,
)
from nsw.readers.timeline.statistics import duration_statistics

SIZES = (8, 16, 32, 64, 128, 256, 512)
ON_A_NODE = 8
CAUSES = ("kernel", "clock", "work", "host", "data")
IDS = {
    "kernel": "uneven-work",
    "work": "uneven-work",
    "clock": "late-rank-heat",
    "host": "late-rank-host",
    "data": "late-rank-data",
}
WHO = ("rank", "now and then", "in turn", "node")


@dataclass(frozen=True)
class Job:
    """What is simulated: which ranks are late in which iterations, why, by which share of their computing."""

    ranks: int
    cause: str | None
    who: str
    slower: float
    scatter: float
    spikes: float
    segments: int
    overlapped: bool
    iterations: int = 24
    rack: int = 0  # nodes a rack; 0: racks are not known


def drawn(random: np.random.Generator, *, healthy: bool, rack: int = 0) -> Job:
    """A job by chance; a rack of so many nodes may be late where it has three racks."""
    ranks, cause = int(random.choice(SIZES)), str(random.choice(CAUSES))
    who = (*WHO, "rack") if rack and ranks >= 3 * rack * ON_A_NODE else WHO if ranks > ON_A_NODE else WHO[:3]
    return Job(
        ranks, None if healthy else cause, str(random.choice(who)),
        float(random.uniform(0.06, 0.4)), float(random.uniform(0.002, 0.02)), float(random.choice((0.0, 0.0005))),
        int(random.integers(1, 7)), bool(random.random() < 0.5), rack=rack,
    )  # fmt: skip


def simulated(job: Job, random: np.random.Generator) -> tuple[dict[str, list[dict[str, Any]]], list[str], Any]:
    """The tables of a job, the names of those that are late, and the planted clocks (offset ns, drift)."""
    ranks, kernels = job.ranks, int(random.integers(5, 12))
    base = random.uniform(20e3, 400e3, (job.segments, kernels))
    gap = float(random.uniform(500, 4_000))
    copy_ns = 0.05 * base.sum()
    late, names = _late(job, random)
    segment, slow = int(random.integers(job.segments)), int(random.integers(kernels))
    extra = job.slower * base.sum()
    events: list[list[tuple[float, float, float, int, int]]] = [
        [] for _ in range(ranks)
    ]  # start, end, launch, category, name
    now, comm = np.zeros(ranks), np.zeros(ranks)
    starts = []
    for iteration in range(job.iterations):
        begin = now.copy()
        starts.append(begin)
        ill = late[:, iteration]
        copies = copy_ns * random.lognormal(0, job.scatter, ranks)
        wait = np.where(ill & (job.cause == "data"), extra, 0.0)
        now = now + gap + wait
        _add(events, now, copies, now - wait, MEMORY, -1)
        now = now + copies
        for at in range(job.segments):
            if at == segment and job.cause == "host":
                now = now + np.where(ill, extra, 0.0)
            for kernel in range(kernels + (job.cause == "work" and at == segment)):
                is_extra = kernel == kernels
                took = (extra if is_extra else base[at, kernel]) * random.lognormal(0, job.scatter, ranks)
                took = took * np.where(random.random(ranks) < job.spikes, random.uniform(2, 6), 1.0)
                if job.cause == "clock":
                    took = took * np.where(ill, 1 + job.slower, 1.0)
                if job.cause == "kernel" and at == segment and kernel == slow:
                    took = took + np.where(ill, extra, 0.0)
                if is_extra:
                    took = np.where(ill, took, 0.0)
                _add(events, now + gap, took, begin, KERNEL, at * 100 + (slow if is_extra else kernel))
                now = now + np.where(took > 0, gap + took, 0.0)
            start = np.maximum(now + gap, comm)
            end = start.max() + 0.08 * base.sum() / job.segments + random.uniform(0, 20e3, ranks)
            _add(events, start, end - start, begin, COMMUNICATION, -2)
            comm = end
            if not job.overlapped or at == job.segments - 1:
                now = end
    clocks = np.stack([random.uniform(-1e9, 1e9, ranks), random.uniform(-20e-6, 20e-6, ranks)])
    starts.append(now)
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in OF_STRAGGLERS}
    for rank in range(ranks):
        origin = {"run": "r", "report": f"{rank}", "rank": rank, "host": f"node{rank // ON_A_NODE}", "pid": 100}
        _add_tables(tables, origin, events[rank], np.array([s[rank] for s in starts]), clocks[:, rank])
    return tables, names, clocks


def racks(job: Job) -> dict[str, str]:
    """The rack of each node of a job."""
    return {f"node{node}": f"r{node // job.rack}" for node in range(job.ranks // ON_A_NODE) if job.rack}


def _late(job: Job, random: np.random.Generator) -> tuple[Any, list[str]]:
    late = np.zeros((job.ranks, job.iterations), bool)
    if job.cause is None:
        return late, []
    if job.who == "node":
        node = int(random.integers(job.ranks // ON_A_NODE))
        late[node * ON_A_NODE : (node + 1) * ON_A_NODE] = True
        return late, [f"node{node}"]
    if job.who == "rack":
        rack = int(random.integers(job.ranks // (job.rack * ON_A_NODE)))
        late[rack * job.rack * ON_A_NODE : (rack + 1) * job.rack * ON_A_NODE] = True
        return late, [f"rack r{rack}"]
    first, second = random.choice(job.ranks, 2, replace=False).tolist()
    if job.who == "now and then":
        late[first, random.choice(np.arange(3, job.iterations), 5, replace=False)] = True
        return late, [f"rank {first}"]
    if job.who == "in turn":
        late[first, ::2] = late[second, 1::2] = True
        return late, [f"rank {first}", f"rank {second}"]
    late[first] = True
    return late, [f"rank {first}"]


def _add(events: Any, start: Any, took: Any, launched: Any, category: int, name: int) -> None:
    for rank, (begin, duration, launch) in enumerate(
        zip(start.tolist(), took.tolist(), launched.tolist(), strict=True)
    ):
        if duration > 0:
            events[rank].append((begin, begin + duration, launch, category, name))


def _add_tables(tables: Any, origin: dict[str, Any], events: Any, starts: Any, clock: Any) -> None:
    """What nsw's reader makes of the report of one rank, by its own clock."""
    rows = np.array(events)
    times = (3e9 + rows[:, :3] * (1 + clock[1]) + clock[0]).astype(np.int64)
    marks = (3e9 + starts * (1 + clock[1]) + clock[0]).astype(np.int64)
    category = rows[:, 3].astype(np.int64)
    nothing = np.full(len(rows), -1, np.int64)
    work = Operations(
        times[:, 0], times[:, 1], times[:, 2], np.zeros(len(rows), np.int64), category, nothing,
        np.where(category == MEMORY, TO_GPU, -1), nothing, nothing, nothing,
    )  # fmt: skip
    iterations = Iterations("nvtx", "step", marks[:-1], int(marks[-1]))
    phases = split_phases(work, iterations, 2)
    summary = []
    for name in np.unique(rows[:, 4]).tolist():
        mine = (rows[:, 4] == name) & (times[:, 2] >= marks[2])
        if name >= 0 and mine.any():
            kernel = {"kind": "kernel", "name": f"k{name:.0f}", "short_name": f"k{name:.0f}", "device": 0}
            part = {"phase": "steady", "summary": "gpu_summary"} | duration_statistics(
                (times[:, 1] - times[:, 0])[mine]
            )
            summary.append(origin | kernel | part)
    timeline = Timeline(origin, work, (int(times.min()), int(times.max())), phases)
    for name, made in (phase_tables([timeline], summary, every=False) | use_tables([timeline])).items():
        if name in tables:
            tables[name] += made


def main() -> None:
    """Print how many are named, of which the kind is right, and how many healthy jobs blame somebody."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--healthy", type=int, default=20)
    parser.add_argument("--racks", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    named = right = blamed = 0
    offsets: list[float] = []
    took = time.process_time()
    for number in range(options.cases + options.healthy):
        job = drawn(random, healthy=number >= options.cases, rack=options.racks)
        tables, names, clocks = simulated(job, random)
        entries = find_stragglers(tables, racks(job))
        late = [entry for entry in entries if entry.late]
        offsets += _clock_errors(tables, clocks)
        if job.cause is None:
            blamed += bool(late)
            fault = f"blames {late[0].name} ({late[0].cost_pct:.1f} %)" if late else ""
        else:
            top = [entry.name for entry in late[:2]]
            is_named = set(names) <= set(top)
            is_right = is_named and all(entry.cause == IDS[job.cause] for entry in late if entry.name in names)
            named, right = named + is_named, right + is_right
            fault = (
                "" if is_right else f"{names}: {[(e.name, e.late, e.cause, round(e.cost_pct, 1)) for e in entries[:3]]}"
            )
        if fault and options.verbose:
            print(f"{number}: {job}: {fault}", flush=True)
    print(f"seed {options.seed}: named {named} of {options.cases}, their kind right {right}; "
          f"healthy blamed {blamed} of {options.healthy}")  # fmt: skip
    print(f"clocks: error of offsets median {np.median(offsets) / 1e3:.1f} us, largest {max(offsets) / 1e3:.1f} us")
    print(f"{time.process_time() - took:.0f} s of CPU")


def _clock_errors(tables: Any, planted: Any) -> list[float]:
    """By how much the clocks that nsw estimates differ from the planted ones in the middle of the job, ns."""
    clocks = clocks_by_report(tables["collectives"])
    if not clocks:
        return [np.inf]
    starts = [row["start_ns"] for row in tables["collectives"] if row["rank"] == 0]
    base = 3e9
    middle = (starts[len(starts) // 2] - base - planted[0, 0]) / (1 + planted[1, 0])  # true time
    errors = []
    for report, clock in clocks.items():
        rank = int(report)
        own = base + middle * (1 + planted[1, rank]) + planted[0, rank]
        reference = base + middle * (1 + planted[1, 0]) + planted[0, 0]
        errors.append(abs(clock.to_reference(own) - reference))
    return errors


if __name__ == "__main__":
    main()
