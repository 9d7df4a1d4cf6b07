"""`nsw clean`: remove what a campaign left on its site, once its reports are here."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.campaign.ledger import ENDED, Ledger, Reading, State
from nsw.campaign.meta import CLEANED, OWNED_BY, PREPARED, SCRATCH, SITE
from nsw.errors import CampaignError, Exit, UsageError
from nsw.present.terminal import plural, size
from nsw.present.text_of_others import say
from nsw.service.naming import as_named

if TYPE_CHECKING:
    from pathlib import Path

    from nsw.campaign.scratch_space import Space

_SHOWN = 8


def clean(campaign: str | None, root: Path | None, *, everything: bool, dry_run: bool, yes: bool) -> int:
    """Show what would be removed and its size, ask, remove.

    Raises:
        CampaignError: The campaign is not over, or its reports are not read yet.
        UsageError: Nobody said yes.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.scratch_space import remove, space_of
    from nsw.transport.create import connect
    from nsw.transport.fence import Fence

    folder = folders.find(folders.root(root), campaign)
    with folders.locked(folder), Ledger(folder.ledger) as ledger:
        _require_over(folder, ledger)
        site, scratch = ledger.site(), ledger.meta(SCRATCH)
        with closing(connect(site)) as transport:
            space = space_of(folder, transport, scratch, [(build.id, build.app) for build in ledger.builds()])
            where = f"{ledger.meta(SITE)}:{scratch}"
            if not space.spare and not space.kept:
                say(f"{where} is gone already", file=sys.stderr)
                return Exit.GOOD
            _show(space, where, everything=everything)
            if not space.spare and not everything:
                say("nothing to remove", file=sys.stderr)
                return Exit.GOOD
            if dry_run:
                return Exit.GOOD
            _confirm(yes)
            token = ledger.meta(OWNED_BY) if transport.remote else None
            there = any(one.name == "owner" for one in space.spare)  # an earlier clean may have taken it
            fence = Fence(scratch, token, folder.id) if token and there else None
            ledger.set_meta(PREPARED, False)  # a retry sends scripts and files again
            remove(transport, space, everything=everything, fence=fence)
            ledger.set_meta(CLEANED, time.time())
    say(f"removed; reports and tables stay in {folder.path}", file=sys.stderr)
    return Exit.GOOD


def _require_over(folder: folders.CampaignFolder, ledger: Ledger) -> None:
    counts = ledger.counts()
    left = sum(n for state, n in counts.items() if state not in ENDED)
    if left:
        raise CampaignError(
            f"{folder.id} is not over: {plural(left, 'run')} may still need its folder on the site",
            hint=f"`nsw resume {as_named(folder)}` ends it, `nsw cancel {as_named(folder)}` gives it up",
        )
    unread = list(ledger.runs(states=(State.DONE, State.FAILED), reading=Reading.COLLECTED))
    missing = list(ledger.runs(states=[State.DONE], reading=Reading.NONE))
    if unread or missing:
        some = [*unread, *missing]
        raise CampaignError(
            f"{folder.id}: {plural(len(some), 'run')} not read yet, such as {some[0].id}",
            hint=f"`nsw resume {as_named(folder)}` reads what is there",
        )


def _show(space: Space, where: str, *, everything: bool) -> None:
    from nsw.campaign.scratch_space import freed, largest

    gone = (*space.spare, *space.kept) if everything else space.spare
    say(f"{where}: {plural(len(gone), 'file')} would go, which frees {size(freed(gone))}", file=sys.stderr)
    if not space.kept:
        return
    total = size(sum(one.size for one in space.kept))
    verb = "go too" if everything else "stay"
    say(f"{plural(len(space.kept), 'file')} ({total}) never brought here {verb}:", file=sys.stderr)
    for one in largest(space.kept, _SHOWN):
        say(f"  {size(one.size):>10}  {one.name}", file=sys.stderr)
    if len(space.kept) > _SHOWN:
        say(f"  and {len(space.kept) - _SHOWN} more", file=sys.stderr)
    if not everything:
        say("`nsw fetch --file '*'` brings files of runs; --everything removes these too", file=sys.stderr)


def _confirm(yes: bool) -> None:
    """Raise unless somebody wants it.

    Raises:
        UsageError: The answer is no, or there is no terminal to ask at.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask at, and nothing was removed", hint="--yes answers yes")
    import typer

    if not typer.confirm("Remove them?", default=False, err=True):
        raise UsageError("nothing was removed")
