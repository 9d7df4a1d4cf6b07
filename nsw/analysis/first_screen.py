"""The first screen of an answer: a headline, one table with a row a case, and the sentences that weigh most.

Which table it is follows from what the recipe varies and what was measured: how a figure scales, variants beside a
baseline, or programs and parameters beside each other; of a single case where its time goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Cell, Column, Evidence, Finding, Note, Table
from nsw.analysis.comparison import best_figure, is_time
from nsw.analysis.counter_rules import LATENCY, about, bound_by, room_pct
from nsw.analysis.kernel_classes import COPIES, NCCL, SETS
from nsw.analysis.paired_rules import contradicted
from nsw.analysis.spent import NOT_SHOWN
from nsw.analysis.timeline_rules import busy_pct, idle_reason, slowed_times
from nsw.metrics import find
from nsw.quantities import duration, number, rate
from nsw.tables.names import numbered
from nsw.wording import first_of, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.comparison import Scaling, ScalingPoint, Variant
    from nsw.analysis.hits import Hit
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.spent import Part, Spent
    from nsw.analysis.summary import Summary

__all__ = ["FAILED", "HEADLINE", "TABLE", "first_screen", "headline_of", "where_time_goes"]

HEADLINE: Final = "headline"
TABLE: Final = "answer"
FAILED: Final = "program failed"  # the finding that a report's program failed
_ROWS: Final = 15  # of the table; of more cases those that weigh most
_WASTE_PCT: Final = 20.0  # of a case's time that could be won, from which it counts as wasted
_NEAR: Final = 0.95  # of the best
_SLOWED: Final = 1.1  # times, from which a profiler is mentioned
_NAMED: Final = 4
_PARTS: Final = 8  # of a single case
_NEARLY_ALL: Final = 0.8  # of a class: then its largest kernel says more
_RANGES: Final = 2  # of columns, in a headline
_ALL_PCT: Final = 99.5
_FEW_CALLS: Final = 20  # of which shares say nothing
_MOSTLY: Final = 0.5  # of all GPU time
_TELLING_PCT: Final = 5.0  # of a table of operators, ranges or system calls
_LARGE: Final = 64 << 10  # bytes of a copy, below which its speed says little
_SMALL: Final = 0.005  # of its time: what is less has no row
_LISTED: Final = 2  # outliers, and things that are missing; the full answer has all

_Part = tuple[Column, "Callable[[Any], Cell]"]


@dataclass(frozen=True, slots=True)
class _Screen:
    """What a kind of answer says: its headline without the conditions, its table, and which hits the table tells."""

    said: str
    table: Table | None
    in_table: frozenset[tuple[str, str]] = frozenset()  # (case, rule)


def first_screen(summary: Summary) -> list[Block]:
    """Headline, table, notes and findings, in this order."""
    screen = _of_kind(summary)
    conditions = _conditions(summary)
    blocks: list[Block] = [Note(HEADLINE, screen.said + (f" ({conditions})" if conditions else ""), tone="heading")]
    if screen.table is not None and screen.table.rows:
        blocks.append(screen.table)
    blocks += _notes(summary)
    return [*blocks, *(_unless_in_table(finding, screen.in_table) for finding in summary.findings)]


def headline_of(blocks: Iterable[Block]) -> str:
    """The headline of an answer."""
    return next(block.text for block in blocks if isinstance(block, Note) and block.name == HEADLINE)


def _unless_in_table(finding: Finding, in_table: frozenset[tuple[str, str]]) -> Finding:
    """A finding that the table shows already is for the full answer."""
    shown = finding.cases and all((case, finding.name) in in_table for case in finding.cases)
    return replace(finding, shown="full") if shown else finding


def _of_kind(summary: Summary) -> _Screen:
    if summary.curve is not None and any(point.figure is not None for point in summary.curve.points):
        return _scaling(summary, summary.curve)
    if any(variant.figure is not None for variant in summary.variants):
        return _variants(summary)
    if len(summary.cases) == 1:
        return _single(summary, summary.cases[0])
    return _beside(summary)


def _conditions(summary: Summary) -> str:
    """On what hardware, by which passes, how often each case ran."""
    gpus = sorted({gpu for case in summary.cases for gpu in case.gpus})
    hardware = [gpu.removeprefix("NVIDIA ") for gpu in gpus[:2]]
    counts = {figure.runs for case in summary.cases for figure in case.figures}
    runs = sorted((counts or {case.measured for case in summary.cases}) - {0}) if summary.site else []
    often = (
        [plural(runs[0], "run") + " each" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs a case"] if runs else []
    )
    profiled = all(figure.profiled for case in summary.cases for figure in case.figures)
    with_figures = any(case.figures for case in summary.cases)
    passes = ["profiled"] if with_figures and profiled else []
    return ", ".join([*hardware, *passes, *often])


def _notes(summary: Summary) -> list[Block]:
    """What a profiler changed, and what is missing, a line each."""
    slowed = [(times, case.id) for case in summary.cases if (times := slowed_times(case)) >= _SLOWED]
    slowest = sorted(slowed, key=lambda item: -item[0])
    names = first_of([f"{case} {times:.1f}x" for times, case in slowest], _NAMED)
    notes: list[Block] = [Note("note", summary.note, tone="aside")] if summary.note else []
    if slowest:
        notes.append(
            Note("slowed", f"The profiler slowed {names}: shares of idle time are corrected for it.", tone="aside")
        )
    notes += _unmeasured(summary)
    odd = (Note("outlier", f"outlier: {o.run}: {o.text}", tone="warning") for o in summary.outliers[:_LISTED])
    return [*notes, *odd, *_missing(summary.missing)]


def _unmeasured(summary: Summary) -> list[Block]:
    """The pass that rules without data would need, as a line of the recipe."""
    traced = any(case.spent for case in summary.cases)
    counted = any(case.kernels for case in summary.cases)
    if not summary.has_gpus or (traced and counted):
        return []
    what, add, shown = "What the GPU does meanwhile", "timeline: {}", "full"
    if traced:
        what, add = "What binds the kernels", "counters: {kernels: {cover: 80%}}"
    elif counted:
        what = "Idle time, copies and communication"
    elif not any(case.functions for case in summary.cases):
        shown = "always"
    text = f"Not measured: {what[0].lower()}{what[1:]}. `- {add}` among the recipe's passes shows it."
    return [Note("passes", text, tone="aside", shown=shown)]  # type: ignore[arg-type]  # one of its words


def _missing(lines: Sequence[str]) -> list[Block]:
    """The first of what is missing, and how much more is: the full answer has all."""
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return [Note("missing", line + more, tone="warning") for line in lines[:1]]


# --- scaling ------------------------------------------------------------------------------------------------------


def _scaling(summary: Summary, curve: Scaling) -> _Screen:
    """A row a series: its ends, and where an iteration of the larger one goes; of one series a row a point."""
    by_id = {case.id: case for case in summary.cases}
    ends = [(first, last) for first, last in _ends(curve) if last.figure is not None]
    single = len({repr(point.series) for point in curve.points}) == 1
    known = [(first, last) for first, last in ends if last.efficiency_pct is not None and last is not first]
    unit = curve.unit or curve.figure
    spans = any(by_id[last.case_id].spent and by_id[last.case_id].spent.span_ns for _, last in ends)  # type: ignore[union-attr]
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), _series(name)) for name in curve.points[0].series if not single),
        (Column(f"param.{curve.axis}", curve.axis, "plain"), lambda e: e[1].at) if single else None,
        (Column("first", f"{_axis(ends, curve, 0)}, {unit}", "number"), lambda e: e[0].figure) if not single else None,
        (Column("last", unit if single else _axis(ends, curve, 1), "number"), lambda e: e[1].figure),
        (Column("efficiency_pct", "efficiency", "whole %"), lambda e: e[1].efficiency_pct),
        (Column("efficiency_range", "its range"), _efficiency_range)
        if any(point.runs > 1 for point in curve.points) else None,
        (Column("step", "iteration, ms"), _spans(by_id)) if spans else None,
        *(
            (Column(name, title, "whole %"), _share(by_id, name))
            for name, title in (
                ("computing_pct", "computing"), ("exposed_pct", "NCCL alone"), ("hidden_pct", "hidden"),
                ("most_idle_pct", "idle GPU"),
            )
            if any(_share(by_id, name)(end) for end in ends)
        ),
    ]  # fmt: skip
    table = _table("", parts, ends, "scaling",
                   [last.case_id for _, last in ends], least=("hidden_pct", "step"))  # fmt: skip
    if not known:
        return _Screen(f"{summary.campaign}: nothing to scale from was measured", table)
    largest = [e for e in known if e[1].at == max(end[1].at for end in known)]
    best, worst = (pick(largest, key=lambda e: e[1].efficiency_pct or 0.0) for pick in (max, min))
    said = f"{_efficiency(best)} efficiency at {curve.axis}={_plain(best[1].at)}"
    if len(largest) > 1:
        said += f", {_where(best[1])}; {_efficiency(worst)} at {_where(worst[1])}"
    return _Screen(said + _why_lost(summary.hits.get(worst[1].case_id, ())), table)


def _efficiency_range(ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    """Between the worst run beside the best of the base, and the other way round."""
    first, last = ends
    known = (first.least, first.most, last.least, last.most, first.figure, last.figure)
    if last is first or last.efficiency_pct is None or not all(known):
        return ""
    low = last.efficiency_pct * (last.least / last.figure) / (first.most / first.figure)  # type: ignore[operator]  # all known
    high = last.efficiency_pct * (last.most / last.figure) / (first.least / first.figure)  # type: ignore[operator]
    return f"{low:.0f} to {high:.0f} %"


def _ends(curve: Scaling) -> list[tuple[ScalingPoint, ScalingPoint]]:
    series: dict[str, list[ScalingPoint]] = {}
    for point in curve.points:
        series.setdefault(repr(point.series), []).append(point)
    if len(series) == 1:
        return [(curve.points[0], point) for point in curve.points]
    return [(some[0], some[-1]) for some in series.values()]


def _axis(ends: Sequence[tuple[ScalingPoint, ScalingPoint]], curve: Scaling, which: int) -> str:
    values = {end[which].at for end in ends}
    return f"{curve.axis}={_plain(values.pop())}" if len(values) == 1 else ("least", "most")[which]


def _series(name: str) -> Callable[[Any], Cell]:
    return lambda ends: _cell(ends[1].series[name])


def _share(by_id: Mapping[str, CaseSummary], name: str) -> Callable[[Any], Cell]:
    def share(ends: tuple[ScalingPoint, ScalingPoint]) -> float | None:
        spent = by_id[ends[1].case_id].spent
        return getattr(spent, name) if spent else None

    return share


def _spans(by_id: Mapping[str, CaseSummary]) -> Callable[[Any], Cell]:
    return lambda ends: _milliseconds(_span(by_id, ends[0]), _span(by_id, ends[1]))


def _span(by_id: Mapping[str, CaseSummary], point: ScalingPoint) -> float | None:
    spent = by_id[point.case_id].spent
    return spent.span_ns if spent else None


def _efficiency(ends: tuple[ScalingPoint, ScalingPoint]) -> str:
    return f"{ends[1].efficiency_pct:.0f} %"


def _where(point: ScalingPoint) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.series.items()) or point.case_id


def _why_lost(hits: Sequence[Hit]) -> str:
    """What takes most of the least efficient case, in a few words."""
    hit = next((hit for hit in hits if hit.gain_pct >= _WASTE_PCT / 2), None)
    return f": {hit.what.partition(',')[0]}" if hit else ""


# --- variants -----------------------------------------------------------------------------------------------------


def _variants(summary: Summary) -> _Screen:
    """Two variants: a row a series, from one to the other; more: a row a variant."""
    series: dict[str, list[Variant]] = {}
    for variant in summary.variants:
        series.setdefault(repr(variant.series), []).append(variant)
    values = list(dict.fromkeys(repr(v.variant) for v in summary.variants))
    if len(values) == 2 and all(len(some) == 2 for some in series.values()):
        return _pairs(summary, [(some[0], some[1]) for some in series.values()])
    return _each_variant(summary)


def _pairs(summary: Summary, pairs: Sequence[tuple[Variant, Variant]]) -> _Screen:
    by_id = {case.id: case for case in summary.cases}
    pairs = [
        (b, a) if a.variant != summary.compared_to and b.variant == summary.compared_to else (a, b) for a, b in pairs
    ]
    unit = next((v.unit for pair in pairs for v in pair if v.unit), None) or summary.figure or "figure"
    first, second = pairs[0]
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda p, name=name: _cell(p[0].series[name])) for name in first.series),
        (Column("figure", f"{unit}, {_word(first.variant)} -> {_word(second.variant)}"),
         lambda p: f"{number(p[0].figure)} -> {number(p[1].figure)}"),
        (Column("ratio", "gain", "times"), lambda p: p[1].ratio),
        (Column("gpu_ns", "GPU ms/iteration"), lambda p: _milliseconds(*(_gpu(by_id, v) for v in p)))
        if any(_gpu(by_id, v) for p in pairs for v in p) else None,
        (Column("gpu_ratio", "its gain", "times"), lambda p: _gain(*(_gpu(by_id, v) for v in p)))
        if any(_gpu(by_id, v) for p in pairs for v in p) else None,
        (Column("operations", "operations"), lambda p: _counts(*(_operations(by_id, v) for v in p)))
        if any(_operations(by_id, v) for p in pairs for v in p) else None,
        (Column("idle_pct", f"GPU idle, {_word(second.variant)}", "whole %"), lambda p: _idle(by_id[p[1].case_id]))
        if any(_idle(by_id[p[1].case_id]) is not None for p in pairs) else None,
    ]  # fmt: skip
    table = _table("", parts, pairs, "compare",
                   [v.case_id for pair in pairs for v in pair])  # fmt: skip
    known = [(pair, pair[1].ratio) for pair in pairs if pair[1].ratio]
    better, worse = ([p for p, r in known if sign * (r - 1) > 0] for sign in (1, -1))
    what = f"{summary.compared}={_word(second.variant)}"
    if not known:
        return _Screen(f"{what}: nothing to compare with {_word(first.variant)} was measured", table)
    if len(known) == 1:
        ((_, ratio),) = known
        return _Screen(f"{what} is {_faster(ratio)} than {_word(first.variant)} ({summary.figure})", table)
    said = [f"{verb} {len(some)}" for verb, some in (("helps", better), ("slows", worse)) if some]
    ranged = f"{min(r for _, r in known):.2f} to {max(r for _, r in known):.2f} times"
    return _Screen(f"{what} {', '.join(said)} of {len(known)} ({ranged} {summary.figure})", table)


def _each_variant(summary: Summary) -> _Screen:
    by_id = {case.id: case for case in summary.cases}
    variants = summary.variants
    unit = next((v.unit for v in variants if v.unit), None) or summary.figure or "figure"
    kernels = any(by_id[v.case_id].kernels for v in variants)
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda v, name=name: _cell(v.series[name])) for name in variants[0].series),
        (Column("variant", summary.compared or "variant"), lambda v: _cell(v.variant)),
        (Column("figure", unit, "number"), lambda v: v.figure),
        (Column("ratio", f"times {_word(summary.compared_to)}", "times"), lambda v: v.ratio),
        (Column("gpu_ns", "GPU time an iteration", "ns"), lambda v: _gpu(by_id, v))
        if any(_gpu(by_id, v) for v in variants) else None,
        *(_kernel_parts(by_id) if kernels else ()),
        (Column("what", "what is wrong"), lambda v: _what(summary.hits.get(v.case_id, ()))),
    ]  # fmt: skip
    void = contradicted(variants, by_id)
    series: dict[str, list[Variant]] = {}
    for variant in variants:
        series.setdefault(repr(variant.series), []).append(variant)
    # first the series that can be trusted and does most work
    most = sorted(series.values(), key=lambda some: (any(v.case_id in void for v in some), -_work(by_id, some)))
    rows = [variant for some in most for variant in some]
    repeats = len(variants[0].series)
    table = _table("", parts, rows, "compare", [v.case_id for v in variants],
                   repeats=repeats, least=("occupancy",), wide="what")  # fmt: skip
    first = rows[0].series
    alike = [v for v in most[0] if v.ratio]
    if not alike:
        return _Screen(f"{summary.compared}: nothing to compare with {_word(summary.compared_to)} was measured", table)
    best = max(alike, key=lambda v: v.ratio or 0.0)
    times = {_word(v.variant): (best.ratio or 0.0) / (v.ratio or 1.0) for v in alike if v is not best}
    others = [f"{word} {_factor(factor)}x" for word, factor in times.items()]
    at = f" at {', '.join(f'{name}={value}' for name, value in first.items())}" if first else ""
    in_table = frozenset((case, hits[0].rule) for case, hits in summary.hits.items() if hits)
    slower = f"; slower: {first_of(others, _NAMED)}" if others else ""
    return _Screen(f"{_word(best.variant)} is the fastest{at}{slower}", table, in_table)


def _work(by_id: Mapping[str, CaseSummary], some: Iterable[Variant]) -> float:
    """GPU time of a series, however it was measured."""
    cases = [by_id[variant.case_id] for variant in some]
    return sum(case.gpu_ns or sum(kernel.time_ns or 0.0 for kernel in case.kernels) for case in cases)


def _kernel_parts(by_id: Mapping[str, CaseSummary]) -> list[_Part]:
    def top(name: str) -> Callable[[Any], Cell]:
        return lambda of: next((getattr(k, name) for k in by_id[of.case_id].kernels[:1]), None)

    def time(of: Any) -> Cell:
        return next((k.launch_ns for k in by_id[of.case_id].kernels[:1]), None)

    return [
        (Column("kernel_ns", "kernel", "ns"), time),
        (Column("dram_pct", "of DRAM", "whole %"), top("dram_pct")),
    ]


# --- programs and parameters beside each other ---------------------------------------------------------------------


def _beside(summary: Summary) -> _Screen:
    """A row a case: its figure, how busy its GPU is, what is wrong and what to do."""
    cases = summary.cases
    names = [name for name in cases[0].params if len({repr(c.params.get(name)) for c in cases}) > 1] if cases else []
    figure = _first_figure(cases)
    hits = summary.hits
    kernels = any(case.kernels for case in cases)
    parts: list[_Part | None] = [
        *((Column(f"param.{name}", name), lambda c, name=name: _cell(c.params.get(name))) for name in names),
        (Column("case", "case" if summary.site else "report"), lambda c: c.id) if not names else None,
        (Column("gpu_ns", "GPU time", "ns"), lambda c: c.gpu_ns) if not figure else None,
        (Column("top", "most of it", "name"), _most_of) if not figure else None,
        (Column("figure", figure[1], "number"), lambda c: _value(c, figure[0])) if figure else None,
        (Column("busy_pct", "GPU busy", "whole %"), busy_pct) if any(busy_pct(c) is not None for c in cases) else None,
        *((_of_case(part) for part in _kernel_parts({c.id: c for c in cases})) if kernels else ()),
        (Column("what", "what is wrong"), lambda c: _what(hits.get(c.id, ()))),
        (Column("do", "do"), lambda c: next((hit.do for hit in hits.get(c.id, ())), "")),
    ]
    if not any(hits.values()):
        parts = parts[:-2]
    order = sorted(range(len(cases)), key=lambda at: (-_weight(hits.get(cases[at].id, ())), at))
    shown = sorted(order[:_ROWS])
    table = _table("", parts, [cases[at] for at in shown], "figures", [case.id for case in cases],
                   wide="what" if figure else "top", least=("kernel_ns",),
                   more=len(cases) - len(shown)) if cases else None  # fmt: skip
    in_table = frozenset((cases[at].id, hits[cases[at].id][0].rule) for at in shown if hits.get(cases[at].id))
    wasted = sum(_weight(some) >= _WASTE_PCT for some in hits.values())
    said = f"{summary.campaign.rsplit('-', 3)[0] if summary.site else summary.campaign}: "
    count = plural(len(cases), "case" if summary.site else "result")
    count += " with GPU work" if not summary.site and all(case.gpu_ns for case in cases) else ""
    if any(hits.values()):
        said += f"{wasted} of {count} could be clearly faster" if wasted else "no large loss was seen"
    elif figure or any(_most_of(case) for case in cases):
        said += count
    else:
        return _Screen(said + f"nothing was measured of {count}", None)
    return _Screen(said + (_best(cases, names, figure) if figure else ""), table, in_table)


def _most_of(case: CaseSummary) -> Cell:
    """What takes most of a case's time, and how much of it."""
    shares = case.hotspots or case.functions or case.api
    if shares:
        return f"{shares[0].share_pct:.0f} % {shares[0].short_name}"
    return next((kernel.short_name for kernel in case.kernels), "")


