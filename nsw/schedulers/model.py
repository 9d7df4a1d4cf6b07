"""What the campaign's loop asks of a scheduler, and the answers that it gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


BY_ITSELF = "the job failed"  # with an exit status of its own: what a run says of itself tells more


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

    `never`: it waits for what will not come; `may_run`: and yet an earlier launch of it may still run.
    `clean`: it ended without a fault of its own.
    """

    phase: Phase
    reason: str | None = None
    never: bool = False
    clean: bool = False
    may_run: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """Tasks of one job, handed to the scheduler together under a name of their own.

    The name is written down before the scheduler hears of it, so that after a crash it can be looked up.
    """

    name: str
    job: str
    script: Path
    attempt: int
    tasks: tuple[int, ...]
    gpus: int = 0
    native_id: str | None = None


class Scheduler(Protocol):
    """A scheduler as the campaign's loop sees it."""

    batches: bool  # takes many tasks in one submission and queues them itself
    after: Callable[[str], str | None]  # job -> the scheduler's id of one that must have succeeded before
    shares_machine: bool  # runs where nsw runs: work of nsw's own would disturb the measurement

    def most_tasks(self) -> int:
        """How many tasks one submission may hold; also how far apart the first and the last may be."""

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may be submitted now."""

    def limit(self, running: int) -> None:
        """How many tasks may run at the same time, from now on."""

    def submit(self, submission: Submission) -> str | None:
        """Hand it over; the scheduler's id, or None when there is no room for it after all.

        Raises:
            RefusedError: It will never take this one.
            UnreachableError: It could not be told whether it was taken; `find` must be asked.
        """

    def find(self, submission: Submission) -> str | None:
        """The id of a submission whose outcome is in doubt, by its name; None when there is none.

        Raises:
            UnreachableError: It could not be told.
        """

    def due(self) -> bool:
        """Whether it is time to ask again; a scheduler that costs nothing to ask always says yes."""

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """An answer for each task of each submission, by its name."""

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End what is queued or running of these, of each only the tasks that it names."""

    def wait(self, seconds: float) -> None:
        """Return when something may have changed, at the latest after so many seconds."""

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run by this process."""
