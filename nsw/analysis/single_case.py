"""Where the time of a single case goes: GPU work, else kernels by counters, functions, operators or calls."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Cell, Column, Evidence, Table, drop_empty_columns, names_with_column
from nsw.analysis.groups import sum_by
from nsw.analysis.host import OTHER_WORK, WAITS, classify_function
from nsw.analysis.kernel_classes import COPIES, NCCL, SETS
from nsw.analysis.kernels import ALL_KERNELS, kernel_share_base
from nsw.analysis.rules.binding import (
    LATENCY,
    ROOF_PCT,
    STALLED_PCT,
    Remark,
    binding_part,
    busiest_part,
    busiest_part_pct,
)
from nsw.analysis.rules.counters import (
    is_rule_on_limit,
    is_waste,
    kernel_advice_text,
    kernel_fault,
    reportable_remarks,
    rule_sentence,
)
from nsw.analysis.rules.gaps import WORDS, divide_idle_time, idle_time_by_cause
from nsw.analysis.rules.latency import few_warps_text, largest_stall_text, launch_shape_text
from nsw.analysis.rules.memory_access import stores_matter
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, time_without_profiler
from nsw.analysis.spent import NOT_SHOWN, Part, Spent
from nsw.metrics import find_chip, find_metric
from nsw.metrics.printed_metrics import utilization_level
from nsw.quantities import duration, rate, size
from nsw.tables.names import number_repeated_names
from nsw.wording import plural, singular_or_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Share
    from nsw.analysis.idle_gpu import IdleGpu
    from nsw.analysis.kernels import KernelRow

    Section = tuple[str, Table]  # the most telling of a table in a few words, and the table

__all__ = ["NO_GPU_WORK", "TABLE", "idle_time_text", "main_time_section", "time_by_kernel_class"]

TABLE: Final = "answer"
NO_GPU_WORK: Final = "no GPU work"
_PARTS: Final = 8  # rows of GPU work, functions, operators
_ROWS: Final = 15  # of kernels
_LISTED: Final = 8  # GPUs
_NEARLY_ALL: Final = 0.8  # of a class: then its largest kernel says more
_TOGETHER: Final = 1.5  # times the time: from where on a sum is no share of it
_OVERLAPS: Final = 1.2  # times the time of an iteration, that its kernels take together: shares are of their sum
_RANGES: Final = 2  # of columns, in a headline
_FIGURES_SHOWN: Final = 4  # of a kernel, likewise
_CONFLICTS: Final = 0.25  # of the wavefronts of shared memory, from which they matter; else one a global load
_MANY: Final = 9  # kernels, of which a range says nothing
_OF_NCU: Final = (7, 0)  # compute capability from which ncu knows a GPU
_MANY_TIMES: Final = 2  # the largest kernel's share, from which the variants of a function say more
_PICKED_PCT: Final = 20.0  # of the kernels' time, below which one of many says little of them
_LIMITS, _LIMIT_PCT = 3, 10.0  # what binds most of the time of many kernels, each at least so much of it
_BROADCAST: Final = 1.1  # sectors a load: all threads of a warp read one address
_ALL_PCT: Final = 99.5
_HALF_PCT: Final = 50.0
_FEW_CALLS: Final = 20  # of which shares say nothing
_TELLING_PCT: Final = 5.0  # of a table of operators, ranges or system calls
_LARGE: Final = 64 << 10  # bytes of a copy, below which its speed says little
_SUM_SLACK: Final = 0.01  # of the time: what two sums of parts may differ
_PART_OF: Final = 0.2  # of the largest operator's time, what the one that calls it takes itself at least
_EXPLAINS, _TELLING = 0.9, 0.1  # of the idle time: nearly all; worth a word
_SMALL: Final = 0.005  # of its time: what is less has no row


def main_time_section(case: CaseSummary, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Section | None:
    """What the first of its tables that says something shows; None: none does.

    Args:
        case: The case.
        tables: The rows that it was made of.
    """
    return (
        _gpu_parts_section(case)
        or _kernels_section(case)
        or _functions_section(case)
        or _table_rows_section(case, tables)
        or _facts_section(case)
        or _run_figures_section(case, tables.get("facts", ()))
    )


def time_by_kernel_class(case: CaseSummary) -> list[Block]:
    """An iteration of a case by class of GPU work, and idle time with its cause; else all its GPU work by class."""
    section = _gpu_parts_section(case)
    return [replace(section[1], title="where the time goes", name="spent", case=case.id)] if section else []


def _gpu_parts_section(case: CaseSummary) -> Section | None:
    spent = time_without_profiler(case)
    if spent is None or not spent.gpu_ns:
        return None
    total_ns, idle_pct, share_title = _share_base(case, spent)
    alone_rows, work = _exposed_time_rows(spent, total_ns)
    parts = [part for part in work if part.ns >= _SMALL * total_ns][: _PARTS - len(alone_rows)]  # 0 % has no row
    speeds = {copy.name: copy.bytes_per_s for copy in case.copies if (copy.total_bytes or 0.0) >= _LARGE * copy.calls}
    rows = alone_rows + [
        (p.name, p.ns, 100 * p.ns / total_ns, _count_cell(p.operations), speeds.get(p.name), _largest_operation_text(p))
        for p in parts
    ]
    rows.sort(key=lambda row: -float(row[1]))  # type: ignore[arg-type]  # times
    remaining_parts = work[len(parts) :]
    remaining_pct = 100 * sum(part.ns for part in remaining_parts) / total_ns
    calls = sum(part.operations for part in remaining_parts) or None
    if idle_pct is not None:  # what the rows lack of the time, or have twice
        open_pct = 100 - idle_pct - sum(float(row[2]) for row in rows)  # type: ignore[arg-type,misc]
        overlap_pct = min(0.0, open_pct - remaining_pct)
        remaining_pct = max(open_pct, remaining_pct)
    else:
        overlap_pct = 0.0
    if remaining_pct >= 100 * _SMALL:
        rows.append(_row_of_share("the rest", remaining_pct, total_ns, calls))
    if overlap_pct <= -100 * _SMALL:
        rows.append(_row_of_share("less what runs at the same time", overlap_pct, total_ns))
    if idle_pct is not None:
        cause = ""
        if case.idle_gpu is not None and idle_pct >= _TELLING_PCT:
            cause = idle_time_text(case, case.idle_gpu, several=len(spent.idle_gpus) > 1)
        parts_of_idle = "; ".join(filter(None, (_idle_by_gpu_text(spent), cause)))
        rows.append(_row_of_share("GPU idle", idle_pct, total_ns, None, parts_of_idle))
    columns = (
        Column("part", "GPU work", "name"),
        Column("ns", "time", "ns"),
        Column("share_pct", share_title, "whole %"),
        Column("operations", "operations", "count"),
        Column("bytes_per_s", "speed", "byte/s"),
        Column("top", "largest, of it", "name"),
    )
    wide = "top" if any(row[-1] for row in rows) else "part"
    table = _table_of_filled_columns(case, columns, rows, evidence="hotspots", wide=wide)
    share_base = "of that" if spent.is_iteration else share_title
    return _single_copy_text(case, total_ns, share_base) or _largest_work_text(spent, total_ns, share_base), replace(
        table, whole=("share_pct",) if idle_pct is not None else ()
    )


def _count_cell(operations: float) -> float | None:
    """A number of operations, the mean of the iterations: of many in whole numbers."""
    return (round(operations) if operations >= _FEW_CALLS else operations) or None


def idle_time_text(case: CaseSummary, idle: IdleGpu, *, several: bool) -> str:
    """What the idle time goes to, where gaps tell: the largest part, and the next where the first is not nearly all.

    Args:
        case: The case.
        idle: Its GPU that is idle most.
        several: Whether it works on several GPUs, of which the text names this one.
    """
    causes = idle_time_by_cause(case, idle)
    division = divide_idle_time(idle, causes)
    if not idle.has_calls:  # table gaps tells no causes then
        division = {words: ns for words, ns in division.items() if words in {WORDS[cause.cause] for cause in causes}}
    parts = sorted(division.items(), key=lambda part: -part[1])
    shares = [(words, ns / idle.idle_ns) for words, ns in parts if idle.idle_ns and ns >= _TELLING * idle.idle_ns]
    if not shares:
        return ""
    gpu = f"{idle.gpu.removeprefix('the GPU of ')}: " if several else ""
    if shares[0][1] >= _EXPLAINS:
        return f"{gpu}{shares[0][0]}"
    return gpu + ", ".join(f"{100 * share:.0f} % {words}" for words, share in shares[: 1 if several else 2])


def _exposed_time_rows(spent: Spent, total_ns: float) -> tuple[list[tuple[Cell, ...]], list[Part]]:
    """The rows of NCCL and of copies, with what no other kernel hides, where that is known; the parts without them."""
    rows, work = [], list(spent.shown)
    for names, alone_pct in (((NCCL,), spent.exposed_pct), ((COPIES, SETS), spent.copies_pct)):
        mine = [part for part in work if part.name in names]
        ns = sum(part.ns for part in mine)
        if alone_pct is None or ns < _SMALL * total_ns:
            continue
        work = [part for part in work if part not in mine]
        hidden_pct = (spent.hidden_pct or 0.0) if NCCL in names else max(0.0, 100 * ns / total_ns - alone_pct)
        top = [] if NCCL in names else [_largest_operation_text(mine[0])]
        took = f" ({duration(hidden_pct * total_ns / 100)})" if NCCL in names else ""
        hidden = [f"{hidden_pct:.0f} %{took} more is hidden"] if round(hidden_pct) or not top else []
        calls = sum(part.operations for part in mine) or None
        rows.append(_row_of_share(f"{names[0]} alone", alone_pct, total_ns, calls, "; ".join(top + hidden)))
    return rows, work


def _share_base(case: CaseSummary, spent: Spent) -> tuple[float, float | None, str]:
    """What shares are of: how long it is, how much of it the GPU is idle as far as this is known, and its name."""
    if spent.is_iteration:
        title = "of the mean iteration" if spent.is_mean else "of an iteration"
        return spent.span_ns or spent.gpu_ns, spent.idle_pct, title
    idle, busy = case.idle_gpu, least_gpu_busy_pct(case)
    if idle is None or idle.is_iteration or not busy:
        return spent.gpu_ns, None, "of GPU time"
    return idle.med_ns * idle.busy_pct / busy, 100 - busy, f"of {idle.counted_time}"


def _idle_by_gpu_text(spent: Spent) -> str:
    """How much each of several GPUs is idle; of many the least and the most."""
    gpus = sorted(spent.idle_gpus, key=lambda gpu: (-round(gpu[1]), len(gpu[0]), gpu[0]))
    if len(gpus) > _LISTED:
        gpus = [gpus[0], gpus[-1]]
    return ", ".join(f"{share:.0f} % {name}" for name, share in gpus) if len(gpus) > 1 else ""


def _row_of_share(
    name: str, share_pct: float, total_ns: float, operations: float | None = None, top: str = ""
) -> tuple[Cell, ...]:
    """A row that is not one part of GPU work: its share, and so its time."""
    return name, share_pct * total_ns / 100, share_pct, operations, None, top


def _single_copy_text(case: CaseSummary, total_ns: float, share_base: str) -> str:
    """One copy that takes more than any kernel, of many; empty where there is none."""
    copy = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    if copy is None or case.iterations or copy.calls < 2 or (copy.longest_ns or 0.0) < _NEARLY_ALL * copy.total_ns:
        return ""
    longest_ns, first = copy.longest_ns or 0.0, next(iter(case.gpu_work), None)
    if first is None or first.name != copy.name or longest_ns > _HALF_PCT / 100 * total_ns:
        return ""
    return f"{100 * longest_ns / total_ns:.0f} % {share_base} is one {copy.name} of {duration(longest_ns)}"


def _largest_work_text(spent: Spent, total_ns: float, share_base: str) -> str:
    """What takes most of the GPU's work, in a few words, with its share as in the table."""
    first = next((part for part in spent.shown if part.name != NOT_SHOWN), spent.shown[0])
    if not any(part.name not in {COPIES, SETS} for part in spent.parts):
        return f"{plural(round(spent.operations), 'GPU operation')} and no kernel, {duration(spent.gpu_ns)}"
    if first.name == NCCL and spent.exposed_pct is not None:
        return f"NCCL alone takes {spent.exposed_pct:.0f} % of it"
    if first.name == COPIES and spent.copies_pct is not None:
        return f"copies alone take {spent.copies_pct:.0f} % of it"
    kernels = [part for part in spent.parts if part.name not in {COPIES, SETS, NOT_SHOWN}]
    kernel_pct = 100 * sum(part.ns for part in kernels) / total_ns
    if not spent.is_iteration and _is_copy(first) and kernel_pct > _HALF_PCT:
        largest = next(part for part in spent.shown if part.name != NOT_SHOWN and not _is_copy(part))
        return (
            f"{kernel_pct:.0f} % {share_base} is kernels, {largest.name} most ({100 * largest.ns / total_ns:.0f} %);"
            f" copies take {spent.share_pct(COPIES) * spent.gpu_ns / total_ns:.0f} %"
        )
    name, ns = first.name, first.ns
    if first.top and first.top_ns >= _NEARLY_ALL * first.ns and first.name not in {COPIES, NCCL}:
        name, ns = first.top, first.top_ns
    if ns >= _TOGETHER * total_ns:
        return f"{ns / total_ns:.1f} launches of {name} at a time on average"
    if spent.is_iteration and kernel_pct >= 100 * _OVERLAPS:
        total_ns, share_base = spent.gpu_ns, "of its GPU work"
    summary = f"{min(100.0, 100 * ns / total_ns):.0f} % {share_base} is {name}"  # sums of two at a time are more
    if spent.is_iteration or any(part.name == NOT_SHOWN for part in spent.parts):
        return summary
    if ns >= _ALL_PCT / 100 * total_ns and 0 < first.operations < _FEW_CALLS:
        several = "copies" if first.name == COPIES else "launches"
        count = "one launch" if first.operations <= 1 else f"{first.operations:.0f} {several}"
        return f"{name} takes {duration(ns)} in {count}"
    if spent.operations < _FEW_CALLS:
        summary += f", {duration(ns)} of {duration(spent.gpu_ns)}"
    return summary


