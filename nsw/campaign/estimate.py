"""How long a campaign will still take, by what its runs took so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nsw.campaign.ledger_rows import ENDED, State

if TYPE_CHECKING:
    from collections.abc import Sequence


class Pace(NamedTuple):
    """Runs of one pass in one state: how many, the seconds that they took or take so far, those that are timed."""

    pass_name: str
    state: State
    runs: int
    seconds: float
    timed: int


def seconds_left(paces: Sequence[Pace]) -> float | None:
    """Seconds until the last run ends, if as many go on at a time as now and none waits longer in a queue.

    A pass of which no run is done takes as long as the others. None: no run is done, or none runs now.
    """
    done = [pace for pace in paces if pace.state is State.DONE and pace.timed]
    at_a_time = sum(pace.runs for pace in paces if pace.state is State.RUNNING)
    if not done or not at_a_time:
        return None
    mean = sum(pace.seconds for pace in done) / sum(pace.timed for pace in done)
    means = {pace.pass_name: pace.seconds / pace.timed for pace in done}
    left = 0.0
    for pace in paces:
        if pace.state not in ENDED:
            behind = pace.seconds if pace.state is State.RUNNING else 0.0
            left += max(0.0, pace.runs * means.get(pace.pass_name, mean) - behind)
    return left / at_a_time
