"""A campaign in the hands of this process, as an iterator of events."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, deque
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from nsw.campaign import folder as folders
from nsw.campaign.estimate import seconds_left
from nsw.campaign.events import (
    BuildChanged,
    Downloading,
    Event,
    Finished,
    Message,
    Progress,
    ReportsRead,
    RunChanged,
    RunsEnded,
    Started,
)
from nsw.campaign.folder import CampaignFolder, Log, run_folder, run_of
from nsw.campaign.ledger_rows import ENDED, PREPARED, SCRATCH, BuildRow, Cause, RunRow, State
from nsw.campaign.selection import job_ids
from nsw.errors import DISK_FULL, NswError, disk_full, resumable
from nsw.safe_files import read_plain
from nsw.schedulers.local import Owner, Turn, is_inside_a_run
from nsw.site.names import LOCAL
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from nsw.campaign.builds import Builds
    from nsw.campaign.engine import Driver
    from nsw.campaign.ledger import Ledger
    from nsw.transport.model import Transport


_BYTES: Final = 2048
_LONGEST: Final = 200  # characters
_SECONDS: Final = 30.0
MOST: Final = 16  # runs that are asked about
_BREAK: Final = re.compile(r"[\r\n]+")


def last_lines(transport: Transport, scratch: str, runs: Sequence[RunRow]) -> dict[str, str]:
    """The last line of each of these runs that printed one, by its id; bounded, and not yet safe for a terminal.

    A site that does not answer gives none: this is for looking only.
    """
    files = {run.id: f"{run_folder(scratch, run.id, run.attempt)}/stdout" for run in runs[:MOST] if run.attempt}
    found = {}
    for id_, text in zip(files, _ends(transport, list(files.values())), strict=True):
        lines = [line.strip() for line in _BREAK.split(text) if line.strip()]
        if lines:
            found[id_] = lines[-1][:_LONGEST]
    return found


def _ends(transport: Transport, files: Sequence[str]) -> list[str]:
    """The ends of files; empty where one is not there."""
    if not transport.remote:  # where runs are measured no process is started for it
        return [(transport.tail(file, _BYTES) or b"").decode(errors="replace") for file in files]
    commands = [["tail", "-c", str(_BYTES), "--", file] for file in files]
    return [done.stdout if done.returncode == 0 else "" for done in transport.run_many(commands, timeout=_SECONDS)]


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

    On this machine their files are looked at; of a site elsewhere it is what the nsw that drives it saw last. Of a
    campaign that was made elsewhere nothing is read.
    """
    from nsw.transport.model import connect

    if not running or not folder.trusted:
        return {}
    site = ledger.site()
    if (site.get("transport") or {}).get("kind", "local") == "local":
        with closing(connect(site)) as transport:
            return last_lines(transport, ledger.meta(SCRATCH), running)
    ids = {run.id for run in running}
    return {id_: line for id_, line in last_seen(folder).items() if id_ in ids} if driven else {}


@dataclass(frozen=True, slots=True)
class Held:
    """A campaign that this process drives.

    `cleaned`: no run is left, and nothing of it is on its site; after `nsw clean` nothing is put back there.
    """

    folder: folders.CampaignFolder
    ledger: Ledger
    driver: Driver
    builds: Builds
    log: Log
    transport: Transport
    scratch: str
    share: str
    cleaned: bool


@contextmanager
def held(
    folder: folders.CampaignFolder,
    emit: Callable[[Event], object],
    *,
    only: Sequence[str] | None = None,
) -> Iterator[Held]:
    """Take the campaign's lock and put together what drives it.

    Args:
        folder: The campaign.
        emit: Called with each event, at once.
        only: The runs to do, where not all that wait.

    Raises:
        CampaignLockedError: Another process drives the campaign.
        UnreachableError: A command of a killed nsw still runs there.
    """
    from nsw.campaign.builds import Builds
    from nsw.campaign.driven import Driven, locked_ledger
    from nsw.campaign.engine import Driver
    from nsw.campaign.fetch import watch_downloads
    from nsw.campaign.handover import handover_of, mark_of, wait_for_commands
    from nsw.campaign.site_folder import follow
    from nsw.schedulers.create import create, with_login_node
    from nsw.transport.model import connect

    def say(text: str) -> None:
        emit(Message(text))

    with ExitStack() as stack:
        ledger = stack.enter_context(locked_ledger(folder, emit))
        site: dict[str, Any] = ledger.site()
        share = "group" if site.get("share") == "group" else "nobody"
        stack.enter_context(folders.group_may_read(share))
        follow(folder, ledger)
        scratch = ledger.meta(SCRATCH)
        cleaned = _is_over_and_cleaned(ledger)
        way = connect(site) if cleaned else connect(site, scratch, mark_of(folder, ledger))  # the mark is a file there
        transport = stack.enter_context(closing(way))
        watch_downloads(transport, emit)
        wait_for_commands(transport, say)
        log = Log(folder.log)
        changed = _Changes(ledger, log, emit)
        handover = handover_of(folder, ledger, transport, scratch)
        scheduler = create(site, transport, scratch, folder.id, say, handover.fence if handover else None)
        if ledger.has_login_tasks():
            scheduler = with_login_node(scheduler, ledger.place_of)
        if only is not None:
            ledger.choose(only)
        driven = Driven(folder, ledger, scheduler, transport, scratch, changed, handover, emit)
        yield Held(folder, ledger, Driver(driven), Builds(driven), log, transport, scratch, share, cleaned)


