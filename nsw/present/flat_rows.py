"""A summary's tables as rows, for CSV, JSON and Parquet; completion reads its names, and no rich is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.answer.kernels import roof_name, shape
from nsw.present.emit import as_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.summary import Summary


_STALLS: Final = 2


_NESTED: Final = frozenset({"shapes", "stalls", "roofline", "advice", "points", "metrics"})


def flat_kernels(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The rows without anything nested; every metric is a column, null where a kernel lacks it."""
    names = list(dict.fromkeys(name for k in kernels for name in k.metrics))
    return [_flat(kernel) | {name: kernel.metrics.get(name) for name in names} for kernel in kernels]


def _flat(kernel: KernelRow) -> dict[str, Any]:
    plain: dict[str, Any] = {name: value for name, value in as_row(kernel).items() if name not in _NESTED}
    plain["shape"] = shape(kernel)
    for at in range(_STALLS):
        stall = kernel.stalls[at] if at < len(kernel.stalls) else None
        plain |= {f"stall_{at + 1}": stall and stall.reason, f"stall_{at + 1}_pct": stall and stall.pct}
    roof, advice = kernel.roofline, kernel.advice
    plain |= {"roof": roof and roof_name(roof), "roof_share_pct": roof and roof.share_pct}
    return plain | {"advice": advice and advice.rule, "advice_speedup_pct": advice and advice.speedup_pct}


def flat_points(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The points of the rooflines."""
    return [{"name": k.name, "short_name": k.short_name} | as_row(point) for k in kernels for point in k.points]


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
            _row_after_parameters(
                {**p.series, curve.axis: p.at},
                {"case": p.case_id, "figure": curve.figure, "value": p.figure, "unit": curve.unit}
                | {name: getattr(p, name) for name in rest},
            )
            for p in curve.points
        ]
    if table_name == "compare":
        return [
            _row_after_parameters(v.series, {k: x for k, x in as_row(v).items() if k != "series"})
            for v in summary.variants
        ]
    if table_name == "model":
        return [
            _row_after_parameters(m.params, {k: v for k, v in as_row(m).items() if k not in {"params", "links"}}
                    | {f"{link.name}_bytes_per_s": link.bytes_per_s for link in m.links})
            for m in summary.model
        ]  # fmt: skip
    if table_name in {"kernels", "roofline"}:
        flatten = flat_kernels if table_name == "kernels" else flat_points
        return [
            {"case": c.id} | _row_after_parameters(c.params, row, "case")
            for c in summary.cases
            for row in flatten(c.kernels)
        ]
    # the others are under their own names in each case
    return [
        {"case": c.id} | _row_after_parameters(c.params, _of_phase(c, table_name) | as_row(row), "case")
        for c in summary.cases
        for row in getattr(c, table_name)
    ]


def _of_phase(case: CaseSummary, table_name: str) -> dict[str, str]:
    """The phase that a row speaks of."""
    if table_name not in _OF_TIMELINES:
        return {}
    return {"phase": "steady" if case.phases else "all"}


def _row_after_parameters(params: Mapping[str, Any], row: Mapping[str, Any], *reserved: str) -> dict[str, Any]:
    """The parameters, then the row; a parameter with the name of one of its columns is told apart from it."""
    return {f"param_{k}" if k in row or k in reserved else k: v for k, v in params.items()} | dict(row)
