"""The user's own ssh as the way to a site: its configuration, agent, and open connection (ControlMaster)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from nsw.errors import HostKeyError, LoginError, UnreachableError
from nsw.transport.model import Excerpt, HostKeyCheck
from nsw.transport.remote import RemoteTransport
from nsw.transport.shell import ConnectionLostError, discard_output, is_command_status, no_bash
from nsw.transport.ssh_login import configuration, options

__all__ = ["OpenSsh", "connect"]

# nothing may ask: a person who is asked would not see it, and nsw would wait for ever. The site gets no agent
_OPTIONS = (
    "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15",
    "-o", "ServerAliveCountMax=4", "-o", "ClearAllForwardings=yes", "-o", "LogLevel=ERROR",
)  # fmt: skip
_FAST = "aes128-gcm@openssh.com"
# ssh's warning: kind of key, fingerprint, and the command that removes the old one
_CHANGED = r"HAS CHANGED!.*fingerprint for the (\w+) key.*?SHA256:([\w+/]+).*?remove with:\s*(ssh-keygen [^\n]+)"
_PIPE = 1 << 20  # bytes that ssh may be ahead
_STUCK_S = 120.0  # without taking a byte
_LOOK_S = 0.05
# What is started ends with nsw, however nsw ends: a site that ignores the end of its input would keep it alive. A
# process beside it waits for the end of descriptor $1, which nsw holds open; a line there means that all ended in
# order. (The kernel's own signal to orphans, PR_SET_PDEATHSIG, comes as soon as the thread ends that started them.)
_TIED = """
{ read -r _ <&"$1" || kill -KILL $$; } </dev/null >/dev/null 2>&1 &
eval "exec $1<&-"; shift; exec "$@"
"""


class OpenSsh:
    """Starts commands with `ssh`.

    Args:
        words: `ssh` with the options and the host.
        host: The host, for sentences.
    """

    def __init__(self, words: Sequence[str], host: str) -> None:
        self._words = tuple(words)
        self._host = host
        self._cipher: list[str] | None = None

    def open(self, command: str) -> _Process:
        """Start a command on the host.

        Raises:
            UnreachableError: This machine has no `ssh` program.
        """
        if self._cipher is None:
            self._cipher = _fast_cipher_options(self._words)
        if shutil.which(self._words[0]) is None:
            raise UnreachableError(
                f"there is no {self._words[0]} on this machine",
                hint="install it, or use transport: {kind: ssh}, which needs none",
            )
        return _Process([self._words[0], *self._cipher, *self._words[1:], command])

    def close(self) -> None:
        """Nothing: a ControlMaster is the user's."""

    def explain(self, code: int, message: str) -> UnreachableError:
        """What a failed start means, and what to do."""
        if is_command_status(code):
            return no_bash(code, message)
        kind: type[UnreachableError] = UnreachableError
        connect = shlex.join([word for word in self._words if word not in _OPTIONS or word == "ssh"])
        if (changed := re.search(_CHANGED, message, re.DOTALL)) is not None:
            return HostKeyError(
                f"the host key of {self._host} has changed: {changed[1]} SHA256:{changed[2]}. Somebody may be"
                " intercepting the connection, or the site has new keys",
                hint=f"ask the site's support; for new keys: `{changed[3].strip()}`, then `{connect}` by hand",
            )
        if "Host key verification failed" in message:
            kind = HostKeyError
            hint = f"compare the host's fingerprint with what the site publishes, then `{connect}` once by hand"
        elif any(text in message for text in ("Permission denied", "Too many authentication failures")):
            kind = LoginError
            master = connect.replace("ssh", "ssh -fNM -o ControlPath=~/.ssh/%C -o ControlPersist=yes", 1)
            hint = (
                f"nsw asks nothing over openssh: open a connection first, which it reuses: `{master}` (and ControlPath"
                " in ~/.ssh/config)"
            )
        else:
            hint = f"`{connect} true` shows whether the host can be reached"
        return kind(f"{self._host} cannot be reached with ssh (exit status {code}): {message}", hint=hint)


def _fast_cipher_options(words: Sequence[str]) -> list[str]:
    """Options that prefer the fastest cipher, where the user's configuration chooses none."""
    if words[0] != "ssh":
        return []
    with contextlib.suppress(UnreachableError):  # of a configuration that ssh will not take either
        chosen, usual = (configuration(w).get("ciphers", [""]) for w in (words[1:], ["-F", "none", "nsw"]))
        if chosen == usual and _FAST in chosen[0]:
            return ["-o", f"Ciphers=^{_FAST}"]
    return []


