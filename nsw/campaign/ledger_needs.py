"""Needs in the ledger: which tasks wait for which others, and what an earlier stage chose for a run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.campaign.ledger_base import LedgerBase, marks
from nsw.campaign.ledger_rows import Met, State, Why
from nsw.schedulers.model import NO_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GOING: Final = "('planned', 'intent', 'submitted', 'queued', 'running')"
_UNTIL_DONE: Final = "n.why IN ('build', 'run')"  # the needs that end when their source is done
_HAS_JOB: Final = (  # s: a task whose job the scheduler has, under an id that nsw knows
    "s.state IN ('submitted', 'queued', 'running') AND EXISTS (SELECT 1 FROM submissions b"  # noqa: S608
    f" WHERE b.name = s.submission AND b.native_id <> '{NO_ID}')"
)
# CROSS JOIN and + keep SQLite from going over all open needs for each task.
# Of a table `t` of tasks: those whose job's task holds nothing that still waits; a packed task holds one stage
_FREE: Final = (
    " AND NOT EXISTS (SELECT 1 FROM tasks w CROSS JOIN needs n ON n.task = w.id WHERE w.job = t.job AND w.task = t.task"
    " AND w.state = 'planned' AND +n.state = 'open' AND n.source <> w.id{but})"
)
# ... but a build whose job the batch system makes theirs wait for
_LEFT: Final = (
    " AND NOT (n.why = 'build' AND EXISTS (SELECT 1 FROM tasks s WHERE s.id = n.source AND s.place = 'job'"  # noqa: S608
    f" AND {_HAS_JOB}))"
)


def free(*, leave_builds: bool) -> str:
    """SQL that keeps of planned tasks `t` those that may be submitted.

    Args:
        leave_builds: The scheduler can be trusted to start a task only after its build.
    """
    return _FREE.format(but=_LEFT if leave_builds else "")


@dataclass(frozen=True, slots=True)
class Choice:
    """What an earlier stage decided for a run.

    Attributes:
        arguments: The words that the run's command gets.
        limit_s: Time limit of the run in seconds; None for that of the plan.
        source: The run whose tables decided.
        note: What was chosen, for people; becomes part of the lockfile.
    """

    arguments: tuple[str, ...]
    limit_s: int | None
    source: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A task that can not begin, since what it needs will not be done."""

    task: str
    why: Why
    source: str
    state: State  # of the source
    reason: str | None  # of the source


