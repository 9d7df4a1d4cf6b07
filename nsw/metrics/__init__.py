"""The metric catalogue: portable names, what each tool and chip calls them, and what they mean."""

from nsw.metrics.catalogue import catalogue, find, groups
from nsw.metrics.check import MetricFault, check
from nsw.metrics.chips import Chip, find_chip
from nsw.metrics.requests import Request, for_ncu, for_nvprof, portable_names
from nsw.metrics.tools import tool_for, unsupported

__all__ = [
    "Chip", "MetricFault", "Request", "catalogue", "check", "find", "find_chip", "for_ncu", "for_nvprof", "groups",
    "portable_names", "tool_for", "unsupported",
]  # fmt: skip