class _Changes:
    """From ids of runs and builds to a line in the log and an event of each."""

    def __init__(self, ledger: Ledger, log: Log, emit: Callable[[Event], object]) -> None:
        self._ledger = ledger
        self._log = log
        self._emit = emit
        self._reduces = ledger.has_reductions()
        counts = ledger.counts()
        self._total = sum(counts.values())
        self._over = _ended(counts)

    def __call__(self, ids: list[str]) -> None:
        rows = self._ledger.runs_named(ids)
        made = [build for build in self._ledger.builds() if build.id in ids]
        both: list[RunRow | BuildRow] = [*made, *rows]
        self._log.say(*(f"{one.id} {one.state}" + (f": {one.reason}" if one.reason else "") for one in both))
        if self._reduces:
            self._say_reductions(ids)
        for build in made:
            self._emit(BuildChanged(build))
        if ended := sum(row.state in ENDED for row in rows):
            self._over = max(0, _ended(self._ledger.counts()) - ended)
        refused = Counter(row.reason for row in rows if _has_failed_unbegun(row))
        for row in rows:
            self._over += row.state in ENDED
            alike = refused[row.reason] if _has_failed_unbegun(row) else 1
            self._emit(RunChanged(row, self._over, self._total, alike))

    def _say_reductions(self, ids: list[str]) -> None:
        """A line of the log for each that changed, and a message of each that ended: the runs are over by then."""
        rows = self._ledger.reductions()
        over = sum(row.state in ENDED for row in rows)
        for row in (row for row in rows if row.id in ids):
            why = f": {row.reason}" if row.reason else ""
            self._log.say(f"{row.id} {row.state}{why}")
            if row.state is State.DONE:
                self._emit(Message(f"{over}/{len(rows)} reduced   {run_of(row.id)}"))
            elif row.state in ENDED and row.cause is not Cause.SKIPPED:
                self._emit(Message(f"the report of {run_of(row.id)} was not reduced on the site{why}", "warning"))


def _is_over_and_cleaned(ledger: Ledger) -> bool:
    """Whether no run is left to be done, and the campaign's files are not on its site."""
    left = any(count for state, count in ledger.counts().items() if state not in ENDED)
    return not left and not ledger.meta(PREPARED) and not ledger.has_reductions_to_do()


def _has_failed_unbegun(run: RunRow) -> bool:
    """Whether it failed before it began, such as one whose job the scheduler refused."""
    return run.state is State.FAILED and run.started is None and run.reason is not None


def _ended(counts: Mapping[str, int]) -> int:
    return sum(counts.get(state, 0) for state in ENDED)


_TURN_S = 0.2  # between two looks whether another campaign is over


