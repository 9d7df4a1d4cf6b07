"""A machine elsewhere without a batch system, such as a GPU workstation: jobs run there under a supervisor in bash.

Each job is a session of its own that goes on when the connection ends. It waits for its turn, or for its GPUs, which it
claims as an nsw on that machine would. Jobs that wait are blocked in flock; only a campaign's first looks for GPUs.
What a job left tells its state: LOG.host holds its id (process and start time) and queued, running or ended with an
exit status.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from nsw.schedulers.adapter import Adapter, Line, Refusal, Request, Watched
from nsw.schedulers.model import Answer, Capabilities, Phase, ended_by_itself

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.errors import CommandResult

_CANCELLED = "143"
_WAITS = {"held": "held by `nsw throttle 0`", "turn": "waits for its turn: other runs go on"}


class Host(Adapter):
    """The machine behind a transport.

    Args:
        cpu_runs: How many jobs that claim no GPU run at a time, of all the user's campaigns there; None: all at once,
            as on a login node, where the caller limits them.
    """

    name = "the machine"
    marker = "#NSW"
    submit = "bash"
    queue = "the supervisor"
    submitted = r"(\d+\.\d+)"  # process and start time
    sign_of_life = ("true",)
    capabilities = Capabilities(unique_names=True, hold=True, submissions_per_command=50)
    keys = frozenset({"queue", "partition", "account", "qos", "gres", "constraint", "reservation", "exclusive"})

    def __init__(self, cpu_runs: int | None = None) -> None:
        self._cpu_runs = cpu_runs

    def submit_command(self, request: Request) -> list[str]:
        """Start the supervisor of one task."""
        submission = request.submission
        needs = "any" if submission.gpus is None else str(submission.gpus)
        if self._cpu_runs and not submission.gpus:
            needs += f"/{self._cpu_runs}"
        return _words("submit", request.log, needs, request.script, submission.attempt, submission.tasks[0])

    def refusal(self, result: CommandResult) -> Refusal | None:
        """Too many GPUs, or no way to wait for them."""
        messages = [line[5:] for line in result.stderr.splitlines() if line.startswith("nsw: ")]
        if result.returncode != 3 or not messages:
            return None
        if "flock" in messages[0]:
            return Refusal(messages[0], None, "install util-linux there, or put its flock on PATH")
        return Refusal(messages[0], "gpus", "`nvidia-smi -L` there lists what the machine has")

    def queue_command(self, watched: Sequence[Watched], *, detail: bool = False) -> list[str]:  # noqa: ARG002
        """The states of all of these."""
        return _words("list", *(job.log for job in watched))

    def owners_command(self, watched: Sequence[Watched]) -> None:
        """None: a job is known by its files, which bear its name."""

    def parse_queue(self, result: CommandResult) -> list[Line] | None:
        """A line a job; the last line says that the list is whole."""
        lines = result.stdout.splitlines()
        if result.returncode != 0 or result.timed_out or lines[-1:] != ["end"]:
            return None
        rows = [line.split("\t") for line in lines[:-1]]
        return [Line(job, None, name, _answer(state)) for name, job, state in (row for row in rows if len(row) == 3)]

    def cancel_command(self, watched: Sequence[Watched]) -> list[str] | None:
        """End every process of these jobs."""
        return _words("cancel", *(job.log for job in watched)) if watched else None

    def hold_command(self, watched: Sequence[Watched], *, hold: bool) -> list[str] | None:
        """Keep the jobs that wait from beginning, or let them."""
        return _words("hold" if hold else "release", *(job.log for job in watched)) if watched else None

    def limit_command(self, jobs: str, running: int) -> list[str] | None:
        """Let the supervisors of a campaign start only so many at a time; none on a login node."""
        return _words("limit", jobs, running) if self._cpu_runs else None


def _answer(state: str) -> Answer:
    word, _, rest = state.partition(" ")
    if word == "queued":
        return Answer(Phase.QUEUED, _WAITS.get(rest, "waits for its GPUs"))
    if word == "running":
        return Answer(Phase.RUNNING)
    code, _, message = rest.strip().partition(" ")
    if word != "ended":
        return Answer(Phase.UNKNOWN)
    if code == "0":
        return Answer(Phase.ENDED, clean=True)
    if code == "-":
        return Answer(Phase.ENDED, "its processes were killed, or the machine restarted")
    if code == _CANCELLED:
        return Answer(Phase.ENDED, "the job was cancelled", cancelled=True)
    return Answer(Phase.ENDED, message) if message else ended_by_itself(int(code))


def _words(*words: object) -> list[str]:
    return ["bash", "-c", _script(), "nsw", *map(str, words)]


@lru_cache(maxsize=1)
def _script() -> str:
    return files("nsw.schedulers").joinpath("host_supervisor.sh").read_text(encoding="utf-8")
