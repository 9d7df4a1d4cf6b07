"""The first screen of an answer: a headline, one table with a row a case, and the sentences that weigh most.

Which table it is follows from what the recipe varies and what was measured: how a figure scales, variants beside a
baseline, or programs and parameters beside each other; of a single case where its time goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Cell, Column, Evidence, Finding, Note, Table
from nsw.analysis.comparison import Scaling, ScalingPoint, Variant, best_figure, figure_title, is_less_better, is_time
from nsw.analysis.conditions import condition_notes
from nsw.analysis.kernel_classes import COPIES
from nsw.analysis.rules.counters import undecided
from nsw.analysis.rules.pairs import contradicted
from nsw.analysis.rules.timeline import busy_pct, slowed_times, spent_of
from nsw.analysis.single_case import TABLE, section_of
from nsw.quantities import duration, is_energy, number
from nsw.wording import first_of, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

__all__ = ["FAILED", "HEADLINE", "first_screen", "headline_of"]

HEADLINE: Final = "headline"
FAILED: Final = "program failed"  # the finding that a report's program failed
_ROWS: Final = 15  # of the table; of more cases those that weigh most
_WASTE_PCT: Final = 20.0  # of a case's time that could be won, from which it counts as wasted
_NEAR: Final = 0.95  # of the best
_WHOLE: Final = ("exposed_pct", "computing_pct", "copies_pct", "idle_pct")  # an iteration of the mean GPU
_SLOWED: Final = 1.1  # times, from which a profiler is mentioned
_CASES_NAMED: Final = 4
_IN_ORDER: Final = 10  # cases that stay in the order of the matrix: more are sorted
_COLUMNS: Final = 8  # of a grid
_NOISY: Final = 2.0  # times by which repeats of a case differ, from which the headline begins with it
_MORE_FIGURES: Final = 2  # beside the first, that have a column
_LISTED: Final = 2  # outliers, and things that are missing; the full answer has all

_Part = tuple[Column, "Callable[[Any], Cell]"]


@dataclass(frozen=True, slots=True)
class _Screen:
    """What a kind of answer says: its headline without the conditions, its table, and which hits the table tells."""

    headline: str
    table: Table | None
    in_table: frozenset[tuple[str, str]] = frozenset()  # (case, cause)


def first_screen(summary: Summary) -> list[Block]:
    """Headline, table, notes and findings, in this order."""
    screen = _screen_by_kind(summary)
    conditions = _conditions_text(summary)
    blocks: list[Block] = [
        Note(
            HEADLINE,
            _largest_scatter_text(summary) + screen.headline + (f" ({conditions})" if conditions else ""),
            tone="heading",
        )
    ]
    if screen.table is not None and screen.table.rows:
        blocks.append(screen.table)
    blocks += [*_note_blocks(summary), *_also_measured(summary, screen.table)]
    return [*blocks, *(_unless_in_table(finding, screen.in_table) for finding in summary.findings)]


def _also_measured(summary: Summary, table: Table | None) -> list[Block]:
    """The figures that the screen does not show, and how to see them."""
    first = _chosen_figure(summary)
    columns = {column.name for column in table.columns} if table else set()
    figures = dict.fromkeys(figure.name for case in summary.cases for figure in case.figures)
    names = [name for name in figures if first and name != first[0] and f"figure.{name}" not in columns]
    text = f"Also measured: {first_of(names, _CASES_NAMED)} (`--figure {names[0]}` shows it)." if names else ""
    return [Note("figures", text, tone="aside")] if names and summary.site else []


def headline_of(blocks: Iterable[Block]) -> str:
    """The headline of an answer."""
    return next(block.text for block in blocks if isinstance(block, Note) and block.name == HEADLINE)


def _unless_in_table(finding: Finding, in_table: frozenset[tuple[str, str]]) -> Finding:
    """A finding that the table shows already is for the full answer."""
    is_in_table = finding.cases and all((case, finding.name) in in_table for case in finding.cases)
    return replace(finding, shown="full") if is_in_table else finding


def _screen_by_kind(summary: Summary) -> _Screen:
    if len(summary.cases) == 1:
        return _single_case_screen(summary, summary.cases[0])
    if summary.curve is not None and any(point.figure is not None for point in summary.curve.points):
        return _scaling_screen(summary, summary.curve)
    if any(variant.figure is not None for variant in summary.variants):
        return _variants_screen(summary)
    return _cases_side_by_side(summary)


def _largest_scatter_text(summary: Summary) -> str:
    """The case whose repeats differ most, where they differ much; else nothing."""
    name = (_chosen_figure(summary) or ("", ""))[0]
    figures = [(f, case) for case in summary.cases if (f := best_figure(case, name)) is not None and f.least > 0]
    if not figures:
        return ""
    worst, case = max(figures, key=lambda item: item[0].most / item[0].least)
    times = worst.most / worst.least
    if times < _NOISY:
        return ""
    ends = f"{number(worst.least)} to {number(worst.most)} {worst.unit or ''}".strip()
    return f"Repeats of {case.id} differ {_factor_text(times)} times ({worst.name} {ends}). "


def _conditions_text(summary: Summary) -> str:
    """On what hardware, by which passes, how often each case ran."""
    gpus = sorted({gpu for case in summary.cases for gpu in case.gpus})
    hardware = [gpu.removeprefix("NVIDIA ") for gpu in gpus[:2]]
    name = (_chosen_figure(summary) or ("", ""))[0]
    counts = {figure.runs for case in summary.cases if (figure := best_figure(case, name)) is not None}
    runs = sorted((counts or {case.measured for case in summary.cases}) - {0}) if summary.site else []
    often = (
        [plural(runs[0], "run") + " each" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs a case"] if runs else []
    )
    profiled = all(figure.profiled for case in summary.cases for figure in case.figures)
    with_figures = any(case.figures for case in summary.cases)
    passes = ["profiled"] if with_figures and profiled else []
    base = [f"for comparison {first_of([case.id for case in summary.context], 2)}"] if summary.context else []
    return ", ".join([*hardware, *passes, *often, *base])


def _note_blocks(summary: Summary) -> list[Block]:
    """What a profiler changed, and what is missing, a line each."""
    slowed = [(times, case.id) for case in summary.cases if (times := slowed_times(case)) >= _SLOWED]
    slowest = sorted(slowed, key=lambda item: -item[0])
    names = first_of([f"{case} {times:.1f}x" for times, case in slowest], _CASES_NAMED)
    notes: list[Block] = [Note("note", summary.note, tone="aside")] if summary.note else []
    if slowest:
        notes.append(
            Note("slowed", f"The profiler slowed {names}: shares of idle time are corrected for it.", tone="aside")
        )
    notes += _missing_pass_blocks(summary)
    pages = [kernel.source for case in summary.cases for kernel in case.kernels if kernel.source is not None]
    if pages and not any(page.has_lines for page in pages):
        notes.append(Note("lines", "Compile with -lineinfo to see the source line of the worst access.", tone="aside"))
    odd = (Note("outlier", f"outlier: {o.run}: {o.text}", tone="warning") for o in summary.outliers[:_LISTED])
    return [*notes, *condition_notes(summary)[:_LISTED], *odd, *_missing_data_blocks(summary.missing)]


def _missing_pass_blocks(summary: Summary) -> list[Block]:
    """The pass that rules without data would need, as a line of the recipe."""
    lacking = next((found for case in summary.cases if (found := undecided(case)) is not None), None)
    if lacking is not None:
        by_ncu = f"`ncu --metrics {','.join(lacking.metrics)}`"
        how = "A pass `counters: {}` (group `diagnosis`)" if summary.site else by_ncu
        return [Note("passes", f"Not measured: {lacking.subject}. {how} tells it.", tone="aside")]
    traced = any(case.spent for case in summary.cases)
    counted = any(case.kernels for case in summary.cases)
    if not summary.has_gpus or (traced and counted):
        return []
    subject, add, shown_in = "What the GPU does meanwhile", "timeline: {}", "full"
    if traced:
        subject, add = "What binds the kernels", "counters: {kernels: {cover: 80%}}"
    elif counted:
        subject = "Idle time, copies and communication"
    elif not any(case.functions for case in summary.cases):
        shown_in = "always"
    text = f"Not measured: {subject[0].lower()}{subject[1:]}. `- {add}` among the recipe's passes shows it."
    return [Note("passes", text, tone="aside", shown=shown_in)]  # type: ignore[arg-type]  # one of its words


def _missing_data_blocks(lines: Sequence[str]) -> list[Block]:
    """The first of what is missing, and how much more is: the full answer has all."""
    omitted = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return [Note("missing", line + omitted, tone="warning") for line in lines[:1]]


# --- scaling ------------------------------------------------------------------------------------------------------


def _scaling_screen(summary: Summary, curve: Scaling) -> _Screen:
    """A row a series: its ends, and where an iteration of the larger one goes; of one series a row a point."""
    by_id = {case.id: case for case in (*summary.cases, *summary.context)}
    ends = [(first, last) for first, last in _first_and_last_points(curve) if last.figure is not None]
    single = len({repr(point.series) for point in curve.points}) == 1
    with_efficiency = [(first, last) for first, last in ends if last.efficiency_pct is not None and last is not first]
    title = figure_title(curve.figure, curve.unit, is_median=any(point.runs > 1 for point in curve.points))
    spans = any(by_id[last.case_id].spent and by_id[last.case_id].spent.span_ns for _, last in ends)  # type: ignore[union-attr]
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), _series(name)) for name in curve.points[0].series if not single),
        (Column(f"param.{curve.axis}", curve.axis, "plain"), lambda e: e[1].at) if single else None,
        (Column("first", f"{_axis(ends, curve, 0)}, {title}", "number"), lambda e: e[0].figure) if not single else None,
        (Column("last", title if single else _axis(ends, curve, 1), "number"), lambda e: e[1].figure),
        (Column("efficiency_pct", "efficiency", "whole %"), lambda e: e[1].efficiency_pct),
        (Column("efficiency_range", "its range"), _efficiency_range)
        if any(point.runs > 1 for point in curve.points) else None,
        (Column("step", "iteration, ms"), _spans(by_id)) if spans else None,
        *(
            (Column(name, title, "whole %"), _share(by_id, name))
            for name, title in (
                ("computing_pct", "computing"), ("copies_pct", "copies alone"), ("exposed_pct", "NCCL alone"),
                ("idle_pct", "idle"), ("hidden_pct", "NCCL hidden"),
            )
            if any(_share(by_id, name)(end) for end in ends)
        ),
        (Column("most_idle_pct", "most idle", "whole %"), _share(by_id, "most_idle_pct"))
        if any(_is_uneven(by_id[last.case_id]) for _, last in ends) else None,
    ]  # fmt: skip
    table = _table(
        "", parts, ends, "scaling", [last.case_id for _, last in ends],
        droppable=("hidden_pct", "most_idle_pct", "step"), whole=_WHOLE,
    )  # fmt: skip
    if not with_efficiency:
        return _Screen(f"{summary.campaign}: nothing to scale from was measured", table)
    largest = [e for e in with_efficiency if e[1].at == max(end[1].at for end in with_efficiency)]
    best, worst = (pick(largest, key=lambda e: e[1].efficiency_pct or 0.0) for pick in (max, min))
    headline = f"{_efficiency_text(best)} efficiency at {curve.axis}={_plain(best[1].at)}"
    if len(largest) > 1:
        headline += f", {_series_text(best[1])}; {_efficiency_text(worst)} at {_series_text(worst[1])}"
    return _Screen(headline + _why_lost(summary.hits.get(worst[1].case_id, ())), table)


def _efficiency_range(ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    """Between the worst run beside the best of the base, and the other way round."""
    first, last = ends
    measured = (first.least, first.most, last.least, last.most, first.figure, last.figure)
    if last is first or last.efficiency_pct is None or not all(measured):
        return ""
    low = last.efficiency_pct * (last.least / last.figure) / (first.most / first.figure)  # type: ignore[operator]  # all known
    high = last.efficiency_pct * (last.most / last.figure) / (first.least / first.figure)  # type: ignore[operator]
    return f"{low:.0f} to {high:.0f} %"


def _first_and_last_points(curve: Scaling) -> list[tuple[ScalingPoint, ScalingPoint]]:
    series: dict[str, list[ScalingPoint]] = {}
    for point in curve.points:
        series.setdefault(repr(point.series), []).append(point)
    if len(series) == 1:
        return [(curve.points[0], point) for point in curve.points]
    return [(points[0], points[-1]) for points in series.values()]


def _axis(ends: Sequence[tuple[ScalingPoint, ScalingPoint]], curve: Scaling, index: int) -> str:
    values = {end[index].at for end in ends}
    return f"{curve.axis}={_plain(values.pop())}" if len(values) == 1 else ("least", "most")[index]


def _series(name: str) -> Callable[[Any], Cell]:
    return lambda ends: _cell(ends[1].series[name])


def _share(by_id: Mapping[str, CaseSummary], name: str) -> Callable[[Any], Cell]:
    def share(ends: tuple[ScalingPoint, ScalingPoint]) -> float | None:
        spent = spent_of(by_id[ends[1].case_id])
        return getattr(spent, name) if spent else None

    return share


def _is_uneven(case: CaseSummary) -> bool:
    """Whether some GPU is idle more than the mean, as printed."""
    spent = spent_of(case)
    return spent is not None and None not in {spent.idle_pct, spent.most_idle_pct} and (
        round(spent.idle_pct or 0) != round(spent.most_idle_pct or 0)
    )  # fmt: skip


def _spans(by_id: Mapping[str, CaseSummary]) -> Callable[[Any], Cell]:
    return lambda ends: _milliseconds(_span(by_id, ends[0]), _span(by_id, ends[1]))


def _span(by_id: Mapping[str, CaseSummary], point: ScalingPoint) -> float | None:
    spent = spent_of(by_id[point.case_id])
    return spent.span_ns if spent else None


def _efficiency_text(ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    return f"{ends[1].efficiency_pct:.0f} %"


def _series_text(point: ScalingPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.series.items()) or point.case_id


def _why_lost(hits: Sequence[Hit]) -> str:
    """What takes most of the least efficient case, in a few words."""
    hit = next((hit for hit in hits if hit.gain_pct >= _WASTE_PCT / 2), None)
    return f": {hit.what.partition(',')[0]}" if hit else ""


# --- variants -----------------------------------------------------------------------------------------------------


def _variants_screen(summary: Summary) -> _Screen:
    """Two variants: a row a series, from one to the other; more: a row a variant."""
    series: dict[str, list[Variant]] = {}
    for variant in summary.variants:
        series.setdefault(repr(variant.series), []).append(variant)
    values = list(dict.fromkeys(repr(v.variant) for v in summary.variants))
    if len(values) == 2 and all(len(members) == 2 for members in series.values()):
        return _variant_pairs_screen(summary, [(members[0], members[1]) for members in series.values()])
    return _each_variant(summary)


def _variant_pairs_screen(summary: Summary, pairs: Sequence[tuple[Variant, Variant]]) -> _Screen:
    by_id = {case.id: case for case in (*summary.cases, *summary.context)}
    pairs = [
        (b, a) if a.variant != summary.compared_to and b.variant == summary.compared_to else (a, b) for a, b in pairs
    ]
    unit = next((v.unit for pair in pairs for v in pair if v.unit), None) or summary.figure or "figure"
    first, second = pairs[0]
    title = figure_title(summary.figure, unit, is_median=any(v.runs > 1 for pair in pairs for v in pair))
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda p, name=name: _cell(p[0].series[name])) for name in first.series),
        (Column("figure", f"{title}, {_word(first.variant)} -> {_word(second.variant)}"),
         lambda p: f"{number(p[0].figure)} -> {number(p[1].figure)}"),
        (Column("ratio", "gain", "times"), lambda p: p[1].ratio),
        (Column("effect", "effect"), _effect) if any(_overlaps(*p) for p in pairs) and len(pairs) > 1 else None,
        (Column("ratio_range", "its range"), lambda p: _ratio_range(*p))
        if any(v.runs > 1 for p in pairs for v in p) else None,
        (Column("gpu_ns", "GPU ms/iteration"), lambda p: _milliseconds(*(_gpu_work_of_variant(by_id, v) for v in p)))
        if any(_gpu_work_of_variant(by_id, v) for p in pairs for v in p) else None,
        (Column("gpu_ratio", "its gain", "times"), lambda p: _gain(*(_gpu_work_of_variant(by_id, v) for v in p)))
        if any(_gpu_work_of_variant(by_id, v) for p in pairs for v in p) else None,
        (Column("operations", "operations"), lambda p: _counts(*(_operations_of_variant(by_id, v) for v in p)))
        if any(_operations_of_variant(by_id, v) for p in pairs for v in p) else None,
        (Column("idle_pct", f"GPU idle, {_word(second.variant)}", "whole %"), lambda p: _idle_pct(by_id[p[1].case_id]))
        if any(_idle_pct(by_id[p[1].case_id]) is not None for p in pairs) else None,
    ]  # fmt: skip
    table = _table("", parts, pairs, "compare", [v.case_id for pair in pairs for v in pair],
                   droppable=("operations", "gpu_ns", "gpu_ratio"))  # fmt: skip
    with_ratio = [(pair, pair[1].ratio) for pair in pairs if pair[1].ratio]
    alike = [p for p, _ in with_ratio if _overlaps(*p)]
    better, worse = ([p for p, r in with_ratio if sign * (r - 1) > 0 and p not in alike] for sign in (1, -1))
    variant_text = f"{summary.compared}={_word(second.variant)}"
    base_text = _variant_name(summary, first.variant)
    if not with_ratio:
        return _Screen(f"{variant_text}: nothing to compare with {base_text} was measured", table)
    if len(with_ratio) == 1:
        (((base, other), ratio),) = with_ratio
        within = ", within the scatter of its runs" if alike else ""
        change = _change_words((other.figure or 0.0) / (base.figure or 1.0), unit, is_better=ratio >= 1)
        return _Screen(f"{variant_text} {change} than {base_text} ({summary.figure}){within}", table)
    effects = [f"{verb} {len(group)}" for verb, group in (("helps", better), ("slows", worse)) if group]
    ranged = f"{min(r for _, r in with_ratio):.2f} to {max(r for _, r in with_ratio):.2f} times {summary.figure}"
    if not effects:
        return _Screen(f"{variant_text} changes nothing beyond the scatter of the runs ({ranged})", table)
    within = f", {len(alike)} within the scatter of its runs" if alike else ""
    return _Screen(f"{variant_text} {', '.join(effects)} of {len(with_ratio)}{within} ({ranged})", table)


def _effect(pair: tuple[Variant, Variant]) -> str:
    """What the second variant does in this row."""
    ratio = pair[1].ratio
    if not ratio:
        return ""
    return "scatter" if _overlaps(*pair) else "helps" if ratio > 1 else "slows" if ratio < 1 else ""


def _ratio_range(first: Variant, second: Variant) -> str:
    """Between the worst run of the second beside the best of the first, and the other way round."""
    if not second.ratio or not all((first.least, first.most, second.least, second.most, first.figure)):
        return ""
    ends = (second.least / first.most, second.most / first.least)  # type: ignore[operator]  # all known
    is_inverse = (second.ratio > 1) != (second.figure > first.figure)  # type: ignore[operator]  # less is better
    low, high = sorted(1 / end for end in ends) if is_inverse else ends
    return f"{low:,.2f} to {high:,.2f}"


def _overlaps(first: Variant, second: Variant) -> bool:
    """Whether repeats of two variants show that they may be the same."""
    if None in {first.least, first.most, second.least, second.most} or min(first.runs, second.runs) < 2:
        return False
    return (first.least or 0.0) <= (second.most or 0.0) and (second.least or 0.0) <= (first.most or 0.0)


def _each_variant(summary: Summary) -> _Screen:
    by_id = {case.id: case for case in (*summary.cases, *summary.context)}
    variants = summary.variants
    unit = next((v.unit for v in variants if v.unit), None) or summary.figure or "figure"
    kernels = any(by_id[v.case_id].kernels for v in variants)
    repeated = any(v.runs > 1 for v in variants)
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda v, name=name: _cell(v.series[name])) for name in variants[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: _cell(v.variant)),
        (Column("figure", figure_title(summary.figure, unit, is_median=repeated), "number"), lambda v: v.figure),
        (Column("figure_range", "its range", "range"), lambda v: (v.least, v.most)) if repeated else None,
        (Column("ratio", f"times {_variant_name(summary, summary.compared_to)}", "times"), lambda v: v.ratio),
        (Column("gpu_ns", "GPU time an iteration", "ns"), lambda v: _gpu_work_of_variant(by_id, v))
        if any(_gpu_work_of_variant(by_id, v) for v in variants) else None,
        *(_kernel_parts(by_id) if kernels else ()),
        (Column("what", "what is wrong"), lambda v: _first_problem(summary.hits.get(v.case_id, ()))),
    ]  # fmt: skip
    void = contradicted(variants, by_id)
    series: dict[str, list[Variant]] = {}
    for variant in variants:
        series.setdefault(repr(variant.series), []).append(variant)
    # first the series that can be trusted: of a rate that with the best, of a time that which does most work
    less = _is_less_better(summary, summary.figure, unit)
    by_weight = sorted(
        series.values(),
        key=lambda some: (
            any(v.case_id in void for v in some),
            -_gpu_work_of_series(by_id, some) if less else -max(v.figure or 0.0 for v in some),
        ),
    )
    rows = [variant for members in by_weight for variant in members]
    repeats = len(variants[0].series)
    table = _table("", parts, rows, "compare", [v.case_id for v in variants],
                   repeats=repeats, droppable=("figure_range", "kernel_ns"), wide="what")  # fmt: skip
    first = rows[0].series
    alike = [v for v in by_weight[0] if v.ratio]
    if not alike:
        base = _variant_name(summary, summary.compared_to)
        return _Screen(f"{summary.compared}: nothing to compare with {base} was measured", table)
    if len(alike) == 1:
        value = f"{number(alike[0].figure)} {unit}"
        only = _variant_name(summary, alike[0].variant)
        return _Screen(f"only {only} was measured: {value}, nothing to compare it with", table)
    best = max(alike, key=lambda v: v.ratio or 0.0)
    within = ", within the scatter of its runs" if any(_overlaps(best, v) for v in alike if v is not best) else ""
    times = {_variant_name(summary, v.variant): (best.ratio or 0.0) / (v.ratio or 1.0) for v in alike if v is not best}
    slower_variants = [f"{word} {_factor_text(factor)}x" for word, factor in times.items()]
    at = f" at {', '.join(f'{name}={value}' for name, value in first.items())}" if first else ""
    in_table = frozenset((case, hits[0].cause) for case, hits in summary.hits.items() if hits)
    slower = f"; slower: {first_of(slower_variants, _CASES_NAMED)}" if slower_variants else ""
    return _Screen(f"{_variant_name(summary, best.variant)} is the fastest{at}{within}{slower}", table, in_table)


def _variant_name(summary: Summary, value: Any) -> str:
    """A variant in a sentence: `naive`, but `mode=1`, since a number alone says nothing."""
    return value if isinstance(value, str) else f"{summary.compared}={_word(value)}"


def _gpu_work_of_series(by_id: Mapping[str, CaseSummary], variants: Iterable[Variant]) -> float:
    """GPU time of a series, however it was measured."""
    cases = [by_id[variant.case_id] for variant in variants]
    return sum(case.gpu_ns or sum(kernel.time_ns or 0.0 for kernel in case.kernels) for case in cases)


def _kernel_parts(by_id: Mapping[str, CaseSummary]) -> list[_Part]:
    def top(name: str) -> Callable[[Any], Cell]:
        return lambda variant: next((getattr(k, name) for k in by_id[variant.case_id].kernels[:1]), None)

    def time(variant: Any) -> Cell:
        return next((k.launch_ns for k in by_id[variant.case_id].kernels[:1]), None)

    return [
        (Column("kernel_ns", "kernel", "ns"), time),
        (Column("dram_pct", "of DRAM", "whole %"), top("dram_pct")),
    ]


# --- programs and parameters beside each other ---------------------------------------------------------------------


def _cases_side_by_side(summary: Summary) -> _Screen:
    """A row a case: its figure, how busy its GPU is, what is wrong and what to do."""
    cases = summary.cases
    names = [name for name in cases[0].params if len({repr(c.params.get(name)) for c in cases}) > 1] if cases else []
    figure = _chosen_figure(summary)
    hits = summary.hits
    repeated = any(f.runs > 1 for case in cases for f in case.figures)
    if figure and not any(hits.values()) and (grid := _grid_table(summary, names, figure)) is not None:
        return _Screen(
            f"{_campaign_name(summary)}: {plural(len(cases), 'case')}{_best_figure_text(summary, names, figure)}", grid
        )
    more_figures = _other_figures(cases, figure)
    is_uneven = any(hit.cause == "slow-iteration" for case_hits in hits.values() for hit in case_hits)
    busy_title = "GPU busy, median iteration" if is_uneven else "GPU busy"
    kernels = any(case.kernels for case in cases)
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda c, name=name: _cell(c.params.get(name))) for name in names),
        (Column("case", "case" if summary.site else "report"), lambda c: c.id) if not names else None,
        (Column("gpu_ns", "GPU time", "ns"), lambda c: c.gpu_ns) if not figure else None,
        (Column("top", "largest part", "name"), lambda c: _largest_time_share_cell(c, summary)) if not figure else None,
        (Column("figure", figure_title(*figure, is_median=repeated), "number"), lambda c: _figure_value(c, figure[0]))
        if figure
        else None,
        (Column("figure_range", "its range", "range"), lambda c: _range_cell(c, figure[0]))
        if figure and any(f.runs > 1 for c in cases for f in c.figures if f.name == figure[0])
        else None,
        *(
            (
                Column(f"figure.{name}", figure_title(name, unit, is_median=repeated), "number"),
                lambda c, name=name: _figure_value(c, name),
            )
            for name, unit in more_figures
        ),
        (Column("busy_pct", busy_title, "whole %"), _busy_share)
        if any(_busy_share(c) is not None for c in cases)
        else None,
        (Column("least_busy_pct", "least busy GPU", "whole %"), busy_pct) if any(map(_is_uneven, cases)) else None,
        *((_part_for_case(part) for part in _kernel_parts({c.id: c for c in cases})) if kernels else ()),
        (Column("what", "what is wrong"), lambda c: _first_problem(hits.get(c.id, ()))),
        (Column("do", "do"), lambda c: next((hit.do for hit in hits.get(c.id, ())), "")),
    ]
    if not any(hits.values()):
        parts = parts[:-2]
    order = sorted(range(len(cases)), key=lambda at: (-_findings_weight(hits.get(cases[at].id, ())), at))
    if figure and not any(hits.values()):
        sign = 1 if _is_less_better(summary, *figure) else -1
        values = [_figure_value(case, figure[0]) for case in cases]
        order.sort(key=lambda at: (values[at] is None, sign * (values[at] or 0.0)))
    shown_cases = order[:_ROWS] if len(cases) > _IN_ORDER else sorted(order)
    table = _table("", parts, [cases[at] for at in shown_cases], "figures", [case.id for case in cases],
                   wide="what" if figure else "top",
                   droppable=(*(f"figure.{name}" for name, _ in reversed(more_figures)), "figure_range", "kernel_ns"),
                   omitted=len(cases) - len(shown_cases)) if cases else None  # fmt: skip
    in_table = frozenset((cases[at].id, hits[cases[at].id][0].cause) for at in shown_cases if hits.get(cases[at].id))
    wasted = sum(_findings_weight(case_hits) >= _WASTE_PCT for case_hits in hits.values())
    headline = f"{_campaign_name(summary)}: "
    count = plural(len(cases), "case" if summary.site else "result")
    count += " with GPU work" if not summary.site and all(case.gpu_ns for case in cases) else ""
    if any(hits.values()):
        first = cases[order[0]]
        most = f", most of all {first.id}: {_first_problem(hits[first.id]).partition(',')[0]}" if wasted > 1 else ""
        headline += f"{wasted} of {count} could be clearly faster{most}" if wasted else "no large loss was seen"
    elif figure or any(_largest_time_share_cell(case, summary) for case in cases):
        headline += count
        largest = {_largest_time_share_cell(case, summary) for case in cases}
        longest = max(cases, key=lambda case: case.gpu_ns or 0.0)
        if len(largest) == 1 and not figure:
            headline += f", each {largest.pop()}"
        elif not summary.site and longest.gpu_ns:
            headline += (
                f"; most in {longest.id}: {duration(longest.gpu_ns)}, {_largest_time_share_cell(longest, summary)}"
            )
    else:
        return _Screen(headline + f"nothing was measured of {count}", None)
    return _Screen(headline + (_best_figure_text(summary, names, figure) if figure else ""), table, in_table)


def _campaign_name(summary: Summary) -> str:
    """The campaign's name without the moment, or the report's."""
    return summary.campaign.rsplit("-", 3)[0] if summary.site else summary.campaign


def _is_less_better(summary: Summary, name: str | None, unit: str | None) -> bool:
    """Whether a smaller figure is better: as the recipe says of the figure that it compares, else by the unit."""
    is_unsaid = summary.higher_is_better is None or name != summary.figure
    return is_less_better(unit) if is_unsaid else not summary.higher_is_better


def _other_figures(cases: Sequence[CaseSummary], first: tuple[str, str] | None) -> list[tuple[str, str]]:
    """Name and unit of the figures after the first that have a column."""
    units = {figure.name: figure.unit or figure.name for case in cases for figure in case.figures}
    return [item for item in units.items() if first and item[0] != first[0]][:_MORE_FIGURES]


def _range_cell(case: CaseSummary, name: str) -> Cell:
    figure = best_figure(case, name)
    return (figure.least, figure.most) if figure and figure.runs > 1 else None


def _grid_table(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> Table | None:
    """The figure over two parameters, the best marked; None where the cases do not make a grid."""
    if len(names) != 2:
        return None
    values = [list(dict.fromkeys(_word(case.params.get(name)) for case in summary.cases)) for name in names]
    down, across = sorted((0, 1), key=lambda at: -len(values[at])) if len(values[1]) > _COLUMNS else (0, 1)
    cells = {tuple(_word(case.params.get(name)) for name in names): case for case in summary.cases}
    if min(map(len, values)) < 2 or not len(cells) == len(summary.cases) > _IN_ORDER or len(values[across]) > _COLUMNS:
        return None
    best = _best_case(summary, figure)

    grid = [[cells.get((y, x) if down == 0 else (x, y)) for x in values[across]] for y in values[down]]
    marked = [(at, n) for at, row in enumerate(grid) for n, case in enumerate(row, 1) if best and case is best]
    repeats = [f for case in summary.cases if (f := best_figure(case, figure[0])) and f.runs > 1 and f.least > 0]
    notes = ["* best"] if best else []
    notes += [f"repeats differ by up to {max(100 * (f.most / f.least - 1) for f in repeats):.0f} %"] if repeats else []
    return Table(
        TABLE, f"{figure_title(*figure, is_median=bool(repeats))}: {'; '.join(notes)}",
        (Column(f"param.{names[down]}", names[down]),
         *(Column(f"at.{value}", f"{names[across]}={value}", "number") for value in values[across])),
        tuple((y, *(_figure_value(case, figure[0]) if case else None for case in row))
              for y, row in zip(values[down], grid, strict=True)),
        best=next(iter(marked), None),
        least=tuple(f"at.{value}" for n, value in enumerate(values[across], 1) if n not in {at[1] for at in marked}),
        evidence=(Evidence("figures", tuple(case.id for case in summary.cases)),),
    )  # fmt: skip


def _best_case(summary: Summary, figure: tuple[str, str]) -> CaseSummary | None:
    """The case with the best figure of all."""
    with_value = [(value, case) for case in summary.cases if (value := _figure_value(case, figure[0]))]
    pick = min if _is_less_better(summary, *figure) else max
    return pick(with_value, key=lambda item: item[0])[1] if len(with_value) > 1 else None


def _largest_time_share_cell(case: CaseSummary, summary: Summary) -> Cell:
    """What takes most of a case's time, and how much of it: copies count together."""
    copies = case.spent.share_pct(COPIES) if case.spent else 0.0
    if copies and copies >= (case.hotspots[0].share_pct if case.hotspots else 0.0):
        return f"{copies:.0f} % {COPIES}"
    if shares := case.hotspots or case.functions or case.api:
        return f"{shares[0].share_pct:.0f} % {shares[0].short_name}"
    case_tables = {name: [row for row in some if row.get("run") == case.id] for name, some in summary.tables.items()}
    section = section_of(case, case_tables)
    return section[0] if section else ""


