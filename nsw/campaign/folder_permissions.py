"""Who may look into a campaign's folder here: its owner, or the group too."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_GROUP_READS = 0o050


def make_private(folder: Path, share: str) -> None:
    """Make a folder, and those on the way, that only the owner can enter, or the group too.

    Raises:
        FileExistsError: It is there already.
        OSError: It cannot be made; NotADirectoryError if its parent is a file.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError as fault:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder.parent)) from fault
    folder.mkdir(mode=0o700)
    if share == "group":
        folder.chmod(folder.stat().st_mode | _GROUP_READS)


@contextmanager
def group_may_read(share: str) -> Iterator[None]:
    """Let the group read what this process and its children make, where the site says so."""
    if share != "group":
        yield
        return
    before = os.umask(0o077)
    os.umask(before & ~_GROUP_READS)
    try:
        yield
    finally:
        os.umask(before)
