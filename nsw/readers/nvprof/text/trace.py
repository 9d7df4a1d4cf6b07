"""nvprof's traces (--print-gpu-trace, --print-api-trace): the columns of text and CSV, read the same way.

The title line says which columns there are: 15 in CUDA 6, more since; with --metrics each metric is a column
of its own, with --print-api-trace the calls of the CUDA API are between the operations of the GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsw.readers.nvprof.text.trace_rows import KNOWN, TraceColumns
from nsw.readers.text.quantities import TIME_UNITS, size_factor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof.text.state import Sink, Stream

HEADER = re.compile(r"\s*Start\s+Duration\s.*\bName(?:\s+Correlation_ID)?\s*\Z")
COUNTER_HEADER = re.compile(r"\s*Device\s+Context\s+Stream\s+Kernel(?:\s+\S+)+\s*\Z")
_TITLE = re.compile(
    r"Parent ID|Parent Block [XYZ]|Parent Block|Grid Size|Block Size|Src Dev|Src Ctx|Dst Dev|Dst Ctx"
    r"|Unified Memory|Virtual Address|Secondary Address|[a-z]\w* \(\d+\)|\S+"
)
_GAP = re.compile(r"\s{2,}|\t")
_NUMBER = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?\Z|PC 0x")
_WORD = re.compile(r"\S+")
_MEASURED = ("start", "duration", "static_smem", "dynamic_smem", "bytes", "bytes_per_s", "unified")
# What a cell looks like in text, for rows whose columns run together.
_SHAPES = {
    "grid": r"\(\d+ \d+ \d+\)|-",
    "block": r"\(\d+ \d+ \d+\)|-",
    "Parent Block": r"\(\d+ \d+ \d+\)|-",
    "device": r"\S.*?",
    "context": r"\d+|-",
    "stream": r"\d+|-",
    "name": r"\S.*",
}
# What a cell of a row must be, unless it is "-" or empty: another means that a cell, or a title, is missing.
_TIME = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[num]?s\Z")
_EXTENT = re.compile(r"\(\d+ \d+ \d+\)\Z")
_WHOLE = re.compile(r"\d+\Z")
_SIZE = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[KMGT]?B\Z")
_RATE = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[KMGT]?B/s\Z")
_NAME = re.compile(r"(?!(?:-|[\d.]+[a-zA-Z/%]*)(?:\s\s|\Z)).+")
_OF_CUDA_5 = re.compile(r"Throughput {4}Device {3}Context")  # where a GPU is its number
_CELLS = {
    "start": _TIME, "duration": _TIME, "grid": _EXTENT, "block": _EXTENT, "registers": _WHOLE, "static_smem": _SIZE,
    "dynamic_smem": _SIZE, "bytes": _SIZE, "bytes_per_s": _RATE, "context": _WHOLE, "stream": _WHOLE, "device": _NAME,
    "name": _NAME,
}  # fmt: skip
_LONGEST_SHAPE = 4096  # characters
_LOOKS_LIKE_A_START = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[num]?s(?:\s|\Z)")
_FIRSTS = frozenset("0123456789.,+-'\u00a0\u202f")  # how a number begins


def titles_of(header: str) -> list[str]:
    """The titles of a text header; two words where nvprof has two."""
    return _TITLE.findall(header)


def units_of(header: str, line: str) -> list[str] | None:
    """The unit of each title, "" for none, of the line below the titles; None when it is no line of units.

    A unit ends below the last letter of its title; where blanks were lost, as many units as titles that may have
    one are in their order.
    """
    words = [(m[0], m.end()) for m in _WORD.finditer(line)]
    if not words or not all(_is_unit(word) for word, _ in words):
        return None
    titles = [(m[0], m.end()) for m in _TITLE.finditer(header)]
    at = {end: word for word, end in words}
    if len(at.keys() & {end for _, end in titles}) == len(words):
        return [at.get(end, "") for _, end in titles]
    measured = [i for i, (title, _) in enumerate(titles) if KNOWN.get(title) in _MEASURED]
    if len(measured) != len(words):
        return None
    below = dict(zip(measured, (word for word, _ in words), strict=True))
    return [below.get(i, "") for i in range(len(titles))]


def _is_unit(word: str) -> bool:
    return word in TIME_UNITS or size_factor(word.removesuffix("/s"), 1024) is not None


class TraceTable:
    """A trace being read from text: cells between two blanks or more, by shape where they run together."""

    def __init__(self, sink: Sink, stream: Stream, header: str, number: int) -> None:
        titles = titles_of(header)
        self._columns = TraceColumns(sink, stream, titles)
        self._sink, self._stream, self._header = sink, stream, header
        self._has_units = False  # below the titles (--normalized-time-unit), and none in the rows
        self._titles = titles
        checks = _CELLS | {"device": _WHOLE} if _OF_CUDA_5.search(header) else _CELLS
        self._checks = [checks.get(KNOWN.get(t) or "") for t in titles]
        self._timed = titles[:1] == ["Start"]
        self._shape: re.Pattern[str] | None = None
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row, or the line of units."""
        if not self.rows and not self._has_units and (units := units_of(self._header, text)) is not None:
            self._columns = TraceColumns(self._sink, self._stream, self._titles, units)
            self._checks = [_NUMBER if unit else check for unit, check in zip(units, self._checks, strict=True)]
            self._has_units = True
            return True
        text = text.strip()
        if not text or text[0] == "=" or (self._timed and text[0] not in _FIRSTS):
            return False
        return self._take_cells(number, text)

    def _take_cells(self, number: int, text: str) -> bool:
        columns = self._columns
        cells = _GAP.split(text, columns.width - 1)
        if len(cells) == columns.width and self._fits(cells) and columns.add(cells):
            self.rows += 1
            return True
        if not text[0].isdigit():
            return False
        found = self._by_shape(text)
        if found is not None and self._fits(found) and columns.add(found):
            self.rows += 1
            return True
        if _LOOKS_LIKE_A_START.match(text) or abs(len(cells) - columns.width) <= 1:
            self._sink.fault("a row of a trace is cut short or damaged", number)
            return True
        return False

    def _fits(self, cells: Sequence[str]) -> bool:
        """Whether every cell is what its title says."""
        for check, cell in zip(self._checks, cells, strict=True):
            if check is not None and cell not in {"", "-"} and check.match(cell) is None:
                return False
        return True

    def _by_shape(self, text: str) -> list[str] | None:
        if self._shape is None:
            shapes = [_SHAPES.get(KNOWN.get(t) or t, r"\S+") for t in self._titles]
            self._shape = re.compile(r"\s+".join(f"({s})" for s in shapes) + r"\Z")
        found = self._shape.match(text[:_LONGEST_SHAPE])
        return list(found.groups()) if found else None
