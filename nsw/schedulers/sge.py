"""Grid Engine (SGE, Univa, Altair): the commands to ask it with, and what they print. Pure.

Written from the manual pages and not yet run against a real server (docs/schedulers.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from nsw.errors import RefusedError, UsageError
from nsw.recipe.units import format_memory
from nsw.schedulers.adapter import Adapter, Capabilities, Line, Refusal
from nsw.schedulers.model import Answer, Phase, ended_by_itself
from nsw.schedulers.submission_ids import spans
from nsw.schedulers.unsupported_keys import own_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job
    from nsw.schedulers.adapter import Request, Watched
    from nsw.schedulers.submission_ids import Native

_ID: Final = re.compile(r"^(\d+)(?:\.\d+-\d+:\d+)?$", re.MULTILINE)
_REFUSED: Final = re.compile(r"^(?:Unable to run job: (?!warning)|qsub: (?=Unknown option))(.+)", re.MULTILINE)
_FULL: Final = re.compile(r"only \d+ jobs are allowed|job rejected: .*per user", re.IGNORECASE)
_TRANSIENT: Final = re.compile(
    r"unable to (?:contact|send message to) qmaster|commlib error|gdi request|no response"
    r"|got (?:send|read) (?:error|timeout)|timed? ?out",
    re.IGNORECASE,
)
_SEPARATOR: Final = re.compile(r"^=+$", re.MULTILINE)
_NOT_FOUND: Final = re.compile(r"^error: job (?:id|name) \S+ not found", re.MULTILINE)
_ENDED: Final = re.compile(r"has registered the job|has deleted job|does not exist|is already in deletion|denied: job")
_EACH: Final = 'code=0; for job; do qacct -j "$job" || code=$?; done; exit "$code"'
_OPTIONS: Final = frozenset(
    {"N", "o", "e", "j", "t", "tc", "sync", "hold_jid", "hold_jid_ad", "terse", "S", "h", "now"}
)
# `failed` of qacct -> in words
_FAILED: Final = {
    "37": "the job was over its time limit, or over another limit",
    "19": "the host was rebooted while the job ran",
    "21": "the job's host could not be reached",
    "26": "the job's output file could not be opened",
}


class Sge(Adapter):
    """Grid Engine 8 and what came of it."""

    name = "Grid Engine"
    marker = "#$"
    submit = "qsub"
    known_by = "qconf"
    queue = "qstat"
    history = "qacct"
    capabilities = Capabilities(
        arrays=True, first_index=1, contiguous=True, restarts="flagged", throttle=True, hold=True, late_end_s=15,
        slow_cancel_s=60, submissions_per_command=20,
    )  # fmt: skip
    keys = frozenset({"queue", "account", "exclusive"})

    # --- submitting ---------------------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The `#$` lines. A site names its parallel environments itself, so several slots need a line of `extra`."""
        if re.search(r"[$:\s]", scratch):
            raise UsageError(f"scratch holds a character that Grid Engine would change: {scratch!r}",
                             hint="name a folder without blanks, colons and dollar signs")  # fmt: skip
        needs = job.resources
        extra = [_extra(line) for line in own_lines(self, needs.extra)]
        slots = needs.tasks * (needs.cpus_per_task or 1)
        if (slots > 1 or needs.nodes > 1) and not any(re.search(r"\s-pe\s", line) for line in extra):
            raise RefusedError(
                f"{slots} slots on {needs.nodes} hosts need a parallel environment, which only the site can name",
                key="extra", hint=f"such as extra: ['#$ -pe smp {slots}']; `qconf -spl` lists them",
            )  # fmt: skip
        asked = {
            "l h_rt": str(job.walltime_s),
            "l gpu": str(needs.gpus) if needs.gpus and not any("gpu" in line for line in extra) else None,
            "l h_vmem": None if needs.memory_bytes is None else format_memory(needs.memory_bytes),
            "l exclusive": "true" if needs.exclusive else None,
        }
        lines = [f"#$ -{option}={value}" for option, value in asked.items() if value is not None]
        for letter, value in (("q", needs.queue), ("P", needs.account)):
            if value is not None:
                if not re.fullmatch(r"[\w.,@*+-]+", value):
                    raise UsageError(f"resources: -{letter} cannot be {value!r}")
                lines.append(f"#$ -{letter} {value}")
        # qdel and a time limit end a job with SIGKILL; with -notify SIGUSR2 comes before, as long as the queue says
        return ["#$ -S /bin/bash", "#$ -notify", *lines, *extra]

    def submit_command(self, request: Request) -> list[str]:
        """The qsub of a submission: an array from index 1 when it holds several tasks."""
        one = request.submission
        words = ["qsub", "-terse", "-N", one.name, "-j", "y"]
        if request.walltime_s is not None:
            words += ["-l", f"h_rt={request.walltime_s}"]
        if len(one.tasks) > 1:
            words += ["-t", f"1-{len(one.tasks)}", "-o", f"{request.log}.$TASK_ID.log"]
            if request.throttle is not None and request.throttle < len(one.tasks):
                words += ["-tc", str(request.throttle)]
        else:
            words += ["-o", f"{request.log}.log"]
        return [*words, request.script, str(one.attempt), str(one.tasks[0])]

    def parse_submitted(self, result: CommandResult) -> str | None:
        """The id that `-terse` prints, `12` or `12.1-5:1`."""
        found = set(_ID.findall(result.stdout))
        return found.pop() if len(found) == 1 else None

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why qsub refused, in its own sentence."""
        match = _REFUSED.search(result.stderr)
        if match is None or result.returncode == 0 or self.transient(result) or self.parse_submitted(result):
            return None
        key = next((key for word, key in (("queue", "queue"), ("project", "account"), ("resource", "extra"),
                                          ("parallel environment", "extra")) if word in match[1]), None)  # fmt: skip
        return Refusal(match[1].strip(), key)

    def is_full(self, result: CommandResult) -> bool:
        """Enough jobs are in the queue already."""
        return not self.transient(result) and result.returncode != 0 and _FULL.search(result.stderr) is not None

    def transient(self, result: CommandResult) -> bool:
        """The qmaster may or may not have heard it."""
        return result.timed_out or (result.returncode != 0 and _TRANSIENT.search(result.stderr) is not None)

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
        return [line for job in root.iter("job_list") if (line := _line(job)) is not None]

    def history_commands(self, watched: Sequence[Watched]) -> list[list[str]]:
        """A qacct for each, in one command: it takes only one."""
        ids = list(dict.fromkeys(one.native.job for one in watched if one.native))
        return [["bash", "-c", _EACH, "nsw", *ids[at : at + 100]] for at in range(0, len(ids), 100)]

    def history_by_name_command(self, names: Sequence[str], minutes: int) -> list[str]:  # noqa: ARG002  names are unique
        """The same by names."""
        return ["bash", "-c", _EACH, "nsw", *names]

    def parse_history(self, result: CommandResult) -> list[Line] | None:
        """The records of qacct; what it does not know (yet) is not listed."""
        unknown = _NOT_FOUND.search(result.stderr) is not None and not self.transient(result)
        if result.timed_out or (result.returncode != 0 and not unknown):
            return None
        return [line for text in _SEPARATOR.split(result.stdout) if (line := _record(text)) is not None]

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One qdel for all of these, of an array the ranges that hold the named tasks."""
        words: list[str] = []
        for one in watched:
            if one.native is not None:
                indices = [index for task in one.tasks if (index := one.native.index(task)) is not None]
                words += [f"{one.native.job}.{span}" for span in spans(indices)] if indices else [one.native.job]
        return ["qdel", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, held: bool) -> list[str] | None:
        """One qhold or qrls for all of these; what runs goes on, and only a restart of it would be held."""
        ids = list(dict.fromkeys(one.native.job for one in watched if one.native))
        return ["qhold" if held else "qrls", ",".join(ids)] if ids else None

    def held(self, result: CommandResult) -> bool:
        """Whether all are held or released that have not ended."""
        return self.cancelled(result)

    def cancelled(self, result: CommandResult) -> bool:
        """All of it is ending, or was over already."""
        if result.timed_out:
            return False
        lines = [line for line in (result.stdout + result.stderr).splitlines() if line.strip()]
        return result.returncode == 0 or (bool(lines) and all(_ENDED.search(line) for line in lines))


