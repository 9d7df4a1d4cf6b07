"""nvprof's own databases: against figures computed here, and against `nvprof -i` where there is one."""

import csv
import io
import re
import shutil
import sqlite3
import statistics
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from nsw.readers import Options, read
from nsw.readers.nvprof import vocabulary as nvprof_columns
from nsw.readers.nvprof.database import records as nvprof_counters
from nsw.readers.nvprof.vocabulary import api_name
from nsw.tables import full_rows

_nvprof = pytest.mark.skipif(shutil.which("nvprof") is None, reason="no nvprof on PATH")
_KERNEL = (
    "cacheConfig BLOB, sharedMemoryConfig, registersPerThread, partitionedGlobalCacheRequested,"
    " partitionedGlobalCacheExecuted, start, end, completed, deviceId, contextId, streamId, gridX, gridY, gridZ, blockX,"
    " blockY, blockZ, staticSharedMemory, dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, correlationId,"
    " gridId, name"
)
_KERNEL_11 = _KERNEL + ", queued, submitted, launchType, isSharedMemoryCarveoutRequested, sharedMemoryCarveoutRequested"
_COPY = (
    "copyKind, srcKind, dstKind, flags, bytes, start, end, deviceId, contextId, streamId, correlationId,"
    " runtimeCorrelationId"
)
_CALL = "cbid, start, end, processId, threadId, correlationId, returnValue"
_DEVICE = (
    "flags, globalMemoryBandwidth, globalMemorySize, constantMemorySize, l2CacheSize, numThreadsPerWarp, coreClockRate,"
    " numMemcpyEngines, numMultiprocessors, maxIPC, maxWarpsPerMultiprocessor, maxBlocksPerMultiprocessor,"
    " maxSharedMemoryPerMultiprocessor, maxRegistersPerMultiprocessor, maxRegistersPerBlock, maxSharedMemoryPerBlock,"
    " maxThreadsPerBlock, maxBlockDimX, maxBlockDimY, maxBlockDimZ, maxGridDimX, maxGridDimY, maxGridDimZ,"
    " computeCapabilityMajor, computeCapabilityMinor, id, eccEnabled, uuid BLOB, name"
)
_DIRECTIVE = (
    "eventKind, parentConstruct, version, implicit, deviceType, deviceNumber, threadId, async, asyncMap, lineNo,"
    " endLineNo, funcLineNo, funcEndLineNo, start, end, cuDeviceId, cuContextId, cuStreamId, cuProcessId, cuThreadId,"
    " externalId, srcFile, funcName"
)
_TABLES = {
    "CONCURRENT_KERNEL": _KERNEL_11,
    "KERNEL": _KERNEL_11,
    "MEMCPY": _COPY,
    "MEMSET": "value, bytes, start, end, deviceId, contextId, streamId, correlationId, flags, memoryKind",
    "RUNTIME": _CALL,
    "DRIVER": _CALL,
    "DEVICE": _DEVICE,
    "CONTEXT": "contextId, deviceId, computeApiKind, nullStreamId",
    "MARKER": "flags, timestamp, id, objectKind, objectId BLOB, name, domain",
    "UNIFIED_MEMORY_COUNTER": "counterKind, value, start, end, address, srcId, dstId, streamId, processId, flags",
    "METRIC": "id, value BLOB, correlationId, flags",
    "EVENT": "id, value, domain, correlationId",
    "METRIC_INSTANCE": "id, value BLOB, instance, correlationId, flags",
    "OPENACC_DATA": f"{_DIRECTIVE}, bytes, hostPtr, devicePtr, varName",
    "OPENACC_LAUNCH": f"{_DIRECTIVE}, numGangs, numWorkers, vectorLength, kernelName",
    "OPENACC_OTHER": _DIRECTIVE,
    "OPENMP": "eventKind, version, threadId, start, end, cuProcessId, cuThreadId",
    "PC_SAMPLING": "flags, sourceLocatorId, correlationId, functionId, latencySamples, samples, stallReason, pcOffset",
    "SYNCHRONIZATION": "type, start, end",
}


