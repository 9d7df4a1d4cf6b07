"""What the ledger holds, as types: the life of a task and of its reports, why tasks wait, the facts of a campaign."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import EnumType, StrEnum
from functools import cache, lru_cache, partial
from operator import itemgetter
from types import UnionType
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

__all__ = [
    "AGAIN",
    "APP_FOLDER",
    "AT_A_TIME",
    "BAD",
    "CALLS",
    "CLEANED",
    "COLLECT",
    "CREATED",
    "ENDED",
    "FAILED_BEFORE",
    "FIGURES_FROM",
    "HELD",
    "IN_FLIGHT",
    "NAME",
    "NOTE",
    "ORIGINS",
    "OWNED_BY",
    "PARTS",
    "PLACES",
    "PREPARED",
    "RECIPE",
    "RECORDED",
    "SCRATCH",
    "SITE",
    "SITE_DATA",
    "STOPPED",
    "STOP_AFTER",
    "TAKEN_OVER",
    "UNTIL",
    "VERSION",
    "VERSIONS",
    "WERE_READ",
    "WITH_OUTPUT",
    "Absent",
    "BuildRow",
    "Cause",
    "Choice",
    "Doomed",
    "Key",
    "Kind",
    "NeedReason",
    "NeedState",
    "Pending",
    "Problem",
    "ProgramVersion",
    "Reading",
    "RunRow",
    "State",
    "SubmissionRow",
    "TaskInFlight",
    "Waiting",
    "is_site",
    "lacks_figure",
    "lacks_reports",
    "missing_results",
    "row_reader",
    "withdrawals_of",
]

T = TypeVar("T")
_TEXTS: Final = (str, str | None)


# --- tasks --------------------------------------------------------------------------------------------------------


class State(StrEnum):
    """Life of a task.

    `INVALID`: done, and a check of the recipe does not hold, as its output and reports show. `LOST`: absent from both
    witnesses, which is not failed.
    """

    PLANNED = "planned"
    INTENT = "intent"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    INVALID = "invalid"
    LOST = "lost"
    CANCELLED = "cancelled"


IN_FLIGHT = (State.INTENT, State.SUBMITTED, State.QUEUED, State.RUNNING)
BAD = (State.FAILED, State.INVALID, State.LOST)  # a retry does them again, cancelled ones beside
ENDED = (State.DONE, *BAD, State.CANCELLED)
WITH_OUTPUT = (State.DONE, State.INVALID, State.FAILED)  # of which reports are read


class Kind(StrEnum):
    """What a task does, in the order in which they are submitted.

    `REDUCTION`: makes tables of a run's reports beside them; it needs the run to be done.
    """

    BUILD = "build"
    REDUCTION = "reduction"
    RUN = "run"


class NeedReason(StrEnum):
    """Why a task needs another: until that is done (its build, its run), or was read (a stage, the canary)."""

    BUILD = "build"
    RUN = "run"
    STAGE = "stage"
    CANARY = "canary"


class NeedState(StrEnum):
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


class Cause(StrEnum):
    """Why a task is in its state, as far as nsw acts on it."""

    SKIPPED = "skipped"  # its source did not give what it needs
    SET_UP = "set-up"  # the recipe's set-up kept the program from beginning
    EXIT = "exit"  # the program ended by itself with an exit status
    OVER_TIME = "over-time"  # of the run's own limit
    HELD_BY_SCHEDULER = "held"  # by its user, in the scheduler's queue
    DOUBT = "doubt"  # whether the scheduler has it


_SENTENCES: Final = {
    Cause.SKIPPED: "skipped: {}",
    Cause.DOUBT: "not submitted, as far as is known, since {}",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is in its state: what nsw acts on, and what is known beside it. The sentence is made here alone."""

    detail: str
    cause: Cause | None = None

    def __str__(self) -> str:
        return _SENTENCES.get(self.cause, "{}").format(self.detail) if self.cause else self.detail

    @classmethod
    def from_text(cls, detail: str | None, cause: Cause | None) -> Reason | None:
        """From the columns of a task."""
        return None if detail is None else cls(detail, cause)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger knows it; times are Unix seconds, and repeat 0 is a warm-up, which no statistics see."""

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
    detail: str | None
    exit_code: int | None
    host: str | None
    started: float | None
    ended: float | None
    reading: Reading
    submission: str | None
    cause: Cause | None = None
    app: str | None = None  # the folder of the program that it runs, beside those of the runs

    @property
    def reason(self) -> str | None:
        """Why it is in its state, as a sentence."""
        return _reason_text(self.detail, self.cause)

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

    id: str
    job: str
    app: str
    place: str
    command: str
    seconds_limit: int
    gpus: int
    state: State = State.PLANNED
    attempt: int = 0
    detail: str | None = None
    exit_code: int | None = None
    host: str | None = None
    started: float | None = None
    ended: float | None = None
    submission: str | None = None
    cause: Cause | None = None

    @property
    def reason(self) -> str | None:
        """Why it is in its state, as a sentence."""
        return _reason_text(self.detail, self.cause)

    @property
    def task(self) -> int:
        """The index of its task in its job, which has one."""
        return 0

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took."""
        return None if self.started is None or self.ended is None else self.ended - self.started


