"""The campaign's durable state: one SQLite file with a row a task, a need and a submission.

A rollback journal, no WAL: campaigns live on NFS and Lustre too. Intent is committed (and synced) before
anything is submitted; what follows from files that still exist (done, collected, read) may be written late.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from nsw.engine import ledger_rows
from nsw.engine.ledger_file import OF_CONNECTION, as_campaign_error, dump, open_ledger, restore
from nsw.engine.ledger_rows import Choice, Doomed, Key, Kind, NeedReason, Problem, Reason, RunRow, State, TaskInFlight
from nsw.errors import CampaignError
from nsw.wording import escape_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from nsw.plan.model import Job, Plan
    from nsw.schedulers.model import Submission

__all__ = ["Ledger"]

T = TypeVar("T")
# Rows are inserted task by task: the first ones name the next tasks without looking at all of them. The attempt is new
# to all of the task, also to those that are over, since submissions are named by it. A build goes only if a run that
# may go needs it; a task goes if it holds nothing that still waits (a packed task holds one stage), but for a build
# whose job the batch system makes it wait for. CROSS JOIN and + keep SQLite from going over all open needs for each.
_PENDING: Final = """
SELECT job, task, (SELECT max(attempt) + 1 FROM tasks r WHERE r.job = p.job AND r.task = p.task) AS attempt,
  max(gpus) AS gpus
FROM (
  SELECT * FROM tasks t WHERE kind = :kind AND state = 'planned' AND place = coalesce(:place, place)
  AND NOT EXISTS (SELECT 1 FROM passed_over o WHERE o.job = t.job AND o.task = t.task)
  AND (kind <> 'build' OR EXISTS (
    SELECT 1 FROM needs n JOIN tasks r ON r.id = n.task WHERE n.source = t.id AND r.state = 'planned'
    AND NOT EXISTS (SELECT 1 FROM passed_over o WHERE o.job = r.job AND o.task = r.task)))
  AND NOT EXISTS (
    SELECT 1 FROM tasks w CROSS JOIN needs n ON n.task = w.id WHERE w.job = t.job AND w.task = t.task
    AND w.state = 'planned' AND +n.state = 'open' AND n.source <> w.id
    AND NOT (:leave_builds AND n.why = 'build' AND n.source IN (SELECT id FROM submitted_builds WHERE place = 'job')))
  ORDER BY seq LIMIT :limit
) p GROUP BY job, task ORDER BY min(seq)
"""


class _LedgerFile:
    """The open file of a ledger, and how rows are read from it.

    Args:
        path: The file; it must exist unless it is made by `create`.
        create: Make it.
        read_only: Look, and change nothing.
        state: What `dump` gave of a ledger, to be held in memory; `path` is the file that it came from.
    """

    def __init__(
        self, path: Path, *, create: bool = False, read_only: bool = False, state: bytes | None = None
    ) -> None:
        if state is None and not create and not path.is_file():
            wrong = "is not a file" if path.exists() else "is missing"
            raise CampaignError(f"{path.parent} is not a campaign: {path.name} {wrong}")
        self._path = path
        self._created = create
        if state is None:
            self._db = open_ledger(path, create=create, read_only=read_only)
        else:
            self._db = sqlite3.connect(":memory:", isolation_level=None)
            try:
                restore(self._db, state, path)
                self._db.executescript(OF_CONNECTION)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, fault: object, trace: object) -> None:
        """Close the file.

        Raises:
            CampaignError: The block ended since SQLite could not read or write the file, such as on a full disk.
        """
        self.close()
        if isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.ProgrammingError):
            raise as_campaign_error(fault, self._path, creating=self._created) from None

    def snapshot(self) -> bytes:
        """The whole ledger as the bytes of a SQLite file; outside of a transaction."""
        return bytes(self._db.serialize())

    def dump(self) -> str:
        """All tables as JSON, of which `state` makes a ledger again."""
        return dump(self._db)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """`with ledger.transaction():` all of it or nothing; one within another is part of it."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # after some faults, such as a full disk, SQLite has taken it back by itself
                self._db.execute("ROLLBACK")
            raise

    def _query_rows(self, kind: Callable[..., T], query: str, values: Any = ()) -> list[T]:
        """Rows as a type whose fields are named as the columns."""
        cursor = self._db.execute(query, values)
        return list(map(ledger_rows.row_reader(kind, [name for name, *_ in cursor.description]), cursor))

    def _query_column(self, query: str, values: Any = ()) -> list[Any]:
        return [first for first, *_ in self._db.execute(query, values)]

    def _query_value(self, query: str, values: Any = ()) -> Any:
        """The first value of the first row; None where there is none."""
        row = self._db.execute(query, values).fetchone()
        return row[0] if row else None

    def _query_count(self, query: str) -> int:
        return int(self._query_value(query))


