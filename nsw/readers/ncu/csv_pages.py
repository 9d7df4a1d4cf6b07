"""The pages that `ncu --csv` prints, told by their header: which columns there are and which rows fit."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final, Literal

from nsw.readers.ncu.results import (
    ARROW_ROWS,
    Names,
    arrow_with_nan_as_null,
    none_if_nan,
    to_arrow_column,
    to_arrow_dictionary,
)
from nsw.readers.ncu.values import ValueParser, decide_decimal_mark, parse_integer
from nsw.readers.text.lines import delimited_cells
from nsw.tables.parquet_tables import Row, TableData

__all__ = [
    "RULE_TITLES",
    "CsvPage",
    "Kind",
    "SourcePageRows",
    "have_same_kernel_and_size",
    "nvtx_range_path",
    "parse_page_header",
    "split_quoted_cells",
]


Kind = Literal["details", "summary", "raw", "source", "session"]

# Columns of the raw page that describe the launch; all others are metrics.
_LAUNCH: Final = frozenset(
    {
        "", "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context",
        "Stream", "Block Size", "Grid Size", "Device", "CC", "Unnamed: 0", "API Call ID",
        "Invocation", "Section Name",
    }
)  # fmt: skip
# Columns of every page that tell of the launch.
OWNER_COLUMNS: Final = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
    "Device", "CC", "NVTX", "NVTX 2",
)  # fmt: skip
# Columns of advice: as `Page.rule_cells_of_row` gives them.
RULE_TITLES: Final = (
    "Section Name", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type", "Estimated Speedup",
)  # fmt: skip
# The columns with the NVTX ranges around a launch, by a part of their headings, count as columns of these names.
_RANGES: Final = (("NVTX", "Push/Pop_Range"), ("NVTX 2", "Start/Stop_Range"))
_RANGE: Final = re.compile(r'"(?:\d+:)?([^":]*):([^"]*)"')
_DEFAULT_DOMAIN: Final = "<default domain>"
_LAUNCH_FACTS: Final = ("kernel", "grid", "block_size")  # of a launch, by each of its rows
_SPREAD: Final = ("Minimum", "Maximum", "Average")
_VALUES: Final = frozenset({"Metric Unit", "Metric Value", *_SPREAD})  # titles of the pages with a metric a row
_OF_RULES: Final = frozenset({"Rule Type", "Rule Description"})
_DELIMITERS: Final = (",", ";", "\t")
_SESSION: Final = frozenset({"Launch Attribute", "Session Attribute", "Process Id", "Device Attribute"})
_SOURCE: Final = frozenset({"Address", "#", "Line", "Line No"})
# what one of the headers holds: looked for in every line, so plain texts and no expression
_HINTS: Final = ("Kernel Name", "Attribute", "Process Id", "Source")
# a header may be glued to the end of a progress line: `....100% - 8 passes"ID","Process ID",`
_GLUED: Final = re.compile(r'"ID"[,;\t]"Process ID"')


@dataclass(frozen=True)
class CsvPage:
    """The header of one CSV: `quoted` when its fields are in quotes, as ncu writes them; `units` of a raw page."""

    kind: Kind
    header: tuple[str, ...]
    delimiter: str
    quoted: bool
    units: tuple[str, ...] = ()

    @cached_property
    def column_positions(self) -> dict[str, int]:
        """The place of each column, of the first one where a name repeats."""
        positions = {name: i for i, name in reversed(list(enumerate(self.header)))}
        return positions | {column: i for column, part in _RANGES for name, i in positions.items() if part in name}

    @cached_property
    def min_fields(self) -> int:
        """How many fields a row has at least: metric rows lack the columns of rules."""
        ends = {"details": ("Metric Value",), "summary": _SPREAD}.get(self.kind)
        return max(self.column_positions[e] for e in ends) + 1 if ends else len(self.header)

    @cached_property
    def first_name_position(self) -> int:
        """Where the names or the metrics begin, behind the id and all else that tells of a launch; 0 if mixed."""
        if self.delimiter != "," or self.header[0] != "ID":
            return 0
        positions = [i for i in self._name_positions if i < len(self.header)]
        value = self.min_fields - 1
        if self.kind == "raw":
            positions, value = list(self.metric_positions), len(self.header)
        start = min(positions, default=0)
        owner = max(self.column_positions[column] for column in OWNER_COLUMNS if column in self.column_positions)
        is_whole = self.kind == "details" or len(positions) == value - start
        return start if owner < start and max(positions) < value and is_whole else 0

    @property
    def has_ncu_column_order(self) -> bool:
        """Whether it is a details or a raw page whose columns are as ncu sorts them."""
        return self.kind in {"details", "raw"} and self.first_name_position > 0

    @cached_property
    def metric_positions(self) -> tuple[int, ...]:
        """The places of the metrics in a raw page; the columns of NVTX ranges are none."""
        return tuple(i for i, n in enumerate(self.header) if n not in _LAUNCH and "Domain:" not in n)

    @cached_property
    def names_of_raw_metrics(self) -> list[Names]:
        """Section, metric, description and unit of each metric of a raw page."""
        return [(None, self.header[i], None, self.units[i] if self.units else None) for i in self.metric_positions]

    def metric_names_of_row(self, row: list[str]) -> list[str]:
        """Section, metric, label and unit of a row; empty where the page or the row lacks them."""
        return [row[i].strip() if i < len(row) else "" for i in self._name_positions]

    def rule_cells_of_row(self, row: list[str]) -> list[str]:
        """Section, rule, type, description, kind and size of the speed-up; empty where there are none."""
        return [row[i].strip() if i < len(row) else "" for i in self._rule_positions]

    @cached_property
    def _name_positions(self) -> tuple[int, ...]:
        return self._positions_of("Section Name", "Metric Name", "Body Item Label", "Metric Unit")

    @cached_property
    def _rule_positions(self) -> tuple[int, ...]:
        return self._positions_of(*RULE_TITLES)

    def _positions_of(self, *names: str) -> tuple[int, ...]:
        """Where columns are; a column that is missing is beyond every row."""
        return tuple(self.column_positions.get(name, sys.maxsize) for name in names)

    def field_by_name(self, row: Sequence[str], name: str) -> str | None:
        """A field by name; None where the row or the page lacks it or it is empty."""
        return _fields_at(row, (self.column_positions.get(name, sys.maxsize),))[0]

    def has_field_count_of_page(self, row: list[str]) -> bool:
        """Whether a row has as many fields as one of this page has.

        All of them, or (where the page has columns for rules) those up to the value and the empty one that a comma
        behind it makes. Any other number means that a field, or a word of the header, is missing.
        """
        size, width = len(row), len(self.header)
        if size >= width:
            return size == width or (self.kind == "raw" and not any(row[width:]))
        return size == self.min_fields + 1 and not row[self.min_fields] and self.kind == "details"

    def launch_key(self, row: Sequence[str]) -> tuple[int | str, str]:
        """What tells launches of one CSV apart: id, a text where it is not written as a number is, and process."""
        text, at = row[self.column_positions["ID"]].strip(), self.column_positions.get("Process ID")
        number = parse_integer(text)
        return text if number is None or str(number) != text else number, "" if at is None else row[at].strip()

    def row_names_launch(self, row: Sequence[str], launch: Row) -> bool:
        """Whether a row names the kernel and the sizes of a launch with its id, whose columns these are."""
        return _fields_at(row, self._launch_fact_positions) == [launch.get(column) for column in _LAUNCH_FACTS]

    @cached_property
    def _launch_fact_positions(self) -> tuple[int, ...]:
        return self._positions_of("Kernel Name", "Grid Size", "Block Size")

    def is_row_of_page(self, row: Sequence[str]) -> bool:
        """Whether these fields, as many as there have to be, are a row of this page and no line of the program."""
        pid = row[self.column_positions["Process ID"]].strip() if "Process ID" in self.column_positions else ""
        if pid and parse_integer(pid) is None:
            return False
        if self.kind == "summary":
            name, count = self.field_by_name(row, "Metric Name"), self.field_by_name(row, "Invocations")
            return name is not None and not name[0].isdigit() and parse_integer(count) is not None
        return parse_integer(row[self.column_positions["ID"]]) is not None

    def is_units_row(self, row: list[str]) -> bool:
        """Whether this is the second line of a raw page, which holds the units."""
        return len(row) == len(self.header) and not any(
            row[i] for i, n in enumerate(self.header) if n in _LAUNCH and n not in {"", "Unnamed: 0"}
        )

    def launch_columns(self, row: Sequence[str], block: int, rank: int | None) -> Row:
        """The columns of the launches table that a row holds.

        Args:
            row: The fields of the row.
            block: The number of the page among those with results, from 0.
            rank: The launcher's rank whose lines these are; None without ranks.
        """
        cells = dict(zip(OWNER_COLUMNS, _fields_at(row, self._launch_column_positions), strict=True))
        device = cells["Device"]
        return {
            "block": block,
            "rank": rank,
            "host": cells["Host Name"],
            "pid": parse_integer(cells["Process ID"]),
            "device": parse_integer(device),
            "launch_id": parse_integer(cells["ID"]),
            "kernel": cells["Kernel Name"],
            "process": cells["Process Name"],
            "device_name": device if parse_integer(device) is None else None,
            "compute_capability": cells["CC"],
            "context": parse_integer(cells["Context"]),
            "stream": parse_integer(cells["Stream"]),
            "grid": cells["Grid Size"],
            "block_size": cells["Block Size"],
            "nvtx": nvtx_range_path(cells["NVTX"], cells["NVTX 2"]),
        }

    @cached_property
    def _launch_column_positions(self) -> tuple[int, ...]:
        return self._positions_of(*OWNER_COLUMNS)


def have_same_kernel_and_size(launch: Row, other: Row) -> bool:
    """Whether two launches have one kernel and one size."""
    return all(launch.get(column) == other.get(column) for column in _LAUNCH_FACTS)


def _fields_at(row: Sequence[str], positions: Sequence[int]) -> list[str | None]:
    """The fields at these places, None where the row has none there or it is empty."""
    size = len(row)
    return [(row[position].strip() or None) if position < size else None for position in positions]


@lru_cache(maxsize=1024)
def nvtx_range_path(*cells: str | None) -> str | None:
    """The NVTX ranges of a launch, outermost first: `step > forward` of `0 "<default domain>:step:none:none" ...`.

    What is no such list stays as it is, so that a cell may pass here twice.
    """
    return " > ".join(name for cell in cells for name in _nvtx_ranges_in_cell((cell or "").strip())) or None


def _nvtx_ranges_in_cell(cell: str) -> Iterator[str]:
    matches = _RANGE.findall(cell)
    if not matches and cell:
        yield cell
    for domain, rest in matches:
        parts = rest.split(":")
        while len(parts) > 1 and parts[-1] in {"none", ""}:  # payload, colour and message that a range has not
            parts.pop()
        name = ":".join(parts)
        yield name if domain == _DEFAULT_DOMAIN else f"{name}@{domain}"


def parse_page_header(line: str) -> CsvPage | None:
    """The page whose header this line is, or None."""
    if not any(hint in line for hint in _HINTS):
        return None
    if glued := _GLUED.search(line):
        line = line[glued.start() :]
    line = line.strip().lstrip("\ufeff")
    for delimiter in _DELIMITERS:
        if delimiter in line and (fields := delimited_cells(line, delimiter)) and (kind := _page_kind(fields)):
            return CsvPage(kind, tuple(fields), delimiter, line.startswith('"'))
    return None


def _page_kind(fields: list[str]) -> Kind | None:
    names = set(fields)
    if fields[0] in _SESSION and len(fields) > 1:
        return "session"
    if fields[0] in _SOURCE and "Source" in names:
        return "source"
    if "Kernel Name" not in names:
        return None
    if "Metric Name" not in names:
        return "raw" if "ID" in names and not names & _VALUES else None
    if "Metric Unit" not in names or len(names) < len(fields):
        return None  # ncu writes each title once, and always the unit: this header is damaged
    if "Rule Name" not in names and not names.isdisjoint(_OF_RULES):
        return None  # likewise
    if names.issuperset(_SPREAD):
        return "summary"
    return "details" if {"ID", "Metric Value"} <= names else None


def split_quoted_cells(text: str) -> list[str]:
    """The cells of `"a","b"`, each in quotes as ncu writes them; none where a text is written in another way."""
    if '""' not in text:
        cells = text[1:-1].split('","')
        is_quoted = text[:1] == '"' == text[-1:] and text.count('"') == 2 * len(cells)
    else:
        cells = delimited_cells(text, ",")
        is_quoted = text == ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    if not is_quoted:
        return []
    return list(map(sys.intern, cells))  # launches have most of them in common


_KERNEL: Final = ("Kernel Name", "Function Name")
_FILE: Final = ("File Path", "File Name")
_LINE: Final = ("Line No", "Line")
_POSITION_COLUMNS: Final = frozenset({*_LINE, "#", "Address", "Source"})  # columns that are no metrics
_NUMBERED: Final = frozenset({*_LINE, "#", "Address"})  # each row has another one of these
_EMPTY_CELLS: Final = frozenset({"", "-", "..."})  # cells of a metric that the instruction does not have
_INSTRUCTION_COLUMNS: Final = ("block", "rank", "kernel", "file", "line", "address", "source")


@dataclass(slots=True)
class SourcePageRows:
    """Instructions and lines in their order, and their metrics as columns: a kernel has ten thousands."""

    kernel: str | None = None
    file: str | None = None
    block: int = -1
    line: int | None = None
    lines: int = 0  # of all pages
    instructions: list[tuple[Any, ...]] = field(default_factory=list)  # _ABOUT of each instruction or line
    metrics: dict[str, int] = field(default_factory=dict)
    at: array[int] = field(default_factory=lambda: array("i"))  # place and metric of each value
    metric_codes: array[int] = field(default_factory=lambda: array("i"))
    printed: list[str] = field(default_factory=list)
    numbers: array[float] = field(default_factory=lambda: array("d"))
    halves: array[float] = field(default_factory=lambda: array("d"))
    texts: dict[int, str] = field(default_factory=dict)
    repeated: int = 0  # rows that repeat the one before: each instruction has its address, and each line its number
    last: list[str] = field(default_factory=list)

    def accept_title(self, row: list[str]) -> bool:
        """Whether the fields name the kernel or the file of the lines below."""
        if len(row) < 2 or any(row[2:]) or not row[1].strip():
            return False
        if row[0] in _KERNEL:
            self.kernel = row[1].strip()
        elif row[0] in _FILE:
            self.file, self.kernel = row[1].strip(), None
        else:
            return False
        return True

    def begin_page(self) -> None:
        """The titles of the columns stood here."""
        self.block += 1
        self.line = None
        self.last = []

    def accept_row(self, page: CsvPage, row: list[str], rank: int | None) -> bool:
        """Add the metrics of one instruction or source line; returns whether the fields were such a row.

        Args:
            page: The page that the row is of.
            row: The fields of the row.
            rank: The launcher's rank whose lines these are; None without ranks.
        """
        if len(row) != len(page.header) and not (len(row) == len(page.header) + 1 and not row[-1]):
            return False
        if row == self.last and not _NUMBERED.isdisjoint(page.column_positions):
            self.repeated += 1
            return True
        self.last = row
        self.lines += 1
        number = next((row[page.column_positions[name]] for name in _LINE if name in page.column_positions), "")
        if number.isascii() and number.isdigit() and len(number) < 10:
            self.line = int(number)
        address = row[page.column_positions["Address"]].strip() if "Address" in page.column_positions else ""
        # beside the instructions of a line its text is in the first of two columns of this name
        sources = [i for i, name in enumerate(page.header) if name == "Source"]
        source = row[sources[-1] if address not in _EMPTY_CELLS else sources[0]].strip()
        cells = [
            (n, c)
            for n, c in zip(page.header, row, strict=False)
            if n not in _POSITION_COLUMNS and c.strip() not in _EMPTY_CELLS
        ]
        if cells:
            at = None if address in _EMPTY_CELLS else address
            self.instructions.append((self.block, rank, self.kernel, self.file, self.line, at, source or None))
        for name, cell in cells:
            self.at.append(len(self.instructions) - 1)
            self.metric_codes.append(self.metrics.setdefault(name, len(self.metrics)))
            self.printed.append(cell)
        return True

    def end_page(self) -> bool:
        """Read the numbers of a page; whether its decimal mark was guessed."""
        marks = decide_decimal_mark((text, None) for text in self.printed)
        parse = ValueParser(marks)
        for text in self.printed:
            value = parse(text)
            if value.text is not None:
                self.texts[len(self.numbers)] = value.text
            self.numbers.append(float("nan") if value.number is None else value.number)
            self.halves.append(float("nan") if value.half is None else value.half)
        self.printed.clear()
        return marks.guessed

    def source_metric_table(self) -> TableData:
        """Rows of source_metrics, with the kernels demangled."""
        from nsw.tables.names import demangle_all

        plain = demangle_all({instruction[2] for instruction in self.instructions if instruction[2]})
        self.instructions = [(*p[:2], plain.get(p[2], p[2]), *p[3:]) for p in self.instructions]
        if len(self.at) > ARROW_ROWS:
            return self._to_arrow()
        names = list(self.metrics)
        return [
            dict(zip(_INSTRUCTION_COLUMNS, self.instructions[at], strict=True))
            | {"metric": names[code], "text": self.texts.get(i)}
            | {"value": none_if_nan(number), "value_pm": none_if_nan(half)}
            for i, (at, code, number, half) in enumerate(
                zip(self.at, self.metric_codes, self.numbers, self.halves, strict=True)
            )
        ]

    def _to_arrow(self) -> TableData:
        import pyarrow as pa

        at, metric_codes = pa.array(self.at, type=pa.int32()), pa.array(self.metric_codes, type=pa.int32())
        columns: Row = {
            name: to_arrow_column("source_metrics", name, [instruction[i] for instruction in self.instructions], at)
            for i, name in enumerate(_INSTRUCTION_COLUMNS)
        }
        columns["metric"] = pa.DictionaryArray.from_arrays(metric_codes, pa.array(list(self.metrics), type=pa.string()))
        columns |= {"value": arrow_with_nan_as_null(self.numbers), "value_pm": arrow_with_nan_as_null(self.halves)}
        columns["text"] = to_arrow_dictionary([self.texts.get(i) for i in range(len(self.at))])
        return pa.table(columns)
