"""The kernel table on a terminal: numbers are never cut; columns that do not fit go on in another table below."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.roofline import off_the_sheet
from nsw.metrics import find
from nsw.present.terminal import duration, number, numbered, percent, plural, rate, size, table
from nsw.present.text_of_others import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console

    from nsw.analysis.kernels import KernelRow
    from nsw.analysis.roofline import Point

_MOST: Final = 20  # kernels
_STALLS: Final = 2
_MOST_OTHERS: Final = 8  # metrics beside the usual ones: what was asked for is shown, a set of hundreds is not
_LEAST_NAME: Final = 24
_GAP: Final = 3
_ADVICE: Final = 32

# what the usual columns tell already
_TOLD: Final = frozenset(
    {
        "duration", "sm_throughput", "memory_throughput", "dram_throughput", "dram_utilization", "achieved_occupancy",
        "theoretical_occupancy", "registers_per_thread", "static_shared_memory", "dynamic_shared_memory",
        "tensor_active", "dram_read_throughput", "dram_write_throughput", "blocks", "threads_per_block", "threads",
    }
)  # fmt: skip

_COLUMNS: Final[Mapping[str, Callable[[KernelRow], str | None]]] = {
    "time>": lambda k: None if k.time_ns is None else duration(k.time_ns),
    "share>": lambda k: _or_none(percent, k.share_pct),
    "launches>": lambda k: f"{k.launches:,.0f}",
    "measured>": lambda k: f"{k.measured:,.0f}" if k.measured != k.launches else None,
    "SM>": lambda k: _or_none(percent, k.sm_pct),
    "memory>": lambda k: _or_none(percent, k.memory_pct),
    "DRAM (GB/s)>": lambda k: None if k.dram_bytes_per_s is None else f"{k.dram_bytes_per_s / 1e9:,.1f}",
    "of peak>": lambda k: _or_none(percent, k.dram_pct),
    "occupancy>": lambda k: _occupancy(k.achieved_occupancy_pct, k.theoretical_occupancy_pct),
    "limited by": lambda k: k.occupancy_limiter,
    "tensor>": lambda k: _or_none(percent, k.tensor_pct),
    "roofline": lambda k: None if k.roofline is None else _roof(k.roofline),
    "registers>": lambda k: None if k.registers is None else f"{k.registers:,.0f}",
    "shared>": lambda k: None if k.shared_memory_bytes is None else size(k.shared_memory_bytes),
    "grid x block": lambda k: _shape(k) if k.shapes else None,
    "warps wait for": lambda k: ", ".join(f"{s.reason} {s.pct:.0f} %" for s in k.stalls) or None,
    "best advice": lambda k: None if k.advice is None else _advice(k),
}


_WITH_UNITS: Final[Mapping[str, Callable[[float | None], str]]] = {
    "%": percent,
    "ns": duration,
    "byte": size,
    "byte/s": rate,
}


def show_kernels(out: Console, kernels: Sequence[KernelRow], title: str = "kernels") -> None:
    """Print the most expensive kernels, at most twenty, and how much the others take."""
    if not kernels:
        return
    shown, rest = kernels[:_MOST], kernels[_MOST:]
    columns = {head: [cell(k) for k in shown] for head, cell in _COLUMNS.items()}
    for name in _others(shown):
        metric = find(name)
        unit = metric.unit if metric else ""
        head = name if not unit or unit in _WITH_UNITS else f"{name} ({unit})"
        shown_as = _WITH_UNITS.get(unit, number)
        columns[f"{head}>"] = [_or_none(shown_as, k.metrics.get(name)) for k in shown]
    columns = {head: cells for head, cells in columns.items() if any(cells)}
    names = list(numbered([clean(k.short_name) for k in shown]))
    for part, heads in enumerate(_fitted(columns, names, out.width)):
        rows = zip(names, *(columns[head] for head in heads), strict=True)
        out.print(table(title if part == 0 else None, ("kernel", *heads), _dashed(rows), wide="kernel"))
    for said in dict.fromkeys(said for k in shown for said in off_the_sheet(k.metrics, k.device_name)):
        out.print(f"warning: {said}: its rooflines may be wrong", style="yellow", soft_wrap=True)
    if rest:
        known = [k.share_pct for k in rest if k.share_pct is not None]
        share = f", {percent(sum(known))} of the time" if known else ""
        out.print(f"({plural(len(rest), 'kernel')} more{share}: --format json has all)", style="dim")


def kernels_data(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The rows as JSON data, unrounded."""
    return [asdict(k) for k in kernels]


