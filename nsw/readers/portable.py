"""The portable name, unit and value beside each printed metric, whichever reader read it.

Small tables are rows, large ones columns of codes: each different pair of name and unit is looked up once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from nsw.metrics.printed import LEVEL_WIDTH, chosen, of_level

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from nsw.metrics.printed import Portable
    from nsw.metrics.units import Base
    from nsw.readers.model import Report
    from nsw.tables.data import Row

    Numbers: TypeAlias = "np.ndarray[Any, Any]"

_NVPROF_K: Final = 1024


def add_portable_names(report: Report) -> None:
    """Fill `portable` and what belongs to it in table `metrics`, in place."""
    data = report.tables.get("metrics")
    if data is None or not len(data):
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

    data = data.unify_dictionaries()
    names, name_codes = _coded(data, "metric")
    units, unit_codes = _coded(data, "unit")
    pairs = name_codes * len(units) + unit_codes
    there = np.flatnonzero(np.bincount(pairs, minlength=len(names) * len(units)))
    by_pair = {int(p): (names[p // len(units)] or "", units[p % len(units)]) for p in there}
    known = chosen(set(by_pair.values()), base)
    portables = list(dict.fromkeys(known.values()))
    code_of = {pair: portables.index(known[key]) for pair, key in by_pair.items() if key in known}
    table = np.full(len(names) * len(units), -1, dtype=np.int32)
    table[list(code_of)] = list(code_of.values())
    codes = table[pairs]
    value, half = _numbers(data, "value"), _numbers(data, "value_pm")
    if "avg" in data.column_names:
        absent = np.isnan(value)
        value = np.where(absent, _numbers(data, "avg"), value)
        half = np.where(absent, _numbers(data, "avg_pm"), half)
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
    for column, numbers in (("portable_value", value), ("portable_value_pm", half)):
        data = data.append_column(column, pa.array(numbers, mask=np.isnan(numbers)))
    return data


def _coded(data: pa.Table, column: str) -> tuple[list[str | None], Numbers]:
    """The different texts of a column, None as the last of them, and the place of each row's among them."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return [None], np.zeros(data.num_rows, dtype=np.int64)
    found = data[column]
    if not pa.types.is_dictionary(found.type):
        found = pc.dictionary_encode(found)
    words: list[str | None] = found.chunk(0).dictionary.to_pylist() if found.num_chunks else []
    indices = [pc.fill_null(chunk.indices, len(words)).to_numpy(zero_copy_only=False) for chunk in found.chunks]
    return [*words, None], np.concatenate(indices).astype(np.int64)


def _numbers(data: pa.Table, column: str) -> Numbers:
    """A column as floats, NaN where it is null or missing."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if column not in data.column_names:
        return np.full(data.num_rows, np.nan)
    return np.asarray(pc.fill_null(pc.cast(data[column], pa.float64()), np.nan).to_numpy())
