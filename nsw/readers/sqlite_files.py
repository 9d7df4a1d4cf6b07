"""SQLite files of others: opened so that nothing of them can change, and whether their pages are in order.

A few kilobytes of pages that point to each other hold rows for years.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from pathlib import Path

MAGIC: Final = b"SQLite format 3\0"
_LONGEST_TEXT: Final = 64 << 20  # bytes of a value; more is damage
_MOST: Final = 500  # faults that are looked at
_SHARED: Final = "2nd reference to page"
_FREE: Final = "Freelist"  # pages that hold nothing: no table is longer for what is wrong there


def read_only_uri(path: Path) -> str:
    """A URI that opens the file as it is: no lock, no journal, no side file, whoever else has it open."""
    return f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use; bytes that are no UTF-8 become U+FFFD.

    Raises:
        sqlite3.Error: The file is no database.
    """
    connection = sqlite3.connect(read_only_uri(path), uri=True, check_same_thread=False)
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)
    connection.execute("PRAGMA trusted_schema=OFF")  # defaults and generated columns of a hostile file
    return connection


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
