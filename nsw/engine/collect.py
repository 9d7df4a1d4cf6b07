"""How tasks end: the files of a run on the site come to the campaign's folder, and its end is written down."""

from __future__ import annotations

import gzip
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.engine.folder import CampaignFolder, run_folder, run_of
from nsw.engine.judge import (
    Status,
    Verdict,
    judge,
    read_status,
    read_statuses,
    reason_followed_by,
    reason_with,
    with_disk_fault,
)
from nsw.engine.ledger_rows import COLLECT, Kind, Reading, Reason, RunRow, State, TaskInFlight
from nsw.errors import CampaignError, UnreachableError
from nsw.safe_files import make_folders, open_to_read, read_plain, replacing, write_bytes
from nsw.schedulers.model import Answer, Phase
from nsw.tables.unpacking_limit import Allowance, TooMuchError, format_bytes
from nsw.transport.model import Entry, Transport, Unreadable
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.engine.driven import DrivenCampaign


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
    all_files: bool = False,
    say: Callable[[str], object] = lambda _text: None,
) -> None:
    """Bring the reports and the output of runs; those of earlier attempts move aside.

    Args:
        folder: The campaign's folder here.
        transport: The way to the site.
        scratch: The campaign's folder there.
        runs: The runs.
        all_files: All files that they left.
        say: Prints a line for the user: what is brought and how large it is, before it is.

    Raises:
        UnreachableError: The connection was lost; doing it again brings what is missing.
        CommandError: A file cannot be brought.
    """
    sources = {run_folder(scratch, run.id, run.attempt): run for run in runs}
    extra_patterns = ("*",) if all_files else ()
    listed = transport.list_many(
        {source: (*run.reports, *KEPT_FILES, *extra_patterns) for source, run in sources.items()}
    )
    downloads: list[tuple[str, Path]] = []
    for source, run in sources.items():
        target = folder.reports / run.id
        if run.attempt > 1:
            _set_aside(target, run.attempt)
        # the claim names the attempt of the files, so it is brought first, in case nsw is killed in between
        entries = sorted(listed[source], key=lambda entry: entry.name != _CLAIM)
        downloads += [(f"{source}/{entry.name}", target / entry.name) for entry in entries]
    _report_size(transport, listed, say)
    transport.get_many(downloads)


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
    packed_files = {
        f"{source}/{entry.name}": (id_, folder.reports / run_of(id_) / entry.name)
        for source, id_ in sources.items() for entry in listed[source]
    }  # fmt: skip
    _report_size(transport, listed, say)
    transport.get_many([(remote_path, local_path) for remote_path, (_, local_path) in packed_files.items()])
    wrong: dict[str, str] = {}
    for id_, packed in packed_files.values():
        if (fault := unpack(packed, packed.with_name(packed.name.removesuffix(PACKED)))) is not None:
            wrong[id_] = fault
    return wrong


def _report_size(transport: Transport, listed: Mapping[str, Sequence[Entry]], say: Callable[[str], object]) -> None:
    """Print how much comes from a site elsewhere; little is not worth a line."""
    sizes = [entry.size for entries in listed.values() for entry in entries]
    if transport.remote and sum(sizes) >= _WORTH_A_LINE:
        say(f"brings {plural(len(sizes), 'file')} of {plural(len(listed), 'run')}: {format_bytes(sum(sizes))}")


def collected_attempt_folder(folder: CampaignFolder, run: str, attempt: int) -> Path | None:
    """Where the files of an attempt were brought to; None where they were not."""
    target = folder.reports / run
    folders = (target, target / f"attempt-{attempt}")
    return next(
        (candidate for candidate in folders if attempt_in_claim(folder.tail(candidate / _CLAIM)) == attempt), None
    )


def second_start(folder: CampaignFolder, run: str) -> str | None:
    """Which other jobs started a run that was claimed already, as a sentence; None for none."""
    lines = (read_tail(folder.reports / run / AGAIN) or b"").decode(errors="backslashreplace").split()
    jobs = list(dict.fromkeys(lines))
    return f"job {', '.join(jobs)} started it a second time and left it alone" if jobs else None


def note_second_job(folder: CampaignFolder, run: str, job: str) -> None:
    """Add a job that found the run done, where it has not written that down itself: that leaves no mark in the run."""
    file = folder.reports / run / AGAIN
    recorded = read_tail(file) or b""
    if job not in recorded.decode(errors="backslashreplace").split() and file.parent.is_dir():
        file.unlink(missing_ok=True)  # it may be the very file of the site
        write_bytes(file, recorded + f"{job}\n".encode())


