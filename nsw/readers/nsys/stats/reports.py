"""The reports of `nsys stats` by the names of every version: what each holds, and why some are not read.

Several reports have the same columns (NVTX, Vulkan and Direct3D ranges; calls of CUDA, Vulkan and the operating
system), so that only the name tells them apart. nsys prints it before the table, and makes it the end of the name of
a file that it writes itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from nsw.readers.text.known_words import meaning_by_pattern, meaning_by_word
from nsw.readers.text.quantities import TIME_UNITS, Digits, Votes, digits, has_other_mark, proven_mark, size_factor
from nsw.resources import csv_rows

Kind: TypeAlias = Literal[
    "kernels", "copies", "sizes", "gpu", "api", "osrt", "openacc", "openmp", "nvtx", "nvtx_gpu", "mpi", "um",
    "gpu_trace", "api_trace", "launches", "launch_trace", "nvtx_trace", "nvtx_gpu_trace", "mpi_trace", "mpi_sizes",
    "cpu_faults", "other",
]  # fmt: skip


class UnreadReason(NamedTuple):
    """Why a report is not read, and what has its figures."""

    reason: str
    fix: str | None = None


_ROWS: Final = csv_rows("readers/data/nsys_stats_reports.csv")
REPORTS: Final[Mapping[str, Kind]] = {row["report"]: cast("Kind", row["kind"]) for row in _ROWS}
# what a report of each kind fills
TABLES: Final[Mapping[Kind, str]] = {cast("Kind", row["kind"]): row["tables"] for row in _ROWS}
_REASONS: Final = {row["report"]: UnreadReason(row["reason"], row["fix"] or None) for row in _ROWS if row["reason"]}

# The lines before a table that give its name: of 2023 and later, of 2021 and 2022, and above tables of text or HTML.
_RUN: Final = re.compile(
    r"\s*(?:Processing|Running) \[(?>.*(?<![\w-])(?=[\w-]+\.py\b))([\w-]+)\.py\b(?!.*\.py\b)"  # each word is tried once
)
_EXECUTING: Final = re.compile(r"\s*\[\d+/\d+\] Executing '([\w-]+)' stats report")
_WORD: Final = re.compile(r"\w+")
_LONGEST_TITLE: Final = 400  # characters
_TITLED: Final = re.compile(r"\s*(?:\*\*|<h\d>)\s.{0,200}\((\w+)\)(?::|</h\d>)\s*|\s*<h\d>.{0,200}\((\w+)\)</h\d>\s*")


_NVTX_NAMES: Final = re.compile(r"\.py\]\([\w:=-]*nvtx-name")
# After the name come its options, as in run7_cuda_gpu_kern_sum_nvtx-name_base.csv. Options with values (rows=10_base=1)
# are taken together: where one ends and the next begins cannot be told, and to try every place would never end.
_WITH_VALUES: Final = r"\w++=(?:\w+_\w++=)*+\w+"
_OF_FILE: Final = re.compile(
    rf"(?:^|[_.-])({'|'.join(sorted(REPORTS, key=len, reverse=True))})(?:_(?:nvtx-name|base|mangled|{_WITH_VALUES}))*$"
)


def name_in_line(line: str) -> str | None:
    """The name of the report that a line announces, or None; one of another's line counts where it is the only one."""
    match = _RUN.match(line) or _EXECUTING.match(line) or _TITLED.fullmatch(line)
    if match:
        return next((group for group in match.groups() if group), None)
    if len(line) > _LONGEST_TITLE:
        return None
    words = set(_WORD.findall(line)) & REPORTS.keys()
    return words.pop() if len(words) == 1 else None


def announced_name(titles: tuple[str, ...]) -> str | None:
    """The name of the report that nsys announced in the lines before a table; the nearest counts."""
    return next(filter(None, map(name_in_line, reversed(titles))), None)


def name_of_file(stem: str) -> str | None:
    """The name of the report that nsys wrote a file of: `nsys stats -o run7` makes run7_cuda_api_sum.csv."""
    match = _OF_FILE.search(stem)
    return match[1] if match else None


def names_ranges(titles: tuple[str, ...]) -> bool:
    """Whether the names of kernels begin with those of the NVTX ranges around their launch."""
    return any(_NVTX_NAMES.search(line) for line in titles)


def unread_reason(name: str) -> UnreadReason:
    """Why a report that has no place is not read."""
    return _REASONS.get(name, UnreadReason("nsw has no table for it"))


