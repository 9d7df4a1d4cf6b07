"""How tasks end: what a run and its scheduler report, the verdict on both, and its files in the campaign's folder."""

from __future__ import annotations

import lzma
import re
import signal
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.apart import Allowance, TooMuchError, format_bytes
from nsw.engine.failures import known_failure
from nsw.engine.folder import CampaignFolder, run_folder, run_of
from nsw.engine.ledger_rows import COLLECT, Cause, Kind, Reading, Reason, RunRow, State, TaskInFlight
from nsw.engine.node_archives import unpack_node_archives
from nsw.errors import CampaignError, UnreachableError
from nsw.readers.untrusted_files import unpack_chunks
from nsw.safe_files import make_folders, open_to_read, read_plain, replacing_file, write_bytes
from nsw.schedulers.model import Answer, Phase
from nsw.transport.model import Entry, Transport, Unreadable
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.engine.driven import DrivenCampaign


_PACKED: Final = ("*.xz", "*.gz")  # what a reduction makes
_WORTH_A_LINE: Final = 1 << 20  # bytes
_CLAIM = "claim"
AGAIN = "again"  # a line for each other job that found the run claimed
CHECKS_FILE: Final = "checks.tsv"  # what the job wrote down for the recipe's checks
CHECKS_LOG: Final = "checks.log"  # what their commands printed
CONDITIONS_FILE: Final = "conditions.txt"  # what was sampled beside the program
KEPT_FILES = (
    "stdout", "stderr", _CLAIM, "status", "after.log", AGAIN, "ranks.tsv", CHECKS_FILE, CHECKS_LOG, CONDITIONS_FILE,
)  # fmt: skip


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
        CampaignError: One cannot be unpacked here.
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
            _set_aside_earlier_attempt(target, run.attempt)
        # the claim names the attempt of the files, so it is brought first, in case nsw is killed in between
        entries = sorted(listed[source], key=lambda entry: entry.name != _CLAIM)
        downloads += [(f"{source}/{entry.name}", target / entry.name) for entry in entries]
    _print_download_size(transport, listed, say)
    transport.get_many(downloads)
    for run in runs:
        unpack_node_archives(folder.reports / run.id, run.reports)


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
    listed = transport.list_many(dict.fromkeys(sources, _PACKED))
    packed_files = {
        f"{source}/{entry.name}": (id_, folder.reports / run_of(id_) / entry.name)
        for source, id_ in sources.items() for entry in listed[source]
    }  # fmt: skip
    _print_download_size(transport, listed, say)
    transport.get_many([(remote_path, local_path) for remote_path, (_, local_path) in packed_files.items()])
    wrong: dict[str, str] = {}
    for id_, packed in packed_files.values():
        if (fault := unpack(packed, packed.with_suffix(""))) is not None:
            wrong[id_] = fault
    return wrong


def _print_download_size(
    transport: Transport, listed: Mapping[str, Sequence[Entry]], say: Callable[[str], object]
) -> None:
    """Print how much comes from a site elsewhere; little is not worth a line."""
    sizes = [entry.size for entries in listed.values() for entry in entries]
    if transport.remote and sum(sizes) >= _WORTH_A_LINE:
        say(f"brings {plural(len(sizes), 'file')} of {plural(len(listed), 'run')}: {format_bytes(sum(sizes))}")


def collected_attempt_folder(folder: CampaignFolder, run: str, attempt: int) -> Path | None:
    """Return the folder here that holds the collected files of an attempt; None where they were not collected.

    Args:
        folder: The campaign's folder.
        run: The run's id.
        attempt: The attempt's number, from 1.
    """
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
    """Record that a second job found the run done, where the job has not recorded it: no other trace remains.

    Args:
        folder: The campaign's folder, where the run's reports are.
        run: The run's id.
        job: The scheduler's id of the second job.
    """
    file = folder.reports / run / AGAIN
    recorded = read_tail(file) or b""
    if job not in recorded.decode(errors="backslashreplace").split() and file.parent.is_dir():
        file.unlink(missing_ok=True)  # it may be the very file of the site
        write_bytes(file, recorded + f"{job}\n".encode())


