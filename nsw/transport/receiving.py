"""Files of a site to this machine: in one stream, hashed while they come, and nothing but what was asked for.

The far side is not trusted: a name that was not asked for, anything but a plain file, and more bytes than are allowed
end the transfer.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import io
import tarfile
from typing import TYPE_CHECKING

from nsw.errors import CommandError, CommandResult, UnreachableError
from nsw.transport.model import Entry
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.stream import open_stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsw.transport.pipe import Pipe, Way

_SILENT_S = 120.0  # without a byte
_END_S = 600.0
_CHUNK = 1 << 18
# the files named on standard input as a tar stream, their hashes on stderr behind a mark
_GET = r"""
list=$(mktemp) || return; trap 'rm -f "$list"' EXIT
cat >"$list"
tar -c -f - -C / --no-recursion --null --verbatim-files-from -T "$list" || return
printf '\nnsw-hashes\n' >&2
while IFS= read -r -d '' file; do sum=$(sha256sum <"/$file"); printf '%s\n' "${sum%% *}" >&2; done <"$list"
"""


class _UnaskedError(Exception):
    """The far side sent what was not asked for, or too much."""


def parse_listing(answer: bytes, folders: Mapping[str, Sequence[str]]) -> dict[str, list[Entry]]:
    """The entries of each folder that match its patterns.

    Raises:
        UnreachableError: A folder could not be listed, or the answer is cut short.
    """
    words = iter(answer.decode(errors="surrogateescape").split("\0"))
    found: dict[str, list[Entry]] = {}
    for folder, patterns in folders.items():
        what = next(words, "")
        if what not in {"folder", "absent"}:
            raise UnreachableError(f"{folder} cannot be listed")
        entries: list[Entry] = []
        while what == "folder" and (word := next(words, None)) != "end":
            size, _, name = (word or "").partition(" ")
            if word is None or not size.isdigit():
                raise UnreachableError(f"{folder} cannot be listed: the site's answer is cut short")
            plain = name not in {"", ".", ".."} and not any(sign in name for sign in "/\n\r")
            if plain and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                entries.append(Entry(name, int(size)))
        found[folder] = sorted(entries, key=lambda entry: entry.name)
    return found


def receive(way: Way, files: Sequence[tuple[str, Path]], most: int | None) -> int:
    """Bring files; the bytes that came.

    Raises:
        CommandError: One cannot be read there, or came changed.
        UnreachableError: The connection was lost, or the far side sent what was not asked for.
    """
    try:
        pipe = open_stream(way, _GET)
    except ConnectionLostError as fault:
        raise UnreachableError(f"files cannot be brought: {fault}") from None
    expected = {there.lstrip("/"): here for there, here in files}
    digests: dict[str, str] = {}
    try:
        pipe.send("".join(f"{name}\0" for name in expected).encode())
        pipe.end_input()
        received = _unpack(pipe, expected, digests, most)
        code, said = pipe.finish(_END_S)
    except _UnaskedError as fault:
        pipe.kill()
        raise UnreachableError(f"the transfer was ended: {fault}") from None
    except (ConnectionLostError, tarfile.TarError, EOFError) as fault:
        with contextlib.suppress(ConnectionLostError):
            _, said = pipe.finish(2)
            raise _failed(said, fault) from None
        pipe.kill()
        raise UnreachableError(f"the connection was lost while files were brought: {fault}") from None
    if code != 0:
        raise _failed(said, None)
    _, _, hashes = said.decode(errors="replace").rpartition("\nnsw-hashes\n")
    for name, there in zip(expected, hashes.split(), strict=False):
        if name in digests and digests[name] != there:
            _part(expected[name]).unlink(missing_ok=True)
            result = CommandResult(("sha256sum", name), 1, there, "")
            raise CommandError(result, what=f"/{name} changed while it was brought, or came damaged")
    for name in digests:
        _part(expected[name]).replace(expected[name])
    return received


def _failed(said: bytes, fault: Exception | None) -> UnreachableError | CommandError:
    text = said.decode(errors="replace").strip()
    if fault is not None and not text:
        return UnreachableError(f"the connection was lost while files were brought: {fault}")
    return CommandError(CommandResult(("tar", "-c"), 1, "", text), what="files of the site cannot be brought")


def _unpack(pipe: Pipe, expected: Mapping[str, Path], digests: dict[str, str], most: int | None) -> int:
    received = 0
    with tarfile.open(fileobj=_Reader(pipe), mode="r|", bufsize=_CHUNK) as stream:
        for member in stream:
            target = expected.get(member.name)
            if target is None or not member.isreg() or member.name in digests:
                raise _UnaskedError(f"the site sent what was not asked for: {member.name!r:.80}")
            received += member.size
            if most is not None and received > most:
                raise _UnaskedError(f"more than the {most} bytes that are left of limits.download")
            content = stream.extractfile(member)
            target.parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            with _part(target).open("wb") as file:
                while content and (chunk := content.read(_CHUNK)):
                    digest.update(chunk)
                    file.write(chunk)
            digests[member.name] = digest.hexdigest()
    return received


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


class _Reader(io.RawIOBase):
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        want = _CHUNK if size < 0 else size
        parts, have = [], 0
        while have < want:
            part = self._pipe.receive(want - have, _SILENT_S)
            if not part:
                break
            parts.append(part)
            have += len(part)
        return b"".join(parts)
