"""The table that a performance engineer reads first: the most expensive kernels, with what their counters say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.blocks import Block, Ceiling, Cell, Column, Evidence, Note, Scatter, Shown, Table, Unit
from nsw.analysis.kernels import kernel_share_base
from nsw.analysis.roofline import Point, data_sheet_mismatch_sentences
from nsw.analysis.rules.binding import PER_ACTIVE_CYCLE, busy_pct_by_part
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import is_library_kernel_name, largest_remarks, metrics_behind, reportable_remarks
from nsw.metrics import find_metric
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import percent
from nsw.tables.names import number_repeated_names
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.rules.binding import Remark
    from nsw.analysis.summary import Summary


_MAX_KERNELS: Final = 20  # kernels
_MAX_KERNELS_PER_CASE: Final = 5  # of a case, in a plot of all cases
_MAX_OTHER_METRICS: Final = 8  # metrics beside the usual ones: what was asked for is shown, a set of hundreds is not
_ADVICE: Final = 32  # characters
_GB: Final = 1e9
_COUNTED: Final = frozenset({"inst", "request", "sector", "transaction"})  # units of what did not happen where it is 0

# of hundreds of metrics those that the first screen speaks of and no usual column tells
_OF_MOVED: Final = ("gld_efficiency", "gst_efficiency")
_SPOKEN_OF: Final = (*_OF_MOVED, "warp_execution_efficiency")
# what the usual columns tell already
_USUAL_METRICS: Final = frozenset(
    {
        "duration", "sm_throughput", "memory_throughput", "dram_throughput", "dram_utilization", "achieved_occupancy",
        "theoretical_occupancy", "registers_per_thread", "static_shared_memory", "dynamic_shared_memory",
        "tensor_active", "dram_read_throughput", "dram_write_throughput", "blocks", "threads_per_block", "threads",
    }
)  # fmt: skip


def launch_shape_text(kernel: KernelRow) -> str | None:
    """Grid and block of a kernel's launches, and how many more shapes there are."""
    if not kernel.shapes:
        return None
    grid, block = (re.sub(r"[() ]", "", text) for text in kernel.shapes[0])
    shape_count = len(kernel.shapes) - 1
    return f"{grid} x {block}" + (f" + {shape_count} more" if shape_count else "")


def roof_label(point: Point) -> str:
    """The roof above a point: a precision, or a memory level with the precision, if any."""
    if point.side == "compute":
        return point.precision
    return f"{point.level} ({point.precision})" if point.precision else point.level


def _occupancy_cell(kernel: KernelRow) -> Cell:
    achieved, limit = kernel.achieved_occupancy_pct, kernel.theoretical_occupancy_pct
    return None if achieved is None and limit is None else (achieved, limit)


def _advice_text(kernel: KernelRow) -> str | None:
    if kernel.advice is None:
        return None
    local = "" if kernel.advice.speedup_type == "global" else " (local)"
    rule = kernel.advice.rule
    return f"{rule if len(rule) <= _ADVICE else rule[: _ADVICE - 1] + '…'} {kernel.advice.speedup_pct:.0f} %{local}"


_COLUMNS: Final[Mapping[Column, Callable[[KernelRow], Cell]]] = {
    Column("time_ns", "time", "ns"): lambda k: k.time_ns,
    Column("share_pct", "share", "%"): lambda k: k.share_pct,
    Column("launches", "launches", "count"): lambda k: k.launches,
    Column("measured", "measured", "count"): lambda k: k.measured if k.measured != k.launches else None,
    Column("sm_pct", "SM of peak", "%"): lambda k: k.sm_pct,
    Column("memory_pct", "memory of peak", "%"): lambda k: k.memory_pct,
    Column("dram_gb_per_s", "DRAM (GB/s)", "GB/s"): (
        lambda k: None if k.dram_bytes_per_s is None else k.dram_bytes_per_s / _GB
    ),
    Column("dram_pct", "DRAM of peak", "%"): lambda k: k.dram_pct,
    Column("occupancy_pct", "occupancy", "achieved and limit %"): _occupancy_cell,
    Column("occupancy_limiter", "limited by"): lambda k: k.occupancy_limiter,
    Column("tensor_pct", "tensor", "%"): lambda k: k.tensor_pct,
    Column("roofline", "roofline"): lambda k: (
        None if k.roofline is None else f"{percent(k.roofline.share_pct)} of {roof_label(k.roofline)}"
    ),
    Column("registers", "registers", "count"): lambda k: k.registers,
    Column("shared_memory_bytes", "shared", "byte"): lambda k: k.shared_memory_bytes,
    Column("shape", "grid x block"): launch_shape_text,
    Column("stalls", "warps wait for"): lambda k: ", ".join(f"{s.reason} {s.pct:.0f} %" for s in k.stalls) or None,
    Column("advice", "best advice"): _advice_text,
}
_UNITS: Final[Mapping[str, Unit]] = {"%": "%", "ns": "ns", "byte": "byte", "byte/s": "byte/s"}


