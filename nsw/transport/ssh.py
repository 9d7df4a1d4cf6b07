"""nsw's own ssh connection (paramiko): one a host and process, made anew when it was lost."""

from __future__ import annotations

import atexit
import contextlib
import logging
import random
import shlex
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import paramiko
from paramiko.buffered_pipe import PipeTimeout
from paramiko.common import cMSG_GLOBAL_REQUEST

from nsw.errors import UnreachableError
from nsw.transport.model import Excerpt, HostKeyCheck
from nsw.transport.remote import RemoteTransport
from nsw.transport.shell import ConnectionLostError, discard_output, no_bash
from nsw.transport.ssh_login import HostConfig, known_keys_of_host, log_in, resolve_host, verify_host_key

__all__ = ["Line", "Packets", "Ssh", "Watch", "connect"]

ASK_S = 15.0  # without sending anything, the server is asked for an answer
AHEAD = 1 << 18  # bytes of the socket at a time
SILENT_S = 45.0  # after a question without a byte from the server, the connection is closed
_CONNECT_S = 20.0
_TRIES: Final = 4
_WINDOW: Final = 1 << 25  # bytes on the way: the usual 2 MiB hold a distant site at 36 MB/s
_PACKET: Final = 1 << 17  # four of the usual size: fewer turns of Python for the same bytes
_LONGEST_PACKET: Final = 1 << 20  # paramiko makes room for whatever a server announces


