"""What a reader takes and gives: a `Sample` to recognise a file by, a `Report` with tables and problems."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final, Literal, Protocol

from nsw.apart import Limits, TooMuchError
from nsw.safe_files import open_to_read, read_bytes
from nsw.tables import TableData

HEAD_BYTES = 65536
MOST_SHOWN = 5  # problems that are alike
_ALLOWED: Final = "if you know who made it: `nsw read --max-unpacked 20G` allows 20 GiB"
SURE_OF_ALL = 90  # the most that a reader is by what it finds behind the head
# `cat -n`, `grep -n`, editors; a table has titles above its numbers
_LINE_NUMBER: Final = re.compile(r"^ {0,8}(\d{1,7})(?:\t|:| \| ?|  (?! )|\Z)", re.MULTILINE)
_NUMBERED_BYTES: Final = 4096
_NUMBERED_LINES: Final = 40
_FEWEST_NUMBERED: Final = 4
_PIECE_BYTES = 1 << 20  # that are looked through at a time


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a user must know of a report.

    `error`: (part of) the file could not be read or holds no result. `warning`: what was read may mislead.
    `line` counts from 1 in text files. `fix` says what to do. `is_loss`: the profiler dropped records, or cut them off.
    `is_note`: it is of what an answer does not show, or has explained.
    """

    severity: Literal["error", "warning"]
    message: str
    line: int | None = None
    fix: str | None = None
    is_loss: bool = False
    is_note: bool = False

    @property
    def level(self) -> Literal["error", "warning", "aside"]:
        """The severity, and `aside` of a note: it stands in full lists alone."""
        return "aside" if self.is_note and self.severity == "warning" else self.severity


class LackReason(Enum):
    """Why a report has no tables, where somebody decides by it; its problems say the same in words."""

    POINTER = auto()  # it stands for a file that is elsewhere
    UNKNOWN = auto()  # no reader knows it
    TABLES = auto()  # it has none of the tables that were asked for
    OUTPUT = auto()  # it is what a profiler printed, which names the report that it wrote


@dataclass(slots=True)
class Report:
    """One file, read: its tables by name (nsw.tables.schema) and its problems."""

    path: str
    tool: str | None = None
    format: str | None = None
    tool_version: str | None = None
    tables: dict[str, TableData] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    refused: bool = False  # for its size: a report of its format, of which not all is read
    lack: LackReason | None = None
    failed: str | None = None  # what the program that was profiled printed of its own failure

    def refuse_unpacking(self, fault: TooMuchError, *, but: str | None = None) -> None:
        """Note that the file unpacks to too much, and how to read it all the same."""
        self.refused = True
        self.error(f"holds {fault}" + (f": {but}" if but else ""), fix=_ALLOWED)

    def error(self, message: str, *, line: int | None = None, fix: str | None = None) -> None:
        """Report that (part of) the file could not be read.

        Args:
            message: What could not be read, and why.
            line: The line of a text file, from 1; None where there is none.
            fix: What the user can do; None if nothing.
        """
        self.problems.append(Problem("error", message, line, fix))

    def errors(
        self, messages: Sequence[str], in_all: str, *, lines: Sequence[int] = (), fix: str | None = None
    ) -> None:
        """Report the first `MOST_SHOWN` of many similar errors.

        Args:
            messages: One message per error.
            in_all: A message with their number, reported where there are more than are shown.
            lines: The line of each error, from 1; empty where they have none.
            fix: What the user can do; None if nothing.
        """
        for message, line in zip_longest(messages[:MOST_SHOWN], lines[: min(len(messages), MOST_SHOWN)]):
            self.error(message, line=line, fix=fix)
        if len(messages) > MOST_SHOWN:
            self.error(in_all, line=lines[0] if lines else None, fix=fix)

    def warn(self, message: str, *, line: int | None = None, fix: str | None = None, is_note: bool = False) -> None:
        """Report that what was read may mislead.

        Args:
            message: What may mislead, and why.
            line: The line of a text file, from 1; None where there is none.
            fix: What the user can do; None if nothing.
            is_note: Whether it misleads so little that `--full` alone shows it.
        """
        self.problems.append(Problem("warning", message, line, fix, is_note=is_note))


