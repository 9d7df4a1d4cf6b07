"""Data out: JSON with `nsw_json`, CSV that no cell can break, Parquet."""

from __future__ import annotations

import csv
import io
import math
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TextIO

from nsw.errors import NswError, UsageError
from nsw.present.untrusted_text import as_csv_cell
from nsw.present.untrusted_text import as_json as json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

JSON_VERSION = 1


class Format(StrEnum):
    """How a command prints its data."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def as_json(payload: Mapping[str, Any]) -> None:
    """One JSON object on stdout; NaN and infinity are null."""
    data = finite({"nsw_json": JSON_VERSION, **payload})
    sys.stdout.write(json_text(data, default=_plain) + "\n")


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
    """Rows as CSV, below the names of their columns where the `head` is wanted; absent values are empty."""
    writer = csv.writer(stream, lineterminator="\n")
    if head:
        writer.writerow([as_csv_cell(c) for c in columns])
    for row in rows:
        writer.writerow([as_csv_cell(row.get(c)) for c in columns])


def as_parquet(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], output: Path | None, note: str | None = None
) -> None:
    """Rows as a Parquet file."""
    if output is None:
        raise UsageError("--format parquet writes a file", hint="name it with --output FILE")
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pa.table({c: pa.array(_alike([row.get(c) for row in rows])) for c in columns})
    if note:
        frame = frame.replace_schema_metadata({"nsw_note": note})
    try:
        pq.write_table(frame, output, compression="zstd")
    except OSError as fault:
        raise NswError(f"{output} cannot be written: {fault.strerror or fault}") from None


def flat(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose cells of several fields became a column a field: `params` of gpus=2 is `params.gpus` 2."""
    return [
        {
            name: value
            for column, cell in row.items()
            for name, value in (
                {f"{column}.{field}": of for field, of in cell.items()} if isinstance(cell, dict) else {column: cell}
            ).items()
        }
        for row in rows
    ]


def _alike(values: list[Any]) -> list[Any]:
    """A column's values of one type: numbers with numbers, of a mixture the texts; in the fields of a struct too."""
    types = {type(v) for v in values if v is not None}
    if types == {dict}:
        names = list(dict.fromkeys(name for value in values if value for name in value))
        if not names:  # Parquet has no struct without fields
            return [None] * len(values)
        fields = {name: _alike([value and value.get(name) for value in values]) for name in names}
        return [value and {name: fields[name][at] for name in names} for at, value in enumerate(values)]
    if len(types) < 2 or types <= {int, float}:
        return values
    return [None if v is None else str(v) for v in values]


def _plain(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def finite(value: Any) -> Any:
    """The value with NaN and infinities, at any depth, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return value
