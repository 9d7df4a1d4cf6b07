"""A campaign in the hands of this process, as an iterator of events."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter, deque
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from nsw.campaign.selection import campaign_argument, campaign_option, job_ids
from nsw.engine import events
from nsw.engine.collect import error_line
from nsw.engine.driven import DrivenCampaign, locked_ledger, write_state
from nsw.engine.events import Downloading, Event, Finished, Message, Progress, RunChanged, RunsEnded, Started
from nsw.engine.folder import CampaignFolder, Log, driven_since, run_folder, run_of
from nsw.engine.ledger_rows import ENDED, PREPARED, SCRATCH, BuildRow, Cause, RunRow, State
from nsw.engine.recipe_lock import complete_lock, locked_recipe
from nsw.errors import DISK_FULL, NswError, disk_full, resumable
from nsw.safe_files import read_plain, readable_by_group, write_text
from nsw.schedulers.local import Owner, Turn, is_inside_a_run
from nsw.site.names import LOCAL
from nsw.transport.model import Transport, connect
from nsw.version import __version__
from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from nsw.engine.builds import Builds
    from nsw.engine.ledger import Ledger
    from nsw.engine.loop import Driver


_BYTES: Final = 2048
_LONGEST: Final = 200  # characters
_SECONDS: Final = 30.0
MAX_RUNS: Final = 16  # runs that are asked about
_BREAK: Final = re.compile(r"[\r\n]+")


def last_lines(transport: Transport, scratch: str, runs: Sequence[RunRow]) -> dict[str, str]:
    """Return the last line that each run printed, by run id.

    At most MAX_RUNS runs are asked about, and lines are cut; they may hold control characters. A run that printed
    nothing, or a site that does not answer, gives no line.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder on the site.
        runs: The runs that are running.
    """
    files = {run.id: f"{run_folder(scratch, run.id, run.attempt)}/stdout" for run in runs[:MAX_RUNS] if run.attempt}
    lines_by_run = {}
    for id_, text in zip(files, _read_tails(transport, list(files.values())), strict=True):
        lines = [line.strip() for line in _BREAK.split(text) if line.strip()]
        if lines:
            lines_by_run[id_] = lines[-1][:_LONGEST]
    return lines_by_run


def _read_tails(transport: Transport, files: Sequence[str]) -> list[str]:
    """The ends of files; empty where one is not there."""
    if not transport.remote:  # where runs are measured no process is started for it
        return [(transport.tail(file, _BYTES) or b"").decode(errors="backslashreplace") for file in files]
    commands = [["tail", "-c", str(_BYTES), "--", file] for file in files]
    return [
        completed.stdout if completed.returncode == 0 else ""
        for completed in transport.run_many(commands, timeout=_SECONDS)
    ]


_HERE_S: Final = 2.0
_THERE_S: Final = 10.0  # a site behind a transport is asked less often
_STATE_S: Final = 10.0  # between two of state.json
_STATE_SHARE: Final = 100  # writing it takes at most a hundredth of the time: this machine may be measuring
_FILE: Final = "progress.json"
_MOST_BYTES: Final = 1 << 16


class OutputWatch:
    """Looks at what runs at most every few seconds, and leaves what it saw for `nsw status` of other terminals.

    Args:
        campaign: The campaign.
        now: Seconds of a clock that only goes forward.
    """

    def __init__(self, campaign: LockedCampaign, now: Callable[[], float] = time.monotonic) -> None:
        self._campaign = campaign
        self._now = now
        self._pause = _THERE_S if campaign.transport.remote else _HERE_S
        self._next = now() + self._pause  # what is over sooner costs no look
        self._next_state = now() + _STATE_S

    def read_progress(self) -> Progress | None:
        """What is new; None where it is too early for another look, or nothing runs."""
        if self._now() < self._next:
            return None
        running = self._campaign.ledger.runs(states=(State.RUNNING,))[:MAX_RUNS]
        progress = None
        if running:
            try:
                lines = last_lines(self._campaign.transport, self._campaign.scratch, running)
            except NswError:
                lines = {}
            jobs = job_ids(self._campaign.ledger, running)
            left = self._campaign.ledger.seconds_left(time.time(), driven_since(self._campaign.folder))
            progress = Progress(lines, jobs, left)
            _save_last_lines(self._campaign.folder, lines)
        if (begin := self._now()) >= self._next_state:
            write_state(self._campaign.folder, self._campaign.ledger)
            self._next_state = begin + max(_STATE_S, _STATE_SHARE * (self._now() - begin))
        self._next = self._now() + self._pause
        return progress


def _save_last_lines(folder: CampaignFolder, lines: dict[str, str]) -> None:
    try:
        new_file = folder.path / f".{_FILE}"
        write_text(new_file, json.dumps({"lines": lines}))
        new_file.replace(folder.path / _FILE)
    except OSError:  # a full disk: nobody misses it
        return


def saved_last_lines(folder: CampaignFolder) -> dict[str, str]:
    """The last line of each run that the nsw which drives the campaign saw running, by its id."""
    try:
        lines = json.loads(read_plain(folder.path / _FILE, last=_MOST_BYTES))["lines"]
        return {str(run): str(line) for run, line in lines.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def lines_now(folder: CampaignFolder, ledger: Ledger, running: Sequence[RunRow], *, driven: bool) -> dict[str, str]:
    """Return the last line that each run printed, by run id, without asking a site.

    Files on this machine are read. For another site, they are the lines that the nsw which drives the campaign saw
    last. Nothing is read of a campaign that was made elsewhere.

    Args:
        folder: The campaign.
        ledger: Its ledger.
        running: The runs that are running.
        driven: Whether an nsw drives the campaign now: the lines that it saved are old otherwise.
    """
    if not running or not folder.trusted:
        return {}
    site = ledger.site()
    if (site.get("transport") or {}).get("kind", "local") == "local":
        with closing(connect(site)) as transport:
            return last_lines(transport, ledger.meta(SCRATCH), running)
    ids = {run.id for run in running}
    return {id_: line for id_, line in saved_last_lines(folder).items() if id_ in ids} if driven else {}


@dataclass(frozen=True, slots=True)
class LockedCampaign:
    """A campaign that this process drives.

    `cleaned`: no run is left, and nothing of it is on its site; after `nsw clean` nothing is put back there.
    """

    folder: CampaignFolder
    ledger: Ledger
    driver: Driver
    builds: Builds
    log: Log
    transport: Transport
    scratch: str
    share: str
    cleaned: bool


@contextmanager
def lock_campaign(
    folder: CampaignFolder,
    emit: Callable[[Event], object],
    *,
    only: Sequence[str] | None = None,
) -> Iterator[LockedCampaign]:
    """Take the campaign's lock and put together what drives it.

    Args:
        folder: The campaign.
        emit: Called with each event, at once.
        only: The runs to do, where not all that wait.

    Raises:
        CampaignLockedError: Another process drives the campaign.
        UnreachableError: A command of a killed nsw still runs there.
    """
    from nsw.campaign.fetch import watch_downloads
    from nsw.engine.builds import Builds
    from nsw.engine.handover import follow_moved_folder, handover_of, mark_of, wait_for_commands
    from nsw.engine.loop import Driver
    from nsw.schedulers.create import create, with_login_node

    def emit_message(text: str) -> None:
        emit(Message(text))

    with ExitStack() as stack:
        ledger = stack.enter_context(locked_ledger(folder, emit))
        site: dict[str, Any] = ledger.site()
        share = "group" if site.get("share") == "group" else "nobody"
        stack.enter_context(readable_by_group(share))
        follow_moved_folder(folder, ledger)
        scratch = ledger.meta(SCRATCH)
        # whether no run is left to be done, and the campaign's files are not on its site
        left = any(count for state, count in ledger.counts().items() if state not in ENDED)
        cleaned = not left and not ledger.meta(PREPARED) and not ledger.has_reductions_to_do()
        transport_to_close = (
            connect(site) if cleaned else connect(site, scratch, mark_of(folder, ledger))
        )  # the mark is a file there
        transport = stack.enter_context(closing(transport_to_close))
        watch_downloads(transport, emit)
        wait_for_commands(transport, emit_message)
        log = Log(folder.log)
        changed = _Changes(ledger, log, emit)
        handover = handover_of(folder, ledger, transport, scratch)
        scheduler = create(site, transport, scratch, folder.id, emit_message, handover.fence if handover else None)
        if ledger.has_login_tasks():
            scheduler = with_login_node(scheduler, ledger.job_place)
        if only is not None:
            ledger.choose(only)
        driven = DrivenCampaign(folder, ledger, scheduler, transport, scratch, changed, handover, emit)
        yield LockedCampaign(folder, ledger, Driver(driven), Builds(driven), log, transport, scratch, share, cleaned)


class _Changes:
    """From ids of runs and builds to a line in the log and an event of each."""

    def __init__(self, ledger: Ledger, log: Log, emit: Callable[[Event], object]) -> None:
        self._ledger = ledger
        self._log = log
        self._emit = emit
        self._reduces = ledger.has_reductions()
        counts = ledger.counts()
        self._total = sum(counts.values())
        self._ended_runs = _count_ended(counts)

    def __call__(self, ids: list[str]) -> None:
        rows = self._ledger.runs_named(ids)
        builds = [build for build in self._ledger.builds() if build.id in ids]
        tasks: list[RunRow | BuildRow] = [*builds, *rows]
        self._log.say(*(f"{task.id} {task.state}" + (f": {task.reason}" if task.reason else "") for task in tasks))
        if self._reduces:
            self._report_reductions(ids)
        for build in builds:
            self._emit(events.BuildChanged(build))
        if ended := sum(row.state in ENDED for row in rows):
            self._ended_runs = max(0, _count_ended(self._ledger.counts()) - ended)
        refused = Counter(row.reason for row in rows if _has_failed_before_start(row))
        for row in rows:
            self._ended_runs += row.state in ENDED
            alike = refused[row.reason] if _has_failed_before_start(row) else 1
            self._emit(RunChanged(row, self._ended_runs, self._total, alike))

    def _report_reductions(self, ids: list[str]) -> None:
        """Log each reduction that changed, and send a message for each that ended: the runs are over by then."""
        rows = self._ledger.reductions()
        over = sum(row.state in ENDED for row in rows)
        for row in (row for row in rows if row.id in ids):
            reason = f": {row.reason}" if row.reason else ""
            self._log.say(f"{row.id} {row.state}{reason}")
            if row.state is State.DONE:
                self._emit(Message(f"{over}/{len(rows)} reduced   {run_of(row.id)}"))
            elif row.state in ENDED and row.cause is not Cause.SKIPPED:
                self._emit(Message(f"the report of {run_of(row.id)} was not reduced on the site{reason}", "warning"))


def _has_failed_before_start(run: RunRow) -> bool:
    """Whether it failed before it began, such as one whose job the scheduler refused."""
    return run.state is State.FAILED and run.started is None and run.reason is not None


def _count_ended(counts: Mapping[str, int]) -> int:
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
        self._events: deque[Event] = deque()
        self._listener: Callable[[Event], object] | None = None
        self._rounds = self._rounds_with_hints()
        self._locked: LockedCampaign | None = None
        self._fault: BaseException | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        while not self._events and self._fault is None:
            try:
                next(self._rounds)
            except (NswError, StopIteration, KeyboardInterrupt) as fault:  # after what happened before it
                self._fault = fault
        if self._events:
            return self._events.popleft()
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
            while self._events:
                listener(self._events.popleft())
            for _ in self._rounds:
                pass
        finally:
            self._listener = None
            self.close()

    def emit(self, event: Event) -> None:
        """Hand an event to the listener, or keep it for who iterates."""
        if self._listener is None:
            if isinstance(event, Downloading) and self._events and isinstance(self._events[-1], Downloading):
                self._events.pop()  # who iterates hears of a round once it is over: its end is news enough
            self._events.append(event)
        else:
            self._listener(event)

    def counts(self) -> dict[str, int]:
        """How many runs are in each state now; only while it drives."""
        return self._locked.ledger.counts() if self._locked else {}

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """State, reason, first run and number of the runs that wait; only while it drives."""
        return self._locked.ledger.why_waiting() if self._locked else []

    def _rounds_with_hints(self) -> Generator[None]:
        """The rounds; an error that ends them names the command that goes on."""
        try:
            # carry out what is planned, and again where pairs were added that are to decide
            while (yield from self._carry_out_planned()):
                pass
        except NswError as fault:
            resumable(fault, campaign_argument(self.folder))
            raise
        except OSError as os_fault:
            if os_fault.errno not in DISK_FULL:
                raise
            full_disk = disk_full(os_fault.filename or self.folder.path, os_fault.strerror)
            resumable(full_disk, campaign_argument(self.folder))
            raise full_disk from None
        finally:
            if self._turn is not None:
                self._turn.release()
                self._turn = None

    def _carry_out_planned(self) -> Generator[None, None, bool]:
        """Carry out what is planned, and return whether there is more now."""
        from nsw.campaign.answers import is_good
        from nsw.campaign.until import add_undecided
        from nsw.engine import handover as private
        from nsw.engine.handover import noting_owner
        from nsw.engine.read import reading

        folder = self.folder
        with lock_campaign(folder, self.emit, only=self.only) as campaign, noting_owner(campaign.ledger):
            self._locked, self.driving = campaign, True
            counts = campaign.ledger.counts()
            campaign.log.say(f"nsw {__version__} continues with {headline(counts)}")
            try:
                self.emit(Started(folder.id, counts))
                yield
                if not campaign.cleaned:
                    yield from self._run_remaining(campaign)
                for message in campaign.builds.conclude():
                    self.emit(Message(message, "error"))
                self.emit(RunsEnded())
                yield
                with closing(reading(folder, campaign.ledger)) as read:
                    for done, total in read:
                        self.emit(events.ReportsRead(done, total))
                        yield
                if self.only is None and add_undecided(folder, campaign.ledger, self.emit):
                    return True
                for message in complete_lock(folder, campaign.ledger, campaign.transport, campaign.scratch):
                    self.emit(Message(message, "warning"))
                private.forget_secrets(folder, campaign.ledger, campaign.transport, campaign.scratch)
                good = is_good(campaign.ledger, self.only)
                if fault := notify(folder, campaign.ledger, good=good):
                    self.emit(Message(fault, "warning"))
                self.emit(Finished(campaign.ledger.counts(), good))
            except (KeyboardInterrupt, GeneratorExit):
                campaign.log.say("interrupted")
                raise
            finally:
                self._locked, self.driving = None, False
        return False

    def _run_remaining(self, campaign: LockedCampaign) -> Generator[None]:
        """Put what the runs need on the site, and submit, poll and judge until none is left."""
        from nsw.engine import handover as private

        warnings: list[str] = []
        is_new = private.prepare(
            self.folder, campaign.transport, campaign.scratch, campaign.ledger.site(), warnings.append
        )
        for text in warnings:
            self.emit(Message(text, "warning"))
        if is_new and campaign.ledger.meta(PREPARED):
            campaign.ledger.set_meta(PREPARED, False)
            self.emit(
                Message(f"{campaign.scratch} was removed: nsw makes it again, with scripts and program", "warning")
            )
        campaign.builds.prepare()
        if adopted := campaign.driver.recover():
            self.emit(Message(f"{plural(adopted, 'submission')} in doubt found again"))
        yield from self._wait_for_turn(campaign)
        looking = OutputWatch(campaign)
        with closing(campaign.driver.rounds()) as rounds:
            for _ in rounds:
                if (progress := looking.read_progress()) is not None:
                    self.emit(progress)
                yield

    def _wait_for_turn(self, campaign: LockedCampaign) -> Generator[None]:
        """Wait until no other campaign of this user runs on this machine, unless nothing of this one is to begin."""
        site = campaign.ledger.site()
        is_local = site.get("scheduler") == LOCAL and (site.get("transport") or {}).get("kind", LOCAL) == LOCAL
        if self.now or not is_local or site.get("replay") or is_inside_a_run():
            return
        try:
            self._turn = self._turn or Turn(
                Owner(campaign.folder.id, str(campaign.folder.path.absolute()), f"{campaign.scratch}/jobs")
            )
        except OSError as fault:
            self.emit(Message(f"nsw cannot see whether other campaigns run on this machine: {fault}", "warning"))
            return
        last_reason = None
        while campaign.ledger.has_planned() and (reason := self._turn.take()) is not None:
            if reason != last_reason:
                command = f"nsw resume{campaign_option(campaign.folder)}"
                hint = f"Ctrl-C ends the wait (`{command}` continues), `{command} --now` starts without waiting"
                self.emit(Message(f"waits for its turn: {reason}; {hint}"))
                campaign.log.say(f"waits for its turn: {reason}")
                last_reason = reason
            yield
            campaign.driver.cancel_if_asked()
            time.sleep(_TURN_S)
        if last_reason:
            self.emit(Message("its turn has come"))


_NOTIFY_SECONDS: Final = 60.0


def notify(folder: CampaignFolder, ledger: Ledger, *, good: bool) -> str | None:
    """Run the recipe's or the site's notify command on this machine, in the campaign's folder.

    Its environment describes the campaign: NSW_CAMPAIGN (its id), NSW_CAMPAIGN_FOLDER, NSW_VERDICT (good or bad),
    NSW_RUNS and a number for each way to end (NSW_DONE, NSW_FAILED ...), NSW_MESSAGE (a line for people).

    Args:
        folder: The campaign.
        ledger: Its ledger.
        good: Whether the campaign ended well.

    Returns:
        Why the command failed; None where it did not, or there is none.
    """
    command = locked_recipe(folder).notify or ledger.site().get("notify")
    if not command:
        return None
    words = ["bash", "-c", command, "nsw"] if isinstance(command, str) else [str(word) for word in command]
    counts = ledger.counts()
    environment = {
        "NSW_CAMPAIGN": folder.id,
        "NSW_CAMPAIGN_FOLDER": str(folder.path.absolute()),
        "NSW_VERDICT": "good" if good else "bad",
        "NSW_RUNS": str(sum(counts.values())),
        **{f"NSW_{state.upper()}": str(counts.get(state, 0)) for state in ENDED},
        "NSW_MESSAGE": f"{folder.id}: {headline(counts)}",
    }
    fault = _run_notify_command(words, folder, environment)
    return f"notify: {fault}" if fault else None


def _run_notify_command(words: Sequence[str], folder: CampaignFolder, environment: Mapping[str, str]) -> str | None:
    try:
        process = subprocess.Popen(
            words,
            cwd=folder.path,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as fault:
        return f"{words[0]} cannot be started: {fault.strerror}"
    try:
        _, stderr = process.communicate(timeout=_NOTIFY_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"{words[0]} did not end within {_NOTIFY_SECONDS:.0f} s"
    if process.returncode == 0:
        return None
    message = error_line(stderr)
    return f"{words[0]} failed (exit status {process.returncode})" + (f": {message}" if message else "")
