"""How tasks end: the files of a run on the site come to the campaign's folder, and its end is written down."""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.campaign.folder import CampaignFolder, run_folder, run_of
from nsw.campaign.judge import Status, Verdict, judge, read_status, read_statuses, reason_with, with_more
from nsw.campaign.ledger_rows import COLLECT, Flying, Kind, Reading, Reason, RunRow, State
from nsw.errors import CampaignError, UnreachableError
from nsw.safe_files import read_plain
from nsw.schedulers.model import Answer, Phase
from nsw.tables.unpacking_limit import Allowance, TooMuchError, shown
from nsw.transport.model import Entry, Transport, Unreadable
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.driven import Driven


PACKED: Final = ".gz"  # of what a reduction makes
_WORTH_A_LINE: Final = 1 << 20  # bytes
_CLAIM = "claim"
AGAIN = "again"  # a line for each other job that found the run claimed
KEPT_FILES = ("stdout", "stderr", _CLAIM, "status", "after.log", AGAIN, "ranks.tsv")


def collect(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    runs: Sequence[RunRow],
    *,
    everything: bool = False,
    say: Callable[[str], object] = lambda _text: None,
) -> None:
    """Bring the reports and the output of runs; those of earlier attempts move aside.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        runs: The runs.
        everything: All files that they left.
        say: Prints a line for the user: what is brought and how large it is, before it is.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
    """
    sources = {run_folder(scratch, run.id, run.attempt): run for run in runs}
    more = ("*",) if everything else ()
    listed = transport.list_many({source: (*run.reports, *KEPT_FILES, *more) for source, run in sources.items()})
    wanted: list[tuple[str, Path]] = []
    for source, run in sources.items():
        target = folder.reports / run.id
        if run.attempt > 1:
            _set_aside(target, run.attempt)
        # the claim names the attempt of the files, so it is brought first, in case nsw is killed in between
        entries = sorted(listed[source], key=lambda entry: entry.name != _CLAIM)
        wanted += [(f"{source}/{entry.name}", target / entry.name) for entry in entries]
    _say_size(transport, listed, say)
    transport.get_many(wanted)


def collect_reduced(
    folder: CampaignFolder,
    transport: Transport,
    scratch: str,
    reductions: Mapping[str, int],
    *,
    say: Callable[[str], object] = lambda _text: None,
) -> dict[str, str]:
    """Bring what reductions made of runs' reports, and unpack it beside what the runs left.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        reductions: Their ids, each with the attempt that was done.
        say: Prints a line for the user: what is brought and how large it is, before it is.

    Returns:
        The reductions whose files are of no use, each with the reason.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
        CampaignError: One cannot be written here.
    """
    sources = {run_folder(scratch, id_, attempt): id_ for id_, attempt in reductions.items()}
    listed = transport.list_many(dict.fromkeys(sources, (f"*{PACKED}",)))
    wanted = {
        f"{source}/{entry.name}": (id_, folder.reports / run_of(id_) / entry.name)
        for source, id_ in sources.items() for entry in listed[source]
    }  # fmt: skip
    _say_size(transport, listed, say)
    transport.get_many([(there, here) for there, (_, here) in wanted.items()])
    wrong: dict[str, str] = {}
    for id_, packed in wanted.values():
        if (why := unpack(packed, packed.with_name(packed.name.removesuffix(PACKED)))) is not None:
            wrong[id_] = why
    return wrong


def _say_size(transport: Transport, listed: Mapping[str, Sequence[Entry]], say: Callable[[str], object]) -> None:
    """Print how much comes from a site elsewhere; little is not worth a line."""
    sizes = [entry.size for entries in listed.values() for entry in entries]
    if transport.remote and sum(sizes) >= _WORTH_A_LINE:
        say(f"brings {plural(len(sizes), 'file')} of {plural(len(listed), 'run')}: {shown(sum(sizes))}")


def brought_folder(folder: CampaignFolder, run: str, attempt: int) -> Path | None:
    """Where the files of an attempt were brought to; None where they were not."""
    target = folder.reports / run
    places = (target, target / f"attempt-{attempt}")
    return next((place for place in places if attempt_of(folder.tail(place / _CLAIM)) == attempt), None)


def started_again(folder: CampaignFolder, run: str) -> str | None:
    """Which other jobs started a run that was claimed already, as a sentence; None for none."""
    lines = (read_tail(folder.reports / run / AGAIN) or b"").decode(errors="replace").split()
    jobs = list(dict.fromkeys(lines))
    return f"job {', '.join(jobs)} started it a second time and left it alone" if jobs else None


