"""The metric catalogue: portable names, what each tool and chip calls them, and what they mean."""

from nsw.metrics.catalogue import Chip, find_chip, find_metric, metric_groups_by_name, metrics_by_name
from nsw.metrics.requests import (
    MetricFault,
    MetricRequest,
    default_counters_tool,
    find_metric_faults,
    ncu_metric_request,
    nvprof_metric_request,
    requested_portable_names,
    unsupported_reason,
)

__all__ = [
    "Chip",
    "MetricFault",
    "MetricRequest",
    "default_counters_tool",
    "find_chip",
    "find_metric",
    "find_metric_faults",
    "metric_groups_by_name",
    "metrics_by_name",
    "ncu_metric_request",
    "nvprof_metric_request",
    "requested_portable_names",
    "unsupported_reason",
]  # fmt: skip
