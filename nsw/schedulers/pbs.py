"""PBS Professional and OpenPBS: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Torque has the same commands with other meanings (docs/schedulers.md); `is_torque` tells it apart.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import UsageError
from nsw.recipe.units import clock
from nsw.schedulers.adapter import Adapter, Capabilities, Facts, Queue, Refusal, told_limit
from nsw.schedulers.pbs_answers import array_of, listed_lines, subjob
from nsw.schedulers.pbs_meanings import FULL, REFUSALS, TRANSIENT, VERDICT
from nsw.schedulers.submission_ids import spans
from nsw.schedulers.unsupported_keys import own_lines
from nsw.scripts.pbs import directives

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job
    from nsw.schedulers.adapter import Line, Request, Watched
    from nsw.schedulers.submission_ids import Native

_ID: Final = re.compile(r"\d+(?:\[\])?\.[A-Za-z0-9][A-Za-z0-9._-]*")
# of one id: it is not in the queue (any more)
_ABSENT: Final = re.compile(
    r"^qstat: (?:Unknown Job Id (?P<unknown>\S+)|(?P<finished>\S+) Job has finished)", re.MULTILINE
)
_OVER: Final = re.compile(r"^q(?:del|hold|rls): (Unknown Job Id|Job has finished|Request invalid for state of job)")
_NO_HISTORY: Final = "not configured to maintain job history"
_USAGE: Final = re.compile(r"^(usage:|\t|       qsub --version|qsub: $)")
_LONGEST_LIST: Final = 200  # ids on one command line
_LONGEST_ARRAY: Final = 10000  # unless the server says otherwise
_TORQUE_BEFORE: Final = 8
_THROTTLES_SINCE: Final = (20, 0)  # `-J X-Y%N`
# by names: qstat without ids would list everybody's jobs; `[]` of ids is no pattern of files (set -f)
_BY_NAME: Final = (
    'set -f; how=$1; shift; user=$(id -un) || exit; ids=; for name; do found=$(qselect $how -u "$user" -N "$name")'
    ' || exit; ids="$ids $found"; done; [ -z "${ids// /}" ] || exec qstat $how -t -f $ids'
)


class Pbs(Adapter):
    """PBS Professional 13 and later, and OpenPBS."""

    name = "PBS"
    marker = "#PBS"
    submit = "qsub"
    products = MappingProxyType({"OpenPBS or PBS Professional": "pbs_version"})
    relatives = MappingProxyType({"Torque": "^Version:"})
    queue = "qstat"
    history = "qstat -x"
    vanished = (
        "PBS deleted the job without a record, as a routing queue does when no queue behind it accepts the job"
        " (`qstat -Qf QUEUE` lists their limits),"
    )
    capabilities = Capabilities(
        arrays=True, contiguous=True, longest_name=15, restarts="flagged", dependencies=True, throttle=True,
        hold=True, slow_cancel_s=15, submissions_per_command=50, arguments=False,
    )  # fmt: skip
    # what a job that nsw is started in left, and what turns #PBS lines off; those that say which server stay
    cleared = ("PBS_DPREFIX", "PBS_O_", "PBS_JOB", "PBS_ARRAY", "PBS_NODE", "PBS_TASK", "PBS_QUEUE", "PBS_ENVIRONMENT")
    keys = frozenset({"queue", "account", "exclusive", "gres"})

    # --- submitting ---------------------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The `#PBS` lines."""
        extra = tuple(own_lines(self, job.resources.extra))
        return directives(replace(job, resources=replace(job.resources, extra=extra)), scratch)

    def submit_command(self, request: Request) -> list[str]:
        """The qsub of a submission: an array when it holds several tasks. A script of PBS has no arguments.

        Without -f a qsub leaves a process behind that serves the next ones for a minute, and a killed nsw waits for it.
        """
        submission = request.submission
        tasks = submission.tasks
        words = [
            "qsub",
            "-f",
            "-N",
            submission.name,
            "-j",
            "oe",
            "-v",
            f"NSW_ATTEMPT={submission.attempt},NSW_TASK={tasks[0]}",
        ]
        if request.walltime_s is not None:
            words += ["-l", f"walltime={clock(request.walltime_s)}"]
        if request.after is not None:
            words += ["-W", f"depend=afterok:{request.after}"]
        if len(tasks) == 1:
            return [*words, "-o", f"{request.log}.log", request.script]
        limit = f"%{request.throttle}" if request.throttle is not None and request.throttle < len(tasks) else ""
        return [*words, "-J", f"0-{len(tasks) - 1}{limit}", "-o", f"{request.log}.^array_index^.log", request.script]

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The id that qsub printed, `12.server` or `12[].server`, among whatever a site's wrapper says."""
        found = {line.strip() for line in result.stdout.splitlines() if _ID.fullmatch(line.strip())}
        return found.pop() if len(found) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why qsub refused: its own verdict, the server's, or that of a site's hook."""
        if result.timed_out or result.returncode not in VERDICT or self.parse_submitted(result) is not None:
            return None
        begin = re.search(r"^qsub: ", result.stderr, re.MULTILINE)  # before it a site's wrapper may have talked
        if self.transient(result) or begin is None:
            return None
        said = "; ".join(self.complaints(replace(result, stderr=result.stderr[begin.start() :])))
        for known in REFUSALS:
            if known.pattern.search(said):
                return Refusal(said, known.key, known.hint)
        return Refusal(said)

    def is_full(self, result: CommandResult) -> bool:
        """Refused only because enough jobs are in the queue already."""
        certain = result.returncode in VERDICT and not result.timed_out and not self.transient(result)
        return certain and FULL.search(result.stderr) is not None

    def transient(self, result: CommandResult) -> bool:
        """A fault of the moment, which says nothing of the job."""
        return result.timed_out or TRANSIENT.search(result.stderr) is not None

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong, each once, without its name and without its usage."""
        lines = [line for line in result.stderr.splitlines() if line.strip() and not _USAGE.match(line)]
        return list(dict.fromkeys(re.sub(r"^(qsub|qstat|qdel|qselect): ", "", line).strip() for line in lines))

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many subjobs of an array run at a time."""
        return ["qalter", "-W", f"max_run_subjobs={limit}", native.job]

    # --- asking -------------------------------------------------------------------------------------------

    def sign_of_life_command(self) -> list[str]:
        """What every user may ask and costs little: the server's line."""
        return ["qstat", "-B"]

    def queues_command(self) -> list[str]:
        """The queues with their limits, then the default one, then how many GPUs the nodes have."""
        gpus = "pbsnodes -a 2>/dev/null | grep resources_available.ngpus | sort -u"
        return ["bash", "-c", f"qstat -Qf && qstat -B -f && {gpus}"]

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """Those that are enabled and started; PBS does not say which nodes are whose, so GPUs are the most of any."""
        gpus = max((int(n) for n in re.findall(r"resources_available\.ngpus = (\d+)", result.stdout)), default=None)
        default = re.search(r"^ +default_queue = (\S+)", result.stdout, re.MULTILINE)
        found = []
        for name, body in re.findall(r"^Queue: *(\S+)\n((?:[ \t]+.*\n?)*)", result.stdout, re.MULTILINE):
            said = dict(re.findall(r"^\s+([\w.]+) = (.*)$", body, re.MULTILINE))
            if said.get("enabled") == "True" == said.get("started"):
                longest = told_limit(said.get("resources_max.walltime", ""))
                is_default = default is not None and default[1] == name
                found.append(Queue(name, gpus, walltime=longest, is_default=is_default))
        return found

    def facts_command(self) -> list[str]:
        """The server's settings."""
        return ["qstat", "-B", "-f"]

    def parse_facts(self, result: CommandResult) -> Facts:
        """The settings that matter here. That there is no history qstat says itself, whatever the settings show.

        Raises:
            UsageError: It is Torque.
        """
        said = dict(re.findall(r"^ +(\w+) = (.*)$", result.stdout, re.MULTILINE))
        version = said.get("pbs_version", "").strip()
        if is_torque(f"Version: {version}"):
            raise UsageError(
                f"the server is Torque {version}: its commands have PBS's names but work differently",
                hint="docs/schedulers.md lists the differences; nsw knows PBS Professional and OpenPBS",
            )
        size = re.match(r"\d+", said.get("max_array_size", ""))
        return Facts(
            version=version,
            longest_array=int(size[0]) if size else _LONGEST_ARRAY,
            history=said.get("job_history_enable", "True").strip().lower() in {"true", "1"},
            throttle=version_of(version) >= _THROTTLES_SINCE,
        )

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One qstat for the jobs with ids, their subjobs included; by name where there are none."""
        if all(one.native for one in watched):
            return ["qstat", "-t", "-f", *_ids(watched)] if watched else ["qstat", "-B"]
        return _by_name("", [one.name for one in watched])

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs, where each that was asked for is listed or said to be over.

        The exit status is that of one of several ids: it may be 35 or 153 beside good data.
        """
        return _told(result)

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """The same question with -x."""
        ids = _ids(watched)
        some = (ids[at : at + _LONGEST_LIST] for at in range(0, len(ids), _LONGEST_LIST))
        return [["qstat", "-x", "-t", "-f", *part] for part in some]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """The jobs of these names, also those that are over."""
        return _by_name("-x", names)

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """As the queue."""
        return None if self.no_history(result) else _told(result)

    def no_history(self, result: CommandResult) -> bool:
        """The server keeps none; it says so with exit status 0."""
        return _NO_HISTORY in result.stderr

    def memory_words(self, log: str) -> str | None:
        """The line of a job's output that tells of too much memory, such as that of the site's cgroup hook."""
        match = re.search(
            r"^.*(?:job killed: (?:v?mem|pmem)\b|oom-kill|out of memory|cgroup mem(?:sw)? limit exceeded).*$", log,
            re.MULTILINE | re.IGNORECASE,
        )  # fmt: skip
        return match and match[0].removeprefix("=>> PBS: ").strip()

    # --- names --------------------------------------------------------------------------------------------

    def job_of(self, native: Native, task: int) -> str:
        """`12.server`, or `12[3].server` of an array."""
        index = native.index(task)
        return native.job if index is None else subjob(native.job, str(index))

    def parse_job(self, text: str) -> tuple[str, int | None]:
        """The id and array index of PBS_JOBID."""
        return array_of(text)

    # --- ending -------------------------------------------------------------------------------------------

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One qdel for all of these; of an array the ranges that hold the named tasks."""
        words: list[str] = []
        for one in watched:
            if one.native is None:
                continue
            indices = [index for task in one.tasks if (index := one.native.index(task)) is not None]
            words += [subjob(one.native.job, span) for span in spans(indices)] if indices else [one.native.job]
        return ["qdel", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, held: bool) -> list[str] | None:
        """One qhold or qrls for all of these. Of an array the subjobs that run go on; a subjob alone cannot be held."""
        ids = _ids(watched)
        return ["qhold" if held else "qrls", *ids] if ids else None

    def held(self, result: CommandResult) -> bool:
        """Whether all are held or released that have not ended."""
        return _but_those_over(result)

    def cancelled(self, result: CommandResult) -> bool:
        """All of it is ending, or was over already: qdel says so of each, with an exit status."""
        return _but_those_over(result)


def is_torque(version: str) -> bool:
    """Whether what `qstat --version` printed is Torque's: `Version: 6.1.2` and a commit; PBS says `pbs_version = `.

    Torque stopped at 6, and PBS Professional went on from 9.
    """
    match = re.search(r"^version: +(\d+)", version, re.MULTILINE | re.IGNORECASE)
    return "pbs_version" not in version and match is not None and int(match[1]) < _TORQUE_BEFORE


def version_of(text: str) -> tuple[int, ...]:
    """`23.06.06` in numbers; of what is none the newest, whose options are then tried."""
    found = tuple(int(number) for number in re.findall(r"\d+", text)[:3])
    return found or (99,)


def _ids(watched: Iterable[Watched]) -> list[str]:
    return list(dict.fromkeys(one.native.job for one in watched if one.native))


def _but_those_over(result: CommandResult) -> bool:
    """Whether a command changed all of its jobs but those that had ended."""
    if result.timed_out:
        return False
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    return result.returncode == 0 or (bool(lines) and all(_OVER.match(line) for line in lines))


def _by_name(how: str, names: Iterable[str]) -> list[str]:
    return ["bash", "-c", _BY_NAME, "nsw", how, *names]


def _told(result: CommandResult) -> list[Line] | None:
    """The lines of a qstat; None when it said nothing of a job that it was asked for."""
    if result.timed_out or TRANSIENT.search(result.stderr):
        return None
    lines = listed_lines(result.stdout)
    over = {match["unknown"] or match["finished"] for match in _ABSENT.finditer(result.stderr)}
    if result.returncode != 0 and not over:
        return None
    known = {line.job for line in lines} | over
    asked = [word for word in result.argv if _ID.fullmatch(word)]
    return lines if all(job in known for job in asked) else None
