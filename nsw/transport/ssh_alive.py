"""Ends an ssh connection whose other end fell silent, as OpenSSH does with ServerAliveInterval; paramiko waits on."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import paramiko

ASK_S = 15.0  # without sending anything, the server is asked for an answer
AHEAD = 1 << 18  # bytes of the socket at a time
SILENT_S = 45.0  # after a question without a byte from the server, the connection is closed


class Line:
    """A socket, or what paramiko takes for one, that notes when bytes arrived last.

    paramiko reads a packet in small pieces; here they come from what the socket gave at once.

    Args:
        way: The socket.
    """

    def __init__(self, way: Any) -> None:
        self._way = way
        self._ahead = b""
        self._at = 0  # of those bytes that were read already
        self.heard = time.monotonic()

    def recv(self, most: int) -> bytes:
        """As the socket's."""
        if self._at == len(self._ahead):
            self._ahead, self._at = self._way.recv(max(most, AHEAD)), 0
            self.heard = time.monotonic()
        data = self._ahead[self._at : self._at + most]
        self._at += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._way, name)


class Watch:
    """Asks the server for an answer while nothing is sent, and closes the connection when none comes.

    The questions are sent by paramiko's own thread, which a full socket may block; so another thread judges.

    Args:
        transport: The connection, logged in or about to be.
        line: Its socket.
    """

    def __init__(self, transport: paramiko.Transport, line: Line) -> None:
        self._transport = transport
        self._line = line
        self._asked: float | None = None  # when a question was sent that nothing followed
        transport.packetizer.set_keepalive(max(1, round(ASK_S)), self._ask)
        threading.Thread(target=self._judge, name="ssh-alive", daemon=True).start()

    def _ask(self) -> None:
        import paramiko
        from paramiko.common import cMSG_GLOBAL_REQUEST

        if self._asked is None or self._line.heard > self._asked:
            self._asked = time.monotonic()
        message = paramiko.Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        self._transport._send_user_message(message)  # type: ignore[attr-defined]  # noqa: SLF001  no public one asks and goes on

    def _judge(self) -> None:
        while self._transport.is_active():
            asked = self._asked
            if asked is not None and self._line.heard < asked and time.monotonic() - asked > SILENT_S:
                self._transport.close()
                return
            time.sleep(min(1.0, SILENT_S / 4))
