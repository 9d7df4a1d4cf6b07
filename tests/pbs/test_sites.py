"""The example sites of PBS machines, and what a recipe becomes there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nsw.site.load import read_sites

ROOT = Path(__file__).parents[2]
SITES = ROOT / "recipes" / "sites"


def nsw(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "nsw", *words], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("name", ["polaris.yaml", "aurora.yaml"])
def test_an_example_site_is_without_faults(name):
    assert all(found.site.scheduler == "pbs" for found in read_sites(SITES / name))


def test_on_polaris_each_process_under_mpiexec_has_a_gpu_of_its_own():
    recipe = ROOT / "recipes" / "polaris_scaling.yaml"
    shown = nsw("render", recipe, "--site", "polaris", "--sites", SITES / "polaris.yaml").stdout
    for line in (
        "#PBS -l select=2:ncpus=32:system=polaris:mpiprocs=4",
        "#PBS -l place=scatter",
        "#PBS -l walltime=00:11:00",
        "#PBS -q debug",
        "#PBS -A MyProject",
        "#PBS -l filesystems=home:eagle",
        "mpiexec -n 8 --ppn 4 --depth=8 --cpu-bind depth bash gpu_affinity.sh python train.py -b 128 --steps 20",
    ):
        assert line in shown, line


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PALS_LOCAL_RANKID": "0", "PALS_RANKID": "4", "NSW_PROCESSES": "8"}, "3 4 0 8 nid1 21"),
        ({"PMI_LOCAL_RANK": "3", "PMI_RANK": "3", "PMI_SIZE": "4"}, "0 3 0 4 nid1 21"),
        ({"GPUS_PER_NODE": "6", "PALS_LOCAL_RANKID": "7"}, "4 0 0 1 nid1 21"),
    ],
)
def test_the_affinity_script_gives_gpus_and_ranks(tmp_path, variables, said):
    (tmp_path / "nodes").write_text("nid1\nnid2\n")
    show = 'echo "$CUDA_VISIBLE_DEVICES $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR ${MASTER_PORT:0:2}"'
    done = subprocess.run(
        ["bash", ROOT / "recipes" / "apps" / "gpu_affinity.sh", "bash", "-c", show], capture_output=True, text=True,
        check=True, env={"PATH": "/usr/bin:/bin", "PBS_NODEFILE": str(tmp_path / "nodes"), "PBS_JOBID": "1234[5].pbs0"} | variables,
    )  # fmt: skip
    assert done.stdout.strip() == said


@pytest.mark.parametrize("gpus", [0, 6, 12])
def test_on_aurora_whole_nodes_are_asked_for_and_no_gpus(tmp_path, gpus):
    nodes = max(1, gpus // 6)
    (tmp_path / "r.yaml").write_text(
        f"nsw: 1\nname: t\napp: {{command: python x.py}}\npasses: [baseline: {{}}]\nresources: {{gpus: {gpus}, nodes: {nodes}}}\n"
    )
    shown = nsw("render", tmp_path / "r.yaml", "--site", "aurora", "--sites", SITES / "aurora.yaml").stdout
    (asked,) = (line for line in shown.splitlines() if line.startswith("#PBS -l select="))
    parts = [f"{nodes}:ncpus=1", *(["system=aurora"] if gpus else []), *(["mpiprocs=1"] if nodes > 1 else [])]
    assert asked == f"#PBS -l select={':'.join(parts)}"


def test_on_intel_gpus_only_baseline_and_host_passes_are_planned_and_the_rest_says_why(tmp_path):
    (tmp_path / "r.yaml").write_text(
        "nsw: 1\nname: t\napp: {command: python x.py}\n"
        "passes: [baseline: {}, timeline: {}, counters: {metrics: [ipc], kernels: {regex: x}}, host: {tool: cprofile}]\n"
        "resources: {gpus: 0}\n"
    )
    planned = nsw("plan", tmp_path / "r.yaml", "--site", "aurora", "--sites", SITES / "aurora.yaml")
    text = " ".join(planned.stdout.split())
    assert "baseline, host (cprofile)" in text, planned
    assert "passes timeline, counters: the site's GPUs are Intel's (pvc)" in text


@pytest.mark.parametrize(
    ("scheduler", "asks", "said"),
    [
        ("pbs", "gpus: 3, nodes: 2", "3 GPUs cannot be divided equally among 2 nodes"),
        ("pbs", "gpus: 1, gres: 'gpu:1'", "gres is no part of a chunk of PBS: 'gpu:1'"),
        ("lsf", "gpus: 3, nodes: 2", "3 GPUs cannot be divided equally among 2 hosts"),
        ("cobalt", "gpus: 1, account: my project", "-A cannot be 'my project': a #COBALT line has no quotes"),
    ],
)
def test_what_no_directive_can_say_is_refused_at_its_line(tmp_path, scheduler, asks, said):
    start = "nsw: 1\nname: t\napp: {command: python x.py}\npasses: [baseline: {}]\n"
    (tmp_path / "r.yaml").write_text(f"{start}resources: {{{asks}}}\n")
    (tmp_path / "s.yaml").write_text(f"nsw: 1\nsites: {{s: {{scheduler: {scheduler}, gpus: {{per_node: 4}}}}}}\n")
    planned = nsw("plan", tmp_path / "r.yaml", "--site", "s", "--sites", tmp_path / "s.yaml")
    assert planned.returncode == 2
    assert "r.yaml:5:" in planned.stderr, planned.stderr
    assert said in " ".join(planned.stderr.split())
