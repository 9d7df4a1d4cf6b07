"""Files of this machine to a site: by content, in one stream, each of them whole or not at all."""

from __future__ import annotations

import hashlib
import io
import secrets
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nsw.errors import CommandError, CommandResult, UnreachableError
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.stream import open_stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nsw.transport.pipe import Pipe, Way

_END_S = 600.0
# of the files named on standard input, the hash of each that is there; an empty one for the others
HASHES = r"""
mapfile -t -d '' files
for file in "${files[@]}"; do
  sum=
  [ -f "$file" ] && [ ! -L "$file" ] && sum=$(sha256sum <"$file")
  printf '%s\0' "${sum%% *}"
done
:
"""
# unpacked beside their places, then renamed into them
_PUT = r"""
set -e; umask 077
folder=$1; shift
mkdir -p -- "$folder"; trap 'rm -rf -- "$folder"' EXIT
tar -x -f - -C "$folder" --no-same-owner
mapfile -t -d '' lines <"$folder/places"
for ((n = 0; n + 2 < ${#lines[@]}; n += 3)); do
  target=${lines[n + 2]}
  [ "$target" = "${target%/*}" ] || mkdir -p -- "${target%/*}"
  chmod "${lines[n + 1]}" "$folder/${lines[n]}"
  mv -fT -- "$folder/${lines[n]}" "$target"
done
"""


@dataclass(frozen=True, slots=True)
class _File:
    here: Path
    there: str
    digest: str


def files_of(given: Sequence[tuple[Path, str]]) -> list[_File]:
    """The plain files in what is given, folders walked; links and other things are left out."""
    return [_File(here, there, _hash_of(here)) for here, there in _walked(given)]


def _walked(given: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for here, there in given:
        if here.is_dir():
            for one in sorted(here.rglob("*")):
                if one.is_file():
                    yield one, f"{there}/{one.relative_to(here).as_posix()}"
        elif here.is_file():
            yield here, there


def _hash_of(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def differing(files: Sequence[_File], answer: bytes) -> list[_File]:
    """Those that are not there with the same content, by the answer to HASHES."""
    digests = answer.decode(errors="replace").split("\0")[: len(files)]
    digests += [""] * (len(files) - len(digests))
    return [file for file, digest in zip(files, digests, strict=True) if digest != file.digest]


def send(way: Way, files: Sequence[_File]) -> None:
    """Send files.

    Raises:
        CommandError: One cannot be written there.
        UnreachableError: The connection was lost.
    """
    folder = f"{files[0].there.rpartition('/')[0]}/.nsw-{secrets.token_hex(8)}"
    try:
        pipe = open_stream(way, _PUT, folder)
    except ConnectionLostError as fault:
        raise UnreachableError(f"files cannot be sent: {fault}") from None
    stream = tarfile.open(fileobj=_Writer(pipe), mode="w|", format=tarfile.GNU_FORMAT)  # noqa: SIM115
    places = "".join(f"{n}\0{file.here.stat().st_mode & 0o777:o}\0{file.there}\0" for n, file in enumerate(files))
    cut: ConnectionLostError | None = None
    try:
        facts = tarfile.TarInfo("places")
        facts.size, facts.mode = len(places.encode()), 0o600
        stream.addfile(facts, io.BytesIO(places.encode()))
        for number, file in enumerate(files):
            info = tarfile.TarInfo(str(number))
            info.size, info.mode = file.here.stat().st_size, 0o600
            with file.here.open("rb") as content:
                stream.addfile(info, content)
        stream.close()
        pipe.end_input()
    except ConnectionLostError as fault:  # the far side may have said why it stopped reading
        cut = fault
    try:
        code, said = pipe.finish(_END_S if cut is None else 5)
    except ConnectionLostError as fault:
        pipe.kill()
        raise UnreachableError(f"the connection was lost while files were sent: {cut or fault}") from None
    if code != 0 or cut is not None:
        text = said.decode(errors="replace")
        if code in {255, -1} or code < 0:
            raise UnreachableError(f"the connection was lost while files were sent: {text.strip() or cut}")
        raise CommandError(CommandResult(("tar", "-x", folder), code, "", text), what="files cannot be written there")


class _Writer(io.RawIOBase):
    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        content = bytes(data)  # type: ignore[call-overload]
        self._pipe.send(content)
        return len(content)
