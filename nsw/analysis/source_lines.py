"""Which source line a kernel's worst access is on, and what its local memory holds, by ncu's source page."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.groups import group_by
from nsw.tables import full_rows
from nsw.tables.names import without_spaces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from nsw.tables.parquet_tables import TableData

__all__ = ["SourceLine", "SourceLines", "select_useful_source_rows", "source_lines"]

GLOBAL, SHARED, LOCAL = "global", "shared", "local"
_EXECUTED: Final = "Instructions Executed"
# of each memory: what its accesses move, and how much of that is waste (None: all of it)
_MOVED: Final = {
    GLOBAL: ("L2 Theoretical Sectors Global", "L2 Theoretical Sectors Global Excessive"),
    SHARED: ("L1 Wavefronts Shared", "L1 Wavefronts Shared Excessive"),
    LOCAL: ("L2 Theoretical Sectors Local", None),
}
_METRICS: Final = frozenset({_EXECUTED, *(name for pair in _MOVED.values() for name in pair if name)})
_LOCAL_ACCESS: Final = re.compile(r"\b(?:LDL|STL)\S*\s.*\[(R\d+)\b")
_STACK: Final = "R1"  # what spills are addressed by; arrays that are indexed at run time have other registers


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a source file, the memory that it accesses, and the wasted share (0 to 1) of its worst access.

    Of local memory all is waste.
    """

    file: str
    line: int
    memory: str
    wasted: float

    def __str__(self) -> str:
        waste = {
            GLOBAL: f", {32 * self.wasted:.0f} of 32 bytes unused",
            SHARED: f", {100 * self.wasted:.0f} % of its passes are conflicts",
        }.get(self.memory, "")
        return f"{PurePosixPath(self.file).name}:{self.line}{waste}"


@dataclass(frozen=True, slots=True)
class SourceLines:
    """What the source page says of a kernel.

    Attributes:
        has_lines: Whether instructions have source lines: the program was compiled with -lineinfo.
        worst: The line that wastes most of each kind of memory: global, shared, local.
        indexed: The share (0 to 1) of the executed local loads and stores whose address is computed, as that of arrays
            is; spills are at constants. None: there are none.
    """

    has_lines: bool
    worst: Mapping[str, SourceLine]
    indexed: float | None


def source_lines(table: TableData | None) -> dict[str, SourceLines]:
    """What a source page says of each kernel, by its name without spaces.

    Args:
        table: Rows of table source_metrics; None: there is none.
    """
    rows = (row for row in _source_rows(table) if row["kernel"])
    kernels = group_by(rows, lambda row: without_spaces(row["kernel"]))
    return {name: _source_lines_of_kernel(kernel_rows) for name, kernel_rows in kernels.items()}


def select_useful_source_rows(source_rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows that `source_lines` looks at: a page has some sixty metrics of each instruction, most of them zero."""
    return (row for row in source_rows if row["metric"] in _METRICS and row["value"] and row["address"] is not None)


def _source_rows(table: TableData | None) -> Iterable[Mapping[str, Any]]:
    if table is None or isinstance(table, list):
        return select_useful_source_rows(full_rows("source_metrics", table or []))
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.is_in(pc.cast(table["metric"], pa.string()), pa.array(sorted(_METRICS)))
    return select_useful_source_rows(full_rows("source_metrics", table.filter(known)))


def _source_lines_of_kernel(kernel_rows: Iterable[Mapping[str, Any]]) -> SourceLines:
    lines: dict[tuple[str, int], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    local = {True: 0.0, False: 0.0}
    for row in kernel_rows:
        if row["line"] is not None:
            lines[row["file"] or "", row["line"]][row["address"]][row["metric"]] = row["value"]
        if row["metric"] == _EXECUTED and (access := _LOCAL_ACCESS.search(row["source"] or "")) is not None:
            local[access[1] != _STACK] += row["value"]
    worst = {kind: line for kind in _MOVED if (line := _worst_line(kind, lines)) is not None}
    executed = sum(local.values())
    return SourceLines(bool(lines), worst, local[True] / executed if executed else None)


def _worst_line(kind: str, lines: Mapping[tuple[str, int], Mapping[str, Mapping[str, float]]]) -> SourceLine | None:
    """The line whose instructions waste most together, with the wasted share of the worst of them."""
    moved, wasted = _MOVED[kind]
    wastes = {
        at: [(metrics.get(wasted or moved, 0.0), metrics.get(moved, 0.0)) for metrics in instructions.values()]
        for at, instructions in lines.items()
    }
    at = max(wastes, key=lambda line: sum(waste for waste, _ in wastes[line]), default=None)
    waste, whole = max(wastes[at]) if at is not None else (0.0, 0.0)
    return SourceLine(at[0], at[1], kind, waste / whole) if at is not None and waste > 0 else None
