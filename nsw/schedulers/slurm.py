"""Slurm: the commands to ask it with, and what its answers mean. Pure: argument lists out, text in."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from nsw.recipe.units import format_duration
from nsw.schedulers.dialect import Facts, Line, Native
from nsw.schedulers.model import Answer, Phase
from nsw.schedulers.slurm_words import (
    FULL,
    HELD,
    NOT_SENT,
    REFUSALS,
    SAID,
    STATES,
    TRANSIENT,
    UNUSABLE,
    reason_of,
)
from nsw.scripts.slurm import directives as directives  # noqa: PLC0414  one of its words, to be had from here

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.errors import CommandResult
    from nsw.schedulers.model import Submission

NAME, SUBMIT, QUEUE, HISTORY = "Slurm", "sbatch", "squeue", "sacct"
# variables that would change what the commands do or print; SLURM_CONF says which cluster and stays
CLEARED: tuple[str, ...] = ("SBATCH_", "SQUEUE_", "SALLOC_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_", "SLURM_")
KEPT: tuple[str, ...] = ("SLURM_CONF", "SLURM_CONF_SERVER")

_UNIT = "\x1f"  # no state, reason or name of nsw's holds it
_SQUEUE_FIELDS = ("%F", "%K", "%T", "%j", "%r", "%l")
_SACCT_FIELDS = ("JobID", "JobName", "State", "ExitCode", "NodeList", "Timelimit")
_LONGEST_LIST = 500  # ids on one command line
_SEVERAL = re.compile(r",(?=[^ _])")  # `ReqNodeNotAvail, UnavailableNodes:n1` is one reason
_OF_SBATCH = re.compile("^(Batch job submission failed|allocation failure): ")  # the latter with --test-only
_SUBMITTED = re.compile(r"(?:Submitted batch job )?(\d+)(?:;\S+| on cluster \S+)?")
_INDEX = re.compile(r"^(?P<base>\d+)(?:_(?:(?P<index>\d+)|\[(?P<ranges>[^\]]*)\]?.*))?(?:\+0)?$")


def submit_command(
    submission: Submission,
    *,
    script: str,
    log: str,
    comment: str,
    throttle: int | None = None,
    after: str | None = None,
) -> list[str]:
    """The sbatch of a submission: an array when it holds several tasks."""
    first = submission.tasks[0]
    base = log.replace("%", "%%")
    words = ["sbatch", "--parsable", f"--job-name={submission.name}", f"--comment={comment}", "--open-mode=append"]
    if after is not None:
        words += [f"--dependency=afterok:{after}", "--kill-on-invalid-dep=yes"]
    if len(submission.tasks) == 1:
        return [*words, f"--output={base}.log", script, str(submission.attempt), str(first)]
    limit = f"%{throttle}" if throttle is not None and throttle < len(submission.tasks) else ""
    return [
        *words,
        f"--array={ranges(t - first for t in submission.tasks)}{limit}",
        f"--output={base}.%a.log",
        script,
        str(submission.attempt),
        str(first),
    ]


def job_of(native: str | None, task: int) -> str | None:
    """`123_5` or `123`: what Slurm calls a task of a submission."""
    known = Native.parse(native)
    if known is None:
        return None
    return known.job if known.offset is None else f"{known.job}_{task - known.offset}"


def log_name(submission: str, native: str | None, task: int) -> str:
    """The file, in the folder of jobs, with what the job script of a task printed."""
    known = Native.parse(native)
    return f"{submission}.log" if known is None or known.offset is None else f"{submission}.{task - known.offset}.log"


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,7` of rising numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def parse_ranges(text: str) -> list[int]:
    """The numbers of `0-3,7`, `0-6:2` or `0-3,7%2`; what Slurm cut short (`...`) is left out."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            found += range(first, last + 1, max(1, step))
    return found


def parse_submitted(stdout: str) -> str | None:
    """The job id that `sbatch --parsable` printed (`123` or `123;cluster`), among whatever a site's wrapper says.

    None where no line or several could be one: then the job is looked up by its name.
    """
    found = {match[1] for line in stdout.splitlines() if (match := _SUBMITTED.fullmatch(line.strip()))}
    return found.pop() if len(found) == 1 else None


def sign_of_life_command() -> list[str]:
    """What every user may ask and costs little: the partitions' names."""
    return ["sinfo", "--noheader", "--format=%P"]


def test_command(script: str) -> list[str]:
    """Ask whether and when a script could run, without submitting it."""
    return ["sbatch", "--test-only", script, "1", "0"]


