"""Where ranks land on a real Slurm of several nodes with GPUs: as planned, counted by what each rank wrote down."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from .test_campaign import campaign
from .test_launchers import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Real

pytestmark = pytest.mark.slurm

RECIPE = """
nsw: 1
name: layout
app:
  command: [bash, show.sh]
  files: [show.sh]
  setup: ["export PATH=WORK/bin:$PATH"]
  env: {FROM_RECIPE: "it is here"}
  launcher: LAUNCHER
resources: {time: 2m, RESOURCES}
"""
SHOW = """echo "$NSW_RANK $CUDA_VISIBLE_DEVICES ${RANK-} ${LOCAL_RANK-} ${WORLD_SIZE-} ${MASTER_ADDR-} $FROM_RECIPE"
sleep 0.1
"""
# as NVIDIA's prints it, which cannot run here
NVIDIA_SMI = """#!/bin/bash
case $* in *--query-gpu=index*) ;; *) exit 1 ;; esac
echo 'index, name, uuid, driver_version'
for n in 0 1 2 3; do echo "$n, Tesla V100, GPU-$SLURMD_NODENAME-$n, 550.54"; done
"""
# a site's wrapper that knows better
SRUN = """#!/bin/bash
kept=()
for word; do case $word in --ntasks-per-node=*|--distribution=*|--cpu-bind=*) ;; *) kept+=("$word") ;; esac; done
unset SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE
export SLURM_HOSTFILE=$PWD/hosts
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
for n in 0 0 0 0 0 0 0 1; do echo "${nodes[n]}"; done >"$SLURM_HOSTFILE"
exec /usr/bin/srun --distribution=arbitrary --overcommit "${kept[@]}"
"""
TWO_NODES = "nodes: 2, gpus: 8, constraint: volta, cpus_per_task: 1"


@pytest.fixture
def cluster(unaccounted: Real) -> Iterator[Real]:
    with unaccounted.in_folder() as place:
        (place.work / "bin").mkdir()
        smi = place.work / "bin" / "nvidia-smi"
        smi.write_text(NVIDIA_SMI)
        smi.chmod(0o755)
        (place.work / "show.sh").write_text(SHOW)
        (place.work / "sites.yaml").write_text(
            "nsw: 1\nsites:\n  c: {scheduler: slurm, gpus: {per_node: 4, order: [3, 2, 1, 0]}}\n"
            "  mpich: {scheduler: slurm, gpus: {per_node: 4}, mpi: mpich}\n"
            "  openmpi: {scheduler: slurm, gpus: {per_node: 4}, mpi: openmpi}\n"
        )
        yield place


def run(
    place: Real, launcher: str, resources: str = TWO_NODES, *, expected: int = 0, site: str = "c", setup: str = ":"
) -> str:
    text = RECIPE.replace("LAUNCHER", launcher).replace("RESOURCES", resources).replace("WORK", str(place.work))
    text = text.replace(':$PATH"]', f":$PATH\", '{setup}']")
    (place.work / "recipe.yaml").write_text(text)
    done = place.nsw("run", "recipe.yaml", "--site", site, "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    assert done.returncode == expected, done.stderr + done.stdout
    return done.stdout + done.stderr


def landed(place: Real) -> dict[str, int]:
    return dict(Counter(row["host"] for row in rows(place, "ranks")))


def printed(place: Real) -> list[list[str]]:
    text = (campaign(place) / "reports/case.baseline.r1/stdout").read_text()
    return sorted(line.split(" ") for line in text.splitlines())


def test_eight_ranks_of_two_nodes_land_four_on_each_and_each_sees_a_gpu_of_its_own(cluster):
    said = run(cluster, "{kind: srun, processes: 8}")
    assert "8 ranks: 4 on each of 2 nodes, one GPU each" in said
    assert landed(cluster) == {"volta1": 4, "volta2": 4}
    of = {row["rank"]: row for row in rows(cluster, "ranks")}
    # the site's order: the first rank of a node takes its last GPU
    assert [of[n]["gpus"] for n in range(8)] == [f"GPU-{'volta1' if n < 4 else 'volta2'}-{3 - n % 4}" for n in range(8)]
    assert [of[n]["local_rank"] for n in range(8)] == [0, 1, 2, 3] * 2
    for words in printed(cluster):
        assert words[2:5] == [words[0], "0", "8"]  # RANK, LOCAL_RANK, WORLD_SIZE
        assert words[6:] == ["it", "is", "here"]


def test_seven_ranks_are_four_and_three(cluster):
    run(cluster, "{kind: srun, processes: 7, share_gpus: true}")
    assert landed(cluster) == {"volta1": 4, "volta2": 3}


def test_without_a_number_of_processes_each_node_gets_one_that_sees_all_its_gpus(cluster):
    run(cluster, "srun")
    assert landed(cluster) == {"volta1": 1, "volta2": 1}
    assert {row["gpus"] for row in rows(cluster, "ranks")} == {
        ",".join(f"GPU-{node}-{n}" for n in range(4)) for node in ("volta1", "volta2")
    }


def test_ranks_that_land_elsewhere_are_an_error_of_the_run(cluster):
    srun = cluster.work / "bin" / "srun"
    srun.write_text(SRUN)
    srun.chmod(0o755)
    said = run(cluster, "{kind: srun, processes: 8}", expected=1)
    assert "ranks landed 7 + 1, planned 4 + 4" in said
    assert landed(cluster) == {"volta1": 7, "volta2": 1}  # a person can look


def linked(place: Real, name: str, program: str) -> None:
    if (path := shutil.which(program)) is None:
        pytest.skip(f"no {program} on this machine")
    tool = place.work / "bin" / name
    tool.write_text(f'#!/bin/bash\nexec {path} "$@"\n')
    tool.chmod(0o755)


# the daemons share a host, whose one name Hydra and Open MPI must not take for another node's
HYDRA = "export HYDRA_BOOTSTRAP=slurm"
OPEN_MPI = "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"


def test_ranks_of_mpich_are_on_the_nodes_they_are_on_though_hydra_hands_on_the_first_nodes_name(cluster):
    linked(cluster, "mpiexec", "mpiexec.hydra")
    run(cluster, "{kind: mpiexec, processes: 8}", site="mpich", setup=HYDRA)
    assert landed(cluster) == {"volta1": 4, "volta2": 4}
    of = {row["rank"]: row for row in rows(cluster, "ranks")}
    assert [of[n]["host"] for n in range(8)] == ["volta1"] * 4 + ["volta2"] * 4
    assert [of[n]["gpus"][-2:] for n in range(8)] == ["-0", "-1", "-2", "-3"] * 2


def test_ranks_that_share_a_gpu_which_set_up_leaves_them_are_an_error_of_the_run(cluster):
    linked(cluster, "mpiexec", "mpiexec.hydra")
    set_up = f"{HYDRA} CUDA_VISIBLE_DEVICES=0"
    said = run(cluster, "{kind: mpiexec, processes: 8}", site="mpich", setup=set_up, expected=1)
    assert "ranks 0, 1, 2, 3 shared a GPU of volta1 (GPU-volta1-0), planned 1 GPU each" in said


def test_nodes_take_ranks_in_turn_where_the_recipe_asks_srun_for_that(cluster):
    said = run(cluster, "{kind: srun, processes: 7, share_gpus: true, options: [--distribution=cyclic]}")
    assert "7 ranks: 4 + 3 on 2 nodes, which take them in turn (0, 2, ... on the first)" in said
    of = {row["rank"]: row["host"] for row in rows(cluster, "ranks")}
    assert [of[n] for n in range(7)] == ["volta1", "volta2"] * 3 + ["volta1"]


def test_torchrun_of_two_nodes_is_started_once_on_each(cluster):
    torchrun = cluster.work / "bin" / "torchrun"
    torchrun.write_text(TORCHRUN)
    torchrun.chmod(0o755)
    run(cluster, "{kind: torchrun, processes: 8}")
    assert landed(cluster) == {"volta1": 4, "volta2": 4}
    assert {row["gpus"] for row in rows(cluster, "ranks")} == {
        ",".join(f"GPU-{node}-{n}" for n in range(4)) for node in ("volta1", "volta2")
    }


# stands in for PyTorch's: the words that nsw gives it, and the variables that it sets
TORCHRUN = """#!/bin/bash
while [ "$1" != --no-python ]; do
  case $1 in
    --nnodes=2|--rdzv_backend=c10d) ;;
    --nproc_per_node=*) each=${1#*=} ;;
    --rdzv_endpoint) [[ $2 == *:2[0-9]* || $2 == *:3[0-9]* ]] || exit 125; shift ;;
    --rdzv_id) shift ;;
    *) exit 125 ;;
  esac
  shift
done
shift
for ((n = 0; n < each; n++)); do RANK=$((SLURM_NODEID * each + n)) LOCAL_RANK=$n WORLD_SIZE=8 "$@" & done
wait
"""
