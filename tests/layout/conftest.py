"""Job scripts as planned and rendered for a site, run by bash: each node is a host name of its own on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from nsw.engine.read import rank_locations
from nsw.plan.build import build_plan
from nsw.plan.model import SiteFacts
from nsw.recipe.load import load_recipe_text
from nsw.schedulers.create import adapter_of
from nsw.scripts.render import render_job, write_machinery
from nsw.site.load import load_site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ON_A_NODE = """#!/bin/bash
# HOST WORDS...: as on another node: a host's name of its own, the folder and the variables of a new login
host=$1; shift
exec env -i HOME="$HOME" PATH=/usr/bin:/bin unshare --uts bash -c 'echo "$1" >/proc/sys/kernel/hostname; cd /; shift; exec "$@"' _ "$host" "$@"
"""
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
exec "${0%/*}/on-a-node" "$1" bash -c "${*:2}"
"""


def can_be_nodes() -> bool:
    """Whether this user may give a process a host name of its own."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--uts", "true"], check=False).returncode == 0


@dataclass
class Job:
    """A folder with tools that are first on the job's PATH; `run` plans a recipe and runs the script of its only job."""

    folder: Path

    def tool(self, name: str, text: str) -> Path:
        tools = self.folder / "bin"
        tools.mkdir(exist_ok=True)
        file = tools / name
        file.write_text(text)
        file.chmod(0o755)
        return file

    def link(self, name: str, program: str) -> None:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"no {program} on this machine")
        self.tool(name, f'#!/bin/bash\nexec {found} "$@"\n')  # no link: some look for their parts beside themselves

    def script(self, recipe: str, site: str) -> tuple[Path, Path]:
        """The job's script, and the folder of its only run."""
        sites = self.folder / "sites.yaml"
        sites.write_text(f"nsw: 1\nsites:\n  here: {{{site}}}\n")
        place = load_site("here", [sites])
        plan = build_plan(load_recipe_text(dedent(recipe), site="here"), place, SiteFacts())
        (job,) = plan.jobs
        scratch = self.folder / "scratch"
        adapter = adapter_of(place.site.scheduler)
        assert adapter is not None
        (scratch / "scripts").mkdir(parents=True, exist_ok=True)
        write_machinery(scratch / "scripts")
        text = render_job(
            plan, job, scheduler=place.site.scheduler, campaign="c", scratch=str(scratch),
            directives=adapter.directives(job, str(scratch)), restarts=adapter.capabilities.restarts,
        )  # fmt: skip
        (script := scratch / "scripts" / "job.sh").write_text(text)
        return script, scratch / "runs" / job.runs[0].id / "attempt-1"

    def run(self, recipe: str, site: str, nodes: tuple[str, ...] = (), **env: str) -> Path:
        """Run the script on the first of the nodes; the folder of its run."""
        script, home = self.script(recipe, site)
        words = ["bash", script, "1", "0"]
        if nodes:
            hosts = "".join(f"{node}\n" for node in nodes)
            (self.folder / "nodes").write_text(hosts)
            name = f"echo {nodes[0]} >/proc/sys/kernel/hostname"
            words = ["unshare", "--uts", "bash", "-c", f'{name}; exec "$@"', "_", *map(str, words)]
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        variables = {name: value for name, value in os.environ.items() if name != "HOSTNAME"}
        done = subprocess.run(
            words, env=variables | {"PATH": path} | env, capture_output=True, text=True, check=False, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return home


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path)
    made.tool("on-a-node", ON_A_NODE)
    made.tool("ssh", SSH)
    return made


def status(home: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (home / "status").read_text().splitlines())


def counts(home: Path) -> dict[str, int]:
    """How many ranks landed on each node."""
    found: dict[str, int] = {}
    for row in rank_locations(home).rows:
        found[row["host"]] = found.get(row["host"], 0) + 1
    return found


def printed(home: Path) -> list[str]:
    return sorted((home / "stdout").read_text().splitlines())


def rows(home: Path) -> dict[int, Mapping[str, object]]:
    return {row["rank"]: row for row in rank_locations(home).rows}
