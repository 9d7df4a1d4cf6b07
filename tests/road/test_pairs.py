"""Cases that are measured in pairs: blocks in random order in one job, and two versions of the program side by side."""

import signal

import yaml

from .test_going_on import wait_until

BLOCKS = """
nsw: 1
name: pairs
app: {command: "echo {{ n }} >>'HOME/began'; until [ -e 'HOME/go' ]; do sleep 0.05; done; echo time {{ n }}"}
matrix: {n: [1, 2, 3, 4]}
repeats: 3
interleave: true
resources: {gpus: 0, time: 1m}
"""


def blocks(road) -> str:
    return BLOCKS.replace("HOME", str(road.home))


def began(road) -> list[str]:
    """What the programs wrote when they began, in that order."""
    file = road.home / "began"
    return file.read_text().split() if file.exists() else []


def planned(road) -> list[str]:
    """The parameters of the runs in the order of the plan, as the ledger has it."""
    return [str(run["params"]["n"]) for run in road.status()["runs"]]


def test_blocks_are_done_in_the_order_of_the_plan_in_one_job_and_the_lock_repeats_it(road):
    (road.home / "go").touch()
    done = road.run(blocks(road))
    assert done.returncode == 0, done.stderr
    lock = road.campaign / "recipe.lock.yaml"
    seed = yaml.safe_load(lock.read_text())["interleave"]["seed"]
    assert f"3 blocks of 4 cases, in random order, in one job on one node; seed {seed}" in done.stderr
    order = began(road)
    assert [sorted(order[at : at + 4]) for at in (0, 4, 8)] == [["1", "2", "3", "4"]] * 3
    assert planned(road) == order
    assert len({run["job_id"] for run in road.runs().values()}) == 1
    again = road.nsw("run", str(lock), "--root", str(road.home / "again"))
    assert again.returncode == 0, again.stderr
    assert began(road) == [*order, *order]


def test_a_killed_nsw_leaves_the_blocks_going_and_each_run_is_done_once(road):
    process = road.start("run", str(road.recipe(blocks(road))), "--site", "here")
    wait_until(lambda: began(road))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (road.home / "go").touch()
    done = road.nsw("resume")
    assert done.returncode == 0, done.stderr
    assert road.status()["counts"] == {"done": 12}
    assert began(road) == planned(road)