def _is_copy(part: Part) -> bool:
    """Whether a part of GPU work is copies or sets, or one kind of them."""
    return part.name in {COPIES, SETS} or part.name.startswith(("[CUDA mem", "[Unified Memory"))


def _table_of_filled_columns(
    case: CaseSummary, columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]], *, evidence: str, wide: str
) -> Table:
    """A table of the columns that have a value."""
    filled, cells = drop_empty_columns(columns, rows)
    wide_column = next(iter(names_with_column(filled, wide)), None)
    return Table(TABLE, "", filled, cells, wide=wide_column, evidence=(Evidence(evidence, (case.id,)),))


# how busy units are, of memory first
_MEMORY_UNITS: Final = {
    "dram_utilization": "DRAM", "l2_utilization": "L2", "tex_utilization": "texture cache",
    "l1_shared_utilization": "L1 and shared memory", "shared_utilization": "shared memory",
}  # fmt: skip
_UNITS: Final = _MEMORY_UNITS | {
    "ldst_fu_utilization": "load-store units", "alu_fu_utilization": "ALU",
    "single_precision_fu_utilization": "FP32 units", "double_precision_fu_utilization": "FP64 units",
    "half_precision_fu_utilization": "FP16 units", "special_fu_utilization": "special-function units",
    "tensor_precision_fu_utilization": "tensor cores",
}  # fmt: skip


