"""Tasks that wait -> submissions: which go together, under which name."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from nsw.schedulers.model import Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.campaign.folder import CampaignFolder

NO_ID = "ended"  # stands for the id of a submission that was gone when it was looked for, and had left its mark
Pending = tuple[str, int, int, int]  # job, task, the next attempt, GPUs at the same time


def submissions(folder: CampaignFolder, pending: Iterable[Pending], most: int) -> list[Submission]:
    """Submissions that hold all of these tasks once.

    Args:
        folder: The campaign's folder, which has the scripts and the name.
        pending: Tasks, in their order.
        most: How many tasks one may hold, and how far apart the first and the last may be.
    """
    return [_submission(folder, group) for group in _groups(pending, max(1, most))]


def _groups(pending: Iterable[Pending], most: int) -> Iterator[list[Pending]]:
    groups: dict[tuple[str, int], list[Pending]] = {}
    for one in pending:
        job, task, attempt, _ = one
        group = groups.setdefault((job, attempt), [])
        if group and task - group[0][1] >= most:
            yield group
            group = groups[job, attempt] = []
        group.append(one)
    yield from groups.values()


def _submission(folder: CampaignFolder, group: Sequence[Pending]) -> Submission:
    job, first, attempt, _ = group[0]
    return Submission(
        name=submission_name(folder.id, job, first, attempt),
        job=job,
        script=folder.script(job).absolute(),
        attempt=attempt,
        tasks=tuple(task for _, task, _, _ in group),
        gpus=max(gpus for _, _, _, gpus in group),
    )


def submission_name(campaign: str, job: str, task: int, attempt: int) -> str:
    """The deterministic name under which tasks are submitted: the same first task never gets another."""
    digest = hashlib.sha256(f"{campaign}\0{job}\0{task}\0{attempt}".encode()).hexdigest()[:16]
    return f"nsw-{digest}"
