"""Tasks in the ledger: runs, builds and reductions, which all go through the same states."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.estimate import Pace
from nsw.campaign.ledger_base import marks
from nsw.campaign.ledger_needs import LedgerNeeds, free
from nsw.campaign.ledger_rows import BuildRow, Kind, Reading, RunRow, State, Why

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from nsw.plan.model import Job, Plan

SOME: Final = 500  # values in one statement; SQLite's own limit was once 999

Pending = tuple[str, int, int, int]  # job, task, the next attempt, GPUs at the same time


class LedgerTasks(LedgerNeeds):
    """The table `tasks` of an open ledger."""

    _chosen = ""  # a condition on the runs that are pending
    _kinds: tuple[Kind, ...] | None = None  # of tasks that there are; only the nsw that drives the campaign adds some

    # --- what there is ------------------------------------------------------------------------------------

    def add_plan(self, plan: Plan) -> None:
        """Write all runs of a plan, the builds that they need, and what it could not do."""
        with self.transaction():
            self.add_tasks(Kind.BUILD, plan.builds)  # before the runs: they go first
            self.add_tasks(Kind.RUN, plan.jobs)
            built = {job.runs[0].app: job.runs[0].id for job in plan.builds}
            runs = [run for job in plan.jobs for run in job.runs]
            self.add_needs((run.id, built[run.app], Why.BUILD) for run in runs if run.app in built)
            self.add_needs((run.id, run.needs, Why.STAGE) for run in runs if run.needs)
            self._add_reductions(plan)
            self._db.executemany(
                "INSERT INTO absent VALUES (?, ?, ?)",
                ((a.what, a.reason, len(a.run_ids)) for a in plan.absent),
            )

    def add_part(self, plan: Plan) -> None:
        """Write a part of a plan to the others: new runs, and those that move to its jobs, to be planned again."""
        runs = [run for job in plan.jobs for run in job.runs]
        with self.transaction():
            known = {run.id for run in self.runs_named([run.id for run in runs])}
            self.add_tasks(Kind.BUILD, plan.builds)
            self.add_tasks(Kind.RUN, plan.jobs, but=known)
            self._db.executemany(
                "UPDATE tasks SET params = ?, tool = ?, job = ?, task = ?, gpus = ?, reports = ? WHERE id = ?",
                (
                    (json.dumps(r.params), r.tool, job.name, task, r.resources.gpus, json.dumps(r.reports), r.id)
                    for job in plan.jobs for task, some in enumerate(job.tasks) for r in some if r.id in known
                ),
            )  # fmt: skip
            self._db.executemany("DELETE FROM needs WHERE task = ? AND why = 'build'", [(run,) for run in known])
            built = {build.app: build.id for build in self.builds()}
            self.add_needs((run.id, built[run.app], Why.BUILD) for run in runs if run.app in built)
            self.add_needs((run.id, run.needs, Why.STAGE) for run in runs if run.needs and run.id not in known)
            self._add_reductions(plan)

    def _add_reductions(self, plan: Plan) -> None:
        """Write the reductions of a plan; those that are there already stay, with their scripts."""
        from nsw.plan.model import REDUCTION  # here, as below

        known = {row.id for row in self.reductions()}
        self.add_tasks(Kind.REDUCTION, plan.reductions, but=known)
        new = [one.id for job in plan.reductions for one in job.runs if one.id not in known]
        self.add_needs((id_, id_.removesuffix(REDUCTION), Why.RUN) for id_ in new)

    def add_tasks(self, kind: Kind, jobs: Iterable[Job], but: Collection[str] = ()) -> None:
        """Write the tasks of these jobs, but for some; what they need is written by `add_needs`."""
        from nsw.plan.jobs import command_of  # here: a read-only command on a ledger loads nothing of recipes

        self._kinds = None
        self._db.executemany(
            "INSERT INTO tasks (kind, place, id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus,"
            " reports, app, command, seconds_limit) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (kind, job.place, r.id, r.case_id, json.dumps(r.params), r.pass_name, r.pass_kind, r.tool,
                 r.repeat, job.name, task, r.resources.gpus, json.dumps(r.reports),
                 *((r.app, shlex.join(command_of(job)), r.resources.time_s) if job.build else (None, None, None)))
                for job in jobs for task, runs in enumerate(job.tasks) for r in runs if r.id not in but
            ),
        )  # fmt: skip

    def runs(
        self,
        *,
        states: Sequence[State] = tuple(State),
        reading: Reading | None = None,
        job: str | None = None,
        tasks: Sequence[int] | None = None,
    ) -> list[RunRow]:
        """Runs in the plan's order: all, or those in these states, with reports that are so, in tasks of a job."""
        where, values = ["kind = 'run'"], list[Any]()
        if len(states) < len(State):
            where.append(f"state IN ({marks(states)})")
            values += states
        if reading is not None:
            where.append("reading = ?")
            values.append(reading)
        if job is not None:
            where.append("job = ?")
            values.append(job)
        if tasks is not None:
            where.append(f"task IN ({marks(tasks)})")
            values += tasks
        return self._runs(" AND ".join(where), values)

    def done_with_a_word(self) -> list[RunRow]:
        """Runs that are done and have a reason all the same, such as that two jobs started them."""
        return self._runs("kind = 'run' AND state = 'done' AND reason IS NOT NULL", ())

    def _runs(self, where: str, values: Sequence[Any]) -> list[RunRow]:
        query = f"SELECT {RunRow.COLUMNS} FROM tasks WHERE {where} ORDER BY seq"  # noqa: S608  no outside text
        return self._rows(RunRow, self._db.execute(query, values))

    def runs_named(self, ids: Sequence[str]) -> list[RunRow]:
        """The runs of these ids, in the plan's order."""
        found: list[RunRow] = []
        for at in range(0, len(ids), SOME):
            some = ids[at : at + SOME]
            found += self._runs(f"kind = 'run' AND id IN ({marks(some)})", some)
        return found

    def reductions(self, states: Sequence[State] = tuple(State), of: Collection[str] | None = None) -> list[RunRow]:
        """The reductions in these states, in the plan's order: all, or those of some runs."""
        rows = self._runs(f"kind = 'reduction' AND state IN ({marks(states)})", states)
        if of is None or not rows:
            return rows
        from nsw.plan.model import REDUCTION

        return [row for row in rows if row.id.removesuffix(REDUCTION) in of]

    def give_up_reductions(self) -> None:
        """Read runs whose reductions were cancelled without them."""
        self._db.execute(
            "UPDATE tasks SET reading = 'collected' WHERE kind = 'run' AND state = 'done' AND reading = 'none'"
            " AND id IN (SELECT n.source FROM needs n JOIN tasks r ON r.id = n.task WHERE r.kind = 'reduction'"
            " AND r.state = 'cancelled')"
        )

    def has_reductions(self) -> bool:
        """Whether there is any: a campaign without is not slowed by them."""
        return self._db.execute("SELECT 1 FROM tasks WHERE kind = 'reduction' LIMIT 1").fetchone() is not None

    def has_login_tasks(self) -> bool:
        """Whether tasks are done on the site's login node."""
        found = self._db.execute("SELECT 1 FROM tasks WHERE kind <> 'run' AND place = 'login' LIMIT 1")
        return found.fetchone() is not None

    def place_of(self, job: str) -> str:
        """Where the tasks of a job are done: login or job."""
        row = self._db.execute("SELECT place FROM tasks WHERE job = ? LIMIT 1", (job,)).fetchone()
        return str(row[0]) if row else "job"

    def builds(self) -> list[BuildRow]:
        """All builds, in the plan's order."""
        query = f"SELECT {BuildRow.COLUMNS} FROM tasks WHERE kind = 'build' ORDER BY seq"  # noqa: S608
        return self._rows(BuildRow, self._db.execute(query))

    def needed_by(self) -> dict[str, list[str]]:
        """The jobs whose runs need each build, by its id, in the plan's order."""
        found = self._db.execute(
            "SELECT n.source, w.job FROM needs n JOIN tasks w ON w.id = n.task WHERE n.why = 'build'"
            " GROUP BY n.source, w.job ORDER BY min(w.seq)"
        )
        jobs: dict[str, list[str]] = {}
        for build, job in found:
            jobs.setdefault(build, []).append(job)
        return jobs

    def names(self, begin: str, most: int, *, of: str = "id", states: Sequence[str] = ()) -> list[str]:
        """The ids of runs (or, `of` case_id, of cases) that begin so, the first of them in the plan's order.

        With `states` only runs in one of these, and those that lack a required figure or a report.
        """
        among = f" AND (state IN ({marks(states)}) OR reading IN ('incomplete', 'unreadable'))" if states else ""
        found = self._db.execute(
            f"SELECT {of} FROM tasks WHERE kind = 'run' AND substr({of}, 1, ?) = ?{among}"  # noqa: S608
            f" GROUP BY {of} ORDER BY min(seq) LIMIT ?",
            (len(begin), begin, *states, most),
        )
        return [name for (name,) in found]

    def counts(self) -> dict[str, int]:
        """How many runs are in each state."""
        found = dict(self._db.execute("SELECT state, count(*) FROM tasks WHERE kind = 'run' GROUP BY state").fetchall())
        if strange := [state for state in found if state not in set(State)]:
            raise self._damaged(f"{strange[0]!r} is not a state of a run")
        return found

    def began(self) -> float | None:
        """When the first run that is not planned again began, in Unix seconds."""
        found: float | None = self._db.execute("SELECT min(started) FROM tasks WHERE kind = 'run'").fetchone()[0]
        return found

    def paces(self, now: float) -> list[Pace]:
        """How many runs of each pass are in each state, and how long they took or take so far."""
        found = self._db.execute(
            "SELECT pass_name, state, count(*), total(coalesce(ended, ?1) - started), count(started)"
            " FROM tasks WHERE kind = 'run' GROUP BY pass_name, state",
            (now,),
        )
        return [Pace(name, State(state), runs, seconds, timed) for name, state, runs, seconds, timed in found]

    def why_waiting(self) -> list[tuple[State, str | None, str, int]]:
        """What is submitted and has not begun: state, why it waits, the first such run, how many there are."""
        found = self._db.execute(
            "SELECT state, reason, id, count(*), min(seq) FROM tasks WHERE kind = 'run'"
            " AND state IN ('intent', 'submitted', 'queued') GROUP BY state, reason ORDER BY min(seq)"
        )
        return [(State(state), reason, id_, count) for state, reason, id_, count, _ in found]

    def unread(self) -> int:
        """How many runs have reports that wait to be read."""
        found: int = self._db.execute(
            "SELECT count(*) FROM tasks WHERE kind = 'run' AND reading = 'collected' AND state IN ('done', 'failed')"
        ).fetchone()[0]
        return found

    def incomplete(self) -> int:
        """How many runs are done and printed no value for a required figure."""
        return self._done_and("incomplete")

    def unreadable(self) -> int:
        """How many runs are done and left reports that cannot be read."""
        return self._done_and("unreadable")

    def _done_and(self, reading: str) -> int:
        found: int = self._db.execute(
            "SELECT count(*) FROM tasks WHERE kind = 'run' AND state = 'done' AND reading = ?", (reading,)
        ).fetchone()[0]
        return found

    # --- what comes next ----------------------------------------------------------------------------------

    def pending(
        self, limit: int, *, leave_builds: bool, place: str | None = None, kinds: Sequence[Kind] = tuple(Kind)
    ) -> list[Pending]:
        """The next tasks of jobs to submit, those first that others need.

        Args:
            limit: At most so many runs, and so many of each other kind, are looked at.
            leave_builds: The scheduler can be trusted to start a task only after its build.
            place: Only those that are done there: job or login.
            kinds: Which tasks.
        """
        free_ones = free(leave_builds=leave_builds) if self.any_waits() else ""
        if self._kinds is None:
            there = {kind for (kind,) in self._db.execute("SELECT DISTINCT kind FROM tasks")}
            self._kinds = tuple(kind for kind in Kind if kind in there)
        some = (kind for kind in self._kinds if kind in kinds)
        return [one for kind in some for one in self._pending(kind, limit, free_ones, place)]

    def _pending(self, kind: Kind, limit: int, free_ones: str, place: str | None) -> list[Pending]:
        there = f" AND t.place = '{place}'" if place else ""
        which = f"{self._chosen}{there}"
        if kind is Kind.BUILD:  # only if a run that may go needs it
            which = (
                f"{there} AND EXISTS (SELECT 1 FROM needs n JOIN tasks r ON r.id = n.task"  # noqa: S608
                f" WHERE n.source = t.id AND r.state = 'planned'{self._chosen.replace('t.', 'r.')})"
            )
        # rows are inserted task by task: the first ones name the next tasks without looking at all of them;
        # the attempt is new to all of the task, also to those that are over, since submissions are named by it
        return self._db.execute(
            "SELECT job, task, (SELECT max(attempt) + 1 FROM tasks r WHERE r.job = p.job AND r.task = p.task),"  # noqa: S608  no outside text
            f" max(gpus) FROM (SELECT * FROM tasks t WHERE kind = '{kind}' AND state = 'planned'{which}{free_ones}"
            " ORDER BY seq LIMIT ?) p GROUP BY job, task ORDER BY min(seq)",
            (limit,),
        ).fetchall()

    def needed_builds(self, *states: State) -> set[str]:
        """The builds that runs in one of these states need."""
        found = self._db.execute(
            "SELECT DISTINCT n.source FROM needs n JOIN tasks r ON r.id = n.task"  # noqa: S608  no outside text
            f" WHERE n.why = 'build' AND r.state IN ({marks(states)})",
            states,
        )
        return {build for (build,) in found}

    def runs_per_task(self) -> int:
        """The most runs that one task holds."""
        found = self._db.execute("SELECT max(n) FROM (SELECT count(*) n FROM tasks GROUP BY job, task)").fetchone()[0]
        return found or 1

    def has_planned(self) -> bool:
        """Whether any run waits to be submitted, or any reduction whose run is done."""
        found = self._db.execute(
            f"SELECT 1 FROM tasks t WHERE kind = 'run' AND state = 'planned'{self._chosen} LIMIT 1"  # noqa: S608
        )
        return found.fetchone() is not None or self.has_reductions_to_do()

    def has_reductions_to_do(self) -> bool:
        """Whether any reduction of a run that is done waits to be submitted."""
        found = self._db.execute(
            "SELECT 1 FROM tasks t JOIN needs n ON n.task = t.id JOIN tasks s ON s.id = n.source"
            " WHERE t.kind = 'reduction' AND t.state = 'planned' AND n.why = 'run' AND s.state = 'done' LIMIT 1"
        )
        return found.fetchone() is not None

    def choose(self, ids: Iterable[str]) -> None:
        """As long as the ledger is open, only the tasks of these runs are pending; others stay planned."""
        self._db.execute("CREATE TEMP TABLE chosen (job TEXT, task INTEGER, PRIMARY KEY (job, task))")
        self._db.executemany(
            "INSERT OR IGNORE INTO chosen SELECT job, task FROM tasks WHERE id = ?", ((id_,) for id_ in ids)
        )
        self._chosen = " AND (t.kind <> 'run' OR (t.job, t.task) IN (SELECT job, task FROM chosen))"

    def waiting(self) -> list[str]:
        """The runs and reductions that no scheduler has, as far as is known: their ids, in the plan's order."""
        found = self._db.execute(
            "SELECT id FROM tasks WHERE kind IN ('run', 'reduction') AND state IN ('planned', 'intent') ORDER BY seq"
        )
        return [id_ for (id_,) in found]

    def planned(self, ids: Iterable[str]) -> list[str]:
        """Those of these tasks that wait to be submitted."""
        wanted = set(ids)
        if not wanted:
            return []
        found = self._db.execute("SELECT id FROM tasks WHERE state = 'planned' ORDER BY seq")
        return [id_ for (id_,) in found if id_ in wanted]

    # --- what becomes of it -------------------------------------------------------------------------------

    def update_tasks(self, ids: Iterable[str], **values: Any) -> None:
        """Set columns of tasks."""
        names = ", ".join(f"{name} = ?" for name in values)
        self._db.executemany(
            f"UPDATE tasks SET {names} WHERE id = ?",  # noqa: S608  names of columns
            [(*values.values(), one) for one in ids],
        )

    def release(self, ids: Iterable[str]) -> None:
        """Plan these tasks again; their earlier attempts keep their folders."""
        self.update_tasks(
            ids, state=State.PLANNED, reason=None, exit_code=None, started=None, ended=None, submission=None,
            reading=Reading.NONE,
        )  # fmt: skip
