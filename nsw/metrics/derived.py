"""Portable metrics that are computed of several printed ones: FLOP, bytes, rates, stalls as shares.

Values are numbers or columns of them (numpy); what a division by zero gives is absent.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from nsw.metrics import expressions
from nsw.metrics.catalogue import Metric, catalogue
from nsw.metrics.printed_metrics import of_the_chip

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nsw.metrics.chips import Chip


@cache
def ncu_components() -> frozenset[str]:
    """The names of ncu that are in an expression with others, or that mean another number on another chip."""
    together = frozenset(
        name
        for metric in catalogue().values()
        for measured in (metric.ncu, *metric.by_chip.values())
        for expression in measured.expressions
        if len(expressions.names(expression)) > 1
        for name in expressions.names(expression)
    )
    return together | of_the_chip()


def computed(of: Mapping[str, Any], chip: Chip | None) -> Iterator[tuple[str, Any]]:
    """Portable metrics whose components are all there, each with its value, by the first expression that can be had.

    Args:
        of: Values by names of ncu in base units, and by portable names, which nvprof's expressions are over.
        chip: The chip, whose expressions go first; where it is not known, those of most chips do.
    """
    for metric in catalogue().values():
        expression = next((e for e in _expressions(metric, chip) if all(n in of for n in expressions.names(e))), None)
        if expression is not None:
            yield metric.name, expressions.evaluated(expression, of)


def _expressions(metric: Metric, chip: Chip | None) -> Iterator[str]:
    """Those with several components or of a chip: what one component alone gives is filled in where it is read."""
    measured = (metric.on(chip),) if chip is not None else (metric.ncu, *metric.by_chip.values())
    for one in measured:
        for expression in one.expressions:
            names = expressions.names(expression)
            if len(names) > 1 or names[0] in of_the_chip():
                yield expression
    if metric.nvprof and not metric.nvprof.isidentifier():
        yield metric.nvprof
