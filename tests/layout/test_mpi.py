"""Real Open MPI and MPICH start ranks on the nodes of PBS's and Cobalt's files, with folder, variables and secrets."""

from __future__ import annotations

import pytest

from .conftest import Job, can_be_nodes, counts, printed, rows, status

pytestmark = pytest.mark.skipif(not can_be_nodes(), reason="needs root, for host names of the nodes' own")

RECIPE = """\
    nsw: 1
    name: mpi
    app:
      command: bash -c 'echo "$NSW_RANK $(uname -n) $FROM_RECIPE $A_TOKEN $CUDA_VISIBLE_DEVICES $PWD"'
      env: {{FROM_RECIPE: "two words", A_TOKEN: {{secret: hidden}}}}
      launcher: {{kind: {kind}, processes: {count}, share_gpus: true}}
    resources: {{nodes: 2, gpus: 8, time: 2m}}
"""
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "ssh"}
MPICH = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": "ssh", "HYDRA_IFACE": "lo"}
PBS = ("na", "na", "na", "na", "nb", "nb", "nb", "nb")  # a line a process
COBALT = ("na", "nb")  # a line a node


@pytest.mark.parametrize(
    ("kind", "program", "site", "nodes", "variables"),
    [
        ("mpirun", "mpirun.openmpi", "scheduler: pbs, mpi: openmpi", PBS, OPEN_MPI),
        ("mpirun", "mpirun.openmpi", "scheduler: cobalt, mpi: openmpi", COBALT, OPEN_MPI),
        ("mpiexec", "mpiexec.hydra", "scheduler: pbs, mpi: mpich", PBS, MPICH),
        ("mpiexec", "mpiexec.hydra", "scheduler: cobalt, mpi: mpich", COBALT, MPICH),
    ],
)
@pytest.mark.parametrize("count", [8, 7])
def test_ranks_land_where_they_are_planned_and_have_what_the_job_has(
    job: Job, kind, program, site, nodes, variables, count
):
    job.link(kind, program)
    secrets = job.folder / "scratch" / "private"
    secrets.mkdir(parents=True)
    (secrets / "secrets.sh").write_text("case $1 in\n1)\n  export A_TOKEN=hidden\n  ;;\nesac\n")
    agent = {name: f"{job.folder}/bin/ssh" if value == "ssh" and name.endswith(("agent", "EXEC")) else value
             for name, value in variables.items()}  # fmt: skip
    file = "PBS_NODEFILE" if "pbs" in site else "COBALT_NODEFILE"
    home = job.run(
        RECIPE.format(kind=kind, count=count), f"{site}, gpus: {{per_node: 4, order: [3, 2, 1, 0]}}", nodes,
        **agent, **{file: f"{job.folder}/nodes"},
    )  # fmt: skip
    assert status(home)["reason"] == "", (home / "stderr").read_text()
    assert status(home)["state"] == "done"
    assert counts(home) == {"na": 4, "nb": count - 4}
    own = count == 8  # with seven no rank has a GPU of its own
    assert printed(home) == [
        f"{rank} {'na' if rank < 4 else 'nb'} two words hidden {3 - rank % 4 if own else ''} {home}"
        for rank in range(count)
    ]
    assert [rows(home)[rank]["local_rank"] for rank in range(count)] == [rank % 4 for rank in range(count)]
    assert {p.name.rpartition(".")[2] for p in (job.folder / "scratch" / "provenance").iterdir()} == {"na", "nb"}