def _set_aside_earlier_attempt(target: Path, attempt: int) -> None:
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


def unpack(packed: Path, target: Path) -> str | None:
    """Unpack a file of a reduction, whole or not at all, and remove it.

    Returns:
        What is wrong with its content; None when it is good.

    Raises:
        CampaignError: What comes out cannot be written, as on a full disk.
    """
    allowance = Allowance(packed.stat().st_size)
    wrong = None
    try:
        with open_to_read(packed) as raw, replacing_file(target) as out:
            out.writelines(unpack_chunks(raw, allowance))
    except TooMuchError as fault:
        wrong = f"{packed.name} holds {fault}"
    except (EOFError, zlib.error, lzma.LZMAError) as fault:
        wrong = f"{packed.name} is damaged: {fault}"
    except OSError as fault:
        raise CampaignError(f"{target} cannot be written: {fault.strerror or fault}") from None
    packed.unlink()
    return wrong


_LAST_BYTES = 4096
_STATUS_COLUMNS: Final = ("host", "started", "ended", "exit_code")  # of a task, by its status file


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

    def has_begun(self, run: TaskInFlight) -> bool:
        """Whether this attempt of it has begun."""
        status = self.status(run.id, run.attempt)
        return status is not None and status.state != "withdrawn"

    def began_or_was_done_before(self, run: TaskInFlight) -> bool:
        """Whether it began, or an earlier attempt of it was done."""
        return self.has_begun(run) or self._earlier_done_attempt(run) is not None

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
        """Record the state, reason or start time of a run that is not over.

        Args:
            run: The run; it is changed too.
            verdict: Its state and the reason.
            status: Its status file; None: it has none yet.
        """
        run.state, run.reason, run.started = verdict.state, verdict.reason, status.started if status else None
        self._update_tasks([run.id], verdict, status)

    def record_waiting(self, runs: list[TaskInFlight], verdict: Verdict) -> None:
        """Several wait for the same reason; of a start that the scheduler took back no time counts."""
        for run in runs:
            run.state, run.reason, run.started = verdict.state, verdict.reason, None
        self._update_tasks([run.id for run in runs], verdict, None, **dict.fromkeys(_STATUS_COLUMNS))

    # --- ends ---------------------------------------------------------------------------------------------

    def attempt_end(self, run: TaskInFlight, verdict: Verdict, status: Status | None) -> AttemptEnd:
        """Return how an attempt ended; an earlier attempt that was done after all takes its place.

        Args:
            run: The run.
            verdict: How the attempt ended, by the scheduler and the status file.
            status: The attempt's status file; None: it never began.

        Raises:
            UnreachableError: The site could not be asked.
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
        reduced = {
            end.run.id: end.attempt
            for end in ends
            if end.run.kind is Kind.REDUCTION and end.verdict.state is State.DONE
        }
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
        verdict = self._add_stderr_to_reason(verdict, stderr)
        if (twice := second_start(self._campaign.folder, run.id)) is not None:
            verdict = replace(verdict, reason=reason_followed_by(verdict.reason, twice))
        self._update_tasks([run.id], verdict, end.status, attempt=end.attempt, **columns)
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

    def _add_stderr_to_reason(self, verdict: Verdict, stderr: bytes | None) -> Verdict:
        """Add the last lines of stderr to the reason of a failure."""
        if verdict.state is not State.FAILED:
            return verdict
        return replace(verdict, reason=reason_with(verdict.reason, stderr, login_shell=self._uses_login_shell))

    @cached_property
    def _collects_all_files(self) -> bool:
        """Whether the recipe wants all that runs left, and not their reports alone."""
        return self._campaign.ledger.meta(COLLECT) == "everything"

    @cached_property
    def _reduced_runs(self) -> frozenset[str]:
        """The runs whose reports are reduced on the site: they are read after that."""
        return frozenset(run_of(row.id) for row in self._campaign.ledger.reductions())

    @cached_property
    def _uses_login_shell(self) -> bool:
        return self._campaign.ledger.has_login_shell()

    def _update_tasks(self, ids: list[str], verdict: Verdict, status: Status | None, **columns: object) -> None:
        if status is not None:
            columns |= {name: getattr(status, name) for name in _STATUS_COLUMNS}
        self._campaign.ledger.update_tasks(ids, state=verdict.state, reason=verdict.reason, **columns)


@dataclass(frozen=True, slots=True)
class Status:
    """A run's status file; times are Unix seconds.

    `state` is running, done, failed, or withdrawn: nsw gave this attempt up before it began.
    """

    state: str
    host: str | None = None
    gpus: str | None = None
    job_id: str | None = None
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of a run now; `ended` says that nothing more will come of this attempt."""

    state: State
    reason: Reason | None = None
    ended: bool = False


