"""The folder of a campaign: its files, its lock, its log, and where campaigns are found.

A campaign that this user's nsw did not make, and that the user did not adopt (nsw/engine/trust.py), is only looked
at, through one descriptor of its folder: no link is followed below it, and another folder that gets its name meanwhile
is not looked at.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shlex
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final

from nsw.apart import Limits
from nsw.engine.trust import forget, is_trusted, known_paths, trust
from nsw.errors import CampaignError, CampaignLockedError, did_you_mean, disk_full
from nsw.safe_files import make_folders, open_below, open_folder_below, open_plain, read_text, user_name, write_text
from nsw.tables.exported import exported_tables_hint

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
STATE: Final = "state.json"  # the ledger's tables, for whoever looks at a campaign without acting for it
# a folder of the program, also as `retry --update-app` and `run --into` copied it again, or how that of a build begins
PROGRAM: Final = re.compile(r"app(-\d+)?(\.before)?")
_HALF_MADE = ".part"
_ABANDONED_S = 3600.0  # filling one takes seconds
_GOING_S = 10.0  # processes that read reports for a killed nsw may outlive it by a moment
_GLIMPSE_S = 0.2  # a look at the lock holds it for a moment
_OWNER = re.compile(r"process (\d+) on (.+)\n?")
_IGNORE: Final = ".gitignore"
_GROUP_READS: Final = 0o050


class CampaignFolder:
    """The layout below one campaign's folder."""

    _directory: int | None = None  # a class's, for one that Ctrl-C ends before it is made
    is_copy = False  # made for others to read the answer of: sentences name no path of it

    def __init__(self, path: Path) -> None:
        real = path.resolve()  # once: a link of a stranger may lead elsewhere the next time
        self.path = path = real if real != path.absolute() else path
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

    def __reduce__(self) -> tuple[Any, ...]:
        """A process that it is sent to opens the folder itself."""
        return (CampaignFolder, (self.path,))

    def __del__(self) -> None:
        if self._directory is not None:
            os.close(self._directory)

    @property
    def id(self) -> str:
        """The campaign's name: its folder's."""
        return self.path.name

    def script(self, job: str) -> Path:
        """The script of a job."""
        return self.scripts / f"{job}.sh"

    # --- whose it is, and looking into it -----------------------------------------------------------------

    @property
    def directory(self) -> int:
        """The descriptor of the folder, which is opened once."""
        if self._directory is None:
            self._directory = self._open_directory()
        return self._directory

    def _open_directory(self) -> int:
        return os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # others need not let it be listed

    @cached_property
    def owner(self) -> int:
        """The user id that the folder belongs to."""
        return os.fstat(self.directory).st_uid

    @property
    def other_owner(self) -> str | None:
        """The other user whose campaign it is; None where it is this user's own."""
        return None if self.trusted or self.owner == os.geteuid() else user_name(self.owner)

    @cached_property
    def trusted(self) -> bool:
        """Whether nsw acts for it: this user's nsw made it, or the user adopted it."""
        with suppress(OSError):  # it went meanwhile, or may not be entered
            directory = self._open_directory()  # of many campaigns that are listed none stays open
            try:
                return is_trusted(directory)
            finally:
                os.close(directory)
        return False

    def trust(self, later: Path | None = None) -> None:
        """Act for it from now on; `later` is the path that it gets once it is filled.

        Raises:
            CampaignError: That cannot be written down.
        """
        trust(self.directory, later or self.path)
        self.__dict__["trusted"] = True

    def require_trust(self) -> None:
        """Raise where nsw does not act for it: nothing there is written, run, connected to or submitted.

        Raises:
            CampaignError: It was made elsewhere.
        """
        if self.trusted:
            return
        is_readable = not self.other_owner or os.path.lexists(self.path / STATE)  # an older nsw left none
        looks = "; `nsw status`, `nsw summarize` and `nsw report` can read it" if is_readable else ""
        if owner := self.other_owner:
            raise CampaignError(
                f"campaign {self.id} belongs to {owner}: nsw acts only for campaigns of your own",
                hint=f"`nsw run {self.recipe}` starts your own campaign from its recipe{looks}",
            )
        raise CampaignError(
            f"campaign {self.id} was made elsewhere",
            hint=f"`nsw adopt {shlex.quote(str(self.path))}` trusts it, and shows before what nsw would do for it"
            f"{looks}",
        )

    def open(self, file: Path) -> BinaryIO:
        """Open a file of the campaign for reading, which no link may replace and which its owner must have made.

        Raises:
            OSError: It is not there, or is no such file.
        """
        if self.trusted:
            return os.fdopen(open_plain(file), "rb")
        return os.fdopen(open_below(self.directory, self._path_inside(file), owner=self.owner), "rb")

    def tail(self, file: Path, limit: int = 4096) -> bytes | None:
        """The last bytes of a file of the campaign; None where there is none, or no plain one."""
        with suppress(OSError), self.open(file) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - limit))
            return stream.read(limit)
        return None

    def names(self, folder: Path) -> list[str]:
        """The names in a folder of the campaign, sorted; [] where there is none."""
        with suppress(OSError):
            if self.trusted:
                return sorted(path.name for path in folder.iterdir())
            descriptor = open_folder_below(self.directory, self._path_inside(folder).split("/"))
            try:
                return sorted(os.listdir(descriptor))  # noqa: PTH208  of a descriptor
            finally:
                os.close(descriptor)
        return []

    def _path_inside(self, path: Path) -> str:
        name = path.relative_to(self.path).as_posix()
        if ".." in path.parts:
            raise OSError(errno.EINVAL, "it leads out of the campaign", str(path))
        return name


