"""Rows of a large stored table, made when they are looked at: the same as those that are made at once."""

import io
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nsw.tables import parquet_tables, to_arrow
from nsw.tables.parquet_tables import StoredRows, StoredTableError, read_rows_lazily, read_stored_rows


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Four rows are many, and two of a run."""
    monkeypatch.setattr(parquet_tables, "_MANY", 4)
    monkeypatch.setattr(parquet_tables, "_MANY_OF_A_RUN", 2)


@pytest.fixture
def file():
    """A table whose runs take turns, with a column without values and texts that come again."""
    rows = [{"run": run, "report": "a", "name": f"k{at % 3}", "total_ns": float(at), "calls": None if at % 2 else at}
            for at, run in enumerate(["r2", "r1", "r2", "r1", "r1", "r3"])]  # fmt: skip
    out = io.BytesIO()
    pq.write_table(to_arrow("gpu_summary", rows), out, row_group_size=2)
    out.seek(0)
    return out


def test_rows_are_the_same_run_by_run(file):
    at_once, lazily = read_stored_rows(file, "gpu_summary"), read_rows_lazily(file, "gpu_summary")
    assert isinstance(lazily, StoredRows)
    assert list(lazily.by_run) == ["r2", "r1", "r3"]
    for run, rows in lazily.by_run.items():
        assert rows == [row for row in at_once if row["run"] == run]
    assert sorted(lazily, key=lambda row: row["total_ns"]) == at_once
    assert (len(lazily), len(lazily.by_run), "r3" in lazily.by_run, "r4" in lazily.by_run) == (6, 3, True, False)
    assert (lazily[0]["run"], lazily[-1]["run"], len(lazily[1:3])) == ("r2", "r3", 2)


def test_texts_of_each_row_group_are_its_own_and_a_run_has_columns_and_chosen_rows():
    rows = [{"run": f"r{at // 3}", "report": f"{at // 2}", "name": f"k{at}"} for at in range(6)]
    out = io.BytesIO()
    pq.write_table(to_arrow("gpu_summary", rows), out, row_group_size=2)
    lazily = read_rows_lazily(out, "gpu_summary").by_run
    assert [row["name"] for run in lazily for row in lazily[run]] == [f"k{at}" for at in range(6)]
    assert [*lazily.columns("r0").rows("report", "name", "rank")] == [
        ("0", "k0", None),
        ("0", "k1", None),
        ("1", "k2", None),
    ]
    assert lazily.rows_at("r1", [0, 2]) == [lazily["r1"][0], lazily["r1"][2]]
    assert lazily.rows_at("r1", []) == []


def test_they_can_come_from_another_process(file):
    lazily = read_rows_lazily(file, "gpu_summary")
    assert list(pickle.loads(pickle.dumps(lazily))) == list(lazily)


def test_a_small_table_or_one_with_few_rows_of_a_run_is_a_list_and_another_one_is_refused(file, monkeypatch):
    out = io.BytesIO()
    pq.write_table(pa.table({"report": ["a"] * 9}), out)
    with pytest.raises(StoredTableError, match="no column run"):
        read_rows_lazily(out, "gpu_summary")
    for limit, value in (("_MANY_OF_A_RUN", 3), ("_MANY", 7)):
        monkeypatch.setattr(parquet_tables, limit, value)
        assert isinstance(read_rows_lazily(file, "gpu_summary"), list)
