"""What the GPUs did: kernels, copies, memsets, CUDA graphs traced as a whole, NCCL, Unified Memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from nsw.readers.nsys.export.calls import pid_of
from nsw.readers.nsys.export.collect import Collected, collect
from nsw.readers.nsys.export.facts import origin
from nsw.readers.nsys.export.phases import PARTS, phase_groups, phase_name
from nsw.readers.nsys.export.source import (
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
from nsw.readers.timeline.phases import nccl_operation
from nsw.readers.timeline.statistics import statistics, with_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.readers.nsys.export.phases import Split
    from nsw.readers.nsys.export.source import Source
    from nsw.readers.timeline.columns import IntArray
    from nsw.readers.timeline.statistics import Groups, Some
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
class GpuTables:
    """The tables of GPU work by name, and of the kernels the names by key."""

    found: dict[str, Collected] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    mangled_of: dict[str, str | None] = field(default_factory=dict)
    copies: dict[int, str] = field(default_factory=dict)
    decompressions: int = 0

    @property
    def nccl(self) -> list[int]:
        """The keys of NCCL's kernels."""
        return [key for key, name in self.names.items() if nccl_operation(name) is not None]


@dataclass(slots=True)
class GpuWork:
    """The GPU rows of a report, and what must be said of them.

    `summary` and `communication` are of the whole report; `by_phase` the same rows by process and phase, where
    there are phases.
    """

    summary: list[Row] = field(default_factory=list)
    communication: list[Row] = field(default_factory=list)
    by_phase: list[Row] = field(default_factory=list)
    graph_launches: int = 0
    graph_share: float | None = None  # % of the GPU time of the report
    decompressions: int = 0  # left out of all of these


def gpu_tables(source: Source) -> GpuTables:
    """Scan all GPU work."""
    graph = "graphId" if has_columns(source, GRAPH, "graphId") else "graphExecId"
    made = GpuTables(copies=copy_labels(source))
    for table, key, more in (
        (KERNEL, _name_column(source), ()),
        (MEMCPY, "copyKind", ("bytes",)),
        (MEMSET, "deviceId", ("bytes",)),
        (GRAPH, graph, ()),
    ):
        sized = more if has_columns(source, table, *more) else ()
        found = collect(
            source, table, key, distinct=("deviceId", "globalPid"), keep=("start", "correlationId", *sized),
            companion="mangledName" if table == KERNEL else None,
        )  # fmt: skip
        if found is not None:
            made.found[table] = found
    if KERNEL in made.found:
        mangled = {k: m for k, m in made.found[KERNEL].companions.items() if m != NULL}
        keys = list(made.found[KERNEL].companions)
        texts = source.strings([*keys, *mangled.values()])
        made.names = {k: texts.get(k, f"string {k}") for k in keys}
        # of kernels that share a name the last one's; they differ where a report has a clone of one
        made.mangled_of = {made.names[k]: texts.get(mangled.get(k, NULL)) for k in sorted(keys)}
    made.decompressions = sum(len(b["start"]) for b in source.scan(_DECOMPRESSION, ["start"]))
    return made


