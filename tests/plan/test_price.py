"""What counters cost, expected and at most, told before anything is submitted."""

import pytest

from nsw.metrics import find_chip
from nsw.metrics.requests import estimate_passes

GH100 = find_chip("gh100")
HEAD = "nsw: 1\nname: t\nresources: {gpus: 0}\napp: {command: ./p}\n"
TOOLS = {"ncu": "/opt/ncu", "nvprof": "/opt/nvprof", "nsys": "/opt/nsys"}


@pytest.mark.parametrize(
    ("names", "measured"),
    [  # what ncu 2025.3 did on an H200
        (["diagnosis"], 12),
        (["speed_of_light", "occupancy", "stalls", "roofline"], 21),
        (["achieved_occupancy", "gld_efficiency", "ipc", "dram_utilization"], 3),
        (["speed_of_light", "occupancy", "stalls", "roofline", "ipc"], 21),
        (["memory", "stalls", "occupancy"], 12),
        (["set:full"], 38),
        (["set:basic", "section:WarpStateStats", "dram_bytes"], 17),
        (["sm__throughput.avg.pct_of_peak_sustained_elapsed"], 1),
    ],
)
def test_the_bound_holds_of_what_was_measured(names, measured):
    found = estimate_passes(names, GH100)
    assert measured <= found.at_most <= 1.2 * measured
    assert found.measured


def test_of_another_chip_it_is_an_estimate():
    assert not estimate_passes(["ipc"], find_chip("ga100")).measured
    assert not estimate_passes(["ipc"], None).measured
    assert estimate_passes(["set:own"], None).at_most == 40


def told(planner, counters, chip="gh100"):
    recipe = f"{HEAD}matrix: {{n: [1, 2]}}\npasses: [counters: {{{counters}}}]\n"
    return planner.plan(recipe, f"scheduler: local, gpus: {{chip: {chip}}}", tools=TOOLS).notes


def test_a_plan_tells_passes_launches_and_time_once(planner):
    added, note = told(planner, "kernels: {cover: 90%, at_most: 10}, launches: {sample: 3}, metrics: ['set:basic']")
    assert added == "pass timeline is added, a run a case: its timeline shows which kernels cost most"
    assert note == (
        "counters: ncu measures some 48 kernel launches of each run, and runs each 10 times, about 0.4 s (measured on"
        " gh100): about 26 s a run beside the program's own time, at most 56 s; 30 would do, but ncu cannot choose them"
        " kernel by kernel"
    )
    (note,) = told(planner, "kernels: {names: [a, b]}, launches: {count: 3}, metrics: [ipc]")
    assert note == (
        "counters: ncu measures some 6 kernel launches of each run, and runs each 1 time, about 0.03 s (measured on"
        " gh100): about 6 s a run beside the program's own time, at most 12 s"
    )
    (note,) = told(planner, "kernels: {regex: gemm}, launches: {count: 3}, metrics: [ipc]", "ga100")
    assert note == (
        "counters: ncu measures every launch that the filter matches, and runs each 1 time, about 0.03 s (estimated as on"
        " gh100)"
    )


def test_a_timeline_that_is_not_carried_out_is_not_said_to_be_added(planner):
    recipe = f"{HEAD}passes: [baseline, counters: {{kernels: {{cover: 90%}}}}]\n"
    notes = planner.plan(recipe, "scheduler: local, gpus: {chip: gh100}", tools={"ncu": TOOLS["ncu"]}).notes
    assert not any("is added" in note for note in notes)


def test_passes_that_were_not_measured_together_are_expected_with_a_bound(planner):
    (note,) = told(planner, "kernels: {names: [k]}, launches: {count: 1}, metrics: [compute, tensor]")
    assert "and runs each 13 times, at most 20, about " in note


def test_metrics_that_the_chip_does_not_have_are_told_and_the_rest_is_measured(planner):
    _, note = told(planner, "tool: nvprof, kernels: {names: [k]}, launches: {count: 1}, metrics: [roofline]", "gp100")
    assert note.startswith("counters: left out (nvprof has no such metric): duration, l1_bytes, ")
    assert note.endswith(" more")


def test_what_is_run_again_is_told_where_it_is_no_single_launch(planner):
    (note,) = told(planner, "within: step, replay: range, metrics: ['set:full']")
    assert note == "counters: the range is run some 38 times (as a launch on gh100: an estimate)"
    note, *_ = told(planner, "within: step, replay: app-range, metrics: [compute, tensor]")
    assert note == "counters: the whole program is run some 13 to 20 times (as a launch on gh100: an estimate)"


def test_what_has_no_price_is_told(planner):
    (note,) = told(planner, "kernels: {names: [k]}, launches: {count: 1}, metrics: [ipc]", "gp100")
    assert note == "counters: how often nvprof runs a launch again was not measured: only the limit bounds it"


def test_a_chip_that_nsw_does_not_know_is_told(planner):
    _, note = told(planner, "kernels: {names: [k]}, launches: {count: 1}, metrics: [ipc]", "zz999")
    assert note == "counters: nsw knows no chip zz999: metrics are not checked before a run has met the GPU"
