"""Bash on the far side of a connection: a long-lived one for commands, and one for each stream of files.

Nothing that a login shell, a banner or a command prints can be taken for an answer: answers begin with a random token,
and the output of commands travels by its length.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Unpack

from nsw.errors import CommandResult, UnreachableError
from nsw.resources import shipped_text
from nsw.scripts.quoting import quote, quote_all
from nsw.transport.model import MOST_OUTPUT, Conditions, Excerpt

__all__ = [
    "Answer",
    "Bash",
    "Connection",
    "ConnectionLostError",
    "Incoming",
    "Pipe",
    "Shell",
    "TooLongError",
    "discard_output",
    "is_command_status",
    "no_bash",
    "stream",
]

_BASH: Final = "exec bash --noprofile --norc"
_GREETING_S = 60.0
_SLACK_S = 30.0  # beside a command's own timeout
_SILENT_S: Final = 120.0  # without a byte of a file
_FACTS: Final = re.compile("([0-9]{1,3}) (-?[0-9]{1,9}) ([0-9]{1,15}) ([0-9]{1,15})")
_MOST_NOISE: Final = 1 << 20  # bytes before an answer, or behind the last
_KEPT_NOISE: Final = 400  # bytes of it that explain a shell that did not start
_PIECE: Final = 1 << 18  # bytes that are hashed and written at a time: a processor's cache holds them
_NAP_S: Final = 0.001
# it ends when nothing was asked for so long, so that a shell whose nsw is out of reach lets go of the lock
_IDLE_S = 100
_START: Final = shipped_text("transport/shell.sh")
_LOOP: Final = r"""
while IFS= read -r -d '' -t "$nsw_idle" nsw_request; do eval "$nsw_request"; done; exit
"""


class ConnectionLostError(Exception):
    """The connection was lost or never made; whether a command did anything is not known."""


class TooLongError(ConnectionLostError):
    """A line or record is longer than allowed."""


class _NoBashError(ConnectionLostError):
    """No bash came up: the exit status of what was started, and what it said."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.said = code, message


class Pipe(Protocol):
    """One remote command with its standard streams."""

    def send(self, data: bytes) -> None:
        """Write all of this to its standard input.

        Raises:
            ConnectionLostError: It takes no more.
        """

    def end_input(self) -> None:
        """Close its standard input."""

    def receive(self, limit: int, timeout: float) -> bytes:
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


class Connection(Protocol):
    """How remote commands are started."""

    def open(self, command: str) -> Pipe:
        """Start one; `command` is parsed by the login shell there, whatever that is, so it must be plain words.

        Raises:
            UnreachableError: There is no connection, with what to do.
        """

    def close(self) -> None:
        """Let go of the connection."""

    def explain(self, code: int, message: str) -> UnreachableError:
        """What it means that no bash came up, and what to do."""


