"""The table that a performance engineer reads first: a row a kernel, weighted over its launches.

Rates and shares are weighted by the time of the launches, amounts (bytes, FLOP, instructions) are means of a launch.
Time and share are the timeline's where there is one, since counters are measured with clocks and caches of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from nsw.analysis.groups import sum_times_and_calls
from nsw.analysis.roofline import Point, binding_point, memory_only_point, roofline_points
from nsw.analysis.source_lines import SourceLines, source_lines
from nsw.metrics import find_chip, find_metric
from nsw.metrics.printed_metrics import (
    LEVEL_WIDTH,
    compute_portable_metrics,
    ncu_name_of_label,
    ncu_names_not_portable_alone,
    parse_unit,
)
from nsw.tables import full_rows
from nsw.tables.names import comparable_name, short_name, without_spaces
from nsw.tables.parquet_tables import TableData, column_as_floats, distinct_values_and_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.metrics.catalogue import Chip
    from nsw.tables.parquet_tables import Numbers

    _Measured = tuple[dict[str, float], float, float | None]


ALL_KERNELS: Final = "the kernels' time"  # what shares of kernels are of, where nothing else is named
# What tells launches apart, and summaries over launches, which have no id.
_MOST_UNNAMED: Final = 40
_REPEATED, _OF_START_PCT = 3, 25.0  # launches of a kernel that repeats; the share of those that do not
_OF_AN_ITERATION: Final = 0.2  # of all kernels, which are launched once between others: a report of a single iteration
_OWNED: Final = ("run", "report", "block", "rank", "pid", "device", "launch_id", "kernel")


@dataclass(frozen=True, slots=True)
class LaunchValues:
    """What was measured of each launch.

    Attributes:
        kernels: The different kernel names.
        kernel: The place of each launch's kernel among them.
        calls: How many launches each stands for: 1, or those of a summary.
        values: By portable metric, a value a launch; NaN where there is none.
        unnamed_metrics: Likewise by printed name, of what has no portable one, in base units; none where
            they are more than a few dozen.
        chip: The chip, where the report tells it.
        device_name: The GPU's name, where the report tells it.
        levels: Portable metrics that are known as one of nvprof's ten levels only.
    """

    kernels: list[str]
    kernel: Numbers
    calls: Numbers
    values: dict[str, Numbers]
    unnamed_metrics: dict[str, Numbers]
    chip: Chip | None
    device_name: str | None
    levels: frozenset[str] = frozenset()


def metric_values_by_launch(metrics: TableData, launches: TableData | None = None) -> LaunchValues:
    """The columns of all launches that have metrics.

    Args:
        metrics: Rows of table metrics.
        launches: Rows of table launches, which may tell the chip.
    """
    import numpy as np

    kernels, kernel_of_row = distinct_values_and_codes(metrics, "kernel")
    owner, first = _launch_of_each_row(metrics)
    chip, device_name = _chip_and_device_name(metrics, launches)
    invocations = column_as_floats(metrics, "invocations")[first]
    words, codes = distinct_values_and_codes(metrics, "portable")  # which the readers gave
    values = column_as_floats(metrics, "portable_value")
    columns = _values_by_metric_name(words, codes, owner, values, len(first))
    columns |= _component_values(metrics, owner, len(first))
    with np.errstate(all="ignore"):
        for name, column in list(compute_portable_metrics(columns, chip)):
            clean = np.where(np.isfinite(column), column, np.nan)
            columns[name] = np.where(np.isnan(columns[name]), clean, columns[name]) if name in columns else clean
    return LaunchValues(
        [str(k) for k in kernels],
        kernel_of_row[first],
        np.where(np.isnan(invocations), 1.0, invocations),
        {name: column for name, column in columns.items() if "__" not in name},
        _other_metric_values(metrics, owner, len(first)),
        chip,
        device_name,
        _metrics_printed_as_level(metrics),
    )


def _metrics_printed_as_level(metrics: TableData) -> frozenset[str]:
    """The portable metrics that were printed as a level, which stands for a tenth of the peak."""
    import numpy as np

    names, codes = distinct_values_and_codes(metrics, "portable")
    rough = np.unique(codes[column_as_floats(metrics, "portable_value_pm") >= LEVEL_WIDTH])
    return frozenset(
        str(names[code]) for code in rough.tolist() if names[code] and names[code].endswith("_utilization")
    )


def _launch_of_each_row(metrics: TableData) -> tuple[Numbers, Numbers]:
    """The owner of each row, numbered from 0 in order of appearance, and the first row of each owner."""
    import numpy as np

    combined: Any = 0
    for column in _OWNED:
        words, codes = distinct_values_and_codes(metrics, column)
        if len(words) > 2 or (len(words) == 2 and len(codes) and codes.min() != codes.max()):
            _, combined = np.unique(combined * len(words) + codes, return_inverse=True)
    if isinstance(combined, int):
        combined = np.zeros(len(metrics), dtype=np.int64)
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[codes], np.sort(first)


def _component_values(metrics: TableData, owner: Numbers, owners: int) -> dict[str, Numbers]:
    """The names of ncu that expressions are over, in base units."""
    words, codes = distinct_values_and_codes(metrics, "metric")
    ncu_names = [ncu_name_of_label(word) if word else "" for word in words]
    component_words = [name if name in ncu_names_not_portable_alone() else None for name in ncu_names]
    return (
        _values_by_metric_name(component_words, codes, owner, _base_unit_values(metrics), owners)
        if any(component_words)
        else {}
    )


def _other_metric_values(metrics: TableData, owner: Numbers, owners: int) -> dict[str, Numbers]:
    """The metrics and events without a portable name that are numbers."""
    import numpy as np

    words, codes = distinct_values_and_codes(metrics, "metric")
    portable_words, named_codes = distinct_values_and_codes(metrics, "portable")
    value = _base_unit_values(metrics)
    unnamed = (named_codes == len(portable_words) - 1) & ~np.isnan(value)
    present_codes = np.unique(codes[unnamed])
    if not len(present_codes) or len(present_codes) > _MOST_UNNAMED:
        return {}
    return _values_by_metric_name(words, np.where(unnamed, codes, len(words) - 1), owner, value, owners)


def _base_unit_values(metrics: TableData) -> Numbers:
    """The value of a launch, or the mean of a summary, in base units."""
    import numpy as np

    printed, unit_codes = distinct_values_and_codes(metrics, "unit")
    factors = np.array([parse_unit(u or "").factor for u in printed])
    value, mean = column_as_floats(metrics, "value"), column_as_floats(metrics, "avg")
    value = np.where(np.isnan(value), mean, value)
    scaled: Numbers = value * factors[unit_codes]
    return scaled


def _values_by_metric_name(
    words: Sequence[str | None], codes: Numbers, owner: Numbers, values: Numbers, owners: int
) -> dict[str, Numbers]:
    """Values by word, a column of all owners each; of several of one owner the first counts."""
    import numpy as np

    columns: dict[str, Numbers] = {}
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(words) + 1))
    for index, word in enumerate(words):
        rows = order[ends[index] : ends[index + 1]]
        if word is None or not len(rows):
            continue
        column = columns.setdefault(word, np.full(owners, np.nan))
        column[owner[rows[::-1]]] = values[rows[::-1]]  # backwards, so that the first is what stays
    return columns


def _chip_and_device_name(metrics: TableData, launches: TableData | None) -> tuple[Chip | None, str | None]:
    """The chip, by the device's name or its compute capability; None where they differ or are not told."""
    names = [name for name in distinct_values_and_codes(metrics, "device_name")[0] if name]
    if launches is not None and len(launches):
        names += [name for name in distinct_values_and_codes(launches, "device_name")[0] if name]
        capabilities = {c for c in distinct_values_and_codes(launches, "compute_capability")[0] if c}
    else:
        capabilities = set()
    different = set(names)
    name = different.pop() if len(different) == 1 else None
    chip = find_chip(name) or (find_chip(capabilities.pop()) if len(capabilities) == 1 else None)
    return chip, name


