"""Exports of other versions of nsys: columns and tables that came, went, or changed place."""

import os
import sqlite3

import pytest

from nsw.readers import Options, read
from nsw.tables import TABLES, full_rows

ALL = Options(frozenset(TABLES))
INTEGER = "INTEGER"
TEXT = "TEXT NOT NULL DEFAULT ''"
# What exports of 2026.4 (schema 3.28) have and the plain tables of the fixture have not.
ADDED = {
    "CUPTI_ACTIVITY_KIND_KERNEL": dict.fromkeys(
        [
            "qmdBulkReleaseDone", "qmdPreexitDone", "qmdLastCtaDone", "graphId", "clusterX", "clusterY", "clusterZ",
            "clusterSchedulingPolicy", "maxPotentialClusterSize", "maxActiveClusters", "sharedMemoryRequestedPercentage",
        ], INTEGER) | {"tensorSizeMinusOneElements": TEXT},
    "CUPTI_ACTIVITY_KIND_MEMCPY": dict.fromkeys(
        ["greenContextId", "deprecatedSrcId", "srcDeviceId", "dstDeviceId", "migrationCause", "virtualAddress", "copyCount"],
        INTEGER),
    "CUPTI_ACTIVITY_KIND_MEMSET": dict.fromkeys(["greenContextId", "graphNodeId"], INTEGER),
    "NVTX_EVENTS": dict.fromkeys(
        ["category", "color", "uint64Value", "int64Value", "uint32Value", "int32Value", "jsonTextId", "eventId"], INTEGER)
    | {"doubleValue": "REAL", "floatValue": "REAL", "jsonText": "TEXT", "binaryData": "TEXT"},
    "MPI_P2P_EVENTS": dict.fromkeys(["commHandle", "commUid", "requestHandle"], INTEGER),
    "MPI_COLLECTIVES_EVENTS": dict.fromkeys(["commHandle", "commUid", "rootRank", "requestHandle"], INTEGER),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": dict.fromkeys(["CpuInstruction", "module", "sourceFile", "sourceLine"], INTEGER),
    "OSRT_API": dict.fromkeys(["nestingLevel", "callchainId"], INTEGER),
    "TARGET_INFO_GPU": dict.fromkeys(["vmId", "numaNodeId", "smMajor"], INTEGER) | {"luid": "TEXT", "uuid": "TEXT"},
}  # fmt: skip
NEW_TABLES = [
    "CREATE TABLE NVTXT_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, sourceId INTEGER)",
    "CREATE TABLE CUDA_HOST_CALLBACK (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)",
    "CREATE TABLE CUDA_GRAPH_NODE_EVENTS (start INTEGER, end INTEGER, graphNodeId INTEGER, originalGraphNodeId INTEGER)",
    "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH (start INTEGER, end INTEGER, graphId INTEGER)",
    "CREATE TABLE CUPTI_ACTIVITY_KIND_WARP_TRACE (start INTEGER, end INTEGER, WarpID INTEGER)",
    "CREATE TABLE NVTX_PAYLOAD_SCHEMAS (domainId INTEGER, schemaId INTEGER, name TEXT)",
    'CREATE TABLE "DYNAMIC_NVTXPAYLOAD_DATATYPE_281755105902905_1_16" (eventId INTEGER, "size" INTEGER)',
    "CREATE TABLE UCP_SUBMIT_EVENTS (start INTEGER, end INTEGER, textId INTEGER, packedSize INTEGER)",
]


def everything(path):
    report = read(path, ALL)
    found = {name: [dict(row) for row in full_rows(name, data)] for name, data in report.tables.items()}
    for name, data in found.items():
        if name != "facts":
            data.sort(key=repr)
    return found, report


