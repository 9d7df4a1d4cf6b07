"""The first screen of an answer: a headline, one table with a row a case, and the sentences that weigh most.

Which table it is follows from what the recipe varies and what was measured: how a figure scales, variants beside a
baseline, or programs and parameters beside each other; of a single case where its time goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Block, Note, Table
from nsw.analysis.comparison import is_time_unit, least_disturbed_figure
from nsw.analysis.conditions import condition_notes
from nsw.analysis.idle_gpu import BUSY_PCT
from nsw.analysis.model_flops import mfu_notes
from nsw.analysis.rules.api_calls import startup_text
from nsw.analysis.rules.counters import largest_remarks, missing_counters_of_largest_kernel, reportable_remarks
from nsw.analysis.rules.idle_causes import SHORT
from nsw.analysis.rules.pairs import SET_ASIDE, cases_with_void_ratio
from nsw.analysis.rules.profiler_cost import profiler_slowdown, recorded_span_text, time_without_profiler
from nsw.analysis.screen_table import (
    CASES_NAMED,
    WASTE_PCT,
    Screen,
    figure_median,
    figure_to_show,
    has_divided_time,
    legend_notes,
    two_digit_factor_text,
)
from nsw.analysis.several_cases import (
    scaling_screen,
    side_by_side_screen,
    unshown_axis_values,
    variants_screen,
)
from nsw.analysis.single_case import NO_GPU_WORK, idle_time_text, main_time_section
from nsw.analysis.steady import time_of_few_iterations
from nsw.quantities import NO_CHANGE, change_of_speed, duration, format_ns, number
from nsw.recipe.matrix import SIDE
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.comparison import Scaling
    from nsw.analysis.rules.hits import Hit
    from nsw.analysis.summary import Summary

__all__ = ["BASES", "FAILED", "HEADLINE", "find_headline", "first_screen_blocks"]

# notes that a screen always has: what shares are not of, what was not joined
BASES: Final = frozenset({"left-out", "outside", "note"})
HEADLINE: Final = "headline"
FAILED: Final = "program failed"  # the finding that a report's program failed
_MOST_OF_MODEL_PCT: Final = 66.0  # of the time of counted kernels
_TELLING_PCT: Final = 5.0  # of a case's time that its first finding wins, from which its headline says that
_HARDLY_BUSY_PCT: Final = 20.0  # below it what a profiler adds to launches decides nothing
_SLOWED: Final = 1.1  # times, from which a profiler is mentioned
_NOISY: Final = 2.0  # times by which repeats of a case differ, from which the headline begins with it
_NONE_BEST: Final = (
    "None is called best: reports lack the work of an iteration, such as images. Divide it by the iteration's time;"
    " `nsw init -- COMMAND` begins a recipe that takes such a figure from what the program prints."
)
_AS_TRACED: Final = (
    "Idle times are those of the traced run: tracing slows each launch, so that the program alone is idle less."
    " Compare the time of a step without the profiler."
)
_OF_START: Final = (
    "These launches look like the start of a program (random numbers, fills, copies): `ncu --launch-skip N` or"
    " `ncu -k KERNEL` measures its loop."
)
# kernels of PyTorch that make a model, one of which draws its random numbers
_MAKES_MODEL: Final = re.compile(r"distribution_|elementwise_kernel|reduce_kernel|CatArray")
_LAYERS: Final = 2  # whose weights are drawn, at least, where launches make a model
_MUCH_OF_IDLE: Final = 0.3  # of the idle time, in short gaps before launches
_LONG_START_NS, _MUCH_OF_ALL = 1e9, 0.25  # before the first CUDA call: at least, and of all the time
_MOST_LEFT_OUT: Final = 0.5  # of the time from the first kernel on, that the headline begins with
_NAMED_PART: Final = 0.05  # of the traced time: what is named outside of the iterations
_MUCH_OF_OUTSIDE: Final = 0.3  # of the GPU's work outside of the iterations, from which a kernel is named
_SLOWER: Final = 2.0  # times the usual time: the iterations' work before them that is worth a word
_LISTED: Final = 2  # outliers, and things that are missing; the full answer has all


def first_screen_blocks(summary: Summary) -> list[Block]:
    """Headline, table, notes and findings, in this order."""
    screen = _choose_screen(summary)
    conditions = _conditions_text(summary)
    blocks: list[Block] = [
        Note(
            HEADLINE,
            _largest_scatter_text(summary) + screen.headline + (f" ({conditions})" if conditions else ""),
            tone="heading",
        )
    ]
    if screen.table is not None and screen.table.rows:
        blocks += [screen.table, *legend_notes(screen.table)]
    blocks += [
        *mfu_notes(summary.cases, summary.model_flops),
        *_unshown_axis_value_blocks(summary),
        *_caveat_blocks(summary),
        *_unshown_figure_blocks(summary, screen.table),
        *_missing_figure_notes(summary),
    ]
    return [*blocks, *summary.findings]


def _unshown_figure_blocks(summary: Summary, table: Table | None) -> list[Block]:
    """The figures that the screen does not show, and how to see them."""
    first = figure_to_show(summary)
    columns = {column.name for column in table.columns} if table else set()
    figures = dict.fromkeys(figure.name for case in summary.cases for figure in case.figures)
    names = [name for name in figures if first and name != first[0] and f"figure.{name}" not in columns]
    text = f"Also measured: {first_names(names, CASES_NAMED)} (`--figure {names[0]}` shows it)." if names else ""
    return [Note("figures", text, tone="aside")] if names and summary.site else []


def _missing_figure_notes(summary: Summary) -> list[Block]:
    """Why none of several reports is the best: a time of an iteration is no rate without the work in it."""
    if (
        summary.site
        or len(summary.cases) < 2
        or figure_to_show(summary)
        or not all(c.iterations for c in summary.cases)
    ):
        return []
    return [Note("best", _NONE_BEST, tone="aside")]


def find_headline(blocks: Iterable[Block]) -> str:
    """The headline of an answer."""
    return next(block.text for block in blocks if isinstance(block, Note) and block.name == HEADLINE)


def _curve_to_show(summary: Summary) -> Scaling | None:
    """The curve of several cases, where a figure was measured at two places at least."""
    curve = summary.curve
    if curve is None or len(summary.cases) == 1:
        return None
    return curve if len({point.at for point in curve.points if point.figure is not None}) > 1 else None


def _unshown_axis_value_blocks(summary: Summary) -> list[Block]:
    """The places of the scaling axis between its ends, and how to see one."""
    curve = _curve_to_show(summary)
    values = unshown_axis_values(curve) if curve is not None and summary.site else []
    if curve is None or not values:
        return []
    text = f"Between these: {curve.axis}={', '.join(values)} (`--case {curve.axis}={values[0]}` shows it)."
    return [Note("between", text, tone="aside")]


def _choose_screen(summary: Summary) -> Screen:
    if len(summary.cases) == 1:
        return _single_case_screen(summary, summary.cases[0])
    if (curve := _curve_to_show(summary)) is not None:
        return scaling_screen(summary, curve)
    if any(variant.figure is not None for variant in summary.variants):
        return variants_screen(summary)
    return side_by_side_screen(summary)


def _largest_scatter_text(summary: Summary) -> str:
    """The case whose repeats differ most, where they differ much; else nothing."""
    name = (figure_to_show(summary) or ("", ""))[0]
    figures = [
        (f, case) for case in summary.cases if (f := least_disturbed_figure(case, name)) is not None and f.least > 0
    ]
    if not figures:
        return ""
    worst, case = max(figures, key=lambda item: item[0].most / item[0].least)
    times = worst.most / worst.least
    if times < _NOISY:
        return ""
    ends = f"{number(worst.least)} to {number(worst.most)} {worst.unit or ''}".strip()
    return f"Repeats of {case.id} differ {two_digit_factor_text(times)} times ({worst.name} {ends}). "


def _conditions_text(summary: Summary) -> str:
    """On what hardware, by which passes, how often each case ran."""
    gpus = sorted({gpu for case in summary.cases for gpu in case.gpus})
    hardware = [gpu.removeprefix("NVIDIA ") for gpu in gpus[:2]]
    name = (figure_to_show(summary) or ("", ""))[0]
    counts = {figure.runs for case in summary.cases if (figure := least_disturbed_figure(case, name)) is not None}
    runs = sorted((counts or {case.measured for case in summary.cases}) - {0}) if summary.site else []
    often = (
        [plural(runs[0], "run") + " each" if len(runs) == 1 else f"{runs[0]} to {runs[-1]} runs a case"] if runs else []
    )
    profiled = all(figure.profiled for case in summary.cases for figure in case.figures)
    with_figures = any(case.figures for case in summary.cases)
    passes = ["profiled"] if with_figures and profiled else []
    base = [f"for comparison {first_names([case.id for case in summary.context], 2)}"] if summary.context else []
    return ", ".join([*hardware, *passes, *often, *base])


def _caveat_blocks(summary: Summary) -> list[Block]:
    """What a profiler changed, and what is missing, a line each."""
    times = {case.id: profiler_slowdown(case) for case in summary.cases}
    slowest = sorted((case for case in times if times[case] >= _SLOWED), key=lambda case: -times[case])
    names = first_names([f"{case} {times[case]:.1f}x" for case in slowest], CASES_NAMED)
    if any(times[case.id] < _SLOWED and recorded_span_text(case) for case in summary.cases):
        names += f" (others less than {_SLOWED}x)"
    notes: list[Block] = [Note("note", summary.note, tone="aside")] if summary.note else []
    of_calls = any(item.table == "api" for finding in summary.findings for item in finding.evidence)
    if len(summary.cases) == 1 and not summary.site and not of_calls and (text := startup_text(summary.cases[0])):
        notes.append(Note("startup", text, tone="aside"))
    begins = _start_text(summary.cases[0]) if len(summary.cases) == 1 else ""
    if len(summary.cases) == 1 and time_of_few_iterations(summary.cases[0].phases) is not None:
        outside = _outside_of_iterations_text(summary.cases[0])
        notes.append(Note("outside", f"{outside} {begins}".rstrip(), tone="aside"))
    elif begins:
        notes.append(Note("begins", begins, tone="aside"))
    if len(summary.cases) == 1 and (text := _left_out_gaps_text(summary.cases[0])):
        notes.append(Note("left-out", text, tone="aside"))
    if slowest:
        notes.append(
            Note(
                "slowed",
                f"The profiler slowed {names}: iterations and their idle time are corrected for it.",
                tone="aside",
            )
        )
    causes = [finding.cause for finding in summary.findings[:1]]
    if len(summary.cases) == 1 and causes == ["launch-bound"] and _waits_for_traced_launches(summary.cases[0]):
        notes.append(Note("traced", _AS_TRACED, tone="aside"))
    if len(summary.cases) == 1 and _are_launches_of_start(summary.cases[0]):
        notes.append(Note("start", _OF_START, tone="aside"))
    notes += _missing_pass_blocks(summary)
    pages = [kernel.source for case in summary.cases for kernel in case.kernels if kernel.source is not None]
    if pages and not any(page.has_lines for page in pages):
        notes.append(Note("lines", "Compile with -lineinfo to see the source line of the worst access.", tone="aside"))
    odd = (Note("outlier", f"outlier: {o.run}: {o.text}", tone="warning") for o in summary.outliers[:_LISTED])
    # the first of what is missing, and how much more is: the full answer has all
    more = f" (and {len(summary.missing) - 1} more)" if len(summary.missing) > 1 else ""
    missing = (Note("missing", line + more, tone="warning") for line in summary.missing[:1])
    return [*notes, *condition_notes(summary)[:_LISTED], *odd, *missing]


def _outside_of_iterations_text(case: CaseSummary) -> str:
    """Where the time outside of the iterations goes, of which no share and no gain is."""
    parts = []
    all_busy_ns = sum(phase.gpu_busy_ns for phase in case.phases)
    for where, names in (("before", ("setup", "warmup")), ("behind", ("end",))):
        phases = [phase for phase in case.phases if phase.phase in names]
        took_ns, busy_ns, calls_ns = (
            sum(getattr(phase, column) or 0.0 for phase in phases)
            for column in ("duration_ns", "gpu_busy_ns", "api_ns")
        )
        if took_ns >= _NAMED_PART * sum(phase.duration_ns for phase in case.phases):
            calls = _host_part_text(case, took_ns, calls_ns, busy_ns, is_start=where == "before")
            name, kernel_ns = max((p.largest for p in phases if p.largest), key=lambda item: item[1], default=("", 0.0))
            is_large = kernel_ns >= _MUCH_OF_OUTSIDE * busy_ns and kernel_ns >= _NAMED_PART * all_busy_ns
            kernel = f", {100 * min(1.0, kernel_ns / busy_ns):.0f} % of that {name}" if is_large and name else ""
            work = _earlier_work_text(case) if where == "before" else ""
            parts.append(f"{format_ns(took_ns)} {where} them ({calls}GPU busy {format_ns(busy_ns)}{kernel}{work})")
    return f"Shares and gains are of the iterations, without {' and '.join(parts)}."


def _host_part_text(case: CaseSummary, took_ns: float, calls_ns: float, busy_ns: float, *, is_start: bool) -> str:
    """What the host does outside of the iterations; empty where calls were not recorded.

    Args:
        case: The case.
        took_ns: How long that is.
        calls_ns: How long CUDA calls take in it; 0: they were not recorded.
        busy_ns: How long the GPU works in it, for which the host may wait.
        is_start: Whether it is before the iterations, where programs import, read and compile.
    """
    compiled_ns = sum(ns for *_, ns in case.compiled) if is_start else 0.0
    if 0 < _NAMED_PART * took_ns <= compiled_ns <= took_ns:
        return f"XLA compiles {format_ns(compiled_ns)}, "
    own_ns = took_ns - calls_ns - busy_ns
    if calls_ns and is_start and own_ns >= max(_LONG_START_NS, took_ns / 2):
        return f"{format_ns(own_ns)} outside of CUDA calls, as imports, data and compiling are; "
    return f"CUDA calls {format_ns(min(calls_ns, took_ns))}, " if calls_ns else ""


def _start_text(case: CaseSummary) -> str:
    """How long the host works before the first CUDA call, where that is much of the program's time; else empty."""
    all_ns = case.start_ns + case.traced_ns
    if case.start_ns < max(_LONG_START_NS, _MUCH_OF_ALL * all_ns):
        return ""
    share = 100 * case.start_ns / all_ns
    return (
        f"The program runs {format_ns(case.start_ns)} before its first CUDA call, {share:.0f} % of {format_ns(all_ns)}."
    )


