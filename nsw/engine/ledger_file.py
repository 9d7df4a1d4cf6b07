"""The file of a ledger: its tables, and opening it to look or to drive its campaign.

The ledger of an older nsw is read in a migrated copy (nsw/engine/look.py). Only the holder of the campaign's lock
migrates the file itself, after a copy (`bring_up_to_date`).
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO, Final

from nsw.engine.ledger_migrations import OLDEST, STATE_VERSION, migrate
from nsw.errors import CampaignError
from nsw.safe_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "OF_CONNECTION", "SCHEMA", "as_campaign_error", "bring_up_to_date", "copy_of_state", "journal_of", "older_version",
    "open_ledger",
]  # fmt: skip

# what changes here needs a function in nsw/engine/ledger_migrations.py
SCHEMA: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE submissions (
  seq INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, job TEXT NOT NULL, tasks TEXT NOT NULL,
  attempt INTEGER NOT NULL, gpus INTEGER NOT NULL, native_id TEXT, state TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX submissions_state ON submissions (state);
CREATE TABLE absent (what TEXT NOT NULL, reason TEXT NOT NULL, runs INTEGER NOT NULL);
CREATE TABLE problems (run TEXT NOT NULL, report TEXT, severity TEXT NOT NULL, message TEXT NOT NULL, fix TEXT,
  not_as_asked INTEGER NOT NULL);
CREATE TABLE tasks (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, kind TEXT NOT NULL, place TEXT NOT NULL,
  case_id TEXT NOT NULL, params TEXT NOT NULL, pass_name TEXT NOT NULL, pass_kind TEXT NOT NULL, tool TEXT,
  repeat INTEGER NOT NULL, job TEXT NOT NULL, task INTEGER NOT NULL, gpus INTEGER NOT NULL, reports TEXT NOT NULL,
  app TEXT, command TEXT, seconds_limit INTEGER,
  state TEXT NOT NULL DEFAULT 'planned', attempt INTEGER NOT NULL DEFAULT 0, cause TEXT, detail TEXT, exit_code INTEGER,
  host TEXT, started REAL, ended REAL, reading TEXT NOT NULL DEFAULT 'none', submission TEXT);
CREATE INDEX tasks_job ON tasks (job, task);
CREATE INDEX tasks_state ON tasks (kind, state);
CREATE TABLE needs (
  task TEXT NOT NULL, source TEXT NOT NULL, why TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open',
  PRIMARY KEY (task, source)) WITHOUT ROWID;
CREATE INDEX needs_source ON needs (source);
CREATE INDEX needs_state ON needs (state, source);
CREATE TABLE choices (run TEXT PRIMARY KEY, arguments TEXT NOT NULL, limit_s INTEGER, source TEXT NOT NULL,
  made REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;
"""
# what only this connection sees: tasks whose runs are not chosen, builds whose job the scheduler has under an id that
# nsw knows (not NO_ID), and tasks whose source went wrong, with the source
OF_CONNECTION: Final = """
CREATE TEMP TABLE passed_over (job TEXT, task INTEGER, PRIMARY KEY (job, task)) WITHOUT ROWID;
CREATE TEMP VIEW submitted_builds AS
  SELECT s.id, s.place, b.native_id FROM tasks s JOIN submissions b ON b.name = s.submission
  WHERE s.kind = 'build' AND s.state IN ('submitted', 'queued', 'running') AND b.native_id <> 'ended';
CREATE TEMP VIEW doomed AS
  SELECT n.task, n.why, n.source, s.state, s.cause, s.detail FROM needs n JOIN tasks s ON s.id = n.source
  WHERE n.state = 'open' AND n.why IN ('build', 'run')
  AND (s.state IN ('failed', 'lost') OR (s.state = 'cancelled' AND s.kind <> 'build'));
"""


def journal_of(path: Path) -> Path:
    """The journal that an nsw leaves beside a ledger when it is killed within a write."""
    return path.with_name(f"{path.name}-journal")


def copy_of_state(path: Path, version: int) -> Path:
    """Where the ledger of an older state is kept once it was migrated."""
    return path.with_name(f"{path.name}.state-{version}")


_VERSION_AT: Final = 60  # of SQLite's header, where PRAGMA user_version is


def older_version(file: BinaryIO) -> int | None:
    """The state version of a ledger that an older nsw wrote, and that this one migrates; None of any other file."""
    version = int.from_bytes(os.pread(file.fileno(), 4, _VERSION_AT))
    return version if OLDEST <= version < STATE_VERSION else None


