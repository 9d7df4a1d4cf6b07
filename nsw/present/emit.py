"""Data out: JSON with `nsw_json`, CSV that no cell can break, Parquet; on stdout, and in files, one a table.

Rows of a large table become JSON as the text of each column, put together by Arrow. A million rows as Python dicts take
several times longer to write than to read; this is the same data as the JSON of each row.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO, TypeAlias

from nsw.errors import UsageError, writing_to
from nsw.present.untrusted_text import as_csv_cell
from nsw.present.untrusted_text import as_json as json_text
from nsw.safe_files import replacing_file
from nsw.tables import TABLES, TableData, full_rows, row_count, to_arrow
from nsw.wording import escape_surrogates

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

    Numbers: TypeAlias = np.ndarray[Any, Any]
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.spent import Spent
    from nsw.analysis.summary import Summary

JSON_VERSION = 1
# tables that `nsw read` computes of reports
COMPUTED: Final = ("kernels", "roofline", "results", "stragglers", "iteration_times")
_ITEMS: Final = 64  # of a list that are text at the same time


def as_json(payload: Mapping[str, Any]) -> None:
    """One JSON object on stdout, some items of its lists at a time."""
    write = sys.stdout.write
    for at, (key, value) in enumerate({"nsw_json": JSON_VERSION, **payload}.items()):
        write(f"{', ' if at else '{'}{json_text(key)}: ")
        if isinstance(value, list | Iterator):
            _write_list(iter(value))
        else:
            write(strict_json(value))
    write("}\n")


def _write_list(items: Iterator[Any]) -> None:
    sys.stdout.write("[")
    before = ""
    while chunk := list(islice(items, _ITEMS)):
        sys.stdout.write(before + strict_json(chunk)[1:-1])
        before = ", "
    sys.stdout.write("]")


def strict_json(value: Any) -> str:
    """The text of a value; NaN and infinity are null, a dataclass is an object of its fields."""
    try:
        return json_text(value, default=_plain_value)
    except ValueError:  # NaN or infinity: to look for them takes longer than to write what has none
        return json_text(without_nonfinite(value), default=_plain_value)


def write_utf8(text: bytes | memoryview) -> None:
    """A long text on stdout, which is not decoded first where stdout takes UTF-8 as it is."""
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() in {"utf-8", "utf8"}:
        stream.flush()
        stream.buffer.write(text)
    else:
        stream.write(str(text, "utf-8"))


def as_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Rows as CSV on stdout; absent values are empty."""
    write_csv(sys.stdout, rows, columns, head=True)


def write_csv(stream: TextIO, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, head: bool) -> None:
    """Write rows as CSV; absent values are empty.

    Args:
        stream: Where to.
        rows: The rows.
        columns: Their columns, in order.
        head: Whether the names of the columns come first.
    """
    writer = csv.writer(stream, lineterminator="\n")
    if head:
        writer.writerow([as_csv_cell(c) for c in columns])
    for row in rows:
        writer.writerow([as_csv_cell(row.get(c)) for c in columns])


def as_parquet(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: Path | None, note: str | None = None
) -> None:
    """Write rows as a Parquet file.

    Args:
        rows: The rows.
        columns: Their columns, in order.
        output: The file.
        note: Stored in the file's metadata as `nsw_note`.

    Raises:
        UsageError: No file is named.
        NswError: The file cannot be written.
    """
    if output is None:
        raise UsageError("--format parquet writes a file", hint="name it with --output FILE")
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pa.table({c: pa.array(of_one_type([row.get(c) for row in rows])) for c in columns})
    if note:
        frame = frame.replace_schema_metadata({"nsw_note": note})
    with writing_to(output):
        pq.write_table(frame, output, compression="zstd")


def columns_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The columns that any of the rows has, in the order in which they first come."""
    return list(dict.fromkeys(key for row in rows for key in row))


def flatten_cells(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose cells of several fields became a column a field: `params` of gpus=2 is `params.gpus` 2."""
    return [
        {
            name: value
            for column, cell in row.items()
            for name, value in (
                {f"{column}.{field}": field_value for field, field_value in cell.items()}
                if isinstance(cell, dict)
                else {column: cell}
            ).items()
        }
        for row in rows
    ]


