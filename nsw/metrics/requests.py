"""What a pass's `metrics:` ask of each tool: portable names, groups, a tool's own names, ncu's sets and sections.

Which tool measures counters on which chip, and which of its versions; and whether what is asked for exists, on a chip
where it is known: faults with near misses and reasons.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from nsw.errors import did_you_mean, nearest
from nsw.metrics import ncu_names
from nsw.metrics.catalogue import (
    Chip,
    Metric,
    find_metric,
    metric_groups_by_name,
    metric_names_by_alias,
    metric_names_in_expression,
    metrics_by_name,
)
from nsw.resources import csv_rows

Tool = Literal["ncu", "nvprof"]
_Version = tuple[int, ...]
_FIRST_OF_NCU: Final = (7, 0)  # below, nvprof is the better tool even where an old ncu would do


@dataclass(frozen=True, slots=True)
class Support:
    """Versions of a tool that measure a range of compute capabilities; `last` None: the newest does."""

    tool: Tool
    lowest: tuple[int, int]
    highest: tuple[int, int]
    first: str
    last: str | None


@cache
def supported_chips_by_tool_version() -> tuple[Support, ...]:
    """What is known, oldest chips first."""
    return tuple(
        Support(
            as_tool(row["tool"]),
            _parse_capability(row["from_capability"]),
            _parse_capability(row["to_capability"]),
            row["first_version"],
            row["last_version"] or None,
        )
        for row in csv_rows("metrics/data/tools.csv")
    )


def as_tool(name: str) -> Tool:
    """A tool by its name, which is checked elsewhere."""
    return "ncu" if name == "ncu" else "nvprof"


def default_counters_tool(chip: Chip) -> Tool:
    """The tool that `auto` takes for counters: ncu from compute capability 7.0 on, nvprof below."""
    return "nvprof" if chip.capability is not None and chip.capability < _FIRST_OF_NCU else "ncu"


def counters_tools(chip: Chip | None) -> tuple[Tool, ...]:
    """The tools that measure counters on a chip in some version, the one of `auto` first; all where it is not known."""
    if chip is None:
        return ("ncu", "nvprof")
    first = default_counters_tool(chip)
    candidates: tuple[Tool, ...] = ("ncu", "nvprof")
    return (first, *(tool for tool in candidates if tool != first and _support_on_chip(tool, chip) is not None))


def unsupported_reason(tool: Tool, chip: Chip, version: str | None = None) -> str | None:
    """Why a tool, or this version of it, does not measure a chip and what to do; None: it does, or nobody knows.

    Args:
        tool: The tool.
        chip: The chip.
        version: As the tool prints it: `2024.2.0.0` of ncu, `12.4.127` of nvprof (the toolkit's).
    """
    supported = _support_on_chip(tool, chip)
    if supported is None:
        if chip.capability is None or (
            tool == "ncu" and chip.capability > max(s.highest for s in supported_chips_by_tool_version())
        ):
            return None
        other_tool = default_counters_tool(chip)
        name = "{}.{}".format(*chip.capability)
        alternative = f": {other_tool} does" if other_tool != tool else ""
        return f"{tool} does not measure counters on {chip.name} (compute capability {name}){alternative}"
    numbers = _parse_version_numbers(version)
    if not numbers:
        return None
    if numbers < _parse_version_numbers(supported.first):
        return f"{tool} {version} is older than {chip.name}: {tool} {supported.first} is the first that measures it"
    if supported.last is not None and numbers[: len(_parse_version_numbers(supported.last))] > _parse_version_numbers(
        supported.last
    ):
        return f"{tool} {version} no longer measures {chip.name}: {tool} {supported.last} is the last that does"
    return None


def _support_on_chip(tool: Tool, chip: Chip) -> Support | None:
    if chip.capability is None:
        return None
    return next(
        (s for s in supported_chips_by_tool_version() if s.tool == tool and s.lowest <= chip.capability <= s.highest),
        None,
    )


def _parse_capability(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _parse_version_numbers(version: str | None) -> _Version:
    match = re.match(r"\d+(?:\.\d+)*", version or "")
    return tuple(map(int, match[0].split("."))) if match else ()


SET, SECTION, EVENT = "set:", "section:", "event:"
ALL_METRICS: Final = "all"  # nvprof's word for all its metrics
ANALYSIS: Final = "analysis"  # nvprof's set of what the Visual Profiler's guided analysis needs
NO_EQUIVALENT: Final = "Nsight Compute has no equivalent"
NOT_IN_NVPROF: Final = "nvprof has no such metric"
RANGES: Final = frozenset({"range", "app-range"})  # replay modes
# in the names of metrics of patched instructions (smsp__sass_*, and the peaks sm__sass_*), which ncu refuses of a range
_PATCHED: Final = "__sass_"


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """What to ask of a tool.

    Attributes:
        metrics: The tool's own metric names, each once, in the order that they were asked for.
        events: nvprof's events (`--events`).
        sets: ncu's sets (`--set`), or nvprof's `analysis` (`--analysis-metrics`).
        sections: ncu's sections (`--section`).
        absent: Portable names that this tool or chip does not measure, each with why; those that only a group asked
            for are among them.
    """

    metrics: tuple[str, ...]
    events: tuple[str, ...]
    sets: tuple[str, ...]
    sections: tuple[str, ...]
    absent: Mapping[str, str]


def replay_refusal(replay: str, ncu_names: Iterable[str]) -> str | None:
    """Why ncu does not measure these names of its own under a replay mode; None: it does."""
    if replay in RANGES and any(_PATCHED in part for part in ncu_names):
        return f"replay: {replay} has no metrics of instructions"
    return None


def ncu_metric_request(names: Sequence[str], chip: Chip | None = None, replay: str = "kernel") -> MetricRequest:
    """What to ask of ncu.

    Args:
        names: What a recipe's `metrics` name.
        chip: The chip; None: the names that most chips have.
        replay: The replay mode.
    """
    requested: dict[str, None] = {}
    absent: dict[str, str] = {}
    for name, metric in _requested_metrics(names):
        measurement = metric.measured_on(chip) if metric is not None else None
        if measurement is not None and metric is not None and not measurement.expressions:
            absent[metric.name] = measurement.reason or NO_EQUIVALENT
            continue
        parts = (name,) if measurement is None else metric_names_in_expression(measurement.expressions[0])
        if reason := replay_refusal(replay, parts):
            absent[metric.name if metric is not None else name] = reason
        else:
            requested.update(dict.fromkeys(parts))
    absent |= {f"{EVENT}{name}": "ncu has no events" for name in _names_without_prefix(EVENT, names)}
    return MetricRequest(
        tuple(requested), (), _names_without_prefix(SET, names), _names_without_prefix(SECTION, names), absent
    )


def nvprof_metric_request(names: Sequence[str], chip: Chip | None = None) -> MetricRequest:  # noqa: ARG001  nvprof refuses by itself
    """What to ask of nvprof."""
    requested: dict[str, None] = {}
    absent: dict[str, str] = {}
    for name, metric in _requested_metrics(names):
        if metric is not None and metric.nvprof is None:
            absent[metric.name] = NOT_IN_NVPROF
        elif metric is None and ncu_names.is_ncu_style_name(name):
            absent[name] = "it is a name of Nsight Compute"
        elif metric is None or metric.nvprof is None:
            requested.setdefault(name)
        else:
            requested.update(dict.fromkeys(metric_names_in_expression(metric.nvprof)))
    sets = _names_without_prefix(SET, names)
    absent |= {f"{SET}{name}": "nvprof has no such set" for name in sets if name != ANALYSIS}
    absent |= {f"{SECTION}{name}": "nvprof has no sections" for name in _names_without_prefix(SECTION, names)}
    return MetricRequest(tuple(requested), _names_without_prefix(EVENT, names), tuple({ANALYSIS} & {*sets}), (), absent)


def requested_portable_names(names: Sequence[str]) -> tuple[str, ...]:
    """The portable names among those asked for, groups resolved, each once."""
    return tuple(dict.fromkeys(metric.name for _, metric in _requested_metrics(names) if metric is not None))


def _requested_metrics(names: Sequence[str]) -> Iterator[tuple[str, Metric | None]]:
    """Every metric asked for, with its entry in the catalogue; None: a tool's own name."""
    for name in names:
        if name.startswith((SET, SECTION, EVENT)):
            continue
        if (group := metric_groups_by_name().get(name)) is not None:
            yield from ((member, find_metric(member)) for member in group.metrics)
        else:
            yield name, find_metric(name)


def _names_without_prefix(prefix: str, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.removeprefix(prefix) for name in names if name.startswith(prefix)))


