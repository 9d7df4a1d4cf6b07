"""A ledger of version 2 -> version 3: its runs and builds become tasks, builds and canary become needs.

Who drives a campaign upgrades its file. Who only looks upgrades a private copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger_base import Transaction
from nsw.campaign.ledger_rows import Met, Why
from nsw.campaign.ledger_schema import CHOICES, NEEDS, TASKS, VERSION
from nsw.campaign.ledger_values import texts

if TYPE_CHECKING:
    import sqlite3

OLDER: Final = 2  # the version that can be upgraded
_BEFORE: Final = 1_000_000_000  # builds come before all runs
_LIFE: Final = "state, attempt, reason, exit_code, host, started, ended"
_CANARY: Final = {"wanted": Met.OPEN, "failed": Met.REFUSED}  # in any other state it holds nothing back


def upgrade(db: sqlite3.Connection) -> None:
    """Make it a ledger of version 3, or leave it as it is.

    Raises:
        ValueError: It holds what nsw does not write.
        sqlite3.Error: It cannot be changed.
    """
    with Transaction(db):
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "needs" in tables:
            db.execute("ALTER TABLE needs RENAME TO needs_2")
        _execute(db, TASKS)
        _execute(db, NEEDS)
        if "choices" not in tables:
            _execute(db, CHOICES)
        _copy_tasks(db)
        if "needs" in tables:
            db.execute(
                "INSERT INTO needs SELECT run, source, 'stage', CASE ready WHEN 0 THEN 'open' ELSE 'met' END"
                " FROM needs_2"
            )
            db.execute("DROP TABLE needs_2")
        _need_builds(db)
        _need_canary(db)
        db.execute("DROP TABLE runs")
        db.execute("DROP TABLE builds")
        db.execute(f"PRAGMA user_version = {VERSION}")


def _execute(db: sqlite3.Connection, statements: str) -> None:
    """One by one: `executescript` would commit."""
    for statement in filter(str.strip, statements.split(";")):
        db.execute(statement)


def _copy_tasks(db: sqlite3.Connection) -> None:
    about = "id, case_id, params, pass_name, pass_kind, tool, repeat, job, task, gpus, reports"
    db.execute(
        f"INSERT INTO tasks (seq, kind, place, {about}, {_LIFE}, reading, submission)"  # noqa: S608  no outside text
        f" SELECT seq, 'run', 'job', {about}, {_LIFE}, reading, submission FROM runs"
    )
    db.execute(
        "INSERT INTO tasks (seq, kind, place, id, case_id, params, pass_name, pass_kind, repeat, job, task, gpus,"  # noqa: S608
        f" reports, app, command, seconds_limit, {_LIFE}, submission)"
        f" SELECT seq - {_BEFORE}, 'build', place, id, '', '{{}}', 'build', 'build', 1, job, task, gpus,"
        f" '[]', app, command, seconds_limit, {_LIFE}, submission FROM builds"
    )


def _need_builds(db: sqlite3.Connection) -> None:
    for build, state, jobs in db.execute("SELECT id, state, needed_by FROM builds").fetchall():
        met = Met.MET if state == "done" else Met.OPEN
        for job in texts(jobs, "needed_by"):
            db.execute(
                "INSERT INTO needs SELECT id, ?, ?, ? FROM tasks WHERE kind = 'run' AND job = ?",
                (build, Why.BUILD, met, job),
            )


def _need_canary(db: sqlite3.Connection) -> None:
    row = db.execute("SELECT value FROM meta WHERE key = 'canary'").fetchone()
    met = _CANARY.get(row[0]) if row else None
    if met is not None:
        canary, job, task = db.execute(
            "SELECT id, job, task FROM tasks WHERE kind = 'run' ORDER BY reports = '[]', seq LIMIT 1"
        ).fetchone()
        hold_rest(db, canary, job, task, met)
    db.execute("DELETE FROM meta WHERE key = 'canary'")


def hold_rest(db: sqlite3.Connection, canary: str, job: str, task: int, met: Met) -> None:
    """Let all runs but those of its task need the canary; that it needs itself holds nothing, and keeps the verdict."""
    db.execute(
        "INSERT INTO needs SELECT id, ?1, ?2, ?3 FROM tasks"
        " WHERE kind = 'run' AND (id = ?1 OR NOT (job = ?4 AND task = ?5))",
        (canary, Why.CANARY, met, job, task),
    )
