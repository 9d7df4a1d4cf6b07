"""How certain a difference between two sides is: an interval, a verdict, and what more runs would show.

The unit is the run, never the iteration: the iterations of one run share its clocks, its node and its luck. Numbers are
natural logarithms of ratios, positive where the second side has more. Three ways, by what there is:

- from 7 pairs the exact sign-flip test: were nothing changed, each pair could as well have the other sign. Below it
  cannot decide: with 6 pairs the least chance is 3 %, with 3 it is 25 %.
- below 7 pairs Student's t of the pairs' own scatter together with the noise floor, of which both must be exceeded:
  three pairs that agree by chance make no verdict. Where no floor was measured (`nsw noise`), 10 % are assumed.
- runs that are no pairs: Welch's t, with the floor below 7 runs of either side.

Pairs that are added until they decide are looked at several times, and each look spends a part of ALPHA: that of the
k-th is ALPHA / (k (k + 1)), so that all together stay below ALPHA. The parts are added (Bonferroni), whatever the looks
have in common and whenever somebody stops, and each look is the exact test: the noise may have heavy tails, and drift.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

import numpy as np

__all__ = [
    "ALPHA",
    "ASSUMED",
    "EQUIVALENCE",
    "LOOKS",
    "Estimate",
    "Floor",
    "Verdict",
    "alpha_at_look",
    "estimate_from_pairs",
    "estimate_from_runs",
    "pairs_at_next_look",
    "sign_flip_p_value",
    "significant_by_false_discovery_rate",
    "t_two_sided_tail",
]

ALPHA: Final = 1 / 64  # how often a verdict may be wrong where nothing changed: 7 pairs that agree are as rare
LOOKS: Final = (8, 12, 18, 27, 40, 60, 90, 135, 200)  # numbers of pairs; 8 that agree are as rare as half of ALPHA
EQUIVALENCE: Final = 0.01  # differences below are none, unless somebody asks for less
_T_ALPHA: Final = 0.05  # of the t test that the noise floor accompanies
_ALONE: Final = 7  # runs of a side that need no floor
_POWER: Final = 0.8  # with which a difference would have been shown
_MOST_PAIRS: Final = LOOKS[-1]  # that are worth a suggestion
_MOST_FLIPS: Final = 30  # pairs whose 2^n signs are counted exactly; of more the t test is as good
_STEPS: Final = 40  # of a bisection
_FLIP_STEPS: Final = 20  # of one whose steps count signs: to a millionth of the scatter


class Verdict(StrEnum):
    """What the runs show of the second side: it has more, less, the same within some per cent, or nothing is shown."""

    MORE = "more"
    LESS = "less"
    SAME = "same"
    UNDECIDED = "cannot tell"


@dataclass(frozen=True, slots=True)
class Floor:
    """How much figures scatter where nothing changed, as standard deviations of logarithms.

    Attributes:
        pair: Of the ratio of one pair.
        run: Of one run.
        freedom: Degrees of freedom of both; infinite where they are assumed.
        measured: Whether `nsw noise` measured it.
    """

    pair: float
    run: float
    freedom: float = math.inf
    measured: bool = True


ASSUMED: Final = Floor(0.14, 0.10, measured=False)  # what a host-bound training step scattered by on an H100


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference with its certainty.

    Attributes:
        log_ratio: The mean of the logarithms.
        low: The interval's lower end.
        high: Its upper end.
        chance: How often a difference as large comes by chance; at most ALPHA (a look's part of it) where the interval
            leaves out 0.
        verdict: What it shows.
        equivalence: What counts as the same.
        detectable: The least difference that as many runs would have shown with a probability of 80 %.
        more_needed: How many more pairs (or runs of each side) would decide, by their scatter; None: over 200.
        runs: Pairs, or runs of the side that has fewer.
        is_paired: Whether they were pairs.
        floor: The noise floor that the interval stands on; None: it needs none.
    """

    log_ratio: float
    low: float
    high: float
    chance: float
    verdict: Verdict
    equivalence: float
    detectable: float
    more_needed: int | None
    runs: int
    is_paired: bool
    floor: Floor | None

    @property
    def largest_log_ratio(self) -> float:
        """The end of the interval that is farther from 0, as the absolute logarithm of a ratio."""
        return max(abs(self.low), abs(self.high))

    def undecided(self) -> Estimate:
        """The same without its verdict, which many of its like together do not bear."""
        return replace(self, verdict=Verdict.UNDECIDED)


def pairs_at_next_look(pairs: int) -> int | None:
    """The number of pairs at which so many are looked at next; None: never."""
    return next(iter(LOOKS[bisect_right(LOOKS, pairs) :]), None)


