"""The first screen of how a figure scales: efficiency, and where an iteration goes with the most GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Cell, Column, ColumnPart
from nsw.analysis.comparison import Scaling, ScalingPoint, figure_heading
from nsw.analysis.groups import group_by
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.screen_table import (
    WASTE_PCT,
    Screen,
    has_uneven_gpus,
    mfu_column,
    milliseconds_change_text,
    parameter_value_cell,
    screen_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.summary import Summary

    Ends = tuple[ScalingPoint, ScalingPoint]

__all__ = ["efficiency_range", "scaling_screen", "unshown_axis_values"]

_WHOLE: Final = ("exposed_pct", "computing_pct", "copies_pct", "idle_pct")  # an iteration of the mean GPU


def scaling_screen(summary: Summary, curve: Scaling) -> Screen:
    """A row a series: its ends, and where an iteration of the larger one goes; of one series a row a point."""
    by_id = summary.by_id
    ends = [(first, last) for first, last in _first_and_last_points(curve) if last.figure is not None]
    single = len({repr(point.series) for point in curve.points}) == 1
    with_efficiency = [(first, last) for first, last in ends if last.efficiency_pct is not None and last is not first]
    title = figure_heading(curve.figure, curve.unit, is_median=any(point.runs > 1 for point in curve.points))
    spent = {point.case_id: time_without_profiler(by_id[point.case_id]) for point in curve.points}

    def share_cell(end: Ends, name: str) -> Cell:
        return getattr(spent[end[1].case_id], name, None)

    parts: list[ColumnPart | None] = [
        *((Column(f"param.{name}", name), lambda e, name=name: parameter_value_cell(e[1].series[name]))
         for name in curve.points[0].series if not single),
        (Column(f"param.{curve.axis}", curve.axis, "plain"), lambda e: e[1].at) if single else None,
        (Column("first", f"{_axis_value_text(ends, curve, 0)}, {title}", "number"),
         lambda e: e[0].figure) if not single else None,
        (Column("last", title if single else _axis_value_text(ends, curve, 1), "number"), lambda e: e[1].figure),
        (Column("efficiency_pct", "efficiency", "whole %"), lambda e: e[1].efficiency_pct),
        (Column("efficiency_range", "its range"),
         lambda e: "{:.0f} to {:.0f} %".format(*low_high) if (low_high := efficiency_range(curve, *e)) else "")
        if any(point.runs > 1 for point in curve.points) else None,
        mfu_column(summary, lambda e: e[1].case_id),
        (Column("step", "iteration, ms"),
         lambda e: milliseconds_change_text(*(getattr(spent[point.case_id], "span_ns", None) for point in e)))
        if any(share_cell(end, "span_ns") for end in ends) else None,
        *(
            (Column(name, title, "whole %"), lambda e, name=name: share_cell(e, name))
            for name, title in (
                ("computing_pct", "computing"), ("copies_pct", "copies alone"), ("exposed_pct", "NCCL alone"),
                ("idle_pct", "idle"), ("hidden_pct", "NCCL hidden"),
            )
            if any(share_cell(end, name) for end in ends)
        ),
        (Column("most_idle_pct", "most idle", "whole %"), lambda e: share_cell(e, "most_idle_pct"))
        if any(has_uneven_gpus(by_id[last.case_id]) for _, last in ends) else None,
    ]  # fmt: skip
    table = screen_table(
        parts, ends, "scaling", [last.case_id for _, last in ends],
        droppable=("hidden_pct", "most_idle_pct", "step"), whole=_WHOLE,
    )  # fmt: skip
    if not with_efficiency:
        return Screen(f"{summary.campaign}: nothing to scale from was measured", table)
    largest = [e for e in with_efficiency if e[1].at == max(end[1].at for end in with_efficiency)]
    best, worst = (pick(largest, key=lambda e: e[1].efficiency_pct or 0.0) for pick in (max, min))
    headline = f"{best[1].efficiency_pct:.0f} % efficiency at {curve.axis}={best[1].at:g}"
    if len(largest) > 1:
        headline += f", {_series_name_text(best[1])}; {worst[1].efficiency_pct:.0f} % at {_series_name_text(worst[1])}"
    hits = summary.hits.get(worst[1].case_id, ())
    loss = next((f": {hit.what.partition(',')[0]}" for hit in hits if hit.gain_pct >= WASTE_PCT / 2), "")
    return Screen(headline + loss, table)


def unshown_axis_values(curve: Scaling) -> list[str]:
    """The values of the axis that the screen shows no row or column of: those between the ends of several series."""
    cases = {point.case_id for end in _first_and_last_points(curve) for point in end}
    values = {point.at for point in curve.points if point.case_id in cases}
    return [f"{at:g}" for at in sorted({point.at for point in curve.points} - values)]


def efficiency_range(curve: Scaling, first: ScalingPoint, last: ScalingPoint) -> tuple[float, float] | None:
    """Return the efficiency of the worst run beside the best of the base, and the other way round, in per cent.

    Args:
        curve: The scaling table.
        first: The base.
        last: Another point.
    """
    measured = (first.least, first.most, last.least, last.most, first.figure, last.figure)
    if last is first or last.efficiency_pct is None or not all(measured):
        return None
    own = last.least / last.figure, last.most / last.figure  # type: ignore[operator]  # all known
    base = first.least / first.figure, first.most / first.figure  # type: ignore[operator]
    if curve.higher_is_better:
        return last.efficiency_pct * own[0] / base[1], last.efficiency_pct * own[1] / base[0]
    return last.efficiency_pct * base[0] / own[1], last.efficiency_pct * base[1] / own[0]


def _first_and_last_points(curve: Scaling) -> list[Ends]:
    series = group_by(curve.points, lambda point: repr(point.series))
    if len(series) == 1:
        return [(curve.points[0], point) for point in curve.points]
    return [(points[0], points[-1]) for points in series.values()]


def _axis_value_text(ends: Sequence[Ends], curve: Scaling, index: int) -> str:
    values = {end[index].at for end in ends}
    return f"{curve.axis}={values.pop():g}" if len(values) == 1 else ("least", "most")[index]


def _series_name_text(point: ScalingPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.series.items()) or point.case_id
