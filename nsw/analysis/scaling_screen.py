"""The first screen of how a figure scales: efficiency, and where an iteration goes with the most GPUs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Cell, Column
from nsw.analysis.comparison import Scaling, ScalingPoint, figure_heading
from nsw.analysis.rules.timeline import time_without_profiler
from nsw.analysis.screen_table import (
    WASTE_PCT,
    Screen,
    ScreenPart,
    has_uneven_gpus,
    milliseconds_change_text,
    parameter_value_cell,
    screen_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

_WHOLE: Final = ("exposed_pct", "computing_pct", "copies_pct", "idle_pct")  # an iteration of the mean GPU


def scaling_screen(summary: Summary, curve: Scaling) -> Screen:
    """A row a series: its ends, and where an iteration of the larger one goes; of one series a row a point."""
    by_id = {case.id: case for case in (*summary.cases, *summary.context)}
    ends = [(first, last) for first, last in _first_and_last_points(curve) if last.figure is not None]
    single = len({repr(point.series) for point in curve.points}) == 1
    with_efficiency = [(first, last) for first, last in ends if last.efficiency_pct is not None and last is not first]
    title = figure_heading(curve.figure, curve.unit, is_median=any(point.runs > 1 for point in curve.points))
    spans = any(by_id[last.case_id].spent and by_id[last.case_id].spent.span_ns for _, last in ends)  # type: ignore[union-attr]
    parts: list[ScreenPart | None] = [
        *((Column(f"param.{name}", name), _series_cell_getter(name)) for name in curve.points[0].series if not single),
        (Column(f"param.{curve.axis}", curve.axis, "plain"), lambda e: e[1].at) if single else None,
        (Column("first", f"{_axis_value_text(ends, curve, 0)}, {title}", "number"),
         lambda e: e[0].figure) if not single else None,
        (Column("last", title if single else _axis_value_text(ends, curve, 1), "number"), lambda e: e[1].figure),
        (Column("efficiency_pct", "efficiency", "whole %"), lambda e: e[1].efficiency_pct),
        (Column("efficiency_range", "its range"), partial(_efficiency_range_text, curve))
        if any(point.runs > 1 for point in curve.points) else None,
        (Column("step", "iteration, ms"), _iteration_times_getter(by_id)) if spans else None,
        *(
            (Column(name, title, "whole %"), _time_share_getter(by_id, name))
            for name, title in (
                ("computing_pct", "computing"), ("copies_pct", "copies alone"), ("exposed_pct", "NCCL alone"),
                ("idle_pct", "idle"), ("hidden_pct", "NCCL hidden"),
            )
            if any(_time_share_getter(by_id, name)(end) for end in ends)
        ),
        (Column("most_idle_pct", "most idle", "whole %"), _time_share_getter(by_id, "most_idle_pct"))
        if any(has_uneven_gpus(by_id[last.case_id]) for _, last in ends) else None,
    ]  # fmt: skip
    table = screen_table(
        "", parts, ends, "scaling", [last.case_id for _, last in ends],
        droppable=("hidden_pct", "most_idle_pct", "step"), whole=_WHOLE,
    )  # fmt: skip
    if not with_efficiency:
        return Screen(f"{summary.campaign}: nothing to scale from was measured", table)
    largest = [e for e in with_efficiency if e[1].at == max(end[1].at for end in with_efficiency)]
    best, worst = (pick(largest, key=lambda e: e[1].efficiency_pct or 0.0) for pick in (max, min))
    headline = f"{_efficiency_change_text(best)} efficiency at {curve.axis}={_number_text(best[1].at)}"
    if len(largest) > 1:
        headline += f", {_series_name_text(best[1])}; {_efficiency_change_text(worst)} at {_series_name_text(worst[1])}"
    return Screen(headline + _largest_loss_text(summary.hits.get(worst[1].case_id, ())), table)


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


def _efficiency_range_text(curve: Scaling, ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    between = efficiency_range(curve, *ends)
    return f"{between[0]:.0f} to {between[1]:.0f} %" if between else ""


def _first_and_last_points(curve: Scaling) -> list[tuple[ScalingPoint, ScalingPoint]]:
    series: dict[str, list[ScalingPoint]] = {}
    for point in curve.points:
        series.setdefault(repr(point.series), []).append(point)
    if len(series) == 1:
        return [(curve.points[0], point) for point in curve.points]
    return [(points[0], points[-1]) for points in series.values()]


def _axis_value_text(ends: Sequence[tuple[ScalingPoint, ScalingPoint]], curve: Scaling, index: int) -> str:
    values = {end[index].at for end in ends}
    return f"{curve.axis}={_number_text(values.pop())}" if len(values) == 1 else ("least", "most")[index]


def _series_cell_getter(name: str) -> Callable[[Any], Cell]:
    return lambda ends: parameter_value_cell(ends[1].series[name])


def _time_share_getter(by_id: Mapping[str, CaseSummary], name: str) -> Callable[[Any], Cell]:
    def share(ends: tuple[ScalingPoint, ScalingPoint]) -> float | None:
        spent = time_without_profiler(by_id[ends[1].case_id])
        return getattr(spent, name) if spent else None

    return share


def _iteration_times_getter(by_id: Mapping[str, CaseSummary]) -> Callable[[Any], Cell]:
    return lambda ends: milliseconds_change_text(_iteration_ns(by_id, ends[0]), _iteration_ns(by_id, ends[1]))


def _iteration_ns(by_id: Mapping[str, CaseSummary], point: ScalingPoint) -> float | None:
    spent = time_without_profiler(by_id[point.case_id])
    return spent.span_ns if spent else None


def _efficiency_change_text(ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    return f"{ends[1].efficiency_pct:.0f} %"


def _series_name_text(point: ScalingPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.series.items()) or point.case_id


def _largest_loss_text(hits: Sequence[Hit]) -> str:
    """What takes most of the least efficient case, in a few words."""
    hit = next((hit for hit in hits if hit.gain_pct >= WASTE_PCT / 2), None)
    return f": {hit.what.partition(',')[0]}" if hit else ""


def _number_text(value: float) -> str:
    return f"{value:g}"
