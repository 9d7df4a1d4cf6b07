"""A table from its Parquet file, in bounded memory: the file may be another's, and Parquet packs a million to one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from nsw.tables.data import arrow_schema
from nsw.tables.parquet_pages import PageError, unpacked_sizes
from nsw.tables.schema import TABLES
from nsw.tables.unpacking_limit import Allowance

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    import pyarrow.parquet as pq

    from nsw.tables.data import Row

DEFAULT_MOST: Final = 2 << 30  # bytes of memory that the rows of a table may take
_CELL: Final = 64  # bytes that a value of a row takes in Python, less its text
_BATCH: Final = 16384  # rows


class StoredTableError(ValueError):
    """A file that holds no table of that name."""


def stored_rows(file: BinaryIO, name: str, most: int | None = None) -> list[Row]:
    """The rows of table `name`, each with every column of its schema, and those that the file has beside them.

    Args:
        file: The file, opened.
        name: A table of nsw.tables.schema.
        most: Bytes of memory that they may take; 2 GiB unless said.

    Raises:
        TooMuchError: They would take more.
        StoredTableError: Its columns are not those of the table.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    blank: Row = dict.fromkeys(TABLES[name].names)
    allowance = Allowance(os.fstat(file.fileno()).st_size, most or DEFAULT_MOST)
    found: list[Row] = []
    for batch in _batches(file, name, allowance, cell=_CELL):
        allowance.take(batch.num_rows * max(batch.num_columns, len(blank)) * _CELL)
        columns = [values(column) for column in batch.columns]
        names = batch.schema.names
        found += (blank | dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return found


def stored_table(file: BinaryIO, name: str, most: int | None = None) -> pa.Table:
    """The same as an Arrow table with the file's columns; the errors are those of `stored_rows`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    allowance = Allowance(os.fstat(file.fileno()).st_size, most or DEFAULT_MOST)
    schema, batches = None, []
    for batch in _batches(file, name, allowance):
        for column in batch.columns:
            lengths = pc.binary_length(column.dictionary) if pa.types.is_dictionary(column.type) else None
            allowance.take(column.nbytes if lengths is None else pc.sum(lengths.take(column.indices)).as_py() or 0)
        schema = schema or pa.schema([_plain(field) for field in batch.schema])
        batches.append(batch.cast(schema))
    return pa.Table.from_batches(batches, schema) if schema else arrow_schema(name).empty_table()


def unchecked_table(file: BinaryIO) -> pa.Table:
    """All that a Parquet file holds, of whatever columns, read by this thread alone.

    A thread of Arrow's that still holds a Python file when Python ends takes the process down with it (SIGABRT).

    Raises:
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow.parquet as pq

    return pq.read_table(file, use_threads=False, pre_buffer=False)


def _batches(file: BinaryIO, name: str, allowance: Allowance, *, cell: int = 1) -> Iterator[pa.RecordBatch]:
    """The file's rows, with texts as numbers of their dictionary: one that comes a million times is there once."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as table:
        texts = _check_columns(table.schema_arrow, name)
        honest = Allowance(os.fstat(file.fileno()).st_size, allowance.most)  # a first look, at what its pages unpack to
        honest.take(table.metadata.num_rows * table.metadata.num_columns * cell)
        for size in _page_sizes(file, table.metadata):
            honest.take(size)
    with pq.ParquetFile(file, read_dictionary=texts) as table:
        for batch in table.iter_batches(_BATCH, use_threads=False):
            for column in batch.columns:
                allowance.take(column.nbytes)
            yield batch


def _page_sizes(file: BinaryIO, footer: pq.FileMetaData) -> Iterator[int]:
    try:
        yield from unpacked_sizes(file, footer)
    except PageError as fault:
        raise StoredTableError(str(fault)) from None


def _check_columns(schema: pa.Schema, name: str) -> list[str]:
    """The names of the columns of text.

    Raises:
        StoredTableError: A column is of another type than nsw writes.
    """
    import pyarrow as pa

    expected = arrow_schema(name)
    known = {field.type for field in expected} | {pa.int64(), pa.float64(), pa.string(), pa.bool_()}
    for field in schema:
        at = expected.get_field_index(field.name)
        if field.type not in known or (at >= 0 and field.type != expected.field(at).type):
            raise StoredTableError(f"its column {field.name} holds {field.type}, which nsw never writes there")
    if missing := {"run", "report"} - set(schema.names):
        raise StoredTableError(f"it has no column {min(missing)}")
    return [field.name for field in schema if field.type == pa.string()]


def _plain(field: pa.Field) -> pa.Field:
    import pyarrow as pa

    return field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field


def values(column: pa.Array) -> list[Any]:
    """The values of a column, which may be numbers of a dictionary; texts that are alike are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        plain: list[Any] = column.to_pylist()
        return plain
    texts = column.dictionary.to_pylist()
    return [None if at is None else texts[at] for at in column.indices.to_pylist()]