def alpha_at_look(pairs: int) -> float:
    """The chance of an error that the look at so many pairs may spend, a share of ALPHA: half of it up to 8 pairs."""
    number = bisect_left(LOOKS, pairs) + 1
    return ALPHA / (number * (number + 1))


def estimate_from_pairs(
    logs: Sequence[float],
    floor: Floor = ASSUMED,
    equivalence: float = EQUIVALENCE,
    *,
    exact: bool = True,
    alpha: float = ALPHA,
) -> Estimate:
    """What pairs show.

    Args:
        logs: The logarithm of each pair's ratio, second over first.
        floor: The noise floor, which counts below 7 pairs.
        equivalence: Differences below count as none.
        exact: Whether the sign-flip test decides from 7 pairs on. Its chances are coarse: of many differences beside
            each other it could show none, and Student's t takes its place.
        alpha: How often the verdict may be wrong where nothing changed. Below ALPHA, as at one of several looks, too
            few pairs for the sign-flip test decide nothing.

    Raises:
        ValueError: There is no pair.
    """
    n = len(logs)
    mean, scatter = statistics.fmean(logs), statistics.stdev(logs) if n > 1 else 0.0
    least = math.ceil(1 - math.log2(alpha))  # pairs that need no floor: of their signs 2 are extreme
    alone = n >= least

    def half_width_with(count: int) -> float:
        if count >= least:
            return t_two_sided_quantile(alpha, count - 1) * scatter / math.sqrt(count)
        own_half = t_two_sided_quantile(_T_ALPHA, count - 1) * scatter if count > 1 else 0.0
        return max(own_half, t_two_sided_quantile(ALPHA, floor.freedom) * floor.pair) / math.sqrt(count)

    error = (scatter if alone else max(scatter, floor.pair)) / math.sqrt(n)
    if alone and exact and n <= _MOST_FLIPS:
        low, high, chance = *_sign_flip_interval(logs, alpha), sign_flip_p_value(np.asarray(logs))
    else:
        low, high = mean - half_width_with(n), mean + half_width_with(n)
        own_chance = _t_test_p_value(mean, scatter / math.sqrt(n), n - 1) if n > 1 else 0.0
        chance = (
            own_chance
            if alone
            else max(own_chance * ALPHA / _T_ALPHA, _t_test_p_value(mean, floor.pair / math.sqrt(n), floor.freedom))
        )
    estimate = _make_estimate(
        mean,
        (low, high),
        chance,
        equivalence,
        half_width_with,
        error,
        n,
        is_paired=True,
        floor=None if alone else floor,
    )
    return estimate if alone or alpha == ALPHA else estimate.undecided()


def estimate_from_runs(
    first: Sequence[float], second: Sequence[float], floor: Floor = ASSUMED, equivalence: float = EQUIVALENCE
) -> Estimate:
    """What runs of two sides that are no pairs show.

    Args:
        first: The logarithm of each run's value, of the first side.
        second: The same of the second side.
        floor: The noise floor, which counts below 7 runs of either side.
        equivalence: Differences below count as none.

    Raises:
        ValueError: A side has no run.
    """
    mean = statistics.fmean(second) - statistics.fmean(first)
    counts = (len(first), len(second))
    squares = [statistics.variance(side) if len(side) > 1 else 0.0 for side in (first, second)]
    n = min(counts)

    def welch_error_and_freedom(a: int, b: int) -> tuple[float, float]:
        """The standard error with as many runs, and its degrees of freedom."""
        parts = squares[0] / a, squares[1] / b
        spread = sum(p * p / (count - 1) for p, count in zip(parts, (a, b), strict=True) if count > 1)
        return math.sqrt(sum(parts)), sum(parts) ** 2 / spread if spread else max(1, min(a, b) - 1)

    def half_width_with(count: int) -> float:
        a, b = (max(count, run_count) for run_count in counts)
        error, freedom = welch_error_and_freedom(a, b)
        if count >= _ALONE:
            return t_two_sided_quantile(ALPHA, freedom) * error
        run_count = t_two_sided_quantile(_T_ALPHA, freedom) * error if count > 1 else 0.0
        return max(run_count, t_two_sided_quantile(ALPHA, floor.freedom) * floor.run * math.sqrt(1 / a + 1 / b))

    alone = n >= _ALONE
    error, freedom = welch_error_and_freedom(*counts)
    of_floor = floor.run * math.sqrt(1 / counts[0] + 1 / counts[1])
    own_chance = _t_test_p_value(mean, error, freedom) if n > 1 else 0.0
    chance = own_chance if alone else max(own_chance * ALPHA / _T_ALPHA, _t_test_p_value(mean, of_floor, floor.freedom))
    interval = (mean - half_width_with(n), mean + half_width_with(n))
    error = error if alone else max(error, of_floor)
    return _make_estimate(
        mean, interval, chance, equivalence, half_width_with, error, n, is_paired=False, floor=None if alone else floor
    )


