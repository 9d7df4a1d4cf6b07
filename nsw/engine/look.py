"""Ledgers to look at, which changes nothing there: state.json of a campaign that nsw does not act for, else the ledger.

Of this user's own a private copy is read where an older nsw wrote it, or a killed nsw left a journal.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nsw.engine.folder import LEDGER, STATE, CampaignFolder, is_driven
from nsw.engine.ledger import Ledger
from nsw.engine.ledger_file import bring_up_to_date, journal_of, older_version
from nsw.errors import CampaignError
from nsw.safe_files import copy_file, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["look", "write_state"]

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
    with suppress(OSError, CampaignError):  # a full disk: the next who holds the lock writes it
        write_text(folder.path / STATE, ledger.dump())


def _read_state(folder: CampaignFolder) -> bytes:
    try:
        with folder.open(folder.path / STATE) as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        path = shlex.quote(str(folder.path))
        raise CampaignError(
            f"{folder.path} has no {STATE}: an older nsw made it, or it is not a campaign",
            hint="copy it, and `nsw adopt` the copy" if folder.other_owner else f"`nsw adopt {path}` opens its ledger",
        ) from None
    except OSError as fault:
        raise CampaignError(f"{folder.path} is not a campaign: {STATE}: {fault.strerror or fault}") from None
    if len(data) > _LARGEST:
        raise CampaignError(f"{folder.path / STATE} has more than {_LARGEST} bytes, the most that nsw reads of it")
    return data


def _needs_copy(folder: CampaignFolder) -> bool:
    """Whether an older nsw wrote it, or only the next nsw that drives it may take an unfinished write back."""
    if journal_of(folder.ledger).exists() and not is_driven(folder):
        return True
    with suppress(OSError), folder.open(folder.ledger) as file:
        return older_version(file) is not None
    return False
