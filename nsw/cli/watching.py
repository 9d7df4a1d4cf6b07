"""`nsw watch`: the live table of a campaign that another nsw drives, or that was left alone. It changes nothing."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Self

from nsw.campaign import folder as folders
from nsw.campaign.ledger import ENDED, Ledger, State
from nsw.campaign.ownership import owner_if_other
from nsw.errors import Exit, NswError
from nsw.present.live import Watch
from nsw.present.text_of_others import say
from nsw.service.events import Message, RunChanged, Started
from nsw.service.naming import as_named
from nsw.wording import headline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nsw.campaign.ledger import RunRow
    from nsw.campaign.onlooker import Onlooker
    from nsw.transport.model import Transport

_LEDGER_S = 2.0  # between two looks at a ledger that another nsw writes
_SITE_S = 10.0  # between two looks at the site
_RELOAD_S = 60.0  # after which the state of an nsw on another machine is brought again


def watch(campaign: str | None, root: Path | None, *, once: bool) -> int:
    """Show how a campaign's runs go until none is in flight, or once.

    Raises:
        UnreachableError: The site cannot be reached, at the first look.
    """
    folder = folders.find(folders.root(root), campaign)
    try:
        while True:
            if folders.is_driven(folder) or owner_if_other(folder.path):  # no connection for another user's campaign
                if _follow(folder, once=once):
                    return Exit.GOOD
            elif _look_on(folder, once=once):
                return Exit.GOOD
    except KeyboardInterrupt:
        return Exit.INTERRUPTED


def _follow(folder: folders.CampaignFolder, *, once: bool) -> bool:
    """Follow the ledger that another process writes; False when that process ended before the runs did."""
    seen: dict[str, State] | None = None
    with Ledger(folder.ledger, read_only=True) as ledger, _View(ledger) as shown:
        while True:
            rows = ledger.runs()
            shown.changed(_news(rows, seen))
            seen = {row.id: row.state for row in rows}
            over = all(row.state in ENDED for row in rows)
            other = owner_if_other(folder.path)
            if over or once:
                break
            if not other and not folders.is_driven(folder):
                return False
            time.sleep(_LEDGER_S)
        counts = ledger.counts()
    say(f"{folder.id}: {headline(counts)}")
    return True


def _look_on(folder: folders.CampaignFolder, *, once: bool) -> bool:
    """Look at the site of a campaign that nobody drives here; False when somebody begins to, or to look anew."""
    from nsw.campaign.onlooker import Onlooker
    from nsw.transport.create import connect

    with Ledger(folder.ledger, read_only=True) as ledger:
        site = ledger.site()
    with closing(connect(site)) as transport, Onlooker(folder, transport) as onlooker:
        return _shown(folder, onlooker, transport, once=once)


def _shown(folder: folders.CampaignFolder, onlooker: Onlooker, transport: Transport, *, once: bool) -> bool:
    begun, first = time.monotonic(), True
    with _View(onlooker.ledger) as shown:
        shown.changed(onlooker.ledger.runs(states=[State.RUNNING]))
        while True:
            first = _look(onlooker, shown.changed, shown.say, first=first)
            if once or not onlooker.flying():
                break
            time.sleep(_SITE_S if transport.remote else _LEDGER_S)
            if folders.is_driven(folder) or (onlooker.elsewhere and time.monotonic() - begun > _RELOAD_S):
                return False
    counts = onlooker.ledger.counts()
    say(f"{folder.id}: {headline(counts)}")
    if onlooker.elsewhere:
        say("an nsw on another machine drives it", file=sys.stderr)
    elif onlooker.changed_any or counts.get(State.PLANNED):
        say(f"nobody drives it: `nsw resume {as_named(folder)}` goes on and reads what is done", file=sys.stderr)
    return True


def _look(
    onlooker: Onlooker, changed: Callable[[list[RunRow]], object], tell: Callable[[str], object], *, first: bool
) -> bool:
    """One look; a fault of the first one ends the command, a later one is told and may pass."""
    try:
        changed(onlooker.look())
    except NswError as fault:
        if first:
            raise
        tell(fault.message)
    return False


def _news(rows: list[RunRow], seen: dict[str, State] | None) -> list[RunRow]:
    """The rows that changed; at first those that run, since what is over is in the headline."""
    if seen is None:
        return [row for row in rows if row.state is State.RUNNING]
    return [row for row in rows if seen.get(row.id) is not row.state]


class _View:
    """The live table, fed with rows instead of a driver's events."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._watch = Watch(ledger)

    def __enter__(self) -> Self:
        self._watch.__enter__()
        counts = self._ledger.counts()
        self._over, self._total = _ended(counts), sum(counts.values())
        self._watch.show(Started("", counts))
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.stop()

    def changed(self, rows: list[RunRow]) -> None:
        """Show rows in another state than before."""
        over = _ended(self._ledger.counts()) - sum(row.state in ENDED for row in rows)
        for row in rows:
            over += row.state in ENDED
            self._watch.show(RunChanged(row, over, self._total))

    def say(self, text: str) -> None:
        """Show a warning."""
        self._watch.show(Message(text, "warning"))


def _ended(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in ENDED)
