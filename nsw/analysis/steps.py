"""When a series of nightly values stepped or began to drift.

A step needs two opinions: the energy statistic of E-divisive (Matteson and James 2014), whose chance a permutation test
gives, and a rank test, which a few wild nights do not sway. Both segments have at least three nights, and the step is
as large as the noise. Over all series together at most a small share of the steps is false (Benjamini and Hochberg).
"""

from __future__ import annotations

import math
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, TypeAlias

import numpy as np

from nsw.analysis.certainty import ALPHA, significant_by_false_discovery_rate

__all__ = ["MIN_NIGHTS", "Step", "Tests", "find_steps", "one_night_noise"]

Tests: TypeAlias = list[tuple[int, float]]  # the first night of the second segment, and the chance of the split

MIN_NIGHTS: Final = 3  # nights of a segment
_WINDOW: Final = 50  # nights that are looked at together; the next window begins half as many later
_FIRST_PERMUTATIONS: Final = 99  # most segments are without a step, and so many show it
_PERMUTATIONS: Final = 499
_ENOUGH: Final = 10  # permutations above the statistic whose count is the chance; of fewer the tail is extrapolated
_TAIL: Final = 0.1  # of the permutations, whose excess is close to exponential
_RANK_ALPHA: Final = 0.05  # of the second opinion
_SIGMA: Final = 1.4826  # standard deviations in a median absolute deviation
_SHORTEST_DRIFT: Final = 5  # nights; what rises faster is a step
_CLEARLY: Final = 4.0  # by how much a drift must fit better than steps, in units of Schwarz's criterion


@dataclass(frozen=True, slots=True)
class Step:
    """A lasting change of a series.

    Attributes:
        at: The index of its first night, which is not at the old level.
        until: The index of the first night at the new level; that of the last night where a drift goes on.
        size: The logarithm of the ratio of the new level to the old one.
        chance: How often as much comes by chance.
        is_drift: Whether the level changed over several nights.
    """

    at: int
    until: int
    size: float
    chance: float
    is_drift: bool = False


def one_night_noise(logs: np.ndarray) -> float:
    """The standard deviation of one night, by the differences of neighbours, so that a step counts little.

    Args:
        logs: The logarithms of the values of the nights, of shape (nights,).

    Returns:
        A logarithm; 0 of fewer than three nights.
    """
    if len(logs) < MIN_NIGHTS:
        return 0.0
    return float(_SIGMA * np.median(np.abs(np.diff(logs))) / math.sqrt(2))


def find_steps(
    series: Sequence[np.ndarray], floors: Sequence[float], memo: MutableMapping[str, Tests] | None = None
) -> list[list[Step]]:
    """Return the steps and drifts of each series, in the order of the nights.

    Args:
        series: The logarithms of the values of each series, each of shape (nights,).
        floors: The least size of a step in each series, as a logarithm; the noise of the series counts if it is larger.
        memo: The tests of windows of nights, of which a new night adds one; they are added to it.
    """
    memo = {} if memo is None else memo
    tests = [
        (number, at, chance) for number, logs in enumerate(series) for at, chance in _test_window_splits(logs, memo)
    ]
    significant = significant_by_false_discovery_rate([chance for _, _, chance in tests])
    by_series: list[dict[int, float]] = [{} for _ in series]
    for (number, at, chance), is_significant in zip(tests, significant, strict=True):
        if is_significant:
            by_series[number][at] = min(chance, by_series[number].get(at, 1.0))
    return [
        _merge_steps_into_drifts(logs, _confirmed_steps(logs, splits, max(floor, one_night_noise(logs))))
        for logs, splits, floor in zip(series, by_series, floors, strict=True)
    ]


# --- the first opinion ----------------------------------------------------------------------------------------------


