"""Small nsys databases, made by SQL in the shape of each generation of the export."""

from __future__ import annotations

import random
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

KERNEL_2020 = [
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "correlationId",
    "globalPid",
    "demangledName",
    "shortName",
    "launchType",
    "cacheConfig",
    "registersPerThread",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "localMemoryPerThread",
    "localMemoryTotal",
    "gridId",
    "sharedMemoryExecuted",
    "graphNodeId",
]
KERNEL = {
    "2020": KERNEL_2020,
    "2022": [*KERNEL_2020, "mangledName", "sharedMemoryLimitConfig"],
    "2023": [*KERNEL_2020, "mangledName", "sharedMemoryLimitConfig"],
    "2025": [*KERNEL_2020, "mangledName", "sharedMemoryLimitConfig", "greenContextId"],
    # nobody promises an order of columns
    "2026": [*reversed(KERNEL_2020), "mangledName", "graphId", *(f"cluster{i}" for i in range(13))],
}
COLUMNS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId correlationId globalPid bytes copyKind"
    " srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId contextId streamId correlationId globalPid value bytes memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start end deviceId streamId correlationId globalPid graphId graphExecId",
    "NVTX_EVENTS": "start end eventType rangeId text globalTid endGlobalTid textId domainId",
    "OSRT_API": "start end eventClass globalTid nameId returnValue",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start globalPid address",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "start end globalPid deviceId address numberOfPageFaults",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": "start end nameId globalTid lineNo srcFile bytes",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "start end nameId globalTid lineNo srcFile",
    "OPENMP_EVENT_KIND_PARALLEL": "start end eventClass globalTid nameId parallelId",
    "OPENMP_EVENT_KIND_SYNC_REGION_WAIT": "start end eventClass globalTid nameId kind",
    "MPI_COLLECTIVES_EVENTS": "start end globalTid textId size recvSize",
    "MPI_P2P_EVENTS": "start end globalTid textId tag remoteRank size",
    "MPI_RANKS": "globalTid rank",
    "DIAGNOSTIC_EVENT": "timestamp source severity text globalPid",
    "TARGET_INFO_GPU": "id name cuDevice computeMajor computeMinor smCount clockRate totalMemory memoryBandwidth",
    "TARGET_INFO_SYSTEM_ENV": "name value",
    "ANALYSIS_DETAILS": "duration startTime stopTime",
    "ENUM_CUDA_MEMCPY_OPER": "id name label",
}
TEXT = frozenset(["text", "name", "value", "label"])
PID, TID = 77, 78
GLOBAL_PID = (1 << 56) | (PID << 24)
GLOBAL_TID = GLOBAL_PID | TID


class Database:
    """One database under construction; `add` makes a table at its first row."""

    columns = COLUMNS

    def __init__(self, path: Path, generation: str = "2025") -> None:
        self.path = path
        self.generation = generation
        self._strings: dict[str | bytes, int] = {}
        self.connection = sqlite3.connect(path)
        self.sql("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        if generation != "2020":
            meta = "EXPORT_META_DATA" if generation == "2022" else "META_DATA_EXPORT"
            self.sql(f"CREATE TABLE {meta} (name TEXT NOT NULL, value TEXT)")
            self.sql(f"INSERT INTO {meta} VALUES ('EXPORT_PRODUCT_VERSION', '{generation}.1.2')")

    def sql(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        self.connection.execute(statement, values)

    def string(self, text: str | bytes) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 100
            cast = "CAST(? AS TEXT)" if isinstance(text, bytes) else "?"
            self.sql(f"INSERT INTO StringIds VALUES (?, {cast})", (self._strings[text], text))
        return self._strings[text]

    def add(self, table: str, **values: Any) -> None:
        columns = KERNEL[self.generation] if table.endswith("_KERNEL") else COLUMNS[table].split()
        unknown = values.keys() - set(columns)
        assert not unknown, f"{table} has no {unknown}"
        defined = ", ".join(f'"{c}" {"TEXT" if c in TEXT and table != "X" else "INTEGER"}' for c in columns)
        self.sql(f"CREATE TABLE IF NOT EXISTS {table} ({defined})")
        self.sql(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", tuple(values.get(c) for c in columns))

    def kernel(self, start: int, duration: int, name: str | bytes = "gemm(float*)", **more: Any) -> None:
        row = {"start": start, "end": start + duration, "deviceId": 0, "globalPid": GLOBAL_PID, "streamId": 7}
        row |= {"demangledName": self.string(name), "shortName": self.string(name), "gridX": 2, "blockX": 32} | more
        if "mangledName" in KERNEL[self.generation]:
            row.setdefault("mangledName", self.string(f"_Z{name!r}"))
        self.add("CUPTI_ACTIVITY_KIND_KERNEL", **row)

    def call(self, start: int, duration: int, name: str = "cudaLaunchKernel_v7000", **more: Any) -> None:
        row = {"start": start, "end": start + duration, "eventClass": 0, "globalTid": GLOBAL_TID, "returnValue": 0}
        self.add("CUPTI_ACTIVITY_KIND_RUNTIME", **(row | {"nameId": self.string(name)} | more))

    def copy(self, start: int, duration: int, kind: int, size: int, **more: Any) -> None:
        row = {"start": start, "end": start + duration, "deviceId": 0, "globalPid": GLOBAL_PID}
        self.add("CUPTI_ACTIVITY_KIND_MEMCPY", **(row | {"copyKind": kind, "bytes": size} | more))

    def memset(self, start: int, duration: int, size: int, **more: Any) -> None:
        row = {"start": start, "end": start + duration, "deviceId": 0, "globalPid": GLOBAL_PID, "bytes": size}
        self.add("CUPTI_ACTIVITY_KIND_MEMSET", **(row | more))

    def range(self, start: int, end: int | None, text: str | None, kind: int = 59, **more: Any) -> None:
        row = {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": GLOBAL_TID, "domainId": 0}
        self.add("NVTX_EVENTS", **(row | more))

    def done(self) -> Path:
        self.connection.commit()
        self.connection.close()
        return self.path


def typical(database: Database, *, launches: int = 60) -> Database:
    """A bit of everything that every generation has."""
    chance = random.Random(7)
    at = 0
    for index in range(launches):
        duration = chance.randrange(1, 5000)
        database.kernel(at + 300, duration, f"void k{index % 4}<float>(int)", correlationId=index)
        database.call(at, chance.randrange(1, 200), "cudaLaunchKernel_v7000", correlationId=index)
        at += 400
        if index % 5 == 0:
            database.copy(at, chance.randrange(1, 900), 1 + index % 2, 4096 + index, correlationId=1000 + index)
            database.call(at, 100, "cudaMemcpyAsync_v3020", correlationId=1000 + index)
    database.memset(at, 55, 1024, correlationId=5000)
    database.range(0, at // 2, "first half")
    database.range(100, at // 3, None, textId=database.string("inner"))
    database.range(at // 2, at, "second half")
    return database


@pytest.fixture
def nsys_database(tmp_path: Path):
    """Makes databases: call it with a generation; `.done()` gives the path."""
    numbers = iter(range(1000))

    def make(generation: str = "2025") -> Database:
        return Database(tmp_path / f"report{next(numbers)}.sqlite", generation)

    return make


@pytest.fixture
def typical_database(nsys_database):
    """The path of a small database with kernels, calls, copies, a memset and ranges."""

    def make(generation: str = "2025", launches: int = 60) -> Path:
        return typical(nsys_database(generation), launches=launches).done()

    return make
