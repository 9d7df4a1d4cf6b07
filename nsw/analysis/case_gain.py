"""The finding that a case's row beside others names, and what its remedy saves: all of a row is of one finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from nsw.analysis.rules.registry import gain_base

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.rules.hits import Hit

__all__ = ["CaseGain", "case_gain", "leading_gain_pct", "leading_hit"]

_MUCH_MORE: Final = 3.0  # times what the first finding wins, from which a row names another
_BASE_WORDS: Final = ("iterations", "kernels", "run", "GPU time")  # of what a gain is a share of


class CaseGain(NamedTuple):
    """What the remedy of a row's finding saves at most.

    Attributes:
        pct: Of its base, per cent.
        base: What that is a share of: `iterations`, `kernels`, `run`, `GPU time` or `time`.
        saved_ns: The same in the time of this run, ns; None: how long its base takes is not known.
    """

    pct: float
    base: str
    saved_ns: float | None


def leading_hit(hits: Sequence[Hit]) -> Hit | None:
    """The finding that a case's row names: its first, unless another wins three times as much."""
    if not hits:
        return None
    largest = max(hits, key=_weight_pct)
    return largest if _weight_pct(largest) > _MUCH_MORE * max(_weight_pct(hits[0]), 1.0) else hits[0]


def leading_gain_pct(hits: Sequence[Hit]) -> float:
    """What the finding that a case's row names wins, per cent; 0 where nothing does but by accuracy."""
    hit = leading_hit(hits)
    return _weight_pct(hit) if hit else 0.0


def case_gain(case: CaseSummary, hits: Sequence[Hit]) -> CaseGain | None:
    """What the finding of a case's row saves; None: it has no remedy, or one that costs accuracy."""
    hit = leading_hit(hits)
    if hit is None or not hit.is_curable or hit.costs_accuracy:
        return None
    base = gain_base(hit)
    word = next((word for word in _BASE_WORDS if word in base), "time")
    base_ns = _base_ns(case, word)
    return CaseGain(hit.gain_pct, word, base_ns and base_ns * hit.gain_pct / 100)


def _weight_pct(hit: Hit) -> float:
    return 0.0 if hit.costs_accuracy else hit.gain_pct


def _base_ns(case: CaseSummary, word: str) -> float | None:
    """The time of this run that a gain is a share of, in ns; None: it is not known."""
    if word == "iterations":
        return case.iterations.count * case.iterations.med_ns if case.iterations else None
    if word == "kernels":
        return case.kernel_ns or sum(kernel.time_ns or 0.0 for kernel in case.kernels) or None
    return (case.traced_ns if word == "run" else case.gpu_ns) or None
