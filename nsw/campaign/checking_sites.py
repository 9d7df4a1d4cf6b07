"""What of a site works: from its login node, and with a job of a minute from a compute node too."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from nsw.campaign.events import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.events import Event
    from nsw.campaign.site_check_result import Check


def check(
    name: str, sites: Sequence[Path] | None, listen: Callable[[Event], object], *, node: bool = False
) -> Iterator[Check]:
    """Each check as it is made; they are kept for the warnings of later plans.

    Args:
        name: The site's name.
        sites: Sites files to search first.
        listen: Called with what happens while the job waits and runs.
        node: Whether to look from a compute node too, if the login node is good.

    Raises:
        UsageError: There is no such site.
    """
    from nsw.campaign.chip_tools import chip_check
    from nsw.campaign.dry_run import way_to
    from nsw.campaign.kept_checks import keep
    from nsw.campaign.metrics_check import listed_metrics
    from nsw.campaign.node_check import check_node
    from nsw.campaign.queue_check import check_queue
    from nsw.campaign.site_check import check_site, skew_of
    from nsw.campaign.site_check_result import REACHING, Verdict
    from nsw.schedulers.create import adapter_of
    from nsw.site.load import load_site

    place = load_site(name, list(sites) if sites else None)
    site = place.site.model_dump(mode="json", by_alias=True)
    found: list[Check] = []
    adapter = adapter_of(place.site.scheduler)
    with closing(way_to(place)) as transport:
        for one in check_site(site, transport, adapter):
            found.append(one)
            yield one
    if adapter is not None and not any(one.verdict is Verdict.BAD for one in found):
        found.append(check_queue(name, sites))
        yield found[-1]
    if node and not any(one.verdict is Verdict.BAD for one in found):
        listen(Message("a short job looks from a compute node; Ctrl-C cancels it"))
        for one in check_node(name, sites, listen, skew_of(found)):
            found.append(one)
            yield one
    if not any(one.verdict is Verdict.BAD and one.what in REACHING for one in found):
        found.append(chip_check(site, found))
        yield found[-1]
    keep(site, found)
    if (listed := listed_metrics(place, found)) is not None:
        yield listed
