"""An answer in a notebook: its headline, its first table and its plots."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import NUMBERS, Finding, Note, Table
from nsw.analysis.first_screen import HEADLINE
from nsw.present.plots import svg_of
from nsw.present.summary_view import cells
from nsw.present.svg import node, words
from nsw.quantities import in_one_unit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.analysis.blocks import Block

__all__ = ["html_of"]

_PLOTS: Final = 4


def html_of(blocks: Iterable[Block]) -> str:
    """The headline, the first table, the findings and the first plots of what is of no single case.

    Args:
        blocks: The whole answer, or its first screen.
    """
    overall = [block for block in blocks if block.case is None]
    heads = [node("p", node("b", words(b.text))) for b in overall if isinstance(b, Note) and b.name == HEADLINE]
    tables = [_table(block) for block in overall if isinstance(block, Table) and block.shown == "always"]
    findings = [node("li", words(block.text)) for block in overall
                if isinstance(block, Finding) and block.shown == "always"]  # fmt: skip
    plots = islice(filter(None, (svg_of(block) for block in overall if isinstance(block, Table))), _PLOTS)
    return node("div", *heads, *tables[:1], *([node("ul", *findings)] if findings else []), *plots)


def _table(block: Table) -> str:
    columns = [
        in_one_unit(column.title, column_texts)
        for column, column_texts in zip(block.columns, cells(block), strict=True)
    ]
    sides = ["right" if column.unit in NUMBERS else "left" for column in block.columns]
    heads = [node("th", words(head), align=side) for (head, _), side in zip(columns, sides, strict=True)]
    rows = zip(*(column_texts for _, column_texts in columns), strict=True)
    lines = [
        node("tr", *(node("td", words(cell), align=side) for cell, side in zip(row, sides, strict=True)))
        for row in rows
    ]  # fmt: skip
    return node("table", node("thead", node("tr", *heads)), node("tbody", *lines))
