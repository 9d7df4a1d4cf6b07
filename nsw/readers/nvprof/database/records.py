"""CUPTI's records as nvprof stores them: tables, enumerations, the queries over them, and what is left unread."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nsw.readers.model import Report
    from nsw.readers.nvprof.vocabulary import Api

__all__ = [
    "API",
    "COPY_KINDS",
    "KERNELS",
    "MEMCPYS",
    "MEMORY_EVENTS",
    "MEMORY_KINDS",
    "TIMED",
    "Database",
    "durations_sql",
    "integer_sql",
    "memory_trace_sql",
    "say_what_is_left_out",
    "say_what_lacks_columns",
    "trace_sql",
]  # fmt: skip

KERNELS: Final = (
    "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_CDP_KERNEL",
)
MEMCPYS: Final = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY2")
API: Final[Mapping[str, Api]] = MappingProxyType(
    {"CUPTI_ACTIVITY_KIND_RUNTIME": "runtime", "CUPTI_ACTIVITY_KIND_DRIVER": "driver"}
)


# As `nvprof -i` names them.
COPY_KINDS: Final = MappingProxyType(
    {1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
)
MEMORY_KINDS: Final = MappingProxyType({1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed"})
# counterKind -> name, whether `value` is bytes, whether the record has a duration
MEMORY_EVENTS: Final = MappingProxyType(
    {
        1: ("Host To Device", True, True),
        2: ("Device To Host", True, True),
        3: ("CPU page faults", False, False),
        4: ("Gpu page fault groups", False, True),
        5: ("Memory thrashes", True, False),
        6: ("Page throttles", False, True),
        7: ("Remote mapping from device", True, False),
        8: ("Transfers from Device", True, True),
    }
)


def integer_sql(column: str) -> str:
    """SQL for a column's integers: SQLite keeps any type anywhere, and adds up the digits that a text begins with."""
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"


TIMED = (
    "CASE WHEN typeof(start) = 'integer' AND typeof(end) = 'integer' AND start > 0 AND end >= start"
    " THEN end - start END"
)


def durations_sql(table: str, key: str, size: str | None) -> str:
    """For each key: key, rows, rows with times, then of these total, least, greatest, mean, median, variance; bytes."""
    return f"""
WITH d AS (SELECT {key} AS k, {TIMED} AS d, {integer_sql(size) if size else "NULL"} AS b FROM {table}),
     r AS (SELECT k, d, ROW_NUMBER() OVER (PARTITION BY k ORDER BY d) AS n, COUNT(*) OVER (PARTITION BY k) AS m
           FROM d WHERE d IS NOT NULL),
     med AS (SELECT k, AVG(d) AS med FROM r WHERE n IN ((m + 1) / 2, (m + 2) / 2) GROUP BY k),
     mean AS (SELECT k, AVG(d) AS mean FROM d GROUP BY k)
SELECT d.k, COUNT(*), COUNT(d.d), SUM(d.d), MIN(d.d), MAX(d.d), AVG(d.d), MAX(med.med),
       SUM((d.d - mean.mean) * (d.d - mean.mean)) / (COUNT(d.d) - 1), SUM(d.b)
FROM d JOIN mean ON mean.k IS d.k LEFT JOIN med ON med.k IS d.k
GROUP BY d.k
"""  # noqa: S608  the names are of this module's constants


def trace_sql(table: str, columns: frozenset[str]) -> str:
    """The operations of one table with the same columns whatever the table; those it lacks are NULL."""

    def get(*names: str) -> str:
        return ", ".join(integer_sql(n) if n in columns else "NULL" for n in names)

    if not {"start", "end"} <= columns:
        return ""
    if table in MEMCPYS:
        kinds = " ".join(f"WHEN {k} THEN '[CUDA memcpy {n}]'" for k, n in COPY_KINDS.items())
        name = f"CASE copyKind {kinds} ELSE '[CUDA memcpy Unknown]' END"
    else:
        name = integer_sql("name") if table in KERNELS else "'[CUDA memset]'"
    source = get("memoryKind") if "memoryKind" in columns else get("srcKind")
    return (
        f"SELECT {get('deviceId')}, {name}, {get('start', 'end')}, {get('contextId', 'streamId', 'correlationId')}, "  # noqa: S608
        f"{get('gridX', 'gridY', 'gridZ', 'blockX', 'blockY', 'blockZ', 'registersPerThread')}, "
        f"{get('staticSharedMemory', 'dynamicSharedMemory', 'bytes')}, {source}, {get('dstKind')} FROM {table}"
    )


# As `nvprof -i --print-gpu-trace` names them.
_MEMORY_TRACE: Final = MappingProxyType(
    {
        1: "Memcpy HtoD", 2: "Memcpy DtoH", 3: "CPU page faults", 4: "GPU page faults", 5: "page thrash",
        6: "page throttle", 7: "remote map", 8: "Memcpy DtoD",
    }
)  # fmt: skip


