"""A table's data: a list of row dicts where it is small, an Arrow table where it is large.

Readers make whichever suits them; everybody else goes through `rows`, `count` and `as_arrow`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

Row: TypeAlias = dict[str, Any]
TableData: TypeAlias = "list[Row] | pa.Table"

_BATCH = 65536  # rows of an Arrow table turned into Python objects at a time


def rows(name: str, data: TableData) -> Iterator[Row]:
    """Every row with every column of table `name`, in the schema's order; absent and NaN are None."""
    columns = TABLES[name].names
    if isinstance(data, list):
        for row in data:
            yield {c: _clean(row.get(c)) for c in columns}
        return
    present = [c for c in columns if c in data.column_names]
    blank = dict.fromkeys(columns)
    for batch in data.select(present).to_batches(max_chunksize=_BATCH):
        lists = [column.to_pylist() for column in batch.columns]
        for values in zip(*lists, strict=True):
            yield blank | {c: _clean(v) for c, v in zip(present, values, strict=True)}


def count(data: TableData) -> int:
    """How many rows."""
    return len(data) if isinstance(data, list) else int(data.num_rows)


def as_arrow(name: str, data: TableData) -> pa.Table:
    """The rows as an Arrow table with exactly the schema's columns and types.

    Raises:
        KeyError: A row has a column that the schema lacks; that is a reader's fault.
    """
    import pyarrow as pa

    schema = arrow_schema(name)
    if isinstance(data, list):
        known = set(TABLES[name].names)
        for row in data:
            if not row.keys() <= known:
                raise KeyError(f"{name} has no column {sorted(row.keys() - known)}")
        cleaned = [{k: _clean(v) for k, v in row.items()} for row in data]
        return pa.Table.from_pylist(cleaned, schema=schema)
    missing = [f for f in schema if f.name not in data.column_names]
    for f in missing:
        data = data.append_column(f, pa.nulls(data.num_rows, f.type))
    return data.select(schema.names).cast(schema)


def arrow_schema(name: str) -> pa.Schema:
    """The Arrow schema of a table; unit and meaning are in each field's metadata."""
    import pyarrow as pa

    types = {"int64": pa.int64(), "float64": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
    return pa.schema(
        [
            pa.field(c.name, types[c.type], metadata={"unit": c.unit or "", "meaning": c.meaning})
            for c in TABLES[name].columns
        ]
    )


def _clean(value: Any) -> Any:
    """NaN and infinity are no numbers that a report could have measured."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
