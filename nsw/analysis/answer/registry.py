"""Every analysis that has something to say in an answer, in the order in which it is read, behind the first screen.

Those of other packages are entry points of the group `nsw.analyses`; their findings belong to the first screen.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Final

from nsw.analysis.answer import cases, comparisons, kernels, notes
from nsw.analysis.blocks import Block, Finding
from nsw.analysis.conditions import condition_blocks
from nsw.analysis.first_screen import first_screen_blocks
from nsw.analysis.gpu_metrics import gpu_metric_blocks
from nsw.errors import NswError
from nsw.resources import entry_points_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from nsw.analysis.summary import Summary

GROUP: Final = "nsw.analyses"
ANALYSES: Final[Mapping[str, Callable[[Summary], Iterable[Block]]]] = {
    "note": notes.campaign_note_blocks,
    "scaling": comparisons.scaling_blocks,
    "figures": comparisons.figure_blocks,
    "comparison": comparisons.variant_bar_blocks,
    "time": comparisons.time_by_class_blocks,
    "sweeps": comparisons.figure_by_parameter_blocks,
    "perturbation": notes.perturbation_blocks,
    "iterations": cases.iteration_blocks,
    "gpu metrics": gpu_metric_blocks,
    "effective rates": comparisons.effective_rate_blocks,
    "roofline": kernels.roofline_blocks,
    "cases": cases.case_blocks,
    "nodes": notes.node_note_blocks,
    "conditions": condition_blocks,
    "outliers": notes.outlier_blocks,
    "missing": notes.missing_data_blocks,
}


def answer_blocks(summary: Summary, *, full: bool = True) -> Iterator[Block]:
    """The whole answer, or what its first screen is made of; blocks of cases are made when they are asked for.

    Raises:
        NswError: An analysis of another package failed.
    """
    plugin_blocks = [block for name in entry_points_of(GROUP) for block in _plugin_analysis_blocks(name, summary)]
    findings = [block for block in plugin_blocks if isinstance(block, Finding)]
    first = (*first_screen_blocks(summary), *findings)
    if not full:
        return iter(first)
    own_blocks = (block for analysis in ANALYSES.values() for block in analysis(summary))
    rest = (block for block in plugin_blocks if not isinstance(block, Finding))
    return chain(first, map(as_full_answer_block, own_blocks), map(as_full_answer_block, rest))


def as_full_answer_block(block: Block) -> Block:
    """A block that only the full answer shows."""
    return replace(block, shown="full") if block.shown == "always" else block


def _plugin_analysis_blocks(name: str, summary: Summary) -> list[Block]:
    """The blocks of another package's analysis."""
    entry_point = entry_points_of(GROUP)[name]
    module, _, function = entry_point.partition(":")
    try:
        blocks: list[Block] = getattr(import_module(module), function)(summary)
    except Exception as fault:
        raise NswError(
            f"the analysis {name} ({entry_point}) of another package failed: {type(fault).__name__}: {fault}",
            hint="repair it, or remove its package",
        ) from fault
    return blocks
