"""Cobalt: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Cobalt reads directives only directly under `#!`, up to the first other line, and splits them at blanks: there are no
quotes. It has no arrays and no history: a job that has left the queue is known by its .cobaltlog alone, which Cobalt
writes up to ten seconds late. docs/schedulers.md says what nsw does about it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, RefusedError, UsageError
from nsw.schedulers import adapter
from nsw.schedulers.adapter import Line, Queue, Watched, explain_refusal, job_ids, known_answers, known_refusals
from nsw.schedulers.model import Answer, Capabilities, Phase, ended_by_itself

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Job

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
# the lines of a .cobaltlog that say which job it is and how it ended
_TELLING: Final = (
    "^Jobid: [0-9]+$|Info: (task completed normally|user delete requested|administrative delete|maximum execution time)"
    "|EXCEPTION:"
)


_LOST_EXIT: Final = 1234567  # Cobalt's own process watching the job was lost


_LEAST_MINUTES: Final = 5  # Cobalt refuses less
_CHANGED: Final = r"\s$'\"\\"  # characters of paths that it drops or replaces, as in `[...]` of a regular expression

_KEYS: Final = {"-q": "queue", "-A": "account"}  # of `resources`


class Cobalt(adapter.Adapter):
    """Cobalt 1.0 on clusters and Crays."""

    name = "Cobalt"
    marker = "#COBALT"
    submit = "qsub"
    products = MappingProxyType({"Cobalt": "cobalt|BlueGene"})
    queue = "qstat"
    history = "its .cobaltlog"
    asks = MappingProxyType({
        "-n": "nodes", "--nodecount": "nodes", "-t": "time", "--time": "time", "-q": "queue", "--queue": "queue",
        "-A": "account", "--project": "account", "--jobname": "name", "-o": "output", "--output": "output",
        "-e": "output", "--error": "output", "-O": "output", "--outputprefix": "output",
    })  # fmt: skip
    time_units = (60, 60)
    variables = "COBALT_"
    capabilities = Capabilities(
        late_end_s=15, history_in_file=True, slow_cancel_s=300, hold=True, submissions_per_command=100,
        time_step_s=60, least_time_s=60 * _LEAST_MINUTES, unfit_in_script_paths=_CHANGED,
    )  # fmt: skip
    # a component could not be reached, or fell silent: the job may be submitted or not
    passing = (
        r"Connection refused|Failed to connect|Following exception occurred|<Fault 20:|socket\.error|\[Errno 1\d\d\]"
        r"|timed out|Connection reset|No route to host|Resource temporarily unavailable|CommunicationError|fork: retry"
    )
    full = "The limit of .* has been reached"
    sign_of_life = ("qstat", "-Q")
    queues_command = ("qstat", "-Q")
    log_ending = "output"
    # these change what qstat prints
    cleared_variables = ("QSTAT_HEADER", "CQSTAT_HEADER")

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for; of --attrs the GPUs of a node, whose other words stay."""
        if option == "--attrs" and (number := re.search(r"\bn?gpus=(\d+)", value)):
            return [("node_gpus", number[1]), ("extra", "")]
        return super().requested_keys(option, value)

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `#COBALT` lines. Files and name are given on qsub's command line, where they may hold anything."""
        if re.search(f"[{_CHANGED}]", scratch):
            raise UsageError(
                f"scratch holds a character that Cobalt would change: {scratch!r}",
                hint="name a folder without blanks, quotes and dollar signs",
            )
        needs = job.resources
        attrs: list[str] = []
        own_lines: list[str] = []
        for line in extra:
            words, line_attrs = _split_options(line)
            attrs += line_attrs
            own_lines += [f"#COBALT {' '.join(words)}"] if words else []
        option_values = {
            "-n": needs.nodes,
            "-t": whole_minutes(job.walltime_s),
            "-q": needs.queue,
            "-A": needs.account,
            "--attrs": ":".join(dict.fromkeys(attrs)) or None,  # Cobalt takes only one
        }
        return [*(directive(option, value) for option, value in option_values.items() if value is not None), *own_lines]

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option that is nsw's own."""
        refused = adapter.refused_options("cobalt")
        options = (word.partition("=")[0] if word.startswith("--") else word[:2] for word in line.split()[1:])
        return next(((option, refused[option]) for option in options if option in refused), None)

    def submit_command(self, request: adapter.Request) -> list[str]:
        """The qsub of one task: what the job prints goes to LOG.output, Cobalt's own record to LOG.cobaltlog."""
        submission = request.submission
        words = [
            "qsub", "--mode", "script", "--jobname", submission.name, "--cwd", request.log.rpartition("/")[0],
            "-O", request.log, "-e", f"{request.log}.output",
        ]  # fmt: skip
        if request.walltime_s is not None:
            words += ["-t", str(whole_minutes(request.walltime_s))]
        return [*words, request.script, str(submission.attempt), str(submission.tasks[0])]

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The id: the last line of digits alone, else the one line that begins with a number; None without either."""
        lines = [line.strip() for line in result.stdout.splitlines()]
        ids = [line for line in lines if re.fullmatch(r"[0-9]+", line)]
        if ids:
            return ids[-1]
        leading_numbers = {match[1] for line in lines if (match := re.match(r"([0-9]+) ", line))}
        return leading_numbers.pop() if len(leading_numbers) == 1 else None

    def refusal(self, result: CommandResult) -> adapter.Refusal | None:
        """Why qsub refused, when it certainly did: it printed no id, and an error that comes before any submission."""
        if result.timed_out or result.returncode not in {1, 2} or self.parse_submitted(result) is not None:
            return None
        if self.transient(result):
            return None
        complaints = self.complaints(result)
        # the queue manager's own sentence goes before what a filter that let the job pass has printed
        faults = [match["said"] for match in _FAULT.finditer(result.stderr)]
        reason = "; ".join(faults or [line for line in complaints if not _FILTER.fullmatch(line)])
        matched_refusal = explain_refusal(reason, known_refusals("cobalt")) or explain_refusal(
            result.stderr, (pattern for pattern in known_refusals("cobalt") if not pattern[1])
        )
        return replace(matched_refusal, message="; ".join(complaints)) if matched_refusal else None

    def plain(self, result: CommandResult) -> CommandResult:
        """Of a dead component's traceback the exception; the note on handlers only where nothing else is said."""
        text = _HANDLERS.sub("", result.stderr)
        return replace(result, stderr=_TRACEBACK.sub(r"\1", text) if text.strip() else result.stderr)

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong, each once: faults without what is around them."""
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip() and not _NOISE.search(line)]
        messages = [_FAULT.sub(lambda match: match["said"], line) for line in lines]
        return list(dict.fromkeys(re.sub(r"^qsub\.py: error: ", "", line) for line in messages))

    # --- asking -------------------------------------------------------------------------------------------

    def parse_queues(self, result: CommandResult) -> list[Queue]:
        """Those that run jobs, with their MaxTime, the one that qsub takes without -q first; none says its GPUs."""
        queues = []
        for line in result.stdout.splitlines():
            fields = line.split()
            if len(fields) == _QUEUE_COLUMNS and fields[-1] == "running":
                longest = adapter.parse_time_limit(fields[4])
                queues.append(Queue(fields[0], walltime=longest, is_default=fields[0] == "default"))
        return sorted(queues, key=lambda queue: not queue.is_default)

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """One qstat for the jobs with ids; for all of the user's where one has none."""
        if watched and all(job.native for job in watched):
            return [*_LISTING, *job_ids(watched)]
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
                return (
                    [line for text in lines[at + 2 :] if (line := _parse_queue_line(text))]
                    if result.returncode == 0
                    else None
                )
        return [] if result.returncode == 1 and not result.stdout.strip() and not result.stderr.strip() else None

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """What the .cobaltlog files say; they need no ids."""
        logs = [f"{job.log}.cobaltlog" for job in watched]
        # -s: a file that is not there yet is no error
        return [["grep", "-aHsE", "--color=never", "-e", _TELLING, "--", *part] for part in adapter.split_words(logs)]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """A line for each job that a file names; one that has not ended there is known, and gone.

        A file holds several jobs when Cobalt lost the first and gave its name to another submission of the same.
        """
        if result.timed_out or result.returncode not in {0, 1, 2}:
            return None
        answers: dict[tuple[str, str], Answer] = {}
        current: tuple[str, str] | None = None
        for text in result.stdout.splitlines():
            path, colon, log_line = text.partition(".cobaltlog:")
            if not colon:
                continue
            name = path.rpartition("/")[2]
            if match := _JOB.fullmatch(log_line):
                current = (name, match[1])
                answers[current] = Answer(Phase.GONE)
            elif current is not None and current[0] == name and (answer := answer_from_log_line(log_line)) is not None:
                answers[current] = answer
        return [Line(job, None, name, answer) for (name, job), answer in answers.items()]

    # --- ending -------------------------------------------------------------------------------------------

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One qdel for all of these."""
        ids = job_ids(watched)
        return ["qdel", *ids] if ids else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """One qhold or qrls for all of these; Cobalt refuses it for jobs that run, which go on."""
        ids = job_ids(watched)
        return ["qhold" if hold else "qrls", *ids] if ids else None

    def is_hold_accepted(self, result: CommandResult) -> bool:
        """Whether the queue manager answered: the jobs that it then could not hold run, are held or have ended."""
        return result.returncode == 0 and not self.transient(result)


def answer_from_log_line(line: str) -> Answer | None:
    """How a job ended by a line of its .cobaltlog; None for a line that does not say it."""
    if match := _EXIT.search(line):
        return _answer_for_exit(match[1])
    if "maximum execution time exceeded" in line:
        return Answer(Phase.ENDED, "it was over its time limit, and Cobalt ended it", over_time=True)
    if "removing job from the queue" in line:
        return Answer(Phase.ENDED, "it was deleted", cancelled=True)
    if "delete" in line:
        return Answer(Phase.ENDED, f"it was deleted{_user_who_ended_text(line)}", cancelled=True)
    return None


def _answer_for_exit(text: str) -> Answer:
    if text == "0":
        return Answer(Phase.ENDED, clean=True)
    if not text.isdigit():  # `None`
        return Answer(Phase.ENDED, f"Cobalt does not know its exit status: it wrote {text}")
    code = int(text)
    if code == _LOST_EXIT:
        return Answer(Phase.ENDED, "Cobalt lost track of the job", may_run=True)
    if (answer := known_answers("cobalt").get(str(code))) is not None:  # the script itself could not be started
        return answer
    signal = f", which is 128 and signal {code - 128}" if 128 < code < 193 else ""
    return ended_by_itself(code, signal)


def _user_who_ended_text(line: str) -> str:
    match = re.search(r" by user (\S+)", line)
    return f" by {match[1]}" if match else ""


def _parse_queue_line(text: str) -> Line | None:
    cells = text.split()
    if len(cells) != len(_COLUMNS) or not cells[0].isdigit():
        return None
    job, owner, state, name = cells
    answer = known_answers("cobalt").get(state, Answer(Phase.UNKNOWN, f"Cobalt says {state}, which nsw does not know"))
    return Line(job, None, name, answer, owner=owner)


def whole_minutes(seconds: int) -> int:
    """Whole minutes of a time limit, at least what Cobalt takes; it drops seconds."""
    return max(_LEAST_MINUTES, -(-seconds // 60))


def directive(option: str, value: object) -> str:
    """One line.

    Raises:
        RefusedError: The value holds a blank, which would end it, or a control character.
    """
    text = str(value)
    if not text or re.search(r"[\x00-\x20\x7f]", text):
        raise RefusedError(
            f"{option} cannot be {text!r}: a #COBALT line has no quotes, and a blank ends a value",
            key=_KEYS.get(option),
        )
    return f"#COBALT {option} {text}"


def _split_options(line: str) -> tuple[list[str], list[str]]:
    """The words of a recipe's own line, and its attributes, which are merged.

    Raises:
        RefusedError: It is a comment, which would end the directives.
    """
    if line.startswith("#") and not line.startswith("#COBALT"):
        raise RefusedError(
            f"resources.extra cannot hold {line!r}: Cobalt reads no directives after a line that is not one",
            key="extra",
        )
    words = line.removeprefix("#COBALT").split()
    kept_words: list[str] = []
    attrs: list[str] = []
    while words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if not option.startswith("--") and option.startswith("-"):
            option, value = word[:2], word[2:]
        if option == "--attrs":
            attrs += (value if equals else words.pop(0) if words else "").split(":")
        else:
            kept_words.append(word)
    return kept_words, [attr for attr in attrs if attr]
