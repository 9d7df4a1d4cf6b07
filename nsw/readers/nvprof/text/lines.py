"""The lines of a text report as nvprof wrote them: less what transports, terminals and editors put around them.

A report seldom arrives alone: `mpirun --tag-output` and `srun --label` put a rank before each line, log services a
timestamp, a terminal colours, a document entities and marks of Markdown. All that goes; the rank is kept.
"""

from __future__ import annotations

import csv
import html
import re
from itertools import repeat
from typing import TYPE_CHECKING, TypeAlias

from nsw.readers.text.lines import CONTROL, line_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["cells_of", "clean", "read_lines"]

Line: TypeAlias = "tuple[int, int | None, str]"  # number from 1, the rank that wrote it where the line says so, text

_ESCAPE = re.compile(r"""\\([*_<>\[\]()#"'`~|])""")  # of Markdown
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|nbsp|apos|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
_TAG = re.compile(r"</?(?:pre|br|code|span|div|samp|kbd|body|html)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_PREFIX = re.compile(
    r"""\s*(?:
      \[(?P<job>\d+),(?P<ompi>\d+)\]<(?:stderr|stdout|stddiag)>:[ ]?   # Open MPI --tag-output
    | \[(?P<mpich>\d+)\][ ]?(?=[=\s"\d])                                  # MPICH, Intel MPI -prepend-rank
    | (?P<srun>\d{1,6}):[ ]                                              # srun --label
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\]]{0,12}\]?[ ]               # timestamps
    | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[ ]
    | \#(?==)                                                             # a heading, in a document
    )""",
    re.VERBOSE,
)
_DIGITS = frozenset("0123456789")
_PREFIX_STARTS = _DIGITS | frozenset("[#")
_HEAD = 14  # characters, among which a prefix of digits has a colon
_WRAPPED = _PREFIX_STARTS - _DIGITS
_MARKS = "\x00\x08\x1b\r&\u00a0\\"


def read_lines(path: Path) -> Iterator[Line]:
    """All lines of the file, cleaned; memory does not grow with the file."""
    for first, text in line_blocks(path):
        block = text.removesuffix("\r").replace("\r\n", "\n") if "\r" in text else text
        if any(mark in block for mark in _MARKS) or ("<" in block and _TAG.search(block)):
            yield from _marked(first, block)
            continue
        lines = block.split("\n")
        if _are_wrapped(lines):
            yield from ((number, *_unwrapped(line)) for number, line in enumerate(lines, first))
        else:
            yield from ((number, None, line) for number, line in enumerate(lines, first))


def _are_wrapped(lines: Sequence[str]) -> bool:
    """Whether there may be prefixes."""
    heads = [line.lstrip()[:_HEAD] for line in lines]
    firsts = {head[:1] for head in heads}
    if not _WRAPPED.isdisjoint(firsts) or ('"' in firsts and any(map(str.startswith, lines, repeat("\t")))):
        return True
    return ":" in "".join(heads) and any(":" in head and head[0] in _DIGITS for head in heads)


def _marked(first: int, block: str) -> Iterator[Line]:
    """The lines of a block that has colours, entities, tags or progress bars in it."""
    for number, text in enumerate(block.split("\n"), first):
        # a progress bar draws over itself; what nvprof wrote may come after it
        for drawn in text.rstrip("\r").split("\r"):
            yield number, *clean(drawn)


def clean(text: str) -> tuple[int | None, str]:
    """One line without colours, entities and prefixes, and the rank that its prefix names."""
    if "\x1b" in text or "\x08" in text or "\x00" in text:
        text = CONTROL.sub("", text)
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\u00a0" in text:
        text = text.replace("\u00a0", " ")
    if "<" in text:
        text = _TAG.sub("", text)
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    return _unwrapped(text)


def _unwrapped(text: str) -> tuple[int | None, str]:
    rank = None
    head = text.lstrip()[:1]
    if head == '"' and text[0] == "\t":
        text = text.lstrip("\t")
    if head in _PREFIX_STARTS and head:
        rank, text = _without_prefixes(text)
    return rank, text


def _without_prefixes(text: str) -> tuple[int | None, str]:
    rank = None
    for _ in range(4):
        match = _PREFIX.match(text)
        if match is None:
            break
        printed_rank = match["ompi"] or match["mpich"] or match["srun"]
        rank = int(printed_rank) if printed_rank else rank
        text = text[match.end() :]
    return rank, text


def cells_of(text: str, mark: str) -> list[str]:
    """The cells of one line; a quote that is never closed closes at the line's end. None where one is too long."""
    if '"' not in text:
        return text.split(mark)
    try:
        return next(csv.reader([text], delimiter=mark), [])
    except csv.Error:
        return []
