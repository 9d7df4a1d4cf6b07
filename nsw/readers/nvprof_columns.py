"""A trace table under construction: a list per column, packed into Arrow as it grows.

A trace has a row for every call of a program that ran for hours; as Python dicts it would need some 2 KiB a
row. Names, of which there are few, are kept once (dictionary arrays).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nsw.tables.demangling import demangle_all
from nsw.tables.names import short_name
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.tables import TableData

_CHUNK = 65536  # rows packed at a time
_FEW = 4096  # rows that may stay dicts: no need to import pyarrow for them


class Columns:
    """The columns of one trace table that the report can fill; rows are tuples in their order, the name last."""

    def __init__(self, table: str, columns: tuple[str, ...]) -> None:
        types = {c.name: c.type for c in TABLES[table].columns}
        self._types = {name: types[name] for name in columns}
        self._has_short_names = "short_name" in types
        self.order = (*columns, "name")
        self._rows: list[tuple[Any, ...]] = []
        self._packed: list[list[pa.Array]] = []
        self._codes: dict[str, int] = {}

    def append(self, row: tuple[Any, ...]) -> None:
        """One row: a value for each column of `order`, None where there is none."""
        self._rows.append(row)
        if len(self._rows) >= _CHUNK:
            self._pack()

    def __len__(self) -> int:
        return len(self._rows) + sum(len(chunk[-1]) for chunk in self._packed)

    def _pack(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        columns = list(zip(*self._rows, strict=True))
        arrays: list[pa.Array] = []
        for kind, values in zip(self._types.values(), columns, strict=False):
            if all(v is None for v in values):
                arrays.append(pa.nulls(len(values)))
            elif kind == "string":
                arrays.append(pa.array(values, pa.string()).dictionary_encode())
            else:
                arrays.append(pa.array(values, pa.int64() if kind == "int64" else pa.float64()))
        codes = self._codes
        arrays.append(pa.array([codes.setdefault(n, len(codes)) for n in columns[-1]], pa.int32()))
        self._packed.append(arrays)
        self._rows = []

    def finish(self) -> TableData:
        """The table: dicts when it is small, Arrow when it is large."""
        if not self._packed and len(self._rows) <= _FEW:
            return self._as_dicts()
        self._pack()
        return self._as_arrow()

    def _as_dicts(self) -> list[dict[str, Any]]:
        rows = [{k: v for k, v in zip(self.order, row, strict=True) if v is not None} for row in self._rows]
        clear = demangle_all(row["name"] for row in rows)
        for row in rows:
            printed = row["name"]
            row["name"] = clear[printed]
            if self._has_short_names:
                row["short_name"] = short_name(clear[printed])
                row["mangled_name"] = printed if clear[printed] != printed else None
        return rows

    def _as_arrow(self) -> pa.Table:
        import pyarrow as pa

        wanted = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
        columns: dict[str, pa.ChunkedArray] = {}
        for index, (name, kind) in enumerate(self._types.items()):
            chunks = [chunk[index].cast(wanted[kind]) for chunk in self._packed]
            column = pa.chunked_array(chunks, wanted[kind])
            if column.null_count < len(column):
                columns[name] = column.dictionary_encode() if kind == "string" else column
        codes = [chunk[-1] for chunk in self._packed]
        for name, values in self._names().items():
            dictionary = pa.array(values, pa.string())
            columns[name] = pa.chunked_array([pa.DictionaryArray.from_arrays(c, dictionary) for c in codes])
        return pa.table(columns)

    def _names(self) -> dict[str, list[str | None]]:
        clear = demangle_all(self._codes)
        names: dict[str, list[str | None]] = {"name": [clear[n] for n in self._codes]}
        if self._has_short_names:
            names["short_name"] = [short_name(clear[n]) for n in self._codes]
            names["mangled_name"] = [n if clear[n] != n else None for n in self._codes]
        return names