def gpu_work(tables: GpuTables, split: Split) -> GpuWork:
    """All GPU work by name, of the whole report and by phase.

    `time_pct` is the share of all GPU time of the report: kernels, copies, memsets and graphs together, as
    `nsys stats -r cuda_gpu_sum` has it; of a phase, of that of the process in this phase.

    Raises:
        TableFault: Sizes or durations are none.
    """
    work = GpuWork(decompressions=tables.decompressions)
    whole: list[Row] = []
    for table, found in tables.found.items():
        groups = phase_groups(found, split, "globalPid", sizes=_sizes(found))
        label, owner = _labels(tables, table), _owner(found)
        owners = split.owners(found, "globalPid")
        whole += [owner | _row(tables, table, name, some) for name, some in groups.merged(label).items()]
        for part, names in groups.by_part(label).items() if split.phased else ():
            origin = owners[part // PARTS] | {"phase": phase_name(part) or "all", "summary": "gpu_summary"}
            work.by_phase += [origin | _row(tables, table, name, some) for name, some in names.items()]
        if table == KERNEL:
            _add_communication(work, groups, tables, owner, owners, split)
    work.summary = with_shares(whole)
    graphs = [r for r in work.summary if r["kind"] == "graph"]
    work.graph_launches = sum(r["calls"] for r in graphs)
    if graphs and all(r["time_pct"] is not None for r in graphs):
        work.graph_share = sum(r["time_pct"] for r in graphs)
    return work


def _add_communication(
    work: GpuWork, groups: Groups, tables: GpuTables, owner: Row, owners: list[Row], split: Split
) -> None:
    operations = {key: nccl_operation(name) for key, name in tables.names.items()}
    for operation, some in groups.merged(operations.get).items():
        work.communication.append(owner | {"library": "nccl", "name": operation} | statistics(some.values))
    for part, names in groups.by_part(operations.get).items() if split.phased else ():
        origin = owners[part // PARTS] | {
            "phase": phase_name(part) or "all",
            "summary": "communication",
            "kind": "nccl",
        }
        work.by_phase += [
            origin | {"kind": "nccl", "name": operation, "short_name": operation} | statistics(some.values)
            for operation, some in names.items()
        ]


def um_summary(source: Source) -> list[Row]:
    """Unified Memory: migrations by direction, page faults of CPU and GPUs."""
    import numpy as np

    copies = _moved(source) if has_columns(source, MEMCPY, "copyKind", "bytes") else {}
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


def copy_labels(source: Source) -> dict[int, str]:
    """The words for each copyKind: those of the export where it has them."""
    rows = source.rows("ENUM_CUDA_MEMCPY_OPER", ["id", "label"])
    return COPY_KINDS | {i: t for i, t in rows if isinstance(i, int) and isinstance(t, str)}


def _labels(tables: GpuTables, table: str) -> Callable[[int], str]:
    """The name of each key of a table."""
    if table == KERNEL:
        return lambda key: tables.names.get(key, f"string {key}")
    if table == MEMCPY:
        return lambda key: f"[CUDA memcpy {tables.copies.get(key, f'kind {key}')}]"
    return (lambda _: "[CUDA memset]") if table == MEMSET else (lambda key: f"[CUDA graph {key}]")


_KINDS = {KERNEL: "kernel", MEMCPY: "memcpy", MEMSET: "memset", GRAPH: "graph"}


def _row(tables: GpuTables, table: str, name: str, some: Some) -> Row:
    from nsw.tables.names import short_name

    row: Row = {"kind": _KINDS[table], "name": name, "short_name": name, **statistics(some.values)}
    if table == KERNEL:
        row |= {"short_name": short_name(name), "mangled_name": tables.mangled_of.get(name)}
    elif table != GRAPH:
        row["total_bytes"] = None if some.size is None else float(some.size)
    return row


def _sizes(found: Collected) -> IntArray | None:
    if "bytes" not in found.kept:
        return None
    require_integers(found.table, found.kept, "bytes")
    total(found.table, found.kept["bytes"])
    return found.kept["bytes"]


def _moved(source: Source) -> dict[int, tuple[IntArray, IntArray]]:
    """Sizes in bytes and durations in ns of the copies of Unified Memory, by their kind."""
    import numpy as np

    parts: dict[int, list[tuple[IntArray, IntArray]]] = {}
    for batch in source.scan(MEMCPY, ["copyKind", "bytes", DURATION]):
        require_integers(MEMCPY, batch, "copyKind", "bytes", DURATION)
        for kind in _UNIFIED:
            if (mine := batch["copyKind"] == kind).any():
                parts.setdefault(kind, []).append((batch["bytes"][mine], batch[DURATION][mine]))
    return {
        kind: (np.concatenate([size for size, _ in found]), np.concatenate([took for _, took in found]))
        for kind, found in parts.items()
    }
