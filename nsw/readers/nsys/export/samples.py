"""What nsys sampled beside its traces: how busy the parts of a GPU were, in each phase of the usual iterations.

A sample (`--gpu-metrics-devices`) is the mean over the time from its timestamp to the next one: on an H100 at 10 kHz
the samples of `SMs Active` agree best with the kernels of the 100 us that follow. It counts for a phase in which nine
tenths of its time lie, so that a phase shorter than a sample has no figure rather than a wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nsw.readers.nsys.export.phases import Split, kernels_of, process_spans
from nsw.readers.nsys.export.source import Collected, Source, TableFault, has_columns
from nsw.readers.timeline.calls import Covered
from nsw.readers.timeline.gaps import usual_stretches
from nsw.readers.timeline.phases import COMMUNICATION, MEMORY, Operations, Timeline, of_each_device
from nsw.tables import Row
from nsw.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from nsw.readers.nsys.export.nvtx import Ranges
    from nsw.readers.timeline.statistics import IntArray

    FloatArray = np.ndarray[Any, np.dtype[np.float64]]

__all__ = ["GPU_METRICS", "Sampled", "gpu_metric_rows", "gpu_metric_trace", "gpu_samples", "processes_of_gpus"]


GPU_METRICS: Final = "GPU_METRICS"
_NAMES: Final = "TARGET_INFO_GPU_METRICS"
# how the metrics of nsys's sets for GPUs from Turing on begin, by column; of several that begin so the sum
_COLUMNS: Final = {
    "sms_active_pct": "SMs? Active", "sm_issue_pct": "SM Issue", "tensor_pct": "Tensor Active",
    "warps_pct": "Compute Warps in Flight", "dram_read_pct": "DRAM Read", "dram_write_pct": "DRAM Write",
    "pcie_rx_pct": "PCIe RX", "pcie_tx_pct": "PCIe TX", "nvlink_rx_pct": "NVLink RX", "nvlink_tx_pct": "NVLink TX",
}  # fmt: skip
_NAME: Final = re.compile("|".join(f"(?P<{column}>{name})" for column, name in _COLUMNS.items()))
_UNIT: Final = re.compile(r" \[(?!Throughput %\])")  # the same in warps, which is no share
_GPU: Final = 0xFF  # of a typeId: nsys's number of the GPU
_LATEST: Final = 2**61  # ns: sums and differences of times stay int64
_LARGEST: Final = 2**40  # a clock in Hz is among the values
_INSIDE: Final = 0.9  # of a sample's time
FEWEST: Final = 5  # samples of a figure
_MOST: Final = 20  # kernels and ranges, those of most time


@dataclass(frozen=True, slots=True)
class Sampled:
    """The samples of one GPU, in order: when each begins and how long the usual one lasts (ns); % by column, or NaN."""

    start: IntArray
    interval: int
    values: dict[str, FloatArray]

    @property
    def end(self) -> IntArray:
        """When each ends: the next one begins, or its usual time is over."""
        usual = self.start + self.interval
        return np.asarray(np.minimum(np.append(self.start[1:], usual[-1]), usual))


def gpu_samples(source: Source) -> dict[int, Sampled]:
    """The samples by nsys's number of the GPU, of the metrics that table `gpu_metrics` has.

    Raises:
        TableFault: The table is damaged, or its metrics have no names.
    """
    if not has_columns(source, GPU_METRICS, "typeId", "metricId", "value"):
        return {}
    clock = "timestamp" if has_columns(source, GPU_METRICS, "timestamp") else "rawTimestamp"
    columns = _columns_of_metrics(source)
    parts: dict[int, list[tuple[IntArray, ...]]] = {}
    for batch in source.scan(GPU_METRICS, [clock, "typeId", "metricId", "value"]):
        if not columns:
            raise TableFault(GPU_METRICS, f"its metrics have no names that nsw knows in {_NAMES}")
        if int(batch[clock].max()) > _LATEST or int(batch["value"].max()) > _LARGEST:
            raise TableFault(GPU_METRICS, "contains numbers that cannot be times or clocks")
        for group in np.unique(batch["typeId"]).tolist():
            metrics = [metric for of_group, metric in columns if of_group == group]
            # some versions write values below zero for none; NULL is below zero too
            chosen = (batch["typeId"] == group) & (batch[clock] >= 0) & (batch["value"] >= 0)
            rows = np.flatnonzero(chosen & np.isin(batch["metricId"], metrics))
            parts.setdefault(group, []).append(tuple(batch[c][rows] for c in (clock, "metricId", "value")))
    of_gpu = {}
    for group, some in parts.items():
        times, metric, value = (np.concatenate(column) for column in zip(*some, strict=True))
        start, at = np.unique(times, return_inverse=True)
        values: dict[str, FloatArray] = {}
        for (of_group, number), column in columns.items():
            if of_group == group:
                one = np.full(len(start), np.nan)
                one[at[metric == number]] = value[metric == number]
                values[column] = values[column] + one if column in values else one
        if len(start) > 1:
            of_gpu[group & _GPU] = Sampled(start, int(np.median(np.diff(start))), values)
    return of_gpu


def _columns_of_metrics(source: Source) -> dict[tuple[int, int], str]:
    """The column of each group and number of a metric; those that no column has are left out."""
    columns = {}
    for group, number, name in source.rows(_NAMES, ["typeId", "metricId", "metricName"]):
        match = _NAME.match(name) if isinstance(name, str) and not _UNIT.search(name) else None
        if match and match.lastgroup:
            columns[group, number] = match.lastgroup
    return columns


def processes_of_gpus(source: Source) -> dict[tuple[int | None, int], int]:
    """The number that nsys gives a GPU, by process and its ordinal there; by None and the ordinal of all processes."""
    gpus: dict[tuple[int | None, int], int] = {
        (None, ordinal): gpu
        for gpu, ordinal in source.rows("TARGET_INFO_GPU", ["id", "cuDevice"])
        if isinstance(gpu, int) and isinstance(ordinal, int)
    }
    for gpu, ordinal, process in source.rows("TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId", "pid"]):
        if isinstance(gpu, int) and isinstance(ordinal, int):
            gpus[process, ordinal] = gpu
    return gpus


def _sampled_work(
    samples: Mapping[int, Sampled], timelines: Sequence[Timeline], gpus: Mapping[tuple[int | None, int], int]
) -> Iterator[tuple[int, Timeline, int, Operations]]:
    """Each GPU that was sampled with a process that works on it, the process's ordinal of it, and its work there."""
    for timeline in timelines if samples else ():
        process = timeline.origin.get("pid")
        for device, work in of_each_device(timeline.work, timeline.phased):
            gpu = gpus.get((process, device), gpus.get((None, device), device))
            if gpu in samples:
                yield gpu, timeline, device, work


