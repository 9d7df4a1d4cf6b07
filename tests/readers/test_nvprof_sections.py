"""Sections of nvprof's reports besides summaries and traces: what is read of them, and that they disturb nothing."""

import re
import shutil
import sqlite3
import struct
import subprocess

import pytest

from nsw.readers import read
from nsw.tables import full_rows

SUMMARY = """\
======== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  2.0000us         1  2.0000us  2.0000us  2.0000us  axpy(float*)
      API calls:  100.00%     900ns         1     900ns     900ns     900ns  cudaMemcpy
"""
PATH = """\

======== Dependency Analysis:
======== Analysis progress: 100%
======== Warning: 
The application seems to be multi-threaded but the thread API has not been recorded.
Critical path(%)  Critical path  Waiting time  Name
          53.43%      2.629210s           0ns  <Other>
          46.51%      2.288777s           0ns  cudaMemGetInfo
           0.00%            0ns     1.483397s  axpy(float*)
"""  # noqa: W291
PATH_CSV = """\

======== Dependency Analysis:
"Critical path(%)","Critical path","Waiting time","Name"
%,s,s,
53.431616,2.629210,0.000000,"<Other>"
46.513222,2.288777,0.000000,"cudaMemGetInfo"
"""
PATH_TRACE = """\

======== Dependency Analysis:
   Start  Duration  Critical path  Waiting time  Name
1.6e+09s  4.5880us     4.588000us           0ns  cuDeviceGetPCIBusId
1.6e+09s     734ns          734ns           0ns  cuDeviceGetCount
1.6e+09s     2.0us          2.0us           0ns  axpy(float*)
"""
PATH_TRACE_CSV = """\

======== Dependency Analysis:
"Start","Duration","Critical path","Waiting time","Name"
ns,s,s,s,
1570772102883389952.000000,0.000005,0.000005,0.000000,"cuDeviceGetPCIBusId"
1570772102938981632.000000,0.000002,0.000002,0.000000,"axpy(float*)"
"""
NVLINK = """\

======== NVLink topology:
GPU 0    CPU 0, port 1, 2 -- NVLink Bandwidth 46.875GB/s, Physical Links 2, Sysmem Access True, Peer Access False
"""
PCIE = """\

======== PCIE topology:
GPU 0 -- Bridge 1 -- Host Bridge
"""
SAMPLING = """\
======== PC SAMPLING SUMMARY:
Total Samples: 21
"""
QUERY = """\
Available Metrics:
                            Name   Description
Device 0 (Tesla K40c):
        l1_cache_global_hit_rate:  Hit rate in L1 cache for global loads
"""
SYSTEM = """\

======== System profiling result:
Device "Tesla V100-SXM2-16GB (0)"
                         Count         Avg         Min         Max
      SM Clock (MHz)         3     1313.33     1312.00     1314.00
     Temperature (C)         3       41.00       40.00       42.00
Device "Tesla V100-SXM2-16GB (1)"
                         Count         Avg         Min         Max
          Power (mW)         2    43211.00    43210.00    43212.00
"""
SYSTEM_CSV = """\

======== System profiling result:
"","Device","Count","Avg","Min","Max"
"SM Clock (MHz)","Tesla V100-SXM2-16GB (0)",3,1313.333333,1312.000000,1314.000000
"Power (mW)","Tesla V100-SXM2-16GB (1)",2,43211.000000,43210.000000,43212.000000
"""
TRACE = """\
======== Profiling result:
   Start  Duration      Size           Device   Context    Stream                System  Name
     0ns  2.0000us  1.0000KB  Tesla V100-SXM2         1         7                     -  [CUDA memset]
     1ns         -         -  Tesla V100-SXM2         -         -              1312/877  [SM/Memory Clock (MHz)]
     2ns         -         -  Tesla V100-SXM2         -         -          43210/300000  [Power/Limit (mW)]
10.000us  20.000us         -  Tesla V100-SXM2         0         0                     -  acc_compute_construct[parallel]@f.c:22
11.000us  3.0000us         -  Tesla V100-SXM2         0         0                     -  acc_wait@f.c:22
15.000us  3.0010us  1.0000KB  Tesla V100-SXM2         0         0                     -  acc_wait@f.c:22
100.00us         -         -  Tesla V100-SXM2         -         -              1314/877  [SM/Memory Clock (MHz)]
"""


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def said(report):
    return [p.message for p in report.problems]


def facts(report):
    return {(r["device"], r["key"]): (r["value"], r["unit"]) for r in table(report, "facts")}


