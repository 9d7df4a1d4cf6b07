"""Handing over what waits: intent first, then the scheduler; what is in doubt is looked up before anything else."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.campaign.rows import State
from nsw.campaign.submissions import NO_ID, submissions
from nsw.errors import CommandError, RefusedError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from nsw.campaign.build_step import Builds
    from nsw.campaign.canary import Canary
    from nsw.campaign.driven import Driven
    from nsw.campaign.ending import Ending
    from nsw.campaign.in_flight import InFlight
    from nsw.schedulers.model import Submission


class Submitting:
    """What of a campaign goes to its scheduler next, and how.

    Args:
        it: The campaign.
        flight: What the scheduler has.
        ending: Knows what runs wrote of themselves.
        builds: What goes before the runs.
        canary: What decides when the first run must go ahead alone.
    """

    def __init__(self, it: Driven, flight: InFlight, ending: Ending, builds: Builds, canary: Canary) -> None:
        self._it = it
        self._flight = flight
        self._ending = ending
        self._builds = builds
        self._canary = canary
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
        scripts = _Scripts(self._it)
        adopted = sum(self._settle(submission) for submission in self._it.ledger.submissions("intent", scripts))
        self.write_late()
        for submission in self._it.ledger.submissions("submitted", scripts):
            self._flight.add(submission)
        self._flight.close()
        return adopted

    def next(self) -> list[Submission]:
        """What there is room for: builds first."""
        # a submission in doubt comes first; the look for planned runs costs far less than choosing among none
        if self._doubt or not self._it.ledger.has_planned():
            return []
        try:
            room = self._it.scheduler.room(self._flight.submissions())
            if room <= 0:
                return []
            if builds := self._builds.pending():
                return submissions(self._it.folder, builds, 1)
            pending = self._canary.allowed(self._it.ledger.pending_tasks(room * self._runs_per_task))
            pending = self._builds.allowed(pending)
            most = self._it.scheduler.most_tasks() if pending else 1
        except UnreachableError:  # it says so itself when that lasts
            return []
        return submissions(self._it.folder, pending, most)

    def intend(self, chosen: Sequence[Submission]) -> None:
        """Write down all of these at once, for a scheduler that costs nothing to hand them over to."""
        for submission in chosen:
            self._it.ledger.intend(submission)
        runs = [one for submission in chosen for one in self._it.ledger.flying(submission)]
        # cheaper here than by a process in the job
        self._it.transport.make_folders([self._it.home(one.id, one.attempt) for one in runs])

    def write_late(self) -> None:
        """Ids of this machine's processes: a lock tells as much of each, so they are not synced one by one."""
        for submission, native in self._late:
            self._it.ledger.submitted(submission, native)
        self._late.clear()

    def hand_over(self, chosen: Sequence[Submission]) -> None:
        """Submit these, as long as there is room."""
        for submission in chosen:
            if self._it.scheduler.batches and self._it.scheduler.room(self._flight.submissions()) <= 0:
                return
            if not self._submit(submission) and self._it.scheduler.batches:
                return

    @cached_property
    def _runs_per_task(self) -> int:
        return self._it.ledger.runs_per_task() if self._it.scheduler.batches else 1

    def _submit(self, submission: Submission) -> bool:
        """Submit one; False when it was not taken."""
        if not self._it.scheduler.shares_machine:
            self._it.ledger.intend(submission)
        try:
            native = self._it.scheduler.submit(submission)
        except RefusedError as fault:
            self._refused(submission, fault)
            return True
        except UnreachableError:
            self._doubt.append(submission)
            return False
        if native is None:
            self._it.ledger.withdraw(submission)
            return False
        ids = self._adopt(submission, native)
        if not self._it.scheduler.shares_machine:
            self._it.changed(ids)
        return True

    def _adopt(self, submission: Submission, native: str) -> list[str]:
        """The scheduler has it; the ids of its runs."""
        if self._it.scheduler.shares_machine:
            self._late.append((submission, native))
        else:
            self._it.ledger.submitted(submission, native)
        flying = self._flight.add(replace(submission, native_id=native))
        for one in flying:
            one.state = State.SUBMITTED
        return [one.id for one in flying]

    def _refused(self, submission: Submission, fault: RefusedError) -> None:
        """The runs of a submission that the scheduler does not want have failed, with the place that asks too much."""
        places = self._it.ledger.data("places", dict)
        place = places.get(fault.key or "")
        asks = f"; resources.{fault.key}" + (f" at {place}" if place else "") if fault.key else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        failed = {"state": State.FAILED, "reason": f"{fault.message}{asks}{hint}"}
        refused = self._it.ledger.flying(submission)
        with self._it.ledger.transaction():
            self._it.ledger.update_runs([one.id for one in refused if not one.build], **failed)
            self._it.ledger.update_builds([one.id for one in refused if one.build], **failed)
            self._it.ledger.finish_submission(submission.name)
        self._it.changed([one.id for one in refused])

    def settle_doubts(self) -> None:
        """Look up what is in doubt; while the scheduler cannot tell, it stays in doubt."""
        while self._doubt and self._it.scheduler.due():
            try:
                self._settle(self._doubt[0])
            except (UnreachableError, CommandError):
                return
            self._doubt.pop(0)

    def _settle(self, submission: Submission) -> bool:
        """Find out whether a submission in doubt exists, and adopt or withdraw it."""
        native = self._it.scheduler.find(submission)
        flying = self._it.ledger.flying(submission)
        if native is None and any(self._ending.status(one.id, one.attempt) for one in flying):
            native = NO_ID  # gone from the scheduler, yet it left its mark: it was submitted and has ended
        if native is None:
            self._it.ledger.withdraw(submission)
            return False
        if not flying:  # its runs were cancelled while nobody knew: it is in doubt until its job is cancelled too
            self._it.scheduler.cancel([replace(submission, native_id=native)])
        self._adopt(submission, native)
        return True


class _Scripts(dict[str, "Path"]):
    def __init__(self, it: Driven) -> None:
        super().__init__()
        self._it = it

    def __missing__(self, job: str) -> Path:
        return self._it.script(job)
