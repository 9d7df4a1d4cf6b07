"""Which job of the scheduler did, or will do, each run: what squeue, seff and a help desk are asked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.schedulers.create import dialect_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.campaign.ledger import BuildRow, Ledger, RunRow


def job_ids(ledger: Ledger, runs: Iterable[RunRow | BuildRow]) -> dict[str, str]:
    """The scheduler's job id of each run or build that has one, by its id; on this machine none has."""
    site = ledger.site()
    words = dialect_of(site.get("scheduler", "local"))
    if words is None:
        return {}
    natives = ledger.native_ids()
    known = ((run.id, words.job_of(natives.get(run.submission or ""), run.task)) for run in runs)
    return {run: job for run, job in known if job is not None}
