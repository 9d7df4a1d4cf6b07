"""One long-lived bash on the far side that runs commands one after another, each answer in a frame of its own.

Nothing that a login shell, a banner or a command prints can be taken for an answer: frames carry a random token, and
the output of commands travels by its length.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.errors import CommandResult, UnreachableError
from nsw.scripts.quoting import quote, quote_all
from nsw.transport.pipe import ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.transport.pipe import Pipe, Way

BASH = "exec bash --noprofile --norc"
_GREETING_S = 60.0
_SLACK_S = 30.0  # beside a command's own timeout
_MOST = 256 << 20  # bytes of one answer
_MOST_NOISE = 400  # bytes that are kept to explain a shell that did not start
_CHUNK = 1 << 16
# it ends when nothing was asked for so long, so that a shell whose nsw is out of reach lets go of the lock
_IDLE_S = 100
_START = r"""
umask 077; nsw_dir=$(mktemp -d) || exit 97
trap 'rm -rf "$nsw_dir"' EXIT
nsw_lock() {
  command -v flock >/dev/null || { echo free; return; }
  mkdir -p "${1%/*}" && exec 8<>"$1" || { echo free; return; }
  if flock -n 8; then echo free; else exec 8>&-; echo held; fi
}
nsw_end_group() {    # what timeout left of its group: SIGTERM came already, SIGKILL comes after 5 s
  local group at; read -r group <"$nsw_dir/group" || return
  for at in {1..100}; do
    kill -0 -- "-$group" 2>/dev/null || return
    [ "$at" != 50 ] || kill -KILL -- "-$group" 2>/dev/null
    sleep 0.1
  done
}
nsw_call() {
  local limit=$1 cwd=$2 input=$3 out=$nsw_dir/out err=$nsw_dir/err code start=$SECONDS
  shift 3
  ( { [ -z "$cwd" ] || cd -- "$cwd" || exit 1
      [ -z "$nsw_clear" ] || for name in $(compgen -e); do
        [[ " $nsw_keep " == *" $name "* ]] && continue
        for prefix in $nsw_clear; do [[ $name == "$prefix"* ]] && unset "$name"; done
      done
      echo "$BASHPID" >"$nsw_dir/group"    # timeout makes it a process group
      exec timeout -k 5 "$limit" "$@"; } <"$input" >"$out" 2>"$err" )
  code=$?
  case $code in 124 | 137) [ "$((SECONDS - start))" -lt "${limit%.*}" ] || nsw_end_group ;; esac
  printf '\n%s %s %s %s %s\n' "$nsw_token" "$code" "$((SECONDS - start))" "$(stat -c %s "$out")" "$(stat -c %s "$err")"
  cat "$out" "$err"
}
"""
_LOOP = r"""
while IFS= read -r -d '' -t "$nsw_idle" nsw_request; do eval "$nsw_request"; done; exit
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command did, its output as bytes. `late`: it was killed or cut off, and what it did is not known."""

    code: int
    stdout: bytes = b""
    stderr: bytes = b""
    late: bool = False
    seconds: float = 0.0

    def result(self, argv: Sequence[str]) -> CommandResult:
        """As text."""
        return CommandResult(
            tuple(argv), self.code, self.stdout.decode(errors="replace"), self.stderr.decode(errors="replace"),
            timed_out=self.late, seconds=self.seconds,
        )  # fmt: skip


def reached(code: int) -> bool:
    """Whether an exit status is that of a command over there, and not of the connection."""
    return 0 <= code < 255


def no_bash(code: int, said: str) -> UnreachableError:
    """The error of a site whose login shell does not start bash."""
    return UnreachableError(
        f"the site was reached, but its login shell did not start bash (exit status {code}): {said}",
        hint=f"nsw runs `{BASH}` there, which a restricted shell or an account without one refuses:"
        " ask the site's support for a login shell that may start bash",
    )


class Shell:
    """The far side's bash.

    Args:
        way: How it is started.
        lock: A file there that the shell and its commands hold a lock on; None for none.
        login_shell: Whether it is a login shell, where commands are on PATH only then.
    """

    def __init__(self, way: Way, lock: str | None = None, *, login_shell: bool = False) -> None:
        self._way = way
        self._lock = lock
        self._command = "exec bash --login" if login_shell else BASH
        self._pipe: Pipe | None = None
        self._token = ""
        self._buffer = b""
        self._noise = b""  # the last that came before the shell's first answer
        self._used = 0.0
        self.holds_lock = False

    def call(
        self,
        commands: Sequence[Sequence[str]],
        *,
        timeout: float,
        cwd: str | None = None,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
        stdin: bytes = b"",
    ) -> list[Answer]:
        """Run commands one after another in one message; `stdin` goes to the first of them.

        Raises:
            UnreachableError: No connection could be made; none of them was started.
        """
        self.connect()
        lines = [f"nsw_clear={quote(' '.join(without))} nsw_keep={quote(' '.join(keep))}"]
        if stdin:
            lines.append(f'head -c {len(stdin)} >"$nsw_dir/in"')
        for number, argv in enumerate(commands):
            source = '"$nsw_dir/in"' if stdin and not number else "/dev/null"
            lines.append(f"nsw_call {timeout:g} {quote(cwd or '')} {source} {quote_all(argv)}")
        answers: list[Answer] = []
        try:
            self._send("\n".join(lines).encode() + b"\0" + stdin)
            for _ in commands:
                answers.append(self._answer(timeout))  # noqa: PERF401  what came before a fault is kept
        except ConnectionLostError as fault:
            self.drop()
            lost = Answer(-1, stderr=f"the connection was lost: {fault}".encode(), late=True)
            answers += [lost] * (len(commands) - len(answers))
        return answers

    def connect(self) -> None:
        """Start the shell unless it runs.

        Raises:
            UnreachableError: It cannot be started.
        """
        if self._pipe is not None and time.monotonic() - self._used < _IDLE_S * 0.8:
            return
        self.drop()
        self._token = f"nsw-{secrets.token_hex(12)}"
        self._buffer = self._noise = b""
        lock = f"nsw_lock {quote(self._lock)}" if self._lock else "echo free"
        start = f"nsw_token={self._token} nsw_idle={_IDLE_S}\n{_START}printf '\\n%s ' $nsw_token; {lock}{_LOOP}"
        self._pipe = self._way.open(self._command)
        try:
            self._send(start.encode())
            self.holds_lock = self._frame(_GREETING_S)[0] == "free"
        except ConnectionLostError:
            pipe, self._pipe = self._pipe, None
            raise self._refused(pipe) from None

    def _refused(self, pipe: Pipe) -> Exception:
        try:
            pipe.end_input()
            code, said = pipe.finish(5)
        except ConnectionLostError:
            code, said = 255, b""
        pipe.kill()
        # some print why they refuse on stdout: what came there is no answer of ours
        text = said.decode(errors="replace").strip() or self._noise.decode(errors="replace").strip() or "no answer"
        explained = getattr(self._way, "explain", None)
        if explained is not None:
            return explained(code, text)  # type: ignore[no-any-return]
        if reached(code):
            return no_bash(code, text)
        return UnreachableError(f"no shell could be started on the site: {text}")

    def drop(self) -> None:
        """Let go of the shell; the next command starts another."""
        if self._pipe is not None:
            self._pipe.kill()
            self._pipe = None
            self.holds_lock = False

    def _send(self, data: bytes) -> None:
        if self._pipe is None:
            raise ConnectionLostError("it was closed")
        self._pipe.send(data)
        self._used = time.monotonic()

    def _answer(self, timeout: float) -> Answer:
        facts = self._frame(timeout + _SLACK_S)
        try:
            code, seconds, size_out, size_err = (int(fact) for fact in facts)
        except ValueError:
            raise ConnectionLostError(f"a malformed answer: {' '.join(facts)[:80]}") from None
        if not 0 <= size_out + size_err <= _MOST:
            raise ConnectionLostError(f"an answer of {size_out + size_err} bytes")
        late = code in {124, 137} and seconds >= int(timeout)
        stdout, stderr = self._exactly(size_out), self._exactly(size_err)
        return Answer(-1 if late else code, stdout, stderr, late, float(seconds))

    def _frame(self, timeout: float) -> list[str]:
        """The facts of the next frame; whatever comes before its line is none of ours."""
        begin = f"{self._token} ".encode()
        deadline = time.monotonic() + timeout
        while True:
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                if line.startswith(begin):
                    return line[len(begin) :].decode(errors="replace").split()
                self._noise = (self._noise + line + newline)[-_MOST_NOISE:]
                continue
            self._fill(deadline - time.monotonic())

    def _exactly(self, size: int) -> bytes:
        parts, have = [self._buffer[:size]], min(size, len(self._buffer))
        self._buffer = self._buffer[size:]
        while have < size:
            if self._pipe is None:
                raise ConnectionLostError("it was closed")
            part = self._pipe.receive(min(_CHUNK, size - have), _SLACK_S)
            if not part:
                raise ConnectionLostError("the shell there ended in the middle of an answer")
            parts.append(part)
            have += len(part)
        return b"".join(parts)

    def _fill(self, timeout: float) -> None:
        if self._pipe is None:
            raise ConnectionLostError("it was closed")
        if timeout <= 0:
            raise ConnectionLostError("no answer in time")
        part = self._pipe.receive(_CHUNK, timeout)
        if not part:
            raise ConnectionLostError("the shell there ended")
        self._buffer += part
