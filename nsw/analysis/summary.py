"""The whole answer of a campaign, put together from its tables and what its recipe asks to report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.cases import CaseSummary, summarize_cases
from nsw.analysis.comparison import Scaling, Variant, compare_variants, scaling_curve
from nsw.analysis.effective import AskedModel, Effective, model_cases
from nsw.analysis.figures import Outlier, find_outliers
from nsw.analysis.groups import group_by
from nsw.analysis.model_flops import ModelFlops, StepFlops, measure_model_flops
from nsw.analysis.placement import crowded_gpu_sentences, node_sentences_by_case
from nsw.analysis.rules.pairs import (
    COLD_START,
    cases_with_void_ratio,
    cold_start_findings,
    raise_gains_to_siblings,
    scaling_loss_findings,
    variant_findings,
)
from nsw.analysis.rules.registry import find_hits_by_case, merge_hits_to_findings
from nsw.recipe.matrix import SIDE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.rules.hits import Hit, Reports
    from nsw.tables import TableData

TABLES = (
    "gpu_summary", "api_summary", "communication", "functions", "operators", "figures", "facts", "phases",
    "phase_summary", "iterations", "nvtx_summary", "nvtx_gpu_summary", "process_gpus", "ranks", "gaps",
    "host_copies", "gpu_use", "collectives", "bandwidth", "conditions", "gpu_metrics",
)  # fmt: skip
OF_KERNELS = ("metrics", "launches", "rules", "source_metrics")  # as columns: a row a metric of a launch is many


_FEWEST_OF_MEMORY: Final = 5  # samples of a run: of fewer the largest says little


@dataclass(frozen=True, slots=True)
class CampaignData:
    """A campaign as it is summarised.

    Attributes:
        campaign: Its id.
        site: Its site's name.
        note: A sentence that is printed with all its numbers.
        runs: Its runs, in the plan's order.
        tables: The rows of TABLES, each with `run`.
        missing: What is absent and why, in sentences.
        counters: The tables of OF_KERNELS that there are.
        campaign_findings: Findings of the campaign itself, which come first.
        kernels: By case, where they are known already, in place of `counters`.
        reports: Whether `nsw reread` can read its reports here.
        racks: The rack of each node, where the site tells it.
    """

    campaign: str
    site: str
    note: str | None
    runs: Sequence[Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    missing: Sequence[str] = ()
    counters: Mapping[str, TableData] | None = None
    campaign_findings: Sequence[Finding] = ()
    kernels: Mapping[str, tuple[KernelRow, ...]] = field(default_factory=dict)
    reports: Reports = "absent"
    racks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """What the recipe's `report` asks for; None: not asked."""

    cover: float = 0.9
    axis: str | None = None
    base: Any = None
    kind: str = "strong"
    figure: str | None = None
    compare: str | None = None
    baseline: Any = None
    tied: Sequence[str] = ()  # parameters that vary together with the compared one
    higher_is_better: bool | None = None
    models: Mapping[str, AskedModel | str] = field(default_factory=dict)  # by case; a text: why it has none
    flops: Mapping[str, StepFlops | str] = field(default_factory=dict)  # likewise
    classes: Mapping[str, str] = field(default_factory=dict)  # of kernels, a pattern each
    windowed: Collection[str] = ()  # passes that record a part of the program


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything that `nsw summarize` shows, and the `tables` that it was made of, for analyses of other packages."""

    campaign: str
    site: str
    note: str | None
    cover: float
    cases: tuple[CaseSummary, ...]
    curve: Scaling | None
    variants: tuple[Variant, ...]
    compared: str | None
    compared_to: Any
    figure: str | None
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]
    model: tuple[Effective, ...] = ()
    model_flops: tuple[ModelFlops, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    nodes: tuple[tuple[str, str], ...] = ()  # of each case with several ranks, where they were
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict, repr=False, compare=False)
    hits: Mapping[str, Sequence[Hit]] = field(default_factory=dict)  # of each case, the weightiest first
    has_gpus: bool = False  # some run was given one
    higher_is_better: bool | None = None  # of `figure`, as far as the recipe says
    campaign_findings: tuple[Finding, ...] = ()  # of `findings` those that no rule says
    conditions: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # what was sampled, by case
    gpu_metrics: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)  # rows by case
    classes: Mapping[str, str] = field(default_factory=dict)  # of kernels, that the recipe names
    reports: Reports = "absent"  # whether `nsw reread` can read its reports here
    context: tuple[CaseSummary, ...] = ()  # cases that were not chosen, which ratios of those that were refer to

    @property
    def doubts(self) -> list[Finding]:
        """Of `findings` those that set a figure aside."""
        return [finding for finding in self.findings if finding.name == COLD_START]

    @property
    def by_id(self) -> dict[str, CaseSummary]:
        """The cases by their ids, with those that ratios refer to."""
        return {case.id: case for case in (*self.cases, *self.context)}

    def only(self, cases: Collection[str]) -> Summary:
        """What concerns these cases; ratios stay those of the whole campaign, and their baselines are kept beside."""
        points = self.curve.points if self.curve else ()
        firsts = {repr(point.series): point.case_id for point in reversed(points)}
        bases = {firsts[repr(point.series)] for point in points if point.case_id in cases}
        chosen_series = {repr(variant.series) for variant in self.variants if variant.case_id in cases}
        bases |= {v.case_id for v in self.variants if v.variant == self.compared_to and repr(v.series) in chosen_series}
        curve = self.curve and replace(self.curve, points=tuple(p for p in points if p.case_id in {*bases, *cases}))
        variants = tuple(v for v in self.variants if v.case_id in {*bases, *cases})
        hits = {case: case_hits for case, case_hits in self.hits.items() if case in cases}
        by_id = self.by_id
        doubts = [finding for finding in self.doubts if set(finding.cases) <= set(cases)]
        return replace(
            self,
            cases=tuple(c for c in self.cases if c.id in cases),
            context=tuple(case for case in by_id.values() if case.id in bases - set(cases)),
            curve=curve,
            variants=variants,
            findings=(
                *(f for f in self.campaign_findings if set(f.cases) <= set(cases)),
                *_ordered_findings(curve, variants, by_id, hits, doubts, several=len(cases) > 1),
            ),
            model=tuple(m for m in self.model if m.case_id in cases),
            model_flops=tuple(m for m in self.model_flops if m.case_id in cases),
            outliers=tuple(o for o in self.outliers if o.case_id in cases),
            nodes=tuple(case_nodes for case_nodes in self.nodes if case_nodes[0] in cases),
            hits=hits,
            conditions={case: rows for case, rows in self.conditions.items() if case in cases},
            gpu_metrics={case: rows for case, rows in self.gpu_metrics.items() if case in cases},
        )


def summarize(data: CampaignData, request: ReportRequest) -> Summary:
    """Summarise a campaign by what its recipe asks for."""
    runs, tables = data.runs, data.tables
    cases = summarize_cases(runs, tables, request.cover, data.counters, request.classes, request.windowed, data.racks)
    cases = [replace(case, kernels=data.kernels[case.id]) if case.id in data.kernels else case for case in cases]
    request = _fill_default_comparison(request, runs)
    case_of = {run.id: run.case_id for run in runs}
    conditions = _rows_by_case(tables.get("conditions", ()), case_of)
    for at, case in enumerate(cases):
        if case.kernels and (held := _peak_program_bytes(conditions.get(case.id, ()))) is not None:
            cases[at] = replace(case, kernels=tuple(replace(kernel, program_bytes=held) for kernel in case.kernels))
    curve = None
    if request.axis and request.figure and cases:
        kind: Any = request.kind
        curve = scaling_curve(
            cases, axis=request.axis, kind=kind, figure=request.figure, baseline=request.base,
            higher_is_better=request.higher_is_better,
        )  # fmt: skip
    variants: list[Variant] = []
    if request.compare and request.figure:
        variants = compare_variants(
            cases, parameter=request.compare, baseline=request.baseline, figure=request.figure,
            higher_is_better=request.higher_is_better, tied=request.tied,
        )  # fmt: skip
    crowded = crowded_gpu_sentences(tables.get("ranks", ()), tables.get("phase_summary", ()), case_of)
    campaign_findings = (
        *data.campaign_findings,
        *(Finding("shared GPU", f"{case}: {text}.", evidence=(Evidence("phase_summary", (case,)),))
          for case, text in crowded),
    )  # fmt: skip
    by_id = {case.id: case for case in cases}
    hits = find_hits_by_case(cases, reports=data.reports, are_programs=not data.site and request.compare != SIDE)
    if request.compare != SIDE and curve is None:  # `nsw compare` says what a change won; more GPUs are no cure
        hits = raise_gains_to_siblings(hits, variants, by_id)
    doubts = cold_start_findings(variants, by_id)
    return Summary(
        campaign=data.campaign,
        site=data.site,
        note=data.note,
        cover=request.cover,
        cases=tuple(cases),
        curve=curve,
        variants=tuple(variants),
        compared=request.compare,
        compared_to=request.baseline,
        figure=request.figure,
        findings=(
            *campaign_findings,
            *_ordered_findings(curve, variants, by_id, hits, doubts, several=len(cases) > 1),
        ),
        campaign_findings=campaign_findings,
        missing=tuple(data.missing),
        model=model_cases(cases, request.models, runs, tables),
        model_flops=measure_model_flops(cases, request.flops, runs),
        outliers=tuple(find_outliers(runs, tables.get("figures", ()))),
        nodes=tuple(node_sentences_by_case(tables.get("ranks", ()), case_of)),
        tables=tables,
        hits=hits,
        has_gpus=any(getattr(run, "gpus", 0) for run in runs),
        higher_is_better=request.higher_is_better,
        conditions=conditions,
        gpu_metrics=_rows_by_case(tables.get("gpu_metrics", ()), case_of),
        classes=request.classes,
        reports=data.reports,
    )


def _peak_program_bytes(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """The most GPU memory in bytes that runs of a case held on one GPU; None: too few samples to tell.

    Args:
        rows: Rows of table `conditions` of the case.
    """
    held = [
        (row["memory_mib"] - (row["memory_before_mib"] or 0.0)) * 2**20
        for row in rows
        if None not in {row["memory_mib"], row["start_s"], row["end_s"], row["interval_s"]}
        and row["end_s"] - row["start_s"] >= _FEWEST_OF_MEMORY * row["interval_s"]
    ]
    return max(held, default=None)


def _rows_by_case(
    rows: Sequence[Mapping[str, Any]], case_of: Mapping[str, str]
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    return group_by((row for row in rows if row["run"] in case_of), lambda row: case_of[row["run"]])


def _ordered_findings(
    curve: Scaling | None, variants: Sequence[Variant], by_id: Mapping[str, CaseSummary],
    hits: Mapping[str, Sequence[Hit]], doubts: Sequence[Finding], *, several: bool,
) -> list[Finding]:  # fmt: skip
    """What cases beside each other show; then what rules say: first why that case loses which loses most.

    Figures that are in doubt come behind the first finding, unless the headline is of them: no ratio is valid.
    """
    losses = scaling_loss_findings(curve, by_id) if curve else []
    gpu_ns = {id_: case.gpu_ns or sum(k.time_ns or 0.0 for k in case.kernels) for id_, case in by_id.items()}
    of_cases = merge_hits_to_findings(hits, gpu_ns if variants else {}, several=several)
    why = next((f for loss in losses for f in of_cases if f.cases[0] == loss.cases[-1]), None)
    of_cases.sort(key=lambda finding: finding is not why)
    findings = [*losses, *variant_findings(variants, by_id), *of_cases]
    void = {*cases_with_void_ratio(variants, by_id), *(case for doubt in doubts for case in doubt.cases)}
    place = int(any(variant.ratio and variant.case_id not in void for variant in variants))
    return [*findings[:place], *doubts, *findings[place:]]


def _fill_default_comparison(request: ReportRequest, runs: Sequence[Any]) -> ReportRequest:
    """What is asked for; where the recipe does not say, how cases scale with their GPUs, or what a switch changes."""
    if request.axis or request.compare or not request.figure:
        return request
    for name in runs[0].params if runs else ():
        distinct_values = {repr(run.params.get(name)): run.params.get(name) for run in runs}
        if len(distinct_values) > 1 and all(
            type(run.params.get(name)) is int and run.params[name] == run.gpus for run in runs
        ):
            return replace(request, axis=name)
        if len(distinct_values) == 2 and all(isinstance(value, bool) for value in distinct_values.values()):
            return replace(request, compare=name, baseline=False)
    return request
