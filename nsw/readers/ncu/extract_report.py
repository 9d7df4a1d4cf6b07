"""Run as a program: prints a report's launches by NVIDIA's `ncu_report`, one JSON object a line.

A process of its own, for the native library may crash on a damaged file. It imports nothing of nsw.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any

_TYPES = {1: "INF", 2: "OPT", 3: "WRN", 4: "ERR"}  # MsgType; 0 is no message
_SPEEDUPS = {1: "local", 2: "global"}
_HELPER = re.compile(r"(?:group|breakdown|regex):")  # how metrics were asked for; ncu's own pages leave them out
# links in messages, shown as ncu's command line shows them
_SECTION = re.compile(r"@(?:section|source):[^:@]*:([^@]*)@")
_URL = re.compile(r"@url:([^@]*?):(https?:[^@]*)@")


def print_launches_as_json(path: str) -> None:
    """Print every action of every range of the report."""
    import ncu_report

    report = ncu_report.load_report(path)
    number = 0
    for range_index in range(report.num_ranges()):
        actions = report.range_by_idx(range_index)
        for index in range(actions.num_actions()):
            print(json.dumps(_launch_as_json(actions.action_by_idx(index), number)))
            number += 1


def _launch_as_json(action: Any, number: int) -> dict[str, Any]:
    metrics = [_metric_fields(name, action[name]) for name in sorted(action.metric_names()) if not _HELPER.match(name)]
    metric_values = {name: text if text is not None else value for name, _, value, text in metrics}
    mangled = action.name(action.NameBase_MANGLED)
    # of a range ncu gives the mean size of the launches in it, which is no launch's
    sized = not (hasattr(action, "workload_type") and action.workload_type() == action.WorkloadType_RANGE)
    parts = [metric_values.get(f"device__attribute_compute_capability_{p}") for p in ("major", "minor")]
    return {
        "launch_id": number,
        "kernel": action.name(action.NameBase_DEMANGLED),
        "mangled_name": mangled if mangled.startswith("_Z") else None,
        "device": metric_values.get("launch__device_id"),
        "device_name": metric_values.get("device__attribute_display_name"),
        "compute_capability": None if None in parts else ".".join(str(int(p)) for p in parts if p is not None),
        "context": metric_values.get("launch__context_id"),
        "stream": metric_values.get("launch__stream_id"),
        "grid": _grid_or_block_size(metric_values, "launch__grid_dim_") if sized else None,
        "block_size": _grid_or_block_size(metric_values, "launch__block_dim_") if sized else None,
        "metrics": metrics,
        "rules": [r for r in map(_rule_fields, _rules_of_launch(action)) if r],
    }


def _metric_fields(name: str, metric: Any) -> tuple[str, str | None, float | None, str | None]:
    """Name, unit, number, text."""
    unit = metric.unit() if hasattr(metric, "unit") else None
    if hasattr(metric, "has_value") and not metric.has_value():
        return name, unit, None, None
    value = metric.value()
    if isinstance(value, str):
        return name, unit, None, value or None
    return name, unit, value if value is not None and math.isfinite(value) else None, None


def _grid_or_block_size(metric_values: dict[str, Any], prefix: str) -> str | None:
    parts = [metric_values.get(prefix + axis) for axis in "xyz"]
    return None if None in parts else "(" + ", ".join(str(int(p)) for p in parts if p is not None) + ")"


def _rules_of_launch(action: Any) -> list[dict[str, Any]]:
    return action.rule_results_as_dicts() if hasattr(action, "rule_results_as_dicts") else []


def _rule_fields(result: dict[str, Any]) -> dict[str, Any] | None:
    message = result.get("rule_message") or {}
    kind = _TYPES.get(int(message.get("type", 0)))
    if kind is None or not message.get("message"):
        return None
    gain = result.get("speedup_estimation") or {}
    text = _URL.sub(r"\1 (\2)", _SECTION.sub(r"\1", message["message"]))
    return {
        "section": result.get("section_identifier"),
        "rule": result.get("rule_identifier"),
        "type": kind,
        "message": text,
        "speedup_type": _SPEEDUPS.get(int(gain.get("type", 0))),
        "speedup_pct": gain.get("speedup"),
    }


if __name__ == "__main__":
    print_launches_as_json(sys.argv[1])
