"""Rows with a time of more than ten years are left out: a digit too many, or two clocks taken for one.

No program that a profiler watched ran so long. Starts may: some clocks count from 1970.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.checks.plausible import without
from nsw.readers.model import MOST_SHOWN
from nsw.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from nsw.readers.model import Report
    from nsw.tables.data import Row, TableData

LONGEST_NS: Final = 3653 * 24 * 3600 * 10**9  # ten years
_LONGEST: Final = {"ns": LONGEST_NS, "s": LONGEST_NS // 10**9}  # by unit
_KEPT: Final = frozenset({"launches"})  # whose other figures are in other tables: only the time goes
_SHOWN: Final = MOST_SHOWN + 1  # of which the last stands for all others
_FIX: Final = "copy the report again, or profile again: a time in it is damaged"


def leave_out_impossible_times(report: Report) -> None:
    """Take such rows out of all tables and report them; of launches only their times."""
    for table in TABLES.keys() & report.tables.keys():
        longest = _longest(table)
        data = report.tables[table]
        found = _in_rows(data, longest) if isinstance(data, list) else _in_columns(data, longest)
        if not found:
            continue
        _say(report, table, found)
        if table in _KEPT:
            report.tables[table] = _without_times(data, longest)
        else:
            report.tables[table] = without(data, frozenset(at for at, _ in found))


@cache
def _longest(table: str) -> Mapping[str, int]:
    """The columns of times, and what none is above."""
    columns = TABLES[table].columns
    return {
        c.name: _LONGEST[c.unit]
        for c in columns
        if c.unit in _LONGEST and c.name != "start_ns" and not c.name.endswith("_pm")
    }


def _in_rows(rows: list[Row], longest: Mapping[str, int]) -> list[tuple[int, Row]]:
    wrong: set[int] = set()
    for column, most in longest.items():
        wrong.update(at for at, row in enumerate(rows) if (row.get(column) or 0) > most)
    return [(at, rows[at]) for at in sorted(wrong)]


def _in_columns(data: pa.Table, longest: Mapping[str, int]) -> list[tuple[int, Row]]:
    import numpy as np

    above = [found.to_numpy() for _, found in _above(data, longest)]
    places = np.flatnonzero(np.logical_or.reduce(above)).tolist() if above else []
    shown: list[Row] = data.take(places[:_SHOWN]).to_pylist() if places else []
    return [(at, shown[n] if n < len(shown) else {}) for n, at in enumerate(places)]


def _above(data: pa.Table, longest: Mapping[str, int]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Each column that holds such a time, and which of its rows do."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in longest.keys() & set(data.column_names):
        values, most = data[column], longest[column]
        if (pc.max(values).as_py() or 0) > most:
            # of the column's own type: Arrow compares no integer of so many digits with floats
            bound = pa.scalar(float(most) if pa.types.is_floating(values.type) else most, values.type)
            yield column, pc.fill_null(pc.greater(values, bound), False)


def _without_times(data: TableData, longest: Mapping[str, int]) -> TableData:
    """The table with null in place of such times."""
    if isinstance(data, list):
        return [_row_without_times(row, longest) for row in data]
    import pyarrow as pa
    import pyarrow.compute as pc

    for column, above in list(_above(data, longest)):
        for name in {column, f"{column}_pm"} & set(data.column_names):
            values = pc.if_else(above, pa.scalar(None, data[name].type), data[name])
            data = data.set_column(data.schema.get_field_index(name), name, values)
    return data


def _row_without_times(row: Row, longest: Mapping[str, int]) -> Row:
    wrong = {column for column, most in longest.items() if (row.get(column) or 0) > most}
    return row | {name: None for column in wrong for name in (column, f"{column}_pm")} if wrong else row


def _say(report: Report, table: str, found: list[tuple[int, Row]]) -> None:
    what = "the time of a row" if table in _KEPT else "a row"
    messages = [
        f"{what} of {table} is left out: {_named(table, row)} is more than ten years" for _, row in found[:_SHOWN]
    ]
    report.errors(messages, f"{len(found)} rows of {table} in all hold times of more than ten years", fix=_FIX)


def _named(table: str, row: Row) -> str:
    name: Any = row.get("name") or row.get("kernel") or row.get("phase") or ""
    column, value = next((c, row[c]) for c, most in _longest(table).items() if (row.get(c) or 0) > most)
    return f"{str(name)[:80]}: {column} {value:g}"
