"""A table's data: a list of row dicts where it is small, an Arrow table where it is large.

Readers make whichever suits them; everybody else goes through `rows`, `count` and `as_arrow`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from nsw.tables.schema import TABLES
from nsw.wording import storable

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

    Numbers: TypeAlias = "np.ndarray[Any, Any]"

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
    """NaN and infinity are no numbers that a report could have measured; names may be no UTF-8."""
    if isinstance(value, str):
        return storable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def coded(data: TableData, column: str) -> tuple[list[Any], Numbers]:
    """The different values of a column, None as the last of them, and the place of each row's among them."""
    import numpy as np

    if isinstance(data, list):
        places: dict[Any, int] = {}
        codes = [places.setdefault(row.get(column), len(places)) for row in data]
        words = list(places)
        if None not in places:
            return [*words, None], np.array(codes, dtype=np.int64)
        last = np.array([i - (i > places[None]) if w is not None else len(words) - 1 for i, w in enumerate(words)])
        return [*(w for w in words if w is not None), None], last[np.array(codes, dtype=np.int64)]
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return [None], np.zeros(data.num_rows, dtype=np.int64)
    found = data[column]
    if not pa.types.is_dictionary(found.type):
        found = pc.dictionary_encode(found)
    found = found.unify_dictionaries()
    words = found.chunk(0).dictionary.to_pylist() if found.num_chunks else []
    indices = [pc.fill_null(chunk.indices, len(words)).to_numpy(zero_copy_only=False) for chunk in found.chunks]
    return [*words, None], np.concatenate(indices).astype(np.int64) if indices else np.zeros(0, dtype=np.int64)


def numbers(data: TableData, column: str) -> Numbers:
    """A column as floats, NaN where it is null or missing."""
    import numpy as np

    if isinstance(data, list):
        return np.array([np.nan if (v := row.get(column)) is None else v for row in data], dtype=float)
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return np.full(data.num_rows, np.nan)
    return np.asarray(pc.fill_null(pc.cast(data[column], pa.float64()), np.nan).to_numpy())