def _test_window_splits(logs: np.ndarray, memo: MutableMapping[str, Tests]) -> Tests:
    """The tests of all windows of a series."""
    last = max(0, len(logs) - _WINDOW)
    tests: Tests = []
    for begin in sorted({*range(0, last, _WINDOW // 2), last}):
        window = logs[begin : begin + _WINDOW]
        key = sha256(window.tobytes()).hexdigest()
        if key not in memo:
            memo[key] = _best_splits_of_window(window)
        tests += [(begin + at, chance) for at, chance in memo[key]]
    return tests


def _best_splits_of_window(logs: np.ndarray) -> Tests:
    """The best split of each segment that was looked at, with its chance; a split segment is looked at in parts."""
    parts = [(0, len(logs))]
    tests = []
    while parts:
        begin, end = parts.pop()
        if end - begin < 2 * MIN_NIGHTS:
            continue
        split, chance = _best_split(logs[begin:end])
        tests.append((begin + split, chance))
        if chance <= ALPHA:
            parts += [(begin, begin + split), (begin + split, end)]
    return tests


def _best_split(logs: np.ndarray) -> tuple[int, float]:
    """Where a segment splits best, and how often one of its permutations splits as well."""
    statistics = _energy_statistics(logs[None, :])[0]
    best = int(statistics.argmax())
    height, orders = statistics[best], _night_permutations(len(logs))
    heights = _energy_statistics(logs[orders[:_FIRST_PERMUTATIONS]]).max(axis=1)
    if (heights >= height).sum() < _ENOUGH:
        heights = np.concatenate([heights, _energy_statistics(logs[orders[_FIRST_PERMUTATIONS:]]).max(axis=1)])
    return best + MIN_NIGHTS, _permutation_p_value(height, heights)


def _permutation_p_value(height: float, heights: np.ndarray) -> float:
    """The share of permutations that are as high, extrapolated where they are few (Knijnenburg 2009)."""
    above = int((heights >= height).sum())
    tail = np.sort(heights)[-int(_TAIL * len(heights)) - 1 :]
    bound, excess = float(tail[0]), float((tail[1:] - tail[0]).mean())
    if above >= _ENOUGH or excess <= 0.0:
        return (above + 1) / (len(heights) + 1)
    return min(_TAIL, _TAIL * math.exp(-(height - bound) / excess))


def _energy_statistics(rows: np.ndarray) -> np.ndarray:
    """The energy statistic of each split of each row that leaves MIN_NIGHTS nights on both sides: (rows, splits)."""
    n = rows.shape[1]
    distances = np.abs(rows[:, :, None] - rows[:, None, :])
    to_earlier = np.einsum("rij,ij->ri", distances, np.tri(n, k=-1))
    to_later = distances.sum(axis=2) - to_earlier
    splits = np.arange(MIN_NIGHTS, n - MIN_NIGHTS + 1)
    left = to_earlier.cumsum(axis=1)[:, splits - 1]
    right = to_later[:, ::-1].cumsum(axis=1)[:, ::-1][:, np.minimum(splits, n - 1)]
    between = to_earlier.sum(axis=1, keepdims=True) - left - right
    before, after = splits, n - splits
    within = left / (before * (before - 1) / 2) + right / (after * (after - 1) / 2)
    energies: np.ndarray = before * after / n * (2 * between / (before * after) - within)
    return energies


@lru_cache(maxsize=_WINDOW)
def _night_permutations(nights: int) -> np.ndarray:
    """Permutations of so many nights, the same in each call, so that results are repeatable."""
    rows = np.tile(np.arange(nights), (_PERMUTATIONS, 1))
    return np.random.default_rng(nights).permuted(rows, axis=1)


# --- the second opinion ---------------------------------------------------------------------------------------------


def _confirmed_steps(logs: np.ndarray, splits: dict[int, float], min_size: float) -> list[Step]:
    """The splits that are large enough and that a rank test shows too; of near ones the most certain."""
    accepted: list[int] = []
    for at in sorted(splits, key=lambda at: (splits[at], at)):
        if all(abs(at - neighbour) >= MIN_NIGHTS for neighbour in accepted):
            accepted.append(at)
    accepted.sort()
    steps: list[Step] = []
    while accepted:  # a split that is refused joins its neighbours
        ends = [0, *accepted, len(logs)]
        parts = [(logs[max(a, b - _WINDOW) : b], logs[b : min(c, b + _WINDOW)])
                 for a, b, c in zip(ends, ends[1:], ends[2:], strict=False)]  # fmt: skip
        steps = [Step(at, at, float(np.median(after) - np.median(before)), splits[at])
                 for at, (before, after) in zip(accepted, parts, strict=True)]  # fmt: skip
        weak = [step.at for step, (before, after) in zip(steps, parts, strict=True)
                if abs(step.size) < min_size or _rank_test_p_value(before, after) > _RANK_ALPHA]  # fmt: skip
        if not weak:
            return steps
        accepted.remove(max(weak, key=splits.__getitem__))
    return []


def _rank_test_p_value(before: np.ndarray, after: np.ndarray) -> float:
    """The two-sided chance of Mann and Whitney's U, by its normal approximation."""
    product, total = len(before) * len(after), len(before) + len(after)
    wins = (after[:, None] > before).sum() + 0.5 * (after[:, None] == before).sum()
    away = max(0.0, abs(float(wins) - product / 2) - 0.5)
    return math.erfc(away / math.sqrt(product * (total + 1) / 12) / math.sqrt(2))


# --- drifts ---------------------------------------------------------------------------------------------------------


def _merge_steps_into_drifts(logs: np.ndarray, steps: list[Step]) -> list[Step]:
    """The steps, with those in one direction as a drift where a ramp fits better."""
    result: list[Step] = []
    groups: list[list[Step]] = []
    for step in steps:
        if groups and (groups[-1][-1].size > 0) == (step.size > 0) and step.at - groups[-1][-1].at < _WINDOW // 2:
            groups[-1].append(step)
        else:
            groups.append([step])
    for number, group in enumerate(groups):
        begin = groups[number - 1][-1].at if number else 0
        end = groups[number + 1][0].at if number + 1 < len(groups) else len(logs)
        begin, end = max(begin, group[0].at - _WINDOW // 2), min(end, group[-1].at + _WINDOW // 2)
        drift = _fit_drift(logs[begin:end], [step.at - begin for step in group])
        if drift is None:
            result += group
        else:
            first, last, size = drift
            result.append(Step(begin + first, begin + last, size, min(step.chance for step in group), is_drift=True))
    return result


def _fit_drift(logs: np.ndarray, steps: Sequence[int]) -> tuple[int, int, float] | None:
    """The first night, the end and the size of the ramp that fits better than these steps; None where none does."""
    n, nights = len(logs), np.arange(len(logs))
    pairs = [(i, j) for i in range(n) for j in range(i + _SHORTEST_DRIFT, n)]
    if not pairs:
        return None
    begins, ends = np.array(pairs).T
    ramps = np.clip((nights - begins[:, None]) / (ends - begins)[:, None], 0.0, 1.0)
    centred = ramps - ramps.mean(axis=1, keepdims=True)
    slopes = centred @ (logs - logs.mean()) / (centred**2).sum(axis=1)
    errors = np.abs(logs - logs.mean() - slopes[:, None] * centred).sum(axis=1)
    best = int(errors.argmin())
    segments = np.split(logs, steps)
    of_steps = sum(float(np.abs(part - np.median(part)).sum()) for part in segments)
    criterion = 2 * n * math.log(max(errors[best], 1e-12) / max(of_steps, 1e-12)) + (3 - 2 * len(steps)) * math.log(n)
    return (int(begins[best]) + 1, int(ends[best]), float(slopes[best])) if criterion < -_CLEARLY else None
