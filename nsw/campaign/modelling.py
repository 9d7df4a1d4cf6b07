"""The laws of a campaign, each run a case of its own for the scatter of repeats, and which cases to measure for one."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.cases import CaseSummary, summarize_cases
from nsw.analysis.growth import Series, fit_growth_by_series
from nsw.analysis.law_points import Points, choose_points
from nsw.analysis.laws import LEAST, TRIED_TIMES
from nsw.analysis.proposal import proposal_curve
from nsw.campaign.planning import make_plan
from nsw.campaign.start import expected_run_seconds
from nsw.engine.ledger_rows import State
from nsw.errors import UsageError, did_you_mean
from nsw.recipe.units import Amount, AmountUnit, option_value, parse_price

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from nsw.analysis.blocks import Curve
    from nsw.campaign.answers import Results
    from nsw.engine.events import Message
    from nsw.plan.model import Plan
    from nsw.recipe.load import Overrides

_FREE: Final = "baseline"  # the kind of passes without a profiler


def growth_of(results: Results, over: Sequence[str], at: Sequence[float]) -> list[Series]:
    """Return the laws of a campaign's figure, iterations and kernel classes, a series for each other combination.

    Args:
        results: The campaign.
        over: The parameter, or the two; none: that of the recipe's `report: scaling`, or the only one with numbers.
        at: Where to predict, a value for each parameter; none: at four times the largest measured.

    Raises:
        UsageError: There is no such parameter, or no single one to choose; or nothing was measured.
    """
    summary = results.summary
    numbers = _numeric_parameters([case.params for case in summary.cases])
    over = over or _default_parameter(numbers, summary.curve.axis if summary.curve else None)
    for name in over:
        if name not in numbers:
            hint = did_you_mean(name, numbers) or f"parameters with numbers: {', '.join(numbers) or 'none'}"
            raise UsageError(f"--over {name}: no parameter of this name has only numbers above zero", hint=hint)
    if at and len(at) != len(over):
        raise UsageError(
            f"--at needs a value for each of {', '.join(over)}", hint="such as --over gpus,batch --at 256,64"
        )
    runs = [run for run in results.runs if run.state is State.DONE and run.repeat]
    by_run = summarize_cases([replace(run, case_id=run.id) for run in runs], summary.tables, 0.9, None, summary.classes)
    cases: dict[str, list[CaseSummary]] = {case.id: [] for case in summary.cases}
    for run, of_run in zip(runs, by_run, strict=True):
        cases[run.case_id].append(of_run)
    point = tuple(at) or tuple(float(TRIED_TIMES * numbers[name][-1]) for name in over)
    series_list = fit_growth_by_series(summary.cases, cases, over=over, at=point, figure=summary.figure)
    if not series_list:
        raise UsageError(
            "there is nothing to fit: no run printed a figure, and no timeline has iterations",
            hint=f"`nsw status {results.folder.id}` shows the runs; `nsw help figures` how a recipe names a figure",
        )
    return series_list


def proposal_of(results: Results) -> Curve:
    """Return the figure of efficiency and cost that applications for computing time ask for.

    Raises:
        UsageError: The campaign scales along no parameter, or measured no figure.
    """
    summary = results.summary
    curve = summary.curve
    if curve is None or all(point.figure is None for point in curve.points):
        raise UsageError(
            "--proposal needs cases that scale along a parameter, and a figure of the program",
            hint="`report: {scaling: {axis: gpus, kind: strong, figure: NAME}}` in the recipe names both",
        )
    free = [run for run in results.runs if run.state is State.DONE and run.repeat and run.pass_kind == _FREE]
    seconds: dict[str, list[float]] = {}
    for run in free:
        if run.seconds is not None:
            seconds.setdefault(run.case_id, []).append(run.seconds)
    return proposal_curve(
        curve,
        growth_of(results, [curve.axis], ()),
        gpus={run.case_id: run.gpus for run in results.runs},
        run_s={case: median(values) for case, values in seconds.items()},
    )


def _numeric_parameters(cases: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The parameters that have a number above zero in each case, with their distinct values in order."""
    values: dict[str, list[Any]] = {
        name: [case.get(name) for case in cases] for name in dict.fromkeys(name for case in cases for name in case)
    }
    return {
        name: sorted(set(numbers))
        for name, numbers in values.items()
        if all(isinstance(n, int | float) and not isinstance(n, bool) and n > 0 for n in numbers)
    }


