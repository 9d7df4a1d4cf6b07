"""nvprof's samples of the CPU in its databases (--cpu-profiling on -o FILE): how long each function ran itself.

A hit is one sample, of the call that was innermost: its instruction's function gets the period between two samples,
as `nvprof -i FILE --cpu-profiling-mode flat` counts. A program that used no GPU leaves nothing else in its file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nsw.tables.names import demangle_all

if TYPE_CHECKING:
    from nsw.readers.nvprof.database.connection import Database

HITS: Final = "collHit"
_NEEDED: Final = {
    HITS: ("call",),
    "profCall": ("id", "instruction"),
    "collInstruction": ("id", "function"),
    "collFunction": ("id", "name", "library"),
    "collLibrary": ("id", "name"),
    "profStringTable": ("id", "value"),
    "profGraph": ("samplingPeriod",),
}
_SQL: Final = """
SELECT fs.value, ls.value, COUNT(*)
FROM collHit h JOIN profCall c ON c.id = h.call JOIN collInstruction i ON i.id = c.instruction
JOIN collFunction f ON f.id = i.function LEFT JOIN profStringTable fs ON fs.id = f.name
LEFT JOIN collLibrary l ON l.id = f.library LEFT JOIN profStringTable ls ON ls.id = l.name
GROUP BY f.id ORDER BY 3 DESC, 1, 2
"""
_MICROSECONDS: Final = 1e6


def functions(database: Database) -> list[dict[str, Any]]:
    """One row a function that was running when a sample was taken, the longest first."""
    if not all(database.has(table, *columns) for table, columns in _NEEDED.items()):
        return []
    (hits,) = next(database.rows("SELECT COUNT(*) FROM collHit"))
    if not hits:
        return []
    periods = {p for (p,) in database.rows("SELECT samplingPeriod FROM profGraph")}
    period = next(iter(periods)) if len(periods) == 1 else None
    if not isinstance(period, float | int) or not period > 0:
        database.report.warn(f"not read: {hits} CPU samples, which have different periods ({len(periods)} of them)")
        return []
    found = list(database.rows(_SQL))
    lost = hits - sum(count for _, _, count in found)
    if lost:
        database.report.warn(f"{lost} of {hits} samples of the CPU are of no function of the file: not read")
    clear = demangle_all(name for name, _, _ in found if isinstance(name, str))
    return [_row(clear.get(name), library, count * period / _MICROSECONDS) for name, library, count in found]


def _row(name: str | None, library: Any, seconds: float) -> dict[str, Any]:
    return {
        "block": 0,
        "name": name,
        "module": library if isinstance(library, str) else None,
        "self_s": seconds,
        "cpu_time_s": seconds,
    }
