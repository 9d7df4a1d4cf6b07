"""Clean copies of ledgers: nsw's tables alone, of the present state version, each value of its column's type.

They are made of ledgers that strangers may have written, and of those of an older nsw.

A SQLite file can hold code (views, triggers, computed columns), pages that point to each other in circles, and a
journal that makes SQLite delete another file. SQLite opens such a file in a process with limits (nsw/apart.py), which
writes what it reads into a new ledger; only that is opened here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from enum import EnumType
from types import UnionType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, get_args, get_origin

from nsw.engine import ledger_rows
from nsw.engine.ledger_file import SCHEMA, refuse_unknown_version
from nsw.engine.ledger_migrations import STATE_VERSION, migrate
from nsw.engine.ledger_rows import AGAIN, Cause, Key, Kind, NeedReason, NeedState, Reading, State, is_site
from nsw.errors import CampaignError
from nsw.safe_files import make_file, open_to_read, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["Strange", "copy_ledgers"]

_LARGEST: Final = 1 << 29  # bytes of a ledger: some million runs
_LONGEST: Final = 4096  # characters of a name or a path, which is printed
_LATEST: Final = 1e11  # Unix seconds, beyond which is no time that a ledger holds
_SECONDS: Final = 2.0  # of processor time for a ledger, beside what its size explains
_SECONDS_A_BYTE: Final = 1e-6
_PATIENCE_S: Final = 3.0  # for those who write: a write takes milliseconds
_PENDING, _SHARED, _SHARED_SIZE = 0x40000000, 0x40000002, 510  # the bytes that SQLite locks
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_JOURNAL_END: Final = bytes.fromhex("d9d505f920a163d7")  # closes the name of another file, which SQLite would delete
_TABLES: Final = ("meta", "submissions", "absent", "problems", "tasks", "needs", "choices")
_TYPES: Final[dict[str, type | UnionType]] = {"TEXT": str, "INTEGER": int, "REAL": float}
_SHAPES: Final[dict[str, Any]] = {  # of columns that hold JSON, or one of some words
    "tasks.kind": Kind, "tasks.state": State, "tasks.cause": Cause, "tasks.reading": Reading,
    "tasks.params": dict[str, Any], "tasks.reports": tuple[str, ...], "needs.why": NeedReason, "needs.state": NeedState,
    "submissions.tasks": tuple[int, ...], "choices.arguments": tuple[str, ...],
}  # fmt: skip
_KEYS: Final = {key.name: key for key in vars(ledger_rows).values() if isinstance(key, Key)}


@dataclass(frozen=True, slots=True)
class Strange:
    """A ledger to copy, and where to.

    Attributes:
        path: What errors call it.
        ledger: A path that opens the file itself, whatever has its name by now.
        journal: The same of the journal of an nsw that was killed within a write; None: there is none.
        copy: The new ledger.
    """

    path: Path
    ledger: str
    journal: str | None
    copy: Path


def copy_ledgers(several: Sequence[Strange]) -> list[tuple[str, str | None] | None]:
    """Copy each; of one that cannot be copied what is wrong with it, and what to do."""
    deadline = time.monotonic() + _PATIENCE_S
    return [_copy_checked(strange, deadline) for strange in several]


def _copy_checked(strange: Strange, deadline: float) -> tuple[str, str | None] | None:
    try:
        _copy(strange, deadline)
    except CampaignError as fault:
        return fault.message, fault.hint
    except (OSError, sqlite3.Error, ValueError, RecursionError) as fault:
        reason = " ".join(str(getattr(fault, "strerror", None) or fault).split())
        return f"{strange.path} cannot be read: {reason}", "ask who made it"
    finally:
        for left in strange.copy.parent.glob("*.strange*"):  # many of them could fill the disk
            left.unlink()
    return None


def _copy(strange: Strange, deadline: float) -> None:
    private_copy = strange.copy.with_suffix(".strange")
    strange.copy.unlink(missing_ok=True)  # of a process that ended early
    with open_to_read(strange.ledger) as source:  # a name below /proc
        _lock(source, strange.path, deadline)  # until it is closed
        _copy_file(source, private_copy, strange.path)
        if strange.journal is not None:
            with open_to_read(strange.journal) as journal:
                copied = private_copy.with_name(f"{private_copy.name}-journal")
                _copy_file(journal, copied, strange.path)
            if read_bytes(copied).endswith(_JOURNAL_END):
                raise CampaignError(f"{strange.path}-journal names another file, which SQLite would delete")
    with closing(sqlite3.connect(private_copy)) as old, closing(sqlite3.connect(strange.copy)) as new:
        end = time.process_time() + _SECONDS + _SECONDS_A_BYTE * private_copy.stat().st_size
        old.set_progress_handler(lambda: time.process_time() > end, 100_000)  # a view may never end
        if refuse_unknown_version(old, strange.path) != STATE_VERSION:
            old.isolation_level = None
            migrate(old)
        new.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {SCHEMA}")
        for table in _TABLES:
            columns = new.execute(f"PRAGMA table_info({table})").fetchall()
            names = ", ".join(name for _, name, *_ in columns)
            rows = old.execute(f"SELECT {names} FROM {table}")  # noqa: S608  nsw's own names
            places = ", ".join("?" * len(columns))
            new.executemany(f"INSERT INTO {table} VALUES ({places})", _checked(table, columns, rows))  # noqa: S608
        if not new.execute("SELECT 1 FROM meta WHERE key = ?", (ledger_rows.SITE_DATA.name,)).fetchone():
            raise ValueError(f"{ledger_rows.SITE_DATA.name} is missing")
        new.execute(f"PRAGMA user_version = {STATE_VERSION}")
        new.commit()


def _lock(file: BinaryIO, path: Path, deadline: float) -> None:
    """Take SQLite's lock of one who reads, by which no one changes the file."""
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


