"""A small whole report of each format, for the fuzzing of all readers: files of tests/fixtures and generated ones."""

from __future__ import annotations

import cProfile
import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "h200"
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
KINETO = """{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 80}], "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 50.5, "args": {"External id": 1}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 20, "dur": 5, "args": {"correlation": 9}},
{"ph": "X", "cat": "kernel", "name": "gemm<float>(int)", "pid": 0, "tid": 7, "ts": 40, "dur": 12.25, "args": {"External id": 1,
 "device": 0, "stream": 7, "correlation": 9, "grid": [8, 1, 1], "block": [32, 1, 1], "est. achieved occupancy %": 47}},
{"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 16, "args":
 {"Total Allocated": 512, "Bytes": 512, "Device Id": 0, "Device Type": 1, "Addr": 4}}
], "traceName": "t"}
"""


def make(folder: Path) -> dict[str, bytes]:
    """The seeds by name."""
    seeds = {
        "nvprof-summary.txt": NVPROF_SUMMARY.encode(),
        "nvprof-trace.txt": NVPROF_TRACE.encode(),
        "nvprof-metrics.csv": NVPROF_METRICS.encode(),
        "trace.json": KINETO.encode(),
        "out.prof": _pstats(folder / "out.prof"),
        "a.nvvp": _nvvp(folder / "a.nvvp"),
        "a.nsys-rep": b"NVIDIA Tegra Profiler Report\n" + bytes(range(256)) * 4,
    }
    for path in sorted(FIXTURES.iterdir()):
        if path.suffix in {".py", ".md"}:
            continue
        packed = path.suffix == ".gz" and ".json" not in path.suffixes
        data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
        whole = b"SQLite" in data[:16] or ".json" in path.suffixes
        seeds[path.stem if packed else path.name] = data if whole else data[:_MOST]
    return seeds


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
