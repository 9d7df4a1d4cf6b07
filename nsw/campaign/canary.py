"""The canary: a campaign's first run goes ahead alone; the rest is held until what it left has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger import ENDED, State
from nsw.campaign.meta import CANARY
from nsw.errors import CanaryError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nsw.campaign.ledger import Ledger, RunRow
    from nsw.campaign.submissions import Pending

WANTED, PASSED, FAILED, WAIVED = "wanted", "passed", "failed", "waived"


class Canary:
    """Holds a campaign back until its canary is back; does nothing in a campaign that wants none.

    Args:
        ledger: The campaign's open ledger; its `canary` says where matters stand.
        fault: Reads what a run left; says what is wrong with it, or None.
        wanted: False where a person named the runs to do, and the canary is none of them.
    """

    def __init__(
        self, ledger: Ledger, fault: Callable[[RunRow], str | None] = lambda _run: None, *, wanted: bool = True
    ) -> None:
        self._ledger = ledger
        self._fault = fault
        self._wanted = wanted

    def allowed(self, pending: list[Pending]) -> list[Pending]:
        """What of the tasks that wait may be submitted now."""
        if not self._held() or not pending:
            return pending
        run = self.run()
        if run.state is not State.PLANNED:
            return []
        return [(run.job, run.task, self._ledger.next_attempt(run.job, run.task), run.gpus)]

    def check(self) -> None:
        """Let the rest go when the canary has ended well.

        Raises:
            CanaryError: It has not, and a person must say how to go on.
        """
        if not self._held():
            return
        run = self.run()
        if run.state not in ENDED:
            return
        wrong = self._wrong(run)
        self._ledger.set_meta(CANARY, PASSED if wrong is None else FAILED)
        rest = self._ledger.counts().get(State.PLANNED, 0)
        if wrong is None or (not rest and run.state is not State.DONE):  # the campaign's end tells of that one
            return
        raise CanaryError(
            f"the first run, {run.id}, went ahead alone and {wrong}",
            hint=(f"{rest} run{'s wait' if rest > 1 else ' waits'}; " if rest else "")
            + f"`nsw logs {run.id}` shows what it said; `nsw retry` tries it again, alone at first;"
            " `nsw resume` does the rest without it",
        )

    def again(self) -> list[str]:
        """The canary that failed, or left a bad report: it goes ahead alone once more when all is tried again."""
        return [self.run().id] if self._ledger.meta(CANARY) == FAILED else []

    def tried_again(self, runs: Collection[str]) -> bool:
        """Hold the rest once more if the canary is among these runs, which are released; else False."""
        among = self._ledger.meta(CANARY) in {WANTED, FAILED} and self.run().id in runs
        if among:
            self._ledger.set_meta(CANARY, WANTED)
        return among

    def waive(self) -> None:
        """A person wants the rest although the canary failed."""
        if self._ledger.meta(CANARY) == FAILED:
            self._ledger.set_meta(CANARY, WAIVED)

    def run(self) -> RunRow:
        """The first run that is to leave a report, else the first."""
        return self._ledger.runs("seq = (SELECT seq FROM runs ORDER BY reports = '[]', seq LIMIT 1)")[0]

    def _wrong(self, run: RunRow) -> str | None:
        if run.state is not State.DONE:
            how = run.state if run.state is State.FAILED else f"was {run.state}"
            return how + (f": {run.reason}" if run.reason else "")
        fault = self._fault(run)
        return None if fault is None else f"is done, but what it left is of no use: {fault}"

    def _held(self) -> bool:
        return self._wanted and self._ledger.meta(CANARY) == WANTED
