"""Launches that ncu lists but could not measure: it writes zeros for their sizes and for most of their figures.

Seen when a kernel could not be replayed (`==ERROR== LaunchFailed`, ncu 2025.3): grid and block `(0, 0, 0)`,
duration 0, counters 0 beside `n/a` and `nan`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.readers.ncu_values import ABSENCE, Value

if TYPE_CHECKING:
    from nsw.readers.model import Report
    from nsw.readers.ncu_results import Results
    from nsw.tables.data import Row

NO_SIZE: Final = "(0, 0, 0)"
_SIZES: Final = ("grid", "block_size")
_OF_THE_GPU: Final = "device__attribute_"  # known without any measurement, so a zero is one
_NAN: Final = float("nan")


def forget_unmeasured(results: Results, report: Report) -> None:
    """Make the zeros of launches that never ran absent, and say so once.

    A launch without threads does not exist: CUDA refuses it, so these sizes are ncu's way to say nothing.
    """
    rows = [*results.launches.values(), *results.summaries.values()]
    unmeasured = [row for row in rows if all(row.get(size) == NO_SIZE for size in _SIZES)]
    if not unmeasured:
        return
    for row in unmeasured:
        row.update(dict.fromkeys((*_SIZES, "duration_ns", "duration_ns_pm")))
    _forget_figures(results, {id(row) for row in unmeasured})
    report.warn(
        f"{_named(unmeasured)}: ncu wrote only zeros for the size and the figures; they are absent here",
        fix="see what ncu and the program printed (==ERROR== lines), and profile again",
    )


def _forget_figures(results: Results, unmeasured: set[int]) -> None:
    for i, (owner, names) in enumerate(zip(results.owners, results.names, strict=True)):
        if id(owner) not in unmeasured or names[1].startswith(_OF_THE_GPU):
            continue
        if results.numbers[i] == 0:
            results.numbers[i] = results.halves[i] = _NAN
        if i in results.spreads:
            least, most, mean = (_unless_zero(value) for value in results.spreads[i])
            results.spreads[i] = (least, most, mean)


def _unless_zero(value: Value) -> Value:
    return ABSENCE if value.number == 0 else value


def _named(rows: list[Row]) -> str:
    kernel, others = rows[0].get("kernel"), len(rows) - 1
    if "invocations" in rows[0]:
        return f"the launches of {kernel}" + (f" and of {others} more kernels" if others else "") + " were not measured"
    one = f"launch {rows[0].get('launch_id')} ({kernel})"
    return f"{one} and {others} more were not measured" if others else f"{one} was not measured"
