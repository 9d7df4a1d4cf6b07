"""Files to a site and from it, in one stream each way: hashed, whole or not at all, and nothing but what was asked for.

The far side is not trusted: a name that was not asked for, anything but a plain file, and more bytes than are allowed
end a download. What came before a cut stays in a file NAME.part, and the next download begins behind it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import CampaignError, CommandError, CommandResult, DownloadLimitError, UnreachableError, disk_full
from nsw.safe_files import make_folders, open_plain, open_to_read, read_text
from nsw.transport.shell import Bash, Connection, ConnectionLostError, TooLongError, reached, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


__all__ = ["HASHES", "CutError", "Upload", "differing", "receive", "send", "uploads"]

_END_S: Final = 600.0
_LAST_WORDS_S: Final = 5.0  # of a far side that takes or gives no more
_MOST_FACT: Final = 1 << 16  # bytes of a file's kind and size, or of a hash
_FACT: Final = re.compile(r"regular[^\t]*\t([0-9]{1,15})")
_AT_ONCE: Final = 1 << 20
# of the files named on standard input, the hash of each that is there; an empty one for the others
HASHES: Final = r"""
mapfile -t -d '' files
for file in "${files[@]}"; do
  sum=
  [ -f "$file" ] && [ ! -L "$file" ] && sum=$(sha256sum <"$file")
  printf '%s\0' "${sum%% *}"
done
:
"""
# size, permissions, path and bytes of each file come on standard input, `end` after the last. All are written beside
# their places, then renamed into them.
_RECEIVE_SCRIPT: Final = r"""
set -e; umask 077
folder=$1 modes=() targets=()
mkdir -p -- "$folder"; trap 'rm -rf -- "$folder"' EXIT
while IFS= read -r -d '' size && [ "$size" != end ]; do
  IFS= read -r -d '' mode; IFS= read -r -d '' target
  head -c "$size" >"$folder/${#targets[@]}"
  modes+=("$mode") targets+=("$target")
