"""Campaigns whose nsw is killed again and again while it starts, submits and watches, and whose sbatch is killed too.

The place says which batch system it is: the commands that submit and list, and what was submitted by its own account.
When it is killed is told by what it has asked the batch system so far, and a moment drawn from a seed is added. The last run of a
campaign waits until all kills are done, so that there is always something left to kill.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from .crash_evidence import Outcome, evidence, ledgers, submitted_so_far

if TYPE_CHECKING:
    from collections.abc import Callable

    from .places import Real, _Daemons

LIMIT_S = 900  # for what is left of a campaign after its last kill; it is never waited for when all is well
TRIES = 20  # to find an nsw that can reach its controller
UNREACHABLE = 3
MOMENT_S = 4  # for a moment that was chosen and does not come: then it is killed all the same
SITES = """
nsw: 1
sites:
  mycluster:
    scheduler: SCHEDULER
    limits: {max_in_flight: 16, max_array: PER_ARRAY}
"""
# what runs says so by itself, before and after
RECIPE = """
nsw: 1
name: crashing
app:
  command: >-
    bash -c 'echo begin {{ n }} >>WORK/ran; sleep SECONDS;
    while [ {{ n }} = COUNT ] && [ ! -e WORK/go ]; do sleep 0.1; done; echo end {{ n }} >>WORK/ran'
matrix:
  n: {range: [1, COUNT]}
passes: [baseline: {}]
resources: {gpus: 0, time: 30m, memory: 50M}
"""
# in front of the real sbatch; of a hundred clients so many are killed: before they send anything, somewhere amid it,
# after the controller took the job and before the id is printed
SBATCH = """#!/bin/bash
echo SUBMITS >>WORK/calls
echo >>WORK/sbatches; number=$(stat -c %s WORK/sbatches); dice=$(( (number * 37 + SEED) % 100 ))
end() { echo $1 >>WORK/clients; kill -9 $$; }
[ $dice -lt BEFORE ] && end before
[ $(( number * 61 % 100 )) -lt SLOW ] && sleep $(( RANDOM % 5 ))
if [ $dice -lt $(( BEFORE + AMID )) ]; then
  REAL "$@" >/dev/null 2>&1 & sleep 0.00$(( RANDOM % 9 )); kill -9 $! 2>/dev/null && end amid
  wait $!; end after
