"""`nsys export --type parquetdir` and `arrowdir`: a folder with one Parquet or Arrow file a table.

How much an Arrow stream unpacks to is read before each packed buffer: pyarrow tells it only of batches that it has
unpacked. The places are those of Arrow's Message.fbs: the header of a message is a record batch, or a dictionary that
holds one; a batch has a length, nodes, buffers and how they are packed.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys.export.source import DURATION, NULL, TEXT, Contradictions, TableFault, with_duration
from nsw.readers.nsys.export.tables import fill
from nsw.tables.parquet_tables import PageError, values
from nsw.tables.parquet_tables import unpacked_sizes as page_sizes
from nsw.tables.unpacking_limit import Allowance, TooMuchError, hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.columns import IntArray

_TABLES = ("StringIds", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME")
_ENDINGS = (".parquet", ".arrow")
_BATCH = 65536  # rows
_NUMBER = 8  # bytes


def sniff(sample: Sample) -> int:
    """Certain of a folder with the files of at least two tables that only nsys makes."""
    known = max((sum(f"{t}{e}" in sample.entries for t in _TABLES) for e in _ENDINGS), default=0)
    return 100 if sample.is_folder and known >= 2 else 0


def read(path: Path, options: Options) -> Report:
    """Read the folder; see `nsw.readers.nsys.export.tables` for what comes out."""
    report = Report(str(path), tool="nsys", format="nsys-parquet")
    source = ParquetSource(path, options.max_unpacked)
    for table, fault in source.damaged.items():
        report.error(
            f"{source.file_name(table)} cannot be read: {fault}", fix="export the report again, or copy it again"
        )
    fill(report, source, options)
    return report


class ParquetSource:
    """The tables of a folder; see `nsw.readers.nsys.export.source.Source`."""

    def __init__(self, folder: Path, max_unpacked: int | None = None) -> None:
        self._max_unpacked = max_unpacked
        self.vocabulary: list[str] = []
        self.columns: dict[str, frozenset[str]] = {}
        self.damaged: dict[str, str] = {}
        self.contradictions = Contradictions()
        self._codes: dict[str, int] = {}
        self._files = {p.stem: p for p in sorted(folder.iterdir()) if p.suffix in _ENDINGS and p.is_file()}
        for table, file in self._files.items():
            try:
                self.columns[table] = frozenset(_column_names(file))
            except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
                self.damaged[table] = str(fault).splitlines()[0]

    def file_name(self, table: str) -> str:
        """The name of a table's file."""
        return self._files[table].name

    def scan(self, table: str, columns: Sequence[str], *, text: str | None = None) -> Iterator[Batch]:
        """Integer columns in batches; see `Source.scan`."""
        parts = ["start", "end"] if DURATION in columns else []
        wanted = dict.fromkeys([*(c for c in columns if c != DURATION), *parts, *([text] if text else [])])
        for raw in self._batches(table, list(wanted)):
            batch = {name: self._column(table, raw, name) for name in wanted if name != text}
            if text:
                batch[TEXT] = self._coded(raw, text)
            if DURATION in columns:
                batch = with_duration(table, batch, self.contradictions)
            if batch and len(next(iter(batch.values()))):
                yield batch

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table; see `Source.rows`."""
        out: list[tuple[Any, ...]] = []
        for batch in self._batches(table, list(columns)):
            names = batch.schema.names
            some = batch.slice(0, at_most - len(out))
            lists = [values(some.column(c)) if c in names else [None] * some.num_rows for c in columns]
            out += zip(*lists, strict=True)
            if len(out) >= at_most:
                break
        return out

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of StringIds; see `Source.strings`."""
        wanted = set(ids)
        found: dict[int, str] = {}
        for batch in self._batches("StringIds", ["id", "value"]) if wanted else ():
            pairs = zip(batch.column("id").to_pylist(), values(batch.column("value")), strict=True)
            found.update((i, v) for i, v in pairs if i in wanted and isinstance(v, str))
        self.contradictions.nameless.update(wanted - found.keys())
        return found

    def _batches(self, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        present = [c for c in columns if c in self.columns.get(table, frozenset())]
        if not present:
            return
        file = self._files[table]
        try:
            yield from _batches(file, present, Allowance(file.stat().st_size, self._max_unpacked))
        except TooMuchError as fault:
            raise TableFault(table, f"holds {fault}", fix=hint("nsw read")) from fault
        except (pa.ArrowException, OSError, UnicodeDecodeError, NoArrowError, PageError) as fault:
            raise TableFault(table, str(fault)) from fault

    def _column(self, table: str, batch: pa.RecordBatch, name: str) -> IntArray:
        if name not in batch.schema.names:
            return np.full(batch.num_rows, NULL, np.int64)
        column = batch.column(name)
        if not pa.types.is_integer(column.type):
            raise TableFault(table, f"column {name} contains values that are not integers")
        # ids are unsigned here and may use the highest bit, as they do in a database's signed integers
        values: IntArray = np.asarray(column.fill_null(0)).astype(np.int64)
        if column.null_count:
            values[column.is_null().to_numpy(zero_copy_only=False)] = NULL
        return values

    def _coded(self, batch: pa.RecordBatch, name: str) -> IntArray:
        if name not in batch.schema.names:
            return np.full(batch.num_rows, NULL, np.int64)
        coded = batch.column(name).dictionary_encode()
        codes = [NULL]
        for text in coded.dictionary.to_pylist():
            if text not in self._codes:
                self._codes[text] = len(self.vocabulary)
                self.vocabulary.append(text)
            codes.append(self._codes[text])
        indices = np.asarray(coded.indices.fill_null(-1))
        numbers: IntArray = np.array(codes, np.int64)[indices + 1]
        return numbers


def _column_names(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        return list(pq.read_schema(file).names)
    with pa.OSFile(str(file)) as raw, pa.ipc.open_stream(raw) as stream:
        return list(stream.schema.names)


def _batches(file: Path, columns: list[str], allowance: Allowance) -> Iterator[pa.RecordBatch]:
    for batch in (_of_parquet if file.suffix == ".parquet" else _of_arrow)(file, columns, allowance):
        allowance.take(batch.num_rows * len(columns) * _NUMBER)
        for column in batch.columns:
            allowance.take(column.nbytes)
        yield batch


def _of_parquet(file: Path, columns: list[str], allowance: Allowance) -> Iterator[pa.RecordBatch]:
    """The rows, with texts as numbers of their dictionary: a file can hold one long text a million times."""
    honest = Allowance(file.stat().st_size, allowance.most)  # a first look, at what its pages unpack to
    with file.open("rb") as raw, pq.ParquetFile(raw) as table:
        texts = [field.name for field in table.schema_arrow if field.name in columns and field.type == pa.string()]
        honest.take(table.metadata.num_rows * len(columns) * _NUMBER)
        for size in page_sizes(raw, table.metadata, columns):
            honest.take(size)
    with pq.ParquetFile(file, read_dictionary=texts) as table:
        yield from table.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False)


def _of_arrow(file: Path, columns: list[str], allowance: Allowance) -> Iterator[pa.RecordBatch]:
    honest = Allowance(file.stat().st_size, allowance.most)
    for size in unpacked_sizes(file):
        honest.take(size)
    with pa.OSFile(str(file)) as raw, pa.ipc.open_stream(raw) as stream:
        for batch in stream:
            chosen = batch.select(columns)
            chosen.validate(full=True)  # places that are not in the file: Arrow would read them all the same
            yield chosen


_DICTIONARY: Final = 2  # the type of a message's header
_HEADER_TYPE, _HEADER = 1, 2  # fields of a message
_DATA: Final = 1  # field of a dictionary
_BUFFERS, _PACKED = 2, 3  # fields of a record batch
_BUFFER: Final = struct.Struct("<qq")
_AS_IT_IS: Final = -1


class NoArrowError(ValueError):
    """The bytes are no message of Arrow's."""


def unpacked_sizes(path: Path) -> Iterator[int]:
    """The bytes that each batch of a stream unpacks to.

    Raises:
        NoArrowError: A message is none.
        pyarrow.ArrowException, OSError: The file is damaged.
    """
    with pa.memory_map(str(path)) as raw:
        while raw.tell() < raw.size():
            try:
                message = pa.ipc.read_message(raw)
            except EOFError:  # the mark at the end of a stream
                return
            if message.type in {"record batch", "dictionary"} and message.body is not None:
                yield _unpacked(memoryview(message.metadata), memoryview(message.body))


def _unpacked(head: memoryview, body: memoryview) -> int:
    try:
        message = _Table(head, _word(head, "<I", 0))
        batch = message.table(_HEADER)
        if batch is not None and message.byte(_HEADER_TYPE) == _DICTIONARY:
            batch = batch.table(_DATA)
        if batch is None or batch.at(_PACKED) is None:
            return len(body)
        return sum(_size(body, start, length) for start, length in batch.buffers(_BUFFERS))
    except struct.error as fault:
        raise NoArrowError(f"a message of the stream is damaged: {fault}") from None


def _size(body: memoryview, start: int, length: int) -> int:
    if length <= 0:
        return 0
    size = _word(body, "<q", start)
    return length if size == _AS_IT_IS else size


def _word(data: memoryview, kind: str, at: int) -> int:
    if at < 0:
        raise struct.error(f"a place before the beginning: {at}")
    value: int = struct.unpack_from(kind, data, at)[0]
    return value


class _Table:
    """A table of a flatbuffer; its fields are found by their numbers."""

    def __init__(self, data: memoryview, place: int) -> None:
        self._data = data
        self._place = place
        self._fields = place - _word(data, "<i", place)
        self._size = _word(data, "<H", self._fields)

    def at(self, field: int) -> int | None:
        """Where a field is, or None."""
        entry = 4 + 2 * field
        offset = _word(self._data, "<H", self._fields + entry) if entry < self._size else 0
        return self._place + offset if offset else None

    def byte(self, field: int) -> int:
        """A field of one byte; 0 where it is not there."""
        place = self.at(field)
        return 0 if place is None else _word(self._data, "<B", place)

    def table(self, field: int) -> _Table | None:
        """A field that is a table."""
        place = self.at(field)
        return None if place is None else _Table(self._data, place + _word(self._data, "<I", place))

    def buffers(self, field: int) -> Iterator[tuple[int, int]]:
        """A field that is a list of buffers: start and length of each."""
        place = self.at(field)
        if place is None:
            return
        first = place + _word(self._data, "<I", place)
        for number in range(_word(self._data, "<I", first)):
            yield _BUFFER.unpack_from(self._data, first + 4 + number * _BUFFER.size)