_SECTIONS_OF_OTHERS: Final = "one of your own or of another version goes into the pass's options"


@dataclass(frozen=True, slots=True)
class MetricFault:
    """A metric that cannot be had: its place among those asked for, why, and what to do."""

    index: int
    name: str
    message: str
    hint: str | None = None


def find_metric_faults(
    names: Sequence[str],
    chip: Chip | None,
    tool: Tool | None = None,
    *,
    site_names: Collection[str] | None = None,
    replay: str = "kernel",
) -> list[MetricFault]:
    """The faults of metrics that are asked for.

    Args:
        names: Portable names, groups, ncu's or nvprof's own names, `set:NAME`, `section:NAME`.
        chip: The chip they are for; None: not known, so only what no chip has is a fault.
        tool: The tool that will measure them; None: whichever fits.
        site_names: The base names that the site's own `ncu --query-metrics --chip` lists, instead of the shipped ones.
        replay: The pass's replay mode.
    """
    faults = (
        _metric_fault(name, chip, tool, site_names)
        or _second_set_fault(names, index)
        or _range_fault(name, chip, tool, replay)
        for index, name in enumerate(names)
    )
    return [MetricFault(index, names[index], *fault) for index, fault in enumerate(faults) if fault is not None]


_Fault = tuple[str, str | None]


