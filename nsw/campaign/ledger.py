"""The campaign's durable state: one SQLite file with a row a run and a row a submission.

A rollback journal, no WAL: campaigns live on NFS and Lustre too. Intent is committed (and synced) before
anything is submitted; what follows from files that still exist (done, collected, read) may be written late.
"""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from nsw.errors import CampaignError
from nsw.schedulers.model import Submission

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from nsw.plan.model import Plan

VERSION = 1
AT_A_TIME = "at_a_time"  # meta: how many tasks may run at the same time, when a person changed it
_SOME = 500  # values in one statement; SQLite's own limit was once 999


class State(StrEnum):
    """Life of a run. `LOST`: absent from both witnesses, which is not failed."""

    PLANNED = "planned"
    INTENT = "intent"
    SUBMITTED = "submitted"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"


IN_FLIGHT = (State.INTENT, State.SUBMITTED, State.QUEUED, State.RUNNING)
ENDED = (State.DONE, State.FAILED, State.LOST, State.CANCELLED)


class Reading(StrEnum):
    """What became of a run's reports."""

    NONE = "none"
    COLLECTED = "collected"
    READ = "read"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as the ledger knows it; times are Unix seconds."""

    id: str
    case_id: str
    params: dict[str, Any]
    pass_name: str
    pass_kind: str
    tool: str | None
    repeat: int
    job: str
    task: int
    gpus: int
    reports: tuple[str, ...]
    state: State
    attempt: int
    reason: str | None
    exit_code: int | None
    host: str | None
    started: float | None
    ended: float | None
    reading: Reading
    submission: str | None

    @property
    def seconds(self) -> float | None:
        """How long the last attempt took."""
        return None if self.started is None or self.ended is None else self.ended - self.started


_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE runs (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, case_id TEXT NOT NULL, params TEXT NOT NULL,
  pass_name TEXT NOT NULL, pass_kind TEXT NOT NULL, tool TEXT, repeat INTEGER NOT NULL,
  job TEXT NOT NULL, task INTEGER NOT NULL, gpus INTEGER NOT NULL, reports TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'planned', attempt INTEGER NOT NULL DEFAULT 0, reason TEXT, exit_code INTEGER,
  host TEXT, started REAL, ended REAL, reading TEXT NOT NULL DEFAULT 'none', submission TEXT);
CREATE INDEX runs_task ON runs (job, task);
CREATE INDEX runs_state ON runs (state);
CREATE TABLE submissions (
  seq INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, job TEXT NOT NULL, tasks TEXT NOT NULL,
  attempt INTEGER NOT NULL, native_id TEXT, state TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX submissions_state ON submissions (state);
CREATE TABLE absent (what TEXT NOT NULL, reason TEXT NOT NULL, runs INTEGER NOT NULL);
CREATE TABLE problems (run TEXT NOT NULL, report TEXT, severity TEXT NOT NULL, message TEXT NOT NULL, fix TEXT);
PRAGMA user_version = {VERSION};
"""

_COLUMNS = (
    "id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus, reports, state, attempt, reason, "
    "exit_code, host, started, ended, reading, submission"
)


_VERSION = "PRAGMA user_version"


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)


