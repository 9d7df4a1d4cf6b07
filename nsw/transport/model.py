"""The contract between nsw and a way to a site: run a command there, move files, look at files.

A file is there, absent, or could not be looked at. Only "No such file" is absent: a cut connection, a stale handle or
a denied permission is never "absent". Connection faults belong to the transport: it reconnects by itself, and what it
cannot mend becomes UnreachableError, or for a command a result with `timed_out`. docs/extending/transport.md shows how
to write one.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final, Protocol, Required, TypeAlias, TypedDict, Unpack

from nsw.errors import CommandResult, NotYetError, UnreachableError
from nsw.resources import entry_points_of
from nsw.site.names import TRANSPORTS

__all__ = [
    "MOST_OUTPUT",
    "Conditions",
    "Content",
    "Entry",
    "Excerpt",
    "HostKeyCheck",
    "Transport",
    "Unreadable",
    "connect",
    "matches",
    "read",
]

MOST_OUTPUT: Final = 32 << 20  # bytes that a command may print: qstat -f takes 2.5 kB a job
_EXCERPT: Final = 32 << 10  # bytes that are kept of the beginning, and of the end


class Excerpt:
    """The beginning and the end of a text of any length, as it comes."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes | bytearray | memoryview) -> None:
        """The next bytes."""
        room = _EXCERPT - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (excess := len(self._tail) - _EXCERPT) > 0:
            self._left_out += excess
            del self._tail[:excess]

    def head_and_tail(self) -> bytes:
        """What was kept, with a line for what was not."""
        gap = b"\n[%d bytes are left out]\n" % self._left_out if self._left_out else b""
        return bytes(self._head + gap + self._tail)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or folder that may be there, and could not be looked at."""

    reason: str


# of a file: its bytes, None when it is absent, or why that could not be told
Content: TypeAlias = bytes | Unreadable | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A plain file in a folder: its name, without a path, and its size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class HostKeyCheck:
    """Whether a transport refuses a host whose key has changed, and how that is known."""

    verified: bool
    evidence: str


class Conditions(TypedDict, total=False):
    """Under which a command runs.

    Attributes:
        timeout: Seconds after which it is killed, with every process it started.
        cwd: Where it runs.
        without: Beginnings of names of environment variables that it must not see.
        keep: Names among those that it may.
        stdin: What it reads from its standard input.
    """

    timeout: Required[float]
    cwd: str
    without: Sequence[str]
    keep: Sequence[str]
    stdin: bytes


class Transport(Protocol):
    """A way to a site, for one campaign. Paths over there are text; here they are `Path`.

    Attributes:
        remote: Whether files here must be sent before they can be read there.
        host_key: Whether it refuses a host whose key has changed; None where hosts have no keys.
        progress: Called as `get_many` goes on, with the bytes that are here, of how many; set by who shows it.
    """

    remote: bool
    host_key: Callable[[], HostKeyCheck] | None = None
    progress: Callable[[int, int], object] | None = None

    def left_running(self) -> bool:
        """Whether a command that an nsw began there for this campaign still runs, though that nsw was killed.

        Once this was false, the next nsw knows of the commands that this one begins.
        """

    def close(self) -> None:
        """An orderly end: no command of this nsw is waited for."""

    # --- commands -----------------------------------------------------------------------------------------

    def run(self, argv: Sequence[str], **conditions: Unpack[Conditions]) -> CommandResult:
        """Run one command to its end or its timeout; never raises for what the command or the connection does.

        Returns:
            Its result. `timed_out` means that it is not known what the command did: it was too slow, it printed
            more than MOST_OUTPUT, or the connection was lost. Of a long stderr an `Excerpt` is kept.
        """

    def run_many(self, commands: Sequence[Sequence[str]], **conditions: Unpack[Conditions]) -> list[CommandResult]:
        """Run commands one after another in one round trip; a result for each, as `run` gives it.

        The conditions are those of each of them. One that fails does not keep the next from running.
        """
        return [self.run(argv, **conditions) for argv in commands]

    # --- files: there -------------------------------------------------------------------------------------

    def expand(self, path: str) -> str:
        """A path with `~`, `$NAME` and `${NAME}` replaced by what they mean over there.

        Raises:
            UsageError: A variable is not set there, or the result is not absolute.
            UnreachableError: It could not be told.
        """

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make folders, with those on the way; existing ones are left alone.

        Raises:
            CommandError: One cannot be made.
            UnreachableError: It could not be told.
        """

    def read_many(self, paths: Sequence[str], limit: int = 1 << 20, *, end: bool = False) -> dict[str, Content]:
        """The first bytes of files, or those at their `end`, at most `limit` of each, in one round trip.

        Args:
            paths: The files there.
            limit: The most bytes of each.
            end: Whether to read the last bytes instead of the first.

        Raises:
            UnreachableError: None of them could be looked at, or they are more than MOST_OUTPUT and `limit`.
        """

    def tail(self, path: str, limit: int) -> bytes | None:
        """The last bytes of a file; None when it is absent.

        Raises:
            UnreachableError: It could not be told.
        """
        return _require_readable(path, self.read_many([path], limit, end=True)[path])

    def list_many(self, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
        """The plain files right in each folder that match its shell patterns, sorted by name, in few round trips.

        A folder that is absent is empty. Links, devices and names with a slash or a newline are left out.

        Raises:
            UnreachableError: One of them could not be listed.
        """

    # --- files: to and fro --------------------------------------------------------------------------------

    def show(self, local_path: Path, remote_path: str) -> str:
        """Where a file of this machine can be read over there: itself where that is this machine, else `there`."""

    def stage(self, files: Sequence[tuple[Path, str]]) -> None:
        """Bring files and folders there, each under its path there; what is there with the same content stays.

        A file appears whole or not at all, with the permissions that it has here.

        Raises:
            CommandError: One cannot be written.
            UnreachableError: The connection was lost.
        """

    def get_many(self, files: Sequence[tuple[str, Path]]) -> None:
        """Bring files here, in this order, each whole or not at all; folders on the way are made.

        Raises:
            CampaignError: One cannot be written here, as on a full disk.
            CommandError: One is not a regular file, or cannot be read.
            UnreachableError: The connection was lost.
        """


def connect(site: Mapping[str, Any], scratch: str | None = None, mark: Path | None = None) -> Transport:
    """The way to a site; nothing is connected before the first command.

    Args:
        site: The site as data, defaults left out or not.
        scratch: A campaign's folder there; None as long as there is none.
        mark: A file in the campaign's folder here. By it, or by one in the folder there, a later nsw knows of the
            commands that this one began.

    Raises:
        NotYetError: This version does not know it.
    """
    kind = (site.get("transport") or {}).get("kind", "local")
    path = TRANSPORTS.get(kind) or entry_points_of("nsw.transports").get(kind)
    if path is None:
        raise NotYetError(f"transport {kind}: not yet")
    transport: Transport = resolve_name(path)(site, scratch, mark)
    return transport


def read(transport: Transport, path: str, limit: int = 1 << 20) -> bytes | None:
    """The first bytes of one file; None when it is absent.

    Args:
        transport: The way to the site.
        path: The file there.
        limit: The most bytes.

    Raises:
        UnreachableError: It could not be told.
    """
    return _require_readable(path, transport.read_many([path], limit)[path])


def _require_readable(path: str, content: Content) -> bytes | None:
    if isinstance(content, Unreadable):
        raise UnreachableError(f"{path} cannot be read: {content.reason}")
    return content


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file's name matches one of the shell patterns; what is a path or has two lines is no name."""
    plain = name not in {"", ".", ".."} and re.search(r"[/\n\r]", name) is None
    return plain and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
