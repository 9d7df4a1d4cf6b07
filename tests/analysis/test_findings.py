"""Sentences that the numbers bear, each with the cases that prove it, and none where there is nothing to say."""

from dataclasses import replace

from nsw.analysis.comparison import scaling
from nsw.analysis.figures import Figure, perturbations
from nsw.analysis.findings import findings

from .made import case, make_run


def told(*cases, axis=None):
    found = scaling(cases, axis=axis, kind="weak", figure="speed") if axis else None
    return findings(cases, found)


def test_the_range_of_efficiency_at_the_end_of_the_axis_with_its_cases():
    cases = (case(100.0, b=8, n=1), case(120.0, b=8, n=2), case(100.0, b=16, n=1), case(190.0, b=16, n=2))
    (found,) = told(*cases, axis="n")
    assert found.text == "At n=2 weak-scaling efficiency runs from 60.0 % (b=8) to 95.0 % (b=16)."
    assert found.cases == ("b-8_n-2", "b-16_n-2")


def test_communication_is_blamed_only_where_it_is_much_and_the_efficiency_poor():
    poor = case(100.0, n=1), case(100.0, communication=40.0, n=2)
    assert "NCCL kernels take 40.0 % of GPU time" in told(*poor, axis="n")[1].text
    assert len(told(case(100.0, n=1), case(100.0, communication=20.0, n=2), axis="n")) == 2
    assert len(told(case(100.0, n=1), case(100.0, communication=19.0, n=2), axis="n")) == 1
    assert len(told(case(100.0, n=1), case(190.0, communication=40.0, n=2), axis="n")) == 1
    assert len(told(case(100.0, n=1), case(100.0, n=2), axis="n")) == 1


def test_one_point_or_no_figure_is_no_scaling():
    assert told(case(100.0, n=1), axis="n") == []
    assert told(case(None, n=1), case(None, n=2), axis="n") == []


def test_copies_that_take_much_are_told_with_the_worst_case():
    found = told(
        case(n=1, gpu_ns=100.0, copies_ns=30.0), case(n=2, gpu_ns=100.0, copies_ns=60.0), case(n=3, gpu_ns=100.0)
    )
    (one,) = found
    assert one.text == ("Copies and sets take 60.0 % of all GPU time, set-up included, in n-2 and over 20 % in 1 more.")
    assert set(one.cases) == {"n-1", "n-2"}
    assert told(case(n=1, gpu_ns=100.0, copies_ns=19.0), case(n=2, copies_ns=5.0)) == []


def test_a_profiler_that_slowed_the_program_is_told():
    free = Figure("speed", "images/s", "baseline", False, 100.0, 98.0, 103.0, 3)
    held = Figure("speed", "images/s", "timeline", True, 80.0, 79.0, 82.0, 3)
    (one,) = told(profiled(free, held))
    assert "Profiling changed speed by up to 20 % (pass timeline, n-1)" in one.text


def profiled(free, held):
    runs = [make_run(one.pass_name, "n-1", pass_name=one.pass_name, pass_kind=kind)
            for one, kind in ((free, "baseline"), (held, "timeline"))]  # fmt: skip
    figures = (free, held)
    return replace(case(100.0, n=1), figures=figures, perturbation=tuple(perturbations(figures, runs)))


def test_a_difference_within_the_scatter_of_the_runs_is_no_finding():
    free = Figure("speed", "images/s", "baseline", False, 100.0, 70.0, 130.0, 3)
    held = Figure("speed", "images/s", "timeline", True, 80.0, 60.0, 90.0, 3)
    assert told(profiled(free, held)) == []


def test_one_run_of_each_tells_nothing_of_the_profilers_weight():
    free = Figure("speed", "images/s", "baseline", False, 100.0, 100.0, 100.0, 1)
    held = Figure("speed", "images/s", "timeline", True, 10.0, 10.0, 10.0, 1)
    assert told(profiled(free, held)) == []
