"""`nsw logs`: following what a run prints, and what is left when a site has cleared its scratch away."""

from __future__ import annotations

import shutil
import signal

import pytest

from tests.road.test_going_on import PATIENCE_S, wait_until

HEAD = "nsw: 1\nname: t\nresources: {gpus: 0, time: 5m}\npasses: [baseline]\n"


def recipe(road, program, more=""):
    return road.recipe(f"{HEAD}{more}app:\n  command: |\n    {program}\n")


def is_driven(road):
    """Whether the lock names its owner: between the ledger's beginning and that, nobody drives the campaign."""
    return any(lock.stat().st_size for lock in road.root.glob("[!.]*/lock"))


def lines_of(process, *texts):
    """What it prints, until a line had each of these texts."""
    seen = []
    for line in process.stdout:
        seen.append(line)
        if all(any(text in line for line in seen) for text in texts):
            break
    return "".join(seen)


@pytest.mark.far(quick=True)
def test_logs_are_followed_from_before_a_run_begins_until_it_ends(road):
    go = f"until [ -e '{road.home}/go' ]; do sleep 0.05; done"
    words = f"printf 'one\\ntwo\\n\\033[31mred\\nhalf'; echo oops >&2; {go}; echo ' a line'; echo last"
    process = road.start("run", str(recipe(road, words)), "--site", "here")
    wait_until(lambda: is_driven(road))
    following = road.start("logs", "-f")
    begun = lines_of(following, "red", "oops")  # of two streams, which may come in any order
    assert "one\ntwo\n" in begun
    assert "half" not in begun, "a line is printed when it is whole"
    (road.home / "go").touch()
    rest, told = following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0, told
    assert "half a line\nlast\n" in rest
    assert rest.rstrip().endswith("case.baseline.r1: done")
    assert "\x1b" not in begun + rest
    process.communicate(timeout=PATIENCE_S)


@pytest.mark.far
def test_ctrl_c_ends_following_and_nothing_else(road):
    words = f"echo here; until [ -e '{road.home}/go' ]; do sleep 0.05; done"
    process = road.start("run", str(recipe(road, words)), "--site", "here")
    wait_until(lambda: is_driven(road))
    following = road.start("logs", "-f")
    lines_of(following, "here")
    following.send_signal(signal.SIGINT)
    _, told = following.communicate(timeout=PATIENCE_S)
    assert (following.returncode, told) == (130, "")
    assert process.poll() is None
    (road.home / "go").touch()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_a_run_that_goes_on_without_nsw_is_followed_to_its_end(road):
    words = f"echo here; until [ -e '{road.home}/go' ]; do sleep 0.05; done; echo over"
    process = road.start("run", str(recipe(road, words)), "--site", "here")
    wait_until(lambda: any(road.root.glob("[!.]*/scratch/runs/*/attempt-1/stdout")) if road.root.exists() else False)
    process.kill()
    process.communicate()
    following = road.start("logs", "-f")
    lines_of(following, "here")
    (road.home / "go").touch()
    rest, _ = following.communicate(timeout=PATIENCE_S)
    assert "over\n" in rest
    assert "is over, and no nsw drives its campaign: `" in rest


@pytest.mark.far
def test_logs_are_shown_from_what_was_brought_when_the_site_cleared_its_scratch(road):
    road.nsw("run", str(recipe(road, "echo all is well; echo but this >&2")), "--site", "here", exits=0)
    assert "all is well" in road.nsw("logs").stdout
    shutil.rmtree(road.scratch)
    said = road.nsw("logs", exits=0)
    assert "all is well" in said.stdout
    assert "but this" in said.stdout


def test_some_runs_are_cancelled_and_the_others_go_on(road):
    go = f"until [ -e '{road.home}/go' ]; do sleep 0.05; done"
    process = road.start("run", str(recipe(road, go, "matrix: {a: [1, 2, 3]}\n")), "--site", "here")
    wait_until(lambda: road.root.exists() and any(road.root.glob("[!.]*/campaign.db")))
    wait_until(lambda: sum(run["state"] == "running" for run in road.runs().values()) == 2)
    road.nsw("cancel", "--case", "a=1", "--case", "a-3", exits=0)
    states = {run["case"]: run["state"] for run in road.runs().values()}
    assert states == {"a-1": "cancelled", "a-2": "running", "a-3": "cancelled"}
    (road.home / "go").touch()
    process.communicate(timeout=PATIENCE_S)
    assert road.runs()["a-2.baseline.r1"]["state"] == "done"
    assert "these runs have ended" in road.nsw("cancel", "--case", "a=1").stderr