def gpu_metric_rows(
    samples: Mapping[int, Sampled], timelines: Sequence[Timeline], gpus: Mapping[tuple[int | None, int], int], *,
    kernels: Collected | None, names: Mapping[int, str], split: Split, ranges: Ranges | None,
) -> list[Row]:  # fmt: skip
    """Rows of `gpu_metrics`: of each GPU with samples, by part of the time of the usual iterations.

    Args:
        samples: The samples by GPU.
        timelines: The processes.
        gpus: What `processes_of_gpus` gives.
        kernels: The kernels of the report.
        names: Their names, by key.
        split: The processes and their phases.
        ranges: The NVTX ranges.
    """
    rows: list[Row] = []
    for gpu, timeline, device, work in _sampled_work(samples, timelines, gpus):
        sampled, process = samples[gpu], timeline.origin.get("pid")
        start, end = sampled.start, sampled.end
        stretches = usual_stretches(work, timeline.phased)
        most = _INSIDE * np.maximum(end - start, 1)
        usual = Covered(stretches[0], stretches[1] - stretches[0]).covered_within(start, end) >= most
        phase = "all" if timeline.phased is None else "steady"
        shared: Row = timeline.origin | {"device": device, "phase": phase, "interval_ns": sampled.interval}
        for part, time, covered in _iteration_parts(work, stretches, (start, end)):
            if time:
                rows.append(
                    shared | {"part": part, "time_ns": time} | _mean_figures(sampled, usual & (covered >= most))
                )
        for part, name, spans in (
            *_kernel_spans(kernels, names, split, process, device),
            *_range_spans(work, ranges, process),
        ):
            figures = _mean_figures(sampled, usual & (spans.covered_within(start, end) >= most))
            if "missing" not in figures:
                time = float(spans.covered_within(*stretches).sum())
                rows.append(shared | {"part": part, "name": name, "time_ns": time} | figures)
    return rows