def _set_aside(target: Path, attempt: int) -> None:
    old = [p for p in target.iterdir() if p.is_file()] if target.is_dir() else []
    number = attempt_in_claim(read_tail(target / _CLAIM))
    if not old or number == attempt:  # an nsw that was killed had begun to bring this one
        return
    if number is None:
        number = 1
        while (target / f"attempt-{number}").exists():
            number += 1
    aside = target / f"attempt-{number}"
    make_folders(aside)
    for file in sorted(old, key=lambda file: file.name == _CLAIM):
        file.rename(aside / file.name)


def attempt_in_claim(claim: bytes | None) -> int | None:
    """Which attempt files in a run's folder are of, by the claim among them."""
    match = re.search(rb"^attempt=(\d+)$", claim or b"", re.MULTILINE)
    return int(match[1]) if match else None


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
    wrong = None
    try:
        with open_to_read(packed) as raw, gzip.open(raw) as source, replacing(target) as out:
            while chunk := source.read(_CHUNK):
                allowance.take(len(chunk))
                out.write(chunk)
    except TooMuchError as fault:
        wrong = f"{packed.name} holds {fault}"
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        wrong = f"{packed.name} is damaged: {fault}"
    except OSError as fault:
        raise CampaignError(f"{target} cannot be written: {fault.strerror or fault}") from None
    packed.unlink()
    return wrong


_LAST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """An attempt of which nothing more will come, and how it ended.

    `second`: the job that nsw submitted for it, where another one of the same name did it.
    """

    run: TaskInFlight
    verdict: Verdict
    status: Status | None
    attempt: int
    second: str | None = None


