"""One campaign at a time on this machine: two that run side by side disturb what they measure.

The turn is a lock on a file in the folder of this user's GPU claims. It ends with the nsw that holds it; the file says
whose it was last, so that runs which outlive their nsw are waited for too.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nsw.schedulers.gpus import claims_folder
from nsw.schedulers.local import held_locks

INSIDE: Final = "NSW_CAMPAIGN"  # variable of a run: the campaign that it is of
_FILE: Final = "turn"
_LONGEST: Final = 1 << 16  # bytes of the file


@dataclass(frozen=True, slots=True)
class Owner:
    """A campaign that has, or had, the turn: its id, its folder, the folder of its jobs' locks, its nsw's process."""

    campaign: str
    folder: str
    jobs: str
    process: int = 0


class Turn:
    """The turn of one campaign; `take` until it gives None, then `release`.

    Args:
        me: The campaign.

    Raises:
        OSError: This user has no safe folder for it.
    """

    def __init__(self, me: Owner) -> None:
        self._me = me
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(claims_folder()[0] / _FILE, flags, 0o600)
        self._mine = False

    def take(self) -> str | None:
        """Try to get the turn: None when this campaign has it, else what it waits for."""
        if not self._mine:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                other = self._owner()
                if other is not None and other.process == os.getpid():
                    return None  # a program that drives several campaigns at a time means it
                return "another campaign runs on this machine" + (
                    f": {other.campaign} ({other.folder})" if other else ""
                )
            self._mine = True
        last = self._owner()
        mine = last is None or last.jobs == self._me.jobs or last.process == os.getpid()
        if last is not None and not mine and held_locks(Path(last.jobs)):
            return f"runs of another campaign go on on this machine: {last.campaign} ({last.folder})"
        data = json.dumps([self._me.campaign, self._me.folder, self._me.jobs, os.getpid()]).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, data, 0)
        return None

    def release(self) -> None:
        """Let the next campaign have it."""
        with suppress(OSError):
            os.close(self._file)

    def _owner(self) -> Owner | None:
        try:
            found = json.loads(os.pread(self._file, _LONGEST, 0))
        except ValueError:  # nobody had it yet, or an nsw was killed while it wrote
            return None
        kinds = (str, str, str, int)
        if not isinstance(found, list) or len(found) != len(kinds) or not all(map(isinstance, found, kinds)):
            return None
        return Owner(*found)


def is_inside_a_run() -> bool:
    """Whether this nsw was started by a run of a campaign on this machine, which holds the turn for it."""
    return bool(os.environ.get(INSIDE))
