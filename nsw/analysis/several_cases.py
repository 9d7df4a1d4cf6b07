"""The first screens of several cases: how a figure scales, variants beside a baseline, cases beside each other."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Cell, Column, ColumnPart, Evidence, Table, Unit
from nsw.analysis.case_gain import case_gain, leading_gain_pct, leading_hit
from nsw.analysis.cases import rows_by_run
from nsw.analysis.comparison import (
    Scaling,
    ScalingPoint,
    Variant,
    figure_heading,
    is_time_unit,
    least_disturbed_figure,
)
from nsw.analysis.groups import group_by
from nsw.analysis.kernel_classes import COPIES
from nsw.analysis.rules.pairs import SET_ASIDE, cases_with_void_ratio, contradicted_figures
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, time_without_profiler
from nsw.analysis.screen_table import (
    CASES_NAMED,
    WASTE_PCT,
    Screen,
    figure_median,
    figure_range,
    figure_to_show,
    first_problem_text,
    has_uneven_gpus,
    is_smaller_figure_better,
    kernel_columns,
    mean_gpu_busy_pct,
    mfu_column,
    milliseconds_change_text,
    parameter_value_cell,
    parameter_value_text,
    screen_table,
)
from nsw.analysis.single_case import TABLE, main_time_section
from nsw.analysis.spent import NOT_SHOWN
from nsw.quantities import NO_CHANGE, change_of_speed, duration, format_magnitude, is_factor, merged_range, number
from nsw.recipe.matrix import AFTER, BEFORE, SIDE
from nsw.wording import first_names, plural, singular_or_count

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

    Ends = tuple[ScalingPoint, ScalingPoint]

__all__ = [
    "best_two_cases",
    "efficiency_range",
    "scaling_screen",
    "side_by_side_screen",
    "unshown_axis_values",
    "variants_screen",
]

# --- how a figure scales ---------------------------------------------------------------------------------------------

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
        headline += f", {_series_text(best[1])}; {worst[1].efficiency_pct:.0f} % at {_series_text(worst[1])}"
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


# --- variants --------------------------------------------------------------------------------------------------------


def variants_screen(summary: Summary) -> Screen:
    """The variants beside each other; of two sides without a verdict, which their pairs give and medians do not."""
    screen = _variants_or_pairs_screen(summary)
    if summary.compared != SIDE:
        return screen
    return replace(screen, headline=f"the verdict on {BEFORE} and {AFTER}: `nsw compare {summary.campaign}`")


def _variants_or_pairs_screen(summary: Summary) -> Screen:
    """Two variants: a row a series, from one to the other; more: a row a variant."""
    series = group_by(summary.variants, lambda variant: repr(variant.series))
    if len({repr(v.variant) for v in summary.variants}) == 2 and all(len(members) == 2 for members in series.values()):
        return _variant_pairs_screen(summary, [(members[0], members[1]) for members in series.values()])
    return _row_per_variant_screen(summary)


def _variant_pairs_screen(summary: Summary, pairs: Sequence[tuple[Variant, Variant]]) -> Screen:
    """Two variants beside each other, a row a case of the other parameters."""
    pairs = [
        (b, a) if a.variant != summary.compared_to and b.variant == summary.compared_to else (a, b) for a, b in pairs
    ]
    unit = next((v.unit for pair in pairs for v in pair if v.unit), None) or summary.figure or "figure"
    void = contradicted_figures(summary.variants, summary.by_id)
    gpu_ns = _gpu_ns_per_iteration(summary.by_id)
    gpu_pairs = {b.case_id: (gpu_ns.get(a.case_id), gpu_ns.get(b.case_id)) for a, b in pairs}
    gpu_ratios = {case: before / after for case, (before, after) in gpu_pairs.items() if before and after}
    valid_ratios = [p[1].ratio for p in pairs if p[1].ratio and not _has_contradicted_figure(p, void)]
    change_text = _change_texts([*valid_ratios, *gpu_ratios.values()], is_time=is_time_unit(unit))
    table = _variant_pairs_table(
        summary, pairs, unit=unit, void=void, gpu_ns=gpu_ns, gpu_ratios=gpu_ratios, change_text=change_text
    )
    return Screen(_variant_pairs_text(summary, pairs, unit=unit, void=void, change_text=change_text), table)


def _variant_pairs_table(
    summary: Summary,
    pairs: Sequence[tuple[Variant, Variant]],
    *,
    unit: str,
    void: Collection[str],
    gpu_ns: Mapping[str, float],
    gpu_ratios: Mapping[str, float],
    change_text: Callable[[float], str],
) -> Table:
    """The figures, ratios and GPU times of pairs.

    Args:
        summary: What was summarised.
        pairs: The variant compared to, and the other.
        unit: Of the figure.
        void: The cases whose figure kernels' times contradict.
        gpu_ns: GPU time of an iteration of each case, ns.
        gpu_ratios: How many times shorter it is than that of the variant compared to, by case.
        change_text: A ratio in words.
    """
    by_id, operations = summary.by_id, _operations_per_iteration(summary.by_id)
    first, second = pairs[0]
    base_text = _variant_label(summary, first.variant)
    is_timed = any(v.case_id in gpu_ns for pair in pairs for v in pair)
    ratio_unit: Unit = "longer x" if is_time_unit(unit) else "faster x"
    title = figure_heading(summary.figure, unit, is_median=any(v.runs > 1 for pair in pairs for v in pair))
    parts: list[ColumnPart | None] = [
        *((Column(f"param.{name}", name), lambda p, name=name: parameter_value_cell(p[0].series[name]))
         for name in first.series),
        (Column("figure", f"{title}, {parameter_value_text(first.variant)} -> {parameter_value_text(second.variant)}"),
         lambda p: f"{number(p[0].figure)} -> {number(p[1].figure)}"),
        (Column("ratio", f"beside {base_text}", ratio_unit),
         lambda p: SET_ASIDE if _has_contradicted_figure(p, void) else p[1].ratio),
        (Column("effect", "effect"),
         lambda p: SET_ASIDE if _has_contradicted_figure(p, void) else _variant_effect_text(p))
        if summary.compared != SIDE and any(_do_ranges_overlap(*p) or _has_contradicted_figure(p, void)
         for p in pairs) and len(pairs) > 1
        else None,
        (Column("ratio_range", "its range"),
         lambda p: "" if _has_contradicted_figure(p, void) else _ratio_range_text(p[0], p[1], change_text))
        if any(v.runs > 1 for p in pairs for v in p) else None,
        (Column("gpu_ns", "GPU ms/iteration"),
         lambda p: milliseconds_change_text(*(gpu_ns.get(v.case_id) for v in p))) if is_timed else None,
        (Column("gpu_ratio", "by GPU time", "longer x"),
         lambda p: gpu_ratios.get(p[1].case_id)),
        (Column("operations", "operations"),
         lambda p: " -> ".join(f"{count:,.0f}" for count in counts)
         if all(counts := [operations.get(v.case_id, 0.0) for v in p]) else "-") if is_timed else None,
        mfu_column(summary, lambda p: p[1].case_id),
        (Column("idle_pct", f"GPU idle, {parameter_value_text(second.variant)}", "whole %"),
         lambda p: None if (busy := mean_gpu_busy_pct(by_id[p[1].case_id])) is None else 100 - busy),
    ]  # fmt: skip
    return screen_table(parts, pairs, "compare", [v.case_id for pair in pairs for v in pair],
                        droppable=("gpu_ratio", "operations", "gpu_ns"))  # fmt: skip


def _variant_pairs_text(
    summary: Summary,
    pairs: Sequence[tuple[Variant, Variant]],
    *,
    unit: str,
    void: Collection[str],
    change_text: Callable[[float], str],
) -> str:
    """Whether the second variant of pairs helps, and by how much; the arguments are those of their table."""
    base_text, second = _variant_label(summary, pairs[0][0].variant), pairs[0][1]
    variant_text = f"{summary.compared}={parameter_value_text(second.variant)}"
    with_ratio = [(pair, pair[1].ratio) for pair in pairs if pair[1].ratio and not _has_contradicted_figure(pair, void)]
    alike = [p for p, _ in with_ratio if _do_ranges_overlap(*p)]
    better, worse = ([p for p, r in with_ratio if sign * (r - 1) > 0 and p not in alike] for sign in (1, -1))
    if not with_ratio and void:
        return f"{variant_text}: no ratio to {base_text} is valid"
    if not with_ratio:
        return f"{variant_text}: nothing to compare with {base_text} was measured"
    if len(with_ratio) == 1 and not alike:
        (((base, _), ratio),) = with_ratio
        at = f" at {_series_text(base)}" if len(pairs) > 1 else ""
        change = change_text(ratio)
        text = f"is {change} than {base_text}"
        if change == NO_CHANGE:
            text = f"is as fast as {base_text}"
        elif is_time_unit(unit) and "%" in change:
            text = f"takes {change} than {base_text}"
        return f"{variant_text} {text}{at} ({summary.figure})"
    effects = [f"{verb} {len(group)}" for verb, group in (("helps", better), ("slows", worse)) if group]
    ends = (change_text(end([r for _, r in with_ratio])) for end in (min, max))
    ranged = f"{merged_range(*ends)} by {summary.figure}"
    if not effects:
        return f"{variant_text} changes nothing beyond the scatter of the runs ({ranged})"
    within = f", {len(alike)} within the scatter of its runs" if alike else ""
    return f"{variant_text} {', '.join(effects)} of {len(with_ratio)}{within} ({ranged})"


def _has_contradicted_figure(pair: tuple[Variant, Variant], void: Container[str]) -> bool:
    """Whether kernels' times contradict a figure of the pair."""
    return any(variant.case_id in void for variant in pair)


