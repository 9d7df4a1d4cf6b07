"""What counters cost at most, told before anything is submitted."""

import pytest

from nsw.metrics import find_chip
from nsw.metrics.replay_passes import passes

GH100 = find_chip("gh100")
HEAD = "nsw: 1\nname: t\nresources: {gpus: 0}\napp: {command: ./p}\n"
TOOLS = {"ncu": "/opt/ncu", "nvprof": "/opt/nvprof", "nsys": "/opt/nsys"}


@pytest.mark.parametrize(
    ("names", "measured"),
    [  # what ncu 2025.3 did on an H200
        (["speed_of_light", "occupancy", "stalls", "roofline"], 21),
        (["achieved_occupancy", "gld_efficiency", "ipc", "dram_utilization"], 3),
        (["set:full"], 38),
        (["set:basic", "section:WarpStateStats", "dram_bytes"], 17),
        (["sm__throughput.avg.pct_of_peak_sustained_elapsed"], 1),
    ],
)
def test_the_bound_holds_of_what_was_measured(names, measured):
    found = passes(names, GH100)
    assert measured <= found.at_most <= 2 * measured
    assert found.measured


def test_of_another_chip_it_is_an_estimate():
    assert not passes(["ipc"], find_chip("ga100")).measured
    assert not passes(["ipc"], None).measured
    assert passes(["set:own"], None).at_most == 40


def told(planner, counters, chip="gh100"):
    recipe = f"{HEAD}matrix: {{n: [1, 2]}}\npasses: [counters: {{{counters}}}]\n"
    return planner.plan(recipe, f"scheduler: local, gpus: {{chip: {chip}}}", tools=TOOLS).notes


def test_a_plan_tells_passes_launches_and_time_once(planner):
    (note,) = told(planner, "kernels: {cover: 90%, at_most: 10}, launches: {sample: 3}, metrics: ['set:basic']")
    assert note == (
        "counters: at most 10 passes a launch (measured on gh100), about 0.4 s each; some 30 launches a run, 11 s and the"
        " program's own time"
    )
    (note,) = told(planner, "kernels: {regex: gemm}, launches: {count: 3}, metrics: [ipc]", "ga100")
    assert note.endswith("(as on gh100: an estimate), about 0.05 s each, of every launch that its filter matches")


def test_metrics_that_the_chip_does_not_have_are_told_and_the_rest_is_measured(planner):
    (note,) = told(planner, "tool: nvprof, kernels: {names: [k]}, launches: {count: 1}, metrics: [roofline]", "gp100")
    assert note.startswith("counters: left out (nvprof has no such metric): duration, l1_bytes, ")
    assert note.endswith(" more")
