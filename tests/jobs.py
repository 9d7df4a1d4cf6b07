"""Words of a run, carried out as its job script does: variables of the job are those of the file that jobs share."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nsw.scripts.quoting import quote_all
from nsw.scripts.render import write_machinery

if TYPE_CHECKING:
    from collections.abc import Sequence


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="nsw-machinery-")  # until the tests end


def machinery() -> Path:
    """The file that all job scripts share."""
    folder = Path(_kept().name)
    return next(folder.iterdir(), None) or write_machinery(folder)


def in_a_job(words: Sequence[object], *, functions: str = "", **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the words behind calls of the machinery's `functions`."""
    text = f'nsw="{machinery()}"; . "$nsw"; {functions}\n{quote_all(words)}'
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=False, **more)
