"""How a person typed nsw: hints name the program so that they work as printed."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Final

_HINT: Final = "`nsw "


@cache
def program() -> str:
    """`nsw` where the shell finds this very program under that name, else the words that start it."""
    import shlex

    typed = sys.argv[0]
    name = Path(typed).name
    if name == "__main__.py" and Path(typed).parent.name == "nsw":
        python = Path(sys.executable)
        on_path = shutil.which(python.name)
        known = on_path is not None and _same(on_path, str(python)) and Path(on_path).parent == python.parent
        return f"{shlex.quote(python.name if known else str(python))} -m nsw"
    if name != "nsw":  # another program that uses nsw
        return "nsw"
    found = shutil.which("nsw")
    if found is not None and (os.sep not in typed or _same(found, typed)):
        return "nsw"
    return shlex.quote(typed)


def as_typed(text: str) -> str:
    """A text whose hints begin with `nsw, with what was typed."""
    return text.replace(_HINT, f"`{program()} ") if _HINT in text and program() != "nsw" else text


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False
