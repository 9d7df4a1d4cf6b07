"""A site elsewhere, whatever the way to it: one long-lived shell for commands, a stream of its own for files."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from string import Template
from typing import TYPE_CHECKING, Any, Unpack

from nsw.errors import CommandError, CommandResult, UnreachableError, UsageError
from nsw.recipe.units import parse_size
from nsw.transport.model import (
    MOST_OUTPUT,
    Conditions,
    Content,
    Entry,
    HostKeyCheck,
    Transport,
    Unreadable,
    matches,
)
from nsw.transport.shell import Answer, Connection, Shell
from nsw.transport.transfer import HASHES, CutError, differing, receive, send, uploads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


__all__ = ["RemoteTransport", "most_bytes"]

_QUICK_S = 120.0
_TRIES = 3  # transfers in a row that bring nothing
_PAUSE_S = 1.0
_MOST_VARIABLES = 1 << 20  # bytes of a login's environment
_MOST_LISTING = 16 << 20
_MOST_FRAME = 1 << 16  # of a file that is as long as it may be
_TOGETHER = 500  # folders in one listing: those of runs with 64 reports each take 5 MB
_FRAME = re.compile(rb"file ([0-9]{1,15})\n")
_ENTRY = re.compile(r"([^\t]*)\t([0-9]{1,15})\t(.*)", re.DOTALL)
# a frame a file: what became of it, its length, its bytes; only "No such file" is absent
_READ = r"""
limit=$1 head_or_tail=$2; mapfile -t -d '' files
for file in "${files[@]}"; do
  if [ -e "$file" ] && [ ! -f "$file" ]; then echo "unknown it is not a regular file"    # a pipe would be waited for
  elif error=$( { "$head_or_tail" -c "$limit" -- "$file" >"$nsw_dir/file"; } 2>&1 ); then
    printf 'file %s\n' "$(stat -c %s "$nsw_dir/file")"; cat "$nsw_dir/file"
  else case $error in
    *'No such file'*|*'Not a directory'*) echo absent ;;
    *) printf 'unknown %s\n' "${error//$'\n'/ }" ;;
  esac; fi
done
"""
_LIST = r"""
shopt -s nullglob dotglob
mapfile -t -d '' folders
for folder in "${folders[@]}"; do
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


