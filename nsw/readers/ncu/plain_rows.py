"""Blocks of a details page of `ncu --csv` that hold plain rows and nothing else: read together, by Arrow.

A plain row has every field in quotes, and those within a field doubled. Of any other block `plain_rows` gives None: its
lines are read one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nsw.readers.ncu.csv_pages import RULE_TITLES, Page
from nsw.readers.ncu.results import RULE_COLUMNS, none_if_nan, section_title
from nsw.readers.ncu.values import Values, is_misplaced, values_of

if TYPE_CHECKING:
    from nsw.readers.ncu.results import Names
    from nsw.readers.ncu.values import Parser

__all__ = ["PlainRows", "plain_rows"]

_TELLING: Final = ("ID", "Process ID", "Kernel Name", "Grid Size", "Block Size")  # a run of rows has them alike
_OF_METRICS: Final = ("Metric Name", "Metric Unit", "Metric Value")  # empty in a row of a rule


@dataclass(frozen=True, slots=True)
class PlainRows:
    """The rows of a block; a run of rows is of one launch."""

    heads: list[tuple[str, ...]]  # what the first row of each run tells of its launch, in front of all names
    metric_runs: np.ndarray[Any, Any]  # of each metric its run
    names: list[Names]
    metric_names: np.ndarray[Any, Any]  # of each metric which of these
    values: Values
    rule_runs: np.ndarray[Any, Any]
    rules: dict[str, list[Any]]  # columns of the rules table


def plain_rows(block: str, page: Page, parse: Parser) -> PlainRows | None:
    """The rows of some whole lines; None where one of them is not plain."""
    block = block.replace("\r\n", "\n").removesuffix("\r") if "\r" in block else block
    if page.kind != "details" or "\r" in block or "\x1b" in block:
        return None
    cells = _Cells(block, page)
    if not cells.are_plain:
        return None
    value, width = page.names_at[1], len(page.header)
    metrics = cells.rows(value + 1, '",' if width > value + 1 else '"')
    rules = cells.rows(width, '"') if width > value + 1 and "Rule Name" in page.at else metrics[:0]
    if len(metrics) + len(rules) < len(cells.lines) or not len(metrics):
        return None
    starts, runs = cells.runs()
    metric_names = _names(cells, metrics)
    advice = _rules(cells, rules, parse)
    if metric_names is None or advice is None:
        return None
    printed = pc.utf8_slice_codeunits(cells.column(metrics, value), 0, -2 if width > value + 1 else -1)
    return PlainRows(
        cells.heads(starts), runs[metrics], *metric_names, values_of(printed, parse), runs[rules], advice
    )  # fmt: skip


class _Cells:
    """The lines of a block, each cut at all `","`."""

    def __init__(self, block: str, page: Page) -> None:
        self.page = page
        text = pa.array([block])
        quotes = np.count_nonzero(np.frombuffer(text.buffers()[2], np.uint8) == ord('"'))
        self.lines = pc.split_pattern(text, "\n").flatten()
        cells = pc.split_pattern(self.lines, '","')
        self.offsets, self.cells = cells.offsets.to_numpy(), cells.flatten()
        self.counts = np.diff(self.offsets)
        starts_quoted = pc.all(pc.starts_with(self.lines, '"')).as_py()
        self.are_plain = starts_quoted and page.names_at[0] > 0 and (quotes == 2 * len(self.cells) or self._unquote())

    def _unquote(self) -> bool:
        """Make one of two quotes within cells; whether all are doubled, but the first and the last of each line."""
        quotes = pc.count_substring(self.cells, '"').to_numpy()
        pairs = pc.count_substring(self.cells, '""').to_numpy()
        single = quotes - 2 * pairs
        ends = np.zeros(len(single), dtype=single.dtype)
        ends[self.offsets[:-1]] += 1
        ends[self.offsets[1:] - 1] += 1
        self.cells = pc.replace_substring(self.cells, '""', '"')
        return bool((single == ends).all())

    def rows(self, width: int, end: str) -> np.ndarray[Any, Any]:
        """The lines that have so many cells and end so."""
        ended = pc.ends_with(self.lines, end).to_numpy(zero_copy_only=False)
        return np.flatnonzero(ended & (self.counts == width))

    def column(self, rows: np.ndarray[Any, Any], position: int) -> pa.StringArray:
        """One cell of each of these lines."""
        return self.cells.take(pa.array(self.offsets[rows] + position))

    def coded(self, rows: np.ndarray[Any, Any], position: int) -> tuple[np.ndarray[Any, Any], list[str]]:
        """The same as codes, and what they stand for."""
        each = self.column(rows, position).dictionary_encode()
        return each.indices.to_numpy(), each.dictionary.to_pylist()

    def runs(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Where runs of rows of one launch begin, and of each line its run."""
        every, at = np.arange(len(self.lines)), self.page.at
        changed = np.zeros(len(every), dtype=bool)
        changed[0] = True
        for title in _TELLING:
            if title in at:
                cells = self.column(every, at[title])
                changed[1:] |= pc.not_equal(cells[1:], cells[:-1]).to_numpy(zero_copy_only=False)
        return np.flatnonzero(changed), np.cumsum(changed) - 1

    def heads(self, rows: np.ndarray[Any, Any]) -> list[tuple[str, ...]]:
        """The cells of these lines in front of all names."""
        columns = []
        for position in range(self.page.names_at[0]):
            codes, words = self.coded(rows, position)
            words = words if position else [word.removeprefix('"') for word in words]
            columns.append([words[code] for code in codes.tolist()])
        return list(zip(*columns, strict=True))


