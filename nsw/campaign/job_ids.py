"""Which job of the scheduler did, or will do, each run: what squeue, seff and a help desk are asked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.schedulers.create import adapter_of
from nsw.schedulers.model import Native

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.campaign.ledger import BuildRow, Ledger, RunRow


def job_ids(ledger: Ledger, runs: Iterable[RunRow | BuildRow]) -> dict[str, str]:
    """The scheduler's job id of each run or build that has one, by its id; on this machine none has."""
    site = ledger.site()
    adapter = adapter_of(site.get("scheduler", "local"))
    if adapter is None:
        return {}
    natives = ledger.native_ids()
    known = ((run, Native.parse(natives.get(run.submission or ""))) for run in runs)
    return {run.id: adapter.job_of(native, run.task) for run, native in known if native is not None}
