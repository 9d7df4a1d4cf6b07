"""From a tool's own metric names back to portable ones."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from nsw.metrics import expressions
from nsw.metrics.catalogue import catalogue, find

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def by_ncu_name() -> Mapping[str, str]:
    """A metric of ncu -> the portable metric that is this and nothing else; the first in the alphabet of several."""
    found: dict[str, str] = {}
    for metric in sorted(catalogue().values(), key=lambda m: m.name):
        for measured in (metric.ncu, *metric.by_chip.values()):
            for expression in measured.expressions:
                if isinstance(expressions.parsed(expression), str):
                    found.setdefault(expression, metric.name)
    return found


@cache
def by_nvprof_name() -> Mapping[str, str]:
    """A metric of nvprof -> the portable metric."""
    return {m.nvprof: m.name for m in catalogue().values() if m.nvprof and m.nvprof.isidentifier()}


def portable_of(name: str) -> str | None:
    """The portable name of what a tool calls so; None: there is none."""
    metric = find(name)
    return metric.name if metric else by_ncu_name().get(name) or by_nvprof_name().get(name)