class Running:
    """Drives a campaign while it is iterated, in the thread that iterates; use one thread from the first event on.

    Each `next` carries the campaign on until something happened. Nothing runs in the background: between two events
    nsw neither submits nor collects, while jobs that were submitted go on. Ended early (`close`, Ctrl-C, an error in
    the loop's body), it leaves them alone, and the campaign can be resumed.

    Args:
        folder: The campaign.
        only: The runs to do, where not all that wait.
        now: Start although another campaign runs on this machine.
    """

    def __init__(self, folder: CampaignFolder, *, only: Sequence[str] | None = None, now: bool = False) -> None:
        self.folder = folder
        self.only = only
        self.now = now
        self._turn: Turn | None = None
        self.driving = False  # whether this process holds the campaign
        self._happened: deque[Event] = deque()
        self._listener: Callable[[Event], object] | None = None
        self._rounds = self._with_what_to_do()
        self._held: Held | None = None
        self._fault: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while not self._happened and self._fault is None:
            try:
                next(self._rounds)
            except (NswError, StopIteration, KeyboardInterrupt) as fault:  # after what happened before it
                self._fault = fault
        if self._happened:
            return self._happened.popleft()
        assert self._fault is not None
        raise self._fault

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop driving; jobs that were submitted go on."""
        self._rounds.close()

    def drive(self, listener: Callable[[Event], object]) -> None:
        """Drive to the end, in this thread; `listener` is called with each event at once.

        Iteration gives the events of a round together, once the round is over.

        Raises:
            NswError: What ended the campaign early.
        """
        self._listener = listener
        try:
            while self._happened:
                listener(self._happened.popleft())
            for _ in self._rounds:
                pass
        finally:
            self._listener = None
            self.close()

    def emit(self, event: Event) -> None:
        """Hand an event to the listener, or keep it for who iterates."""
        if self._listener is None:
            if isinstance(event, Downloading) and self._happened and isinstance(self._happened[-1], Downloading):
                self._happened.pop()  # who iterates hears of a round once it is over: its end is news enough
            self._happened.append(event)
        else:
            self._listener(event)

    def counts(self) -> dict[str, int]:
        """How many runs are in each state now; only while it drives."""
        return self._held.ledger.counts() if self._held else {}

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """State, reason, first run and number of the runs that wait; only while it drives."""
        return self._held.ledger.why_waiting() if self._held else []

    def _with_what_to_do(self) -> Generator[None]:
        """The rounds; an error that ends them names the command that goes on."""
        from nsw.campaign.selection import as_named

        try:
            yield from self._carry_out()
        except NswError as fault:
            resumable(fault, as_named(self.folder))
            raise
        except OSError as outside:
            if outside.errno not in DISK_FULL:
                raise
            told = disk_full(outside.filename or self.folder.path, outside.strerror)
            resumable(told, as_named(self.folder))
            raise told from None

    def _carry_out(self) -> Generator[None]:
        from nsw import __version__
        from nsw.campaign import site_folder as private
        from nsw.campaign.answers import is_good
        from nsw.campaign.handover import noting_owner
        from nsw.campaign.notifying import notify
        from nsw.campaign.read import reading
        from nsw.campaign.recipe_lock import finish

        folder = self.folder
        with held(folder, self.emit, only=self.only) as it, noting_owner(it.ledger):
            self._held, self.driving = it, True
            counts = it.ledger.counts()
            it.log.say(f"nsw {__version__} continues with {headline(counts)}")
            try:
                self.emit(Started(folder.id, counts))
                yield
                if not it.cleaned:
                    yield from self._run_what_is_left(it)
                for told in it.builds.conclude():
                    self.emit(Message(told, "error"))
                self.emit(RunsEnded())
                yield
                with closing(reading(folder, it.ledger)) as read:
                    for done, total in read:
                        self.emit(ReportsRead(done, total))
                        yield
                for told in finish(folder, it.ledger, it.transport, it.scratch):
                    self.emit(Message(told, "warning"))
                private.forget_secrets(folder, it.ledger, it.transport, it.scratch)
                good = is_good(it.ledger, self.only)
                if fault := notify(folder, it.ledger, good=good):
                    self.emit(Message(fault, "warning"))
                self.emit(Finished(it.ledger.counts(), good))
            except (KeyboardInterrupt, GeneratorExit):
                it.log.say("interrupted")
                raise
            finally:
                self._held, self.driving = None, False
                if self._turn is not None:
                    self._turn.release()
                    self._turn = None

    def _run_what_is_left(self, it: Held) -> Generator[None]:
        """Put what the runs need on the site, and submit, poll and judge until none is left."""
        from nsw.campaign import site_folder as private

        is_new = private.prepare(self.folder, it.transport, it.scratch, it.share)
        if is_new and it.ledger.meta(PREPARED):
            it.ledger.set_meta(PREPARED, False)
            self.emit(Message(f"{it.scratch} was removed: nsw makes it again, with scripts and program", "warning"))
        it.builds.prepare()
        if adopted := it.driver.recover():
            self.emit(Message(f"{plural(adopted, 'submission')} in doubt found again"))
        yield from self._wait_for_turn(it)
        looking = Looking(it)
        with closing(it.driver.rounds()) as rounds:
            for _ in rounds:
                if (progress := looking.look()) is not None:
                    self.emit(progress)
                yield

    def _wait_for_turn(self, it: Held) -> Generator[None]:
        """Wait until no other campaign of this user runs on this machine, unless nothing of this one is to begin."""
        from nsw.campaign.selection import as_option

        site = it.ledger.site()
        here = site.get("scheduler") == LOCAL and (site.get("transport") or {}).get("kind", LOCAL) == LOCAL
        if self.now or not here or site.get("replay") or is_inside_a_run():
            return
        try:
            self._turn = Turn(Owner(it.folder.id, str(it.folder.path.absolute()), f"{it.scratch}/jobs"))
        except OSError as fault:
            self.emit(Message(f"nsw cannot see whether other campaigns run on this machine: {fault}", "warning"))
            return
        said = None
        while it.ledger.has_planned() and (why := self._turn.take()) is not None:
            if why != said:
                again = f"nsw resume{as_option(it.folder)}"
                hint = f"Ctrl-C ends the wait (`{again}` continues), `{again} --now` starts without waiting"
                self.emit(Message(f"waits for its turn: {why}; {hint}"))
                it.log.say(f"waits for its turn: {why}")
                said = why
            yield
            it.driver.cancel_if_asked()
            time.sleep(_TURN_S)
        if said:
            self.emit(Message("its turn has come"))
