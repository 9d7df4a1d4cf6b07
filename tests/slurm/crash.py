"""Campaigns whose nsw is killed again and again while it recovers, submits, polls and collects, and whose sbatch is
killed too.

The place says which batch system it is: the commands that submit and list, and what was submitted by its own account.
Each kill waits for a condition: what this nsw has asked the batch system so far, and what its ledger holds. Programs wait
for a token each, so that a campaign ends only when all kills are done and each kill has something to kill.
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

from .crash_evidence import Outcome, book_of, evidence, ledgers

if TYPE_CHECKING:
    from collections.abc import Callable

    from .places import Real, _Daemons

LIMIT_S = 900  # for what is left of a campaign after its last kill; it is never waited for when all is well
TRIES = 20  # to find an nsw that can reach its controller
UNREACHABLE = 3
LIST_S = 60  # squeue forgets a job some minutes after its end, however long the campaign takes on a busy machine
LOOK_S = 0.01
LOOK_AT_LEDGER_S = 0.2  # each is a copy
SITES = """
nsw: 1
sites:
  mycluster:
    scheduler: SCHEDULER
    limits: {max_in_flight: IN_FLIGHT, max_array: PER_ARRAY}
"""
# what runs says so by itself, before and after
RECIPE = """
nsw: 1
name: crashing
app:
  command: >-
    bash -c 'echo begin {{ n }} >>WORK/ran; sleep SECONDS; read -r _ <WORK/tokens; echo end {{ n }} >>WORK/ran'
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

    `ends` are the signals that end the controller, each with the seconds that it is away. With `in_flight` + `kills` runs
    of single jobs there is something left to submit at every kill.
    """

    seed: int
    runs: int
    per_array: int
    kills: int
    in_flight: int = 8
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
    try:
        return it.carry_out()
    finally:
        os.close(it.tokens)


@dataclass
class _Crash:
    place: Real
    trial: Trial
    daemons: _Daemons | None
    process: subprocess.Popen[str] | None = None
    phases: Counter[str] = field(default_factory=Counter)
    before: list[int] = field(default_factory=list)  # runs submitted at each kill
    calls: int = 0  # that the batch system had heard when this nsw began
    finished: int = 0  # runs that the ledger knew to be over then
    listed: dict[tuple[str, str], int] = field(default_factory=dict)  # tasks by job, also those since forgotten
    tokens: int = -1  # a FIFO: a program ends when it has read a line of it

    def __post_init__(self) -> None:
        self.draw = random.Random(self.trial.seed)

    def carry_out(self) -> Outcome:
        # the first nsw has nothing to recover, poll or collect; the others are drawn, each as often
        moments = [self.submitting, self.recovering, self.polling, self.collecting]
        kills = [moments[number % len(moments)] for number in range(1, self.trial.kills)]
        acts: list[Callable[[], None]] = [lambda moment=moment: self.kill_at(moment) for moment in kills]  # type: ignore[misc]
        acts += [lambda sign=sign, away=away: self.end_controller(sign, away) for sign, away in self.trial.ends]  # type: ignore[misc]
        self.draw.shuffle(acts)
        self.kill_at(self.submitting)
        for act in acts:
            act()
        self.let_end(self.trial.runs)
        code = self.finish()
        self.list_jobs()
        found = evidence(self.place, self.trial.runs, code, self.listed)
        found.kills, found.phases, found.ends = sum(self.phases.values()), self.phases, len(self.trial.ends)
        found.before = self.before
        return found

    def prepare(self) -> None:
        work, trial = self.place.work, self.trial
        values = {"PER_ARRAY": trial.per_array, "IN_FLIGHT": trial.in_flight, "COUNT": trial.runs, "WORK": work,
                  "SECONDS": trial.seconds, "BEFORE": trial.before, "AMID": trial.amid, "AFTER": trial.after,
                  "SLOW": trial.slow, "SEED": trial.seed, "SCHEDULER": self.place.scheduler_name,
                  "SUBMITS": self.place.submits, "LISTS": self.place.lists}  # fmt: skip
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
        os.mkfifo(work / "tokens")
        (work / "tokens").chmod(0o666)
        self.tokens = os.open(work / "tokens", os.O_RDWR)

    def let_end(self, programs: int) -> None:
        """So many more programs may end."""
        os.write(self.tokens, b"\n" * programs)

    def list_jobs(self) -> None:
        """Remember what the batch system lists, before it forgets."""
        for found in ledgers(self.place):
            for job, tasks in self.place.listed(found.parent.name).items():
                self.listed[job] = max(tasks, self.listed.get(job, 0))

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
        self.finished = book_of(self.place).finished
        with (self.place.work / "said").open("a") as said:
            self.process = subprocess.Popen(
                argv, env=self.place.env | {"PATH": path}, text=True, cwd=self.place.work, stdout=subprocess.DEVNULL,
                stderr=said, start_new_session=True,
            )  # fmt: skip
        return self.process

    def asked(self) -> list[str]:
        """What this nsw has asked the batch system for, in order."""
        return (self.place.work / "calls").read_text().split()[self.calls :]

    def kill_at(self, moment: Callable[[], str]) -> None:
        """SIGKILL for nsw, now and then for its sbatch or squeue as well, as when the machine goes down."""
        for _ in range(TRIES):
            process = self.start()
            phase = moment()
            if process.poll() is None:
                break
            if process.returncode != UNREACHABLE:  # the campaign is over
                return
        send = os.killpg if self.draw.random() < 0.3 else os.kill
        send(process.pid, signal.SIGKILL)
        process.wait()
        self.list_jobs()
        self.before.append(book_of(self.place).submitted)
        self.phases[phase] += 1

    def recovering(self) -> str:
        """It has asked for the jobs that an earlier nsw left."""
        self.wait(lambda: self.place.lists in self.asked())
        return "recovering"

    def submitting(self) -> str:
        """It has begun to submit, by one or several commands; where nothing is left to submit, it polls."""
        wanted = self.draw.randint(1, 2)
        self.let_end(wanted if self.before else 0)

        def begun() -> bool:
            asked = self.asked()
            return asked.count(self.place.submits) >= (1 if asked[-1:] == [self.place.lists] else wanted)

        self.wait_and_let_end(lambda: begun() or self.nothing_left(), LOOK_AT_LEDGER_S if self.before else LOOK_S)
        if not begun():
            return self.polling()
        time.sleep(self.draw.uniform(0, 0.03))
        return "submitting"

    def polling(self) -> str:
        """It has asked for its own jobs, and nothing is in doubt any more."""
        wanted = len(self.asked()) + self.draw.randint(1, 2)
        self.wait(lambda: len(self.asked()) >= wanted and self.asked()[-1] == self.place.lists and self.settled())
        return "polling"

    def collecting(self) -> str:
        """A run has ended and nsw knows it, or just asks: its files are read, or are about to be."""
        ended = self.ended()  # counted first: the program may end at once
        self.let_end(1)
        self.wait_and_let_end(lambda: self.ended() > ended)
        if self.draw.random() < 0.5:
            asked = len(self.asked())
            self.wait(lambda: self.place.lists in self.asked()[asked:])
        else:
            self.wait(lambda: book_of(self.place).finished > self.finished, LOOK_AT_LEDGER_S)
        return "collecting"

    def ended(self) -> int:
        return (self.place.work / "ran").read_text().count("end ")

    def settled(self) -> bool:
        return book_of(self.place).doubt == 0

    def nothing_left(self) -> bool:
        book = book_of(self.place)
        return book.left == 0 and book.doubt == 0

    def wait_and_let_end(self, until: Callable[[], bool], pause: float = LOOK_S) -> None:
        """For a moment that needs programs to end: one more each time that nsw has asked five times more.

        A program may have been lost with its controller when it had read its line, and an array needs several places.
        """
        lists = 0

        def is_over() -> bool:
            nonlocal lists
            if until():
                return True
            if (asked := self.asked().count(self.place.lists)) >= lists + 5:
                lists = asked
                self.let_end(1)
            return False

        self.wait(is_over, pause)

    def wait(self, until: Callable[[], bool], pause: float = LOOK_S) -> None:
        """For a moment that comes, however long that takes on a busy machine."""
        assert self.process is not None
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None and not until():
            assert time.monotonic() < deadline, (self.place.work / "said").read_text()[-2000:]
            time.sleep(pause)

    def finish(self) -> int | None:
        """Go on until it is over; its exit code, None when it never was. A controller that is down is waited for."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            try:
                code = self.start().wait(timeout=LIST_S)
            except subprocess.TimeoutExpired:
                self.list_jobs()
                continue
            if code != UNREACHABLE:
                return code
        process = self.start()
        process.kill()
        process.wait()
        return None

    # --- the controller ---------------------------------------------------------------------------------

    def end_controller(self, sign: str, away: float) -> None:
        assert self.daemons is not None
        self.start()
        self.draw.choice([self.recovering, self.submitting, self.polling])()
        self.daemons.end_controller(sign)
        time.sleep(away)
        self.daemons.up()
