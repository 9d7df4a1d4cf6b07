"""When a batch system is asked again: the interval doubles while nothing changes, from 2 to 60 s, with jitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_S, MOST_S = 2.0, 60.0


@dataclass(slots=True)
class Pace:
    """The next time to ask, and since when there has been no answer. `draw` gives numbers in 0..1."""

    clock: Callable[[], float]
    draw: Callable[[], float]
    interval: float = FIRST_S
    next: float = 0.0
    failing_since: float | None = None
    said: bool = False

    def reset(self) -> None:
        """Something was changed: ask soon."""
        self.interval = FIRST_S
        self.next = min(self.next, self.clock() + FIRST_S)

    def now(self) -> None:
        """Ask at once."""
        self.next = self.clock()

    def answered(self) -> None:
        """There was an answer."""
        self.failing_since, self.said = None, False

    def failing(self) -> float:
        """There was none; for how many seconds that goes on."""
        self.asked(changed=False)
        self.failing_since = self.clock() if self.failing_since is None else self.failing_since
        return self.clock() - self.failing_since

    def asked(self, *, changed: bool) -> None:
        """It was asked, and something had changed or not."""
        self.interval = FIRST_S if changed else min(MOST_S, self.interval * 2)
        self.next = self.clock() + self.interval * (0.8 + 0.4 * self.draw())
