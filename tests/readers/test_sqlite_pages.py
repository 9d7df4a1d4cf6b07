"""Columns decoded from a database's pages, against what SQLite itself reads."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from nsw.readers.nsys.export.source import NULL, TableFault
from nsw.readers.nsys.export.sqlite import SqliteSource
from nsw.readers.nsys.export.sqlite_pages import NotPlainError, plain_batches

WIDTHS = (0, 1, 8, 16, 24, 32, 48, 63)


def number(rng):
    """An integer of any width that SQLite stores, or NULL."""
    if rng.random() < 0.1:
        return None
    bits = rng.choice(WIDTHS)
    return rng.randrange(-(2**bits) + 1, 2**bits) if bits < 63 else rng.choice((2**63 - 1, -(2**62)))


def database(path, rows, *, page=4096, columns="a INTEGER, t TEXT, b INTEGER, c INTEGER", kind=""):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute(f"CREATE TABLE x ({columns}) {kind}")
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO x VALUES ({marks})", rows)
    return path


def decoded(path, *columns):
    batches = list(plain_batches(path, "x", columns))
    return [np.concatenate([batch[c] for batch in batches]).tolist() for c in columns]


def scanned(path, *columns):
    batches = list(SqliteSource(path).scan("x", columns))
    return [[v for batch in batches for v in batch[c].tolist()] for c in columns]


def read_by_sqlite(path, column):
    with closing(sqlite3.connect(path)) as connection:
        return [NULL if v is None else v for (v,) in connection.execute(f"SELECT {column} FROM x NOT INDEXED")]


@pytest.mark.parametrize("page", [512, 1024, 4096, 65536])
def test_integers_of_every_width_are_those_of_sqlite(tmp_path, page):
    rng = random.Random(page)
    rows = [(number(rng), rng.choice((None, "", "some text")), number(rng), number(rng)) for _ in range(20_000)]
    path = database(tmp_path / "x.sqlite", rows, page=page)
    assert decoded(path, "c", "a", "b") == [read_by_sqlite(path, c) for c in "cab"]


def test_rows_between_deleted_ones_and_an_absent_column_are_read(tmp_path):
    path = database(tmp_path / "x.sqlite", [(n, None, n, n) for n in range(50_000)])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM x WHERE a % 3 = 0 OR a BETWEEN 10000 AND 20000")
        connection.execute("CREATE INDEX i ON x (b DESC)")
    kept = read_by_sqlite(path, "a")
    assert decoded(path, "a", "none") == [kept, [NULL] * len(kept)]


@pytest.mark.parametrize(
    "odd", [(7, "t" * 100, 8, 9), (7, "t" * 9000, 8, 9)], ids=["a text of two bytes' type", "a row over several pages"]
)
def test_sqlite_reads_the_rest_from_the_first_row_that_is_not_plain(tmp_path, odd):
    rows = [(n, None, n, n) for n in range(300_000)]
    rows[250_000] = odd
    path = database(tmp_path / "x.sqlite", rows)
    with pytest.raises(NotPlainError):
        decoded(path, "a")
    assert 0 < len(next(plain_batches(path, "x", ["a"]))["a"]) <= 250_000
    assert scanned(path, "a", "c") == [[r[0] for r in rows], [r[3] for r in rows]]


@pytest.mark.parametrize(
    ("first", "kind"), [("INTEGER PRIMARY KEY", ""), ("REAL", ""), ("INT PRIMARY KEY", "WITHOUT ROWID")]
)
def test_a_column_that_rows_do_not_hold_as_it_reads_is_left_to_sqlite(tmp_path, first, kind):
    columns = f"a {first}, t TEXT, b INTEGER, c INTEGER"
    path = database(tmp_path / "x.sqlite", [(n, None, n, n) for n in range(10)], columns=columns, kind=kind)
    with pytest.raises(NotPlainError):
        decoded(path, "a", "b")


def test_a_text_among_integers_is_still_refused(tmp_path):
    path = database(tmp_path / "x.sqlite", [*((n, None, n, n) for n in range(10)), ("text", None, 1, 1)])
    with pytest.raises(TableFault):
        scanned(path, "a")


def test_damaged_pages_give_numbers_or_are_left_to_sqlite(tmp_path):
    rng, refused = random.Random(5), 0
    path = database(tmp_path / "x.sqlite", [(n, "t", n * 1000, None) for n in range(2_000)], page=512)
    sound = path.read_bytes()
    for _ in range(400):
        damaged = bytearray(sound)
        for _ in range(rng.choice((1, 3, 50))):
            damaged[rng.randrange(512, len(damaged))] = rng.choice((0, 1, 5, 13, 127, 128, 255, rng.randrange(256)))
        path.write_bytes(damaged[: rng.choice((len(damaged), rng.randrange(512, len(damaged))))])
        try:
            rows = sum(len(batch["a"]) for batch in plain_batches(path, "x", ("a", "b", "c")))
        except (NotPlainError, sqlite3.Error):  # SQLite itself sees that a file was cut
            refused += 1
        else:
            assert rows < 10_000
    assert refused
