"""`ncu --csv`: every page, line by line, also amid other output; blocks of plain rows are read together."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.messages import NcuMessageCollector
from nsw.readers.model import Options, Report, Sample
from nsw.readers.ncu import csv_pages
from nsw.readers.ncu import values as ncu_values
from nsw.readers.ncu.results import (
    RULE_COLUMNS,
    SUMMARY,
    NcuResults,
    OmittedLines,
    ncu_version_in_facts,
    section_title,
    session_fact_rows,
    warn_of_guessed_decimal_mark,
)
from nsw.readers.text.lines import (
    LOOKED_AT,
    delimited_cells,
    is_labelled,
    line_blocks,
    lines_by_rank,
    text_lines,
    visible_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from nsw.readers.ncu.plain_rows import PlainRows
    from nsw.readers.ncu.results import Names
    from nsw.readers.text.lines import Line, LineBlock

__all__ = ["CsvScan", "read", "sniff"]


Launches: TypeAlias = "dict[int | str, int]"

LARGE: Final = 4 << 20  # bytes from which Arrow's start pays
_BLOCK: Final = 4 << 20  # bytes, so that each block is worth being taken apart in a thread
_HEADERS: Final = (
    '"ID","Process ID"', '"Process ID","Process Name"', '"Session Attribute","Value"', '"Address","Source"',
    '"#","Source"', '"Line No","Source"', "ID,Process ID,Process Name", "ID;Process ID;Process Name",
    '"Domain","Range:PL_Type',
)  # fmt: skip


def sniff(sample: Sample) -> int:
    """Certain when a header of ncu's is in the file."""
    if sample.is_binary:
        return 0
    if any(csv_pages.parse_page_header(line) for line in sample.text.splitlines()[:400]):
        return 95
    return 90 if sample.contains(*_HEADERS) else 0


def read(path: Path, options: Options) -> Report:
    """Launches, metrics, rules and facts, whatever is between the rows; each CSV of the file is a block."""
    report = Report(str(path), tool="ncu", format="ncu-csv")
    results, messages, left, source = NcuResults(), NcuMessageCollector(), OmittedLines(), csv_pages.SourcePageRows()
    blocks = 0
    is_large = path.stat().st_size >= LARGE and not is_labelled(list(islice(text_lines(path), LOOKED_AT)))
    for rank, lines in [(None, ())] if is_large else lines_by_rank(text_lines(path)):
        scan = CsvScan(report, results, messages, left, rank, blocks, source)
        if is_large:
            scan.read_blocks(line_blocks(path, _BLOCK))
        else:
            scan.read_lines(lines)
        blocks = scan.blocks
    results.fill_report(report, options)
    if source.at and options.wants("source_metrics"):
        report.tables["source_metrics"] = source.source_metric_table()
    report.tool_version = ncu_version_in_facts(results.facts)
    empty = results.is_empty and not source.at
    left.source_lines = 0 if source.at else source.lines
    left.repeated = source.repeated
    left.add_problems_to_report(report, has_no_results=empty)
    messages.add_problems_to_report(report, has_no_results=empty)
    return report


_TITLED: Final = ('"Kernel Name","', '"Function Name","', '"File Path","', '"File Name","')  # of a source page
_WORKERS: Final = 1
_MAX_HEADS: Final = 50_000  # remembered
_JOINED: Final = 200  # lines that one quoted field may span
_NEW_ROW: Final = re.compile(r'"\d+"[,;\t]"\d+"[,;\t]')
_ROW_START: Final = re.compile(r'"?(?:\d+|0x[0-9a-fA-F]+)"?[,;\t]')


@dataclass(slots=True)
class UnparsedRows:
    """Rows of one page as text: their decimal mark is known when all have been seen."""

    metrics: list[tuple[int, Names, str]] = field(default_factory=list)  # owner, names, value
    spreads: list[tuple[int, Names, tuple[str, str, str]]] = field(default_factory=list)
    rules: list[tuple[int, list[str]]] = field(default_factory=list)


