"""Rooflines as data: a point for each kernel, precision and memory level, under the ceilings of its chip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Ceiling, Column, Evidence, Scatter

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.roofline import Point
    from nsw.analysis.summary import Summary

_COLUMNS: Final = (
    Column("kernel", "kernel", "name"), Column("precision", "precision"), Column("level", "level"),
    Column("intensity", "FLOP/byte", "number"), Column("flop_per_s", "reached", "FLOP/s"),
    Column("roof_flop_per_s", "roof", "FLOP/s"), Column("share_pct", "of the roof", "%"), Column("side", "limited by"),
)  # fmt: skip


def blocks(summary: Summary) -> list[Block]:
    """A scatter plot a case that has points."""
    return [_plot(case) for case in summary.cases if any(k.points for k in case.kernels)]


def _plot(case: CaseSummary) -> Block:
    found = [(kernel, point) for kernel in case.kernels for point in kernel.points]
    return Scatter(
        "roofline",
        f"rooflines of {case.id}",
        _COLUMNS,
        tuple(
            (k.short_name, p.precision, p.level, p.intensity, p.flop_per_s, p.roof_flop_per_s, p.share_pct, p.side)
            for k, p in found
        ),
        wide="kernel",
        case=case.id,
        shown="data",
        evidence=(Evidence("roofline", (case.id,)),),
        x="intensity",
        y="flop_per_s",
        label="kernel",
        ceilings=_ceilings([p for _, p in found]),
    )


def _ceilings(points: list[Point]) -> tuple[Ceiling, ...]:
    """Each ceiling once; those of launches at other clocks differ, and all are kept."""
    flat = [Ceiling(p.precision, p.peak_flop_per_s, None, p.ceilings) for p in points if p.peak_flop_per_s is not None]
    slopes = [Ceiling(p.level, None, p.peak_bytes_per_s, p.ceilings) for p in points if p.peak_bytes_per_s is not None]
    return tuple(dict.fromkeys([*flat, *slopes]))
