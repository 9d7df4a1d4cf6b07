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

from nsw.campaign.ledger_rows import PLACES, Flying, Kind, Pending, State
from nsw.errors import CommandError, NswError, RefusedError, UnreachableError
from nsw.schedulers.batch import JOB, LOGIN, Places
from nsw.schedulers.model import NAME_CHARACTERS, NO_ID, Outcome, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from nsw.campaign.collect import Ending
    from nsw.campaign.dependencies import Needs
    from nsw.campaign.driven import Driven, InFlight
    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.campaign.stages import Stages


_DIGEST = 16  # characters: two submissions of one user never share them
_LEAST_OF_JOB = 16  # characters of a job's name that are worth having


def submissions(
    folder: CampaignFolder,
    pending: Iterable[Pending],
    most: int,
    *,
    contiguous: bool = False,
    names: tuple[int, str] = (64, NAME_CHARACTERS),
) -> list[Submission]:
    """Submissions that hold all of these tasks once.

    Args:
        folder: The campaign's folder, which has the scripts and the name.
        pending: Tasks, in their order.
        most: How many tasks one may hold, and how far apart the first and the last may be.
        contiguous: One must hold tasks without gaps.
        names: How many characters a name may have, and which, as in `[...]` of a regular expression.
    """
    groups = _groups(pending, max(1, most), contiguous=contiguous)
    return [_submission(folder, group, names) for group in groups]


def _groups(pending: Iterable[Pending], most: int, *, contiguous: bool) -> Iterator[list[Pending]]:
    groups: dict[tuple[str, int], list[Pending]] = {}
    for one in pending:
        job, task, attempt, _ = one
        group = groups.setdefault((job, attempt), [])
        if group and (task - group[0][1] >= most or (contiguous and task != group[-1][1] + 1)):
            yield group
            group = groups[job, attempt] = []
        group.append(one)
    yield from groups.values()


def _submission(folder: CampaignFolder, group: Sequence[Pending], names: tuple[int, str]) -> Submission:
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
    """The deterministic name under which tasks are submitted: the same first task never gets another.

    It begins with the job's name in the plan, by which a person knows it in the queue, where there is room for that
    beside the digest. A scheduler is looked up by the whole name.
    """
    digest = hashlib.sha256(f"{campaign}\0{job}\0{task}\0{attempt}".encode()).hexdigest()[:_DIGEST]
    room = longest - _DIGEST - 1
    if room < _LEAST_OF_JOB:
        return f"nsw-{digest}"[:longest]
    job = re.sub(f"[^{characters}]", "-", job)
    known_by = job if job[:1].isalpha() else f"nsw-{job}"  # some schedulers want a letter first
    stem, dash, number = known_by.rpartition("-")
    if len(known_by) > room:
        known_by = stem[: room - len(dash + number)] + dash + number
    return f"{known_by}-{digest}"


_GATHER_S: Final = 600.0  # that one waits for others at most


class Gathering:
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

    def ready(self, pending: Sequence[Pending], most: int) -> list[Pending]:
        """Of what could go all but reductions, and these once an array is full, no run goes, or they waited long.

        Args:
            pending: What could go.
            most: How many tasks an array holds.
        """
        reductions = [one for one in pending if one[0] in self._jobs] if self._jobs else []
        others = [one for one in pending if one[0] not in self._jobs]
        if not reductions:
            self._since = None
            return others
        self._since = self._clock() if self._since is None else self._since
        idle = not others and not any(one.kind is Kind.RUN for one in self._flight)
        if idle or len(reductions) >= most or self._clock() - self._since >= _GATHER_S:
            self._since = None
            return list(pending)
        return others

    @cached_property
    def _jobs(self) -> frozenset[str]:
        return frozenset(row.job for row in self._ledger.reductions())


_TRIES = 3  # of a submission that fails for a reason that nsw does not know


