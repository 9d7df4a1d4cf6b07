"""The nsys database reader, on small databases of every generation."""

from __future__ import annotations

import sqlite3
import statistics
from contextlib import closing
from pathlib import Path

import pytest

from nsw.cli.main import run
from nsw.readers import Options, read
from nsw.readers.model import Sample
from nsw.readers.nsys.export import sqlite as nsys_sqlite
from nsw.readers.nsys.export.sqlite import sniff
from nsw.tables import full_rows, to_arrow

PID, TID = 77, 78
GLOBAL_PID = (1 << 56) | (PID << 24)
GLOBAL_TID = GLOBAL_PID | TID
GENERATIONS = ["2020", "2022", "2023", "2025", "2026"]


def table(report, name):
    return list(full_rows(name, report.tables.get(name, [])))


def by_name(report, name):
    return {r["name"]: r for r in table(report, name)}


def errors(report):
    return [p.message for p in report.problems if p.severity == "error"]


def warnings(report):
    return [p.message for p in report.problems if p.severity == "warning"]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation_gives_the_same_numbers(typical_database, generation):
    now, then = read(typical_database("2025")), read(typical_database(generation))
    assert then.format == "nsys-sqlite"
    assert not then.problems
    assert then.tool_version == (None if generation == "2020" else f"{generation}.1.2")
    numbers = ("name", "total_ns", "calls", "med_ns", "stddev_ns", "time_pct", "total_bytes")
    for name in ("gpu_summary", "api_summary", "nvtx_summary", "nvtx_gpu_summary"):
        want = [[r.get(n) for n in numbers] for r in table(now, name)]
        assert want
        assert [[r.get(n) for n in numbers] for r in table(then, name)] == want


def test_statistics_are_exact(nsys_database):
    durations = [3, 1, 2, 10, 7, 2_000_000_000_000]
    database = nsys_database()
    for index, duration in enumerate(durations):
        database.kernel(index, duration)
    (row,) = table(read(database.done()), "gpu_summary")
    assert row["calls"] == 6
    assert row["total_ns"] == sum(durations)
    assert row["avg_ns"] == statistics.mean(durations)
    assert row["med_ns"] == 5.0
    assert (row["min_ns"], row["max_ns"]) == (1, 2_000_000_000_000)
    assert row["stddev_ns"] == pytest.approx(statistics.stdev(durations), rel=1e-14)
    assert row["time_pct"] == 100.0


def test_one_launch_has_no_standard_deviation(nsys_database):
    database = nsys_database()
    database.kernel(0, 5)
    (row,) = table(read(database.done()), "gpu_summary")
    assert row["stddev_ns"] is None


def test_names_are_demangled_short_and_mangled(nsys_database):
    database = nsys_database()
    name = "void at::native::fill<float>(int)"
    database.kernel(0, 5, name, mangledName=database.string("_Z4fillv"))
    (row,) = table(read(database.done()), "gpu_summary")
    assert (row["name"], row["short_name"], row["mangled_name"]) == (name, "fill", "_Z4fillv")


def test_kernels_have_the_blocks_of_their_largest_launch_and_the_kernel_that_follows_them(nsys_database):
    database = nsys_database()
    for step in range(12):
        database.kernel(100 * step, 5, "product()", gridX=2, gridY=66, gridZ=1)
        database.kernel(100 * step + 10, 5, "softmax()", gridX=9 + step, gridY=1, gridZ=1)
        if step > 1:  # 10 of 12
            database.kernel(100 * step + 20, 5, "sum()", gridX=1, gridY=1, gridZ=1)
    found = by_name(read(database.done()), "gpu_summary")
    assert {name: row["blocks"] for name, row in found.items()} == {"product()": 132, "softmax()": 20, "sum()": 1}
    successors = {name: row["successor"] for name, row in found.items()}
    assert successors == {"product()": "softmax()", "softmax()": None, "sum()": "product()"}


def test_templates_of_one_short_name_stay_apart(nsys_database):
    database = nsys_database()
    database.kernel(0, 5, "void f<int>()", shortName=database.string("f"))
    database.kernel(9, 5, "void f<float>()", shortName=database.string("f"))
    assert set(by_name(read(database.done()), "gpu_summary")) == {"void f<int>()", "void f<float>()"}


