"""The tables against the real `nsys stats`, and against plain SQL on recorded reports."""

from __future__ import annotations

import csv
import io
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.readers import read
from nsw.readers.nsys_binary import find_nsys
from nsw.tables import rows

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
RECORDED = sorted((SHARED / "recorded").glob("*/*.sqlite"))
STATISTICS = {"Avg": "avg_ns", "Med": "med_ns", "Min": "min_ns", "Max": "max_ns", "StdDev": "stddev_ns"}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def nsys():
    found = find_nsys()
    if not found:
        pytest.skip("no nsys is found")
    return found[0]


@pytest.fixture(scope="module")
def complete(nsys, tmp_path_factory):
    """A database with every table that this nsys knows, of a program that sleeps under one NVTX range."""
    folder = tmp_path_factory.mktemp("oracle")
    program = folder / "program.py"
    program.write_text("import nvtx, time\nwith nvtx.annotate('real', domain='dom'):\n    time.sleep(0.001)\n")
    report, database = folder / "full.nsys-rep", folder / "full.sqlite"
    options = ["--trace=osrt,nvtx", "--sample=none", "--cpuctxsw=none", "-f", "true"]
    said = run(nsys, "profile", *options, "-o", str(report), sys.executable, str(program))
    said += run(nsys, "export", "--type", "sqlite", "--lazy=false", "-f", "true", "-o", str(database), str(report))
    if not database.exists():
        pytest.skip(f"this nsys cannot profile here: {said[-300:]}")
    return database


@pytest.fixture(scope="module")
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
            text = {"text": f"range {index % 7}", "domainId": 0, "globalTid": gtid}
            insert(connection, "NVTX_EVENTS", start=start, end=end, eventType=59 + index % 2, **text)
    connection.close()
    return database


def insert(connection, table, **values):
    for _, name, _, required, _, _ in connection.execute(f"PRAGMA table_info({table})"):
        if required:
            values.setdefault(name, 0)
    columns = ", ".join(f'"{c}"' for c in values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(values.values()))


def stats(nsys, report, database):
    """The rows of `nsys stats`, with the columns' names less their units."""
    said = run(nsys, "stats", "--quiet", "-r", report, "--format", "csv", str(database))
    lines = said[said.index(next(x for x in said.splitlines() if x.count(",") > 5)) :]
    found = csv.DictReader(io.StringIO(lines))
    return [{re.sub(r" ?\(.*\)", "", k): v for k, v in row.items()} for row in found]


def agree(want, row, total):
    assert float(want["Total Time"]) == row["total_ns"]
    for theirs, ours in STATISTICS.items():
        assert abs((row[ours] or 0.0) - float(want[theirs])) < 0.0501, (theirs, want)  # it prints one decimal
    assert abs(float(want["Time"]) - 100 * row["total_ns"] / total) < 0.0501


@pytest.mark.nsys
@pytest.mark.parametrize(
    ("report", "table", "calls", "name"),
    [
        ("cuda_gpu_sum", "gpu_summary", "Instances", "Operation"),
        ("cuda_gpu_kern_sum", "gpu_summary", "Instances", "Name"),
        ("cuda_gpu_mem_time_sum", "gpu_summary", "Count", "Operation"),
        ("cuda_api_sum", "api_summary", "Num Calls", "Name"),
        ("osrt_sum", "osrt_summary", "Num Calls", "Name"),
        ("nvtx_sum", "nvtx_summary", "Instances", "Range"),
    ],
)
def test_summaries_equal_those_of_nsys_stats(nsys, filled, report, table, calls, name):
    wanted = stats(nsys, report, filled)
    assert wanted
    found = {}
    for row in rows(table, read(filled).tables[table]):
        domain, style = row.get("domain"), row.get("style")
        label = f"{domain}:{row['name']}" if domain else row["name"]
        found[label, style] = row
    total = sum(float(w["Total Time"]) for w in wanted)
    for want in wanted:
        style = want["Style"].lower() if "Style" in want else None
        row = found[want[name], style]
        assert int(want[calls]) == row["calls"]
        agree(want, row, total)
        if report in ("cuda_gpu_sum", "cuda_api_sum", "nvtx_sum"):
            assert abs(float(want["Time"]) - row["time_pct"]) < 0.0501
    if report in ("cuda_gpu_sum", "cuda_api_sum", "nvtx_sum"):  # osrt_sum leaves out waits of another class
        assert len(wanted) == len(found)


@pytest.mark.nsys
def test_bytes_equal_those_of_nsys_stats(nsys, filled):
    found = {r["name"]: r for r in rows("gpu_summary", read(filled).tables["gpu_summary"])}
    wanted = stats(nsys, "cuda_gpu_mem_size_sum", filled)
    assert wanted
    for want in wanted:
        assert abs(float(want["Total"]) * 1e6 - found[want["Operation"]]["total_bytes"]) <= 500


@pytest.mark.nsys
def test_projection_equals_that_of_nsys_stats(nsys, filled):
    found = {r["name"]: r for r in rows("nvtx_gpu_summary", read(filled).tables["nvtx_gpu_summary"])}
    wanted = {}
    for want in stats(nsys, "nvtx_gpu_proj_sum", filled):  # one row a style there
        figures = wanted.setdefault(want["Range"], [0, 0, 0])
        for index, column in enumerate(("Range Instances", "Total GPU Ops", "Total Proj Time")):
            figures[index] += int(float(want[column]))
    assert wanted
    got = {n: [r["calls"], r["gpu_ops"], r["projected_ns"]] for n, r in found.items()}
    assert got == {n.removeprefix(":"): f for n, f in wanted.items()}


@pytest.mark.nsys
def test_the_profiled_program_itself_is_read(complete):
    report = read(complete.with_suffix(".nsys-rep"))
    assert {"osrt_summary", "nvtx_summary"} <= report.tables.keys()
    ranges = {(r["domain"], r["name"]): r["calls"] for r in rows("nvtx_summary", report.tables["nvtx_summary"])}
    assert ranges["dom", "real"] == 1


@pytest.mark.skipif(not RECORDED, reason="the recorded reports are not here")
@pytest.mark.parametrize("path", RECORDED, ids=lambda p: p.stem)
def test_recorded_reports_agree_with_plain_sql(path):
    report = read(path)
    assert not [p for p in report.problems if p.severity == "error"]
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    query = 'SELECT s.value, count(*), sum("end" - start), min("end" - start), max("end" - start) FROM {} t'
    for table, column, ours in (
        ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName", "gpu_summary"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId", "api_summary"),
    ):
        names = f" JOIN StringIds s ON s.id = t.{column} GROUP BY s.value"
        want = {}
        for name, *figures in connection.execute(query.format(table) + names):
            want.setdefault(re.sub(r"_v\d+$", "", name), []).append(figures)
        found = [r for r in rows(ours, report.tables[ours]) if r.get("kind", "kernel") == "kernel"]
        assert {r["name"] for r in found} == set(want)
        for row in found:
            figures = list(zip(*want[row["name"]], strict=True))
            assert (row["calls"], row["total_ns"]) == (sum(figures[0]), sum(figures[1]))
            assert (row["min_ns"], row["max_ns"]) == (min(figures[2]), max(figures[3]))
    connection.close()
