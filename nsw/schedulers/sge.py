"""Grid Engine (SGE, Univa, Altair): the commands to ask it with, and what they print. Pure.

Run against Debian's gridengine 8.1.9; tests/sge/observed has what its commands printed.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from nsw.errors import CommandResult, RefusedError, UsageError
from nsw.recipe.units import format_memory
from nsw.schedulers import adapter
from nsw.schedulers.adapter import Adapter, Line, Refusal, Request, Watched, job_ids, split_words, task_words
from nsw.schedulers.model import Answer, Capabilities, Native, Phase, ended_by_itself, parse_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Job

_REFUSED: Final = re.compile(
    r"^(?:Unable to run job: (?!warning)|qsub: (?=Unknown option|invalid option)|(?=Unable to read script file))(.+)",
    re.MULTILINE,
)
_SEPARATOR: Final = re.compile(r"^=+$", re.MULTILINE)
_NOT_FOUND: Final = re.compile(r"^error: job (?:id|name) \S+ not found", re.MULTILINE)
_EACH: Final = 'code=0; for job; do qacct -j "$job" || code=$?; done; exit "$code"'


class Sge(Adapter):
    """Grid Engine 8 and what came of it."""

    name = "Grid Engine"
    marker = "#$"
    submit = "qsub"
    known_by = "qconf"
    queue = "qstat"
    history = "qacct"
    asks = MappingProxyType({
        "-q": "queue", "-P": "account", "-N": "name", "-o": "output", "-e": "output", "-j": "output", "-cwd": "output",
    })  # fmt: skip
    flags = frozenset({"-cwd", "-V", "-notify"})
    capabilities = Capabilities(
        arrays=True, first_index=1, contiguous=True, restarts="flagged", throttle=True, hold=True, late_end_s=15,
        slow_cancel_s=60, submissions_per_command=20,
    )  # fmt: skip
    keys = frozenset({"queue", "account", "exclusive"})
    submitted = r"(\d+)(?:\.\d+-\d+:\d+)?"
    # the qmaster may or may not have heard it
    passing = (
        "unable to (?:contact|send message to) qmaster|commlib error|gdi request|no response"
        "|got (?:send|read) (?:error|timeout)|timed? ?out"
    )
    full = r"only \d+ jobs are allowed|job rejected: .*per user"
    # of several jobs those that had ended are refused beside those that were changed
    over = "has registered the job|has deleted job|modified hold of|does not exist|is already in deletion|denied: job"

    def options_in(self, line: str) -> list[tuple[str, str]]:
        """The options of a directive line with their values; each resource of -l by itself."""
        return [
            (option, part) for option, value in super().options_in(line)
            for part in (value.split(",") if option == "-l" else [value])
        ]  # fmt: skip

    def requested_keys(self, option: str, value: str) -> list[tuple[str, str]]:
        """What an option asks for; of -l the time and the GPUs, whose name is the site's."""
        name, _, number = value.partition("=")
        if option == "-l" and name == "h_rt":
            return [("time", number)]
        if option == "-l" and re.search("gpu|cuda", name):
            return [("gpus", number or "1"), ("extra", "")]
        return super().requested_keys(option, value)

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `#$` lines. A site names its parallel environments itself, so several slots need a line of `extra`."""
        if re.search(r"[$:\s]", scratch):
            raise UsageError(f"scratch holds a character that Grid Engine would change: {scratch!r}",
                             hint="name a folder without blanks, colons and dollar signs")  # fmt: skip
        needs = job.resources
        slots = needs.tasks * (needs.cpus_per_task or 1)
        if (slots > 1 or needs.nodes > 1) and not any(re.search(r"\s-pe\s", line) for line in extra):
            raise RefusedError(
                f"{slots} slots on {needs.nodes} hosts need a parallel environment, which only the site can name",
                key="extra", hint=f"such as extra: ['#$ -pe smp {slots}']; `qconf -spl` lists them",
            )  # fmt: skip
        option_values = {
            "l h_rt": str(job.walltime_s),
            "l gpu": str(needs.gpus) if needs.gpus and not any("gpu" in line for line in extra) else None,
            "l h_vmem": None if needs.memory_bytes is None else format_memory(needs.memory_bytes),
            "l exclusive": "true" if needs.exclusive else None,
        }
        lines = [f"#$ -{option}={value}" for option, value in option_values.items() if value is not None]
        for letter, value in (("q", needs.queue), ("P", needs.account)):
            if value is not None:
                if not re.fullmatch(r"[\w.,@*+-]+", value):
                    raise UsageError(f"resources: -{letter} cannot be {value!r}")
                lines.append(f"#$ -{letter} {value}")
        # qdel and a time limit end a job with SIGKILL; with -notify SIGUSR2 comes before, as long as the queue says
        return ["#$ -S /bin/bash", "#$ -notify", *lines, *extra]

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option that is nsw's own."""
        for option in re.findall(r"\s-([A-Za-z_]+)", line):
            if option == "l" and "h_rt" in line:
                return "-l", "resources.time sets h_rt"
            if reason := adapter.refused_options("sge").get(option):
                return f"-{option}", reason
        return None

    def submit_command(self, request: Request) -> list[str]:
        """The qsub of a submission: an array from index 1 when it holds several tasks."""
        submission = request.submission
        words = ["qsub", "-terse", "-N", submission.name, "-j", "y"]
        if request.walltime_s is not None:
            words += ["-l", f"h_rt={request.walltime_s}"]
        if len(submission.tasks) > 1:
            words += ["-t", f"1-{len(submission.tasks)}", "-o", f"{request.log}.$TASK_ID.log"]
            words += ["-tc", str(request.limit)] if request.limit else []
        else:
            words += ["-o", f"{request.log}.log"]
        return [*words, request.script, str(submission.attempt), str(submission.tasks[0])]

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why qsub refused, in its own sentence."""
        match = _REFUSED.search(result.stderr)
        if match is None or result.returncode == 0 or self.transient(result) or self.parse_submitted(result):
            return None
        return adapter.explain_refusal(match[1].strip(), adapter.known_refusals("sge")) or Refusal(match[1].strip())

    def transient(self, result: CommandResult) -> bool:
        """Not where it went on in the end."""
        return result.timed_out or (result.returncode != 0 and super().transient(result))

    def throttle_command(self, native: Native, limit: int) -> list[str]:
        """Change how many tasks of an array run at a time."""
        return ["qalter", "-tc", str(limit), native.job]

    # --- asking -------------------------------------------------------------------------------------------

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """All of the user's jobs: qstat asks for no list of ids in this form."""
        return ["qstat", "-xml"]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The jobs in the XML, which must be whole."""
        start = result.stdout.find("<?xml")
        if result.returncode != 0 or result.timed_out or start < 0 or "<!DOCTYPE" in result.stdout:
            return None
        try:
            root = ET.fromstring(result.stdout[start:])  # noqa: S314  without a DOCTYPE there are no entities
        except ET.ParseError:
            return None
        return [line for job in root.iter("job_list") if (line := _parse_job_element(job)) is not None]

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """A qacct for each, in one command: it takes only one."""
        return [["bash", "-c", _EACH, "nsw", *part] for part in split_words(job_ids(watched), 100)]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """The same by names."""
        return ["bash", "-c", _EACH, "nsw", *names]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """The records of qacct; what it does not know (yet) is not listed."""
        unknown = _NOT_FOUND.search(result.stderr) is not None and not self.transient(result)
        if result.timed_out or (result.returncode != 0 and not unknown):
            return None
        return [line for text in _SEPARATOR.split(result.stdout) if (line := _parse_qacct(text)) is not None]

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One qdel for all of these, of an array the ranges that hold the named tasks."""
        words = task_words(watched, "{}.{}".format, word_per_range=True)
        return ["qdel", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """One qhold or qrls for all of these; what runs goes on, and only a restart of it would be held."""
        ids = job_ids(watched)
        return ["qhold" if hold else "qrls", ",".join(ids)] if ids else None


def _parse_qacct(text: str) -> Line | None:
    """Parse the record of one job, or one task, of qacct."""
    fields = dict(re.findall(r"^(\w+) +(.*?) *$", text, re.MULTILINE))
    number, task = fields.get("jobnumber", ""), fields.get("taskid", "undefined")
    if not number.isdigit():
        return None
    indices = (int(task),) if task.isdigit() else None
    return Line(
        number, indices, fields.get("jobname"), _ended_answer(fields.get("failed", "0"), fields.get("exit_status", ""))
    )


def _parse_job_element(job: ET.Element) -> Line | None:
    number, state = job.findtext("JB_job_number", ""), job.findtext("state", "")
    if not number.isdigit():
        return None
    tasks = job.findtext("tasks")
    name, owner = job.findtext("JB_name"), job.findtext("JB_owner")
    return Line(number, parse_spans(tasks) if tasks else None, name, _answer_in_queue(state), owner=owner)


def _answer_in_queue(state: str) -> Answer:
    if "E" in state:
        return Answer(
            Phase.QUEUED, f"Grid Engine could not start it ({state}): `qstat -explain E -j JOB` says why", never=True
        )
    if "q" in state:
        is_held = "h" in state
        return Answer(Phase.QUEUED, "held: `qrls JOB` releases it" if is_held else None, held=is_held)
    if set(state) & set("rtdRsST"):
        return Answer(Phase.RUNNING, "suspended" if set(state) & set("sST") else None)
    return Answer(Phase.UNKNOWN, f"Grid Engine says {state}, which nsw does not know")


def _ended_answer(failed: str, status: str) -> Answer:
    code = failed.split(" ", maxsplit=1)[0]
    if (answer := adapter.known_answers("sge").get(code)) is not None:
        return answer
    if code != "0" and status in {"137", "0", ""}:  # 100: ended by a signal, as qdel sends it
        return Answer(Phase.ENDED, f"Grid Engine ended the job ({failed})", cancelled=code == "100")
    number = re.match(r"\d+", status)
    if number is None:
        return Answer(Phase.ENDED, "it ended, and Grid Engine has no exit status of it")
    return Answer(Phase.ENDED, clean=True) if number[0] == "0" else ended_by_itself(int(number[0]))