class _Process:
    """An ssh process. What it writes to stderr is taken while anything else is waited for, and an excerpt is kept."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._stderr_excerpt = Excerpt()
        tie, write_end = os.pipe()
        self._tie = os.fdopen(write_end, "wb", buffering=0)
        try:
            self._process = subprocess.Popen(
                ["bash", "-c", _TIED, "bash", str(tie), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, pass_fds=(tie,), start_new_session=True, bufsize=0,
            )  # fmt: skip
        finally:
            os.close(tie)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._in, self._out, self._err = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._in.fileno(), False)
        with contextlib.suppress(OSError):  # fewer turns for large files; more than a user may have is refused
            fcntl.fcntl(self._out.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                self._wait_until_ready(self._in, _STUCK_S)
                view = view[os.write(self._in.fileno(), view) :]
        except (OSError, ValueError) as fault:
            raise ConnectionLostError(str(fault)) from None

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            self._in.close()

    def receive(self, limit: int, timeout: float) -> bytes:
        try:
            self._wait_until_ready(self._out, timeout)
            return os.read(self._out.fileno(), limit)
        except (OSError, ValueError) as fault:
            raise ConnectionLostError(str(fault)) from None

    def finish(self, timeout: float) -> tuple[int, bytes]:
        deadline = time.monotonic() + timeout
        discard_output(self, timeout)
        while (code := self._exit_status()) is None:
            if time.monotonic() > deadline:
                raise ConnectionLostError("it did not exit")
        self.kill()
        return code, self._stderr_excerpt.head_and_tail()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError, ValueError):  # it was let go of before
            self._tie.write(b"\n")
        for stream in (self._in, self._out, self._err, self._tie):
            with contextlib.suppress(OSError):
                stream.close()

    def _wait_until_ready(self, stream: IO[bytes], timeout: float) -> None:
        """Wait until standard input accepts data, or standard output has some."""
        deadline = time.monotonic() + timeout
        reads, writes = ([], [stream]) if stream is self._in else ([stream], [])
        while (left := deadline - time.monotonic()) > 0:
            error_streams = [] if self._err.closed else [self._err]
            readable, writable, _ = select.select([*reads, *error_streams], writes, [], left)
            if self._err in readable:
                self._read_stderr()
            if stream in readable or stream in writable:
                return
        raise ConnectionLostError("no answer in time")

    def _read_stderr(self) -> None:
        data = os.read(self._err.fileno(), 1 << 16)
        self._stderr_excerpt.add(data)
        if not data:
            self._err.close()

    def _exit_status(self) -> int | None:
        """Its exit status, with all heard that it wrote; None while it has none."""
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_LOOK_S)
        if not self._err.closed and select.select([self._err], [], [], 0)[0]:
            self._read_stderr()
        return code


def connect(site: Mapping[str, Any], scratch: str | None, mark: Path | None) -> RemoteTransport:
    """Return the transport to a site through the user's `ssh`; nothing is connected before the first command.

    Args:
        site: The site as data. Its `transport` gives host and options.
        scratch: A campaign's folder on the site; None as long as there is none.
        mark: A file in the campaign's folder here. The lock in `scratch` has its name; None: `commands`.
    """
    settings = site["transport"]
    identity = ["-i", os.path.expanduser(settings["identity"])] if settings.get("identity") else []  # noqa: PTH111
    words = [*options(settings), *identity, "--", settings["host"]]
    connection = OpenSsh(["ssh", *_OPTIONS, *words], settings["host"])
    return RemoteTransport(connection, site, scratch, mark, host_key=lambda: _host_key_check(words))


def _host_key_check(words: Sequence[str]) -> HostKeyCheck:
    """What the user's ssh does about a changed key; without an ssh on this machine it is not asked.

    Raises:
        UnreachableError: ssh does not understand the configuration.
    """
    if configuration(words).get("stricthostkeychecking", ["ask"])[0] in {"no", "off", "false"}:
        return HostKeyCheck(
            verified=False, evidence="not verified: your ssh configuration has StrictHostKeyChecking no"
        )
    return HostKeyCheck(verified=True, evidence="verified by your ssh")
