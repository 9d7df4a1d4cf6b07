"""How often `nsw compare` is wrong: simulated pairs of campaigns, of which nothing or 5 % changed.

    python bench/false_alarms.py [--trials 2000] [--seed 1]

Each trial is a campaign of pairs A and B. Floor "measured": 12 pairs A/A of the same machine came before, as `nsw
noise` runs them; "none": 10 % of scatter between runs is assumed below 7 pairs.
"""

import argparse
from collections.abc import Callable

import numpy as np

from nsw.analysis.certainty import ASSUMED, Floor, Verdict, estimate_from_pairs

PAIRS = (3, 5, 7, 12)
CHANGE = np.log(1.05)


def scattered(deviation: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Runs that scatter by so much, as a logarithm; the difference of two is a pair's."""
    return lambda random, pairs: random.normal(0, deviation, (pairs, 2))


def bimodal(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs that take 22.5 or 25.5 ms, as was reported of a GPU benchmark, with 0.2 % within each mode."""
    return np.log(random.choice((22.5, 25.5), (pairs, 2))) + random.normal(0, 0.002, (pairs, 2))


def drifting(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs of which each is 1 % slower than the one before, in random order within a block, with 1 % of scatter."""
    time = np.arange(2 * pairs).reshape(pairs, 2)
    return 0.01 * random.permuted(time, axis=1) + random.normal(0, 0.01, (pairs, 2))


MACHINES = {
    "runs 0.7 % (pairs 1 %)": scattered(0.01 / np.sqrt(2)),
    "runs 1 %": scattered(0.01),
    "runs 2 %": scattered(0.02),
    "runs 5 %": scattered(0.05),
    "runs 10 %": scattered(0.10),
    "bimodal": bimodal,
    "drift": drifting,
}


def measured_floor(random: np.random.Generator, machine: Callable[[np.random.Generator, int], np.ndarray]) -> Floor:
    """What 12 pairs A/A of the machine show."""
    runs = machine(random, 12)
    return Floor(float(np.std(runs[:, 1] - runs[:, 0], ddof=1)), float(np.std(runs, ddof=1)), 11)


def shares(
    machine: Callable[[np.random.Generator, int], np.ndarray], pairs: int, change: float, *, floor: bool, trials: int,
    random: np.random.Generator,
) -> dict[Verdict, float]:  # fmt: skip
    """How often each verdict was given, in per cent."""
    seen: dict[Verdict, int] = dict.fromkeys(Verdict, 0)
    for _ in range(trials):
        known = measured_floor(random, machine) if floor else ASSUMED
        runs = machine(random, pairs)
        seen[estimate_from_pairs((runs[:, 1] - runs[:, 0] + change).tolist(), known).verdict] += 1
    return {verdict: 100 * count / trials for verdict, count in seen.items()}


def main() -> None:
    """Print a row a machine, number of pairs and floor."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    print(f"{options.trials} trials a row, seed {options.seed}; % of trials")
    print(
        f"{'machine':24}{'floor':10}{'pairs':>6}{'false alarms':>14}{'+5 % found':>12}{'cannot tell':>13}{'wrong':>8}"
    )
    for name, machine in MACHINES.items():
        for floor in (True, False):
            for pairs in PAIRS:
                same = {"floor": floor, "trials": options.trials, "random": random}
                null = shares(machine, pairs, 0.0, **same)
                changed = shares(machine, pairs, CHANGE, **same)
                false = null[Verdict.MORE] + null[Verdict.LESS]
                print(
                    f"{name:24}{'measured' if floor else 'none':10}{pairs:6}{false:14.2f}{changed[Verdict.MORE]:12.1f}"
                    f"{changed[Verdict.UNDECIDED]:13.1f}{changed[Verdict.LESS]:8.2f}"
                )


if __name__ == "__main__":
    main()
