"""Notes beside the numbers: on the campaign and on what is missing; then the findings, which come last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.analysis.blocks import Note

if TYPE_CHECKING:
    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary


def of_campaign(summary: Summary) -> list[Block]:
    """What must be known with all its numbers."""
    return [Note("note", summary.note, tone="warning")] if summary.note else []


def of_nodes(summary: Summary) -> list[Block]:
    """Where the ranks of each case were; cases that were alike share a line."""
    together: dict[str, list[str]] = {}
    for case, text in summary.nodes:
        together.setdefault(text, []).append(case)
    return [Note("nodes", f"{', '.join(cases)}: {text}") for text, cases in together.items()]


def of_what_is_missing(summary: Summary) -> list[Block]:
    """What is absent, and why."""
    return [Note("missing", text, tone="warning") for text in summary.missing]


def findings(summary: Summary) -> list[Block]:
    """What the numbers say, a sentence each."""
    return list(summary.findings)
