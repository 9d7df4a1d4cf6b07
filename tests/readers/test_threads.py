"""Readers and writers that use threads give the same rows when Python changes threads as often as it can."""

from __future__ import annotations

import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from nsw.present import emit
from nsw.readers import read
from nsw.readers.ncu import csv_reader
from nsw.readers.nsys.export.source import NULL, Vocabulary
from nsw.readers.nsys.export.sqlite import SqliteSource
from nsw.readers.untrusted_files import open_sqlite_read_only
from nsw.tables import full_rows
from tests.fuzz import seeds

TIMES = 20
THREADS = 4
OFTEN_S = 1e-6


@pytest.fixture
def often_switched():
    before = sys.getswitchinterval()
    sys.setswitchinterval(OFTEN_S)
    yield
    sys.setswitchinterval(before)


def in_threads(function, times):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, range(times)))


def everything(report):
    assert not [p for p in report.problems if p.severity == "error"], report.problems
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


def test_threads_that_ask_one_export_get_their_own_rows(nsys_database, often_switched):
    database = nsys_database()
    for number in range(37):
        database.add("TARGET_INFO_SYSTEM_ENV", name=f"name {number}", value=f"value {number}")
    ids = [database.string(f"text {number}") for number in range(700)]
    source = SqliteSource(database.done())
    wanted = [(f"name {n}", f"value {n}") for n in range(37)]
    texts = {id_: f"text {n}" for n, id_ in enumerate(ids)}

    def is_right(number):
        if number % 4:
            return source.rows("TARGET_INFO_SYSTEM_ENV", ["name", "value"]) == wanted
        return source.strings(ids) == texts

    assert all(in_threads(is_right, 1500))


def test_python_refuses_a_second_thread_on_a_connection_to_a_report(typical_database):
    connection = open_sqlite_read_only(typical_database())
    with ThreadPoolExecutor(1) as pool, pytest.raises(sqlite3.ProgrammingError, match="thread"):
        pool.submit(connection.execute, "SELECT 1").result()
    connection.close()


def test_threads_number_texts_alike(often_switched):
    vocabulary = Vocabulary()

    def codes(number):
        texts = [None, *(f"text {(number + at) % 300}" for at in range(200))]
        return zip(texts, vocabulary.codes(texts), strict=True)

    for text, code in (pair for pairs in in_threads(codes, 400) for pair in pairs):
        assert code == NULL if text is None else vocabulary.texts[code] == text
    assert len(set(vocabulary.texts)) == len(vocabulary.texts) == 300


@pytest.mark.parametrize("format_id", ["nsys-sqlite", "nsys-parquet"])
def test_an_export_is_read_alike_each_time(format_id, tmp_path, often_switched):
    (name, report), *_ = seeds.make()[format_id].items()
    path = seeds.write(report, tmp_path / name)
    first = everything(read(path))
    assert first
    for _ in range(TIMES):
        assert everything(read(path)) == first


def test_blocks_of_ncu_s_csv_are_read_alike_each_time(tmp_path, monkeypatch, often_switched):
    data = seeds.make()["ncu-csv"]["tiled-details.csv"]
    path = seeds.write(data, tmp_path / "details.csv")
    first = everything(read(path))
    assert first["metrics"]
    lines = data.decode().splitlines()
    blocks = [(at + 1, "\n".join(lines[at : at + 3])) for at in range(0, len(lines), 3)]
    monkeypatch.setattr(csv_reader, "LARGE", 0)
    monkeypatch.setattr(csv_reader, "line_blocks", lambda *_: iter(blocks))
    for _ in range(TIMES):
        assert everything(read(path)) == first


def test_rows_become_json_in_their_order(monkeypatch, often_switched):
    monkeypatch.setattr(emit, "_BATCH", 25)
    table = pa.table({
        "launch_id": list(range(500)), "unit": pa.array(["us", "ns"] * 250).dictionary_encode(), "value": [n / 7 for n in range(500)],
    })  # fmt: skip
    first = b"".join(emit.json_rows("metrics", table))
    for _ in range(TIMES):
        assert b"".join(emit.json_rows("metrics", table)) == first
    assert [row["launch_id"] for row in json.loads(b"[" + first + b"]")] == list(range(500))
