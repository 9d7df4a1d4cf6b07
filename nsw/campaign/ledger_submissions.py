"""Submissions in the ledger: the intent before each, the scheduler's id after it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger_base import LedgerBase
from nsw.campaign.ledger_rows import Flying, Kind, State
from nsw.campaign.ledger_values import column_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from nsw.schedulers.model import Submission

_DOUBT: Final = "not submitted, as far as is known, since"
_WITHOUT_DOUBT: Final = f"CASE WHEN substr(reason, 1, {len(_DOUBT)}) = '{_DOUBT}' THEN NULL ELSE reason END"


class LedgerSubmissions(LedgerBase):
    """The table `submissions` of an open ledger, and what a submission does to its tasks."""

    def intend(self, submission: Submission) -> None:
        """Write down that this will be submitted, before it is."""
        sent = submission
        with self.transaction():
            self._db.execute("DELETE FROM submissions WHERE name = ? AND state = 'unfound'", (sent.name,))
            self._db.execute(
                "INSERT INTO submissions (name, job, tasks, attempt, gpus, state, created)"
                " VALUES (?, ?, ?, ?, ?, 'intent', ?)",
                (sent.name, sent.job, json.dumps(sent.tasks), sent.attempt, sent.gpus or 0, time.time()),
            )
            self._db.executemany(
                "UPDATE tasks SET state = 'intent', attempt = ?, submission = ?"
                " WHERE job = ? AND task = ? AND state = 'planned'",
                [(sent.attempt, sent.name, sent.job, task) for task in sent.tasks],
            )

    def submitted(self, submission: Submission, native_id: str) -> None:
        """Write down the scheduler's id."""
        with self.transaction():
            self._db.execute(
                "UPDATE submissions SET native_id = ?, state = 'submitted' WHERE name = ?",
                (native_id, submission.name),
            )
            self._of_intent(submission, f"state = 'submitted', reason = {_WITHOUT_DOUBT}")

    def doubt(self, submission: Submission, why: str, since: float) -> None:
        """Write down why it is not known whether the scheduler has it, until it is; `since` is in Unix seconds."""
        when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(since))
        self._db.execute(
            "UPDATE tasks SET reason = ? WHERE job = ? AND submission = ? AND state = 'intent'",
            (f"{_DOUBT} {when}: {why}", submission.job, submission.name),
        )

    def withdraw(self, submission: Submission, *, unfound: bool = False) -> None:
        """A submission that did not reach the scheduler: its tasks are planned again, the attempt is not used.

        One that was `unfound` after doubt may still arrive there: `doubtful` remembers it.
        """
        with self.transaction():
            self._of_intent(submission, "state = 'planned', submission = NULL, attempt = attempt - 1")
            if unfound:
                self._db.execute("UPDATE submissions SET state = 'unfound' WHERE name = ?", (submission.name,))
            else:
                self._db.execute("DELETE FROM submissions WHERE name = ? AND state = 'intent'", (submission.name,))

    def doubtful(self) -> list[Flying]:
        """The tasks that wait here and whose next or present attempt the scheduler may have all the same."""
        found = self._db.execute(
            "SELECT t.id, t.job, t.task, s.attempt, t.state, t.reason, t.kind, s.tasks FROM submissions s"
            " JOIN tasks t ON t.job = s.job AND t.attempt = s.attempt AND t.state = 'intent' AND s.state = 'intent'"
            " OR t.job = s.job AND t.attempt = s.attempt - 1 AND t.state = 'planned' AND s.state = 'unfound'"
        )
        return [
            Flying(id_, job, task, attempt, State(state), reason, Kind(kind))
            for id_, job, task, attempt, state, reason, kind, tasks in found
            if task in self._tasks(tasks)
        ]

    def _of_intent(self, submission: Submission, setting: str) -> None:
        self._db.execute(
            f"UPDATE tasks SET {setting}"  # noqa: S608  no outside text
            " WHERE job = ? AND task BETWEEN ? AND ? AND submission = ? AND state = 'intent'",
            (submission.job, submission.tasks[0], submission.tasks[-1], submission.name),
        )

    def finish_submission(self, name: str) -> None:
        """All tasks of it have ended."""
        self._db.execute("UPDATE submissions SET state = 'ended' WHERE name = ?", (name,))

    def flying(self, submission: Submission) -> list[Flying]:
        """The runs, builds and reductions of a submission that are not over."""
        # by job and task, of which there is an index
        found = self._db.execute(
            "SELECT id, job, task, attempt, state, reason, kind FROM tasks WHERE job = ? AND task BETWEEN ? AND ?"
            " AND submission = ? AND state IN ('intent', 'submitted', 'queued', 'running')",
            (submission.job, submission.tasks[0], submission.tasks[-1], submission.name),
        )
        return [
            Flying(id_, job, task, attempt, State(state), reason, Kind(kind))
            for id_, job, task, attempt, state, reason, kind in found
        ]

    def native_id(self, name: str) -> str | None:
        """The scheduler's id of a submission."""
        row = self._db.execute("SELECT native_id FROM submissions WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def native_ids(self) -> dict[str, str | None]:
        """The scheduler's id of every submission, by its name."""
        return dict(self._db.execute("SELECT name, native_id FROM submissions").fetchall())

    def submissions(self, state: str, script: Mapping[str, Path]) -> list[Submission]:
        """Submissions in a state (intent, submitted, ended), oldest first; `script` gives each job's script."""
        from nsw.schedulers.model import Submission  # here: who only looks at a ledger needs no scheduler

        found = self._db.execute(
            "SELECT name, job, attempt, tasks, gpus, native_id FROM submissions WHERE state = ? ORDER BY seq", (state,)
        )
        return [
            Submission(name, job, script[job], attempt, self._tasks(tasks), gpus, native)
            for name, job, attempt, tasks, gpus, native in found
        ]

    def _tasks(self, text: str) -> tuple[int, ...]:
        try:
            return tuple(column_of(text, list, "tasks"))
        except ValueError as fault:
            raise self._damaged(f"submissions: {fault}") from None
