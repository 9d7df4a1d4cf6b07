"""The kernel table of each case of a campaign, with the times of the case's timeline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsw.analysis.cases import grouped, measured_runs
from nsw.analysis.kernels import kernel_table, times_of_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.tables.data import TableData


def with_kernels(
    cases: Sequence[CaseSummary],
    runs: Sequence[Any],
    gpu_summary: Sequence[Mapping[str, Any]],
    counters: Mapping[str, TableData] | None,
) -> list[CaseSummary]:
    """The cases with their kernel tables, times from the case's timeline where it has one.

    Args:
        cases: The cases.
        runs: The campaign's runs (id, case_id).
        gpu_summary: The rows of table gpu_summary.
        counters: The tables metrics, launches and rules of the campaign.
    """
    if not counters or "metrics" not in counters:
        return list(cases)
    of_run = grouped(gpu_summary, "run")
    found = []
    for case in cases:
        mine = [run for run in runs if run.case_id == case.id]
        tables = {name: _of_runs(data, {run.id for run in mine}) for name, data in counters.items()}
        traced = measured_runs(mine, of_run)
        times = times_of_kernels(row for run in traced for row in of_run[run.id])
        timeline = {name: (total / len(traced), calls / len(traced)) for name, (total, calls) in times.items()}
        found.append(replace(case, kernels=kernel_table(tables, timeline)))
    return found


def _of_runs(data: TableData, runs: set[str]) -> TableData:
    if isinstance(data, list):
        return [row for row in data if row.get("run") in runs]
    import pyarrow as pa
    import pyarrow.compute as pc

    return data.filter(pc.is_in(pc.cast(data["run"], pa.string()), pa.array(sorted(runs), pa.string())))