_TENSOR_CORES: Final = re.compile(r"tensorop|mma_|_s\d{4,5}gemm")


def _measured_metric_texts(kernel: KernelRow) -> list[str]:
    """What was measured of a kernel of which it is not known what binds it."""
    reached, limit, metrics = kernel.achieved_occupancy_pct, kernel.theoretical_occupancy_pct, kernel.metrics
    units = [] if kernel.sm_pct is not None else [key for key in _UNITS if metrics.get(key)]
    busiest = max(units, key=lambda key: metrics[key], default="")
    memory = max((key for key in units if key in _MEMORY_UNITS), key=lambda key: metrics[key], default="")
    # else loads cost little
    of_memory = busiest == memory and metrics.get("gld_transactions_per_request", math.inf) > _BROADCAST
    # one instruction of tensor cores is many cycles of work
    is_tensor = _TENSOR_CORES.search(kernel.name) is not None
    unready = None if is_tensor else metrics.get("No Eligible")
    flop_pct = metrics.get("flop_sp_efficiency", 0.0)
    limiter = f" ({kernel.occupancy_limiter})" if kernel.occupancy_limiter else ""
    shares = (
        ("SM at {} of its peak", kernel.sm_pct), ("DRAM at {} of its peak", kernel.dram_pct),
        *((_unit_text(kernel, key), metrics[key]) for key in dict.fromkeys((busiest, memory)) if key),
        ("FP32 at {} of its peak", flop_pct if flop_pct >= 1 else None),
        ("no warp ready in {} of cycles", unready),
        ("{} of the loaded bytes used", _used_bytes_pct(metrics.get("gld_efficiency")) if of_memory else None),
        ("issue slots {} used", metrics.get("issue_slot_utilization") if unready is None and not is_tensor else None),
        (f"occupancy {{}}{'' if limit is None else f' of at most {limit:.0f} %{limiter}'}", reached),
    )  # fmt: skip
    measured_shares = [text.format(f"{share:.0f} %") for text, share in shares if share]
    if unready is not None and (warps := metrics.get("active_warps_per_scheduler")):
        measured_shares.append(f"{warps:.1f} warps a scheduler")
    accesses = metrics.get("shared_wavefronts", metrics.get("global_load_requests", math.inf) / _CONFLICTS)
    if (conflicts := metrics.get("shared_bank_conflicts", 0.0)) >= _CONFLICTS * accesses:
        count = f"{conflicts / 1e6:.3g} million" if conflicts >= 1e6 else f"{conflicts:,.0f}"
        measured_shares.append(f"{count} bank conflicts of shared memory")
    moved = kernel.dram_bytes_per_s if kernel.launch_ns and kernel.dram_pct is None else None
    return measured_shares + ([f"DRAM {rate(moved)}"] if moved else [])