def _best(cases: Sequence[CaseSummary], names: Sequence[str], figure: tuple[str, str]) -> str:
    """Where a figure is best, and along one number from where on it hardly gains."""
    less = is_time(figure[1])
    known = [(value, case) for case in cases if (value := _value(case, figure[0]))]
    if (
        len(known) < 2
        or not names
        or not all(isinstance(case.params.get(name), int | float) for case in cases for name in names)
    ):
        return ""
    value, best = (min if less else max)(known, key=lambda item: item[0])
    at = ", ".join(f"{name}={best.params[name]}" for name in names)
    said = f"; best {number(value)} {figure[1]} at {at}"
    if len(names) > 1 or len(known) < 3:
        return said
    near = [c.params[names[0]] for v, c in known if (v <= value / _NEAR if less else v >= value * _NEAR)]
    knee = min(near)
    return said + (f", within 5 % of it from {knee} on" if knee < best.params[names[0]] else "")


def _of_case(part: _Part) -> _Part:
    """A part that looks at `case_id`, for a case."""
    column, cell = part

    @dataclass(frozen=True, slots=True)
    class Named:
        case_id: str

    return column, lambda case: cell(Named(case.id))


def _first_figure(cases: Iterable[CaseSummary]) -> tuple[str, str] | None:
    return next(((f.name, f.unit or f.name) for case in cases for f in case.figures), None)


