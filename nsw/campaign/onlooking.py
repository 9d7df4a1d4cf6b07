"""A campaign seen without driving it, as an iterator of events: another nsw drives it, or it was left alone."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Self

from nsw.campaign import folder as folders
from nsw.campaign.events import Message, RunChanged, Started
from nsw.campaign.ledger import ENDED, Ledger, State
from nsw.campaign.ledger_rows import IN_FLIGHT
from nsw.campaign.owning_user import owner_if_other
from nsw.campaign.runs_by_name import as_named
from nsw.errors import NswError
from nsw.site.scheduler_and_transport_names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from nsw.campaign.events import Event
    from nsw.campaign.ledger import RunRow
    from nsw.campaign.onlooker import Onlooker
    from nsw.transport.model import Transport

_LEDGER_S = 2.0  # between two looks at a ledger that another nsw writes
_SITE_S = 10.0  # between two looks at the site
_RELOAD_S = 60.0  # after which the state of an nsw on another machine is brought again


@contextmanager
def ledger_now(folder: folders.CampaignFolder) -> Iterator[tuple[Ledger, Onlooker | None]]:
    """The campaign's ledger, for reading.

    On this machine, where looking needs no connection and no question to a scheduler, that of an onlooker where nobody
    drives the campaign: it knows of runs that ended since.
    """
    with Ledger(folder.ledger, read_only=True) as ledger:
        site, counts = ledger.checked_site(), ledger.counts()
        here = site["scheduler"] == LOCAL and site["transport"]["kind"] == LOCAL
        left = here and any(counts.get(state) for state in IN_FLIGHT) and not folders.is_driven(folder)
        if not left or owner_if_other(folder.path):
            yield ledger, None
            return
    from nsw.campaign.onlooker import Onlooker
    from nsw.transport.model import connect

    with closing(connect(site)) as transport, Onlooker(folder, transport) as onlooker:
        onlooker.look()
        yield onlooker.ledger, onlooker


class Watching:
    """Looks at a campaign while it is iterated, until no run is in flight; it changes nothing, here or on the site.

    `Started` comes first, and again whenever it must look anew, since somebody began or ceased to drive the campaign.

    Args:
        folder: The campaign.
        once: Look once.
    """

    def __init__(self, folder: folders.CampaignFolder, *, once: bool = False) -> None:
        self.folder = folder
        self.advice: str | None = None  # what a person should do, once it is over
        self._once = once
        self._ledger: Ledger | None = None
        self._counts: dict[str, int] = {}
        self._events = self._watch()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Look no more."""
        self._events.close()

    def counts(self) -> dict[str, int]:
        """How many runs are in each state, as last seen."""
        if self._ledger is not None:
            self._counts = self._ledger.counts()
        return self._counts

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """State, reason, first run and number of the runs that wait; only while it looks."""
        return self._ledger.why_waiting() if self._ledger is not None else []

    def _watch(self) -> Generator[Event]:
        folder = self.folder
        while True:
            driven = folders.is_driven(folder) or owner_if_other(folder.path)  # another user's: no connection for it
            if (yield from (self._follow() if driven else self._look_on())):
                return

    def _follow(self) -> Generator[Event, None, bool]:
        """Follow the ledger that another process writes; False when that process ended before the runs did."""
        seen: dict[str, State] | None = None
        with Ledger(self.folder.ledger, read_only=True) as ledger:
            yield from self._begin(ledger)
            while True:
                rows = ledger.runs()
                yield from self._changed(_news(rows, seen))
                seen = {row.id: row.state for row in rows}
                other = owner_if_other(self.folder.path)
                if self._once or all(row.state in ENDED for row in rows):
                    break
                if not other and not folders.is_driven(self.folder):
                    return self._end(over=False)
                time.sleep(_LEDGER_S)
            return self._end(over=True)

    def _look_on(self) -> Generator[Event, None, bool]:
        """Look at the site of a campaign that nobody drives here; False when somebody begins to, or to look anew."""
        from nsw.campaign.onlooker import Onlooker
        from nsw.transport.model import connect

        with Ledger(self.folder.ledger, read_only=True) as ledger:
            site = ledger.checked_site()
        with closing(connect(site)) as transport, Onlooker(self.folder, transport) as onlooker:
            return (yield from self._at_site(onlooker, transport))

    def _at_site(self, onlooker: Onlooker, transport: Transport) -> Generator[Event, None, bool]:
        begun, first = time.monotonic(), True
        yield from self._begin(onlooker.ledger)
        yield from self._changed(onlooker.ledger.runs(states=[State.RUNNING]))
        while True:
            try:
                yield from self._changed(onlooker.look())
            except NswError as fault:  # a later one may pass
                if first:
                    raise
                yield Message(fault.message, "warning")
            first = False
            if self._once or not onlooker.flying():
                break
            time.sleep(_SITE_S if transport.remote else _LEDGER_S)
            if folders.is_driven(self.folder) or (onlooker.elsewhere and time.monotonic() - begun > _RELOAD_S):
                return self._end(over=False)
        if onlooker.elsewhere:
            back = f"`nsw attach {self.folder.id}` takes it back"
            self.advice = f"an nsw on another machine drives it: {onlooker.elsewhere}; {back}"
        elif onlooker.changed_any or onlooker.flying() or onlooker.ledger.counts().get(State.PLANNED):
            self.advice = (
                f"nobody drives it: `nsw resume {as_named(self.folder)}` continues, and reads the runs that are done"
            )
        return self._end(over=True)

    def _begin(self, ledger: Ledger) -> Generator[Event]:
        self._ledger = ledger
        yield Started(self.folder.id, self.counts())

    def _end(self, *, over: bool) -> bool:
        self.counts()
        self._ledger = None
        return over

    def _changed(self, rows: list[RunRow]) -> Generator[Event]:
        """Rows in another state than before."""
        counts = self.counts()
        over = _ended(counts) - sum(row.state in ENDED for row in rows)
        for row in rows:
            over += row.state in ENDED
            yield RunChanged(row, over, sum(counts.values()))


def _news(rows: list[RunRow], seen: dict[str, State] | None) -> list[RunRow]:
    """The rows that changed; at first those that run, since what is over is in the headline."""
    if seen is None:
        return [row for row in rows if row.state is State.RUNNING]
    return [row for row in rows if seen.get(row.id) is not row.state]


def _ended(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in ENDED)
