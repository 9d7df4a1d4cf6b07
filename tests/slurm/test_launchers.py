"""Programs of several processes on a real Slurm, each process profiled by a real nsys: one report a rank."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import nvtx
import pytest

from tests.nsys_faults import retried

from .test_campaign import campaign, states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .places import Real

pytestmark = [pytest.mark.slurm, pytest.mark.nsys]

RECIPE = """
nsw: 1
name: ranks
app:
  command: /usr/bin/python3 prog.py
  files: [prog.py]
  env: {PYTHONPATH: WORK/lib}
  setup: ["export PATH=WORK/bin:$PATH"]
  launcher: LAUNCHER
  MORE
passes: PASSES
resources: {gpus: 0, time: 2m, cpus_per_task: 1}
"""
PROGRAM = """
import os, time
rank = next((os.environ[v] for v in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "RANK") if v in os.environ), "none")
try:
    import nvtx
except ImportError:  # this machine's own Python is of another version
    pass
else:
    with nvtx.annotate("step of rank " + rank):
        time.sleep(0.05)
time.sleep(0.02)
told = f"rank {rank} of {os.environ.get('SRUN_CPUS_PER_TASK')} {os.environ.get('CONTAINER')}"
os.write(1, told.encode() + b"\\n")  # at once: torchrun's processes share what they write to
"""
MPIRUN = """#!/bin/bash
[ "$1" = -np ] || exit 125
n=$2; shift 2
unset SLURM_PROCID
# one after another: of several nsys 2022 that start at once, one now and then loses its own agent
for ((i = 0; i < n; i++)); do OMPI_COMM_WORLD_RANK=$i "$@" || code=$?; done
exit ${code:-0}
"""
TORCHRUN = """#!/bin/bash
# stands in for python -m torch.distributed.run: that Python's words, then PROGRAM
[ "$1 $2" = "-m torch.distributed.run" ] || exec /usr/bin/python3 "$@"
shift 2
while [[ $1 = --* ]]; do case $1 in --nproc_per_node=*) n=${1#*=} ;; --standalone) ;; --no-python) bare=yes ;; *) exit 125 ;; esac; shift; done
unset SLURM_PROCID
[ "$bare" = yes ] || set -- /usr/bin/python3 "$@"
for ((i = 0; i < n; i++)); do RANK=$i "$@" & done
wait
"""
APPTAINER = """#!/bin/bash
[ "$1" = exec ] || exit 125
shift
while [[ $1 = --* ]]; do case $1 in --pwd=*) cd "${1#*=}" ;; --bind=*) echo "${1#*=}" >>WORK/binds ;; *) exit 125 ;; esac; shift; done
shift
CONTAINER=apptainer exec "$@"
"""


@pytest.fixture(scope="module")
def nsys() -> Iterator[Path]:
    """An nsys that a job of another user may read."""
    found = Path(shutil.which("nsys") or "").resolve()
    folder = Path(tempfile.mkdtemp(prefix="nsw-nsys-", dir="/tmp"))
    folder.chmod(0o755)
    home = found.parent.parent
    if subprocess.run(["cp", "-al", home, folder / "nsys"], capture_output=True, check=False).returncode:
        subprocess.run(["cp", "-a", home, folder / "nsys"], check=True)
    yield folder / "nsys" / found.parent.name / found.name
    shutil.rmtree(folder)


@pytest.fixture
def cluster(unaccounted: Real, nsys: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Real]:
    monkeypatch.setenv("NSW_NSYS", str(nsys))  # reads the reports
    with unaccounted.in_folder() as place:
        (place.work / "bin").mkdir()
        (place.work / "sites.yaml").write_text(
            f"nsw: 1\nsites:\n  c: {{scheduler: slurm, profilers: {{nsys: {nsys}}}}}\n"
        )
        shutil.copytree(Path(nvtx.__file__).parent, place.work / "lib" / "nvtx")
        for name, text in (("mpirun", MPIRUN), ("python3", TORCHRUN), ("apptainer", APPTAINER)):
            tool = place.work / "bin" / name
            tool.write_text(text.replace("WORK", str(place.work)))
            tool.chmod(0o755)
        (place.work / "prog.py").write_text(PROGRAM)
        yield place


def run(place: Real, launcher: str, passes: str = "[timeline: {trace: [osrt, nvtx]}]", more: str = "", python=""):
    text = RECIPE.replace("LAUNCHER", launcher).replace("PASSES", passes).replace("MORE", more)
    text = text.replace("WORK", str(place.work)).replace("/usr/bin/python3", python or "/usr/bin/python3")
    (place.work / "recipe.yaml").write_text(text)
    done = place.nsw("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    done = retried(done, "case.timeline.r1", place.nsw)
    assert done.returncode == 0, done.stderr + done.stdout
    assert states(place) == {"done": 1}


def reports(place: Real, kind: str = "timeline", ending: str = "*.nsys-rep") -> list[str]:
    return sorted(p.name for p in (campaign(place) / f"reports/case.{kind}.r1").glob(ending))


def rows(place: Real, table: str):
    import pyarrow.parquet as pq

    return pq.read_table(campaign(place) / f"tables/{table}.parquet").to_pylist()


def output(place: Real, kind: str = "timeline") -> list[str]:
    text = (campaign(place) / f"reports/case.{kind}.r1/stdout").read_text()
    return sorted(line for line in text.splitlines() if line.startswith("rank"))


def check_ranks(place: Real, count: int) -> None:
    assert reports(place) == [f"timeline.rank{n}.nsys-rep" for n in range(count)]
    assert {r["rank"] for r in rows(place, "osrt_summary")} == set(range(count))
    nvtx_rows = rows(place, "nvtx_summary") if (campaign(place) / "tables/nvtx_summary.parquet").exists() else []
    assert all(r["name"].endswith(f"step of rank {r['rank']}") for r in nvtx_rows)


def test_srun_starts_a_profiler_for_each_process(cluster):
    run(cluster, "{kind: srun, processes: 2}")
    assert [line.split(" of ")[0] for line in output(cluster)] == ["rank 0", "rank 1"]
    assert output(cluster)[0].startswith("rank 0 of 1 ")  # srun is told the cores of a process
    check_ranks(cluster, 2)
    assert "nsys: NVIDIA Nsight Systems version 20" in (campaign(cluster) / "recipe.lock.yaml").read_text()


def test_a_node_packs_what_nsys_recorded_of_its_processes(cluster):
    run(cluster, "{kind: srun, processes: 2}", "[timeline: {trace: [osrt, nvtx]}]\ncollect: node")
    check_ranks(cluster, 2)
    (home,) = campaign(cluster).glob("scratch/runs/case.timeline.r1/attempt-1")
    assert [*home.glob("timeline*")] == []
    assert len([*home.glob("reports.*.tar")]) == 1


def test_mpirun_starts_a_profiler_for_each_process(cluster):
    run(cluster, "{kind: mpirun, processes: 3}")
    check_ranks(cluster, 3)


def test_one_profiler_around_torchrun_makes_one_report_of_all_its_processes(cluster):
    run(cluster, "{kind: torchrun, processes: 2}", python=f"{cluster.work}/bin/python3")
    assert reports(cluster) == ["timeline.nsys-rep"]
    assert [line.split(" of ")[0] for line in output(cluster)] == ["rank 0", "rank 1"]
    assert {r["rank"] for r in rows(cluster, "osrt_summary")} == {None}


def test_a_profiler_in_each_process_of_torchrun_when_asked(cluster):
    run(cluster, "{kind: torchrun, processes: 2, profiler: inside}", passes="[host: {tool: cprofile}]",
        python=f"{cluster.work}/bin/python3")  # fmt: skip
    assert reports(cluster, "host", "*.pstats") == ["host.rank0.pstats", "host.rank1.pstats"]
    assert {r["rank"] for r in rows(cluster, "functions")} == {0, 1}


def test_one_profiler_around_srun_when_asked(cluster):
    run(cluster, "{kind: srun, processes: 2, profiler: outside}")
    assert reports(cluster) == ["timeline.nsys-rep"]


def test_srun_of_containers_with_the_site_s_nsys_brought_in(cluster, nsys):
    box = "container: {runtime: apptainer, image: i.sif, profiler: outside}"
    run(cluster, "{kind: srun, processes: 2}", more=box)
    assert [line.split()[-1] for line in output(cluster)] == ["apptainer", "apptainer"]
    check_ranks(cluster, 2)
    assert f"{nsys.parent.parent}:{nsys.parent.parent}" in (cluster.work / "binds").read_text().splitlines()
