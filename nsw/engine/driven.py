"""A campaign's ledger to look at or to drive, what the parts of the loop share of it, and what is in flight.

Who only looks changes nothing. Of a campaign that nsw does not act for, state.json is read; where an older nsw left
none and the folder is this user's, the bytes of its ledger, in a process with limits. Of the others the ledger is read,
or a private copy where an older nsw wrote it or a killed nsw left a journal.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.apart import run_isolated
from nsw.engine.events import Event, Message, ReportsRead
from nsw.engine.folder import LEDGER, STATE, CampaignFolder, Log, is_driven, locked, run_folder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import bring_up_to_date, dump_of_bytes, journal_of, older_version
from nsw.errors import CampaignError
from nsw.safe_files import copy_file, readable_by_group, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.engine.handover import Handover
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport


def _ignore_event(_event: Event) -> None:
    pass


@contextmanager
def locked_ledger(folder: CampaignFolder, notify: Callable[[Message], object] = _ignore_event) -> Iterator[Ledger]:
    """Take the campaign's lock and open its ledger, which is migrated first where an older nsw wrote it.

    Raises:
        CampaignLockedError: Another process drives the campaign.
        CampaignError: The campaign was made elsewhere, or its ledger cannot be used.
    """
    with locked(folder):
        if migrated := bring_up_to_date(folder.ledger):
            Log(folder.log).say(migrated)
            notify(Message(migrated))
        with Ledger(folder.ledger) as ledger:
            try:
                yield ledger
            finally:
                write_state(folder, ledger)


@dataclass(frozen=True, slots=True)
class DrivenCampaign:
    """A campaign whose lock this process holds.

    Args:
        folder: Its folder.
        ledger: Its open ledger.
        scheduler: Where runs go.
        transport: The way to the site's files.
        scratch: Its folder on the site.
        handover: What another machine takes the campaign over with; None on this machine.
        changed: Called with the ids of runs and builds that changed their state, once that is written down.
        emit: Called with each other event, at once.
    """

    folder: CampaignFolder
    ledger: Ledger
    scheduler: Scheduler
    transport: Transport
    scratch: str
    changed: Callable[[list[str]], object] = lambda _ids: None
    handover: Handover | None = None
    emit: Callable[[Event], object] = _ignore_event

    def say(self, text: str) -> None:
        """Emit a line for people."""
        self.emit(Message(text))

    def warn(self, text: str) -> None:
        """Emit a warning."""
        self.emit(Message(text, "warning"))

    def progress(self, done: int, total: int) -> None:
        """Emit how many runs are read."""
        self.emit(ReportsRead(done, total))

    def home(self, run: str, attempt: int) -> str:
        """The folder of an attempt of a run or build on the site."""
        return run_folder(self.scratch, run, attempt)

    def script(self, job: str) -> Path:
        """The script of a job, in the campaign's folder."""
        return self.folder.script(job).absolute()


_LARGEST: Final = 1 << 26  # bytes of state.json, or of the ledger of an older nsw: some 150,000 runs


@contextmanager
def ledger_to_read(folder: CampaignFolder) -> Iterator[Ledger]:
    """The campaign's ledger, for reading.

    Raises:
        CampaignError: It is not there, or is not a ledger.
    """
    if not folder.trusted:
        file, state = _read_state(folder)
        with Ledger(file, state=state) as ledger:
            yield ledger
    elif not _needs_copy(folder):
        with Ledger(folder.ledger, read_only=True) as ledger:
            yield ledger
    else:
        with tempfile.TemporaryDirectory(prefix="nsw-ledger-") as temporary:
            copy = Path(temporary, LEDGER)
            for source, target in ((folder.ledger, copy), (journal_of(folder.ledger), journal_of(copy))):
                with suppress(FileNotFoundError):
                    copy_file(source, target)
            bring_up_to_date(copy)
            with Ledger(copy) as ledger:  # SQLite takes the write back that the journal is of
                yield ledger


def write_state(folder: CampaignFolder, ledger: Ledger) -> None:
    """Leave the ledger's tables for whoever looks at the campaign without acting for it."""
    share = ledger.site().get("share") or "nobody"
    with readable_by_group(share), suppress(OSError, CampaignError):  # a full disk: the next holder of the lock does it
        write_text(folder.path / STATE, ledger.dump())


def _read_state(folder: CampaignFolder) -> tuple[Path, bytes]:
    """The file that has the state of a campaign which nsw does not act for, and the state, as `dump` writes it."""
    file = folder.path / STATE
    try:
        return file, _read_bytes(folder, file)
    except FileNotFoundError:
        if folder.other_owner:
            raise CampaignError(
                f"{folder.path} has no {STATE}: an older nsw made it, or it is not a campaign",
                hint="copy the folder: nsw reads a copy that is yours",
            ) from None
    file, journal = folder.ledger, journal_of(folder.ledger)
    if os.path.lexists(journal):
        raise CampaignError(
            f"{journal} is there: an older nsw was killed while it wrote {file.name}, or writes it now",
            hint="`nsw resume` where the campaign was made finishes the write; then copy the folder again",
        )
    content = _read_bytes(folder, file)
    return file, run_isolated(
        dump_of_bytes, content, file, subject=f"reading {file}", size=len(content), limits=folder.limits
    )


def _read_bytes(folder: CampaignFolder, path: Path) -> bytes:
    try:
        with folder.open(path) as file:
            content = file.read(_LARGEST + 1)
    except FileNotFoundError:
        raise
    except OSError as fault:
        raise CampaignError(f"{folder.path} is not a campaign: {path.name}: {fault.strerror or fault}") from None
    if len(content) > _LARGEST:
        raise CampaignError(f"{path} has more than {_LARGEST} bytes, the most that nsw reads of it")
    return content


def _needs_copy(folder: CampaignFolder) -> bool:
    """Whether an older nsw wrote the ledger, or only the next driving nsw may roll back an unfinished write."""
    if journal_of(folder.ledger).exists() and not is_driven(folder):
        return True
    with suppress(OSError), folder.open(folder.ledger) as file:
        return older_version(file) is not None
    return False