def parse_test(result: CommandResult) -> str | None:
    """`2026-01-01T00:00:00 ... in partition gpu` of `sbatch --test-only`; None when it was refused."""
    match = re.search(r"Job \d+ to start at (.*)", result.stderr + result.stdout)
    return match[1].strip() if result.returncode == 0 and match else None


def is_full(result: CommandResult) -> bool:
    """Refused only because enough is in the queue already."""
    return any(text in result.stderr for text in FULL)


def not_sent(result: CommandResult) -> bool:
    """The command certainly did not reach the controller."""
    return result.returncode == 127 or any(text in result.stderr for text in (*NOT_SENT, *UNUSABLE))


def transient(result: CommandResult) -> bool:
    """A fault of the moment, which says nothing of the job."""
    return result.timed_out or any(text in result.stderr for text in TRANSIENT)


def in_doubt(result: CommandResult) -> bool:
    """Whether a command that failed may yet have done its work, or not: it was killed, or left without a word.

    A controller that takes nothing for the moment is asked again by sbatch itself, which says so as of an error.
    """
    killed = result.returncode < 0 or 128 < result.returncode < 192  # by a signal; over ssh a shell adds 128
    speechless = not result.stderr.strip()
    return transient(result) or not_sent(result) or speechless or (killed and "submission failed" not in result.stderr)


def complaints(result: CommandResult) -> list[str]:
    """The lines in which a command said what is wrong, each once, without what they all begin with."""
    lines = [re.sub(r"^sbatch: (error: |fatal: )?", "", line) for line in result.stderr.splitlines() if line.strip()]
    return list(dict.fromkeys(_OF_SBATCH.sub("", line) for line in lines if not line.startswith('Try "')))


def refusal(result: CommandResult) -> tuple[str, str | None, str | None]:
    """Why sbatch refused: its sentence, the key of `resources` that asks for it, what to do."""
    said = "; ".join(complaints(result)) or f"exit status {result.returncode}, without a word"
    for known in REFUSALS:
        if known.text.lower() in said.lower():
            return said, known.key, known.hint
    return said, None, None


def queue_command(names: Sequence[str] = (), *, each: bool = False) -> list[str]:
    """One squeue for everything; of certain jobs only where they are few.

    Args:
        names: The jobs' names.
        each: A line for each task that waits; else those of an array share one.
    """
    some = [f"--name={','.join(names)}"] if 0 < len(names) <= _LONGEST_LIST else []
    return ["squeue", "--me", "-h", *(["-r"] if each else []), "-t", "all", *some, "-o", _UNIT.join(_SQUEUE_FIELDS)]


def answered(result: CommandResult) -> bool:
    """Slurm's commands say by their exit status whether they could ask."""
    return result.returncode == 0 and not result.timed_out


def parse_queue(stdout: str) -> list[Line]:
    """The lines of `queue_command`; what is no such line is left out."""
    found: list[Line] = []
    for text in stdout.splitlines():
        fields = text.split(_UNIT)
        if len(fields) != len(_SQUEUE_FIELDS) or not fields[0].isdigit():
            continue
        base, index, state, name, reason, limit = fields
        told = answer(state, reason, limit if state == "TIMEOUT" else "")
        if index == "N/A":
            found.append(Line(base, None, name, told))
        elif index.isdigit():
            found.append(Line(base, (int(index),), name, told))
        else:  # cut short after 64 characters; of tasks that wait for different reasons all are named
            vague = "..." in index or _SEVERAL.search(reason) is not None
            found.append(Line(base, parse_ranges(index.strip("[]")), name, told, vague))
    return found


def history_commands(jobs: Mapping[str, str]) -> list[list[str]]:
    """The sacct of jobs that squeue does not know any more; without -S it looks at all of history for an id."""
    ids = list(jobs)
    some = (ids[at : at + _LONGEST_LIST] for at in range(0, len(ids), _LONGEST_LIST))
    return [[*_SACCT, "-j", ",".join(part)] for part in some]


def history_by_name_command(name: str, minutes: int) -> list[str]:
    """The sacct of a name: a relative start, since clocks and time zones differ and the default is midnight."""
    return [*_SACCT, f"--name={name}", "-S", f"now-{max(1, minutes)}minutes"]


def no_history(result: CommandResult) -> bool:
    """No sacct on this machine, or none that is told anything, whatever the cluster's settings say.

    One that could not be started for the moment (no memory, no processes, a library out of sight) is there.
    """
    missing = "[Errno 2]" in result.stderr or "not found" in result.stderr.lower()
    return (result.returncode == 127 and missing) or "accounting storage is disabled" in result.stderr