def bring_up_to_date(path: Path) -> str | None:
    """Migrate the ledger of an older nsw, after a copy; only the holder of the campaign's lock may.

    Returns:
        What was done, for people; None where there was nothing to do.

    Raises:
        CampaignError: SQLite cannot read or write it.
    """
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            version = older_version(file)
        if version is None:
            return None
        kept = copy_of_state(path, version)
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as db:
            db.isolation_level = None
            part = kept.with_suffix(".part")
            part.unlink(missing_ok=True)
            with closing(sqlite3.connect(part)) as copy:
                db.backup(copy)
            part.replace(kept)
            migrate(db)
    except FileNotFoundError:  # opening the ledger reports it
        return None
    except sqlite3.DatabaseError as fault:
        raise as_campaign_error(fault, path) from None
    return (
        f"{path.name} is of an older nsw (state version {version}) and was migrated to version {STATE_VERSION};"
        f" {kept} is what it was"
    )


def open_ledger(path: Path, *, create: bool, read_only: bool) -> sqlite3.Connection:
    """A connection to a ledger that this user's nsw made.

    Raises:
        CampaignError: It is of another version, or SQLite cannot use it.
    """
    db = None
    try:
        mode = "ro" if read_only else "rw"
        if create:  # with the mode of the other files, which its journal gets too
            os.close(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        uri = f"{path.absolute().as_uri()}?mode={mode}"
        db = sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None)
        if create:
            db.executescript(f"{SCHEMA}PRAGMA user_version = {STATE_VERSION};")
        _refuse_other_version(db, path)
        db.executescript(OF_CONNECTION)
        db.execute("PRAGMA synchronous = FULL")
    except BaseException as fault:
        if db is not None:
            db.close()
        if isinstance(fault, sqlite3.DatabaseError):
            raise as_campaign_error(fault, path, creating=create) from None
        raise
    return db


def _again(path: Path) -> str:
    return f"begin again: `nsw run {path.parent}/recipe.lock.yaml`"


def refuse_unknown_version(db: sqlite3.Connection, path: Path) -> int:
    """The state version of a ledger.

    Raises:
        CampaignError: It is of a newer nsw, or of one so old that this nsw does not migrate it.
    """
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if not OLDEST <= version <= STATE_VERSION:
        age = "an older" if version < OLDEST else "a newer"
        raise CampaignError(
            f"{path} was written by {age} nsw (state version {version}; this nsw reads {OLDEST} to {STATE_VERSION})",
            hint=f"use {age} nsw for it, or {_again(path)}",
        )
    return version


def _refuse_other_version(db: sqlite3.Connection, path: Path) -> None:
    version = refuse_unknown_version(db, path)
    if version != STATE_VERSION:
        folder = shlex.quote(str(path.parent))
        raise CampaignError(
            f"{path} was written by an older nsw (state version {version}; this nsw writes {STATE_VERSION})",
            hint=f"`nsw resume {folder}` migrates it, and keeps a copy",
        )


def as_campaign_error(fault: sqlite3.Error, path: Path, *, creating: bool = False) -> CampaignError:
    """What is wrong with a ledger that SQLite could not read or write, and what to do.

    Args:
        fault: SQLite's error.
        path: The ledger.
        creating: It was being made: there is no campaign yet that could be resumed.
    """
    folder = path.parent
    again = "then run the same command again" if creating else f"then `nsw resume {shlex.quote(str(folder))}` continues"
    code = getattr(fault, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return CampaignError(
            f"{path} was deleted or moved while nsw used it; jobs that were submitted go on",
            hint=f"put it back, {again}; else {_again(path)}",
        )
    match code & 0xFF:  # the rest says more of the same
        case sqlite3.SQLITE_FULL:
            problem, hint = "cannot be written", f"free some space in {folder} (`df -h` shows it), {again}"
        case sqlite3.SQLITE_IOERR:
            problem, hint = "cannot be read or written", f"check disk and quota of {folder} (`df -h`, `quota`), {again}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            problem, hint = "is locked by another process", f"wait until that has ended, {again}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            problem, hint = "cannot be used", f"make the file and {folder} writable for you, {again}"
        case _:
            problem, hint = "is damaged", _again(path)
    return CampaignError(f"{path} {problem}: {fault}", hint=hint)
