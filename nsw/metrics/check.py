"""Whether metrics that are asked for exist, on a chip where it is known: faults with near misses and reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nsw.errors import did_you_mean, nearest
from nsw.metrics import ncu_names
from nsw.metrics.catalogue import Metric, aliases, catalogue, find, groups
from nsw.metrics.data_files import rows
from nsw.metrics.expressions import names as names_of
from nsw.metrics.requests import ALL, ANALYSIS, EVENT, NO_EQUIVALENT, NOT_IN_NVPROF, RANGES, SECTION, SET, for_ncu

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from nsw.metrics.chips import Chip
    from nsw.metrics.tools import Tool

_SECTIONS_OF_OTHERS: Final = "one of your own or of another version goes into the pass's options"


@dataclass(frozen=True, slots=True)
class MetricFault:
    """A metric that cannot be had: its place among those asked for, why, and what to do."""

    index: int
    name: str
    message: str
    hint: str | None = None


def check(
    names: Sequence[str], chip: Chip | None, tool: Tool | None = None, *, known: Collection[str] | None = None,
    replay: str = "kernel",
) -> list[MetricFault]:  # fmt: skip
    """The faults of metrics that are asked for.

    Args:
        names: Portable names, groups, ncu's or nvprof's own names, `set:NAME`, `section:NAME`.
        chip: The chip they are for; None: not known, so only what no chip has is a fault.
        tool: The tool that will measure them; None: whichever fits.
        known: The base names that the site's own `ncu --query-metrics --chip` lists, instead of the shipped ones.
        replay: The pass's replay mode.
    """
    faults = (
        _fault(name, chip, tool, known) or _second_set(names, index) or _of_range(name, chip, tool, replay)
        for index, name in enumerate(names)
    )
    return [MetricFault(index, names[index], *fault) for index, fault in enumerate(faults) if fault is not None]


_Fault = tuple[str, str | None]


def _fault(name: str, chip: Chip | None, tool: Tool | None, known: Collection[str] | None) -> _Fault | None:
    if name in {ALL, f"{SET}{ANALYSIS}"}:
        by_ncu = tool == "ncu" or (tool is None and chip is not None and chip.names is not None)
        return (f"{name} is a word of nvprof", "ncu's set:full measures most") if by_ncu else None
    for prefix, what, there in ((SET, "set", _sets()), (SECTION, "section", _sections())):
        if name.startswith(prefix):
            return _of_list(name.removeprefix(prefix), prefix, what, there, tool)
    if name.startswith(EVENT):
        return ("ncu has no events: " + name, "name metrics, or let nvprof measure") if tool == "ncu" else None
    if (group := groups().get(name)) is not None:
        reasons = [_absent(metric, chip, tool) for member in group.metrics if (metric := find(member)) is not None]
        if all(reasons):
            return f"nothing of the group {name} is measured {_on(chip, tool)}: {reasons[0]}", None
        return None
    metric = find(name)
    if metric is not None:
        why = _absent(metric, chip, tool) or _not_listed(metric, chip, known)
        return (
            None if why is None else (f"{name} is not measured {_on(chip, tool)}: {why}", _instead(metric, chip, tool))
        )
    if ncu_names.is_raw(name):
        return _of_ncu(name, chip, tool, known)
    return _unknown(name)


def _second_set(names: Sequence[str], index: int) -> _Fault | None:
    """That ncu takes one set; sections may stand beside it."""
    before = [name for name in names[:index] if name.startswith(SET)]
    if not names[index].startswith(SET) or not before or names[index] == before[0]:
        return None
    return f"ncu takes one set, and {before[0]} is named before", "name sections (section:NAME) or metrics beside it"


def _of_range(name: str, chip: Chip | None, tool: Tool | None, replay: str) -> _Fault | None:
    """That ncu measures a range as a whole, and so no metric of instructions."""
    if tool == "nvprof" or replay not in RANGES or name.startswith((SET, SECTION)):
        return None
    asked = for_ncu([name], chip, replay)
    if asked.metrics or not asked.absent:
        return None
    what = f"nothing of the group {name}" if name in groups() else name
    verb = "is measured" if name in groups() else "is not measured"
    return f"{what} {verb}: {next(iter(asked.absent.values()))}", "replay: kernel measures it, launch by launch"


def _of_list(name: str, prefix: str, what: str, there: tuple[str, ...], tool: Tool | None) -> _Fault | None:
    if tool == "nvprof":
        return f"nvprof has no {what}s: {prefix}{name}", "name metrics or groups, or let ncu measure"
    if name in there:
        return None
    near = nearest(name, there)
    hint = f"did you mean {prefix}{near}?" if near else f"{what}s: {', '.join(there)}"
    return f"ncu has no {what} {name}", f"{hint}; {_SECTIONS_OF_OTHERS}"


def _absent(metric: Metric, chip: Chip | None, tool: Tool | None) -> str | None:
    """Why a metric is not measured there; None: it is, or it cannot be known."""
    how = metric.on(chip)
    with_ncu = None if how.expressions else how.why or NO_EQUIVALENT
    with_nvprof = None if metric.nvprof else NOT_IN_NVPROF
    if tool == "ncu":
        return with_ncu
    if tool == "nvprof":
        return with_nvprof
    if chip is None:
        return None
    return with_nvprof if chip.names is None else with_ncu


def _not_listed(metric: Metric, chip: Chip | None, known: Collection[str] | None) -> str | None:
    """That the site's ncu does not list what a metric is computed from; None: it does, or was not asked."""
    expressions = metric.on(chip).expressions
    if known is None or not expressions:
        return None
    parts = (part for part in names_of(expressions[0]) if not ncu_names.is_own(part))
    lacking = [part for part in parts if ncu_names.split(part)[0] not in known]
    return f"the site's ncu does not list {', '.join(lacking)}" if lacking else None


