"""Columns of each table by importance, for narrow terminals; and which whole numbers are counts.

A terminal shows as many columns as fit, the first ones of a table's list at least. Columns that are not listed follow
in the table's own order.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATISTICS: Final = ("total_ns", "time_pct", "calls", "avg_ns", "med_ns", "max_ns", "min_ns", "stddev_ns")
_OPERATION: Final = ("short_name", "start_ns", "duration_ns", "kind", "stream", "device", "bytes", "bytes_per_s")
_CASE_FIRST: Final = ("case", "name", "short_name")

_OF_REPORTS: Final = {
    "gpu_summary": ("short_name", *_STATISTICS[:3], "kind", "total_bytes", *_STATISTICS[3:]),
    "gpu_trace": (*_OPERATION, "phase", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"),
    "api_summary": ("name", *_STATISTICS),
    "api_trace": ("name", "start_ns", "duration_ns", "tid", "correlation", "return_value", "phase"),
    "nvtx_trace": ("name", "start_ns", "duration_ns", "tid", "style", "domain"),
    "phases": ("phase", "duration_ns", "iterations", "gpu_busy_ns", "gpu_ns", "api_ns", "pid", "reason", "found_by"),
    "phase_summary": ("short_name", "phase", *_STATISTICS[:3], "summary", "pid", "kind", *_STATISTICS[3:]),
    "iterations": ("steady", "med_ns", "pid", "gpu_busy_pct", "min_ns", "max_ns", "slowest", "warmup", "rank", "name"),
    "iteration_trace": ("iteration", "duration_ns", "phase", "gpu_busy_ns", "gpu_ns", "pid", "gpu_ops"),
    "osrt_summary": ("name", *_STATISTICS),
    "um_summary": ("name", "total_bytes", "calls", "total_ns", "avg_bytes", "device"),
    "nvtx_summary": ("name", *_STATISTICS[:3], "style", *_STATISTICS[3:]),
    "nvtx_gpu_summary": ("name", "gpu_ns", "calls", "projected_ns", "gpu_ops", "projected_med_ns", "domain"),
    "openacc_summary": ("name", *_STATISTICS[:3], "kind", *_STATISTICS[3:]),
    "openmp_summary": ("name", *_STATISTICS),
    "launches": ("short_name", "launch_id", "duration_ns", "grid", "block_size", "nvtx", "stream", "device"),
    "metrics": ("metric", "value", "unit", "avg", "text", "launch_id", "kernel", "min", "max", "section",
                "portable", "portable_unit", "portable_value"),
    "chosen_launches": ("short_name", "ordinal", "state", "duration_ns", "grid", "block_size", "measured_grid",
                        "measured_block_size", "launch_id"),
    "rules": ("type", "speedup_pct", "message", "rule", "launch_id", "kernel", "speedup_type", "section"),
    "source_metrics": ("source", "metric", "value", "text", "line", "address", "file", "kernel"),
    "operators": ("name", "calls", "self_device_ns", "self_cpu_ns", "device_ns", "cpu_ns", "self_device_pct",
                  "self_cpu_pct", "input_shapes"),
    "functions": ("name", "self_s", "calls", "file", "line", "cpu_time_s", "module"),
    "communication": ("name", *_STATISTICS[:3], "total_bytes", *_STATISTICS[3:]),
    "ranks": ("rank", "host", "local_rank", "gpus", "cpus"),
    "figures": ("name", "value", "unit", "matches"),
    "facts": ("key", "value", "unit", "text"),
}  # fmt: skip

# the tables that a summary makes; the columns of parameters follow the case
_OF_SUMMARIES: Final = {
    "runs": ("id", "state", "reason", "seconds", "job_id", "exit_code", "reading", "attempt", "host"),
    "scaling": ("case", "value", "unit", "speedup", "efficiency_pct", "missing", "communication_pct", "runs"),
    "compare": ("case_id", "variant", "figure", "unit", "ratio", "least", "most", "gpu_ns", "top"),
    "hotspots": (*_CASE_FIRST, "share_pct", "total_ns", "calls", "cumulative_pct", "kind", "phase"),
    "kernels": (*_CASE_FIRST, "time_ns", "share_pct", "launches", "sm_pct", "memory_pct", "achieved_occupancy_pct",
                "dram_bytes_per_s", "advice", "advice_speedup_pct"),
    "roofline": (*_CASE_FIRST, "share_pct", "level", "precision", "flop_per_s", "intensity", "roof_flop_per_s", "side"),
    "api": (*_CASE_FIRST, "share_pct", "total_ns", "calls", "cumulative_pct", "phase"),
    "copies": (*_CASE_FIRST, "total_ns", "total_bytes", "bytes_per_s", "calls", "phase"),
    "functions": (*_CASE_FIRST, "share_pct", "total_ns", "calls", "cumulative_pct"),
    "figures": ("case", "name", "median", "unit", "pass_name", "least", "most", "runs", "profiled"),
    "model": ("case_id", "measured_flop_per_s", "modelled_flop_per_s", "flop_per_s", "intensity", "missing"),
    "perturbation": ("case", "pass_name", "figure", "change_pct", "baseline", "profiled", "unit", "certain"),
}  # fmt: skip

IMPORTANT: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_OF_REPORTS)
IMPORTANT_IN_SUMMARIES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(_OF_SUMMARIES)

# whole numbers of which there can be more or fewer; all others without a unit name something, such as a process
COUNTS: Final = frozenset({
    "calls", "primitive_calls", "invocations", "matches", "iterations", "warmup", "steady", "gpu_ops", "med_gpu_ops",
    "launches", "measured", "runs", "baseline_runs",
})  # fmt: skip
