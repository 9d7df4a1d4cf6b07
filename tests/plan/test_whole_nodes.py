"""Sites that give whole nodes: what they cost, and small runs side by side on one."""

from __future__ import annotations

import subprocess

import pytest

from nsw.plan.jobs import runs_per_node, runs_within_walltime
from nsw.plan.model import Resources
from nsw.scripts.render import render_job, write_machinery

RECIPE = "nsw: 1\nname: t\napp: {command: ./x}\nmatrix: {n: [1, 2, 3, 4, 5]}\npasses: [baseline]\n"
SITE = "scheduler: cobalt, gpus: {per_node: 4}, whole_nodes: true"


def plan(planner, resources: str, limits: str = "runs_per_job: 1", site: str = SITE):
    return planner.plan(f"{RECIPE}resources: {resources}\n", f"{site}, limits: {{{limits}}}", gpus_per_node=4)


def test_the_whole_node_is_paid_for(planner):
    whole = plan(planner, "{gpus: 1, time: 59m}")
    shared = plan(planner, "{gpus: 1, time: 59m}", site=SITE.replace("true", "false"))
    assert (whole.node_hours, whole.gpu_hours) == (5, 20)
    assert (shared.node_hours, shared.gpu_hours) == (5, 5)


@pytest.mark.parametrize(
    ("gpus", "runs", "lanes", "minutes"),
    [(1, 4, 4, 10), (2, 4, 2, 20), (1, 8, 4, 20), (3, 4, 1, 40), (0, 4, 1, 40), (1, 2, 2, 10)],
)
def test_runs_of_a_job_go_side_by_side_as_their_gpus_allow(planner, gpus, runs, lanes, minutes):
    (job,) = plan(planner, f"{{gpus: {gpus}, time: 10m}}", f"runs_per_job: {runs}").jobs
    assert job.side_by_side == lanes
    first = job.tasks[0]
    assert sorted(run.id for lane in job.lanes(first) for run in lane) == sorted(run.id for run in first)
    assert job.walltime_s == (minutes if runs <= 5 else 20) * 60 + 60


def test_runs_fill_the_longest_walltime(planner):
    (job,) = plan(planner, "{gpus: 2, time: 10m}", "runs_per_job: fill, max_walltime: 25m").jobs
    assert [len(task) for task in job.tasks] == [4, 1]
    assert job.walltime_s <= 25 * 60


def test_what_does_not_fit_is_refused_at_its_line(planner):
    fault = planner.faults(
        f"{RECIPE}resources: {{gpus: 4, time: 10m}}\n",
        f"{SITE}, limits: {{runs_per_job: 3, max_walltime: 20m}}",
        gpus_per_node=4,
    )[0]
    assert "a job would need" in fault.message
    plan(planner, "{gpus: 1, time: 10m}", "runs_per_job: 4, max_walltime: 20m")


def test_runs_over_several_nodes_follow_each_other():
    assert runs_per_node(Resources(nodes=2, gpus=2), 4) == 1
    assert runs_per_node(Resources(gpus=1), 0) == 1
    assert runs_within_walltime(600, None) == 1
    assert runs_within_walltime(600, 30 * 60) == 2


def test_each_run_sees_gpus_of_its_own_and_they_go_at_the_same_time(planner, tmp_path):
    found = planner.plan(
        "nsw: 1\nname: t\n"
        # each waits for the other: one after another they would never end
        f"app: {{command: \"bash -c 'echo $CUDA_VISIBLE_DEVICES; touch {tmp_path}/{{{{ n }}}}; until [ -e {tmp_path}/1 ] && [ -e {tmp_path}/2 ]; do sleep 0.05; done'\"}}\n"
        "matrix: {n: [1, 2, 3]}\npasses: [baseline]\nresources: {gpus: 2, time: 1m}\n",
        f"{SITE}, limits: {{runs_per_job: 3}}",
        gpus_per_node=4,
    )
    (job,) = found.jobs
    (tmp_path / "s" / "scripts").mkdir(parents=True)
    write_machinery(tmp_path / "s" / "scripts")
    script = tmp_path / "j.sh"
    script.write_text(render_job(found, job, scheduler="cobalt", campaign="c", scratch=str(tmp_path / "s")))
    subprocess.run(["bash", script, "1", "0"], check=True, timeout=60, env={"PATH": "/usr/bin:/bin"})
    said = {run.id: (tmp_path / "s" / "runs" / run.id / "attempt-1" / "stdout").read_text().strip() for run in job.runs}
    assert list(said.values()) == ["0,1", "2,3", "0,1"]
    status = (tmp_path / "s" / "runs" / job.runs[1].id / "attempt-1" / "status").read_text()
    assert "gpus=2,3" in status
    subprocess.run(["bash", script, "2", "0"], check=True, timeout=60, env={"PATH": "/usr/bin:/bin"})  # nothing is left
    assert not (tmp_path / "s" / "runs" / job.runs[0].id / "attempt-2").exists()
