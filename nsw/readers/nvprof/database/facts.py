"""What nvprof's databases say of the machine and of the profiling itself, as facts."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.nvprof.database.records import TIMED, integer_sql
from nsw.readers.nvprof.vocabulary import SAMPLES, Sampled

if TYPE_CHECKING:
    from nsw.readers.nvprof.database.records import Database

__all__ = ["facts"]

_DEVICE: Final = "CUPTI_ACTIVITY_KIND_DEVICE"
_PCIE: Final = "CUPTI_ACTIVITY_KIND_PCIE"
_OVERHEAD: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"
_GPU: Final = 0  # `type` of a PCI device that is one
_OF_GPUS: Final = {"numMultiprocessors": None, "globalMemorySize": "byte", "globalMemoryBandwidth": "kB/s"}
_OF_LINKS: Final = {"pcieGeneration": None, "linkWidth": None, "linkRate": "MT/s"}
_OVERHEADS: Final = {1: "compiler", 1 << 16: "buffer_flush", 2 << 16: "instrumentation", 3 << 16: "resource"}


def facts(database: Database) -> list[dict[str, Any]]:
    """The version of the file, the GPUs and their links, what the profiler cost, clocks and temperatures."""
    return [*_version(database), *_gpus(database), *_links(database), *_overheads(database), *system_facts(database)]


def _version(database: Database) -> list[dict[str, Any]]:
    if not database.has("Version", "version"):
        return []
    versions = database.rows("SELECT version FROM Version")
    return [{"key": "nvprof_file_version", "value": float(v)} for (v,) in versions if isinstance(v, int)]


def _gpus(database: Database) -> list[dict[str, Any]]:
    if not database.has(_DEVICE, "id", "name"):
        return []
    fact_rows: list[dict[str, Any]] = []
    for device, name in database.rows(f"SELECT {integer_sql('id')}, name FROM {_DEVICE} ORDER BY 1"):  # noqa: S608  ours
        fact_rows.append({"device": device, "key": "gpu_name", "text": database.text(name)})
    for column, unit in _OF_GPUS.items():
        if database.has(_DEVICE, column):
            sql = f"SELECT {integer_sql('id')}, {integer_sql(column)} FROM {_DEVICE} ORDER BY 1"  # noqa: S608  ours
            fact_rows += _values(database, sql, f"gpu_{column}", unit)
    return fact_rows


def _values(database: Database, sql: str, key: str, unit: str | None) -> list[dict[str, Any]]:
    rows = database.rows(sql)
    return [{"device": d, "key": key, "unit": unit, "value": float(v)} for d, v in rows if v is not None]


def _links(database: Database) -> list[dict[str, Any]]:
    """Of the GPUs among the PCI devices; an id is bytes that begin with the GPU's number."""
    if not database.has(_PCIE, "type", "id", *_OF_LINKS):
        return []
    columns = ", ".join(map(integer_sql, _OF_LINKS))
    fact_rows = []
    for raw, *values in database.rows(f"SELECT id, {columns} FROM {_PCIE} WHERE type = {_GPU}"):  # noqa: S608  ours
        if not isinstance(raw, bytes) or len(raw) < 4:
            continue
        (device,) = struct.unpack_from("<I", raw)
        for (column, unit), value in zip(_OF_LINKS.items(), values, strict=True):
            if value is not None:
                fact_rows.append({"device": device, "key": f"gpu_{column}", "unit": unit, "value": float(value)})
    return fact_rows


def _overheads(database: Database) -> list[dict[str, Any]]:
    """Time that the profiler took by kind: it is in the times of what it interrupted."""
    if not database.has(_OVERHEAD, "overheadKind", "start", "end"):
        return []
    sql = f"SELECT overheadKind, SUM({TIMED}) FROM {_OVERHEAD} GROUP BY 1 ORDER BY 1"  # noqa: S608  ours
    return [
        {"key": f"profiler_overhead_{_OVERHEADS.get(kind, 'other')}", "unit": "ns", "value": float(took)}
        for kind, took in database.rows(sql)
        if took is not None
    ]


# environmentKind of a database's records -> the quantities that its bytes begin with, each of four.
_RECORDS: Final = dict(enumerate(SAMPLES.values(), 1))
_ENVIRONMENT: Final = "CUPTI_ACTIVITY_KIND_ENVIRONMENT"


def system_facts(database: Database) -> list[dict[str, Any]]:
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
    return sampled.facts()
