"""How nvprof names CUDA calls, GPUs, OpenACC events and samples of clocks, and what its clock can tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from nsw.readers.text.quantities import Quantity, duration, parse_integer
from nsw.resources import csv_rows
from nsw.tables import TableData
from nsw.tables.names import demangle_all, name_columns_by_printed_name
from nsw.tables.schema import TABLES

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = [
    "QUANTITIES",
    "SAMPLES",
    "Api",
    "Columns",
    "Sampled",
    "Sum",
    "api_name",
    "exact_to_a_ns",
    "is_call",
    "openacc_kind",
    "split_device",
    "system_rows",
    "whole_ns",
]


# As the summary names it -> key and unit.
QUANTITIES: Final = {
    "SM Clock (MHz)": ("sm_clock", "MHz"),
    "Memory Clock (MHz)": ("memory_clock", "MHz"),
    "Temperature (C)": ("temperature", "C"),
    "Power (mW)": ("power", "mW"),
    "Fan (%)": ("fan", "%"),
}
# As a trace names it -> the quantities of its value, which a stroke parts.
SAMPLES: Final = {
    "[SM/Memory Clock (MHz)]": (("sm_clock", "MHz"), ("memory_clock", "MHz")),
    "[Temperature (C)]": (("temperature", "C"),),
    "[Power/Limit (mW)]": (("power", "mW"), ("power_limit", "mW")),
    "[Fan Speed (%)]": (("fan", "%"),),
}


@dataclass(slots=True)
class Sum:
    """Values that are only counted, added and compared."""

    count: int = 0
    total: float = 0.0
    minimum: float = float("inf")
    maximum: float = float("-inf")

    def add(self, value: float) -> None:
        """One more."""
        self.count += 1
        self.total += value
        self.minimum, self.maximum = min(self.minimum, value), max(self.maximum, value)


@dataclass(slots=True)
class Sampled:
    """Samples of the quantities of several GPUs, summed."""

    _sums: dict[tuple[tuple[tuple[str, Any], ...], str, str], Sum] = field(default_factory=dict)

    def add(self, origin: dict[str, Any], name: str, value: str) -> bool:
        """Add the samples of one row of a trace; returns whether the cell fits its name.

        Args:
            origin: The columns that identify the process and GPU.
            name: The name of the row, a key of `SAMPLES`.
            value: Its cell: integers between strokes, one per quantity.
        """
        quantities = SAMPLES[name]
        read = [parse_integer(part) for part in value.split("/")]
        if len(read) != len(quantities) or None in read:
            return False
        for quantity, sample in zip(quantities, read, strict=True):
            self.add_sample(origin, quantity, float(sample or 0))
        return True

    def add_sample(self, origin: dict[str, Any], quantity: tuple[str, str], value: float) -> None:
        """Add one sample of one quantity.

        Args:
            origin: The columns that identify the process and GPU.
            quantity: Its key and unit.
            value: The sample, in that unit.
        """
        self._sums.setdefault((tuple(origin.items()), *quantity), Sum()).add(value)

    def fact_rows(self) -> list[dict[str, Any]]:
        """How many, their mean, least and greatest of each quantity."""
        fact_rows = []
        for (origin, key, unit), quantity_sum in self._sums.items():
            values = [
                Quantity(v, None)
                for v in (quantity_sum.total / quantity_sum.count, quantity_sum.minimum, quantity_sum.maximum)
            ]
            fact_rows += system_rows(dict(origin), (key, unit), quantity_sum.count, values)
        return fact_rows


def system_rows(
    origin: dict[str, Any], quantity: tuple[str, str], count: int, values: list[Quantity]
) -> list[dict[str, Any]]:
    """Rows of the facts table for one quantity: the number of samples, then their mean, least and greatest value.

    Args:
        origin: The columns that identify the process and GPU.
        quantity: Its key and unit.
        count: The number of samples.
        values: Mean, least and greatest, in that unit.
    """
    key, unit = quantity
    return [
        {**origin, "key": f"system_{key}_samples", "value": float(count)},
        *({**origin, "key": f"system_{key}_{statistic}", "value": value.value, "value_pm": value.pm, "unit": unit}
          for statistic, value in zip(("avg", "min", "max"), values, strict=True)),
    ]  # fmt: skip


_ORDINAL = re.compile(r"\((\d{1,4})\)\Z")
_CUT_ORDINAL = re.compile(r"\(\d{0,3}\Z")  # text traces print 15 characters of it
_LONGEST_ORDINAL = 4


@lru_cache(1024)
def split_device(text: str) -> tuple[str | None, int | None]:
    """`Tesla V100-SXM2-16GB (0)` as name and ordinal; the ordinal is None where it is not printed."""
    text = text.strip().strip('"')
    if text in {"", "-"}:
        return None, None
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_ORDINAL:
        return None, int(text)  # of CUDA 5.0
    if (match := _ORDINAL.search(text)) is not None:
        return text[: match.start()].rstrip(), int(match[1])
    cut = _CUT_ORDINAL.search(text)
    return (text[: cut.start()].rstrip() if cut else text), None


def openacc_kind(name: str) -> str:
    """compute, data or other, by the event's name."""
    event = name.partition("@")[0].partition("[")[0]  # less the construct of --print-openacc-constructs
    if event in {"acc_compute_construct", "acc_enqueue_launch"}:
        return "compute"
    data = ("data", "upload", "download", "alloc", "create", "delete", "update")
    return "data" if any(word in event for word in data) else "other"


