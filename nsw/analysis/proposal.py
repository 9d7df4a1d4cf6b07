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
    from collections.abc import Mapping, Sequence

    from nsw.analysis.comparison import Scaling, ScalingPoint
    from nsw.analysis.growth import Series

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
    series = group_by((p for p in curve.points if p.figure is not None), lambda point: repr(point.series))
    for points in series.values():
        params: list[Cell] = [
            value if isinstance(value, int | float | str) else str(value) for value in points[0].series.values()
        ]
        base, last = points[0], points[-1]
        for point in points:
            count = gpus.get(point.case_id)
            hours = _gpu_hours_per_million(count, point.figure if is_rate else None, run_s.get(point.case_id))
            rows.append((
                *params, point.at, "measured", point.figure, point.speedup, point.efficiency_pct,
                efficiency_range(curve, base, point), hours,
            ))  # fmt: skip
        laws = [
            row
            for each in series_list
            if repr(each.params) == repr(points[0].series)
            for row in each.rows
            if row.kind == FIGURE
        ]
        for times in FARTHER:
            at = last.at * times
            estimate = laws[0].predict(at) if laws else None
            if estimate is None or estimate.value is None or base.efficiency_pct is None:
                continue
            value, low, high = (
                None if each is None else _efficiency_pct(curve, base, at, each)
                for each in (estimate.value, estimate.low, estimate.high)
            )
            grown = gpus.get(last.case_id, 0) * times if gpus.get(last.case_id) == last.at else None
            between = None if low is None or high is None else (min(low, high), max(low, high))
            speedup = None if value is None else value / 100 * at / base.at
            hours = _gpu_hours_per_million(grown, estimate.value if is_rate else None, None)
            rows.append((*params, at, _PREDICTED, estimate.value, speedup, value, between, hours))
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


def _efficiency_pct(curve: Scaling, base: ScalingPoint, at: float, figure: float) -> float:
    """As in the scaling table: 100 at the base."""
    gain = figure / base.figure if curve.higher_is_better else base.figure / figure  # type: ignore[operator]  # known
    is_of_work = curve.kind == "weak" and not curve.higher_is_better
    return 100 * (gain if is_of_work else gain * base.at / at)


def _gpu_hours_per_million(gpus: int | None, rate: float | None, run_s: float | None) -> float | None:
    """GPU-hours of a million units of work at this rate a second; without a rate of a run."""
    seconds = _MANY / rate if rate else run_s
    return None if not gpus or seconds is None else gpus * seconds / _HOUR
