"""One poll of a batch system: its queue for everything, its history for what the queue does not know."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.errors import CommandError, UnreachableError
from nsw.schedulers.dialect import Facts, Line, Native
from nsw.schedulers.model import Answer, Phase
from nsw.transport.runner import PATIENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from nsw.errors import CommandResult
    from nsw.schedulers.dialect import Dialect
    from nsw.schedulers.model import Submission
    from nsw.schedulers.pace import Pace
    from nsw.transport.model import Transport
    from nsw.transport.runner import Runner

_SAY_AFTER_S = 600.0  # of polls that failed
_ABSENT = 3  # polls in a row without a trace: lost
_EACH = 10  # polls with a line for each task that waits, once a line for several did not say it all
_STALE = 10  # polls in a row in which only the history still calls it alive: lost too
_UNKNOWN = Answer(Phase.UNKNOWN)


@dataclass(slots=True)
class _Memory:
    """What earlier polls said, by submission and task."""

    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)
    absent: dict[tuple[str, int], int] = field(default_factory=dict)
    each: int = 0  # how many polls more are to ask for a line for each task


@dataclass(slots=True)
class _Silence:
    """Since when the history, of which something must be asked, gives no answer."""

    since: float | None = None
    said: bool = False


class Polling:
    """Asks a batch system, and remembers what it said.

    Args:
        words: Its commands and what they print.
        runner: Runs them.
        pace: When to ask; it hears of every answer.
        transport: The way to what jobs print.
        jobs: The folder of that.
        say: Prints a line for the user.
    """

    def __init__(
        self, words: Dialect, runner: Runner, pace: Pace, transport: Transport, jobs: str, say: Callable[[str], object]
    ) -> None:
        self._words = words
        self._runner = runner
        self._pace = pace
        self._transport = transport
        self._jobs = jobs
        self._say = say
        self._memory = _Memory()
        self._history = _Silence()

    @cached_property
    def facts(self) -> Facts:
        """What the cluster is set to, asked once; that there is no history may turn out later.

        Raises:
            UnreachableError: It could not be asked.
        """
        result = self.need(self._words.facts_command(), "asking the cluster for its settings")
        return self._words.parse_facts(result.stdout)

    def need(self, argv: Sequence[str], what: str) -> CommandResult:
        """The answer to a question that must be answered.

        Raises:
            UnreachableError: There was none, though it was asked several times.
        """
        result = self._runner.run(argv, timeout=120, retry=PATIENT)
        if not self._words.answered(result):
            raise self._unreachable(result, what)
        self._pace.answered()
        return result

    def _unreachable(self, result: CommandResult, what: str) -> UnreachableError:
        self._unanswered(result)
        message = CommandError(result, what=what).message
        return UnreachableError(message, hint="`nsw resume` goes on when it answers again")

    def find(self, name: str, minutes: int) -> list[Line]:
        """What is known of a job by its name: by the queue, else by the history of the last minutes.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        words = self._words
        queue = self.need(words.queue_command([name]), f"asking {words.QUEUE} for a job by its name")
        lines = [line for line in words.parse_queue(queue.stdout) if line.name == name]
        if lines or not self.facts.history:
            return lines
        result = self._runner.run(words.history_by_name_command(name, minutes), timeout=120, retry=PATIENT)
        if words.no_history(result):
            self.facts = replace(self.facts, history=False)
            return []
        if not words.answered(result):
            raise self._unreachable(result, f"asking {words.HISTORY} for a job by its name")
        return [line for line in words.parse_history(result.stdout) if line.name == name]

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]] | None:
        """An answer for each task of each submission, by its name; None when nothing could be asked."""
        lines, result = self._queue([s.name for s in submissions])
        if lines is None:
            self._unanswered(result)
            return None
        self._pace.answered()
        told = _sorted_out(lines, submissions)
        absent = {s.name: [t for t in s.tasks if t not in told[s.name]] for s in submissions}
        try:
            self._look_back([s for s in submissions if absent[s.name]], absent, told)
        except UnreachableError:  # what the cluster is set to could not be asked; it is said when that lasts
            return None
        self._explain(submissions, told)
        self._pace.asked(changed=self._moved(told))
        self._memory.answers = told
        return told

    def _queue(self, names: Sequence[str]) -> tuple[list[Line] | None, CommandResult]:
        """What the queue holds, None when it could not be asked: waiting tasks in one line where that says it all."""
        if self._memory.each:
            self._memory.each -= 1
            return self._lines(names, each=True)
        lines, result = self._lines(names, each=False)
        if lines is None or not any(line.vague for line in lines if line.name in names):
            return lines, result
        self._memory.each = _EACH
        return self._lines(names, each=True)

    def _lines(self, names: Sequence[str], *, each: bool) -> tuple[list[Line] | None, CommandResult]:
        result = self._runner.run(self._words.queue_command(names, each=each), timeout=60)
        return self._words.parse_queue(result.stdout) if self._words.answered(result) else None, result

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
        if self._pace.failing() >= _SAY_AFTER_S and not self._pace.said:
            self._pace.said = True
            error = CommandError(result, what="the last try")
            self._say(
                "the scheduler has not answered for some minutes. This may pass by itself, and it does not mean that"
                f" jobs have failed; nsw goes on asking.\n{error.message}"
            )

    def _look_back(
        self, some: Sequence[Submission], absent: dict[str, list[int]], told: dict[str, dict[int, Answer]]
    ) -> None:
        """Ask the history for what the queue did not know; without a trace for several polls a task is lost."""
        asked = True
        history: dict[str, dict[int, Answer]] = {s.name: {} for s in some}
        jobs = {n.job: f"{self._jobs}/{s.name}" for s in some if (n := Native.parse(s.native_id))}
        if jobs and self.facts.history:
            results = [self._runner.run(argv, timeout=120) for argv in self._words.history_commands(jobs)]
            asked = self._told(results)
            history = _sorted_out(self._words.parse_history("".join(result.stdout for result in results)), some)
        missing = {(s.name, t): history[s.name].get(t) for s in some for t in absent[s.name]}
        counts = self._memory.absent
        self._memory.absent = {key: counts.get(key, 0) + asked for key in missing}
        for (name, task), found in missing.items():
            told[name][task] = self._absent_answer(self._memory.absent[name, task], found)

    def _told(self, results: Sequence[CommandResult]) -> bool:
        """Whether the history answered. Where it never will, it counts no more; of a long silence the user hears."""
        failed = next((result for result in results if not self._words.answered(result)), None)
        if failed is None:
            self._history = _Silence()
            return True
        if self._words.no_history(failed):
            self.facts = replace(self.facts, history=False)
            return True
        now, quiet = self._pace.clock(), self._history
        quiet.since = now if quiet.since is None else quiet.since
        if now - quiet.since >= _SAY_AFTER_S and not quiet.said:
            quiet.said = True
            self._say(
                f"{self._words.QUEUE} does not know some jobs any more, and {self._words.HISTORY}, which could say how"
                " they ended, has not answered for some minutes; nsw goes on asking."
                f"\n{CommandError(failed, what='the last try').message}"
            )
        return False

    def _absent_answer(self, polls: int, found: Answer | None) -> Answer:
        if found is not None and found.phase is Phase.ENDED:
            return found
        queue, history = self._words.QUEUE, self._words.HISTORY
        if found is None and polls >= _ABSENT:
            who = f"{queue} and {history} do" if self.facts.history else f"{queue} does"
            return Answer(Phase.LOST, f"{who} not know its job any more")
        if polls >= _STALE:
            return Answer(Phase.LOST, f"{queue} does not know its job any more, though {history} never saw it end")
        return _UNKNOWN

    def _explain(self, submissions: Sequence[Submission], told: dict[str, dict[int, Answer]]) -> None:
        """Look into the job's own output for what the state does not say: without cgroups, memory."""
        for submission in submissions:
            for task, answer in told[submission.name].items():
                if answer.phase is Phase.ENDED and not answer.clean:
                    name = self._words.log_name(submission.name, submission.native_id, task)
                    output = self._transport.read(f"{self._jobs}/{name}", 1 << 16)
                    more = self._words.memory_words((output or b"").decode(errors="replace"))
                    if more:
                        told[submission.name][task] = replace(answer, reason=f"out of memory: {more}")


def _sorted_out(lines: Iterable[Line], submissions: Iterable[Submission]) -> dict[str, dict[int, Answer]]:
    """Answers by submission and task.

    Both id and name must be right: ids are used again, and sacct's first rows of a job (named `allocation`, of an
    array without its index) may speak of another task.
    """
    told: dict[str, dict[int, Answer]] = {}
    by_job: dict[str, tuple[Submission, Native, set[int]]] = {}
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
