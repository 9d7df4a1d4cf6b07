"""Which cases of a recipe to measure for a law, at a price: `nsw plan --for-model`."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nsw.analysis.law_points import choose_points
from nsw.campaign.planning import make_plan
from nsw.campaign.start import expected_run_seconds
from nsw.errors import UsageError, did_you_mean
from nsw.recipe.units import Fault, parse_price

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from nsw.analysis.law_points import Points
    from nsw.engine.events import Message
    from nsw.plan.model import Plan
    from nsw.recipe.load import Overrides
    from nsw.recipe.units import Amount, AmountUnit

__all__ = ["ModelPlan", "plan_model"]


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """Which cases of a recipe are measured for a law.

    Attributes:
        over: The parameter.
        points: The chosen values and repeats.
        prices: Of each value that the recipe has, what a repeat of its cases costs, in the budget's unit.
        budget: The most that all may cost.
    """

    over: str
    points: Points
    prices: Mapping[float, float]
    budget: Amount


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
    try:
        budget = parse_price(at_most)
    except Fault as fault:
        raise UsageError(f"--at-most: {fault.message}", hint=fault.hint or "such as '40 gpu-hours' or 40m") from None
    once, twice = (
        make_plan(recipe, site, sites, replace(overrides, settings=(*overrides.settings, f"repeats={count}")), notify)
        for count in (1, 2)
    )
    numbers = _numeric_parameters(once.plan)
    if over not in numbers:
        hint = did_you_mean(over, numbers) or f"parameters with numbers: {', '.join(sorted(numbers)) or 'none'}"
        raise UsageError(f"--for-model {over}: no parameter of this name has only numbers above zero", hint=hint)
    first, second = (_prices(planned.plan, over, budget.unit, home) for planned in (once, twice))
    repeat = {value: second[value] - first[value] for value in first}
    if not any(repeat.values()):
        raise UsageError(f"--at-most {budget}: these runs cost no {budget.unit}s", hint="give a time, such as 40m")
    prices = {value: (first[value] - repeat[value], repeat[value]) for value in first}
    points = choose_points(prices, target=target, budget=budget.number, unit=budget.unit)
    if isinstance(points, str):
        raise UsageError(f"--for-model {over}: {points}", hint="`--set` gives other values, `--at-most` another price")
    return ModelPlan(over, points, repeat, budget)


def _numeric_parameters(plan: Plan) -> set[str]:
    """The parameters that have a number above zero in each case."""
    params = [run.params for run in plan.runs]
    names = {name for case in params for name in case}
    return {name for name in names if all(_is_positive_number(case.get(name)) for case in params)}


def _is_positive_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _prices(plan: Plan, over: str, unit: AmountUnit, home: Path) -> dict[float, float]:
    """What the runs of each value of the parameter will probably cost."""
    run_seconds = expected_run_seconds(home, plan)
    prices: dict[float, float] = defaultdict(float)
    for run in plan.runs:
        prices[run.params[over]] += plan.price(run.resources, run_seconds[run.id], unit)
    return dict(prices)
