"""nsw is killed again and again while it drives a campaign of two stages on a batch system behind a real sshd."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from tests.far.forked import ended
from tests.far.staged import Death, Staged

from . import figures
from .distant import distant
from .systems import ACCEPTED_AND_FAILED, ways

SEED = int(os.environ.get("NSW_SOAK_SEED", "1"))
KILLS = int(os.environ.get("NSW_SOAK_KILLS", "200"))
A_CAMPAIGN = 20
KILLED = -9


def kill(campaign: Staged, draw: random.Random) -> bool:
    """Kill one nsw: after some calls of its transport, or at any moment. False when it was over before."""
    if draw.random() < 0.6:
        return campaign.drive(Death(draw.randint(1, 14))) == KILLED
    process = campaign.start()
    time.sleep(draw.uniform(0, 2))  # the moment is the point of this test
    os.kill(process, signal.SIGKILL)
    return ended(process) == KILLED


def killed(kind, system, root, seed: int, kills: int, row: figures.Row) -> None:
    """A campaign whose programs wait in each stage until half of the kills are done."""
    draw = random.Random(seed)
    with distant(kind, system) as it:
        it.plan(system.submits, "sleep 1", ACCEPTED_AND_FAILED)
        body = f"until [ -e {it.folder}/go.STAGE ]; do sleep 0.1; done"
        campaign = Staged(root / f"{kind}-{seed}", it.site(), cases=3, in_array=2, body=body, time_s=1500)
        for stage, number in (("look", kills // 2), ("measure", kills - kills // 2)):
            assert all(kill(campaign, draw) for _ in range(number)), "it was over before its programs were"
            (it.folder / f"go.{stage}").touch()
        took = campaign.finish()
        row.add(campaign, it, kills, kills + took)
    assert not row.wrong, row.wrong
    assert row.submitted == row.runs


@ways("slurm-openssh", "slurm-ssh", "pbs-ssh", "cobalt-openssh")
def test_ten_kills_lose_nothing_and_do_nothing_twice(system, tmp_path, kind):
    row = figures.row(f"{system.name}, {kind}, nsw killed")
    killed(kind, system, tmp_path, SEED, 10, row)


@pytest.mark.soak
@ways()
def test_hundreds_of_kills_lose_nothing_and_do_nothing_twice(system, tmp_path, kind):
    row = figures.row(f"{system.name}, {kind}, nsw killed")
    faults_before = row.faults  # of the test with ten kills, where it ran too
    for at in range(0, KILLS, A_CAMPAIGN):
        killed(kind, system, tmp_path, SEED * 1000 + at, min(A_CAMPAIGN, KILLS - at), row)
    assert row.faults - faults_before == KILLS
