"""The columns of `nsys stats`: their names over the years, their units, the numbers in them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from nsw.readers.text.quantities import TIME_UNITS, Digits, Votes, digits, has_other_mark, proven_mark, size_factor

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNIT = re.compile(r"(.*?)\s*\(([^()]*)\)")
_OTHER_NAMES = {"average": "avg", "minimum": "min", "maximum": "max", "median": "med", "time(%)": "time"}


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split(", "))


_STATISTICS = _words("avg, max, med, min, stddev, total, total time")
_COUNTS = _words("calls, count, instances, num calls, operations")
_EXECUTION = frozenset(
    f"{prefix}{statistic}" for prefix in "taqk" for statistic in ("avg", "med", "min", "max", "stddev")
)
_PROJECTION = _words(
    "avg gpu ops, avg num child, avg range lvl, proj avg, proj max, proj med, proj min, proj stddev, range instances, "
    "total gpu ops, total proj time, total range time"
)
_TRACE = _words(
    "api dur, api start, blkx, blky, blkz, bytes, corrid, ctx, devid, duration, dymsmem, grdx, grdy, grdz, greenctx, "
    "hwid, kernel dur, kernel start, pid, qcount, queue dur, queue start, reg/trd, result, start, stcsmem, strm, "
    "throughput, tid, total dur, vmid"
)
_UNIFIED = _words("total cpu page faults, total dtoh migration size, total gpu pagefaults, total htod migration size")
# of reports whose events nsw adds up
_EVENTS = _words(
    "collrecvsize, collsendsize, cpu page faults, durchild, durnonchild, end, lvl, numchild, numgpuops, orig "
    "duration, orig start, parentid, peerrank, projected duration, projected start, rangeid, rank, rootrank, size, "
    "tag, total message volume, utilization"
)
_NUMBERS = _STATISTICS | _COUNTS | _EXECUTION | _PROJECTION | _TRACE | _UNIFIED | _EVENTS | {"time"}
_ALWAYS = (
    frozenset({"time", "total time", "total", "start", "api start", "kernel start", "total proj time", "tavg"})
    | _COUNTS
)
_TEXTS = _words(
    "api function, api name, blockxyz, category, device, dstmemkd, event type, gridxyz, kernel name, name, nvtx "
    "range, operation, range, source, srcmemkd, style, t-pri, thread name"
)
# Of reports that nsw has no table for, and what else it does not read: known, so that they can be named.
_UNREAD = _words(
    "context, cpu instruction address, device name, dtoh migration size, engine, event, event class, gpu id, gpu page "
    "faults, guid, htod migration size, kern inst, maximum virtual address, migration throughput, minimum virtual "
    "address, nametree, node ord, nvtx inst, q name, q type, rangestack, send wait rate, source file, source line, "
    "virtual address"
)
_MEASURED = (
    _ALWAYS
    | _UNIFIED
    | {"projected start", "kern inst", "virtual address", "utilization", "total message volume", "cpu page faults"}
)
_FEW = 4  # columns; of the tables with fewer these are nsys's
_SHORT = (frozenset({"cpu page faults", "cpu instruction address"}),)
_UNITLESS = (
    frozenset({"Time", "Total Time"}),
    frozenset({"Start", "Duration"}),
    frozenset({"Projected Start", "Projected Duration"}),
    frozenset({"Total HtoD Migration Size", "Total DtoH Migration Size"}),
)
_COLUMN_NAMES = _NUMBERS | _TEXTS | _UNREAD

_GROUP = "['\u2019\u00a0\u202f\u2009 _{other}]"
_A_NUMBER = re.compile(r"-?\d[\d.,'\u2019\u00a0\u202f\u2009 _]*(?:e[+-]?\d+)?[%\u2026]?|-|None|nan", re.IGNORECASE)
_NO_DIGIT = re.compile(r"\D")
_CLIPPED = "\u2026"
_GROUPS = (3, 4)  # digits of a group; four in Chinese and Japanese
_FEW_VOTES, _ENOUGH_VOTES = 3, 1000


class Column(NamedTuple):
    """A header: its name in small letters, in today's words, and the unit in its brackets."""

    name: str
    unit: str | None


@lru_cache(maxsize=4096)
def column(header: str) -> Column:
    """What a header says."""
    text = " ".join(header.split())
    with_unit = _UNIT.fullmatch(text)
    name, unit = (with_unit[1], with_unit[2]) if with_unit else (text, None)
    name = name.lower()
    return Column(_OTHER_NAMES.get(name, name), unit)


def unknown_unit(header: str) -> str | None:
    """The unit of a column of numbers where it is none of time, size or share."""
    name, unit = column(header)
    if unit is None or unit == "%" or name not in _NUMBERS or unit.lower() in TIME_UNITS:
        return None
    return None if size_factor(re.sub(r"(?:ps|/s)$", "", unit), 1000) is not None else unit