class Profile:
    """A database as nvprof 11 writes it, filled by a test."""

    def __init__(self, path):
        self.path = path
        self.db = sqlite3.connect(path)
        self.db.execute("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)")
        self.db.execute("CREATE TABLE Version(version INTEGER)")
        self.db.execute("INSERT INTO Version VALUES (11)")
        for name, columns in _TABLES.items():
            typed = ", ".join(c if c.endswith("BLOB") else f"{c} INT" for c in columns.split(", "))
            self.db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_{name}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {typed})")

    def string(self, text):
        found = self.db.execute("SELECT _id_ FROM StringTable WHERE value = ?", (text,)).fetchone()
        return found[0] if found else self.db.execute("INSERT INTO StringTable(value) VALUES (?)", (text,)).lastrowid

    def add(self, table, **values):
        columns = [c.split()[0] for c in _TABLES[table].split(", ")]
        blobs = {c.split()[0] for c in _TABLES[table].split(", ") if c.endswith("BLOB")}
        row = [values.get(c, b"\0" * (16 if c == "uuid" else 1) if c in blobs else 0) for c in columns]
        self.db.execute(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_{table}({','.join(columns)}) VALUES ({','.join('?' * len(row))})", row
        )

    def kernel(self, name, start, duration, correlation, table="CONCURRENT_KERNEL"):
        end = start + duration
        self.add(
            table,
            name=self.string(name),
            start=start,
            end=end,
            completed=end,
            correlationId=correlation,
            gridX=128,
            gridY=2,
            gridZ=1,
            blockX=256,
            blockY=1,
            blockZ=1,
            registersPerThread=32,
            staticSharedMemory=1024,
            contextId=1,
            streamId=7,
            gridId=correlation,
        )

    def close(self):
        self.db.commit()
        self.db.close()
        return self.path


DURATIONS = {"_Z4axpyfPfS_": [1000, 3000, 5000, 7001], "_Z4gemmPfS_S_i": [2000, 4000, 6000]}


