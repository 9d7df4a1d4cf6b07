"""Large tables written as JSON by columns are the same data as row by row."""

import json
import random

import pyarrow as pa
import pytest

from nsw.present import json_rows as by_columns
from nsw.present.text_of_others import as_json
from nsw.tables import rows

WORDS = ["k<int>(int *)", 'say "no"', "line\nend", "hid\u200bden", "\u202eturned", "é", "", None]


@pytest.mark.parametrize("batch", [7, 65536])
def test_the_same_as_row_by_row(monkeypatch, batch):
    monkeypatch.setattr(by_columns, "_BATCH", batch)
    rng = random.Random(3)
    values = [rng.uniform(-1, 1) * 10 ** rng.randint(-300, 300) for _ in range(300)]
    values += [0.0, -0.0, 1e15, 1e16, 5e-324, 39480000000.0, float("nan"), float("inf"), None]
    count = len(values)
    table = pa.table({
        "value": pa.array(values, pa.float64()),
        "metric": pa.array(rng.choices(WORDS, k=count), pa.string()).dictionary_encode(),
        "kernel": pa.array(rng.choices(WORDS, k=count), pa.string()),
        "launch_id": pa.array([None if i % 9 == 0 else i for i in range(count)], pa.int64()),
        "unit": pa.array(["us"] * count).dictionary_encode(),
        "section": pa.nulls(count, pa.string()),
    })  # fmt: skip
    expected = json.loads("[" + ", ".join(as_json(row) for row in rows("metrics", table)) + "]")
    text = "".join(by_columns.json_rows("metrics", table))
    found = json.loads(f"[{text}]")
    assert found == expected
    assert [type(row["value"]) for row in found] == [type(row["value"]) for row in expected]
    assert list(found[0]) == list(expected[0])
    assert "\u202e" not in text


def test_a_table_without_rows_is_no_text():
    assert "".join(by_columns.json_rows("metrics", pa.table({"value": pa.array([], pa.float64())}))) == ""
