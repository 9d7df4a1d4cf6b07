"""The file of a ledger: its tables, and opening it to look, which changes nothing there, or to drive its campaign.

An nsw that was killed within a write leaves a journal, and SQLite takes the write back at the next opening. It then
also deletes the file that the journal's end names, if any: who made the journal chooses which. A ledger with a journal,
or of another user, is therefore read from a private copy, and a journal that names a file is refused.

A SQLite file can also hold code: a view that recurses, a trigger, a column that is computed. Its pages can point to
each other in circles. Both are found at the opening; a budget of steps bounds the rest.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import sqlite3
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from nsw.campaign.ownership import is_own, owner, require_own
from nsw.errors import CampaignError
from nsw.safe_files import open_plain

__all__ = ["SCHEMA", "STATE_VERSION", "GuardedConnection", "as_campaign_error", "explained", "open_ledger"]

STATE_VERSION: Final = 4  # 3: runs and builds are tasks, in one table, with needs; 4: causes of reasons

# a ledger that holds any other statement than these, to the letter, is refused
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
_OF_CONNECTION: Final = """
CREATE TEMP TABLE passed_over (job TEXT, task INTEGER, PRIMARY KEY (job, task)) WITHOUT ROWID;
CREATE TEMP VIEW submitted_builds AS
  SELECT s.id, s.place, b.native_id FROM tasks s JOIN submissions b ON b.name = s.submission
  WHERE s.kind = 'build' AND s.state IN ('submitted', 'queued', 'running') AND b.native_id <> 'ended';
CREATE TEMP VIEW doomed AS
  SELECT n.task, n.why, n.source, s.state, s.cause, s.detail FROM needs n JOIN tasks s ON s.id = n.source
  WHERE n.state = 'open' AND n.why IN ('build', 'run')
  AND (s.state IN ('failed', 'lost') OR (s.state = 'cancelled' AND s.kind <> 'build'));
"""

_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # closes the name of another file at a journal's end
_LARGEST = 1 << 29  # bytes of another user's ledger: some million runs
_PATIENCE_S = 3.0  # for who writes it: a write takes milliseconds
_PENDING, _SHARED, _SHARED_SIZE = 0x40000000, 0x40000002, 510  # the bytes that SQLite locks
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_STEPS = 20_000_000  # of SQLite's machine in one statement: about a second
_STEPS_A_BYTE = 10  # of the file, beyond these; reading every run takes 0.1
_BETWEEN = 100_000  # steps between two looks at the budget
_LONGEST = 64 << 20  # bytes of a value or a row
_SEEN = 5  # strange things that are named


class GuardedConnection(sqlite3.Connection):
    """A connection whose statements end, each with a budget of steps; use it as the `factory` of `connect`."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._most = self._left = _STEPS
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self.set_progress_handler(self._spent, _BETWEEN)
        super().execute("PRAGMA trusted_schema = OFF")

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As of any connection; the budget begins anew."""
        self._left = self._most
        return super().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        """As of any connection; the budget begins anew."""
        self._left = self._most
        return super().executemany(*args)

    def allow_for(self, size: int) -> None:
        """Give statements the steps that a file of so many bytes may take."""
        self._most = _STEPS + _STEPS_A_BYTE * size

    def _spent(self) -> bool:
        self._left -= _BETWEEN
        return self._left < 0


def open_ledger(path: Path, *, create: bool, read_only: bool) -> tuple[GuardedConnection, ExitStack]:
    """A connection to a ledger, and what closes it with the private copy that it reads from, if one was needed.

    Raises:
        CampaignError: The ledger, or what is beside it, is not what nsw leaves, or the campaign is another user's.
    """
    with ExitStack() as opened:
        try:
            if create:
                db = _connect(path, "rwc")
                db.executescript(f"{SCHEMA}PRAGMA user_version = {STATE_VERSION};")
            elif read_only:
                db = _open_to_look(path, opened)
            else:
                require_own(path.parent)
                _refuse_what_is_beside(path)
                db = _connect(path, "rw")
            opened.callback(db.close)
            _refuse_other_version(db, path)
            _refuse_strange(db, path)
            db.executescript(_OF_CONNECTION)
            db.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as fault:
            raise as_campaign_error(fault, path, made=create) from None
        except OSError as fault:
            raise CampaignError(f"{fault.filename or path} cannot be used: {fault.strerror or fault}") from None
        return db, opened.pop_all()


def _connect(path: Path, mode: str) -> GuardedConnection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, factory=GuardedConnection)


def _open_to_look(path: Path, opened: ExitStack) -> GuardedConnection:
    _refuse_what_is_beside(path)
    if is_own(path.parent) and not _journal(path).exists():
        return _connect(path, "ro")
    copy = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="nsw-ledger-")), path.name)
    _copy_ledger(path, copy)
    return _connect(copy, "rw")


# --- the file, and what is beside it ------------------------------------------------------------------------------


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _open(path: Path) -> BinaryIO:
    """Open a file of the campaign's owner, and nothing else."""
    return os.fdopen(open_plain(path, owner=owner(path.parent)), "rb")


