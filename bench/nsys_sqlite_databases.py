"""Synthetic nsys databases: the tables of a 2024 export, filled with kernels and API calls."""

from __future__ import annotations

import random
import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.readers.conftest import COLUMNS, KERNEL

KERNEL_COLUMNS = KERNEL["2025"]
RUNTIME_COLUMNS, NVTX_COLUMNS = (COLUMNS[table].split() for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"))
PID, TID = 4711, 4712
GLOBAL_PID = PID << 24
GLOBAL_TID = GLOBAL_PID | TID
NAMES = 50


def make(path: Path, *, launches: int, ranges: int = 0) -> Path:
    """A database with `launches` kernels and as many API calls, under `ranges` NVTX ranges of one thread."""
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=off")
        database.execute("PRAGMA synchronous=off")
        _tables(database)
        _strings(database)
        database.executemany(_insert("CUPTI_ACTIVITY_KIND_KERNEL", KERNEL_COLUMNS), _kernels(launches))
        database.executemany(_insert("CUPTI_ACTIVITY_KIND_RUNTIME", RUNTIME_COLUMNS), _calls(launches))
        if ranges:
            database.execute(f"CREATE TABLE NVTX_EVENTS ({_columns(NVTX_COLUMNS)})")
            database.executemany(_insert("NVTX_EVENTS", NVTX_COLUMNS), _ranges(launches, ranges))
    database.close()
    return path


def _columns(names):
    return ", ".join(f'"{n}" {"TEXT" if n == "text" else "INTEGER"}' for n in names)


def _insert(table, columns):
    return f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})"


def _tables(database):
    database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT)")
    database.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PRODUCT_VERSION', '2024.2.3.38')")
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({_columns(KERNEL_COLUMNS)})")
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ({_columns(RUNTIME_COLUMNS)})")


def _strings(database):
    kernels = [(i + 1, f"void gemm_{i}<float, {i}>(float const*, float*, int)") for i in range(NAMES)]
    calls = [(1000 + i, f"cudaCall{i}_v7000") for i in range(20)]
    ranges = [(2000, "step"), (2001, "layer")]
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", kernels + calls + ranges)


def _times(count):
    """Start and duration of every launch; a launch begins when the one before it has ended."""
    random.seed(1)
    start = 0
    for index in range(count):
        duration = 1000 + random.getrandbits(14)
        yield index, start, duration
        start += duration + 500


def _kernels(count):
    row = dict.fromkeys(KERNEL_COLUMNS, 0) | {"contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}
    row |= {
        "greenContextId": None,
        "graphNodeId": None,
        "gridX": 128,
        "blockX": 256,
        "registersPerThread": 32,
    }
    for index, start, duration in _times(count):
        name = index * 7 % NAMES + 1
        row |= {"start": start, "end": start + duration, "correlationId": index + 1, "deviceId": index % 2}
        row |= {"demangledName": name, "shortName": name, "mangledName": name, "gridId": index}
        yield tuple(row.values())


def _calls(count):
    for index, start, _ in _times(count):
        yield (start - 400, start - 100, 0, GLOBAL_TID, index + 1, 1000 + index % 20, 0, None)


def _ranges(launches, count):
    """Pairs of a step and a layer inside it, over the whole trace."""
    length = list(_times(launches))[-1][1] // count or 1
    for index in range(count):
        start = index * length
        name = None if index % 2 else f"step {index % 10}"
        yield (start - 450, start + length - 460, 59, None, name, GLOBAL_TID, None, None if name else 2000, 0)
