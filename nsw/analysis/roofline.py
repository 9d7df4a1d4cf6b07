"""Rooflines: where a kernel is between what the chip can compute and what its memories can deliver.

A point for each precision and memory level. Ceilings are those of the report itself (peak a cycle times the clock of
the run); where it has none, the data sheet's, labelled so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from nsw.metrics.catalogue import Gpu, find_gpu

Source = Literal["report", "data sheet"]
Level = Literal["DRAM", "L2", "L1"]

# what is counted -> (its name, its peak a cycle, operations of one unit of that peak, its clock)
_PRECISIONS: Final = {
    "flop_count_hp": ("FP16", "fp16_fma_peak", 4, "sm_frequency"),
    "flop_count_sp": ("FP32", "fp32_fma_peak", 2, "sm_frequency"),
    "flop_count_dp": ("FP64", "fp64_fma_peak", 2, "sm_frequency"),
    "tensor_ops_fp16": ("tensor FP16", "tensor_fp16_peak", 1, "sm_frequency"),
    "tensor_ops_bf16": ("tensor BF16", "tensor_bf16_peak", 1, "sm_frequency"),
    "tensor_ops_tf32": ("tensor TF32", "tensor_tf32_peak", 1, "sm_frequency"),
    "tensor_ops_fp8": ("tensor FP8", "tensor_fp8_peak", 1, "sm_frequency"),
    "tensor_ops_fp64": ("tensor FP64", "tensor_fp64_peak", 1, "sm_frequency"),
}
_ALWAYS_COUNTED: Final = ("flop_count_sp", "flop_count_dp")  # every chip counts these where FLOP are asked for
_LEVELS: Final[Mapping[Level, tuple[str, str, str]]] = {
    "DRAM": ("dram_bytes", "dram_bytes_peak", "dram_frequency"),
    "L2": ("l2_bytes", "l2_bytes_peak", "l2_frequency"),
    "L1": ("l1_bytes", "l1_bytes_peak", "l1_frequency"),
}
_NS: Final = 1e9
_OFF: Final = 0.1  # a ceiling that is further from the data sheet's is reported
# Compilers move constants with FP16 instructions (HFMA2) in programs that compute nothing in FP16. Where those are all,
# and fewer than this share of what the chip can do, they are taken for such moves.
_MOVES: Final = 0.1
_NO_PRECISION: Final = ""  # the precision of a kernel that computes nothing


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel at one memory level in one precision.

    Attributes:
        precision: FP16, FP32, FP64, or tensor FP16, BF16, TF32, FP8, FP64; empty: it executes no FLOP.
        level: DRAM, L2 or L1.
        flop: Operations of a launch.
        bytes: Bytes of a launch at this level.
        flop_per_s: What the kernel reached.
        intensity: FLOP for each byte.
        peak_flop_per_s: The chip's ceiling in this precision; None: not known.
        peak_bytes_per_s: The level's ceiling; None: not known.
        roof_flop_per_s: The lower of peak and bandwidth times intensity; None where one is not known.
        share_pct: What was reached, of the roof.
        side: `compute` or `memory`: which of the two the roof is.
        ceilings: Where they are from.
    """

    precision: str
    level: Level
    flop: float
    bytes: float
    flop_per_s: float
    intensity: float
    peak_flop_per_s: float | None
    peak_bytes_per_s: float | None
    roof_flop_per_s: float | None
    share_pct: float | None
    side: Literal["compute", "memory"] | None
    ceilings: Source | None


def roofline_points(metrics: Mapping[str, float | None], device_name: str | None = None) -> tuple[Point, ...]:
    """The points of a kernel, those nearest to their roofs first.

    Args:
        metrics: Portable metrics of a launch: FLOP, bytes, duration (ns), peaks a cycle, clocks.
        device_name: The GPU, whose data sheet gives ceilings that the report lacks.
    """
    gpu = find_gpu(device_name)
    metrics = _metrics_without_moves(metrics, gpu)
    kernel_points = [
        point
        for counted in _PRECISIONS
        for level in _LEVELS
        if (point := _roofline_point(metrics, counted, level, gpu)) is not None
    ]
    return tuple(sorted(kernel_points, key=lambda p: -(p.share_pct or 0.0)))


def binding_point(kernel_points: tuple[Point, ...]) -> Point | None:
    """The point that says most of a kernel: of the precision that is nearest to its peak, below its lowest roof."""
    with_peak = [p for p in kernel_points if p.peak_flop_per_s]
    if not with_peak:
        return None
    nearest_precision = max(with_peak, key=lambda p: p.flop_per_s / (p.peak_flop_per_s or 1.0)).precision
    roofed = [p for p in with_peak if p.precision == nearest_precision and p.roof_flop_per_s is not None]
    return min(roofed, key=lambda p: p.roof_flop_per_s or 0.0, default=None)