def _unit_text(kernel: KernelRow, key: str) -> str:
    """How busy a unit is; nvprof prints a level alone."""
    if key not in kernel.levels:
        return f"{_UNITS[key]} {{}} busy"
    return f"{_UNITS[key]} at level {utilization_level(kernel.metrics[key]):.0f} of 10"


_WORK: Final = (
    ("executes {} of the instructions", ("inst_executed",)),
    ("does {} of the FLOP", ("flop_count_sp", "flop_count_dp", "flop_count_hp")),
)


def _kernel_with_most_work(kernels: Sequence[KernelRow]) -> tuple[KernelRow, str] | None:
    """Of kernels without times the one that works most, and how much that is; None: their work was not counted."""
    for text, counters in _WORK:
        work = [
            kernel.launches * sum(kernel.metrics[key] for key in counters if key in kernel.metrics)
            for kernel in kernels
            if not kernel.metrics.keys().isdisjoint(counters)
        ]
        if len(work) == len(kernels) and any(work):
            share = 100 * max(work) / sum(work)
            size = "over 99 %" if _ALL_PCT <= share < 100 else f"{share:.0f} %"
            return kernels[work.index(max(work))], text.format(size)
    return None


def _largest_operation_text(part: Part) -> str:
    """What takes most of a class, and its share where it is not all."""
    share = 100 * part.top_ns / part.ns if part.ns else 0.0
    return part.top if share >= _ALL_PCT or not part.top else f"{share:.0f} % {part.top}"


def _kernels_section(case: CaseSummary) -> Section | None:
    """A row a kernel, those that take most."""
    if not case.kernels:
        return None
    columns = (
        Column("kernel", "kernel", "name"), Column("share_pct", "share", "whole %"),
        Column("measured", "launches", "count"), Column("ns", "mean time", "ns"),
        Column("bound_by", "bound by"), Column("of_roof_pct", "of peak", "whole %"),
        Column("dram_bytes_per_s", "DRAM", "byte/s"), Column("sm_efficiency", "SMs at work", "whole %"),
        Column("occupancy_pct", "occupancy", "whole %"), Column("gld_efficiency", "loads used", "whole %"),
        Column("gst_efficiency", "stores used", "whole %"), Column("do", "what to do"),
    )  # fmt: skip
    names = number_repeated_names([k.short_name for k in case.kernels])
    base = kernel_share_base(case.kernels)
    shares = [k.share_pct if k is base.setup else base.share(k.share_pct) for k in case.kernels]
    faults = {id(k): remark for k, _, remark in reversed(reportable_remarks(case.kernels))}
    rows = [
        (name, *_kernel_cells(k, share, faults.get(id(k)), alone=len(names) == 1))
        for name, k, share in zip(names, case.kernels, shares, strict=True)
    ]
    table = _table_of_filled_columns(case, columns, rows, evidence="kernels", wide="kernel")
    if len(table.columns) == 1:
        table = _metrics_table(case)
    if (setup := base.setup) is None:
        return _kernels_headline(case.kernels, table, base.name), _limit_rows(table, _ROWS)
    kernels = [replace(k, share_pct=n) for k, n in zip(case.kernels, shares, strict=True) if k is not setup]
    head = f"{setup.short_name}, launched once, takes {setup.share_pct:.0f} % of {ALL_KERNELS}"
    return f"{head}; {_kernels_headline(kernels, table, 'the rest')}", _limit_rows(table, _ROWS)


