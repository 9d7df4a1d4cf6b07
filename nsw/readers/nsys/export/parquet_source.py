"""The tables of a folder of Parquet or Arrow files that nsys exported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys.export.source import DURATION, NULL, TEXT, Contradictions, TableFault, Vocabulary, with_duration
from nsw.tables.parquet_tables import column_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.statistics import IntArray

__all__ = ["ParquetSource", "read", "sniff"]


_ENDINGS: Final = (".parquet", ".arrow")
_BATCH: Final = 65536  # rows


class ParquetSource:
    """The tables of a folder; see `nsw.readers.nsys.export.source.Source`."""

    def __init__(self, folder: Path) -> None:
        self.vocabulary = Vocabulary()
        self.columns: dict[str, frozenset[str]] = {}
        self.damaged: dict[str, str] = {}
        self.contradictions = Contradictions()
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
        """Yield integer columns in batches of rows, as `Source.scan` does.

        Args:
            table: The table of the export.
            columns: Its integer columns; `DURATION` adds `start`, `end` and their difference (ns).
            text: A text column, whose codes become column `TEXT`; None: no texts.
        """
        parts = ["start", "end"] if DURATION in columns else []
        needed = dict.fromkeys([*(c for c in columns if c != DURATION), *parts, *([text] if text else [])])
        for raw in self._batches(table, list(needed)):
            batch = {name: self._integer_column(table, raw, name) for name in needed if name != text}
            if text:
                batch[TEXT] = self._text_codes(raw, text)
            if DURATION in columns:
                batch = with_duration(table, batch, self.contradictions)
            if batch and len(next(iter(batch.values()))):
                yield batch

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table, as `Source.rows` gives them.

        Args:
            table: The table of the export.
            columns: The columns, in the order of the values of a row.
            at_most: How many rows are read.
        """
        out: list[tuple[Any, ...]] = []
        for batch in self._batches(table, list(columns)):
            names = batch.schema.names
            part = batch.slice(0, at_most - len(out))
            lists = [column_values(part.column(c)) if c in names else [None] * part.num_rows for c in columns]
            out += zip(*lists, strict=True)
            if len(out) >= at_most:
                break
        return out

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of StringIds; see `Source.strings`."""
        requested = set(ids)
        texts: dict[int, str] = {}
        for batch in self._batches("StringIds", ["id", "value"]) if requested else ():
            pairs = zip(batch.column("id").to_pylist(), column_values(batch.column("value")), strict=True)
            texts.update((i, v) for i, v in pairs if i in requested and isinstance(v, str))
        self.contradictions.nameless.update(requested - texts.keys())
        return texts

    def _batches(self, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        present = [c for c in columns if c in self.columns.get(table, frozenset())]
        if not present:
            return
        file = self._files[table]
        try:
            yield from (_parquet_batches if file.suffix == ".parquet" else _arrow_batches)(file, present)
        except pa.ArrowMemoryError:  # not the table's fault
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise TableFault(table, str(fault)) from fault

    def _integer_column(self, table: str, batch: pa.RecordBatch, name: str) -> IntArray:
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

    def _text_codes(self, batch: pa.RecordBatch, name: str) -> IntArray:
        if name not in batch.schema.names:
            return np.full(batch.num_rows, NULL, np.int64)
        coded = batch.column(name).dictionary_encode()
        codes = self.vocabulary.codes([None, *coded.dictionary.to_pylist()])
        indices = np.asarray(coded.indices.fill_null(-1))
        numbers: IntArray = np.array(codes, np.int64)[indices + 1]
        return numbers


def _column_names(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        return list(pq.read_schema(file).names)
    with pa.OSFile(str(file)) as raw, pa.ipc.open_stream(raw) as stream:
        return list(stream.schema.names)


def _parquet_batches(file: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows, with texts as numbers of their dictionary: a file can hold one long text a million times."""
    texts = [field.name for field in pq.read_schema(file) if field.name in columns and field.type == pa.string()]
    with pq.ParquetFile(file, read_dictionary=texts) as table:
        yield from table.iter_batches(batch_size=_BATCH, columns=columns, use_threads=False)


def _arrow_batches(file: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(file)) as raw, pa.ipc.open_stream(raw) as stream:
        for batch in stream:
            chosen = batch.select(columns)
            chosen.validate(full=True)  # places that are not in the file: Arrow would read them all the same
            yield chosen


_TABLES: Final = ("StringIds", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME")


def sniff(sample: Sample) -> int:
    """Certain of a folder with the files of at least two tables that only nsys makes."""
    count = max(sum(f"{t}{e}" in sample.entries for t in _TABLES) for e in (".parquet", ".arrow"))
    return 100 if sample.is_folder and count >= 2 else 0


def read(path: Path, options: Options) -> Report:
    """Read the folder; see `nsw.readers.nsys.export.tables` for what comes out."""
    # with pyarrow: this module is loaded to look at other folders too
    from nsw.readers.nsys.export.tables import fill_report

    report = Report(str(path), tool="nsys", format="nsys-parquet")
    source = ParquetSource(path)
    for table, fault in source.damaged.items():
        report.error(
            f"{source.file_name(table)} cannot be read: {fault}", fix="export the report again, or copy it again"
        )
    fill_report(report, source, options)
    return report
