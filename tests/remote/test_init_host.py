"""`nsw init --site NAME --host HOST` through a real sshd: the site that it writes is checked, and runs a recipe."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.contract.fakes import fake
from tests.faults.distant import distant, missing
from tests.faults.systems import RealSlurm
from tests.slurm.conftest import unaccounted  # noqa: F401  a fixture

from .conftest import SSHD, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

RECIPE = """
nsw: 1
name: hello
app:
  command: echo speed=3
  figures: {speed: {regex: 'speed=(\\d+)', unit: 1/s}}
resources: {gpus: 0, time: 4m}
"""
# a fake -> what the site must then say of it
FAKES = {
    "pbs": {"scheduler": "pbs", "queue": "workq"},
    "cobalt": {"scheduler": "cobalt", "queue": "default"},
}


@contextmanager
def server_of(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """An sshd before a batch system."""
    if name == "slurm":
        if why := missing():
            pytest.skip(why)
        with distant("openssh", RealSlurm(request.getfixturevalue("unaccounted").conf)) as place:
            yield place.server
        return
    if SSHD is None or shutil.which("ssh") is None or os.geteuid() != 0:
        pytest.skip("no sshd, no ssh, or not root")
    usual = tmp_path / "usr"  # without Slurm, which this machine may have too
    usual.mkdir()
    for command in Path("/usr/bin").iterdir():
        if command.name != "sbatch":
            (usual / command.name).symlink_to(command)
    with fake(name, tmp_path / "there") as place:
        path = f"{place.variables['PATH'].partition(os.pathsep)[0]}:{usual}"
        server = Server(tmp_path / "sshd", environment=dict(place.variables) | {"PATH": path})
        server.start()
        yield server
        server.stop(sessions=True)


@pytest.fixture(params=[pytest.param("slurm", marks=pytest.mark.slurm), *FAKES])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The name of a batch system, and a folder whose `ssh` finds the host `far` before it."""
    (tmp_path / "there").mkdir()
    work = tmp_path / "laptop"
    (work / "bin").mkdir(parents=True)
    with server_of(request.param, request, tmp_path) as server:
        ssh = work / "bin" / "ssh"
        ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {server.config} "$@"\n')
        ssh.chmod(0o755)
        yield request.param, work


def nsw(work: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"HOME": str(work), "PATH": f"{work}/bin:{os.environ['PATH']}", "COLUMNS": "200"}
    for name in ("XDG_CONFIG_HOME", "NSW_SITES", "NSW_SITE"):
        env.pop(name, None)
    return subprocess.run(
        (sys.executable, "-m", "nsw", *words), env=env, cwd=work, capture_output=True, text=True, check=False
    )


def test_a_site_that_init_wrote_is_sound_and_runs_a_recipe(site):
    name, work = site
    said = nsw(work, "init", "--site", "mine", "--host", "far")
    assert said.returncode == 0, said.stderr
    assert "site mine, reached by `ssh far`" in said.stdout
    path = work / ".config" / "nsw" / "sites.yaml"
    made = yaml.safe_load(path.read_text())["sites"]["mine"]
    assert made["transport"]["host"] == "far"
    wanted = FAKES.get(name, {"scheduler": "slurm", "partition": "gpu"})
    assert {key: made[key] for key in wanted} == wanted
    said = nsw(work, "sites", "check", "mine")
    assert said.returncode == 0, said.stdout
    (work / "recipe.yaml").write_text(RECIPE)
    if name != "slurm":  # the fakes want an account, which only a person knows
        path.write_text(path.read_text().replace("#- account: FILL-IN", "account: proj"))
    said = nsw(work, "run", "recipe.yaml", "--site", "mine", "--yes")
    assert said.returncode == 0, said.stderr
    assert "speed" in said.stdout


def test_a_host_that_does_not_answer_writes_nothing_and_says_what_to_try(tmp_path):
    said = nsw(tmp_path, "init", "--site", "mine", "--host", "nobody.invalid")
    assert said.returncode == 3
    assert "nobody.invalid" in said.stderr
    assert "Traceback" not in said.stderr
    assert not (tmp_path / ".config").exists()
