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
    done = [one for one in paces if one.state is State.DONE and one.timed]
    at_a_time = sum(one.runs for one in paces if one.state is State.RUNNING)
    if not done or not at_a_time:
        return None
    mean = sum(one.seconds for one in done) / sum(one.timed for one in done)
    means = {one.pass_name: one.seconds / one.timed for one in done}
    left = 0.0
    for one in paces:
        if one.state not in ENDED:
            behind = one.seconds if one.state is State.RUNNING else 0.0
            left += max(0.0, one.runs * means.get(one.pass_name, mean) - behind)
    return left / at_a_time
