"""Files beside the recipe that runs did not find: `nsw retry` would fail the same way."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger import State
from nsw.campaign.ledger_meta_keys import RECIPE
from nsw.campaign.runs_by_name import as_named

if TYPE_CHECKING:
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger

_NOT_FOUND: Final = re.compile(r"No such file|can't open file|not found")
_WORD: Final = re.compile(r"[^\s'\"`:,()\[\]]+")


def how_to_send(folder: CampaignFolder, ledger: Ledger) -> str | None:
    """What to do about the first file beside the recipe that a failed run did not find; None: there is none."""
    recipe = Path(ledger.meta(RECIPE) or "")
    if not recipe.is_file():
        return None
    reasons = dict.fromkeys(run.reason for run in ledger.runs(states=(State.FAILED,)) if run.reason)
    for reason in reasons:
        if _NOT_FOUND.search(reason) and (name := _beside(recipe.parent, reason)) is not None:
            here = Path.cwd()
            shown = shlex.quote(str(recipe.relative_to(here) if recipe.is_relative_to(here) else recipe))
            return (
                f"{name} is beside the recipe but not sent along: add {name.parts[0]} to app.files, then"
                f" `nsw run {shown} --into {as_named(folder)}`"
            )
    return None


def _beside(home: Path, reason: str) -> PurePosixPath | None:
    """The first relative path in a text that is a file below a folder."""
    for word in _WORD.findall(reason):
        name = PurePosixPath(word)
        if not name.is_absolute() and name.parts and ".." not in name.parts and (home / name).is_file():
            return name
    return None
