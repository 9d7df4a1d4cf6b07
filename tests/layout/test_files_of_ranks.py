"""What the ranks of a job ask of the file system that they share, counted by strace: many ranks must be no storm."""

from __future__ import annotations

import re
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from nsw.engine.node_archives import unpack_node_archives

from .conftest import Job, can_be_nodes, counts, status
from .test_torchrun import NSYS

pytestmark = pytest.mark.skipif(
    not can_be_nodes() or shutil.which("strace") is None, reason="needs root, and strace to count"
)

REPORTS = ("timeline*.nsys-rep", "reports.*.tar")
MOST = 12  # files that are opened, made, renamed or removed for a rank
RECIPE = """\
    nsw: 1
    name: many
    app: {{command: "true", launcher: {{kind: mpirun, processes: {count}, share_gpus: true}}}}
    passes: [timeline: {{tool: nsys}}]
    resources: {{nodes: {nodes}, gpus: 8, time: 4m}}
    collect: {collect}
"""
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_plm_rsh_agent": "ssh",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}  # fmt: skip
CALLS = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
CALL = re.compile(r'(\w+)\((?:\w+<(?P<at>[^>]*)>, )?"(?P<path>[^"]*)"')


def many(job: Job, count: int, collect: str, nodes: tuple[str, ...] = ("na",), nsys: str = NSYS, **env: str) -> Path:
    """Run the recipe with stand-ins; the folder of its run."""
    job.link("mpirun", "mpirun.openmpi")
    job.tool("nsys", nsys)
    recipe = RECIPE.format(count=count, collect=collect, nodes=len(nodes))
    hosts = [node for node in nodes for _ in range(count // len(nodes))]
    site = f"scheduler: pbs, mpi: openmpi, gpus: {{per_node: {8 // len(nodes)}}}"
    return job.run(recipe, site, tuple(hosts), PBS_NODEFILE=f"{job.folder}/nodes", **OPEN_MPI, **env)


def asked(folder: Path, count: int, collect: str) -> Counter[str]:
    """How often a job of so many ranks opens, makes, renames or removes which file of its scratch; `N` is a number."""
    folder.mkdir()
    job = Job(folder)
    log = folder / "calls"
    job.tool("unshare", f'#!/bin/sh\nexec strace -f -qq -y -s 500 -o {log} -e trace={CALLS} /usr/bin/unshare "$@"\n')
    home = many(job, count, collect)
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert counts(home) == {"na": count}
    unpack_node_archives(home, REPORTS)
    assert len([*home.glob("*.nsys-rep")]) == count
    found: Counter[str] = Counter()
    for line in log.read_text().splitlines():
        if (call := CALL.search(line)) is None:
            continue
        path = str(Path(call["at"] or "/") / call["path"])
        if path.startswith(f"{folder}/scratch"):
            found[f"{call[1]} {re.sub('[0-9]+', 'N', path.removeprefix(str(folder)))}"] += 1
    return found


@pytest.mark.parametrize("collect", ["reports", "node"])
def test_a_rank_opens_and_makes_a_dozen_files_of_the_shared_scratch_at_most(tmp_path: Path, collect: str):
    few, several = asked(tmp_path / "few", 2, collect), asked(tmp_path / "many", 10, collect)
    each = {path: (count - few[path]) / 8 for path, count in several.items() if count > few[path]}
    assert each  # the trace has them
    assert sum(each.values()) <= MOST, each
    assert any("nsys-rep" in path for path in each) == (collect == "reports")


def test_each_node_packs_the_reports_of_its_ranks_and_leaves_nothing(job: Job):
    (scratch := job.folder / "a node's").mkdir()
    home = many(job, 4, "node", ("localhost", "nb"), TMPDIR=str(scratch))
    assert (status(home)["state"], status(home)["reason"]) == ("done", ""), (home / "stderr").read_text()
    assert sorted(file.name for file in home.glob("*timeline*")) == []
    names = {}
    for archive in home.glob("reports.*"):
        with tarfile.open(archive) as tar:
            names[archive.name] = sorted(tar.getnames())
    assert names == {
        "reports.localhost.tar": ["timeline.rank0.nsys-rep", "timeline.rank1.nsys-rep"],
        "reports.nb.tar": ["timeline.rank2.nsys-rep", "timeline.rank3.nsys-rep"],
    }
    assert [*scratch.glob("nsw-*")] == []


def test_a_node_that_cannot_pack_keeps_its_reports_and_says_where(job: Job):
    full = NSYS.replace("\n", "\nmkdir -p .reports.nb.part\n", 1)  # where nb would write
    home = many(job, 4, "node", ("localhost", "nb"), full, TMPDIR=str(job.folder))
    assert [file.name for file in home.glob("reports.*")] == ["reports.localhost.tar"]
    (left,) = job.folder.glob("nsw-*")
    assert sorted(file.name for file in left.iterdir()) == ["timeline.rank2.nsys-rep", "timeline.rank3.nsys-rep"]
    said = f"nsw: nb: 2 reports could not be packed and are left in {left}"
    assert said in (home / "after.log").read_text()