def _value(case: CaseSummary, name: str) -> float | None:
    figure = best_figure(case, name)
    return figure.median if figure else None


def _weight(hits: Sequence[Hit]) -> float:
    return hits[0].gain_pct if hits else 0.0


def _what(hits: Sequence[Hit]) -> str:
    return hits[0].what if hits else ""


# --- a single case ------------------------------------------------------------------------------------------------


def _single(summary: Summary, case: CaseSummary) -> _Screen:
    """Where the time of a case goes: GPU work by class, else kernels' counters, else functions, operators, calls."""
    hits = summary.hits.get(case.id, ())
    figure = _first_figure([case])
    said = [f"{figure[0]} {number(_value(case, figure[0]))} {figure[1]}"] if figure else []
    if case.spent is not None and case.spent.span_ns is not None:
        by_kernels = case.iterations is not None and case.iterations.found_by == "kernel_sequence"
        span = duration(case.spent.span_ns)
        said.append(f"its kernels repeat every {span}" if by_kernels else f"an iteration takes {span}")
    found = _parts_of(case) or _kernels_of(case) or _functions_of(case) or _rows_of(case, summary)
    of_kernels = found is not None and case.spent is None and bool(case.kernels)  # hits are of one of them
    telling = bool(hits) and not of_kernels and hits[0].gain_pct >= _WASTE_PCT
    idle = f"GPU idle {hits[0].size}: " if telling and hits[0].rule.startswith("idle") else ""
    said += [idle + hits[0].what] if telling else [found[0]] if found else []
    if of_kernels and hits and len(case.kernels) == 1 and hits[0].rule != "latency-bound":  # which is said already
        said.append(hits[0].what)
    said += _mostly_around(case) if case.spent is not None and case.spent.is_iteration else []
    if any(finding.name == FAILED for finding in summary.findings):
        said.insert(0, "the program failed")
    nothing = "nothing was read" if summary.site else "has only what `--full` prints"
    return _Screen(f"{case.id}: {', '.join(said) or nothing}", found[1] if found else None)


