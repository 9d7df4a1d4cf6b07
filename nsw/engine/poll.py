"""One poll for all that is in flight, and a judgement of whatever has something new to say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsw.engine.collect import AttemptEnd, Collector, Status, Verdict, answer_once_begun, judge
from nsw.engine.handover import run_fenced
from nsw.engine.ledger_rows import Kind, Reason, State, TaskInFlight
from nsw.errors import CommandError, NswError, UnreachableError
from nsw.schedulers.model import Answer, Phase, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from nsw.engine.driven import DrivenCampaign
    from nsw.engine.ledger import Ledger
    from nsw.engine.stages import Dependencies


_MAX_WITHDRAWALS = 3  # times that a run is submitted again by itself
_FOLDERS_PER_COMMAND = 200  # folders of one command line
# as a job claims: of two that try only one can make the file; one that nsw made before is as good as a new one
_CLAIM = r"""
number=0
for dir in "$@"; do
  mkdir -p "$dir"
  { (set -C; echo state=withdrawn >"$dir/claim") || [ "$(head -n 1 "$dir/claim")" = state=withdrawn ]; } 2>/dev/null &&
    echo "$number"
  number=$((number + 1))
done
:
"""


class _OpenSubmission:
    """One submission: what of it is not over, by task."""

    def __init__(self, submission: Submission, flying: Iterable[TaskInFlight]) -> None:
        self.submission = submission
        self.tasks: dict[int, list[TaskInFlight]] = {}
        for run in flying:
            self.tasks.setdefault(run.task, []).append(run)
        self._unfinished: Submission | None = None

    @property
    def unfinished(self) -> Submission:
        """The submission with the tasks that are not over; the same object as long as these do not change."""
        if self._unfinished is None:
            self._unfinished = replace(self.submission, tasks=tuple(sorted(self.tasks)))
        return self._unfinished

    def remove(self, run: TaskInFlight) -> None:
        runs = self.tasks[run.task]
        runs.remove(run)
        if not runs:
            del self.tasks[run.task]
            self._unfinished = None


class InFlight:
    """The submissions that the scheduler has, with the runs and builds in them that are not over.

    Args:
        ledger: Where each is written down too.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[str, _OpenSubmission] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def add(self, submission: Submission) -> list[TaskInFlight]:
        """The scheduler has it; its runs, which the ledger knows by it."""
        flying = self._ledger.tasks_in_flight(submission)
        self._open[submission.name] = _OpenSubmission(submission, flying)
        return flying

    def submissions(self) -> list[Submission]:
        """Each with the tasks of it that are not over."""
        return [submission.unfinished for submission in self._open.values()]

    def submission(self, name: str) -> Submission:
        """A submission with all tasks that it ever had."""
        return self._open[name].submission

    def tasks(self, name: str) -> dict[int, list[TaskInFlight]]:
        """What of a submission is not over, by task."""
        return self._open[name].tasks

    def __iter__(self) -> Iterator[TaskInFlight]:
        return (run for _, run in self.items())

    def items(self) -> Iterator[tuple[str, TaskInFlight]]:
        """What is not over, each with the name of its submission."""
        return (
            (name, run)
            for name, submission in self._open.items() for runs in submission.tasks.values() for run in runs
        )  # fmt: skip

    def submissions_with(self, matches: Callable[[TaskInFlight], bool]) -> list[Submission]:
        """Submissions with only the tasks that hold what is wanted."""
        matching = []
        for submission in self._open.values():
            tasks = sorted(task for task, runs in submission.tasks.items() if any(map(matches, runs)))
            if tasks:
                matching.append(replace(submission.submission, tasks=tuple(tasks)))
        return matching

    def finish(self, name: str, run: TaskInFlight) -> None:
        """A run or build of a submission has ended."""
        self._open[name].remove(run)

    def drop(self, matches: Callable[[TaskInFlight], bool]) -> list[TaskInFlight]:
        """Let go of what is wanted: nothing more will be heard of it."""
        dropped = [(name, run) for name, run in self.items() if matches(run)]
        for name, run in dropped:
            self.finish(name, run)
        return [run for _, run in dropped]

    def close(self) -> None:
        """Write down which submissions are over."""
        for name in [name for name, submission in self._open.items() if not submission.tasks]:
            self._ledger.finish_submission(name)
            del self._open[name]


