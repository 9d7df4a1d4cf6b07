"""What nvprof's databases may hold and nsw has no table for; the Visual Profiler and `nvprof -i FILE` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nsw.readers.nvprof_database import Database

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


def say_what_is_left_out(database: Database) -> None:
    """One warning that names what is in the file and in no table."""
    names = {f"CUPTI_ACTIVITY_KIND_{kind}": what for kind, what in _KINDS.items()}
    names |= {table: f"{what} (--cpu-thread-tracing on)" for table, what in _THREADS.items()}
    found = []
    for table, what in names.items():
        if database.has(table):
            (count,) = next(database.rows(f"SELECT COUNT(*) FROM {table}"))  # noqa: S608  a name of this module
            found += [f"{count} {what}"] if count else []
    if found:
        database.report.warn(f"not read: {'; '.join(found)}")
