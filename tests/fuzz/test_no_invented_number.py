"""No number in a table that the report does not hold, and none under another meaning than it has there."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsw.readers import Options, read
from nsw.readers.model import read_text
from nsw.readers.untrusted_files import GZIP_MAGIC
from nsw.tables import full_rows

from . import seeds, shifts
from .bounded import BoundedReader
from .damage import EXPLORES, LONGEST, TIMES, damaged, damages
from .printed import Printed
from .test_every_reader import VALUES, columns_of, edited

TEXTS = seeds.texts()
ALL_TEXTS = seeds.texts(*seeds.ROWS_OF_CPU)
MOST = 5000 if EXPLORES else 90  # words of a report that are taken away, one at a time
EXAMPLES = 30 * TIMES
calm = settings(deadline=None, suppress_health_check=list(HealthCheck))


def tables_of(path, wanted=None):
    report = read(path, Options(wanted))
    return {name: list(full_rows(name, data)) for name, data in report.tables.items()}


def thinned(several, most=MOST):
    """At most so many, evenly from first to last."""
    several = list(several)
    return several[:: max(1, -(-len(several) // most))]


@pytest.mark.parametrize("name", sorted(ALL_TEXTS))
def test_a_word_that_is_missing_never_moves_a_number(name, tmp_path):
    """The row is refused, or what is left of it stands where it stood."""
    path = tmp_path / name
    path.write_text(ALL_TEXTS[name], newline="")
    whole = tables_of(path)
    for what, text in thinned(shifts.variants(ALL_TEXTS[name])):
        path.write_text(text, newline="")
        assert not shifts.moved(whole, tables_of(path)), what


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_whole_reports_hold_what_is_read_from_them(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name], newline="")
    assert not list(Printed(TEXTS[name]).missing(tables_of(path)))


def as_far_as_it_unpacks(data):
    """What is packed with gzip, perhaps in several members, up to where it is damaged."""
    found, unpacker = [], zlib.decompressobj(wbits=31)
    with suppress(zlib.error):
        for at in range(len(data)):
            if unpacker.eof:
                unpacker = zlib.decompressobj(wbits=31)
            found.append(unpacker.decompress(data[at : at + 1]))
    return b"".join(found)


@settings(calm, max_examples=EXAMPLES * 8)
@given(name=st.sampled_from(sorted(TEXTS)), several=st.lists(damages(sorted(TEXTS)), min_size=1, max_size=3))
def test_every_number_of_a_damaged_text_is_printed_in_it(name, several, tmp_path):
    data = TEXTS[name].encode()
    for how in several:
        data = damaged(data, how, {n: t.encode() for n, t in TEXTS.items()})[:LONGEST]
    path = tmp_path / name
    path.write_bytes(data)
    printed = tmp_path / "printed"
    printed.write_bytes(as_far_as_it_unpacks(data) if data.startswith(GZIP_MAGIC) else data)
    assert not list(Printed(read_text(printed).replace("\0", "")).missing(tables_of(path)))


@pytest.fixture(scope="module")
def reader():
    with BoundedReader() as bounded:
        yield bounded


SPANS = {  # tables whose rows are spans of time, as nsys and nvprof name them
    "gpu": "KIND_KERNEL KIND_CONCURRENT_KERNEL KIND_CDP_KERNEL KIND_MEMCPY KIND_MEMCPY2 KIND_MEMSET KIND_GRAPH_TRACE",
    "api": "KIND_RUNTIME KIND_DRIVER",
}


def spans(path, what):
    """(table, duration) of every row of a database that has a whole start and end, by SQLite alone."""
    found = []
    with closing(sqlite3.connect(path)) as base:
        for table in (f"CUPTI_ACTIVITY_{k}" for k in SPANS[what].split()):
            try:
                sql = f"SELECT start, end FROM {table} WHERE typeof(start) = 'integer' AND typeof(end) = 'integer'"
                found += [end - start for start, end in base.execute(sql)]
            except sqlite3.Error:
                continue
    return found


@pytest.mark.parametrize("format_id", ["nsys-sqlite", "nvprof-sqlite"])
@settings(calm, max_examples=EXAMPLES)
@given(data=st.data())
def test_times_of_a_damaged_database_are_those_of_its_rows(format_id, reader, tmp_path, data):
    ((name, report),) = seeds.make()[format_id].items()
    for _ in range(data.draw(st.integers(0, 2))):
        table, column = data.draw(st.sampled_from(columns_of(report)))
        what = data.draw(st.sampled_from(["drop column", "one", "one", "all"]))
        report = edited(report, table, column, what, data.draw(st.sampled_from(VALUES)))
    path = seeds.write(report, tmp_path / name)
    answer = reader.read(path, frozenset({"gpu_trace", "api_trace", "gpu_summary", "api_summary"}))
    for what in SPANS:
        held = spans(path, what)
        traced = [r["duration_ns"] for r in answer.tables.get(f"{what}_trace", []) if r["duration_ns"] is not None]
        assert not set(traced) - set(held)
        summed = answer.tables.get(f"{what}_summary", [])
        assert not {r[c] for r in summed for c in ("min_ns", "max_ns") if r[c] is not None} - set(held)
        assert sum(r["total_ns"] or 0 for r in summed) <= sum(d for d in held if d > 0)
        if not answer.problems and what == "gpu":  # nothing was said, so nothing is missing
            assert sum(r["total_ns"] or 0 for r in summed) == sum(d for d in held if d > 0)
