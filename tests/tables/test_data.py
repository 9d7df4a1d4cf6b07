"""Tables of rows and of columns give the same rows, with every column of the schema."""

import math

import pytest

from nsw.tables import full_rows, parquet_tables, row_count, to_arrow

MADE = [
    {"name": "k", "calls": 3, "total_ns": 90.0, "device": 1},
    {"name": "m", "calls": None, "total_ns": math.nan, "avg_ns": math.inf},
    {"name": "z", "calls": 0, "total_ns": 0.0},
]


@pytest.mark.parametrize("at_once", [1, 2, 65536])
def test_columns_give_the_rows_that_they_were_made_of(monkeypatch, at_once):
    monkeypatch.setattr(parquet_tables, "_ROWS_AT_A_TIME", at_once)
    plain = list(full_rows("gpu_summary", MADE))
    assert [(r["name"], r["calls"], r["total_ns"], r["avg_ns"], r["device"]) for r in plain] == [
        ("k", 3, 90.0, None, 1),
        ("m", None, None, None, None),
        ("z", 0, 0.0, None, None),
    ]
    assert list(full_rows("gpu_summary", to_arrow("gpu_summary", MADE))) == plain
    assert [row_count(one) for one in (MADE, to_arrow("gpu_summary", MADE))] == [3, 3]


def test_a_column_that_the_schema_lacks_is_a_readers_fault():
    with pytest.raises(KeyError, match="totalns"):
        to_arrow("gpu_summary", [{"name": "k", "totalns": 1.0}])
