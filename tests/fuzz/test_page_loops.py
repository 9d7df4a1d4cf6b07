"""A SQLite file whose pages point to each other holds more rows than can be read: its process has a limit of time."""

import sqlite3
from contextlib import closing

import pytest

from nsw.apart import Limits
from nsw.readers import Options
from nsw.readers.read_many import read_many

from . import seeds
from .page_loops import with_page_loop

_ROWS = 2000


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
def test_a_table_whose_pages_point_to_each_other_is_read_until_its_time_is_over(tmp_path, format_id, name, table):
    path = seeds.write(seeds.make()[format_id][name], tmp_path / name)
    grown(path, table)
    good = seeds.write(path.read_bytes(), tmp_path / f"good-{name}")
    path.write_bytes(with_page_loop(path, table))
    reports = list(read_many([good, path, good], Options(limits=Limits(seconds=2)), workers=1))
    assert [bool(report.tables) for report in reports] == [True, False, True]
    (problem,) = reports[1].problems
    assert problem.message == f"reading {path} takes more than 2 s"
    assert "--max-time" in problem.fix
