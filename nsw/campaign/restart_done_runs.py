"""Let runs that were done begin again."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nsw.campaign.ledger import Ledger, State
from nsw.campaign.ledger_meta_keys import SCRATCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.folder import CampaignFolder


def forget_done(folder: CampaignFolder, ledger: Ledger, runs: Sequence[str]) -> None:
    """Of runs to do again those that were done, as a canary whose report is of no use, must be able to begin."""
    from nsw.campaign.reset_done_runs import put_aside
    from nsw.campaign.takeover_archive import hold_folder, mark_of
    from nsw.transport.model import connect

    done = [run.id for run in ledger.runs_named(runs) if run.state is State.DONE]
    done += [row.id for row in ledger.reductions((State.DONE,), of=set(runs))]
    if not done:
        return
    site, scratch = ledger.site(), ledger.meta(SCRATCH)
    with closing(connect(site, scratch, mark_of(folder, ledger))) as transport:
        hold_folder(folder, ledger, transport, scratch)
        put_aside(transport, scratch, done)
