"""`nsw attach`: go on here with a campaign that another machine began."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from nsw.errors import Exit, UsageError
from nsw.present.text_of_others import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.attach import Attachable


def attach(campaign: str | None, site: str | None, sites: Sequence[Path] | None, root: Path | None) -> int:
    """Take a campaign over and go on with it; with none named, list those of the site.

    Raises:
        UsageError: The site is this machine.
        CampaignError: There is no such campaign, or it cannot be taken over.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign import folder as folders
    from nsw.campaign.attach import attach, attachable, chosen
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.meta import OWNED_BY
    from nsw.cli.running import resume
    from nsw.service.dry_run import way_to
    from nsw.site.load import load_site

    place = load_site(site, list(sites) if sites else None)
    with closing(way_to(place)) as transport:
        if not transport.remote or place.site.scratch is None:
            raise UsageError(
                f"site {place.site.name} is this machine", hint="`nsw resume` goes on with a campaign here"
            )
        base = transport.expand(place.site.scratch)
        known = attachable(transport, base)
        if campaign is None:
            _list(known, f"{place.site.name}:{base}")
            return Exit.GOOD
        wanted = chosen(known, campaign)
        parent = folders.root_to_write(root)
        here = folders.CampaignFolder(parent / wanted.id)
        own = None
        if here.ledger.exists():
            with Ledger(here.ledger, read_only=True) as ledger:
                own = ledger.meta(OWNED_BY)
        if own is None or own != wanted.token:
            data = place.site.model_dump(mode="json", by_alias=True)
            here = attach(parent, transport, base, wanted.id, (place.site.name, data))
            say(
                f"campaign {here.path}: taken over" + (f" from {wanted.owner}" if wanted.owner else ""), file=sys.stderr
            )
    return resume(str(here.path), root)


def _list(known: Sequence[Attachable], where: str) -> None:
    from nsw.present.terminal import console, table

    if known:
        console().print(table(None, ("campaign", "owner"), [(one.id, one.owner) for one in known], wide="owner"))
    else:
        say(f"there is no campaign to attach to in {where}", file=sys.stderr)
