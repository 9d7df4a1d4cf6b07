"""What the GPUs did: kernels, copies, memsets, CUDA graphs traced as a whole, NCCL, Unified Memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsw.readers.communication import nccl_operation
from nsw.readers.nsys_calls import pid_of
from nsw.readers.nsys_collect import Collected, collect
from nsw.readers.nsys_facts import origin
from nsw.readers.nsys_source import (
    DURATION,
    GRAPH,
    KERNEL,
    MEMCPY,
    MEMSET,
    NULL,
    has_columns,
    require_integers,
    total,
)
from nsw.readers.statistics import merge, statistics, with_shares

if TYPE_CHECKING:
    from nsw.readers.nsys_source import IntArray, Source
    from nsw.tables import Row

# ENUM_CUDA_MEMCPY_OPER as exports from 2022.4 on spell it; older ones have no such table.
COPY_KINDS = {
    0: "Unknown", 1: "Host-to-Device", 2: "Device-to-Host", 3: "Host-to-Array", 4: "Array-to-Host",
    5: "Array-to-Array", 6: "Array-to-Device", 7: "Device-to-Array", 8: "Device-to-Device", 9: "Host-to-Host",
    10: "Peer-to-Peer", 11: "Unified Host-to-Device", 12: "Unified Device-to-Host",
    13: "Unified Device-to-Device",
}  # fmt: skip
_UNIFIED = (11, 12, 13)
_DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"  # by an engine of its own, since 2025


@dataclass(slots=True)
class GpuWork:
    """The GPU rows of a report, and what must be said of them."""

    summary: list[Row] = field(default_factory=list)
    communication: list[Row] = field(default_factory=list)
    graph_launches: int = 0
    graph_share: float | None = None  # % of the GPU time of the report
    decompressions: int = 0  # left out of all of these


def gpu_work(source: Source) -> GpuWork:
    """All GPU work by name.

    `time_pct` is the share of all GPU time of the report: kernels, copies, memsets and graphs together, as
    `nsys stats -r cuda_gpu_sum` has it.
    """
    work = GpuWork()
    kernels = collect(source, KERNEL, _name_column(source), distinct=("deviceId", "globalPid"), companion="mangledName")
    if kernels is not None:
        _add_kernels(source, kernels, work)
    work.summary += _copies(source) + _memsets(source) + _graphs(source)
    work.summary = with_shares(work.summary)
    graphs = [r for r in work.summary if r["kind"] == "graph"]
    work.decompressions = sum(len(b["start"]) for b in source.scan(_DECOMPRESSION, ["start"]))
    work.graph_launches = sum(r["calls"] for r in graphs)
    if graphs and all(r["time_pct"] is not None for r in graphs):
        work.graph_share = sum(r["time_pct"] for r in graphs)
    return work


def um_summary(source: Source) -> list[Row]:
    """Unified Memory: migrations by direction, page faults of CPU and GPUs."""
    import numpy as np

    copies = (
        _sized(source, MEMCPY, "copyKind", only=_UNIFIED) if has_columns(source, MEMCPY, "copyKind", "bytes") else {}
    )
    rows = [
        {
            "name": COPY_KINDS[kind].removeprefix("Unified "),
            "calls": len(sizes),
            "total_bytes": float(total(MEMCPY, sizes)),
            "avg_bytes": total(MEMCPY, sizes) / len(sizes),
            "min_bytes": float(sizes.min()),
            "max_bytes": float(sizes.max()),
            "total_ns": float(durations.sum()),
        }
        for kind, (sizes, durations) in sorted(copies.items())
    ]
    cpu = [b["start"] for b in source.scan("CUDA_UM_CPU_PAGE_FAULT_EVENTS", ["start"])]
    if cpu:
        rows.append({"name": "CPU page faults", "calls": sum(len(c) for c in cpu)})
    table = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"
    gpu = list(source.scan(table, ["numberOfPageFaults", DURATION]))
    if gpu:
        for batch in gpu:
            require_integers(table, batch, "numberOfPageFaults", DURATION)
        faults, took = (np.concatenate([b[c] for b in gpu]) for c in ("numberOfPageFaults", DURATION))
        rows.append({"name": "GPU page faults", "calls": total(table, faults), "total_ns": float(took.sum())})
    device_name = origin(source).gpu_name
    return [r | {"device_name": device_name} for r in rows]


def _name_column(source: Source) -> str:
    return "demangledName" if has_columns(source, KERNEL, "demangledName") else "shortName"


def _owner(found: Collected) -> dict[str, Any]:
    return {"pid": pid_of(found, "globalPid"), "device": found.only("deviceId")}


def _add_kernels(source: Source, found: Collected, work: GpuWork) -> None:
    from nsw.tables.names import short_name

    mangled_ids = {k: m for k, m in found.companions.items() if m != NULL}
    texts = source.strings([*found.grouped.keys, *mangled_ids.values()])
    names = [texts.get(k, f"string {k}") for k in found.grouped.keys]
    mangled = {n: texts.get(mangled_ids.get(k, NULL)) for k, n in zip(found.grouped.keys, names, strict=True)}
    owner = _owner(found)
    merged = merge(found.grouped, names)
    for name, values in merged.items():
        own = {"kind": "kernel", "name": name, "short_name": short_name(name), "mangled_name": mangled[name]}
        work.summary.append(owner | own | statistics(values))
    operations = [nccl_operation(n) for n in names]
    for operation, values in merge(found.grouped, operations).items():
        if operation is not None:
            work.communication.append(owner | {"library": "nccl", "name": operation} | statistics(values))


def copy_labels(source: Source) -> dict[int, str]:
    """The words for each copyKind: those of the export where it has them."""
    rows = source.rows("ENUM_CUDA_MEMCPY_OPER", ["id", "label"])
    return COPY_KINDS | {i: t for i, t in rows if isinstance(i, int) and isinstance(t, str)}


def _copies(source: Source) -> list[Row]:
    found = collect(source, MEMCPY, "copyKind", distinct=("deviceId", "globalPid"))
    if found is None:
        return []
    labels = copy_labels(source)
    sizes = _sized(source, MEMCPY, "copyKind") if has_columns(source, MEMCPY, "bytes") else {}
    merged = merge(found.grouped, [f"[CUDA memcpy {labels.get(k, f'kind {k}')}]" for k in found.grouped.keys])
    moved: dict[str, int] = {}
    for key in found.grouped.keys:
        if key in sizes:
            name = f"[CUDA memcpy {labels.get(key, f'kind {key}')}]"
            moved[name] = moved.get(name, 0) + total(MEMCPY, sizes[key][0])
    return [_memory_row(found, "memcpy", name, values, moved.get(name)) for name, values in merged.items()]


def _memsets(source: Source) -> list[Row]:
    found = collect(source, MEMSET, "deviceId", distinct=("deviceId", "globalPid"))
    if found is None:
        return []
    sizes = _sized(source, MEMSET, "deviceId") if has_columns(source, MEMSET, "bytes") else {}
    written = sum(total(MEMSET, s) for s, _ in sizes.values()) if sizes else None
    name = "[CUDA memset]"
    merged = merge(found.grouped, [name] * len(found.grouped.keys))
    return [_memory_row(found, "memset", name, merged[name], written)]


def _memory_row(found: Collected, kind: str, name: str, values: IntArray, size: int | None) -> Row:
    own = {"kind": kind, "name": name, "short_name": name}
    return _owner(found) | own | statistics(values) | {"total_bytes": None if size is None else float(size)}


def _graphs(source: Source) -> list[Row]:
    key = "graphId" if has_columns(source, GRAPH, "graphId") else "graphExecId"
    found = collect(source, GRAPH, key, distinct=("deviceId", "globalPid"))
    if found is None:
        return []
    names = [f"[CUDA graph {k}]" for k in found.grouped.keys]
    return [
        _owner(found) | {"kind": "graph", "name": n, "short_name": n} | statistics(v)
        for n, v in merge(found.grouped, names).items()
    ]


def _sized(
    source: Source, table: str, key: str, *, only: tuple[int, ...] | None = None
) -> dict[int, tuple[IntArray, IntArray]]:
    """Sizes in bytes and durations in ns by key, in the order of the table."""
    import numpy as np

    parts: dict[int, list[tuple[IntArray, IntArray]]] = {}
    for batch in source.scan(table, [key, "bytes", DURATION]):
        require_integers(table, batch, key, "bytes", DURATION)
        for value in np.unique(batch[key]).tolist():
            if only is None or value in only:
                mine = batch[key] == value
                parts.setdefault(value, []).append((batch["bytes"][mine], batch[DURATION][mine]))
    return {
        value: (np.concatenate([p[0] for p in found]), np.concatenate([p[1] for p in found]))
        for value, found in parts.items()
    }
