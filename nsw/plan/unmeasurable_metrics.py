"""Whether the metrics of counters passes can be measured on the site's chip, and by which tool: faults at their lines.

Before submission the chip is the site's `gpus.chip`. Where a site names none, the recipe's check has found what no chip
has, and the stage that learns the chip from a report calls `metric_faults` with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.errors import Diagnostic, did_you_mean
from nsw.metrics import check, find_chip, unsupported
from nsw.metrics.catalogue import chips
from nsw.metrics.requests import tool_for, tool_named
from nsw.recipe.profiler_names import AUTO

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nsw.metrics import Chip
    from nsw.metrics.requests import Tool
    from nsw.plan.facts import SiteFacts
    from nsw.recipe.load import LoadedRecipe
    from nsw.site.load import LoadedSite


def faults_on_site(loaded: LoadedRecipe, place: LoadedSite, facts: SiteFacts) -> list[Diagnostic]:
    """The faults of all counters passes on the chip that the site names, else on the one found there; none without.

    A chip that nsw does not know is a fault where another name is near it; else it is taken for a new one.
    """
    named = place.site.gpus.chip
    chip = find_chip(named or facts.chip)
    if chip is None:
        hint = did_you_mean(str(named).lower(), chips()) if named else None
        where = ("sites", place.site.name, "gpus", "chip")
        return [place.document.diagnostic(where, f"there is no chip {named}", hint=hint)] if hint else []
    if not any(one.kind == "counters" for one in loaded.recipe.passes):
        return []
    return list(metric_faults(loaded, chip, known=facts.ncu_names(chip)))


def metric_faults(
    loaded: LoadedRecipe, chip: Chip, versions: dict[Tool, str] | None = None, known: Collection[str] | None = None
) -> Iterator[Diagnostic]:
    """The faults of all counters passes on a chip.

    Args:
        loaded: The recipe.
        chip: The chip that the counters are of.
        versions: The versions of the site's tools, where they are known.
        known: The base names that the site's own `ncu --query-metrics --chip` lists, instead of the shipped ones.
    """
    for number, one in enumerate(loaded.recipe.passes):
        if one.kind != "counters":
            continue
        tool = tool_for(chip) if one.tool == AUTO else tool_named(one.tool)
        why = unsupported(tool, chip, (versions or {}).get(tool))
        if why is not None:
            where = ("passes", number, "counters", *(() if one.tool == AUTO else ("tool",)))
            yield loaded.document.diagnostic(where, why)
            continue
        for fault in check(one.metrics, chip, tool, known=known, replay=one.replay):
            path = ("passes", number, "counters", "metrics", fault.index)
            yield loaded.document.diagnostic(path, fault.message, hint=fault.hint)
