"""Every file that nsw opens, in folders that other users may write: this module opens it, and no other does.

A neighbour can put anything in the place of a file: a symbolic link to a file of yours, a FIFO that never answers, a
device. Nothing is read from or written to before the open file itself has been looked at, and what nsw writes is a new
file under a name that nobody can guess, which then takes the place of what has its name.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from io import BufferedReader

_ACL = "system.posix_acl_access"
_NOT_PLAIN = "it is not a regular file"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_thread = threading.local()


@contextmanager
def readable_by_group(share: str) -> Iterator[None]:
    """Let the group read what this thread makes meanwhile for others to see, whatever the umask is.

    Modes are set file by file: the umask belongs to the whole process, which may be somebody else's program.

    Args:
        share: What the site says: group, or nobody, where the umask alone decides.
    """
    before = getattr(_thread, "group_reads", False)
    _thread.group_reads = share == "group"
    try:
        yield
    finally:
        _thread.group_reads = before


def _group_bits(mode: int, requested: int) -> int:
    """The permission bits that the group gets beside those of `mode`: of the requested ones to read and to enter."""
    if not getattr(_thread, "group_reads", False):
        return 0
    return requested & (stat.S_IRGRP | stat.S_IXGRP) & ~mode


class NotPlainError(OSError):
    """There is something else than a plain file: a link, a FIFO, a device, a folder."""


def open_plain(
    path: Path | str,
    flags: int = os.O_RDONLY,
    mode: int = 0o600,
    *,
    owner: int | None = None,
    folder: int | None = None,
) -> int:
    """A descriptor of a plain file; a symbolic link in its place is not followed.

    Args:
        path: The file.
        flags: As of os.open.
        mode: Permissions of a file that is made.
        owner: The user id that the file must have, if any.
        folder: The descriptor of the folder that the path begins at, if any.

    Raises:
        NotPlainError: It is not a regular file.
        OSError: It cannot be opened, or belongs to somebody else; `strerror` says which.
    """
    try:
        # O_NONBLOCK: a FIFO would wait for its other end
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise NotPlainError(
                errno.ELOOP, "it is a symbolic link, which nsw does not follow here", str(path)
            ) from None
        if fault.errno == errno.ENXIO:  # a FIFO without a reader, a socket
            raise NotPlainError(errno.ENXIO, _NOT_PLAIN, str(path)) from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotPlainError(errno.EINVAL, _NOT_PLAIN, str(path))
    if owner is not None and status.st_uid != owner:
        os.close(descriptor)
        reason = f"it belongs to {user_name(status.st_uid)}, not to {user_name(owner)}"
        raise PermissionError(errno.EPERM, reason, str(path))
    if flags & os.O_CREAT and (bits := _group_bits(status.st_mode, mode)):
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | bits)
    return descriptor


def read_plain(path: Path | str, *, owner: int | None = None, last: int | None = None) -> bytes:
    """Return the bytes of a plain file; a symbolic link in its place is not followed.

    Args:
        path: The file.
        owner: The user id that the file must have, if any.
        last: Read only so many bytes at its end; None: all.

    Raises:
        NotPlainError, OSError: As `open_plain`.
    """
    return _read_descriptor(open_plain(path, owner=owner), last)


def open_folder_below(folder: int, names: Sequence[str]) -> int:
    """A descriptor of a folder below an open one, without following a link on the way.

    Raises:
        OSError: One of the names is no folder.
    """
    descriptor = os.dup(folder)
    for name in names:
        try:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def open_below(folder: int, name: str, *, owner: int | None = None) -> int:
    """Return a descriptor of a plain file below an open folder, without following a link on the way.

    Args:
        folder: The descriptor of the folder.
        name: The file's path below it.
        owner: The user id that the file must have, if any.

    Raises:
        OSError: As `open_plain`, or a name on the way is no folder.
    """
    *parents, last = name.split("/")
    parent = open_folder_below(folder, parents)
    try:
        return open_plain(last, owner=owner, folder=parent)
    finally:
        os.close(parent)


def read_below(folder: int, name: str, *, last: int | None = None) -> bytes:
    """Return the bytes of a plain file below an open folder, without following a link on the way.

    Args:
        folder: The descriptor of the folder.
        name: The file's path below it.
        owner: The user id that the file must have, if any.
        last: Read only so many bytes at its end; None: all.

    Raises:
        OSError: As `open_below`.
    """
    return _read_descriptor(open_below(folder, name), last)


def _read_descriptor(descriptor: int, last: int | None) -> bytes:
    with open(descriptor, "rb") as file:
        if last is not None:
            file.seek(max(0, os.fstat(file.fileno()).st_size - last))
        return file.read(-1 if last is None else last)


def open_output(path: Path, mode: int = 0o666) -> int:
    """A descriptor for writing a file that the user named, anew; a link of another user in its place is not followed.

    Raises:
        OSError: It cannot be opened, or is such a link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(path, flags | os.O_NOFOLLOW, mode)
    except OSError as fault:
        if fault.errno != errno.ELOOP:
            raise
    owner = os.lstat(path).st_uid
    if owner not in {os.geteuid(), 0}:
        raise PermissionError(errno.EPERM, f"it is a link that {user_name(owner)} made", str(path))
    return os.open(path, flags, mode)


