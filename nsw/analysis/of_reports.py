"""The answer of reports that are no campaign's: each is a case of one run, and what it holds are its tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.cases import PAGE_FAULTS
from nsw.analysis.first_screen import FAILED
from nsw.analysis.groups import group_by, sum_by
from nsw.analysis.kernels import add_timeline_times, kernel_times_by_name
from nsw.analysis.steady import process_key
from nsw.analysis.summary import TABLES, CampaignData, ReportRequest, Summary, summarize
from nsw.tables import TableData, full_rows
from nsw.tables.names import comparable_name
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from nsw.analysis.kernels import KernelRow

    _Rows = Mapping[str, Sequence[Mapping[str, Any]]]

__all__ = [
    "LOOKED_AT",
    "ReadReport",
    "kernels_of_case",
    "reports_by_case",
    "runs_and_tables_of_reports",
    "summarize_reports",
]

_ANSWER_TABLES: Final = (*TABLES, "osrt_summary")
LOOKED_AT: Final = (
    *_ANSWER_TABLES,
    "gpu_trace",
    "api_trace",
    "um_summary",
)  # tables that the answer needs, or is made of

_RUN_TABLES: Final = (*_ANSWER_TABLES, "metrics")
_COPY_DIRECTIONS: Final = {"Host To Device": "HtoD", "Device To Host": "DtoH", "Device To Device": "DtoD"}
_REPORT: Final = "report"
_FAULT_GROUPS: Final = "Gpu page fault groups"
_COUNTERS_NAMED: Final = 3
_MOSTLY: Final = 0.5  # of the GPU's work


@dataclass(frozen=True, slots=True)
class _Run:
    """A report as the run that an analysis looks at."""

    id: str
    case_id: str
    params: dict[str, Any] = field(default_factory=dict)
    pass_name: str = _REPORT
    pass_kind: str = _REPORT
    state: str = "done"
    repeat: int = 1
    seconds: float | None = None
    submission: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class ReadReport:
    """A report that was read.

    Attributes:
        name: Its name, unlike those of the others.
        tables: Those of LOOKED_AT that it has.
        kernels: Its kernels by counters.
        failed: What the profiled program printed of its own failure.
    """

    name: str
    tables: Mapping[str, TableData]
    kernels: tuple[KernelRow, ...] = ()
    failed: str | None = None


def summarize_reports(name: str, reports: Sequence[ReadReport]) -> Summary:
    """What reports show, a case each; a file with the results of several runs or processes is a case for each of them.

    Args:
        name: What they are together, for the headline.
        reports: The reports, in the order of the answer; by their numbers where a shell sorted their names.
    """
    names = [report.name for report in reports]
    if names == sorted(names):
        reports = sorted(
            reports,
            key=lambda report: [  # in which 16 comes before 128
                (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", report.name)
            ],
        )
    results = [part for report in reports for part in _split_report_by_result(report, alone=len(reports) == 1)]
    cases = reports_by_case(results)
    case_of = {report.name: case for case, members in cases.items() for report in members}
    runs, tables = runs_and_tables_of_reports(results, case_of)
    failed = [
        Finding(FAILED, f"{r.name}: the program failed while it was profiled: {r.failed}.",
                evidence=(Evidence("runs", (case_of.get(r.name, r.name),)),))
        for r in reports if r.failed
    ]  # fmt: skip
    kernels = {case: found for case, members in cases.items() if (found := kernels_of_case(members))}
    name = name if len(cases) > 1 else next(iter(cases), name)
    return summarize(
        CampaignData(name, "", _unjoined_counters_text(cases), runs, tables, campaign_findings=failed, kernels=kernels),
        ReportRequest(),
    )


def reports_by_case(reports: Sequence[ReadReport]) -> dict[str, list[ReadReport]]:
    """The reports of each case, which is one of its own, but a timeline and the counters of its kernels are of one.

    They are taken for one program where no other timeline has these kernels, and no other counters are of them.
    """
    names = {report.name: _timeline_kernel_names(report) for report in reports}
    timelines = [report for report in reports if names[report.name]]
    pairs = [
        (report, matches[0])
        for report in reports
        if report.kernels and not names[report.name]
        and len(matches := [t for t in timelines if _counted_kernel_names(report) <= names[t.name]]) == 1
    ]  # fmt: skip
    timeline_of = {
        counters.name: timeline.name for counters, timeline in pairs if sum(t is timeline for _, t in pairs) == 1
    }
    counters_of = {timeline: counters for counters, timeline in timeline_of.items()}
    by_name = {report.name: report for report in reports}
    return {
        f"{report.name} with {other}" if (other := counters_of.get(report.name)) else report.name:
        [report, *([by_name[other]] if other else [])]
        for report in reports if report.name not in timeline_of
    }  # fmt: skip


def _unjoined_counters_text(cases: Mapping[str, Sequence[ReadReport]]) -> str | None:
    """Which counters are of no timeline, where there are timelines that they could be of."""
    alone = [members[0] for members in cases.values() if len(members) == 1]
    counters = [report.name for report in alone if report.kernels and not _timeline_kernel_names(report)]
    timelines = [report for members in cases.values() for report in members if _timeline_kernel_names(report)]
    if not counters or not timelines:
        return None
    reason = "one of them must have all of their kernels, and no other counters"
    if len(timelines) == 1 and len(counters) == 1:
        names = _timeline_kernel_names(timelines[0])
        kernels = next(report.kernels for report in alone if report.name == counters[0])
        if missing := [kernel.short_name for kernel in kernels if comparable_name(kernel.name) not in names]:
            reason = f"{timelines[0].name} has no kernel {first_names(missing, 1)}"
    return f"Not joined with a timeline: {first_names(counters, _COUNTERS_NAMED)} ({reason})."


def _timeline_kernel_names(report: ReadReport) -> frozenset[str]:
    """The kernels of a report that is a timeline; none of one that has counters alone, or beside its times."""
    if report.kernels:
        return frozenset()
    rows = full_rows("gpu_summary", report.tables.get("gpu_summary", []))
    return frozenset(comparable_name(row["name"]) for row in rows if row["kind"] == "kernel")


def _counted_kernel_names(report: ReadReport) -> frozenset[str]:
    return frozenset(comparable_name(kernel.name) for kernel in report.kernels)


def kernels_of_case(reports: Sequence[ReadReport]) -> tuple[KernelRow, ...]:
    """The kernels with counters of a case's reports, with the times of its timeline where that is another report."""
    if len(reports) == 1:
        return reports[0].kernels
    timeline, counters = reports
    rows = full_rows("gpu_summary", timeline.tables.get("gpu_summary", []))
    return add_timeline_times(counters.kernels, kernel_times_by_name(rows))


