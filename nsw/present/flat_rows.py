"""A summary's tables as rows, for CSV, JSON and Parquet."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.present.kernels_view import flat_kernels, flat_points

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.summary import Summary

FLAT = ("scaling", "compare", "hotspots", "kernels", "roofline", "api", "copies", "figures", "functions", "model",
        "perturbation")  # fmt: skip
OF_A_CASE = frozenset({"hotspots", "kernels", "roofline", "api", "copies", "functions"})  # several rows a case
_OF_TIMELINES = ("hotspots", "api", "copies")


def flat_rows(summary: Summary, table_name: str) -> list[dict[str, Any]]:
    """One of the summary's tables (FLAT) as rows."""
    curve = summary.curve
    if table_name == "scaling":
        if curve is None:
            return []
        rest = ("runs", "profiled", "speedup", "efficiency_pct", "communication_pct", "missing")
        return [
            _beside(
                {**p.series, curve.axis: p.at},
                {"case": p.case_id, "figure": curve.figure, "value": p.figure, "unit": curve.unit}
                | {name: getattr(p, name) for name in rest},
            )
            for p in curve.points
        ]
    if table_name == "compare":
        return [_beside(v.series, {k: x for k, x in asdict(v).items() if k != "series"}) for v in summary.variants]
    if table_name == "model":
        return [
            _beside(m.params, {k: v for k, v in asdict(m).items() if k not in {"params", "links"}}
                    | {f"{link.name}_bytes_per_s": link.bytes_per_s for link in m.links})
            for m in summary.model
        ]  # fmt: skip
    if table_name in {"kernels", "roofline"}:
        of = flat_kernels if table_name == "kernels" else flat_points
        return [{"case": c.id} | _beside(c.params, row, "case") for c in summary.cases for row in of(c.kernels)]
    # the others are under their own names in each case
    return [
        {"case": c.id} | _beside(c.params, _of_phase(c, table_name) | asdict(row), "case")
        for c in summary.cases
        for row in getattr(c, table_name)
    ]


def _of_phase(case: CaseSummary, table_name: str) -> dict[str, str]:
    """The phase that a row speaks of."""
    if table_name not in _OF_TIMELINES:
        return {}
    return {"phase": "steady" if case.phases else "all"}


def _beside(params: Mapping[str, Any], row: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """The parameters, then the row; a parameter with the name of one of its columns is told apart from it."""
    return {f"param_{k}" if k in row or k in more else k: v for k, v in params.items()} | dict(row)