def _earlier_work_text(case: CaseSummary) -> str:
    """How much of the iterations' work was done before them, more slowly; empty where little was."""
    use = case.idle_gpu.use if case.idle_gpu is not None else {}
    count, took_ns = use.get("earlier_iterations", 0.0), use.get("earlier_ns", 0.0)
    if case.iterations is None or not count or took_ns < _SLOWER * count * case.iterations.med_ns:
        return ""
    usual = format_ns(count * case.iterations.med_ns)
    return f"; {format_ns(took_ns)} of that have the work of some {count:.0f} iterations, which take {usual} later"


def _long_gaps_parts(case: CaseSummary) -> list[str]:
    """That long gaps, of which no share is, take most of the time; empty where they do not."""
    idle = case.idle_gpu
    if idle is None or idle.is_iteration or idle.left_out_ns < _MOST_LEFT_OUT * (idle.med_ns + idle.left_out_ns):
        return []
    return [f"long gaps take {format_ns(idle.left_out_ns)} of {format_ns(idle.med_ns + idle.left_out_ns)}"]


def _left_out_gaps_text(case: CaseSummary) -> str:
    """How much of the time of a case without iterations no share is of: long gaps that do not come again and again."""
    idle = case.idle_gpu
    if idle is None or idle.left_out_ns < _NAMED_PART * (idle.med_ns + idle.left_out_ns):
        return ""
    span = format_ns(idle.med_ns + idle.left_out_ns)
    return (
        f"Left out are {format_ns(idle.left_out_ns)} of the {span} from the first kernel on: gaps of 500 us and more"
        " that do not come again and again (set-up, work of the host between phases; table gaps)."
    )


