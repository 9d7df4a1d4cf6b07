"""Units of metrics: those that nsw does not know are reported, and a metric of Nsight Compute has one unit in a report.

ncu picks a unit for each value (`987.5 ns` in one launch, `1.02 us` in the next), so that a column of values would mix
them. Where a metric was printed in several, all its values are in the smallest of them here. nvprof's stay as printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.metrics.printed_metrics import unit_of
from nsw.tables.data import coded

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from nsw.readers.model import Report
    from nsw.tables.data import Row, TableData

_VALUES: Final = ("value", "min", "max", "avg")
_COLUMNS: Final = (*_VALUES, *(f"{name}_pm" for name in _VALUES))
_SCALED: Final = re.compile(r"[a-z]?(?:bytes?|b|seconds?|s|hz)", re.IGNORECASE)  # a prefix and what it scales
_KINDS: Final = frozenset({"byte", "ns", "cycle/s"})
_FIX: Final = "print the report again"

Pair = tuple[str, str]  # a metric and a unit


def check_units(report: Report) -> None:
    """Report unknown units in table `metrics`; give each metric of ncu one unit."""
    data = report.tables["metrics"]
    pairs = _pairs(data)
    unknown = [
        f"nsw does not know the unit '{unit}' of '{metric}': the figure is as printed"
        for metric, unit in pairs
        if is_unknown(unit)
    ]
    report.errors(unknown, f"nsw does not know the units of {len(unknown)} metrics in all", fix=_FIX)
    if report.tool == "ncu" and (changes := _changes(pairs)):
        report.tables["metrics"] = (
            _converted_rows(data, changes) if isinstance(data, list) else _converted(data, changes)
        )


def is_unknown(unit: str) -> bool:
    """Whether a part of a unit looks like one of size, time or frequency, and is none."""
    parts = (part.strip() for part in unit.split("/"))
    return any(_SCALED.fullmatch(part) and unit_of(part).kind not in _KINDS for part in parts)


def _pairs(data: TableData) -> list[Pair]:
    """Each metric with each of its units, in their order."""
    if isinstance(data, list):
        found = ((row.get("metric"), row.get("unit")) for row in data)
        return [(metric, unit) for metric, unit in dict.fromkeys(found) if metric and unit]
    import numpy as np

    names, name_codes = coded(data, "metric")
    units, unit_codes = coded(data, "unit")
    there = np.unique(name_codes * len(units) + unit_codes).tolist()
    return [(names[p // len(units)], units[p % len(units)]) for p in there if units[p % len(units)]]


def _changes(pairs: Iterable[Pair]) -> dict[Pair, tuple[str, float]]:
    """Of each metric and unit that is to be changed the other unit, and by what values are multiplied."""
    several: dict[Pair, list[str]] = {}
    for metric, unit in pairs:
        several.setdefault((metric, unit_of(unit).kind), []).append(unit)
    changes = {}
    for (metric, _), units in several.items():
        least = min(sorted(units), key=lambda unit: unit_of(unit).factor)
        for unit in units:
            if (ratio := unit_of(unit).factor / unit_of(least).factor) != 1:
                changes[metric, unit] = (least, ratio)
    return changes


def _converted_rows(rows: list[Row], changes: dict[Pair, tuple[str, float]]) -> list[Row]:
    made = []
    for row in rows:
        unit, ratio = changes.get((row.get("metric") or "", row.get("unit") or ""), ("", 1.0))
        scaled = {c: row[c] * ratio for c in _COLUMNS if row.get(c) is not None}
        made.append(row | scaled | {"unit": unit} if unit else row)
    return made


def _converted(data: pa.Table, changes: dict[Pair, tuple[str, float]]) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names, name_codes = coded(data, "metric")
    units, unit_codes = coded(data, "unit")
    ratios, others = np.ones(len(names) * len(units)), np.tile(np.arange(len(units)), len(names))
    for (metric, unit), (least, ratio) in changes.items():
        at = names.index(metric) * len(units) + units.index(unit)
        ratios[at], others[at] = ratio, units.index(least)
    pairs = name_codes * len(units) + unit_codes
    codes = others[pairs].astype(np.int32)
    unit = pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes == len(units) - 1), pa.array(units[:-1], pa.string())
    )  # the last of `units` is None
    data = data.set_column(data.schema.get_field_index("unit"), "unit", unit)
    for column in _COLUMNS:
        if column in data.column_names:
            scaled = pc.multiply(data[column], pa.array(ratios[pairs]))
            data = data.set_column(data.schema.get_field_index(column), column, scaled)
    return data
