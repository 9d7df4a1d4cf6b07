"""Twenty kills of nsw on the fake PBS, and of its qsub before, amid and after the server takes the job."""

from __future__ import annotations

import pytest

from tests.slurm.crash import Trial, crash

TRIALS = [
    Trial(seed=11, runs=20, per_array=1, kills=8, before=5, amid=10, after=15),
    Trial(seed=12, runs=20, per_array=4, kills=8, before=5, amid=10, after=15),
    Trial(seed=13, runs=30, per_array=1000, kills=4),
]


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: f"arrays of {trial.per_array}")
def test_killed_at_any_moment_each_run_is_done_exactly_once_and_submitted_once(pbs, trial):
    pbs.double.settings(node={"ncpus": 64, "ngpus": 4, "mem": "64gb"})
    found = crash(pbs, trial)
    assert found.good, found
    assert found.done == found.runs == found.submitted, found
    assert found.kills == trial.kills, found
