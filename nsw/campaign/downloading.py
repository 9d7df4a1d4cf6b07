"""What a transport says of files that come, as events: few of them, and none for a transfer that is over at once."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Final

from nsw.campaign.events import Downloading

if TYPE_CHECKING:
    from collections.abc import Callable

    from nsw.transport.model import Transport

_EVERY_S: Final = 0.5
_OVER_S: Final = 5.0  # the rate is that of the last seconds


def watch_downloads(transport: Transport, emit: Callable[[Downloading], object]) -> None:
    """Emit events of the files that a transport brings, where it has a way to report them."""
    transport.progress = DownloadProgress(emit)


class DownloadProgress:
    """Called by a transport with (bytes here, of how many), as often as it likes.

    Args:
        emit: Called with an event now and then.
        now: Seconds of a clock that only goes forward.
    """

    def __init__(self, emit: Callable[[Downloading], object], now: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._now = now
        self._seen: deque[tuple[float, int]] = deque()  # when how much was here
        self._total = 0
        self._last = 0.0
        self._emitted = False

    def __call__(self, done: int, total: int) -> None:
        """So much is here."""
        now = self._now()
        if not self._seen or total != self._total or done < self._seen[-1][1]:  # a new transfer
            self._seen = deque([(now, done)])
            self._total, self._last, self._emitted = total, now, False
        is_over = done == total
        if now - self._last < _EVERY_S and not (is_over and self._emitted):
            if is_over:
                self._seen.clear()
            return
        while len(self._seen) > 1 and now - self._seen[0][0] > _OVER_S:
            self._seen.popleft()
        since, before = self._seen[0]
        self._seen.append((now, done))
        self._last, self._emitted = now, True
        self._emit(Downloading(done, total, (done - before) / (now - since) if now > since else None))
        if is_over:
            self._seen.clear()
