"""Steps of series of nightly values: found where they are, and none where none is. bench/steps.py has the full count."""

import math

import numpy as np
import pytest

from nsw.analysis.steps import find_steps, one_night_noise

NIGHTS = 50


def noise(seed, count, tails="normal", nights=NIGHTS):
    rng = np.random.default_rng(seed)
    shape = count, nights
    return 0.01 * (rng.standard_normal(shape) if tails == "normal" else rng.standard_t(3, shape) / math.sqrt(3))


def alone(series):
    """Each series judged as the only one."""
    return [find_steps([row], [0.0])[0] for row in series]


@pytest.mark.parametrize("tails", ["normal", "t"])
def test_noise_alone_has_a_step_in_at_most_2_percent_of_the_series(tails):
    assert sum(map(bool, alone(noise(1, 100, tails)))) <= 2


@pytest.mark.parametrize("tails", ["normal", "t"])
def test_a_step_of_4_percent_is_found_when_three_nights_are_known(tails):
    series = noise(2, 40, tails)
    series[:, -3:] += math.log(1.04)
    found = [[step for step in steps if abs(step.at - (NIGHTS - 3)) <= 3] for steps in alone(series)]
    assert sum(map(bool, found)) >= 38
    assert np.median([steps[0].size for steps in found if steps]) == pytest.approx(math.log(1.04), abs=0.005)


def test_a_drift_of_a_third_of_a_percent_a_night_is_found_within_twenty_nights_and_named():
    series = noise(4, 30)
    series[:, -20:] += np.arange(1, 21) * math.log(1.003)
    found = alone(series)
    assert all(any(step.size > 0 for step in steps) for steps in found)
    drifts = [step for steps in found for step in steps if step.is_drift]
    assert len(drifts) >= 8
    assert abs(np.median([step.at for step in drifts]) - 30) <= 3


def test_each_of_several_steps_of_a_long_series_is_found():
    (series,) = noise(5, 1, nights=300)
    series[100:] += 0.05
    series[180:] -= 0.08
    (steps,) = find_steps([series], [0.0])
    assert [step.at for step in steps] == [pytest.approx(100, abs=1), pytest.approx(180, abs=1)]
    assert [round(step.size, 2) for step in steps] == [0.05, -0.08]


def test_a_night_far_off_is_no_step():
    (series,) = noise(6, 1)
    series[20:22] += 0.5
    assert find_steps([series], [0.0]) == [[]]


def test_a_step_below_the_noise_floor_is_none():
    (series,) = noise(7, 1)
    series[25:] += 0.03
    assert len(find_steps([series], [0.0])[0]) == 1
    assert find_steps([series], [0.05]) == [[]]


def test_of_many_series_together_few_steps_are_false():
    series = noise(9, 60)
    series[:5, 25:] += 0.04
    found = find_steps(list(series), [0.0] * 60)
    assert all(found[:5])
    assert not any(found[5:])


def test_results_are_repeatable_and_a_short_or_constant_series_has_no_step():
    (series,) = noise(9, 1)
    series[30:] += 0.04
    assert find_steps([series], [0.0]) == find_steps([series], [0.0])
    assert find_steps([np.zeros(40), np.array([0.1, 0.2]), np.array([])], [0.0] * 3) == [[], [], []]
    assert one_night_noise(np.array([0.1, 0.2])) == 0.0


def test_nights_that_scatter_more_are_no_step_where_the_ranks_show_none():
    (series,) = np.random.default_rng(35).standard_normal((1, NIGHTS)) * 0.01
    series[25:] *= 6
    assert find_steps([series], [0.0]) == [[]]