def note_second_job(folder: CampaignFolder, run: str, job: str) -> None:
    """Add a job that found the run done, where it has not written that down itself: that leaves no mark in the run."""
    file = folder.reports / run / AGAIN
    known = read_tail(file) or b""
    if job not in known.decode(errors="replace").split() and file.parent.is_dir():
        file.unlink(missing_ok=True)  # it may be the very file of the site
        file.write_bytes(known + f"{job}\n".encode())


def _set_aside(target: Path, attempt: int) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    number = attempt_of(read_tail(target / _CLAIM))
    if not old or number == attempt:  # an nsw that was killed had begun to bring this one
        return
    if number is None:
        number = 1
        while (target / f"attempt-{number}").exists():
            number += 1
    aside = target / f"attempt-{number}"
    aside.mkdir(exist_ok=True)
    for file in sorted(old, key=lambda file: file.name == _CLAIM):
        file.rename(aside / file.name)


def attempt_of(claim: bytes | None) -> int | None:
    """Which attempt files in a run's folder are of, by the claim among them."""
    found = re.search(rb"^attempt=(\d+)$", claim or b"", re.MULTILINE)
    return int(found[1]) if found else None


def read_tail(path: Path, limit: int = 4096) -> bytes | None:
    """The last bytes of a collected file; None when there is none, or no plain file: a FIFO would be waited for."""
    with suppress(OSError):
        return read_plain(path, last=limit)
    return None


_CHUNK: Final = 1 << 20  # bytes


def unpack(packed: Path, target: Path) -> str | None:
    """Unpack a gzip file, whole or not at all, and remove it.

    Returns:
        What is wrong with its content; None when it is good.

    Raises:
        CampaignError: What comes out cannot be written, as on a full disk.
    """
    allowance = Allowance(packed.stat().st_size)
    part = target.with_name(f"{target.name}.part")
    wrong = None
    try:
        part.unlink(missing_ok=True)
        with gzip.open(packed) as source, part.open("xb") as out:
            while chunk := source.read(_CHUNK):
                allowance.take(len(chunk))
                out.write(chunk)
        part.replace(target)
    except TooMuchError as fault:
        wrong = f"{packed.name} holds {fault}"
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        wrong = f"{packed.name} is damaged: {fault}"
    except OSError as fault:
        raise CampaignError(f"{target} cannot be written: {fault.strerror or fault}") from None
    finally:
        part.unlink(missing_ok=True)
    packed.unlink()
    return wrong


_LAST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class End:
    """An attempt of which nothing more will come, and how it ended.

    `second`: the job that nsw submitted for it, where another one of the same name did it.
    """

    one: Flying
    verdict: Verdict
    status: Status | None
    attempt: int
    second: str | None = None


