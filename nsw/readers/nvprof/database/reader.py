"""nvprof's own files (-o FILE: .nvvp, .nvprof), SQLite databases of CUPTI's records, of CUDA 5 to 12.

Kernels are in CONCURRENT_KERNEL, in KERNEL when nvprof serialised them, in CDP_KERNEL when kernels launched
them. The summaries are what `nvprof -i FILE` prints, with median and standard deviation besides.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Any, Final

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nvprof.database import host_ranges, records
from nsw.readers.nvprof.vocabulary import SAMPLES, Api, Columns, Sampled, api_name
from nsw.readers.timeline.statistics import with_shares
from nsw.readers.untrusted_files import SQLITE_MAGIC, open_sqlite_read_only
from nsw.tables import TRACES, Row, TableData
from nsw.tables.names import name_columns_by_printed_name

__all__ = ["read", "report_facts", "sniff"]


_MEMORY = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"
_KINDS = (("[CUDA memcpy", "memcpy"), ("[CUDA memset]", "memset"), ("[Unified Memory", "um"))
_SESSION = re.compile(r"\s*(?:<\?xml[^>]{0,200}\?>\s*)?<session\s")
_SIGN = b"CUPTI_ACTIVITY_KIND_"


def sniff(sample: Sample) -> int:
    """A database with CUPTI's tables and a StringTable, or samples of the CPU, or a session of the Visual Profiler."""
    if sample.head.startswith(SQLITE_MAGIC):
        if _contains_text(sample, "CREATE TABLE StringTable") and _contains_text(sample, _SIGN.decode()):
            return 95
        if _contains_text(sample, f"CREATE TABLE {records.HITS}(") and _contains_text(sample, "CREATE TABLE profCall("):
            return 95
        return 40 if sample.suffix in {".nvvp", ".nvprof"} else 0
    if _is_session(sample):
        return 95
    return 0


def _contains_text(sample: Sample, text: str) -> bool:
    return text.encode() in sample.head or sample.contains(text)


def _is_session(sample: Sample) -> bool:
    return not sample.is_binary and _SESSION.match(sample.text) is not None


def read(path: Path, options: Options) -> Report:
    """Read the summaries, and the traces that were asked for."""
    report = Report(str(path), tool="nvprof", format="nvprof-sqlite")
    sample = Sample(path)
    if _is_session(sample):
        report.error(
            "a session of the Visual Profiler (XML), which has its results packed inside, if any",
            fix=f"unpack them: grep -o '<split>[^<]*' {quote(str(path))} | cut -c8- | base64 -d | gunzip > out.nvvp;"
            " then: nsw read out.nvvp",
        )
        return report
    try:
        with closing(open_sqlite_read_only(path)) as connection:
            _fill_tables(records.Database(connection, report), options)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as fault:  # its own messages quote the file's bytes
        report.error(f"damaged database: {fault}", fix="copy the file again, or profile again")
    return report


def _fill_tables(database: records.Database, options: Options) -> None:
    """Make all tables that are wanted; a damaged table spoils itself alone."""
    if not database.has("StringTable", "_id_", "value") and records.HITS not in database.columns:
        database.report.error("a database without nvprof's tables")
        return
    # the tables of phases are made together, under the name of the first that is wanted
    names = [name for name in _MAKERS if options.wants(name, default=name not in TRACES)]
    for name in (*names, *options.phase_tables()[:1]):
        try:
            tables = {name: _MAKERS[name](database)} if name in _MAKERS else host_ranges.phase_tables(database, options)
            database.report.tables |= {n: rows for n, rows in tables.items() if len(rows) or n in _KEPT_EMPTY}
        except (sqlite3.Error, OverflowError, TypeError, ValueError) as fault:
            database.report.error(f"{name}: damaged database: {fault}", fix="copy the file again")
    records.say_what_is_left_out(database)
    records.say_what_lacks_columns(database)


