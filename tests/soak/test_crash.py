"""Two hundred kills of nsw, clients of sbatch killed, controllers stopped and killed: the table beside its peers'."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.campaign.test_first_start import killed
from tests.cobalt.places import Cobalt
from tests.pbs.double import Double
from tests.pbs.places import Pbs
from tests.slurm.crash import Trial, crash
from tests.slurm.crash_evidence import Outcome
from tests.slurm.crash_table import show
from tests.slurm.places import own_cluster

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("NSW_SOAK_SEED", "1"))
KILLS = int(os.environ.get("NSW_SOAK_KILLS", "200"))
A_CAMPAIGN = 20  # kills
SIDE_BY_SIDE = int(os.environ.get("NSW_SOAK_SIDE_BY_SIDE", "2"))
PHASES = ("recovering", "submitting", "polling", "collecting")
MINUTES = 150  # seconds that a controller is away for once
STARTS = 300
ROWS: list[tuple[str, Outcome]] = []
NOTES: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def table(request):
    """Prints the table when all is done."""
    yield
    show(request, ROWS, f"seed {SEED}", NOTES)


@pytest.mark.parametrize("accounting", [False, True], ids=["unaccounted", "accounted"])
def test_nsw_is_killed_while_submitting_and_watching(accounting):
    draw = random.Random(SEED + accounting)
    kills = KILLS // 2
    trials = [
        Trial(
            seed=draw.randrange(1 << 30), runs=draw.choice([60, 80]), per_array=(1, 1000, 5)[at // A_CAMPAIGN % 3],
            kills=min(A_CAMPAIGN, kills - at), before=draw.choice([0, 5]), amid=draw.choice([0, 10]),
            after=draw.choice([10, 20]), slow=draw.choice([0, 30]),
        )
        for at in range(0, kills, A_CAMPAIGN)
    ]  # fmt: skip
    # squeue forgets nothing: it is a witness
    with own_cluster(accounting=accounting, min_job_age=86400) as daemons, ThreadPoolExecutor(SIDE_BY_SIDE) as pool:

        def one(trial):
            with daemons.place.in_folder() as place:
                found = crash(place, trial)
            print(trial, found)
            return found

        total = summed(pool.map(one, trials))
    ROWS.append((f"nsw, {'' if accounting else 'no '}accounting", total))
    assert total.good, total
    assert total.kills == kills
    assert total.done == total.runs == total.submitted


def test_nsw_is_killed_while_submitting_and_watching_on_the_fake_pbs(tmp_path):
    draw = random.Random(SEED)
    found = []
    for at in range(0, KILLS, A_CAMPAIGN):
        trial = Trial(
            seed=draw.randrange(1 << 30), runs=draw.choice([40, 60]), per_array=(1, 1000, 5)[at // A_CAMPAIGN % 3],
            kills=min(A_CAMPAIGN, KILLS - at), before=draw.choice([0, 5]), amid=draw.choice([0, 10]),
            after=draw.choice([10, 20]), slow=draw.choice([0, 30]),
        )  # fmt: skip
        work = tmp_path / f"w{at}"
        work.mkdir()
        node = {"ncpus": 64, "ngpus": 4, "mem": "64gb"}
        with Double(tmp_path / f"pbs{at}", node=node, mom_poll=1.0, kill_delay=0.3) as double:
            found.append(crash(Pbs(work, double), trial))
        print(trial, found[-1])
    total = summed(found)
    ROWS.append(("nsw, fake PBS", total))
    assert total.good, total
    assert total.kills == KILLS
    assert total.done == total.runs == total.submitted


def test_nsw_is_killed_while_submitting_and_watching_on_the_fake_cobalt(tmp_path):
    """Cobalt has no arrays: every run is a submission, so that each kill finds some to submit."""
    draw = random.Random(SEED)
    trials = [
        Trial(
            seed=draw.randrange(1 << 30), runs=40, per_array=1, kills=min(A_CAMPAIGN, KILLS - at),
            before=draw.choice([0, 5]), amid=draw.choice([0, 10]), after=draw.choice([0, 10]),
        )
        for at in range(0, KILLS, A_CAMPAIGN)
    ]  # fmt: skip

    def one(trial):
        place = Cobalt(tmp_path / f"w{trial.seed}", tmp_path / f"cobalt{trial.seed}")
        place.work.mkdir()
        place.state.mkdir()
        place.settings(nodes=32, kill_s=0.3)
        found = crash(place, trial)
        print(trial, found)
        return found

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        total = summed(pool.map(one, trials))
    ROWS.append(("nsw, fake Cobalt", total))
    assert total.good, total
    assert total.kills == KILLS
    assert total.done == total.runs
    assert all(total.phases[phase] >= KILLS // 5 for phase in PHASES), total.phases


def test_the_controller_is_stopped_and_killed_while_nsw_submits_and_watches():
    draw = random.Random(SEED)
    away = [[round(draw.uniform(0, 4), 1) for _ in range(3)] for _ in range(5)] + [[MINUTES, 1]]
    trials = [
        Trial(
            seed=draw.randrange(1 << 30), runs=40, per_array=(1, 5, 1000)[number % 3], kills=4, seconds=1, after=10,
            ends=tuple((draw.choice(["TERM", "KILL", "KILL"]), seconds) for seconds in some),
        )
        for number, some in enumerate(away)
    ]  # fmt: skip
    found = []
    with own_cluster(accounting=False, min_job_age=86400) as daemons:
        for trial in trials:
            with daemons.place.in_folder() as place:
                found.append(crash(place, trial, daemons))
            print(trial, found[-1])
    total = summed(found)
    ROWS.append(("nsw, controller ended", total))
    assert total.good, total
    assert total.ends == sum(len(trial.ends) for trial in trials)


def test_nsw_is_killed_at_its_first_start(tmp_path):
    found = killed(SEED, STARTS, tmp_path)
    left = ", ".join(f"{n} times {what}" for what, n in sorted(found["left"].items()))
    faults = len(found["faults"])
    NOTES.append(f"nsw run killed {STARTS} times at its first start left {left}; {faults} could not be continued")
    assert not faults, found


def summed(some):
    total = Outcome()
    for found in some:
        total.add(found)
    return total
