"""`nsw watch`: a campaign seen without driving it. Another nsw drives it, here or elsewhere, or it was left alone.

Where nobody drives it here, its site is asked, with a copy of the ledger: nothing is written down, submitted,
cancelled, throttled, brought or claimed.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from nsw.campaign.selection import campaign_argument
from nsw.engine import folder as folders
from nsw.engine.driven import ledger_to_read
from nsw.engine.events import Event, Message, Progress, RunChanged, Started
from nsw.engine.folder import LEDGER, run_folder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import ENDED, IN_FLIGHT, OWNED_BY, SCRATCH, Reason, RunRow, State
from nsw.errors import NswError
from nsw.safe_files import write_bytes
from nsw.site.names import LOCAL
from nsw.transport.model import Transport, Unreadable, connect, read

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from nsw.schedulers.batch import BatchScheduler
    from nsw.schedulers.model import Answer

__all__ = ["Onlooker", "Watching", "current_ledger"]

_LEDGER_S: Final = 2.0  # between two looks at a ledger that another nsw writes
_SITE_S: Final = 10.0  # between two looks at the site
_RELOAD_S: Final = 60.0  # after which the state of an nsw on another machine is brought again
_OWNER_BYTES: Final = 4096


@dataclass(slots=True)
class Onlooker:
    """What has become of a campaign's runs, as their site knows it.

    Attributes:
        ledger: A copy, which keeps what was seen.
        elsewhere: The nsw on another machine that owns the campaign: user, host, since when.
        pause_s: Seconds from one look to the next.
        changed_any: The site knows more than the ledger here.
    """

    ledger: Ledger
    elsewhere: str | None
    pause_s: float
    _transport: Transport
    _scheduler: BatchScheduler | None
    changed_any: bool = False

    def poll_site(self) -> None:
        """Ask the site.

        Raises:
            UnreachableError: It gave no answer.
        """
        from nsw.engine.collect import judge, read_statuses
        from nsw.schedulers.model import Answer, Phase

        flying = [run for run in self.ledger.runs() if run.state in IN_FLIGHT]
        answers, unknown = self._poll_scheduler(flying), Answer(Phase.UNKNOWN)
        answer_by_run = {run.id: answers.get(run.submission or "", {}).get(run.task, unknown) for run in flying}
        scratch = self.ledger.meta(SCRATCH)
        begun_runs = [run for run in flying if answer_by_run[run.id].phase is not Phase.QUEUED]
        homes = {run.id: run_folder(scratch, run.id, run.attempt) for run in begun_runs}
        statuses = read_statuses(self._transport, homes.values()) if homes else {}
        with self.ledger.transaction():
            for run in flying:
                status = statuses.get(homes.get(run.id, ""))
                # whether something was submitted is looked up by who drives the campaign
                if isinstance(status, Unreadable) or (run.state is State.INTENT and status is None):
                    continue
                verdict = judge(answer_by_run[run.id], status)
                if (verdict.state, verdict.reason) != (run.state, Reason.from_text(run.detail, run.cause)):
                    times = {} if status is None else {"started": status.started, "ended": status.ended}
                    self.ledger.update_tasks([run.id], state=verdict.state, reason=verdict.reason, **times)
                    self.changed_any = True

    def _poll_scheduler(self, flying: list[RunRow]) -> dict[str, dict[int, Answer]]:
        """The scheduler's answer for each task, by submission."""
        names = {run.submission for run in flying}
        if self._scheduler is None or not names:
            return {}
        submissions = self.ledger.submissions("submitted", Path)  # a look needs no script
        submitted = [submission for submission in submissions if submission.name in names]
        return self._scheduler.poll(submitted, rebalance=False) if submitted else {}

    def in_flight_count(self) -> int:
        """How many runs the scheduler has."""
        counts = self.ledger.counts()
        return sum(counts.get(state, 0) for state in IN_FLIGHT)


@contextmanager
def _connect_onlooker(folder: folders.CampaignFolder, site: dict[str, Any]) -> Iterator[Onlooker]:
    """Connect to a campaign's site, with a copy of the ledger: of the nsw elsewhere that drives it, or the one here."""
    from nsw.engine.handover import fetch_stored_state
    from nsw.schedulers.batch import BatchScheduler
    from nsw.schedulers.create import create

    with closing(connect(site)) as transport, tempfile.TemporaryDirectory(prefix="nsw-watch-") as temporary:
        copy = Path(temporary, LEDGER)
        with ledger_to_read(folder) as ledger:
            write_bytes(copy, ledger.snapshot())
            scratch, own_token = ledger.meta(SCRATCH), ledger.meta(OWNED_BY)
        elsewhere = _owner_elsewhere(transport, scratch, own_token) if own_token is not None else None
        if elsewhere is not None:
            write_bytes(
                copy, fetch_stored_state(transport, scratch, Path(temporary))
            )  # its ledger is the one that knows
        scheduler = create(site, transport, scratch, folder.id)
        with Ledger(copy) as ledger:
            batch = scheduler if isinstance(scheduler, BatchScheduler) else None
            yield Onlooker(ledger, elsewhere, _SITE_S if transport.remote else _LEDGER_S, transport, batch)


