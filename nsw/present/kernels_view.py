"""The kernels that counters were measured of: on a terminal, as JSON data, and as flat rows."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.answer.kernels import of_kernels, roof_name, shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from nsw.analysis.kernels import KernelRow

_STALLS: Final = 2


def show_kernels(out: Console, kernels: Sequence[KernelRow]) -> None:
    """Print the most expensive kernels, and how much the others take."""
    from nsw.present.blocks_on_terminal import show_blocks  # completion reads names of this file, and loads no rich

    show_blocks(out, of_kernels(kernels), "always")


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
    plain["shape"] = shape(kernel)
    for at in range(_STALLS):
        stall = kernel.stalls[at] if at < len(kernel.stalls) else None
        plain |= {f"stall_{at + 1}": stall and stall.reason, f"stall_{at + 1}_pct": stall and stall.pct}
    roof, advice = kernel.roofline, kernel.advice
    plain |= {"roof": roof and roof_name(roof), "roof_share_pct": roof and roof.share_pct}
    return plain | {"advice": advice and advice.rule, "advice_speedup_pct": advice and advice.speedup_pct}


def flat_points(kernels: Sequence[KernelRow]) -> list[dict[str, Any]]:
    """The points of the rooflines."""
    return [{"name": k.name, "short_name": k.short_name} | asdict(point) for k in kernels for point in k.points]
