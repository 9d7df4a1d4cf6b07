"""Rules that the second side of a comparison must keep, and the outcome of each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from nsw.analysis.compared_screen import has_factors, interval_text, invalid_run_lines, verdict_text
from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from nsw.analysis.compared_screen import Comparison
    from nsw.analysis.sides import Compared, Side
    from nsw.recipe.units import Tolerance

__all__ = ["Judged", "Outcome", "check_rules", "gate_outcome", "judge_rules"]


class Outcome(StrEnum):
    """What became of a rule, or of the gate."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Judged:
    """A rule over a case, and why; without a case where none has the figure."""

    figure: str
    tolerance: Tolerance
    case: str
    outcome: Outcome
    why: str


def check_rules(rules: Collection[str], sides: Sequence[Side]) -> None:
    """Refuse rules that can decide nothing.

    Args:
        rules: The figures that they are about.
        sides: Both sides.

    Raises:
        UsageError: There is no rule, or one of a figure that no side has.
    """
    if not rules:
        raise UsageError(
            f"the gate has no rule: none was given, and {sides[-1].name} has no report.gate in its recipe",
            hint="`--rule 'images_per_sec: -2%'` is one, for each figure that must not change; so is"
            " `gate: {images_per_sec: -2%}` in the recipe's report",
        )
    known = sorted(set().union(*(side.figures for side in sides)))
    for figure in rules:
        if figure not in known:
            there = f"there are: {', '.join(known)}" if known else "no figure was measured"
            raise UsageError(f"neither side has a figure '{figure}'", hint=did_you_mean(figure, known) or there)


def judge_rules(comparison: Comparison, rules: Mapping[str, Tolerance]) -> list[Judged]:
    """Every rule over every case, and over what a side lacks; where runs are invalid nothing is decided.

    Args:
        comparison: Both sides, by figure.
        rules: How much each figure may change.
    """
    if invalid := "; ".join(invalid_run_lines(comparison)):
        return [Judged(figure, tolerance, "", Outcome.UNDECIDED, invalid) for figure, tolerance in rules.items()]
    judged: list[Judged] = []
    as_factors = has_factors(row for row in comparison.rows if row.what in rules)
    for figure, tolerance in rules.items():
        verdicts = [
            (row.case, *_judge_row(tolerance, row, as_factors=as_factors))
            for row in comparison.rows
            if row.what == figure
        ]
        verdicts += [
            (case, Outcome.UNDECIDED, f"only {side.name} has it")
            for side, cases in zip((comparison.first, comparison.second), comparison.lone, strict=True)
            for case in cases
        ]
        verdicts = verdicts or [("", Outcome.UNDECIDED, f"no case of both sides has {figure}")]
        judged += [Judged(figure, tolerance, *verdict) for verdict in verdicts]
    return judged


def _judge_row(tolerance: Tolerance, row: Compared, *, as_factors: bool) -> tuple[Outcome, str]:
    estimate = row.estimate
    if estimate is None:
        return Outcome.UNDECIDED, row.missing or "nothing was measured"
    limit = math.log1p((-tolerance.percent if tolerance.falls else tolerance.percent) / 100)
    low, high = (estimate.low, estimate.high) if tolerance.falls else (-estimate.high, -estimate.low)
    limit = limit if tolerance.falls else -limit
    if low >= limit:
        return Outcome.PASSED, verdict_text(row, as_factors=as_factors)
    if high < limit:
        return Outcome.FAILED, verdict_text(row, as_factors=as_factors)
    explanation = f"the change may be {interval_text(row, as_factors=as_factors)}"
    return (Outcome.PASSED if tolerance.may_be_undecided else Outcome.UNDECIDED), explanation


def gate_outcome(judged: Iterable[Judged]) -> Outcome:
    """That of the gate: one rule that fails fails it, and nothing passes that is undecided or empty."""
    outcomes = {each.outcome for each in judged}
    if Outcome.FAILED in outcomes:
        return Outcome.FAILED
    return Outcome.PASSED if outcomes == {Outcome.PASSED} else Outcome.UNDECIDED
