"""How often a kernel is replayed for what a pass asks: a bound, by what was measured on a chip, else an estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from nsw.metrics import ncu_names
from nsw.metrics.catalogue import groups
from nsw.metrics.data_files import rows
from nsw.metrics.requests import SECTION, SET, for_ncu, for_nvprof

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.metrics.chips import Chip
    from nsw.metrics.tools import Tool

_ANY: Final = "*"
_MEASURED: Final = "measured"
# known without running anything: of the launch, the device, and ceilings
_NO_COUNTER: Final = ("launch__", "device__", "derived_")


@dataclass(frozen=True, slots=True)
class Price:
    """How many passes over a kernel a request takes.

    Attributes:
        passes: At most so many, at least 1.
        measured: Whether all of it was measured on this chip; else it is an estimate, and must be called so.
        parts: What takes them: sets, sections, groups, `metrics`.
    """

    passes: int
    measured: bool
    parts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Rule:
    passes: int
    per: int
    known: str


def replay_passes(names: Sequence[str], tool: Tool, chip: Chip | None = None) -> Price:
    """The price of a pass's `metrics:` on a chip.

    Sets and sections that overlap are collected once, so what is added up here is a bound.
    """
    parts: dict[str, int] = {}
    measured = True
    rest: list[str] = []
    for name in dict.fromkeys(names):
        rule = _rule(tool, chip, name)
        if rule is None and name.startswith(SECTION):
            rule = _rule(tool, chip, "section")
        if rule is not None and (name.startswith((SET, SECTION)) or name in groups()):
            parts[name] = rule.passes
            measured = measured and rule.known.startswith(_MEASURED)
        else:
            rest.append(name)
    if rest:
        parts["metrics"] = _of_metrics(rest, tool, chip)
        measured = False
    return Price(max(1, sum(parts.values())), measured, parts)


def _of_metrics(names: Sequence[str], tool: Tool, chip: Chip | None) -> int:
    """Counters of different units are collected side by side; patched code and breakdowns take passes of their own."""
    if tool == "nvprof":
        rule = _needed(tool, chip, "metric")
        return rule.passes * len(for_nvprof(names).metrics)
    counters: dict[str, set[str]] = {}
    for name in for_ncu(names, chip).metrics:
        if name.endswith(".peak_sustained") or name.startswith(_NO_COUNTER):
            continue
        base, _ = ncu_names.split(name)
        unit = "sass" if "_sass_" in base else "throughput" if ncu_names.kind(base) == "t" else base.partition("__")[0]
        counters.setdefault(unit, set()).add(base)
    apart = sum(_passes(_needed(tool, chip, f"unit:{u}"), len(counters.pop(u, ()))) for u in ("sass", "throughput"))
    side_by_side = _needed(tool, chip, "unit")
    return apart + max((_passes(side_by_side, len(some)) for some in counters.values()), default=0)


def _passes(rule: _Rule, counters: int) -> int:
    return rule.passes * math.ceil(counters / rule.per)


def _needed(tool: Tool, chip: Chip | None, what: str) -> _Rule:
    rule = _rule(tool, chip, what)
    assert rule is not None, f"passes.csv lacks {what}"
    return rule


def _rule(tool: Tool, chip: Chip | None, what: str) -> _Rule | None:
    found = _rules()
    own = found.get((tool, chip.names or chip.name, what)) if chip is not None else None
    return own or found.get((tool, _ANY, what))


@cache
def _rules() -> Mapping[tuple[str, str, str], _Rule]:
    return {
        (row["tool"], row["chip"], row["what"]): _Rule(int(row["passes"]), int(row["per"] or 1), row["known"])
        for row in rows("passes.csv")
    }