class Ending:
    """The files that runs leave on the site, and the ends that they tell of.

    Args:
        it: The campaign.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it
        self._seen: dict[str, Status | Unreadable | None] = {}
        self._useless: dict[str, str] = {}  # reductions whose files could not be unpacked

    def look(self, several: Iterable[Flying]) -> None:
        """Read the status of all of these in one round trip, for `status` until the next look.

        Raises:
            UnreachableError: The site could not be asked.
        """
        homes = [self._it.home(one.id, one.attempt) for one in several]
        self._seen = {}  # what is old must not be believed when the next line fails
        self._seen = read_statuses(self._it.transport, homes) if homes else {}

    def status(self, run: str, attempt: int) -> Status | None:
        """What an attempt wrote of itself; None before it began.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._it.home(run, attempt)
        if home not in self._seen:
            return read_status(self._it.transport, home)
        status = self._seen[home]
        if isinstance(status, Unreadable):
            raise UnreachableError(f"{home}/status cannot be read: {status.why}")
        return status

    def left_a_mark(self, one: Flying) -> bool:
        """Whether it began, or an earlier attempt of it was done."""
        status = self.status(one.id, one.attempt)
        return (status is not None and status.state != "withdrawn") or self._earlier(one) is not None

    def is_done(self, one: Flying | RunRow) -> bool:
        """Whether this attempt of it, or an earlier one, says that it was done."""
        status = self.status(one.id, one.attempt)
        return (status is not None and status.state == "done") or self._earlier(one) is not None

    def has_folder(self, one: Flying) -> bool:
        """Whether the folder of its attempt, which its job makes first, is still there with something in it.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._it.home(one.id, one.attempt)
        return bool(self._it.transport.list_many({home: ["*"]})[home])

    def goes_on(self, one: Flying, verdict: Verdict, status: Status | None) -> None:
        """It is in another state than it was, or for another reason, and not over; or now it is known when it began."""
        one.state, one.reason, one.started = verdict.state, verdict.reason, status.started if status else None
        self._write([one.id], verdict, status)

    def wait(self, several: list[Flying], verdict: Verdict) -> None:
        """Several wait for the same reason; of a start that the scheduler took back no time counts."""
        for one in several:
            one.state, one.reason, one.started = verdict.state, verdict.reason, None
        nothing = {"host": None, "started": None, "ended": None, "exit_code": None}
        self._write([one.id for one in several], verdict, None, **nothing)

    # --- ends ---------------------------------------------------------------------------------------------

    def end_of(self, one: Flying, verdict: Verdict, status: Status | None) -> End:
        """How an attempt ended, an earlier one that was done after all included.

        Raises:
            UnreachableError: It could not be told.
        """
        if status is None and (earlier := self._earlier(one)):
            attempt, status = earlier
            return End(one, judge(Answer(Phase.ENDED, clean=True), status), status, attempt)
        return End(one, verdict, status, one.attempt)

    def bring(self, ends: Sequence[End]) -> None:
        """Bring what these left, in a few round trips for all of them.

        Raises:
            UnreachableError: The connection was lost; what is missing can be brought again.
            CommandError: A file cannot be brought.
        """
        it = self._it
        attempts = {end.one.id: end.attempt for end in ends if end.one.kind is Kind.RUN}
        if attempts:
            runs = [replace(run, attempt=attempts[run.id]) for run in it.ledger.runs_named(list(attempts))]
            collect(it.folder, it.transport, it.scratch, runs, everything=self._everything, say=it.say)
        reduced = {end.one.id: end.attempt for end in ends if _is_reduced(end)}
        if reduced:
            self._useless |= collect_reduced(it.folder, it.transport, it.scratch, reduced, say=it.say)

    def write(self, end: End) -> None:
        """Write down an end whose files are here."""
        one, verdict = end.one, end.verdict
        if (wrong := self._useless.pop(one.id, None)) is not None:
            verdict = Verdict(State.FAILED, Reason(wrong), ended=True)
        if one.kind is Kind.RUN:
            stderr = read_tail(self._it.folder.reports / one.id / "stderr", _LAST_BYTES)
            waits = verdict.state is State.DONE and one.id in self._reduced
            more: dict[str, object] = {"reading": Reading.NONE if waits else Reading.COLLECTED}
            if end.second is not None:
                note_second_job(self._it.folder, one.id, end.second)
        else:  # what it left stays on the site
            stderr = self._it.transport.tail(f"{self._it.home(one.id, end.attempt)}/stderr", _LAST_BYTES)
            more = {}
        verdict = self._with_last_words(verdict, stderr)
        if (twice := started_again(self._it.folder, one.id)) is not None:
            verdict = replace(verdict, reason=with_more(verdict.reason, twice))
        self._write([one.id], verdict, end.status, attempt=end.attempt, **more)
        if one.kind is Kind.REDUCTION:  # also when it failed: then reading says so
            self._it.ledger.update_tasks([run_of(one.id)], reading=Reading.COLLECTED)
        one.attempt, one.state, one.reason = end.attempt, verdict.state, verdict.reason

    def _earlier(self, one: Flying | RunRow) -> tuple[int, Status] | None:
        """An earlier attempt that was done after it was given up: its job had been out of sight, and came back."""
        for attempt in range(one.attempt - 1, 0, -1):
            status = self.status(one.id, attempt)
            if status is not None and status.state == "done":
                return attempt, status
        return None

    def _with_last_words(self, verdict: Verdict, stderr: bytes | None) -> Verdict:
        """What the program said last belongs to why it failed."""
        if verdict.state is not State.FAILED:
            return verdict
        return replace(verdict, reason=reason_with(verdict.reason, stderr, login_shell=self._login_shell))

    @cached_property
    def _everything(self) -> bool:
        """Whether the recipe wants all that runs left, and not their reports alone."""
        return self._it.ledger.meta(COLLECT) == "everything"

    @cached_property
    def _reduced(self) -> frozenset[str]:
        """The runs whose reports are reduced on the site: they are read after that."""
        return frozenset(run_of(row.id) for row in self._it.ledger.reductions())

    @cached_property
    def _login_shell(self) -> bool:
        return self._it.ledger.has_login_shell()

    def _write(self, ids: list[str], verdict: Verdict, status: Status | None, **more: object) -> None:
        self._it.ledger.update_tasks(ids, state=verdict.state, reason=verdict.reason, **_times(status), **more)


def _is_reduced(end: End) -> bool:
    return end.one.kind is Kind.REDUCTION and end.verdict.state is State.DONE


def _times(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }
