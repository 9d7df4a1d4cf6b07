"""What an nsys export holds in sum: the GPUs' work, calls that take time on the host, the facts of the report.

Of the environment and the capture's settings only the entries named here are read: both hold the user's environment
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nsw.readers.nsys import size_is_of_sent_bytes
from nsw.readers.nsys.export import source as export
from nsw.readers.nsys.export.nvtx import Lookup
from nsw.readers.nsys.export.phases import PARTS, HostCalls, Split, phase_groups, phase_name
from nsw.readers.text.known_words import meaning_by_word
from nsw.readers.timeline.calls import LOCK, Calls, call_kinds, time_order
from nsw.readers.timeline.columns import column_of_codes, many_rows
from nsw.readers.timeline.phases import nccl_operation
from nsw.readers.timeline.statistics import (
    Durations,
    Groups,
    IntArray,
    duration_statistics,
    group_by_key,
    merge_by_label,
    with_shares,
)
from nsw.tables import Row
from nsw.tables.names import api_name_without_version, short_name

if TYPE_CHECKING:
    import pyarrow as pa

Phases: TypeAlias = Callable[[str], IntArray | None]  # of a table, the part of each row

# ENUM_CUDA_MEMCPY_OPER as exports from 2022.4 on spell it; older ones have no such table.
COPY_KINDS = {
    0: "Unknown", 1: "Host-to-Device", 2: "Device-to-Host", 3: "Host-to-Array", 4: "Array-to-Host",
    5: "Array-to-Array", 6: "Array-to-Device", 7: "Device-to-Array", 8: "Device-to-Device", 9: "Host-to-Host",
    10: "Peer-to-Peer", 11: "Unified Host-to-Device", 12: "Unified Device-to-Host",
    13: "Unified Device-to-Device",
}  # fmt: skip
_UNIFIED = (11, 12, 13)
_GRID = ("gridX", "gridY", "gridZ")
_USUALLY = 0.9  # of its launches: a kernel has a successor
_MANY_NAMES = 2000  # whose pairs take 32 MB
_DECOMPRESSION = "CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS"  # by an engine of its own, since 2025


@dataclass(slots=True)
class GpuTables:
    """The tables of GPU work by name, and of the kernels the names by key."""

    collected: dict[str, export.Collected] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    mangled_of: dict[str, str | None] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)  # of each kernel's largest launch
    successors: dict[str, str] = field(default_factory=dict)  # the kernel that follows most launches of each
    copies: dict[int, str] = field(default_factory=dict)
    decompressions: int = 0

    def keys_where(self, is_chosen: Callable[[str], Any]) -> list[int]:
        """The keys of the kernels whose names are chosen."""
        return [key for key, name in self.names.items() if is_chosen(name)]


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


def gpu_tables(source: export.Source) -> GpuTables:
    """Scan all GPU work."""
    graph = "graphId" if export.has_columns(source, export.GRAPH, "graphId") else "graphExecId"
    tables = GpuTables(copies=copy_labels(source))
    name = "demangledName" if export.has_columns(source, export.KERNEL, "demangledName") else "shortName"
    for table, key, more_columns in (
        (export.KERNEL, name, ()),
        (export.MEMCPY, "copyKind", ("bytes", "srcKind", "dstKind")),
        (export.MEMSET, "deviceId", ("bytes",)),
        (export.GRAPH, graph, ()),
    ):
        more = [column for column in ("streamId", *more_columns) if export.has_columns(source, table, column)]
        has_grid = table == export.KERNEL and export.has_columns(source, table, *_GRID)
        collected = export.collect_durations(
            source, table, key, distinct=("deviceId", "globalPid"), keep=("start", "correlationId", *more),
            derive={"blocks": (_GRID, _count_blocks)} if has_grid else None,
            companion="mangledName" if table == export.KERNEL else None,
        )  # fmt: skip
        if collected is not None:
            tables.collected[table] = collected
    if export.KERNEL in tables.collected:
        mangled = {k: m for k, m in tables.collected[export.KERNEL].companions.items() if m != export.NULL}
        keys = list(tables.collected[export.KERNEL].companions)
        texts = source.strings([*keys, *mangled.values()])
        tables.names = {k: texts.get(k, f"string {k}") for k in keys}
        # of kernels that share a name the last one's; they differ where a report has a clone of one
        tables.mangled_of = {tables.names[k]: texts.get(mangled.get(k, export.NULL)) for k in sorted(keys)}
        _add_launch_details(tables, tables.collected[export.KERNEL])
    tables.decompressions = sum(len(b["start"]) for b in source.scan(_DECOMPRESSION, ["start"]))
    return tables


def _add_launch_details(tables: GpuTables, kernels: export.Collected) -> None:
    """Add how many blocks each kernel has, and which kernel follows it on the GPU."""
    keys = np.array(sorted(kernels.companions))
    names = [tables.names[key] for key in keys.tolist()]
    code_of, blocks, start = Lookup(keys, np.arange(len(keys))), kernels.columns.get("blocks"), kernels.columns["start"]
    order = time_order(start)
    largest = np.zeros(len(keys), np.int64)
    pairs = np.zeros(len(keys) ** 2 if len(keys) <= _MANY_NAMES else 0, np.int64)
    for rows in many_rows(len(kernels.keys)):
        near = slice(rows.start, rows.stop + 1)  # with the kernel behind the last
        near = near if isinstance(order, slice) else order[near]
        codes = code_of.find(kernels.keys[near]).astype(np.int64)
        if blocks is not None:
            np.maximum.at(largest, codes, blocks[near].astype(np.int64))
        if len(pairs):
            pairs += np.bincount(codes[:-1] * len(keys) + codes[1:], minlength=len(pairs))
    if blocks is not None:
        for name, count in zip(names, largest.tolist(), strict=True):
            tables.blocks[name] = max(count, tables.blocks.get(name, 0))
    of_first = pairs.reshape(-1, len(keys))
    often = of_first.max(axis=1, initial=0) >= np.maximum(_USUALLY * of_first.sum(axis=1), 1)
    for code in np.flatnonzero(often).tolist():
        tables.successors[names[code]] = names[int(of_first[code].argmax())]


def _count_blocks(batch: export.Batch) -> IntArray:
    """How many blocks of threads each kernel of a batch has."""
    x, y, z = (batch[axis] for axis in _GRID)
    return x * y * z


def gpu_work(tables: GpuTables, split: Split) -> GpuWork:
    """All GPU work by name, of the whole report and by phase.

    `time_pct` is the share of all GPU time of the report: kernels, copies, memsets and graphs together, as
    `nsys stats -r cuda_gpu_sum` has it; of a phase, of that of the process in this phase.

    Raises:
        TableFault: Sizes or durations are none.
    """
    work = GpuWork(decompressions=tables.decompressions)
    rows: list[Row] = []
    for table, collected in tables.collected.items():
        groups = phase_groups(collected, split, "globalPid", sizes=_byte_sizes(collected))
        label = _name_of_key(tables, table)
        owner: Row = {"pid": pid_of(collected, "globalPid"), "device": collected.shared_device()}
        owners = split.row_owners(collected)
        rows += [
            owner | _summary_row(tables, table, name, durations)
            for name, durations in groups.durations_by_label(label).items()
        ]
        for part, names in groups.by_part(label).items() if split.phased else ():
            origin = owners[part // PARTS] | {"phase": phase_name(part) or "all", "summary": "gpu_summary"}
            work.by_phase += [
                origin | _summary_row(tables, table, name, durations) for name, durations in names.items()
            ]
        if table == export.KERNEL:
            _add_communication(work, groups, tables, owner, owners, split)
    work.summary = with_shares(rows)
    graphs = [r for r in work.summary if r["kind"] == "graph"]
    work.graph_launches = sum(r["calls"] for r in graphs)
    if graphs and all(r["time_pct"] is not None for r in graphs):
        work.graph_share = sum(r["time_pct"] for r in graphs)
    return work


def _add_communication(
    work: GpuWork, groups: Groups, tables: GpuTables, owner: Row, owners: list[Row], split: Split
) -> None:
    operations = {key: nccl_operation(name) for key, name in tables.names.items()}
    for operation, durations in groups.durations_by_label(operations.get).items():
        work.communication.append(
            owner | {"library": "nccl", "name": operation} | duration_statistics(durations.values)
        )
    for part, names in groups.by_part(operations.get).items() if split.phased else ():
        origin = owners[part // PARTS] | {"phase": phase_name(part) or "all", "summary": "communication"}
        work.by_phase += [
            origin
            | {"kind": "nccl", "name": operation, "short_name": operation}
            | duration_statistics(durations.values)
            for operation, durations in names.items()
        ]


def um_summary(source: export.Source) -> list[Row]:
    """Unified Memory: migrations by direction, page faults of CPU and GPUs."""
    copies = _unified_copies(source) if export.has_columns(source, export.MEMCPY, "copyKind", "bytes") else {}
    rows = [
        {
            "name": COPY_KINDS[kind].removeprefix("Unified "),
            "calls": len(sizes),
            "total_bytes": float(export.checked_total(export.MEMCPY, sizes)),
            "avg_bytes": export.checked_total(export.MEMCPY, sizes) / len(sizes),
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
    gpu = list(source.scan(table, ["numberOfPageFaults", export.DURATION]))
    if gpu:
        for batch in gpu:
            export.require_integers(table, batch, "numberOfPageFaults", export.DURATION)
        faults, took = (np.concatenate([b[c] for b in gpu]) for c in ("numberOfPageFaults", export.DURATION))
        rows.append(
            {"name": "GPU page faults", "calls": export.checked_total(table, faults), "total_ns": float(took.sum())}
        )
    device_name = report_origin(source).gpu_name
    return [r | {"device_name": device_name} for r in rows]


def copy_labels(source: export.Source) -> dict[int, str]:
    """The words for each copyKind: those of the export where it has them."""
    rows = source.rows("ENUM_CUDA_MEMCPY_OPER", ["id", "label"])
    return COPY_KINDS | {i: t for i, t in rows if isinstance(i, int) and isinstance(t, str)}


def _name_of_key(tables: GpuTables, table: str) -> Callable[[int], str]:
    """The name of each key of a table."""
    if table == export.KERNEL:
        return lambda key: tables.names.get(key, f"string {key}")
    if table == export.MEMCPY:
        return lambda key: f"[CUDA memcpy {tables.copies.get(key, f'kind {key}')}]"
    return (lambda _: "[CUDA memset]") if table == export.MEMSET else (lambda key: f"[CUDA graph {key}]")


_KINDS = {export.KERNEL: "kernel", export.MEMCPY: "memcpy", export.MEMSET: "memset", export.GRAPH: "graph"}


def _summary_row(tables: GpuTables, table: str, name: str, durations: Durations) -> Row:
    row: Row = {"kind": _KINDS[table], "name": name, "short_name": name, **duration_statistics(durations.values)}
    if table == export.KERNEL:
        row |= {"short_name": short_name(name), "mangled_name": tables.mangled_of.get(name)}
        row |= {"blocks": tables.blocks.get(name), "successor": tables.successors.get(name)}
    elif table != export.GRAPH:
        row["total_bytes"] = None if durations.size is None else float(durations.size)
    return row


def _byte_sizes(collected: export.Collected) -> IntArray | None:
    if "bytes" not in collected.columns:
        return None
    export.require_integers(collected.table, collected.columns, "bytes")
    export.checked_total(collected.table, collected.columns["bytes"])
    return collected.columns["bytes"]


def _unified_copies(source: export.Source) -> dict[int, tuple[IntArray, IntArray]]:
    """Sizes in bytes and durations in ns of the copies of Unified Memory, by their kind."""
    parts: dict[int, list[tuple[IntArray, IntArray]]] = {}
    for batch in source.scan(export.MEMCPY, ["copyKind", "bytes", export.DURATION]):
        export.require_integers(export.MEMCPY, batch, "copyKind", "bytes", export.DURATION)
        for kind in _UNIFIED:
            if (selected := batch["copyKind"] == kind).any():
                parts.setdefault(kind, []).append((batch["bytes"][selected], batch[export.DURATION][selected]))
    return {
        kind: (np.concatenate([size for size, _ in batches]), np.concatenate([took for _, took in batches]))
        for kind, batches in parts.items()
    }


_OPENACC = {
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": "data",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "compute",
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": "other",
}
# marks of nsys itself among the calls, which `nsys stats` leaves out too
_NO_CALLS = frozenset({"OS runtime libraries profiling started", "OS runtime libraries profiling finished"})
_OPENMP = "OPENMP_EVENT_KIND_"  # a table each: parallel regions, work shares, waits for a mutex ...
_MPI = ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")


def api_calls(source: export.Source) -> export.Collected | None:
    """Scan the calls of the CUDA runtime and driver; None where there are none."""
    return export.collect_durations(
        source, export.RUNTIME, "nameId", distinct=("globalTid",), keep=("start", "correlationId")
    )


def host_calls(source: export.Source, calls: export.Collected | None) -> HostCalls:
    """The calls of CUDA and of the system that tell what a host does while its GPU waits."""
    system = export.collect_durations(source, "OSRT_API", "nameId", distinct=("globalTid",), keep=("start",))
    kept = [collected for collected in (calls, system) if collected is not None]
    callers = {} if calls is None else dict.fromkeys(calls.distinct["globalTid"])  # others only wait in the background
    parts, locking = [], np.empty(0, np.int64)
    for collected in kept:
        keys = np.unique(collected.keys)
        texts = source.strings(keys.tolist())
        kind_of_key = call_kinds([texts.get(k, "") for k in keys.tolist()], of_system=collected is system)
        kinds = Lookup(keys, kind_of_key).find(collected.keys)
        threads, thread = np.array(collected.distinct["globalTid"]), collected.codes["globalTid"]
        if collected is system:
            locking = threads[np.unique(thread[kinds == LOCK])]
        known = (kinds >= 0) & np.isin(threads, list(callers))[thread]
        rows = slice(None) if known.all() else np.flatnonzero(known)
        processes = column_of_codes([export.process_of(v) for v in threads.tolist()], thread)[rows]
        parts.append((collected.columns["start"][rows], collected.durations[rows], kinds[rows], processes))
    if calls is None:
        return HostCalls(None, np.empty(0, np.int64), locking)
    columns = parts[0] if len(parts) == 1 else [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = time_order(columns[0])
    start, duration, kind, processes = (column[order] for column in columns)
    return HostCalls(Calls(start, duration, kind), processes, locking)


def api_summary(source: export.Source, calls: export.Collected, split: Split) -> tuple[list[Row], list[Row]]:
    """Summarise the calls of the CUDA runtime and driver by name; versions of one call (`_v3020`) are one row.

    Args:
        source: The export.
        calls: The rows of the table of calls.
        split: The processes and their phases.

    Returns:
        The rows of the report, and the same by process and phase, without shares, where there are phases.
    """
    groups = phase_groups(calls, split, "globalTid")
    texts = source.strings(list(dict.fromkeys(groups.keys)))
    # a name that StringIds lacks stays apart from all others
    names = {key: api_name_without_version(texts.get(key, f"string {key}")) for key in groups.keys}
    pid = pid_of(calls, "globalTid")
    rows = [
        {"pid": pid, "name": name, **duration_statistics(durations.values)}
        for name, durations in groups.durations_by_label(names.get).items()
    ]
    owners = split.row_owners(calls)
    by_phase = [
        owners[part // PARTS]
        | {"phase": phase_name(part) or "all", "summary": "api_summary", "name": name, "short_name": name}
        | duration_statistics(durations.values)
        for part, of_part in (groups.by_part(names.get).items() if split.phased else ())
        for name, durations in of_part.items()
    ]
    return with_shares(rows), by_phase


def osrt_summary(source: export.Source) -> list[Row]:
    """Calls of the operating system's runtime."""
    collected = export.collect_durations(source, "OSRT_API", "nameId", distinct=("globalTid",))
    if collected is None:
        return []
    pid = pid_of(collected, "globalTid")
    calls = merge_by_label(collected.grouped, _key_names(source, collected)).items()
    return with_shares(
        [{"pid": pid, "name": name, **duration_statistics(v)} for name, v in calls if name not in _NO_CALLS]
    )


def openacc_summary(source: export.Source) -> list[Row]:
    """OpenACC events by construct, source file and line."""
    rows: list[Row] = []
    for table, kind in _OPENACC.items():
        if export.has_columns(source, table, "start", "end", "nameId"):
            rows += [r | {"kind": kind} for r in _construct_rows(source, table)]
    return with_shares(rows)


def openmp_summary(source: export.Source) -> list[Row]:
    """OpenMP events by name; two tables that give an event one name make one row."""
    values: dict[str, list[IntArray]] = {}
    for table in sorted(t for t in source.columns if t.startswith(_OPENMP)):
        collected = export.collect_durations(source, table, "nameId")
        if collected is None:
            continue
        for index, name in enumerate(_key_names(source, collected)):
            values.setdefault(name, []).append(collected.grouped.values_of(index))
    return with_shares([{"name": name, **duration_statistics(_join_sorted(parts))} for name, parts in values.items()])


def mpi_summary(source: export.Source) -> tuple[list[Row], int]:
    """MPI calls by name, with the bytes that were sent where MPI said so; without shares.

    Returns:
        The rows, and how many calls were left out since the trace ended before them.
    """
    unended = 0
    values: dict[str, list[IntArray]] = {}
    sizes: dict[str, int] = {}
    for table in _MPI:
        collected = export.collect_durations(source, table, "textId", may_be_unended=True)
        if collected is None:
            continue
        unended += collected.unended
        sent = _bytes_by_key(source, table)
        for index, (key, name) in enumerate(zip(collected.grouped.keys, _key_names(source, collected), strict=True)):
            values.setdefault(name, []).append(collected.grouped.values_of(index))
            if key in sent and size_is_of_sent_bytes(name):
                sizes[name] = sizes.get(name, 0) + sent[key]
    rows: list[Row] = [
        {
            "library": "mpi",
            "name": name,
            **duration_statistics(_join_sorted(parts)),
            "total_bytes": float(sizes[name]) if name in sizes else None,
        }
        for name, parts in values.items()
    ]
    return rows, unended