def _waits_for_traced_launches(case: CaseSummary) -> bool:
    """Whether launches are much of the idle time of a case of which no run without a profiler is known."""
    idle = case.idle_gpu
    if case.perturbation or idle is None or not _HARDLY_BUSY_PCT <= idle.busy_pct < BUSY_PCT:
        return False
    return idle.in_gaps("launch", lengths=SHORT) >= _MUCH_OF_IDLE * idle.idle_ns


def _are_launches_of_start(case: CaseSummary) -> bool:
    """Whether most of what was counted are kernels that make a model, in a report without a timeline."""
    drawn = sum(kernel.launches for kernel in case.kernels if "distribution_" in kernel.name)
    if case.spent is not None or drawn < _LAYERS:  # one may be the input
        return False
    made_pct = sum(kernel.share_pct or 0.0 for kernel in case.kernels if _MAKES_MODEL.search(kernel.name))
    return made_pct >= _MOST_OF_MODEL_PCT or all(_MAKES_MODEL.search(kernel.name) for kernel in case.kernels)


def _missing_pass_blocks(summary: Summary) -> list[Block]:
    """The pass that rules without data would need, as a line of the recipe."""
    lacking = next(
        (found for case in summary.cases if (found := missing_counters_of_largest_kernel(case)) is not None), None
    )
    if lacking is not None:
        by_ncu = f"`ncu {lacking.ncu_options}`"
        how = "A pass `counters: {}` (group `diagnosis`)" if summary.site else by_ncu
        return [Note("passes", f"Not measured: {lacking.subject}. {how} shows it.", tone="aside")]
    of_host = summary.site and not summary.has_gpus and summary.cases and not any(map(has_divided_time, summary.cases))
    if of_host and (not summary.missing or any(case.figures for case in summary.cases)):
        tools = "`- host: {tool: cprofile}` (of Python) or `- host: {tool: perf}`"
        text = f"Not measured: where the time goes. {tools} among the recipe's passes shows it."
        return [Note("passes", text, tone="aside")]
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


