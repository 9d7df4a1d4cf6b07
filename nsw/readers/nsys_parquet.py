"""`nsys export --type parquetdir`: a folder with one Parquet file a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys_source import DURATION, NULL, TEXT, TableFault, with_duration
from nsw.readers.nsys_tables import fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from nsw.readers.nsys_source import Batch, IntArray

_TABLES = frozenset({"StringIds.parquet", "META_DATA_EXPORT.parquet", "TARGET_INFO_SESSION_START_TIME.parquet"})
_BATCH = 65536  # rows


def sniff(sample: Sample) -> int:
    """Certain of a folder with the Parquet files of at least two tables that only nsys makes."""
    return 100 if sample.is_folder and len(sample.entries & _TABLES) >= 2 else 0


def read(path: Path, options: Options) -> Report:
    """Read the folder; see `nsw.readers.nsys_tables` for what comes out."""
    report = Report(str(path), tool="nsys", format="nsys-parquet")
    source = ParquetSource(path)
    for table, fault in source.damaged.items():
        report.error(f"{table}.parquet cannot be read: {fault}", fix="export the report again, or copy it again")
    fill(report, source, options)
    return report


class ParquetSource:
    """The tables of a folder; see `nsw.readers.nsys_source.Source`."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.vocabulary: list[str] = []
        self.columns: dict[str, frozenset[str]] = {}
        self.damaged: dict[str, str] = {}
        self._codes: dict[str, int] = {}
        self._files = {p.stem: p for p in sorted(folder.glob("*.parquet")) if p.is_file()}
        for table, file in self._files.items():
            try:
                self.columns[table] = frozenset(pq.read_schema(file).names)
            except (pa.ArrowException, OSError) as fault:
                self.damaged[table] = str(fault).splitlines()[0]

    def scan(
        self,
        table: str,
        columns: Sequence[str],
        *,
        text: str | None = None,
        within: Mapping[str, tuple[int, int]] | None = None,
    ) -> Iterator[Batch]:
        """Integer columns in batches; see `Source.scan`."""
        bounds = within or {}
        parts = ["start", "end"] if DURATION in columns else []
        wanted = dict.fromkeys([*(c for c in columns if c != DURATION), *parts, *bounds, *([text] if text else [])])
        for raw in self._batches(table, list(wanted)):
            batch = {name: self._column(table, raw, name) for name in wanted if name != text}
            if DURATION in columns:
                batch = with_duration(table, batch)
            if text:
                batch[TEXT] = self._coded(raw, text)
            batch = _chosen(batch, bounds)
            if batch and len(next(iter(batch.values()))):
                yield batch

    def rows(self, table: str, columns: Sequence[str], *, at_most: int = 10_000) -> list[tuple[Any, ...]]:
        """Rows of a small table; see `Source.rows`."""
        out: list[tuple[Any, ...]] = []
        for batch in self._batches(table, list(columns)):
            names = batch.schema.names
            lists = [batch.column(c).to_pylist() if c in names else [None] * batch.num_rows for c in columns]
            out += zip(*lists, strict=True)
            if len(out) >= at_most:
                break
        return out[:at_most]

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Texts of StringIds; see `Source.strings`."""
        wanted = set(ids)
        found: dict[int, str] = {}
        for batch in self._batches("StringIds", ["id", "value"]) if wanted else ():
            pairs = zip(batch.column("id").to_pylist(), batch.column("value").to_pylist(), strict=True)
            found.update((i, v) for i, v in pairs if i in wanted and isinstance(v, str))
        return found

    def _batches(self, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        present = [c for c in columns if c in self.columns.get(table, frozenset())]
        if not present:
            return
        try:
            with pq.ParquetFile(self._files[table]) as file:
                yield from file.iter_batches(batch_size=_BATCH, columns=present, use_threads=False)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            raise TableFault(table, str(fault)) from fault

    def _column(self, table: str, batch: pa.RecordBatch, name: str) -> IntArray:
        import numpy as np
        import pyarrow as pa

        if name not in batch.schema.names:
            return np.full(batch.num_rows, NULL, np.int64)
        column = batch.column(name)
        if not pa.types.is_integer(column.type):
            raise TableFault(table, f"column {name} holds other things than integers")
        # ids are unsigned here and may use the highest bit, as they do in a database's signed integers
        values: IntArray = np.asarray(column.fill_null(0)).astype(np.int64)
        if column.null_count:
            values[column.is_null().to_numpy(zero_copy_only=False)] = NULL
        return values

    def _coded(self, batch: pa.RecordBatch, name: str) -> IntArray:
        import numpy as np

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


def _chosen(batch: Batch, bounds: Mapping[str, tuple[int, int]]) -> Batch:
    for column, (low, high) in bounds.items():
        mine = (batch[column] >= low) & (batch[column] <= high)
        batch = {name: values[mine] for name, values in batch.items()}
    return batch
