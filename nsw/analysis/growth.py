"""How a figure, the parts of an iteration and its classes of kernels grow with a parameter, and which part will limit.

A rate has the law of its cost: the work of a point over the rate, as gpus / (images/s) is the GPU time of an image.
Strong scaling, weak scaling and batches are laws of the normal form then, and the rate itself is none.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.analysis.comparison import least_disturbed_figure, params_except
from nsw.analysis.groups import group_by
from nsw.analysis.laws import Estimate, Law, fit_law
from nsw.analysis.rules.profiler_cost import profiler_slowdown
from nsw.analysis.spent import remove_profiler_idle_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.laws import Numbers

__all__ = ["FIGURE", "ITERATION", "KERNELS", "RATE", "Growth", "Series", "fit_growth_by_series"]

FIGURE: Final = "figure"
ITERATION: Final = "iteration"
KERNELS: Final = "kernels"
SPAN: Final = "iteration"
_PARTS: Final = {
    "computing": "computing_pct", "communication alone": "exposed_pct", "copies alone": "copies_pct",
    "idle": "idle_pct",
}  # fmt: skip
RATE: Final = re.compile(r"(/|_?per_?)s(ec(ond)?s?)?$|flops?(/s)?$", re.IGNORECASE)
_MS: Final = 1e6  # ns
_CLASSES: Final = 8  # of kernels, those with most time
_SMALL: Final = 0.01  # of an iteration: below it a part limits nothing, and scatters more than it is

Point = tuple[float, ...]
Measured = dict[Point, list[float]]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a value grows.

    Attributes:
        kind: FIGURE, ITERATION (a part of one, or all of it) or KERNELS (a class of them, in GPU time of an iteration).
        name: What it is.
        unit: Of its values.
        first: At the least measured point.
        last: At the largest measured point.
        fitted: Its law, that of its cost where `is_rate`; a text says why there is none.
        is_rate: Whether it is a rate.
        at: The value at the point that was asked for, or why there is none.
        share_pct: What it is of an iteration there.
    """

    kind: str
    name: str
    unit: str | None
    first: float
    last: float
    fitted: Law | str
    is_rate: bool
    at: Estimate
    share_pct: Estimate | None = None

    @property
    def law(self) -> Law | None:
        """The law, where there is one."""
        return None if isinstance(self.fitted, str) else self.fitted

    def predict(self, *point: float) -> Estimate:
        """Return the value at another point, in its unit.

        Args:
            point: A positive number for each parameter.
        """
        return _predict_value(self.fitted, point, is_rate=self.is_rate)


@dataclass(frozen=True, slots=True)
class Series:
    """The laws of cases that differ in the parameters of the laws alone.

    Attributes:
        params: Their other parameters.
        over: The parameters of the laws.
        measured: The points, in order.
        point: Where the values are predicted.
        rows: What grows: the figure, the iteration with its parts, classes of kernels.
    """

    params: Mapping[str, Any]
    over: tuple[str, ...]
    measured: tuple[Point, ...]
    point: Point
    rows: tuple[Growth, ...]

    @property
    def by_share(self) -> list[Growth]:
        """The parts of an iteration at the point, the largest first; none where that is not known."""
        parts = [row for row in self.rows if row.share_pct is not None and row.share_pct.value is not None]
        return sorted(parts, key=lambda row: -row.share_pct.value)  # type: ignore[operator,union-attr]

    @property
    def extrapolation_factor(self) -> float:
        """How many times the largest measured value the point is, of the parameter that is farthest out."""
        most = map(max, zip(*self.measured, strict=True))
        return max(float(at / value) for at, value in zip(self.point, most, strict=True))


def fit_growth_by_series(
    cases: Sequence[CaseSummary], runs: Mapping[str, Sequence[CaseSummary]], *, over: Sequence[str],
    at: Point, figure: str | None,
) -> list[Series]:  # fmt: skip
    """Find the laws of each series in which something was measured.

    Args:
        cases: The cases that have the parameters as numbers above zero.
        runs: Each run of a case as a case of its own, by the case's id.
        over: One parameter or two.
        at: The point to predict, a value for each parameter.
        figure: The figure's name; None: only iterations are of interest.
    """
    members = group_by(cases, lambda case: repr(params_except(case, *over)))
    every = [_fit_series(group, runs, tuple(over), at, figure) for group in members.values()]
    return [series for series in every if series.rows]


