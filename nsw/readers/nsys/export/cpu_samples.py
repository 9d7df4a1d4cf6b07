"""What nsys recorded of CPUs: which functions its samples met, and when threads ran, by phase of their process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np

from nsw.readers.nsys.export.nvtx import Lookup
from nsw.readers.nsys.export.source import NULL, Source, TableFault, has_columns, process_of
from nsw.readers.timeline.calls import Covered
from nsw.readers.timeline.phases import PHASES, Timeline
from nsw.readers.timeline.statistics import IntArray
from nsw.tables import Row

__all__ = ["CPU_SAMPLES", "CPU_TABLES", "CpuRecord", "cpu_record", "cpu_tables"]


CPU_TABLES: Final = ("cpu_samples", "cpu_threads", "cpu_trace")
CPU_SAMPLES: Final = "COMPOSITE_EVENTS"
_CHAINS: Final = "SAMPLING_CALLCHAINS"
_SWITCHES: Final = "SCHED_EVENTS"
_LATEST: Final = 2**61  # ns: sums and differences of times stay int64
_MOST: Final = 50  # functions of a process and phase
_ALL: Final = "all"  # the phase of a process without iterations
_TID: Final = 0xFFFFFF  # of a serialized global id; the process is before it


@dataclass(frozen=True, slots=True)
class CpuRecord:
    """Samples and stretches of running, one an index; times in ns, threads as serialized global ids.

    `function` is the place of a sample's function in `functions`: name and module.
    """

    sample_thread: IntArray
    sample_time: IntArray
    function: IntArray
    functions: Sequence[tuple[str, str | None]]
    run_thread: IntArray
    run_start: IntArray
    run_end: IntArray
    thread_names: Mapping[int, str] = field(default_factory=dict)


def cpu_record(source: Source) -> CpuRecord:
    """What the export has of CPUs; empty where they were not sampled.

    Raises:
        TableFault: A table is damaged.
    """
    names = {
        thread: name_id
        for name_id, thread in source.rows("ThreadNames", ["nameId", "globalTid"], at_most=100_000)
        if isinstance(thread, int) and isinstance(name_id, int)
    }
    texts = source.strings(list(set(names.values()))) if source.columns.keys() & {CPU_SAMPLES, _SWITCHES} else {}
    threads = {thread: texts[name_id] for thread, name_id in names.items() if name_id in texts}
    return CpuRecord(*_read_samples(source), *_running_stretches(source), threads)


def _read_columns(source: Source, table: str, *columns: str) -> list[IntArray]:
    """Columns of a table, one value a row with a number in each of them."""
    if not has_columns(source, table, *columns):
        return [np.empty(0, np.int64) for _ in columns]
    batches = list(source.scan(table, columns))
    whole = [np.concatenate([np.empty(0, np.int64), *(batch[column] for batch in batches)]) for column in columns]
    known = np.logical_and.reduce([column != NULL for column in whole])
    for name, column in zip(columns, whole, strict=True):
        if name == "start" and known.any() and int(np.abs(column[known]).max()) > _LATEST:
            raise TableFault(table, "contains numbers that cannot be times")
    return [column[known] for column in whole]


def _read_samples(source: Source) -> tuple[IntArray, IntArray, IntArray, list[tuple[str, str | None]]]:
    """Thread, time and function of each sample, and the functions; those without a name are one a module."""
    number, time, thread = _read_columns(source, CPU_SAMPLES, "id", "start", "globalTid")
    sample, symbol, module, depth = _read_columns(source, _CHAINS, "id", "symbol", "module", "stackDepth")
    top = depth == 0
    pairs, of_row = np.unique(np.stack([symbol[top], module[top]], axis=1), axis=0, return_inverse=True)
    texts = source.strings(sorted(set(pairs.ravel().tolist())))
    functions: dict[tuple[str, str | None], int] = {("[unknown]", None): 0}
    places = []
    for symbol_id, module_id in pairs.tolist():
        name, path = texts.get(symbol_id, f"string {symbol_id}"), texts.get(module_id)
        if name.startswith("0x") and path:
            name = f"[{PurePosixPath(path).name.strip('[]')}]"
        places.append(functions.setdefault((name, path), len(functions)))
    place = Lookup(sample[top], np.array(places, np.int64)[of_row.ravel()]).find(number)
    return thread, time, np.maximum(place, 0), list(functions)


def _running_stretches(source: Source) -> tuple[IntArray, IntArray, IntArray]:
    """Thread, start and end of each stretch in which a thread ran: from where it was scheduled in to the next out."""
    time, begins, thread = _read_columns(source, _SWITCHES, "start", "isSchedIn", "globalTid")
    order = np.lexsort((begins, time, thread))
    time, begins, thread = time[order], begins[order] != 0, thread[order]
    pair = np.flatnonzero(begins[:-1] & ~begins[1:] & (thread[:-1] == thread[1:])) if len(time) else np.empty(0, int)
    return thread[pair], time[pair], time[pair + 1]


def cpu_tables(record: CpuRecord, timelines: Sequence[Timeline], *, every: bool) -> dict[str, list[Row]]:
    """The tables cpu_samples and cpu_threads; with `every` also cpu_trace.

    Args:
        record: What the export has.
        timelines: The processes that work on GPUs, which may have phases.
        every: Whether a row for each stretch of running is wanted.
    """
    by_process = {timeline.origin.get("pid"): timeline for timeline in timelines}
    tables: dict[str, list[Row]] = {name: [] for name in CPU_TABLES}
    sample_process, run_process = (record.sample_thread >> 24) & _TID, (record.run_thread >> 24) & _TID
    for process in np.unique(np.concatenate((sample_process, run_process))).tolist():
        samples, runs = np.flatnonzero(sample_process == process), np.flatnonzero(run_process == process)
        times = np.concatenate((record.sample_time[samples], record.run_start[runs], record.run_end[runs]))
        for phase, start, end in _phase_spans(by_process.get(process), (int(times.min()), int(times.max()) + 1)):
            shared: Row = {"pid": process, "phase": phase}
            inside = samples[(record.sample_time[samples] >= start) & (record.sample_time[samples] < end)]
            tables["cpu_samples"] += [shared | row for row in _function_rows(record, inside)]
            tables["cpu_threads"] += [shared | row for row in _thread_rows(record, inside, runs, (start, end))]
    if not every:
        return tables
    tables["cpu_trace"] = [
        {"pid": process_of(thread), "tid": thread & _TID, "name": record.thread_names.get(thread), "start_ns": start,
         "duration_ns": end - start}
        for thread, start, end in sorted(
            zip(record.run_thread.tolist(), record.run_start.tolist(), record.run_end.tolist(), strict=True),
            key=lambda run: run[1],
        )
    ]  # fmt: skip
    return tables


def _phase_spans(timeline: Timeline | None, recorded: tuple[int, int]) -> Iterator[tuple[str, int, int]]:
    """The phases of a process by the host's clock: name, start and end."""
    first, last = recorded
    if timeline is None or timeline.phased is None:
        yield _ALL, first, last
        return
    edges = [min(first, timeline.span[0]), *timeline.phased.host, max(last, timeline.span[1])]
    for phase, start, end in zip(PHASES, edges[:-1], edges[1:], strict=True):
        if end > start:
            yield phase, start, end


