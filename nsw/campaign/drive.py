"""The loop that carries a campaign out: look up what is in doubt, submit, poll, judge, collect.

It can be ended at any moment; the ledger and the files of the runs are all that the next one needs.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from nsw.campaign.canary import Canary
from nsw.campaign.failure_limit import FailureLimit
from nsw.campaign.finish_tasks import Ending
from nsw.campaign.in_flight import InFlight
from nsw.campaign.ledger_rows import State
from nsw.campaign.needs import Needs
from nsw.campaign.owning_user import require_own
from nsw.campaign.stages import Stages
from nsw.campaign.submitting import Submitting
from nsw.campaign.throttle import Holding
from nsw.campaign.watching import Watching
from nsw.campaign.withdraw_unstarted_attempts import Withdrawing
from nsw.errors import CommandError, FencedError, NswError, UnreachableError
from nsw.safe_files import open_plain, read_plain

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nsw.campaign.driven import Driven
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger_rows import Flying
    from nsw.schedulers.model import Submission

_CANCEL = "cancel"
_LONGEST_ASKED = 1 << 26  # bytes


class Driver:
    """Drives one campaign; the caller holds its lock.

    Args:
        it: The campaign.
        canary: What judges the run that all others need, if any.
        stages: The runs that wait for another pass to be read.
    """

    def __init__(self, it: Driven, canary: Canary | None = None, stages: Stages | None = None) -> None:
        self._it = it
        self._canary = canary or Canary(it.ledger)
        self._needs = Needs(it)
        self._stages = stages or Stages(it)
        self._flight = InFlight(it.ledger)
        self._holding = Holding(it, self._flight)
        self._failures = FailureLimit(it, self._flight)
        ending = Ending(it)
        self._submitting = Submitting(it, self._flight, ending, self._needs, self._stages)
        self._watching = Watching(it, self._flight, ending, self._needs)

    def recover(self) -> int:
        """Adopt what an earlier nsw left: submissions with an id, and those in doubt that the scheduler knows.

        Returns:
            How many submissions in doubt were found to exist.

        Raises:
            FencedError: Another nsw took the campaign over.
            UnreachableError: The scheduler could not tell; nothing may be submitted before it can.
        """
        if self._it.handover is not None:
            self._it.handover.hold()
        self._watching.look_at_lost()
        return self._submitting.recover()

    def run(self, wait_s: float = 0.5) -> None:
        """Until no run is planned or in flight."""
        for _ in self.rounds(wait_s):
            pass

    def rounds(self, wait_s: float = 0.5) -> Generator[None]:
        """The same, a round at a time: yields before each wait. Closed early, it leaves what is in flight alone."""
        try:
            while self.step():
                yield
                self._it.scheduler.wait(wait_s)
        finally:
            with self._it.ledger.transaction():
                self._submitting.write_late()
                self._watching.save_calls()
        self._publish()

    def _publish(self) -> None:
        """Keep the state on the site; the next submission does it anyway."""
        if self._it.handover is not None:
            with suppress(UnreachableError, CommandError, FencedError):
                self._it.handover.publish()

    def step(self) -> bool:
        """One round: poll, judge, submit what there is room for. False when nothing is left to do."""
        if self._it.handover is not None:
            self._it.handover.check()
        self._holding.settle()
        self._submitting.settle_doubts()
        self._canary.check()
        self._stages.advance()
        if self._it.scheduler.shares_machine:
            if self._submitting.builds:  # what they decide costs every round of the others nothing
                self._settle_needs()
            chosen = self._poll_and_intend()
        else:
            self._watching.poll()
            self._settle_needs()
            chosen = self._next()
        self._submitting.hand_over(chosen)
        self._failures.withdraw()
        self.cancel_if_asked()
        if self._flight or self._submitting.in_doubt:
            return True
        if self._failures.reached:
            return self._it.ledger.has_reductions_to_do()
        return self._it.ledger.has_planned()

    def _settle_needs(self) -> None:
        """What waits for a task that went wrong ends, and so does a build for which nothing waits."""
        self._watching.fail_dependents()
        self._spare_builds()

    def _next(self) -> list[Submission]:
        self._failures.look()
        return self._submitting.next(only_reductions=self._failures.reached)

    def cancel_if_asked(self) -> None:
        """End what somebody asked to cancel, if anybody did."""
        if (asked := self._cancel_asked()) is not None:
            self.cancel(asked or None)

    def cancel(self, runs: Sequence[str] | None = None) -> None:
        """End runs and builds: all that are not over, or those named. What a cancelled task had finished stays."""
        self._submitting.settle_doubts()
        self._watching.poll(at_once=True)  # what has ended by itself keeps its own reason
        chosen = None if runs is None else set(runs)

        def wanted(one: Flying) -> bool:
            return chosen is None or one.id in chosen

        flying = [one for one in self._flight if wanted(one)]
        doubtful = [] if self._it.scheduler.shares_machine else list(filter(wanted, self._it.ledger.doubtful()))
        # a scheduler that takes a submission late, after it was not found, starts a job that then does nothing
        claimed = Withdrawing(self._it).withdraw(doubtful)
        begun = {one.id for one in doubtful} - claimed
        waiting = [id_ for id_ in self._it.ledger.waiting() if (chosen is None or id_ in chosen) and id_ not in begun]
        self._it.scheduler.cancel(self._flight.holding(wanted))
        self._watching.poll(at_once=True)
        self._flight.drop(wanted)
        cancelled = {"state": State.CANCELLED, "reason": "cancelled by nsw cancel"}
        ended = [one for one in flying if one.state is not State.DONE]
        with self._it.ledger.transaction():
            self._it.ledger.update_tasks([*waiting, *(one.id for one in ended)], **cancelled)
            for one in doubtful:
                if one.id in claimed:
                    self._it.ledger.update_tasks([one.id], attempt=one.attempt)
            self._it.ledger.give_up_reductions()
            self._flight.close()
        (self._it.folder.path / _CANCEL).unlink(missing_ok=True)  # who asked waits for this
        self._it.changed([*waiting, *(one.id for one in flying)])

    def _cancel_asked(self) -> list[str] | None:
        """The runs that somebody asked to cancel, none for all; None where nobody asked."""
        path = self._it.folder.path / _CANCEL
        if not path.exists():
            return None
        return read_plain(path, last=_LONGEST_ASKED).decode(errors="replace").splitlines()

    def _spare_builds(self) -> None:
        """A build that no run waits for any more need not go on."""
        spare = self._needs.unneeded()
        if not spare:
            return
        try:
            self._it.scheduler.cancel(self._flight.holding(lambda one: one.id in spare))
        except NswError:  # it is tried again in the next round
            return
        self._flight.drop(lambda one: one.id in spare)
        self._it.ledger.update_tasks(spare, state=State.CANCELLED, reason="no run waits for it any more")
        self._flight.close()
        self._it.changed(list(spare))

    def _poll_and_intend(self) -> list[Submission]:
        """Judge what ended and write down what comes next, synced to disk once: that is most of a run's cost here."""
        with self._it.ledger.transaction():
            self._submitting.write_late()
            self._watching.poll()
            chosen = self._next()
            self._submitting.intend(chosen)
        return chosen


def is_asked(folder: CampaignFolder) -> bool:
    """Whether the nsw that drives this campaign was asked to cancel, and has not done it yet."""
    return (folder.path / _CANCEL).exists()


def ask_to_cancel(folder: CampaignFolder, runs: Sequence[str] | None = None) -> None:
    """Ask the nsw that drives this campaign to cancel it, or some runs of it."""
    require_own(folder.path)
    path = folder.path / _CANCEL
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    with os.fdopen(open_plain(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
        file.write("\n".join(runs or ()))
    made.replace(path)  # whole from the first moment
