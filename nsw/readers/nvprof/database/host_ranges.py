"""NVTX ranges, OpenACC and OpenMP events in nvprof's databases, and the phases that follow from them.

A range is two markers of one id. GPU work is of a range when the range's thread called for it while the range was
open: the call begins in it, whenever it ends.

OpenACC events nest (a construct waits, a region of data creates): the time of an event is its own, less that of the
events within it on the same thread, as under nvprof's title `OpenACC (excl)`. Those of OpenMP count in full.

nvprof writes a file a process; of a file with several the launches of all are one timeline.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from nsw.readers.nvprof.database.records import API, COPY_KINDS, KERNELS, MEMCPYS, MEMORY_KINDS, TIMED, integer_sql
from nsw.readers.nvprof.vocabulary import Sum, api_name, openacc_kind
from nsw.readers.timeline.phases import MEMORIES
from nsw.readers.timeline.process_phases import Recorded, launch_times, marks_by_name, tables_of_process
from nsw.readers.timeline.statistics import with_shares
from nsw.tables.names import name_columns_by_printed_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.model import Options
    from nsw.readers.nvprof.database.records import Database
    from nsw.readers.timeline.iterations import Marks
    from nsw.readers.timeline.statistics import IntArray
    from nsw.tables import Row

__all__ = ["Span", "nvtx_gpu_summary", "nvtx_summary", "openacc_summary", "openmp_summary", "phase_tables"]


_MARKERS: Final = "CUPTI_ACTIVITY_KIND_MARKER"
_WORK: Final = (*KERNELS, *MEMCPYS, "CUPTI_ACTIVITY_KIND_MEMSET")
# Start markers (flag 2) with their ends (flag 4) and the time between; the name is with the start.
_RANGES_SQL: Final = """
SELECT s.name, {domain}, COUNT(*), SUM(e.timestamp - s.timestamp), MIN(e.timestamp - s.timestamp),
       MAX(e.timestamp - s.timestamp)
FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 2 AND typeof(timestamp) = 'integer') s
JOIN (SELECT id, timestamp FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 4 AND typeof(timestamp) = 'integer') e
ON e.id = s.id
WHERE e.timestamp >= s.timestamp
GROUP BY 1, 2
"""

# Markers of one moment have no duration.
_MARKS_SQL: Final = """
SELECT name, {domain}, COUNT(*) FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 1 AND NOT flags & 6 GROUP BY 1, 2
"""

_SPANS_SQL: Final = """
SELECT s.name, {domain}, s.objectId, s.timestamp, e.timestamp
FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 2 AND typeof(timestamp) = 'integer') s
JOIN (SELECT id, timestamp FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 4 AND typeof(timestamp) = 'integer') e
ON e.id = s.id
WHERE e.timestamp >= s.timestamp ORDER BY s.timestamp
"""


def nvtx_summary(database: Database) -> list[dict[str, Any]]:
    """One row a name and domain of ranges, then one a name and domain of marks."""
    if not database.has(_MARKERS, "flags", "timestamp", "id", "name"):
        return []
    rows: list[dict[str, Any]] = []
    domain = _domain_sql(database)
    for name, domain_code, calls, total, low, high in database.rows(_RANGES_SQL.format(domain=domain)):
        row = {"block": 0, "name": database.text(name), "domain": _domain_name(database, domain_code), "calls": calls}
        rows.append(row | {"total_ns": total, "avg_ns": total / calls, "min_ns": low, "max_ns": high})
    rows = with_shares(rows)
    for name, domain_code, count in database.rows(_MARKS_SQL.format(domain=domain)):
        mark = {"block": 0, "style": "mark", "name": database.text(name), "domain": _domain_name(database, domain_code)}
        rows.append(mark | {"calls": count})
    return rows


class Span(NamedTuple):
    """One range: its name, its thread, ns."""

    name: str
    thread: tuple[int, int]
    start: int
    end: int


def nvtx_spans(database: Database) -> Iterator[Span]:
    """Every range, in order of start."""
    if database.has(_MARKERS, "flags", "timestamp", "id", "name", "objectId"):
        for name, _, object_, start, end in database.rows(_SPANS_SQL.format(domain=_domain_sql(database))):
            yield Span(database.text(name), _process_and_thread(object_), start, end)


def nvtx_gpu_summary(database: Database) -> list[dict[str, Any]]:
    """One row a name and domain of ranges that launched GPU work."""
    if not database.has(_MARKERS, "flags", "timestamp", "id", "name", "objectId"):
        return []
    threads = _launches_by_thread(database)
    sums: dict[tuple[Any, Any], list[int]] = {}
    for name, domain_code, object_, start, end in (
        database.rows(_SPANS_SQL.format(domain=_domain_sql(database))) if threads else ()
    ):
        launches = threads.get(_process_and_thread(object_))
        if launches is None:
            continue
        starts, operations, times = launches
        first, last = bisect_left(starts, start), bisect_right(starts, end)
        if first < last:
            totals = sums.setdefault((name, domain_code), [0, 0, 0])
            totals[0] += 1
            totals[1] += operations[last] - operations[first]
            totals[2] += times[last] - times[first]
    return [
        {
            "block": 0,
            "domain": _domain_name(database, domain_code),
            "name": database.text(name),
            "calls": ranges,
            "gpu_ops": operations_,
            "gpu_ns": float(time),
        }
        for (name, domain_code), (ranges, operations_, time) in sums.items()
    ]


def _launches_by_thread(database: Database) -> dict[tuple[int, int], tuple[array[int], array[int], array[int]]]:
    """By thread: the starts of the calls that launched work, in order; operations and time before each of them."""
    work = " UNION ALL ".join(
        f"SELECT correlationId, {TIMED} AS took FROM {table}"  # noqa: S608  names of this module
        for table in _WORK
        if database.has(table, "correlationId", "start", "end")
    )
    calls = " UNION ALL ".join(
        f"SELECT processId, threadId, start, correlationId FROM {table}"  # noqa: S608  names of this module
        for table in API
        if database.has(table, "processId", "threadId", "start", "correlationId")
    )
    if not work or not calls:
        return {}
    sql = (
        "SELECT c.processId, c.threadId, c.start, w.operations, w.took"  # noqa: S608  names of this module
        f" FROM ({calls}) c JOIN (SELECT correlationId, COUNT(*) AS operations, TOTAL(took) AS took FROM ({work})"
        " GROUP BY 1) w ON w.correlationId = c.correlationId WHERE typeof(c.start) = 'integer' AND"
        " typeof(c.processId) = 'integer' AND typeof(c.threadId) = 'integer' ORDER BY 1, 2, 3"
    )
    launches: dict[tuple[int, int], tuple[array[int], array[int], array[int]]] = {}
    for process, thread, start, operations, took in database.rows(sql):
        key = (process & 0xFFFFFFFF, thread & 0xFFFFFFFF)
        starts, counts, times = launches.setdefault(key, (array("q"), array("q"), array("q")))
        starts.append(start)
        counts.append(operations)
        times.append(int(took))
    return {
        key: (starts, array("q", accumulate(counts, initial=0)), array("q", accumulate(times, initial=0)))
        for key, (starts, counts, times) in launches.items()
    }


def _process_and_thread(object_: Any) -> tuple[int, int]:
    """Process and thread of a marker's object; of a damaged one those of none."""
    if not isinstance(object_, bytes) or len(object_) < 8:
        return -1, -1
    process, thread = struct.unpack_from("<II", object_)
    return process, thread


def _domain_sql(database: Database) -> str:
    return "domain" if database.has(_MARKERS, "domain") else "0"


def _domain_name(database: Database, code: Any) -> str | None:
    """The domain; None for the default one, whose string is none."""
    return database.text(code) if code else None


_EVENTS: Final = dict(
    enumerate(
        (
            *("acc_device_init", "acc_device_shutdown", "acc_runtime_shutdown", "acc_enqueue_launch"),
            *("acc_enqueue_upload", "acc_enqueue_download", "acc_wait", "acc_implicit_wait", "acc_compute_construct"),
            *("acc_update", "acc_enter_data", "acc_exit_data", "acc_create", "acc_delete", "acc_alloc", "acc_free"),
        ),
        1,
    )
)
_OPENMP: Final = dict(enumerate(("parallel", "task", "thread", "idle", "wait_barrier", "wait_taskwait"), 1))
# The table, and the column of what the event is of.
_TABLES: Final = (
    ("CUPTI_ACTIVITY_KIND_OPENACC_DATA", "varName"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", "kernelName"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", "0"),
)
_NEEDED: Final = ("eventKind", "start", "end", "lineNo", "srcFile", "cuProcessId", "cuThreadId")
_TIMES: Final = " WHERE typeof(start) = 'integer' AND typeof(end) = 'integer' AND end >= start"