def test_shares_are_of_all_gpu_time_and_bytes_are_added(nsys_database):
    database = nsys_database()
    database.kernel(0, 50)
    database.copy(50, 30, 1, 1000)
    database.copy(80, 10, 1, 24)
    database.memset(90, 10, 7)
    found = by_name(read(database.done()), "gpu_summary")
    assert {n: r["time_pct"] for n, r in found.items()} == {
        "gemm(float*)": 50.0,
        "[CUDA memcpy Host-to-Device]": 40.0,
        "[CUDA memset]": 10.0,
    }
    assert [r["total_bytes"] for r in found.values()] == [None, 1024.0, 7.0]
    assert [r["kind"] for r in found.values()] == ["kernel", "memcpy", "memset"]


def test_copy_kinds_take_the_words_of_the_export(nsys_database):
    database = nsys_database()
    database.add("ENUM_CUDA_MEMCPY_OPER", id=1, name="HTOD", label="Host-to-Elsewhere")
    database.copy(0, 1, 1, 1)
    database.copy(0, 1, 99, 1)
    assert set(by_name(read(database.done()), "gpu_summary")) == {
        "[CUDA memcpy Host-to-Elsewhere]",
        "[CUDA memcpy kind 99]",
    }


def test_without_words_of_the_export_copies_go_by_the_numbers_of_cupti(nsys_database):
    """As `CUpti_ActivityMemcpyKind` counts them; each copy has as many bytes as its number says."""
    database = nsys_database()
    for kind in range(14):
        database.copy(kind, 1, kind, kind)
    path = database.done()
    report, trace = read(path), read(path, Options(frozenset({"gpu_trace"})))
    words = {r["name"]: r["total_bytes"] for r in table(report, "gpu_summary")}
    assert words == {
        f"[CUDA memcpy {name}]": size
        for size, name in enumerate(
            [
                "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array",
                "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
                "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
            ]
        )
    }  # fmt: skip
    assert {r["name"]: r["bytes"] for r in table(trace, "gpu_trace")} == words
    unified = {r["name"]: r["total_bytes"] for r in table(report, "um_summary")}
    assert unified == {"Host-to-Device": 11, "Device-to-Host": 12, "Device-to-Device": 13}


def test_versions_of_an_api_call_are_one_row(nsys_database):
    database = nsys_database()
    database.call(0, 10, "cudaMemcpy_v3020")
    database.call(10, 20, "cudaMemcpy_v7000")
    database.call(30, 70, "cudaGraphLaunch_v10000")
    database.call(100, 100, "cuMemcpyHtoD_v2")
    found = by_name(read(database.done()), "api_summary")
    assert {n: (r["calls"], r["med_ns"], r["time_pct"]) for n, r in found.items()} == {
        "cuMemcpyHtoD": (1, 100, 50),
        "cudaGraphLaunch": (1, 70, 35),
        "cudaMemcpy": (2, 15, 15),
    }


def test_process_and_device_are_named_only_where_there_is_one(nsys_database):
    one, two = nsys_database(), nsys_database()
    for database in (one, two):
        database.kernel(0, 5, deviceId=3)
        database.call(0, 5)
    two.kernel(0, 5, deviceId=1, globalPid=GLOBAL_PID + (1 << 24))
    (row,) = table(read(one.done()), "gpu_summary")
    assert (row["pid"], row["device"]) == (PID, 3)
    report = read(two.done())
    (row,) = table(report, "gpu_summary")
    assert (row["pid"], row["device"], row["calls"]) == (None, None, 2)
    assert table(report, "api_summary")[0]["pid"] == PID


def test_equal_correlation_ids_of_two_processes_are_not_mixed(nsys_database):
    database = nsys_database()
    other = GLOBAL_PID + (1 << 24)
    database.range(0, 100, "mine")
    database.range(0, 100, "theirs", globalTid=other | TID)
    for pid, duration in ((GLOBAL_PID, 5), (other, 900)):
        database.call(10, 5, correlationId=1, globalTid=pid | TID)
        database.kernel(50, duration, correlationId=1, globalPid=pid)
    found = by_name(read(database.done()), "nvtx_gpu_summary")
    assert {n: (r["gpu_ops"], r["gpu_ns"]) for n, r in found.items()} == {"mine": (1, 5), "theirs": (1, 900)}


