"""PyTorch's own torchrun over two nodes: the agents meet on the first, and gloo adds up over all ranks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys

import pytest

from .conftest import Job, can_be_nodes, counts, printed, rows, status
from .test_mpi import OPEN_MPI

# another Python that has PyTorch may be named: it takes 700 MB, and is not among nsw's own libraries
PYTHON = os.environ.get("NSW_TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else "")
pytestmark = [
    pytest.mark.skipif(not can_be_nodes(), reason="needs root, for host names of the nodes' own"),
    pytest.mark.skipif(not PYTHON, reason="PyTorch is not installed (NSW_TORCH_PYTHON names a Python with it)"),
]

RECIPE = f"""\
    nsw: 1
    name: torchrun
    app:
      command: {PYTHON} FOLDER/train.py
      env: {{GLOO_SOCKET_IFNAME: lo, A_TOKEN: {{secret: hidden}}}}
      launcher: {{kind: torchrun, processes: 4}}
    resources: {{nodes: 2, gpus: 4, time: 3m}}
"""
TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([1 << dist.get_rank()])
dist.all_reduce(value)
print(os.uname().nodename, dist.get_rank(), os.environ["LOCAL_RANK"], dist.get_world_size(), value.item(), os.environ["A_TOKEN"], flush=True)
dist.destroy_process_group()
"""
# as PBS's: once on each node of the job, without the job's variables and folder
PBSDSH = """#!/bin/bash
[ "$1" = -- ] || { echo "pbsdsh: unknown option $1" >&2; exit 2; }
shift
n=0
while read -r node; do
  "${0%/*}/on-a-node" "$node" env PBS_NODENUM=$n "$@" & all+=($!)
  n=$((n + 1))
done < <(uniq "$PBS_NODEFILE")
for one in "${all[@]}"; do wait "$one" || code=$?; done
exit "${code:-0}"
"""


def test_ranks_that_see_their_own_gpu_meet_where_torchrun_says(job: Job):
    (job.folder / "train.py").write_text(TRAIN)
    (secrets := job.folder / "scratch" / "private").mkdir(parents=True)
    (secrets / "secrets.sh").write_text("export A_TOKEN=hidden\n")
    recipe = RECIPE.replace("FOLDER", str(job.folder)).replace("processes: 4", "processes: 2, gpus: own")
    home = job.run(recipe.replace("nodes: 2, gpus: 4", "gpus: 2"), "scheduler: pbs, gpus: {per_node: 2, order: [1, 0]}")
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert [words.split()[1:] for words in printed(home)] == [[str(rank), "0", "2", "3", "hidden"] for rank in range(2)]
    assert [rows(home)[rank]["gpus"] for rank in range(2)] == ["1", "0"]


@pytest.mark.parametrize("by", ["pbsdsh", "mpirun"])
def test_ranks_of_two_nodes_meet_and_add_up(job: Job, by):
    if by == "mpirun" and shutil.which("mpirun.openmpi") is None:
        pytest.skip("no Open MPI on this machine")
    job.tool("pbsdsh", PBSDSH)
    if by == "mpirun":
        job.link("mpirun", "mpirun.openmpi")
    (job.folder / "train.py").write_text(TRAIN)
    (secrets := job.folder / "scratch" / "private").mkdir(parents=True)
    (secrets / "secrets.sh").write_text("case $1 in\n1)\n  export A_TOKEN=hidden\n  ;;\nesac\n")
    site = "scheduler: pbs, gpus: {per_node: 2}" + (", mpi: openmpi" if by == "mpirun" else "")
    variables = {name: f"{job.folder}/bin/ssh" if value == "ssh" else value for name, value in OPEN_MPI.items()}
    home = job.run(
        RECIPE.replace("FOLDER", str(job.folder)), site, ("localhost", "nb"),
        PBS_NODEFILE=f"{job.folder}/nodes", **variables,
    )  # fmt: skip
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert counts(home) == {"localhost": 2, "nb": 2}
    assert printed(home) == [
        f"{node} {rank} {rank % 2} 4 15 hidden" for rank, node in enumerate(["localhost"] * 2 + ["nb"] * 2)
    ]
    assert [rows(home)[rank]["local_rank"] for rank in range(4)] == [0, 1, 0, 1]
    kept = [p for p in job.folder.rglob(".environment-*") if "hidden" in p.read_text()]
    assert kept == []  # secrets are in no other file than their own


# leaves the report that it is named, which may be named by a variable of its environment
NSYS = """#!/bin/bash
while [ "$1" != "${1#-}" ] || [ "$1" = profile ]; do case $1 in --output=*) out=${1#*=} ;; esac; shift; done
name=${out#*%q\\{}; name=${name%\\}*}
"$@"; code=$?
touch "${out%%\\%q*}${!name}.nsys-rep"
exit $code
"""


def test_one_profiler_around_torchrun_leaves_a_report_on_each_node(job: Job):
    job.tool("pbsdsh", PBSDSH)
    job.tool("nsys", NSYS)
    (job.folder / "train.py").write_text(TRAIN.replace(', os.environ["A_TOKEN"]', ""))
    recipe = RECIPE.replace("FOLDER", str(job.folder)).replace(", A_TOKEN: {secret: hidden}", "")
    recipe += "    passes: [timeline: {tool: nsys}]\n"
    home = job.run(
        recipe, "scheduler: pbs, gpus: {per_node: 2}", ("localhost", "nb"), PBS_NODEFILE=f"{job.folder}/nodes"
    )
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert sorted(p.name for p in home.glob("*.nsys-rep")) == ["timeline.node0.nsys-rep", "timeline.node1.nsys-rep"]
