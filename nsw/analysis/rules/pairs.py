"""Rules over two cases beside each other: what a variant changed, and what more GPUs cost in each iteration."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.difference import Operation, changes_by_operation
from nsw.analysis.groups import group_by
from nsw.analysis.kernel_classes import COPIES, NCCL, SETS, classify_gpu_operation
from nsw.analysis.rules.binding import LATENCY, binding_part, busiest_part_pct
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import reportable_remarks
from nsw.analysis.rules.hits import ALL_TIME, Hit
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, profiler_slowdown, time_without_profiler
from nsw.quantities import change_of_speed, format_ns, format_sum_and_parts, is_factor
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.comparison import Scaling, ScalingPoint, Variant
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.spent import Spent

__all__ = [
    "COLD_START",
    "SET_ASIDE",
    "cases_with_void_ratio",
    "cold_start_findings",
    "contradicted_figures",
    "counter_changes_text",
    "raise_gains_to_siblings",
    "scaling_loss_findings",
    "variant_findings",
]

COLD_START: Final = "cold start"  # the finding that sets a figure aside
SET_ASIDE: Final = "set aside"  # the cell of a ratio to a figure that the kernels' times contradict
_GPU_GAIN_FACTOR: Final = 1.2  # times by which GPU time gains more than the figure
_MORE_OPERATIONS: Final = 1.1
_LOST_PCT: Final = 5.0  # of an iteration
_MAX_NAMES: Final = 4
_CONTRADICTED: Final = 10.0  # times by which a figure and the kernels' times differ
_KERNELS_NAMED: Final = 3  # of which their counters say what changed
_GREW: Final = 0.15  # of what computing takes longer: a kernel that is named for it
_KERNELS_THAT_GREW: Final = 2
_LONGEST_NAME: Final = 48
_COMPUTING, _IDLE = "computing", "idle"
_KERNELS: Final = "kernels"  # the table of hits whose gain is of the kernels' time
_SCATTER_PCT: Final = 5.0  # of the time: what runs may differ by
_SAME_WORK: Final = 1.5  # times by which the gains of figure and iteration differ at most


def variant_findings(variants: Sequence[Variant], cases: Mapping[str, CaseSummary]) -> list[Finding]:
    """What decides between variants and their baseline, a sentence a rule."""
    pairs = [
        (cases[base.case_id], cases[variant.case_id], variant.ratio)
        for base, variant in _baseline_variant_pairs(variants)
        if variant.ratio and _do_same_work(cases[base.case_id], cases[variant.case_id], variant.ratio)
    ]
    times = [(_iteration_time(base), _iteration_time(variant)) for base, variant, _ in pairs]
    gains = [before.gpu_ns / after.gpu_ns for before, after in times if before and after and after.gpu_ns]
    as_factor = any(map(is_factor, [*gains, *(v.ratio for v in variants if v.ratio)]))
    change_text = partial(change_of_speed, as_factor=as_factor)
    return [*_host_limit_findings(pairs, change_text), *_launch_bound_findings(pairs, change_text)]


def contradicted_figures(variants: Sequence[Variant], cases: Mapping[str, CaseSummary]) -> dict[str, list[float]]:
    """Cases whose figure is many times lower than their kernels' times imply: how many times, beside each other.

    A program that times its first launches measures their start.
    """
    contradictions: dict[str, list[float]] = {}
    for base, variant in _baseline_variant_pairs(variants):
        before, after = (_kernel_ns_by_counters(cases[v.case_id]) for v in (base, variant))
        alike = _launch_count(cases[base.case_id]) == _launch_count(cases[variant.case_id])
        if not before or not after or not variant.ratio or not alike:
            continue
        times = variant.ratio * after / before  # of the figures' ratio to that of the kernels
        if max(times, 1 / times) >= _CONTRADICTED:
            case = base.case_id if times > 1 else variant.case_id
            contradictions.setdefault(case, []).append(max(times, 1 / times))
    return contradictions


def cases_with_void_ratio(variants: Sequence[Variant], cases: Mapping[str, CaseSummary]) -> frozenset[str]:
    """The cases whose ratio is void: their figure or that of their baseline is contradicted."""
    void = contradicted_figures(variants, cases)
    of_pairs = {v.case_id for base, v in _baseline_variant_pairs(variants) if base.case_id in void or v.case_id in void}
    return frozenset({*void, *of_pairs})


def raise_gains_to_siblings(
    hits: Mapping[str, Sequence[Hit]], variants: Sequence[Variant], cases: Mapping[str, CaseSummary]
) -> dict[str, list[Hit]]:
    """The hits of each case, the first with what the fastest variant without its cause gains, where that is more.

    Args:
        hits: Of each case, the weightiest first.
        variants: All.
        cases: Their cases.
    """
    raised = {case: [*case_hits] for case, case_hits in hits.items()}
    void = cases_with_void_ratio(variants, cases)
    for series in group_by(variants, lambda variant: repr(variant.series)).values():
        figures = {v.case_id: 1 / v.ratio for v in series if v.ratio and v.case_id not in void}
        kernels_ns = {v.case_id: ns for v in series if (ns := _kernel_ns_by_counters(cases[v.case_id]))}
        alike = len({_launch_count(cases[case]) for case in kernels_ns}) == 1
        for variant in series:
            first = next(iter(hits.get(variant.case_id, ())), None)
            if first is None or not first.is_curable:
                continue
            is_of_kernels = alike and first.table == _KERNELS and first.gain_of != ALL_TIME
            times = kernels_ns if is_of_kernels else figures
            fastest = min(times, key=lambda case: times[case], default="")
            gain = 100 * (1 - times[fastest] / times[variant.case_id]) if variant.case_id in times else 0.0
            if gain <= first.gain_pct + _SCATTER_PCT or any(h.cause == first.cause for h in hits.get(fastest, ())):
                continue
            base = f"{first.gain_of if is_of_kernels else ALL_TIME} ({fastest} takes so much less)"
            raised[variant.case_id][0] = replace(first, gain_pct=gain, gain_of=base, cured_case=fastest)
    return raised


def _kernel_ns_by_counters(case: CaseSummary) -> float | None:
    """What all launches of a case took by its counters, each kernel's mean of a launch."""
    return sum(k.launch_ns or 0.0 for k in case.kernels) or None


