"""How far running programs are, asked now and then while a campaign is driven."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from nsw.campaign.estimate import seconds_left
from nsw.campaign.job_ids import job_ids
from nsw.campaign.ledger_meta_keys import SCRATCH
from nsw.campaign.ledger_rows import State
from nsw.campaign.owning_user import owner_if_other
from nsw.campaign.progress_lines import MOST, last_lines
from nsw.errors import NswError
from nsw.safe_files import read_plain
from nsw.service.events import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.ledger_rows import RunRow
    from nsw.service.driving import Held

_HERE_S: Final = 2.0
_THERE_S: Final = 10.0  # a site behind a transport is asked less often
_FILE: Final = "progress.json"
_MOST_BYTES: Final = 1 << 16


class Looking:
    """Looks at what runs at most every few seconds, and leaves what it saw for `nsw status` of other terminals.

    Args:
        it: The campaign.
        now: Seconds of a clock that only goes forward.
    """

    def __init__(self, it: Held, now: Callable[[], float] = time.monotonic) -> None:
        self._it = it
        self._now = now
        self._pause = _THERE_S if it.transport.remote else _HERE_S
        self._next = now() + self._pause  # what is over sooner costs no look

    def look(self) -> Progress | None:
        """What is new; None where it is too early for another look, or nothing runs."""
        if self._now() < self._next:
            return None
        running = self._it.ledger.runs(states=(State.RUNNING,))[:MOST]
        seen = None
        if running:
            try:
                lines = last_lines(self._it.transport, self._it.scratch, running)
            except NswError:
                lines = {}
            jobs = job_ids(self._it.ledger, running)
            seen = Progress(lines, jobs, seconds_left(self._it.ledger.paces(time.time())))
            _leave(self._it.folder, lines)
        self._next = self._now() + self._pause
        return seen


def _leave(folder: CampaignFolder, lines: dict[str, str]) -> None:
    try:
        made = folder.path / f".{_FILE}"
        made.write_text(json.dumps({"lines": lines}), encoding="utf-8")
        made.replace(folder.path / _FILE)
    except OSError:  # a full disk: nobody misses it
        return


def last_seen(folder: CampaignFolder) -> dict[str, str]:
    """The last line of each run that the nsw which drives the campaign saw running, by its id."""
    try:
        found = json.loads(read_plain(folder.path / _FILE, last=_MOST_BYTES))["lines"]
        return {str(run): str(line) for run, line in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def lines_now(folder: CampaignFolder, ledger: Ledger, running: Sequence[RunRow], *, driven: bool) -> dict[str, str]:
    """The last line of each of these runs, by its id, as far as it is known without asking a site.

    On this machine their files are looked at; of a site elsewhere it is what the nsw that drives it saw last. Of
    another user's campaign nothing is read.
    """
    from nsw.transport.model import connect

    if not running or owner_if_other(folder.path):
        return {}
    site = ledger.site()
    if (site.get("transport") or {}).get("kind", "local") == "local":
        with closing(connect(site)) as transport:
            return last_lines(transport, ledger.meta(SCRATCH), running)
    ids = {run.id for run in running}
    return {id_: line for id_, line in last_seen(folder).items() if id_ in ids} if driven else {}