# Units of amounts; all others are of rates, shares and settings.
_AMOUNTS: Final = frozenset(
    {"ns", "byte", "FLOP", "inst", "cycle", "sector", "transaction", "request", "thread", "block"}
)
_PASSES: Final = frozenset({"l1_wavefronts", "shared_wavefronts", "shared_bank_conflicts"})  # amounts without a unit
_LIMITS: Final = {
    "occupancy_limit_registers": "registers",
    "occupancy_limit_shared_memory": "shared memory",
    "occupancy_limit_warps": "warps",
    "occupancy_limit_blocks": "blocks",
    "occupancy_limit_barriers": "barriers",
}
_FULL_PCT: Final = 99.9  # theoretical occupancy that nothing limits
_FEW_WAVES: Final = (
    0.9  # of the blocks that fit the GPU at once: with fewer the grid is what leaves warps' places empty
)
# nvprof's stalls that are several of ncu's together: taken only where ncu's are not there
_TOGETHER: Final = frozenset(
    {"stall_exec_dependency", "stall_memory_throttle", "stall_pipe_busy", "stall_sync", "stall_other"}
)
_NO_TENSOR_PCT: Final = 5.0  # of the pipe, which copies and norms keep busy too
# whose shares are those of the whole, where ncu's own sums of many parts, which take passes, were not asked for
_MEMORY_PARTS: Final = ("dram_utilization", "l2_throughput", "l1_throughput")
_SM_PARTS: Final = (
    "issue_slot_utilization", "single_precision_fu_utilization", "alu_pipe_utilization",
    "double_precision_fu_utilization", "special_fu_utilization", "ldst_fu_utilization",
)  # fmt: skip
_OF_THE_LAUNCH: Final = frozenset({"dram_utilization", "l2_throughput"})  # the others are of an SM's active cycles
_NO_STALL: Final = "stall_not_selected"
_SMALL_GRID: Final = "too small to fill the available resources"  # in what a rule of ncu says
_NO_REMEDY: Final = "ompression"  # of L2: a program would have to allocate memory by the driver's own calls
_RANGE: Final = "range"  # ncu's name for what it measured as a whole under --replay-mode range; it has no grid
_STALLS_SHOWN: Final = 2
_UNEQUAL: Final = 3.0  # times the longest of the other launches, that long ones take at least
_TENSOR_OPERATIONS: Final = tuple(f"tensor_ops_{kind}" for kind in ("fp16", "bf16", "tf32", "fp8", "fp64"))
# what ncu gives of a range is a mean over the launches in it, which is no launch's
_SECTIONS_OF_ONE_LAUNCH: Final = frozenset({"Launch Statistics", "LaunchStats", "Occupancy"})
_OF_ONE_LAUNCH: Final = ("launch__", "occupancy_limit_", "theoretical_", "waves_per_sm")


