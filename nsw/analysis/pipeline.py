"""Whether the ranks of a case are a pipeline, and how much of an iteration they wait for it to fill and drain.

Each boundary of two stages moves a micro-batch forward and its gradient back, so that how often ranks send and receive
tells their number: the first and the last stage have one boundary, those between them two. An all-to-all is sends and
receives too, but as many on each rank, and several in a kernel. A rank waits in kernels that receive, and behind its
last micro-batch in collectives.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from statistics import mean
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.groups import group_by, sum_by
from nsw.analysis.steady import process_key, process_label
from nsw.wording import singular_or_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = Mapping[str, Any]

__all__ = ["OF_PIPELINE", "Pipeline", "find_pipeline", "pipeline_text"]

OF_PIPELINE: Final = ("iterations", "communication", "bandwidth", "nvtx_summary", "ranks")

_KERNEL: Final = "SendRecv"
_RANGES: Final = ("ncclSend", "ncclRecv")
_RECORDED: Final = {"Send": 1.0, "Recv": 1.0, "AllToAll": inf}  # sends and receives a kernel
_ALL_TO_ALL: Final = 1.9  # sends and receives a kernel; a stage that does two in most does single ones too
_CLEARLY: Final = 1.25  # times what filling and draining take


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Ranks that hand micro-batches to each other.

    Attributes:
        stages: How many ranks a micro-batch passes.
        micro_batches: Of an iteration.
        chunks: Parts of the model that a rank has, more than one of an interleaved schedule.
        waiting_pct: What the mean rank waits, of an iteration.
        least_pct: What that rank waits which waits least.
        first_rank: Its name.
    """

    stages: int
    micro_batches: int
    chunks: int
    waiting_pct: float
    least_pct: float
    first_rank: str

    def bubble_pct(self, factor: int = 1) -> float:
        """What filling and draining take of an iteration of equal stages, with so many times the micro-batches."""
        return 100 * (self.stages - 1) / (factor * self.chunks * self.micro_batches + self.stages - 1)

    @property
    def is_uneven(self) -> bool:
        """Whether ranks wait for more than filling and draining."""
        return self.waiting_pct > _CLEARLY * self.bubble_pct()


def find_pipeline(tables: Mapping[str, Sequence[Row]]) -> Pipeline | None:
    """The pipeline that the ranks of a run are; None: they are none, or some of them have no report.

    Args:
        tables: The rows of OF_PIPELINE of the run, and those of phase_summary that are of no kernel.
    """
    parts = group_by(
        (row for row in tables["phase_summary"] if (row["summary"], row["phase"]) == ("communication", "steady")),
        _rank_key,
    )
    iterations = [row for row in tables["iterations"] if row["steady"] and row["avg_ns"]]
    talks = [{part["name"]: part for part in parts.get(_rank_key(row), ())} for row in iterations]
    launched = len(tables["ranks"]) or len(iterations)
    if len(iterations) < 2 or launched != len(iterations) or not all(_KERNEL in talk for talk in talks):
        return None
    operations = _operations_a_kernel(tables)
    each = [operations.get(_report_key(row)) for row in iterations]
    if any(count is not None and count > _ALL_TO_ALL for count in each):
        return None
    counts = [
        round(talk[_KERNEL]["calls"] / row["steady"] * (count or 1.0))
        for row, talk, count in zip(iterations, talks, each, strict=True)
    ]
    shape = _pipeline_shape(counts, is_known=None not in each)
    if shape is None:
        return None
    waits = _waiting_pct(iterations, talks)
    first = min(range(len(waits)), key=waits.__getitem__)
    row = iterations[first]
    name = process_label(row, row.get("device")).removeprefix("the process on ")
    return Pipeline(*shape, mean(waits), waits[first], name)


def pipeline_text(pipeline: Pipeline) -> str:
    """What the ranks wait for, beside what a pipeline of equal stages takes to fill and drain."""
    batches = singular_or_count(pipeline.micro_batches, "1 micro-batch", "micro-batches")
    chunks = f" in {pipeline.chunks} chunks a rank" if pipeline.chunks > 1 else ""
    reason = ": stages are uneven, or transfers slow" if pipeline.is_uneven else ""
    return (
        f"the ranks are a pipeline: the mean one waits {pipeline.waiting_pct:.0f} % of an iteration for the others,"
        f" {pipeline.first_rank} least, {pipeline.least_pct:.0f} %; {pipeline.stages} stages and {batches}{chunks} take"
        f" {pipeline.bubble_pct():.0f} % to fill and drain{reason}"
    )


def _operations_a_kernel(tables: Mapping[str, Sequence[Row]]) -> dict[Any, float]:
    """Sends and receives a kernel, where NCCL's ranges or PyTorch's records tell, of each report; all-to-alls: inf."""
    kernels = sum_by((_report_key(row), row["calls"]) for row in tables["communication"] if row["name"] == _KERNEL)
    counts: dict[Any, float] = {}
    for row in tables["bandwidth"]:
        count = _RECORDED.get(row["name"])
        if count is not None:
            counts[_report_key(row)] = max(count, counts.get(_report_key(row), 0.0))
    ranges = sum_by((_report_key(row), row["calls"]) for row in tables["nvtx_summary"] if row["name"] in _RANGES)
    return counts | {key: calls / kernels[key] for key, calls in ranges.items() if kernels.get(key)}


def _pipeline_shape(counts: Sequence[int], *, is_known: bool) -> tuple[int, int, int] | None:
    """Stages, micro-batches and chunks by how often each rank sends and receives in an iteration; None: no pipeline's.

    Args:
        counts: The sends and receives of each rank.
        is_known: Whether they are known to be of no all-to-all.
    """
    fewest, largest = min(counts), max(counts)
    if fewest == largest:  # each is first or last: of more than two ranks a ring has as many
        return (2, fewest // 2, 1) if is_known and len(counts) == 2 and fewest >= 2 else None
    boundary, ends = largest - fewest, counts.count(fewest)  # a chunk less at one end of a rank
    chunks, rest = divmod(largest, 2 * boundary)
    if rest or boundary % 2 or {*counts} != {fewest, largest} or 2 * len(counts) % ends:
        return None
    if not is_known and (chunks > 1 or boundary < 4):  # all-to-alls beside sends; halos of a grid
        return None
    return 2 * len(counts) // ends, boundary // 2, chunks


def _waiting_pct(iterations: Sequence[Row], talks: Sequence[Mapping[str, Row]]) -> list[float]:
    """What each rank waits in NCCL's kernels with no other kernel beside them, in per cent of its iteration."""
    own_ns = min(talk[_KERNEL]["min_ns"] for talk in talks)
    means = [
        {name: part["total_ns"] / row["steady"] for name, part in talk.items()}
        for row, talk in zip(iterations, talks, strict=True)
    ]
    shortest_ns = {name: min(times.get(name, 0.0) for times in means) for times in means for name in times}
    waits = []
    for row, talk, times in zip(iterations, talks, means, strict=True):
        shortest_ns[_KERNEL] = own_ns * talk[_KERNEL]["calls"] / row["steady"]
        waits_ns = sum(ns - shortest_ns[name] for name, ns in times.items())
        alone_pct = (row["med_communication_alone_pct"] or 0.0) * (row["med_gpu_busy_pct"] or 0.0) / 100
        waits.append(min(100 * waits_ns / row["avg_ns"], alone_pct))
    return waits


def _rank_key(row: Row) -> tuple[Any, ...]:
    return (*process_key(row), row.get("device"))


def _report_key(row: Row) -> tuple[Any, ...]:
    return row.get("run"), row.get("report")
