"""What a retry means for stages: skipped runs come back, finished ones are marked as older than their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.meta import RECORDED
from nsw.campaign.rows import State
from nsw.campaign.stages import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.ledger import Ledger


def release_dependents(ledger: Ledger, runs: Sequence[str], *, choose_again: bool) -> list[str]:
    """Release what was skipped for want of these runs; the ids of all runs to do now, in the plan's order.

    Args:
        ledger: The campaign's open ledger, in a transaction.
        runs: The runs that are done again.
        choose_again: What was chosen for these runs is chosen anew.
    """
    depending = ledger.runs_named(ledger.dependents(runs))
    skipped = [r.id for r in depending if r.state is State.CANCELLED and (r.reason or "").startswith(SKIPPED)]
    ledger.release(skipped)
    ledger.hold_stage(skipped)
    if choose_again:
        ledger.hold_stage(runs)
        ledger.set_meta(RECORDED, {})
    for run in depending:
        if run.state is State.DONE:
            ledger.update_tasks([run.id], reason="older than the run that it was chosen from, which is done again")
    return [run.id for run in ledger.runs_named([*runs, *skipped])]
