"""Files of other profilers, which no reader reads: recognised by data/other_files.toml, and what to do with each."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.readers.untrusted_files import SQLITE_MAGIC, open_sqlite_read_only

if TYPE_CHECKING:
    from nsw.readers.model import Sample

__all__ = ["OtherFile", "describe_other_file"]


_MAX_STATEMENTS: Final = 200  # of a database, that are looked at


class OtherFile(NamedTuple):
    """A kind of file: what it is, and what to do with it."""

    pattern: re.Pattern[bytes]
    meaning: str
    fix: str


def describe_other_file(sample: Sample) -> tuple[str, str] | None:
    """What a file of another profiler is, and what to do; None where it is none that nsw knows."""
    is_database = sample.head.startswith(SQLITE_MAGIC)
    head = _sqlite_create_statements(sample) if is_database else sample.head.replace(b"\r\n", b"\n")
    kind = next((kind for kind in _known_other_files() if kind.pattern.search(head)), None)
    if kind is None:
        return None
    return kind.meaning, kind.fix.replace("{path}", shlex.quote(str(sample.path)))


@cache
def _known_other_files() -> tuple[OtherFile, ...]:
    import tomllib

    text = files("nsw.readers").joinpath("data/other_files.toml").read_text(encoding="utf-8")
    return tuple(
        OtherFile(re.compile(row["pattern"].encode(), re.MULTILINE), row["meaning"], row["fix"])
        for row in tomllib.loads(text)["file"]
    )


def _sqlite_create_statements(sample: Sample) -> bytes:
    """The statements that made a database's tables and views, as text; nothing where it cannot be read."""
    try:
        with closing(open_sqlite_read_only(sample.path)) as database:
            database.text_factory = bytes
            rows = database.execute("SELECT sql FROM sqlite_master LIMIT ?", (_MAX_STATEMENTS,)).fetchall()
    except (sqlite3.Error, UnicodeDecodeError):  # its own message names what is damaged
        return b""
    return b"\n".join(sql[:4000] for (sql,) in rows if isinstance(sql, bytes))
