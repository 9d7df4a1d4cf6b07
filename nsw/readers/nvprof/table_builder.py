"""A table under construction: a list per column, packed into Arrow as it grows.

A trace has a row for every call of a program that ran for hours; as Python dicts it would need some 2 KiB a
row. But its rows repeat in all but their times (the same kernel with the same grid on the same GPU), so what
repeats is kept once in each chunk, and the strings once in the table (dictionary arrays).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.tables.names import demangle_all, names_of
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from nsw.tables import TableData

__all__ = ["Columns"]

_CHUNK: Final = 32768  # rows packed at a time
_FEW: Final = 4096  # rows that may stay dicts: no need to import pyarrow for them


class Columns:
    """The columns of one table that the report can fill.

    A row is two tuples: the values of the columns that rows share, the name as last of them (a string, or what has
    become one by the end), and those of the columns of its own, which are numbers.
    """

    def __init__(self, table: str, shared: tuple[str, ...], own_columns: tuple[str, ...], name: str = "name") -> None:
        types = {c.name: c.type for c in TABLES[table].columns}
        self._has_short_names = "short_name" in types
        self._types = {name: types[name] for name in (*shared, name, *own_columns)}
        self._shared = (*shared, name)
        self._own_columns = own_columns
        self._name = name
        self._codes: dict[tuple[Any, ...], int] = {}  # of the shared parts of this chunk
        self._rows: list[tuple[Any, ...]] = []
        self._packed: list[tuple[int, dict[str, pa.Array]]] = []  # rows, and the columns that have a value there
        self._words: dict[str, dict[str | None, int]] = {n: {} for n in self._types if self._types[n] == "string"}

    def append(self, shared: tuple[Any, ...], own_cells: tuple[Any, ...]) -> None:
        """One row; None where there is no value."""
        if len(self._rows) >= _CHUNK:
            self._pack()
        codes = self._codes
        self._rows.append((codes.setdefault(shared, len(codes)), *own_cells))

    def __len__(self) -> int:
        return len(self._rows) + sum(rows for rows, _ in self._packed)

    def _pack(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        codes, *own_columns = zip(*self._rows, strict=True)
        code_array = pa.array(codes, pa.int32())
        parts = zip(*self._codes, strict=True)
        chunk = {
            n: self._array(n, v).take(code_array) for n, v in zip(self._shared, parts, strict=True) if _has_value(v)
        }
        chunk |= {n: self._array(n, v) for n, v in zip(self._own_columns, own_columns, strict=True) if _has_value(v)}
        self._packed.append((len(codes), chunk))
        self._rows, self._codes = [], {}

    def _array(self, name: str, values: tuple[Any, ...]) -> pa.Array:
        """The values; of strings their codes in the whole table."""
        import pyarrow as pa

        if self._types[name] != "string":
            return pa.array(values, pa.int64() if self._types[name] == "int64" else pa.float64())
        words = self._words[name]
        return pa.array([None if v is None else words.setdefault(v, len(words)) for v in values], pa.int32())

    def finish(self) -> TableData:
        """The table: dicts when it is small, Arrow when it is large."""
        if not self._packed and len(self._rows) <= _FEW:
            return self._as_dicts()
        self._pack()
        return self._as_arrow()

    def _as_dicts(self) -> list[dict[str, Any]]:
        parts = list(self._codes)
        names = (*self._shared, *self._own_columns)
        printed = [(*parts[code], *own_cells) for code, *own_cells in self._rows]
        rows = [{k: v for k, v in zip(names, row, strict=True) if v is not None} for row in printed]
        name_columns = self._name_columns([str(row[self._name]) for row in rows])
        for row in rows:
            row.update(name_columns[str(row[self._name])])
        return rows

    def _as_arrow(self) -> pa.Table:
        import pyarrow as pa

        columns: dict[str, pa.ChunkedArray] = {}
        for name in self._types:
            packed = [(rows, chunk.pop(name, None)) for rows, chunk in self._packed]
            type_ = next((chunk.type for _, chunk in packed if chunk is not None), None)
            if type_ is None:
                continue
            chunks = [pa.nulls(rows, type_) if chunk is None else chunk for rows, chunk in packed]
            if name == self._name:
                printed = [str(n) for n in self._words[name]]
                name_columns = self._name_columns(printed)
                columns |= {
                    c: _coded(chunks, [name_columns[n][c] for n in printed]) for c in next(iter(name_columns.values()))
                }
            else:
                columns[name] = _coded(chunks, self._words[name]) if name in self._words else pa.chunked_array(chunks)
        return pa.table(columns)

    def _name_columns(self, printed: list[str]) -> dict[str, dict[str, str | None]]:
        """The columns that each name fills."""
        if self._has_short_names:
            return names_of(printed)
        clear = demangle_all(printed) if self._name == "kernel" else {name: name for name in printed}
        return {name: {self._name: plain} for name, plain in clear.items()}


def _has_value(values: tuple[Any, ...]) -> bool:
    return values.count(None) < len(values)


def _coded(codes: list[pa.Array], words: Iterable[str | None]) -> pa.ChunkedArray:
    import pyarrow as pa

    dictionary = pa.array(words, pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(c, dictionary) for c in codes])
