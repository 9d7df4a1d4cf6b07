"""A campaign of two stages on a site behind a transport: the second measures what the first one found.

Each nsw that drives it is a process of its own, forked from the test, which can be killed after any of its calls of the
transport. Waiting costs little: the clock of the loop runs faster than the wall's.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.campaign.start import Ingredients, make_campaign_folders
from nsw.engine import handover as private
from nsw.engine.builds import Builds
from nsw.engine.driven import DrivenCampaign
from nsw.engine.folder import locked
from nsw.engine.handover import wait_for_commands
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import SCRATCH, Choice, Reading, State
from nsw.engine.loop import Driver
from nsw.engine.stages import release_dependents
from nsw.errors import NswError, UnreachableError
from nsw.plan.jobs import pack_jobs
from nsw.plan.model import Plan, Resources, Run
from nsw.profilers.model import CHOSEN
from nsw.schedulers.batch import BatchScheduler, Limits
from nsw.scripts.render import render_job
from tests.campaign.stand_ins import Fed

from .forked import ended, forked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nsw.engine.ledger_rows import RunRow
    from nsw.schedulers.adapter import Adapter
    from nsw.transport.model import Transport

FASTER = 20  # seconds of the loop in one of the wall's
UNREACHABLE = 3  # exit status
CALLS = frozenset({"run", "run_many", "expand", "make_folders", "read_many", "tail", "list_many", "stage", "get_many"})


@dataclass(frozen=True)
class Site:
    """Where a campaign is carried out.

    Args:
        scheduler: The name of its template.
        adapter: Its batch system.
        connect: The way to it, from the campaign's folder there and a file here.
        scratch: Where campaigns have their folders.
        work: A folder that programs may write in.
    """

    scheduler: str
    adapter: Adapter
    connect: Callable[[str, Path], Transport]
    scratch: str
    work: Path


class Clock:
    """Time that passes faster."""

    def __init__(self) -> None:
        self._begun = time.monotonic()

    def __call__(self) -> float:
        return self._begun + (time.monotonic() - self._begun) * FASTER

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / FASTER)


@dataclass(frozen=True)
class Death:
    """When an nsw is killed: right after its `calls`-th call of the transport, from the first that `since` is found in.

    A call is its name and arguments, as Python shows them.
    """

    calls: int
    since: str = ""


class Mortal:
    """A transport whose process is killed."""

    def __init__(self, inner: Transport, death: Death) -> None:
        self._inner = inner
        self._death = death
        self._calls = 0

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name not in CALLS:
            return found

        def call(*words: object, **named: object) -> object:
            result = found(*words, **named)
            if self._calls or self._death.since in f"{name} {words}":
                self._calls += 1
                if self._calls >= self._death.calls:
                    os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call


class Staged:
    """The campaign.

    Args:
        root: Folder of campaigns, which the site cannot see.
        site: Where it is carried out.
        cases: How many cases; each has a first run and one that needs it to be read.
        in_array: Tasks that go in one submission.
        body: What each program does besides, as a line of bash; STAGE in it is `look` or `measure`.
        lost_after_s: So long nsw waits for a job without a trace, by the loop's clock.
        time_s: How long a program may take; one of the second stage half of it.
    """

    def __init__(
        self, root: Path, site: Site, cases: int = 2, in_array: int = 100, body: str = ":", lost_after_s: float = 600,
        time_s: int = 60,
    ) -> None:  # fmt: skip
        self.site = site
        self.body = body
        self.resources = Resources(time_s=time_s, memory_bytes=50 << 20)
        self.lost_after_s = lost_after_s
        self.begins = site.work / "begins"
        self.begins.touch()
        self.begins.chmod(0o666)
        names = [f"n-{n}" for n in range(1, cases + 1)]
        runs = [run for name in names for run in (self._first(name), self._second(name))]
        plan = Plan("t", "there", tuple(names), pack_jobs("t", runs, runs_per_task=1, max_array=in_array))

        def render(job, campaign, scratch):
            lines = site.adapter.directives(job, scratch)
            return render_job(plan, job, scheduler=site.scheduler, campaign=campaign, scratch=scratch,
                              directives=lines, restarts=site.adapter.capabilities.restarts)  # fmt: skip

        self.folder = make_campaign_folders(root, plan, Ingredients({"name": "t"}, {}, site.scratch, render))
        self.runs = [run.id for run in runs]

    def _first(self, case: str) -> Run:
        """Finds something that no other run can know."""
        script = f'echo {case}.look >>"{self.begins}"; {self._body("look")}; echo kernel-$RANDOM-$$ >report'
        return Run(f"{case}.look.r1", case, {}, "look", "timeline", "x", 1, ("bash", "-c", script), {},
                   self.resources, ("report",))  # fmt: skip

    def _second(self, case: str) -> Run:
        script = f'echo {case}.measure >>"{self.begins}"; {self._body("measure")}; printf "%s\\n" "$@"'
        return Run(f"{case}.measure.r1", case, {}, "measure", "counters", "x", 1, ("bash", "-c", script, "it", CHOSEN), {},
                   self.resources, needs=f"{case}.look")  # fmt: skip

    def _body(self, stage: str) -> str:
        return self.body.replace("STAGE", stage)

    # --- driving ------------------------------------------------------------------------------------------

    def drive(self, death: Death | None = None) -> int:
        """Carry it on in a process of its own; its exit status, -9 where it was killed."""
        return ended(self.start(death))

    def start(self, death: Death | None = None) -> int:
        """Begin to carry it on in a process of its own: its id."""
        return forked(lambda: self._carry_on(death))

    def finish(self, tries: int = 20) -> int:
        """Carry it on until it is over, again when the site could not be reached; how many nsw that took."""
        for number in range(1, tries + 1):
            code = self.drive()
            assert code in {0, UNREACHABLE}, code
            if code == 0:
                return number
        raise AssertionError(f"not over after {tries} tries")

    def _carry_on(self, death: Death | None) -> int:
        clock = Clock()
        try:
            with locked(self.folder), Ledger(self.folder.ledger) as ledger:
                scratch = ledger.meta(SCRATCH)
                with closing(self.site.connect(scratch, self.folder.commands)) as way:
                    transport: Transport = Mortal(way, death) if death else way  # type: ignore[assignment]
                    wait_for_commands(transport, lambda _text: None)
                    scheduler = BatchScheduler(
                        self.site.adapter, transport, scratch, self.folder.id, Limits(lost_after_s=self.lost_after_s), clock=clock,
                        sleep=clock.sleep,
                    )  # fmt: skip
                    it = DrivenCampaign(self.folder, ledger, scheduler, transport, scratch)
                    builds = Builds(it)
                    stages = Fed(it, lambda: self._read(ledger), self._choose, clock)
                    driver = Driver(it, stages=stages)
                    private.prepare(self.folder, transport, scratch, {})
                    builds.prepare()
                    driver.recover()
                    driver.run()
        except UnreachableError as fault:
            print(fault.render(), file=sys.stderr)
            return UNREACHABLE
        except (NswError, OSError, sqlite3.Error) as fault:  # as the command line does
            print(fault, file=sys.stderr)
            return 2
        return 0

    def _read(self, ledger: Ledger) -> None:
        some = ledger.runs(reading=Reading.COLLECTED)
        ledger.update_tasks([run.id for run in some], reading=Reading.READ)

    def _choose(self, _run: RunRow, sources: Sequence[RunRow]) -> Choice:
        found = (self.folder.reports / sources[0].id / "report").read_text().strip()
        return Choice((found, "a b'c$(d)"), self.resources.time_s // 2, sources[0].id, "as found")

    def again(self) -> None:
        """Plan again what did not succeed, as `nsw retry` does."""
        with locked(self.folder), Ledger(self.folder.ledger) as ledger:
            runs = [run.id for run in ledger.runs() if run.state is not State.DONE]
            with ledger.transaction():
                ledger.release(runs)
                release_dependents(ledger, runs, choose_again=False)

    # --- what became of it --------------------------------------------------------------------------------

    def fault(self) -> str | None:
        """What is not as it must be: each run done once, the second one of what the first found. None if all is."""
        states = self.states()
        if {state for state, _ in states.values()} != {"done"}:
            return f"not all are done: {states}"
        begun = self.begun()
        if begun != sorted(run.removesuffix(".r1") for run in self.runs):
            return f"programs began: {begun}"
        for run in self.runs:
            if run.endswith(".measure.r1"):
                found = (self.folder.reports / run.replace("measure", "look") / "report").read_text()
                measured = (self.folder.reports / run / "stdout").read_text()
                if measured != f"{found}a b'c$(d)\n" or not found.startswith("kernel-"):
                    return f"{run} measured {measured!r}, and {found!r} was found"
        return None

    def begun(self) -> list[str]:
        """The programs that began, each as often as it did."""
        return sorted(self.begins.read_text().split())

    def states(self) -> dict[str, tuple[str, str | None]]:
        """Of each run its state, and the reason where there is one."""
        with Ledger(self.folder.ledger, read_only=True) as ledger:
            return {run.id: (str(run.state), run.reason) for run in ledger.runs()}

    def choices(self) -> Mapping[str, Choice]:
        """What was decided so far."""
        with Ledger(self.folder.ledger, read_only=True) as ledger:
            return ledger.choices()
