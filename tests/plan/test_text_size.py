"""The text of a plan is bounded before it is made: a recipe of 100 kB can ask for gigabytes of scripts."""

import pytest

from nsw.plan import text_size

HEAD = "nsw: 1\nname: t\nmatrix: {n: {range: [1, 1000]}}\npasses: [baseline]\n"


@pytest.mark.parametrize(
    ("app", "place"),
    [
        (f"app:\n  command: '{'x' * 100_000} {{{{ n }}}}'\n", (6, 12)),
        (f"app:\n  command: x\n  env: {{A: '{'x' * 50_000}', B: '{'y' * 50_000}'}}\n", (7, 8)),
        (f"app:\n  command: x {{{{ n }}}}\n  build: {{command: 'make {{{{ n }}}} {'x' * 100_000}'}}\n", (6, 12)),
    ],
    ids=["command", "env", "build"],
)
def test_commands_that_are_too_long_for_so_many_runs_are_refused(planner, monkeypatch, app, place):
    monkeypatch.setattr(text_size, "MOST_TEXT", 1 << 20)
    (fault,) = planner.faults(HEAD + app)
    assert "runs alone have more than 1 Mi characters" in fault.message
    assert (fault.mark.line, fault.mark.column) == place
    planner.plan(HEAD.replace("1000", "3") + app)


def test_long_parameters_of_many_cases_are_refused(planner, monkeypatch):
    monkeypatch.setattr(text_size, "MOST_TEXT", 1 << 20)
    recipe = HEAD.replace("matrix: {", f"matrix: {{long: ['{'x' * 100_000}'], ") + "app: {command: 'x {{ n }}'}\n"
    (fault,) = planner.faults(recipe)
    assert fault.mark.line == 3


def test_a_long_set_up_of_many_jobs_is_refused(planner, monkeypatch):
    monkeypatch.setattr(text_size, "MOST_TEXT", 1 << 20)
    recipe = f"{HEAD}app:\n  command: x {{{{ n }}}}\n  setup: ['{'x' * 100_000}']\n"
    planner.plan(recipe)  # an array is one script
    (fault,) = planner.faults(recipe, "scheduler: slurm, scratch: /s, limits: {max_array: 10}")
    assert fault.message == "the set-up in the scripts of 100 jobs has more than 1 Mi characters"
    assert fault.mark.line == 7


def test_a_plan_of_many_runs_is_far_from_the_limit(planner):
    assert len(planner.plan(HEAD + "app: {command: './prog {{ n }}'}\n").cases) == 1000
    assert text_size.MOST_TEXT == 256 << 20