def _single_case_screen(summary: Summary, case: CaseSummary) -> Screen:
    """Where the time of a case goes: GPU work by class, else kernels' counters, else functions, operators, calls."""
    hits = summary.hits.get(case.id, ())
    figure = figure_to_show(summary)
    parts_said = [f"{figure[0]} {number(figure_median(case, figure[0]))} {figure[1]}"] if figure else []
    if figure and figure[0] == summary.figure and any(case.id in doubt.cases for doubt in summary.doubts):
        parts_said = [f"{parts_said[0]} ({SET_ASIDE}: a cold start is in it)"]
    parts_said += _change_from_baseline_lines(summary, case)
    spent = time_without_profiler(case)
    if spent is not None and spent.span_ns is not None:
        by_kernels = case.iterations is not None and case.iterations.found_by == "kernel_sequence"
        span, median = duration(spent.span_ns), duration(case.iterations.med_ns) if case.iterations else ""
        if spent.is_mean:
            takes = f"its kernels repeat every {span} on average" if by_kernels else f"the mean iteration takes {span}"
            parts_said.append(f"{takes} (median {median}){recorded_span_text(case)}")
        else:
            is_of_figure = figure is None or _is_profiled(case, figure[0])
            iteration = "an iteration" if is_of_figure else "the median iteration of the timeline"
            takes = f"its kernels repeat every {span}" if by_kernels else f"{iteration} takes {span}"
            parts_said.append(takes + recorded_span_text(case))
        if not figure and (times := time_of_few_iterations(case.phases)) is not None:
            parts_said[-1] += f" for {format_ns(times[0])} of {format_ns(times[1])}"
    if spent is None and case.host is not None and (gpu_busy_pct := case.host.facts.get("gpu_busy_pct")):
        parts_said.append(f"the GPU is at work {gpu_busy_pct:.0f} % of the time")
    parts_said += _long_gaps_parts(case)
    section = main_time_section(case, summary.tables)
    of_kernels = section is not None and case.spent is None and bool(case.kernels)  # hits are of one of them
    idle_pct = (spent.idle_pct if spent is not None and spent.is_iteration else None) or 0.0
    shares_pct = [100 * p.ns / spent.span_ns for p in spent.shown] if spent is not None and spent.span_ns else []
    is_idle_most = bool(shares_pct) and idle_pct > max(shares_pct)
    least_pct = WASTE_PCT if spent is None or is_idle_most else _TELLING_PCT
    is_share_of_work = bool(hits) and hits[0].healthy and bool(hits[0].share_of)
    if bool(hits) and not of_kernels and (hits[0].gain_pct >= least_pct or is_share_of_work):
        is_of_start = hits[0].cause == "slow-first-iteration"  # no clause of an iteration's
        parts_said.insert(len(parts_said) - is_of_start, hits[0].headline)
    elif section is not None and _are_launches_of_start(case):
        parts_said.append(f"most of these {plural(len(case.kernels), 'kernel')} look like the start of a program")
    elif section is not None:
        parts_said.append(_idle_text(case, idle_pct) if is_idle_most else section[0])
    fault = _fault_of_largest_kernel(case, hits) if of_kernels else ""
    if fault and fault not in parts_said[-1]:
        parts_said.append(fault)
    elif of_kernels and not fault and parts_said:
        parts_said[-1] += _fault_of_other_kernel_text(case, hits, parts_said[-1])
    if any(finding.name == FAILED for finding in summary.findings):
        if section is not None and section[0].endswith(NO_GPU_WORK):  # of a program that did not get there
            return Screen(f"{case.id}: the program failed before any GPU work", None)
        parts_said.insert(0, "the program failed")
    nothing_text = "nothing was read" if summary.site else "has only what `--full` prints"
    return Screen(f"{case.id}: {', '.join(parts_said) or nothing_text}", section[1] if section else None)


