"""Rows of a large table as JSON: text of each column, put together by Arrow.

A million rows as Python dicts take several times longer to write than to read; this is the same data as `as_json` of
each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.present.text_of_others import as_json
from nsw.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_BATCH: Final = 32768  # rows put together at a time


def json_rows(name: str, data: pa.Table) -> Iterator[str]:
    """The rows of table `name` as objects with every column of its schema, with ", " between them, in pieces."""
    import pyarrow.compute as pc

    columns = TABLES[name].names
    data = data.select([c for c in columns if c in data.column_names])
    before = ""
    for batch in data.to_batches(max_chunksize=_BATCH):
        if not batch.num_rows:
            continue
        parts: list[Any] = []
        for at, column in enumerate(columns):
            parts.append(f"{', ' if at else '{'}{as_json(column)}: ")
            parts.append(_cells(batch[column]) if column in batch.schema.names else "null")
        parts.append("}")
        whole: list[Any] = []
        for part in parts:
            if isinstance(part, str) and whole and isinstance(whole[-1], str):
                whole[-1] += part  # texts that follow each other are one
            else:
                whole.append(part)
        yield before + ", ".join(pc.binary_join_element_wise(*whole, "").to_pylist())
        before = ", "


def _cells(column: pa.Array) -> pa.Array | str:
    """The JSON text of each cell; one text where all are the same."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return "null"
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        words = column.dictionary.to_pylist()
        texts = pa.array([None if word is None else as_json(word) for word in words], pa.string())
        found = texts.take(column.indices)
        if not found.null_count and len(pc.unique(column.indices)) == 1:
            return str(found[0].as_py())
    elif pa.types.is_floating(column.type):
        text = pc.cast(pc.if_else(pc.is_finite(column), column, None), pa.string())
        is_whole = pc.invert(pc.match_substring_regex(text, "[.e]"))
        found = pc.if_else(is_whole, pc.binary_join_element_wise(text, ".0", ""), text)
    else:
        found = pc.cast(column, pa.string())
    return pc.fill_null(found, "null")