_NESTED: Final = frozenset({"shapes", "stalls", "roofline", "advice", "points", "metrics"})


def flat_kernels(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The rows without anything nested; every metric is a column, null where a kernel lacks it."""
    names = list(dict.fromkeys(name for k in kernels for name in k.metrics))
    return [_flat(kernel) | {name: kernel.metrics.get(name) for name in names} for kernel in kernels]


def _flat(kernel: KernelRow) -> dict[str, Any]:
    plain: dict[str, Any] = {f.name: getattr(kernel, f.name) for f in fields(kernel) if f.name not in _NESTED}
    plain["shape"] = _shape(kernel) if kernel.shapes else None
    for at in range(_STALLS):
        stall = kernel.stalls[at] if at < len(kernel.stalls) else None
        plain |= {f"stall_{at + 1}": stall and stall.reason, f"stall_{at + 1}_pct": stall and stall.pct}
    roof, advice = kernel.roofline, kernel.advice
    plain |= {"roof": roof and _roof_name(roof), "roof_share_pct": roof and roof.share_pct}
    return plain | {"advice": advice and advice.rule, "advice_speedup_pct": advice and advice.speedup_pct}


def flat_points(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The points of the rooflines."""
    return [{"name": k.name, "short_name": k.short_name} | asdict(point) for k in kernels for point in k.points]


def _others(kernels: Sequence[KernelRow]) -> list[str]:
    """Metrics that no usual column tells, where they are few enough to have been asked for."""
    names = list(dict.fromkeys(n for k in kernels for n in k.metrics if n not in _TOLD))
    return names if len(names) <= _MOST_OTHERS else []


def _fitted(columns: Mapping[str, Sequence[str | None]], names: Sequence[str], width: int) -> list[list[str]]:
    """The heads of each table: as many columns as fit beside the kernel's name."""
    beside = min(max(map(len, names)), _LEAST_NAME) + _GAP
    parts: list[list[str]] = [[]]
    room = width - beside
    for head, cells in columns.items():
        needs = max(len(head.removesuffix(">")), *(len(clean(c)) for c in cells if c)) + _GAP
        if needs > room and parts[-1]:
            parts.append([])
            room = width - beside
        parts[-1].append(head)
        room -= needs
    return parts


def _dashed(rows: Any) -> list[list[str]]:
    return [[cell if cell is not None else "-" for cell in row] for row in rows]


def _or_none(shown: Callable[[float | None], str], value: float | None) -> str | None:
    return None if value is None else shown(value)


def _occupancy(achieved: float | None, theoretical: float | None) -> str | None:
    if theoretical is None:
        return _or_none(percent, achieved)
    return f"{'-' if achieved is None else f'{achieved:.1f}'} of {percent(theoretical)}"


def _roof(point: Point) -> str:
    """Which roof is above a kernel, and how near it is."""
    return f"{percent(point.share_pct)} of {_roof_name(point)}"


def _roof_name(point: Point) -> str:
    return point.precision if point.side == "compute" else f"{point.level} ({point.precision})"


def _shape(kernel: KernelRow) -> str:
    grid, block = (re.sub(r"[() ]", "", text) for text in kernel.shapes[0])
    more = len(kernel.shapes) - 1
    return f"{grid} x {block}" + (f" + {more} more" if more else "")


def _advice(kernel: KernelRow) -> str:
    assert kernel.advice is not None
    local = "" if kernel.advice.speedup_type == "global" else " (local)"
    rule = clean(kernel.advice.rule)
    return f"{rule if len(rule) <= _ADVICE else rule[: _ADVICE - 1] + '…'} {kernel.advice.speedup_pct:.0f} %{local}"