def test_graphs_traced_as_a_whole_are_rows_and_a_warning(nsys_database):
    database = nsys_database()
    database.kernel(0, 25)
    for start in (100, 200, 300):
        database.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=start, end=start + 25, deviceId=0, globalPid=GLOBAL_PID, graphId=4
        )
    path = database.done()
    report = read(path)
    row = by_name(report, "gpu_summary")["[CUDA graph 4]"]
    assert (row["kind"], row["short_name"], row["calls"], row["time_pct"]) == ("graph", row["name"], 3, 75.0)
    graphs = [r for r in table(read(path, Options(frozenset({"gpu_trace"}))), "gpu_trace") if r["kind"] == "graph"]
    assert [(r["name"], r["start_ns"], r["duration_ns"], r["pid"], r["device"]) for r in graphs] == [
        ("[CUDA graph 4]", start, 25, PID, 0) for start in (100, 200, 300)
    ]
    (warning,) = warnings(report)
    assert "3 CUDA graph launches, 75.0 % of the GPU time" in warning
    assert not report.problems[0].is_note
    longer = nsys_database()
    longer.kernel(0, 2500)
    longer.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=3000, end=3025, deviceId=0, globalPid=GLOBAL_PID, graphId=4)
    assert [problem.is_note for problem in read(longer.done()).problems] == [True]  # 1 % of the GPU's time


def test_tables_without_rows_are_as_tables_that_a_lazy_export_leaves_out(nsys_database, typical_database):
    path = typical_database()
    lazy = read(path)
    connection = sqlite3.connect(path)
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    for name, columns in nsys_database().columns.items():
        if name not in present:
            connection.execute(f"CREATE TABLE {name} ({', '.join(columns.split())})")
    connection.commit()
    connection.close()
    complete = read(path)
    assert not complete.problems
    assert complete.tables.keys() == lazy.tables.keys()
    for name in lazy.tables:
        assert table(complete, name) == table(lazy, name)


def test_a_report_with_os_runtime_rows_only_is_read(nsys_database):
    database = nsys_database()
    database.add("OSRT_API", start=5, end=15, eventClass=27, globalTid=GLOBAL_TID, nameId=database.string("poll"))
    mark = database.string("OS runtime libraries profiling started")  # nsys's own, which `nsys stats` leaves out
    database.add("OSRT_API", start=5, end=5, eventClass=31, globalTid=GLOBAL_TID, nameId=mark)
    report = read(database.done())
    assert not report.problems
    assert {n: r["total_ns"] for n, r in by_name(report, "osrt_summary").items()} == {"poll": 10}
    assert "api_summary" not in report.tables


def test_a_report_without_events_is_an_error(nsys_database):
    database = nsys_database()
    database.add("ANALYSIS_DETAILS", duration=5, startTime=0, stopTime=5)
    (error,) = errors(read(database.done()))
    assert "no kernels" in error


def test_bytes_that_are_no_text_do_not_stop_the_reader(nsys_database):
    database = nsys_database()
    database.kernel(0, 5, b"k\xff(int)")
    database.range(0, 9, "plain")
    database.sql("UPDATE NVTX_EVENTS SET text = CAST(x'61FF62' AS TEXT)")
    database.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    database.sql("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('DeviceEnvironment', CAST(x'FFFE' AS TEXT))")
    report = read(database.done())
    assert not report.problems
    assert table(report, "gpu_summary")[0]["name"] == "k\ufffd(int)"
    assert table(report, "nvtx_summary")[0]["name"] == "a\ufffdb"
    assert table(report, "gpu_summary")[0]["host"] == "node7"


