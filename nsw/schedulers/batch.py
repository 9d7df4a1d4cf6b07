"""A batch system as the campaign's loop sees it: asked politely, believed carefully; its words stand in a file each."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.errors import CommandError, RefusedError, UnreachableError
from nsw.schedulers.dialect import Native
from nsw.schedulers.model import Answer, Phase
from nsw.schedulers.pace import MOST_S, Pace
from nsw.schedulers.polling import Polling
from nsw.schedulers.throttles import Throttles
from nsw.transport.runner import PATIENT, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.errors import CommandResult
    from nsw.schedulers.dialect import Dialect
    from nsw.schedulers.model import Submission
    from nsw.transport.model import Transport

_UNKNOWN = Answer(Phase.UNKNOWN)
_FIND_MINUTES = 60 * 24 * 14
_ARRIVES_S = 2.0  # a submission whose command was killed may still be on its way to the controller


@dataclass(frozen=True, slots=True)
class Limits:
    """What a campaign may ask of the site: tasks running at the same time, tasks of one array."""

    in_flight: int = 20
    array: int = 1000


class BatchScheduler:
    """A batch system over a transport.

    Args:
        words: The system's commands and what they print.
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
        words: Dialect,
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
        self._words = words
        self._transport = transport
        self._scratch = scratch
        self._jobs = f"{scratch}/jobs"
        self._comment = f"nsw:{campaign}"
        self._limits = limits
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._runner = Runner(
            transport, transient=words.transient, without=words.CLEARED, keep=words.KEPT, sleep=sleep, draw=draw
        )
        self._pace = Pace(clock, draw)
        self._polling = Polling(words, self._runner, self._pace, transport, self._jobs, say)
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
        limit = min(self._limits.array, self._polling.facts.max_array_size - 1 or 1)
        return max(1, min(limit, self._most or limit))

    def room(self, in_flight: Sequence[Submission]) -> int:
        """An array's worth, as long as there are fewer submissions than tasks may run at the same time."""
        if len(in_flight) >= self._throttles.limit or self._clock() < self._full_until:
            return 0
        return self.most_tasks()

    def submit(self, submission: Submission) -> str | None:
        """One command. It is never repeated blindly: what is in doubt is looked up by its name.

        Raises:
            RefusedError: The system does not want it.
            UnreachableError: In doubt.
        """
        self._make_folder()
        share = self._throttles.make_way(len(submission.tasks))
        argv = self._words.submit_command(
            submission,
            script=self._transport.show(submission.script, f"{self._scratch}/scripts/{submission.script.name}"),
            log=f"{self._jobs}/{submission.name}",
            comment=self._comment,
            throttle=share,
            after=self.after(submission.job),
        )
        result = self._runner.run(argv, timeout=120)
        job = self._words.parse_submitted(result.stdout) if result.returncode == 0 else None
        if job is None:
            self._not_submitted(submission, result)
            return None
        native = Native.of(submission, job)
        self._throttles.begun(submission, native, share)
        self._pace.reset()
        return str(native)

    def find(self, submission: Submission) -> str | None:
        """By name: the queue, then the history; once more after a moment, for it may be about to be taken.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        found = self._look_up(submission)
        if found is None:
            self._sleep(_ARRIVES_S)
            found = self._look_up(submission)
        return found

    def _look_up(self, submission: Submission) -> str | None:
        jobs = {line.job for line in self._polling.find(submission.name, _FIND_MINUTES)}
        # the first of several: the runs' folders are claimed by whichever job began, and both are looked at there
        return str(Native.of(submission, min(jobs, key=lambda job: (len(job), job)))) if jobs else None

    def due(self) -> bool:
        """Whether the interval is over."""
        return self._clock() >= self._pace.next

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]]:
        """One question for all; what may run at the same time is shared out anew by the answers."""
        told = self._polling.poll(submissions)
        if told is None:
            return {s.name: dict.fromkeys(s.tasks, _UNKNOWN) for s in submissions}
        self._throttles.rebalance(submissions, told)
        return told

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """One command.

        Raises:
            CommandError: It failed.
        """
        argv = self._words.cancel_command(submissions)
        if argv is None:
            return
        result = self._runner.run(argv, timeout=120, retry=PATIENT)
        if not self._words.cancelled(result):
            raise CommandError(result, what="jobs could not be cancelled")
        self._pace.reset()

    def limit(self, running: int) -> None:
        """So many tasks may run at the same time from now on; the arrays hear of it with the next poll."""
        if running != self._throttles.limit:
            self._throttles.limit = running
            self._pace.now()

    def wait(self, seconds: float) -> None:
        """Sleep until it is time to ask, at most so long."""
        left = self._pace.next - self._clock()
        idle = left <= 0 and self._pace.next == self._waited_for  # it is time, and there was nothing to ask
        self._waited_for = self._pace.next
        self._sleep(seconds if idle else max(0.01, min(seconds, left)))

    # --- submitting -------------------------------------------------------------------------------------

    def _make_folder(self) -> None:
        if not self._runner.calls[self._words.SUBMIT]:  # without it Slurm ends jobs before they begin, without a word
            made = self._transport.run(["mkdir", "-p", self._jobs], timeout=60)
            if made.returncode != 0:
                raise CommandError(made, what="the folder for the jobs' output cannot be made")

    def _not_submitted(self, submission: Submission, result: CommandResult) -> None:
        words = self._words
        doubtful = result.returncode == 0 or words.in_doubt(result)
        if words.is_full(result) and not doubtful:
            self._learn_room(len(submission.tasks), result)
            return
        if doubtful:
            self._pace.now()  # it is looked up at once
            raise UnreachableError(CommandError(result, what=f"{words.SUBMIT} gave no job id").message)
        said, key, hint = words.refusal(result)
        raise RefusedError(f"{words.SUBMIT} refused the job: {said}", key=key, hint=hint)

    def _learn_room(self, tasks: int, result: CommandResult) -> None:
        """The queue takes no more for now: smaller arrays next, and a rest when even one task was too much."""
        if tasks > 1:
            self._most = tasks // 2
            return
        if not self._full_until:
            said = self._words.refusal(result)[0]
            self._say(f"the queue takes no more of your jobs for now ({said}); nsw goes on trying")
        self._full_until = self._clock() + MOST_S

    def _throttle(self, native: Native, limit: int) -> bool:
        argv = self._words.throttle_command(native, limit)
        return argv is not None and self._runner.run(argv, timeout=60).returncode == 0
