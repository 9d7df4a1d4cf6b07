"""Find the processes of a run that left no report, where each has a profiler of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_PART = re.compile(r"\w+\.(rank|node)(\d{1,6})\.")  # as profilers are told to name the report of each process or node
_MAY_LEAVE_NONE = frozenset({"ncu", "nvprof"})  # of a process that runs no kernel
_NAMED = 4  # ranks in a message


def rank_of(report: str) -> int | None:
    """The rank in the name of a report; None where one report is of all processes, or of those of a node."""
    named = _PART.match(report)
    return int(named[2]) if named and named[1] == "rank" else None


def missing_nodes(reports: Iterable[str], nodes: int) -> list[int]:
    """The nodes, counted from 0, that left no report, where there is a profiler on each."""
    there = {int(named[2]) for named in map(_PART.match, reports) if named and named[1] == "node"}
    return sorted({*range(nodes)} - there) if there else []


def missing_ranks(reports: Iterable[str], expected: Collection[int] | None) -> tuple[list[int], int]:
    """The ranks that left no report, and how many processes there should be reports of.

    Args:
        reports: Names of the files that a run left.
        expected: The ranks that were profiled; None: not known, and those below a rank with a report are missed.
    """
    found = {rank for rank in map(rank_of, reports) if rank is not None}
    if not found:
        return [], 0
    every = range(max(found) + 1) if expected is None else expected
    return sorted({*every} - found), len(every)


def sentence(missing: list[int], total: int) -> str:
    """What is missing, such as `no report of ranks 1, 3: 2 of 4 processes left one`."""
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    which = ", ".join(map(str, missing[:_NAMED]))
    several = "ranks" if len(missing) > 1 else "rank"
    return f"no report of {several} {which}{more}: {total - len(missing)} of {total:,} processes left one"


def severity(tool: str | None) -> str:
    """`warning` where a process without a kernel leaves no report; else `error`."""
    return "warning" if tool in _MAY_LEAVE_NONE else "error"
