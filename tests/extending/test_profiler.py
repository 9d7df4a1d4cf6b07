"""docs/extending/profiler.md: its blocks are installed as a package, and a recipe may name its profiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nsw.recipe.passes import PROFILERS

from .packages import block, install

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = "nsw: 1\nname: timed\napp: {command: 'true'}\nresources: {gpus: 0, time: 1m}\n"
SITES = "nsw: 1\nsites: {s: {scheduler: slurm, profilers: {gnutime: /opt/gtime}}}\n"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The package of the page, installed in a folder of its own."""
    install("profiler.md", tmp_path / "site", "gnutime_nsw.py")
    (tmp_path / "recipe.yaml").write_text(RECIPE + block("profiler.md", "yaml"))
    (tmp_path / "sites.yaml").write_text(SITES)
    return os.environ | {"PYTHONPATH": str(tmp_path / "site")}


def nsw(env: dict[str, str], work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "nsw", *words, "recipe.yaml", "--site", "s", "--sites", "sites.yaml")
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=work)


def test_a_recipe_and_a_site_may_name_the_profiler_of_another_package(env, tmp_path):
    done = nsw(env, tmp_path, "plan", "--json")
    assert done.returncode == 0, done.stderr
    assert [run["tool"] for run in json.loads(done.stdout)["runs"]] == [None, "gnutime"]
    done = nsw(env, tmp_path, "render")
    scripts = done.stdout + "".join(p.read_text() for p in tmp_path.rglob("*.sh"))
    assert "/opt/gtime --verbose --output=host.gnutime true" in scripts.replace("'", "")
    assert "nsw_tools='gnutime /opt/gtime'" in scripts  # its version is written down


def test_without_the_package_the_name_is_refused_with_those_that_there_are(env, tmp_path):
    (tmp_path / "sites.yaml").write_text("nsw: 1\nsites: {s: {scheduler: slurm}}\n")
    done = nsw(env | {"PYTHONPATH": ""}, tmp_path, "plan")
    assert done.returncode == 2
    assert f"expected one of {', '.join(PROFILERS['host'])}; found 'gnutime'" in done.stderr
    assert "recipe.yaml:7:" in done.stderr
