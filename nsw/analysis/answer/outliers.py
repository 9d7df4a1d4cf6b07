"""Runs whose figure is far from those of their repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Evidence, Note
from nsw.wording import plural

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary

_BRIEF: Final = 5


def blocks(summary: Summary) -> list[Block]:
    """A sentence each; the brief form names five."""
    found: list[Block] = [
        Note(
            "outlier",
            f"outlier: {one.run}: {one.text}",
            tone="warning",
            shown="always" if number < _BRIEF else "full",
            evidence=(Evidence("figures", (one.case_id,)),),
        )
        for number, one in enumerate(summary.outliers)
    ]
    if left := len(found) - _BRIEF if len(found) > _BRIEF else 0:
        more = f"... and {plural(left, 'outlier')} more (`nsw problems` names all)"
        found.append(Note("outlier", more, tone="warning", shown="brief"))
    return found
