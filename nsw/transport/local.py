"""This machine as a site: commands are started here, files are linked or copied."""

from __future__ import annotations

import contextlib
import fcntl
import filecmp
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from nsw.errors import DISK_FULL, CommandError, CommandResult, UnreachableError, UsageError, disk_full
from nsw.safe_files import NotPlainError, copy_file, make_folders, open_plain
from nsw.transport.model import MOST_OUTPUT, Conditions, Content, Entry, Excerpt, Transport, Unreadable, matches

_LAST_WORDS_S = 5.0
_LOOK_S = 0.02


class LocalTransport(Transport):
    """Runs commands and moves files on this machine.

    Args:
        mark: A file that every command holds a lock on as long as it runs, so that a later nsw knows of it.
    """

    remote = False

    def __init__(self, mark: Path | None = None) -> None:
        self._mark = mark
        self._mark_descriptor: int | None = None

    def left_running(self) -> bool:
        """Whether the mark is held; if not, the commands of this process hold it from now on."""
        if self._mark is None or self._mark_descriptor is not None:
            return False
        descriptor = open_plain(self._mark, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return True
        self._mark_descriptor = descriptor
        return False

    def close(self) -> None:
        """Let go of the mark, also of what a command left behind: in an orderly end that submits nothing more."""
        if self._mark_descriptor is not None:
            fcntl.flock(self._mark_descriptor, fcntl.LOCK_UN)
            os.close(self._mark_descriptor)
            self._mark_descriptor = None

    def run(self, argv: Sequence[str], **conditions: Unpack[Conditions]) -> CommandResult:
        """Run one command; one that cannot be started has exit status 127."""
        stdin = conditions.get("stdin")
        start = time.monotonic()
        try:
            # a process group of its own, so that a timeout ends all of it
            child = subprocess.Popen(
                argv, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, bufsize=0, cwd=conditions.get("cwd"), env=_visible_environment(conditions),
                start_new_session=True, pass_fds=() if self._mark_descriptor is None else (self._mark_descriptor,),
            )  # fmt: skip
        except OSError as fault:
            return CommandResult(tuple(argv), 127, "", str(fault))
        output = _Exchange(child, stdin or b"")
        with child:
            try:
                late = not output.ended(conditions["timeout"])
                if late:
                    _kill_group(child)
                    output.ended(_LAST_WORDS_S)  # a process that left the group may hold its output open
                    _wait_for_group(child.pid)
            except BaseException:
                _kill_group(child)
                raise
        return output.result(argv, time.monotonic() - start, late=late)

    # --- files: there -------------------------------------------------------------------------------------

    def expand(self, path: str) -> str:
        """With this process's variables."""
        expanded = os.path.expanduser(os.path.expandvars(path))  # noqa: PTH111  with the variables' expansion in one line
        if "$" in expanded or not expanded.startswith("/"):
            raise UsageError(f"{path} is {expanded}: use an absolute path, and set its variables")
        return expanded

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make folders."""
        for folder in paths:
            try:
                make_folders(Path(folder))
            except OSError as fault:
                raise _file_error("mkdir", folder, fault) from None

    def read_many(self, paths: Sequence[str], limit: int = 1 << 20, *, end: bool = False) -> dict[str, Content]:
        """The first or the last bytes of files."""
        return {path: _read_file(path, limit, end=end) for path in paths}

    def list_many(self, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
        """Plain files in folders that match."""
        return {folder: _list_folder(folder, patterns) for folder, patterns in folders.items()}

    # --- files: to and fro --------------------------------------------------------------------------------

    def show(self, local_path: Path, remote_path: str) -> str:  # noqa: ARG002  of a site elsewhere
        """Where it is."""
        return str(local_path)

    def stage(self, files: Sequence[tuple[Path, str]]) -> None:
        """Copy files and folders."""
        for source, target in files:
            try:
                _copy_tree(source, Path(target))
            except OSError as fault:
                raise _file_error("cp", target, fault) from None

    def get_many(self, files: Sequence[tuple[str, Path]]) -> None:
        """Link files where the file system can, else copy them."""
        for source, target in files:
            try:
                _link_or_copy(source, target)
            except OSError as fault:
                if fault.errno in DISK_FULL:
                    raise disk_full(target, fault.strerror) from None
                raise _file_error("cp", source, fault) from None


def connect(_site: Mapping[str, Any], _scratch: str | None, mark: Path | None) -> LocalTransport:
    """Return the transport to this machine; `nsw.transport.model.connect` calls it.

    Args:
        _site: Unused; every transport's `connect` has it.
        _scratch: Unused, likewise.
        mark: A file that every command locks while it runs; None: commands leave no mark.
    """
    return LocalTransport(mark)


def _visible_environment(conditions: Conditions) -> dict[str, str] | None:
    hidden, keep = tuple(conditions.get("without", ())), conditions.get("keep", ())
    if not hidden:
        return None
    return {name: value for name, value in os.environ.items() if name in keep or not name.startswith(hidden)}


class _Exchange:
    """What a command reads, and what it writes: its standard output, and an excerpt of its standard error."""

    def __init__(self, child: subprocess.Popen[bytes], stdin: bytes) -> None:
        self._child = child
        self._left = memoryview(stdin)
        self._stdout = bytearray()
        self._stderr = Excerpt()
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)

    def ended(self, timeout: float) -> bool:
        """Whether it ended within the timeout (seconds), and wrote no more than it may."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as waiting:
            self._register_streams(waiting)
            while waiting.get_map():
                for key, _ in waiting.select(max(0.0, deadline - time.monotonic())):
                    if not key.data(key.fd):
                        waiting.unregister(key.fileobj)
                if time.monotonic() >= deadline or len(self._stdout) > MOST_OUTPUT:
                    return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(max(0.0, deadline - time.monotonic()))
        return self._child.returncode is not None

    def result(self, argv: Sequence[str], seconds: float, *, late: bool) -> CommandResult:
        """As text; `late`: it was ended."""
        if len(self._stdout) > MOST_OUTPUT:
            self._stderr.add(b"\nit printed more than %d bytes, and nsw ended it\n" % MOST_OUTPUT)
        return CommandResult(
            tuple(argv), -1 if late else self._child.returncode, self._stdout.decode(errors="surrogateescape"),
            self._stderr.head_and_tail().decode(errors="backslashreplace"), timed_out=late, seconds=seconds,
        )  # fmt: skip

    def _register_streams(self, waiting: selectors.BaseSelector) -> None:
        child = self._child
        if child.stdin is not None and not child.stdin.closed:
            waiting.register(child.stdin, selectors.EVENT_WRITE, self._write_input)
        for stream, add in ((child.stdout, self._stdout.extend), (child.stderr, self._stderr.add)):
            if stream is not None:
                waiting.register(stream, selectors.EVENT_READ, partial(_read_stream, add))

    def _write_input(self, descriptor: int) -> int:
        """Write the next part of the input; 0 at its end, or when the command reads no more."""
        with contextlib.suppress(BrokenPipeError):
            self._left = self._left[os.write(descriptor, self._left) :]
            if self._left:
                return len(self._left)
        assert self._child.stdin is not None
        self._child.stdin.close()
        return 0


def _read_stream(add: Callable[[bytes], object], descriptor: int) -> int:
    data = os.read(descriptor, 1 << 16)
    add(data)
    return len(data)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()


def _wait_for_group(group: int) -> None:
    """Return when no process of a group is left that was killed: one of them may have been handing a job over."""
    deadline = time.monotonic() + _LAST_WORDS_S
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except OSError:  # there is none, or none of ours
            return
        time.sleep(_LOOK_S)


def _read_file(path: str, limit: int, *, end: bool) -> Content:
    try:
        with os.fdopen(open_plain(path), "rb") as file:  # a program may leave a FIFO, which nobody answers
            if end:
                file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError, NotPlainError):
        return None
    except OSError as fault:  # ESTALE and EIO say nothing about the file
        return Unreadable(fault.strerror or str(fault))


