"""Cases beside each other: the scaling curve, variants beside a baseline, figures by case, effective rates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from nsw.analysis.blocks import Bars, Block, Cell, Column, Curve, Evidence, HeatMap, Note, Table, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.analysis.comparison import Scaling, ScalingPoint, Variant
    from nsw.analysis.summary import Summary

    _Part = tuple[Column, Callable[[Any], Cell]]


def _parameter(parameter: str, unit: Unit = "text") -> Column:
    """The column of a parameter, named so that none is taken for a column of nsw."""
    return Column(f"param.{parameter}", parameter, unit)


def _as_cell(value: Any) -> Cell:
    """A parameter's value; what is no number and no text is shown as Python writes it."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _series(names: Iterable[str]) -> list[_Part]:
    """The columns of the parameters that tell series apart."""
    return [(_parameter(name), partial(_of_series, name)) for name in names]


def _of_series(name: str, of: ScalingPoint | Variant) -> Cell:
    return _as_cell(of.series[name])


def _range(of: ScalingPoint | Variant) -> Cell:
    return of.least, of.most


def _filled(
    parts: Sequence[_Part | None], members: Sequence[Any]
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...]]:
    """The columns that there are (those left out are None), and the rows."""
    kept = [part for part in parts if part is not None]
    rows = tuple(tuple(cell(member) for _, cell in kept) for member in members)
    return tuple(column for column, _ in kept), rows


def _named(columns: Sequence[Column], *names: str) -> tuple[str, ...]:
    """Those of the names that there are columns of."""
    there = {column.name for column in columns}
    return tuple(name for name in names if name in there)


def scaling_blocks(summary: Summary) -> list[Block]:
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
    parts: list[_Part | None] = [
        *_series(others),
        (_parameter(curve.axis, "plain"), lambda p: p.at),
        (Column("figure", curve.unit or curve.figure, "number"), lambda p: p.figure),
        (Column("range", "range", "range"), _range) if repeated else None,
        (Column("speedup", "speed-up", "times"), lambda p: p.speedup),
        (Column("efficiency_pct", "efficiency", "%"), lambda p: p.efficiency_pct),
        (Column("communication_pct", "NCCL share of GPU time", "%"), lambda p: p.communication_pct) if talks else None,
        (Column("runs", "runs", "count"), lambda p: p.missing or p.runs),
    ]
    columns, rows = _filled(parts, curve.points)
    return Curve(
        "scaling",
        f"{curve.kind} scaling of {curve.figure} along {curve.axis} ({how})",
        columns,
        rows,
        least=_named(columns, "runs", "communication_pct", "range"),
        repeats=len(others),
        x=f"param.{curve.axis}",
        y="figure",
        series=tuple(c.name for c in columns[: len(others)]),
        ideals=tuple(_ideal(p, curve) for p in curve.points),
        evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
    )


def _ideal(point: ScalingPoint, curve: Scaling) -> float | None:
    """The figure at an efficiency of 100 %."""
    if point.figure is None or not point.efficiency_pct:
        return None
    share = point.efficiency_pct / 100
    return point.figure / share if curve.higher_is_better else point.figure * share


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
                _parameter(other),
                _parameter(curve.axis, "plain"),
                Column("efficiency_pct", "efficiency", "%"),
            ),
            tuple((_as_cell(p.series[other]), p.at, p.efficiency_pct) for p in curve.points),
            shown="data",
            x=f"param.{curve.axis}",
            y=f"param.{other}",
            value="efficiency_pct",
            evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
        )
    ]


def variant_blocks(summary: Summary) -> list[Block]:
    """A bar a variant, if something was measured of one."""
    variants = summary.variants
    if not any(v.figure is not None or v.gpu_ns is not None for v in variants):
        return []
    repeated = any(v.runs > 1 for v in variants)
    with_gpu = any(v.gpu_ns is not None for v in variants)
    with_top = any(v.top for v in variants)
    parts: list[_Part | None] = [
        *_series(variants[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: _as_cell(v.variant)),
        (Column("figure", variants[0].unit or "figure", "number"), lambda v: v.figure),
        (Column("range", "range", "range"), _range) if repeated else None,
        (Column("ratio", f"times {summary.compared_to}", "times"), lambda v: v.ratio),
        (Column("gpu_ns", "GPU time", "ns"), lambda v: v.gpu_ns) if with_gpu else None,
        (Column("top", "most time in", "name"), lambda v: v.top or "") if with_top else None,
    ]
    columns, rows = _filled(parts, variants)
    title = f"{summary.figure} by {summary.compared}, compared with {summary.compared}={summary.compared_to}"
    return [
        Bars(
            "compare",
            title + (" (median of the runs)" if repeated else ""),
            columns,
            rows,
            wide="top" if with_top else None,
            least=_named(columns, "gpu_ns", "range"),
            label="variant",
            value="figure",
            evidence=(Evidence("compare", tuple(v.case_id for v in variants)),),
        )
    ]


_FIGURES = (
    Column("case", "case"), Column("figure", "figure"), Column("median", "median", "number"), Column("unit", "unit"),
    Column("range", "range", "range"), Column("runs", "runs", "count"), Column("pass", "pass"),
)  # fmt: skip


def figure_blocks(summary: Summary) -> list[Block]:
    """A row a figure of a case."""
    if summary.curve is not None or summary.variants:
        return []
    rows = tuple(
        (case.id, f.name, f.median, f.unit or "", (f.least, f.most) if f.runs > 1 else "", f.runs,
         f.pass_name + (" (profiled)" if f.profiled else ""))
        for case in summary.cases for f in case.figures
    )  # fmt: skip
    if not rows:
        return []
    return [Table("figures", "figures", _FIGURES, rows, least=("runs", "range"), evidence=(Evidence("figures"),))]


def rate_blocks(summary: Summary) -> list[Block]:
    """A row a case whose rates are known, and why those of the others are not."""
    known = [m for m in summary.model if m.flop_per_s is not None]
    found: list[Block] = []
    if known:
        links = [link.name for link in known[0].links]
        columns = (
            Column("case", "case", "name"),
            Column("intensity", "FLOP/byte", "number"),
            Column("flop_per_s", "computing", "FLOP/s"),
            *(Column(f"link.{name}", name, "byte/s") for name in links),
            Column("modelled_flop_per_s", "modelled", "FLOP/s"),
            Column("measured_flop_per_s", "measured", "FLOP/s"),
        )
        rows = tuple(
            (m.case_id, m.intensity, m.flop_per_s, *(link.bytes_per_s for link in m.links), m.modelled_flop_per_s,
             m.measured_flop_per_s)
            for m in known
        )  # fmt: skip
        title = f"effective rates; modelled by those of {known[0].case_id}" if len(known) > 1 else "effective rates"
        evidence = (Evidence("model", tuple(m.case_id for m in known)),)
        found.append(Table("model", title, columns, rows, wide="case", evidence=evidence))
    found += [Note("model", f"model of {m.case_id}: {m.missing}", tone="warning") for m in summary.model if m.missing]
    return found
