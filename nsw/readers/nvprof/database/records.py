"""CUPTI's records as nvprof stores them: tables, enumerations, the queries over them, and what is left unread."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.model import Problem, Report
from nsw.readers.nvprof.vocabulary import Api, Sum
from nsw.resources import csv_rows
from nsw.tables.names import demangle_all

if TYPE_CHECKING:
    import sqlite3


__all__ = [
    "API",
    "COPY_KINDS",
    "HITS",
    "KERNELS",
    "MEMCPYS",
    "MEMORY_EVENTS",
    "MEMORY_KINDS",
    "TIMED",
    "Database",
    "counter_rows",
    "counters_by_id",
    "durations_sql",
    "function_rows",
    "integer_sql",
    "memory_trace_sql",
    "say_what_is_left_out",
    "say_what_lacks_columns",
    "trace_sql",
]


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
# counterKind -> name, that of `nvprof -i --print-gpu-trace`, whether `value` is bytes, whether a record has a duration
MEMORY_EVENTS: Final = {int(row["kind"]): row for row in csv_rows("readers/data/cupti_memory_events.csv")}


def integer_sql(column: str) -> str:
    """SQL for a column's integers: SQLite keeps any type anywhere, and adds up the digits that a text begins with."""
    return f"CASE WHEN typeof({column}) = 'integer' THEN {column} END"


TIMED = (
    "CASE WHEN typeof(start) = 'integer' AND typeof(end) = 'integer' AND start > 0 AND end >= start"
    " THEN end - start END"
)


def durations_sql(table: str, key: str, size: str | None) -> str:
    """The SQL that summarises the durations (ns) of a table by key.

    Args:
        table: The table, or a subquery in parentheses.
        key: The column or SQL expression to group by.
        size: The column of bytes; None where the operations have none.

    Returns:
        A query whose rows hold: key, rows, rows with times, then total, least, greatest, mean, median and variance of
        these, and the sum of the bytes.
    """
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


def memory_trace_sql(table: str) -> str:
    """The events of Unified Memory with the columns of `trace_sql`; those of one moment have no end."""
    names = " ".join(f"WHEN {k} THEN '[Unified Memory {row['name_in_trace']}]'" for k, row in MEMORY_EVENTS.items())
    source, target = integer_sql("srcId"), integer_sql("dstId")
    device = f"CASE WHEN counterKind = 1 THEN {target} WHEN counterKind NOT IN (3, 5) THEN {source} END"
    return (
        f"SELECT {device}, CASE counterKind {names} ELSE '[Unified Memory event]' END, {integer_sql('start')},"  # noqa: S608
        f" CASE WHEN counterKind NOT IN (3, 5, 7) THEN {integer_sql('end')} END, {', '.join(['NULL'] * 12)},"
        f" CASE WHEN counterKind IN (1, 2, 8) THEN {integer_sql('value')} END, NULL, NULL FROM {table}"
    )