class Withdrawal:
    """Takes back attempts that a scheduler forgot, could not launch, or may take after they were cancelled.

    Args:
        campaign: The campaign, whose ledger says how often that was done for a run.
    """

    def __init__(self, campaign: DrivenCampaign) -> None:
        self._campaign = campaign

    def withdraw(self, runs: Sequence[TaskInFlight]) -> set[str]:
        """Claim the folders of these attempts.

        Returns:
            The ids of the runs that can begin no more under their present attempt; the others have begun.

        Raises:
            UnreachableError: The site could not be asked.
        """
        return {
            run.id
            for at in range(0, len(runs), _FOLDERS_PER_COMMAND)
            for run in self._claim_attempts(runs[at : at + _FOLDERS_PER_COMMAND])
        }

    def plan_again(self, run: TaskInFlight, reason: str | None) -> None:
        """Plan a withdrawn run or build anew, under its next attempt."""
        ledger = self._campaign.ledger
        ledger.count_withdrawal(run.id)
        ledger.release([run.id])
        ledger.update_tasks([run.id], reason=f"{reason}; it had not begun, and is submitted again")

    def _claim_attempts(self, runs: Sequence[TaskInFlight]) -> list[TaskInFlight]:
        folders = [self._campaign.home(run.id, run.attempt) for run in runs]
        # the attempts of a campaign that was taken over are another nsw's
        fence = None if self._campaign.handover is None else self._campaign.handover.fence
        argv = ["bash", "-c", _CLAIM, "nsw", *folders]
        completed = run_fenced(self._campaign.transport, fence, argv, timeout=120)
        if completed.returncode != 0:
            raise UnreachableError(CommandError(completed, subject="attempts could not be withdrawn").message)
        return [runs[int(number)] for number in completed.stdout.split()]

    def withdraw_idle(self, several: Iterable[TaskInFlight], ending: Collector) -> set[str]:
        """The ids of those that had not begun, and can begin no more under their present attempt.

        Raises:
            UnreachableError: The site could not be asked.
        """
        # a fault that stays is not tried for ever
        withdrawals = self._campaign.ledger.withdrawals
        again = [run for run in several if withdrawals(run.id) < _MAX_WITHDRAWALS]
        idle = [run for run in again if not ending.began_or_was_done_before(run)]
        resubmittable = self._drop_if_neighbours_begun(idle, {run.id for run in idle}, ending)
        return {run.id for run in self._drop_if_neighbours_begun(resubmittable, self.withdraw(resubmittable), ending)}

    def _drop_if_neighbours_begun(
        self, several: Iterable[TaskInFlight], idle: Collection[str], ending: Collector
    ) -> list[TaskInFlight]:
        """Those whose tasks hold nothing else that a new job would begin again.

        One script does all runs of a task but those that are done: one that had begun, or failed, would be done twice.
        """
        candidates = [candidate for candidate in several if candidate.id in idle]
        blocked: dict[tuple[str, int], bool] = {}
        for candidate in candidates:
            if (candidate.job, candidate.task) not in blocked:
                blocked[candidate.job, candidate.task] = any(
                    neighbour.id not in idle
                    and neighbour.state not in {State.DONE, State.PLANNED}
                    and not ending.is_done(neighbour)
                    for neighbour in self._campaign.ledger.runs_of(candidate.job, [candidate.task])
                )
        return [candidate for candidate in candidates if not blocked[candidate.job, candidate.task]]


