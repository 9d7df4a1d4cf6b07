"""Scans of a SQLite file through the ADBC driver's C interface.

Its DB-API module is left alone: that one imports pyarrow.dataset and with it pandas, 0.3 s that a scan does
not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.readers.nsys.export.source import NULL, TableFault

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from nsw.readers.timeline.columns import IntArray


_SMALL = 50_000  # rows


class AdbcUnavailable(TableFault):
    """The driver is not installed or cannot be loaded; nothing is said of the file."""


def batches(uri: str, table: str, select: str, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows that `select` gives of the database at `uri`, in Arrow batches of at most `rows`.

    Raises:
        AdbcUnavailable: There is no driver.
        TableFault: The driver refuses the table (damage, or mixed types in a column).
    """
    try:
        import adbc_driver_manager as manager
        import adbc_driver_sqlite as driver
        import pyarrow as pa
    except ImportError as fault:
        raise AdbcUnavailable(table, str(fault)) from fault

    try:
        with (
            manager.AdbcDatabase(driver=driver._driver_path(), uri=uri) as database,  # noqa: SLF001
            manager.AdbcConnection(database) as connection,
            manager.AdbcStatement(connection) as statement,
        ):
            statement.set_options(**{driver.StatementOptions.BATCH_ROWS.value: str(rows)})
            statement.set_sql_query(select)
            stream, _ = statement.execute_query()
            with pa.RecordBatchReader._import_from_c(stream.address) as reader:  # noqa: SLF001
                yield from reader
    except (manager.Error, pa.ArrowException, OSError) as fault:
        raise TableFault(table, str(fault)) from fault


def integers(column: pa.Array) -> IntArray:
    """An Arrow column of int64 as numpy, `NULL` where it is null.

    The buffers are read as they are: pyarrow's own `to_numpy` imports pandas, `fill_null` its compute kernels.
    """
    import numpy as np

    validity, data = column.buffers()
    first, count = column.offset, len(column)
    values = np.frombuffer(data, np.int64, count + first)[first:]
    if column.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=first + count, bitorder="little")
        values = np.where(bits[first:].view(np.bool_), values, NULL)
    return values


def coded(column: pa.Array) -> tuple[list[bytes], IntArray]:
    """The different values of a binary column without nulls, and for each row the number of its value."""
    import numpy as np

    if len(column) < _SMALL:  # for these the import of pyarrow's compute kernels takes longer
        numbers: dict[bytes, int] = {}
        rows = [numbers.setdefault(value, len(numbers)) for value in column.to_pylist()]
        return list(numbers), np.array(rows, np.int64)
    dictionary = column.dictionary_encode()
    indices = np.frombuffer(dictionary.indices.buffers()[1], np.int32, len(column))
    return dictionary.dictionary.to_pylist(), indices.astype(np.int64)
