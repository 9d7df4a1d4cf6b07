"""Rules: what the tables of a case say about it, and what to try.

A rule looks at one case and gives a `Hit` or nothing; it never looks at names of cases. Its weight is what could be won
at most, in per cent of the case's time, so that the order of an answer is by use. Rules are registered here; those of
other packages are entry points of the group `nsw.rules`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.rules import (
    api_calls,
    copies,
    counters,
    gpu_work,
    host,
    several_gpus,
    slow_iterations,
    stragglers,
    timeline,
)
from nsw.analysis.rules.hits import ALL_TIME, MOSTLY, OF_GPU_TIME, WORTH_PCT, Context, Hit, Reports
from nsw.analysis.steady import time_of_few_iterations
from nsw.errors import NswError
from nsw.resources import entry_points_of
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

    Rule = Callable[[CaseSummary, Context], Hit | Sequence[Hit] | None]

__all__ = ["RULES", "find_hits_by_case", "gain_base", "merge_hits_to_findings"]

GROUP: Final = "nsw.rules"
RULES: Final[Mapping[str, Rule]] = {
    name: rule
    for module in (timeline, copies, gpu_work, several_gpus, slow_iterations, api_calls, counters, host, stragglers)
    for name, rule in module.RULES.items()
}
_KERNELS: Final = "kernels"
# what gains are a share of where nothing else was measured, by the table that proves them
_BASES: Final[Mapping[str, str]] = {
    "kernels": "the kernels' time",
    "hotspots": "GPU time",
    "copies": "GPU time",
    "um_summary": "GPU time",
}
# gaps are those of all iterations: how many there are, and how long one takes
_PROVED_BY: Final[Mapping[str, tuple[str, ...]]] = {"gaps": ("gaps", "gpu_use", "iterations")}
_FAULTS: Final = frozenset({"stray-context"})  # what no program wants, however little it takes
_OF_A_MOMENT: Final = frozenset({"slow-first-iteration", "slow-iteration"})  # which explain no other iteration
_OF_SHORT_GAPS: Final = frozenset({"launch-bound", "scalar-reads", "changing-shapes", "sync-each-operation"})
_MUCH_SLOWER_PCT: Final = 10.0  # of the steady state, that slow iterations take longer, told or not
_OF_SLOW_ITERATIONS: Final = _OF_A_MOMENT | {"periodic-slow-iteration", "recompilation"}
# faults of the host in gaps of their own, or now and then
_OF_THE_HOST: Final = frozenset(
    {"data-loader", "file-io", "host-call", "host-work", "logging", "periodic-slow-iteration"}
)
# causes that name no fault, each with those that do not explain it: how time is lost rather than by what; what changes
# the results
_GENERAL: Final[Mapping[str, frozenset[str]]] = {
    "launch-bound": _OF_A_MOMENT | _OF_THE_HOST | {"too-few-blocks"},
    "tensor-cores-unused": frozenset(),
}
_EXPLAINS: Final = 0.25  # of a gain: a fault that wins as much comes first
_ALIKE: Final = 4  # other cases of a rule that are named
_OF_THIS_RUN: Final = "nvtx_summary"  # the table of hits whose gain is of this run: what is compiled
_IDLE: Final = "gaps"  # the table of hits of idle time
_OF_CALLS: Final = "api"  # the table of hits whose gain is of the host's calls and the GPU's work together
_LATE_INPUT_PCT: Final = 25.0  # of the time: waiting for input that decides how fast a program is
_COMPILES: Final = frozenset({"slow-first-iteration", "recompilation"})
_MUCH_COMPILED_PCT: Final = 40.0  # of the run, or of the time that is counted
_PART_OF_RUN: Final = 0.1  # of the long gaps that no share is of, below which the rest is little of the run
_SMALL: Final = 0.03  # of the largest gain, below which another finding distracts from it
_LITTLE: Final = 0.2  # of the largest gain, likewise where it is little of the time
_SAME_PCT: Final = 5.0  # of the time: gains that differ by no more are as large


def find_hits_by_case(
    cases: Sequence[CaseSummary], *, reports: Reports = "absent", are_programs: bool = False
) -> dict[str, list[Hit]]:
    """What every rule says of each case, the weightiest first.

    Args:
        cases: The cases.
        reports: Whether their reports can be read again here.
        are_programs: Whether they are programs of their own, of whose runs the iterations are unlike parts.

    Raises:
        NswError: A rule of another package failed.
    """
    context = Context.from_cases(cases, reports=reports)
    found: dict[str, list[Hit]] = {}
    rules = [*_all_rules()] if cases else []
    for case in cases:
        hits = [hit for name, rule in rules for hit in _apply_rule(name, rule, case, context)]
        unmeasured, healthy = timeline.unmeasured_kernel_hit(case, hits) if len(cases) == 1 else None, None
        if all(hit.healthy or (hit.cause in _OF_SLOW_ITERATIONS and not hit.gain_pct) for hit in hits):
            healthy = timeline.healthy_gpu_hit(case)
            if healthy is None or healthy.table != _IDLE:  # of a busy GPU it names the kernel
                unmeasured = None
        hits += [hit for hit in (healthy, unmeasured, timeline.fusible_work_hit(case, hits)) if hit is not None]
        hits = _drop_hits_of_little_time(case, hits)
        is_apart = are_programs or len(cases) == 1
        hits = _name_gain_bases(case, _gains_of_all_time(case, hits), is_apart=is_apart)
        ordered = order_hits(_drop_small_hits(_behind_input(case, hits)), once_weight=_once_weight(case))
        if unmeasured is not None and timeline.is_first_of_all(case, hits):
            first = next(hit for hit in ordered if hit.fact == unmeasured.fact)
            ordered = [first, *(hit for hit in ordered if hit is not first)]
        found[case.id] = ordered
    return found


def _name_gain_bases(case: CaseSummary, hits: Sequence[Hit], *, is_apart: bool) -> list[Hit]:
    """The hits, their gains of what was measured where that is not how long the program takes.

    Args:
        case: The case.
        hits: What is said of it.
        is_apart: Whether it is no case of a campaign's, whose iterations are what cases are compared by.
    """
    bases = _BASES
    if case.idle_gpu is not None or case.iterations is not None:
        is_of_iterations = is_apart and time_of_few_iterations(case.phases) is not None
        bases = dict.fromkeys((hit.table for hit in hits), "the iterations' time") if is_of_iterations else {}
    return [
        replace(hit, gain_of=bases[hit.table]) if hit.table in bases and hit.gain_of == ALL_TIME else hit
        for hit in hits
    ]


def _gains_of_all_time(case: CaseSummary, hits: Sequence[Hit]) -> list[Hit]:
    """The hits with the gain of short gaps, which are those of usual iterations, as a share of the time of all."""
    idle = case.idle_gpu
    slower_pct = idle.use.get("slower_pct", 0.0) if idle is not None and not idle.is_mean else 0.0
    if slower_pct < _MUCH_SLOWER_PCT and not any(hit.cause == "periodic-slow-iteration" for hit in hits):
        return [*hits]
    usual = 1 - slower_pct / 100
    return [replace(hit, gain_pct=usual * hit.gain_pct) if hit.cause in _OF_SHORT_GAPS else hit for hit in hits]


def _behind_input(case: CaseSummary, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, those of the GPU's work told to wait for the input, where other processes make it and are late."""
    spawns = case.idle_gpu.use.get("spawns", 0.0) if case.idle_gpu is not None else 0.0
    if not spawns or not any(hit.cause == "data-loader" and hit.gain_pct >= _LATE_INPUT_PCT for hit in hits):
        return [*hits]
    return [
        replace(hit, advice=f"Once input comes in time: {hit.advice}")
        if hit.table == "hotspots" or hit.share_of.startswith("of GPU time") or hit.cause == "launch-bound" else hit
        for hit in hits
    ]  # fmt: skip


