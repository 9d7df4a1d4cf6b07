"""Unpack what a reduction made on a site."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Final

from nsw.errors import CampaignError
from nsw.tables.unpacking_limit import Allowance, TooMuchError

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK: Final = 1 << 20  # bytes


def unpack(packed: Path, target: Path) -> str | None:
    """Unpack a gzip file, whole or not at all, and remove it.

    Returns:
        What is wrong with its content; None when it is good.

    Raises:
        CampaignError: What comes out cannot be written, as on a full disk.
    """
    allowance = Allowance(packed.stat().st_size)
    part = target.with_name(f"{target.name}.part")
    wrong = None
    try:
        part.unlink(missing_ok=True)
        with gzip.open(packed) as source, part.open("xb") as out:
            while chunk := source.read(_CHUNK):
                allowance.take(len(chunk))
                out.write(chunk)
        part.replace(target)
    except TooMuchError as fault:
        wrong = f"{packed.name} holds {fault}"
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        wrong = f"{packed.name} is damaged: {fault}"
    except OSError as fault:
        raise CampaignError(f"{target} cannot be written: {fault.strerror or fault}") from None
    finally:
        part.unlink(missing_ok=True)
    packed.unlink()
    return wrong