def whole_ns(text: str, unit: str | None = None) -> tuple[int | None, float | None]:
    """Nanoseconds as an integer, half to even where the print is finer, and the twin; None where there is no time.

    Args:
        text: As printed: `4.2567ms`, or `4.2567` with the unit given.
        unit: The unit of the column.
    """
    time = duration(text, unit)
    return (None, None) if time is None else (round(time.value), exact_to_a_ns(time.pm))


def exact_to_a_ns(pm: float | None) -> float | None:
    """None for a half-width that a clock of whole ns cannot have."""
    return None if pm is None or pm <= 0.5 else pm


Api: TypeAlias = Literal["runtime", "driver"]

_CALL_VERSION: Final = re.compile(r"_v\d+\Z")


def api_name(api: Api, cbid: Any) -> str:
    """The call behind a callback id; an id that CUDA 12.5 does not know is named by its number."""
    return _calls_by_id().get((api, cbid), f"cbid {cbid}")


@cache
def is_call(name: str) -> bool:
    """Whether this is the name of a CUDA runtime or driver call, not of a kernel."""
    return name.startswith("cu") and _CALL_VERSION.sub("", name) in _call_names()


@cache
def _call_names() -> frozenset[str]:
    return frozenset(_CALL_VERSION.sub("", name) for name in _calls_by_id().values())


@cache
def _calls_by_id() -> Mapping[tuple[str, int], str]:
    rows = csv_rows("readers/data/cuda_cbid.csv.xz")
    return {(row["api"], int(row["cbid"])): row["name"] for row in rows}


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
            self._pack_rows()
        codes = self._codes
        self._rows.append((codes.setdefault(shared, len(codes)), *own_cells))

    def __len__(self) -> int:
        return len(self._rows) + sum(rows for rows, _ in self._packed)

    def _pack_rows(self) -> None:
        import pyarrow as pa

        if not self._rows:
            return
        codes, *own_columns = zip(*self._rows, strict=True)
        code_array = pa.array(codes, pa.int32())
        parts = zip(*self._codes, strict=True)
        chunk = {
            n: self._column_array(n, v).take(code_array)
            for n, v in zip(self._shared, parts, strict=True)
            if _has_value(v)
        }
        chunk |= {
            n: self._column_array(n, v) for n, v in zip(self._own_columns, own_columns, strict=True) if _has_value(v)
        }
        self._packed.append((len(codes), chunk))
        self._rows, self._codes = [], {}

    def _column_array(self, name: str, values: tuple[Any, ...]) -> pa.Array:
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
        self._pack_rows()
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
                    c: _dictionary_array(chunks, [name_columns[n][c] for n in printed])
                    for c in next(iter(name_columns.values()))
                }
            else:
                columns[name] = (
                    _dictionary_array(chunks, self._words[name]) if name in self._words else pa.chunked_array(chunks)
                )
        return pa.table(columns)

    def _name_columns(self, printed: list[str]) -> dict[str, dict[str, str | None]]:
        """The columns that each name fills."""
        if self._has_short_names:
            return name_columns_by_printed_name(printed)
        clear = demangle_all(printed) if self._name == "kernel" else {name: name for name in printed}
        return {name: {self._name: plain} for name, plain in clear.items()}


def _has_value(values: tuple[Any, ...]) -> bool:
    return values.count(None) < len(values)


def _dictionary_array(codes: list[pa.Array], words: Iterable[str | None]) -> pa.ChunkedArray:
    import pyarrow as pa

    dictionary = pa.array(words, pa.string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(c, dictionary) for c in codes])
