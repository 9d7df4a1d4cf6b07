"""Perturbation: how much a timeline or host profiler changed the program, against its baseline runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WARN_PCT: Final = 10.0  # a change that is worth a warning
RUN_TIME: Final = "run time"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One figure of a pass, or the run time of its whole job step, against the baseline: medians over the runs.

    `certain`: the ranges of both lie apart; None: one run of either, so that scatter is not known.
    """

    pass_name: str
    figure: str
    unit: str | None
    baseline: float
    profiled: float
    change_pct: float
    baseline_runs: int
    runs: int
    certain: bool | None

    @property
    def is_much(self) -> bool:
        """Whether it is worth a warning: above WARN_PCT, and not shown to be scatter."""
        return abs(self.change_pct) >= WARN_PCT and self.certain is not False