done
[ "$size" = end ]
for n in "${!targets[@]}"; do
  target=${targets[n]}
  parent=${target%/*}    # each process that is started costs more than a small file
  [ "$target" = "$parent" ] || [ -d "$parent" ] || mkdir -p -- "$parent"
  chmod "${modes[n]}" "$folder/$n"
  mv -fT -- "$folder/$n" "$target"
done
"""
# kind, size and name of each file named on standard input, then the contents one after another, then their hashes.
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
sed 's/^\\//; s/ .*//' <"$sums" | tr '\n' '\0'
"""
_HASHES: Final[dict[str, Callable[[], Any]]] = {"blake2b": hashlib.blake2b, "sha256": hashlib.sha256}


class CutError(UnreachableError):
    """The connection was lost in the middle; `came` bytes are kept, and the next try goes on behind them."""

    def __init__(self, message: str, came: int) -> None:
        super().__init__(message)
        self.came = came


# --- to a site --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Upload:
    """A file of this machine, its place there, and its hash."""

    local_path: Path
    remote_path: str
    digest: str


def uploads(pairs: Sequence[tuple[Path, str]]) -> list[Upload]:
    """The plain files in what is given, folders walked; links and other things are left out."""
    return [Upload(local_path, remote_path, _digest(local_path)) for local_path, remote_path in _walked(pairs)]


def _walked(pairs: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for local_path, remote_path in pairs:
        inside = sorted(local_path.rglob("*")) if local_path.is_dir() else [local_path]
        for file in inside:
            if file.is_file():
                yield (
                    file,
                    remote_path if file == local_path else f"{remote_path}/{file.relative_to(local_path).as_posix()}",
                )


def _digest(file: Path) -> str:
    with open_to_read(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def differing(files: Sequence[Upload], answer: bytes | bytearray) -> list[Upload]:
    """Those that are not there with the same content, by the answer to HASHES."""
    digests = answer.decode(errors="backslashreplace").split("\0", len(files))[: len(files)]
    digests += [""] * (len(files) - len(digests))
    return [file for file, digest in zip(files, digests, strict=True) if digest != file.digest]


def send(connection: Connection, files: Sequence[Upload]) -> None:
    """Send files.

    Raises:
        CommandError: One cannot be written there.
        UnreachableError: The connection was lost.
    """
    folder = f"{files[0].remote_path.rpartition('/')[0]}/.nsw-{secrets.token_hex(8)}"
    try:
        bash = stream(connection, _RECEIVE_SCRIPT, folder)
    except ConnectionLostError as fault:
        raise UnreachableError(f"files cannot be sent: {fault}") from None
    cut: ConnectionLostError | None = None
    try:
        for file in files:
            for part in _parts(file):
                bash.pipe.send(part)
        bash.pipe.send(b"end\0")
        bash.pipe.end_input()
    except ConnectionLostError as fault:  # the far side may have said why it stopped reading
        cut = fault
    except BaseException:
        bash.pipe.kill()
        raise
    try:
        code, stderr = bash.pipe.finish(_END_S if cut is None else _LAST_WORDS_S)
    except ConnectionLostError as fault:
        bash.pipe.kill()
        raise UnreachableError(f"the connection was lost while files were sent: {cut or fault}") from None
    text = stderr.decode(errors="backslashreplace")
    if not reached(code) or (cut is not None and not text.strip()):
        raise UnreachableError(f"the connection was lost while files were sent: {text.strip() or cut}")
    if code != 0 or cut is not None:
        raise CommandError(CommandResult(("cp", folder), code, "", text), subject="files cannot be written there")


def _parts(file: Upload) -> Iterator[bytes]:
    with open_to_read(file.local_path) as content:
        facts = os.fstat(content.fileno())
        left = facts.st_size
        part = f"{left}\0{facts.st_mode & 0o777:o}\0{file.remote_path}\0".encode(errors="surrogateescape")
        while part:
            yield part
            part = content.read(min(left, _AT_ONCE))
            left -= len(part)
    if left:
        raise CampaignError(f"{file.local_path} changed while it was sent to the site")


# --- from a site ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Download:
    """A file, how much of it is here, its size, and the hash of what is here."""

    remote_path: str
    local_path: Path
    have: int = 0
    size: int = 0
    digest: Any = None

    @property
    def part(self) -> Path:
        return self.local_path.with_name(f"{self.local_path.name}.part")

    def look(self) -> int:
        """How much an earlier download left: 0 for none, or for what is no file of this user."""
        try:
            facts = self.part.lstat()
        except OSError:
            return 0
        is_own = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()  # a neighbour could change his file later
        return facts.st_size if is_own else 0


def receive(
    connection: Connection,
    files: Sequence[tuple[str, Path]],
    limit: int | None,
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Bring files; the bytes that came.

    Args:
        connection: How commands are started there.
        files: Each file there, and its place here.
        limit: Bytes that may come; None for any number.
        progress: Called with the bytes that are here, of how many.

    Raises:
        CampaignError: One cannot be written here.
        CommandError: One cannot be read there, or came changed.
        CutError: The connection was lost; what came is kept.
        DownloadLimitError: They are more than `most`.
        UnreachableError: There is no connection, or the far side sent what was not asked for.
    """
    downloads = [_Download(remote_path, local_path) for remote_path, local_path in files]
    for file in downloads:
        file.have = file.look()
    resumed_first = sorted(downloads, key=lambda file: not file.have)  # those that are resumed come first
    starts = [f"{file.have}\0" for file in resumed_first if file.have]
    try:
        bash = stream(connection, _GET, str(len(starts)), "yes" if sha256_is_fast() else "")
    except ConnectionLostError as fault:
        raise CutError(f"files cannot be downloaded: {fault}", 0) from None
    course = _Course(progress)
    try:
        bash.pipe.send(
            "".join([*starts, *(f"{file.remote_path}\0" for file in resumed_first)]).encode(errors="surrogateescape")
        )
        bash.pipe.end_input()
        _announced(bash, resumed_first, limit)
        course.begin(resumed_first)
        for file in resumed_first:
            _bring(bash, file, course)
        digests = [_fact(bash, _END_S) for _ in resumed_first]
        code, stderr = bash.pipe.finish(_END_S)
    except ConnectionLostError as fault:
        raise _lost(bash, fault, course.came) from None
    except BaseException:
        bash.pipe.kill()
        raise
    if code != 0:
        raise _refused(stderr)
    _compare(resumed_first, digests)
    for file in downloads:
        file.part.replace(file.local_path)
    return course.came


class _Course:
    """How far a download is: the bytes that came, and those that are still to come."""

    def __init__(self, progress: Callable[[int, int], object] | None) -> None:
        self._progress = progress
        self._total = 0
        self.came = self.left = 0

    def begin(self, downloads: Sequence[_Download]) -> None:
        """The sizes are known."""
        self._total = sum(file.size for file in downloads)
        self.left = sum(file.size - file.have for file in downloads)

    def add_bytes(self, size: int) -> None:
        """So many bytes came."""
        self.came += size
        self.left -= size
        if self._progress is not None:
            self._progress(self._total - self.left, self._total)


@cache
def sha256_is_fast() -> bool:
    """Whether this machine's processor has instructions for it."""
    try:
        flags = read_text(Path("/proc/cpuinfo"), errors="backslashreplace")
    except OSError:  # no Linux
        return platform.machine() == "arm64"
    return re.search(r"\b(sha_ni|sha2)\b", flags) is not None


def _announced(bash: Bash, downloads: Sequence[_Download], limit: int | None) -> None:
    """Take the files' sizes, which the far side announces in the order in which they were asked for, and its hash."""
    for file in downloads:
        text = _fact(bash)
        fact = _FACT.fullmatch(text.removesuffix(f"\t{file.remote_path}"))
        if fact is None:
            raise _unasked(f"the site sent what was not asked for: {text!r:.120}")
        file.size = int(fact[1])
        file.have = min(file.have, file.size)
    left = sum(file.size - file.have for file in downloads)
    if limit is not None and left > limit:
        have, may = (f"{number / (1 << 30):,.2f} GiB" for number in (left, limit))
        raise DownloadLimitError(
            f"{have} would be downloaded, but limits.download leaves {may}",
            hint="jobs continue; `nsw resume --download 50G` allows that much from then on",
        )
    name = _fact(bash)
    if name not in _HASHES:
        raise _unasked(f"the site hashes with {name!r:.40}")
    for file in downloads:
        file.digest = _HASHES[name]()


def _fact(bash: Bash, timeout: float | None = None) -> str:
    try:
        return bash.record(_MOST_FACT, timeout=timeout).decode(errors="surrogateescape")
    except TooLongError:
        raise _unasked("the site announces no files, or sends more of them than it announced") from None


def _unasked(reason: str) -> UnreachableError:
    return UnreachableError(f"the transfer was ended: {reason}")


def _bring(bash: Bash, file: _Download, course: _Course) -> None:
    """Write and hash what is missing of a file, in the thread that receives: it is still in its processor's cache."""
    try:
        descriptor = _open_part(file)
        try:
            while left := file.size - file.have:
                data = bash.take(left, course.left)
                file.digest.update(data)
                _write(descriptor, data)
                file.have += len(data)
                course.add_bytes(len(data))
        finally:
            os.close(descriptor)
    except OSError as fault:
        # no fault of the site, which would be tried again for ever: this machine's disk needs a person
        raise disk_full(file.local_path, fault.strerror or str(fault)) from None


def _open_part(file: _Download) -> int:
    """The file to write to, with what is there taken into the hash; a link in its place is not followed."""
    if not file.have:
        make_folders(file.local_path.parent)
        file.part.unlink(missing_ok=True)
        return open_plain(file.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    descriptor = open_plain(file.part, os.O_RDWR)
    try:
        os.ftruncate(descriptor, file.have)
        while data := os.read(descriptor, _AT_ONCE):
            file.digest.update(data)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


def _compare(downloads: Sequence[_Download], digests: Sequence[str]) -> None:
    wrong = [file for file, digest in zip(downloads, digests, strict=True) if file.digest.hexdigest() != digest]
    for file in wrong:
        file.part.unlink(missing_ok=True)
    for file in wrong[:1]:
        result = CommandResult(("b2sum", file.remote_path), 1, file.digest.hexdigest(), "")
        raise CommandError(result, subject=f"{file.remote_path} changed during the download, or arrived damaged")


def _lost(bash: Bash, fault: ConnectionLostError, came: int) -> UnreachableError | CommandError:
    """Why a download ended too early: what the far side said, or the connection."""
    try:
        _, stderr = bash.pipe.finish(_LAST_WORDS_S)
    except ConnectionLostError:
        stderr = b""
    bash.pipe.kill()
    return _refused(stderr) if stderr.strip() else CutError(f"the connection was lost during a download: {fault}", came)


def _refused(stderr: bytes) -> CommandError:
    text = stderr.decode(errors="backslashreplace").strip()
    return CommandError(CommandResult(("cat",), 1, "", text), subject="files cannot be downloaded from the site")
