"""A campaign's folder on its site in the hands of one nsw, and what another machine needs to take it over from there.

Before each submission `handover/campaign.tar.gz` there gets the ledger's tables, with what was chosen and the
scheduler's ids, and the recipe's lock. Scripts and files of the application are there anyway. The fence
(nsw/transport/commands.py) keeps two nsw apart; commands that a killed nsw of this machine left behind are waited for.
"""

from __future__ import annotations

import getpass
import gzip
import io
import secrets
import socket
import tarfile
import time
import zlib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from nsw.engine.folder import STATE, CampaignFolder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_rows import OWNED_BY, SCRATCH, TAKEN_OVER
from nsw.errors import CampaignError, CommandError, CommandResult, FencedError, UnreachableError, disk_full
from nsw.safe_files import read_bytes, replacing
from nsw.transport.commands import Fence, take_ownership
from nsw.transport.model import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from nsw.transport.model import Transport

__all__ = [
    "ARCHIVE", "RECIPE", "Handover", "describe_owner", "handover_of", "kept_there", "mark_of", "noting_owner", "pack",
    "require_owner", "require_success", "run_fenced", "site_in_hand", "unpack", "wait_for_commands",
]  # fmt: skip

ARCHIVE: Final = "handover/campaign.tar.gz"
RECIPE: Final = "recipe.lock.yaml"
_MAX_UNPACKED: Final = {STATE: 1 << 30, RECIPE: 16 << 20}  # bytes that are unpacked of each
_MAX_PACKED: Final = 48 << 20  # bytes of the archive; a ledger of 10,000 runs packs into 2 MB
_BLOCK: Final = tarfile.BLOCKSIZE
_PIECE: Final = 1 << 20
_WRITE: Final = r"""
mkdir -p -m 700 "$1/handover" && cat >"$1/handover/.new" && mv -f "$1/handover/.new" "$1/handover/campaign.tar.gz"
"""
_WRITE_S: Final = 120.0
_CHECK_EVERY_S: Final = 60.0
_LEFT_MOST_S: Final = 150.0  # commands have a timeout of two minutes
_LOOK_S: Final = 0.05  # at first; each look at a site elsewhere starts a shell, so it is looked less and less often
_LOOK_MOST_S: Final = 2.0
_SAY_AFTER_S: Final = 1.0


def run_fenced(
    transport: Transport, fence: Fence | None, argv: Sequence[str], *, timeout: float = _WRITE_S, stdin: bytes = b""
) -> CommandResult:
    """Run a command that changes the folder, behind the fence where an nsw elsewhere may own the campaign.

    Raises:
        FencedError: One does; the command did not run.
    """
    if fence is None:
        return transport.run(argv, timeout=timeout, stdin=stdin)
    return fence.passed(argv, transport.run(fence.around(argv), timeout=timeout, stdin=stdin))


def require_owner(transport: Transport, fence: Fence | None) -> None:
    """Raise FencedError where an nsw elsewhere owns the campaign."""
    if fence is not None:
        run_fenced(transport, fence, ["true"])


def require_success(done: CommandResult, *, late: str, failure: str) -> None:
    """Raise where a command of the site gave no answer, with `late`, or failed, with `what`.

    Raises:
        UnreachableError, CommandError: As it is said.
    """
    if done.timed_out:
        raise UnreachableError(f"{late}: {done.stderr.strip()}")
    if done.returncode != 0:
        raise CommandError(done, subject=failure)


