"""The tables of a campaign as they are stored: Parquet, read into rows or an Arrow table.

A file that somebody else made may unpack to any size, so that it is read in a process apart (nsw/apart.py).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from nsw.tables.columns import Columns
from nsw.tables.schema import TABLES
from nsw.wording import escape_surrogates

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Numbers: TypeAlias = "np.ndarray[Any, Any]"

Row: TypeAlias = dict[str, Any]
TableData: TypeAlias = "list[Row] | pa.Table"

_BATCH: Final = 16384  # rows
_MANY: Final = 10_000  # rows of a table
_MANY_OF_A_RUN: Final = 10  # on average: to look for the rows of a run takes as long as to make so many


class StoredTableError(ValueError):
    """A file that holds no table of that name."""


def read_stored_rows(file: BinaryIO, table_name: str) -> list[Row]:
    """The rows of table `table_name`, each with every column of its schema, and those that the file has beside them.

    Args:
        file: The file, opened.
        table_name: A table of nsw.tables.schema.

    Raises:
        StoredTableError: Its columns are not those of the table.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow.parquet as pq

    texts = _text_columns_of_valid_schema(pq.read_schema(file), table_name)
    rows: list[Row] = []
    # texts as numbers of their dictionary: one that comes a million times is there once
    with pq.ParquetFile(file, read_dictionary=texts) as table:
        for batch in table.iter_batches(_BATCH, use_threads=False):
            rows += _rows_of_batch(batch, table_name)
    return rows


class RowsByRun(Mapping[Any, list[Row]]):
    """The rows of each run of a table."""

    def __init__(self, table: pa.Table, name: str) -> None:
        """Sort a table by run.

        Args:
            table: All that its file holds.
            name: Of the table.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.unify_dictionaries().combine_chunks()
        codes = table["run"].combine_chunks().indices
        # by Arrow alone: to hand it a number, or numpy its arrays, loads pandas, which takes 0.3 s
        spans = pc.run_end_encode(codes)
        if len(spans.values) > len(pc.unique(codes)):  # a run comes again after others
            order = pc.array_sort_indices(codes)
            table, spans = table.take(order), pc.run_end_encode(codes.take(order))
        self._table, self._name = table, name
        columns = zip(table.schema.names, table.columns, strict=True)
        coded_ones = {name: column for name, column in columns if pa.types.is_dictionary(column.type)}
        # made once: those of all runs are the same objects
        self._texts = {name: column.chunk(0).dictionary.to_pylist() for name, column in coded_ones.items()}
        runs = [None if code is None else self._texts["run"][code] for code in spans.values.to_pylist()]
        self._ranges = dict(zip(runs, pairwise([0, *spans.run_ends.to_pylist()]), strict=True))

    def __getitem__(self, run: Any) -> list[Row]:
        """The rows of a run, in the order of the file."""
        return self._made_rows(self._rows_of_run(run))

    def columns(self, run: Any) -> Columns:
        """The same as columns, of which those that are not looked at are not made."""
        rows = self._rows_of_run(run)
        names = rows.schema.names

        def column(name: str) -> list[Any]:
            if name not in names:
                return [None] * len(rows)
            return [*chain.from_iterable(column_values(part, self._texts.get(name)) for part in rows[name].chunks)]

        return Columns(len(rows), column)

    def rows_at(self, run: Any, positions: Sequence[int]) -> list[Row]:
        """The rows of a run at these positions among them."""
        import pyarrow as pa

        indices = pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(array("q", positions))])
        return self._made_rows(self._rows_of_run(run).take(indices))

    def _rows_of_run(self, run: Any) -> pa.Table:
        start, end = self._ranges[run]
        return self._table.slice(start, end - start)

    def _made_rows(self, table: pa.Table) -> list[Row]:
        return [row for batch in table.to_batches() for row in _rows_of_batch(batch, self._name, self._texts)]

    def __contains__(self, run: object) -> bool:
        """Whether a run has rows, without making them."""
        return run in self._ranges

    def __iter__(self) -> Iterator[Any]:
        """The runs, in the order in which they first come."""
        return iter(self._ranges)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self._ranges)


def _rows_of_batch(
    batch: pa.RecordBatch, table_name: str, texts_by_column: Mapping[str, list[Any]] = MappingProxyType({})
) -> Iterator[Row]:
    """The rows of a batch; `texts_by_column` are those of the columns whose dictionaries are lists already."""
    names = batch.schema.names
    absent = dict.fromkeys((*TABLES[table_name].column_names, *names))
    columns = [
        column_values(column, texts_by_column.get(title)) for title, column in zip(names, batch.columns, strict=True)
    ]
    if [*absent] == names:
        yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        return
    for row in zip(*columns, strict=True):
        complete_row = absent.copy()
        complete_row.update(zip(names, row, strict=True))
        yield complete_row


class StoredRows(Sequence[Row]):
    """The rows of a table, run by run, made when they are looked at: those of all may be millions.

    `by_run` has the rows of each run.
    """

    def __init__(self, table: pa.Table, name: str) -> None:
        """Take all that the file of table `name` holds."""
        self.by_run = RowsByRun(table, name)
        self._rows: int = table.num_rows

    def __iter__(self) -> Iterator[Row]:
        """All rows."""
        return chain.from_iterable(self.by_run[run] for run in self.by_run)

    def __getitem__(self, at: Any) -> Any:
        """A row, or some."""
        if isinstance(at, slice):
            return list(self)[at]
        return next(islice(self, at if at >= 0 else self._rows + at, None))

    def __len__(self) -> int:
        """How many rows there are."""
        return self._rows


def read_rows_lazily(file: BinaryIO, table_name: str) -> Sequence[Row]:
    """The same as `read_stored_rows`; of a large table they are made when they are looked at."""
    import pyarrow.parquet as pq

    texts = _text_columns_of_valid_schema(pq.read_schema(file), table_name)
    with pq.ParquetFile(file, read_dictionary=texts) as stored:
        if stored.metadata.num_rows >= _MANY:
            columns = dict.fromkeys(["run", *_columns_with_values(stored.metadata)])
            rows = StoredRows(stored.read(list(columns), use_threads=False), table_name)
            if len(rows) >= _MANY_OF_A_RUN * len(rows.by_run):
                return rows
        return read_stored_rows(file, table_name)


def _columns_with_values(file: Any) -> Iterator[str]:
    """The names of the columns that hold a value somewhere, or of which the file does not tell."""
    for at in range(file.num_columns):
        parts = [file.row_group(group).column(at) for group in range(file.num_row_groups)]
        if any(part.statistics is None or part.statistics.null_count != part.num_values for part in parts):
            yield file.schema.column(at).name


def read_stored_table(file: BinaryIO, table_name: str) -> pa.Table:
    """The same as an Arrow table with the file's columns; the errors are those of `read_stored_rows`."""
    table = read_table_unchecked(file)
    _text_columns_of_valid_schema(table.schema, table_name)
    return table


