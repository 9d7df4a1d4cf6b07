"""nvprof's databases as CUDA 5.0 to 12 wrote them: the columns of CUPTI's records changed, what is read does not."""

import shutil
import sqlite3
import struct
import subprocess

import pytest

from nsw.readers import Options, read
from nsw.tables import full_rows

_PLACE = (
    "deviceId contextId streamId gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory"
    " localMemoryPerThread localMemoryTotal correlationId"
)
KERNEL = f"cacheConfigRequested cacheConfigExecuted registersPerThread start end {_PLACE} runtimeCorrelationId name"
KERNEL_2 = f"cacheConfig sharedMemoryConfig registersPerThread start end completed {_PLACE} gridId name"
KERNEL_3 = KERNEL_2.replace("start", "partitionedGlobalCacheRequested partitionedGlobalCacheExecuted start")
KERNEL_4 = f"{KERNEL_3} queued submitted launchType isSharedMemoryCarveoutRequested sharedMemoryCarveoutRequested"
KERNEL_4B = f"{KERNEL_4} sharedMemoryExecuted"
KERNEL_9 = (
    f"{KERNEL_4B} graphNodeId shmemLimitConfig graphId pAccessPolicyWindow channelID channelType clusterX clusterY"
    " clusterZ clusterSchedulingPolicy localMemoryTotal_v2 maxPotentialClusterSize maxActiveClusters"
)
COPY = "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId"
COPY_5 = f"{COPY} graphNodeId graphId channelID channelType copyCount"
PEER = COPY.replace(
    "correlationId runtimeCorrelationId", "srcDeviceId srcContextId dstDeviceId dstContextId correlationId"
)
SET = "value bytes start end deviceId contextId streamId correlationId runtimeCorrelationId"
SET_2 = "value bytes start end deviceId contextId streamId correlationId flags memoryKind"
MARKER = "flags timestamp id objectKind objectId name"
CALL = "cbid start end processId threadId correlationId returnValue"
_LIMITS = (
    "maxRegistersPerBlock maxSharedMemoryPerBlock maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ"
    " maxGridDimX maxGridDimY maxGridDimZ computeCapabilityMajor computeCapabilityMinor id"
)
DEVICE = (
    "flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize numThreadsPerWarp coreClockRate"
    f" numMemcpyEngines numMultiprocessors maxIPC maxWarpsPerMultiprocessor maxBlocksPerMultiprocessor {_LIMITS} name"
)
DEVICE_2 = DEVICE.replace(
    _LIMITS, f"maxSharedMemoryPerMultiprocessor maxRegistersPerMultiprocessor {_LIMITS} eccEnabled uuid"
)
UNIFIED = "counterKind scope deviceId value timestamp processId"
UNIFIED_2 = "counterKind value start end address srcId dstId streamId processId flags"
_SAME = {"RUNTIME": CALL, "DRIVER": CALL, "CONTEXT": "contextId deviceId computeApiKind nullStreamId", "MEMCPY2": PEER}
_BLOBS = {"cacheConfig", "objectId", "uuid", "pAccessPolicyWindow"}
# Name -> the versions that a file of it bears, its tables.
GENERATIONS = {
    "CUDA 5.0": ((1, 3), {"KERNEL": KERNEL, "MEMCPY": COPY, "MEMSET": SET, "MARKER": MARKER, "DEVICE": DEVICE,
                          "UNIFIED_MEMORY_COUNTER": UNIFIED}),
    "CUDA 5.5 to 6": ((4, 6), {"KERNEL": KERNEL_2, "MEMCPY": COPY, "MEMSET": SET, "MARKER": MARKER, "DEVICE": DEVICE,
                               "UNIFIED_MEMORY_COUNTER": UNIFIED}),
    "CUDA 7 to 8": ((8, 9), {"KERNEL": KERNEL_3, "MEMCPY": COPY, "MEMSET": SET_2, "MARKER": f"{MARKER} domain",
                             "DEVICE": DEVICE_2, "UNIFIED_MEMORY_COUNTER": UNIFIED_2}),
    "CUDA 9": ((11,), {"KERNEL": KERNEL_4, "MEMCPY": COPY, "MEMSET": SET_2, "MARKER": f"{MARKER} domain",
                       "DEVICE": DEVICE_2, "UNIFIED_MEMORY_COUNTER": UNIFIED_2}),
    "CUDA 10": ((12,), {"KERNEL": KERNEL_4B, "MEMCPY": COPY, "MEMSET": SET_2, "MARKER": f"{MARKER} domain",
                        "DEVICE": DEVICE_2, "UNIFIED_MEMORY_COUNTER": UNIFIED_2}),
    "CUDA 12": ((14, 19), {"KERNEL": KERNEL_9, "MEMCPY": COPY_5, "MEMSET": f"{SET_2} graphNodeId graphId channelID channelType",
                           "MARKER": f"{MARKER} domain", "DEVICE": f"{DEVICE_2} isCudaVisible isMigEnabled",
                           "UNIFIED_MEMORY_COUNTER": UNIFIED_2}),
}  # fmt: skip
# What nvprof of CUDA 12.5 makes of files like these made here; a file of CUDA 12 needs more than they have.
_READ_BY_NVPROF = ("CUDA 5.0", "CUDA 5.5 to 6", "CUDA 7 to 8", "CUDA 9", "CUDA 10")


