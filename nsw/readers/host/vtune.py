"""VTune's reports: `vtune -report` (`amplxe-cl` before 2020) as text and CSV, and the summary that a collection prints.

A report is a table of functions (or loops, modules, processes, threads), or a summary: metrics that stand below each
other, with tables among them. In CSV a summary is one table, whose first column is the level of a metric. All of it may
stand amid the output of a job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nsw.readers.host.intel_figures import IntelSummary, parse_seconds, snake_case_key
from nsw.readers.model import Options, Report, Sample
from nsw.readers.text import lines as printed
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.text.quantities import QUANTITY, Quantity, number, percent, size
from nsw.tables import Row

__all__ = ["read", "sniff"]


_PREFIX: Final = re.compile(r"^(?:\W{0,9}\w+: Executing actions.{0,40}?)?Generating a report\s*")
_ELAPSED: Final = re.compile(r"Elapsed Time: [\d.]+s")  # APS has blanks before the number and before its unit
_METRIC: Final = re.compile(r"( *)(\S[^|]*?): +(\S.*)\Z")
_SECTION: Final = re.compile(r"( *)([A-Z][\w /()-]{1,60}):?\Z")
_RULE: Final = re.compile(r" *-{3,}(?: +-{2,})* *\Z")
_ENDED: Final = re.compile(r"\w+: (?:Executing actions|Collection|Using result path)|If you want to skip descriptions")
_REPORTS: Final = ("Collection and Platform Info", "Top Hotspots", "CPI Rate:", "Effective CPU Utilization",
                   "Effective Physical Core Utilization", "Logical Core Utilization", "Pipeline Slots",
                   "vtune: Executing actions", "amplxe: Executing actions", "Top Memory-Consuming")  # fmt: skip

_DELIMITERS: Final = "\t,;|"
_LEVELS: Final = ("Hierarchy Level", "Metric Name", "Metric Value")
_EVENTS: Final = "Hardware Event Count:"
# what makes a table one of VTune's: a column of which it begins so
_MEASURED: Final = re.compile(
    r"(?:CPU Time|Instructions Retired|Clockticks|Hardware Event (?:Sample )?Count|Allocation Size|Memory Consumption"
    r"|Wait Time)(?::|\Z)"
)
_GROUPS: Final = re.compile(
    r"(?:(?:Source )?Function(?: Stack)?|Source File|Source Line|Module|Process|Thread|TID|PID|Package|Core|Call Stack"
    r"|H/W Context|Task Type|Frame Domain|Memory Object|Allocation Stack|OpenMP Region|Computing Task)\b"
)
_TREE: Final = re.compile(r"(?:Function|Call) Stack\Z")
# time in which as many CPUs work as VTune calls so: few, enough, more than there are
_UTILIZATION: Final = re.compile(r"CPU Time:Effective Time(?: by Utilization)?:(Idle|Poor|Ok|Ideal|Over)")
_EMPTY_CELLS: Final = frozenset({"", "[Unknown]", "N/A", "N/A*"})
_MULTIPLES: Final = {"K": 1e3, "M": 1e6, "G": 1e9}
_COLUMNS: Final = meaning_by_word("vtune")
_TORN: Final = "a row of a table is cut short or damaged and is left out"
_AGAIN: Final = "print the report again: vtune -report NAME -result-dir FOLDER -format csv -report-output FILE"


def sniff(sample: Sample) -> int:
    """By the titles of a table, or by the first line of a summary and another that only VTune prints."""
    if sample.is_binary:
        return 0
    if any(_parse_titles(printed.visible_line(line)) for line in sample.text.splitlines()):
        return 95
    text = sample.text
    if _ELAPSED.search(text) and any(word in text for word in _REPORTS):
        return 88
    return 70 if sample.contains("vtune: Executing actions", "amplxe: Executing actions") else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, a block a table, and `facts` with what a summary tells of the whole run."""
    report = Report(str(path), tool="vtune", format="vtune")
    tables = _CollectedRows(report)
    for rank, lines in printed.lines_by_rank(printed.text_lines(path)):
        _LineReader(tables, rank).read_lines(lines)
    if options.wants("functions") and tables.functions:
        report.tables["functions"] = tables.functions
    if options.wants("facts") and tables.facts:
        report.tables["facts"] = tables.facts
    return report


