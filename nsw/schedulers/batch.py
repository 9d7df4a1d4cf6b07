"""A batch system (Slurm) as the campaign's loop sees it: asked politely, believed carefully."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.errors import CommandError, RefusedError, UnreachableError
from nsw.schedulers import slurm
from nsw.schedulers.model import Answer, Phase
from nsw.schedulers.slurm import Native
from nsw.schedulers.throttles import Throttles
from nsw.transport.runner import PATIENT, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.errors import CommandResult
    from nsw.schedulers.model import Submission
    from nsw.transport.model import Transport

_FIRST_S, _MOST_S = 2.0, 60.0  # between polls
_SAY_AFTER_S = 600.0  # of polls that failed
_ABSENT = 3  # polls in a row without a trace: lost
_EACH = 10  # polls with a line for each task that waits, once a line for several did not say it all
_STALE = 10  # polls in a row in which only the history still calls it alive: lost too
_UNKNOWN = Answer(Phase.UNKNOWN)
_FIND_MINUTES = 60 * 24 * 14
_ARRIVES_S = 2.0  # a submission whose sbatch was killed may still be on its way to the controller


@dataclass(frozen=True, slots=True)
class Limits:
    """What a campaign may ask of the site: tasks running at the same time, tasks of one array."""

    in_flight: int = 20
    array: int = 1000


@dataclass(slots=True)
class _Pace:
    """When to ask again: the interval doubles while nothing changes."""

    clock: Callable[[], float]
    draw: Callable[[], float]
    interval: float = _FIRST_S
    next: float = 0.0
    failing_since: float | None = None
    said: bool = False

    def reset(self) -> None:
        self.interval = _FIRST_S
        self.next = min(self.next, self.clock() + _FIRST_S)

    def answered(self) -> None:
        self.failing_since, self.said = None, False

    def asked(self, *, changed: bool) -> None:
        self.interval = _FIRST_S if changed else min(_MOST_S, self.interval * 2)
        self.next = self.clock() + self.interval * (0.8 + 0.4 * self.draw())


@dataclass(slots=True)
class _Memory:
    """What earlier polls said, by submission and task."""

    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)
    absent: dict[tuple[str, int], int] = field(default_factory=dict)
    each: int = 0  # how many polls more are to ask for a line for each task


class BatchScheduler:
    """Slurm over a transport.

    Args:
        transport: The way to the site.
        scratch: The campaign's folder on the site; what job scripts print goes to `jobs` below it.
        campaign: Its id, which goes with every job as its comment.
        limits: What may be asked of the site.
        say: Prints a line for the user.
        clock: Seconds that only grow; tests hand in their own, as for the next two.
        sleep: Waits.
        draw: Numbers in 0..1.
    """

    batches = True
    shares_machine = False

    def __init__(
        self,
        transport: Transport,
        scratch: str,
        campaign: str,
        limits: Limits,
        *,
        say: Callable[[str], object] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.after: Callable[[str], str | None] = lambda _job: None
        self._transport = transport
        self._jobs = f"{scratch}/jobs"
        self._comment = f"nsw:{campaign}"
        self._limits = limits
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._runner = Runner(
            transport, transient=slurm.transient, without=slurm.CLEARED, keep=slurm.KEPT, sleep=sleep, draw=draw
        )
        self._pace = _Pace(clock, draw)
        self._memory = _Memory()
        self._throttles = Throttles(limits.in_flight, self._throttle)
        self._most: int | None = None  # learnt from a refusal for want of room
        self._full_until = 0.0
        self._waited_for: float | None = None

    # --- what the loop asks -----------------------------------------------------------------------------

    def calls(self) -> dict[str, int]:
        """How often each command was run."""
        return dict(self._runner.calls)

    def most_tasks(self) -> int:
        """The site's limit, the cluster's, and what it was learnt to take."""
        limit = min(self._limits.array, self._facts.max_array_size - 1 or 1)
        return max(1, min(limit, self._most or limit))

    def room(self, in_flight: Sequence[Submission]) -> int:
        """An array's worth, as long as there are fewer submissions than tasks may run at the same time."""
        if len(in_flight) >= self._throttles.limit or self._clock() < self._full_until:
            return 0
        return self.most_tasks()

    def submit(self, submission: Submission) -> str | None:
        """One sbatch. It is never repeated blindly: what is in doubt is looked up by its name.

        Raises:
            RefusedError: Slurm does not want it.
            UnreachableError: In doubt.
        """
        self._make_folder()
        share = self._throttles.make_way(len(submission.tasks))
        argv = slurm.submit_command(
            submission,
            log=self._log(submission),
            comment=self._comment,
            throttle=share,
            after=self.after(submission.job),
        )
        result = self._runner.run(argv, timeout=120)
        job = slurm.parse_submitted(result.stdout) if result.returncode == 0 else None
        if job is None:
            self._not_submitted(submission, result)
            return None
        native = slurm.native_of(submission, job)
        self._throttles.begun(submission, native, share)
        self._pace.reset()
        return str(native)

    def find(self, submission: Submission) -> str | None:
        """By name: squeue, then sacct; once more after a moment, for the controller may be about to take it.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        found = self._look_up(submission)
        if found is None:
            self._sleep(_ARRIVES_S)
            found = self._look_up(submission)
        return found

    def _look_up(self, submission: Submission) -> str | None:
        queue = self._ask(slurm.queue_command([submission.name]), "asking squeue for a job by its name")
        lines = slurm.parse_queue(queue.stdout)
        if self._facts.accounting and not any(line.name == submission.name for line in lines):
            argv = slurm.history_by_name_command(submission.name, _FIND_MINUTES)
            lines = slurm.parse_history(self._ask(argv, "asking sacct for a job by its name").stdout)
        jobs = {line.job for line in lines if line.name == submission.name}
        # the first of several: the runs' folders are claimed by whichever job began, and both are looked at there
        return str(slurm.native_of(submission, min(jobs))) if jobs else None

    def due(self) -> bool:
        """Whether the interval is over."""
        return self._clock() >= self._pace.next

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """One squeue for all, sacct for those that it does not know."""
        lines, result = self._queue([s.name for s in submissions])
        if lines is None:
            self._unanswered(result)
            return {s.name: dict.fromkeys(s.tasks, _UNKNOWN) for s in submissions}
        self._pace.answered()
        told = _sorted_out(lines, submissions)
        absent = {s.name: [t for t in s.tasks if t not in told[s.name]] for s in submissions}
        self._look_back([s for s in submissions if absent[s.name]], absent, told)
        self._explain(submissions, told)
        self._pace.asked(changed=self._moved(told))
        self._memory.answers = told
        self._throttles.rebalance(submissions, told)
        return told

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """One scancel.

        Raises:
            CommandError: It failed.
        """
        argv = slurm.cancel_command(submissions)
        if argv is not None:
            self._runner.need(argv, timeout=120, what="jobs could not be cancelled", retry=PATIENT)
            self._pace.reset()

    def limit(self, running: int) -> None:
        """So many tasks may run at the same time from now on; the arrays hear of it with the next poll."""
        if running != self._throttles.limit:
            self._throttles.limit = running
            self._pace.next = self._clock()

    def wait(self, seconds: float) -> None:
        """Sleep until it is time to ask, at most so long."""
        left = self._pace.next - self._clock()
        idle = left <= 0 and self._pace.next == self._waited_for  # it is time, and there was nothing to ask
        self._waited_for = self._pace.next
        self._sleep(seconds if idle else max(0.01, min(seconds, left)))

    # --- submitting -------------------------------------------------------------------------------------

    @cached_property
    def _facts(self) -> slurm.Facts:
        result = self._ask(slurm.facts_command(), "asking the cluster for its settings")
        return slurm.parse_facts(result.stdout)

    def _make_folder(self) -> None:
        if not self._runner.calls["sbatch"]:  # without it Slurm ends jobs before they begin, without a word
            made = self._transport.run(["mkdir", "-p", self._jobs], timeout=60)
            if made.returncode != 0:
                raise CommandError(made, what="the folder for the jobs' output cannot be made")

    def _log(self, submission: Submission) -> str:
        return f"{self._jobs}/{submission.name}"

    def _not_submitted(self, submission: Submission, result: CommandResult) -> None:
        if slurm.is_full(result):
            self._learn_room(len(submission.tasks), result)
            return
        if result.returncode == 0 or slurm.in_doubt(result):
            self._pace.next = self._clock()  # it is looked up at once
            raise UnreachableError(CommandError(result, what="sbatch gave no job id").message)
        said, key, hint = slurm.refusal(result)
        raise RefusedError(f"sbatch refused the job: {said}", key=key, hint=hint)

    def _learn_room(self, tasks: int, result: CommandResult) -> None:
        """The queue takes no more for now: smaller arrays next, and a rest when even one task was too much."""
        if tasks > 1:
            self._most = tasks // 2
            return
        if not self._full_until:
            self._say(f"the queue takes no more of your jobs for now ({slurm.refusal(result)[0]}); nsw goes on trying")
        self._full_until = self._clock() + _MOST_S

    def _throttle(self, native: Native, limit: int) -> bool:
        return self._runner.run(slurm.throttle_command(native, limit), timeout=60).returncode == 0

    # --- asking -----------------------------------------------------------------------------------------

    def _ask(self, argv: Sequence[str], what: str) -> CommandResult:
        try:
            result = self._runner.need(argv, timeout=120, what=what, retry=PATIENT)
        except CommandError as fault:
            self._unanswered(fault.result)
            raise UnreachableError(fault.message, hint="`nsw resume` goes on when it answers again") from None
        self._pace.answered()
        return result

    def _queue(self, names: Sequence[str]) -> tuple[list[slurm.Line] | None, CommandResult]:
        """What squeue says, None when it could not be asked: tasks that wait in one line where that says it all."""
        if self._memory.each:
            self._memory.each -= 1
        else:
            result = self._runner.run(slurm.queue_command(names), timeout=60)
            failed = result.returncode != 0 or result.timed_out
            lines = None if failed else slurm.parse_queue(result.stdout)
            if lines is None or not any(line.vague for line in lines if line.name in names):
                return lines, result
            self._memory.each = _EACH
        result = self._runner.run(slurm.queue_command(names, each=True), timeout=60)
        failed = result.returncode != 0 or result.timed_out
        return None if failed else slurm.parse_queue(result.stdout), result

    def _moved(self, told: dict[str, dict[int, Answer]]) -> bool:
        """Whether anything is in another phase than at the last poll; why it waits may change every minute."""
        for name, answers in told.items():
            before = self._memory.answers.get(name, {})
            for task, answer in answers.items():
                old = before.get(task)
                if old is not answer and (old is None or (old.phase, old.never) != (answer.phase, answer.never)):
                    return True
        return False

    def _unanswered(self, result: CommandResult) -> None:
        """Nothing is known for now; after some minutes of that the user hears of it."""
        pace = self._pace
        pace.asked(changed=False)
        pace.failing_since = self._clock() if pace.failing_since is None else pace.failing_since
        if not pace.said and self._clock() - pace.failing_since >= _SAY_AFTER_S:
            pace.said = True
            error = CommandError(result, what="the last try")
            self._say(
                "the scheduler has not answered for some minutes. This may pass by itself, and it does not mean that"
                f" jobs have failed; nsw goes on asking.\n{error.message}"
            )

    def _look_back(
        self, some: Sequence[Submission], absent: dict[str, list[int]], told: dict[str, dict[int, Answer]]
    ) -> None:
        """Ask sacct for what squeue did not know; without a trace for several polls a task is lost."""
        asked = True
        history: dict[str, dict[int, Answer]] = {s.name: {} for s in some}
        jobs = [n.job for s in some if (n := Native.parse(s.native_id))]
        if jobs and self._facts.accounting:
            results = [self._runner.run(argv, timeout=120) for argv in slurm.history_commands(jobs)]
            asked = all(result.returncode == 0 and not result.timed_out for result in results)
            history = _sorted_out(slurm.parse_history("".join(result.stdout for result in results)), some)
        missing = {(s.name, t): history[s.name].get(t) for s in some for t in absent[s.name]}
        counts = self._memory.absent
        self._memory.absent = {key: counts.get(key, 0) + asked for key in missing}
        for (name, task), found in missing.items():
            told[name][task] = self._absent_answer(self._memory.absent[name, task], found)

    def _absent_answer(self, polls: int, found: Answer | None) -> Answer:
        if found is not None and found.phase is Phase.ENDED:
            return found
        if found is None and polls >= _ABSENT:
            who = "squeue and sacct do" if self._facts.accounting else "squeue does"
            return Answer(Phase.LOST, f"{who} not know its job any more")
        if polls >= _STALE:
            return Answer(Phase.LOST, "squeue does not know its job any more, though sacct never saw it end")
        return _UNKNOWN

    def _explain(self, submissions: Sequence[Submission], told: dict[str, dict[int, Answer]]) -> None:
        """Look into the job's own output for what the state does not say: without cgroups, memory."""
        for submission in submissions:
            for task, answer in told[submission.name].items():
                if answer.phase is Phase.ENDED and not answer.clean:
                    output = self._transport.read(self._log_of(submission, task), 1 << 16)
                    more = slurm.memory_words((output or b"").decode(errors="replace"))
                    if more:
                        told[submission.name][task] = replace(answer, reason=f"out of memory: {more}")

    def _log_of(self, submission: Submission, task: int) -> str:
        return f"{self._jobs}/{slurm.log_name(submission.name, submission.native_id, task)}"


def _sorted_out(lines: Iterable[slurm.Line], submissions: Iterable[Submission]) -> dict[str, dict[int, Answer]]:
    """Answers by submission and task.

    Both id and name must be right: ids are used again, and sacct's first rows of a job (named `allocation`, of an
    array without its index) may speak of another task.
    """
    told: dict[str, dict[int, Answer]] = {}
    by_job: dict[int, tuple[Submission, Native, set[int]]] = {}
    for submission in submissions:
        told[submission.name] = {}
        native = Native.parse(submission.native_id)
        if native is not None:
            by_job[native.job] = (submission, native, set(submission.tasks))
    for line in lines:
        known = by_job.get(line.job)
        if known is None or line.name != known[0].name:
            continue
        submission, native, tasks = known
        answers = told[submission.name]
        for task in native.tasks(line.indices, submission.tasks):
            if task in tasks:
                answers[task] = line.answer
    return told
