"""The first screen of variants: each beside the baseline."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from nsw.analysis.blocks import Column, ColumnPart, Unit
from nsw.analysis.comparison import Variant, figure_heading, is_time_unit
from nsw.analysis.groups import group_by
from nsw.analysis.rules.pairs import SET_ASIDE, cases_with_void_ratio, contradicted_figures
from nsw.analysis.screen_table import (
    CASES_NAMED,
    Screen,
    first_problem_text,
    is_smaller_figure_better,
    kernel_columns,
    mean_gpu_busy_pct,
    mfu_column,
    milliseconds_change_text,
    parameter_value_cell,
    parameter_value_text,
    screen_table,
)
from nsw.quantities import NO_CHANGE, change_of_speed, is_factor, merged_range, number
from nsw.recipe.matrix import AFTER, BEFORE, SIDE
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.summary import Summary

__all__ = ["variants_screen"]


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
    by_id = summary.by_id
    pairs = [
        (b, a) if a.variant != summary.compared_to and b.variant == summary.compared_to else (a, b) for a, b in pairs
    ]
    unit = next((v.unit for pair in pairs for v in pair if v.unit), None) or summary.figure or "figure"
    first, second = pairs[0]
    void = contradicted_figures(summary.variants, by_id)
    base_text = _variant_label(summary, first.variant)
    gpu_ns, operations = _gpu_ns_per_iteration(by_id), _operations_per_iteration(by_id)
    is_timed = any(v.case_id in gpu_ns for pair in pairs for v in pair)
    is_time = is_time_unit(unit)
    gpu_pairs = {b.case_id: (gpu_ns.get(a.case_id), gpu_ns.get(b.case_id)) for a, b in pairs}
    gpu_ratios = {case: before / after for case, (before, after) in gpu_pairs.items() if before and after}
    valid_ratios = [p[1].ratio for p in pairs if p[1].ratio and not _has_contradicted_figure(p, void)]
    change_text = _change_texts([*valid_ratios, *gpu_ratios.values()], is_time=is_time)
    ratio_unit: Unit = "longer x" if is_time else "faster x"
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
    table = screen_table(parts, pairs, "compare", [v.case_id for pair in pairs for v in pair],
                   droppable=("gpu_ratio", "operations", "gpu_ns"))  # fmt: skip
    variant_text = f"{summary.compared}={parameter_value_text(second.variant)}"
    with_ratio = [(pair, pair[1].ratio) for pair in pairs if pair[1].ratio and not _has_contradicted_figure(pair, void)]
    alike = [p for p, _ in with_ratio if _do_ranges_overlap(*p)]
    better, worse = ([p for p, r in with_ratio if sign * (r - 1) > 0 and p not in alike] for sign in (1, -1))
    if not with_ratio and void:
        return Screen(f"{variant_text}: no ratio to {base_text} is valid", table)
    if not with_ratio:
        return Screen(f"{variant_text}: nothing to compare with {base_text} was measured", table)
    if len(with_ratio) == 1 and not alike:
        (((base, _), ratio),) = with_ratio
        at = f" at {_series_text(base)}" if len(pairs) > 1 else ""
        change = change_text(ratio)
        text = f"is {change} than {base_text}"
        if change == NO_CHANGE:
            text = f"is as fast as {base_text}"
        elif is_time and "%" in change:
            text = f"takes {change} than {base_text}"
        return Screen(f"{variant_text} {text}{at} ({summary.figure})", table)
    effects = [f"{verb} {len(group)}" for verb, group in (("helps", better), ("slows", worse)) if group]
    ends = (change_text(end([r for _, r in with_ratio])) for end in (min, max))
    ranged = f"{merged_range(*ends)} by {summary.figure}"
    if not effects:
        return Screen(f"{variant_text} changes nothing beyond the scatter of the runs ({ranged})", table)
    within = f", {len(alike)} within the scatter of its runs" if alike else ""
    return Screen(f"{variant_text} {', '.join(effects)} of {len(with_ratio)}{within} ({ranged})", table)


def _has_contradicted_figure(pair: tuple[Variant, Variant], void: Container[str]) -> bool:
    """Whether kernels' times contradict a figure of the pair."""
    return any(variant.case_id in void for variant in pair)