def _fault_of_largest_kernel(case: CaseSummary, hits: Sequence[Hit]) -> str:
    """What is wrong with the kernel that takes most, in a few words; empty where the first finding is not of it."""
    remarks = (remark for kernel, _, remark in reportable_remarks(case.kernels) if kernel is case.kernels[0])
    return next((remark.what for remark in remarks if hits and remark.cause == hits[0].cause), "")


def _fault_of_other_kernel_text(case: CaseSummary, hits: Sequence[Hit], headline: str) -> str:
    """What could be won most, where that is of another kernel than the headline's; empty: little, or it says so."""
    first = next(iter(hits), None)
    if first is None or not first.is_curable or first.gain_pct < WASTE_PCT or first.what in headline:
        return ""
    remarks = (entry for entry in largest_remarks(case.kernels) if entry[2].what == first.what)
    return next((f"; {kernel.short_name}: {remark.what}" for kernel, _, remark in remarks), "")


def _idle_text(case: CaseSummary, idle_pct: float) -> str:
    """That the GPU is idle, with what that is: no finding explains it."""
    text = f"the GPU is idle {idle_pct:.0f} % of that"
    parts = idle_time_text(case, case.idle_gpu, several=False) if case.idle_gpu is not None else ""
    return f"{text} ({parts})" if parts else text


