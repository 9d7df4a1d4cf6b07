"""Cases beside each other: the scaling curve, variants beside a baseline, figures by case, effective rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.answer.kernels import metric_column
from nsw.analysis.blocks import (
    Bars,
    Block,
    Column,
    ColumnPart,
    Curve,
    Evidence,
    HeatMap,
    Note,
    StackedBars,
    Table,
    Unit,
    columns_and_rows,
    names_with_column,
)
from nsw.analysis.comparison import (
    Scaling,
    ScalingPoint,
    figure_heading_with_unit,
    is_time_unit,
    least_disturbed_figure,
)
from nsw.analysis.groups import sum_by
from nsw.analysis.kernel_classes import COPIES, NCCL, SETS
from nsw.analysis.rules.pairs import SET_ASIDE, cases_with_void_ratio
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.screen_table import figure_median, figure_range, parameter_value_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.spent import Spent
    from nsw.analysis.summary import Summary


def _parameter_column(parameter: str, unit: Unit = "text") -> Column:
    """The column of a parameter, named so that none is taken for a column of nsw."""
    return Column(f"param.{parameter}", parameter, unit)


def _series_columns(names: Iterable[str]) -> list[ColumnPart]:
    """The columns of the parameters that tell series of points or variants apart."""
    return [
        (_parameter_column(name), lambda member, name=name: parameter_value_cell(member.series[name])) for name in names
    ]


def scaling_blocks(summary: Summary) -> list[Block]:
    """A curve, if a figure was measured: a table of dashes says less than why there is none; as data a heat map too."""
    curve = summary.curve
    if curve is None or all(p.figure is None for p in curve.points):
        return []
    return [_scaling_curve_block(curve, summary.by_id), *_efficiency_heat_map_blocks(curve)]


def nccl_shares_pct(case: CaseSummary) -> tuple[float | None, float | None]:
    """What NCCL's kernels take of an iteration, alone and beside other kernels; None where that is not known."""
    spent = time_without_profiler(case)
    return (None, None) if spent is None else (spent.exposed_pct, spent.hidden_pct)


def _scaling_curve_block(curve: Scaling, by_id: Mapping[str, CaseSummary]) -> Block:
    series_names = list(curve.points[0].series)
    repeated = any(p.runs > 1 for p in curve.points)
    shares = {point.case_id: nccl_shares_pct(by_id[point.case_id]) for point in curve.points}
    talks = any(alone is not None for alone, _ in shares.values())
    conditions = ("while being profiled" if curve.profiled else "without a profiler") + (
        ", median of the runs" if repeated else ""
    )
    parts: list[ColumnPart | None] = [
        *_series_columns(series_names),
        (_parameter_column(curve.axis, "plain"), lambda p: p.at),
        (Column("figure", figure_heading_with_unit(curve.figure, curve.unit), "number"), lambda p: p.figure),
        (Column("range", "range", "range"), lambda p: (p.least, p.most)) if repeated else None,
        (Column("speedup", "speed-up", "times"), lambda p: p.speedup),
        (Column("efficiency_pct", "efficiency", "%"), lambda p: p.efficiency_pct),
        (Column("nccl_alone_pct", "NCCL alone, of an iteration", "%"), lambda p: shares[p.case_id][0])
        if talks
        else None,
        (Column("nccl_hidden_pct", "NCCL hidden", "%"), lambda p: shares[p.case_id][1]) if talks else None,
        (Column("runs", "runs", "count"), lambda p: p.missing or p.runs),
    ]
    columns, rows = columns_and_rows(parts, curve.points)
    return Curve(
        "scaling",
        f"{curve.kind} scaling of {curve.figure} along {curve.axis} ({conditions})",
        columns,
        rows,
        least=names_with_column(columns, "runs", "nccl_hidden_pct", "nccl_alone_pct", "range"),
        repeats=len(series_names),
        x=f"param.{curve.axis}",
        y="figure",
        series=tuple(c.name for c in columns[: len(series_names)]),
        ideals=tuple(_ideal_figure(p, curve) for p in curve.points),
        evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
    )


def _ideal_figure(point: ScalingPoint, curve: Scaling) -> float | None:
    """The figure at an efficiency of 100 %."""
    if point.figure is None or not point.efficiency_pct:
        return None
    share = point.efficiency_pct / 100
    return point.figure / share if curve.higher_is_better else point.figure * share


