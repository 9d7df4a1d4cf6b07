"""PBS Professional and OpenPBS: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Torque has the same commands with other meanings (docs/schedulers.md); `is_torque` tells it apart.

The JSON of qstat is not used: the client of OpenPBS's main branch prints only the first of several jobs, and that of
23.06 prints what is no JSON for some values of a job's environment. The text is whole in every version.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, RefusedError, UsageError
from nsw.recipe.units import format_clock, format_memory
from nsw.schedulers import adapter
from nsw.schedulers.adapter import Adapter, Facts, Line, Queue, Refusal, Request, Watched, job_ids, task_words
from nsw.schedulers.model import FAULTS, Answer, Capabilities, Native, Phase, parse_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from nsw.plan.model import Job, Resources

_ID: Final = r"\d+(?:\[\])?\.[A-Za-z0-9][A-Za-z0-9._-]*"
# of one id: it is not in the queue (any more)
_ABSENT: Final = re.compile(
    r"^qstat: (?:Unknown Job Id (?P<unknown>\S+)|(?P<finished>\S+) Job has finished)", re.MULTILINE
)
_NO_HISTORY: Final = "not configured to maintain job history"
_LONGEST_ARRAY: Final = 10000  # unless the server says otherwise
_TORQUE_BEFORE: Final = 8
_THROTTLES_SINCE: Final = (20, 0)  # `-J X-Y%N`
# by names: qstat without ids would list everybody's jobs; `[]` of ids is no pattern of files (set -f)
_BY_NAME: Final = (
    'set -f; how=$1; shift; user=$(id -un) || exit; ids=; for name; do found=$(qselect $how -u "$user" -N "$name")'
    ' || exit; ids="$ids $found"; done; [ -z "${ids// /}" ] || exec qstat $how -t -f $ids'
)
_JOB: Final = re.compile(r"^Job Id: *(\S+)[^\S\n]*\n", re.MULTILINE)
# a value goes on in lines that begin with a tab
_ATTRIBUTE: Final = re.compile(
    r"^    (Job_Name|Job_Owner|job_state|substate|Exit_status|Stageout_status|comment|Hold_Types|depend|exec_host"
    r"|run_count|array|array_indices_submitted|array_indices_remaining|Resource_List\.walltime) = (.*(?:\n\t.*)*)",
    re.MULTILINE,
)
_PARTS: Final = re.compile(r"(?P<seq>\d+)(?:\[(?P<index>\d*)\])?(?P<server>\.\S+)?")
_TERMINATED: Final = re.compile(r" and terminated by (\S+)$")
_CANNOT: Final = "Can Never Run: "
_WAITS: Final = "Not Running: "
_DELETED: Final = "91"  # substate
_NONE_THERE: Final = re.compile(r"\bT: 0[a-z]*\)")  # of what it lacks the nodes together have none
# PBS prints its array's attributes for a subjob without a record: it was removed while it waited, or it ended where
# there is no history, and its own files tell how
_NO_RECORD: Final = Answer(
    Phase.ENDED, "the job was deleted", clean=True, cancelled=True,
    if_begun=Answer(Phase.ENDED, "it ended, and PBS has no record of how,"),
)  # fmt: skip

_OVER_TIME: Final = -29
# what pbs_mom writes into the output of a job that it ends for a limit -> the Exit_status of that
_LIMITS: Final = {"walltime": _OVER_TIME, "cput": -28, "ncpus": -24}
_KILLED: Final = re.compile(
    r"^=>> PBS: job killed: (?P<limit>walltime|cput|ncpus) \S+ exceeded limit (?P<most>\d+)", re.MULTILINE
)

# letters of Hold_Types
_HOLDS: Final = {
    "u": "held by the user: `qrls JOB` releases it",
    "o": "held by an operator, who can say why",
    "s": "held by PBS",
    "p": "held because of a bad password",
}
_TRIED_TOO_OFTEN = "too many failed attempts"


# exit statuses of qsub that are its verdict: of its own, of a hook (32), of the server (an error number modulo 256:
# 15004 and up, and from 15104 on those of select and place)
_VERDICT: Final = frozenset({1, 2, 3, 4, 5, 6, 7, 12, 32, 38, *range(148, 160), *range(164, 202), 227, 236, 241}) - {
    181,
    183,
    185,
}

_CHUNK = re.compile(r"[A-Za-z][\w.-]*=[\w.,-]+(:[A-Za-z][\w.-]*=[\w.,-]+)*")
_PLAIN = r"[A-Za-z0-9_.,:@%+/=*^~-]+"


class Pbs(Adapter):
    """PBS Professional 13 and later, and OpenPBS."""

    name = "PBS"
    marker = "#PBS"
    submit = "qsub"
    products = MappingProxyType({"OpenPBS or PBS Professional": "pbs_version"})
    relatives = MappingProxyType({"Torque": "^Version:"})
    queue = "qstat"
    submitted = f"({_ID})"
    asks = MappingProxyType({
        "-q": "queue", "-A": "account", "-N": "name", "-o": "output", "-e": "output", "-j": "output",
        "-k": "output", "-l": "",
    })  # fmt: skip
    flags = frozenset({"-V", "-X", "-h", "-I", "-z"})
    time_units = (1, 1)
    variables = "PBS_"
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
    cleared_variables = (
        "PBS_DPREFIX", "PBS_O_", "PBS_JOB", "PBS_ARRAY", "PBS_NODE", "PBS_TASK", "PBS_QUEUE", "PBS_ENVIRONMENT",
    )  # fmt: skip
    keys = frozenset({"queue", "account", "exclusive", "gres"})
    # the server may or may not have heard it
    passing = (
        "cannot connect to server|connection (refused|reset|timed out)|couldn't connect to cluster|no route to host"
        "|communication failure|end of file|expected reply not received|pbs_iff|premature end of message|munge"
        "|time-?out|server (is )?(busy|shutting down)|resource temporarily unavailable|fork: retry"
        "|no (free )?connections|internal server error"
    )
    full = "would exceed .*limit|maximum number of jobs already in queue"
    over = r"^q(?:del|hold|rls): (Unknown Job Id|Job has finished|Request invalid for state of job)"
    # such as the line of the site's cgroup hook
    memory = (
        r"^(?:=>> PBS: )?(.*(?:job killed: (?:v?mem|pmem)\b|oom-kill|out of memory|cgroup mem(?:sw)? limit exceeded)"
        r".*)$"
    )
    noise = r"^\s*$|^(usage:|\t|       qsub --version|qsub: $)"
    preamble = r"^(qsub|qstat|qdel|qselect): "
    sign_of_life = ("qstat", "-B")
    facts_command = ("qstat", "-B", "-f")
    # the queues with their limits, then the default one, then how many GPUs the nodes have
    queues_command = (
        "bash", "-c",
        "qstat -Qf && qstat -B -f && pbsnodes -a 2>/dev/null | grep resources_available.ngpus | sort -u",
    )  # fmt: skip

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `#PBS` lines."""
        if ":" in scratch:
            raise UsageError(
                f"scratch holds a colon, which PBS takes for the end of a host's name: {scratch}",
                hint="name a folder without one",
            )
        if not scratch.isascii():
            raise UsageError(
                f"the campaign's folder on the site has a character that qsub does not take in paths: {scratch!a}",
                hint="name a scratch folder of the site with ASCII characters only,"
                " or put campaigns elsewhere with --root",
            )
        needs = job.resources
        options = [option for line in extra for option in _directive_options(line)]
        requested = {name for letter, value in options if letter == "l" for name in _resource_names(value)}
        lines = [] if "select" in requested else [directive("l", f"select={select(needs)}")]
        if "place" not in requested and (placement := placement_words(needs)) is not None:
            lines.append(directive("l", f"place={placement}"))
        lines.append(directive("l", f"walltime={format_clock(job.walltime_s)}"))
        lines += [directive(letter, value) for letter, value in (("q", needs.queue), ("A", needs.account)) if value]
        return [*lines, directive("j", "oe"), directive("o", f"{scratch}/jobs/"), *extra]

    def options_in(self, line: str) -> list[tuple[str, str]]:
        """The options of a directive line with their values; each resource of -l by itself."""
        return [
            (option, part) for option, value in super().options_in(line)
            for part in (
                [value] if option != "-l" or value.startswith(("select=", "nodes=")) else re.split(r",(?=\w+=)", value)
            )
        ]  # fmt: skip

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for; of -l the walltime, and chunks that are all alike."""
        if option != "-l":
            return super().requested_keys(option, value)
        name, _, rest = value.partition("=")
        if name == "select" and "+" not in rest:
            return _parse_chunks(rest)
        if name == "nodes" and "+" not in rest:  # Torque's
            return _parse_chunks(re.sub(r":ppn=", ":ncpus=", re.sub(r":gpus=", ":ngpus=", rest.partition(",")[0])))
        if name in {"ngpus", "gpus"}:
            return [("node_gpus", rest)]
        if name in {"ncpus", "mem"}:  # the old words for a job of one chunk, which qsub takes beside no select
            return [("node_cpus" if name == "ncpus" else "memory", rest)]
        return {"walltime": [("time", rest)], "place": [("place", rest)] if rest == "scatter" else []}.get(name, [])

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option or attribute that is nsw's own.

        Raises:
            RefusedError: It sets the walltime.
        """
        refused = adapter.refused_options("pbs")
        for letter, value in _directive_options(line):
            reason = refused.get(letter)
            if letter == "W":
                attributes = (f"W {name}" for name in _resource_names(value))
                reason = next((refused[attribute] for attribute in attributes if attribute in refused), None)
            if letter == "l" and "walltime" in _resource_names(value):
                reason = "nsw requests the time that a job's runs need"
                raise adapter.refused_option("-l walltime", reason, "set resources.time, the time of one run")
            if reason:
                return f"-{letter}", reason
        return None

    def submit_command(self, request: Request) -> list[str]:
        """The qsub of a submission: an array when it holds several tasks. A script of PBS has no arguments.

        Without -f a qsub leaves a process behind that serves the next ones for a minute, and a killed nsw waits for it.
        """
        submission = request.submission
        tasks = submission.tasks
        variables = f"NSW_ATTEMPT={submission.attempt},NSW_TASK={tasks[0]}"
        words = ["qsub", "-f", "-N", submission.name, "-j", "oe", "-v", variables]
        if request.walltime_s is not None:
            words += ["-l", f"walltime={format_clock(request.walltime_s)}"]
        if request.after:
            words += ["-W", f"depend=afterok:{':'.join(request.after)}"]
        if len(tasks) == 1:
            return [*words, "-o", f"{request.log}.log", request.script]
        limit = f"%{request.limit}" if request.limit else ""
        return [*words, "-J", f"0-{len(tasks) - 1}{limit}", "-o", f"{request.log}.^array_index^.log", request.script]

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why qsub refused: its own verdict, the server's, or that of a site's hook."""
        if result.timed_out or result.returncode not in _VERDICT or self.parse_submitted(result) is not None:
            return None
        begin = re.search(r"^qsub: ", result.stderr, re.MULTILINE)  # before it a site's wrapper may have talked
        if self.transient(result) or begin is None:
            return None
        complaints = "; ".join(self.complaints(replace(result, stderr=result.stderr[begin.start() :])))
        return adapter.explain_refusal(complaints, adapter.known_refusals("pbs")) or Refusal(complaints)

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many subjobs of an array run at a time."""
        return ["qalter", "-W", f"max_run_subjobs={limit}", native.job]

    # --- asking -------------------------------------------------------------------------------------------

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """Those that are enabled and started; PBS does not say which nodes are whose, so GPUs are the most of any."""
        gpus = max((int(n) for n in re.findall(r"resources_available\.ngpus = (\d+)", result.stdout)), default=None)
        default = re.search(r"^ +default_queue = (\S+)", result.stdout, re.MULTILINE)
        queues = []
        for name, body in re.findall(r"^Queue: *(\S+)\n((?:[ \t]+.*\n?)*)", result.stdout, re.MULTILINE):
            attributes = dict(re.findall(r"^\s+([\w.]+) = (.*)$", body, re.MULTILINE))
            if attributes.get("enabled") == "True" == attributes.get("started"):
                longest = adapter.parse_time_limit(attributes.get("resources_max.walltime", ""))
                is_default = default is not None and default[1] == name
                queues.append(Queue(name, gpus, walltime=longest, is_default=is_default))
        return queues

    def parse_facts(self, result: CommandResult) -> Facts:
        """The settings that matter here. That there is no history qstat says itself, whatever the settings show.

        Raises:
            UsageError: It is Torque.
        """
        settings = dict(re.findall(r"^ +(\w+) = (.*)$", result.stdout, re.MULTILINE))
        version = settings.get("pbs_version", "").strip()
        if is_torque(f"Version: {version}"):
            raise UsageError(
                f"the server is Torque {version}: its commands have PBS's names but work differently",
                hint="docs/schedulers.md lists the differences; nsw knows PBS Professional and OpenPBS",
            )
        size = re.match(r"\d+", settings.get("max_array_size", ""))
        return Facts(
            version=version,
            longest_array=int(size[0]) if size else _LONGEST_ARRAY,
            history=settings.get("job_history_enable", "True").strip().lower() in {"true", "1"},
            throttle=version_of(version) >= _THROTTLES_SINCE,
        )

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One qstat for the jobs with ids, their subjobs included; by name where there are none."""
        if all(job.native for job in watched):
            return ["qstat", "-t", "-f", *job_ids(watched)] if watched else ["qstat", "-B"]
        return _command_by_names("", [job.name for job in watched])

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs, where each that was asked for is listed or said to be over.

        The exit status is that of one of several ids: it may be 35 or 153 beside good data.
        """
        if self.transient(result):
            return None
        lines = listed_lines(result.stdout)
        over = {match["unknown"] or match["finished"] for match in _ABSENT.finditer(result.stderr)}
        if result.returncode != 0 and not over:
            return None
        accounted = {line.job for line in lines} | over
        requested = [word for word in result.argv if re.fullmatch(_ID, word)]
        return lines if all(job in accounted for job in requested) else None

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """The same question with -x."""
        return [["qstat", "-x", "-t", "-f", *part] for part in adapter.split_words(job_ids(watched))]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """The jobs of these names, also those that are over."""
        return _command_by_names("-x", names)

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """As the queue."""
        return None if self.no_history(result) else self.parse_queue(result)

    def no_history(self, result: CommandResult) -> bool:
        """The server keeps none; it says so with exit status 0."""
        return _NO_HISTORY in result.stderr

    def killed_by_limit(self, log: str) -> Answer | None:
        """Memory, time or processors, as pbs_mom writes into the job's output."""
        if (found := super().killed_by_limit(log)) is not None:
            return found
        killed = _KILLED.search(log)
        if killed is None:
            return None
        number = _LIMITS[killed["limit"]]
        limit = format_clock(int(killed["most"])) if number == _OVER_TIME else ""
        return Answer(Phase.ENDED, _explain_exit_status(number, "", limit), over_time=number == _OVER_TIME)

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
        words = task_words(watched, subjob, word_per_range=True)
        return ["qdel", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """One qhold or qrls for all of these. Of an array the subjobs that run go on; a subjob alone cannot be held."""
        ids = job_ids(watched)
        return ["qhold" if hold else "qrls", *ids] if ids else None


def is_torque(version: str) -> bool:
    """Whether what `qstat --version` printed is Torque's: `Version: 6.1.2` and a commit; PBS says `pbs_version = `.

    Torque stopped at 6, and PBS Professional went on from 9.
    """
    match = re.search(r"^version: +(\d+)", version, re.MULTILINE | re.IGNORECASE)
    return "pbs_version" not in version and match is not None and int(match[1]) < _TORQUE_BEFORE


def version_of(text: str) -> tuple[int, ...]:
    """`23.06.06` in numbers; of what is none the newest, whose options are then tried."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", text)[:3])
    return numbers or (99,)


def _command_by_names(option: str, names: Iterable[str]) -> list[str]:
    return ["bash", "-c", _BY_NAME, "nsw", option, *names]


def array_of(job: str) -> tuple[str, int | None]:
    """`12[].server` and 3 of `12[3].server`; any other id as it is, with None."""
    match = _PARTS.fullmatch(job)
    if match is None or not match["index"]:
        return job, None
    return f"{match['seq']}[]{match['server'] or ''}", int(match["index"])


def subjob(array: str, index: str) -> str:
    """`12[3].server` of `12[].server`; the index may be a range."""
    return array.replace("[]", f"[{index}]", 1)


def listed_lines(stdout: str) -> list[Line]:
    """The jobs that `qstat -f` listed; an array's own line stands for the subjobs that have none of their own.

    A job without a state (an answer cut short) is left out. A subjob that waits says nothing of a hold of its array.
    """
    listed: list[Line] = []
    answers_of_held: dict[str, Answer] = {}
    for job, attributes in listed_jobs(stdout):
        lines = list(_queue_lines(job, attributes))
        if attributes["job_state"] == "H":
            answers_of_held |= {line.job: line.answer for line in lines if line.job == job}
        elif attributes["job_state"] == "Q":
            lines = [replace(line, answer=answers_of_held.get(line.job, line.answer)) for line in lines]
        listed += lines
    return listed


def listed_jobs(stdout: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Ids, each with those of its attributes that matter here. Text before the first job is passed over."""
    starts = list(_JOB.finditer(stdout))
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(stdout)
        attributes = {name: value.replace("\n\t", "") for name, value in _ATTRIBUTE.findall(stdout, start.end(), end)}
        if "job_state" in attributes:
            yield start[1], attributes


def _queue_lines(job: str, attributes: dict[str, str]) -> Iterator[Line]:
    name, owner = attributes.get("Job_Name"), attributes.get("Job_Owner", "").partition("@")[0] or None
    job_answer = answer(
        attributes["job_state"], attributes.get("substate", ""), attributes.get("Exit_status", ""),
        attributes.get("Stageout_status", ""), attributes.get("comment", ""), attributes.get("Hold_Types", ""),
        "depend" in attributes, attributes.get("Resource_List.walltime", ""),
    )  # fmt: skip
    array, index = array_of(job)
    if index is not None:
        if "run_count" not in attributes and "exec_host" not in attributes and job_answer.phase is not Phase.RUNNING:
            job_answer = _answer_without_record(attributes)
        yield Line(array, (index,), name, job_answer, owner=owner)
    elif "array" not in attributes and "[]" not in job:
        yield Line(job, None, name, job_answer, owner=owner)
    elif attributes["job_state"] in "FMX":
        submitted = parse_spans(attributes.get("array_indices_submitted", ""))
        yield Line(job, submitted, name, _answer_after_array(attributes), owner=owner)
    else:
        yield Line(job, parse_spans(attributes.get("array_indices_remaining", "")), name, job_answer, owner=owner)


def _answer_without_record(attributes: dict[str, str]) -> Answer:
    """The answer for a subjob without a record of its own: the exit status and substate are its array's."""
    if attributes["job_state"] in "FX":
        return _NO_RECORD
    return answer(attributes["job_state"], "", "", "", attributes.get("comment", ""), "", False, "")


def _answer_after_array(attributes: dict[str, str]) -> Answer:
    """The answer for subjobs without a record: the exit status of the array is not theirs."""
    if attributes.get("substate") == _DELETED:
        return Answer(Phase.ENDED, "the job was deleted", cancelled=True)
    if "Exit_status" not in attributes:
        return _never_began_answer(attributes.get("substate", ""), "depend" in attributes)
    return Answer(Phase.ENDED, "its array is over, and PBS has no record of this task")


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(
    state: str, substate: str, status: str, stageout: str, comment: str, hold: str, depends: bool, limit: str
) -> Answer:
    """What a job's attributes mean together; an unknown state is no statement.

    Args:
        state: The letter.
        substate: The number that says more; 91 is deleted.
        status: Exit_status, empty where there is none.
        stageout: Stageout_status, likewise.
        comment: What the scheduler says.
        hold: Letters of the holds.
        depends: Whether it depends on another job.
        limit: Its time limit, HH:MM:SS.
    """
    match state:
        case "Q" | "T" | "B":
            return _queued_answer(comment, status)
        case "H":
            return _held_answer(comment, hold, depends=depends)
        case "W":
            return Answer(Phase.QUEUED, "its start time lies ahead")
        case "R":
            return Answer(Phase.RUNNING)
        case "E":  # its exit status is there already, its output may not be
            return Answer(Phase.RUNNING, "its output is being copied back")
        case "S" | "U":
            return Answer(Phase.RUNNING, "suspended by the scheduler")
        case "F" | "X":
            return _ended_answer(substate, status, stageout, comment, limit, depends=depends)
        case "M":
            return Answer(Phase.UNKNOWN, "PBS moved it to another server, and this one does not see how it goes there")
    return Answer(Phase.UNKNOWN, f"PBS says {state}, which nsw does not know")


def _queued_answer(comment: str, status: str) -> Answer:
    if comment.startswith(_CANNOT):
        obstacle = comment.removeprefix(_CANNOT)
        if _NONE_THERE.search(obstacle):  # as after a restart of the server, before its nodes have reported
            reason = f"not running yet: PBS sees none of what it needs on any node now: {obstacle}"
            return Answer(Phase.QUEUED, reason)
        return Answer(
            Phase.QUEUED,
            f"it can never run: {obstacle}; ask for less in the recipe's resources, or name another queue",
            never=True,
        )
    if comment.startswith(_WAITS):
        return Answer(Phase.QUEUED, f"not running yet: {comment.removeprefix(_WAITS).rstrip('.')}")
    if status:
        return Answer(Phase.QUEUED, f"put back into the queue ({_explain_exit_status(int(status), '', '')})")
    return Answer(Phase.QUEUED)


def _held_answer(comment: str, hold: str, *, depends: bool) -> Answer:
    if _TRIED_TOO_OFTEN in comment:
        reason = f"PBS holds it: {comment}; report it to the site's support; `nsw retry` submits it again"
        return Answer(Phase.QUEUED, reason, never=True, may_run=True)
    if "s" in hold and depends:
        return Answer(Phase.QUEUED, "waits for the job that it depends on")
    holders = "; ".join(_HOLDS[letter] for letter in hold if letter in _HOLDS)
    return Answer(Phase.QUEUED, holders or "held", held="u" in hold)


def _ended_answer(substate: str, status: str, stageout: str, comment: str, limit: str, *, depends: bool) -> Answer:
    by = _TERMINATED.search(comment)
    if not re.fullmatch(r"-?\d+", status):
        return _never_began_answer(substate, depends)
    number = int(status)
    if by is not None or substate == _DELETED:
        return Answer(Phase.ENDED, f"the job was deleted by {by[1]}" if by else "the job was deleted", cancelled=True)
    if number == 0 and stageout == "0":
        return Answer(
            Phase.ENDED, "PBS could not deliver what the job printed; it is in the node's folder for undelivered files",
            clean=True,
        )  # fmt: skip
    if number == 0:
        return Answer(Phase.ENDED, clean=True)
    return Answer(
        Phase.ENDED, _explain_exit_status(number, comment, limit), fault=FAULTS.get(number),
        by_itself=number > 0, over_time=number == _OVER_TIME,
    )  # fmt: skip


def _never_began_answer(substate: str, depends: bool) -> Answer:
    """The answer for a job without an exit status; substate 92 means success elsewhere, and removal here."""
    if substate == _DELETED:
        return Answer(Phase.ENDED, "the job was deleted", cancelled=True)
    if depends:
        return Answer(Phase.ENDED, "it never began: the job that it depends on did not succeed, and PBS removed it")
    return Answer(Phase.ENDED, "it ended, and PBS has no exit status of it")


def _explain_exit_status(number: int, comment: str, limit: str) -> str:
    """The meaning of an exit status other than 0."""
    if (verdict := adapter.known_answers("pbs").get(str(number))) is not None:  # PBS's own, below zero
        words = adapter.limit_words(limit) if verdict.over_time else None
        return f"{verdict.reason} of {words}" if words else str(verdict.reason)
    if number < 0:
        return f"PBS ended the job (Exit_status {number}){f': {comment}' if comment else ''}"
    if number > 256:
        return f"the job failed: signal {number - 256} ended its script"
    if number > 128:
        return f"the job failed: exit status {number}, as after signal {number - 128}"
    return f"the job failed: exit status {number}"


def select(needs: Resources) -> str:
    """The chunks, one a node: `2:ncpus=8:ngpus=4:mem=32768kb:mpiprocs=4`.

    Raises:
        RefusedError: The GPUs cannot be divided equally among the nodes, or gres is no part of a chunk.
    """
    way_out = ", or write the chunks yourself: extra: ['#PBS -l select=...']"
    gpus = adapter.gpus_per_node(needs, "and all chunks of a PBS job are alike", way_out)
    if needs.gres is not None and not _CHUNK.fullmatch(needs.gres):
        raise RefusedError(
            f"gres is no part of a chunk of PBS: {needs.gres!r}",
            key="gres",
            hint="such as gres: 'ngpus=4:gputype=A100' or system=aurora",
        )
    processes = max(1, -(-needs.tasks // needs.nodes))
    memory = None if needs.memory_bytes is None else f"{format_memory(needs.memory_bytes).lower()}b"
    words = [
        str(needs.nodes),
        f"ncpus={processes * (needs.cpus_per_task or 1)}",
        needs.gres or (f"ngpus={gpus}" if gpus else None),  # a site's own words for GPUs take their place
        None if memory is None else f"mem={memory}",
        f"mpiprocs={processes}" if processes > 1 and not needs.one_a_node else None,
    ]
    return ":".join(word for word in words if word is not None)


def _parse_chunks(text: str) -> list[tuple[str, str]]:
    """Parse the resources of chunks such as `2:ncpus=8:ngpus=4:gputype=A100:mem=32gb:mpiprocs=4`."""
    count, *parts = text.split(":")
    resources = dict(part.partition("=")[::2] for part in parts)
    if not count.isdecimal() or not all(resources.values()):
        return []
    names = {"mpiprocs": "per_node", "ncpus": "node_cpus", "ngpus": "node_gpus", "mem": "memory"}
    keys = [("nodes", count), *((names[name], value) for name, value in resources.items() if name in names)]
    unknown_resources = [f"{name}={value}" for name, value in resources.items() if name not in names]
    if unknown_resources and "ngpus" in resources:
        return [*keys, ("gres", ":".join(["ngpus={{ gpus }}", *unknown_resources]))]
    return [*keys, ("chunk", ":".join(unknown_resources))] if unknown_resources else keys


def placement_words(needs: Resources) -> str | None:
    """How the chunks are placed: each on a node of its own. None for the queue's default."""
    words = [*(["scatter"] if needs.nodes > 1 else []), *(["exclhost"] if needs.exclusive else [])]
    return ":".join(words) or None


def directive(letter: str, value: str) -> str:
    """One line; the value is quoted as qsub's own parser reads quotes: it has no escapes."""
    return f"#PBS -{letter} {adapter.directive_value(letter, value, _PLAIN, 'PBS')}"


def _resource_names(value: str) -> list[str]:
    return [part.partition("=")[0].strip() for part in value.split(",")]


def _directive_options(line: str) -> list[tuple[str, str]]:
    """Letters and values of a directive's options."""
    if not line.startswith("#PBS"):
        return []
    return re.findall(r"(?:^|\s)-([A-Za-z])\s*((?:\"[^\"]*\"|'[^']*'|[^\s\"'])*)", line[4:])