def _is_profiled(case: CaseSummary, name: str) -> bool:
    """Whether a figure is of the run that the case's iterations are of."""
    figure = least_disturbed_figure(case, name)
    return figure is None or figure.profiled


def _change_from_baseline_lines(summary: Summary, case: CaseSummary) -> list[str]:
    """How a case does beside the one that its campaign compares it with, which is no part of the answer itself."""
    by_id = {base.id for base in summary.context}
    points = summary.curve.points if summary.curve else ()
    point = next((point for point in points if point.case_id == case.id), None)
    if point is not None and point.efficiency_pct is not None and by_id:
        base = next(first for first in points if first.series == point.series)
        return [f"{point.efficiency_pct:.0f} % efficiency beside {base.case_id}"]
    variant = next((variant for variant in summary.variants if variant.case_id == case.id), None)
    base_variant = next((variant for variant in summary.variants if variant.case_id in by_id), None)
    void = cases_with_void_ratio(summary.variants, summary.by_id)
    if summary.compared == SIDE:  # a pair's change is what `nsw compare` finds, not a ratio of medians
        return []
    if variant is not None and base_variant is not None and variant.ratio and case.id not in void:
        change = change_of_speed(variant.ratio, is_time=is_time_unit(variant.unit))
        return [
            f"as fast as {base_variant.case_id}" if change == NO_CHANGE else f"{change} than {base_variant.case_id}"
        ]
    return []
