"""A SQLite file whose pages point to each other holds more rows than can be read: its process has a limit of time."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from nsw.apart import Limits
from nsw.readers import Options
from nsw.readers.detect import read_many

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
    reports = list(read_many([good, path, good], Options(limits=Limits(seconds=1)), workers=1))
    assert [bool(report.tables) for report in reports] == [True, False, True]
    (problem,) = reports[1].problems
    assert problem.message == f"reading {path} takes more than 1 s of processor time"
    assert "--max-time" in problem.fix


def test_the_command_names_what_took_too_much_as_a_problem_of_the_file(tmp_path):
    path = seeds.write(seeds.make()["nsys-sqlite"]["tiled.sqlite"], tmp_path / "tiled.sqlite")
    grown(path, "CUPTI_ACTIVITY_KIND_KERNEL")
    path.write_bytes(with_page_loop(path, "CUPTI_ACTIVITY_KIND_KERNEL"))
    command = [sys.executable, "-m", "nsw", "read", path, "--max-time", "1s", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    (report,) = json.loads(done.stdout)["reports"]
    assert report["problems"][0]["message"] == f"reading {path} takes more than 1 s of processor time"
