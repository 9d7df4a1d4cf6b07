"""The loop that carries a campaign out: look up what is in doubt, submit, poll, judge, collect."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from nsw.engine.collect import Collector
from nsw.engine.ledger_rows import AT_A_TIME, BAD, FAILED_BEFORE, HELD, STOP_AFTER, STOPPED, Kind, State, TaskInFlight
from nsw.engine.poll import InFlight, Poller, Withdrawal
from nsw.engine.stages import Canary, Dependencies, Stages
from nsw.engine.submit import Submitter
from nsw.errors import CommandError, FencedError, NswError, UnreachableError
from nsw.safe_files import open_plain, read_plain

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.schedulers.model import Submission


class Holding:
    """Passes the throttle of the ledger on to the scheduler; the caller holds the campaign's lock.

    Args:
        campaign: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, campaign: DrivenCampaign, flight: InFlight) -> None:
        self._campaign = campaign
        self._flight = flight
        names = campaign.ledger.meta(HELD)
        self._to_release = set(names)  # submissions that the scheduler may hold: to be released one day
        self._confirmed: set[str] = set()  # of these, the ones that it confirmed to this process
        self._holds = False

    def sync_throttle(self) -> None:
        """Pass the throttle on to the scheduler, in each round: a failure is ignored, as the next round tries again."""
        limit = self._campaign.ledger.meta(AT_A_TIME)
        if limit is None:
            return
        if (limit == 0) != self._holds:
            self._holds = limit == 0
            self._campaign.say(
                "held: nothing new begins until `nsw throttle N`" if self._holds else f"released: {limit} at a time"
            )
        with suppress(NswError):
            self.send_limit()

    def send_limit(self) -> None:
        """Let the scheduler know, once.

        Raises:
            NswError: It could not be asked, or refused.
        """
        limit = self._campaign.ledger.meta(AT_A_TIME)
        if limit is None:
            return
        self._campaign.scheduler.limit(limit)
        if limit:
            self._release_held()
        else:
            self._hold_queued()

    def _release_held(self) -> None:
        if not self._to_release:
            return
        held = [submission for submission in self._flight.submissions() if submission.name in self._to_release]
        if held:
            self._campaign.scheduler.hold(held, hold=False)
        self._to_release, self._confirmed = set(), set()
        self._campaign.ledger.set_meta(HELD, [])

    def _hold_queued(self) -> None:
        waiting = self._flight.submissions_with(lambda run: run.state in {State.SUBMITTED, State.QUEUED})
        unheld = [run for run in waiting if run.name not in self._confirmed]
        if not unheld:
            return
        names = {run.name for run in unheld}
        if not names <= self._to_release:  # before they are held: an nsw killed in between would never release them
            self._to_release |= names
            self._campaign.ledger.set_meta(HELD, sorted(self._to_release))
        self._campaign.scheduler.hold(unheld, hold=True)
        self._confirmed |= names


class FailureLimit:
    """Stops a campaign of which too many runs fail; the caller holds its lock.

    Args:
        campaign: The campaign.
        flight: What its scheduler has.
    """

    def __init__(self, campaign: DrivenCampaign, flight: InFlight) -> None:
        self._campaign = campaign
        self._flight = flight
        self._limit = campaign.ledger.meta(STOP_AFTER)
        self._withdrawing = Withdrawal(campaign)
        self._begun: set[tuple[str, int]] = set()  # attempts that could not be withdrawn: they had begun
        self.reached = campaign.ledger.meta(STOPPED) is not None

    def check(self) -> None:
        """See whether too many runs have failed by now."""
        if self._limit is None or self.reached:
            return
        failed = failures(self._campaign.ledger) - self._campaign.ledger.meta(FAILED_BEFORE)
        if failed >= self._limit:
            self.reached = True
            reason = f"{failed} run{'s' if failed > 1 else ''} failed (stop_after_failures: {self._limit})"
            self._campaign.ledger.set_meta(STOPPED, reason)
            self._campaign.say(f"stopped: {reason}; no new run starts, and running ones continue")

    def withdraw(self) -> None:
        """Take back what is submitted and has not begun, once the limit is reached."""
        if not self.reached:
            return
        waiting = [
            run
            for run in self._flight
            if run.kind is Kind.RUN and run.started is None and (run.id, run.attempt) not in self._begun
        ]
        if not waiting:
            return
        try:
            withdrawn = self._withdrawing.withdraw(waiting)
        except UnreachableError:  # tried again in the next round
            return
        self._begun |= {(run.id, run.attempt) for run in waiting}
        if not withdrawn:
            return
        # a task of which another run still goes on must not be cancelled: it passes over what was withdrawn
        going = {(run.job, run.task) for run in self._flight if run.id not in withdrawn}
        try:
            self._campaign.scheduler.cancel(
                self._flight.submissions_with(lambda run: run.id in withdrawn and (run.job, run.task) not in going)
            )
        except NswError as fault:
            self._campaign.say(
                f"warning: withdrawn jobs are still in the queue; they will end as soon as they start: {fault.message}"
            )
        self._flight.drop(lambda run: run.id in withdrawn)
        with self._campaign.ledger.transaction():
            self._campaign.ledger.release(sorted(withdrawn))
            self._campaign.ledger.update_tasks(sorted(withdrawn), reason="withdrawn: too many runs failed")
            self._flight.close()
        self._campaign.changed(sorted(withdrawn))


