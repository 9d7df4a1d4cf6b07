"""Outliers among the repeats of a case: runs whose figure is far from those of the others."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DURATION: Final = "duration"  # of the run, where the program prints no figure
_FEWEST: Final = 3  # repeats; of two that differ nobody knows which one is wrong
_MAD_FROM: Final = 4  # repeats
_Z: Final = 3.5  # modified z-score, as Iglewicz and Hoaglin propose
_SIGMA: Final = 1.4826  # standard deviations in a median absolute deviation
_LEAST_SCALE: Final = 0.005  # of the median: repeats that agree to the last digit still have some noise
_LEAST: Final = 0.05  # of the median: what is nearer is no outlier, however well the others agree
_LEAST_OF_3: Final = 0.10
_TIMES_OF_3: Final = 5.0  # how much farther away than the other one
_LEAST_S: Final = 1.0  # seconds by which a duration must differ: starting a program takes some


@dataclass(frozen=True, slots=True)
class Outlier:
    """A run whose figure is far from the median of its repeats.

    Attributes:
        run: Its id.
        case_id: Its case.
        pass_name: Its pass.
        figure: The figure's name, or `duration`.
        unit: The figure's unit.
        value: What this run gave.
        median: The median of all repeats.
        factor: value / median.
        repeats: How many repeats there are.
        host: Where it ran, if known.
    """

    run: str
    case_id: str
    pass_name: str
    figure: str
    unit: str | None
    value: float
    median: float
    factor: float
    repeats: int
    host: str | None = None

    @property
    def text(self) -> str:
        """What is odd, without the run's name."""
        unit = f" {self.unit}" if self.unit else ""
        where = f", on {self.host}" if self.host else ""
        return (
            f"{self.figure} is {self.value:.6g}{unit}, {self.factor:.3g} times the median of {self.repeats} repeats"
            f" ({self.median:.6g}{unit}){where}"
        )


def outliers(runs: Sequence[Any], figures: Sequence[Mapping[str, Any]]) -> list[Outlier]:
    """The outliers of a campaign, in the plan's order.

    Args:
        runs: Its runs; those that are done and no warm-up count.
        figures: The rows of table `figures`.
    """
    measured = {run.id: run for run in runs if run.state == "done" and run.repeat}
    values: dict[tuple[str, str, str], list[tuple[Any, float, str | None]]] = {}
    with_figures = set()
    for row in figures:
        if (run := measured.get(row["run"])) is not None:
            key = (run.case_id, run.pass_name, row["name"])
            values.setdefault(key, []).append((run, row["value"], row.get("unit")))
            with_figures.add((run.case_id, run.pass_name))
    for run in measured.values():
        if (run.case_id, run.pass_name) not in with_figures and run.seconds is not None:
            values.setdefault((run.case_id, run.pass_name, DURATION), []).append((run, run.seconds, "s"))
    hosts = {run.host for run in measured.values()}
    found: dict[str, list[Outlier]] = {}
    for (case, pass_name, name), some in values.items():
        numbers = [value for _, value, _ in some]
        median = statistics.median(numbers)
        least = _LEAST_S if name == DURATION else 0.0
        for at in far_off(numbers, least):
            run, value, unit = some[at]
            host = run.host if len(hosts) > 1 else None
            found.setdefault(run.id, []).append(
                Outlier(run.id, case, pass_name, name, unit, value, median, value / median, len(numbers), host)
            )
    return [one for run in runs for one in found.get(run.id, ())]


def far_off(values: Sequence[float], least: float = 0.0) -> list[int]:
    """The places of the values that are far from the others.

    Of four or more: a modified z-score (distance from the median over the median absolute deviation) above 3.5. Of
    three: the one that is five times farther from the middle one than the other is. None of fewer, and none that is
    within 5 % of the median (10 % of three values) or nearer to it than `least`.
    """
    if len(values) < _FEWEST:
        return []
    median = statistics.median(values)
    if not median:
        return []  # there is no factor to name
    away = [abs(value - median) for value in values]
    if len(values) >= _MAD_FROM:
        scale = max(_SIGMA * statistics.median(away), _LEAST_SCALE * abs(median))
        bound = max(_Z * scale, _LEAST * abs(median), least)
    else:
        bound = max(_TIMES_OF_3 * sorted(away)[1], _LEAST_OF_3 * abs(median), least)
    return [at for at, distance in enumerate(away) if distance >= bound and distance]
