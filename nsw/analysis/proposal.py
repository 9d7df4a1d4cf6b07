"""The figure that applications for computing time ask for: efficiency of strong or weak scaling, and its hours.

Measured points come first; behind them, where a law is determined, those at twice and four times the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Cell, Column, Curve, Evidence, drop_empty_columns
from nsw.analysis.comparison import figure_heading_with_unit
from nsw.analysis.groups import group_by
from nsw.analysis.growth import FIGURE, RATE
from nsw.analysis.several_cases import efficiency_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nsw.analysis.comparison import Scaling, ScalingPoint
    from nsw.analysis.growth import Growth, Series

__all__ = ["FARTHER", "NAME", "proposal_curve"]

NAME: Final = "proposal"
FARTHER: Final = (2, 4)  # times the largest measured value
_MANY: Final = 1e6  # units of work that hours are for
_PREDICTED: Final = "predicted"
_HOUR: Final = 3600.0  # s


def proposal_curve(
    curve: Scaling, series_list: Sequence[Series], gpus: Mapping[str, int], run_s: Mapping[str, float]
) -> Curve:
    """Make the figure and its table.

    Args:
        curve: The scaling table.
        series_list: The laws of its figure along its axis.
        gpus: How many each case has; a case without is left out.
        run_s: How long a run of each case takes, in seconds.
    """
    is_rate = bool(curve.higher_is_better and RATE.search(curve.unit or curve.figure))
    work = (curve.unit or "").partition("/")[0] or "units of work"
    names = tuple(curve.points[0].series)
    rows: list[tuple[Cell, ...]] = []
    for points in group_by((p for p in curve.points if p.figure is not None), lambda p: repr(p.series)).values():
        params = [v if isinstance(v, int | float | str) else str(v) for v in points[0].series.values()]
        measured = (
            _measured_cells(curve, points[0], p, gpus.get(p.case_id), run_s.get(p.case_id), is_rate=is_rate)
            for p in points
        )
        alike = (series for series in series_list if repr(series.params) == repr(points[0].series))
        law = next((row for series in alike for row in series.rows if row.kind == FIGURE), None)
        forecast = _predicted_cells(curve, points, law, gpus.get(points[-1].case_id), is_rate=is_rate) if law else ()
        rows += [(*params, *cells) for cells in (*measured, *forecast)]
    hours_title = f"GPU-hours for a million {work}" if is_rate else "GPU-hours a run"
    columns = (
        *(Column(f"param.{name}", name) for name in names),
        Column(f"param.{curve.axis}", curve.axis, "plain"),
        Column("source", "source"),
        Column("figure", figure_heading_with_unit(curve.figure, curve.unit), "number"),
        Column("speedup", "speed-up", "times"),
        Column("efficiency_pct", "efficiency", "%"),
        Column("efficiency_range", "its range, %", "range"),
        Column("gpu_hours", hours_title, "number"),
    )
    predicted: list[Any] = [row[len(names)] for row in rows if row[len(names) + 1] == _PREDICTED]
    note = f" (predicted from {curve.axis}={min(predicted)} on)" if predicted else ""
    return Curve(
        NAME,
        f"efficiency of {curve.kind} scaling, {curve.figure}{note}",
        *drop_empty_columns(columns, rows),
        repeats=len(names),
        x=f"param.{curve.axis}",
        y="efficiency_pct",
        series=tuple(f"param.{name}" for name in names),
        ideals=(100.0,) * len(rows),
        evidence=(Evidence("scaling", tuple(point.case_id for point in curve.points)),),
    )


def _measured_cells(
    curve: Scaling,
    base: ScalingPoint,
    point: ScalingPoint,
    gpus: int | None,
    run_s: float | None,
    *,
    is_rate: bool,
) -> tuple[Cell, ...]:
    """A measured point, from its place on the axis to its hours."""
    hours = _gpu_hours_per_million(gpus, point.figure if is_rate else None, run_s)
    spread = efficiency_range(curve, base, point)
    return (point.at, "measured", point.figure, point.speedup, point.efficiency_pct, spread, hours)


def _predicted_cells(
    curve: Scaling, points: Sequence[ScalingPoint], law: Growth, gpus: int | None, *, is_rate: bool
) -> Iterator[tuple[Cell, ...]]:
    """The points behind the last measured one, as far as the law tells them."""
    base, last = points[0], points[-1]
    for times in FARTHER:
        at = last.at * times
        estimate = law.predict(at)
        if estimate.value is None or base.efficiency_pct is None:
            continue
        value = _efficiency_pct(curve, base, at, estimate.value)
        ends = [_efficiency_pct(curve, base, at, end) for end in (estimate.low, estimate.high) if end is not None]
        spread = (min(ends), max(ends)) if len(ends) == 2 else None
        hours = _gpu_hours_per_million(
            gpus * times if gpus == last.at else None, estimate.value if is_rate else None, None
        )
        yield at, _PREDICTED, estimate.value, value / 100 * at / base.at, value, spread, hours


def _efficiency_pct(curve: Scaling, base: ScalingPoint, at: float, figure: float) -> float:
    """As in the scaling table: 100 at the base."""
    gain = figure / base.figure if curve.higher_is_better else base.figure / figure  # type: ignore[operator]  # known
    is_of_work = curve.kind == "weak" and not curve.higher_is_better
    return 100 * (gain if is_of_work else gain * base.at / at)


def _gpu_hours_per_million(gpus: int | None, rate: float | None, run_s: float | None) -> float | None:
    """GPU-hours of a million units of work at this rate a second; without a rate of a run."""
    seconds = _MANY / rate if rate else run_s
    return None if not gpus or seconds is None else gpus * seconds / _HOUR
