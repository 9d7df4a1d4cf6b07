"""Which campaigns nsw acts for (those that it made, or that the user adopted), and whether strangers could move them.

A campaign has a random token in its folder, and the user's state folder a file of that name, which binds the token to
the folder's owner, device, inode and time of birth (inodes are used again). A copy of the folder, or one unpacked from
an archive, was born later; a folder that a stranger puts in its place has no token that the user's state folder knows.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import secrets
import stat
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.errors import CampaignError, CommandError, UnreachableError
from nsw.resources import shipped_text, user_folder
from nsw.safe_files import make_folders, open_plain, read_below, read_text, write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from nsw.transport.model import Transport

__all__ = [
    "TOKEN",
    "WALK",
    "forget",
    "is_trusted",
    "known_paths",
    "refuse_strangers",
    "require_own_folder",
    "require_own_place",
    "require_own_root",
    "trust",
]

TOKEN: Final = "token"  # noqa: S105  the name of the file
_FORM: Final = re.compile(r"[0-9a-f]{32}")


def trust(directory: int, path: Path) -> None:
    """Act for the campaign in the folder of this descriptor from now on; `path` is where `nsw ls` looks for it.

    Raises:
        CampaignError: The user has no state folder, or it or the folder cannot be written.
    """
    token = secrets.token_hex(16)
    try:
        make_folders(_token_folder(), mode=0o700)
        descriptor = _open_token_folder()
        try:
            _write_private(descriptor, token, f"{_folder_identity(directory)}\n{path.absolute()}")
        finally:
            os.close(descriptor)
        _write_private(directory, TOKEN, token)
    except OSError as fault:
        raise CampaignError(
            f"nsw cannot write that it may act for the campaign: {fault.filename or 'its folder'}: {fault.strerror}",
            hint="its folder and your state folder must be writable: HOME or XDG_STATE_HOME names another",
        ) from None


def forget(directory: int) -> None:
    """Act for it no more."""
    if is_trusted(directory):
        (_token_folder() / read_below(directory, TOKEN).decode("ascii")).unlink()


def is_trusted(directory: int) -> bool:
    """Whether the folder of this descriptor is a campaign that this user's nsw made, or that the user adopted."""
    try:
        token = read_below(directory, TOKEN, last=64).decode("ascii")
        if _FORM.fullmatch(token) is None:
            return False
        descriptor = _open_token_folder()
        try:
            return os.fsdecode(read_below(descriptor, token)).partition("\n")[0] == _folder_identity(directory)
        finally:
            os.close(descriptor)
    except (OSError, UnicodeDecodeError):
        return False


def known_paths() -> list[Path]:
    """Where the campaigns that nsw acts for were made or adopted; they may have gone since."""
    try:
        descriptor = _open_token_folder()
    except OSError:
        return []
    try:
        texts = [os.fsdecode(read_below(descriptor, name)) for name in os.listdir(descriptor) if _FORM.fullmatch(name)]  # noqa: PTH208  of a descriptor
    finally:
        os.close(descriptor)
    return [Path(path) for _, _, path in (text.partition("\n") for text in texts) if path]


def _token_folder() -> Path:
    return user_folder("state") / "campaigns"


