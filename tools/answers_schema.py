"""Writes nsw/present/answers.schema.json, which `nsw schema answers` prints: the shapes of what `--json` prints.

python tools/answers_schema.py            (JSON Schema, draft 2020-12; needs pydantic 2.13 or newer)

A key may be added; none goes, or changes its meaning, unless `nsw_json` counts up. Times are seconds since 1970 unless
a name ends in a unit; what is not known is null.
"""

# ruff: noqa: D101  # a shape is its keys; SHAPES says which command prints it
# no `from __future__ import annotations`: pydantic resolves these types when the schema is made

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from nsw.analysis.blocks import Ceiling, Column, Evidence
from nsw.analysis.cases import CaseSummary
from nsw.analysis.comparison import Scaling, Variant
from nsw.analysis.effective import Effective
from nsw.analysis.figures import Outlier, Perturbation
from nsw.analysis.kernels import KernelRow
from nsw.analysis.model_flops import ModelFlops
from nsw.analysis.roofline import Point
from nsw.analysis.source_lines import SourceLines
from nsw.plan.model import Absent, Resources
from nsw.present.emit import JSON_VERSION
from nsw.recipe.model import clean_schema, text_of, with_schema_head

Rows = list[dict[str, Any]]
Counts = dict[str, int]
State = Literal["planned", "intent", "submitted", "queued", "running", "done", "failed", "invalid", "lost", "cancelled"]
Reading = Literal["none", "collected", "read", "unreadable", "incomplete"]
Severity = Literal["error", "warning"]


class Answer(TypedDict):
    nsw_json: int


class Problem(TypedDict):
    run: str
    report: str | None
    severity: Severity | Literal["note", "aside"]
    message: str
    fix: str | None  # fmt: skip


class PlannedJob(TypedDict):
    name: str
    tasks: int
    walltime_s: int
    resources: Resources
    runs: list[str]  # fmt: skip


class PlannedReduction(TypedDict):
    name: str
    where: str | None
    tasks: int
    walltime_s: int
    resources: Resources
    of: list[str]


class PlannedBuild(TypedDict):
    name: str
    where: str | None
    walltime_s: int
    resources: Resources  # fmt: skip


PlannedRun = TypedDict("PlannedRun", {
    "id": str, "case": str, "pass": str, "tool": str | None, "repeat": int, "job": str, "task": int, "nodes": int,
    "gpus": int, "layout": str | None, "time_s": int, "command": str,
})  # fmt: skip


class Into(TypedDict):
    campaign: str
    added: list[str]
    again: dict[str, str]
    same: int
    not_in_recipe: int  # fmt: skip


class Plan(Answer):
    name: str
    site: str
    note: str | None
    notes: list[str]
    cases: list[str]
    gpu_hours_at_most: float
    node_hours_at_most: float
    gpu_hours_expected: float | None
    node_hours_expected: float | None
    jobs: list[PlannedJob]
    reductions: list[PlannedReduction]
    builds: list[PlannedBuild]
    runs: list[PlannedRun]
    absent: list[Absent]
    secrets: list[str]
    starts: NotRequired[dict[str, str]]
    warnings: NotRequired[list[str]]
    into: NotRequired[Into]  # fmt: skip


class PlanOfNothing(Answer):
    into: Into


Run = TypedDict("Run", {
    "id": str, "case": str, "pass": str, "tool": str | None, "repeat": int, "state": State, "reason": str | None,
    "attempt": int, "exit_code": int | None, "host": str | None, "started": float | None, "ended": float | None,
    "seconds": float | None, "job": str, "task": int, "job_id": str | None, "gpus": int, "reading": Reading,
    "params": dict[str, Any],
})  # fmt: skip


class Build(TypedDict):
    id: str
    command: str
    where: str
    state: State
    reason: str | None
    attempt: int
    exit_code: int | None
    host: str | None
    started: float | None
    ended: float | None
    seconds: float | None
    job: str
    job_id: str | None
    gpus: int
    needed_by: list[str]  # fmt: skip


class Status(Answer):
    campaign: str
    folder: str
    owner: str | None
    trusted: bool
    taken_over_by: str | None
    site: str
    note: str | None
    driven: bool
    absent: list[tuple[str, str, int]]
    next: list[str]
    scheduler_calls: Counts
    incomplete: int
    unreadable: int
    stopped: str | None
    held: bool
    reductions: Counts
    builds: list[Build]
    elapsed_s: float | None
    seconds_left: float | None
    last_lines: dict[str, str]
    counts: Counts
    runs: list[Run]
    problems: list[Problem]  # fmt: skip


class Problems(Answer):
    campaign: str
    problems: list[Problem]


