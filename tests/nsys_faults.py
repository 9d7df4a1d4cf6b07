"""nsys itself fails now and then on a busy machine, whatever it profiles: then it is tried again, as a person would.

Of about 1,000 starts of nsys 2024.2.3, at most six at a time on two cores, five lost their own agent, one of them although
no other nsys ran. nsw reports it and `nsw retry RUN` measures again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

OWN_FAULT = re.compile(
    "Connection to Agent lost|Local Endpoint is not available|Importation failed|Importer error status: An unknown error"
)
TRIES = 4


def profiled(profile: Callable[[], str]) -> str:
    """What nsys printed, of the first try that it did not spoil itself."""
    for _ in range(TRIES):
        if not OWN_FAULT.search(printed := profile()):
            break
    return printed


def retried(done: CompletedProcess[str], run: str, nsw: Callable[..., CompletedProcess[str]]) -> CompletedProcess[str]:
    """The end of an `nsw run`, or of the retry of a run that nsys spoiled itself."""
    for _ in range(TRIES):
        if done.returncode == 0 or not OWN_FAULT.search(done.stdout + done.stderr):
            break
        done = nsw("retry", run)
    return done