def _limit_rows(table: Table, limit: int) -> Table:
    """The first rows of a table with the columns that they fill, and how many rows it lacks."""
    columns, rows = drop_empty_columns(table.columns, table.rows[:limit])
    return replace(table, columns=columns, rows=rows, omitted=max(0, len(table.rows) - limit))


def _metrics_table(case: CaseSummary) -> Table:
    """Kernels by the metrics themselves, for reports that have none of a kernel's own columns."""
    columns = (Column("kernel", "kernel", "name"), Column("metric", "metric"), Column("value", "value", "number"),
               Column("unit", "unit"))  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (kernel.short_name, name, value, metric.unit if (metric := find_metric(name)) else "")
        for kernel in case.kernels for name, value in kernel.metrics.items()
        if " " not in name and not name.endswith("_frequency")  # labels have units of their own
    ]  # fmt: skip
    return _table_of_filled_columns(case, columns, rows, evidence="kernels", wide="kernel")


def _used_bytes_pct(efficiency: float | None) -> float | None:
    """The share of moved bytes that is used: 0 % is no access, and threads that share bytes use more than all."""
    return min(efficiency, 100.0) if efficiency else None


def _kernel_cells(kernel: KernelRow, share: float | None, fault: Remark | None, *, alone: bool) -> tuple[Cell, ...]:
    """The cells of a kernel with this share of the work; `alone`: it is the only one, whose share says nothing."""
    limit, metrics = binding_part(kernel), kernel.metrics
    return (
        None if alone else kernel.share_pct,
        None if alone or kernel.share_pct is None or kernel.time_from != "counters" else kernel.launches,
        kernel.launch_ns, limit,
        None if limit is None else busiest_part_pct(kernel),
        kernel.launch_ns and kernel.dram_bytes_per_s, metrics.get("sm_efficiency") if kernel.sm_pct is None else None,
        kernel.achieved_occupancy_pct, _used_bytes_pct(metrics.get("gld_efficiency")),
        _used_bytes_pct(metrics.get("gst_efficiency")) if stores_matter(kernel) else None,
        kernel_advice_text(kernel, 100.0 if alone else share, fault),
    )  # fmt: skip


def _kernels_headline(kernels: Sequence[KernelRow], table: Table, base: str) -> str:
    """The most telling of kernels with counters: what the largest is bound by, or what was measured.

    Args:
        kernels: Those that count, most expensive first.
        table: Of all.
        base: What their shares are of.
    """
    first, limit = kernels[0], binding_part(kernels[0])
    summary = plural(len(kernels), "kernel")
    if not any(kernel.metrics for kernel in kernels):
        return f"{summary}, of which no metric has a value"
    if len(kernels) == 1:
        each = " a launch" if first.launches > 1 else ""
        summary = first.short_name + (f" takes {duration(first.launch_ns)}{each}" if first.launch_ns else "")
        if (long := first.long_launches) is not None:
            every = long.launches + long.others
            summary = (
                f"{first.short_name} takes {duration(long.mean_ns)} in {long.launches:,.0f} of {every:,.0f} launches,"
                f" {duration(long.others_mean_ns)} in the others"
            )
    elif first.share_pct is None and (hardest := _kernel_with_most_work(kernels)) is not None:
        return ", ".join(
            (f"{hardest[0].short_name} {hardest[1]}", *_measured_metric_texts(hardest[0])[:_FIGURES_SHOWN])
        )
    elif first.share_pct is None:
        worst = _least_used_text(kernels)
        ranges = [worst] if worst else _column_range_texts(table)[:_RANGES]
        chip = find_chip(first.device_name)
        is_old = chip is not None and chip.capability is not None and chip.capability < _OF_NCU
        by_ncu = "" if is_old else ", or `ncu --set basic`,"
        how = "" if ranges else f" (`nvprof` without --metrics{by_ncu} measures them)"
        return f"{summary}, without times{how}" + "".join(f", {text}" for text in ranges)
    elif first.share_pct < _PICKED_PCT and not kernel_advice_text(first, first.share_pct):
        return _many_small_kernels_text(kernels, base)
    else:
        alike = [kernel for kernel in kernels if kernel.short_name == first.short_name]
        variants = f" ({len(alike)} variants)" if len(alike) > 1 else ""
        share_pct = sum(kernel.share_pct or 0.0 for kernel in alike)
        summary = f"{first.short_name}{variants} takes {share_pct:.0f} % of {base}"
    if limit is not None and (limit == LATENCY or busiest_part_pct(first) < ROOF_PCT):
        fault = kernel_fault(first, 100.0 if len(kernels) == 1 else first.share_pct)
        if fault is not None and (is_waste(fault) or limit != LATENCY):  # which is why its warps wait
            return f"{summary}, {fault.what}"
        few = "" if kernel_advice_text(first, first.share_pct or 100.0) else few_warps_text(first)
        stalled = bool(first.stalls) and first.stalls[0].pct >= STALLED_PCT
        wait = largest_stall_text(first) if stalled else ""
        part = busiest_part(first)
        busiest = f"no part of the GPU above {busiest_part_pct(first):.0f} % of its peak ({part})"
        if limit == LATENCY:
            why = few or ("" if fault else wait or busiest)
            return f"{summary}, bound by {limit}{': ' if why else ''}{why}"
        return ", ".join(filter(None, (summary, busiest, wait)))
    if limit is not None:
        return f"{summary}, bound by {limit}, {busiest_part_pct(first):.0f} % of its peak"
    if first.launch_ns is None and not _measured_metric_texts(first):
        if len(kernels) == 1 and len(first.shapes) == 1:  # which ncu prints
            moved = first.metrics.get("DRAM Bandwidth")
            return ", ".join((
                f"{summary} has {launch_shape_text(*first.shapes[0])}", *([f"DRAM {rate(moved)}"] if moved else []),
                "no time (`ncu --set basic` measures it)",
            ))  # fmt: skip
        return f"{summary} has only {plural(len(first.metrics), 'metric')}, and no time"
    by_rule = (
        [f"ncu: {rule_sentence(first.advice)}"]
        if first.advice is not None and first.achieved_occupancy_pct is None and is_rule_on_limit(first.advice)
        else []
    )
    return ", ".join((summary, *_measured_metric_texts(first), *by_rule))