def parse_status(content: bytes | None) -> Status | None:
    """A status file (key=value lines); None when it is absent or holds no state yet.

    A run that a signal to its job cut off has written so, but why it was sent only the scheduler knows: until that
    says that the job is over it counts as running, and then as cut short.
    """
    if not content:
        return None
    # here and below: nsw acts on ASCII words alone, and what people read shows other bytes as \xff
    facts = dict(line.split("=", 1) for line in content.decode(errors="backslashreplace").splitlines() if "=" in line)
    if facts.get("state") not in {"running", "done", "failed", "withdrawn"}:
        return None
    if facts.get("signalled"):
        facts = {key: value for key, value in facts.items() if key not in {"end", "exit_code", "cause", "reason"}}
        facts["state"] = "running"
    return Status(
        state=facts["state"],
        host=facts.get("host") or None,
        gpus=facts.get("gpus") or None,
        job_id=facts.get("job_id") or None,
        started=_parse_number(facts.get("start")),
        ended=_parse_number(facts.get("end")),
        exit_code=int(facts["exit_code"]) if facts.get("exit_code", "").isdigit() else None,
        reason=_reason_from_facts(facts),
    )


def _reason_from_facts(facts: Mapping[str, str]) -> Reason | None:
    cause = next((cause for cause in (Cause.SET_UP, Cause.EXIT, Cause.OVER_TIME) if cause == facts.get("cause")), None)
    return Reason.from_text(facts.get("reason") or None, cause)


def answer_once_begun(answer: Answer, status: Status | None) -> Answer:
    """The scheduler's answer, as it holds of a run with this status."""
    has_begun = status is not None and status.state == "running"
    return answer.if_begun if has_begun and answer.if_begun is not None else answer


def judge(answer: Answer, status: Status | None) -> Verdict:
    """Weigh both witnesses: a finished status file decides; else a task is over only if the scheduler says so."""
    answer = answer_once_begun(answer, status)
    if status is not None and status.state in {"done", "failed"}:
        if status.state == "done":
            return Verdict(State.DONE, status.reason, ended=True)
        explains = answer.phase in {Phase.ENDED, Phase.LOST} and not answer.by_itself
        reason = reason_followed_by(_reason_with_signal(status), answer.reason if explains else None)
        return Verdict(
            State.FAILED, reason and replace(reason, cause=_over_time_cause(answer) or reason.cause), ended=True
        )
    if status is not None and status.state == "withdrawn":
        status = None
    if answer.phase is Phase.LOST:
        caveat = "" if status is None else "; it had begun and may still be running: only `nsw retry` begins it again"
        return Verdict(State.LOST, Reason(f"{answer.reason}{caveat}"), ended=True)
    if answer.phase is Phase.ENDED and answer.cancelled and status is None:
        return Verdict(State.CANCELLED, Reason(f"{answer.reason} before it began"), ended=True)
    if answer.phase in {Phase.ENDED, Phase.GONE}:
        return Verdict(State.FAILED, Reason(_cut_short_reason(answer, status), _over_time_cause(answer)), ended=True)
    if status is not None:
        return Verdict(State.RUNNING)
    return Verdict(
        {Phase.QUEUED: State.QUEUED, Phase.RUNNING: State.RUNNING}.get(answer.phase, State.SUBMITTED),
        Reason.from_text(answer.reason, Cause.HELD_BY_SCHEDULER if answer.held else None),
    )


