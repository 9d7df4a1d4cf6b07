"""What the ranks of a job ask of the file system that they share, counted by strace: many ranks must be no storm."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from .conftest import Job, can_be_nodes, counts, status
from .test_torchrun import NSYS

pytestmark = pytest.mark.skipif(
    not can_be_nodes() or shutil.which("strace") is None, reason="needs root, and strace to count"
)

MOST = 12  # files that are opened, made, renamed or removed for a rank
RECIPE = """\
    nsw: 1
    name: many
    app: {{command: "true", launcher: {{kind: mpirun, processes: {count}, share_gpus: true}}}}
    passes: [timeline: {{tool: nsys}}]
    resources: {{nodes: 1, gpus: 8, time: 4m}}
"""
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "ssh",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}  # fmt: skip
CALLS = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
CALL = re.compile(r'(\w+)\((?:\w+<(?P<at>[^>]*)>, )?"(?P<path>[^"]*)"')


def asked(folder: Path, count: int) -> Counter[str]:
    """How often a job of so many ranks opens, makes, renames or removes which file of its scratch; `N` is a number."""
    folder.mkdir()
    job = Job(folder)
    job.link("mpirun", "mpirun.openmpi")
    job.tool("nsys", NSYS)
    log = folder / "calls"
    job.tool("unshare", f'#!/bin/sh\nexec strace -f -qq -y -s 500 -o {log} -e trace={CALLS} /usr/bin/unshare "$@"\n')
    home = job.run(
        RECIPE.format(count=count), "scheduler: pbs, mpi: openmpi, gpus: {per_node: 8}", ("na",) * count,
        PBS_NODEFILE=f"{folder}/nodes", **OPEN_MPI,
    )  # fmt: skip
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert counts(home) == {"na": count}
    assert len([*home.glob("*.nsys-rep")]) == count
    found: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        if (call := CALL.search(line)) is None:
            continue
        path = str(Path(call["at"] or "/") / call["path"])
        if path.startswith(f"{folder}/scratch"):
            found[f"{call[1]} {re.sub('[0-9]+', 'N', path.removeprefix(str(folder)))}"] += 1
    return found


def test_a_rank_opens_and_makes_a_dozen_files_of_the_shared_scratch_at_most(tmp_path: Path):
    few, many = asked(tmp_path / "few", 2), asked(tmp_path / "many", 10)
    each = {path: (count - few[path]) / 8 for path, count in many.items() if count > few[path]}
    assert each  # the trace has them
    assert sum(each.values()) <= MOST, each
