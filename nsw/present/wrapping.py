"""Sentences on a terminal: broken between words, and never inside a command that a person copies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from nsw.present.program_name import as_typed
from nsw.present.text_of_others import harmless

if TYPE_CHECKING:
    from rich.console import Console

# a command in backticks with what touches it, else a word
_PIECE: Final = re.compile(r"(?:`[^`]*`|[^\s`])+|`\S*")
_EXCERPT: Final = re.compile(r"\s*\d*\s+\| ")  # a line of a file, or what points at it


def wrapped(out: Console, text: str, *, begun: int = 0) -> str:
    """A text with line breaks for a terminal's width; as it is for what is none.

    Lines of files that an error shows are left alone. What follows a break stands under the line's first word.

    Args:
        out: Where it will be printed.
        text: One or several lines; commands in backticks are written as the user types them.
        begun: Columns of the first line that are taken already.
    """
    if not out.is_terminal:
        return text
    lines = as_typed(harmless(text)).split("\n")
    return "\n".join(_line(line, out.width, begun if number == 0 else 0) for number, line in enumerate(lines))


def _line(line: str, width: int, begun: int) -> str:
    if begun + cell_len(line) <= width or _EXCERPT.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    made, room, before = indent, begun + len(indent), len(indent)
    for piece in _PIECE.finditer(line):
        between = line[before : piece.start()]
        size = cell_len(piece[0])
        if between and room + len(between) + size > width:
            between, room = f"\n{indent}", 0
        made, room, before = f"{made}{between}{piece[0]}", room + len(between.lstrip("\n")) + size, piece.end()
    return made
