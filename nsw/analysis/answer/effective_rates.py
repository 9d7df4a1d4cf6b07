"""Effective rates of each case, and what it does against what the rates of the first case allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.blocks import Column, Evidence, Note, Table

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary


def blocks(summary: Summary) -> list[Block]:
    """A row a case whose rates are known, and why those of the others are not."""
    known = [m for m in summary.model if m.flop_per_s is not None]
    found: list[Block] = []
    if known:
        links = [link.name for link in known[0].links]
        columns = (
            Column("case", "case", "name"),
            Column("intensity", "FLOP/byte", "number"),
            Column("flop_per_s", "computing", "FLOP/s"),
            *(Column(f"link.{name}", name, "byte/s") for name in links),
            Column("modelled_flop_per_s", "modelled", "FLOP/s"),
            Column("measured_flop_per_s", "measured", "FLOP/s"),
        )
        rows = tuple(
            (m.case_id, m.intensity, m.flop_per_s, *(link.bytes_per_s for link in m.links), m.modelled_flop_per_s,
             m.measured_flop_per_s)
            for m in known
        )  # fmt: skip
        title = f"effective rates; modelled by those of {known[0].case_id}" if len(known) > 1 else "effective rates"
        evidence = (Evidence("model", tuple(m.case_id for m in known)),)
        found.append(Table("model", title, columns, rows, wide="case", evidence=evidence))
    found += [Note("model", f"model of {m.case_id}: {m.missing}", tone="warning") for m in summary.model if m.missing]
    return found
