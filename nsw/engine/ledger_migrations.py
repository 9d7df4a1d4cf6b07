"""Migrations of ledgers: what makes the ledger of an older nsw one of this nsw's state version.

A change of the ledger's schema (nsw/engine/ledger_file.py) is a function here and its line in `MIGRATIONS`. It gets a
ledger of the state before, within a transaction, and leaves tables with the columns of the new schema, in any order.
What the older nsw did not write is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

__all__ = ["MIGRATIONS", "OLDEST", "STATE_VERSION", "migrate"]


def _give_reasons_causes(db: sqlite3.Connection) -> None:
    """State 4: a reason is a cause and words, and a problem notes whether what was asked for was not measured.

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
    _give_reasons_causes,  # 3 -> 4
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
