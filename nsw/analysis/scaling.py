"""How a figure scales along one parameter: speed-up, efficiency, and the share of communication.

For a figure where more is better (images/s), speed-up is figure(n) / figure(base) and efficiency is speed-up
over n / base, for strong scaling and for weak scaling alike: the figure counts all the work of all GPUs. For a
time, strong scaling has speed-up time(base) / time(n); weak scaling, where the work grows with n, has
efficiency time(base) / time(n) and the scaled speed-up efficiency * n / base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nsw.analysis.cases import best_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary, Figure

_TIME_UNITS = frozenset({
    "s", "sec", "secs", "second", "seconds", "ms", "msec", "millisecond", "milliseconds", "us", "µs", "μs", "usec",
    "microsecond", "microseconds", "ns", "nsec", "nanosecond", "nanoseconds", "min", "mins", "minute", "minutes", "h",
    "hr", "hrs", "hour", "hours",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """One case on a scaling curve; `missing` says why a value is None."""

    series: dict[str, Any]
    at: int | float
    case_id: str
    figure: float | None
    least: float | None
    most: float | None
    runs: int
    profiled: bool
    speedup: float | None
    efficiency_pct: float | None
    communication_pct: float | None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """The scaling table: `axis` values across, one series for each combination of the other parameters."""

    axis: str
    kind: Literal["weak", "strong"]
    figure: str
    unit: str | None
    higher_is_better: bool
    points: tuple[Point, ...]

    @property
    def profiled(self) -> bool:
        """Whether some figure was taken while the program was being profiled."""
        return any(p.profiled for p in self.points)


def is_time(unit: str | None) -> bool:
    """Whether it is one of time, of which less is better unless the recipe says else: `s`, `ms/step`."""
    return (unit or "").lower().replace(" per ", "/").partition("/")[0].strip() in _TIME_UNITS


def scaling(
    cases: Sequence[CaseSummary],
    *,
    axis: str,
    kind: Literal["weak", "strong"],
    figure: str,
    baseline: Any = None,
    higher_is_better: bool | None = None,
) -> Scaling:
    """The scaling of `figure` along parameter `axis`.

    Each series is compared with its case at `baseline` (by default the least value of the axis). Where that case
    has no figure there is no speed-up: another base would make rows that look alike mean different things.
    """
    found = {case.id: best_figure(case, figure) for case in cases}
    unit = next((f.unit for f in found.values() if f is not None), None)
    better = higher_is_better if higher_is_better is not None else not is_time(unit)
    series: dict[tuple[tuple[str, str], ...], list[CaseSummary]] = {}
    for case in cases:
        key = tuple((k, repr(v)) for k, v in case.params.items() if k != axis)
        series.setdefault(key, []).append(case)
    points: list[Point] = []
    for members in series.values():
        members.sort(key=lambda case: float(case.params[axis]))
        base = next((c for c in members if baseline is None or c.params[axis] == baseline), None)
        points += [_point(c, base, found, axis, kind, better) for c in members]
    return Scaling(axis, kind, figure, unit, better, tuple(points))


def _point(
    case: CaseSummary, base: CaseSummary | None, found: dict[str, Figure | None], axis: str, kind: str, better: bool
) -> Point:
    mine, first = found[case.id], found[base.id] if base else None
    speedup = efficiency = None
    factor = float(case.params[axis]) / float(base.params[axis]) if base and base.params[axis] else 0.0
    if mine and first and mine.median and first.median and factor:
        gain = mine.median / first.median if better else first.median / mine.median
        speedup = gain * factor if kind == "weak" and not better else gain
        efficiency = 100 * speedup / factor
    return Point(
        series={k: v for k, v in case.params.items() if k != axis},
        at=case.params[axis],
        case_id=case.id,
        figure=mine.median if mine else None,
        least=mine.least if mine else None,
        most=mine.most if mine else None,
        runs=mine.runs if mine else 0,
        profiled=mine.profiled if mine else False,
        speedup=speedup,
        efficiency_pct=efficiency,
        communication_pct=case.communication_pct,
        missing=None if speedup is not None else _why_missing(mine, base, first),
    )


def _why_missing(mine: Figure | None, base: CaseSummary | None, first: Figure | None) -> str:
    if mine is None:
        return "no run of this case gave the figure"
    if base is None:
        return "the series has no case at the baseline"
    if first is None:
        return f"no run of {base.id} gave the figure to compare with"
    return "a figure or the axis is zero"
