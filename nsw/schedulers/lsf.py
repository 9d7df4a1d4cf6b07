"""IBM Spectrum LSF: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Written from the vendor's manual pages and not yet run against a real server (docs/schedulers.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.errors import RefusedError, UsageError
from nsw.recipe.units import format_memory
from nsw.schedulers.adapter import Adapter, Capabilities, Facts, Line, Refusal
from nsw.schedulers.lsf_answers import DELIMITER, FIELDS, ended_lines, listed_lines
from nsw.schedulers.submission_ids import spans
from nsw.schedulers.unsupported_keys import own_lines
from nsw.scripts.quoting import directive_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job, Resources
    from nsw.schedulers.adapter import Request, Watched
    from nsw.schedulers.submission_ids import Native

_SUBMITTED: Final = re.compile(r"^Job <(\d+)> is submitted to (?:default )?queue <[^>]+>\.", re.MULTILINE)
_NOT_SUBMITTED: Final = "Job not submitted."  # how bsub ends a refusal
_ABSENT: Final = re.compile(r"^Job <(\d+)(?:\[\d+\])?> is not found", re.MULTILINE)
_NONE: Final = re.compile(r"^No (?:\w+ )?job found|^No matching job found|^Job <[^>]*> is not found", re.MULTILINE)
_OVER: Final = re.compile(
    r"^Job <[^>]+>: (?:Job has already finished|No matching job found|No matching job element)|^Job <[^>]+> is being"
)
_TRANSIENT: Final = re.compile(
    r"LSF is down|cannot connect|connection (?:refused|reset|timed out)|daemon not responding|still trying"
    r"|communication time ?out|please wait|failed in an lsf library call|not ready yet|library call.*socket"
    r"|server (?:host )?is (?:busy|down)|internal library error|temporarily unavailable",
    re.IGNORECASE,
)
_FULL: Final = re.compile(
    r"pending job threshold|job limit (?:is |has been )?reached|reached (?:its|the) .*job limit", re.IGNORECASE
)
# bstop suspends what runs: a job that began a moment ago is let go on at once
_HOLD: Final = (
    'bstop "$@"; code=$?; bjobs -noheader -o "jobid jobindex stat" "$@" 2>/dev/null | while read -r job index stat; do'
    ' [ "$index" = 0 ] || job="$job[$index]"; [ "$stat" != USUSP ] || bresume "$job" >/dev/null; done; exit "$code"'
)
_DENIED: Final = re.compile(r"permission|denied|not authorized", re.IGNORECASE)
_LONGEST_LIST: Final = 200  # ids on one command line
_LONGEST_ARRAY: Final = 1000  # MAX_JOB_ARRAY_SIZE unless the cluster says otherwise
_BY_NAME: Final = 'code=0; for name; do bhist -a -n 0 -l -J "$name" || code=$?; done; exit "$code"'
# what bsub refuses -> the key of `resources` that asks for it, and what to do; the first that fits counts
_REFUSALS: Final = (
    (r"no such queue|use the queue|queue is closed", "queue", "`bqueues -u $USER` lists the queues that you may use"),
    (r"run ?(?:time)? ?limit|RUNLIMIT", "time", "`bqueues -l QUEUE` lists RUNLIMIT"),
    (r"project", "account", "set account in the recipe's resources or for the site"),
    (r"reservation", "reservation", "`brsvs` lists the reservations"),
    (r"gpu", "gpus", "`bhosts -gpu` lists what the hosts have"),
    (r"memory|MEMLIMIT", "memory", "`bqueues -l QUEUE` lists MEMLIMIT"),
    (r"too many (?:processors|tasks)|PROCLIMIT|TASKLIMIT", "tasks", "`bqueues -l QUEUE` lists TASKLIMIT"),
    (r"array", None, "lower limits.max_array of the site"),
    (r"queue", "queue", "`bqueues -u $USER` lists the queues that you may use"),
    (r"resource requirement|bad argument|illegal option", "extra", "see the head of the job script: `nsw render`"),
)
# options that a line of the recipe's own may not have, each with the reason
_LOGS: Final = "`nsw logs` prints the job's output, which it looks for where nsw told LSF to write it"
_REFUSED: Final = {
    "J": "nsw finds its jobs by the names that it gives them, and makes the arrays itself",
    "Jd": "it holds the campaign's id",
    "o": _LOGS, "oo": _LOGS, "e": _LOGS, "eo": _LOGS,
    "env": "nsw's own -env would replace it; write the variables into the recipe's app.env",
    "w": "nsw sets the dependencies itself",
    "K": "bsub would wait for the job's end, and nothing else be submitted",
    "H": "the job would never start; `nsw run` holds nothing back",
    "W": "nsw requests the time that a job's runs need: set resources.time, the time of one run",
    "Zs": "nsw passes the script to bsub itself", "i": "the job script is what bsub reads",
}  # fmt: skip
_INTERACTIVE: Final = "an interactive job would wait for a terminal"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.,:@%+/=^~-]+")


class Lsf(Adapter):
    """IBM Spectrum LSF 10.1 and later."""

    name = "LSF"
    marker = "#BSUB"
    submit = "bsub"
    queue = "bjobs"
    history = "bhist"
    capabilities = Capabilities(
        arrays=True, first_index=1, restarts="flagged", script_on_stdin=True, dependencies=True, throttle=True,
        hold=True, slow_cancel_s=60, submissions_per_command=20, arguments=False, time_step_s=60,
    )  # fmt: skip
    # formats, defaults of bsub and quiet answers; the installation's LSF_ENVDIR and the like are not among them
    cleared = ("LSB_", "BSUB_")
    keys = frozenset({"queue", "account", "reservation", "exclusive"})

    # --- submitting ---------------------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The `#BSUB` lines."""
        if re.search(r"%[IJ]", scratch):
            raise UsageError(
                f"scratch holds %I or %J, which LSF replaces by numbers: {scratch}", hint="name a folder without it"
            )
        needs = job.resources
        extra = [_extra(line) for line in own_lines(self, needs.extra)]
        return [*_lines(needs), _directive("W", str(_minutes(job.walltime_s))), *extra]

    def submit_command(self, request: Request) -> list[str]:
        """The bsub of a submission, which reads the script from its standard input."""
        submission = request.submission
        tasks = submission.tasks
        name, log = submission.name, f"{request.log}.log"
        if len(tasks) > 1:
            limit = f"%{request.throttle}" if request.throttle is not None and request.throttle < len(tasks) else ""
            name = f"{name}[{','.join(spans(task - tasks[0] + 1 for task in tasks))}]{limit}"
            log = f"{request.log}.%I.log"
        words = ["bsub", "-J", name, "-o", log]
        words += ["-env", f"all, NSW_ATTEMPT={submission.attempt}, NSW_TASK={tasks[0]}"]
        if request.comment:
            words += ["-Jd", request.comment]
        if request.walltime_s is not None:
            words += ["-W", str(_minutes(request.walltime_s))]
        if request.after is not None:  # -ti: it ends when its dependency can never be met
            words += ["-w", f"done({request.after})", "-ti"]
        return words

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The id in `Job <12> is submitted to queue <normal>.`, among whatever an esub prints."""
        found = set(_SUBMITTED.findall(result.stdout))
        return found.pop() if len(found) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why bsub refused: it then ends with "Job not submitted."; whatever else is no refusal that is certain."""
        unsure = result.timed_out or self.transient(result) or result.returncode == 0
        if unsure or _NOT_SUBMITTED not in result.stderr or self.parse_submitted(result) is not None:
            return None
        said = "; ".join(self.complaints(result))
        for pattern, key, hint in _REFUSALS:
            if re.search(pattern, said, re.IGNORECASE):
                return Refusal(said, key, hint)
        return Refusal(said)

    def is_full(self, result: CommandResult) -> bool:
        """Refused only because enough jobs wait already."""
        certain = _NOT_SUBMITTED in result.stderr and not result.timed_out and not self.transient(result)
        return certain and _FULL.search(result.stderr) is not None

    def transient(self, result: CommandResult) -> bool:
        """The server may or may not have heard it."""
        return result.timed_out or (result.returncode != 0 and _TRANSIENT.search(result.stderr) is not None)

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong, without the sentence that ends each refusal."""
        lines = [line.replace(_NOT_SUBMITTED, "").strip() for line in result.stderr.splitlines()]
        return list(dict.fromkeys(line for line in lines if line))

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many elements of an array run at a time."""
        return ["bmod", "-J", f"%{limit}", native.job]

    # --- asking -------------------------------------------------------------------------------------------

    def sign_of_life_command(self) -> list[str]:
        """The cluster's name and version."""
        return ["lsid"]

    def facts_command(self) -> list[str]:
        """The cluster's batch parameters."""
        return ["bparams", "-l"]

    def parse_facts(self, result: CommandResult) -> Facts:
        """How long an array may be. bhist reads the cluster's own log, which is always there."""
        size = re.search(r"MAX_JOB_ARRAY_SIZE\s*=\s*(\d+)", result.stdout)
        return Facts(longest_array=int(size[1]) if size else _LONGEST_ARRAY, history=True)

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One bjobs, also for jobs that ended a moment ago (-a): those with ids, else all of the user's."""
        ids = _ids(watched)
        some = ids if watched and all(one.native for one in watched) and len(ids) <= _LONGEST_LIST else []
        return ["bjobs", "-a", "-noheader", "-o", f"{' '.join(FIELDS)} delimiter='{DELIMITER}'", *some]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs. bjobs exits with 255 when one of several is not found, and names that one."""
        if result.timed_out or self.transient(result):
            return None
        lines = listed_lines(result.stdout)
        if result.returncode != 0 and not _NONE.search(result.stderr):
            return None
        known = {line.job for line in lines} | set(_ABSENT.findall(result.stderr))
        asked = [word for word in result.argv if word.isdigit()]
        return lines if all(job in known for job in asked) else None

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """Bhist over all of its log files."""
        ids = _ids(watched)
        some = (ids[at : at + _LONGEST_LIST] for at in range(0, len(ids), _LONGEST_LIST))
        return [["bhist", "-a", "-n", "0", "-l", *part] for part in some]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """A bhist for each name: it takes only one."""
        return ["bash", "-c", _BY_NAME, "nsw", *names]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """What bhist knows of jobs, whether they ended or not."""
        if result.timed_out or self.transient(result):
            return None
        if result.returncode != 0 and not _NONE.search(result.stderr):
            return None
        return ended_lines(result.stdout)

    def memory_words(self, log: str) -> str | None:
        """The line of LSF's report, which it appends to the job's output."""
        match = re.search(r"^TERM_MEMLIMIT: .*$|^.*(?:out of memory|oom-kill).*$", log, re.MULTILINE | re.IGNORECASE)
        return match and match[0].strip()

    # --- names and ending ---------------------------------------------------------------------------------

    def job_of(self, native: Native, task: int) -> str:
        """`12`, or `12[3]` of an array."""
        index = native.index(task)
        return native.job if index is None else f"{native.job}[{index}]"

    def parse_job(self, text: str) -> tuple[str, int | None]:
        """The id and array index, as the job script writes them."""
        match = re.fullmatch(r"(\d+)\[(\d+)\]", text)
        return (match[1], int(match[2])) if match else (text, None)

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One bkill for all of these."""
        words = _words(watched)
        return ["bkill", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, held: bool) -> list[str] | None:
        """One bstop for all of these, of an array only the elements named, which wait; or one bresume."""
        words = _words(watched)
        if not words:
            return None
        return ["bash", "-c", _HOLD, "nsw", *words] if held else ["bresume", *words]

    def held(self, result: CommandResult) -> bool:
        """Whether LSF answered for each job; the ones it could not change have ended, or are as they should be."""
        if result.timed_out or self.transient(result) or _DENIED.search(result.stderr):
            return False
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        return result.returncode == 0 or (bool(lines) and all(line.startswith("Job <") for line in lines))

    def cancelled(self, result: CommandResult) -> bool:
        """All of it is ending, or was over already."""
        if result.timed_out:
            return False
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        return result.returncode == 0 or (bool(lines) and all(_OVER.match(line) for line in lines))


