"""A site elsewhere, whatever the way to it: one long-lived shell for commands, a stream of its own for files."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Final, Unpack

from nsw import errors
from nsw.errors import CampaignError, CommandError, CommandResult, UnreachableError, UsageError, disk_full
from nsw.recipe.units import parse_size
from nsw.resources import shipped_text
from nsw.safe_files import make_folders, open_plain, open_to_read, read_text
from nsw.transport import shell
from nsw.transport.model import MOST_OUTPUT, Conditions, Content, Entry, HostKeyCheck, Transport, Unreadable, matches
from nsw.transport.shell import Answer, Bash, Connection, ConnectionLostError, Shell, TooLongError, stream

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
_READ: Final = shipped_text("transport/read.sh")
_LIST: Final = shipped_text("transport/list.sh")


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

    def _run_script(
        self, script: str, *words: str, input_lines: Iterable[str] = (), limit: int = MOST_OUTPUT
    ) -> Answer:
        """The answer of a bash script; the input lines come on its standard input, a NUL after each.

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
        """With the site's variables.

        Raises:
            UnreachableError: The site gave no answer.
            UsageError: A variable is not set there, or the path is not absolute.
        """
        answer = self._run_script('env -0; printf "USER=%s\\0" "${USER:-$(id -un)}"', limit=_MOST_VARIABLES)
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
        answer = self._run_script('umask 077; mkdir -p -- "$@"', *paths)
        if answer.code != 0:
            raise CommandError(answer.result(["mkdir", "-p", *paths]), subject="a folder cannot be made on the site")

    def read_many(self, paths: Sequence[str], limit: int = 1 << 20, *, end: bool = False) -> dict[str, Content]:
        """Read in one command."""
        if not paths:
            return {}
        frame_limit = max(limit, MOST_OUTPUT) + _MOST_FRAME
        answer = self._run_script(_READ, str(limit), "tail" if end else "head", input_lines=paths, limit=frame_limit)
        contents: dict[str, Content] = {}
        data, at = memoryview(answer.stdout), 0
        for path in paths:
            frame = _FRAME.match(data, at)
            if frame is None:
                line_end = answer.stdout.find(b"\n", at)
                if line_end < 0:
                    raise UnreachableError(f"{path} cannot be read: the site's answer is cut short")
                status, _, reason = str(data[at:line_end], errors="backslashreplace").partition(" ")
                contents[path] = None if status == "absent" else Unreadable(reason or "the site sent no valid answer")
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
            words = _split_at_nul(self._run_script(_LIST, input_lines=batch, limit=_MOST_LISTING).stdout)
            entries |= {folder: _parse_folder_listing(folder, words, folders[folder]) for folder in batch}
        return entries

    # --- files: to and fro --------------------------------------------------------------------------------

    def show(self, local_path: Path, remote_path: str) -> str:  # noqa: ARG002  as every transport is asked
        """Where it will be there."""
        return remote_path

    def stage(self, files: Sequence[tuple[Path, str]]) -> None:
        """Send what differs, as one stream."""
        candidates = find_uploads(files)
        if candidates and (
            missing := changed_uploads(
                candidates, self._run_script(HASHES, input_lines=[file.remote_path for file in candidates]).stdout
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
                self._count_download(fault.came)
                idle = 0 if fault.came else idle + 1
                if idle == _TRIES:
                    raise
                self._sleep(_PAUSE_S)
            else:
                return self._count_download(came)

    def allow(self, limit: int) -> None:
        """Let so many bytes be brought, which a person has agreed to; never fewer than before."""
        if self._left is not None:
            self._left = max(self._left, limit)

    def _count_download(self, received: int) -> None:
        if self._left is not None:
            self._left = max(0, self._left - received)


def _split_at_nul(data: bytes | bytearray) -> Iterator[str]:
    """The texts in front of each NUL, one at a time: a site may send millions of them."""
    at = 0
    while (end := data.find(b"\0", at)) >= 0:
        yield data[at:end].decode(errors="surrogateescape")
        at = end + 1


def _parse_folder_listing(folder: str, words: Iterator[str], patterns: Sequence[str]) -> list[Entry]:
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


_END_S: Final = 600.0
_LAST_WORDS_S: Final = 5.0  # of a far side that takes or gives no more
_MOST_FACT: Final = 1 << 16  # bytes of a file's kind and size, or of a hash
_FACT: Final = re.compile(r"regular[^\t]*\t([0-9]{1,15})")
_AT_ONCE: Final = 1 << 20
# of the files named on standard input, the hash of each that is there; an empty one for the others
HASHES: Final = shipped_text("transport/hashes.sh")
# size, permissions, path and bytes of each file come on standard input, `end` after the last. All are written beside
# their places, then renamed into them.
_RECEIVE_SCRIPT: Final = shipped_text("transport/receive.sh")
# kind, size and name of each file named on standard input, then the contents one after another, then their hashes.
# The first $1 files begin behind a number of bytes that is already here. Where the processors of both sides have
# instructions for it ($2), SHA-256 by openssl takes half the time of BLAKE2, which takes half that of SHA-256 without
# them and is as safe; coreutils before 8.26 have none.
_GET: Final = shipped_text("transport/get.sh")
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


def find_uploads(pairs: Sequence[tuple[Path, str]]) -> list[Upload]:
    """The plain files in what is given, folders walked; links and other things are left out."""
    return [
        Upload(local_path, remote_path, _sha256_of_file(local_path))
        for local_path, remote_path in _files_to_upload(pairs)
    ]


def _files_to_upload(pairs: Sequence[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    for local_path, remote_path in pairs:
        inside = sorted(local_path.rglob("*")) if local_path.is_dir() else [local_path]
        for file in inside:
            if file.is_file():
                yield (
                    file,
                    remote_path if file == local_path else f"{remote_path}/{file.relative_to(local_path).as_posix()}",
                )


def _sha256_of_file(file: Path) -> str:
    with open_to_read(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def changed_uploads(files: Sequence[Upload], answer: bytes | bytearray) -> list[Upload]:
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
            for part in _upload_parts(file):
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
    if not shell.is_command_status(code) or (cut is not None and not text.strip()):
        raise UnreachableError(f"the connection was lost while files were sent: {text.strip() or cut}")
    if code != 0 or cut is not None:
        raise CommandError(CommandResult(("cp", folder), code, "", text), subject="files cannot be written there")


def _upload_parts(file: Upload) -> Iterator[bytes]:
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

    def earlier_bytes(self) -> int:
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
        file.have = file.earlier_bytes()
    resumed_first = sorted(downloads, key=lambda file: not file.have)  # those that are resumed come first
    starts = [f"{file.have}\0" for file in resumed_first if file.have]
    try:
        bash = stream(connection, _GET, str(len(starts)), "yes" if sha256_is_fast() else "")
    except ConnectionLostError as fault:
        raise CutError(f"files cannot be downloaded: {fault}", 0) from None
    counter = _Progress(progress)
    try:
        bash.pipe.send(
            "".join([*starts, *(f"{file.remote_path}\0" for file in resumed_first)]).encode(errors="surrogateescape")
        )
        bash.pipe.end_input()
        _receive_announcement(bash, resumed_first, limit)
        counter.begin(resumed_first)
        for file in resumed_first:
            _receive_file(bash, file, counter)
        digests = [_receive_record(bash, _END_S) for _ in resumed_first]
        code, stderr = bash.pipe.finish(_END_S)
    except ConnectionLostError as fault:
        raise _interrupted_error(bash, fault, counter.came) from None
    except BaseException:
        bash.pipe.kill()
        raise
    if code != 0:
        raise _download_error(stderr)
    _check_digests(resumed_first, digests)
    for file in downloads:
        file.part.replace(file.local_path)
    return counter.came


class _Progress:
    """The progress of a download in bytes: `came` were received, `left` are missing."""

    def __init__(self, progress: Callable[[int, int], object] | None) -> None:
        self._progress = progress
        self._total = 0
        self.came = self.left = 0

    def begin(self, downloads: Sequence[_Download]) -> None:
        """Take the sizes of the files, once the site has sent them."""
        self._total = sum(file.size for file in downloads)
        self.left = sum(file.size - file.have for file in downloads)

    def add_bytes(self, size: int) -> None:
        """Record received bytes, and report them."""
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


def _receive_announcement(bash: Bash, downloads: Sequence[_Download], limit: int | None) -> None:
    """Receive the site's announcement: the sizes of the files in the requested order, and its hash function."""
    for file in downloads:
        text = _receive_record(bash)
        fact = _FACT.fullmatch(text.removesuffix(f"\t{file.remote_path}"))
        if fact is None:
            raise _transfer_error(f"the site sent what was not asked for: {text!r:.120}")
        file.size = int(fact[1])
        file.have = min(file.have, file.size)
    left = sum(file.size - file.have for file in downloads)
    if limit is not None and left > limit:
        have, may = (f"{number / (1 << 30):,.2f} GiB" for number in (left, limit))
        raise errors.DownloadLimitError(
            f"{have} would be downloaded, but limits.download leaves {may}",
            hint="jobs continue; `nsw resume --download 50G` allows that much from then on",
        )
    name = _receive_record(bash)
    if name not in _HASHES:
        raise _transfer_error(f"the site hashes with {name!r:.40}")
    for file in downloads:
        file.digest = _HASHES[name]()


def _receive_record(bash: Bash, timeout: float | None = None) -> str:
    try:
        return bash.record(_MOST_FACT, timeout=timeout).decode(errors="surrogateescape")
    except TooLongError:
        raise _transfer_error("the site announces no files, or sends more of them than it announced") from None


def _transfer_error(reason: str) -> UnreachableError:
    return UnreachableError(f"the transfer was ended: {reason}")


def _receive_file(bash: Bash, file: _Download, counter: _Progress) -> None:
    """Write and hash the missing part of a file in the receiving thread: it is still in the processor's cache."""
    try:
        descriptor = _open_part_file(file)
        try:
            while left := file.size - file.have:
                data = bash.take(left, counter.left)
                file.digest.update(data)
                _write_all(descriptor, data)
                file.have += len(data)
                counter.add_bytes(len(data))
        finally:
            os.close(descriptor)
    except OSError as fault:
        # no fault of the site, which would be tried again for ever: this machine's disk needs a person
        raise disk_full(file.local_path, fault.strerror or str(fault)) from None


def _open_part_file(file: _Download) -> int:
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


def _write_all(descriptor: int, view: memoryview) -> None:
    while view:
        view = view[os.write(descriptor, view) :]


def _check_digests(downloads: Sequence[_Download], digests: Sequence[str]) -> None:
    wrong = [file for file, digest in zip(downloads, digests, strict=True) if file.digest.hexdigest() != digest]
    for file in wrong:
        file.part.unlink(missing_ok=True)
    for file in wrong[:1]:
        result = CommandResult(("b2sum", file.remote_path), 1, file.digest.hexdigest(), "")
        raise CommandError(result, subject=f"{file.remote_path} changed during the download, or arrived damaged")


def _interrupted_error(bash: Bash, fault: ConnectionLostError, came: int) -> UnreachableError | CommandError:
    """The error of an interrupted download: the site's own message, or the lost connection."""
    try:
        _, stderr = bash.pipe.finish(_LAST_WORDS_S)
    except ConnectionLostError:
        stderr = b""
    bash.pipe.kill()
    return (
        _download_error(stderr)
        if stderr.strip()
        else CutError(f"the connection was lost during a download: {fault}", came)
    )


def _download_error(stderr: bytes) -> CommandError:
    text = stderr.decode(errors="backslashreplace").strip()
    return CommandError(CommandResult(("cat",), 1, "", text), subject="files cannot be downloaded from the site")