def _default_parameter(numbers: dict[str, list[float]], axis: str | None) -> list[str]:
    if axis in numbers:
        return [str(axis)]
    several = [name for name, values in numbers.items() if len(values) >= LEAST]
    if len(several) == 1:
        return several
    if several:
        raise UsageError(f"laws of which parameter: {' or '.join(several)}?", hint=f"nsw model --over {several[0]}")
    raise UsageError(
        f"no parameter has {LEAST} measured numbers, which a law needs at least",
        hint="`nsw run RECIPE --set gpus=1,2,4,8,16` measures more",
    )


# --- which cases to measure ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """Which cases of a recipe are measured for a law.

    Attributes:
        over: The parameter.
        points: The chosen values and repeats.
        prices: Of each value that the recipe has, what a repeat of its cases costs, in the budget's unit.
        budget: The most that all may cost.
        at_most: The same as it was given, such as 80m.
    """

    over: str
    points: Points
    prices: Mapping[float, float]
    budget: Amount
    at_most: str


def plan_model(
    recipe: str, site: str | None, sites: list[Path] | None, overrides: Overrides, *, over: str, target: float,
    at_most: str, home: Path, notify: Callable[[Message], object],
) -> ModelPlan:  # fmt: skip
    """Choose the cases and repeats of a recipe that predict best at a value where nothing is measured.

    Args:
        recipe: Its file, or the name of a shipped one.
        site: Where it is to run; None: the default.
        sites: Sites files to search first.
        overrides: What is changed of the recipe.
        over: The parameter of the law.
        target: Its value to predict at.
        at_most: The price, such as `40 gpu-hours`.
        home: The folder of campaigns, whose earlier runs tell how long each takes; else its time limit counts.
        notify: Called with what planning has to say.

    Raises:
        UsageError: There is no such parameter or price, the target is not above zero, or nothing can be chosen at that
            price.
        InputError, UnreachableError: The recipe cannot be planned.
    """
    if not (math.isfinite(target) and target > 0):
        raise UsageError(f"--to {target:g}: expected a number above zero", hint="such as --to 256")
    budget = option_value("--at-most", parse_price, at_most, "such as '40 gpu-hours' or 40m")
    once, twice = (
        make_plan(recipe, site, sites, replace(overrides, settings=(*overrides.settings, f"repeats={count}")), notify)
        for count in (1, 2)
    )
    numbers = _numeric_parameters([run.params for run in once.plan.runs])
    if over not in numbers:
        hint = did_you_mean(over, numbers) or f"parameters with numbers: {', '.join(sorted(numbers)) or 'none'}"
        raise UsageError(f"--for-model {over}: no parameter of this name has only numbers above zero", hint=hint)
    first, second = (_prices_by_value(planned.plan, over, budget.unit, home) for planned in (once, twice))
    repeat = {value: second[value] - first[value] for value in first}
    if any(first.values()) and not any(repeat.values()):
        raise UsageError(
            f"--for-model {over}: the passes have `repeats` of their own, which it is to choose",
            hint="remove `repeats` from the passes of the recipe",
        )
    if not any(repeat.values()):
        raise UsageError(f"--at-most {budget}: these runs cost no {budget.unit}s", hint="give a time, such as 40m")
    prices = {value: (first[value] - repeat[value], repeat[value]) for value in first}
    points = choose_points(prices, target=target, budget=budget.number, unit=budget.unit)
    if isinstance(points, str):
        raise UsageError(f"--for-model {over}: {points}", hint="`--set` gives other values, `--at-most` another price")
    return ModelPlan(over, points, repeat, budget, at_most)


def _prices_by_value(plan: Plan, over: str, unit: AmountUnit, home: Path) -> dict[float, float]:
    """What the runs of each value of the parameter will probably cost."""
    run_seconds = expected_run_seconds(home, plan)
    prices: dict[float, float] = defaultdict(float)
    for run in plan.runs:
        prices[run.params[over]] += plan.price(run.resources, run_seconds[run.id], unit)
    return dict(prices)