def of_one_type(values: list[Any]) -> list[Any]:
    """A column's values of one type: numbers with numbers, of a mixture the texts; in the fields of a struct too.

    Texts are such as Parquet can hold.
    """
    types = {type(v) for v in values if v is not None}
    if types == {dict}:
        names = list(dict.fromkeys(name for value in values if value for name in value))
        if not names:  # Parquet has no struct without fields
            return [None] * len(values)
        fields = {name: of_one_type([value and value.get(name) for value in values]) for name in names}
        return [value and {name: fields[name][at] for name in names} for at, value in enumerate(values)]
    if str not in types and (len(types) < 2 or types <= {int, float}):
        return values
    return [None if v is None else escape_surrogates(str(v)) for v in values]


def as_row(record: Any) -> dict[str, Any]:
    """The fields of a dataclass, each as it is."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _plain_value(value: Any) -> Any:
    if is_dataclass(value):
        return as_row(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def without_nonfinite(value: Any) -> Any:
    """The value with NaN and infinities, at any depth, as None."""
    if is_dataclass(value):
        value = _plain_value(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: without_nonfinite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [without_nonfinite(v) for v in value]
    return value


_BATCH: Final = 8192  # rows put together at a time: 5 MB of text, which stays in the caches
_WORKERS: Final = 2
_REPEATS: Final = 4  # texts that occur so many times each, on average, are worth a code
_LOOKED_AT: Final = 1000  # rows that tell whether a column repeats
_EXACT: Final = 2.0**53  # whole numbers below are exact
_AS_THEY_ARE: Final = r"^[ !#-\[\]-~]*$"  # texts of which JSON escapes nothing


def json_rows(name: str, data: pa.Table) -> Iterator[bytes | memoryview]:
    """The rows of table `name` as objects with every column of its schema, ", " between them, in pieces of UTF-8."""
    columns = TABLES[name].column_names
    data = data.select([c for c in columns if c in data.column_names])
    batches = (batch for batch in data.to_batches(max_chunksize=_BATCH) if batch.num_rows)
    before = b""
    from concurrent.futures import ThreadPoolExecutor

    # the workers share Arrow data alone, which nobody changes; only this thread takes batches and results, in order
    with ThreadPoolExecutor(_WORKERS) as pool:
        pending = (pool.submit(_rows_as_json, columns, batch) for batch in batches)
        running = deque(islice(pending, _WORKERS))
        while running:
            text = running.popleft().result()
            running.extend(islice(pending, 1))
            yield before
            yield text
            before = b", "


def _rows_as_json(columns: tuple[str, ...], batch: pa.RecordBatch) -> bytes | memoryview:
    """The rows of a batch as JSON objects with ", " between them."""
    import pyarrow.compute as pc

    parts: list[Any] = ["{"]
    for at, column in enumerate(columns):
        cells = _json_cells(batch[column]) if column in batch.schema.names else "null"
        head = f"{', ' if at else ''}{json_text(column)}: "
        for part in (head, cells):
            if isinstance(part, str) and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
    if len(parts) == 1:
        return b", ".join([f"{parts[0]}}}".encode()] * batch.num_rows)
    rows = pc.binary_join_element_wise(*parts, "}, ", "")
    length: int = pc.sum(pc.binary_length(rows)).as_py() - len(", ")
    return memoryview(rows.buffers()[2])[:length]


def _json_cells(column: pa.Array) -> pa.StringArray | str:
    """The JSON text of each cell; the one text "null" where all are absent."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return "null"
    if not pa.types.is_dictionary(column.type):
        sample = column[:_LOOKED_AT]
        if len(sample.unique()) * _REPEATS > len(sample):
            return _as_json_texts(column)
        column = column.dictionary_encode()
    words = column.dictionary
    if len(words) > len(column):  # of many only those that occur here
        column = pc.cast(column, words.type).dictionary_encode()
        words = column.dictionary
    return pc.fill_null(_as_json_texts(words).take(column.indices), "null")


