"""nvprof: timelines on GPUs up to Volta (compute capability below 8.0) and counters below 7.5, for older clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.profilers.kernel_filters import escape_regex, regex_of_launch_ordinals
from nsw.profilers.model import Counting, Profiled, Request

if TYPE_CHECKING:
    from nsw.metrics.requests import MetricRequest

TOOL = "nvprof"
ONE_PROCESS = False
EXECUTABLE: str | None = "nvprof"

ANALYSIS: Final = "analysis"  # the set of all that the Visual Profiler's guided analysis needs
_TIMELINE: Final = "timeline"
_COUNTERS: Final = "counters"


def profile(request: Request) -> Profiled:
    """`nvprof ... PROGRAM`.

    nvprof prints to stderr: --log-file keeps its table out of the program's output. In ns and CSV nothing is
    rounded. Child processes are followed, a file each (%p).
    """
    if request.counting is not None:
        return _profile_counters(request, request.counting)
    if request.window is not None:
        return Profiled(impossible="nvprof records the whole program: `within`, `after` and `for` need nsys")
    if request.report == "file":
        export_options = ("--export-profile", _file_name_per_process(_TIMELINE, request, "nvvp"), "--force-overwrite")
        command = (request.path, "--profile-child-processes", *export_options, *request.options, *request.program)
        return Profiled(command, reports=(f"{_TIMELINE}*.nvvp",))
    trace = ("--print-gpu-trace", "--print-api-trace") if request.report == "trace" else ()
    command = (
        request.path,
        "--profile-child-processes",
        *_csv_log_options(_TIMELINE, request),
        *trace,
        *request.options,
        *request.program,
    )
    return Profiled(command, reports=(f"{_TIMELINE}*.nvprof.csv",))


def _profile_counters(request: Request, counting: Counting) -> Profiled:
    if (reason := _unsupported_reason(counting)) is not None:
        return Profiled(impossible=reason)
    application = counting.counters_pass.replay == "application"
    exported = ANALYSIS in counting.metrics.sets
    scoped = (
        word
        for scope in _kernel_filter_options(counting)
        for word in (*scope, *nvprof_metric_options(counting.metrics))
    )
    command = (
        request.path,
        *(("--profile-child-processes",) if counting.counters_pass.processes == "all" and not application else ()),
        *(("--replay-mode", "application") if application else ()),
        *_csv_log_options(_COUNTERS, request),
        *(
            ("--export-profile", _file_name_per_process(_COUNTERS, request, "nvvp"), "--force-overwrite")
            if exported
            else ()
        ),
        *((counting.chosen,) if counting.chosen else scoped),
        *request.options,
        *request.program,
    )
    return Profiled(
        command,
        reports=(
            f"{_COUNTERS}*.nvprof.csv",
            *((f"{_COUNTERS}*.nvvp",) if exported and not request.export_here else ()),
        ),
    )


def _unsupported_reason(counting: Counting) -> str | None:
    """What nvprof cannot do, in the words of the recipe."""
    counters_pass, launches = counting.counters_pass, counting.counters_pass.launches
    for is_requested, reason in (
        (
            counters_pass.within,
            "nvprof cannot measure within an NVTX range: choose kernels by name or launches by number",
        ),
        (counters_pass.replay in {"range", "app-range"}, f"nvprof has no replay: {counters_pass.replay}"),
        (launches.warmup, "nvprof counts the launches of each kernel: write launches: {skip: N} in place of warmup"),
        (counters_pass.clocks == "base", "nvprof cannot lock clocks: write clocks: none"),
        (counters_pass.cache == "all", "nvprof cannot flush caches: write cache: none"),
        (counting.metrics.sections, "nvprof has no sections"),
        (set(counting.metrics.sets) - {ANALYSIS}, "nvprof has no sets of ncu's"),
    ):
        if is_requested:
            return reason
    return None


def _kernel_filter_options(counting: Counting) -> list[tuple[str, ...]]:
    """`--kernels` of each part of the recipe's choice; it holds for the metrics behind it."""
    kernels, exclude = counting.counters_pass.kernels, counting.counters_pass.left_out
    ordinals = regex_of_launch_ordinals(counting.counters_pass.launches)
    # nvprof knows a kernel with its namespaces and template arguments, among which the name is searched
    patterns = [f"(^|[^A-Za-z0-9_]){escape_regex(name)}($|[^A-Za-z0-9_])" for name in kernels.names or ()]
    if not patterns:
        left_out = f"^(?!.*({'|'.join(exclude)}))" if exclude else ""
        name_pattern = "" if kernels.regex is None else f".*({kernels.regex})" if left_out else kernels.regex
        patterns = [f"{left_out}{name_pattern}".replace("(?:", "(")]
    return [("--kernels", f"::{pattern}:{ordinals}") if pattern or ordinals else () for pattern in patterns]


def nvprof_metric_options(metrics: MetricRequest) -> tuple[str, ...]:
    """The words for what is measured; those of a filter before them hold for these."""
    return (
        *(("--analysis-metrics",) if ANALYSIS in metrics.sets else ()),
        *(("--metrics", ",".join(metrics.metrics)) if metrics.metrics else ()),
        *(("--events", ",".join(metrics.events)) if metrics.events else ()),
    )


def _csv_log_options(name: str, request: Request) -> tuple[str, ...]:
    return ("--csv", "--normalized-time-unit", "ns", "--log-file", _file_name_per_process(name, request, "nvprof.csv"))


def _file_name_per_process(name: str, request: Request, ending: str) -> str:
    """A file a process, named by its rank where each has a profiler of its own."""
    rank = f".{request.part}%q{{{request.rank_variable}}}" if request.per_rank else ""
    return f"{request.folder}{name}{rank}.%p.{ending}"
