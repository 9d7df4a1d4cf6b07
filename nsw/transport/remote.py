"""A site elsewhere, whatever the way to it: one long-lived shell for commands, a stream of its own for files."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nsw.errors import CommandError, CommandResult, UnreachableError, UsageError
from nsw.recipe.units import parse_size
from nsw.transport import receiving, sending
from nsw.transport.listing import parse_listing
from nsw.transport.model import Entry, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nsw.transport.model import Content, HostKeyCheck
    from nsw.transport.pipe import Way
    from nsw.transport.shell import Answer, Shell

_QUICK_S = 120.0
_TRIES = 3  # transfers in a row that bring nothing
_PAUSE_S = 1.0
# a frame a file: what became of it, its length, its bytes; only "No such file" is absent
_READ = r"""
limit=$1; shift
for file; do
  if [ -e "$file" ] && [ ! -f "$file" ]; then echo "unknown it is not a regular file"    # a pipe would be waited for
  elif error=$( { head -c "$limit" -- "$file" >"$nsw_dir/file"; } 2>&1 ); then
    printf 'file %s\n' "$(stat -c %s "$nsw_dir/file")"; cat "$nsw_dir/file"
  else case $error in
    *'No such file'*|*'Not a directory'*) echo absent ;;
    *) printf 'unknown %s\n' "${error//$'\n'/ }" ;;
  esac; fi
