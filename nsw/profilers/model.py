"""What a profiler is to nsw: words before the program, the files it leaves, what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, Self

if TYPE_CHECKING:
    from nsw.metrics.requests import MetricRequest
    from nsw.recipe.passes import CountersPass, TimelinePass

__all__ = [
    "CHOSEN",
    "MACHINERY",
    "NODE_ARCHIVES",
    "NODE_FOLDER",
    "SCRIPTS",
    "Counting",
    "Profiled",
    "Profiler",
    "Request",
    "Variable",
    "knobs_as_long_options",
    "unknown_analysis_reason",
    "words_with_report_path",
]


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
NODE_FOLDER: Final = "%nsw_node_folder%/"  # stands for a folder of the node itself, in the words of a rank
NODE_ARCHIVES: Final = "reports.*.tar"  # what nodes packed, in the run's folder
CHOSEN: Final = Variable("nsw_chosen[@]")  # the arguments that an earlier stage decides


@dataclass(frozen=True, slots=True)
class Counting:
    """What a counters pass measures.

    Attributes:
        metrics: What it measures, in the tool's own names.
        counters_pass: The recipe's pass: kernels, launches, ranges, and how they are run again.
        chosen: The word that stands for the arguments which a timeline decides, in place of kernels and launches;
            None: it decides nothing.
    """

    metrics: MetricRequest
    counters_pass: CountersPass
    chosen: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One pass asked of a profiler.

    `path` is the tool as the site calls it; `per_rank` says that each process of a launcher is profiled on its
    own, so that reports must be named by `rank_variable`: NAME.rankN.ENDING, from which rows get their rank. `part` is
    node where there is a profiler on each node: NAME.nodeN.ENDING.
    `folder` is before the name of a report: NODE_FOLDER where each node packs the reports of its ranks; a profiler that
    does not write it leaves its reports in the run's folder.
    `export_here`: tables are wanted and no reports, which the job exports; `reduce_there`: which a task of its own
    reduces on the site, later.
    `counting` is what a counters pass measures; None: it is another kind of pass. `report` is what nvprof leaves of a
    timeline: summary, trace, file. `graph_nodes`: kernels of CUDA graphs are traced one by one. `record` is what a
    host pass records beside times, `steps` how many training steps it passes over and how many it records.
    `analysis` is what it collects, in the profiler's own words, and `knobs` are that analysis' settings. `window`
    is the part of the program that a timeline records; None: all of it.
    `gpu_metrics` is how often GPU metrics are sampled, in Hz; None: not.
    """

    path: str
    program: tuple[str, ...]
    trace: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    per_rank: bool = False
    rank_variable: str = "NSW_RANK"
    part: str = "rank"
    folder: str = ""
    export_here: bool = False
    reduce_there: bool = False
    counting: Counting | None = None
    report: str = "summary"
    graph_nodes: bool = False
    record: tuple[str, ...] = ()
    steps: tuple[int, int] | None = None
    analysis: str | None = None
    knobs: tuple[tuple[str, str], ...] = ()
    window: TimelinePass | None = None
    gpu_metrics: int | None = None


@dataclass(frozen=True, slots=True)
class Profiled:
    """The answer: the program under its profiler, or `impossible` with the reason.

    `reports` are shell patterns relative to the run's folder; `after` are commands to run once it ended; `reduction`
    is a command that reduces the reports of such a run, in the folder of a task of its own: its last word is the run.
    `before` are functions of the job's machinery that the profiler needs on each node. `notes`: what a person should
    know of it.
    """

    command: tuple[str, ...] = ()
    reports: tuple[str, ...] = ()
    after: tuple[tuple[str, ...], ...] = field(default=())
    reduction: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    impossible: str | None = None
    notes: tuple[str, ...] = ()


class Profiler(Protocol):
    """A module of nsw/profilers.

    TOOL is its name; EXECUTABLE what the site must have (None: nothing); ONE_PROCESS says that it does not
    follow children, so that a launcher must start it for each process. Functions of bash for the jobs, called
    `nsw_NAME`, are in its SHELL, or in TOOL.sh beside it where they are long; a command starts one as
    `("bash", MACHINERY, "NAME", ...)`.
    """

    TOOL: str
    EXECUTABLE: str | None
    ONE_PROCESS: bool

    def profile(self, request: Request) -> Profiled:
        """The command line that profiles the program."""


def words_with_report_path(
    request: Request, words_before: tuple[str, ...], report_name: str, words_after: tuple[str, ...]
) -> tuple[str, ...]:
    """The words with the name of a report between them: NAME.ENDING, and NAME.rankN.ENDING where each rank has one.

    Args:
        request: The request, which says whether each rank has a report.
        words_before: The words before the report's name.
        report_name: NAME.ENDING.
        words_after: The words after it.
    """
    if not request.per_rank:
        return (*words_before, report_name, *words_after)
    name, _, ending = report_name.partition(".")
    # the name needs a variable of the rank's own shell; $1 is how many words are before it
    file_name = f'"{name}.{request.part}${{{request.rank_variable}:-0}}.{ending}"'
    text = f'n=$1; shift; exec "${{@:1:n}}" {file_name} "${{@:n+1}}"'
    return ("bash", "-c", text, "nsw", str(len(words_before)), *words_before, *words_after)


def knobs_as_long_options(knobs: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """`--NAME=VALUE` for each knob; `--NAME` for one that is true, nothing for one that is false."""
    return tuple(f"--{name}" if value == "true" else f"--{name}={value}" for name, value in knobs if value != "false")


def unknown_analysis_reason(request: Request, tool: str, known_analyses: tuple[str, ...]) -> str | None:
    """Why a tool cannot do the analysis that is asked for; None where it can.

    Args:
        request: The request.
        tool: The tool's name.
        known_analyses: Those that it can do.
    """
    if request.analysis is None or request.analysis in known_analyses:
        return None
    does = (
        f"it does {' and '.join(known_analyses)}"
        if known_analyses
        else "it has one way to profile: leave `analysis` out"
    )
    return f"{tool} has no analysis {request.analysis!r}; {does}"