class Campaign(TypedDict):
    campaign: str
    folder: str
    site: NotRequired[str]
    created: NotRequired[str]
    runs: NotRequired[int]
    driven: NotRequired[bool]
    counts: NotRequired[Counts]
    incomplete: NotRequired[int]
    unreadable: NotRequired[int]
    note: NotRequired[str | None]
    medians: NotRequired[dict[str, float]]
    problem: NotRequired[str]  # fmt: skip


class Campaigns(Answer):
    campaigns: list[Campaign]


Site = TypedDict("Site", {
    "site": str, "scheduler": str, "transport": str, "description": str | None, "default": bool, "from": str,
})  # fmt: skip


class Sites(Answer):
    sites: list[Site]
    warnings: list[str]


class SiteCheck(TypedDict):
    what: str
    verdict: str
    found: str
    fix: str | None


class SiteChecks(Answer):
    site: str
    checks: list[SiteCheck]


# one shape for all kinds: a reader that does not know a kind shows its text, or columns and rows
class Block(TypedDict):
    kind: str
    name: str
    case: str | None
    shown: str
    evidence: list[Evidence]
    text: NotRequired[str]
    brief: NotRequired[str]
    cause: NotRequired[str | None]
    remedy: NotRequired[str | None]
    healthy: NotRequired[bool]
    gain_pct: NotRequired[float | None]
    tone: NotRequired[str]
    title: NotRequired[str]
    columns: NotRequired[list[Column]]
    rows: NotRequired[list[list[Any]]]
    x: NotRequired[str]
    y: NotRequired[str]
    series: NotRequired[list[str]]
    ideals: NotRequired[list[float | None]]
    label: NotRequired[str]
    value: NotRequired[str]
    values: NotRequired[list[str]]
    others: NotRequired[list[str]]
    interval: NotRequired[str]
    verdict: NotRequired[str]
    lane: NotRequired[list[str]]
    start: NotRequired[str]
    end: NotRequired[str]
    length: NotRequired[str]
    size: NotRequired[list[str]]
    ceilings: NotRequired[list[Ceiling]]  # fmt: skip


class FindingOf(TypedDict):
    text: str
    cause: str | None
    remedy: str | None
    healthy: bool
    gain_pct: float | None
    cases: list[str]
    evidence: list[Evidence]


class Summary(Answer):
    campaign: str
    site: str
    note: str | None
    headline: str
    cover: float
    scaling: Scaling | None
    compare: list[Variant]
    model: list[Effective]
    model_flops: list[ModelFlops]
    findings: list[FindingOf]
    cases: list[CaseSummary]
    outliers: list[Outlier]
    missing: list[str]
    blocks: list[Block]  # fmt: skip


class TableOf(Answer):
    table: str
    note: NotRequired[str | None]
    rows: Rows


class ComparedSide(TypedDict):
    name: str
    source: str
    note: str | None
    conditions: dict[str, str]


class ComparedRow(TypedDict):
    case: str
    what: str
    unit: str | None
    first: float | None
    second: float | None
    first_runs: int
    second_runs: int
    verdict: Literal["faster", "slower", "higher", "lower", "same", "gone", "new", "cannot tell"]
    higher_is_better: bool | None
    gain_pct: float | None
    gain_low_pct: float | None
    gain_high_pct: float | None
    chance: float | None
    could_show_pct: float | None
    more_runs: int | None
    paired: bool | None
    noise_floor: Literal["measured", "assumed"] | None
    missing: str | None
    first_mean: NotRequired[float | None]
    second_mean: NotRequired[float | None]  # fmt: skip


class PartOfDifference(TypedDict):
    what: str
    how: Literal["gone", "new", "renamed", "changed"] | None
    before: float
    after: float
    renamed: str | None
    group: str
    ns: float


class DifferenceOf(TypedDict):
    case: str
    before_ns: float
    after_ns: float
    of_iteration: bool
    changes: list[PartOfDifference]


class ComparisonOf(TypedDict):
    first: ComparedSide
    second: ComparedSide
    by: str
    headline: str
    differs: list[str]
    programs: str | None
    rows: list[ComparedRow]
    only_in_first: list[str]
    only_in_second: list[str]
    differences: list[DifferenceOf]
    blocks: list[Block]


class Comparisons(Answer, ComparisonOf):
    pass


class JudgedRule(TypedDict):
    figure: str
    tolerance: str
    case: str
    outcome: Literal["passed", "failed", "undecided"]
    why: str


class Gate(Answer):
    outcome: Literal["passed", "failed", "undecided"]
    rules: list[JudgedRule]
    comparison: ComparisonOf


class Baseline(TypedDict):
    baseline: str
    campaign: str


class Baselines(Answer):
    baselines: list[Baseline]


