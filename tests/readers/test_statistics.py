"""Statistics by group, against those of the standard library."""

import statistics as standard

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.readers.timeline import statistics
from nsw.readers.timeline.statistics import group_by_key, merge_by_label, with_shares


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=40), st.integers(1, 50))
def test_statistics_are_those_of_the_standard_library_however_they_are_added(values, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "_CHUNK", chunk)
        got = statistics.duration_statistics(np.array(sorted(values)))
    assert got == {
        "total_ns": sum(values),
        "calls": len(values),
        "avg_ns": pytest.approx(standard.mean(values)),
        "med_ns": standard.median(values),
        "min_ns": min(values),
        "max_ns": max(values),
        "stddev_ns": pytest.approx(standard.stdev(values), rel=1e-9, abs=1e-3),
    }


def test_one_value_has_no_deviation():
    assert statistics.duration_statistics(np.array([7]))["stddev_ns"] is None


@pytest.mark.parametrize("values", [[2**61, 2**61], [-(2**61), -(2**61)], [0, 2**61], [-(2**61), 0]])
def test_what_could_overflow_when_it_is_added_is_refused(values):
    with pytest.raises(OverflowError):
        group_by_key(np.array([1, 2]), np.array(values))


def test_no_values_are_no_groups():
    assert group_by_key(np.array([], np.int64), np.array([], np.int64)).keys == ()


def test_groups_of_one_label_become_one_sorted_group():
    grouped = group_by_key(np.array([1, 2, 3, 1]), np.array([5, 4, 9, 1]))
    merged = merge_by_label(grouped, ["a", "b", "a"])
    assert {label: values.tolist() for label, values in merged.items()} == {"a": [1, 5, 9], "b": [4]}


def row(name, total):
    return {"name": name, "total_ns": total}


def test_shares_are_of_what_the_rows_add_up_to():
    rows = [row("b", 10.0), row("c", None), row("a", 10.0), row("d", 20.0)]
    assert [(r["name"], r["time_pct"]) for r in with_shares(rows)] == [("d", 50), ("a", 25), ("b", 25), ("c", None)]
    assert [r["time_pct"] for r in with_shares([row("a", 0.0)])] == [None]  # a share of nothing is absent