def _series_text(member: Variant | ScalingPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in member.series.items())


def _variant_effect_text(pair: tuple[Variant, Variant]) -> str:
    """What the second variant does in this row."""
    ratio = pair[1].ratio
    if not ratio:
        return ""
    return "scatter" if _do_ranges_overlap(*pair) else "helps" if ratio > 1 else "slows" if ratio < 1 else ""


def _change_texts(ratios: Iterable[float], *, is_time: bool) -> Callable[[float], str]:
    """What writes a change: all on a screen as factors where one of these is, as its table does."""
    return partial(change_of_speed, is_time=is_time, as_factor=any(map(is_factor, ratios)))


def _ratio_range_text(first: Variant, second: Variant, change_text: Callable[[float], str]) -> str:
    """Between the worst run of the second beside the best of the first, and the other way round."""
    if not second.ratio or not all((first.least, first.most, second.least, second.most, first.figure)):
        return ""
    ends = (second.least / first.most, second.most / first.least)  # type: ignore[operator]  # all known
    is_inverse = (second.ratio > 1) != (second.figure > first.figure)  # type: ignore[operator]  # less is better
    low, high = sorted(1 / end for end in ends) if is_inverse else ends
    return merged_range(*map(change_text, (low, high)))


def _do_ranges_overlap(first: Variant, second: Variant) -> bool:
    """Whether repeats of two variants show that they may be the same."""
    if None in {first.least, first.most, second.least, second.most} or min(first.runs, second.runs) < 2:
        return False
    return (first.least or 0.0) <= (second.most or 0.0) and (second.least or 0.0) <= (first.most or 0.0)


