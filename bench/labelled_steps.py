"""Precision, recall and F1 of `nsw history` on 600 made series whose steps are known, beside Otava.

    python bench/labelled_steps.py [--otava]

Each has 40 to 100 nights, noise of 1 % (normal, or Student's t with 3 degrees of freedom), and none to three steps of 2
to 8 %, 12 nights apart at least. Right: within three nights. Otava (`pip install apache-otava` in an environment of its
own) is run with its defaults, a window of 50 and p below 0.001.
"""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

NEAR = 3  # nights


def labelled_series(tails: str, count: int = 300) -> Iterator[tuple[np.ndarray, list[int]]]:
    """The logarithms of each series, and the nights at which its steps begin."""
    random = np.random.default_rng(77)
    for _ in range(count):
        nights = int(random.integers(40, 101))
        scatter = random.standard_normal(nights) if tails == "normal" else random.standard_t(3, nights) / math.sqrt(3)
        logs, begins = 0.01 * scatter, list[int]()
        for begin in random.integers(8, nights - 7, 200):
            if len(begins) < nights % 4 and all(abs(begin - other) >= 12 for other in begins):
                begins.append(int(begin))
                logs[begin:] += math.log1p(float(random.choice([-1, 1]) * random.uniform(0.02, 0.08)))
        yield logs, sorted(begins)


def steps_of_nsw(logs: np.ndarray) -> list[int]:
    """The nights at which steps begin, by nsw."""
    (steps,) = import_module("nsw.analysis.steps").find_steps([logs], [0.0])
    return [step.at for step in steps]


def steps_of_otava(logs: np.ndarray) -> list[int]:
    """The same by Otava."""
    compute = import_module("otava.analysis").compute_change_points
    return [int(point.index) for point in compute(np.exp(logs).tolist(), window_len=50, min_magnitude=0.0)[0]]


def main() -> None:
    """Print a row for each kind of noise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--otava", action="store_true", help="Otava instead of nsw")
    find = steps_of_otava if parser.parse_args().otava else steps_of_nsw
    for tails in ("normal", "Student t 3"):
        right = reported = known = 0
        for logs, begins in labelled_series(tails):
            steps = find(logs)
            reported, known = reported + len(steps), known + len(begins)
            for begin in begins:
                nearest = min(steps, key=lambda at: abs(at - begin), default=None)
                if nearest is not None and abs(nearest - begin) <= NEAR:
                    right += 1
                    steps.remove(nearest)
        precision, recall = right / reported, right / known
        f1 = 2 * precision * recall / (precision + recall)
        print(f"{tails}: precision {precision:.3f}, recall {recall:.3f}, F1 {f1:.3f} ({known} steps)")


if __name__ == "__main__":
    main()
