"""Whole campaigns on a real Slurm, as a user who is not root: `nsw run`, killed and resumed, nothing lost or twice."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from nsw.engine.ledger import Ledger

from .places import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .places import Fake, Real

pytestmark = pytest.mark.slurm

SITES = """
nsw: 1
sites:
  mycluster:
    scheduler: slurm
    python: /usr/bin/python3
KEYS    limits: {max_in_flight: 16, max_array: MOST, runs_per_job: PACKED, lost_after: LOST}
"""
RECIPE = """
nsw: 1
name: many
app:
  command: bash -c 'echo {{ n }} >> WORK/ran; BODY'
matrix:
  n: {range: [1, COUNT]}
passes: [baseline: {}]
resources: {gpus: 1, time: LIMIT, memory: 50M}
"""


@pytest.fixture(params=["accounted", "unaccounted", pytest.param("far", marks=pytest.mark.soak)])
def cluster(request) -> Iterator[Real]:
    found = request.getfixturevalue(request.param)
    if request.param == "far":
        yield found
        return
    with found.in_folder() as place:
        yield place


def recipe(
    place: Fake | Real,
    count: int,
    body: str = "true",
    most: int = 1000,
    extra: str = "",
    packed: int = 1,
    limit: str = "1m",
    lost_after: str = "2m",
) -> tuple[str, ...]:
    """Files for a campaign of `count` runs, each with that time limit; the words that choose them."""
    text = RECIPE.replace("COUNT", str(count)).replace("WORK", str(place.work)).replace("BODY", body)
    (place.work / "recipe.yaml").write_text(text.replace("LIMIT", limit) + extra)
    sites = SITES.replace("MOST", str(most)).replace("PACKED", str(packed)).replace("KEYS", place.site_keys)
    sites = sites.replace("LOST", lost_after)
    (place.work / "sites.yaml").write_text(sites)
    return ("recipe.yaml", "--site", "mycluster", "--sites", "sites.yaml", "--root", "campaigns", "--yes")


def ran(place: Fake | Real) -> list[int]:
    """Which programs ran, each as often as it did."""
    file = place.work / "ran"
    return sorted(int(n) for n in file.read_text().split()) if file.exists() else []


def campaign(place: Fake | Real) -> Path:
    (found,) = (place.work / "campaigns").glob("*-*")
    return found


def in_queue(place: Real, states: str = "PD,R,CG", field: str = "%T") -> list[str]:
    """What squeue shows of the campaign's tasks; others may use the cluster at the same time."""
    told = place.run("squeue", "--me", "-h", "-r", "-t", states, "-o", f"{field} %k").stdout.splitlines()
    return [line.split()[0] for line in told if line.endswith(f" nsw:{campaign(place).name}")]


def states(place: Fake | Real) -> dict[str, int]:
    with Ledger(campaign(place) / "campaign.db", read_only=True) as ledger:
        return ledger.counts()


def test_twenty_runs_are_done_once_in_one_array(cluster):
    done = cluster.nsw("run", *recipe(cluster, 20), exits=0)
    assert states(cluster) == {"done": 20}
    assert ran(cluster) == list(range(1, 21))
    calls = json.loads(cluster.nsw("status", "--root", "campaigns", "--json").stdout)["scheduler_calls"]
    assert calls["sbatch"] == 1
    assert "scheduler calls: 1 sbatch, 1 sbatch --test-only, 1 scontrol" in done.stderr


def test_more_runs_than_an_array_may_hold_are_split(cluster):
    assert cluster.nsw("run", *recipe(cluster, 25, most=10)).returncode == 0
    assert ran(cluster) == list(range(1, 26))


def test_a_failed_run_is_told_from_the_others_and_done_again(cluster):
    words = recipe(cluster, 4, body=f"[ {{{{ n }}}} != 3 ] || [ -e {cluster.work}/mended ]")
    assert cluster.nsw("run", *words).returncode == 1
    assert states(cluster) == {"done": 3, "failed": 1}
    (cluster.work / "mended").touch()
    assert cluster.nsw("retry", "--failed", "--root", "campaigns").returncode == 0
    assert states(cluster) == {"done": 4}
    assert ran(cluster) == [1, 2, 3, 3, 4]


def test_what_the_partition_can_not_give_is_refused_with_the_line_that_asks(cluster):
    done = cluster.nsw("run", *recipe(cluster, 2, extra="sites: {mycluster: {resources: {partition: nope}}}\n"))
    assert done.returncode == 2
    assert "recipe.yaml:10:" in done.stderr
    assert "invalid partition specified: nope; Invalid partition name specified" in done.stderr


def test_a_requeued_job_runs_again_and_its_first_traces_are_kept(accounted):
    with accounted.in_folder() as place:
        body = f"if [ -e {place.work}/second ]; then exit 0; fi; touch {place.work}/second; sleep 300"
        process = place.start(*nsw_words("run", *recipe(place, 1, body=body, limit="10m")))
        wait_until((place.work / "second").exists)
        (job,) = in_queue(place, "R", "%A")
        as_root(place, "scontrol", "requeue", job)
        # Slurm lets it wait two minutes; a node that still ends the first try would refuse it at once
        wait_until(lambda: place.run("squeue", "--me", "-h", "-j", job, "-o", "%T").stdout.strip() == "PENDING")
        as_root(place, "scontrol", "update", f"JobId={job}", "StartTime=now+3seconds")
        assert process.wait(timeout=300) == 0
        assert states(place) == {"done": 1}
        names = sorted(p.name for p in (campaign(place) / "scratch/runs/n-1.baseline.r1").iterdir())
        assert names == ["attempt-1", "attempt-1.before-restart-1"]


@pytest.mark.parametrize("sign", ["TERM", "KILL"])
def test_a_controller_that_goes_and_comes_back_costs_no_run(sign):
    with own_cluster(accounting=False) as daemons, daemons.place.in_folder() as place:
        process = place.start(*nsw_words("run", *recipe(place, 6, body="sleep 1")))
        wait_until(lambda: ran(place))
        time.sleep(1)  # the controller writes its state down every second or so
        daemons.end_controller(sign)
        wait_until(lambda: place.run("squeue", "-h").returncode != 0)
        daemons.up()
        assert process.wait(timeout=300) == 0
        assert states(place) == {"done": 6}
        assert ran(place) == list(range(1, 7))


def nsw_words(*words: str) -> tuple[str, ...]:
    import sys

    return (sys.executable, "-m", "nsw", *words)


def submitting(place: Real) -> bool:
    return bool(list((place.work / "campaigns").glob("[!.]*/scratch/jobs")))


def as_root(place: Real, *words: str) -> None:
    import subprocess

    subprocess.run(words, env=place.env, check=False, capture_output=True)


def wait_until(holds, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)
