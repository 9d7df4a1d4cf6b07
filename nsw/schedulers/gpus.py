"""GPUs of this machine: which there are, and claims on them that two runs never share.

A claim is a lock on a file (flock) that the job's processes inherit: it ends with the last of them,
also when nsw has been killed. The files are in one folder per user, so that campaigns see each other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_OF_OURS = 100  # scripts write 3 to 9, and bash itself takes 10 and those after it
_LINE = re.compile(r"GPU (?P<index>\d+): (?P<name>.*?) \(UUID: (?P<uuid>[\w-]+)\)")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi lists it; `index` is what CUDA_VISIBLE_DEVICES takes."""

    index: str
    name: str
    uuid: str


def detect() -> list[Gpu]:
    """The GPUs of this machine that the environment lets us use (CUDA_VISIBLE_DEVICES); none: []."""
    if not shutil.which("nvidia-smi"):
        return []
    try:
        done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = [Gpu(m["index"], m["name"], m["uuid"]) for m in map(_LINE.match, done.stdout.splitlines()) if m]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    chosen: list[Gpu] = []
    for name in (v.strip() for v in visible.split(",")):
        named = next((g for g in found if name and (name == g.index or g.uuid.startswith(name))), None)
        if named is None:  # CUDA looks no further than the first that there is not
            break
        if named not in chosen:
            chosen.append(named)
    return chosen


def claims_folder() -> tuple[Path, list[str]]:
    """The folder that holds this user's claims on this machine.

    Returns:
        The folder, and why each folder before it in the order was not used. Any user can make /tmp/nsw-UID first, so
        a folder counts only if it is this user's own and nobody else may write there.

    Raises:
        OSError: No folder can be used; the text lists them with the reasons.
    """
    refused: list[str] = []
    for folder in _candidates():
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            os.close(_open_own(folder))
        except OSError as fault:
            refused.append(f"{folder}: {fault.strerror or fault}")
        else:
            return folder, refused
    raise OSError("; ".join(refused))


def _candidates() -> Iterator[Path]:
    name = f"nsw-{os.getuid()}"
    if base := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(base) / name
    yield Path(tempfile.gettempdir()) / name
    with suppress(OSError):
        state = user_folder("state")  # only this user makes folders in their home; several machines may share it
        with suppress(OSError):
            state.mkdir(parents=True, exist_ok=True)
        yield state / f"gpus-{socket.gethostname()}"


def _open_own(folder: Path) -> int:
    """A descriptor of the folder.

    Raises:
        OSError: It is a link or no folder, or others own it or may write there.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as fault:
        if folder.is_symlink():
            raise OSError(fault.errno, "it is a symbolic link") from None
        raise
    found = os.fstat(descriptor)
    why = ""
    if found.st_uid != os.getuid():
        why = f"it belongs to user {found.st_uid}"
    elif found.st_mode & 0o022:
        why = f"others may write there (mode {stat.S_IMODE(found.st_mode):04o})"
    if why:
        os.close(descriptor)
        raise PermissionError(errno.EPERM, why)
    return descriptor


def out_of_the_way(descriptor: int) -> int:
    """The same open file under a number that scripts do not use: `exec 9>file` of a site's set-up ends no lock."""
    try:
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(_FIRST_OF_OURS, most // 2))
    finally:
        os.close(descriptor)


def claim(gpus: list[Gpu], count: int, folder: Path) -> tuple[list[Gpu], list[int]] | None:
    """Claim `count` of the GPUs.

    Returns:
        The GPUs and the open file descriptors that hold the claims, to be passed to the job and then closed
        here; None when fewer are free.

    Raises:
        OSError: The folder is not safe, or its file system has no locks.
    """
    taken: list[Gpu] = []
    held: list[int] = []
    within = _open_own(folder)
    try:
        for gpu in gpus:
            if len(taken) == count:
                break
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = out_of_the_way(os.open(f"{gpu.uuid}.lock", flags, 0o600, dir_fd=within))
            held.append(descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(held.pop())
                continue
            taken.append(gpu)
    except OSError:
        for descriptor in held:
            os.close(descriptor)
        raise
    finally:
        os.close(within)
    if len(taken) == count:
        return taken, held
    for descriptor in held:
        os.close(descriptor)
    return None
