"""What a retry means for stages: skipped runs come back, finished ones are marked as older than their source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger_meta_keys import RECORDED
from nsw.campaign.ledger_rows import State
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
    release_reductions(ledger, runs)
    depending = ledger.runs_named(ledger.dependents(runs))
    skipped = [r.id for r in depending if r.state is State.CANCELLED and (r.reason or "").startswith(SKIPPED)]
    ledger.release(skipped)
    ledger.hold_stage(skipped)
    if choose_again:
        ledger.hold_stage(runs)
        ledger.set_meta(RECORDED, {})
    for run in depending:
        if run.state is State.DONE:
            ledger.update_tasks([run.id], reason="older than the run that it was chosen from, which is run again")
    return [run.id for run in ledger.runs_named([*runs, *skipped])]


def release_reductions(ledger: Ledger, runs: Sequence[str]) -> None:
    """Plan the reductions of these runs again; they wait until their runs are done."""
    again = [row.id for row in ledger.reductions(of=set(runs)) if row.state is not State.PLANNED]
    ledger.release(again)
    ledger.hold_reductions(again)