def _best_figure_text(summary: Summary, names: Sequence[str], figure: tuple[str, str]) -> str:
    """Where a figure is best, and along one number from where on it hardly gains."""
    cases, less = summary.cases, _is_less_better(summary, *figure)
    with_value = [(value, case) for case in cases if (value := _figure_value(case, figure[0]))]
    best = _best_case(summary, figure)
    is_numeric = all(isinstance(case.params.get(name), int | float) for case in cases for name in names)
    if best is None or not names or (any(summary.hits.values()) and not is_numeric):
        return ""
    value = _figure_value(best, figure[0]) or 0.0
    at = ", ".join(f"{name}={_word(best.params.get(name))}" for name in names)
    sentence = f"; best {number(value)} {figure[1]} at {at}{_tied_cases_text(cases, best, figure[0])}"
    if len(names) > 1 or len(with_value) < 3 or not is_numeric:
        return sentence
    near = [c.params[names[0]] for v, c in with_value if (v <= value / _NEAR if less else v >= value * _NEAR)]
    knee = min(near)
    return sentence + (f", within 5 % of it from {knee} on" if knee < best.params[names[0]] else "")


def _tied_cases_text(cases: Iterable[CaseSummary], best: CaseSummary, name: str) -> str:
    """Which cases' repeats reach those of the best; nothing where none do, or where it did not repeat."""
    top = best_figure(best, name)
    if top is None or top.runs < 2:
        return ""
    figures = ((case, best_figure(case, name)) for case in cases if case is not best)
    alike = [case.id for case, figure in figures if figure and figure.most >= top.least and figure.least <= top.most]
    return f", and {first_of(alike, 2)} may be as good: repeats overlap" if alike else ""


