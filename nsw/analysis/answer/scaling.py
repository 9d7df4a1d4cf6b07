"""The scaling curve of a campaign: figure, speed-up and efficiency along one parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.answer import parameters
from nsw.analysis.blocks import Column, Curve, Evidence, HeatMap, columns_of

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block, Cell
    from nsw.analysis.comparison import Scaling, ScalingPoint
    from nsw.analysis.summary import Summary


def blocks(summary: Summary) -> list[Block]:
    """A curve, if a figure was measured: a table of dashes says less than why there is none; as data a heat map too."""
    curve = summary.curve
    if curve is None or all(p.figure is None for p in curve.points):
        return []
    return [_curve(curve), *_heat_map(curve)]


def _curve(curve: Scaling) -> Block:
    others = list(curve.points[0].series)
    repeated = any(p.runs > 1 for p in curve.points)
    talks = any(p.communication_pct is not None for p in curve.points)
    how = ("while being profiled" if curve.profiled else "without a profiler") + (
        ", median of the runs" if repeated else ""
    )
    columns = columns_of(
        *parameters.columns(others),
        parameters.column(curve.axis, "plain"),
        Column("figure", curve.unit or curve.figure, "number"),
        Column("range", "range", "range") if repeated else None,
        Column("speedup", "speed-up", "times"),
        Column("efficiency_pct", "efficiency", "%"),
        Column("communication_pct", "NCCL share of GPU time", "%") if talks else None,
        Column("runs", "runs", "count"),
    )

    def row(p: ScalingPoint) -> tuple[Cell, ...]:
        return (
            *(parameters.cell(p.series[name]) for name in others), p.at, p.figure,
            *(((p.least, p.most),) if repeated else ()), p.speedup, p.efficiency_pct,
            *((p.communication_pct,) if talks else ()), p.missing or p.runs,
        )  # fmt: skip

    return Curve(
        "scaling",
        f"{curve.kind} scaling of {curve.figure} along {curve.axis} ({how})",
        columns,
        tuple(row(p) for p in curve.points),
        least=("runs", *(("communication_pct",) if talks else ()), *(("range",) if repeated else ())),
        repeats=len(others),
        x=f"param.{curve.axis}",
        y="figure",
        series=tuple(c.name for c in columns[: len(others)]),
        evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
    )


def _heat_map(curve: Scaling) -> list[Block]:
    """Efficiency over two parameters, where there are two."""
    others = {name for p in curve.points for name in p.series}
    if len(others) != 1 or all(p.efficiency_pct is None for p in curve.points):
        return []
    (other,) = others
    return [
        HeatMap(
            "efficiency",
            f"efficiency of {curve.kind} scaling by {curve.axis} and {other}",
            (
                parameters.column(other),
                parameters.column(curve.axis, "plain"),
                Column("efficiency_pct", "efficiency", "%"),
            ),
            tuple((parameters.cell(p.series[other]), p.at, p.efficiency_pct) for p in curve.points),
            shown="data",
            x=f"param.{curve.axis}",
            y=f"param.{other}",
            value="efficiency_pct",
            evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
        )
    ]