def _many_small_kernels_text(kernels: Sequence[KernelRow], base: str) -> str:
    """Kernels of which none takes much, and what binds most of their time; the variants of a function count as one.

    Args:
        kernels: The kernels.
        base: What their shares are of.
    """
    functions = sum_by((_function_name(kernel), kernel.share_pct or 0.0) for kernel in kernels)
    function = max(functions, key=lambda name: functions[name])
    variants = [kernel for kernel in kernels if _function_name(kernel) == function]
    most = max(kernel.share_pct or 0.0 for kernel in kernels)
    if functions[function] >= max(_PICKED_PCT, _MANY_TIMES * most):
        count = f"{function} takes {functions[function]:.0f} % of {base} in {len(variants)} variants"
        return count + _binding_parts_text(variants, "")
    count = plural(len(kernels), "kernel")
    of_time, of_bound = (f", none above {most:.0f} % of their time", "it") if most < _PICKED_PCT else ("", "their time")
    return count + of_time + _binding_parts_text(kernels, f"of {of_bound} ")


def _function_name(kernel: KernelRow) -> str:
    """The name of a kernel's function, without template arguments."""
    return kernel.short_name.partition("<")[0]


def _binding_parts_text(kernels: Sequence[KernelRow], of_time: str) -> str:
    """What binds most of the time of these kernels, behind a semicolon; empty: nothing binds much of it."""
    shares = sum_by((part, kernel.share_pct or 0.0) for kernel in kernels if (part := binding_part(kernel)) is not None)
    largest = sorted(shares, key=lambda part: -shares[part])[:_LIMITS]
    bound = [f"{shares[part]:.0f} % by {part}" for part in largest if shares[part] >= _LIMIT_PCT]
    return "; " + ", ".join([bound[0].replace("%", f"% {of_time}bound", 1), *bound[1:]]) if bound else ""


def _least_used_text(kernels: Sequence[KernelRow]) -> str:
    """The kernel that uses least of the bytes that it moves, where it wastes some; empty: none does, or not known."""
    uses = [
        {word: used for word, key in _MOVED if (used := kernel.metrics.get(key)) and used < _WASTED_PCT}
        for kernel in kernels
    ]
    worst = min((n for n, used in enumerate(uses) if used), key=lambda n: min(uses[n].values()), default=None)
    if worst is None:
        return ""
    parts = " and ".join(f"{used:.0f} % of the bytes that it {word}" for word, used in uses[worst].items())
    reached = kernels[worst].achieved_occupancy_pct
    return f"{kernels[worst].short_name} uses {parts}" + (f", occupancy {reached:.0f} %" if reached else "")


_MOVED: Final = (("loads", "gld_efficiency"), ("stores", "gst_efficiency"))
_WASTED_PCT: Final = 62.5  # used of the bytes of sectors, below which a stride of two or more wastes the rest


def _column_range_texts(table: Table) -> list[str]:
    """Of each column of shares the least and the greatest with their kernels."""
    ranges = []
    for n, column in enumerate(table.columns):
        cells = [cell for row in table.rows if isinstance(cell := row[n], float)]
        if column.unit == "whole %" and 0 < len(cells) < _MANY:  # of many the ends say nothing
            by_share = sorted((cell, str(row[0])) for row in table.rows if isinstance(cell := row[n], float))
            (low, low_name), (high, high_name) = by_share[0], by_share[-1]
            span = f"{low:.0f} % ({low_name}) to {high:.0f} % ({high_name})"
            ranges.append(f"{column.title} {span if f'{low:.0f}' != f'{high:.0f}' else f'{low:.0f} %'}")
    return ranges


_SHARES: Final = (Column("name", "name", "name"), Column("ns", "time", "ns"), Column("share_pct", "share", "whole %"),
                  Column("calls", "calls", "count"))  # fmt: skip


_FUNCTIONS: Final = (Column("name", "function", "name"), Column("work", "work"), *_SHARES[1:])