def _efficiency_heat_map_blocks(curve: Scaling) -> list[Block]:
    """Efficiency over two parameters, where there are two."""
    series_names = {name for p in curve.points for name in p.series}
    if len(series_names) != 1 or all(p.efficiency_pct is None for p in curve.points):
        return []
    (series_name,) = series_names
    return [
        HeatMap(
            "efficiency",
            f"efficiency of {curve.kind} scaling by {curve.axis} and {series_name}",
            (
                _parameter_column(series_name),
                _parameter_column(curve.axis, "plain"),
                Column("efficiency_pct", "efficiency", "%"),
            ),
            tuple((parameter_value_cell(p.series[series_name]), p.at, p.efficiency_pct) for p in curve.points),
            shown="data",
            x=f"param.{curve.axis}",
            y=f"param.{series_name}",
            value="efficiency_pct",
            evidence=(Evidence("scaling", tuple(p.case_id for p in curve.points)),),
        )
    ]


def variant_bar_blocks(summary: Summary) -> list[Block]:
    """A bar a variant, if something was measured of one."""
    variants = summary.variants
    if not any(v.figure is not None or v.gpu_ns is not None for v in variants):
        return []
    repeated = any(v.runs > 1 for v in variants)
    with_gpu = any(v.gpu_ns is not None for v in variants)
    with_top = any(v.top for v in variants)
    void = cases_with_void_ratio(variants, summary.by_id)
    unit = next((v.unit for v in variants if v.unit), None)
    parts: list[ColumnPart | None] = [
        *_series_columns(variants[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: parameter_value_cell(v.variant)),
        (Column("figure", figure_heading_with_unit(summary.figure or "figure", unit), "number"), lambda v: v.figure),
        (Column("range", "range", "range"), lambda v: (v.least, v.most)) if repeated else None,
        (
            Column("ratio", f"beside {summary.compared_to}", "longer x" if is_time_unit(unit) else "faster x"),
            lambda v: SET_ASIDE if v.case_id in void else v.ratio,
        ),
        (Column("gpu_ns", "GPU time", "ns"), lambda v: v.gpu_ns) if with_gpu else None,
        (Column("top", "most time in", "name"), lambda v: v.top or "") if with_top else None,
    ]
    columns, rows = columns_and_rows(parts, variants)
    title = f"{summary.figure} by {summary.compared}, compared with {summary.compared}={summary.compared_to}"
    return [
        Bars(
            "compare",
            title + (" (median of the runs)" if repeated else ""),
            columns,
            rows,
            wide="top" if with_top else None,
            least=names_with_column(columns, "gpu_ns", "range"),
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


# --- plots alone: data, which no table shows to people --------------------------------------------------------------

_CLASSES: Final = 4  # of computing, the largest; the others are one part
_FEWEST: Final = 3  # values of a parameter that make a curve


def time_by_class_blocks(summary: Summary) -> list[Block]:
    """A bar a case: an iteration by class of computing, copies alone, NCCL alone, idle; else all GPU work by class."""
    cases_with_time = [
        (case, spent) for case in summary.cases if (spent := time_without_profiler(case)) is not None and spent.gpu_ns
    ]
    divided = [(case, spent) for case, spent in cases_with_time if spent.computing_pct is not None]
    members = divided or cases_with_time
    if not members:
        return []
    parts = [
        (case, _span_by_class(spent) if divided else {part.name: part.ns for part in spent.parts})
        for case, spent in members
    ]
    sizes = sum_by((name, ns / sum(times.values())) for _, times in parts for name, ns in times.items())
    last = [name for name in (_COPIES_ALONE, _NCCL_ALONE, _IDLE) if sizes.get(name)]
    classes = sorted((name for name in sizes if name not in last and sizes[name]), key=lambda name: -sizes[name])
    shown_classes, rest = classes[:_CLASSES], classes[_CLASSES:]
    columns = [Column("case", "case", "name"), *(Column(f"class.{name}", name, "ns") for name in shown_classes)]
    columns += [Column("other_ns", "other computing", "ns")] if rest else []
    columns += [Column(_KEYS[name], name, "ns") for name in last]
    parts_of = [*([name] for name in shown_classes), *([rest] if rest else []), *([name] for name in last)]
    rows = tuple(
        (case.id, *(sum(class_times.get(name, 0.0) for name in class_names) for class_names in parts_of))
        for case, class_times in parts
    )
    title = "where the time of an iteration goes" if divided else "where GPU time goes"
    return [
        StackedBars(
            "time", title, tuple(columns), rows, label="case", values=tuple(c.name for c in columns[1:]), shown="data",
            evidence=(Evidence("hotspots", tuple(case.id for case, _ in parts)),),
        )
    ]  # fmt: skip


_COPIES_ALONE, _NCCL_ALONE, _IDLE = "copies alone", "NCCL alone", "idle"
_KEYS: Final = {_COPIES_ALONE: "copies_ns", _NCCL_ALONE: "nccl_ns", _IDLE: "idle_ns"}


def _span_by_class(spent: Spent) -> dict[str, float]:
    """The span in parts that add up to it; the classes of computing by their durations, since some overlap."""
    span = (spent.span_ns or 0.0) / 100
    computing = {part.name: part.ns for part in spent.parts if part.name not in {NCCL, COPIES, SETS}}
    computing_ns = sum(computing.values())
    class_times = {
        name: ns / computing_ns * span * (spent.computing_pct or 0.0) for name, ns in computing.items() if computing_ns
    }
    alone = {_COPIES_ALONE: spent.copies_pct, _NCCL_ALONE: spent.exposed_pct, _IDLE: spent.idle_pct}
    return class_times | {name: span * (share or 0.0) for name, share in alone.items()}


def figure_by_parameter_blocks(summary: Summary) -> list[Block]:
    """Each figure over the parameter of numbers with most values, or a bar a case; of two parameters a heat map too."""
    varied = _varied_parameters(summary.cases)
    figures = dict.fromkeys(figure.name for case in summary.cases for figure in case.figures)
    shown_figures = {summary.curve.figure if summary.curve else None}
    if summary.variants and not _has_numbers_for_curve(varied):
        shown_figures.add(summary.figure)
    blocks: list[Block] = []
    several: list[str] = []
    for name in figures:
        members = [case for case in summary.cases if least_disturbed_figure(case, name) is not None]
        if len(members) < 2:
            continue
        blocks += [] if name in shown_figures else [_figure_by_parameter_block(members, name, varied)]
        several.append(name)
    if len(varied) != 2:
        return blocks
    maps = [_figure_heat_map(summary.cases, several, varied)] if several else []
    return [*blocks, *maps, *_metric_heat_maps(summary.cases, varied)]


def _varied_parameters(cases: Sequence[CaseSummary]) -> dict[str, list[Any]]:
    """The parameters with several values, those with values that are numbers first, of most values."""
    values: dict[str, list[Any]] = {}
    for case in cases:
        for name, value in case.params.items():
            if value not in values.setdefault(name, []):
                values[name].append(value)
    several = {name: distinct_values for name, distinct_values in values.items() if len(distinct_values) > 1}
    return dict(sorted(several.items(), key=lambda item: (not _are_all_numbers(item[1]), -len(item[1]))))


def _are_all_numbers(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _has_numbers_for_curve(varied: Mapping[str, Sequence[Any]]) -> bool:
    """Whether the first parameter has numbers enough for a curve."""
    first = next(iter(varied.values()), ())
    return len(first) >= _FEWEST and _are_all_numbers(first)


def _parameter_parts(cases: Sequence[CaseSummary], parameters: Iterable[str]) -> list[ColumnPart]:
    """The columns of the cases' parameters."""
    return [
        (
            _parameter_column(key, "plain" if _are_all_numbers([c.params.get(key) for c in cases]) else "text"),
            lambda case, key=key: parameter_value_cell(case.params.get(key)),
        )
        for key in parameters
    ]


def _figure_column(cases: Sequence[CaseSummary], name: str, key: str) -> Column:
    figures = (least_disturbed_figure(case, name) for case in cases)
    unit = next((figure.unit for figure in figures if figure and figure.unit), None)
    return Column(key, figure_heading_with_unit(name, unit), "number")


def _figure_by_parameter_block(cases: Sequence[CaseSummary], name: str, varied: Mapping[str, Sequence[Any]]) -> Block:
    keys = list(varied)
    is_curve = _has_numbers_for_curve(varied)
    figures = [(case, figure) for case in cases if (figure := least_disturbed_figure(case, name)) is not None]
    axes, values = columns_and_rows(_parameter_parts(cases, [*keys[1:], keys[0]] if is_curve else keys), cases)
    block_fields: dict[str, Any] = {
        "columns": (*axes, _figure_column(cases, name, "figure"), Column("range", "range", "range")),
        "rows": tuple(
            (*params, f.median, (f.least, f.most)) for params, (_, f) in zip(values, figures, strict=True)
        ),
        "shown": "data", "evidence": (Evidence("figures", tuple(case.id for case in cases)),),
    }  # fmt: skip
    if is_curve:
        series = tuple(f"param.{key}" for key in keys[1:])
        return Curve("sweep", f"{name} by {keys[0]}", x=f"param.{keys[0]}", y="figure", series=series, **block_fields)
    return Bars("sweep", f"{name} by {', '.join(keys)}", label=f"param.{keys[-1]}", value="figure", **block_fields)


_FIRST_METRICS: Final = ("sm_throughput", "memory_throughput", "achieved_occupancy")


def _figure_heat_map(cases: Sequence[CaseSummary], names: Sequence[str], varied: Mapping[str, Sequence[Any]]) -> Block:
    """The figures over two parameters, each with its range where runs were repeated."""
    parts: list[ColumnPart] = []
    for name in names:
        parts.append((_figure_column(cases, name, f"figure.{name}"), lambda case, name=name: figure_median(case, name)))
        if any(figure_range(case, name) for case in cases):
            parts.append((Column(f"range.{name}", "range", "range"), lambda case, name=name: figure_range(case, name)))
    subject = names[0] if len(names) == 1 else "figures"
    return _heat_map_block("map", subject, cases, parts=parts, varied=varied, evidence="figures")


def _metric_heat_maps(cases: Sequence[CaseSummary], varied: Mapping[str, Sequence[Any]]) -> list[Block]:
    """The metrics of each case's hottest kernel over two parameters: those that differ between cases."""
    measured = [case for case in cases if case.kernels]
    every = (*_FIRST_METRICS, *(name for case in measured for name in case.kernels[0].metrics))
    names = [name for name in dict.fromkeys(every)
             if len({case.kernels[0].metrics.get(name) for case in measured} - {None}) > 1]  # fmt: skip
    if not names:
        return []
    parts: list[ColumnPart] = [(Column("kernel", "kernel", "name"), lambda case: case.kernels[0].short_name)]
    parts += [(metric_column(name), lambda case, name=name: case.kernels[0].metrics.get(name)) for name in names]
    return [
        _heat_map_block(
            "metric_map", "metrics of the hottest kernel", measured, parts=parts, varied=varied, evidence="kernels"
        )
    ]


def _heat_map_block(
    name: str, subject: str, cases: Sequence[CaseSummary], *, parts: Sequence[ColumnPart],
    varied: Mapping[str, Sequence[Any]], evidence: str,
) -> Block:  # fmt: skip
    x, y = varied
    columns, rows = columns_and_rows([*_parameter_parts(cases, (y, x)), *parts], cases)
    value, *other_columns = (column.name for column, _ in parts if column.unit not in {"name", "range"})
    return HeatMap(
        name, f"{subject} by {x} and {y}", columns, rows, x=f"param.{x}", y=f"param.{y}", value=value,
        others=tuple(other_columns), shown="data", evidence=(Evidence(evidence, tuple(case.id for case in cases)),),
    )  # fmt: skip


def effective_rate_blocks(summary: Summary) -> list[Block]:
    """A row a case whose rates are known, and why those of the others are not."""
    known_rates = [m for m in summary.model if m.flop_per_s is not None]
    blocks: list[Block] = []
    if known_rates:
        links = [link.name for link in known_rates[0].links]
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
            for m in known_rates
        )  # fmt: skip
        title = (
            f"effective rates; modelled by those of {known_rates[0].case_id}"
            if len(known_rates) > 1
            else "effective rates"
        )
        evidence = (Evidence("model", tuple(m.case_id for m in known_rates)),)
        blocks.append(Table("model", title, columns, rows, wide="case", evidence=evidence))
    blocks += [Note("model", f"model of {m.case_id}: {m.missing}", tone="warning") for m in summary.model if m.missing]
    return blocks
