"""One poll for all that is in flight, and a judgement of whatever has something new to say."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsw.campaign.collect import End, Ending
from nsw.campaign.judge import Status, Verdict, as_begun, judge
from nsw.campaign.ledger_rows import Flying, Kind, Reason, State
from nsw.errors import CommandError, NswError, UnreachableError
from nsw.schedulers.model import Answer, Phase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from nsw.campaign.dependencies import Needs
    from nsw.campaign.driven import Driven, InFlight


_MOST = 3  # times that a run is submitted again by itself
_SOME = 200  # folders of one command line
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


class Withdrawing:
    """Takes back attempts that a scheduler forgot, could not launch, or may take after they were cancelled.

    Args:
        it: The campaign, whose ledger says how often that was done for a run.
    """

    def __init__(self, it: Driven) -> None:
        self._it = it

    def may(self, run: Flying) -> bool:
        """Whether a run or build may be submitted again by itself: a fault that stays is not tried for ever."""
        return self._it.ledger.withdrawals(run.id) < _MOST

    def withdraw(self, runs: Sequence[Flying]) -> set[str]:
        """Claim the folders of these attempts.

        Returns:
            The ids of the runs that can begin no more under their present attempt; the others have begun.

        Raises:
            UnreachableError: The site could not be asked.
        """
        return {run.id for at in range(0, len(runs), _SOME) for run in self._claim(runs[at : at + _SOME])}

    def plan_again(self, run: Flying, reason: str | None) -> None:
        """Plan a withdrawn run or build anew, under its next attempt."""
        ledger = self._it.ledger
        ledger.count_withdrawal(run.id)
        ledger.release([run.id])
        ledger.update_tasks([run.id], reason=f"{reason}; it had not begun, and is submitted again")

    def _claim(self, runs: Sequence[Flying]) -> list[Flying]:
        folders = [self._it.home(run.id, run.attempt) for run in runs]
        argv = ["bash", "-c", _CLAIM, "nsw", *folders]
        if self._it.handover is None:
            done = self._it.transport.run(argv, timeout=120)
        else:  # the attempts of a campaign that was taken over are another nsw's
            fence = self._it.handover.fence
            done = fence.passed(argv, self._it.transport.run(fence.around(argv), timeout=120))
        if done.returncode != 0:
            raise UnreachableError(CommandError(done, subject="attempts could not be withdrawn").message)
        return [runs[int(number)] for number in done.stdout.split()]

    def withdraw_idle(self, several: Iterable[Flying], ending: Ending) -> set[str]:
        """The ids of those that had not begun, and can begin no more under their present attempt.

        Raises:
            UnreachableError: The site could not be asked.
        """
        idle = [one for one in several if self.may(one) and not ending.left_a_mark(one)]
        may = self._alone(idle, {one.id for one in idle}, ending)
        return {one.id for one in self._alone(may, self.withdraw(may), ending)}

    def _alone(self, several: Iterable[Flying], idle: Collection[str], ending: Ending) -> list[Flying]:
        """Those whose tasks hold nothing else that a new job would begin again.

        One script does all runs of a task but those that are done: one that had begun, or failed, would be done twice.
        """
        some = [one for one in several if one.id in idle]
        held: dict[tuple[str, int], bool] = {}
        for one in some:
            if (one.job, one.task) not in held:
                held[one.job, one.task] = any(
                    run.id not in idle and run.state not in {State.DONE, State.PLANNED} and not ending.is_done(run)
                    for run in self._it.ledger.runs_of(one.job, [one.task])
                )
        return [one for one in some if not held[one.job, one.task]]


_LATE_FILE = 4  # polls that a job's last words may be late on a shared file system
_NEVER_RUNS = 10  # polls that call a job held for ever which may run all the same: up to ten minutes
_SIGNALLED = frozenset({130, 137, 143})  # by SIGINT, SIGKILL, SIGTERM: what schedulers send
_UNKNOWN = Answer(Phase.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _GoesOn:
    """A run or build in a new state that is no end."""

    one: Flying
    verdict: Verdict
    status: Status | None


class Watching:
    """Polls the scheduler and says what that means for each run and build.

    What waits, and waits for the same as at the last poll, is passed over: ten thousand such tasks cost nothing.

    Args:
        it: The campaign.
        flight: What the scheduler has.
        ending: Writes down how things go and end.
        needs: Which tasks wait for others, and which wait in vain.
    """

    def __init__(self, it: Driven, flight: InFlight, ending: Ending, needs: Needs) -> None:
        self._it = it
        self._flight = flight
        self._ending = ending
        self._needs = needs
        self._withdrawing = Withdrawing(it)
        self._said: Mapping[str, Mapping[int, Answer]] = {}  # by the last poll
        self._often: Counter[tuple[str, str]] = Counter()  # what must be seen several times before it is believed
        self._followed: dict[str, str] = {}  # run -> the job that its claim names
        self._calls_before = Counter(it.ledger.calls())

    def poll(self, *, at_once: bool = False) -> None:
        """Ask when it is time to, or at once, and judge."""
        self._flight.close()
        if not self._flight or not (at_once or self._it.scheduler.due()):
            return
        answers = self._it.scheduler.poll(self._flight.submissions())
        news = self._news(answers)
        try:
            self._ending.look(one for _, one, answer in news if answer.phase is not Phase.QUEUED)
            news = [(name, one, self._as_begun(one, answer)) for name, one, answer in news]
            moving = [some for some in news if some[2].phase not in {Phase.QUEUED, Phase.LOST}]
            judged = [(name, found) for name, one, answer in moving if (found := self._judge(name, one, answer))]
            ends = [(name, found) for name, found in judged if isinstance(found, End)]
            self._ending.bring([end for _, end in ends])
        except (UnreachableError, CommandError):  # all of it is looked at again after the next poll
            return
        changed = self._write_down(news, judged)
        self._said = answers
        changed += self._settle_lost([some for some in news if some[2].phase is Phase.LOST or self._is_withdrawn(some)])
        changed += self._give_up([some for some in news if some[2].never])
        if changed:
            self._it.changed(changed)

    def _write_down(
        self, news: Sequence[tuple[str, Flying, Answer]], judged: Sequence[tuple[str, End | _GoesOn]]
    ) -> list[str]:
        """What waits, goes on and has ended; the ids of those that changed."""
        waiting: dict[tuple[str, Verdict], list[Flying]] = {}
        for name, one, answer in news:
            if not answer.never:
                self._often.pop((one.id, "never"), None)
            if answer.phase is Phase.QUEUED:
                # it has written nothing yet, or what it wrote was before it was put back into the queue
                waiting.setdefault((name, judge(answer, None)), []).append(one)
        with self._it.ledger.transaction():
            for name, found in sorted(
                judged, key=lambda some: some[1].one.kind is not Kind.BUILD
            ):  # builds first: they explain runs
                if isinstance(found, End):
                    self._ending.write(self._blamed(found))
                    self._let_go(name, found.one)
                else:
                    self._ending.goes_on(found.one, found.verdict, found.status)
            changed = [found.one.id for _, found in judged] + self._wait(waiting)
            self._flight.close()
            self.save_calls()
        return changed

    def look_at_lost(self) -> None:
        """Believe what runs have written of their end since: a run's own status file always wins.

        It looks at lost runs, and at those that failed by the scheduler's word alone, without an end of their own.
        """
        lost = [
            Flying(run.id, run.job, run.task, run.attempt, run.state, run.detail)
            for run in self._it.ledger.runs(states=[State.LOST, State.FAILED])
            if run.attempt and run.ended is None
        ]
        try:
            self._ending.look(lost)
            seen = [(one, self._status(one)) for one in lost]
            ended = {State.LOST: {"done", "failed"}, State.FAILED: {"done"}}
            over = [(one, status) for one, status in seen if status is not None and status.state in ended[one.state]]
            ends = [self._ending.end_of(one, judge(_UNKNOWN, status), status) for one, status in over]
            self._ending.bring(ends)
        except (UnreachableError, CommandError):  # they stay lost until the site can be asked
            return
        with self._it.ledger.transaction():
            for end in ends:
                self._ending.write(end)
        if ends:
            self._it.changed([end.one.id for end in ends])

    def fail_dependents(self) -> None:
        """Tasks whose source went wrong end, whether or not their jobs are submitted."""
        doomed = self._needs.doomed()
        if not doomed:
            return
        gone: list[Flying] = []
        if held := self._flight.holding(lambda one: one.id in doomed):
            try:
                self._it.scheduler.cancel(held)
            except NswError:  # the scheduler ends them by itself, since what they depend on failed
                pass
            else:
                gone = self._flight.drop(lambda one: one.id in doomed)
        ends = [End(one, doomed[one.id], None, one.attempt) for one in gone]
        with self._it.ledger.transaction():
            waiting = self._fail_waiting()
            for end in ends:
                self._ending.write(end)
            self._flight.close()
        if waiting or gone:
            self._it.changed(waiting + [one.id for one in gone])

    def _fail_waiting(self) -> list[str]:
        """The tasks that wait to be submitted, and whose source went wrong, end; their ids."""
        doomed = self._needs.doomed()
        waiting = self._it.ledger.planned(doomed)
        for id_ in waiting:
            self._it.ledger.update_tasks([id_], state=doomed[id_].state, reason=doomed[id_].reason)
        return waiting

    def save_calls(self) -> None:
        """Write down how often each command was run."""
        calls = self._it.scheduler.calls()
        if calls:
            self._it.ledger.set_calls(self._calls_before + Counter(calls))

    def _news(self, answers: Mapping[str, Mapping[int, Answer]]) -> list[tuple[str, Flying, Answer]]:
        """All but what waits as it did at the last poll."""
        found: list[tuple[str, Flying, Answer]] = []
        for submission in self._flight.submissions():
            told, before = answers.get(submission.name, {}), self._said.get(submission.name, {})
            for task, several in self._flight.tasks(submission.name).items():
                answer = told.get(task, _UNKNOWN)
                if answer.phase is Phase.QUEUED and before.get(task) is answer and not answer.never:
                    continue
                found += [(submission.name, one, answer) for one in several]
        return found

    def _as_begun(self, one: Flying, answer: Answer) -> Answer:
        """The answer as it holds of a run, which may have begun."""
        if answer.if_begun is None:
            return answer
        try:
            return as_begun(answer, self._status(one))
        except UnreachableError:  # of this one alone: `_judge` passes it over
            return answer

    def _wait(self, waiting: Mapping[tuple[str, Verdict], list[Flying]]) -> list[str]:
        """Write down why runs wait; the ids of those to tell of.

        Thousands may wait for one reason, and for another one a minute later: then the first speaks for all.
        """
        told: list[str] = []
        for (_, verdict), several in waiting.items():
            moved = [one for one in several if one.state is not verdict.state]
            others = [one for one in several if one.state is verdict.state and one.reason != verdict.reason]
            told += [one.id for one in (*moved, *others[:1])]
            if moved or others:
                self._ending.wait([*moved, *others], verdict)
        return told

    def _judge(self, name: str, one: Flying, answer: Answer) -> End | _GoesOn | None:
        """What an answer and the run's own status mean; None for nothing new.

        Raises:
            UnreachableError: An earlier attempt could not be looked at.
        """
        try:
            status = self._status(one)
        except UnreachableError:  # of this one alone: its file could not be read
            return None
        if self._is_elsewhere(name, one, status) or self._is_early(one, answer, status):
            return None
        if status is not None and status.state == "withdrawn":
            return None
        verdict = judge(answer, status)
        if verdict.ended:
            if status is None and answer.clean and not answer.cancelled and not self._ending.has_folder(one):
                gone = (
                    f"its job ended well, and {self._it.home(one.id, one.attempt)} is not there: moved or removed since"
                )
                verdict = replace(verdict, reason=Reason(gone))
            end = self._ending.end_of(one, verdict, status)
            return replace(end, second=self._passed_over(name, one, status))
        # a scheduler may report a job as running before the job has reported since when, or has begun anew
        same_start = status is None or status.started == one.started
        if (verdict.state, verdict.reason) == (one.state, one.reason) and same_start:
            return None
        return _GoesOn(one, verdict, status)

    def _blamed(self, end: End) -> End:
        """With the failure of its build as the reason, where that kept a run from beginning."""
        found = None if end.status is not None else self._needs.end_of(end.one.id)
        return end if found is None else replace(end, verdict=found)

    def follow_claims(self, several: Iterable[Flying]) -> None:
        """Ask, of those that have begun, about the jobs that their claims name: a submission may exist twice.

        Raises:
            UnreachableError: The site could not be asked.
        """
        ids = {one.id for one in several}
        flying = [
            (submission.name, one)
            for submission in self._flight.submissions()
            for some in self._flight.tasks(submission.name).values()
            for one in some
            if one.id in ids
        ]
        self._ending.look(one for _, one in flying)
        for name, one in flying:
            self._is_elsewhere(name, one, self._status(one))

    def _is_elsewhere(self, name: str, one: Flying, status: Status | None) -> bool:
        """Whether another job than the one that was asked about has claimed the run: from now on that one is asked.

        A submission that was in doubt may exist twice. The job that claimed the run does it; the other passes it over.
        """
        if not self._it.scheduler.batches or status is None or status.state != "running" or not status.job_id:
            return False
        submission = self._flight.submission(name)
        mine = self._followed.get(one.id) or self._it.scheduler.job_of(submission, one.task)
        if status.job_id == mine:
            return False
        self._followed[one.id] = status.job_id
        self._it.scheduler.follow(submission, one.task, status.job_id)
        return True

    def _passed_over(self, name: str, one: Flying, status: Status | None) -> str | None:
        """The job that nsw submitted for a run that another one of the same name did; None where it did it itself."""
        if not self._it.scheduler.batches or status is None or not status.job_id:
            return None
        mine = self._it.scheduler.job_of(self._flight.submission(name), one.task)
        return None if mine == status.job_id else mine

    def _is_withdrawn(self, some: tuple[str, Flying, Answer]) -> bool:
        """Whether nsw gave up this attempt, was killed before it planned the next, and its job is over."""
        _, one, answer = some
        if answer.phase not in {Phase.ENDED, Phase.GONE}:
            return False
        try:
            status = self._status(one)
        except UnreachableError:
            return False
        return status is not None and status.state == "withdrawn"

    def _is_early(self, one: Flying, answer: Answer, status: Status | None) -> bool:
        """Whether to look once more before believing that a run of a batch job is over."""
        if not self._it.scheduler.batches:
            return False
        if answer.phase is Phase.ENDED:
            if not answer.clean or (status is not None and status.state in {"done", "failed"}):
                return False
            self._often[one.id, "clean"] += 1  # its file may take a while to travel through a shared file system
            return self._often[one.id, "clean"] <= _LATE_FILE
        # ended by a signal: the scheduler may be about to put the job back into the queue
        signalled = status is not None and status.state == "failed" and status.exit_code in _SIGNALLED
        return signalled and answer.phase in {Phase.RUNNING, Phase.UNKNOWN}

    def _settle_lost(self, lost: list[tuple[str, Flying, Answer]]) -> list[str]:
        """What a scheduler forgot before it began is submitted again; of the others nothing more is known."""
        if not lost:
            return []
        try:
            known = {one.id for _, one, _ in lost}
            again = self._withdrawing.withdraw_idle((one for _, one, _ in lost), self._ending)
            held = self._held_by(again)
            held = [some for some in held if some[1].id not in known]
            ids = {one.id for _, one, _ in held}
            again |= self._withdrawing.withdraw_idle((one for _, one, _ in held), self._ending)
            self._it.scheduler.cancel(self._flight.holding(lambda one: one.id in ids))
        except NswError:  # all of them are looked at again after the next poll
            return []
        told = [*lost, *(some for some in held if some[1].id in again)]
        try:
            judged = [(name, self._judge(name, one, answer)) for name, one, answer in told if one.id not in again]
            self._ending.bring([found for _, found in judged if isinstance(found, End)])
        except NswError:
            judged = []
        with self._it.ledger.transaction():
            for name, one, answer in told:
                if one.id in again:
                    self._plan_again(name, one, answer)
            for name, found in judged:
                if isinstance(found, End):
                    self._ending.write(self._blamed(found))
                    self._let_go(name, found.one)
            # with the loss of their build, so that no later nsw finds them waiting and begins it again by itself
            failed = self._fail_waiting()
            self._flight.close()
        return [*(one.id for _, one, _ in told), *failed]

    def _held_by(self, sources: Collection[str]) -> list[tuple[str, Flying, Answer]]:
        """The tasks in flight whose jobs wait for the jobs of these, which are gone."""
        waiting = self._needs.waiting_for(sources) if sources else set()
        why = Answer(Phase.LOST, "the job of its build, for which its own waited, was lost")
        return [
            (submission.name, one, why)
            for submission in self._flight.submissions()
            for several in (self._flight.tasks(submission.name).values() if waiting else ())
            for one in several
            if one.id in waiting
        ]

    def _plan_again(self, name: str, one: Flying, answer: Answer) -> None:
        self._withdrawing.plan_again(one, answer.reason)
        self._let_go(name, one)

    def _let_go(self, name: str, one: Flying) -> None:
        self._flight.over(name, one)
        for what in ("clean", "never"):
            self._often.pop((one.id, what), None)

    def _give_up(self, never: list[tuple[str, Flying, Answer]]) -> list[str]:
        """End tasks that wait for what will not come.

        A controller that came back from a crash may hold a job of which the first launch still runs: that one is
        waited for somewhat longer, and what it finished counts. One that it holds before it began is submitted again.
        """
        sure: dict[str, tuple[str, Flying, Answer, Status | None]] = {}
        try:
            self._ending.look(one for _, one, _ in never)
            seen = {one.id: self._status(one) for _, one, _ in never}
        except UnreachableError:
            return []
        for name, one, answer in never:
            status = seen[one.id]
            self._often[one.id, "never"] += 1
            runs = answer.may_run and status is not None and status.state == "running"
            if not runs or self._often[one.id, "never"] >= _NEVER_RUNS:
                sure[one.id] = (name, one, answer, status)
        self._spare_tasks(sure)
        if not sure:
            return []
        try:
            unbegun = [(one, answer) for _, one, answer, status in sure.values() if status is None]
            again = self._withdrawing.withdraw_idle((one for one, answer in unbegun if answer.may_run), self._ending)
            self._ending.look(one for one, _ in unbegun)
            for one in [one for one, _ in unbegun if self._has_begun(one)]:
                del sure[one.id]  # it began a moment ago
            self._spare_tasks(sure)
            self._it.scheduler.cancel(self._flight.holding(lambda one: one.id in sure))
        except NswError:  # it is tried again after the next poll
            return []
        ends = [
            (name, End(one, _never(answer, status), status, one.attempt))
            for name, one, answer, status in sure.values()
            if one.id not in again
        ]
        try:
            self._ending.bring([end for _, end in ends])
        except NswError:
            return []
        with self._it.ledger.transaction():
            for name, one, answer, _ in sure.values():
                if one.id in again:
                    self._plan_again(name, one, answer)
            for name, end in ends:
                self._ending.write(end)
                self._let_go(name, end.one)
            self._flight.close()
        return list(sure)

    def _spare_tasks(self, sure: dict[str, tuple[str, Flying, Answer, Status | None]]) -> None:
        """A task is given up as a whole: ending it for one run would end what else of it may still run."""
        for name, one, _, _ in list(sure.values()):
            if any(other.id not in sure for other in self._flight.tasks(name)[one.task]):
                del sure[one.id]

    def _has_begun(self, one: Flying) -> bool:
        status = self._status(one)
        return status is not None and status.state != "withdrawn"

    def _status(self, one: Flying) -> Status | None:
        return self._ending.status(one.id, one.attempt)


def _never(answer: Answer, status: Status | None) -> Verdict:
    if status is not None and status.state == "done":
        return Verdict(State.DONE, ended=True)
    what = "it would never have begun" if status is None else "it would never have begun again"
    return Verdict(State.FAILED, Reason(f"{what}: {answer.reason}"), ended=True)
