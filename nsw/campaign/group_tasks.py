"""Tasks that wait -> submissions: which go together, under which name."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from nsw.schedulers.model import NAME_CHARACTERS, Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger_tasks import Pending

_DIGEST = 16  # characters: two submissions of one user never share them
_LEAST_OF_JOB = 16  # characters of a job's name that are worth having


def submissions(
    folder: CampaignFolder,
    pending: Iterable[Pending],
    most: int,
    *,
    contiguous: bool = False,
    names: tuple[int, str] = (64, NAME_CHARACTERS),
) -> list[Submission]:
    """Submissions that hold all of these tasks once.

    Args:
        folder: The campaign's folder, which has the scripts and the name.
        pending: Tasks, in their order.
        most: How many tasks one may hold, and how far apart the first and the last may be.
        contiguous: One must hold tasks without gaps.
        names: How many characters a name may have, and which, as in `[...]` of a regular expression.
    """
    groups = _groups(pending, max(1, most), contiguous=contiguous)
    return [_submission(folder, group, names) for group in groups]


def _groups(pending: Iterable[Pending], most: int, *, contiguous: bool) -> Iterator[list[Pending]]:
    groups: dict[tuple[str, int], list[Pending]] = {}
    for one in pending:
        job, task, attempt, _ = one
        group = groups.setdefault((job, attempt), [])
        if group and (task - group[0][1] >= most or (contiguous and task != group[-1][1] + 1)):
            yield group
            group = groups[job, attempt] = []
        group.append(one)
    yield from groups.values()


def _submission(folder: CampaignFolder, group: Sequence[Pending], names: tuple[int, str]) -> Submission:
    job, first, attempt, _ = group[0]
    return Submission(
        name=submission_name(folder.id, job, first, attempt, *names),
        job=job,
        script=folder.script(job).absolute(),
        attempt=attempt,
        tasks=tuple(task for _, task, _, _ in group),
        gpus=max(gpus for _, _, _, gpus in group),
    )


def submission_name(
    campaign: str, job: str, task: int, attempt: int, longest: int = 64, characters: str = NAME_CHARACTERS
) -> str:
    """The deterministic name under which tasks are submitted: the same first task never gets another.

    It begins with the job's name in the plan, by which a person knows it in the queue, where there is room for that
    beside the digest. A scheduler is looked up by the whole name.
    """
    digest = hashlib.sha256(f"{campaign}\0{job}\0{task}\0{attempt}".encode()).hexdigest()[:_DIGEST]
    room = longest - _DIGEST - 1
    if room < _LEAST_OF_JOB:
        return f"nsw-{digest}"[:longest]
    job = re.sub(f"[^{characters}]", "-", job)
    known_by = job if job[:1].isalpha() else f"nsw-{job}"  # some schedulers want a letter first
    stem, dash, number = known_by.rpartition("-")
    if len(known_by) > room:
        known_by = stem[: room - len(dash + number)] + dash + number
    return f"{known_by}-{digest}"