@pytest.fixture
def whole(nsys_database):
    """A database with a row or more in every table that nsw reads."""
    from itertools import count

    database = nsys_database("2025")
    tid, name = 78 | (77 << 24) | (1 << 56), database.string
    ids = count(1)
    for n in range(6):
        database.call(1000 * n, 90, correlationId=n)
        database.kernel(1000 * n + 300, 40 + n, f"void k{n % 2}<int>(int)", correlationId=n)
    database.kernel(9000, 10, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", correlationId=99)
    database.copy(20_000, 70, 1, 4096, correlationId=next(ids) + 200, srcKind=1, dstKind=2)
    database.copy(20_500, 75, 11, 8192, correlationId=next(ids) + 200)
    database.memset(21_000, 5, 64, correlationId=next(ids) + 200, memKind=2)
    database.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=30_000, end=30_500, deviceId=0, globalPid=tid, graphId=4,
                 graphExecId=5, correlationId=400)  # fmt: skip
    database.range(0, 3500, "step")
    for n in range(4):
        database.range(1000 * n + 3600, 1000 * n + 4500, None, textId=name("iteration"))
        database.call(1000 * n + 3700, 90, correlationId=50 + n)
        database.kernel(1000 * n + 3800, 600, "void k0<int>(int)", correlationId=50 + n)
    database.range(900, 2000, None, textId=name("inner"), domainId=1)
    database.range(5, None, "dom", kind=75, domainId=1)
    database.range(100, 700, "other", kind=60)
    database.range(50, None, "mark", kind=34)
    for table in ("OSRT_API", "OPENMP_EVENT_KIND_PARALLEL"):
        database.add(table, start=5, end=25, globalTid=tid, nameId=name("poll"))
    database.add("CUPTI_ACTIVITY_KIND_OPENACC_DATA", start=5, end=25, globalTid=tid, nameId=name("Enter Data"), lineNo=7,
                 srcFile=name("a.f90"))  # fmt: skip
    database.add(
        "MPI_P2P_EVENTS", start=10, end=40, globalTid=tid, textId=name("MPI_Send"), size=800, tag=1, remoteRank=2
    )
    database.add(
        "MPI_COLLECTIVES_EVENTS", start=50, end=90, globalTid=tid, textId=name("MPI_Bcast"), size=64, recvSize=8
    )
    database.add("MPI_RANKS", globalTid=tid, rank=3)
    database.add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=4, globalPid=tid, address=4096)
    database.add(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=4, end=9, globalPid=tid, deviceId=0, address=1, numberOfPageFaults=3
    )
    database.add("TARGET_INFO_GPU", id=0, name="NVIDIA H200", cuDevice=0, computeMajor=9, computeMinor=0, smCount=132)
    database.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")
    database.add("ANALYSIS_DETAILS", duration=10**9, startTime=0, stopTime=10**9)
    database.add("DIAGNOSTIC_EVENT", timestamp=0, severity=2, text="Not all CUDA events might have been collected.")
    return database.done()