def runs_and_tables_of_reports(
    reports: Sequence[ReadReport], cases: Mapping[str, str]
) -> tuple[list[_Run], dict[str, list[Mapping[str, Any]]]]:
    """Reports as the runs of a campaign, each of its case by `cases`; the rows of their tables."""
    runs = [_Run(report.name, cases[report.name]) for report in reports]
    tables: dict[str, list[Mapping[str, Any]]] = {table: [] for table in _RUN_TABLES}
    for report in reports:
        for table, data in _add_missing_summaries(report.tables).items():
            if (table_rows := tables.get(table)) is not None:
                table_rows += [{**row, "run": report.name} for row in full_rows(table, data)]
    return runs, tables


def _split_report_by_result(report: ReadReport, *, alone: bool) -> list[ReadReport]:
    """A report for each result with GPU work, or table of operators, that a file has: their sums are of no run."""
    summed = _add_missing_summaries(report.tables)
    tables: _Rows = {name: list(full_rows(name, summed[name])) for name in _ANSWER_TABLES if name in summed}
    block_rows = tables.get("gpu_summary") or tables.get("operators", ())
    blocks = sorted({row["block"] for row in block_rows if row.get("block") is not None})
    if len(blocks) < 2:
        return [replace(report, tables=_drop_doubtful_iterations(tables))]
    name_prefix = "" if alone else f"{report.name}: "
    commands = {row.get("block"): row.get("text") for row in tables.get("facts", ()) if row["key"] == "command"}
    differ = len({commands.get(block) for block in blocks}) > 1  # as the sizes of problems do
    pids = {row["block"]: row.get("pid") for row in block_rows if row.get("block") is not None}
    in_order = sorted((row["block"], row.get("pid") or 0) for row in block_rows if row.get("block") is not None)
    are_processes = all(pids.values()) and len(set(in_order)) == len(set(pids.values())) == len(blocks)
    return [
        ReadReport(
            name_prefix
            + (f"process {pids[block]}" if are_processes else f"result {block + 1}")
            + (f" ({commands[block]})" if differ and commands.get(block) else ""),
            {
                name: [row for row in table_rows if row.get("block") in {None, block}]
                for name, table_rows in tables.items()
            },
        )
        for block in blocks
    ]


