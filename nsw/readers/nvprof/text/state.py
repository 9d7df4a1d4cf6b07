"""What a text report has said so far: which process and result block the next row belongs to, and the rows.

nvprof names the process on the lines it talks on (`==PID==`), never on the rows; ranks that a launcher put
before the lines tell the streams of several processes apart, each with a `Stream` of its own.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from nsw.readers.messages import problem_of_known_message
from nsw.readers.nvprof.vocabulary import Columns, split_device
from nsw.readers.text.lines import CONTROL, delimited_cells, line_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.readers.model import Report

__all__ = ["AGAIN", "Line", "RowTaker", "Sink", "Stream", "cells_of", "clean_line", "read_lines"]


AGAIN = "copy the report again"
_MOST_SHOWN = 5  # faults of one kind; the rest are counted
_MOST_MESSAGES = 200


class RowTaker(Protocol):
    """A table that is being read: takes a line when it is one of its rows."""

    def take(self, number: int, text: str) -> bool:
        """Whether the line was a row of this table (and is now in the sink)."""


@dataclass(slots=True)
class Stream:
    """One launcher rank's lines (or all lines, where there are no ranks): where we are in them."""

    sink: Sink
    rank: int | None
    block: int | None = None
    pid: int | None = None
    device: int | None = None
    device_name: str | None = None
    section: str | None = None  # what the last title announced: gpu, api, openacc, um, nvtx, cpu, other ...
    kernel: str | None = None  # that stood before the titles of the next table
    in_nvtx: bool = False
    nvtx_domain: str | None = None
    nvtx_range: str | None = None
    table: RowTaker | None = None
    filled: set[str] = field(default_factory=set)  # sections of this block that have rows
    blocks_by_pid: dict[int, int] = field(default_factory=dict)
    # the block and the GPU below which the rows of OpenACC or OpenMP stood first
    directives: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)

    def origin_values(self) -> tuple[int, int | None, int | None]:
        """The same as `origin`, for `Columns`: block, rank, pid."""
        return self.block or 0, self.rank, self.pid

    def origin(self) -> dict[str, Any]:
        """The columns that say where a row comes from."""
        return {"block": self.block or 0, "rank": self.rank, "pid": self.pid}

    def set_device(self, text: str) -> None:
        """Take `Tesla V100-SXM2-16GB (0)` as the device of what follows."""
        self.device_name, self.device = split_device(text)


