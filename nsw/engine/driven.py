"""A campaign's ledger to look at or to drive, what the parts of the loop share of it, and what is in flight.

Who only looks changes nothing: of a campaign that nsw does not act for state.json is read, of this user's own the
ledger, or a private copy where an older nsw wrote it or a killed nsw left a journal.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.engine.events import Event, Message, ReportsRead
from nsw.engine.folder import LEDGER, STATE, CampaignFolder, Log, is_driven, locked, run_folder
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import bring_up_to_date, journal_of, older_version
from nsw.errors import CampaignError
from nsw.safe_files import copy_file, readable_by_group, write_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nsw.engine.handover import Handover
    from nsw.schedulers.model import Scheduler
    from nsw.transport.model import Transport


def _ignore_ids(_ids: list[str]) -> None:
    pass


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
    changed: Callable[[list[str]], object] = _ignore_ids
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


_LARGEST: Final = 1 << 26  # bytes of state.json: some 150,000 runs


@contextmanager
def look(folder: CampaignFolder) -> Iterator[Ledger]:
    """The campaign's ledger, for reading.

    Raises:
        CampaignError: It is not there, or is not a ledger.
    """
    if not folder.trusted:
        with Ledger(folder.path / STATE, state=_read_state(folder)) as ledger:
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


def _read_state(folder: CampaignFolder) -> bytes:
    try:
        with folder.open(folder.path / STATE) as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        path = shlex.quote(str(folder.path))
        raise CampaignError(
            f"{folder.path} has no {STATE}: an older nsw made it, or it is not a campaign",
            hint="copy it, and `nsw adopt` the copy"
            if folder.other_owner
            else f"`nsw adopt {path}` opens its ledger and lets nsw continue it;"
            " adopt a copy of the folder and the original stays as it is",
        ) from None
    except OSError as fault:
        raise CampaignError(f"{folder.path} is not a campaign: {STATE}: {fault.strerror or fault}") from None
    if len(data) > _LARGEST:
        raise CampaignError(f"{folder.path / STATE} has more than {_LARGEST} bytes, the most that nsw reads of it")
    return data


def _needs_copy(folder: CampaignFolder) -> bool:
    """Whether an older nsw wrote the ledger, or only the next driving nsw may roll back an unfinished write."""
    if journal_of(folder.ledger).exists() and not is_driven(folder):
        return True
    with suppress(OSError), folder.open(folder.ledger) as file:
        return older_version(file) is not None
    return False
