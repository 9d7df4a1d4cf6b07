"""A folder of Parquet files gives what the database gives."""

from __future__ import annotations

import sqlite3

import pytest

from nsw.readers import read
from nsw.tables import rows


@pytest.fixture
def folder(typical_database, tmp_path):
    """The typical database as nsys's parquetdir: unsigned ids, and its path beside it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    database = typical_database()
    out = tmp_path / "report_pqtdir"
    out.mkdir()
    connection = sqlite3.connect(database)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        cursor = connection.execute(f"SELECT * FROM {table}")
        names = [d[0] for d in cursor.description]
        columns = list(zip(*cursor.fetchall(), strict=True))
        arrays = [
            pa.array(c, pa.uint64() if n.startswith("global") else None) for n, c in zip(names, columns, strict=True)
        ]
        arrays = [a.cast(pa.int64()) if pa.types.is_null(a.type) else a for a in arrays]
        pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), out / f"{table}.parquet")
    connection.close()
    pq.write_table(pa.table({"utcTime": ["2026-01-01T00:00:00"]}), out / "TARGET_INFO_SESSION_START_TIME.parquet")
    return out, database


def test_parquet_and_database_give_the_same_tables(folder):
    out, database = folder
    got, want = read(out), read(database)
    assert not got.problems
    assert got.format == "nsys-parquet"
    for name in ("gpu_summary", "api_summary", "nvtx_summary", "nvtx_gpu_summary"):
        assert list(rows(name, got.tables[name])) == list(rows(name, want.tables[name]))


def test_a_damaged_file_of_the_folder_spoils_its_table_only(folder):
    out, _ = folder
    kernels = out / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    kernels.write_bytes(kernels.read_bytes()[:-50])
    got = read(out)
    assert "api_summary" in got.tables
    assert any(p.severity == "error" and "CUPTI_ACTIVITY_KIND_KERNEL" in p.message for p in got.problems)
    assert all(r["kind"] != "kernel" for r in rows("gpu_summary", got.tables.get("gpu_summary", [])))


def test_damaged_pages_of_a_file_spoil_its_table_only(folder):
    out, _ = folder
    kernels = out / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    data = bytearray(kernels.read_bytes())
    data[4:200] = bytes(196)
    kernels.write_bytes(data)
    got = read(out)
    assert "api_summary" in got.tables
    assert any(p.severity == "error" for p in got.problems)


def test_another_folder_is_no_report(tmp_path):
    (report,) = [read(tmp_path)]
    assert report.problems[0].message == "no known report format"
