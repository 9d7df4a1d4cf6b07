"""The contract between the campaign's loop and a scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from nsw.errors import RefusedError


NAME_CHARACTERS = "A-Za-z0-9._-"  # of a submission's name, as in `[...]` of a regular expression
JOBS = "jobs"  # folder of a campaign, on the site, for what jobs print
NO_ID = "ended"  # stored instead of an id when a submission had ended before its id was known
_ARRAY = re.compile(r"(?P<job>.+)/(?P<offset>-?\d+)", re.DOTALL)


class Phase(StrEnum):
    """Where a task is, as far as its scheduler says. `GONE`: the scheduler knows nothing of it (any more).

    `UNKNOWN`: it could not be asked; that is no statement about the task. `LOST`: it could, again and again,
    and nobody knows the task.
    """

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    GONE = "gone"
    LOST = "lost"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the scheduler says of one task, with its reason in words where it gives one.

    `never`: it waits for what will not come; `may_run`: processes of it may run all the same.
    `clean`: it ended without a fault of its own; `cancelled`: if it had not begun, somebody cancelled it.
    `held`: its user holds it; `by_itself`: with an exit status of its own, of which a run tells
    more; `over_time`: over the job's time limit.
    `if_begun`: the answer that holds instead, if the task had begun. `fault`: what the job script reports by its exit
    status of its own surroundings.
    """

    phase: Phase
    reason: str | None = None
    never: bool = False
    clean: bool = False
    may_run: bool = False
    cancelled: bool = False
    if_begun: Answer | None = None
    fault: str | None = None
    held: bool = False
    by_itself: bool = False
    over_time: bool = False


# exit statuses of nsw's job scripts
FAULTS: Final = {
    72: "the file that the campaign's jobs share is missing on the site (scripts/nsw-*.sh), so nothing was begun:"
    " `nsw retry` sends it again and begins the run",
    73: "the job could not write its files: the disk or the quota of the site's scratch folder is full;"
    " `nsw retry` once there is room",
}


def ended_by_itself(code: int, addition: str = "") -> Answer:
    """The answer for a job that ended with an exit status other than 0; `more` stands behind it."""
    return Answer(Phase.ENDED, f"the job failed: exit status {code}{addition}", fault=FAULTS.get(code), by_itself=True)


@dataclass(frozen=True, slots=True)
class Submission:
    """Tasks of one job, handed to the scheduler together under a name of their own.

    `walltime_s` replaces the script's own time limit. With `gpus` None it claims none, and sees those that nsw's own
    commands there see.

    The name is written down before the scheduler hears of it, so that after a crash it can be looked up.
    """

    name: str
    job: str
    script: Path
    attempt: int
    tasks: tuple[int, ...]
    gpus: int | None = 0
    native_id: str | None = None
    walltime_s: int | None = None


@dataclass(frozen=True, slots=True)
class Native:
    """The scheduler's id of a submission. Ids are opaque text.

    Stored as `123` or, for an array, `123/OFFSET`: the task of an array index is index + OFFSET.
    """

    job: str
    offset: int | None = None

    def __str__(self) -> str:
        return self.job if self.offset is None else f"{self.job}/{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> Native | None:
        """Read the stored form; None when there is no id."""
        if not text or text == NO_ID:
            return None
        match = _ARRAY.fullmatch(text)
        return cls(match["job"], int(match["offset"])) if match else cls(text)

    @classmethod
    def of_submission(cls, submission: Submission, job: str, first_index: int = 0) -> Native:
        """Make the id of a submission from the scheduler's id of its job.

        Args:
            submission: The submission. With more than one task it is an array.
            job: The scheduler's id of the job.
            first_index: The array index of the submission's first task.
        """
        return cls(job, submission.tasks[0] - first_index if len(submission.tasks) > 1 else None)

    def index(self, task: int) -> int | None:
        """The array index of a task; None for a job that is no array."""
        return None if self.offset is None else task - self.offset

    def tasks(self, indices: Sequence[int] | None, tasks: Sequence[int]) -> Iterable[int]:
        """The tasks of array indices; for a single job its only task. Empty when only one of both is an array."""
        if self.offset is None or indices is None:
            return tasks[:1] if self.offset is None and indices is None else ()
        return [index + self.offset for index in indices]


