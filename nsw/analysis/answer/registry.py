"""Every analysis that has something to say in an answer, in the order in which it is read: the verdict comes last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.answer import (
    cases,
    comparison,
    effective_rates,
    figures,
    hotspots,
    iterations,
    kernels,
    notes,
    outliers,
    perturbation,
    roofline,
    scaling,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.blocks import Block
    from nsw.analysis.summary import Summary

ANALYSES: Final[Mapping[str, Callable[[Summary], list[Block]]]] = {
    "note": notes.of_campaign,
    "scaling": scaling.blocks,
    "figures": figures.blocks,
    "comparison": comparison.blocks,
    "perturbation": perturbation.blocks,
    "iterations": iterations.blocks,
    "effective rates": effective_rates.blocks,
    "hotspots": hotspots.blocks,
    "kernels": kernels.blocks,
    "roofline": roofline.blocks,
    "cases": cases.blocks,
    "outliers": outliers.blocks,
    "missing": notes.of_what_is_missing,
    "findings": notes.findings,
}


def blocks_of(summary: Summary) -> tuple[Block, ...]:
    """The whole answer."""
    return tuple(block for analysis in ANALYSES.values() for block in analysis(summary))