def read_table_unchecked(file: BinaryIO) -> pa.Table:
    """All that a Parquet file holds, of whatever columns, read by this thread alone.

    A thread of Arrow's that still holds a Python file when Python ends takes the process down with it (SIGABRT), and
    Arrow reads Python files in threads of its own, also where it is told not to.

    Raises:
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(file.read())).read(use_threads=False)


def _text_columns_of_valid_schema(schema: pa.Schema, table_name: str) -> list[str]:
    """The names of the columns of text.

    Raises:
        StoredTableError: A column is of another type than nsw writes.
    """
    import pyarrow as pa

    expected = arrow_schema(table_name)
    allowed_types = {field.type for field in expected} | {pa.int64(), pa.float64(), pa.string(), pa.bool_()}
    for field in schema:
        at = expected.get_field_index(field.name)
        if field.type not in allowed_types or (at >= 0 and field.type != expected.field(at).type):
            raise StoredTableError(f"its column {field.name} holds {field.type}, which nsw never writes there")
    if missing := {"run", "report"} - set(schema.names):
        raise StoredTableError(f"it has no column {min(missing)}")
    return [field.name for field in schema if field.type == pa.string()]


def column_values(column: pa.Array, dictionary_texts: list[Any] | None = None) -> list[Any]:
    """The values of a column, or of numbers of the dictionary `dictionary_texts`; equal ones are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        plain: list[Any] = column.to_pylist()
        return plain
    dictionary_texts = column.dictionary.to_pylist() if dictionary_texts is None else dictionary_texts
    if not column.null_count:
        return [*map(dictionary_texts.__getitem__, column.indices.to_pylist())]
    return [None if at is None else dictionary_texts[at] for at in column.indices.to_pylist()]


