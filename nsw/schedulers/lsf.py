"""IBM Spectrum LSF: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Written from the vendor's manual pages and not yet run against a real server (docs/schedulers.md).
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, UsageError
from nsw.recipe.units import format_memory
from nsw.schedulers import adapter
from nsw.schedulers.adapter import Facts, Line, Refusal, Watched, job_ids, known_answers, split_words, task_words
from nsw.schedulers.model import Answer, Capabilities, Native, Phase, ended_by_itself, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Job, Resources

_NOT_SUBMITTED: Final = "Job not submitted."  # how bsub ends a refusal
_ABSENT: Final = re.compile(r"^Job <(\d+)(?:\[\d+\])?> is not found", re.MULTILINE)
_NO_JOB: Final = re.compile(r"^No (?:\w+ )?job found|^No matching job found|^Job <[^>]*> is not found", re.MULTILINE)
# bstop suspends what runs: a job that began a moment ago is let go on at once
_HOLD: Final = (
    'bstop "$@"; code=$?; bjobs -noheader -o "jobid jobindex stat" "$@" 2>/dev/null | while read -r job index stat; do'
    ' [ "$index" = 0 ] || job="$job[$index]"; [ "$stat" != USUSP ] || bresume "$job" >/dev/null; done; exit "$code"'
)
_LONGEST_ARRAY: Final = 1000  # MAX_JOB_ARRAY_SIZE unless the cluster says otherwise
_BY_NAME: Final = 'code=0; for name; do bhist -a -n 0 -l -J "$name" || code=$?; done; exit "$code"'
# options that a line of the recipe's own may not have, with the reason where there is another than that nsw sets them
_OPTIONS: Final = re.compile("J|Jd|oo?|eo?|w|Zs|i|env|K|H|W|I.*")
_REASONS: Final = {
    "env": "nsw's own -env would replace it; write the variables into the recipe's app.env",
    "K": "bsub would wait for the job's end, and nsw could submit nothing else",
    "H": "the job would never start; `nsw run` holds nothing back",
    "I": "an interactive job would wait for a terminal",
    "W": "nsw requests the time that a job's runs need: set resources.time, the time of one run",
}
_PLAIN: Final = r"[A-Za-z0-9_.,:@%+/=^~-]+"
_FIELDS: Final = ("jobid", "jobindex", "stat", "exit_code", "name", "user", "exit_reason", "pend_reason")
_DELIMITER: Final = "^"  # which the last field, free text, may hold

# why LSF ended a job: the key word of exit_reason -> what it means; of others LSF's own words tell
_CANCELLED: Final = re.compile(r"TERM_(?:FORCE_)?(OWNER|ADMIN)")
_NEVER: Final = re.compile(r"dependency condition invalid or never satisfied", re.IGNORECASE)
_TERM: Final = re.compile(r"\bTERM_[A-Z_]+")
_JOB: Final = re.compile(r"^Job <(\d+)(?:\[(\d+)\])?>(?:, Job Name <([^>]*)>)?(.*(?:\n(?!Job <\d).*)*)", re.MULTILINE)
# an event of bhist, named by the state that a job then has
_EVENT: Final = re.compile(
    r"^\w{3} \w{3} +\d+ [\d:]+(?: \d{4})?: (?:(?P<RUN>Starting|Started|Dispatched)\b"
    r"|(?P<PEND>Pending: |Requeued|Job has been requeued)|(?P<DONE>Done successfully)"
    r"|(?P<EXIT>Exited(?: with exit code (?P<code>\d+)| by signal (?P<signal>\d+))?)"
    r"|Signal <\w+> requested by user or administrator <(?P<killed>[^>]*)>)",
    re.MULTILINE,
)
_WRAPPED: Final = re.compile(r"\n {21}")  # bhist breaks lines anywhere, also within a word


class Lsf(adapter.Adapter):
    """IBM Spectrum LSF 10.1 and later."""

    name = "LSF"
    marker = "#BSUB"
    submit = "bsub"
    queue = "bjobs"
    submitted = r"Job <(\d+)> is submitted to (?:default )?queue <[^>]+>\..*"
    history = "bhist"
    asks = MappingProxyType({
        "-q": "queue", "-P": "account", "-J": "name", "-W": "time", "-nnodes": "nodes", "-n": "tasks", "-o": "output",
        "-e": "output", "-oo": "output", "-eo": "output", "-U": "reservation", "-x": "exclusive",
        "-gpu": "node_gpus", "-R": "", "-env": "",
    })  # fmt: skip
    flags = frozenset({"-x", "-H", "-N", "-B"})
    time_units = (60, 60)
    variables = "LSB_"
    element = "{}[{}]"
    capabilities = Capabilities(
        arrays=True, first_index=1, restarts="flagged", script_on_stdin=True, dependencies=True, throttle=True,
        hold=True, slow_cancel_s=60, submissions_per_command=20, arguments=False, time_step_s=60,
    )  # fmt: skip
    # formats, defaults of bsub and quiet answers; the installation's LSF_ENVDIR and the like are not among them
    cleared_variables = ("LSB_", "BSUB_")
    # the server may or may not have heard it
    passing = (
        r"LSF is down|cannot connect|connection (?:refused|reset|timed out)|daemon not responding|still trying"
        r"|communication time ?out|please wait|failed in an lsf library call|not ready yet|library call.*socket"
        r"|server (?:host )?is (?:busy|down)|internal library error|temporarily unavailable"
    )
    full = r"(pending job threshold|job limit (is |has been )?reached|reached .*job limit)[\s\S]*Job not submitted"
    # it answered for each job: those that it did not change have ended, or are as they should be
    over = "^Job <(?!.*(permission|denied|not authorized|library call))"
    # of the report that LSF appends to the job's output
    memory = r"^(TERM_MEMLIMIT: .*|.*(?:out of memory|oom-kill).*)$"
    preamble = re.escape(_NOT_SUBMITTED)
    sign_of_life = ("lsid",)
    facts_command = ("bparams", "-l")
    keys = frozenset({"queue", "account", "reservation", "exclusive"})

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `#BSUB` lines."""
        if re.search(r"%[IJ]", scratch):
            raise UsageError(f"scratch must not hold %I or %J, which LSF replaces by numbers: {scratch}")
        return [*_directive_lines(job.resources, extra), f"#BSUB -W {_as_minutes(job.walltime_s)}", *extra]

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for; of -gpu and -R the GPUs of a host, and the slots of one."""
        if option == "-gpu":
            number = re.search(r"\bnum=(\d+)(/task)?", value)
            key = "task_gpus" if number and number[2] else "node_gpus"
            is_number_alone = number is not None and number[0] == value
            return [(key, number[1] if number else "1"), *([] if is_number_alone else [("extra", "")])]
        if option == "-env":
            return []
        if option == "-R":
            asked = [("node_gpus", n) for n in re.findall(r"\bngpus(?:_\w+)?=(\d+)", value)]
            asked += [("per_node", n) for n in re.findall(r"\bspan\[ptile=(\d+)\]", value)]
            is_span_alone = re.fullmatch(r"span\[(ptile=\d+|hosts=1)\]", value) is not None
            return asked if is_span_alone and asked else [*asked, ("extra", "")] if asked else []
        return super().requested_keys(option, value)

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option that is nsw's own."""
        for option in re.findall(r"(?:^|\s)-([A-Za-z]+)", re.sub(r"\"[^\"]*\"|'[^']*'", "", line)):
            if _OPTIONS.fullmatch(option):
                return f"-{option}", _REASONS.get(re.sub("^I.*", "I", option), "nsw sets it itself")
        return None

    def submit_command(self, request: adapter.Request) -> list[str]:
        """The bsub of a submission, which reads the script from its standard input."""
        submission = request.submission
        tasks = submission.tasks
        name, log = submission.name, f"{request.log}.log"
        if len(tasks) > 1:
            limit = f"%{request.limit}" if request.limit else ""
            name = f"{name}[{','.join(spans(task - tasks[0] + 1 for task in tasks))}]{limit}"
            log = f"{request.log}.%I.log"
        words = ["bsub", "-J", name, "-o", log]
        words += ["-env", f"all, NSW_ATTEMPT={submission.attempt}, NSW_TASK={tasks[0]}"]
        if request.comment:
            words += ["-Jd", request.comment]
        if request.walltime_s is not None:
            words += ["-W", str(_as_minutes(request.walltime_s))]
        if request.after:  # -ti: it ends when its dependency can never be met
            words += ["-w", " && ".join(f"done({job})" for job in request.after), "-ti"]
        return words

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why bsub refused: it then ends with "Job not submitted."; whatever else is no refusal that is certain."""
        unsure = self.transient(result) or result.returncode == 0
        if unsure or _NOT_SUBMITTED not in result.stderr or self.parse_submitted(result) is not None:
            return None
        complaints = "; ".join(self.complaints(result))
        return adapter.explain_refusal(complaints, adapter.known_refusals("lsf")) or Refusal(complaints)

    def transient(self, result: CommandResult) -> bool:
        """Not where it went on in the end: `LSF is down. Please wait ...`."""
        return result.timed_out or (result.returncode != 0 and super().transient(result))

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many elements of an array run at a time."""
        return ["bmod", "-J", f"%{limit}", native.job]

    # --- asking -------------------------------------------------------------------------------------------

    def parse_facts(self, result: CommandResult) -> Facts:
        """How long an array may be. bhist reads the cluster's own log, which is always there."""
        size = re.search(r"MAX_JOB_ARRAY_SIZE\s*=\s*(\d+)", result.stdout)
        return Facts(longest_array=int(size[1]) if size else _LONGEST_ARRAY, history=True)

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One bjobs, also for jobs that ended a moment ago (-a): those with ids, else all of the user's."""
        id_groups = split_words(job_ids(watched)) if all(job.native for job in watched) else []
        ids = id_groups[0] if len(id_groups) == 1 else ()  # more do not fit on one command line
        return ["bjobs", "-a", "-noheader", "-o", f"{' '.join(_FIELDS)} delimiter='{_DELIMITER}'", *ids]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs. bjobs exits with 255 when one of several is not found, and names that one."""
        if not self._has_answered(result):
            return None
        lines = _parse_bjobs(result.stdout)
        accounted = {line.job for line in lines} | set(_ABSENT.findall(result.stderr))
        requested = [word for word in result.argv if word.isdigit()]
        return lines if all(job in accounted for job in requested) else None

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """Bhist over all of its log files."""
        return [["bhist", "-a", "-n", "0", "-l", *part] for part in split_words(job_ids(watched))]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """A bhist for each name: it takes only one."""
        return ["bash", "-c", _BY_NAME, "nsw", *names]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """What bhist knows of jobs, whether they ended or not."""
        return ended_lines(result.stdout) if self._has_answered(result) else None

    def _has_answered(self, result: CommandResult) -> bool:
        return not self.transient(result) and (result.returncode == 0 or _NO_JOB.search(result.stderr) is not None)

    # --- ending -------------------------------------------------------------------------------------------

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One bkill for all of these."""
        words = task_words(watched, self.element.format)
        return ["bkill", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """One bstop for all of these, of an array only the elements named, which wait; or one bresume."""
        words = task_words(watched, self.element.format)
        return [*(("bash", "-c", _HOLD, "nsw") if hold else ("bresume",)), *words] if words else None


def _as_minutes(seconds: int) -> int:
    """LSF counts time limits in minutes."""
    return max(1, -(-seconds // 60))


def _directive_lines(needs: Resources, extra: Sequence[str]) -> list[str]:
    """What the job needs, less what `extra` asks for. A slot is a core; memory and GPUs are counted by host."""
    of_host = adapter.gpus_per_node(needs, "and LSF counts them by host", ", or extra: ['#BSUB -gpu ...']")
    processes = max(1, -(-needs.tasks // needs.nodes))
    slots = processes * (needs.cpus_per_task or 1)
    size = None if needs.memory_bytes is None else f"{format_memory(needs.memory_bytes)}B"
    asks_itself = any(re.search(r"\s-gpu\s|\bngpus", line) for line in extra)
    gpus = needs.gpus and not asks_itself and f"num={of_host}"
    option_values = (
        ("n", str(slots * needs.nodes)), ("R", f"span[ptile={slots}]"),
        ("R", size and f"rusage[mem={size}]"), ("M", size), ("gpu", gpus),
        ("q", needs.queue), ("P", needs.account), ("U", needs.reservation),
    )  # fmt: skip
    lines = [
        f"#BSUB -{option} {adapter.directive_value(option, value, _PLAIN, 'bsub')}"
        for option, value in option_values
        if value
    ]
    return [*lines, *(["#BSUB -x"] if needs.exclusive else [])]


def _parse_bjobs(stdout: str) -> list[Line]:
    """The jobs in the output of bjobs; other text is skipped."""
    lines = []
    for text in stdout.splitlines():
        fields = [field.strip() for field in text.split(_DELIMITER, len(_FIELDS) - 1)]
        if len(fields) == len(_FIELDS) and fields[0].isdigit() and fields[1].isdigit():
            job, index, stat, code, name, owner, *reasons = fields
            job_answer = answer(stat, *("" if word == "-" else word for word in (code, *reasons)))
            lines.append(_job_line(job, index, name, job_answer, owner))
    return lines


def ended_lines(stdout: str) -> list[Line]:
    """The jobs that `bhist -l` lists: the last event of each decides."""
    jobs = _JOB.findall(_WRAPPED.sub("", stdout))
    return [_job_line(job, index, name, _answer_from_events(events)) for job, index, name, events in jobs]


def _job_line(job: str, index: str, name: str, answer: Answer, owner: str | None = None) -> Line:
    """A job, to bjobs index 0, or an element of an array, which is called `name[3]`."""
    bare = re.sub(r"\[[\d,:-]+\](?:%\d+)?$", "", name)
    return Line(job, (int(index),) if index.strip("0") else None, bare or None, answer, owner=owner)


@lru_cache(maxsize=4096)  # the same words give the same object, by which it is known that nothing is new
def answer(stat: str, code: str, exit_reason: str, pend_reason: str) -> Answer:
    """What a job's columns mean together; an unknown state is no statement.

    Args:
        stat: The state.
        code: The exit status, empty where there is none.
        exit_reason: Why LSF ended it, such as `TERM_OWNER: job killed by owner`.
        pend_reason: Why it waits.
    """
    if stat == "EXIT":
        return _answer_for_exit(code, exit_reason)
    if stat not in {"PEND", "WAIT", "FWD_PEND"}:
        return known_answers("lsf").get(stat) or Answer(Phase.UNKNOWN, f"LSF says {stat}, which nsw does not know")
    if _NEVER.search(pend_reason):
        return Answer(Phase.QUEUED, "the job that it depends on did not succeed", never=True)
    return Answer(Phase.QUEUED, f"not running yet: {pend_reason.rstrip('.;')}" if pend_reason else None)


def _answer_for_exit(code: str, reason: str) -> Answer:
    if by := _CANCELLED.search(reason):
        killer = "its owner" if by[1] == "OWNER" else "an administrator"
        return Answer(Phase.ENDED, f"the job was killed by {killer}", cancelled=True)
    if word := _TERM.search(reason):
        return known_answers("lsf").get(word[0], Answer(Phase.ENDED, f"LSF ended the job ({reason})"))
    if not code.isdigit() or code == "0":
        return Answer(Phase.ENDED, f"it ended ({reason})" if reason else "it ended, and LSF has no exit status of it")
    return ended_by_itself(int(code), f", as after signal {int(code) - 128}" if int(code) > 128 else "")


def _answer_from_events(events: str) -> Answer:
    """The answer that follows from the events of one job."""
    outcome, killed, reason = Answer(Phase.QUEUED), None, next(iter(_TERM.findall(events)), "")
    for event in _EVENT.finditer(events):
        killed = event["killed"] or killed
        if event["EXIT"] and killed and not reason:
            outcome = Answer(Phase.ENDED, f"the job was killed by {killed}", cancelled=True)
        elif event["killed"] is None:
            code = event["code"] or (str(128 + int(event["signal"])) if event["signal"] else "")
            outcome = answer(str(event.lastgroup), code, reason, "")
    return outcome