def pid_of(collected: export.Collected, column: str) -> int | None:
    """The process id that all rows share; None when there are several.

    Args:
        collected: The rows of a table.
        column: The column of serialized global ids, one of those collected as `distinct`.
    """
    pids = {None if v == export.NULL else export.process_of(v) for v in collected.distinct[column]}
    return pids.pop() if len(pids) == 1 else None


def _key_names(source: export.Source, collected: export.Collected) -> list[str]:
    """The name of each key; one that StringIds lacks stays apart from all others."""
    names = source.strings(collected.grouped.keys)
    return [names.get(key, f"string {key}") for key in collected.grouped.keys]


def _construct_rows(source: export.Source, table: str) -> list[Row]:
    constructs: dict[tuple[int, int, int], int] = {}
    keys: list[IntArray] = []
    durations: list[IntArray] = []
    for batch in source.scan(table, ["nameId", "srcFile", "lineNo", export.DURATION]):
        export.require_integers(table, batch, "nameId", export.DURATION)
        triples = zip(*(batch[c].tolist() for c in ("nameId", "srcFile", "lineNo")), strict=True)
        keys.append(np.array([constructs.setdefault(t, len(constructs)) for t in triples], np.int64))
        durations.append(batch[export.DURATION])
    if not keys:
        return []
    texts = source.strings([i for name, file, _ in constructs for i in (name, file) if i != export.NULL])
    labels = [_construct_name(texts, *t) for t in constructs]
    try:
        grouped = group_by_key(np.concatenate(keys), np.concatenate(durations))
    except OverflowError as fault:
        raise export.TableFault(table, str(fault)) from fault
    merged = merge_by_label(grouped, [labels[k] for k in grouped.keys])
    return [{"name": name, **duration_statistics(values)} for name, values in merged.items()]


