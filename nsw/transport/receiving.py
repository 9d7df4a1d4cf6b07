"""Files of a site to this machine: in one stream, hashed while they come, and nothing but what was asked for.

The far side is not trusted: a name that was not asked for, anything but a plain file, and more bytes than are allowed
end the transfer.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
from typing import TYPE_CHECKING

from nsw.errors import CommandError, CommandResult, UnreachableError
from nsw.transport.model import Entry
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.stream import open_stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from nsw.transport.pipe import Way
    from nsw.transport.stream import Stream

_SILENT_S = 120.0  # without a byte
_END_S = 600.0
_CHUNK = 1 << 20
_MOST_HEAD = 1 << 26  # bytes of names and sizes that are not read yet
# kind, size and name of each file named on standard input, their contents one after another, their hashes on stderr;
# openssl computes the same hash as sha256sum, several times as fast
_GET = r"""
list=$(mktemp) && sums=$(mktemp) || return; trap 'rm -f "$list" "$sums"' EXIT
cat >"$list"
xargs -0 stat --printf '%F\t%s\t%n\0' -- <"$list" || return
if command -v openssl >/dev/null; then xargs -0 openssl dgst -sha256 -r -- <"$list" >"$sums" &
else xargs -0 sha256sum -- <"$list" >"$sums" & fi
xargs -0 cat -- <"$list" || return
wait $! || return
printf '\nnsw-hashes\n' >&2; cut -c 1-64 <"$sums" >&2
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
            kind, _, rest = (word or "").partition("\t")
            size, _, path = rest.partition("\t")
            name = path.removeprefix(f"{folder}/")
            if word is None or not size.isdigit():
                raise UnreachableError(f"{folder} cannot be listed: the site's answer is cut short")
            plain = name not in {"", ".", ".."} and not any(sign in name for sign in "/\n\r")
            if plain and kind.startswith("regular") and any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
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
    try:
        pipe.send("".join(f"{there}\0" for there, _ in files).encode())
        pipe.end_input()
        sizes = _sizes(pipe, [there for there, _ in files], most)
        digests = [_take(pipe, size, here) for size, (_, here) in zip(sizes, files, strict=True)]
        code, said = pipe.finish(_END_S)
    except _UnaskedError as fault:
        pipe.kill()
        raise UnreachableError(f"the transfer was ended: {fault}") from None
    except (ConnectionLostError, EOFError) as fault:
        with contextlib.suppress(ConnectionLostError):
            _, said = pipe.finish(2)
            raise _failed(said, fault) from None
        pipe.kill()
        raise UnreachableError(f"the connection was lost while files were brought: {fault}") from None
    _, _, hashes = said.decode(errors="replace").rpartition("\nnsw-hashes\n")
    if code != 0 or len(hashes.split()) != len(files):
        raise _failed(said, None)
    for (there, here), digest, theirs in zip(files, digests, hashes.split(), strict=True):
        if digest != theirs:
            _part(here).unlink(missing_ok=True)
            result = CommandResult(("sha256sum", there), 1, theirs, "")
            raise CommandError(result, what=f"{there} changed while it was brought, or came damaged")
    for _, here in files:
        _part(here).replace(here)
    return sum(sizes)


def _failed(said: bytes, fault: Exception | None) -> UnreachableError | CommandError:
    text = said.decode(errors="replace").strip()
    if fault is not None and not text:
        return UnreachableError(f"the connection was lost while files were brought: {fault}")
    return CommandError(CommandResult(("tar", "-c"), 1, "", text), what="files of the site cannot be brought")


def _sizes(pipe: Stream, names: Sequence[str], most: int | None) -> list[int]:
    """The sizes of plain files that the far side announces, in the order in which they were asked for."""
    head, sizes = b"", []
    for name in names:
        while b"\0" not in head:
            head += _some(pipe, _CHUNK)
            if len(head) > _MOST_HEAD:
                raise _UnaskedError("the site announces no files")
        record, _, head = head.partition(b"\0")
        kind, _, rest = record.decode(errors="surrogateescape").partition("\t")
        size, _, found = rest.partition("\t")
        if found != name or not size.isdigit() or not kind.startswith("regular"):
            raise _UnaskedError(f"the site sent what was not asked for: {kind} {found!r:.80}")
        sizes.append(int(size))
    pipe.put_back(head)
    if most is not None and sum(sizes) > most:
        raise _UnaskedError(f"{sum(sizes)} bytes are more than the {most} that are left of limits.download")
    return sizes


def _take(pipe: Stream, size: int, target: Path) -> str:
    """Write the next bytes into a file's `.part`; their hash."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with _part(target).open("wb", buffering=0) as file:
        while size:
            data = _some(pipe, min(size, _CHUNK))
            digest.update(data)
            file.write(data)
            size -= len(data)
    return digest.hexdigest()


def _some(pipe: Stream, most: int) -> bytes:
    data = pipe.receive(most, _SILENT_S)
    if not data:
        raise EOFError("it ended too early")
    return data


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")
