"""Rows whose figures contradict each other are left out: a row that lost a cell says something of another meaning.

What a profiler prints holds together: no time or count is negative, the mean lies between the least and the greatest,
the total is no less than the greatest or calls times the least and no more than calls times the mean, own time is part
of the total, a share is at most 100 %. Where that fails, columns are shifted or digits are lost, and which of the
numbers are right cannot be known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.checks.shares import foreign_rows
from nsw.readers.model import MOST_SHOWN
from nsw.readers.text.quantities import QUANTITY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
# of which none is below zero; bytes of operators are: what they release counts against what they allocate
_NEVER_NEGATIVE: Final = (
    "calls", "total_ns", "avg_ns", "med_ns", "min_ns", "max_ns", "stddev_ns", "time_pct", "gpu_ops", "gpu_ns",
    "projected_ns", "projected_med_ns", "self_cpu_ns", "cpu_ns", "cpu_avg_ns", "self_device_ns", "device_ns",
    "device_avg_ns", "avg_bytes", "min_bytes", "max_bytes", "total_bytes", "duration_ns",
)  # fmt: skip
# a part and its whole
_PARTS: Final = (("self_cpu_ns", "cpu_ns"), ("self_device_ns", "device_ns"))
# a mean, what it is of, how many
_MEANS: Final = (("cpu_avg_ns", "cpu_ns"), ("device_avg_ns", "device_ns"))
_CHECKED: Final = frozenset(
    ("gpu_summary", "api_summary", "osrt_summary", "um_summary", "nvtx_summary", "openacc_summary", "openmp_summary",
     "nvtx_gpu_summary", "communication", "operators", "metrics")
)  # fmt: skip
# In these a name is never a number; an NVTX range may be named so.
_NAMED: Final = frozenset(("gpu_summary", "api_summary", "osrt_summary", "um_summary"))
# formats that store names and numbers apart, so that none can slip into the place of the other
_STORED: Final = frozenset(
    ("kineto", "nsys-sqlite", "nsys-binary", "nsys-parquet", "nvprof-sqlite", "ncu-binary", "pstats")
)
_NO_NAME: Final = re.compile(rf"{QUANTITY.pattern}(?:\s\s|\Z)")  # a number of the table, then perhaps the name
_UNTIMED: Final = re.compile("invalid timestamps|no valid times|have no time")  # so nvprof and its readers say
# Formats whose tables are printed whole, with shares of their own, and what tells the tables of one apart. nsys prints
# several tables for gpu_summary: its reader looks at each.
_SHARED: Final = frozenset({"nvprof-text"})
_SHARING: Final = ("gpu_summary", "api_summary", "openacc_summary")
_ONE_TABLE: Final = ("block", "rank", "pid", "device")
_MOST_SHARING: Final = 20_000  # rows
_AT_ONCE: Final = 4096  # rows of a large table
_GREATEST_SHARE: Final = 100.05


def leave_out_contradictions(report: Report) -> None:
    """Take such rows out of the tables of statistics and say so, naming the first ones."""
    if report.format in _SHARED:
        _leave_out_foreign_rows(report)
    all_timed = not any(_UNTIMED.search(p.message) for p in report.problems)
    named = _NAMED if report.format not in _STORED else frozenset()
    for table in _CHECKED & report.tables.keys():
        data = report.tables[table]
        is_named = table in named
        suspects = enumerate(data) if isinstance(data, list) else _suspects(data, is_named=is_named)
        places: list[int] = []
        shown: list[tuple[str, str]] = []
        for at, row in suspects:
            if (why := _fault(row, is_named=is_named, all_timed=all_timed)) is not None:
                places.append(at)
                if len(shown) <= MOST_SHOWN:
                    shown.append((row.get("name") or row.get("metric") or "", why))
        if places:
            report.tables[table] = without(data, frozenset(places))
            say_left_out(report, table, shown, len(places))


def _leave_out_foreign_rows(report: Report) -> None:
    for table in _SHARING:
        data = report.tables.get(table, [])
        if not 2 <= len(data) <= _MOST_SHARING:
            continue
        rows = data if isinstance(data, list) else data.to_pylist()
        together: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(rows):
            together.setdefault(tuple(row.get(c) for c in _ONE_TABLE), []).append(at)
        found = {
            places[at]: why
            for places in together.values()
            for at, why in foreign_rows([rows[place] for place in places]).items()
        }
        if found:
            report.tables[table] = without(data, frozenset(found))
            say_left_out(report, table, [(rows[at].get("name") or "", why) for at, why in found.items()], len(found))


def say_left_out(report: Report, table: str, rows: Sequence[tuple[str, str]], count: int) -> None:
    """An error for each of the first rows that were left out (name, why), and one for their number."""
    found = [f"a row of {table} contradicts itself and is left out: {name[:80]}: {why}" for name, why in rows]
    report.errors(found, f"{count} rows of {table} in all contradict themselves", fix=_FIX)


def without(data: TableData, places: frozenset[int]) -> TableData:
    """The rows that are not at these places."""
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
    if {"min_ns", "calls", "total_ns"} <= set(data.column_names):
        of_least = pc.multiply(data["min_ns"], pc.cast(data["calls"], pa.float64()))
        found.append(pc.fill_null(pc.less(data["total_ns"], of_least), False))
    below = set(_NEVER_NEGATIVE) & set(data.column_names)
    found += [pc.fill_null(pc.less(data[column], 0), False) for column in below]
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


def _fault(row: Row, *, is_named: bool, all_timed: bool) -> str | None:
    if is_named and _NO_NAME.match(row.get("name") or "0"):
        return "its name is missing, or begins with a number"
    return contradiction(row, all_timed=all_timed)


def contradiction(row: Row, *, all_timed: bool = False) -> str | None:
    """What in a row of statistics cannot be, or None; `all_timed`: each of its calls has a time."""
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
    return _below_zero(row) or _of_total(row, all_timed=all_timed) or _of_parts(row)


def _below_zero(row: Row) -> str | None:
    for column in _NEVER_NEGATIVE:
        value = row.get(column)
        if value is not None and value < 0:
            return f"{column} is {value:g}"
    return None


def _of_parts(row: Row) -> str | None:
    """Of operators: own time is part of the total, and the total is the mean of the calls times their number."""
    for part, whole in _PARTS:
        own, total = row.get(part), row.get(whole)
        if own is None or total is None or own <= total:
            continue
        if own - _width(row, part) > (total + _width(row, whole)) * (1 + _SLACK):
            return f"{part} {own:g} is above {whole} {total:g}"
    calls = row.get("calls") or 0
    for mean, whole in _MEANS if calls else ():
        each, total = row.get(mean), row.get(whole)
        if each is None or total is None:
            continue
        width = _width(row, whole) + calls * _width(row, mean) + _SLACK * total
        if abs(each * calls - total) > width:
            return f"{calls} calls of {each:g} ns are no {total:g} ns"
    return None


def _in_order(least: float | None, between: float | None, most: float | None) -> bool:
    if between is None:
        return least is None or most is None or least <= most
    return (least is None or least <= between) and (most is None or between <= most)


def _of_total(row: Row, *, all_timed: bool) -> str | None:
    """A total against greatest, mean and least; it may be below calls x mean: nvprof counts calls without times."""
    total = row.get("total_ns")
    if total is None:
        return None
    mean, most, calls, least = (row.get(c) for c in ("avg_ns", "max_ns", "calls", "min_ns"))
    needed = float((least - _width(row, "min_ns")) * calls) if all_timed and least is not None and calls else 0.0
    enough = total >= needed
    if enough and (most is None or total >= most) and (mean is None or not calls or total <= mean * calls):
        return None
    width = _width(row, "total_ns")
    if not enough and least is not None and total + width < needed * (1 - _SLACK):
        return f"total_ns {total:g} is below {calls} calls of min_ns {least:g}"
    if most is not None and total + width < most - _width(row, "max_ns") - _SLACK * most:
        return f"total_ns {total:g} is below max_ns {most:g}"
    if mean is None or not calls:
        return None
    if total - width <= (mean + _width(row, "avg_ns") + 1) * calls * (1 + _SLACK):
        return None
    return f"{calls} calls of {mean:g} ns are no {total:g} ns"


def _width(row: dict[str, Any], column: str) -> float:
    return float(row.get(f"{column}_pm") or 0.0)
