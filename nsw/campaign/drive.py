"""The loop that carries a campaign out: look up what is in doubt, submit, poll, judge, collect.

It can be ended at any moment; the ledger and the files of the runs are all that the next one needs.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from nsw.campaign.canary import Canary
from nsw.campaign.collect import KEPT_FILES, collect, read_tail, run_folder
from nsw.campaign.last_words import last_words
from nsw.campaign.ledger import AT_A_TIME, Ledger, Reading, RunRow, State
from nsw.campaign.submitting import submission_name, submissions
from nsw.campaign.withdrawing import Withdrawing
from nsw.campaign.witness import Status, Verdict, judge, parse_status
from nsw.errors import NswError, RefusedError, UnreachableError
from nsw.schedulers.model import Answer, Phase, Submission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport

__all__ = ["KEPT_FILES", "Driver", "ask_to_cancel", "run_folder", "submission_name"]

_CANCEL = "cancel"
_STATUS_BYTES = 65536
_LATE_FILE = 4  # polls that a job's last words may be late on a shared file system
_NEVER = 2  # polls in a row that say so
_NEVER_RUNS = 10  # of a job that may run all the same: five minutes
_SIGNALLED = frozenset({130, 137, 143})  # by SIGINT, SIGKILL, SIGTERM: what schedulers send


class Driver:
    """Drives one campaign; the caller holds its lock.

    Args:
        folder: The campaign's folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: The campaign's folder on the site.
        changed: Called with the ids of runs that changed their state, once that is written down.
        canary: What decides when the first run must go ahead alone.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        ledger: Ledger,
        scheduler: Scheduler,
        transport: Transport,
        scratch: str,
        changed: Callable[[list[str]], None] = lambda _runs: None,
        canary: Canary | None = None,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._scheduler = scheduler
        self._transport = transport
        self._scratch = scratch
        self._changed = changed
        self._canary = canary or Canary(ledger)
        self._withdrawing = Withdrawing(ledger, transport, scratch)
        self._open: dict[str, Submission] = {}
        self._doubt: list[Submission] = []
        self._late: list[tuple[str, str]] = []
        self._seen: Counter[tuple[str, str]] = Counter()  # how often something must be seen before it is believed
        self._calls_before = Counter(ledger.calls())

    def recover(self) -> int:
        """Adopt what an earlier nsw left: submissions with an id, and those in doubt that the scheduler knows.

        Returns:
            How many submissions in doubt were found to exist.

        Raises:
            UnreachableError: The scheduler could not tell; nothing may be submitted before it can.
        """
        scripts = _Scripts(self._folder)
        adopted = sum(self._settle(submission) for submission in self._ledger.submissions("intent", scripts))
        self._write_late()
        self._open = {s.name: s for s in self._ledger.submissions("submitted", scripts)}
        return adopted

    def run(self, wait_s: float = 0.5) -> None:
        """Until no run is planned or in flight."""
        try:
            while self.step():
                self._scheduler.wait(wait_s)
        finally:
            with self._ledger.transaction():
                self._write_late()
                self._save_calls()

    def step(self) -> bool:
        """One round: poll, judge, submit what there is room for. False when nothing is left to do."""
        if limit := self._ledger.meta(AT_A_TIME):
            self._scheduler.limit(int(limit))
        self._settle_doubts()
        self._canary.check()
        if self._scheduler.shares_machine:
            chosen = self._poll_and_intend()
        else:
            self._poll()
            chosen = self._next_submissions()
        self._submit(chosen)
        if self._cancel_asked():
            self.cancel()
        return bool(self._open or self._doubt) or self._ledger.has_planned()

    def cancel(self, runs: Sequence[str] | None = None) -> None:
        """End runs: all that are not over, or those named. What a cancelled task had finished stays."""
        self._poll(at_once=True)  # what has ended by itself keeps its own reason
        chosen = None if runs is None else set(runs)
        rows = [r for r in self._ledger.runs("state IN ('planned','intent','submitted','queued','running')")
                if chosen is None or r.id in chosen]  # fmt: skip
        self._scheduler.cancel(self._holding(rows))
        self._poll(at_once=True)
        done = {r.id for r in self._ledger.runs("state = 'done'")}
        self._ledger.update_runs(
            [r.id for r in rows if r.id not in done],
            state=State.CANCELLED,
            reason="cancelled by nsw cancel",
        )
        self._close_what_is_over()
        (self._folder.path / _CANCEL).unlink(missing_ok=True)  # who asked waits for this
        self._changed([r.id for r in rows])

    def _cancel_asked(self) -> bool:
        return (self._folder.path / _CANCEL).exists()

    def _holding(self, rows: Iterable[RunRow]) -> list[Submission]:
        """The open submissions with only the tasks of these runs."""
        tasks: dict[str, set[int]] = {}
        for run in rows:
            if run.submission in self._open:
                tasks.setdefault(run.submission, set()).add(run.task)
        return [replace(self._open[name], tasks=tuple(sorted(some))) for name, some in tasks.items()]

    # --- submitting -------------------------------------------------------------------------------------

    def _poll_and_intend(self) -> list[Submission]:
        """Judge what ended and write down what comes next, synced to disk once: that is most of a run's cost here."""
        with self._ledger.transaction():
            self._write_late()
            self._poll()
            chosen = self._next_submissions()
            for submission in chosen:
                self._ledger.intend(submission)
        folders = [run_folder(self._scratch, run.id, run.attempt) for chose in chosen for run in self._runs_of(chose)]
        self._transport.make_folders(folders)  # cheaper here than by a process in the job
        return chosen

    def _write_late(self) -> None:
        """Ids of this machine's processes: a lock tells as much of each, so they are not synced one by one."""
        for name, native in self._late:
            self._ledger.submitted(name, native)
        self._late.clear()

    def _next_submissions(self) -> list[Submission]:
        """What there is room for."""
        # a submission in doubt comes first; the look for planned runs costs far less than choosing among none
        if self._doubt or not self._ledger.has_planned():
            return []
        try:
            room = self._scheduler.room(list(self._open.values()))
            if room <= 0:
                return []
            pending = self._canary.allowed(self._ledger.pending_tasks(room * self._runs_per_task))
            most = self._scheduler.most_tasks() if pending else 1
        except UnreachableError:  # it says so itself when that lasts
            return []
        return list(submissions(self._folder, pending, most))

    def _submit(self, chosen: Sequence[Submission]) -> None:
        for submission in chosen:
            if self._scheduler.batches and self._scheduler.room(list(self._open.values())) <= 0:
                return
            if not self._hand_over(submission) and self._scheduler.batches:
                return

    @cached_property
    def _runs_per_task(self) -> int:
        return self._ledger.runs_per_task() if self._scheduler.batches else 1

    def _hand_over(self, submission: Submission) -> bool:
        """Submit one; False when it was not taken."""
        if not self._scheduler.shares_machine:
            self._ledger.intend(submission)
        try:
            native = self._scheduler.submit(submission)
        except RefusedError as fault:
            self._refused(submission, fault)
            return True
        except UnreachableError:
            self._doubt.append(submission)
            return False
        if native is None:
            self._ledger.withdraw(submission.name)
            return False
        self._adopt(submission, native)
        if not self._scheduler.shares_machine:
            self._changed([r.id for r in self._runs_of(submission)])
        return True

    def _adopt(self, submission: Submission, native: str) -> None:
        if self._scheduler.shares_machine:
            self._late.append((submission.name, native))
        else:
            self._ledger.submitted(submission.name, native)
        self._open[submission.name] = replace(submission, native_id=native)

    def _refused(self, submission: Submission, fault: RefusedError) -> None:
        """The runs of a submission that the scheduler does not want have failed, with the place that asks too much."""
        places = json.loads(self._ledger.meta("places") or "{}")
        place = places.get(fault.key or "")
        asks = f"; resources.{fault.key}" + (f" at {place}" if place else "") if fault.key else ""
        hint = f"; {fault.hint}" if fault.hint else ""
        runs = [r.id for r in self._runs_of(submission)]
        with self._ledger.transaction():
            self._ledger.update_runs(runs, state=State.FAILED, reason=f"{fault.message}{asks}{hint}")
            self._ledger.finish_submission(submission.name)
        self._changed(runs)

    def _settle_doubts(self) -> None:
        """Look up what is in doubt; while the scheduler cannot tell, it stays in doubt."""
        while self._doubt:
            try:
                self._settle(self._doubt[0])
            except UnreachableError:
                return
            self._doubt.pop(0)

    def _settle(self, submission: Submission) -> bool:
        """Find out whether a submission in doubt exists, and adopt or withdraw it."""
        native = self._scheduler.find(submission)
        if native is None and any(self._status(run) for run in self._runs_of(submission)):
            native = "ended"  # gone from the scheduler, yet it left its mark: it was submitted and has ended
        if native is None:
            self._ledger.withdraw(submission.name)
            return False
        self._adopt(submission, native)
        return True

    # --- watching ---------------------------------------------------------------------------------------

    def _poll(self, *, at_once: bool = False) -> None:
        if not self._open or not (at_once or self._scheduler.due()):
            return
        flying = self._ledger.in_flight()
        self._close_what_is_over(flying)
        asked = self._holding(run for runs in flying.values() for run in runs)
        answers = self._scheduler.poll(asked)
        changed: list[str] = []
        never: list[tuple[RunRow, Answer]] = []
        lost: list[tuple[RunRow, Answer]] = []
        with self._ledger.transaction():
            for submission in asked:
                told = answers.get(submission.name, {})
                for run in flying[submission.name]:
                    answer = told.get(run.task, Answer(Phase.UNKNOWN))
                    if answer.never:
                        never.append((run, answer))
                    else:
                        self._seen.pop((run.id, "never"), None)
                    if answer.phase is Phase.LOST:
                        lost.append((run, answer))
                    elif self._judge(run, answer):
                        changed.append(run.id)
            self._close_what_is_over()
            self._save_calls()
        changed += self._settle_lost(lost)
        changed += self._give_up(never)
        if changed:
            self._changed(changed)

    def _judge(self, run: RunRow, answer: Answer) -> bool:
        # what waits has written nothing yet, or what it wrote was before it was put back into the queue
        status = None if answer.phase is Phase.QUEUED else self._status(run)
        if self._is_early(run, answer, status):
            return False
        verdict = judge(answer, status)
        if verdict.ended:
            self._end(run, verdict, status)
            return True
        if (verdict.state, verdict.reason) == (run.state, run.reason):
            return False
        self._ledger.update_runs([run.id], state=verdict.state, reason=verdict.reason, **_times(status))
        return True

    def _end(self, run: RunRow, verdict: Verdict, status: Status | None) -> None:
        """Nothing more will come of this attempt: bring what it left, and write down how it ended."""
        if status is None and (earlier := self._earlier(run)):
            run, status = earlier
            verdict = judge(Answer(Phase.ENDED, clean=True), status)
        collect(self._folder, self._transport, self._scratch, run)
        verdict = self._with_last_words(run, verdict)
        self._ledger.update_runs(
            [run.id], state=verdict.state, reason=verdict.reason, reading=Reading.COLLECTED, attempt=run.attempt,
            **_times(status),
        )  # fmt: skip

    def _earlier(self, run: RunRow) -> tuple[RunRow, Status] | None:
        """An earlier attempt that was done after it was given up: its job had been out of sight, and came back."""
        for attempt in range(run.attempt - 1, 0, -1):
            before = replace(run, attempt=attempt)
            status = self._status(before)
            if status is not None and status.state == "done":
                return before, status
        return None

    def _with_last_words(self, run: RunRow, verdict: Verdict) -> Verdict:
        """What the program said last belongs to why it failed."""
        if verdict.state is not State.FAILED:
            return verdict
        words = last_words(read_tail(self._folder.reports / run.id / "stderr"))
        return replace(verdict, reason=f"{verdict.reason}: {words}") if words else verdict

    def _is_early(self, run: RunRow, answer: Answer, status: Status | None) -> bool:
        """Whether to look once more before believing that a run of a batch job is over."""
        if not self._scheduler.batches:
            return False
        if answer.phase is Phase.ENDED:
            if not answer.clean or (status is not None and status.state in {"done", "failed"}):
                return False
            self._seen[run.id, "clean"] += 1  # its file may take a while to travel through a shared file system
            return self._seen[run.id, "clean"] <= _LATE_FILE
        # ended by a signal: the scheduler may be about to put the job back into the queue
        signalled = status is not None and status.state == "failed" and status.exit_code in _SIGNALLED
        return signalled and answer.phase in {Phase.RUNNING, Phase.UNKNOWN}

    def _settle_lost(self, lost: list[tuple[RunRow, Answer]]) -> list[str]:
        """What a scheduler forgot before it began is submitted again; of the others nothing more is known."""
        if not lost:
            return []
        try:
            again = self._withdrawn(run for run, _ in lost)
        except UnreachableError:  # all of them are looked at again after the next poll
            return []
        with self._ledger.transaction():
            for run, answer in lost:
                if run.id in again:
                    self._withdrawing.plan_again(run, answer.reason)
                else:
                    self._judge(run, answer)
            self._close_what_is_over()
        return [run.id for run, _ in lost]

    def _withdrawn(self, runs: Iterable[RunRow]) -> set[str]:
        """Which of these had not begun, and can begin no more under their present attempt."""
        idle = [r for r in runs if self._withdrawing.may(r) and not self._status(r) and not self._earlier(r)]
        return self._withdrawing.withdraw(idle)

    def _give_up(self, never: list[tuple[RunRow, Answer]]) -> list[str]:
        """End tasks that wait for what will not come, once that was said twice in a row.

        A controller that came back from a crash may hold a job of which the first launch still runs: that one is
        waited for somewhat longer, and what it finished counts. One that it holds before it began is submitted again.
        """
        sure: dict[str, tuple[RunRow, Answer, Status | None]] = {}
        for run, answer in never:
            status = self._status(run)
            self._seen[run.id, "never"] += 1
            runs = answer.may_run and status is not None and status.state == "running"
            if self._seen[run.id, "never"] >= (_NEVER_RUNS if runs else _NEVER):
                sure[run.id] = (run, answer, status)
        if not sure:
            return []
        try:
            again = self._withdrawn(run for run, answer, status in sure.values() if answer.may_run and status is None)
            for run in [r for r, _, status in sure.values() if status is None and self._status(r)]:
                del sure[run.id]  # it began a moment ago
            self._scheduler.cancel(self._holding(run for run, _, _ in sure.values()))
        except NswError:  # it is tried again after the next poll
            return []
        with self._ledger.transaction():
            for run, answer, status in sure.values():
                if run.id in again:
                    self._seen.pop((run.id, "never"), None)
                    self._withdrawing.plan_again(run, answer.reason)
                    continue
                done = status is not None and status.state == "done"
                what = "it would never have begun" if status is None else "it would never have begun again"
                verdict = Verdict(State.DONE) if done else Verdict(State.FAILED, f"{what}: {answer.reason}")
                self._end(run, verdict, status)
            self._close_what_is_over()
        return list(sure)

    def _close_what_is_over(self, flying: Mapping[str, object] | None = None) -> None:
        still = self._ledger.submissions_in_flight() if flying is None else flying
        for name in [n for n in self._open if n not in still]:
            self._ledger.finish_submission(name)
            del self._open[name]

    def _save_calls(self) -> None:
        calls = self._scheduler.calls()
        if calls:
            self._ledger.set_calls(self._calls_before + Counter(calls))

    def _runs_of(self, submission: Submission) -> list[RunRow]:
        return self._ledger.runs("submission = ?", (submission.name,))

    def _status(self, run: RunRow) -> Status | None:
        folder = run_folder(self._scratch, run.id, run.attempt)
        ended = self._transport.read(f"{folder}/status", _STATUS_BYTES)
        return parse_status(ended or self._transport.read(f"{folder}/claim", _STATUS_BYTES))


def ask_to_cancel(folder: CampaignFolder) -> None:
    """Ask the nsw that drives this campaign to cancel it."""
    (folder.path / _CANCEL).touch()


def _times(status: Status | None) -> dict[str, object]:
    if status is None:
        return {}
    return {
        "host": status.host,
        "started": status.started,
        "ended": status.ended,
        "exit_code": status.exit_code,
    }


class _Scripts(dict[str, "Path"]):
    def __init__(self, folder: CampaignFolder) -> None:
        super().__init__()
        self._folder = folder

    def __missing__(self, job: str) -> Path:
        return self._folder.script(job).absolute()