@pytest.fixture
def profile(tmp_path):
    """Seven kernels, a copy, a memset, the calls that launched them, two NVTX ranges."""
    made = Profile(tmp_path / "run.nvvp")
    made.add("DEVICE", id=0, name=made.string("Tesla V100-SXM2-16GB"), computeCapabilityMajor=7, numMultiprocessors=80)
    made.add("CONTEXT", contextId=1, deviceId=0, nullStreamId=7, computeApiKind=1)
    clock, correlation = 1_000_000, 0
    for name, durations in DURATIONS.items():
        for duration in durations:
            correlation += 1
            call = {"processId": 123, "threadId": 1, "correlationId": correlation}
            made.add("RUNTIME", cbid=211, start=clock, end=clock + 800 + duration // 10, **call)
            made.kernel(
                name, clock + 1000, duration, correlation, "KERNEL" if duration == 7001 else "CONCURRENT_KERNEL"
            )
            clock += 20_000
    call = {"processId": 123, "threadId": 1, "correlationId": 100}
    made.add("RUNTIME", cbid=31, start=clock, end=clock + 900, **call)
    made.add("DRIVER", cbid=52, start=clock + 5000, end=clock + 5010, **call | {"correlationId": 102})
    made.add("DRIVER", cbid=243, start=clock + 6000, end=clock + 6020, **call | {"correlationId": 103})
    place = {"deviceId": 0, "contextId": 1, "streamId": 7}
    made.add("MEMCPY", copyKind=1, srcKind=1, dstKind=3, bytes=4096, start=clock + 1000, end=clock + 3000, **place)
    made.add("MEMSET", bytes=64, start=clock + 4000, end=clock + 4050, memoryKind=3, **place)
    thread = struct.pack("<II", 123, 1) + b"\0" * 4
    for number, (name, begin, end) in enumerate([("step", 0, 30_000), ("step", 40_000, 90_000)], 1):
        both = {"id": number, "objectKind": 2, "objectId": thread}
        made.add("MARKER", flags=2, timestamp=1_000_000 + begin, name=made.string(name), **both)
        made.add("MARKER", flags=4, timestamp=1_000_000 + end, **both)
    return made.close()


def table(path, name, **options):
    report = read(path, Options(**options))
    assert [p for p in report.problems if p.severity == "error"] == []
    return list(full_rows(name, report.tables[name]))


def test_kernels_of_both_tables_are_summed_by_name(profile):
    by_name = {r["mangled_name"]: r for r in table(profile, "gpu_summary") if r["kind"] == "kernel"}
    gemm = by_name["_Z4gemmPfS_S_i"]
    assert (gemm["name"], gemm["short_name"]) == ("gemm(float*, float*, float*, int)", "gemm")
    assert (gemm["calls"], gemm["total_ns"], gemm["avg_ns"], gemm["med_ns"]) == (3, 12000, 4000, 4000)
    assert gemm["stddev_ns"] == pytest.approx(statistics.stdev(DURATIONS["_Z4gemmPfS_S_i"]))
    assert gemm["total_ns_pm"] is None
    assert sum(r["calls"] for r in table(profile, "gpu_summary") if r["kind"] == "kernel") == 7


def test_shares_are_of_all_gpu_work(profile):
    found = table(profile, "gpu_summary")
    assert sum(r["time_pct"] for r in found) == pytest.approx(100)
    assert {r["name"]: r["total_bytes"] for r in found if r["kind"] != "kernel"} == {
        "[CUDA memcpy HtoD]": 4096,
        "[CUDA memset]": 64,
    }


def test_calls_have_the_names_of_their_callbacks(profile):
    calls = {r["name"]: r["calls"] for r in table(profile, "api_summary")}
    assert calls == {"cudaLaunchKernel": 7, "cudaMemcpy": 1, "cu64MemcpyAtoD": 1, "cuMemAlloc": 1}


def test_variants_of_a_call_are_one_row_with_the_figures_of_all_that_have_times(tmp_path):
    """cudaMemcpy and cudaMemcpy_ptds, cuMemAlloc and cuMemAlloc_v2."""
    made = Profile(tmp_path / "run.nvvp")
    for cbid, duration in ((31, 100), (215, 200), (215, 600), (31, 900)):
        made.add("RUNTIME", cbid=cbid, start=1000, end=1000 + duration)
    made.add("RUNTIME", cbid=215, start=0, end=0)
    for cbid, duration in ((29, 50), (243, 150)):
        made.add("DRIVER", cbid=cbid, start=1000, end=1000 + duration)
    memcpy, alloc = table(made.close(), "api_summary")
    expected = {
        "name": "cudaMemcpy", "calls": 5, "total_ns": 1800, "avg_ns": 450, "med_ns": 400, "min_ns": 100, "max_ns": 900,
        "stddev_ns": pytest.approx(statistics.stdev((100, 200, 600, 900))), "time_pct": 90,
    }  # fmt: skip
    assert {name: memcpy[name] for name in expected} == expected
    assert (alloc["name"], alloc["calls"], alloc["med_ns"], alloc["time_pct"]) == ("cuMemAlloc", 2, 100, 10)


def test_an_unknown_callback_is_named_by_its_number():
    assert api_name("runtime", 211) == "cudaLaunchKernel"
    assert api_name("runtime", 99_999) == "cbid 99999"


def test_ranges_are_joined_from_their_markers(profile):
    (step,) = table(profile, "nvtx_summary")
    assert (step["name"], step["calls"], step["total_ns"], step["max_ns"]) == ("step", 2, 80_000, 50_000)


def test_traces_are_made_when_asked_for(profile):
    assert "gpu_trace" not in read(profile).tables
    trace = table(profile, "gpu_trace", tables=frozenset({"gpu_trace"}))
    assert [r["start_ns"] for r in trace[:3]] == [0, 20_000, 40_000]
    assert trace[0]["grid_x"], trace[0]["device_name"] == (128, "Tesla V100-SXM2-16GB")
    copy = next(r for r in trace if r["kind"] == "memcpy")
    assert (copy["src_memory"], copy["dst_memory"], copy["bytes_per_s"]) == ("pageable", "device", 4096 / 2e-6)
    calls = table(profile, "api_trace", tables=frozenset({"api_trace"}))
    assert [r["name"] for r in calls[:2]] == ["cudaLaunchKernel"] * 2


@pytest.mark.parametrize("at_once", [1, 3])
def test_how_many_rows_are_packed_at_a_time_changes_nothing(profile, monkeypatch, at_once):
    asked = {"tables": frozenset({"gpu_trace", "api_trace"})}
    wanted = [table(profile, name, **asked) for name in ("gpu_trace", "api_trace")]
    monkeypatch.setattr(nvprof_columns, "_CHUNK", at_once)
    assert [table(profile, name, **asked) for name in ("gpu_trace", "api_trace")] == wanted


def test_kernels_without_valid_times_are_counted_and_told(tmp_path):
    made = Profile(tmp_path / "run.nvvp")
    made.kernel("k", 5000, 10, 1)
    made.add("CONCURRENT_KERNEL", name=made.string("k"), start=0, end=0, completed=0, correlationId=2)
    report = read(made.close())
    (row,) = full_rows("gpu_summary", report.tables["gpu_summary"])
    assert (row["calls"], row["total_ns"], row["avg_ns"]) == (2, 10, 10)
    assert any("--device-buffer-size" in (p.fix or "") for p in report.problems)


def test_an_older_layout_has_fewer_columns(tmp_path, monkeypatch):
    monkeypatch.setitem(_TABLES, "CONCURRENT_KERNEL", _KERNEL)
    made = Profile(tmp_path / "old.nvvp")
    made.kernel("main_69_gpu", 10, 5, 1)
    (row,) = table(made.close(), "gpu_summary")
    assert (row["name"], row["total_ns"], row["mangled_name"]) == ("main_69_gpu", 5, None)


@pytest.mark.parametrize("before", ["", '<?xml version="1.0"?>\n', '\ufeff<?xml version="1.0" encoding="UTF-8"?>'])
def test_a_session_of_the_visual_profiler_is_explained(tmp_path, before):
    path = tmp_path / "a.nvvp"
    path.write_text(f'{before}<session version="2" name="a.nvvp">\n</session>\n')
    (problem,) = read(path).problems
    assert "has its results packed inside" in problem.message
    assert problem.severity == "error"


def test_a_packed_file_is_explained(tmp_path):
    path = tmp_path / "a.nvvp"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("run.nvvp", "SQLite format 3")
    (problem,) = read(path).problems
    assert "archive" in problem.message
    assert "unpack it" in problem.fix


def test_a_pointer_is_explained(tmp_path):
    path = tmp_path / "a.nvvp"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234567\n")
    (problem,) = read(path).problems
    assert "1,234,567" in problem.message
    assert "git lfs pull" in (problem.fix or "")


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_a_database_cut_short_is_an_error_of_the_report(profile, share):
    data = profile.read_bytes()
    profile.write_bytes(data[: int(len(data) * share)])
    assert any(p.severity == "error" for p in read(profile).problems)


def test_values_that_are_no_numbers_spoil_no_other_table(profile):
    db = sqlite3.connect(profile)
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET start = 'x', end = x'00'")
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = 9223372036854775807, start = 1")
    db.commit()
    db.close()
    report = read(profile)
    assert sum(r["calls"] for r in full_rows("gpu_summary", report.tables["gpu_summary"]) if r["kind"] == "kernel") == 7
    assert any("api_summary" in p.message for p in report.problems)


METRICS = [
    (id_, name, struct.pack(f"<{code}", value), value)
    for id_, name, code, value in (
        (1001, "l1_cache_global_hit_rate", "d", 45.678),
        (1005, "ipc", "d", 1.25),
        (1007, "gld_requested_throughput", "Q", 3 << 30),
    )
]


@pytest.fixture
def counted(tmp_path):
    """Two launches of one kernel and one of another, with metrics and an event of each."""
    made = Profile(tmp_path / "counted.nvvp")
    made.add("DEVICE", id=0, name=made.string("Tesla P100"), computeCapabilityMajor=6, numMultiprocessors=56)
    made.add("CONTEXT", contextId=1, deviceId=0, nullStreamId=7, computeApiKind=1)
    for correlation, name in enumerate(["_Z4axpyfPfS_", "_Z4gemmPfS_S_i", "_Z4axpyfPfS_"], 1):
        made.kernel(name, correlation * 10_000, 1000, correlation)
        made.add("EVENT", id=15, value=100 * correlation, correlationId=correlation)
        for id_, metric, stored, _ in METRICS:
            assert nvprof_counters.counters_by_id()["metric", id_].name == metric
            made.add("METRIC", id=id_, value=stored, correlationId=correlation)
    return made


def test_metrics_and_events_have_their_names_and_are_summed_by_kernel(counted):
    found = table(counted.close(), "metrics")
    axpy = {r["metric"]: r for r in found if r["kernel"].startswith("axpy(")}
    assert list(axpy) == ["active_cycles", *(name for _, name, _, _ in METRICS)]
    event = axpy["active_cycles"]
    assert (event["invocations"], event["min"], event["max"], event["avg"]) == (2, 100, 300, 200)
    assert [(axpy[n]["avg"], axpy[n]["invocations"]) for _, n, _, _ in METRICS] == [(v, 2) for _, _, _, v in METRICS]
    assert [axpy[n]["unit"] for _, n, _, _ in METRICS] == ["%", None, "B/s"]
    assert {r["device_name"] for r in found} == {"Tesla P100"}


@pytest.mark.parametrize(
    ("kinds", "is_note"), [(("SYNCHRONIZATION",), True), (("SYNCHRONIZATION", "PC_SAMPLING"), False)]
)
def test_what_no_answer_needs_is_a_note(counted, kinds, is_note):
    for kind in kinds:
        counted.add(kind)
    (problem,) = (p for p in read(counted.close()).problems if p.message.startswith("not read"))
    assert problem.is_note == is_note


def test_what_counters_cannot_be_read_is_told(counted):
    counted.add("METRIC", id=9_999_999, value=b"\0" * 8, correlationId=1)
    counted.add("METRIC", id=1005, value=b"\0" * 3, correlationId=1)
    counted.add("EVENT", id=15, value=7, correlationId=77)
    counted.add("METRIC_INSTANCE", id=1009, value=b"\0" * 8, correlationId=1)
    counted.add("PC_SAMPLING", samples=5)
    path = counted.close()
    said = [p.message for p in read(path).problems]
    assert any("1 event values belong to no kernel" in m for m in said)
    assert any("1005, 9999999" in m for m in said)
    assert "not read: 1 samples of the program counter" in said
    assert len(table(path, "metrics")) == 2 * (1 + len(METRICS)) + 1


@pytest.fixture
def directives(tmp_path):
    """A construct with a launch and a wait in it, one of another thread at the same time, data, OpenMP."""
    made = Profile(tmp_path / "acc.nvvp")
    place = {"srcFile": made.string("/src/deep/main.cpp"), "version": 201510, "deviceType": 4, "parentConstruct": 4}
    place |= {"cuContextId": 1, "cuStreamId": 13, "cuProcessId": 9, "threadId": 1}
    made.add("DEVICE", id=0, name=made.string("Tesla P100"), computeCapabilityMajor=6)
    made.add("CONTEXT", contextId=1, deviceId=0, nullStreamId=7, computeApiKind=1)
    made.kernel("main_93_gpu", 10_000, 1000, 1)
    kernel, x = made.string("main_93_gpu"), made.string("x")
    for base in (10_000, 20_000):
        here = place | {"cuThreadId": 5, "lineNo": 93}
        made.add("OPENACC_OTHER", eventKind=9, start=base, end=base + 5000, **here)
        made.add("OPENACC_LAUNCH", eventKind=4, start=base, end=base + 500, kernelName=kernel, **here)
        made.add("OPENACC_OTHER", eventKind=7, start=base + 4000, end=base + 5000, **here)
    made.add("OPENACC_OTHER", eventKind=9, start=10_100, end=12_000, cuThreadId=6, lineNo=94, **place)
    made.add("OPENACC_DATA", eventKind=5, start=40_000, end=40_500, cuThreadId=5, lineNo=90, varName=x, **place)
    made.add("OPENACC_OTHER", eventKind=3, start=50_000, end=50_100, cuThreadId=5, **place | {"srcFile": 0})
    for kind in (1, 5):
        made.add("OPENMP", eventKind=kind, start=60_000, end=60_000 + 100 * kind, cuProcessId=9, cuThreadId=5)
    return made.close()


def test_openacc_events_have_the_time_that_is_their_own(directives):
    found = {r["name"]: r for r in table(directives, "openacc_summary")}
    construct = found["acc_compute_construct@main.cpp:93"]
    assert (construct["calls"], construct["total_ns"], construct["max_ns"], construct["kind"]) == (
        2,
        7000,
        3500,
        "compute",
    )
    assert found["acc_compute_construct@main.cpp:94"]["total_ns"] == 1900
    assert found["acc_enqueue_launch@main.cpp:93 (main_93_gpu)"]["total_ns"] == 1000
    assert found["acc_enqueue_upload@main.cpp:90 (x)"]["kind"] == "data"
    assert "acc_runtime_shutdown" in found
    assert sum(r["time_pct"] for r in found.values()) == pytest.approx(100)


def test_openacc_events_that_overlap_lose_no_more_than_they_share(directives):
    db = sqlite3.connect(directives)
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_OPENACC_OTHER SET end = end + 3000 WHERE eventKind = 7")
    db.commit()
    db.close()
    assert {r["name"]: r["total_ns"] for r in table(directives, "openacc_summary")}[
        "acc_compute_construct@main.cpp:93"
    ] == 7000


def test_openmp_events_are_summed(directives):
    found = [(r["name"], r["total_ns"]) for r in table(directives, "openmp_summary")]
    assert found == [("omp_wait_barrier", 500), ("omp_parallel", 100)]


@pytest.fixture
def ranges(tmp_path):
    """Calls at the edges of a range, within one in it, and on another thread at the same time."""
    made = Profile(tmp_path / "ranges.nvvp")
    made.add("DEVICE", id=0, name=made.string("Tesla P100"), computeCapabilityMajor=6)
    made.add("CONTEXT", contextId=1, deviceId=0, nullStreamId=7, computeApiKind=1)
    for number, (begin, end, thread) in enumerate(
        [(0, 10, 1), (95, 105, 1), (-5, 5, 1), (50, 60, 1), (50, 60, 2), (90, 100, 1)]
    ):
        call = {"processId": 123, "threadId": thread, "correlationId": number + 1}
        made.add("RUNTIME", cbid=211, start=1_000_000 + begin, end=1_000_000 + end, **call)
        made.kernel("_Z4axpyfPfS_", 2_000_000 + 200_000 * number, 10**number, number + 1)
    thread = struct.pack("<II", 123, 1) + b"\0" * 4
    domain = made.string("mine")
    for number, (name, begin, end, where) in enumerate(
        [("A", 0, 100, 0), ("inner", 40, 70, domain), ("none", 200, 300, 0)]
    ):
        both = {"id": number + 1, "objectKind": 2, "objectId": thread}
        made.add("MARKER", flags=2, timestamp=1_000_000 + begin, name=made.string(name), domain=where, **both)
        made.add("MARKER", flags=4, timestamp=1_000_000 + end, **both)
    return made.close()


def test_gpu_work_is_of_the_ranges_in_which_its_call_begins(ranges):
    found = [(r["name"], r["domain"], r["calls"], r["gpu_ops"], r["gpu_ns"]) for r in table(ranges, "nvtx_gpu_summary")]
    assert found == [("A", None, 1, 4, 101_011), ("inner", "mine", 1, 1, 1000)]


@_nvprof
def test_gpu_work_of_ranges_is_that_of_nvprof(ranges, tmp_path):
    done = subprocess.run(["nvprof", "-i", str(ranges), "--csv"], capture_output=True, text=True, check=False)
    text = tmp_path / "printed.txt"
    text.write_text(done.stderr)
    for name, columns in (("nvtx_gpu_summary", ("gpu_ops", "gpu_ns")), ("nvtx_summary", ("calls", "total_ns"))):
        there, here = (
            sorted((r["name"], r["domain"] or "", *(r[c] for c in columns)) for r in table(p, name))
            for p in (text, ranges)
        )
        assert there == here


def test_marks_are_counted(tmp_path):
    made = Profile(tmp_path / "run.nvvp")
    for at in (5, 9):
        made.add("MARKER", flags=1, timestamp=at, id=at, objectKind=2, name=made.string("epoch"), domain=0)
    (mark,) = table(made.close(), "nvtx_summary")
    assert (mark["name"], mark["style"], mark["calls"], mark["total_ns"]) == ("epoch", "mark", 2, None)


def imported(path, *options):
    done = subprocess.run(
        ["nvprof", "-i", str(path), "--csv", "-u", "ns", *options], capture_output=True, text=True, check=False
    )
    return done.stderr.partition("NVTX result")[0]


def plain(name):
    """Names less parameters, as c++filt and as nvprof write them, alike (nvprof gets some parameters wrong)."""
    name = re.sub(r"\s|\bvoid\b|(?:\bunsigned )?\b\w+=|\(\w+\)(?=\d)", "", name)
    return re.sub(r"(?<=\d)u?l*(?=[,>])", "", name.replace("false", "0").replace("true", "1")).split("(")[0]


def compare_with_nvprof(path):
    printed = [
        r for r in csv.reader(io.StringIO(imported(path))) if len(r) == 8 and r[0] in {"GPU activities", "API calls"}
    ]
    assert printed
    wanted = sorted(
        (r[0], plain(r[7]), float(r[2]), int(r[3]), int(float(r[4])), float(r[5]), float(r[6])) for r in printed
    )
    got = sorted(
        (label, plain(r["name"]), r["total_ns"], r["calls"], int(r["avg_ns"]), r["min_ns"], r["max_ns"])
        for label, name in (("GPU activities", "gpu_summary"), ("API calls", "api_summary"))
        for r in table(path, name)
    )
    assert got == wanted


@_nvprof
def test_the_summaries_are_those_of_nvprof(profile):
    compare_with_nvprof(profile)


@_nvprof
@pytest.mark.parametrize("name", ["03-mandelbrot", "04-gpu-ml"])
def test_real_files_are_read_as_nvprof_reads_them(name):
    path = Path(__file__).resolve().parents[2].parent / f"shared/corpus/nvprof-binary/{name}.nvvp"
    if not path.exists():
        pytest.skip("no corpus here")
    compare_with_nvprof(path)


@_nvprof
def test_the_trace_is_that_of_nvprof(profile):
    printed = [
        r for r in csv.reader(io.StringIO(imported(profile, "--print-gpu-trace"))) if len(r) == 20 and r[0][0].isdigit()
    ]
    trace = table(profile, "gpu_trace", tables=frozenset({"gpu_trace"}))
    assert [(int(float(r[0])), int(float(r[1])), plain(r[18])) for r in printed] == [
        (r["start_ns"], r["duration_ns"], plain(r["name"])) for r in trace
    ]


@_nvprof
@pytest.mark.parametrize(
    "options", [[], ["--print-gpu-trace"], ["--print-api-trace"], ["--print-gpu-trace", "--print-api-trace"]]
)
def test_what_nvprof_prints_is_read_back(profile, tmp_path, options):
    """Text, CSV and database of the same run say the same, within the half-widths of what was printed."""
    names = ("gpu_summary", "api_summary") if not options else ("gpu_trace", "api_trace")
    own = read(profile, Options(tables=frozenset(names)))
    for form in ([], ["--csv"]):
        done = subprocess.run(
            ["nvprof", "-i", str(profile), *form, *options], capture_output=True, text=True, check=False
        )
        text = tmp_path / "printed.txt"
        text.write_text(done.stderr)
        report = read(text)
        compared = 0
        for name in names:
            if not len(report.tables.get(name, ())):
                continue
            pairs = zip(full_rows(name, report.tables[name]), full_rows(name, own.tables[name]), strict=True)
            for there, here in pairs:
                assert plain(there["name"]) == plain(here["name"])
                for column in ("total_ns", "avg_ns", "min_ns", "max_ns", "duration_ns", "calls"):
                    if column in there:
                        pm = there.get(column + "_pm") or 0
                        assert abs(there[column] - here[column]) <= pm, column
                        compared += 1
        assert compared


@pytest.fixture
def unified(tmp_path):
    """A kernel and an event of Unified Memory of each kind."""
    made = Profile(tmp_path / "um.nvvp")
    made.add("DEVICE", id=0, name=made.string("Tesla P100"), computeCapabilityMajor=6)
    made.add("CONTEXT", contextId=1, deviceId=0, nullStreamId=7, computeApiKind=1)
    made.kernel("_Z4axpyfPfS_", 10_000, 1000, 1)
    for kind in range(1, 9):
        start = 10_000 + 100 * kind
        end = 0 if kind == 3 else start + 10 * kind
        made.add("UNIFIED_MEMORY_COUNTER", counterKind=kind, value=4096 * kind, start=start, end=end, processId=9)
    return made.close()


def test_events_of_unified_memory_are_summed_by_kind_and_gpu(tmp_path):
    """Bytes and times only of kinds that have them; a copy to a GPU is of that one, a CPU's fault of none, the others are of where they began."""
    made = Profile(tmp_path / "um.nvvp")
    for kind, value, took, source, target in (
        (1, 4096, 10, 9, 0), (1, 8192, 30, 9, 0), (1, 512, 5, 9, 1), (2, 100, 7, 1, 9), (3, 1, 0, 9, 9), (3, 1, 0, 0, 9),
        (4, 20, 40, 0, 9), (5, 64, 3, 0, 9), (6, 1, 8, 0, 9), (7, 32, 3, 0, 9), (8, 16, 2, 0, 1), (77, 5, 5, 0, 1),
    ):  # fmt: skip
        made.add("UNIFIED_MEMORY_COUNTER", counterKind=kind, value=value, start=1000, end=1000 + took,
                 srcId=source, dstId=target)  # fmt: skip
    sizes = ("total_bytes", "avg_bytes", "min_bytes", "max_bytes")
    found = {
        (r["device"], r["name"]): (r["calls"], r["total_ns"], *(r[s] for s in sizes))
        for r in table(made.close(), "um_summary")
    }
    none = (None, None, None, None)
    assert found == {
        (0, "Host To Device"): (2, 40, 12288, 6144, 4096, 8192),
        (1, "Host To Device"): (1, 5, 512, 512, 512, 512),
        (1, "Device To Host"): (1, 7, 100, 100, 100, 100),
        (None, "CPU page faults"): (2, None, *none),
        (0, "Gpu page fault groups"): (1, 40, *none),
        (0, "Memory thrashes"): (1, None, 64, 64, 64, 64),
        (0, "Page throttles"): (1, 8, *none),
        (0, "Remote mapping from device"): (1, None, 32, 32, 32, 32),
        (0, "Transfers from Device"): (1, 2, 16, 16, 16, 16),
        (0, "counter 77"): (1, None, *none),
    }


def test_events_of_unified_memory_are_in_the_trace(unified):
    trace = table(unified, "gpu_trace", tables=frozenset({"gpu_trace"}))
    found = {r["name"]: (r["kind"], r["start_ns"], r["duration_ns"], r["bytes"], r["device"]) for r in trace}
    assert found["[Unified Memory Memcpy DtoH]"] == ("um", 200, 20, 8192, 0)
    assert found["[Unified Memory CPU page faults]"] == ("um", 300, None, None, None)
    assert len(found) == 9


@_nvprof
def test_events_of_unified_memory_are_those_of_nvprof(unified, tmp_path):
    done = subprocess.run(
        ["nvprof", "-i", str(unified), "--print-gpu-trace", "--csv", "-u", "ns"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = tmp_path / "printed.txt"
    text.write_text(done.stderr)
    asked = {"tables": frozenset({"gpu_trace"})}
    columns = ("kind", "start_ns", "duration_ns", "bytes")
    there, here = (
        [(plain(r["name"]), *(r[c] for c in columns)) for r in table(p, "gpu_trace", **asked)] for p in (text, unified)
    )
    assert there == here


@_nvprof
def test_counters_are_those_of_nvprof(counted, tmp_path):
    path = counted.close()
    for form in ([], ["--csv"]):
        done = subprocess.run(["nvprof", "-i", str(path), *form], capture_output=True, text=True, check=False)
        text = tmp_path / "printed.txt"
        text.write_text(done.stderr)
        there, here = table(text, "metrics"), table(path, "metrics")
        order = lambda r: (plain(r["kernel"]), r["metric"])  # noqa: E731
        for printed, own in zip(sorted(there, key=order), sorted(here, key=order), strict=True):
            assert order(printed) == order(own)
            assert (printed["invocations"], printed["device_name"]) == (own["invocations"], own["device_name"])
            assert printed["description"] == own["description"]
            factor = 2**30 if printed["unit"] == "GB/s" else 1
            for column in ("min", "max", "avg"):
                assert abs(printed[column] * factor - own[column]) <= (printed[column + "_pm"] or 0) * factor


@_nvprof
def test_directives_are_those_of_nvprof(directives, tmp_path):
    done = subprocess.run(
        ["nvprof", "-i", str(directives), "-u", "ns", "--csv", "--print-openacc-summary", "--print-openmp-summary"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = tmp_path / "printed.txt"
    text.write_text(done.stderr)
    for name in ("openacc_summary", "openmp_summary"):
        columns = ("name", "calls", "total_ns", "min_ns", "max_ns")
        there, here = (sorted(tuple(r[c] for c in columns) for r in table(p, name)) for p in (text, directives))
        assert there == here