def _instead(metric: Metric, chip: Chip | None, tool: Tool | None) -> str | None:
    """The metric of the same family that is there and has the nearest name."""
    others = [m for m in catalogue().values() if m.family == metric.family and m.name != metric.name]
    found = nearest(metric.name, [m.name for m in others if _absent(m, chip, tool) is None])
    return f"near it: {found}" if found else None


def _of_ncu(name: str, chip: Chip | None, tool: Tool | None, known: Collection[str] | None) -> _Fault | None:
    if tool == "nvprof" or (chip is not None and chip.names is None):
        return f"{name} is a name of Nsight Compute, which does not measure {_on(chip, 'nvprof')}", None
    if ncu_names.is_own(name):
        return None
    base, suffix = ncu_names.split(name)
    there = known if known is not None else ncu_names.base_names(chip)
    if base not in there:
        chips = ncu_names.chips_with(base)
        near = nearest(base, there)
        hint = f"did you mean {near}{'.' + suffix if suffix else ''}?" if near else None
        if chips and chip is not None:
            if known is not None and base in ncu_names.base_names(chip):
                return f"the site's ncu does not list {base} for {chip.name}", hint
            return f"{chip.name} has no metric {base}; {', '.join(chips)} have it", hint
        return f"no chip has a metric {base}" if chip is None else f"{chip.name} has no metric {base}", hint
    if not ncu_names.is_suffix(base, suffix):
        return f"{base} does not take .{suffix}", f"it takes {ncu_names.suffixes_of(base)}"
    return None


def _unknown(name: str) -> _Fault:
    if any(metric.family == name for metric in catalogue().values()):
        return f"{name} is a family of metrics, and no group", f"`nsw metrics ls {name}` lists them"
    words = [*catalogue(), *groups(), *aliases()]
    hint = did_you_mean(name, words) or "`nsw metrics ls` lists the metrics and groups"
    return f"there is no metric {name}", hint


def _on(chip: Chip | None, tool: str | None) -> str:
    return f"on {chip.name}" if chip is not None else f"by {tool}" if tool else "anywhere"


def _sets() -> tuple[str, ...]:
    return tuple(row["name"] for row in rows("ncu_sets.csv") if row["what"] == "set")


def _sections() -> tuple[str, ...]:
    return tuple(row["name"] for row in rows("ncu_sets.csv") if row["what"] == "section")