class Handover:
    """A campaign that an nsw elsewhere may take over, in the hands of the one that drives it and holds its lock."""

    def __init__(self, folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
        self._folder = folder
        self._ledger = ledger
        self._transport = transport
        self._scratch = scratch
        token = ledger.meta(OWNED_BY)
        if token is None:
            token = f"1 {secrets.token_hex(8)}"
            ledger.set_meta(OWNED_BY, token)
        self.fence = Fence(scratch, token, folder.id)
        self._checked = time.monotonic()

    def hold(self) -> None:
        """Own the folder there, unless another nsw does.

        Raises:
            FencedError: It does.
            CommandError: The folder cannot be written.
            UnreachableError: The site gave no answer.
        """
        token = self.fence.token
        with noting_owner(self._ledger):
            take_ownership(self._transport, self._scratch, self._folder.id, token, token, describe_owner())
        if self._ledger.meta(TAKEN_OVER) is not None:  # that nsw has removed its files since
            self._ledger.set_meta(TAKEN_OVER, None)

    def check(self) -> None:
        """Look now and then whether the campaign is still this nsw's, also while there is nothing to submit.

        Raises:
            FencedError: It is not.
        """
        if self.fence.lost is not None:
            raise self.fence.lost
        if time.monotonic() - self._checked >= _CHECK_EVERY_S:
            self._checked = time.monotonic()
            require_owner(self._transport, self.fence)

    def publish(self) -> None:
        """Put the present state there.

        Raises:
            FencedError: Another nsw owns the campaign.
            CommandError: It cannot be written.
            UnreachableError: The site gave no answer.
        """
        archive = pack(self._ledger.dump().encode(), read_bytes(self._folder.recipe))
        done = run_fenced(
            self._transport, self.fence, ["bash", "-c", _WRITE, "nsw", self._scratch], stdin=archive
        )  # fmt: skip
        require_success(
            done,
            late="the campaign's state could not be kept on the site",
            failure="the campaign's state cannot be kept on the site",
        )


@contextmanager
def noting_owner(ledger: Ledger) -> Iterator[None]:
    """Write down who took the campaign over, where the site says so: `nsw status` asks no site."""
    try:
        yield
    except FencedError as fault:
        if fault.owner is not None:
            ledger.set_meta(TAKEN_OVER, fault.owner)
        raise


def handover_of(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> Handover | None:
    """The hand-over of a campaign; None on this machine, where the lock of its folder is enough."""
    return Handover(folder, ledger, transport, scratch) if transport.remote else None


@contextmanager
def site_in_hand(folder: CampaignFolder, ledger: Ledger) -> Iterator[tuple[Transport, str]]:
    """The way to the campaign's site and its folder there, to change files of it; the caller holds the lock here.

    Raises:
        FencedError: Another nsw took the campaign over.
        UnreachableError: The site gave no answer.
    """
    from nsw.transport.model import connect

    scratch = ledger.meta(SCRATCH)
    with closing(connect(ledger.site(), scratch, mark_of(folder, ledger))) as transport:
        if (handover := handover_of(folder, ledger, transport, scratch)) is not None:
            handover.hold()
        yield transport, scratch


def mark_of(folder: CampaignFolder, ledger: Ledger) -> Path:
    """The file whose lock the commands of this owner hold: those of a former owner are behind the fence."""
    epoch = (ledger.meta(OWNED_BY) or "1").partition(" ")[0]
    return folder.commands if epoch == "1" else folder.path / f"{folder.commands.name}.{epoch}"


def wait_for_commands(
    transport: Transport,
    say: Callable[[str], object],
    *,
    most_s: float = _LEFT_MOST_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Return when no command of a killed nsw runs for this campaign: it may yet hand a job over.

    `say` gets a line for the user when that takes a second. Tests hand in a clock and a sleep of their own.

    Raises:
        UnreachableError: One still runs after `most_s` seconds.
    """
    start_time, has_reported, pause = clock(), False, _LOOK_S
    while transport.left_running():
        waited = clock() - start_time
        if waited >= most_s:
            raise UnreachableError(
                "a command that a killed nsw started is still running, and may yet submit a job",
                hint="`ps` there shows it; run `nsw resume` when it has ended",
            )
        if waited >= _SAY_AFTER_S and not has_reported:
            has_reported = True
            say(
                "a command that a killed nsw started is still running, and may yet submit a job:"
                f" it is waited for, at most {most_s:.0f} s"
            )
        sleep(pause)
        pause = min(pause * 1.5, _LOOK_MOST_S)


def describe_owner() -> str:
    """Who drives a campaign, for whoever finds it owned."""
    return f"{getpass.getuser()}@{socket.gethostname()} on {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}"


def pack(state: bytes, recipe: bytes) -> bytes:
    """The archive of the ledger's tables and the recipe."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        for name, content in ((STATE, state), (RECIPE, recipe)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o600
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def kept_there(transport: Transport, scratch: str, folder: Path) -> bytes:
    """Bring the two files of the archive in a campaign's folder on its site into a folder here.

    The archive is read in one: its owner may replace it.

    Returns:
        The ledger that is kept there, as the bytes of a SQLite file.

    Raises:
        UnreachableError: The site gave no answer, or the archive cannot be read.
        CampaignError: There is none, it is damaged, or the files cannot be written.
    """
    archive = read(transport, f"{scratch}/{ARCHIVE}", _MAX_PACKED)
    if archive is None:
        raise CampaignError(
            f"no state of the campaign is kept in {scratch}", hint="it ended before anything was submitted"
        )
    unpack(archive, folder)
    with Ledger(folder / STATE, state=read_bytes(folder / STATE)) as ledger:
        return ledger.snapshot()


def unpack(archive: bytes, folder: Path) -> None:
    """Write its two files into a folder, as `pack` made it: a header and the bytes of each, without extensions.

    Raises:
        CampaignError: It is damaged, lacks one, holds anything else, one is larger than any campaign's, or cannot be
            written here.
    """
    missing = dict(_MAX_UNPACKED)
    try:
        with gzip.open(io.BytesIO(archive)) as content:
            while (header := content.read(_BLOCK)).strip(b"\0"):
                info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
                size_limit = missing.pop(info.name, None) if info.type == tarfile.REGTYPE else None
                if size_limit is None:
                    raise CampaignError(
                        f"the campaign's state on the site holds {info.name!r:.80}, which nsw never writes"
                    )
                if not 0 <= info.size <= size_limit:
                    raise CampaignError(f"{info.name} on the site has {info.size} bytes, more than any campaign's")
                _write(content, info.size, folder / info.name)
                content.read(-info.size % _BLOCK)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise CampaignError(f"the campaign's state on the site is damaged: {fault}") from None
    if missing:
        raise CampaignError(f"the campaign's state on the site lacks {next(iter(missing))}")


def _write(content: gzip.GzipFile, size: int, path: Path) -> None:
    """Write the next bytes of an archive to a file.

    Raises:
        EOFError: There are fewer.
    """
    try:
        with replacing(path, 0o600) as file:
            while size > 0:
                if not (data := content.read(min(size, _PIECE))):
                    raise EOFError("it is cut short")
                file.write(data)
                size -= len(data)
    except gzip.BadGzipFile:
        raise
    except OSError as fault:
        raise disk_full(path, fault.strerror) from None
