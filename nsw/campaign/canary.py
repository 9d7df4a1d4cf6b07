"""The canary: a campaign's first run goes ahead alone; the rest is held until what it left has been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger import ENDED, State
from nsw.errors import CampaignError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.campaign.ledger import Ledger, RunRow
    from nsw.campaign.submissions import Pending

WANTED, PASSED, FAILED = "wanted", "passed", "failed"


class Canary:
    """Holds a campaign back until its canary is back; does nothing in a campaign that wants none.

    Args:
        ledger: The campaign's open ledger; its `canary` says where matters stand.
        fault: Reads what a run left; says what is wrong with it, or None.
    """

    def __init__(self, ledger: Ledger, fault: Callable[[RunRow], str | None] = lambda _run: None) -> None:
        self._ledger = ledger
        self._fault = fault

    def allowed(self, pending: list[Pending]) -> list[Pending]:
        """What of the tasks that wait may be submitted now."""
        if not self._held() or not pending:
            return pending
        run = self._run()
        return [(run.job, run.task, run.attempt + 1, run.gpus)] if run.state is State.PLANNED else []

    def check(self) -> None:
        """Let the rest go when the canary has ended well.

        Raises:
            CampaignError: It has not. The next nsw goes on with the rest: then a person has seen this.
        """
        if not self._held():
            return
        run = self._run()
        if run.state not in ENDED:
            return
        wrong = self._fault(run) if run.state is State.DONE else f"it is {run.state}: {run.reason}"
        self._ledger.set_meta("canary", PASSED if wrong is None else FAILED)
        if wrong is not None:
            raise CampaignError(
                f"the first run, {run.id}, went ahead alone, and something is wrong with it: {wrong}",
                hint=f"the rest waits; `nsw logs {run.id}` shows what it said, `nsw resume` does the rest anyway",
            )

    def _held(self) -> bool:
        return self._ledger.meta("canary") == WANTED

    def _run(self) -> RunRow:
        """The first run that is to leave a report, else the first."""
        return self._ledger.runs("seq = (SELECT seq FROM runs ORDER BY reports = '[]', seq LIMIT 1)")[0]
