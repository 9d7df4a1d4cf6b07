"""The driver of a batch system: submits, polls at a growing interval, looks up what is in doubt, all by its adapter."""

from __future__ import annotations

import random
import shlex
import time
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import CommandError, CommandResult, NswError, RefusedError, UnreachableError
from nsw.recipe.units import format_duration
from nsw.schedulers.adapter import Adapter, Facts, Line, Request, Watched
from nsw.schedulers.model import JOBS, Answer, Doubt, Native, Outcome, Phase, Submission
from nsw.transport.commands import PATIENT, Fence, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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


def runner_of(adapter: Adapter, transport: Transport, **options: Any) -> Runner:
    """What runs a scheduler's commands, free of the user's variables; `options` are further ones of `Runner`."""
    return Runner(
        transport,
        transient=adapter.transient,
        plain=adapter.plain,
        without=adapter.cleared_variables,
        keep=adapter.kept_variables,
        **options,
    )


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

    def free_slots_for(self, requested: int) -> int:
        """How many tasks a new submission may run at once: what is free, else half of the widest share; never 0."""
        free = self._free_slots()
        widest = max(self._set, key=self._set.__getitem__, default=None)
        if free > 0 or widest is None:
            return max(1, min(requested, free))
        gets = min(requested, self._set[widest] // 2)
        return gets if gets and self._throttle_array(widest, self._set[widest] - gets) else 1

    def add(self, submission: Submission, native: Native, share: int) -> None:
        """Record an accepted submission with its throttle.

        Args:
            submission: The submission.
            native: Its id.
            share: How many of its tasks may run at a time.
        """
        if native.offset is None:
            self._running_elsewhere += 1
        else:
            self._natives[submission.name], self._set[submission.name] = native, share

    def rebalance(self, submissions: Sequence[Submission], answers: Mapping[str, Mapping[int, Answer]]) -> None:
        """Share the limit anew after a poll, where a share is unused, too large or not known."""
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
        if len(self._set) == len(wants) and (
            self._free_slots() == 0 or (self._free_slots() > 0 and not some_want_more)
        ):
            return
        for name, share in split_evenly(wants, self.limit - self._running_elsewhere).items():
            if self._set.get(name) != share:
                self._throttle_array(name, share)

    def _free_slots(self) -> int:
        return self.limit - self._running_elsewhere - sum(self._set.values())

    def _throttle_array(self, name: str, share: int) -> bool:
        if not self._change(name, self._natives[name], share):
            return False
        self._set[name] = share
        return True


def split_evenly(wants: Mapping[str, int], total: int) -> dict[str, int]:
    """Split `total` as evenly as possible: no share is larger than what is wanted, and each at least 1."""
    shares_by_name: dict[str, int] = {}
    for at, name in enumerate(sorted(wants, key=wants.__getitem__)):
        fair = max(1, (total - sum(shares_by_name.values())) // (len(wants) - at))
        shares_by_name[name] = min(wants[name], fair)
    return shares_by_name


@dataclass(eq=False)
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

    adapter: Adapter
    transport: Transport
    scratch: str
    campaign: str
    limits: Limits
    _: KW_ONLY
    fence: Fence | None = None
    has_folder: bool = False
    say: Callable[[str], object] = lambda _text: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    draw: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        self.after: Callable[[str], tuple[str, ...]] = lambda _job: ()
        self.can = self.adapter.capabilities
        self._jobs = f"{self.scratch}/{JOBS}"
        self._comment = f"nsw:{self.campaign}"
        self._runner = runner_of(self.adapter, self.transport, fence=self.fence, sleep=self.sleep, draw=self.draw)
        self._pace = Pace(self.clock, self.draw)
        self._polling = Polling(
            self.adapter, self._runner, self._pace, self.transport, self._jobs, self.say, self.limits.lost_after_s
        )
        self._throttles = Throttles(self.limits.in_flight, self._throttle_array)
        self._array_limit: int | None = None  # learnt from a refusal for want of room
        self._full_until = 0.0
        self._failed_in_a_row = 0  # remote commands of which no submission came through, by faults of the moment
        self._waited_for: float | None = None
        self._said_slow = False
        self._reused_ids: set[str] = set()  # ids that are other jobs now, as the user was told
        self._limited_to: int | None = None  # as the site knows
        self._limit_again = 0.0

    def for_adapter(self, adapter: Adapter, limits: Limits) -> BatchScheduler:
        """Another batch system of the same campaign, reached the same way."""
        return BatchScheduler(
            adapter, self.transport, self.scratch, self.campaign, limits, fence=self.fence, say=self.say
        )

    # --- what the loop asks -----------------------------------------------------------------------------

    def calls(self) -> dict[str, int]:
        """How often each command was run."""
        return dict(self._runner.calls)

    def most_tasks(self) -> int:
        """The largest number of tasks that one submission may have.

        It is the least of the limits of the site, the cluster and earlier refusals; 1 where the system has no arrays.
        """
        if not self.can.arrays:
            return 1
        limit = self.limits.array
        if (longest := self._polling.facts.longest_array) is not None:
            limit = min(limit, longest)
        if not self._can_throttle():
            limit = min(limit, self._throttles.limit)
        return max(1, min(limit, self._array_limit or limit))

    def room(self, in_flight: Sequence[Submission]) -> int:
        """How many tasks may be submitted now: an array with throttled arrays, else what may still run."""
        limit = self._throttles.limit
        if len(in_flight) >= limit or self.clock() < self._full_until:
            return 0
        if self.can.arrays and self._can_throttle():
            return self.most_tasks()
        return max(0, limit - sum(len(s.tasks) for s in in_flight))

    def submit(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Submit in one remote command. Nothing is submitted twice: a submission in doubt is looked up by its name."""
        if not self.has_folder:  # without it Slurm ends jobs before they begin, with no output
            self.transport.make_folders([self._jobs])
            self.has_folder = True
        throttled = self._can_throttle()
        shares = [self._throttles.free_slots_for(len(s.tasks)) if throttled else None for s in submissions]
        commands = [self._submit_command(s, share) for s, share in zip(submissions, shares, strict=True)]
        patience = _SUBMIT_S + _EACH_S * len(commands)
        results = self._runner.run_many(commands, timeout=patience, counted=self.adapter.submit, changes=True)
        outcomes = [
            self._submit_outcome(submission, share, result)
            for submission, share, result in zip(submissions, shares, results, strict=True)
        ]
        self._slow_down_after_faults(outcomes, results)
        # keep a refusal only where the scheduler has no job of that name; one look-up for all
        refused = {s.name: o.refused for s, o in zip(submissions, outcomes, strict=True) if o.refused is not None}
        try:
            native_ids = self._look_up_by_name([s for s in submissions if s.name in refused]) if refused else {}
        except UnreachableError as fault:
            instead = {
                name: Outcome(doubt=Doubt(fault.message, short_reason=refusal.message))
                for name, refusal in refused.items()
            }
        else:
            instead = {name: Outcome(native=native) for name, native in native_ids.items()}
        return [instead.get(s.name, outcome) for s, outcome in zip(submissions, outcomes, strict=True)]

    def _submit_command(self, submission: Submission, share: int | None) -> list[str]:
        script = self.transport.show(submission.script, f"{self.scratch}/scripts/{submission.script.name}")
        argv = self.adapter.submit_command(
            Request(
                submission,
                script=script,
                log=f"{self._jobs}/{submission.name}",
                comment=self._comment,
                throttle=share,
                after=self.after(submission.job),
                walltime_s=submission.walltime_s,
            )
        )
        if self.can.script_on_stdin:
            return ["bash", "-c", 'exec "${@:2}" <"$1"', "nsw", script, *argv]
        return argv

    def _submit_outcome(self, submission: Submission, share: int | None, result: CommandResult) -> Outcome:
        job = self.adapter.parse_submitted(result) if result.returncode == 0 and not result.timed_out else None
        if job is None:
            return self._failed_submission(submission, result)
        native = Native.of_submission(submission, job, self.can.first_index)
        self._throttles.add(submission, native, share or len(submission.tasks))
        self._polling.unlisted.add(submission.name)
        self._pace.reset()
        return Outcome(native=str(native))

    def find(self, submissions: Sequence[Submission]) -> dict[str, str]:
        """Look submissions up by their names, in the queue, then in the history; again for those not found.

        Returns:
            The ids of those that exist, by name.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        native_ids = self._look_up_by_name(submissions)
        for pause in () if self.can.unique_names else _ARRIVES_S:  # one that arrives later makes no second job
            missing = [s for s in submissions if s.name not in native_ids]
            if not missing:
                break
            self.sleep(pause)
            native_ids |= self._look_up_by_name(missing)
        return native_ids

    def _look_up_by_name(self, submissions: Sequence[Submission]) -> dict[str, str]:
        lines = self._polling.find([self._polling.watched_job(s) for s in submissions], _FIND_MINUTES)
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
        return None if native is None else self.adapter.job_of(native, task)

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Poll this job for a task from now on, in place of the submitted one: the run's claim names it.

        Args:
            submission: The task's submission.
            task: The task.
            job: The id that the job's script wrote into the claim.
        """
        self._polling.follow(submission.name, task, *self.adapter.parse_job(job))

    def due(self) -> bool:
        """Whether the interval is over."""
        return self.clock() >= self._pace.next

    def poll(self, submissions: Sequence[Submission], *, rebalance: bool = True) -> dict[str, dict[int, Answer]]:
        """Poll all submissions with one command, then share the throttle among the arrays anew, unless only to look."""
        answers = self._polling.poll(submissions)
        if answers is None:
            return {s.name: dict.fromkeys(s.tasks, _UNKNOWN) for s in submissions}
        if rebalance and self.can.throttle:
            self._throttles.rebalance(submissions, answers)
        return answers

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Cancel the jobs of these submissions in one command, and other jobs of their names.

        Raises:
            CommandError: It failed.
            UnreachableError: The system gave no answer.
        """
        argv = self.adapter.cancel_command(self._filter_own_jobs(self._jobs_of(submissions)))
        if argv is None:
            return
        result = self._runner.run(argv, timeout=120, retry=PATIENT, changes=True)
        if not self.adapter.cancelled(result):
            raise self._command_error(result, "jobs could not be cancelled")
        if self.can.slow_cancel_s >= _WORTH_SAYING_S and not self._said_slow:
            self._said_slow = True
            upto = format_duration(int(self.can.slow_cancel_s))
            self.say(f"{self.adapter.name} may take {upto} to end cancelled jobs; nsw does not wait for that")
        self._pace.reset()

    def limit(self, running: int) -> None:
        """Let so many tasks run at the same time from now on; throttles of arrays change with the next poll."""
        if running and (argv := self.adapter.limit_command(self._jobs, running)) is not None:
            self._limit_reductions(argv, running)
            running = max(running, self.limits.in_flight)  # all are handed over: they keep to it without nsw
        if running != self._throttles.limit:
            self._throttles.limit = running
            self._pace.now()

    def _limit_reductions(self, argv: Sequence[str], running: int) -> None:
        """Write the limit to the site once; after a failure the next poll tries again."""
        if running == self._limited_to or (self._limited_to is None and self.clock() < self._limit_again):
            return
        self._limited_to, self._limit_again = None, self.clock() + FIRST_S
        if self._runner.run(argv, timeout=60, changes=True).returncode == 0:
            self._limited_to = running

    def hold(self, submissions: Sequence[Submission], *, hold: bool) -> None:
        """Hold or release waiting jobs in one command, where the system can.

        Raises:
            CommandError: It failed.
            UnreachableError: The system gave no answer.
        """
        if not self.can.hold:
            return
        argv = self.adapter.hold_command(self._filter_own_jobs(self._jobs_of(submissions)), hold=hold)
        if argv is None:
            return
        result = self._runner.run(argv, timeout=120, retry=PATIENT, changes=True)
        if not self.adapter.is_hold_accepted(result):
            raise self._command_error(result, f"jobs could not be {'held' if hold else 'released'}")
        self._pace.reset()

    def wait(self, seconds: float) -> None:
        """Sleep until the next poll is due, at most so many seconds."""
        left = self._pace.next - self.clock()
        idle = left <= 0 and self._pace.next == self._waited_for  # it is time, and there was nothing to ask
        self._waited_for = self._pace.next
        self.sleep(seconds if idle else max(0.01, min(seconds, left)))

    # --- whose a job is ---------------------------------------------------------------------------------

    def _jobs_of(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The jobs of these submissions: a name that was submitted twice has several."""
        own_jobs = map(self._polling.watched_job, submissions)
        return list(
            dict.fromkeys(
                [*own_jobs, *self._polling.followed_jobs(submissions), *self._polling.duplicate_jobs(submissions)]
            )
        )

    def _filter_own_jobs(self, watched: Sequence[Watched]) -> list[Watched]:
        """The jobs whose ids still belong to their names and to this user, by a listing made for it.

        A batch system that lost its state gives ids out again, also to other jobs of the same user. Each id that is
        another job now is reported once.

        Raises:
            CommandError: They could not be listed.
            UnreachableError: The system gave no answer.
        """
        submitted = [job for job in watched if job.native is not None]
        command = self.adapter.owners_command(submitted) if submitted else None
        if command is None:
            return list(watched)
        result = self._runner.run(command, timeout=120, retry=PATIENT)
        lines = self.adapter.parse_queue(result)
        if lines is None:
            message = f"{self.adapter.queue} could not list the jobs to be changed, and nsw changed none"
            raise self._command_error(result, message)
        listed = {line.job: line for line in lines}
        own_jobs = []
        for job in submitted:
            line = listed.get(job.native.job) if job.native else None
            if line is None:
                continue  # it is over
            if line.name in {None, job.name} and (line.owner is None or line.owner == self._user_name):
                own_jobs.append(job)
            elif line.job not in self._reused_ids:
                self._reused_ids.add(line.job)
                owner_text = f" of {line.owner}" if line.owner else ""
                self.say(
                    f"id {line.job} is now job {line.name}{owner_text}, and no longer this campaign's:"
                    f" {self.adapter.name} gave the id out again, and nsw leaves that job alone"
                )
        return own_jobs

    def _command_error(self, result: CommandResult, subject: str) -> NswError:
        """The error of a command that changed nothing; UnreachableError where the scheduler may answer later."""
        error = CommandError(result, subject=subject)
        return UnreachableError(error.message) if self.adapter.transient(result) else error

    @cached_property
    def _user_name(self) -> str:
        """The user's name on the site."""
        result = self.transport.run(["id", "-un"], timeout=60)
        if result.returncode != 0 or result.timed_out:
            raise CommandError(result, subject="the user's name on the site could not be asked")
        return result.stdout.split()[-1]

    # --- submitting -------------------------------------------------------------------------------------

    def _can_throttle(self) -> bool:
        """Whether the running tasks of an array can be limited here."""
        return self.can.throttle and self._polling.facts.throttle

    def _failed_submission(self, submission: Submission, result: CommandResult) -> Outcome:
        adapter = self.adapter
        if adapter.is_full(result):
            self._learn_queue_limit(len(submission.tasks), result)
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
        return "; ".join(["it was killed" if result.killed else ending, *self.adapter.complaints(result)])

    def _slow_down_after_faults(self, outcomes: Sequence[Outcome], results: Sequence[CommandResult]) -> None:
        """Submit less often after repeated temporary failures, and warn once."""
        if not all(outcome.doubt is not None and outcome.doubt.passing for outcome in outcomes):
            self._failed_in_a_row = 0
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row < _IN_A_ROW:
            return
        if self._failed_in_a_row == _IN_A_ROW:
            failure = self._describe_failure(results[-1])
            self.say(
                f"{self.adapter.submit} failed {_IN_A_ROW} times in a row ({failure}); nsw keeps trying, once a minute"
            )
        self._full_until = self.clock() + MOST_S

    def _learn_queue_limit(self, tasks: int, result: CommandResult) -> None:
        """Record that the queue is full: submit smaller arrays next, or pause if one task was too much."""
        if tasks > 1:
            self._array_limit = tasks // 2
            return
        if not self._full_until:
            complaints = "; ".join(self.adapter.complaints(result))
            self.say(f"the queue accepts no more of your jobs for now ({complaints}); nsw keeps trying")
        self._full_until = self.clock() + MOST_S

    def _throttle_array(self, name: str, native: Native, limit: int) -> bool:
        try:
            own_jobs = self._can_throttle() and self._filter_own_jobs([Watched(name, native, f"{self._jobs}/{name}")])
        except (CommandError, UnreachableError):
            return False
        argv = self.adapter.throttle_command(native, limit) if own_jobs else None
        return argv is not None and self._runner.run(argv, timeout=60, changes=True).returncode == 0


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
        """Set the function that gives a job's dependencies, as ids of the batch system."""
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
        """Submit these, each to its scheduler; returns their outcomes in order."""
        outcomes: dict[str, Outcome] = {}
        for location, group in self._group_by_location(submissions):
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
            k: v
            for location, group in self._group_by_location(submissions)
            for k, v in self.parts[location].find(group).items()
        }

    def job_of(self, submission: Submission, task: int) -> str | None:
        """The id that the job script of a task writes into its claim."""
        return self.parts[self.location(submission)].job_of(submission, task)

    def follow(self, submission: Submission, task: int, job: str) -> None:
        """Poll this job for a task from now on, in the place of its submission.

        Args:
            submission: The task's submission.
            task: The task.
            job: The id that the job's script wrote into the claim.
        """
        self.parts[self.location(submission)].follow(submission, task, job)

    def due(self) -> bool:
        """Whether it is time to ask a place that has something in flight."""
        return any(self.parts[location].due() for location in self._polled)

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """Poll the schedulers that are due, or all if none is; the others return their last answer."""
        parts = self._group_by_location(submissions)
        self._polled = {location for location, _ in parts}
        due = {location for location, group in parts if self.parts[location].due()}
        answers: dict[str, dict[int, Answer]] = {}
        for location, group in parts:
            if due and location not in due:
                last = self._last_answers
                answers |= {s.name: last[s.name] for s in group if s.name in last}
            else:
                answers |= self.parts[location].poll(group)
        self._last_answers = answers
        return answers

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """End what is queued or running of these.

        Raises:
            CommandError: It failed.
        """
        for location, group in self._group_by_location(submissions):
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

    def _group_by_location(self, submissions: Sequence[Submission]) -> list[tuple[str, list[Submission]]]:
        return [(location, group) for location in self.parts if (group := self.at_location(location, submissions))]


FIRST_S, MOST_S = 2.0, 60.0  # between questions: it doubles while nothing changes, with jitter
_SAY_AFTER_S = 600.0  # of polls that failed
_DETAIL = 10  # polls with a line for each task, once a plain listing was vague
# parts of the time after which a job counts as lost
_STALE = 3.0  # only the history still calls it alive
_ALONE = 0.25  # its siblings are listed, and it is not
_LOG_BYTES = 1 << 16  # that are read of what a job printed
_TOGETHER = 400  # logs that are read in one round trip
_ID_HERE = " JOB`"  # in the reasons of adapters
Followed = dict[tuple[str, int], Native]


@dataclass(slots=True)
class Pace:
    """When the next poll is due, and since when there has been no answer. `draw` returns numbers in 0..1."""

    clock: Callable[[], float]
    draw: Callable[[], float]
    interval: float = FIRST_S
    next: float = 0.0
    failing_since: float | None = None
    is_reported: bool = False

    def reset(self) -> None:
        """Poll soon, since something was changed."""
        self.interval = FIRST_S
        self.next = min(self.next, self.clock() + FIRST_S)

    def now(self) -> None:
        """Poll at once."""
        self.next = self.clock()

    def record_answer(self) -> None:
        """Record that there was an answer."""
        self.failing_since, self.is_reported = None, False

    def failing(self) -> float:
        """Record a failed poll; returns for how many seconds polls have failed."""
        self.record_poll(changed=False)
        self.failing_since = self.clock() if self.failing_since is None else self.failing_since
        return self.clock() - self.failing_since

    def record_poll(self, *, changed: bool) -> None:
        """Plan the next poll: soon if something changed, else after twice the interval."""
        self.interval = FIRST_S if changed else min(MOST_S, self.interval * 2)
        self.next = self.clock() + self.interval * (0.8 + 0.4 * self.draw())


@dataclass(slots=True)
class _Memory:
    """What earlier polls returned, by submission and task."""

    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)
    absent: dict[tuple[str, int], float] = field(default_factory=dict)  # since when
    never: dict[tuple[str, int], float] = field(default_factory=dict)  # since when it is said to wait in vain
    detail: int = 0  # how many polls more ask for a line for each task


@dataclass(slots=True)
class _Silence:
    """Since when the history, of which something must be asked, gives no answer."""

    since: float | None = None
    is_reported: bool = False


@dataclass(eq=False)
class Polling:
    """Polls a batch system, and keeps its last answers.

    Args:
        adapter: Its commands and what they print.
        runner: Runs them.
        pace: When to ask; it hears of every answer.
        transport: The way to what jobs print.
        jobs: The folder of that.
        say: Prints a line for the user.
        lost_after_s: Seconds without a trace of a job after which it is lost, and of one answer after which a job that
            waits for what will not come is given up.
    """

    adapter: Adapter
    runner: Runner
    pace: Pace
    transport: Transport
    jobs: str
    say: Callable[[str], object]
    lost_after_s: float

    def __post_init__(self) -> None:
        self._memory = _Memory()
        self._history = _Silence()
        self._followed: Followed = {}
        self._twins: dict[str, dict[str, Native]] = {}  # submission -> other jobs of its name that are not over
        self.unlisted: set[str] = set()  # submissions that this process made and that no poll has found yet

    @cached_property
    def facts(self) -> Facts:
        """What the cluster is set to, asked once; that there is no history may turn out later.

        Raises:
            UnreachableError: It could not be asked.
        """
        if not self.adapter.facts_command:
            return Facts(history=bool(self.adapter.history))
        result = self.runner.run(self.adapter.facts_command, timeout=120, retry=PATIENT)
        if result.returncode != 0 or result.timed_out:
            raise self._unreachable_error(result, "asking the cluster for its settings")
        self.pace.record_answer()
        return self.adapter.parse_facts(result)

    def _unreachable_error(self, result: CommandResult, failure: str) -> UnreachableError:
        self._record_failed_poll(result)
        message = CommandError(result, subject=failure).message
        return UnreachableError(message, hint="`nsw resume` continues when it answers again")

    def follow(self, name: str, task: int, job: str, index: int | None) -> None:
        """Poll another job for a task than the one that was submitted for it last.

        Args:
            name: The submission's name.
            task: The task.
            job: The batch system's id of the other job.
            index: The task's array index in that job; None for a job that is no array.
        """
        self._followed[name, task] = Native(job, None if index is None else task - index)

    def followed_jobs(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The jobs that are believed instead of the submissions' own."""
        return [
            Watched(s.name, native, f"{self.jobs}/{s.name}", (task,))
            for s in submissions
            for task in s.tasks
            if (native := self._followed.get((s.name, task)))
        ]

    def duplicate_jobs(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The other jobs of these names that the last poll listed: of each the tasks of its submission."""
        return [
            Watched(s.name, native, f"{self.jobs}/{s.name}", tuple(s.tasks))
            for s in submissions
            for native in self._twins.get(s.name, {}).values()
        ]

    def find(self, watched: Sequence[Watched], minutes: int) -> list[Line]:
        """What is known of jobs by their names: by the queue, else by the history of the last minutes.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        adapter = self.adapter
        result = self.runner.run(adapter.queue_command(watched), timeout=120, retry=PATIENT)
        listed = adapter.parse_queue(result)
        if listed is None:
            raise self._unreachable_error(result, f"asking {adapter.queue} for jobs by their names")
        self.pace.record_answer()
        names = {job.name for job in watched}
        lines = [line for line in listed if line.name in names]
        missing = sorted(names - {line.name for line in lines})
        if not missing or not self.facts.history:
            return lines
        if adapter.capabilities.history_in_file:  # a file bears the name of its submission
            commands = adapter.history_commands([job for job in watched if job.name in missing])
        else:
            commands = [command] if (command := adapter.history_by_name_command(missing, minutes)) else []
        for command in commands:
            result = self.runner.run(command, timeout=120, retry=PATIENT)
            if adapter.no_history(result):
                self.facts = replace(self.facts, history=False)
                return lines
            ended = adapter.parse_history(result)
            if ended is None:
                raise self._unreachable_error(result, f"asking {adapter.history} for jobs by their names")
            lines += (line for line in ended if line.name in names)
        return lines

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]] | None:
        """An answer for each task of each submission, by its name; None when nothing could be asked."""
        lines, result = self._ask_queue([self.watched_job(s) for s in submissions])
        if lines is None:
            self._record_failed_poll(result)
            return None
        self.pace.record_answer()
        answers_by_name = _answers_by_name(lines, submissions, self._followed)
        self._note_twins(lines, submissions, answers_by_name)
        self._ask_exit_statuses(submissions, answers_by_name)
        self.unlisted.difference_update(name for name, answers in answers_by_name.items() if answers)
        absent = {s.name: [t for t in s.tasks if t not in answers_by_name[s.name]] for s in submissions}
        try:
            listed = {(line.job, line.name) for line in lines if line.indices is not None}
            arrays = {s.name for s in submissions if _is_listed(s, listed)}
            self._ask_history([s for s in submissions if absent[s.name]], absent, answers_by_name, arrays)
            self._read_job_output(submissions, answers_by_name, absent)
        except UnreachableError:  # it is reported when that lasts
            return None
        self._confirm_never(answers_by_name)
        self.pace.record_poll(changed=self._any_phase_changed(answers_by_name))
        self._memory.answers = answers_by_name
        return answers_by_name

    def _ask_exit_statuses(
        self, submissions: Sequence[Submission], answers_by_name: dict[str, dict[int, Answer]]
    ) -> None:
        """Ask for the exit statuses of failed tasks where the queue's listing has none; nsw's own say what is wrong."""
        failed = {s.name for s in submissions if any(answer.by_itself for answer in answers_by_name[s.name].values())}
        failed_submissions = [s for s in submissions if s.name in failed]
        watched = [
            w for w in (*map(self.watched_job, failed_submissions), *self.followed_jobs(failed_submissions)) if w.native
        ]
        command = self.adapter.ends_command(watched) if watched else None
        if command is None:
            return
        ends = _answers_by_name(
            self.adapter.parse_ends(self.runner.run(command, timeout=60)), failed_submissions, self._followed
        )
        for name, answers in ends.items():
            answers_by_name[name] |= {
                task: end for task, end in answers.items() if answers_by_name[name].get(task, _UNKNOWN).by_itself
            }

    def _note_twins(
        self, lines: Iterable[Line], submissions: Sequence[Submission], answers_by_name: dict[str, dict[int, Answer]]
    ) -> None:
        """Remember other jobs of a submission's name: it was sent again, and the first one arrived after all.

        While the one waits and the other runs, the other speaks for the task.
        """
        self._twins = {}
        natives = {s.name: (native, s.tasks) for s in submissions if (native := Native.parse(s.native_id)) is not None}
        for line in lines:
            native, tasks = natives.get(line.name or "", (None, ()))
            if native is None or line.job == native.job or line.answer.phase is Phase.ENDED:
                continue
            answers = answers_by_name[line.name or ""]
            self._twins.setdefault(line.name or "", {})[line.job] = replace(native, job=line.job)
            if line.answer.phase is Phase.RUNNING:
                waiting = {task for task, answer in answers.items() if answer.phase is Phase.QUEUED}
                answers.update(dict.fromkeys(waiting.intersection(native.tasks(line.indices, tasks)), line.answer))

    def _confirm_never(self, answers_by_name: dict[str, dict[int, Answer]]) -> None:
        """Believe "never" only if it lasts: a scheduler that was just restarted may say it of jobs it will run."""
        now, since = self.pace.clock(), self._memory.never
        vain = [
            (name, task)
            for name, answers in answers_by_name.items()
            for task, answer in answers.items()
            if answer.never
        ]
        self._memory.never = {key: since.get(key, now) for key in vain}
        for name, task in vain:
            if now - self._memory.never[name, task] < self.lost_after_s:
                answers_by_name[name][task] = _without_never(answers_by_name[name][task])

    def watched_job(self, submission: Submission) -> Watched:
        """The job of a submission."""
        return Watched.of_submission(submission, self.jobs)

    def _ask_queue(self, watched: Sequence[Watched]) -> tuple[list[Line] | None, CommandResult]:
        """The queue's listing, None where it could not be asked; in detail where a plain listing is vague."""
        if self._memory.detail:
            self._memory.detail -= 1
            return self._run_queue_command(watched, detail=True)
        lines, result = self._run_queue_command(watched, detail=False)
        names = {job.name for job in watched}
        if lines is None or not any(line.vague for line in lines if line.name in names):
            return lines, result
        self._memory.detail = _DETAIL
        return self._run_queue_command(watched, detail=True)

    def _run_queue_command(
        self, watched: Sequence[Watched], *, detail: bool
    ) -> tuple[list[Line] | None, CommandResult]:
        result = self.runner.run(self.adapter.queue_command(watched, detail=detail), timeout=60)
        return self.adapter.parse_queue(result), result

    def _any_phase_changed(self, answers_by_name: dict[str, dict[int, Answer]]) -> bool:
        """Whether any task is in another phase than at the last poll; the reason to wait may change every minute."""
        before = self._memory.answers
        return any(
            (old := before.get(name, {}).get(task)) is not answer
            and (old is None or (old.phase, old.never) != (answer.phase, answer.never))
            for name, answers in answers_by_name.items()
            for task, answer in answers.items()
        )

    def _record_failed_poll(self, result: CommandResult) -> None:
        """Record a failed poll, and warn once after some minutes."""
        if self.pace.failing() >= _SAY_AFTER_S and not self.pace.is_reported:
            self.pace.is_reported = True
            error = CommandError(result, subject="the last try")
            self.say(
                "the scheduler has not answered for some minutes. This does not mean that"
                f" jobs have failed; nsw keeps asking.\n{error.message}"
            )

    def _ask_history(
        self,
        submissions: Sequence[Submission],
        absent: dict[str, list[int]],
        answers_by_name: dict[str, dict[int, Answer]],
        arrays: Collection[str],
    ) -> None:
        """Ask the history for the tasks that the queue did not list; a task without a trace for long enough is lost.

        `arrays` names the submissions of which the queue lists a task, be it one that is over; those of which the
        history knows a task are added where the queue lists nothing that is over.
        """
        now = self.pace.clock()
        has_answered = True
        history: dict[str, dict[int, Answer]] = {s.name: {} for s in submissions}
        watched = [w for w in (*map(self.watched_job, submissions), *self.followed_jobs(submissions)) if w.native]
        if watched and self.facts.history:
            results = [self.runner.run(argv, timeout=120) for argv in self.adapter.history_commands(watched)]
            parsed = [self.adapter.parse_history(result) for result in results]
            has_answered = self._has_history_answered(results, parsed)
            lines = [line for some_lines in parsed for line in some_lines or ()]
            decisive_lines = [
                line for line in lines if line.answer.phase is not Phase.GONE
            ]  # a file that does not say its end
            history = _answers_by_name(decisive_lines, submissions, self._followed)
            if not self.adapter.capabilities.lists_ended:
                recorded = {(line.job, line.name) for line in decisive_lines if line.indices is not None}
                arrays = {
                    *arrays,
                    *(s.name for s in submissions if _is_listed(s, recorded) or any(history[s.name].values())),
                }
        missing = {(s.name, t): history[s.name].get(t) for s in submissions for t in absent[s.name]}
        alone = {s.name for s in submissions if s.name in arrays or answers_by_name[s.name]}
        since = self._memory.absent
        # while the history cannot be asked, nothing is known to be absent
        self._memory.absent = {key: since.get(key, now) if has_answered else now for key in missing}
        for (name, task), past_answer in missing.items():
            seconds = now - self._memory.absent[name, task]
            answers_by_name[name][task] = self._absent_answer(name, seconds, past_answer, siblings=name in alone)

    def _has_history_answered(self, results: Sequence[CommandResult], parsed: Sequence[list[Line] | None]) -> bool:
        """Whether the history answered; True too where there is none. Warns once after a long silence."""
        failed = next((result for result, lines in zip(results, parsed, strict=True) if lines is None), None)
        if failed is None:
            self._history = _Silence()
            return True
        if self.adapter.no_history(failed):
            self.facts = replace(self.facts, history=False)
            return True
        now, quiet = self.pace.clock(), self._history
        quiet.since = now if quiet.since is None else quiet.since
        if now - quiet.since >= _SAY_AFTER_S and not quiet.is_reported:
            quiet.is_reported = True
            self.say(
                f"{self.adapter.queue} does not list some jobs any more, and {self.adapter.history}, which records"
                " how they ended, has not answered for some minutes; nsw keeps asking."
                f"\n{CommandError(failed, subject='the last try').message}"
            )
        return False

    def _absent_answer(self, name: str, seconds: float, past_answer: Answer | None, *, siblings: bool) -> Answer:
        """The answer for a task that the queue has not listed for so many seconds."""
        if past_answer is not None and past_answer.phase is Phase.ENDED:
            return past_answer
        queue, history = self.adapter.queue, self.adapter.history
        late = self.adapter.capabilities.late_end_s  # until then an end may be on its way to the history
        lost = max(self.lost_after_s, late)
        if past_answer is None and siblings and seconds >= max(lost * _ALONE, late):
            reason = f"{queue} lists other tasks of its array and not this one"
            once_begun = Answer(Phase.LOST, reason) if seconds >= lost else _UNKNOWN
            return Answer(Phase.ENDED, f"{reason}: it was cancelled or removed", cancelled=True, if_begun=once_begun)
        if past_answer is None and seconds >= lost:
            subject = f"{queue} and {history} do" if self.facts.history else f"{queue} does"
            forgot = Answer(Phase.LOST, f"{subject} not know its job any more")
            if self.adapter.vanished and self.facts.history and name in self.unlisted:
                return Answer(Phase.ENDED, self.adapter.vanished, if_begun=forgot)
            return forgot
        if seconds >= lost * _STALE:
            return Answer(Phase.LOST, f"{queue} does not know its job any more, though {history} never saw it end")
        patience = format_duration(int(lost if past_answer is None else lost * _STALE))
        seen = f", and {history} has no end of it" if self.facts.history else ""
        return Answer(Phase.UNKNOWN, f"{queue} does not list its job{seen}; nsw keeps asking for {patience}")

    def _read_job_output(
        self,
        submissions: Sequence[Submission],
        answers_by_name: dict[str, dict[int, Answer]],
        absent: Mapping[str, Collection[int]],
    ) -> None:
        """Read the job's own output for what its state does not show, such as lack of memory without cgroups.

        Without a history that output is all that is known of a job that has left the queue.

        Raises:
            UnreachableError: The files could not be read.
        """
        logs: dict[str, tuple[str, int]] = {}
        for submission in submissions:
            native = Native.parse(submission.native_id)
            vanished = () if self.facts.history else absent[submission.name]
            for task, answer in answers_by_name[submission.name].items():
                over = task in vanished or answer.phase in {Phase.ENDED, Phase.LOST}
                if over and not (answer.clean and answer.if_begun is None):
                    name = self.adapter.log_name(submission.name, native, task)
                    logs[f"{self.jobs}/{name}"] = (submission.name, task)
        paths = list(logs)
        for first in range(0, len(paths), _TOGETHER):
            for path, content in self.transport.read_many(paths[first : first + _TOGETHER], _LOG_BYTES).items():
                output = content.decode(errors="replace") if isinstance(content, bytes) else ""
                if (killed := self.adapter.killed_by_limit(output)) is not None:
                    name, task = logs[path]
                    answers_by_name[name][task] = killed


@lru_cache(maxsize=4096)  # the same answer gives the same object, by which it is known that nothing is new
def _without_never(answer: Answer) -> Answer:
    return replace(answer, never=False)


def _fill_in_job_id(answer: Answer, job: str) -> Answer:
    """The answer with the job's id in the command that its reason names, such as `qrls JOB`."""
    return _replace_job_id(answer, job) if answer.reason and _ID_HERE in answer.reason else answer


@lru_cache(maxsize=4096)  # as above
def _replace_job_id(answer: Answer, job: str) -> Answer:
    return replace(answer, reason=(answer.reason or "").replace(_ID_HERE, f" {shlex.quote(job)}`"))


def _is_listed(submission: Submission, listed: Collection[tuple[str, str | None]]) -> bool:
    """Whether a task of this submission's array is among these, by job and name."""
    native = Native.parse(submission.native_id)
    return native is not None and not {(native.job, submission.name), (native.job, None)}.isdisjoint(listed)


def _answers_by_name(
    lines: Iterable[Line], submissions: Iterable[Submission], followed: Mapping[tuple[str, int], Native]
) -> dict[str, dict[int, Answer]]:
    """Answers by submission and task.

    Both id and name must be right: ids are used again, and sacct's first rows of a job (named `allocation`, of an
    array without its index) may speak of another task.
    """
    answers_by_name: dict[str, dict[int, Answer]] = {}
    by_job: dict[str, list[tuple[str, Native, tuple[int, ...]]]] = {}
    for submission in submissions:
        answers_by_name[submission.name] = {}
        own_native = Native.parse(submission.native_id)
        followed_tasks = {t: followed[submission.name, t] for t in submission.tasks if (submission.name, t) in followed}
        if own_native is not None:
            own_tasks = (
                tuple(t for t in submission.tasks if t not in followed_tasks) if followed_tasks else submission.tasks
            )
            by_job.setdefault(own_native.job, []).append((submission.name, own_native, own_tasks))
        for task, native in followed_tasks.items():
            by_job.setdefault(native.job, []).append((submission.name, native, (task,)))
    for line in lines:
        for name, native, tasks in by_job.get(line.job, ()):
            if line.name is not None and line.name != name:
                continue
            task_set = set(tasks)
            answers, answer = answers_by_name[name], _fill_in_job_id(line.answer, line.job)
            for task in native.tasks(line.indices, tasks):
                if task in task_set:
                    answers[task] = answer
    return answers_by_name
