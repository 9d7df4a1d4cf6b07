"""Slurm: the commands to ask it with, and what its answers mean. Pure: argument lists out, text in."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from nsw.recipe.units import clock, format_duration
from nsw.schedulers.adapter import Adapter, Capabilities, Facts, Line, Queue, Refusal, told_limit
from nsw.schedulers.model import FAULTS, Answer, Phase
from nsw.schedulers.slurm_meanings import (
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
from nsw.schedulers.submission_ids import spans
from nsw.schedulers.unsupported_keys import own_lines
from nsw.scripts.slurm import directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job
    from nsw.schedulers.adapter import Request, Watched
    from nsw.schedulers.submission_ids import Native

_GRES = re.compile(r"gpu(?=[:,(]|$)(?::(?!\d+(?:[(,]|$))([^:,(]+))?(?::(\d+))?")  # gpu:a100:4(S:0-1), gpu:4, gpu
_UNIT = "\x1f"  # no state, reason or name of nsw's holds it
_SQUEUE_FIELDS = ("%F", "%K", "%T", "%j", "%r", "%l", "%u")
_SACCT_FIELDS = ("JobID", "JobName", "State", "ExitCode", "NodeList", "Timelimit")
_SACCT = ("sacct", "-P", "-n", "-X", f"--delimiter={_UNIT}", "-o", ",".join(_SACCT_FIELDS))
_LONGEST_LIST = 500  # ids on one command line
_SEVERAL = re.compile(r",(?=[^ _])")  # `ReqNodeNotAvail, UnavailableNodes:n1` is one reason
_OF_SBATCH = re.compile("^(Batch job submission failed|allocation failure): ")  # the latter with --test-only
_SUBMITTED = re.compile(r"(?:Submitted batch job )?(\d+)(?:;\S+| on cluster \S+)?")
_INDEX = re.compile(r"^(?P<base>\d+)(?:_(?:(?P<index>\d+)|\[(?P<ranges>[^\]]*)\]?.*))?(?:\+0)?$")
# sbatch's own verdict that nothing was submitted; a site's wrapper may fail with other words after it was
_VERDICT = re.compile(
    r"Batch job submission failed: |allocation failure: |unrecognized option|option requires an argument"
    r"|Failed to validate job spec|Invalid directive found in batch script|This does not look like a batch script"
    r"|Unable to open file"
)
# what scontrol says of jobs that have ended, beside the others that it holds
_NO_SUCH_JOB = "Invalid job id specified"
_OVER = ("already finished", _NO_SUCH_JOB, "no longer pending")


class Slurm(Adapter):
    """Slurm 17 and later."""

    name = "Slurm"
    marker = "#SBATCH"
    submit = "sbatch"
    queue = "squeue"
    history = "sacct"
    capabilities = Capabilities(
        arrays=True, restarts="counted", lists_ended=True, dependencies=True, throttle=True, hold=True, test_run=True
    )
    # SLURM_CONF says which cluster and stays
    cleared = ("SBATCH_", "SQUEUE_", "SALLOC_", "SACCT_", "SCANCEL_", "SINFO_", "SCONTROL_", "SLURM_")
    kept = ("SLURM_CONF", "SLURM_CONF_SERVER")
    keys = frozenset({"queue", "partition", "account", "qos", "gres", "constraint", "reservation", "exclusive"})

    # --- submitting ---------------------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The `#SBATCH` lines."""
        extra = tuple(own_lines(self, job.resources.extra))
        return directives(replace(job, resources=replace(job.resources, extra=extra)), scratch)

    def submit_command(self, request: Request) -> list[str]:
        """The sbatch of a submission: an array when it holds several tasks."""
        submission = request.submission
        tasks, first = submission.tasks, submission.tasks[0]
        base = request.log.replace("%", "%%")
        words = [
            "sbatch", "--parsable", f"--job-name={submission.name}", f"--comment={request.comment}",
            "--open-mode=append",
        ]  # fmt: skip
        if request.walltime_s is not None:
            words.append(f"--time={clock(request.walltime_s)}")
        if request.after is not None:
            words += [f"--dependency=afterok:{request.after}", "--kill-on-invalid-dep=yes"]
        if len(tasks) == 1:
            return [*words, f"--output={base}.log", request.script, str(submission.attempt), str(first)]
        limit = f"%{request.throttle}" if request.throttle is not None and request.throttle < len(tasks) else ""
        return [
            *words, f"--array={ranges(t - first for t in tasks)}{limit}", f"--output={base}.%a.log",
            request.script, str(submission.attempt), str(first),
        ]  # fmt: skip

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The job id that `sbatch --parsable` printed (`123` or `123;cluster`), among whatever a site's wrapper says.

        None where no line or several could be one: then the job is looked up by its name.
        """
        found = {match[1] for line in result.stdout.splitlines() if (match := _SUBMITTED.fullmatch(line.strip()))}
        return found.pop() if len(found) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why sbatch refused. Only its own verdict counts, and none that a moment's fault or a wrapper may explain.

        Words that nsw does not know, such as "Unspecified error", also come of submissions that were accepted.
        """
        if result.timed_out or result.returncode <= 0 or self.parse_submitted(result) is not None:
            return None
        if self.transient(result) or not_sent(result) or not _VERDICT.search(result.stderr):
            return None
        said = "; ".join(self.complaints(result))
        for known in REFUSALS:
            if known.text.lower() in said.lower():
                return Refusal(said, known.key, known.hint)
        return Refusal(said, certain=False)

    def is_full(self, result: CommandResult) -> bool:
        """Refused only because enough is in the queue already."""
        certain = 0 < result.returncode < 128 and not self.transient(result)  # killed in the middle it tells nothing
        return certain and any(text in result.stderr for text in FULL)

    def transient(self, result: CommandResult) -> bool:
        """A fault of the moment, which says nothing of the job."""
        return result.timed_out or any(text in result.stderr for text in TRANSIENT)

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong, each once, without what they all begin with."""
        lines = [
            re.sub(r"^sbatch: (error: |fatal: )?", "", line) for line in result.stderr.splitlines() if line.strip()
        ]
        return list(dict.fromkeys(_OF_SBATCH.sub("", line) for line in lines if not line.startswith('Try "')))

    def test_command(self, script: str) -> list[str]:
        """Ask whether and when a script could run, without submitting it."""
        return ["sbatch", "--test-only", script, "1", "0"]

    def parse_test(self, result: CommandResult) -> str | None:
        """`2026-01-01T00:00:00 ... in partition gpu` of `sbatch --test-only`; None when it was refused."""
        match = re.search(r"Job \d+ to start at (.*)", result.stderr + result.stdout)
        return match[1].strip() if result.returncode == 0 and match else None

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many tasks of an array may run at the same time."""
        return ["scontrol", "update", f"JobId={native.job}", f"ArrayTaskThrottle={limit}"]

    # --- asking -------------------------------------------------------------------------------------------

    def sign_of_life_command(self) -> list[str]:
        """What every user may ask and costs little: the partitions' names."""
        return ["sinfo", "--noheader", "--format=%P"]

    def queues_command(self) -> list[str]:
        """The partitions, a line for each kind of node in them."""
        return ["sinfo", "--noheader", "--format=%P|%a|%G|%l"]

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """`gpu*|up|gpu:a100:4(S:0-1)|1-00:00:00`; of a partition's kinds of nodes that with most GPUs."""
        found: dict[str, Queue] = {}
        kinds: dict[str, set[str]] = {}
        for line in result.stdout.splitlines():
            name, up, gres, longest, *_ = (*line.strip().split("|"), "", "", "", "")
            gpus = [(int(count or 1), kind) for kind, count in _GRES.findall(gres)]  # several kinds: that with most
            most, kind = max(gpus, default=(0, ""))
            bare = name.removesuffix("*")
            kinds.setdefault(bare, set()).update(kind for _, kind in gpus if kind and up == "up")
            if bare and up == "up" and (bare not in found or most > (found[bare].gpus or 0)):
                found[bare] = Queue(bare, most, kind, told_limit(longest), name.endswith("*"))
        return [replace(one, other_kinds=tuple(sorted(kinds[one.name] - {one.kind}))) for one in found.values()]

    def facts_command(self) -> list[str]:
        """What the cluster is set to."""
        return ["scontrol", "show", "config"]

    def parse_facts(self, result: CommandResult) -> Facts:
        """The settings that matter here; what is not said is taken as Slurm's default."""
        said = dict(re.findall(r"^(\w+)\s*= (.*)$", result.stdout, re.MULTILINE))
        size = re.match(r"\d+", said.get("MaxArraySize", ""))
        storage = said.get("AccountingStorageType", "").strip()
        return Facts(
            version=said.get("SLURM_VERSION", "").strip(),
            longest_array=(int(size[0]) if size else 1001) - 1,  # the highest index is one less than MaxArraySize
            history=storage not in {"", "(null)", "accounting_storage/none"},
        )

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:
        """One squeue for everything; of certain jobs only where they are few."""
        names = ",".join(one.name for one in watched)
        some = [f"--name={names}"] if 0 < len(watched) <= _LONGEST_LIST else []
        each = ["-r"] if detail else []
        return ["squeue", "--me", "-h", *each, "-t", "all", *some, "-o", _UNIT.join(_SQUEUE_FIELDS)]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The lines of squeue; what is no such line is left out. Asked for one id that is none, it fails."""
        if not result.timed_out and _NO_SUCH_JOB in result.stderr:
            return []
        return queue_lines(result.stdout) if answered(result) else None

    def owners_command(self, watched: Sequence[Watched]) -> list[str]:
        """The squeue of ids, also of other users' jobs."""
        ids = dict.fromkeys(one.native.job for one in watched if one.native)
        return ["squeue", "-h", "-t", "all", "-j", ",".join(ids), "-o", _UNIT.join(_SQUEUE_FIELDS)]

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """The sacct of jobs that squeue does not know any more; without -S it looks at all of history for an id."""
        ids = list(dict.fromkeys(one.native.job for one in watched if one.native))
        some = (ids[at : at + _LONGEST_LIST] for at in range(0, len(ids), _LONGEST_LIST))
        return [[*_SACCT, "-j", ",".join(part)] for part in some]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:
        """The sacct of names: a relative start, since clocks and time zones differ and the default is midnight."""
        return [*_SACCT, f"--name={','.join(names)}", "-S", f"now-{max(1, minutes)}minutes"]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """The lines of sacct, less what sbatch refused (it uses an id and shows up as failed)."""
        return history_lines(result.stdout) if answered(result) else None

    def no_history(self, result: CommandResult) -> bool:
        """No sacct on this machine, or none that is told anything, whatever the cluster's settings say.

        One that could not be started for the moment (no memory, no processes, a library out of sight) is there.
        """
        missing = "[Errno 2]" in result.stderr or "not found" in result.stderr.lower()
        return (result.returncode == 127 and missing) or "accounting storage is disabled" in result.stderr

    def memory_words(self, log: str) -> str | None:
        """The line of a job's output that tells of too much memory: without cgroups the state does not say so."""
        match = re.search(
            r"^.*(?:exceeded memory limit|oom-kill event|Out Of Memory|oom_kill).*$", log, re.MULTILINE | re.IGNORECASE
        )
        return match and re.sub(r"^slurmstepd: (error: )?", "", match[0]).strip()

    def accounts_command(self) -> list[str]:
        """The user's accounts in Slurm's database, where there is one."""
        return ["bash", "-lc", 'sacctmgr -nP show assoc user="$(id -un)" format=account 2>/dev/null']

    def parse_accounts(self, result: CommandResult) -> list[str]:
        """The lines that are a name."""
        names = (line.strip() for line in result.stdout.splitlines())
        return list(dict.fromkeys(name for name in names if re.fullmatch(r"[\w.-]+", name)))

    # --- ending -------------------------------------------------------------------------------------------

    def hold_command(self, watched: Sequence[Watched], *, held: bool) -> list[str] | None:
        """One scontrol for all of these; the tasks of an array that run already go on."""
        jobs = list(dict.fromkeys(one.native.job for one in watched if one.native is not None))
        return ["scontrol", "hold" if held else "release", ",".join(jobs)] if jobs else None

    def held(self, result: CommandResult) -> bool:
        """Whether all are held or released that have not ended."""
        if result.timed_out or result.returncode not in {0, 1}:
            return False
        return all(any(text in line for text in _OVER) for line in result.stderr.splitlines() if line.strip())

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One scancel for all of these; of unknown and finished jobs scancel says nothing."""
        words: list[str] = []
        for one in watched:
            if one.native is None:
                continue
            if one.native.offset is None:
                words.append(one.native.job)
            else:
                offset = one.native.offset
                words.append(f"{one.native.job}_[{ranges(t - offset for t in one.tasks)}]")
        return ["scancel", *words] if words else None


def answered(result: CommandResult) -> bool:
    """Slurm's commands say by their exit status whether they could ask."""
    return result.returncode == 0 and not result.timed_out