def memory_trace_sql(table: str) -> str:
    """The events of Unified Memory with the columns of `trace_sql`; those of one moment have no end."""
    names = " ".join(f"WHEN {k} THEN '[Unified Memory {n}]'" for k, n in _MEMORY_TRACE.items())
    source, target = integer_sql("srcId"), integer_sql("dstId")
    device = f"CASE WHEN counterKind = 1 THEN {target} WHEN counterKind NOT IN (3, 5) THEN {source} END"
    return (
        f"SELECT {device}, CASE counterKind {names} ELSE '[Unified Memory event]' END, {integer_sql('start')},"  # noqa: S608
        f" CASE WHEN counterKind NOT IN (3, 5, 7) THEN {integer_sql('end')} END, {', '.join(['NULL'] * 12)},"
        f" CASE WHEN counterKind IN (1, 2, 8) THEN {integer_sql('value')} END, NULL, NULL FROM {table}"
    )


class Database(Protocol):
    """One database being read into a report."""

    report: Report

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """What a query finds."""

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with such columns."""

    def text(self, code: Any) -> str:
        """A string by its code; of an unknown one the code."""

    def union(self, tables: tuple[str, ...], *columns: str) -> str:
        """The rows of several tables of one kind as one source; "" when there is none."""


_KINDS: Final = {
    "INSTANTANEOUS_METRIC": "metric values of points in time",
    "INSTANTANEOUS_METRIC_INSTANCE": "metric values of single units of the GPU at points in time",
    "INSTANTANEOUS_EVENT": "event values of points in time (--event-collection-mode continuous)",
    "INSTANTANEOUS_EVENT_INSTANCE": "event values of single units of the GPU at points in time",
    "PC_SAMPLING": "samples of the program counter",
    "GLOBAL_ACCESS": "memory accesses of source lines",
    "SHARED_ACCESS": "shared memory accesses of source lines",
    "BRANCH": "branches of source lines",
    "INSTRUCTION_EXECUTION": "instruction counts of source lines",
    "NVLINK": "NVLink connections (--print-nvlink-topology)",
    "GRAPH_TRACE": "CUDA graphs traced as a whole",
    "MEMORY": "allocations (--track-memory-allocations on)",
    "MEMORY2": "allocations (--track-memory-allocations on)",
    "MEMORY_POOL": "operations on memory pools",
    "SYNCHRONIZATION": "waits for streams and events, less their API calls",
    "PREEMPTION": "preemptions of kernels",
    "JIT": "compilations while the program ran",
    "INTERNAL_LAUNCH_API": "launches within CUDA itself",
}
_THREADS: Final = {
    "PTHREAD_ACTIVITY_EXEC": "begins and ends of threads",
    "PTHREAD_ACTIVITY_MGMT": "creations and joins of threads",
    "PTHREAD_ACTIVITY_MUTEX": "locks of threads",
    "PTHREAD_ACTIVITY_COND": "condition variables of threads",
}

# What a table cannot be read without.
_OPERATION: Final = ("start", "end")
_NEEDED: Final = {
    **dict.fromkeys(KERNELS, ("name", *_OPERATION)),
    **dict.fromkeys(MEMCPYS, ("copyKind", "bytes", *_OPERATION)),
    "CUPTI_ACTIVITY_KIND_MEMSET": ("bytes", *_OPERATION),
    **dict.fromkeys(API, ("cbid", *_OPERATION)),
    "CUPTI_ACTIVITY_KIND_MARKER": ("flags", "timestamp", "id", "name"),
    "CUPTI_ACTIVITY_KIND_METRIC": ("id", "value", "correlationId"),
    "CUPTI_ACTIVITY_KIND_EVENT": ("id", "value", "correlationId"),
}
_COUNTERS: Final = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"


def say_what_is_left_out(database: Database) -> None:
    """One warning that names what is in the file and in no table."""
    names = {f"CUPTI_ACTIVITY_KIND_{kind}": description for kind, description in _KINDS.items()}
    names |= {table: f"{description} (--cpu-thread-tracing on)" for table, description in _THREADS.items()}
    left_out = []
    for table, description in names.items():
        if database.has(table):
            count = _count(database, table)
            left_out += [f"{count} {description}"] if count else []
    if left_out:
        database.report.warn(f"not read: {'; '.join(left_out)}")


def say_what_lacks_columns(database: Database) -> None:
    """Name the tables of which a column that they are read by is missing."""
    for table, columns in _NEEDED.items():
        missing = [c for c in columns if not database.has(table, c)]
        if missing and database.has(table) and (count := _count(database, table)):
            database.report.error(f"not read: the {count} records of {table}, which have no {', '.join(missing)}")
    if (
        database.has(_COUNTERS)
        and not database.has(_COUNTERS, "start", "end")
        and (count := _count(database, _COUNTERS))
    ):
        database.report.warn(
            f"not read: {count} samples of Unified Memory's counters in the form of CUDA 6.0, which do not tell"
            " between what they counted"
        )


def _count(database: Database, table: str) -> int:
    (count,) = next(database.rows(f"SELECT COUNT(*) FROM {table}"))  # noqa: S608  a name of this module
    return int(count)
