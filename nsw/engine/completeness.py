"""What a run's reports lack of what was to be recorded: ranges, seconds, iterations, launches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.recipe.units import format_duration, show_value
from nsw.wording import first_of, one_or, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.recipe.passes import CountersPass, TimelinePass

_CLOSE: Final = 0.9  # of what is asked for, or of what another rank has: less is missing
_MAX_RANKS: Final = 4  # in a sentence
_DROPPED: Final = "profiler__pmsampler_dropped_samples"  # in the sections that sample over time alone


def window_gap(timeline: TimelinePass, ranges: int, recorded_s: float | None) -> str | None:
    """What the reports of a process lack of the pass's window; None: nothing.

    Args:
        timeline: The pass.
        ranges: How many ranges were captured.
        recorded_s: Seconds that were recorded; None: the report does not tell.
    """
    within, duration = timeline.within, timeline.duration
    if within is not None and ranges < within.count:
        return f"nsys captured {ranges} of {within.count} ranges {show_value(within.nvtx)}: no more began and ended"
    if duration is not None and recorded_s is not None and recorded_s < _CLOSE * duration:
        return (
            f"nsys recorded {recorded_s:.2g} s of {format_duration(duration)}: the program ended before the window did"
        )
    return None


def is_recorded_to_its_end(
    timeline: TimelinePass, recorded_s: float | None, phases: Iterable[Mapping[str, Any]]
) -> bool:
    """Whether a window by the clock has work of the GPU up to its end.

    nsys says of each such window that events might be missing, and of some that incomplete ones were dropped: the
    buffers that CUPTI fills when it ends never come back, and what the GPU has not done then is beyond the window. On
    an H200 nothing of the window was missing.

    Args:
        timeline: The pass.
        recorded_s: Seconds that were recorded; None: the report does not tell.
        phases: The rows of table phases of the report.
    """
    ends_ns = [row["start_ns"] + row["duration_ns"] for row in phases if row.get("duration_ns") is not None]
    if timeline.duration is None or recorded_s is None or not ends_ns:
        return False
    return bool(max(ends_ns) >= _CLOSE * recorded_s * 1e9)


def empty_window(timeline: TimelinePass) -> str | None:
    """Why there is no report at all of a window, as a question; None where all of the program was to be recorded."""
    if timeline.within is not None:
        return f"did the range {show_value(timeline.within.nvtx)} begin and end?"
    return f"did the program run longer than {format_duration(timeline.after)}?" if timeline.after else None


def ended_early(iterations: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The report of each rank whose trace has fewer iterations than others', and a sentence.

    Args:
        iterations: The rows of table iterations of a run; those that NVTX ranges of one name mark are compared.
    """
    most: dict[int, Mapping[str, Any]] = {}
    for row in iterations:
        rank = row.get("rank")
        if rank is not None and row["found_by"] == "nvtx" and row["iterations"] is not None:
            most[rank] = max(row, most.get(rank, row), key=lambda each: int(each["iterations"]))
    if len({row["name"] for row in most.values()}) != 1:
        return []
    highest = max(int(row["iterations"]) for row in most.values())
    sentence = "rank {} has {} iterations ({}), others up to {}: its trace ends early, or it does less"
    return [
        (row["report"], sentence.format(rank, row["iterations"], row["name"], highest))
        for rank, row in sorted(most.items())
        if row["iterations"] < _CLOSE * highest
    ]


def fewer_launches(counters_pass: CountersPass, launches: Sequence[Mapping[str, Any]]) -> str | None:
    """A sentence on the ranks and kernels of which fewer launches were measured than asked for; None: none is short.

    Args:
        counters_pass: The pass. What a timeline chooses is compared with that choice instead; of kernels that nobody
            names, one may well be launched once.
        launches: The rows of table launches of a run.
    """
    asked = counters_pass.launches.count
    if asked is None or counters_pass.is_guided or not counters_pass.kernels.is_named:
        return None
    counts: dict[tuple[Any, Any, str], int] = {}
    for row in launches:
        key = row.get("rank"), row.get("pid"), str(row["kernel"])
        counts[key] = counts.get(key, 0) + 1
    short = {key: count for key, count in counts.items() if count < asked}
    if not short:
        return None
    (_, _, kernel), count = next(iter(short.items()))
    ranks = sorted({rank for rank, _, _ in short if rank is not None})
    of_ranks = (
        f" of rank{'s' if ranks[1:] else ''} {first_of([str(rank) for rank in ranks], _MAX_RANKS)}" if ranks else ""
    )
    kernels = plural(len({name for *_, name in short}), "kernel")
    return f"fewer launches than the {asked} asked for, of {kernels}{of_ranks}, such as {count} of {kernel}"


def dropped_samples(metrics: Iterable[Mapping[str, Any]]) -> str | None:
    """A sentence on the launches of which ncu says that it dropped samples; None: of none.

    Args:
        metrics: The rows of table metrics of a run.
    """
    dropped = [row["value"] for row in metrics if row["metric"] == _DROPPED and row["value"]]
    launches = one_or(len(dropped), "one launch", "launches")
    return f"ncu dropped {sum(dropped):,.0f} samples over time of {launches} ({_DROPPED})" if dropped else None
