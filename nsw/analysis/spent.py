"""Where the time of a case goes: an iteration of its steady state, as parts that add up to it.

A GPU's time is divided by what it did: computing (by class of kernel), copies alone, NCCL alone, idle. Alone is what
has no other kernel beside it, so copies beside NCCL are hidden. What is hidden is no part. The GPUs that processes work
on count with their mean; the one that is idle most stands beside it. A timeline without iterations has the classes of
all its GPU work, and no time without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from nsw.analysis.groups import group_by
from nsw.analysis.idle_gpu import highest_gpu_busy_pct
from nsw.analysis.kernel_classes import NCCL, OTHER_KERNELS, classify_gpu_operation, is_fp32_matrix_kernel
from nsw.analysis.steady import gpu_labels, rows_of_working_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.tables.columns import Columns

    Row = Mapping[str, Any]

__all__ = ["NOT_SHOWN", "Part", "Spent", "divide_time", "remove_profiler_idle_time"]

NOT_SHOWN = "not in the report"
_ALL_PCT, _TOGETHER_PCT = 97.0, 103.0  # that the printed shares of a table add up to, with what rounding adds
_SHORT_NS = 5e3  # a kernel that takes less is hardly more than its launch
_FEW, _NEARLY_ALL = 8, 0.95  # operations, and the share of all GPU work that one less takes
_MUCH = 0.25  # of all GPU work
_IN_FEW = 0.1  # times an iteration, below which an operation is of few iterations
_WORK_OF_MEDIAN = 0.95  # of its GPU time
_UNLIKE_WORK = 0.1  # by which the GPU's work of the mean iteration differs from that of the median one
_ARITHMETIC = ("GEMM", "convolution")


@dataclass(frozen=True, slots=True)
class Part:
    """GPU work of one class: ns of an iteration (of a run where there are none), operations likewise.

    `top` is the name of what takes most of it, `top_ns` its time.
    """

    name: str
    ns: float
    operations: float
    top: str
    top_ns: float


@dataclass(frozen=True, slots=True)
class Spent:
    """An iteration of a case, or its whole run.

    Attributes:
        is_iteration: Whether it is an iteration.
        span_ns: How long it takes; None where there are no iterations.
        is_mean: Whether it is the mean of all iterations, as where many pause; else it is the median one.
        parts: GPU work by class, most first; the sum of its operations' durations.
        shown: What a table shows: each operation where few take nearly all or most are of no known class; else `parts`.
        fp32_ns: Of that: GEMM and convolution in FP32 without tensor cores.
        short_pct: Share of the kernels that take less than 5 us, by their names' means.
        operations: GPU operations.
        computing_pct: Of the span: at least one kernel that is no NCCL's at work.
        copies_pct: Of the span: copies and sets with no kernel beside them.
        exposed_pct: Of the span: NCCL's kernels with no other kernel beside them.
        idle_pct: Of the span: no GPU work, the mean of the GPUs.
        most_idle_pct: The same of the GPU that is idle most.
        idle_gpus: The same of each, by name.
        hidden_pct: Of the span: NCCL's kernels beside other kernels.
    """

    is_iteration: bool
    span_ns: float | None
    parts: tuple[Part, ...]
    fp32_ns: float
    short_pct: float
    operations: float
    computing_pct: float | None = None
    copies_pct: float | None = None
    exposed_pct: float | None = None
    idle_pct: float | None = None
    most_idle_pct: float | None = None
    idle_gpus: tuple[tuple[str, float], ...] = ()
    hidden_pct: float | None = None
    shown: tuple[Part, ...] = ()
    is_mean: bool = False

    @property
    def gpu_ns(self) -> float:
        """The sum of the operations' durations."""
        return sum(part.ns for part in self.parts)

    def share_pct(self, name: str) -> float:
        """What a class takes of the GPU's work."""
        total_ns = self.gpu_ns
        return 100 * sum(part.ns for part in self.parts if part.name == name) / total_ns if total_ns else 0.0


