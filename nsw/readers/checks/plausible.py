"""Rows whose figures contradict each other are left out: a row that lost a cell says something of another meaning.

What a profiler prints holds together: the mean lies between the least and the greatest, the total is no less than
the greatest and no more than calls times the mean, a share is at most 100 %. Where that fails, columns are shifted
or digits are lost, and which of the numbers are right cannot be known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.text.quantities import QUANTITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from nsw.readers.model import Report
    from nsw.tables.data import Row, TableData

# Least, what lies between, greatest; by what share of its value the mean may lie outside.
_SLACK: Final = 1e-6  # floats, and means that were rounded twice
_ORDERED: Final = (
    ("min_ns", "avg_ns", "max_ns", _SLACK),
    ("min_ns", "med_ns", "max_ns", _SLACK),
    ("min_bytes", "avg_bytes", "max_bytes", _SLACK),
    ("min", "avg", "max", 1e-3),  # nvprof's mean of one throughput: 8.9867GB/s  8.9867GB/s  8.9863GB/s
)
_CHECKED: Final = frozenset(
    ("gpu_summary", "api_summary", "osrt_summary", "um_summary", "nvtx_summary", "openacc_summary", "metrics")
)
# In these a name is never a number; an NVTX range may be named so.
_NAMED: Final = frozenset(("gpu_summary", "api_summary", "osrt_summary", "um_summary"))
# formats that store names and numbers apart, so that none can slip into the place of the other
_STORED: Final = frozenset(
    ("kineto", "nsys-sqlite", "nsys-binary", "nsys-parquet", "nvprof-sqlite", "ncu-binary", "pstats")
)
_NO_NAME: Final = re.compile(rf"{QUANTITY.pattern}(?:\s\s|\Z)")  # a number of the table, then perhaps the name
_MOST_SHOWN: Final = 5
_AT_ONCE: Final = 4096  # rows of a large table
_GREATEST_SHARE: Final = 100.05


def leave_out_contradictions(report: Report) -> None:
    """Take such rows out of the tables of statistics and say so, naming the first ones."""
    named = _NAMED if report.format not in _STORED else frozenset()
    for table in _CHECKED & report.tables.keys():
        data = report.tables[table]
        is_named = table in named
        suspects = enumerate(data) if isinstance(data, list) else _suspects(data, is_named=is_named)
        places: list[int] = []
        shown: list[tuple[str, str]] = []
        for at, row in suspects:
            if (why := _fault(row, is_named=is_named)) is not None:
                places.append(at)
                if len(shown) < _MOST_SHOWN:
                    shown.append((row.get("name") or row.get("metric") or "", why))
        if not places:
            continue
        report.tables[table] = _without(data, frozenset(places))
        for name, why in shown:
            report.error(f"a row of {table} contradicts itself and is left out: {name[:80]}: {why}", fix=_FIX)
        if len(places) > _MOST_SHOWN:
            report.error(f"{len(places)} rows of {table} in all contradict themselves", fix=_FIX)


def _without(data: TableData, places: frozenset[int]) -> TableData:
    if isinstance(data, list):
        return [row for at, row in enumerate(data) if at not in places]
    import numpy as np

    kept = np.ones(data.num_rows, bool)
    kept[list(places)] = False
    return data.filter(kept)


def _suspects(data: pa.Table, *, is_named: bool) -> Iterator[tuple[int, Row]]:
    """The rows of a large table, with their places, of which columns alone do not tell that they are right."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    def fails(low: str, high: str | pa.ChunkedArray) -> None:
        """Those where `low` is not known to be as small as `high`; absent values are."""
        if low in data.column_names and (not isinstance(high, str) or high in data.column_names):
            above = data[high] if isinstance(high, str) else high
            found.append(pc.invert(pc.fill_null(pc.less_equal(data[low], above), True)))

    found: list[pa.ChunkedArray] = []
    for low, middle, high, _ in _ORDERED:
        for pair in ((low, middle), (middle, high), (low, high)):
            fails(*pair)
    fails("time_pct", pa.chunked_array([pa.repeat(_GREATEST_SHARE, data.num_rows)]))
    fails("max_ns", "total_ns")
    if {"avg_ns", "calls"} <= set(data.column_names):
        fails("total_ns", pc.multiply(data["avg_ns"], pc.cast(data["calls"], pa.float64())))
    if is_named:
        names = [name for name in pc.unique(data["name"]).to_pylist() if _NO_NAME.match(name or "0")]
        if names:
            found.append(pc.is_in(pc.cast(data["name"], pa.string()), pa.array(names, pa.string())))
    if not found:
        return
    places = np.flatnonzero(np.logical_or.reduce([column.to_numpy() for column in found]))
    for first in range(0, len(places), _AT_ONCE):
        some = places[first : first + _AT_ONCE]
        yield from zip(some.tolist(), data.take(some).to_pylist(), strict=True)


_FIX: Final = "copy or print the report again: cells of a row, or words of its titles, are missing or swapped"


def _fault(row: Row, *, is_named: bool) -> str | None:
    if is_named and _NO_NAME.match(row.get("name") or "0"):
        return "its name is missing, or begins with a number"
    return contradiction(row)


def contradiction(row: Row) -> str | None:
    """What in a row of statistics cannot be, or None."""
    for low, middle, high, share_outside in _ORDERED:
        least, between, most = row.get(low), row.get(middle), row.get(high)
        if _in_order(least, between, most):  # as nearly always: half-widths are looked up for the others only
            continue
        if least is not None and most is not None and least - _width(row, low) > most + _width(row, high):
            return f"{low} {least:g} is above {high} {most:g}"
        if between is None:
            continue
        slack = _width(row, middle) + share_outside * abs(between)
        if least is not None and least - _width(row, low) > between + slack:
            return f"{low} {least:g} is above {middle} {between:g}"
        if most is not None and most + _width(row, high) < between - slack:
            return f"{high} {most:g} is below {middle} {between:g}"
    share = row.get("time_pct")
    if share is not None and share > _GREATEST_SHARE:
        return f"time_pct is {share:g}"
    return _of_total(row)


def _in_order(least: float | None, between: float | None, most: float | None) -> bool:
    if between is None:
        return least is None or most is None or least <= most
    return (least is None or least <= between) and (most is None or between <= most)


def _of_total(row: Row) -> str | None:
    """Operations without times count as calls, so a total may be too small for the calls, but never too large."""
    total = row.get("total_ns")
    if total is None:
        return None
    mean, most, calls = row.get("avg_ns"), row.get("max_ns"), row.get("calls")
    if (most is None or total >= most) and (mean is None or not calls or total <= mean * calls):
        return None
    width = _width(row, "total_ns")
    if most is not None and total + width < most - _width(row, "max_ns") - _SLACK * most:
        return f"total_ns {total:g} is below max_ns {most:g}"
    if mean is None or not calls:
        return None
    if total - width <= (mean + _width(row, "avg_ns") + 1) * calls * (1 + _SLACK):
        return None
    return f"{calls} calls of {mean:g} ns are no {total:g} ns"


def _width(row: dict[str, Any], column: str) -> float:
    return float(row.get(f"{column}_pm") or 0.0)