def _fit_series(
    cases: Sequence[CaseSummary], runs: Mapping[str, Sequence[CaseSummary]], over: tuple[str, ...], at: Point,
    figure: str | None,
) -> Series:  # fmt: skip
    figures: Measured = {}
    parts: dict[str, Measured] = {}
    classes: dict[str, Measured] = {}
    unit = None
    for case in cases:
        point = tuple(float(case.params[name]) for name in over)
        free = least_disturbed_figure(case, figure) if figure else None
        if free is not None:
            unit = free.unit
            figures.setdefault(point, []).extend(
                found.median for run in runs[case.id] for found in run.figures
                if found.name == figure and found.pass_name == free.pass_name
            )  # fmt: skip
        for run in runs[case.id]:
            if run.spent is None or run.spent.span_ns is None or run.traced_by != case.traced_by:
                continue
            spent = remove_profiler_idle_time(run.spent, profiler_slowdown(case))
            span_ms = (spent.span_ns or 0.0) / _MS
            _add_measurement(parts, SPAN, point, span_ms)
            for name, attribute in _PARTS.items():
                if (share := getattr(spent, attribute)) is not None:
                    _add_measurement(parts, name, point, span_ms * share / 100)
            for part in spent.parts:
                _add_measurement(classes, part.name, point, part.ns / _MS)
    rows = [] if figure is None or not figures else [_figure_growth(figure, unit, figures, over, at)]
    spans = parts.pop(SPAN, {})
    floor = _SMALL * min((float(np.mean(values)) for values in spans.values()), default=0.0)
    if spans:
        rows += _iteration_growths(spans, parts, over, at, floor)
        most = sorted(classes.items(), key=lambda item: -_largest_value(item[1]))[:_CLASSES]
        rows += [
            _value_growth(KERNELS, name, values, over, at, floor)
            for name, values in most
            if _largest_value(values) >= floor
        ]
    measured = tuple(sorted({*figures, *spans}))
    return Series(params_except(cases[0], *over), over, measured, at, tuple(rows))


def _add_measurement(values: dict[str, Measured], name: str, point: Point, value: float) -> None:
    values.setdefault(name, {}).setdefault(point, []).append(value)


def _largest_value(measured: Measured) -> float:
    return max(float(np.mean(values)) for values in measured.values())


def _figure_growth(figure: str, unit: str | None, measured: Measured, over: tuple[str, ...], at: Point) -> Growth:
    """The law of the figure, by its cost where it is a rate."""
    if not RATE.search(unit or figure) or any(value <= 0 for values in measured.values() for value in values):
        return _value_growth(FIGURE, figure, measured, over, at, 0.0, unit)
    cost = {point: [math.prod(point) / value for value in values] for point, values in measured.items()}
    return _make_growth(FIGURE, figure, measured, fit_law(_sort_by_point(cost), over), at, unit, is_rate=True)


def _value_growth(
    kind: str, name: str, measured: Measured, over: tuple[str, ...], at: Point, floor: float, unit: str | None = "ms"
) -> Growth:
    """The law of a value; where it is exactly 0, as communication of one GPU is, it has not begun."""
    law = fit_law(
        _sort_by_point({point: values for point, values in measured.items() if any(values)}), over, floor=floor
    )
    return _make_growth(kind, name, measured, law, at, unit, is_rate=False)


def _make_growth(
    kind: str, name: str, measured: Measured, law: Law | str, at: Point, unit: str | None, *, is_rate: bool
) -> Growth:
    first, last = (float(np.mean(measured[point])) for point in (min(measured), max(measured)))
    return Growth(kind, name, unit, first, last, law, is_rate, _predict_value(law, at, is_rate=is_rate))


def _predict_value(law: Law | str, point: Point, *, is_rate: bool) -> Estimate:
    if isinstance(law, str):
        return Estimate(None, missing=law)
    if is_rate and law.why_not(*point) is None:
        return Estimate.from_samples(math.prod(point) / law.predictions(*point))
    return law.predict(*point)


def _sort_by_point(measured: Measured) -> dict[Any, list[float]]:
    return {point: measured[point] for point in sorted(measured)}


def _iteration_growths(
    spans: Measured, parts: Mapping[str, Measured], over: tuple[str, ...], at: Point, floor: float
) -> Iterator[Growth]:
    """The iteration, and its parts with their shares at the point, where all that matter have a law there."""
    yield _value_growth(ITERATION, SPAN, spans, over, at, floor)
    rows = [_value_growth(ITERATION, name, measured, over, at, floor) for name, measured in parts.items()]
    large = [row for row, measured in zip(rows, parts.values(), strict=True) if _largest_value(measured) >= floor]
    missing = next((f"{row.name}: {row.at.missing}" for row in large if row.at.missing), None)
    shares = {} if missing else _predicted_shares_pct((row.name, row.law.predictions(*at)) for row in large if row.law)
    for row in rows:
        if row in large:
            yield replace(row, share_pct=Estimate(None, missing=missing) if missing else shares[row.name])


def _predicted_shares_pct(predictions: Iterable[tuple[str, Numbers]]) -> dict[str, Estimate]:
    """What each part is of their sum in per cent, by its law and by each of the resampled laws."""
    parts = dict(predictions)
    length = max(map(len, parts.values()), default=1)
    table = np.array([samples if len(samples) == length else np.full(length, samples[0]) for samples in parts.values()])
    table = 100 * table / table.sum(axis=0)
    return {name: Estimate.from_samples(samples) for name, samples in zip(parts, table, strict=True)}