@dataclass(slots=True)
class _CollectedRows:
    """The rows of a file."""

    report: Report
    functions: list[Row] = field(default_factory=list)
    facts: list[Row] = field(default_factory=list)
    block: int = -1


class _LineReader:
    """Reads lines; of one rank, where a launcher told them apart."""

    def __init__(self, tables: _CollectedRows, rank: int | None) -> None:
        self._tables = tables
        self._rank = rank
        self._summary: IntelSummary | None = None
        self._table: _DelimitedTable | _DashedTable | _CsvSummary | None = None
        self._before = ""

    def read_lines(self, lines: Iterable[printed.Line]) -> None:
        """Take every line."""
        for line in lines:
            text = _PREFIX.sub("", line[1].rstrip())
            if not self._accept_table_line(line[0], text):
                self._read_line_outside_tables(text)
            self._before = text
        self._end_table()
        self._end_summary()

    def _read_line_outside_tables(self, text: str) -> None:
        """A line that is no row of a table."""
        titles = _parse_titles(text)
        if titles is not None:
            self._end_table()
            if titles.is_summary:
                self._table = _CsvSummary(self._begin_summary(), titles.delimiter, len(titles.names))
            else:
                self._table = _DelimitedTable(titles, self._table_block_number())
        elif _RULE.match(text) and self._before.strip():
            self._end_table()
            self._table = _DashedTable(self._before, printed.ruled_spans(text), self._table_block_number())
        elif _ELAPSED.match(text):
            _read_metric_line(self._begin_summary(), text)
        elif _ENDED.match(text):
            self._end_summary()
        elif self._summary is not None and not text.lstrip().startswith("|"):
            _read_metric_line(self._summary, text)

    def _table_block_number(self) -> int:
        """A table in a summary has the summary's block, another one of its own."""
        return self._tables.block if self._summary is not None else self._tables.block + 1

    def _begin_summary(self) -> IntelSummary:
        self._end_summary()
        self._tables.block += 1
        self._summary = IntelSummary({"block": self._tables.block, "rank": self._rank})
        return self._summary

    def _end_summary(self) -> None:
        if self._summary is not None:
            self._tables.facts += self._summary.facts
        self._summary = None

    def _accept_table_line(self, line_number: int, text: str) -> bool:
        """Take a row; False where there is no table, or it ends before this line."""
        table = self._table
        if table is None or (isinstance(table, _DashedTable) and _RULE.match(text)):
            return False
        if isinstance(table, _CsvSummary):
            took = self._accept_csv_summary_line(table, text)
        elif not (took := table.accept_line(text)) and table.is_damaged_row(text):
            self._tables.report.error(_TORN, line=line_number, fix=_AGAIN)
            return True
        if not took:
            self._end_table()
        return took

    def _accept_csv_summary_line(self, table: _CsvSummary, text: str) -> bool:
        """A line of a summary's CSV: level, name, value; or a row of a table in it. False: the summary ends."""
        if (cells := table.split_line(text)) is None:
            return False
        level = number(cells[0])
        if len(cells) <= table.width:
            self._collect_table(table.inner)
            table.inner = None
            table.summary.add_metric(table.summary.enter_metric(int(level.value) if level else 0, cells[-2]), cells[-1])
        elif table.inner is None or not table.inner.accept_cells(cells[1:]):
            self._collect_table(table.inner)
            table.inner = _TableRows(cells[1:], self._tables.block)
        return True

    def _end_table(self) -> None:
        table, self._table = self._table, None
        self._collect_table(table.inner if isinstance(table, _CsvSummary) else table)
        if isinstance(table, _CsvSummary):
            self._end_summary()

    def _collect_table(self, table: _TableRows | None) -> None:
        """Keep what a table had."""
        if table is None:
            return
        origin = {"block": table.block, "rank": self._rank}
        if self._summary is not None:
            for path, value in table.bandwidth:
                self._summary.add_metric(path, value)
        if not table.count:
            return
        self._tables.block = max(self._tables.block, table.block)
        self._tables.functions += [row | origin for row in table.functions]
        self._tables.facts += [
            {"key": snake_case_key(name), "value": value, "unit": "s" if name.endswith("_s") else None} | origin
            for name, value in table.events.items()
        ]


