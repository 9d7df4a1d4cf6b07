"""`nsys export --type sqlite` of every version from 2020 on, opened so that nothing of it can change.

Columns are found by name, and tables may be missing: the export leaves out empty ones. Integers are decoded from the
file's pages; texts, and tables that are not plain, go through the ADBC driver, which builds Arrow batches in C. Its
DB-API module is left alone: that one imports pyarrow.dataset and pandas.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nsw.profilers.files_of_one_recording import recording_files_from
from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys.export import source as export
from nsw.readers.nsys.export.sqlite_pages import NotPlainError, plain_batches
from nsw.readers.nsys.export.tables import fill_report
from nsw.readers.nsys.reduce_export import PACKED, PACKED_TABLES, RISING
from nsw.readers.timeline.statistics import IntArray
from nsw.readers.untrusted_files import SQLITE_MAGIC, open_sqlite_read_only, sqlite_read_only_uri

if TYPE_CHECKING:
    import pyarrow as pa


_NSYS_TABLES = frozenset(
    (b"StringIds", b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"ENUM_NSYS_EVENT_TYPE", b"TARGET_INFO_SESSION_START_TIME")
)
_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_AGAIN = "export the report again, or copy the file again"
_CHECKED = 64 << 20  # bytes; larger files are not checked for structure before they are read: 5 s a GB


def sniff(sample: Sample) -> int:
    """Certain of a database with a table that only nsys makes."""
    if not sample.head.startswith(SQLITE_MAGIC):
        return 0
    try:
        connection = open_sqlite_read_only(sample.path)
        connection.text_factory = bytes  # damaged names are no text
        try:
            names = {n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        # too damaged to list its tables: the first page may still name one
        return 60 if any(n in sample.head for n in _NSYS_TABLES) else 10 * (sample.suffix in _SUFFIXES)
    return 100 if names & _NSYS_TABLES else 0


def read(path: Path, options: Options) -> Report:
    """Read an export; see `nsw.readers.nsys.export.tables` for what comes out."""
    report = Report(str(path), tool="nsys", format="nsys-sqlite")
    before = path.stat()
    for ending in ("-journal", "-wal"):
        journal = path.with_name(path.name + ending)
        if journal.exists() and os.path.getsize(journal):  # noqa: PTH202  one call for a file that may vanish
            report.warn(
                f"{journal.name} is beside the file: its writer is still running or was interrupted",
                fix="read it again when no program is writing to it",
            )
    try:
        sources = [SqliteSource(file) for file in recording_files_from(path)]
        for source in sources:
            if source.path.stat().st_size <= _CHECKED and (found := source.check()):
                report.error(f"the database is damaged: {found}", fix=_AGAIN)
        fill_report(report, sources[0] if len(sources) == 1 else export.SplicedSource(sources), options)
    except export.TableFault as fault:
        report.error(f"a table of the export cannot be read: {fault}", fix=_AGAIN)
    except (sqlite3.Error, UnicodeDecodeError) as fault:  # its own messages quote the file's bytes
        report.error(f"the database is damaged: {fault}", fix=_AGAIN)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        report.tables.clear()
        report.error("the file changed while it was read", fix="read it again when no program is writing to it")
    return report


_BATCH = 65536  # rows a batch
_IDS = 500  # ids a query; SQLite takes 999 variables in its oldest builds
_NO_TEXT = b"\0"  # stands for NULL in a text column: a NULL would let the ADBC driver guess the column's type


class SqliteSource:
    """The tables of a database; see `nsw.readers.nsys.export.source.Source`.

    Each query has a connection of its own (0.2 ms): no two threads may use one.

    Raises:
        sqlite3.Error: The file is no database or its list of tables is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.vocabulary = export.Vocabulary()
        self.contradictions = export.Contradictions()
        with closing(open_sqlite_read_only(path)) as connection:
            self._encoding = str(connection.execute("PRAGMA encoding").fetchone()[0])
            self.columns = _columns_by_table(connection)

    def scan(self, table: str, columns: Sequence[str], *, text: str | None = None) -> Iterator[export.Batch]:
        """Yield integer columns in batches of rows, as `Source.scan` does.

        Args:
            table: The table of the export.
            columns: Its integer columns; `DURATION` adds `start`, `end` and their difference (ns).
            text: A text column, whose codes become column `TEXT`; None: no texts.
        """
        timed = ("start", "end") if export.DURATION in columns else ()
        plain = list(dict.fromkeys([*(c for c in columns if c != export.DURATION), *timed]))
        select = _select_statement(table, plain, self.columns.get(table, frozenset()), text)
        names = [*plain, *([export.TEXT] if text else [])]
        if table not in self.columns:
            return
        for batch in self._batches(table, select, names):
            if not timed:
                yield batch
            elif len((sound := export.with_duration(table, batch, self.contradictions))["start"]):
                yield sound

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table, as `Source.rows` gives them.

        Args:
            table: The table of the export.
            columns: The columns, in the order of the values of a row.
            at_most: How many rows are read.

        Raises:
            TableFault: The table is damaged.
        """
        if table not in self.columns:
            return []
        select = _select_statement(table, columns, self.columns[table], None)
        try:
            with closing(open_sqlite_read_only(self.path)) as connection:
                return connection.execute(f"{select} LIMIT ?", (at_most,)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            raise export.TableFault(table, str(fault)) from fault

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """The texts of these ids, as `Source.strings` gives them; ids without text are noted as contradictions.

        Raises:
            TableFault: StringIds is damaged.
        """
        if not {"id", "value"} <= self.columns.get("StringIds", frozenset()):
            return {}
        texts: dict[int, str] = {}
        try:
            with closing(open_sqlite_read_only(self.path)) as connection:
                for start in range(0, len(ids), _IDS):
                    part = [int(i) for i in ids[start : start + _IDS]]
                    query = f"SELECT id, value FROM StringIds WHERE id IN ({', '.join('?' * len(part))})"  # noqa: S608
                    texts.update((i, v) for i, v in connection.execute(query, part) if isinstance(v, str))
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            raise export.TableFault("StringIds", str(fault)) from fault
        self.contradictions.nameless.update(set(ids) - texts.keys())
        return texts

    def check(self) -> str | None:
        """What SQLite finds wrong with the file's structure, at first."""
        try:
            with closing(open_sqlite_read_only(self.path)) as connection:
                (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            return str(fault)
        return None if found == "ok" else str(found).splitlines()[-1]

    def _batches(self, table: str, select: str, names: list[str]) -> Iterator[export.Batch]:
        if table in PACKED_TABLES and self._is_packed(table):
            yield from self._packed_batches(table, names)
            return
        done = 0
        try:
            for plain in plain_batches(self.path, table, names) if export.TEXT not in names else ():
                done += len(plain[names[0]])
                yield plain
            if export.TEXT not in names:
                return
        except NotPlainError:
            select += f" LIMIT -1 OFFSET {done}"
        import pyarrow as pa

        for batch in _arrow_batches(sqlite_read_only_uri(self.path), table, select, rows=_BATCH):
            if batch.num_rows == 0:
                continue
            out: export.Batch = {}
            for name, column in zip(names, batch.columns, strict=True):
                if name == export.TEXT:
                    texts, of_row = _distinct_and_codes(column)
                    out[name] = np.array(self.vocabulary.codes(map(self._decode_text, texts)), np.int64)[of_row]
                elif column.type != pa.int64():
                    raise export.TableFault(table, f"column {name} contains values that are not integers")
                else:
                    out[name] = _integer_array(column)
            yield out

    def _is_packed(self, table: str) -> bool:
        """Whether the export is a reduced one in which the table's rows hold the values of many."""
        with closing(open_sqlite_read_only(self.path)) as connection:
            kind = connection.execute("SELECT type FROM pragma_table_info(?)", (table,)).fetchone()
        return bool(kind == (PACKED,))

    def _packed_batches(self, table: str, names: Sequence[str]) -> Iterator[export.Batch]:
        """The rows of a table as reduce_export.py packs them."""
        select = _select_statement(table, ["start", *names], self.columns[table], None)
        try:
            with closing(open_sqlite_read_only(self.path)) as connection:
                for cells in connection.execute(select):
                    yield _unpack_rows(names, cells)
        except (sqlite3.Error, ValueError, TypeError) as fault:
            raise export.TableFault(table, str(fault)) from fault

    def _decode_text(self, text: bytes) -> str | None:
        return None if text == _NO_TEXT else text.decode(self._encoding, errors="replace")


def _unpack_rows(names: Sequence[str], cells: Sequence[bytes | None]) -> export.Batch:
    """The columns of these names, from the cells of column `start` and of each of them."""
    start, *columns = map(_unpack_column, ("start", *names), cells)
    count = max(map(len, columns))
    batch = {
        name: values if len(values) else np.full(count, export.NULL)
        for name, values in zip(names, columns, strict=True)
    }
    if "end" in batch and len(start):
        batch["end"] = batch["end"] + start
    if not count or {*map(len, batch.values())} != {count}:
        raise ValueError("columns that are not of one length")
    return batch


def _unpack_column(name: str, cell: bytes | None) -> IntArray:
    """A column of a packed row; empty where the table lacks it."""
    if cell is None:
        return np.zeros(0, np.int64)
    by_byte = np.frombuffer(cell, np.uint8, offset=1).reshape(cell[0], -1)
    values = np.ascontiguousarray(by_byte.T).view(f"<i{cell[0]}")[:, 0]
    return np.cumsum(values, dtype=np.int64) if name in RISING else values.astype(np.int64)


def _columns_by_table(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Columns by table; views and virtual tables are none of nsys's and would run code of the file."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    names = [n for n, sql in rows if isinstance(n, str) and str(sql)[:14].upper().startswith("CREATE TABLE")]
    return {
        name: frozenset(str(r[1]) for r in connection.execute(f"PRAGMA table_xinfo({_quote_name(name)})") if r[6] == 0)
        for name in names
    }


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _select_statement(table: str, columns: Sequence[str], present: frozenset[str], text: str | None) -> str:
    """A SELECT of these columns by name, NULL for those that the table lacks."""

    def column_expression(column: str) -> str:
        return _quote_name(column) if column in present else "NULL"

    expressions = [column_expression(c) for c in columns]
    if text:
        # a blob is taken as it is; as text, one byte that is no UTF-8 would spoil a whole batch
        no_text = f"x'{_NO_TEXT.hex()}'"
        expressions.append(f"coalesce(CAST({_quote_name(text)} AS BLOB), {no_text})" if text in present else no_text)
    return f"SELECT {', '.join(expressions)} FROM {_quote_name(table)} NOT INDEXED"  # noqa: S608  names are quoted


_SMALL = 50_000  # rows


def _arrow_batches(uri: str, table: str, select: str, *, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows that `select` gives of the database at `uri`, in Arrow batches of at most `rows`.

    Raises:
        TableFault: The driver refuses the table (damage, or mixed types in a column).
    """
    import adbc_driver_manager as manager
    import adbc_driver_sqlite as driver
    import pyarrow as pa

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
    except pa.ArrowMemoryError:  # not the table's fault
        raise
    except (manager.Error, pa.ArrowException, OSError) as fault:
        raise export.TableFault(table, str(fault)) from fault


def _integer_array(column: pa.Array) -> IntArray:
    """An Arrow column of int64 as numpy, `NULL` where it is null.

    The buffers are read as they are: pyarrow's own `to_numpy` imports pandas, `fill_null` its compute kernels.
    """
    validity, data = column.buffers()
    first, count = column.offset, len(column)
    values = np.frombuffer(data, np.int64, count + first)[first:]
    if column.null_count:
        bits = np.unpackbits(np.frombuffer(validity, np.uint8), count=first + count, bitorder="little")
        values = np.where(bits[first:].view(np.bool_), values, export.NULL)
    return values


def _distinct_and_codes(column: pa.Array) -> tuple[list[bytes], IntArray]:
    """The different values of a binary column without nulls, and for each row the number of its value."""
    if len(column) < _SMALL:  # for these the import of pyarrow's compute kernels takes longer
        numbers: dict[bytes, int] = {}
        rows = [numbers.setdefault(value, len(numbers)) for value in column.to_pylist()]
        return list(numbers), np.array(rows, np.int64)
    dictionary = column.dictionary_encode()
    indices = np.frombuffer(dictionary.indices.buffers()[1], np.int32, len(column))
    return dictionary.dictionary.to_pylist(), indices.astype(np.int64)