@dataclass(slots=True, eq=False)
class TaskInFlight:
    """A task in flight: as much of it as is needed to judge it, poll after poll."""

    id: str
    job: str
    task: int
    attempt: int
    state: State
    detail: str | None
    kind: Kind = Kind.RUN
    started: float | None = None  # when it began, as it is written down
    cause: Cause | None = None

    @property
    def reason(self) -> Reason | None:
        """Why it is in its state."""
        return Reason.from_text(self.detail, self.cause)

    @reason.setter
    def reason(self, reason: Reason | None) -> None:
        """Set the reason and its cause; None clears both."""
        self.detail, self.cause = (None, None) if reason is None else (reason.detail, reason.cause)


@dataclass(frozen=True, slots=True)
class Choice:
    """What an earlier stage decided for a run.

    Attributes:
        arguments: The words that the run's command gets.
        limit_s: Time limit of the run in seconds; None for that of the plan.
        source: The run whose tables decided.
        note: What was chosen, for people; becomes part of the lockfile.
    """

    arguments: tuple[str, ...]
    limit_s: int | None
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A task that can not begin, since what it needs will not be done."""

    task: str
    why: NeedReason
    source: str
    state: State  # of the source
    detail: str | None  # of the source, as its cause
    cause: Cause | None

    @property
    def reason(self) -> str | None:
        """Why the source is in its state, as a sentence."""
        return _reason_text(self.detail, self.cause)


class Pending(NamedTuple):
    """A task to submit: what its next attempt is, and the GPUs that it uses at the same time."""

    job: str
    task: int
    attempt: int
    gpus: int


class SubmissionRow(NamedTuple):
    """A submission without its script."""

    name: str
    job: str
    attempt: int
    tasks: tuple[int, ...]
    gpus: int
    native_id: str | None


class Waiting(NamedTuple):
    """Runs that are submitted and wait for the same reason."""

    state: State
    detail: str | None
    cause: Cause | None
    id: str  # of the first
    runs: int


class Absent(NamedTuple):
    """What was asked and could not be done here, and for how many runs."""

    what: str
    reason: str
    runs: int


class Problem(NamedTuple):
    """What is wrong with a report of a run, or with the run."""

    run: str
    report: str | None
    severity: str
    message: str
    fix: str | None


def _reason_text(detail: str | None, cause: Cause | None) -> str | None:
    reason = Reason.from_text(detail, cause)
    return None if reason is None else str(reason)


def lacks_figure(row: RunRow | BuildRow) -> bool:
    """Whether it is a run that is done and printed no value for a required figure."""
    return isinstance(row, RunRow) and row.state is State.DONE and row.reading is Reading.INCOMPLETE


def lacks_reports(row: RunRow | BuildRow) -> bool:
    """Whether it is a run that is done, and reports of which are missing or cannot be read."""
    return isinstance(row, RunRow) and row.state is State.DONE and row.reading is Reading.UNREADABLE


def missing_results(row: RunRow | BuildRow) -> str | None:
    """What a run that is done lacks, in words."""
    if lacks_figure(row):
        return "without a required figure"
    return "with missing or unreadable reports" if lacks_reports(row) else None


# --- values of the file as types ----------------------------------------------------------------------------------


def _enum_or_none(values: EnumType, value: str | None) -> Any:
    return None if value is None else values(value)


@cache
def _field_converters(kind: Callable[..., Any]) -> dict[str, Callable[[Any], Any] | None]:
    """The converter from the file's value for each field of a row type; None where both are the same."""
    converters: dict[str, Callable[[Any], Any] | None] = {}
    for name, hint in get_type_hints(kind).items():
        if isinstance(hint, EnumType):
            converters[name] = hint
        elif isinstance(values := (get_args(hint) or (None,))[0], EnumType):
            converters[name] = partial(_enum_or_none, values)
        elif get_origin(hint) is dict:
            converters[name] = json.loads
        elif get_origin(hint) is tuple:  # many runs have reports of the same names
            converters[name] = lru_cache(maxsize=1024)(lambda text: tuple(json.loads(text)))
        else:
            converters[name] = None
    return converters


