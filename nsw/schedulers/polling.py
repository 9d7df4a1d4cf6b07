"""One poll of a batch system: its queue for everything, its history for what the queue does not list."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from nsw.errors import CommandError, CommandResult, UnreachableError
from nsw.recipe.units import format_duration
from nsw.schedulers.adapter import Adapter, Facts, Line, Watched
from nsw.schedulers.model import Answer, Native, Phase, Submission
from nsw.transport.commands import PATIENT, Runner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from nsw.transport.model import Transport

FIRST_S, MOST_S = 2.0, 60.0  # between questions: it doubles while nothing changes, with jitter
_SAY_AFTER_S = 600.0  # of polls that failed
_DETAIL = 10  # polls with a line for each task, once a plain listing was vague
# parts of the time after which a job counts as lost
_STALE = 3.0  # only the history still calls it alive
_ALONE = 0.25  # its siblings are listed, and it is not
_LOG_BYTES = 1 << 16  # that are read of what a job printed
_TOGETHER = 400  # logs that are read in one round trip
_UNKNOWN = Answer(Phase.UNKNOWN)
_ID_HERE = " JOB`"  # in the reasons of adapters
Followed = dict[tuple[str, int], Native]


@dataclass(slots=True)
class Pace:
    """The next time to ask, and since when there has been no answer. `draw` gives numbers in 0..1."""

    clock: Callable[[], float]
    draw: Callable[[], float]
    interval: float = FIRST_S
    next: float = 0.0
    failing_since: float | None = None
    is_reported: bool = False

    def reset(self) -> None:
        """Something was changed: ask soon."""
        self.interval = FIRST_S
        self.next = min(self.next, self.clock() + FIRST_S)

    def now(self) -> None:
        """Ask at once."""
        self.next = self.clock()

    def record_answer(self) -> None:
        """There was an answer."""
        self.failing_since, self.is_reported = None, False

    def failing(self) -> float:
        """There was none; for how many seconds that goes on."""
        self.record_poll(changed=False)
        self.failing_since = self.clock() if self.failing_since is None else self.failing_since
        return self.clock() - self.failing_since

    def record_poll(self, *, changed: bool) -> None:
        """It was asked, and something had changed or not."""
        self.interval = FIRST_S if changed else min(MOST_S, self.interval * 2)
        self.next = self.clock() + self.interval * (0.8 + 0.4 * self.draw())


@dataclass(slots=True)
class _Memory:
    """What earlier polls said, by submission and task."""

    answers: dict[str, dict[int, Answer]] = field(default_factory=dict)
    absent: dict[tuple[str, int], float] = field(default_factory=dict)  # since when
    never: dict[tuple[str, int], float] = field(default_factory=dict)  # since when it is said to wait in vain
    detail: int = 0  # how many polls more ask for a line for each task


@dataclass(slots=True)
class _Silence:
    """Since when the history, of which something must be asked, gives no answer."""

    since: float | None = None
    is_reported: bool = False


class Polling:
    """Asks a batch system, and remembers what it said.

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

    def __init__(
        self,
        adapter: Adapter,
        runner: Runner,
        pace: Pace,
        transport: Transport,
        jobs: str,
        say: Callable[[str], object],
        lost_after_s: float,
    ) -> None:
        self._adapter = adapter
        self._runner = runner
        self._pace = pace
        self._transport = transport
        self._jobs = jobs
        self._say = say
        self._lost_after_s = lost_after_s
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
        if not self._adapter.facts_command:
            return Facts(history=bool(self._adapter.history))
        result = self._runner.run(self._adapter.facts_command, timeout=120, retry=PATIENT)
        if result.returncode != 0 or result.timed_out:
            raise self._unreachable(result, "asking the cluster for its settings")
        self._pace.record_answer()
        return self._adapter.parse_facts(result)

    def _unreachable(self, result: CommandResult, failure: str) -> UnreachableError:
        self._unanswered(result)
        message = CommandError(result, subject=failure).message
        return UnreachableError(message, hint="`nsw resume` continues when it answers again")

    def follow(self, name: str, task: int, job: str, index: int | None) -> None:
        """Believe another job about a task than the one that was submitted for it last."""
        self._followed[name, task] = Native(job, None if index is None else task - index)

    def followed(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The jobs that are believed instead of the submissions' own."""
        return [
            Watched(s.name, native, f"{self._jobs}/{s.name}", (task,))
            for s in submissions
            for task in s.tasks
            if (native := self._followed.get((s.name, task)))
        ]

    def twins(self, submissions: Sequence[Submission]) -> list[Watched]:
        """The other jobs of these names that the last poll listed: of each the tasks of its submission."""
        return [
            Watched(s.name, native, f"{self._jobs}/{s.name}", tuple(s.tasks))
            for s in submissions
            for native in self._twins.get(s.name, {}).values()
        ]

    def find(self, watched: Sequence[Watched], minutes: int) -> list[Line]:
        """What is known of jobs by their names: by the queue, else by the history of the last minutes.

        Raises:
            UnreachableError: One of them could not be asked.
        """
        adapter = self._adapter
        result = self._runner.run(adapter.queue_command(watched), timeout=120, retry=PATIENT)
        listed = adapter.parse_queue(result)
        if listed is None:
            raise self._unreachable(result, f"asking {adapter.queue} for jobs by their names")
        self._pace.record_answer()
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
            result = self._runner.run(command, timeout=120, retry=PATIENT)
            if adapter.no_history(result):
                self.facts = replace(self.facts, history=False)
                return lines
            ended = adapter.parse_history(result)
            if ended is None:
                raise self._unreachable(result, f"asking {adapter.history} for jobs by their names")
            lines += (line for line in ended if line.name in names)
        return lines

    def poll(self, submissions: Sequence[Submission]) -> dict[str, dict[int, Answer]] | None:
        """An answer for each task of each submission, by its name; None when nothing could be asked."""
        lines, result = self._queue([self._watched(s) for s in submissions])
        if lines is None:
            self._unanswered(result)
            return None
        self._pace.record_answer()
        answers_by_name = _answers_by_name(lines, submissions, self._followed)
        self._note_twins(lines, submissions, answers_by_name)
        self._ask_statuses(submissions, answers_by_name)
        self.unlisted.difference_update(name for name, answers in answers_by_name.items() if answers)
        absent = {s.name: [t for t in s.tasks if t not in answers_by_name[s.name]] for s in submissions}
        try:
            listed = {(line.job, line.name) for line in lines if line.indices is not None}
            arrays = {s.name for s in submissions if _is_listed(s, listed)}
            self._look_back([s for s in submissions if absent[s.name]], absent, answers_by_name, arrays)
            self._explain(submissions, answers_by_name, absent)
        except UnreachableError:  # it is reported when that lasts
            return None
        self._wait_before_never(answers_by_name)
        self._pace.record_poll(changed=self._moved(answers_by_name))
        self._memory.answers = answers_by_name
        return answers_by_name

    def _ask_statuses(self, submissions: Sequence[Submission], told: dict[str, dict[int, Answer]]) -> None:
        """With the exit statuses of what failed, where the queue's listing has none: nsw's own say what is wrong."""
        failed = {s.name for s in submissions if any(answer.by_itself for answer in told[s.name].values())}
        some = [s for s in submissions if s.name in failed]
        known = [w for w in (*map(self._watched, some), *self.followed(some)) if w.native]
        command = self._adapter.ends_command(known) if known else None
        if command is None:
            return
        ends = _answers_by_name(self._adapter.parse_ends(self._runner.run(command, timeout=60)), some, self._followed)
        for name, answers in ends.items():
            told[name] |= {task: end for task, end in answers.items() if told[name].get(task, _UNKNOWN).by_itself}

    def _note_twins(
        self, lines: Iterable[Line], submissions: Sequence[Submission], told: dict[str, dict[int, Answer]]
    ) -> None:
        """Remember other jobs of a submission's name: it was sent again, and the first one arrived after all.

        While the one waits and the other runs, the other speaks for the task.
        """
        self._twins = {}
        own = {s.name: (native, s.tasks) for s in submissions if (native := Native.parse(s.native_id)) is not None}
        for line in lines:
            native, tasks = own.get(line.name or "", (None, ()))
            if native is None or line.job == native.job or line.answer.phase is Phase.ENDED:
                continue
            answers = told[line.name or ""]
            self._twins.setdefault(line.name or "", {})[line.job] = replace(native, job=line.job)
            if line.answer.phase is Phase.RUNNING:
                waiting = {task for task, answer in answers.items() if answer.phase is Phase.QUEUED}
                answers.update(dict.fromkeys(waiting.intersection(native.tasks(line.indices, tasks)), line.answer))

    def _wait_before_never(self, answers_by_name: dict[str, dict[int, Answer]]) -> None:
        """A system that was started again may say "never" of what it will run: only an answer that lasts is one."""
        now, since = self._pace.clock(), self._memory.never
        vain = [
            (name, task)
            for name, answers in answers_by_name.items()
            for task, answer in answers.items()
            if answer.never
        ]
        self._memory.never = {key: since.get(key, now) for key in vain}
        for name, task in vain:
            if now - self._memory.never[name, task] < self._lost_after_s:
                answers_by_name[name][task] = _not_yet(answers_by_name[name][task])

    def _watched(self, submission: Submission) -> Watched:
        return Watched.of_submission(submission, self._jobs)

    def _queue(self, watched: Sequence[Watched]) -> tuple[list[Line] | None, CommandResult]:
        """What the queue lists, None when it could not be asked; in detail where a plain listing is vague."""
        if self._memory.detail:
            self._memory.detail -= 1
            return self._lines(watched, detail=True)
        lines, result = self._lines(watched, detail=False)
        names = {job.name for job in watched}
        if lines is None or not any(line.vague for line in lines if line.name in names):
            return lines, result
        self._memory.detail = _DETAIL
        return self._lines(watched, detail=True)

    def _lines(self, watched: Sequence[Watched], *, detail: bool) -> tuple[list[Line] | None, CommandResult]:
        result = self._runner.run(self._adapter.queue_command(watched, detail=detail), timeout=60)
        return self._adapter.parse_queue(result), result

    def _moved(self, answers_by_name: dict[str, dict[int, Answer]]) -> bool:
        """Whether anything is in another phase than at the last poll; why it waits may change every minute."""
        for name, answers in answers_by_name.items():
            before = self._memory.answers.get(name, {})
            for task, answer in answers.items():
                old = before.get(task)
                if old is not answer and (old is None or (old.phase, old.never) != (answer.phase, answer.never)):
                    return True
        return False

    def _unanswered(self, result: CommandResult) -> None:
        """Nothing is known for now; after some minutes of that the user hears of it."""
        if self._pace.failing() >= _SAY_AFTER_S and not self._pace.is_reported:
            self._pace.is_reported = True
            error = CommandError(result, subject="the last try")
            self._say(
                "the scheduler has not answered for some minutes. This does not mean that"
                f" jobs have failed; nsw keeps asking.\n{error.message}"
            )

    def _look_back(
        self,
        submissions: Sequence[Submission],
        absent: dict[str, list[int]],
        answers_by_name: dict[str, dict[int, Answer]],
        arrays: Collection[str],
    ) -> None:
        """Ask the history for what the queue did not list; what leaves no trace for long enough is lost.

        `arrays` names the submissions of which the queue lists a task, be it one that is over; those of which the
        history knows a task are added where the queue lists nothing that is over.
        """
        now = self._pace.clock()
        has_answered = True
        history: dict[str, dict[int, Answer]] = {s.name: {} for s in submissions}
        watched = [w for w in (*map(self._watched, submissions), *self.followed(submissions)) if w.native]
        if watched and self.facts.history:
            results = [self._runner.run(argv, timeout=120) for argv in self._adapter.history_commands(watched)]
            parsed = [self._adapter.parse_history(result) for result in results]
            has_answered = self._history_answered(results, parsed)
            lines = [line for some_lines in parsed for line in some_lines or ()]
            decisive_lines = [
                line for line in lines if line.answer.phase is not Phase.GONE
            ]  # a file that does not say its end
            history = _answers_by_name(decisive_lines, submissions, self._followed)
            if not self._adapter.capabilities.lists_ended:
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

    def _history_answered(self, results: Sequence[CommandResult], parsed: Sequence[list[Line] | None]) -> bool:
        """Whether the history answered. Where it never will, it counts no more; of a long silence the user hears."""
        failed = next((result for result, lines in zip(results, parsed, strict=True) if lines is None), None)
        if failed is None:
            self._history = _Silence()
            return True
        if self._adapter.no_history(failed):
            self.facts = replace(self.facts, history=False)
            return True
        now, quiet = self._pace.clock(), self._history
        quiet.since = now if quiet.since is None else quiet.since
        if now - quiet.since >= _SAY_AFTER_S and not quiet.is_reported:
            quiet.is_reported = True
            self._say(
                f"{self._adapter.queue} does not list some jobs any more, and {self._adapter.history}, which could say"
                " how they ended, has not answered for some minutes; nsw keeps asking."
                f"\n{CommandError(failed, subject='the last try').message}"
            )
        return False

    def _absent_answer(self, name: str, seconds: float, past_answer: Answer | None, *, siblings: bool) -> Answer:
        """What it means that the queue has not listed a task of a submission for so many seconds."""
        if past_answer is not None and past_answer.phase is Phase.ENDED:
            return past_answer
        queue, history = self._adapter.queue, self._adapter.history
        late = self._adapter.capabilities.late_end_s  # until then an end may be on its way to the history
        lost = max(self._lost_after_s, late)
        if past_answer is None and siblings and seconds >= max(lost * _ALONE, late):
            reason = f"{queue} lists other tasks of its array and not this one"
            once_begun = Answer(Phase.LOST, reason) if seconds >= lost else _UNKNOWN
            return Answer(Phase.ENDED, f"{reason}: it was cancelled or removed", cancelled=True, if_begun=once_begun)
        if past_answer is None and seconds >= lost:
            subject = f"{queue} and {history} do" if self.facts.history else f"{queue} does"
            forgot = Answer(Phase.LOST, f"{subject} not know its job any more")
            if self._adapter.vanished and self.facts.history and name in self.unlisted:
                return Answer(Phase.ENDED, self._adapter.vanished, if_begun=forgot)
            return forgot
        if seconds >= lost * _STALE:
            return Answer(Phase.LOST, f"{queue} does not know its job any more, though {history} never saw it end")
        patience = format_duration(int(lost if past_answer is None else lost * _STALE))
        seen = f", and {history} has no end of it" if self.facts.history else ""
        return Answer(Phase.UNKNOWN, f"{queue} does not list its job{seen}; nsw keeps asking for {patience}")

    def _explain(
        self,
        submissions: Sequence[Submission],
        told: dict[str, dict[int, Answer]],
        absent: Mapping[str, Collection[int]],
    ) -> None:
        """Look into the job's own output for what the state does not say: without cgroups, memory.

        Without a history that output is all that is known of a job that has left the queue.

        Raises:
            UnreachableError: The files could not be read.
        """
        logs: dict[str, tuple[str, int]] = {}
        for submission in submissions:
            native = Native.parse(submission.native_id)
            gone = () if self.facts.history else absent[submission.name]
            for task, answer in told[submission.name].items():
                over = task in gone or answer.phase in {Phase.ENDED, Phase.LOST}
                if over and not (answer.clean and answer.if_begun is None):
                    name = self._adapter.log_name(submission.name, native, task)
                    logs[f"{self._jobs}/{name}"] = (submission.name, task)
        paths = list(logs)
        for first in range(0, len(paths), _TOGETHER):
            for path, content in self._transport.read_many(paths[first : first + _TOGETHER], _LOG_BYTES).items():
                output = content.decode(errors="replace") if isinstance(content, bytes) else ""
                if (killed := self._adapter.killed_by_limit(output)) is not None:
                    name, task = logs[path]
                    told[name][task] = killed


@lru_cache(maxsize=4096)  # the same answer gives the same object, by which it is known that nothing is new
def _not_yet(answer: Answer) -> Answer:
    return replace(answer, never=False)


def _naming(answer: Answer, job: str) -> Answer:
    """The answer with the job's id in the command that its reason names, such as `qrls JOB`."""
    return _with_id(answer, job) if answer.reason and _ID_HERE in answer.reason else answer


@lru_cache(maxsize=4096)  # as above
def _with_id(answer: Answer, job: str) -> Answer:
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
            answers, answer = answers_by_name[name], _naming(line.answer, line.job)
            for task in native.tasks(line.indices, tasks):
                if task in task_set:
                    answers[task] = answer
    return answers_by_name
