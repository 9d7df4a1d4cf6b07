"""Rows of a large table as JSON: the text of each column, put together by Arrow.

A million rows as Python dicts take several times longer to write than to read; this is the same data as `as_json` of
each row. Neighbouring columns whose pairs of values repeat are put together once a pair.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.present.untrusted_text import as_json
from nsw.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import pyarrow as pa

    Numbers: TypeAlias = np.ndarray[Any, Any]

_BATCH: Final = 8192  # rows put together at a time: 5 MB of text, which stays in the caches
_WORKERS: Final = 2
_REPEATS: Final = 4  # texts that occur so many times each, on average, are worth a code
_LOOKED_AT: Final = 1000  # rows that tell whether a column repeats
_EXACT: Final = 2.0**53  # whole numbers below are exact
_AS_THEY_ARE: Final = r"^[ !#-\[\]-~]*$"  # texts of which JSON escapes nothing


@dataclass(frozen=True, slots=True)
class _Coded:
    """Texts that repeat: a number for each row, and the text that it stands for."""

    codes: Numbers
    texts: pa.StringArray


def json_rows(name: str, data: pa.Table) -> Iterator[bytes | memoryview]:
    """The rows of table `name` as objects with every column of its schema, ", " between them, in pieces of UTF-8."""
    columns = TABLES[name].names
    data = data.select([c for c in columns if c in data.column_names])
    batches = (batch for batch in data.to_batches(max_chunksize=_BATCH) if batch.num_rows)
    before = b""
    with ThreadPoolExecutor(_WORKERS) as pool:
        made = (pool.submit(_objects, columns, batch) for batch in batches)
        running = deque(islice(made, _WORKERS))
        while running:
            text = running.popleft().result()
            running.extend(islice(made, 1))
            yield before
            yield text
            before = b", "


def _objects(columns: tuple[str, ...], batch: pa.RecordBatch) -> bytes | memoryview:
    """The rows of a batch with ", " between them."""
    import pyarrow.compute as pc

    most = max(1, batch.num_rows // _REPEATS)
    parts: list[Any] = ["{"]
    for at, column in enumerate(columns):
        parts.append(f"{', ' if at else ''}{as_json(column)}: ")
        parts.append(_cells(batch[column], most) if column in batch.schema.names else "null")
    parts.append("}, ")
    whole = [part.texts.take(_arrow(part.codes)) if isinstance(part, _Coded) else part for part in _joined(parts, most)]
    if all(isinstance(part, str) for part in whole):
        return b", ".join(["".join(whole)[:-2].encode()] * batch.num_rows)
    rows = pc.binary_join_element_wise(*whole, "")
    length: int = pc.sum(pc.binary_length(rows)).as_py() - len(", ")
    return memoryview(rows.buffers()[2])[:length]


def _joined(parts: list[Any], most: int) -> list[Any]:
    """The parts with neighbours put together: texts that all rows share, and codes of at most so many texts."""
    found: list[Any] = []
    for part in parts:
        if not found or (one := _together(found[-1], part, most)) is None:
            found.append(part)
        else:
            found[-1] = one
    return found


def _together(left: Any, right: Any, most: int) -> Any:
    """Two parts as one; None where their texts do not repeat enough."""
    import numpy as np
    import pyarrow.compute as pc

    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, str) and isinstance(right, _Coded):
        return _Coded(right.codes, pc.binary_join_element_wise(left, right.texts, ""))
    if isinstance(left, _Coded) and isinstance(right, str):
        return _Coded(left.codes, pc.binary_join_element_wise(left.texts, right, ""))
    if not isinstance(left, _Coded) or not isinstance(right, _Coded):
        return None
    many = len(right.texts)
    codes = left.codes * many + right.codes
    pairs = np.arange(len(left.texts) * many)
    if len(pairs) > most:
        each = _arrow(codes).dictionary_encode()
        if len(each.dictionary) > most:
            return None
        pairs, codes = each.dictionary.to_numpy(), each.indices.to_numpy().astype(np.int64)
    first, second = (texts.take(_arrow(which)) for texts, which in
                     ((left.texts, pairs // many), (right.texts, pairs % many)))  # fmt: skip
    return _Coded(codes, pc.binary_join_element_wise(first, second, ""))


def _cells(column: pa.Array, most: int) -> _Coded | pa.StringArray | str:
    """The JSON text of each cell: one where all are the same, codes where they repeat."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return "null"
    if not pa.types.is_dictionary(column.type):
        if not _repeats(column):
            return _texts(column)
        column = column.dictionary_encode()
    words = column.dictionary
    codes = pc.fill_null(column.indices, len(words)).to_numpy().astype(np.int64)
    if len(words) > most:  # of many only those that occur here
        each = _arrow(codes).dictionary_encode()
        words = pc.take(words, pc.if_else(pc.less(each.dictionary, len(words)), each.dictionary, None))
        codes = each.indices.to_numpy().astype(np.int64)
    texts = pc.fill_null(_texts(words), "null")
    if not codes.any() and len(codes):
        return str(texts[0].as_py())
    texts = pa.concat_arrays([texts, pa.array(["null"], texts.type)])
    return _Coded(codes, texts) if len(texts) <= most else texts.take(_arrow(codes))


def _repeats(column: pa.Array) -> bool:
    """Whether the first values of a column do."""
    some = column[:_LOOKED_AT]
    return len(some.unique()) * _REPEATS <= len(some)


def _texts(column: pa.Array) -> pa.StringArray:
    """The JSON text of each cell, absent ones too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return _texts_of_floats(column)
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return pc.fill_null(pc.cast(column, pa.string()), "null")
    plain = pc.fill_null(pc.match_substring_regex(column, _AS_THEY_ARE), True)
    texts = pc.binary_join_element_wise('"', column, '"', "")
    if not pc.all(plain).as_py():
        others = [None if cell is None else as_json(cell) for cell in pc.filter(column, pc.invert(plain)).to_pylist()]
        texts = pc.replace_with_mask(texts, pc.invert(plain), pa.array(others, texts.type))
    return pc.fill_null(texts, "null")


def _texts_of_floats(column: pa.Array) -> pa.StringArray:
    """The JSON text of each number; what is none is null."""
    import numpy as np
    import pyarrow as pa

    numbers = column.to_numpy(zero_copy_only=False)  # NaN where absent
    finite = np.isfinite(numbers)
    rare = finite & ((np.abs(numbers) >= _EXACT) | ((numbers == 0) & np.signbit(numbers)))
    is_whole = finite & ~rare & (numbers == np.trunc(numbers))
    places, texts = np.zeros(len(numbers), np.int64), [pa.array(["null"], pa.string())]
    for mine, spelled in ((rare, _by_python), (is_whole, _whole), (finite & ~rare & ~is_whole, _fractions)):
        if mine.any():
            places[mine] = np.arange(mine.sum()) + sum(map(len, texts))
            texts.append(spelled(numbers[mine]))
    return pa.concat_arrays(texts).take(_arrow(places))


def _by_python(numbers: Numbers) -> pa.StringArray:
    import pyarrow as pa

    return pa.array([as_json(number) for number in numbers.tolist()], pa.string())


def _fractions(numbers: Numbers) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.cast(_arrow(numbers), pa.string())


def _whole(numbers: Numbers) -> pa.StringArray:
    """Whole numbers with a point, which says that they are measured."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(pc.cast(_arrow(numbers.astype(np.int64)), pa.string()), ".0", "")


def _arrow(numbers: Numbers) -> pa.Array:
    import pyarrow as pa

    return pa.array(numbers)
