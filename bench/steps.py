"""How often `nsw history` reports a step where none is, and how soon it finds a step or a drift: simulated series.

Each series is judged alone, as the only one, which reports more false steps than many series together do.

    python bench/steps.py [--series 2000]
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from nsw.analysis.steps import Step, find_steps

NIGHTS = 50


def noise(rng: np.random.Generator, shape: tuple[int, int], tails: str) -> np.ndarray:
    """Noise of 1 %: normal, or Student's t with 3 degrees of freedom and the same standard deviation."""
    return 0.01 * (rng.standard_normal(shape) if tails == "normal" else rng.standard_t(3, shape) / math.sqrt(3))


def alone(series: np.ndarray) -> list[list[Step]]:
    """The steps of each series, each judged as the only one."""
    return [find_steps([row], [0.0])[0] for row in series]


def false_alarms(count: int, tails: str, nights: int = NIGHTS) -> float:
    """The share of series without a step that report one."""
    series = noise(np.random.default_rng(1), (count, nights), tails)
    return sum(map(bool, alone(series))) / count


def found_early(count: int, tails: str, size: float = 0.04, after: int = 3) -> float:
    """The share of steps that are reported when so many nights are known after them."""
    series = noise(np.random.default_rng(2), (count, NIGHTS), tails)
    series[:, -after:] += math.log1p(size)
    return sum(any(abs(step.at - (NIGHTS - after)) <= 3 for step in steps) for steps in alone(series)) / count


def found_near(count: int, tails: str, size: float = 0.04) -> float:
    """The share of steps anywhere that are reported within three nights of their begin."""
    rng = np.random.default_rng(3)
    series, at = noise(rng, (count, NIGHTS), tails), rng.integers(3, NIGHTS - 2, count)
    series[np.arange(NIGHTS) >= at[:, None]] += math.log1p(size)
    return sum(any(abs(s.at - a) <= 3 for s in steps) for steps, a in zip(alone(series), at, strict=True)) / count


def drifts_found(count: int, tails: str, nightly: float = 0.003, after: int = 20) -> tuple[float, float]:
    """The share of drifts that are reported after so many nights, and of those that are called a drift."""
    series = noise(np.random.default_rng(4), (count, NIGHTS), tails)
    series[:, -after:] += np.arange(1, after + 1) * math.log1p(nightly)
    found = [steps for steps in alone(series) if any(step.size > 0 for step in steps)]
    return len(found) / count, sum(any(s.is_drift for s in steps) for steps in found) / max(1, len(found))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=2000)
    count = parser.parse_args().series
    for tails in ("normal", "Student t 3"):
        begin = time.perf_counter()
        drift, named = drifts_found(count, tails)
        print(
            f"{tails}: {100 * false_alarms(count, tails):.2f} % of {count} series report a step where none is"
            f" ({100 * false_alarms(count // 5, tails, 200):.2f} % of 200 nights); a step of 4 % is found with 3 nights"
            f" in {100 * found_early(count, tails):.1f} %, within 3 nights of its begin in"
            f" {100 * found_near(count, tails):.1f} %; a drift of 0.3 % a night is found with 20 nights in"
            f" {100 * drift:.1f} %, {100 * named:.0f} % of them as a drift; {time.perf_counter() - begin:.0f} s"
        )


if __name__ == "__main__":
    main()
