"""Scans of a SQLite file through the ADBC driver's C interface.

Its DB-API module is left alone: that one imports pyarrow.dataset and with it pandas, 0.3 s that a scan does
not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.readers.nsys_source import TableFault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa


class AdbcUnavailable(TableFault):
    """The driver is not installed or cannot be loaded; nothing is said of the file."""


def batches(path: Path, table: str, select: str, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows that `select` gives, in Arrow batches of at most `rows`.

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
    from nsw.readers.nsys_connection import read_only_uri

    try:
        with (
            manager.AdbcDatabase(driver=driver._driver_path(), uri=read_only_uri(path)) as database,  # noqa: SLF001
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
