"""How much the pages of a Parquet file unpack to, by their own headers: the sizes in its footer are only a claim.

Arrow makes room for what the header of a page says, and a page that unpacks to anything else is damaged. So the sum
over the headers is the truth, and nothing needs to be unpacked for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from nsw.tables.data import Row, arrow_schema
from nsw.tables.schema import TABLES
from nsw.tables.unpacking_limit import Allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    import pyarrow as pa
    import pyarrow.parquet as pq


_HEADER: Final = 1 << 16  # bytes at first; a page's statistics can make its header longer
_LONGEST_HEADER: Final = 1 << 24
_DEEPEST: Final = 8
_UNPACKED, _PACKED = 2, 3  # fields of a page's header
_INTEGERS: Final = frozenset({4, 5, 6})
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 0, 1, 2, 3, 7, 8, 12


class PageError(ValueError):
    """What is in the place of a page is none."""


def unpacked_sizes(file: BinaryIO, footer: pq.FileMetaData, wanted: Container[str] | None = None) -> Iterator[int]:
    """The size of each page of a Parquet file, unpacked.

    Args:
        file: The file; where it stands is changed.
        footer: What it says of itself.
        wanted: Only of these columns.

    Raises:
        PageError: Where the footer says that pages are is something else.
        OSError: The file cannot be read.
    """
    for group in range(footer.num_row_groups):
        columns = footer.row_group(group)
        for number in range(columns.num_columns):
            column = columns.column(number)
            if column.num_values == 0 or (wanted is not None and column.path_in_schema not in wanted):
                continue  # of no values Arrow reads no page; where they would begin is not said
            at = column.data_page_offset
            if column.has_dictionary_page and 0 < column.dictionary_page_offset < at:
                at = column.dictionary_page_offset
            yield from _pages(file, at, at + column.total_compressed_size)


def _pages(file: BinaryIO, at: int, end: int) -> Iterator[int]:
    while at < end:
        length, unpacked, packed = _header(file, at, end)
        yield unpacked
        at += length + packed


def _header(file: BinaryIO, at: int, end: int) -> tuple[int, int, int]:
    """A page's header: its own length, what the page unpacks to, what it takes in the file."""
    size = _HEADER
    while True:
        if at < 0:
            raise PageError("a page begins before the file")
        file.seek(at)
        data = file.read(min(size, end - at))
        try:
            length, fields = _Compact(data).struct()
        except IndexError:
            if len(data) < size or size >= _LONGEST_HEADER:
                raise PageError("a page's header has no end") from None
            size *= 16
            continue
        unpacked, packed = fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise PageError("a page's header has no size")
        return length, unpacked, packed


class _Compact:
    """Thrift's compact protocol, as far as headers need it. Raises IndexError where the bytes end first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> tuple[int, dict[int, int]]:
        """Its length, and its fields that are integers."""
        return self._fields(0)

    def _fields(self, depth: int) -> tuple[int, dict[int, int]]:
        if depth > _DEEPEST:
            raise PageError("a page's header is nested too deeply")
        found: dict[int, int] = {}
        number = 0
        while (head := self._byte()) & 15 != _STOP:
            number = number + (head >> 4) if head >> 4 else self._integer()
            if (kind := head & 15) in _INTEGERS:
                found[number] = self._integer()
            else:
                self._skip(kind, depth)
        return self._at, found

    def _skip(self, kind: int, depth: int) -> None:
        skip: dict[int, Callable[[], object]] = {
            _TRUE: int, _FALSE: int, _BYTE: self._byte, _DOUBLE: lambda: self._over(8),
            _BINARY: lambda: self._over(self._plain()), _STRUCT: lambda: self._fields(depth + 1),
        }  # fmt: skip
        if kind not in skip:
            raise PageError("a page's header holds what none holds")
        skip[kind]()

    def _over(self, length: int) -> None:
        self._at += length
        if self._at > len(self._data):
            raise IndexError

    def _byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def _plain(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise PageError("a page's header holds a number without end")

    def _integer(self) -> int:
        value = self._plain()
        return (value >> 1) ^ -(value & 1)


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
