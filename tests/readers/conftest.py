"""Small nsys databases, made by SQL in the shape of each generation of the export."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nsw.readers import read
from nsw.readers.nsys.export.binary import find_nsys
from tests.nsys_faults import profiled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from nsw.readers.model import Report

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
        self._own = 1_000_000
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
        if "correlationId" in columns:  # as nsys does: each row has one, of its own where nothing else is asked for
            self._own += 1
            values = {"correlationId": self._own} | values
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


# What a real nsys makes, for what reads it; without one the tests that ask for it are left out.


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def nsys():
    found = find_nsys()
    if not found:
        pytest.skip("no nsys is found")
    return found[0]


@pytest.fixture(scope="session")
def nvtx():
    """NVIDIA's nvtx, with which profiled programs mark ranges; its version that works with Debian's nsys ends at 3.12."""
    return pytest.importorskip("nvtx", reason="nvtx 0.2.10 has no wheel for this Python")


@pytest.fixture(scope="session")
def complete(nsys, nvtx, tmp_path_factory):
    """A database with every table that this nsys knows, of a program that sleeps under one NVTX range."""
    folder = tmp_path_factory.mktemp("oracle")
    program = folder / "program.py"
    program.write_text("import nvtx, time\nwith nvtx.annotate('real', domain='dom'):\n    time.sleep(0.001)\n")
    report, database = folder / "full.nsys-rep", folder / "full.sqlite"
    options = ["--trace=osrt,nvtx", "--sample=none", "--cpuctxsw=none", "-f", "true"]
    said = profiled(lambda: run(nsys, "profile", *options, "-o", str(report), sys.executable, str(program)))
    said += run(nsys, "export", "--type", "sqlite", "--lazy=false", "-f", "true", "-o", str(database), str(report))
    if not database.exists():
        pytest.skip(f"this nsys cannot profile here: {said[-300:]}")
    return database


@pytest.fixture(scope="session")
def filled(complete):
    """The complete database with kernels, calls, copies and ranges."""
    chance = random.Random(5)
    database = complete.with_name("filled.sqlite")
    shutil.copy(complete, database)
    with sqlite3.connect(database) as connection:
        gtid = connection.execute("SELECT globalTid FROM NVTX_EVENTS LIMIT 1").fetchone()[0]
        names = ["gemm<float>(int)", "gemm<half>(int)", "axpy(double *)", "cudaLaunchKernel_v7000", "cudaMemcpy_v3020"]
        for index, name in enumerate(names):
            connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (900_000 + index, name))
        for index in range(500):
            start = 1000 * index + chance.randrange(300)
            name, size = 900_000 + index % 3, chance.randrange(1, 10**6)
            launch = {"globalTid": gtid, "eventClass": 0, "correlationId": index + 1, "returnValue": 0}
            begin = start + 400
            op = {"start": begin, "end": begin + chance.randrange(1, 9000), "correlationId": index + 1}
            op |= {"deviceId": index % 2, "globalPid": gtid & ~0xFFFFFF, "streamId": 7, "contextId": 1}
            if index % 5 == 0:
                insert(connection, "CUPTI_ACTIVITY_KIND_MEMCPY", **op, bytes=size, copyKind=1 + index % 3)
            elif index % 7 == 0:
                insert(connection, "CUPTI_ACTIVITY_KIND_MEMSET", **op, bytes=size)
            else:
                ids = {"demangledName": name, "shortName": name, "mangledName": name}
                insert(connection, "CUPTI_ACTIVITY_KIND_KERNEL", **op, **ids)
            called = 900_003 + (index % 5 == 0)
            insert(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=start + 200, nameId=called, **launch)
        for index in range(60):
            start = chance.randrange(400_000)
            end = start + chance.randrange(90_000)
            text = {"text": f"range {index % 7}", "domainId": index % 3 * 5, "globalTid": gtid}
            insert(connection, "NVTX_EVENTS", start=start, end=end, eventType=59 + index % 2, **text)
        for domain in (5, 10):
            named = {"text": f"domain {domain}", "domainId": domain, "globalTid": gtid}
            insert(connection, "NVTX_EVENTS", start=domain, end=None, eventType=75, **named)
        _host_events(connection, chance, gtid)
        _call_chain(connection)
    connection.close()
    return database


def _call_chain(connection):
    """A call chain, which nsys records only of calls that take long: on a busy machine, or never."""
    flags = {"kernelMode": 0, "thumbCode": 0, "unresolved": 1, "specialEntry": None}
    for depth in range(3):
        insert(connection, "OSRT_CALLCHAINS", id=900_000, symbol=900_000, module=900_001, stackDepth=depth, **flags)


HOST_TABLES = (
    "OPENMP_EVENT_KIND_PARALLEL", "OPENMP_EVENT_KIND_WORKSHARE", "OPENMP_EVENT_KIND_MUTEX_WAIT",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA", "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", "CUPTI_ACTIVITY_KIND_OPENACC_OTHER",
    "MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS",
)  # fmt: skip


def _host_events(connection, chance, gtid):
    """OpenMP, OpenACC and MPI events, Unified Memory's copies and faults."""
    for number, table in enumerate(HOST_TABLES):
        columns = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if not columns:  # later versions of nsys have more
            continue
        for which in range(2):
            key = 910_000 + 10 * number + which
            text = f"MPI_{'Isend' if which else 'Recv'}{number}" if "MPI" in table else f"Event {number}.{which}"
            connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (key, text))
        connection.execute("INSERT INTO StringIds (id, value) VALUES (?, ?)", (920_000 + number, f"file{number}.f90"))
        for _ in range(40):
            start, key = chance.randrange(10**6), 910_000 + 10 * number + chance.randrange(2)
            row = {"start": start, "end": start + chance.randrange(1, 5000), "globalTid": gtid}
            row |= {name: key for name in ("nameId", "textId") if name in columns}
            if "srcFile" in columns:
                row |= {"srcFile": chance.choice((None, 920_000 + number)), "lineNo": chance.randrange(3)}
            if "size" in columns:
                row["size"] = chance.randrange(10**5)
            insert(connection, table, **row)
    pid = gtid & ~0xFFFFFF
    for index in range(30):
        start = 10**6 + 100 * index
        row = {"start": start, "end": start + chance.randrange(1, 90), "globalPid": pid, "deviceId": 0}
        sized = {"bytes": 4096 * chance.randrange(1, 9), "copyKind": 11 + index % 2, "correlationId": 0}
        insert(connection, "CUPTI_ACTIVITY_KIND_MEMCPY", **row, **sized, virtualAddress=4096 * index)
        insert(connection, "CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=start, globalPid=pid, address=4096 * index)
        insert(connection, "CUDA_UM_GPU_PAGE_FAULT_EVENTS", **row, address=index, numberOfPageFaults=index % 4)


def insert(connection, table, **values):
    for _, name, _, required, _, _ in connection.execute(f"PRAGMA table_info({table})"):
        if required:
            values.setdefault(name, 0)
    columns = ", ".join(f'"{c}"' for c in values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Report]:
    """Read a text (or bytes) as a report file."""

    def load(text: str | bytes, name: str = "out.txt") -> Report:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path)

    return load