def _function_rows(record: CpuRecord, samples: IntArray) -> list[Row]:
    counts = Counter(record.function[samples].tolist())
    return [
        {"name": record.functions[place][0], "module": record.functions[place][1], "samples": count,
         "samples_pct": 100 * count / len(samples)}
        for place, count in counts.most_common(_MOST)
    ]  # fmt: skip


def _thread_rows(record: CpuRecord, samples: IntArray, runs: IntArray, span: tuple[int, int]) -> list[Row]:
    """A row a thread that ran or was sampled, those that ran longest first."""
    rows: list[Row] = []
    edges: Any = np.array([span[0]]), np.array([span[1]])
    sampled, switched = len(record.sample_thread) > 0, len(record.run_thread) > 0
    for thread in np.unique(np.concatenate((record.sample_thread[samples], record.run_thread[runs]))).tolist():
        own = runs[record.run_thread[runs] == thread]
        start, end = record.run_start[own], record.run_end[own]
        ran = float(Covered(start, end - start).covered_within(*edges)[0]) if switched else None
        count = int((record.sample_thread[samples] == thread).sum()) if sampled else None
        if ran or count:
            rows.append({
                "tid": thread & _TID, "name": record.thread_names.get(thread), "span_ns": span[1] - span[0],
                "running_ns": ran, "running_pct": None if ran is None else 100 * ran / (span[1] - span[0]),
                "samples": count,
            })  # fmt: skip
    return sorted(rows, key=lambda row: (-(row["running_ns"] or 0.0), -(row["samples"] or 0)))
