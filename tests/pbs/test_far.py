"""A campaign on a PBS machine behind a real sshd that greets before each command."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.contract.campaigns import ran, wait_until
from tests.remote.conftest import SSHD, Server

if TYPE_CHECKING:
    from .places import Pbs

SITES = """
nsw: 1
sites:
  p:
    scheduler: pbs
    transport: {kind: KIND, host: far, config: CONFIG}
    scratch: SCRATCH
    limits: {lost_after: 20s}
"""
RECIPE = """
nsw: 1
name: far
app:
  command: bash -c 'echo {{ n }} >>WORK/ran; [ {{ n }} != 2 ] || until [ -e WORK/go ]; do sleep 0.05; done; echo speed={{ n }}'
  figures: {speed: {regex: 'speed=(\\d+)', unit: 1/s}}
matrix: {n: [1, 2, 3]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m}
"""
WORDS = ("run", "recipe.yaml", "--site", "p", "--sites", "sites.yaml", "--root", "campaigns", "--yes")


@pytest.fixture(params=["openssh", "ssh"])
def far(pbs, tmp_path, request):
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    fake = {**pbs.double.env, "PATH": f"{pbs.double.env['PATH'].partition(':')[0]}:/usr/local/bin:/usr/bin:/bin"}
    exports = " ".join(f"{name}={value}" for name, value in fake.items())
    more = f'ForceCommand echo Welcome; export {exports}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'
    server = Server(tmp_path / "sshd", more=more)
    server.start()
    text = SITES.replace("KIND", request.param).replace("CONFIG", str(server.config))
    (pbs.work / "sites.yaml").write_text(text.replace("SCRATCH", str(tmp_path / "scratch")))
    (pbs.work / "recipe.yaml").write_text(RECIPE.replace("WORK", str(pbs.work)))
    yield pbs
    server.stop(sessions=True)


def test_a_recipe_runs_far_away_though_nsw_is_killed_on_the_way(far: Pbs):
    process = far.start(sys.executable, "-m", "nsw", *WORDS)
    wait_until(lambda: ran(far) == [1, 2, 3])
    process.send_signal(signal.SIGKILL)
    process.wait()
    (far.work / "go").touch()
    done = far.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stderr
    assert ran(far) == [1, 2, 3]
    assert len(far.double.control("_jobs")["jobs"]) == 1
    (folder,) = (far.work / "campaigns").iterdir()
    assert (folder / "reports/n-3.baseline.r1/stdout").read_text() == "speed=3\n"