class Collector:
    """The files that runs leave on the site, and the ends that they tell of.

    Args:
        campaign: The campaign.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._campaign = campaign
        self._statuses: dict[str, Status | Unreadable | None] = {}
        self._unpack_faults: dict[str, str] = {}  # reductions whose files could not be unpacked

    def read_statuses(self, runs: Iterable[TaskInFlight]) -> None:
        """Read the status of all of these in one round trip, for `status` until the next look.

        Raises:
            UnreachableError: The site could not be asked.
        """
        homes = [self._campaign.home(run.id, run.attempt) for run in runs]
        self._statuses = {}  # what is old must not be believed when the next line fails
        self._statuses = read_statuses(self._campaign.transport, homes) if homes else {}

    def status(self, run: str, attempt: int) -> Status | None:
        """What an attempt wrote of itself; None before it began.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._campaign.home(run, attempt)
        if home not in self._statuses:
            return read_status(self._campaign.transport, home)
        status = self._statuses[home]
        if isinstance(status, Unreadable):
            raise UnreachableError(f"{home}/status cannot be read: {status.reason}")
        return status

    def has_left_traces(self, run: TaskInFlight) -> bool:
        """Whether it began, or an earlier attempt of it was done."""
        status = self.status(run.id, run.attempt)
        return (status is not None and status.state != "withdrawn") or self._earlier_done_attempt(run) is not None

    def is_done(self, run: TaskInFlight | RunRow) -> bool:
        """Whether this attempt of it, or an earlier one, says that it was done."""
        status = self.status(run.id, run.attempt)
        return (status is not None and status.state == "done") or self._earlier_done_attempt(run) is not None

    def has_folder(self, run: TaskInFlight) -> bool:
        """Whether the folder of its attempt, which its job makes first, is still there with something in it.

        Raises:
            UnreachableError: It could not be told.
        """
        home = self._campaign.home(run.id, run.attempt)
        return bool(self._campaign.transport.list_many({home: ["*"]})[home])

    def record_state(self, run: TaskInFlight, verdict: Verdict, status: Status | None) -> None:
        """It is in another state than it was, or for another reason, and not over; or now it is known when it began."""
        run.state, run.reason, run.started = verdict.state, verdict.reason, status.started if status else None
        self._write([run.id], verdict, status)

    def record_waiting(self, runs: list[TaskInFlight], verdict: Verdict) -> None:
        """Several wait for the same reason; of a start that the scheduler took back no time counts."""
        for run in runs:
            run.state, run.reason, run.started = verdict.state, verdict.reason, None
        nothing = {"host": None, "started": None, "ended": None, "exit_code": None}
        self._write([run.id for run in runs], verdict, None, **nothing)

    # --- ends ---------------------------------------------------------------------------------------------

    def attempt_end(self, run: TaskInFlight, verdict: Verdict, status: Status | None) -> AttemptEnd:
        """How an attempt ended, an earlier one that was done after all included.

        Raises:
            UnreachableError: It could not be told.
        """
        if status is None and (earlier := self._earlier_done_attempt(run)):
            attempt, status = earlier
            return AttemptEnd(run, judge(Answer(Phase.ENDED, clean=True), status), status, attempt)
        return AttemptEnd(run, verdict, status, run.attempt)

    def collect(self, ends: Sequence[AttemptEnd]) -> None:
        """Bring what these left, in a few round trips for all of them.

        Raises:
            UnreachableError: The connection was lost; what is missing can be brought again.
            CommandError: A file cannot be brought.
        """
        campaign = self._campaign
        attempts = {end.run.id: end.attempt for end in ends if end.run.kind is Kind.RUN}
        if attempts:
            runs = [replace(run, attempt=attempts[run.id]) for run in campaign.ledger.runs_named(list(attempts))]
            collect(
                campaign.folder,
                campaign.transport,
                campaign.scratch,
                runs,
                all_files=self._collects_all_files,
                say=campaign.say,
            )
        reduced = {end.run.id: end.attempt for end in ends if _is_reduced(end)}
        if reduced:
            self._unpack_faults |= collect_reduced(
                campaign.folder, campaign.transport, campaign.scratch, reduced, say=campaign.say
            )

    def record_end(self, end: AttemptEnd) -> None:
        """Write down an end whose files are here."""
        run, verdict = end.run, end.verdict
        if (wrong := self._unpack_faults.pop(run.id, None)) is not None:
            verdict = Verdict(State.FAILED, Reason(wrong), ended=True)
        if run.kind is Kind.RUN:
            home = self._campaign.folder.reports / run.id
            stderr = read_tail(home / "stderr", _LAST_BYTES)
            verdict = with_disk_fault(verdict, (stderr or b"") + (read_tail(home / "after.log", _LAST_BYTES) or b""))
            waits = verdict.state is State.DONE and run.id in self._reduced_runs
            columns: dict[str, object] = {"reading": Reading.NONE if waits else Reading.COLLECTED}
            if end.second is not None:
                note_second_job(self._campaign.folder, run.id, end.second)
        else:  # what it left stays on the site
            stderr = self._campaign.transport.tail(f"{self._campaign.home(run.id, end.attempt)}/stderr", _LAST_BYTES)
            columns = {}
        verdict = self._with_last_words(verdict, stderr)
        if (twice := second_start(self._campaign.folder, run.id)) is not None:
            verdict = replace(verdict, reason=reason_followed_by(verdict.reason, twice))
        self._write([run.id], verdict, end.status, attempt=end.attempt, **columns)
        if run.kind is Kind.REDUCTION:  # also when it failed: then reading says so
            self._campaign.ledger.update_tasks([run_of(run.id)], reading=Reading.COLLECTED)
        run.attempt, run.state, run.reason = end.attempt, verdict.state, verdict.reason

    def _earlier_done_attempt(self, run: TaskInFlight | RunRow) -> tuple[int, Status] | None:
        """An earlier attempt that was done after it was given up: its job had been out of sight, and came back."""
        for attempt in range(run.attempt - 1, 0, -1):
            status = self.status(run.id, attempt)
            if status is not None and status.state == "done":
                return attempt, status
        return None

    def _with_last_words(self, verdict: Verdict, stderr: bytes | None) -> Verdict:
        """What the program said last belongs to why it failed."""
        if verdict.state is not State.FAILED:
            return verdict
        return replace(verdict, reason=reason_with(verdict.reason, stderr, login_shell=self._login_shell))

    @cached_property
    def _collects_all_files(self) -> bool:
        """Whether the recipe wants all that runs left, and not their reports alone."""
        return self._campaign.ledger.meta(COLLECT) == "everything"

    @cached_property
    def _reduced_runs(self) -> frozenset[str]:
        """The runs whose reports are reduced on the site: they are read after that."""
        return frozenset(run_of(row.id) for row in self._campaign.ledger.reductions())

    @cached_property
    def _login_shell(self) -> bool:
        return self._campaign.ledger.has_login_shell()

    def _write(self, ids: list[str], verdict: Verdict, status: Status | None, **columns: object) -> None:
        self._campaign.ledger.update_tasks(
            ids, state=verdict.state, reason=verdict.reason, **_status_columns(status), **columns
        )


def _is_reduced(end: AttemptEnd) -> bool:
    return end.run.kind is Kind.REDUCTION and end.verdict.state is State.DONE


def _status_columns(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }
