"""nsw's own ssh connection (paramiko): one a host and process, made anew when it was lost."""

from __future__ import annotations

import atexit
import contextlib
import logging
import random
import shlex
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final, cast

from nsw.errors import UnreachableError
from nsw.transport.model import HostKeyCheck
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.remote import RemoteTransport, most_bytes
from nsw.transport.shell import Shell
from nsw.transport.ssh_alive import Line, Watch
from nsw.transport.ssh_buffer import Packets
from nsw.transport.ssh_config import HostConfig, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import paramiko

_CONNECT_S = 20.0
_TRIES = 4
_WINDOW = 1 << 25  # bytes on the way: the usual 2 MiB hold a distant site at 36 MB/s
_PACKET = 1 << 17  # four of the usual size: fewer turns of Python for the same bytes


class Ssh:
    """Starts commands over one connection.

    Args:
        host: The host's alias.
        config: Another file than ~/.ssh/config.
        given: What the site says: user, port, identity.
        sleep: Waits; tests hand in their own.
    """

    def __init__(self, host: str, config: str | None, given: Mapping[str, object], *, sleep: Any = time.sleep) -> None:
        self._host = host
        self._config = config
        self._given = dict(given)
        self._sleep = sleep
        self._hops: list[paramiko.Transport] = []
        self._commands: list[subprocess.Popen[bytes]] = []
        self._unlocked: dict[str, paramiko.PKey] = {}  # a passphrase is asked once, whatever the hosts on the way

    def open(self, command: str) -> _Channel:
        """Start a command there; a connection that was lost is made anew."""
        import paramiko

        for tried in range(1, _TRIES + 1):
            try:
                channel = self._connected().open_session(timeout=_CONNECT_S)
                channel.in_buffer = Packets()  # type: ignore[assignment]
                channel.exec_command(command)
            except (paramiko.SSHException, OSError, EOFError) as fault:
                self.disconnect()
                if tried == _TRIES:
                    by_hand = shlex.join(["ssh", *(["-F", self._config] if self._config else []), self._host, "true"])
                    raise UnreachableError(
                        f"{self._host} cannot be reached over ssh: {str(fault) or type(fault).__name__}",
                        hint=f"`{by_hand}` shows whether the host can be reached",
                    ) from None
                self._sleep(2.0 ** (tried - 1) * (0.5 + random.random()))  # noqa: S311  a pause
            else:
                return _Channel(channel)
        raise AssertionError

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

    def _connected(self) -> paramiko.Transport:
        if not self._hops or not all(hop.is_active() for hop in self._hops):
            self.disconnect()
            try:
                self._connect()
            except BaseException:
                self.disconnect()
                raise
        return self._hops[-1]

    def _connect(self) -> None:
        target = resolve(self._host, config=self._config, given=self._given)
        for host in [*(resolve(jump, config=self._config) for jump in target.jumps), target]:
            self._hops.append(_hop(host, self._hops[-1] if self._hops else None, self._commands, self._unlocked))


def _command_as_socket(command: str, commands: list[subprocess.Popen[bytes]]) -> socket.socket:
    """The near end of what ssh_config's ProxyCommand connects to; paramiko's own waits for more than has come."""
    near, far = socket.socketpair()
    with far:
        commands.append(
            subprocess.Popen(
                ["sh", "-c", f"exec {command}"], stdin=far.fileno(), stdout=far.fileno(), stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )  # fmt: skip
    return near


def _hop(
    host: HostConfig,
    through: paramiko.Transport | None,
    commands: list[subprocess.Popen[bytes]],
    unlocked: dict[str, paramiko.PKey],
) -> paramiko.Transport:
    """A connection that is logged in, over another one, a command (added to `commands`) or the network.

    `unlocked` holds the keys whose passphrase was given.
    """
    import paramiko

    from nsw.transport.known_hosts import look_up
    from nsw.transport.ssh_login import log_in, verify

    known = look_up(host.known_as, host.known_hosts)
    way: Any
    if through is not None:
        way = through.open_channel("direct-tcpip", (host.hostname, host.port), ("127.0.0.1", 0), timeout=_CONNECT_S)
    elif host.proxy_command is not None:
        way = _command_as_socket(host.proxy_command, commands)
    else:
        way = socket.create_connection((host.hostname, host.port), timeout=_CONNECT_S)
    line = Line(way)
    # it logs every lost connection with a traceback, which Python prints where nobody has set up logging
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    transport = paramiko.Transport(cast("Any", line), default_window_size=_WINDOW, default_max_packet_size=_PACKET)
    try:
        _prefer(transport, known.good)
        transport.start_client(timeout=_CONNECT_S)
        verify(transport, host, known, lambda name: look_up(name, host.known_hosts))
        log_in(transport, host, unlocked)
    except BaseException:
        transport.close()
        raise
    Watch(transport, line)
    return transport


def _prefer(transport: paramiko.Transport, known: Sequence[paramiko.PKey]) -> None:
    """The kinds of host key that are known come first, and the cipher that processors compute fastest."""
    options = transport.get_security_options()
    names = {key.get_name() for key in known}
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
            raise ConnectionLostError(str(fault) or "it takes no more") from None

    def end_input(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def receive(self, most: int, timeout: float) -> bytes:
        self._channel.settimeout(max(0.01, timeout))
        try:
            return self._channel.recv(most)
        except TimeoutError:
            raise ConnectionLostError("no answer in time") from None
        except (OSError, EOFError) as fault:
            raise ConnectionLostError(str(fault)) from None

    def finish(self, timeout: float) -> tuple[int, bytes]:
        deadline = time.monotonic() + timeout
        while self.receive(1 << 16, deadline - time.monotonic()):
            pass
        said = b""
        self._channel.settimeout(max(0.01, deadline - time.monotonic()))
        with contextlib.suppress(OSError, EOFError):
            while part := self._channel.recv_stderr(1 << 16):
                said += part
        if not self._channel.status_event.wait(max(0.01, deadline - time.monotonic())):
            raise ConnectionLostError("it did not exit")
        code = self._channel.recv_exit_status()
        self._channel.close()
        return code, said

    def kill(self) -> None:
        self._channel.close()


_COMPARED: Final = HostKeyCheck(verified=True, found="the one of known_hosts")
_OPEN: dict[tuple[object, ...], Ssh] = {}  # one connection a host and process, so that a code is asked for once


def connect(site: Mapping[str, Any], scratch: str | None, mark: Path | None) -> RemoteTransport:
    """The way to a site over nsw's own connection."""
    how = site.get("transport") or {}
    given = {key: how[key] for key in ("user", "port", "identity") if how.get(key)}
    key = (how["host"], how.get("config"), *given.items())
    if key not in _OPEN:
        _OPEN[key] = Ssh(how["host"], how.get("config"), given)
    lock = f"{scratch}/{mark.name if mark else 'commands'}" if scratch else None
    shell = Shell(_OPEN[key], lock, login_shell=bool(how.get("login_shell")))
    return RemoteTransport(_OPEN[key], shell, most_bytes(site), host_key=lambda: _COMPARED)


@atexit.register
def _end_all() -> None:
    for one in _OPEN.values():
        one.disconnect()