fi
said=$(REAL "$@"); code=$?
[ $code -eq 0 ] && [ $dice -lt $(( BEFORE + AMID + AFTER )) ] && end after
echo "$said"; exit $code
"""
SQUEUE = """#!/bin/bash
echo LISTS >>WORK/calls
exec REAL "$@"
"""


@dataclass(frozen=True)
class Trial:
    """One campaign: `per_array` tasks go in one sbatch; of a hundred sbatch so many are killed before, amid, after
    the controller takes the job, and so many take some seconds, in which nsw may be killed and started again.

    `ends` are the signals that end the controller, each with the seconds that it is away.
    """

    seed: int
    runs: int
    per_array: int
    kills: int
    seconds: float = 0.2
    before: int = 0
    amid: int = 0
    after: int = 0
    slow: int = 0
    ends: tuple[tuple[str, float], ...] = ()


def crash(place: Real, trial: Trial, daemons: _Daemons | None = None) -> Outcome:
    """Carry one campaign out, and kill its nsw, its clients and its controller on the way."""
    it = _Crash(place, trial, daemons)
    it.prepare()
    acts: list[Callable[[], None]] = [it.kill] * (trial.kills - 2)
    acts += [lambda sign=sign, away=away: it.end_controller(sign, away) for sign, away in trial.ends]  # type: ignore[misc]
    it.draw.shuffle(acts)
    it.kill_submitting()
    for act in acts:
        act()
    it.kill_watching()
    (place.work / "go").touch()
    code = it.finish()
    found = evidence(place, trial.runs, code)
    found.kills, found.phases, found.ends = sum(it.phases.values()), it.phases, len(trial.ends)
    found.before = it.before
    return found


@dataclass
class _Crash:
    place: Real
    trial: Trial
    daemons: _Daemons | None
    process: subprocess.Popen[str] | None = None
    phases: Counter[str] = field(default_factory=Counter)
    before: list[int] = field(default_factory=list)  # runs submitted at each kill
    left: int = -1  # runs to be submitted after the last kill, when there is a campaign
    calls: int = 0  # that Slurm had heard when this nsw began

    def __post_init__(self) -> None:
        self.draw = random.Random(self.trial.seed)

    def prepare(self) -> None:
        work, trial = self.place.work, self.trial
        values = {"PER_ARRAY": trial.per_array, "COUNT": trial.runs, "WORK": work, "SECONDS": trial.seconds,
                  "BEFORE": trial.before, "AMID": trial.amid, "AFTER": trial.after, "SLOW": trial.slow,
                  "SEED": trial.seed, "SCHEDULER": self.place.scheduler_name, "SUBMITS": self.place.submits,
                  "LISTS": self.place.lists}  # fmt: skip
        for name, template in (
            ("sites.yaml", SITES),
            ("recipe.yaml", RECIPE),
            (f"bin/{self.place.submits}", SBATCH),
            (f"bin/{self.place.lists}", SQUEUE),
        ):
            every = values | {"REAL": shutil.which(name.removeprefix("bin/"), path=self.place.env["PATH"])}
            file = work / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(reduce(lambda text, pair: text.replace(pair[0], str(pair[1])), every.items(), template))
            file.chmod(0o755)
        for name in ("clients", "calls", "sbatches", "ran", "said"):
            (work / name).touch()
            (work / name).chmod(0o666)

    # --- nsw --------------------------------------------------------------------------------------------

    def start(self) -> subprocess.Popen[str]:
        """`nsw run`, or `nsw resume` when there is a campaign already, unless one goes on."""
        if self.process is not None and self.process.poll() is None:
            return self.process
        words = ["run", "recipe.yaml", "--site", "mycluster", "--sites", "sites.yaml", "--yes"]
        if ledgers(self.place):
            words = ["resume"]
        argv = self.place.argv([sys.executable, "-m", "nsw", *words, "--root", "campaigns"])
        path = f"{self.place.work / 'bin'}{os.pathsep}{self.place.env['PATH']}"
        self.calls += len(self.asked())
        with (self.place.work / "said").open("a") as said:
            self.process = subprocess.Popen(
                argv, env=self.place.env | {"PATH": path}, text=True, cwd=self.place.work, stdout=subprocess.DEVNULL,
                stderr=said, start_new_session=True,
            )  # fmt: skip
        return self.process

    def asked(self) -> list[str]:
        """What this nsw has asked Slurm for, in order."""
        return (self.place.work / "calls").read_text().split()[self.calls :]

    def kill(self) -> None:
        """SIGKILL for nsw, now and then for its sbatch or squeue as well, as when the machine goes down."""
        moments = [self.anywhere, self.watching, *([self.watching] if self.left == 0 else [self.submitting] * 3)]
        self.kill_at(self.draw.choice(moments))

    def kill_submitting(self) -> None:
        """SIGKILL for an nsw that has begun to submit, however long that takes on a busy machine."""
        self.kill_at(lambda process: self.wait(process, lambda: self.asked()[-1:] == [self.place.submits], LIMIT_S))

    def kill_watching(self) -> None:
        """SIGKILL for an nsw that has listed its jobs, however long that takes on a busy machine."""
        self.kill_at(lambda process: self.wait(process, lambda: self.asked()[-1:] == [self.place.lists], LIMIT_S))

    def kill_at(self, moment: Callable[[subprocess.Popen[str]], None]) -> None:
        for _ in range(TRIES):
            process = self.start()
            moment(process)
            if process.poll() is None:
                break
            if process.returncode != UNREACHABLE:  # the campaign is over
                return
        send = os.killpg if self.draw.random() < 0.3 else os.kill
        send(process.pid, signal.SIGKILL)
        process.wait()
        submitted, self.left, doubt = submitted_so_far(self.place)
        self.before.append(submitted)
        asked = self.asked()
        self.phases["starting" if not asked else "within an sbatch" if doubt else self.doing(asked[-1])] += 1

    def doing(self, command: str) -> str:
        """What an nsw is at that asked for this last."""
        return "submitting" if command == self.place.submits else "watching"

    def anywhere(self, process: subprocess.Popen[str]) -> None:
        self.wait(process, lambda: False, self.draw.uniform(0, 1.5))

    def submitting(self, process: subprocess.Popen[str]) -> None:
        wanted = self.draw.randint(1, 4)
        self.wait(process, lambda: self.asked().count(self.place.submits) >= wanted)
        time.sleep(self.draw.uniform(0, 0.03))

    def watching(self, process: subprocess.Popen[str]) -> None:
        self.wait(process, lambda: self.place.lists in self.asked())
        time.sleep(self.draw.uniform(0, 0.3))

    def wait(self, process: subprocess.Popen[str], until: Callable[[], bool], seconds: float = MOMENT_S) -> None:
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline and not until():
            time.sleep(0.005)

    def finish(self) -> int | None:
        """Go on until it is over; its exit code, None when it never was. A controller that is down is waited for."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            process = self.start()
            try:
                code = process.wait(timeout=deadline - time.monotonic())
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                return None
            if code != UNREACHABLE:
                return code
        return None

    # --- the controller ---------------------------------------------------------------------------------

    def end_controller(self, sign: str, away: float) -> None:
        assert self.daemons is not None
        process = self.start()
        self.draw.choice([self.anywhere, self.submitting, self.watching])(process)
        self.daemons.end_controller(sign)
        time.sleep(away)
        self.daemons.up()