def _row_per_variant_screen(summary: Summary) -> Screen:
    """A row a variant, those of a case of the other parameters together; the headline is of the first of these."""
    variants, void = summary.variants, contradicted_figures(summary.variants, summary.by_id)
    unit = next((v.unit for v in variants if v.unit), None) or summary.figure or "figure"
    no_ratio = cases_with_void_ratio(variants, summary.by_id)
    valid_ratios = (v.ratio for v in variants if v.ratio and v.case_id not in no_ratio)
    change_text = _change_texts(valid_ratios, is_time=is_time_unit(unit))
    series: list[Sequence[Variant]] = [*group_by(variants, lambda variant: repr(variant.series)).values()]
    measured = [[v for v in members if v.ratio and v.case_id not in void] for members in series]
    fastest = {repr(max(members, key=lambda v: v.ratio or 0.0).variant) for members in measured if len(members) > 1}
    if len(series) > 1 and len(fastest) == 1 and all(len(members) > 1 for members in measured):
        best = max(measured[0], key=lambda v: v.ratio or 0.0)
        slower_text = _at_each_text(summary, measured, change_text)
        headline = f"{_variant_label(summary, best.variant)} is the fastest{slower_text}"
    else:
        series = _most_telling_series_first(summary, series, unit, void)
        headline = _variants_text(summary, series[0], unit=unit, void=void, change_text=change_text)
    rows = [variant for members in series for variant in members]
    return Screen(headline, _row_per_variant_table(summary, rows, unit, no_ratio))