def _drop_hits_of_little_time(case: CaseSummary, hits: Sequence[Hit]) -> list[Hit]:
    """The hits; beside what is compiled none of the rest, where that is a small part of the run."""
    idle = case.idle_gpu
    is_little = idle is not None and idle.med_ns < _PART_OF_RUN * idle.left_out_ns
    compiled = [hit for hit in hits if hit.cause in _COMPILES and hit.gain_pct >= _MUCH_COMPILED_PCT]
    return compiled if compiled and is_little else [*hits]


def _drop_small_hits(hits: Sequence[Hit]) -> list[Hit]:
    """The hits without those that win little, and next to nothing beside what the host's calls or idle time take."""
    of_calls = max((hit.gain_pct for hit in hits if hit.table == _OF_CALLS), default=0.0)
    largest = max((hit.gain_pct for hit in hits if hit.is_curable), default=0.0)
    gpu_share = 1 - of_calls / 100
    return [
        hit for hit in hits
        if hit.share_of != OF_GPU_TIME or (
            hit.gain_pct * gpu_share >= _SMALL * of_calls and hit.gain_pct >= min(WORTH_PCT, _LITTLE * largest)
        )
    ]  # fmt: skip


def _all_rules() -> Iterator[tuple[str, Rule]]:
    yield from RULES.items()
    for name, entry_point in entry_points_of(GROUP).items():
        module, _, function = entry_point.partition(":")
        yield name, getattr(import_module(module), function)


def _apply_rule(name: str, rule: Rule, case: CaseSummary, context: Context) -> Sequence[Hit]:
    try:
        hits = rule(case, context)
        return [] if hits is None else [hits] if isinstance(hits, Hit) else hits
    except Exception as fault:
        if name in RULES:
            raise
        raise NswError(
            f"the rule {name} of another package failed: {type(fault).__name__}: {fault}",
            hint="repair it, or remove its package",
        ) from fault


def _once_weight(case: CaseSummary) -> float:
    """What a gain of this run counts beside those of its loop, a factor: all where the loop is the lesser part."""
    idle, of_all = case.idle_gpu, time_of_few_iterations(case.phases)
    is_little = idle is not None and idle.left_out_ns > idle.med_ns
    return 1.0 if is_little or (of_all is not None and of_all[0] < MOSTLY * of_all[1]) else _EXPLAINS


