"""The metrics that a site's own ncu knows: asked once, and kept for a week.

`nsw sites check` and `nsw metrics check --site` ask; a plan reads what is kept.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.campaign.cached_ncu_metrics import keep_names, kept_names, ncu_of
from nsw.errors import NswError
from nsw.metrics.ncu_names import listed_names, query_words

if TYPE_CHECKING:
    from nsw.metrics import Chip
    from nsw.site.load import LoadedSite

_ASK_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class SiteMetrics:
    """The base names that an ncu lists; None where it could not be asked, and `note` says why."""

    names: frozenset[str] | None
    note: str


def chip_of(place: LoadedSite) -> str | None:
    """The chip that the site names, else the GPU that is found on this machine."""
    from nsw.campaign.site_facts import facts

    return place.site.gpus.chip or facts(place).chip


def site_metrics(place: LoadedSite, chip: Chip, now: float | None = None) -> SiteMetrics:
    """Ask the site's ncu which metrics it knows on a chip, or read what it answered within the last week."""
    from nsw.campaign.dry_run import way_to
    from nsw.scripts.quoting import quote_all

    ncu, site = ncu_of(place), place.site
    now = time.time() if now is None else now
    if (known := kept_names(place, chip, now)) is not None:
        return SiteMetrics(known, f"by the {len(known)} names that {ncu} of site {site.name} lists (kept)")
    asked = " ".join(query_words(ncu, chip.name))
    load = f"module load {quote_all(site.modules)} 2>/dev/null; " if site.modules else ""
    shell = ["bash", "-lc" if site.login_shell else "-c", f'{load}exec "$@"', "nsw"]
    try:
        with closing(way_to(place)) as transport:
            done = transport.run([*shell, *query_words(ncu, chip.name)], timeout=_ASK_S)
    except (NswError, OSError) as fault:
        return SiteMetrics(None, f"site {site.name} could not be asked ({fault}): by the shipped lists")
    found = listed_names(done.stdout)
    if done.returncode != 0 or not found:
        lines = (done.stderr or done.stdout).strip().splitlines()
        why = lines[-1][:200] if lines else f"exit status {done.returncode}"
        return SiteMetrics(None, f"`{asked}` gave no list on site {site.name} ({why}): by the shipped lists")
    keep_names(place, chip, found, now)
    return SiteMetrics(found, f"by the {len(found)} names that {ncu} of site {site.name} lists")
