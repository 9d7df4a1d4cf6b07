"""The campaign's durable state: one SQLite file with a row a run and a row a submission.

A rollback journal, no WAL: campaigns live on NFS and Lustre too. Intent is committed (and synced) before
anything is submitted; what follows from files that still exist (done, collected, read) may be written late.
"""

from __future__ import annotations

import json
import sqlite3
import time
from typing import TYPE_CHECKING, Any, Self, TypeVar

from nsw.campaign.ledger_facts import LedgerFacts
from nsw.campaign.ledger_file import open_to_drive, open_to_look
from nsw.campaign.ledger_guard import GuardedConnection, check
from nsw.campaign.ledger_schema import SCHEMA, VERSION
from nsw.campaign.ledger_stages import READY, STAGES_SCHEMA, LedgerStages
from nsw.campaign.ledger_values import MAYBE_TEXT, check_kinds, column_of
from nsw.campaign.rows import ENDED, IN_FLIGHT, BuildRow, Flying, Reading, RunRow, State
from nsw.errors import CampaignError
from nsw.schedulers.model import Submission

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from nsw.plan.model import Plan

__all__ = ["ENDED", "IN_FLIGHT", "VERSION", "BuildRow", "Ledger", "Reading", "RunRow", "State"]

_SOME = 500  # values in one statement; SQLite's own limit was once 999
_VERSION = "PRAGMA user_version"

_Row = TypeVar("_Row", RunRow, BuildRow)

_TABLES = ("runs", "builds")  # whose rows live through the same states


def _connect(path: Path, mode: str) -> GuardedConnection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, factory=GuardedConnection)


def _check_version(version: int, path: Path) -> None:
    if version != VERSION:
        age = "an older" if version < VERSION else "a newer"
        raise CampaignError(
            f"{path} was written by {age} nsw (state version {version}; this one knows {VERSION})",
            hint=f"go on with that nsw, or begin again: `nsw run {path.parent}/recipe.lock.yaml`",
        )


