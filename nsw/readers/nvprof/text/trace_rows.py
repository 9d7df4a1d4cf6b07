"""The cells of nvprof's traces -> rows of gpu_trace, api_trace and metrics; the same for text and CSV."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from nsw.readers.nvprof.devices import split_device
from nsw.readers.nvprof.text.metric_rows import add_value
from nsw.readers.nvprof.text.other_trace_rows import asides_of, is_aside
from nsw.readers.nvprof.text.times import whole_ns
from nsw.readers.nvprof.text.values import metric_value
from nsw.readers.text.quantities import rate, size, whole
from nsw.tables.gpu_operation_kinds import gpu_kind
from nsw.tables.names import api_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.nvprof.table_builder import Columns
    from nsw.readers.nvprof.text.state import Sink, Stream

_REMEMBERED: Final = 8192  # different rows, less their times, whose reading is kept
_GRID = re.compile(r"\(?(\d{1,10})[ ,]+(\d{1,10})[ ,]+(\d{1,10})\)?\Z")
_CORRELATION = re.compile(r"(.*?)(?<!\s)\s++\[(\d{1,18})\]\Z", re.DOTALL)  # each row of blanks is tried once
_CALL = re.compile(r"(cu(?:da)?[A-Z\d]\w*)(?:\s+\((.*)\))?\s*\Z", re.DOTALL)
_METRIC = re.compile(r"[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)*(?:\s*\(.*\))?\Z")

# Title -> the column it feeds; text and CSV, all versions.
KNOWN: Final = {
    "Start": "start",
    "Duration": "duration",
    "Grid Size": "grid",
    "Block Size": "block",
    "Grid X": "grid_x",
    "Grid Y": "grid_y",
    "Grid Z": "grid_z",
    "Block X": "block_x",
    "Block Y": "block_y",
    "Block Z": "block_z",
    "Regs*": "registers",
    "Regs": "registers",
    "Registers Per Thread": "registers",
    "SSMem*": "static_smem",
    "SSMem": "static_smem",
    "Static SMem": "static_smem",
    "DSMem*": "dynamic_smem",
    "DSMem": "dynamic_smem",
    "Dynamic SMem": "dynamic_smem",
    "Size": "bytes",
    "Throughput": "bytes_per_s",
    "SrcMemType": "src_memory",
    "DstMemType": "dst_memory",
    "Device": "device",
    "Context": "context",
    "Stream": "stream",
    "Name": "name",
    "Kernel": "name",
    "Correlation_ID": "correlation",
    "Unified Memory": "unified",
    "System": "system",
    "ID": "",
    "Parent ID": "",
    "Parent Block": "",
    "Virtual Address": "",
    "Secondary Address": "",
    "Src Dev": "",
    "Src Ctx": "",
    "Dst Dev": "",
    "Dst Ctx": "",
}
_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
VARYING: Final = frozenset(("start", "duration", "correlation", "bytes", "bytes_per_s", "unified"))
_OWN = ("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm", "correlation")
_API_COLUMNS = ("block", "rank", "pid")
_GPU_COLUMNS = (
    *("block", "rank", "pid", "device", "device_name", "kind", "context", "stream", *_DIMENSIONS, "registers"),
    *("static_smem_bytes", "static_smem_bytes_pm", "dynamic_smem_bytes", "dynamic_smem_bytes_pm"),
    *("src_memory", "dst_memory"),
)
_MOVED = ("bytes", "bytes_pm", "bytes_per_s", "bytes_per_s_pm")
_NOTHING: Final = (None, None)
Pair: TypeAlias = "tuple[float | None, float | None]"  # a value and its twin
_took = lru_cache(_REMEMBERED)(whole_ns)  # durations repeat, starts do not


class _Alike(NamedTuple):
    """What rows have in common that differ in times, ids and sizes alone."""

    kind: Literal["call", "work"]  # of the CUDA API, of the GPU
    shared: tuple[Any, ...]
    is_copy: bool = False  # so that what Unified Memory moved is its size


class TraceColumns:
    """Turns the cells of a row, as many as there are titles, into rows of the tables."""

    def __init__(self, sink: Sink, stream: Stream, titles: Sequence[str], units: Sequence[str] = ()) -> None:
        self._sink = sink
        self._stream = stream
        self._at: dict[str, int] = {}
        self._metrics: list[tuple[int, str]] = []
        for index, title in enumerate(titles):
            column = KNOWN.get(title)
            if column is None and _METRIC.match(title):
                self._metrics.append((index, title))
            elif column:
                self._at.setdefault(column, index)
        self.width = len(titles)
        self._units: list[str | None] = [u.strip() or None for u in units] + [None] * (self.width - len(units))
        columns = [c for c in self._at if c not in {*VARYING, "name"}]
        self._places = {column: place for place, column in enumerate(columns)}
        self._rest = _getter([self._at[c] for c in columns])
        self._operation = lru_cache(_REMEMBERED)(self._read_operation)
        self._tables: dict[str, Columns] = {}
        if "start" in self._at:
            self._tables["work"] = sink.table("gpu_trace", _GPU_COLUMNS, (*_OWN, *_MOVED))
            self._tables["call"] = sink.table("api_trace", _API_COLUMNS, _OWN)

    def add(self, cells: Sequence[str]) -> bool:
        """One row; whether its cells are what the titles say."""
        name, start = self._cell(cells, "name"), self._read(whole_ns, cells, "start")
        if not name or (start[0] is None and "start" in self._at):
            return False
        if is_aside(name):
            took, device = self._read(_took, cells, "duration"), split_device(self._cell(cells, "device"))[1]
            return asides_of(self._sink).add(self._stream.origin(), name, took, device, self._cell(cells, "system"))
        alike, named = self._alike(cells, name)
        printed = whole(self._cell(cells, "correlation"))
        correlation = named if printed is None or (named is not None and alike.kind == "work") else printed
        if (table := self._tables.get(alike.kind)) is not None:
            moved: tuple[float | None, ...] = ()
            if alike.kind == "work":
                is_unified = alike.is_copy and self._cell(cells, "unified")  # of other events it is an address, a count
                moved = (
                    *self._read(_byte_size, cells, "unified" if is_unified else "bytes"),
                    *self._read(_byte_rate, cells, "bytes_per_s"),
                )
            own = (*start, *self._read(_took, cells, "duration"), correlation, *moved)
            table.append((*self._stream.where(), *alike.shared), own)
        if self._metrics and alike.kind == "work":
            self._add_metrics(cells, alike.shared[-1], correlation)
        return True

    def _unit(self, column: str) -> str | None:
        return self._units[self._at[column]] if column in self._at else None

    def _cell(self, cells: Sequence[str], column: str) -> str:
        at = self._at.get(column)
        return "" if at is None else cells[at].strip()

    def _read(
        self, read: Callable[[str, str | None], tuple[Any, Any]], cells: Sequence[str], column: str
    ) -> tuple[Any, Any]:
        """A cell in the unit of its column."""
        at = self._at.get(column)
        return _NOTHING if at is None else read(cells[at].strip(), self._units[at])

    def _alike(self, cells: Sequence[str], name: str) -> tuple[_Alike, int | None]:
        """What the row shares with others, and the id in its name."""
        call = _CALL.match(name) if name.startswith("cu") and self._cell(cells, "device") in {"", "-"} else None
        if call is not None:
            found = _CORRELATION.match(call[2] or "")
            return _Alike("call", (api_name(call[1]),)), found and int(found[2])
        if name.endswith("]") and (found := _CORRELATION.match(name)):
            return _Alike("work", self._operation(found[1], self._rest(cells)), "Memcpy" in found[1]), int(found[2])
        return _Alike("work", self._operation(name, self._rest(cells)), "Memcpy" in name), None

    def _read_operation(self, name: str, rest: tuple[str, ...]) -> tuple[Any, ...]:
        """What rows with these cells share, from the device on."""
        cells = {column: rest[place].strip() for column, place in self._places.items()}
        get = cells.get
        device_name, device = split_device(get("device", ""))
        return (
            device, device_name, gpu_kind(name), whole(get("context", "")), whole(get("stream", "")),
            *_dimensions(cells), whole(get("registers", "")),
            *self._size(cells, "static_smem"), *self._size(cells, "dynamic_smem"),
            memory(get("src_memory", "")), memory(get("dst_memory", "")), name,
        )  # fmt: skip

    def _size(self, cells: dict[str, str], column: str) -> Pair:
        return _byte_size(cells.get(column, ""), self._unit(column))

    def _add_metrics(self, cells: Sequence[str], name: str, correlation: int | None) -> None:
        for at, metric in self._metrics:
            printed = cells[at].strip()
            if printed not in {"", "-"}:
                value = metric_value(cells[at] + ((self._units[at] or "") if printed[-1:].isdigit() else ""))
                add_value(self._sink, self._stream, correlation, name, metric, self._cell(cells, "device"), value)


def _byte_size(text: str, unit: str | None) -> Pair:
    return size(text, unit, base=1024) or _NOTHING


def _byte_rate(text: str, unit: str | None) -> Pair:
    return rate(text, unit, base=1024) or _NOTHING


def _getter(places: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """The cells at these places as a tuple."""
    if len(places) < 2:
        return lambda cells: tuple(cells[p] for p in places)
    return itemgetter(*places)


def _dimensions(cells: dict[str, str]) -> tuple[int | None, ...]:
    if "grid" not in cells and "block" not in cells:
        return tuple(whole(cells.get(d, "")) for d in _DIMENSIONS)
    found = [_GRID.match(cells.get(which, "")) for which in ("grid", "block")]
    return tuple(n for f in found for n in (map(int, f.groups()) if f else (None, None, None)))


def memory(text: str) -> str | None:
    """Pageable -> pageable; "-" -> None."""
    return text.lower() if text not in {"", "-"} else None
