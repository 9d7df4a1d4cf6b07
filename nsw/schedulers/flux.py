"""Flux: the commands to ask it with, and what they print. Pure: argument lists out, text in.

Written from the manual pages of flux-core and its issues, and not yet run against a real instance (docs/schedulers.md).
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandResult, RefusedError, UsageError
from nsw.schedulers import adapter
from nsw.schedulers.adapter import Adapter, Line, Refusal, Request, Watched, job_ids, known_refusals, refused_options
from nsw.schedulers.model import Answer, Capabilities, Phase, ended_by_itself

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Job

# an id in base58, printed behind an f with a hook where the language has it; every command takes a plain f too
_ID: Final = r"[ƒf]([1-9A-HJ-NP-Za-km-z]{1,12})"
_FIELDS: Final = (
    "id.f58", "state", "result", "returncode", "urgency", "username", "name", "exception.type", "exception.note",
)  # fmt: skip
_DELIMITER: Final = "^"  # which the last field, free text, may hold
_FORMAT: Final = _DELIMITER.join(f"{{{field}}}" for field in _FIELDS)
_EACH: Final = 'code=0; for job; do flux job urgency "$job" {} || code=$?; done; exit "$code"'
_ERROR: Final = re.compile(r"^flux[- ]batch: (?:error|ERROR): (?:\[Errno \d+\] )?(.+)", re.MULTILINE)
_PLAIN: Final = r"[A-Za-z0-9_.,@+/-]+"
_PENDING: Final = frozenset({"NEW", "DEPEND", "PRIORITY", "SCHED"})


class Flux(Adapter):
    """Flux, as the system's instance or one that runs inside another system's job."""

    name = "Flux"
    marker = "# flux:"
    marker_pattern = "# ?(?:flux|FLUX):"
    submit = "flux"
    queue = "flux jobs"
    submitted = _ID
    asks = MappingProxyType({
        "-q": "queue", "--queue": "queue", "-B": "account", "--bank": "account", "--job-name": "name",
        "-t": "time", "--time-limit": "time", "-N": "nodes", "--nodes": "nodes", "-n": "tasks", "--nslots": "tasks",
        "-c": "cpus", "--cores-per-slot": "cpus", "-g": "task_gpus", "--gpus-per-slot": "task_gpus",
        "--output": "output", "--error": "output", "-x": "exclusive", "--exclusive": "exclusive",
    })  # fmt: skip
    flags = frozenset({"-x", "--exclusive"})
    variables = "FLUX_"
    keys = frozenset({"queue", "account", "exclusive"})
    capabilities = Capabilities(hold=True, lists_ended=True, submissions_per_command=20)
    # the instance may or may not have heard it
    passing = (
        r"unable to connect to flux|broker socket|flux_open|lost connection|connection (?:refused|reset|timed out)"
        r"|host is unreachable|got (?:send|read) (?:error|timeout)|timed? ?out|function not implemented"
    )
    over = r"job is inactive|unknown job|inactive job|no such job"
    preamble = r"^flux[- ]\w+: (?:ERROR: )?(?:\[Errno \d+\] )?"
    sign_of_life = ("flux", "uptime")

    # --- submitting ---------------------------------------------------------------------------------------

    def head(self, job: Job, scratch: str, extra: list[str]) -> list[str]:
        """The `# flux:` lines, all with one marker as Flux demands: a slot is what the job has of one node."""
        if "{{" in scratch:
            raise UsageError(f"scratch must not hold {{{{, which Flux replaces: {scratch}")
        needs = job.resources
        if needs.memory_bytes is not None:
            raise RefusedError("Flux counts no memory", key="memory", hint="leave it out, or set exclusive: true")
        gpus = adapter.gpus_per_node(needs, "as nsw asks Flux for them")
        cores = max(1, -(-needs.tasks // needs.nodes)) * (needs.cpus_per_task or 1)
        lines = [
            f"--nodes={needs.nodes} --nslots={needs.nodes} --cores-per-slot={cores}",
            *([f"--gpus-per-slot={gpus}"] if gpus else []),
            *(["--exclusive"] if needs.exclusive else []),
            f"--time-limit={job.walltime_s}s",
        ]
        for key, option in (("queue", "--queue="), ("account", "--setattr=bank=")):
            value = getattr(needs, key)
            if value is not None:
                if not re.fullmatch(_PLAIN, value):
                    raise RefusedError(f"Flux's {option} cannot be {value!r}", key=key)
                lines.append(f"{option}{value}")
        own = [re.sub(f"^{self.marker_pattern}", self.marker, line) for line in extra]
        return [*(f"{self.marker} {line}" for line in lines), *own]

    def unwanted(self, line: str) -> tuple[str, str] | None:
        """The first option that is nsw's own."""
        for option, _ in self.options_in(line):
            if reason := refused_options("flux").get(option):
                return option, reason
        return None

    def submit_command(self, request: Request) -> list[str]:
        """The flux batch of a submission: it copies the script, which gets the words behind it."""
        if "{{" in request.log:
            raise UsageError(f"the campaign's folder must not hold {{{{, which Flux replaces: {request.log}")
        submission = request.submission
        words = ["flux", "batch", f"--job-name={submission.name}", f"--output={request.log}.log"]
        if request.walltime_s is not None:
            words.append(f"--time-limit={request.walltime_s}s")
        return [*words, request.script, str(submission.attempt), str(submission.tasks[0])]

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Why flux batch refused, where it is one of the known sentences."""
        match = _ERROR.search(result.stderr)
        if match is None or result.returncode <= 0 or self.transient(result) or self.parse_submitted(result):
            return None
        return adapter.explain_refusal(match[1].strip(), known_refusals("flux"))

    # --- asking -------------------------------------------------------------------------------------------

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """All of the user's jobs that the instance knows, those that ended too: an unknown id would be an error."""
        return ["flux", "jobs", "-a", "-n", "--count=0", "--color=never", f"--format={_FORMAT}"]

    def owners_command(self, watched: Sequence[Watched]) -> list[str] | None:  # noqa: ARG002
        """The jobs of all users."""
        return ["flux", "jobs", "-A", "-n", "--count=0", "--color=never", f"--format={_FORMAT}"]

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """The listed jobs; other text is passed over."""
        if result.returncode != 0 or result.timed_out:
            return None
        lines = []
        for text in result.stdout.splitlines():
            fields = text.split(_DELIMITER, len(_FIELDS) - 1)
            if len(fields) == len(_FIELDS) and (match := re.fullmatch(_ID, fields[0].strip())):
                _, state, outcome, code, urgency, owner, name, *exception = fields
                lines.append(Line(match[1], None, name, answer(state, outcome, code, urgency, *exception), owner=owner))
        return lines

    # --- ending -------------------------------------------------------------------------------------------

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """One flux cancel for all of these."""
        words = _flux_job_ids(watched)
        return ["flux", "cancel", *words] if words else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """A flux job urgency for each, in one command: it takes only one id. It changes only what waits."""
        words = _flux_job_ids(watched)
        return ["bash", "-c", _EACH.format("hold" if hold else "default"), "nsw", *words] if words else None