class LedgerNeeds(LedgerBase):
    """The tables `needs` and `choices` of an open ledger."""

    def add_needs(self, needs: Iterable[tuple[str, str, Why]]) -> None:
        """Write down that tasks wait: (task, source, why).

        The source is the id of a task; for a stage CASE.PASS, of which any repeat that was read will do.
        """
        self._db.executemany("INSERT INTO needs (task, source, why) VALUES (?, ?, ?)", needs)

    def any_waits(self) -> bool:
        """Whether any need is not met: a campaign without needs is not slowed by them."""
        return self._db.execute("SELECT 1 FROM needs WHERE state = 'open' LIMIT 1").fetchone() is not None

    def _set(self, met: Met, where: str, values: Iterable[Sequence[Any]]) -> None:
        self._db.executemany(f"UPDATE needs SET state = '{met}' WHERE {where}", values)  # noqa: S608  no outside text

    # --- until a task is done -----------------------------------------------------------------------------

    def meet_done(self) -> None:
        """Meet the needs of tasks that are done."""
        found = self._db.execute(
            "SELECT DISTINCT n.source FROM needs n JOIN tasks s ON s.id = n.source"  # noqa: S608  no outside text
            f" WHERE n.state = 'open' AND {_UNTIL_DONE} AND s.state = 'done'"
        ).fetchall()
        self._set(Met.MET, "source = ? AND why IN ('build', 'run')", found)

    def doomed(self, task: str | None = None) -> list[Doomed]:
        """The tasks, planned or in flight, whose source went wrong; of `task` alone also when it is over."""
        which, values = ("n.task = ?", (task,)) if task else (f"w.state IN {_GOING}", ())
        found = self._db.execute(
            "SELECT n.task, n.why, n.source, s.state, s.reason FROM needs n JOIN tasks s ON s.id = n.source"  # noqa: S608
            f" JOIN tasks w ON w.id = n.task WHERE n.state = 'open' AND {_UNTIL_DONE} AND {which}"
            " AND (s.state IN ('failed', 'lost') OR (s.state = 'cancelled' AND s.kind <> 'build')) ORDER BY w.seq",
            values,
        )
        return [Doomed(id_, Why(why), source, State(state), reason) for id_, why, source, state, reason in found]

    def waiting_until_done(self, sources: Iterable[str]) -> set[str]:
        """The tasks that wait for any of these to be done."""
        some = tuple(sources)
        found = self._db.execute(
            f"SELECT task FROM needs n WHERE source IN ({marks(some)}) AND state = 'open' AND {_UNTIL_DONE}",  # noqa: S608
            some,
        )
        return {task for (task,) in found}

    def unneeded(self) -> set[str]:
        """Builds in flight for which no task waits any more."""
        found = self._db.execute(
            "SELECT id FROM tasks s WHERE kind = 'build' AND NOT EXISTS (SELECT 1 FROM needs n"  # noqa: S608
            f" JOIN tasks w ON w.id = n.task WHERE n.source = s.id AND w.state IN {_GOING}) AND {_HAS_JOB}"
        )
        return {build for (build,) in found}

    def dependency_of(self, job: str) -> str | None:
        """The scheduler's id of the build that a job's tasks must wait for."""
        row = self._db.execute(
            "SELECT b.native_id FROM needs n JOIN tasks w ON w.id = n.task JOIN tasks s ON s.id = n.source"  # noqa: S608
            " JOIN submissions b ON b.name = s.submission WHERE w.job = ? AND n.why = 'build' AND s.place = 'job'"
            f" AND {_HAS_JOB} LIMIT 1",
            (job,),
        ).fetchone()
        return row[0] if row else None

    # --- the canary ---------------------------------------------------------------------------------------

    def hold_for_canary(self) -> None:
        """Let all runs need the first that is to leave a report, else the first."""
        canary = self._db.execute(
            "SELECT id, job, task FROM tasks WHERE kind = 'run' ORDER BY reports = '[]', seq LIMIT 1"
        ).fetchone()
        if canary:
            run, job, task = canary
            # all runs but those of its task; that it needs itself holds nothing, and keeps the verdict
            self._db.execute(
                "INSERT INTO needs SELECT id, ?1, ?2, ?3 FROM tasks"
                " WHERE kind = 'run' AND (id = ?1 OR NOT (job = ?4 AND task = ?5))",
                (run, Why.CANARY, Met.OPEN, job, task),
            )

    def canary(self) -> tuple[str, Met] | None:
        """The run that the others need, and what became of it; None where they need none, or no more."""
        row = self._db.execute(
            "SELECT source, state FROM needs WHERE why = 'canary' AND state IN ('open', 'refused') AND task = source"
        ).fetchone()
        return (row[0], Met(row[1])) if row else None

    def settle_canary(self, met: Met) -> None:
        """Write down how it was judged."""
        self._set(met, "why = 'canary' AND state <> 'met'", [()])

    def waive_canary(self, runs: Iterable[str]) -> None:
        """A person wants these runs now, and those that share a task with them."""
        beside = "SELECT w.id FROM tasks w JOIN tasks r ON r.job = w.job AND r.task = w.task WHERE r.id = ?"
        self._set(
            Met.MET,
            f"why = 'canary' AND task <> source AND task IN ({beside})",
            [(run,) for run in runs],
        )

    def held_by_canary(self) -> int:
        """How many planned runs wait for it."""
        found: int = self._db.execute(
            "SELECT count(*) FROM needs n JOIN tasks w ON w.id = n.task"
            " WHERE n.why = 'canary' AND n.state <> 'met' AND n.task <> n.source AND w.state = 'planned'"
        ).fetchone()[0]
        return found

    # --- stages -------------------------------------------------------------------------------------------

    def waiting_for_stages(self) -> dict[str, list[str]]:
        """The planned runs that wait, by the CASE.PASS that they wait for, in the plan's order."""
        found = self._db.execute(
            "SELECT n.source, n.task FROM needs n JOIN tasks r ON r.id = n.task"
            " WHERE n.why = 'stage' AND n.state = 'open' AND r.state = 'planned' ORDER BY r.seq"
        )
        waiting: dict[str, list[str]] = {}
        for source, run in found:
            waiting.setdefault(source, []).append(run)
        return waiting

    def sources_of(self, source: str) -> list[str]:
        """The runs of a CASE.PASS that are no warm-up, in the plan's order."""
        found = self._db.execute(
            "SELECT id FROM tasks WHERE kind = 'run' AND case_id || '.' || pass_name = ? AND repeat > 0 ORDER BY seq",
            (source,),
        )
        return [run for (run,) in found]

    def release_stage(self, runs: Iterable[str]) -> None:
        """Nothing keeps these runs from being submitted any more."""
        self._set(Met.MET, "task = ? AND why = 'stage'", [(run,) for run in runs])

    def hold_reductions(self, reductions: Iterable[str]) -> None:
        """These wait again until their runs are done."""
        self._set(Met.OPEN, "task = ? AND why = 'run'", [(id_,) for id_ in reductions])

    def hold_stage(self, runs: Iterable[str]) -> None:
        """These runs wait for their source again, and lose their choice."""
        some = [(run,) for run in runs]
        self._set(Met.OPEN, "task = ? AND why = 'stage'", some)
        self._db.executemany("DELETE FROM choices WHERE run = ?", some)

    def dependents(self, runs: Iterable[str]) -> list[str]:
        """The tasks that wait, or waited, for any of these runs, or for the CASE.PASS of one."""
        found: list[str] = []
        for run in runs:
            found += [
                task
                for (task,) in self._db.execute(
                    "SELECT n.task FROM tasks s JOIN needs n ON"
                    " (n.why = 'stage' AND n.source = s.case_id || '.' || s.pass_name)"
                    " OR (n.why = 'run' AND n.source = s.id) WHERE s.id = ?",
                    (run,),
                )
            ]
        return list(dict.fromkeys(found))

    def choose_for(self, run: str, choice: Choice) -> None:
        """Write down a choice."""
        self._db.execute(
            "INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?, ?, ?)",
            (run, json.dumps(choice.arguments), choice.limit_s, choice.source, time.time(), choice.note),
        )

    def choices(self) -> dict[str, Choice]:
        """What was chosen, by run."""
        found = self._db.execute("SELECT run, arguments, limit_s, source, note FROM choices")
        return {run: _choice(arguments, limit, source, note) for run, arguments, limit, source, note in found}


def _choice(arguments: str, limit_s: Any, source: str, note: str) -> Choice:
    words = json.loads(arguments)
    return Choice(tuple(map(str, words)), None if limit_s is None else int(limit_s), source, note)
