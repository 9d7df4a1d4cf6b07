"""Find NVIDIA's command-line tools on this machine, for readers that have one of them export a report."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSION: Final = re.compile(r"(20\d\d)\.(\d+)(?:\.(\d+))?")


def find_tool(name: str, places: Iterable[str]) -> list[str]:
    """The paths of a tool to try, best first: only that in NSW_NAME, or that on PATH and then the newest installed.

    Args:
        name: The program, such as ncu.
        places: Absolute patterns (pathlib's glob) of where installers put it.
    """
    if named := os.environ.get(f"NSW_{name.upper()}"):
        return [named]
    on_path = shutil.which(name)
    installed = [str(p) for place in places for p in Path("/").glob(place[1:]) if os.access(p, os.X_OK)]
    newest = sorted(installed, key=_version, reverse=True)
    return list(dict.fromkeys([*([on_path] if on_path else []), *newest]))


def _version(path: str) -> tuple[int, ...]:
    """The version in a path, its links resolved: /usr/local/cuda/bin/ncu often leads to a folder that has one."""
    found = _VERSION.search(str(Path(path).resolve()))
    return tuple(int(g or 0) for g in found.groups()) if found else (0,)