def _make_estimate(
    mean: float, interval: tuple[float, float], chance: float, equivalence: float, half: Callable[[int], float],
    error: float, runs: int, *, is_paired: bool, floor: Floor | None,
) -> Estimate:  # fmt: skip
    low, high = interval
    if max(abs(low), abs(high)) <= equivalence:
        verdict = Verdict.SAME
    elif low > 0 or high < 0:
        verdict = Verdict.MORE if low > 0 else Verdict.LESS
    else:
        verdict = Verdict.UNDECIDED
    enough = max(abs(mean), equivalence - abs(mean))  # what the interval's half may be
    pairs_needed = next((n - runs for n in range(runs + 1, runs + _MOST_PAIRS + 1) if half(n) <= enough), None)
    power = statistics.NormalDist().inv_cdf(_POWER) * error
    return Estimate(
        mean, low, high, min(1.0, chance), verdict, equivalence, half(runs) + power,
        pairs_needed if verdict is Verdict.UNDECIDED else 0, runs, is_paired, floor,
    )  # fmt: skip


def significant_by_false_discovery_rate(chances: Sequence[float], rate: float = ALPHA) -> list[bool]:
    """Which of many differences are shown, so that at most `rate` of them are false (Benjamini and Hochberg 1995)."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    first_kept = max((n for n, at in enumerate(order, 1) if chances[at] <= rate * n / len(chances)), default=0)
    discovered = set(order[:first_kept])
    return [at in discovered for at in range(len(chances))]


# --- the sign-flip test ---------------------------------------------------------------------------------------------


def _sums_over_signs(values: np.ndarray) -> np.ndarray:
    """The sums under each of the 2^n signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums - value, sums + value])
    return sums


def sign_flip_p_value(logs: np.ndarray, shift: float = 0.0) -> float:
    """The share of all signs under which the sum is as far from 0, were the difference `shift`.

    All 2^n sums are those of both halves of the pairs added; both are sorted, so that they are counted, not made.

    Args:
        logs: The logarithm of each pair's ratio, of shape (n,), n > 0.
        shift: The difference, as a logarithm.

    Returns:
        A probability.
    """
    moved = logs - shift
    half = len(moved) // 2
    first_sums, second_sums = (np.sort(_sums_over_signs(part)) for part in (moved[:half], moved[half:]))
    bound = abs(moved.sum()) * (1 - 1e-9)
    above = len(second_sums) - np.searchsorted(second_sums, bound - first_sums[::-1], side="left")
    return float(min(1.0, 2 * above.sum() / 2 ** len(moved)))


def _sign_flip_interval(logs: Sequence[float], alpha: float) -> tuple[float, float]:
    """All differences that the test does not refuse."""
    values = np.asarray(logs)
    mean, reach = float(values.mean()), float(np.ptp(values)) or 0.0

    def interval_end(sign: int) -> float:
        inside, outside = 0.0, reach + 1e-12
        for _ in range(_FLIP_STEPS):
            middle = (inside + outside) / 2
            is_inside = sign_flip_p_value(values, mean + sign * middle) > alpha
            inside, outside = (middle, outside) if is_inside else (inside, middle)
        return mean + sign * outside

    return interval_end(-1), interval_end(+1)


# --- Student's t ----------------------------------------------------------------------------------------------------


def _t_test_p_value(mean: float, error: float, freedom: float) -> float:
    """How often a mean as far from 0 comes by chance, on both sides."""
    if not error:
        return 1.0 if not mean else 0.0
    return t_two_sided_tail(abs(mean) / error, freedom)


def t_two_sided_tail(t: float, freedom: float) -> float:
    """The share of Student's distribution beyond -t and t; Gauss's where `freedom` is infinite."""
    if math.isinf(freedom):
        return math.erfc(t / math.sqrt(2))
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def t_two_sided_quantile(alpha: float, freedom: float) -> float:
    """The t that a share `alpha` lies beyond, on both sides."""
    low, high = 0.0, 1.0
    while t_two_sided_tail(high, freedom) > alpha:
        high *= 2
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided_tail(middle, freedom) > alpha else (low, middle)
    return high


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges slowly
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or tiny)
    fraction = d
    for m in range(1, 500):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + step * d) or tiny)
            c = (1 + step / c) or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return math.exp(log_front) * fraction / a
