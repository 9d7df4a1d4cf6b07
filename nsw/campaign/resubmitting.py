"""Which attempts may be given up and submitted again: those that had not begun, where nothing else begins with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.ledger_rows import State
from nsw.campaign.withdraw_unstarted_attempts import Withdrawing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from nsw.campaign.driven import Driven
    from nsw.campaign.finish_tasks import Ending
    from nsw.campaign.ledger_rows import Flying


class Resubmitting:
    """Takes back attempts that had not begun, so that they can be submitted again.

    Args:
        it: The campaign.
        ending: Knows what runs wrote of themselves.
    """

    def __init__(self, it: Driven, ending: Ending) -> None:
        self._ledger = it.ledger
        self._ending = ending
        self._withdrawing = Withdrawing(it)

    def withdraw(self, several: Iterable[Flying]) -> set[str]:
        """The ids of those that had not begun, and can begin no more under their present attempt.

        Raises:
            UnreachableError: The site could not be asked.
        """
        idle = [one for one in several if self._withdrawing.may(one) and not self._ending.left_a_mark(one)]
        may = self._alone(idle, {one.id for one in idle})
        return {one.id for one in self._alone(may, self._withdrawing.withdraw(may))}

    def plan_again(self, one: Flying, reason: str | None) -> None:
        """Plan one that was withdrawn anew, under its next attempt."""
        self._withdrawing.plan_again(one, reason)

    def _alone(self, several: Iterable[Flying], idle: Collection[str]) -> list[Flying]:
        """Those whose tasks hold nothing else that a new job would begin again.

        One script does all runs of a task but those that are done: one that had begun, or failed, would be done twice.
        """
        some = [one for one in several if one.id in idle]
        held: dict[tuple[str, int], bool] = {}
        for one in some:
            if (one.job, one.task) not in held:
                held[one.job, one.task] = any(
                    run.id not in idle
                    and run.state not in {State.DONE, State.PLANNED}
                    and not self._ending.is_done(run)
                    for run in self._ledger.runs(job=one.job, tasks=[one.task])
                )
        return [one for one in some if not held[one.job, one.task]]