def open_regular(path: Path | str) -> int:
    """A descriptor for reading a regular file that the user named; symbolic links are followed.

    Raises:
        NotPlainError: It is a FIFO, a socket, a device or a folder; nothing was waited for.
        OSError: It cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as fault:
        if fault.errno == errno.ENXIO:  # a socket
            raise NotPlainError(errno.ENXIO, _NOT_PLAIN, str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotPlainError(errno.EINVAL, _NOT_PLAIN, str(path))
    return descriptor


def open_to_read(path: Path | str) -> BufferedReader:
    """A regular file for reading; symbolic links are followed. Raises as `open_regular` does."""
    return os.fdopen(open_regular(path), "rb")


def read_bytes(path: Path | str, limit: int | None = None) -> bytes:
    """The bytes of a regular file, symbolic links followed; of one that is longer than the limit an error.

    Raises:
        NotPlainError: It is not a regular file.
        OSError: It cannot be read, or is longer.
    """
    with open_to_read(path) as file:
        data = file.read(-1 if limit is None else limit + 1)
    if limit is not None and len(data) > limit:
        raise OSError(errno.EFBIG, f"it is longer than {limit:,} bytes", str(path))
    return data


def read_text(path: Path | str, limit: int | None = None, *, errors: str = "strict") -> str:
    r"""Return the text of a regular file, symbolic links followed, with `\n` at the end of each line.

    Args:
        path: The file.
        limit: The most bytes that it may have; None: any number.
        errors: What becomes of bytes that are not UTF-8, as in `bytes.decode`.

    Raises:
        OSError: As `read_bytes`.
        UnicodeDecodeError: It is not UTF-8.
    """
    return read_bytes(path, limit).decode("utf-8", errors).replace("\r\n", "\n").replace("\r", "\n")


def open_text(path: Path | str, *, errors: str = "strict") -> TextIO:
    """A regular file of UTF-8 text for reading line by line; symbolic links are followed. Raises as `open_regular`."""
    return os.fdopen(open_regular(path), "r", encoding="utf-8", errors=errors)


def make_file(path: Path) -> BinaryIO:
    """A new file for writing, where there is nothing of that name.

    Raises:
        OSError: There is something, or it cannot be made.
    """
    return os.fdopen(open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def replacing_file(path: Path, mode: int = 0o644) -> Iterator[BinaryIO]:
    """A new file that takes the place of what has that name when the block ends well: whole, or not at all.

    In the place of a link it is the link that goes, not its file.

    Args:
        path: The file.
        mode: Its permissions, as far as the umask lets it have them.

    Raises:
        OSError: It cannot be made.
    """
    part = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.part")
    descriptor = open_plain(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a new file, which replaces what has that name, completely or not at all.

    Args:
        path: The file.
        data: Its content.
        mode: Its permissions, as far as the umask lets it have them.

    Raises:
        OSError: It cannot be made.
    """
    with replacing_file(path, mode) as file:
        file.write(data)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a new file of UTF-8 text, which replaces what has that name, completely or not at all.

    Args:
        path: The file.
        text: Its content.
        mode: Its permissions, as far as the umask lets it have them.

    Raises:
        OSError: It cannot be made.
    """
    write_bytes(path, text.encode(), mode)


def copy_file(source: Path | str, target: Path | str) -> None:
    """Put a copy of a regular file, with its times and permissions, in the place of what has that name.

    Nobody but its owner may write the copy.

    Raises:
        NotPlainError: The source is not a regular file: a FIFO would never answer, a device never end.
        OSError: It cannot be read, or the copy not be made.
    """
    with open_to_read(source) as old, replacing_file(Path(target), 0o600) as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        of = os.fstat(old.fileno())
        os.fchmod(new.fileno(), stat.S_IMODE(of.st_mode) & ~OTHERS_WRITE)
        os.utime(new.fileno(), ns=(of.st_atime_ns, of.st_mtime_ns))


def make_folders(path: Path, mode: int = 0o755) -> list[Path]:
    """Make a folder and those above it that are missing, which nobody else may write, whatever the umask is.

    Returns:
        Those that were made, the outermost first.

    Raises:
        FileExistsError: A file is in the place of one.
        OSError: One cannot be made.
    """
    made = []
    for folder in () if path.is_dir() else (*reversed(path.parents), path):
        try:
            folder.mkdir(mode=mode)
        except OSError:  # it is there, or above it nothing can be made
            if not folder.is_dir():
                raise
            continue
        made.append(folder)
        if bits := _group_bits(present := stat.S_IMODE(folder.stat().st_mode), mode):
            folder.chmod(present | bits)
    return made


def user_name(uid: int) -> str:
    """A user for people: the name, or the number where it has none."""
    import pwd

    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"user {uid}"


def foreign_write_reason(path: Path) -> str | None:
    """Why a file or folder may hold what another user wrote, as a sentence about it; None: only its user or root may.

    Raises:
        OSError: It is not there.
    """
    status = path.stat()
    if status.st_uid not in {os.geteuid(), 0}:
        return f"belongs to {user_name(status.st_uid)}"
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:  # as /tmp: others can add names, and move none
        return None
    mode = stat.S_IMODE(status.st_mode)
    if mode & stat.S_IWOTH:
        return f"may be written by everybody (mode {mode:04o})"
    if mode & stat.S_IWGRP and not _is_alone_in(status.st_gid, path):
        return f"may be written by others of its group (mode {mode:04o})"
    return None


def _is_alone_in(gid: int, path: Path) -> bool:
    """Whether a group is this user's own, as many systems make one for each user, and no list names others besides."""
    import grp
    import pwd

    with suppress(OSError, AttributeError):
        if _ACL in os.listxattr(path):  # then the group's bits are the most that any of the list may do
            return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return group.gr_name == user.pw_name and user.pw_gid == gid and set(group.gr_mem) <= {user.pw_name}


def files_in(source: Path, name: str) -> Iterator[tuple[Path, str]]:
    """The files of what an application names, each with its name beside the program; of a folder all below it."""
    if source.is_dir():
        for file in sorted(p for p in source.rglob("*") if p.is_file()):
            yield file, f"{name}/{file.relative_to(source).as_posix()}".removeprefix("/")
    elif source.is_file():
        yield source, name


def hash_of(file: Path) -> str:
    """The SHA-256 of a file's content."""
    import hashlib  # here: only starts and comparisons of programs need it

    with open_to_read(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hashes(files: Iterable[tuple[str | Path, str]]) -> dict[str, str]:
    """The SHA-256 of an application's files by name; given are their places, with their names beside the program."""
    return {name: hash_of(file) for source, beside_name in files for file, name in files_in(Path(source), beside_name)}


def changed_names(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of files that are not as they were, that came or went."""
    return [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
