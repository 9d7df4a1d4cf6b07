"""Laws of growth: how a measured value grows with a parameter, or with two, and what it is where nothing was measured.

A law is y = a + b * x^i * log2(x)^j, the normal form of performance models, with the exponents that Extra-P tries and
negative ones for times that more GPUs shorten. Of two parameters it is the sum or the product of two such terms.
The law is chosen by leave-one-out cross-validation: each value in turn is predicted from the others, and errors are
relative to the value, so that small values count as much as large ones. A prediction is the mean of what all laws give
there, each weighed by how likely it makes the values at their noise: what the law says, where no second agrees with
them as well. Its interval is that of many laws, each chosen again for values with that noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Numbers: TypeAlias = NDArray[np.float64]

__all__ = ["ENOUGH", "LEAST", "TERMS", "TRIED_TIMES", "Estimate", "Law", "Term", "fit_law"]

LEAST: Final = 3  # distinct values of a parameter that a law needs
ENOUGH: Final = 5  # from which on one law is told from another
TRIED_TIMES: Final = 4  # the largest measured value, up to which predictions were tried
_LEVEL: Final = (5, 95)  # percentiles of an interval
_SAMPLES: Final = 200
_SEED: Final = 20261128
_WIDER: Final = 1.2  # times the noise: without it 86 % of the intervals of 90 % hold (bench/laws.py)
_BEST: Final = 100  # candidates of two parameters that compete again in each sample
_SIMPLER: Final = 1.25  # times the least error that a law without growth may have, and is preferred
_EXACT: Final = 1e-6  # a relative error that is none
_SHARPER: Final = 0.7  # of the noise's square, in weights: laws far from the best count less (bench/laws.py)
_LIKELY: Final = 1e-3  # of the likeliest law's weight: others have no part in a prediction
_FITS: Final = 2.0  # times the noise, within which a law agrees with the values
_SAME_CLASS: Final = 0.26  # difference of powers, of laws that grow alike


@dataclass(frozen=True, slots=True)
class Term:
    """x^power * log2(x)^logs."""

    power: float
    logs: int = 0

    def evaluate(self, x: Numbers) -> Numbers:
        """Return the term's value for each x, which is positive, shape (n,)."""
        return np.asarray(x**self.power * np.log2(x) ** self.logs, dtype=np.float64)

    def text(self, name: str) -> str:
        """Return the term as it is printed: `gpus^0.5 log2(gpus)`."""
        power = "" if not self.power else name if self.power == 1 else f"{name}^{self.power:.3g}"
        logs = "" if not self.logs else f"log2({name})" if self.logs == 1 else f"log2({name})^{self.logs}"
        return f"{power} {logs}".strip()


