"""Launches of Nsight Compute against their own metrics: sizes that differ, times and counts below zero.

The header of a launch and its section Launch Statistics both give its grid and its block. Where they differ, the text
was cut from one launch into the next, and whose figures follow the header is not known.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.checks.plausible import without
from nsw.readers.text.quantities import TIME_UNITS
from nsw.wording import one_or

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nsw.readers.model import Report
    from nsw.tables.data import Row, TableData

_KEY: Final = ("block", "rank", "pid", "launch_id")
_METRIC: Final = (*_KEY, "kernel", "device", "section", "metric", "description", "unit")
# the metrics that repeat a size of the header
_SIZES: Final = {
    "Grid Size": "grid", "launch__grid_size": "grid", "Grid Size (launch__grid_size)": "grid",
    "Block Size": "block_size", "launch__block_size": "block_size", "Block Size (launch__block_size)": "block_size",
}  # fmt: skip
_POSITIVE: Final = frozenset(TIME_UNITS) | {"cycle", "inst", "byte", "block", "thread", "sector", "warp", "request"}
_FEW: Final = 2
_SLIGHTLY: Final = -100  # seen of a range with set:full: -2 sectors (docs/gpu.md)
_FIX: Final = "print the report again: ncu --import REPORT --page details --csv"


def check_launches(report: Report) -> None:
    """Leave out what cannot be of launches and their metrics, and report it."""
    _leave_out_strays(report)
    _leave_out_repeats(report)
    _leave_out_mixed(report)
    _leave_out_negative(report)


def _leave_out_strays(report: Report) -> None:
    """Leave out launches of one row among the rows of another: ncu prints launches whole, so that ID is damaged."""
    data = report.tables.get("metrics", [])
    if not isinstance(data, list):
        return
    runs = [(key, len(list(rows))) for key, rows in groupby(data, _key)]
    rows_of: Counter[tuple[Any, ...]] = Counter()
    for key, count in runs:
        rows_of[key] += count
    strays = {
        key: before
        for (before, _), (key, _), (after, _) in zip(runs, runs[1:], runs[2:], strict=False)
        if rows_of[key] == 1
        and (
            (before == after and rows_of[before] > _FEW)
            or (rows_of[before] > 1 and rows_of[after] > 1 and _is_out_of_order(before, key, after))
        )
    }
    if not strays:
        return
    report.errors(
        [
            f"a row of {_named(key)} is among those of {_named(around)} and is left out"
            for key, around in strays.items()
        ],
        f"{len(strays)} rows in all are among those of another launch",
        fix=_FIX,
    )
    for table in ("metrics", "launches"):
        if table in report.tables:
            report.tables[table] = [row for row in _rows(report.tables[table]) if _key(row) not in strays]


def _is_out_of_order(before: tuple[Any, ...], key: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    """Whether the launches around one follow each other, and its number is not between theirs."""
    low, number, high = before[-1], key[-1], after[-1]
    if None in (low, number, high) or not before[:-1] == key[:-1] == after[:-1]:
        return False
    return bool(low < high and not low < number < high)


def _named(key: tuple[Any, ...]) -> str:
    return f"launch {key[-1]} of process {key[-2]}"


def _leave_out_repeats(report: Report) -> None:
    """Leave out metrics that a launch has twice: ncu prints each once in a section."""
    data = report.tables.get("metrics", [])
    places = _repeats(data)
    if not places:
        return
    row = data[places[0]] if isinstance(data, list) else data.slice(places[0], 1).to_pylist()[0]
    first = f"{row['metric']} of {row.get('kernel')}"
    report.error(
        f"a launch has the same metric twice ({first}): the second is left out"
        if len(places) == 1
        else f"{len(places)} metrics are in their launch twice (first: {first}): the second of each is left out",
        fix=_FIX,
    )
    report.tables["metrics"] = without(data, frozenset(places))


def _repeats(data: TableData) -> list[int]:
    """The places of rows that have the launch, section, metric, label and unit of a row before."""
    if isinstance(data, list):
        seen: set[tuple[Any, ...]] = set()
        return [
            at
            for at, row in enumerate(data)
            if (key := tuple(map(row.get, _METRIC))) in seen or seen.add(key)  # type: ignore[func-returns-value]
        ]
    import numpy as np

    from nsw.tables.data import coded

    keys = np.zeros(data.num_rows, np.int64)
    for column in _METRIC:
        if column in data.column_names:
            words, codes = coded(data, column)
            if len(words) > 1:
                if int(keys.max()) >= 2**62 // len(words):
                    keys = np.unique(keys, return_inverse=True)[1]
                keys = keys * len(words) + codes
    _, first = np.unique(keys, return_index=True)
    if len(first) == len(keys):
        return []
    repeated = np.ones(len(keys), bool)
    repeated[first] = False
    places: list[int] = np.flatnonzero(repeated).tolist()
    return places


def _leave_out_mixed(report: Report) -> None:
    """Take the figures from launches whose sizes are not those of their header."""
    if "launches" not in report.tables or "metrics" not in report.tables:
        return
    metrics = _some(report.tables["metrics"], "metric", frozenset(_SIZES))
    if _is_unmixed(metrics, report.tables["launches"]):
        return
    *keys, names, values = _columns(metrics, (*_KEY, "metric", "value"))
    sizes = {
        (_SIZES[name], *key): value for *key, name, value in zip(*keys, names, values, strict=True) if value is not None
    }
    if not sizes:
        return
    launches = report.tables["launches"]
    mixed: dict[tuple[Any, ...], tuple[int, str]] = {}
    *keys, grids, blocks = _columns(launches, (*_KEY, "grid", "block_size"))
    for at, (*key, grid, block) in enumerate(zip(*keys, grids, blocks, strict=True)):
        for column, size in (("grid", grid), ("block_size", block)):
            header, own = _product(size), sizes.get((column, *key))
            if header is not None and own is not None and header != own:
                mixed.setdefault(tuple(key), (at, f"{column} {size} in its header, {own:g} in its section"))
    if not mixed:
        return
    (kernels,) = _columns(launches, ("kernel",))
    found = [
        f"figures of another launch are below the header of {kernels[at]}: {what}: they are left out"
        for at, what in mixed.values()
    ]
    report.errors(found, f"figures of other launches are below the headers of {len(mixed)} launches in all", fix=_FIX)
    for table in ("metrics", "rules"):
        if table in report.tables:
            kept = [row for row in _rows(report.tables[table]) if _key(row) not in mixed]
            report.tables[table] = kept
    report.tables["launches"] = [
        row | {"duration_ns": None, "duration_ns_pm": None} if _key(row) in mixed else row
        for row in _rows(report.tables["launches"])
    ]


def _is_unmixed(metrics: TableData, launches: TableData) -> bool:
    """Whether columns show that every size is its header's: those of Arrow whose rows are in the launches' order.

    Args:
        metrics: Those that repeat a size of the header.
        launches: All launches.
    """
    if isinstance(metrics, list) or isinstance(launches, list):
        return False
    import numpy as np

    from nsw.tables.data import coded, numbers

    words, word = coded(metrics, "metric")
    for code in np.unique(word):
        rows = metrics.filter(word == code)
        if len(rows) != len(launches) or not all(
            np.array_equal(numbers(rows, key), numbers(launches, key), equal_nan=True) for key in _KEY
        ):
            return False
        sizes, size = coded(launches, _SIZES[words[code]])
        header = np.array([np.nan if (count := _product(text)) is None else count for text in sizes])[size]
        own = numbers(rows, "value")
        if ((header != own) & ~np.isnan(header) & ~np.isnan(own)).any():
            return False
    return True


def _leave_out_negative(report: Report) -> None:
    """Take out durations and counts below zero."""
    data = report.tables.get("launches", [])
    if launches := [row for row in _below_zero(data, "duration_ns") if row["duration_ns"] < 0]:
        first = f"{launches[0].get('kernel')}: {launches[0]['duration_ns']:g} ns"
        several = one_or(len(launches), "a launch has", "launches have")
        report.error(f"{several} a negative duration, which is left out (first: {first})", fix=_FIX)
        report.tables["launches"] = [
            row | {"duration_ns": None, "duration_ns_pm": None} if (row.get("duration_ns") or 0) < 0 else row
            for row in _rows(data)
        ]
    data = report.tables.get("metrics", [])
    wrong = [row for row in _below_zero(data, "value") if row.get("unit") in _POSITIVE]
    if wrong:
        first = f"{wrong[0]['metric']} of {wrong[0].get('kernel')}: {wrong[0]['value']:g} {wrong[0]['unit']}"
        several = one_or(len(wrong), "a metric is", "metrics are")
        if all(row["unit"] not in TIME_UNITS and row["value"] >= _SLIGHTLY for row in wrong):
            report.warn(
                f"{several} slightly below zero, as a difference of counts from two passes of ncu can be, and left out"
                f" (first: {first})"
            )
        else:
            report.error(f"{several} below zero and left out (first: {first})", fix=_FIX)
        report.tables["metrics"] = [
            row for row in _rows(data) if not ((row.get("value") or 0) < 0 and row.get("unit") in _POSITIVE)
        ]


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(c) for c in _KEY)


@lru_cache(16384)
def _product(size: str | None) -> int | None:
    """How many blocks or threads `(512, 1, 1)` are."""
    numbers = re.findall(r"\d+", size or "")
    return prod(map(int, numbers)) if len(numbers) == 3 else None


def _rows(data: TableData) -> Iterable[Row]:
    if isinstance(data, list):
        return data
    made: list[Row] = data.to_pylist()
    return made


def _columns(data: TableData, names: Sequence[str]) -> list[list[Any]]:
    """The values of each of these columns, None where there is no such column."""
    if isinstance(data, list):
        return [[row.get(name) for row in data] for name in names]
    there = data.column_names
    return [data[name].to_pylist() if name in there else [None] * data.num_rows for name in names]


def _some(data: TableData, column: str, values: frozenset[str]) -> TableData:
    """The rows with one of these values."""
    if isinstance(data, list):
        return [row for row in data if row.get(column) in values]
    import pyarrow as pa
    import pyarrow.compute as pc

    return data.filter(pc.is_in(data[column], pa.array(sorted(values), pa.string())))


def _below_zero(data: TableData, column: str) -> Iterable[Row]:
    """The rows where a number is below zero."""
    if isinstance(data, list):
        return [row for row in data if (row.get(column) or 0) < 0]
    import pyarrow.compute as pc

    if column not in data.column_names:
        return []
    return _rows(data.filter(pc.less(data[column], 0)))
