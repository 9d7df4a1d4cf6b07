"""What the job sampled beside a program: clocks, power and temperature of GPUs, load of hosts, and the energy used.

The file is written by the job's machinery: for each node a line `node=NAME`, the rows of `nvidia-smi --query-gpu` with
their head, and lines `host,SECONDS,LOADAVG,STAT,KHZ`. The first row of a GPU is of the time before the program began.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from nsw.quantities import ENERGY, ENERGY_PER, JOULE
from nsw.safe_files import open_text

__all__ = ["FEWEST_SAMPLES", "condition_rows", "energy_figure_rows", "energy_with_error_joules"]


_SECONDS: Final = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}

FEWEST_SAMPLES: Final = 50  # of a steady state whose energy is given
_AVERAGED_S: Final = 1.0  # power.draw.average is the mean of the last second
_POWER: Final = 0x4 | 0x80  # of clocks_event_reasons.active: software power cap, power brake
_HEAT: Final = 0x8 | 0x20 | 0x40  # slowdowns by the hardware, and by temperature
_SETTING: Final = 0x2 | 0x10  # clocks that somebody set, sync boost
_SHORTEST_S: Final = 2.0  # of a run whose host is described
_HERTZ: Final = 100  # USER_HZ, the unit of /proc/stat


class _GpuSample(NamedTuple):
    """One row of nvidia-smi; nan: this GPU or driver does not tell."""

    time_s: float
    sm_mhz: float
    sm_max_mhz: float
    memory_mhz: float
    peak_w: float
    mean_w: float
    temperature_c: float
    reasons: int
    memory_mib: float
    busy_pct: float
    ecc_errors: float


class _HostLoadSample(NamedTuple):
    time_s: float
    load: float
    running: int
    jiffies: tuple[int, ...]
    khz: tuple[float, ...]


@dataclass(slots=True)
class _NodeSamples:
    name: str
    gpus: dict[str, list[_GpuSample]] = field(default_factory=dict)
    loads: list[_HostLoadSample] = field(default_factory=list)
    message: str | None = None  # the first line that is none of the others: nvidia-smi's own


def condition_rows(samples_file: Path, *, start_s: float | None, end_s: float | None) -> list[dict[str, Any]]:
    """Return rows of table `condition_rows`: one for each GPU, for a node without one with `gpu` null.

    Args:
        samples_file: What the job sampled.
        start_s: When the program began, Unix seconds; None: with the first sample.
        end_s: When it ended, Unix seconds; None: with the last one.
    """
    rows: list[dict[str, Any]] = []
    for node in _read_nodes(samples_file):
        host = {"host": node.name, "start_s": start_s, "end_s": end_s} | _host_condition_row(node.loads)
        rows += [host | _gpu_condition_row(gpu, samples, start_s, end_s) for gpu, samples in node.gpus.items()]
        if not node.gpus:
            rows.append(host | {"missing": f"no GPU was sampled: {node.message or 'nvidia-smi is not there'}"})
    return rows


def energy_figure_rows(
    conditions: Sequence[Mapping[str, Any]],
    figure_rows: Sequence[Mapping[str, Any]],
    iteration_rows: Sequence[Mapping[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return rows of table `figure_rows` of a run: energy in joules, of all its GPUs, and of what its figures count.

    A figure in `images/s` gives `energy_per_image`, one in `ms/step` `energy_per_step`: the power of the steady state
    times the time of one. They are empty where the energy of a GPU is missing.

    Args:
        conditions: The run's rows of table `condition_rows`.
        figure_rows: Its rows of table `figure_rows`.
        iteration_rows: Its rows of table `iteration_rows`.
    """
    if not conditions or any(row.get("energy_j") is None for row in conditions):
        return []
    watts = math.fsum(row["power_w"] for row in conditions)
    energies = {ENERGY: (math.fsum(row["energy_j"] for row in conditions), JOULE)}
    times = [(figure["value"], *(figure.get("unit") or "").replace(" per ", "/").split("/")) for figure in figure_rows]
    for value, top, below in (time for time in times if len(time) == 3 and time[0] and time[0] > 0):
        if below in _SECONDS:
            counted, seconds = top, _SECONDS[below] / value
        elif top in _SECONDS:
            counted, seconds = below, _SECONDS[top] * value
        else:
            continue
        counted = counted.removesuffix("s") if len(counted) > 2 else counted
        energies.setdefault(f"{ENERGY_PER}{counted}", (watts * seconds, f"{JOULE}/{counted}"))
    if iteration_rows:
        seconds = statistics.fmean(row["med_ns"] for row in iteration_rows) / 1e9
        energies.setdefault(f"{ENERGY_PER}iteration", (watts * seconds, f"{JOULE}/iteration"))
    return [
        {"name": name, "value": value, "unit": unit, "matches": len(conditions)}
        for name, (value, unit) in energies.items()
    ]


