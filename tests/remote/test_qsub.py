"""Batch systems with a `qsub`, and LSF: behind a real sshd that greets before each command; whose `qsub` a site has."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.contract.campaigns import folder, ran, submitted, wait_until
from tests.contract.fakes import fake

from .conftest import SSHD, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.contract.fakes import FakePlace

SITES = """
nsw: 1
sites:
  s:
    scheduler: SCHEDULER
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
WORDS = ("run", "recipe.yaml", "--site", "s", "--sites", "sites.yaml", "--root", "campaigns", "--yes")
MORE = {"cobalt": "QSTAT_HEADER=User"}  # what a user's profile sets there
ALWAYS = ("pbs", "cobalt")
WAYS = [
    pytest.param((name, kind), marks=[] if name in ALWAYS else [pytest.mark.soak], id=f"{name}-{kind}")
    for name in (*ALWAYS, "lsf", "sge")
    for kind in ("openssh", "ssh")
]


@pytest.fixture(params=WAYS)
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FakePlace]:
    if SSHD is None or os.geteuid() != 0:
        pytest.skip("no sshd, or not root")
    system, kind = request.param
    with fake(system, tmp_path) as place:
        commands = place.variables["PATH"].partition(":")[0]
        variables = {**place.variables, "PATH": f"{commands}:/usr/local/bin:/usr/bin:/bin"}
        exports = " ".join([*(f"{name}={value}" for name, value in variables.items()), MORE.get(system, "")])
        more = f'ForceCommand echo Welcome; export {exports}; exec /bin/bash --norc -c "$SSH_ORIGINAL_COMMAND"'
        server = Server(tmp_path / "sshd", more=more)
        server.start()
        text = SITES.replace("SCHEDULER", system).replace("KIND", kind).replace("CONFIG", str(server.config))
        (place.work / "sites.yaml").write_text(text.replace("SCRATCH", str(tmp_path / "scratch")))
        (place.work / "recipe.yaml").write_text(RECIPE.replace("WORK", str(place.work)))
        yield place
        server.stop(sessions=True)


@pytest.mark.parametrize(
    ("there", "owner", "advice"),
    [
        ("pbs", "PBS", "write pbs"),
        ("torque", "Torque", "nsw does not support it"),
        ("cobalt", "Cobalt", "write cobalt"),
    ],
)
def test_sites_check_tells_whose_qsub_it_is_whatever_the_site_says(tmp_path, there, owner, advice):
    with fake("pbs" if there == "torque" else there, tmp_path) as place:
        if there == "torque":
            file = place.state / "settings.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"version": "6.1.2"}))
        for name in ("pbs", "cobalt"):
            site = f"nsw: 1\nsites:\n  s: {{scheduler: {name}, scratch: {place.work}/s}}\n"
            (place.work / "sites.yaml").write_text(site)
            done = place.nsw("sites", "check", "s", "--sites", "sites.yaml", "--json")
            (found,) = (one for one in json.loads(done.stdout)["checks"] if one["what"] == "scheduler")
            assert found["verdict"] == ("good" if name == there else "bad"), found
            assert owner in found["found"], found
            assert name == there or advice in found["fix"], found


def test_a_recipe_runs_far_away_though_nsw_is_killed_on_the_way(far: FakePlace):
    process = far.start(*WORDS)
    wait_until(lambda: 2 in ran(far) and len(submitted(far).ids) > 0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = submitted(far).ids
    (far.work / "go").touch()
    done = far.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stderr
    assert ran(far) == [1, 2, 3]
    assert submitted(far).ids[: len(before)] == before
    assert (folder(far) / "reports/n-3.baseline.r1/stdout").read_text() == "speed=3\n"
