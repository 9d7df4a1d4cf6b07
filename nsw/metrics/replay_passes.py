"""How often ncu runs a launch again for the metrics asked for: measured on gh100, a bound elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from nsw.metrics.data_files import rows
from nsw.metrics.requests import SECTION, SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.metrics.chips import Chip

MEASURED: Final = "gh100"
SECONDS_A_PASS: Final = (
    0.035  # of a small kernel on an H200, the restoring of its memory and the flush of caches included
)
SECONDS_A_LAUNCH: Final = 0.01
_UNKNOWN: Final = {"set": 40, "section": 15}  # of one that was not measured


@dataclass(frozen=True, slots=True)
class Passes:
    """How many passes at most, and whether the parts of that were measured on this chip."""

    at_most: int
    measured: bool

    @property
    def seconds_a_launch(self) -> float:
        """Of a kernel that takes no time itself."""
        return SECONDS_A_LAUNCH + self.at_most * SECONDS_A_PASS


def passes(names: Sequence[str], chip: Chip | None) -> Passes:
    """The passes of what a recipe's `metrics` name, each by itself: together they take no more, and mostly fewer.

    Args:
        names: Portable names, groups, ncu's own names, set:NAME, section:NAME.
        chip: The chip; None: not known.
    """
    total = sum(_of(name) for name in dict.fromkeys(names))
    return Passes(max(1, total), chip is not None and chip.name == MEASURED)


def _of(name: str) -> int:
    for prefix, what in ((SET, "set"), (SECTION, "section")):
        if name.startswith(prefix):
            return _known().get((what, name.removeprefix(prefix)), _UNKNOWN[what])
    return _known().get(("group", name)) or _known().get(("metric", name)) or 1


@cache
def _known() -> Mapping[tuple[str, str], int]:
    return {(row["what"], row["name"]): int(row[MEASURED]) for row in rows("passes.csv")}
