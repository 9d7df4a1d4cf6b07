"""One iteration of a case as a timeline: the GPU's work by process and stream, NVTX ranges, and nsys's samples.

It is the steady iteration of median duration. Processes of one report share its clock; several reports have one by
the collectives that they share, and else begin at their own start of that iteration. Neighbours too short to be seen
become one box.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Column, Evidence, Lanes
from nsw.analysis.clocks import clocks_by_report
from nsw.analysis.gpu_metrics import SHARES
from nsw.analysis.groups import group_by, sum_by
from nsw.analysis.kernel_classes import classify_gpu_operation
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

__all__ = ["BOXES", "TIMELINE", "iteration_lanes", "process_key_in_run", "process_labels"]

TIMELINE: Final = "timeline"
BOXES: Final = 2_000  # of a plot that is a picture
ZOOMED: Final = 50_000  # of one that can be zoomed
_DEPTH: Final = 3  # NVTX ranges inside each other
_GRAIN: Final = 2_000  # of the iteration's time: what is shorter can hardly be seen
_RANGES: Final = "NVTX"
_SAMPLES: Final = "samples"
_THREADS: Final = "CPU"
_THREAD_LANES: Final = 4  # of a process
_RAN: Final = 0.01  # of the iteration: threads that ran less have no lane
_BINS, _ZOOMED_BINS = 100, 2_000  # of a lane of samples, in a picture and in one that can be zoomed


@dataclass(frozen=True, slots=True)
class _Box:
    """A stretch of a lane, ns since the iteration's start."""

    process: str
    lane: str
    start: float
    end: float
    name: str
    group: str
    operations: int = 1
    level: float | None = None  # of a sample, in percent


