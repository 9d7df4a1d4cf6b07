"""Perturbation: how much a timeline or host profiler changed the program, against its baseline runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WARN_PCT: Final = 10.0  # a change that is worth a warning
RUN_TIME: Final = "run time"
_START_S: Final = 5.0  # what a profiler's start and export take at most (nsys on an H100: 2 to 3 s)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """One figure of a pass, or the run time of its whole job step, against the baseline: medians over the runs.

    `certain`: the ranges of both lie apart; None: the pass or the baseline ran only once, so that scatter is not known.
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
        """Whether it is worth a warning: above WARN_PCT, and not shown to be scatter.

        A run time holds the start of program and profiler: of it, only what repeats show and their start cannot be.
        """
        if abs(self.change_pct) < WARN_PCT:
            return False
        if self.figure == RUN_TIME:
            return self.certain is True and not self.may_be_start
        return self.certain is not False

    @property
    def may_be_start(self) -> bool:
        """Whether the run time differs by no more than what a profiler takes to start and to export."""
        return self.figure == RUN_TIME and abs(self.profiled - self.baseline) < _START_S
