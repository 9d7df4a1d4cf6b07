"""`collect: node` on a real Slurm of two nodes: one file a node is on the shared file system, and all reports are here."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

import pytest

from nsw.engine.node_archives import is_unpacked, unpack_node_archives

from .test_campaign import campaign, states
from .test_launchers import rows

if TYPE_CHECKING:
    from pathlib import Path

    from .places import Real

RECIPE = """
nsw: 1
name: packed
app:
  command: python3 work.py
  files: [work.py]
  env: {TMPDIR: WORK/nodes}
  setup: ["export PATH=WORK/bin:$PATH"]
  launcher: {kind: srun, processes: 8}
passes: [host: {tool: cprofile, ranks: RANKS}]
collect: node
resources: {time: 2m, gpus: 0, nodes: 2, constraint: volta, cpus_per_task: 1}
"""
# the second node's step, or the script of the job, is killed while it packs, once the first one has packed
CUT_OFF = """#!/bin/bash
case $* in *volta2.part*)
  echo part >"$2"
  until [ -e "$NSW_HOME/reports.volta1.tar" ]; do sleep 0.1; done
  KILL; sleep 60; exit 1 ;;
esac
exec /usr/bin/tar "$@"
"""


def run(place: Real, ranks: str = "all", *, expected: int = 0) -> str:
    (place.work / "recipe.yaml").write_text(RECIPE.replace("WORK", str(place.work)).replace("RANKS", ranks))
    (place.work / "work.py").write_text("def work():\n    return sum(range(100_000))\n\nwork()\n")
    (place.work / "sites.yaml").write_text("nsw: 1\nsites: {c: {scheduler: slurm, gpus: {per_node: 4}}}\n")
    done = place.nsw("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    assert done.returncode == expected, done.stderr + done.stdout
    return done.stdout + done.stderr


def written(place: Real) -> list[str]:
    """The reports that are on the shared file system."""
    return sorted(file.name for file in campaign(place).glob("scratch/runs/*/attempt-1/*") if "host" in file.name)


def archives(place: Real) -> list[str]:
    return sorted(file.name for file in campaign(place).glob("scratch/runs/*/attempt-1/reports.*"))


@pytest.mark.slurm
def test_each_node_leaves_one_file_and_every_rank_is_read(unaccounted: Real):
    with unaccounted.in_folder() as place:
        said = run(place)
        assert "left one" not in said
        assert (written(place), archives(place)) == ([], ["reports.volta1.tar", "reports.volta2.tar"])
        assert {row["rank"] for row in rows(place, "functions")} == {*range(8)}
        home = campaign(place) / "reports/case.host.r1"
        assert sorted(file.name for file in home.glob("host.*")) == [f"host.rank{rank}.pstats" for rank in range(8)]
        assert [*(place.work / "nodes").iterdir()] == []
        assert all(row["start_delay_s"] >= 0 for row in rows(place, "ranks"))
        assert is_unpacked(home, "reports.volta1.tar")
        (home / "host.rank7.pstats").unlink()  # then its archive is no copy of what is here
        cleaned = place.nsw("clean", "--yes", "--root", "campaigns")
        assert cleaned.returncode == 0, cleaned.stderr
        assert archives(place) == ["reports.volta2.tar"]


@pytest.mark.slurm
def test_a_share_of_the_ranks_is_profiled_and_no_other_missed(unaccounted: Real):
    with unaccounted.in_folder() as place:
        said = run(place, "20%")
        assert "host: 20% of 8 ranks profiled: ranks " in said
        named = {int(n) for n in said.split("profiled: ranks ")[1].splitlines()[0].split(", ")}
        assert len(named) == 2
        assert {row["rank"] for row in rows(place, "functions")} == named
        assert "no report of" not in said


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("kill", "state", "message"),
    [
        ('scancel --signal=KILL "$SLURM_JOB_ID"', "done", "no report of ranks 4, 5, 6, 7: 4 of 8 processes left one"),
        (
            'pid=${NSW_REPORTS##*-}; kill -9 "${pid%%.*}"; scancel "$SLURM_JOB_ID"',
            "failed",
            "in the middle of this run",
        ),
    ],
)
def test_what_a_node_could_not_pack_is_said_and_stays_there(unaccounted: Real, kill: str, state: str, message: str):
    with unaccounted.in_folder() as place:
        (place.work / "bin").mkdir()
        (place.work / "bin" / "tar").write_text(CUT_OFF.replace("KILL", kill, 1))
        (place.work / "bin" / "tar").chmod(0o755)
        assert message in " ".join(run(place, expected=1).split())
        assert states(place) == {state: 1}
        assert archives(place) == ["reports.volta1.tar"]
        assert len([*(campaign(place) / "reports/case.host.r1").glob("host.*")]) == 4
        (left,) = (place.work / "nodes").iterdir()
        assert left.name.endswith(".volta2")
        assert len([*left.iterdir()]) == 4


def pack(home: Path, **files: bytes) -> Path:
    for name, content in files.items():
        (home / f"{name}.pstats").write_bytes(content)
    with tarfile.open(home / "reports.n1.tar", "w") as tar:
        for name in files:
            tar.add(home / f"{name}.pstats", f"{name}.pstats")
            (home / f"{name}.pstats").unlink()
    return home / "reports.n1.tar"


PATTERNS = ("host*.pstats", "reports.*.tar")


def test_a_damaged_archive_stays_beside_what_is_whole_in_it(tmp_path: Path):
    archive = pack(tmp_path, host_a=b"a" * 3000, host_b=b"b" * 30_000)
    archive.write_bytes(archive.read_bytes()[:12_000])
    unpack_node_archives(tmp_path, PATTERNS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["host_a.pstats", "reports.n1.tar"]


def test_an_archive_holds_reports_and_nothing_else(tmp_path: Path):
    archive = pack(tmp_path, host_a=b"a", status=b"state=done")
    unpack_node_archives(tmp_path, PATTERNS)
    assert not (tmp_path / "status.pstats").exists()
    assert archive.exists()
    with tarfile.open(archive, "w") as tar:
        link = tarfile.TarInfo("host_link.pstats")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo("host/../../host_b.pstats"))
    unpack_node_archives(tmp_path, PATTERNS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["host_a.pstats", "reports.n1.tar"]
