"""CUPTI's records as nvprof stores them: tables, enumerations, and the queries over them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.readers.cuda_calls import Api


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


def whole(column: str) -> str:
    """SQL for a column's integers: SQLite keeps any type anywhere, and adds up the digits that a text begins with."""
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"


TIMED = (
    "CASE WHEN typeof(start) = 'integer' AND typeof(end) = 'integer' AND start > 0 AND end >= start"
    " THEN end - start END"
)


def durations_sql(table: str, key: str, size: str | None) -> str:
    """For each key: key, rows, rows with times, then of these total, least, greatest, mean, median, variance; bytes."""
    return f"""
WITH d AS (SELECT {key} AS k, {TIMED} AS d, {whole(size) if size else "NULL"} AS b FROM {table}),
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
        return ", ".join(whole(n) if n in columns else "NULL" for n in names)

    if not {"start", "end"} <= columns:
        return ""
    if table in MEMCPYS:
        kinds = " ".join(f"WHEN {k} THEN '[CUDA memcpy {n}]'" for k, n in COPY_KINDS.items())
        name = f"CASE copyKind {kinds} ELSE '[CUDA memcpy Unknown]' END"
    else:
        name = whole("name") if table in KERNELS else "'[CUDA memset]'"
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
    device = f"CASE WHEN counterKind = 1 THEN {whole('dstId')} WHEN counterKind NOT IN (3, 5) THEN {whole('srcId')} END"
    return (
        f"SELECT {device}, CASE counterKind {names} ELSE '[Unified Memory event]' END, {whole('start')},"  # noqa: S608
        f" CASE WHEN counterKind NOT IN (3, 5, 7) THEN {whole('end')} END, {', '.join(['NULL'] * 12)},"
        f" CASE WHEN counterKind IN (1, 2, 8) THEN {whole('value')} END, NULL, NULL FROM {table}"
    )
