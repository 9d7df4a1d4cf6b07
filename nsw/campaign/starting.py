"""From a plan to a campaign on disk: what is checked first, what it costs, what its folder holds."""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_meta_keys import RECORDED
from nsw.errors import InputError, UsageError
from nsw.plan.jobs import APP
from nsw.site.scheduler_and_transport_names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsw.campaign.expected_cost import ExpectedCost
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.planning import Planned
    from nsw.plan.model import Job
    from nsw.recipe.model import Lock
    from nsw.site.load import LoadedSite


@dataclass(frozen=True, slots=True)
class Ready:
    """A plan whose site answers and would take its jobs.

    `calls` counts the scheduler's commands that finding this out took.
    """

    planned: Planned
    render: Callable[[Job, str, str], str] = field(repr=False)
    calls: Counter[str]


def lock_of(planned: Planned) -> tuple[Lock, list[str]]:
    """The lock of a campaign that starts now, and how it differs from the one that the recipe repeats.

    Raises:
        UsageError: The recipe or a file of the program has a name that is not UTF-8.
    """
    from nsw.campaign.recipe_lock import differences, taken
    from nsw.transport.local import LocalTransport

    loaded, here = planned.recipe, LocalTransport()
    before = loaded.recipe.lock
    lock = taken(planned.plan.files, loaded.folder, planned.place.site.name, here, before)
    sources = (source for source, _ in planned.plan.files)
    _require_utf8([str(loaded.path.absolute()), *sources, *lock.files], "rename it")
    return lock, differences(before, lock, here) if before else []


def check(planned: Planned) -> Ready:
    """Make sure that nothing is missing and that the site would take the jobs.

    A typo then costs neither a campaign nor a wait in the queue.

    Raises:
        InputError: A secret is not set, or the scheduler would refuse a job.
        UnreachableError: The site's scheduler does not answer.
    """
    from nsw.campaign.dry_run import ask, reach

    if absent := planned.unset_secrets():
        raise InputError(absent)
    reach(planned.place)
    render = planned.renderer()
    calls: Counter[str] = Counter()
    refused = [p.refused for p in ask(planned, render, calls) if p.refused]
    if refused:
        raise InputError(refused)
    return Ready(planned, render, calls)


def too_dear(planned: Planned, expected: ExpectedCost | None) -> str | None:
    """What a person must confirm: the cost, where it is above the site's confirm_above; else None.

    Args:
        planned: The plan.
        expected: Its cost by earlier campaigns; None: there are none, and the most that it can cost counts.
    """
    site = planned.place.site
    limit = site.confirm_above
    # on this machine nobody else pays: only a limit that the site states is asked about
    if site.scheduler == "local" and "confirm_above" not in site.model_fields_set:
        return None
    counted = expected or planned.plan
    cost = counted.node_hours if limit.unit == "node-hour" else counted.gpu_hours
    if cost <= limit.number:
        return None
    costs = "will probably cost" if expected else "costs up to"
    return f"this {costs} {cost:.2f} {limit.unit}s, more than the site's confirm_above ({limit.number:g})"


def start(home: Path, ready: Ready, lock: Lock) -> CampaignFolder:
    """Make the campaign's folder below `home`; nothing is submitted yet.

    Raises:
        CampaignError: The folder cannot be made.
        UsageError: No job script could be used there.
        InputError, UsageError: The site's scratch folder cannot be used.
    """
    from nsw.campaign.make_campaign import Ingredients, begin
    from nsw.scripts.secrets import secrets_text

    planned = ready.planned
    _check_path(home.absolute(), planned.place)
    ingredients = Ingredients(
        resolved(planned, lock),
        planned.place.site.model_dump(mode="json", by_alias=True),
        _scratch(planned.place),
        ready.render,
        planned.recipe.path,
        secrets_text(planned.plan.secrets, os.environ),
    )
    folder = begin(home, planned.plan, ingredients)
    with Ledger(folder.ledger) as ledger:
        ledger.set_calls(ready.calls)
        if lock.choices is not None:
            ledger.set_meta(RECORDED, lock.choices.model_dump(mode="json"))
    return folder


def _check_path(home: Path, place: LoadedSite) -> None:
    """Raise where the path of the campaigns cannot be written into a job script, or be that of one."""
    from nsw.schedulers.create import adapter_of

    adapter, here = adapter_of(place.site.scheduler), place.site.transport.kind == LOCAL
    unfit = adapter.capabilities.unfit_in_script_paths if adapter is not None and here else ""
    hint = "name another folder for campaigns with --root or NSW_ROOT"
    _require_utf8([str(home)], hint)
    if adapter is not None and unfit and (found := re.search(f"[{unfit}]", str(home))):
        raise UsageError(
            f"{adapter.name} finds no job script in {home}: it drops or replaces {found[0]!r} in paths", hint=hint
        )


def _require_utf8(paths: Iterable[str], hint: str) -> None:
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the name {path!a} is not UTF-8, and nsw cannot write it down", hint=hint) from None


def resolved(planned: Planned, lock: Lock, app: str = APP) -> dict[str, Any]:
    """The recipe as data, with every default written out: another version of nsw may have others."""
    recipe = planned.recipe.recipe
    data = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    data["matrix"] = recipe.matrix.model_dump(mode="python", by_alias=True)  # numbers as they were written
    left_out = (case.params for case in planned.recipe.left_out)
    data["matrix"]["exclude"] = [*(data["matrix"].get("exclude") or []), *left_out]
    data["app"]["files"] = [f"{app}/{name}" for _, name in planned.plan.files]
    data.pop("sites", None)
    tools = {"tools": recipe.lock.tools if recipe.lock else {}}
    data["lock"] = lock.model_dump(mode="json", exclude_none=True) | tools
    return data


def _scratch(place: LoadedSite) -> str | None:
    """The site's scratch folder with its $VARIABLES and ~ filled in as the site means them.

    Raises:
        UsageError: A variable is not set, or the path is not absolute.
        UnreachableError: The site could not be asked.
    """
    from nsw.campaign.dry_run import way_to

    given = place.site.scratch
    if given is None:
        return None
    with closing(way_to(place)) as transport:
        try:
            path = transport.expand(given)
        except UsageError as fault:
            raise UsageError(f"scratch of site {place.site.name}: {fault.message}", hint=fault.hint) from None
        if not transport.remote:
            _check_writable(path, place)
    return path


def _check_writable(path: str, place: LoadedSite) -> None:
    """Raise where the site names a folder that cannot be written, before there is a campaign that needs it."""
    there = next(p for p in (Path(path), *Path(path).parents) if p.exists())
    if not os.access(there, os.W_OK | os.X_OK) or not there.is_dir():
        what = f"{there} cannot be written" if there.is_dir() else f"{there} is no folder"
        hint = "name a folder of yours that the compute nodes see too, such as /scratch/$USER/nsw"
        where = ("sites", place.site.name, "scratch")
        raise InputError([place.document.diagnostic(where, f"scratch is {path}, but {what}", hint=hint)])