_ROWS_AT_A_TIME = 65536  # rows of an Arrow table turned into Python objects at a time


def full_rows(table_name: str, data: TableData, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """Every row, in which absent and NaN are None.

    Args:
        table_name: The table that they are of.
        data: Its rows.
        columns: Those that a row has; None: all, in the schema's order.
    """
    columns = columns or TABLES[table_name].column_names
    if isinstance(data, list):
        for row in data:
            yield {c: _storable_value(row.get(c)) for c in columns}
        return
    present = [c for c in columns if c in data.column_names]
    blank = dict.fromkeys(columns)
    for batch in data.select(present).to_batches(max_chunksize=_ROWS_AT_A_TIME):
        lists = [column.to_pylist() for column in batch.columns]
        for values in zip(*lists, strict=True):
            yield blank | {c: _storable_value(v) for c, v in zip(present, values, strict=True)}


def row_count(data: TableData) -> int:
    """How many rows."""
    return len(data) if isinstance(data, list) else int(data.num_rows)


def to_arrow(table_name: str, data: TableData) -> pa.Table:
    """The rows as an Arrow table with exactly the schema's columns and types.

    Raises:
        KeyError: A row has a column that the schema lacks; that is a reader's fault.
    """
    import pyarrow as pa

    schema = arrow_schema(table_name)
    if isinstance(data, list):
        columns = set(TABLES[table_name].column_names)
        for row in data:
            if not row.keys() <= columns:
                raise KeyError(f"{table_name} has no column {sorted(row.keys() - columns)}")
        cleaned = [{k: _storable_value(v) for k, v in row.items()} for row in data]
        return pa.Table.from_pylist(cleaned, schema=schema)
    missing = [f for f in schema if f.name not in data.column_names]
    for f in missing:
        data = data.append_column(f, pa.nulls(data.num_rows, f.type))
    return data.select(schema.names).cast(schema)


@cache
def arrow_schema(table_name: str) -> pa.Schema:
    """The Arrow schema of a table; unit and meaning are in each field's metadata."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
    return pa.schema(
        [
            pa.field(c.name, types[c.type], metadata={"unit": c.unit or "", "meaning": c.meaning})
            for c in TABLES[table_name].columns
        ]
    )


def _storable_value(value: Any) -> Any:
    """NaN and infinity are no numbers that a report could have measured; names may be no UTF-8."""
    if isinstance(value, str):
        return escape_surrogates(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def distinct_values_and_codes(data: TableData, column: str) -> tuple[list[Any], Numbers]:
    """The different values of a column, None as the last of them, and the place of each row's among them."""
    import numpy as np

    if isinstance(data, list):
        positions: dict[Any, int] = {}
        codes = [positions.setdefault(row.get(column), len(positions)) for row in data]
        words = list(positions)
        if None not in positions:
            return [*words, None], np.array(codes, dtype=np.int64)
        last = np.array([i - (i > positions[None]) if w is not None else len(words) - 1 for i, w in enumerate(words)])
        return [*(w for w in words if w is not None), None], last[np.array(codes, dtype=np.int64)]
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return [None], np.zeros(data.num_rows, dtype=np.int64)
    column_data = data[column]
    if not pa.types.is_dictionary(column_data.type):
        column_data = pc.dictionary_encode(column_data)
    column_data = column_data.unify_dictionaries()
    words = column_data.chunk(0).dictionary.to_pylist() if column_data.num_chunks else []
    indices = [pc.fill_null(chunk.indices, len(words)).to_numpy(zero_copy_only=False) for chunk in column_data.chunks]
    return [*words, None], np.concatenate(indices).astype(np.int64) if indices else np.zeros(0, dtype=np.int64)


def column_as_floats(data: TableData, column: str) -> Numbers:
    """A column as floats, NaN where it is null or missing."""
    import numpy as np

    if isinstance(data, list):
        return np.array([np.nan if (v := row.get(column)) is None else v for row in data], dtype=float)
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return np.full(data.num_rows, np.nan)
    return np.asarray(pc.fill_null(pc.cast(data[column], pa.float64()), np.nan).to_numpy())