@dataclass(frozen=True, slots=True)
class Stall:
    """What warps wait for, and the share of the active warps that do."""

    reason: str
    pct: float


@dataclass(frozen=True, slots=True)
class Advice:
    """A rule of Nsight Compute: `speedup_pct` is the estimate of the kernel's time that it saves."""

    rule: str
    message: str
    speedup_pct: float
    speedup_type: str | None


class LongLaunches(NamedTuple):
    """The launches of a kernel that take many times as long as its others: how many of each, and their mean (ns)."""

    launches: float
    mean_ns: float
    others: float
    others_mean_ns: float


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel. What was not measured is None.

    Attributes:
        name: As printed.
        short_name: For people.
        launches: How many, in the timeline if it has the kernel, else measured.
        measured: How many launches have counters.
        time_ns: Of all launches, by `time_from`.
        share_pct: Of the time of all kernels; None for a range, whose time holds pauses and kernels of other rows.
        time_from: timeline, counters, or None where no time is known.
        device_name: The GPU, where the report tells it.
        shapes: Different grids and blocks of the measured launches, each as (grid, block).
        metrics: Every portable metric that was measured or can be computed, and what has no portable name where that is
            little: a mean over the launches.
        source: What ncu's source page says of it, where there is one.
        program_bytes: The most that its program held on a GPU, by samples beside a run; the driver's own part included.
        long_launches: Those of very unequal launches that take most of its time; None: their mean is telling.
        is_first: Whether its report's counters begin with it.
        is_between: Whether in its report kernels that repeat begin both before and after it.
        levels: The metrics that nvprof printed as a level of 0 to 10: their values are the middles of tenths.
    """

    name: str
    short_name: str
    launches: float
    measured: float
    time_ns: float | None
    share_pct: float | None
    time_from: Literal["timeline", "counters"] | None
    sm_pct: float | None
    memory_pct: float | None
    dram_bytes_per_s: float | None
    dram_pct: float | None
    achieved_occupancy_pct: float | None
    theoretical_occupancy_pct: float | None
    occupancy_limiter: str | None
    registers: float | None
    shared_memory_bytes: float | None
    shapes: tuple[tuple[str, str], ...]
    tensor_pct: float | None
    stalls: tuple[Stall, ...]
    roofline: Point | None
    advice: Advice | None
    device_name: str | None = None
    points: tuple[Point, ...] = field(default=(), repr=False)
    metrics: Mapping[str, float] = field(default_factory=dict, repr=False)
    source: SourceLines | None = field(default=None, repr=False)
    program_bytes: float | None = None
    levels: tuple[str, ...] = ()
    long_launches: LongLaunches | None = None
    is_first: bool = False
    is_between: bool = False

    @property
    def launch_ns(self) -> float | None:
        """The time of a launch: the timeline's mean, else that of the launches whose time was measured."""
        if self.time_from == "timeline" and self.time_ns and self.launches:
            return self.time_ns / self.launches
        return self.metrics.get("duration")


