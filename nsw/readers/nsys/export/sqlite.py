"""`nsys export --type sqlite` of every version from 2020 on.

Columns are found by name, tables may be missing (the export leaves out empty ones), and nothing is written:
neither to the file nor beside it.
"""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from nsw.readers.model import Options, Report, Sample
from nsw.readers.nsys.export.connection import SqliteSource
from nsw.readers.nsys.export.tables import fill
from nsw.readers.sqlite_files import MAGIC, may_not_end, open_read_only

if TYPE_CHECKING:
    from pathlib import Path

_NSYS_TABLES = frozenset(
    (b"StringIds", b"META_DATA_EXPORT", b"EXPORT_META_DATA", b"ENUM_NSYS_EVENT_TYPE", b"TARGET_INFO_SESSION_START_TIME")
)
_SUFFIXES = (".sqlite", ".sqlite3", ".db")
_AGAIN = "export the report again, or copy the file again"
_CHECKED = 64 << 20  # bytes; larger files are not checked for structure before they are read: 5 s a GB


def sniff(sample: Sample) -> int:
    """Certain of a database with a table that only nsys makes."""
    if not sample.head.startswith(MAGIC):
        return 0
    try:
        connection = open_read_only(sample.path)
        connection.text_factory = bytes  # damaged names are no text
        try:
            names = {n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            connection.close()
    except (sqlite3.Error, UnicodeDecodeError):
        # too damaged to list its tables: the first page may still name one
        return 60 if any(n in sample.head for n in _NSYS_TABLES) else 10 * (sample.suffix in _SUFFIXES)
    return 100 if names & _NSYS_TABLES else 0


def read(path: Path, options: Options) -> Report:
    """Read an export; see `nsw.readers.nsys.export.tables` for what comes out."""
    report = Report(str(path), tool="nsys", format="nsys-sqlite")
    before = path.stat()
    _warn_of_writers(path, report)
    try:
        with SqliteSource(path) as source, SqliteSource(path, use_adbc=False) as again:
            if before.st_size <= _CHECKED and (found := source.check()):
                report.error(f"the database is damaged: {found[0]}", fix=_AGAIN)
                if may_not_end(found):
                    return report
            fill(report, source, options, again=again)
    except (sqlite3.Error, UnicodeDecodeError) as fault:  # its own messages quote the file's bytes
        report.error(f"the database is damaged: {fault}", fix=_AGAIN)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        report.tables.clear()
        report.error("the file changed while it was read", fix="read it again when no program is writing to it")
    return report


def _warn_of_writers(path: Path, report: Report) -> None:
    for ending in ("-journal", "-wal"):
        beside = path.with_name(path.name + ending)
        if beside.exists() and os.path.getsize(beside):  # noqa: PTH202  one call for a file that may vanish
            report.warn(
                f"{beside.name} is beside the file: its writer is still running or was interrupted",
                fix="read it again when no program is writing to it",
            )
