"""`app.build` on this machine: a task like any other, during which nothing is measured."""

import json
import signal

import pytest

from .test_going_on import HEAD, PATIENCE_S, wait_until

BUILD = "app: {command: bash prog.sh, files: [make.sh], build: {command: 'bash make.sh {{ kind }}'}}\n"
CASES = "matrix: {kind: [one, two], n: [1, 2]}\n"


def make(road, text: str) -> str:
    """The recipe of a program that `text` builds, and which fails where anything is built beside it."""
    program = f"test ! -e '{road.home}/building'* || exit 7; echo $1"
    (road.home / "make.sh").write_text(
        f"echo \"$1 ${{CUDA_VISIBLE_DEVICES-none}}\" >>'{road.home}/built'; touch '{road.home}/building'$1\n{text}\n"
        f"rm '{road.home}/building'$1; echo \"{program}\" >prog.sh\n"
    )
    return HEAD + BUILD + CASES


def built(road) -> list[str]:
    file = road.home / "built"
    return sorted(line.split()[0] for line in file.read_text().splitlines()) if file.exists() else []


def builds(road) -> dict[str, dict]:
    return {build["id"]: build for build in road.status()["builds"]}


@pytest.mark.parametrize("site", ["here", "one"])
def test_nothing_is_measured_while_something_is_built(road, site):
    road.environment["CUDA_VISIBLE_DEVICES"] = "0,1"
    road.run(make(road, "[ $1 = one ] || sleep 2"), site=site, exits=0)
    # a compiler finds the GPUs that it would find when run by hand
    assert sorted((road.home / "built").read_text().splitlines()) == ["one 0,1", "two 0,1"]
    assert {name: build["state"] for name, build in builds(road).items()} == {
        "build-kind-one": "done", "build-kind-two": "done",
    }  # fmt: skip


def test_a_build_goes_on_without_nsw_is_seen_while_it_runs_and_is_not_done_twice(road):
    recipe = road.recipe(make(road, f"until [ -e '{road.home}/go' ]; do sleep 0.05; done"))
    process = road.start("run", str(recipe), "--site", "one")
    wait_until(lambda: built(road) == ["one"])
    wait_until(lambda: builds(road)["build-kind-one"]["state"] == "running")
    assert builds(road)["build-kind-one"]["host"]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert (built(road), (road.home / "buildingone").exists()) == (["one"], True)
    (road.home / "go").touch()
    road.nsw("resume", exits=0)
    assert built(road) == ["one", "two"]
    assert {run["state"] for run in road.runs().values()} == {"done"}


def test_of_two_builds_one_fails_and_the_runs_of_the_other_are_done(road):
    done = road.run(make(road, "rm '" + str(road.home) + "/building'$1; [ $1 = one ] || { echo oh >&2; exit 3; }"))
    assert done.returncode == 1
    assert "the build step failed with exit status 3: bash make.sh two\n  | oh\n" in done.stderr
    reasons = {run["reason"] for run in road.runs().values() if run["state"] == "failed"}
    assert reasons == {"its build failed: exit status 3: oh; `nsw logs build-kind-two` prints its output"}
    assert road.status()["counts"] == {"done": 2, "failed": 2}


def test_a_build_that_fails_names_what_goes_on_and_that_builds_again(road):
    failed = road.run(make(road, "echo 'prog.cu(3): error' >&2; exit 2"), exits=2)
    assert "  | prog.cu(3): error" in failed.stderr
    assert "retry --update-app`, which builds again and continues" in failed.stderr
    assert "build.txt" in failed.stderr
    for left in road.home.glob("building*"):
        left.unlink()
    make(road, "true")
    done = road.nsw("retry", "--update-app", exits=0)
    assert "the build step failed" not in done.stderr  # the one that failed is needed no more
    assert {run["state"] for run in road.runs().values()} == {"done"}


def test_nsw_cancel_ends_a_build(road):
    recipe = road.recipe(make(road, "sleep 600"))
    process = road.start("run", str(recipe), "--site", "one")
    wait_until(lambda: built(road) == ["one"])
    assert road.nsw("cancel").returncode == 0
    process.communicate(timeout=PATIENCE_S)
    assert builds(road)["build-kind-one"]["state"] == "cancelled"
    assert road.status()["counts"] == {"cancelled": 4}
    assert built(road) == ["one"]


def test_what_an_older_nsw_left_in_the_middle_of_a_build_is_built_again(road):
    """It built without a submission; a ledger of it says so."""
    import sqlite3
    from contextlib import closing

    recipe = road.recipe(make(road, "exit 1"))
    assert road.nsw("run", str(recipe), "--site", "one").returncode == 2
    for left in road.home.glob("building*"):
        left.unlink()
    for script in (road.scratch / "app").parent.glob("app*/make.sh"):
        script.write_text("echo echo fine >prog.sh\n")
    with closing(sqlite3.connect(road.campaign / "campaign.db")) as db, db:
        db.execute("UPDATE tasks SET state = 'running', submission = NULL WHERE kind = 'build'")
        db.execute("UPDATE tasks SET state = 'planned', submission = NULL, attempt = 0 WHERE kind = 'run'")
    road.nsw("resume", exits=0)
    assert json.loads(road.nsw("status", "--json").stdout)["counts"] == {"done": 4}
