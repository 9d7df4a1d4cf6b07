"""Ledgers to look at, which changes nothing: the file itself, or a clean copy.

A copy is made of a ledger that strangers may have written, that a killed nsw left with a journal, or of an older nsw.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.engine.folder import CampaignFolder, LedgerCopy, is_driven
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import journal_of, older_version
from nsw.errors import CampaignError, LimitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from nsw.campaign.ledger_copy import Strange

__all__ = ["clean_copy", "look", "prepare_to_look"]

_MEMORY: Final = 2 << 30  # bytes
_SECONDS: Final = 60.0


@contextmanager
def look(folder: CampaignFolder) -> Iterator[Ledger]:
    """The campaign's ledger, for reading.

    Raises:
        CampaignError: It is not there, or is not a ledger.
    """
    if fault := prepare_to_look([folder])[0]:
        raise fault
    with Ledger(folder.copy.path if folder.copy else folder.ledger, read_only=True) as ledger:
        yield ledger


def prepare_to_look(several: Sequence[CampaignFolder]) -> list[CampaignError | None]:
    """Make the clean copies of ledgers that need one, all of them in one process; of each what is wrong with it."""
    from nsw.campaign.ledger_copy import Strange

    faults: list[CampaignError | None] = [None] * len(several)
    todo: list[tuple[int, LedgerCopy, Strange]] = []
    with ExitStack() as opened:
        for at, folder in enumerate(several):
            if not _needs_copy(folder):
                folder.copy = None
                continue
            try:
                ledger = opened.enter_context(folder.open(folder.ledger))
                journal = None
                with suppress(FileNotFoundError):
                    journal = opened.enter_context(folder.open(journal_of(folder.ledger)))
            except OSError as open_fault:
                subject = f"{folder.path} is not a campaign: {folder.ledger.name}"
                faults[at] = CampaignError(f"{subject}: {open_fault.strerror or open_fault}")
                continue
            status = os.fstat(ledger.fileno())
            now = status.st_ino, status.st_size, status.st_mtime_ns
            if folder.copy is None or folder.copy.file_state != now:
                ledger_copy = LedgerCopy(_place_for(folder), now)
                journal_name = None if journal is None else _name(journal)
                todo.append((at, ledger_copy, Strange(folder.ledger, _name(ledger), journal_name, ledger_copy.path)))
        for (at, ledger_copy, _), fault in zip(todo, _copied([strange for _, _, strange in todo]), strict=True):
            faults[at] = fault
            several[at].copy = ledger_copy if fault is None else None
    return faults


def _place_for(folder: CampaignFolder) -> Path:
    """Where the copy of a campaign's ledger will be, as long as the object is in use."""
    home = Path(tempfile.mkdtemp(prefix="nsw-ledger-"))
    weakref.finalize(folder, shutil.rmtree, home, ignore_errors=True)
    return home / folder.ledger.name


def clean_copy(source: Path, copy: Path) -> None:
    """Write a clean copy of a file that was brought from elsewhere.

    Raises:
        CampaignError: It is no ledger.
    """
    from nsw.campaign.ledger_copy import Strange

    if fault := _copied([Strange(source, str(source), None, copy)])[0]:
        raise fault


def _needs_copy(folder: CampaignFolder) -> bool:
    """Whether strangers or an older nsw may have written it, or only the next nsw that drives it may write it."""
    if not folder.trusted or (journal_of(folder.ledger).exists() and not is_driven(folder)):
        return True
    with suppress(OSError), folder.open(folder.ledger) as file:
        return older_version(file) is not None
    return False


def _name(file: BinaryIO) -> str:
    """A name by which another process of this user opens the same file, whatever has its path by now."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _copied(several: Sequence[Strange]) -> list[CampaignError | None]:
    from nsw.apart import Limits, run_isolated
    from nsw.campaign.ledger_copy import copy_ledgers

    if not several:
        return []
    subject = f"reading {several[0].path}" if len(several) == 1 else f"reading {len(several)} ledgers"
    try:
        copy_faults = run_isolated(copy_ledgers, several, subject=subject, size=0, limits=Limits(_MEMORY, _SECONDS))
    except LimitError as fault:
        if len(several) == 1:
            return [CampaignError(fault.message, hint="nsw writes no such file: ask who made it")]
        return [_copied([strange])[0] for strange in several]  # so that one costs the others nothing
    return [None if fault is None else CampaignError(fault[0], hint=fault[1]) for fault in copy_faults]