def test_nvtx_domains_registered_strings_marks_and_unended_ranges(nsys_database):
    database = nsys_database()
    database.range(0, None, "NCCL", kind=75, domainId=1)
    database.range(0, 10, None, textId=database.string("ncclAllReduce"), domainId=1)
    database.range(0, 40, "step")
    database.range(50, None, "open", kind=60)
    database.range(60, None, "here", kind=34)
    database.range(70, 90, "step", kind=60)
    database.range(70, 95, "step", kind=60, domainId=1)
    report = read(database.done())
    found = {(r["style"], r["domain"], r["name"]): (r["calls"], r["total_ns"]) for r in table(report, "nvtx_summary")}
    assert found == {
        ("pushpop", "NCCL", "ncclAllReduce"): (1, 10),
        ("pushpop", None, "step"): (1, 40),
        ("startend", None, "step"): (1, 20),
        ("startend", "NCCL", "step"): (1, 25),
        ("startend", None, "open"): (1, 45),
        ("mark", None, "here"): (1, None),
    }
    assert warnings(report) == ["1 NVTX ranges never ended; nsw lets them end at the last NVTX event"]


def test_gpu_work_is_projected_on_every_range_of_the_stack(nsys_database):
    database = nsys_database()
    database.range(0, 100, "outer")
    database.range(10, 50, "inner")
    database.range(0, 100, "elsewhere", globalTid=GLOBAL_TID + 1)
    database.range(0, 100, "across", kind=60, endGlobalTid=GLOBAL_TID + 1)
    database.call(20, 5, correlationId=1)
    database.call(48, 5, correlationId=2)  # goes on after the inner range
    database.call(200, 5, correlationId=3)
    for correlation, start in ((1, 1000), (1, 3000), (2, 2000), (3, 9000)):
        database.kernel(start, 100, correlationId=correlation)
    database.copy(1500, 10, 1, 5, correlationId=2)
    found = by_name(read(database.done()), "nvtx_gpu_summary")
    assert {n: (r["calls"], r["gpu_ops"], r["gpu_ns"], r["projected_ns"]) for n, r in found.items()} == {
        "outer": (1, 4, 310, 2100),
        "inner": (1, 2, 200, 2100),
    }