def _mostly_around(case: CaseSummary) -> list[str]:
    """That most GPU time is not that of the iterations, and what takes it."""
    whole = sum(phase.gpu_ns for phase in case.phases)
    around = [phase for phase in case.phases if phase.phase != "steady"]
    outside = sum(phase.gpu_ns for phase in around)
    if not whole or outside < _MOSTLY * whole:
        return []
    most = max(around, key=lambda phase: phase.gpu_ns)
    what = f", most in {most.what[0][0]}" if most.what else ""
    return [f"but {100 * outside / whole:.0f} % of all GPU time is outside of iterations{what}"]


_Section = tuple[str, Table]  # the most telling of a table in a few words, and the table


_CAUSES: Final = {
    "launches": "launches", "synchronisation": "waits for the GPU", "gap": "one gap", "call": "a CUDA call",
    "host": "the host",
}  # fmt: skip


def where_time_goes(case: CaseSummary) -> list[Block]:
    """An iteration of a case by class of GPU work, and idle time with its cause; else all its GPU work by class."""
    found = _parts_of(case)
    return [replace(found[1], title="where the time goes", name="spent", case=case.id)] if found else []


def _parts_of(case: CaseSummary) -> _Section | None:
    spent = case.spent
    if spent is None or not spent.gpu_ns:
        return None
    whole = spent.span_ns or spent.gpu_ns
    parts = [part for part in spent.shown if part.ns >= _SMALL * whole][:_PARTS]  # what rounds to 0 % has no row
    speeds = {copy.name: copy.bytes_per_s for copy in case.copies if (copy.total_bytes or 0.0) >= _LARGE * copy.calls}
    rows: list[tuple[Cell, ...]] = [
        (_with_alone(p.name, spent), p.ns, 100 * p.ns / whole, p.operations or None, speeds.get(p.name), _largest(p))
        for p in parts
    ]
    if (more := spent.shown[len(parts) :]) and (ns := sum(p.ns for p in more)) >= _SMALL * whole:
        rows.append(("the rest", ns, 100 * ns / whole, sum(p.operations for p in more), None, ""))
    if spent.idle_pct is not None:
        cause = f" ({_CAUSES[idle_reason(case.idle_gpu)]})" if case.idle_gpu is not None else ""
        rows.append((f"GPU idle{cause}", spent.idle_pct * whole / 100, spent.idle_pct, None, None, ""))
    of = "of an iteration" if spent.is_iteration else "of GPU time"
    columns = (Column("part", "GPU work", "name"), Column("ns", "time", "ns"), Column("share_pct", of, "whole %"),
               Column("operations", "operations", "count"), Column("bytes_per_s", "speed", "byte/s"),
               Column("top", "largest, of it", "name"))  # fmt: skip
    return _most_work(spent), _filled(
        columns, rows, "hotspots", case, wide="top" if any(row[-1] for row in rows) else "part"
    )


