"""What a batch system must be told in its own words, and what its answers become: a file per system fills this in.

Pure: argument lists out, text in. Everything that runs a command, waits or remembers stands in batch.py and polling.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.errors import CommandResult
    from nsw.plan.model import Job
    from nsw.schedulers.model import Answer, Submission


@dataclass(frozen=True, slots=True)
class Native:
    """A submission as the scheduler knows it: its job id and, of an array, which task its index 0 is.

    Written as `123` or, of an array, `123/0`.
    """

    job: str
    offset: int | None = None

    def __str__(self) -> str:
        return self.job if self.offset is None else f"{self.job}/{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> Native | None:
        """Read it back; None when it is none (a submission that had ended before it was found)."""
        match = re.fullmatch(r"(\d[^/\s]*)(?:/(\d+))?", text or "")
        return match and cls(match[1], None if match[2] is None else int(match[2]))

    @classmethod
    def of(cls, submission: Submission, job: str) -> Native:
        """How a submission with this job id is written down."""
        return cls(job, submission.tasks[0] if len(submission.tasks) > 1 else None)

    def tasks(self, indices: Sequence[int] | None, tasks: Sequence[int]) -> Iterable[int]:
        """The tasks of array indices; of a single job its only one. None of them when only one of both is an array."""
        if self.offset is None or indices is None:
            return tasks[:1] if self.offset is None and indices is None else ()
        return [index + self.offset for index in indices]


@dataclass(frozen=True, slots=True)
class Line:
    """One job, or tasks of an array of which the same is true, in the words of the queue or the history.

    `indices` is None for a job that is no array. `vague`: of which tasks it speaks, or why each of them waits, does
    not all stand there.
    """

    job: str
    indices: Sequence[int] | None
    name: str
    answer: Answer
    vague: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What a cluster is set to; `history` says whether it knows of jobs that are out of its queue."""

    version: str = ""
    max_array_size: int = 1001
    min_job_age_s: int = 300
    history: bool = True


class Dialect(Protocol):
    """One batch system's words; a module that has these names is one."""

    NAME: str  # of the system, for sentences
    SUBMIT: str  # its commands, for sentences
    QUEUE: str
    HISTORY: str
    # variables that would change what the commands do or print, by how they begin, and those of them that stay
    CLEARED: tuple[str, ...]
    KEPT: tuple[str, ...]

    # --- the head of a job script -------------------------------------------------------------------------

    def directives(self, job: Job, scratch: str) -> list[str]:
        """The lines of one job; of an array each task gets what they ask.

        Raises:
            UsageError: A value cannot stand on such a line.
            RefusedError: A line of the recipe's own asks for what nsw must do itself.
        """

    # --- before there is a campaign -----------------------------------------------------------------------

    def sign_of_life_command(self) -> list[str]:
        """What every user may ask and costs little."""

    def test_command(self, script: str) -> list[str] | None:
        """Ask whether and when a script could run, without submitting it; None where that cannot be asked."""

    def parse_test(self, result: CommandResult) -> str | None:
        """When it would start; None when it was refused."""

    def facts_command(self) -> list[str]:
        """What the cluster is set to."""

    def parse_facts(self, stdout: str) -> Facts:
        """The settings that matter here; what is not said is taken as the system's default."""

    # --- submitting ---------------------------------------------------------------------------------------

    def submit_command(
        self,
        submission: Submission,
        *,
        script: str,
        log: str,
        comment: str,
        throttle: int | None = None,
        after: str | None = None,
    ) -> list[str]:
        """Submit: an array when it holds several tasks; what it needs stands in the script.

        Args:
            submission: What to submit.
            script: The script's path there.
            log: File for what the job script prints, without its ending; it is taken literally.
            comment: Comes back from the queue and the history where the system has comments.
            throttle: How many tasks may run at the same time.
            after: A job that must have succeeded before; if it fails, this one ends.
        """

    def parse_submitted(self, stdout: str) -> str | None:
        """The job id; None where no line or several could be one."""

    def is_full(self, result: CommandResult) -> bool:
        """Refused only because enough is in the queue already."""

    def transient(self, result: CommandResult) -> bool:
        """A fault of the moment, which says nothing of the job."""

    def in_doubt(self, result: CommandResult) -> bool:
        """Whether a command that failed may yet have done its work, or not."""

    def complaints(self, result: CommandResult) -> list[str]:
        """The lines in which a command said what is wrong."""

    def refusal(self, result: CommandResult) -> tuple[str, str | None, str | None]:
        """Why a job was refused: a sentence, the key of `resources` that asks for it, what to do."""

    # --- asking -------------------------------------------------------------------------------------------

    def queue_command(self, names: Sequence[str] = (), *, each: bool = False) -> list[str]:
        """One command for everything in the queue; `each`: a line for each task that waits."""

    def answered(self, result: CommandResult) -> bool:
        """Whether a command that asks got its answer."""

    def parse_queue(self, stdout: str) -> list[Line]:
        """The lines of `queue_command`; what is no such line is left out."""

    def history_commands(self, jobs: Mapping[str, str]) -> list[list[str]]:
        """Ask after jobs that the queue does not know any more: their ids, each with how its log's path begins."""

    def history_by_name_command(self, name: str, minutes: int) -> list[str]:
        """Ask after a job of the last minutes by its name."""

    def parse_history(self, stdout: str) -> list[Line]:
        """The lines of both."""

    def no_history(self, result: CommandResult) -> bool:
        """Whether an answer says that there is no history to ask, now and later."""

    def job_of(self, native: str | None, task: int) -> str | None:
        """What the system calls a task of a submission."""

    def log_name(self, submission: str, native: str | None, task: int) -> str:
        """The file, in the folder of jobs, with what the job script of a task printed."""

    def memory_words(self, log: str) -> str | None:
        """The line of a job's output that tells of too much memory, where the state may not say so."""

    # --- changing -----------------------------------------------------------------------------------------

    def cancel_command(self, submissions: Sequence[Submission]) -> list[str] | None:
        """One command to end all of these; of an array only the tasks that are named. None: there is nothing."""

    def cancelled(self, result: CommandResult) -> bool:
        """Whether that ended what there was to end; what had ended by itself is no fault."""

    def throttle_command(self, native: Native, limit: int) -> list[str] | None:
        """Change how many tasks of an array may run at the same time; None where that cannot be changed."""
