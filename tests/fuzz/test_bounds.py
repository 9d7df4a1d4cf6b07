"""Small files that unpack, repeat or nest beyond measure: an end, and memory beside the size of the file."""

from __future__ import annotations

import gzip

import pytest

from nsw.apart import Limits
from nsw.readers import Options
from nsw.readers.detect import read_many

from . import seeds
from .bounded import BoundedReader

MB = 1 << 20
TEXTS = seeds.texts()
EVENT = b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":40,"dur":12,"args":{"device":0,"correlation":9}},'
HEAD = b'{"schemaVersion":1,"traceEvents":['


@pytest.fixture(scope="module")
def reader():
    with BoundedReader() as bounded:
        yield bounded


@pytest.mark.parametrize("name", ["summary.txt", "trace.csv", "tiled-stats.txt", "sum.csv", "ncu-mixed.csv", "details.txt",
                                  "lenet-table.txt"])  # fmt: skip
def test_a_line_that_does_not_end_costs_no_more_than_its_length(name, reader, tmp_path):
    """What a reader does to a line twice as long may take twice as long: the square of these would not end."""
    head = TEXTS[name].encode()
    for character in (b" ", b"\t", b"(", b"-", b"9", b"a", b",", b'"', b"<", b"=", b" 9", b'"",', b"a::", b"9."):
        path = tmp_path / name
        path.write_bytes(head + character * (200_000 // len(character)) + b"\n" + head)
        answer = reader.read(path)
        assert answer.peak < 200 * MB, character


def packed(path, *chunks):
    with gzip.open(path, "wb", compresslevel=1) as file:
        for chunk in chunks:
            file.write(chunk)
    return path


def test_a_packed_file_is_unpacked_as_far_as_it_is_read(reader, tmp_path):
    blank = packed(tmp_path / "blank.json.gz", HEAD, *[b" " * MB] * 80, b"]}")
    text = packed(tmp_path / "text.json.gz", HEAD, b'{"name":"', *[b"x" * MB] * 80, b'"}]}')
    many = packed(tmp_path / "many.json.gz", HEAD, *[EVENT * 4000] * 15, EVENT[:-1], b"]}")
    for path in (blank, text, many):
        assert path.stat().st_size < 2 * MB
        assert reader.read(path).peak < 200 * MB, path.name


@pytest.mark.parametrize(
    "data",
    [HEAD + b"[" * 500_000, HEAD + b'{"ph":"X","args":' + b'{"a":' * 200_000, HEAD + b'{"ts":' + b"9" * 1_000_000 + b"}]}",
     HEAD + b'{"ph":"X","cat":"kernel","name":"k","ts":1e999,"dur":' + b"9" * 5000 + b"}]}"],
    ids=["nested lists", "nested arguments", "a long number", "numbers beyond all bounds"],
)  # fmt: skip
def test_json_beyond_measure(data, reader, tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    answer = reader.read(path)
    assert answer.errors
    assert answer.peak < 100 * MB


def test_columns_that_repeat_one_value_beyond_memory(tmp_path):
    """Some kilobytes of Parquet that say 64 million rows; the file after it is read."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path / "a_pqtdir"
    folder.mkdir()
    zeros = pa.array(np.zeros(MB, np.int64))
    part = pa.table(dict.fromkeys(("start", "end", "demangledName", "correlationId"), zeros))
    with pq.ParquetWriter(folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet", part.schema) as writer:
        for _ in range(64):
            writer.write_table(part)
    pq.write_table(pa.table({"id": [0], "value": ["k"]}), folder / "StringIds.parquet")
    pq.write_table(pa.table({"utcTime": ["2026-01-01"]}), folder / "TARGET_INFO_SESSION_START_TIME.parquet")
    limits = Limits(memory=600 * MB)  # half of it are libraries, which the process loads first
    tiled = seeds.write(seeds.make()["nsys-sqlite"]["tiled.sqlite"], tmp_path / "tiled.sqlite")
    report, other = read_many([folder, tiled], Options(limits=limits), workers=1)
    assert [problem.message for problem in report.problems] == [f"reading {folder} takes more than 600 MiB"]
    assert other.tables