_CUDA = re.compile(r"cu(?:da)?[A-Z]\w*")
_LIBRARIES = re.compile(r"(?:cublas|cudnn|cusparse|cufft|cusolver|nccl|vk[A-Z]|gl[A-Z]|egl|wgl|cl[A-Z]|ucp_|uct_)\w*")
_OPENACC = re.compile(
    r"(?:(?:Compute|Data|Host Data) Construct|Enqueue (?:Launch|Upload|Download)|Enter Data|Exit Data"
    r"|Update|Wait|Implicit Wait|Device (?:Init|Shutdown)|Runtime Shutdown|Alloc|Free|Create|Delete)(?:@.*)?"
)
_MOVES_DATA = (
    "Data", "Host Data", "Enqueue Upload", "Enqueue Download", "Enter Data", "Exit Data", "Update", "Alloc", "Free",
    "Create", "Delete",
)  # fmt: skip
_SYSTEM_CALL = re.compile(r"[a-z_][a-z0-9_]*")

# Lines of any program may be before a table: only those count that read like titles of nsys.
_TITLE = meaning_by_pattern("nsys-stats words", flags=re.IGNORECASE)
# Columns that no other report has.
_TELLING = [
    (cast("Kind", kind), frozenset(titles.split("|"))) for titles, kind in meaning_by_word("nsys-stats kinds").items()
]
_NVTX_STYLES = meaning_by_pattern("nsys-stats NVTX styles", flags=re.IGNORECASE)


def kind_of(headers: list[str], titles: tuple[str, ...], names: Iterable[str], report: str | None = None) -> Kind:
    """The report with these columns.

    Args:
        headers: Their titles.
        titles: The lines before the table.
        names: Its last column.
        report: What nsys called it, where that is known.
    """
    columns = [parse_header(header) for header in headers]
    column_names = {c.name for c in columns}
    reported_kind = None if report is None else REPORTS.get(report, "other")
    kind = _kind_by_columns(columns, column_names)
    if kind is not None and (kind != "nvtx" or reported_kind is None):
        return "other" if kind == "nvtx" and _kind_by_title(titles) == "other" else kind
    if reported_kind is not None and {"time", "total time"} <= column_names:
        return reported_kind
    if not {"time", "total time"} <= column_names:
        return "other"
    title = _kind_by_title(titles)
    if "event type" in column_names or title == "other":
        return "other"
    if "source" in column_names:
        return "mpi"
    if "name" in column_names and (title == "openmp" or ("count" in column_names and title is None)):
        return "openmp"
    if column_names & {"num calls", "calls"} and "name" in column_names:
        return _kind_of_calls(list(names), title)
    if column_names & {"instances"} and "name" in column_names:
        return "other" if title == "mpi" else "kernels"
    return "other"


def _kind_by_columns(columns: list[Column], column_names: set[str]) -> Kind | None:
    for kind, needed in _TELLING:
        if needed <= column_names:
            return kind
    if {"time", "total time"} <= column_names:
        if {"category", "operation"} <= column_names:
            return "gpu"
        if column_names & {"operation", "operations"}:
            return "copies"
        return "nvtx" if "range" in column_names else None
    total = next((c for c in columns if c.name == "total"), None)
    if total is None or not column_names & {"operation", "name"}:
        return None
    is_size = size_factor(total.unit, 1000) if total.unit else {"avg", "max"} <= column_names
    return "sizes" if is_size else None


def _kind_of_calls(names: list[str], title: str | None) -> Kind:
    """CUDA's API, the operating system's, or OpenACC: names are surer than a line from elsewhere."""
    if sum(bool(_CUDA.fullmatch(n)) for n in names) * 2 > len(names):
        return "api"
    if title == "openacc" or sum(bool(_OPENACC.fullmatch(n)) for n in names) * 2 > len(names):
        return "openacc"
    if any(_LIBRARIES.fullmatch(n) for n in names):
        return "other"
    if title == "osrt" or all(_SYSTEM_CALL.fullmatch(n) for n in names):
        return "osrt"
    return "api" if title == "api" else "other"


def _kind_by_title(titles: tuple[str, ...]) -> str | None:
    for line in reversed(titles):
        for words, kind in _TITLE:
            if words.search(line):
                return kind
    return None


def nvtx_style(cell: str, titles: tuple[str, ...], report: str | None = None) -> str | None:
    """The style of an NVTX range: pushpop, startend or mark; None if it is not known.

    Args:
        cell: The row's own cell for it, empty if there is none. It is looked at first.
        titles: The title lines of the table, the last one first; looked at without `report`.
        report: nsys's name of the report; None where that is not known.
    """
    for text in (cell, *([report] if report else reversed(titles))):
        for words, style in _NVTX_STYLES:
            if words.search(text):
                return style
        if text.strip().lower() in ("mark", "marker"):
            return "mark"
    return None