class Ledger:
    """The open ledger of one campaign. `path` must exist unless made by `create`."""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        if not create and not path.exists():
            raise CampaignError(f"{path.parent} is no campaign: {path.name} is missing")
        self._db = _connect(path, "ro" if read_only else "rwc")
        try:
            if create:
                self._db.executescript(_SCHEMA)
            version = self._version(path)
        except sqlite3.DatabaseError as fault:
            raise CampaignError(f"{path} is damaged: {fault}") from None
        if version != VERSION:
            raise CampaignError(
                f"{path} was written by another nsw (state version {version}; this one knows {VERSION})"
            )
        self._db.execute("PRAGMA synchronous = FULL")

    def _version(self, path: Path) -> int:
        """What wrote it, from the first look into it.

        An nsw that was killed within a write left a journal. Who only looks may not take that write back, so it is
        taken back first.
        """
        try:
            version: int = self._db.execute(_VERSION).fetchone()[0]
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
            writer = _connect(path, "rw")
            version = writer.execute(_VERSION).fetchone()[0]
            writer.close()
        return version

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> _Transaction:
        """`with ledger.transaction():` all of it or nothing."""
        return _Transaction(self._db)

    # --- meta -------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | None:
        """A fact of the campaign."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_meta(self, key: str, value: str) -> None:
        """Write a fact of the campaign."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run for this campaign."""
        found: dict[str, int] = json.loads(self.meta("calls") or "{}")
        return found

    def set_calls(self, calls: Mapping[str, int]) -> None:
        """Write that down."""
        self.set_meta("calls", json.dumps(calls))

    # --- runs -------------------------------------------------------------------------------------------

    def add_plan(self, plan: Plan) -> None:
        """Write all runs of a plan and what it could not do."""
        with self.transaction():
            self._db.executemany(
                "INSERT INTO runs (id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus, reports)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (r.id, r.case_id, json.dumps(r.params), r.pass_name, r.pass_kind, r.tool, r.repeat, job.name, task,
                     r.resources.gpus, json.dumps(r.reports))
                    for job in plan.jobs for task, runs in enumerate(job.tasks) for r in runs
                ),
            )  # fmt: skip
            self._db.executemany(
                "INSERT INTO absent VALUES (?, ?, ?)",
                ((a.what, a.reason, len(a.run_ids)) for a in plan.absent),
            )

    def runs(self, where: str = "1", parameters: Sequence[Any] = ()) -> list[RunRow]:
        """Runs in the plan's order; `where` is SQL of nsw's own, never of a user's."""
        query = f"SELECT {_COLUMNS} FROM runs WHERE {where} ORDER BY seq"  # noqa: S608  no outside text
        return [_run(row) for row in self._db.execute(query, parameters)]

    def runs_named(self, ids: Sequence[str]) -> list[RunRow]:
        """The runs of these ids, in the plan's order."""
        found: list[RunRow] = []
        for at in range(0, len(ids), _SOME):
            some = ids[at : at + _SOME]
            found += self.runs(f"id IN ({','.join('?' * len(some))})", some)
        return found

    def absent(self) -> list[tuple[str, str, int]]:
        """What was asked and could not be done here: what, why, how many runs."""
        return [tuple(row) for row in self._db.execute("SELECT what, reason, runs FROM absent")]

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        return dict(self._db.execute("SELECT state, count(*) FROM runs GROUP BY state").fetchall())

    def pending_tasks(self, limit: int) -> list[tuple[str, int, int, int]]:
        """The next tasks with runs to submit: job, task, the next attempt, GPUs at the same time."""
        # runs are inserted task by task: the first rows name the next tasks without looking at all of them
        return self._db.execute(
            "SELECT job, task, max(attempt) + 1, max(gpus) FROM"
            " (SELECT * FROM runs WHERE state = 'planned' ORDER BY seq LIMIT ?)"
            " GROUP BY job, task ORDER BY min(seq)",
            (limit,),
        ).fetchall()

    def runs_per_task(self) -> int:
        """The most runs that one task holds."""
        found = self._db.execute("SELECT max(n) FROM (SELECT count(*) n FROM runs GROUP BY job, task)").fetchone()[0]
        return found or 1

    def in_flight(self) -> dict[str, list[RunRow]]:
        """Runs that are submitted and not over, by their submission."""
        found: dict[str, list[RunRow]] = {}
        for run in self.runs("state IN ('submitted', 'queued', 'running')"):
            found.setdefault(run.submission or "", []).append(run)
        return found

    def submissions_in_flight(self) -> set[str]:
        """Names of submissions with runs that are not over."""
        found = self._db.execute(
            "SELECT DISTINCT submission FROM runs WHERE state IN ('intent', 'submitted', 'queued', 'running')"
        )
        return {name for (name,) in found}

    def has_planned(self) -> bool:
        """Whether any run waits to be submitted."""
        return self._db.execute("SELECT 1 FROM runs WHERE state = 'planned' LIMIT 1").fetchone() is not None

    def unread(self) -> int:
        """How many runs have reports that wait to be read."""
        found: int = self._db.execute(
            "SELECT count(*) FROM runs WHERE reading = 'collected' AND state IN ('done', 'failed')"
        ).fetchone()[0]
        return found

    def update_runs(self, ids: Iterable[str], **values: Any) -> None:
        """Set columns of runs."""
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.executemany(
            f"UPDATE runs SET {names} WHERE id = ?",  # noqa: S608  names of columns
            [(*values.values(), run) for run in ids],
        )

    def release(self, ids: Iterable[str]) -> None:
        """Plan these runs again; their earlier attempts keep their folders."""
        self.update_runs(
            ids, state=State.PLANNED, reason=None, exit_code=None, started=None, ended=None, submission=None,
            reading=Reading.NONE,
        )  # fmt: skip

    # --- submissions ------------------------------------------------------------------------------------

    def intend(self, submission: Submission) -> None:
        """Write down that this will be submitted, before it is."""
        with self.transaction():
            self._db.execute(
                "INSERT INTO submissions (name, job, tasks, attempt, state, created) VALUES (?, ?, ?, ?, 'intent', ?)",
                (
                    submission.name,
                    submission.job,
                    json.dumps(submission.tasks),
                    submission.attempt,
                    time.time(),
                ),
            )
            self._db.executemany(
                "UPDATE runs SET state = 'intent', attempt = ?, submission = ?"
                " WHERE job = ? AND task = ? AND state = 'planned'",
                [(submission.attempt, submission.name, submission.job, task) for task in submission.tasks],
            )

    def submitted(self, name: str, native_id: str) -> None:
        """Write down the scheduler's id."""
        with self.transaction():
            self._db.execute(
                "UPDATE submissions SET native_id = ?, state = 'submitted' WHERE name = ?", (native_id, name)
            )
            self._db.execute("UPDATE runs SET state = 'submitted' WHERE submission = ? AND state = 'intent'", (name,))

    def withdraw(self, name: str) -> None:
        """A submission that never reached the scheduler: its runs are planned again, the attempt is not used."""
        with self.transaction():
            self._db.execute(
                "UPDATE runs SET state = 'planned', submission = NULL, attempt = attempt - 1"
                " WHERE submission = ? AND state = 'intent'",
                (name,),
            )
            self._db.execute("DELETE FROM submissions WHERE name = ?", (name,))

    def finish_submission(self, name: str) -> None:
        """All tasks of it have ended."""
        self._db.execute("UPDATE submissions SET state = 'ended' WHERE name = ?", (name,))

    def native_id(self, name: str) -> str | None:
        """The scheduler's id of a submission."""
        row = self._db.execute("SELECT native_id FROM submissions WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def submissions(self, state: str, script: Mapping[str, Path]) -> list[Submission]:
        """Submissions in a state (intent, submitted, ended), oldest first; `script` gives each job's script."""
        found = self._db.execute(
            "SELECT s.name, s.job, s.attempt, s.tasks, s.native_id, max(r.gpus) FROM submissions s"
            " LEFT JOIN runs r ON r.submission = s.name WHERE s.state = ? GROUP BY s.seq ORDER BY s.seq",
            (state,),
        ).fetchall()
        return [
            Submission(name, job, script[job], attempt, tuple(json.loads(tasks)), gpus or 0, native)
            for name, job, attempt, tasks, native, gpus in found
        ]

    # --- problems ---------------------------------------------------------------------------------------

    def set_problems(self, run: str, problems: Iterable[tuple[str | None, str, str, str | None]]) -> None:
        """Replace what is known to be wrong with a run's reports: report, severity, message, fix."""
        self._db.execute("DELETE FROM problems WHERE run = ?", (run,))
        self._db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?, ?)", [(run, *p) for p in problems])

    def problems(self) -> list[tuple[str, str | None, str, str, str | None]]:
        """Run, report, severity, message, fix."""
        return [
            tuple(row)
            for row in self._db.execute(
                "SELECT p.* FROM problems p JOIN runs r ON r.id = p.run ORDER BY r.seq, p.rowid"
            )
        ]


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._outer = not db.in_transaction

    def __enter__(self) -> None:
        if self._outer:
            self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if self._outer:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _run(row: tuple[Any, ...]) -> RunRow:
    (id_, case_id, params, pass_name, kind, tool, repeat, job, task, gpus, reports, state, *rest) = row
    attempt, reason, exit_code, host, started, ended, reading, submission = rest
    return RunRow(
        id_, case_id, json.loads(params), pass_name, kind, tool, repeat, job, task, gpus, tuple(json.loads(reports)),
        State(state), attempt, reason, exit_code, host, started, ended, Reading(reading), submission,
    )  # fmt: skip
