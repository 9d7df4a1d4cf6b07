"""A SQLite file whose pages point to each other holds more rows than can be read: each reader of such files ends."""

import sqlite3
from contextlib import closing

import pytest

from nsw.readers import Options
from nsw.readers.nsys.export import sqlite as nsys_sqlite

from . import seeds
from .bounded import BoundedReader
from .page_loops import with_page_loop

_ROWS = 2000


@pytest.fixture(scope="module")
def reader():
    with BoundedReader() as bounded:
        yield bounded


def grown(path, table):
    """The database, with the rows of one table many times."""
    with closing(sqlite3.connect(path)) as db, db:
        columns = [name for _, name, _, _, _, key in db.execute(f"PRAGMA table_info({table})") if not key]
        names = ", ".join(f'"{name}"' for name in columns)
        (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        for _ in range(_ROWS // count):
            db.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} LIMIT {count}")


@pytest.mark.parametrize(
    ("format_id", "name", "table"),
    [
        ("nsys-sqlite", "tiled.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"),
        ("nsys-sqlite", "tiled.sqlite", "CUPTI_ACTIVITY_KIND_RUNTIME"),
        ("nvprof-sqlite", "a.nvvp", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"),
    ],
)
def test_a_table_whose_pages_point_to_each_other_is_named_as_damaged(reader, tmp_path, format_id, name, table):
    path = seeds.write(seeds.make()[format_id][name], tmp_path / name)
    grown(path, table)
    assert reader.read(path).count
    path.write_bytes(with_page_loop(path, table))
    answer = reader.read(path)
    assert any("2nd reference to page" in error for error in answer.errors)


def test_a_table_of_a_large_file_is_read_to_as_many_rows_as_there_is_room_for(tmp_path, monkeypatch):
    """The pages of files of more than 64 MB are not looked at before: that would take as long as reading."""
    path = seeds.write(seeds.make()["nsys-sqlite"]["tiled.sqlite"], tmp_path / "tiled.sqlite")
    grown(path, "CUPTI_ACTIVITY_KIND_KERNEL")
    path.write_bytes(with_page_loop(path, "CUPTI_ACTIVITY_KIND_KERNEL"))
    monkeypatch.setattr(nsys_sqlite, "_CHECKED", 0)
    messages = [p.message for p in nsys_sqlite.read(path, Options()).problems]
    assert any("more rows than the file has room for" in m for m in messages)