def _drop_doubtful_iterations(tables: _Rows) -> _Rows:
    """The tables, without iterations that only repeated kernels show and that hold less than half of the GPU's work.

    Set-up does not count; warm-up is of the iterations.
    """
    work = sum_by((row["phase"], row["gpu_ns"] or 0.0) for row in tables.get("phases", ()))
    iterations = tables.get("iterations", ())
    marked = any(row["found_by"] != "kernel_sequence" for row in iterations)
    after_setup = sum(work.values()) - work.get("setup", 0.0)
    if not iterations or marked or after_setup - work.get("end", 0.0) >= _MOSTLY * after_setup:
        return tables
    unsplit = {
        name: table_rows
        for name, table_rows in tables.items()
        if name not in {"iterations", "phase_summary", "gaps", "host_copies", "gpu_use", "gpu_metrics", "collectives"}
    }
    return unsplit | {"phases": [_join_phases(rows) for rows in group_by(tables["phases"], process_key).values()]}


def _join_phases(phases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The phases of a process as the one that a timeline without iterations has."""
    values = {
        column: [row[column] for row in phases if row.get(column) is not None]
        for column in ("duration_ns", "gpu_ns", "gpu_busy_ns", "api_ns")
    }
    sums = {column: sum(known) if known else None for column, known in values.items()}
    starts = [row["start_ns"] for row in phases if row.get("start_ns") is not None]
    whole = {"phase": "all", "found_by": "none", "iterations": None, "start_ns": min(starts, default=None)}
    return {**phases[0], **whole, **sums}


def _add_missing_summaries(tables: Mapping[str, TableData]) -> Mapping[str, TableData]:
    """The tables, with the summaries that a report which holds only traces lacks."""
    completed: dict[str, TableData] = dict(tables)
    for trace, summary in (("gpu_trace", "gpu_summary"), ("api_trace", "api_summary")):
        if trace in tables and summary not in tables:
            completed[summary] = _sum_trace_by_name(full_rows(trace, tables[trace]))
    gpu = list(full_rows("gpu_summary", completed.get("gpu_summary", [])))
    if "um_summary" in tables and not any("Unified" in row["name"] for row in gpu):
        completed["gpu_summary"] = [*gpu, *_unified_memory_copy_rows(full_rows("um_summary", tables["um_summary"]))]
    faults = [row for row in full_rows("um_summary", completed.get("um_summary", [])) if row["name"] == _FAULT_GROUPS]
    completed["facts"] = [
        *full_rows("facts", completed.get("facts", [])),
        *({**row, "key": PAGE_FAULTS, "value": row["total_ns"], "text": None} for row in faults if row["total_ns"]),
    ]
    return completed


def _unified_memory_copy_rows(unified: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The copies of unified memory, which nvprof prints in a table of its own, as rows of gpu_summary."""
    for row in unified:
        if (direction := _COPY_DIRECTIONS.get(row["name"])) is not None:
            name = f"[Unified Memory Memcpy {direction}]"
            yield {**row, "name": name, "short_name": name, "kind": "um"}


_SHAPE: Final = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def _sum_trace_by_name(trace: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a name and kind, with times and calls, and the threads of its largest launch."""
    rows_by_key: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in trace:
        if row.get("name") is None or row.get("duration_ns") is None:
            continue
        key_columns = {name: row.get(name) for name in ("block", "kind", "name", "short_name")}
        total = rows_by_key.setdefault(tuple(key_columns.values()), key_columns | {"total_ns": 0, "calls": 0})
        total["total_ns"] += row["duration_ns"]
        total["calls"] += 1
        shape = [row[column] for column in _SHAPE if row.get(column) is not None]
        if len(shape) == len(_SHAPE):
            total["threads"] = max(total.get("threads", 0), prod(shape))
        if row.get("bytes") is not None:
            total["total_bytes"] = total.get("total_bytes", 0) + row["bytes"]
    return list(rows_by_key.values())