class _Facts(_LedgerFile):
    """Facts of the campaign and of its reports: all ask."""

    def meta(self, key: Key[T]) -> T:
        """A fact of the campaign."""
        return key.parse(self._query_value("SELECT value FROM meta WHERE key = ?", (key.name,)) or "")

    def set_meta(self, key: Key[T], value: T) -> None:
        """Write a fact of the campaign."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key.name, key.text(value)))

    def site(self) -> dict[str, Any]:
        """The site as it was when the campaign began, as data."""
        return self.meta(ledger_rows.SITE_DATA)

    def has_login_shell(self) -> bool:
        """Whether jobs of the campaign's site start in a login shell."""
        return bool(self.site().get("login_shell"))

    def created(self) -> float:
        """When the campaign began, in Unix seconds."""
        return self.meta(ledger_rows.CREATED)

    def calls(self) -> dict[str, int]:
        """How often each command of the scheduler was run for this campaign."""
        return self.meta(ledger_rows.CALLS)

    def set_calls(self, calls: Mapping[str, int]) -> None:
        """Write that down."""
        self.set_meta(ledger_rows.CALLS, dict(calls))

    def withdrawals(self, task: str) -> int:
        """How often nsw withdrew an attempt of this run or build and submitted it again."""
        return self.meta(ledger_rows.withdrawals_of(task))

    def count_withdrawal(self, task: str) -> None:
        """One more."""
        self.set_meta(ledger_rows.withdrawals_of(task), self.withdrawals(task) + 1)

    def absent(self) -> list[ledger_rows.Absent]:
        """What was asked and could not be done here."""
        return self._query_rows(ledger_rows.Absent, "SELECT * FROM absent")

    def set_problems(
        self, run: str, problems: Iterable[tuple[str | None, str, str, str | None]], not_as_asked: Collection[str] = ()
    ) -> None:
        """Replace what is known to be wrong with a run's reports: report, severity, message, fix.

        `not_as_asked` are the messages of counters that were asked for and not measured.
        """
        self._db.execute("DELETE FROM problems WHERE run = ?", (run,))
        rows = [
            (run, *(text and escape_surrogates(text) for text in problem), problem[2] in not_as_asked)
            for problem in problems
        ]
        self._db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?, ?, ?)", rows)

    def problems(self) -> list[Problem]:
        """What is known to be wrong with reports, in the plan's order."""
        return self._query_rows(
            Problem, "SELECT p.* FROM problems p JOIN tasks r ON r.id = p.run ORDER BY r.seq, p.rowid"
        )

    def not_as_asked(self) -> list[Problem]:
        """Those of counters that were asked for and not measured."""
        return self._query_rows(
            Problem,
            "SELECT p.* FROM problems p JOIN tasks r ON r.id = p.run WHERE p.not_as_asked ORDER BY r.seq, p.rowid",
        )