def test_unified_memory(nsys_database):
    database = nsys_database()
    database.copy(0, 10, 11, 100)
    database.copy(10, 30, 11, 300)
    database.copy(50, 5, 12, 64)
    for _ in range(3):
        database.add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=1, globalPid=GLOBAL_PID, address=1)
    database.add("CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=1, end=8, globalPid=GLOBAL_PID, numberOfPageFaults=9)
    report = read(database.done())
    found = by_name(report, "um_summary")
    row = found["Host-to-Device"]
    sizes = [row[f"{which}_bytes"] for which in ("total", "avg", "min", "max")]
    assert (row["calls"], sizes, row["total_ns"]) == (2, [400, 200, 100, 300], 40)
    assert found["CPU page faults"]["calls"] == 3
    assert (found["GPU page faults"]["calls"], found["GPU page faults"]["total_ns"]) == (9, 7)
    assert "[CUDA memcpy Unified Host-to-Device]" in by_name(report, "gpu_summary")


def test_openacc_constructs_carry_their_place(nsys_database):
    database = nsys_database()
    place = {"nameId": database.string("Enter Data"), "srcFile": database.string("a.f90"), "lineNo": 12}
    database.add("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=0, end=10, **place)
    database.add("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=0, end=20, **place)
    database.add("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=0, end=70, nameId=database.string("Launch"), lineNo=1)
    found = by_name(read(database.done()), "openacc_summary")
    assert {n: (r["kind"], r["calls"], r["time_pct"]) for n, r in found.items()} == {
        "Launch": ("compute", 1, 70.0),
        "Enter Data@a.f90:12": ("data", 2, 30.0),
    }


def test_openmp_events_by_name_over_all_their_tables(nsys_database):
    database = nsys_database()
    for table_name, name, duration in (
        ("OPENMP_EVENT_KIND_PARALLEL", "Parallel", 60),
        ("OPENMP_EVENT_KIND_PARALLEL", "Parallel", 20),
        ("OPENMP_EVENT_KIND_SYNC_REGION_WAIT", "Barrier", 15),
        ("OPENMP_EVENT_KIND_PARALLEL", "Barrier", 5),
    ):
        database.add(table_name, start=7, end=7 + duration, nameId=database.string(name), globalTid=GLOBAL_TID)
    report = read(database.done())
    assert not report.problems
    found = {n: (r["calls"], r["total_ns"], r["time_pct"]) for n, r in by_name(report, "openmp_summary").items()}
    assert found == {"Parallel": (2, 80.0, 80.0), "Barrier": (2, 20.0, 20.0)}


def test_mpi_calls_that_the_end_of_the_trace_cut_are_left_out_and_said(nsys_database):
    database = nsys_database()
    send = {"globalTid": GLOBAL_TID, "textId": database.string("MPI_Send")}
    database.add("MPI_P2P_EVENTS", start=0, end=5, size=8, **send)
    database.add("MPI_P2P_EVENTS", start=9, end=None, size=32, **send)
    report = read(database.done())
    (row,) = table(report, "communication")
    assert (row["calls"], row["total_ns"], row["total_bytes"]) == (1, 5.0, 8.0)
    assert warnings(report) == ["1 MPI calls had not ended when the trace did; they are left out"]


@pytest.mark.parametrize(
    ("kernel", "operation"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)", "AllReduce"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "SendRecv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "ReduceScatter"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "AllReduce"),
        ("ncclDevKernel_Generic_4(x)", "Generic"),
        ("void reduce_kernel<ncclAllReduce>(int)", None),
        ("mine(ncclDevKernel_AllReduce, ncclKernel_Broadcast)", None),  # what it takes makes it none of NCCL's
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernel_AllReduce)", "Broadcast"),
        ("ncclDevKernelNew(ncclKernel_Broadcast)(ncclKernel_AllReduce)", "other"),
    ],
)
def test_nccl_kernels_are_named_by_their_collective(kernel, operation):
    from nsw.readers.nsys.export.summaries import nccl_operation

    assert nccl_operation(kernel) == operation


def test_communication_of_nccl_and_mpi(nsys_database):
    database = nsys_database()
    database.kernel(0, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)")
    database.kernel(0, 30, "ncclDevKernel_AllReduce_Sum_f16_TREE_LL(x)")
    database.kernel(0, 99, "gemm(int)")
    for size in (8, 16):
        bcast = database.string("MPI_Bcast")
        database.add("MPI_COLLECTIVES_EVENTS", start=0, end=5, globalTid=GLOBAL_TID, textId=bcast, size=size)
    database.add("MPI_P2P_EVENTS", start=0, end=5, globalTid=GLOBAL_TID, textId=database.string("MPI_Recv"), size=8)
    database.add("MPI_RANKS", globalTid=GLOBAL_TID, rank=3)
    found = {(r["library"], r["name"]): r for r in table(read(database.done()), "communication")}
    assert found["nccl", "AllReduce"]["calls"] == 2
    assert found["nccl", "AllReduce"]["med_ns"] == 20
    assert found["nccl", "AllReduce"]["time_pct"] == 100
    assert found["mpi", "MPI_Bcast"]["total_bytes"] == 24
    assert found["mpi", "MPI_Recv"]["total_bytes"] is None
    assert {r["rank"] for r in found.values()} == {3}


def test_facts_describe_the_machine_and_no_environment_variable(nsys_database):
    database = nsys_database()
    for cuda in (1, 0):
        database.add(
            "TARGET_INFO_GPU",
            id=1 - cuda,
            name="NVIDIA H200",
            cuDevice=cuda,
            computeMajor=9,
            computeMinor=0,
            smCount=132,
            clockRate=0,
            totalMemory=150_000_000_000,
            memoryBandwidth=4_800_000_000_000,
        )
    for name, value in (
        ("OsDescription", "Debian 12"),
        ("CpuDescription", "a CPU"),
        ("NvDriverVersion", "580.1"),
        ("CudaDriverVersion", "12040"),
        ("Hostname", "node1"),
        ("DeviceEnvironment", "AWS_SECRET=hunter2"),
    ):
        database.add("TARGET_INFO_SYSTEM_ENV", name=name, value=value)
    database.add("ANALYSIS_DETAILS", duration=12345, startTime=0, stopTime=12345)
    database.kernel(0, 1)
    report = read(database.done())
    found = {r["key"]: r["text"] if r["value"] is None else r["value"] for r in table(report, "facts")}
    assert found["gpu_name"] == "NVIDIA H200"
    assert found["gpu_count"] == 2
    assert found["gpu_compute_capability"] == "9.0"
    assert found["driver_version"] == "580.1"
    assert (found["hostname"], found["os"], found["cpu_name"]) == ("node1", "Debian 12", "a CPU")
    units = {r["key"]: (r["value"], r["unit"]) for r in table(report, "facts")}
    assert units["gpu_sm_count"] == (132, None)
    assert units["gpu_memory_bytes"] == (1.5e11, "byte")
    assert units["gpu_memory_bandwidth_bytes_per_s"] == (4.8e12, "byte/s")
    assert found["cuda_driver_version"] == "12.4"
    assert found["duration_ns"] == 12345
    assert "gpu_clock_hz" not in found  # 0: nsys did not know
    assert "hunter2" not in str(report)


def test_gpus_that_differ_are_described_one_by_one(nsys_database):
    database = nsys_database()
    database.add("TARGET_INFO_GPU", id=0, name="V100", cuDevice=1)
    database.add("TARGET_INFO_GPU", id=1, name="T4", cuDevice=0)
    database.kernel(0, 1)
    found = [(r["device"], r["text"]) for r in table(read(database.done()), "facts") if r["key"] == "gpu_name"]
    assert found == [(1, "V100"), (0, "T4")]


def test_diagnostics_are_warnings_said_once(nsys_database):
    database = nsys_database()
    for index in range(40):
        text = f"Failed to load symbols for VMA 0x7f{index:04x} from 'lib{index}.so'"
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text=text)
    for severity, text in (
        (1, "Profiling has started."),
        (2, "No CUDA events collected. Does the process use CUDA?"),
        (2, "No OpenGL events collected. Does the process use OpenGL?"),
        (3, "Some events (17) were lost."),
    ):
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=severity, text=text)
    report = read(database.done(), Options(frozenset({"facts"})))
    assert errors(report) == []
    assert warnings(report) == [
        (
            "nsys: Failed to load symbols for VMA 0x7f0000 from 'lib0.so' (and 39 like it)"
            " (CPU samples and states only; GPU figures are not affected)"
        ),
        (
            "nsys: No CUDA events collected. Does the process use CUDA? (the report has no CUDA work: the program used"
            " no GPU, or was not traced with --trace=cuda)"
        ),
        "nsys reported an error: Some events (17) were lost.",
    ]
    assert "--trace" in report.problems[1].fix