class Incoming:
    """What a pipe brings, read in large pieces, each byte handed out once and copied at most once.

    Args:
        pipe: The pipe.
        silent_s: Seconds without a byte after which the connection counts as lost.
    """

    def __init__(self, pipe: Pipe, silent_s: float = _SILENT_S) -> None:
        self.pipe = pipe
        self._silent_s = silent_s
        self._head = bytearray()  # what came and was not handed out
        self._at = 0  # where in it the next byte is
        self._piece = memoryview(b"")  # what came behind it

    def record(self, limit: int, end: bytes = b"\0", timeout: float | None = None) -> bytes:
        """The bytes before the next `end`; to be called when no `take` has left anything.

        Args:
            limit: The most bytes.
            end: The byte that ends the record.
            timeout: Seconds to wait.

        Raises:
            ConnectionLostError: It did not come.
            TooLongError: There is none in `most` bytes.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        searched = self._at
        while (at := self._head.find(end, searched)) < 0:
            del self._head[: self._at]
            self._at, searched = 0, len(self._head)
            if searched > limit:
                raise TooLongError("the reply does not have the form of an answer")
            self._head += self._receive(1 << 20, self._silent_s if deadline is None else deadline - time.monotonic())
        record = bytes(self._head[self._at : at])
        self._at = at + 1
        return record

    def take(self, limit: int, left: int) -> memoryview:
        """The next bytes, at least one and at most so many; no more than `left` are read ahead.

        Raises:
            ConnectionLostError: None came.
        """
        if not self._piece:
            self._piece = memoryview(self._read_ahead(min(left, _PIECE)))
        data, self._piece = self._piece[:limit], self._piece[limit:]
        return data

    def _read_ahead(self, size: int) -> bytes:
        """So many bytes: each turn of a process costs more than the bytes of one packet."""
        if self._at < len(self._head):
            data = bytes(self._head[self._at : self._at + size])
            self._at += len(data)
            return data
        parts = [self._receive(size, self._silent_s)]
        have = len(parts[0])
        try:
            while have < size:
                time.sleep(_NAP_S)  # for several packets
                parts.append(self._receive(size - have, self._silent_s))
                have += len(parts[-1])
        except ConnectionLostError:
            pass  # what came is kept, and the next read raises it again
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _receive(self, limit: int, timeout: float) -> bytes:
        if timeout <= 0:
            raise ConnectionLostError("no answer in time")
        data = self.pipe.receive(limit, timeout)
        if not data:
            raise ConnectionLostError("the shell there ended")
        return data


class Bash(Incoming):
    """A bash that was started there, behind all that its login shell printed.

    Args:
        connection: How it is started.
        script: What it reads first, from its standard input, since the login shell may be any. It prints a line that
            begins with $nsw_token.
        command: What is started.
        silent_s: As of Incoming.

    Raises:
        UnreachableError: There is no connection.
        ConnectionLostError: It did not come up.
    """

    def __init__(self, connection: Connection, script: str, command: str = _BASH, silent_s: float = _SILENT_S) -> None:
        super().__init__(connection.open(command), silent_s)
        token = f"nsw-{secrets.token_hex(12)}"
        self._begin = f"{token} ".encode()
        self._noise = b""  # the last that came and was no answer
        try:
            self.pipe.send(f"nsw_token={token}\n{script}".encode(errors="surrogateescape"))
            self.greeting = self.answer(_GREETING_S)
        except ConnectionLostError as fault:
            raise self._no_bash_error(fault) from None

    def answer(self, timeout: float) -> list[str]:
        """The words of the next line that begins with the token; whatever comes before it is none of ours."""
        deadline, left = time.monotonic() + timeout, _MOST_NOISE
        while not (line := self.record(left, b"\n", deadline - time.monotonic())).startswith(self._begin):
            self._noise = (self._noise + line + b"\n")[-_KEPT_NOISE:]
            left -= len(line) + 1
            if left < 0:
                raise TooLongError("the reply does not have the form of an answer")
        return line[len(self._begin) :].decode(errors="backslashreplace").split()

    def exactly(self, size: int, add: Callable[[memoryview], object]) -> None:
        """Hand over so many bytes, piece by piece."""
        while size > 0:
            data = self.take(size, size)
            add(data)
            size -= len(data)

    def _no_bash_error(self, fault: ConnectionLostError) -> _NoBashError:
        try:
            self.pipe.end_input()
            code, stderr = self.pipe.finish(5)
        except ConnectionLostError:
            code, stderr = 255, b""
        self.pipe.kill()
        # some print why they refuse on stdout: what came there is no answer of ours
        text = stderr.decode(errors="backslashreplace").strip() or self._noise.decode(errors="backslashreplace").strip()
        return _NoBashError(code, text or str(fault))


def stream(connection: Connection, script: str, *words: str) -> Bash:
    """A bash script on the far side whose standard streams are free for data.

    Raises:
        UnreachableError: There is no connection.
        ConnectionLostError: It was lost at once.
    """
    # bash reads line by line and leaves what follows
    return Bash(
        connection, f"nsw_go() {{\n{script}\n}}\nprintf '\\n%s \\n' $nsw_token; nsw_go {quote_all(words)}; exit\n"
    )


def discard_output(pipe: Pipe, timeout: float) -> None:
    """Read to the end of what a command prints when nothing of it counts any more.

    Raises:
        ConnectionLostError: It did not end within the timeout (seconds), or goes on and on.
    """
    deadline, left = time.monotonic() + timeout, _MOST_NOISE
    while data := pipe.receive(1 << 16, deadline - time.monotonic()):
        left -= len(data)
        if left < 0:
            raise TooLongError("it sends more than was asked for")


def is_command_status(code: int) -> bool:
    """Whether an exit status is that of a command over there, and not of the connection."""
    return 0 <= code < 255


def no_bash(code: int, message: str) -> UnreachableError:
    """The error of a site where no bash came up."""
    if not is_command_status(code):
        return UnreachableError(f"no shell could be started on the site: {message}")
    return UnreachableError(
        f"the site was reached, but its login shell did not start bash (exit status {code}): {message}",
        hint=f"nsw runs `{_BASH}` there, which a restricted shell or an account without one refuses:"
        " ask the site's support for a login shell that may start bash",
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command did, its output as bytes. `late`: it was killed or cut off, and what it did is not known."""

    code: int
    stdout: bytes | bytearray = b""
    stderr: bytes = b""
    late: bool = False
    seconds: float = 0.0

    def result(self, argv: Sequence[str]) -> CommandResult:
        """As text."""
        return CommandResult(
            tuple(argv), self.code, self.stdout.decode(errors="surrogateescape"),
            self.stderr.decode(errors="backslashreplace"), timed_out=self.late, seconds=self.seconds,
        )  # fmt: skip