class _Tasks(_LedgerFile):
    """Which runs, builds and reductions there are: all ask."""

    def runs(self, *, states: Iterable[State] = State, reading: ledger_rows.Reading | None = None) -> list[RunRow]:
        """Runs in the plan's order: all, or those in these states, with reports that are so."""
        return self._query_tasks(Kind.RUN, states, reading)

    def runs_of(self, job: str, tasks: Sequence[int]) -> list[RunRow]:
        """The runs in these tasks of a job, in the plan's order."""
        return self._query_rows(
            RunRow,
            "SELECT * FROM tasks WHERE kind = 'run' AND job = ? AND task IN (SELECT value FROM json_each(?))"
            " ORDER BY seq",
            (job, _as_json_list(tasks)),
        )

    def runs_named(self, ids: Iterable[str]) -> list[RunRow]:
        """The runs of these ids, in the plan's order."""
        return self._query_rows(
            RunRow,
            "SELECT * FROM tasks WHERE kind = 'run' AND id IN (SELECT value FROM json_each(?)) ORDER BY seq",
            (_as_json_list(ids),),
        )

    def reductions(self, states: Iterable[State] = State, run_ids: Collection[str] | None = None) -> list[RunRow]:
        """The reductions in these states, in the plan's order: all, or those of some runs."""
        rows = self._query_tasks(Kind.REDUCTION, states, None)
        if run_ids is None or not rows:
            return rows
        from nsw.plan.model import REDUCTION

        return [row for row in rows if row.id.removesuffix(REDUCTION) in run_ids]

    def _query_tasks(self, kind: Kind, states: Iterable[State], reading: ledger_rows.Reading | None) -> list[RunRow]:
        return self._query_rows(
            RunRow,
            "SELECT * FROM tasks WHERE kind = ? AND state IN (SELECT value FROM json_each(?))"
            " AND reading = coalesce(?, reading) ORDER BY seq",
            (kind, _as_json_list(states), reading),
        )

    def builds(self) -> list[ledger_rows.BuildRow]:
        """All builds, in the plan's order."""
        return self._query_rows(ledger_rows.BuildRow, "SELECT * FROM tasks WHERE kind = 'build' ORDER BY seq")

    def has_reductions(self) -> bool:
        """Whether there is any: a campaign without is not slowed by them."""
        return self._query_value("SELECT 1 FROM tasks WHERE kind = 'reduction' LIMIT 1") is not None

    def has_login_tasks(self) -> bool:
        """Whether tasks are done on the site's login node."""
        return self._query_value("SELECT 1 FROM tasks WHERE kind <> 'run' AND place = 'login' LIMIT 1") is not None

    def job_place(self, job: str) -> str:
        """Whether a job is done on the login node (`login`) or by the scheduler (`job`)."""
        return self._query_value("SELECT place FROM tasks WHERE job = ? LIMIT 1", (job,)) or "job"

    def runs_per_task(self) -> int:
        """The most runs that one task holds."""
        return self._query_value("SELECT max(n) FROM (SELECT count(*) n FROM tasks GROUP BY job, task)") or 1

    def names(self, begin: str, limit: int, *, column: str = "id", states: Iterable[str] = State) -> list[str]:
        """The ids of runs (or, with the column case_id, of cases) that begin so, the first of them in the plan's order.

        With `states` only runs in one of these, and those that lack a required figure or a report.
        """
        return self._query_column(
            "SELECT CASE :of WHEN 'case_id' THEN case_id ELSE id END AS name FROM tasks"
            " WHERE kind = 'run' AND substr(name, 1, length(:begin)) = :begin"
            " AND (state IN (SELECT value FROM json_each(:states)) OR reading IN ('incomplete', 'unreadable'))"
            " GROUP BY name ORDER BY min(seq) LIMIT :most",
            {"of": column, "begin": begin, "states": _as_json_list(states), "most": limit},
        )


class _Plan(_Tasks):
    """What a campaign is begun or extended with: start and changes ask."""

    def add_plan(self, plan: Plan) -> None:
        """Write all runs of a plan, the builds that they need, and what it could not do."""
        with self.transaction():
            self.add_part(plan)
            absent = [(a.what, a.reason, len(a.run_ids)) for a in plan.absent]
            self._db.executemany("INSERT INTO absent VALUES (?, ?, ?)", absent)

    def add_part(self, plan: Plan) -> None:
        """Write a part of a plan to the others: new runs, and those that move to its jobs, to be planned again."""
        runs = [run for job in plan.jobs for run in job.runs]
        with self.transaction():
            existing = {run.id for run in self.runs_named([run.id for run in runs])}
            self.add_tasks(Kind.BUILD, plan.builds)  # before the runs: they go first
            self.add_tasks(Kind.RUN, plan.jobs, but=existing)
            self._db.executemany(
                "UPDATE tasks SET params = ?, tool = ?, job = ?, task = ?, gpus = ?, reports = ?, app = ? WHERE id = ?",
                (
                    (json.dumps(r.params), r.tool, job.name, task, r.resources.gpus, json.dumps(r.reports), r.app, r.id)
                    for job in plan.jobs
                    for task, task_runs in enumerate(job.tasks)
                    for r in task_runs
                    if r.id in existing
                ),
            )
            self._db.executemany("DELETE FROM needs WHERE task = ? AND why = 'build'", [(run,) for run in existing])
            self._add_needs_of_builds(plan)
            self.add_needs(
                (run.id, run.needs, NeedReason.STAGE) for run in runs if run.needs and run.id not in existing
            )
            self._add_reductions(plan)

    def _add_needs_of_builds(self, plan: Plan) -> None:
        """Let runs wait for their builds, and for those of the runs that they share a task with."""
        built = {build.app: build.id for build in self.builds()}
        tasks = [task for job in plan.jobs for task in job.tasks]
        used = [sorted({built[run.app] for run in task if run.app in built}) for task in tasks]
        builds_of_tasks = zip(tasks, used, strict=True)
        self.add_needs(
            (run.id, build, NeedReason.BUILD) for task, builds in builds_of_tasks for run in task for build in builds
        )

    def _add_reductions(self, plan: Plan) -> None:
        """Write the reductions of a plan; those that are there already stay, with their scripts."""
        from nsw.plan.model import REDUCTION  # here, as below

        existing = {row.id for row in self.reductions()}
        self.add_tasks(Kind.REDUCTION, plan.reductions, but=existing)
        new = [run.id for job in plan.reductions for run in job.runs if run.id not in existing]
        self.add_needs((id_, id_.removesuffix(REDUCTION), NeedReason.RUN) for id_ in new)

    def add_tasks(self, kind: Kind, jobs: Iterable[Job], but: Collection[str] = ()) -> None:
        """Write the tasks of these jobs, but for some; what they need is written by `add_needs`."""
        from nsw.plan.jobs import command_of  # here: a read-only command on a ledger loads nothing of recipes

        self._db.executemany(
            "INSERT INTO tasks (kind, place, id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus,"
            " reports, app, command, seconds_limit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (kind, job.place, r.id, r.case_id, json.dumps(r.params), r.pass_name, r.pass_kind, r.tool,
                 r.repeat, job.name, task, r.resources.gpus, json.dumps(r.reports),
                 r.app, *((shlex.join(command_of(job)), r.resources.time_s) if job.build else (None, None)))
                for job in jobs for task, runs in enumerate(job.tasks) for r in runs if r.id not in but
            ),
        )  # fmt: skip

    def add_needs(self, needs: Iterable[tuple[str, str, NeedReason]]) -> None:
        """Write down that tasks wait: (task, source, why).

        The source is the id of a task; for a stage CASE.PASS, of which any repeat that was read will do.
        """
        self._db.executemany("INSERT INTO needs (task, source, why) VALUES (?, ?, ?)", needs)


