"""A progress bar while reports are read; nothing where there is no terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nsw.present.terminal import console

if TYPE_CHECKING:
    from rich.progress import Progress


class ReadingBar:
    """Called with (done, total) runs; gone when all are read, or once it is stopped."""

    def __init__(self) -> None:
        self._out = console(sys.stderr)
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """So many are read."""
        if not self._out.is_terminal:
            return
        if self._bar is None:
            from rich.progress import Progress

            self._bar = Progress(console=self._out, transient=True)
            self._bar.add_task("reading reports")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        if done == total:
            self.stop()

    def stop(self) -> None:
        """Leave the terminal to others."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
