"""`stop_after_failures`: once so many runs have failed nothing new is submitted, and what waits is withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger_meta_keys import FAILED_BEFORE, STOP_AFTER, STOPPED
from nsw.campaign.ledger_rows import Kind, State
from nsw.campaign.withdraw_unstarted_attempts import Withdrawing
from nsw.errors import NswError, UnreachableError

if TYPE_CHECKING:
    from nsw.campaign.driven import Driven
    from nsw.campaign.in_flight import InFlight
    from nsw.campaign.ledger import Ledger


class FailureLimit:
    """Stops a campaign of which too many runs fail; the caller holds its lock.

    Args:
        it: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, it: Driven, flight: InFlight) -> None:
        self._it = it
        self._flight = flight
        self._limit = it.ledger.meta(STOP_AFTER)
        self._withdrawing = Withdrawing(it)
        self._asked: set[tuple[str, int]] = set()  # attempts that could not be withdrawn: they had begun
        self.reached = it.ledger.meta(STOPPED) is not None

    def look(self) -> None:
        """See whether too many runs have failed by now."""
        if self._limit is None or self.reached:
            return
        failed = failures(self._it.ledger) - self._it.ledger.meta(FAILED_BEFORE)
        if failed >= self._limit:
            self.reached = True
            why = f"{failed} run{'s' if failed > 1 else ''} failed (stop_after_failures: {self._limit})"
            self._it.ledger.set_meta(STOPPED, why)
            self._it.say(f"stopped: {why}; no new run starts, and running ones continue")

    def withdraw(self) -> None:
        """Take back what is submitted and has not begun, once the limit is reached."""
        if not self.reached:
            return
        waiting = [
            one
            for one in self._flight
            if one.kind is Kind.RUN and not one.begun and (one.id, one.attempt) not in self._asked
        ]
        if not waiting:
            return
        try:
            gone = self._withdrawing.withdraw(waiting)
        except UnreachableError:  # tried again in the next round
            return
        self._asked |= {(one.id, one.attempt) for one in waiting}
        if not gone:
            return
        # a task of which another run still goes on must not be cancelled: it passes over what was withdrawn
        going = {(one.job, one.task) for one in self._flight if one.id not in gone}
        try:
            self._it.scheduler.cancel(
                self._flight.holding(lambda one: one.id in gone and (one.job, one.task) not in going)
            )
        except NswError as fault:
            self._it.say(
                f"warning: withdrawn jobs are still in the queue; they will end as soon as they start: {fault.message}"
            )
        self._flight.drop(lambda one: one.id in gone)
        with self._it.ledger.transaction():
            self._it.ledger.release(sorted(gone))
            self._it.ledger.update_tasks(sorted(gone), reason="withdrawn: too many runs failed")
            self._flight.close()
        self._it.changed(sorted(gone))


def go_on(ledger: Ledger) -> None:
    """A person wants the campaign to go on: the runs that have failed until now count no more."""
    ledger.set_meta(STOPPED, None)
    ledger.set_meta(FAILED_BEFORE, failures(ledger))


def failures(ledger: Ledger) -> int:
    """How many runs failed or were lost."""
    counts = ledger.counts()
    return counts.get(State.FAILED, 0) + counts.get(State.LOST, 0)