def _functions_section(case: CaseSummary) -> Section | None:
    if case.functions:
        function_rows: list[tuple[Cell, ...]] = [
            (s.short_name, _function_work_class(s), s.total_ns, s.share_pct, s.calls or None) for s in case.functions
        ]
        table = _table_of_filled_columns(case, _FUNCTIONS, function_rows, evidence="functions", wide="name")
        return _functions_headline(case), _limit_rows(table, _PARTS)
    if not case.api:
        return None
    calls = sum(share.calls or 0 for share in case.api)
    summary = f"{case.api[0].short_name} takes {case.api[0].share_pct:.0f} % of CUDA API time"
    if is_few := calls < _FEW_CALLS:
        total_ns = sum(share.total_ns or 0.0 for share in case.api)
        summary = f"{NO_GPU_WORK}, {plural(round(calls), 'CUDA API call')}, {duration(total_ns)}"
    rows = [(s.short_name, s.total_ns, None if is_few else s.share_pct, s.calls or None) for s in case.api]
    return summary, _limit_rows(_table_of_filled_columns(case, _SHARES, rows, evidence="api", wide="name"), _PARTS)


def _function_work_class(function: Share) -> str:
    """The class of a function's work; empty where its name does not tell."""
    work = classify_function(function.short_name, function.name.removeprefix(function.short_name))
    return "" if work == OTHER_WORK else work


_REST: Final = "[Others]"  # of a report that names the largest only


def _functions_headline(case: CaseSummary) -> str:
    """The function that works most, and how much of the time is waiting."""
    named_functions = (share for share in case.functions if share.short_name != _REST)
    first = next((share for share in named_functions if _function_work_class(share) not in WAITS), None)
    wait = next(iter(case.host.waits if case.host else ()), None)
    share_base = "self time" if case.functions[0].total_ns is not None else "the samples"
    phrases = [f"{first.short_name} takes {first.share_pct:.0f} % of {share_base}"] if first else []
    if wait and wait.share_pct >= _TELLING_PCT:
        functions = wait.top if wait.functions == 1 else f"{wait.functions} functions, {wait.top} most"
        phrases.append(f"{wait.share_pct:.0f} %{'' if first else f' of {share_base}'} is {wait.name} ({functions})")
    return ", ".join(phrases)


_FIGURES: Final = (Column("key", "figure"), Column("value", "value", "number"), Column("unit", "unit"))


def _run_figures_section(case: CaseSummary, facts: Sequence[Mapping[str, Any]]) -> Section | None:
    """The figures of a whole run, where a report has nothing else."""
    rows = [(row["key"], row["value"], row.get("unit") or "") for row in facts if row.get("value") is not None]
    if not rows:
        return None
    values_by_key = {key: value for key, value, _ in rows}
    texts = {"cpu_use_cores": "{:.3g} CPU cores at work on average", "ipc": "IPC {:.3g}"}
    phrases = [text.format(values_by_key[key]) for key, text in texts.items() if key in values_by_key]
    return ", ".join(phrases) or plural(len(rows), "figure"), _table_of_filled_columns(
        case, _FIGURES, rows, evidence="facts", wide="key"
    )


# a table, the column by which its rows are weighed, and what they are shares of
_WEIGHED_TABLES: Final = (
    ("operators", "self_device_ns", "the device's time"), ("operators", "self_cpu_ns", "CPU time"),
    ("nvtx_gpu_summary", "projected_ns", "the ranges' GPU time"),
    ("nvtx_summary", "total_ns", "the ranges' time, in which nested ones count twice"),
    ("osrt_summary", "total_ns", f"the time in system calls, waits left out; {NO_GPU_WORK}"),
    ("functions", "allocated_bytes", "the memory that is allocated"), ("functions", "instructions", "the instructions"),
)  # fmt: skip
_WEIGHTS: Final = {
    "allocated_bytes": Column("bytes", "allocated", "byte"),
    "instructions": Column("instructions", "instructions", "count"),
}
# calls in which threads wait as a matter of course
_WAITS: Final = re.compile(
    r"poll|ppoll|select|epoll_|sem_|pthread_cond_|futex|wait|nanosleep|usleep|sleep|accept|sigwait"
)


