"""Launchers that cannot run here: stand-ins that know the options of their manuals and refuse all others start the ranks."""

from __future__ import annotations

import sys

import pytest

from .conftest import Job, can_be_nodes, counts, printed, rows, status

pytestmark = pytest.mark.skipif(not can_be_nodes(), reason="needs root, for host names of the nodes' own")

# what each takes: option -> what it says; the variables of a process's rank and of its place on its node
STAND_IN = f"""#!{sys.executable}
import os, subprocess, sys
OPTIONS, RANK, LOCAL, SETS = WHAT
words, said = sys.argv[1:], {{}}
while words and words[0].startswith("-"):
    name, equals, value = words.pop(0).partition("=")
    if name not in OPTIONS:
        sys.exit(f"{{sys.argv[0]}}: unknown option {{name}}")
    said[OPTIONS[name]] = value if equals else words.pop(0)
if SETS:  # -n counts resource sets
    total, each = int(said["sets"]) * int(said["a"]), int(said["r"]) * int(said["a"])
else:
    total, each = int(said["n"]), int(said["each"])
nodes = open(os.environ["NODES"]).read().split()
ranks = []
for rank in range(total):
    own = {{RANK: str(rank)}} | ({{LOCAL: str(rank % each)}} if LOCAL else {{}})
    if SETS:  # each resource set has its own GPUs, numbered as those of its node
        first = rank % each // int(said["a"]) * int(said["g"])
        own["CUDA_VISIBLE_DEVICES"] = ",".join(str(first + n) for n in range(int(said["g"])))
    host = nodes[rank // each]
    start = ["unshare", "--uts", "bash", "-c", 'echo "$1" >/proc/sys/kernel/hostname; shift; exec "$@"', "_", host, *words]
    ranks.append(subprocess.Popen(start, env=os.environ | own))
sys.exit(max(one.wait() for one in ranks))
"""
PALS = (
    {"-n": "n", "--ppn": "each", "--depth": "depth", "--cpu-bind": "bind"},
    "PALS_RANKID",
    "PALS_LOCAL_RANKID",
    False,
)
ALPS = ({"-n": "n", "-N": "each", "-d": "depth", "-cc": "bind"}, "ALPS_APP_PE", "", False)
JSM = (
    {"-n": "sets", "-r": "r", "-a": "a", "-c": "c", "-g": "g"},
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    True,
)
RECIPE = """\
    nsw: 1
    name: other
    app:
      command: bash -c 'echo "$NSW_RANK $(uname -n) $CUDA_VISIBLE_DEVICES"'
      launcher: {LAUNCHER}
    passes: [baseline]
    resources: {nodes: 2, gpus: GPUS, cpus_per_task: 2, time: 2m}
"""


@pytest.mark.parametrize(
    ("kind", "what", "site", "gpus", "seen"),
    [
        ("mpiexec", PALS, "scheduler: pbs, mpi: pals, gpus: {per_node: 4, order: [3, 2, 1, 0]}", 8, [3, 2, 1, 0]),
        ("aprun", ALPS, "scheduler: cobalt, gpus: {per_node: 0}", 0, ["", "", "", ""]),
        ("jsrun", JSM, "scheduler: lsf, gpus: {per_node: 4}", 8, [0, 1, 2, 3]),
    ],
)
def test_ranks_land_where_they_are_planned(job: Job, kind, what, site, gpus, seen):
    job.tool(kind, STAND_IN.replace("WHAT", repr(what)))
    home = job.run(
        RECIPE.replace("LAUNCHER", f"kind: {kind}, processes: 8").replace("GPUS", str(gpus)), site, ("na", "nb"),
        NODES=f"{job.folder}/nodes",
    )  # fmt: skip
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert counts(home) == {"na": 4, "nb": 4}
    assert [rows(home)[rank]["local_rank"] for rank in range(8)] == [0, 1, 2, 3] * 2
    assert printed(home) == [
        f"{rank} {'na' if rank < 4 else 'nb'} {seen[rank % 4]}".rstrip() + ("" if gpus else " ") for rank in range(8)
    ]


def test_a_launcher_that_puts_them_elsewhere_is_found_out(job: Job):
    job.tool("mpiexec", STAND_IN.replace("WHAT", repr(PALS)).replace('int(said["each"])\n', "7\n"))
    home = job.run(
        RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 8, gpus: node").replace("GPUS", "8"),
        "scheduler: pbs, mpi: pals", ("na", "nb"), NODES=f"{job.folder}/nodes",
    )  # fmt: skip
    assert (status(home)["state"], status(home)["reason"]) == ("failed", "ranks landed 7 + 1, planned 4 + 4")


def test_ranks_that_never_began_are_counted(job: Job):
    job.tool("mpiexec", STAND_IN.replace("WHAT", repr(PALS)).replace("range(total)", "range(total - 2)"))
    home = job.run(
        RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 8").replace("GPUS", "8"),
        "scheduler: pbs, mpi: pals", ("na", "nb"), NODES=f"{job.folder}/nodes",
    )  # fmt: skip
    assert (status(home)["state"], status(home)["reason"]) == ("failed", "6 of 8 ranks began")


def test_runs_that_share_a_job_of_several_nodes_go_one_after_another(job: Job):
    recipe = (
        RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 8")
        .replace("GPUS", "8")
        .replace("[baseline]", "[baseline: {repeats: 2}]")
    )
    script, _ = job.script(
        recipe, "scheduler: pbs, mpi: pals, whole_nodes: true, gpus: {per_node: 8}, limits: {runs_per_job: 2}"
    )
    assert "nsw_share" not in script.read_text()
    assert script.read_text().count("\n    nsw_run ") == 2
