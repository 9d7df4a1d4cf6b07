"""Summaries of calls that take time on the host: CUDA API, OS runtime, OpenACC, MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsw.readers.nsys.export.collect import Collected, collect
from nsw.readers.nsys.export.phases import PARTS, phase_groups, phase_name
from nsw.readers.nsys.export.source import (
    DURATION,
    NULL,
    RUNTIME,
    TableFault,
    has_columns,
    process_of,
    require_integers,
)
from nsw.readers.timeline.phases import bytes_are_sent
from nsw.readers.timeline.statistics import group, merge, statistics, with_shares
from nsw.tables.names import api_name

if TYPE_CHECKING:
    from nsw.readers.nsys.export.phases import Split
    from nsw.readers.nsys.export.source import Source
    from nsw.readers.timeline.columns import IntArray
    from nsw.tables import Row

_OPENACC = {
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": "data",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "compute",
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": "other",
}
# marks of nsys itself among the calls, which `nsys stats` leaves out too
_NO_CALLS = frozenset({"OS runtime libraries profiling started", "OS runtime libraries profiling finished"})
_OPENMP = "OPENMP_EVENT_KIND_"  # a table each: parallel regions, work shares, waits for a mutex ...
_MPI = ("MPI_P2P_EVENTS", "MPI_COLLECTIVES_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")


def api_calls(source: Source) -> Collected | None:
    """Scan the calls of the CUDA runtime and driver; None where there are none."""
    return collect(source, RUNTIME, "nameId", distinct=("globalTid",), keep=("start", "correlationId"))


def api_summary(source: Source, calls: Collected, split: Split) -> tuple[list[Row], list[Row]]:
    """Calls of the CUDA runtime and driver by name; versions of one call (`_v3020`) are one row.

    Returns:
        The rows of the report, and the same by process and phase, without shares, where there are phases.
    """
    groups = phase_groups(calls, split, "globalTid")
    texts = source.strings(list(dict.fromkeys(groups.keys)))
    # a name that StringIds lacks stays apart from all others
    names = {key: api_name(texts.get(key, f"string {key}")) for key in groups.keys}
    pid = pid_of(calls, "globalTid")
    whole = [{"pid": pid, "name": name, **statistics(some.values)} for name, some in groups.merged(names.get).items()]
    owners = split.owners(calls, "globalTid")
    by_phase = [
        owners[part // PARTS]
        | {"phase": phase_name(part) or "all", "summary": "api_summary", "name": name, "short_name": name}
        | statistics(some.values)
        for part, of_part in (groups.by_part(names.get).items() if split.phased else ())
        for name, some in of_part.items()
    ]
    return with_shares(whole), by_phase


def osrt_summary(source: Source) -> list[Row]:
    """Calls of the operating system's runtime."""
    found = collect(source, "OSRT_API", "nameId", distinct=("globalTid",))
    if found is None:
        return []
    pid = pid_of(found, "globalTid")
    calls = merge(found.grouped, _spelled(source, found)).items()
    return with_shares([{"pid": pid, "name": name, **statistics(v)} for name, v in calls if name not in _NO_CALLS])


def openacc_summary(source: Source) -> list[Row]:
    """OpenACC events by construct, source file and line."""
    rows: list[Row] = []
    for table, kind in _OPENACC.items():
        if has_columns(source, table, "start", "end", "nameId"):
            rows += [r | {"kind": kind} for r in _constructs(source, table)]
    return with_shares(rows)


def openmp_summary(source: Source) -> list[Row]:
    """OpenMP events by name; two tables that give an event one name make one row."""
    values: dict[str, list[IntArray]] = {}
    for table in sorted(t for t in source.columns if t.startswith(_OPENMP)):
        found = collect(source, table, "nameId")
        if found is None:
            continue
        for index, name in enumerate(_spelled(source, found)):
            values.setdefault(name, []).append(found.grouped.of(index))
    return with_shares([{"name": name, **statistics(_joined(parts))} for name, parts in values.items()])


def mpi_summary(source: Source) -> tuple[list[Row], int]:
    """MPI calls by name, with the bytes that were sent where MPI said so; without shares.

    Returns:
        The rows, and how many calls were left out since the trace ended before them.
    """
    unended = 0
    values: dict[str, list[IntArray]] = {}
    sizes: dict[str, int] = {}
    for table in _MPI:
        found = collect(source, table, "textId", may_be_unended=True)
        if found is None:
            continue
        unended += found.unended
        sent = _bytes_by_key(source, table)
        for index, (key, name) in enumerate(zip(found.grouped.keys, _spelled(source, found), strict=True)):
            values.setdefault(name, []).append(found.grouped.of(index))
            if key in sent and bytes_are_sent(name):
                sizes[name] = sizes.get(name, 0) + sent[key]
    rows: list[Row] = [
        {"library": "mpi", "name": name, **statistics(_joined(parts)), "total_bytes": _float(sizes.get(name))}
        for name, parts in values.items()
    ]
    return rows, unended


def pid_of(found: Collected, column: str) -> int | None:
    """The process of all rows, from serialized global ids; None when there are several."""
    pids = {None if v == NULL else process_of(v) for v in found.distinct[column]}
    return pids.pop() if len(pids) == 1 else None


def _spelled(source: Source, found: Collected) -> list[str]:
    """The name of each key; one that StringIds lacks stays apart from all others."""
    names = source.strings(found.grouped.keys)
    return [names.get(key, f"string {key}") for key in found.grouped.keys]


def _constructs(source: Source, table: str) -> list[Row]:
    import numpy as np

    places: dict[tuple[int, int, int], int] = {}
    keys: list[IntArray] = []
    durations: list[IntArray] = []
    for batch in source.scan(table, ["nameId", "srcFile", "lineNo", DURATION]):
        require_integers(table, batch, "nameId", DURATION)
        triples = zip(*(batch[c].tolist() for c in ("nameId", "srcFile", "lineNo")), strict=True)
        keys.append(np.array([places.setdefault(t, len(places)) for t in triples], np.int64))
        durations.append(batch[DURATION])
    if not keys:
        return []
    texts = source.strings([i for name, file, _ in places for i in (name, file) if i != NULL])
    labels = [_place(texts, *t) for t in places]
    try:
        grouped = group(np.concatenate(keys), np.concatenate(durations))
    except OverflowError as fault:
        raise TableFault(table, str(fault)) from fault
    merged = merge(grouped, [labels[k] for k in grouped.keys])
    return [{"name": name, **statistics(values)} for name, values in merged.items()]


def _place(texts: dict[int, str], name: int, file: int, line: int) -> str:
    construct = texts.get(name, f"string {name}")
    return f"{construct}@{texts[file]}:{line}" if file in texts else construct


def _bytes_by_key(source: Source, table: str) -> dict[int, int]:
    sizes: dict[int, int] = {}
    if not has_columns(source, table, "size", "textId"):
        return sizes
    columns = ["textId", "size", "end"]
    for whole in source.scan(table, columns):
        batch = {name: values[whole["end"] != NULL] for name, values in whole.items()}
        for key, size in zip(batch["textId"].tolist(), batch["size"].tolist(), strict=True):
            if size != NULL:
                sizes[key] = sizes.get(key, 0) + size
    return sizes


def _joined(parts: list[IntArray]) -> IntArray:
    import numpy as np

    return parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