def _iteration_parts(
    work: Operations, stretches: tuple[IntArray, IntArray], moments: tuple[IntArray, IntArray]
) -> Iterator[tuple[str, float, IntArray]]:
    """The parts of an iteration: name, time (ns), and how much of each sample lies in it."""
    any_kernel, own = work.category != MEMORY, (work.category != MEMORY) & (work.category != COMMUNICATION)
    computing, kernels, busy = (Covered(work.start[c], work.duration[c]) for c in (own, any_kernel, slice(None)))
    everything = Covered(stretches[0], stretches[1] - stretches[0])
    before: Any = Covered(work.start[:0], work.duration[:0])
    yield "iteration", float(everything.covered_within(*stretches).sum()), everything.covered_within(*moments)
    for part, covered in (("computing", computing), ("nccl", kernels), ("copies", busy), ("idle", everything)):
        time = float((covered.covered_within(*stretches) - before.covered_within(*stretches)).sum())
        yield part, time, covered.covered_within(*moments) - before.covered_within(*moments)
        before = covered


def _mean_figures(sampled: Sampled, chosen: Any) -> Row:
    """The means of the chosen samples; where they are too few, why there are none."""
    count = int(chosen.sum())
    if count < FEWEST:
        every = f"{sampled.interval / 1000:,.0f} us"
        return {"samples": count, "missing": f"{plural(count, 'sample')} of {every}, and {FEWEST} are needed"}
    known = {column: values[chosen & ~np.isnan(values)] for column, values in sampled.values.items()}
    return {"samples": count} | {column: float(values.mean()) for column, values in known.items() if len(values)}


def _kernel_spans(
    kernels: Collected | None, names: Mapping[int, str], split: Split, process: int | None, device: int
) -> Iterator[tuple[str, str, Covered]]:
    """When each of the kernels of most time was at work on a GPU."""
    if kernels is None:
        return
    key, start, end = kernels_of(split, kernels, process, device)
    distinct, of_kernel = np.unique(key, return_inverse=True)
    took = np.bincount(of_kernel, weights=end - start)
    for at in np.argsort(-took, kind="stable")[:_MOST].tolist():
        mine = of_kernel == at
        name = names.get(int(distinct[at]), f"string {distinct[at]}")
        yield "kernel", name, Covered(start[mine], end[mine] - start[mine])


def _range_spans(work: Operations, ranges: Ranges | None, process: int | None) -> Iterator[tuple[str, str, Covered]]:
    """When a GPU worked for each of the NVTX ranges of most time: from the first to the last of what one launched."""
    if ranges is None:
        return
    mine = process_spans(ranges, process)
    lasted = np.bincount(ranges.label[mine], weights=(ranges.end - ranges.start)[mine], minlength=len(ranges.labels))
    launched = work.launches()
    order = np.argsort(launched, kind="stable")
    launched = launched[order]
    start = np.append(work.start[order], np.iinfo(np.int64).max)  # the last one closes a range at the end
    end = np.append(work.ends(order), 0)
    for label in np.argsort(-lasted, kind="stable")[:_MOST].tolist():
        instances = np.flatnonzero(mine & (ranges.label == label))
        at = np.stack([np.searchsorted(launched, t[instances]) for t in (ranges.start, ranges.end)], axis=1)
        at = at[at[:, 0] < at[:, 1]].ravel()
        name = ranges.labels[label][2]
        if len(at) and lasted[label] and name is not None:
            first, last = np.minimum.reduceat(start, at)[::2], np.maximum.reduceat(end, at)[::2]
            yield "range", name, Covered(first, last - first)


def gpu_metric_trace(
    samples: Mapping[int, Sampled], timelines: Sequence[Timeline], gpus: Mapping[tuple[int | None, int], int]
) -> pa.Table:
    """A row a sample: of the process that works on the GPU, where there is one.

    Args:
        samples: The samples by GPU.
        timelines: The processes.
        gpus: What `processes_of_gpus` gives.
    """
    import pyarrow as pa

    from nsw.tables.parquet_tables import arrow_schema

    owners: dict[int, list[tuple[int | None, int]]] = {}
    for gpu, timeline, device, _ in _sampled_work(samples, timelines, gpus):
        owners.setdefault(gpu, []).append((timeline.origin.get("pid"), device))
    schema, tables = arrow_schema("gpu_metric_trace"), []
    for gpu, sampled in samples.items():
        process, device = owners[gpu][0] if len(owners.get(gpu, ())) == 1 else (None, gpu)
        constants = {"pid": process, "device": device}
        columns: dict[str, Any] = {"start_ns": sampled.start, "duration_ns": sampled.end - sampled.start}
        columns |= sampled.values
        arrays = [
            pa.array(columns[column.name], from_pandas=True).cast(column.type) if column.name in columns
            else pa.repeat(pa.scalar(constants.get(column.name), column.type), len(sampled.start))
            for column in schema
        ]  # fmt: skip
        tables.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(tables).sort_by("start_ns") if tables else schema.empty_table()
