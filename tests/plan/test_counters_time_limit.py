"""The limit of a guided counters run: from its price, corrected by finished runs, never above the plan's."""

import pytest

from nsw.metrics import find_chip
from nsw.metrics.requests import estimate_passes
from nsw.plan.counters import Price, estimate_price, planned_limit_s, run_time_limit
from nsw.recipe.load import load_recipe_text

RECIPE = """\
nsw: 1
name: t
app: {command: ./program}
matrix: {n: [1, 2]}
passes:
  - counters: {kernels: {cover: 90%}TIME}
resources: {gpus: 1, time: "{{ 10 * n }}m"}
"""


def recipe(time=""):
    return load_recipe_text(RECIPE.replace("TIME", time), "recipe.yaml").recipe


DEFAULT = ["speed_of_light", "occupancy", "stalls", "roofline"]
FOUR = ["achieved_occupancy", "gld_efficiency", "ipc", "dram_utilization"]
GH100 = find_chip("gh100")


@pytest.mark.parametrize(
    ("launches", "metrics", "program_s", "took_s"),
    [  # docs/gpu-measurements.md: on an H100; one and two GPUs are H200
        pytest.param(164, [*DEFAULT, "ipc"], 12.2, 86.0, id="AlexNet"),
        pytest.param(235, [*DEFAULT, "ipc"], 13.3, 127.0, id="ResNet-50"),
        pytest.param(33, DEFAULT, 8.0, 26.0, id="libraries"),
        pytest.param(158, [*DEFAULT, "ipc"], 13.0, 92.0, id="bench"),
        pytest.param(171, [*DEFAULT, "ipc"], 17.0, 102.0, id="bench on another H100"),
        pytest.param(20, FOUR, 15.7, 18.0, id="forward passes"),
        pytest.param(19, FOUR, 16.8, 24.0, id="one GPU, 3 passes"),
        pytest.param(22, DEFAULT, 18.4, 30.0, id="two GPUs"),
        pytest.param(10, DEFAULT, 2.5, 16.5, id="a program of 0.6 s"),
    ],
)
def test_a_price_is_near_what_was_measured_and_its_bound_above_that(launches, metrics, program_s, took_s):
    found = estimate_price([50_000] * launches, estimate_passes(metrics, GH100), program_s, "kernel")
    assert took_s / 1.3 < found.expected_s < 1.3 * took_s
    assert took_s < found.at_most_s < 1.7 * took_s


def test_where_sections_are_collected_a_pass_takes_longer():
    full = estimate_passes(["set:full"], GH100)
    assert (
        230 * 2.07 < full.maximum_overhead_s(230) - full.maximum_overhead_s(0) < 1.1 * 230 * 2.07
    )  # 496 s with a program of 12 s


def test_kernel_time_counts_once_a_pass_and_under_application_replay_the_program_does():
    four = estimate_passes(FOUR, GH100)
    short, long = (estimate_price([ns], four, 10.0, "kernel") for ns in (0, 1_000_000_000))
    assert long.expected_s - short.expected_s == pytest.approx(3.0)
    assert estimate_price([0], four, 10.0, "application") == Price(30.0, 30.0)


def test_a_first_run_gets_a_wide_margin_and_never_more_than_the_plan():
    found = run_time_limit(Price(80.0, 100.0), 3600, ())
    assert (found.seconds, found.note) == (
        600, "expected to take 80 s, at most 100 s, by its price; limit 600 s instead of 3600 s"
    )  # fmt: skip
    planned = run_time_limit(Price(80.0, 100.0), 500, ())
    assert (planned.seconds, planned.note) == (
        None, "expected to take 80 s, at most 100 s, by its price; limit 500 s, as planned"
    )  # fmt: skip


def test_finished_runs_correct_the_next_by_the_slowest_of_them():
    found = run_time_limit(Price(100.0, 150.0), 3600, [(200.0, 100.0), (100.0, 40.0)])
    assert found.seconds == 195  # 1.5 * 50 + 120
    assert "expected to take 50 s by 2 finished runs" in found.note


def test_what_will_take_longer_than_the_plan_is_said_and_its_limit_left():
    found = run_time_limit(Price(100.0, 150.0), 600, [(10.0, 100.0)])
    assert found.seconds is None
    assert "expected to take 1000 s by 1 finished run, longer than its limit of 600 s: it may be cut off" in found.note


def test_the_limit_of_the_plan_is_that_of_the_pass_else_of_the_resources():
    (one,) = recipe(", time: 7m").passes
    assert planned_limit_s(recipe(), one, "n-2", {"n": 2}) == 420
    (one,) = recipe().passes
    assert planned_limit_s(recipe(), one, "n-2", {"n": 2}) == 1200
    assert planned_limit_s(recipe(), one, "n-2", {}) is None  # cannot be worked out: no other limit than the plan's