_LATE_FILE = 4  # polls that a job's last words may be late on a shared file system
_NEVER_RUNS = 10  # polls that call a job held for ever which may run all the same: up to ten minutes
_SIGNALLED = frozenset({130, 137, 143})  # by SIGINT, SIGKILL, SIGTERM: what schedulers send
_UNKNOWN = Answer(Phase.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _StateChange:
    """A run or build in a new state that is no end."""

    run: TaskInFlight
    verdict: Verdict
    status: Status | None


class Poller:
    """Polls the scheduler and says what that means for each run and build.

    What waits, and waits for the same as at the last poll, is passed over: ten thousand such tasks cost nothing.

    Args:
        campaign: The campaign.
        flight: What the scheduler has.
        ending: Writes down how things go and end.
        needs: Which tasks wait for others, and which wait in vain.
    """

    def __init__(self, campaign: DrivenCampaign, flight: InFlight, ending: Collector, needs: Dependencies) -> None:
        self._campaign = campaign
        self._flight = flight
        self._ending = ending
        self._needs = needs
        self._withdrawing = Withdrawal(campaign)
        self._last_answers: Mapping[str, Mapping[int, Answer]] = {}  # by the last poll
        self._sightings: Counter[tuple[str, str]] = Counter()  # what must be seen several times before it is believed
        self._followed: dict[str, str] = {}  # run -> the job that its claim names
        self._calls_before = Counter(campaign.ledger.calls())

    def poll(self, *, at_once: bool = False) -> None:
        """Ask when it is time to, or at once, and judge."""
        self._flight.close()
        if not self._flight or not (at_once or self._campaign.scheduler.due()):
            return
        answers = self._campaign.scheduler.poll(self._flight.submissions())
        news = self._changed_answers(answers)
        try:
            self._ending.read_statuses(run for _, run, answer in news if answer.phase is not Phase.QUEUED)
            news = [(name, run, self._answer_if_begun(run, answer)) for name, run, answer in news]
            moving = [entry for entry in news if entry[2].phase not in {Phase.QUEUED, Phase.LOST}]
            judged = [
                (name, outcome) for name, run, answer in moving if (outcome := self._judge_answer(name, run, answer))
            ]
            ends = [(name, outcome) for name, outcome in judged if isinstance(outcome, AttemptEnd)]
            self._ending.collect([end for _, end in ends])
        except (UnreachableError, CommandError):  # all of it is looked at again after the next poll
            return
        changed = self._record_changes(news, judged)
        self._last_answers = answers
        changed += self._settle_lost(
            [entry for entry in news if entry[2].phase is Phase.LOST or self._is_withdrawn(entry)]
        )
        changed += self._end_hopeless([entry for entry in news if entry[2].never])
        if changed:
            self._campaign.changed(changed)

    def _record_changes(
        self, news: Sequence[tuple[str, TaskInFlight, Answer]], judged: Sequence[tuple[str, AttemptEnd | _StateChange]]
    ) -> list[str]:
        """Record the tasks that wait, go on or have ended; returns the ids of those that changed."""
        waiting: dict[tuple[str, Verdict], list[TaskInFlight]] = {}
        for name, run, answer in news:
            if not answer.never:
                self._sightings.pop((run.id, "never"), None)
            if answer.phase is Phase.QUEUED:
                # it has written nothing yet, or what it wrote was before it was put back into the queue
                waiting.setdefault((name, judge(answer, None)), []).append(run)
        with self._campaign.ledger.transaction():
            for name, outcome in sorted(
                judged, key=lambda entry: entry[1].run.kind is not Kind.BUILD
            ):  # builds first: they explain runs
                if isinstance(outcome, AttemptEnd):
                    self._ending.record_end(self._add_build_failure(outcome))
                    self._stop_following(name, outcome.run)
                else:
                    self._ending.record_state(outcome.run, outcome.verdict, outcome.status)
            changed = [outcome.run.id for _, outcome in judged] + self._record_waiting(waiting)
            self._flight.close()
            self.save_calls()
        return changed

    def look_at_lost(self) -> None:
        """Believe what runs have written of their end since: a run's own status file always wins.

        It looks at lost runs, and at those that failed by the scheduler's word alone, without an end of their own.
        """
        lost = [
            TaskInFlight(recorded.id, recorded.job, recorded.task, recorded.attempt, recorded.state, recorded.detail)
            for recorded in self._campaign.ledger.runs(states=[State.LOST, State.FAILED])
            if recorded.attempt and recorded.ended is None
        ]
        try:
            self._ending.read_statuses(lost)
            seen = [(run, self._run_status(run)) for run in lost]
            end_states = {State.LOST: {"done", "failed"}, State.FAILED: {"done"}}
            ended = [
                (run, status) for run, status in seen if status is not None and status.state in end_states[run.state]
            ]
            ends = [self._ending.attempt_end(run, judge(_UNKNOWN, status), status) for run, status in ended]
            self._ending.collect(ends)
        except (UnreachableError, CommandError):  # they stay lost until the site can be asked
            return
        with self._campaign.ledger.transaction():
            for end in ends:
                self._ending.record_end(end)
        if ends:
            self._campaign.changed([end.run.id for end in ends])

    def fail_dependents(self) -> None:
        """Tasks whose source went wrong end, whether or not their jobs are submitted."""
        doomed = self._needs.doomed()
        if not doomed:
            return
        dropped: list[TaskInFlight] = []
        if submissions := self._flight.submissions_with(lambda run: run.id in doomed):
            try:
                self._campaign.scheduler.cancel(submissions)
            except NswError:  # the scheduler ends them by itself, since what they depend on failed
                pass
            else:
                dropped = self._flight.drop(lambda run: run.id in doomed)
        ends = [AttemptEnd(run, doomed[run.id], None, run.attempt) for run in dropped]
        with self._campaign.ledger.transaction():
            waiting = self._end_doomed_tasks()
            for end in ends:
                self._ending.record_end(end)
            self._flight.close()
        if waiting or dropped:
            self._campaign.changed(waiting + [run.id for run in dropped])

    def _end_doomed_tasks(self) -> list[str]:
        """End the tasks that wait for a source that failed; returns their ids."""
        doomed = self._needs.doomed()
        waiting = self._campaign.ledger.planned(doomed)
        for id_ in waiting:
            self._campaign.ledger.update_tasks([id_], state=doomed[id_].state, reason=doomed[id_].reason)
        return waiting

    def save_calls(self) -> None:
        """Write down how often each command was run."""
        calls = self._campaign.scheduler.calls()
        if calls:
            self._campaign.ledger.set_calls(self._calls_before + Counter(calls))

    def _changed_answers(self, answers: Mapping[str, Mapping[int, Answer]]) -> list[tuple[str, TaskInFlight, Answer]]:
        """The tasks and their answers, except those that wait as they did at the last poll."""
        news: list[tuple[str, TaskInFlight, Answer]] = []
        for submission in self._flight.submissions():
            current, previous = answers.get(submission.name, {}), self._last_answers.get(submission.name, {})
            for task, several in self._flight.tasks(submission.name).items():
                answer = current.get(task, _UNKNOWN)
                if answer.phase is Phase.QUEUED and previous.get(task) is answer and not answer.never:
                    continue
                news += [(submission.name, run, answer) for run in several]
        return news

    def _answer_if_begun(self, run: TaskInFlight, answer: Answer) -> Answer:
        """The answer as it holds of a run, which may have begun."""
        if answer.if_begun is None:
            return answer
        try:
            return answer_once_begun(answer, self._run_status(run))
        except UnreachableError:  # of this one alone: `_judge_answer` passes it over
            return answer

    def _record_waiting(self, waiting: Mapping[tuple[str, Verdict], list[TaskInFlight]]) -> list[str]:
        """Write down why runs wait; the ids of those to tell of.

        Thousands may wait for one reason, and for another one a minute later: then the first speaks for all.
        """
        changed: list[str] = []
        for (_, verdict), several in waiting.items():
            moved = [run for run in several if run.state is not verdict.state]
            other_reason = [run for run in several if run.state is verdict.state and run.reason != verdict.reason]
            changed += [run.id for run in (*moved, *other_reason[:1])]
            if moved or other_reason:
                self._ending.record_waiting([*moved, *other_reason], verdict)
        return changed

    def _judge_answer(self, name: str, run: TaskInFlight, answer: Answer) -> AttemptEnd | _StateChange | None:
        """What an answer and the run's own status mean; None for nothing new.

        Raises:
            UnreachableError: An earlier attempt could not be looked at.
        """
        try:
            status = self._run_status(run)
        except UnreachableError:  # of this one alone: its file could not be read
            return None
        if self._is_claimed_by_other_job(name, run, status) or self._must_look_again(run, answer, status):
            return None
        if status is not None and status.state == "withdrawn":
            return None
        verdict = judge(answer, status)
        if verdict.ended:
            if status is None and answer.clean and not answer.cancelled and not self._ending.has_folder(run):
                missing = (
                    f"its job ended well, and {self._campaign.home(run.id, run.attempt)} is not there:"
                    " moved or removed since"
                )
                verdict = replace(verdict, reason=Reason(missing))
            end = self._ending.attempt_end(run, verdict, status)
            return replace(end, second=self._own_job_of_duplicate_run(name, run, status))
        # a scheduler may report a job as running before the job has reported since when, or has begun anew
        same_start = status is None or status.started == run.started
        if (verdict.state, verdict.reason) == (run.state, run.reason) and same_start:
            return None
        return _StateChange(run, verdict, status)

    def _add_build_failure(self, end: AttemptEnd) -> AttemptEnd:
        """Make the failure of its build the reason, where that kept a run from beginning."""
        build_end = None if end.status is not None else self._needs.end_of(end.run.id)
        return end if build_end is None else replace(end, verdict=build_end)

    def follow_claiming_jobs(self, several: Iterable[TaskInFlight]) -> None:
        """Ask, of those that have begun, about the jobs that their claims name: a submission may exist twice.

        Raises:
            UnreachableError: The site could not be asked.
        """
        ids = {one.id for one in several}
        flying = [(name, one) for name, one in self._flight.items() if one.id in ids]
        self._ending.read_statuses(one for _, one in flying)
        for name, one in flying:
            self._is_claimed_by_other_job(name, one, self._run_status(one))

    def _is_claimed_by_other_job(self, name: str, one: TaskInFlight, status: Status | None) -> bool:
        """Whether another job has claimed the run; nsw then follows that job.

        A submission that was in doubt may exist twice. The job that claimed the run does it; the other passes it over.
        """
        if not self._campaign.scheduler.batches or status is None or status.state != "running" or not status.job_id:
            return False
        submission = self._flight.submission(name)
        submitted_id = self._followed.get(one.id) or self._campaign.scheduler.job_of(submission, one.task)
        if status.job_id == submitted_id:
            return False
        self._followed[one.id] = status.job_id
        self._campaign.scheduler.follow(submission, one.task, status.job_id)
        return True

    def _own_job_of_duplicate_run(self, name: str, run: TaskInFlight, status: Status | None) -> str | None:
        """The job that nsw submitted for a run that another one of the same name did; None where it did it itself."""
        if not self._campaign.scheduler.batches or status is None or not status.job_id:
            return None
        submitted_id = self._campaign.scheduler.job_of(self._flight.submission(name), run.task)
        return None if submitted_id == status.job_id else submitted_id

    def _is_withdrawn(self, entry: tuple[str, TaskInFlight, Answer]) -> bool:
        """Whether nsw gave up this attempt, was killed before it planned the next, and its job is over."""
        _, run, answer = entry
        if answer.phase not in {Phase.ENDED, Phase.GONE}:
            return False
        try:
            status = self._run_status(run)
        except UnreachableError:
            return False
        return status is not None and status.state == "withdrawn"

    def _must_look_again(self, run: TaskInFlight, answer: Answer, status: Status | None) -> bool:
        """Whether to look once more before believing that a run of a batch job is over."""
        if not self._campaign.scheduler.batches:
            return False
        if answer.phase is Phase.ENDED:
            if not answer.clean or (status is not None and status.state in {"done", "failed"}):
                return False
            self._sightings[run.id, "clean"] += 1  # its file may take a while to travel through a shared file system
            return self._sightings[run.id, "clean"] <= _LATE_FILE
        # ended by a signal: the scheduler may be about to put the job back into the queue
        signalled = status is not None and status.state == "failed" and status.exit_code in _SIGNALLED
        return signalled and answer.phase in {Phase.RUNNING, Phase.UNKNOWN}

    def _settle_lost(self, lost: list[tuple[str, TaskInFlight, Answer]]) -> list[str]:
        """Submit lost tasks again that had not begun; the others end as lost."""
        if not lost:
            return []
        try:
            lost_ids = {run.id for _, run, _ in lost}
            again = self._withdrawing.withdraw_idle((run for _, run, _ in lost), self._ending)
            dependents = self._tasks_waiting_for_lost(again)
            dependents = [entry for entry in dependents if entry[1].id not in lost_ids]
            ids = {run.id for _, run, _ in dependents}
            again |= self._withdrawing.withdraw_idle((run for _, run, _ in dependents), self._ending)
            self._campaign.scheduler.cancel(self._flight.submissions_with(lambda run: run.id in ids))
        except NswError:  # all of them are looked at again after the next poll
            return []
        settled = [*lost, *(entry for entry in dependents if entry[1].id in again)]
        try:
            judged = [
                (name, self._judge_answer(name, run, answer)) for name, run, answer in settled if run.id not in again
            ]
            self._ending.collect([outcome for _, outcome in judged if isinstance(outcome, AttemptEnd)])
        except NswError:
            judged = []
        with self._campaign.ledger.transaction():
            for name, run, answer in settled:
                if run.id in again:
                    self._requeue(name, run, answer)
            for name, outcome in judged:
                if isinstance(outcome, AttemptEnd):
                    self._ending.record_end(self._add_build_failure(outcome))
                    self._stop_following(name, outcome.run)
            # with the loss of their build, so that no later nsw finds them waiting and begins it again by itself
            failed = self._end_doomed_tasks()
            self._flight.close()
        return [*(run.id for _, run, _ in settled), *failed]

    def _tasks_waiting_for_lost(self, sources: Collection[str]) -> list[tuple[str, TaskInFlight, Answer]]:
        """The tasks in flight whose jobs wait for the jobs of these, which are gone."""
        waiting = self._campaign.ledger.waiting_until_done(sources) if sources else set()
        answer = Answer(Phase.LOST, "the job of its build, for which its own waited, was lost")
        return [(name, run, answer) for name, run in self._flight.items() if run.id in waiting]

    def _requeue(self, name: str, run: TaskInFlight, answer: Answer) -> None:
        self._withdrawing.plan_again(run, answer.reason)
        self._stop_following(name, run)

    def _stop_following(self, name: str, run: TaskInFlight) -> None:
        self._flight.finish(name, run)
        for sighting in ("clean", "never"):
            self._sightings.pop((run.id, sighting), None)

    def _end_hopeless(self, never: list[tuple[str, TaskInFlight, Answer]]) -> list[str]:
        """End tasks that wait for what will not come.

        A controller that came back from a crash may hold a job of which the first launch still runs: that one is
        waited for somewhat longer, and what it finished counts. One that it holds before it began is submitted again.
        """
        hopeless: dict[str, tuple[str, TaskInFlight, Answer, Status | None]] = {}
        try:
            self._ending.read_statuses(run for _, run, _ in never)
            statuses = {run.id: self._run_status(run) for _, run, _ in never}
        except UnreachableError:
            return []
        for name, run, answer in never:
            status = statuses[run.id]
            self._sightings[run.id, "never"] += 1
            still_runs = answer.may_run and status is not None and status.state == "running"
            if not still_runs or self._sightings[run.id, "never"] >= _NEVER_RUNS:
                hopeless[run.id] = (name, run, answer, status)
        self._drop_partial_tasks(hopeless)
        if not hopeless:
            return []
        try:
            unbegun = [(run, answer) for _, run, answer, status in hopeless.values() if status is None]
            again = self._withdrawing.withdraw_idle((run for run, answer in unbegun if answer.may_run), self._ending)
            self._ending.read_statuses(run for run, _ in unbegun)
            for run in [run for run, _ in unbegun if self._ending.has_begun(run)]:
                del hopeless[run.id]  # it began a moment ago
            self._drop_partial_tasks(hopeless)
            self._campaign.scheduler.cancel(self._flight.submissions_with(lambda run: run.id in hopeless))
        except NswError:  # it is tried again after the next poll
            return []
        ends = [
            (name, AttemptEnd(run, _hopeless_verdict(answer, status), status, run.attempt))
            for name, run, answer, status in hopeless.values()
            if run.id not in again
        ]
        try:
            self._ending.collect([end for _, end in ends])
        except NswError:
            return []
        with self._campaign.ledger.transaction():
            for name, run, answer, _ in hopeless.values():
                if run.id in again:
                    self._requeue(name, run, answer)
            for name, end in ends:
                self._ending.record_end(end)
                self._stop_following(name, end.run)
            self._flight.close()
        return list(hopeless)

    def _drop_partial_tasks(self, hopeless: dict[str, tuple[str, TaskInFlight, Answer, Status | None]]) -> None:
        """Keep only whole tasks: ending a task for one run would end its other runs, which may still run."""
        for name, run, _, _ in list(hopeless.values()):
            if any(neighbour.id not in hopeless for neighbour in self._flight.tasks(name)[run.task]):
                del hopeless[run.id]

    def _run_status(self, run: TaskInFlight) -> Status | None:
        return self._ending.status(run.id, run.attempt)


def _hopeless_verdict(answer: Answer, status: Status | None) -> Verdict:
    if status is not None and status.state == "done":
        return Verdict(State.DONE, ended=True)
    consequence = "it would never have begun" if status is None else "it would never have begun again"
    return Verdict(State.FAILED, Reason(f"{consequence}: {answer.reason}"), ended=True)
