"""Tables as ncu prints them in text: columns told by lines of dashes, long cells wrapped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.readers.text.lines import ruled_cells, ruled_spans

if TYPE_CHECKING:
    from nsw.readers.text.lines import Span

_DASHES: Final = re.compile(r"\s*-++(?: ++-++)++\s*")
_RULE_LINE: Final = re.compile(r"\s*-{5} -{40,}\s*")  # between two pieces of advice, no table


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the columns of a table begin and end, in characters."""

    spans: tuple[Span, ...]

    def cells(self, line: str) -> list[str] | None:
        """The cells of one line; None when the line is no row, because text is between the columns."""
        if not line.strip() or line[: self.spans[0][0]].strip():
            return None
        return ruled_cells(line, self.spans, is_last_open=True)

    def is_full(self, line: str, column: int) -> bool:
        """Whether the cell fills its column, so that the next line may go on with it."""
        start, end = self.spans[column]
        return len(line) >= end and " " not in (line[start], line[end - 1])


def columns_of(line: str) -> Columns | None:
    """The columns of a line of dashes; None for other lines."""
    if "--" not in line or not _DASHES.fullmatch(line) or _RULE_LINE.fullmatch(line):
        return None
    return Columns(ruled_spans(line))
