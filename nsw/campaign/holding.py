"""`nsw throttle`: how many tasks may run at a time, as a person asked; with 0 nothing begins until another number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.meta import AT_A_TIME, HELD
from nsw.campaign.rows import State
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
        names: list[str] = it.ledger.meta(HELD)
        self._held = set(names)  # submissions that the scheduler was asked to hold
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
            some = [one for one in self._flight.submissions() if one.name in self._held]
        else:
            waiting = self._flight.holding(lambda one: one.state in {State.SUBMITTED, State.QUEUED})
            some = [one for one in waiting if one.name not in self._held]
        if not some and (limit == 0 or not self._held):
            return
        try:
            if some:
                self._it.scheduler.hold(some, held=limit == 0)
        except NswError:
            return
        self._held = self._held | {one.name for one in some} if limit == 0 else set()
        self._it.ledger.set_meta(HELD, sorted(self._held))