def _launch_count(case: CaseSummary) -> float:
    return sum(kernel.launches for kernel in case.kernels)


def cold_start_findings(variants: Sequence[Variant], cases: Mapping[str, CaseSummary]) -> list[Finding]:
    """The cases whose figure their kernels' times contradict, a sentence each."""
    return [
        Finding(
            COLD_START,
            f"{case}: its figure is {' to '.join(dict.fromkeys(f'{end(times):.0f}' for end in (min, max)))} times lower"
            " than its kernels' times imply beside the other variants. A cold start is in it: warm up before timing, or"
            " repeat more. No ratio to it is printed.",
            evidence=(Evidence("figures", (case,)),),
        )
        for case, times in contradicted_figures(variants, cases).items()
    ]


def _baseline_variant_pairs(variants: Sequence[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Each variant with the baseline of its series, which is the one with ratio 1 that comes first."""
    base: dict[str, Variant] = {}
    for variant in variants:
        if variant.ratio == 1.0:
            base.setdefault(repr(variant.series), variant)
    for variant in variants:
        first = base.get(repr(variant.series))
        if first is not None and first is not variant:
            yield first, variant


def _do_same_work(base: CaseSummary, variant: CaseSummary, ratio: float) -> bool:
    """Whether an iteration does as much in both: else its times tell nothing of the program's gain."""
    before, after = _iteration_time(base), _iteration_time(variant)
    if before is None or after is None or not before.span_ns or not after.span_ns:
        return False
    gain = before.span_ns / profiler_slowdown(base) / (after.span_ns / profiler_slowdown(variant))
    return max(gain / ratio, ratio / gain) <= _SAME_WORK


def _iteration_time(case: CaseSummary) -> Spent | None:
    return case.spent if case.spent is not None and case.spent.is_iteration else None


def _host_limit_findings(
    pairs: Sequence[tuple[CaseSummary, CaseSummary, float]], change_text: Callable[[float], str]
) -> Iterator[Finding]:
    """The GPU's work gains clearly more than the figure does: the host is the limit now."""
    hits = []
    for base, variant, ratio in pairs:
        before, after = _iteration_time(base), _iteration_time(variant)
        if before is None or after is None or not after.gpu_ns:
            continue
        gain = before.gpu_ns / after.gpu_ns
        if gain >= _GPU_GAIN_FACTOR * ratio and gain > 1 and ratio >= 1:
            hits.append((gain / ratio, variant, gain, ratio))
    if hits:
        hits.sort(key=lambda hit: -hit[0])
        examples = first_names(
            [f"{case.id} {change_text(gain)}, the program {change_text(ratio)}" for _, case, gain, ratio in hits],
            _MAX_NAMES,
        )
        idle = [100 - busy for _, case, *_ in hits if (busy := least_gpu_busy_pct(case)) is not None]
        limit = f", with the GPU idle up to {max(idle):.0f} % of an iteration" if idle else ""
        yield Finding(
            "host is the limit",
            f"The GPU's work gains more than the program: {examples}{limit}. The host is the limit there: CUDA graphs,"
            " torch.compile or a larger batch win the rest.",
            evidence=(Evidence("compare", tuple(case.id for _, case, *_ in hits)),),
        )


def _launch_bound_findings(
    pairs: Sequence[tuple[CaseSummary, CaseSummary, float]], change_text: Callable[[float], str]
) -> Iterator[Finding]:
    """The figure is worse and there are more operations: they cost launches, not GPU time."""
    hits = []
    for base, variant, ratio in pairs:
        before, after = _iteration_time(base), _iteration_time(variant)
        if not before or not after or ratio >= 1 or after.gpu_ns * ratio >= before.gpu_ns:  # the GPU's work explains it
            continue
        if after.operations >= _MORE_OPERATIONS * before.operations:
            hits.append((ratio, variant, before.operations, after.operations))
    if hits:
        hits.sort(key=lambda hit: hit[0])
        examples = first_names(
            [f"{c.id} ({b:,.0f} -> {a:,.0f} operations, {change_text(r)})" for r, c, b, a in hits], _MAX_NAMES
        )
        yield Finding(
            "launch-bound",
            f"Slower for more operations an iteration: {examples}. These are bound by launches: CUDA graphs,"
            " torch.compile or a larger batch first.",
            evidence=(Evidence("compare", tuple(case.id for _, case, *_ in hits)),),
        )


def scaling_loss_findings(curve: Scaling, cases: Mapping[str, CaseSummary]) -> list[Finding]:
    """What an iteration takes longer with most GPUs than with fewest, by its parts; of the series that lose most."""
    series: dict[str, list[ScalingPoint]] = {}
    for point in curve.points:
        series.setdefault(repr(point.series), []).append(point)
    losses = [
        loss
        for series_points in series.values()
        if (loss := _scaling_loss(curve, series_points[0], series_points[-1], cases)) is not None
    ]
    losses.sort(key=lambda loss: -loss[0])
    return [Finding("lost in scaling", text, evidence=(Evidence("iterations", ids),)) for _, text, ids in losses[:1]]


def _scaling_loss(
    curve: Scaling, first: ScalingPoint, last: ScalingPoint, cases: Mapping[str, CaseSummary]
) -> tuple[float, str, tuple[str, str]] | None:
    """How much, in words, of which cases."""
    fewest_gpus, most_gpus = cases[first.case_id], cases[last.case_id]
    before, after = _iteration_parts_ns(fewest_gpus), _iteration_parts_ns(most_gpus)
    if first is last or before is None or after is None or not first.at:
        return None
    factor = 1.0 if curve.kind == "weak" else first.at / last.at  # what an iteration should take
    lost = sum(after.values()) - factor * sum(before.values())
    pct = 100 * lost / sum(after.values())
    if pct < _LOST_PCT:
        return None
    added_times = {name: after[name] - factor * before[name] for name in after}
    longer, added_texts = format_sum_and_parts(list(added_times.values()))
    texts = dict(zip(added_times, added_texts, strict=True))
    grown = _grown_kernels_text(fewest_gpus, most_gpus, factor, added_times[_COMPUTING])
    part_list = ", ".join(
        f"{name} {texts[name]}{grown * (name == _COMPUTING)}"
        for name in sorted(added_times, key=lambda name: -added_times[name])
        if texts[name] and not (name == _IDLE and added_times[name] < 0)
    )
    at = ", ".join(f"{name}={value}" for name, value in last.series.items())
    head = f"{at}: an" if at else "An"
    share = "" if factor == 1 else f"{first.at:g}/{last.at:g} of that "
    base = f"{curve.axis}={first.at:g}"
    text = (
        f"{head} iteration takes {longer} than it should with {curve.axis}={last.at:g}, {pct:.0f} % of its"
        f" {format_ns(sum(after.values()))}: {part_list} than {share}with {base}"
    )
    if added_times[_IDLE] < 0 and texts[_IDLE]:  # no gain: something waits where nothing was to do
        text += f"; {texts[_IDLE].removesuffix(' less')} of that fill its idle time"
    text += "."
    return pct, text, (fewest_gpus.id, most_gpus.id)


def _grown_kernels_text(base: CaseSummary, grown: CaseSummary, factor: float, longer_ns: float) -> str:
    """The kernels that computing takes longer for, in brackets; empty where none is much of it.

    Args:
        base: The case with fewest GPUs.
        grown: The one with most.
        factor: What part of its time there a kernel should take.
        longer_ns: What computing takes longer.
    """
    before, after = (_kernels_of_iteration(case, times) for case, times in ((base, factor), (grown, 1.0)))
    if longer_ns <= 0 or not before or not after:
        return ""
    changes = [change for change in changes_by_operation(before, after) if change.ns >= _GREW * longer_ns]
    changes.sort(key=lambda change: -change.ns)
    names = [
        f"{'new ' if change.how == 'new' else ''}{_cut_name(change.renamed or change.what)} {format_ns(change.ns)}"
        for change in changes[:_KERNELS_THAT_GREW]
    ]
    rest_ns = longer_ns - sum(change.ns for change in changes[:_KERNELS_THAT_GREW])
    names += [f"others {format_ns(rest_ns)}"] if names and rest_ns >= _GREW * longer_ns else []
    return f" ({', '.join(names)})" if names else ""


def _cut_name(name: str) -> str:
    """A kernel's name in a sentence."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 12]}...{name[-9:]}"


def _kernels_of_iteration(case: CaseSummary, times: float) -> list[Operation]:
    """The kernels that compute in an iteration of the mean GPU, their durations so many times."""
    iterations = case.iterations.count * case.iterations.processes if case.iterations else 0
    return [
        Operation(
            work.name, work.kind, group, times * (work.total_ns or 0.0) / iterations, (work.calls or 0.0) / iterations
        )
        for work in case.gpu_work
        if iterations and (group := classify_gpu_operation(work.name, work.kind)) not in {NCCL, COPIES, SETS}
    ]


def _iteration_parts_ns(case: CaseSummary) -> dict[str, float] | None:
    """An iteration's parts that add up to it, ns."""
    spent = time_without_profiler(case)
    if spent is None or spent.span_ns is None or spent.computing_pct is None:
        return None
    shares = (spent.computing_pct, spent.copies_pct, spent.exposed_pct, spent.idle_pct)
    names = (_COMPUTING, "copies alone", "NCCL alone", _IDLE)
    return {name: (share or 0.0) * spent.span_ns / 100 for name, share in zip(names, shares, strict=True)}


def counter_changes_text(first: Sequence[KernelRow], second: Sequence[KernelRow]) -> str:
    """What the rules find in kernels of one side alone, and what binds these now; empty where nothing changed.

    Args:
        first: The kernels of what is compared with, by their counters.
        second: Those of what is compared.
    """
    before = {kernel.short_name: kernel for kernel in first}
    remarks = [_faults_by_kernel_and_cause(side) for side in (first, second)]
    sentences = []
    for kernel in second:
        name = kernel.short_name
        if (old := before.get(name)) is None:
            continue
        gone, new = (
            [what for key, what in side.items() if key[0] == name and key not in other]
            for side, other in (remarks, remarks[::-1])
        )
        changes = [f'"{what}" is {became}' for became, side in (("gone", gone), ("new", new)) for what in side]
        part, old_part = binding_part(kernel), binding_part(old)
        if part is not None and (changes or part != old_part):
            peak = "" if part == LATENCY else f", {busiest_part_pct(kernel):.0f} % of its peak"
            changes.append(
                f"it is bound by {part} now{peak}" + ("" if old_part in {part, None} else f", by {old_part} before")
            )
        if changes:
            sentences.append(f"{name}: {'; '.join(changes)}.")
    return " ".join(sentences[:_KERNELS_NAMED])


def _faults_by_kernel_and_cause(kernels: Sequence[KernelRow]) -> dict[tuple[str, str], str]:
    return {
        (kernel.short_name, remark.cause): remark.what
        for kernel, _, remark in reportable_remarks(kernels)
        if causes()[remark.cause].group != "healthy"
    }