@dataclass(slots=True)
class CsvScan:
    """One stream of lines: which page it is on, and what has been seen of it."""

    report: Report
    results: NcuResults
    messages: NcuMessageCollector
    left: OmittedLines
    rank: int | None
    blocks: int
    source: csv_pages.SourcePageRows = field(default_factory=csv_pages.SourcePageRows)
    page: csv_pages.CsvPage | None = None
    launches: dict[str, Launches] = field(default_factory=dict)  # of the page, by process and id: their owners
    summaries: dict[tuple[Any, ...], int] = field(default_factory=dict)  # by all of their columns: their owners
    heads: dict[str, tuple[int, Launches]] = field(default_factory=dict)  # by the cells that launches have in common
    waiting: UnparsedRows = field(default_factory=UnparsedRows)
    parse: ncu_values.ValueParser | None = None  # once enough values have been seen to decide the marks of the page
    at: int = 0  # the line
    aside: tuple[int, int] = (0, 0)  # fields of a table between the rows, and its last line
    pending: list[Line] = field(default_factory=list)  # lines of a row whose quotes are still open

    def read_lines(self, lines: Iterable[Line]) -> None:
        """Read all lines to their end."""
        for number, line in lines:
            self.feed_line(number, line)
        self.finish()

    def read_blocks(self, blocks: Iterable[LineBlock]) -> None:
        """Read all lines, plain rows of a block together; the next blocks are taken apart meanwhile."""
        from concurrent.futures import ThreadPoolExecutor

        from nsw.readers.ncu.plain_rows import parse_plain_rows

        # A worker gets a text, a page and a parser. Nobody changes a page; what it caches is the same each time. The
        # parser caches values by text: two threads may parse a text twice, to one value. This thread has all else.
        ahead: deque[tuple[int, str, csv_pages.CsvPage | None, Future[PlainRows] | None]] = deque()
        with ThreadPoolExecutor(_WORKERS) as pool:
            for first, block in blocks:
                page, parse, job = self.page, self.parse, None
                if page is not None and parse is not None and page.has_ncu_column_order:
                    job = pool.submit(parse_plain_rows, block, page, parse)
                ahead.append((first, block, page, job))
                while len(ahead) > (_WORKERS if job is not None else 0):
                    self.read_block(*ahead.popleft())
            for waiting in ahead:
                self.read_block(*waiting)
        self.finish()

    def read_block(self, first: int, block: str, page: csv_pages.CsvPage | None, job: Future[PlainRows] | None) -> None:
        """Read one block: the plain rows of a page together, all other lines one by one.

        Args:
            first: The number of its first line, from 1.
            block: The lines.
            page: The page that it was taken apart for.
            job: Gives its rows; None where it was not taken apart.
        """
        from nsw.readers.ncu.plain_rows import parse_plain_rows

        rows = None if job is None else job.result()
        begin = at = 0  # the line that `rows` begin with, and the next line
        lines = block.split("\n") if rows is None or page is not self.page else []
        count = rows.other_lines[-1] if rows is not None else len(lines)
        while at < count:
            current = self.page
            if current is not None and self.parse is not None and current.has_ncu_column_order and not self.pending:
                if rows is None or page is not current:  # a page, or what its numbers look like, became known
                    begin, page, rows = at, current, parse_plain_rows("\n".join(lines[at:]), current, self.parse)
                at = begin + self.add_plain_rows(rows, at - begin)
            if at < count:
                lines = lines or block.split("\n")
                self.feed_line(first + at, visible_line(lines[at]))
                at += 1

    def add_plain_rows(self, rows: PlainRows, first_line: int) -> int:
        """Take plain rows of the page up to the next other line, or to a row that is of no launch.

        Returns:
            The line up to which they are taken, counted as `first_line` is.
        """
        import numpy as np

        page, results = self.page, self.results
        assert page is not None
        stop = rows.other_lines[bisect_left(rows.other_lines, first_line)]
        if first_line == stop:
            return first_line
        first_run, last_run = np.searchsorted(rows.run_lines, (first_line + 1, stop)).tolist()
        first_run -= 1
        owners = self.find_or_add_launches(rows.ids[first_run:last_run], rows.heads[first_run:last_run])
        if len(owners) < last_run - first_run:
            stop = max(first_line, int(rows.run_lines[first_run + len(owners)]))
        if not owners:
            return first_line
        owner_codes, codes = np.array(owners), np.array([results.code_of_names(names) for names in rows.names])
        first, last = np.searchsorted(rows.metric_lines, (first_line, stop)).tolist()
        runs, names = rows.metric_runs[first:last], rows.metric_names[first:last]
        results.add_metrics(owner_codes[runs - first_run], codes[names], rows.values.slice_values(first, last))
        first, last = np.searchsorted(rows.rule_lines, (first_line, stop)).tolist()
        if first < last:
            results.add_rules(
                owner_codes[rows.rule_runs[first:last] - first_run], rows.rules.slice(first, last - first)
            )
        return stop

    def find_or_add_launches(self, printed_ids: Sequence[int], launch_prefixes: Sequence[str]) -> list[int]:
        """The launches of plain rows up to the first that is of none, or names another kernel than the launch's.

        Args:
            printed_ids: The ids; -1 where it is not written as a number is.
            launch_prefixes: The cells behind them that tell of the launch.
        """
        results, owners = self.results, []
        common_of, launch_ids = results.common_of, results.launch_ids
        for launch_id, head in zip(printed_ids, launch_prefixes, strict=True):
            if launch_id < 0 or (entry := self.heads.get(head) or self.launches_of_prefix(head)) is None:
                break
            common, launches = entry
            owner = launches.get(launch_id)
            if owner is None:
                owner = launches[launch_id] = len(common_of)  # as `results.owner` adds it, without half a million calls
                common_of.append(common)
                launch_ids.append(launch_id)
            elif common_of[owner] != common and not csv_pages.have_same_kernel_and_size(
                results.common_columns_of_owner(owner), results.common[common]
            ):
                break
            owners.append(owner)
        return owners

    def launches_of_prefix(self, launch_prefix: str) -> tuple[int, Launches] | None:
        """What launches have in common by its cells, and the launches of that process; None where it is no such row."""
        page = self.page
        assert page is not None
        row = ["0", *csv_pages.split_quoted_cells(launch_prefix)]
        if len(row) != page.first_name_position or not page.is_row_of_page(row):
            return None
        columns = page.launch_columns(row, self.block_number, self.rank)
        del columns["launch_id"]
        if len(self.heads) >= _MAX_HEADS:
            self.heads.clear()
        entry = self.heads[launch_prefix] = (
            self.results.add_common_columns(columns),
            self.launches.setdefault(page.launch_key(row)[1], {}),
        )
        return entry

    def feed_line(self, number: int, line: str) -> None:
        """Read one line; one that begins a field of several lines waits for the rest of them."""
        if self.pending:
            if not _NEW_ROW.match(line) and len(self.pending) < _JOINED:
                self.pending.append((number, line))
                if line.count('"') % 2:
                    joined, self.pending = self.pending, []
                    self.read_complete_line(joined[0][0], "\n".join(text for _, text in joined))
                return
            self.read_pending_lines()
        if self.page is not None and _NEW_ROW.match(line) and line.count('"') % 2:
            self.pending = [(number, line)]
        else:
            self.read_complete_line(number, line)

    def read_pending_lines(self) -> None:
        """Read the lines that waited as lines: their field did not end."""
        waiting, self.pending = self.pending, []
        for number, line in waiting:
            self.read_complete_line(number, line)

    def finish(self) -> None:
        """There are no more lines."""
        self.read_pending_lines()
        self.end_page()

    def read_complete_line(self, number: int, line: str) -> None:
        """Take a row, a header, or a message."""
        if (page := csv_pages.parse_page_header(line)) is not None:
            self.end_page()
            self.begin_page(page)
        elif self.accept_source_title(line):
            self.end_page()
        elif self.page is None or not self.accept_row_line(line, number):
            self.messages.note_message_line(line, number)

    def accept_source_title(self, line: str) -> bool:
        """Whether the line names what a source page is of."""
        is_place = self.page is None or self.page.kind == "source"
        return is_place and line.startswith(_TITLED) and self.source.accept_title(delimited_cells(line, ","))

    def begin_page(self, page: csv_pages.CsvPage) -> None:
        """A header: the lines below are of its page."""
        if page.kind == "source":
            self.source.begin_page()
        elif page.kind != "session":
            self.blocks += 1
        self.page, self.launches, self.heads = page, {}, {}

    def add_metric(self, launch_number: int, names: Names, printed_value: str) -> None:
        """Add one metric of a launch.

        While the decimal mark is unknown, metrics wait until enough of them show it or the page ends.

        Args:
            launch_number: The number of the launch.
            names: Section, metric, description and unit.
            printed_value: The value as printed.
        """
        if self.parse is not None:
            self.results.add_metric(launch_number, names, self.parse(printed_value))
            return
        waiting = self.waiting.metrics
        waiting.append((launch_number, names, printed_value))
        if len(waiting) >= ncu_values.EVIDENCE_VALUES:
            self.decide_number_format()

    def decide_number_format(self) -> ncu_values.ValueParser:
        """How the page's numbers are written; the metrics that waited for it are read."""
        waiting = self.waiting
        texts = [(t, names[3]) for _, names, t in waiting.metrics]
        texts = texts or [(t, names[3]) for _, names, ts in waiting.spreads for t in ts]
        parse = self.parse = ncu_values.ValueParser(ncu_values.decide_decimal_mark(texts))
        for owner, names, text in waiting.metrics:
            self.results.add_metric(owner, names, parse(text))
        for owner, cells in waiting.rules:
            self.add_rule(owner, cells)
        waiting.metrics.clear()
        waiting.rules.clear()
        return parse

    def add_rule(self, launch_number: int, cells: list[str]) -> None:
        """One rule by the cells of `RULE_TITLES`: its speed-up is a number as those of the metrics."""
        if self.parse is None:
            self.waiting.rules.append((launch_number, cells))
            return
        *texts, gain = (cell or None for cell in (section_title(cells[0]), *cells[1:]))
        speedup = self.parse((gain or "").removesuffix("%"))
        columns = dict(zip(RULE_COLUMNS, texts, strict=True))
        self.results.add_rule(launch_number, **columns, speedup_pct=speedup.number, speedup_pct_pm=speedup.half)

    @property
    def block_number(self) -> int:
        """The number of the page among those with results."""
        return self.blocks - 1

    def accept_row_line(self, line: str, number: int) -> bool:
        """Whether the line was a row of the page."""
        page, self.at = self.page, number
        assert page is not None
        if page.delimiter not in line:
            return False
        if page.quoted and not line.startswith('"'):  # what its first cell held is lost
            return self.note_if_damaged_row(page, line, number)
        row = delimited_cells(line, page.delimiter) if line.count('"') % 2 == 0 else []
        if row and self.accept_row(page, row):
            return True
        self.source.line = None  # the line of source code that this may have been is not known
        if row and self.is_row_of_side_table(row, number):
            return True
        return self.note_if_damaged_row(page, line, number)

    def note_if_damaged_row(self, page: csv_pages.CsvPage, line: str, number: int) -> bool:
        """Whether a line that could not be read looks like a damaged row; such a line is reported.

        Args:
            page: The page around the line.
            line: The line.
            number: Its number, from 1.
        """
        if not (_ROW_START.match(line) or (page.quoted and line.count('","') * 2 > len(page.header))):
            return False
        self.left.damaged.append(number)
        return True

    def is_row_of_side_table(self, row: list[str], number: int) -> bool:
        """Whether the fields are of a small table between the rows: of the NUMA affinity of GPUs, of NVLinks."""
        size, last = self.aside
        begins = 1 < len(row) < 12 and all(cell and not cell[0].isdigit() for cell in row)
        if not begins and (size, last) != (len(row), number - 1):
            return False
        self.aside = (len(row), number)
        return True

    def accept_row(self, page: csv_pages.CsvPage, row: list[str]) -> bool:
        """Whether the fields were a row of the page."""
        if page.kind == "session":
            self.results.facts += session_fact_rows(page.header, row, self.rank)
            return True
        if page.kind == "source":
            return self.source.accept_row(page, row, self.rank)
        if page.kind == "raw" and page.is_units_row(row):
            if not page.units:
                self.page = replace(page, units=tuple(row))
            return True
        if page.kind == "summary":
            return self.accept_summary_row(page, row)
        owner = self.find_or_add_launch(page, row) if page.has_field_count_of_page(row) else None
        if owner is None:
            return False
        if not page.row_names_launch(row, self.results.common_columns_of_owner(owner)):
            self.left.of_two.setdefault(page.launch_key(row)[0], self.at)
            return True
        if page.kind == "raw":
            for i, names in zip(page.metric_positions, page.names_of_raw_metrics, strict=True):
                self.add_metric(owner, names, row[i])
            return True
        return self.accept_details_row(page, row, owner)

    def find_or_add_launch(self, page: csv_pages.CsvPage, row: Sequence[str]) -> int | None:
        """The number of the launch that a row is of; None when it is no row of this page."""
        launch_id, process = page.launch_key(row)
        launches = self.launches.setdefault(process, {})
        owner = launches.get(launch_id)  # an id that is known needs no second look
        if owner is None and page.is_row_of_page(row):
            owner = launches[launch_id] = self.results.add_owner(
                **page.launch_columns(row, self.block_number, self.rank)
            )
        return owner

    def accept_details_row(self, page: csv_pages.CsvPage, row: list[str], owner: int) -> bool:
        """Add a metric of a launch, a rule, or both; returns whether the fields were such a row.

        Args:
            page: The details page.
            row: The fields of the row.
            owner: The number of the launch.
        """
        section, name, label, unit = page.metric_names_of_row(row)
        names: Names = (section or None, name, label or None, unit)
        if ncu_values.name_or_unit_is_number(name, unit) or (not name and row[page.column_positions["Metric Value"]]):
            return False
        if name:
            self.add_metric(owner, names, row[page.column_positions["Metric Value"]])
        if len(row) > page.min_fields and (cells := page.rule_cells_of_row(row))[1]:
            self.add_rule(owner, cells)
        elif not name and any(page.rule_cells_of_row(row)[1:]):
            return False  # advice without its rule
        return True

    def accept_summary_row(self, page: csv_pages.CsvPage, row: list[str]) -> bool:
        """A metric over launches; whether it was one."""
        if not (page.has_field_count_of_page(row) and page.is_row_of_page(row)):
            return False
        columns = {k: v for k, v in page.launch_columns(row, self.block_number, self.rank).items() if k != "launch_id"}
        columns["invocations"] = ncu_values.parse_integer(page.field_by_name(row, "Invocations"))
        key = tuple(columns.values())
        if (owner := self.summaries.get(key)) is None:
            owner = self.summaries[key] = self.results.add_owner(SUMMARY, **columns)
        section, name, _, unit = page.metric_names_of_row(row)
        names = (section or None, name, None, unit)
        if ncu_values.name_or_unit_is_number(name, unit):
            return False
        minimum, maximum, mean = (row[page.column_positions[c]] for c in ("Minimum", "Maximum", "Average"))
        self.waiting.spreads.append((owner, names, (minimum, maximum, mean)))
        return True

    def end_page(self) -> None:
        """Read the numbers of the page, now that its decimal mark can be decided."""
        if self.source.end_page():
            warn_of_guessed_decimal_mark(self.report, self.source.block)
        parse = self.parse or self.decide_number_format()
        waiting, self.waiting, self.page, self.parse = self.waiting, UnparsedRows(), None, None
        if parse.marks.guessed:
            warn_of_guessed_decimal_mark(self.report, self.block_number)
        for owner, names, texts_ in waiting.spreads:
            self.results.add_metric_over_launches(owner, names, *map(parse, texts_))
