"""Cobalt behind a real sshd that greets before each command, and what `nsw sites check` says of it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.contract.campaigns import ran, wait_until
from tests.remote.conftest import SSHD, Server

if TYPE_CHECKING:
    from .places import Cobalt

SITES = """
nsw: 1
sites:
  c:
    scheduler: cobalt
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
resources: {gpus: 0, time: 4m}
"""
WORDS = ("run", "recipe.yaml", "--site", "c", "--sites", "sites.yaml", "--root", "campaigns", "--yes")


@pytest.fixture(params=["openssh", "ssh"])
def far(cobalt, tmp_path, request):
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    names = ("NSW_FAKE_COBALT", "NSW_FAKE_PYTHON")
    exports = " ".join(f"{name}={cobalt.env[name]}" for name in names)
    path = f"PATH={cobalt.env['PATH'].partition(':')[0]}:/usr/local/bin:/usr/bin:/bin QSTAT_HEADER=User"
    more = f'ForceCommand echo Welcome; export {exports} {path}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'
    server = Server(tmp_path / "sshd", more=more)
    server.start()
    text = SITES.replace("KIND", request.param).replace("CONFIG", str(server.config))
    (cobalt.work / "sites.yaml").write_text(text.replace("SCRATCH", str(tmp_path / "scratch")))
    (cobalt.work / "recipe.yaml").write_text(RECIPE.replace("WORK", str(cobalt.work)))
    yield cobalt
    server.stop(sessions=True)


def test_a_recipe_runs_far_away_though_nsw_is_killed_on_the_way(far: Cobalt):
    process = far.start(sys.executable, "-m", "nsw", *WORDS)
    wait_until(lambda: ran(far) == [1, 2, 3])
    process.send_signal(signal.SIGKILL)
    process.wait()
    (far.work / "go").touch()
    done = far.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stderr
    assert ran(far) == [1, 2, 3]
    assert far.cqm()["next"] == 4
    (folder,) = (far.work / "campaigns").iterdir()
    assert (folder / "reports/n-3.baseline.r1/stdout").read_text() == "speed=3\n"


def test_sites_check_tells_cobalt_from_the_others_that_own_a_qsub(cobalt):
    site = f"nsw: 1\nsites:\n  c: {{scheduler: cobalt, scratch: {cobalt.work}/s}}\n  p: {{scheduler: pbs}}\n"
    (cobalt.work / "sites.yaml").write_text(site)
    assert "scheduler Cobalt" in " ".join(cobalt.nsw("sites", "check", "c", "--sites", "sites.yaml").stdout.split())
    wrong = cobalt.nsw("sites", "check", "p", "--sites", "sites.yaml")
    assert "Cobalt" in wrong.stdout + wrong.stderr
