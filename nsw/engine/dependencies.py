"""What waits for what: a run for its build, the canary or an earlier stage, a reduction for its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.engine.judge import Verdict
from nsw.engine.ledger_rows import RECORDED, Cause, Doomed, Kind, NeedReason, NeedState, Pending, Reason, State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.ledger import Ledger


class Dependencies:
    """What of a campaign may go, waits, or can not begin any more; the caller holds its lock.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._ledger = campaign.ledger
        self._scheduler = campaign.scheduler
        campaign.scheduler.after = campaign.ledger.native_dependencies

    def pending(self, limit: int, location: str | None = None, kinds: Sequence[Kind] = tuple(Kind)) -> list[Pending]:
        """The next tasks to submit, or only those of a place; at most so many runs are looked at."""
        if self._ledger.has_open_needs():
            self._ledger.meet_done()
        return self._ledger.pending(
            limit, leave_builds=self._scheduler.can.dependencies, location=location, kinds=kinds
        )

    def doomed(self) -> dict[str, Verdict]:
        """The tasks, planned or in flight, that can not begin, each with its end."""
        if not self._ledger.has_open_needs():
            return {}
        return {doomed.task: _doomed_verdict(doomed) for doomed in self._ledger.doomed()}

    def end_of(self, task: str) -> Verdict | None:
        """How a task ends whose source went wrong; None for any other."""
        return next((_doomed_verdict(doomed) for doomed in self._ledger.doomed(task)), None)

    def waiting_for(self, sources: Iterable[str]) -> set[str]:
        """The tasks that wait for any of these to be done."""
        return self._ledger.waiting_until_done(sources)

    def unneeded(self) -> set[str]:
        """Builds in flight for which no task waits any more."""
        return self._ledger.unneeded()


def _doomed_verdict(doomed: Doomed) -> Verdict:
    outcome = (
        "was lost"
        if doomed.state is State.LOST
        else f"was {doomed.state}"
        if doomed.state is State.CANCELLED
        else "failed"
    )
    if doomed.why is NeedReason.BUILD:
        reason = f"its build {outcome}: {doomed.reason}; `nsw logs {doomed.source}` prints its output"
        return Verdict(State.FAILED, Reason(reason), ended=True)
    reason = f"{doomed.source} {outcome}: {doomed.reason or 'no reason'}"
    return Verdict(State.CANCELLED, Reason(reason, Cause.SKIPPED), ended=True)


def release_dependents(ledger: Ledger, runs: Sequence[str], *, choose_again: bool) -> list[str]:
    """Release what was skipped for want of these runs; the ids of all runs to do now, in the plan's order.

    Args:
        ledger: The campaign's open ledger, in a transaction.
        runs: The runs that are done again.
        choose_again: What was chosen for these runs is chosen anew.
    """
    release_reductions(ledger, runs)
    depending = ledger.runs_named(ledger.dependents(runs))
    skipped = [r.id for r in depending if r.state is State.CANCELLED and r.cause is Cause.SKIPPED]
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
    again = [row.id for row in ledger.reductions(run_ids=set(runs)) if row.state is not State.PLANNED]
    ledger.release(again)
    ledger.hold_reductions(again)


def refused_canary(ledger: Ledger) -> list[str]:
    """The canary that failed, or left a bad report: it goes ahead alone once more when all is tried again."""
    canary = ledger.canary()
    return [canary[0]] if canary and canary[1] is NeedState.REFUSED else []


def release_canary(ledger: Ledger, runs: Collection[str], *, by_name: bool) -> None:
    """Hold the rest once more if the canary is among these runs, which are released.

    Else those that a person named go without it.
    """
    canary = ledger.canary()
    if canary and canary[0] in runs:
        ledger.record_canary_verdict(NeedState.OPEN)
    elif by_name:
        ledger.waive_canary(runs)


def waive_canary(ledger: Ledger) -> None:
    """A person wants the rest although the canary failed."""
    if refused_canary(ledger):
        ledger.record_canary_verdict(NeedState.MET)
