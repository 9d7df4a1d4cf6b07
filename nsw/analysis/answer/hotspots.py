"""What each case spends most of its time on, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Bars, Column, Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.blocks import Block, Cell
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.summary import Summary

_TOP: Final = 3  # of a case
_COLUMNS: Final = (
    Column("case", "case"), Column("name", "name", "name"), Column("share_pct", "share", "%"),
    Column("total_ns", "time", "ns"), Column("calls", "calls", "count"),
)  # fmt: skip


def blocks(summary: Summary) -> list[Block]:
    """The first three of each case: GPU operations, or Python functions where no case has a GPU's timeline."""
    with_gpu = [c for c in summary.cases if c.hotspots]
    chosen = [(c, c.hotspots or c.functions) for c in (with_gpu or [c for c in summary.cases if c.functions])]
    rows: list[tuple[Cell, ...]] = []
    for case, shares in chosen:
        rows += [(case.id, h.short_name, h.share_pct, h.total_ns, h.calls) for h in shares[:_TOP]]
        if not with_gpu and case.import_ns:
            rows.append((case.id, "(imports of modules, not in these shares)", "", case.import_ns, ""))
    if not rows:
        return []
    mean = " (of a run, the mean of several)" if any(c.measured > 1 for c, _ in chosen) else ""
    where = part_of_timeline(c for c, _ in chosen) if with_gpu else ""
    if with_gpu and not where:
        where = ", set-up included" + (" (no iterations were found)" if any(c.one_phase for c, _ in chosen) else "")
    return [
        Bars(
            "hotspots",
            f"most {'GPU time' if with_gpu else 'Python time'}{where}{mean}",
            _COLUMNS,
            tuple(rows),
            wide="name",
            least=("calls", "total_ns"),
            repeats=1,
            label="name",
            value="share_pct",
            shown="brief",
            evidence=(Evidence("hotspots" if with_gpu else "functions", tuple(c.id for c, _ in chosen)),),
        )
    ]


def part_of_timeline(cases: Iterable[CaseSummary]) -> str:
    """Which part of the timelines is meant; printed where all or some of them were split."""
    split = [bool(c.phases) for c in cases]
    if all(split) and split:
        return " of the steady state"
    return " (of the steady state where there are iterations)" if any(split) else ""
