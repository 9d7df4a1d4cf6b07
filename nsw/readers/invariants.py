"""What no report can hold, whichever reader read it: a row that breaks it is left out and reported.

No time is negative or longer than ten years, the mean lies between the least and the greatest, the total is no less
than the greatest, a share is at most 100 %. Where that fails, which of a row's numbers are right cannot be known.
Launches keep their other figures, which are in other tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from nsw.readers.model import MOST_SHOWN, Report
from nsw.readers.text.quantities import TIME_UNITS
from nsw.tables import TABLES
from nsw.tables.names import is_launch_call
from nsw.tables.parquet_tables import Row, TableData
from nsw.wording import first_names

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.metrics import MetricFault

    Rule = tuple[str | float, str | float]  # what is at most what: columns or numbers

LONGEST_NS: Final = 3653 * 24 * 3600 * 10**9  # ten years; starts may be later: some clocks count from 1970
_LONGEST: Final = {"ns": LONGEST_NS, "s": LONGEST_NS // 10**9}  # by unit
_GREATEST_SHARE: Final = 100.05
_COUNTS: Final = ("calls", "total_bytes")
_ASCENDING: Final = (
    ("min_ns", "avg_ns", "max_ns", "total_ns"),
    ("min_ns", "med_ns", "max_ns"),
    ("min_bytes", "avg_bytes", "max_bytes"),
    ("min", "avg", "max"),
)
_SLACK: Final = 1e-6  # floats, and means that were rounded twice
_SLACK_OF_METRICS: Final = 1e-3  # nvprof's mean of one throughput: 8.9867GB/s  8.9867GB/s  8.9863GB/s
_AT_ONCE: Final = 4096  # rows of a large table
_FIX: Final = "copy or print the report again, or profile again: a figure is damaged, missing or under another title"


def leave_out_broken_rows(report: Report) -> None:
    """Take out of all tables what breaks an invariant, and report it."""
    for table in [name for name in report.tables if name in TABLES]:
        data = report.tables[table]
        rows = enumerate(data) if isinstance(data, list) else _rows_breaking_invariant(table, data)
        broken = [(at, row, reason) for at, row in rows if (reason := broken_invariant(table, row)) is not None]
        if not broken:
            continue
        indices = [at for at, _, _ in broken]
        if table == "launches":
            report.tables[table] = _without_times(data, indices)
        else:
            report.tables[table] = _drop_rows(data, indices)
        _report_broken_rows(report, table, broken)


_VALUES: Final = ("value", "avg", "text")
_MANY_ABSENT: Final = 3  # metrics without a value; of fewer the chip lacks them
_ABSENT_SHARE: Final = 0.2
_NAMED: Final = 3  # metrics in a message


def warn_of_metrics_without_values(report: Report) -> None:
    """Say so where ncu has no metric of a name that was asked for, and where many or all metrics have no value."""
    metrics = report.tables.get("metrics")
    if metrics is None or not len(metrics) or any(not p.is_note for p in report.problems):  # they say why
        return
    absent = Counter(_metrics_without_value(metrics))
    all_absent = absent.total() == len(metrics)
    faults = _name_faults(absent) if report.tool == "ncu" else []
    if faults:
        wrong = sum(absent.pop(fault.name) for fault in faults)
        nothing = all_absent and not absent
        share = "none of its metrics has a value" if nothing else f"{wrong:,} of {len(metrics):,} metrics have no value"
        names = first_names([fault.name for fault in faults], _NAMED)
        (report.error if nothing else report.warn)(
            f"{share} (nan, n/a): ncu has no metric {names}",
            fix=_correct_names_hint(faults[:_NAMED], _metric_names(metrics)),
        )
    count = absent.total()
    if report.tool == "ncu" and not all_absent and count >= max(_MANY_ABSENT, len(metrics) * _ABSENT_SHARE):
        report.warn(
            f"{count:,} of {len(metrics):,} metrics have no value (nan, n/a): this ncu cannot count them on this GPU,"
            " as 2026.2 cannot count many on Blackwell",
            fix="measure them with ncu 2025.2, or with one newer than this",
        )
    if all_absent and absent:
        names = " ".join(list(absent)[:_NAMED])
        report.error(
            "none of its metrics has a value (n/a)",
            fix="the chip does not count them, or nothing was measured:"
            f" `nsw metrics show {names}` says which chips do",
        )


_REQUESTED_NAME: Final = re.compile(r"[a-z][a-z0-9_]*(?:__|\.)[a-z0-9_.]+\Z")  # no label of ncu's own pages


def _name_faults(names: Iterable[str]) -> list[MetricFault]:
    """The names, of those that a user gave ncu, that no ncu has."""
    from nsw.metrics import find_metric_faults

    return find_metric_faults([name for name in names if _REQUESTED_NAME.match(name)], None, "ncu")


def _correct_names_hint(faults: Sequence[MetricFault], names: Collection[str]) -> str | None:
    """The metrics that were probably meant, beside `names`: nvprof's names are those of portable metrics."""
    from nsw.metrics import find_metric

    portable = {fault.name: metric.name for fault in faults if (metric := find_metric(fault.name.partition(".")[0]))}
    hints = [f"`nsw metrics show {' '.join(portable.values())}` lists ncu's names"] if portable else []
    for fault in faults:
        if fault.name not in portable and not any(name in (fault.hint or "") for name in names):
            name = f"{fault.name}: " if len(faults) > 1 else ""
            hints.append(name + (fault.hint or "`nsw metrics ls` lists the metrics"))
    return "; ".join(hints) or None


_OF_TIMELINES: Final = frozenset({"nsys-sqlite", "nsys-parquet", "kineto"})  # which hold all that was recorded


