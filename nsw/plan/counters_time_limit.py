"""The time limit of a guided counters run, from its price: passes x launches x kernel time, saving and restoring.

Prices were measured on one chip, so a first run gets a wide margin over the greatest one; later ones are corrected by
runs that finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError
from nsw.plan.resolve import Resolver
from nsw.recipe.faults import Fault
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.metrics.replay_passes import Passes
    from nsw.recipe.counters import CountersPass
    from nsw.recipe.model import Recipe

_WIDE: Final = (3.0, 300)  # factor and seconds on top of the greatest price, where no run has finished
_CLOSE: Final = (1.5, 120)  # likewise, of the price corrected by runs that finished


@dataclass(frozen=True, slots=True)
class Limit:
    """A run's limit in seconds (None: the plan's own), and a sentence on it."""

    seconds: int | None
    note: str


@dataclass(frozen=True, slots=True)
class Price:
    """How long a run is expected to take, and how long at most, in seconds."""

    expected_s: float
    at_most_s: float


def price(launches_ns: Sequence[int], passes: Passes, program_s: float, replay: str) -> Price:
    """What a run costs, its program included.

    Args:
        launches_ns: The duration of each launch that is measured, in the timeline.
        passes: How often each is run.
        program_s: The run time of the program under the timeline's profiler.
        replay: kernel, application.
    """
    if replay == "application":
        return Price(passes.expected * program_s, passes.at_most * program_s)
    count, kernels_s = len(launches_ns), sum(launches_ns) * 1e-9
    return Price(
        program_s + passes.expected_s(count) + passes.expected * kernels_s,
        program_s + passes.at_most_s(count) + passes.at_most * kernels_s,
    )


def limit(of: Price, plan_s: int, finished: Sequence[tuple[float, float]]) -> Limit:
    """The limit of a run: never above the plan's, which was confirmed.

    Args:
        of: Its price.
        plan_s: Its limit in the plan, in seconds.
        finished: The expected and the actual run time of runs of this pass that finished, in seconds.
    """
    ratios = [took / expected for expected, took in finished if expected > 0]
    corrected = of.expected_s * max(ratios, default=1.0)
    if ratios:
        how, wanted = f" by {plural(len(ratios), 'finished run')}", int(_CLOSE[0] * corrected + _CLOSE[1])
    else:
        how, wanted = f", at most {of.at_most_s:.0f} s, by its price", int(_WIDE[0] * of.at_most_s + _WIDE[1])
    head = f"expected to take {corrected:.0f} s{how}"
    if corrected > plan_s:
        return Limit(
            None,
            f"{head}, longer than its limit of {plan_s} s: it may be cut off; give it more `time`, or measure fewer"
            " launches or metrics",
        )
    if wanted >= plan_s:
        return Limit(None, f"{head}; limit {plan_s} s, as planned")
    return Limit(wanted, f"{head}; limit {wanted} s instead of {plan_s} s")


def planned_s(recipe: Recipe, one: CountersPass, case: str, params: Mapping[str, Any]) -> int | None:
    """The limit that the plan gives a run of a pass, in seconds; None where it cannot be worked out again."""
    from nsw.recipe.units import parse_duration

    given = one.time if one.time is not None else recipe.resources.time
    try:
        value = Resolver().value(given, {**params, "case": case})
        return int(parse_duration(value) if isinstance(value, str) else value)
    except (Fault, NswError, TypeError, ValueError):
        return None
