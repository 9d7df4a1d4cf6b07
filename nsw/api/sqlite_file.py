"""The tables of campaigns as an SQLite database, which most programs and languages can read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.api.combined import schema_rows
from nsw.errors import NswError

if TYPE_CHECKING:
    from nsw.api.combined import CombinedTables


def write_sqlite(tables: CombinedTables, path: Path) -> dict[str, int]:
    """Write the tables into a new database, which replaces what has that name, completely or not at all.

    Table `columns` has the type, unit and meaning of each column.

    Args:
        tables: The tables.
        path: The file.

    Returns:
        The number of rows of each table.

    Raises:
        NswError: The file cannot be written.
    """
    import pyarrow as pa
    from adbc_driver_sqlite import dbapi

    written = {}
    try:
        with tempfile.TemporaryDirectory(prefix=".nsw-", dir=path.parent) as folder:
            database = Path(folder, "nsw.sqlite")
            with dbapi.connect(str(database)) as connection, connection.cursor() as cursor:
                for name in tables.names:
                    written[name] = cursor.adbc_ingest(name, tables.table(name), mode="create")
                cursor.adbc_ingest("columns", pa.Table.from_pylist(schema_rows(tables)), mode="create")
                connection.commit()
            database.replace(path)
    except (OSError, dbapi.Error) as fault:
        raise NswError(f"{path} cannot be written: {getattr(fault, 'strerror', None) or fault}") from None
    return written