def columns_of(path):
    with sqlite3.connect(path) as connection:
        tables = [t for (t,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {t: [r[1] for r in connection.execute(f'PRAGMA table_info("{t}")')] for t in tables}
    connection.close()
    return found


def alter(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_the_fixture_fills_every_table_that_an_export_can_fill(whole):
    found, report = everything(whole)
    assert not [p for p in report.problems if p.severity == "error"]
    assert found.keys() == {
        "gpu_summary", "gpu_trace", "api_summary", "api_trace", "osrt_summary", "um_summary", "nvtx_summary",
        "nvtx_gpu_summary", "openacc_summary", "openmp_summary", "communication", "facts", "phases", "phase_summary",
        "iterations", "iteration_trace", "nvtx_trace", "process_gpus", "gaps", "gpu_use",
    }  # fmt: skip


def test_columns_and_tables_of_2026_change_nothing(whole):
    before, _ = everything(whole)
    present = columns_of(whole)
    adds = [
        f'ALTER TABLE {table} ADD COLUMN "{name}" {kind}'
        for table, columns in ADDED.items()
        for name, kind in columns.items()
        if name not in present[table]
    ]
    assert len(adds) > 40
    alter(whole, *adds, *NEW_TABLES)
    assert everything(whole)[0] == before


def test_another_order_of_columns_changes_nothing(whole):
    before, _ = everything(whole)
    for table, columns in columns_of(whole).items():
        names = ", ".join(f'"{c}"' for c in reversed(columns))
        alter(
            whole,
            f"CREATE TABLE t_ AS SELECT {names} FROM {table}",
            f"DROP TABLE {table}",
            f"ALTER TABLE t_ RENAME TO {table}",
        )
    alter(whole, "VACUUM")
    got, _ = everything(whole)
    assert got == before


PHASES = (
    "phases", "phase_summary", "iterations", "iteration_trace", "process_gpus", "gaps", "host_copies", "gpu_use",
    "collectives",
)  # fmt: skip
LEADS_TO_PHASES = (
    "correlationId",
    "globalPid",
    "globalTid",
    "deviceId",
    "domainId",
    "text",
    "textId",
    "value",
    "nameId",
)
EVERY = 1 if os.environ.get("NSW_EXPLORE") else 5  # of the columns, taken away one at a time


def test_a_column_that_is_missing_never_changes_another_number(whole, tmp_path):
    """What needs it is absent or refused; what is still there is as it was."""
    before, _ = everything(whole)
    several = [(t, c) for t, columns in columns_of(whole).items() for c in columns if len(columns) > 1]
    several.remove(("StringIds", "id"))  # a primary key cannot be dropped
    for table, column in several[::EVERY]:
        got, _ = everything(_without(whole, tmp_path, table, column))
        for name, data in got.items():
            if name in PHASES and column in LEADS_TO_PHASES:
                continue
            _unchanged(name, data, before[name], f"{table} without {column}")


def _without(whole, folder, table, column):
    path = folder / f"{table}-{column}.sqlite"
    path.write_bytes(whole.read_bytes())
    alter(path, f'ALTER TABLE {table} DROP COLUMN "{column}"')
    return path


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("CUPTI_ACTIVITY_KIND_KERNEL", "start"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId"),
        ("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind"),
        ("CUPTI_ACTIVITY_KIND_MEMSET", "bytes"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"),
        ("CUPTI_ACTIVITY_KIND_OPENACC_DATA", "end"),
        ("NVTX_EVENTS", "eventType"),
        ("OSRT_API", "nameId"),
        ("OPENMP_EVENT_KIND_PARALLEL", "start"),
        ("MPI_P2P_EVENTS", "textId"),
        ("CUDA_UM_GPU_PAGE_FAULT_EVENTS", "numberOfPageFaults"),
        ("StringIds", "value"),
    ],
)
def test_a_table_that_cannot_be_read_without_a_column_is_named(table, column, whole, tmp_path):
    _, report = everything(_without(whole, tmp_path, table, column))
    assert any(
        p.severity == "error" and f"{table} has no column {column}" in p.message and p.fix for p in report.problems
    )


def test_an_empty_table_of_another_shape_is_no_fault(whole):
    alter(whole, "CREATE TABLE OPENMP_EVENT_KIND_MUTEX_WAIT (id INTEGER)")
    assert not [p for p in everything(whole)[1].problems if p.severity == "error"]


NAMES = ("name", "kind", "style", "domain", "library", "key", "short_name", "mangled_name", "successor")
# follow from which rows there are, and from the names of things
RELATIVE = {"time_pct", "text", "device_name", "host", "rank", "pid", "device"}


def _unchanged(name, data, original, what):
    if name in ("gpu_trace", "api_trace"):
        known = {(r["start_ns"], r["duration_ns"]) for r in original}
        assert {(r["start_ns"], r["duration_ns"]) for r in data} <= known, (what, name)
        return
    by_figures = {}
    for row in original:
        by_figures.setdefault(_key(row), []).append(row)
    for row in data:
        if _key(row) not in by_figures:
            unnamed = [r for r in original if _figures(r) == _figures(row)]
            assert unnamed, (what, name, row)  # its name may be gone, its figures not
            continue
        assert any(_agree(row, other) for other in by_figures[_key(row)]), (what, name, row)


def _key(row):
    return tuple(row.get(k) for k in ("name", "kind", "style", "domain", "library", "key"))


def _figures(row):
    return {k: v for k, v in row.items() if k not in NAMES and k not in RELATIVE}


def _agree(row, other):
    return all(v is None or other[k] == v for k, v in row.items() if k not in RELATIVE)


def test_mpi_calls_that_nsys_recorded_as_ranges_until_2022(nsys_database):
    database = nsys_database("2022")
    tid = 78 | (77 << 24) | (1 << 56)
    database.range(1, None, "MPI", kind=75, domainId=1)
    database.range(2, None, "MPI Rank 5", kind=39)
    for n in range(4):
        database.range(
            100 * n, 100 * n + 30 + n, None, textId=database.string("MPI_Allreduce"), domainId=1, globalTid=tid
        )
    database.range(1000, 1500, "MPI_own", globalTid=tid)
    report = read(database.done())
    (row,) = full_rows("communication", report.tables["communication"])
    assert [row[k] for k in ("library", "name", "calls", "total_ns", "med_ns", "rank", "total_bytes", "time_pct")] == [
        "mpi", "MPI_Allreduce", 4, 126.0, 31.5, 5, None, 100.0,
    ]  # fmt: skip
    assert {r["name"] for r in full_rows("nvtx_summary", report.tables["nvtx_summary"])} == {"MPI_Allreduce", "MPI_own"}


def test_mpi_calls_with_tables_of_their_own_are_not_counted_twice(nsys_database):
    database = nsys_database("2023")
    database.range(1, None, "MPI", kind=75, domainId=1)
    database.range(0, 30, "MPI_Send", domainId=1)
    database.add("MPI_P2P_EVENTS", start=0, end=30, globalTid=1, textId=database.string("MPI_Send"), size=8)
    (row,) = full_rows("communication", read(database.done()).tables["communication"])
    assert (row["calls"], row["total_bytes"]) == (1, 8.0)


def test_threads_of_several_ranks_have_none_in_common(nsys_database):
    database = nsys_database("2022")
    database.range(1, None, "MPI", kind=75, domainId=1)
    for rank in (0, 1):
        database.range(2, None, f"MPI Rank {rank}", kind=39)
    database.range(0, 30, "MPI_Send", domainId=1)
    (row,) = full_rows("communication", read(database.done()).tables["communication"])
    assert row["rank"] is None


def test_work_of_an_engine_that_gpu_summary_has_no_kind_for_is_said(nsys_database):
    database = nsys_database("2026")
    database.kernel(0, 10)
    database.sql("CREATE TABLE CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS (start INTEGER, end INTEGER, sourceBytes INTEGER)")
    database.sql("INSERT INTO CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS VALUES (5, 9, 4096), (10, 12, 4096)")
    report = read(database.done())
    assert any(p.message.startswith("2 decompressions") for p in report.problems)
