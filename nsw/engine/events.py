"""What happens while a campaign goes on, as typed events, and messages for a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nsw.wording import headline, plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.engine.ledger_rows import BuildRow, RunRow


@dataclass(frozen=True, slots=True)
class Message:
    """A line for people: a warning, or what nsw does that no other event reports."""

    text: str
    level: Literal["info", "warning", "error"] = "info"

    def __str__(self) -> str:
        return self.text if self.level == "info" else f"{self.level}: {self.text}"


@dataclass(frozen=True, slots=True)
class Started:
    """This process drives the campaign from now on.

    Attributes:
        campaign: Its id.
        counts: How many runs are in each state; a state without runs is left out.
    """

    campaign: str
    counts: Mapping[str, int]

    def __str__(self) -> str:
        return f"campaign {self.campaign}: {headline(self.counts)}"


@dataclass(frozen=True, slots=True)
class RunChanged:
    """A run has a new state.

    Attributes:
        run: The run as it is now: `id`, `state`, `reason`, `params`, `seconds` ...
        over: How many runs of the campaign have ended, this one counted if it has.
        total: How many runs the campaign has.
        alike: How many runs failed together with it for the same reason before they began, this one counted.
    """

    run: RunRow
    over: int
    total: int
    alike: int = 1

    def __str__(self) -> str:
        return f"{self.over}/{self.total} {_task_line(self.run)}"


@dataclass(frozen=True, slots=True)
class BuildChanged:
    """A build of the application has a new state."""

    build: BuildRow

    def __str__(self) -> str:
        return _task_line(self.build)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the runs are that run now; sent every few seconds.

    Attributes:
        lines: The last line that each printed, by its id; not safe for a terminal.
        jobs: The scheduler's job id of each, by its id; on this machine none has one.
        seconds_left: Until the last run ends, if it goes on as now; None where nothing is known of it.
    """

    lines: Mapping[str, str]
    jobs: Mapping[str, str]
    seconds_left: float | None

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {self.seconds_left:.0f} s left"
        return f"{plural(len(self.lines), 'run')} printed something{left}"


@dataclass(frozen=True, slots=True)
class Downloading:
    """Files come from the site; sent twice a second for a transfer that takes longer than that, and at its end.

    Attributes:
        done: Bytes that are here.
        total: Bytes of all files of this transfer.
        rate: Bytes a second, over the last seconds; None as long as it is not known.
    """

    done: int
    total: int
    rate: float | None

    @property
    def seconds_left(self) -> float | None:
        """Until the last byte is here, at this rate; None where that is not known."""
        return (self.total - self.done) / self.rate if self.rate else None

    def __str__(self) -> str:
        return f"{self.done}/{self.total} bytes downloaded"


@dataclass(frozen=True, slots=True)
class RunsEnded:
    """No run is waiting or running; what was collected is read next."""

    def __str__(self) -> str:
        return "no run is waiting or running"


@dataclass(frozen=True, slots=True)
class ReportsRead:
    """The reports of some runs were read into the campaign's tables: `done` of `total` runs."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.done}/{self.total} read"


@dataclass(frozen=True, slots=True)
class Finished:
    """The campaign needs nothing more from this process.

    Attributes:
        counts: How many runs are in each state; a state without runs is left out.
        good: Every run that was asked for is done, its reports were read, and each figure has a value.
    """

    counts: Mapping[str, int]
    good: bool

    def __str__(self) -> str:
        return headline(self.counts)


Event = Message | Started | RunChanged | BuildChanged | Progress | Downloading | RunsEnded | ReportsRead | Finished
"""Anything that can happen; `match` tells them apart."""


def _task_line(task: RunRow | BuildRow) -> str:
    """State, id and reason; control characters of others become spaces."""
    text = f"{task.state:9} {task.id}" + (f": {task.reason}" if task.reason else "")
    return "".join(c if c.isprintable() else " " for c in text)
