"""Commands that a killed nsw left behind: one may yet hand its job over, which is looked up only afterwards."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nsw.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.transport.model import Transport

_MOST_S = 150.0  # commands have a timeout of two minutes
_LOOK_S = 0.05  # at first; each look at a site elsewhere starts a shell there, so it is looked at less and less often
_LOOK_MOST_S = 2.0
_SAY_AFTER_S = 1.0


def wait_for_commands(
    transport: Transport,
    say: Callable[[str], object],
    *,
    most_s: float = _MOST_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Return when no command of an earlier nsw runs for this campaign.

    Args:
        transport: The way to the site, which knows.
        say: Prints a line for the user; asked only when it takes a second.
        most_s: How long to wait.
        clock: Seconds that only grow; tests hand in their own, as for the next.
        sleep: Waits.

    Raises:
        UnreachableError: One still runs after that.
    """
    begun, said, pause = clock(), False, _LOOK_S
    while transport.left_running():
        waited = clock() - begun
        if waited >= most_s:
            raise UnreachableError(
                "a command that a killed nsw started is still running, and may yet submit a job",
                hint="`ps` there shows it; run `nsw resume` when it has ended",
            )
        if waited >= _SAY_AFTER_S and not said:
            said = True
            say(
                "a command that a killed nsw started is still running, and may yet submit a job:"
                f" it is waited for, at most {most_s:.0f} s"
            )
        sleep(pause)
        pause = min(pause * 1.5, _LOOK_MOST_S)
