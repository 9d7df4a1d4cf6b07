"""How often ncu runs a launch again for the metrics asked for, and how long that takes: measured on gh100.

Figures are in docs/gpu.md. A price has an expected value, and a bound that no measured run went beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from nsw.metrics.catalogue import Chip, rows
from nsw.metrics.requests import SECTION, SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


MEASURED: Final = "gh100"
_UNKNOWN: Final = {"set": 40, "section": 15}  # of one that was not measured
_SHARED: Final = 0.65  # of the sum: what groups need together, where that was not measured


@dataclass(frozen=True, slots=True)
class Seconds:
    """What a run under ncu takes beside its program: to start and export, a launch, a pass of a launch."""

    start: float
    launch: float
    metrics_pass: float  # where metrics are collected alone
    sections_pass: float  # where sections or sets are collected, whose rules are evaluated too

    def seconds(self, launches: float, passes: float, *, sections: bool) -> float:
        """The seconds of so many launches of kernels that take no time themselves."""
        each = self.sections_pass if sections else self.metrics_pass
        return self.start + launches * (self.launch + passes * each)


EXPECTED: Final = Seconds(6.0, 0.01, 0.02, 0.04)
AT_MOST: Final = Seconds(12.0, 0.03, 0.028, 0.056)


@dataclass(frozen=True, slots=True)
class Passes:
    """How many passes of a launch are expected and how many there are at most; whether that was measured on this chip.

    `sections`: sections or sets are collected, not metrics alone.
    """

    expected: int
    at_most: int
    measured: bool
    sections: bool

    def expected_s(self, launches: float) -> float:
        """The expected seconds beside the program, of launches of kernels that take no time themselves."""
        return EXPECTED.seconds(launches, self.expected, sections=self.sections)

    def at_most_s(self, launches: float) -> float:
        """The same as a bound."""
        return AT_MOST.seconds(launches, self.at_most, sections=self.sections)


def passes(names: Sequence[str], chip: Chip | None) -> Passes:
    """The passes of what a recipe's `metrics` name.

    What was measured together counts with its passes together. Of other combinations the sum is a bound.

    Args:
        names: Portable names, groups, ncu's own names, set:NAME, section:NAME.
        chip: The chip; None: not known.
    """
    requested = list(dict.fromkeys(names)) or [""]
    alone = [_passes_of_name(name) for name in requested]
    together = [
        count + sum(each for name, each in zip(requested, alone, strict=True) if name not in joined_names)
        for joined_names, count in _together().items()
    ]
    at_most = min(sum(alone), *together)
    expected = at_most if at_most in together else max(*alone, round(_SHARED * at_most))
    sections = any(name.startswith((SET, SECTION)) for name in requested)
    return Passes(expected, at_most, chip is not None and chip.name == MEASURED, sections)


def _passes_of_name(name: str) -> int:
    for prefix, kind in ((SET, "set"), (SECTION, "section")):
        if name.startswith(prefix):
            return _measured_passes().get((kind, name.removeprefix(prefix)), _UNKNOWN[kind])
    return _measured_passes().get(("group", name)) or _measured_passes().get(("metric", name)) or 1


@cache
def _measured_passes() -> Mapping[tuple[str, str], int]:
    return {(row["what"], row["name"]): int(row[MEASURED]) for row in rows("passes.csv")}


@cache
def _together() -> Mapping[frozenset[str], int]:
    """Passes of names that were measured in one run: rows `together`, whose names are joined by +."""
    return {
        frozenset(name.split("+")): count for (kind, name), count in _measured_passes().items() if kind == "together"
    }