def _construct_name(texts: dict[int, str], name: int, file: int, line: int) -> str:
    construct = texts.get(name, f"string {name}")
    return f"{construct}@{texts[file]}:{line}" if file in texts else construct


def _bytes_by_key(source: export.Source, table: str) -> dict[int, int]:
    sizes: dict[int, int] = {}
    if not export.has_columns(source, table, "size", "textId"):
        return sizes
    columns = ["textId", "size", "end"]
    for scanned in source.scan(table, columns):
        batch = {name: values[scanned["end"] != export.NULL] for name, values in scanned.items()}
        for key, size in zip(batch["textId"].tolist(), batch["size"].tolist(), strict=True):
            if size != export.NULL:
                sizes[key] = sizes.get(key, 0) + size
    return sizes


def _join_sorted(parts: list[IntArray]) -> IntArray:
    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


_GPU_FIGURES = (
    # column, fact, unit
    ("smCount", "gpu_sm_count", None),
    ("clockRate", "gpu_clock_hz", "Hz"),
    ("totalMemory", "gpu_memory_bytes", "byte"),
    ("memoryBandwidth", "gpu_memory_bandwidth_bytes_per_s", "byte/s"),
    ("l2CacheSize", "gpu_l2_bytes", "byte"),
)
_ENVIRONMENT = meaning_by_word("nsys environment")


