"""`interleave`: repeat i of every case is a block in random order, and whole blocks follow each other in one job."""

import re
from dataclasses import replace

import pytest

from nsw.plan.jobs import make_blocks
from nsw.plan.model import AROUND_S

RECIPE = """
nsw: 1
name: t
app: {command: './prog {{ n }}'}
matrix: {n: [1, 2, 3, 4]}
repeats: 3
interleave: {seed: 7}
resources: {gpus: 0, time: 1m}
"""


def blocks(job) -> list[list[str]]:
    """The cases of each block of a job, in their order."""
    made: dict[int, list[str]] = {}
    for run in job.runs:
        made.setdefault(run.repeat, []).append(run.case_id)
    assert [run.repeat for run in job.runs] == sorted(run.repeat for run in job.runs)  # no block begins within another
    return list(made.values())


def test_all_blocks_are_one_task_of_one_job_and_hold_each_case_once(planner):
    (job,) = planner.plan(RECIPE, "scheduler: slurm").jobs
    assert len(job.tasks) == 1
    assert [sorted(block) for block in blocks(job)] == [["n-1", "n-2", "n-3", "n-4"]] * 3
    assert job.walltime_s == 12 * 60 + AROUND_S


def test_the_seed_decides_on_the_order_which_differs_between_blocks(planner):
    first, same, other = (
        blocks(planner.plan(RECIPE.replace("seed: 7", f"seed: {seed}")).jobs[0]) for seed in (7, 7, 8)
    )
    assert first == same != other
    assert len({tuple(block) for block in first}) > 1


def test_the_order_of_a_seed_never_changes(planner):
    """A lock that another version of Python or nsw runs again has the same order."""
    (job,) = planner.plan(RECIPE).jobs
    assert "".join(case[-1] for block in blocks(job) for case in block) == "421332411342"


def test_blocks_that_are_added_have_an_order_of_their_own(planner):
    """Else a drift of the machine would show the same in each part of a campaign."""
    runs = planner.plan(RECIPE).runs
    first, later = (
        [
            run.case_id
            for run in make_blocks("t", [replace(run, repeat=run.repeat + n) for run in runs], 7, longest_s=None)[0]
            .jobs[0]
            .runs
        ]
        for n in (0, 3)
    )
    assert first != later
    assert sorted(first) == sorted(later)


def test_without_a_seed_each_plan_draws_one_and_says_it(planner):
    notes = [planner.plan(RECIPE.replace("{seed: 7}", "true")).notes for _ in range(20)]
    assert len({re.search(r"seed (\d+)$", " ".join(some))[1] for some in notes}) > 1


@pytest.mark.parametrize(
    ("site", "told"),
    [
        ("scheduler: slurm", "3 blocks of 4 cases, in random order, in one job on one node; seed 7"),
        (
            "scheduler: slurm, limits: {max_walltime: 10m}",
            "3 blocks of 4 cases, in random order, in 2 jobs, each on one node; seed 7",
        ),
    ],
)
def test_the_plan_says_how_many_blocks_there_are_and_where(planner, site, told):
    assert told in planner.plan(RECIPE, site).notes


def test_a_block_is_never_in_two_jobs(planner):
    jobs = planner.plan(RECIPE, "scheduler: slurm, limits: {max_walltime: 10m}").jobs  # two blocks of 4 m and a minute
    assert [{run.repeat for run in job.runs} for job in jobs] == [{1, 2}, {3}]
    assert [job.name for job in jobs] == ["t-j1", "t-j2"]


def test_a_block_that_fits_into_no_job_is_refused_at_its_key(planner):
    (fault,) = planner.faults(RECIPE, "scheduler: slurm, limits: {max_walltime: 4m}")
    assert fault.message == "a block needs a job of 00:05:00, but site here allows only 00:04:00"
    assert fault.mark.line == 7


def test_runs_of_a_block_go_one_after_the_other_where_others_go_side_by_side(planner):
    text = RECIPE.replace("gpus: 0", "gpus: 1")
    site = "scheduler: slurm, whole_nodes: true, limits: {runs_per_job: 4}"
    (alone,), (beside,) = (
        planner.plan(some, site, gpus_per_node=4).jobs for some in (text, text.replace("interleave: {seed: 7}", ""))
    )
    assert (alone.side_by_side, beside.side_by_side) == (1, 4)


def test_warm_ups_go_before_the_first_block(planner):
    plan = planner.plan(RECIPE + "warmup: 1\n", "scheduler: slurm")
    (job,) = plan.jobs
    assert [run.repeat for run in job.runs] == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert not any("warm-up runs and repeats" in note for note in plan.notes)


def test_other_passes_have_jobs_of_their_own_after_the_blocks(planner):
    text = RECIPE + "passes: [timeline: {tool: nsys}, baseline]\n"
    plan = planner.plan(text, "scheduler: slurm", tools={"nsys": "nsys"})
    assert [(job.name, {run.pass_name for run in job.runs}) for job in plan.jobs] == [
        ("t-j1", {"baseline"}), ("t-j2", {"timeline"}),
    ]  # fmt: skip


def test_cases_that_need_other_resources_have_blocks_of_their_own(planner):
    text = RECIPE.replace("gpus: 0", 'gpus: "{{ 1 if n < 3 else 2 }}"')
    plan = planner.plan(text, "scheduler: slurm")
    assert [[sorted(block) for block in blocks(job)] for job in plan.jobs] == [
        [["n-1", "n-2"]] * 3, [["n-3", "n-4"]] * 3,
    ]  # fmt: skip
    assert [job.resources.gpus for job in plan.jobs] == [1, 2]


def test_interleave_false_is_as_if_it_were_not_written(planner):
    plan = planner.plan(RECIPE.replace("{seed: 7}", "false"), "scheduler: slurm")
    assert [len(job.tasks) for job in plan.jobs] == [12]