class _Progress(_LedgerFile):
    """How far the campaign is: status, watch and the loop ask."""

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        return dict(self._db.execute("SELECT state, count(*) FROM tasks WHERE kind = 'run' GROUP BY state").fetchall())

    def first_start(self) -> float | None:
        """When the first run that is not planned again began, in Unix seconds."""
        started: float | None = self._query_value("SELECT min(started) FROM tasks WHERE kind = 'run'")
        return started

    def paces(self, now: float) -> list[ledger_rows.Pace]:
        """How many runs of each pass are in each state, and how long they took or take so far."""
        return self._query_rows(
            ledger_rows.Pace,
            "SELECT pass_name, state, count(*) AS runs, total(coalesce(ended, ?) - started) AS seconds,"
            " count(started) AS timed FROM tasks WHERE kind = 'run' GROUP BY pass_name, state",
            (now,),
        )

    def seconds_left(self, now: float, since: float = 0.0) -> float | None:
        """Seconds until the last run ends, by what runs took, and by how many went on at a time since some moment.

        Args:
            now: Unix seconds.
            since: Unix seconds: when the nsw that drives the campaign began; an earlier one may have ended long ago.
        """
        first, worked = self._db.execute(
            "SELECT min(max(started, :since)), total(coalesce(ended, :now) - max(started, :since)) FROM tasks"
            " WHERE kind = 'run' AND coalesce(ended, :now) > :since AND started IS NOT NULL",
            {"now": now, "since": since},
        ).fetchone()
        return ledger_rows.seconds_left(self.paces(now), worked / max(now - first, 1e-9) if first is not None else 0.0)

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """What is submitted and has not begun: state, why it waits, the first such run, how many there are."""
        query = (
            "SELECT state, cause, detail, id, count(*) AS runs, min(seq) FROM tasks WHERE kind = 'run'"
            " AND state IN ('intent', 'submitted', 'queued') GROUP BY state, cause, detail ORDER BY min(seq)"
        )
        waiting = self._query_rows(ledger_rows.Waiting, query)
        return [(row.state, str(Reason(row.detail, row.cause)) if row.detail is not None else None, row.id, row.runs)
                for row in waiting]  # fmt: skip

    def unread(self) -> int:
        """How many runs have reports that wait to be read."""
        return self._query_count(
            "SELECT count(*) FROM tasks WHERE kind = 'run' AND reading = 'collected' AND state IN ('done', 'failed')"
        )

    def incomplete(self) -> int:
        """How many runs are done and printed no value for a required figure."""
        return self._count_done(ledger_rows.Reading.INCOMPLETE)

    def unreadable(self) -> int:
        """How many runs are done and left reports that cannot be read."""
        return self._count_done(ledger_rows.Reading.UNREADABLE)

    def _count_done(self, reading: ledger_rows.Reading) -> int:
        query = "SELECT count(*) FROM tasks WHERE kind = 'run' AND state = 'done' AND reading = ?"
        return int(self._query_value(query, (reading,)))