class Ledger(LedgerFacts, LedgerStages):
    """The open ledger of one campaign. `path` must exist unless made by `create`."""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        if not create and not path.is_file():
            wrong = "is no file" if path.exists() else "is missing"
            raise CampaignError(f"{path.parent} is no campaign: {path.name} {wrong}")
        self._path = path
        self._copy: TemporaryDirectory[str] | None = None
        if create:
            self._db: GuardedConnection = _connect(path, "rwc")
        elif read_only:
            self._db, self._copy = open_to_look(path, _connect)
        else:
            self._db = open_to_drive(path, _connect)
        self._chosen = ""  # a condition on what is pending
        self.has_needs = False
        try:
            if create:
                self._db.executescript(SCHEMA)
            version: int = self._db.execute(_VERSION).fetchone()[0]
            _check_version(version, path)
            check(self._db, path)
        except sqlite3.DatabaseError as fault:
            self.close()
            raise CampaignError(f"{path} is damaged: {fault}") from None
        except CampaignError:
            self.close()
            raise
        self._db.execute("PRAGMA synchronous = FULL")
        if not read_only and not self._has_stages():  # made by an earlier version
            self._db.executescript(STAGES_SCHEMA)
        self.look_for_needs()

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, kind: type[_Row], found: Iterable[tuple[Any, ...]]) -> list[_Row]:
        rows = []
        for row in found:
            try:
                rows.append(kind.of(row))
            except ValueError as fault:
                raise self._damaged(f"{row[0]!r}: {fault}") from None
        return rows

    def _held_to(self, kinds: tuple[Any, ...], columns: str, source: str) -> list[Any]:
        """Rows of a table, whose values must be of these kinds."""
        found = self._db.execute(f"SELECT {columns} FROM {source}").fetchall()  # noqa: S608  no outside text
        for row in found:
            try:
                check_kinds(row, kinds, columns)
            except ValueError as fault:
                raise self._damaged(f"{source.partition(' ')[0]}: {fault}") from None
        return found

    def snapshot(self) -> bytes:
        """The whole ledger as the bytes of a SQLite file; outside of a transaction."""
        return bytes(self._db.serialize())

    def transaction(self) -> _Transaction:
        """`with ledger.transaction():` all of it or nothing."""
        return _Transaction(self._db)

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
            self.add_needs({run.id: run.needs for job in plan.jobs for run in job.runs if run.needs})
            self.look_for_needs()
            self._db.executemany(
                "INSERT INTO absent VALUES (?, ?, ?)",
                ((a.what, a.reason, len(a.run_ids)) for a in plan.absent),
            )

    def runs(self, where: str = "1", parameters: Sequence[Any] = ()) -> list[RunRow]:
        """Runs in the plan's order; `where` is SQL of nsw's own, never of a user's."""
        query = f"SELECT {RunRow.COLUMNS} FROM runs WHERE {where} ORDER BY seq"  # noqa: S608  no outside text
        return self._rows(RunRow, self._db.execute(query, parameters))

    def runs_named(self, ids: Sequence[str]) -> list[RunRow]:
        """The runs of these ids, in the plan's order."""
        found: list[RunRow] = []
        for at in range(0, len(ids), _SOME):
            some = ids[at : at + _SOME]
            found += self.runs(f"id IN ({','.join('?' * len(some))})", some)
        return found

    def names(self, begin: str, most: int, *, of: str = "id", states: Sequence[str] = ()) -> list[str]:
        """The ids of runs (or, `of` case_id, of cases) that begin so, the first of them in the plan's order.

        With `states` only runs in one of these, and those that lack a required figure.
        """
        among = f" AND (state IN ({','.join('?' * len(states))}) OR reading = 'incomplete')" if states else ""
        found = self._db.execute(
            f"SELECT {of} FROM runs WHERE substr({of}, 1, ?) = ?{among} GROUP BY {of} ORDER BY min(seq) LIMIT ?",  # noqa: S608
            (len(begin), begin, *states, most),
        )
        return [name for (name,) in found]

    def absent(self) -> list[tuple[str, str, int]]:
        """What was asked and could not be done here: what, why, how many runs."""
        return self._held_to((str, str, int), "what, reason, runs", "absent")

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        found = dict(self._db.execute("SELECT state, count(*) FROM runs GROUP BY state").fetchall())
        if strange := [state for state in found if state not in set(State)]:
            raise self._damaged(f"{strange[0]!r} is no state of a run")
        return found

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """What is submitted and has not begun: state, why it waits, the first such run, how many there are."""
        found = self._db.execute(
            "SELECT state, reason, id, count(*), min(seq) FROM runs"
            " WHERE state IN ('intent', 'submitted', 'queued') GROUP BY state, reason ORDER BY min(seq)"
        )
        return [(State(state), reason, id_, count) for state, reason, id_, count, _ in found]

    def pending_tasks(self, limit: int) -> list[tuple[str, int, int, int]]:
        """The next tasks with runs to submit: job, task, the next attempt, GPUs at the same time."""
        # runs are inserted task by task: the first rows name the next tasks without looking at all of them;
        # the attempt is new to all runs of the task, also to those that are over, since submissions are named by it
        return self._db.execute(
            "SELECT job, task, (SELECT max(attempt) + 1 FROM runs r WHERE r.job = p.job AND r.task = p.task),"  # noqa: S608  no outside text
            f" max(gpus) FROM (SELECT * FROM runs WHERE state = 'planned'{self._chosen}{self._ready}"
            " ORDER BY seq LIMIT ?) p"
            " GROUP BY job, task ORDER BY min(seq)",
            (limit,),
        ).fetchall()

    def look_for_needs(self) -> None:
        """See whether any run waits for an earlier stage: a campaign without stages is not slowed by them."""
        self.has_needs = self._has_stages() and self._db.execute("SELECT 1 FROM needs LIMIT 1").fetchone() is not None

    @property
    def _ready(self) -> str:
        return READY if self.has_needs else ""

    def next_attempt(self, job: str, task: int) -> int:
        """The number of a task's next attempt."""
        found: int = self._db.execute(
            "SELECT max(attempt) + 1 FROM runs WHERE job = ? AND task = ?", (job, task)
        ).fetchone()[0]
        return found

    def runs_per_task(self) -> int:
        """The most runs that one task holds."""
        found = self._db.execute("SELECT max(n) FROM (SELECT count(*) n FROM runs GROUP BY job, task)").fetchone()[0]
        return found or 1

    def flying(self, submission: Submission) -> list[Flying]:
        """The runs and builds of a submission that are not over."""
        first, last = submission.tasks[0], submission.tasks[-1]
        # by job and task, of which there is an index
        found = self._db.execute(
            " UNION ALL ".join(
                f"SELECT id, job, task, attempt, state, reason, {table == 'builds':d}"  # noqa: S608  no outside text
                f" FROM {table} WHERE job = ?1 AND task BETWEEN ?2 AND ?3 AND submission = ?4"
                " AND state IN ('intent', 'submitted', 'queued', 'running')"
                for table in _TABLES
            ),
            (submission.job, first, last, submission.name),
        )
        return [
            Flying(id_, job, task, attempt, State(state), reason, bool(build))
            for id_, job, task, attempt, state, reason, build in found
        ]

    def has_planned(self) -> bool:
        """Whether any run waits to be submitted."""
        found = self._db.execute(f"SELECT 1 FROM runs WHERE state = 'planned'{self._chosen} LIMIT 1")  # noqa: S608
        return found.fetchone() is not None

    def choose(self, ids: Iterable[str]) -> None:
        """As long as the ledger is open, only the tasks of these runs are pending; others stay planned."""
        self._db.execute("CREATE TEMP TABLE chosen (job TEXT, task INTEGER, PRIMARY KEY (job, task))")
        self._db.executemany(
            "INSERT OR IGNORE INTO chosen SELECT job, task FROM runs WHERE id = ?", ((id_,) for id_ in ids)
        )
        self._chosen = " AND (job, task) IN (SELECT job, task FROM chosen)"

    def planned_in(self, jobs: Collection[str]) -> list[tuple[str, str]]:
        """The runs of these jobs that wait to be submitted: id and job."""
        marks = ",".join("?" * len(jobs))
        found = self._db.execute(
            f"SELECT id, job FROM runs WHERE state = 'planned' AND job IN ({marks}) ORDER BY seq",  # noqa: S608
            tuple(jobs),
        )
        return found.fetchall()

    def waiting(self) -> list[str]:
        """The runs that no scheduler has, as far as is known: their ids, in the plan's order."""
        found = self._db.execute("SELECT id FROM runs WHERE state IN ('planned', 'intent') ORDER BY seq")
        return [id_ for (id_,) in found]

    def unread(self) -> int:
        """How many runs have reports that wait to be read."""
        found: int = self._db.execute(
            "SELECT count(*) FROM runs WHERE reading = 'collected' AND state IN ('done', 'failed')"
        ).fetchone()[0]
        return found

    def incomplete(self) -> int:
        """How many runs are done and printed no value for a required figure."""
        found: int = self._db.execute(
            "SELECT count(*) FROM runs WHERE state = 'done' AND reading = 'incomplete'"
        ).fetchone()[0]
        return found

    def update_runs(self, ids: Iterable[str], **values: Any) -> None:
        """Set columns of runs."""
        self._update("runs", ids, values)

    def _update(self, table: str, ids: Iterable[str], values: Mapping[str, Any]) -> None:
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.executemany(
            f"UPDATE {table} SET {names} WHERE id = ?",  # noqa: S608  names of columns
            [(*values.values(), one) for one in ids],
        )

    def release(self, ids: Iterable[str]) -> None:
        """Plan these runs again; their earlier attempts keep their folders."""
        self.update_runs(
            ids, state=State.PLANNED, reason=None, exit_code=None, started=None, ended=None, submission=None,
            reading=Reading.NONE,
        )  # fmt: skip

    # --- builds -----------------------------------------------------------------------------------------

    def add_builds(self, builds: Iterable[BuildRow]) -> None:
        """Write down what will be built."""
        self._db.executemany(
            "INSERT INTO builds (id, job, app, place, command, seconds_limit, gpus, needed_by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (b.id, b.job, b.app, b.place, b.command, b.seconds_limit, b.gpus, json.dumps(b.needed_by))
                for b in builds
            ],
        )

    def builds(self) -> list[BuildRow]:
        """All builds, in the plan's order."""
        found = self._db.execute(f"SELECT {BuildRow.COLUMNS} FROM builds ORDER BY seq")  # noqa: S608  no outside text
        return self._rows(BuildRow, found)

    def update_builds(self, ids: Iterable[str], **values: Any) -> None:
        """Set columns of builds."""
        self._update("builds", ids, values)

    def release_builds(self, ids: Iterable[str]) -> None:
        """Plan these builds again."""
        self.update_builds(
            ids, state=State.PLANNED, reason=None, exit_code=None, host=None, started=None, ended=None, submission=None
        )

    def jobs_in(self, *states: State) -> set[str]:
        """The jobs with runs in one of these states."""
        marks = ",".join("?" * len(states))
        found = self._db.execute(f"SELECT DISTINCT job FROM runs WHERE state IN ({marks})", states)  # noqa: S608
        return {job for (job,) in found}

    # --- submissions ------------------------------------------------------------------------------------

    def intend(self, submission: Submission) -> None:
        """Write down that this will be submitted, before it is."""
        with self.transaction():
            self._db.execute(
                "INSERT INTO submissions (name, job, tasks, attempt, gpus, state, created)"
                " VALUES (?, ?, ?, ?, ?, 'intent', ?)",
                (
                    submission.name,
                    submission.job,
                    json.dumps(submission.tasks),
                    submission.attempt,
                    submission.gpus,
                    time.time(),
                ),
            )
            for table in _TABLES:
                self._db.executemany(
                    f"UPDATE {table} SET state = 'intent', attempt = ?, submission = ?"  # noqa: S608  no outside text
                    " WHERE job = ? AND task = ? AND state = 'planned'",
                    [(submission.attempt, submission.name, submission.job, task) for task in submission.tasks],
                )

    def submitted(self, submission: Submission, native_id: str) -> None:
        """Write down the scheduler's id."""
        with self.transaction():
            self._db.execute(
                "UPDATE submissions SET native_id = ?, state = 'submitted' WHERE name = ?",
                (native_id, submission.name),
            )
            self._of_intent(submission, "state = 'submitted'")

    def withdraw(self, submission: Submission) -> None:
        """A submission that never reached the scheduler: its runs are planned again, the attempt is not used."""
        with self.transaction():
            self._of_intent(submission, "state = 'planned', submission = NULL, attempt = attempt - 1")
            self._db.execute("DELETE FROM submissions WHERE name = ? AND state = 'intent'", (submission.name,))

    def _of_intent(self, submission: Submission, setting: str) -> None:
        for table in _TABLES:
            self._db.execute(
                f"UPDATE {table} SET {setting}"  # noqa: S608  no outside text
                " WHERE job = ? AND task BETWEEN ? AND ? AND submission = ? AND state = 'intent'",
                (submission.job, submission.tasks[0], submission.tasks[-1], submission.name),
            )

    def finish_submission(self, name: str) -> None:
        """All tasks of it have ended."""
        self._db.execute("UPDATE submissions SET state = 'ended' WHERE name = ?", (name,))

    def native_id(self, name: str) -> str | None:
        """The scheduler's id of a submission."""
        row = self._db.execute("SELECT native_id FROM submissions WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def native_ids(self) -> dict[str, str | None]:
        """The scheduler's id of every submission, by its name."""
        return dict(self._db.execute("SELECT name, native_id FROM submissions").fetchall())

    def submissions(self, state: str, script: Mapping[str, Path]) -> list[Submission]:
        """Submissions in a state (intent, submitted, ended), oldest first; `script` gives each job's script."""
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

    # --- problems ---------------------------------------------------------------------------------------

    def set_problems(self, run: str, problems: Iterable[tuple[str | None, str, str, str | None]]) -> None:
        """Replace what is known to be wrong with a run's reports: report, severity, message, fix."""
        self._db.execute("DELETE FROM problems WHERE run = ?", (run,))
        self._db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?, ?)", [(run, *p) for p in problems])

    def problems(self) -> list[tuple[str, str | None, str, str, str | None]]:
        """Run, report, severity, message, fix."""
        columns, joined = "p.run, p.report, p.severity, p.message, p.fix", "problems p JOIN runs r ON r.id = p.run"
        kinds = (str, MAYBE_TEXT, str, str, MAYBE_TEXT)
        return self._held_to(kinds, columns, f"{joined} ORDER BY r.seq, p.rowid")


class _Transaction:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._outer = not db.in_transaction

    def __enter__(self) -> None:
        if self._outer:
            self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._outer:
            return
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error:
                self._take_back()
                raise
        else:
            self._take_back()

    def _take_back(self) -> None:
        if self._db.in_transaction:  # after some faults, such as a full disk, SQLite has taken it back by itself
            self._db.execute("ROLLBACK")
