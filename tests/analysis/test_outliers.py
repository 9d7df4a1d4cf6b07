"""Outliers among repeats: a robust rule, named with run, factor and host; what is close, few or two-fold is none."""

from dataclasses import dataclass

import pytest

from nsw.analysis.figures import find_outliers, outlier_indexes


@dataclass(frozen=True)
class Run:
    id: str
    repeat: int
    seconds: float | None = 1.0
    state: str = "done"
    host: str = "n1"
    case_id: str = "c"
    pass_name: str = "baseline"


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([100, 101, 99, 150], [3]),
        ([100, 101, 99, 100, 40, 102], [4]),
        ([100, 100, 100, 100, 109], []),  # all others equal, and 9 % is no matter
        ([100, 100, 100, 100, 91], []),
        ([100, 100, 100, 100, 111], [4]),
        ([100, 100, 100, 100, 89], [4]),
        ([100, 100, 150, 150], []),  # two kinds of runs: no one knows which is right
        ([100, 120, 140, 160, 180], []),  # scatter
        ([100, 101, 150], [2]),
        ([100, 130, 150], []),
        ([100, 100, 108], []),
        ([100, 900], []),
        ([0, 0, 0, 5], []),
        ([], []),
        ([-100, -101, -99, -150], [3]),
    ],
)
def test_far_off(values, places):
    assert outlier_indexes(values) == places


def test_an_outlier_is_named_with_its_run_factor_and_host():
    runs = [Run(f"c.baseline.r{n}", n, host="n7" if n == 2 else "n1") for n in (1, 2, 3, 4)]
    rows = [
        {"run": run.id, "name": "speed", "unit": "images/s", "value": value}
        for run, value in zip(runs, [800, 400, 810, 790], strict=True)
    ]
    (one,) = find_outliers(runs, rows)
    assert (one.run, one.factor, one.repeats) == ("c.baseline.r2", pytest.approx(400 / 795), 4)
    assert one.text == "speed is 400.0 images/s, 0.503 times the median of 4 repeats (795.0 images/s), on n7"


def test_warm_ups_and_runs_that_failed_do_not_count():
    runs = [Run("w1", 0), Run("r1", 1), Run("r2", 2), Run("r3", 3, state="failed")]
    rows = [{"run": run.id, "name": "f", "unit": "s", "value": 9 if run.id == "w1" else 1} for run in runs]
    assert find_outliers(runs, rows) == []


def test_where_no_figure_is_printed_durations_count():
    runs = [Run(f"r{n}", n, seconds=s) for n, s in enumerate([10.0, 10.1, 9.9, 25.0], 1)]
    assert [one.text for one in find_outliers(runs, [])] == [
        "duration is 25.00 s, 2.49 times the median of 4 repeats (10.05 s)"
    ]
    quick = [Run(f"r{n}", n, seconds=s) for n, s in enumerate([0.1, 0.1, 0.1, 0.4], 1)]
    assert find_outliers(quick, []) == []