def kernel_table_blocks(
    kernels: Sequence[KernelRow],
    *,
    case: str | None = None,
    visibility: Shown = "always",
    limit: int | None = _MAX_KERNELS,
) -> list[Block]:
    """The most expensive kernels, what to beware of, and how much the others take.

    Args:
        kernels: The most expensive first.
        case: The case that they belong to; None: to a report.
        visibility: In which form of the answer.
        limit: How many kernels; None: all.
    """
    if not kernels:
        return []
    evidence = (Evidence("kernels", () if case is None else (case,)),)
    top = kernels[:limit]
    rest = kernels[len(top) :]
    # metrics that no usual column tells: all where few enough were asked for, else those that findings speak of
    others = list(dict.fromkeys(n for k in top for n in k.metrics if n not in _USUAL_METRICS))
    if len(others) > _MAX_OTHER_METRICS:
        others = [name for name in _SPOKEN_OF if name in others]
    cells = {column: [cell(k) for k in top] for column, cell in _COLUMNS.items()}
    cells |= {metric_column(name): [_metric_cell(k, name) for k in top] for name in others}
    cells = {column: values for column, values in cells.items() if any(value is not None for value in values)}
    names = number_repeated_names([k.short_name for k in kernels])[: len(top)]
    blocks: list[Block] = [
        Table(
            "kernels",
            "kernels",
            (Column("kernel", "kernel", "name"), *cells),
            tuple(zip(names, *cells.values(), strict=True)),
            wide="kernel",
            goes_on=True,
            case=case,
            shown=visibility,
            evidence=evidence,
        )
    ]
    for mismatch in dict.fromkeys(
        mismatch for k in top for mismatch in data_sheet_mismatch_sentences(k.metrics, k.device_name)
    ):
        text = f"warning: {mismatch}: its rooflines may be wrong"
        blocks.append(Note("kernels", text, tone="warning", case=case, shown=visibility))
    if rest:
        shares = [k.share_pct for k in rest if k.share_pct is not None]
        share = f", {percent(sum(shares))} of the time" if shares else ""
        text = f"({plural(len(rest), 'kernel')} more{share}: --format json has all)"
        blocks.append(Note("kernels", text, tone="aside", case=case, shown=visibility))
    return blocks


def _metric_cell(kernel: KernelRow, name: str) -> float | None:
    """A metric of a kernel; of a share of what it moves 0 % is no access."""
    value = kernel.metrics.get(name)
    return value or None if name in _OF_MOVED else value


def counters_behind_findings(case: str | None, kernels: Sequence[KernelRow]) -> list[Block]:
    """The figures that findings about kernels follow from, a row each; none where there is no such finding.

    Args:
        case: The case that they belong to; None: to a report.
        kernels: Its kernels.
    """
    base = kernel_share_base(kernels).name
    rows = [
        (kernel.short_name, remark.cause, name, text)
        for kernel, share, remark in largest_remarks(kernels)
        for name, text in (
            *_hardware_figures(kernel),
            *((f"{part}, busy of the launch", percent(busy)) for part, busy in busy_pct_by_part(kernel).items()),
            *_counters_looked_at(kernel, remark),
            *_parts_of_gain(remark, share, base),
        )
    ]
    firsts = [(kernel, remark.cause) for kernel, _, remark in largest_remarks(kernels)]
    rows += [  # a gain counts the others of its cause too
        (kernel.short_name, remark.cause, name, text)
        for first, cause in firsts
        if causes()[cause].group != "healthy"
        for kernel, share, remark in reportable_remarks(kernels)
        if remark.cause == cause and kernel is not first
        and is_library_kernel_name(kernel.name) is is_library_kernel_name(first.name)
        for name, text in _parts_of_gain(remark, share, base)
    ]  # fmt: skip
    if not rows:
        return []
    columns = (Column("kernel", "kernel", "name"), Column("cause", "cause"), Column("counter", "counter"),
               Column("value", "value", "number"))  # fmt: skip
    return [
        Table(
            "counters",
            "what findings follow from" + (f": {case}" if case else ""),
            columns,
            tuple(rows),
            wide="counter",
            repeats=2,
            case=case,
            evidence=(Evidence("kernels", () if case is None else (case,)),),
        )
    ]


def _parts_of_gain(remark: Remark, share: float, base: str) -> list[tuple[str, str]]:
    """What can be won of a kernel, its share, and both together, which add up to the gain of a cause."""
    return [
        ("can be won of the kernel's time", percent(remark.won)),
        (f"its share of {base}", percent(share)),
        (f"can be won of {base}", percent(remark.won * share / 100)),
    ]