def _refuse_what_is_beside(path: Path) -> None:
    """Refuse a ledger or a journal that is no plain file (SQLite would wait for a FIFO), and what no nsw leaves."""
    _open(path).close()
    with suppress(FileNotFoundError), _open(_journal(path)) as journal:
        _refuse_other_file(journal, path)
    log = path.with_name(f"{path.name}-wal")
    if os.path.lexists(log):
        raise CampaignError(
            f"{log} is there, a write-ahead log, which no nsw leaves",
            hint=f"open {path.name} with sqlite3 and run `PRAGMA journal_mode = DELETE`, which merges it",
        )


def _refuse_other_file(journal: BinaryIO, path: Path) -> None:
    size = os.fstat(journal.fileno()).st_size
    if size >= len(_JOURNAL_END) and os.pread(journal.fileno(), 8, size - 8) == _JOURNAL_END:
        raise CampaignError(
            f"{_journal(path)} names another file, which SQLite would delete; no nsw writes such a journal",
            hint="ask who made this campaign; without the journal its state may be damaged",
        )


def _copy_ledger(path: Path, copy: Path) -> None:
    """Copy a ledger and its journal, as they are while nobody writes."""
    most = None if is_own(path.parent) else _LARGEST
    with _open(path) as source:
        _lock(source, path)  # until it is closed
        _copy_file(source, copy, path, most)
        with suppress(FileNotFoundError), _open(_journal(path)) as journal:
            _copy_file(journal, _journal(copy), path, most)
            with _journal(copy).open("rb") as copied:  # which nobody changes
                _refuse_other_file(copied, path)


def _lock(file: BinaryIO, path: Path) -> None:
    """Take SQLite's lock of one who reads, by which no one changes the file."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, _PENDING)
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED)
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _PENDING)
        except OSError as fault:
            if fault.errno in _NO_LOCKS:
                return
            if fault.errno not in {errno.EAGAIN, errno.EACCES}:
                raise
        else:
            return
        if time.monotonic() >= deadline:
            raise CampaignError(f"{path} has been locked by a writer for {_PATIENCE_S:.0f} s", hint="try again later")
        time.sleep(0.02)


def _copy_file(source: BinaryIO, target: Path, path: Path, most: int | None) -> None:
    """Copy what a file has now: it may grow."""
    size = os.fstat(source.fileno()).st_size
    if most is not None and size > most:
        raise CampaignError(
            f"{path} has {size} bytes; of another user's ledger at most {most} are read", hint="ask its owner"
        )
    with target.open("xb") as file:
        while size > 0 and (chunk := source.read(min(size, 1 << 20))):
            file.write(chunk)
            size -= len(chunk)


# --- what is in it ------------------------------------------------------------------------------------------------


def _again(path: Path) -> str:
    return f"begin again: `nsw run {path.parent}/recipe.lock.yaml`"


def _refuse_other_version(db: GuardedConnection, path: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version != STATE_VERSION:
        age = "an older" if version < STATE_VERSION else "a newer"
        raise CampaignError(
            f"{path} was written by {age} nsw (state version {version}; this one knows {STATE_VERSION})",
            hint=f"go on with that nsw, or {_again(path)}",
        )


def _refuse_strange(db: GuardedConnection, path: Path) -> None:
    """Refuse a ledger that holds anything but nsw's tables and indices, or whose pages are not in order."""
    db.allow_for(path.stat().st_size)
    made = {statement.strip() for statement in SCHEMA.split(";")}
    found = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")  # NULL: index of a key
    strange = [f"{kind} {name}" for kind, name, sql in found if sql not in made]
    if strange:
        raise CampaignError(
            f"{path} contains something that nsw never writes: {', '.join(strange[:_SEEN])}",
            hint="nsw does not read it: ask who made it",
        )
    (fault,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if fault != "ok":
        raise CampaignError(f"{path} is damaged: {' '.join(str(fault).split())}", hint=_again(path))


def explained(fault: sqlite3.Error) -> str:
    """What is wrong with a ledger that SQLite refuses."""
    if getattr(fault, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
        return "to look into it takes more steps than its size explains"
    return str(fault)


def as_campaign_error(fault: sqlite3.Error, path: Path, *, made: bool = False) -> CampaignError:
    """What is wrong with a ledger that SQLite could not read or write, and what to do.

    Args:
        fault: SQLite's error.
        path: The ledger.
        made: It was being made: there is no campaign yet that could be resumed.
    """
    folder = path.parent
    again = "then run the same command again" if made else f"then `nsw resume {shlex.quote(str(folder))}` continues"
    code = getattr(fault, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return CampaignError(
            f"{path} was deleted or moved while nsw used it; jobs that were submitted go on",
            hint=f"put it back, {again}; else {_again(path)}",
        )
    match code & 0xFF:  # the rest says more of the same
        case sqlite3.SQLITE_FULL:
            what, hint = "cannot be written", f"free some space in {folder} (`df -h` shows it), {again}"
        case sqlite3.SQLITE_IOERR:
            what, hint = "cannot be read or written", f"check disk and quota of {folder} (`df -h`, `quota`), {again}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            what, hint = "is locked by another process", f"wait until that has ended, {again}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            what, hint = "cannot be used", f"make the file and {folder} writable for you, {again}"
        case sqlite3.SQLITE_INTERRUPT:
            what, hint = "cannot be used", "nsw writes no such file: ask who made it"
        case _:
            what, hint = "is damaged", _again(path)
    return CampaignError(f"{path} {what}: {explained(fault)}", hint=hint)