def _names(cells: _Cells, metrics: np.ndarray[Any, Any]) -> tuple[list[Names], np.ndarray[Any, Any]] | None:
    """Section, metric, label and unit of rows, as their codes; None where one has no name, or a number as it."""
    start, value = cells.page.names_at
    columns = [cells.coded(metrics, position) for position in range(start, value)]
    shape = [len(words) for _, words in columns]
    combined = pa.array(np.ravel_multi_index([codes for codes, _ in columns], shape)).dictionary_encode()
    names: list[Names] = []
    for at in zip(*np.unravel_index(combined.dictionary.to_numpy(), shape), strict=True):
        row = [""] * start + [words[i] for (_, words), i in zip(columns, at, strict=True)]
        section, metric, label, unit = cells.page.metric_names(row)
        if not metric or is_misplaced(metric, unit):
            return None
        names.append((section or None, metric, label or None, unit))
    return names, combined.indices.to_numpy()


def _rules(cells: _Cells, rules: np.ndarray[Any, Any], parse: Parser) -> dict[str, list[Any]] | None:
    """The columns of the rules table of rows; None where one has no rule, or something of a metric."""
    at = cells.page.at
    if any(pc.max(pc.binary_length(cells.column(rules, at[title]))).as_py() for title in _OF_METRICS):
        return None
    columns: dict[str, list[Any]] = {}
    for name, title in zip(RULE_COLUMNS, RULE_TITLES, strict=False):
        codes, words = cells.coded(rules, at[title]) if title in at else (np.zeros(len(rules), int), [""])
        texts = [word.removesuffix('"').strip() or None for word in words]
        columns[name] = [texts[code] for code in codes.tolist()]
    gains = (
        cells.column(rules, at[RULE_TITLES[-1]]) if RULE_TITLES[-1] in at else pa.array([""] * len(rules), pa.string())
    )
    speedups = values_of(pc.replace_substring_regex(gains, '%?"?$', ""), parse)
    columns["section"] = [section and section_title(section) for section in columns["section"]]
    columns["speedup_pct"] = list(map(none_if_nan, speedups.numbers.tolist()))
    columns["speedup_pct_pm"] = list(map(none_if_nan, speedups.halves.tolist()))
    return None if None in columns["rule"] else columns
