"""What nvprof's databases may hold and nsw has no table for; the Visual Profiler and `nvprof -i FILE` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.nvprof.database.activity import API, KERNELS, MEMCPYS

if TYPE_CHECKING:
    from nsw.readers.nvprof.database.connection import Database

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
    names = {f"CUPTI_ACTIVITY_KIND_{kind}": what for kind, what in _KINDS.items()}
    names |= {table: f"{what} (--cpu-thread-tracing on)" for table, what in _THREADS.items()}
    found = []
    for table, what in names.items():
        if database.has(table):
            count = _count(database, table)
            found += [f"{count} {what}"] if count else []
    if found:
        database.report.warn(f"not read: {'; '.join(found)}")


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
