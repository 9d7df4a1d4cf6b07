"""Where to measure for a law: which values of a parameter, and how often each, for a prediction at a price.

The standard error of a prediction follows from the points alone, before anything is measured. So all sets of values are
tried, and the mean error at the target is made small, of laws with one term each: constant for one half, where their
term is largest. What is then to be expected is tried as well: such laws, with noise, are fitted by `fit_law`, and their
intervals at the target are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nsw.analysis.laws import ENOUGH, LEAST, TRIED_TIMES, Law, Term, fit_law

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.analysis.laws import Numbers

__all__ = ["Points", "choose_points"]

_NOISE: Final = 0.02  # relative scatter of repeats, where nothing is known of it
_TERMS: Final = (Term(-1.0), Term(-0.5), Term(0.0, 1), Term(0.5), Term(1.0))
_REPEATS: Final = (3, 10)  # fewer tell little of the scatter, more help less than another value
_MOST_VALUES: Final = 16  # of which all sets are tried
_AS_GOOD: Final = 1.05  # times the least error, within which the cheapest set is taken
_LAWS: Final = 4  # that are tried of each term
_SEED: Final = 20261129


@dataclass(frozen=True, slots=True)
class Points:
    """What to measure for a law.

    Attributes:
        values: The values of the parameter, ascending.
        repeats: How often each is measured.
        price: Of all of it, in the unit that the prices have.
        target: Where the law is to predict.
        target: The value to predict at.
        noise: The relative scatter of repeats that is assumed.
        errors: Half of the intervals of 90 % that laws of these points had at the target, relative to the prediction:
            those that one in ten is below, the median, and the one that one in ten is above; None where no law is
            determined by so few values.
    """

    values: tuple[float, ...]
    repeats: int
    price: float
    target: float
    noise: float
    errors: tuple[float, float, float] | None

    @property
    def extrapolation_factor(self) -> float:
        """How many times the largest value the target is."""
        return self.target / self.values[-1]

    @property
    def is_beyond_trials(self) -> bool:
        """Whether predictions were never tried so far from what was measured."""
        return self.extrapolation_factor > TRIED_TIMES


def choose_points(
    prices: Mapping[float, tuple[float, float]], *, target: float, budget: float, unit: str
) -> Points | str:
    """Choose the values and repeats that predict best at a price; a text says why there are none.

    Args:
        prices: Of each value of the parameter the price of what is measured once, and of each repeat; see `unit`.
        target: The value to predict at, above zero.
        budget: The most that all may cost.
        unit: The unit of all prices, for the text.
    """
    ordered = sorted(prices)
    values = np.array(ordered, dtype=np.float64)
    if not LEAST <= len(values) <= _MOST_VALUES:
        return f"{len(values)} values, and {LEAST} to {_MOST_VALUES} can be chosen from"
    once, each = np.array([prices[value] for value in ordered], dtype=np.float64).T
    sets = (np.arange(1, 2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sets = sets[sets.sum(axis=1) >= min(ENOUGH, len(values))]
    room = budget - sets @ once
    cost = sets @ each
    repeats = np.full(len(sets), _REPEATS[1])
    paid = cost > 0
    repeats[paid] = np.clip(np.floor(room[paid] / cost[paid] + 1e-9), 0, _REPEATS[1]).astype(int)
    repeats[room < 0] = 0
    least = min(_REPEATS[0], int(repeats.max()))
    if least == 0:
        cheapest = float((sets @ (once + each)).min())
        return f"the cheapest {min(ENOUGH, len(values))} values cost {cheapest:.3g} {unit}s, once each"
    sets, repeats = sets[repeats >= least], repeats[repeats >= least]
    errors = np.mean([_prediction_errors(sets, values, term, target) for term in _TERMS], axis=0) / np.sqrt(repeats)
    total = sets @ once + repeats * (sets @ each)
    good = np.flatnonzero(errors <= _AS_GOOD * errors.min())
    best = good[np.argmin(total[good])]
    chosen = tuple(value for value, is_chosen in zip(ordered, sets[best], strict=True) if is_chosen)
    count = int(repeats[best])
    return Points(chosen, count, float(total[best]), target, _NOISE, _try_laws(chosen, count, target))


def _share_of_growth(values: Numbers, term: Term) -> Numbers:
    """A law half of which is constant where its term is largest: 1 + term / largest."""
    grown = term.evaluate(values)
    return np.asarray(1 + grown / grown.max(), dtype=np.float64)


def _prediction_errors(sets: Numbers, values: Numbers, term: Term, target: float) -> Numbers:
    """Relative standard error at the target for noise of 1, of each set of values, shape (sets,)."""
    measured = _share_of_growth(values, term)
    column = term.evaluate(values)
    at = float(term.evaluate(np.array([target]))[0])
    weights = 1 / measured**2
    zeroth, first, second = sets @ weights, sets @ (weights * column), sets @ (weights * column**2)
    predicted = 1 + at / column.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (second - 2 * at * first + at**2 * zeroth) / (zeroth * second - first**2)
    return np.asarray(np.sqrt(np.where(variance > 0, variance, np.inf)) / predicted, dtype=np.float64)


def _try_laws(values: tuple[float, ...], repeats: int, target: float) -> tuple[float, float, float] | None:
    """Half intervals of fitted laws at the target, relative: the tenth, fiftieth and ninetieth percentile."""
    random = np.random.default_rng(_SEED)
    halves = []
    for term in _TERMS:
        true = _share_of_growth(np.array(values), term)
        for _ in range(_LAWS):
            noisy = true[:, None] * (1 + _NOISE * random.standard_normal((len(values), repeats)))
            law = fit_law(dict(zip(values, noisy, strict=True)))
            estimate = law.predict(target) if isinstance(law, Law) else None
            if estimate and estimate.value and estimate.low is not None and estimate.high is not None:
                halves.append((estimate.high - estimate.low) / 2 / abs(estimate.value))
    if len(halves) < len(_TERMS) * _LAWS / 2:
        return None
    low, middle, high = np.percentile(halves, (10, 50, 90))
    return float(low), float(middle), float(high)