def memory_only_point(metrics: Mapping[str, float | None], device_name: str | None = None) -> Point | None:
    """The roof of a kernel that moves bytes and executes no FLOP: the level that it is nearest to the peak of.

    None where FP32 or FP64 operations were not counted, as of a range: there may be some.
    """
    gpu = find_gpu(device_name)
    time = metrics.get("duration")
    counted = [_metrics_without_moves(metrics, gpu).get(name) for name in _PRECISIONS]
    if not time or any(counted) or any(metrics.get(name) is None for name in _ALWAYS_COUNTED):
        return None
    level_points: list[Point] = []
    for level, (size, *_) in _LEVELS.items():
        moved, (peak, from_report) = metrics.get(size), peak_bytes_per_s(metrics, level, gpu)
        if moved and peak:
            share, source = 100 * moved / time * _NS / peak, "report" if from_report else "data sheet"
            point = Point(_NO_PRECISION, level, 0.0, moved, 0.0, 0.0, None, peak, None, share, "memory", source)  # type: ignore[arg-type]
            level_points.append(point)
    return max(level_points, key=lambda p: p.share_pct or 0.0, default=None)


def _metrics_without_moves(metrics: Mapping[str, float | None], gpu: Gpu | None) -> Mapping[str, float | None]:
    """The metrics without FP16 operations that only move constants."""
    flop, time = metrics.get("flop_count_hp"), metrics.get("duration")
    if not flop or not time or metrics.get("flop_count_hp_add") != 0.0 or metrics.get("flop_count_hp_mul") != 0.0:
        return metrics
    peak, _ = peak_flop_per_s(metrics, "flop_count_hp", gpu)
    return metrics | {"flop_count_hp": 0.0} if peak and flop / time * _NS < _MOVES * peak else metrics  # type: ignore[operator]


def _roofline_point(metrics: Mapping[str, float | None], counted: str, level: Level, gpu: Gpu | None) -> Point | None:
    name = _PRECISIONS[counted][0]
    flop, size, time = metrics.get(counted), metrics.get(_LEVELS[level][0]), metrics.get("duration")
    if not flop or not size or not time:
        return None
    rate, intensity = flop / time * _NS, flop / size
    compute, from_report = peak_flop_per_s(metrics, counted, gpu)
    memory, also = peak_bytes_per_s(metrics, level, gpu)
    roof = share = side = None
    if compute is not None and memory is not None:
        roof = min(compute, memory * intensity)
        share = 100 * rate / roof
        side = "compute" if compute <= memory * intensity else "memory"
    source = None if roof is None else "report" if from_report and also else "data sheet"
    return Point(name, level, flop, size, rate, intensity, compute, memory, roof, share, side, source)  # type: ignore[arg-type]  # of two words each


def peak_flop_per_s(metrics: Mapping[str, float | None], counted: str, gpu: Gpu | None) -> tuple[float | None, bool]:
    """Return the ceiling of a precision in FLOP/s (None: not known), and whether it comes from the report.

    Args:
        metrics: The metrics of a kernel by name, among them the peak for each cycle and the clock.
        counted: The metric that counts the operations, such as flop_count_sp.
        gpu: The data sheet, used where the report has no peak; None: the chip is not known.
    """
    _, peak, each, clock = _PRECISIONS[counted]
    a_cycle, frequency = metrics.get(peak), metrics.get(clock)
    if a_cycle and frequency:
        return a_cycle * each * frequency, True
    return (gpu.flop_per_s.get(counted) if gpu else None), False


def peak_bytes_per_s(metrics: Mapping[str, float | None], level: Level, gpu: Gpu | None) -> tuple[float | None, bool]:
    """Return the ceiling of a memory level in bytes/s (None: not known), and whether it comes from the report.

    Args:
        metrics: The metrics of a kernel by name, among them the peak for each cycle and the clock.
        level: DRAM, L2 or L1.
        gpu: The data sheet, used for DRAM where the report has no peak; None: the chip is not known.
    """
    _, peak, clock = _LEVELS[level]
    a_cycle, frequency = metrics.get(peak), metrics.get(clock)
    if a_cycle and frequency:
        return a_cycle * frequency, True
    return (gpu.dram_bytes_per_s if gpu and level == "DRAM" else None), False


def data_sheet_mismatch_sentences(metrics: Mapping[str, float | None], device_name: str | None) -> Iterator[str]:
    """Ceilings of a report that are not those of the GPU's data sheet, each as a sentence.

    Compute is compared a cycle, since the run's clock is not the sheet's; memory a second.
    """
    gpu = find_gpu(device_name)
    if gpu is None:
        return
    for counted, (name, peak, each, _) in _PRECISIONS.items():
        a_cycle, sheet = metrics.get(peak), gpu.flop_per_s.get(counted)
        if a_cycle and sheet:
            expected = sheet / gpu.clocks_hz[counted]
            if abs(a_cycle * each / expected - 1) > _OFF:
                yield (f"the report's {name} ceiling is {a_cycle * each:,.0f} FLOP a cycle, the data sheet of"
                       f" {gpu.name} has {expected:,.0f}")  # fmt: skip
    bandwidth, from_report = peak_bytes_per_s(metrics, "DRAM", None)
    if from_report and bandwidth and abs(bandwidth / gpu.dram_bytes_per_s - 1) > _OFF:
        yield (f"the report's DRAM ceiling is {bandwidth / 1e9:,.0f} GB/s, the data sheet of {gpu.name} has"
               f" {gpu.dram_bytes_per_s / 1e9:,.0f}")  # fmt: skip
