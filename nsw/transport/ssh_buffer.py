"""Bytes between paramiko's thread and the one that reads a channel, each packet kept as it came.

paramiko's own buffer copies every byte three times, and moves what is left at each read.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any


class Packets:
    """What a channel has received and nobody has read; takes the place of paramiko's BufferedPipe, method by method."""

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._packets: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._event: Any = None

    def __len__(self) -> int:
        return self._size

    def set_event(self, event: Any) -> None:
        """An event that is set while there is something to read, or nothing more will come."""
        with self._arrived:
            self._event = event
            (event.set if self._size or self._closed else event.clear)()

    def feed(self, data: bytes) -> None:
        """A packet has come."""
        if not data:
            return
        with self._arrived:
            self._packets.append(data)
            self._size += len(data)
            self._tell()

    def close(self) -> None:
        """Nothing more will come."""
        with self._arrived:
            self._closed = True
            self._tell()

    def read_ready(self) -> bool:
        """Whether there is something to read."""
        return self._size > 0

    def read(self, most: int, timeout: float | None = None) -> bytes:
        """What has come, at most so many bytes; b"" when nothing more will.

        Raises:
            PipeTimeout: Nothing came in time (seconds).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._arrived:
            while not self._size and not self._closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    from paramiko.buffered_pipe import PipeTimeout

                    raise PipeTimeout
                self._arrived.wait(left)
            return self._take(most)

    def empty(self) -> bytes:
        """All that has come."""
        with self._arrived:
            return self._take(self._size)

    def _take(self, most: int) -> bytes:
        parts, left = [], most
        while self._packets and left:
            packet = self._packets.popleft()
            if len(packet) > left:
                self._packets.appendleft(packet[left:])
                packet = packet[:left]
            parts.append(packet)
            left -= len(packet)
        self._size -= most - left
        if self._event is not None and not self._size and not self._closed:
            self._event.clear()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _tell(self) -> None:
        self._arrived.notify_all()
        if self._event is not None:
            self._event.set()
