"""The answer of a campaign on a terminal, and as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nsw.analysis.answer.registry import blocks_of
from nsw.analysis.blocks import Finding
from nsw.present.blocks_as_data import blocks_data
from nsw.present.blocks_as_markdown import as_markdown
from nsw.present.blocks_on_terminal import show_blocks
from nsw.present.untrusted_text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from nsw.analysis.blocks import Shown
    from nsw.analysis.summary import Summary


def show_summary(
    out: Console, summary: Summary, *, brief: bool, before_findings: Callable[[], object] | None = None
) -> None:
    """Print it, the findings last.

    Args:
        out: Where to.
        summary: What.
        brief: The top kernels of each case in one table instead of a block a case.
        before_findings: Prints what is between the rest and the findings.
    """
    blocks = blocks_of(summary)
    form: Shown = "brief" if brief else "full"
    show_blocks(out, (b for b in blocks if not isinstance(b, Finding)), form)
    if before_findings is not None:
        before_findings()
    show_blocks(out, (b for b in blocks if isinstance(b, Finding)), form)


def summary_markdown(summary: Summary) -> str:
    """The summary in full as Markdown."""
    return as_markdown(f"{summary.campaign} on site {summary.site}", blocks_of(summary))


def summary_data(summary: Summary) -> dict[str, Any]:
    """The summary as JSON data, unrounded."""
    return {
        "campaign": summary.campaign,
        "site": summary.site,
        "note": summary.note,
        "cover": summary.cover,
        "scaling": asdict(summary.curve) if summary.curve else None,
        "compare": [asdict(v) for v in summary.variants],
        "model": [asdict(m) for m in summary.model],
        "findings": [{"text": f.text, "cases": list(f.cases)} for f in summary.findings],
        "cases": [asdict(c) for c in summary.cases],
        "outliers": [asdict(o) for o in summary.outliers],
        "missing": [clean(m) for m in summary.missing],
        "blocks": blocks_data(blocks_of(summary)),
    }
