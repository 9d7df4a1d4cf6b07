"""Files of a site to this machine: in one stream, hashed while they come, and nothing but what was asked for.

The far side is not trusted: a name that was not asked for, anything but a plain file, and more bytes than are allowed
end the transfer. What came before a cut stays in a file NAME.part, and the next transfer begins behind it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from nsw.errors import CommandError, CommandResult, DownloadLimitError, NswError, UnreachableError, disk_full
from nsw.safe_files import open_plain
from nsw.transport.incoming import Incoming, TooLongError
from nsw.transport.pipe import ConnectionLostError
from nsw.transport.stream import open_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nsw.transport.pipe import Way

_END_S: Final = 600.0
_MOST_HEAD: Final = 1 << 26  # bytes of names and sizes that are not read yet
# kind, size and name of each file named on standard input, then the contents one after another, the hashes on stderr.
# The first $1 files begin behind a number of bytes that is already here. Where the processors of both sides have
# instructions for it ($2), SHA-256 by openssl takes half the time of BLAKE2, which takes half that of SHA-256 without
# them and is as safe; coreutils before 8.26 have none.
_GET: Final = r"""
resumed=$1 sha256_is_fast=$2
list=$(mktemp) && sums=$(mktemp) || return; trap 'rm -f "$list" "$sums"' EXIT
starts=()
for ((n = 0; n < resumed; n++)); do IFS= read -r -d '' start && starts+=("$start") || return; done
cat >"$list"
xargs -0 stat --printf '%F\t%s\t%n\0' -- <"$list" || return
openssl_hashes() { set -o pipefail; xargs -0 openssl dgst -sha256 -binary <"$list" | od -An -v -tx1 -w32 | tr -d ' '; }
command -v openssl >/dev/null && grep -qwm 1 -e sha_ni -e sha2 /proc/cpuinfo 2>/dev/null || sha256_is_fast=
if [ -n "$sha256_is_fast" ]; then hash=sha256; openssl_hashes >"$sums" &
elif command -v b2sum >/dev/null; then hash=blake2b; xargs -0 b2sum -- <"$list" >"$sums" &
elif command -v openssl >/dev/null; then hash=sha256; openssl_hashes >"$sums" &
else hash=sha256; xargs -0 sha256sum -- <"$list" >"$sums" & fi
printf '%s\0' "$hash"
exec 5<"$list"
for start in "${starts[@]}"; do
  IFS= read -r -d '' file <&5 || return
  tail -c "+$((start + 1))" -- "$file" || return
done
xargs -0 -r cat -- <&5 || return
wait $! || return
printf '\nnsw-hashes\n' >&2; sed 's/^\\//; s/ .*//' <"$sums" >&2
"""
_HASHES: Final[dict[str, Callable[[], Any]]] = {"blake2b": hashlib.blake2b, "sha256": hashlib.sha256}


class _UnaskedError(Exception):
    """The far side sent what was not asked for, or too much."""


class CutError(UnreachableError):
    """The connection was lost in the middle; `came` bytes are kept, and the next try goes on behind them."""

    def __init__(self, message: str, came: int) -> None:
        super().__init__(message)
        self.came = came


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A file, and how much of it an earlier transfer left here."""

    there: str
    here: Path
    have: int = 0


