"""The cells of nvprof's traces -> rows of gpu_trace, api_trace and metrics; the same for text and CSV."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.nvprof_asides import asides_of, is_aside
from nsw.readers.nvprof_metrics import metric_value
from nsw.readers.nvprof_sizes import byte_rate, byte_size
from nsw.readers.nvprof_state import split_device
from nsw.readers.nvprof_times import whole_ns
from nsw.readers.quantities import whole
from nsw.tables.kinds import gpu_kind
from nsw.tables.names import api_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.readers.nvprof_columns import Columns
    from nsw.readers.nvprof_sizes import Pair
    from nsw.readers.nvprof_state import Sink, Stream

_REMEMBERED: Final = 8192  # different rows, less their times, whose reading is kept
_GRID = re.compile(r"\(?(\d{1,10})[ ,]+(\d{1,10})[ ,]+(\d{1,10})\)?\Z")
_CORRELATION = re.compile(r"(.*?)\s+\[(\d{1,18})\]\Z", re.DOTALL)
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
_OWN = ("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm", "correlation")
_API_COLUMNS = ("block", "rank", "pid")
_GPU_COLUMNS = (
    *("block", "rank", "pid", "device", "device_name", "kind", "context", "stream", *_DIMENSIONS, "registers"),
    *("static_smem_bytes", "static_smem_bytes_pm", "dynamic_smem_bytes", "dynamic_smem_bytes_pm"),
    *("src_memory", "dst_memory"),
)
_MOVED = ("bytes", "bytes_pm", "bytes_per_s", "bytes_per_s_pm")
_NOTHING: Final = (None, None)
_took = lru_cache(_REMEMBERED)(whole_ns)  # durations repeat, starts do not


class TraceColumns:
    """Turns the cells of a row, as many as there are titles, into rows of the tables.

    Rows differ in their times and ids and are else mostly like others: the rest is read once.
    """

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
        self._start_at, self._duration_at = self._at.get("start"), self._at.get("duration")
        self._name_at, self._correlation_at = self._at.get("name", -1), self._at.get("correlation")
        own = {"start", "duration", "correlation", "name", "bytes", "bytes_per_s", "unified"}
        columns = [c for c in self._at if c not in own]
        self._places = {column: place for place, column in enumerate(columns)}
        self._rest = _getter([self._at[c] for c in columns])
        # whether a row is its times, what it shares, and perhaps an id: then rows can be known by their text
        self.is_regular = (
            (self._start_at, self._duration_at, self._metrics) == (0, 1, [])
            and self.width > 2
            and self.width - 1 == (self._name_at if self._correlation_at is None else self._correlation_at)
        )
        self.has_ids = self._correlation_at is not None
        self._known: dict[str, tuple[Columns, tuple[Any, ...], tuple[Any, ...]]] = {}
        # where a size and a rate of its own stand in what is else shared, counted from the third cell
        size_at = self._at.get("bytes", 0) - 2
        is_moving = self.is_regular and size_at > 0 and self._at.get("bytes_per_s") == size_at + 3 != self._name_at
        self.size_at = size_at if is_moving and "unified" not in self._at else None
        self._known_moves: dict[tuple[str, ...], tuple[Columns, tuple[Any, ...]]] = {}
        self._last: tuple[tuple[Columns, tuple[Any, ...]], tuple[Any, ...]] | None = None
        self._bytes, self._unified = self._sized("bytes", byte_size), self._sized("unified", byte_size)
        self._rate = self._sized("bytes_per_s", byte_rate)
        self._operation = lru_cache(_REMEMBERED)(self._read_operation)
        self._gpu = sink.trace("gpu_trace", _GPU_COLUMNS, (*_OWN, *_MOVED)) if "start" in self._at else None
        self._api = sink.trace("api_trace", _API_COLUMNS, _OWN) if "start" in self._at else None

    def add_known(self, start: str, duration: str, rest: str, correlation: int | None) -> bool:
        """Add a row of a regular table by its text, when a row with the same `rest` has been learnt."""
        self._last = None
        found = self._known.get(rest)
        if found is None:
            return False
        begin = whole_ns(start, self._units[0])
        if begin[0] is None:
            return False
        stream = self._stream
        origin = (stream.block or 0, stream.rank, stream.pid)
        table, shared, moved = found
        table.append((*origin, *shared), (*begin, *_took(duration, self._units[1]), correlation, *moved))
        return True

    def learn(self, rest: str, correlation: int | None) -> None:
        """Remember how the row that was just added was read, if its id was this one."""
        if self._last is not None and self._last[1][4] == correlation:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            (table, shared), own = self._last
            self._known[rest] = table, shared, own[5:]

    def add_move(self, start: str, duration: str, cells: list[str], correlation: int | None) -> bool:
        """The same of a copy by its cells from the third on, whose size and rate need not have been learnt.

        Args:
            start: As printed.
            duration: As printed.
            cells: As many as there are before the rate and two more, which are the rate and all that follows it.
            correlation: The id, where the row has one.
        """
        self._last = None
        at = self.size_at or 0
        found = self._known_moves.get((*cells[:at], *cells[at + 2 :]))
        if found is None:
            return False
        begin, moved, speed = (
            whole_ns(start, self._units[0]),
            self._read_size(cells[at]),
            self._read_rate(cells[at + 1]),
        )
        if begin[0] is None or moved[0] is None or (speed[0] is None and cells[at + 1] not in {"", "-"}):
            return False
        stream = self._stream
        table, shared = found
        own = (*begin, *_took(duration, self._units[1]), correlation, *moved, *speed)
        table.append((stream.block or 0, stream.rank, stream.pid, *shared), own)
        return True

    def learn_move(self, cells: list[str], correlation: int | None) -> None:
        """Remember the copy that was just added, if these are its cells."""
        at = self.size_at or 0
        if self._last is None or self._last[1][4:] != (
            correlation, *self._read_size(cells[at]), *self._read_rate(cells[at + 1]),
        ):  # fmt: skip
            return
        if len(self._known_moves) >= _REMEMBERED:
            self._known_moves.clear()
        self._known_moves[(*cells[:at], *cells[at + 2 :])] = self._last[0]

    def add(self, cells: Sequence[str]) -> bool:
        """One row; whether its cells are what the titles say."""
        self._last = None
        name = cells[self._name_at].strip() if self._name_at >= 0 else ""
        at = self._start_at
        start = _NOTHING if at is None else whole_ns(cells[at].strip(), self._units[at])
        if not name or (start[0] is None and at is not None):
            return False
        if is_aside(name):
            took, device = self._time(cells, self._duration_at), split_device(self._cell(cells, "device"))[1]
            return asides_of(self._sink).add(self._stream.origin(), name, took, device, self._cell(cells, "system"))
        correlation = None if self._correlation_at is None else whole(cells[self._correlation_at].strip())
        call = _CALL.match(name) if name.startswith("cu") and self._cell(cells, "device") in {"", "-"} else None
        if call is not None:
            self._add_call(cells, call, start, correlation)
            return True
        if name.endswith("]") and (found := _CORRELATION.match(name)):
            name, correlation = found[1], int(found[2])
        if self._gpu is not None:
            shared = self._operation(name, self._rest(cells))
            moved = self._bytes(cells)
            if "Memcpy" in name and self._cell(cells, "unified"):  # of other events it is an address, a count
                moved = self._unified(cells)
            own = (*start, *self._time(cells, self._duration_at), correlation, *moved, *self._rate(cells))
            self._append(self._gpu, shared, own)
        if self._metrics:
            self._add_metrics(cells, name, correlation)
        return True

    def _cell(self, cells: Sequence[str], column: str) -> str:
        at = self._at.get(column)
        return "" if at is None else cells[at].strip()

    def _time(self, cells: Sequence[str], at: int | None) -> tuple[int | None, float | None]:
        return _NOTHING if at is None else _took(cells[at].strip(), self._units[at])

    def _add_call(
        self,
        cells: Sequence[str],
        call: re.Match[str],
        start: tuple[int | None, float | None],
        correlation: int | None,
    ) -> None:
        if self._api is None:
            return
        if correlation is None and call[2] and (found := _CORRELATION.match(call[2])):
            correlation = int(found[2])
        own = (*start, *self._time(cells, self._duration_at), correlation)
        self._append(self._api, (api_name(call[1]),), own)

    def _append(self, table: Columns, shared: tuple[Any, ...], own: tuple[Any, ...]) -> None:
        stream = self._stream
        self._last = (table, shared), own
        table.append((stream.block or 0, stream.rank, stream.pid, *shared), own)

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
        cell = cells.get(column, "")
        return byte_size(cell, self._units[self._at[column]]) if column in self._at else _NOTHING

    def _sized(self, column: str, read: Callable[[str, str | None], Pair]) -> Callable[[Sequence[str]], Pair]:
        """What reads the column's cell of a row."""
        at = self._at.get(column)
        if at is None:
            return lambda _: _NOTHING
        unit = self._units[at]
        return lambda cells: read(cells[at].strip(), unit)

    def _read_size(self, cell: str) -> Pair:
        return byte_size(cell, self._units[self._at["bytes"]])

    def _read_rate(self, cell: str) -> Pair:
        return byte_rate(cell, self._units[self._at["bytes_per_s"]])

    def _add_metrics(self, cells: Sequence[str], name: str, correlation: int | None) -> None:
        device_name, device = split_device(self._cell(cells, "device"))
        for at, metric in self._metrics:
            if cells[at].strip() in {"", "-"}:
                continue
            value = metric_value(cells[at] + ((self._units[at] or "") if cells[at].strip()[-1:].isdigit() else ""))
            row: dict[str, Any] = {
                **self._stream.origin(),
                "device": device,
                "device_name": device_name,
                "launch_id": correlation,
                "kernel": name,
                "metric": metric,
                "unit": value.unit,
                "text": value.text if value.quantity is None else None,
            }
            if value.quantity is not None:
                row["value"], row["value_pm"] = value.quantity
            self._sink.add("metrics", row)


def _getter(places: Sequence[int]) -> Callable[[Sequence[str]], tuple[str, ...]]:
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


def less_id(text: str) -> tuple[str, int | None]:
    r"""`kernel(int) [107]` and `cudaLaunch (kernel(int) [107])` less the id, and the id.

    A `\n`, which no line has, stands for it: a name that never had an id is another.
    """
    end = len(text) - text.endswith("])")
    if text[end - 1] == "]":
        at = text.rfind(" [", 0, end)
        digits = text[at + 2 : end - 1]
        if at > 0 and len(digits) <= 18 and digits.isascii() and digits.isdigit():
            return f"{text[:at]}\n{text[end:]}", int(digits)
    return text, None
