"""Read the reports of a campaign again, with the figures that a recipe asks for now."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.campaign import folder as folders
from nsw.campaign import rereading
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_meta_keys import FIGURES_FROM, RECIPE, SITE
from nsw.campaign.message import Message
from nsw.campaign.read_collected import read_reports, recipe_of
from nsw.campaign.runs_by_name import as_option
from nsw.campaign.select_runs import Selection, selected
from nsw.errors import CampaignError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.recipe.model import Recipe

_ALL: Final = Selection()


@dataclass(frozen=True, slots=True)
class Reread:
    """What reading again did.

    Attributes:
        source: The recipe that figures were taken from.
        taken: What was taken from it, a line each.
        changes: How the tables differ from before, a line each.
    """

    source: Path
    taken: list[str]
    changes: list[str]


def reread(
    folder: folders.CampaignFolder,
    recipe: Path | None,
    notify: Callable[[Message], object],
    progress: Callable[[int, int], object],
    selection: Selection = _ALL,
) -> Reread:
    """Read the collected reports of a campaign again, or those of some runs.

    Args:
        folder: The campaign.
        recipe: The recipe to take figures and the report section from; None: that of the last time, else the run's.
        notify: Called with what a person should know.
        progress: Called with how many runs are read, of how many.
        selection: The runs; nothing: all. The others keep what was read of them, also the figures of before.

    Raises:
        CampaignLockedError: An nsw drives the campaign.
        CampaignError: No report of it is here.
        InputError: The recipe has faults.
        UsageError: No run is meant.
    """
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        chosen = {run.id for run in selected(ledger, ledger.runs(), selection)} if selection else None
        source, now = _recipe(ledger, recipe, notify)
        locked = recipe_of(folder)
        before = rereading.state_of(folder, ledger)
        taken = _take_over(folder, source, locked, now, notify) if now is not None else []
        if recipe is not None:
            ledger.set_meta(FIGURES_FROM, str(recipe.absolute()))
        runs, gone = rereading.release(folder, ledger, chosen)
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            notify(Message(f"not read again: {gone[0]}{more}: nothing is left in {folder.reports / gone[0]}"))
        if not runs:
            which = as_option(folder)
            raise CampaignError(
                f"campaign {folder.id} has no report to read",
                hint=f"`nsw fetch{which}` downloads reports that are still on the site; `nsw resume{which}` continues"
                " with the rest",
            )
        read_reports(folder, ledger, progress)
        return Reread(source, taken, rereading.changes(before, rereading.state_of(folder, ledger)))


def _recipe(ledger: Ledger, named: Path | None, notify: Callable[[Message], object]) -> tuple[Path, Recipe | None]:
    """The recipe to take figures from, and its file; no recipe where none is named and the file is gone."""
    from nsw.recipe.load import load_recipe

    latest = ledger.meta(FIGURES_FROM) or ledger.meta(RECIPE)
    path = named or Path(latest or "")
    if named is None and not path.is_file():
        if latest:
            notify(Message(f"{path} is gone: the figures are those of the campaign (`--recipe FILE` names others)"))
        return path, None
    return path, load_recipe(path, ledger.meta(SITE), with_files=False).recipe


def _take_over(
    folder: folders.CampaignFolder, source: Path, before: Recipe, now: Recipe, notify: Callable[[Message], object]
) -> list[str]:
    from nsw.campaign.log import Log
    from nsw.campaign.recipe_lock import hash_of

    told = rereading.take_over(folder, before, now)
    if told:
        Log(folder.log).say(f"reread with {source} (SHA-256 {hash_of(source)}): {'; '.join(told)}")
    if other := rereading.not_taken(before, now):
        what = ", ".join(other)
        notify(Message(f"{source} differs in {what} too, which reading does not change: `nsw run` does runs with it"))
    return told