@pytest.mark.parametrize(
    ("section", "what"),
    [
        (PATH, "--dependency-analysis"),
        (PATH_CSV, "--dependency-analysis"),
        (PATH_TRACE, "--dependency-analysis"),
        (PATH_TRACE_CSV, "--dependency-analysis"),
        (NVLINK, "--print-nvlink-topology"),
        (PCIE, "--print-pci-topology"),
        (SAMPLING, "program counter"),
    ],
)
def test_a_section_without_a_table_is_named_once_and_disturbs_nothing(load, section, what):
    alone = load(SUMMARY)
    for text in (SUMMARY + section, section + SUMMARY, SUMMARY + section.replace("========", "==77==")):
        report = load(text)
        assert {n: table(report, n) for n in report.tables} | {"pid": 0} == {
            n: [{**r, "pid": table(report, n)[0]["pid"]} for r in table(alone, n)] for n in alone.tables
        } | {"pid": 0}
        (message,) = said(report)
        assert what in message


def test_a_critical_path_without_its_title_is_known_by_its_columns(load):
    for section in (PATH, PATH_CSV, PATH_TRACE, PATH_TRACE_CSV):
        report = load(SUMMARY + "\n".join(line for line in section.splitlines() if "==" not in line))
        assert set(report.tables) == {"gpu_summary", "api_summary"}
        assert len(said(report)) == 1


def test_a_list_of_metrics_is_no_result(load):
    report = load(QUERY)
    assert report.format == "nvprof-text"
    assert any("--query-metrics" in m for m in said(report))
    assert {p.severity for p in report.problems} == {"warning", "error"}


def test_clocks_and_temperatures_are_facts_of_their_gpu(load):
    report = load(SUMMARY + SYSTEM)
    found = facts(report)
    assert not report.problems
    assert found[0, "system_sm_clock_avg"] == (1313.33, "MHz")
    assert found[0, "system_temperature_max"] == (42, "C")
    assert found[1, "system_power_min"] == (43210, "mW")
    assert found[1, "system_power_samples"] == (2, None)
    assert len(found) == 12
    assert len(table(report, "gpu_summary")) == 1
    in_csv = facts(load(SUMMARY + SYSTEM_CSV))
    assert in_csv[1, "system_power_avg"] == (43211, "mW")
    assert in_csv[0, "system_sm_clock_avg"][0] == pytest.approx(1313.333333)


@pytest.mark.parametrize("text", [SYSTEM, SYSTEM_CSV])
def test_a_damaged_row_of_clocks_is_told(load, text):
    report = load(SUMMARY + re.sub(r"(SM Clock.*?)(,?)1312.00\d*", r"\1", text))
    assert (0, "system_sm_clock_avg") not in facts(report)
    assert "damaged" in said(report)[0]


def test_samples_of_clocks_in_a_trace_are_no_kernels(load):
    report = load(TRACE)
    assert [r["name"] for r in table(report, "gpu_trace")] == ["[CUDA memset]"]
    found = facts(report)
    assert found[None, "system_sm_clock_avg"] == (1313, "MHz")
    assert found[None, "system_memory_clock_samples"] == (2, None)
    assert found[None, "system_power_limit_max"] == (300000, "mW")
    assert any("the GPU is not named" in m for m in said(report))


def test_a_trace_of_openacc_is_summed(load):
    report = load(TRACE)
    construct, wait = table(report, "openacc_summary")
    assert (construct["name"], construct["kind"]) == ("acc_compute_construct[parallel]@f.c:22", "compute")
    assert (construct["total_ns"], construct["total_ns_pm"], construct["calls"]) == (20_000, None, 1)
    assert (wait["calls"], wait["total_ns"], wait["min_ns"], wait["max_ns"]) == (2, 6001, 3000, 3001)
    assert wait["avg_ns"] == 3000.5
    assert construct["time_pct"] + wait["time_pct"] == pytest.approx(100)
    assert any("summed in full" in m for m in said(report))


def test_rounded_times_of_openacc_keep_their_rounding(load):
    (row,) = table(load(TRACE.replace("20.000us", "1.2345ms").replace("acc_wait", "no_wait")), "openacc_summary")
    assert (row["total_ns"], row["total_ns_pm"]) == (1_234_500, 50)


def test_constructs_do_not_hide_what_an_event_is(load):
    row = "                    40.00%  6.4000us         8     800ns     800ns     800ns"
    text = (
        SUMMARY
        + f" OpenACC (excl):   60.00%  1us  1  1us  1us  1us  acc_enqueue_launch[kernels]@a.c:1\n{row}  acc_wait@a\n"
    )
    assert [r["kind"] for r in table(load(text), "openacc_summary")] == ["compute", "other"]