class _Next(_LedgerFile):
    """What can be submitted next: submit and the loop ask."""

    def pending(
        self, limit: int, *, leave_builds: bool, location: str | None = None, kinds: Iterable[Kind] = Kind
    ) -> list[ledger_rows.Pending]:
        """The next tasks of jobs to submit, those first that others need.

        Args:
            limit: At most so many runs, and so many of each other kind, are looked at.
            leave_builds: The scheduler can be trusted to start a task only after its build.
            location: Only those that are done there: job or login.
            kinds: Which tasks.
        """
        parameters: dict[str, Any] = {"limit": limit, "leave_builds": leave_builds, "place": location}
        return [
            task
            for kind in kinds
            for task in self._query_rows(ledger_rows.Pending, _PENDING, {"kind": kind, **parameters})
        ]

    def choose(self, ids: Iterable[str]) -> None:
        """As long as the ledger is open, only the tasks of these runs are pending; others stay planned."""
        self._db.execute(
            "INSERT INTO passed_over SELECT DISTINCT job, task FROM tasks WHERE kind = 'run' AND (job, task) NOT IN"
            " (SELECT job, task FROM tasks WHERE id IN (SELECT value FROM json_each(?)))",
            (_as_json_list(ids),),
        )

    def has_planned(self) -> bool:
        """Whether any run waits to be submitted, or any reduction whose run is done."""
        row = self._query_value(
            "SELECT 1 FROM tasks t WHERE kind = 'run' AND state = 'planned' AND NOT EXISTS"
            " (SELECT 1 FROM passed_over o WHERE o.job = t.job AND o.task = t.task) LIMIT 1"
        )
        return row is not None or self.has_reductions_to_do()

    def has_reductions_to_do(self) -> bool:
        """Whether any reduction of a run that is done waits to be submitted."""
        row = self._query_value(
            "SELECT 1 FROM tasks t JOIN needs n ON n.task = t.id JOIN tasks s ON s.id = n.source"
            " WHERE t.kind = 'reduction' AND t.state = 'planned' AND n.why = 'run' AND s.state = 'done' LIMIT 1"
        )
        return row is not None

    def waiting(self) -> list[str]:
        """The runs and reductions that no scheduler has, as far as is known: their ids, in the plan's order."""
        return self._query_column(
            "SELECT id FROM tasks WHERE kind IN ('run', 'reduction') AND state IN ('planned', 'intent') ORDER BY seq"
        )

    def planned(self, ids: Iterable[str]) -> list[str]:
        """Those of these tasks that wait to be submitted."""
        return self._query_column(
            "SELECT id FROM tasks WHERE state = 'planned' AND id IN (SELECT value FROM json_each(?)) ORDER BY seq",
            (_as_json_list(ids),),
        )


class _Ends(_LedgerFile):
    """What becomes of tasks: poll, collect, read and retry ask."""

    def update_tasks(self, ids: Iterable[str], **values: Any) -> None:
        """Set columns of tasks; `reason` is a Reason, or words that nsw never acts on."""
        if "reason" in values:
            reason = values.pop("reason")
            parsed = Reason(reason) if isinstance(reason, str) else reason
            values["detail"], values["cause"] = (
                (None, None) if parsed is None else (escape_surrogates(parsed.detail), parsed.cause)
            )
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.executemany(
            f"UPDATE tasks SET {names} WHERE id = ?",  # noqa: S608  names of columns
            [(*values.values(), id_) for id_ in ids],
        )

    def read_again(self, ids: Iterable[str]) -> None:
        """Let the reports of these runs be read again, which decides anew whether they are valid."""
        self._db.executemany("UPDATE tasks SET reading = 'collected' WHERE id = ?", [(id_,) for id_ in ids])
        self._db.execute(
            "UPDATE tasks SET state = 'done', detail = NULL WHERE state = 'invalid' AND reading = 'collected'"
        )

    def release(self, ids: Iterable[str]) -> None:
        """Plan these tasks again; their earlier attempts keep their folders."""
        self._db.executemany(
            "UPDATE tasks SET state = 'planned', cause = NULL, detail = NULL, exit_code = NULL, started = NULL,"
            " ended = NULL, submission = NULL, reading = 'none' WHERE id = ?",
            [(id_,) for id_ in ids],
        )

    def give_up_reductions(self) -> None:
        """Read runs whose reductions were cancelled without them."""
        self._db.execute(
            "UPDATE tasks SET reading = 'collected' WHERE kind = 'run' AND state = 'done' AND reading = 'none'"
            " AND id IN (SELECT n.source FROM needs n JOIN tasks r ON r.id = n.task WHERE r.kind = 'reduction'"
            " AND r.state = 'cancelled')"
        )


