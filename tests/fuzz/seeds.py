"""Small whole reports of every format: files of tests/fixtures, and generated ones in the shapes that those lack.

A format is fuzzed because it is registered: `make` must give a report of each (test_every_reader.py holds it to that).
A report is bytes, or of a folder its files.
"""

from __future__ import annotations

import cProfile
import gzip
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from tests.fakes import intel_reports as intel

FIXTURES = Path(__file__).parents[1] / "fixtures" / "h200"
ONEDNN = Path(__file__).parents[1] / "fixtures" / "onednn" / "convolution.txt"
CPU = FIXTURES.parent / "cpu"
_OF_CPU = {
    "pyspy-raw": ("host.rate100.pyspy.txt", "pyspy-native.txt"),
    "gprof": ("host.gprof.txt",),
    "tau-profile": ("profile.1.0.0",),
    "tau-pprof": ("pprof.txt",),
    "perf-stat": ("host.perfstat.json", "perfstat.csv", "perfstat.txt"),
    "perf-report": ("host.perf.txt", "perf-report-graph.txt", "perf-report-flat.txt"),
    "perf-script": ("perf-script.txt",),
}
_SHORT = 4500  # characters
_LINES = {"naive-source.csv": 4}  # of long ones that are kept; each of these makes 58 rows
# summaries, where a name that lost a word is that of another metric, and sums
_OF_METRICS = frozenset({"vtune-summary.txt", "vtune-summary.csv", "memory.txt", "vtune-events.csv", "tree.csv"})
_MOST = 60_000  # bytes of a fixture: several thousand are read in all

NVPROF_SUMMARY = """==4242== NVPROF is profiling process 4242, command: ./a 1
size=8 ms=3.5
==4242== Profiling application: ./a 1
==4242== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:   66.67%  4.2567ms         2  2.1283ms  1.0000ms  3.2567ms  void gemm<float>(float const *, int)
                   33.33%  2.1283ms         1  2.1283ms  2.1283ms  2.1283ms  [CUDA memcpy HtoD]
      API calls:  100.00%  120.50ms         3  40.167ms  1.2500us  120.00ms  cudaMalloc

==4242== Unified Memory profiling result:
Device "Tesla V100-SXM2-16GB (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
      12  170.67KB  4.0000KB  0.9961MB  2.000000MB  205.0000us  Host To Device
==4242== Warning: 3 records have invalid timestamps due to insufficient device buffer space.
"""
NVPROF_TRACE = """==7== NVPROF is profiling process 7, command: ./a
==7== Profiling result:
   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*      Size  Throughput  Device   Context    Stream  Name
292.37ms  1.2480us                    -               -         -         -         -  4.0000KB  3.0566GB/s  Tesla P100 (0)  1  7  [CUDA memcpy HtoD]
292.60ms  105.66us             (16 1 1)       (256 1 1)        32      2.0KB        0B         -           -  Tesla P100 (0)  1  7  gemm(float*, int) [114]
"""
NVPROF_METRICS = """==9== NVPROF is profiling process 9, command: ./a
==9== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Tesla V100 (0)","gemm(float*, int)",2,"achieved_occupancy","Achieved Occupancy",0.871321,0.90,0.88
"Tesla V100 (0)","gemm(float*, int)",2,"dram_utilization","Device Memory Utilization","Low (2)","Mid (5)","Low (3)"
"Tesla V100 (0)","gemm(float*, int)",2,"gld_throughput","Global Load Throughput","560.66MB/s","561.00MB/s","560.83MB/s"
"""
NVPROF_CPU = """
======== CPU profiling result (bottom up):
Time(%)      Time  Name
 83.33%  3.03999s  loop
 83.33%  3.03999s  | main
 16.67%  607.98ms  matvec(matrix const &) /usr/bin/a (/src/a.c:20 0x2724a)

======== Data collected at 100Hz frequency
"""
NVPROF_EVENTS_5 = """======== Profiling result:
\t\tInvocations         Avg         Min         Max  Event Name
Device 0
\tKernel: axpy(float, float*)
\t\t          4        4000        1000        7000  branch
\t\t          4        4001        1001        7001  warps_launched
"""
NVPROF_UNITS = """======== Profiling result:
======== Event result:
Invocations                                Event Name         Min         Max         Avg       Total
Device "Tesla V100-SXM2-16GB (1)"
    Kernel: axpy(float, float*)
          4                                    branch        1000        7000        4000       16000
          4                      branch (3 instances)           -           -  [        400        401        402 ]           -
"""
NVPROF_SYSTEM = """======== Profiling result:
            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  2.0000us         1  2.0000us  2.0000us  2.0000us  axpy(float*)

======== System profiling result:
Device "Tesla V100-SXM2-16GB (0)"
                         Count         Avg         Min         Max
      SM Clock (MHz)         3     1313.33     1312.00     1314.00
     Temperature (C)         3       41.00       40.00       42.00

======== Dependency Analysis:
   Start  Duration  Critical path  Waiting time  Name
1.6e+09s  4.5880us     4.588000us           0ns  cuDeviceGetPCIBusId
"""
KINETO = """{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 80}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 50.5, "args": {"External id": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20, "dur": 5, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm<float>(int)", "pid": 0, "tid": 7, "ts": 40, "dur": 12.25, "args": {"External id": 1,
 "device": 0, "stream": 7, "correlation": 9, "grid": [8, 1, 1], "block": [32, 1, 1], "est. achieved occupancy %": 47}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 16, "args":
 {"Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 4}}
], "traceName": "t"}
"""


