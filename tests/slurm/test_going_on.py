"""What a user does with a campaign on a real Slurm while it runs and afterwards: look, change, cancel, retry."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from .places import own_cluster
from .test_campaign import as_root, campaign, in_queue, nsw_words, ran, recipe, states, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Real

pytestmark = pytest.mark.slurm
UNTIL = "until [ -e WORK/go ]; do sleep 0.1; done"


@pytest.fixture(params=["here", pytest.param("far", marks=pytest.mark.soak)])
def place(request, unaccounted) -> Iterator[Real]:
    if request.param == "far":
        yield request.getfixturevalue("far")
        return
    with unaccounted.in_folder() as found:
        yield found


def waiting(place: Real) -> str:
    """A program that runs until `go` is there."""
    return UNTIL.replace("WORK", str(place.work))


def begun(place: Real, *words: str):
    return place.start(*nsw_words("run", *words))


def nsw(place: Real, *words: str):
    return place.nsw(*words, "--root", "campaigns")


def runs(place: Real) -> dict[int, dict]:
    return {r["params"]["n"]: r for r in json.loads(nsw(place, "status", "--json").stdout)["runs"]}


def test_a_driven_campaign_is_cancelled_by_another_nsw_and_done_again_by_a_third(place):
    process = begun(place, *recipe(place, 3, body=waiting(place), limit="10m"))
    wait_until(lambda: len(ran(place)) == 3)
    done = nsw(place, "cancel")
    assert "3 runs: 3 cancelled" in done.stdout
    assert process.wait(timeout=300) == 1
    wait_until(lambda: not in_queue(place))
    assert runs(place)[2]["reason"] == "cancelled by nsw cancel"
    (place.work / "go").touch()
    assert nsw(place, "retry").returncode == 0
    assert states(place) == {"done": 3}


def test_a_campaign_that_nobody_drives_is_cancelled(place):
    process = begun(place, *recipe(place, 3, body=waiting(place), limit="10m"))
    wait_until(lambda: ran(place))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "3 runs: 3 cancelled" in nsw(place, "cancel").stdout
    wait_until(lambda: not in_queue(place))


def test_status_says_why_something_waits_and_logs_shows_a_run_and_its_job(place):
    words = recipe(place, 2, body=f"echo to be seen; {waiting(place)}", most=1, limit="10m",
                   extra="sites: {mycluster: {resources: {extra: ['#SBATCH --begin=now+10minutes']}}}\n")  # fmt: skip
    process = begun(place, *words)
    wait_until(lambda: (place.work / "campaigns").exists() and "BeginTime" in nsw(place, "status").stdout)
    assert "its begin time lies ahead" in " ".join(nsw(place, "status").stdout.split())
    for job in in_queue(place, "PD", "%A"):
        place.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_until(lambda: len(ran(place)) == 2)
    assert "to be seen" in nsw(place, "logs", "n-1.baseline.r1").stdout
    script = next(place.scratch(campaign(place)).glob("jobs/*.log"))
    script.write_text("what slurmd said\n")
    job_shown = [nsw(place, "logs", f"n-{n}.baseline.r1").stdout for n in (1, 2)]
    assert sum("what slurmd said" in text for text in job_shown) == 1
    (place.work / "go").touch()
    assert process.wait(timeout=300) == 0


def test_jobs_whose_shared_file_was_removed_say_so_and_are_done_by_a_retry(place):
    process = begun(place, *recipe(place, 20, body=waiting(place), limit="10m"))
    wait_until(lambda: len(ran(place)) == 16)  # the others wait
    for file in place.scratch(campaign(place)).glob("scripts/nsw-*.sh"):
        file.unlink()
    (place.work / "go").touch()
    assert process.wait(timeout=300) == 1
    assert states(place) == {"done": 16, "failed": 4}
    failed = [run["reason"] for run in runs(place).values() if run["state"] == "failed"]
    assert all("is missing on the site" in reason for reason in failed), failed
    assert nsw(place, "retry").returncode == 0
    assert states(place) == {"done": 20}
    assert ran(place) == list(range(1, 21))


LATE = """#!/bin/bash
# the controller takes the first submission once WORK/late is there, long after it answered that it timed out
case " $* " in *" --test-only "*) exec REAL "$@" ;; esac
if mkdir WORK/first 2>/dev/null; then
  setsid bash -c 'until [ -e WORK/late ]; do sleep 0.1; done; exec "$@"' late REAL --begin=now "$@" \\
    >WORK/taken 2>&1 </dev/null &
  echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
  exit 1
