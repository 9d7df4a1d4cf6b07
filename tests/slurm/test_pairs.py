"""`--against` a git revision on a real Slurm: both programs are built, and all pairs are measured in one job."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
import yaml

from .test_campaign import campaign, nsw_words, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .places import Real

pytestmark = pytest.mark.slurm

RECIPE = """
nsw: 1
name: pairs
app:
  command: bash prog {{ case }}
  files: [src/prog.sh, src/make.sh]
  build: {command: bash make.sh}
  figures: {time: {regex: 'time (\\d+) ms', unit: ms}}
matrix: {n: [1, 2]}
resources: {gpus: 1, time: 1m}
"""
PROGRAM = """
until [ -e WORK/go ]; do sleep 0.05; done
echo "$1 $SLURM_JOB_ID $SLURM_JOB_NODELIST" >>WORK/ran
if [ -e WORK/fails ]; then rm WORK/fails; exit 3; fi
echo time BASE ms
"""
MAKE = "echo $SLURM_JOB_ID >>WORK/built; cp prog.sh prog\n"


@pytest.fixture
def cluster(accounted: Real) -> Iterator[Real]:
    with accounted.in_folder() as place:
        yield place


def program(place: Real, base: int) -> None:
    text = PROGRAM.replace("WORK", str(place.work)).replace("BASE", str(base))
    (place.work / "src" / "prog.sh").write_text(text)


def begin(place: Real) -> tuple[str, ...]:
    """A program of 100 ms in git that takes 90 ms now; the words that compare the two."""
    assert place.run("mkdir", "src").returncode == 0
    program(place, 100)
    (place.work / "src" / "make.sh").write_text(MAKE.replace("WORK", str(place.work)))
    for words in (("init", "-q"), ("add", "src"), ("commit", "-qm", "one")):
        done = place.run("git", "-c", "user.name=n", "-c", "user.email=a@b", *words)
        assert done.returncode == 0, done.stderr
    program(place, 90)
    (place.work / "recipe.yaml").write_text(RECIPE)
    (place.work / "sites.yaml").write_text("nsw: 1\nsites:\n  c: {scheduler: slurm}\n")
    return ("run", "recipe.yaml", "--against", "HEAD", *options("campaigns"))


def options(root: str) -> tuple[str, ...]:
    return ("--site", "c", "--sites", "sites.yaml", "--root", root, "--yes")


def ran(place: Real) -> list[list[str]]:
    """The case, job and node of each program that ran, in that order."""
    file = place.work / "ran"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []


def is_measuring(place: Real) -> bool:
    return len(list(place.work.glob("campaigns/*/scratch/runs/n-*/attempt-1/claim"))) == 1


def runs(place: Real, root: str = "campaigns") -> list[dict]:
    return json.loads(place.nsw("status", "--root", root, "--json").stdout)["runs"]


def figures(folder: Path) -> dict[str, set[str]]:
    """What the programs of each side printed."""
    sides: dict[str, set[str]] = {"before": set(), "after": set()}
    for file in folder.glob("reports/*.baseline.r*/stdout"):
        sides["before" if "side-before" in file.parent.name else "after"].add(file.read_text())
    return sides


def test_pairs_of_two_revisions_share_a_job_through_a_kill_and_their_lock_does_it_again(cluster):
    process = cluster.start(*nsw_words(*begin(cluster)))
    wait_until(lambda: is_measuring(cluster))
    process.send_signal(signal.SIGKILL)
    process.wait()
    (cluster.work / "go").touch()
    cluster.nsw("resume", "--root", "campaigns", exits=0)
    assert figures(campaign(cluster)) == {"before": {"time 100 ms\n"}, "after": {"time 90 ms\n"}}
    order = [run["id"].partition(".")[0] for run in runs(cluster)]
    assert [case for case, _, _ in ran(cluster)] == order
    assert [sorted(order[at : at + 4]) for at in (0, 4, 8)] == [sorted(set(order))] * 3
    assert len({(job, node) for _, job, node in ran(cluster)}) == 1
    assert len((cluster.work / "built").read_text().split()) == 2
    lock = campaign(cluster) / "recipe.lock.yaml"
    cluster.nsw("run", str(lock), *options("again"), exits=0)
    assert [case for case, _, _ in ran(cluster)] == [*order, *order]
    locks = [
        yaml.safe_load(file.read_text())["lock"]["before"] for file in (lock, *cluster.work.glob("again/*/*.lock.yaml"))
    ]
    assert locks[0] == locks[1]


def test_what_was_cancelled_or_failed_is_done_in_its_block_again_and_nothing_else(cluster):
    process = cluster.start(*nsw_words(*begin(cluster)))
    wait_until(lambda: is_measuring(cluster))
    assert cluster.nsw("cancel", "--root", "campaigns").returncode == 0
    process.wait(timeout=300)
    assert {run["state"] for run in runs(cluster)} == {"cancelled"}
    cluster.run("touch", "go", "fails")
    cluster.nsw("retry", "--root", "campaigns", exits=1)
    assert [run["state"] for run in runs(cluster)] == ["failed", *["done"] * 11]
    assert len({job for _, job, _ in ran(cluster)}) == 1
    assert cluster.nsw("retry", "--root", "campaigns").returncode == 0
    first, *_, last = ran(cluster)
    assert (len(ran(cluster)), first[0], first[1] == last[1]) == (13, last[0], False)
    assert len({run["job_id"] for run in runs(cluster)}) == 2


def test_pairs_are_added_in_jobs_of_their_own_until_they_decide(cluster):
    words = begin(cluster)
    (cluster.work / "go").touch()
    recipe = RECIPE.replace("n: [1, 2]", "n: [1]")
    (cluster.work / "recipe.yaml").write_text(recipe)
    done = cluster.nsw(*words, "--until", "decided", "--at-most", "1h", exits=0)
    assert "3 pairs do not decide: nsw adds 5" in done.stderr
    assert "Pairs were added until they decide: 8 pairs," in done.stdout
    assert len(ran(cluster)) == 16
    assert len({job for _, job, _ in ran(cluster)}) == 2