def _gpu_summary(database: records.Database) -> list[Row]:
    rows: list[dict[str, Any]] = []
    if source := database.union(records.KERNELS, "name"):
        for key, figures in _summaries_by_key(database, source, "name"):
            rows.append({"kind": "kernel", "name": database.text(key), **figures})
    if source := database.union(records.MEMCPYS, "copyKind", "bytes"):
        for key, figures in _summaries_by_key(database, source, "copyKind", size="bytes"):
            name = f"[CUDA memcpy {records.COPY_KINDS.get(key, 'Unknown')}]"
            rows.append({"kind": "memcpy", "name": name, **figures})
    if database.has("CUPTI_ACTIVITY_KIND_MEMSET", "start", "end", "bytes"):
        for _, figures in _summaries_by_key(database, "CUPTI_ACTIVITY_KIND_MEMSET", "0", size="bytes"):
            rows.append({"kind": "memset", "name": "[CUDA memset]", **figures})
    names_by_kernel = name_columns_by_printed_name(row["name"] for row in rows)
    for row in rows:
        row.update(names_by_kernel[row["name"]])
    return with_shares(rows)


def _summaries_by_key(
    database: records.Database, table: str, key: str, size: str | None = None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """For each key the columns of a summary row; operations without valid times are counted, not timed."""
    untimed = 0
    for name, calls, timed, total, low, high, avg, med, variance, amount in database.rows(
        records.durations_sql(table, key, size)
    ):
        untimed += calls - timed
        figures: dict[str, Any] = {
            "block": 0,
            "calls": calls,
            "total_ns": total,
            "avg_ns": avg,
            "med_ns": med,
            "min_ns": low,
            "max_ns": high,
            "stddev_ns": variance**0.5 if variance is not None and timed > 1 else None,
        }
        if size is not None:
            figures["total_bytes"] = amount
        yield name, figures
    if untimed:
        database.report.warn(
            f"{untimed} operations have no valid times (nvprof's device buffer was too small): they are"
            " in the calls, not in the times",
            fix="run again with a larger --device-buffer-size",
        )


def _api_summary(database: records.Database) -> list[Row]:
    rows: list[dict[str, Any]] = []
    for table, api in records.API.items():
        if database.has(table, "cbid", "start", "end"):
            key = _call_key(database, table, api)
            rows += [
                {"name": api_name(api, cbid), **figures} for cbid, figures in _summaries_by_key(database, table, key)
            ]
    return with_shares(rows)


def _call_key(database: records.Database, table: str, api: Api) -> str:
    """SQL that gives the variants of a call that have one name (cuMemAlloc, cuMemAlloc_v2) one callback id."""
    first: dict[str, int] = {}
    ids = [i for (i,) in database.rows(f"SELECT DISTINCT cbid FROM {table} ORDER BY 1") if isinstance(i, int)]  # noqa: S608
    canonical_ids = {i: canonical for i in ids if (canonical := first.setdefault(api_name(api, i), i)) != i}
    cases = " ".join(f"WHEN {i} THEN {canonical}" for i, canonical in canonical_ids.items())
    return f"CASE cbid {cases} ELSE cbid END" if cases else "cbid"


def _um_summary(database: records.Database) -> list[Row]:
    table = _MEMORY
    needed = ("counterKind", "value", "start", "end", "srcId", "dstId")
    if not database.has(table, *needed):
        return []
    rows: list[dict[str, Any]] = []
    value = records.integer_sql("value")
    source, target = records.integer_sql("srcId"), records.integer_sql("dstId")
    at = f"CASE WHEN counterKind = 1 THEN {target} WHEN counterKind <> 3 THEN {source} END"
    sql = (
        f"SELECT counterKind, {at} AS device, COUNT({value}), SUM({value}), MIN({value}), MAX({value}),"  # noqa: S608
        f" SUM({records.TIMED}) FROM {table} GROUP BY 1, 2 ORDER BY 2, 1"
    )
    for kind, device, count, amount, low, high, took in database.rows(sql):
        event = records.MEMORY_EVENTS.get(kind, {"name": f"counter {kind}", "has_size": "", "has_time": ""})
        row: dict[str, Any] = {"device": device, "name": event["name"], "calls": count}
        if event["has_size"] and count:
            row |= {"total_bytes": amount, "avg_bytes": amount / count, "min_bytes": low, "max_bytes": high}
        rows.append(row | ({"total_ns": took} if event["has_time"] else {}))
    return rows


def _gpu_trace(database: records.Database) -> TableData:
    columns = Columns("gpu_trace", _SHARED, _OWN_COLUMNS)
    parts = [
        records.trace_sql(table, database.columns[table])
        for table in (*records.KERNELS, *records.MEMCPYS, "CUPTI_ACTIVITY_KIND_MEMSET")
        if table in database.columns
    ]
    if database.has(_MEMORY, "counterKind", "value", "start", "end", "srcId", "dstId"):
        parts.append(records.memory_trace_sql(_MEMORY))
    sql = " UNION ALL ".join(p for p in parts if p)
    if not sql:
        return []
    has_names = database.has("CUPTI_ACTIVITY_KIND_DEVICE", "id", "name")
    names = dict(database.rows("SELECT id, name FROM CUPTI_ACTIVITY_KIND_DEVICE")) if has_names else {}
    first: int | None = None
    for device, name, start, end, *rest in database.rows(f"SELECT * FROM ({sql}) ORDER BY 3"):  # noqa: S608
        text = name if isinstance(name, str) else database.text(name)
        kind = next((k for begin, k in _KINDS if text.startswith(begin)), "kernel")
        valid = start is not None and start > 0 and (end is None or end >= start)
        first = start if first is None and valid else first
        context, stream, correlation, *dimensions, size, src, dst = rest
        took = end - start if valid and end is not None else None
        speed = size * 1e9 / took if size is not None and took and kind != "um" else None
        columns.append(
            (
                0, device, database.strings.get(names.get(device, -1)), kind, context, stream, *dimensions,
                records.MEMORY_KINDS.get(src), records.MEMORY_KINDS.get(dst), text,
            ),
            (start - (first or 0) if valid else None, took, correlation, size, speed),
        )  # fmt: skip
    return columns.finish()


def _api_trace(database: records.Database) -> TableData:
    columns = Columns("api_trace", ("block", "pid", "tid", "return_value"), ("start_ns", "duration_ns", "correlation"))
    needed = ("cbid", "start", "end", "processId", "threadId", "correlationId")
    parts = [
        f"SELECT '{api}', {', '.join(map(records.integer_sql, needed))}, "  # noqa: S608
        f"{records.integer_sql('returnValue') if database.has(table, 'returnValue') else 'NULL'} FROM {table}"
        for table, api in records.API.items()
        if database.has(table, *needed)
    ]
    if not parts:
        return []
    first: int | None = None
    for api, cbid, start, end, pid, tid, correlation, code in database.rows(" UNION ALL ".join(parts) + " ORDER BY 3"):
        if start is None or end is None:
            continue
        first = start if first is None else first
        took = end - start if end >= start else None
        columns.append((0, pid, tid, code, api_name(api, cbid)), (start - first, took, correlation))
    return columns.finish()


_SHARED = (
    *("block", "device", "device_name", "kind", "context", "stream"),
    *("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers"),
    *("static_smem_bytes", "dynamic_smem_bytes", "src_memory", "dst_memory"),
)
_OWN_COLUMNS = ("start_ns", "duration_ns", "correlation", "bytes", "bytes_per_s")


_DEVICE: Final = "CUPTI_ACTIVITY_KIND_DEVICE"
_PCIE: Final = "CUPTI_ACTIVITY_KIND_PCIE"
_OVERHEAD: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"
_GPU: Final = 0  # `type` of a PCI device that is one
_OF_GPUS: Final = {"numMultiprocessors": None, "globalMemorySize": "byte", "globalMemoryBandwidth": "kB/s"}
_OF_LINKS: Final = {"pcieGeneration": None, "linkWidth": None, "linkRate": "MT/s"}
_OVERHEADS: Final = {1: "compiler", 1 << 16: "buffer_flush", 2 << 16: "instrumentation", 3 << 16: "resource"}


def report_facts(database: records.Database) -> list[dict[str, Any]]:
    """The version of the file, the GPUs and their links, what the profiler cost, clocks and temperatures."""
    return [
        *_version_facts(database),
        *_gpu_facts(database),
        *_link_facts(database),
        *_overhead_facts(database),
        *system_facts(database),
    ]


def _version_facts(database: records.Database) -> list[dict[str, Any]]:
    if not database.has("Version", "version"):
        return []
    versions = database.rows("SELECT version FROM Version")
    return [{"key": "nvprof_file_version", "value": float(v)} for (v,) in versions if isinstance(v, int)]


def _gpu_facts(database: records.Database) -> list[dict[str, Any]]:
    if not database.has(_DEVICE, "id", "name"):
        return []
    names = database.rows(f"SELECT {records.integer_sql('id')}, name FROM {_DEVICE} ORDER BY 1")  # noqa: S608  ours
    fact_rows = [{"device": device, "key": "gpu_name", "text": database.text(name)} for device, name in names]
    for column, unit in _OF_GPUS.items():
        if database.has(_DEVICE, column):
            sql = f"SELECT {records.integer_sql('id')}, {records.integer_sql(column)} FROM {_DEVICE} ORDER BY 1"  # noqa: S608  ours
            fact_rows += _query_facts(database, sql, f"gpu_{column}", unit)
    return fact_rows


def _query_facts(database: records.Database, sql: str, key: str, unit: str | None) -> list[dict[str, Any]]:
    rows = database.rows(sql)
    return [{"device": d, "key": key, "unit": unit, "value": float(v)} for d, v in rows if v is not None]


def _link_facts(database: records.Database) -> list[dict[str, Any]]:
    """Of the GPUs among the PCI devices; an id is bytes that begin with the GPU's number."""
    if not database.has(_PCIE, "type", "id", *_OF_LINKS):
        return []
    columns = ", ".join(map(records.integer_sql, _OF_LINKS))
    fact_rows = []
    for raw, *values in database.rows(f"SELECT id, {columns} FROM {_PCIE} WHERE type = {_GPU}"):  # noqa: S608  ours
        if not isinstance(raw, bytes) or len(raw) < 4:
            continue
        (device,) = struct.unpack_from("<I", raw)
        for (column, unit), value in zip(_OF_LINKS.items(), values, strict=True):
            if value is not None:
                fact_rows.append({"device": device, "key": f"gpu_{column}", "unit": unit, "value": float(value)})
    return fact_rows


def _overhead_facts(database: records.Database) -> list[dict[str, Any]]:
    """Time that the profiler took by kind: it is in the times of what it interrupted."""
    if not database.has(_OVERHEAD, "overheadKind", "start", "end"):
        return []
    sql = f"SELECT overheadKind, SUM({records.TIMED}) FROM {_OVERHEAD} GROUP BY 1 ORDER BY 1"  # noqa: S608  ours
    return [
        {"key": f"profiler_overhead_{_OVERHEADS.get(kind, 'other')}", "unit": "ns", "value": float(took)}
        for kind, took in database.rows(sql)
        if took is not None
    ]


# environmentKind of a database's records -> the quantities that its bytes begin with, each of four.
_RECORDS: Final = dict(enumerate(SAMPLES.values(), 1))
_ENVIRONMENT: Final = "CUPTI_ACTIVITY_KIND_ENVIRONMENT"


def system_facts(database: records.Database) -> list[dict[str, Any]]:
    """The facts of a database's records; those of no known kind, or that are damaged, are told."""
    if not database.has(_ENVIRONMENT, "deviceId", "environmentKind", "data"):
        return []
    sampled, lost = Sampled(), 0
    for device, kind, data in database.rows(f"SELECT deviceId, environmentKind, data FROM {_ENVIRONMENT}"):  # noqa: S608
        quantities = _RECORDS.get(kind, ())
        if not quantities or not isinstance(data, bytes) or len(data) < 8 or not isinstance(device, int):
            lost += 1
            continue
        for quantity, value in zip(quantities, struct.unpack_from("<2I", data), strict=False):
            sampled.add_sample({"device": device}, quantity, float(value))
    if lost:
        database.report.warn(f"not read: {lost} samples of clocks, temperatures and power that are damaged")
    return sampled.fact_rows()


_MAKERS: Final[Mapping[str, Callable[[records.Database], TableData]]] = {
    "facts": report_facts,
    "gpu_summary": _gpu_summary, "api_summary": _api_summary, "um_summary": _um_summary,
    "nvtx_summary": host_ranges.nvtx_summary, "nvtx_gpu_summary": host_ranges.nvtx_gpu_summary,
    "openacc_summary": host_ranges.openacc_summary, "openmp_summary": host_ranges.openmp_summary,
    "functions": records.function_rows, "metrics": records.counter_rows,
    "gpu_trace": _gpu_trace, "api_trace": _api_trace,
}  # fmt: skip
_KEPT_EMPTY: Final = frozenset({"facts", "gpu_summary", "api_summary"})
