"""`nsw watch`: the live table of a campaign that another nsw drives, or that was left alone. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.events import Started
from nsw.campaign.watch import Watching
from nsw.cli.notices import tell
from nsw.errors import Exit
from nsw.present.live import Watch
from nsw.present.untrusted_text import say
from nsw.wording import headline

if TYPE_CHECKING:
    from pathlib import Path


def watch(campaign: str | None, root: Path | None, *, once: bool) -> int:
    """Show how a campaign's runs go until none is in flight, or once.

    Raises:
        UnreachableError: The site cannot be reached, at the first look.
    """
    folder = folders.find(folders.root(root), campaign)
    with Watching(folder, once=once) as watching:
        view = Watch(watching)
        try:
            for event in watching:
                if isinstance(event, Started):  # it looks anew: at the site, or at what another nsw writes
                    view.stop()
                    view = Watch(watching)
                view.show(event)
        except KeyboardInterrupt:
            return Exit.INTERRUPTED
        finally:
            view.stop()
        say(f"{folder.id}: {headline(watching.counts())}")
        if watching.advice:
            tell(watching.advice)
    return Exit.GOOD
