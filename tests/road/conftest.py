"""Campaigns of small shell programs on this machine, driven through the command line as a user would."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

SITES = """
nsw: 1
sites:
  here: {scheduler: local, transport: local, gpus: {per_node: 0}, limits: {max_in_flight: 2}}
  one: {scheduler: local, transport: local, gpus: {per_node: 0}, limits: {max_in_flight: 1}}
"""


@dataclass
class Road:
    """A folder with recipes, a sites file and campaigns."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.home / "campaigns"

    def recipe(self, text: str, name: str = "recipe.yaml") -> Path:
        path = self.home / name
        path.write_text(dedent(text))
        return path

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "nsw", *map(str, words)]

    @property
    def env(self) -> dict[str, str]:
        mine = {"NSW_ROOT": str(self.root), "NSW_SITES": str(self.home / "sites.yaml"), "COLUMNS": "160"}
        return os.environ | mine | {"XDG_CONFIG_HOME": str(self.home / "config")} | self.environment

    def nsw(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, env=self.env, cwd=self.home, check=False, timeout=120
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.home
        )

    def run(self, text: str, *words: str, site: str = "here") -> subprocess.CompletedProcess[str]:
        return self.nsw("run", str(self.recipe(text)), "--site", site, *words)

    def status(self, *words: str) -> dict:
        done = self.nsw("status", "--json", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def runs(self) -> dict[str, dict]:
        return {run["id"]: run for run in self.status()["runs"]}

    @property
    def campaign(self) -> Path:
        (only,) = [p for p in self.root.iterdir() if p.is_dir()]
        return only

    def output(self, run: str) -> str:
        return (self.campaign / "reports" / run / "stdout").read_text()


@pytest.fixture
def road(tmp_path) -> Road:
    home = tmp_path / "a road with a space"
    home.mkdir()
    (home / "sites.yaml").write_text(SITES)
    return Road(home)
