"""docs/extending/scheduler.md: its blocks are installed as a package, and a campaign runs with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nsw.campaign.ledger import Ledger

PAGE = (Path(__file__).parents[2] / "docs" / "extending" / "scheduler.md").read_text(encoding="utf-8")
TSP = shutil.which("tsp") or os.environ.get("NSW_TSP")
RECIPE = """
nsw: 1
name: many
app: {command: "bash -c '[ {{ n }} != 2 ] || exit 3'"}
matrix: {n: [1, 2, 3]}
passes: [baseline]
resources: {gpus: 0, time: 1m}
"""


def block(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return found[number]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """The package of the page, installed in a folder of its own."""
    package = tmp_path / "site" / "tsp_nsw"
    (package / "templates" / "job").mkdir(parents=True)
    (package / "__init__.py").write_text(block("python"))
    (package / "templates" / "job" / "tsp.sh.j2").write_text(block("jinja"))
    info = tmp_path / "site" / "tsp_nsw-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tsp-nsw\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        block("toml").replace('[project.entry-points."nsw.schedulers"]', "[nsw.schedulers]").replace('"', "")
    )
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "sites.yaml").write_text(block("yaml"))
    path = f"{Path(TSP).parent}{os.pathsep}{os.environ['PATH']}" if TSP else os.environ["PATH"]
    return os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PATH": path, "TS_SOCKET": str(tmp_path / "socket")}


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
