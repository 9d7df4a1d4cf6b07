"""A plan -> a campaign on disk: its folder, the application's files, the scripts, the ledger. Nothing is submitted."""

from __future__ import annotations

import os
import shutil
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw import __version__
from nsw.campaign import folder as folders
from nsw.campaign import ledger_meta_keys
from nsw.campaign.folder_permissions import group_may_read
from nsw.campaign.ledger import Ledger
from nsw.campaign.origins import origins
from nsw.campaign.private_folder import write_secrets
from nsw.errors import CampaignError
from nsw.recipe.document import as_yaml
from nsw.recipe.units import parse_canary
from nsw.safe_files import open_regular
from nsw.scripts.render import write_machinery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nsw.plan.model import Job, Plan


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a campaign is made of beside its plan.

    `recipe` is the resolved recipe as data, `site` the site as data; `render` gives the script of a job for a
    campaign's id and scratch folder; `origin` is the recipe's file; `secrets` the text of the file with the secret
    environment variables, empty where there are none.
    """

    recipe: dict[str, Any]
    site: dict[str, Any]
    scratch: str | None
    render: Callable[[Job, str, str], str]
    origin: Path | None = None
    secrets: str = field(default="", repr=False)


def begin(root: Path, plan: Plan, made_of: Ingredients) -> folders.CampaignFolder:
    """Make the campaign's folder: whole, or not at all."""
    with group_may_read(plan.share), folders.made(root, plan.name, share=plan.share) as (hidden, folder):
        _fill(hidden, folder, plan, made_of)
    return folder


def _fill(folder: folders.CampaignFolder, called: folders.CampaignFolder, plan: Plan, made_of: Ingredients) -> None:
    """Fill a folder that is not yet `called` so."""
    scratch = f"{made_of.scratch}/{called.id}" if made_of.scratch else str((called.path / "scratch").absolute())
    folder.lock.touch()  # with the rights of the other files: a read-only command tests it
    copy_files(plan.files, folder.app)
    write_scripts(folder, plan, lambda job: made_of.render(job, called.id, scratch))
    if made_of.secrets:
        write_secrets(folder.secrets, made_of.secrets)
    folder.recipe.write_text(_lock_text(made_of.recipe, plan), encoding="utf-8")
    rule = made_of.recipe.get("canary") or made_of.site.get("canary") or "off"
    stop_after = made_of.recipe.get("stop_after_failures") or made_of.site.get("stop_after_failures")
    with Ledger(folder.ledger, create=True) as ledger:
        with ledger.transaction():
            ledger.set_meta(ledger_meta_keys.VERSION, __version__)
            ledger.set_meta(ledger_meta_keys.NAME, plan.name)
            ledger.set_meta(ledger_meta_keys.SITE, plan.site)
            ledger.set_meta(ledger_meta_keys.SITE_DATA, made_of.site)
            ledger.set_meta(ledger_meta_keys.SCRATCH, scratch)
            ledger.set_meta(ledger_meta_keys.CREATED, time.time())
            if stop_after:
                ledger.set_meta(ledger_meta_keys.STOP_AFTER, int(stop_after))
            ledger.set_meta(ledger_meta_keys.COLLECT, made_of.recipe.get("collect") or "reports")
            ledger.set_meta(ledger_meta_keys.RECIPE, str(made_of.origin.absolute()) if made_of.origin else None)
            ledger.set_meta(ledger_meta_keys.ORIGINS, origins(plan.files, made_of.origin))
            ledger.set_meta(ledger_meta_keys.PLACES, {key: str(mark) for key, mark in plan.marks.items()})
            if plan.note:
                ledger.set_meta(ledger_meta_keys.NOTE, plan.note)
        ledger.add_plan(plan)
        if parse_canary(rule).wanted(len(plan.runs)):
            ledger.hold_for_canary()


def write_scripts(folder: folders.CampaignFolder, plan: Plan, render: Callable[[Job], str]) -> list[Path]:
    """Write the script of each job, build and reduction of a plan, and the file that they share."""
    scripts = [write_machinery(folder.scripts)]
    for job in (*plan.builds, *plan.jobs, *plan.reductions):
        script = folder.script(job.name)
        script.write_text(render(job), encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)  # Cobalt starts only what is executable
        scripts.append(script)
    return scripts


def copy_files(files: Iterable[tuple[str, str]], folder: Path) -> None:
    """Copy an application's files (where they are, their name beside the program) into a folder.

    Raises:
        CampaignError: One cannot be copied.
    """
    for source, name in files:
        _copy(Path(source), folder / name)


def _copy(source: Path, target: Path) -> None:
    try:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, copy_function=_copy_regular)
        else:
            _copy_regular(source, target)
    except shutil.Error as fault:  # one entry for each file of the folder that failed
        name, _, why = fault.args[0][0]
        raise CampaignError(f"{name} cannot be copied into the campaign: {why}") from None
    except OSError as fault:
        raise CampaignError(f"{source} cannot be copied into the campaign: {fault.strerror or fault}") from None


def _copy_regular(source: Path | str, target: Path | str) -> None:
    os.close(open_regular(source))  # a FIFO would never answer, a device never end
    shutil.copy2(source, target)


def _lock_text(recipe: dict[str, Any], plan: Plan) -> str:
    head = f"# The recipe of this campaign as it was resolved on site {plan.site} by nsw {__version__}.\n"
    note = f"# {plan.note}\n" if plan.note else ""
    return head + note + as_yaml(recipe)
