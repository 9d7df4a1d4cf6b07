"""The file of a ledger: its tables, opening it, migrations from older states, and its tables as JSON (state.json).

Others look at a campaign by state.json: a SQLite file can hold code, pages that point to each other in circles, and a
journal that makes SQLite delete another file. What is read there is checked value by value. An older nsw left no
state.json: `dump_of_bytes` makes its content of a ledger's bytes.

The ledger of an older nsw is read in a migrated copy (nsw/engine/driven.py). Only the holder of the campaign's lock
migrates the file itself, after a copy (`bring_up_to_date`).
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import EnumType
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, Final, get_args, get_origin

from nsw.engine import ledger_rows
from nsw.engine.ledger_rows import AGAIN, Cause, Key, Kind, NeedReason, NeedState, Reading, State, is_site
from nsw.errors import CampaignError
from nsw.safe_files import open_plain
from nsw.version import __version__

__all__ = [
    "MIGRATIONS",
    "OF_CONNECTION",
    "OLDEST",
    "SCHEMA",
    "STATE_VERSION",
    "as_campaign_error",
    "bring_up_to_date",
    "columns_of",
    "copy_of_state",
    "dump",
    "dump_of_bytes",
    "journal_of",
    "migrate",
    "older_version",
    "open_ledger",
    "restore",
]

# what changes here needs a function in nsw/engine/ledger_file.py
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
    """Open a connection to a ledger that this user's nsw made.

    Args:
        path: The ledger's file.
        create: Make the file, which must not be there yet.
        read_only: Open it for reading alone.

    Raises:
        CampaignError: It is of another version, or SQLite cannot use it.
        OSError: It cannot be created.
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


