"""Campaigns whose nsw is killed again and again, at moments drawn from a seed, and whose sbatch is killed too.

What counts is told by others than nsw: each program leaves a line when it runs, and squeue lists what was submitted.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

from nsw.campaign.ledger import Ledger, State

if TYPE_CHECKING:
    from pathlib import Path

    from .places import Real

LIMIT_S = 180  # for what is left of a campaign after its last kill
SITES = """
nsw: 1
sites:
  mycluster:
    scheduler: slurm
    limits: {max_in_flight: 16, max_array: PER_ARRAY}
"""
RECIPE = """
nsw: 1
name: crashing
app:
  command: bash -c 'echo {{ n }} >> WORK/ran; sleep SECONDS'
matrix:
  n: {range: [1, COUNT]}
passes: [baseline: {}]
resources: {gpus: 0, time: 1m, memory: 50M}
"""
# the real sbatch behind one that is killed: after the controller took the job, before the id is printed; or before
SBATCH = """#!/bin/bash
dice=$(( RANDOM % 100 ))
[ $dice -ge AFTER ] && [ $dice -lt $(( AFTER + BEFORE )) ] && { echo before >>WORK/clients; kill -9 $$; }
said=$(REAL "$@"); code=$?
[ $code -eq 0 ] && [ $dice -lt AFTER ] && { echo after >>WORK/clients; kill -9 $$; }
echo "$said"; exit $code
"""


@dataclass(frozen=True)
class Trial:
    """One campaign: `per_array` tasks go in one sbatch; of a hundred sbatch so many are killed after and before."""

    seed: int
    runs: int
    per_array: int
    kills: int
    seconds: float = 0.2
    latest_s: float = 1.6
    clients_after: int = 0
    clients_before: int = 0


@dataclass
class Outcome:
    """What became of it. `twice` are programs that ran more than once, `never` those of runs said to be done."""

    runs: int = 0
    kills: int = 0
    clients: int = 0
    submitted: int = 0
    done: int = 0
    failed: int = 0
    again: int = 0  # tasks submitted beyond one for each run
    twice: list[int] = field(default_factory=list)
    never: list[int] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)  # runs that are not done and have no reason
    stuck: list[str] = field(default_factory=list)  # campaigns that could not be continued

    def add(self, other: Outcome) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def good(self) -> bool:
        """Each run was done exactly once, or is reported with its reason."""
        return not (self.twice or self.never or self.untold or self.stuck) and self.done + self.failed == self.runs


def crash(place: Real, trial: Trial) -> Outcome:
    """Carry one campaign out, and kill its nsw on the way."""
    _prepare(place, trial)
    draw = random.Random(trial.seed)
    killed = 0
    while killed < trial.kills:
        process = _start(place, trial)
        try:
            process.wait(timeout=draw.uniform(0.05, trial.latest_s))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        else:
            break  # the campaign was over before
    last = _start(place, trial)
    try:
        last.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        last.kill()
        last.wait()
    return replace(outcome(place, trial, last.returncode), kills=killed)


def begin(place: Real, trial: Trial) -> subprocess.Popen[str]:
    """Start a campaign, to be let alone."""
    _prepare(place, trial)
    return _start(place, trial)


def _prepare(place: Real, trial: Trial) -> None:
    values = {"PER_ARRAY": trial.per_array, "COUNT": trial.runs, "WORK": place.work, "SECONDS": trial.seconds,
              "AFTER": trial.clients_after, "BEFORE": trial.clients_before, "REAL": shutil.which("sbatch")}  # fmt: skip
    for name, template in (("sites.yaml", SITES), ("recipe.yaml", RECIPE), ("bin/sbatch", SBATCH)):
        text = reduce(lambda so_far, pair: so_far.replace(pair[0], str(pair[1])), values.items(), template)
        file = place.work / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
    (place.work / "clients").touch(mode=0o666)
    (place.work / "clients").chmod(0o666)


def ledgers(place: Real) -> list[Path]:
    return list((place.work / "campaigns").glob("[!.]*/campaign.db"))


def _start(place: Real, trial: Trial) -> subprocess.Popen[str]:
    words = ["run", "recipe.yaml", "--site", "mycluster", "--sites", "sites.yaml", "--yes"]
    if ledgers(place):
        words = ["resume"]
    argv = place.argv([sys.executable, "-m", "nsw", *words, "--root", "campaigns"])
    path = os.pathsep.join([*([str(place.work / "bin")] if trial.clients_after or trial.clients_before else []),
                            os.environ["PATH"]])  # fmt: skip
    with (place.work / "said").open("a") as said:
        return subprocess.Popen(
            argv, env=place.env | {"PATH": path}, text=True, cwd=place.work, stdout=subprocess.DEVNULL, stderr=said
        )


def outcome(place: Real, trial: Trial, code: int) -> Outcome:
    found_ledgers = ledgers(place)
    assert found_ledgers, (place.work / "said").read_text()
    (ledger,) = found_ledgers
    ran = [int(n) for n in (place.work / "ran").read_text().split()] if (place.work / "ran").exists() else []
    found = Outcome(runs=trial.runs, clients=len((place.work / "clients").read_text().split()))
    comment = f"nsw:{ledger.parent.name}"
    lines = place.run("squeue", "--me", "-h", "-r", "-t", "all", "-o", "%F %k").stdout.splitlines()
    ours = [line.split()[0] for line in lines if line.endswith(comment)]
    found.submitted, found.again = len(set(ours)), max(0, len(ours) - trial.runs)
    with Ledger(ledger, read_only=True) as book:
        runs = book.runs()
    for run in runs:
        n = int(run.params["n"])
        found.done += run.state is State.DONE
        found.failed += run.state in {State.FAILED, State.LOST} and run.reason is not None
        found.twice += [n] * (ran.count(n) > 1)
        found.never += [n] * (run.state is State.DONE and n not in ran)
        found.untold += [run.id] * (run.state is not State.DONE and not run.reason)
    if code not in {0, 1}:
        said = (place.work / "said").read_text().splitlines()
        found.stuck.append(f"{ledger.parent.name}: exit {code}: {said[-1] if said else ''}")
    return found
