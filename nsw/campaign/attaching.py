"""Campaigns that another machine began on a site: which there are, and taking one over."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.campaign import folder as folders
from nsw.errors import CampaignError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.attach import Attachable
    from nsw.site.load import LoadedSite
    from nsw.transport.model import Transport


@dataclass(frozen=True, slots=True)
class Attached:
    """A campaign that is here now, to be resumed.

    Attributes:
        folder: Its folder.
        taken_over: Whether another nsw owned it until now.
        owner: Who that was, where it is known.
    """

    folder: folders.CampaignFolder
    taken_over: bool
    owner: str


@dataclass(frozen=True, slots=True)
class OnSite:
    """The campaigns below a site's scratch folder, while the connection is open."""

    place: LoadedSite
    base: str
    campaigns: Sequence[Attachable]
    _transport: Transport

    def attach(self, campaign: str, root: Path | None) -> Attached:
        """Become the owner of a campaign, and make its folder below `root`, or bring the one there up to date.

        Raises:
            CampaignError: There is no such campaign, or it cannot be taken over.
            UnreachableError: The site gave no answer.
        """
        from nsw.campaign.attach import attach, chosen
        from nsw.campaign.ledger import Ledger
        from nsw.campaign.ledger_meta_keys import OWNED_BY

        wanted = chosen(self.campaigns, campaign)
        parent = folders.root_to_write(root)
        here = folders.CampaignFolder(parent / wanted.id)
        own = None
        if here.ledger.exists():
            with Ledger(here.ledger, read_only=True) as ledger:
                own = ledger.meta(OWNED_BY)
        if own is not None and own == wanted.token:
            return Attached(here, taken_over=False, owner="")
        data = self.place.site.model_dump(mode="json", by_alias=True)
        here = attach(parent, self._transport, self.base, wanted.id, (self.place.site.name, data))
        return Attached(here, taken_over=True, owner=wanted.owner)


def site_of_campaign_here(campaign: str, root: Path | None) -> str | None:
    """The site of a campaign that this machine drove before; None for one that is not here."""
    from nsw.campaign.ledger import Ledger

    try:
        folder = folders.find(folders.root(root), campaign)
    except CampaignError:
        return None
    with Ledger(folder.ledger, read_only=True) as ledger:
        return str(ledger.site()["name"])


@contextmanager
def on_site(site: str | None, sites: Sequence[Path] | None) -> Iterator[OnSite]:
    """Look for campaigns on a site.

    Args:
        site: The site's name; None: the default one.
        sites: Sites files to search first.

    Raises:
        UsageError: There is no such site, or it is this machine.
        UnreachableError: It cannot be reached.
    """
    from nsw.campaign.attach import attachable
    from nsw.campaign.dry_run import way_to
    from nsw.site.load import load_site

    place = load_site(site, list(sites) if sites else None)
    with closing(way_to(place)) as transport:
        if not transport.remote or place.site.scratch is None:
            raise UsageError(
                f"site {place.site.name} is this machine", hint="`nsw resume` continues a campaign on this machine"
            )
        base = transport.expand(place.site.scratch)
        yield OnSite(place, base, attachable(transport, base), transport)