# the exponents of Extra-P by the power of the logarithm, and those that fall
_THIRDS: Final = (1 / 3, 2 / 3, 4 / 3, 5 / 3, 7 / 3, 8 / 3)
_POWERS: Final = {
    0: (1 / 4, 1 / 2, 3 / 4, 4 / 5, 1, 5 / 4, 3 / 2, 7 / 4, 2, 9 / 4, 5 / 2, 11 / 4, 3, *_THIRDS,
        -1 / 4, -1 / 3, -1 / 2, -2 / 3, -3 / 4, -1, -3 / 2, -2),
    1: (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 5 / 4, 4 / 3, 3 / 2, 2, 5 / 2, 3),
    2: (0, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 3 / 2, 2, 5 / 2),
}  # fmt: skip
TERMS: Final = tuple(Term(float(power), logs) for logs, powers in _POWERS.items() for power in powers)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A form of law: each summand is a product of terms, one for each parameter (None: not of this parameter).

    Without `has_constant` it falls towards 0, as the time of a program that scales ideally: a constant that is fitted
    to its noise is below 0 in half of all cases.
    """

    summands: tuple[tuple[Term | None, ...], ...]
    has_constant: bool = True

    def columns(self, points: Numbers) -> Numbers:
        """Return the factors of the coefficients at points (n, parameters): (n, 3), zero where there are fewer."""
        columns = np.zeros((len(points), 3))
        columns[:, 0] = float(self.has_constant)
        for at, summand in enumerate(self.summands, 1):
            columns[:, at] = np.prod(
                [term.evaluate(points[:, axis]) for axis, term in enumerate(summand) if term is not None], axis=0
            )
        return columns

    @property
    def grows_by_summand(self) -> tuple[bool, bool]:
        """Whether each summand has no bound."""
        growing = [
            any(term is not None and (term.power > 0 or (term.power == 0 and term.logs > 0)) for term in summand)
            for summand in (*self.summands, (), ())
        ]
        return growing[0], growing[1]

    def growth_power(self, axis: int) -> float:
        """The power that tells how it grows with one parameter; a logarithm counts as a quarter."""
        return max((term.power + term.logs / 4 for summand in self.summands if (term := summand[axis])), default=0.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted value with the range that 90 % of the resampled laws give; `missing` is why there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    missing: str | None = None

    @classmethod
    def from_samples(cls, samples: Numbers) -> Estimate:
        """Make it from the prediction, which is first, and those of the resampled laws, shape (1 + laws,)."""
        if len(samples) == 1:
            return cls(float(samples[0]))
        low, high = np.percentile(samples[1:], _LEVEL)
        return cls(float(samples[0]), float(min(low, samples[0])), float(max(high, samples[0])))


@dataclass(frozen=True, slots=True)
class Law:
    """The law of a value.

    Attributes:
        names: Its parameters.
        coefficients: The constant, and the factor of each summand.
        summands: Of each the terms, one for each parameter; None where it is not of this parameter.
        error: The root mean square of the relative errors of the cross-validation.
        noise: Relative standard deviation of the mean at a value: that of the repeats, at least that of the law's own
            residuals; None where neither is known.
        least: The least measured value of each parameter.
        most: The largest.
        undetermined: Why nothing can be said beyond the measured range, by parameter; empty where it can.
    """

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    summands: tuple[tuple[Term | None, ...], ...]
    error: float
    noise: float | None
    least: tuple[float, ...]
    most: tuple[float, ...]
    undetermined: Mapping[str, str]
    _weighed: Sequence[tuple[_Candidate, Numbers, float]]  # weights add up to 1
    _samples: Sequence[tuple[_Candidate, Numbers]]

    @property
    def power(self) -> float:
        """The power of a law of one parameter, a number without a unit; 0 where nothing grows."""
        return self.summands[0][0].power if self.summands and self.summands[0][0] else 0.0

    @property
    def formula(self) -> str:
        """The law as it is printed: `1.2 + 0.034 gpus^0.5 log2(gpus)`."""
        text = f"{self.coefficients[0]:.3g}" if self.coefficients[0] or not self.summands else ""
        for factor, terms in zip(self.coefficients[1:], self._summand_texts(), strict=True):
            sign = (" - " if factor < 0 else " + ") if text else "-" if factor < 0 else ""
            text += f"{sign}{abs(factor):.3g} {terms}"
        return text

    @property
    def growth(self) -> str:
        """How it grows: `constant`, `gpus log2(gpus)`, `gpus^-1`."""
        return " + ".join(self._summand_texts()) or "constant"

    def _summand_texts(self) -> list[str]:
        return [
            " ".join(term.text(name) for term, name in zip(summand, self.names, strict=True) if term)
            for summand in self.summands
        ]

    def why_not(self, *point: float) -> str | None:
        """Return why nothing can be predicted at a point; None where it can be.

        Args:
            point: A positive number for each parameter.
        """
        for name, at, least, most in zip(self.names, point, self.least, self.most, strict=True):
            if name in self.undetermined and not least <= at <= most:
                return (
                    f"{name}={at:g} is beyond what was measured ({least:g} to {most:g}), and {self.undetermined[name]}"
                )
        return None

    def predictions(self, *point: float) -> Numbers:
        """Return what is predicted at a point, and behind it what each resampled law gives, shape (1 + laws,).

        Args:
            point: A positive number for each parameter, in its unit.
        """
        at = np.array([point], dtype=np.float64)
        mean = sum(weight * (candidate.columns(at)[0] * factors).sum() for candidate, factors, weight in self._weighed)
        return np.array([mean, *((candidate.columns(at)[0] * factors).sum() for candidate, factors in self._samples)])

    def predict(self, *point: float) -> Estimate:
        """Return the value at a point with its interval, in the unit of what was measured; or why there is none.

        Args:
            point: A positive number for each parameter.
        """
        missing = self.why_not(*point)
        return Estimate(None, missing=missing) if missing else Estimate.from_samples(self.predictions(*point))


def fit_law(measured: Mapping[Any, Sequence[float]], names: Sequence[str] = ("x",), *, floor: float = 0.0) -> Law | str:
    """Choose the law of measured values; a text says why there is none.

    Args:
        measured: The repeats at each value of the parameter, or at each pair of values; both are positive.
        names: The parameter, or the two.
        floor: What errors are relative to where a value is smaller.
    """
    points = np.array([point if isinstance(point, tuple) else (point,) for point in measured], dtype=np.float64)
    repeats = [np.asarray(values, dtype=np.float64) for values in measured.values()]
    distinct = [len(set(points[:, axis])) if len(points) else 0 for axis in range(len(names))]
    for name, count in zip(names, distinct, strict=True):
        if count < LEAST:
            return f"{name} has {count} measured value{'' if count == 1 else 's'}, and a law needs {LEAST} at least"
    means = np.array([values.mean() for values in repeats])
    scale = np.maximum(np.abs(means), floor)
    if not np.all(scale > 0) or not np.all(points > 0):
        return "a law needs values and parameters above zero"
    candidates = _candidate_laws(points)
    fits = _Fits(candidates, points, scale)
    scores, factors = fits.cross_validation_errors(means[:, None])
    best = _choose_candidates(candidates, scores)[0]
    if not np.isfinite(scores[best, 0]):
        return "no law is positive where it was measured"
    residuals = (fits.designs[best] @ factors[best, :, 0]) - means / scale
    freedom = len(points) - candidates[best].has_constant - len(candidates[best].summands)
    of_law = float(np.sqrt((residuals**2).sum() / freedom)) if freedom > 1 else None
    of_repeats = _relative_noise_of_means(repeats, scale)
    noise = (
        None
        if of_law is None and of_repeats is None
        else np.maximum(of_law or 0.0, 0.0 if of_repeats is None else of_repeats)
    )
    weighed = [(candidates[best], factors[best, :, 0], 1.0)]
    samples: list[tuple[_Candidate, Numbers]] = []
    if noise is not None and _SAMPLES:
        weights = fits.likelihoods(factors[..., 0], means, noise if of_repeats is None else of_repeats)
        weights *= np.isfinite(scores[:, 0])
        likely = np.flatnonzero(weights > _LIKELY * weights.max())
        if len(likely) and candidates[best].summands:
            shares = weights[likely] / weights[likely].sum()
            weighed = [(candidates[n], factors[n, :, 0], float(share)) for n, share in zip(likely, shares, strict=True)]
        random = np.random.default_rng(_SEED)
        few = np.argsort(scores[:, 0])[:_BEST]
        few = few if 0 in few else np.append(few, 0)
        drawn = (means + _WIDER * noise * scale * random.standard_normal((_SAMPLES, len(means)))).T
        few_candidates = [candidates[at] for at in few]
        some_scores, some_factors = _Fits(few_candidates, points, scale).cross_validation_errors(drawn)
        chosen = _choose_candidates(few_candidates, some_scores)
        samples += [(few_candidates[at], some_factors[at, :, n]) for n, at in enumerate(chosen)]
    undetermined = {}
    for axis, name in enumerate(names):
        if distinct[axis] < ENOUGH and (reason := _ambiguity_reason(candidates, axis, scores[:, 0], of_repeats)):
            undetermined[name] = f"{distinct[axis]} values of {name} do not determine a law ({ENOUGH} may): {reason}"
    return Law(
        names=tuple(names),
        coefficients=tuple(float(factor) for factor in factors[best, : 1 + len(candidates[best].summands), 0]),
        summands=candidates[best].summands,
        error=float(scores[best, 0]),
        noise=None if noise is None else float(np.mean(noise)),
        least=tuple(points.min(axis=0)),
        most=tuple(points.max(axis=0)),
        undetermined=undetermined,
        _weighed=weighed,
        _samples=samples,
    )


class _Fits:
    """All candidates beside the same points: least squares of relative errors, once for many sets of values."""

    def __init__(self, candidates: Sequence[_Candidate], points: Numbers, scale: Numbers) -> None:
        self.scale = scale
        self.designs = np.stack([candidate.columns(points) for candidate in candidates]) / scale[:, None]
        # columns of very different sizes would be lost to rounding
        sizes = np.linalg.norm(self.designs, axis=1, keepdims=True)
        self._sizes = np.where(sizes > 0, sizes, 1.0)
        self._inverses = np.linalg.pinv(self.designs / self._sizes)
        self._leverage = np.einsum("cnp,cpn->cn", self.designs / self._sizes, self._inverses)
        self._grows = np.array([candidate.grows_by_summand for candidate in candidates])

    def cross_validation_errors(self, values: Numbers) -> tuple[Numbers, Numbers]:
        """Return the error of the cross-validation (candidates, sets) and the factors (candidates, 3, sets).

        Args:
            values: (points, sets), in the unit of the scale.
        """
        relative = values / self.scale[:, None]
        factors = np.einsum("cpn,ns->cps", self._inverses, relative) / self._sizes.transpose(0, 2, 1)
        fitted = np.einsum("cnp,cps->cns", self.designs, factors)
        room = 1 - self._leverage
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(room[..., None] > 1e-9, (relative - fitted) / room[..., None], np.inf)
        scores = np.sqrt(np.mean(errors**2, axis=1))
        # a law that becomes negative, where it was measured or far away, is none
        negative = (fitted <= 0).any(axis=1) | (self._grows[..., None] & (factors[:, 1:] < 0)).any(axis=1)
        falls = np.logical_not(self._grows.any(axis=1))
        negative |= falls[:, None] & (factors[:, 0] < 0)
        return np.where(negative, np.inf, scores), factors

    def likelihoods(self, factors: Numbers, means: Numbers, noise: Numbers) -> Numbers:
        """Return how likely each candidate makes the values, of the likeliest 1, shape (candidates,).

        Args:
            factors: (candidates, 3).
            means: (points,), in the unit of the scale.
            noise: Relative standard deviation of each mean: a number, or (points,).
        """
        deviations = np.einsum("cnp,cp->cn", self.designs, factors) - means / self.scale
        squares = (deviations**2 / (_SHARPER * np.maximum(noise, _EXACT) ** 2)).sum(axis=1)
        return np.asarray(np.exp((squares.min() - squares) / 2), dtype=np.float64)


def _choose_candidates(candidates: Sequence[_Candidate], scores: Numbers) -> NDArray[np.intp]:
    """The candidate of each set: the one with the least error, or no growth where that is hardly worse."""
    constant = next(at for at, candidate in enumerate(candidates) if not candidate.summands)
    best = np.argmin(scores, axis=0)
    least = np.take_along_axis(scores, best[None], axis=0)[0]
    return np.where(scores[constant] <= np.maximum(_SIMPLER * least, _EXACT), constant, best)


def _candidate_laws(points: Numbers) -> list[_Candidate]:
    """No growth, growth with one parameter, and the sum and the product of growth with both."""
    terms = [[term for term in TERMS if not term.logs or points[:, axis].min() >= 1] for axis in range(points.shape[1])]
    axes = range(len(terms))
    alone = [tuple(term if axis == at else None for axis in axes) for at in axes for term in terms[at]]
    falling = [summand for summand in alone if any(term and term.power < 0 for term in summand)]
    pairs = list(product(*terms)) if len(terms) > 1 else []
    return [
        _Candidate(()),
        *(_Candidate((summand,)) for summand in alone),
        *(_Candidate((summand,), has_constant=False) for summand in falling),
        *(_Candidate(((first, None), (None, second))) for first, second in pairs),
        *(_Candidate(((first, second),)) for first, second in pairs),
    ]


def _relative_noise_of_means(repeats: Sequence[Numbers], scale: Numbers) -> Numbers | None:
    """The relative standard deviation of each mean, by the scatter of all repeats together; None without repeats."""
    freedom = sum(len(values) - 1 for values in repeats)
    if not freedom:
        return None
    squares = sum(
        float(((values - values.mean()) ** 2).sum()) / size**2 for values, size in zip(repeats, scale, strict=True)
    )
    counts = np.array([len(values) for values in repeats], dtype=np.float64)
    return np.asarray(np.sqrt(squares / freedom / counts), dtype=np.float64)


def _ambiguity_reason(
    candidates: Sequence[_Candidate], axis: int, scores: Numbers, noise: Numbers | None
) -> str | None:
    """Why several laws agree with the values; None where one class does."""
    if any(not each.summands and score <= _EXACT for each, score in zip(candidates, scores, strict=True)):
        return None  # the same at every value
    if noise is None:
        return "each was measured once, so that no law is excluded"
    fitting = [
        candidate for candidate, score in zip(candidates, scores, strict=True)
        if score <= max(_FITS * float(np.mean(noise)), float(scores.min()))
    ]  # fmt: skip
    powers = [candidate.growth_power(axis) for candidate in fitting]
    return f"{len(fitting)} laws agree with them" if max(powers) - min(powers) > _SAME_CLASS else None
