"""Runs -> jobs: equal resources share an array, several runs share a task where the site packs them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nsw.plan.model import AROUND_S, Job, Resources, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def pack(
    name: str,
    runs: Sequence[Run],
    *,
    runs_per_task: int | None,
    max_array: int,
    longest_s: int | None = None,
    node_gpus: int = 0,
    around_s: int = AROUND_S,
) -> tuple[Job, ...]:
    """Jobs that hold all runs once, in the order of the runs.

    Args:
        name: Beginning of the jobs' names.
        runs: What to pack.
        runs_per_task: How many runs share a task; None: as many as fit into `longest_s`.
        max_array: How many tasks a job may have.
        longest_s: Longest walltime of a job, in seconds.
        node_gpus: GPUs of a node where jobs take whole nodes: small runs of a task go side by side on them.
        around_s: Seconds of a job beside its runs.
    """
    groups: dict[tuple[Resources, str, str], list[Run]] = {}
    for run in runs:
        # a longer limit does not need another job: the job asks for the longest of its tasks
        stage = run.needs.removeprefix(f"{run.case_id}.")  # a task holds runs that wait for the same pass
        groups.setdefault((replace(run.resources, time_s=0), run.app, stage), []).append(run)
    jobs: list[Job] = []
    for group in groups.values():
        lanes = side_by_side(group[0].resources, node_gpus)
        size = runs_per_task or lanes * fitting(max(run.resources.time_s for run in group), longest_s, around_s)
        tasks = _batched(group, max(1, size))
        for chunk in _batched(tasks, max(1, max_array)):
            at_a_time = min(lanes, max(len(task) for task in chunk))
            jobs.append(Job(f"{name}-j{len(jobs) + 1}", chunk[0][0].resources, chunk,
                            side_by_side=at_a_time, around_s=around_s))  # fmt: skip
    return tuple(jobs)


def side_by_side(needs: Resources, node_gpus: int) -> int:
    """How many runs with these needs a whole node takes at a time; 1 for those of several nodes or without GPUs."""
    return max(1, node_gpus // needs.gpus) if needs.nodes == 1 and needs.gpus else 1


def fitting(time_s: int, longest_s: int | None, around_s: int = AROUND_S) -> int:
    """How many runs of so many seconds follow each other within the longest walltime."""
    return 1 if longest_s is None or time_s <= 0 else max(1, (longest_s - around_s) // time_s)


def _batched(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[at : at + size]) for at in range(0, len(items), size)]
