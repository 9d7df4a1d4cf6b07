"""Whether a site's scheduler would take the shortest job as the site is described: its queue, account and limits."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.campaign.site_check_result import Check, Verdict
from nsw.errors import NswError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.dry_run import Prospect
    from nsw.campaign.planning import Planned

_WHAT = "queue"


def check_queue(site: str, sites: Sequence[Path] | None) -> Check:
    """Ask the scheduler, without submitting anything.

    Args:
        site: The site's name.
        sites: Sites files to search first.
    """
    from nsw.campaign.dry_run import ask
    from nsw.campaign.node_check import planned_job

    with tempfile.TemporaryDirectory(prefix="nsw-queue-check-") as folder:
        try:
            planned = planned_job(Path(folder), site, sites)
            found = ask(planned, planned.renderer())
        except NswError as fault:
            return Check(_WHAT, Verdict.BAD, fault.message.splitlines()[0], fault.hint or "see `nsw plan`")
    if not found:
        return Check(_WHAT, Verdict.SKIPPED, "this scheduler has no dry run", "`--node` tests it with a job")
    return _judged(found[0], asked_for(planned))


def asked_for(planned: Planned) -> str:
    """What of the site such a job names: `partition gpu, account research`."""
    site = planned.place.site.model_dump(mode="json", by_alias=True)
    names = [f"{key} {site[key]}" for key in ("partition", "queue", "account", "qos") if site.get(key)]
    return ", ".join(names) or "the default queue"


def _judged(prospect: Prospect, asked: str) -> Check:
    if prospect.refused is not None:
        fix = prospect.refused.hint or f"the site says: {asked}; correct it there"
        return Check(_WHAT, Verdict.BAD, prospect.refused.message.splitlines()[0], fix)
    if prospect.untold is not None:
        return Check(_WHAT, Verdict.SKIPPED, prospect.untold.splitlines()[0], "`--node` tests it with a job")
    return Check(_WHAT, Verdict.GOOD, f"{asked}: accepts a job of one minute")