def _with_alone(name: str, spent: Spent) -> str:
    """A part's name; NCCL's with what of the span it takes alone: the rest is beside other parts."""
    known = name == NCCL and spent.exposed_pct is not None
    return f"{name} (alone {spent.exposed_pct:.0f} %)" if known else name


def _most_work(spent: Spent) -> str:
    """What takes most of the GPU's work, in a few words."""
    first = next((part for part in spent.shown if part.name != NOT_SHOWN), spent.shown[0])
    if not any(part.name not in {COPIES, SETS} for part in spent.parts):
        return f"{plural(round(spent.operations), 'GPU operation')} and no kernel, {duration(spent.gpu_ns)}"
    if first.name == NCCL and spent.exposed_pct is not None:
        return f"NCCL alone takes {spent.exposed_pct:.0f} % of it"
    of = "its GPU time" if spent.is_iteration else "GPU time"
    said = f"{100 * first.ns / spent.gpu_ns:.0f} % of {of} is {first.name}"
    if first.top and first.top_ns >= _NEARLY_ALL * first.ns and first.name not in {COPIES, NCCL}:
        said = f"{100 * first.top_ns / spent.gpu_ns:.0f} % of {of} is {first.top}"
    complete = not any(part.name == NOT_SHOWN for part in spent.parts)
    if not spent.is_iteration and spent.operations < _FEW_CALLS and complete:
        said += f" ({plural(round(spent.operations), 'operation')}, {duration(spent.gpu_ns)})"
    return said