def _as_json_texts(column: pa.Array) -> pa.StringArray:
    """The JSON text of each cell, absent ones too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return _floats_as_json(column)
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return pc.fill_null(pc.cast(column, pa.string()), "null")
    plain = pc.fill_null(pc.match_substring_regex(column, _AS_THEY_ARE), True)
    texts = pc.binary_join_element_wise('"', column, '"', "")
    if not pc.all(plain).as_py():
        escaped = [
            None if cell is None else json_text(cell) for cell in pc.filter(column, pc.invert(plain)).to_pylist()
        ]
        texts = pc.replace_with_mask(texts, pc.invert(plain), pa.array(escaped, texts.type))
    return pc.fill_null(texts, "null")


def _floats_as_json(column: pa.Array) -> pa.StringArray:
    """The JSON text of each number; NaN and infinity are null."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = column.to_numpy(zero_copy_only=False)  # NaN where absent
    finite = np.isfinite(numbers)
    rare = finite & ((np.abs(numbers) >= _EXACT) | ((numbers == 0) & np.signbit(numbers)))
    is_whole = finite & ~rare & (numbers == np.trunc(numbers))
    positions, texts = np.zeros(len(numbers), np.int64), [pa.array(["null"], pa.string())]

    def spelled_by_python(numbers: Numbers) -> pa.StringArray:
        return pa.array([json_text(number) for number in numbers.tolist()], pa.string())

    def whole_numbers(numbers: Numbers) -> pa.StringArray:  # with a point, which says that they are measured
        return pc.binary_join_element_wise(pc.cast(pa.array(numbers.astype(np.int64)), pa.string()), ".0", "")

    def fractions(numbers: Numbers) -> pa.StringArray:
        return pc.cast(pa.array(numbers), pa.string())

    for mask, spell in ((rare, spelled_by_python), (is_whole, whole_numbers), (finite & ~rare & ~is_whole, fractions)):
        if mask.any():
            positions[mask] = np.arange(mask.sum()) + sum(map(len, texts))
            texts.append(spell(numbers[mask]))
    return pa.concat_arrays(texts).take(pa.array(positions))


class TableFiles(ExitStack, ABC):
    """One file a table.

    A file comes into being with the first row of its table, under another name until all is written: what was
    there before stays whole if something fails.
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        super().__init__()
        self._paths = paths
        self._writers: dict[str, Any] = {}  # by table
        self.written: dict[str, int] = {}  # rows by table

    def add(self, name: str, data: TableData, report: str) -> None:
        """The rows of one report.

        Raises:
            NswError: The file cannot be written.
        """
        if not row_count(data):
            return
        with writing_to(self._paths[name]):
            # a new file gets its name at the end, if that is a good one
            new = self.enter_context(replacing_file(self._paths[name])) if name not in self._writers else None
            self._append_rows(name, data, report, new)
        self.written[name] = self.written.get(name, 0) + row_count(data)

    @abstractmethod
    def _append_rows(self, name: str, data: TableData, report: str, new: BinaryIO | None) -> None:
        """Append the rows; `new` is the file of a table that has no writer in `_writers` yet."""


class CsvFiles(TableFiles):
    """One CSV file a table, with the schema's columns."""

    def _append_rows(self, name: str, data: TableData, report: str, new: BinaryIO | None) -> None:
        if new:
            self._writers[name] = self.enter_context(io.TextIOWrapper(new, encoding="utf-8", newline=""))
        report_rows = (row | {"report": report} for row in full_rows(name, data))
        write_csv(self._writers[name], report_rows, TABLES[name].column_names, head=new is not None)


_ROWS: Final = 3 << 14  # a row group, whose repeated texts are written out in memory; smaller ones make larger files