def kernel_table(
    tables: Mapping[str, TableData], timeline: Mapping[str, tuple[float, float]] | None = None
) -> tuple[KernelRow, ...]:
    """The kernels that counters were measured of, most expensive first.

    Args:
        tables: metrics, and where there are some launches, rules and source_metrics.
        timeline: Of each kernel name its total time (ns) and launches, as a timeline has them.
    """
    metrics = tables.get("metrics")
    if metrics is None or not len(metrics):
        return ()
    measured = metric_values_by_launch(metrics, tables.get("launches"))
    sources = source_lines(tables.get("source_metrics"))
    shapes = _launch_shapes_by_kernel(tables.get("launches"))
    advice = _advice_by_kernel(tables.get("rules"), measured, no_ranges=_RANGE in shapes)
    times = sum_times_and_calls((comparable_name(name), *both) for name, both in (timeline or {}).items())
    kernel_rows = [
        _kernel_row(name, mean, measured, shapes.get(name, ()), advice.get(name), times.get(comparable_name(name)))
        for name, mean in _mean_metrics_by_kernel(measured).items()
    ]
    known_times = [row.time_ns for row in kernel_rows if row.time_ns is not None and not _is_ncu_range(row)]
    total_ns = sum(total for total, _ in timeline.values()) if timeline else sum(known_times)
    repeated = [at for at, row in enumerate(kernel_rows) if row.launches > 1] or [len(kernel_rows)]
    kernel_rows = [
        replace(
            row,
            share_pct=100 * row.time_ns / total_ns
            if row.time_ns is not None and total_ns and not _is_ncu_range(row)
            else None,
            source=sources.get(without_spaces(row.name)),
            is_first=at == 0,
            is_between=repeated[0] < at < repeated[-1],
        )
        for at, row in enumerate(kernel_rows)
    ]
    start = set() if timeline else kernels_of_start(kernel_rows)  # a few launches were measured, and no run
    return tuple(sorted(kernel_rows, key=lambda row: (row.name in start, -(row.time_ns or 0.0), -row.launches)))