def _metric_fault(name: str, chip: Chip | None, tool: Tool | None, site_names: Collection[str] | None) -> _Fault | None:
    if name in {ALL_METRICS, f"{SET}{ANALYSIS}"}:
        by_ncu = tool == "ncu" or (tool is None and chip is not None and chip.names is not None)
        return (f"{name} is a word of nvprof", "ncu's set:full measures most") if by_ncu else None
    for prefix, kind in ((SET, "set"), (SECTION, "section")):
        if name.startswith(prefix):
            return _listed_kind_fault(name.removeprefix(prefix), prefix, kind, tool)
    if name.startswith(EVENT):
        return ("ncu has no events: " + name, "name metrics, or let nvprof measure") if tool == "ncu" else None
    if (group := metric_groups_by_name().get(name)) is not None:
        reasons = [
            _unmeasured_reason(metric, chip, tool)
            for member in group.metrics
            if (metric := find_metric(member)) is not None
        ]
        if all(reasons):
            return f"nothing of the group {name} is measured {_on_chip_or_by_tool(chip, tool)}: {reasons[0]}", None
        return None
    metric = find_metric(name)
    if metric is not None:
        reason = _unmeasured_reason(metric, chip, tool) or _not_listed_by_site_reason(metric, chip, site_names)
        return (
            None
            if reason is None
            else (
                f"{name} is not measured {_on_chip_or_by_tool(chip, tool)}: {reason}",
                _nearest_metric(metric, chip, tool),
            )
        )
    if ncu_names.is_ncu_style_name(name):
        return _ncu_name_fault(name, chip, tool, site_names)
    return _unknown_name_fault(name)


def _second_set_fault(names: Sequence[str], index: int) -> _Fault | None:
    """That ncu takes one set; sections may stand beside it."""
    before = [name for name in names[:index] if name.startswith(SET)]
    if not names[index].startswith(SET) or not before or names[index] == before[0]:
        return None
    return f"ncu takes one set, and {before[0]} is named before", "name sections (section:NAME) or metrics beside it"


