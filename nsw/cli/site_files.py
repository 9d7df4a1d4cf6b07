"""`nsw fetch` and `nsw clean`: show what runs left on the site, ask, bring or remove it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.selection import campaign_of_words
from nsw.cli.notices import tell
from nsw.errors import Exit, UsageError
from nsw.present.terminal import size
from nsw.present.untrusted_text import say
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.clean import Cleaning
    from nsw.campaign.selection import Selection

__all__ = ["clean", "fetch"]

_FETCHED = 20  # files that are listed
_KEPT = 8


def fetch(
    runs: Sequence[str],
    patterns: Sequence[str],
    campaign: str | None,
    root: Path | None,
    yes: bool,
    selection: Selection,
) -> int:
    """Bring files of runs into the campaign's folder `fetched`; their sizes are shown first.

    Raises:
        CampaignError: The campaign is another user's.
        UsageError: No run has such a name, or nobody said yes.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.fetch import GUI_FILES, on_site
    from nsw.present.live import DownloadBar

    folder, runs = campaign_of_words(runs, campaign, root)
    with on_site(folder, runs, patterns, selection) as there:
        for file in there.files[:_FETCHED]:
            tell(f"{size(file.size):>12}  {file.name}")
        if len(there.files) > _FETCHED:
            tell(f"{'':12}  and {len(there.files) - _FETCHED} more")
        if not there.files:
            tell(
                f"no file of these runs on the site matches {', '.join(patterns or GUI_FILES)}: `--file '*'` lists"
                " every file; `nsw clean` removes them"
            )
            return Exit.GOOD
        missing, over = there.missing, there.is_over_limit
        if not missing:
            tell(f"{plural(len(there.files), 'file')}, all of them here")
            return Exit.GOOD
        what = f"{plural(len(missing), 'file')}, {size(there.size)}"
        what += f", more than the site's limits.download ({size(there.limit)})" if over else ""
        # without a terminal only what is above the limit needs a yes
        if not yes and (over or sys.stdin.isatty()):
            _confirm(f"Bring {what}?", f"{what}: ", "nothing was downloaded", default=not over)
        with DownloadBar() as bar:
            there.bring(bar.show)
    say(str(folder.path / "fetched"))
    return Exit.GOOD


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
        if not cleaning.leftovers.files(everything=everything):
            tell("nothing to remove")
            return Exit.GOOD
        if dry_run:
            return Exit.GOOD
        if not yes:
            _confirm("Remove them?", "", "nothing was removed", default=False)
        cleaning.remove(everything=everything)
    tell(f"removed; reports and tables are kept in {folder.path}")
    return Exit.GOOD


def _show(cleaning: Cleaning, *, everything: bool) -> None:
    left = cleaning.leftovers
    files = plural(len(left.files(everything=everything)), "file")
    tell(f"{cleaning.where}: {files} would be removed, which frees {size(left.freed(everything=everything))}")
    if not left.kept:
        return
    total = size(sum(file.size for file in left.kept))
    verb = "go too" if everything else "stay"
    tell(f"{plural(len(left.kept), 'file')} ({total}) never downloaded {verb}:")
    for file in sorted(left.kept, key=lambda file: -file.size)[:_KEPT]:
        tell(f"  {size(file.size):>10}  {file.name}")
    if len(left.kept) > _KEPT:
        tell(f"  and {len(left.kept) - _KEPT} more")
    if not everything:
        tell("`nsw fetch --file '*'` downloads files of runs; --everything removes these too")


def _confirm(question: str, what: str, nothing: str, *, default: bool) -> None:
    """Raise unless somebody wants it.

    Raises:
        UsageError: The answer is no, or there is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise UsageError(f"{what}there is no terminal to confirm this on; {nothing}", hint="--yes answers yes")
    import typer

    if not typer.confirm(question, default=default, err=True):
        raise UsageError(nothing)