@dataclass(frozen=True, slots=True)
class Origin:
    """What all rows of a report share, where it is the same for all."""

    host: str | None = None
    rank: int | None = None
    gpu_name: str | None = None


def fact_rows(source: export.Source) -> list[Row]:
    """One row a fact; GPU facts are a row a GPU (column `device`: CUDA's own number) where GPUs differ."""
    environment = _environment_values(source)
    rows = _gpu_fact_rows(source)
    rows += [_text_fact(key, environment[name]) for name, key in _ENVIRONMENT.items() if environment.get(name)]
    cuda = environment.get("CudaDriverVersion", "")
    if cuda.isdecimal() and int(cuda) > 0:  # 12040: CUDA 12.4
        rows.append(_text_fact("cuda_driver_version", f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}"))
    for (duration,) in source.rows("ANALYSIS_DETAILS", ["duration"], at_most=1):
        if isinstance(duration, int):
            rows.append(_number_fact("duration_ns", duration, "ns"))
    for (utc,) in source.rows("TARGET_INFO_SESSION_START_TIME", ["utcTime"], at_most=1):
        if isinstance(utc, str):
            rows.append(_text_fact("capture_time_utc", utc))
    meta = metadata(source)
    for name, key in (("EXPORT_PRODUCT_VERSION", "nsys_version"), ("EXPORT_SCHEMA_VERSION", "nsys_schema_version")):
        if name in meta:
            rows.append(_text_fact(key, meta[name]))
    return rows


def metadata(source: export.Source) -> dict[str, str]:
    """The export's own entries, whatever the table is called; empty before 2022."""
    pairs = source.rows("META_DATA_EXPORT", ["name", "value"]) or source.rows("EXPORT_META_DATA", ["name", "value"])
    return {n: v for n, v in pairs if isinstance(n, str) and isinstance(v, str)}


def report_origin(source: export.Source) -> Origin:
    """Host, rank and GPU name, each None where the report has none or several."""
    hosts = {v for n, v in _environment_values(source).items() if n == "Hostname" and v}
    ranks = {r for (r,) in source.rows("MPI_RANKS", ["rank"]) if isinstance(r, int)}
    gpus = {n for (n,) in source.rows("TARGET_INFO_GPU", ["name"]) if isinstance(n, str)}
    return Origin(_single_or_none(hosts), _single_or_none(ranks), _single_or_none(gpus))


def cuda_contexts(source: export.Source) -> dict[int | None, list[int]]:
    """By process the devices on which it has a CUDA context; empty where the export does not tell."""
    found: dict[int | None, list[int]] = {}
    for process, device in source.rows("TARGET_INFO_CUDA_CONTEXT_INFO", ["processId", "deviceId"]):
        if isinstance(process, int) and isinstance(device, int) and device >= 0:
            found.setdefault(process, []).append(device)
    return found


def _single_or_none(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None


def _environment_values(source: export.Source) -> dict[str, str]:
    names = {*_ENVIRONMENT, "CudaDriverVersion"}
    rows = source.rows("TARGET_INFO_SYSTEM_ENV", ["name", "value"])
    return {n: v for n, v in rows if n in names and isinstance(v, str)}


def _gpu_fact_rows(source: export.Source) -> list[Row]:
    columns = ["name", "cuDevice", "computeMajor", "computeMinor", *(c for c, _, _ in _GPU_FIGURES)]
    gpus = source.rows("TARGET_INFO_GPU", columns)
    if not gpus:
        return []
    described = [_facts_of_gpu(dict(zip(columns, gpu, strict=True))) for gpu in gpus]
    count = _number_fact("gpu_count", len(gpus), None)
    if all(d == described[0] for d in described):
        return [count, *described[0]]
    devices = [gpu[1] if isinstance(gpu[1], int) else None for gpu in gpus]
    return [count, *(row | {"device": n} for n, rows in zip(devices, described, strict=True) for row in rows)]


def _facts_of_gpu(gpu: dict[str, Any]) -> list[Row]:
    rows = [_text_fact("gpu_name", gpu["name"])] if isinstance(gpu["name"], str) else []
    if isinstance(gpu["computeMajor"], int) and isinstance(gpu["computeMinor"], int):
        rows.append(_text_fact("gpu_compute_capability", f"{gpu['computeMajor']}.{gpu['computeMinor']}"))
    # a figure that nsys could not find out is 0 there
    rows += [_number_fact(key, gpu[c], unit) for c, key, unit in _GPU_FIGURES if isinstance(gpu[c], int) and gpu[c] > 0]
    return rows


def _text_fact(key: str, text: str) -> Row:
    return {"key": key, "text": text}


def _number_fact(key: str, value: float, unit: str | None) -> Row:
    return {"key": key, "value": float(value), "unit": unit}


_MEMORY = ("pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown")
# column of the trace: column of the export
_ID_COLUMNS = {"device": "deviceId", "context": "contextId", "stream": "streamId", "correlation": "correlationId"}
_TIMES = {"start_ns": "start", "duration_ns": export.DURATION}
_LAUNCH = {
    "grid_x": "gridX", "grid_y": "gridY", "grid_z": "gridZ", "block_x": "blockX", "block_y": "blockY",
    "block_z": "blockZ", "registers": "registersPerThread", "graph": "graphId", "graph_node": "graphNodeId",
}  # fmt: skip
_MOVED = {"bytes": "bytes", "graph_node": "graphNodeId"}
_SHARED = {"static_smem_bytes": "staticSharedMemory", "dynamic_smem_bytes": "dynamicSharedMemory"}


def gpu_trace(source: export.Source, phases: Phases) -> pa.Table:
    """One row per operation on a GPU, sorted by start; the columns are those of the table `gpu_trace`."""
    import pyarrow as pa

    makers = (_kernel_trace, _copy_trace, _memset_trace, _graph_trace)
    parts = [part for make in makers for part in make(source, phases)]
    table = _join_by_start("gpu_trace", parts)
    index, gpu = table.schema.get_field_index("device_name"), report_origin(source).gpu_name
    return table.set_column(index, table.schema.field(index), pa.repeat(pa.scalar(gpu, pa.string()), len(table)))


def api_trace(source: export.Source, phases: Phases) -> pa.Table:
    """One row per call of the CUDA runtime and driver, sorted by start; names are those of api_summary."""

    def extra_columns(batch: export.Batch) -> dict[str, Any]:
        return {
            "tid": _id_part(batch["globalTid"], 0),
            "name": _name_column(source, batch["nameId"], api_name_without_version),
        }

    columns = _TIMES | {"correlation": "correlationId", "return_value": "returnValue"}
    return _join_by_start("api_trace", _trace_parts(source, export.RUNTIME, columns, ["nameId"], extra_columns, phases))


def _kernel_trace(source: export.Source, phases: Phases) -> list[pa.Table]:
    def extra_columns(batch: export.Batch) -> dict[str, Any]:
        return {
            "kind": "kernel",
            "name": _name_column(source, batch["demangledName"], str),
            "short_name": _name_column(source, batch["demangledName"], short_name),
            "mangled_name": _name_column(source, batch["mangledName"], str),
        }

    columns = _TIMES | _ID_COLUMNS | _LAUNCH | _SHARED
    return _trace_parts(source, export.KERNEL, columns, ["demangledName", "mangledName"], extra_columns, phases)


def _copy_trace(source: export.Source, phases: Phases) -> list[pa.Table]:
    labels = copy_labels(source)
    memory = dict(enumerate(_MEMORY))

    def extra_columns(batch: export.Batch) -> dict[str, Any]:
        names = _spell_distinct(batch["copyKind"], lambda k: f"[CUDA memcpy {labels.get(k, f'kind {k}')}]")
        return {
            "kind": "memcpy",
            "name": names,
            "short_name": names,
            "bytes_per_s": _bytes_per_second(batch["bytes"], batch[export.DURATION]),
            "src_memory": _spell_distinct(batch["srcKind"], memory.get),
            "dst_memory": _spell_distinct(batch["dstKind"], memory.get),
        }

    return _trace_parts(
        source, export.MEMCPY, _TIMES | _ID_COLUMNS | _MOVED, ["copyKind", "srcKind", "dstKind"], extra_columns, phases
    )


def _memset_trace(source: export.Source, phases: Phases) -> list[pa.Table]:
    def extra_columns(batch: export.Batch) -> dict[str, Any]:
        return {
            "kind": "memset",
            "name": "[CUDA memset]",
            "short_name": "[CUDA memset]",
            "bytes_per_s": _bytes_per_second(batch["bytes"], batch[export.DURATION]),
            "dst_memory": _spell_distinct(batch["memKind"], dict(enumerate(_MEMORY)).get),
        }

    return _trace_parts(source, export.MEMSET, _TIMES | _ID_COLUMNS | _MOVED, ["memKind"], extra_columns, phases)


def _graph_trace(source: export.Source, phases: Phases) -> list[pa.Table]:
    key = "graphId" if export.has_columns(source, export.GRAPH, "graphId") else "graphExecId"

    def extra_columns(batch: export.Batch) -> dict[str, Any]:
        names = _spell_distinct(batch[key], lambda k: f"[CUDA graph {k}]")
        return {"kind": "graph", "name": names, "short_name": names}

    return _trace_parts(source, export.GRAPH, _TIMES | _ID_COLUMNS | {"graph": key}, [], extra_columns, phases)


def _trace_parts(
    source: export.Source,
    table: str,
    columns: Mapping[str, str],
    extra: list[str],
    extra_columns: Callable[[export.Batch], dict[str, Any]],
    phases: Phases,
) -> list[pa.Table]:
    """The table's rows: `columns` renamed, what `extra_columns` makes of a batch, each row's process and phase."""
    if not export.has_columns(source, table, "start", "end"):
        return []
    name, owner = ("api_trace", "globalTid") if table == export.RUNTIME else ("gpu_trace", "globalPid")
    out: list[pa.Table] = []
    codes, done = phases(table), 0
    for batch in source.scan(table, [*dict.fromkeys([*columns.values(), owner, *extra])]):
        export.require_integers(table, batch, "start" if "start" in batch else export.DURATION, export.DURATION)
        arrays = (
            {column: batch[export_column] for column, export_column in columns.items()}
            | {"pid": _id_part(batch[owner], 24)}
            | extra_columns(batch)
        )
        if codes is not None:
            arrays["phase"] = _spell_distinct(codes[done : done + len(batch[export.DURATION])], phase_name)
        done += len(batch[export.DURATION])
        out.append(_trace_table(name, arrays))
    return out


def _trace_table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    rows = len(columns["start_ns"])
    arrays = []
    for column in arrow_schema(name):
        value = columns.get(column.name)
        if isinstance(value, np.ndarray):
            arrays.append(
                pa.array(value, mask=value == export.NULL).cast(column.type, safe=not pa.types.is_floating(column.type))
            )
        elif value is None or isinstance(value, str):
            arrays.append(pa.repeat(pa.scalar(value, column.type), rows))
        else:
            arrays.append(value.cast(column.type))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(name))


def _join_by_start(name: str, parts: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    table = pa.concat_tables(parts) if parts else arrow_schema(name).empty_table()
    return table.sort_by("start_ns")


def _name_column(source: export.Source, ids: IntArray, spell: Callable[[str], str]) -> Any:
    texts = source.strings([i for i in np.unique(ids).tolist() if i != export.NULL])
    return _spell_distinct(
        ids, lambda i: spell(texts[i]) if i in texts else (None if i == export.NULL else f"string {i}")
    )


def _spell_distinct(values: IntArray, spell: Callable[[int], str | None]) -> Any:
    """The spelling of each value, made once for each different one."""
    import pyarrow as pa

    distinct, inverse = np.unique(values, return_inverse=True)
    return pa.array([spell(v) for v in distinct.tolist()], pa.string()).take(pa.array(inverse))


def _id_part(ids: IntArray, shift: int) -> IntArray:
    return np.where(ids == export.NULL, export.NULL, (ids >> shift) & 0xFFFFFF)


def _bytes_per_second(sizes: IntArray, durations: IntArray) -> Any:
    import pyarrow as pa

    has_speed = (sizes != export.NULL) & (durations > 0)
    return pa.array(sizes / np.where(has_speed, durations, 1) * 1e9, mask=~has_speed)
