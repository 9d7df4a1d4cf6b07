"""Bounds on what a ledger may cost that others wrote: nothing in it runs, and nothing in it goes on for ever.

A ledger is a SQLite file, and such a file can hold code: a view that recurses, a trigger, a column that is computed.
Its pages can also point to each other in circles. Both are found at the opening; a budget of steps bounds the rest.
"""

from __future__ import annotations

import re
import shlex
import sqlite3
from functools import cache
from typing import TYPE_CHECKING, Any

from nsw.errors import CampaignError

if TYPE_CHECKING:
    from pathlib import Path

_STEPS = 20_000_000  # of SQLite's machine in one statement: about a second
_STEPS_A_BYTE = 10  # of the file, beyond these; reading every run takes 0.1
_BETWEEN = 100_000  # steps between two looks at the budget
_LONGEST = 64 << 20  # bytes of a value or a row
_MADE = re.compile(r"CREATE (TABLE|INDEX) (\w+)")
_AUTOMATIC = "sqlite_autoindex_"
_SEEN = 5  # strange things that are named


class GuardedConnection(sqlite3.Connection):
    """A connection whose statements end, each with a budget of steps; use it as the `factory` of `connect`."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._most = _STEPS
        self._left = self._most
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


def check(db: GuardedConnection, path: Path, schema: str) -> None:
    """Refuse a ledger that holds anything but nsw's tables and indices, or whose pages are not in order.

    Args:
        db: The open ledger.
        path: Its file.
        schema: The statements that make those tables and indices.

    Raises:
        CampaignError: It does.
        sqlite3.Error: It cannot be looked at.
    """
    db.allow_for(path.stat().st_size)
    strange = [
        f"{kind} {name}" for kind, name in db.execute("SELECT type, name FROM sqlite_master")
        if (kind, name) not in _expected(schema) and not (kind == "index" and str(name).startswith(_AUTOMATIC))
    ]  # fmt: skip
    strange += [f"the computed column {table}.{column}" for table, column in _computed(db)] if not strange else []
    if strange:
        more = f" and {len(strange) - _SEEN} more" if len(strange) > _SEEN else ""
        raise CampaignError(
            f"{path} contains something that nsw never writes: {', '.join(strange[:_SEEN])}{more}",
            hint="nsw does not read it: ask who made it",
        )
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        again = f"begin again: `nsw run {path.parent}/recipe.lock.yaml`"
        raise CampaignError(f"{path} is damaged: {' '.join(str(found).split())}", hint=again)


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
    again = (
        "then run the same command again" if made else f"then `nsw resume {shlex.quote(str(path.parent))}` continues"
    )
    code = getattr(fault, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR
    if code == sqlite3.SQLITE_READONLY_DBMOVED:
        return CampaignError(
            f"{path} was deleted or moved while nsw used it; jobs that were submitted go on",
            hint=f"put it back, {again}; else begin again: `nsw run {path.parent}/recipe.lock.yaml`",
        )
    match code & 0xFF:  # the rest says more of the same
        case sqlite3.SQLITE_FULL:
            what, hint = f"cannot be written: {fault}", f"free some space in {path.parent} (`df -h` shows it), {again}"
        case sqlite3.SQLITE_IOERR:
            hint = f"check disk and quota of {path.parent} (`df -h`, `quota`), {again}"
            what = f"cannot be read or written: {fault}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            what, hint = f"is locked by another process: {fault}", f"wait until that has ended, {again}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            what, hint = f"cannot be used: {fault}", f"make the file and {path.parent} writable for you, {again}"
        case sqlite3.SQLITE_INTERRUPT:
            what, hint = f"cannot be used: {explained(fault)}", "nsw writes no such file: ask who made it"
        case _:
            what, hint = f"is damaged: {fault}", f"begin again: `nsw run {path.parent}/recipe.lock.yaml`"
    return CampaignError(f"{path} {what}", hint=hint)


@cache
def _expected(schema: str) -> frozenset[tuple[str, str]]:
    return frozenset((kind.lower(), name) for kind, name in _MADE.findall(schema))


def _computed(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """Columns and index terms that are expressions: SQLite would work them out for each row."""
    found = db.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c"
        " WHERE m.type = 'table' AND c.hidden <> 0"
        " UNION ALL SELECT m.name, '(an expression)' FROM sqlite_master m, pragma_index_xinfo(m.name) c"
        " WHERE m.type = 'index' AND c.cid = -2"
    )
    return found.fetchall()