def _part_for_case(part: _Part) -> _Part:
    """A part that looks at `case_id`, for a case."""
    column, cell = part

    @dataclass(frozen=True, slots=True)
    class FigureOfCase:
        case_id: str

    return column, lambda case: cell(FigureOfCase(case.id))


def _chosen_figure(summary: Summary) -> tuple[str, str] | None:
    """Name and unit of the figure that was asked for, else of the first that the program printed."""
    figures = [figure for case in summary.cases for figure in case.figures]
    printed = next((figure for figure in figures if not is_energy(figure.name)), None)
    chosen = next((figure for figure in figures if figure.name == summary.figure), printed)
    return (chosen.name, chosen.unit or chosen.name) if chosen else None


def _figure_value(case: CaseSummary, name: str) -> float | None:
    figure = best_figure(case, name)
    return figure.median if figure else None


def _findings_weight(hits: Sequence[Hit]) -> float:
    return hits[0].gain_pct if hits else 0.0


def _first_problem(hits: Sequence[Hit]) -> str:
    return hits[0].what if hits else ""


# --- a single case ------------------------------------------------------------------------------------------------


def _single_case_screen(summary: Summary, case: CaseSummary) -> _Screen:
    """Where the time of a case goes: GPU work by class, else kernels' counters, else functions, operators, calls."""
    hits = summary.hits.get(case.id, ())
    figure = _chosen_figure(summary)
    parts_said = [f"{figure[0]} {number(_figure_value(case, figure[0]))} {figure[1]}"] if figure else []
    parts_said += _beside_base(summary, case)
    spent = spent_of(case)
    if spent is not None and spent.span_ns is not None:
        by_kernels = case.iterations is not None and case.iterations.found_by == "kernel_sequence"
        span = duration(spent.span_ns)
        parts_said.append(f"its kernels repeat every {span}" if by_kernels else f"an iteration takes {span}")
    section = section_of(case, summary.tables)
    of_kernels = section is not None and case.spent is None and bool(case.kernels)  # hits are of one of them
    telling = bool(hits) and not of_kernels and hits[0].gain_pct >= _WASTE_PCT
    idle = f"GPU idle {hits[0].gain_pct:.0f} %: " if telling and hits[0].cause.startswith("idle") else ""
    parts_said += [idle + hits[0].what] if telling else [section[0]] if section else []
    if of_kernels and hits and len(case.kernels) == 1 and hits[0].cause != "latency-bound":  # which is said already
        parts_said.append(hits[0].what)
    if any(finding.name == FAILED for finding in summary.findings):
        parts_said.insert(0, "the program failed")
    nothing_text = "nothing was read" if summary.site else "has only what `--full` prints"
    return _Screen(f"{case.id}: {', '.join(parts_said) or nothing_text}", section[1] if section else None)


