"""Which columns an export must have for its tables to be read: one that lacks them is named, and not passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.model import Problem
from nsw.readers.nsys.export.source import GRAPH, KERNEL, MEMCPY, MEMSET, NVTX, RUNTIME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nsw.readers.nsys.export.source import Source

_TIMED: Final = ("start", "end")
# `a|b`: one of the two
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "StringIds": ("id", "value"),
    KERNEL: (*_TIMED, "demangledName|shortName", "deviceId"),
    MEMCPY: (*_TIMED, "copyKind", "bytes"),
    MEMSET: (*_TIMED, "deviceId", "bytes"),
    GRAPH: (*_TIMED, "graphId|graphExecId"),
    RUNTIME: (*_TIMED, "nameId"),
    NVTX: (*_TIMED, "eventType", "text|textId"),
    "OSRT_API": (*_TIMED, "nameId"),
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": ("start",),
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": (*_TIMED, "numberOfPageFaults"),
}
_ALIKE: Final = (
    ("CUPTI_ACTIVITY_KIND_OPENACC_", (*_TIMED, "nameId")),
    ("OPENMP_EVENT_KIND_", (*_TIMED, "nameId")),
    ("MPI_P2P_EVENTS", (*_TIMED, "textId")),
    ("MPI_COLLECTIVES_EVENTS", (*_TIMED, "textId")),
    ("MPI_START_WAIT_EVENTS", (*_TIMED, "textId")),
    ("MPI_OTHER_EVENTS", (*_TIMED, "textId")),
)


def unknown_shapes(source: Source) -> dict[str, Problem]:
    """An error for each table that has rows and lacks a column that reading it takes."""
    found: dict[str, Problem] = {}
    for table, columns in sorted(source.columns.items()):
        missing = [need for need in _needed(table) if columns.isdisjoint(need.split("|"))]
        if missing and columns and source.rows(table, sorted(columns)[:1], at_most=1):
            names = ", ".join(need.replace("|", " or ") for need in missing)
            found[table] = Problem(
                "error",
                f"{table} has no column {names}: nsw does not know this shape of an export, and what needs it is"
                " not read",
                fix="export the report again (nsys export --type sqlite), and report the nsys version to nsw's authors",
            )
    return found


def _needed(table: str) -> tuple[str, ...]:
    return _NEEDED.get(table) or next((needed for start, needed in _ALIKE if table.startswith(start)), ())