def test_a_program_that_failed_explains_what_is_missing(nsys_database):
    database = nsys_database()
    for text in ("No CUDA events collected. Does the process use CUDA?",
                 "Not all OS runtime libraries events might have been collected."):  # fmt: skip
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text=text)
    path = database.done()
    assert [bool(problem.fix) for problem in read(path).problems if problem.severity == "warning"] == [True, True]
    printed = (
        "mesh 64 x 64\nAccelerator Fatal Error: Failed to find device function 'k_L7'! File was compiled with: -gpu=cc80\n"
        "Rebuild this file with -gpu=cc75\n File: /a/b.cpp\n"
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("CREATE TABLE ProcessStreams (contentId INTEGER)")
        connection.execute("INSERT INTO StringIds VALUES (99001, ?)", (printed,))
        connection.execute("INSERT INTO ProcessStreams VALUES (99001)")
    report = read(path)
    assert report.failed == (
        "Accelerator Fatal Error: Failed to find device function 'k_L7'! File was compiled with: -gpu=cc80."
        " Rebuild this file with -gpu=cc75"
    )
    assert warnings(report) == [
        "nsys: No CUDA events collected. Does the process use CUDA?",
        "nsys: Not all OS runtime libraries events might have been collected.",
    ]
    assert [problem.fix for problem in report.problems if problem.severity == "warning"] == [None, None]


def screen(path, capsys, *options):
    run(["read", str(path), *options])
    return capsys.readouterr().out


NOTES = (
    "perf event paranoid level is 2.", "No NVTX events collected. Does the process use NVTX?",
    "Failed to load symbols for VMA 0x7f from 'libk.so'",
)  # fmt: skip


def test_what_the_answer_does_not_show_is_counted_beside_it(nsys_database, capsys):
    database = nsys_database()
    database.kernel(0, 1000)
    for text in (*NOTES, "Some other trouble."):
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text=text)
    path = database.done()
    out = screen(path, capsys)
    assert "`--full` prints all tables, and 3 notes of nsys" in out
    assert [line for line in out.splitlines() if line.startswith("warning")] == [
        f"warning: {path}: nsys: Some other trouble."
    ]
    full = screen(path, capsys, "--full").replace("\n", " ")
    assert all(text.partition(" ")[0] in full for text in NOTES)


