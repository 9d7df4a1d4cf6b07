"""The lines of a text report as nvprof wrote them: less what transports, terminals and editors put around them.

A report seldom arrives alone: `mpirun --tag-output` and `srun --label` put a rank before each line, log
services a timestamp, a terminal colours, a web page entities, Markdown pipes. All that goes; the rank is kept.
"""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, NamedTuple

from nsw.readers.model import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST = 1 << 18  # characters of a line; a longer one is given in pieces

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]{0,512}(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00\x08]")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|nbsp|apos|#\d{2,4}|#x[0-9a-fA-F]{2,4});")
_TAG = re.compile(r"</?(?:pre|br|code|span|div|samp|kbd)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_PREFIX = re.compile(
    r"""\s*(?:
      \[(?P<job>\d+),(?P<ompi>\d+)\]<(?:stderr|stdout|stddiag)>:[ ]?   # Open MPI --tag-output
    | \[(?P<mpich>\d+)\][ ]?(?=[=\s"\d])                                  # MPICH, Intel MPI -prepend-rank
    | (?P<srun>\d{1,6}):[ ]                                              # srun --label
    | \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\s\]]{0,12}\]?[ ]               # timestamps
    | \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[ ]
    | >[ ]?                                                              # quoted in a mail
    )""",
    re.VERBOSE,
)
_PREFIX_STARTS = frozenset("[0123456789>")
_RULE = re.compile(r"[\s|:+-]*\Z")


class Line(NamedTuple):
    """One line: its number from 1, the rank that wrote it where the line says so, and the text."""

    number: int
    rank: int | None
    text: str


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of the file, cleaned; memory does not grow with the file."""
    encoding = Sample(path).encoding
    with path.open("rb") as raw, io.TextIOWrapper(raw, encoding, errors="replace", newline="\n") as file:
        number = 0
        started = False  # in the middle of a line that is longer than LONGEST
        for piece in iter(lambda: file.readline(LONGEST), ""):
            number += not started
            started = not piece.endswith("\n")
            text = piece.rstrip("\r\n")
            if "\r" in text:  # a progress bar draws over itself; what nvprof wrote may come after it
                for drawn in text.split("\r"):
                    yield clean(number, drawn)
            else:
                yield clean(number, text)


def clean(number: int, text: str) -> Line:
    """One line without colours, entities, pipes and prefixes."""
    if "\x1b" in text or "\x08" in text or "\x00" in text:
        text = _ANSI.sub("", text)
    if "&" in text and _ENTITY.search(text):
        text = html.unescape(text)
    if "\u00a0" in text:
        text = text.replace("\u00a0", " ")
    if "<" in text and "|" not in text:
        text = _TAG.sub("", text)
    rank = None
    head = text.lstrip()[:1]
    if head in _PREFIX_STARTS and head:
        rank, text = _without_prefixes(text)
        head = text.lstrip()[:1]
    if head == "|" and text.count("|") >= 3:
        text = _from_pipes(text)
    return Line(number, rank, text)


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


def _from_pipes(text: str) -> str:
    """A row of a Markdown table as columns with blanks between them."""
    if _RULE.match(text):
        return ""
    return "  ".join(cell.strip() for cell in text.strip().strip("|").split("|"))
