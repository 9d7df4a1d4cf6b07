"""Where sites files are looked for, and which of them are read. Imports little: completion asks it at every Tab.

A sites file decides what is run and holds templates of job scripts. One that was not asked for by name is read only if
no other user can have written it; and one that merely lies in the current folder, as a download may, adds sites and
never takes the place of one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nsw.safe_files import who_else_writes
from nsw.user_folders import user_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

BUILTIN = Path(__file__).with_name("builtin.yaml")
FILE_NAME = "sites.yaml"
ENVIRONMENT = "NSW_SITES"  # files, separated as in PATH


class Source(NamedTuple):
    """A sites file in the order of the search.

    `named` was asked for by --sites or $NSW_SITES; `beside` is that of the current folder; `unsafe` says why one is
    not read, as a sentence.
    """

    path: Path
    named: bool = False
    beside: bool = False
    unsafe: str | None = None


def sources(files: Sequence[Path] | None = None) -> list[Source]:
    """The files searched, in order: those given, $NSW_SITES, the user's, the built-in one, ./sites.yaml.

    Files that were asked for by name are listed whether they exist or not. A FIFO or folder of that name is listed too,
    since ignoring it would choose another site: reading it is an error.
    """
    named = [*(files or ()), *(Path(p) for p in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if p)]
    own, beside = user_file(), Path(FILE_NAME)
    order = [
        *(Source(path, named=True) for path in named),
        *([Source(own, unsafe=unsafe(own))] if own is not None and own.exists() else []),
        Source(BUILTIN),
        *([Source(beside, beside=True, unsafe=unsafe(beside))] if beside.exists() else []),
    ]
    unique: dict[Path, Source] = {}
    for source in order:
        unique.setdefault(source.path.absolute(), source)
    return list(unique.values())


def unsafe(path: Path) -> str | None:
    """Why another user may have written what a file holds: it, its folder, or those of the file that it links to."""
    real = path.resolve()
    for one in dict.fromkeys((real, real.parent, path.absolute().parent)):
        try:
            why = who_else_writes(one)
        except OSError as fault:
            why = f"cannot be looked at ({fault.strerror})"
        if why:
            return f"{'it' if one == real else f'its folder {one}'} {why}"
    return None


def user_file() -> Path | None:
    """The sites file in the user's configuration folder, which need not be there; None for a user without a home."""
    with suppress(OSError):
        return user_folder("config") / FILE_NAME
    return None
