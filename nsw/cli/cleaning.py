"""`nsw clean`: remove what a campaign left on its site, once its reports are here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.cli.notices import tell
from nsw.errors import Exit, UsageError
from nsw.present.terminal import plural, size

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.campaign.clean import Cleaning
    from nsw.campaign.selection import Selection

_SHOWN = 8


def clean(
    campaign: str | None, root: Path | None, selection: Selection, *, everything: bool, dry_run: bool, yes: bool
) -> int:
    """Show what would be removed and its size, ask, remove.

    Raises:
        CampaignError: The campaign is not over, or its reports are not read yet.
        UsageError: Nobody said yes, or no run is meant.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.clean import on_site

    folder = folders.find(folders.root(root), campaign)
    with on_site(folder, selection) as cleaning:
        if cleaning.leftovers.is_gone:
            what = "holds nothing of these runs" if selection else "is gone already"
            tell(f"{cleaning.where} {what}")
            return Exit.GOOD
        _show(cleaning, everything=everything)
        if not cleaning.leftovers.spare and not everything:
            tell("nothing to remove")
            return Exit.GOOD
        if dry_run:
            return Exit.GOOD
        _confirm(yes)
        cleaning.remove(everything=everything)
    tell(f"removed; reports and tables are kept in {folder.path}")
    return Exit.GOOD


def _show(cleaning: Cleaning, *, everything: bool) -> None:
    left = cleaning.leftovers
    files = plural(len(left.files(everything=everything)), "file")
    tell(f"{cleaning.where}: {files} would be removed, which frees {size(left.freed(everything=everything))}")
    if not left.kept:
        return
    total = size(sum(one.size for one in left.kept))
    verb = "go too" if everything else "stay"
    tell(f"{plural(len(left.kept), 'file')} ({total}) never downloaded {verb}:")
    for one in sorted(left.kept, key=lambda one: -one.size)[:_SHOWN]:
        tell(f"  {size(one.size):>10}  {one.name}")
    if len(left.kept) > _SHOWN:
        tell(f"  and {len(left.kept) - _SHOWN} more")
    if not everything:
        tell("`nsw fetch --file '*'` downloads files of runs; --everything removes these too")


def _confirm(yes: bool) -> None:
    """Raise unless somebody wants it.

    Raises:
        UsageError: The answer is no, or there is no terminal to ask at.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to confirm this on; nothing was removed", hint="--yes answers yes")
    import typer

    if not typer.confirm("Remove them?", default=False, err=True):
        raise UsageError("nothing was removed")
