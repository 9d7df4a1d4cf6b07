"""A progress bar while files come from a site; nothing where there is no terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from nsw.present.terminal import console

if TYPE_CHECKING:
    from rich.progress import Progress


class DownloadBar:
    """Called with (bytes here, of how many): `with DownloadBar() as bar: transport.progress = bar`."""

    def __init__(self) -> None:
        self._out = console(sys.stderr)
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """So much is here."""
        if not self._out.is_terminal:
            return
        if self._bar is None:
            from rich import progress

            self._bar = progress.Progress(
                progress.BarColumn(), progress.DownloadColumn(binary_units=True), progress.TransferSpeedColumn(),
                progress.TimeRemainingColumn(), console=self._out, transient=True,
            )  # fmt: skip
            self._bar.add_task("", total=total)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, total=total)