def _filled(
    columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]], evidence: str, case: CaseSummary, *, wide: str
) -> Table:
    """A table of the columns that have a value."""
    kept = [n for n in range(len(columns)) if any(row[n] not in {None, ""} for row in rows)]
    names = [columns[n].name for n in kept]
    return Table(
        TABLE, "", tuple(columns[n] for n in kept), tuple(tuple(row[n] for n in kept) for row in rows),
        wide=wide if wide in names else None, evidence=(Evidence(evidence, (case.id,)),),
    )  # fmt: skip


def _measured_of(kernel: KernelRow) -> list[str]:
    """What was measured of a kernel of which it is not known what binds it."""
    reached, limit = kernel.achieved_occupancy_pct, kernel.theoretical_occupancy_pct
    shares = (
        ("SM at {} of its peak", kernel.sm_pct), ("DRAM at {} of its peak", kernel.dram_pct),
        ("{} of the loaded bytes used", kernel.metrics.get("gld_efficiency")),
        ("issue slots {} used", kernel.metrics.get("issue_slot_utilization")),
        (f"occupancy {{}}{'' if limit is None else f' of at most {limit:.0f} %'}", reached),
    )  # fmt: skip
    known = [text.format(f"{share:.0f} %") for text, share in shares if share]
    moved = kernel.dram_bytes_per_s if kernel.launch_ns and kernel.dram_pct is None else None
    return known + ([f"DRAM {rate(moved)}"] if moved else [])


