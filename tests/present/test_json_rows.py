"""Large tables written as JSON by columns are the same data as row by row."""

import io
import json
import random
import sys

import pyarrow as pa
import pytest

from nsw.present import emit
from nsw.present import emit as by_columns
from nsw.present.untrusted_text import as_json
from nsw.tables import full_rows

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
    expected = json.loads("[" + ", ".join(as_json(row) for row in full_rows("metrics", table)) + "]")
    text = b"".join(by_columns.json_rows("metrics", table)).decode()
    found = json.loads(f"[{text}]")
    assert found == expected
    assert [type(row["value"]) for row in found] == [type(row["value"]) for row in expected]
    assert list(found[0]) == list(expected[0])
    assert "\u202e" not in text


def test_a_table_without_rows_is_no_text():
    assert b"".join(by_columns.json_rows("metrics", pa.table({"value": pa.array([], pa.float64())}))) == b""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_long_texts_keep_their_place_and_stdouts_encoding(monkeypatch, encoding):
    under = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(under, encoding))
    sys.stdout.write("[")
    emit.write_utf8(memoryview('"é"'.encode()))
    sys.stdout.write("]")
    sys.stdout.flush()
    assert under.getvalue().decode(encoding) == '["é"]'


def test_columns_that_repeat_in_many_ways_keep_their_rows():
    rng = random.Random(5)
    count = 20_000  # more than two batches, so that their order shows
    table = pa.table({
        "launch_id": pa.array([i // 40 for i in range(count)], pa.int64()),
        "kernel": pa.array(rng.choices(WORDS, k=count), pa.string()).dictionary_encode(),
        "section": pa.array([str(i % 7) for i in range(count)], pa.string()),
        "metric": pa.array([f"m{i}" for i in range(count)], pa.string()).dictionary_encode(),
        "value": pa.array([float(i % 5) for i in range(count)], pa.float64()),
    })  # fmt: skip
    text = b"".join(by_columns.json_rows("metrics", table)).decode()
    assert json.loads(f"[{text}]") == list(full_rows("metrics", table))
