"""The loop that carries a campaign out: look up what is in doubt, submit, poll, judge, collect."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from nsw.campaign.collect import Ending
from nsw.campaign.dependencies import Needs
from nsw.campaign.driven import Driven, InFlight
from nsw.campaign.ledger_rows import AT_A_TIME, FAILED_BEFORE, HELD, STOP_AFTER, STOPPED, Flying, Kind, State
from nsw.campaign.poll import Watching, Withdrawing
from nsw.campaign.submit import Submitting
from nsw.errors import CommandError, FencedError, NswError, UnreachableError
from nsw.safe_files import open_plain, read_plain

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.stages import Canary, Stages
    from nsw.schedulers.model import Submission


class Holding:
    """Passes the throttle of the ledger on to the scheduler; the caller holds the campaign's lock.

    Args:
        it: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, it: Driven, flight: InFlight) -> None:
        self._it = it
        self._flight = flight
        names = it.ledger.meta(HELD)
        self._asked = set(names)  # submissions that the scheduler may hold: to be released one day
        self._held: set[str] = set()  # of these, the ones that it confirmed to this process
        self._holds = False

    def settle(self) -> None:
        """Let the scheduler know; while it cannot be asked to hold or release, that is tried again."""
        limit = self._it.ledger.meta(AT_A_TIME)
        if limit is None:
            return
        if (limit == 0) != self._holds:
            self._holds = limit == 0
            self._it.say(
                "held: nothing new begins until `nsw throttle N`" if self._holds else f"released: {limit} at a time"
            )
        with suppress(NswError):
            self.pass_on()

    def pass_on(self) -> None:
        """Let the scheduler know, once.

        Raises:
            NswError: It could not be asked, or refused.
        """
        limit = self._it.ledger.meta(AT_A_TIME)
        if limit is None:
            return
        self._it.scheduler.limit(limit)
        if limit:
            self._release()
        else:
            self._hold()

    def _release(self) -> None:
        if not self._asked:
            return
        some = [one for one in self._flight.submissions() if one.name in self._asked]
        if some:
            self._it.scheduler.hold(some, held=False)
        self._asked, self._held = set(), set()
        self._it.ledger.set_meta(HELD, [])

    def _hold(self) -> None:
        waiting = self._flight.holding(lambda one: one.state in {State.SUBMITTED, State.QUEUED})
        some = [one for one in waiting if one.name not in self._held]
        if not some:
            return
        names = {one.name for one in some}
        if not names <= self._asked:  # before they are held: an nsw killed in between would never release them
            self._asked |= names
            self._it.ledger.set_meta(HELD, sorted(self._asked))
        self._it.scheduler.hold(some, held=True)
        self._held |= names


