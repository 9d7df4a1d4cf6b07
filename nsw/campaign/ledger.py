"""The campaign's durable state: one SQLite file with a row a task, a need and a submission.

A rollback journal, no WAL: campaigns live on NFS and Lustre too. Intent is committed (and synced) before
anything is submitted; what follows from files that still exist (done, collected, read) may be written late.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Self

from nsw.campaign.ledger_facts import LedgerFacts
from nsw.campaign.ledger_file import open_to_drive, open_to_look
from nsw.campaign.ledger_guard import GuardedConnection, as_campaign_error, check
from nsw.campaign.ledger_rows import ENDED, IN_FLIGHT, BuildRow, Reading, RunRow, State
from nsw.campaign.ledger_schema import SCHEMA, VERSION
from nsw.campaign.ledger_submissions import LedgerSubmissions
from nsw.campaign.ledger_tasks import LedgerTasks
from nsw.campaign.ledger_values import MAYBE_TEXT
from nsw.errors import CampaignError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from tempfile import TemporaryDirectory

__all__ = ["ENDED", "IN_FLIGHT", "VERSION", "BuildRow", "Ledger", "Reading", "RunRow", "State"]

_VERSION = "PRAGMA user_version"


def _connect(path: Path, mode: str) -> GuardedConnection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, factory=GuardedConnection)


def _check_version(version: int, path: Path) -> None:
    if version != VERSION:
        age = "an older" if version < VERSION else "a newer"
        raise CampaignError(
            f"{path} was written by {age} nsw (state version {version}; this one knows {VERSION})",
            hint=f"go on with that nsw, or begin again: `nsw run {path.parent}/recipe.lock.yaml`",
        )


class Ledger(LedgerFacts, LedgerTasks, LedgerSubmissions):
    """The open ledger of one campaign.

    Args:
        path: The file; it must exist unless it is made by `create`.
        create: Make it.
        read_only: Look, and change nothing.
    """

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        if not create and not path.is_file():
            wrong = "is not a file" if path.exists() else "is missing"
            raise CampaignError(f"{path.parent} is not a campaign: {path.name} {wrong}")
        self._path = path
        self._copy: TemporaryDirectory[str] | None = None
        self._made = create
        try:
            if create:
                self._db: GuardedConnection = _connect(path, "rwc")
            elif read_only:
                self._db, self._copy = open_to_look(path, _connect)
            else:
                self._db = open_to_drive(path, _connect)
        except sqlite3.DatabaseError as fault:
            raise as_campaign_error(fault, path, made=create) from None
        try:
            if create:
                self._db.executescript(SCHEMA)
            _check_version(self._db.execute(_VERSION).fetchone()[0], path)
            check(self._db, path, SCHEMA)
        except sqlite3.DatabaseError as fault:
            self.close()
            raise as_campaign_error(fault, path, made=create) from None
        except ValueError as fault:
            self.close()
            raise CampaignError(f"{path} is damaged: {fault}") from None
        except CampaignError:
            self.close()
            raise
        self._db.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        if self._copy is not None:
            self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, fault: object, trace: object) -> None:
        """Close the file.

        Raises:
            CampaignError: The block ended since SQLite could not read or write the file, such as on a full disk.
        """
        self.close()
        if isinstance(fault, sqlite3.DatabaseError) and not isinstance(fault, sqlite3.ProgrammingError):
            raise as_campaign_error(fault, self._path, made=self._made) from None

    def snapshot(self) -> bytes:
        """The whole ledger as the bytes of a SQLite file; outside of a transaction."""
        return bytes(self._db.serialize())

    def absent(self) -> list[tuple[str, str, int]]:
        """What was asked and could not be done here: what, why, how many runs."""
        return self._held_to((str, str, int), "what, reason, runs", "absent")

    def set_problems(self, run: str, problems: Iterable[tuple[str | None, str, str, str | None]]) -> None:
        """Replace what is known to be wrong with a run's reports: report, severity, message, fix."""
        self._db.execute("DELETE FROM problems WHERE run = ?", (run,))
        self._db.executemany("INSERT INTO problems VALUES (?, ?, ?, ?, ?)", [(run, *p) for p in problems])

    def problems(self) -> list[tuple[str, str | None, str, str, str | None]]:
        """Run, report, severity, message, fix."""
        columns, joined = "p.run, p.report, p.severity, p.message, p.fix", "problems p JOIN tasks r ON r.id = p.run"
        kinds = (str, MAYBE_TEXT, str, str, MAYBE_TEXT)
        return self._held_to(kinds, columns, f"{joined} ORDER BY r.seq, p.rowid")
