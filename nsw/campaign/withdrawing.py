"""Attempts given up before they began: nsw claims their folders, so that no job that turns up late can begin them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.collect import run_folder
from nsw.errors import CommandError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.campaign.ledger import Ledger
    from nsw.campaign.rows import Flying
    from nsw.transport.model import Transport

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
    """Takes back attempts that a scheduler forgot or could not launch.

    Args:
        ledger: Where it is written how often that was done for a run.
        transport: The way to the runs' folders.
        scratch: The campaign's folder on the site.
    """

    def __init__(self, ledger: Ledger, transport: Transport, scratch: str) -> None:
        self._ledger = ledger
        self._transport = transport
        self._scratch = scratch

    def may(self, run: Flying) -> bool:
        """Whether a run may be submitted again by itself: a fault that stays is not tried for ever.

        A build may not, since jobs depend on its job.
        """
        return not run.build and self._times(run) < _MOST

    def withdraw(self, runs: Sequence[Flying]) -> set[str]:
        """Claim the folders of these attempts.

        Returns:
            The ids of the runs that can begin no more under their present attempt; the others have begun.

        Raises:
            UnreachableError: The site could not be asked.
        """
        return {run.id for at in range(0, len(runs), _SOME) for run in self._claim(runs[at : at + _SOME])}

    def plan_again(self, run: Flying, reason: str | None) -> None:
        """Plan a withdrawn run anew, under its next attempt."""
        self._ledger.set_meta(_key(run), str(self._times(run) + 1))
        self._ledger.release([run.id])
        self._ledger.update_runs([run.id], reason=f"{reason}; it had not begun, and is submitted again")

    def _times(self, run: Flying) -> int:
        return int(self._ledger.meta(_key(run)) or 0)

    def _claim(self, runs: Sequence[Flying]) -> list[Flying]:
        folders = [run_folder(self._scratch, run.id, run.attempt) for run in runs]
        done = self._transport.run(["bash", "-c", _CLAIM, "nsw", *folders], timeout=120)
        if done.returncode != 0:
            raise UnreachableError(CommandError(done, what="attempts could not be withdrawn").message)
        return [runs[int(number)] for number in done.stdout.split()]


def _key(run: Flying) -> str:
    return f"submitted again {run.id}"
