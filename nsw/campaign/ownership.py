"""Whose a campaign is, and who may look into its folder: anybody may read it, only its owner's nsw drives it.

Its scripts run as the user who drives it, so a campaign that another user made is never driven. Its files are read
only as long as they are that user's: a link among them may lead to a file of whoever looks.
"""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from nsw.errors import CampaignError
from nsw.safe_files import open_plain, read_plain, user_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "group_may_read", "is_own", "make_private", "open_file", "owner", "owner_if_other", "require_own", "tail",
]  # fmt: skip

_GROUP_READS = 0o050


def owner(folder: Path) -> int:
    """The user id that a campaign's folder belongs to."""
    return folder.stat().st_uid


def is_own(folder: Path) -> bool:
    """Whether it is this user's own."""
    return owner(folder) == os.geteuid()


def owner_if_other(folder: Path) -> str | None:
    """The other user whose campaign it is; None where it is this user's own."""
    return None if is_own(folder) else user_name(owner(folder))


def _required_owner(folder: Path) -> int | None:
    return None if is_own(folder) else owner(folder)


def open_file(folder: Path, file: Path) -> BinaryIO:
    """Open a file of the campaign in `folder`, which no link may replace and which its owner must have made.

    Raises:
        OSError: It is not there, or is no such file.
    """
    return os.fdopen(open_plain(file, owner=_required_owner(folder)), "rb")


def tail(folder: Path, files: Iterable[Path], limit: int) -> bytes | None:
    """The last bytes of the first of these files that is there and can be read; None when there is none."""
    for file in files:
        with suppress(OSError):
            return read_plain(file, owner=_required_owner(folder), last=limit)
    return None


def require_own(folder: Path) -> None:
    """Raise where a campaign is not this user's own: nothing there is written, run or submitted.

    Raises:
        CampaignError: It belongs to another user.
    """
    other = owner_if_other(folder)
    if other is None or _shown_as_own(folder):
        return
    raise CampaignError(
        f"campaign {folder.name} belongs to {other}: nsw drives only campaigns of your own",
        hint="`nsw status`, `nsw logs` and `nsw summarize` can read it;"
        f" `nsw run {folder}/recipe.lock.yaml` starts your own campaign from its recipe",
    )


def _shown_as_own(folder: Path) -> bool:
    """Whether a file that this user makes there gets the same owner: some file systems (sshfs) know only one."""
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=folder, prefix=".nsw-") as made:
        return os.fstat(made.fileno()).st_uid == owner(folder)
    return False


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