def energy_with_error_joules(
    times_s: Sequence[float], watts: Sequence[float], *, start_s: float, end_s: float
) -> tuple[float, float]:
    """Return the energy between two times and its error by sampling, both in joules.

    The integral is that of straight lines between samples (trapezoids); before the first and behind the last sample the
    power is theirs. The error is how much the integrals of every second sample differ from it, and for what the mean of
    the last second lags behind half a second of the difference between both ends.

    Args:
        times_s: Times of the samples in order, Unix seconds; at least one.
        watts: The power at each.
        start_s: Where the integral begins.
        end_s: Where it ends.
    """
    total = _energy_joules(times_s, watts, start_s, end_s)
    halves = [
        _energy_joules(times_s[first::2], watts[first::2], start_s, end_s) for first in (0, 1) if len(times_s) > first
    ]
    change = _interpolated_power_at(times_s, watts, end_s) - _interpolated_power_at(times_s, watts, start_s)
    return total, max(abs(half - total) for half in halves) + _AVERAGED_S / 2 * abs(change)


def _energy_joules(times_s: Sequence[float], watts: Sequence[float], start_s: float, end_s: float) -> float:
    inside = [(time, watt) for time, watt in zip(times_s, watts, strict=True) if start_s < time < end_s]
    points = [
        (start_s, _interpolated_power_at(times_s, watts, start_s)),
        *inside,
        (end_s, _interpolated_power_at(times_s, watts, end_s)),
    ]
    return math.fsum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))


def _interpolated_power_at(times_s: Sequence[float], watts: Sequence[float], time_s: float) -> float:
    """The power at a time, on the straight line between its neighbours."""
    after = next((at for at, time in enumerate(times_s) if time >= time_s), len(times_s))
    if after in {0, len(times_s)}:
        return watts[min(after, len(times_s) - 1)]
    before = after - 1
    share = (time_s - times_s[before]) / (times_s[after] - times_s[before])
    return watts[before] + share * (watts[after] - watts[before])


# --- one GPU, one host ----------------------------------------------------------------------------------------------


def _gpu_condition_row(
    gpu: str, samples: Sequence[_GpuSample], start_s: float | None, end_s: float | None
) -> dict[str, Any]:
    steady = _samples_at_work(samples)
    row: dict[str, Any] = {
        "gpu": gpu,
        "samples": len(steady),
        "interval_s": _median_without_nan([b.time_s - a.time_s for a, b in pairwise(samples)]),
        "sm_mhz": _median_without_nan([sample.sm_mhz for sample in steady]),
        "sm_max_mhz": _none_if_nan(samples[0].sm_max_mhz),
        "memory_mhz": _median_without_nan([sample.memory_mhz for sample in steady]),
        "power_max_w": _maximum_without_nan([sample.peak_w for sample in samples]),
        "temperature_c": _maximum_without_nan([sample.temperature_c for sample in samples]),
        "power_limited_pct": _throttled_share(steady, _POWER),
        "heat_limited_pct": _throttled_share(steady, _HEAT),
        "setting_limited_pct": _throttled_share(steady, _SETTING),
        "memory_before_mib": _none_if_nan(samples[0].memory_mib),
        "busy_before_pct": _none_if_nan(samples[0].busy_pct),
        "memory_mib": _maximum_without_nan([sample.memory_mib for sample in samples]),
        "busy_pct": _mean_without_nan([sample.busy_pct for sample in steady]),
        "ecc_errors": _none_if_nan(samples[-1].ecc_errors - samples[0].ecc_errors),
    }
    powered = [(sample.time_s, sample.mean_w) for sample in samples if not math.isnan(sample.mean_w)]
    if not powered:
        return row | {"missing": "the driver does not tell the power of this GPU"}
    if len(steady) < FEWEST_SAMPLES:
        return row | {"missing": f"{len(steady)} samples of the GPU at work, and its energy needs {FEWEST_SAMPLES}"}
    times, watts = zip(*powered, strict=True)
    start = times[0] if start_s is None else start_s
    end = times[-1] if end_s is None else end_s
    row["energy_j"], row["energy_error_j"] = energy_with_error_joules(
        times, watts, start_s=start, end_s=max(start, end)
    )
    span = steady[-1].time_s - steady[0].time_s
    joules, error = energy_with_error_joules(times, watts, start_s=steady[0].time_s, end_s=steady[-1].time_s)
    return row | {"power_w": joules / span, "power_error_w": error / span, "missing": None}


def _samples_at_work(samples: Sequence[_GpuSample]) -> Sequence[_GpuSample]:
    """The samples from the GPU's first work to its last, less what the means of the last second reach over."""
    busy = [sample.time_s for sample in samples if sample.busy_pct > 0]
    if not busy:
        return []
    start, end = busy[0] + _AVERAGED_S, busy[-1] - _AVERAGED_S
    return [sample for sample in samples if start <= sample.time_s <= end]