def _over_time_cause(answer: Answer) -> Cause | None:
    return Cause.OVER_TIME if answer.over_time else None


def reason_followed_by(reason: Reason | None, addition: str | None) -> Reason | None:
    """A reason with words behind it."""
    if reason is None or addition is None:
        return Reason(addition) if addition else reason
    return replace(reason, detail=f"{reason.detail}; {addition}")


def _cut_short_reason(answer: Answer, status: Status | None) -> str:
    """Why a run that never wrote its end is over: its job's own reason comes first."""
    if answer.fault is not None:
        return answer.fault
    if status is None:
        return f"{answer.reason} before this run began" if answer.reason else "its job ended before this run began"
    if answer.reason:
        runs_on = ", whose processes may still be running" if answer.may_run else ""
        return f"{answer.reason} in the middle of this run{runs_on}"
    if answer.clean:  # a second start finds the run begun and ends at once, without a fault
        return (
            "its job ended well in the middle of this run: started a second time by a scheduler that had lost its"
            " state, or the run's folder could not be written"
        )
    return "its job ended in the middle of this run: killed, or the machine went down"


def _reason_with_signal(status: Status) -> Reason | None:
    """Its reason; an exit status that may tell of a signal, with its name."""
    signals = {int(s): s.name for s in signal.Signals}
    name = signals.get((status.exit_code or 0) - 128)
    reason = status.reason
    if reason is None or reason.cause is not Cause.EXIT or name is None:
        return reason
    return replace(reason, detail=f"{reason.detail} (128 + {name})")


def _parse_number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


_BYTES = 65536


def read_statuses(transport: Transport, homes: Iterable[str]) -> dict[str, Status | Unreadable | None]:
    """The status of each attempt by its folder: its end, else its claim; None before it began.

    Raises:
        UnreachableError: The site could not be asked.
    """
    folders = list(dict.fromkeys(homes))
    contents = transport.read_many([f"{home}/{name}" for home in folders for name in ("status", "claim")], _BYTES)
    statuses: dict[str, Status | Unreadable | None] = {}
    for home in folders:
        end, claim = contents[f"{home}/status"], contents[f"{home}/claim"]
        if isinstance(end, Unreadable):
            statuses[home] = end
        elif end:
            statuses[home] = parse_status(end)
        else:
            statuses[home] = claim if isinstance(claim, Unreadable) else parse_status(claim)
    return statuses


def read_status(transport: Transport, home: str) -> Status | None:
    """The status of one attempt.

    Raises:
        UnreachableError: It could not be told.
    """
    status = read_statuses(transport, [home])[home]
    if isinstance(status, Unreadable):
        raise UnreachableError(f"{home}/status cannot be read: {status.reason}")
    return status


_DISK_FULL: Final = re.compile(rb"^.*(?:No space left on device|Disk quota exceeded).*$", re.MULTILINE)


def with_disk_fault(verdict: Verdict, output: bytes) -> Verdict:
    """The verdict; of a run that counts as done, and whose shell or profiler reports a full disk, that it failed.

    Its exit status may be 0 all the same, and its report or output be cut.
    """
    message = _DISK_FULL.search(output)
    if verdict.state is not State.DONE or message is None:
        return verdict
    line = _shorten_line(message[0].decode(errors="backslashreplace").strip())
    return replace(verdict, state=State.FAILED, reason=Reason(f"the disk was full while it ran: {line}"))


