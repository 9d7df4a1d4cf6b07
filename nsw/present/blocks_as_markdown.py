"""Blocks of an answer as Markdown, for an issue, a report or a chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import NUMBERS, Column, Finding, Note, Table
from nsw.present.block_cells import cells
from nsw.present.untrusted_text import clean
from nsw.quantities import MOMENTS, in_one_unit, moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.analysis.blocks import Block

# what Markdown, or HTML in it, would take for markup
_MARKUP: Final = re.compile(r"([\\`*{}\[\]<>#|~&$@]|(?<![^\W_])_|_(?![^\W_]))")  # an underscore inside a word is one
_AT_START: Final = re.compile(r"^(?:([-+=])|(\d+)([.)]))(?=\s|$)")

# what nsw writes for a person to copy; whatever a program wrote between such marks is shown as it is, and is no markup
_COMMAND: Final = re.compile(r"(`(?:nsw|ncu|nsys|nvprof) [^`]+`)")

_RUNS: Final = "runs"  # the table with moments in it


def as_markdown(title: str, blocks: Iterable[Block]) -> str:
    """The answer in full: its findings first, since a reader may stop there."""
    given = [block for block in blocks if block.shown in {"always", "full"}]
    first = [block for block in given if isinstance(block, Finding)]
    rest = [block for block in given if not isinstance(block, Finding)]
    parts = [f"# {_text(title)}", *(["\n".join(f"- {_text(f.text)}" for f in first)] if first else [])]
    parts += [_block(block) for block in rest]
    return "\n\n".join(parts) + "\n"


def rows_markdown(
    title: str, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], note: str | None = None
) -> str:
    """Rows of one table as Markdown, unrounded; the moments of runs are those of the local clock."""
    moments = MOMENTS if title == _RUNS else frozenset()
    made = Table(
        "rows",
        "",
        tuple(Column(c, c) for c in columns),
        tuple(tuple(_moment(row.get(c)) if c in moments else row.get(c) for c in columns) for row in rows),
    )
    parts = [f"# {_text(title)}", *([_text(note)] if note else []), _table(made)]
    return "\n\n".join(parts) + "\n"


def _moment(value: Any) -> Any:
    return moment(value) if isinstance(value, int | float) else value


def _block(block: Block) -> str:
    if isinstance(block, Note):
        return f"## {_text(block.text)}" if block.tone == "heading" else _text(block.text)
    assert isinstance(block, Table)
    return f"**{_text(block.title)}**\n\n{_table(block)}" if block.title else _table(block)


def _table(block: Table) -> str:
    rows = cells(block)
    columns = [
        in_one_unit(column.title, [row[n] for row in rows]) for n, column in enumerate(block.columns)
    ]  # fmt: skip
    heads = [_cell(head) for head, _ in columns]
    sides = ["---:" if column.unit in NUMBERS else "---" for column in block.columns]
    lines = [heads, sides, *([_cell(str(cell)) for cell in row] for row in zip(*(c for _, c in columns), strict=True))]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """A text in a table, where a bar would end the cell in a command too."""
    return _line(text, lambda command: command.replace("|", r"\|"))


def _line(text: str, written: Callable[[str], str] = str) -> str:
    """A text inside a line: commands as code, whatever else would be markup escaped."""
    pieces = _COMMAND.split(" ".join(clean(text).split()))  # every other one is a command
    return "".join(written(one) if n % 2 else _MARKUP.sub(r"\\\1", one) for n, one in enumerate(pieces))


def _text(text: str) -> str:
    """A text of one line that stays what it is, at the beginning of a line too."""
    return _AT_START.sub(lambda m: f"\\{m[1]}" if m[1] else f"{m[2]}\\{m[3]}", _line(text))
