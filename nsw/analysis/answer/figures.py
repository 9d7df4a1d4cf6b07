"""The program's figures by case, where the recipe asks for no curve and no comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.blocks import Column, Evidence, Table

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary

_COLUMNS = (
    Column("case", "case"), Column("figure", "figure"), Column("median", "median", "number"), Column("unit", "unit"),
    Column("range", "range", "range"), Column("runs", "runs", "count"), Column("pass", "pass"),
)  # fmt: skip


def blocks(summary: Summary) -> list[Block]:
    """A row a figure of a case."""
    if summary.curve is not None or summary.variants:
        return []
    rows = tuple(
        (case.id, f.name, f.median, f.unit or "", (f.least, f.most) if f.runs > 1 else "", f.runs,
         f.pass_name + (" (profiled)" if f.profiled else ""))
        for case in summary.cases for f in case.figures
    )  # fmt: skip
    if not rows:
        return []
    return [Table("figures", "figures", _COLUMNS, rows, least=("runs", "range"), evidence=(Evidence("figures"),))]