done
"""
_LIST = r"""
shopt -s nullglob dotglob
for folder; do
  if [ -d "$folder" ]; then
    [ -r "$folder" ] && [ -x "$folder" ] || { printf 'unknown\0'; continue; }
    printf 'folder\0'
    files=("$folder"/*)
    [ "${#files[@]}" = 0 ] || printf '%s\0' "${files[@]}" | xargs -0 stat --printf '%F\t%s\t%n\0' --
    printf 'end\0'
  elif [ -e "$folder" ] || [ -e "${folder%/*}" ] || [ -e / ]; then printf 'absent\0'
  fi
done
:
"""
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class RemoteTransport:
    """Runs commands and moves files on another machine.

    Args:
        way: How commands are started there.
        shell: The shell there.
        most_bytes: How much may be brought here in all.
        host_key: Whether a changed key of the host is refused; None where hosts have no keys.
        sleep: Waits; tests hand in their own.

    Attributes:
        progress: Called while files come, with the bytes that are here, of how many; to be set by who shows it.
    """

    remote = True

    def __init__(
        self,
        way: Way,
        shell: Shell,
        most_bytes: int | None = None,
        *,
        host_key: Callable[[], HostKeyCheck] | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.host_key = host_key
        self.progress: Callable[[int, int], object] = lambda _done, _all: None
        self._sleep = sleep
        self._way = way
        self._shell = shell
        self._left = most_bytes

    def left_running(self) -> bool:
        """Whether another process there holds the campaign's lock; if not, this one's shell holds it."""
        if self._shell.holds_lock:
            return False
        self._shell.drop()
        self._shell.connect()
        return not self._shell.holds_lock

    def close(self) -> None:
        """End shell and connection."""
        self._shell.drop()
        self._way.close()

    # --- commands -----------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
        stdin: bytes = b"",
    ) -> CommandResult:
        """Run one command there."""
        try:
            (answer,) = self._shell.call([argv], timeout=timeout, cwd=cwd, without=without, keep=keep, stdin=stdin)
        except UnreachableError as fault:
            return CommandResult(tuple(argv), -1, "", fault.render(), timed_out=True, unreachable=fault)
        return answer.result(argv)

    def run_many(
        self,
        commands: Sequence[Sequence[str]],
        *,
        timeout: float,
        without: Sequence[str] = (),
        keep: Sequence[str] = (),
    ) -> list[CommandResult]:
        """Run them in one message."""
        try:
            answers = self._shell.call(commands, timeout=timeout, without=without, keep=keep)
        except UnreachableError as fault:
            lost = CommandResult((), -1, "", fault.render(), timed_out=True, unreachable=fault)
            return [replace(lost, argv=tuple(argv)) for argv in commands]
        return [answer.result(argv) for argv, answer in zip(commands, answers, strict=True)]

    def _ask(self, script: str, *words: str, timeout: float = _QUICK_S, stdin: bytes = b"") -> Answer:
        """The answer of a bash script.

        Raises:
            UnreachableError: There was none.
        """
        # it uses the shell's own folder for what must not be taken for an answer
        argv = [
            "env",
            "bash",
            "-c",
            f"nsw_dir=$(mktemp -d) && trap 'rm -rf \"$nsw_dir\"' EXIT\n{script}",
            "nsw",
            *words,
        ]
        (answer,) = self._shell.call([argv], timeout=timeout, stdin=stdin)
        if answer.late:
            raise UnreachableError(answer.stderr.decode(errors="replace").strip() or "the site gave no answer in time")
        return answer

    # --- files: there -------------------------------------------------------------------------------------

    def expand(self, path: str) -> str:
        """With the site's variables."""
        names = sorted({one or other for one, other in _VARIABLE.findall(path)} | {"HOME", "USER"})
        script = 'for name; do printf "%s=%s\\0" "$name" "${!name-}"; done; printf "=%s\\0" "$(id -un)"'
        answer = self._ask(script, *names)
        pairs = (text.partition("=") for text in answer.stdout.decode(errors="replace").split("\0") if text)
        known = {name: value for name, _, value in pairs}
        known["USER"] = known.get("USER") or known.get("", "")
        missing = [name for name in names if not known.get(name) and re.search(rf"\$\{{?{name}\b", path)]
        if missing:
            raise UsageError(f"{path}: {missing[0]} is not set on the site")
        found = _VARIABLE.sub(lambda match: known[match[1] or match[2]], path)
        if found == "~" or found.startswith("~/"):
            found = known.get("HOME", "") + found[1:]
        if not found.startswith("/") or "$" in found:
            raise UsageError(f"{path} is {found} on the site: it must be an absolute path")
        return found

    def make_folders(self, there: Sequence[str]) -> None:
        """Make folders in one command."""
        if not there:
            return
        answer = self._ask('umask 077; mkdir -p -- "$@"', *there)
        if answer.code != 0:
            raise CommandError(answer.result(["mkdir", "-p", *there]), what="a folder cannot be made on the site")

    def read_many(self, there: Sequence[str], limit: int = 1 << 20) -> dict[str, Content]:
        """Read in one command."""
        if not there:
            return {}
        script = 'mapfile -t -d \'\' files; set -- "$1" "${files[@]}"' + _READ
        answer = self._ask(script, str(limit), stdin="".join(f"{path}\0" for path in there).encode())
        found: dict[str, Content] = {}
        data, at = answer.stdout, 0
        for path in there:
            line, newline, _ = data[at:].partition(b"\n") if at < len(data) else (b"", b"", b"")
            if not newline:
                raise UnreachableError(f"{path} cannot be read: the site's answer is cut short")
            at += len(line) + 1
            what, _, rest = line.decode(errors="replace").partition(" ")
            if what == "file" and rest.isdigit():
                found[path] = data[at : at + int(rest)]
                at += int(rest)
            else:
                found[path] = None if what == "absent" else Unreadable(rest or "the site's answer is none")
        return found

    def tail(self, there: str, limit: int) -> bytes | None:
        """The last bytes."""
        answer = self._ask('tail -c "$1" -- "$2"', str(limit), there)
        if answer.code == 0:
            return answer.stdout
        said = answer.stderr.decode(errors="replace").strip()
        if "No such file" in said or "Not a directory" in said:
            return None
        raise UnreachableError(f"{there} cannot be read: {said}")

    def list_many(self, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
        """List in one command."""
        if not folders:
            return {}
        script = "mapfile -t -d '' files; set -- \"${files[@]}\"" + _LIST
        answer = self._ask(script, stdin="".join(f"{folder}\0" for folder in folders).encode())
        return parse_listing(answer.stdout, folders)

    # --- files: to and fro --------------------------------------------------------------------------------

    def show(self, here: Path, there: str) -> str:  # noqa: ARG002  as every transport is asked
        """Where it will be there."""
        return there

    def stage(self, files: Sequence[tuple[Path, str]]) -> None:
        """Send what differs, as one stream."""
        wanted = sending.files_of(files)
        if not wanted:
            return
        listing = "".join(f"{one.there}\0" for one in wanted).encode()
        answer = self._ask(sending.HASHES, stdin=listing)
        missing = sending.differing(wanted, answer.stdout)
        if missing:
            sending.send(self._way, missing)

    def get_many(self, files: Sequence[tuple[str, Path]]) -> None:
        """Bring them as one stream; after a cut the next one begins where it ended."""
        if not files:
            return None
        idle = 0
        while True:
            try:
                came = receiving.receive(self._way, files, self._left, self.progress)
            except receiving.CutError as fault:
                self._count(fault.came)
                idle = 0 if fault.came else idle + 1
                if idle == _TRIES:
                    raise
                self._sleep(_PAUSE_S)
            else:
                return self._count(came)

    def allow(self, most: int) -> None:
        """Let so many bytes be brought, which a person has agreed to; never fewer than before."""
        if self._left is not None:
            self._left = max(self._left, most)

    def _count(self, received: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - received)


def most_bytes(site: Mapping[str, Any]) -> int | None:
    """The site's limits.download in bytes; None for no limit."""
    given = (site.get("limits") or {}).get("download")
    return None if given is None else int(parse_size(given))
