"""The lines of a text report as nvprof wrote them: less what transports, terminals and editors put around them.

A report seldom arrives alone: `mpirun --tag-output` and `srun --label` put a rank before each line, log
services a timestamp, a terminal colours, a web page entities, Markdown pipes, a source file comment marks, a
notebook JSON. All that goes; the rank is kept.
"""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, TypeAlias

from nsw.readers.line_blocks import line_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Line: TypeAlias = "tuple[int, int | None, str]"  # number from 1, the rank that wrote it where the line says so, text

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00\x08]")
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
    | >[ ]?                                                              # quoted in a mail
    | \+?[ ]?(?:\#|//+|(?:!|--)(?=[ ]))[ ]?                            # in a comment, perhaps in a difference
    | \+(?!\+)
    | \*(?:[ ]|\Z)
    )""",
    re.VERBOSE,
)
_DIGITS = frozenset("0123456789")
_PREFIX_STARTS = _DIGITS | frozenset("[>#/*+!-")
_WRAPPED = _PREFIX_STARTS | {"|", '"'}  # a prefix of digits has a colon among its first fourteen characters
_MARKS = "\x00\x08\x1b\r&\u00a0\\"
_TREE = re.compile(r"[|\s]*[^|\s][^|]*\Z")  # a branch of a call tree: no cell of a table follows
_CELL = re.compile(r'\s*(".*\\n"),?\s*\Z', re.DOTALL)  # a line in the JSON of a notebook
_RULE = re.compile(r"[\s|:+-]*\Z")


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of the file, cleaned; memory does not grow with the file."""
    for first, block in line_blocks(path):
        if any(mark in block for mark in _MARKS) or ("<" in block and _TAG.search(block)):
            yield from _marked(first, block)
            continue
        for number, text in enumerate(block.split("\n"), first):
            head = text.lstrip()[:14]
            if head[:1] in _WRAPPED and head and (":" in head or head[0] not in _DIGITS):
                yield number, *_unwrapped(text)
            else:
                yield number, None, text


def _marked(first: int, block: str) -> Iterator[Line]:
    """The lines of a block that has colours, entities, tags or progress bars in it."""
    for number, text in enumerate(block.split("\n"), first):
        # a progress bar draws over itself; what nvprof wrote may come after it
        for drawn in text.rstrip("\r").split("\r"):
            yield number, *clean(drawn)


def clean(text: str) -> tuple[int | None, str]:
    """One line without colours, entities, pipes and prefixes, and the rank that its prefix names."""
    if "\x1b" in text or "\x08" in text or "\x00" in text:
        text = _ANSI.sub("", text)
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\u00a0" in text:
        text = text.replace("\u00a0", " ")
    if "<" in text and "|" not in text:
        text = _TAG.sub("", text)
    if "\\" in text and _CELL.match(text) is None:
        text = _ESCAPE.sub(r"\1", text)
    return _unwrapped(text)


def _unwrapped(text: str) -> tuple[int | None, str]:
    rank = None
    head = text.lstrip()[:1]
    if head == '"' and text[0] == "\t":
        text = text.lstrip("\t")
    if head == '"' and (cell := _CELL.match(text)) is not None:
        text = _from_json(cell[1])
        head = text.lstrip()[:1]
    if head in _PREFIX_STARTS and head:
        rank, text = _without_prefixes(text)
        head = text.lstrip()[:1]
    if head == "|" and text.count("|") >= 3 and _TREE.match(text) is None:
        text = _from_pipes(text)
    return rank, text


def _without_prefixes(text: str) -> tuple[int | None, str]:
    rank = None
    for _ in range(4):
        found = _PREFIX.match(text)
        if found is None:
            break
        own = found["ompi"] or found["mpich"] or found["srun"]
        rank = int(own) if own else rank
        text = text[found.end() :]
    return rank, text


def _from_json(text: str) -> str:
    r"""`"==7== API calls:\n"` as notebooks keep it."""
    try:
        line = json.loads(text)
    except ValueError:
        return text
    return _ANSI.sub("", line).rstrip("\n") if isinstance(line, str) else text


def _from_pipes(text: str) -> str:
    """A row of a Markdown table as columns with blanks between them."""
    if _RULE.match(text):
        return ""
    return "  ".join(cell.strip() for cell in text.strip().strip("|").split("|"))