def _counters_looked_at(kernel: KernelRow, remark: Remark) -> list[tuple[str, str]]:
    """The metrics that a remark follows from, but what was counted and did not happen.

    L1 and pipes are measured while SMs are active, which in some launches they are a part of the time.
    """
    rows = []
    for name, value in metrics_behind(kernel, remark).items():
        metric = find_metric(name)
        if value or metric is None or metric.unit not in _COUNTED:
            basis = ", while SMs are active" if name in PER_ACTIVE_CYCLE else ""
            rows.append((name + basis, _exact_text(name, value)))
    return rows


def _hardware_figures(kernel: KernelRow) -> list[tuple[str, str]]:
    """What a block takes, and what the data sheet tells of the GPU."""
    gpu = find_gpu(kernel.device_name)
    figures = [("shared memory a block", kernel.shared_memory_bytes, "byte")]
    figures += (
        []
        if gpu is None
        else [("base clock, data sheet", gpu.base_clock_hz, "Hz"), ("L2, data sheet", gpu.l2_bytes, "byte")]
    )
    return [(name, f"{value:,.0f} {unit}") for name, value, unit in figures if value]


def _exact_text(name: str, value: float) -> str:
    """A value of a metric in its unit, a count with all digits."""
    metric = find_metric(name)
    unit = metric.unit if metric and metric.unit != "block" else ""
    if unit == "%":
        return percent(value)
    digits = f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
    return f"{digits} {unit}".rstrip()


def metric_column(name: str) -> Column:
    """The column of a metric."""
    metric = find_metric(name)
    unit = metric.unit if metric else ""
    shown_as = _UNITS.get(unit, "number")
    return Column(f"metric.{name}", name if not unit or unit in _UNITS else f"{name} ({unit})", shown_as)


_ROOFLINE: Final = (
    Column("kernel", "kernel", "name"), Column("precision", "precision"), Column("level", "level"),
    Column("intensity", "FLOP/byte", "number"), Column("flop_per_s", "reached", "FLOP/s"),
    Column("roof_flop_per_s", "roof", "FLOP/s"), Column("share_pct", "of the roof", "%"), Column("side", "limited by"),
    Column("time_pct", "of the time", "%"),
)  # fmt: skip


def roofline_blocks(summary: Summary) -> list[Block]:
    """The cases beside each other, and a scatter plot a case that has points."""
    cases = [case for case in summary.cases if any(k.points for k in case.kernels)]
    plots = [
        _roofline_plot("roofline", f"rooflines of {case.id}", [(case, k, p) for k in case.kernels for p in k.points])
        for case in cases
    ]
    if len(cases) < 2:
        return plots
    title = "rooflines of all cases, each kernel where it is nearest to its roof"
    # of each case the kernels that take most
    binding_points = [
        (case, k, k.roofline) for case in cases for k in case.kernels[:_MAX_KERNELS_PER_CASE] if k.roofline is not None
    ]
    label = "case" if all(len(case.kernels) == 1 for case in cases) else "kernel"
    return [_roofline_plot("rooflines", title, binding_points, label=label), *plots]


def _roofline_plot(
    name: str, title: str, points: Sequence[tuple[CaseSummary, KernelRow, Point]], *, label: str = "kernel"
) -> Block:
    """A row a point of one case; of several cases with the case's name."""
    several = name == "rooflines"
    rows = [
        (k.short_name, p.precision, p.level, p.intensity, p.flop_per_s, p.roof_flop_per_s, p.share_pct, p.side,
         k.share_pct)
        for _, k, p in points
    ]  # fmt: skip
    cases = [case.id for case, _, _ in points]
    return Scatter(
        name,
        title,
        (Column("case", "case", "name"), *_ROOFLINE) if several else _ROOFLINE,
        tuple((case, *row) for case, row in zip(cases, rows, strict=True)) if several else tuple(rows),
        wide="kernel",
        case=None if several else cases[0],
        shown="data",
        evidence=(Evidence("roofline", tuple(cases if several else cases[:1])),),
        x="intensity",
        y="flop_per_s",
        label=label,
        series=("precision", "level"),
        size=("time_pct",),
        ceilings=_distinct_ceilings([p for _, k, _ in points for p in k.points]),
    )


def _distinct_ceilings(points: list[Point]) -> tuple[Ceiling, ...]:
    """Each ceiling once; those of launches at other clocks differ, and all are kept."""
    flat = [Ceiling(p.precision, p.peak_flop_per_s, None, p.ceilings) for p in points if p.peak_flop_per_s is not None]
    slopes = [Ceiling(p.level, None, p.peak_bytes_per_s, p.ceilings) for p in points if p.peak_bytes_per_s is not None]
    return tuple(dict.fromkeys([*flat, *slopes]))
