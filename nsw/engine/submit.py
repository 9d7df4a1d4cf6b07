"""What goes to the scheduler: groups of tasks under deterministic names, and submissions in doubt."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.engine.ledger_rows import PLACES, Kind, Pending, State
from nsw.errors import CommandError, NswError, RefusedError, UnreachableError
from nsw.schedulers.batch import JOB, LOGIN, LoginAndJobs
from nsw.schedulers.model import NAME_CHARACTERS, NO_ID, Outcome, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from nsw.engine.collect import Collector
    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.folder import CampaignFolder
    from nsw.engine.ledger import Ledger
    from nsw.engine.poll import InFlight
    from nsw.engine.stages import Dependencies, Stages


_DIGEST = 16  # characters: two submissions of one user never share them
_MIN_JOB_CHARACTERS = 16  # characters of a job's name that are worth having


def submissions(
    folder: CampaignFolder,
    pending: Iterable[Pending],
    max_tasks: int,
    *,
    contiguous: bool = False,
    names: tuple[int, str] = (64, NAME_CHARACTERS),
) -> list[Submission]:
    """Submissions that hold all of these tasks once.

    Args:
        folder: The campaign's folder, which has the scripts and the name.
        pending: Tasks, in their order.
        max_tasks: How many tasks one may hold, and how far apart the first and the last may be.
        contiguous: One must hold tasks without gaps.
        names: How many characters a name may have, and which, as in `[...]` of a regular expression.
    """
    groups = _group_into_arrays(pending, max(1, max_tasks), contiguous=contiguous)
    return [_make_submission(folder, group, names) for group in groups]


def _group_into_arrays(pending: Iterable[Pending], max_tasks: int, *, contiguous: bool) -> Iterator[list[Pending]]:
    groups: dict[tuple[str, int], list[Pending]] = {}
    for entry in pending:
        job, task, attempt, _ = entry
        group = groups.setdefault((job, attempt), [])
        if group and (task - group[0][1] >= max_tasks or (contiguous and task != group[-1][1] + 1)):
            yield group
            group = groups[job, attempt] = []
        group.append(entry)
    yield from groups.values()


def _make_submission(folder: CampaignFolder, group: Sequence[Pending], names: tuple[int, str]) -> Submission:
    job, first, attempt, _ = group[0]
    return Submission(
        name=submission_name(folder.id, job, first, attempt, *names),
        job=job,
        script=folder.script(job).absolute(),
        attempt=attempt,
        tasks=tuple(task for _, task, _, _ in group),
        gpus=max(gpus for _, _, _, gpus in group),
    )


def submission_name(
    campaign: str, job: str, task: int, attempt: int, longest: int = 64, characters: str = NAME_CHARACTERS
) -> str:
    """Return the deterministic name under which tasks are submitted: the same first task never gets another.

    It begins with the job's name in the plan, by which a person knows it in the queue, where there is room for that
    beside the digest. A scheduler is looked up by the whole name.

    Args:
        campaign: The campaign's id.
        job: The job's name in the plan.
        task: The index of the submission's first task in the job.
        attempt: The attempt's number, from 1.
        longest: The most characters that the scheduler takes.
        characters: Those that it takes, as in `[...]` of a regular expression.
    """
    digest = hashlib.sha256(f"{campaign}\0{job}\0{task}\0{attempt}".encode()).hexdigest()[:_DIGEST]
    room = longest - _DIGEST - 1
    if room < _MIN_JOB_CHARACTERS:
        return f"nsw-{digest}"[:longest]
    job = re.sub(f"[^{characters}]", "-", job)
    known_by = job if job[:1].isalpha() else f"nsw-{job}"  # some schedulers want a letter first
    stem, dash, number = known_by.rpartition("-")
    if len(known_by) > room:
        known_by = stem[: room - len(dash + number)] + dash + number
    return f"{known_by}-{digest}"


_GATHER_S: Final = 600.0  # that one waits for others at most


class ReductionQueue:
    """Which reductions go to the scheduler now.

    Args:
        ledger: The campaign's open ledger.
        flight: What the scheduler has.
        clock: Seconds that only grow; tests hand in their own.
    """

    def __init__(self, ledger: Ledger, flight: InFlight, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._flight = flight
        self._clock = clock
        self._since: float | None = None

    def ready(self, pending: Sequence[Pending], max_tasks: int) -> list[Pending]:
        """Of what could go all but reductions, and these once an array is full, no run goes, or they waited long.

        Args:
            pending: What could go.
            max_tasks: How many tasks an array holds.
        """
        reductions = [task for task in pending if task[0] in self._reduction_jobs] if self._reduction_jobs else []
        runs_and_builds = [task for task in pending if task[0] not in self._reduction_jobs]
        if not reductions:
            self._since = None
            return runs_and_builds
        self._since = self._clock() if self._since is None else self._since
        idle = not runs_and_builds and not any(run.kind is Kind.RUN for run in self._flight)
        if idle or len(reductions) >= max_tasks or self._clock() - self._since >= _GATHER_S:
            self._since = None
            return list(pending)
        return runs_and_builds

    @cached_property
    def _reduction_jobs(self) -> frozenset[str]:
        return frozenset(row.job for row in self._ledger.reductions())


_TRIES = 3  # of a submission that fails for a reason that nsw does not know


class Submitter:
    """What of a campaign goes to its scheduler next, and how.

    Args:
        campaign: The campaign.
        flight: What the scheduler has.
        ending: Knows what runs wrote of themselves.
        needs: What decides which tasks may go.
        stages: What was chosen for runs that waited for another pass; None where none does.
    """

    def __init__(
        self, campaign: DrivenCampaign, flight: InFlight, ending: Collector, needs: Dependencies, stages: Stages | None
    ) -> None:
        self._campaign = campaign
        self._flight = flight
        self._ending = ending
        self._needs = needs
        self._stages = stages
        self._doubt: list[Submission] = []
        self._doubt_since: dict[str, float] = {}  # name -> Unix seconds of the first try that gave no answer
        self._failures: Counter[tuple[str, str]] = Counter()  # submissions that failed, and with which words
        self._unwritten_ids: list[tuple[Submission, str]] = []
        self._reduction_queue = ReductionQueue(campaign.ledger, flight)

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
        script = self._campaign.script
        adopted = self._settle_doubtful(self._campaign.ledger.submissions("intent", script))
        self.write_ids()
        for submission in self._campaign.ledger.submissions("submitted", script):
            self._flight.add(submission)
        self._flight.close()
        return adopted

    def next(self, *, only_reductions: bool = False) -> list[Submission]:
        """What there is room for: builds before the runs that need them, and what the login node does.

        Args:
            only_reductions: No more runs: only what reduces the reports of those that are done.
        """
        # a submission in doubt comes first; the look for planned runs costs far less than choosing among none
        ledger = self._campaign.ledger
        if self._doubt or not (ledger.has_reductions_to_do() if only_reductions else ledger.has_planned()):
            return []
        kinds = (Kind.REDUCTION,) if only_reductions else tuple(Kind)
        try:
            return [*self._submissions_on_login(kinds), *self._submissions_in_jobs(kinds)]
        except UnreachableError:  # it says so itself when that lasts
            return []

    def _submissions_on_login(self, kinds: Sequence[Kind]) -> list[Submission]:
        scheduler = self._campaign.scheduler
        if not isinstance(scheduler, LoginAndJobs):
            return []
        room = scheduler.room_on_login(self._flight.submissions())
        return self._make_submissions(self._needs.pending(room, LOGIN, kinds) if room > 0 else [], 1, LOGIN)

    def _submissions_in_jobs(self, kinds: Sequence[Kind]) -> list[Submission]:
        scheduler = self._campaign.scheduler
        room = scheduler.room(self._flight.submissions())
        if room <= 0:
            return []
        location = JOB if isinstance(scheduler, LoginAndJobs) else None
        pending = self._needs.pending(room * self._runs_per_task, location, kinds)
        if scheduler.shares_machine and self.builds:
            pending = self._keep_builds_alone(pending)[:room]
        max_tasks = scheduler.most_tasks() if pending else 1
        return self._make_submissions(self._reduction_queue.ready(pending, max_tasks), max_tasks, JOB)

    def _keep_builds_alone(self, pending: list[Pending]) -> list[Pending]:
        """The pending tasks without a mix of builds and runs: nsw measures nothing on this machine during a build."""
        builds = [task for task in pending if task[0] in self.builds]
        flying = {run.kind for run in self._flight}
        if builds:
            return builds if Kind.RUN not in flying else []
        return pending if Kind.BUILD not in flying else []

    def _make_submissions(self, pending: Iterable[Pending], max_tasks: int, location: str) -> list[Submission]:
        scheduler = self._campaign.scheduler
        chosen = submissions(
            self._campaign.folder, pending, max_tasks, contiguous=scheduler.can.contiguous,
            names=(scheduler.can.longest_name, scheduler.can.name_characters),
        )  # fmt: skip
        if location == JOB and not scheduler.shares_machine:
            return chosen
        # a build that is no job finds the GPUs that a compiler run by hand there would
        return [
            replace(submission, gpus=None) if submission.job in self.builds else submission for submission in chosen
        ]

    def record_intents(self, chosen: Sequence[Submission]) -> None:
        """Write down all of these at once, for a scheduler that costs nothing to hand them over to."""
        for submission in chosen:
            self._campaign.ledger.record_intent(submission)
        runs = [run for submission in chosen for run in self._campaign.ledger.tasks_in_flight(submission)]
        # cheaper here than by a process in the job
        self._campaign.transport.make_folders([self._campaign.home(run.id, run.attempt) for run in runs])

    def write_ids(self) -> None:
        """Ids of this machine's processes: a lock tells as much of each, so they are not synced one by one."""
        for submission, native in self._unwritten_ids:
            self._campaign.ledger.record_native_id(submission, native)
        self._unwritten_ids.clear()

    def hand_over(self, chosen: Sequence[Submission]) -> None:
        """Submit these, as long as there is room; as many in one command as the scheduler takes."""
        scheduler = self._campaign.scheduler
        if not isinstance(scheduler, LoginAndJobs):
            self._submit_in_batches(chosen, scheduler.room)
            return
        self._submit_in_batches(scheduler.at_location(LOGIN, chosen), scheduler.room_on_login)
        self._submit_in_batches(scheduler.at_location(JOB, chosen), scheduler.room)

    def _submit_in_batches(self, chosen: Sequence[Submission], room_of: Callable[[Sequence[Submission]], int]) -> None:
        scheduler = self._campaign.scheduler
        left = list(chosen)
        while left:
            room = room_of(self._flight.submissions()) if scheduler.batches else 1
            if room <= 0:
                return
            limit = min(scheduler.can.submissions_per_command, room)
            batch, left = left[:limit], left[limit:]
            if not self._submit_batch(batch) and scheduler.batches:
                return

    @cached_property
    def builds(self) -> frozenset[str]:
        """The jobs that are builds."""
        return frozenset(build.job for build in self._campaign.ledger.builds())

    @cached_property
    def _runs_per_task(self) -> int:
        return self._campaign.ledger.runs_per_task() if self._campaign.scheduler.batches else 1

    def _submit_batch(self, batch: Sequence[Submission]) -> bool:
        """Submit these together; False when one was not taken."""
        try:
            batch = [self._stages.prepare(submission) for submission in batch] if self._stages else batch
        except (UnreachableError, CommandError):  # nothing was submitted: it is tried again in the next round
            if self._campaign.scheduler.shares_machine:
                raise
            return False
        if not self._campaign.scheduler.shares_machine and not self._record_batch(batch):
            return False
        outcomes = self._campaign.scheduler.submit(batch)
        changed: list[str] = []
        # a commit each would cost more than the rest of a submission; this machine's are written down later
        with nullcontext() if self._campaign.scheduler.shares_machine else self._campaign.ledger.transaction():
            accepted = [
                self._record_outcome(taken_submission, outcome, changed)
                for taken_submission, outcome in zip(batch, outcomes, strict=True)
            ]
        if changed:
            self._campaign.changed(changed)
        return all(accepted)

    def _record_batch(self, batch: Sequence[Submission]) -> bool:
        """Write these down, here and for a machine that may take the campaign over; False when the site is away."""
        ledger = self._campaign.ledger
        with ledger.transaction():
            for submission in batch:
                ledger.record_intent(submission)
        if self._campaign.handover is None:
            return True
        try:
            self._campaign.handover.publish()
        except (NswError, OSError) as fault:  # nothing was submitted
            with ledger.transaction():
                for submission in batch:
                    ledger.withdraw(submission)
            if isinstance(fault, (UnreachableError, CommandError)):
                return False
            raise
        return True

    def _record_outcome(self, submission: Submission, outcome: Outcome, changed: list[str]) -> bool:
        """Write down what became of a submission; False when it was not taken. Adds what changed to `changed`."""
        if outcome.refused is not None:
            changed += self._fail_refused(submission, outcome.refused)
            return True
        if outcome.doubt is not None:
            self._doubt.append(submission)
            since = self._doubt_since.setdefault(submission.name, time.time())
            self._campaign.ledger.record_doubt(submission, outcome.doubt.short_reason or outcome.doubt.message, since)
            if not outcome.doubt.passing:
                self._failures[submission.name, outcome.doubt.message] += 1
            return False
        if outcome.native is None:
            self._campaign.ledger.withdraw(submission)
            return False
        ids = self._adopt_submission(submission, outcome.native)
        if not self._campaign.scheduler.shares_machine:
            changed += ids
        return True

    def _adopt_submission(self, submission: Submission, native: str) -> list[str]:
        """Record that the scheduler accepted a submission; returns the ids of its runs."""
        self._doubt_since.pop(submission.name, None)
        if self._campaign.scheduler.shares_machine:
            self._unwritten_ids.append((submission, native))
        else:
            self._campaign.ledger.record_native_id(submission, native)
        flying = self._flight.add(replace(submission, native_id=native))
        for run in flying:
            run.state = State.SUBMITTED
        return [run.id for run in flying]

    def _fail_refused(self, submission: Submission, fault: RefusedError) -> list[str]:
        """The runs of a submission that the scheduler does not want have failed, with the place that asks too much."""
        locations = self._campaign.ledger.meta(PLACES)
        location = locations.get(fault.key or "")
        asks = f"; resources.{fault.key}" + (f" at {location}" if location else "") if fault.key else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        failed = {"state": State.FAILED, "reason": f"{fault.message}{asks}{hint}"}
        refused = self._campaign.ledger.tasks_in_flight(submission)
        with self._campaign.ledger.transaction():
            self._campaign.ledger.update_tasks([run.id for run in refused], **failed)
            self._campaign.ledger.finish_submission(submission.name)
        return [run.id for run in refused]

    def settle_doubts(self) -> None:
        """Look up what is in doubt; while the scheduler cannot tell, it stays in doubt."""
        if not self._doubt or not self._campaign.scheduler.due():
            return
        try:
            self._settle_doubtful(self._doubt)
        except (UnreachableError, CommandError):
            return
        self._doubt.clear()

    def _settle_doubtful(self, doubtful: Sequence[Submission]) -> int:
        """Find out which submissions in doubt exist, and adopt or withdraw them.

        Returns:
            How many exist.
        """
        if not doubtful:
            return 0
        native_ids = self._campaign.scheduler.find(doubtful)
        flying = {submission.name: self._campaign.ledger.tasks_in_flight(submission) for submission in doubtful}
        missing = [s for s in doubtful if s.name not in native_ids]
        self._ending.read_statuses(run for s in missing for run in flying[s.name])
        # gone from the scheduler, yet it left its mark: it was submitted
        began = {s.name for s in missing if any(self._ending.has_begun(run) for run in flying[s.name])}
        for submission in doubtful:
            native = native_ids.get(submission.name, NO_ID if submission.name in began else None)
            if native is None:
                self._withdraw_missing(submission)
                continue
            if not flying[submission.name]:  # its runs were cancelled while nobody knew: until its job is cancelled too
                self._campaign.scheduler.cancel([replace(submission, native_id=native)])
            self._adopt_submission(submission, native)
        return len(native_ids) + len(began)

    def _withdraw_missing(self, submission: Submission) -> None:
        """Withdraw a submission that was not accepted, to retry it; fail it after the same error several times."""
        message = next((m for (name, m), n in self._failures.items() if name == submission.name and n >= _TRIES), None)
        if message is None:
            self._campaign.ledger.withdraw(submission, unfound=True)
            return
        hint = f"the same came {_TRIES} times, and no job of that name appeared"
        self._campaign.changed(self._fail_refused(submission, RefusedError(message, hint=hint)))