class Database:
    """One database being read into a report."""

    def __init__(self, connection: sqlite3.Connection, report: Report) -> None:
        self._connection = connection
        self.report = report
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self.columns = {
            name: frozenset(row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,)))
            for (name,) in names
            if isinstance(name, str)
        }
        strings = self.rows("SELECT _id_, value FROM StringTable") if self.has("StringTable", "_id_", "value") else ()
        self.strings = {i: text for i, text in strings if isinstance(text, str)}

    def rows(self, sql: str) -> Iterator[tuple[Any, ...]]:
        """What a query finds."""
        return self._connection.execute(sql)

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with such columns."""
        return table in self.columns and self.columns[table].issuperset(columns)

    def text(self, code: Any) -> str:
        """A string by its code; of an unknown one the code."""
        return self.strings.get(code, f"string {code}")

    def union(self, tables: tuple[str, ...], *columns: str) -> str:
        """The rows of several tables of one kind as one source; "" when there is none."""
        all_columns = (*columns, "start", "end")
        parts = [f"SELECT {', '.join(all_columns)} FROM {t}" for t in tables if self.has(t, *all_columns)]  # noqa: S608
        return f"({' UNION ALL '.join(parts)})" if parts else ""


def _needed_columns(database: str) -> dict[str, list[str]]:
    """What the tables of a database cannot be read without."""
    rows = csv_rows("readers/data/needed_columns.csv")
    return {row["table"]: row["columns"].split() for row in rows if row["database"] == database}


_NEEDED: Final = _needed_columns("nvprof")
_COUNTERS: Final = "CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER"


# what changes no table that an answer is made of
_OF_NO_ANSWER: Final = frozenset(
    f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("SYNCHRONIZATION", "NVLINK", "MEMORY_POOL", "INTERNAL_LAUNCH_API")
)


def say_what_is_left_out(database: Database) -> None:
    """One warning that names what is in the file and in no table."""
    left_out = {
        row["table"]: f"{count} {row['meaning']}"
        for row in csv_rows("readers/data/cupti_unread_tables.csv")
        if database.has(row["table"]) and (count := _count_rows(database, row["table"]))
    }
    if left_out:
        text = f"not read: {'; '.join(left_out.values())}"
        database.report.problems.append(Problem("warning", text, is_note=left_out.keys() <= _OF_NO_ANSWER))


def say_what_lacks_columns(database: Database) -> None:
    """Name the tables of which a column that they are read by is missing."""
    for table, columns in _NEEDED.items():
        missing = [c for c in columns if not database.has(table, c)]
        if missing and database.has(table) and (count := _count_rows(database, table)):
            database.report.error(f"not read: the {count} records of {table}, which have no {', '.join(missing)}")
    if (
        database.has(_COUNTERS)
        and not database.has(_COUNTERS, "start", "end")
        and (count := _count_rows(database, _COUNTERS))
    ):
        database.report.warn(
            f"not read: {count} samples of Unified Memory's counters in the form of CUDA 6.0, which do not tell"
            " between what they counted"
        )


def _count_rows(database: Database, table: str) -> int:
    (count,) = next(database.rows(f"SELECT COUNT(*) FROM {table}"))  # noqa: S608  a name of this module
    return int(count)


_FORMATS: Final = {"double": "<d", "percent": "<d", "uint64": "<Q", "throughput": "<Q", "int64": "<q", "level": "<I"}
_UNITS: Final = {"percent": "%", "throughput": "B/s"}
# The GPU, the kernel, the id; the unit of the GPU where each has a value of its own (--aggregate-mode off).
_Key: TypeAlias = "tuple[Any, Any, Any, int | None]"


@dataclass(frozen=True, slots=True)
class Counter:
    """What an id stands for."""

    name: str
    kind: str
    description: str | None


def counter_rows(database: Database) -> list[dict[str, Any]]:
    """One row a kernel and counter: least, greatest, mean over its launches; values without a meaning are told."""
    kernels = database.union(KERNELS, "name", "deviceId", "correlationId")
    counter_rows = []
    for counter_kind, decode in (("event", _decode_event), ("metric", _decode_metric)):
        table = f"CUPTI_ACTIVITY_KIND_{counter_kind.upper()}"
        for source, *needed in ((table,), (f"{table}_INSTANCE", "instance")):
            if database.has(source, "id", "value", "correlationId", *needed):
                counter_rows += _read_counters(database, source, kernels, decode, counter_kind)
    clear = demangle_all(row["kernel"] for row in counter_rows)
    for row in counter_rows:
        row["kernel"] = clear[row["kernel"]]
    return counter_rows


def _read_counters(
    database: Database, table: str, kernels: str, decode: Callable[[Any, Any], float | None], counter_kind: str
) -> list[dict[str, Any]]:
    sums: dict[_Key, Sum] = {}
    unknown: set[Any] = set()
    lost = 0
    for device, kernel, id_, unit, raw in _counter_values(database, table, kernels):
        if kernel is None:
            lost += 1
            continue
        value = decode(id_, raw)
        if value is None:
            unknown.add(id_)
        else:
            sums.setdefault((device, kernel, id_, unit), Sum()).add(value)
    if lost:
        database.report.warn(f"{lost} {counter_kind} values belong to no kernel in the file: not read")
    if unknown:
        ids = ", ".join(map(str, sorted(unknown, key=str)[:5]))
        database.report.warn(
            f"not read: values of {len(unknown)} {counter_kind}s whose ids are unknown or damaged ({ids})",
            fix="nvprof -i FILE of the CUDA that wrote the file prints them",
        )
    return [
        _counter_row(database, counter_kind, *key, value) for key, value in sorted(sums.items(), key=_counter_order)
    ]


def _counter_order(item: tuple[_Key, Sum]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else -1 for n in item[0])


def _counter_values(database: Database, table: str, kernels: str) -> Iterator[tuple[Any, ...]]:
    unit = integer_sql("v.instance") if table.endswith("_INSTANCE") else "NULL"
    if not kernels:
        return database.rows(f"SELECT NULL, NULL, v.id, {unit}, v.value FROM {table} v")  # noqa: S608  names of this module
    return database.rows(
        f"SELECT k.deviceId, k.name, v.id, {unit}, v.value FROM {table} v LEFT JOIN"  # noqa: S608  names of this module
        f" (SELECT correlationId, MIN({integer_sql('deviceId')}) AS deviceId, MIN(name) AS name FROM {kernels}"
        " GROUP BY 1) k"
        " ON k.correlationId = v.correlationId"
    )


def _counter_row(
    database: Database, counter_kind: str, device: Any, kernel: Any, id_: Any, unit: int | None, values: Sum
) -> dict[str, Any]:
    counter = counters_by_id().get((counter_kind, id_)) or Counter(f"{counter_kind} {id_}", "uint64", None)
    return {
        "block": 0,
        "device": device,
        "device_name": _device_names(database).get(device),
        "kernel": database.text(kernel),
        "metric": counter.name if unit is None else f"{counter.name} ({unit})",
        "description": counter.description,
        "unit": _UNITS.get(counter.kind),
        "invocations": values.count,
        "min": values.minimum,
        "max": values.maximum,
        "avg": values.total / values.count,
    }


def _device_names(database: Database) -> dict[Any, str]:
    table = "CUPTI_ACTIVITY_KIND_DEVICE"
    if not database.has(table, "id", "name"):
        return {}
    return {id_: database.text(name) for id_, name in database.rows(f"SELECT id, name FROM {table}")}  # noqa: S608


def _decode_event(_: Any, raw: Any) -> float | None:
    if not isinstance(raw, int):
        return None
    return float(raw if raw >= 0 else raw + (1 << 64))  # SQLite has no unsigned numbers


def _decode_metric(id_: Any, raw: Any) -> float | None:
    counter = counters_by_id().get(("metric", id_))
    if counter is None or not isinstance(raw, bytes) or len(raw) < 8:
        return None
    (value,) = struct.unpack_from(_FORMATS[counter.kind], raw)
    return float(value) if value == value and abs(value) != float("inf") else None  # noqa: PLR0124  nan


@cache
def counters_by_id() -> Mapping[tuple[str, int], Counter]:
    """What each id of a metric or an event stands for."""
    return {
        (row["what"], int(row["id"])): Counter(row["name"], row["kind"], row["description"] or None)
        for row in csv_rows("readers/data/cupti_counters.csv.xz")
    }


HITS: Final = "collHit"
_NEEDED_BY_SAMPLES: Final = _needed_columns("nvprof CPU samples")
_SQL: Final = """
SELECT fs.value, ls.value, COUNT(*)
FROM collHit h JOIN profCall c ON c.id = h.call JOIN collInstruction i ON i.id = c.instruction
JOIN collFunction f ON f.id = i.function LEFT JOIN profStringTable fs ON fs.id = f.name
LEFT JOIN collLibrary l ON l.id = f.library LEFT JOIN profStringTable ls ON ls.id = l.name
GROUP BY f.id ORDER BY 3 DESC, 1, 2
"""
_MICROSECONDS: Final = 1e6


def function_rows(database: Database) -> list[dict[str, Any]]:
    """One row a function that was running when a sample was taken, the longest first."""
    if not all(database.has(table, *columns) for table, columns in _NEEDED_BY_SAMPLES.items()):
        return []
    (hits,) = next(database.rows("SELECT COUNT(*) FROM collHit"))
    if not hits:
        return []
    periods = {p for (p,) in database.rows("SELECT samplingPeriod FROM profGraph")}
    period = next(iter(periods)) if len(periods) == 1 else None
    if not isinstance(period, float | int) or not period > 0:
        database.report.warn(f"not read: {hits} CPU samples, which have different periods ({len(periods)} of them)")
        return []
    samples = list(database.rows(_SQL))
    lost = hits - sum(count for _, _, count in samples)
    if lost:
        database.report.warn(f"{lost} of {hits} samples of the CPU are of no function of the file: not read")
    clear = demangle_all(name for name, _, _ in samples if isinstance(name, str))
    rows: list[dict[str, Any]] = []
    for name, library, count in samples:
        module, seconds = library if isinstance(library, str) else None, count * period / _MICROSECONDS
        rows.append({"block": 0, "name": clear.get(name), "module": module, "self_s": seconds, "cpu_time_s": seconds})
    return rows
