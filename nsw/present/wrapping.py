"""Texts on a terminal: sentences broken between words, never inside a command that a person copies, and names.

A name that is longer than its room loses its middle, since template names differ at their ends. Hints name the program
as it was typed, so that they work as printed.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from nsw.present.untrusted_text import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console


_HINT: Final = "`nsw "


@cache
def program() -> str:
    """`nsw` where the shell finds this very program under that name, else the words that start it."""
    import shlex

    typed = sys.argv[0]
    name = Path(typed).name
    if name == "__main__.py" and Path(typed).parent.name == "nsw":
        python = Path(sys.executable)
        on_path = shutil.which(python.name)
        is_on_path = (
            on_path is not None and _is_same_file(on_path, str(python)) and Path(on_path).parent == python.parent
        )
        return f"{shlex.quote(python.name if is_on_path else str(python))} -m nsw"
    if name != "nsw":  # another program that uses nsw
        return "nsw"
    program_path = shutil.which("nsw")
    if program_path is not None and (os.sep not in typed or _is_same_file(program_path, typed)):
        return "nsw"
    return shlex.quote(typed)


def as_typed(text: str) -> str:
    """A text whose hints begin with `nsw, with what was typed."""
    return text.replace(_HINT, f"`{program()} ") if _HINT in text and program() != "nsw" else text


def _is_same_file(first: str, second: str) -> bool:
    try:
        return Path(first).samefile(second)
    except OSError:
        return False


def elided(text: str, width: int) -> str:
    """At most `width` columns of a text: its beginning and its end."""
    if cell_len(text) <= width:
        return text
    kept_width = max(width - 1, 0)
    head, tail = kept_width - kept_width // 2, kept_width // 2
    short = text[:head] + "…" + (text[-tail:] if tail else "")
    while cell_len(short) > width and head + tail:  # characters of two columns
        head, tail = (head - 1, tail) if head > tail else (head, tail - 1)
        short = text[:head] + "…" + (text[-tail:] if tail else "")
    return short


def distinct(texts: Sequence[str], width: int) -> list[str]:
    """The texts in this width; those that would look alike though they differ are numbered."""
    marks = _marks(texts, width)
    return [mark + elided(text, max(width - len(mark), 0)) for mark, text in zip(marks, texts, strict=True)]


def numbered(texts: Sequence[str], width: int) -> list[str]:
    """The whole texts; those that would look alike in this width though they differ are numbered."""
    return [mark + text for mark, text in zip(_marks(texts, width), texts, strict=True)]


def _marks(texts: Sequence[str], width: int) -> list[str]:
    short = [elided(text, width) for text in texts]
    clashes: dict[str, list[str]] = {}
    for text, cut in zip(texts, short, strict=True):
        if text not in clashes.setdefault(cut, []):
            clashes[cut].append(text)
    return [
        "" if len(clashes[cut]) == 1 else f"[{clashes[cut].index(text) + 1}] "
        for text, cut in zip(texts, short, strict=True)
    ]


# a command in backticks with what touches it, else a word
_PIECE: Final = re.compile(r"(?:`[^`]*`|[^\s`])+|`\S*")
_KERNEL: Final = re.compile(r"(\(?)([A-Za-z_][\w:<>,&*()\[\]]*+)")  # neither a path nor a run
_BEHIND_A_KERNEL: Final = "),.;:"  # of the sentence, not of the name
_EXCERPT: Final = re.compile(r"\s*+(?:\d++\s++|(?<=\s))\| ")  # a line of a file, or what points at it


def wrapped(out: Console, text: str, *, used_columns: int = 0) -> str:
    """A text with line breaks for a terminal's width; as it is for what is none.

    Lines of files that an error shows are left alone. What follows a break stands under the line's first word.

    Args:
        out: Where it will be printed.
        text: One or several lines; commands in backticks are written as the user types them.
        used_columns: Columns of the first line that are taken already.
    """
    if not out.is_terminal:
        return text
    lines = as_typed(harmless(text)).split("\n")
    return "\n".join(_line(line, out.width, used_columns if number == 0 else 0) for number, line in enumerate(lines))


def _line(line: str, width: int, used_columns: int) -> str:
    if used_columns + cell_len(line) <= width or _EXCERPT.match(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    wrapped_line, room, before = indent, used_columns + len(indent), len(indent)
    pieces = list(_PIECE.finditer(line))
    for piece, text in zip(pieces, _short([piece[0] for piece in pieces], width - len(indent)), strict=True):
        between = line[before : piece.start()]
        size = cell_len(text)
        if between and room + len(between) + size > width:
            between, room = f"\n{indent}", 0
        wrapped_line, room, before = (
            f"{wrapped_line}{between}{text}",
            room + len(between.lstrip("\n")) + size,
            piece.end(),
        )
    return wrapped_line


def _short(words: Sequence[str], room: int) -> list[str]:
    """The words; names of kernels that are longer than a line lose their middle, and stay distinguishable."""
    long = {
        n: kernel_parts for n, word in enumerate(words) if cell_len(word) > room and (kernel_parts := _kernel(word))
    }
    around = max((len(before + behind) for before, _, behind in long.values()), default=0)
    names = distinct([name for _, name, _ in long.values()], room - around)
    short = {n: f"{before}{name}{behind}" for (n, (before, _, behind)), name in zip(long.items(), names, strict=True)}
    return [short.get(n, word) for n, word in enumerate(words)]


def _kernel(word: str) -> tuple[str, str, str] | None:
    """What is before a kernel's name, the name, and what is behind it; None for a word that is none."""
    bare = word.rstrip(_BEHIND_A_KERNEL)  # a pattern for all three would try every place where the name may end
    match = _KERNEL.fullmatch(bare)
    return (match[1], match[2], word[len(bare) :]) if match else None
