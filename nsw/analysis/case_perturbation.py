"""The perturbation of each case's passes.

Counters passes are left out: they run kernels again and are expected to be slow.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.perturbation import RUN_TIME, Perturbation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.analysis.cases import CaseSummary

_KINDS: Final = frozenset({"timeline", "host"})
_FREE: Final = frozenset({"baseline"})


def with_perturbation(cases: Iterable[CaseSummary], runs: Sequence[Any]) -> list[CaseSummary]:
    """The cases, each with the perturbation of its passes.

    Args:
        cases: The cases, with their figures.
        runs: The campaign's runs (case_id, pass_name, pass_kind, state, seconds).
    """
    by_case: dict[str, list[Any]] = {}
    for run in runs:
        by_case.setdefault(run.case_id, []).append(run)
    return [replace(case, perturbation=tuple(_of_case(case, by_case.get(case.id, [])))) for case in cases]


def _of_case(case: CaseSummary, runs: Sequence[Any]) -> Iterable[Perturbation]:
    passes = dict.fromkeys(run.pass_name for run in runs if run.pass_kind in _KINDS)
    free_times = _times(run for run in runs if run.pass_kind in _FREE)
    for name in passes:
        for figure in (f for f in case.figures if f.pass_name == name):
            free = next((f for f in case.figures if not f.profiled and f.name == figure.name and f.median), None)
            if free is not None:
                yield _compared(
                    name, figure.name, figure.unit, (free.least, free.median, free.most, free.runs),
                    (figure.least, figure.median, figure.most, figure.runs),
                )  # fmt: skip
        times = _times(run for run in runs if run.pass_name == name)
        if free_times and times and statistics.median(free_times) > 0:
            yield _compared(name, RUN_TIME, "s", _spread(free_times), _spread(times))


_Spread = tuple[float, float, float, int]  # least, median, greatest, how many


def _compared(name: str, figure: str, unit: str | None, free: _Spread, held: _Spread) -> Perturbation:
    several = free[3] > 1 and held[3] > 1
    apart = held[2] < free[0] or held[0] > free[2]
    change = 100 * (held[1] - free[1]) / abs(free[1])
    return Perturbation(name, figure, unit, free[1], held[1], change, free[3], held[3], apart if several else None)


def _times(runs: Iterable[Any]) -> list[float]:
    """The durations of runs that are done, in seconds."""
    done = (run for run in runs if getattr(run, "state", None) == "done")
    return [run.seconds for run in done if run.seconds is not None]


def _spread(times: Sequence[float]) -> _Spread:
    return min(times), statistics.median(times), max(times), len(times)