def openacc_summary(database: Database) -> list[dict[str, Any]]:
    """One row an event, place and thing, by time."""
    columns = ", ".join(f"{integer_sql(c)} AS {c}" for c in _NEEDED)
    parts = [
        f"SELECT {columns}, {integer_sql(thing)} AS thing FROM {table}{_TIMES}"  # noqa: S608
        for table, thing in _TABLES
        if database.has(table, *_NEEDED, *([thing] if thing != "0" else []))
    ]
    if not parts:
        return []
    sql = " UNION ALL ".join(parts) + " ORDER BY cuProcessId, cuThreadId, start, end DESC"
    sums: dict[tuple[Any, ...], Sum] = {}
    for key, own_time in _own_times(database.rows(sql)):
        sums.setdefault(key, Sum()).add(own_time)
    rows = [
        {"name": (name := _construct_name(database, *key)), "kind": openacc_kind(name), **_figure_columns(t)}
        for key, t in sums.items()
    ]
    return with_shares(rows)


def openmp_summary(database: Database) -> list[dict[str, Any]]:
    """One row an event, by time."""
    table = "CUPTI_ACTIVITY_KIND_OPENMP"
    if not database.has(table, "eventKind", "start", "end"):
        return []
    sums: dict[str, Sum] = {}
    sql = f"SELECT {integer_sql('eventKind')}, start, end FROM {table}{_TIMES}"  # noqa: S608
    for kind, start, end in database.rows(sql):
        sums.setdefault(f"omp_{_OPENMP.get(kind, 'unknown')}", Sum()).add(end - start)
    return with_shares([{"name": name, **_figure_columns(times)} for name, times in sums.items()])


