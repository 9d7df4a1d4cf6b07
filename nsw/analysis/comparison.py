"""Cases beside each other: how a figure scales along one parameter, and variants of a program beside a baseline.

For a figure where more is better (images/s), speed-up is figure(n) / figure(base) and efficiency is speed-up
over n / base, for strong scaling and for weak scaling alike: the figure counts all the work of all GPUs. For a
time, strong scaling has speed-up time(base) / time(n); weak scaling, where the work grows with n, has
efficiency time(base) / time(n) and the scaled speed-up efficiency * n / base.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from nsw.analysis.groups import group_by
from nsw.quantities import JOULE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.figures import Figure


_TIME_UNITS = frozenset({
    "s", "sec", "secs", "second", "seconds", "ms", "msec", "millisecond", "milliseconds", "us", "µs", "μs", "usec",
    "microsecond", "microseconds", "ns", "nsec", "nanosecond", "nanoseconds", "min", "mins", "minute", "minutes", "h",
    "hr", "hrs", "hour", "hours",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ScalingPoint:
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
    points: tuple[ScalingPoint, ...]

    @property
    def profiled(self) -> bool:
        """Whether some figure was taken while the program was being profiled."""
        return any(p.profiled for p in self.points)


def is_time_unit(unit: str | None) -> bool:
    """Whether it is one of time, of which less is better unless the recipe says else: `s`, `ms/step`."""
    return (unit or "").lower().replace(" per ", "/").partition("/")[0].strip() in _TIME_UNITS


def is_smaller_better(unit: str | None) -> bool:
    """Whether less of it is better, unless the recipe says else: of a time, and of an energy."""
    return is_time_unit(unit) or (unit or "").partition("/")[0] == JOULE


def figure_heading(name: str | None, unit: str | None, *, is_median: bool = False) -> str:
    """The heading of a figure: its name and unit, one of them where the name is the unit (`images_per_sec`).

    Args:
        name: The figure's name; None: the unit is all that there is.
        unit: Its unit; None or its name: it has none.
        is_median: Whether the values are medians of several runs.
    """
    is_unit = not name or not unit or name.replace("_per_", "/").startswith(unit)
    median = "median " if is_median else ""
    return f"{median}{unit or name or 'figure'}" if is_unit else f"{name}, {median}{unit}"


def figure_heading_with_unit(name: str, unit: str | None) -> str:
    """The heading of a figure in full tables and on axes: `loss`, `images_per_sec (images/s)`."""
    return f"{name} ({unit})" if unit and unit != name else name


def least_disturbed_figure(case: CaseSummary, name: str) -> Figure | None:
    """A figure of a case as the program gives it undisturbed; else while profiled, which the figure says."""
    case_figures = [f for f in case.figures if f.name == name]
    return min(case_figures, key=lambda f: f.profiled, default=None)


def _gain_over_base(figure: Figure | None, base: Figure | None, *, higher_is_better: bool | None) -> float | None:
    """How many times better a figure is than that of the base; None where one is missing or zero."""
    if figure is None or base is None or not figure.median or not base.median:
        return None
    better = not is_smaller_better(figure.unit) if higher_is_better is None else higher_is_better
    return figure.median / base.median if better else base.median / figure.median


def _figure_value_fields(figure: Figure | None) -> dict[str, Any]:
    """What a point and a variant have of a figure."""
    if figure is None:
        return {"figure": None, "least": None, "most": None, "runs": 0}
    return {"figure": figure.median, "least": figure.least, "most": figure.most, "runs": figure.runs}


def params_except(case: CaseSummary, *parameters: str) -> dict[str, Any]:
    """The parameters but these."""
    return {name: value for name, value in case.params.items() if name not in parameters}


def _group_cases_by_series(cases: Sequence[CaseSummary], *parameters: str) -> list[list[CaseSummary]]:
    """The cases that differ in these parameters alone together."""
    return list(
        group_by(
            cases, lambda case: tuple((name, repr(v)) for name, v in params_except(case, *parameters).items())
        ).values()
    )


def scaling_curve(
    cases: Sequence[CaseSummary],
    *,
    axis: str,
    kind: Literal["weak", "strong"],
    figure: str,
    baseline: Any = None,
    higher_is_better: bool | None = None,
) -> Scaling:
    """Return the scaling of `figure` along parameter `axis`.

    Each series is compared with its case at `baseline`. Where that case has no figure there is no speed-up: another
    base would make rows that look alike mean different things.

    Args:
        cases: The cases; those without the parameter are left out.
        axis: The parameter, a number such as that of GPUs.
        kind: Whether the work grows with the parameter (weak) or stays the same (strong).
        figure: The figure's name.
        baseline: The value of `axis` to compare with; None: the least of each series.
        higher_is_better: None: less is better for a time, more for all else.
    """
    cases = [case for case in cases if axis in case.params]  # whoever wrote the ledger may have left it out
    figures_by_case = {case.id: least_disturbed_figure(case, figure) for case in cases}
    unit = next((f.unit for f in figures_by_case.values() if f is not None), None)
    better = higher_is_better if higher_is_better is not None else not is_smaller_better(unit)
    points: list[ScalingPoint] = []
    for members in _group_cases_by_series(cases, axis):
        members.sort(key=lambda case: float(case.params[axis]))
        base = next((c for c in members if baseline is None or c.params[axis] == baseline), None)
        first = figures_by_case[base.id] if base else None
        for case in members:
            case_figure = figures_by_case[case.id]
            factor = float(case.params[axis]) / float(base.params[axis]) if base and base.params[axis] else 0.0
            gain = _gain_over_base(case_figure, first, higher_is_better=better) if factor else None
            speedup = gain * factor if gain is not None and kind == "weak" and not better else gain
            points.append(
                ScalingPoint(
                    series=params_except(case, axis),
                    at=case.params[axis],
                    case_id=case.id,
                    **_figure_value_fields(case_figure),
                    profiled=case_figure.profiled if case_figure else False,
                    speedup=speedup,
                    efficiency_pct=None if speedup is None else 100 * speedup / factor,
                    communication_pct=case.communication_pct,
                    missing=None if speedup is not None else _missing_value_reason(case_figure, base, first),
                )
            )
    return Scaling(axis, kind, figure, unit, better, tuple(points))


def _missing_value_reason(case_figure: Figure | None, base: CaseSummary | None, first: Figure | None) -> str:
    if case_figure is None:
        return "no run of this case gave the figure"
    if base is None:
        return "the series has no case at the baseline"
    if first is None:
        return f"no run of {base.id} gave the figure to compare with"
    return "a figure or the axis is zero"


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant within one series; `ratio` above 1 is better than the baseline variant.

    `gpu_ns` is that of an iteration where some variant has iterations (`per_iteration`), None for one without; else of
    the whole case: spans that differ are not compared.
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


def compare_variants(
    cases: Sequence[CaseSummary],
    *,
    parameter: str,
    baseline: Any,
    figure: str,
    higher_is_better: bool | None = None,
    tied: Sequence[str] = (),
) -> list[Variant]:
    """Compare every case with the one that differs from it only in `parameter`, which is `baseline` there.

    Args:
        cases: The cases; those without the parameter are left out.
        parameter: The parameter whose values are the variants.
        baseline: The value to compare with.
        figure: The figure's name.
        higher_is_better: None: less is better for a time, more for all else.
        tied: Parameters that change together with `parameter`, and may differ too.
    """
    cases = [case for case in cases if parameter in case.params]
    each = any(c.iterations is not None for c in cases)
    result = []
    for members in _group_cases_by_series(cases, parameter, *tied):
        base = next((c for c in members if c.params[parameter] == baseline), None)
        first = least_disturbed_figure(base, figure) if base else None
        for case in members:
            case_figure = least_disturbed_figure(case, figure)
            hottest = next(iter(case.hotspots or case.functions), None)
            result.append(
                Variant(
                    series=params_except(case, parameter, *tied),
                    variant=case.params[parameter],
                    case_id=case.id,
                    **_figure_value_fields(case_figure),
                    unit=case_figure.unit if case_figure else None,
                    ratio=_gain_over_base(case_figure, first, higher_is_better=higher_is_better),
                    top=hottest.short_name if hottest else None,
                    gpu_ns=(case.iterations.gpu_ns if case.iterations else None) if each else case.gpu_ns,
                    per_iteration=each,
                )
            )
    return result
