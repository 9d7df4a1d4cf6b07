"""Lines that can be looked at before they are taken."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.text.ranked_lines import Line


class Lines:
    """Lines that can be looked at before they are taken."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._source = iter(lines)
        self._waiting: deque[Line] = deque()

    def take(self) -> Line | None:
        """The next line, or None at the end."""
        return self._waiting.popleft() if self._waiting else next(self._source, None)

    def peek(self, ahead: int = 0) -> Line | None:
        """A line to come, or None at the end."""
        while len(self._waiting) <= ahead:
            line = next(self._source, None)
            if line is None:
                return None
            self._waiting.append(line)
        return self._waiting[ahead]

    def give_back(self, lines: Iterable[Line]) -> None:
        """Put lines back, the first of them to be taken first."""
        self._waiting.extendleft(reversed(list(lines)))
