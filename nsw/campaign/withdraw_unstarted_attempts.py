"""Attempts given up before they began: nsw claims their folders, so that no job that turns up late can begin them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.errors import CommandError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.driven import Driven
    from nsw.campaign.ledger_rows import Flying

_MOST = 3  # times that a run is submitted again by itself
_SOME = 200  # folders of one command line
# as a job claims: of two that try only one can make the file; one that nsw made before is as good as a new one
_CLAIM = r"""
number=0
for dir in "$@"; do
  mkdir -p "$dir"
  { (set -C; echo state=withdrawn >"$dir/claim") || [ "$(head -n 1 "$dir/claim")" = state=withdrawn ]; } 2>/dev/null &&
    echo "$number"
  number=$((number + 1))
done
:
"""


class Withdrawing:
    """Takes back attempts that a scheduler forgot, could not launch, or may take after they were cancelled.

    Args:
        it: The campaign, whose ledger says how often that was done for a run.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it

    def may(self, run: Flying) -> bool:
        """Whether a run or build may be submitted again by itself: a fault that stays is not tried for ever."""
        return self._it.ledger.withdrawals(run.id) < _MOST

    def withdraw(self, runs: Sequence[Flying]) -> set[str]:
        """Claim the folders of these attempts.

        Returns:
            The ids of the runs that can begin no more under their present attempt; the others have begun.

        Raises:
            UnreachableError: The site could not be asked.
        """
        return {run.id for at in range(0, len(runs), _SOME) for run in self._claim(runs[at : at + _SOME])}

    def plan_again(self, run: Flying, reason: str | None) -> None:
        """Plan a withdrawn run or build anew, under its next attempt."""
        ledger = self._it.ledger
        ledger.count_withdrawal(run.id)
        ledger.release([run.id])
        ledger.update_tasks([run.id], reason=f"{reason}; it had not begun, and is submitted again")

    def _claim(self, runs: Sequence[Flying]) -> list[Flying]:
        folders = [self._it.home(run.id, run.attempt) for run in runs]
        argv = ["bash", "-c", _CLAIM, "nsw", *folders]
        if self._it.handover is None:
            done = self._it.transport.run(argv, timeout=120)
        else:  # the attempts of a campaign that was taken over are another nsw's
            fence = self._it.handover.fence
            done = fence.passed(argv, self._it.transport.run(fence.around(argv), timeout=120))
        if done.returncode != 0:
            raise UnreachableError(CommandError(done, what="attempts could not be withdrawn").message)
        return [runs[int(number)] for number in done.stdout.split()]
