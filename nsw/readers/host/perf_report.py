"""`perf report --stdio`: a row a function, in columns or with a separator between cells, with call graphs or without.

What a share is of depends on the event that was sampled: ns of a clock, cycles, instructions; of others only shares and
samples are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import Line, Span, ruled_cells, ruled_spans, text_lines
from nsw.readers.text.quantities import Quantity, number, parse_integer, percent
from nsw.tables import Row

__all__ = ["OF_USER", "Event", "read", "sniff"]


OF_USER: Final = "only the program's own code was measured, not the kernel's: perf_event_paranoid is 2 or more there"
_EVENT: Final = re.compile(r"# Samples: (\S{1,20}) {1,4}of events? '(?:[^'{]{1,100}\{ )?([^',}]{1,300})[^']{0,1000}'")
_TITLES: Final = re.compile(r"#.{0,200}\b(?:Overhead|Self)\b.{0,400}\bSymbol\b")
_HEADER: Final = re.compile(r"# ([a-z][a-z ]{2,20}?) {0,10}: (.{1,1000})")
_HZ: Final = re.compile(r"\bsample_freq \} = (\d{1,7})\b")
_MARK: Final = re.compile(r"# *(?:Overhead|Children|Self) *([^\w\s#]|\t)")
# before a symbol: the program's, the kernel's, a guest's; with -v its address and where its name is from
_ORIGIN_MARK: Final = re.compile(r"(?:0x[0-9a-f]{1,16} {1,20}(?:\S )?)?\[[.kguHh]\] +|(?=0x[0-9a-f]{1,16}\Z)")
_MODIFIERS: Final = re.compile(r"(?:/|:)([ukhGHpPSDe]+)\Z")
_ROW: Final = re.compile(r" {0,6}\d{1,3}\.\d\d%")
_OF_GRAPH: Final = re.compile(r"\||--")
_FOLDED: Final = re.compile(r"\d{1,3}\.\d\d% .{1,4000}")  # perf report -g folded: a stack below its row
_SHARE: Final = re.compile(r"\d{1,3}(?:\.\d{1,4})?%")
_COUNT_COLUMNS: Final = {
    "cpu-clock": "self_s", "task-clock": "self_s", "cycles": "cycles", "instructions": "instructions",
}  # fmt: skip
_TEXTS: Final = {"cpudesc": "cpu_name", "hostname": "host", "cmdline": "command"}


@dataclass(frozen=True, slots=True)
class Event:
    """What was sampled, such as cpu-clock:ppp or cycles:u."""

    name: str

    @property
    def counted_quantity(self) -> str:
        """What it counts, alike for both kinds of a hybrid CPU's cores: cycles of cpu_core/cycles/u."""
        plain = _MODIFIERS.sub("", self.name).rstrip("/").rpartition("/")[2]
        return "cycles" if plain == "cpu-cycles" else plain

    @property
    def count_column(self) -> str | None:
        """The column that its counts are of: self_s, cycles, instructions; None: another one."""
        return _COUNT_COLUMNS.get(self.counted_quantity)

    @property
    def is_user_only(self) -> bool:
        """Whether the kernel is left out."""
        match = _MODIFIERS.search(self.name)
        return match is not None and "u" in match[1] and "k" not in match[1]

    def amount_columns(self, column: str, count: Quantity) -> Row:
        """A column with a count of this event: a clock's is in ns."""
        scale = 1e9 if self.count_column == "self_s" else 1
        return {column: count.value / scale, f"{column}_pm": None if count.pm is None else count.pm / scale}


