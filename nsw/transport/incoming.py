"""What a stream brings, read in large pieces: a record or a small file costs no turn of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from nsw.transport.pipe import ConnectionLostError

if TYPE_CHECKING:
    from nsw.transport.stream import Stream

_SILENT_S: Final = 120.0  # without a byte
_PIECE: Final = 1 << 18  # bytes that are hashed and written at a time: a processor's cache holds them
_NAP_S: Final = 0.001


class TooLongError(Exception):
    """A record is longer than allowed."""


class Incoming:
    """The bytes of a stream, each handed out once and copied at most once.

    Args:
        pipe: The stream.
    """

    def __init__(self, pipe: Stream) -> None:
        self._pipe = pipe
        self._head = bytearray()  # what came and no record has
        self._at = 0  # where in it the next record begins
        self._piece = memoryview(b"")  # what came and no file has

    def record(self, most: int) -> bytes:
        """The bytes before the next NUL; to be called before any `take`.

        Raises:
            ConnectionLostError: The connection was lost.
            EOFError: The stream ended before.
            TooLongError: There is none in `most` bytes.
        """
        searched = self._at
        while (end := self._head.find(b"\0", searched)) < 0:
            del self._head[: self._at]
            self._at, searched = 0, len(self._head)
            if searched > most:
                raise TooLongError
            self._head += self._some(1 << 20)
        found = bytes(self._head[self._at : end])
        self._at = end + 1
        return found

    def take(self, most: int, left: int) -> memoryview:
        """The next bytes, at least one and at most so many.

        Args:
            most: How many are wanted.
            left: How many are wanted in all: no more is read ahead.

        Raises:
            ConnectionLostError: The connection was lost.
            EOFError: The stream ended before.
        """
        if not self._piece:
            self._piece = memoryview(self._ahead(min(left, _PIECE)))
        data, self._piece = self._piece[:most], self._piece[most:]
        return data

    def _ahead(self, wanted: int) -> bytes:
        """So many bytes: each turn of a process costs more than the bytes of one packet."""
        if self._at < len(self._head):
            data = bytes(self._head[self._at : self._at + wanted])
            self._at += len(data)
            return data
        parts = [self._some(wanted)]
        have = len(parts[0])
        try:
            while have < wanted:
                time.sleep(_NAP_S)  # for several packets
                parts.append(self._some(wanted - have))
                have += len(parts[-1])
        except (ConnectionLostError, EOFError):
            pass  # what came is kept, and the next read raises it again
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _some(self, most: int) -> bytes:
        data = self._pipe.receive(most, _SILENT_S)
        if not data:
            raise EOFError("it ended too early")
        return data
