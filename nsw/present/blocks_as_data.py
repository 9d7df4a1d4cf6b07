"""Blocks of an answer as JSON data: every block has columns and rows or a text, and names the rows that prove it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.analysis.blocks import Finding, Note, Scatter, Table
from nsw.present.untrusted_text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.blocks import Block


def blocks_data(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """The blocks but those that only the brief form has, which the others hold in full; numbers unrounded."""
    return [_data(block) for block in blocks if block.shown != "brief"]


def _data(block: Block) -> dict[str, Any]:
    about = {
        "kind": block.kind,
        "name": block.name,
        "case": block.case,
        "evidence": [{"table": one.table, "cases": list(one.cases)} for one in block.evidence],
    }
    if isinstance(block, Finding):
        return about | {"text": clean(block.text)}
    if isinstance(block, Note):
        return about | {"text": clean(block.text), "tone": block.tone}
    assert isinstance(block, Table)
    parts: dict[str, Any] = {part: name if isinstance(name, str) else list(name) for part, name in block.parts.items()}
    if isinstance(block, Scatter):
        parts["ceilings"] = [asdict(one) for one in block.ceilings]
    columns = [{"name": c.name, "title": c.title, "unit": c.unit} for c in block.columns]
    return about | {"title": block.title, "columns": columns, "rows": [list(row) for row in block.rows]} | parts