def row_reader(kind: Callable[..., T], columns: Sequence[str]) -> Callable[[tuple[Any, ...]], T]:
    """What makes rows of these columns a type whose fields have the same names; other columns are passed over.

    It raises sqlite3.DataError where a value is not what nsw writes: the file is damaged, as where SQLite finds that.
    """
    fields = {name: convert for name, convert in _field_converters(kind).items() if name in columns}
    conversions = [(at, name, convert) for at, (name, convert) in enumerate(fields.items()) if convert]
    pick = itemgetter(*map(columns.index, fields))

    def read_row(row: tuple[Any, ...]) -> T:
        values = list(pick(row))
        for at, name, convert in conversions:
            try:
                values[at] = convert(values[at])
            except (ValueError, RecursionError):
                raise sqlite3.DataError(f"{str(values[0])[:80]!r}: {name} is not what nsw writes") from None
        return kind(*values)

    return read_row


# --- facts of a campaign ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key(Generic[T]):
    """A key of the table `meta`: all that it may hold is named here.

    Attributes:
        name: In the table.
        kind: The type of the value.
        default: The value when the ledger does not have the key; else an empty one.
    """

    name: str
    kind: Any
    default: T | None = None

    def absent(self) -> T:
        """The value when the ledger does not have the key."""
        origin = get_origin(self.kind)
        empty: Any = None if origin is UnionType else (origin or self.kind)()
        return self.default or empty

    def parse(self, text: str) -> T:
        """The value of what the table holds, which is none where it is empty; raises as rows of `row_reader` do."""
        if not text:
            return self.absent()
        if self.kind is bool:
            return cast("T", text == "yes")
        try:
            return cast("T", text if self.kind in _TEXTS else json.loads(text))
        except (ValueError, RecursionError):
            raise sqlite3.DataError(f"{self.name} is not what nsw writes") from None

    def text(self, value: T) -> str:
        """What the table holds of a value."""
        if isinstance(value, str):
            return value
        if isinstance(value, bool | None):
            return "yes" if value else ""
        return json.dumps(value)