def _record(text: str) -> Line | None:
    """One job, or one task, of qacct."""
    said = dict(re.findall(r"^(\w+) +(.*?) *$", text, re.MULTILINE))
    number, task = said.get("jobnumber", ""), said.get("taskid", "undefined")
    if not number.isdigit():
        return None
    indices = (int(task),) if task.isdigit() else None
    return Line(number, indices, said.get("jobname"), _ended(said.get("failed", "0"), said.get("exit_status", "")))


def _line(job: ET.Element) -> Line | None:
    number, state = job.findtext("JB_job_number", ""), job.findtext("state", "")
    if not number.isdigit():
        return None
    tasks = job.findtext("tasks")
    indices: list[int] = []
    for first, last, step in re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?", tasks or ""):
        indices += range(int(first), int(last or first) + 1, int(step or 1) or 1)
    name, owner = job.findtext("JB_name"), job.findtext("JB_owner")
    return Line(number, indices if tasks else None, name, _live(state), owner=owner)


def _live(state: str) -> Answer:
    if "E" in state:
        return Answer(
            Phase.QUEUED, f"Grid Engine could not start it ({state}): `qstat -explain E -j JOB` says why", never=True
        )
    if "q" in state:
        return Answer(Phase.QUEUED, "held: `qrls JOB` releases it" if "h" in state else None)
    if set(state) & set("rtdRsST"):
        return Answer(Phase.RUNNING, "suspended" if set(state) & set("sST") else None)
    return Answer(Phase.UNKNOWN, f"Grid Engine says {state}, which nsw does not know")


def _ended(failed: str, status: str) -> Answer:
    code = failed.split(" ", maxsplit=1)[0]
    if code in _FAILED:
        return Answer(Phase.ENDED, _FAILED[code])
    if code != "0" and status in {"137", "0", ""}:  # 100: ended by a signal, as qdel sends it
        return Answer(Phase.ENDED, f"Grid Engine ended the job ({failed})", cancelled=code == "100")
    number = re.match(r"\d+", status)
    if number is None:
        return Answer(Phase.ENDED, "it ended, and Grid Engine has no exit status of it")
    return Answer(Phase.ENDED, clean=True) if number[0] == "0" else ended_by_itself(int(number[0]))


def _extra(line: str) -> str:
    if "\n" in line or "\r" in line:
        raise UsageError(f"resources.extra: a line cannot hold a line break: {line!r}")
    text = line if line.startswith("#") else f"#$ {line}"
    for option in re.findall(r"\s-([A-Za-z_]+)", text):
        if option in _OPTIONS or (option == "l" and "h_rt" in text):
            what = "resources.time sets h_rt" if option == "l" else "nsw sets it itself"
            raise RefusedError(f"resources.extra cannot hold -{option}: {what}", key="extra")
    return text
