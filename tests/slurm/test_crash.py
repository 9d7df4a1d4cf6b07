"""Twenty kills of nsw, clients of sbatch killed, a controller stopped and killed; `make soak` has two hundred."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .crash import Trial, crash
from .crash_evidence import Outcome
from .crash_table import show
from .places import own_cluster

TRIALS = [
    ("unaccounted", Trial(seed=1, runs=28, per_array=1, kills=9, before=5, amid=10, after=15)),
    ("accounted", Trial(seed=2, runs=24, per_array=4, kills=7, before=5, amid=10, after=15)),
    ("unaccounted", Trial(seed=3, runs=40, per_array=1000, kills=4)),
]
CONTROLLER = Trial(seed=4, runs=14, per_array=1, kills=3, ends=(("TERM", 0.5), ("KILL", 0.5)))


@pytest.mark.slurm
def test_killed_at_any_moment_each_run_is_done_exactly_once_and_submitted_once(request):
    clusters = {name: request.getfixturevalue(name) for name, _ in TRIALS}

    def one(cluster, trial):
        with cluster.in_folder() as place:
            return crash(place, trial)

    # side by side: most of the time is spent waiting
    with own_cluster(accounting=False) as daemons, ThreadPoolExecutor() as pool, daemons.place.in_folder() as place:
        trials = [pool.submit(one, clusters[name], trial) for name, trial in TRIALS]
        ended = crash(place, CONTROLLER, daemons)
        rows = [(f"nsw, {name}", trial.result()) for (name, _), trial in zip(TRIALS, trials, strict=True)]
    rows.append(("nsw, controller ended", ended))
    total = Outcome()
    for _, found in rows:
        total.add(found)
    show(request, [("nsw", total)], "seeds 1 to 4")
    assert total.good, rows
    for name, found in rows[:-1]:
        assert found.done == found.runs == found.submitted, (name, found)
    assert [found.kills for _, found in rows[:-1]] == [trial.kills for _, trial in TRIALS], rows
    assert total.clients["after"] > 0
    assert all(total.phases[phase] for phase in ("recovering", "submitting", "polling", "collecting")), total