def root(option: Path | None = None) -> Path:
    """The folder of campaigns: --root, NSW_ROOT or ./campaigns."""
    return option or Path(os.environ.get("NSW_ROOT") or "campaigns")


def make_private(folder: Path, share: str) -> list[Path]:
    """Make a folder, and those on the way, that only the owner can enter, or the group too.

    A folder of campaigns that is made in a checkout of git gets a .gitignore.

    Returns:
        Those on the way that were made, the outermost first.

    Raises:
        FileExistsError: It is there already.
        OSError: It cannot be made; NotADirectoryError if its parent is a file.
    """
    try:
        made = make_folders(folder.parent)
    except FileExistsError as fault:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder.parent)) from fault
    folder.mkdir(mode=0o700)
    if folder.parent in made and any((above / ".git").exists() for above in folder.absolute().parents):
        write_text(folder.parent / _IGNORE, "*\n")  # nsw's own folder in a checkout: nobody wants to commit campaigns
    if share == "group":
        folder.chmod(folder.stat().st_mode | _GROUP_READS)
    return made


@contextmanager
def make_campaign_folder(
    parent: Path,
    name: str,
    *,
    share: str = "nobody",
    check: Callable[[CampaignFolder, Path, Path], object] = lambda _folder, _path, _later: None,
) -> Iterator[tuple[CampaignFolder, CampaignFolder]]:
    """Make a folder NAME-YYYYMMDD-HHMMSS-xxxx below `parent`, completely or not at all.

    Args:
        parent: The folder of campaigns.
        name: The recipe's name.
        share: Who else may look into it: nobody or group.
        check: Called with the new folder, its path below `parent`, and the one that it gets at the end; it raises where
            the folder must not be used.

    Yields:
        The folder under a hidden name, to be filled, and under the name that it gets at the end of the block. After a
        fault nothing of it remains; a later call removes what a killed nsw left half made.

    Raises:
        CampaignError: The folder cannot be made.
    """
    above: list[Path] = []
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime())
    while True:
        final = CampaignFolder(parent / f"{name}-{stamp}-{secrets.token_hex(2)}")
        hidden = CampaignFolder(parent / f".{final.id}{_HALF_MADE}")
        try:
            above += make_private(hidden.path, share)
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
        check(hidden, parent / hidden.id, parent / final.id)
        hidden.trust(final.path)
        for sub in (hidden.scripts, hidden.reports, hidden.tables, hidden.app):
            make_folders(sub)
        yield hidden, final
        hidden.path.rename(final.path)
        _sync_folder(parent)
    except BaseException:
        forget(hidden.directory)
        shutil.rmtree(hidden.path, ignore_errors=True)
        with suppress(OSError):  # another campaign is there by now
            if parent in above:
                (parent / _IGNORE).unlink(missing_ok=True)
            for folder in reversed(above):
                folder.rmdir()
        raise
    _remove_unfinished_folders(parent)


def _sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk: the scheduler must not have a job whose campaign a power cut takes."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_unfinished_folders(parent: Path) -> None:
    for left in parent.glob(f".*{_HALF_MADE}"):
        with suppress(OSError):  # another nsw may clear it at the same time
            status = left.lstat()
            if status.st_uid == os.geteuid() and time.time() - status.st_mtime > _ABANDONED_S:
                shutil.rmtree(left, ignore_errors=True)


def existing(parent: Path) -> list[CampaignFolder]:
    """All campaigns below `parent`, oldest first."""
    campaigns: list[tuple[str, int, CampaignFolder]] = []
    for path in parent.glob(f"[!.]*/{LEDGER}"):
        with suppress(OSError):  # another user's, that may not be entered
            campaigns.append((_date_in_id(path.parent.name), path.lstat().st_ctime_ns, CampaignFolder(path.parent)))
    return [folder for _, _, folder in sorted(campaigns, key=lambda entry: entry[:2])]


def without_ledgers(parent: Path) -> list[Path]:
    """The folders below `parent` that have the tables of a campaign and no ledger, sorted."""
    return sorted(path.parent for path in parent.glob("[!.]*/tables") if not (path.parent / LEDGER).exists())


def find_tables(parent: Path, name: str | None) -> CampaignFolder:
    """The same, or a folder that has the tables of a campaign and no ledger."""
    if name is None or (Path(name) / LEDGER).exists():
        return find(parent, name)
    alone = [path for path in without_ledgers(parent) if path.name.startswith(name)]
    if (Path(name) / "tables").is_dir():
        alone = [Path(name)]
    return CampaignFolder(alone[0]) if len(alone) == 1 else find(parent, name)


