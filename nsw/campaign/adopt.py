"""`nsw adopt`: let nsw act for a campaign that was made elsewhere, once the user saw what it would do."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.ledger_rows import SCRATCH, SITE
from nsw.campaign.look import look
from nsw.campaign.places import require_own_root
from nsw.campaign.recipe_lock import recipe_of
from nsw.errors import CampaignError, NswError, UsageError
from nsw.site.names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.recipe.model import Recipe

__all__ = ["acts_of", "adopt", "refuse"]

_OF_SITE: Final = ("profilers", "templates", "modules", "extra", "node_launcher", "python")


def adopt(folder: CampaignFolder, consent: Callable[[str, list[str]], object], warn: Callable[[str], object]) -> bool:
    """Act for a campaign from now on.

    Args:
        folder: The campaign.
        consent: Called with a question and with what nsw would do, a line each; it raises where the answer is no.
        warn: Called with what a person should know of the folders above it.

    Returns:
        Whether nsw did not act for it before.

    Raises:
        CampaignError: It is another user's, or others may write it.
    """
    if folder.trusted:
        return False
    of = os.fstat(folder.directory)
    if folder.other_owner:
        folder.require_trust()
    if of.st_mode & stat.S_IWOTH:
        raise CampaignError(
            f"campaign {folder.id} may be written by everybody, who could change what nsw runs",
            hint=f"`chmod -R o-w {folder.path}` closes it; look at what is in it before you adopt it",
        )
    with look(folder) as ledger:
        require_own_root(folder.path, _owners(ledger.meta(SITE)), warn)
        lines = acts_of(ledger.site(), ledger.meta(SCRATCH), recipe_of(folder))
    consent(f"Let nsw act for campaign {folder.id}?", [*lines, f"scripts of jobs: those in {folder.scripts}"])
    folder.path.chmod(stat.S_IMODE(of.st_mode) & ~stat.S_IRWXO)  # whoever may write below it cannot enter it any more
    folder.trust()
    return True


def _owners(site: str) -> Sequence[str | int]:
    """The users whom the user's own file trusts as owners of folders on this machine."""
    from nsw.site.load import load_site

    try:
        known = load_site(site, None).site
    except NswError:  # it is not described here
        return ()
    return known.trusted_owners if known.transport.kind == LOCAL else ()


def acts_of(site: Mapping[str, Any], scratch: str, recipe: Recipe) -> list[str]:
    """What nsw does for a campaign, a line each: where it connects, what it starts, where it writes and removes."""
    transport = {name: value for name, value in (site.get("transport") or {}).items() if value}
    app = recipe.app
    starts = {name: site[name] for name in _OF_SITE if site.get(name)}
    starts["command"] = app.command
    starts |= {"setup": app.setup} if app.setup else {}
    starts |= {"build": app.build.command} if app.build else {}
    notify = recipe.notify or site.get("notify")
    return [
        f"host: {_shown(transport)}, scheduler {site.get('scheduler')}",
        f"programs: {_shown(starts)}",
        f"scratch: {scratch}",
        f"notify: {_shown(notify) if notify else 'nothing'}",
    ]


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def refuse(question: str, lines: list[str]) -> None:
    """The consent of a program that did not say yes.

    Raises:
        UsageError: Always; it says what nsw would do.
    """
    raise UsageError("\n  ".join([f"{question} Nothing was adopted.", *lines]), hint="yes=True says yes")
