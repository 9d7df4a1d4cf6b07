"""Phases of an nvprof timeline: by NVTX ranges that repeat, else by the repetition of the kernels.

nvprof writes a file a process; of a file with several the launches of all are one timeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.readers.cuda_calls import api_name
from nsw.readers.nvprof.database.activity import API, COPY_KINDS, KERNELS, MEMCPYS, TIMED, whole
from nsw.readers.nvprof.database.ranges import spans
from nsw.readers.timeline import phases_of_one_process
from nsw.readers.timeline.phases_from_traces import wanted
from nsw.readers.timeline.phases_of_one_process import Recorded, launch_times, marks_by_name
from nsw.tables.names import names_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.model import Options
    from nsw.readers.nvprof.database.connection import Database
    from nsw.readers.timeline.array_types import IntArray
    from nsw.readers.timeline.iterations import Marks
    from nsw.tables import Row

_KERNEL, _MEMCPY, _MEMSET = range(3)  # as one_process.KINDS
_MEMSETS: Final = "CUPTI_ACTIVITY_KIND_MEMSET"


def phase_tables(database: Database, options: Options) -> dict[str, list[Row]]:
    """The tables of phases and iterations that were asked for; none without operations that have times."""
    asked = wanted(options)
    of = _recorded(database)
    if not len(of.start):
        return {}
    first, last = int(of.start.min()), int((of.start + of.duration).max())
    if len(of.call_start):
        first = min(first, int(of.call_start.min()))
        last = max(last, int((of.call_start + of.call_duration).max()))
    made = phases_of_one_process.phase_tables(
        of, (first, last), named_step=options.steps, warmup=options.warmup, every="iteration_trace" in asked
    )  # fmt: skip
    return {name: [{"block": 0} | row for row in made[name]] for name in asked if made.get(name)}


def _recorded(database: Database) -> Recorded:
    import numpy as np

    names: dict[str, int] = {}
    work = _array(_operations(database, names), 7)
    calls = _array(_calls(database, names), 4)
    return Recorded(
        names=list(names),
        named=names_of(names).__getitem__,
        gpu_name=work[:, 0],
        gpu_kind=work[:, 1],
        start=work[:, 2],
        duration=work[:, 3] - work[:, 2],
        launched=launch_times(np.where(work[:, 4] > 0, work[:, 4], -1), calls[:, 3], calls[:, 1]),
        device=work[:, 5],
        size=work[:, 6],
        call_name=calls[:, 0],
        call_start=calls[:, 1],
        call_duration=calls[:, 2] - calls[:, 1],
        marks=_marks(database),
    )


def _array(rows: Iterable[tuple[int, ...]], columns: int) -> IntArray:
    import numpy as np

    found = np.fromiter((value for row in rows for value in row), np.int64)
    return found.reshape(-1, columns)


def _operations(database: Database, names: dict[str, int]) -> Iterable[tuple[int, ...]]:
    """Name, kind, start, end, correlation, device and bytes of each operation with valid times; -1: not known."""
    for kind, tables in ((_KERNEL, KERNELS), (_MEMCPY, MEMCPYS), (_MEMSET, (_MEMSETS,))):
        for table in tables:
            if not database.has(table, "start", "end"):
                continue
            label = {_KERNEL: "name", _MEMCPY: "copyKind", _MEMSET: ""}[kind]
            wanted = (label, "correlationId", "deviceId", "" if kind == _KERNEL else "bytes")
            columns = [whole(c) if c and database.has(table, c) else "NULL" for c in wanted]
            sql = f"SELECT start, end, {', '.join(columns)} FROM {table} WHERE {TIMED} IS NOT NULL"  # noqa: S608
            for start, end, what, correlation, device, size in database.rows(sql):
                code = names.setdefault(_name(database, kind, what), len(names))
                yield code, kind, start, end, *(-1 if n is None else n for n in (correlation, device, size))


def _name(database: Database, kind: int, what: Any) -> str:
    if kind == _KERNEL:
        return database.text(what)
    return "[CUDA memset]" if kind == _MEMSET else f"[CUDA memcpy {COPY_KINDS.get(what, 'Unknown')}]"


def _calls(database: Database, names: dict[str, int]) -> Iterable[tuple[int, ...]]:
    """Name, start, end and correlation of each API call with valid times."""
    for table, api in API.items():
        if database.has(table, "cbid", "start", "end"):
            correlation = whole("correlationId") if database.has(table, "correlationId") else "NULL"
            sql = f"SELECT cbid, start, end, {correlation} FROM {table} WHERE {TIMED} IS NOT NULL"  # noqa: S608
            for cbid, start, end, one in database.rows(sql):
                yield names.setdefault(api_name(api, cbid), len(names)), start, end, -1 if one is None else one


def _marks(database: Database) -> list[Marks]:
    """The NVTX ranges by name and thread."""
    import numpy as np

    found = list(spans(database))
    starts = np.array([one.start for one in found], np.int64)
    ends = np.array([one.end for one in found], np.int64)
    return marks_by_name([one.name for one in found], [one.thread for one in found], starts, ends, _launching(database))


def _launching(database: Database) -> set[tuple[int, int]] | None:
    """The threads that make CUDA calls; None where that is not told."""
    tables = [table for table in API if database.has(table, "processId", "threadId")]
    if not tables:
        return None
    sql = " UNION ".join(f"SELECT processId, threadId FROM {table}" for table in tables)  # noqa: S608
    pairs = [pair for pair in database.rows(sql) if all(isinstance(n, int) for n in pair)]
    return {(process & 0xFFFFFFFF, thread & 0xFFFFFFFF) for process, thread in pairs}
