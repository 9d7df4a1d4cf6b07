"""Files that were made to harm: nothing in them runs, nothing of them ends the process, and each is named."""

from __future__ import annotations

import marshal
import os
import pickle
import sqlite3
from contextlib import closing

import pytest

from . import seeds
from .bounded import BoundedReader

DEEP = 3_000_000
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
# What is done to an export of nsys. Each is a way to have SQLite compute, or read, what no export has.
EXPORTS = {
    "a table that is a view without end": f"DROP TABLE {KERNELS}; CREATE VIEW {KERNELS} AS {ENDLESS} x start, x end FROM n",
    "names that are a view without end": f"DROP TABLE StringIds; CREATE VIEW StringIds AS {ENDLESS} x id, 'a' value FROM n",
    "a column that is computed": f"ALTER TABLE {KERNELS} ADD COLUMN more AS (zeroblob(999999999))",
    "a trigger": f"CREATE TRIGGER t AFTER INSERT ON {KERNELS} BEGIN DELETE FROM StringIds; END",
    "a virtual table": "CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(text)",
    "a table of texts": f"UPDATE {KERNELS} SET start = 'a', end = x'00ff'",
    "names of other kinds": "UPDATE StringIds SET value = id",
    "a large name": "UPDATE StringIds SET value = zeroblob(50000000) WHERE id = (SELECT min(id) FROM StringIds)",
    "times beyond all": f"UPDATE {KERNELS} SET start = -9223372036854775807, end = 9223372036854775807",
    "a view over the schema": "DROP TABLE META_DATA_CAPTURE; CREATE VIEW META_DATA_CAPTURE AS SELECT name, sql value FROM sqlite_master",
}


@pytest.fixture(scope="module")
def reader():
    with BoundedReader() as bounded:
        yield bounded


@pytest.mark.parametrize("what", EXPORTS)
def test_an_export_that_would_compute_is_read_or_named_and_left_as_it_is(reader, tmp_path, what):
    path = seeds.write(seeds.make()["nsys-sqlite"]["tiled.sqlite"], tmp_path / "tiled.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(EXPORTS[what])
    before = path.read_bytes()
    reader.read(path)  # it holds the answer to an end, memory, and rows or an error
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class _Runs:
    def __init__(self, mark):
        self._mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self._mark),)


def test_a_pickle_that_is_called_a_profile_does_not_run(reader, tmp_path):
    mark = tmp_path / "ran"
    for name in ("a.prof", "a.pstats", "a.json", "a.nsys-rep"):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(_Runs(mark)))
        assert reader.read(path).errors
    assert not mark.exists()


ENTRY = (("f.py", 1, "f"), (1, 1, 0.5, 0.5, {}))
CODE = compile("import os", "f.py", "exec")
PROFILES = {
    "code in it": marshal.dumps({ENTRY[0]: (1, 1, 0.5, 0.5, {("a", 1, "b"): CODE})}),
    "code as a name": marshal.dumps({("f.py", 1, CODE): ENTRY[1]}),
    "a tuple longer than the file": marshal.dumps(dict([ENTRY]))[:20] + b"(\xff\xff\xff\x7f",
    "a text longer than the file": marshal.dumps(dict([ENTRY]))[:7] + b"u\xff\xff\xff\x7fabc",
    "a number of many digits": marshal.dumps({("f.py", 1, "f"): (2**100_000, 1, 0.5, 0.5, {})}),
    "tuples in tuples": marshal.dumps(dict([ENTRY]))[:-1] + b")\x01" * 100_000 + b"N0",
    "references to themselves": b"\xfb\xa9\x03" + b"r\0\0\0\0" * 3 + b"0",
}


@pytest.mark.parametrize("what", PROFILES)
def test_a_profile_that_is_none_is_named(reader, tmp_path, what):
    path = tmp_path / "a.prof"
    path.write_bytes(PROFILES[what])
    assert reader.read(path).errors


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("a.pt.trace.json", b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": ['),
        ("a.pt.trace.json", b'{"schemaVersion": 1, "deviceProperties": '),
        ("a.ipynb", b'{"cells": [{"cell_type": "code", "outputs": ['),
        ("sum.json", b'[{"Time (%)": 1, "Total Time (ns)": '),
        ("a.json", b""),
    ],
)
@pytest.mark.parametrize("unit", [b"[", b'{"a":'], ids=["lists", "maps"])
def test_json_three_million_deep_is_named(reader, tmp_path, name, begin, unit):
    path = tmp_path / name
    path.write_bytes(begin + unit * DEEP)
    assert reader.read(path).errors