def kernels_of_start(kernels: Sequence[KernelRow]) -> set[str]:
    """Names of kernels launched once beside others that repeat: set-up, which a run has once.

    Those that take much of the time are so only where they are launched before all others. A report of a single
    iteration has no set-up that can be told from it: many of its kernels are launched once, between others.
    """
    once = [kernel for kernel in kernels if kernel.launches == 1]
    if not any(kernel.launches >= _REPEATED for kernel in kernels):
        return set()
    if sum(kernel.is_between for kernel in once) >= max(_REPEATED, _OF_AN_ITERATION * len(kernels)):
        return set()
    is_little = sum(kernel.share_pct or 0.0 for kernel in once) < _OF_START_PCT
    return {kernel.name for kernel in once if is_little or kernel.is_first}


class ShareBase(NamedTuple):
    """What the shares of kernels are of: its name, how much of the time of all kernels that is (%), what it lacks."""

    name: str
    pct: float
    setup: KernelRow | None

    def share(self, share_pct: float | None) -> float | None:
        """A share of the time of all kernels as one of this time, %."""
        return None if share_pct is None else 100 * share_pct / self.pct


def kernel_share_base(kernels: Sequence[KernelRow]) -> ShareBase:
    """The time that shares of kernels tell most of: without set-up, where that is much of a few measured launches."""
    start = kernels_of_start(kernels)
    setup = next((k for k in kernels if k.name in start and _OF_START_PCT <= (k.share_pct or 0.0) < 100), None)
    if setup is None or setup.share_pct is None or any(kernel.time_from != "counters" for kernel in kernels):
        return ShareBase(ALL_KERNELS, 100.0, None)
    return ShareBase(f"{ALL_KERNELS} without {setup.short_name}", 100 - setup.share_pct, setup)


def add_timeline_times(
    kernels: Iterable[KernelRow], timeline: Mapping[str, tuple[float, float]]
) -> tuple[KernelRow, ...]:
    """Kernels with the times and launches of another report, a timeline, most expensive first.

    Args:
        kernels: Those that counters were measured of.
        timeline: Of each kernel name its total time (ns) and launches; each of `kernels` is among them.
    """
    times = sum_times_and_calls((comparable_name(name), *both) for name, both in timeline.items())
    total_ns = sum(total for total, _ in times.values()) or 1.0
    timed = [(kernel, *times[comparable_name(kernel.name)]) for kernel in kernels]
    rows = [
        replace(kernel, launches=calls, time_ns=ns, time_from="timeline", share_pct=100 * ns / total_ns)
        for kernel, ns, calls in timed
    ]
    return tuple(sorted(rows, key=lambda row: -(row.time_ns or 0.0)))


def _is_ncu_range(row: KernelRow) -> bool:
    return row.name == _RANGE and not row.shapes


def kernel_table_of_report(tables: Mapping[str, TableData]) -> tuple[KernelRow, ...]:
    """The kernels of one report's tables, with the times of its own table gpu_summary where it has one."""
    return kernel_table(tables, kernel_times_by_name(full_rows("gpu_summary", tables.get("gpu_summary", []))))


