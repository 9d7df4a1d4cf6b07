"""A counters pass: what it asks of its tool, what it costs, and the timeline pass that chooses for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import Diagnostic, NswError, did_you_mean
from nsw.metrics import Chip, find_chip, for_ncu, for_nvprof, unsupported
from nsw.metrics.replay_passes import Passes, passes
from nsw.metrics.requests import MetricRequest, tools_for
from nsw.plan.resolve import Resolver
from nsw.profilers.ncu import named_version
from nsw.recipe.faults import Fault
from nsw.recipe.passes import AT_MOST, SAMPLE, CountersPass, TimelinePass
from nsw.recipe.profiler_names import AUTO
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.plan.launchers import Launch
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Recipe

__all__ = [
    "Limit", "Price", "chooses", "counted_ranks", "dropped", "expected_ranks", "limit",
    "notes", "passes_of", "planned_s", "price", "replay_fault", "requested", "source_of", "starts_each", "tools",
    "unknown_sources",
]  # fmt: skip

# the whole program is run again for each pass, all its processes together
WHOLE_PROGRAM: Final = frozenset({"application", "app-range"})


def tools(one: CountersPass, chip: Chip | None) -> tuple[str, ...]:
    """The tools that may measure a pass on a chip (None: not known), the best first."""
    return tools_for(chip) if one.tool == AUTO else (one.tool,)


def dropped(tool: str, path: str, chip: str | None) -> str | None:
    """Why the version that a tool's folder names does not measure a chip; None: it does, or nobody knows."""
    at = find_chip(chip)
    named = named_version(path)
    return unsupported("ncu", at, named) if tool == "ncu" and at is not None and named is not None else None


def requested(one: CountersPass, tool: str | None, chip: str | None) -> MetricRequest:
    """What a pass's metrics are to a tool, and which of them it does not measure."""
    at = find_chip(chip)
    return for_nvprof(one.metrics, at) if tool == "nvprof" else for_ncu(one.metrics, at, one.replay)


def starts_each(one: CountersPass, how: Launch) -> bool:
    """Whether each process of torchrun gets a profiler of its own unless the recipe says otherwise.

    One around torchrun profiles all its processes, and `ranks: first` is the default of counters. Where the whole
    program is run again, all processes must be.
    """
    return how.kind == "torchrun" and how.layout.total != 1 and one.replay not in WHOLE_PROGRAM and one.ranks != "all"


def replay_fault(one: CountersPass, how: Launch, *, each: bool) -> str | None:
    """Why the program cannot be run again as a whole under this launcher; None: it can, or need not."""
    if one.replay not in WHOLE_PROGRAM or not each:
        return None
    return (
        f"replay: {one.replay} starts the program again for each pass, which {how.kind} cannot do for its processes one"
        " by one: use replay: kernel, or app: launcher: profiler: outside"
    )


def counted_ranks(one: CountersPass, *, each: bool) -> str | Sequence[int]:
    """Which ranks are profiled: one profiler around all processes profiles all, unless ranks are asked for."""
    return one.ranks or ("first" if each else "all")


def passes_of(recipe: Recipe) -> tuple[Any, ...]:
    """The passes that are carried out: the recipe's, and a timeline where a guided pass has none to choose from."""
    passes = tuple(recipe.passes)
    guided = [one for one in passes if isinstance(one, CountersPass) and one.is_guided]
    if not guided or any(one.kind == "timeline" for one in passes):
        return passes
    taken = {one.name for one in passes}
    name = next(name for name in ("timeline", "timeline-for-counters", "timeline.nsw") if name not in taken)
    asked = guided[0].source
    if asked is not None and asked not in taken:
        name = asked
    return (*passes, TimelinePass(name=name, repeats=1))


def source_of(one: Any, passes: Sequence[Any]) -> str | None:
    """The name of the timeline that a pass's kernels are chosen from; None: it is not guided."""
    if not isinstance(one, CountersPass) or not one.is_guided:
        return None
    timelines = [other.name for other in passes if other.kind == "timeline"]
    return one.source if one.source in timelines else timelines[0]


def chooses(one: Any, passes: Sequence[Any]) -> bool:
    """Whether a timeline pass chooses for a guided one: kernels of CUDA graphs must be seen one by one then."""
    return one.kind == "timeline" and any(source_of(other, passes) == one.name for other in passes)


def unknown_sources(loaded: LoadedRecipe) -> list[Diagnostic]:
    """The faults of `from`: no timeline pass has that name."""
    timelines = [one.name for one in loaded.recipe.passes if one.kind == "timeline"]
    found = []
    for number, one in enumerate(loaded.recipe.passes):
        if isinstance(one, CountersPass) and one.source is not None and timelines and one.source not in timelines:
            hint = did_you_mean(one.source, timelines) or f"timeline passes: {', '.join(timelines)}"
            where = ("passes", number, "counters", "from")
            found.append(loaded.document.diagnostic(where, f"there is no timeline pass {one.source}", hint=hint))
    return [*found, *_without_ranges(loaded)]