def _start_again_hint(path: Path) -> str:
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
            hint=f"use {age} nsw for it, or {_start_again_hint(path)}",
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
    known_states = json.dumps(list(State))
    unknown = db.execute(
        "SELECT state FROM tasks WHERE state NOT IN (SELECT value FROM json_each(?)) LIMIT 1", (known_states,)
    ).fetchone()
    if unknown is not None:
        raise CampaignError(
            f"{path} was written by a newer nsw: a run is {unknown[0]!r:.40}, which nsw {__version__} does not know",
            hint=f"use the newer nsw for it, or {_start_again_hint(path)}",
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
        otherwise = _start_again_hint(path)
        if not folder.exists():  # the lockfile is gone too
            otherwise = "cancel its jobs with the scheduler's own command and begin again; of a campaign behind ssh"
            otherwise += f" `nsw attach {shlex.quote(folder.name)} --site SITE` brings back what the site has"
        return CampaignError(
            f"{path} was deleted or moved while nsw used it; jobs that were submitted go on",
            hint=f"put it back, {again}; else {otherwise}",
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
            problem, hint = "is damaged", _start_again_hint(path)
    return CampaignError(f"{path} {problem}: {fault}", hint=hint)


def _migrate_reasons_to_causes(db: sqlite3.Connection) -> None:
    """Migrate to state 4: a reason is a cause and a text; a problem notes if a request was not measured.

    State 3 had whole sentences, which began with the same words always.
    """
    db.execute("ALTER TABLE tasks RENAME COLUMN reason TO detail")
    db.execute("ALTER TABLE tasks ADD COLUMN cause TEXT")
    for cause, pattern in (
        ("over-time", "*over its time limit*"),
        ("exit", "exit status *"),
        ("set-up", "set-up failed: *"),
        ("held", "held*releases it*"),
    ):
        db.execute("UPDATE tasks SET cause = ? WHERE cause IS NULL AND detail GLOB ?", (cause, pattern))
    for cause, begin in (("skipped", "skipped: "), ("doubt", "not submitted, as far as is known, since ")):
        db.execute(
            "UPDATE tasks SET cause = ?, detail = substr(detail, ?) WHERE cause IS NULL AND detail GLOB ?",
            (cause, len(begin) + 1, f"{begin}*"),
        )
    db.execute("ALTER TABLE problems ADD COLUMN not_as_asked INTEGER NOT NULL DEFAULT 0")
    db.execute(
        "UPDATE problems SET not_as_asked = 1"
        " WHERE message GLOB 'metric missing: *' OR message GLOB 'launches moved between the passes: *'"
    )


OLDEST: Final = 3  # the oldest state that nsw reads
MIGRATIONS: Final[tuple[Callable[[sqlite3.Connection], None], ...]] = (
    _migrate_reasons_to_causes,  # 3 -> 4
)
STATE_VERSION: Final = OLDEST + len(MIGRATIONS)


def migrate(db: sqlite3.Connection) -> None:
    """Make a ledger of an older state, from `OLDEST` on, one of the present state, whole or not at all."""
    db.execute("BEGIN IMMEDIATE")
    try:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        for change in MIGRATIONS[version - OLDEST :]:
            change(db)
        db.execute(f"PRAGMA user_version = {STATE_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


_LONGEST: Final = 4096  # characters of a name or a path, which is printed
_LATEST: Final = 1e11  # Unix seconds, beyond which is no time that a ledger holds
_TABLES: Final = ("meta", "submissions", "absent", "problems", "tasks", "needs", "choices")
_TYPES: Final[dict[str, type]] = {"TEXT": str, "INTEGER": int, "REAL": float}
_SHAPES: Final[dict[str, Any]] = {  # of columns that hold JSON, or one of some words
    "tasks.kind": Kind, "tasks.state": State, "tasks.cause": Cause, "tasks.reading": Reading,
    "tasks.params": dict[str, Any], "tasks.reports": tuple[str, ...], "needs.why": NeedReason, "needs.state": NeedState,
    "submissions.tasks": tuple[int, ...], "choices.arguments": tuple[str, ...],
}  # fmt: skip
_KEYS: Final = {key.name: key for key in vars(ledger_rows).values() if isinstance(key, Key)}


def dump(db: sqlite3.Connection) -> str:
    """All tables of a ledger as JSON: of each its rows, with the columns of the schema in their order.

    A ledger of an older state has them in another order: what a newer state added stands last there.
    """
    tables = {}
    for table in _TABLES:
        names = ", ".join(columns_of(table))
        tables[table] = db.execute(f"SELECT {names} FROM {table}").fetchall()  # noqa: S608  nsw's own names
    return json.dumps({"version": STATE_VERSION, "tables": tables})


def dump_of_bytes(content: bytes, path: Path) -> bytes:
    """What `dump` writes of the ledger that these bytes are, of this state or an older one.

    The database is in memory: SQLite reads no journal and writes no file. Views, triggers and virtual tables, which
    could run code, are refused.

    Args:
        content: The bytes of the file.
        path: The file, for errors.

    Raises:
        CampaignError: It is no ledger, or of another version of nsw.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        try:
            db.deserialize(content)
            db.execute("PRAGMA trusted_schema = OFF")
            strange = db.execute(
                "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR rootpage = 0 LIMIT 1"
            ).fetchone()
            if strange is not None:
                raise CampaignError(f"{path} contains {strange[0]!r:.40}, which nsw does not write")
            refuse_unknown_version(db, path)
            migrate(db)
            return dump(db).encode()
        except sqlite3.DatabaseError as fault:
            raise as_campaign_error(fault, path) from None
        except TypeError as fault:  # bytes where nsw writes texts
            raise CampaignError(f"{path} cannot be read: {fault}", hint="ask who made it") from None


@cache
def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table in the order in which `dump` writes them."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return tuple(row[1] for row in db.execute(f"PRAGMA table_info({table})"))


def restore(db: sqlite3.Connection, text: bytes, path: Path) -> None:
    """Make an empty database a ledger with the rows that `dump` wrote.

    Args:
        db: The database.
        text: The content of the file.
        path: The file, for errors.

    Raises:
        CampaignError: It is of another version of nsw, or nsw does not write it.
    """
    try:
        state = json.loads(text)
        version = state["version"]
        if version == STATE_VERSION:
            _fill_tables(db, state["tables"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, sqlite3.Error) as fault:
        raise CampaignError(f"{path} cannot be read: {' '.join(str(fault).split())}", hint="ask who made it") from None
    if version != STATE_VERSION:
        raise CampaignError(
            f"{path} was written by another nsw (state version {version!r:.20}; this nsw reads {STATE_VERSION})",
            hint="look at it with the nsw that made it",
        )


def _fill_tables(db: sqlite3.Connection, tables: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    db.executescript(f"{SCHEMA}PRAGMA user_version = {STATE_VERSION};")
    with db:
        for table in _TABLES:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            marks = ", ".join("?" * len(columns))
            rows = _check_rows(table, columns, tables[table])
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608  nsw's own names
    if not db.execute("SELECT 1 FROM meta WHERE key = ?", (ledger_rows.SITE_DATA.name,)).fetchone():
        raise ValueError(f"{ledger_rows.SITE_DATA.name} is missing")


def _check_rows(
    table: str, columns: Sequence[tuple[Any, ...]], rows: Sequence[Sequence[Any]]
) -> Iterator[Sequence[Any]]:
    """The rows, each value of the type of its column.

    Raises:
        ValueError: One is not.
    """
    label = int(columns[0][1] == "seq")  # the column that names a row
    for row in rows:
        for (_, name, kind, needed, *_), value in zip(columns, row, strict=True):
            if (value is not None or needed) and not _fits_column(value, _TYPES[kind], _SHAPES.get(f"{table}.{name}")):
                raise ValueError(f"{str(row[label])[:80]!r}: {name} is not what nsw writes")
        if table == "meta":
            if row[0] not in _KEYS and not row[0].startswith(AGAIN):
                continue  # nothing reads it
            if not _is_valid_fact(*row):
                raise ValueError(f"{row[0]} is not what nsw writes")
        yield row


def _fits_column(value: Any, kind: type, shape: Any) -> bool:
    if isinstance(shape, EnumType):
        return value in set(shape)
    return _has_shape(value, kind) and (shape is None or _is_json_of_shape(value, shape))


def _is_valid_fact(name: str, text: str) -> bool:
    """Whether the table of facts may contain this value."""
    kind = _KEYS[name].kind if name in _KEYS else int
    if not text or kind is bool:
        return True
    if kind in {str, str | None}:
        return kind is not str or len(text) <= _LONGEST
    return _is_json_of_shape(text, kind) and (name != ledger_rows.SITE_DATA.name or is_site(json.loads(text)))


def _is_json_of_shape(text: str, shape: Any) -> bool:
    """Whether a text is JSON of that shape."""
    try:
        return _has_shape(json.loads(text), shape)
    except (ValueError, RecursionError):
        return False


def _has_shape(value: Any, shape: Any) -> bool:
    """Whether a value of JSON is of a type; a number that is a float is also in the range of times."""
    if shape is Any:
        return True
    origin, parts = get_origin(shape), get_args(shape)
    if origin is UnionType:
        return any(_has_shape(value, part) for part in parts)
    if origin is dict:
        return isinstance(value, dict) and all(_has_shape(each, parts[1]) for each in value.values())
    if origin in {list, tuple}:
        if not isinstance(value, list):
            return False
        each = parts[:1] * len(value) if origin is list or parts[-1] is ... else parts
        return len(each) == len(value) and all(map(_has_shape, value, each))
    if shape is float:
        return isinstance(value, float | int) and -_LATEST < value < _LATEST
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))
