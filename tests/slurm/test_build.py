"""`app.build` on a real Slurm: a job of its own, once, which the runs' jobs wait for."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from nsw.engine.driven import ledger_to_read
from nsw.engine.folder import CampaignFolder
from nsw.engine.ledger_rows import State

from .test_campaign import campaign, in_queue, nsw_words, states, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .places import Real

pytestmark = pytest.mark.slurm

SITES = "nsw: 1\nsites:\n  c: {scheduler: slurm, limits: {max_array: 2}}\n"
RECIPE = """
nsw: 1
name: built
app:
  command: bash -c 'read -r kind <prog; echo "$kind {{ n }}" >>WORK/ran'
  files: [make.sh]
  build: {command: "bash make.sh BUILDARGS", where: WHERE}
matrix: {n: [1, 2], kind: [a, b]}
passes: [baseline]
resources: {gpus: 1, time: 1m}
"""
MAKE = 'echo "built ${1:-x} job=$SLURM_JOB_ID gpus=$CUDA_VISIBLE_DEVICES" >>WORK/builds; echo "${1:-x}" >prog\n'


@pytest.fixture
def cluster(accounted: Real) -> Iterator[Real]:
    with accounted.in_folder() as place:
        yield place


def begin(place: Real, make: str = MAKE, arguments: str = "", where: str = "job") -> tuple[str, ...]:
    work = str(place.work)
    (place.work / "make.sh").write_text(make.replace("WORK", work))
    text = RECIPE.replace("WORK", work).replace("BUILDARGS", arguments).replace("WHERE", where)
    (place.work / "recipe.yaml").write_text(text)
    (place.work / "sites.yaml").write_text(SITES)
    return ("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", "--root", "campaigns", "--yes")


def lines(file: Path) -> list[str]:
    return sorted(file.read_text().splitlines()) if file.exists() else []


def submitted(place: Real) -> list[str]:
    """The jobs of the campaign, an array as one."""
    name = campaign(place).name
    told = place.run("squeue", "--me", "-h", "-t", "all", "-o", "%F %k").stdout.splitlines()
    return sorted({line.split()[0] for line in told if line.endswith(f"nsw:{name}")})


def test_a_build_in_a_job_is_done_once_before_all_runs(cluster):
    cluster.nsw(*begin(cluster), exits=0)
    (built,) = lines(cluster.work / "builds")
    assert built.startswith("built x job=")
    assert not built.endswith("job= gpus=")
    assert built.endswith("gpus=")
    assert lines(cluster.work / "ran") == ["x 1", "x 1", "x 2", "x 2"]
    assert len(submitted(cluster)) == 3  # the build and two arrays of two
    (shown,) = json.loads(cluster.nsw("status", "--root", "campaigns", "--json").stdout)["builds"]
    assert (shown["id"], shown["state"], shown["attempt"], shown["exit_code"]) == ("build", "done", 1, 0)
    assert shown["job_id"] in submitted(cluster)


def test_each_value_that_the_build_uses_is_built_in_a_folder_of_its_own(cluster):
    cluster.nsw(*begin(cluster, arguments="{{ kind }}"), exits=0)
    assert [line.split()[1] for line in lines(cluster.work / "builds")] == ["a", "b"]
    assert lines(cluster.work / "ran") == ["a 1", "a 2", "b 1", "b 2"]


def test_a_build_on_the_login_node_is_no_job(cluster):
    cluster.nsw(*begin(cluster, where="login"), exits=0)
    assert lines(cluster.work / "builds") == ["built x job= gpus="]
    assert lines(cluster.work / "ran") == ["x 1", "x 1", "x 2", "x 2"]


def test_a_failed_build_fails_the_campaign_with_the_end_of_its_output_and_can_be_mended(cluster):
    make = "[ -e WORK/mended ] || { echo compiling; echo 'prog.cu(3): error: no such thing' >&2; exit 2; }\n" + MAKE
    done = cluster.nsw(*begin(cluster, make), exits=2)
    assert "the build step failed with exit status 2: bash make.sh" in done.stderr
    assert "  | prog.cu(3): error: no such thing" in done.stderr
    assert states(cluster) == {"failed": 4}
    with ledger_to_read(CampaignFolder(campaign(cluster))) as ledger:
        (reason,) = {r.reason for r in ledger.runs()}
    assert reason == (
        "its build failed: exit status 2: prog.cu(3): error: no such thing; `nsw logs build` prints its output"
    )
    shown = cluster.nsw("logs", "build", "--root", "campaigns").stdout
    assert "build: failed, exit status 2" in shown
    assert "compiling" in shown
    assert "--- stderr\nprog.cu(3): error: no such thing" in shown
    assert not (cluster.work / "ran").exists()
    assert in_queue(cluster) == []
    (cluster.work / "mended").touch()
    done = cluster.nsw("retry", "--failed", "--root", "campaigns", exits=0)
    assert len(lines(cluster.work / "builds")) == 1
    assert states(cluster) == {"done": 4}


def test_one_failed_build_of_two_leaves_the_other_s_runs(cluster):
    done = cluster.nsw(*begin(cluster, '[ "$1" = a ] || exit 3\n' + MAKE, arguments="{{ kind }}"), exits=1)
    assert "the build step failed with exit status 3: bash make.sh b" in done.stderr
    assert lines(cluster.work / "ran") == ["a 1", "a 2"]
    assert states(cluster) == {"done": 2, "failed": 2}


@pytest.mark.parametrize("moment", ["intent", "submitted", "running"])
def test_killed_at_any_moment_the_build_is_submitted_once(cluster, moment):
    words = nsw_words(*begin(cluster, "sleep 2\n" + MAKE))
    process = cluster.start(*words)
    wait_until(lambda: process.poll() is not None or reached(cluster, moment))
    process.send_signal(signal.SIGKILL)
    process.wait()
    cluster.nsw("resume", "--root", "campaigns", exits=0)
    assert len(lines(cluster.work / "builds")) == 1
    assert states(cluster) == {"done": 4}
    assert len(submitted(cluster)) == 3


def test_killed_while_it_builds_on_the_login_node_the_next_one_waits_for_that_build(cluster):
    make = "until [ -e WORK/go ]; do sleep 0.1; done\n" + MAKE
    process = cluster.start(*nsw_words(*begin(cluster, make, where="login")))
    wait_until(lambda: process.poll() is not None or reached(cluster, "running"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    (cluster.work / "go").touch()
    cluster.nsw("resume", "--root", "campaigns", exits=0)
    assert lines(cluster.work / "builds") == ["built x job= gpus="]
    assert states(cluster) == {"done": 4}


def reached(place: Real, moment: str) -> bool:
    ledgers = list((place.work / "campaigns").glob("[!.]*/campaign.db"))
    if not ledgers:
        return False
    if moment == "running":
        return bool(list(place.work.glob("campaigns/*/scratch/runs/build/attempt-1/claim")))
    with ledger_to_read(CampaignFolder(ledgers[0].parent)) as ledger:
        (build,) = ledger.builds()
    return build.state in {State.SUBMITTED, State.QUEUED} or (moment == "intent" and build.state is State.INTENT)


def test_a_cancelled_campaign_leaves_no_build(cluster):
    process = cluster.start(*nsw_words(*begin(cluster, "sleep 60\n")))
    wait_until(lambda: reached(cluster, "running"))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert cluster.nsw("cancel", "--root", "campaigns").returncode == 0
    assert states(cluster) == {"cancelled": 4}
    wait_until(lambda: not in_queue(cluster, "PD,R"))