class Made:
    """A database of one generation."""

    def __init__(self, path, generation, version):
        self.path, self.db = path, sqlite3.connect(path)
        self._tables = dict(GENERATIONS[generation][1]) | _SAME
        self._tables["CONCURRENT_KERNEL"] = self._tables["KERNEL"]
        self.db.execute("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)")
        self.db.execute("CREATE TABLE Version(version INTEGER)")
        self.db.execute("INSERT INTO Version VALUES (?)", (version,))
        for table, columns in self._tables.items():
            typed = ", ".join(f"{c} {'BLOB' if c in _BLOBS else 'INT'}" for c in columns.split())
            self.db.execute(
                f"CREATE TABLE CUPTI_ACTIVITY_KIND_{table}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {typed})"
            )

    def string(self, text):
        self.db.execute("INSERT OR IGNORE INTO StringTable(value) VALUES (?)", (text,))
        return self.db.execute("SELECT _id_ FROM StringTable WHERE value = ?", (text,)).fetchone()[0]

    def add(self, table, **values):
        columns = self._tables[table].split()
        row = [values.get(c, (b"\0" if c == "cacheConfig" else b"\1" * 16) if c in _BLOBS else 0) for c in columns]
        self.db.execute(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_{table}({','.join(columns)}) VALUES ({','.join('?' * len(row))})", row
        )

    def close(self):
        self.db.commit()
        self.db.close()
        return self.path


@pytest.fixture(
    params=[(name, version) for name, (versions, _) in GENERATIONS.items() for version in versions],
    ids=lambda p: f"{p[0]}, version {p[1]}",
)
def made(request, tmp_path):
    """Two kernels three times, of which one was serialised, copies, a set, calls, a range: the same in all of them."""
    generation, version = request.param
    made = Made(tmp_path / "run.nvvp", generation, version)
    for gpu in range(2):
        made.add("DEVICE", id=gpu, name=made.string("Tesla K40c"), computeCapabilityMajor=3, computeCapabilityMinor=5,
                 numMultiprocessors=15)  # fmt: skip
        made.add("CONTEXT", contextId=gpu + 1, deviceId=gpu, computeApiKind=1, nullStreamId=7)
    start = 1_000_000_000
    at = {"deviceId": 0, "contextId": 1, "streamId": 7}
    shape = {"gridX": 16, "gridY": 2, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1, "registersPerThread": 32}
    for i in range(3):
        name, took = made.string(["_Z4axpyfPfS_", "_Z4gemmPfS_S_i"][i % 2]), 1000 * (i + 1)
        made.add("RUNTIME", cbid=211, start=start, end=start + 800, processId=9, threadId=1, correlationId=i + 1)
        made.add("KERNEL" if i == 2 else "CONCURRENT_KERNEL", name=name, start=start + 1000, end=start + 1000 + took,
                 completed=start + 1000 + took, correlationId=i + 1, runtimeCorrelationId=i + 1, gridId=i, **at, **shape)  # fmt: skip
        start += 20_000
    made.add("RUNTIME", cbid=31, start=start, end=start + 900, processId=9, threadId=1, correlationId=10)
    made.add("MEMCPY", copyKind=1, srcKind=1, dstKind=3, bytes=4096, start=start + 1000, end=start + 3000,
             correlationId=10, **at)  # fmt: skip
    made.add("MEMCPY2", copyKind=10, srcKind=3, dstKind=3, bytes=512, start=start + 4000, end=start + 4500,
             correlationId=11, srcContextId=1, dstDeviceId=1, dstContextId=2, **at)  # fmt: skip
    made.add("MEMSET", bytes=64, start=start + 6000, end=start + 6700, correlationId=12, **at)
    thread = struct.pack("<II", 9, 1) + b"\0" * 16
    made.add("MARKER", flags=2, timestamp=999_999_500, id=1, objectKind=2, objectId=thread, name=made.string("step"))
    made.add("MARKER", flags=4, timestamp=1_000_030_000, id=1, objectKind=2, objectId=thread, name=0)
    return made, generation


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def test_each_generation_has_the_same_summaries(made):
    database, _ = made
    report = read(database.close())
    assert not report.problems
    found = {r["name"]: (r["kind"], r["calls"], r["total_ns"], r["total_bytes"]) for r in table(report, "gpu_summary")}
    assert found == {
        "axpy(float, float*, float*)": ("kernel", 2, 4000, None),
        "gemm(float*, float*, float*, int)": ("kernel", 1, 2000, None),
        "[CUDA memcpy HtoD]": ("memcpy", 1, 2000, 4096),
        "[CUDA memcpy PtoP]": ("memcpy", 1, 500, 512),
        "[CUDA memset]": ("memset", 1, 700, 64),
    }
    calls = {r["name"]: (r["calls"], r["total_ns"]) for r in table(report, "api_summary")}
    assert calls == {"cudaLaunchKernel": (3, 2400), "cudaMemcpy": (1, 900)}
    assert [(r["name"], r["domain"], r["total_ns"]) for r in table(report, "nvtx_summary")] == [("step", None, 30_500)]
    assert [(r["name"], r["gpu_ops"], r["gpu_ns"]) for r in table(report, "nvtx_gpu_summary")] == [("step", 2, 3000)]


