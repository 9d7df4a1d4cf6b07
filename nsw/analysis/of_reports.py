"""The answer of reports that are no campaign's: each is a case of one run, and what it holds are its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.summary import OF_KERNELS, TABLES, Asked, CampaignData, Summary, summarize
from nsw.tables import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from nsw.tables import TableData

__all__ = ["summary_of_reports"]

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
    host: str | None = None


def summary_of_reports(name: str, reports: Iterable[tuple[str, Mapping[str, TableData]]]) -> Summary:
    """What reports show, a case each.

    Args:
        name: What they are together, for the headline.
        reports: Of each its name and its tables; names are unique.
    """
    runs: list[_Run] = []
    tables: dict[str, list[Mapping[str, Any]]] = {table: [] for table in (*TABLES, "operators", "osrt_summary")}
    counters: dict[str, list[Mapping[str, Any]]] = {table: [] for table in OF_KERNELS}
    for title, found in reports:
        run = _Run(title, title)
        runs.append(run)
        for table, data in _with_summaries(found).items():
            kept = tables.get(table, counters.get(table))
            if kept is not None:
                kept += [{**row, "run": run.id} for row in rows(table, data)]
    return summarize(
        CampaignData(name, "", None, runs, tables, counters={table: data for table, data in counters.items() if data}),
        Asked(),
    )


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