class Shell:
    """One long-lived bash on the far side that runs commands one after another.

    Args:
        connection: How it is started.
        lock: A file there that the shell and its commands hold a lock on; None for none.
        login_shell: Whether it is a login shell, where commands are on PATH only then.
    """

    def __init__(self, connection: Connection, lock: str | None = None, *, login_shell: bool = False) -> None:
        self._connection = connection
        self._lock = lock
        self._command = "exec bash --login" if login_shell else _BASH
        self._bash: Bash | None = None
        self._used = 0.0

    @property
    def holds_lock(self) -> bool:
        """Whether it runs, and no other process there held the lock when it began."""
        return self._bash is not None and self._bash.greeting[:1] == ["free"]

    def call(
        self, commands: Sequence[Sequence[str]], limit_bytes: int = MOST_OUTPUT, **conditions: Unpack[Conditions]
    ) -> list[Answer]:
        """Run commands one after another in one message; each may print `most` bytes.

        Raises:
            UnreachableError: No connection could be made; none of them was started.
        """
        bash = self.connect()
        answers: list[Answer] = []
        try:
            self._used = time.monotonic()
            bash.pipe.send(_call_message(commands, conditions))
            for _ in commands:
                answers.append(_receive_answer(bash, conditions["timeout"], limit_bytes))  # noqa: PERF401  what came before a fault is kept
        except ConnectionLostError as fault:
            self.drop()
            lost = Answer(-1, stderr=f"the connection was lost: {fault}".encode(), late=True)
            answers += [lost] * (len(commands) - len(answers))
        return answers

    def connect(self) -> Bash:
        """Start the shell unless it runs.

        Raises:
            UnreachableError: It cannot be started.
        """
        if self._bash is not None and time.monotonic() - self._used < _IDLE_S * 0.8:
            return self._bash
        self.drop()
        lock = f"nsw_lock {quote(self._lock)}" if self._lock else "echo free"
        start = f"nsw_idle={_IDLE_S}\n{_START}printf '\\n%s ' $nsw_token; {lock}{_LOOP}"
        self._used = time.monotonic()
        try:
            self._bash = Bash(self._connection, start, self._command, _SLACK_S)
        except _NoBashError as fault:
            raise self._connection.explain(fault.code, fault.said) from None
        return self._bash

    def drop(self) -> None:
        """Let go of the shell; the next command starts another."""
        if self._bash is not None:
            self._bash.pipe.kill()
            self._bash = None


def _call_message(commands: Sequence[Sequence[str]], conditions: Conditions) -> bytes:
    without, keep = " ".join(conditions.get("without", ())), " ".join(conditions.get("keep", ()))
    stdin, cwd = conditions.get("stdin", b""), quote(conditions.get("cwd") or "")
    lines = [f"nsw_clear={quote(without)} nsw_keep={quote(keep)}"]
    if stdin:
        lines.append(f'head -c {len(stdin)} >"$nsw_dir/in"')
    source = '"$nsw_dir/in"' if stdin else "/dev/null"
    lines += [f"nsw_call {conditions['timeout']:g} {cwd} {source} {quote_all(argv)}" for argv in commands]
    return "\n".join(lines).encode(errors="surrogateescape") + b"\0" + stdin


def _receive_answer(bash: Bash, timeout: float, limit_bytes: int) -> Answer:
    line = " ".join(bash.answer(timeout + _SLACK_S))
    if (facts := _FACTS.fullmatch(line)) is None:
        raise ConnectionLostError(f"a malformed answer: {line[:80]!r}")
    code, seconds, size_out, size_err = map(int, facts.groups())
    for size, limit in ((size_out, limit_bytes), (size_err, MOST_OUTPUT)):
        if size > limit:
            raise TooLongError(f"the answer has {size:,} bytes; the limit is {limit:,}")
    stdout, stderr = bytearray(), Excerpt()
    bash.exactly(size_out, stdout.extend)
    bash.exactly(size_err, stderr.add)
    late = code in {124, 137} and seconds >= int(timeout)
    return Answer(-1 if late else code, stdout, stderr.head_and_tail(), late, float(seconds))
