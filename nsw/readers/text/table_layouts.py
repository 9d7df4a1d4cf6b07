"""How tables are laid out in text: columns under dashes (a ruler), between pipes, or apart by blanks."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Span: TypeAlias = tuple[int, int]  # where a column begins and ends, in characters

_DASHES: Final = re.compile(r"-+")
_GAP: Final = re.compile(r"\s{2,}")


def ruled_spans(text: str, start: int = 0) -> tuple[Span, ...]:
    """The columns that the dashes of a line are under, from `start` on."""
    return tuple(found.span() for found in _DASHES.finditer(text, start))


def ruled_cells(text: str, spans: Sequence[Span], *, mark: str = "", is_last_open: bool = False) -> list[str] | None:
    """The cells of one line; None where text is between the columns.

    Args:
        text: The line.
        spans: The columns.
        mark: What may be between them.
        is_last_open: Whether the last cell may be longer than its column.
    """
    if any(text[stop:start].strip() not in ("", mark) for (_, stop), (start, _) in pairwise(spans)):
        return None
    cells = [text[start:stop].strip() for start, stop in spans]
    if is_last_open:
        cells[-1] = text[spans[-1][0] :].strip()
    return cells


def piped_cells(text: str) -> list[str]:
    """The cells of `| a | b |`, with or without the outer pipes."""
    return [cell.strip() for cell in text.strip().removeprefix("|").removesuffix("|").split("|")]


def spaced_cells(text: str) -> list[str]:
    """The cells of a line in which two blanks or more are between them."""
    return _GAP.split(text.strip())
