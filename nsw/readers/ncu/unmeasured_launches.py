"""Launches that ncu lists but could not measure: it writes zeros for their sizes and for most of their figures.

Seen when a kernel could not be replayed (`==ERROR== LaunchFailed`, ncu 2025.3): grid and block `(0, 0, 0)`,
duration 0, counters 0 beside `n/a` and `nan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.ncu.values import ABSENCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nsw.readers.model import Report
    from nsw.readers.ncu.values import Value
    from nsw.tables.data import Row

NO_SIZE: Final = "(0, 0, 0)"
_SIZES: Final = ("grid", "block_size")
_OF_THE_GPU: Final = "device__attribute_"  # known without any measurement, so a zero is one


def forget_sizes(rows: Iterable[Row], report: Report) -> set[int]:
    """Make the sizes and durations of launches that never ran absent, and say so once.

    A launch without threads does not exist: CUDA refuses it, so these sizes are ncu's way to say nothing.

    Returns:
        The `id` of each such row, whose figures are to be forgotten too.
    """
    unmeasured = [row for row in rows if all(row.get(size) == NO_SIZE for size in _SIZES)]
    for row in unmeasured:
        row.update(dict.fromkeys((*_SIZES, "duration_ns", "duration_ns_pm")))
    if unmeasured:
        report.warn(
            f"{_named(unmeasured)}: ncu wrote only zeros for the size and the figures; they are absent here",
            fix="see what ncu and the program printed (==ERROR== lines), and profile again",
        )
    return {id(row) for row in unmeasured}


def needs_measuring(metric: str) -> bool:
    """Whether a zero of this metric says nothing of a launch that never ran; of the GPU itself it does."""
    return not metric.startswith(_OF_THE_GPU)


def unless_zero(value: Value) -> Value:
    """A value that is not zero."""
    return ABSENCE if value.number == 0 else value


def _named(rows: list[Row]) -> str:
    kernel, others = rows[0].get("kernel"), len(rows) - 1
    if "invocations" in rows[0]:
        return f"the launches of {kernel}" + (f" and of {others} more kernels" if others else "") + " were not measured"
    one = f"launch {rows[0].get('launch_id')} ({kernel})"
    return f"{one} and {others} more were not measured" if others else f"{one} was not measured"
