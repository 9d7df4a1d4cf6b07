"""`nsw plan` asks a real Slurm when it would start the jobs, and what it would refuse."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from .places import own_cluster
from .test_campaign import as_root, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Real

pytestmark = pytest.mark.slurm

SITES = "nsw: 1\nsites:\n  c: {scheduler: slurm}\n  odd: {scheduler: slurm, partition: nope}\n"
RECIPE = """
nsw: 1
name: asked
app: {command: ./prog}
matrix: {gpus: [1, 2], n: [1, 2]}
passes: [baseline]
resources:
  gpus: "{{ gpus }}"
  time: 1m
"""


@pytest.fixture
def cluster(unaccounted: Real) -> Iterator[Real]:
    with unaccounted.in_folder() as place:
        (place.work / "sites.yaml").write_text(SITES)
        yield place


def plan(place: Real, *words: str, more: str = "", site: str = "c"):
    (place.work / "recipe.yaml").write_text(RECIPE + more)
    return place.nsw("plan", "recipe.yaml", "--site", site, "--sites", "sites.yaml", *words)


def test_each_set_of_resources_is_asked_once_and_the_start_is_shown(cluster):
    done = plan(cluster)
    assert done.returncode == 0, done.stderr
    assert "asked-j1" in done.stdout.partition("would start at 20")[0].splitlines()[-1]
    starts = json.loads(plan(cluster, "--format", "json").stdout)["starts"]
    assert list(starts) == ["asked-j1", "asked-j2"]
    assert "in partition gpu" in starts["asked-j1"]
    assert cluster.run("squeue", "--me", "-h", "--name=asked-j1").stdout == ""


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ("  partition: nope\n", 10, "invalid partition specified: nope"),
        ("  time: 999h\n", 9, "Requested time limit is invalid"),
        ("  nodes: 2\n", 8, "1 GPU cannot be divided equally among 2 nodes"),
        ("sites: {c: {resources: {gpus: 99}}}\n", 10, "Requested node configuration is not available"),
        ("  extra: [--array=0-9]\n", 10, "nsw makes the arrays itself"),
        ("  extra: ['#SBATCH --test-only']\n", 10, "nothing would be submitted"),
    ],
)
def test_what_slurm_would_refuse_is_told_at_the_line_that_asks(cluster, more, line, said):
    text = RECIPE.replace("  time: 1m\n", "") if "time" in more else RECIPE
    (cluster.work / "recipe.yaml").write_text(text + more)
    done = cluster.nsw("plan", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", exits=2)
    assert f"recipe.yaml:{line}:" in done.stderr
    assert said in done.stderr
    assert "allocation failure" not in done.stderr


def test_a_build_that_would_be_refused_is_told_before_there_is_a_campaign(cluster):
    built = "app: {command: ./prog, build: {command: make, where: job, time: 999h}}"  # in line 4
    (cluster.work / "recipe.yaml").write_text(RECIPE.replace("app: {command: ./prog}", built))
    done = cluster.nsw("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", exits=2)
    assert "recipe.yaml:4:" in done.stderr
    assert "sbatch would refuse asked-build: Requested time limit is invalid" in done.stderr
    assert not (cluster.work / "campaigns").exists()


def test_a_site_s_own_partition_is_refused_at_its_line_of_the_sites_file(cluster):
    done = plan(cluster, site="odd")
    assert done.returncode == 2
    assert "sites.yaml:4:" in done.stderr


def test_a_recipe_s_queue_counts_before_the_site_s_partition(cluster):
    done = plan(cluster, more="  queue: other\n", site="odd")
    assert done.returncode == 2
    assert "recipe.yaml:10:" in done.stderr
    assert "invalid partition specified: other" in done.stderr


def test_a_run_that_would_be_refused_makes_no_campaign(cluster):
    (cluster.work / "recipe.yaml").write_text(RECIPE + "  partition: nope\n")
    done = cluster.nsw("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", exits=2)
    assert "recipe.yaml:10:" in done.stderr
    assert not (cluster.work / "campaigns").exists()


def test_a_cluster_that_does_not_answer_is_a_warning(cluster):
    (cluster.work / "recipe.yaml").write_text(RECIPE)
    nsw = (sys.executable, "-m", "nsw", "plan", "recipe.yaml", "--site", "c", "--sites", "sites.yaml")
    done = cluster.run("env", "PATH=/nonexistent", *nsw)
    assert done.returncode == 0, done.stderr
    assert "gave no answer whether it would accept this job" in " ".join(done.stdout.split())


def test_slurm_s_commands_without_a_working_configuration_are_a_warning(cluster):
    (cluster.work / "recipe.yaml").write_text(RECIPE)
    (cluster.work / "slurm.conf").write_text("garbage\n")
    words = (sys.executable, "-m", "nsw", "plan", "recipe.yaml", "--site", "c", "--sites", "sites.yaml")
    done = cluster.run("env", f"SLURM_CONF={cluster.work}/slurm.conf", *words)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "warning: asked-j1, asked-j2: Slurm gave no answer whether it would accept this job" in shown
    assert "Unable to process configuration file" in shown
    assert "would refuse" not in shown


DRAINED = """
nsw: 1
name: drained
app: {command: ./prog}
passes: [baseline]
resources: {gpus: GPUS, time: 1m}
"""


@pytest.mark.parametrize("state", ["drain", "down"])
def test_nodes_that_are_away_are_a_warning_and_what_none_could_run_is_refused(state):
    with own_cluster(accounting=False) as daemons, daemons.place.in_folder() as place:
        (place.work / "sites.yaml").write_text("nsw: 1\nsites:\n  c: {scheduler: slurm, partition: volta}\n")

        def nsw(command: str, gpus: int, *words: str):
            (place.work / "recipe.yaml").write_text(DRAINED.replace("GPUS", str(gpus)))
            return place.nsw(command, "recipe.yaml", "--site", "c", "--sites", "sites.yaml", *words)

        assert nsw("plan", 4).returncode == 0
        # a node that is set down would return by itself once its slurmd registers again
        conf = daemons.root / "etc" / "slurm.conf"
        as_root(place, "sed", "-i", "s/^ReturnToService=.*/ReturnToService=0/", str(conf))
        as_root(place, "scontrol", "reconfigure")
        as_root(place, "scontrol", "update", "nodename=volta[1-2]", f"state={state}", "reason=test")
        planned = nsw("plan", 4)
        assert planned.returncode == 0, planned.stderr
        assert "would wait until nodes are up again: volta1 d" in " ".join((planned.stdout + planned.stderr).split())
        refused = nsw("plan", 5)
        assert refused.returncode != 0
        assert "Requested node configuration is not available" in refused.stderr
        running = place.start(sys.executable, "-m", "nsw", "run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml")
        assert running.wait() != 0
        assert not (place.work / "campaigns").exists()
        (place.work / "recipe.yaml").write_text(DRAINED.replace("GPUS", "4").replace("./prog", '"true"'))
        running = place.start(
            sys.executable, "-m", "nsw", "run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", "--yes"
        )
        wait_until(lambda: "PENDING" in place.run("squeue", "--me", "-h", "-o", "%T").stdout)
        as_root(place, "scontrol", "update", "nodename=volta[1-2]", "state=resume")
        assert running.wait() == 0