class Sink:
    """All rows and problems of one report."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.tables: dict[str, Columns] = {}
        self.blocks = 0
        self.summed: set[tuple[str, tuple[int | None, ...]]] = set()  # sections of blocks of which there are summaries
        self.at_end: list[Callable[[], None]] = []  # what makes rows of all that was read
        self._faults: Counter[str] = Counter()
        self._reported: set[tuple[str, str]] = set()

    def new_block(self, stream: Stream) -> None:
        """The next rows of the stream are of another process or run."""
        stream.block = self.blocks
        self.blocks += 1
        stream.table = None
        stream.section = None
        stream.in_nvtx = False
        stream.device = stream.device_name = None
        stream.filled = set()
        if stream.pid is not None:
            stream.blocks_by_pid[stream.pid] = stream.block

    def add(self, table: str, row: dict[str, Any]) -> None:
        """One row of a small table."""
        rows = self.rows.get(table)
        if rows is None:
            rows = self.rows[table] = []
        rows.append(row)

    def table(self, table: str, shared: tuple[str, ...], own_columns: tuple[str, ...], name: str = "name") -> Columns:
        """The columns of a table that may be as long as the program ran; they are made when the table is new.

        Args:
            table: The name of the table (nsw.tables.schema).
            shared: The columns that many rows share, before the name.
            own_columns: The columns of numbers, each row its own.
            name: The column of the name, the last of those that rows share.
        """
        columns = self.tables.get(table)
        if columns is None:
            columns = self.tables[table] = Columns(table, shared, own_columns, name)
        return columns

    def fault(self, message: str, number: int) -> None:
        """An error of the file at a line; of many alike the first few are shown."""
        if self._is_shown(message):
            self.report.error(message, line=number, fix=AGAIN)

    def warn(self, message: str, number: int, fix: str | None = None) -> None:
        """Warn of a line that may mislead; of many similar warnings the first few are shown.

        Args:
            message: What may mislead. It is the same for similar ones.
            number: The number of the line, from 1.
            fix: What the user can do; None if nothing.
        """
        if self._is_shown(message):
            self.report.warn(message, line=number, fix=fix)

    def _is_shown(self, message: str) -> bool:
        self._faults[message] += 1
        return self._faults[message] <= _MOST_SHOWN

    def note(self, message: str) -> None:
        """Something that the report holds and that is not read: reported once."""
        if not self._faults[message]:
            self.report.warn(message)
        self._faults[message] = 1

    def message(self, number: int, text: str, severity: str | None) -> None:
        """Add a message that nvprof printed to the problems of the report, once.

        Args:
            number: The number of the line, from 1.
            text: The message, without its prefix.
            severity: nvprof's own word for it: "error" or "warning"; None where it has none, and then the message is
                added only if nsw knows it as a problem.
        """
        problem = problem_of_known_message("nvprof", text, line=number, severity=severity)
        if problem is None or len(self._reported) >= _MOST_MESSAGES:
            return
        key = (problem.severity, problem.message)
        if key not in self._reported:
            self._reported.add(key)
            self.report.problems.append(problem)

    def finish(self) -> None:
        """Demangle, shorten and hand the tables over."""
        for make in self.at_end:
            make()
        for message, times in self._faults.items():
            if times > _MOST_SHOWN:
                self.report.warn(f"{times} times in all: {message}")
        self.report.tables |= self.rows
        self.report.tables |= {name: columns.finish() for name, columns in self.tables.items() if len(columns)}
        if self.blocks and self.report.tables.keys() <= {"facts"} and not self.report.problems:
            self.report.error("a result is announced, but none of its tables can be read", fix=AGAIN)


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
# a table of nvprof's that somebody made one of Markdown, with or without the column Type
_PIPED = re.compile(r"\s*\|(?:[^|]{0,40}\|)?\s*(?:Time ?\(%\)|\d+(?:\.\d+)?%)\s*\|[^|]*\|.*\|\s*\Z")
_PIPED_RULE = re.compile(r"\s*\|(?:\s*:?-{3,}:?\s*\|){4,}\s*\Z")
_PREFIX_STARTS = _DIGITS | frozenset("[#")
_HEAD = 14  # characters, among which a prefix of digits has a colon
_WRAPPED = (_PREFIX_STARTS | {"|"}) - _DIGITS
_MARKS = "\x00\x08\x1b\r&\u00a0\\"


def read_lines(path: Path) -> Iterator[Line]:
    """All lines of the file, cleaned; memory does not grow with the file."""
    for first, text in line_blocks(path):
        block = text.removesuffix("\r").replace("\r\n", "\n") if "\r" in text else text
        if any(mark in block for mark in _MARKS) or ("<" in block and _TAG.search(block)):
            yield from _lines_of_marked_block(first, block)
            continue
        lines = block.split("\n")
        if _are_wrapped(lines):
            yield from ((number, *_strip_wrapping(line)) for number, line in enumerate(lines, first))
        else:
            yield from ((number, None, line) for number, line in enumerate(lines, first))


def _are_wrapped(lines: Sequence[str]) -> bool:
    """Whether there may be prefixes."""
    heads = [line.lstrip()[:_HEAD] for line in lines]
    firsts = {head[:1] for head in heads}
    if not _WRAPPED.isdisjoint(firsts) or ('"' in firsts and any(map(str.startswith, lines, repeat("\t")))):
        return True
    return ":" in "".join(heads) and any(":" in head and head[0] in _DIGITS for head in heads)


def _lines_of_marked_block(first: int, block: str) -> Iterator[Line]:
    """The lines of a block that has colours, entities, tags or progress bars in it."""
    for number, text in enumerate(block.split("\n"), first):
        # a progress bar draws over itself; what nvprof wrote may come after it
        for drawn in text.rstrip("\r").split("\r"):
            yield number, *clean_line(drawn)


def clean_line(text: str) -> tuple[int | None, str]:
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
    return _strip_wrapping(text)


def _strip_wrapping(text: str) -> tuple[int | None, str]:
    rank = None
    head = text.lstrip()[:1]
    if head == '"' and text[0] == "\t":
        text = text.lstrip("\t")
    if head == "|":
        text = text.replace("|", "  ") if _PIPED.match(text) else "" if _PIPED_RULE.match(text) else text
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
    return delimited_cells(text, mark) if '"' in text else text.split(mark)
