"""Blocks of plain rows of a large details or raw page, taken apart by where their quotes are.

pyarrow.csv is not used: it makes every cell of every row.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsw.readers.ncu.csv_pages import RULE_TITLES, CsvPage
from nsw.readers.ncu.results import RULE_COLUMNS, Names, arrow_with_nan_as_null, section_title, to_arrow_column
from nsw.readers.ncu.values import PrintedValues, ValueParser, name_or_unit_is_number, parse_values

if TYPE_CHECKING:
    from nsw.readers.timeline.statistics import IntArray

__all__ = ["PlainRows", "parse_plain_rows"]


_QUOTE, _COMMA, _NEWLINE, _RETURN, _ESCAPE = b'",\n\r\x1b'
_NUMBER: Final = r"^(?:0|[1-9][0-9]{0,17})$"
_OF_METRICS: Final = ("Metric Name", "Metric Unit", "Metric Value")  # empty in a row of a rule


@dataclass(frozen=True, slots=True)
class PlainRows:
    """The plain rows of a block of lines: their cells are in quotes, and no quote is within a name, value or advice.

    A run is of neighbouring rows that say the same of their launch. Lines and runs are numbered from 0.

    Attributes:
        other_lines: The lines that are no plain rows, ascending, and the number of all lines.
        run_lines: The first line of each run.
        ids: The id of the launch of each run; -1 where it is not written as a number is.
        heads: The other cells of each run that tell of its launch, with their quotes.
        metric_lines: The line of each metric, ascending.
        metric_runs: The run of each metric.
        names: The names of metrics, each once.
        metric_names: The place of each metric's names among these.
        values: The value of each metric.
        rule_lines: The line of each rule, ascending.
        rule_runs: The run of each rule.
        rules: The columns of the rules table that do not tell of the launch.
    """

    other_lines: list[int]
    run_lines: IntArray
    ids: list[int]
    heads: list[str]
    metric_lines: IntArray
    metric_runs: IntArray
    names: list[Names]
    metric_names: IntArray
    values: PrintedValues
    rule_lines: IntArray
    rule_runs: IntArray
    rules: pa.Table


def parse_plain_rows(block: str, page: CsvPage, parse: ValueParser) -> PlainRows:
    """Take whole lines apart, all rows together.

    Args:
        block: The lines, without the end of the last one.
        page: The page that they are of, whose columns are as ncu sorts them (`Page.is_sorted`).
        parse: How its numbers are written.
    """
    block = block.replace("\r\n", "\n").removesuffix("\r") if "\r" in block else block
    lines = _QuotedLines(block)
    start, width, value = page.first_name_position, len(page.header), page.min_fields - 1
    if page.kind == "raw":
        metrics = lines.rows_of_width(start, width, line_end=b'"')
        rules, advice = _rule_columns_of_rows(lines.rows_of_width(0, 0, line_end=b'"'), page, parse)
        names, metric_names = page.names_of_raw_metrics, np.tile(np.arange(width - start), len(metrics.lines))
        metric_lines = np.repeat(metrics.lines, width - start)
        values = lines.texts_of_spans((metrics.quotes.reshape(-1, 2) + np.array((1, 0))).astype(np.int32))
    else:
        metrics = lines.rows_of_width(start, value + 1, line_end=b'",' if width > value + 1 else b'"')
        metrics, names, metric_names = _metric_names_of_rows(metrics, page)
        metric_lines, values = metrics.lines, metrics.cell_texts(value)
        rules, advice = _rule_columns_of_rows(
            lines.rows_of_width(start, width if "Rule Name" in page.column_positions else 0, line_end=b'"'), page, parse
        )

    plain = np.concatenate((metrics.lines, rules.lines))
    order = np.argsort(plain)
    plain = plain[order]
    spans = np.concatenate((metrics.prefix_spans(), rules.prefix_spans()))[order]
    heads = lines.texts_of_spans(spans)
    begins = np.ones(len(plain), dtype=bool)
    if len(plain):
        is_other_launch = pc.not_equal(heads[1:], heads[:-1]).to_numpy(zero_copy_only=False)
        begins[1:] = is_other_launch | (np.diff(plain) > 1)
    runs = np.zeros(lines.count, dtype=np.int64)
    runs[plain] = np.cumsum(begins) - 1
    is_other = np.ones(lines.count, dtype=bool)
    is_other[plain] = False
    spans = spans[begins]
    ends = lines.quotes[lines.first_quotes[plain[begins]] + 1]  # of the ids
    ids = lines.texts_of_spans(np.stack((spans[:, 0] + 1, ends), axis=1))
    is_number = pc.and_(pc.match_substring_regex(ids, _NUMBER), pa.array(lines.bytes[ends + 1] == _COMMA))
    return PlainRows(
        other_lines=[*np.flatnonzero(is_other).tolist(), lines.count],
        run_lines=plain[begins],
        ids=pc.if_else(is_number, ids, "-1").cast(pa.int64()).to_pylist(),
        heads=_arrow_texts_to_list(lines.texts_of_spans(np.stack((ends + 2, spans[:, 1]), axis=1))),
        metric_lines=metric_lines,
        metric_runs=runs[metric_lines],
        names=names,
        metric_names=metric_names,
        values=parse_values(values, parse),
        rule_lines=rules.lines,
        rule_runs=runs[rules.lines],
        rules=advice,
    )


class _QuotedLines:
    """The lines of a block, and where their quotes are."""

    def __init__(self, block: str) -> None:
        self.text = f"{block}\n".encode()
        self.bytes = np.frombuffer(self.text, np.uint8)
        self.ends = np.flatnonzero(self.bytes == _NEWLINE)
        self.begins = np.append(0, self.ends[:-1] + 1)
        self.count = len(self.ends)
        self.quotes = np.flatnonzero(self.bytes == _QUOTE).astype(np.int32)
        self.first_quotes = np.searchsorted(self.quotes, self.begins)
        self.quote_counts = np.diff(self.first_quotes, append=len(self.quotes))
        if b"\r" in self.text or b"\x1b" in self.text:  # drawn over, or coloured
            marks = np.flatnonzero((self.bytes == _RETURN) | (self.bytes == _ESCAPE))
            self.quote_counts[np.searchsorted(self.ends, marks)] = 0

    def rows_of_width(self, start: int, width: int, *, line_end: bytes) -> _CellSpans:
        """The lines that end so, with so many cells, of which those from `start` on have no quote within; 0: none."""
        is_long = self.quote_counts >= (2 * width or sys.maxsize)
        lines = np.flatnonzero(
            is_long & (self.bytes[self.ends - 1] == line_end[-1]) & (self.bytes[self.begins] == _QUOTE)
        )
        size = 2 * max(width - start, 1)
        last = self.first_quotes[lines] + self.quote_counts[lines]
        quotes = self.quotes[(last - size)[:, None] + np.arange(size)]
        closing = quotes[:, 1:-1:2]
        is_plain = (closing + 2 == quotes[:, 2::2]).all(axis=1) & (self.bytes[closing + 1] == _COMMA).all(axis=1)
        is_plain &= (quotes[:, -1] + len(line_end) == self.ends[lines]) & (self.bytes[quotes[:, 0] - 1] == _COMMA)
        return _CellSpans(self, start, lines[is_plain], quotes[is_plain])

    def texts_of_spans(self, spans: IntArray) -> pa.StringArray:
        """The texts from and to these bytes; spans (n, 2) are ascending."""
        # an array of the texts and of what is between them, without a copy
        offsets = np.append(spans.ravel(), spans[-1:, 1]) if len(spans) else np.zeros(1, np.int32)
        each = pa.StringArray.from_buffers(2 * len(spans), pa.py_buffer(offsets), pa.py_buffer(self.text))
        return each.take(pa.array(np.arange(0, 2 * len(spans), 2)))


@dataclass(frozen=True, slots=True)
class _CellSpans:
    """Plain rows of a block: lines (n,), and where the quotes of the cells from `start` on are (n, two a cell)."""

    block: _QuotedLines
    start: int
    lines: IntArray
    quotes: IntArray

    def prefix_spans(self) -> IntArray:
        """Where the cells before `start`, with their quotes, begin and end in each row: (n, 2)."""
        return np.stack((self.block.begins[self.lines], self.quotes[:, 0] - 1), axis=1).astype(np.int32)

    def cell_texts(self, first: int, last: int | None = None) -> pa.StringArray:
        """The text from one cell to another of each row; `","` is between two."""
        first, last = first - self.start, (first if last is None else last) - self.start
        return self.block.texts_of_spans(
            np.stack((self.quotes[:, 2 * first] + 1, self.quotes[:, 2 * last + 1]), axis=1)
        )

    def select_rows(self, mask: np.ndarray[Any, Any]) -> _CellSpans:
        """Those rows that are marked."""
        return self if mask.all() else _CellSpans(self.block, self.start, self.lines[mask], self.quotes[mask])


def _metric_names_of_rows(rows: _CellSpans, page: CsvPage) -> tuple[_CellSpans, list[Names], IntArray]:
    """The rows of metrics, their names, and the place of each row's names; rows without a name are left out."""
    start = page.first_name_position
    each = rows.cell_texts(start, page.min_fields - 2).dictionary_encode()
    names: list[Names] = []
    is_name = []
    for text in _arrow_texts_to_list(each.dictionary):
        section, metric, label, unit = page.metric_names_of_row([""] * start + text.split('","'))
        names.append((section or None, metric, label or None, unit))
        is_name.append(bool(metric) and not name_or_unit_is_number(metric, unit))
    codes = each.indices.to_numpy()
    has_name = np.array(is_name, dtype=bool)[codes]
    return rows.select_rows(has_name), names, codes[has_name]