def receive(
    way: Way,
    files: Sequence[tuple[str, Path]],
    most: int | None,
    progress: Callable[[int, int], object] = lambda _done, _all: None,
) -> int:
    """Bring files; the bytes that came.

    Args:
        way: How commands are started there.
        files: Each file there, and its place here.
        most: Bytes that may come; None for any number.
        progress: Called with the bytes that are here, of how many.

    Raises:
        CampaignError: One cannot be written here.
        CommandError: One cannot be read there, or came changed.
        CutError: The connection was lost; what came is kept.
        DownloadLimitError: They are more than `most`.
        UnreachableError: There is no connection, or the far side sent what was not asked for.
    """
    wanted = [_Wanted(there, here, _size_of(_part(here))) for there, here in files]
    wanted.sort(key=lambda one: not one.have)  # those that are resumed come first
    try:
        pipe = open_stream(way, _GET, str(sum(1 for one in wanted if one.have)), "yes" if sha256_is_fast() else "")
    except ConnectionLostError as fault:
        raise CutError(f"files cannot be downloaded: {fault}", 0) from None
    starts = "".join(f"{one.have}\0" for one in wanted if one.have)
    course = _Course(progress)
    try:
        pipe.send((starts + "".join(f"{one.there}\0" for one in wanted)).encode())
        pipe.end_input()
        digests = _written(Incoming(pipe), wanted, most, course)
        code, said = pipe.finish(_END_S)
    except (DownloadLimitError, _UnaskedError, _DiskError) as fault:
        pipe.kill()
        raise _ended(fault) from None
    except (ConnectionLostError, EOFError) as fault:
        with contextlib.suppress(ConnectionLostError):
            _, said = pipe.finish(2)
            raise _failed(said, fault, course.came) from None
        pipe.kill()
        raise CutError(f"the connection was lost during a download: {fault}", course.came) from None
    _, _, hashes = said.decode(errors="replace").rpartition("\nnsw-hashes\n")
    if code != 0 or len(hashes.split()) != len(wanted):
        raise _failed(said, None, course.came)
    _compare(wanted, digests, hashes.split())
    for _, here in files:
        _part(here).replace(here)
    return course.came


class _Course:
    """How far a transfer is: bytes that were here, that came, and in all."""

    def __init__(self, progress: Callable[[int, int], object]) -> None:
        self._progress = progress
        self._had = self._total = 0
        self.came = 0

    def begin(self, had: int, total: int) -> None:
        """The sizes are known."""
        self._had, self._total = had, total

    @property
    def left(self) -> int:
        """The bytes that are still to come."""
        return self._total - self._had - self.came

    def more(self, size: int) -> None:
        """So many bytes came."""
        self.came += size
        self._progress(self._had + self.came, self._total)


def _written(incoming: Incoming, wanted: Sequence[_Wanted], most: int | None, course: _Course) -> list[str]:
    """The hash of each file, all of which are written beside their places."""
    sizes = _sizes(incoming, wanted, most)
    make = _hash(incoming)
    here_already = [min(one.have, size) for one, size in zip(wanted, sizes, strict=True)]
    course.begin(sum(here_already), sum(sizes))
    with _Writer() as writer:
        for one, size, have in zip(wanted, sizes, here_already, strict=True):
            writer.begin(one.here, make(), have)
            left = size - have
            while left:
                data = incoming.take(left, course.left)
                writer.put(data)
                left -= len(data)
                course.more(len(data))
        return writer.finish()


def _ended(fault: DownloadLimitError | _UnaskedError | _DiskError) -> NswError:
    """Why nsw itself ended a transfer."""
    if isinstance(fault, _UnaskedError):
        return UnreachableError(f"the transfer was ended: {fault}")
    if isinstance(fault, DownloadLimitError):
        return fault
    # no fault of the site, which would be tried again for ever: this machine's disk needs a person
    return disk_full(fault.file, fault.why)