def order_hits(hits: Sequence[Hit], *, once_weight: float = _EXPLAINS) -> list[Hit]:
    """The hits of a case in the order in which to act on them: by gain, general causes behind a fault that wins much.

    A fault that no program wants comes first, however little it takes.

    Args:
        hits: Of the case.
        once_weight: What a gain of this run alone counts, such as of what is compiled once.
    """
    faults = [hit for hit in hits if hit.cause not in _GENERAL]

    def sort_key(hit: Hit) -> tuple[bool, float, bool, str]:
        others = _GENERAL.get(hit.cause, frozenset())
        by_fault = max((fault.gain_pct for fault in faults if fault.cause not in others), default=0.0)
        is_behind = hit.cause in _GENERAL and by_fault >= _EXPLAINS * hit.gain_pct
        gain = min(hit.gain_pct, by_fault) if is_behind else hit.gain_pct
        is_once = hit.table == _OF_THIS_RUN and hit.cause != "recompilation"  # a longer run has less of it
        gain *= once_weight if is_once else 1.0
        return not (hit.cause in _FAULTS and gain > 0), -gain, is_behind, hit.cause

    return sorted(hits, key=sort_key)


def merge_hits_to_findings(
    hits: Mapping[str, Sequence[Hit]], gpu_ns: Mapping[str, float] | None = None, *, several: bool
) -> list[Finding]:
    """A sentence a cause and remedy, on the case where it weighs most, which names the others; the weightiest first.

    Args:
        hits: Of each case.
        gpu_ns: GPU time of each case: of those where a remedy wins as large a part, the one that takes most is named.
        several: Whether there are several cases: else a sentence names none.
    """
    alike: dict[tuple[str, str], list[Hit]] = {}
    for group in hits.values():
        for hit in group:
            alike.setdefault((hit.cause, hit.advice), []).append(hit)
    groups = []
    for group in alike.values():
        group.sort(key=lambda hit: -hit.gain_pct)
        largest = [hit for hit in group if hit.gain_pct >= group[0].gain_pct - _SAME_PCT]
        first = max(largest, key=lambda hit: (gpu_ns or {}).get(hit.case, 0.0))
        groups.append([first, *(hit for hit in group if hit is not first)])
    weights = {
        id(hit): (-max(map(_merit_pct, case_hits[place:])), place)  # no less than of those behind it
        for case_hits in hits.values()
        for place, hit in enumerate(case_hits)
    }
    groups.sort(key=lambda group: (*weights[id(group[0])], group[0].cause))
    if not several:  # the idle time of its only case is named once
        idle = [group for group in groups if group[0].continued]
        for group in idle[1:]:
            group[0] = replace(group[0], fact=group[0].continued)
    advised: set[str] = set()
    findings = []
    for group in groups:
        findings.append(_finding_of_hits(group, several=several, is_advised=group[0].advice in advised))
        advised.add(group[0].advice)
    return findings


def _merit_pct(hit: Hit) -> float:
    """What a hit wins, for its place among those of other cases: accuracy is not given up before time is saved."""
    return hit.gain_pct * (_EXPLAINS if hit.costs_accuracy else 1.0)


def gain_base(hit: Hit) -> str:
    """What a hit's gain is a share of, in words."""
    return "this run" if hit.cause == "slow-first-iteration" else hit.gain_of


def _finding_of_hits(alike: Sequence[Hit], *, several: bool, is_advised: bool) -> Finding:
    """Hits of a cause and remedy as a finding; `is_advised`: whether one before gives the same advice."""
    first, other_cases = alike[0], [f"{hit.case} ({hit.size})" for hit in alike[1:] if hit.case != alike[0].case]
    head = f"{first.case}: " if several else ""
    begins = not several and first.table != _KERNELS  # which begins with a kernel's name
    fact = first.fact[:1].upper() + first.fact[1:] if begins else first.fact
    also = f" Likewise {first_names(other_cases, _ALIKE)}." if other_cases else ""
    is_stated = re.search(rf"\b{first.gain_pct:.0f} % of (?:all )?{first.gain_of}", first.fact) is not None
    has_gain = round(first.gain_pct) > 0 and first.is_curable and not is_stated
    gain = f" Gain: at most {first.gain_pct:.0f} % of {gain_base(first)}." if has_gain else ""
    advice = "The same helps." if is_advised and first.advice else first.advice
    return Finding(
        first.cause,
        f"{head}{fact}.{' ' * bool(advice)}{advice}{gain}{also}",
        brief=f"{head}{fact}: {first.do}.{gain}{also}" if several else None,
        cause=first.cause,
        remedy=first.advice,
        gain_pct=first.gain_pct,
        healthy=first.healthy,
        evidence=tuple(
            Evidence(table, tuple(hit.case for hit in alike)) for table in _PROVED_BY.get(first.table, (first.table,))
        ),
    )