def _list_folder(folder: str, patterns: Sequence[str]) -> list[Entry]:
    try:
        with os.scandir(folder) as inside:
            plain = (e for e in inside if matches(e.name, patterns) and e.is_file(follow_symlinks=False))
            return sorted((Entry(e.name, e.stat().st_size) for e in plain), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as fault:
        raise UnreachableError(f"{folder} cannot be listed: {fault.strerror or fault}") from None


def _copy_tree(source: Path, target: Path) -> None:
    if source.is_dir():
        make_folders(target)
        for entry in sorted(source.iterdir()):
            _copy_tree(entry, target / entry.name)
        return
    if target.is_file() and filecmp.cmp(source, target, shallow=False):
        shutil.copymode(source, target)
        return
    make_folders(target.parent)
    copy_file(source, target)


def _link_or_copy(source: str, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # its folder is missing, it is there already, or the file system cannot
        _replace_by_link(source, target)


def _replace_by_link(source: str, target: Path) -> None:
    make_folders(target.parent)
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
    try:
        os.link(source, part)
    except OSError:
        copy_file(source, target)
        return
    part.replace(target)
    part.unlink(missing_ok=True)  # of two links to one file rename leaves both: it was brought before


def _file_error(command: str, path: str, fault: OSError) -> CommandError:
    result = CommandResult((command, path), 1, "", fault.strerror or str(fault))
    return CommandError(result, subject=f"{path} cannot be written" if command != "cp" else f"{path} cannot be copied")
