"""A counters pass: what it asks of its tool, what it costs, and the timeline pass that chooses for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import Diagnostic, NswError, did_you_mean
from nsw.metrics import Chip, find_chip, ncu_metric_request, nvprof_metric_request, unsupported_reason
from nsw.metrics.requests import MetricRequest, PassEstimate, counters_tools, estimate_passes
from nsw.plan.jobs import Resolver
from nsw.profilers.ncu import version_text_in_path
from nsw.recipe.passes import AT_MOST, AUTO, SAMPLE, CountersPass, SecondStage, TimelinePass
from nsw.recipe.units import Fault, parse_duration
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.launchers.model import Launch
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Recipe

__all__ = [
    "Limit",
    "Price",
    "candidate_tools",
    "chooses_kernels",
    "counted_ranks",
    "counters_notes",
    "estimate_price",
    "kernel_source",
    "metric_request",
    "passes_of",
    "planned_limit_s",
    "profiles_each_process",
    "replay_fault",
    "run_time_limit",
    "unknown_sources",
    "unsupported_version_reason",
]

# the whole program is run again for each pass, all its processes together
WHOLE_PROGRAM: Final = frozenset({"application", "app-range"})


def candidate_tools(counters_pass: CountersPass, chip: Chip | None) -> tuple[str, ...]:
    """The tools that may measure a pass on a chip (None: not known), the best first."""
    return counters_tools(chip) if counters_pass.tool == AUTO else (counters_pass.tool,)


def unsupported_version_reason(tool: str, path: str, chip: str | None) -> str | None:
    """Why the version that a tool's folder names does not measure a chip; None: it does, or nobody knows.

    Args:
        tool: The profiler.
        path: Its path, whose folder may name a version.
        chip: The chip; None: not known.
    """
    at = find_chip(chip)
    folder_version = version_text_in_path(path)
    return (
        unsupported_reason("ncu", at, folder_version)
        if tool == "ncu" and at is not None and folder_version is not None
        else None
    )


def metric_request(counters_pass: CountersPass, tool: str | None, chip: str | None) -> MetricRequest:
    """What a pass's metrics are to a tool, and which of them it does not measure.

    Args:
        counters_pass: The pass.
        tool: The profiler; None: not known yet.
        chip: The chip; None: not known.
    """
    at = find_chip(chip)
    return (
        nvprof_metric_request(counters_pass.metrics, at)
        if tool == "nvprof"
        else ncu_metric_request(counters_pass.metrics, at, counters_pass.replay)
    )


def profiles_each_process(counters_pass: CountersPass, launch: Launch) -> bool:
    """Whether each process of a launcher that spawns them gets a profiler of its own by default.

    One around the launcher profiles all its processes, and `ranks: first` is the default of counters. Where the whole
    program is run again, all processes must be.
    """
    return (
        launch.launcher.spawns
        and launch.layout.total != 1
        and counters_pass.replay not in WHOLE_PROGRAM
        and counters_pass.ranks != "all"
    )


def replay_fault(counters_pass: CountersPass, launch: Launch, *, each: bool) -> str | None:
    """Why the program cannot be run again as a whole under this launcher; None: it can, or need not.

    Args:
        counters_pass: The pass.
        launch: How the program is started.
        each: Whether each process gets a profiler of its own.
    """
    if counters_pass.replay not in WHOLE_PROGRAM or not each or launch.layout.total == 1:
        return None
    return (
        f"replay: {counters_pass.replay} starts the program again for each pass, which {launch.kind} cannot do"
        " for its processes one"
        " by one: use replay: kernel, or app: launcher: profiler: outside"
    )


def counted_ranks(counters_pass: CountersPass, *, each: bool) -> str | Sequence[int]:
    """Which ranks are profiled: one profiler around all processes profiles all, unless ranks are asked for."""
    return counters_pass.ranks or ("first" if each else "all")


def passes_of(recipe: Recipe) -> tuple[Any, ...]:
    """The passes that are carried out.

    They are the recipe's, a second stage of each counters pass that has one, and a timeline where a guided pass has
    none of the whole program to choose from: ncu counts launches from the program's start.
    """
    passes = tuple(recipe.passes)
    guided = [pass_ for pass_ in passes if isinstance(pass_, CountersPass) and pass_.is_guided]
    taken_names = {pass_.name for pass_ in passes}
    for first in (pass_ for pass_ in guided if pass_.has_second_stage):
        name = f"{first.name}-2"
        while name in taken_names:
            name += "-2"
        taken_names.add(name)
        passes = (*passes, SecondStage.after(first, name))
    if not guided or _whole_timelines(passes):
        return passes
    name = next(name for name in ("timeline", "timeline-for-counters", "timeline.nsw") if name not in taken_names)
    requested_source = guided[0].source
    if requested_source is not None and requested_source not in taken_names:
        name = requested_source
    return (*passes, TimelinePass(name=name, repeats=1))


def _whole_timelines(passes: Sequence[Any]) -> list[str]:
    """The names of the timeline passes that record the whole program."""
    return [pass_.name for pass_ in passes if pass_.kind == "timeline" and not pass_.is_windowed]


def kernel_source(pass_: Any, passes: Sequence[Any]) -> str | None:
    """The name of the pass that a pass's kernels are chosen from, mostly a timeline; None: it is not guided."""
    if isinstance(pass_, SecondStage):
        return pass_.source
    if not isinstance(pass_, CountersPass) or not pass_.is_guided:
        return None
    timelines = _whole_timelines(passes)
    return pass_.source if pass_.source in timelines else timelines[0]