def _rule_columns_of_rows(rows: _CellSpans, page: CsvPage, parse: ValueParser) -> tuple[_CellSpans, pa.Table]:
    """The rows of rules and the columns of the rules table; rows without a rule, or with a metric, are left out."""
    at = page.column_positions
    if len(rows.lines):
        is_rule = pc.not_equal(pc.utf8_trim_whitespace(rows.cell_texts(at["Rule Name"])), "")
        for title in _OF_METRICS:
            is_rule = pc.and_(is_rule, pc.equal(rows.cell_texts(at[title]), ""))
        rows = rows.select_rows(is_rule.to_numpy(zero_copy_only=False))

    def column_cells(title: str) -> pa.StringArray:
        texts = rows.cell_texts(at[title]) if title in at else pa.repeat("", len(rows.lines))
        return pc.utf8_trim_whitespace(texts)

    columns = {}
    for name, title in zip(RULE_COLUMNS, RULE_TITLES[:-1], strict=True):
        each = column_cells(title)
        if name == "message":  # few repeat
            columns[name] = pc.if_else(pc.equal(each, ""), pa.scalar(None, pa.string()), each)
        else:
            each = each.dictionary_encode()
            convert = section_title if name == "section" else str
            words = [convert(word) or None for word in _arrow_texts_to_list(each.dictionary)]
            columns[name] = to_arrow_column("rules", name, words, each.indices)
    speedups = parse_values(pc.replace_substring_regex(column_cells(RULE_TITLES[-1]), "%$", ""), parse)
    columns |= {
        "speedup_pct": arrow_with_nan_as_null(speedups.numbers),
        "speedup_pct_pm": arrow_with_nan_as_null(speedups.halves),
    }
    return rows, pa.table(columns)


def _arrow_texts_to_list(texts: pa.StringArray) -> list[str]:
    """Python's strings; several times faster than `to_pylist`."""
    words: list[str] = texts.to_numpy(zero_copy_only=False).tolist()
    return words
