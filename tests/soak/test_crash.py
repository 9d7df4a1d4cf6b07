"""Two hundred kills of nsw, clients of sbatch killed, controllers stopped and killed: the table beside its peers'."""

from __future__ import annotations

import os
import platform
import random
import subprocess
import time
from pathlib import Path

import pytest

from nsw import __version__
from tests.slurm.crash import LIMIT_S, Outcome, Trial, begin, crash, outcome
from tests.slurm.places import own_cluster

pytestmark = pytest.mark.soak

SEED = int(os.environ.get("NSW_SOAK_SEED", "1"))
KILLS = int(os.environ.get("NSW_SOAK_KILLS", "200"))
A_CAMPAIGN = 20  # kills
ENDS = 12  # of the controller, in campaigns of four

# tool, jobs, kills, submitted again after its own resume, note: measured on one machine with the peers' own commands
PEERS = (
    ("JUBE continue", "200", "10", "0 or 1", "one campaign in ten could not be continued"),
    ("dpdispatcher, while submitting", "100", "3", "29, 49, 73", "all that was submitted before"),
    ("Snakemake --rerun-incomplete", "8", "1", "8", "all that was submitted before"),
    ("ReFrame --restore-session", "50", "1", "49", "all that was submitted before"),
    ("Maestro, while submitting", "200", "1", "79", "all that was submitted before"),
    ("Maestro, all submitted", "200", "1", "200", "all that was submitted before"),
)
ROWS: list[tuple[str, Outcome]] = []


@pytest.fixture(scope="module", autouse=True)
def table(request):
    """Prints the table when all is done."""
    yield
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n" + "\n".join(table_lines()))


def table_lines() -> list[str]:
    form = "{:34} {:>6} {:>6} {:>8} {:>10} {:>6} {:>7} {:>6} {:>9}  {}".format
    lines = [machine(), ""]
    lines.append(form("", "runs", "kills", "clients", "submitted", "again", "twice", "done", "reported", "note"))
    for name, o in ROWS:
        note = f"{len(o.never + o.untold)} lost without a word, {len(o.stuck)} campaigns stuck"
        lines.append(form(name, o.runs, o.kills, o.clients, o.submitted, o.again, len(o.twice), o.done, o.failed, note))
    return lines + [
        form(name, jobs, kills, "", "", again, "", "", "", note) for name, jobs, kills, again, note in PEERS
    ]


def machine() -> str:
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    slurm = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=False).stdout.strip()
    python = platform.python_version()
    return f"{os.cpu_count()} x {model}; {slurm}; Python {python}; nsw {__version__}; seed {SEED}"


@pytest.mark.parametrize("name", ["unaccounted", "accounted"])
def test_nsw_is_killed_while_submitting_and_watching(request, name):
    total, draw = Outcome(), random.Random(SEED)
    cluster = request.getfixturevalue(name)
    while total.kills < KILLS // 2:
        trial = Trial(
            seed=draw.randrange(1 << 30), runs=draw.choice([40, 60, 80]), per_array=draw.choice([1, 1, 5, 1000]),
            kills=min(A_CAMPAIGN, KILLS // 2 - total.kills), seconds=0.3,
            clients_after=draw.choice([0, 20]), clients_before=draw.choice([0, 5]),
        )  # fmt: skip
        with cluster.in_folder() as place:
            found = crash(place, trial)
        print(trial, found)
        total.add(found)
    ROWS.append((f"nsw, {name}", total))
    assert total.good, total


def test_the_controller_is_stopped_and_killed_while_nsw_submits_and_watches():
    total, draw = Outcome(), random.Random(SEED)
    with own_cluster(accounting=False) as daemons:
        for number in range(ENDS // 4):
            trial = Trial(seed=number, runs=40, per_array=(1, 5, 1000)[number % 3], kills=0, seconds=1)
            with daemons.place.in_folder() as place:
                process = begin(place, trial)
                for _ in range(4):
                    time.sleep(draw.uniform(0.5, 4))
                    daemons.end_controller(draw.choice(["TERM", "KILL"]))
                    time.sleep(draw.uniform(0.1, 3))
                    daemons.up()
                    total.kills += 1
                process.wait(timeout=LIMIT_S)
                total.add(outcome(place, trial, process.returncode))
    ROWS.append(("nsw, controller ended", total))
    assert total.good, total
