"""A batch system and its login node as one scheduler: each task goes where its job says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.schedulers.batch import BatchScheduler
    from nsw.schedulers.model import Answer, Outcome, Submission

JOB: Final = "job"
LOGIN: Final = "login"
ON_LOGIN: Final = 2  # tasks at a time on a node that others use too


class Places:
    """The batch system for most tasks, the login node for those that are small.

    Both are asked as `nsw.schedulers.model.Scheduler` says, each at its own pace: what the login node does is no
    reason to ask the batch system more often.

    Args:
        jobs: The batch system.
        login: The login node, on which tasks are processes under a supervisor.
        place_of: Where the tasks of a job go: job or login.
    """

    batches = True
    shares_machine = False

    def __init__(self, jobs: BatchScheduler, login: BatchScheduler, place_of: Callable[[str], str]) -> None:
        self.parts = {JOB: jobs, LOGIN: login}
        self._jobs = jobs
        self._place_of = place_of
        self._places: dict[str, str] = {}
        self._asked: set[str] = set(self.parts)  # the places that had something in flight
        self._said: dict[str, dict[int, Answer]] = {}

    @property
    def after(self) -> Callable[[str], str | None]:
        """Job -> the batch system's id of one that must have succeeded before."""
        return self._jobs.after

    @after.setter
    def after(self, after: Callable[[str], str | None]) -> None:
        self._jobs.after = after

    @property
    def contiguous(self) -> bool:
        """Whether a submission must hold tasks without gaps."""
        return self._jobs.contiguous

    @property
    def longest_name(self) -> int:
        """Characters that a submission's name may have."""
        return min(part.longest_name for part in self.parts.values())

    @property
    def name_characters(self) -> str:
        """What a submission's name may hold: what the batch system's may, which is never more than a file's."""
        return self._jobs.name_characters

    @property
    def dependencies(self) -> bool:
        """Whether `after` is honoured."""
        return self._jobs.dependencies

    @property
    def together(self) -> int:
        """How many submissions of one place `submit` takes at once."""
        return min(part.together for part in self.parts.values())

    def place(self, submission: Submission) -> str:
        """Where a submission goes."""
        if submission.job not in self._places:
            self._places[submission.job] = self._place_of(submission.job)
        return self._places[submission.job]

    def of_place(self, place: str, submissions: Iterable[Submission]) -> list[Submission]:
        """Those of these that are in a place."""
        return [one for one in submissions if self.place(one) == place]

    def most_tasks(self) -> int:
        """How many tasks one submission to the batch system may hold."""
        return self._jobs.most_tasks()

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks the batch system takes now."""
        return self._jobs.room(self.of_place(JOB, in_flight))

    def room_on_login(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may be begun on the login node now."""
        return self.parts[LOGIN].room(self.of_place(LOGIN, in_flight))

    def limit(self, running: int) -> None:
        """How many tasks of the batch system may run at the same time; with 0 nothing begins on the login node."""
        self._jobs.limit(running)
        self.parts[LOGIN].limit(min(running, ON_LOGIN))

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Hand these over, each to its place; an outcome for each, in their order."""
        found: dict[str, Outcome] = {}
        for place, some in self._split(submissions):
            self._asked.add(place)
            found |= {one.name: got for one, got in zip(some, self.parts[place].submit(some), strict=True)}
        return [found[one.name] for one in submissions]

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """The ids of those that exist, by name.

        Raises:
            UnreachableError: One place could not tell.
        """
        return {k: v for place, some in self._split(submissions) for k, v in self.parts[place].find(some).items()}

    def job_of(self, submission: Submission, task: int) -> str | None:
        """The id that the job script of a task writes into its claim."""
        return self.parts[self.place(submission)].job_of(submission, task)

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Believe this job about a task from now on."""
        self.parts[self.place(submission)].follow(submission, task, job)

    def due(self) -> bool:
        """Whether it is time to ask a place that has something in flight."""
        return any(self.parts[place].due() for place in self._asked)

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """Ask the places whose time it is, and all when it is nobody's: of the others what they said last."""
        parts = self._split(submissions)
        self._asked = {place for place, _ in parts}
        due = {place for place, some in parts if self.parts[place].due()}
        said: dict[str, dict[int, Answer]] = {}
        for place, some in parts:
            if due and place not in due:
                said |= {one.name: self._said[one.name] for one in some if one.name in self._said}
            else:
                said |= self.parts[place].poll(some)
        self._said = said
        return said

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End what is queued or running of these.

        Raises:
            CommandError: It failed.
        """
        for place, some in self._split(submissions):
            self.parts[place].cancel(some)

    def hold(self, submissions: Sequence[Submission], *, held: bool) -> None:
        """Keep what waits of these in the batch system from starting, or let it go again.

        Raises:
            NswError: It could not be asked.
        """
        if some := self.of_place(JOB, submissions):
            self._jobs.hold(some, held=held)

    def wait(self, seconds: float) -> None:
        """Return when it is time to ask, at the latest after so many seconds."""
        self._jobs.wait(seconds)

    def calls(self) -> dict[str, int]:
        """How often each command was run; those of the login node's supervisor are one."""
        login = sum(self.parts[LOGIN].calls().values())
        return self._jobs.calls() | ({"login node": login} if login else {})

    def _split(self, submissions: Sequence[Submission]) -> list[tuple[str, list[Submission]]]:
        return [(place, some) for place in self.parts if (some := self.of_place(place, submissions))]
