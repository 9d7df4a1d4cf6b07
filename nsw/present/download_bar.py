"""How far files have come from a site: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self

from nsw.present.terminal import console, rate, seconds, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.live import Live
    from rich.table import Table

    from nsw.campaign.events import Downloading

_BAR: Final = 12
_EXACT_S: Final = 10.0  # below it hundredths of a second would be shown
_EVERY_S: Final = 30.0  # between two lines in a log


def download_line(seen: Downloading) -> str:
    """`1.234 GiB of 3.400 GiB, 45.12 MB/s, 40 s left`, as far as it is known."""
    facts = [f"{size(seen.done)} of {size(seen.total)}"]
    if seen.rate:
        facts.append(rate(seen.rate))
    if seen.done < seen.total and (left := seen.seconds_left) is not None:
        facts.append(f"{seconds(left) if left >= _EXACT_S else f'{left:.0f} s'} left")
    return ", ".join(facts)


def download_row(seen: Downloading) -> Table:
    """The same behind a bar."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    row = Table.grid(padding=(0, 1))
    row.add_row(" downloading", ProgressBar(total=max(1, seen.total), completed=seen.done, width=_BAR),
                download_line(seen))  # fmt: skip
    return row


class DownloadLines:
    """Prints a line for a transfer that takes long, twice a minute, and one at its end."""

    def __init__(self, say: Callable[[str], object], now: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._now = now
        self._next: float | None = None  # None between two transfers
        self._said = False

    def show(self, seen: Downloading) -> None:
        """So much is here."""
        now = self._now()
        is_over = seen.done == seen.total
        if self._next is None:
            self._next, self._said = now + _EVERY_S, False
        if now >= self._next or (is_over and self._said):
            self._say(f"downloading: {download_line(seen)}")
            self._next, self._said = now + _EVERY_S, True
        if is_over:
            self._next = None


class DownloadBar:
    """Shows the transfer of a command that does nothing else: `with DownloadBar() as bar` and `bar.show`."""

    def __init__(self) -> None:
        self._out = console(sys.stderr)
        self._lines = DownloadLines(self._out.print)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, seen: Downloading) -> None:
        """So much is here."""
        if not self._out.is_terminal:
            self._lines.show(seen)
            return
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._out, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(download_row(seen), refresh=True)