def warn_of_launches_without_gpu_work(report: Report) -> None:
    """Warn where the host launched kernels and the timeline has no GPU work at all."""
    calls = report.tables.get("api_summary")
    if report.format not in _OF_TIMELINES or calls is None or len(report.tables.get("gpu_summary", ())):
        return
    rows = calls if isinstance(calls, list) else calls.to_pylist()
    if launches := sum(row["calls"] or 0 for row in rows if is_launch_call(row["name"] or "")):
        were = "1 kernel was" if launches == 1 else f"{launches:,} kernels were"
        report.warn(
            f"{were} launched, none recorded: the driver is newer than {report.tool} knows, another tool holds CUPTI,"
            " or this is WSL2",
            fix="profile under Linux itself, with one profiler at a time, and one as new as the CUDA driver",
        )


def _metric_names(metrics: TableData) -> set[str]:
    """The names of a table's metrics."""
    column = [row["metric"] for row in metrics] if isinstance(metrics, list) else metrics["metric"].to_pylist()
    return {name for name in column if name}


def _metrics_without_value(metrics: TableData) -> list[str]:
    """The name of the metric of each row without a value."""
    if isinstance(metrics, list):
        return [row["metric"] for row in metrics if all(row.get(column) is None for column in _VALUES)]
    import pyarrow.compute as pc

    absent = reduce(pc.and_, (pc.is_null(metrics[name]) for name in _VALUES if name in metrics.column_names))
    names: list[str] = metrics["metric"].filter(absent).to_pylist()
    return names


def broken_invariant(table: str, row: Row) -> str | None:
    """What in a row cannot be, or None."""
    for low, high in _invariants_of_table(table):
        below = row.get(low) if isinstance(low, str) else low
        above = row.get(high) if isinstance(high, str) else high
        if below is None or above is None or below <= above:
            continue
        slack = (_SLACK_OF_METRICS if table == "metrics" else _SLACK) * abs(above)
        if below - _rounding_half_width(row, low) <= above + _rounding_half_width(row, high) + slack:
            continue
        if isinstance(low, str):
            if isinstance(high, str):
                return f"{low} {below:g} is above {high} {above:g}"
            return f"time_pct is {below:g}" if low == "time_pct" else f"{low} {below:g} is more than ten years"
        if high != "value" or row.get("unit") in TIME_UNITS:  # of metrics others than times may be negative
            return f"{high} is {above:g}"
    return None


@cache
def _invariants_of_table(table: str) -> Sequence[Rule]:
    columns = [c for c in TABLES[table].columns if c.name != "start_ns" and not c.name.endswith("_pm")]
    names = [c.name for c in columns]
    ascending = [pair for chain in _ASCENDING for pair in combinations((c for c in chain if c in names), 2)]
    positive = [c.name for c in columns if c.unit == "ns" or c.name in _COUNTS]
    if table == "metrics":
        positive.append("value")
    return [
        *((0.0, name) for name in positive),
        *ascending,
        *((c.name, float(_LONGEST[c.unit])) for c in columns if c.unit in _LONGEST),
        *((name, _GREATEST_SHARE) for name in names if name == "time_pct"),
    ]


def _rounding_half_width(row: Row, side: str | float) -> float:
    return float(row.get(f"{side}_pm") or 0.0)


def _rows_breaking_invariant(table: str, data: pa.Table) -> Iterator[tuple[int, Row]]:
    """The rows of a large table, with their places, that break a rule but for what rounding explains."""
    import numpy as np

    suspect = np.zeros(data.num_rows, bool)
    for low, high in _invariants_of_table(table):
        if {side for side in (low, high) if isinstance(side, str)} <= set(data.column_names):
            suspect |= _rows_where_low_exceeds_high(data, low, high)
    indices = np.flatnonzero(suspect)
    for first in range(0, len(indices), _AT_ONCE):
        part = indices[first : first + _AT_ONCE]
        yield from zip(part.tolist(), data.take(part).to_pylist(), strict=True)


def _rows_where_low_exceeds_high(data: pa.Table, low: str | float, high: str | float) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    # floats: Arrow compares no integer of so many digits with them
    below, above = (
        pc.cast(data[side], pa.float64(), safe=False) if isinstance(side, str) else side for side in (low, high)
    )
    return pc.fill_null(pc.greater(below, above), False).to_numpy()


def _drop_rows(data: TableData, indices: Sequence[int]) -> TableData:
    """The rows that are not at these places."""
    if isinstance(data, list):
        left_out = frozenset(indices)
        return [row for at, row in enumerate(data) if at not in left_out]
    import numpy as np

    mask = np.ones(data.num_rows, bool)
    mask[indices] = False
    return data.filter(mask)


def _without_times(data: TableData, indices: Sequence[int]) -> TableData:
    rows: list[Row] = data if isinstance(data, list) else data.to_pylist()
    for at in indices:
        rows[at] |= {"duration_ns": None, "duration_ns_pm": None}
    return rows


def _report_broken_rows(report: Report, table: str, broken: list[tuple[int, Row, str]]) -> None:
    subject = "the time of a row" if table == "launches" else "a row"
    report.errors(
        [
            f"{subject} of {table} contradicts itself and is left out: {_row_name(row)[:80]}: {reason}"
            for _, row, reason in broken[: MOST_SHOWN + 1]  # of which the last stands for all others
        ],
        f"{len(broken)} rows of {table} in all contradict themselves",
        fix=_FIX,
    )


def _row_name(row: Row) -> str:
    return str(row.get("name") or row.get("metric") or row.get("kernel") or row.get("phase") or "")
