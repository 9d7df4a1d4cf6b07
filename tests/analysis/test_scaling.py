"""Speed-up and efficiency, worked out by hand: throughputs and times, weak and strong."""

import pytest

from nsw.analysis.comparison import compare_variants, scaling_curve

from .made import case


def curve(*cases, kind="weak", **how):
    return scaling_curve(cases, axis="n", kind=kind, figure="speed", **how)


def ratios(found):
    return [(p.at, p.speedup, p.efficiency_pct) for p in found.points]


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_of_a_throughput_the_speedup_is_its_ratio_for_both_kinds(kind):
    found = curve(case(100.0, n=1), case(180.0, n=2), case(200.0, n=4), kind=kind)
    assert found.higher_is_better
    assert ratios(found) == [(1, 1, 100), (2, 1.8, 90), (4, 2, 50)]


def test_of_a_time_strong_scaling_is_how_much_shorter_it_got():
    found = curve(case(100.0, unit="s", n=1), case(50.0, unit="s", n=2), case(50.0, unit="s", n=4), kind="strong")
    assert not found.higher_is_better
    assert ratios(found) == [(1, 1, 100), (2, 2, 100), (4, 2, 50)]


def test_of_a_time_weak_scaling_is_perfect_when_it_stays_the_same():
    found = curve(case(100.0, unit="ms", n=1), case(100.0, unit="ms", n=2), case(200.0, unit="ms", n=4), kind="weak")
    assert ratios(found) == [(1, 1, 100), (2, 2, 100), (4, 2, 50)]


@pytest.mark.parametrize("unit", ["s", "Seconds", "ms/step", "s per epoch", "msec", "µs", "minute", "hours / run"])
def test_of_a_time_less_is_better_however_its_unit_is_written(unit):
    found = curve(case(100.0, unit=unit, n=1), case(50.0, unit=unit, n=2), kind="strong")
    assert ratios(found) == [(1, 1, 100), (2, 2, 100)]
    assert [v.ratio for v in variants(case(10.0, unit=unit, v="a"), case(5.0, unit=unit, v="b"))] == [1, 2]


@pytest.mark.parametrize("unit", ["steps/s", "GB/s", "samples per second", "FLOP/s", "%", None])
def test_of_what_is_no_time_more_is_better(unit):
    found = curve(case(50.0, unit=unit, n=1), case(100.0, unit=unit, n=2), kind="strong")
    assert ratios(found) == [(1, 1, 100), (2, 2, 100)]


def test_what_is_better_may_be_said():
    found = curve(case(10.0, unit="J", n=1), case(5.0, unit="J", n=2), kind="strong", higher_is_better=False)
    assert ratios(found) == [(1, 1, 100), (2, 2, 100)]


def test_the_base_need_not_be_one():
    assert ratios(curve(case(100.0, n=2), case(150.0, n=4))) == [(2, 1, 100), (4, 1.5, 75)]


def test_each_series_has_a_base_of_its_own_and_stands_in_the_order_of_the_axis():
    found = curve(case(40.0, b=8, n=4), case(10.0, b=8, n=1), case(100.0, b=16, n=1), case(200.0, b=16, n=4))
    assert [(p.series["b"], p.at, p.speedup) for p in found.points] == [(8, 1, 1), (8, 4, 4), (16, 1, 1), (16, 4, 2)]


def test_without_the_base_there_is_a_figure_and_no_speedup_and_the_reason():
    found = curve(case(None, n=1), case(150.0, n=2))
    assert [(p.figure, p.speedup, p.efficiency_pct) for p in found.points] == [(None, None, None), (150, None, None)]
    assert found.points[0].missing == "no run of this case gave the figure"
    assert found.points[1].missing == "no run of n-1 gave the figure to compare with"


def test_a_series_that_lacks_the_baseline_asked_for_says_so():
    found = curve(case(10.0, b=1, n=1), case(20.0, b=1, n=2), case(30.0, b=2, n=2), baseline=1)
    assert [p.speedup for p in found.points] == [1, 2, None]
    assert found.points[2].missing == "the series has no case at the baseline"


def test_the_baseline_may_be_the_largest():
    assert ratios(curve(case(100.0, n=1), case(200.0, n=2), baseline=2)) == [(1, 0.5, 100), (2, 1, 100)]


@pytest.mark.parametrize("values", [(0.0, 10.0), (10.0, 0.0)])
def test_a_figure_of_zero_gives_no_ratio(values):
    found = curve(case(values[0], n=1), case(values[1], n=2))
    assert found.points[1].speedup is None
    assert "zero" in found.points[1].missing


def test_an_axis_that_is_zero_gives_no_ratio():
    found = curve(case(10.0, n=0), case(20.0, n=1))
    assert [p.speedup for p in found.points] == [None, None]


def test_one_profiled_point_makes_the_table_say_so():
    assert not curve(case(1.0, n=1), case(2.0, n=2)).profiled
    found = curve(case(1.0, n=1), case(2.0, profiled=True, n=2))
    assert found.profiled
    assert [p.profiled for p in found.points] == [False, True]


def test_how_many_runs_stand_behind_a_figure_is_kept():
    assert [p.runs for p in curve(case(1.0, runs=3, n=1), case(None, n=2)).points] == [3, 0]


# --- variants ---------------------------------------------------------------------------------------------------


def variants(*cases, baseline="a", **how):
    return compare_variants(cases, parameter="v", baseline=baseline, figure="speed", **how)


def test_a_variant_is_compared_with_the_case_that_differs_in_nothing_else():
    found = variants(case(10.0, v="a", s=1), case(30.0, v="b", s=1), case(100.0, v="a", s=2), case(50.0, v="b", s=2))
    assert [(v.series, v.variant, v.ratio) for v in found] == [
        ({"s": 1}, "a", 1),
        ({"s": 1}, "b", 3),
        ({"s": 2}, "a", 1),
        ({"s": 2}, "b", 0.5),
    ]


def test_parameters_that_vary_together_with_the_compared_one_belong_to_it():
    sides = (case(10.0, v="a", n=5, s=1), case(30.0, v="b", n=1, s=1))
    assert [v.ratio for v in variants(*sides)] == [1, None]
    assert [(v.series, v.ratio) for v in variants(*sides, tied=("v", "n"))] == [({"s": 1}, 1), ({"s": 1}, 3)]


def test_of_times_less_is_better():
    assert [v.ratio for v in variants(case(10.0, unit="s", v="a"), case(5.0, unit="s", v="b"))] == [1, 2]
    assert [
        v.ratio for v in variants(case(10.0, unit="s", v="a"), case(5.0, unit="s", v="b"), higher_is_better=True)
    ] == [1, 0.5]


def test_without_a_baseline_or_a_figure_there_is_no_ratio():
    assert [v.ratio for v in variants(case(10.0, v="b"), case(None, v="c"))] == [None, None]
    assert [v.ratio for v in variants(case(0.0, v="a"), case(5.0, v="b"))] == [None, None]


def test_what_takes_most_time_is_named_where_a_report_tells():
    found = variants(case(1.0, v="a", gpu_ns=5.0), case(1.0, v="b"))
    assert [v.top for v in found] == ["kernel", None]
