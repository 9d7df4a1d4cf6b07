"""Metrics that a counters pass asked for and its report lacks: which, of how many kernels, and why where that is known.

ncu leaves out a metric that it does not have without a word and with exit status 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nsw.analysis.groups import group_by
from nsw.metrics import Chip, find_chip, find_metric, ncu_metric_request, ncu_names, nvprof_metric_request
from nsw.metrics.catalogue import metric_names_in_expression
from nsw.metrics.requests import ALL_METRICS, replay_refusal, requested_portable_names
from nsw.wording import first_names

_MAX_NAMES: Final = 4  # names of metrics or kernels in a sentence
_HINT: Final = "`nsw metrics check NAME --chip CHIP` checks a name; `ncu --query-metrics` lists what the site's ncu has"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A metric that is absent, or absent for some kernels."""

    name: str
    without: tuple[str, ...]
    kernels: int
    reason: str


def find_unmeasured_metrics(
    requested: Sequence[str],
    tool: str,
    chip: str | None,
    replay: str,
    metrics: Iterable[Mapping[str, Any]],
    launches: Iterable[Mapping[str, Any]],
) -> list[Unmeasured]:
    """The metrics of a pass that its report does not have for every kernel.

    Args:
        requested: The pass's `metrics`; sets and sections name no metric and are not checked.
        tool: ncu or nvprof.
        chip: The site's chip, by which the tool was asked; None: not known.
        replay: The pass's replay mode.
        metrics: The rows of table metrics of the run.
        launches: The rows of table launches of the run, which may name the chip.
    """
    kernels_with_value, empty = _kernels_by_metric(metrics)
    rows = list(launches)
    kernels = {str(row["kernel"]) for row in rows if row.get("kernel")} | {
        k for metric_kernels in kernels_with_value.values() for k in metric_kernels
    }
    kernels |= {kernel for metric_kernels in empty.values() for kernel in metric_kernels}
    if not kernels:
        return []  # nothing was profiled, which is an error of its own
    at = _only_chip(rows) or find_chip(chip)
    missing_metrics = []
    for name, parts in _requested_metrics(requested, tool, find_chip(chip)):
        measured_kernels = kernels_with_value.get(name, set()) | set.intersection(
            *(_kernels_with_metric(part, kernels_with_value) for part in parts)
        )
        if without := kernels - measured_kernels:
            reason = _absence_reason(
                parts, tool, at, replay, without, {part: _kernels_with_metric(part, empty) for part in parts}
            )
            missing_metrics.append(Unmeasured(name, tuple(sorted(without)), len(kernels), reason))
    return missing_metrics


def unmeasured_metric_sentences(missing_metrics: Sequence[Unmeasured]) -> list[tuple[str, str]]:
    """A sentence and a hint for each group of metrics that lack the same kernels for the same reason."""
    messages = []
    groups = group_by(missing_metrics, lambda metric: (metric.without, metric.kernels, metric.reason))
    for (without, kernels, reason), metrics in groups.items():
        names = [metric.name for metric in metrics]
        kernel_count = f"all {kernels} kernels" if len(without) == kernels else f"{len(without)} of {kernels} kernels"
        example = "" if len(without) == kernels else f", such as {without[0]}"
        messages.append(
            (f"metric missing: {first_names(names, _MAX_NAMES)}, of {kernel_count}{example}: {reason}", _HINT)
        )
    return messages


def _kernels_by_metric(metrics: Iterable[Mapping[str, Any]]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The kernels of each metric name, printed and portable: those with a value, those without one."""
    with_value: dict[str, set[str]] = {}
    empty: dict[str, set[str]] = {}
    for row in metrics:
        kernel = str(row.get("kernel") or "")
        has = any(row.get(column) is not None for column in ("value", "avg", "text"))
        for name in (row.get("metric"), row.get("portable")):
            if name:
                (with_value if has else empty).setdefault(str(name), set()).add(kernel)
    return with_value, empty


def _kernels_with_metric(part: str, by_name: Mapping[str, set[str]]) -> set[str]:
    """The kernels with a metric; a base name stands for all its suffixes."""
    kernels = by_name.get(part)
    if kernels is not None:
        return kernels
    return {
        kernel for name, metric_kernels in by_name.items() if name.startswith(f"{part}.") for kernel in metric_kernels
    }


def _requested_metrics(requested: Sequence[str], tool: str, chip: Chip | None) -> list[tuple[str, tuple[str, ...]]]:
    """Each metric that the tool was asked for, with the tool's own names that it is computed from."""
    request = (nvprof_metric_request if tool == "nvprof" else ncu_metric_request)(requested, chip)
    names_by_metric: dict[str, tuple[str, ...]] = {}
    for name in requested_portable_names(requested):
        metric = find_metric(name)
        if metric is None or name in request.absent:
            continue
        text = metric.nvprof if tool == "nvprof" else metric.measured_on(chip).expressions[0]
        if text:
            names_by_metric[name] = metric_names_in_expression(text)
    covered = {part for parts in names_by_metric.values() for part in parts}
    tool_names = [name for name in (*request.metrics, *request.events) if name not in covered and name != ALL_METRICS]
    return [*names_by_metric.items(), *((name, (name,)) for name in tool_names)]


def _only_chip(launches: Iterable[Mapping[str, Any]]) -> Chip | None:
    """The chip that the report names; None: it names none, or several."""
    devices = {(row.get("device_name"), row.get("compute_capability")) for row in launches}
    if len(devices) != 1:
        return None
    device, capability = devices.pop()
    return find_chip(device) or find_chip(capability)


def _absence_reason(
    parts: Sequence[str], tool: str, chip: Chip | None, replay: str, without: set[str], empty: Mapping[str, set[str]]
) -> str:
    if tool == "ncu" and chip is not None and chip.names is not None:
        chip_metrics = ncu_names.base_names(chip)
        absent = [
            p
            for p in parts
            if not ncu_names.is_made_by_ncu(p) and ncu_names.split_base_and_suffix(p)[0] not in chip_metrics
        ]
        if absent:
            return f"{chip.name} has no metric {first_names(absent, _MAX_NAMES)}"
    if any(empty_kernels & without for empty_kernels in empty.values()):
        return f"{tool} printed no value"
    return replay_refusal(replay, parts) or f"{tool} left it out and gave no reason"
