"""Twenty kills of nsw at moments drawn from seeds; `make soak` has two hundred (tests/soak)."""

import pytest

from .crash import Outcome, Trial, crash

TRIALS = [
    ("unaccounted", Trial(seed=1, runs=30, per_array=1, kills=6)),
    ("accounted", Trial(seed=2, runs=20, per_array=1, kills=5, clients_after=30, clients_before=5)),
    ("unaccounted", Trial(seed=3, runs=24, per_array=4, kills=5, clients_after=30, clients_before=5)),
    ("accounted", Trial(seed=4, runs=40, per_array=1000, kills=4)),
]


@pytest.mark.slurm
@pytest.mark.parametrize(("cluster", "trial"), TRIALS, ids=[f"seed{t.seed}" for _, t in TRIALS])
def test_killed_at_any_moment_each_run_is_done_exactly_once_and_submitted_once(request, cluster, trial):
    with request.getfixturevalue(cluster).in_folder() as place:
        found = crash(place, trial)
    assert found == Outcome(
        runs=trial.runs, done=trial.runs, kills=found.kills, clients=found.clients, submitted=found.submitted
    )
    assert found.good
    assert found.kills
    if trial.clients_after:
        assert found.clients > 0