def _beside_base(summary: Summary, case: CaseSummary) -> list[str]:
    """How a case does beside the one that its campaign compares it with, which is no part of the answer itself."""
    by_id = {base.id for base in summary.context}
    points = summary.curve.points if summary.curve else ()
    point = next((point for point in points if point.case_id == case.id), None)
    if point is not None and point.efficiency_pct is not None and by_id:
        base = next(first for first in points if first.series == point.series)
        return [f"{point.efficiency_pct:.0f} % efficiency beside {base.case_id}"]
    variant = next((variant for variant in summary.variants if variant.case_id == case.id), None)
    base_variant = next((variant for variant in summary.variants if variant.case_id in by_id), None)
    if variant is not None and base_variant is not None and variant.ratio:
        return [f"{variant.ratio:.2f} times {base_variant.case_id}"]
    return []


# --- cells --------------------------------------------------------------------------------------------------------


def _table(
    title: str, parts: Sequence[_Part | None], members: Sequence[Any], evidence: str, cases: Sequence[str], *,
    wide: str | None = None, droppable: Sequence[str] = (), repeats: int = 0, omitted: int = 0,
    whole: Sequence[str] = (),
) -> Table:  # fmt: skip
    columns_with_cells = [(column, [cell(member) for member in members]) for column, cell in filter(None, parts)]
    filled_columns = [
        (column, cells) for column, cells in columns_with_cells if any(cell not in {None, ""} for cell in cells)
    ]
    names = [column.name for column, _ in filled_columns]
    rows = tuple(zip(*(cells for _, cells in filled_columns), strict=True))
    title += f" ({plural(omitted, 'case')} more: `--full`)" if omitted > 0 else ""
    return Table(
        TABLE, title.strip(), tuple(column for column, _ in filled_columns), rows, wide=wide if wide in names else None,
        least=tuple(name for name in droppable if name in names), repeats=repeats,
        whole=tuple(name for name in whole if name in names),
        evidence=(Evidence(evidence, tuple(cases)),),
    )  # fmt: skip


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(value: float) -> str:
    return f"{value:g}"


