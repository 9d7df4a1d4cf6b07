"""`nsw reread`: read the reports of a campaign again, and print what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.ledger import Ledger
from nsw.campaign.reread import reread as read_again
from nsw.cli import answering, notices
from nsw.present.live import ReadingBar
from nsw.present.untrusted_text import say

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.campaign.selection import Selection


def reread(campaign: str | None, root: Path | None, recipe: Path | None, selection: Selection) -> int:
    """Read the collected reports again, print what changed, and answer."""
    folder = folders.find(folders.root(root), campaign)
    found = read_again(folder, recipe, notices.show, ReadingBar(), selection)
    if found.taken:
        say(f"from {found.source}:")
    for line in found.taken:
        say(f"  {line}")
    for line in found.changes or ["nothing changed: the tables are as they were"]:
        say(line)
    with Ledger(folder.ledger, read_only=True) as ledger:
        return answering.answer(folder, ledger)
