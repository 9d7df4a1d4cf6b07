"""What a profiler adds to a case's time, and what the case shows without it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.comparison import is_time_unit
from nsw.analysis.spent import Spent, remove_profiler_idle_time
from nsw.quantities import duration

if TYPE_CHECKING:
    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.figures import Figure

__all__ = ["least_gpu_busy_pct", "profiler_slowdown", "recorded_span_text", "time_without_profiler"]

_A_TIME: Final = re.compile(r"(?:/|\bper )\s*(?:s|secs?|seconds?|min|minutes?|h|hours?)$|\bs\^?-1$", re.IGNORECASE)


def profiler_slowdown(case: CaseSummary, pass_name: str | None = None) -> float:
    """How many times slower the program's own rates and times are under a profiler; 1 where that is not known.

    Args:
        case: The case.
        pass_name: The profiler's pass; by default the one of the case's timeline.
    """
    profiled_pass = case.traced_by if pass_name is None else pass_name
    times = [
        profiled.median / baseline.median if is_time_unit(baseline.unit) else baseline.median / profiled.median
        for baseline in case.figures
        if not baseline.profiled and baseline.median > 0 and _is_rate_unit(baseline.unit)
        for profiled in case.figures
        if profiled.pass_name == profiled_pass and profiled.name == baseline.name and profiled.median > 0
        if not _is_within_scatter(baseline, profiled)
    ]
    return max(1.0, *times) if times else 1.0


def _is_within_scatter(baseline: Figure, profiled: Figure) -> bool:
    """Whether repeats show that the two may be the same."""
    return min(baseline.runs, profiled.runs) > 1 and profiled.least <= baseline.most and baseline.least <= profiled.most


def _is_rate_unit(unit: str | None) -> bool:
    return is_time_unit(unit) or _A_TIME.search(unit or "") is not None


def least_gpu_busy_pct(case: CaseSummary) -> float | None:
    """How much of an iteration the GPU is at work that is so least, as without the profiler."""
    idle = case.spent.most_idle_pct if case.spent else None
    if idle is None and case.idle_gpu is not None:
        idle = 100 - case.idle_gpu.busy_pct
    return None if idle is None else min(100.0, (100 - idle) * profiler_slowdown(case))


def time_without_profiler(case: CaseSummary) -> Spent | None:
    """Where the time of a case goes, as without the profiler."""
    return case.spent and remove_profiler_idle_time(case.spent, profiler_slowdown(case))


def recorded_span_text(case: CaseSummary) -> str:
    """How long an iteration is in the report's own tables; empty: as long as without the profiler."""
    corrected = time_without_profiler(case)
    texts = [duration(spent.span_ns) for spent in (case.spent, corrected) if spent is not None]
    return f" ({texts[0]} as recorded)" if len({*texts}) > 1 else ""