def test_a_program_that_failed_before_gpu_work_has_no_share_of_system_calls(nsys_database, capsys):
    database = nsys_database()
    database.add("OSRT_API", start=0, end=9000, eventClass=1, globalTid=GLOBAL_TID, nameId=database.string("ioctl"))
    database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text="No CUDA events collected.")
    path = database.done()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE ProcessStreams (contentId INTEGER)")
        connection.execute("INSERT INTO StringIds VALUES (99001, 'CUDA error: no device')")
        connection.execute("INSERT INTO ProcessStreams VALUES (99001)")
    out = screen(path, capsys)
    assert out.splitlines()[0].endswith(": the program failed before any GPU work")
    assert "ioctl" not in out
    assert "warning" not in out


DRIVER = "Installed CUDA driver version (13.0) is not supported by this build of Nsight Systems."
PAYLOAD = "NVTX payload extension is incompatible. Provided compatibility ID 260 != 259."


def levels(database, **options):
    for text in (DRIVER, PAYLOAD):
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text=text)
    problems = read(database.done(), Options(**options)).problems
    return [next(p.level for p in problems if text in p.message) for text in (DRIVER, PAYLOAD)]


def test_a_note_is_a_warning_where_it_explains_what_is_missing(nsys_database):
    whole = nsys_database()
    whole.kernel(0, 1000)
    assert levels(whole) == ["aside", "aside"]
    without_kernels = nsys_database()
    without_kernels.call(0, 10)
    assert levels(without_kernels) == ["warning", "aside"]
    for steps, level in (("epoch", "aside"), ("step", "warning")):
        ranges = nsys_database()
        for start in range(0, 40_000, 2000):
            ranges.range(start, start + 1900, "epoch")
            ranges.call(start, 10, correlationId=start)
            ranges.kernel(start + 20, 1000, correlationId=start)
        assert levels(ranges, steps=steps) == ["aside", level]


def test_that_a_process_did_no_gpu_work_is_no_warning_where_another_did(nsys_database):
    """nsys says it of a launcher and of a compiler that the program starts (torchrun, Triton) too."""
    database = nsys_database()
    database.kernel(0, 1)
    for text in ("No CUDA events collected. Does the process use CUDA?", "No NVTX events collected. Does the process use NVTX?",
                 "CUDA profiling might have not been started correctly."):  # fmt: skip
        database.add("DIAGNOSTIC_EVENT", timestamp=0, source=1, severity=2, text=text)
    (said,) = warnings(read(database.done()))
    assert said.startswith("nsys: No NVTX events collected")


