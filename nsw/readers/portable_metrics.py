"""The portable name, unit and value beside each printed metric, and one unit for each metric of Nsight Compute.

ncu picks a unit for each value (`987.5 ns` in one launch, `1.02 us` in the next), so that a column of values would mix
them: all values of a metric are in the smallest of its units here. nvprof's stay as printed.
Small tables are rows, large ones columns of codes: each different pair of name and unit is looked up once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from nsw.metrics.printed_metrics import (
    LEVEL_WIDTH,
    Base,
    PortableMetric,
    best_portable_metrics,
    parse_unit,
    utilization_level_percent,
)
from nsw.readers.model import Report
from nsw.tables.parquet_tables import Row, TableData, column_as_floats, distinct_values_and_codes

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Pair = tuple[str, str]  # a metric and a unit

_NVPROF_K: Final = 1024
_VALUES: Final = ("value", "min", "max", "avg")
_COLUMNS: Final = (*_VALUES, *(f"{name}_pm" for name in _VALUES))


def convert_metrics_to_one_unit(report: Report) -> None:
    """Convert the values of each metric to the smallest of its units, in place."""
    data = report.tables["metrics"]
    if changes := _unit_changes(_metric_unit_pairs(data)):
        report.tables["metrics"] = (
            _convert_units_of_rows(data, changes)
            if isinstance(data, list)
            else _convert_units_of_columns(data, changes)
        )


def add_portable_names(report: Report) -> None:
    """Fill `portable` and what belongs to it in table `metrics`, in place."""
    data = report.tables["metrics"]
    if not len(data):
        return
    base: Base = _NVPROF_K if report.tool == "nvprof" else 1000
    if isinstance(data, list):
        _fill_portable_in_rows(data, base)
    else:
        report.tables["metrics"] = _with_portable_columns(data, base)


def _fill_portable_in_rows(rows: list[Row], base: Base) -> None:
    portable_name = best_portable_metrics({(row["metric"], row.get("unit")) for row in rows if row.get("metric")}, base)
    for row in rows:
        to = portable_name.get((row.get("metric") or "", row.get("unit")))
        if to is None:
            continue
        column = "value" if row.get("value") is not None else "avg"
        value, half = _convert_to_portable(row.get(column), row.get(f"{column}_pm"), to)
        row |= {"portable": to.name, "portable_unit": to.unit, "portable_value": value, "portable_value_pm": half}


def _convert_to_portable(
    value: float | None, half: float | None, to: PortableMetric
) -> tuple[float | None, float | None]:
    if value is None:
        return None, None
    if to.is_level:
        return utilization_level_percent(value)
    return value * to.factor, None if half is None else half * to.factor


def _with_portable_columns(data: pa.Table, base: Base) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    names, units, pairs = _metric_unit_pair_codes(data)
    present = np.flatnonzero(np.bincount(pairs, minlength=len(names) * len(units)))
    by_pair = {int(p): (names[p // len(units)] or "", units[p % len(units)]) for p in present}
    portable_name = best_portable_metrics(set(by_pair.values()), base)
    portables = list(dict.fromkeys(portable_name.values()))
    code_of = {pair: portables.index(portable_name[key]) for pair, key in by_pair.items() if key in portable_name}
    table = np.full(len(names) * len(units), -1, dtype=np.int32)
    table[list(code_of)] = list(code_of.values())
    codes = table[pairs]
    value, half = column_as_floats(data, "value"), column_as_floats(data, "value_pm")
    if "avg" in data.column_names:
        absent = np.isnan(value)
        value = np.where(absent, column_as_floats(data, "avg"), value)
        half = np.where(absent, column_as_floats(data, "avg_pm"), half)
    factors = np.array([*(p.factor for p in portables), np.nan])[codes]
    is_level = np.flatnonzero(np.array([*(p.is_level for p in portables), False])[codes])
    level = value[is_level]
    value, half = value * factors, half * factors
    value[is_level] = np.where(level > 0, 10 * level - LEVEL_WIDTH, 0.0 * level)
    half[is_level] = np.where(level > 0, LEVEL_WIDTH, np.nan)
    half[np.isnan(value)] = np.nan
    for column, words in (("portable", [p.name for p in portables]), ("portable_unit", [p.unit for p in portables])):
        different = list(dict.fromkeys(words))
        positions = np.array([*map(different.index, words), -1], dtype=np.int32)[codes]
        indices = pa.array(positions, mask=codes < 0)
        data = data.append_column(column, pa.DictionaryArray.from_arrays(indices, pa.array(different, pa.string())))
    for column, filled in (("portable_value", value), ("portable_value_pm", half)):
        data = data.append_column(column, pa.array(filled, mask=np.isnan(filled)))
    return data


def _metric_unit_pair_codes(data: pa.Table) -> tuple[list[Any], list[Any], np.ndarray[Any, Any]]:
    """All metrics, all units, and of each row which metric times the number of units plus which unit it has."""
    import numpy as np

    names, name_codes = distinct_values_and_codes(data, "metric")
    units, unit_codes = distinct_values_and_codes(data, "unit")
    return names, units, (name_codes * len(units) + unit_codes).astype(np.int32)


def _metric_unit_pairs(data: TableData) -> list[Pair]:
    """Each metric with each of its units, in their order."""
    if isinstance(data, list):
        different = dict.fromkeys((row.get("metric"), row.get("unit")) for row in data)
        return [(metric, unit) for metric, unit in different if metric and unit]
    import numpy as np

    names, units, pairs = _metric_unit_pair_codes(data)
    present = np.unique(pairs).tolist()
    return [(names[p // len(units)], units[p % len(units)]) for p in present if units[p % len(units)]]


def _unit_changes(pairs: Iterable[Pair]) -> dict[Pair, tuple[str, float]]:
    """Of each metric and unit that is to be changed the other unit, and by what values are multiplied."""
    several: dict[Pair, list[str]] = {}
    for metric, unit in pairs:
        several.setdefault((metric, parse_unit(unit).kind), []).append(unit)
    changes = {}
    for (metric, _), units in several.items():
        smallest = min(sorted(units), key=lambda unit: parse_unit(unit).factor)
        for unit in units:
            if (ratio := parse_unit(unit).factor / parse_unit(smallest).factor) != 1:
                changes[metric, unit] = (smallest, ratio)
    return changes


def _convert_units_of_rows(rows: list[Row], changes: dict[Pair, tuple[str, float]]) -> list[Row]:
    converted = []
    for row in rows:
        unit, ratio = changes.get((row.get("metric") or "", row.get("unit") or ""), ("", 1.0))
        scaled = {c: row[c] * ratio for c in _COLUMNS if row.get(c) is not None}
        converted.append(row | scaled | {"unit": unit} if unit else row)
    return converted


def _convert_units_of_columns(data: pa.Table, changes: dict[Pair, tuple[str, float]]) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    names, units, pairs = _metric_unit_pair_codes(data)
    ratios, new_units = np.ones(len(names) * len(units)), np.tile(np.arange(len(units)), len(names))
    for (metric, unit), (smallest, ratio) in changes.items():
        at = names.index(metric) * len(units) + units.index(unit)
        ratios[at], new_units[at] = ratio, units.index(smallest)
    codes = new_units[pairs].astype(np.int32)
    unit = pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes == len(units) - 1), pa.array(units[:-1], pa.string())
    )  # the last of `units` is None
    data = data.set_column(data.schema.get_field_index("unit"), "unit", unit)
    for column in _COLUMNS:
        if column in data.column_names:
            scaled = pc.multiply(data[column], pa.array(ratios[pairs]))
            data = data.set_column(data.schema.get_field_index(column), column, scaled)
    return data
