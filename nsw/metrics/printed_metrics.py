"""What a report prints as a metric -> the portable metric, and by what its value becomes the portable one.

A name of nvprof (`ipc`), a name of ncu on its raw page (`sm__warps_active.avg...`), a label of its details page
(`Achieved Occupancy`), or both (`Duration (gpu__time_duration.sum)`). Units become base units: byte, ns, and a second
below a slash. Portable metrics of several printed ones (FLOP, bytes, rates, stalls as shares) are computed of numbers
or of columns of them (numpy); what a division by zero gives is absent.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from nsw.metrics.catalogue import (
    LEVEL,
    Chip,
    Metric,
    evaluate_expression,
    find_metric,
    metric_names_in_expression,
    metrics_by_name,
)
from nsw.metrics.ncu_names import is_ncu_style_name
from nsw.resources import csv_rows

Base = Literal[1000, 1024]

_SECONDS: Final[Mapping[str, float]] = {
    **dict.fromkeys(("ns", "nsecond"), 1e-9),
    **dict.fromkeys(("us", "usecond"), 1e-6),
    **dict.fromkeys(("ms", "msecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
}
_PREFIXES: Final = "kmgtpe"
_SIZE: Final = re.compile(r"([kmgtpe]?)(?:b|byte|bytes)\Z", re.IGNORECASE)
_CLOCK: Final = re.compile(r"([kmgt]?)hz\Z", re.IGNORECASE)


class Unit(NamedTuple):
    """What a unit measures, and how many base units it is."""

    kind: str
    factor: float


@cache
def parse_unit(text: str, base: Base = 1000) -> Unit:
    """`Gbyte/second` as (byte/s, 1e9), `us` as (ns, 1000), `Ghz` as (cycle/s, 1e9), `inst` as (inst, 1).

    Args:
        text: As printed.
        base: What the tool's K of a size is: 1000 of ncu, 1024 of nvprof.
    """
    over, slash, under = text.strip().partition("/")
    top = _parse_unit_factor(over.strip(), base)
    if not slash:
        return top
    name = under.strip().lower()
    if name in _SECONDS:
        return Unit(f"{top.kind}/s", top.factor / _SECONDS[name])
    bottom = _parse_unit_factor(under.strip(), base)
    return Unit(f"{top.kind}/{bottom.kind}", top.factor / bottom.factor)


def _parse_unit_factor(text: str, base: Base) -> Unit:
    lower = text.lower()
    if lower in _SECONDS:
        return Unit("ns", round(_SECONDS[lower] * 1e9))
    if match := _SIZE.match(text):
        return Unit("byte", float(base ** (_PREFIXES.index(match[1].lower()) + 1 if match[1] else 0)))
    if match := _CLOCK.match(text):
        return Unit("cycle/s", float(1000 ** (_PREFIXES.index(match[1].lower()) + 1 if match[1] else 0)))
    return Unit(lower, 1.0)


LEVEL_WIDTH: Final = 5.0  # % on each side of the middle of a level


@dataclass(frozen=True, slots=True)
class PortableMetric:
    """A printed metric as a portable one.

    Attributes:
        name: The portable metric.
        unit: Its unit.
        factor: The printed value times this is the portable one.
        is_level: The printed value is one of nvprof's levels instead; see `utilization_level_percent`.
        rank: 0: this is how the metric is asked for; above: another that says the same, to be left aside where the
            report has the first.
    """

    name: str
    unit: str
    factor: float
    is_level: bool = False
    rank: int = 0


def utilization_level_percent(level: float) -> tuple[float, float | None]:
    """The middle and half the width, in %, of one of nvprof's levels 0 (idle) to 10."""
    return (10 * level - LEVEL_WIDTH, LEVEL_WIDTH) if level > 0 else (0.0, None)


def utilization_level(percent: float) -> float:
    """The level of nvprof, 0 to 10, of which a share in % is the middle."""
    return (percent + LEVEL_WIDTH) / 10 if percent > 0 else 0.0


def portable_metric(printed_name: str, unit: str | None, base: Base = 1000) -> PortableMetric | None:
    """The portable metric of a printed name and unit; None: there is none.

    Args:
        printed_name: The metric's name in the report.
        unit: Its unit there; None or empty: it has none.
        base: What the tool's K is, see `parse_unit`.
    """
    printed_unit = parse_unit(unit or "", base)
    for source in _sources_by_printed_name().get(printed_name) or _sources_by_printed_name().get(
        ncu_name_of_label(printed_name), ()
    ):
        if source.times == LEVEL and printed_unit.kind != "%":
            return PortableMetric(source.metric.name, source.metric.unit, 1.0, is_level=True)
        if source.is_label and unit and not source.times and printed_unit.kind != parse_unit(source.metric.unit).kind:
            continue  # the same label with another unit is another metric
        times = 1.0 if source.times in {"", LEVEL} else float(source.times)
        return PortableMetric(source.metric.name, source.metric.unit, printed_unit.factor * times, rank=source.rank)
    return None


def best_portable_metrics(
    printed_names_and_units: Collection[tuple[str, str | None]], base: Base = 1000
) -> dict[tuple[str, str | None], PortableMetric]:
    """The portable metrics of all names and units of a report, each portable one by its best source alone."""
    portable_metrics = {key: to for key in printed_names_and_units if (to := portable_metric(*key, base)) is not None}
    best: dict[str, int] = {}
    for to in portable_metrics.values():
        best[to.name] = min(to.rank, best.get(to.name, to.rank))
    return {key: to for key, to in portable_metrics.items() if to.rank == best[to.name]}


