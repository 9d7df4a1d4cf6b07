"""Metrics that a counters pass asked for and its report lacks: which, of how many kernels, and why where that is known.

ncu leaves out a metric that it does not have without a word and with exit status 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.metrics import Chip, expressions, find, find_chip, for_ncu, for_nvprof, ncu_names
from nsw.metrics.requests import ALL_METRICS, portable_names, refused_of
from nsw.wording import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


_SHOWN: Final = 4  # names of metrics or kernels in a sentence
_HINT: Final = "`nsw metrics check NAME --chip CHIP` checks a name; `ncu --query-metrics` lists what the site's ncu has"


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A metric that is absent, or absent for some kernels."""

    name: str
    without: tuple[str, ...]
    kernels: int
    why: str


def unmeasured(
    asked: Sequence[str],
    tool: str,
    chip: str | None,
    replay: str,
    metrics: Iterable[Mapping[str, Any]],
    launches: Iterable[Mapping[str, Any]],
) -> list[Unmeasured]:
    """The metrics of a pass that its report does not have for every kernel.

    Args:
        asked: The pass's `metrics`; sets and sections name no metric and are not checked.
        tool: ncu or nvprof.
        chip: The site's chip, by which the tool was asked; None: not known.
        replay: The pass's replay mode.
        metrics: The rows of table metrics of the run.
        launches: The rows of table launches of the run, which may name the chip.
    """
    given, empty = _given(metrics)
    rows = list(launches)
    kernels = {str(row["kernel"]) for row in rows if row.get("kernel")} | {k for some in given.values() for k in some}
    kernels |= {kernel for some in empty.values() for kernel in some}
    if not kernels:
        return []  # nothing was profiled, which is an error of its own
    at = _chip(rows) or find_chip(chip)
    found = []
    for name, parts in _wanted(asked, tool, find_chip(chip)):
        there = given.get(name, set()) | set.intersection(*(_of(part, given) for part in parts))
        if without := kernels - there:
            why = _why(parts, tool, at, replay, without, {part: _of(part, empty) for part in parts})
            found.append(Unmeasured(name, tuple(sorted(without)), len(kernels), why))
    return found


def sentences(found: Sequence[Unmeasured]) -> list[tuple[str, str]]:
    """A sentence and a hint for each group of metrics that lack the same kernels for the same reason."""
    groups: dict[tuple[tuple[str, ...], int, str], list[str]] = {}
    for one in found:
        groups.setdefault((one.without, one.kernels, one.why), []).append(one.name)
    told = []
    for (without, kernels, why), names in groups.items():
        of = f"all {kernels} kernels" if len(without) == kernels else f"{len(without)} of {kernels} kernels"
        which = "" if len(without) == kernels else f", such as {without[0]}"
        told.append((f"metric missing: {first_of(names, _SHOWN)}, of {of}{which}: {why}", _HINT))
    return told


def _given(metrics: Iterable[Mapping[str, Any]]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The kernels of each metric name, printed and portable: those with a value, those without one."""
    given: dict[str, set[str]] = {}
    empty: dict[str, set[str]] = {}
    for row in metrics:
        kernel = str(row.get("kernel") or "")
        has = any(row.get(column) is not None for column in ("value", "avg", "text"))
        for name in (row.get("metric"), row.get("portable")):
            if name:
                (given if has else empty).setdefault(str(name), set()).add(kernel)
    return given, empty


def _of(part: str, by_name: Mapping[str, set[str]]) -> set[str]:
    """The kernels with a metric; a base name stands for all its suffixes."""
    found = by_name.get(part)
    if found is not None:
        return found
    return {kernel for name, some in by_name.items() if name.startswith(f"{part}.") for kernel in some}


def _wanted(asked: Sequence[str], tool: str, chip: Chip | None) -> list[tuple[str, tuple[str, ...]]]:
    """Each metric that the tool was asked for, with the tool's own names that it is computed from."""
    request = (for_nvprof if tool == "nvprof" else for_ncu)(asked, chip)
    wanted: dict[str, tuple[str, ...]] = {}
    for name in portable_names(asked):
        metric = find(name)
        if metric is None or name in request.absent:
            continue
        text = metric.nvprof if tool == "nvprof" else metric.on(chip).expressions[0]
        if text:
            wanted[name] = expressions.names(text)
    covered = {part for parts in wanted.values() for part in parts}
    own = [name for name in (*request.metrics, *request.events) if name not in covered and name != ALL_METRICS]
    return [*wanted.items(), *((name, (name,)) for name in own)]


def _chip(launches: Iterable[Mapping[str, Any]]) -> Chip | None:
    """The chip that the report names; None: it names none, or several."""
    named = {(row.get("device_name"), row.get("compute_capability")) for row in launches}
    if len(named) != 1:
        return None
    device, capability = named.pop()
    return find_chip(device) or find_chip(capability)


def _why(
    parts: Sequence[str], tool: str, chip: Chip | None, replay: str, without: set[str], empty: Mapping[str, set[str]]
) -> str:
    if tool == "ncu" and chip is not None and chip.names is not None:
        known = ncu_names.base_names(chip)
        absent = [p for p in parts if not ncu_names.is_own(p) and ncu_names.split(p)[0] not in known]
        if absent:
            return f"{chip.name} has no metric {first_of(absent, _SHOWN)}"
    if any(some & without for some in empty.values()):
        return f"{tool} printed no value"
    return refused_of(replay, parts) or f"{tool} left it out and gave no reason"