class RemoteTransport(Transport):
    """Runs commands and moves files on another machine.

    Args:
        connection: How commands are started there.
        site: The site as data.
        scratch: A campaign's folder there, in which a lock is held; None as long as there is none.
        mark: The lock's name.
        host_key: Whether a changed key of the host is refused; None where hosts have no keys.
    """

    remote = True

    def __init__(
        self,
        connection: Connection,
        site: Mapping[str, Any],
        scratch: str | None,
        mark: Path | None = None,
        *,
        host_key: Callable[[], HostKeyCheck] | None = None,
    ) -> None:
        self.host_key = host_key
        self._sleep: Callable[[float], object] = time.sleep
        self._connection = connection
        lock = f"{scratch}/{mark.name if mark else 'commands'}" if scratch else None
        self._shell = Shell(connection, lock, login_shell=bool((site.get("transport") or {}).get("login_shell")))
        self._left = most_bytes(site)

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
        self._connection.close()

    # --- commands -----------------------------------------------------------------------------------------

    def run(self, argv: Sequence[str], **conditions: Unpack[Conditions]) -> CommandResult:
        """Run one command there."""
        return self.run_many([argv], **conditions)[0]

    def run_many(self, commands: Sequence[Sequence[str]], **conditions: Unpack[Conditions]) -> list[CommandResult]:
        """Run them in one message."""
        try:
            answers = self._shell.call(commands, **conditions)
        except UnreachableError as fault:
            lost = CommandResult((), -1, "", fault.render(), timed_out=True, unreachable=fault)
            return [replace(lost, argv=tuple(argv)) for argv in commands]
        return [answer.result(argv) for argv, answer in zip(commands, answers, strict=True)]

    def _ask(self, script: str, *words: str, input_lines: Iterable[str] = (), limit: int = MOST_OUTPUT) -> Answer:
        """The answer of a bash script; what is given comes on its standard input, a NUL after each.

        Raises:
            UnreachableError: There was none.
        """
        # what must not be taken for an answer goes to a folder of its own
        text = f"nsw_dir=$(mktemp -d) && trap 'rm -rf \"$nsw_dir\"' EXIT\n{script}"
        stdin = "".join(f"{line}\0" for line in input_lines).encode(errors="surrogateescape")
        command = ["env", "bash", "-c", text, "nsw", *words]
        (answer,) = self._shell.call([command], limit, timeout=_QUICK_S, stdin=stdin)
        if answer.late:
            raise UnreachableError(
                answer.stderr.decode(errors="backslashreplace").strip() or "the site gave no answer in time"
            )
        return answer

    # --- files: there -------------------------------------------------------------------------------------

    def expand(self, path: str) -> str:
        """With the site's variables."""
        answer = self._ask('env -0; printf "USER=%s\\0" "${USER:-$(id -un)}"', limit=_MOST_VARIABLES)
        pairs = (text.partition("=") for text in answer.stdout.decode(errors="backslashreplace").split("\0"))
        variables = {name: value for name, _, value in pairs if value}
        try:
            expanded = Template(re.sub(r"^~(?=/|$)", "$HOME", path)).substitute(variables)
        except KeyError as missing:
            raise UsageError(f"{path}: {missing.args[0]} is not set on the site") from None
        except ValueError:  # a $ that begins no name
            expanded = path
        if not expanded.startswith("/") or "$" in expanded:
            raise UsageError(f"{path} is {expanded} on the site: it must be an absolute path")
        return expanded

    def make_folders(self, paths: Sequence[str]) -> None:
        """Make folders in one command."""
        if not paths:
            return
        answer = self._ask('umask 077; mkdir -p -- "$@"', *paths)
        if answer.code != 0:
            raise CommandError(answer.result(["mkdir", "-p", *paths]), subject="a folder cannot be made on the site")

    def read_many(self, paths: Sequence[str], limit: int = 1 << 20, *, end: bool = False) -> dict[str, Content]:
        """Read in one command."""
        if not paths:
            return {}
        frame_limit = max(limit, MOST_OUTPUT) + _MOST_FRAME
        answer = self._ask(_READ, str(limit), "tail" if end else "head", input_lines=paths, limit=frame_limit)
        contents: dict[str, Content] = {}
        data, at = memoryview(answer.stdout), 0
        for path in paths:
            frame = _FRAME.match(data, at)
            if frame is None:
                line_end = answer.stdout.find(b"\n", at)
                if line_end < 0:
                    raise UnreachableError(f"{path} cannot be read: the site's answer is cut short")
                status, _, reason = str(data[at:line_end], errors="backslashreplace").partition(" ")
                contents[path] = None if status == "absent" else Unreadable(reason or "the site's answer is none")
                at = line_end + 1
                continue
            at = frame.end() + int(frame[1])
            if int(frame[1]) > limit or at > len(data):
                raise UnreachableError(f"{path} cannot be read: the site's answer has another length than announced")
            contents[path] = bytes(data[frame.end() : at])
        return contents

    def list_many(self, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
        """List many in one command."""
        every = list(folders)
        entries: dict[str, list[Entry]] = {}
        for first in range(0, len(every), _TOGETHER):
            batch = every[first : first + _TOGETHER]
            words = _words(self._ask(_LIST, input_lines=batch, limit=_MOST_LISTING).stdout)
            entries |= {folder: _listed(folder, words, folders[folder]) for folder in batch}
        return entries

    # --- files: to and fro --------------------------------------------------------------------------------

    def show(self, local_path: Path, remote_path: str) -> str:  # noqa: ARG002  as every transport is asked
        """Where it will be there."""
        return remote_path

    def stage(self, files: Sequence[tuple[Path, str]]) -> None:
        """Send what differs, as one stream."""
        candidates = uploads(files)
        if candidates and (
            missing := differing(
                candidates, self._ask(HASHES, input_lines=[file.remote_path for file in candidates]).stdout
            )
        ):
            send(self._connection, missing)

    def get_many(self, files: Sequence[tuple[str, Path]]) -> None:
        """Bring them as one stream; after a cut the next one begins where it ended."""
        if not files:
            return None
        idle = 0
        while True:
            try:
                came = receive(self._connection, files, self._left, self.progress)
            except CutError as fault:
                self._count(fault.came)
                idle = 0 if fault.came else idle + 1
                if idle == _TRIES:
                    raise
                self._sleep(_PAUSE_S)
            else:
                return self._count(came)

    def allow(self, limit: int) -> None:
        """Let so many bytes be brought, which a person has agreed to; never fewer than before."""
        if self._left is not None:
            self._left = max(self._left, limit)

    def _count(self, received: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - received)


def _words(data: bytes | bytearray) -> Iterator[str]:
    """The texts in front of each NUL, one at a time: a site may send millions of them."""
    at = 0
    while (end := data.find(b"\0", at)) >= 0:
        yield data[at:end].decode(errors="surrogateescape")
        at = end + 1


def _listed(folder: str, words: Iterator[str], patterns: Sequence[str]) -> list[Entry]:
    """The entries of the next folder of an answer; names in it are not trusted.

    Raises:
        UnreachableError: It could not be listed, or the answer is cut short.
    """
    state = next(words, "")
    if state not in {"folder", "absent"}:
        raise UnreachableError(f"{folder} cannot be listed")
    entries: list[Entry] = []
    while state == "folder" and (word := next(words, "")) != "end":
        entry = _ENTRY.fullmatch(word)
        if entry is None or not entry[3].startswith(f"{folder}/"):
            raise UnreachableError(f"{folder} cannot be listed: the site's answer is cut short, or of something else")
        name = entry[3].removeprefix(f"{folder}/")
        if entry[1].startswith("regular") and matches(name, patterns):
            entries.append(Entry(name, int(entry[2])))
    return sorted(entries, key=lambda entry: entry.name)


def most_bytes(site: Mapping[str, Any]) -> int | None:
    """The site's limits.download in bytes; None for no limit."""
    limit = (site.get("limits") or {}).get("download")
    return None if limit is None else int(parse_size(limit))
