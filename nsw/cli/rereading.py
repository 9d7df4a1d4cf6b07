"""`nsw reread`: read the reports of a campaign again, with the figures that its recipe asks for now."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign import rereading
from nsw.campaign.ledger import Ledger
from nsw.campaign.meta import RECIPE, SITE
from nsw.cli import answering
from nsw.errors import CampaignError
from nsw.present.reading_bar import ReadingBar
from nsw.present.text_of_others import say
from nsw.service.collected import read_reports, recipe_of

if TYPE_CHECKING:
    from nsw.recipe.model import Recipe


def reread(campaign: str | None, root: Path | None, recipe: Path | None) -> int:
    """Read the collected reports again, say what changed, and answer.

    Raises:
        CampaignLockedError: An nsw drives the campaign.
        CampaignError: No report of it is here.
        InputError: The recipe has faults.
    """
    folder = folders.find(folders.root(root), campaign)
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        source, now = _recipe(ledger, recipe)
        locked = recipe_of(folder)
        before = rereading.state_of(folder, ledger)
        if now is not None:
            _take_over(folder, source, locked, now)
        runs, gone = rereading.release(folder, ledger)
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            say(f"not read again: {gone[0]}{more}: nothing is left in {folder.reports / gone[0]}", file=sys.stderr)
        if not runs:
            raise CampaignError(
                f"campaign {folder.id} has no report to read",
                hint="`nsw fetch` brings reports that are still on the site; `nsw resume` goes on with the rest",
            )
        read_reports(folder, ledger, ReadingBar())
        found = rereading.changes(before, rereading.state_of(folder, ledger))
        for line in found or ["nothing changed: the tables are as they were"]:
            say(line)
        return answering.answer(folder, ledger)


def _recipe(ledger: Ledger, named: Path | None) -> tuple[Path, Recipe | None]:
    """The recipe to take figures from: the one that is named, or the campaign's, where it came from.

    None where none is named and the file is gone.
    """
    from nsw.recipe.load import load_recipe

    path = named or Path(ledger.meta(RECIPE) or "")
    if named is None and not path.is_file():
        if ledger.meta(RECIPE):
            say(
                f"{path} is gone: the figures are those of the campaign (`--recipe FILE` names others)", file=sys.stderr
            )
        return path, None
    return path, load_recipe(path, ledger.meta(SITE), with_files=False).recipe


def _take_over(folder: folders.CampaignFolder, source: Path, before: Recipe, now: Recipe) -> None:
    from nsw.campaign.lock import hash_of
    from nsw.campaign.log import Log

    told = rereading.take_over(folder, before, now)
    if told:
        say(f"from {source}:")
        Log(folder.log).say(f"reread with {source} (SHA-256 {hash_of(source)}): {'; '.join(told)}")
    for line in told:
        say(f"  {line}")
    if other := rereading.not_taken(before, now):
        say(
            f"{source} differs in {', '.join(other)} too, which reading does not change: `nsw run` does runs with it",
            file=sys.stderr,
        )
