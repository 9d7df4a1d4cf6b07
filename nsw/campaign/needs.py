"""Needs of tasks for others that must be done first: a run for its build, a reduction for its run.

While the source is not done a task waits in the ledger; one that waits for a build is handed over at once where the
scheduler's own dependencies can be trusted. A source that went wrong dooms what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.judge import Verdict
from nsw.campaign.ledger_rows import Kind, State, Why
from nsw.campaign.stages import SKIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.campaign.driven import Driven
    from nsw.campaign.ledger_needs import Doomed
    from nsw.campaign.ledger_tasks import Pending


class Needs:
    """What of a campaign may go, waits, or can not begin any more; the caller holds its lock.

    Args:
        it: The campaign.
    """

    def __init__(self, it: Driven) -> None:
        self._ledger = it.ledger
        self._scheduler = it.scheduler
        it.scheduler.after = it.ledger.dependency_of

    def pending(self, limit: int, place: str | None = None, kinds: Sequence[Kind] = tuple(Kind)) -> list[Pending]:
        """The next tasks to submit, or only those of a place; at most so many runs are looked at."""
        if self._ledger.any_waits():
            self._ledger.meet_done()
        return self._ledger.pending(limit, leave_builds=self._scheduler.dependencies, place=place, kinds=kinds)

    def doomed(self) -> dict[str, Verdict]:
        """The tasks, planned or in flight, that can not begin, each with its end."""
        if not self._ledger.any_waits():
            return {}
        return {one.task: _end(one) for one in self._ledger.doomed()}

    def end_of(self, task: str) -> Verdict | None:
        """How a task ends whose source went wrong; None for any other."""
        return next((_end(one) for one in self._ledger.doomed(task)), None)

    def waiting_for(self, sources: Iterable[str]) -> set[str]:
        """The tasks that wait for any of these to be done."""
        return self._ledger.waiting_until_done(sources)

    def unneeded(self) -> set[str]:
        """Builds in flight for which no task waits any more."""
        return self._ledger.unneeded()


def _end(one: Doomed) -> Verdict:
    how = "was lost" if one.state is State.LOST else f"was {one.state}" if one.state is State.CANCELLED else "failed"
    if one.why is Why.BUILD:
        reason = f"its build {how}: {one.reason}; `nsw logs {one.source}` prints its output"
        return Verdict(State.FAILED, reason, ended=True)
    return Verdict(State.CANCELLED, f"{SKIPPED}{one.source} {how}: {one.reason or 'no reason'}", ended=True)
