"""What planning must know of a site beyond its sites file: found out by service, handed in as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from nsw.metrics import Chip


@dataclass(frozen=True)
class SiteFacts:
    """What a site has.

    Args:
        gpus_per_node: How many GPUs a node has; None when unknown.
        tools: Profilers that were found: tool -> path. None: not looked, take the sites file's word.
        missing: Why a tool is not in `tools`.
        mpi: The family of its mpirun and mpiexec, where the sites file names none; None: not known.
        chip: The GPUs' chip or product as found there, where the sites file names none; None: not looked.
        ncu_names: Of a chip the base names of the metrics that the site's own ncu lists; None: it was not asked.
        replay: The demo's recordings: (params, pass kind) -> the command that replays one, or None.
        note: Said with everything that comes of a campaign here.
    """

    gpus_per_node: int | None = None
    tools: Mapping[str, str] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    mpi: str | None = None
    chip: str | None = None
    ncu_names: Callable[[Chip], Collection[str] | None] = lambda _chip: None
    replay: Callable[[Mapping[str, Any], str], tuple[str, ...] | None] | None = None
    replayed_reports: tuple[str, ...] = ()
    replayed_tool: str | None = None
    note: str | None = None