def test_each_generation_has_the_same_trace(made):
    database, _ = made
    report = read(database.close(), Options(tables=frozenset({"gpu_trace", "api_trace"})))
    first, *_, last = table(report, "gpu_trace")
    assert (first["start_ns"], first["duration_ns"], first["grid_y"], first["block_x"]) == (0, 1000, 2, 256)
    assert (first["registers"], first["correlation"], first["device_name"]) == (32, 1, "Tesla K40c")
    assert (last["name"], last["start_ns"], last["bytes"]) == ("[CUDA memset]", 65_000, 64)
    assert len(table(report, "gpu_trace")) == 6
    assert [r["name"] for r in table(report, "api_trace")] == [*["cudaLaunchKernel"] * 3, "cudaMemcpy"]


@pytest.mark.skipif(shutil.which("nvprof") is None, reason="no nvprof on PATH")
def test_each_generation_is_read_as_nvprof_reads_it(made, tmp_path):
    database, generation = made
    if generation not in _READ_BY_NVPROF:
        pytest.skip("nvprof asks for more tables")
    own = read(database.close())
    for more in ([], ["--csv"], ["-u", "ns"]):
        done = subprocess.run(["nvprof", "-i", str(database.path), *more], capture_output=True, text=True, check=True)
        printed = tmp_path / "printed.txt"
        printed.write_text(done.stderr)
        there = read(printed)
        for name in ("gpu_summary", "api_summary"):
            if generation == "CUDA 5.0" and name == "api_summary":
                continue  # was printed only when asked for
            of = {r["name"]: (r["calls"], r["total_ns"]) for r in table(own, name)}
            of.pop("[CUDA memcpy PtoP]", None)  # nvprof -i leaves it out where there are calls too
            assert {r["name"]: (r["calls"], r["total_ns"]) for r in table(there, name)} == of


def test_counters_of_unified_memory_are_read_or_named(made):
    database, _ = made
    times = {"start": 1_000_000_100, "end": 1_000_000_600, "timestamp": 1_000_000_100}
    database.add("UNIFIED_MEMORY_COUNTER", counterKind=1, value=8192, processId=9, **times)
    report = read(database.close())
    found = [(r["name"], r["total_bytes"], r["total_ns"]) for r in table(report, "um_summary")]
    said = [p.message for p in report.problems]
    assert (found, said) == ([("Host To Device", 8192, 500)], []) or (
        found == [] and said[0].startswith("not read: 1 samples of Unified Memory's counters in the form of CUDA 6.0")
    )


def test_a_table_without_a_column_that_it_is_read_by_is_named(tmp_path):
    database = Made(tmp_path / "run.nvvp", "CUDA 9", 11)
    database.add("MEMCPY", copyKind=1, bytes=8, start=1, end=2)
    database.add("MEMSET", bytes=8, start=1, end=2)
    database.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY RENAME COLUMN bytes TO size")
    report = read(database.close())
    assert [r["name"] for r in table(report, "gpu_summary")] == ["[CUDA memset]"]
    assert [(p.severity, p.message) for p in report.problems] == [
        ("error", "not read: the 1 records of CUPTI_ACTIVITY_KIND_MEMCPY, which have no bytes")
    ]


def test_links_and_overheads_are_facts(tmp_path):
    database = Made(tmp_path / "run.nvvp", "CUDA 10", 12)
    database.db.executescript(
        """
        CREATE TABLE CUPTI_ACTIVITY_KIND_PCIE(type INT, id BLOB, domain INT, pcieGeneration INT, linkRate INT,
                                              linkWidth INT, upstreamBus INT, attr BLOB);
        INSERT INTO CUPTI_ACTIVITY_KIND_PCIE VALUES (0, x'01000000', 0, 3, 8000, 16, 22, x'00');
        INSERT INTO CUPTI_ACTIVITY_KIND_PCIE VALUES (1, x'02000000', 0, 0, 0, 0, 22, x'00');
        CREATE TABLE CUPTI_ACTIVITY_KIND_OVERHEAD(overheadKind INT, objectKind INT, objectId BLOB, start INT, end INT);
        INSERT INTO CUPTI_ACTIVITY_KIND_OVERHEAD VALUES (131072, 2, x'00', 10, 30), (131072, 2, x'00', 40, 45);
        """
    )
    found = {(r["device"], r["key"]): (r["value"], r["unit"]) for r in table(read(database.close()), "facts")}
    assert found[1, "gpu_linkWidth"] == (16, None)
    assert found[1, "gpu_pcieGeneration"] == (3, None)
    assert found[1, "gpu_linkRate"] == (8000, "MT/s")
    assert found[None, "profiler_overhead_instrumentation"] == (25, "ns")
    assert not any(device == 2 for device, _ in found)
