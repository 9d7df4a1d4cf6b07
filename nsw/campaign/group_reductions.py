"""Reductions in jobs wait for each other, so that they share an array instead of being a job each."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger_rows import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.campaign.in_flight import InFlight
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_tasks import Pending

_GATHER_S: Final = 600.0  # that one waits for others at most


class Gathering:
    """Which reductions go to the scheduler now.

    Args:
        ledger: The campaign's open ledger.
        flight: What the scheduler has.
        clock: Seconds that only grow; tests hand in their own.
    """

    def __init__(self, ledger: Ledger, flight: InFlight, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._flight = flight
        self._clock = clock
        self._since: float | None = None

    def ready(self, pending: Sequence[Pending], most: int) -> list[Pending]:
        """Of what could go all but reductions, and these once an array is full, no run goes, or they waited long.

        Args:
            pending: What could go.
            most: How many tasks an array holds.
        """
        reductions = [one for one in pending if one[0] in self._jobs] if self._jobs else []
        others = [one for one in pending if one[0] not in self._jobs]
        if not reductions:
            self._since = None
            return others
        self._since = self._clock() if self._since is None else self._since
        idle = not others and not any(one.kind is Kind.RUN for one in self._flight)
        if idle or len(reductions) >= most or self._clock() - self._since >= _GATHER_S:
            self._since = None
            return list(pending)
        return others

    @cached_property
    def _jobs(self) -> frozenset[str]:
        return frozenset(row.job for row in self._ledger.reductions())
