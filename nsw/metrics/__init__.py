"""The metric catalogue: portable names, what each tool and chip calls them, and what they mean."""

from nsw.metrics.catalogue import Chip, catalogue, find, find_chip, groups
from nsw.metrics.requests import (
    MetricFault,
    MetricRequest,
    check,
    for_ncu,
    for_nvprof,
    portable_names,
    tool_for,
    unsupported,
)

__all__ = [
    "Chip", "MetricFault", "MetricRequest", "catalogue", "check", "find", "find_chip", "for_ncu", "for_nvprof",
    "groups", "portable_names", "tool_for", "unsupported",
]  # fmt: skip