fi
exec REAL "$@"
"""


@pytest.mark.parametrize("place", ["here"], indirect=True)  # the sbatch that is late stands on this machine's PATH
@pytest.mark.parametrize("is_taken_before", [True, False])
def test_cancel_reaches_a_submission_that_is_taken_late_and_was_made_again(place, is_taken_before):
    wrapper = place.work / "bin/sbatch"
    wrapper.parent.mkdir()
    wrapper.write_text(LATE.replace("WORK", str(place.work)).replace("REAL", shutil.which("sbatch")))
    wrapper.chmod(0o755)
    words = recipe(place, 6, body=waiting(place), limit="10m",
                   extra="sites: {mycluster: {resources: {extra: ['#SBATCH --begin=now+10minutes']}}}\n")  # fmt: skip
    process = place.start("env", f"PATH={wrapper.parent}:{os.environ['PATH']}", *nsw_words("run", *words))
    wait_until(lambda: list((place.work / "campaigns").glob("[!.]*/campaign.db")) and states(place).get("queued") == 6)
    if is_taken_before:
        (place.work / "late").touch()
        wait_until(lambda: len(ran(place)) == 6)
    assert "6 runs: 6 cancelled" in nsw(place, "cancel").stdout
    assert process.wait(timeout=300) == 1
    (place.work / "late").touch()
    wait_until(lambda: (place.work / "taken").read_text().strip().isdigit())
    wait_until(lambda: not in_queue(place))
    assert len(ran(place)) == (6 if is_taken_before else 0)


def test_how_many_run_at_a_time_is_changed_for_a_running_array(place):
    process = begun(place, *recipe(place, 24, body=waiting(place), limit="10m"))
    wait_until(lambda: len(ran(place)) == 16)
    done = nsw(place, "throttle", "20")
    assert "20 tasks at a time; 24 runs not over" in done.stdout
    wait_until(lambda: len(ran(place)) == 20)
    assert in_queue(place).count("PENDING") == 4
    (place.work / "go").touch()
    assert process.wait(timeout=300) == 0
    assert ran(place) == list(range(1, 25))


def test_a_job_that_depends_on_one_that_failed_is_not_waited_for(place):
    failed = place.run("sbatch", "--parsable", "--mem=50M", "-o", "/dev/null", "--wrap=exit 1").stdout.strip()
    words = recipe(
        place,
        2,
        lost_after="5s",
        extra=f"sites: {{mycluster: {{resources: {{extra: ['#SBATCH --dependency=afterok:{failed}']}}}}}}\n",
    )
    done = nsw(place, "run", *words[:-3], "--yes")
    assert done.returncode == 1
    assert {r["state"] for r in runs(place).values()} == {"failed"}
    assert "can no longer end as needed (DependencyNeverSatisfied)" in runs(place)[1]["reason"]
    assert not in_queue(place)


def test_a_job_that_is_put_back_and_held_is_not_waited_for(place):
    process = begun(place, *recipe(place, 1, body=waiting(place), limit="10m", lost_after="5s"))
    wait_until(lambda: ran(place))
    (job,) = in_queue(place, "R", "%A")
    as_root(place, "scontrol", "requeuehold", job)
    assert process.wait(timeout=300) == 1
    assert "would never have begun again: put back into the queue and held" in runs(place)[1]["reason"]


def test_a_program_over_its_memory_says_so_without_cgroups(place):
    (place.work / "eat.py").write_text("import time; a = b'x' * 200_000_000; time.sleep(300)")
    eater = f"/usr/bin/python3 {place.work}/eat.py"
    done = nsw(place, "run", *recipe(place, 1, body=eater, limit="10m")[:-3], "--yes")
    assert done.returncode == 1
    left = {path.name: path.read_text(errors="replace") for path in place.work.rglob("*.log")}
    assert "out of memory: " in runs(place)[1]["reason"], left


def test_a_canary_goes_ahead_and_the_rest_is_done_when_it_came_back(place):
    words = recipe(place, 5, extra="canary: on\n")
    assert nsw(place, "run", *words[:-3], "--yes").returncode == 0
    assert ran(place) == [1, 2, 3, 4, 5]
    calls = json.loads(nsw(place, "status", "--json").stdout)["scheduler_calls"]
    assert calls["sbatch"] == 2


def test_a_canary_that_fails_stops_the_rest_with_what_it_said(place):
    words = recipe(place, 5, body="echo no such model >&2; exit 3", extra="canary: runs above 4\n")
    done = nsw(place, "run", *words[:-3], "--yes")
    assert done.returncode != 0
    assert "exit status 3: no such model" in done.stderr
    assert "nsw resume" in done.stderr
    assert ran(place) == [1]


def test_a_walltime_over_the_sites_limit_is_refused_at_its_line(place):
    words = recipe(place, 2)
    sites = place.work / "sites.yaml"
    sites.write_text(sites.read_text().replace("limits: {", "limits: {max_walltime: 90s, "))
    done = nsw(place, "run", *words[:-3], "--yes")
    assert done.returncode == 2
    assert "recipe.yaml:9:" in done.stderr
    assert "allows 00:01:30" in done.stderr


def test_a_node_that_dies_has_its_runs_done_again_and_keeps_what_they_left():
    with own_cluster(accounting=False) as daemons, daemons.place.in_folder() as place:
        body = f"if [ -e {place.work}/second ]; then exit 0; fi; touch {place.work}/second; sleep 300"
        process = begun(place, *recipe(place, 1, body=body, limit="10m"))
        wait_until((place.work / "second").exists)
        job, node = place.run("squeue", "--me", "-h", "-t", "R", "-o", "%A %N").stdout.split()
        daemons.kill_node(node)
        as_root(place, "scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=died")
        wait_until(lambda: place.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "PENDING")
        as_root(place, "scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")
        assert process.wait(timeout=300) == 0
        names = sorted(p.name for p in (campaign(place) / "scratch/runs/n-1.baseline.r1").iterdir())
        assert names == ["attempt-1", "attempt-1.before-restart-1"]


def test_a_throttle_of_0_holds_what_waits_and_another_releases_it_also_by_another_nsw(place):
    process = begun(place, *recipe(place, 20, body=waiting(place), limit="10m"))
    wait_until(lambda: len(ran(place)) == 16)
    done = nsw(place, "throttle", "0")
    assert "held; no new run starts until `nsw throttle N`; 20 runs not over" in done.stdout
    wait_until(lambda: in_queue(place, "PD", "%r") == ["JobHeldUser"] * 4)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=300) == 130
    (place.work / "go").touch()
    wait_until(lambda: not in_queue(place, "R,CG"))
    assert len(ran(place)) == 16
    assert "throttle 0`: no new run starts until" in nsw(place, "status").stdout
    nsw(place, "throttle", "16")
    assert nsw(place, "resume").returncode == 0
    assert ran(place) == list(range(1, 21))


def test_a_retry_has_jobs_of_its_own_with_another_limit(place):
    done = nsw(place, "run", *recipe(place, 3, body=f"[ -e {place.work}/go ]")[:-3], "--yes")
    assert done.returncode == 1
    (place.work / "go").touch()
    assert nsw(place, "retry", "n-2.baseline.r1", "--time", "4m", "--sites", "sites.yaml").returncode == 0
    assert states(place) == {"done": 1, "failed": 2}
    assert runs(place)[2]["job"] == "many-2-j1"
    assert "#SBATCH --time=00:05:00" in (campaign(place) / "scripts/many-2-j1.sh").read_text()