class _Submissions(_LedgerFile):
    """What the scheduler has, and what is in doubt: submit and poll ask."""

    def record_intent(self, submission: Submission) -> None:
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

    def record_native_id(self, submission: Submission, native_id: str) -> None:
        """Write down the scheduler's id."""
        with self.transaction():
            self._db.execute(
                "UPDATE submissions SET native_id = ?, state = 'submitted' WHERE name = ?",
                (native_id, submission.name),
            )
            self._db.execute(
                "UPDATE tasks SET state = 'submitted',"
                " detail = CASE WHEN cause = 'doubt' THEN NULL ELSE detail END,"
                " cause = CASE WHEN cause = 'doubt' THEN NULL ELSE cause END"
                " WHERE job = ? AND task BETWEEN ? AND ? AND submission = ? AND state = 'intent'",
                _task_range(submission),
            )

    def record_doubt(self, submission: Submission, reason: str, since: float) -> None:
        """Write down why it is not known whether the scheduler has it, until it is; `since` is in Unix seconds."""
        first_try = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(since))
        self._db.execute(
            "UPDATE tasks SET cause = 'doubt', detail = ? WHERE job = ? AND submission = ? AND state = 'intent'",
            (f"{first_try}: {reason}", submission.job, submission.name),
        )

    def withdraw(self, submission: Submission, *, unfound: bool = False) -> None:
        """A submission that did not reach the scheduler: its tasks are planned again, the attempt is not used.

        One that was `unfound` after doubt may still arrive there: `doubtful` remembers it.
        """
        with self.transaction():
            self._db.execute(
                "UPDATE tasks SET state = 'planned', submission = NULL, attempt = attempt - 1"
                " WHERE job = ? AND task BETWEEN ? AND ? AND submission = ? AND state = 'intent'",
                _task_range(submission),
            )
            if unfound:
                self._db.execute("UPDATE submissions SET state = 'unfound' WHERE name = ?", (submission.name,))
            else:
                self._db.execute("DELETE FROM submissions WHERE name = ? AND state = 'intent'", (submission.name,))

    def doubtful(self) -> list[TaskInFlight]:
        """The tasks that wait here and whose next or present attempt the scheduler may have all the same."""
        return self._query_rows(
            TaskInFlight,
            "SELECT t.id, t.job, t.task, s.attempt, t.state, t.cause, t.detail, t.kind FROM submissions s JOIN tasks t"
            " ON t.job = s.job AND t.attempt = s.attempt AND t.state = 'intent' AND s.state = 'intent'"
            " OR t.job = s.job AND t.attempt = s.attempt - 1 AND t.state = 'planned' AND s.state = 'unfound'"
            " WHERE t.task IN (SELECT value FROM json_each(s.tasks))",
        )

    def finish_submission(self, name: str) -> None:
        """All tasks of it have ended."""
        self._db.execute("UPDATE submissions SET state = 'ended' WHERE name = ?", (name,))

    def tasks_in_flight(self, submission: Submission) -> list[TaskInFlight]:
        """The runs, builds and reductions of a submission that are not over."""
        # by job and task, of which there is an index
        return self._query_rows(
            TaskInFlight,
            "SELECT id, job, task, attempt, state, cause, detail, kind FROM tasks"
            " WHERE job = ? AND task BETWEEN ? AND ? AND submission = ?"
            " AND state IN ('intent', 'submitted', 'queued', 'running')",
            _task_range(submission),
        )

    def native_id(self, name: str) -> str | None:
        """The scheduler's id of a submission."""
        native_id: str | None = self._query_value("SELECT native_id FROM submissions WHERE name = ?", (name,))
        return native_id

    def native_ids(self) -> dict[str, str | None]:
        """The scheduler's id of every submission, by its name."""
        return dict(self._db.execute("SELECT name, native_id FROM submissions").fetchall())

    def submissions(self, state: str, script: Callable[[str], Path]) -> list[Submission]:
        """Submissions in a state (intent, submitted, ended), oldest first; `script` gives each job's script."""
        from nsw.schedulers.model import Submission  # here: who only looks at a ledger needs no scheduler

        rows = self._query_rows(
            ledger_rows.SubmissionRow, "SELECT * FROM submissions WHERE state = ? ORDER BY seq", (state,)
        )
        return [Submission(script=script(sent.job), **sent._asdict()) for sent in rows]


