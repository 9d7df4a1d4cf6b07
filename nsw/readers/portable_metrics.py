"""The portable name, unit and value beside each printed metric, whichever reader read it.

Small tables are rows, large ones columns of codes: each different pair of name and unit is looked up once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.metrics.printed_metrics import LEVEL_WIDTH, chosen, of_level
from nsw.tables.data import coded, numbers

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.metrics.printed_metrics import Base, Portable
    from nsw.readers.model import Report
    from nsw.tables.data import Row

_NVPROF_K: Final = 1024


def add_portable_names(report: Report) -> None:
    """Fill `portable` and what belongs to it in table `metrics`, in place."""
    data = report.tables["metrics"]
    if not len(data):
        return
    base: Base = _NVPROF_K if report.tool == "nvprof" else 1000
    if isinstance(data, list):
        _fill_rows(data, base)
    else:
        report.tables["metrics"] = _with_columns(data, base)


def _fill_rows(rows: list[Row], base: Base) -> None:
    known = chosen({(row["metric"], row.get("unit")) for row in rows if row.get("metric")}, base)
    for row in rows:
        to = known.get((row.get("metric") or "", row.get("unit")))
        if to is None:
            continue
        of = "value" if row.get("value") is not None else "avg"
        value, half = _converted(row.get(of), row.get(f"{of}_pm"), to)
        row |= {"portable": to.name, "portable_unit": to.unit, "portable_value": value, "portable_value_pm": half}


def _converted(value: float | None, half: float | None, to: Portable) -> tuple[float | None, float | None]:
    if value is None:
        return None, None
    if to.is_level:
        return of_level(value)
    return value * to.factor, None if half is None else half * to.factor


def _with_columns(data: pa.Table, base: Base) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    names, name_codes = coded(data, "metric")
    units, unit_codes = coded(data, "unit")
    pairs = name_codes * len(units) + unit_codes
    there = np.flatnonzero(np.bincount(pairs, minlength=len(names) * len(units)))
    by_pair = {int(p): (names[p // len(units)] or "", units[p % len(units)]) for p in there}
    known = chosen(set(by_pair.values()), base)
    portables = list(dict.fromkeys(known.values()))
    code_of = {pair: portables.index(known[key]) for pair, key in by_pair.items() if key in known}
    table = np.full(len(names) * len(units), -1, dtype=np.int32)
    table[list(code_of)] = list(code_of.values())
    codes = table[pairs]
    value, half = numbers(data, "value"), numbers(data, "value_pm")
    if "avg" in data.column_names:
        absent = np.isnan(value)
        value = np.where(absent, numbers(data, "avg"), value)
        half = np.where(absent, numbers(data, "avg_pm"), half)
    factors = np.array([*(p.factor for p in portables), np.nan])[codes]
    levels = np.array([*(p.is_level for p in portables), False])[codes]
    half = np.where(levels, np.where(value > 0, LEVEL_WIDTH, np.nan), half * factors)
    value = np.where(levels, np.where(value > 0, 10 * value - LEVEL_WIDTH, 0.0 * value), value * factors)
    half[np.isnan(value)] = np.nan
    for column, words in (("portable", [p.name for p in portables]), ("portable_unit", [p.unit for p in portables])):
        different = list(dict.fromkeys(words))
        places = np.array([*map(different.index, words), -1], dtype=np.int32)[codes]
        indices = pa.array(places, mask=codes < 0)
        data = data.append_column(column, pa.DictionaryArray.from_arrays(indices, pa.array(different, pa.string())))
    for column, filled in (("portable_value", value), ("portable_value_pm", half)):
        data = data.append_column(column, pa.array(filled, mask=np.isnan(filled)))
    return data
