"""nvprof's tables of Unified Memory and of sampled clocks, and the sections that have no table in nsw.

What has no table in nsw is named once, and its rows are known by their shape: a trace of the critical path has titles
like those of a trace of the GPU.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.text.counters import event_table
from nsw.readers.nvprof.text.summaries import TIME
from nsw.readers.nvprof.vocabulary import QUANTITIES, exact_to_a_ns, split_device, system_rows
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import Quantity, duration, number, parse_integer, size

if TYPE_CHECKING:
    from nsw.readers.nvprof.text.state import RowTaker, Sink, Stream

__all__ = [
    "HEADER",
    "LISTING",
    "TITLES",
    "MemoryTable",
    "PassedOver",
    "add_fact",
    "add_memory_row",
    "is_lone_total",
    "misplaced_count",
    "note_unread_section",
    "section_table",
    "size_of",
]


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

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def take(self, number: int, text: str) -> bool:
        """Read a row."""
        match = _ROW.match(text)
        if match is None:
            return self._report_cut_row(number, text)
        count, avg, low, high, total, time, name = match.groups()
        add_memory_row(
            self._stream, parse_integer(count), [size_of(s) for s in (avg, low, high, total)], duration(time), name
        )
        return True

    def _report_cut_row(self, number: int, text: str) -> bool:
        """A row that lost a cell: what else has so many sizes."""
        words = text.split()
        if sum(map(bool, map(_MEASURED.fullmatch, words))) < _ENOUGH:
            return False
        self._stream.sink.fault("a row of Unified Memory is cut short or damaged", number)
        return True


def size_of(text: str, unit: str | None = None) -> Quantity | None:
    """Bytes as nvprof prints them: its KB is 1024 bytes."""
    return size(text, unit, base=1024)


def add_memory_row(
    stream: Stream, count: int | None, moved: list[Quantity | None], time: Quantity | None, name: str
) -> None:
    """Add a row of Unified Memory traffic.

    Args:
        stream: Takes the row, and names process and device.
        count: The number of transfers or faults; None if none is printed.
        moved: Average, least, greatest and total size of the transfers (bytes), each None where it is not printed.
        time: The time they took (ns); None if none is printed.
        name: The kind of traffic.
    """
    took = time and Quantity(time.value, exact_to_a_ns(time.pm))
    figures = chain.from_iterable(quantity or (None, None) for quantity in (*moved, took))
    twins = [name for column in _FIGURES for name in (column, f"{column}_pm")]
    shared = ("block", "rank", "pid", "device", "device_name")
    columns = stream.sink.table("um_summary", shared, ("calls", *twins))
    columns.append((*stream.origin_values(), stream.device, stream.device_name, name), (count, *figures))


def misplaced_count(name: str, count: str, total: str) -> int | None:
    """The count of page faults that nvprof printed as a size: `,,,,21B,...,"Gpu page fault groups"`; else None.

    Args:
        name: The kind of event in the row.
        count: The cell of the count, which must be empty.
        total: The cell of the total size, such as `21B`.
    """
    match = _BYTES.match(total.strip())
    return int(match[1]) if match and not count.strip() and _EVENTS.search(name) else None


def is_lone_total(count: int | None, sizes: list[Quantity | None]) -> bool:
    """Whether a total has no count and no other sizes beside it: it may be a count of what is not named, printed so."""
    return count is None and sizes[3] is not None and not any(sizes[:3])


def add_fact(stream: Stream, text: str) -> bool:
    """Add a line such as `Total CPU Page faults: 17` as a fact; returns whether the line was one.

    Args:
        stream: Takes the fact, and names its process.
        text: The line.
    """
    match = FACT.match(text)
    if match is None:
        return False
    key = "um_total_" + re.sub(r"\W+", "_", match["what"].strip().lower())
    stream.sink.add("facts", {**stream.origin(), "key": key, "value": float(match["count"])})
    return True


_HEADER: Final = re.compile(r"\s*Count\s+Avg\s+Min\s+Max\s*\Z")
_CSV_HEADER: Final = re.compile(r'\s*"","Device","Count","Avg","Min","Max"\s*\Z')
_NUMBER: Final = r"\d+(?:\.\d+)?"
_NAME: Final = "|".join(map(re.escape, QUANTITIES))
_SYSTEM_ROW: Final = re.compile(rf"\s*(?P<name>{_NAME})\s+(\d+)\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*\Z")
_CSV_ROW: Final = re.compile(rf'"(?P<name>{_NAME})","([^"]*)",(\d+),({_NUMBER}),({_NUMBER}),({_NUMBER})\s*\Z')
_ROWISH: Final = re.compile(rf'\s*"?(?:{_NAME})')
_DEVICE: Final = re.compile(r'\s*Device "([^"]{1,200})"\s*\Z')


def system_table(stream: Stream, text: str) -> RowTaker | None:
    """The table of clocks, temperatures and power that a line of titles begins; None for other lines.

    Args:
        stream: Takes the rows, and names process and device.
        text: The line.
    """
    if _CSV_HEADER.match(text):
        return _SystemTable(stream, _CSV_ROW)
    return _SystemTable(stream, _SYSTEM_ROW) if _HEADER.match(text) else None


class _SystemTable:
    """One summary of samples being read."""

    def __init__(self, stream: Stream, row: re.Pattern[str]) -> None:
        self._stream = stream
        self._row = row

    def take(self, line: int, text: str) -> bool:
        """Read a row, or a line that names the GPU of the next."""
        match = self._row.match(text)
        if match is None:
            return self._take_other(line, text)
        _, *cells = match.groups()
        device = self._stream.device if self._row is _SYSTEM_ROW else split_device(cells.pop(0))[1]
        count, *values = (number(cell) for cell in cells)
        if count is not None:
            origin = {**self._stream.origin(), "device": device}
            present_values = [v for v in values if v is not None]
            for fact in system_rows(origin, QUANTITIES[match["name"]], int(count.value), present_values):
                self._stream.sink.add("facts", fact)
        return True

    def _take_other(self, line: int, text: str) -> bool:
        if (device := _DEVICE.match(text)) is not None:
            self._stream.set_device(device[1])
            return True
        if _ROWISH.match(text):
            self._stream.sink.fault("a row of clocks and temperatures is cut short or damaged", line)
            return True
        return False


# Titles of sections, as a part of a pattern, and what the section is.
TITLES: Final = (
    r"Dependency Analysis|NVLink topology|PCI[eE]? topology|PC Sampling(?: Summary)?|Available (?:Events|Metrics)"
)
_UNREAD: Final = meaning_by_word("nvprof unread")
LISTING: Final = re.compile(r"^[^\S\n]*+Available (?:Events|Metrics):[^\S\n]*+$", re.MULTILINE)
_PATH: Final = re.compile(
    r'\s*"?(?:Critical path ?\(%\)|Start"?(?:,|\s+)"?Duration)"?(?:,|\s+)"?Critical path"?(?:,|\s+)"?Waiting time"?'
    r'(?:,|\s+)"?Name"?\s*\Z'
)
_TIME: Final = r"[\d.]+(?:[eE][-+]?\d+)?"
_PATH_ROW: Final = re.compile(
    rf"\s*{_TIME}%?[num]?s?(?:,|\s+){_TIME}[num]?s?(?:,|\s+){_TIME}[num]?s?(?:(?:,|\s+){_TIME}[num]?s?)?(?:,|\s+)\S.*"
)
_SAMPLED: Final = re.compile(
    r'\s*(?:"","Device",)?"?Sample Count"?(?:,|\s+)"?Avg\*?"?(?:,|\s+)"?Min\*?"?(?:,|\s+)"?Max\*?"?\s*\Z'
)
_PATH_UNITS: Final = re.compile(r"(?:%|[num]?s)(?:,[num]?s){2,3},\s*\Z")


def note_unread_section(sink: Sink, title: str) -> None:
    """Say that a section is not read, when its title is of one."""
    description = _UNREAD.get(title)
    if description is not None:
        sink.note(f"not read: {description}")


def section_table(stream: Stream, text: str) -> RowTaker | None:
    """The reader for the rows below a line that begins a table of one of these sections; None for other lines.

    Sections that nsw does not read are skipped and reported.

    Args:
        stream: Takes the rows, and names process and device.
        text: The line.
    """
    if _PATH.match(text):
        note_unread_section(stream.sink, "dependency analysis")
        return PassedOver()
    if _SAMPLED.match(text):
        stream.sink.note(
            "not read: samples of Unified Memory's counters (CUDA 6.0), which do not name the memories that they"
            " counted between"
        )
        return PassedOver()
    return system_table(stream, text) or event_table(stream, text)


class PassedOver:
    """Rows of the critical path, which no table takes."""

    def take(self, _: int, text: str) -> bool:
        """Whether the line is one of them."""
        return _PATH_ROW.match(text) is not None or _PATH_UNITS.match(text) is not None