class ParquetFiles(TableFiles):
    """One Parquet file a table, with the schema's columns, types, units and meanings."""

    def _append_rows(self, name: str, data: TableData, report: str, new: BinaryIO | None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        for begin in range(0, len(data), _ROWS):
            chunk = data[begin : begin + _ROWS] if isinstance(data, list) else data.slice(begin, _ROWS)
            table = to_arrow(name, chunk)
            at = table.schema.get_field_index("report")
            table = table.set_column(at, table.schema.field(at), pa.repeat(escape_surrogates(report), len(table)))
            if new and not begin:
                self._writers[name] = self.enter_context(pq.ParquetWriter(new, table.schema, compression="zstd"))
            self._writers[name].write_table(table)


_STALLS: Final = 2
_NOT_IN_ROWS: Final = frozenset(
    {"shapes", "stalls", "roofline", "advice", "points", "metrics", "levels", "long_launches", "is_first", "is_between"}
)


def flat_kernels(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The rows without anything nested; every metric is a column, null where a kernel lacks it."""
    names = list(dict.fromkeys(name for k in kernels for name in k.metrics))
    return [_flatten_kernel(kernel) | {name: kernel.metrics.get(name) for name in names} for kernel in kernels]


def _flatten_kernel(kernel: KernelRow) -> dict[str, Any]:
    from nsw.analysis.answer.kernels import launch_shape_text, roof_label

    plain: dict[str, Any] = {name: value for name, value in as_row(kernel).items() if name not in _NOT_IN_ROWS}
    plain["shape"] = launch_shape_text(kernel)
    for at in range(_STALLS):
        stall = kernel.stalls[at] if at < len(kernel.stalls) else None
        plain |= {f"stall_{at + 1}": stall and stall.reason, f"stall_{at + 1}_pct": stall and stall.pct}
    roof, advice = kernel.roofline, kernel.advice
    plain |= {"roof": roof and roof_label(roof), "roof_share_pct": roof and roof.share_pct}
    return plain | {"advice": advice and advice.rule, "advice_speedup_pct": advice and advice.speedup_pct}


def flat_points(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The points of the rooflines."""
    return [{"name": k.name, "short_name": k.short_name} | as_row(point) for k in kernels for point in k.points]


FLAT = ("scaling", "compare", "iteration_times", "hotspots", "kernels", "roofline", "api", "copies", "figures",
        "functions", "model", "perturbation", "stragglers")  # fmt: skip
OF_A_CASE = frozenset(
    {"hotspots", "kernels", "roofline", "api", "copies", "functions", "stragglers"}
)  # several rows a case
_OF_TIMELINES = ("hotspots", "api", "copies")


def flat_rows(summary: Summary, table_name: str) -> list[dict[str, Any]]:
    """One of the summary's tables (FLAT) as rows."""
    curve = summary.curve
    if table_name == "scaling":
        if curve is None:
            return []
        from nsw.analysis.answer.comparisons import nccl_shares_pct  # of the rules, as below
        from nsw.analysis.rules.profiler_cost import time_without_profiler

        rest = ("runs", "profiled", "speedup", "efficiency_pct", "communication_pct", "missing")
        return [
            _row_after_parameters(
                {**p.series, curve.axis: p.at},
                {"case": p.case_id, "figure": curve.figure, "value": p.figure, "unit": curve.unit}
                | {name: getattr(p, name) for name in rest}
                | dict(
                    zip(("nccl_alone_pct", "nccl_hidden_pct"), nccl_shares_pct(summary.by_id[p.case_id]), strict=True)
                )
                | _iteration_parts_ns(time_without_profiler(summary.by_id[p.case_id])),
            )
            for p in curve.points
        ]
    if table_name == "compare":
        from nsw.analysis.rules.pairs import (
            cases_with_void_ratio,  # the rules take longer to load than many a report to read
        )

        void = cases_with_void_ratio(summary.variants, summary.by_id)
        rows = [
            as_row(v) | {"ratio": None if v.case_id in void else v.ratio, "void": v.case_id in void}
            for v in summary.variants
        ]
        return [_row_after_parameters(v.series, {k: x for k, x in row.items() if k != "series"})
                for v, row in zip(summary.variants, rows, strict=True)]  # fmt: skip
    if table_name == "model":
        return [
            _row_after_parameters(m.params, {k: v for k, v in as_row(m).items() if k not in {"params", "links"}}
                    | {f"{link.name}_bytes_per_s": link.bytes_per_s for link in m.links})
            for m in summary.model
        ]  # fmt: skip
    if table_name in {"kernels", "roofline"}:
        flatten = flat_kernels if table_name == "kernels" else flat_points
        return [
            {"case": c.id} | _row_after_parameters(c.params, row, "case")
            for c in summary.cases
            for row in flatten(c.kernels)
        ]
    if table_name == "iteration_times":
        from nsw.analysis.answer.cases import iteration_rows  # of the rules, as above

        return [
            {"case": case.id} | _row_after_parameters(case.params, row, "case") for case, row in iteration_rows(summary)
        ]
    # the others are under their own names in each case
    return [
        {"case": c.id} | _row_after_parameters(c.params, phase | as_row(row), "case")
        for c in summary.cases
        for phase in [{"phase": "steady" if c.phases else "all"} if table_name in _OF_TIMELINES else {}]
        for row in getattr(c, table_name)
    ]


def _iteration_parts_ns(spent: Spent | None) -> dict[str, float | None]:
    """The time of an iteration, and its parts that add up to it; None where they are not known."""
    span_ns, parts = spent.span_ns if spent else None, ("computing", "copies", "exposed", "idle")
    shares = [None if spent is None else getattr(spent, f"{part}_pct") for part in parts]
    names = ("computing_ns", "copies_ns", "nccl_alone_ns", "idle_ns")
    parts_ns = (None if span_ns is None or pct is None else pct * span_ns / 100 for pct in shares)
    return {"iteration_ns": span_ns} | dict(zip(names, parts_ns, strict=True))


def _row_after_parameters(params: Mapping[str, Any], row: Mapping[str, Any], *reserved: str) -> dict[str, Any]:
    """The parameters, then the row; a parameter with the name of one of its columns is told apart from it."""
    return {f"param_{k}" if k in row or k in reserved else k: v for k, v in params.items()} | dict(row)