def _largest(part: Part) -> str:
    """What takes most of a class, and its share where it is not all."""
    share = 100 * part.top_ns / part.ns if part.ns else 0.0
    return part.top if share >= _ALL_PCT or not part.top else f"{share:.0f} % {part.top}"


def _kernels_of(case: CaseSummary) -> _Section | None:
    """A row a kernel, those that take most."""
    if not case.kernels:
        return None
    columns = (
        Column("kernel", "kernel", "name"), Column("share_pct", "share", "whole %"), Column("ns", "time", "ns"),
        Column("bound_by", "bound by"), Column("of_roof_pct", "of peak", "whole %"),
        Column("dram_bytes_per_s", "DRAM", "byte/s"), Column("sm_efficiency", "SMs at work", "whole %"),
        Column("occupancy_pct", "occupancy", "whole %"), Column("gld_efficiency", "loads used", "whole %"),
        Column("gst_efficiency", "stores used", "whole %"), Column("do", "what to do"),
    )  # fmt: skip
    names = numbered([k.short_name for k in case.kernels])
    rows = [(name, *_counted(k, alone=len(names) == 1)) for name, k in zip(names, case.kernels, strict=True)]
    table = _filled(columns, rows, "kernels", case, wide="kernel")
    if len(table.columns) == 1:
        table = _metrics_of(case)
    return _kernels_said(case.kernels, table), replace(table, rows=table.rows[:_ROWS])


def _metrics_of(case: CaseSummary) -> Table:
    """Kernels by the metrics themselves, for reports that have none of a kernel's own columns."""
    columns = (Column("kernel", "kernel", "name"), Column("metric", "metric"), Column("value", "value", "number"),
               Column("unit", "unit"))  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (kernel.short_name, name, value, metric.unit if (metric := find(name)) else "")
        for kernel in case.kernels for name, value in kernel.metrics.items()
        if " " not in name and not name.endswith("_frequency")  # labels have units of their own
    ]  # fmt: skip
    return _filled(columns, rows, "kernels", case, wide="kernel")


def _counted(kernel: KernelRow, *, alone: bool) -> tuple[Cell, ...]:
    """The cells of a kernel; `alone`: it is the only one, whose share says nothing."""
    limit, of = bound_by(kernel), kernel.metrics
    return (
        None if alone else kernel.share_pct, kernel.launch_ns, limit, None if limit is None else 100 - room_pct(kernel),
        kernel.launch_ns and kernel.dram_bytes_per_s, of.get("sm_efficiency") if kernel.sm_pct is None else None,
        kernel.achieved_occupancy_pct, of.get("gld_efficiency") or None,  # 0 %: it has none
        of.get("gst_efficiency") or None, about(kernel, 100.0 if alone else kernel.share_pct),
    )  # fmt: skip


def _kernels_said(kernels: Sequence[KernelRow], table: Table) -> str:
    """The most telling of kernels with counters: what the largest is bound by, or what was measured."""
    first, limit = kernels[0], bound_by(kernels[0])
    said = plural(len(kernels), "kernel")
    if not any(kernel.metrics for kernel in kernels):
        return f"{said}, of which no metric has a value"
    if len(kernels) == 1:
        each = " a launch" if first.launches > 1 else ""
        said = first.short_name + (f" takes {duration(first.launch_ns)}{each}" if first.launch_ns else "")
    elif first.share_pct is None:
        return f"{said}, without times" + "".join(f", {text}" for text in _ranges(table)[:_RANGES])
    else:
        said = f"{first.short_name} takes {first.share_pct:.0f} % of the kernels' time"
    if limit is not None:
        return (
            said + f", bound by {limit}" + ("" if limit == LATENCY else f", {100 - room_pct(first):.0f} % of its peak")
        )
    if first.launch_ns is None and not _measured_of(first):
        return f"{said} has only {plural(len(first.metrics), 'metric')}, and no time"
    return ", ".join((said, *_measured_of(first)))


def _ranges(table: Table) -> list[str]:
    """The least and the greatest of each column of shares."""
    ranges = []
    for n, column in enumerate(table.columns):
        known = [cell for row in table.rows if isinstance(cell := row[n], float)]
        if column.unit == "whole %" and known:
            ends = dict.fromkeys((f"{min(known):.0f}", f"{max(known):.0f}"))
            ranges.append(f"{column.title} {' to '.join(ends)} %")
    return ranges


_SHARES: Final = (Column("name", "name", "name"), Column("ns", "time", "ns"), Column("share_pct", "share", "whole %"),
                  Column("calls", "calls", "count"))  # fmt: skip


