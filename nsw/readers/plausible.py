"""Rows whose figures contradict each other are left out: a row that lost a cell says something of another meaning.

What a profiler prints holds together: the mean lies between the least and the greatest, the total is no less than
the greatest and no more than calls times the mean, a share is at most 100 %. Where that fails, columns are shifted
or digits are lost, and which of the numbers are right cannot be known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.quantities import QUANTITY

if TYPE_CHECKING:
    from nsw.readers.model import Report
    from nsw.tables.data import Row

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
_NO_NAME: Final = re.compile(rf"{QUANTITY.pattern}(?:\s\s|\Z)")  # a number of the table, then perhaps the name
_MOST_SHOWN: Final = 5
_GREATEST_SHARE: Final = 100.05


def leave_out_contradictions(report: Report) -> None:
    """Take such rows out of the tables of statistics and say so, naming the first ones."""
    for table in _CHECKED & report.tables.keys():
        data = report.tables[table]
        if not isinstance(data, list):
            continue
        wrong = [(row, why) for row in data if (why := _fault(table, row)) is not None]
        if not wrong:
            continue
        left = {id(row) for row, _ in wrong}
        report.tables[table] = [row for row in data if id(row) not in left]
        for row, why in wrong[:_MOST_SHOWN]:
            name = row.get("name") or row.get("metric") or ""
            report.error(f"a row of {table} contradicts itself and is left out: {name[:80]}: {why}", fix=_FIX)
        if len(wrong) > _MOST_SHOWN:
            report.error(f"{len(wrong)} rows of {table} in all contradict themselves", fix=_FIX)


_FIX: Final = "copy or print the report again: cells of a row, or words of its titles, are missing or swapped"


def _fault(table: str, row: Row) -> str | None:
    if table in _NAMED and _NO_NAME.match(row.get("name") or "0"):
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