def spans(numbers: Iterable[int]) -> list[str]:
    """`0-3` and `7` of rising numbers."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return [str(a) if a == b else f"{a}-{b}" for a, b in parts]


def parse_spans(text: str) -> list[int]:
    """The numbers of `0-3,7`, `0-6:2` or `0-3,7%2`; a part that is none, as in a text cut short, is left out."""
    numbers: list[int] = []
    for part in text.partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip())
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            numbers += range(first, last + 1, max(1, step))
    return numbers


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why it is not known whether a submission was accepted; `passing`: by a fault of the moment.

    `why` is the short form of `message`, one line for a table of runs.
    """

    message: str
    passing: bool = True
    short_reason: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a submission: an id, a refusal or a doubt; none of them when there is no room for now."""

    native: str | None = None
    refused: RefusedError | None = None
    doubt: Doubt | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a batch system can do. The defaults describe the plainest one.

    Attributes:
        arrays: Has job arrays.
        first_index: Lowest array index that nsw uses.
        contiguous: An array is one range of indices without gaps.
        longest_name: Characters of a job name that survive in listings.
        name_characters: What a job name may hold, as in `[...]` of a regular expression; nsw writes `-` for the rest.
        unique_names: A second submission of a name makes no second job. `refusal` must be None for it: nsw then looks
            up the first one. A name that is not found needs no second look.
        restarts: How a job learns that it was started anew. counted: the template's block `restart` prints the number;
            flagged: it learns at most that it was, so nsw counts the starts in files; no: that never happens.
        script_on_stdin: The submit command reads the script from standard input.
        late_end_s: Seconds that the record of an end may come after the job has left the queue. Until then nsw draws no
            conclusion from a job that neither queue nor history knows.
        lists_ended: The queue also lists jobs that ended a while ago. An array of which it lists no task was then
            forgotten, though the history may know some of its tasks; else those show that the others were cancelled.
        history_in_file: The record of an end is a file of the job, not a command's answer.
        slow_cancel_s: Seconds that a cancelled job may still run and be listed; nsw reports it where that is a minute.
        dependencies: "Start after that job succeeded" can be trusted.
        throttle: The number of running array tasks can be limited, and changed later.
        hold: Jobs and array tasks that wait can be held, and released later.
        submissions_per_command: Submissions that nsw sends in one remote command.
        time_step_s: Time limits are rounded up to a multiple of so many seconds.
        least_time_s: The shortest time limit that it takes, in seconds; shorter ones are raised to it.
        unfit_in_script_paths: What the path of a job script may not hold, as in `[...]` of a regular expression.
        arguments: The script gets ATTEMPT and TASK as arguments; else as NSW_ATTEMPT and NSW_TASK.
    """

    arrays: bool = False
    first_index: int = 0
    contiguous: bool = False
    longest_name: int = 64
    name_characters: str = NAME_CHARACTERS
    unique_names: bool = False
    restarts: Literal["counted", "flagged", "no"] = "no"
    script_on_stdin: bool = False
    late_end_s: float = 0
    lists_ended: bool = False
    history_in_file: bool = False
    slow_cancel_s: float = 0
    dependencies: bool = False
    throttle: bool = False
    hold: bool = False
    submissions_per_command: int = 1
    time_step_s: int = 1
    least_time_s: int = 0
    unfit_in_script_paths: str = ""
    arguments: bool = True


class Scheduler(Protocol):
    """A scheduler as the campaign's loop sees it; what has a default here a machine without a queue leaves out."""

    batches: bool  # takes many tasks in one submission and queues them itself
    after: Callable[[str], tuple[str, ...]]  # job -> the scheduler's ids of those that must have succeeded before
    shares_machine: bool  # runs where nsw runs: work of nsw's own would disturb the measurement

    @property
    def can(self) -> Capabilities:
        """What it can do."""

    def most_tasks(self) -> int:
        """How many tasks one submission may hold; also how far apart the first and the last may be."""
        return 1

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may be submitted now."""

    def limit(self, running: int) -> None:
        """How many tasks may run at the same time, from now on."""

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Submit these; returns an outcome for each. A submission in doubt must be looked up with `find`."""

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """The ids of those submissions in doubt that exist, by name.

        Raises:
            UnreachableError: It could not be told.
        """

    def job_of(self, submission: Submission, task: int) -> str | None:  # noqa: ARG002
        """The id that the job script of a task writes into its claim; None where that is not known."""
        return None

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Believe this job about a task from now on: its run's claim names it.

        Args:
            submission: The task's submission.
            task: The task.
            job: The id that the job's script wrote into the claim.
        """

    def due(self) -> bool:
        """Whether a poll is due; always True for a scheduler that is cheap to ask."""
        return True

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """An answer for each task of each submission, by its name."""

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End what is queued or running of these, of each only the tasks that it names."""

    def hold(self, submissions: Sequence[Submission], *, hold: bool) -> None:
        """Hold the waiting tasks of these, or release them, where the scheduler can.

        Raises:
            NswError: It could not be asked.
        """

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after so many seconds."""

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run by this process."""
        return {}