def _throttled_share(samples: Sequence[_GpuSample], mask: int) -> float | None:
    """The share of samples in which one of these reasons held the clock down, in percent."""
    if not samples:
        return None
    return 100 * sum(bool(sample.reasons & mask) for sample in samples) / len(samples)


def _host_condition_row(loads: Sequence[_HostLoadSample]) -> dict[str, Any]:
    if len(loads) < 2:
        return {}
    first, last = loads[0], loads[-1]
    ticks = [b - a for a, b in zip(first.jiffies, last.jiffies, strict=False)]
    total, seconds = sum(ticks), last.time_s - first.time_s
    if total <= 0 or seconds < _SHORTEST_S or len(ticks) < 8:  # user nice system idle iowait irq softirq steal
        return {}
    return {
        # what runs this moment: a load of one minute still counts the run before
        "load_before": min(first.load, float(max(first.running - 1, 0))),
        "cores": round(total / _HERTZ / seconds),
        "cpu_busy_pct": 100 * (total - ticks[3] - ticks[4]) / total,
        "steal_pct": 100 * ticks[7] / total,
        "cpu_mhz": _mean_without_nan([khz / 1000 for load in loads for khz in load.khz]),
    }


def _without_nan(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _median_without_nan(values: Sequence[float]) -> float | None:
    return statistics.median(known) if (known := _without_nan(values)) else None


def _mean_without_nan(values: Sequence[float]) -> float | None:
    return statistics.fmean(known) if (known := _without_nan(values)) else None


def _maximum_without_nan(values: Sequence[float]) -> float | None:
    return max(_without_nan(values), default=None)


# --- the file -------------------------------------------------------------------------------------------------------


def _read_nodes(samples_file: Path) -> list[_NodeSamples]:
    """The nodes of a file; a line that was cut off is passed over."""
    nodes: list[_NodeSamples] = []
    titles: list[str] = []
    with open_text(samples_file, errors="replace") as lines:
        for line in lines:
            text = line.strip()
            if text.startswith("node="):
                nodes.append(_NodeSamples(text.removeprefix("node=")))
            elif nodes and text.startswith("host,"):
                if (load := _parse_host_load(text)) is not None:
                    nodes[-1].loads.append(load)
            elif text.startswith("timestamp, "):
                titles = [title.partition(" ")[0] for title in text.split(", ")]
            elif nodes and text:
                _add_sample_line(nodes[-1], text, titles)
    return nodes


def _add_sample_line(node: _NodeSamples, text: str, titles: Sequence[str]) -> None:
    (values,) = csv.reader([text], skipinitialspace=True)
    row = dict(zip(titles, values, strict=False))
    time_s = _parse_unix_seconds(row.get("timestamp", ""))
    if time_s is None:
        node.message = node.message or text
    elif len(values) == len(titles):
        node.gpus.setdefault(row["uuid"], []).append(
            _GpuSample(
                time_s,
                _first_number_of_columns(row, "clocks.current.sm"),
                _first_number_of_columns(row, "clocks.max.sm"),
                _first_number_of_columns(row, "clocks.current.memory"),
                _first_number_of_columns(row, "power.draw.instant", "power.draw"),
                _first_number_of_columns(row, "power.draw.average", "power.draw"),
                _first_number_of_columns(row, "temperature.gpu"),
                _parse_throttle_mask(
                    row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active") or ""
                ),
                _first_number_of_columns(row, "memory.used"),
                _first_number_of_columns(row, "utilization.gpu"),
                _first_number_of_columns(row, "ecc.errors.uncorrected.volatile.total"),
            )
        )


def _parse_host_load(text: str) -> _HostLoadSample | None:
    try:
        _, seconds, load, jiffies, khz = text.split(",")
        words = load.split()
        return _HostLoadSample(
            float(seconds), float(words[0]), int(words[3].partition("/")[0]),
            tuple(int(word) for word in jiffies.split()), tuple(float(word) for word in khz.split()),
        )  # fmt: skip
    except (ValueError, IndexError):
        return None


def _parse_unix_seconds(text: str) -> float | None:
    """Unix seconds of nvidia-smi's `2026/11/28 15:13:21.847`, which the job asks for in UTC."""
    try:
        return datetime.strptime(text, "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _first_number_of_columns(row: dict[str, str], *column_names: str) -> float:
    """The first of these that is a number, else nan: `[N/A]`, `[Not Supported]`."""
    for name in column_names:
        try:
            return float(row[name])
        except (KeyError, ValueError):
            continue
    return math.nan


def _parse_throttle_mask(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return 0
