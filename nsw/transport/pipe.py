"""A command that runs elsewhere: bytes to it, bytes from it. A file per way gives one; everything else is shared."""

from __future__ import annotations

from typing import Protocol


class ConnectionLostError(Exception):
    """The connection was lost or never made; whether a command did anything is not known."""


class Pipe(Protocol):
    """One remote command with its standard streams."""

    def send(self, data: bytes) -> None:
        """Write all of this to its standard input.

        Raises:
            ConnectionLostError: It takes no more.
        """

    def end_input(self) -> None:
        """Close its standard input."""

    def receive(self, most: int, timeout: float) -> bytes:
        """The next bytes of its standard output, at most so many; b"" at its end.

        Raises:
            ConnectionLostError: Nothing came within the timeout (seconds).
        """

    def finish(self, timeout: float) -> tuple[int, bytes]:
        """Wait for its end: exit status (255 or less than 0: the connection failed), and what it wrote to stderr.

        Raises:
            ConnectionLostError: It did not end within the timeout (seconds).
        """

    def kill(self) -> None:
        """Let go of it at once."""


class Way(Protocol):
    """How remote commands are started."""

    def open(self, command: str) -> Pipe:
        """Start one; `command` is parsed by the login shell there, whatever that is, so it must be plain words.

        Raises:
            UnreachableError: There is no connection, with what to do.
        """

    def close(self) -> None:
        """Let go of the connection."""
