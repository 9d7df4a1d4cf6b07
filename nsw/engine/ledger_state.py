"""A ledger's tables as JSON (state.json), by which others look at a campaign: nobody opens a ledger of somebody else.

A SQLite file can hold code, pages that point to each other in circles, and a journal that makes SQLite delete another
file. What is read of state.json is checked value by value before it becomes a ledger in memory.
"""

from __future__ import annotations

import json
import sqlite3
from enum import EnumType
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from nsw.engine import ledger_rows
from nsw.engine.ledger_file import SCHEMA
from nsw.engine.ledger_migrations import STATE_VERSION
from nsw.engine.ledger_rows import AGAIN, Cause, Key, Kind, NeedReason, NeedState, Reading, State, is_site
from nsw.errors import CampaignError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["dump", "restore"]

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
    """All tables of a ledger as JSON: of each its rows, with the columns of the schema in their order."""
    tables = {}
    for table in _TABLES:
        names = ", ".join(name for _, name, *_ in db.execute(f"PRAGMA table_info({table})"))
        tables[table] = db.execute(f"SELECT {names} FROM {table}").fetchall()  # noqa: S608  nsw's own names
    return json.dumps({"version": STATE_VERSION, "tables": tables})


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
            _fill(db, state["tables"])
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, sqlite3.Error) as fault:
        raise CampaignError(f"{path} cannot be read: {' '.join(str(fault).split())}", hint="ask who made it") from None
    if version != STATE_VERSION:
        raise CampaignError(
            f"{path} was written by another nsw (state version {version!r:.20}; this nsw reads {STATE_VERSION})",
            hint="look at it with the nsw that made it",
        )


def _fill(db: sqlite3.Connection, tables: Mapping[str, Sequence[Sequence[Any]]]) -> None:
    db.executescript(f"{SCHEMA}PRAGMA user_version = {STATE_VERSION};")
    with db:
        for table in _TABLES:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            marks = ", ".join("?" * len(columns))
            rows = _checked(table, columns, tables[table])
            db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608  nsw's own names
    if not db.execute("SELECT 1 FROM meta WHERE key = ?", (ledger_rows.SITE_DATA.name,)).fetchone():
        raise ValueError(f"{ledger_rows.SITE_DATA.name} is missing")


def _checked(table: str, columns: Sequence[tuple[Any, ...]], rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any]]:
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
            if not _is_fact(*row):
                raise ValueError(f"{row[0]} is not what nsw writes")
        yield row


def _fits_column(value: Any, kind: type, shape: Any) -> bool:
    if isinstance(shape, EnumType):
        return value in set(shape)
    return _fits(value, kind) and (shape is None or _parses(value, shape))


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
    """Whether a value of JSON is of a type; a number that is a float is also in the range of times."""
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
