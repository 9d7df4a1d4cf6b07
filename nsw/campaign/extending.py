"""Add to a campaign: the runs that a recipe asks for beyond it, or runs to retry with another limit or program."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.campaign import added_jobs as parts
from nsw.campaign import folder as folders
from nsw.campaign import ledger_meta_keys
from nsw.campaign.dependencies import release_reductions
from nsw.campaign.engine import go_on
from nsw.campaign.events import Message
from nsw.campaign.ledger import IN_FLIGHT, Ledger, State
from nsw.campaign.restart_done_runs import forget_done
from nsw.campaign.running import Running
from nsw.campaign.runs_by_name import as_option
from nsw.errors import CampaignError, UsageError
from nsw.recipe.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.campaign.planning import Planned
    from nsw.plan.changes_to_campaign import Changes
    from nsw.plan.model import Part
    from nsw.recipe.overrides import Overrides


@dataclass(frozen=True, slots=True)
class Extension:
    """What a recipe adds to a campaign, and the plan of that alone (None: nothing to do)."""

    folder: folders.CampaignFolder
    changes: Changes
    planned: Planned | None
    part: Part | None


def extension(
    folder: folders.CampaignFolder,
    recipe: str,
    sites: Sequence[Path] | None,
    options: Overrides | None,
    notify: Callable[[Message], object],
) -> Extension:
    """Compare a recipe with a campaign, and plan what it adds; nothing is written.

    Raises:
        InputError, UsageError: As `make_plan` does.
        UsageError: A run that would be done again is not over.
    """
    from nsw.campaign.planning import make_plan
    from nsw.campaign.program_versions import versions_of
    from nsw.campaign.recipe_lock import files_in, hash_of
    from nsw.plan.changes_to_campaign import changes

    with Ledger(folder.ledger, read_only=True) as ledger:
        site, rows = ledger.meta(ledger_meta_keys.SITE), ledger.runs()
        now = make_plan(recipe, site, sites, options, notify)
        before = make_plan(str(folder.recipe), site, sites, None, lambda _message: None)
        lock = before.recipe.recipe.lock
        files = {
            name: hash_of(file) for source, called in now.plan.files for file, name in files_in(Path(source), called)
        }
        older = versions_of(ledger, rows)[:-1]
        found = changes(
            before.plan, now.plan, lock.files if lock else {}, files, [run.id for run in rows],
            {run.id: one.files for one in older for run in one.runs},
        )  # fmt: skip
        if going := [run.id for run in rows if run.id in found.again and run.state in IN_FLIGHT]:
            raise UsageError(
                f"{going[0]} would be run again ({found.again[going[0]]}), and is not over",
                hint=f"`nsw resume{as_option(folder)}` waits for it, `nsw cancel{as_option(folder)}` ends it",
            )
        if not found.runs:
            return Extension(folder, found, None, None)
        part = parts.part_of(ledger, found.runs, new_app=found.program)
    return Extension(folder, found, make_plan(recipe, site, sites, options, lambda _message: None, part), part)


def extend(it: Extension) -> Running:
    """Add to the campaign what an extension says; it is to be driven then.

    Raises:
        CampaignLockedError: Another process drives it.
        InputError: The scheduler would refuse a job.
    """
    from nsw.campaign.origins import origins
    from nsw.campaign.recipe_lock import read_locked, write_locked
    from nsw.campaign.start import check, lock_of, resolved
    from nsw.recipe.joined_recipes import joined

    assert it.planned is not None
    assert it.part is not None
    folder, planned = it.folder, it.planned
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        ready = check(planned)
        lock, _ = lock_of(planned)
        data = resolved(planned, lock, app=it.part.app)
        there = {run.case_id for run in ledger.runs()}
        kept = [case.params for case in planned.recipe.left_out if case.id in there]
        data["matrix"]["exclude"] = [one for one in data["matrix"]["exclude"] if one not in kept]
        if it.changes.absent:
            added = {run.case_id: run.params for run in planned.plan.runs if run.case_id not in there}
            data = joined(read_locked(folder)[1], data, added.values()) or data
        _add(folder, ledger, planned, it.part, ready.render, planned.plan.files if it.changes.program else None)
        with ledger.transaction():
            _again(folder, ledger, list(it.changes.again))
            if planned.recipe.path.resolve() != folder.recipe.resolve():  # whose files are the campaign's own copies
                ledger.set_meta(ledger_meta_keys.RECIPE, str(planned.recipe.path.absolute()))
                ledger.set_meta(ledger_meta_keys.FIGURES_FROM, None)
                ledger.set_meta(ledger_meta_keys.ORIGINS, origins(planned.plan.files, planned.recipe.path))
            go_on(ledger)
        write_locked(folder, f"# The recipe of this campaign, part {it.part.number}.\n", data)
    return Running(folder)


def replan(
    folder: folders.CampaignFolder,
    ledger: Ledger,
    runs: Sequence[str],
    notify: Callable[[Message], object],
    *,
    time_s: int | None = None,
    update_app: bool = False,
    sites: Sequence[Path] | None = None,
) -> None:
    """Give runs that are retried jobs of their own, with another time limit or the program as it is now.

    Raises:
        UsageError: The program's files are gone, or there are none.
        InputError: The site cannot do it, or its scheduler would refuse a job.
    """
    from nsw.campaign.folder import Log
    from nsw.campaign.origins import origins
    from nsw.campaign.planning import make_plan
    from nsw.campaign.recipe_lock import files_in, hash_of, read_locked, write_locked
    from nsw.campaign.start import check

    head, data = read_locked(folder)
    files = parts.sources_of(ledger) if update_app else None
    hashes = {n: hash_of(f) for source, called in files or () for f, n in files_in(Path(source), called)}
    before = dict((data.get("lock") or {}).get("files") or {})
    changed = [name for name in sorted({*hashes, *before}) if hashes.get(name) != before.get(name)]
    if update_app and not changed:
        notify(Message("the program is as it was when it was copied: it is not copied again"))
        files = None
    part = parts.part_of(ledger, runs, new_app=files is not None, time_s=time_s)
    planned = make_plan(
        str(folder.recipe), ledger.meta(ledger_meta_keys.SITE), sites, None, lambda _message: None, part
    )
    missing = set(runs) - {run.id for run in planned.plan.runs}
    if missing:
        raise CampaignError(f"{folder.recipe} does not have {min(missing)}, so its runs cannot be planned again")
    _add(folder, ledger, planned, part, check(planned).render, files)
    told = []
    if files is not None:
        recipe = ledger.meta(ledger_meta_keys.RECIPE)
        ledger.set_meta(
            ledger_meta_keys.ORIGINS, origins(files, Path(recipe) if recipe and Path(recipe).exists() else None)
        )
        data["app"]["files"] = [f"{part.app}/{name}" for _, name in files]
        data["lock"]["files"] = hashes
        told.append(
            "the program was copied again: " + ", ".join(f"{n} ({hashes.get(n, 'gone')[:12]})" for n in changed)
        )
    if time_s is not None:
        _set_time(data, format_duration(time_s))
        told.append(f"time limit {format_duration(time_s)}")
    write_locked(folder, head, data)
    for line in told:
        notify(Message(line))
    Log(folder.log).say(f"part {part.number} ({len(runs)} runs again): {'; '.join(told) or 'as before'}")


def _set_time(data: dict[str, Any], time: str) -> None:
    """The limit in a recipe as data: everywhere that one is set."""
    data.setdefault("resources", {})["time"] = time
    for entry in data.get("passes") or ():
        for one in entry.values():
            if isinstance(one, dict) and "time" in one:
                one["time"] = time


def _add(folder: folders.CampaignFolder, ledger: Ledger, planned: Planned, part: Part, render: Any, files: Any) -> None:
    from nsw.campaign.private_folder import write_secrets
    from nsw.campaign.takeover_archive import hold_folder, mark_of
    from nsw.scripts.secrets import secrets_text
    from nsw.transport.model import connect

    if text := secrets_text(planned.plan.secrets, os.environ):
        if not folder.secrets.exists():
            write_secrets(folder.secrets, text)
        elif folder.secrets.read_text(encoding="utf-8") != text:
            raise UsageError(
                "the secrets differ from those that runs of this campaign still need",
                hint=f"finish the campaign first (`nsw resume{as_option(folder)}`), or run the recipe as a new one",
            )
    scratch = ledger.meta(ledger_meta_keys.SCRATCH)
    with closing(connect(ledger.site(), scratch, mark_of(folder, ledger))) as transport:
        hold_folder(folder, ledger, transport, scratch)
        parts.add(folder, ledger, transport, part, replace(planned.plan, absent=()), render, files)


def _again(folder: folders.CampaignFolder, ledger: Ledger, runs: list[str]) -> None:
    """Let these runs begin again, whatever became of them."""
    forget_done(folder, ledger, runs)
    ledger.release(run.id for run in ledger.runs_named(runs) if run.state is not State.PLANNED)
    release_reductions(ledger, runs)
    ledger.hold_stage(runs)