def divide_time(
    gpu: Columns, iterations: Sequence[Row], runs: int, classes: Mapping[str, str] | None = None, *,
    shared: bool = False, is_mean: bool = False,
) -> Spent | None:  # fmt: skip
    """Where the time of a case goes; None without GPU work.

    Args:
        gpu: The rows of gpu_summary of its steady state.
        iterations: Its rows of table iterations.
        runs: How many runs the rows are of.
        classes: Those of the recipe, a pattern each.
        shared: Whether processes share a GPU: how the span is divided is not known then.
        is_mean: Whether the mean iteration is divided, as where many pause; else the median one.
    """
    if iterations:
        gpu = rows_of_working_gpus(gpu, iterations)
    # steady work is that of all iterations on all GPUs: of one iteration on one GPU the mean
    times = sum(row["steady"] for row in iterations) or max(runs, 1)
    gpu = gpu if is_mean else _rows_of_usual_iterations(gpu, iterations)
    mean_to_median = 1.0 if is_mean else _mean_to_median_work(gpu, iterations)
    spans = times * mean_to_median
    # operations are whole numbers where iterations are alike; else they are those of the usual one, as times are
    counted = spans if abs(mean_to_median - 1) >= _UNLIKE_WORK else times
    took: dict[str, dict[str, list[float]]] = {}  # by class and name
    fp32 = short = kernels = 0.0
    for operation, kind, short_name, total_ns, count in gpu.rows("name", "kind", "short_name", "total_ns", "calls"):
        ns, calls = total_ns or 0.0, count or 0
        name = classify_gpu_operation(operation, kind, classes)
        entry = took.setdefault(name, {}).setdefault(short_name or operation, [0.0, 0.0])
        entry[0] += ns / spans
        entry[1] += calls / counted
        if name in _ARITHMETIC and is_fp32_matrix_kernel(operation):
            fp32 += ns / spans
        if kind == "kernel" and name != NCCL:
            kernels += calls
            short += calls if ns < _SHORT_NS * calls else 0
    if not took:
        return None
    if not iterations and (unseen := _unlisted_gpu_ns(gpu)):
        took[NOT_SHOWN] = {"": [unseen / spans, 0.0]}
    parts = tuple(
        sorted((_make_part(name, operations) for name, operations in took.items()), key=lambda part: -part.ns)
    )
    common_fields = {
        "parts": parts,
        "shown": parts if classes else _parts_to_show(parts, took),
        "fp32_ns": fp32,
        "short_pct": 100 * short / kernels if kernels else 0.0,
        "operations": sum(part.operations for part in parts),
    }
    if not iterations:
        return Spent(is_iteration=False, span_ns=None, **common_fields)  # type: ignore[arg-type]  # of the dictionary's values
    divided: dict[str, Any] = {} if shared else _span_shares(iterations, is_mean=is_mean, has_nccl=NCCL in took)
    span_ns = _mean(row["avg_ns" if is_mean else "med_ns"] for row in iterations)
    return Spent(is_iteration=True, span_ns=span_ns, is_mean=is_mean, **common_fields, **divided)  # type: ignore[arg-type]