def _functions_of(case: CaseSummary) -> _Section | None:
    shares = case.functions or case.api
    if not shares:
        return None
    rows = tuple((s.short_name, s.total_ns, s.share_pct, s.calls or None) for s in shares[:_PARTS])
    kind, table = ("CPU time (self)", "functions") if case.functions else ("CUDA API time", "api")
    if not case.functions and (calls := sum(share.calls for share in shares)) < _FEW_CALLS:
        bare = [(name, ns, None, count) for name, ns, _, count in rows]
        return plural(round(calls), "CUDA API call"), _filled(_SHARES, bare, table, case, wide="name")
    said = f"{shares[0].short_name} takes {shares[0].share_pct:.0f} % of {kind}"
    return said, Table(TABLE, "", _SHARES, rows, wide="name", evidence=(Evidence(table, (case.id,)),))


_OTHERS: Final = (
    ("operators", "self_device_ns", "the device's time"), ("operators", "self_cpu_ns", "CPU time"),
    ("nvtx_gpu_summary", "projected_ns", "the ranges' GPU time"), ("nvtx_summary", "total_ns", "the ranges' time"),
    ("osrt_summary", "total_ns", "the time in system calls that do not wait; no GPU work"),
)  # fmt: skip
# calls in which threads wait as a matter of course
_WAITS: Final = re.compile(
    r"poll|ppoll|select|epoll_|sem_|pthread_cond_|futex|wait|nanosleep|usleep|sleep|accept|sigwait"
)


def _is_aside(table: str, row: Mapping[str, Any]) -> bool:
    """Whether a row says nothing more: a call that waits, or what the GPU did for an operator, without CPU time."""
    if table == "operators":
        return row.get("self_cpu_ns") == 0
    return table == "osrt_summary" and _WAITS.search(row["name"]) is not None


def _shares(timed: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    """The share of each row, as printed where the report prints it: it may not show all rows."""
    printed = [row.get(column.removesuffix("_ns") + "_pct") for row in timed]
    if all(share is not None for share in printed):
        return [float(share) for share in printed if share is not None]
    whole = sum(row[column] for row in timed)
    return [100 * row[column] / whole for row in timed]


def _rows_of(case: CaseSummary, summary: Summary) -> _Section | None:
    """The rows that take most time of the first table that has times."""
    for table, column, of in _OTHERS:
        timed = [
            row
            for row in summary.tables.get(table, ())
            if row.get(column) and row.get("name") and not _is_aside(table, row)
        ]
        if timed:
            timed.sort(key=lambda row: -row[column])
            shares = _shares(timed, column)
            rows = tuple(
                (str(row["name"]), row[column], share, row.get("calls"))
                for row, share in zip(timed[:_PARTS], shares, strict=False)
                if share >= _TELLING_PCT
            )
            said = f"{timed[0]['name']} takes {shares[0]:.0f} % of {of}"
            return said, Table(TABLE, "", _SHARES, rows, wide="name", evidence=(Evidence(table, (case.id,)),))
    return None


# --- cells --------------------------------------------------------------------------------------------------------


def _table(
    title: str, parts: Sequence[_Part | None], members: Sequence[Any], evidence: str, cases: Sequence[str], *,
    wide: str | None = None, least: Sequence[str] = (), repeats: int = 0, more: int = 0,
) -> Table:  # fmt: skip
    known = [(column, [cell(member) for member in members]) for column, cell in filter(None, parts)]
    kept = [(column, cells) for column, cells in known if any(cell not in {None, ""} for cell in cells)]
    names = [column.name for column, _ in kept]
    rows = tuple(zip(*(cells for _, cells in kept), strict=True))
    title += f" ({plural(more, 'case')} more that weigh less)" if more > 0 else ""
    return Table(
        TABLE, title.strip(), tuple(column for column, _ in kept), rows, wide=wide if wide in names else None,
        least=tuple(name for name in least if name in names), repeats=repeats,
        evidence=(Evidence(evidence, tuple(cases)),),
    )  # fmt: skip


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain(value: float) -> str:
    return f"{value:g}"


def _gpu(by_id: Mapping[str, CaseSummary], of: Variant) -> float | None:
    """GPU work of an iteration; None where there are none: spans that differ are not compared."""
    spent = by_id[of.case_id].spent
    return spent.gpu_ns if spent and spent.is_iteration else None


def _operations(by_id: Mapping[str, CaseSummary], of: Variant) -> float | None:
    spent = by_id[of.case_id].spent
    return spent.operations if spent and spent.is_iteration else None


def _idle(case: CaseSummary) -> float | None:
    busy = busy_pct(case)
    return None if busy is None else 100 - busy


def _gain(before: float | None, after: float | None) -> float | None:
    return before / after if before and after else None


def _milliseconds(before: float | None, after: float | None) -> str:
    return f"{_three(before)} -> {_three(after)}"


def _three(ns: float | None) -> str:
    return f"{ns / 1e6:.3g}" if ns else "no iterations"


def _counts(before: float | None, after: float | None) -> str:
    return f"{before:,.0f} -> {after:,.0f}" if before and after else "-"


def _factor(times: float) -> str:
    return f"{times:,.0f}" if times >= 10 else f"{times:.2g}"


def _faster(ratio: float) -> str:
    return f"{100 * (ratio - 1):.0f} % faster" if ratio >= 1 else f"{100 * (1 - ratio):.0f} % slower"
