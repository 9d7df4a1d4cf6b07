"""Tables as ncu prints them in text: columns told by lines of dashes, long cells wrapped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_DASHES: Final = re.compile(r"\s*-++(?: ++-++)++\s*")
_RUN: Final = re.compile(r"-+")
_RULE_LINE: Final = re.compile(r"\s*-{5} -{40,}\s*")  # between two pieces of advice, no table


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a table begin and end, in characters."""

    spans: tuple[tuple[int, int], ...]

    def cells(self, line: str) -> list[str] | None:
        """The cells of one line; None when the line is no row, because text stands between the columns."""
        if not line.strip():
            return None
        at = self.spans[0][0]
        if line[:at].strip():
            return None
        cut: list[str] = []
        for i, (start, end) in enumerate(self.spans):
            stop = max(end, len(line)) if i == len(self.spans) - 1 else end
            if line[at:start].strip():
                return None
            cut.append(line[start:stop].strip())
            at = end
        return cut

    def is_full(self, line: str, column: int) -> bool:
        """Whether the cell fills its column, so that the next line may go on with it."""
        start, end = self.spans[column]
        return len(line) >= end and " " not in (line[start], line[end - 1])


def columns_of(line: str) -> Columns | None:
    """The columns of a line of dashes; None for other lines."""
    if "--" not in line or not _DASHES.fullmatch(line) or _RULE_LINE.fullmatch(line):
        return None
    return Columns(tuple((m.start(), m.end()) for m in _RUN.finditer(line)))
