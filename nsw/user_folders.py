"""The user's own folders for configuration, cache and state."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Literal


def user_folder(kind: Literal["config", "cache", "state"]) -> Path:
    """The user's folder of that kind for nsw, which need not be there.

    Raises:
        OSError: The user has no home, as in a container that runs under a number.
    """
    import platformdirs

    try:
        folder = Path(getattr(platformdirs, f"user_{kind}_dir")("nsw"))
    except RuntimeError:  # neither HOME nor an entry in the user database
        folder = Path()
    if not folder.is_absolute():  # HOME is empty; older platformdirs leave the ~ in it
        raise OSError(errno.ENOENT, f"you have no home folder: set HOME, or XDG_{kind.upper()}_HOME")
    return folder