class _Needs(_LedgerFile):
    """Which tasks wait for builds and runs: stages ask."""

    def has_open_needs(self) -> bool:
        """Whether any need is not met: a campaign without needs is not slowed by them."""
        return self._query_value("SELECT 1 FROM needs WHERE state = 'open' LIMIT 1") is not None

    def meet_done(self) -> None:
        """Meet the needs of tasks that are done."""
        self._db.execute(
            "UPDATE needs SET state = 'met' WHERE state = 'open' AND why IN ('build', 'run')"
            " AND EXISTS (SELECT 1 FROM tasks s WHERE s.id = source AND s.state = 'done')"
        )

    def doomed(self, task: str | None = None) -> list[Doomed]:
        """The tasks, planned or in flight, whose source went wrong; of `task` alone also when it is over."""
        if task is not None:
            return self._query_rows(Doomed, "SELECT * FROM doomed WHERE task = ?", (task,))
        return self._query_rows(
            Doomed,
            "SELECT d.* FROM doomed d JOIN tasks w ON w.id = d.task"
            " WHERE w.state IN ('planned', 'intent', 'submitted', 'queued', 'running') ORDER BY w.seq",
        )

    def waiting_until_done(self, sources: Iterable[str]) -> set[str]:
        """The tasks that wait for any of these to be done."""
        ids = self._query_column(
            "SELECT task FROM needs WHERE source IN (SELECT value FROM json_each(?))"
            " AND state = 'open' AND why IN ('build', 'run')",
            (_as_json_list(sources),),
        )
        return set(ids)

    def unneeded(self) -> set[str]:
        """Builds in flight for which no task waits any more."""
        ids = self._query_column(
            "SELECT id FROM submitted_builds b WHERE NOT EXISTS (SELECT 1 FROM needs n JOIN tasks w ON w.id = n.task"
            " WHERE n.source = b.id AND w.state IN ('planned', 'intent', 'submitted', 'queued', 'running'))"
        )
        return set(ids)

    def needed_builds(self, state: State) -> set[str]:
        """The builds that runs in this state need."""
        ids = self._query_column(
            "SELECT n.source FROM needs n JOIN tasks r ON r.id = n.task WHERE n.why = 'build' AND r.state = ?", (state,)
        )
        return set(ids)

    def needed_by(self) -> dict[str, list[str]]:
        """The jobs whose runs need each build, by its id, in the plan's order."""
        pairs = self._db.execute(
            "SELECT n.source, w.job FROM needs n JOIN tasks w ON w.id = n.task WHERE n.why = 'build'"
            " GROUP BY n.source, w.job ORDER BY min(w.seq)"
        )
        return _group_pairs(pairs)

    def native_dependencies(self, job: str) -> tuple[str, ...]:
        """The scheduler's ids of the builds that a job's tasks must wait for."""
        native_ids = self._query_column(
            "SELECT DISTINCT b.native_id FROM needs n JOIN tasks w ON w.id = n.task"
            " JOIN submitted_builds b ON b.id = n.source WHERE w.job = ? AND n.why = 'build' AND b.place = 'job'",
            (job,),
        )
        return tuple(native_ids)