class Submitting:
    """What of a campaign goes to its scheduler next, and how.

    Args:
        it: The campaign.
        flight: What the scheduler has.
        ending: Knows what runs wrote of themselves.
        needs: What decides which tasks may go.
        stages: What was chosen for runs that waited for another pass; None where none does.
    """

    def __init__(self, it: Driven, flight: InFlight, ending: Ending, needs: Needs, stages: Stages | None) -> None:
        self._it = it
        self._flight = flight
        self._ending = ending
        self._needs = needs
        self._stages = stages
        self._doubt: list[Submission] = []
        self._doubt_since: dict[str, float] = {}  # name -> Unix seconds of the first try that gave no answer
        self._failed_so: Counter[tuple[str, str]] = Counter()  # submissions that failed, and with which words
        self._late: list[tuple[Submission, str]] = []
        self._gathering = Gathering(it.ledger, flight)

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
        adopted = self._settle(self._it.ledger.submissions("intent", scripts))
        self.write_late()
        for submission in self._it.ledger.submissions("submitted", scripts):
            self._flight.add(submission)
        self._flight.close()
        return adopted

    def next(self, *, only_reductions: bool = False) -> list[Submission]:
        """What there is room for: builds before the runs that need them, and what the login node does.

        Args:
            only_reductions: No more runs: only what reduces the reports of those that are done.
        """
        # a submission in doubt comes first; the look for planned runs costs far less than choosing among none
        ledger = self._it.ledger
        if self._doubt or not (ledger.has_reductions_to_do() if only_reductions else ledger.has_planned()):
            return []
        kinds = (Kind.REDUCTION,) if only_reductions else tuple(Kind)
        try:
            return [*self._on_login(kinds), *self._in_jobs(kinds)]
        except UnreachableError:  # it says so itself when that lasts
            return []

    def _on_login(self, kinds: Sequence[Kind]) -> list[Submission]:
        scheduler = self._it.scheduler
        if not isinstance(scheduler, Places):
            return []
        room = scheduler.room_on_login(self._flight.submissions())
        return self._submissions(self._needs.pending(room, LOGIN, kinds) if room > 0 else [], 1, LOGIN)

    def _in_jobs(self, kinds: Sequence[Kind]) -> list[Submission]:
        scheduler = self._it.scheduler
        room = scheduler.room(self._flight.submissions())
        if room <= 0:
            return []
        place = JOB if isinstance(scheduler, Places) else None
        pending = self._needs.pending(room * self._runs_per_task, place, kinds)
        if scheduler.shares_machine and self.builds:
            pending = self._builds_alone(pending)[:room]
        most = scheduler.most_tasks() if pending else 1
        return self._submissions(self._gathering.ready(pending, most), most, JOB)

    def _builds_alone(self, pending: list[Pending]) -> list[Pending]:
        """On this machine nothing is measured while something is built."""
        builds = [one for one in pending if one[0] in self.builds]
        flying = {one.kind for one in self._flight}
        if builds:
            return builds if Kind.RUN not in flying else []
        return pending if Kind.BUILD not in flying else []

    def _submissions(self, pending: Iterable[Pending], most: int, place: str) -> list[Submission]:
        scheduler = self._it.scheduler
        found = submissions(
            self._it.folder, pending, most, contiguous=scheduler.can.contiguous,
            names=(scheduler.can.longest_name, scheduler.can.name_characters),
        )  # fmt: skip
        if place == JOB and not scheduler.shares_machine:
            return found
        # a build that is no job finds the GPUs that a compiler run by hand there would
        return [replace(one, gpus=None) if one.job in self.builds else one for one in found]

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
        """Submit these, as long as there is room; as many in one command as the scheduler takes."""
        scheduler = self._it.scheduler
        if not isinstance(scheduler, Places):
            self._hand_over(chosen, scheduler.room)
            return
        self._hand_over(scheduler.of_place(LOGIN, chosen), scheduler.room_on_login)
        self._hand_over(scheduler.of_place(JOB, chosen), scheduler.room)

    def _hand_over(self, chosen: Sequence[Submission], room_of: Callable[[Sequence[Submission]], int]) -> None:
        scheduler = self._it.scheduler
        left = list(chosen)
        while left:
            room = room_of(self._flight.submissions()) if scheduler.batches else 1
            if room <= 0:
                return
            most = min(scheduler.can.submissions_per_command, room)
            some, left = left[:most], left[most:]
            if not self._submit(some) and scheduler.batches:
                return

    @cached_property
    def builds(self) -> frozenset[str]:
        """The jobs that are builds."""
        return frozenset(build.job for build in self._it.ledger.builds())

    @cached_property
    def _runs_per_task(self) -> int:
        return self._it.ledger.runs_per_task() if self._it.scheduler.batches else 1

    def _submit(self, some: Sequence[Submission]) -> bool:
        """Submit these together; False when one was not taken."""
        try:
            some = [self._stages.prepare(submission) for submission in some] if self._stages else some
        except (UnreachableError, CommandError):  # nothing was submitted: it is tried again in the next round
            if self._it.scheduler.shares_machine:
                raise
            return False
        if not self._it.scheduler.shares_machine and not self._intended(some):
            return False
        outcomes = self._it.scheduler.submit(some)
        changed: list[str] = []
        # a commit each would cost more than the rest of a submission; this machine's are written down later
        with nullcontext() if self._it.scheduler.shares_machine else self._it.ledger.transaction():
            taken = [self._take(one, outcome, changed) for one, outcome in zip(some, outcomes, strict=True)]
        if changed:
            self._it.changed(changed)
        return all(taken)

    def _intended(self, some: Sequence[Submission]) -> bool:
        """Write these down, here and for a machine that may take the campaign over; False when the site is away."""
        ledger = self._it.ledger
        with ledger.transaction():
            for submission in some:
                ledger.intend(submission)
        if self._it.handover is None:
            return True
        try:
            self._it.handover.publish()
        except (NswError, OSError) as fault:  # nothing was submitted
            with ledger.transaction():
                for submission in some:
                    ledger.withdraw(submission)
            if isinstance(fault, (UnreachableError, CommandError)):
                return False
            raise
        return True

    def _take(self, submission: Submission, outcome: Outcome, changed: list[str]) -> bool:
        """Write down what became of a submission; False when it was not taken. Adds what changed to `changed`."""
        if outcome.refused is not None:
            changed += self._refused(submission, outcome.refused)
            return True
        if outcome.doubt is not None:
            self._doubt.append(submission)
            since = self._doubt_since.setdefault(submission.name, time.time())
            self._it.ledger.doubt(submission, outcome.doubt.why or outcome.doubt.message, since)
            if not outcome.doubt.passing:
                self._failed_so[submission.name, outcome.doubt.message] += 1
            return False
        if outcome.native is None:
            self._it.ledger.withdraw(submission)
            return False
        ids = self._adopt(submission, outcome.native)
        if not self._it.scheduler.shares_machine:
            changed += ids
        return True

    def _adopt(self, submission: Submission, native: str) -> list[str]:
        """The scheduler has it; the ids of its runs."""
        self._doubt_since.pop(submission.name, None)
        if self._it.scheduler.shares_machine:
            self._late.append((submission, native))
        else:
            self._it.ledger.submitted(submission, native)
        flying = self._flight.add(replace(submission, native_id=native))
        for one in flying:
            one.state = State.SUBMITTED
        return [one.id for one in flying]

    def _refused(self, submission: Submission, fault: RefusedError) -> list[str]:
        """The runs of a submission that the scheduler does not want have failed, with the place that asks too much."""
        places = self._it.ledger.meta(PLACES)
        place = places.get(fault.key or "")
        asks = f"; resources.{fault.key}" + (f" at {place}" if place else "") if fault.key else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        failed = {"state": State.FAILED, "reason": f"{fault.message}{asks}{hint}"}
        refused = self._it.ledger.flying(submission)
        with self._it.ledger.transaction():
            self._it.ledger.update_tasks([one.id for one in refused], **failed)
            self._it.ledger.finish_submission(submission.name)
        return [one.id for one in refused]

    def settle_doubts(self) -> None:
        """Look up what is in doubt; while the scheduler cannot tell, it stays in doubt."""
        if not self._doubt or not self._it.scheduler.due():
            return
        try:
            self._settle(self._doubt)
        except (UnreachableError, CommandError):
            return
        self._doubt.clear()

    def _settle(self, doubtful: Sequence[Submission]) -> int:
        """Find out which submissions in doubt exist, and adopt or withdraw them.

        Returns:
            How many exist.
        """
        if not doubtful:
            return 0
        found = self._it.scheduler.find(doubtful)
        flying = {submission.name: self._it.ledger.flying(submission) for submission in doubtful}
        missing = [s for s in doubtful if s.name not in found]
        self._ending.look(one for s in missing for one in flying[s.name])
        # gone from the scheduler, yet it left its mark: it was submitted
        began = {s.name for s in missing if any(self._has_begun(one) for one in flying[s.name])}
        for submission in doubtful:
            native = found.get(submission.name, NO_ID if submission.name in began else None)
            if native is None:
                self._not_there(submission)
                continue
            if not flying[submission.name]:  # its runs were cancelled while nobody knew: until its job is cancelled too
                self._it.scheduler.cancel([replace(submission, native_id=native)])
            self._adopt(submission, native)
        return len(found) + len(began)

    def _has_begun(self, one: Flying) -> bool:
        status = self._ending.status(one.id, one.attempt)
        return status is not None and status.state != "withdrawn"

    def _not_there(self, submission: Submission) -> None:
        """It was not submitted: once more, unless it fails with the same words again and again."""
        said = next((m for (name, m), n in self._failed_so.items() if name == submission.name and n >= _TRIES), None)
        if said is None:
            self._it.ledger.withdraw(submission, unfound=True)
            return
        hint = f"the same came {_TRIES} times, and no job of that name appeared"
        self._it.changed(self._refused(submission, RefusedError(said, hint=hint)))


class _Scripts(dict[str, "Path"]):
    def __init__(self, it: Driven) -> None:
        super().__init__()
        self._it = it

    def __missing__(self, job: str) -> Path:
        return self._it.script(job)
