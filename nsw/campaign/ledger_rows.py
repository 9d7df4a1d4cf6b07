"""What the ledger holds, as types: the life of a task and of its reports, and why tasks wait."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Self

from nsw.campaign.ledger_values import MAYBE_TEXT, TIME, check_kinds, check_times, column_of, texts


class State(StrEnum):
    """Life of a task. `LOST`: absent from both witnesses, which is not failed."""

    PLANNED = "planned"
    INTENT = "intent"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"


IN_FLIGHT = (State.INTENT, State.SUBMITTED, State.QUEUED, State.RUNNING)
ENDED = (State.DONE, State.FAILED, State.LOST, State.CANCELLED)


class Kind(StrEnum):
    """What a task does, in the order in which they are submitted.

    `REDUCTION`: makes tables of a run's reports beside them; it needs the run to be done.
    """

    BUILD = "build"
    REDUCTION = "reduction"
    RUN = "run"


class Why(StrEnum):
    """Why a task needs another: until that is done (its build, its run), or was read (a stage, the canary)."""

    BUILD = "build"
    RUN = "run"
    STAGE = "stage"
    CANARY = "canary"


class Met(StrEnum):
    """What became of a need. `REFUSED`: its source is of no use; nsw stopped there; who goes on does without."""

    OPEN = "open"
    MET = "met"
    REFUSED = "refused"


class Reading(StrEnum):
    """What became of a run's reports.

    `INCOMPLETE`: read, but the run printed no value for a required figure. `UNREADABLE`: one is
    missing, or has an error.
    """

    NONE = "none"
    COLLECTED = "collected"
    READ = "read"
    INCOMPLETE = "incomplete"
    UNREADABLE = "unreadable"


WERE_READ = (Reading.READ, Reading.INCOMPLETE)  # their rows are in the tables


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger knows it; times are Unix seconds, and repeat 0 is a warm-up, which no statistics see."""

    COLUMNS: ClassVar = (
        "id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus, reports, state, attempt, reason, "
        "exit_code, host, started, ended, reading, submission"
    )
    _KINDS: ClassVar = (
        str, str, str, str, str, MAYBE_TEXT, int, str, int, int, str, str, int, MAYBE_TEXT, int | None, MAYBE_TEXT,
        TIME, TIME, str, MAYBE_TEXT,
    )  # fmt: skip

    id: str
    case_id: str
    params: dict[str, Any]
    pass_name: str
    pass_kind: str
    tool: str | None
    repeat: int
    job: str
    task: int
    gpus: int
    reports: tuple[str, ...]
    state: State
    attempt: int
    reason: str | None
    exit_code: int | None
    host: str | None
    started: float | None
    ended: float | None
    reading: Reading
    submission: str | None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        """From its columns.

        Raises:
            ValueError: They hold what nsw does not write.
        """
        check_kinds(row, cls._KINDS, cls.COLUMNS)
        (id_, case_id, params, pass_name, kind, tool, repeat, job, task, gpus, reports, state, *rest) = row
        attempt, reason, exit_code, host, started, ended, reading, submission = rest
        check_times(started, ended)
        return cls(
            id_, case_id, column_of(params, dict, "params"), pass_name, kind, tool, repeat, job, task, gpus,
            texts(reports, "reports"), State(state), attempt, reason, exit_code, host, started, ended,
            Reading(reading), submission,
        )  # fmt: skip

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took."""
        return None if self.started is None or self.ended is None else self.ended - self.started


@dataclass(frozen=True, slots=True)
class BuildRow:
    """One build of the application: where and how it is made, and its life.

    `id` names its folder beside those of the runs, `app` the folder that it builds in; `place` is login or job;
    `seconds_limit` is how long it may take.
    """

    COLUMNS: ClassVar = (
        "id, job, app, place, command, seconds_limit, gpus, state, attempt, reason, exit_code, host, "
        "started, ended, submission"
    )
    _KINDS: ClassVar = (
        str, str, str, str, str, int, int, str, int, MAYBE_TEXT, int | None, MAYBE_TEXT, TIME, TIME, MAYBE_TEXT,
    )  # fmt: skip

    id: str
    job: str
    app: str
    place: str
    command: str
    seconds_limit: int
    gpus: int
    state: State = State.PLANNED
    attempt: int = 0
    reason: str | None = None
    exit_code: int | None = None
    host: str | None = None
    started: float | None = None
    ended: float | None = None
    submission: str | None = None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> Self:
        """From its columns.

        Raises:
            ValueError: They hold what nsw does not write.
        """
        check_kinds(row, cls._KINDS, cls.COLUMNS)
        (id_, job, app, place, command, limit, gpus, state, *rest) = row
        made = cls(id_, job, app, place, command, limit, gpus, State(state), *rest)
        check_times(made.started, made.ended)
        return made

    @property
    def task(self) -> int:
        """Of its job: there is one."""
        return 0

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took."""
        return None if self.started is None or self.ended is None else self.ended - self.started


@dataclass(slots=True, eq=False)
class Flying:
    """A task in flight: as much of it as is needed to judge it, poll after poll."""

    id: str
    job: str
    task: int
    attempt: int
    state: State
    reason: str | None
    kind: Kind = Kind.RUN
    begun: bool = False  # when and where it began is written down


def lacks_figure(row: RunRow | BuildRow) -> bool:
    """Whether it is a run that is done and printed no value for a required figure."""
    return isinstance(row, RunRow) and row.state is State.DONE and row.reading is Reading.INCOMPLETE


def lacks_reports(row: RunRow | BuildRow) -> bool:
    """Whether it is a run that is done, and reports of which are missing or cannot be read."""
    return isinstance(row, RunRow) and row.state is State.DONE and row.reading is Reading.UNREADABLE


def what_lacks(row: RunRow | BuildRow) -> str | None:
    """What a run that is done lacks, in words."""
    if lacks_figure(row):
        return "without a required figure"
    return "with missing or unreadable reports" if lacks_reports(row) else None
