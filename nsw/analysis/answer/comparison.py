"""Variants of a program beside the one that the recipe names as baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.answer import parameters
from nsw.analysis.blocks import Bars, Column, Evidence, columns_of

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block, Cell
    from nsw.analysis.comparison import Variant
    from nsw.analysis.summary import Summary


def blocks(summary: Summary) -> list[Block]:
    """A bar a variant, if something was measured of one."""
    variants = summary.variants
    if not any(v.figure is not None or v.gpu_ns is not None for v in variants):
        return []
    first = variants[0]
    with_gpu = any(v.gpu_ns is not None for v in variants)
    repeated = any(v.runs > 1 for v in variants)
    with_top = any(v.top for v in variants)
    columns = columns_of(
        *parameters.columns(first.series),
        Column("variant", summary.compared or "variant"),
        Column("figure", first.unit or "figure", "number"),
        Column("range", "range", "range") if repeated else None,
        Column("ratio", f"times {summary.compared_to}", "times"),
        Column("gpu_ns", "GPU time", "ns") if with_gpu else None,
        Column("top", "most time in", "name") if with_top else None,
    )

    def row(v: Variant) -> tuple[Cell, ...]:
        return (
            *(parameters.cell(value) for value in v.series.values()), parameters.cell(v.variant), v.figure,
            *(((v.least, v.most),) if repeated else ()), v.ratio, *((v.gpu_ns,) if with_gpu else ()),
            *((v.top or "",) if with_top else ()),
        )  # fmt: skip

    title = f"{summary.figure} by {summary.compared}, compared with {summary.compared}={summary.compared_to}"
    return [
        Bars(
            "compare",
            title + (" (median of the runs)" if repeated else ""),
            columns,
            tuple(row(v) for v in variants),
            wide="top" if with_top else None,
            least=(*(("gpu_ns",) if with_gpu else ()), *(("range",) if repeated else ())),
            label="variant",
            value="figure",
            evidence=(Evidence("compare", tuple(v.case_id for v in variants)),),
        )
    ]