OLD_RANGES = """\

======== NVTX result:
========   Thread <unnamed> (id = 1)
========     NVTX range "step" (2 times, total time: 50.500us)
Time(%)      Time     Calls       Avg       Min       Max  Name
 66.67%  4.0000us         2  2.0000us  1.0000us  3.0000us  axpy(float*)
 33.33%  2.0000us         1  2.0000us  2.0000us  2.0000us  gemm(float*)
========     API calls:
Time(%)      Time     Calls       Avg       Min       Max  Name
100.00%  2.4000us         3     800ns     800ns     800ns  cudaLaunchKernel
========     NVTX range "other" (1 times, total time: 99.500us)
No kernels were profiled.
"""
OLD_RANGES_CSV = """\

======== NVTX result:
========   Thread <unnamed> (id = 1)
========     NVTX range "step" (2 times, total time: 50.500us)
"Time(%)","Time","Calls","Avg","Min","Max","Name"
%,us,,us,us,us,
66.666667,4.000000,2,2.000000,1.000000,3.000000,"axpy(float*)"
33.333333,2.000000,1,2.000000,2.000000,2.000000,"gemm(float*)"
========     API calls:
"Time(%)","Time","Calls","Avg","Min","Max","Name"
%,us,,ns,ns,ns,
100.000000,2.400000,3,800,800,800,"cudaLaunchKernel"
========     NVTX range "other" (1 times, total time: 99.500us)
No kernels were profiled.
"""
OLDEST_RANGES = """\
======== NVTX result:
Thread <unnamed> (id = 1)
NVTX range "step" (id = 1)
No kernels were profiled.
NVTX range <unnamed> (id = 2)
Time(%)      Time     Calls       Avg       Min       Max  Name
100.00%  1.5000us         1  1.5000us  1.5000us  1.5000us  [CUDA memset]
"""
SAMPLES = """\

======== Unified Memory profiling result:
Device "Tesla K40c (0)"
                           Sample Count        Avg*      Min*      Max*
   Host To Device (bytes)             2     6144.00      4096      8192
          CPU Page faults             1        2.00         2         2

Avg/Min/Max: These are the average, minimum and maximum counter values taken across all the samples
"""
SAMPLES_CSV = """\

======== Unified Memory profiling result:
"","Device","Sample Count","Avg","Min","Max"
"Host To Device (bytes)","Tesla K40c (0)",2,6144.000000,4096,8192
"""


@pytest.mark.parametrize("section", [OLD_RANGES, OLD_RANGES_CSV])
def test_ranges_of_cuda_5_to_7_have_their_gpu_work_and_repeat_no_kernel(load, section):
    report = load(SUMMARY + section)
    assert len(table(report, "gpu_summary")) == len(table(report, "api_summary")) == 1
    found = [(r["name"], r["domain"], r["calls"], r["total_ns"]) for r in table(report, "nvtx_summary")]
    assert found == [("step", None, 2, 50_500), ("other", None, 1, 99_500)]
    assert [(r["name"], r["gpu_ops"], r["gpu_ns"]) for r in table(report, "nvtx_gpu_summary")] == [("step", 3, 6000)]
    assert not report.problems


def test_ranges_of_cuda_5_0_have_their_gpu_work(load):
    report = load(SUMMARY + OLDEST_RANGES)
    found = [(r["name"], r["gpu_ops"], r["gpu_ns"]) for r in table(report, "nvtx_gpu_summary")]
    assert found == [("<unnamed>", 1, 1500)]
    assert not report.problems
    damaged = load(SUMMARY + OLDEST_RANGES.replace("(id = 2)", "(id ="))
    assert not table(damaged, "nvtx_gpu_summary")
    assert "damaged" in said(damaged)[0]


@pytest.mark.parametrize("section", [SAMPLES, SAMPLES_CSV])
def test_samples_of_unified_memory_are_named(load, section):
    report = load(SUMMARY + section)
    assert set(report.tables) == {"gpu_summary", "api_summary"}
    (message,) = said(report)
    assert "CUDA 6.0" in message


LOST = """\
NVPROF is profiling process 351, command: ./nbody 4096
Simulator is calculating.
Profiling application: ./nbody 4096
Warning: 3 records have invalid timestamps due to insufficient device buffer space.
Warning: my own
"""


def test_a_report_that_lost_the_marks_of_its_process_is_read(load):
    report = load(LOST + SUMMARY.replace("======== ", ""))
    assert [(r["text"], r["pid"], r["block"]) for r in table(report, "facts")] == [("./nbody 4096", 351, 0)]
    (problem,) = report.problems
    assert "3 records have invalid timestamps" in problem.message
    assert (len(table(report, "gpu_summary")), len(table(report, "api_summary"))) == (1, 1)


