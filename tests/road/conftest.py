"""Campaigns of small shell programs, driven through the command line as a user would: on this machine, and behind `far`.

A test marked `far` also runs over that transport: `@pytest.mark.far(quick=True)` always, `@pytest.mark.far` in
`make soak`.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import pytest

from tests.exits import with_exit
from tests.far.place import Far, folder_of_both, make_user, missing

SITES = """
nsw: 1
sites:
  here: {scheduler: local, transport: local, gpus: {per_node: 0}, limits: {max_in_flight: 2, cpu_runs: 4}}
  one: {scheduler: local, transport: local, gpus: {per_node: 0}, limits: {max_in_flight: 1, cpu_runs: 4}}
"""


def pytest_generate_tests(metafunc):
    if "road" not in metafunc.fixturenames:
        return
    places, marker = ["here"], metafunc.definition.get_closest_marker("far")
    if marker is not None:
        places.append(pytest.param("far", marks=() if marker.kwargs.get("quick") else pytest.mark.soak))
    metafunc.parametrize("road", places, indirect=True)


@dataclass
class Road:
    """A folder with recipes, a sites file and campaigns."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    far: Far | None = None  # the site behind a transport, where it is not this machine

    @property
    def scratch(self) -> Path:
        """The campaign's folder on the site."""
        if self.far is not None:
            return self.far.scratch / self.campaign.name
        return self.campaign / "scratch"

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

    def nsw(self, *words: str, exits: int | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, env=self.env, cwd=self.home, check=False, timeout=300
        )
        return with_exit(done, exits)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.home
        )

    def run(
        self, text: str, *words: str, site: str = "here", exits: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return self.nsw("run", str(self.recipe(text)), "--site", site, *words, exits=exits)

    def status(self, *words: str) -> dict:
        return json.loads(self.nsw("status", "--json", *words, exits=0).stdout)

    def runs(self) -> dict[str, dict]:
        return {run["id"]: run for run in self.status()["runs"]}

    @property
    def campaign(self) -> Path:
        (only,) = [p for p in self.root.iterdir() if p.is_dir()]
        return only

    def output(self, run: str) -> str:
        return (self.campaign / "reports" / run / "stdout").read_text()


@pytest.fixture
def road(request, tmp_path):
    if getattr(request, "param", "here") == "here":
        home = tmp_path / "a road with a space"
        home.mkdir()
        (home / "sites.yaml").write_text(SITES)
        yield Road(home)
        return
    if (why := missing()) is not None:
        pytest.skip(why)
    make_user()
    with folder_of_both() as home:
        site = Far(home)
        (home / "sites.yaml").write_text(SITES.replace("transport: local", site.site))
        yield Road(home, dict(site.environment), site)
