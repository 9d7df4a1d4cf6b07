"""An nsys SQLite export, opened so that nothing of it can change, and scanned column by column.

Large scans of integers go through the ADBC driver, which builds Arrow batches in C; texts, and everything
when ADBC is missing or refuses, go through the standard sqlite3. Both give the same numbers or the same
fault.
"""

from __future__ import annotations

import sqlite3
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from nsw.readers.nsys.export.source import DURATION, NULL, TEXT, Contradictions, TableFault, with_duration
from nsw.readers.sqlite_files import faults, open_read_only, read_only_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.columns import IntArray

_BATCH = 65536  # rows a batch
_IDS = 500  # ids a query; SQLite takes 999 variables in its oldest builds
_LEAST_ROW = 4  # bytes of the file
_NO_TEXT = b"\0"  # stands for NULL in a text column: a NULL would let the ADBC driver guess the column's type


class SqliteSource:
    """The tables of a database; see `nsw.readers.nsys.export.source.Source`.

    Raises:
        sqlite3.Error: The file is no database or its list of tables is damaged.
    """

    def __init__(self, path: Path, *, use_adbc: bool = True) -> None:
        self.path = path
        self.use_adbc = use_adbc
        self.vocabulary: list[str] = []
        self.contradictions = Contradictions()
        self._codes: dict[bytes, int] = {}
        self._interning = Lock()
        self._connection = open_read_only(path)
        try:
            self._encoding = str(self._connection.execute("PRAGMA encoding").fetchone()[0])
            self.columns = _tables(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def scan(self, table: str, columns: Sequence[str], *, text: str | None = None) -> Iterator[Batch]:
        """Integer columns in batches; see `Source.scan`."""
        timed = ("start", "end") if DURATION in columns else ()
        plain = list(dict.fromkeys([*(c for c in columns if c != DURATION), *timed]))
        select = _select(table, plain, self.columns.get(table, frozenset()), text)
        names = [*plain, *([TEXT] if text else [])]
        if table not in self.columns:
            return
        batches = self._with_adbc if self.use_adbc else self._with_sqlite3
        left = self.path.stat().st_size // _LEAST_ROW
        for batch in batches(table, select, names):
            left -= len(next(iter(batch.values())))
            if left < 0:
                raise TableFault(table, "has more rows than the file has room for")
            if not timed:
                yield batch
            elif len((sound := with_duration(table, batch, self.contradictions))["start"]):
                yield sound

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table; see `Source.rows`."""
        if table not in self.columns:
            return []
        select = _select(table, columns, self.columns[table], None)
        try:
            return self._connection.execute(f"{select} LIMIT ?", (at_most,)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            raise TableFault(table, str(fault)) from fault

    def at(self, table: str, columns: Sequence[str], places: Sequence[int]) -> list[tuple[Any, ...]] | None:
        """Integer columns of some rows; see `Source.at`. Rows that were never deleted are numbered from 1."""
        select = _select(table, columns, self.columns[table], None).replace("SELECT ", "SELECT rowid, ", 1)
        found: dict[int, tuple[Any, ...]] = {}
        try:
            for start in range(0, len(places), _IDS):
                part = [place + 1 for place in places[start : start + _IDS]]
                query = f"{select} WHERE rowid IN ({', '.join('?' * len(part))})"
                found.update((row, values) for row, *values in self._connection.execute(query, part))
        except (sqlite3.Error, UnicodeDecodeError):
            return None  # a table without row numbers, or damage, which the scan will name
        rows = [found.get(place + 1) for place in places]
        known = [row for row in rows if row is not None and all(v is None or isinstance(v, int) for v in row)]
        return known if len(known) == len(rows) else None

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of StringIds; see `Source.strings`."""
        if not {"id", "value"} <= self.columns.get("StringIds", frozenset()):
            return {}
        found: dict[int, str] = {}
        try:
            for start in range(0, len(ids), _IDS):
                part = [int(i) for i in ids[start : start + _IDS]]
                query = f"SELECT id, value FROM StringIds WHERE id IN ({', '.join('?' * len(part))})"  # noqa: S608
                found.update((i, v) for i, v in self._connection.execute(query, part) if isinstance(v, str))
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            raise TableFault("StringIds", str(fault)) from fault
        self.contradictions.nameless.update(set(ids) - found.keys())
        return found

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file's structure."""
        return faults(self._connection)

    def _with_adbc(self, table: str, select: str, names: list[str]) -> Iterator[Batch]:
        import numpy as np
        import pyarrow as pa

        from nsw.readers.nsys.export.adbc import batches, coded, integers

        for batch in batches(read_only_uri(self.path), table, select, rows=_BATCH):
            if batch.num_rows == 0:
                continue
            out: Batch = {}
            for name, column in zip(names, batch.columns, strict=True):
                if name == TEXT:
                    texts, of_row = coded(column)
                    out[name] = np.array(self._intern(texts), np.int64)[of_row]
                elif column.type != pa.int64():
                    raise TableFault(table, f"column {name} contains values that are not integers")
                else:
                    out[name] = integers(column)
            yield out

    def _with_sqlite3(self, table: str, select: str, names: list[str]) -> Iterator[Batch]:
        try:
            cursor = self._connection.execute(select)
            while rows := cursor.fetchmany(_BATCH):
                yield {
                    name: self._coded(values) if name == TEXT else _integers(table, name, values)
                    for name, values in zip(names, zip(*rows, strict=True), strict=True)
                }
        except (sqlite3.Error, UnicodeDecodeError) as fault:
            raise TableFault(table, str(fault)) from fault

    def _coded(self, values: Sequence[Any]) -> IntArray:
        import numpy as np

        distinct = list(dict.fromkeys(values))
        codes = dict(zip(distinct, self._intern(distinct), strict=True))
        return np.fromiter((codes[v] for v in values), np.int64, len(values))

    def _intern(self, texts: Sequence[bytes]) -> list[int]:
        """The code of each text in the vocabulary, which grows by those not met before."""
        out = []
        with self._interning:
            for text in texts:
                if text == _NO_TEXT:
                    out.append(NULL)
                    continue
                if text not in self._codes:
                    self._codes[text] = len(self.vocabulary)
                    self.vocabulary.append(text.decode(self._encoding, errors="replace"))
                out.append(self._codes[text])
        return out


def _tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Columns by table; views and virtual tables are none of nsys's and would run code of the file."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    names = [n for n, sql in found if isinstance(n, str) and str(sql)[:14].upper().startswith("CREATE TABLE")]
    return {
        name: frozenset(str(r[1]) for r in connection.execute(f"PRAGMA table_xinfo({_quoted(name)})") if r[6] == 0)
        for name in names
    }


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _select(table: str, columns: Sequence[str], present: frozenset[str], text: str | None) -> str:
    """A SELECT of these columns by name, NULL for those that the table lacks."""

    def expression(column: str) -> str:
        return _quoted(column) if column in present else "NULL"

    wanted = [expression(c) for c in columns]
    if text:
        # a blob is taken as it is; as text, one byte that is no UTF-8 would spoil a whole batch
        no_text = f"x'{_NO_TEXT.hex()}'"
        wanted.append(f"coalesce(CAST({_quoted(text)} AS BLOB), {no_text})" if text in present else no_text)
    return f"SELECT {', '.join(wanted)} FROM {_quoted(table)}"  # noqa: S608  names are quoted


def _integers(table: str, column: str, values: Sequence[Any]) -> IntArray:
    import numpy as np

    array: np.ndarray[Any, Any] = np.asarray(values)
    if array.dtype == object:  # NULLs, or what is no number
        array = np.asarray([NULL if v is None else v for v in values])
    if array.dtype != np.int64:
        raise TableFault(table, f"column {column} contains values that are not integers")
    return array
