"""docs/extending/transport.md: its blocks are installed as a package, and a campaign runs through them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from nsw.engine.ledger import Ledger

from .packages import block, install

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """
nsw: 1
name: boxed
app: {command: "bash -c 'echo $HOME >&2; [ {{ n }} != 2 ]'"}
matrix: {n: [1, 2]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""
# commands run with another home folder, in another one
PODMAN = """#!/bin/sh
[ "$1 $2" = "exec -i" ] || exit 125
[ "$3" = gpu-box ] || { echo "Error: no such container $3" >&2; exit 125; }
shift 3; mkdir -p THERE; cd THERE; HOME=THERE exec "$@"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The module of the page, installed in a folder of its own, and the stand-in first on PATH."""
    install("transport.md", tmp_path / "site", "podman_nsw.py")
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text(PODMAN.replace("THERE", str(tmp_path / "there")))
    podman.chmod(0o755)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "sites.yaml").write_text(block("transport.md", "yaml"))
    path = f"{podman.parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PATH": path}


def run(env: dict[str, str], work: Path) -> subprocess.CompletedProcess[str]:
    words = ("run", "recipe.yaml", "--site", "boxed", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
    argv = (sys.executable, "-m", "nsw", *words)
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=work)


def test_a_campaign_runs_through_the_transport_of_the_page(env, tmp_path):
    done = run(env, tmp_path)
    assert done.returncode == 1, done.stderr
    (folder,) = (tmp_path / "campaigns").iterdir()
    with Ledger(folder / "campaign.db", read_only=True) as ledger:
        assert [str(run.state) for run in ledger.runs()] == ["done", "failed"]
    said = "".join(path.read_text() for path in (tmp_path / "there" / "nsw").rglob("attempt-1/stderr"))
    assert said.split() == [str(tmp_path / "there")] * 2


def test_a_container_that_is_not_there_is_explained_as_the_page_says(env, tmp_path):
    sites = tmp_path / "sites.yaml"
    sites.write_text(sites.read_text().replace("gpu-box", "gone"))
    done = run(env, tmp_path)
    assert done.returncode == 3
    assert "no command can be started in the container gone" in done.stderr
    assert "`podman start gone`" in done.stderr
