"""Samples of CPUs and the scheduling of threads in an nsys export, by phase of the process."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.readers.nsys.export.binary import find_nsys
from nsw.tables import full_rows

MS = 1_000_000
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "nsys-sqlite"
PID, MAIN, HELPER = 77, 77, 80
TRACES = frozenset({"cpu_samples", "cpu_threads", "cpu_trace"})


def global_id(tid: int, pid: int = PID) -> int:
    return (1 << 56) | (pid << 24) | tid


@pytest.fixture
def export(tmp_path) -> Path:
    """Five iterations of 10 ms: the main thread runs 6 ms of each, the helper 1 ms; 20 ms before them is set-up."""
    path = tmp_path / "cpu.sqlite"
    db = sqlite3.connect(path)
    strings = {
        1: "kernel",
        2: "step",
        3: "main",
        4: "helper",
        5: "work",
        6: "/opt/lib/libwork.so.1",
        7: "0x7fc6d634a1d4",
    }
    db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", strings.items())
    db.execute("CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)")
    db.executemany("INSERT INTO ThreadNames VALUES (?, 20, ?)", [(3, global_id(MAIN)), (4, global_id(HELPER))])
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, globalPid INTEGER,"
               " correlationId INTEGER, demangledName INTEGER, shortName INTEGER)")  # fmt: skip
    db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
               " correlationId INTEGER, nameId INTEGER)")  # fmt: skip
    db.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, textId INTEGER, text TEXT,"
               " globalTid INTEGER, domainId INTEGER)")  # fmt: skip
    db.execute("CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER)")
    db.execute("CREATE TABLE COMPOSITE_EVENTS (id INTEGER PRIMARY KEY, start INTEGER, cpu INTEGER, threadState INTEGER,"
               " globalTid INTEGER, cpuCycles INTEGER)")  # fmt: skip
    db.execute("CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth INTEGER)")
    switches = [(0, 1, MAIN), (20 * MS, 0, MAIN)]
    for n in range(5):
        at = 20 * MS + n * 10 * MS
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 2, NULL, ?, 0)", (at, at + 10 * MS, global_id(MAIN)))
        for k in range(2):
            begin, number = at + k * 4 * MS, 10 * n + k + 1
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 1)",
                       (begin, begin + 1000, global_id(MAIN), number))  # fmt: skip
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, ?, ?, 1, 1)",
                       (begin + 2000, begin + 3 * MS, global_id(0), number))  # fmt: skip
        switches += [(at + MS, 1, MAIN), (at + 7 * MS, 0, MAIN), (at + 8 * MS, 1, HELPER), (at + 9 * MS, 0, HELPER)]
    db.executemany("INSERT INTO SCHED_EVENTS VALUES (?, 3, ?, ?)", [(t, on, global_id(tid)) for t, on, tid in switches])
    # set-up has 10 samples without a name, each iteration 3 with one, whose callers do not count
    samples = [(2 * n * MS, 7, MAIN) for n in range(10)] + [
        ((22 + 10 * n + k) * MS, 5, MAIN) for n in range(5) for k in range(3)
    ]
    for number, (time, symbol, tid) in enumerate(samples, 1):
        db.execute("INSERT INTO COMPOSITE_EVENTS VALUES (?, ?, 3, 1, ?, 1)", (number, time, global_id(tid)))
        db.executemany("INSERT INTO SAMPLING_CALLCHAINS VALUES (?, ?, 6, ?)", [(number, 3, 1), (number, symbol, 0)])
    db.commit()
    db.close()
    return path


def test_threads_run_their_share_of_each_phase(export):
    found = {(row["phase"], row["name"]): row for row in read(export).tables["cpu_threads"]}
    assert found["setup", "main"]["running_pct"] == pytest.approx(100)
    assert found["steady", "main"]["running_pct"] == pytest.approx(60)
    assert found["steady", "helper"]["running_pct"] == pytest.approx(10)
    assert ("setup", "helper") not in found
    assert (found["steady", "main"]["samples"], found["steady", "helper"]["samples"]) == (15, 0)
    assert found["steady", "main"]["tid"] == MAIN


def test_functions_are_counted_by_phase_and_those_without_a_name_by_module(export):
    found = [(row["phase"], row["name"], row["module"], row["samples"], row["samples_pct"])
             for row in read(export).tables["cpu_samples"]]  # fmt: skip
    assert found == [
        ("setup", "[libwork.so.1]", "/opt/lib/libwork.so.1", 10, 100),
        ("steady", "work", "/opt/lib/libwork.so.1", 15, 100),
    ]


def test_the_trace_has_a_row_a_stretch_of_running(export):
    found = list(full_rows("cpu_trace", read(export, Options(TRACES)).tables["cpu_trace"]))
    assert len(found) == 11
    assert [row["start_ns"] for row in found] == sorted(row["start_ns"] for row in found)
    assert sum(row["duration_ns"] for row in found if row["name"] == "main") == 50 * MS
    assert "cpu_trace" not in read(export).tables


def test_what_was_not_recorded_is_null_and_never_zero(export):
    connection = sqlite3.connect(export)
    connection.executescript("DROP TABLE SCHED_EVENTS")
    threads = read(export).tables["cpu_threads"]
    assert {row["running_pct"] for row in threads} == {None}
    assert sum(row["samples"] for row in threads) == 25
    connection.executescript("DROP TABLE COMPOSITE_EVENTS")
    assert not read(export).tables.keys() & TRACES


@pytest.mark.parametrize("table", ["SCHED_EVENTS", "COMPOSITE_EVENTS"])
def test_absurd_times_are_a_problem_and_the_rest_is_read(export, table):
    connection = sqlite3.connect(export)
    connection.execute(f"UPDATE {table} SET start = 9223372036854775807 WHERE rowid = 3")
    connection.commit()
    report = read(export)
    (problem,) = (p for p in report.problems if p.severity == "error")
    assert f"{table}: contains numbers that cannot be times" in problem.message
    assert "iterations" in report.tables


@pytest.mark.parametrize("name", ["11-lab7-nocuda.sqlite", "16-jacobi-um.sqlite"])
def test_published_exports_lose_no_sample_and_no_running(name):
    """SQLite adds up the same: every sample is one of a thread, and what ran is from in to out."""
    if not (CORPUS / name).exists():
        pytest.skip("the published exports are not here")
    connection = sqlite3.connect(f"file:{CORPUS / name}?mode=ro&immutable=1", uri=True)
    tables = read(CORPUS / name).tables
    (count,) = connection.execute("SELECT count(*) FROM COMPOSITE_EVENTS").fetchone()
    assert sum(row["samples"] for row in tables["cpu_threads"]) == count
    query = """SELECT sum(ends - start) FROM (SELECT start, isSchedIn, lead(start) OVER w AS ends, lead(isSchedIn) OVER w
        AS next FROM SCHED_EVENTS WINDOW w AS (PARTITION BY globalTid ORDER BY start, isSchedIn != 0))
        WHERE isSchedIn AND NOT next"""
    (ran,) = connection.execute(query).fetchone()
    assert sum(row["running_ns"] for row in tables["cpu_threads"]) == pytest.approx(ran, rel=1e-6)


def test_nsys_here_samples_a_program_that_computes(tmp_path):
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("no nsys is here")
    program = "import os, zlib\nprint('pid', os.getpid())\nfor _ in range(40): zlib.compress(bytes(1 << 20) + b'x' * (1 << 20), 9)"
    command = [*nsys, "profile", "-t", "osrt", "-s", "process-tree", "--cpuctxsw=process-tree", "-o", tmp_path / "r"]
    done = subprocess.run([*command, sys.executable, "-c", program], capture_output=True, text=True, check=False)
    export = tmp_path / "r.sqlite"
    subprocess.run(
        [*nsys, "export", "-t", "sqlite", "-o", export, tmp_path / "r.nsys-rep"], capture_output=True, check=False
    )
    if not export.exists() or "COMPOSITE_EVENTS" not in tables_in(export):
        pytest.skip(f"nsys cannot sample CPUs here: {done.stdout[-300:]}")
    tables = read(export).tables
    longest = max(tables["cpu_threads"], key=lambda row: row["running_ns"])
    # nsys may have named it when it was still its launcher
    assert longest["pid"] == int(re.search(r"^pid (\d+)$", done.stdout, re.MULTILINE)[1])
    assert longest["samples"] > 0
    assert any("libz" in f"{row['name']}{row['module']}" for row in tables["cpu_samples"])


def tables_in(export: Path) -> set[str]:
    connection = sqlite3.connect(export)
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