def _range_fault(name: str, chip: Chip | None, tool: Tool | None, replay: str) -> _Fault | None:
    """That ncu measures a range as a whole, and so no metric of instructions."""
    if tool == "nvprof" or replay not in RANGES or name.startswith((SET, SECTION)):
        return None
    request = ncu_metric_request([name], chip, replay)
    if request.metrics or not request.absent:
        return None
    subject = f"nothing of the group {name}" if name in metric_groups_by_name() else name
    verb = "is measured" if name in metric_groups_by_name() else "is not measured"
    return f"{subject} {verb}: {next(iter(request.absent.values()))}", "replay: kernel measures it, launch by launch"


def _listed_kind_fault(name: str, prefix: str, kind: str, tool: Tool | None) -> _Fault | None:
    if tool == "nvprof":
        return f"nvprof has no {kind}s: {prefix}{name}", "name metrics or groups, or let ncu measure"
    names = tuple(row["name"] for row in csv_rows("metrics/data/ncu_sets.csv") if row["what"] == kind)
    if name in names:
        return None
    near = nearest(name, names)
    hint = f"did you mean {prefix}{near}?" if near else f"{kind}s: {', '.join(names)}"
    return f"ncu has no {kind} {name}", f"{hint}; {_SECTIONS_OF_OTHERS}"


def _unmeasured_reason(metric: Metric, chip: Chip | None, tool: Tool | None) -> str | None:
    """Why a metric is not measured there; None: it is, or it cannot be known."""
    measurement = metric.measured_on(chip)
    with_ncu = None if measurement.expressions else measurement.reason or NO_EQUIVALENT
    with_nvprof = None if metric.nvprof else NOT_IN_NVPROF
    if tool == "ncu":
        return with_ncu
    if tool == "nvprof":
        return with_nvprof
    if chip is None:
        return None
    return with_nvprof if chip.names is None else with_ncu


def _not_listed_by_site_reason(metric: Metric, chip: Chip | None, site_names: Collection[str] | None) -> str | None:
    """That the site's ncu does not list what a metric is computed from; None: it does, or was not asked."""
    computed_from = metric.measured_on(chip).expressions
    if site_names is None or not computed_from:
        return None
    parts = (part for part in metric_names_in_expression(computed_from[0]) if not ncu_names.is_made_by_ncu(part))
    lacking = [part for part in parts if ncu_names.split_base_and_suffix(part)[0] not in site_names]
    return f"the site's ncu does not list {', '.join(lacking)}" if lacking else None


def _nearest_metric(metric: Metric, chip: Chip | None, tool: Tool | None) -> str | None:
    """The metric of the same family that is there and has the nearest name."""
    family = [m for m in metrics_by_name().values() if m.family == metric.family and m.name != metric.name]
    alternative = nearest(metric.name, [m.name for m in family if _unmeasured_reason(m, chip, tool) is None])
    return f"near it: {alternative}" if alternative else None


def _ncu_name_fault(
    name: str, chip: Chip | None, tool: Tool | None, site_names: Collection[str] | None
) -> _Fault | None:
    if tool == "nvprof" or (chip is not None and chip.names is None):
        return f"{name} is a name of Nsight Compute, which does not measure {_on_chip_or_by_tool(chip, 'nvprof')}", None
    if ncu_names.is_made_by_ncu(name):
        return None
    base, suffix = ncu_names.split_base_and_suffix(name)
    names = site_names if site_names is not None else ncu_names.base_names(chip)
    if base not in names:
        chips = ncu_names.chips_with_base_name(base)
        near = ncu_names.nearest_base_name(base, names)
        hint = f"did you mean {near}{'.' + suffix if suffix else ''}?" if near else None
        if chips and chip is not None:
            if site_names is not None and base in ncu_names.base_names(chip):
                return f"the site's ncu does not list {base} for {chip.name}", hint
            return f"{chip.name} has no metric {base}; {', '.join(chips)} have it", hint
        return f"no chip has a metric {base}" if chip is None else f"{chip.name} has no metric {base}", hint
    if not ncu_names.base_name_takes_suffix(base, suffix):
        return f"{base} does not take .{suffix}", f"it takes {ncu_names.allowed_suffixes(base)}"
    return None