def existing_elsewhere() -> list[CampaignFolder]:
    """The campaigns that this user's nsw acts for, wherever they are, oldest first."""
    found = [CampaignFolder(path) for path in known_paths() if (path / LEDGER).is_file()]
    return sorted((folder for folder in found if folder.trusted), key=lambda folder: _date_in_id(folder.id))


def _date_in_id(campaign: str) -> str:
    parts = campaign.rsplit("-", 3)
    return "-".join(parts[1:3]) if len(parts) == 4 else ""


def find(parent: Path, name: str | None) -> CampaignFolder:
    """The campaign of that folder or id (or unique beginning of an id); with none named the newest of this user.

    Where there is no such it is the newest of all.

    Raises:
        CampaignError: There is none, or several begin so.
    """
    if name is not None and (Path(name) / LEDGER).exists():
        path = Path(name)
        return CampaignFolder(path if path.name.strip(".") else path.resolve())  # `.` names no campaign
    campaigns = existing(parent)
    if name is None:
        if not campaigns:
            hint = "`nsw ls` lists those of other folders; `nsw run RECIPE --site SITE` starts one"
            raise CampaignError(f"there is no campaign under {parent}", hint=hint)
        return next((f for f in reversed(campaigns) if f.other_owner is None), campaigns[-1])
    matches = [f for f in campaigns if f.id == name] or [f for f in campaigns if f.id.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CampaignError(
            f"'{name}' begins the id of {len(matches)} campaigns: {', '.join(f.id for f in matches[-5:])}",
            hint="a longer beginning names one of them",
        )
    without_ledger = [Path(name), *(path for path in without_ledgers(parent) if path.name.startswith(name))]
    for path in without_ledger:
        if path.is_dir():
            raise CampaignError(
                f"the folder {path} is no campaign: it has no {LEDGER}",
                hint=exported_tables_hint(path)
                or f"`nsw read {shlex.quote(str(path))}` reads reports that are in it; a packed campaign is unpacked"
                " first",
            )
    if Path(name).is_file():
        hint = f"`nsw read {shlex.quote(name)}` reads a report"
        raise CampaignError(f"{name} is a file, and no campaign", hint=hint)
    raise CampaignError(
        f"no campaign '{name}' under {parent}",
        hint=did_you_mean(name, [f.id for f in campaigns] + [f.id.rsplit("-", 3)[0] for f in campaigns])
        or f"`nsw ls{'' if parent == root(None) else f' --root {shlex.quote(str(parent))}'}` lists them",
    )


@contextmanager
def locked(folder: CampaignFolder, patience: float = _GOING_S) -> Iterator[None]:
    """Hold the campaign: a second nsw that would drive it is refused, and so is a campaign that was made elsewhere.

    Args:
        folder: The campaign.
        patience: Seconds to wait for what an nsw that was killed left behind here.

    Raises:
        CampaignLockedError: Another process holds it; it is named.
        CampaignError: The campaign was made elsewhere, or its lock cannot be taken.
    """
    folder.require_trust()
    try:
        descriptor = open_plain(folder.lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as fault:
        raise CampaignError(f"campaign {folder.id} cannot be driven: {folder.lock}: {fault.strerror}") from None
    try:
        _take_lock(descriptor, folder, time.monotonic() + patience)
        if not _OWNER.fullmatch((os.pread(descriptor, 300, 0) or b"process 0 on -").decode(errors="backslashreplace")):
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


def _take_lock(descriptor: int, folder: CampaignFolder, deadline: float) -> None:
    glimpse = time.monotonic() + _GLIMPSE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 200, 0).decode(errors="backslashreplace").strip()
            killed = _was_owner_killed(owner)
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


def _was_owner_killed(owner: str) -> bool:
    """Whether the lock's owner was a process of this machine that no longer exists."""
    match = _OWNER.fullmatch(owner)
    if match is None or match[2] != socket.gethostname():
        return False
    try:
        state = read_text(f"/proc/{match[1]}/stat", errors="backslashreplace").rpartition(")")[2].split()
    except OSError:
        return Path("/proc/self").exists()
    return state[:1] == ["Z"]


def is_driven(folder: CampaignFolder) -> bool:
    """Whether some nsw drives the campaign now, as far as can be seen without writing anything there."""
    try:
        with folder.open(folder.lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # none yet, a link, or one that only its owner may read; or a file system without locks
        return False
    return False


def driven_since(folder: CampaignFolder) -> float:
    """When the nsw that drives the campaign took its lock, Unix seconds; 0 where nobody knows."""
    try:
        return folder.lock.stat().st_mtime
    except OSError:
        return 0.0


def run_folder(scratch: str, run: str, attempt: int) -> str:
    """Return the folder on the site of an attempt of a run.

    Args:
        scratch: The campaign's folder on the site.
        run: The id of the run, build or reduction.
        attempt: The attempt's number, from 1.
    """
    return f"{scratch}/runs/{run}/attempt-{attempt}"


def run_of(reduction: str) -> str:
    """The run whose reports a reduction reduces."""
    from nsw.plan.model import REDUCTION  # here: `nsw status` looks at no plan

    return reduction.removesuffix(REDUCTION)
