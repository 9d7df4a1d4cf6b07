"""What a recipe or its site asks for that a scheduler, a chip or this version refuses, each at the line that asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from nsw.errors import Diagnostic, Mark, did_you_mean
from nsw.metrics import Chip, check, find_chip, unsupported
from nsw.metrics.catalogue import chips
from nsw.metrics.requests import Tool, tool_for, tool_named
from nsw.recipe.profiler_names import AUTO

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from nsw.plan.model import SiteFacts
    from nsw.recipe.load import LoadedRecipe
    from nsw.site.load import LoadedSite

__all__ = ["faults_on_site", "marks", "metric_faults", "refused_at"]


RESOURCE_KEYS: Final = (
    "nodes",
    "gpus",
    "cpus_per_task",
    "memory",
    "time",
    "queue",
    "partition",
    "account",
    "qos",
    "gres",
    "reservation",
    "constraint",
    "extra",
)
# keys that may stand for the one that a scheduler names
_ALSO: Final = {"queue": ("partition",), "partition": ("queue",), "gres": ("gpus",)}
# what a node must have together: Slurm says only that no node has it
_TOGETHER: Final = ("gpus", "memory", "cpus_per_task")


_KeyLocation: TypeAlias = "tuple[LoadedRecipe | LoadedSite, tuple[str, ...]]"


def marks(loaded: LoadedRecipe, loaded_site: LoadedSite, *, gpus: int) -> dict[str, Mark]:
    """The place of everything that was asked for, by the key that a refusal names; of what was not, where it belongs.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        gpus: The most GPUs that a run asks for.
    """
    has_resources = loaded.document.node(("resources",)) is not None
    belongs: _KeyLocation | None = (loaded, ("resources",)) if has_resources else None
    locations = (
        (key, _find_key(loaded, loaded_site, _asked_for(loaded, loaded_site, key, gpus)) or belongs)
        for key in RESOURCE_KEYS
    )
    return {key: mark for key, at in locations if at and (mark := at[0].document.mark(at[1]))}


def refused_at(
    loaded: LoadedRecipe, loaded_site: LoadedSite, key: str | None, message: str, hint: str | None, *, gpus: int
) -> Diagnostic:
    """The refusal of a scheduler at the line that asks for it: the recipe's where it says so, else the site's.

    Args:
        loaded: The recipe.
        loaded_site: The site.
        key: The key that the refusal names.
        message: What the scheduler said.
        hint: What to do.
        gpus: How many GPUs the refused job asks for.
    """
    from nsw.errors import Diagnostic

    at = _find_key(loaded, loaded_site, _asked_for(loaded, loaded_site, key, gpus)) if key else None
    if at is not None:
        return at[0].document.diagnostic(at[1], message, hint=hint)
    if loaded.document.node(("resources",)) is not None:
        return loaded.document.diagnostic(("resources",), message, hint=hint, key=True)
    return Diagnostic(message, hint=hint)


def _asked_for(loaded: LoadedRecipe, loaded_site: LoadedSite, key: str, gpus: int) -> str:
    """Where no node has what is asked for: the first key that does ask, and that recipe or site names."""
    if key != _TOGETHER[0]:
        return key
    asking = _TOGETHER if gpus else _TOGETHER[1:]
    return next((name for name in asking if _find_key(loaded, loaded_site, name) is not None), key)


def _find_key(
    loaded: LoadedRecipe, loaded_site: LoadedSite, key: str
) -> tuple[LoadedRecipe | LoadedSite, tuple[str, ...]] | None:
    for document, path in ((loaded, ("resources",)), (loaded_site, ("sites", loaded_site.site.name))):
        for name in (key, *_ALSO.get(key, ())):
            if document.document.node((*path, name)) is not None:
                return document, (*path, name)
    return None


def faults_on_site(loaded: LoadedRecipe, loaded_site: LoadedSite, facts: SiteFacts) -> list[Diagnostic]:
    """The faults of all counters passes on the chip that the site names, else on the one found there; none without.

    A chip that nsw does not know is a fault where another name is near it; else it is taken for a new one.
    """
    chip_name = loaded_site.site.gpus.chip
    chip = find_chip(chip_name or facts.chip)
    if chip is None:
        hint = did_you_mean(str(chip_name).lower(), chips()) if chip_name else None
        key_path = ("sites", loaded_site.site.name, "gpus", "chip")
        return [loaded_site.document.diagnostic(key_path, f"there is no chip {chip_name}", hint=hint)] if hint else []
    if not any(pass_.kind == "counters" for pass_ in loaded.recipe.passes):
        return []
    return list(metric_faults(loaded, chip, queried_names=facts.ncu_names(chip)))


def metric_faults(
    loaded: LoadedRecipe,
    chip: Chip,
    versions: dict[Tool, str] | None = None,
    queried_names: Collection[str] | None = None,
) -> Iterator[Diagnostic]:
    """The faults of all counters passes on a chip.

    Args:
        loaded: The recipe.
        chip: The chip that the counters are of.
        versions: The versions of the site's tools, where they are known.
        queried_names: The base names that the site's `ncu --query-metrics --chip` lists, instead of the shipped ones.
    """
    for number, pass_ in enumerate(loaded.recipe.passes):
        if pass_.kind != "counters":
            continue
        tool = tool_for(chip) if pass_.tool == AUTO else tool_named(pass_.tool)
        reason = unsupported(tool, chip, (versions or {}).get(tool))
        if reason is not None:
            key_path = ("passes", number, "counters", *(() if pass_.tool == AUTO else ("tool",)))
            yield loaded.document.diagnostic(key_path, reason)
            continue
        for fault in check(pass_.metrics, chip, tool, site_names=queried_names, replay=pass_.replay):
            path = ("passes", number, "counters", "metrics", fault.index)
            yield loaded.document.diagnostic(path, fault.message, hint=fault.hint)
