"""NVTX ranges in nvprof's databases: their times, and the GPU work that they launched, as `nvprof -i FILE` counts it.

A range is two markers of one id. GPU work is of a range when the range's thread called for it while the range was
open: the call begins in it, whenever it ends.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from nsw.readers.nvprof.database.activity import API, KERNELS, MEMCPYS, TIMED
from nsw.readers.timeline.statistics import with_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsw.readers.nvprof.database.connection import Database

_MARKERS: Final = "CUPTI_ACTIVITY_KIND_MARKER"
_WORK: Final = (*KERNELS, *MEMCPYS, "CUPTI_ACTIVITY_KIND_MEMSET")
# Start markers (flag 2) with their ends (flag 4) and the time between; the name is with the start.
_RANGES_SQL: Final = """
SELECT s.name, {domain}, COUNT(*), SUM(e.timestamp - s.timestamp), MIN(e.timestamp - s.timestamp),
       MAX(e.timestamp - s.timestamp)
FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 2 AND typeof(timestamp) = 'integer') s
JOIN (SELECT id, timestamp FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 4 AND typeof(timestamp) = 'integer') e
ON e.id = s.id
WHERE e.timestamp >= s.timestamp
GROUP BY 1, 2
"""

# Markers of one moment have no duration.
_MARKS_SQL: Final = """
SELECT name, {domain}, COUNT(*) FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 1 AND NOT flags & 6 GROUP BY 1, 2
"""

_SPANS_SQL: Final = """
SELECT s.name, {domain}, s.objectId, s.timestamp, e.timestamp
FROM (SELECT * FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 2 AND typeof(timestamp) = 'integer') s
JOIN (SELECT id, timestamp FROM CUPTI_ACTIVITY_KIND_MARKER WHERE flags & 4 AND typeof(timestamp) = 'integer') e
ON e.id = s.id
WHERE e.timestamp >= s.timestamp ORDER BY s.timestamp
"""


def nvtx_summary(database: Database) -> list[dict[str, Any]]:
    """One row a name and domain of ranges, then one a name and domain of marks."""
    if not database.has(_MARKERS, "flags", "timestamp", "id", "name"):
        return []
    rows: list[dict[str, Any]] = []
    domain = _domain(database)
    for name, where, calls, total, low, high in database.rows(_RANGES_SQL.format(domain=domain)):
        row = {"block": 0, "name": database.text(name), "domain": _domain_name(database, where), "calls": calls}
        rows.append(row | {"total_ns": total, "avg_ns": total / calls, "min_ns": low, "max_ns": high})
    rows = with_shares(rows)
    for name, where, count in database.rows(_MARKS_SQL.format(domain=domain)):
        mark = {"block": 0, "style": "mark", "name": database.text(name), "domain": _domain_name(database, where)}
        rows.append(mark | {"calls": count})
    return rows


class Span(NamedTuple):
    """One range: its name, its thread, ns."""

    name: str
    thread: tuple[int, int]
    start: int
    end: int


def spans(database: Database) -> Iterator[Span]:
    """Every range, in order of start."""
    if database.has(_MARKERS, "flags", "timestamp", "id", "name", "objectId"):
        for name, _, object_, start, end in database.rows(_SPANS_SQL.format(domain=_domain(database))):
            yield Span(database.text(name), _thread(object_), start, end)


def nvtx_gpu_summary(database: Database) -> list[dict[str, Any]]:
    """One row a name and domain of ranges that launched GPU work."""
    if not database.has(_MARKERS, "flags", "timestamp", "id", "name", "objectId"):
        return []
    threads = _launches(database)
    sums: dict[tuple[Any, Any], list[int]] = {}
    for name, where, object_, start, end in (
        database.rows(_SPANS_SQL.format(domain=_domain(database))) if threads else ()
    ):
        launches = threads.get(_thread(object_))
        if launches is None:
            continue
        starts, operations, times = launches
        first, last = bisect_left(starts, start), bisect_right(starts, end)
        if first < last:
            found = sums.setdefault((name, where), [0, 0, 0])
            found[0] += 1
            found[1] += operations[last] - operations[first]
            found[2] += times[last] - times[first]
    return [
        {
            "block": 0,
            "domain": _domain_name(database, where),
            "name": database.text(name),
            "calls": ranges,
            "gpu_ops": operations_,
            "gpu_ns": float(time),
        }
        for (name, where), (ranges, operations_, time) in sums.items()
    ]


def _launches(database: Database) -> dict[tuple[int, int], tuple[array[int], array[int], array[int]]]:
    """By thread: the starts of the calls that launched work, in order; operations and time before each of them."""
    work = " UNION ALL ".join(
        f"SELECT correlationId, {TIMED} AS took FROM {table}"  # noqa: S608  names of this module
        for table in _WORK
        if database.has(table, "correlationId", "start", "end")
    )
    calls = " UNION ALL ".join(
        f"SELECT processId, threadId, start, correlationId FROM {table}"  # noqa: S608  names of this module
        for table in API
        if database.has(table, "processId", "threadId", "start", "correlationId")
    )
    if not work or not calls:
        return {}
    sql = (
        "SELECT c.processId, c.threadId, c.start, w.operations, w.took"  # noqa: S608  names of this module
        f" FROM ({calls}) c JOIN (SELECT correlationId, COUNT(*) AS operations, TOTAL(took) AS took FROM ({work})"
        " GROUP BY 1) w ON w.correlationId = c.correlationId WHERE typeof(c.start) = 'integer' AND"
        " typeof(c.processId) = 'integer' AND typeof(c.threadId) = 'integer' ORDER BY 1, 2, 3"
    )
    found: dict[tuple[int, int], tuple[array[int], array[int], array[int]]] = {}
    for process, thread, start, operations, took in database.rows(sql):
        key = (process & 0xFFFFFFFF, thread & 0xFFFFFFFF)
        starts, counts, times = found.setdefault(key, (array("q"), array("q"), array("q")))
        starts.append(start)
        counts.append(operations)
        times.append(int(took))
    return {
        key: (starts, array("q", accumulate(counts, initial=0)), array("q", accumulate(times, initial=0)))
        for key, (starts, counts, times) in found.items()
    }


def _thread(object_: Any) -> tuple[int, int]:
    """Process and thread of a marker's object; of a damaged one those of none."""
    if not isinstance(object_, bytes) or len(object_) < 8:
        return -1, -1
    process, thread = struct.unpack_from("<II", object_)
    return process, thread


def _domain(database: Database) -> str:
    return "domain" if database.has(_MARKERS, "domain") else "0"


def _domain_name(database: Database, code: Any) -> str | None:
    """The domain; None for the default one, whose string is none."""
    return database.text(code) if code else None
