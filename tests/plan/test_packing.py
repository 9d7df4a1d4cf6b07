"""Runs become jobs: equal resources share an array, sites bound arrays and pack runs."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.plan.jobs import pack_jobs
from nsw.plan.model import AROUND_S, Plan, Resources, Run
from nsw.present.plan_view import plan_data, show_plan
from nsw.present.terminal import console

HEAD = "nsw: 1\nname: t\napp: {command: ./prog}\npasses: [baseline]\n"


def run(number: int, **needs) -> Run:
    return Run(f"r{number}", f"c{number}", {}, "baseline", "baseline", None, 1, ("true",), {}, Resources(**needs))


def packed(runs, *, runs_per_task=1, max_array=1000):
    return pack_jobs("n", runs, runs_per_task=runs_per_task, max_array=max_array)


def ids(job):
    return [[r.id for r in task] for task in job.tasks]


def test_equal_resources_share_an_array_in_the_order_of_the_runs():
    jobs = packed([run(1, gpus=1), run(2, gpus=2), run(3, gpus=1)])
    assert [(j.name, ids(j)) for j in jobs] == [("n-j1", [["r1"], ["r3"]]), ("n-j2", [["r2"]])]


def test_a_longer_limit_needs_no_job_of_its_own_and_the_longest_counts():
    (job,) = packed([run(1, time_s=60), run(2, time_s=600), run(3, time_s=90)])
    assert job.walltime_s == 600 + AROUND_S


def test_an_array_is_no_longer_than_the_site_allows():
    jobs = packed([run(n) for n in range(5)], max_array=2)
    assert [len(j.tasks) for j in jobs] == [2, 2, 1]


def test_runs_are_packed_in_a_task_and_its_limit_is_their_sum():
    jobs = packed([run(n, time_s=100 * (n + 1)) for n in range(5)], runs_per_task=2, max_array=2)
    assert [ids(j) for j in jobs] == [[["r0", "r1"], ["r2", "r3"]], [["r4"]]]
    assert [j.walltime_s for j in jobs] == [700 + AROUND_S, 500 + AROUND_S]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=40), st.integers(1, 5), st.integers(1, 7))
def test_every_run_is_in_one_job_once_and_no_bound_is_passed(needs, runs_per_task, max_array):
    runs = [run(n, gpus=gpus, time_s=time) for n, (gpus, time) in enumerate(needs)]
    jobs = packed(runs, runs_per_task=runs_per_task, max_array=max_array)
    assert sorted(r.id for j in jobs for r in j.runs) == sorted(r.id for r in runs)
    assert len({j.name for j in jobs}) == len(jobs)
    for job in jobs:
        assert len(job.tasks) <= max_array
        assert all(1 <= len(task) <= runs_per_task for task in job.tasks)
        assert len({r.resources.gpus for r in job.runs}) == 1
        assert all(sum(r.resources.time_s for r in task) + AROUND_S <= job.walltime_s for task in job.tasks)


def test_the_sites_limits_decide_on_packing(planner):
    recipe = HEAD + "repeats: 10\nresources: {gpus: 0, time: 1m}\n"
    plan = planner.plan(recipe, "scheduler: local, limits: {max_array: 2, runs_per_job: 3}")
    assert [[len(task) for task in job.tasks] for job in plan.jobs] == [[3, 3], [3, 1]]


def test_the_price_counts_all_gpus_and_nodes_for_all_of_the_time(planner):
    recipe = HEAD + 'repeats: 3\nmatrix: {n: [1, 2]}\nresources: {gpus: "{{ 4 * n }}", nodes: "{{ n }}", time: 30m}\n'
    plan = planner.plan(recipe, gpus_per_node=4)
    hours = (1800 + AROUND_S) / 3600  # a task's limit, as the scheduler is asked for it
    assert plan.gpu_hours == pytest.approx(3 * (4 + 8) * hours)
    assert plan.node_hours == pytest.approx(3 * (1 + 2) * hours)


def test_a_pass_with_a_time_of_its_own_costs_that(planner):
    recipe = "nsw: 1\nname: t\napp: {command: ./prog}\npasses: [baseline, timeline: {tool: nsys, time: 1h}]\n"
    plan = planner.plan(recipe + "resources: {gpus: 1, time: 30m}\n", tools={"nsys": "nsys"})
    assert [r.resources.time_s for r in plan.runs] == [1800, 3600]
    assert plan.gpu_hours == pytest.approx(2 * (3600 + AROUND_S) / 3600)  # both tasks of the array ask for the longer


BUILT = """
nsw: 1
name: t
app: {command: ./prog, files: [], build: {command: make, where: WHERE, time: 30m}}
passes: [baseline]
resources: {gpus: 0, time: 1h}
"""


def test_a_build_in_a_job_costs_and_is_shown_and_one_on_the_login_node_does_not_cost(planner, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    here = "scheduler: slurm"
    in_job, on_login = (planner.plan(BUILT.replace("WHERE", where), here) for where in ("job", "login"))
    assert in_job.node_hours == pytest.approx((1800 + 3600 + 2 * AROUND_S) / 3600)
    assert on_login.node_hours == pytest.approx((3600 + AROUND_S) / 3600)
    assert [(b["name"], b["where"]) for b in plan_data(in_job)["builds"]] == [("t-build", "job")]
    shown = io.StringIO()
    for plan in (in_job, on_login):
        show_plan(console(shown), plan, [])
    assert "the build" in shown.getvalue()
    assert "the build, on the login node" in shown.getvalue()


def test_the_plan_says_how_many_runs_wait_for_nsw_to_read_another_pass(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    first, later = run(1), [replace(run(n), needs="c1.timeline") for n in (2, 3)]
    shown = io.StringIO()
    show_plan(
        console(shown), Plan("n", "s", ("c1",), pack_jobs("t", [first, *later], runs_per_task=1, max_array=9)), []
    )
    assert "2 runs can only begin once nsw has read another pass of the same case" in shown.getvalue()
    assert "they wait for `nsw resume`" in shown.getvalue()


def test_a_packed_task_holds_runs_of_one_stage():
    stages = ("", "first", "second")
    runs = [replace(run(n), needs=f"c{n}.{stages[n % 3]}" if n % 3 else "") for n in range(9)]
    jobs = pack_jobs("t", runs, runs_per_task=4, max_array=9)
    found = [{r.needs.partition(".")[2] for r in task} for job in jobs for task in job.tasks]
    assert found == [{""}, {"first"}, {"second"}]
