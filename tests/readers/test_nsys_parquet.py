"""A folder of Parquet files gives what the database gives."""

from __future__ import annotations

import sqlite3

import pytest

from nsw.readers import read
from nsw.tables import full_rows


@pytest.fixture(params=["parquet", "arrow"])
def folder(typical_database, tmp_path, request):
    """The typical database as nsys's parquetdir or arrowdir: unsigned ids, and its path beside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    database = typical_database()
    out = tmp_path / "report_pqtdir"
    out.mkdir()

    def write(table, name):
        if request.param == "parquet":
            pq.write_table(table, out / f"{name}.parquet")
            return
        with pa.OSFile(str(out / f"{name}.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)

    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE TARGET_INFO_CUDA_CONTEXT_INFO (processId INTEGER, deviceId INTEGER)")
    connection.execute("INSERT INTO TARGET_INFO_CUDA_CONTEXT_INFO VALUES (77, 0), (77, 5)")
    connection.commit()
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [d[0] for d in cursor.description]
        columns = list(zip(*cursor.fetchall(), strict=True))
        arrays = [
            pa.array(c, pa.uint64() if n.startswith("global") else None) for n, c in zip(names, columns, strict=True)
        ]
        arrays = [a.cast(pa.int64()) if pa.types.is_null(a.type) else a for a in arrays]
        write(pa.table(dict(zip(names, arrays, strict=True))), table)
    connection.close()
    write(pa.table({"utcTime": ["2026-01-01T00:00:00"]}), "TARGET_INFO_SESSION_START_TIME")
    return out, database


def test_parquet_and_database_give_the_same_tables(folder):
    out, database = folder
    got, want = read(out), read(database)
    assert not got.problems
    assert got.format == "nsys-parquet"
    for name in ("gpu_summary", "api_summary", "nvtx_summary", "nvtx_gpu_summary", "phases", "process_gpus"):
        assert list(full_rows(name, got.tables[name])) == list(full_rows(name, want.tables[name]))
    assert [(row["device"], row["works"]) for row in got.tables["process_gpus"]] == [(0, True), (5, False)]


def test_a_list_of_contexts_that_cannot_be_read_spoils_nothing_else(folder):
    out, database = folder
    (contexts,) = out.glob("TARGET_INFO_CUDA_CONTEXT_INFO.*")
    contexts.write_bytes(contexts.read_bytes()[:-50])
    got = read(out)
    assert any(p.severity == "error" and "TARGET_INFO_CUDA_CONTEXT_INFO" in p.message for p in got.problems)
    assert list(got.tables["gpu_summary"]) == list(read(database).tables["gpu_summary"])
    assert [row["device"] for row in got.tables["process_gpus"]] == [0]


def test_a_damaged_file_of_the_folder_spoils_its_table_only(folder):
    out, _ = folder
    (kernels,) = out.glob("CUPTI_ACTIVITY_KIND_KERNEL.*")
    kernels.write_bytes(kernels.read_bytes()[:-50])
    got = read(out)
    assert "api_summary" in got.tables
    assert any(p.severity == "error" and "CUPTI_ACTIVITY_KIND_KERNEL" in p.message for p in got.problems)
    assert all(r["kind"] != "kernel" for r in full_rows("gpu_summary", got.tables.get("gpu_summary", [])))


def test_damaged_pages_of_a_file_spoil_its_table_only(folder):
    out, _ = folder
    (kernels,) = out.glob("CUPTI_ACTIVITY_KIND_KERNEL.*")
    data = bytearray(kernels.read_bytes())
    data[4:200] = bytes(196)
    kernels.write_bytes(data)
    got = read(out)
    assert "api_summary" in got.tables
    assert any(p.severity == "error" for p in got.problems)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"data":["[Unknown]","[kernel.kallsyms]"]}', "JSON"),
        (b'data: "[Unknown]"\ndata: "x"\n', "text"),
        (b'{\n    "VmSystemInformation": []}', "info"),
        (b"\x89HDF\r\n\x1a\n" + bytes(900) + b"StringIds", "HDF5"),
        (b"\xff\xff\xff\xff" + bytes(99) + b"table_desc" + bytes(99) + b"StringIds", "Arrow"),
    ],
)
def test_other_exports_of_nsys_are_named_with_the_one_that_is_read(content, what, tmp_path):
    path = tmp_path / "report.out"
    path.write_bytes(content)
    (problem,) = read(path).problems
    assert problem.message == f"an export of nsys as {what}, which is not read"
    assert "--type sqlite" in problem.fix


def test_another_folder_is_no_report(tmp_path):
    (report,) = [read(tmp_path)]
    assert report.problems[0].message == "no known report format"
