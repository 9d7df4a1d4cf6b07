"""What to do about runs that did not succeed, as the command that does it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger_rows import State
from nsw.campaign.missing_files import how_to_send

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger

_OVER: Final = "over its time limit"  # as every scheduler's adapter words it
_TIMES: Final = 4  # the new limit, in times of what the longest run took
_UNKNOWN_S: Final = 450.0  # of a run whose times nobody wrote down: 30 minutes are offered


def how_to_repeat(folder: CampaignFolder, ledger: Ledger, which: str) -> str:
    """The command that repeats what failed: with a file that was missing, or with a longer limit where one was hit.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        which: The option that names the campaign, with a space before it; may be empty.
    """
    if (sending := how_to_send(folder, ledger)) is not None:
        return sending
    over = [run for run in ledger.runs(states=(State.FAILED,)) if _OVER in (run.reason or "")]
    if not over:
        return f"`nsw retry{which}` repeats what did not succeed"
    took = max(run.ended - run.started if run.started and run.ended else _UNKNOWN_S for run in over)
    minutes = max(1, math.ceil(_TIMES * took / 60))
    return f"`nsw retry{which} --time {minutes}m` repeats what did not succeed, with a longer time limit"
