"""Phases from the tables of traces that a text holds: where they have a start and a duration of each kernel.

There are no ranges in them, so it is the kernels that repeat. What is not known to be one process is not split.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.tables import count

if TYPE_CHECKING:
    from nsw.readers.model import Options, Report
    from nsw.readers.timeline.array_types import Chosen, IntArray
    from nsw.readers.timeline.phases_of_one_process import Recorded
    from nsw.tables import Row, TableData

PHASE_TABLES: Final = ("phases", "iterations", "iteration_trace", "phase_summary")
TRACES: Final = ("gpu_trace", "api_trace")
_FEWEST: Final = 15  # kernels: five repetitions of three
_ORIGIN: Final = ("block", "rank", "pid")
_NAME: Final = ("name", "short_name", "mangled_name")
_NO_OPERATION: Final = -1


def wanted(options: Options) -> list[str]:
    """The tables of phases that are asked for."""
    return [name for name in PHASE_TABLES if options.wants(name, default=name != "iteration_trace")]


def add_phases(report: Report, options: Options) -> None:
    """Add the tables of phases to a report whose traces show iterations; others are left as they are."""
    asked = wanted(options)
    trace = report.tables.get("gpu_trace", [])
    if not asked or count(trace) < _FEWEST:
        return
    kinds = _kinds(trace)
    chosen = kinds != _NO_OPERATION
    if not chosen.any() or not bool((_timed(trace) | ~chosen).all()):
        return
    origin = _one_origin(trace, chosen)
    if origin is None:
        return
    from nsw.readers.timeline.phases_of_one_process import phase_tables

    of = _recorded(trace, kinds, report.tables.get("api_trace", []))
    first, last = int(of.start.min()), int((of.start + of.duration).max())
    every = "iteration_trace" in asked
    made = phase_tables(of, (first, last), named_step=None, warmup=options.warmup, every=every)
    if not made.get("phase_summary"):
        return
    report.tables.update({name: [origin | row for row in made[name]] for name in asked if made.get(name)})


def _kinds(trace: TableData) -> IntArray:
    """What each row of a trace is, as an index of KINDS, or `_NO_OPERATION`."""
    import numpy as np

    from nsw.readers.timeline.columns import words
    from nsw.readers.timeline.phases_of_one_process import KINDS

    codes, kinds = words(trace, "kind")
    known = [KINDS.index(kind) if kind in KINDS else _NO_OPERATION for kind in kinds]
    return np.array(known, np.int64)[codes]


def _timed(trace: TableData) -> Chosen:
    """Which rows have a start and a duration."""
    from nsw.readers.timeline.columns import whole_numbers

    timed: Chosen = whole_numbers(trace, "start_ns")[1] & whole_numbers(trace, "duration_ns")[1]
    return timed


def _one_origin(trace: TableData, chosen: Chosen) -> Row | None:
    """Where the chosen rows come from; None where that is not one process."""
    from nsw.readers.timeline.columns import whole_numbers

    origin: Row = {}
    for column in _ORIGIN:
        values, known = (found[chosen] for found in whole_numbers(trace, column))
        if not bool((known == known[0]).all() and (values == values[0]).all()):
            return None
        origin[column] = int(values[0]) if known[0] else None
    return origin


def _recorded(trace: TableData, kinds: IntArray, calls: TableData) -> Recorded:
    """What the rows of a kind, and the calls that have times, say of their process."""
    import numpy as np

    from nsw.readers.timeline.columns import ABSENT, whole_numbers, words
    from nsw.readers.timeline.phases_of_one_process import Recorded, launch_times

    chosen, timed = kinds != _NO_OPERATION, _timed(calls)

    def of_operations(column: str) -> IntArray:
        values: IntArray = whole_numbers(trace, column)[0][chosen]
        return values

    def of_calls(column: str) -> IntArray:
        values: IntArray = whole_numbers(calls, column)[0][timed]
        return values

    gpu_name, names = words(trace, "name", chosen)
    named = _name_rows(trace, np.flatnonzero(chosen), gpu_name, names)
    call_name, call_names = words(calls, "name", timed)
    places = {name: place for place, name in enumerate(names)}
    call_place = np.array([places.setdefault(name, len(places)) for name in call_names], np.int64)
    call_start, correlation = of_calls("start_ns"), of_calls("correlation")
    has_id = correlation != ABSENT
    # backwards: of calls with one correlation id the last one launched
    keys, starts = correlation[has_id][::-1], call_start[has_id][::-1]
    return Recorded(
        gpu_name=gpu_name,
        call_name=call_place[call_name],
        names=list(places),
        named=named.__getitem__,
        gpu_kind=kinds[chosen],
        start=of_operations("start_ns"),
        duration=of_operations("duration_ns"),
        launched=launch_times(of_operations("correlation"), keys, starts),
        device=of_operations("device"),
        size=of_operations("bytes"),
        call_start=call_start,
        call_duration=of_calls("duration_ns"),
    )


def _name_rows(trace: TableData, places: IntArray, codes: IntArray, names: list[str]) -> dict[str, Row]:
    """The columns of each name, of the last of the rows at `places` that has it."""
    import numpy as np

    last = np.zeros(len(names), np.int64)
    last[codes] = places
    if isinstance(trace, list):
        rows = [trace[place] for place in last.tolist()]
    else:
        rows = trace.select([c for c in _NAME if c in trace.column_names]).take(last).to_pylist()
    return {name: {c: row.get(c) for c in _NAME} for name, row in zip(names, rows, strict=True)}