@dataclass(frozen=True, slots=True)
class _Source:
    metric: Metric
    times: str
    rank: int
    is_label: bool = False


@cache
def ncu_names_with_chip_dependent_factor() -> frozenset[str]:
    """Names of ncu that stand for one portable metric by a factor that differs between chips."""
    factors: dict[str, set[str]] = {}
    for metric in metrics_by_name().values():
        for _, name, factor in _single_name_expressions(metric):
            factors.setdefault(name, set()).add(f"{metric.name} {factor}")
    return frozenset(
        name
        for name, different in factors.items()
        if len({text.split()[1] for text in different}) > 1 and len({text.split()[0] for text in different}) == 1
    )


def _single_name_expressions(metric: Metric) -> Iterator[tuple[int, str, float]]:
    """The expressions of one name only: which alternative it is, the name, and the factor."""
    for measured in (metric.ncu, *metric.by_chip.values()):
        for rank, expression in enumerate(measured.expressions):
            names = metric_names_in_expression(expression)
            if len(names) == 1:
                yield rank, names[0], evaluate_expression(expression, {names[0]: 1.0})


@cache
def _sources_by_printed_name() -> Mapping[str, tuple[_Source, ...]]:
    """Every name and label that stands for one portable metric alone, up to a factor."""
    sources: dict[str, tuple[_Source, ...]] = {}
    by_name = sorted(metrics_by_name().values(), key=lambda m: m.name)
    for metric in by_name:
        for rank, name, factor in _single_name_expressions(metric):
            if name not in ncu_names_with_chip_dependent_factor():
                sources.setdefault(name, (_Source(metric, str(factor), rank),))
    for metric in by_name:
        if metric.nvprof and metric.nvprof.isidentifier():
            sources[metric.nvprof] = (_Source(metric, metric.times, 1),)  # ncu's source page has an inst_executed too
    for row in csv_rows("metrics/data/labels.csv"):
        source = _Source(metrics_by_name()[row["name"]], row["times"], int(row["rank"]), is_label=True)
        sources[row["label"]] = (*sources.get(row["label"], ()), source)
    return sources


# labels of the details page with all details: `L1: Data Pipe Lsu Wavefronts`, `Stall Long Scoreboard`
_UNITS_IN_LABELS: Final = {"SM": "sm", "L1": "l1tex", "L2": "lts", "DRAM": "dram", "GPU": "gpu", "IDC": "idc"}
_STALL: Final = "Stall "


def ncu_name_of_label(label: str) -> str:
    """The name of ncu that a label of its details page stands for, or that it is; empty where there is none.

    `Duration (gpu__time_duration.sum)`, as --print-metric-name both prints it, has the name in it.
    """
    if label.endswith(")") and "__" in label:
        return label.rpartition(" (")[2].removesuffix(")")
    if is_ncu_style_name(label):
        return label
    unit, colon, words = label.partition(": ")
    if colon and unit in _UNITS_IN_LABELS:
        words = words.lower().replace(" ", "_")
        return f"{_UNITS_IN_LABELS[unit]}__{words}.avg.pct_of_peak_sustained_elapsed"
    if label.startswith(_STALL):
        reason = label.removeprefix(_STALL).lower().replace(" ", "_")
        return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    return "smsp__average_warp_latency_per_inst_issued.ratio" if label == _LATENCY else ""


_LATENCY: Final = "Warp Cycles Per Issued Instruction"


def portable_name(tool_metric_name: str) -> str | None:
    """The portable name of a metric that a tool calls `tool_metric_name`; None: there is none."""
    metric = find_metric(tool_metric_name)
    if metric is not None:
        return metric.name
    return next(
        (source.metric.name for source in _sources_by_printed_name().get(tool_metric_name, ()) if not source.is_label),
        None,
    )


@cache
def ncu_names_not_portable_alone() -> frozenset[str]:
    """The names of ncu that are in an expression with others, or that mean another number on another chip."""
    together = frozenset(
        name
        for metric in metrics_by_name().values()
        for measured in (metric.ncu, *metric.by_chip.values())
        for expression in measured.expressions
        if len(metric_names_in_expression(expression)) > 1
        for name in metric_names_in_expression(expression)
    )
    return together | ncu_names_with_chip_dependent_factor()


def compute_portable_metrics(values_by_name: Mapping[str, Any], chip: Chip | None) -> Iterator[tuple[str, Any]]:
    """Portable metrics whose components are all there, each with its value, by the first expression that can be had.

    Args:
        values_by_name: By names of ncu in base units, and by portable names, which nvprof's expressions are over.
        chip: The chip, whose expressions go first; where it is not known, those of most chips do.
    """
    for metric in metrics_by_name().values():
        expression = next(
            (
                e
                for e in _expressions_to_compute(metric, chip)
                if all(n in values_by_name for n in metric_names_in_expression(e))
            ),
            None,
        )
        if expression is not None:
            yield metric.name, evaluate_expression(expression, values_by_name)


def _expressions_to_compute(metric: Metric, chip: Chip | None) -> Iterator[str]:
    """Those with several components or of a chip: what one component alone gives is filled in where it is read."""
    measured = (metric.measured_on(chip),) if chip is not None else (metric.ncu, *metric.by_chip.values())
    for measurement in measured:
        for expression in measurement.expressions:
            names = metric_names_in_expression(expression)
            if len(names) > 1 or names[0] in ncu_names_with_chip_dependent_factor():
                yield expression
    if metric.nvprof and not metric.nvprof.isidentifier():
        yield metric.nvprof