def is_header(headers: list[str]) -> bool:
    """Whether these are column names that nsys gives."""
    names = [column(h).name for h in headers]
    if len(names) < _FEW:
        return frozenset(names) in _SHORT
    count = sum(name in _COLUMN_NAMES for name in names)
    return count >= max(_FEW, 0.7 * len(names)) and not _MEASURED.isdisjoint(names)


def is_known(header: str) -> bool:
    """Whether nsys gives a column this name."""
    return column(header).name in _COLUMN_NAMES


def have_units(headers: list[str]) -> bool:
    """Whether the titles say what their numbers count; every version's do unless it is told to leave them out."""
    plain = {" ".join(header.split()) for header in headers}
    return not any(names <= plain for names in _UNITLESS)


def are_damaged(headers: list[str]) -> bool:
    """Whether a title is missing, or there twice."""
    names = [column(h).name for h in headers]
    return "" in names or len(set(names)) < len(names)


def is_row(headers: list[str], cells: list[str]) -> bool:
    """Whether there are numbers where this table has numbers."""
    if not any(cells):
        return False
    for index, never_empty in _number_columns(tuple(headers)):
        cell = cells[index]
        if not cell:
            if never_empty:
                return False
        elif not (cell.isascii() and cell.isdigit()) and not _A_NUMBER.fullmatch(cell):
            return False
    return True


def are_rows(headers: list[str], rows: list[list[str]]) -> bool:
    """Whether `is_row` holds of all of them, none of which has another number of cells."""
    columns = list(zip(*rows, strict=True))
    for index, never_empty in _number_columns(tuple(headers)):
        cells = columns[index]
        if never_empty and not all(cells):
            return False
        joined = "".join(cells)
        if not (joined.isascii() and (joined.isdigit() or not joined)) and not all(
            map(_is_number_or_empty, set(cells))
        ):
            return False
    return True


def _is_number_or_empty(cell: str) -> bool:
    return not cell or _A_NUMBER.fullmatch(cell) is not None


@lru_cache(maxsize=64)
def _number_columns(headers: tuple[str, ...]) -> tuple[tuple[int, bool], ...]:
    """Where numbers are, and whether one must be there."""
    names = [column(header).name for header in headers]
    always = _ALWAYS | ({"cpu page faults"} if "cpu instruction address" in names else frozenset())
    return tuple((index, name in always) for index, name in enumerate(names) if name in _NUMBERS)


@dataclass(frozen=True, slots=True)
class Marks:
    """How this place writes numbers: the decimal mark; whatever else is between digits groups them."""

    decimal: str = "."
    rejected: list[str] = field(default_factory=list, compare=False)  # numbers met that have another mark: none here

    def digits(self, text: str) -> Digits | None:
        """The number; None where there is none, it is cut off, or nobody groups digits so."""
        if text.isascii() and text.isdigit():
            return digits(text)
        shape = _shape(self.decimal).fullmatch(text)
        if shape is None:
            if has_other_mark(text):
                self.rejected.append(text)
            return None
        sign, integer, fraction, power = shape.groups()
        return digits(f"{sign}{_NO_DIGIT.sub('', integer)}" + (f".{fraction}" if fraction else "") + (power or ""))


@lru_cache(maxsize=4)
def _shape(decimal: str) -> re.Pattern[str]:
    """Groups of three, of four (Chinese, Japanese), or of two before the last three (Indian)."""
    group = _GROUP.format(other="," if decimal == "." else ".")
    integer = rf"\d+|\d{{1,4}}(?:{group}\d{{2,4}})*{group}\d{{3,4}}"
    return re.compile(rf"(-?)({integer})(?:{re.escape(decimal)}(\d+))?(e[+-]?\d{{1,3}})?", re.IGNORECASE)


def decide_marks(headers: list[str], rows: Iterable[list[str]], before: Votes) -> Marks | None:
    """The decimal mark that most cells of the table prove, or of the file where the table has few; None: nothing does.

    Args:
        headers: The titles of the table.
        rows: Its cells.
        before: What the tables before it prove; what this one proves is added.
    """
    indices = [index for index, header in enumerate(headers) if column(header).name in _NUMBERS]
    votes = Votes()
    for cells in rows:
        votes.add(proven_mark(cells[index], _GROUPS) for index in indices if not cells[index].isdigit())
        if votes.total >= _ENOUGH_VOTES:
            break
    before.join(votes)
    mark = (votes if votes.total >= _FEW_VOTES else before).winner
    return mark and Marks(mark)


def is_clipped(text: str) -> bool:
    """Whether nsys cut the cell to the width of its column."""
    return text.endswith(_CLIPPED)