def title_unit(titles: tuple[str, ...]) -> str | None:
    """The unit that versions until 2021 gave in a table's title: `... Statistics (by size in KiB):`."""
    match = re.search(r"\((?:by size in )?(\w+)\):?\s*$", titles[-1]) if titles else None
    return match[1] if match else None


def table_name(titles: tuple[str, ...], headers: list[str]) -> str:
    """What to call a table in a message, where nsys gave it no name."""
    matches = (re.search(r"^(?:Generating )?([A-Z].* Statistics)", line) for line in reversed(titles))
    return next((match[1] for match in matches if match), "a table of " + ", ".join(headers[:4]))


def openacc_kind(name: str) -> str:
    """compute, data or other."""
    if name.startswith(("Compute Construct", "Enqueue Launch")):
        return "compute"
    return "data" if name.startswith(_MOVES_DATA) else "other"


_UNIT = re.compile(r"(.*?)\s*\(([^()]*)\)")
_OTHER_NAMES = {"average": "avg", "minimum": "min", "maximum": "max", "median": "med", "time(%)": "time"}


# with those that nsw does not read: known, so that their reports can be named
_COLUMNS: Final = {row["column"]: row for row in csv_rows("readers/data/nsys_stats_columns.csv")}
_NUMBERS: Final = frozenset(name for name, row in _COLUMNS.items() if row["content"] == "number")
_MEASURED: Final = frozenset(name for name, row in _COLUMNS.items() if row["is_measured"])
_ALWAYS: Final = frozenset(name for name, row in _COLUMNS.items() if row["is_always_there"])
_FEW = 4  # columns; of the tables with fewer these are nsys's
_SHORT = (frozenset({"cpu page faults", "cpu instruction address"}),)
_UNITLESS = (
    frozenset({"Time", "Total Time"}),
    frozenset({"Start", "Duration"}),
    frozenset({"Projected Start", "Projected Duration"}),
    frozenset({"Total HtoD Migration Size", "Total DtoH Migration Size"}),
)

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
def parse_header(header: str) -> Column:
    """What a header says."""
    text = " ".join(header.split())
    with_unit = _UNIT.fullmatch(text)
    name, unit = (with_unit[1], with_unit[2]) if with_unit else (text, None)
    name = name.lower()
    return Column(_OTHER_NAMES.get(name, name), unit)


def unknown_unit(header: str) -> str | None:
    """The unit of a column of numbers where it is none of time, size or share."""
    name, unit = parse_header(header)
    if unit is None or unit == "%" or name not in _NUMBERS or unit.lower() in TIME_UNITS:
        return None
    return None if size_factor(re.sub(r"(?:ps|/s)$", "", unit), 1000) is not None else unit


def is_header(headers: list[str]) -> bool:
    """Whether these are column names that nsys gives."""
    names = [parse_header(h).name for h in headers]
    if len(names) < _FEW:
        return frozenset(names) in _SHORT
    count = sum(name in _COLUMNS for name in names)
    return count >= max(_FEW, 0.7 * len(names)) and not _MEASURED.isdisjoint(names)


def is_known(header: str) -> bool:
    """Whether nsys gives a column this name."""
    return parse_header(header).name in _COLUMNS


def have_units(headers: list[str]) -> bool:
    """Whether the titles say what their numbers count; every version's do unless it is told to leave them out."""
    plain = {" ".join(header.split()) for header in headers}
    return not any(names <= plain for names in _UNITLESS)


def are_damaged(headers: list[str]) -> bool:
    """Whether a title is missing, or there twice."""
    names = [parse_header(h).name for h in headers]
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
            not cell or _A_NUMBER.fullmatch(cell) for cell in set(cells)
        ):
            return False
    return True


@lru_cache(maxsize=64)
def _number_columns(headers: tuple[str, ...]) -> tuple[tuple[int, bool], ...]:
    """Where numbers are, and whether one must be there."""
    names = [parse_header(header).name for header in headers]
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
        shape = _number_pattern(self.decimal).fullmatch(text)
        if shape is None:
            if has_other_mark(text):
                self.rejected.append(text)
            return None
        sign, integer, fraction, power = shape.groups()
        return digits(f"{sign}{_NO_DIGIT.sub('', integer)}" + (f".{fraction}" if fraction else "") + (power or ""))


@lru_cache(maxsize=4)
def _number_pattern(decimal: str) -> re.Pattern[str]:
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
    indices = [index for index, header in enumerate(headers) if parse_header(header).name in _NUMBERS]
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