_SACCT = ("sacct", "-P", "-n", "-X", f"--delimiter={_UNIT}", "-o", ",".join(_SACCT_FIELDS))


def parse_history(stdout: str) -> list[Line]:
    """The lines of the sacct commands, less what sbatch refused (it uses an id and shows up as failed)."""
    found: list[Line] = []
    for text in stdout.splitlines():
        fields = text.split(_UNIT)
        match = _INDEX.match(fields[0])
        if len(fields) != len(_SACCT_FIELDS) or match is None:
            continue
        _, name, state, code, nodes, limit = fields
        if state == "FAILED" and code == "1:0" and nodes == "None assigned":
            continue
        told = answer(state, _exit_words(code) if state == "FAILED" else "", limit if state == "TIMEOUT" else "")
        found.append(Line(match["base"], _indices(match), name, told))
    return found


def _indices(match: re.Match[str]) -> Sequence[int] | None:
    if match["ranges"] is not None:
        return parse_ranges(match["ranges"])
    return None if match["index"] is None else (int(match["index"]),)


def _exit_words(code: str) -> str:
    status, _, sign = code.partition(":")
    if code == "0:53":
        return "JobLaunchFailure"
    if sign not in {"", "0"}:
        return f"signal {sign}"
    return f"exit status {status}"


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(state: str, reason: str, limit: str = "") -> Answer:
    """What a state and a reason mean together; `limit` is the job's time limit. An unknown state is no statement."""
    word = state.split(" ", 1)[0].rstrip("+").upper()  # CANCELLED by 1000
    phase, ended = STATES.get(word, (Phase.UNKNOWN, f"Slurm says {state}, which nsw does not know"))
    why = reason_of(reason)
    if phase is Phase.ENDED:
        more = why.sentence if why and reason != SAID.get(word) else ""
        said = None if ended is None else f"{ended}: {more}" if more and more not in ended else ended
        if said is not None and (words := limit_words(limit)):
            said = said.replace("its time limit", f"its time limit of {words}", 1)
        return Answer(phase, said, clean=word == "COMPLETED")
    if word in HELD:
        return Answer(phase, f"{ended} ({word}); {HELD[word]}", never=True)
    if word == "PENDING" and why is not None:
        said = f"{why.sentence} ({reason})" if why.sentence else None
        return Answer(phase, f"{said}; {why.todo}" if why.todo else said, never=why.never, may_run=why.may_run)
    return Answer(phase, ended)


def limit_words(limit: str) -> str | None:
    """`1h30m` for Slurm's `1:30:00` or `01:30:00`; None for what is no time."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return format_duration(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def facts_command() -> list[str]:
    """What the cluster is set to."""
    return ["scontrol", "show", "config"]


def parse_facts(stdout: str) -> Facts:
    """The settings that matter here; what is not said is taken as Slurm's default."""
    said = dict(re.findall(r"^(\w+)\s*= (.*)$", stdout, re.MULTILINE))

    def number(key: str, default: int) -> int:
        match = re.match(r"\d+", said.get(key, ""))
        return int(match[0]) if match else default

    storage = said.get("AccountingStorageType", "").strip()
    return Facts(
        version=said.get("SLURM_VERSION", "").strip(),
        max_array_size=number("MaxArraySize", 1001),
        min_job_age_s=number("MinJobAge", 300),
        history=storage not in {"", "(null)", "accounting_storage/none"},
    )


def cancel_command(submissions: Sequence[Submission]) -> list[str] | None:
    """One scancel for all of these; of an array only the tasks that are named. None: there is nothing to cancel."""
    words: list[str] = []
    for submission in submissions:
        native = Native.parse(submission.native_id)
        if native is None:
            continue
        if native.offset is None:
            words.append(native.job)
        else:
            offset = native.offset
            words.append(f"{native.job}_[{ranges(t - offset for t in submission.tasks)}]")
    return ["scancel", *words] if words else None


cancelled = answered  # of unknown and finished jobs scancel says nothing


def throttle_command(native: Native, limit: int) -> list[str]:
    """Change how many tasks of an array may run at the same time."""
    return ["scontrol", "update", f"JobId={native.job}", f"ArrayTaskThrottle={limit}"]


def memory_words(log: str) -> str | None:
    """The line of a job's output that tells of too much memory: without cgroups the state does not say so."""
    match = re.search(
        r"^.*(?:exceeded memory limit|oom-kill event|Out Of Memory|oom_kill).*$", log, re.MULTILINE | re.IGNORECASE
    )
    return match and re.sub(r"^slurmstepd: (error: )?", "", match[0]).strip()