def _gpu_work_of_variant(by_id: Mapping[str, CaseSummary], variant: Variant) -> float | None:
    """GPU work of an iteration; None where there are none: spans that differ are not compared."""
    spent = by_id[variant.case_id].spent
    return spent.gpu_ns if spent and spent.is_iteration else None


def _operations_of_variant(by_id: Mapping[str, CaseSummary], variant: Variant) -> float | None:
    spent = by_id[variant.case_id].spent
    return spent.operations if spent and spent.is_iteration else None


def _busy_share(case: CaseSummary) -> float | None:
    """How much of an iteration the mean GPU is at work; of GPUs that processes share the only one that is known."""
    spent = spent_of(case)
    return busy_pct(case) if spent is None or spent.idle_pct is None else 100 - spent.idle_pct


def _idle_pct(case: CaseSummary) -> float | None:
    busy = _busy_share(case)
    return None if busy is None else 100 - busy


def _gain(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None


def _milliseconds(before: float | None, after: float | None) -> str:
    return f"{_three(before)} -> {_three(after)}"


def _three(ns: float | None) -> str:
    return f"{ns / 1e6:.3g}" if ns else "no iterations"


def _counts(before: float | None, after: float | None) -> str:
    return f"{before:,.0f} -> {after:,.0f}" if before and after else "-"


def _factor_text(times: float) -> str:
    return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"


def _change_words(ratio: float, unit: str, *, is_better: bool) -> str:
    """How a value changed: `takes 46 % longer` of a time, `is 9 % slower` of a rate."""
    share = f"{abs(100 * (ratio - 1)):.0f} %"
    if is_time(unit):
        return f"takes {share} {'longer' if ratio > 1 else 'less time'}"
    if is_better == (ratio >= 1):
        return f"is {share} {'faster' if is_better else 'slower'}"
    return f"is {share} {'more' if ratio > 1 else 'less'}"