def _unknown_name_fault(name: str) -> _Fault:
    if any(metric.family == name for metric in metrics_by_name().values()):
        return f"{name} is a family of metrics, and no group", f"`nsw metrics ls {name}` lists them"
    words = [*metrics_by_name(), *metric_groups_by_name(), *metric_names_by_alias()]
    hint = did_you_mean(name, words) or "`nsw metrics ls` lists the metrics and groups"
    return f"there is no metric {name}", hint


def _on_chip_or_by_tool(chip: Chip | None, tool: str | None) -> str:
    return f"on {chip.name}" if chip is not None else f"by {tool}" if tool else "anywhere"


MEASURED: Final = "gh100"
_UNKNOWN: Final = {"set": 40, "section": 15}  # of one that was not measured
_SHARED: Final = 0.65  # of the sum: what groups need together, where that was not measured


@dataclass(frozen=True, slots=True)
class NcuOverhead:
    """What a run under ncu takes beside its program: to start and export, a launch, a pass of a launch."""

    start: float
    launch: float
    metrics_pass: float  # where metrics are collected alone
    sections_pass: float  # where sections or sets are collected, whose rules are evaluated too

    def total_s(self, launch_count: float, passes_per_launch: float, *, sections: bool) -> float:
        """The seconds of so many launches of kernels that take no time themselves.

        Args:
            launch_count: How many launches there are.
            passes_per_launch: How often each is run.
            sections: Whether sections or sets are collected.
        """
        each = self.sections_pass if sections else self.metrics_pass
        return self.start + launch_count * (self.launch + passes_per_launch * each)


EXPECTED: Final = NcuOverhead(6.0, 0.01, 0.02, 0.04)
AT_MOST: Final = NcuOverhead(12.0, 0.03, 0.028, 0.056)


@dataclass(frozen=True, slots=True)
class PassEstimate:
    """How many passes of a launch are expected and how many there are at most; whether that was measured on this chip.

    `sections`: sections or sets are collected, not metrics alone.
    """

    expected: int
    at_most: int
    measured: bool
    sections: bool

    def expected_overhead_s(self, launch_count: float) -> float:
        """The expected seconds beside the program, of launches of kernels that take no time themselves."""
        return EXPECTED.total_s(launch_count, self.expected, sections=self.sections)

    def maximum_overhead_s(self, launch_count: float) -> float:
        """The same as a bound."""
        return AT_MOST.total_s(launch_count, self.at_most, sections=self.sections)


def estimate_passes(names: Sequence[str], chip: Chip | None) -> PassEstimate:
    """The passes of what a recipe's `metrics` name.

    What was measured together counts with its passes together. Of other combinations the sum is a bound.

    Args:
        names: Portable names, groups, ncu's own names, set:NAME, section:NAME.
        chip: The chip; None: not known.
    """
    requested = list(dict.fromkeys(names)) or [""]
    alone = [_passes_of_name(name) for name in requested]
    together = [
        count + sum(each for name, each in zip(requested, alone, strict=True) if name not in joined_names)
        for joined_names, count in _pass_counts_of_joint_names().items()
    ]
    at_most = min(sum(alone), *together)
    expected = at_most if at_most in together else max(*alone, round(_SHARED * at_most))
    sections = any(name.startswith((SET, SECTION)) for name in requested)
    return PassEstimate(expected, at_most, chip is not None and chip.name == MEASURED, sections)


def _passes_of_name(name: str) -> int:
    for prefix, kind in ((SET, "set"), (SECTION, "section")):
        if name.startswith(prefix):
            return _measured_pass_counts().get((kind, name.removeprefix(prefix)), _UNKNOWN[kind])
    return _measured_pass_counts().get(("group", name)) or _measured_pass_counts().get(("metric", name)) or 1


@cache
def _measured_pass_counts() -> Mapping[tuple[str, str], int]:
    return {(row["what"], row["name"]): int(row[MEASURED]) for row in csv_rows("metrics/data/passes.csv")}


@cache
def _pass_counts_of_joint_names() -> Mapping[frozenset[str], int]:
    """Passes of names that were measured in one run: rows `together`, whose names are joined by +."""
    return {
        frozenset(name.split("+")): count
        for (kind, name), count in _measured_pass_counts().items()
        if kind == "together"
    }