def test_traces_only_when_asked_for(typical_database):
    path = typical_database()
    assert not read(path).tables.keys() & {"gpu_trace", "api_trace"}
    report = read(path, Options(frozenset({"gpu_trace", "api_trace"})))
    assert report.tables.keys() == {"gpu_trace", "api_trace"}
    gpu, api = table(report, "gpu_trace"), table(report, "api_trace")
    assert [r["start_ns"] for r in gpu] == sorted(r["start_ns"] for r in gpu)
    assert len(gpu) == 60 + 12 + 1
    first = gpu[0]
    assert (first["kind"], first["name"], first["grid_x"], first["block_x"]) == ("kernel", "void k0<float>(int)", 2, 32)
    assert (first["pid"], first["device"], first["grid_y"]) == (PID, 0, None)
    copy = next(r for r in gpu if r["kind"] == "memcpy")
    assert copy["bytes_per_s"] == pytest.approx(copy["bytes"] / copy["duration_ns"] * 1e9)
    assert (api[0]["name"], api[0]["pid"], api[0]["tid"]) == ("cudaLaunchKernel", PID, TID)
    summary = {r["name"]: r["total_ns"] for r in table(read(path), "gpu_summary")}
    for name, total in summary.items():
        assert sum(r["duration_ns"] for r in gpu if r["name"] == name) == total


def test_only_the_tables_that_are_asked_for_are_made(typical_database):
    report = read(typical_database(), Options(frozenset({"api_summary"})))
    assert list(report.tables) == ["api_summary"]


def test_rows_have_the_columns_of_the_schema(typical_database):
    report = read(typical_database())
    for name, data in report.tables.items():
        assert to_arrow(name, data).num_rows == len(data)


@pytest.mark.parametrize("at_once", [1, 7, 60])
def test_how_many_rows_are_read_at_a_time_changes_nothing(typical_database, monkeypatch, at_once):
    path = typical_database()
    trace = Options(frozenset({"gpu_trace", "api_trace"}))
    whole, traced = read(path), read(path, trace)
    monkeypatch.setattr(nsys_sqlite, "_BATCH", at_once)
    for wanted, again in ((whole, read(path)), (traced, read(path, trace))):
        assert not again.problems
        assert {n: table(again, n) for n in again.tables} == {n: table(wanted, n) for n in wanted.tables}


def test_late_text_after_many_rows_without_is_read(nsys_database):
    database = nsys_database()
    name = database.string("registered")
    for index in range(70_000):
        database.range(index, index + 1, None, textId=name)
    database.range(5, 9, "late")
    found = by_name(read(database.done()), "nvtx_summary")
    assert (found["registered"]["calls"], found["late"]["calls"]) == (70_000, 1)


def test_a_read_only_folder_stays_as_it_is(typical_database):
    path = typical_database()
    path.chmod(0o444)
    path.parent.chmod(0o555)
    before = sorted(path.parent.iterdir())
    try:
        assert not read(path).problems
        assert sorted(path.parent.iterdir()) == before
    finally:
        path.parent.chmod(0o755)


def test_a_name_with_signs_of_a_uri_is_opened(typical_database):
    path = typical_database()
    odd = path.rename(path.with_name("50%25 a?b#c&d é.sqlite"))
    assert "gpu_summary" in read(odd).tables


def test_a_database_in_wal_mode_is_read_without_side_files(typical_database):
    path = typical_database()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=wal")
    connection.close()
    assert "gpu_summary" in read(path).tables
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


def test_a_writer_at_work_is_warned_of(typical_database):
    path = typical_database()
    Path(f"{path}-journal").write_bytes(b"x")
    (warning,) = warnings(read(path))
    assert "-journal" in warning


def test_a_file_that_changes_meanwhile_gives_nothing(typical_database, monkeypatch):

    path = typical_database()

    def appending(*args, **kwargs):
        with path.open("ab") as file:
            file.write(b"more")
        original(*args, **kwargs)

    original = nsys_sqlite.fill_report
    monkeypatch.setattr(nsys_sqlite, "fill_report", appending)
    report = read(path)
    assert not report.tables
    assert "changed while it was read" in errors(report)[0]


def test_other_databases_are_left_to_others(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end)")
        connection.execute("CREATE TABLE StringTable (_id_, value)")
    connection.close()
    assert sniff(Sample(path)) == 0


def test_a_view_in_place_of_a_table_is_not_run(nsys_database):
    database = nsys_database()
    database.call(0, 5)
    database.sql(
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS"
        " WITH RECURSIVE c(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM c)"
        " SELECT start, start AS end, start AS demangledName FROM c"
    )
    report = read(database.done())
    assert "gpu_summary" not in report.tables
    assert "api_summary" in report.tables
