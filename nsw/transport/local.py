"""This machine as a site: commands are started here, files are linked or copied."""

from __future__ import annotations

import fcntl
import fnmatch
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.errors import CommandResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LocalTransport:
    """Runs commands and moves files on this machine.

    Args:
        mark: A file that every command holds a lock on as long as it runs, so that a later nsw knows of it.
    """

    def __init__(self, mark: Path | None = None) -> None:
        self._mark = mark
        self._held: int | None = None

    def left_running(self) -> bool:
        """Whether the mark is held; if not, the commands of this process hold it from now on."""
        if self._mark is None or self._held is not None:
            return False
        descriptor = os.open(self._mark, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return True
        self._held = descriptor
        return False

    def close(self) -> None:
        """Let go of the mark, also of what a command left behind: in an orderly end that submits nothing more."""
        if self._held is not None:
            fcntl.flock(self._held, fcntl.LOCK_UN)
            os.close(self._held)
            self._held = None

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
    ) -> CommandResult:
        """Run one command; one that cannot be started has exit status 127."""
        prefixes = tuple(without)
        env = {k: v for k, v in os.environ.items() if k in keep or not k.startswith(prefixes)} if prefixes else None
        start = time.monotonic()
        try:
            done = subprocess.run(
                argv, capture_output=True, timeout=timeout, cwd=cwd, stdin=subprocess.DEVNULL, env=env, check=False,
                pass_fds=() if self._held is None else (self._held,),
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            return CommandResult(
                tuple(argv),
                -1,
                _text(late.stdout),
                _text(late.stderr),
                timed_out=True,
                seconds=time.monotonic() - start,
            )
        except OSError as fault:
            return CommandResult(tuple(argv), 127, "", str(fault))
        return CommandResult(
            tuple(argv),
            done.returncode,
            _text(done.stdout),
            _text(done.stderr),
            seconds=time.monotonic() - start,
        )

    def make_folders(self, there: Sequence[str]) -> None:
        """Make folders."""
        for folder in there:
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103  on the hot path of a run

    def put(self, here: Path, there: str) -> None:
        """Copy a file or folder."""
        target = Path(there)
        target.parent.mkdir(parents=True, exist_ok=True)
        if here.is_dir():
            shutil.copytree(here, target, dirs_exist_ok=True)
        else:
            shutil.copy2(here, target)

    def show(self, here: Path, there: str) -> str:  # noqa: ARG002  of a site elsewhere
        """Where it is."""
        return str(here)

    def get(self, there: str, here: Path) -> None:
        """Link a file where the file system can, else copy it; it appears whole or not at all."""
        here.parent.mkdir(parents=True, exist_ok=True)
        part = here.with_name(here.name + ".part")
        part.unlink(missing_ok=True)
        try:
            os.link(there, part)
        except OSError:
            shutil.copy2(there, part)
        part.replace(here)
        part.unlink(missing_ok=True)  # of two links to one file rename leaves both: it was brought before

    def read(self, there: str, limit: int = 1 << 20) -> bytes | None:
        """The first bytes of a file."""
        try:
            with open(there, "rb") as file:  # noqa: PTH123  half the time of Path.open, on the hot path of a run
                return file.read(limit)
        except OSError:
            return None

    def tail(self, there: str, limit: int) -> bytes | None:
        """The last bytes of a file."""
        try:
            with open(there, "rb") as file:  # noqa: PTH123  as above
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
                return file.read(limit)
        except OSError:
            return None

    def glob(self, folder: str, patterns: Sequence[str]) -> list[str]:
        """Names of plain files in a folder that match."""
        try:
            entries = [e.name for e in os.scandir(folder) if e.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(n for n in entries if any(fnmatch.fnmatchcase(n, p) for p in patterns))


def connect(_site: Mapping[str, Any], _scratch: str | None, mark: Path | None) -> LocalTransport:
    """This machine, whatever the site."""
    return LocalTransport(mark)


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