NVPROF_CSV = """==3== NVPROF is profiling process 3, command: ./a
==3== Profiling result:
"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"
,%,us,,us,us,us,
"GPU activities",75.0,300.5,3,100.166,90.25,110.75,"void gemm<float, 4>(float const *, int)"
"GPU activities",25.0,100.25,2,50.125,40.125,60.125,"[CUDA memcpy HtoD]"
"API calls",100.0,900.5,4,225.125,1.125,700.25,"cudaMalloc"
==3== Unified Memory profiling result:
"Device","Count","Avg Size","Min Size","Max Size","Total Size","Total Time","Name"
,,KB,KB,KB,MB,ms,
"Tesla V100 (0)",12,170.5,4.0,996.25,2.125,0.205,"Host To Device"
"Tesla V100 (0)",,,,,7B,0.5,"Gpu page fault groups"
"""
NVPROF_TRACE_CSV = """==3== Profiling result:
"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem","Dynamic SMem","Size","Throughput","SrcMemType","DstMemType","Device","Context","Stream","Name","Correlation_ID"
s,us,,,,,,,,KB,B,MB,GB/s,,,,,,,
0.100125,10.25,,,,,,,,,,2.5,11.75,"Pageable","Device","Tesla V100 (0)","1","7","[CUDA memcpy HtoD]",101
0.200250,20.5,16,2,1,256,1,3,32,4.5,48,,,,,"Tesla V100 (0)","1","7","gemm(float*, int)",102
0.300375,30.75,17,2,1,256,1,3,33,5.5,49,,,,,"Tesla V100 (0)","1","7","gemm(float*, int)",103
==3== API calls:
"Start","Duration","Name","Correlation_ID"
ms,us,,
10.125,1.5,"cudaMalloc",7
11.25,2.5,"cudaLaunchKernel",8
"""
NVPROF_EVENTS = """==5== NVPROF is profiling process 5, command: ./a
==5== Event result:
Invocations                                Event Name         Min         Max         Avg       Total
Device "Tesla V100 (0)"
    Kernel: gemm(float*, int)
          4                   shared_st_bank_conflict        1864        4592        3411       13644
    Kernel: other(int)
          2                              warps_launched         64         128          96         192
==5== Metric result:
Invocations                               Metric Name                        Metric Description         Min         Max         Avg
Device "Tesla V100 (0)"
    Kernel: gemm(float*, int)
          4                             sm_efficiency                   Multiprocessor Activity      91.25%      93.75%      92.50%
          4                       dram_read_throughput           Device Memory Read Throughput  1.2500GB/s  4.5000GB/s  3.0000GB/s
          4                          dram_utilization                 Device Memory Utilization     Low (2)     Mid (6)     Low (3)
"""
NVPROF_OLD = """==8== NVPROF is profiling process 8, command: ./a
==8== Profiling result:
Time(%)      Time     Calls       Avg       Min       Max  Name
 75.00%  30.750ms        10  3.0750ms  2.5000ms  4.2500ms  gemm(float*, int)
 25.00%  10.250ms         2  5.1250ms  4.1250ms  6.1250ms  [CUDA memcpy DtoH]

==8== API calls:
Time(%)      Time     Calls       Avg       Min       Max  Name
 90.00%  45.000ms         3  15.000ms  1.0000ms  40.000ms  cudaMalloc
 10.00%  5.0000ms         1  5.0000ms  5.0000ms  5.0000ms  cudaFree
"""
NSYS_CSV = """Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
75.0,3075,3,1025.0,1000.0,975,1100,66.1,"void gemm<float, 4>(const float *, int)"
25.0,1025,2,512.5,512.5,500,525,17.7,other(int)

Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
97.5,390000,4,97500.0,50000.0,10000,280000,123456.7,cudaMalloc
2.5,10000,8,1250.0,1200.0,1000,1600,200.3,cudaLaunchKernel
"""
NSYS_2020 = """CUDA Kernel Statistics:

 Time(%)  Total Time (ns)  Instances  Average  Minimum  Maximum            Name
 -------  ---------------  ---------  -------  -------  -------  ------------------------
    75.0             3075          3   1025.0      975     1100  gemm(float const *, int)
    25.0             1025          2    512.5      500      525  other(int)

CUDA Memory Operation Statistics (by size in KiB):

    Total     Operations  Average  Minimum  Maximum      Operation
 -----------  ----------  -------  -------  -------  ------------------
     8192.50           4  2048.13    64.25  4096.75  [CUDA memcpy HtoD]
"""
NCU_TEXT = """==PROF== Connected to process 42 (/home/u/app)
[42] app@127.0.0.1
  gemm(float *, int) (64, 2, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         2.61
    Duration                         us        12.35
    Elapsed Cycles                cycle       21,447
    ----------------------- ----------- ------------

    OPT   This workload has low compute throughput.

    Section: Occupancy
    ------------------- ----------- ------------
    Metric Name         Metric Unit Metric Value
    ------------------- ----------- ------------
    Achieved Occupancy            %        67.27
    Block Limit Warps         block           12
    ------------------- ----------- ------------

  other(int) (3, 1, 1)x(32, 4, 1), Context 1, Stream 13, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         1.59
    Duration                         us         3.75
    Elapsed Cycles                cycle        6,318
    ----------------------- ----------- ------------
"""
ROCPROF_TRACE = """"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 4",1,1,852831,1,10,"void add<float>(float*, int)",1,1551874061244694,1551874061255734,0,0,8,0,16,64,1,1,1024,1024,1
"KERNEL_DISPATCH","Agent 4",1,1,852831,2,13,"subtract(float*, int)",2,1551874061259214,1551874061270254,512,0,12,0,16,64,2,1,1000,1024,1
"KERNEL_DISPATCH","Agent 4",2,2,852831,3,10,"void add<float>(float*, int)",3,1551874061270254,1551874061279974,0,0,8,0,16,64,1,1,1024,1024,1
"""
ROCPROF_STATS = """"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"
"void add<float>(float*, int)",2,20760,10380.000000,65.28,9720,11040,933.380951
"subtract(float*, int)",1,11040,11040.000000,34.72,11040,11040,0.000000
"""