def iteration_lanes(
    case: str, gpu: Sequence[Row], nvtx: Sequence[Row], iterations: Sequence[Row], samples: Sequence[Row] = (),
    threads: Sequence[Row] = (), collectives: Sequence[Row] = (), *, classes: Mapping[str, str] | None = None,
    boxes: int = BOXES,
) -> Lanes | None:  # fmt: skip
    """The timeline of one iteration; None where no iterations are known.

    Args:
        case: The case.
        gpu: Rows of gpu_trace of one of its runs.
        nvtx: Rows of nvtx_trace.
        iterations: Rows of iteration_trace.
        samples: Rows of gpu_metric_trace.
        threads: Rows of cpu_trace.
        collectives: Rows of collectives: several reports that share some are shown by one clock.
        classes: Classes of kernels that the recipe names.
        boxes: How many there may be in a picture: shorter ones become one with their neighbours.
    """
    steady = [row for row in iterations if row["phase"] == "steady" and row["duration_ns"]]
    if not steady:
        return None
    ranked = sorted(
        (row for row in steady if process_key_in_run(row) == process_key_in_run(steady[0])),
        key=lambda row: row["duration_ns"],
    )
    middle = ranked[len(ranked) // 2]
    span, number = middle["duration_ns"], middle["iteration"]
    starts = {middle["report"]: middle["start_ns"]}
    for row in steady:
        if row["iteration"] == number:
            starts.setdefault(row["report"], row["start_ns"])
    clocks = clocks_by_report(collectives)
    if starts.keys() <= clocks.keys():
        start = clocks[middle["report"]].to_reference(middle["start_ns"])
        starts = {report: round(clocks[report].from_reference(start)) for report in starts}
    names = process_labels([*gpu, *nvtx], iterations)
    all_boxes = [*_gpu_boxes(gpu, starts, span, names, classes), *_nvtx_range_boxes(nvtx, starts, span, names)]
    all_boxes += _longest_thread_boxes(_rows_in_iteration(threads, starts, span), span, names)
    sampled = _rows_in_iteration(samples, starts, span)
    levels = bool(sampled)
    rows, every = (
        tuple(
            (b.process, b.lane, b.start, b.end - b.start, b.name, b.group, b.operations, *((b.level,) * levels))
            for b in sorted(
                [*_limit_box_count(all_boxes, most, grain), *_sampled_metric_boxes(sampled, names, span / bins)],
                key=_box_sort_key,
            )
        )
        for most, grain, bins in ((boxes, span / _GRAIN, _BINS), (ZOOMED, 0.0, _ZOOMED_BINS))
    )
    columns = (
        Column("process", "process", "name"), Column("lane", "stream", "name"), Column("start_ns", "start", "ns"),
        Column("length_ns", "duration", "ns"), Column("name", "what", "name"), Column("class", "class"),
        Column("operations", "operations", "count"), *((Column("level_pct", "level", "%"),) if sampled else ()),
    )  # fmt: skip
    return Lanes(
        TIMELINE, f"iteration {number} of {case}", columns, rows, lane=("process", "lane"), start="start_ns",
        length="length_ns", label="name", series=("class",), level=("level_pct",) if sampled else (), case=case,
        shown="data",
        unmerged=every if len(every) > len(rows) else (),
        evidence=(Evidence("gpu_trace", (case,)), Evidence("nvtx_trace", (case,))),
    )  # fmt: skip


def process_key_in_run(row: Row) -> tuple[Any, ...]:
    """The process that a row is of."""
    return row.get("report"), row.get("rank"), row.get("pid")


def process_labels(rows: Iterable[Row], iterations: Iterable[Row] = ()) -> dict[tuple[Any, ...], str]:
    """Each process by its rank, else by the GPUs that it works on, else by its number.

    Args:
        rows: Rows of traces.
        iterations: Rows of iteration_trace: of a process that has some they tell its GPUs.
    """
    devices, worked_on = _gpus_by_process(rows), _gpus_by_process(iterations)
    names = {}
    for key, process_devices in devices.items():
        known = sorted(worked_on.get(key) or process_devices)
        _, rank, pid = key
        names[key] = (
            f"rank {rank}" if rank is not None else
            f"GPU {', '.join(map(str, known))}" if known else f"process {pid}" if pid is not None else "process"
        )  # fmt: skip
    if len(set(names.values())) < len(names):
        names = {key: f"{name}, process {key[2]}" for key, name in names.items()}
    return names


def _gpus_by_process(rows: Iterable[Row]) -> dict[tuple[Any, ...], set[Any]]:
    """The GPUs of each process, as far as they are known."""
    return {
        process: {row.get("device") for row in process_rows} - {None}
        for process, process_rows in group_by(rows, process_key_in_run).items()
    }


def _rows_in_iteration(rows: Iterable[Row], starts: Mapping[Any, float], span: float) -> list[tuple[float, float, Row]]:
    """The rows that are at work in the iteration, with start and end cut to it."""
    cut_rows = []
    for row in rows:
        if row.get("duration_ns") is None or row.get("report") not in starts:
            continue
        start = row["start_ns"] - starts[row["report"]]
        end = start + row["duration_ns"]
        if end > 0 and start < span:
            cut_rows.append((max(start, 0.0), min(end, span), row))
    return cut_rows


def _gpu_boxes(
    rows: Iterable[Row], starts: Mapping[Any, float], span: float, names: Mapping[tuple[Any, ...], str],
    classes: Mapping[str, str] | None,
) -> list[_Box]:  # fmt: skip
    within = _rows_in_iteration(rows, starts, span)
    several = {process for process, some in _gpus_by_process(row for _, _, row in within).items() if len(some) > 1}

    def lane_name(row: Row) -> str:
        stream = f"stream {row['stream']}" if row.get("stream") is not None else "GPU"
        return f"GPU {row['device']}, {stream}" if process_key_in_run(row) in several else stream

    return [
        _Box(names[process_key_in_run(row)], lane_name(row), start, end, row.get("short_name") or row["name"],
             classify_gpu_operation(row["name"], row["kind"], classes))
        for start, end, row in within
    ]  # fmt: skip


def _nvtx_range_boxes(
    rows: Iterable[Row], starts: Mapping[Any, float], span: float, names: Mapping[tuple[Any, ...], str]
) -> list[_Box]:
    """The ranges, those inside others in lanes below them."""
    range_boxes: list[_Box] = []
    open_: dict[tuple[Any, ...], list[float]] = {}
    for start, end, row in sorted(_rows_in_iteration(rows, starts, span), key=lambda item: (item[0], -item[1])):
        ends = open_.setdefault((*process_key_in_run(row), row.get("tid")), [])
        while ends and ends[-1] <= start:
            ends.pop()
        ends.append(end)
        if len(ends) <= _DEPTH:
            lane = _RANGES if len(ends) == 1 else f"{_RANGES}, level {len(ends)}"
            range_boxes.append(_Box(names[process_key_in_run(row)], lane, start, end, row["name"] or "", _RANGES))
    return range_boxes


def _longest_thread_boxes(
    runs: Iterable[tuple[float, float, Row]], span: float, names: Mapping[tuple[Any, ...], str]
) -> list[_Box]:
    """When the threads ran that ran longest, of each process with GPU work or ranges."""
    by_thread: dict[tuple[Any, ...], list[_Box]] = {}
    for start, end, row in runs:
        if (process := names.get(process_key_in_run(row))) is not None:
            lane = f"CPU, {row['name'] or 'thread'} {row['tid']}"
            box = _Box(process, lane, start, end, f"{row['name'] or 'thread'} on a CPU", _THREADS)
            by_thread.setdefault((*process_key_in_run(row), row["tid"]), []).append(box)
    ran = {thread: sum(box.end - box.start for box in boxes) for thread, boxes in by_thread.items()}
    longest: dict[tuple[Any, ...], list[_Box]] = {}
    for thread in sorted(ran, key=lambda thread: -ran[thread]):
        process_lanes = longest.setdefault(thread[:-1], [])
        if ran[thread] >= _RAN * span and len({box.lane for box in process_lanes}) < _THREAD_LANES:
            process_lanes += by_thread[thread]
    return [box for boxes in longest.values() for box in boxes]


def _sampled_metric_boxes(
    sampled: Iterable[tuple[float, float, Row]], names: Mapping[tuple[Any, ...], str], width: float
) -> list[_Box]:
    """The samples, a lane a share; those that begin within the same width (ns) become one with their mean."""
    bins: dict[tuple[str, str, int], list[tuple[float, float, float]]] = {}
    for start, end, row in sampled:
        process = names.get(process_key_in_run(row), f"GPU {row['device']}")
        for lane, columns in SHARES.items():
            if None not in (shares := [row[column] for column in columns]):
                bins.setdefault((process, lane, int(start / width)), []).append((start, end, sum(shares)))
    boxes = []
    for (process, lane, _), parts in bins.items():
        level = sum((end - start) * share for start, end, share in parts) / sum(end - start for start, end, _ in parts)
        name = f"{lane} {level:.0f} %"
        boxes.append(_Box(process, lane, parts[0][0], parts[-1][1], name, _SAMPLES, len(parts), min(level, 100.0)))
    return boxes


def _limit_box_count(boxes: Iterable[_Box], max_boxes: int, grain: float) -> list[_Box]:
    """The boxes by process and lane, so many at most: short neighbours, nearer than the grain (ns), become one."""
    ordered = sorted(boxes, key=_box_sort_key)
    while True:
        merged = [
            box for _, lane in groupby(ordered, lambda b: (b.process, b.lane)) for box in _merge_boxes(lane, grain)
        ]
        if len(merged) <= max_boxes:
            return merged
        grain = max(2 * grain, 1.0)


def _box_sort_key(box: _Box) -> tuple[Any, ...]:
    """By process and lane: threads, ranges, streams (7 before 16), samples."""
    kind = {_THREADS: 0, _RANGES: 1, _SAMPLES: 3}.get(box.group, 2)
    order = list(SHARES).index(box.lane) if box.group == _SAMPLES else len(box.lane)
    return len(box.process), box.process, kind, order, box.lane, box.start


def _merge_boxes(lane: Iterable[_Box], grain: float) -> list[_Box]:
    """Short boxes with a small gap between them as one, of the class that takes most of it."""
    runs: list[list[_Box]] = []
    for box in lane:
        last = runs[-1] if runs else None
        is_near = last is not None and box.start - last[-1].end < grain
        if last is not None and is_near and box.end - box.start < grain and last[-1].end - last[-1].start < grain:
            last.append(box)
        else:
            runs.append([box])
    return [run[0] if len(run) == 1 else _join_boxes_to_box(run) for run in runs]


def _join_boxes_to_box(run: Sequence[_Box]) -> _Box:
    took = sum_by((box.group, box.end - box.start) for box in run)
    largest = max(run, key=lambda box: box.end - box.start)
    name = f"{plural(len(run), 'short operation')}, the longest {largest.name}"
    first = run[0]
    end = max(box.end for box in run)
    return _Box(first.process, first.lane, first.start, end, name, max(took, key=lambda g: took[g]), len(run))