PHASE_TABLES: Final = (
    "phases", "iterations", "iteration_trace", "phase_summary", "process_gpus", "gaps", "host_copies", "gpu_use",
    "collectives",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """What is asked of a reader.

    `tables`: names wanted, or None for the default: all but the traces of files that can be summarised
    (a text file that holds a trace gives it always).
    `nsys`: the nsys that the site of a run names; used when it is here too.
    `steps`: the NVTX range that is an iteration of the program; None: to be found out.
    `warmup`: how many iterations are warm-up; None: to be found out.
    `max_unpacked`: bytes that a packed file may unpack to; by default nsw.apart says how many.
    `limits`: what a process that reads a file may take, where one of its own does.
    """

    tables: frozenset[str] | None = None
    nsys: str | None = None
    steps: str | None = None
    warmup: int | None = None
    max_unpacked: int | None = None
    limits: Limits = field(default_factory=Limits)

    def wants(self, table: str, *, default: bool = True) -> bool:
        """Whether `table` is to be made; `default` holds when nothing was asked for by name."""
        return default if self.tables is None else table in self.tables

    def phase_tables(self) -> list[str]:
        """The tables of phases that are to be made."""
        return [name for name in PHASE_TABLES if self.wants(name, default=name != "iteration_trace")]


class Sample:
    """The beginning of a file and a way to look for bytes in all of it, for readers' `sniff`.

    A folder has no bytes, only `entries`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.suffix = path.suffix.lower()
        self.is_folder = path.is_dir()
        self.is_looked_through = True  # whether `contains` looks behind the head
        self.size = 0 if self.is_folder else path.stat().st_size
        self.head = b""
        if not self.is_folder:
            with open_to_read(path) as file:
                self.head = file.read(HEAD_BYTES)

    @cached_property
    def entries(self) -> frozenset[str]:
        """The names in a folder, at most ten thousand of them; none of a file."""
        return frozenset(p.name for p in islice(self.path.iterdir(), 10_000)) if self.is_folder else frozenset()

    @cached_property
    def encoding(self) -> str:
        """utf-8, or utf-16 where a byte-order mark or a NUL at every second byte says so."""
        if self.head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        start = self.head[:200]
        if len(start) >= 8 and start[1::2].count(0) > 0.9 * len(start[1::2]) and 0 not in start[0::2]:
            return "utf-16-le"
        return "utf-8-sig" if self.head.startswith(codecs.BOM_UTF8) else "utf-8"

    @cached_property
    def text(self) -> str:
        """The first 64 KiB as text, without numbers of lines; bytes that are no text become U+FFFD."""
        text = self.head.decode(self.encoding, errors="replace")
        return self.without_numbers(text)

    @cached_property
    def is_numbered(self) -> bool:
        """Whether each line begins with its number, as `cat -n` and `grep -n` print it."""
        lines = self.head[:_NUMBERED_BYTES].decode(self.encoding, errors="replace").split("\n")[:-1][:_NUMBERED_LINES]
        numbers = [int(match[1]) for line in lines if (match := _LINE_NUMBER.match(line))]
        enough = len(lines) >= _FEWEST_NUMBERED and len(numbers) == len(lines)
        return enough and numbers == list(range(numbers[0], numbers[0] + len(numbers)))

    def without_numbers(self, text: str) -> str:
        """Lines of the file without their numbers, where they have any."""
        return _LINE_NUMBER.sub("", text) if self.is_numbered else text

    @property
    def is_binary(self) -> bool:
        """Whether NUL bytes are in a text that is not UTF-16."""
        return 0 in self.head and not self.encoding.startswith("utf-16")

    def contains(self, *needles: str) -> bool:
        """Whether one of the texts stands anywhere in the file."""
        if any(n in self.text for n in needles):
            return True
        if self.size <= len(self.head) or not self.is_looked_through:
            return False
        encoding = "utf-16-le" if self.encoding.startswith("utf-16") else "utf-8"
        return self._search_whole_file([n.encode(encoding) for n in needles])

    def _search_whole_file(self, needles: list[bytes]) -> bool:
        overlap = max(map(len, needles), default=1) - 1
        window = b""
        with open_to_read(self.path) as file:
            while piece := file.read(_PIECE_BYTES):
                window += piece
                if any(n in window for n in needles):
                    return True
                window = window[-overlap:] if overlap else b""
        return False


class Reader(Protocol):
    """The two functions of a reader's module (nsw/readers/FORMAT.py)."""

    def sniff(self, sample: Sample) -> int:
        """How sure: 0 not mine, 50 looks like it, 100 certain.

        At most `SURE_OF_ALL` by what stands anywhere in the file (`Sample.contains`).
        """

    def read(self, path: Path, options: Options) -> Report:
        """Read the file; faults of the file become problems of the report, never exceptions."""


def read_text(path: Path) -> str:
    """A whole text file, whatever its encoding and line ends."""
    sample = Sample(path)
    return sample.without_numbers(read_bytes(path).decode(sample.encoding, errors="replace"))