def _read_metric_line(summary: IntelSummary, text: str) -> None:
    """A metric, or the name of those below it."""
    if (match := _METRIC.match(text)) is not None:
        # of `NUMA: % of Remote Accesses: 0.0%` the last part is the value; a text may have colons of its own
        name, _, value = text.strip().rpartition(": ")
        if not summary.add_metric(summary.enter_metric(len(match[1]), name), value):
            summary.add_metric(summary.enter_metric(len(match[1]), match[2]), match[3])
    elif (section := _SECTION.match(text)) is not None:
        summary.enter_metric(len(section[1]), section[2])


@dataclass(frozen=True, slots=True)
class _TableTitles:
    """The titles of a table with a delimiter."""

    names: tuple[str, ...]
    delimiter: str

    @property
    def is_summary(self) -> bool:
        return self.names[-2:] == _LEVELS[1:]


def _parse_titles(text: str) -> _TableTitles | None:
    """The titles in a line of CSV, where they are VTune's."""
    if "Metric Value" not in text and not _GROUPS.match(text.lstrip('" ')):
        return None
    for delimiter in _DELIMITERS:
        if delimiter not in text:
            continue
        names = tuple(cell.strip() for cell in _csv_cells(text, delimiter))
        if names in {_LEVELS, _LEVELS[1:]} or (
            len(names) > 1 and _GROUPS.match(names[0]) and any(map(_MEASURED.match, names))
        ):
            return _TableTitles(names, delimiter)
    return None


def _csv_cells(text: str, delimiter: str) -> list[str]:
    return printed.delimited_cells(text, delimiter) or text.split(delimiter)


class _TableRows:
    """The rows of a table whose titles are known."""

    def __init__(self, titles: Sequence[str], block: int) -> None:
        self.titles = [title.strip() for title in titles]
        self.block = block
        self.count = 0
        self.functions: list[Row] = []
        self.events: dict[str, float] = {}
        self.bandwidth: list[tuple[tuple[str, ...], str]] = []  # what a table in a summary tells of the whole run
        self._group = re.sub(r"^Source ", "", self.titles[0]) if self.titles else ""
        self._is_tree = _TREE.search(self.titles[0] if self.titles else "") is not None
        self._columns = [_column_and_factor_of_title(title) for title in self.titles]
        self._is_of_vtune = any(name is not None and name not in {"module", "file"} for name, _ in self._columns)
        self._is_of_bandwidth = self._group == "Bandwidth Domain"

    def accept_cells(self, cells: Sequence[str]) -> bool:
        """Take a row; False where it is none."""
        if (
            len(cells) != len(self.titles)
            or not cells[0].strip()
            or not any(QUANTITY.fullmatch(cell.strip()) for cell in cells[1:])
        ):
            return False
        self.count += 1
        if self._is_of_bandwidth:
            self._add_bandwidth_row(cells)
        elif _GROUPS.match(self.titles[0]):
            self._add_function_row(cells)
        return True

    def _add_bandwidth_row(self, cells: Sequence[str]) -> None:
        """A row of the table of bandwidths: the most that the memory can, and what was reached."""
        domain, _, unit = cells[0].rpartition(",")
        if not domain or not unit.strip().endswith("/sec"):
            return
        for title, name in (("Average", ""), ("Observed Maximum", " peak"), ("Platform Maximum", " limit")):
            if title in self.titles:
                value = cells[self.titles.index(title)]
                self.bandwidth.append(((f"{domain} bandwidth{name}",), f"{value} {unit.strip()}"))

    def _add_function_row(self, cells: Sequence[str]) -> None:
        name = cells[0].strip()
        if self._is_tree and name == "Total":
            return
        row: Row = {"name": name}
        for (column, factor), title, cell in zip(self._columns, self.titles, cells, strict=True):
            if column in {"module", "file"}:
                row[column] = None if cell.strip() in _EMPTY_CELLS else cell.strip()
            elif (use := _UTILIZATION.fullmatch(title)) is not None:
                self._add_utilization(use[1], cell)
            elif (value := _parse_cell(column, cell.strip(), factor)) is None:
                continue
            elif column is not None:
                row[column] = int(value.value) if column == "allocations" else value.value
                row[f"{column}_pm"] = value.pm
            if column in {None, "instructions", "cycles"} and title.startswith(_EVENTS):
                self._add_event_count(title, cell, factor)
        if self._group == "Module":
            row["module"] = name
        row.pop("allocations_pm", None)
        if not self._is_of_vtune:
            return
        if "self_s" in row and not self._is_tree:
            row |= {"cpu_time_s": row["self_s"], "cpu_time_s_pm": row["self_s_pm"]}
        self.functions.append(row)

    def _add_utilization(self, use: str, cell: str) -> None:
        """Add up the time at a utilization over the rows; those of a tree contain each other."""
        if not self._is_tree and (value := _parse_cell("self_s", cell.strip(), 1.0)) is not None:
            key = f"cpu_time_{use.lower()}_s"
            self.events[key] = self.events.get(key, 0.0) + value.value

    def _add_event_count(self, title: str, cell: str, factor: float) -> None:
        """Add up a hardware event over the rows."""
        if (value := number(cell.strip())) is not None:
            name = _title_without_suffixes(title).removeprefix(_EVENTS)
            name = {"INST_RETIRED.ANY": "instructions", "CPU_CLK_UNHALTED.THREAD": "cycles"}.get(name, name)
            self.events[name] = self.events.get(name, 0.0) + value.value * factor