def kernel_times_by_name(rows: Iterable[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """Of each kernel name in table gpu_summary its total time (ns) and launches."""
    return sum_times_and_calls(
        (row["name"], row["total_ns"], row.get("calls"))
        for row in rows
        if row.get("kind") == "kernel" and row.get("total_ns") is not None
    )


def _mean_metrics_by_kernel(measured: LaunchValues) -> dict[str, _Measured]:
    """Of each kernel the mean metrics, how many launches were measured, and their time (ns)."""
    import numpy as np

    many = len(measured.kernels)
    calls = np.bincount(measured.kernel, measured.calls, many)
    duration = measured.values.get("duration", np.full(len(measured.kernel), np.nan))
    timed = np.where(np.isnan(duration), 0.0, duration * measured.calls)
    times = np.bincount(measured.kernel, timed, many)
    # a launch without a time weighs as the others of its kernel do, and all alike where none has one
    with_time = np.bincount(measured.kernel, np.where(np.isnan(duration), 0.0, measured.calls), many)
    usual = np.divide(times, with_time, out=np.ones(many), where=with_time > 0)
    weight = measured.calls * np.where(np.isnan(duration), usual[measured.kernel], duration)
    columns = {
        name: _weighted_mean(
            column,
            measured.kernel,
            measured.calls if _is_amount(name) else weight,
            many,
        )
        for name, column in measured.values.items()
    } | {
        name: _weighted_mean(column, measured.kernel, measured.calls, many)
        for name, column in measured.unnamed_metrics.items()
    }
    return {
        name: (
            {metric: float(column[at]) for metric, column in columns.items() if not np.isnan(column[at])},
            float(calls[at]),
            float(times[at]) if with_time[at] else None,
        )
        for at, name in enumerate(measured.kernels) if calls[at]
    }  # fmt: skip


def _is_amount(name: str) -> bool:
    metric = find_metric(name)
    return name in _PASSES or (metric is not None and metric.unit in _AMOUNTS)


def _weighted_mean(column: Numbers, kernel: Numbers, weight: Numbers, many: int) -> Numbers:
    import numpy as np

    has_value = ~np.isnan(column)
    total = np.bincount(kernel[has_value], column[has_value] * weight[has_value], many)
    by = np.bincount(kernel[has_value], weight[has_value], many)
    mean: Numbers = np.divide(total, by, out=np.full(many, np.nan), where=by > 0)
    return mean


def _kernel_row(
    name: str,
    measured: _Measured,
    values: LaunchValues,
    shapes: tuple[tuple[str, str], ...],
    advice: Advice | None,
    traced: tuple[float, float] | None,
) -> KernelRow:
    metrics, measured_launches, time = measured
    launches, device_name = measured_launches, values.device_name
    source = "counters" if time is not None else None
    if name == _RANGE and not shapes:
        # without what describes how a kernel was launched, and is no count of what ran
        metrics = {
            metric: value
            for metric, value in metrics.items()
            if not metric.startswith(_OF_ONE_LAUNCH) and getattr(find_metric(metric), "family", None) != "launch"
        }
    if traced is not None:
        time, launches = traced
        source = "timeline"
    if "duration" not in metrics and time is not None and launches:
        metrics = metrics | {"duration": time / launches}
    kernel_points = roofline_points(metrics, device_name)
    dram_bytes_per_s = metrics.get("dram_throughput")
    if dram_bytes_per_s is None and metrics.get("duration") and "dram_bytes" in metrics:
        dram_bytes_per_s = 1e9 * metrics["dram_bytes"] / metrics["duration"]
    shared = [metrics[n] for n in ("static_shared_memory", "dynamic_shared_memory") if n in metrics]
    return KernelRow(
        name=name,
        short_name=short_name(name),
        launches=launches,
        measured=measured_launches,
        time_ns=time,
        share_pct=None,
        time_from=source,  # type: ignore[arg-type]  # one of its words
        sm_pct=metrics.get("sm_throughput", _busiest_part_share(metrics, _SM_PARTS)),
        memory_pct=metrics.get("memory_throughput", _busiest_part_share(metrics, _MEMORY_PARTS)),
        dram_bytes_per_s=dram_bytes_per_s,
        dram_pct=None if "dram_utilization" in values.levels else metrics.get("dram_utilization"),
        achieved_occupancy_pct=metrics.get("achieved_occupancy"),
        theoretical_occupancy_pct=metrics.get("theoretical_occupancy"),
        occupancy_limiter=_occupancy_limiter(metrics),
        registers=metrics.get("registers_per_thread"),
        shared_memory_bytes=sum(shared) if shared else None,
        shapes=shapes,
        tensor_pct=_tensor_core_busy_pct(metrics),
        stalls=_largest_stalls(metrics),
        roofline=binding_point(kernel_points) or memory_only_point(metrics, device_name),
        advice=advice,
        device_name=device_name,
        points=kernel_points,
        metrics=metrics,
        levels=tuple(sorted(values.levels & metrics.keys())),
        long_launches=_long_launches(name, values) if source == "counters" else None,
    )


def _long_launches(name: str, measured: LaunchValues) -> LongLaunches | None:
    import numpy as np

    of_kernel = measured.kernel == measured.kernels.index(name)
    times, calls = measured.values["duration"][of_kernel], measured.calls[of_kernel]
    if np.isnan(times).any():
        return None
    is_long = times >= times.max() / 2
    if is_long.all() or _UNEQUAL * times[~is_long].max() > times[is_long].min():
        return None
    (count, mean), (short_count, short_mean) = (
        (float(calls[part].sum()), float(np.average(times[part], weights=calls[part]))) for part in (is_long, ~is_long)
    )
    return LongLaunches(count, mean, short_count, short_mean)


def sm_active_share(metrics: Mapping[str, float]) -> float | None:
    """The share of a launch in which the mean SM has a warp; None: not measured."""
    active, whole = metrics.get("sm_active_cycles"), metrics.get("elapsed_cycles", metrics.get("sm_active_cycles_max"))
    if active and whole:
        return min(1.0, active / whole)
    share = metrics.get("sm_efficiency")
    return None if share is None else share / 100


def _busiest_part_share(metrics: Mapping[str, float], parts: tuple[str, ...]) -> float | None:
    """How busy the busiest of these parts is over the launch; None where not all were measured."""
    shares, active = [metrics.get(name) for name in parts], sm_active_share(metrics) or 1.0
    if None in shares:
        return None
    return max(
        (share or 0.0) * (1.0 if name in _OF_THE_LAUNCH else active) for name, share in zip(parts, shares, strict=True)
    )


def _tensor_core_busy_pct(metrics: Mapping[str, float]) -> float | None:
    """How busy the tensor cores were; None where FP16 instructions that are not theirs may have kept their pipe busy.

    On gh100 a kernel of HFMA2 and HADD2 alone has 49.5 % in the pipe's counter, and no tensor operation.
    """
    operations = [metrics.get(name) for name in _TENSOR_OPERATIONS]
    if metrics.get("flop_count_hp") != 0.0 and all(count == 0 for count in operations):
        return 0.0 if metrics.get("tensor_ops_int8") == 0 else None
    counted = [count for count in operations if count is not None]
    if counted and not any(counted) and metrics.get("tensor_active", 0.0) < _NO_TENSOR_PCT:
        return 0.0  # of FP8, which ncu's full set does not count, the pipe would be busier
    return metrics.get("tensor_active", metrics.get("tensor_precision_fu_utilization"))


def _occupancy_limiter(metrics: Mapping[str, float]) -> str | None:
    """What keeps more warps from an SM; None where nothing does, or it is not known."""
    limits = {word: metrics[name] for name, word in _LIMITS.items() if name in metrics}
    limiters = (
        ["grid"] if metrics.get("waves_per_sm", 1.0) < _FEW_WAVES else []
    )  # one block of many SMs is printed as 0.00
    if limits and metrics.get("theoretical_occupancy", 0.0) < _FULL_PCT:
        min_limit = min(limits.values())
        limiters += [word for word, blocks in limits.items() if blocks == min_limit]
    return ", ".join(limiters) or None


def _largest_stalls(metrics: Mapping[str, float]) -> tuple[Stall, ...]:
    names = [n for n in metrics if n.startswith("stall_") and n not in _TOGETHER and n != _NO_STALL]
    if not {"stall_wait", "stall_short_scoreboard"} & set(names):
        names += [n for n in metrics if n in _TOGETHER]
    largest_stalls = sorted(((metrics[n], n) for n in names if metrics[n] > 0), reverse=True)[:_STALLS_SHOWN]
    return tuple(Stall(name.removeprefix("stall_").replace("_", " "), pct) for pct, name in largest_stalls)


def _launch_shapes_by_kernel(launches: TableData | None) -> dict[str, tuple[tuple[str, str], ...]]:
    """The different grids and blocks of each kernel, most frequent first."""
    import numpy as np

    if launches is None or not len(launches):
        return {}
    kernels, kernel = distinct_values_and_codes(launches, "kernel")
    grids, grid = distinct_values_and_codes(launches, "grid")
    blocks, block = distinct_values_and_codes(launches, "block_size")
    combined, often = np.unique((kernel * len(grids) + grid) * len(blocks) + block, return_counts=True)
    shapes_by_kernel: dict[str, tuple[tuple[str, str], ...]] = {}
    for at in np.argsort(-often, kind="stable"):
        rest, b = divmod(int(combined[at]), len(blocks))
        k, g = divmod(rest, len(grids))
        if grids[g] is not None and blocks[b] is not None:
            shapes_by_kernel[kernels[k]] = (*shapes_by_kernel.get(kernels[k], ()), (grids[g], blocks[b]))
    return shapes_by_kernel


def _advice_by_kernel(rules: TableData | None, measured: LaunchValues, *, no_ranges: bool) -> dict[str, Advice]:
    """Of each kernel the rule with the greatest estimated speed-up, global ones first; a mean over its launches.

    `no_ranges`: what is called `range` is a kernel. Of a range there is no advice on how one kernel was launched.
    """
    import numpy as np

    if rules is None or not len(rules):
        return {}
    often = dict(
        zip(measured.kernels, np.bincount(measured.kernel, measured.calls, len(measured.kernels)), strict=True)
    )
    kernels, kernel = distinct_values_and_codes(rules, "kernel")
    names, rule = distinct_values_and_codes(rules, "rule")
    sections, section = distinct_values_and_codes(rules, "section")
    kinds, kind = distinct_values_and_codes(rules, "speedup_type")
    gain = column_as_floats(rules, "speedup_pct")
    texts, text = distinct_values_and_codes(rules, "message")
    refused = np.array([_NO_REMEDY in (message or "") for message in texts])
    is_grid_small = np.array([_SMALL_GRID in (message or "") for message in texts])
    small_grids = {kernels[code] for code in kernel[is_grid_small[text]]}  # which lack blocks, not room for them
    with_gain = np.flatnonzero((gain > 0) & ~refused[text])
    keys, first, key_index = np.unique(
        ((kernel * len(names) + rule) * len(sections) + section)[with_gain] * len(kinds) + kind[with_gain],
        return_index=True, return_inverse=True,
    )  # fmt: skip
    best: dict[str, tuple[tuple[bool, float], Advice]] = {}
    totals, fired = np.bincount(key_index, gain[with_gain], len(keys)), np.bincount(key_index, minlength=len(keys))
    for total, times, rule_row in zip(totals, fired, with_gain[first], strict=True):
        name = kernels[kernel[rule_row]]
        if name == _RANGE and not no_ranges and sections[section[rule_row]] in _SECTIONS_OF_ONE_LAUNCH:
            continue
        pct = float(total / max(times, often.get(name, 1.0)))  # 0 of launches where it did not fire
        if name in small_grids and "Occupancy" in (names[rule[rule_row]] or ""):
            continue
        word = kinds[kind[rule_row]]
        rank = (word == "global", pct)
        if name not in best or rank > best[name][0]:
            rule_name = names[rule[rule_row]] or sections[section[rule_row]] or "rule"
            best[name] = (rank, Advice(rule_name, texts[text[rule_row]] or "", pct, word))
    return {name: advice for name, (_, advice) in best.items()}