def _own_times(events: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The key of each event and its time less that of the events within it, in any order."""
    open_: list[list[Any]] = []  # key, end, own time; each within the one before
    thread: tuple[Any, Any] | None = None
    for kind, start, end, line, file, process, thread_id, thing in events:
        if (process, thread_id) != thread:
            yield from ((key, own_time) for key, _, own_time in open_)
            open_, thread = [], (process, thread_id)
        while open_ and open_[-1][1] <= start:
            key, _, own_time = open_.pop()
            yield key, own_time
        if open_:
            open_[-1][2] -= min(end, open_[-1][1]) - start
        open_.append([(kind, line, file, thing), end, end - start])
    yield from ((key, own_time) for key, _, own_time in open_)


def _construct_name(database: Database, kind: Any, line: Any, file: Any, thing: Any) -> str:
    name = _EVENTS.get(kind, f"acc event {kind}")
    if file:
        name += f"@{database.text(file).replace(chr(92), '/').rpartition('/')[2]}:{line}"
    return name + (f" ({database.text(thing)})" if thing else "")


def _figure_columns(sums: Sum) -> dict[str, Any]:
    times = {"total_ns": sums.total, "avg_ns": sums.total / sums.count, "min_ns": sums.minimum, "max_ns": sums.maximum}
    return {"calls": sums.count, **times, "block": 0}


_KERNEL, _MEMCPY, _MEMSET = range(3)  # as one_process.KINDS
_MEMSETS: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
# of CUPTI's kinds those of the host
_HOST_MEMORY: Final = {kind: MEMORIES.index(name) for kind, name in MEMORY_KINDS.items() if name in MEMORIES}
_CONTEXTS: Final = "CUPTI_ACTIVITY_KIND_CONTEXT"


def phase_tables(database: Database, options: Options) -> dict[str, list[Row]]:
    """The tables of phases and iterations that were asked for; none without operations that have times."""
    requested = options.phase_tables()
    recorded = _recorded_events(database)
    if not len(recorded.start):
        return {}
    first, last = int(recorded.start.min()), int((recorded.start + recorded.duration).max())
    if len(recorded.call_start):
        first = min(first, int(recorded.call_start.min()))
        last = max(last, int((recorded.call_start + recorded.call_duration).max()))
    tables = tables_of_process(
        recorded, (first, last), named_step=options.steps, warmup=options.warmup, every="iteration_trace" in requested
    )  # fmt: skip
    return {name: [{"block": 0} | row for row in tables[name]] for name in requested if tables.get(name)}


def _recorded_events(database: Database) -> Recorded:
    names: dict[str, int] = {}
    work = _array_of_rows(_operation_rows(database, names), 8)
    calls = _array_of_rows(_call_rows(database, names), 4)
    return Recorded(
        names=list(names),
        name_columns=name_columns_by_printed_name(names).__getitem__,
        gpu_name=work[:, 0],
        gpu_kind=work[:, 1],
        start=work[:, 2],
        duration=work[:, 3] - work[:, 2],
        launched=launch_times(np.where(work[:, 4] > 0, work[:, 4], -1), calls[:, 3], calls[:, 1]),
        device=work[:, 5],
        size=work[:, 6],
        memory=work[:, 7] if _records_memory_kinds(database) else None,
        call_name=calls[:, 0],
        call_start=calls[:, 1],
        call_duration=calls[:, 2] - calls[:, 1],
        marks=_range_marks(database),
        contexts=_context_devices(database),
    )


def _context_devices(database: Database) -> list[int]:
    """The devices on which the process has a CUDA context."""
    if not database.has(_CONTEXTS, "deviceId"):
        return []
    found = database.rows(f"SELECT DISTINCT {integer_sql('deviceId')} FROM {_CONTEXTS}")  # noqa: S608  ours
    return [device for (device,) in found if device is not None and device >= 0]


def _array_of_rows(rows: Iterable[tuple[int, ...]], columns: int) -> IntArray:
    values = np.fromiter((value for row in rows for value in row), np.int64)
    return values.reshape(-1, columns)


def _operation_rows(database: Database, names: dict[str, int]) -> Iterable[tuple[int, ...]]:
    """Name, kind, start, end, correlation, device, bytes and the host's memory of each operation with valid times.

    -1: not known, or none.
    """
    for kind, tables in ((_KERNEL, KERNELS), (_MEMCPY, MEMCPYS), (_MEMSET, (_MEMSETS,))):
        for table in tables:
            if not database.has(table, "start", "end"):
                continue
            label = {_KERNEL: "name", _MEMCPY: "copyKind", _MEMSET: ""}[kind]
            host_kinds = ("srcKind", "dstKind") if kind == _MEMCPY else ("", "")
            requested = (label, "correlationId", "deviceId", "" if kind == _KERNEL else "bytes", *host_kinds)
            columns = [integer_sql(c) if c and database.has(table, c) else "NULL" for c in requested]
            sql = f"SELECT start, end, {', '.join(columns)} FROM {table} WHERE {TIMED} IS NOT NULL"  # noqa: S608
            for start, end, label_code, correlation, device, size, source, target in database.rows(sql):
                code = names.setdefault(_operation_name(database, kind, label_code), len(names))
                host = next((_HOST_MEMORY[end_kind] for end_kind in (source, target) if end_kind in _HOST_MEMORY), -1)
                yield code, kind, start, end, *(-1 if n is None else n for n in (correlation, device, size)), host


def _records_memory_kinds(database: Database) -> bool:
    return any(database.has(table, "srcKind", "dstKind") for table in MEMCPYS)


def _operation_name(database: Database, kind: int, label_code: Any) -> str:
    if kind == _KERNEL:
        return database.text(label_code)
    return "[CUDA memset]" if kind == _MEMSET else f"[CUDA memcpy {COPY_KINDS.get(label_code, 'Unknown')}]"


def _call_rows(database: Database, names: dict[str, int]) -> Iterable[tuple[int, ...]]:
    """Name, start, end and correlation of each API call with valid times."""
    for table, api in API.items():
        if database.has(table, "cbid", "start", "end"):
            correlation = integer_sql("correlationId") if database.has(table, "correlationId") else "NULL"
            sql = f"SELECT cbid, start, end, {correlation} FROM {table} WHERE {TIMED} IS NOT NULL"  # noqa: S608
            for cbid, start, end, correlation_id in database.rows(sql):
                name = names.setdefault(api_name(api, cbid), len(names))
                yield name, start, end, -1 if correlation_id is None else correlation_id


def _range_marks(database: Database) -> list[Marks]:
    """The NVTX ranges by name and thread."""
    ranges = list(nvtx_spans(database))
    starts = np.array([span.start for span in ranges], np.int64)
    ends = np.array([span.end for span in ranges], np.int64)
    return marks_by_name(
        [span.name for span in ranges], [span.thread for span in ranges], starts, ends, _launching_threads(database)
    )


def _launching_threads(database: Database) -> set[tuple[int, int]] | None:
    """The threads that make CUDA calls; None where that is not told."""
    tables = [table for table in API if database.has(table, "processId", "threadId")]
    if not tables:
        return None
    sql = " UNION ".join(f"SELECT processId, threadId FROM {table}" for table in tables)  # noqa: S608
    pairs = [pair for pair in database.rows(sql) if all(isinstance(n, int) for n in pair)]
    return {(process & 0xFFFFFFFF, thread & 0xFFFFFFFF) for process, thread in pairs}
