"""nvprof's traces (--print-gpu-trace, --print-api-trace): the columns of text and CSV, read the same way.

The title line says which columns there are: 15 in CUDA 6, more since; with --metrics each metric is a column
of its own, with --print-api-trace the calls of the CUDA API stand between the operations of the GPU.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.readers.nvprof_metrics import metric_value
from nsw.readers.nvprof_state import gpu_kind, split_device
from nsw.readers.nvprof_summary import exact_to_a_ns
from nsw.readers.quantities import Quantity, duration, rate, size, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.readers.nvprof_state import Sink, Stream

HEADER = re.compile(r"\s*Start\s+Duration\s.*\bName(?:\s+Correlation_ID)?\s*\Z")
COUNTER_HEADER = re.compile(r"\s*Device\s+Context\s+Stream\s+Kernel(?:\s+\S+)+\s*\Z")
_TITLE = re.compile(
    r"Parent ID|Parent Block [XYZ]|Parent Block|Grid Size|Block Size|Src Dev|Src Ctx|Dst Dev|Dst Ctx"
    r"|Unified Memory|Virtual Address|Secondary Address|\S+"
)
_GAP = re.compile(r"\s{2,}|\t")
_GRID = re.compile(r"\(?(\d{1,10})[ ,]+(\d{1,10})[ ,]+(\d{1,10})\)?\Z")
_CORRELATION = re.compile(r"(.*?)\s+\[(\d{1,18})\]\Z", re.DOTALL)
_CALL = re.compile(r"(cu(?:da)?[A-Z\d]\w*)(?:\s+\((.*)\))?\s*\Z", re.DOTALL)
_NVTX = ("[Range start]", "[Range end]", "[Marker]")
_METRIC = re.compile(r"[a-z][a-z0-9]*(?:_[A-Za-z0-9]+)*(?:\s*\(.*\))?\Z")
_VERSION = re.compile(r"_v\d{3,5}\Z")

# Title -> the column it feeds; text and CSV, all versions.
_KNOWN = {
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
# What a cell looks like in text, for rows whose columns run together.
_SHAPES = {
    "grid": r"\(\d+ \d+ \d+\)|-",
    "block": r"\(\d+ \d+ \d+\)|-",
    "Parent Block": r"\(\d+ \d+ \d+\)|-",
    "device": r"\S.*?",
    "name": r"\S.*",
}
_DIMENSIONS = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_API_COLUMNS = (
    *("block", "rank", "pid"),
    *("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm", "correlation"),
)
_GPU_COLUMNS = (
    *("block", "rank", "pid", "device", "device_name", "kind"),
    *("start_ns", "start_ns_pm", "duration_ns", "duration_ns_pm"),
    *("context", "stream", "correlation", *_DIMENSIONS, "registers"),
    *("static_smem_bytes", "static_smem_bytes_pm", "dynamic_smem_bytes", "dynamic_smem_bytes_pm"),
    *("bytes", "bytes_pm", "bytes_per_s", "bytes_per_s_pm", "src_memory", "dst_memory"),
)


def titles_of(header: str) -> list[str]:
    """The titles of a text header; two words where nvprof has two."""
    return _TITLE.findall(header)


class TraceColumns:
    """Turns the cells of a row into rows of gpu_trace, api_trace and metrics."""

    def __init__(self, sink: Sink, stream: Stream, titles: Sequence[str], units: Sequence[str] = ()) -> None:
        self._sink = sink
        self._stream = stream
        self._at: dict[str, int] = {}
        self._metrics: list[tuple[int, str]] = []
        for index, title in enumerate(titles):
            column = _KNOWN.get(title)
            if column is None and _METRIC.match(title):
                self._metrics.append((index, title))
            elif column:
                self._at.setdefault(column, index)
        self.width = len(titles)
        self.name_at = self._at.get("name", self.width - 1)
        self._units: list[str | None] = [u.strip() or None for u in units] + [None] * (self.width - len(units))
        self._devices: dict[str, tuple[str | None, int | None]] = {}
        self._has_times = "start" in self._at
        self._gpu = sink.trace("gpu_trace", _GPU_COLUMNS) if self._has_times else None
        self._api = sink.trace("api_trace", _API_COLUMNS) if self._has_times else None

    def add(self, number: int, cells: Sequence[str]) -> bool:
        """One row; whether its cells are what the titles say."""
        name = self._cell(cells, "name")
        start = self._time(cells, "start")
        if not name or (self._has_times and start is None):
            return False
        if name.startswith(_NVTX):
            return True  # a range begins or ends: no work of the GPU, and no table of single ranges
        correlation = whole(self._cell(cells, "correlation"))
        call = _CALL.match(name) if name.startswith("cu") and self._cell(cells, "device") in {"", "-"} else None
        if call is not None:
            self._add_call(cells, call, start, correlation)
            return True
        if name.endswith("]") and (found := _CORRELATION.match(name)):
            name, correlation = found[1], int(found[2])
        if self._gpu is not None:
            self._add_operation(cells, name, start, correlation)
        if self._metrics:
            self._add_metrics(cells, name, correlation)
        del number
        return True

    def _cell(self, cells: Sequence[str], column: str) -> str:
        at = self._at.get(column)
        return cells[at].strip() if at is not None and at < len(cells) else ""

    def _time(self, cells: Sequence[str], column: str) -> Quantity | None:
        at = self._at.get(column)
        if at is None or at >= len(cells):
            return None
        cell = cells[at].strip()
        return duration(cell, self._units[at]) if cell and cell != "-" else None

    def _size(self, cells: Sequence[str], column: str) -> tuple[float | None, float | None]:
        at = self._at.get(column)
        if at is None or at >= len(cells) or cells[at] in {"", "-"}:
            return None, None
        found = size(cells[at].strip(), self._units[at], base=1024)
        return found if found is not None else (None, None)

    def _add_call(
        self, cells: Sequence[str], call: re.Match[str], start: Quantity | None, correlation: int | None
    ) -> None:
        if self._api is None:
            return
        if correlation is None and call[2] and (found := _CORRELATION.match(call[2])):
            correlation = int(found[2])
        stream = self._stream
        begin, begin_pm = whole_ns(start)
        took, took_pm = whole_ns(self._time(cells, "duration"))
        name = _VERSION.sub("", call[1])
        self._api.append(
            (stream.block or 0, stream.rank, stream.pid, begin, begin_pm, took, took_pm, correlation, name)
        )

    def _add_operation(self, cells: Sequence[str], name: str, start: Quantity | None, correlation: int | None) -> None:
        assert self._gpu is not None
        device_name, device = self._device(self._cell(cells, "device"))
        begin, begin_pm = whole_ns(start)
        took, took_pm = whole_ns(self._time(cells, "duration"))
        shared, shared_pm = self._size(cells, "static_smem")
        dynamic, dynamic_pm = self._size(cells, "dynamic_smem")
        moved, moved_pm = self._size(cells, "bytes")
        if "Memcpy" in name and (cell := self._cell(cells, "unified")):  # of other events it is an address, a count
            moved, moved_pm = size(cell, self._units[self._at["unified"]], base=1024) or (None, None)
        speed, speed_pm = self._rate(cells)
        stream = self._stream
        self._gpu.append(
            (
                stream.block or 0, stream.rank, stream.pid, device, device_name, gpu_kind(name),
                begin, begin_pm, took, took_pm,
                whole(self._cell(cells, "context")), whole(self._cell(cells, "stream")), correlation,
                *self._dimensions(cells), whole(self._cell(cells, "registers")),
                shared, shared_pm, dynamic, dynamic_pm, moved, moved_pm, speed, speed_pm,
                memory(self._cell(cells, "src_memory")), memory(self._cell(cells, "dst_memory")), name,
            )
        )  # fmt: skip

    def _rate(self, cells: Sequence[str]) -> tuple[float | None, float | None]:
        at = self._at.get("bytes_per_s")
        if at is None or at >= len(cells) or cells[at] in {"", "-"}:
            return None, None
        return rate(cells[at].strip(), self._units[at], base=1024) or (None, None)

    def _dimensions(self, cells: Sequence[str]) -> tuple[int | None, ...]:
        if "grid" not in self._at and "block" not in self._at:
            return tuple(whole(self._cell(cells, d)) for d in _DIMENSIONS)
        grid = _GRID.match(self._cell(cells, "grid"))
        block = _GRID.match(self._cell(cells, "block"))
        none = (None, None, None)
        return (
            *(tuple(map(int, grid.groups())) if grid else none),
            *(tuple(map(int, block.groups())) if block else none),
        )

    def _device(self, text: str) -> tuple[str | None, int | None]:
        found = self._devices.get(text)
        if found is None:
            found = self._devices[text] = split_device(text)
        return found

    def _add_metrics(self, cells: Sequence[str], name: str, correlation: int | None) -> None:
        device_name, device = self._device(self._cell(cells, "device"))
        for at, metric in self._metrics:
            if at >= len(cells) or cells[at].strip() in {"", "-"}:
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


class TraceTable:
    """A trace being read from text: cells between two blanks or more, by shape where they run together."""

    def __init__(self, sink: Sink, stream: Stream, header: str, number: int) -> None:
        titles = titles_of(header)
        self._columns = TraceColumns(sink, stream, titles)
        self._sink = sink
        self._titles = titles
        self._shape: re.Pattern[str] | None = None
        self.number = number
        self.rows = 0

    def take(self, number: int, text: str) -> bool:
        """Read a row."""
        text = text.strip()
        if not text or text[0] == "=":
            return False
        columns = self._columns
        cells = _GAP.split(text, columns.width - 1)
        if len(cells) == columns.width and columns.add(number, cells):
            self.rows += 1
            return True
        if not text[0].isdigit():
            return False
        found = self._by_shape(text)
        if found is not None and columns.add(number, found):
            self.rows += 1
            return True
        if _LOOKS_LIKE_A_START.match(text):
            self._sink.fault("a row of a trace is cut short or damaged", number, "copy the report again")
            return True
        return False

    def _by_shape(self, text: str) -> list[str] | None:
        if self._shape is None:
            shapes = [_SHAPES.get(_KNOWN.get(t) or t, r"\S+") for t in self._titles]
            self._shape = re.compile(r"\s+".join(f"({s})" for s in shapes) + r"\Z")
        found = self._shape.match(text[:4096])
        return list(found.groups()) if found else None


_LOOKS_LIKE_A_START = re.compile(r"[\d.]+(?:[eE][-+]?\d+)?[num]?s(?:\s|\Z)")


def whole_ns(quantity: Quantity | None) -> tuple[int | None, float | None]:
    """Nanoseconds as an integer, half to even where the print is finer, and the twin."""
    if quantity is None:
        return None, None
    return round(quantity.value), exact_to_a_ns(quantity.pm)


def memory(text: str) -> str | None:
    """Pageable -> pageable; "-" -> None."""
    return text.lower() if text not in {"", "-"} else None