def chooses_kernels(pass_: Any, passes: Sequence[Any]) -> bool:
    """Whether a timeline pass chooses for a guided one: kernels of CUDA graphs must be seen one by one then."""
    return pass_.kind == "timeline" and any(kernel_source(candidate, passes) == pass_.name for candidate in passes)


def unknown_sources(loaded: LoadedRecipe) -> list[Diagnostic]:
    """The faults of `from`: no timeline pass has that name, or it records a part of the program."""
    timelines = [pass_.name for pass_ in loaded.recipe.passes if pass_.kind == "timeline"]
    windowed = {*timelines} - {*_whole_timelines(loaded.recipe.passes)}
    diagnostics = []
    for number, pass_ in enumerate(loaded.recipe.passes):
        if isinstance(pass_, CountersPass) and pass_.source is not None and timelines and pass_.source not in timelines:
            hint = did_you_mean(pass_.source, timelines) or f"timeline passes: {', '.join(timelines)}"
            key_path = ("passes", number, "counters", "from")
            diagnostics.append(
                loaded.document.diagnostic(key_path, f"there is no timeline pass {pass_.source}", hint=hint)
            )
        elif isinstance(pass_, CountersPass) and pass_.source in windowed:
            message = f"timeline pass {pass_.source} has a window, and ncu counts launches from the program's start"
            hint = "choose from a timeline of the whole program, or leave `from` away: nsw adds one"
            diagnostics.append(loaded.document.diagnostic(("passes", number, "counters", "from"), message, hint=hint))
    return [*diagnostics, *_untraced_range_faults(loaded)]