def _copy_file(source: BinaryIO, target: Path, path: Path) -> None:
    """Copy what a file has now: it may grow."""
    size = os.fstat(source.fileno()).st_size
    if size > _LARGEST:
        raise CampaignError(f"{path} has {size} bytes; at most {_LARGEST} are read of a ledger that nsw did not make")
    target.unlink(missing_ok=True)
    with make_file(target) as file:
        while size > 0 and (chunk := source.read(min(size, 1 << 20))):
            file.write(chunk)
            size -= len(chunk)


# --- what is in it ------------------------------------------------------------------------------------------------


def _checked(table: str, columns: Sequence[tuple[Any, ...]], rows: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    """The rows, each value of the type of its column.

    Raises:
        ValueError: One is not.
    """
    checks = [_check_of(f"{table}.{name}", _TYPES[kind], needed) for _, name, kind, needed, *_ in columns]
    called = int(columns[0][1] == "seq")  # the column that names a row
    for row in rows:
        for (_, name, *_), check, value in zip(columns, checks, row, strict=True):
            if not check(value):
                raise ValueError(f"{str(row[called])[:80]!r}: {name} is not what nsw writes")
        if table == "meta":
            if row[0] not in _KEYS and not row[0].startswith(AGAIN):
                continue  # nothing reads it
            if not _is_fact(*row):
                raise ValueError(f"{row[0]} is not what nsw writes")
        yield row


def _check_of(column: str, kind: type | UnionType, needed: int) -> Callable[[Any], bool]:
    shape = _SHAPES.get(column)

    def check(value: Any) -> bool:
        if value is None and not needed:
            return True
        if isinstance(shape, EnumType):
            return value in set(shape)
        return _fits(value, kind) and (shape is None or _parses(value, shape))

    return check


def _is_fact(name: str, text: str) -> bool:
    """Whether the table of facts may hold that."""
    kind = _KEYS[name].kind if name in _KEYS else int
    if not text or kind is bool:
        return True
    if kind in {str, str | None}:
        return kind is not str or len(text) <= _LONGEST
    return _parses(text, kind) and (name != ledger_rows.SITE_DATA.name or is_site(json.loads(text)))


def _parses(text: str, shape: Any) -> bool:
    """Whether a text is JSON of that shape."""
    try:
        return _fits(json.loads(text), shape)
    except (ValueError, RecursionError):
        return False


def _fits(value: Any, shape: Any) -> bool:
    """Whether a value of SQLite, or of JSON, is of a type; a number that is a float is also in the range of times."""
    if shape is Any:
        return True
    origin, parts = get_origin(shape), get_args(shape)
    if origin is UnionType:
        return any(_fits(value, part) for part in parts)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(each, parts[1]) for each in value.values())
    if origin in {list, tuple}:
        if not isinstance(value, list):
            return False
        each = parts[:1] * len(value) if origin is list or parts[-1] is ... else parts
        return len(each) == len(value) and all(map(_fits, value, each))
    if shape is float:
        return isinstance(value, float | int) and -_LATEST < value < _LATEST
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))
