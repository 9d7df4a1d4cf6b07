"""`perf report --stdio`: a row a function, in columns or with a separator between cells, with call graphs or without.

What a share is of depends on the event that was sampled: ns of a clock, cycles, instructions; of others only shares and
samples are known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.model import Options, Report, Sample
from nsw.readers.text.lines import Line, Span, ruled_cells, ruled_spans, text_lines
from nsw.readers.text.quantities import Quantity, number, parse_integer, percent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.tables import Row

__all__ = ["OF_USER", "Event", "read", "sniff"]

OF_USER: Final = "only the program's own code was measured, not the kernel's: perf_event_paranoid is 2 or more there"
_EVENT: Final = re.compile(r"# Samples: (\S{1,20}) {1,4}of events? '([^']{1,300})'")
_TITLES: Final = re.compile(r"#.{0,200}\b(?:Overhead|Self)\b.{0,400}\bSymbol\b")
_HEADER: Final = re.compile(r"# ([a-z][a-z ]{2,20}?) {0,10}: (.{1,1000})")
_HZ: Final = re.compile(r"\bsample_freq \} = (\d{1,7})\b")
_MARK: Final = re.compile(r"# *(?:Overhead|Children|Self) *([^\w\s#]|\t)")
_ORIGIN_MARK: Final = re.compile(r"\[[.kguHh]\] +")  # before a symbol: the program's, the kernel's, a guest's
_MODIFIERS: Final = re.compile(r"(?:/|:)([ukhGHpPSDe]+)\Z")
_TEXTS: Final = {"cpudesc": "cpu_name", "hostname": "host", "cmdline": "command"}


@dataclass(frozen=True, slots=True)
class Event:
    """What was sampled, such as cpu-clock:ppp or cycles:u."""

    name: str

    @property
    def column(self) -> str | None:
        """The column that its counts are of: self_s, cycles, instructions; None: another one."""
        plain = _MODIFIERS.sub("", self.name).rstrip("/").rpartition("/")[2]
        clocks = {"cpu-clock": "self_s", "task-clock": "self_s", "cpu-cycles": "cycles"}
        return clocks.get(plain, plain if plain in {"cycles", "instructions"} else None)

    @property
    def is_of_user(self) -> bool:
        """Whether the kernel is left out."""
        match = _MODIFIERS.search(self.name)
        return match is not None and "u" in match[1] and "k" not in match[1]

    def amount(self, column: str, count: Quantity) -> Row:
        """A column with a count of this event: a clock's is in ns."""
        value, pm = (
            count if self.column != "self_s" else (count.value / 1e9, None if count.pm is None else count.pm / 1e9)
        )
        return {column: value, f"{column}_pm": pm}


@dataclass(slots=True)
class _Table:
    """The rows of one event, and how they are read."""

    event: Event
    count: Quantity | None = None  # of the event in all
    titles: Sequence[str] = ()
    mark: str = ""  # between cells; none: they are under the dots of a line
    spans: tuple[Span, ...] = ()
    has_graphs: bool = False
    rows: list[Row] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)

    def take(self, number: int, text: str) -> None:
        """Read a line that is a row; others belong to the call graph of the row before."""
        bare = text.strip()
        if not bare or not self.titles:
            return
        if not bare[0].isdigit() and (self.has_graphs or bare.startswith(("|", "--"))):
            self.has_graphs = True
            return
        row = self._row(text)
        if row is None:
            self.bad.append(number)
        else:
            self.rows.append(row)

    def _row(self, text: str) -> Row | None:
        cells = text.split(self.mark) if self.mark else self._under_dots(text)
        if cells is None or len(cells) != len(self.titles):
            return None
        cell_of = dict(zip(self.titles, (cell.strip() for cell in cells), strict=True))
        own_share = _share(cell_of.get("Self", cell_of.get("Overhead", "")))
        symbol = _ORIGIN_MARK.sub("", cell_of["Symbol"], count=1)
        if own_share is None or not symbol or cell_of["Symbol"] == symbol:
            return None
        row: Row = {
            "name": symbol,
            "module": cell_of.get("Shared Object"),
            "self_pct": own_share.value,
            "self_pct_pm": own_share.pm,
        }
        for title, column in (("Samples", "samples"), ("Period", "period")):
            if title in cell_of and (row.setdefault(column, parse_integer(cell_of[title])) is None):
                return None
        return row | self._amounts(own_share, row.pop("period", None), cell_of.get("Children"))

    def _under_dots(self, text: str) -> list[str] | None:
        fits_titles = len(self.spans) == len(self.titles)
        return ruled_cells(text, self.spans, is_last_open=True) if fits_titles else None

    def _amounts(self, own_share: Quantity, period: int | None, children: str | None) -> Row:
        """How much of the event is the function's own, and with its callees."""
        if (column := self.event.column) is None:
            return {}
        exact = None if period is None else Quantity(period, None)
        amounts: Row = {}
        if (count := exact or self._part(own_share)) is not None:
            amounts |= self.event.amount(column, count)
        if column == "self_s" and (whole_share := _share(children or "")) and (count := self._part(whole_share)):
            amounts |= self.event.amount("cpu_time_s", count)
        return amounts

    def _part(self, share: Quantity) -> Quantity | None:
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
    tables: list[_Table] = []
    for line in text_lines(path):
        if line[1].startswith("#"):
            _parse_comment_line(line, header, tables, report)
        elif tables:
            tables[-1].take(*line)
    report.tool_version = header.get("perf version")
    used_tables = [table for table in tables if table.event.column == tables[0].event.column and table.titles]
    _report_problems(report, tables, used_tables)
    if options.wants("functions"):
        report.tables["functions"] = [{"block": n, **row} for n, table in enumerate(used_tables) for row in table.rows]
    if options.wants("facts") and used_tables:
        report.tables["facts"] = _facts(header, used_tables)
    return report


