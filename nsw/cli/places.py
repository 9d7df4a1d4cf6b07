"""From what a user names to what it is: recipe, site, and what the site has."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.errors import UsageError, did_you_mean
from nsw.plan.facts import SiteFacts
from nsw.present.text_of_others import say
from nsw.site.registered import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.plan.model import Plan
    from nsw.recipe.load import LoadedRecipe
    from nsw.recipe.overrides import Overrides
    from nsw.site.load import LoadedSite

_COMMON_NSYS = "/opt/nvidia/nsight-systems/*/bin/nsys"


def load(
    recipe: str, site: str | None, sites: Sequence[Path] | None, options: Overrides | None = None
) -> tuple[LoadedRecipe, LoadedSite, SiteFacts]:
    """The recipe as it stands on the site (None: the default one), the site, and what it has."""
    from nsw.recipe.load import load_recipe
    from nsw.site.load import load_site

    place = load_site(site, list(sites) if sites else None, warn)
    if site is None:
        _warn_of_batch_system(place)
    return load_recipe(recipe_path(recipe), place.site.name, options), place, facts(place)


def _warn_of_batch_system(place: LoadedSite) -> None:
    """Warn where a batch system is at hand and nothing says that runs are for this very machine."""
    from nsw.schedulers.create import batch_commands_here

    if place.site.default or place.site.name != LOCAL:
        return
    if found := batch_commands_here():
        warn(
            f"no site is named, so all runs here and now, beside {found[0]}: name one with --site or NSW_SITE, or write"
            " `default: true` at a site"
        )


def warn(text: str) -> None:
    """Print a warning on stderr."""
    from nsw.present.terminal import console

    console(sys.stderr).print(f"warning: {text}", style="yellow", soft_wrap=True)


def make_plan(
    recipe: str, site: str | None, sites: Sequence[Path] | None, options: Overrides | None = None
) -> tuple[Plan, LoadedRecipe, LoadedSite, SiteFacts]:
    """Load and plan."""
    from nsw.errors import InputError
    from nsw.plan.build import build_plan
    from nsw.schedulers.create import adapter_of
    from nsw.schedulers.fitting import foreign_lines, refused_keys

    loaded, place, known = load(recipe, site, sites, options)
    made = build_plan(loaded, place, known, fit=options is not None and options.fit)
    adapter = adapter_of(place.site.scheduler)
    if adapter is not None:
        if refused := refused_keys(adapter, loaded, place):
            raise InputError(refused)
        loaded = replace(loaded, warnings=[*loaded.warnings, *foreign_lines(adapter, loaded, place)])
    return made, loaded, place, known


def recipe_path(named: str) -> Path:
    """The recipe file: as named, or the shipped one of that name.

    Raises:
        UsageError: Neither is there.
    """
    path = Path(named)
    if path.is_file():
        return path
    shipped = _shipped()
    wanted = path.name if path.suffix else f"{path.name}.yaml"
    if wanted in shipped and (path.parent == Path() or path.parts[:-1] == ("recipes",)):
        say(f"recipe: {shipped[wanted]}, as shipped with nsw ({named} is not here)", file=sys.stderr)
        return shipped[wanted]
    if path.is_dir():
        lock = path / "recipe.lock.yaml"
        hint = f"`{lock}` is the recipe that this campaign carried out" if lock.is_file() else "name a file in it"
        raise UsageError(f"{named} is a folder, and no recipe", hint=hint)
    near = [str(p) for p in (*path.parent.glob("*.yaml"), *path.parent.glob("*.yml"))] if path.parent.is_dir() else []
    raise UsageError(
        f"there is no recipe {named}",
        hint=did_you_mean(named, [*near, *shipped]) or f"shipped recipes: {', '.join(sorted(shipped))}",
    )


def _shipped() -> dict[str, Path]:
    """The recipes that nsw ships, by the name of their file."""
    from nsw.resources import recipes_folder

    return {p.name: p for p in sorted(recipes_folder().glob("*.yaml"))}


def shipped_recipe(named: str) -> Path:
    """The shipped recipe of that name, with or without its ending.

    Raises:
        UsageError: There is none.
    """
    shipped = _shipped()
    if found := shipped.get(named) or shipped.get(f"{named}.yaml"):
        return found
    names = [name.removesuffix(".yaml") for name in shipped]
    hint = did_you_mean(named, names) or f"shipped recipes: {', '.join(names)}"
    raise UsageError(f"nsw ships no recipe {named}", hint=hint)


def facts(place: LoadedSite) -> SiteFacts:
    """Find out what a site on this machine has."""
    site = place.site
    if site.replay:
        return _demo_facts(place)
    if site.scheduler != "local" or site.transport.kind != "local":
        per_node = site.gpus.per_node
        return SiteFacts(gpus_per_node=per_node if isinstance(per_node, int) else None)
    from nsw.schedulers.gpus import detect

    tools, missing = _tools({str(tool): path for tool, path in site.profilers.items()})
    known = isinstance(site.gpus.per_node, int) and site.gpus.chip is not None
    gpus = [] if known else detect()
    chip = gpus[0].name if gpus else None
    return SiteFacts(gpus_per_node=_gpu_count(site, lambda: len(gpus)), tools=tools, missing=missing, chip=chip)


def _gpu_count(site: Any, detected: Any) -> int:
    per_node = site.gpus.per_node
    return per_node if isinstance(per_node, int) else detected()


def _tools(configured: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Profilers of this machine: found ones with their path, and why the others are not."""
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for tool in ("nsys", "nvprof", "ncu"):
        named = configured.get(tool) or os.environ.get(f"NSW_{tool.upper()}")
        path = shutil.which(os.path.expandvars(named or tool))
        if path:
            found[tool] = path
        elif named:
            missing[tool] = f"{tool} is not at {named}, where the site says"
        else:
            missing[tool] = f"{tool} is not on PATH (name it in the site's profilers, or in NSW_{tool.upper()})"
    return found, missing


def _demo_facts(place: LoadedSite) -> SiteFacts:
    from nsw.demo import NOTE, recordings

    known = {(tuple(sorted(r.params.items())), r.pass_kind): r for r in recordings()}

    def replay(params: Mapping[str, Any], pass_kind: str) -> tuple[str, ...] | None:
        recording = known.get((tuple(sorted(params.items())), pass_kind))
        return (sys.executable, "-P", "-m", "nsw.demo", recording.name) if recording else None

    return SiteFacts(
        gpus_per_node=_gpu_count(place.site, lambda: 4),
        replay=replay,
        replayed_reports=("*.sqlite",),
        replayed_tool="nsys",
        note=NOTE,
    )