class ReportProblem(TypedDict):
    severity: Severity
    message: str
    line: int | None
    fix: str | None
    is_loss: bool  # the profiler dropped records
    is_note: bool  # it is of what an answer does not show, or has explained


class Report(TypedDict):
    path: str
    tool: str | None
    format: str | None
    tool_version: str | None
    problems: list[ReportProblem]
    kernels: NotRequired[list[KernelRow]]
    tables: dict[str, Rows]  # fmt: skip


class Reports(Answer):
    reports: list[Report]
    headline: NotRequired[str | None]  # as findings: of whole reports
    findings: NotRequired[list[FindingOf]]


class Format(TypedDict):
    format: str
    tool: str
    what: str
    versions: str | None
    not_read: str | None  # fmt: skip


class Formats(Answer):
    formats: list[Format]


class Group(TypedDict):
    group: str
    meaning: str
    metrics: list[str]


class Metrics(Answer):
    chip: str | None
    metrics: Rows
    groups: NotRequired[list[Group]]  # fmt: skip


class MetricsShown(Answer):
    metrics: Rows


class MetricFault(TypedDict):
    metric: str
    fault: str
    hint: str | None


class MetricsChecked(Answer):
    chip: str | None
    checked: int
    faults: list[MetricFault]  # fmt: skip


class MetricsTranslated(Answer):
    chip: str | None
    metrics: Rows
    command_line: dict[str, str]  # fmt: skip


SHAPES: Final[Mapping[str, tuple[Any, str]]] = {
    "plan": (Plan, "nsw plan --json, and of --into"),
    "plan_of_nothing": (PlanOfNothing, "nsw plan --into, where nothing is left to do"),
    "status": (Status, "nsw status --json"),
    "problems": (Problems, "nsw problems --json"),
    "ls": (Campaigns, "nsw ls --json"),
    "sites": (Sites, "nsw sites --json"),
    "sites_check": (SiteChecks, "nsw sites check NAME --json"),
    "summarize": (Summary, "nsw summarize --json"),
    "compare": (Comparisons, "nsw compare --json"),
    "gate": (Gate, "nsw gate --json"),
    "baselines": (Baselines, "nsw baseline ls --json"),
    "table": (TableOf, "nsw summarize or nsw read with --table, of tables that nsw computes"),
    "read": (Reports, "nsw read --json"),
    "formats": (Formats, "nsw read --formats --json"),
    "metrics_ls": (Metrics, "nsw metrics ls --json"),
    "metrics_show": (MetricsShown, "nsw metrics show --json"),
    "metrics_check": (MetricsChecked, "nsw metrics check --json"),
    "metrics_translate": (MetricsTranslated, "nsw metrics translate --json"),
}
# what the annotations of the dataclasses above name, and import for type checking only
NAMES: Final = {
    shape_class.__name__: shape_class
    for shape_class in (Mapping, Sequence, KernelRow, Perturbation, Point, SourceLines)
}


SHIPPED: Final = Path(__file__).parents[1] / "nsw" / "present" / "answers.schema.json"
_REF: Final = "#/$defs/"


def answers_schema() -> dict[str, Any]:
    """The schema: a document fits the definition of its command. That of tables is added where it is printed."""
    adapters: list[tuple[str, Literal["serialization"], TypeAdapter[Any]]] = []
    for name, (shape, _) in SHAPES.items():
        adapter = TypeAdapter(shape)
        adapter.rebuild(force=True, _types_namespace=NAMES)
        adapters.append((name, "serialization", adapter))
    references, rest = TypeAdapter.json_schemas(adapters, ref_template=f"{_REF}{{model}}")
    definitions: dict[str, Any] = clean_schema(rest)["$defs"]
    for definition in definitions.values():
        if any("default" in key for key in definition.get("properties", {}).values()):  # a dataclass: all is printed
            definition["required"] = list(definition["properties"])
    for (name, _), reference in references.items():
        target = reference["$ref"].removeprefix(_REF)
        definitions[target]["properties"]["nsw_json"] = {"const": JSON_VERSION}
        definitions[str(name)] = {"description": SHAPES[str(name)][1], "$ref": f"{_REF}{target}"}
    definitions["Report"]["properties"]["tables"] = {"$ref": f"{_REF}tables"}
    schema = {
        "$defs": dict(sorted(definitions.items())),
        "type": "object",
        "required": ["nsw_json"],
        "properties": {"nsw_json": {"const": JSON_VERSION}},
    }
    return with_schema_head(
        schema,
        title=f"answers of nsw, version {JSON_VERSION}",
        description="Each command prints one object that fits `$defs/COMMAND`. Keys may be added; none goes or changes"
        " its meaning unless nsw_json counts up.",
    )


if __name__ == "__main__":
    SHIPPED.write_text(text_of(answers_schema()), encoding="utf-8")