def _open_token_folder() -> int:
    """A descriptor of the folder of what is trusted.

    Raises:
        OSError: It is not there, or others could have written what is in it.
    """
    descriptor = os.open(_token_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    is_own = status.st_uid == os.geteuid() or _maps_all_owners_to(status.st_uid, descriptor)
    if not is_own or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it belongs to another user, or others may write it", str(_token_folder()))
    return descriptor


def _maps_all_owners_to(owner: int, directory: int) -> bool:
    """Whether new files of this user get this owner too: some file systems (sshfs) have only one owner."""
    name = f".{os.getpid()}"
    with suppress(OSError):
        descriptor = open_plain(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, folder=directory)
        try:
            return os.fstat(descriptor).st_uid == owner
        finally:
            os.close(descriptor)
            os.unlink(name, dir_fd=directory)
    return False


def _write_private(directory: int, name: str, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    write_bytes(Path(f"/proc/self/fd/{directory}/{name}"), os.fsencode(text), 0o600)


def _folder_identity(directory: int) -> str:
    """An identity that a folder keeps when it is moved in its file system, and no other folder has."""
    status = os.fstat(directory)
    return f"{status.st_uid} {status.st_ino} {_birth_time(directory)} {_file_system_id(directory, status.st_dev)}"


_AT_EMPTY_PATH, _STATX_BTIME, _AT_BTIME = 0x1000, 0x800, 0x50  # of statx(2), and where the time is in its struct


def _birth_time(directory: int) -> str:
    """When the folder was made, ns; 0 where its file system does not tell. Python's os has no statx before 3.15."""
    buffer = ctypes.create_string_buffer(256)
    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None or statx(directory, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        return "0"
    (mask,) = struct.unpack_from("=I", buffer)
    seconds, ns = struct.unpack_from("=qI", buffer, _AT_BTIME)
    return f"{seconds}.{ns:09}" if mask & _STATX_BTIME else "0"


def _file_system_id(directory: int, number: int) -> str:
    """The file system: by its number, or by what is mounted where the kernel numbers each mount anew (NFS, Lustre)."""
    if os.major(number):
        return f"{os.major(number)}:{os.minor(number)}"
    with suppress(OSError):
        info = read_text(f"/proc/self/fdinfo/{directory}")
        wanted = re.search(r"^mnt_id:\s*(\d+)$", info, re.MULTILINE)
        for line in read_text("/proc/self/mountinfo", errors="backslashreplace").split("\n"):
            mount, _, source = line.partition(" - ")
            if wanted and mount.split(" ", 1)[0] == wanted[1]:
                return " ".join(source.split()[:2])  # type and source
    return f"0:{os.minor(number)}"


_SECONDS: Final = 60.0
_OTHER_ROOT: Final = "name another folder with --root or NSW_ROOT"
_OVERFLOW_UID: Final = 65534  # of whom a container, or a server that squashes root, says nothing more
# prints the user's number, then of each folder on the way its owner's number and name, mode and path; links on the way
# are printed and followed, and what is not there yet ends it
WALK: Final = shipped_text("engine/walk.sh")


def require_own_root(root: Path, trusted: Collection[str | int], warn: Callable[[str], object]) -> None:
    """Raise where a stranger could replace the folder of campaigns on this machine, as `require_own_place` does.

    Args:
        root: The folder, which need not be there.
        trusted: Names or numbers of other users that may own it, or a folder above it.
        warn: Called with a sentence where a folder's owner is not known.

    Raises:
        CampaignError: One could.
    """
    from nsw.transport.local import LocalTransport

    require_own_place(LocalTransport(), str(root.absolute()), trusted, warn, hint=_OTHER_ROOT)


def require_own_folder(
    directory: int,
    path: Path,
    trusted: Collection[str | int],
    warn: Callable[[str], object],
    *,
    later: Path | None = None,
) -> None:
    """Raise where a stranger could replace a campaign's folder that nsw just made, or has replaced it.

    Args:
        directory: The descriptor of the folder that nsw made.
        path: The path that must lead to it.
        trusted: Names or numbers of other users that may own it, or a folder above it.
        warn: Called with a sentence where a folder's owner is not known.
        later: The path beside it that it gets once it is filled, for messages; None: it keeps `path`.

    Raises:
        CampaignError: A stranger could replace it, or the path leads to another folder.
    """
    require_own_root(later or path, trusted, warn)
    if not os.path.samestat(path.lstat(), os.fstat(directory)):
        raise CampaignError(f"another user replaced {later or path} while nsw created it", hint=_OTHER_ROOT)


def require_own_place(
    transport: Transport, path: str, trusted: Collection[str | int], warn: Callable[[str], object], *, hint: str
) -> None:
    """Raise where a stranger could put something else in the place of what nsw makes in a folder.

    Args:
        transport: The way to the machine.
        path: The folder, which need not be there.
        trusted: Names or numbers of other users that may own it, or a folder above it.
        warn: Called with a sentence where a folder's owner is not known.
        hint: What to do.

    Raises:
        CampaignError: One could.
        UnreachableError: The site gave no answer.
    """
    done = transport.run(["bash", "-c", WALK, "nsw", path], timeout=_SECONDS)
    if done.timed_out:
        raise UnreachableError(f"the owners of {path} could not be listed: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, subject=f"the owners of {path} cannot be listed")
    refuse_strangers(done.stdout, path, trusted, warn, hint=hint)


def refuse_strangers(
    walked: str, path: str, trusted: Collection[str | int], warn: Callable[[str], object], *, hint: str
) -> None:
    """Raise where the output of `WALK` shows that a stranger could replace a folder, as `require_own_place` does.

    The user, root and the owners in `trusted` are accepted, and so are folders that a group may write.

    Args:
        walked: What `WALK` printed.
        path: The folder, for messages.
        trusted: Names or numbers of other users that may own it, or a folder above it.
        warn: Called with a sentence where a folder's owner is not known.
        hint: What to do.

    Raises:
        CampaignError: Another user owns one of the folders, or everyone can write to it.
    """
    user, *folders = walked.removesuffix("\0").split("\0")
    accepted_owners = {int(user), 0, *trusted}
    for uid, name, mode, folder in (record.split("\t", 3) for record in folders):
        bits = int(mode, 16)
        if int(uid) == _OVERFLOW_UID and _OVERFLOW_UID not in accepted_owners:
            warn(f"the owner of {folder} is unknown, and could replace what nsw runs from {path}")
        elif int(uid) not in accepted_owners and name not in accepted_owners:
            owner = f"user {uid if name == 'UNKNOWN' else name}"
            advice = "; a site's `trusted_owners` may name that user"
            raise CampaignError(
                f"{folder} belongs to {owner}, who could replace what nsw runs from {path}", hint=hint + advice
            )
        elif not stat.S_ISLNK(bits) and bits & stat.S_IWOTH and not bits & stat.S_ISVTX:
            raise CampaignError(
                f"everyone can write to {folder} and could replace what nsw runs from {path}", hint=hint
            )
