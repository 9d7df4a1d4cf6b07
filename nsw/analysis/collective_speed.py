"""How fast the collectives of a case are, beside the NVLink of its GPUs: the rank that waits least tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nsw.analysis.groups import group_by
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import rate, size

__all__ = ["CollectiveSpeed", "collective_speed_text", "collective_speeds"]


@dataclass(frozen=True, slots=True)
class CollectiveSpeed:
    """Collectives of one kind, message size and number of ranks, as in table `bandwidth`.

    Attributes:
        calls: Of all ranks.
        med_ns: The median time of the rank that waits least for the others.
        nvlink_bytes_per_s: What NVLink of the GPU carries in one direction; None: it has none, or is not known.
        nvlink_pct: What `bus_bytes_per_s` is of that.
    """

    name: str
    ranks: int
    message_bytes: float
    calls: int
    med_ns: float
    alg_bytes_per_s: float
    bus_bytes_per_s: float
    nvlink_bytes_per_s: float | None
    nvlink_pct: float | None


def collective_speeds(rows: Iterable[Mapping[str, Any]], gpus: Sequence[str]) -> tuple[CollectiveSpeed, ...]:
    """The speeds of a case, those first in which most bytes move.

    Args:
        rows: Its rows of table `bandwidth`; those without a size tell nothing.
        gpus: Names of its GPUs.
    """
    gpu = find_gpu(gpus[0]) if len(gpus) == 1 else None
    nvlink = (gpu.nvlink_bytes_per_s or None) if gpu is not None else None
    measured = (row for row in rows if row.get("bus_bytes_per_s"))
    speeds = []
    for (name, ranks, message), members in group_by(
        measured, lambda row: (row["name"], row["ranks"], row["message_bytes"])
    ).items():
        first = min(members, key=lambda row: float(row["med_ns"]))
        bus = first["bus_bytes_per_s"]
        speeds.append(CollectiveSpeed(
            name, ranks, message, sum(row["calls"] for row in members), first["med_ns"], first["alg_bytes_per_s"], bus,
            nvlink, 100 * bus / nvlink if nvlink else None,
        ))  # fmt: skip
    return tuple(sorted(speeds, key=lambda speed: -speed.calls * speed.message_bytes))


def collective_speed_text(speeds: Sequence[CollectiveSpeed]) -> str:
    """What the collectives that move most bytes reach, behind what they take; empty: their sizes are not recorded."""
    if not speeds:
        return ""
    first = speeds[0]
    text = f"; {first.name} of {size(first.message_bytes)} reaches {rate(first.bus_bytes_per_s)} on the bus"
    if first.nvlink_pct is None:
        return text
    return f"{text}, {first.nvlink_pct:.0f} % of NVLink's {rate(first.nvlink_bytes_per_s)}"
