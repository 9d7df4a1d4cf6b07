"""Every registered reader, through the door that users take, on damaged reports of its format.

Whatever the bytes: no exception, an end, memory that does not grow beyond bounds, an answer that says why when it has no
rows, values that JSON can hold, columns that the schema has.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers.detect import detect_format
from nsw.readers.model import Sample
from nsw.readers.registry import FORMATS

from . import seeds
from .bounded import BoundedReader
from .damage import LONGEST, TIMES, damaged, damages

EXAMPLES = 40 * TIMES  # of each format
IDS = [f.id for f in FORMATS]
TRACES = frozenset({"gpu_trace", "api_trace"})
OTHERS = {n: d for reports in seeds.make().values() for n, d in reports.items() if isinstance(d, bytes)}
calm = settings(deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def reader():
    with BoundedReader() as bounded:
        yield bounded


def test_a_format_without_a_report_to_damage_fails_with_what_to_add_and_where():
    with pytest.raises(
        pytest.fail.Exception, match=r"format my-tool to damage: add .* to `make` in tests/fuzz/seeds.py"
    ):
        seeds.make()["my-tool"]


@pytest.mark.parametrize("format_id", IDS)
def test_every_registered_format_has_whole_reports_to_damage(format_id, reader, tmp_path):
    assert seeds.make()[format_id]
    for name, report in seeds.make()[format_id].items():
        answer = reader.read(seeds.write(report, tmp_path / name))
        assert answer.format == format_id, name


@pytest.mark.parametrize("format_id", IDS)
@settings(calm, max_examples=EXAMPLES)
@given(data=st.data())
def test_damage_is_said_and_never_raised(format_id, reader, tmp_path, data):
    reports = seeds.make()[format_id]
    name = data.draw(st.sampled_from(sorted(reports)))
    report = reports[name]
    several = data.draw(st.lists(damages(sorted(OTHERS)), min_size=1, max_size=3))
    part = None
    if isinstance(report, dict):
        part = data.draw(st.sampled_from(sorted(report)))
    changed = report if part is None else report[part]
    for how in several:
        changed = damaged(changed, how, OTHERS)[:LONGEST]
    path = seeds.write(changed if part is None else report | {part: changed}, tmp_path / name)
    tables = data.draw(st.sampled_from([None, TRACES]))
    reader.read(path, tables)


@settings(calm, max_examples=EXAMPLES)
@given(st.binary(max_size=2000), st.sampled_from(["", ".csv", ".json", ".nvvp", ".ncu-rep", ".sqlite", ".gz", ".txt"]))
def test_any_bytes_under_any_name(reader, tmp_path, data, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(data)
    reader.read(path)


VALUES = [None, "text", "", b"\xff\0", float("nan"), float("inf"), -1, 2**63 - 1, -(2**63), 1.5, "1e999", "12", 0]


def columns_of(database: bytes) -> list[tuple[str, str]]:
    """The columns of a database's tables that have rows."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(database)
        tables = [t for (t,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        filled = [t for t in tables if base.execute(f'SELECT 1 FROM "{t}" LIMIT 1').fetchone()]
        return [(t, c[1]) for t in filled for c in base.execute(f'PRAGMA table_info("{t}")')]


def edited(database: bytes, table: str, column: str, what: str, value: object) -> bytes:
    """A database with a table or column dropped, or values of any type in it."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(database)
        if what == "drop table":
            base.execute(f'DROP TABLE "{table}"')
        elif what == "a view that never ends":
            base.execute(f'DROP TABLE "{table}"')
            base.execute(
                f'CREATE VIEW "{table}" AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT * FROM n'
            )
        else:
            names = [c[1] for c in base.execute(f'PRAGMA table_info("{table}")')]
            kept = [n for n in names if what != "drop column" or n != column] or names
            base.execute(
                f'CREATE TABLE copied AS SELECT {", ".join(f"{chr(34)}{n}{chr(34)}" for n in kept)} FROM "{table}"'
            )
            base.execute(f'DROP TABLE "{table}"')  # the copy's columns take any type
            if column in kept and what != "drop column":
                where = "" if what == "all" else " WHERE rowid = 1"
                base.execute(f'UPDATE copied SET "{column}" = ?{where}', (value,))
            base.execute(f'ALTER TABLE copied RENAME TO "{table}"')
        base.commit()
        return base.serialize()


@pytest.mark.parametrize("format_id", ["nsys-sqlite", "nvprof-sqlite"])
@settings(calm, max_examples=EXAMPLES // 2)
@given(data=st.data())
def test_a_database_with_columns_of_another_type_or_without_them(format_id, reader, tmp_path, data):
    ((name, report),) = seeds.make()[format_id].items()
    for _ in range(data.draw(st.integers(1, 3))):
        table, column = data.draw(st.sampled_from(columns_of(report)))
        what = data.draw(st.sampled_from(["drop table", "a view that never ends", "drop column", "one", "all", "all"]))
        report = edited(report, table, column, what, data.draw(st.sampled_from(VALUES)))
    path = seeds.write(report, tmp_path / name)
    reader.read(path, data.draw(st.sampled_from([None, TRACES])))


def test_a_fault_that_quotes_bytes_of_the_database_is_said(reader, tmp_path):
    """SQLite's message holds what it could not parse, here no UTF-8."""
    report = damaged(seeds.make()["nvprof-sqlite"]["a.nvvp"], ("flip head", [(0.859375, 128)]), {})
    assert reader.read(seeds.write(report, tmp_path / "a.nvvp")).errors


def test_a_reader_that_cannot_look_at_a_file_does_not_keep_it_from_the_others(tmp_path, monkeypatch):
    def broken(_):
        raise ValueError("no")

    monkeypatch.setattr("nsw.readers.nsys.export.sqlite.sniff", broken)
    path = tmp_path / "a.txt"
    path.write_bytes(OTHERS["summary.txt"])
    found = detect_format(Sample(path))
    assert found is not None
    assert found[0].id == "nvprof-text"
