"""A program's own numbers, found in what it printed."""

import math
from types import SimpleNamespace

import pytest

from nsw.readers.program_figures import figures


def value(output, regex=r"rate=(\S+)", pick="last"):
    (row,) = figures(output, {"rate": SimpleNamespace(regex=regex, pick=pick, unit="1/s")})
    return row["value"], row["matches"]


@pytest.mark.parametrize(
    ("pick", "expected"),
    [("first", 5), ("last", 2), ("sum", 10), ("mean", 10 / 3), ("max", 5)],
)
def test_one_of_several(pick, expected):
    found, matches = value("rate=5\nrate=3\nrate=2\n", pick=pick)
    assert found == pytest.approx(expected)
    assert matches == 3


@pytest.mark.parametrize("pick", ["last", "sum", "mean", "max"])
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_a_run_that_diverged_has_no_value_though_it_had_one_before(pick, bad):
    assert value(f"rate=5\nrate={bad}\n", pick=pick) == (None, 2)


def test_what_is_no_number_is_no_match():
    assert value("rate=n/a\nrate=3,14\n") == (None, 0)
    assert value("rate=1,234.5\n") == (1234.5, 1)
    assert not math.isnan(value("rate=7\nrate=oops\n")[0])


def test_a_match_that_is_no_number_is_named():
    wanted = {"rate": SimpleNamespace(regex=r"rate=(\S+)", pick="last", unit="1/s")}
    assert [row.get("no_number") for row in figures("rate=abc\nrate=5ms\n", wanted)] == ["5ms"]
    assert [row.get("no_number") for row in figures("rate=abc\nrate=5\n", wanted)] == [None]
    assert [row.get("no_number") for row in figures("nothing\n", wanted)] == [None]