def _ids(watched: Iterable[Watched]) -> list[str]:
    return list(dict.fromkeys(one.native.job for one in watched if one.native))


def _words(watched: Iterable[Watched]) -> list[str]:
    """`12`, or `12[1-3,5]` with the elements of an array that are named."""
    words = []
    for one in watched:
        if one.native is not None:
            indices = [index for task in one.tasks if (index := one.native.index(task)) is not None]
            words.append(f"{one.native.job}[{','.join(spans(indices))}]" if indices else one.native.job)
    return words


def _minutes(seconds: int) -> int:
    """LSF counts time limits in minutes."""
    return max(1, -(-seconds // 60))


def _lines(needs: Resources) -> list[str]:
    """What the job needs. A slot is a core; memory and GPUs are counted by host."""
    if needs.gpus % needs.nodes:
        raise RefusedError(
            f"{needs.gpus} GPUs cannot be divided equally among {needs.nodes} hosts, and LSF counts them by host",
            key="gpus",
            hint=f"such as gpus: {-(-needs.gpus // needs.nodes) * needs.nodes}, or write them yourself:"
            " extra: ['#BSUB -gpu ...']",
        )
    processes = max(1, -(-needs.tasks // needs.nodes))
    slots = processes * (needs.cpus_per_task or 1)
    lines = [_directive("n", str(slots * needs.nodes)), _directive("R", f"span[ptile={slots}]")]
    if needs.memory_bytes is not None:
        size = f"{format_memory(needs.memory_bytes)}B"
        lines += [_directive("R", f"rusage[mem={size}]"), _directive("M", size)]
    if needs.gpus:
        lines.append(_directive("gpu", f"num={needs.gpus // needs.nodes}"))
    named = (("q", needs.queue), ("P", needs.account), ("U", needs.reservation))
    lines += [_directive(option, value) for option, value in named if value]
    return [*lines, *(["#BSUB -x"] if needs.exclusive else [])]


def _directive(option: str, value: str) -> str:
    return f"#BSUB -{option} {directive_value(option, value, _PLAIN, 'bsub')}"


def _extra(line: str) -> str:
    if "\n" in line or "\r" in line:
        raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
    text = line if line.startswith("#") else f"#BSUB {line}"
    if text.startswith("#BSUB"):
        for option in re.findall(r"(?:^|\s)-([A-Za-z]+)", re.sub(r"\"[^\"]*\"|'[^']*'", "", text)):
            if why := _REFUSED.get(option) or (_INTERACTIVE if option[0] == "I" else None):
                raise RefusedError(f"resources.extra cannot hold -{option}: {why}", key="extra")
    return text
