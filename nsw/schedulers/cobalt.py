"""Cobalt: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Cobalt has no arrays and no history: a job that has left the queue is known by its .cobaltlog alone, which Cobalt
writes up to ten seconds late. docs/schedulers.md says what nsw does about it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.schedulers.adapter import Adapter, Capabilities, Line, Queue, Refusal, told_limit
from nsw.schedulers.cobalt_meanings import FULL, LOST_EXIT, REFUSALS, STARTS, STATES, TRANSIENT
from nsw.schedulers.model import Answer, Phase, ended_by_itself
from nsw.schedulers.unsupported_keys import own_lines
from nsw.scripts.cobalt import CHANGED, LEAST_MINUTES, directives, minutes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job
    from nsw.schedulers.adapter import Request, Watched
    from nsw.schedulers.submission_ids import Native

_COLUMNS: Final = ("JobID", "User", "State", "JobName")  # none of them holds a blank
_LISTING: Final = ("qstat", "--header", ":".join(_COLUMNS))
_QUEUE_COLUMNS: Final = 11  # of `qstat -Q`
_BY_USER: Final = 'exec qstat -u "$(id -un)" "$@"'  # qstat without ids would list everybody's jobs
_NOISE: Final = re.compile(r"No handlers could be found for logger|^Usage: |^Refer to man pages")
_HANDLERS: Final = re.compile(r"^No handlers could be found for logger .*\n", re.MULTILINE)
# in Python's own notation, a line break as two characters
_TRACEBACK: Final = re.compile(r"-+ START TRACEBACK -+\\n *Exception *: (.*?)\\n.*?END TRACEBACK -+")
_FAULT: Final = re.compile(
    r"""(?:component error: XMLRPC failure )?<Fault \d+: (?P<q>['"])(?P<said>.*?)(?:\\n)?(?P=q)>.*"""
)
_FILTER: Final = re.compile(r"Filter \S+ failed")  # its path is the site's, and says nothing
_JOB: Final = re.compile(r"Jobid: (\d+)")
_EXIT: Final = re.compile(r"Info: task completed normally with an exit code of (\S+);")
_LONGEST_LIST: Final = 200  # files on one command line
# the lines of a .cobaltlog that say which job it is and how it ended
_TELLING: Final = (
    "^Jobid: [0-9]+$|Info: (task completed normally|user delete requested|administrative delete|maximum execution time)"
    "|EXCEPTION:"
)


class Cobalt(Adapter):
    """Cobalt 1.0 on clusters and Crays."""

    name = "Cobalt"
    marker = "#COBALT"
    submit = "qsub"
    products = MappingProxyType({"Cobalt": "cobalt|BlueGene"})
    queue = "qstat"
    history = "its .cobaltlog"
    capabilities = Capabilities(
        late_end_s=15, history_in_file=True, slow_cancel_s=300, hold=True, submissions_per_command=100,
        time_step_s=60, least_time_s=60 * LEAST_MINUTES, unfit_in_script_paths=CHANGED,
    )  # fmt: skip
    # these change what qstat prints
    cleared = ("QSTAT_HEADER", "CQSTAT_HEADER")

    # --- submitting ---------------------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The `#COBALT` lines."""
        extra = tuple(own_lines(self, job.resources.extra))
        return directives(replace(job, resources=replace(job.resources, extra=extra)), scratch)

    def submit_command(self, request: Request) -> list[str]:
        """The qsub of one task: what the job prints goes to LOG.output, Cobalt's own record to LOG.cobaltlog."""
        submission = request.submission
        words = [
            "qsub", "--mode", "script", "--jobname", submission.name, "--cwd", request.log.rpartition("/")[0],
            "-O", request.log, "-e", f"{request.log}.output",
        ]  # fmt: skip
        if request.walltime_s is not None:
            words += ["-t", str(minutes(request.walltime_s))]
        return [*words, request.script, str(submission.attempt), str(submission.tasks[0])]

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The id: the last line of digits alone, else the one line that begins with a number; None without either."""
        lines = [line.strip() for line in result.stdout.splitlines()]
        ids = [line for line in lines if re.fullmatch(r"[0-9]+", line)]
        if ids:
            return ids[-1]
        begun = {match[1] for line in lines if (match := re.match(r"([0-9]+) ", line))}
        return begun.pop() if len(begun) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why qsub refused, when it certainly did: it printed no id, and an error that comes before any submission."""
        if result.timed_out or result.returncode not in {1, 2} or self.parse_submitted(result) is not None:
            return None
        if self.transient(result):
            return None
        complaints = self.complaints(result)
        # the queue manager's own sentence goes before what a filter that let the job pass has printed
        faults = [match["said"] for match in _FAULT.finditer(result.stderr)]
        reason = "; ".join(faults or [line for line in complaints if not _FILTER.fullmatch(line)])
        for known in REFUSALS:
            if known.pattern.search(reason) or (known.key is None and known.pattern.search(result.stderr)):
                return Refusal("; ".join(complaints), known.key, known.hint)
        return None

    def is_full(self, result: CommandResult) -> bool:
        """Refused only because enough jobs are in the queue already."""
        certain = result.returncode == 1 and not result.timed_out and not self.transient(result)
        return certain and FULL.search(result.stderr) is not None

    def transient(self, result: CommandResult) -> bool:
        """A component could not be reached, which says nothing of the job."""
        return result.timed_out or TRANSIENT.search(result.stderr) is not None

    def plain(self, result: CommandResult) -> CommandResult:
        """Of a dead component's traceback the exception; the note on handlers only where nothing else is said."""
        text = _HANDLERS.sub("", result.stderr)
        return replace(result, stderr=_TRACEBACK.sub(r"\1", text) if text.strip() else result.stderr)

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong, each once: faults without what is around them."""
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip() and not _NOISE.search(line)]
        said = [_FAULT.sub(lambda match: match["said"], line) for line in lines]
        return list(dict.fromkeys(re.sub(r"^qsub\.py: error: ", "", line) for line in said))

    # --- asking -------------------------------------------------------------------------------------------

    def sign_of_life_command(self) -> list[str]:
        """What every user may ask and costs little: the queues."""
        return ["qstat", "-Q"]

    def queues_command(self) -> list[str]:
        """The queues, a line each."""
        return ["qstat", "-Q"]

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """Those that run jobs, with their MaxTime, the one that qsub takes without -q first; none says its GPUs."""
        found = []
        for line in result.stdout.splitlines():
            fields = line.split()
            if len(fields) == _QUEUE_COLUMNS and fields[-1] == "running":
                longest = told_limit(fields[4])
                found.append(Queue(fields[0], walltime=longest, is_default=fields[0] == "default"))
        return sorted(found, key=lambda queue: not queue.is_default)

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One qstat for the jobs with ids; for all of the user's where one has none."""
        if watched and all(one.native for one in watched):
            return [*_LISTING, *dict.fromkeys(one.native.job for one in watched if one.native)]
        return ["bash", "-c", _BY_USER, *_LISTING]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs; silence with exit status 1 means that none of the ids is in the queue.

        Anything else with exit status 1 is an outage, which says nothing of any job.
        """
        if result.timed_out:
            return None
        lines = result.stdout.splitlines()
        for at in range(len(lines) - 1):
            if lines[at].split() == list(_COLUMNS) and re.fullmatch(r"=+", lines[at + 1].strip()):
                return [line for text in lines[at + 2 :] if (line := _listed(text))] if result.returncode == 0 else None
        return [] if result.returncode == 1 and not result.stdout.strip() and not result.stderr.strip() else None

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """What the .cobaltlog files say; they need no ids."""
        logs = [f"{one.log}.cobaltlog" for one in watched]
        some = (logs[at : at + _LONGEST_LIST] for at in range(0, len(logs), _LONGEST_LIST))
        # -s: a file that is not there yet is no error
        return [["grep", "-aHsE", "--color=never", "-e", _TELLING, "--", *part] for part in some]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """A line for each job that a file names; one that has not ended there is known, and gone.

        A file holds several jobs when Cobalt lost the first and gave its name to another submission of the same.
        """
        if result.timed_out or result.returncode not in {0, 1, 2}:
            return None
        found: dict[tuple[str, str], Answer] = {}
        current: tuple[str, str] | None = None
        for text in result.stdout.splitlines():
            path, colon, said = text.partition(".cobaltlog:")
            if not colon:
                continue
            name = path.rpartition("/")[2]
            if match := _JOB.fullmatch(said):
                current = (name, match[1])
                found[current] = Answer(Phase.GONE)
            elif current is not None and current[0] == name and (answer := ended(said)) is not None:
                found[current] = answer
        return [Line(job, None, name, answer) for (name, job), answer in found.items()]

    # --- names --------------------------------------------------------------------------------------------

    def log_name(self, submission: str, native: Native | None, task: int) -> str:  # noqa: ARG002
        """The file, in the folder of logs, with what the job script printed."""
        return f"{submission}.output"

    # --- ending -------------------------------------------------------------------------------------------

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One qdel for all of these."""
        ids = list(dict.fromkeys(one.native.job for one in watched if one.native))
        return ["qdel", *ids] if ids else None

    def hold_command(self, watched: Sequence[Watched], *, held: bool) -> list[str] | None:
        """One qhold or qrls for all of these; Cobalt refuses it for jobs that run, which go on."""
        ids = list(dict.fromkeys(one.native.job for one in watched if one.native))
        return ["qhold" if held else "qrls", *ids] if ids else None

    def held(self, result: CommandResult) -> bool:
        """Whether the queue manager answered: the jobs that it then could not hold run, are held or have ended."""
        return result.returncode == 0 and not self.transient(result)

    def cancelled(self, result: CommandResult) -> bool:
        """Qdel is silent about jobs that had ended, and about those of others."""
        return result.returncode == 0 and not result.timed_out


def ended(line: str) -> Answer | None:
    """How a job ended by a line of its .cobaltlog; None for a line that does not say it."""
    if match := _EXIT.search(line):
        return _exit(match[1])
    if "maximum execution time exceeded" in line:
        return Answer(Phase.ENDED, "it was over its time limit, and Cobalt ended it")
    if "removing job from the queue" in line:
        return Answer(Phase.ENDED, "it was deleted", cancelled=True)
    if "delete" in line:
        return Answer(Phase.ENDED, f"it was deleted{_by(line)}", cancelled=True)
    return None


def _exit(text: str) -> Answer:
    if text == "0":
        return Answer(Phase.ENDED, clean=True)
    if not text.isdigit():  # `None`
        return Answer(Phase.ENDED, f"Cobalt does not know its exit status: it wrote {text}")
    code = int(text)
    if code == LOST_EXIT:
        return Answer(Phase.ENDED, "Cobalt lost track of the job", may_run=True)
    if code in STARTS:
        return Answer(Phase.ENDED, STARTS[code])
    signal = f", which is 128 and signal {code - 128}" if 128 < code < 193 else ""
    return ended_by_itself(code, signal)


def _by(line: str) -> str:
    match = re.search(r" by user (\S+)", line)
    return f" by {match[1]}" if match else ""


def _listed(text: str) -> Line | None:
    cells = text.split()
    if len(cells) != len(_COLUMNS) or not cells[0].isdigit():
        return None
    job, owner, state, name = cells
    answer = STATES.get(state, Answer(Phase.UNKNOWN, f"Cobalt says {state}, which nsw does not know"))
    if answer.reason and "JOB" in answer.reason:
        answer = replace(answer, reason=answer.reason.replace("JOB", job))
    return Line(job, None, name, answer, owner=owner)
