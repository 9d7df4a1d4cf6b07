"""Guided counters: the timeline pass that chooses for them, added where the recipe has none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.errors import did_you_mean
from nsw.recipe.counters import CountersPass
from nsw.recipe.passes import TimelinePass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nsw.errors import Diagnostic
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.model import Recipe


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