def _title_without_suffixes(title: str) -> str:
    """A title less what says that it is a function's own, less the sign of a share and a multiple."""
    for sign in ("(%)", *(f"({multiple})" for multiple in _MULTIPLES)):
        title = title.removesuffix(sign)
    return title.rstrip().removesuffix(":Self")


def _column_and_factor_of_title(title: str) -> tuple[str | None, float]:
    """The column of `functions` that a title is of, and by what its numbers are multiplied."""
    multiple = re.search(r"\(([KMG])\)\Z", title)
    is_share = title.endswith("(%)") and not title.startswith("% ")
    column = None if is_share else _COLUMNS.get(_title_without_suffixes(title))
    return column, _MULTIPLES[multiple[1]] if multiple else 1.0


def _parse_cell(column: str | None, cell: str, factor: float) -> Quantity | None:
    """A cell in the unit of its column."""
    if column == "allocated_bytes":
        return size(cell, "B")
    if column == "self_pct":
        return percent(cell)
    if (column or "").endswith("_s"):
        return parse_seconds(cell) or number(cell)
    value = number(cell)
    return value and Quantity(value.value * factor, None if factor == 1 else factor / 2)


class _DelimitedTable(_TableRows):
    """A table with a delimiter."""

    def __init__(self, titles: _TableTitles, block: int) -> None:
        super().__init__(titles.names, block)
        self._delimiter = titles.delimiter

    def accept_line(self, text: str) -> bool:
        """Take a line; False: it is none of the table's, or a damaged row."""
        if not text.strip():
            return self.count == 0  # one may stand behind the titles
        cells = _csv_cells(text, self._delimiter)
        if len(cells) == len(self.titles) + 1 and not cells[-1].strip():  # a delimiter at the end
            cells.pop()
        return self.accept_cells(cells)

    def is_damaged_row(self, text: str) -> bool:
        """Whether a line that was not taken is a damaged row."""
        return len(_csv_cells(text, self._delimiter)) >= max(2, len(self.titles) // 2)


class _DashedTable(_TableRows):
    """A table with dashes below its titles."""

    def __init__(self, titles: str, spans: tuple[printed.Span, ...], block: int) -> None:
        self._spans = spans
        cells = printed.ruled_cells(titles, spans, is_last_open=True)
        super().__init__(cells or (), block)

    def accept_line(self, text: str) -> bool:
        """Take a line; False: it is none of the table's."""
        ruled = printed.ruled_cells(text, self._spans, is_last_open=True) if text.strip() else None
        # each row has something in its last column: what has not lost a cell, and those behind it moved
        return any(cells and cells[-1] and self.accept_cells(cells) for cells in (ruled, printed.spaced_cells(text)))

    def is_damaged_row(self, text: str) -> bool:
        """Whether a line that was not taken is a damaged row; another line may follow the table at once."""
        return len(printed.spaced_cells(text)) >= max(2, len(self.titles) // 2)


class _CsvSummary:
    """A summary's CSV; `inner` is a table in it."""

    def __init__(self, summary: IntelSummary, delimiter: str, width: int) -> None:
        self.summary = summary
        self._delimiter = delimiter
        self.width = width
        self.inner: _TableRows | None = None

    def split_line(self, text: str) -> list[str] | None:
        """The cells of a line; None where the summary ends."""
        cells = [cell.strip() for cell in _csv_cells(text, self._delimiter)] if text.strip() else []
        return cells if len(cells) >= self.width else None
