"""Columns of a table as numpy sees them, whether it is rows or Arrow: texts as codes, numbers as floats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from nsw.tables.data import TableData

    Numbers: TypeAlias = "np.ndarray[Any, Any]"


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
