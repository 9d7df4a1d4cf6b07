"""A batch system as the campaign's loop sees it: asked politely, believed carefully, through its adapter."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from nsw.errors import CommandError, CommandResult, NswError, RefusedError, UnreachableError
from nsw.recipe.units import format_duration
from nsw.schedulers.adapter import Adapter, Request, Watched
from nsw.schedulers.model import JOBS, Answer, Doubt, Native, Outcome, Phase, Submission
from nsw.schedulers.polling import FIRST_S, MOST_S, Pace, Polling
from nsw.transport.commands import PATIENT, Fence, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from nsw.transport.model import Transport

JOB: Final = "job"
LOGIN: Final = "login"
ON_LOGIN: Final = 2  # tasks at a time on a node that others use too
_UNKNOWN = Answer(Phase.UNKNOWN)
_FIND_MINUTES = 60 * 24 * 14
# pauses between looks for a submission whose command was killed: it may still be on its way to the controller
_ARRIVES_S = (2.0, 6.0)
_SUBMIT_S, _EACH_S = 120.0, 2.0  # a remote command that submits, and each submission in it
_WORTH_SAYING_S = 60.0  # that cancelled jobs may run on
_IN_A_ROW = 3  # commands that submit nothing, by faults of the moment: after so many nsw waits in between, and says so


@dataclass(frozen=True, slots=True)
class Limits:
    """What a campaign may ask of the site.

    Attributes:
        in_flight: Tasks that run at the same time.
        array: Tasks of one array.
        lost_after_s: Seconds that a job must be unknown to its scheduler before it counts as lost.
    """

    in_flight: int = 20
    array: int = 1000
    lost_after_s: float = 120.0


class Throttles:
    """How many tasks of a campaign run at the same time: shared among its arrays, each with a throttle.

    The sum of what the arrays may run, what the single jobs run and what arrays run of which no task waits stays
    within one limit. Every change is a call of the scheduler, so only what is unused or too much is changed.

    Args:
        limit: How many tasks may run at the same time.
        change: Sets the throttle of an array, by its name and id; whether that worked.
    """

    def __init__(self, limit: int, change: Callable[[str, Native, int], bool]) -> None:
        self.limit = limit
        self._change = change
        self._natives: dict[str, Native] = {}  # arrays with tasks that wait
        self._set: dict[str, int] = {}  # what each of them may run, where that is known
        self._running_elsewhere = 0  # what all others run

    def make_way(self, requested: int) -> int:
        """What a new submission may run at the same time, 1 to `wanted`: what is free, else half of the widest."""
        free = self._free()
        widest = max(self._set, key=self._set.__getitem__, default=None)
        if free > 0 or widest is None:
            return max(1, min(requested, free))
        gets = min(requested, self._set[widest] // 2)
        return gets if gets and self._throttle(widest, self._set[widest] - gets) else 1

    def add(self, submission: Submission, native: Native, share: int) -> None:
        """A submission was taken, with this throttle."""
        if native.offset is None:
            self._running_elsewhere += 1
        else:
            self._natives[submission.name], self._set[submission.name] = native, share

    def rebalance(self, submissions: Sequence[Submission], answers: Mapping[str, Mapping[int, Answer]]) -> None:
        """Share anew after a poll where something is unused, too much, or not known."""
        living = {
            s.name: [a.phase for a in answers[s.name].values() if a.phase is not Phase.ENDED] for s in submissions
        }
        self._natives = {
            s.name: native
            for s in submissions
            if (native := Native.parse(s.native_id)) and native.offset is not None and Phase.QUEUED in living[s.name]
        }
        if not self.limit:  # a throttle of 0 is none at all, on Slurm; what waits is held instead
            return
        wants = {name: len(living[name]) for name in self._natives}
        self._set = {name: min(self._set[name], wants[name]) for name in wants if name in self._set}
        self._running_elsewhere = sum(len(phases) for name, phases in living.items() if name not in wants)
        some_want_more = any(self._set.get(name, 0) < wants[name] for name in wants)
        if len(self._set) == len(wants) and (self._free() == 0 or (self._free() > 0 and not some_want_more)):
            return
        for name, share in shares(wants, self.limit - self._running_elsewhere).items():
            if self._set.get(name) != share:
                self._throttle(name, share)

    def _free(self) -> int:
        return self.limit - self._running_elsewhere - sum(self._set.values())

    def _throttle(self, name: str, share: int) -> bool:
        if not self._change(name, self._natives[name], share):
            return False
        self._set[name] = share
        return True


def shares(wants: Mapping[str, int], total: int) -> dict[str, int]:
    """Split `total` as evenly as it goes: nobody gets more than it wants, and everybody at least one."""
    shares_by_name: dict[str, int] = {}
    for at, name in enumerate(sorted(wants, key=wants.__getitem__)):
        fair = max(1, (total - sum(shares_by_name.values())) // (len(wants) - at))
        shares_by_name[name] = min(wants[name], fair)
    return shares_by_name


class BatchScheduler:
    """A batch system over a transport.

    Args:
        adapter: The system's commands and what they print.
        transport: The way to the site.
        scratch: The campaign's folder on the site; what job scripts print goes to `jobs` below it.
        campaign: Its id, which goes with every job as its comment.
        limits: What may be asked of the site.
        fence: Around commands that change something, where an nsw elsewhere may take the campaign over.
        has_folder: Whether the folder for what jobs print is there, and need not be made.
        say: Prints a line for the user.
        clock: Seconds that only grow; tests hand in their own, as for the next two.
        sleep: Waits.
        draw: Numbers in 0..1.
    """

    batches = True
    shares_machine = False

    def __init__(
        self,
        adapter: Adapter,
        transport: Transport,
        scratch: str,
        campaign: str,
        limits: Limits,
        *,
        fence: Fence | None = None,
        has_folder: bool = False,
        say: Callable[[str], object] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.after: Callable[[str], tuple[str, ...]] = lambda _job: ()
        self._adapter = adapter
        self.can = adapter.capabilities
        self._transport = transport
        self._scratch = scratch
        self._jobs = f"{scratch}/{JOBS}"
        self._has_folder = has_folder
        self._campaign = campaign
        self._comment = f"nsw:{campaign}"
        self._limits = limits
        self._fence = fence
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._runner = Runner(
            transport,
            transient=adapter.transient,
            plain=adapter.plain,
            without=adapter.cleared_variables,
            keep=adapter.kept_variables,
            fence=fence,
            sleep=sleep,
            draw=draw,
        )
        self._pace = Pace(clock, draw)
        self._polling = Polling(adapter, self._runner, self._pace, transport, self._jobs, say, limits.lost_after_s)
        self._throttles = Throttles(limits.in_flight, self._throttle)
        self._array_limit: int | None = None  # learnt from a refusal for want of room
        self._full_until = 0.0
        self._failed_in_a_row = 0  # remote commands of which no submission came through, by faults of the moment
        self._waited_for: float | None = None
        self._said_slow = False
        self._reused_ids: set[str] = set()  # ids that are other jobs now, as the user was told
        self._limited_to: int | None = None  # as the site knows
        self._limit_again = 0.0

    def sibling(self, adapter: Adapter, limits: Limits) -> BatchScheduler:
        """Another batch system of the same campaign, reached the same way."""
        return BatchScheduler(
            adapter, self._transport, self._scratch, self._campaign, limits, fence=self._fence, say=self._say
        )

    # --- what the loop asks -----------------------------------------------------------------------------

    def calls(self) -> dict[str, int]:
        """How often each command was run."""
        return dict(self._runner.calls)

    def most_tasks(self) -> int:
        """The site's limit, the cluster's, and what it was learnt to take; 1 without arrays."""
        if not self.can.arrays:
            return 1
        limit = self._limits.array
        if (longest := self._polling.facts.longest_array) is not None:
            limit = min(limit, longest)
        if not self._throttled():
            limit = min(limit, self._throttles.limit)
        return max(1, min(limit, self._array_limit or limit))

    def room(self, in_flight: Sequence[Submission]) -> int:
        """With throttled arrays an array's worth, else what may still run at the same time."""
        limit = self._throttles.limit
        if len(in_flight) >= limit or self._clock() < self._full_until:
            return 0
        if self.can.arrays and self._throttled():
            return self.most_tasks()
        return max(0, limit - sum(len(s.tasks) for s in in_flight))

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """One remote command. None of it is repeated blindly: what is in doubt is looked up by its name."""
        self._make_folder()
        throttled = self._throttled()
        shares = [self._throttles.make_way(len(s.tasks)) if throttled else None for s in submissions]
        commands = [self._command(s, share) for s, share in zip(submissions, shares, strict=True)]
        patience = _SUBMIT_S + _EACH_S * len(commands)
        results = self._runner.run_many(commands, timeout=patience, counted=self._adapter.submit, changes=True)
        outcomes = [
            self._outcome(submission, share, result)
            for submission, share, result in zip(submissions, shares, results, strict=True)
        ]
        self._rest_after_faults(outcomes, results)
        return self._look_up_refused(submissions, outcomes)

    def _look_up_refused(self, submissions: Sequence[Submission], outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The outcomes, with a refusal only where the system knows no job of that name: one look-up for all of them."""
        refused = {s.name: o.refused for s, o in zip(submissions, outcomes, strict=True) if o.refused is not None}
        try:
            native_ids = self._look_up([s for s in submissions if s.name in refused]) if refused else {}
        except UnreachableError as fault:
            doubts = {
                name: Doubt(fault.message, short_reason=refused_fault.message)
                for name, refused_fault in refused.items()
            }
            instead = {name: Outcome(doubt=doubt) for name, doubt in doubts.items()}
        else:
            instead = {name: Outcome(native=native) for name, native in native_ids.items()}
        return [instead.get(s.name, outcome) for s, outcome in zip(submissions, outcomes, strict=True)]

    def _command(self, submission: Submission, share: int | None) -> list[str]:
        script = self._transport.show(submission.script, f"{self._scratch}/scripts/{submission.script.name}")
        argv = self._adapter.submit_command(
            Request(
                submission,
                script=script,
                log=self._log(submission.name),
                comment=self._comment,
                throttle=share,
                after=self.after(submission.job),
                walltime_s=submission.walltime_s,
            )
        )
        if self.can.script_on_stdin:
            return ["bash", "-c", 'exec "${@:2}" <"$1"', "nsw", script, *argv]
        return argv

    def _outcome(self, submission: Submission, share: int | None, result: CommandResult) -> Outcome:
        job = self._adapter.parse_submitted(result) if result.returncode == 0 and not result.timed_out else None
        if job is None:
            return self._not_submitted(submission, result)
        native = Native.of_submission(submission, job, self.can.first_index)
        self._throttles.add(submission, native, share or len(submission.tasks))
        self._polling.unlisted.add(submission.name)
        self._pace.reset()
        return Outcome(native=str(native))

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """Their ids by their names: the queue, then the history; again after a moment for what is not known yet.

        Returns:
            The ids of those that exist, by name.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        native_ids = self._look_up(submissions)
        for pause in () if self.can.unique_names else _ARRIVES_S:  # one that arrives later makes no second job
            missing = [s for s in submissions if s.name not in native_ids]
            if not missing:
                break
            self._sleep(pause)
            native_ids |= self._look_up(missing)
        return native_ids

    def _look_up(self, submissions: Sequence[Submission]) -> dict[str, str]:
        lines = self._polling.find([self._watched(s) for s in submissions], _FIND_MINUTES)
        native_ids: dict[str, str] = {}
        for submission in submissions:
            jobs = {line.job for line in lines if line.name == submission.name}
            if jobs:  # the first of several: a run's claim says which of them did it
                first = min(jobs, key=lambda job: (len(job), job))
                native_ids[submission.name] = str(Native.of_submission(submission, first, self.can.first_index))
        return native_ids

    def job_of(self, submission: Submission, task: int) -> str | None:
        """What the system calls a task, as the job's own script writes it down; None without an id."""
        native = Native.parse(submission.native_id)
        return None if native is None else self._adapter.job_of(native, task)

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Believe this job about a task from now on: the run's claim names it."""
        self._polling.follow(submission.name, task, *self._adapter.parse_job(job))

    def due(self) -> bool:
        """Whether the interval is over."""
        return self._clock() >= self._pace.next

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """One question for all; what may run at the same time is shared out anew by the answers."""
        answers = self._polling.poll(submissions)
        if answers is None:
            return _unknown(submissions)
        if self.can.throttle:
            self._throttles.rebalance(submissions, answers)
        return answers

    def look(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """As `poll`, and nothing is changed by it."""
        answers = self._polling.poll(submissions)
        return _unknown(submissions) if answers is None else answers

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """One command, with all other jobs of these names and those that runs' claims name.

        Raises:
            CommandError: It failed.
            UnreachableError: The system gave no answer.
        """
        argv = self._adapter.cancel_command(self._own(self._all_of(submissions)))
        if argv is None:
            return
        result = self._runner.run(argv, timeout=120, retry=PATIENT, changes=True)
        if not self._adapter.cancelled(result):
            raise self._fault(result, "jobs could not be cancelled")
        if self.can.slow_cancel_s >= _WORTH_SAYING_S and not self._said_slow:
            self._said_slow = True
            upto = format_duration(int(self.can.slow_cancel_s))
            self._say(f"{self._adapter.name} may take {upto} to end cancelled jobs; nsw does not wait for that")
        self._pace.reset()

    def limit(self, running: int) -> None:
        """So many tasks may run at the same time from now on; the arrays hear of it with the next poll."""
        if running and (argv := self._adapter.limit_command(self._jobs, running)) is not None:
            self._limit_there(argv, running)
            running = self._limits.in_flight  # all are handed over: they keep to it without nsw
        if running != self._throttles.limit:
            self._throttles.limit = running
            self._pace.now()

    def _limit_there(self, argv: Sequence[str], running: int) -> None:
        """Write the limit down at the site, once; it is tried again with the next poll where that fails."""
        if running == self._limited_to or (self._limited_to is None and self._clock() < self._limit_again):
            return
        self._limited_to, self._limit_again = None, self._clock() + FIRST_S
        if self._runner.run(argv, timeout=60, changes=True).returncode == 0:
            self._limited_to = running

    def hold(self, submissions: Sequence[Submission], *, hold: bool) -> None:
        """One command, where the system can hold jobs that wait.

        Raises:
            CommandError: It failed.
            UnreachableError: The system gave no answer.
        """
        if not self.can.hold:
            return
        argv = self._adapter.hold_command(self._own(self._all_of(submissions)), hold=hold)
        if argv is None:
            return
        result = self._runner.run(argv, timeout=120, retry=PATIENT, changes=True)
        if not self._adapter.is_hold_accepted(result):
            raise self._fault(result, f"jobs could not be {'held' if hold else 'released'}")
        self._pace.reset()

    def wait(self, seconds: float) -> None:
        """Sleep until it is time to ask, at most so long."""
        left = self._pace.next - self._clock()
        idle = left <= 0 and self._pace.next == self._waited_for  # it is time, and there was nothing to ask
        self._waited_for = self._pace.next
        self._sleep(seconds if idle else max(0.01, min(seconds, left)))

    # --- whose a job is ---------------------------------------------------------------------------------

    def _all_of(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The jobs of these submissions: a name that was submitted twice has several."""
        several = (self._polling.followed(submissions), self._polling.twins(submissions))
        named = [*map(self._watched, submissions), *(one for some in several for one in some)]
        return list(dict.fromkeys(named))

    def _own(self, watched: Sequence[Watched]) -> list[Watched]:
        """Those of these whose ids are jobs of their names and of this user now, by a listing made for it.

        A batch system that lost its state gives ids out again, also to other jobs of the same user. Each id that is
        another job now is reported once.

        Raises:
            CommandError: They could not be listed.
            UnreachableError: The system gave no answer.
        """
        submitted = [job for job in watched if job.native is not None]
        command = self._adapter.owners_command(submitted) if submitted else None
        if command is None:
            return list(watched)
        result = self._runner.run(command, timeout=120, retry=PATIENT)
        lines = self._adapter.parse_queue(result)
        if lines is None:
            message = f"{self._adapter.queue} could not list the jobs to be changed, and nsw changed none"
            raise self._fault(result, message)
        listed = {line.job: line for line in lines}
        own_jobs = []
        for job in submitted:
            line = listed.get(job.native.job) if job.native else None
            if line is None:
                continue  # it is over
            if line.name in {None, job.name} and (line.owner is None or line.owner == self._user):
                own_jobs.append(job)
            elif line.job not in self._reused_ids:
                self._reused_ids.add(line.job)
                owner_text = f" of {line.owner}" if line.owner else ""
                self._say(
                    f"id {line.job} is now job {line.name}{owner_text}, and no longer this campaign's:"
                    f" {self._adapter.name} gave the id out again, and nsw leaves that job alone"
                )
        return own_jobs

    def _fault(self, result: CommandResult, what: str) -> NswError:
        """The error of a command that changed nothing; a system that gave no answer may do so later."""
        error = CommandError(result, subject=what)
        return UnreachableError(error.message) if self._adapter.transient(result) else error

    @cached_property
    def _user(self) -> str:
        """The user's name on the site."""
        result = self._transport.run(["id", "-un"], timeout=60)
        if result.returncode != 0 or result.timed_out:
            raise CommandError(result, subject="the user's name on the site could not be asked")
        return result.stdout.split()[-1]

    # --- submitting -------------------------------------------------------------------------------------

    def _throttled(self) -> bool:
        """Whether the running tasks of an array can be limited here."""
        return self.can.throttle and self._polling.facts.throttle

    def _log(self, name: str) -> str:
        return f"{self._jobs}/{name}"

    def _watched(self, submission: Submission) -> Watched:
        return Watched.of_submission(submission, self._jobs)

    def _make_folder(self) -> None:
        if not self._has_folder:  # without it Slurm ends jobs before they begin, without a word
            self._transport.make_folders([self._jobs])
            self._has_folder = True

    def _not_submitted(self, submission: Submission, result: CommandResult) -> Outcome:
        adapter = self._adapter
        if adapter.is_full(result):
            self._learn_room(len(submission.tasks), result)
            return Outcome()
        refusal = adapter.refusal(result)
        if refusal is not None and refusal.certain:
            message = f"{adapter.submit} refused the job: {refusal.message}"
            return Outcome(refused=RefusedError(message, key=refusal.key, hint=refusal.hint))
        self._pace.now()  # it is looked up at once
        message = CommandError(result, subject=f"{adapter.submit} printed no job id").message
        passing = result.timed_out or result.killed or adapter.transient(result)
        return Outcome(doubt=Doubt(message, passing, f"{adapter.submit}: {self._describe_failure(result)}"))

    def _describe_failure(self, result: CommandResult) -> str:
        """`exit status 1; Unable to contact slurm controller`, in one line."""
        ending = "timed out" if result.timed_out else f"exit status {result.returncode}"
        return "; ".join(["it was killed" if result.killed else ending, *self._adapter.complaints(result)])

    def _rest_after_faults(self, outcomes: Sequence[Outcome], results: Sequence[CommandResult]) -> None:
        """Try less often where command after command fails by faults of the moment, and say so once."""
        if not all(outcome.doubt is not None and outcome.doubt.passing for outcome in outcomes):
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row < _IN_A_ROW:
            return
        if self._failed_in_a_row == _IN_A_ROW:
            failure = self._describe_failure(results[-1])
            self._say(
                f"{self._adapter.submit} failed {_IN_A_ROW} times in a row ({failure}); nsw keeps trying, once a minute"
            )
        self._full_until = self._clock() + MOST_S

    def _learn_room(self, tasks: int, result: CommandResult) -> None:
        """The queue takes no more for now: smaller arrays next, and a rest when even one task was too much."""
        if tasks > 1:
            self._array_limit = tasks // 2
            return
        if not self._full_until:
            complaints = "; ".join(self._adapter.complaints(result))
            self._say(f"the queue accepts no more of your jobs for now ({complaints}); nsw keeps trying")
        self._full_until = self._clock() + MOST_S

    def _throttle(self, name: str, native: Native, limit: int) -> bool:
        try:
            own_jobs = self._throttled() and self._own([Watched(name, native, self._log(name))])
        except (CommandError, UnreachableError):
            return False
        argv = self._adapter.throttle_command(native, limit) if own_jobs else None
        return argv is not None and self._runner.run(argv, timeout=60, changes=True).returncode == 0


def _unknown(submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
    return {s.name: dict.fromkeys(s.tasks, _UNKNOWN) for s in submissions}


class LoginAndJobs:
    """The batch system for most tasks, the login node for those that are small.

    Both are asked as `nsw.schedulers.model.Scheduler` says, each at its own pace: what the login node does is no
    reason to ask the batch system more often.

    Args:
        jobs: The batch system.
        login: The login node, on which tasks are processes under a supervisor.
        place_of: Where the tasks of a job go: job or login.
    """

    batches = True
    shares_machine = False

    def __init__(self, jobs: BatchScheduler, login: BatchScheduler, place_of: Callable[[str], str]) -> None:
        self.parts = {JOB: jobs, LOGIN: login}
        self.can = replace(  # a batch system's names have no more characters than a file's
            jobs.can,
            longest_name=min(jobs.can.longest_name, login.can.longest_name),
            submissions_per_command=min(jobs.can.submissions_per_command, login.can.submissions_per_command),
        )
        self._jobs = jobs
        self._place_of = place_of
        self._location_of_job: dict[str, str] = {}
        self._polled: set[str] = set(self.parts)  # the places that had something in flight
        self._last_answers: dict[str, dict[int, Answer]] = {}

    @property
    def after(self) -> Callable[[str], tuple[str, ...]]:
        """Job -> the batch system's id of one that must have succeeded before."""
        return self._jobs.after

    @after.setter
    def after(self, after: Callable[[str], tuple[str, ...]]) -> None:
        self._jobs.after = after

    def location(self, submission: Submission) -> str:
        """Where a submission goes."""
        if submission.job not in self._location_of_job:
            self._location_of_job[submission.job] = self._place_of(submission.job)
        return self._location_of_job[submission.job]

    def at_location(self, location: str, submissions: Iterable[Submission]) -> list[Submission]:
        """Those of these that are in a place."""
        return [submission for submission in submissions if self.location(submission) == location]

    def most_tasks(self) -> int:
        """How many tasks one submission to the batch system may hold."""
        return self._jobs.most_tasks()

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks the batch system takes now."""
        return self._jobs.room(self.at_location(JOB, in_flight))

    def room_on_login(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may be begun on the login node now."""
        return self.parts[LOGIN].room(self.at_location(LOGIN, in_flight))

    def limit(self, running: int) -> None:
        """How many tasks of the batch system may run at the same time; with 0 nothing begins on the login node."""
        self._jobs.limit(running)
        self.parts[LOGIN].limit(min(running, ON_LOGIN))

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Hand these over, each to its place; an outcome for each, in their order."""
        outcomes: dict[str, Outcome] = {}
        for location, group in self._split(submissions):
            self._polled.add(location)
            outcomes |= {
                submission.name: outcome
                for submission, outcome in zip(group, self.parts[location].submit(group), strict=True)
            }
        return [outcomes[submission.name] for submission in submissions]

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """The ids of those that exist, by name.

        Raises:
            UnreachableError: One place could not tell.
        """
        return {
            k: v for location, group in self._split(submissions) for k, v in self.parts[location].find(group).items()
        }

    def job_of(self, submission: Submission, task: int) -> str | None:
        """The id that the job script of a task writes into its claim."""
        return self.parts[self.location(submission)].job_of(submission, task)

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Believe this job about a task from now on."""
        self.parts[self.location(submission)].follow(submission, task, job)

    def due(self) -> bool:
        """Whether it is time to ask a place that has something in flight."""
        return any(self.parts[location].due() for location in self._polled)

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """Ask the places whose time it is, and all when it is nobody's: of the others what they said last."""
        parts = self._split(submissions)
        self._polled = {location for location, _ in parts}
        due = {location for location, group in parts if self.parts[location].due()}
        answers: dict[str, dict[int, Answer]] = {}
        for location, group in parts:
            if due and location not in due:
                answers |= {
                    submission.name: self._last_answers[submission.name]
                    for submission in group
                    if submission.name in self._last_answers
                }
            else:
                answers |= self.parts[location].poll(group)
        self._last_answers = answers
        return answers

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End what is queued or running of these.

        Raises:
            CommandError: It failed.
        """
        for location, group in self._split(submissions):
            self.parts[location].cancel(group)

    def hold(self, submissions: Sequence[Submission], *, hold: bool) -> None:
        """Keep what waits of these in the batch system from starting, or let it go again.

        Raises:
            NswError: It could not be asked.
        """
        if waiting := self.at_location(JOB, submissions):
            self._jobs.hold(waiting, hold=hold)

    def wait(self, seconds: float) -> None:
        """Return when it is time to ask, at the latest after so many seconds."""
        self._jobs.wait(seconds)

    def calls(self) -> dict[str, int]:
        """How often each command was run; those of the login node's supervisor are one."""
        login = sum(self.parts[LOGIN].calls().values())
        return self._jobs.calls() | ({"login node": login} if login else {})

    def _split(self, submissions: Sequence[Submission]) -> list[tuple[str, list[Submission]]]:
        return [(location, group) for location in self.parts if (group := self.at_location(location, submissions))]
