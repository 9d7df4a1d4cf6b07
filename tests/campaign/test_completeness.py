"""What reports lack of what was to be recorded, by rank."""

import pytest

from nsw.engine.validity import (
    dropped_samples,
    empty_window,
    fewer_launches,
    is_recorded_to_its_end,
    reports_ended_early,
    window_gap,
)
from nsw.recipe.passes import CountersPass, TimelinePass


def timeline(**keys):
    return TimelinePass.model_validate(keys)


FIVE = timeline(within={"nvtx": "step", "count": 5})
CLOCK = timeline(after="60s", **{"for": "10s"})


@pytest.mark.parametrize(
    ("asked", "ranges", "seconds", "gap"),
    [
        (FIVE, 5, 2.0, None),
        (FIVE, 3, 2.0, "nsys captured 3 of 5 ranges 'step': no more began and ended"),
        (timeline(within="step"), 1, 0.1, None),
        (CLOCK, 1, 9.6, None),
        (CLOCK, 1, 4.2, "nsys recorded 4.2 s of 10s: the program ended before the window did"),
        (CLOCK, 1, None, None),  # a report that does not say how long it is
        (timeline(after="60s"), 1, 0.1, None),
    ],
)
def test_a_window_that_caught_less_than_was_asked_for(asked, ranges, seconds, gap):
    assert window_gap(asked, ranges, seconds) == gap


@pytest.mark.parametrize(
    ("asked", "phases", "is_whole"),
    [
        (CLOCK, [(0, 2e9), (2e9, 7.9e9)], True),
        (CLOCK, [(0, 2e9), (2e9, 4e9)], False),  # buffers of its end are missing, or the GPU had no work
        (CLOCK, [], False),
        (FIVE, [(0, 10e9)], False),  # the program is to synchronise before a range ends
    ],
)
def test_a_window_by_the_clock_is_whole_where_the_gpu_has_work_to_its_end(asked, phases, is_whole):
    rows = [{"start_ns": start, "duration_ns": length} for start, length in phases]
    assert is_recorded_to_its_end(asked, 10.0, rows) is is_whole


def test_of_a_window_without_a_report_is_asked_what_may_not_have_been():
    assert empty_window(FIVE) == "did the range 'step' begin and end?"
    assert empty_window(CLOCK) == "did the program run longer than 1m?"
    assert empty_window(timeline(**{"for": "10s"})) is None


def iterations(rank, count, **more):
    return {"rank": rank, "found_by": "nvtx", "name": "step", "iterations": count, "report": f"of {rank}"} | more


def test_a_rank_whose_trace_ends_early_is_named():
    rows = [iterations(rank, 100) for rank in (0, 1, 3)] + [iterations(2, 40)]
    assert reports_ended_early(rows) == [
        ("of 2", "rank 2 has 40 iterations (step), others up to 100: its trace ends early, or it does less")
    ]


def test_ranks_that_are_not_alike_are_not_compared():
    assert reports_ended_early([iterations(0, 100), iterations(1, 95)]) == []
    assert reports_ended_early([iterations(0, 100), iterations(1, 40, name="other")]) == []
    assert reports_ended_early([iterations(0, 100), iterations(1, 40, found_by="kernel_sequence")]) == []
    assert reports_ended_early([iterations(None, 100), iterations(None, 40)]) == []  # one report of several processes


def launches(rank, kernel, count):
    return [{"rank": rank, "pid": 7, "kernel": kernel}] * count


def counters(**keys):
    return CountersPass.model_validate({"metrics": ["sm_busy_pct"]} | keys)


def test_kernels_of_which_fewer_launches_were_measured_are_counted_by_rank():
    asked = counters(kernels={"names": ["gemm", "axpy"]}, launches={"count": 5})
    rows = launches(0, "gemm", 5) + launches(1, "gemm", 5) + launches(0, "axpy", 5) + launches(1, "axpy", 3)
    assert (
        fewer_launches(asked, rows) == "fewer launches than the 5 asked for, of 1 kernel of rank 1, such as 3 of axpy"
    )
    assert fewer_launches(asked, launches(0, "gemm", 5)) is None


def test_of_kernels_that_nobody_named_or_a_timeline_chose_no_number_is_asked_for():
    assert fewer_launches(counters(launches={"count": 5}), launches(0, "once", 1)) is None
    assert fewer_launches(counters(), launches(0, "once", 1)) is None


def test_samples_that_ncu_dropped_are_counted():
    name = "profiler__pmsampler_dropped_samples"
    rows = [{"metric": name, "value": value} for value in (0.0, 1200.0, None, 30.0)] + [{"metric": "x", "value": 9.0}]
    assert dropped_samples(rows) == f"ncu dropped 1,230 samples over time of 2 launches ({name})"
    assert dropped_samples(rows[:1]) is None