def _parse_comment_line(line: Line, header: dict[str, str], tables: list[_Table], report: Report) -> None:
    """Read a line of the header, of a table's titles, or the dots under them."""
    number_, text = line
    if match := _EVENT.match(text):
        tables.append(_Table(Event(match[2])))
    elif text.startswith("# Event count (approx.):") and tables:
        tables[-1].count = number(text.partition(":")[2])
    elif text.startswith("# Total Lost Samples:") and (lost := parse_integer(text.partition(":")[2])):
        report.warn(f"perf lost {lost:,} samples: shares may be wrong", line=number_, fix="sample less often")
    elif _TITLES.match(text):
        if not tables or tables[-1].titles:
            tables.append(_Table(Event("")))
        _parse_table_title(tables[-1], text)
    elif tables and not tables[-1].mark and not tables[-1].spans and set(text) <= set("#. ") and "." in text:
        table = tables[-1]
        table.spans = ruled_spans(text.replace(".", "-"))
    elif not tables and (match := _HEADER.match(text)):
        header.setdefault(match[1], match[2].strip())


def _parse_table_title(table: _Table, text: str) -> None:
    match = _MARK.match(text)
    table.mark = match[1] if match else ""
    bare = text[1:].strip()
    table.titles = [cell.strip() for cell in (bare.split(table.mark) if table.mark else re.split(r" {2,}", bare))]


def _share(text: str) -> Quantity | None:
    return percent(text) if text.endswith("%") else None


def _report_problems(report: Report, tables: Sequence[_Table], used_tables: Sequence[_Table]) -> None:
    other_events = sorted({table.event.name for table in tables if table.event.column != tables[0].event.column})
    if other_events:
        report.warn(
            f"rows of {tables[0].event.name} only; the file has {', '.join(other_events)} too, which count others"
        )
    if any(table.event.is_of_user for table in used_tables):
        report.warn(OF_USER)
    bad = [number_ for table in used_tables for number_ in table.bad]
    wrong = "a row that is not under its titles was left out"
    report.errors([wrong] * len(bad), f"{len(bad)} rows in all were left out", lines=bad)
    if not used_tables:
        report.error("no table with the columns Overhead and Symbol", fix="perf report --stdio --sort dso,symbol")


def _facts(header: dict[str, str], used_tables: Sequence[_Table]) -> list[Row]:
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
    column, counts = (
        used_tables[0].event.column,
        [table.count.value for table in used_tables if table.count is not None],
    )
    if column is not None and len(counts) == len(used_tables):
        key, unit, scale = ("cpu_time_s", "s", 1e9) if column == "self_s" else (column, None, 1)
        facts.append((key, sum(counts) / scale, unit, None))
    return [{"key": key, "value": value, "unit": unit, "text": text} for key, value, unit, text in facts]