VERSION: Final = Key[str]("version", str)  # of the nsw that began the campaign
NAME: Final = Key[str]("name", str)
SITE: Final = Key[str]("site", str)
SITE_DATA: Final = Key[dict[str, Any]]("site_data", dict[str, Any])  # the site when the campaign began
SCRATCH: Final = Key[str]("scratch", str)  # the campaign's folder on the site
CREATED: Final = Key[float]("created", float)  # Unix seconds
CLEANED: Final = Key[float]("cleaned", float)  # Unix seconds: when `nsw clean` removed its files; 0: never
NOTE: Final = Key[str | None]("note", str | None)  # printed with everything that comes of the campaign
COLLECT: Final = Key[str]("collect", str)  # tables | reports | node | everything
RECIPE: Final = Key[str | None]("recipe", str | None)  # the file that the recipe came from
# the file that `nsw reread --recipe` took figures from since
FIGURES_FROM: Final = Key[str | None]("figures_from", str | None)
# where a file or folder came from, and each name below it with its SHA-256
Origins: TypeAlias = list[tuple[str, list[tuple[str, str]]]]
ORIGINS: Final = Key[Origins]("origins", Origins)
RECORDED: Final = Key[dict[str, Any]]("recorded", dict[str, Any])  # choices of the lockfile that is run again
PLACES: Final = Key[dict[str, str]]("places", dict[str, str])  # key of `resources` -> its place in the recipe
PREPARED: Final = Key[bool]("prepared", bool)  # files are on the site
AT_A_TIME: Final = Key[int | None]("at_a_time", int | None)  # tasks at the same time, when a person changed it
OWNED_BY: Final = Key[str | None]("owner", str | None)  # the token by which this folder's nsw owns it on its site
# who took the campaign over, as the site said when it refused this nsw
TAKEN_OVER: Final = Key[str | None]("taken_over", str | None)
# submissions that the scheduler holds, since a person wants 0 tasks at a time
HELD: Final = Key[list[str]]("held", list[str])
STOP_AFTER: Final = Key[int | None]("stop_after", int | None)  # failures after which nothing new is submitted
STOPPED: Final = Key[str | None]("stopped", str | None)  # why nothing new is submitted
FAILED_BEFORE: Final = Key[int]("failed_before", int)  # runs that had failed when a person last wanted to go on
PARTS: Final = Key[int]("parts", int)  # how often jobs were added to the campaign
# of `--until decided`: at_most, sites; then what was spent, and why no more pairs are added
UNTIL: Final = Key[dict[str, Any]]("until", dict[str, Any])
APP_FOLDER: Final = Key[str]("app_folder", str, "app")  # of the application's newest files
# of the program: files with their SHA-256, which build of them, Unix seconds, jobs; the first has all other jobs
ProgramVersion: TypeAlias = tuple[dict[str, str], int, float, list[str]]
VERSIONS: Final = Key[list[ProgramVersion]]("versions", list[ProgramVersion])
CALLS: Final = Key[dict[str, int]]("calls", dict[str, int])  # how often each command of the scheduler was run


AGAIN: Final = "submitted again"


def withdrawals_of(task: str) -> Key[int]:
    """How often an attempt of this task was withdrawn and submitted again by itself."""
    return Key[int](f"{AGAIN} {task}", int)


def is_site(data: dict[str, Any]) -> bool:
    """Whether JSON has the parts of a site that nsw relies on; the objects among them may be absent."""
    transport = data.get("transport")
    texts = (data.get("name"), data.get("scheduler"), transport.get("kind") if isinstance(transport, dict) else None)
    objects = (data.get(key) for key in ("gpus", "limits", "profilers", "env"))
    return all(isinstance(text, str) for text in texts) and all(isinstance(part, dict | None) for part in objects)


class Pace(NamedTuple):
    """Runs of one pass in one state: how many, the seconds that they took or take so far, those that are timed."""

    pass_name: str
    state: State
    runs: int
    seconds: float
    timed: int


def seconds_left(paces: Sequence[Pace], at_a_time: float) -> float | None:
    """Seconds until the last run ends, if as many go on at a time as before and none waits longer in a queue.

    A pass of which no run is done takes as long as the others.

    Args:
        paces: The runs by pass and state.
        at_a_time: How many runs went on at a time, on average, with the time between them.

    Returns:
        Seconds; None where no run is done, or none went on.
    """
    done = [pace for pace in paces if pace.state is State.DONE and pace.timed]
    if not done or not at_a_time:
        return None
    mean = sum(pace.seconds for pace in done) / sum(pace.timed for pace in done)
    means = {pace.pass_name: pace.seconds / pace.timed for pace in done}
    left = 0.0
    for pace in paces:
        if pace.state not in ENDED:
            behind = pace.seconds if pace.state is State.RUNNING else 0.0
            left += max(0.0, pace.runs * means.get(pace.pass_name, mean) - behind)
    return left / at_a_time
