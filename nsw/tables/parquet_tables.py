"""The tables of a campaign as they are stored: Parquet, read into rows or an Arrow table.

A file that somebody else made may unpack to any size, so that it is read in a process apart (nsw/apart.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

from nsw.tables.data import Row, arrow_schema
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["StoredTableError", "stored_rows", "stored_table", "unchecked_table", "values"]

_BATCH: Final = 16384  # rows


class StoredTableError(ValueError):
    """A file that holds no table of that name."""


def stored_rows(file: BinaryIO, name: str) -> list[Row]:
    """The rows of table `name`, each with every column of its schema, and those that the file has beside them.

    Args:
        file: The file, opened.
        name: A table of nsw.tables.schema.

    Raises:
        StoredTableError: Its columns are not those of the table.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow.parquet as pq

    blank: Row = dict.fromkeys(TABLES[name].names)
    texts = _check_columns(pq.read_schema(file), name)
    found: list[Row] = []
    # texts as numbers of their dictionary: one that comes a million times is there once
    with pq.ParquetFile(file, read_dictionary=texts) as table:
        for batch in table.iter_batches(_BATCH, use_threads=False):
            columns = [values(column) for column in batch.columns]
            names = batch.schema.names
            found += (blank | dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    return found


def stored_table(file: BinaryIO, name: str) -> pa.Table:
    """The same as an Arrow table with the file's columns; the errors are those of `stored_rows`."""
    table = unchecked_table(file)
    _check_columns(table.schema, name)
    return table


def unchecked_table(file: BinaryIO) -> pa.Table:
    """All that a Parquet file holds, of whatever columns, read by this thread alone.

    A thread of Arrow's that still holds a Python file when Python ends takes the process down with it (SIGABRT).

    Raises:
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    import pyarrow.parquet as pq

    return pq.read_table(file, use_threads=False, pre_buffer=False)


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


def values(column: pa.Array) -> list[Any]:
    """The values of a column, which may be numbers of a dictionary; texts that are alike are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        plain: list[Any] = column.to_pylist()
        return plain
    texts = column.dictionary.to_pylist()
    return [None if at is None else texts[at] for at in column.indices.to_pylist()]
