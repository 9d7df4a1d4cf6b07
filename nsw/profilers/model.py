"""What a profiler is to nsw: words before the program, the files it leaves, what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol, Self

__all__ = ["CHOSEN", "MACHINERY", "SCRIPTS", "Counting", "Profiled", "Profiler", "Request", "Variable"]


class Variable(str):
    """A word that stands for a variable of the job script: `Variable("nsw")` is written as `"${nsw}"`.

    No word of a recipe is one: those are plain strings, and are quoted.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Self:
        """The variable of that name; `name[@]` for all words of an array."""
        return super().__new__(cls, f"${{{name}}}")

    def __getnewargs__(self) -> tuple[str]:
        """The name, for copies."""
        return (self[2:-1],)


SCRIPTS: Final = "scripts"  # folder beside `runs` in the campaign's folder on the site
MACHINERY: Final = Variable("nsw")  # the file of templates/job/machinery.sh beside the scripts of the campaign
CHOSEN: Final = Variable("nsw_chosen[@]")  # the arguments that an earlier stage decides


@dataclass(frozen=True, slots=True)
class Counting:
    """What a counters pass measures, in the tool's own metric names.

    Attributes:
        metrics: Metrics.
        events: nvprof's events.
        sets: ncu's sets of sections; `analysis` of nvprof.
        sections: ncu's sections.
        names: Function names of kernels; with `regex` empty: all kernels.
        regex: Found in the function name of each kernel.
        exclude: Each found in the function name of no kernel.
        skip: Launches of each kernel passed over.
        count: Launches of each kernel measured after these; None: all.
        warmup: Launches of any kernel passed over.
        nvtx: Name of the range that is measured.
        domain: Its domain.
        start_end: Whether it is a start/end range.
        instances: Which of its instances, from 1.
        replay: kernel, application, range, app-range.
        clocks: base, none; None: as the tool does.
        cache: all, none; None: as the tool does.
        children: Whether child processes are profiled.
        chosen: The word that stands for the arguments which a timeline decides, in place of names, regex, exclude,
            skip, count; None: it decides nothing.
    """

    metrics: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    regex: str | None = None
    exclude: tuple[str, ...] = ()
    skip: int = 0
    count: int | None = None
    warmup: int = 0
    nvtx: str | None = None
    domain: str | None = None
    start_end: bool = False
    instances: tuple[int, ...] = ()
    replay: str = "kernel"
    clocks: str | None = None
    cache: str | None = None
    children: bool = True
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One pass asked of a profiler.

    `path` is the tool as the site calls it; `per_rank` says that each process of a launcher is profiled on its
    own, so that reports must be named by `rank_variable`: NAME.rankN.ENDING, from which rows get their rank. `part` is
    node where there is a profiler on each node: NAME.nodeN.ENDING.
    `export_here`: tables are wanted and no reports, which the job exports; `reduce_there`: which a task of its own
    reduces on the site, later.
    `counting` is what a counters pass measures; None: it is another kind of pass. `report` is what nvprof leaves of a
    timeline: summary, trace, file. `graph_nodes`: kernels of CUDA graphs are traced one by one. `record` is what a
    host pass records beside times, `steps` how many training steps it passes over and how many it records.
    """

    path: str
    program: tuple[str, ...]
    trace: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    per_rank: bool = False
    rank_variable: str = "NSW_RANK"
    part: str = "rank"
    export_here: bool = False
    reduce_there: bool = False
    counting: Counting | None = None
    report: str = "summary"
    graph_nodes: bool = False
    record: tuple[str, ...] = ()
    steps: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Profiled:
    """The answer: the program under its profiler, or `impossible` with the reason.

    `reports` are shell patterns relative to the run's folder; `after` are commands to run once it ended; `reduction`
    is a command that reduces the reports of such a run, in the folder of a task of its own: its last word is the run.
    `before` are functions of the job's machinery that the profiler needs on each node.
    """

    command: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = field(default=())
    reduction: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    impossible: str | None = None


class Profiler(Protocol):
    """A module of nsw/profilers.

    TOOL is its name; EXECUTABLE what the site must have (None: nothing); ONE_PROCESS says that it does not
    follow children, so that a launcher must start it for each process. It may have a SHELL: functions of bash for
    the jobs, called `nsw_NAME`, which a command starts as `("bash", MACHINERY, "NAME", ...)`.
    """

    TOOL: str
    EXECUTABLE: str | None
    ONE_PROCESS: bool

    def profile(self, request: Request) -> Profiled:
        """The command line that profiles the program."""