def _without_ranges(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The faults of `within`: the timeline that is to choose inside an NVTX range does not trace NVTX."""
    passes = passes_of(loaded.recipe)
    for number, one in enumerate(loaded.recipe.passes):
        if not isinstance(one, CountersPass) or one.within is None or (source := source_of(one, passes)) is None:
            continue
        timeline = next(other for other in passes if other.name == source)
        if "nvtx" not in timeline.trace:
            where = ("passes", number, "counters", "within")
            yield loaded.document.diagnostic(
                where, f"timeline pass {source} does not trace NVTX ranges", hint="give it trace: [cuda, nvtx]"
            )


_SHOWN: Final = 6  # metrics that are left out for the same reason
# launches measured for each chosen one, as ncu measures each ordinal of every kernel: usual, and most (docs/gpu.md)
_ALONG: Final = 1.6
_ALONG_AT_MOST: Final = 2.5


def notes(one: CountersPass, tool: str | None, chip: str | None) -> list[str]:
    """What is worth knowing of a counters pass before it runs: its price, and metrics that this chip does not have."""
    asked = requested(one, tool, chip)
    reasons: dict[str, list[str]] = {}
    for name, why in asked.absent.items():
        reasons.setdefault(why, []).append(name)
    found = [
        f"{one.name}: left out ({why}): {', '.join(names[:_SHOWN])}"
        + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        for why, names in reasons.items()
    ]
    if chip is not None and find_chip(chip) is None:
        found.append(f"{one.name}: nsw knows no chip {chip}: metrics are not checked before a run has met the GPU")
    return [_price_in_words(one, tool, chip), *found]


def _price_in_words(one: CountersPass, tool: str | None, chip: str | None) -> str:
    """A sentence on launches, passes and time, as far as they are known."""
    if tool != "ncu":
        return f"{one.name}: how often {tool} runs a launch again was not measured: only the limit bounds it"
    found = passes(one.metrics, find_chip(chip))
    if one.replay != "kernel":
        bound = f" to {found.at_most}" if found.at_most != found.expected else ""
        again = "the whole program is run" if one.replay in WHOLE_PROGRAM else "the range is run"
        return f"{one.name}: {again} some {found.expected}{bound} times (as a launch on gh100: an estimate)"
    where = "measured on gh100" if found.measured else "as on gh100: an estimate"
    count = f"{found.expected} pass{'es' if found.expected != 1 else ''}"
    bound = f", at most {found.at_most}" if found.at_most != found.expected else ""
    each = found.expected_s(1) - found.expected_s(0)
    head = f"{one.name}: {count}{bound} and about {each:.1g} s a launch ({where})"
    chosen = _launches(one)
    if chosen is None:
        return f"{head}, of every launch that its filter matches"
    some, most = (round(_ALONG * chosen), round(_ALONG_AT_MOST * chosen)) if one.is_guided else (chosen, chosen)
    seconds = f"about {found.expected_s(some):.0f} s and the program's own time, at most {found.at_most_s(most):.0f} s"
    if some == chosen:
        return f"{head}; {chosen} launches a run, {seconds}"
    return (
        f"{head}; {chosen} launches are chosen a run, and some {some} measured, since ncu takes one list of ordinals:"
        f" {seconds}"
    )


def _launches(one: CountersPass) -> int | None:
    """How many launches are chosen, as far as the recipe says."""
    kernels = one.kernels
    if one.is_guided:
        named = len(kernels.names) if kernels.names else None
        most = kernels.top or kernels.at_most or named or AT_MOST
        return most * (one.launches.sample or SAMPLE)
    if kernels.names and one.launches.count is not None:
        return len(kernels.names) * one.launches.count
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


def price(launches_ns: Sequence[int], passes: Passes, program_s: float, replay: str) -> Price:
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
        program_s + passes.expected_s(count) + passes.expected * kernels_s,
        program_s + passes.at_most_s(count) + passes.at_most * kernels_s,
    )


def limit(of: Price, plan_s: int, finished: Sequence[tuple[float, float]]) -> Limit:
    """The limit of a run: never above the plan's, which was confirmed.

    Args:
        of: Its price.
        plan_s: Its limit in the plan, in seconds.
        finished: The expected and the actual run time of runs of this pass that finished, in seconds.
    """
    ratios = [took / expected for expected, took in finished if expected > 0]
    corrected = of.expected_s * max(ratios, default=1.0)
    if ratios:
        how, wanted = f" by {plural(len(ratios), 'finished run')}", int(_CLOSE[0] * corrected + _CLOSE[1])
    else:
        how, wanted = f", at most {of.at_most_s:.0f} s, by its price", int(_WIDE[0] * of.at_most_s + _WIDE[1])
    head = f"expected to take {corrected:.0f} s{how}"
    if corrected > plan_s:
        return Limit(
            None,
            f"{head}, longer than its limit of {plan_s} s: it may be cut off; give it more `time`, or measure fewer"
            " launches or metrics",
        )
    if wanted >= plan_s:
        return Limit(None, f"{head}; limit {plan_s} s, as planned")
    return Limit(wanted, f"{head}; limit {wanted} s instead of {plan_s} s")


def planned_s(recipe: Recipe, one: CountersPass, case: str, params: Mapping[str, Any]) -> int | None:
    """The limit that the plan gives a run of a pass, in seconds; None where it cannot be worked out again."""
    from nsw.recipe.units import parse_duration

    given = one.time if one.time is not None else recipe.resources.time
    try:
        value = Resolver().value(given, {**params, "case": case})
        return int(parse_duration(value) if isinstance(value, str) else value)
    except (Fault, NswError, TypeError, ValueError):
        return None


def expected_ranks(recipe: Recipe, pass_name: str, local_ranks: Mapping[int, int]) -> frozenset[int] | None:
    """The ranks that a pass profiles where each process has its own profiler; None: they were not counted.

    Args:
        recipe: The recipe.
        pass_name: The pass.
        local_ranks: The ranks of the run as they landed, each with its place on its node; empty: not known.
    """
    one = next((one for one in recipe.passes if one.name == pass_name), None)
    if one is None or one.kind == "baseline":
        return None
    ranks = counted_ranks(one, each=True) if one.kind == "counters" else one.ranks
    if ranks == "first":
        return frozenset({0})
    if not isinstance(ranks, str):
        return frozenset(ranks or ())
    wanted = (rank for rank, local in local_ranks.items() if ranks == "all" or local == 0)
    return frozenset(wanted) or None
