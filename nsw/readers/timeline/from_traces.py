"""Phases from the tables of traces that a text holds: where they have a start and a duration of each kernel.

There are no ranges in them, so it is the kernels that repeat. What is not known to be one process is not split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.tables import count, rows

if TYPE_CHECKING:
    from nsw.readers.model import Options, Report
    from nsw.readers.timeline.one_process import Recorded
    from nsw.tables import Row

PHASE_TABLES: Final = ("phases", "iterations", "iteration_trace", "phase_summary")
TRACES: Final = ("gpu_trace", "api_trace")
_FEWEST: Final = 15  # kernels: five repetitions of three
_ORIGIN: Final = ("block", "rank", "pid")


def wanted(options: Options) -> list[str]:
    """The tables of phases that are asked for."""
    return [name for name in PHASE_TABLES if options.wants(name, default=name != "iteration_trace")]


def add_phases(report: Report, options: Options) -> None:
    """Add the tables of phases to a report whose traces show iterations; others are left as they are."""
    asked = wanted(options)
    trace = report.tables.get("gpu_trace", [])
    if not asked or count(trace) < _FEWEST:
        return
    from nsw.readers.timeline.one_process import KINDS, phase_tables

    operations = [row for row in rows("gpu_trace", trace) if row["kind"] in KINDS]
    if any(row["start_ns"] is None or row["duration_ns"] is None for row in operations):
        return
    if len({tuple(row[c] for c in _ORIGIN) for row in operations}) != 1:
        return
    of = _recorded(operations, list(rows("api_trace", report.tables.get("api_trace", []))))
    first, last = int(of.start.min()), int((of.start + of.duration).max())
    every = "iteration_trace" in asked
    made = phase_tables(of, (first, last), named_step=None, warmup=options.warmup, every=every)
    if not made.get("phase_summary"):
        return
    origin = {c: operations[0][c] for c in _ORIGIN}
    report.tables.update({name: [origin | row for row in made[name]] for name in asked if made.get(name)})


def _recorded(operations: list[Row], calls: list[Row]) -> Recorded:
    import numpy as np

    from nsw.readers.timeline.one_process import KINDS, Recorded

    names: dict[str, int] = {}
    named = {row["name"]: {c: row[c] for c in ("name", "short_name", "mangled_name")} for row in operations}
    calls = [row for row in calls if row["start_ns"] is not None and row["duration_ns"] is not None]
    launches = {row["correlation"]: row["start_ns"] for row in calls if row["correlation"] is not None}

    def column(found: list[Any]) -> Any:
        return np.array(found, np.int64)

    return Recorded(
        gpu_name=column([names.setdefault(row["name"], len(names)) for row in operations]),
        call_name=column([names.setdefault(row["name"], len(names)) for row in calls]),
        names=list(names),
        named=lambda name: named[name],
        gpu_kind=column([KINDS.index(row["kind"]) for row in operations]),
        start=column([row["start_ns"] for row in operations]),
        duration=column([row["duration_ns"] for row in operations]),
        launched=column([launches.get(row["correlation"], -1) for row in operations]),
        device=column([-1 if row["device"] is None else row["device"] for row in operations]),
        size=column([-1 if row["bytes"] is None else int(row["bytes"]) for row in operations]),
        call_start=column([row["start_ns"] for row in calls]),
        call_duration=column([row["duration_ns"] for row in calls]),
    )