def _untraced_range_faults(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The faults of `within`: the timeline that is to choose inside an NVTX range does not trace NVTX."""
    passes = passes_of(loaded.recipe)
    for number, pass_ in enumerate(loaded.recipe.passes):
        if (
            not isinstance(pass_, CountersPass)
            or pass_.within is None
            or (source := kernel_source(pass_, passes)) is None
        ):
            continue
        timeline = next(candidate for candidate in passes if candidate.name == source)
        if "nvtx" not in timeline.trace:
            key_path = ("passes", number, "counters", "within")
            yield loaded.document.diagnostic(
                key_path, f"timeline pass {source} does not trace NVTX ranges", hint="give it trace: [cuda, nvtx]"
            )


_METRICS_IN_NOTE: Final = 6  # metrics that are left out for the same reason
# launches that ncu measures for each chosen one, usual and most (docs/gpu-measurements.md)
_ALONG: Final = 1.6
_ALONG_AT_MOST: Final = 2.5


def counters_notes(counters_pass: CountersPass, tool: str | None, chip: str | None) -> list[str]:
    """What is worth knowing of a counters pass before it runs: its price, and metrics that this chip does not have.

    Args:
        counters_pass: The pass.
        tool: The profiler; None: not known yet.
        chip: The chip; None: not known.
    """
    request = metric_request(counters_pass, tool, chip)
    reasons: dict[str, list[str]] = {}
    for name, reason in request.absent.items():
        reasons.setdefault(reason, []).append(name)
    sentences = [
        f"{counters_pass.name}: left out ({reason}): {first_names(names, _METRICS_IN_NOTE)}"
        for reason, names in reasons.items()
    ]
    if chip is not None and find_chip(chip) is None:
        sentences.append(
            f"{counters_pass.name}: nsw knows no chip {chip}: metrics are not checked before a run has met the GPU"
        )
    return [_price_in_words(counters_pass, tool, chip), *sentences]


def _price_in_words(counters_pass: CountersPass, tool: str | None, chip: str | None) -> str:
    """A sentence on launches, passes and time, as far as they are known."""
    if tool != "ncu":
        return f"{counters_pass.name}: how often {tool} runs a launch again was not measured: only the limit bounds it"
    replay_passes = estimate_passes(counters_pass.metrics, find_chip(chip))
    if isinstance(counters_pass, SecondStage):
        return (
            f"{counters_pass.name}: at most {replay_passes.at_most} passes more of a launch, only of"
            f" kernels of which {counters_pass.source} leaves a question that would change the advice; `stages: 1` in"
            " that pass turns it off"
        )
    if counters_pass.replay != "kernel":
        bound = f" to {replay_passes.at_most}" if replay_passes.at_most != replay_passes.expected else ""
        again = "the whole program is run" if counters_pass.replay in WHOLE_PROGRAM else "the range is run"
        return (
            f"{counters_pass.name}: {again} some {replay_passes.expected}{bound} times (as a launch on"
            " gh100: an estimate)"
        )
    basis = "measured on gh100" if replay_passes.measured else "estimated as on gh100"
    count = f"{replay_passes.expected} time{'s' if replay_passes.expected != 1 else ''}"
    bound = f", at most {replay_passes.at_most}" if replay_passes.at_most != replay_passes.expected else ""
    each = replay_passes.expected_overhead_s(1) - replay_passes.expected_overhead_s(0)
    cost = f"runs each {count}{bound}, about {each:.1g} s ({basis})"
    chosen = _launch_count(counters_pass)
    if chosen is None:
        return f"{counters_pass.name}: ncu measures every launch that the filter matches, and {cost}"
    usual, maximum = (
        (round(_ALONG * chosen), round(_ALONG_AT_MOST * chosen)) if counters_pass.is_guided else (chosen, chosen)
    )
    return (
        f"{counters_pass.name}: ncu measures some {usual} kernel launches of each run, and {cost}: about"
        f" {replay_passes.expected_overhead_s(usual):.0f} s a run beside the program's own time, at most"
        f" {replay_passes.maximum_overhead_s(maximum):.0f} s"
        + (f"; {chosen} would do, but ncu cannot choose them kernel by kernel" if usual != chosen else "")
    )


def _launch_count(counters_pass: CountersPass) -> int | None:
    """How many launches are chosen, as far as the recipe says."""
    kernels = counters_pass.kernels
    if counters_pass.is_guided:
        name_count = len(kernels.names) if kernels.names else None
        kernel_count = kernels.top or kernels.at_most or name_count or AT_MOST
        return kernel_count * (counters_pass.launches.sample or SAMPLE)
    if kernels.names and counters_pass.launches.count is not None:
        return len(kernels.names) * counters_pass.launches.count
    return None


_WIDE: Final = (3.0, 300)  # factor and seconds on top of the greatest price, where no run has finished
_CLOSE: Final = (1.5, 120)  # likewise, of the price corrected by runs that finished


@dataclass(frozen=True, slots=True)
class Limit:
    """A run's limit in seconds (None: the plan's own), and a sentence on it."""

    seconds: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Price:
    """How long a run is expected to take, and how long at most, in seconds."""

    expected_s: float
    at_most_s: float


def estimate_price(launches_ns: Sequence[int], passes: PassEstimate, program_s: float, replay: str) -> Price:
    """What a run costs, its program included.

    Args:
        launches_ns: The duration of each launch that is measured, in the timeline.
        passes: How often each is run.
        program_s: The run time of the program under the timeline's profiler.
        replay: kernel, application.
    """
    if replay == "application":
        return Price(passes.expected * program_s, passes.at_most * program_s)
    count, kernels_s = len(launches_ns), sum(launches_ns) * 1e-9
    return Price(
        program_s + passes.expected_overhead_s(count) + passes.expected * kernels_s,
        program_s + passes.maximum_overhead_s(count) + passes.at_most * kernels_s,
    )


def run_time_limit(price: Price, plan_s: int, finished: Sequence[tuple[float, float]]) -> Limit:
    """The limit of a run: never above the plan's, which was confirmed.

    Args:
        price: Its price.
        plan_s: Its limit in the plan, in seconds.
        finished: The expected and the actual run time of runs of this pass that finished, in seconds.
    """
    ratios = [took / expected for expected, took in finished if expected > 0]
    corrected = price.expected_s * max(ratios, default=1.0)
    if ratios:
        basis, limit_s = f" by {plural(len(ratios), 'finished run')}", int(_CLOSE[0] * corrected + _CLOSE[1])
    else:
        basis, limit_s = f", at most {price.at_most_s:.0f} s, by its price", int(_WIDE[0] * price.at_most_s + _WIDE[1])
    head = f"expected to take {corrected:.0f} s{basis}"
    if corrected > plan_s:
        return Limit(
            None,
            f"{head}, longer than its limit of {plan_s} s: it may be cut off; give it more `time`, or measure fewer"
            " launches or metrics",
        )
    if limit_s >= plan_s:
        return Limit(None, f"{head}; limit {plan_s} s, as planned")
    return Limit(limit_s, f"{head}; limit {limit_s} s instead of {plan_s} s")


def planned_limit_s(recipe: Recipe, counters_pass: CountersPass, case: str, params: Mapping[str, Any]) -> int | None:
    """The limit that the plan gives a run of a pass, in seconds; None where it cannot be worked out again.

    Args:
        recipe: The recipe.
        counters_pass: The pass.
        case: The case's id.
        params: The case's parameters.
    """
    time_text = counters_pass.time if counters_pass.time is not None else recipe.resources.time
    try:
        value = Resolver().value(time_text, {**params, "case": case})
        return int(parse_duration(value) if isinstance(value, str) else value)
    except (Fault, NswError, TypeError, ValueError):
        return None
