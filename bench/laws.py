"""How often a law of growth is found at known noise, beside Extra-P: `python bench/laws.py [--laws 40] [--extrap]`.

Each law is c + f * n^i * log2(n)^j with a term that both programs know, i at most 2; its growing part is 0.2 to 2 times
the constant at 16. It is measured at 1 to 32, five times each. Right: the power within 1/4. Near: the prediction for
128, four times the range, within 10 %. Inside: the interval of 90 % holds the true value. Extra-P (`pip install extrap`
in an environment of its own) is run with the mean of the repeats.
"""

from __future__ import annotations

import argparse
import math
import random
from typing import TYPE_CHECKING, Any

from nsw.analysis.laws import TERMS, Law, Term, fit_law

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VALUES = (1, 2, 4, 8, 16, 32)
REPEATS, FAR = 5, 128


def synthetic(laws: int, noise: float) -> Iterator[tuple[Term, Callable[[float], float], dict[int, list[float]]]]:
    """The laws with what was measured of each."""
    for seed in range(laws):
        scatter = random.Random(90001 + seed)
        term = scatter.choice([term for term in TERMS if 0 <= term.power <= 2])
        constant = scatter.uniform(1, 100)
        factor = scatter.uniform(0.2, 2) * constant / (16**term.power * 4**term.logs)

        def law(n: float, term: Term = term, constant: float = constant, factor: float = factor) -> float:
            return constant + factor * n**term.power * math.log2(n) ** term.logs

        yield term, law, {n: [law(n) * (1 + scatter.gauss(0, noise)) for _ in range(REPEATS)] for n in VALUES}


def of_nsw(measured: dict[int, list[float]]) -> tuple[float, float, tuple[float, float] | None]:
    """The power, the prediction and its interval."""
    law = fit_law(measured)
    assert isinstance(law, Law)
    far = law.at(FAR)
    assert far.value is not None
    return law.power, far.value, None if far.low is None or far.high is None else (far.low, far.high)


def of_extrap(measured: dict[int, list[float]]) -> tuple[float, float, tuple[float, float] | None]:
    """The power and the prediction of Extra-P."""
    from importlib import import_module

    def made(module: str, name: str, *arguments: Any) -> Any:
        return getattr(import_module(f"extrap.{module}"), name)(*arguments)

    path, metric = made("entities.callpath", "Callpath", "main"), made("entities.metric", "Metric", "time")
    points = [
        made(
            "entities.measurement", "Measurement", made("entities.coordinate", "Coordinate", float(n)), path, metric, v
        )
        for n, v in measured.items()
    ]
    modeler = made("modelers.single_parameter.basic", "SingleParameterModeler")
    modeler.use_median = False
    function = modeler.create_model(points).hypothesis.function
    powers = [
        float(simple.exponent)
        for compound in function.compound_terms
        for simple in compound.simple_terms
        if simple.term_type == "polynomial"
    ]
    return max(powers, default=0.0), float(function.evaluate(float(FAR))), None


def main() -> None:
    """Print a row a program and noise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--extrap", action="store_true", help="Extra-P instead of nsw")
    options = parser.parse_args()
    program = of_extrap if options.extrap else of_nsw
    print(f"{'noise':>6}{'right':>7}{'near':>6}{'inside':>8}   of {options.laws}, {program.__name__[3:]}")
    for noise in (0.02, 0.05, 0.1):
        right = near = inside = 0
        for term, law, measured in synthetic(options.laws, noise):
            power, far, interval = program(measured)
            right += abs(power - term.power) <= 0.26
            near += abs(far / law(FAR) - 1) <= 0.1
            inside += interval is not None and interval[0] <= law(FAR) <= interval[1]
        print(f"{noise:6.0%}{right:7}{near:6}{inside:8}")


if __name__ == "__main__":
    main()
