"""Runs that begin at once on a machine without a batch system, where no GPU that they wait for keeps them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.site.scheduler_and_transport_names import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.plan.model import Run
    from nsw.site.model import Site


def disturbed(runs: Sequence[Run], site: Site) -> str | None:
    """A sentence where runs would measure each other, and the site's file does not ask for it; None elsewhere."""
    limits = site.limits
    free = sum(1 for run in runs if not run.resources.gpus)
    if site.scheduler != LOCAL or "max_in_flight" in limits.model_fields_set or free < 2:
        return None
    return (
        f"{free} runs need no GPU, so up to {min(free, limits.max_in_flight)} of them run at the same time on"
        " that machine and disturb each other (`limits: {max_in_flight: 1}` of the site keeps them apart)"
    )