@cache
def sha256_is_fast() -> bool:
    """Whether this machine's processor has instructions for it."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # no Linux
        return platform.machine() == "arm64"
    return re.search(r"\b(sha_ni|sha2)\b", flags) is not None


def _compare(wanted: Sequence[_Wanted], digests: Sequence[str], theirs: Sequence[str]) -> None:
    wrong = [(one, digest) for one, ours, digest in zip(wanted, digests, theirs, strict=True) if ours != digest]
    for one, _ in wrong:
        _part(one.here).unlink(missing_ok=True)
    for one, digest in wrong[:1]:
        result = CommandResult(("b2sum", one.there), 1, digest, "")
        raise CommandError(result, what=f"{one.there} changed during the download, or arrived damaged")


def _failed(said: bytes, fault: Exception | None, came: int) -> UnreachableError | CommandError:
    text = said.decode(errors="replace").strip()
    if fault is not None and not text:
        return CutError(f"the connection was lost during a download: {fault}", came)
    return CommandError(CommandResult(("cat",), 1, "", text), what="files cannot be downloaded from the site")


def _record(incoming: Incoming) -> str:
    try:
        return incoming.record(_MOST_HEAD).decode(errors="surrogateescape")
    except TooLongError:
        raise _UnaskedError("the site announces no files") from None


def _sizes(incoming: Incoming, wanted: Sequence[_Wanted], most: int | None) -> list[int]:
    """The files' sizes, which the far side announces in the order in which they were asked for."""
    sizes = []
    for one in wanted:
        kind, _, rest = _record(incoming).partition("\t")
        size, _, found = rest.partition("\t")
        if found != one.there or not size.isdigit() or not kind.startswith("regular"):
            raise _UnaskedError(f"the site sent what was not asked for: {kind} {found!r:.80}")
        sizes.append(int(size))
    left = sum(max(0, size - one.have) for size, one in zip(sizes, wanted, strict=True))
    if most is not None and left > most:
        have, may = (f"{number / (1 << 30):,.2f} GiB" for number in (left, most))
        raise DownloadLimitError(
            f"{have} would be downloaded, but limits.download leaves {may}",
            hint="jobs continue; `nsw resume --download 50G` allows that much from then on",
        )
    return sizes


def _hash(incoming: Incoming) -> Callable[[], Any]:
    """How the far side hashes them, which it announces next."""
    name = _record(incoming)
    if name not in _HASHES:
        raise _UnaskedError(f"the site hashes with {name!r:.40}")
    return _HASHES[name]


class _DiskError(Exception):
    """A file cannot be written here."""

    def __init__(self, file: Path, why: str) -> None:
        super().__init__(why)
        self.file, self.why = file, why


class _Writer:
    """Hashes and writes, in the thread that receives: the bytes are still in its processor's cache."""

    def __init__(self) -> None:
        self._here: Path | None = None
        self._digest: Any = None
        self._descriptor = -1
        self._digests: list[str] = []
        self._folders: set[Path] = set()  # that are there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def begin(self, here: Path, digest: Any, have: int) -> None:
        """The next bytes are this file's, behind the first `have`.

        Raises:
            _DiskError: It cannot be written.
        """
        self._end()
        try:
            if here.parent not in self._folders:
                here.parent.mkdir(parents=True, exist_ok=True)
                self._folders.add(here.parent)
            self._descriptor = _open_part(here, digest, have)
        except OSError as fault:
            raise _DiskError(here, fault.strerror or str(fault)) from None
        self._here, self._digest = here, digest

    def put(self, data: memoryview) -> None:
        """More bytes of it.

        Raises:
            _DiskError: They cannot be written.
        """
        self._digest.update(data)
        try:
            _write(self._descriptor, data)
        except OSError as fault:
            assert self._here is not None
            raise _DiskError(self._here, fault.strerror or str(fault)) from None

    def finish(self) -> list[str]:
        """The hash of each file."""
        self._end()
        return self._digests

    def _end(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._digests.append(self._digest.hexdigest())


def _open_part(here: Path, digest: Any, have: int) -> int:
    """The file to write to, with what is there taken into the hash; a link in its place is not followed."""
    part = _part(here)
    if not have:
        part.unlink(missing_ok=True)
        return open_plain(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    descriptor = open_plain(part, os.O_RDWR)
    try:
        os.ftruncate(descriptor, have)
        while data := os.read(descriptor, 1 << 20):
            digest.update(data)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _size_of(part: Path) -> int:
    """The size of what an earlier transfer left; 0 for none, or for what is not a regular file."""
    try:
        found = part.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
