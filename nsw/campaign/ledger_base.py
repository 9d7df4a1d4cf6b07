"""What all parts of an open ledger share: the connection, transactions, and rows held to their kinds."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, TypeVar

from nsw.campaign.ledger_rows import BuildRow, RunRow
from nsw.campaign.ledger_values import check_kinds
from nsw.errors import CampaignError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Row = TypeVar("Row", RunRow, BuildRow)


class LedgerBase:
    """An open database and the file that it is in."""

    _db: sqlite3.Connection
    _path: Path

    def transaction(self) -> Transaction:
        """`with ledger.transaction():` all of it or nothing."""
        return Transaction(self._db)

    def _rows(self, kind: type[Row], found: Iterable[tuple[Any, ...]]) -> list[Row]:
        rows = []
        for row in found:
            try:
                rows.append(kind.of(row))
            except ValueError as fault:
                raise self._damaged(f"{row[0]!r}: {fault}") from None
        return rows

    def _held_to(self, kinds: tuple[Any, ...], columns: str, source: str) -> list[Any]:
        """Rows of a table, whose values must be of these kinds."""
        found = self._db.execute(f"SELECT {columns} FROM {source}").fetchall()  # noqa: S608  no outside text
        for row in found:
            try:
                check_kinds(row, kinds, columns)
            except ValueError as fault:
                raise self._damaged(f"{source.partition(' ')[0]}: {fault}") from None
        return found

    def _damaged(self, what: str) -> CampaignError:
        return CampaignError(f"{self._path} is damaged: {what}")


class Transaction:
    """A transaction of the ledger; one within another is part of it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._outer = not db.in_transaction

    def __enter__(self) -> None:
        if self._outer:
            self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._outer:
            return
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except sqlite3.Error:
                self._take_back()
                raise
        else:
            self._take_back()

    def _take_back(self) -> None:
        if self._db.in_transaction:  # after some faults, such as a full disk, SQLite has taken it back by itself
            self._db.execute("ROLLBACK")


def marks(values: Iterable[object]) -> str:
    """`?,?,?` for so many values."""
    return ",".join("?" for _ in values)
