"""docs/extending/scheduler.md: its blocks are installed as a package, and a campaign runs with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.engine.ledger import Ledger

from .packages import block, install

TSP = shutil.which("tsp") or os.environ.get("NSW_TSP")
RECIPE = """
nsw: 1
name: many
app: {command: "bash -c '[ {{ n }} != 2 ] || exit 3'"}
matrix: {n: [1, 2, 3]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The package of the page, installed in a folder of its own."""
    site = tmp_path / "site"
    install("scheduler.md", site, "tsp_nsw/__init__.py")
    template = site / "tsp_nsw" / "templates" / "job" / "tsp.sh.j2"
    template.parent.mkdir(parents=True)
    template.write_text(block("scheduler.md", "jinja"))
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "sites.yaml").write_text(block("scheduler.md", "yaml"))
    path = f"{Path(TSP).parent}{os.pathsep}{os.environ['PATH']}" if TSP else os.environ["PATH"]
    return os.environ | {"PYTHONPATH": str(site), "PATH": path, "TS_SOCKET": str(tmp_path / "socket")}


def nsw(env: dict[str, str], work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "nsw", *words, "recipe.yaml", "--site", "spooled", "--sites", "sites.yaml")
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False, cwd=work)


def test_the_package_of_the_page_is_known_and_writes_its_scripts(env, tmp_path):
    done = nsw(env, tmp_path, "render")
    assert done.returncode == 0, done.stderr
    assert "TS_ID" in done.stdout + "".join(p.read_text() for p in tmp_path.rglob("*.sh"))


@pytest.mark.skipif(TSP is None, reason="no tsp (apt install task-spooler), and NSW_TSP does not name one")
def test_a_campaign_runs_on_a_real_task_spooler(env, tmp_path):
    try:
        done = nsw(env, tmp_path, "run", "--yes", "--root", "campaigns")
        assert done.returncode == 1, done.stderr
        (folder,) = (tmp_path / "campaigns").iterdir()
        with Ledger(folder / "campaign.db", read_only=True) as ledger:
            assert [str(run.state) for run in ledger.runs()] == ["done", "failed", "done"]
        claims = "".join(path.read_text() for path in folder.rglob("attempt-1/claim"))
        assert sorted(re.findall(r"^job_id=(.*)$", claims, re.MULTILINE)) == ["0", "1", "2"]
    finally:
        subprocess.run(["tsp", "-K"], env=env, check=False)
