"""GPU work of a trace: sums by name, collectives, and every operation when asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from nsw.readers.pytorch.kineto_collect import NONE
from nsw.tables import as_arrow
from nsw.tables.names import demangle, short_name

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.readers.pytorch.kineto_collect import Trace
    from nsw.tables import Row

KINDS = ("kernel", "memcpy", "memset")
_CHUNK = 50_000
_COPY = re.compile(r"\((\w+) -> (\w+)\)")
_COPY_OR_SET = re.compile(r"Mem(?:cpy|set) (?:\w+ )?\(\w[\w ]*(?: -> [\w ]+)?\)\Z")  # no function with parameters
_DTYPE_BYTES = {
    "Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Int": 4, "Long": 8, "Short": 2, "Byte": 1, "Char": 1, "Bool": 1,
    "Float8_e4m3fn": 1, "Float8_e5m2": 1,
}  # fmt: skip
_IDS = {
    "device": "device", "context": "context", "stream": "stream", "correlation": "correlation",
    "registers per thread": "registers", "graph id": "graph", "graph node id": "graph_node",
}  # fmt: skip
_SIZES = {"bytes": "bytes", "shared memory": "smem_bytes"}  # static and dynamic in one figure


def gpu_summary(trace: Trace) -> list[Row]:
    """A row a kernel, copy or memset name, most time first."""
    import numpy as np

    from nsw.readers.timeline.statistics import group, statistics, with_shares

    gpu = trace.gpu
    if not len(gpu.kind):
        return []
    kind, name, device, size = (np.asarray(a) for a in (gpu.kind, gpu.name, gpu.device, gpu.size))
    key = name * 4 + kind
    names = list(trace.names)
    grouped = group(key, np.asarray(gpu.duration))
    devices = {k: _only(device[key == k]) for k in grouped.keys} if len(np.unique(device)) > 1 else None
    one = _only(device)
    rows = []
    for i, k in enumerate(grouped.keys):
        row = named(names[k // 4]) | {"kind": KINDS[k % 4]} | statistics(grouped.of(i))
        row["device"] = devices[k] if devices else one
        if k % 4:
            moved = size[key == k]
            row["total_bytes"] = int(moved.sum()) if (moved != NONE).all() else None
        rows.append(row)
    return with_shares(rows)


def _only(devices: Any) -> int | None:
    return int(devices[0]) if devices[0] >= 0 and (devices == devices[0]).all() else None


def named(name: str) -> Row:
    """The name of a GPU row, demangled, and what to call it."""
    text = name.encode("utf-8", "replace").decode()  # JSON may hold half a character
    clear = demangle(text)
    mangled = {"mangled_name": text} if clear != text else {}
    short = clear if _COPY_OR_SET.match(clear) else short_name(clear)
    return {"name": clear, "short_name": short} | mangled


def communication(trace: Trace) -> list[Row]:
    """NCCL kernels by collective; bytes where each of them tells its elements and their type."""
    import numpy as np

    from nsw.readers.timeline.communication_by_name import nccl_operation
    from nsw.readers.timeline.statistics import statistics, with_shares

    operations = {number: nccl_operation(name) for name, number in trace.names.items() if "nccl" in name}
    found: dict[str, tuple[list[int], list[int | None]]] = {}
    for index, number in enumerate(trace.gpu.name):
        operation = operations.get(number)
        if operation is None or trace.gpu.kind[index] != 0:
            continue
        durations, sizes = found.setdefault(operation, ([], []))
        durations.append(trace.gpu.duration[index])
        sizes.append(_message_bytes(trace.collectives.get(index, {})))
    rows: list[Row] = []
    for operation, (durations, sizes) in found.items():
        row = {"library": "nccl", "name": operation} | statistics(np.sort(np.array(durations, np.int64)))
        known = [s for s in sizes if s is not None]
        row["total_bytes"] = sum(known) if len(known) == len(sizes) else None
        rows.append(row)
    return with_shares(rows)


def _message_bytes(args: dict[str, Any]) -> int | None:
    elements, each = args.get("In msg nelems"), _DTYPE_BYTES.get(str(args.get("dtype")))
    if each is None or not isinstance(elements, int) or not 0 <= elements < 2**53:
        return None
    return elements * each


class GpuTrace:
    """The rows of `gpu_trace`, as Arrow so that millions fit in memory."""

    def __init__(self) -> None:
        self.count = 0
        self._rows: list[Row] = []
        self._chunks: list[pa.Table] = []

    def add(self, event: dict[str, Any], kind: int, start: int, duration: int) -> None:
        """Take one event; times in ns."""
        args = event["args"] if isinstance(event.get("args"), dict) else {}
        row = named(event["name"]) | {"kind": KINDS[kind], "start_ns": start, "duration_ns": duration}
        for key, column in (_IDS | _SIZES).items():
            value = args.get(key)
            if isinstance(value, int) and 0 <= value < 2**63:
                row[column] = value
        for key in ("grid", "block"):
            extent = args.get(key)
            if (
                isinstance(extent, list)
                and len(extent) == 3
                and all(isinstance(e, int) and 0 <= e < 2**31 for e in extent)
            ):
                row |= dict(zip((f"{key}_x", f"{key}_y", f"{key}_z"), extent, strict=True))
        if kind == 1 and (copy := _COPY.search(event["name"])):
            row |= {"src_memory": copy[1].lower(), "dst_memory": copy[2].lower()}
        rate = args.get("memory bandwidth (GB/s)")
        if isinstance(rate, int | float) and 0 <= rate < 1e9:
            row["bytes_per_s"] = rate * 1e9
        self._rows.append(row)
        self.count += 1
        if len(self._rows) == _CHUNK:
            self._chunks.append(as_arrow("gpu_trace", self._rows))
            self._rows = []

    def table(self, start_pm: float | None, duration_pm: float | None, phases: list[str] | None = None) -> pa.Table:
        """The rows in order of start, which counts from the first of them.

        Args:
            start_pm: Half of what a start is rounded to, ns.
            duration_pm: The same of durations.
            phases: Of the rows, in the order that they came.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        table = pa.concat_tables([*self._chunks, as_arrow("gpu_trace", self._rows)])
        if phases is not None:
            at = table.schema.get_field_index("phase")
            table = table.set_column(at, table.schema.field(at), pa.array(phases, pa.string()))
        table = table.sort_by("start_ns")
        starts = table["start_ns"]
        table = table.set_column(
            table.schema.get_field_index("start_ns"), "start_ns", pc.subtract(starts, pc.min(starts))
        )
        for column, half in (("start_ns_pm", start_pm), ("duration_ns_pm", duration_pm)):
            values = pa.array([half] * table.num_rows, pa.float64())
            table = table.set_column(table.schema.get_field_index(column), column, values)
        return table
