"""Sentences on a terminal: broken between words, and never inside a command that a person copies.

A kernel's name that is longer than a line loses its middle.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from nsw.present.elided_names import distinct
from nsw.present.program_name import as_typed
from nsw.present.untrusted_text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

# a command in backticks with what touches it, else a word
_PIECE: Final = re.compile(r"(?:`[^`]*`|[^\s`])+|`\S*")
_KERNEL: Final = re.compile(r"(\(?)([A-Za-z_][\w:<>,&*()\[\]]*+)")  # neither a path nor a run
_BEHIND_A_KERNEL: Final = "),.;:"  # of the sentence, not of the name
_EXCERPT: Final = re.compile(r"\s*+(?:\d++\s++|(?<=\s))\| ")  # a line of a file, or what points at it


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
    pieces = list(_PIECE.finditer(line))
    for piece, text in zip(pieces, _short([piece[0] for piece in pieces], width - len(indent)), strict=True):
        between = line[before : piece.start()]
        size = cell_len(text)
        if between and room + len(between) + size > width:
            between, room = f"\n{indent}", 0
        made, room, before = f"{made}{between}{text}", room + len(between.lstrip("\n")) + size, piece.end()
    return made


def _short(words: Sequence[str], room: int) -> list[str]:
    """The words; names of kernels that are longer than a line lose their middle, and stay distinguishable."""
    long = {n: found for n, word in enumerate(words) if cell_len(word) > room and (found := _kernel(word))}
    around = max((len(before + behind) for before, _, behind in long.values()), default=0)
    names = distinct([name for _, name, _ in long.values()], room - around)
    short = {n: f"{before}{name}{behind}" for (n, (before, _, behind)), name in zip(long.items(), names, strict=True)}
    return [short.get(n, word) for n, word in enumerate(words)]


def _kernel(word: str) -> tuple[str, str, str] | None:
    """What is before a kernel's name, the name, and what is behind it; None for a word that is none."""
    bare = word.rstrip(_BEHIND_A_KERNEL)  # a pattern for all three would try every place where the name may end
    found = _KERNEL.fullmatch(bare)
    return (found[1], found[2], word[len(bare) :]) if found else None
