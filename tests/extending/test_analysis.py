"""docs/extending/analysis.md: its blocks are installed as a package, and the answer of a campaign has what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from .packages import install

RECIPE = """
nsw: 1
name: yields
app: {command: "echo speed={{ 10 * gpus ** 0.5 }}", figures: {speed: {regex: "speed=(.*)", unit: images/s}}}
matrix: {gpus: [1, 4]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
report: {scaling: {axis: gpus, figure: speed, kind: strong}}
"""


@pytest.fixture
def nsw(tmp_path):
    """`nsw(words, ...)` in a folder with the recipe; the page's package is installed beside it."""
    install("analysis.md", tmp_path / "site", "yield_nsw.py")
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "XDG_CONFIG_HOME": str(tmp_path)}

    def call(*words):
        argv = (sys.executable, "-m", "nsw", *words)
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=tmp_path)

    return call


def test_the_answer_has_the_blocks_of_another_package_its_findings_on_the_first_screen(nsw, tmp_path):
    done = nsw("run", "recipe.yaml", "--site", "local")
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("A GPU yields most in gpus-1.") > done.stdout.index("50 % efficiency at gpus=4")
    assert "speed per GPU" not in done.stdout
    assert "speed per GPU" in nsw("summarize", "--full").stdout
    blocks = json.loads(nsw("summarize", "--json").stdout)["blocks"]
    (bars,) = [block for block in blocks if block["name"] == "yield" and block["kind"] == "bars"]
    assert bars["rows"] == [["gpus-1", 10.0], ["gpus-4", 5.0]]
    assert bars["evidence"] == [{"table": "figures", "cases": []}]
    assert "**speed per GPU**" in nsw("summarize", "-f", "markdown").stdout


def test_an_analysis_that_fails_is_named(nsw, tmp_path):
    assert nsw("run", "recipe.yaml", "--site", "local").returncode == 0
    (tmp_path / "site" / "yield_nsw.py").write_text("def blocks(summary):\n    return 1 / 0\n")
    done = nsw("summarize")
    assert done.returncode == 2
    assert "the analysis yield (yield_nsw:blocks) of another package failed: ZeroDivisionError" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rule_and_a_class_of_another_package_are_in_the_answer_of_a_report(tmp_path):
    classes = 'CLASSES = (("sort and scan", "my_own_order"),)\n'
    install("analysis.md", tmp_path / "site", "sorts_nsw.py", 1, classes)
    report = tmp_path / "report.csv"
    report.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "80.0,8000,1,8000.0,8000.0,8000,8000,0.0,my_own_order(int)\n20.0,2000,1,2000.0,2000.0,2000,2000,0.0,gemm(int)\n"
    )
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    argv = (sys.executable, "-m", "nsw", "read", str(report))
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "80 % of GPU time is sorting. Keep the data in order." in done.stdout
