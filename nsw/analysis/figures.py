"""The program's figures: medians of runs, how much profilers changed them, and repeats that are far from the others.

Counters passes are left out of the perturbation: they run kernels again and are expected to be slow.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nsw.analysis.groups import group_by
from nsw.quantities import is_energy, number


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the program: the median of its runs, with their range, mean and standard deviation.

    `stddev` is the sample standard deviation (n - 1); None of one run.
    """

    name: str
    unit: str | None
    pass_name: str
    profiled: bool
    median: float
    least: float
    most: float
    runs: int
    mean: float | None = None
    stddev: float | None = None

    @classmethod
    def from_values(
        cls, name: str, unit: str | None, pass_name: str, values: Sequence[float], *, profiled: bool
    ) -> Figure:
        """Make a figure from its values.

        Args:
            name: The figure's name.
            unit: Of the values; None: the recipe gives none.
            pass_name: The pass that measured it.
            values: One for each run, at least one.
            profiled: Whether a profiler was running.
        """
        return cls(
            name, unit, pass_name, profiled, statistics.median(values), min(values), max(values), len(values),
            statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None,
        )  # fmt: skip


def figures_by_pass(runs: Sequence[Any], rows: Mapping[Any, Sequence[Mapping[str, Any]]]) -> tuple[Figure, ...]:
    """The figures of a case by pass.

    Args:
        runs: Its runs.
        rows: Rows of table `figures` by run.
    """
    seen = group_by(
        ((run, row) for run in runs for row in rows.get(run.id, ())), lambda item: (item[1]["name"], item[0].pass_name)
    )
    return tuple(
        Figure.from_values(
            name, values_of_runs[-1][1].get("unit"), pass_name, [row["value"] for _, row in values_of_runs],
            profiled=values_of_runs[-1][0].pass_kind != _FREE,
        )
        for (name, pass_name), values_of_runs in seen.items()
    )  # fmt: skip


WARN_PCT: Final = 10.0  # a change that is worth a warning
RUN_TIME: Final = "run time"
_FREE: Final = "baseline"
_PERTURBING: Final = frozenset({"timeline", "host"})  # kinds of passes
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


def profiler_perturbations(figures: Sequence[Figure], runs: Sequence[Any]) -> Iterator[Perturbation]:
    """What the passes of a case changed.

    Args:
        figures: The case's figures.
        runs: Its runs (pass_name, pass_kind, state, seconds).
    """
    free_time = _run_time_figure([run for run in runs if run.pass_kind == _FREE])
    for name in dict.fromkeys(run.pass_name for run in runs if run.pass_kind in _PERTURBING):
        for profiled in (f for f in figures if f.pass_name == name):
            free = next((f for f in figures if not f.profiled and f.name == profiled.name and f.median), None)
            if free is not None:
                yield _figure_perturbation(free, profiled)
        time = _run_time_figure([run for run in runs if run.pass_name == name])
        if free_time and time and free_time.median > 0:
            yield _figure_perturbation(free_time, time)


def _figure_perturbation(free: Figure, profiled: Figure) -> Perturbation:
    several = free.runs > 1 and profiled.runs > 1
    are_apart = profiled.most < free.least or profiled.least > free.most
    return Perturbation(
        profiled.pass_name,
        profiled.name,
        profiled.unit,
        baseline=free.median,
        profiled=profiled.median,
        change_pct=100 * (profiled.median - free.median) / abs(free.median),
        baseline_runs=free.runs,
        runs=profiled.runs,
        certain=are_apart if several else None,
    )


def _run_time_figure(runs: Sequence[Any]) -> Figure | None:
    """How long the runs of a pass that are done took; None where no one is."""
    times = [run.seconds for run in runs if run.state == "done" and run.seconds is not None]
    return Figure.from_values(RUN_TIME, "s", runs[0].pass_name, times, profiled=True) if times else None


DURATION: Final = "duration"  # of the run, where the program prints no figure
_FEWEST: Final = 3  # repeats; of two that differ nobody knows which one is wrong
_MAD_FROM: Final = 4  # repeats
_Z: Final = 3.5  # modified z-score, as Iglewicz and Hoaglin propose
_SIGMA: Final = 1.4826  # standard deviations in a median absolute deviation
_MIN_DEVIATION: Final = 0.10  # of the median: what is nearer is no outlier, however well the others agree
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
        host_text = f", on {self.host}" if self.host else ""
        return (
            f"{self.figure} is {number(self.value)}{unit}, {self.factor:.3g} times the median of {self.repeats} repeats"
            f" ({number(self.median)}{unit}){host_text}"
        )


def find_outliers(runs: Sequence[Any], figures: Sequence[Mapping[str, Any]]) -> list[Outlier]:
    """The outliers of a campaign, in the plan's order.

    Args:
        runs: Its runs; those that are done and no warm-up count.
        figures: The rows of table `figures`.
    """
    measured = {run.id: run for run in runs if run.state == "done" and run.repeat}
    values: dict[tuple[str, str, str], list[tuple[Any, float, str | None]]] = {}
    with_figures = set()
    for row in figures:
        if (run := measured.get(row["run"])) is not None and not is_energy(row["name"]):
            key = (run.case_id, run.pass_name, row["name"])
            values.setdefault(key, []).append((run, row["value"], row.get("unit")))
            with_figures.add((run.case_id, run.pass_name))
    for run in measured.values():
        if (run.case_id, run.pass_name) not in with_figures and run.seconds is not None:
            values.setdefault((run.case_id, run.pass_name, DURATION), []).append((run, run.seconds, "s"))
    hosts = {run.host for run in measured.values()}
    outliers: list[Outlier] = []
    for (case, pass_name, name), repeat_values in values.items():
        numbers = [value for _, value, _ in repeat_values]
        median = statistics.median(numbers)
        min_deviation = _LEAST_S if name == DURATION else 0.0
        for at in outlier_indexes(numbers, min_deviation):
            run, value, unit = repeat_values[at]
            host = run.host if len(hosts) > 1 else None
            outliers.append(
                Outlier(run.id, case, pass_name, name, unit, value, median, value / median, len(numbers), host)
            )
    order = {run.id: at for at, run in enumerate(runs)}
    return sorted(outliers, key=lambda outlier: order[outlier.run])


def outlier_indexes(values: Sequence[float], min_deviation: float = 0.0) -> list[int]:
    """The places of the values that are far from the others.

    Of four or more: a modified z-score (distance from the median over the median absolute deviation) above 3.5. Of
    three: the one that is five times farther from the middle one than the other is. None of fewer, and none that is
    within 10 % of the median or nearer to it than `min_deviation`.
    """
    if len(values) < _FEWEST:
        return []
    median = statistics.median(values)
    if not median:
        return []  # there is no factor to name
    away = [abs(value - median) for value in values]
    bound = _Z * _SIGMA * statistics.median(away) if len(values) >= _MAD_FROM else _TIMES_OF_3 * sorted(away)[1]
    bound = max(bound, _MIN_DEVIATION * abs(median), min_deviation)
    return [at for at, distance in enumerate(away) if distance >= bound]
