"""Opening the file of a ledger: to look at it, which changes nothing there, or to drive its campaign.

An nsw that was killed within a write leaves a journal, and SQLite takes the write back at the next opening. It then
also deletes the file that the journal's end names, if any: who made the journal chooses which. A ledger with such a
journal, or of another user, is therefore read from a private copy, and a journal that names a file is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nsw.campaign.ownership import is_own, owner, require_own
from nsw.errors import CampaignError
from nsw.safe_files import open_plain

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T", bound=sqlite3.Connection)

_JOURNAL_END = bytes.fromhex("d9d505f920a163d7")  # closes the name of another file at a journal's end
_LARGEST = 1 << 29  # bytes of another user's ledger: some million runs
_PATIENCE_S = 3.0  # for who writes it: a write takes milliseconds
_PENDING, _SHARED, _SHARED_SIZE = 0x40000000, 0x40000002, 510  # the bytes that SQLite locks
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


def open_to_look(path: Path, connect: Callable[[Path, str], T]) -> tuple[T, tempfile.TemporaryDirectory[str] | None]:
    """A connection that only reads, and the private copy that it reads from, if one was needed.

    Args:
        path: The ledger.
        connect: Opens a database: (file, mode of SQLite).

    Raises:
        CampaignError: The ledger, or what is beside it, is not what nsw leaves.
    """
    try:
        mine = is_own(path.parent)
        if mine:
            _refuse_other_than_plain(path)
            db = connect(path, "ro")
            if not _has_broken_write(db):
                return db, None
            db.close()
    except OSError as fault:
        raise _unusable(fault, path) from None
    return copy_to_look(path, connect)


def copy_to_look(path: Path, connect: Callable[[Path, str], T]) -> tuple[T, tempfile.TemporaryDirectory[str]]:
    """A connection to a private copy, which may be changed, and the folder that the copy is in.

    Raises:
        CampaignError: The ledger, or what is beside it, is not what nsw leaves.
    """
    try:
        copy = _private_copy(path, owner(path.parent))
    except OSError as fault:
        raise _unusable(fault, path) from None
    return connect(Path(copy.name) / path.name, "rw"), copy


def open_to_drive(path: Path, connect: Callable[[Path, str], T]) -> T:
    """A connection that writes.

    Raises:
        CampaignError: The campaign is another user's, or the ledger, or what is beside it, is not what nsw leaves.
    """
    try:
        require_own(path.parent)
        _refuse_other_than_plain(path)
        with suppress(FileNotFoundError):
            journal = open_plain(_journal(path), owner=owner(path.parent))
            try:
                _refuse_other_file(journal, path)
            finally:
                os.close(journal)
    except OSError as fault:
        raise _unusable(fault, path) from None
    return connect(path, "rw")


def _journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def _unusable(fault: OSError, path: Path) -> CampaignError:
    return CampaignError(f"{fault.filename or path} cannot be used: {fault.strerror or fault}")


def _refuse_other_than_plain(path: Path) -> None:
    os.close(open_plain(path, owner=owner(path.parent)))
    with suppress(FileNotFoundError):  # SQLite would wait for a FIFO
        os.close(open_plain(_journal(path), owner=owner(path.parent)))
    log = path.with_name(f"{path.name}-wal")
    if os.path.lexists(log):
        raise CampaignError(
            f"{log} is there, a write-ahead log, which no nsw leaves",
            hint=f"open {path.name} with sqlite3 and run `PRAGMA journal_mode = DELETE`, which merges it",
        )


def _refuse_other_file(journal: int, path: Path) -> None:
    size = os.fstat(journal).st_size
    if size >= len(_JOURNAL_END) and os.pread(journal, 8, size - 8) == _JOURNAL_END:
        raise CampaignError(
            f"{_journal(path)} names another file, which SQLite would delete; no nsw writes such a journal",
            hint="ask who made this campaign; without the journal its state may be damaged",
        )


def _has_broken_write(db: sqlite3.Connection) -> bool:
    """Whether a killed nsw left a write half done, which who only reads cannot take back."""
    try:
        db.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as fault:
        return fault.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK
    except sqlite3.DatabaseError:  # said by who asks for more
        return False
    return False


def _private_copy(path: Path, owned_by: int) -> tempfile.TemporaryDirectory[str]:
    """A folder with the ledger and its journal, as they are while nobody writes; only this user can see into it."""
    source = open_plain(path, owner=owned_by)
    folder = tempfile.TemporaryDirectory(prefix="nsw-ledger-")
    try:
        _lock(source, path)  # until it is closed
        most = None if owned_by == os.geteuid() else _LARGEST
        _copy(source, Path(folder.name) / path.name, path, most)
        with suppress(FileNotFoundError):
            journal = open_plain(_journal(path), owner=owned_by)
            try:
                _refuse_other_file(journal, path)
                copy = _journal(Path(folder.name) / path.name)
                _copy(journal, copy, path, most)
            finally:
                os.close(journal)
            with copy.open("rb") as file:  # of the copy, which nobody changes
                _refuse_other_file(file.fileno(), path)
    except BaseException:
        folder.cleanup()
        raise
    finally:
        os.close(source)
    return folder


def _lock(descriptor: int, path: Path) -> None:
    """Take SQLite's lock of one who reads, by which no one changes the file."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, _PENDING)
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED)
            fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, _PENDING)
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


def _copy(source: int, target: Path, path: Path, most: int | None) -> None:
    size = os.fstat(source).st_size
    if most is not None and size > most:
        raise CampaignError(
            f"{path} has {size} bytes; of another user's ledger at most {most} are read", hint="ask its owner"
        )
    with target.open("xb") as file, open(os.dup(source), "rb") as stream:  # noqa: PTH123  a descriptor
        while size > 0 and (chunk := stream.read(min(size, 1 << 20))):
            file.write(chunk)
            size -= len(chunk)