def reset_failures(ledger: Ledger) -> None:
    """A person wants the campaign to go on: the runs that have failed until now count no more."""
    ledger.set_meta(STOPPED, None)
    ledger.set_meta(FAILED_BEFORE, failures(ledger))


def failures(ledger: Ledger) -> int:
    """How many runs failed, are invalid or were lost."""
    counts = ledger.counts()
    return sum(counts.get(state, 0) for state in BAD)


_CANCEL = "cancel"
_LONGEST_ASKED = 1 << 26  # bytes


class Driver:
    """Drives one campaign; the caller holds its lock.

    Args:
        campaign: The campaign.
        canary: What judges the run that all others need; None: the campaign's own, where it has one.
        stages: The runs that wait for another pass to be read; None: the campaign's own, where it has such.
    """

    def __init__(self, campaign: DrivenCampaign, canary: Canary | None = None, stages: Stages | None = None) -> None:
        ledger = campaign.ledger
        self._campaign = campaign
        needs = Dependencies(campaign)
        self._flight = InFlight(ledger)
        self._holding = Holding(campaign, self._flight)
        limited = ledger.meta(STOP_AFTER) is not None or ledger.meta(STOPPED) is not None
        self._failures = FailureLimit(campaign, self._flight) if limited else None
        self._canary = canary or (Canary(campaign) if ledger.canary() is not None else None)
        staged = bool(ledger.waiting_for_stages()) or bool(ledger.choices())
        self._stages = stages or (Stages(campaign) if staged else None)
        ending = Collector(campaign)
        self._submitting = Submitter(campaign, self._flight, ending, needs, self._stages)
        self._watching = Poller(campaign, self._flight, ending, needs)
        self._cancel_waits = False  # for a site that gave no answer

    def recover(self) -> int:
        """Adopt what an earlier nsw left: submissions with an id, and those in doubt that the scheduler knows.

        Returns:
            How many submissions in doubt were found to exist.

        Raises:
            FencedError: Another nsw took the campaign over.
            UnreachableError: The scheduler could not tell; nothing may be submitted before it can.
        """
        if self._campaign.handover is not None:
            self._campaign.handover.hold()
        self._watching.look_at_lost()
        return self._submitting.recover()

    def run(self, wait_s: float = 0.5) -> None:
        """Until no run is planned or in flight."""
        for _ in self.rounds(wait_s):
            pass

    def rounds(self, wait_s: float = 0.5) -> Generator[None]:
        """The same, a round at a time: yields before each wait. Closed early, it leaves what is in flight alone."""
        try:
            while self.round():
                yield
                self._campaign.scheduler.wait(wait_s)
        finally:
            with self._campaign.ledger.transaction():
                self._submitting.write_ids()
                self._watching.save_calls()
        # keep the state on the site; the next submission does it anyway
        if self._campaign.handover is not None:
            with suppress(UnreachableError, CommandError, FencedError):
                self._campaign.handover.publish()

    def round(self) -> bool:
        """One round: poll, judge, submit what there is room for. False when nothing is left to do."""
        if self._campaign.handover is not None:
            self._campaign.handover.check()
        if not self.cancel_if_asked():
            return True
        self._holding.sync_throttle()
        self._submitting.settle_doubts()
        if self._canary is not None:
            self._canary.check()
        if self._stages is not None:
            self._stages.advance()
        if self._campaign.scheduler.shares_machine:
            if self._submitting.builds:  # what they decide costs every round of the others nothing
                self._settle_needs()
            chosen = self._poll_and_record_intents()
        else:
            self._watching.poll()
            self._settle_needs()
            chosen = self._choose_submissions()
        self._submitting.hand_over(chosen)
        if self._failures is not None:
            self._failures.withdraw()
        if self._flight or self._submitting.in_doubt:
            return True
        if self._has_too_many_failures:
            return self._campaign.ledger.has_reductions_to_do()
        return self._campaign.ledger.has_planned()

    def _settle_needs(self) -> None:
        """What waits for a task that went wrong ends, and so does a build for which nothing waits."""
        self._watching.fail_dependents()
        self._cancel_unneeded_builds()

    def _choose_submissions(self) -> list[Submission]:
        if self._failures is not None:
            self._failures.check()
        return self._submitting.next(only_reductions=self._has_too_many_failures)

    @property
    def _has_too_many_failures(self) -> bool:
        return self._failures is not None and self._failures.reached

    def throttle(self) -> None:
        """Pass the ledger's throttle on to the scheduler.

        Raises:
            NswError: It could not be asked, or refused.
        """
        self._holding.send_limit()
        self._watching.poll(at_once=True)  # arrays share the new number by what they run now

    def cancel_if_asked(self) -> bool:
        """End what somebody asked to cancel; False while the site gives no answer, and it is to be tried again."""
        if (asked := self._requested_cancel()) is None:
            return True
        if self._cancel_waits and not self._campaign.scheduler.due():
            return False
        try:
            self.cancel(asked or None)
        except UnreachableError as fault:
            if not self._cancel_waits:
                self._campaign.warn(f"nothing is cancelled yet, and nsw keeps trying: {fault.message}")
            self._cancel_waits = True
            return False
        self._cancel_waits = False
        return True

    def cancel(self, runs: Sequence[str] | None = None) -> None:
        """End runs and builds: all that are not over, or those named. What a cancelled task had finished stays."""
        self._submitting.settle_doubts()
        self._watching.poll(at_once=True)  # what has ended by itself keeps its own reason
        chosen = None if runs is None else set(runs)

        def is_chosen(run: TaskInFlight) -> bool:
            return chosen is None or run.id in chosen

        flying = [run for run in self._flight if is_chosen(run)]
        doubtful = (
            [] if self._campaign.scheduler.shares_machine else list(filter(is_chosen, self._campaign.ledger.doubtful()))
        )
        claimed = set() if self._campaign.scheduler.shares_machine else self._withdraw_attempts(flying, doubtful)
        begun_ids = {one.id for one in doubtful} - claimed
        waiting = [
            id_ for id_ in self._campaign.ledger.waiting() if (chosen is None or id_ in chosen) and id_ not in begun_ids
        ]
        self._campaign.scheduler.cancel(self._flight.submissions_with(is_chosen))
        self._flight.drop(lambda one: one.id in claimed and is_chosen(one))
        self._watching.poll(at_once=True)
        self._flight.drop(is_chosen)
        cancelled = {"state": State.CANCELLED, "reason": "cancelled by nsw cancel"}
        unfinished = [one for one in flying if one.state is not State.DONE]
        with self._campaign.ledger.transaction():
            self._campaign.ledger.update_tasks([*waiting, *(one.id for one in unfinished)], **cancelled)
            for one in doubtful:
                if one.id in claimed:
                    self._campaign.ledger.update_tasks([one.id], attempt=one.attempt)
            self._campaign.ledger.give_up_reductions()
            self._flight.close()
        (self._campaign.folder.path / _CANCEL).unlink(missing_ok=True)  # who asked waits for this
        self._campaign.changed([*waiting, *(one.id for one in flying)])

    def _withdraw_attempts(self, flying: Sequence[TaskInFlight], doubtful: Sequence[TaskInFlight]) -> set[str]:
        """Withdraw attempts; returns the ids of those that can no longer begin, even if their jobs are accepted late.

        Of the others the jobs that began them are followed from now on.
        """
        claimed = Withdrawal(self._campaign).withdraw([*flying, *doubtful])
        self._watching.follow_claiming_jobs([one for one in flying if one.id not in claimed])
        return claimed

    def _requested_cancel(self) -> list[str] | None:
        """The runs that somebody asked to cancel, none for all; None where nobody asked."""
        path = self._campaign.folder.path / _CANCEL
        if not path.exists():
            return None
        return read_plain(path, last=_LONGEST_ASKED).decode(errors="backslashreplace").splitlines()

    def _cancel_unneeded_builds(self) -> None:
        """A build that no run waits for any more need not go on."""
        spare = self._campaign.ledger.unneeded()
        if not spare:
            return
        try:
            self._campaign.scheduler.cancel(self._flight.submissions_with(lambda run: run.id in spare))
        except NswError:  # it is tried again in the next round
            return
        self._flight.drop(lambda run: run.id in spare)
        self._campaign.ledger.update_tasks(spare, state=State.CANCELLED, reason="no run waits for it any more")
        self._flight.close()
        self._campaign.changed(list(spare))

    def _poll_and_record_intents(self) -> list[Submission]:
        """Judge what ended and write down what comes next, synced to disk once: that is most of a run's cost here."""
        with self._campaign.ledger.transaction():
            self._submitting.write_ids()
            self._watching.poll()
            chosen = self._choose_submissions()
            self._submitting.record_intents(chosen)
        return chosen


def is_cancel_requested(folder: CampaignFolder) -> bool:
    """Whether the nsw that drives this campaign was asked to cancel, and has not done it yet."""
    return (folder.path / _CANCEL).exists()


def request_cancel(folder: CampaignFolder, runs: Sequence[str] | None = None) -> None:
    """Ask the nsw that drives this campaign to cancel it, or some runs of it."""
    folder.require_trust()
    path = folder.path / _CANCEL
    new_file = path.with_suffix(".new")
    new_file.unlink(missing_ok=True)
    with os.fdopen(open_plain(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w", encoding="utf-8") as file:
        file.write("\n".join(runs or ()))
    new_file.replace(path)  # whole from the first moment