def not_sent(result: CommandResult) -> bool:
    """The command certainly did not reach the controller."""
    return result.returncode == 127 or any(text in result.stderr for text in (*NOT_SENT, *UNUSABLE))


def ranges(numbers: Iterable[int]) -> str:
    """`0-3,7` of rising numbers."""
    return ",".join(spans(numbers))


def parse_ranges(text: str) -> list[int]:
    """The numbers of `0-3,7`, `0-6:2` or `0-3,7%2`; what Slurm cut short (`...`) is left out."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            found += range(first, last + 1, max(1, step))
    return found


def queue_lines(stdout: str) -> list[Line]:
    """The jobs that squeue listed, less what sbatch refused; what is no such line is left out."""
    found: list[Line] = []
    for text in stdout.splitlines():
        fields = text.split(_UNIT)
        if len(fields) != len(_SQUEUE_FIELDS) or not fields[0].isdigit():
            continue
        base, index, state, name, reason, limit, owner = fields
        if state == "FAILED" and reason == "BadConstraints":
            continue
        told = answer(state, reason, limit if state == "TIMEOUT" else "")
        if index == "N/A":
            found.append(Line(base, None, name, told, owner=owner))
        elif index.isdigit():
            found.append(Line(base, (int(index),), name, told, owner=owner))
        else:  # cut short after 64 characters; of tasks that wait for different reasons all are named
            vague = "..." in index or _SEVERAL.search(reason) is not None
            found.append(Line(base, parse_ranges(index.strip("[]")), name, told, vague, owner))
    return found


def history_lines(stdout: str) -> list[Line]:
    """The jobs that sacct listed, less what sbatch refused (it uses an id and shows up as failed)."""
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
        status = code.partition(":")[0]
        if status.isdigit():
            told = replace(told, fault=FAULTS.get(int(status)))
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
