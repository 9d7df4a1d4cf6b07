"""Speeds of collectives as nccl-tests defines them, by kind, message size and number of ranks.

The message is the larger of a rank's two buffers. The algorithm's bandwidth is message by time; the bus's is that times
the share of the message that each rank's link carries at least, so that it can be compared with the link's peak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nsw.readers.timeline.statistics import duration_statistics, with_shares
from nsw.tables import Row

__all__ = ["Collective", "bandwidth_rows", "bus_factor"]

_FACTORS: Final[Mapping[str, Callable[[int], float]]] = {
    "AllReduce": lambda ranks: 2 * (ranks - 1) / ranks,
    **dict.fromkeys(("AllGather", "ReduceScatter", "AllToAll"), lambda ranks: (ranks - 1) / ranks),
    **dict.fromkeys(("Broadcast", "Reduce", "Send", "Recv"), lambda _ranks: 1.0),
}


@dataclass(frozen=True, slots=True)
class Collective:
    """One launch of a collective: its kind, how many ranks take part, the bytes of its message; None: not known."""

    operation: str
    ranks: int | None
    message_bytes: int | None
    duration_ns: int


def bus_factor(operation: str, ranks: int | None) -> float | None:
    """What the bus's bandwidth is of the algorithm's; None where it is not defined, as of a single rank."""
    factor = _FACTORS.get(operation)
    return factor(ranks) if factor is not None and ranks is not None and ranks > 1 else None


def bandwidth_rows(collectives: Iterable[Collective]) -> list[Row]:
    """The rows of table `bandwidth`; those whose size the report lacks have no speeds."""
    import numpy as np

    groups: dict[tuple[str, int | None, int | None], list[int]] = {}
    for each in collectives:
        groups.setdefault((each.operation, each.ranks, each.message_bytes), []).append(each.duration_ns)
    rows: list[dict[str, Any]] = []
    for (operation, ranks, message), durations in groups.items():
        statistics = duration_statistics(np.sort(np.array(durations, np.int64)))
        speed = message / statistics["med_ns"] * 1e9 if message and statistics["med_ns"] else None
        factor = bus_factor(operation, ranks)
        rows.append(
            {"name": operation, "ranks": ranks, "message_bytes": message, **statistics, "alg_bytes_per_s": speed,
             "bus_bytes_per_s": speed * factor if speed is not None and factor is not None else None}
        )  # fmt: skip
    return with_shares(rows)