_MAX_LINE: Final = 200  # characters
_WRAPPER_LINE: Final = re.compile(
    r"""
    ={2,}\w*={2,}                      # nvprof and ncu speak in ==1234==, ==PROF==; torchrun draws lines
    | [-=*_#\s]+$
    | Importer\ error\ status | Unable\ to\ retrieve\ the\ importer | The\ importer\ binary     # nsys
    | Generat(?:ing|ed)\b | Collecting\ data | Processing\ \[? | \[\d+/\d+\] | \s*/\S+$
    | The\ (?:target\ )?application\ (?:terminated|returned)
    | (?:\[?\S+\]?\ )?MPI_ABORT\ was\ invoked | Abort\(-?\d+\) | Exit\ code: | with\ errorcode    # launchers
    | Primary\ job | Process\ name: | Application\ \d+\ (?:exit|resources) | =\ .* | YOUR\ APPLICATION\ TERMINATED
    | This\ typically\ refers\ to\ a\ problem | Please\ see\ the\ FAQ
    | (?:\[\S+:\d+\]\ )?(?:\d+\ more\ process(?:es)?\ ha(?:s|ve)\ sent\ help|Set\ MCA\ parameter)
    | torch\.distributed\.elastic\S*ChildFailedError
    | (?:[WEI]\d{4}\ |\[\d{4}-\d\d-\d\d\ ).*(?:elastic|torchrun|run\.py)
    | frame\ \#\d+: | Exception\ raised\ from\ .*most\ recent\ call\ first                           # PyTorch's C++
    | (?:time|host|rank|exitcode|error_file|traceback)\s+: | (?:Root\ Cause|Failures|<NO_OTHER_FAILURES>)
    | (?!\s*what\(\):)\s+
    """,
    re.VERBOSE,
)
_FAULT: Final = re.compile(
    r"(?:\[rank\d+\]:\s*)?(?:[\w.]*(?:Error|Exception|Interrupt|Exit)\b\s*(?::|$)|terminate called|\s*what\(\):"
    r"|Segmentation fault)"
    r"|.*\b(?:[Ee]rror|ERROR|[Ff]atal|FATAL|[Aa]bort(?:ed)?|[Aa]ssert\w*|[Ff]ailed|not found|No such|[Kk]illed)\b"
)


# what starts a program's processes, and why it could not: of its lines the first is the cause
_LAUNCHER: Final = re.compile(
    r"(?:srun|slurmstepd|mpirun|mpiexec|prterun|orterun|aprun|apsched|jsrun|pbsdsh)\b[^:\s]*:?\s"
    r"|\[(?:mpiexec|proxy:\S+)@"
)
# what a launcher says of processes that ended by themselves, and of the others, which it ended then
_RESULT: Final = re.compile(
    r"(?:srun|slurmstepd): (?:error: )?(?:\S+: )?tasks? [\d,-]+: "
    r"|.*(?:Terminating (?:StepId|job)|Job step aborted|CANCELLED AT|[Ff]orce Terminated|First task exited"
    r"|got SIG|_step_signal"
    r"|(?:detected|noticed) that |terminated normally|MPI_ABORT was invoked"
    r"|(?:assert|poll|callback) .*(?:!closed|returned error)|: job ended due to a bad|error waiting for)"
)
_RULE: Final = re.compile(r"-{70,80}")  # around what Open MPI says


