"""Runs -> jobs: equal resources share an array, several runs share a task where the site packs them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nsw.plan.model import Job, Resources, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def pack(name: str, runs: Sequence[Run], *, runs_per_task: int, max_array: int) -> tuple[Job, ...]:
    """Jobs that hold all runs once, in the order of the runs.

    Args:
        name: Beginning of the jobs' names.
        runs: What to pack.
        runs_per_task: How many runs follow each other in one task.
        max_array: How many tasks a job may have.
    """
    groups: dict[tuple[Resources, str, bool], list[Run]] = {}
    for run in runs:
        # a longer limit does not need another job: the job asks for the longest of its tasks
        groups.setdefault((replace(run.resources, time_s=0), run.app, bool(run.needs)), []).append(run)
    jobs: list[Job] = []
    for group in groups.values():
        tasks = _batched(group, max(1, runs_per_task))
        for chunk in _batched(tasks, max(1, max_array)):
            jobs.append(Job(f"{name}-j{len(jobs) + 1}", chunk[0][0].resources, chunk))
    return tuple(jobs)


def _batched(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[at : at + size]) for at in range(0, len(items), size)]
