"""The laws of a campaign: of which parameter, and with each run as a case of its own, for the scatter of repeats."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.cases import summarize_cases
from nsw.analysis.growth import fit_growth_by_series
from nsw.analysis.laws import LEAST, TRIED_TIMES
from nsw.analysis.proposal import proposal_curve
from nsw.engine.ledger_rows import State
from nsw.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.blocks import Curve
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.growth import Series
    from nsw.campaign.answers import Results

_FREE: Final = "baseline"  # the kind of passes without a profiler


def growth_of(results: Results, over: Sequence[str], at: Sequence[float]) -> list[Series]:
    """Return the laws of a campaign's figure, iterations and kernel classes, a series for each other combination.

    Args:
        results: The campaign.
        over: The parameter, or the two; none: that of the recipe's `report: scaling`, or the only one with numbers.
        at: Where to predict, a value for each parameter; none: at four times the largest measured.

    Raises:
        UsageError: There is no such parameter, or no single one to choose; or nothing was measured.
    """
    summary = results.summary
    numbers = {
        name: sorted(values)
        for name in dict.fromkeys(name for case in summary.cases for name in case.params)
        if (values := _numeric_values(summary.cases, name))
    }
    over = over or _default_parameter(numbers, summary.curve.axis if summary.curve else None)
    for name in over:
        if name not in numbers:
            hint = did_you_mean(name, numbers) or f"parameters with numbers: {', '.join(numbers) or 'none'}"
            raise UsageError(f"--over {name}: no parameter of this name has only numbers above zero", hint=hint)
    if at and len(at) != len(over):
        raise UsageError(
            f"--at needs a value for each of {', '.join(over)}", hint="such as --over gpus,batch --at 256,64"
        )
    runs = [run for run in results.runs if run.state is State.DONE and run.repeat]
    by_run = summarize_cases([replace(run, case_id=run.id) for run in runs], summary.tables, 0.9, None, summary.classes)
    cases: dict[str, list[CaseSummary]] = {case.id: [] for case in summary.cases}
    for run, of_run in zip(runs, by_run, strict=True):
        cases[run.case_id].append(of_run)
    point = tuple(at) or tuple(float(TRIED_TIMES * numbers[name][-1]) for name in over)
    series_list = fit_growth_by_series(summary.cases, cases, over=over, at=point, figure=summary.figure)
    if not series_list:
        raise UsageError(
            "there is nothing to fit: no run printed a figure, and no timeline has iterations",
            hint=f"`nsw status {results.folder.id}` shows the runs; `nsw help figures` how a recipe names a figure",
        )
    return series_list


def proposal_of(results: Results) -> Curve:
    """Return the figure of efficiency and cost that applications for computing time ask for.

    Raises:
        UsageError: The campaign scales along no parameter, or measured no figure.
    """
    summary = results.summary
    curve = summary.curve
    if curve is None or all(point.figure is None for point in curve.points):
        raise UsageError(
            "--proposal needs cases that scale along a parameter, and a figure of the program",
            hint="`report: {scaling: {axis: gpus, kind: strong, figure: NAME}}` in the recipe names both",
        )
    free = [run for run in results.runs if run.state is State.DONE and run.repeat and run.pass_kind == _FREE]
    seconds: dict[str, list[float]] = {}
    for run in free:
        if run.seconds is not None:
            seconds.setdefault(run.case_id, []).append(run.seconds)
    return proposal_curve(
        curve,
        growth_of(results, [curve.axis], ()),
        gpus={run.case_id: run.gpus for run in results.runs},
        run_s={case: median(values) for case, values in seconds.items()},
    )


def _numeric_values(cases: Sequence[CaseSummary], name: str) -> set[float]:
    """The distinct values of a parameter, where all are numbers above zero; else none."""
    values: list[Any] = [case.params.get(name) for case in cases]
    are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in values)
    return set(values) if are_numbers else set()


def _default_parameter(numbers: dict[str, list[float]], axis: str | None) -> list[str]:
    if axis in numbers:
        return [str(axis)]
    several = [name for name, values in numbers.items() if len(values) >= LEAST]
    if len(several) == 1:
        return several
    if several:
        raise UsageError(f"laws of which parameter: {' or '.join(several)}?", hint=f"nsw model --over {several[0]}")
    raise UsageError(
        f"no parameter has {LEAST} measured numbers, which a law needs at least",
        hint="`nsw run RECIPE --set gpus=1,2,4,8,16` measures more",
    )
