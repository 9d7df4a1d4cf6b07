"""nvprof's Unified Memory tables, as text and as CSV."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from nsw.readers.nvprof.text.summary import TIME
from nsw.readers.nvprof.text.times import exact_to_a_ns
from nsw.readers.text.quantities import Quantity, duration, size, whole

if TYPE_CHECKING:
    from nsw.readers.nvprof.table_builder import Columns
    from nsw.readers.nvprof.text.state import Sink, Stream

HEADER = re.compile(r"\s*Count\s+Avg Size\s+Min Size\s+Max Size\s+Total Size\s+Total Time\s+Name\s*\Z")
FACT = re.compile(r"\s*Total (?P<what>[A-Za-z][A-Za-z ]{2,40}?):\s*(?P<count>\d{1,18})\s*\Z")
_SIZE = r"(?:[\d.]+(?:[eE][-+]?\d+)?[KMGT]?B|-)"
_ROW = re.compile(
    rf"\s*(\d+|-)\s+({_SIZE})\s+({_SIZE})\s+({_SIZE})\s+({_SIZE})\s+({TIME}|-)\s+(?P<name>[A-Za-z].*?)\s*\Z"
)
# Rows of these have no size; nvprof's CSV of CUDA 8 prints their count in the column of the total size.
_EVENTS = re.compile(r"fault|thrash|throttl|remote map", re.IGNORECASE)
_MEASURED = re.compile(rf"[\d.]+(?:[eE][-+]?\d+)?[KMGT]?B|{TIME}")
_ENOUGH = 3
_FIGURES = ("avg_bytes", "min_bytes", "max_bytes", "total_bytes", "total_ns")
_BYTES = re.compile(r"(\d+)B\Z")


class MemoryTable:
    """One table of Unified Memory traffic being read, from text."""

    def __init__(self, sink: Sink, stream: Stream) -> None:
        self._sink = sink
        self._stream = stream

    def take(self, number: int, text: str) -> bool:
        """Read a row."""
        found = _ROW.match(text)
        if found is None:
            return self._fault(number, text)
        count, avg, low, high, total, time, name = found.groups()
        add_memory_row(
            self._sink, self._stream, whole(count), [size_of(s) for s in (avg, low, high, total)], duration(time), name
        )
        return True

    def _fault(self, number: int, text: str) -> bool:
        """A row that lost a cell: what else has so many sizes."""
        words = text.split()
        if sum(map(bool, map(_MEASURED.fullmatch, words))) < _ENOUGH:
            return False
        self._sink.fault("a row of Unified Memory is cut short or damaged", number)
        return True


def size_of(text: str, unit: str | None = None) -> Quantity | None:
    """Bytes as nvprof prints them: its KB is 1024 bytes."""
    return size(text, unit, base=1024)


def _table(sink: Sink) -> Columns:
    twins = [name for column in _FIGURES for name in (column, f"{column}_pm")]
    return sink.table("um_summary", ("block", "rank", "pid", "device", "device_name"), ("calls", *twins))


def add_memory_row(
    sink: Sink, stream: Stream, count: int | None, moved: list[Quantity | None], time: Quantity | None, name: str
) -> None:
    """One row; `moved` are average, least, greatest, total."""
    took = time and Quantity(time.value, exact_to_a_ns(time.pm))
    figures = chain.from_iterable(quantity or (None, None) for quantity in (*moved, took))
    _table(sink).append((*stream.where(), stream.device, stream.device_name, name), (count, *figures))


def misplaced_count(name: str, count: str, total: str) -> int | None:
    """The count of a row of faults that nvprof printed as a size: `,,,,21B,...,"Gpu page fault groups"`."""
    found = _BYTES.match(total.strip())
    return int(found[1]) if found and not count.strip() and _EVENTS.search(name) else None


def is_lone_total(count: int | None, sizes: list[Quantity | None]) -> bool:
    """Whether a total has no count and no other sizes beside it: it may be a count of what is not named, printed so."""
    return count is None and sizes[3] is not None and not any(sizes[:3])


def add_fact(sink: Sink, stream: Stream, text: str) -> bool:
    """`Total CPU Page faults: 17` as a fact; whether it was one."""
    found = FACT.match(text)
    if found is None:
        return False
    key = "um_total_" + re.sub(r"\W+", "_", found["what"].strip().lower())
    sink.add("facts", {**stream.origin(), "key": key, "value": float(found["count"])})
    return True
