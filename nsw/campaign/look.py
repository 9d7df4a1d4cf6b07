"""Ledgers to look at, which changes nothing: the file itself, or a clean copy where strangers may have written it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.campaign.folder import CampaignFolder, is_driven
from nsw.campaign.ledger import Ledger
from nsw.campaign.ledger_file import journal_of
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
    if _needs_copy(folder):
        if fault := prepare_to_look([folder])[0]:
            raise fault
        assert folder.copy is not None
        with Ledger(folder.copy, read_only=True) as ledger:
            yield ledger
    else:
        with Ledger(folder.ledger, read_only=True) as ledger:
            yield ledger


def prepare_to_look(several: Sequence[CampaignFolder]) -> list[CampaignError | None]:
    """Make the clean copies of ledgers that need one, all of them in one process; of each what is wrong with it."""
    from nsw.campaign.ledger_copy import Strange

    faults: list[CampaignError | None] = []
    todo: list[tuple[int, CampaignFolder, Strange]] = []
    with ExitStack() as opened:
        for folder in several:
            faults.append(None)
            if not _needs_copy(folder):
                continue
            try:
                ledger = opened.enter_context(folder.open(folder.ledger))
                journal = None
                with suppress(FileNotFoundError):
                    journal = opened.enter_context(folder.open(journal_of(folder.ledger)))
            except OSError as why:
                faults[-1] = CampaignError(
                    f"{folder.path} is not a campaign: {folder.ledger.name}: {why.strerror or why}"
                )
                continue
            home = Path(tempfile.mkdtemp(prefix="nsw-ledger-"))
            weakref.finalize(folder, shutil.rmtree, home, ignore_errors=True)
            strange = Strange(
                folder.ledger, _name(ledger), _name(journal) if journal else None, home / folder.ledger.name
            )
            todo.append((len(faults) - 1, folder, strange))
        for (at, folder, strange), fault in zip(todo, _copied([one for _, _, one in todo]), strict=True):
            faults[at] = fault
            folder.copy = strange.copy
    return faults


def clean_copy(source: Path, copy: Path) -> None:
    """Write a clean copy of a file that was brought from elsewhere.

    Raises:
        CampaignError: It is no ledger.
    """
    from nsw.campaign.ledger_copy import Strange

    if fault := _copied([Strange(source, str(source), None, copy)])[0]:
        raise fault


def _needs_copy(folder: CampaignFolder) -> bool:
    """Whether strangers may have written it, or only the nsw that drives it next may take back a write cut short."""
    if not folder.trusted:
        return folder.copy is None
    return journal_of(folder.ledger).exists() and not is_driven(folder)


def _name(file: BinaryIO) -> str:
    """A name by which another process of this user opens the same file, whatever has its path by now."""
    return f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _copied(several: Sequence[Strange]) -> list[CampaignError | None]:
    from nsw.apart import Limits, apart
    from nsw.campaign.ledger_copy import copy_ledgers

    if not several:
        return []
    what = f"reading {several[0].path}" if len(several) == 1 else f"reading {len(several)} ledgers"
    try:
        found = apart(copy_ledgers, several, what=what, size=0, limits=Limits(_MEMORY, _SECONDS))
    except LimitError as fault:
        if len(several) == 1:
            return [CampaignError(fault.message, hint="nsw writes no such file: ask who made it")]
        return [_copied([one])[0] for one in several]  # so that one costs the others nothing
    return [None if fault is None else CampaignError(fault[0], hint=fault[1]) for fault in found]
