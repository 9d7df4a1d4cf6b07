"""The answer of reports that are no campaign's: each is a case of one run, and what it holds are its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.first_screen import FAILED
from nsw.analysis.summary import TABLES, Asked, CampaignData, Summary, summarize
from nsw.tables import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.kernels import KernelRow
    from nsw.tables import TableData

__all__ = ["LOOKED_AT", "ReadReport", "summary_of_reports", "tables_of_reports"]

LOOKED_AT: Final = (*TABLES, "operators", "osrt_summary", "gpu_trace", "api_trace")  # tables that the answer needs

_KEPT: Final = (*TABLES, "operators", "osrt_summary", "metrics")
_REPORT: Final = "report"


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
    job: str = ""
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


def summary_of_reports(name: str, reports: Sequence[ReadReport]) -> Summary:
    """What reports show, a case each.

    Args:
        name: What they are together, for the headline.
        reports: The reports.
    """
    runs, tables = tables_of_reports(reports)
    failed = [
        Finding(FAILED, f"{r.name}: the program failed while it was profiled: {r.failed}. What was measured"
                " ends there.", evidence=(Evidence("runs", (r.name,)),))
        for r in reports if r.failed
    ]  # fmt: skip
    kernels = {report.name: report.kernels for report in reports if report.kernels}
    return summarize(CampaignData(name, "", None, runs, tables, known=failed, kernels=kernels), Asked())


def tables_of_reports(
    reports: Sequence[ReadReport], case: str | None = None
) -> tuple[list[_Run], dict[str, list[Mapping[str, Any]]]]:
    """Reports as the runs of a campaign, each of a case of its own, or all of `case`; the rows of their tables."""
    runs = [_Run(report.name, case or report.name) for report in reports]
    tables: dict[str, list[Mapping[str, Any]]] = {table: [] for table in _KEPT}
    for report in reports:
        for table, data in _with_summaries(report.tables).items():
            if (kept := tables.get(table)) is not None:
                kept += [{**row, "run": report.name} for row in rows(table, data)]
    return runs, tables


def _with_summaries(tables: Mapping[str, TableData]) -> Mapping[str, TableData]:
    """The tables, with the summaries that a report which holds only traces lacks."""
    made: dict[str, TableData] = dict(tables)
    for trace, summary in (("gpu_trace", "gpu_summary"), ("api_trace", "api_summary")):
        if trace in tables and summary not in tables:
            made[summary] = _summed(rows(trace, tables[trace]))
    return made


def _summed(trace: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a name and kind, with times and calls."""
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for row in trace:
        if row.get("name") is None or row.get("duration_ns") is None:
            continue
        kind = row.get("kind")
        first = {"name": row["name"], "short_name": row.get("short_name"), "kind": kind, "total_ns": 0, "calls": 0}
        total = found.setdefault((kind, row["name"]), first)
        total["total_ns"] += row["duration_ns"]
        total["calls"] += 1
        if row.get("bytes") is not None:
            total["total_bytes"] = total.get("total_bytes", 0) + row["bytes"]
    return list(found.values())
