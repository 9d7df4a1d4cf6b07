"""log.txt: what nsw did with a campaign and when, a line each, for the morning after."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nsw.safe_files import open_plain

if TYPE_CHECKING:
    from pathlib import Path

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class Log:
    """Appends to a file; each line whole, with its time and the process that wrote it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def say(self, *texts: str) -> None:
        """Write a line for each; control characters of others become spaces."""
        begin = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} [{os.getpid()}]"
        plain = (text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text) for text in texts)
        lines = "".join(f"{begin} {text}\n" for text in plain)
        try:
            with open(open_plain(self._path, _APPEND, 0o644), "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(lines)
        except OSError as fault:  # a write knows only the descriptor
            fault.filename = str(self._path)
            raise