def _row_per_variant_table(summary: Summary, rows: Sequence[Variant], unit: str, no_ratio: Container[str]) -> Table:
    """The figure, ratio and kernels of variants.

    Args:
        summary: What was summarised.
        rows: The variants, in order.
        unit: Of the figure.
        no_ratio: The cases whose ratio says nothing.
    """
    by_id, gpu_ns = summary.by_id, _gpu_ns_per_iteration(summary.by_id)
    repeated = any(v.runs > 1 for v in rows)
    parts: list[ColumnPart | None] = [
        *((Column(f"param.{name}", name), lambda v, name=name: parameter_value_cell(v.series[name]))
         for name in rows[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: parameter_value_cell(v.variant)),
        (Column("figure", figure_heading(summary.figure, unit, is_median=repeated), "number"), lambda v: v.figure),
        (Column("figure_range", "its range", "range"), lambda v: (v.least, v.most)) if repeated else None,
        (Column("ratio", f"beside {_variant_label(summary, summary.compared_to)}",
                "longer x" if is_time_unit(unit) else "faster x"),
         lambda v: SET_ASIDE if v.case_id in no_ratio else v.ratio),
        (Column("gpu_ns", "GPU time an iteration", "ns"), lambda v: gpu_ns.get(v.case_id)),
        mfu_column(summary, lambda v: v.case_id),
        *kernel_columns(lambda v: by_id[v.case_id]),
        (Column("what", "what is wrong"), lambda v: first_problem_text(summary.hits.get(v.case_id, ()))),
    ]  # fmt: skip
    return screen_table(parts, rows, "compare", [v.case_id for v in summary.variants], repeats=len(rows[0].series),
                        droppable=("figure_range", "kernel_ns"), wide="what")  # fmt: skip


def _most_telling_series_first(
    summary: Summary, series: Sequence[Sequence[Variant]], unit: str, void: Container[str]
) -> list[Sequence[Variant]]:
    """First those with valid figures: of a rate that with the best, of a time that which takes most GPU time."""
    taken_ns = {  # however it was measured
        case.id: case.gpu_ns or sum(kernel.time_ns or 0.0 for kernel in case.kernels) for case in summary.cases
    }
    less = is_smaller_figure_better(summary, summary.figure, unit)
    return sorted(
        series,
        key=lambda members: (
            any(v.case_id in void for v in members),
            -sum(taken_ns[v.case_id] for v in members) if less else 0.0,
            -max(v.figure or 0.0 for v in members),
        ),
    )


def _variants_text(
    summary: Summary,
    variants: Sequence[Variant],
    *,
    unit: str,
    void: Collection[str],
    change_text: Callable[[float], str],
) -> str:
    """Which of the variants of a series is the fastest, and how much slower the others are.

    Args:
        summary: What was summarised.
        variants: Those of the series.
        unit: Of the figure.
        void: The cases whose figure kernels' times contradict.
        change_text: A ratio in words.
    """
    alike = [v for v in variants if v.ratio and v.case_id not in void]
    if not alike:
        return (
            f"{summary.compared}: nothing to compare with {_variant_label(summary, summary.compared_to)} was measured"
        )
    if len(alike) == 1:
        value = f"{number(alike[0].figure)} {unit}"
        state = "has a valid figure" if void else "was measured"
        return f"only {_variant_label(summary, alike[0].variant)} {state}: {value}, nothing to compare it with"
    at = f" at {_series_text(variants[0])}" if variants[0].series else ""
    if contradicted := [v for v in variants if v.case_id in void]:
        names = first_names([_variant_label(summary, v.variant) for v in contradicted], CASES_NAMED)
        text = f"no figure tells the fastest{at}, as that of {names} is {SET_ASIDE}"
        return f"{text}{_fastest_kernel_text(summary, variants)}"
    best = max(alike, key=lambda v: v.ratio or 0.0)
    slower_variants = {_variant_label(summary, v.variant): v for v in alike if v is not best}
    changes = {name: change_text((v.ratio or 0.0) / (best.ratio or 1.0)) for name, v in slower_variants.items()}
    scattered = [name for name, v in slower_variants.items() if _do_ranges_overlap(best, v)]
    near = [name for name in changes if name in scattered or changes[name] == NO_CHANGE]
    slower = [f"{name} {change}" for name, change in changes.items() if name not in near]
    none_text = "no difference" + (" beyond the scatter of the runs" if scattered else "")
    if not slower:
        return f"{summary.compared} makes {none_text}{at}"
    alike_text = f"; {none_text}: {first_names(near, CASES_NAMED)}" if near else ""
    best_name, slower_text = _variant_label(summary, best.variant), first_names(slower, CASES_NAMED)
    return f"{best_name} is the fastest{at}: {slower_text}{alike_text}"


def _fastest_kernel_text(summary: Summary, variants: Sequence[Variant]) -> str:
    """Whose kernel takes least, where each variant has one; else empty: launches of several are no measure."""
    kernels = [summary.by_id[v.case_id].kernels for v in variants]
    times = [each[0].launch_ns for each in kernels if len(each) == 1 and each[0].launch_ns]
    if len(times) < len(variants):
        return ""
    ordered = sorted(zip(times, (_variant_label(summary, v.variant) for v in variants), strict=True))
    texts = [f"{name} {duration(ns)}" for ns, name in ordered]
    return f"; a launch of its kernel takes {first_names(texts, CASES_NAMED)}"


def _at_each_text(summary: Summary, series: Sequence[Sequence[Variant]], change_text: Callable[[float], str]) -> str:
    """Where one variant is the fastest of each series: where repeats overlap, and how much slower the others are."""
    ratios: dict[str, list[float]] = {}
    alike = []
    for members in series:
        best = max(members, key=lambda v: v.ratio or 0.0)
        slower = [variant for variant in members if variant is not best]
        for variant in slower:
            ratio = (variant.ratio or 0.0) / (best.ratio or 1.0)
            ratios.setdefault(_variant_label(summary, variant.variant), []).append(ratio)
        if any(_do_ranges_overlap(best, variant) for variant in slower):
            alike.append(_series_text(best))
    names = " and ".join(series[0][0].series)
    within = f" (within the scatter of the runs at {first_names(alike, CASES_NAMED)})" if alike else ""
    ranges = []
    for word, values in ratios.items():
        least, most = (change_text(end(values)) for end in (max, min))
        if most != NO_CHANGE:
            ranges.append(f"{word} {f'up to {most}' if least == NO_CHANGE else merged_range(least, most)}")
    slower_text = f": {first_names(ranges, CASES_NAMED)}" if ranges else ""
    return f" at each {names}{within}{slower_text}"


def _variant_label(summary: Summary, value: Any) -> str:
    """A variant in a sentence: `naive`, but `mode=1`, since a number alone says nothing."""
    return value if isinstance(value, str) else f"{summary.compared}={parameter_value_text(value)}"


def _gpu_ns_per_iteration(by_id: Mapping[str, CaseSummary]) -> dict[str, float]:
    """GPU work of an iteration by case; cases without any have none: spans that differ are not compared."""
    return {id_: case.spent.gpu_ns for id_, case in by_id.items() if case.spent and case.spent.is_iteration}


def _operations_per_iteration(by_id: Mapping[str, CaseSummary]) -> dict[str, float]:
    return {id_: case.spent.operations for id_, case in by_id.items() if case.spent and case.spent.is_iteration}


# --- cases beside each other -----------------------------------------------------------------------------------------

_ROWS: Final = 15  # of a campaign's table; of more cases those that weigh most
_NEAR: Final = 0.95  # of the best
_IN_ORDER: Final = 10  # cases that stay in the order of the matrix: more are sorted
_COLUMNS: Final = 8  # of a grid
_MORE_FIGURES: Final = 2  # beside the first, that have a column


def side_by_side_screen(summary: Summary) -> Screen:
    """A row a case: its figure, how busy its GPU is, what is wrong and what to do."""
    cases, figure, is_faulty = summary.cases, figure_to_show(summary), any(summary.hits.values())
    names = [name for name in cases[0].params if len({repr(c.params.get(name)) for c in cases}) > 1] if cases else []
    count = plural(len(cases), "case" if summary.site else "result")
    if figure and not is_faulty and (grid := _figure_grid_table(summary, names, figure)) is not None:
        best = _best_figure_text(summary, names, figure)
        return Screen(f"{_campaign_name(summary)}: {plural(len(cases), 'case')}{best}", grid)
    count += " with GPU work" if not summary.site and all(case.gpu_ns for case in cases) else ""
    largest_parts = {} if figure and summary.site else _largest_part_by_case(summary)
    if not is_faulty and not figure and not any(largest_parts.values()):
        return Screen(f"{_campaign_name(summary)}: nothing was measured of {count}", None)
    order = _cases_in_order_of_weight(summary, figure)
    if is_faulty:
        headline = _waste_text(order, summary.hits, count)
    else:
        headline = count + _largest_parts_text(summary, largest_parts, figure)
    if figure:
        headline += _best_figure_text(summary, names, figure)
    table = _side_by_side_table(summary, order, names, figure, largest_parts) if cases else None
    return Screen(f"{_campaign_name(summary)}: {headline}", table)


def _cases_in_order_of_weight(summary: Summary, figure: tuple[str, str] | None) -> list[CaseSummary]:
    """The cases that waste most first; where nothing is wrong those with the best figure."""
    if figure is None or any(summary.hits.values()):
        return _cases_by_gain(summary)
    sign = 1 if is_smaller_figure_better(summary, *figure) else -1
    values = {case.id: figure_median(case, figure[0]) for case in summary.cases}
    return sorted(summary.cases, key=lambda case: (values[case.id] is None, sign * (values[case.id] or 0.0)))


def _cases_by_gain(summary: Summary) -> list[CaseSummary]:
    """The cases, that which could win most first: in time of their runs where reports gain of unlike bases."""
    gains = {case.id: case_gain(case, summary.hits.get(case.id, ())) for case in summary.cases}
    by_time = not summary.site and len({gain.base for gain in gains.values() if gain}) > 1

    def sort_key(case: CaseSummary) -> tuple[float, float]:
        gain = gains[case.id]
        saved_ns = gain.saved_ns or 0.0 if gain and by_time else 0.0
        return -saved_ns, -leading_gain_pct(summary.hits.get(case.id, ()))

    return sorted(summary.cases, key=sort_key)


def _side_by_side_table(
    summary: Summary, order: Sequence[CaseSummary], names: Sequence[str], figure: tuple[str, str] | None,
    largest_parts: Mapping[str, Cell],
) -> Table:  # fmt: skip
    """The table of cases beside each other: a few in the order of the matrix, of more those that weigh most."""
    cases, hits = summary.cases, summary.hits
    repeated = any(f.runs > 1 for case in cases for f in case.figures)
    units = {f.name: f.unit or f.name for case in cases for f in case.figures}
    more_figures = [item for item in units.items() if figure and item[0] != figure[0]][:_MORE_FIGURES]
    is_uneven = any(hit.cause == "slow-iteration" for case_hits in hits.values() for hit in case_hits)
    parts: list[ColumnPart | None] = [
        *((Column(f"param.{name}", name), lambda c, name=name: parameter_value_cell(c.params.get(name)))
          for name in names),
        (Column("case", "case" if summary.site else "report"), lambda c: c.id) if not names else None,
        (Column("processes", "processes", "count"), _process_count)
        if not names and len({*map(_process_count, cases)} - {None}) > 1 else None,
        (Column("iteration_ns", "an iteration", "ns"), _iteration_ns) if not figure else None,
        (Column("gpu_ns", "GPU time", "ns"), lambda c: c.gpu_ns)
        if not figure and not all(map(_iteration_ns, cases)) else None,
        (Column("top", "largest part", "name"), lambda c: largest_parts[c.id]) if not figure else None,
        (Column("figure", figure_heading(*figure, is_median=repeated), "number"), lambda c: figure_median(c, figure[0]))
        if figure else None,
        (Column("figure_range", "its range", "range"), lambda c: figure_range(c, figure[0])) if figure else None,
        *((Column(f"figure.{name}", figure_heading(name, unit, is_median=repeated), "number"),
           lambda c, name=name: figure_median(c, name)) for name, unit in more_figures),
        mfu_column(summary, lambda c: c.id),
        (Column("busy_pct", "GPU busy, median iteration" if is_uneven else "GPU busy", "whole %"), mean_gpu_busy_pct),
        (Column("least_busy_pct", "least busy GPU", "whole %"), least_gpu_busy_pct)
        if any(map(has_uneven_gpus, cases)) else None,
        *kernel_columns(lambda c: c),
        (Column("what", "what is wrong"), lambda c: first_problem_text(hits.get(c.id, ()))),
        (Column("do", "do"), lambda c: hit.do if (hit := leading_hit(hits.get(c.id, ()))) else ""),
    ]  # fmt: skip
    most_rows = _ROWS if summary.site else len(cases)  # other commands print a campaign's cases
    members = order[:most_rows] if len(cases) > _IN_ORDER else cases[:most_rows]
    table = screen_table(
        parts, members, "figures", [case.id for case in cases], wide="what" if figure else "top",
        droppable=(*(f"figure.{name}" for name, _ in reversed(more_figures)), "figure_range", "kernel_ns", "top"),
        omitted=len(cases) - len(members),
    )  # fmt: skip
    return replace(table, by_weight=tuple(members.index(case) for case in order if case in members))


def _largest_parts_text(summary: Summary, largest_parts: Mapping[str, Cell], figure: tuple[str, str] | None) -> str:
    """What takes most time, where that is the same part in all cases; of reports the shortest and the longest."""
    different = set() if figure else set(largest_parts.values())
    longest = max(summary.cases, key=lambda case: case.gpu_ns or 0.0)
    if len(different) == 1:
        return f", each {different.pop()}"
    if summary.site or not longest.gpu_ns:
        return ""
    shortest = min(summary.cases, key=lambda case: case.gpu_ns or math.inf)
    return (
        f": {duration(shortest.gpu_ns)} ({shortest.id}) to {duration(longest.gpu_ns)} ({longest.id}:"
        f" {largest_parts[longest.id]})"
    )


def _waste_text(order: Sequence[CaseSummary], hits: Mapping[str, Sequence[Hit]], count: str) -> str:
    """How many cases waste much of their time, and which wastes most; those that are idle without a known cause apart.

    Args:
        order: The cases, that which could win most first.
        hits: Of each case.
        count: How many cases there are, in words.
    """
    leading = {id_: leading_hit(case_hits) for id_, case_hits in hits.items()}
    much = {id_ for id_, case_hits in hits.items() if leading_gain_pct(case_hits) >= WASTE_PCT}
    curable = {id_ for id_ in much if (hit := leading[id_]) and hit.is_curable}
    wasted, unexplained = len(curable), len(much - curable)
    first = next((case for case in order if case.id in curable), order[0])
    problem = f"{first.id}: {first_problem_text(hits[first.id]).partition(',')[0]}"
    most = f", most of all {problem}" if max(wasted, unexplained) > 1 else f": {problem}"
    if unexplained and not wasted:
        return (
            f"{unexplained} of {count} are idle {WASTE_PCT:.0f} % of their time or more, and why is not measured{most}"
        )
    saved = f"save {WASTE_PCT:.0f} % of their time or more"
    if wasted == 1:
        saved = f"save {leading_gain_pct(hits[first.id]):.0f} % of its {_time_base_text(first)}"
    idle = singular_or_count(unexplained, "one more is", "more are")
    more = f"; {idle} idle as long, and why is not measured" if unexplained else ""
    return (f"{wasted} of {count} could {saved}{most}" if wasted else f"none could {saved}; most in {problem}") + more


def _time_base_text(case: CaseSummary) -> str:
    """What a gain of a case is a share of: GPU time, and how much, where no timeline tells how long it takes."""
    if case.idle_gpu is not None or case.iterations is not None or not case.gpu_ns:
        return "time"
    return f"{duration(case.gpu_ns)} of GPU time"


def _campaign_name(summary: Summary) -> str:
    """The campaign's name without the moment, or the report's."""
    return summary.campaign.rsplit("-", 3)[0] if summary.site else summary.campaign


def _figure_grid_table(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> Table | None:
    """The figure over two parameters, the best marked; None where the cases do not make a grid."""
    if len(names) != 2:
        return None
    values = [
        list(dict.fromkeys(parameter_value_text(case.params.get(name)) for case in summary.cases)) for name in names
    ]
    down, across = sorted((0, 1), key=lambda at: -len(values[at])) if len(values[1]) > _COLUMNS else (0, 1)
    cells = {tuple(parameter_value_text(case.params.get(name)) for name in names): case for case in summary.cases}
    if min(map(len, values)) < 2 or not len(cells) == len(summary.cases) > _IN_ORDER or len(values[across]) > _COLUMNS:
        return None
    best = _best_case(summary, figure)

    grid = [[cells.get((y, x) if down == 0 else (x, y)) for x in values[across]] for y in values[down]]
    marked = [(at, n) for at, row in enumerate(grid) for n, case in enumerate(row, 1) if best and case is best]
    repeats = [
        f for case in summary.cases if (f := least_disturbed_figure(case, figure[0])) and f.runs > 1 and f.least > 0
    ]
    notes = ["* best"] if best else []
    if repeats:
        notes.append(
            f"repeats differ by up to {format_magnitude(max(100 * (f.most / f.least - 1) for f in repeats), 0)}"
        )
    return Table(
        TABLE, f"{figure_heading(*figure, is_median=bool(repeats))}: {'; '.join(notes)}",
        (Column(f"param.{names[down]}", names[down]),
         *(Column(f"at.{value}", f"{names[across]}={value}", "number") for value in values[across])),
        tuple((y, *(figure_median(case, figure[0]) if case else None for case in row))
              for y, row in zip(values[down], grid, strict=True)),
        best=next(iter(marked), None),
        least=tuple(f"at.{value}" for n, value in enumerate(values[across], 1) if n not in {at[1] for at in marked}),
        evidence=(Evidence("figures", tuple(case.id for case in summary.cases)),),
    )  # fmt: skip


def _best_case(summary: Summary, figure: tuple[str, str]) -> CaseSummary | None:
    """The case with the best figure of all."""
    with_value = [(value, case) for case in summary.cases if (value := figure_median(case, figure[0]))]
    pick = min if is_smaller_figure_better(summary, *figure) else max
    return pick(with_value, key=lambda item: item[0])[1] if len(with_value) > 1 else None


def _largest_part_by_case(summary: Summary) -> dict[str, Cell]:
    by_run = cache(lambda: {name: rows_by_run(rows) for name, rows in summary.tables.items()})
    return {case.id: _largest_time_share_cell(case, by_run) for case in summary.cases}


def _largest_time_share_cell(case: CaseSummary, by_run: Callable[[], Mapping[str, Mapping[str, Any]]]) -> Cell:
    """What takes most of a case's time, and how much of it: copies count together."""
    copies = case.spent.share_pct(COPIES) if case.spent else 0.0
    largest = next((part for part in case.spent.shown if part.name != NOT_SHOWN), None) if case.spent else None
    if case.spent and largest and not case.iterations and 100 * largest.ns > copies * case.spent.gpu_ns:
        return f"{100 * largest.ns / case.spent.gpu_ns:.0f} % {largest.name}"
    if copies and copies >= (case.hotspots[0].share_pct if case.hotspots else 0.0):
        return f"{copies:.0f} % {COPIES}"
    if shares := case.hotspots or case.functions or case.api:
        return f"{shares[0].share_pct:.0f} % {shares[0].short_name}"
    if len(case.kernels) > 1 and case.kernels[0].share_pct is not None:
        return f"{case.kernels[0].share_pct:.0f} % {case.kernels[0].short_name}"
    case_tables = {name: rows.get(case.id, ()) for name, rows in by_run().items()}
    section = main_time_section(case, case_tables)
    return section[0] if section else ""


def _best_figure_text(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> str:
    """Where a figure is best, and along one number from where on it hardly gains."""
    cases, less = summary.cases, is_smaller_figure_better(summary, *figure)
    with_value = [(value, case) for case in cases if (value := figure_median(case, figure[0]))]
    best = _best_case(summary, figure)
    is_numeric = all(isinstance(case.params.get(name), int | float) for case in cases for name in names)
    if best is None or not names or (any(summary.hits.values()) and not is_numeric):
        return ""
    value = figure_median(best, figure[0]) or 0.0
    at = ", ".join(f"{name}={parameter_value_text(best.params.get(name))}" for name in names)
    sentence = f"; best {number(value)} {figure[1]} at {at}{_tied_cases_text(cases, best, figure[0])}"
    if len(names) > 1 or len(with_value) < 3 or not is_numeric:
        return sentence
    near = [c.params[names[0]] for v, c in with_value if (v <= value / _NEAR if less else v >= value * _NEAR)]
    knee = min(near)
    return sentence + (f", within 5 % of it from {knee} on" if knee < best.params[names[0]] else "")


def _tied_cases_text(cases: Iterable[CaseSummary], best: CaseSummary, name: str) -> str:
    """Which cases' repeats reach those of the best, or that none do; nothing where it did not repeat."""
    top = least_disturbed_figure(best, name)
    if top is None or top.runs < 2:
        return ""
    figures = ((case, least_disturbed_figure(case, name)) for case in cases if case is not best)
    alike = [case.id for case, figure in figures if figure and figure.most >= top.least and figure.least <= top.most]
    if not alike:
        return ", whose runs beat those of all other cases"
    return f", and {first_names(alike, 2)} may be as good: repeats overlap"


def best_two_cases(summary: Summary) -> tuple[CaseSummary, CaseSummary] | None:
    """The second best case and the best, of cases beside each other; None where these did not repeat.

    Places on a scaling axis, and variants at several places, are no rivals.
    """
    figure = figure_to_show(summary)
    if figure is None or summary.curve is not None or any(variant.series for variant in summary.variants):
        return None
    rivals = [(value, case) for case in summary.cases if (value := figure_median(case, figure[0])) is not None]
    rivals.sort(key=lambda rival: rival[0], reverse=is_smaller_figure_better(summary, *figure))
    pair = rivals[-2:]
    if len(pair) < 2 or any((f := least_disturbed_figure(c, figure[0])) is None or f.runs < 2 for _, c in pair):
        return None
    return pair[0][1], pair[1][1]


def _iteration_ns(case: CaseSummary) -> float | None:
    """The time of an iteration; None where the case has none."""
    spent = time_without_profiler(case)
    return spent.span_ns if spent and spent.is_iteration else None


def _process_count(case: CaseSummary) -> int | None:
    """How many processes have iterations; None where none has."""
    return case.iterations.processes if case.iterations else None
