"""`nsw attach`: go on here with a campaign that another machine began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.cli.notices import tell
from nsw.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.attach import Attachable


def attach(campaign: str | None, site: str | None, sites: Sequence[Path] | None, root: Path | None) -> int:
    """Take a campaign over and go on with it; with none named, list those of the site.

    Without `site` it is the one of the campaign, where that is here already, else the default one.

    Raises:
        UsageError: The site is this machine.
        CampaignError: There is no such campaign, or it cannot be taken over.
        UnreachableError: The site cannot be reached.
    """
    from nsw.campaign.attach import campaigns_on_site, site_of_campaign_here
    from nsw.cli.running import resume

    if site is None and campaign is not None:
        site = site_of_campaign_here(campaign, root)
    with campaigns_on_site(site, sites) as there:
        if campaign is None:
            _list(there.campaigns, f"{there.place.site.name}:{there.base}")
            return Exit.GOOD
        found = there.attach(campaign, root)
    if found.taken_over:
        by = f" from {found.owner}" if found.owner else ""
        tell(f"campaign {found.folder.path}: taken over{by}")
    return resume(str(found.folder.path), root)


def _list(known: Sequence[Attachable], where: str) -> None:
    from nsw.present.terminal import console, table

    if known:
        console().print(table(None, ("campaign", "owner"), [(one.id, one.owner) for one in known], wide="owner"))
    else:
        tell(f"there is no campaign to attach to in {where}")