def _series_text(variant: Variant) -> str:
    return ", ".join(f"{name}={value}" for name, value in variant.series.items())


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
    by_id = summary.by_id
    variants = summary.variants
    unit = next((v.unit for v in variants if v.unit), None) or summary.figure or "figure"
    gpu_ns = _gpu_ns_per_iteration(by_id)
    repeated, is_time = any(v.runs > 1 for v in variants), is_time_unit(unit)
    void, no_ratio = contradicted_figures(variants, by_id), cases_with_void_ratio(variants, by_id)
    change_text = _change_texts((v.ratio for v in variants if v.ratio and v.case_id not in no_ratio), is_time=is_time)
    parts: list[ColumnPart | None] = [
        *((Column(f"param.{name}", name), lambda v, name=name: parameter_value_cell(v.series[name]))
         for name in variants[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: parameter_value_cell(v.variant)),
        (Column("figure", figure_heading(summary.figure, unit, is_median=repeated), "number"), lambda v: v.figure),
        (Column("figure_range", "its range", "range"), lambda v: (v.least, v.most)) if repeated else None,
        (Column("ratio", f"beside {_variant_label(summary, summary.compared_to)}",
                "longer x" if is_time else "faster x"),
         lambda v: SET_ASIDE if v.case_id in no_ratio else v.ratio),
        (Column("gpu_ns", "GPU time an iteration", "ns"), lambda v: gpu_ns.get(v.case_id)),
        mfu_column(summary, lambda v: v.case_id),
        *kernel_columns(lambda v: by_id[v.case_id]),
        (Column("what", "what is wrong"), lambda v: first_problem_text(summary.hits.get(v.case_id, ()))),
    ]  # fmt: skip
    # GPU time however it was measured
    taken_ns = {id_: case.gpu_ns or sum(k.time_ns or 0.0 for k in case.kernels) for id_, case in by_id.items()}
    # first the series that can be trusted: of a rate that with the best, of a time that which takes most
    less = is_smaller_figure_better(summary, summary.figure, unit)
    series = list(group_by(variants, lambda variant: repr(variant.series)).values())
    measured = [[v for v in members if v.ratio and v.case_id not in void] for members in series]
    fastest = {repr(max(members, key=lambda v: v.ratio or 0.0).variant) for members in measured if len(members) > 1}
    is_same_everywhere = len(series) > 1 and len(fastest) == 1 and all(len(members) > 1 for members in measured)
    by_weight = series if is_same_everywhere else sorted(
        series,
        key=lambda members: (
            any(v.case_id in void for v in members),
            -sum(taken_ns[v.case_id] for v in members) if less else 0.0,
            -max(v.figure or 0.0 for v in members),
        ),
    )  # fmt: skip
    rows = [variant for members in by_weight for variant in members]
    table = screen_table(parts, rows, "compare", [v.case_id for v in variants],
                   repeats=len(variants[0].series), droppable=("figure_range", "kernel_ns"), wide="what")  # fmt: skip
    alike = [v for v in by_weight[0] if v.ratio and v.case_id not in void]
    if not alike:
        base = _variant_label(summary, summary.compared_to)
        return Screen(f"{summary.compared}: nothing to compare with {base} was measured", table)
    if len(alike) == 1:
        value = f"{number(alike[0].figure)} {unit}"
        only = _variant_label(summary, alike[0].variant)
        state = "has a valid figure" if void else "was measured"
        return Screen(f"only {only} {state}: {value}, nothing to compare it with", table)
    best = max(alike, key=lambda v: v.ratio or 0.0)
    if is_same_everywhere:
        slower_text = _at_each_text(summary, measured, change_text)
        return Screen(f"{_variant_label(summary, best.variant)} is the fastest{slower_text}", table)
    others = {_variant_label(summary, v.variant): v for v in alike if v is not best}
    changes = {name: change_text((v.ratio or 0.0) / (best.ratio or 1.0)) for name, v in others.items()}
    scattered = [name for name, v in others.items() if _do_ranges_overlap(best, v)]
    near = [name for name in others if name in scattered or changes[name] == NO_CHANGE]
    slower = [f"{name} {change}" for name, change in changes.items() if name not in near]
    at = f" at {_series_text(rows[0])}" if rows[0].series else ""
    none_text = "no difference" + (" beyond the scatter of the runs" if scattered else "")
    if not slower:
        return Screen(f"{summary.compared} makes {none_text}{at}", table)
    alike_text = f"; {none_text}: {first_names(near, CASES_NAMED)}" if near else ""
    best_name, slower_text = _variant_label(summary, best.variant), first_names(slower, CASES_NAMED)
    return Screen(f"{best_name} is the fastest{at}: {slower_text}{alike_text}", table)


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
