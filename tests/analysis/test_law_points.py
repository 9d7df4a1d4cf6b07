"""Which values of a parameter are measured for a law, at a price."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsw.analysis.law_points import Points, choose_points

GPUS = (1, 2, 4, 8, 16, 32)


def prices(values=GPUS, once=0.0):
    """Each repeat costs as much as it has GPUs."""
    return {value: (once, float(value)) for value in values}


def standard_error(values, repeats, power, target):
    """Of a prediction, by the textbook's matrices: noise of 1, relative to each value."""
    x, at = np.array(values, dtype=float), np.array([1.0, target**power])
    largest = max(value**power for value in GPUS)
    design = np.stack([np.ones(len(x)), x**power], axis=1) / (1 + x**power / largest)[:, None]
    covariance = np.linalg.inv(design.T @ design) / repeats
    return float(np.sqrt(at @ covariance @ at) / (1 + target**power / largest))


@pytest.mark.parametrize("budget", [100, 150, 300])
def test_no_other_five_values_of_that_price_predict_clearly_better(budget):
    points = choose_points(prices(), target=128, budget=budget, unit="gpu-hour")
    assert isinstance(points, Points)
    assert points.price == points.repeats * sum(points.values) <= budget

    def mean_error(values, repeats):
        logarithm = 1e-6  # x^power is 1 + power * log(x)
        return np.mean([standard_error(values, repeats, power, 128) for power in (-1, -0.5, logarithm, 0.5, 1)])

    others = [
        mean_error(values, repeats)
        for values in combinations(GPUS, 5)
        if (repeats := min(10, int(budget / sum(values)))) >= 3
    ]
    assert mean_error(points.values, points.repeats) <= 1.06 * min(others)


def test_a_larger_price_promises_a_smaller_error():
    few, many = (choose_points(prices(), target=128, budget=budget, unit="gpu-hour") for budget in (40, 600))
    assert few.errors[1] > 2 * many.errors[1]
    assert (many.extrapolation_factor, many.is_beyond_trials) == (4.0, False)
    assert few.is_beyond_trials


def test_what_is_run_once_whatever_the_repeats_is_paid_too():
    points = choose_points(prices(once=5.0), target=128, budget=125, unit="gpu-hour")
    assert points.price == len(points.values) * 5 + points.repeats * sum(points.values) <= 125


def test_too_few_values_and_too_little_money_are_said():
    assert (
        choose_points(prices((1, 2)), target=8, budget=9, unit="second") == "2 values, and 3 to 16 can be chosen from"
    )
    text = "the cheapest 5 values cost 31 gpu-hours, once each"
    assert choose_points(prices(), target=128, budget=30, unit="gpu-hour") == text


@given(
    st.dictionaries(st.integers(1, 999), st.tuples(st.floats(0, 9), st.floats(0.01, 99)), min_size=3, max_size=9),
    st.floats(1, 5000),
)
def test_never_above_the_price(costs, budget):
    points = choose_points(costs, target=2000, budget=budget, unit="gpu-hour")
    if isinstance(points, Points):
        spent = sum(costs[value][0] + points.repeats * costs[value][1] for value in points.values)
        assert points.price == pytest.approx(spent)
        assert spent <= budget * (1 + 1e-9)
        assert list(points.values) == sorted(points.values)
