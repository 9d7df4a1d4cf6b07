"""Handing over what waits: intent first, then the scheduler; what is in doubt is looked up before anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.campaign.collect import run_folder
from nsw.campaign.rows import State
from nsw.campaign.submissions import NO_ID, submissions
from nsw.errors import RefusedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from nsw.campaign.build_step import Builds
    from nsw.campaign.canary import Canary
    from nsw.campaign.ending import Ending
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.in_flight import InFlight
    from nsw.campaign.ledger import Ledger
    from nsw.schedulers.model import Scheduler, Submission
    from nsw.transport.model import Transport


class Submitting:
    """What of a campaign goes to its scheduler next, and how.

    Args:
        folder: The campaign's folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: The campaign's folder on the site.
        flight: What the scheduler has.
        ending: Knows what runs wrote of themselves.
        builds: What goes before the runs.
        canary: What decides when the first run must go ahead alone.
        changed: Called with the ids of runs and builds whose state is another one.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        ledger: Ledger,
        scheduler: Scheduler,
        transport: Transport,
        scratch: str,
        flight: InFlight,
        ending: Ending,
        builds: Builds,
        canary: Canary,
        changed: Callable[[list[str]], None],
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._scheduler = scheduler
        self._transport = transport
        self._scratch = scratch
        self._flight = flight
        self._ending = ending
        self._builds = builds
        self._canary = canary
        self._changed = changed
        self._doubt: list[Submission] = []
        self._late: list[tuple[Submission, str]] = []

    @property
    def in_doubt(self) -> bool:
        """Whether it is not known of some submission if the scheduler has it."""
        return bool(self._doubt)

    def recover(self) -> int:
        """Adopt what an earlier nsw left: submissions with an id, and those in doubt that the scheduler knows.

        Returns:
            How many submissions in doubt were found to exist.

        Raises:
            UnreachableError: The scheduler could not tell; nothing may be submitted before it can.
        """
        scripts = _Scripts(self._folder)
        adopted = sum(self._settle(submission) for submission in self._ledger.submissions("intent", scripts))
        self.write_late()
        for submission in self._ledger.submissions("submitted", scripts):
            self._flight.add(submission)
        self._flight.close()
        return adopted

    def next(self) -> list[Submission]:
        """What there is room for: builds first."""
        # a submission in doubt comes first; the look for planned runs costs far less than choosing among none
        if self._doubt or not self._ledger.has_planned():
            return []
        try:
            room = self._scheduler.room(self._flight.submissions())
            if room <= 0:
                return []
            if builds := self._builds.pending():
                return submissions(self._folder, builds, 1)
            pending = self._canary.allowed(self._ledger.pending_tasks(room * self._runs_per_task))
            pending = self._builds.allowed(pending)
            most = self._scheduler.most_tasks() if pending else 1
        except UnreachableError:  # it says so itself when that lasts
            return []
        return submissions(self._folder, pending, most)

    def intend(self, chosen: Sequence[Submission]) -> None:
        """Write down all of these at once, for a scheduler that costs nothing to hand them over to."""
        for submission in chosen:
            self._ledger.intend(submission)
        runs = [one for submission in chosen for one in self._ledger.flying(submission)]
        # cheaper here than by a process in the job
        self._transport.make_folders([run_folder(self._scratch, one.id, one.attempt) for one in runs])

    def write_late(self) -> None:
        """Ids of this machine's processes: a lock tells as much of each, so they are not synced one by one."""
        for submission, native in self._late:
            self._ledger.submitted(submission, native)
        self._late.clear()

    def hand_over(self, chosen: Sequence[Submission]) -> None:
        """Submit these, as long as there is room."""
        for submission in chosen:
            if self._scheduler.batches and self._scheduler.room(self._flight.submissions()) <= 0:
                return
            if not self._submit(submission) and self._scheduler.batches:
                return

    @cached_property
    def _runs_per_task(self) -> int:
        return self._ledger.runs_per_task() if self._scheduler.batches else 1

    def _submit(self, submission: Submission) -> bool:
        """Submit one; False when it was not taken."""
        if not self._scheduler.shares_machine:
            self._ledger.intend(submission)
        try:
            native = self._scheduler.submit(submission)
        except RefusedError as fault:
            self._refused(submission, fault)
            return True
        except UnreachableError:
            self._doubt.append(submission)
            return False
        if native is None:
            self._ledger.withdraw(submission)
            return False
        ids = self._adopt(submission, native)
        if not self._scheduler.shares_machine:
            self._changed(ids)
        return True

    def _adopt(self, submission: Submission, native: str) -> list[str]:
        """The scheduler has it; the ids of its runs."""
        if self._scheduler.shares_machine:
            self._late.append((submission, native))
        else:
            self._ledger.submitted(submission, native)
        flying = self._flight.add(replace(submission, native_id=native))
        for one in flying:
            one.state = State.SUBMITTED
        return [one.id for one in flying]

    def _refused(self, submission: Submission, fault: RefusedError) -> None:
        """The runs of a submission that the scheduler does not want have failed, with the place that asks too much."""
        places = json.loads(self._ledger.meta("places") or "{}")
        place = places.get(fault.key or "")
        asks = f"; resources.{fault.key}" + (f" at {place}" if place else "") if fault.key else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        failed = {"state": State.FAILED, "reason": f"{fault.message}{asks}{hint}"}
        refused = self._ledger.flying(submission)
        with self._ledger.transaction():
            self._ledger.update_runs([one.id for one in refused if not one.build], **failed)
            self._ledger.update_builds([one.id for one in refused if one.build], **failed)
            self._ledger.finish_submission(submission.name)
        self._changed([one.id for one in refused])

    def settle_doubts(self) -> None:
        """Look up what is in doubt; while the scheduler cannot tell, it stays in doubt."""
        while self._doubt and self._scheduler.due():
            try:
                self._settle(self._doubt[0])
            except UnreachableError:
                return
            self._doubt.pop(0)

    def _settle(self, submission: Submission) -> bool:
        """Find out whether a submission in doubt exists, and adopt or withdraw it."""
        native = self._scheduler.find(submission)
        flying = self._ledger.flying(submission)
        if native is None and any(self._ending.status(one.id, one.attempt) for one in flying):
            native = NO_ID  # gone from the scheduler, yet it left its mark: it was submitted and has ended
        if native is None:
            self._ledger.withdraw(submission)
            return False
        if not self._adopt(submission, native):  # its runs were cancelled while nobody knew
            self._scheduler.cancel([replace(submission, native_id=native)])
        return True


class _Scripts(dict[str, "Path"]):
    def __init__(self, folder: CampaignFolder) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, job: str) -> Path:
        return self._folder.script(job).absolute()
