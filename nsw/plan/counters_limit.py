"""The time limit of a guided counters run, from its price: passes x launches x kernel time, saving and restoring.

The price is measured on one chip, so a first run gets a wide margin; later ones are corrected by runs that finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from nsw.errors import NswError
from nsw.metrics.replay_passes import SECONDS_A_LAUNCH, SECONDS_A_PASS
from nsw.plan.resolve import Resolver
from nsw.recipe.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.recipe.counters import CountersPass
    from nsw.recipe.model import Recipe

_WIDE: Final = (3.0, 300)  # factor and seconds on top of the price, where no run has finished
_CLOSE: Final = (1.5, 120)  # likewise, of the price corrected by runs that finished


@dataclass(frozen=True, slots=True)
class Limit:
    """A run's limit in seconds (None: the plan's own), and a sentence on it."""

    seconds: int | None
    note: str


def estimated_s(launches_ns: Sequence[int], passes: int, program_s: float, replay: str) -> float:
    """How long a run takes, in seconds.

    Args:
        launches_ns: The duration of each launch that is measured, in the timeline.
        passes: How often each is run.
        program_s: The run time of the program under the timeline's profiler.
        replay: kernel, application.
    """
    if replay == "application":
        return passes * program_s
    each = SECONDS_A_LAUNCH + passes * SECONDS_A_PASS
    return program_s + len(launches_ns) * each + passes * sum(launches_ns) * 1e-9


def limit(expected_s: float, plan_s: int, finished: Sequence[tuple[float, float]]) -> Limit:
    """The limit of a run: never above the plan's, which was confirmed.

    Args:
        expected_s: Its price.
        plan_s: Its limit in the plan.
        finished: The price and the run time of runs of this pass that finished.
    """
    ratios = [took / price for price, took in finished if price > 0]
    corrected = expected_s * max(ratios, default=1.0)
    factor, more = _CLOSE if ratios else _WIDE
    how = f"by {len(ratios)} finished run{'s' * (len(ratios) != 1)}" if ratios else "by its price"
    wanted = int(factor * corrected + more)
    if corrected > plan_s:
        return Limit(
            None,
            f"expected to take {corrected:.0f} s {how}, longer than its limit of {plan_s} s: it may be cut off; give it"
            " more `time`, or measure fewer launches or metrics",
        )
    if wanted >= plan_s:
        return Limit(None, f"expected to take {corrected:.0f} s {how}; limit {plan_s} s, as planned")
    return Limit(wanted, f"expected to take {corrected:.0f} s {how}; limit {wanted} s instead of {plan_s} s")


def planned_s(recipe: Recipe, one: CountersPass, case: str, params: Mapping[str, Any]) -> int | None:
    """The limit that the plan gives a run of a pass, in seconds; None where it cannot be worked out again."""
    from nsw.recipe.units import parse_duration

    given = one.time if one.time is not None else recipe.resources.time
    try:
        value = Resolver().value(given, {**params, "case": case})
        return int(parse_duration(value) if isinstance(value, str) else value)
    except (Fault, NswError, TypeError, ValueError):
        return None