class FailureLimit:
    """Stops a campaign of which too many runs fail; the caller holds its lock.

    Args:
        it: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, it: Driven, flight: InFlight) -> None:
        self._it = it
        self._flight = flight
        self._limit = it.ledger.meta(STOP_AFTER)
        self._withdrawing = Withdrawing(it)
        self._asked: set[tuple[str, int]] = set()  # attempts that could not be withdrawn: they had begun
        self.reached = it.ledger.meta(STOPPED) is not None

    def look(self) -> None:
        """See whether too many runs have failed by now."""
        if self._limit is None or self.reached:
            return
        failed = failures(self._it.ledger) - self._it.ledger.meta(FAILED_BEFORE)
        if failed >= self._limit:
            self.reached = True
            why = f"{failed} run{'s' if failed > 1 else ''} failed (stop_after_failures: {self._limit})"
            self._it.ledger.set_meta(STOPPED, why)
            self._it.say(f"stopped: {why}; no new run starts, and running ones continue")

    def withdraw(self) -> None:
        """Take back what is submitted and has not begun, once the limit is reached."""
        if not self.reached:
            return
        waiting = [
            one
            for one in self._flight
            if one.kind is Kind.RUN and one.started is None and (one.id, one.attempt) not in self._asked
        ]
        if not waiting:
            return
        try:
            gone = self._withdrawing.withdraw(waiting)
        except UnreachableError:  # tried again in the next round
            return
        self._asked |= {(one.id, one.attempt) for one in waiting}
        if not gone:
            return
        # a task of which another run still goes on must not be cancelled: it passes over what was withdrawn
        going = {(one.job, one.task) for one in self._flight if one.id not in gone}
        try:
            self._it.scheduler.cancel(
                self._flight.holding(lambda one: one.id in gone and (one.job, one.task) not in going)
            )
        except NswError as fault:
            self._it.say(
                f"warning: withdrawn jobs are still in the queue; they will end as soon as they start: {fault.message}"
            )
        self._flight.drop(lambda one: one.id in gone)
        with self._it.ledger.transaction():
            self._it.ledger.release(sorted(gone))
            self._it.ledger.update_tasks(sorted(gone), reason="withdrawn: too many runs failed")
            self._flight.close()
        self._it.changed(sorted(gone))


def go_on(ledger: Ledger) -> None:
    """A person wants the campaign to go on: the runs that have failed until now count no more."""
    ledger.set_meta(STOPPED, None)
    ledger.set_meta(FAILED_BEFORE, failures(ledger))


def failures(ledger: Ledger) -> int:
    """How many runs failed or were lost."""
    counts = ledger.counts()
    return counts.get(State.FAILED, 0) + counts.get(State.LOST, 0)


_CANCEL = "cancel"
_LONGEST_ASKED = 1 << 26  # bytes


class Driver:
    """Drives one campaign; the caller holds its lock.

    Args:
        it: The campaign.
        canary: What judges the run that all others need; None: the campaign's own, where it has one.
        stages: The runs that wait for another pass to be read; None: the campaign's own, where it has such.
    """

    def __init__(self, it: Driven, canary: Canary | None = None, stages: Stages | None = None) -> None:
        ledger = it.ledger
        self._it = it
        self._needs = Needs(it)
        self._flight = InFlight(ledger)
        self._holding = Holding(it, self._flight)
        limited = ledger.meta(STOP_AFTER) is not None or ledger.meta(STOPPED) is not None
        self._failures = FailureLimit(it, self._flight) if limited else None
        self._canary = canary or (_canary_of(it) if ledger.canary() is not None else None)
        staged = bool(ledger.waiting_for_stages()) or bool(ledger.choices())
        self._stages = stages or (_stages_of(it) if staged else None)
        ending = Ending(it)
        self._submitting = Submitting(it, self._flight, ending, self._needs, self._stages)
        self._watching = Watching(it, self._flight, ending, self._needs)
        self._cancel_waits = False  # for a site that gave no answer

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
        if not self.cancel_if_asked():
            return True
        self._holding.settle()
        self._submitting.settle_doubts()
        if self._canary is not None:
            self._canary.check()
        if self._stages is not None:
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
        if self._failures is not None:
            self._failures.withdraw()
        if self._flight or self._submitting.in_doubt:
            return True
        if self._stopped:
            return self._it.ledger.has_reductions_to_do()
        return self._it.ledger.has_planned()

    def _settle_needs(self) -> None:
        """What waits for a task that went wrong ends, and so does a build for which nothing waits."""
        self._watching.fail_dependents()
        self._spare_builds()

    def _next(self) -> list[Submission]:
        if self._failures is not None:
            self._failures.look()
        return self._submitting.next(only_reductions=self._stopped)

    @property
    def _stopped(self) -> bool:
        return self._failures is not None and self._failures.reached

    def throttle(self) -> None:
        """Pass the ledger's throttle on to the scheduler.

        Raises:
            NswError: It could not be asked, or refused.
        """
        self._holding.pass_on()
        self._watching.poll(at_once=True)  # arrays share the new number by what they run now

    def cancel_if_asked(self) -> bool:
        """End what somebody asked to cancel; False while the site gives no answer, and it is to be tried again."""
        if (asked := self._cancel_asked()) is None:
            return True
        if self._cancel_waits and not self._it.scheduler.due():
            return False
        try:
            self.cancel(asked or None)
        except UnreachableError as fault:
            if not self._cancel_waits:
                self._it.warn(f"nothing is cancelled yet, and nsw keeps trying: {fault.message}")
            self._cancel_waits = True
            return False
        self._cancel_waits = False
        return True

    def cancel(self, runs: Sequence[str] | None = None) -> None:
        """End runs and builds: all that are not over, or those named. What a cancelled task had finished stays."""
        self._submitting.settle_doubts()
        self._watching.poll(at_once=True)  # what has ended by itself keeps its own reason
        chosen = None if runs is None else set(runs)

        def wanted(one: Flying) -> bool:
            return chosen is None or one.id in chosen

        flying = [one for one in self._flight if wanted(one)]
        doubtful = [] if self._it.scheduler.shares_machine else list(filter(wanted, self._it.ledger.doubtful()))
        claimed = set() if self._it.scheduler.shares_machine else self._claim(flying, doubtful)
        begun = {one.id for one in doubtful} - claimed
        waiting = [id_ for id_ in self._it.ledger.waiting() if (chosen is None or id_ in chosen) and id_ not in begun]
        self._it.scheduler.cancel(self._flight.holding(wanted))
        self._flight.drop(lambda one: one.id in claimed and wanted(one))
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

    def _claim(self, flying: Sequence[Flying], doubtful: Sequence[Flying]) -> set[str]:
        """The ids of those that can begin no more, whatever jobs the scheduler has of them or takes late.

        Of the others the jobs that began them are followed from now on.
        """
        claimed = Withdrawing(self._it).withdraw([*flying, *doubtful])
        self._watching.follow_claims([one for one in flying if one.id not in claimed])
        return claimed

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
    folder.require_trust()
    path = folder.path / _CANCEL
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    with os.fdopen(open_plain(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
        file.write("\n".join(runs or ()))
    made.replace(path)  # whole from the first moment


def _canary_of(it: Driven) -> Canary:
    from nsw.campaign.stages import Canary  # with the readers, which other campaigns do not need while they run

    return Canary(it)


def _stages_of(it: Driven) -> Stages:
    from nsw.campaign.stages import Stages

    return Stages(it)