def _informative_rows(table: str, column: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows with times that say most: no calls that wait, and no operators beside what the GPU did for them."""
    timed_rows = [row for row in rows if row.get(column) and row.get("name")]
    if table == "osrt_summary":
        return [row for row in timed_rows if not _WAITS.search(row["name"])]
    if column != "self_device_ns":
        return timed_rows
    # what took no CPU time is the GPU's side: kernels, and ranges, which have the name of a row of the CPU
    of_cpu = {row["name"] for row in rows if row.get("self_cpu_ns") != 0}
    operators = [row for row in timed_rows if row.get("self_cpu_ns") != 0]
    kernels = [row for row in timed_rows if row["name"] not in of_cpu]
    kernel_total, operator_total = (sum(row[column] for row in group) for group in (kernels, operators))
    return operators if operator_total >= _NEARLY_ALL * kernel_total else kernels


def _share_of_each_row(timed: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    """The share of each row, as printed where the report prints it: it may not show all rows."""
    printed = [row.get(column.removesuffix("_ns") + "_pct") for row in timed]
    if all(share is not None for share in printed):
        return [float(share) for share in printed if share is not None]
    total = sum(row[column] for row in timed)
    return [100 * row[column] / total for row in timed]


def _join_rows_by_name(rows: Sequence[Mapping[str, Any]], column: str) -> list[Mapping[str, Any]]:
    """Rows of one name together: an operator may have a row a shape."""
    share = column.removesuffix("_ns") + "_pct"
    merged: dict[str, dict[str, Any]] = {}
    for row in rows:
        merged_row = merged.setdefault(row["name"], {**row, **dict.fromkeys((column, "calls", share))})
        for name in (column, "calls", share):
            if row.get(name) is not None:
                merged_row[name] = (merged_row[name] or 0) + row[name]
    return list(merged.values())


def _outer_operator_text(
    rows: Sequence[Mapping[str, Any]], timed: Sequence[Mapping[str, Any]], shares: Sequence[float]
) -> str:
    """The operator that the largest one is a part of, with its parts; empty where it is a part of none.

    Args:
        rows: All operators.
        timed: Those with self times, the largest first.
        shares: Of the time, of each of them.
    """
    first = timed[0]
    totals = sum_by((str(row["name"]), row["cpu_ns"]) for row in rows if row.get("name") and row.get("cpu_ns"))
    own_ns = totals.get(first["name"], 0.0)
    calls = [
        (row, share) for row, share in zip(timed[1:], shares[1:], strict=True)
        if abs(totals.get(row["name"], 0.0) - row["self_cpu_ns"] - own_ns) <= _SUM_SLACK * own_ns
        and share >= _TELLING_PCT and share >= _PART_OF * shares[0]
    ]  # fmt: skip
    if not own_ns or not calls:
        return ""
    parent, share = calls[0]
    total_ns = totals[parent["name"]]
    # operators that do nothing but call it have the same total
    outer = max(
        (name for name in totals if 0 <= totals[name] - total_ns <= _SUM_SLACK * total_ns),
        key=lambda name: totals[name],
    )
    outer_pct = shares[0] * totals[outer] / first["self_cpu_ns"]
    return (
        f"{outer} takes {outer_pct:.0f} % of CPU time, {shares[0]:.0f} % in {first['name']}, {share:.0f} % in"
        f" {parent['name']}"
    )


def _table_rows_section(case: CaseSummary, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Section | None:
    """The rows that weigh most of the first table in which one is worth a word, else of the first that has any."""
    first = None
    for table, column, share_base in _WEIGHED_TABLES:
        timed = _join_rows_by_name(_informative_rows(table, column, tables.get(table, ())), column)
        if not timed:
            continue
        timed.sort(key=lambda row: -row[column])
        shares = _share_of_each_row(timed, column)
        rows = tuple(
            (str(row["name"]), row[column], share, row.get("calls"))
            for row, share in zip(timed[:_PARTS], shares, strict=False)
            if share >= _TELLING_PCT
        )
        columns = (_SHARES[0], _WEIGHTS.get(column, _SHARES[1]), *_SHARES[2:])
        only = rows[0] if rows and rows[0][2] >= _ALL_PCT and 0 < (rows[0][3] or 0) < _FEW_CALLS else None
        outer = _outer_operator_text(tables[table], timed, shares) if column == "self_cpu_ns" else ""
        if only is not None and column == "self_device_ns":
            words = ("1 launch", "launches") if "(" in only[0] else ("1 call", "calls")
            often = singular_or_count(round(float(only[3] or 0)), *words)
            outer = f"{only[0].partition('(')[0]} takes {duration(only[1])} in {often}"
        section = (outer or f"{timed[0]['name']} takes {shares[0]:.0f} % of {share_base}",
                   _table_of_filled_columns(case, columns, rows, evidence=table, wide="name"))  # fmt: skip
        if rows:
            return section
        first = first or section
    return first


# facts of a whole run that people look at first, as HostSide has them
_RUN_FACTS: Final = (
    ("gpu_busy_pct", "GPU stacks at work"), ("gpu_accumulated_s", "GPU time, all stacks together"),
    ("gpu_occupancy_pct", "GPU occupancy, of its peak"),
    ("elapsed_s", "elapsed time"), ("cpu_time_s", "CPU time"), ("cpu_use_cores", "logical CPUs at work"),
    ("ipc", "instructions a cycle"), ("cpi", "cycles an instruction"),
    ("memory_bound_pct", "pipeline slots that wait for memory"),
    ("memory_stalls_pct", "pipeline slots that wait for memory"), ("vectorization_pct", "FP operations in vectors"),
    ("mpi_pct", "elapsed time in MPI"), ("mpi_imbalance_pct", "elapsed time in waits for other ranks"),
    ("openmp_imbalance_pct", "elapsed time in waits for other threads"), ("serial_s", "outside of parallel regions"),
    ("io_wait_s", "waits for files"), ("peak_memory_bytes", "memory of the largest process"),
)  # fmt: skip


_OF_PROGRAMS: Final = frozenset(
    {"mpi_pct", "memory_bound_pct", "memory_stalls_pct", "vectorization_pct", "peak_memory_bytes"}
)


def _facts_section(case: CaseSummary) -> Section | None:
    """What was found of the whole run, beside counts of events, where nothing is known of its parts."""
    facts = case.host.facts if case.host else {}
    rows = [(title, _fact_text(key, facts[key])) for key, title in _RUN_FACTS if key in facts]
    if "elapsed_s" not in facts or not _OF_PROGRAMS & facts.keys():
        return None
    mpi = f", {facts['mpi_pct']:.0f} % of it in MPI" if facts.get("mpi_pct") else ""
    columns = (Column("metric", "of the whole run"), Column("value", "value"))
    summary = f"takes {duration(1e9 * facts['elapsed_s'])}{mpi}"
    return summary, Table(TABLE, "", columns, tuple(rows), evidence=(Evidence("facts", (case.id,)),))


def _fact_text(key: str, value: float) -> str:
    """A fact for people, by the unit at the end of its key."""
    if key.endswith("_s"):
        return duration(1e9 * value)
    if key.endswith("_bytes"):
        return size(value)
    return f"{value:.0f} %" if key.endswith("_pct") else f"{value:.3g}"
