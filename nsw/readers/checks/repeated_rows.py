"""Rows that a text holds twice: a copied line doubles its figures.

Profilers print a name once in a table of statistics, and a launch or call once in a trace. A row that repeats another
in every column is a copied line. Where a name has rows that differ, the table is of another kind (operators by a shape
that is not printed, names cut to a width), and nothing is said of it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from nsw.readers.checks.plausible import without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.model import Report
    from nsw.tables.data import Row, TableData

# formats of lines; nsys's reader looks at each printed table itself
_LINES: Final = frozenset({"nvprof-text", "torch-table", "ncu-text", "ncu-csv"})
_STATISTICS: Final = ("gpu_summary", "api_summary", "um_summary", "operators")
_ORIGIN: Final = ("block", "rank", "pid", "device")
_TRACES: Final = ("gpu_trace", "api_trace")
_MOST: Final = 20_000  # rows of statistics, or of a trace that repeats numbers, that are compared
_FIX: Final = "copy or print the report again"


def leave_out_repeated_rows(report: Report) -> None:
    """Leave out rows that a text holds twice, and report them; of facts, which add up to nothing, without a word."""
    if report.format not in _LINES:
        return
    for table in _STATISTICS:
        _leave_out(report, table, (*_ORIGIN, "name"))
    if report.tool == "nvprof":
        _leave_out(report, "metrics", (*_ORIGIN, "kernel", "metric", "invocations"))
        for table in _TRACES:
            _leave_out_of_trace(report, table)
    _leave_out(report, "rules", ("block", "rank", "pid", "launch_id", "kernel", "section", "rule", "message"))
    facts = report.tables.get("facts", [])
    if places := exact_repeats(_rows(facts)):
        report.tables["facts"] = without(facts, frozenset(places))


def exact_repeats(rows: Sequence[Row]) -> list[int]:
    """The places of rows that equal a row before them."""
    seen: set[frozenset[tuple[str, object]]] = set()
    found = []
    for at, row in enumerate(rows):
        key = frozenset((column, value) for column, value in row.items() if value is not None)
        if key in seen:
            found.append(at)
        seen.add(key)
    return found


def repeats(rows: Sequence[Row], keys: Sequence[str]) -> list[int]:
    """The same, where rows with these keys differ in nothing: else the keys are not all that tells rows apart."""
    names = Counter(tuple(row.get(key) for key in keys) for row in rows)
    if len(names) == len(rows):
        return []
    found = exact_repeats(rows)
    return found if len(rows) - len(found) == len(names) else []


def _leave_out(report: Report, table: str, keys: Sequence[str]) -> None:
    data = report.tables.get(table, [])
    if not 2 <= len(data) <= _MOST:
        return
    rows = _rows(data)
    if table == "metrics":  # values of single launches may well be alike
        rows = rows if all(row.get("invocations") is not None for row in rows) else []
    _say(report, table, data, [(at, rows[at]) for at in repeats(rows, keys)])


def _leave_out_of_trace(report: Report, table: str) -> None:
    """Rows whose correlation id another row has, and all else: the ids of launches and calls are their own."""
    import numpy as np

    from nsw.tables.data import coded

    data = report.tables.get(table, [])
    if len(data) < 2:
        return
    words, codes = coded(data, "correlation")
    many = np.bincount(codes, minlength=len(words)) > 1
    many[-1] = False  # those without an id
    places = np.flatnonzero(many[codes]).tolist()
    if not 2 <= len(places) <= _MOST:
        return
    rows = [data[at] for at in places] if isinstance(data, list) else data.take(places).to_pylist()
    _say(report, table, data, [(places[at], rows[at]) for at in exact_repeats(rows)])


def _say(report: Report, table: str, data: TableData, found: Sequence[tuple[int, Row]]) -> None:
    if not found:
        return
    names = [row.get("metric") or row.get("name") or row.get("rule") or row.get("message") or "" for _, row in found]
    report.errors(
        [f"a row of {table} is there twice: the second is left out: {name[:80]}" for name in names],
        f"{len(found)} rows of {table} in all are there twice",
        fix=_FIX,
    )
    report.tables[table] = without(data, frozenset(at for at, _ in found))


def _rows(data: TableData) -> Sequence[Row]:
    if isinstance(data, list):
        return data
    made: list[Row] = data.to_pylist()
    return made