def error_line(stderr: bytes | None) -> str | None:
    """The line of a program's stderr that most likely says why it failed, shortened; None when it said nothing.

    That is the program's own last one that speaks of an error; else the first of its launcher that does, since what
    follows there follows from it; else the program's last one. What profilers and launchers say around the program
    counts only where nothing else is.
    """
    text = [line.rstrip() for line in (stderr or b"").decode(errors="backslashreplace").splitlines()]
    by_launcher, lines = _split_launcher_lines(text)
    program_lines = [line for line in lines if not _WRAPPER_LINE.match(line)]
    faults = [line for line in program_lines if _FAULT.match(line)]
    causes = [line for line in by_launcher if not _RESULT.match(line) and not _WRAPPER_LINE.match(line)]
    refused = [line for line in causes if re.search(r"\bwarning:", line) is None]
    rest = [line for line in lines if not _WRAPPER_LINE.fullmatch(line)]
    for some, at in ((faults, -1), (refused, 0), (program_lines, -1), (by_launcher, 0), (rest, -1), (lines, -1)):
        if some:
            return _shorten_line(some[at].strip())
    return None


def _split_launcher_lines(text: list[str]) -> tuple[list[str], list[str]]:
    """Lines printed by launchers, and all others; an Open MPI block becomes its first paragraph as one line."""
    by_launcher: list[str] = []
    lines: list[str] = []
    rules = [at for at, line in enumerate(text) if _RULE.fullmatch(line)]
    blocks = dict(zip(rules[::2], rules[1::2], strict=False))
    at = 0
    while at < len(text):
        if at in blocks:
            said = [line.strip() for line in text[at + 1 : blocks[at]]]
            paragraph = said[: said.index("")] if "" in said[1:] else said
            by_launcher += [" ".join(paragraph)] if any(paragraph) else []
            at = blocks[at]
        elif text[at].strip():
            (by_launcher if _LAUNCHER.match(text[at]) else lines).append(text[at])
        at += 1
    return by_launcher, lines


# how bash begins what it says of a line of a script
_BASH_AT: Final = re.compile(r"^.*?: (?:eval: )?line \d+: ")
_NOT_FOUND: Final = re.compile(r"(?:^|\s)(module|ml|conda|mamba|micromamba|spack|source): command not found")
_INIT: Final = re.compile(r"'?(conda|mamba|micromamba) init'?|\b(shell has not been properly configured)")
# what a shell says of a program that a signal ended: the batch system's own reason has said it already
_SIGNAL_WORDS: Final = frozenset({"Terminated", "Killed", "Hangup"})


def reason_with(reason: Reason | None, stderr: bytes | None, *, login_shell: bool) -> Reason | None:
    """The reason of a failed run or build with what it said last; of a failure that is known also what to do.

    Args:
        reason: What is known of the failure without it.
        stderr: The end of what it said.
        login_shell: Whether jobs of the site start in a login shell.
    """
    said = _reason_with_message(reason, error_line(stderr), login_shell=login_shell)
    if said is None:
        return None
    text = (stderr or b"").decode(errors="backslashreplace")
    failure = known_failure(said.detail, text, over_time=said.cause is Cause.OVER_TIME)
    return said if failure is None else replace(said, detail=failure.described(said.detail))


def _reason_with_message(reason: Reason | None, words: str | None, *, login_shell: bool) -> Reason | None:
    if reason is None:
        return Reason(words) if words else None
    if words is None or words in _SIGNAL_WORDS:
        return reason
    if reason.cause is Cause.SET_UP:
        words = _BASH_AT.sub("", words)
        hint = _missing_command_hint(words, login_shell=login_shell)
        words += f" ({hint})" if hint else ""
    return replace(reason, detail=f"{reason.detail}: {words}")


def _missing_command_hint(words: str, *, login_shell: bool) -> str | None:
    """The hint where a job's shell lacks a command that a login shell has."""
    missing = _NOT_FOUND.search(words)
    if missing is None and not _INIT.search(words):
        return None
    missing_command = missing[1] if missing else "conda"
    if not login_shell:
        return f"jobs may know {missing_command} in a login shell only: `login_shell: true` at the site"
    return (
        f"a login shell does not know {missing_command} either: let `app: setup:` begin with the line that sources it"
    )


def _shorten_line(line: str) -> str:
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."
