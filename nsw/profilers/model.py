"""What a profiler is to nsw: words before the program, the files it leaves, what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One pass asked of a profiler.

    `path` is the tool as the site calls it; `per_rank` says that each process of a launcher is profiled on its
    own, so that reports must be named by `rank_variable`: NAME.rankN.ENDING, from which rows get their rank.
    """

    path: str
    program: tuple[str, ...]
    trace: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    per_rank: bool = False
    rank_variable: str = "RANK"
    export_here: bool = False


@dataclass(frozen=True, slots=True)
class Profiled:
    """The answer: the program under its profiler, or `impossible` with the reason.

    `reports` are shell patterns relative to the run's folder; `after` are commands to run once it ended.
    """

    command: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = field(default=())
    impossible: str | None = None


class Profiler(Protocol):
    """A module of nsw/profilers.

    TOOL is its name; EXECUTABLE what the site must have (None: nothing); ONE_PROCESS says that it does not
    follow children, so that a launcher must start it for each process.
    """

    TOOL: str
    EXECUTABLE: str | None
    ONE_PROCESS: bool

    def profile(self, request: Request) -> Profiled:
        """The command line that profiles the program."""
