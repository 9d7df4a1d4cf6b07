"""Blocks of an answer on a terminal: sentences, and tables of what has no picture there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import NUMBERS, Column, Finding, Note, Table, Timeline
from nsw.present.block_cells import as_text, cells
from nsw.present.elided_names import numbered
from nsw.present.terminal import clean, table
from nsw.present.wrapping import wrapped
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from nsw.analysis.blocks import Block, Shown

_LEAST_NAME: Final = 24
_GAP: Final = 3
_STYLES: Final = {"warning": "yellow", "aside": "dim", "heading": "bold"}


def show_blocks(out: Console, blocks: Iterable[Block], form: Shown) -> None:
    """Print those of this form, `brief` or `full`, in their order."""
    for block in blocks:
        if block.shown in {"always", form}:
            show_block(out, block)


def show_block(out: Console, block: Block) -> None:
    """Print one; a kind without a form of its own as the table that it is."""
    if isinstance(block, Finding):
        out.print(wrapped(out, f"* {block.text}"), soft_wrap=True)
    elif isinstance(block, Note):
        _note(out, block)
    elif isinstance(block, Timeline):
        _timeline(out, block)
    elif isinstance(block, Table):
        _table(out, block)


def _note(out: Console, note: Note) -> None:
    if note.tone == "heading":
        out.print()
    inside = "  " if note.tone == "plain" and note.case and note.name != "case" else ""
    out.print(wrapped(out, inside + note.text), style=_STYLES.get(note.tone), soft_wrap=True)


def _timeline(out: Console, block: Timeline) -> None:
    """Its stretches but the steady state, a line each."""
    for phase, length, iterations, what in block.rows:
        if phase != "steady state":
            count = f", {plural(iterations, 'iteration')}" if isinstance(iterations, int) and iterations else ""
            spent = f": {as_text(what, 'names and ns')}" if what else ""
            out.print(f"  not in what follows: {phase} {as_text(length, 'ns')}{count}{spent}")


def _table(out: Console, block: Table) -> None:
    shown = cells(block)
    wide = _title(block, block.wide)
    if not block.goes_on:
        least = [_title(block, name) or "" for name in block.least]
        out.print(table(block.title, [_head(c) for c in block.columns], shown, wide=wide, least=least))
        return
    first, *others = [[row[n] for row in shown] for n in range(len(block.columns))]
    parts = _fitted(block.columns[1:], others, first, out.width)
    first = numbered(first, _LEAST_NAME) if len(parts) > 1 else first  # alike in all parts, however wide each is
    for part, some in enumerate(parts):
        heads = [_head(block.columns[0]), *(_head(block.columns[n + 1]) for n in some)]
        rows = zip(first, *(others[n] for n in some), strict=True)
        out.print(table(block.title if part == 0 else None, heads, rows, wide=wide))


def _head(column: Column) -> str:
    return column.title + (">" if column.unit in NUMBERS else "")


def _title(block: Table, name: str | None) -> str | None:
    return next((c.title for c in block.columns if c.name == name), None)


def _fitted(
    columns: Sequence[Column], texts: Sequence[Sequence[object]], names: Sequence[str], width: int
) -> list[list[int]]:
    """The columns of each table: as many as fit beside the names."""
    beside = min(max(map(len, names)), _LEAST_NAME) + _GAP
    parts: list[list[int]] = [[]]
    room = width - beside
    for n, (column, own) in enumerate(zip(columns, texts, strict=True)):
        needs = max(len(column.title), *(len(clean(text)) for text in own)) + _GAP
        if needs > room and parts[-1]:
            parts.append([])
            room = width - beside
        parts[-1].append(n)
        room -= needs
    return parts
