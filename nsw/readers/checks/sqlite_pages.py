"""Whether the pages of a SQLite file are in order: a few kilobytes that point to each other hold rows for years."""

from __future__ import annotations

import sqlite3
from typing import Final

_MOST: Final = 500  # faults that are looked at
_SHARED: Final = "2nd reference to page"
_FREE: Final = "Freelist"  # pages that hold nothing: no table is longer for what is wrong there


def faults(connection: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the structure of the file; it looks at each page once, 2 s a GB."""
    try:
        found = [str(row[0]) for row in connection.execute(f"PRAGMA quick_check({_MOST})")]
    except (sqlite3.Error, UnicodeDecodeError) as fault:
        return [str(fault)]
    return [] if found == ["ok"] else [line for text in found for line in text.splitlines() if not _is_title(line)]


def may_not_end(found: list[str]) -> bool:
    """Whether a table may have more rows than the file has: a page is in it twice, or faults are too many."""
    return len(found) >= _MOST or any(_SHARED in fault and not fault.startswith(_FREE) for fault in found)


def _is_title(line: str) -> bool:
    return line.startswith("*** in database")