class Seeds(dict[str, dict[str, bytes | dict[str, bytes]]]):
    """The reports of each format; a format without any fails the tests that ask for it with what to add."""

    def __missing__(self, format_id: str) -> NoReturn:
        pytest.fail(
            f"there is no report of format {format_id} to damage: add a small whole one, of a few rows, to `make` in"
            f' tests/fuzz/seeds.py: "{format_id}": {{"file name": b"content"}}',
            pytrace=False,
        )


@cache
def make() -> Seeds:
    """The reports of each format, by name."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        profile, database = _pstats(Path(folder) / "out.prof"), _nvvp(Path(folder) / "a.nvvp")
    reports: dict[str, dict[str, bytes | dict[str, bytes]]] = {
        "nsys-sqlite": {"tiled.sqlite": _fixture("tiled.sqlite")},
        "nsys-parquet": {"tiled_pqtdir": _parquet(_fixture("tiled.sqlite"))},
        "nsys-binary": {"a.nsys-rep": b"NVIDIA Tegra Profiler Report\n" + bytes(range(256)) * 4},
        "nsys-stats": {
            "tiled-stats.txt": _fixture("tiled-stats.txt"), "sum.csv": NSYS_CSV.encode(), "old.txt": NSYS_2020.encode(),
            "refused.txt": _fixture("tiled-stats-refused.txt"), "sum.tsv": NSYS_CSV.replace(",", "\t").encode(),
        },
        "kineto": {"trace.json": KINETO.encode(), "lenet-trace.json.gz": _fixture("lenet-trace.json.gz", packed=True)},
        "pstats": {"out.prof": profile},
        "nvprof-sqlite": {"a.nvvp": database},
        "nvprof-text": {
            "summary.txt": NVPROF_SUMMARY.encode(), "trace.txt": NVPROF_TRACE.encode(), "old.txt": NVPROF_OLD.encode(),
            "events.txt": NVPROF_EVENTS.encode(), "metrics.csv": NVPROF_METRICS.encode(),
            "summary.csv": NVPROF_CSV.encode(), "trace.csv": NVPROF_TRACE_CSV.encode(),
            "cpu.txt": NVPROF_CPU.encode(), "cuda5.txt": NVPROF_EVENTS_5.encode(), "units.txt": NVPROF_UNITS.encode(),
            "system.txt": NVPROF_SYSTEM.encode(),
        },
        "ncu-csv": {
            name: _fixture(name)[:_MOST]
            for name in ("tiled-details.csv", "naive-raw.csv", "naive-summary.csv", "naive-session.csv",
                         "ncu-mixed.csv", "naive-source.csv")
        },
        "ncu-text": {"details.txt": NCU_TEXT.encode(), **{n: _fixture(n) for n in ("naive-details.txt", "ncu-stdout.txt")}},
        "ncu-binary": {"blocked.ncu-rep": _fixture("blocked.ncu-rep")},
        "torch-table": {"lenet-table.txt": _fixture("lenet-table.txt")},
        **{format_id: {n: (CPU / n).read_bytes() for n in names} for format_id, names in _OF_CPU.items()},
        "vtune": {
            "hotspots.csv": intel.HOTSPOTS_CSV.encode(), "hotspots.txt": intel.HOTSPOTS_TEXT.encode(),
            "modules.csv": intel.MODULES_CSV.encode(), "tree.csv": intel.TREE_CSV.encode(),
            "vtune-events.csv": intel.FUNCTION_EVENTS.encode(), "vtune-summary.txt": intel.SUMMARY.encode(),
            "vtune-summary.csv": intel.SUMMARY_CSV.encode(), "memory.txt": intel.MEMORY.encode(),
        },
        "aps": {
            "aps.txt": intel.APS.encode(), "aps-ranks.txt": intel.APS_RANKS.encode(),
            "aps-metrics.txt": intel.APS_METRICS.encode(), "aps.html": intel.APS_HTML.encode(),
        },
        "rocprofv3-csv": {"1_kernel_trace.csv": ROCPROF_TRACE.encode(), "1_kernel_stats.csv": ROCPROF_STATS.encode()},
        "onednn": {"convolution.txt": ONEDNN.read_bytes()[:6000]},
    }  # fmt: skip
    return Seeds(reports)


# of which a row is a row of the text, and no sum over many lines
ROWS_OF_CPU = ("gprof", "tau-profile", "tau-pprof", "perf-stat", "perf-report")


def texts(*more: str) -> dict[str, str]:
    """The reports that are text, of long ones the beginning: short enough to try every word of; `more` formats."""
    found = {}
    for format_id in ("nvprof-text", "nsys-stats", "ncu-csv", "ncu-text", "torch-table", "vtune", *more):
        for name, data in make()[format_id].items():
            if name in _OF_METRICS:
                continue
            text = data.decode() if isinstance(data, bytes) else ""
            found[name] = text if len(text) < _SHORT else "\n".join(text.split("\n")[: _LINES.get(name, 14)])
    return found


def write(report: bytes | dict[str, bytes], path: Path) -> Path:
    """Put a report there, in place of what was."""
    if isinstance(report, bytes):
        path.write_bytes(report)
        return path
    path.mkdir(exist_ok=True)
    for old in path.iterdir():
        old.unlink()
    for name, data in report.items():
        (path / name).write_bytes(data)
    return path


def _fixture(name: str, *, packed: bool = False) -> bytes:
    path = FIXTURES / name
    if path.exists():
        return path.read_bytes() if packed or path.suffix != ".gz" else gzip.decompress(path.read_bytes())
    return gzip.decompress((FIXTURES / f"{name}.gz").read_bytes())


def _parquet(database: bytes) -> dict[str, bytes]:
    """The tables of a database as nsys's parquetdir has them."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    files: dict[str, bytes] = {}
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(database)
        base.text_factory = lambda b: b.decode(errors="replace")
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = base.execute(f'SELECT * FROM "{table}"')
            names = [d[0] for d in cursor.description]
            if rows := cursor.fetchall():
                out = io.BytesIO()
                columns = dict(zip(names, (list(c) for c in zip(*rows, strict=True)), strict=True))
                pq.write_table(pa.table(columns), out)
                files[f"{table}.parquet"] = out.getvalue()
    return files


def _pstats(path: Path) -> bytes:
    profile = cProfile.Profile()
    profile.runcall(sorted, [3, 1, 2], key=str)
    profile.dump_stats(path)
    return path.read_bytes()


def _nvvp(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as base:
        base.executescript(
            "CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY, value TEXT); CREATE TABLE Version(version INTEGER);"
            "INSERT INTO StringTable VALUES (1, '_Z4gemmPfi'), (2, 'Tesla V100'); INSERT INTO Version VALUES (11);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(start, end, deviceId, contextId, streamId, gridX,"
            " gridY, gridZ, blockX, blockY, blockZ, registersPerThread, staticSharedMemory, dynamicSharedMemory,"
            " correlationId, name);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL VALUES"
            " (100, 350, 0, 1, 7, 8, 1, 1, 32, 1, 1, 16, 0, 0, 5, 1), (400, 900, 0, 1, 7, 8, 1, 1, 32, 1, 1, 16, 0, 0, 6, 1);"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(cbid, start, end, processId, threadId, correlationId, returnValue);"
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (211, 90, 99, 4, 4, 5, 0);"
        )
        base.commit()
    return path.read_bytes()