class Ssh:
    """Starts commands over one connection.

    Campaigns in several threads share it: they open commands in turn, so that the connection is made once and nobody
    ends a new one for the fault of the old. A command that was opened is one thread's; paramiko keeps them apart.

    Args:
        settings: What the site says of its transport: host, config, user, port, identity.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._host = settings["host"]
        self._settings = settings
        self._opening = threading.RLock()
        self._hops: list[paramiko.Transport] = []
        self._commands: list[subprocess.Popen[bytes]] = []
        self._unlocked: dict[str, paramiko.PKey] = {}  # a passphrase is asked once, whatever the hosts on the way

    def open(self, command: str) -> _Channel:
        """Start a command on the host; a lost connection is opened again, with pauses between the attempts.

        Raises:
            UnreachableError: No attempt reached the host.
        """
        for tried in range(1, _TRIES + 1):
            try:
                return self._open_channel(command)
            except (paramiko.SSHException, OSError, EOFError) as fault:
                if tried == _TRIES:
                    config = ["-F", self._settings["config"]] if self._settings.get("config") else []
                    by_hand = shlex.join(["ssh", *config, self._host, "true"])
                    raise UnreachableError(
                        f"{self._host} cannot be reached over ssh: {str(fault) or type(fault).__name__}",
                        hint=f"`{by_hand}` shows whether the host can be reached",
                    ) from None
                time.sleep(2.0 ** (tried - 1) * (0.5 + random.random()))  # noqa: S311  a pause
        raise AssertionError

    def _open_channel(self, command: str) -> _Channel:
        with self._opening:
            try:
                channel = self._ensure_connected().open_session(timeout=_CONNECT_S)
                channel.in_buffer = Packets()  # type: ignore[assignment]
                channel.in_stderr_buffer = Packets()  # type: ignore[assignment]
                channel.exec_command(command)
            except (paramiko.SSHException, OSError, EOFError):
                self.disconnect()
                raise
        return _Channel(channel)

    def explain(self, code: int, message: str) -> UnreachableError:
        """Why no bash came up."""
        return no_bash(code, message)

    def close(self) -> None:
        """Nothing: others of this process may use the connection; it ends with the process."""

    def disconnect(self) -> None:
        """End the connection."""
        for hop in reversed(self._hops):
            hop.close()
        for command in self._commands:
            command.kill()
            command.wait()
        self._hops, self._commands = [], []

    def _ensure_connected(self) -> paramiko.Transport:
        if not self._hops or not all(hop.is_active() for hop in self._hops):
            self.disconnect()
            try:
                self._connect()
            except BaseException:
                self.disconnect()
                raise
        return self._hops[-1]

    def _connect(self) -> None:
        target, config = resolve_host(self._host, self._settings), {"config": self._settings.get("config")}
        for host in [*(resolve_host(jump, config) for jump in target.jumps), target]:
            self._hops.append(self._log_in_to(host, Line(self._open_socket(host))))

    def _open_socket(self, host: HostConfig) -> Any:
        """Open a connection to a host: through the host before it, a proxy command, or the network."""
        address = (host.hostname, host.port)
        if self._hops:
            return self._hops[-1].open_channel("direct-tcpip", address, ("127.0.0.1", 0), timeout=_CONNECT_S)
        if host.proxy_command is None:
            return socket.create_connection(address, timeout=_CONNECT_S)
        near, far = socket.socketpair()  # paramiko's own ProxyCommand waits for more than has come
        with far:
            words = ["sh", "-c", f"exec {host.proxy_command}"]
            self._commands.append(
                subprocess.Popen(
                    words, stdin=far.fileno(), stdout=far.fileno(), stderr=subprocess.DEVNULL, start_new_session=True
                )
            )
        return near

    def _log_in_to(self, host: HostConfig, line: Line) -> paramiko.Transport:
        known_keys = known_keys_of_host(host.known_as, host.known_hosts)
        # it logs every lost connection with a traceback, which Python prints where nobody has set up logging
        logging.getLogger("paramiko").addHandler(logging.NullHandler())
        transport = paramiko.Transport(cast("Any", line), default_window_size=_WINDOW, default_max_packet_size=_PACKET)
        try:
            _set_preferences(transport, known_keys.good)
            transport.start_client(timeout=_CONNECT_S)
            verify_host_key(transport, host, known_keys)
            log_in(transport, host, self._unlocked)
        except BaseException:
            transport.close()
            raise
        Watch(transport, line)
        return transport


def _set_preferences(transport: paramiko.Transport, known_keys: Sequence[paramiko.PKey]) -> None:
    """Prefer host keys of known kinds, and the cipher that processors compute fastest."""
    options = transport.get_security_options()
    names = {key.get_name() for key in known_keys}
    if "ssh-rsa" in names:
        names |= {"rsa-sha2-512", "rsa-sha2-256"}
    kinds = list(options.key_types)
    options.key_types = [k for k in kinds if k in names] + [k for k in kinds if k not in names]
    ciphers = list(options.ciphers)
    fast = [c for c in ciphers if "gcm" in c]
    options.ciphers = [*fast, *(c for c in ciphers if c not in fast)]


class _Channel:
    """One command over the connection."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def send(self, data: bytes) -> None:
        self._channel.settimeout(120)
        try:
            self._channel.sendall(data)
        except (OSError, EOFError) as fault:
            raise ConnectionLostError(str(fault) or "it accepts no more input") from None

    def end_input(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def receive(self, limit: int, timeout: float) -> bytes:
        self._channel.settimeout(max(0.01, timeout))
        try:
            return self._channel.recv(limit)
        except TimeoutError:
            raise ConnectionLostError("no answer in time") from None
        except (OSError, EOFError) as fault:
            raise ConnectionLostError(str(fault)) from None

    def finish(self, timeout: float) -> tuple[int, bytes]:
        deadline, stderr = time.monotonic() + timeout, Excerpt()
        discard_output(self, timeout)
        self._channel.settimeout(max(0.01, deadline - time.monotonic()))
        with contextlib.suppress(OSError, EOFError):
            while time.monotonic() < deadline and (part := self._channel.recv_stderr(1 << 16)):
                stderr.add(part)
        if not self._channel.status_event.wait(max(0.01, deadline - time.monotonic())):
            raise ConnectionLostError("it did not exit")
        code = self._channel.recv_exit_status()
        self._channel.close()
        return code, stderr.head_and_tail()

    def kill(self) -> None:
        self._channel.close()


class Line:
    """A socket, or what paramiko takes for one, that notes when bytes arrived last.

    paramiko reads a packet in small pieces; here they come from what the socket gave at once. paramiko's own thread is
    the only one that reads; another looks at `heard` alone, which is set in one step.

    Args:
        stream_socket: The socket.
    """

    def __init__(self, stream_socket: Any) -> None:
        self._socket = stream_socket
        self._ahead = b""
        self._at = 0  # of those bytes that were read already
        self.heard = time.monotonic()

    def recv(self, limit: int) -> bytes:
        """As the socket's.

        Raises:
            OSError: paramiko wants more than the longest packet has, since the server announced one without measure.
        """
        if limit > _LONGEST_PACKET:
            raise OSError(f"the server announces a packet of {limit:,} bytes")
        if self._at == len(self._ahead):
            self._ahead, self._at = self._socket.recv(max(limit, AHEAD)), 0
            self.heard = time.monotonic()
        data = self._ahead[self._at : self._at + limit]
        self._at += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class Watch:
    """Asks the server for an answer while nothing is sent, and closes the connection when none comes, as OpenSSH does.

    The questions are sent by paramiko's own thread, which a full socket may block; so another thread judges. They share
    a number that the first sets and the other reads, in one step each.

    Args:
        transport: The connection, logged in or about to be.
        line: Its socket.
    """

    def __init__(self, transport: paramiko.Transport, line: Line) -> None:
        self._transport = transport
        self._line = line
        self._asked_at: float | None = None  # when a question was sent that nothing followed
        transport.packetizer.set_keepalive(max(1, round(ASK_S)), self._send_keepalive)
        threading.Thread(target=self._close_if_silent, name="ssh-alive", daemon=True).start()

    def _send_keepalive(self) -> None:
        if self._asked_at is None or self._line.heard > self._asked_at:
            self._asked_at = time.monotonic()
        message = paramiko.Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        self._transport._send_user_message(message)  # type: ignore[attr-defined]  # noqa: SLF001  no public one asks and goes on

    def _close_if_silent(self) -> None:
        while self._transport.is_active():
            asked_at = self._asked_at
            if asked_at is not None and self._line.heard < asked_at and time.monotonic() - asked_at > SILENT_S:
                self._transport.close()
                return
            time.sleep(min(1.0, SILENT_S / 4))


class Packets:
    """What a channel has received and nobody has read; takes the place of paramiko's BufferedPipe, method by method.

    That one copies every byte three times, and moves what is left at each read. Here each packet is kept as it came.
    paramiko's own thread feeds and the command's takes, both under the lock of `_arrived`.
    """

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._packets: deque[bytes] = deque()
        self._size = 0
        self._closed = False
        self._broken = False  # more came than the server may send
        self._event: Any = None

    def __len__(self) -> int:
        return self._size

    def set_event(self, event: Any) -> None:
        """An event that is set while there is something to read, or nothing more will come."""
        with self._arrived:
            self._event = event
            (event.set if self._size or self._closed else event.clear)()

    def feed(self, data: bytes) -> None:
        """A packet has come; of a server that sends more than it may, no more is taken, and the stream ends there."""
        if not data:
            return
        with self._arrived:
            if self._size + len(data) > _WINDOW:
                self._closed = self._broken = True
            if not self._broken:
                self._packets.append(data)
                self._size += len(data)
            self._notify_readers()

    def close(self) -> None:
        """Nothing more will come."""
        with self._arrived:
            self._closed = True
            self._notify_readers()

    def read_ready(self) -> bool:
        """Whether there is something to read."""
        return self._size > 0

    def read(self, limit: int, timeout: float | None = None) -> bytes:
        """What has come, at most so many bytes; b"" when nothing more will.

        Raises:
            PipeTimeout: Nothing came in time (seconds).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._arrived:
            while not self._size and not self._closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise PipeTimeout
                self._arrived.wait(left)
            return self._take_bytes(limit)

    def empty(self) -> bytes:
        """All that has come."""
        with self._arrived:
            return self._take_bytes(self._size)

    def _take_bytes(self, limit: int) -> bytes:
        parts, left = [], limit
        while self._packets and left:
            packet = self._packets.popleft()
            if len(packet) > left:
                self._packets.appendleft(packet[left:])
                packet = packet[:left]
            parts.append(packet)
            left -= len(packet)
        self._size -= limit - left
        if self._event is not None and not self._size and not self._closed:
            self._event.clear()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _notify_readers(self) -> None:
        self._arrived.notify_all()
        if self._event is not None:
            self._event.set()


_OPEN: dict[tuple[object, ...], Ssh] = {}  # one connection a host and process, so that a code is asked for once


def connect(site: Mapping[str, Any], scratch: str | None, mark: Path | None) -> RemoteTransport:
    """Return the transport to a site over nsw's own SSH connection.

    Sites with the same host, user, port, config and identity share one connection.

    Args:
        site: The site as data. Its `transport` gives host, config, user, port and identity.
        scratch: A campaign's folder on the site; None as long as there is none.
        mark: A file in the campaign's folder here. The lock in `scratch` has its name; None: `commands`.
    """
    settings = site["transport"]
    key = tuple(settings.get(name) for name in ("host", "config", "user", "port", "identity"))
    way = _OPEN.setdefault(
        key, Ssh(settings)
    )  # in one step, so that two threads share it; an unused Ssh has opened nothing
    compared = HostKeyCheck(verified=True, evidence="the one of known_hosts")
    return RemoteTransport(way, site, scratch, mark, host_key=lambda: compared)


@atexit.register
def _disconnect_all() -> None:
    for connection in _OPEN.values():
        connection.disconnect()
