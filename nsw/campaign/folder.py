"""The folder of a campaign: its files, its lock, its log, and where campaigns are found."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shlex
import shutil
import socket
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.apart import Limits
from nsw.campaign.ownership import is_own, make_private, require_own
from nsw.errors import CampaignError, CampaignLockedError, did_you_mean, disk_full
from nsw.safe_files import open_plain

if TYPE_CHECKING:
    from collections.abc import Iterator


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class Log:
    """Appends to a file; each line whole, with its time and the process that wrote it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, *texts: str) -> None:
        """Write a line for each; control characters of others become spaces."""
        begin = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} [{os.getpid()}]"
        plain = (text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text) for text in texts)
        lines = "".join(f"{begin} {text}\n" for text in plain)
        try:
            with open(open_plain(self._path, _APPEND, 0o644), "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(lines)
        except OSError as fault:  # a write knows only the descriptor
            fault.filename = str(self._path)
            raise


LEDGER = "campaign.db"
_HALF_MADE = ".part"
_ABANDONED_S = 3600.0  # filling one takes seconds
_GOING_S = 10.0  # processes that read reports for a killed nsw may outlive it by a moment
_GLIMPSE_S = 0.2  # a look at the lock holds it for a moment
_OWNER = re.compile(r"process (\d+) on (.+)\n?")


class CampaignFolder:
    """The layout below one campaign's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ledger = path / LEDGER
        self.lock = path / "lock"
        self.commands = path / "commands"
        self.recipe = path / "recipe.lock.yaml"
        self.app = path / "app"
        self.scripts = path / "scripts"
        self.reports = path / "reports"
        self.tables = path / "tables"
        self.log = path / "log.txt"
        self.secrets = path / "secrets.sh"
        self.max_unpacked: int | None = None  # bytes that a packed report may unpack to; None: the usual
        self.limits = Limits()  # of the processes that read its reports, and its tables where others made them

    @property
    def id(self) -> str:
        """The campaign's name: its folder's."""
        return self.path.name

    def script(self, job: str) -> Path:
        """The script of a job."""
        return self.scripts / f"{job}.sh"


def root(given: Path | None = None) -> Path:
    """The folder of campaigns: --root, NSW_ROOT or ./campaigns."""
    return given or Path(os.environ.get("NSW_ROOT") or "campaigns")


def root_to_write(given: Path | None = None) -> Path:
    """The same for a campaign that is to be made there.

    Raises:
        CampaignError: It was not named, and another user could put other scripts in the place of the campaign's.
    """
    path = root(given)
    if given is None and not os.environ.get("NSW_ROOT"):
        # whoever owns the folder around it can put another one in its place
        for one in ([path] if os.path.lexists(path) else []) + [path.parent]:
            if why := _who_could_replace(one):
                raise CampaignError(
                    f"the folder {one.absolute()} {why}, who could replace what nsw runs from {path}",
                    hint=f"name another with --root or NSW_ROOT; `--root {path}` takes it all the same",
                )
    return path


def _who_could_replace(folder: Path) -> str | None:
    """Who beside this user and root could put something else in the place of what is in a folder."""
    found = folder.stat()
    if not {folder.lstat().st_uid, found.st_uid} <= {os.geteuid(), 0}:
        return "belongs to another user"
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return "may be written by everybody"
    return None


@contextmanager
def made(
    parent: Path, name: str, now: float | None = None, *, share: str = "nobody"
) -> Iterator[tuple[CampaignFolder, CampaignFolder]]:
    """Make a folder NAME-YYYYMMDD-HHMMSS-xxxx below `parent`, which is there whole or not at all.

    Args:
        parent: The folder of campaigns.
        name: The recipe's.
        now: Unix seconds, for the name.
        share: Who else may look into it: nobody or group.

    Yields:
        The folder under a hidden name, to be filled, and what it is called from the end of the block on. On any
        fault nothing of it stays; what a killed nsw left half made is cleared away by a later one.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    while True:
        final = CampaignFolder(parent / f"{name}-{stamp}-{secrets.token_hex(2)}")
        hidden = CampaignFolder(parent / f".{final.id}{_HALF_MADE}")
        try:
            make_private(hidden.path, share)
        except FileExistsError:
            continue
        except OSError as fault:
            raise CampaignError(
                f"the campaign's folder {final.path} cannot be made: {fault.strerror}",
                hint="name another place with --root or NSW_ROOT",
            ) from None
        if not final.path.exists():
            break
        hidden.path.rmdir()
    try:
        for sub in (hidden.scripts, hidden.reports, hidden.tables, hidden.app):
            sub.mkdir()
        yield hidden, final
        hidden.path.rename(final.path)
        _sync(parent)
    except BaseException:
        shutil.rmtree(hidden.path, ignore_errors=True)
        raise
    _clear_half_made(parent)


def _sync(folder: Path) -> None:
    """Put the names in a folder on disk; no job may be known to the scheduler whose campaign a power cut takes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _clear_half_made(parent: Path) -> None:
    for left in parent.glob(f".*{_HALF_MADE}"):
        with suppress(OSError):  # another nsw may clear it at the same time
            found = left.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


def existing(parent: Path) -> list[CampaignFolder]:
    """All campaigns below `parent`, oldest first."""
    found: list[tuple[str, int, CampaignFolder]] = []
    for path in parent.glob(f"[!.]*/{LEDGER}"):
        with suppress(OSError):  # another user's, that may not be entered
            found.append((_stamp(path.parent.name), path.lstat().st_ctime_ns, CampaignFolder(path.parent)))
    return [folder for _, _, folder in sorted(found, key=lambda one: one[:2])]


def _stamp(campaign: str) -> str:
    parts = campaign.rsplit("-", 3)
    return "-".join(parts[1:3]) if len(parts) == 4 else ""


def find(parent: Path, named: str | None) -> CampaignFolder:
    """The campaign of that folder or id (or unique beginning of an id); with none named this user's newest.

    Where none is this user's own it is the newest of all.

    Raises:
        CampaignError: There is none, or several begin so.
    """
    return _of_files(_find(parent, named))


def _of_files(folder: CampaignFolder) -> CampaignFolder:
    """The folder, when what nsw opens in it are files: a named pipe would be waited for without end.

    Raises:
        CampaignError: One is something else.
    """
    for path in (folder.ledger, folder.lock, folder.recipe, folder.log):
        if path.exists() and not path.is_file():
            raise CampaignError(
                f"{path} is not a regular file, as it should be in a campaign", hint="nsw did not make it: remove it"
            )
    return folder


def _find(parent: Path, named: str | None) -> CampaignFolder:
    if named is not None and (Path(named) / LEDGER).exists():
        return CampaignFolder(Path(named))
    known = existing(parent)
    if named is None:
        if not known:
            raise CampaignError(f"there is no campaign under {parent}", hint="`nsw run RECIPE --site SITE` starts one")
        return next((f for f in reversed(known) if is_own(f.path)), known[-1])
    matches = [f for f in known if f.id == named] or [f for f in known if f.id.startswith(named)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CampaignError(
            f"'{named}' begins the id of {len(matches)} campaigns: {', '.join(f.id for f in matches[-5:])}"
        )
    raise CampaignError(
        f"no campaign '{named}' under {parent}",
        hint=did_you_mean(named, [f.id for f in known])
        or f"`nsw ls{'' if parent == root(None) else f' --root {shlex.quote(str(parent))}'}` lists them",
    )


@contextmanager
def locked(folder: CampaignFolder, patience: float = _GOING_S) -> Iterator[None]:
    """Hold the campaign: a second nsw that would drive it is refused, and so is another user's.

    Args:
        folder: The campaign.
        patience: Seconds to wait for what an nsw that was killed left behind here.

    Raises:
        CampaignLockedError: Another process holds it; it is named.
        CampaignError: The campaign is another user's, or its lock cannot be taken.
    """
    require_own(folder.path)
    try:
        descriptor = open_plain(folder.lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise CampaignError(f"campaign {folder.id} cannot be driven: {folder.lock}: {fault.strerror}") from None
    try:
        _lock(descriptor, folder, time.monotonic() + patience)
        if not _OWNER.fullmatch((os.pread(descriptor, 300, 0) or b"process 0 on -").decode(errors="replace")):
            raise CampaignError(f"{folder.lock} contains something that nsw does not write; nsw leaves it unchanged")
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except OSError as fault:
            raise disk_full(folder.lock, fault.strerror) from None
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: CampaignFolder, deadline: float) -> None:
    glimpse = time.monotonic() + _GLIMPSE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            killed = _was_killed(owner)
        except OSError as fault:
            raise CampaignError(
                f"{folder.path} is on a file system without locks ({fault.strerror})",
                hint="put campaigns elsewhere with --root or NSW_ROOT",
            ) from None
        now = time.monotonic()
        if now >= glimpse and (not killed or now >= deadline):
            raise CampaignLockedError(
                f"campaign {folder.id} is driven by {owner or 'another nsw'}"
                + (", which was killed; a process that it started is still running" if killed else ""),
                hint="`nsw status` and `nsw logs` work meanwhile; to continue here, end the other nsw first",
            )
        time.sleep(0.05)


def _was_killed(owner: str) -> bool:
    """Whether who holds the lock is of this machine and no more."""
    match = _OWNER.fullmatch(owner)
    if match is None or match[2] != socket.gethostname():
        return False
    try:
        state = Path(f"/proc/{match[1]}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    except OSError:
        return Path("/proc/self").exists()
    return state[:1] == ["Z"]


def is_driven(folder: CampaignFolder) -> bool:
    """Whether some nsw drives the campaign now, as far as can be seen without writing anything there."""
    try:
        descriptor = open_plain(folder.lock)
    except OSError:  # none yet, a link, or one that only its owner may read
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks: nobody drives anything there
        return False
    finally:
        os.close(descriptor)
    return False


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """The folder of an attempt of a run on the site."""
    return f"{scratch}/runs/{run}/attempt-{attempt}"


def run_of(reduction: str) -> str:
    """The run whose reports a reduction reduces."""
    from nsw.plan.model import REDUCTION  # here: `nsw status` looks at no plan

    return reduction.removesuffix(REDUCTION)