def test_nothing_of_openacc_is_told(load):
    assert any(
        "No OpenACC activities" in m
        for m in said(load("======== Profiling result:\nNo OpenACC activities were profiled.\n"))
    )


def test_openacc_of_the_process_is_counted_once_though_it_stands_below_each_gpu(load):
    rows_ = (
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " GPU activities:  100.00%  2.0000us         1  2.0000us  2.0000us  2.0000us  axpy(float*)\n"
        " OpenACC (excl):   60.00%  3.0000us         1  3.0000us  3.0000us  3.0000us  acc_wait@f.c:1\n"
        "                   40.00%  2.0000us         2  1.0000us  1.0000us  1.0000us  acc_wait@f.c:1\n"
    )
    gpus = [f'\n======== Device "Tesla V100 ({n})"\n{rows_}' for n in range(2)]
    report = load("======== Profiling result:\n" + "".join(gpus))
    assert [r["device"] for r in table(report, "gpu_summary")] == [0, 1]
    assert [r["total_ns"] for r in table(report, "openacc_summary")] == [3000, 2000]


@pytest.fixture
def sampled(tmp_path):
    """A database with samples of clocks and power."""
    path = tmp_path / "run.nvvp"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)")
    db.execute("CREATE TABLE Version(version INTEGER)")
    db.execute("INSERT INTO Version VALUES (11)")
    db.execute("INSERT INTO StringTable VALUES (1, 'Tesla V100')")
    device = (
        "flags, globalMemoryBandwidth, globalMemorySize, constantMemorySize, l2CacheSize, numThreadsPerWarp,"
        " coreClockRate, numMemcpyEngines, numMultiprocessors, maxIPC, maxWarpsPerMultiprocessor,"
        " maxBlocksPerMultiprocessor, maxSharedMemoryPerMultiprocessor, maxRegistersPerMultiprocessor,"
        " maxRegistersPerBlock, maxSharedMemoryPerBlock, maxThreadsPerBlock, maxBlockDimX, maxBlockDimY, maxBlockDimZ,"
        " maxGridDimX, maxGridDimY, maxGridDimZ, computeCapabilityMajor, computeCapabilityMinor, id, eccEnabled, uuid, name"
    )
    typed = ", ".join(f"{c} {'BLOB' if c == 'uuid' else 'INT'}" for c in device.split(", "))
    db.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_DEVICE(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {typed})")
    values = {"uuid": b"\1" * 16, "name": 1, "computeCapabilityMajor": 7}
    db.execute(
        f"INSERT INTO CUPTI_ACTIVITY_KIND_DEVICE({device}) VALUES ({','.join('?' * len(device.split(', ')))})",
        [values.get(c, 0) for c in device.split(", ")],
    )
    db.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_ENVIRONMENT(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, deviceId INT,"
        " timestamp INT, environmentKind INT, data BLOB)"
    )
    for i in range(3):
        for kind, data in ((1, (1312 + i, 877)), (2, (40 + i, 0)), (3, (43_210 + i, 300_000)), (4, (30, 0))):
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_ENVIRONMENT(deviceId, timestamp, environmentKind, data)"
                " VALUES (0, ?, ?, ?)",
                (1000 * i, kind, struct.pack("<5I", *data, 0, 0, 0)),
            )
    db.commit()
    yield db, path
    db.close()


def test_clocks_of_a_database_are_the_same_facts(sampled):
    db, path = sampled
    found = facts(read(path))
    assert found[0, "system_sm_clock_avg"] == (1313, "MHz")
    assert found[0, "system_power_limit_min"] == (300_000, "mW")
    assert found[0, "system_fan_samples"] == (3, None)
    db.execute("UPDATE CUPTI_ACTIVITY_KIND_ENVIRONMENT SET data = x'00' WHERE environmentKind = 2")
    db.commit()
    report = read(path)
    assert any("3 samples" in m for m in said(report))
    assert (0, "system_temperature_avg") not in facts(report)


@pytest.mark.skipif(shutil.which("nvprof") is None, reason="no nvprof on PATH")
@pytest.mark.parametrize("more", [[], ["--csv"]])
def test_clocks_are_those_that_nvprof_prints(sampled, load, more):
    _, path = sampled
    done = subprocess.run(["nvprof", "-i", str(path), *more], capture_output=True, text=True, check=True)
    assert "System profiling result" in done.stderr
    own = facts(read(path))
    printed = facts(load(done.stderr))
    assert printed.items() <= own.items()
    assert len(printed) == 20
