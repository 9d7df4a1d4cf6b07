"""Peaks of GPUs by their data sheets: dense operations, boost clocks. A check on ceilings, not a measurement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from nsw.metrics.data_files import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

# portable name of what is counted -> column of gpus.csv
_RATES: Final[Mapping[str, str]] = {
    "flop_count_hp": "fp16_vector_tflops",
    "flop_count_sp": "fp32_tflops",
    "flop_count_dp": "fp64_tflops",
    "tensor_ops_fp16": "fp16_tensor_tflops",
    "tensor_ops_bf16": "bf16_tensor_tflops",
    "tensor_ops_tf32": "tf32_tensor_tflops",
    "tensor_ops_fp8": "fp8_tensor_tflops",
    "tensor_ops_fp64": "fp64_tensor_tflops",
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """One product.

    Attributes:
        name: As its data sheet names it.
        sms: Streaming multiprocessors.
        flop_per_s: Peaks by what is counted: flop_count_sp, tensor_ops_fp16 ...; those that the sheet tells.
        clocks_hz: The clock that each peak is at.
        dram_bytes_per_s: Bandwidth of the device memory.
    """

    name: str
    sms: int
    flop_per_s: Mapping[str, float]
    clocks_hz: Mapping[str, float]
    dram_bytes_per_s: float


def find_gpu(device_name: str | None) -> Gpu | None:
    """The product of a device's name, such as `NVIDIA H100 80GB HBM3`; None: its data sheet is not here."""
    words = set(re.split(r"[\s-]+", (device_name or "").lower()))
    found = [(len(match), gpu) for match, gpu in _gpus() if match <= words]
    return max(found, key=lambda pair: pair[0])[1] if found else None


@cache
def _gpus() -> tuple[tuple[frozenset[str], Gpu], ...]:
    found = []
    for row in rows("gpus.csv"):
        peaks = {name: float(row[column]) * 1e12 for name, column in _RATES.items() if row[column]}
        clocks = {
            name: float(row["tensor_clock_mhz" if name.startswith("tensor") else "boost_mhz"]) * 1e6 for name in peaks
        }
        gpu = Gpu(row["gpu"], int(row["sms"]), peaks, clocks, float(row["mem_gbs"]) * 1e9)
        found.append((frozenset(row["match"].lower().split()), gpu))
    return tuple(found)
