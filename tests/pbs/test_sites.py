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


@pytest.mark.parametrize("gpus", [0, 6, 12])
def test_on_aurora_whole_nodes_are_asked_for_and_no_gpus(tmp_path, gpus):
    nodes = max(1, gpus // 6)
    (tmp_path / "r.yaml").write_text(
        f"nsw: 1\nname: t\napp: {{command: python x.py}}\npasses: [baseline: {{}}]\nresources: {{gpus: {gpus}, nodes: {nodes}}}\n"
    )
    shown = nsw("render", tmp_path / "r.yaml", "--site", "aurora", "--sites", SITES / "aurora.yaml").stdout
    (asked,) = (line for line in shown.splitlines() if line.startswith("#PBS -l select="))
    parts = [f"{nodes}:ncpus=1", *(["system=aurora"] if gpus else [])]
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
    assert "missing: passes timeline, counters (2 runs): the site's GPUs are Intel's (pvc)" in text


@pytest.mark.parametrize(
    ("scheduler", "asks", "said"),
    [
        ("pbs", "gpus: 3, nodes: 2", "3 GPUs cannot be divided equally among 2 nodes"),
        ("pbs", "gpus: 1, gres: 'gpu:1'", "gres is no part of a chunk of PBS: 'gpu:1'"),
        ("lsf", "gpus: 3, nodes: 2", "3 GPUs cannot be divided equally among 2 nodes"),
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