def _flux_job_ids(watched: Sequence[Watched]) -> list[str]:
    return [f"f{job}" for job in job_ids(watched)]


def answer(state: str, outcome: str, code: str, urgency: str, kind: str, note: str) -> Answer:
    """What a job's columns mean together; an unknown state is no statement.

    Args:
        state: Where the job is, such as SCHED.
        outcome: How it ended, empty before.
        code: The exit status, below 0 for a signal; empty where there is none.
        urgency: 0 where its user holds it.
        kind: The type of the exception that ended it; empty where none did.
        note: What the exception says.
    """
    if state in _PENDING:
        is_held = urgency == "0"
        return Answer(
            Phase.QUEUED, "held: `flux job urgency JOB default` releases it" if is_held else None, held=is_held
        )
    if state in {"RUN", "CLEANUP"}:
        return Answer(Phase.RUNNING)
    if state != "INACTIVE":
        return Answer(Phase.UNKNOWN, f"Flux says {state}, which nsw does not know")
    if outcome == "COMPLETED":
        return Answer(Phase.ENDED, clean=True)
    if outcome == "TIMEOUT" or kind == "timeout":
        return Answer(Phase.ENDED, "the job was over its time limit", over_time=True)
    said = f": {note}" if note else ""
    if outcome == "CANCELED" or kind == "cancel":
        return Answer(Phase.ENDED, f"the job was cancelled{said}", cancelled=True)
    if kind and kind != "exec":
        return Answer(Phase.ENDED, f"Flux ended the job ({kind}{said})")
    if re.fullmatch(r"[1-9]\d*", code):
        return ended_by_itself(int(code))
    if re.fullmatch(r"-[1-9]\d*", code):
        return ended_by_itself(128 - int(code), f", as after signal {code[1:]}")
    return Answer(Phase.ENDED, f"it ended, and Flux has no exit status of it{said}")
