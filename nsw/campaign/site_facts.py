"""What a site has that its file does not name: profilers and GPUs of this machine, recordings of the demo."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from nsw.plan.model import SiteFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from nsw.metrics import Chip
    from nsw.site.load import LoadedSite
    from nsw.site.model import Site


def facts(place: LoadedSite) -> SiteFacts:
    """Find out what a site has: only this machine is looked at, of others what `nsw sites check` found is known."""
    from nsw.campaign.cached_ncu_metrics import kept_names
    from nsw.campaign.kept_checks import gpu_found, mpi_found
    from nsw.schedulers.local import detect

    site = place.site
    if site.replay:
        return _demo_facts(site)

    def ncu_names(chip: Chip) -> Collection[str] | None:
        return kept_names(place, chip)

    data = site.model_dump(mode="json", by_alias=True)
    mpi = None if site.mpi else mpi_found(data)
    if site.scheduler != "local" or site.transport.kind != "local":
        per_node = site.gpus.per_node
        chip = None if site.gpus.chip else gpu_found(data)
        return SiteFacts(gpus_per_node=per_node if isinstance(per_node, int) else None, mpi=mpi, chip=chip,
                         ncu_names=ncu_names)  # fmt: skip

    tools, missing = _tools({str(tool): path for tool, path in site.profilers.items()})
    known = isinstance(site.gpus.per_node, int) and site.gpus.chip is not None
    gpus = [] if known else detect()
    chip = gpus[0].name if gpus else None
    return SiteFacts(gpus_per_node=_gpu_count(site, lambda: len(gpus)), tools=tools, missing=missing, mpi=mpi,
                     chip=chip, ncu_names=ncu_names)  # fmt: skip


def _gpu_count(site: Site, detected: Callable[[], int]) -> int:
    per_node = site.gpus.per_node
    return per_node if isinstance(per_node, int) else detected()


def _tools(configured: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Profilers of this machine: found ones with their path, and why the others are not."""
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for tool in ("nsys", "nvprof", "ncu"):
        named = configured.get(tool) or os.environ.get(f"NSW_{tool.upper()}")
        path = shutil.which(os.path.expandvars(named or tool))
        if path:
            found[tool] = path
        elif named:
            missing[tool] = f"{tool} is not at {named}, where the site says"
        else:
            missing[tool] = f"{tool} is not on PATH (name it in the site's profilers, or in NSW_{tool.upper()})"
    return found, missing


def _demo_facts(site: Site) -> SiteFacts:
    from nsw.demo import NOTE, recordings

    known = {(tuple(sorted(r.params.items())), r.pass_kind): r for r in recordings()}

    def replay(params: Mapping[str, Any], pass_kind: str) -> tuple[str, ...] | None:
        recording = known.get((tuple(sorted(params.items())), pass_kind))
        return (sys.executable, "-P", "-m", "nsw.demo", recording.name) if recording else None

    return SiteFacts(
        gpus_per_node=_gpu_count(site, lambda: 4),
        replay=replay,
        replayed_reports=("*.sqlite",),
        replayed_tool="nsys",
        note=NOTE,
    )
