"""How often `nsw run --until decided` is wrong: simulated A/A campaigns of up to 30 pairs, looked at on the way.

    python bench/until_decided.py [--trials 2000] [--most 30] [--seed 1]

Pairs are added as nsw adds them, to 8, 12, 18, 27 and at last 30, until they decide. First the campaigns in which
nothing changed, as if `same` ended none: each look can be wrong. "naive": the same looks, each at the level that a
single one may have. Then a tenth as many campaigns in which B has 1 to 10 % more.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from nsw.analysis.certainty import (
    ALPHA,
    Verdict,
    alpha_at_look,
    estimate_from_pairs,
    pairs_at_next_look,
    sign_flip_p_value,
)

CHANGES = (1, 2, 5, 10)
LEAST = 8


def in_blocks(random: np.random.Generator, runs: np.ndarray) -> np.ndarray:
    """The difference of each pair of runs (a row each), whose sides are in random order."""
    return (runs[:, 1] - runs[:, 0]) * random.choice((-1, 1), len(runs))


def normal(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs that scatter by 1 %."""
    return random.normal(0, 0.01, (pairs, 2))


def heavy(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs that scatter by 1 % as Student's t with 2 degrees of freedom: some are off by 10 % and more."""
    return 0.01 * random.standard_t(2, (pairs, 2))


def slowed(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs that scatter by 0.5 %, of which each tenth is disturbed and takes up to twice as long."""
    disturbed = random.random((pairs, 2)) < 0.1
    return random.normal(0, 0.005, (pairs, 2)) + disturbed * np.log(random.uniform(1, 2, (pairs, 2)))


def drifting(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs of which each is 1 % slower than the one before, with 1 % of scatter."""
    return 0.01 * np.arange(2 * pairs).reshape(pairs, 2) + random.normal(0, 0.01, (pairs, 2))


def wandering(random: np.random.Generator, pairs: int) -> np.ndarray:
    """Runs whose speed wanders: it changes by 1 % or so from each to the next, with 0.5 % of scatter."""
    walk = np.cumsum(random.normal(0, 0.01, 2 * pairs)).reshape(pairs, 2)
    return walk + random.normal(0, 0.005, (pairs, 2))


MACHINES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": normal, "heavy tails": heavy, "slowed at times": slowed, "drift": drifting, "wandering": wandering,
}  # fmt: skip


def looks(most: int) -> Iterator[int]:
    """The numbers of pairs at which a campaign is looked at."""
    pairs = LEAST
    while pairs < most:
        yield pairs
        pairs = pairs_at_next_look(pairs) or most
    yield most


def campaign(logs: np.ndarray) -> tuple[Verdict, int]:
    """The verdict of a campaign and how many pairs it took."""
    verdict = Verdict.UNDECIDED
    for pairs in looks(len(logs)):
        verdict = estimate_from_pairs(logs[:pairs].tolist(), alpha=alpha_at_look(pairs)).verdict
        if verdict is not Verdict.UNDECIDED:
            return verdict, pairs
    return verdict, len(logs)


def main() -> None:
    """Print a row a machine and change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--most", type=int, default=30, help="pairs of a campaign at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    at = list(looks(options.most))
    print(f"{options.trials} A/A campaigns a row, of up to {options.most} pairs, seed {options.seed}: % wrong")
    print(f"{'machine':17}{'wrong':>7}{'naive':>7}")
    for name, machine in MACHINES.items():
        wrong = naive = 0
        for _ in range(options.trials):
            logs = in_blocks(random, machine(random, options.most))
            chances = [sign_flip_p_value(logs[:pairs]) for pairs in at]
            wrong += any(chance <= alpha_at_look(pairs) for chance, pairs in zip(chances, at, strict=True))
            naive += any(chance <= ALPHA for chance in chances)
        print(f"{name:17}{100 * wrong / options.trials:7.2f}{100 * naive / options.trials:7.2f}", flush=True)
    trials = options.trials // 10
    print(f"\n{trials} campaigns a row of which B has more: % decided so, % wrong (less or the same), pairs on average")
    print(f"{'machine':17}{'change':>8}{'decided':>9}{'wrong':>7}{'pairs':>7}")
    for name, machine in MACHINES.items():
        for change in CHANGES:
            ends = [
                campaign(in_blocks(random, machine(random, options.most)) + np.log1p(change / 100))
                for _ in range(trials)
            ]
            decided = 100 * sum(verdict is Verdict.MORE for verdict, _ in ends) / trials
            wrong_share = 100 * sum(verdict in {Verdict.LESS, Verdict.SAME} for verdict, _ in ends) / trials
            mean = np.mean([pairs for _, pairs in ends])
            print(f"{name:17}{change:+7}%{decided:9.1f}{wrong_share:7.1f}{mean:7.1f}", flush=True)


if __name__ == "__main__":
    main()