@dataclass(slots=True)
class _EventTable:
    """The rows of one event, and how they are read."""

    event: Event
    count: Quantity | None = None  # of the event in all
    titles: Sequence[str] = ()
    title_line: str = ""
    mark: str = ""  # between cells; none: they are under the dots of a line
    spans: tuple[Span, ...] = ()
    has_graphs: bool = False
    rows: list[Row] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)

    def read_line(self, number: int, text: str) -> None:
        """Read a line that is a row; others belong to the call graph of the row before."""
        bare = text.strip()
        if not bare or not self.titles:
            return
        self.has_graphs |= bare.startswith(("|", "--"))
        if self.has_graphs and not self.mark and not _ROW.match(text):
            if "%" in text and not _OF_GRAPH.search(text):
                self.bad.append(number)
            return
        row = self._parse_row(text)
        if row is not None:
            self.rows.append(row)
        elif not (self.rows and _FOLDED.match(text)):
            self.bad.append(number)

    def _parse_row(self, text: str) -> Row | None:
        cells = text.split(self.mark) if self.mark else self._cells_under_dots(text)
        if cells is None or len(cells) != len(self.titles):
            return None
        cell_of = dict(zip(self.titles, (cell.strip() for cell in cells), strict=True))
        own_share = _parse_share(cell_of.get("Self", cell_of.get("Overhead", "")))
        origin = _ORIGIN_MARK.match(cell_of["Symbol"])
        symbol = cell_of["Symbol"][origin.end() :] if origin else ""
        if own_share is None or not symbol:
            return None
        shares = {"self_pct": own_share.value, "self_pct_pm": own_share.pm}
        row: Row = {"name": symbol, "module": cell_of.get("Shared Object")} | shares
        for title, column in (("Samples", "samples"), ("Period", "period")):
            if title in cell_of and (row.setdefault(column, parse_integer(cell_of[title])) is None):
                return None
        return row | self._self_and_total_amounts(own_share, row.pop("period", None), cell_of.get("Children"))

    def _cells_under_dots(self, text: str) -> list[str] | None:
        fits_titles = len(self.spans) == len(self.titles)
        return ruled_cells(text, self.spans, is_last_open=True) if fits_titles else None

    def _self_and_total_amounts(self, own_share: Quantity, period: int | None, children: str | None) -> Row:
        """How much of the event is the function's own, and with its callees."""
        if (column := self.event.count_column) is None:
            return {}
        exact = None if period is None else Quantity(period, None)
        amounts: Row = {}
        if (count := exact or self._share_of_count(own_share)) is not None:
            amounts |= self.event.amount_columns(column, count)
        whole_share = _parse_share(children or "") if column == "self_s" else None
        if whole_share and (count := self._share_of_count(whole_share)):
            amounts |= self.event.amount_columns("cpu_time_s", count)
        return amounts

    def _share_of_count(self, share: Quantity) -> Quantity | None:
        """A share of the event's count."""
        if self.count is None:
            return None
        return Quantity(share.value * self.count.value / 100, (share.pm or 0) * self.count.value / 100)


def sniff(sample: Sample) -> int:
    """Certain by the line that names the event; likely by its titles."""
    if _EVENT.search(sample.text):
        return 95
    return 80 if _TITLES.search(sample.text) else 0


def read(path: Path, options: Options) -> Report:
    """Fill `functions`, in the file's order, and `facts` of the recording and its machine."""
    report = Report(str(path), tool="perf", format="perf-report")
    header: dict[str, str] = {}
    tables: list[_EventTable] = []
    for line in text_lines(path):
        if line[1].startswith("#"):
            _parse_comment_line(line, header, tables, report)
        elif tables:
            tables[-1].read_line(*line)
    report.tool_version = header.get("perf version")
    tables = [table for table in tables if table.rows or table.bad] or tables  # perf counts nothing by a "dummy"
    used_tables = _tables_of_one_event_kind([table for table in tables if table.titles])
    _report_problems(report, tables, used_tables)
    if options.wants("functions"):
        report.tables["functions"] = [
            {"block": n, **_row_with_share_of_all_tables(row, table, used_tables)}
            for n, table in enumerate(used_tables)
            for row in table.rows
        ]
    if options.wants("facts") and used_tables:
        report.tables["facts"] = _fact_rows(header, used_tables)
    return report


def _tables_of_one_event_kind(tables: Sequence[_EventTable]) -> Sequence[_EventTable]:
    """Those of one kind of event that can be added: of time if there are any, else of the first kind."""
    of_time = [table for table in tables if table.event.count_column in {"self_s", "cycles"}]
    alike = [table for table in tables if table.event.counted_quantity == (of_time or tables)[0].event.counted_quantity]
    return alike if all(table.count is not None for table in alike) else alike[:1]


def _row_with_share_of_all_tables(row: Row, table: _EventTable, tables: Sequence[_EventTable]) -> Row:
    """A row with its share of all tables' counts: of both kinds of cores."""
    if len(tables) == 1 or table.count is None:
        return row
    part = table.count.value / (sum(other.count.value for other in tables if other.count) or 1)
    return row | {column: row[column] and part * row[column] for column in ("self_pct", "self_pct_pm")}