def _parts_to_show(parts: tuple[Part, ...], took: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[Part, ...]:
    """A part an operation where few of them take nearly all, or where names tell no class of much; else the classes."""
    # NCCL is one part, since it is known what of it is alone
    work = [(part.ns, part.operations, NCCL) for part in parts if part.name == NCCL]
    for name, operations in took.items():
        if name != NCCL:
            work += [(ns, calls, operation or name) for operation, (ns, calls) in operations.items()]
    work.sort(key=lambda operation: -operation[0])
    total_ns = sum(part.ns for part in parts)
    unknown = sum(part.ns for part in parts if part.name == OTHER_KERNELS)
    few = len(work) <= _FEW or sum(ns for ns, *_ in work[: _FEW - 1]) >= _NEARLY_ALL * total_ns
    if not few and unknown <= _MUCH * total_ns:
        return parts
    return tuple(Part(name, ns, calls, "", ns) for ns, calls, name in work)


def _rows_of_usual_iterations(gpu: Columns, iterations: Sequence[Row]) -> Columns:
    """The rows without operations of few iterations, which the median one does not have; all where the rest lacks work.

    Args:
        gpu: The rows of gpu_summary of the steady state, a row an operation and process.
        iterations: The rows of table iterations.
    """
    median = sum((row.get("med_gpu_ns") or 0.0) * row["steady"] for row in iterations)
    each = sum(row["steady"] for row in iterations) / max(len(iterations), 1)
    total_ns = gpu["total_ns"]
    usual = [n for n, calls in enumerate(gpu["calls"]) if calls is None or calls >= _IN_FEW * each]
    is_all_work = median and sum(total_ns[n] or 0.0 for n in usual) >= _WORK_OF_MEDIAN * median
    return gpu.at(usual) if is_all_work else gpu


def _mean_to_median_work(gpu: Columns, iterations: Sequence[Row]) -> float:
    """How many times the GPU's work of the mean iteration is that of the median one, which a long one does not move."""
    median = sum((row.get("med_gpu_ns") or 0.0) * row["steady"] for row in iterations)
    total_ns = sum(filter(None, gpu["total_ns"]))
    return total_ns / median if median and total_ns else 1.0


def _unlisted_gpu_ns(gpu: Columns) -> float:
    """GPU time of rows that a report leaves out, by the shares that it prints; 0 where it shows all, or prints none."""
    rows = [row for row in gpu.rows("kind", "time_pct", "total_ns") if row[0] != "um"]  # nvprof prints no shares of it
    if any(share is None for _, share, _ in rows):
        return 0.0
    separate_tables = sum(share for _, share, _ in rows) > _TOGETHER_PCT  # kernels and copies are tables of their own
    kernels, other_rows = ([row for row in rows if (row[0] == "kernel") is is_kernel] for is_kernel in (True, False))
    unseen = 0.0
    for table in (kernels, other_rows) if separate_tables else (rows,):
        shown_pct = sum(share for _, share, _ in table)
        if 0 < shown_pct < _ALL_PCT:
            unseen += sum(ns or 0.0 for *_, ns in table) * (100 - shown_pct) / shown_pct
    return unseen


def _make_part(name: str, operations: Mapping[str, Sequence[float]]) -> Part:
    times, calls = zip(*operations.values(), strict=True)
    top = max(operations, key=lambda operation: operations[operation][0])
    return Part(name, sum(times), sum(calls), top, operations[top][0])


def _span_shares(iterations: Sequence[Row], *, is_mean: bool, has_nccl: bool) -> dict[str, Any]:
    """How the span is divided, where every process tells it."""
    measured_rows = [row for row in iterations if row.get("med_gpu_busy_pct") is not None]
    if len(measured_rows) != len(iterations):
        return {}
    busy = [(row.get("gpu_busy_pct") if is_mean else highest_gpu_busy_pct(row)) or 0.0 for row in measured_rows]
    idle = [100 - share for share in busy]
    copies = [
        share * (row.get("med_memory_alone_pct") or 0.0) / 100 for share, row in zip(busy, measured_rows, strict=True)
    ]
    talk = [row.get("med_communication_alone_pct") if has_nccl else 0.0 for row in measured_rows]
    of_gpus = group_by(zip(gpu_labels(measured_rows), idle, strict=True), itemgetter(0))
    parts: dict[str, Any] = {
        "idle_pct": _mean(idle), "most_idle_pct": max(idle), "copies_pct": _mean(copies),
        "idle_gpus": tuple((name, _mean(share for _, share in shares)) for name, shares in of_gpus.items()),
    }  # fmt: skip
    if None in talk:  # the table was made before this was read
        return parts
    exposed = [share * (alone or 0.0) / 100 for share, alone in zip(busy, talk, strict=True)]
    talking = [row.get("med_communication_pct") or 0.0 for row in measured_rows]
    in_all = [
        share * (row.get("med_gpu_ns") or 0.0) / row["avg_ns" if is_mean else "med_ns"]
        for share, row in zip(talking, measured_rows, strict=True)
    ]
    parts["hidden_pct"] = max(0.0, _mean(in_all) - _mean(exposed))
    over = max(1.0, (_mean(copies) + _mean(exposed)) / (_mean(busy) or 1.0))  # medians of shares may exceed their whole
    parts["exposed_pct"], parts["copies_pct"] = _mean(exposed) / over, _mean(copies) / over
    parts["computing_pct"] = max(0.0, _mean(busy) - parts["exposed_pct"] - parts["copies_pct"])
    return parts


def with_mean_iteration(spent: Spent, iterations: Sequence[Row]) -> Spent:
    """The span of the mean iteration and its parts, in place of the median one's.

    Args:
        spent: Of the median iteration; that of the mean one, or of no iteration, is returned as it is.
        iterations: The case's rows of table iterations.
    """
    if spent.is_mean or spent.computing_pct is None or not iterations:
        return spent
    has_nccl = any(part.name == NCCL for part in spent.parts)
    shares = _span_shares(iterations, is_mean=True, has_nccl=has_nccl)
    return replace(spent, is_mean=True, span_ns=_mean(row["avg_ns"] for row in iterations), **shares)


def remove_profiler_idle_time(spent: Spent, slowed: float) -> Spent:
    """An iteration without what a profiler adds to its idle time.

    Args:
        spent: As it was measured.
        slowed: How many times slower the program is under the profiler; from where nothing is idle on no more counts.
    """
    if spent.idle_pct is None or spent.most_idle_pct is None or slowed <= 1 or spent.idle_pct >= 100:
        return spent
    slowed = min(slowed, 100 / (100 - spent.idle_pct))

    def scale_share(share: float | None) -> float | None:
        return None if share is None else share * slowed

    def scale_idle_share(share: float) -> float:
        return max(0.0, 100 - (100 - share) * slowed)

    return replace(
        spent,
        span_ns=None if spent.span_ns is None else spent.span_ns / slowed,
        computing_pct=scale_share(spent.computing_pct), copies_pct=scale_share(spent.copies_pct),
        exposed_pct=scale_share(spent.exposed_pct), hidden_pct=scale_share(spent.hidden_pct),
        idle_pct=scale_idle_share(spent.idle_pct), most_idle_pct=scale_idle_share(spent.most_idle_pct),
        idle_gpus=tuple((name, scale_idle_share(share)) for name, share in spent.idle_gpus),
    )  # fmt: skip


def _mean(values: Iterable[float]) -> float:
    value_list = list(values)
    return sum(value_list) / len(value_list)
