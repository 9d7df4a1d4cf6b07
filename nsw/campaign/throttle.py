"""`nsw throttle`: how many tasks may run at a time, as a person asked; with 0 nothing begins until another number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger_meta_keys import AT_A_TIME, HELD
from nsw.campaign.ledger_rows import State
from nsw.errors import NswError

if TYPE_CHECKING:
    from nsw.campaign.driven import Driven
    from nsw.campaign.in_flight import InFlight


class Holding:
    """Passes the throttle of the ledger on to the scheduler; the caller holds the campaign's lock.

    Args:
        it: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, it: Driven, flight: InFlight) -> None:
        self._it = it
        self._flight = flight
        names = it.ledger.meta(HELD)
        self._asked = set(names)  # submissions that the scheduler may hold: to be released one day
        self._held: set[str] = set()  # of these, the ones that it confirmed to this process
        self._holds = False

    def settle(self) -> None:
        """Let the scheduler know; while it cannot be asked to hold or release, that is tried again."""
        limit = self._it.ledger.meta(AT_A_TIME)
        if limit is None:
            return
        self._it.scheduler.limit(limit)
        if (limit == 0) != self._holds:
            self._holds = limit == 0
            self._it.say(
                "held: nothing new begins until `nsw throttle N`" if self._holds else f"released: {limit} at a time"
            )
        if limit:
            self._release()
        else:
            self._hold()

    def _release(self) -> None:
        if not self._asked:
            return
        some = [one for one in self._flight.submissions() if one.name in self._asked]
        try:
            if some:
                self._it.scheduler.hold(some, held=False)
        except NswError:
            return
        self._asked, self._held = set(), set()
        self._it.ledger.set_meta(HELD, [])

    def _hold(self) -> None:
        waiting = self._flight.holding(lambda one: one.state in {State.SUBMITTED, State.QUEUED})
        some = [one for one in waiting if one.name not in self._held]
        if not some:
            return
        names = {one.name for one in some}
        if not names <= self._asked:  # before they are held: an nsw killed in between would never release them
            self._asked |= names
            self._it.ledger.set_meta(HELD, sorted(self._asked))
        try:
            self._it.scheduler.hold(some, held=True)
        except NswError:
            return
        self._held |= names