def _owner_elsewhere(transport: Transport, scratch: str, own_token: str) -> str | None:
    """Who owns the campaign, as its site has it; None where that is this nsw."""
    if not transport.remote:
        return None
    text = (read(transport, f"{scratch}/owner", _OWNER_BYTES) or b"").decode(errors="backslashreplace")
    token, _, owner_description = text.partition("\n")
    if token in {"", own_token}:
        return None
    return owner_description.partition("\n")[0].strip() or "who that is, the site does not say"


@contextmanager
def current_ledger(folder: folders.CampaignFolder) -> Iterator[tuple[Ledger, Onlooker | None]]:
    """The campaign's ledger, for reading.

    On this machine, where looking needs no connection and no question to a scheduler, that of an onlooker where nobody
    drives the campaign: it knows of runs that ended since.
    """
    with ledger_to_read(folder) as ledger:
        site, counts = ledger.site(), ledger.counts()
        is_local = site["scheduler"] == LOCAL and site["transport"]["kind"] == LOCAL
        left = is_local and any(counts.get(state) for state in IN_FLIGHT) and not folders.is_driven(folder)
        if not left or not folder.trusted:
            yield ledger, None
            return
    with _connect_onlooker(folder, site) as onlooker:
        onlooker.poll_site()
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
        self.began: float | None = None  # Unix seconds: when its first run began
        self.advice: str | None = None  # what a person should do, once it is over
        self._once = once
        self._ledger: Ledger | None = None
        self._counts: dict[str, int] = {}
        self._events = self._watch_events()

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

    def _watch_events(self) -> Generator[Event]:
        self.folder.require_trust()  # it names a site that is asked
        over = False
        while not over:
            with ledger_to_read(self.folder) as ledger:
                if folders.is_driven(self.folder):
                    over = yield from self._watch_ledger(ledger, None)
                    continue
                site = ledger.site()
            with _connect_onlooker(self.folder, site) as onlooker:
                over = yield from self._watch_ledger(onlooker.ledger, onlooker)

    def _watch_ledger(self, ledger: Ledger, onlooker: Onlooker | None) -> Generator[Event, None, bool]:
        """Watch a ledger that another nsw writes, or the site; False when it must be opened anew."""
        self._ledger, start_time, first = ledger, time.monotonic(), True
        self.began = ledger.first_start()
        try:
            yield Started(self.folder.id, self.counts())
            rows = ledger.runs()
            yield from self._change_events([row for row in rows if row.state is State.RUNNING])
            while True:
                before = {row.id: row.state for row in rows}
                try:
                    if onlooker is not None:
                        onlooker.poll_site()
                except NswError as fault:  # a later one may pass
                    if first:
                        raise
                    yield Message(fault.message, "warning")
                first, rows = False, ledger.runs()
                yield from self._change_events([row for row in rows if before.get(row.id) is not row.state])
                yield Progress({}, {}, self._seconds_left(ledger, onlooker))
                if self._once or not (
                    onlooker.in_flight_count() if onlooker else any(row.state not in ENDED for row in rows)
                ):
                    self.advice = self._next_step_advice(onlooker) if onlooker else None
                    return True
                time.sleep(onlooker.pause_s if onlooker else _LEDGER_S)
                reload = onlooker is not None and onlooker.elsewhere and time.monotonic() - start_time > _RELOAD_S
                if reload or folders.is_driven(self.folder) == (onlooker is not None):
                    return False
        finally:
            self._ledger = None

    def _seconds_left(self, ledger: Ledger, onlooker: Onlooker | None) -> float | None:
        if onlooker is None:
            return ledger.seconds_left(time.time(), folders.driven_since(self.folder))
        waits_for_nsw = onlooker.elsewhere is None and ledger.counts().get(State.PLANNED)
        return None if waits_for_nsw else ledger.seconds_left(time.time())

    def _next_step_advice(self, onlooker: Onlooker) -> str | None:
        if onlooker.elsewhere:
            back = f"`nsw attach {self.folder.id}` takes it back"
            return f"an nsw on another machine drives it: {onlooker.elsewhere}; {back}"
        if onlooker.changed_any or onlooker.in_flight_count() or onlooker.ledger.counts().get(State.PLANNED):
            return (
                f"nobody drives it: `nsw resume {campaign_argument(self.folder)}` continues, and reads"
                " the runs that are done"
            )
        return None

    def _change_events(self, rows: list[RunRow]) -> Generator[Event]:
        """Events for rows whose state has changed."""
        counts = self.counts()
        over = sum(counts.get(state, 0) for state in ENDED) - sum(row.state in ENDED for row in rows)
        for row in rows:
            over += row.state in ENDED
            yield RunChanged(row, over, sum(counts.values()))
