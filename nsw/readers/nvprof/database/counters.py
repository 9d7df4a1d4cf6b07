"""Metrics, events and samples of the CPU in nvprof's databases, summed as `nvprof -i FILE` prints them.

The database holds numbers for names; they mean the same in every CUPTI that knew nvprof, and the names of data/
cupti_counters.csv are what it calls them. A metric's value is eight bytes of a type that its id tells.

A hit is one sample of the CPU, of the call that was innermost: its instruction's function gets the
period between two samples, as `nvprof -i FILE --cpu-profiling-mode flat` counts. A program that used no GPU leaves
nothing else in its file.
"""

from __future__ import annotations

import csv
import struct
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.readers.nvprof.database.records import KERNELS, integer_sql
from nsw.readers.nvprof.vocabulary import Sum
from nsw.tables.names import demangle_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from nsw.readers.nvprof.database.records import Database

__all__ = ["HITS", "counters", "functions", "names"]

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


def counters(database: Database) -> list[dict[str, Any]]:
    """One row a kernel and counter: least, greatest, mean over its launches; values without a meaning are told."""
    kernels = database.union(KERNELS, "name", "deviceId", "correlationId")
    counter_rows = []
    for counter_kind, decode in (("event", _event), ("metric", _metric)):
        table = f"CUPTI_ACTIVITY_KIND_{counter_kind.upper()}"
        if database.has(table, "id", "value", "correlationId"):
            counter_rows += _read(database, table, kernels, decode, counter_kind)
        if database.has(f"{table}_INSTANCE", "id", "value", "correlationId", "instance"):
            counter_rows += _read(database, f"{table}_INSTANCE", kernels, decode, counter_kind)
    clear = demangle_all(row["kernel"] for row in counter_rows)
    for row in counter_rows:
        row["kernel"] = clear[row["kernel"]]
    return counter_rows


def _read(
    database: Database, table: str, kernels: str, decode: Callable[[Any, Any], float | None], counter_kind: str
) -> list[dict[str, Any]]:
    sums: dict[_Key, Sum] = {}
    unknown: set[Any] = set()
    lost = 0
    for device, kernel, id_, unit, raw in _values(database, table, kernels):
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
    return [_row(database, counter_kind, *key, value) for key, value in sorted(sums.items(), key=_order)]


def _order(item: tuple[_Key, Sum]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else -1 for n in item[0])


def _values(database: Database, table: str, kernels: str) -> Iterator[tuple[Any, ...]]:
    unit = integer_sql("v.instance") if table.endswith("_INSTANCE") else "NULL"
    if not kernels:
        return database.rows(f"SELECT NULL, NULL, v.id, {unit}, v.value FROM {table} v")  # noqa: S608  names of this module
    return database.rows(
        f"SELECT k.deviceId, k.name, v.id, {unit}, v.value FROM {table} v LEFT JOIN"  # noqa: S608  names of this module
        f" (SELECT correlationId, MIN({integer_sql('deviceId')}) AS deviceId, MIN(name) AS name FROM {kernels}"
        " GROUP BY 1) k"
        " ON k.correlationId = v.correlationId"
    )


def _row(
    database: Database, counter_kind: str, device: Any, kernel: Any, id_: Any, unit: int | None, values: Sum
) -> dict[str, Any]:
    counter = names().get((counter_kind, id_)) or Counter(f"{counter_kind} {id_}", "uint64", None)
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


def _event(_: Any, raw: Any) -> float | None:
    if not isinstance(raw, int):
        return None
    return float(raw if raw >= 0 else raw + (1 << 64))  # SQLite has no unsigned numbers


def _metric(id_: Any, raw: Any) -> float | None:
    counter = names().get(("metric", id_))
    if counter is None or not isinstance(raw, bytes) or len(raw) < 8:
        return None
    (value,) = struct.unpack_from(_FORMATS[counter.kind], raw)
    return float(value) if value == value and abs(value) != float("inf") else None  # noqa: PLR0124  nan


@cache
def names() -> Mapping[tuple[str, int], Counter]:
    """What each id of a metric or an event stands for."""
    text = files("nsw.readers").joinpath("data/cupti_counters.csv").read_text(encoding="ascii")
    return {
        (row["what"], int(row["id"])): Counter(row["name"], row["kind"], row["description"] or None)
        for row in csv.DictReader(text.splitlines())
    }


HITS: Final = "collHit"
_NEEDED: Final = {
    HITS: ("call",),
    "profCall": ("id", "instruction"),
    "collInstruction": ("id", "function"),
    "collFunction": ("id", "name", "library"),
    "collLibrary": ("id", "name"),
    "profStringTable": ("id", "value"),
    "profGraph": ("samplingPeriod",),
}
_SQL: Final = """
SELECT fs.value, ls.value, COUNT(*)
FROM collHit h JOIN profCall c ON c.id = h.call JOIN collInstruction i ON i.id = c.instruction
JOIN collFunction f ON f.id = i.function LEFT JOIN profStringTable fs ON fs.id = f.name
LEFT JOIN collLibrary l ON l.id = f.library LEFT JOIN profStringTable ls ON ls.id = l.name
GROUP BY f.id ORDER BY 3 DESC, 1, 2
"""
_MICROSECONDS: Final = 1e6


def functions(database: Database) -> list[dict[str, Any]]:
    """One row a function that was running when a sample was taken, the longest first."""
    if not all(database.has(table, *columns) for table, columns in _NEEDED.items()):
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
    return [_function_row(clear.get(name), library, count * period / _MICROSECONDS) for name, library, count in samples]


def _function_row(name: str | None, library: Any, seconds: float) -> dict[str, Any]:
    return {
        "block": 0,
        "name": name,
        "module": library if isinstance(library, str) else None,
        "self_s": seconds,
        "cpu_time_s": seconds,
    }