class _CanaryNeeds(_LedgerFile):
    """The run that all others need: stages ask."""

    def hold_for_canary(self) -> None:
        """Let all runs need the first that is to leave a report, else the first."""
        # all runs but those of its task; that it needs itself holds nothing, and keeps the verdict
        self._db.execute(
            "WITH canary AS (SELECT id, job, task FROM tasks WHERE kind = 'run' ORDER BY reports = '[]', seq LIMIT 1)"
            " INSERT INTO needs SELECT r.id, c.id, 'canary', 'open' FROM canary c JOIN tasks r"
            " WHERE r.kind = 'run' AND (r.id = c.id OR NOT (r.job = c.job AND r.task = c.task))"
        )

    def canary(self) -> tuple[str, ledger_rows.NeedState] | None:
        """The run that the others need, and what became of it; None where they need none, or no more."""
        row = self._db.execute(
            "SELECT source, state FROM needs WHERE why = 'canary' AND state IN ('open', 'refused') AND task = source"
        ).fetchone()
        return (row[0], ledger_rows.NeedState(row[1])) if row else None

    def record_canary_verdict(self, verdict: ledger_rows.NeedState) -> None:
        """Write down how it was judged."""
        self._db.execute("UPDATE needs SET state = ? WHERE why = 'canary' AND state <> 'met'", (verdict,))

    def waive_canary(self, runs: Iterable[str]) -> None:
        """A person wants these runs now, and those that share a task with them."""
        self._db.executemany(
            "UPDATE needs SET state = 'met' WHERE why = 'canary' AND task <> source AND task IN"
            " (SELECT w.id FROM tasks w JOIN tasks r ON r.job = w.job AND r.task = w.task WHERE r.id = ?)",
            [(run,) for run in runs],
        )

    def held_by_canary(self) -> int:
        """How many planned runs wait for it."""
        return self._query_count(
            "SELECT count(*) FROM needs n JOIN tasks w ON w.id = n.task"
            " WHERE n.why = 'canary' AND n.state <> 'met' AND n.task <> n.source AND w.state = 'planned'"
        )


class _StageNeeds(_LedgerFile):
    """Runs that wait for another pass, and what was chosen for them: stages and retry ask."""

    def waiting_for_stages(self) -> dict[str, list[str]]:
        """The planned runs that wait, by the CASE.PASS that they wait for, in the plan's order."""
        pairs = self._db.execute(
            "SELECT n.source, n.task FROM needs n JOIN tasks r ON r.id = n.task"
            " WHERE n.why = 'stage' AND n.state = 'open' AND r.state = 'planned' ORDER BY r.seq"
        )
        return _group_pairs(pairs)

    def source_runs(self, source: str) -> list[str]:
        """The runs of a CASE.PASS that are no warm-up, in the plan's order."""
        return self._query_column(
            "SELECT id FROM tasks WHERE kind = 'run' AND case_id || '.' || pass_name = ? AND repeat > 0 ORDER BY seq",
            (source,),
        )

    def release_stage(self, runs: Iterable[str]) -> None:
        """Nothing keeps these runs from being submitted any more."""
        self._db.executemany(
            "UPDATE needs SET state = 'met' WHERE task = ? AND why = 'stage'", [(run,) for run in runs]
        )

    def hold_reductions(self, reductions: Iterable[str]) -> None:
        """These wait again until their runs are done."""
        self._db.executemany(
            "UPDATE needs SET state = 'open' WHERE task = ? AND why = 'run'", [(id_,) for id_ in reductions]
        )

    def hold_stage(self, runs: Iterable[str]) -> None:
        """These runs wait for their source again, and lose their choice."""
        rows = [(run,) for run in runs]
        self._db.executemany("UPDATE needs SET state = 'open' WHERE task = ? AND why = 'stage'", rows)
        self._db.executemany("DELETE FROM choices WHERE run = ?", rows)

    def dependents(self, runs: Iterable[str]) -> list[str]:
        """The tasks that wait, or waited, for any of these runs, or for the CASE.PASS of one."""
        return self._query_column(
            "SELECT DISTINCT n.task FROM tasks s JOIN needs n ON (n.why = 'run' AND n.source = s.id)"
            " OR (n.why = 'stage' AND n.source = s.case_id || '.' || s.pass_name)"
            " WHERE s.id IN (SELECT value FROM json_each(?))",
            (_as_json_list(runs),),
        )

    def record_choice(self, run: str, choice: Choice) -> None:
        """Write down a choice."""
        self._db.execute(
            "INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?, ?, ?)",
            (run, json.dumps(choice.arguments), choice.limit_s, choice.source, time.time(), choice.note),
        )

    def choices(self) -> dict[str, Choice]:
        """What was chosen, by run."""
        rows = self._db.execute("SELECT run, arguments, limit_s, source, note FROM choices")
        return {run: Choice(tuple(json.loads(words)), *others) for run, words, *others in rows}


class Ledger(_Facts, _Plan, _Progress, _Next, _Ends, _Submissions, _Needs, _CanaryNeeds, _StageNeeds):
    """The open ledger of one campaign: its questions by who asks them, each group a class above."""


def _as_json_list(values: Iterable[object]) -> str:
    """Values for `IN (SELECT value FROM json_each(?))`."""
    return json.dumps(list(values))


def _task_range(submission: Submission) -> tuple[str, int, int, str]:
    """What selects the tasks of a submission by an index: job, first task, last task, name."""
    return submission.job, submission.tasks[0], submission.tasks[-1], submission.name


def _group_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