def _parse_comment_line(line: Line, header: dict[str, str], tables: list[_EventTable], report: Report) -> None:
    """Read a line of the header, of a table's titles, or the dots under them."""
    number_, text = line
    if match := _EVENT.match(text):
        tables.append(_EventTable(Event(match[2])))
    elif text.startswith("# Event count (approx.):") and tables:
        tables[-1].count = number(text.partition(":")[2])
    elif text.startswith("# Total Lost Samples:") and (lost := parse_integer(text.partition(":")[2])):
        report.warn(f"perf lost {lost:,} samples: shares may be wrong", line=number_, fix="sample less often")
    elif _TITLES.match(text):
        if not tables or tables[-1].titles:
            tables.append(_EventTable(Event("")))
        _parse_table_title(tables[-1], text)
    elif tables and not tables[-1].mark and not tables[-1].spans and set(text) <= set("#. ") and "." in text:
        table = tables[-1]
        table.spans = ruled_spans(text.replace(".", "-"))
        cut_titles = ruled_cells(table.title_line, table.spans, is_last_open=True)
        table.titles = cut_titles if cut_titles and "Symbol" in cut_titles else table.titles
    elif not tables and (match := _HEADER.match(text)):
        header.setdefault(match[1], match[2].strip())


def _parse_table_title(table: _EventTable, text: str) -> None:
    match = _MARK.match(text)
    table.mark = match[1] if match else ""
    table.title_line = " " + text[1:]
    bare = text[1:].strip()
    table.titles = [cell.strip() for cell in (bare.split(table.mark) if table.mark else re.split(r" {2,}", bare))]


def _parse_share(text: str) -> Quantity | None:
    """The share of a cell; of events that were counted as a group the first one's."""
    match = _SHARE.match(text)
    return percent(match[0]) if match else None


def _report_problems(report: Report, tables: Sequence[_EventTable], used_tables: Sequence[_EventTable]) -> None:
    used = {id(table) for table in used_tables}
    if others := [table for table in tables if id(table) not in used and table.rows]:
        report.warn(
            f"rows of {used_tables[0].event.name} only; what the others count is no part of that:"
            f" {'; '.join(f'{table.event.name}: {_top_functions_text(table)}' for table in others)}"
        )
    if any(table.event.is_user_only for table in used_tables):
        report.warn(OF_USER)
    bad = [number_ for table in used_tables for number_ in table.bad]
    wrong = "a row that is not under its titles was left out"
    report.errors([wrong] * len(bad), f"{len(bad)} rows in all were left out", lines=bad)
    if not used_tables:
        report.error("no table with the columns Overhead and Symbol", fix="perf report --stdio --sort dso,symbol")


def _top_functions_text(table: _EventTable) -> str:
    """The functions with most of an event."""
    largest = sorted(table.rows, key=lambda row: -row["self_pct"])[:2]
    return ", ".join(f"{row['name']} {row['self_pct']:.0f} %" for row in largest)


def _fact_rows(header: dict[str, str], used_tables: Sequence[_EventTable]) -> list[Row]:
    facts: list[tuple[str, Any, str | None, str | None]] = [
        (key, None, None, header[name]) for name, key in _TEXTS.items() if name in header
    ]
    facts += [("event", None, None, table.event.name) for table in used_tables if table.event.name]
    if (cpus := parse_integer(header.get("nrcpus online", ""))) is not None:
        facts.append(("logical_cpus", cpus, None, None))
    if match := _HZ.search(header.get("event", "")):
        facts.append(("sampling_hz", int(match[1]), "Hz", None))
    samples = [row["samples"] for table in used_tables for row in table.rows if row.get("samples") is not None]
    if samples and not any(table.bad for table in used_tables):
        facts.append(("samples", sum(samples), None, None))
    column = used_tables[0].event.count_column
    counts = [table.count.value for table in used_tables if table.count is not None]
    if column is not None and len(counts) == len(used_tables):
        key, unit, scale = ("cpu_time_s", "s", 1e9) if column == "self_s" else (column, None, 1)
        facts.append((key, sum(counts) / scale, unit, None))
    return [{"key": key, "value": value, "unit": unit, "text": text} for key, value, unit, text in facts]
