"""`nsw fetch`: show what runs left on the site, ask, bring it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.campaign.fetch import GUI_FILES, on_site
from nsw.campaign.selection import campaign_of_words
from nsw.cli.notices import tell
from nsw.errors import Exit, UsageError
from nsw.present.live import DownloadBar
from nsw.present.terminal import size
from nsw.present.untrusted_text import say
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.selection import Selection

_SHOWN = 20


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
    folder, runs = campaign_of_words(runs, campaign, root)
    with on_site(folder, runs, patterns, selection) as found:
        for file in found.files[:_SHOWN]:
            tell(f"{size(file.size):>12}  {file.name}")
        if len(found.files) > _SHOWN:
            tell(f"{'':12}  and {len(found.files) - _SHOWN} more")
        if not found.files:
            tell(
                f"no file of these runs on the site matches {', '.join(patterns or GUI_FILES)}: `--file '*'` lists"
                " every file; `nsw clean` removes them"
            )
            return Exit.GOOD
        missing = found.missing
        if not missing:
            tell(f"{plural(len(found.files), 'file')}, all of them here")
            return Exit.GOOD
        limit = f"more than the site's limits.download ({size(found.limit)})" if found.is_over_limit else ""
        _confirm(f"{plural(len(missing), 'file')}, {size(found.size)}", limit, yes)
        with DownloadBar() as bar:
            found.bring(bar.show)
    say(str(folder.path / "fetched"))
    return Exit.GOOD


def _confirm(what: str, over: str, yes: bool) -> None:
    """Ask a person; without a terminal only what is above the limit needs a yes.

    Raises:
        UsageError: The answer is no, or there is nobody to ask.
    """
    what = f"{what}, {over}" if over else what
    if yes or (not over and not sys.stdin.isatty()):
        return
    if not sys.stdin.isatty():
        raise UsageError(
            f"{what}: there is no terminal to confirm this on; nothing was downloaded", hint="--yes answers yes"
        )
    import typer

    if not typer.confirm(f"Bring {what}?", default=not over, err=True):
        raise UsageError("nothing was downloaded")
