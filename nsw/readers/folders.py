"""The files of a folder that may be reports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from nsw.readers.detect import detect
from nsw.readers.model import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator


def is_report(folder: Path) -> bool:
    """Whether the folder is itself a report."""
    try:
        return detect(Sample(folder)) is not None
    except OSError:
        return False


def below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, in order of their names, and folders that are reports instead of their files.

    Hidden files and folders are passed over; links to folders are not followed. Files are not looked into:
    whether one is a report is known when it is read.
    """
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in [f for f in folders if is_report(here / f)]:
            folders.remove(name)
            yield here / name
        yield from (here / f for f in sorted(files) if not f.startswith(".") and (here / f).is_file())
