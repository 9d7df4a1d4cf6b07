"""The facts of a report: machine, GPUs, driver, tool, duration.

Of the environment and the capture's settings only the entries named here are read: both hold the user's
environment variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsw.readers.nsys.export.source import Source
    from nsw.tables import Row

_GPU_FIGURES = (
    # column, fact, unit
    ("smCount", "gpu_sm_count", None),
    ("clockRate", "gpu_clock_hz", "Hz"),
    ("totalMemory", "gpu_memory_bytes", "byte"),
    ("memoryBandwidth", "gpu_memory_bandwidth_bytes_per_s", "byte/s"),
    ("l2CacheSize", "gpu_l2_bytes", "byte"),
)
_ENVIRONMENT = {
    "NvDriverVersion": "driver_version",
    "Hostname": "hostname",
    "OsDescription": "os",
    "CpuDescription": "cpu_name",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """What all rows of a report share, where it is the same for all."""

    host: str | None = None
    rank: int | None = None
    gpu_name: str | None = None


def facts(source: Source) -> list[Row]:
    """One row a fact; GPU facts are a row a GPU (column `device`: CUDA's own number) where GPUs differ."""
    environment = _environment(source)
    rows = _gpus(source)
    rows += [_text(key, environment[name]) for name, key in _ENVIRONMENT.items() if environment.get(name)]
    cuda = environment.get("CudaDriverVersion", "")
    if cuda.isdecimal() and int(cuda) > 0:  # 12040: CUDA 12.4
        rows.append(_text("cuda_driver_version", f"{int(cuda) // 1000}.{int(cuda) % 1000 // 10}"))
    for (duration,) in source.rows("ANALYSIS_DETAILS", ["duration"], at_most=1):
        if isinstance(duration, int):
            rows.append(_number("duration_ns", duration, "ns"))
    for (utc,) in source.rows("TARGET_INFO_SESSION_START_TIME", ["utcTime"], at_most=1):
        if isinstance(utc, str):
            rows.append(_text("capture_time_utc", utc))
    meta = metadata(source)
    for name, key in (("EXPORT_PRODUCT_VERSION", "nsys_version"), ("EXPORT_SCHEMA_VERSION", "nsys_schema_version")):
        if name in meta:
            rows.append(_text(key, meta[name]))
    return rows


def metadata(source: Source) -> dict[str, str]:
    """The export's own entries, whatever the table is called; empty before 2022."""
    pairs = source.rows("META_DATA_EXPORT", ["name", "value"]) or source.rows("EXPORT_META_DATA", ["name", "value"])
    return {n: v for n, v in pairs if isinstance(n, str) and isinstance(v, str)}


def origin(source: Source) -> Origin:
    """Host, rank and GPU name, each None where the report has none or several."""
    hosts = {v for n, v in _environment(source).items() if n == "Hostname" and v}
    ranks = {r for (r,) in source.rows("MPI_RANKS", ["rank"]) if isinstance(r, int)}
    gpus = {n for (n,) in source.rows("TARGET_INFO_GPU", ["name"]) if isinstance(n, str)}
    return Origin(_single(hosts), _single(ranks), _single(gpus))


def _single(values: set[Any]) -> Any:
    return next(iter(values)) if len(values) == 1 else None


def _environment(source: Source) -> dict[str, str]:
    known = {*_ENVIRONMENT, "CudaDriverVersion"}
    rows = source.rows("TARGET_INFO_SYSTEM_ENV", ["name", "value"])
    return {n: v for n, v in rows if n in known and isinstance(v, str)}


def _gpus(source: Source) -> list[Row]:
    columns = ["name", "cuDevice", "computeMajor", "computeMinor", *(c for c, _, _ in _GPU_FIGURES)]
    gpus = source.rows("TARGET_INFO_GPU", columns)
    if not gpus:
        return []
    described = [_describe(dict(zip(columns, gpu, strict=True))) for gpu in gpus]
    count = _number("gpu_count", len(gpus), None)
    if all(d == described[0] for d in described):
        return [count, *described[0]]
    return [
        count,
        *(row | {"device": _integer(gpu[1])} for gpu, rows in zip(gpus, described, strict=True) for row in rows),
    ]


def _describe(gpu: dict[str, Any]) -> list[Row]:
    rows = [_text("gpu_name", gpu["name"])] if isinstance(gpu["name"], str) else []
    if isinstance(gpu["computeMajor"], int) and isinstance(gpu["computeMinor"], int):
        rows.append(_text("gpu_compute_capability", f"{gpu['computeMajor']}.{gpu['computeMinor']}"))
    # a figure that nsys could not find out is 0 there
    rows += [_number(key, gpu[c], unit) for c, key, unit in _GPU_FIGURES if isinstance(gpu[c], int) and gpu[c] > 0]
    return rows


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _text(key: str, text: str) -> Row:
    return {"key": key, "text": text}


def _number(key: str, value: float, unit: str | None) -> Row:
    return {"key": key, "value": float(value), "unit": unit}
