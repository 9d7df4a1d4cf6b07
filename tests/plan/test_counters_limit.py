"""The limit of a guided counters run: from its price, corrected by finished runs, never above the plan's."""

import pytest

from nsw.plan.counters_limit import estimated_s, limit, planned_s
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


def test_the_price_is_program_launches_passes_and_kernel_time():
    # measured on an H100: 171 launches, 34 passes at most, the program 17 s under nsys: 102 s
    price = estimated_s([90_000] * 171, 34, 17.0, "kernel")
    assert price == pytest.approx(17 + 171 * (0.01 + 34 * 0.035) + 34 * 171 * 90e-6)
    assert 102 < price < 300
    assert estimated_s([90_000] * 171, 34, 17.0, "application") == 34 * 17.0


def test_a_first_run_gets_a_wide_margin_and_never_more_than_the_plan():
    found = limit(100.0, 3600, ())
    assert (found.seconds, found.note) == (600, "expected to take 100 s by its price; limit 600 s instead of 3600 s")
    planned = limit(100.0, 500, ())
    assert (planned.seconds, planned.note) == (None, "expected to take 100 s by its price; limit 500 s, as planned")


def test_finished_runs_correct_the_next_by_the_slowest_of_them():
    found = limit(100.0, 3600, [(200.0, 100.0), (100.0, 40.0)])
    assert found.seconds == 195  # 1.5 * 50 + 120
    assert "expected to take 50 s by 2 finished runs" in found.note


def test_what_will_take_longer_than_the_plan_is_said_and_its_limit_left():
    found = limit(100.0, 600, [(10.0, 100.0)])
    assert found.seconds is None
    assert "expected to take 1000 s by 1 finished run, longer than its limit of 600 s: it may be cut off" in found.note


def test_the_limit_of_the_plan_is_that_of_the_pass_else_of_the_resources():
    (one,) = recipe(", time: 7m").passes
    assert planned_s(recipe(), one, "n-2", {"n": 2}) == 420
    (one,) = recipe().passes
    assert planned_s(recipe(), one, "n-2", {"n": 2}) == 1200
    assert planned_s(recipe(), one, "n-2", {}) is None  # cannot be worked out: no other limit than the plan's
