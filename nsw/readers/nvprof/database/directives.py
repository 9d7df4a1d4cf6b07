"""OpenACC and OpenMP events in nvprof's databases, summed as `nvprof -i FILE` prints them.

OpenACC events nest (a construct waits, a region of data creates): the time of an event is its own, less that of the
events within it on the same thread, as under nvprof's title `OpenACC (excl)`. Those of OpenMP count in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.readers.nvprof.database.activity import whole
from nsw.readers.nvprof.vocabulary import Sum, openacc_kind
from nsw.readers.timeline.statistics import with_shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nsw.readers.nvprof.database.connection import Database

_EVENTS: Final = dict(
    enumerate(
        (
            *("acc_device_init", "acc_device_shutdown", "acc_runtime_shutdown", "acc_enqueue_launch"),
            *("acc_enqueue_upload", "acc_enqueue_download", "acc_wait", "acc_implicit_wait", "acc_compute_construct"),
            *("acc_update", "acc_enter_data", "acc_exit_data", "acc_create", "acc_delete", "acc_alloc", "acc_free"),
        ),
        1,
    )
)
_OPENMP: Final = dict(enumerate(("parallel", "task", "thread", "idle", "wait_barrier", "wait_taskwait"), 1))
# The table, and the column of what the event is of.
_TABLES: Final = (
    ("CUPTI_ACTIVITY_KIND_OPENACC_DATA", "varName"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", "kernelName"),
    ("CUPTI_ACTIVITY_KIND_OPENACC_OTHER", "0"),
)
_NEEDED: Final = ("eventKind", "start", "end", "lineNo", "srcFile", "cuProcessId", "cuThreadId")
_TIMES: Final = " WHERE typeof(start) = 'integer' AND typeof(end) = 'integer' AND end >= start"


def openacc_summary(database: Database) -> list[dict[str, Any]]:
    """One row an event, place and thing, by time."""
    parts = [
        f"SELECT {', '.join(f'{whole(c)} AS {c}' for c in _NEEDED)}, {whole(thing)} AS thing FROM {table}{_TIMES}"  # noqa: S608
        for table, thing in _TABLES
        if database.has(table, *_NEEDED, *([thing] if thing != "0" else []))
    ]
    if not parts:
        return []
    sql = " UNION ALL ".join(parts) + " ORDER BY cuProcessId, cuThreadId, start, end DESC"
    sums: dict[tuple[Any, ...], Sum] = {}
    for key, own in _own_times(database.rows(sql)):
        sums.setdefault(key, Sum()).add(own)
    rows = [
        {"name": (name := _name(database, *key)), "kind": openacc_kind(name), **_figures(t)} for key, t in sums.items()
    ]
    return with_shares(rows)


def openmp_summary(database: Database) -> list[dict[str, Any]]:
    """One row an event, by time."""
    table = "CUPTI_ACTIVITY_KIND_OPENMP"
    if not database.has(table, "eventKind", "start", "end"):
        return []
    sums: dict[str, Sum] = {}
    sql = f"SELECT {whole('eventKind')}, start, end FROM {table}{_TIMES}"  # noqa: S608
    for kind, start, end in database.rows(sql):
        sums.setdefault(f"omp_{_OPENMP.get(kind, 'unknown')}", Sum()).add(end - start)
    return with_shares([{"name": name, **_figures(times)} for name, times in sums.items()])


def _own_times(events: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The key of each event and its time less that of the events within it, in any order."""
    open_: list[list[Any]] = []  # key, end, own time; each within the one before
    thread: tuple[Any, Any] | None = None
    for kind, start, end, line, file, process, thread_id, thing in events:
        if (process, thread_id) != thread:
            yield from ((key, own) for key, _, own in open_)
            open_, thread = [], (process, thread_id)
        while open_ and open_[-1][1] <= start:
            key, _, own = open_.pop()
            yield key, own
        if open_:
            open_[-1][2] -= min(end, open_[-1][1]) - start
        open_.append([(kind, line, file, thing), end, end - start])
    yield from ((key, own) for key, _, own in open_)


def _name(database: Database, kind: Any, line: Any, file: Any, thing: Any) -> str:
    name = _EVENTS.get(kind, f"acc event {kind}")
    if file:
        name += f"@{database.text(file).replace(chr(92), '/').rpartition('/')[2]}:{line}"
    return name + (f" ({database.text(thing)})" if thing else "")


def _figures(of: Sum) -> dict[str, Any]:
    times = {"total_ns": of.total, "avg_ns": of.total / of.count, "min_ns": of.least, "max_ns": of.most}
    return {"calls": of.count, **times, "block": 0}
