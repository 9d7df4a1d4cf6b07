"""Columns of a table as arrays, whether its rows are dicts or Arrow's.

A trace has millions of rows: as dicts they would take longer than the text to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from nsw.tables.data import coded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from nsw.tables import TableData

    IntArray: TypeAlias = npt.NDArray[np.int64]
    Chosen: TypeAlias = npt.NDArray[np.bool_]


ABSENT: Final = -1
_INT64_LIMIT: Final = 2.0**63


def whole_numbers(data: TableData, column: str) -> tuple[IntArray, Chosen]:
    """A column's values (`ABSENT` where there are none, fractions cut off), and which rows have one.

    Both have shape (rows,). NaN and infinity are absent, as in all tables, and what no int64 holds.
    """
    if not isinstance(data, list):
        return _of_arrow(data, column)
    cells = [row.get(column) for row in data]
    is_present = [value is not None and abs(value) < _INT64_LIMIT for value in cells]  # of NaN that is false
    values = [value if present else ABSENT for value, present in zip(cells, is_present, strict=True)]
    return np.array(values, np.int64), np.array(is_present, bool)


def words(data: TableData, column: str, chosen: Chosen | None = None) -> tuple[IntArray, list[str]]:
    """A column of texts: which of them each chosen row has, and these texts, in the order of their first rows.

    Where there is no text it is empty.

    Args:
        data: The table.
        column: Its name; a table may lack it.
        chosen: Shape (rows,), the rows that are looked at; None: all.
    """
    texts, codes = coded(data, column)
    return _by_first_row(codes if chosen is None else codes[chosen], [text or "" for text in texts])


def _of_arrow(data: pa.Table, column: str) -> tuple[IntArray, Chosen]:
    import pyarrow.compute as pc

    if column not in data.column_names:
        return np.full(data.num_rows, ABSENT, np.int64), np.zeros(data.num_rows, bool)
    is_present = data[column].is_valid().to_numpy()
    # filled first: numpy has no absent integer, and would make fractions of all
    values = pc.fill_null(data[column], ABSENT).to_numpy()
    if values.dtype.kind == "f":
        is_present = is_present & (np.abs(values) < _INT64_LIMIT)
        values = np.where(is_present, values, ABSENT)
    return values.astype(np.int64, copy=False), is_present


def _by_first_row(codes: IntArray, texts: Sequence[str]) -> tuple[IntArray, list[str]]:
    """The same with each text once, numbered in the order of their first rows."""
    first = np.full(len(texts), len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of several values for one place the last one counts
    text_index: dict[str, int] = {}
    numbers = np.zeros(len(texts), np.int64)
    for code in np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))].tolist():
        numbers[code] = text_index.setdefault(texts[code], len(text_index))
    return numbers[codes], list(text_index)
