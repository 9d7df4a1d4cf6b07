"""The projection of GPU work on NVTX ranges, against its definition carried out one by one."""

from __future__ import annotations

import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsw.readers import read
from nsw.readers.model import Options
from nsw.readers.nsys.export import nvtx as nsys_nvtx
from nsw.readers.nsys.export.nvtx import Extremes, Lookup
from nsw.tables import full_rows

GLOBAL_PID = (1 << 56) | (77 << 24)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**32), st.sampled_from(["minimum", "maximum"]))
def test_extremes_of_slices(size, seed, name):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nsys_nvtx, "_SLICES", 7)  # and the last stretch is a shorter one
        extremes_are_right(size, seed, name)


def extremes_are_right(size, seed, name):
    ufunc = getattr(np, name)
    chance = np.random.default_rng(seed)
    values = chance.integers(-1000, 1000, size)
    low = chance.integers(0, size, 50)
    high = low + 1 + chance.integers(0, size - low)
    got = Extremes(values, ufunc).over_slices(low, high)
    assert got.tolist() == [int(ufunc.reduce(values[a:b])) for a, b in zip(low, high, strict=True)]


@pytest.mark.parametrize("at_once", [1, 2, 3, 1 << 20])
@pytest.mark.parametrize("spread", [3, 10**9])
def test_lookup_finds_the_first_of_equal_keys(spread, at_once, monkeypatch):
    monkeypatch.setattr(nsys_nvtx, "_SLICE", at_once)
    keys = np.array([5, 9, 5, 7, 9]) * spread
    found = Lookup(keys, np.arange(5)).find(np.array([5, 9, 7, 6, 100, -1]) * spread)
    assert found.tolist() == [0, 1, 3, -1, -1, -1]


@pytest.mark.parametrize("seed", range(6))
def test_random_reports_agree_with_the_definition(nsys_database, seed):
    chance = random.Random(seed)
    database = nsys_database()
    threads = [GLOBAL_PID | 1, GLOBAL_PID | 2, (GLOBAL_PID + (1 << 24)) | 1]
    ranges, calls, operations = [], [], []
    for _ in range(60):
        start = chance.randrange(1000)
        one = (start, start + chance.randrange(400), f"r{chance.randrange(8)}", chance.choice(threads))
        ranges.append(one)
        database.range(one[0], one[1], one[2], kind=chance.choice((59, 60)), globalTid=one[3])
    for correlation in range(200):
        tid, start = chance.choice(threads), chance.randrange(1000)
        calls.append((tid, start, start + chance.randrange(1, 30), correlation))
        database.call(start, calls[-1][2] - start, correlationId=correlation, globalTid=tid)
        for _ in range(chance.choice((0, 1, 1, 3))):
            begin, length = chance.randrange(5000), chance.randrange(1, 100)
            operations.append((tid, correlation, begin, begin + length))
            where = {"correlationId": correlation, "globalPid": tid & ~0xFFFFFF}
            if chance.random() < 0.7:
                database.kernel(begin, length, **where)
            else:
                database.copy(begin, length, 1, 10, **where)
    want, spans = {}, {}
    for begin, end, name, tid in ranges:
        inside = {c for t, s, e, c in calls if t == tid and begin <= s and e <= end}
        mine = [(s, e) for t, c, s, e in operations if t == tid and c in inside]
        if mine:
            total = want.setdefault(name, [0, 0, 0, 0])
            span = max(e for _, e in mine) - min(s for s, _ in mine)
            spans.setdefault(name, []).append(span)
            for index, value in enumerate((1, len(mine), sum(e - s for s, e in mine), span)):
                total[index] += value
    report = read(database.done())
    found = list(full_rows("nvtx_gpu_summary", report.tables["nvtx_gpu_summary"]))
    assert {r["name"]: [r["calls"], r["gpu_ops"], r["gpu_ns"], r["projected_ns"]] for r in found} == want
    assert {r["name"]: r["projected_med_ns"] for r in found} == {n: statistics.median(s) for n, s in spans.items()}


def test_gpu_work_without_a_time_is_projected_on_nothing(nsys_database):
    database = nsys_database()
    database.range(0, 100, "step", globalTid=GLOBAL_PID | 1)
    database.call(10, 5, correlationId=1, globalTid=GLOBAL_PID | 1)
    database.kernel(20, 5, correlationId=1, globalPid=GLOBAL_PID, end=None)
    report = read(database.done())
    assert "nvtx_gpu_summary" not in report.tables
    assert any("CUPTI_ACTIVITY_KIND_KERNEL" in p.message for p in report.problems if p.severity == "error")


def test_each_range_is_a_row_of_a_table_that_is_made_only_when_it_is_asked_for(nsys_database):
    database = nsys_database()
    database.range(30, 70, "later", kind=60, globalTid=GLOBAL_PID | 2)
    database.range(10, 90, "step", kind=59, globalTid=GLOBAL_PID | 1)
    path = database.done()
    assert "nvtx_trace" not in read(path).tables
    found = full_rows("nvtx_trace", read(path, Options(frozenset({"nvtx_trace"}))).tables["nvtx_trace"])
    assert [(r["style"], r["name"], r["start_ns"], r["duration_ns"], r["pid"], r["tid"]) for r in found] == [
        ("pushpop", "step", 10, 80, 77, 1), ("startend", "later", 30, 40, 77, 2),
    ]  # fmt: skip
