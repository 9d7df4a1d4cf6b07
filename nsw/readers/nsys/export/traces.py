"""Traces, one row an event, as Arrow tables; made only when asked for: they are as large as the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nsw.readers.nsys.export.phases import phase_name
from nsw.readers.nsys.export.source import (
    DURATION,
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    NULL,
    RUNTIME,
    Source,
    has_columns,
    require_integers,
)
from nsw.readers.nsys.export.summaries import copy_labels, origin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from nsw.readers.nsys.export.source import Batch
    from nsw.readers.timeline.statistics import IntArray

    Phases: TypeAlias = Callable[[str], IntArray | None]  # of a table, the part of each row

_MEMORY = ("pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown")
# column of the trace: column of the export
_ID_COLUMNS = {"device": "deviceId", "context": "contextId", "stream": "streamId", "correlation": "correlationId"}
_TIMES = {"start_ns": "start", "duration_ns": DURATION}
_LAUNCH = {
    "grid_x": "gridX", "grid_y": "gridY", "grid_z": "gridZ", "block_x": "blockX", "block_y": "blockY",
    "block_z": "blockZ", "registers": "registersPerThread", "graph": "graphId", "graph_node": "graphNodeId",
}  # fmt: skip
_MOVED = {"bytes": "bytes", "graph_node": "graphNodeId"}
_SHARED = {"static_smem_bytes": "staticSharedMemory", "dynamic_smem_bytes": "dynamicSharedMemory"}


def gpu_trace(source: Source, phases: Phases) -> pa.Table:
    """Every operation on a GPU, by start."""
    parts = [*_kernels(source, phases), *_copies(source, phases), *_memsets(source, phases), *_graphs(source, phases)]
    table = _by_start("gpu_trace", parts)
    return _constant(table, "device_name", origin(source).gpu_name)


def api_trace(source: Source, phases: Phases) -> pa.Table:
    """Every call of the CUDA runtime and driver, by start; names are those of api_summary."""
    from nsw.tables.names import api_name

    def extra_columns(batch: Batch) -> dict[str, Any]:
        return {"tid": _part(batch["globalTid"], 0), "name": _names(source, batch["nameId"], api_name)}

    columns = _TIMES | {"correlation": "correlationId", "return_value": "returnValue"}
    return _by_start("api_trace", _parts(source, RUNTIME, columns, ["nameId"], extra_columns, phases))


def _kernels(source: Source, phases: Phases) -> list[pa.Table]:
    from nsw.tables.names import short_name

    def extra_columns(batch: Batch) -> dict[str, Any]:
        return {
            "kind": "kernel",
            "name": _names(source, batch["demangledName"], str),
            "short_name": _names(source, batch["demangledName"], short_name),
            "mangled_name": _names(source, batch["mangledName"], str),
        }

    columns = _TIMES | _ID_COLUMNS | _LAUNCH | _SHARED
    return _parts(source, KERNEL, columns, ["demangledName", "mangledName"], extra_columns, phases)


def _copies(source: Source, phases: Phases) -> list[pa.Table]:
    labels = copy_labels(source)
    memory = dict(enumerate(_MEMORY))

    def extra_columns(batch: Batch) -> dict[str, Any]:
        names = _spell_distinct(batch["copyKind"], lambda k: f"[CUDA memcpy {labels.get(k, f'kind {k}')}]")
        return {
            "kind": "memcpy",
            "name": names,
            "short_name": names,
            "bytes_per_s": _speed(batch["bytes"], batch[DURATION]),
            "src_memory": _spell_distinct(batch["srcKind"], memory.get),
            "dst_memory": _spell_distinct(batch["dstKind"], memory.get),
        }

    return _parts(
        source, MEMCPY, _TIMES | _ID_COLUMNS | _MOVED, ["copyKind", "srcKind", "dstKind"], extra_columns, phases
    )


def _memsets(source: Source, phases: Phases) -> list[pa.Table]:
    def extra_columns(batch: Batch) -> dict[str, Any]:
        return {
            "kind": "memset",
            "name": "[CUDA memset]",
            "short_name": "[CUDA memset]",
            "bytes_per_s": _speed(batch["bytes"], batch[DURATION]),
            "dst_memory": _spell_distinct(batch["memKind"], dict(enumerate(_MEMORY)).get),
        }

    return _parts(source, MEMSET, _TIMES | _ID_COLUMNS | _MOVED, ["memKind"], extra_columns, phases)


def _graphs(source: Source, phases: Phases) -> list[pa.Table]:
    key = "graphId" if has_columns(source, GRAPH, "graphId") else "graphExecId"

    def extra_columns(batch: Batch) -> dict[str, Any]:
        names = _spell_distinct(batch[key], lambda k: f"[CUDA graph {k}]")
        return {"kind": "graph", "name": names, "short_name": names}

    return _parts(source, GRAPH, _TIMES | _ID_COLUMNS | {"graph": key}, [], extra_columns, phases)


def _parts(
    source: Source,
    table: str,
    columns: Mapping[str, str],
    extra: list[str],
    extra_columns: Callable[[Batch], dict[str, Any]],
    phases: Phases,
) -> list[pa.Table]:
    """The table's rows: `columns` renamed, what `extra_columns` makes of a batch, each row's process and phase."""
    if not has_columns(source, table, "start", "end"):
        return []
    name, owner = ("api_trace", "globalTid") if table == RUNTIME else ("gpu_trace", "globalPid")
    out: list[pa.Table] = []
    codes, done = phases(table), 0
    for batch in source.scan(table, [*dict.fromkeys([*columns.values(), owner, *extra])]):
        require_integers(table, batch, "start" if "start" in batch else DURATION, DURATION)
        arrays = (
            {column: batch[export_column] for column, export_column in columns.items()}
            | {"pid": _part(batch[owner], 24)}
            | extra_columns(batch)
        )
        if codes is not None:
            arrays["phase"] = _spell_distinct(codes[done : done + len(batch[DURATION])], phase_name)
        done += len(batch[DURATION])
        out.append(_table(name, arrays))
    return out


def _table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    rows = len(columns["start_ns"])
    arrays = []
    for field in arrow_schema(name):
        value = columns.get(field.name)
        if isinstance(value, np.ndarray):
            arrays.append(
                pa.array(value, mask=value == NULL).cast(field.type, safe=not pa.types.is_floating(field.type))
            )
        elif value is None or isinstance(value, str):
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
        else:
            arrays.append(value.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(name))


def _by_start(name: str, parts: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    table = pa.concat_tables(parts) if parts else arrow_schema(name).empty_table()
    return table.sort_by("start_ns")


def _constant(table: pa.Table, column: str, value: str | None) -> pa.Table:
    import pyarrow as pa

    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(index), pa.repeat(pa.scalar(value, pa.string()), len(table)))


def _names(source: Source, ids: IntArray, spell: Callable[[str], str]) -> Any:
    texts = source.strings([i for i in np.unique(ids).tolist() if i != NULL])
    return _spell_distinct(ids, lambda i: spell(texts[i]) if i in texts else (None if i == NULL else f"string {i}"))


def _spell_distinct(values: IntArray, spell: Callable[[int], str | None]) -> Any:
    """The spelling of each value, made once for each different one."""
    import pyarrow as pa

    distinct, inverse = np.unique(values, return_inverse=True)
    return pa.array([spell(v) for v in distinct.tolist()], pa.string()).take(pa.array(inverse))


def _part(ids: IntArray, shift: int) -> IntArray:
    return np.where(ids == NULL, NULL, (ids >> shift) & 0xFFFFFF)


def _speed(sizes: IntArray, durations: IntArray) -> Any:
    import pyarrow as pa

    has_speed = (sizes != NULL) & (durations > 0)
    return pa.array(sizes / np.where(has_speed, durations, 1) * 1e9, mask=~has_speed)
