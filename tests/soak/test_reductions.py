"""nsw is killed again and again while reports are reduced on the login node: each is reduced once, none is lost."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import State
from tests.remote.reduced import recipe, verbs
from tests.remote.test_campaign import cluster  # noqa: F401  a fixture of the next
from tests.remote.test_tables import site  # noqa: F401  a fixture

if TYPE_CHECKING:
    from tests.remote.test_campaign import Cluster

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("NSW_SOAK_SEED", "1"))
KILLS = int(os.environ.get("NSW_SOAK_KILLS", "200")) // 20
RUNS = 12
LONG_S = 600.0


def claims(site: Cluster, what: str) -> int:  # noqa: F811
    return len(list(site.scratch.glob(f"*/*/runs/{what}/attempt-*/claim")))


@pytest.mark.parametrize("cluster", ["openssh"], indirect=True)
def test_nsw_is_killed_while_reports_are_reduced(site):  # noqa: F811
    draw = random.Random(SEED)
    (site.work / "recipe.yaml").write_text(recipe("tables").replace("[1, 2, 3]", str([*range(1, RUNS + 1)])))
    words, kills = site.run_words(), 0
    for _ in range(KILLS):
        process = site.start(*words)
        enough = claims(site, "*.reduce") + draw.randrange(3)
        deadline = time.monotonic() + LONG_S
        while process.poll() is None and (claims(site, "*.r1") == 0 or claims(site, "*.reduce") < enough):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(draw.random() * 0.5)  # the moment is the point of this test
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        words = ("resume", "--root", "campaigns")
    done = site.nsw("resume", "--root", "campaigns")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (site.work / "campaigns").iterdir()
    with Ledger(folder / "campaign.db") as ledger:
        assert [(row.state, row.attempt) for row in ledger.reductions()] == [(State.DONE, 1)] * RUNS
        assert {run.reading for run in ledger.runs()} == {"read"}
    assert verbs(site.nsys) == ["export"] * RUNS + ["profile"] * RUNS
    assert kills > 0
    print(f"{kills} kills, {RUNS} runs")
