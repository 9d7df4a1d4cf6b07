"""Twenty kills of nsw on the fake Cobalt, and of its qsub before, amid and after the queue manager takes the job."""

from __future__ import annotations

import pytest

from tests.slurm.crash import Trial, crash

TRIALS = [
    Trial(seed=21, runs=20, per_array=1, kills=10, before=5, amid=5, after=10),
    Trial(seed=22, runs=30, per_array=1000, kills=10),
]


@pytest.mark.parametrize("trial", TRIALS, ids=["clients are killed too", "nsw alone"])
def test_killed_at_any_moment_each_run_is_done_exactly_once_and_submitted_once(cobalt, trial):
    cobalt.settings(nodes=32, kill_s=0.3)
    found = crash(cobalt, trial)
    assert found.good, found
    assert found.done == found.runs, found
    assert found.kills == trial.kills, found
