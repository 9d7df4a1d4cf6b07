"""The user's own folders for configuration, cache and state."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal


def user_folder(kind: Literal["config", "cache", "state"]) -> Path:
    """The user's folder of that kind for nsw, which need not be there.

    Raises:
        OSError: The user has no home, as in a container that runs under a number.
    """
    import platformdirs

    variable = f"XDG_{kind.upper()}_HOME"
    try:
        folder = Path(getattr(platformdirs, f"user_{kind}_dir")("nsw"))
    except RuntimeError:  # neither HOME nor an entry in the user database
        folder = Path()
    # older platformdirs leave the ~ in it, and take an empty HOME for the root folder
    is_root = os.environ.get("HOME") == "" and not os.environ.get(variable)
    if is_root or not folder.is_absolute():
        raise OSError(errno.ENOENT, f"you have no home folder: set HOME, or {variable}")
    return folder
