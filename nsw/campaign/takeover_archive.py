"""What another machine needs to take a campaign over: kept in the campaign's folder on the site before each submission.

`handover/campaign.tar.gz` there holds the ledger, with what was chosen and the scheduler's ids, and the recipe's lock.
Scripts and files of the application are there anyway. The fence (nsw/transport/commands.py) keeps two nsw apart.
"""

from __future__ import annotations

import getpass
import io
import secrets
import socket
import tarfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from nsw.campaign.ledger_meta_keys import OWNED_BY, TAKEN_OVER
from nsw.errors import CampaignError, CommandError, FencedError, UnreachableError
from nsw.transport.commands import Fence, take

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nsw.campaign.folder import CampaignFolder
    from nsw.campaign.ledger import Ledger
    from nsw.transport.model import Transport

ARCHIVE: Final = "handover/campaign.tar.gz"
LEDGER, RECIPE = "campaign.db", "recipe.lock.yaml"
_MOST: Final = {LEDGER: 1 << 30, RECIPE: 16 << 20}  # bytes that are unpacked of each
_WRITE: Final = r"""
mkdir -p -m 700 "$1/handover" && cat >"$1/handover/.new" && mv -f "$1/handover/.new" "$1/handover/campaign.tar.gz"
"""
_WRITE_S: Final = 120.0
_CHECK_EVERY_S: Final = 60.0


class Handover:
    """A campaign that an nsw elsewhere may take over, in the hands of the one that drives it.

    Args:
        folder: The campaign's folder here; this process holds its lock.
        ledger: Its open ledger.
        transport: The way to the site, which is elsewhere.
        scratch: The campaign's folder there.
        clock: Seconds that only grow; tests hand in their own.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        ledger: Ledger,
        transport: Transport,
        scratch: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._ledger = ledger
        self._transport = transport
        self._scratch = scratch
        token = ledger.meta(OWNED_BY)
        if token is None:
            token = f"1 {secrets.token_hex(8)}"
            ledger.set_meta(OWNED_BY, token)
        self.fence = Fence(scratch, token, folder.id)
        self._clock = clock
        self._checked = clock()

    def hold(self) -> None:
        """Own the folder there, unless another nsw does.

        Raises:
            FencedError: It does.
            CommandError: The folder cannot be written.
            UnreachableError: The site gave no answer.
        """
        token = self.fence.token
        with noting_owner(self._ledger):
            take(self._transport, self._scratch, self._folder.id, token, token, about())
        if self._ledger.meta(TAKEN_OVER) is not None:  # that nsw has removed its files since
            self._ledger.set_meta(TAKEN_OVER, None)

    def check(self) -> None:
        """Look now and then whether the campaign is still this nsw's, also while there is nothing to submit.

        Raises:
            FencedError: It is not.
        """
        if self.fence.lost is not None:
            raise self.fence.lost
        now = self._clock()
        if now - self._checked < _CHECK_EVERY_S:
            return
        self._checked = now
        self.fence.passed(["true"], self._transport.run(self.fence.around(["true"]), timeout=_WRITE_S))

    def publish(self) -> None:
        """Put the present state there.

        Raises:
            FencedError: Another nsw owns the campaign.
            CommandError: It cannot be written.
            UnreachableError: The site gave no answer.
        """
        argv = ["bash", "-c", _WRITE, "nsw", self._scratch]
        archive = pack(self._ledger.snapshot(), self._folder.recipe.read_bytes())
        done = self.fence.passed(argv, self._transport.run(self.fence.around(argv), timeout=_WRITE_S, stdin=archive))
        if done.timed_out:
            raise UnreachableError(f"the campaign's state could not be kept on the site: {done.stderr.strip()}")
        if done.returncode != 0:
            raise CommandError(done, what="the campaign's state cannot be kept on the site")


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


def hold_folder(folder: CampaignFolder, ledger: Ledger, transport: Transport, scratch: str) -> None:
    """Make sure that the campaign is still this nsw's, before files of it are changed on its site.

    Raises:
        FencedError: Another nsw took it over.
        UnreachableError: The site gave no answer.
    """
    if (handover := handover_of(folder, ledger, transport, scratch)) is not None:
        handover.hold()


def mark_of(folder: CampaignFolder, ledger: Ledger) -> Path:
    """The file whose lock the commands of this owner hold: those of a former owner are behind the fence."""
    epoch = (ledger.meta(OWNED_BY) or "1").partition(" ")[0]
    return folder.commands if epoch == "1" else folder.path / f"{folder.commands.name}.{epoch}"


def about() -> str:
    """Who drives a campaign, for whoever finds it owned."""
    return f"{getpass.getuser()}@{socket.gethostname()} on {time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())}"


def pack(ledger: bytes, recipe: bytes) -> bytes:
    """The archive."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive:
        for name, content in ((LEDGER, ledger), (RECIPE, recipe)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o600
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def unpack(archive: bytes) -> dict[str, bytes]:
    """Its two files by name; nothing else in it is looked at.

    Raises:
        CampaignError: It is damaged, lacks one, or one is larger than any campaign's.
    """
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r|gz") as members:
            for member in members:
                if member.name not in _MOST or member.name in found or not member.isreg():
                    raise CampaignError(
                        f"the campaign's state on the site holds {member.name!r:.80}, which nsw never writes"
                    )
                if member.size > _MOST[member.name]:
                    raise CampaignError(f"{member.name} on the site has {member.size} bytes, more than any campaign's")
                stream = members.extractfile(member)
                found[member.name] = stream.read() if stream else b""
    except (tarfile.TarError, EOFError, OSError, ValueError) as fault:
        raise CampaignError(f"the campaign's state on the site is damaged: {fault}") from None
    if missing := [name for name in _MOST if name not in found]:
        raise CampaignError(f"the campaign's state on the site lacks {missing[0]}")
    return found
