"""A bash script on the far side with a clean stream to and from it, whatever the login shell there prints before."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from nsw.scripts.quoting import quote_all
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.shell import BASH

if TYPE_CHECKING:
    from nsw.transport.pipe import Pipe, Way

_GREETING_S = 60.0
_MOST_NOISE = 1 << 20  # bytes before the script's own output


class Stream:
    """A script that runs there, its standard streams free for data."""

    def __init__(self, pipe: Pipe, buffer: bytes) -> None:
        self._pipe = pipe
        self._buffer = buffer

    def send(self, data: bytes) -> None:
        """As `Pipe.send`."""
        self._pipe.send(data)

    def end_input(self) -> None:
        """As `Pipe.end_input`."""
        self._pipe.end_input()

    def receive(self, most: int, timeout: float) -> bytes:
        """As `Pipe.receive`."""
        if self._buffer:
            data, self._buffer = self._buffer[:most], self._buffer[most:]
            return data
        return self._pipe.receive(most, timeout)

    def finish(self, timeout: float) -> tuple[int, bytes]:
        """As `Pipe.finish`."""
        return self._pipe.finish(timeout)

    def kill(self) -> None:
        """As `Pipe.kill`."""
        self._pipe.kill()


def open_stream(way: Way, script: str, *words: str) -> Stream:
    """Start a script.

    It travels on standard input, since the login shell may be any: bash reads it line by line and leaves what follows.

    Raises:
        UnreachableError: There is no connection.
        ConnectionLostError: It was lost at once.
    """
    token = f"nsw-{secrets.token_hex(12)}"
    pipe = way.open(BASH)
    pipe.send(f"nsw_go() {{\n{script}\n}}\nprintf '\\n%s\\n' {token}; nsw_go {quote_all(words)}; exit\n".encode())
    mark, seen = f"\n{token}\n".encode(), b""
    deadline = time.monotonic() + _GREETING_S
    while mark not in seen:
        part = pipe.receive(1 << 16, max(0.01, deadline - time.monotonic()))
        if not part or len(seen) > _MOST_NOISE:
            _, said = pipe.finish(2)
            pipe.kill()
            raise ConnectionLostError(said.decode(errors="replace").strip() or "no shell could be started there")
        seen += part
    return Stream(pipe, seen.partition(mark)[2])
