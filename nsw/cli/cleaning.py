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

    from nsw.campaign.cleaning import Leftovers
    from nsw.campaign.select_runs import Selection

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
    from nsw.campaign.cleaning import on_site

    folder = folders.find(folders.root(root), campaign)
    with on_site(folder, selection) as found:
        if found.is_gone:
            what = "holds nothing of these runs" if selection else "is gone already"
            tell(f"{found.where} {what}")
            return Exit.GOOD
        _show(found, everything=everything)
        if not found.space.spare and not everything:
            tell("nothing to remove")
            return Exit.GOOD
        if dry_run:
            return Exit.GOOD
        _confirm(yes)
        found.remove(everything=everything)
    tell(f"removed; reports and tables are kept in {folder.path}")
    return Exit.GOOD


def _show(found: Leftovers, *, everything: bool) -> None:
    from nsw.campaign.site_folder_cleanup import largest

    space = found.space
    files = plural(len(space.spare) + (len(space.kept) if everything else 0), "file")
    tell(f"{found.where}: {files} would be removed, which frees {size(found.freed(everything=everything))}")
    if not space.kept:
        return
    total = size(sum(one.size for one in space.kept))
    verb = "go too" if everything else "stay"
    tell(f"{plural(len(space.kept), 'file')} ({total}) never downloaded {verb}:")
    for one in largest(space.kept, _SHOWN):
        tell(f"  {size(one.size):>10}  {one.name}")
    if len(space.kept) > _SHOWN:
        tell(f"  and {len(space.kept) - _SHOWN} more")
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
