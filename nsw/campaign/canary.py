"""The canary: a campaign's first run goes ahead alone; the others need that what it left has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger_rows import ENDED, IN_FLIGHT, Met, State
from nsw.errors import CanaryError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow


class Canary:
    """Judges the run that all others of a campaign need; does nothing in a campaign that wants none.

    Args:
        ledger: The campaign's open ledger.
        fault: Reads what a run left; says what is wrong with it, or None.
    """

    def __init__(self, ledger: Ledger, fault: Callable[[RunRow], str | None] = lambda _run: None) -> None:
        self._ledger = ledger
        self._fault = fault
        self._over = ledger.canary() is None

    def check(self) -> None:
        """Let the rest go when the canary has ended well.

        Raises:
            CanaryError: It has not, and a person must say how to go on.
        """
        run = self._unjudged()
        if run is None or run.state not in ENDED or self._is_reduced_still(run):
            return
        wrong = self._wrong(run)
        rest = self._ledger.held_by_canary()
        self._ledger.settle_canary(Met.MET if wrong is None else Met.REFUSED)
        if wrong is None or (not rest and run.state is not State.DONE):  # the campaign's end tells of that one
            return
        raise CanaryError(
            f"the first run, {run.id}, ran alone and {wrong}",
            hint=(f"{rest} run{'s wait' if rest > 1 else ' waits'}; " if rest else "")
            + f"`nsw logs {run.id}` prints its output; `nsw retry` runs it again, alone at first;"
            " `nsw resume` runs the rest without it",
        )

    def again(self) -> list[str]:
        """The canary that failed, or left a bad report: it goes ahead alone once more when all is tried again."""
        found = self._ledger.canary()
        return [found[0]] if found and found[1] is Met.REFUSED else []

    def tried_again(self, runs: Collection[str], *, named: bool) -> None:
        """Hold the rest once more if the canary is among these runs, which are released.

        Else those that a person named go without it.
        """
        found = self._ledger.canary()
        if found and found[0] in runs:
            self._ledger.settle_canary(Met.OPEN)
        elif named:
            self._ledger.waive_canary(runs)

    def waive(self) -> None:
        """A person wants the rest although the canary failed."""
        found = self._ledger.canary()
        if found and found[1] is Met.REFUSED:
            self._ledger.settle_canary(Met.MET)

    def _unjudged(self) -> RunRow | None:
        if self._over:
            return None
        found = self._ledger.canary()
        self._over = found is None or found[1] is Met.REFUSED
        return None if found is None or self._over else self._ledger.runs_named([found[0]])[0]

    def _is_reduced_still(self, run: RunRow) -> bool:
        """Whether its report is still to be reduced on the site: it cannot be read before."""
        going = self._ledger.reductions((State.PLANNED, *IN_FLIGHT), of={run.id})
        return run.state is State.DONE and bool(going)

    def _wrong(self, run: RunRow) -> str | None:
        if run.state is not State.DONE:
            how = run.state if run.state is State.FAILED else f"was {run.state}"
            return how + (f": {run.reason}" if run.reason else "")
        fault = self._fault(run)
        return None if fault is None else f"is done, but what it left is of no use: {fault}"
