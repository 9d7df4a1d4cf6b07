"""Variants of a program beside a baseline variant: how many times better each figure is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsw.analysis.cases import best_figure
from nsw.analysis.scaling import is_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant within one series; `ratio` above 1 is better than the baseline variant.

    `gpu_ns` is that of an iteration where all variants have iterations (`per_iteration`), else of the whole case.
    """

    series: dict[str, Any]
    variant: Any
    case_id: str
    figure: float | None
    unit: str | None
    least: float | None
    most: float | None
    runs: int
    ratio: float | None
    top: str | None
    gpu_ns: float | None
    per_iteration: bool = False


def compare(
    cases: Sequence[CaseSummary],
    *,
    parameter: str,
    baseline: Any,
    figure: str,
    higher_is_better: bool | None = None,
) -> list[Variant]:
    """Every case beside the one that differs only in having `parameter` = `baseline`."""
    bases = {_series(c, parameter): c for c in cases if c.params[parameter] == baseline}
    result = []
    each = all(c.iterations is not None for c in cases)
    order = list(dict.fromkeys(_series(c, parameter) for c in cases))
    for case in sorted(cases, key=lambda c: order.index(_series(c, parameter))):
        mine = best_figure(case, figure)
        base = bases.get(_series(case, parameter))
        first = best_figure(base, figure) if base else None
        ratio = None
        if mine and first and mine.median and first.median:
            better = higher_is_better if higher_is_better is not None else not is_time(mine.unit)
            ratio = mine.median / first.median if better else first.median / mine.median
        top = (
            case.hotspots[0].short_name if case.hotspots else (case.functions[0].short_name if case.functions else None)
        )
        result.append(
            Variant({k: v for k, v in case.params.items() if k != parameter}, case.params[parameter], case.id,
                    mine.median if mine else None, mine.unit if mine else None,
                    mine.least if mine else None, mine.most if mine else None, mine.runs if mine else 0,
                    ratio, top, case.iterations.gpu_ns if each and case.iterations else case.gpu_ns, each)
        )  # fmt: skip
    return result


def _series(case: CaseSummary, parameter: str) -> tuple[tuple[str, str], ...]:
    return tuple((k, repr(v)) for k, v in case.params.items() if k != parameter)
