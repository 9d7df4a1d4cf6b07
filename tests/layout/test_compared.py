"""What the job compares with the plan when the ranks have ended: their order, their GPUs, their cores, and how often each began."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nsw.engine.read import rank_locations

from .conftest import Job, rows, status

# starts the ranks of one node; FACTS: the words of `env` that each gets
MPIEXEC = f"""#!{sys.executable}
import os, subprocess, sys
facts = FACTS
words = sys.argv[1:]
while words[0].startswith("-"):
    words = words[2:]
each = [subprocess.Popen(words, env=os.environ | {{"PMI_RANK": str(rank)}} | more) for rank, more in facts]
sys.exit(max(one.wait() for one in each))
"""
RECIPE = """\
    nsw: 1
    name: compared
    app:
      command: "true"
      launcher: {LAUNCHER}
    passes: [baseline]
    resources: {RESOURCES, time: 1m}
"""
SITE = "scheduler: pbs, mpi: mpich, gpus: {per_node: 4}"
CVD = "CUDA_VISIBLE_DEVICES"
SMI = """#!/bin/bash
case $* in *--query-gpu=index*) ;; *) exit 1 ;; esac
echo 'index, name, uuid, driver_version'
for n in 0 1 2 3; do echo "$n, NVIDIA H100, GPU-$n, 550.54"; done
"""


def ended(job: Job, facts, launcher: str = "", resources: str = "gpus: 4", **env: str) -> tuple[str, str]:
    """State and reason of a run whose ranks get these variables."""
    job.tool("mpiexec", MPIEXEC.replace("FACTS", repr(facts)))
    recipe = RECIPE.replace("LAUNCHER", f"kind: mpiexec, processes: 4{launcher}").replace("RESOURCES", resources)
    home = job.run(recipe, SITE, **env)
    return status(home)["state"], status(home)["reason"]


def visible(*values: str) -> list[tuple[int, dict[str, str]]]:
    return [(rank, {CVD: value}) for rank, value in enumerate(values)]


PLAIN: list[tuple[int, dict[str, str]]] = [(rank, {}) for rank in range(4)]
SHARED = (
    "ranks 0, 1, 2, 3 shared a GPU of {node} ({gpu}), planned 1 GPU each (`launcher: {{share_gpus: true}}` allows that)"
)


@pytest.fixture
def node() -> str:
    return Path("/proc/sys/kernel/hostname").read_text().strip()


def test_ranks_that_share_a_gpu_fail_the_run(job: Job, node: str):
    assert ended(job, visible(*"0000")) == ("failed", SHARED.format(node=node, gpu="0"))


def test_gpus_are_compared_by_their_uuids_where_nvidia_smi_prints_them(job: Job, node: str):
    job.tool("nvidia-smi", SMI)
    assert ended(job, visible("0", "GPU-0", "2", "3"))[1].startswith(f"ranks 0, 1 shared a GPU of {node} (GPU-0)")


def test_two_gpus_of_a_node_do_not_give_four_ranks_one_each(job: Job):
    assert ended(job, PLAIN, CUDA_VISIBLE_DEVICES="0,1") == ("failed", "ranks 2, 3 saw no GPU, planned 1 GPU each")


@pytest.mark.parametrize("none", ["", "-1", "NoDevFiles", "9"])
def test_a_rank_without_a_gpu_fails_the_run(job: Job, none: str):
    job.tool("nvidia-smi", SMI)
    facts = visible("0", "1", "2", none)
    launcher = "" if none in {"9", "-1", "NoDevFiles"} else ", gpus: node"
    assert ended(job, facts, launcher)[1].startswith("rank 3 saw no GPU, planned 1 GPU each")


def test_fewer_than_planned_fail_the_run(job: Job):
    facts = [(0, {CVD: "0,1"}), (1, {CVD: "2"})]
    job.tool("mpiexec", MPIEXEC.replace("FACTS", repr(facts)))
    recipe = RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 2, gpus: own").replace("RESOURCES", "gpus: 4")
    assert status(job.run(recipe, SITE))["reason"] == "rank 1 saw fewer GPUs than planned, planned 2 GPUs each"


@pytest.mark.parametrize(
    ("facts", "launcher", "env"),
    [
        (PLAIN, "", {}),
        (PLAIN, "", {CVD: "0,1,2,3"}),
        (visible(*"0123"), "", {}),
        (visible("MIG-a", "MIG-b", "MIG-c", "MIG-d"), "", {}),
        (visible(*"0000"), ", share_gpus: true", {}),
        (PLAIN, ", gpus: node", {CVD: "0,1,2,3"}),
        (PLAIN, ", gpus: node", {}),
    ],
)
def test_gpus_as_they_were_planned_are_no_fault(job: Job, facts, launcher, env):
    assert ended(job, facts, launcher, **env) == ("done", "")


def test_a_recipe_that_writes_no_gpus_is_not_compared(job: Job):
    assert ended(job, visible(*"0000"), resources="nodes: 1") == ("done", "")


def test_ranks_that_see_all_gpus_of_their_node_must_see_as_many_as_planned(job: Job, node: str):
    said = ended(job, PLAIN, ", gpus: node", CUDA_VISIBLE_DEVICES="0")
    assert said == ("failed", f"the ranks of {node} saw 1 of the 4 GPUs that were planned on each node")


def test_a_rank_that_began_twice_fails_the_run(job: Job):
    state, reason = ended(job, [*PLAIN, (2, {})])
    assert (state, reason) == ("failed", "rank 2 began more than once: several processes have the same rank")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["n1 0", "n1 0"], "2 ranks of n1 were bound to 1 CPU core in all, and 2 were planned"),
        (["n1 0-3", "n1 0-3"], None),
        (["n1 0", "n1 1"], None),
        (["n1 0-7", "n1 0-7"], None),  # all that the node has: nothing is bound
        (["n1 0", "n2 0"], None),
        (["n1 -", "n1 -"], None),
    ],
)
@pytest.mark.parametrize("planned", [0, 1])
def test_ranks_bound_to_fewer_cores_than_planned_are_a_warning(tmp_path, lines, said, planned):
    pairs = [line.split() for line in lines]
    text = "".join(f"rank\t{n}\t{n}\t{host}\tb\t{cpus}\t\n" for n, (host, cpus) in enumerate(pairs))
    text += "".join(f"cores\t{host}\t0-7\t{planned}\n" for host in dict.fromkeys(host for host, _ in pairs))
    (tmp_path / "ranks.tsv").write_text(text)
    assert rank_locations(tmp_path).crowded_cores_sentence == said


def test_where_nothing_is_bound_no_rank_lacks_cores(job: Job):
    job.tool("mpiexec", MPIEXEC.replace("FACTS", repr(PLAIN)))
    home = job.run(RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 4").replace("RESOURCES", "gpus: 4"), SITE)
    assert rank_locations(home).crowded_cores_sentence is None
    assert len(rows(home)) == 4


def test_a_rank_that_starts_late_is_told_of_where_that_is_much_of_the_run(job: Job, node: str):
    (late := job.folder / "late").write_text("sleep 1.3\n")  # as bash starts for this rank
    job.tool("mpiexec", MPIEXEC.replace("FACTS", repr([*PLAIN[:2], (3, {}), (2, {"BASH_ENV": str(late)})])))
    home = job.run(RECIPE.replace("LAUNCHER", "kind: mpiexec, processes: 4").replace("RESOURCES", "gpus: 4"), SITE)
    landed, start = rank_locations(home), float(status(home)["start"])
    delays = {row["rank"]: row["start_delay_s"] for row in landed.rows}
    assert min(delays.values()) == 0
    assert delays[2] == max(delays.values()) >= 1
    assert delays[2] < float(status(home)["end"]) - start
    first = min(delays, key=delays.__getitem__)
    said = f"rank 2 ({node}) started {delays[2]:.1f} s after rank {first} ({node}), {delays[2] / 10:.0%} of the run"
    assert landed.start_skew_sentence(start, start + 10) == said
    assert landed.start_skew_sentence(start, start + 30 * delays[2]) is None
    assert landed.start_skew_sentence(None, None) is None


def test_starts_on_two_nodes_are_by_two_clocks_and_older_files_have_none(tmp_path):
    text = "rank\t0\t0\tn1\tb\t0\t\t100.5\nrank\t1\t0\tn2\tb\t0\t\t103.5\n"
    (tmp_path / "ranks.tsv").write_text(text)
    sentence = "rank 1 (n2) started 3.0 s after rank 0 (n1), 30% of the run, by clocks of two nodes, which may differ"
    assert rank_locations(tmp_path).start_skew_sentence(100, 110) == sentence
    (tmp_path / "ranks.tsv").write_text(text.replace("\t100.5", "").replace("\t103.5", ""))
    assert [row["start_delay_s"] for row in rank_locations(tmp_path).rows] == [None, None]
    assert rank_locations(tmp_path).start_skew_sentence(100, 110) is None
