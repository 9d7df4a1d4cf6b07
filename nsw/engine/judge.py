"""What a run wrote of itself and what the scheduler says of it, and what both mean."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from nsw.engine.ledger import State
from nsw.engine.ledger_rows import Cause, Reason
from nsw.errors import UnreachableError
from nsw.schedulers.model import Answer, Phase
from nsw.transport.model import Transport, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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
        started=_number(facts.get("start")),
        ended=_number(facts.get("end")),
        exit_code=int(facts["exit_code"]) if facts.get("exit_code", "").isdigit() else None,
        reason=_reason(facts),
    )


def _reason(facts: Mapping[str, str]) -> Reason | None:
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
        return Verdict(State.FAILED, reason and replace(reason, cause=_limit_cause(answer) or reason.cause), ended=True)
    if status is not None and status.state == "withdrawn":
        status = None
    if answer.phase is Phase.LOST:
        caveat = "" if status is None else "; it had begun and may still be running: only `nsw retry` begins it again"
        return Verdict(State.LOST, Reason(f"{answer.reason}{caveat}"), ended=True)
    if answer.phase is Phase.ENDED and answer.cancelled and status is None:
        return Verdict(State.CANCELLED, Reason(f"{answer.reason} before it began"), ended=True)
    if answer.phase in {Phase.ENDED, Phase.GONE}:
        return Verdict(State.FAILED, Reason(_cut_short_reason(answer, status), _limit_cause(answer)), ended=True)
    if status is not None:
        return Verdict(State.RUNNING)
    return Verdict(
        {Phase.QUEUED: State.QUEUED, Phase.RUNNING: State.RUNNING}.get(answer.phase, State.SUBMITTED),
        Reason.from_text(answer.reason, Cause.HELD_BY_SCHEDULER if answer.held else None),
    )


def _limit_cause(answer: Answer) -> Cause | None:
    return Cause.OVER_TIME if answer.over_time else None


def reason_followed_by(reason: Reason | None, addition: str | None) -> Reason | None:
    """A reason with words behind it."""
    if reason is None or addition is None:
        return Reason(addition) if addition else reason
    return replace(reason, detail=f"{reason.detail}; {addition}")


def _cut_short_reason(answer: Answer, status: Status | None) -> str:
    """Why a run that wrote no end of itself is over: its job's own reason comes first."""
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


def _number(text: str | None) -> float | None:
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
    line = _shorten(message[0].decode(errors="backslashreplace").strip())
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
    by_launcher, lines = _split(text)
    program_lines = [line for line in lines if not _WRAPPER_LINE.match(line)]
    faults = [line for line in program_lines if _FAULT.match(line)]
    causes = [line for line in by_launcher if not _RESULT.match(line) and not _WRAPPER_LINE.match(line)]
    refused = [line for line in causes if re.search(r"\bwarning:", line) is None]
    rest = [line for line in lines if not _WRAPPER_LINE.fullmatch(line)]
    for some, at in ((faults, -1), (refused, 0), (program_lines, -1), (by_launcher, 0), (rest, -1), (lines, -1)):
        if some:
            return _shorten(some[at].strip())
    return None


def _split(text: list[str]) -> tuple[list[str], list[str]]:
    """What launchers say, and all other lines; of Open MPI's, between rules, the first paragraph as one line."""
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
    """The reason of a failed run or build with what it said last, and with what to do where its set-up shows that.

    Args:
        reason: What is known of the failure without it.
        stderr: The end of what it said.
        login_shell: Whether jobs of the site start in a login shell.
    """
    words = error_line(stderr)
    if reason is None:
        return Reason(words) if words else None
    if words is None or words in _SIGNAL_WORDS:
        return reason
    if reason.cause is Cause.SET_UP:
        words = _BASH_AT.sub("", words)
        hint = _set_up_hint(words, login_shell=login_shell)
        words += f" ({hint})" if hint else ""
    return replace(reason, detail=f"{reason.detail}: {words}")


def _set_up_hint(words: str, *, login_shell: bool) -> str | None:
    """What helps where the shell of a job does not know what that of a login knows."""
    missing = _NOT_FOUND.search(words)
    if missing is None and not _INIT.search(words):
        return None
    missing_command = missing[1] if missing else "conda"
    if not login_shell:
        return f"jobs may know {missing_command} in a login shell only: `login_shell: true` at the site"
    return (
        f"a login shell does not know {missing_command} either: let `app: setup:` begin with the line that sources it"
    )


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."
