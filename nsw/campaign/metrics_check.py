"""The check of a site that asks its ncu for the metrics it lists; plans are checked by the answer from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.campaign.site_check_result import Check, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.site.load import LoadedSite


def listed_metrics(place: LoadedSite, checks: Iterable[Check]) -> Check | None:
    """Ask the site's ncu; None where it has no ncu, or the chip is not known or not measured by one.

    Args:
        place: The site.
        checks: What was found of it so far, as `keep` has kept it.
    """
    from nsw.campaign.kept_checks import gpu_found
    from nsw.campaign.site_metrics import site_metrics
    from nsw.metrics import find_chip
    from nsw.metrics.requests import tool_for

    has_ncu = any(one.what == "ncu" and one.verdict is Verdict.GOOD for one in checks)
    chip = find_chip(place.site.gpus.chip or gpu_found(place.site.model_dump(mode="json", by_alias=True)))
    if not has_ncu or chip is None or tool_for(chip) != "ncu":
        return None
    found = site_metrics(place, chip)
    if found.names is None:
        fix = "recipes are checked by the lists that nsw ships"
        return Check("metrics", Verdict.SKIPPED, found.note.removesuffix(": by the shipped lists"), fix)
    return Check(
        "metrics", Verdict.GOOD, f"ncu lists {len(found.names)} metrics for {chip.name}; plans are checked against them"
    )
