"""Where the ranks of a run landed, as each of them wrote it down: rows of table `ranks`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.collect import read_tail

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["FILE", "Landed", "landed_ranks"]

# of the job's machinery: lines `rank RANK LOCAL NODE BOOT CPUS VISIBLE` and `gpu NODE INDEX UUID NAME`
FILE: Final = "ranks.tsv"
_MOST: Final = 16 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Landed:
    """The ranks of a run; no rows for a run of one process."""

    rows: tuple[Mapping[str, Any], ...] = ()

    @property
    def local_ranks(self) -> dict[int, int]:
        """Each rank's place on its node."""
        return {row["rank"]: row["local_rank"] for row in self.rows}

    @property
    def nodes(self) -> int:
        """How many nodes there are ranks on."""
        return len({(row["host"], row["boot"]) for row in self.rows})


def landed_ranks(home: Path) -> Landed:
    """The ranks of a run by the file in its folder; lines that nsw does not write are passed over."""
    lines = [line.split("\t") for line in (read_tail(home / FILE, _MOST) or b"").decode(errors="replace").splitlines()]
    uuids: dict[str, dict[str, str]] = {}
    for line in lines:
        if line[0] == "gpu" and len(line) == 5:
            uuids.setdefault(line[1], {})[line[2]] = line[3]
    return Landed(tuple(_row(line, uuids) for line in lines if _is_rank(line)))


def _is_rank(line: list[str]) -> bool:
    return line[0] == "rank" and len(line) == 7 and line[1].isdecimal() and line[2].isdecimal()


def _row(line: list[str], uuids: Mapping[str, Mapping[str, str]]) -> Mapping[str, Any]:
    _, rank, local, node, boot, cpus, visible = line
    known = uuids.get(node, {})
    seen = visible.split(",") if visible else list(known)
    return {
        "rank": int(rank),
        "local_rank": int(local),
        "host": node,
        "boot": boot,
        "cpus": cpus if cpus != "-" else None,
        "gpus": ",".join(known.get(one, one) for one in seen) or None,
    }
