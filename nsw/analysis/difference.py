"""What did it: the difference in time between two sides of a case, as parts that add up to it.

Where both sides have iterations, the difference is that of an iteration of the steady state: kernels (those that
came, went, or take another time), what runs beside other work, copies alone, NCCL alone, idle. Else it is that of all
GPU work. A kernel that is gone and one that came are the same under another name where class, number of launches and,
as far as both are known, the launch's shape and NVTX range agree.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from nsw.analysis.groups import group_by, sum_by, sum_times_and_calls
from nsw.analysis.kernel_classes import COPIES, NCCL, SETS, classify_gpu_operation
from nsw.analysis.steady import steady_state_rows
from nsw.quantities import format_ns, format_sum_and_parts
from nsw.tables.names import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

    Row = Mapping[str, Any]

__all__ = [
    "Change",
    "Difference",
    "Operation",
    "add_shapes_and_ranges",
    "changes_by_operation",
    "explain_difference",
    "gpu_operations_by_name",
    "renamed_kernel_names",
]

_PRODUCTS: Final = frozenset({"GEMM", "convolution"})
ChangeKind = Literal["gone", "new", "renamed", "changed"]
_ALIKE: Final = 0.02  # of the number of launches an iteration
_UNEXPLAINED: Final = 0.5  # of a figure's gain, which the time of an iteration does not show
_HARDLY: Final = 0.5  # of the logarithm of an iteration's change: the traced time changes much less
_ALIKE_WHOLE: Final = 0.01  # of their logarithms: changes of an iteration and of the traced time that are the same
_MIN_SHARE: Final = 0.15  # of the difference: a smaller part has no place in the sentence
_MAX_PARTS: Final = 3  # parts in the sentence
_MAX_GROUPS: Final = 3  # and classes of the other kernels
_NUMBER: Final = re.compile(r"\d+")
_IDLE: Final = "idle"
_OVERLAPPED: Final = "beside other work"


@dataclass(frozen=True, slots=True)
class Operation:
    """A kernel, or a kind of copy, of an iteration (of a run without iterations): ns and how often it ran.

    `shapes` and `ranges`: its launches' shapes and NVTX ranges, where they are known.
    """

    name: str
    kind: str
    group: str
    ns: float
    calls: float
    shapes: frozenset[str] = frozenset()
    ranges: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A part of the difference: `ns` is what the second side takes more.

    Attributes:
        what: A kernel, `idle`, `NCCL` alone, `copies` alone, `beside other work`.
        how: Of a kernel what became of it; None for other parts.
        before: ns of the first side.
        after: ns of the second side.
        renamed: The kernel's name on the second side, where it has another.
        group: A kernel's class; empty for other parts.
    """

    what: str
    how: ChangeKind | None
    before: float
    after: float
    renamed: str | None = None
    group: str = ""

    @property
    def ns(self) -> float:
        """What the second side takes more."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Difference:
    """All parts; their sum is `after` less `before`, the time of an iteration, or of all GPU work (`of_iteration`).

    `is_mean`: of the mean iteration, else of the median one. `slowest` says which iteration the mean follows from.
    `traced_ns`: how long each side is traced, from its first CUDA call to its last; 0 where that is not known.
    """

    case: str
    of_iteration: bool
    before: float
    after: float
    changes: tuple[Change, ...]
    is_mean: bool = False
    slowest: str = ""
    traced_ns: tuple[float, float] = (0.0, 0.0)

    @property
    def ns(self) -> float:
        """What the second side takes more."""
        return self.after - self.before

    @property
    def log_gain(self) -> float:
        """The logarithm by which the second side is faster; 0 where a side takes no time."""
        return math.log(self.before / self.after) if self.before > 0 and self.after > 0 else 0.0

    def explains(self, gain: float) -> bool:
        """Whether a figure changes about alike: `gain` is the logarithm by which the second side is better."""
        return abs(gain - self.log_gain) <= _UNEXPLAINED * abs(gain)

    @property
    def traced_sentence(self) -> str:
        """How long both sides are traced, where that changes unlike the iterations; else empty."""
        before, after = self.traced_ns
        if not self.of_iteration or not before or not after:
            return ""
        if abs(math.log(before / after) - self.log_gain) <= _ALIKE_WHOLE:
            return ""
        return f"From the first CUDA call to the last they take {format_ns(before)} and {format_ns(after)}."

    @property
    def traced_change(self) -> str:
        """How long both sides are traced, where little of what iterations win shows in it; else empty."""
        before, after = self.traced_ns
        is_much_less = self.traced_sentence and abs(math.log(before / after)) < _HARDLY * abs(self.log_gain)
        return f"from the first CUDA call to the last {format_ns(before)} -> {format_ns(after)}" if is_much_less else ""

    @property
    def sentence(self) -> str:
        """The parts that weigh most and the rest, which add up: `gemm_a is gone, 1.200 ms less; idle 0.300 ms more`."""
        min_ns = _MIN_SHARE * max(abs(self.ns), 0.01 * self.before)
        parts = [change for change in self.changes if abs(change.ns) >= min_ns and change.what != _OVERLAPPED]
        parts = parts[:_MAX_PARTS]
        groups = sum_by((c.group, c.ns) for c in self.changes if c.group and c not in parts)  # of many small ones
        parts += [
            Change(f"other {group}" if any(p.group == group for p in parts) else group, None, 0.0, ns, group=group)
            for group, ns in sorted(groups.items(), key=lambda item: -abs(item[1]))[:_MAX_GROUPS]
            if abs(ns) >= min_ns
        ]
        rest = self.ns - sum(change.ns for change in parts)
        longer, (*sizes, rest_size) = format_sum_and_parts([*(change.ns for change in parts), rest])
        subject = "The mean iteration" if self.is_mean else "An iteration" if self.of_iteration else "The GPU's work"
        phrases = [_change_sentence(change, size) for change, size in zip(parts, sizes, strict=True) if size]
        phrases += [f"the rest takes {rest_size}"] if phrases and rest_size else []
        return f"{subject} takes {longer or 'as long'}" + (f": {'; '.join(phrases)}" if phrases else "")


def _change_sentence(change: Change, size: str) -> str:
    if change.how in {"gone", "new"}:
        return f"{change.what} is {change.how}, {size}"
    if change.how == "renamed":
        return f"{change.what} is {change.renamed} now, {size}"
    if change.what == _IDLE:
        return f"the GPU waits {size} for the host"
    if change.what == NCCL:
        return f"NCCL alone takes {size}"
    if change.group and change.how is None:
        return f"{change.what.removesuffix(' kernels')} kernels take {size}"
    if change.what == COPIES and change.how is None:
        return f"copies alone take {size}"
    return f"{change.what} takes {size}"


def gpu_operations_by_name(
    gpu: Iterable[Row],
    parts: Iterable[Row],
    iterations: Iterable[Row],
    runs: int,
    classes: Mapping[str, str] | None = None,
) -> list[Operation]:
    """What a GPU did in an iteration, by name; of the whole run where there are none.

    Args:
        gpu: Rows of gpu_summary of the side's runs.
        parts: Rows of phase_summary.
        iterations: Rows of iterations.
        runs: How many runs the rows are of.
        classes: Those of the recipe, a pattern each.
    """
    times = sum(row["steady"] for row in iterations) or max(runs, 1)
    sums = sum_times_and_calls(
        ((row["name"], row["kind"]), (row.get("total_ns") or 0.0) / times, (row.get("calls") or 0.0) / times)
        for row in steady_state_rows("gpu_summary", gpu, parts)
    )
    return [
        Operation(name, kind, classify_gpu_operation(name, kind, classes), ns, calls)
        for (name, kind), (ns, calls) in sums.items()
    ]


def renamed_kernel_names(first: Sequence[Operation], second: Sequence[Operation]) -> frozenset[str]:
    """The kernels that are gone or new and may be the same: their classes and launches are alike."""
    vanished, new = _operations_without_partner(first, second), _operations_without_partner(second, first)
    return frozenset(
        name for old in vanished for now in new if _count_matching_marks(old, now) is not None
        for name in (old.name, now.name)
    )  # fmt: skip


def _operations_without_partner(side: Sequence[Operation], other: Sequence[Operation]) -> list[Operation]:
    names = {(o.name, o.kind) for o in other}
    return [o for o in side if (o.name, o.kind) not in names]


def add_shapes_and_ranges(
    work: Sequence[Operation], trace: Iterable[Row], calls: Iterable[Row], ranges: Iterable[Row]
) -> list[Operation]:
    """Operations with the shapes of their launches and the innermost NVTX ranges around these.

    Args:
        work: The operations.
        trace: Rows of gpu_trace of one of the side's runs.
        calls: Rows of api_trace, by whose correlation a launch finds its thread; none where they are not known.
        ranges: Rows of nvtx_trace.
    """
    spans = group_by(
        (r for r in ranges if r.get("style") == "pushpop" and r.get("duration_ns") is not None and r.get("name")),
        lambda row: (row.get("pid"), row.get("tid")),
    )
    ordered = {
        thread: sorted((row["start_ns"], row["start_ns"] + row["duration_ns"], row["name"]) for row in rows)
        for thread, rows in spans.items()
    }
    outer = {thread: _outer_ranges(spans) for thread, spans in ordered.items()}
    launched = {row["correlation"]: row for row in calls if row.get("correlation") is not None}
    shapes: dict[str, set[str]] = {}
    inside: dict[str, set[str]] = {}
    for row in trace:
        sizes = [row.get(f"{dimension}_{axis}") for dimension in ("grid", "block") for axis in "xyz"]
        if None not in sizes:
            shapes.setdefault(row["name"], set()).add(str(sizes))
        call = launched.get(row.get("correlation"))
        thread = (None, None) if call is None else (call.get("pid"), call.get("tid"))
        if call is None or thread not in ordered:
            continue
        if (name := _innermost_range(ordered[thread], outer[thread], call["start_ns"])) is not None:
            inside.setdefault(row["name"], set()).add(name)
    return [
        replace(o, shapes=frozenset(shapes.get(o.name, ())), ranges=frozenset(inside.get(o.name, ()))) for o in work
    ]


def _outer_ranges(spans: Sequence[tuple[int, int, str]]) -> list[int]:
    """Of each range, in order of their starts, which one is around its start; -1: none."""
    outer, inside = [], [-1]
    for index, (start, _, _) in enumerate(spans):
        while inside[-1] >= 0 and spans[inside[-1]][1] < start:
            inside.pop()
        outer.append(inside[-1])
        inside.append(index)
    return outer


def _innermost_range(spans: Sequence[tuple[int, int, str]], outer: Sequence[int], start: int) -> str | None:
    """The name of the range that began last before a call and has not ended; numbers in it stand for any."""
    at = bisect_right(spans, (start, 1 << 62, "")) - 1
    while at >= 0 and spans[at][1] < start:
        at = outer[at]
    return None if at < 0 else _NUMBER.sub("#", spans[at][2])


def explain_difference(
    case: str,
    sides: tuple[CaseSummary, CaseSummary],
    work: tuple[Sequence[Operation], Sequence[Operation]],
) -> Difference | None:
    """What did it; None where a side has no GPU work.

    Args:
        case: Its name.
        sides: Both sides of the case.
        work: The operations of both.
    """
    spans = [_iteration_parts_ns(side) for side in sides]
    if not all(work):
        return None
    of_iteration = all(span is not None for span in spans)
    changes = changes_by_operation(*work)
    totals = [sum(operation.ns for operation in side) for side in work]
    if of_iteration:
        before, after = (span or {} for span in spans)
        # the time of kernels that are no NCCL's
        kernels = [sum(o.ns for o in side if o.group not in {NCCL, COPIES, SETS}) for side in work]
        exposed_names = {
            short_name(o.name) for side in work for o in side if o.group in {NCCL, COPIES, SETS}
        }  # only what nothing hides
        alone = [change for change in changes if change.what not in exposed_names]
        overlapped = (after["computing"] - kernels[1]) - (before["computing"] - kernels[0])
        changes = [
            *alone,
            Change(_OVERLAPPED, None, 0.0, overlapped),
            *(Change(name, None, before[name], after[name]) for name in (COPIES, NCCL, _IDLE)),
        ]
        totals = [sum(before.values()), sum(after.values())]
    changes.sort(key=lambda change: -abs(change.ns))
    is_mean = of_iteration and all(side.spent is not None and side.spent.is_mean for side in sides)
    changes = [change for change in changes if change.before or change.after]
    traced_ns = (sides[0].traced_ns, sides[1].traced_ns)
    return Difference(case, of_iteration, totals[0], totals[1], tuple(changes), is_mean, traced_ns=traced_ns)


def _iteration_parts_ns(case: CaseSummary) -> dict[str, float] | None:
    """An iteration's parts, ns, which add up to it."""
    spent = case.spent
    if spent is None or spent.span_ns is None or spent.computing_pct is None:
        return None
    share = spent.span_ns / 100
    shares = {
        "computing": spent.computing_pct, COPIES: spent.copies_pct, NCCL: spent.exposed_pct, _IDLE: spent.idle_pct,
    }  # fmt: skip
    return {name: (pct or 0.0) * share for name, pct in shares.items()}


def changes_by_operation(first: Sequence[Operation], second: Sequence[Operation]) -> list[Change]:
    """A part a kernel and kind of copy.

    Args:
        first: The operations of the first side.
        second: Those of the second side.
    """
    after = {(o.name, o.kind): o for o in second}
    changes = [
        Change(short_name(old.name), "changed", old.ns, after[old.name, old.kind].ns, group=old.group)
        for old in first
        if (old.name, old.kind) in after
    ]
    vanished, new = _operations_without_partner(first, second), _operations_without_partner(second, first)
    for old, now in _match_renamed_kernels(vanished, new):
        vanished.remove(old)
        new.remove(now)
        names = short_name(old.name), short_name(now.name)  # which are equal where only parameters changed
        is_renamed = names[0] != names[1]
        changes.append(
            Change(
                names[0],
                "renamed" if is_renamed else "changed",
                old.ns,
                now.ns,
                names[1] if is_renamed else None,
                old.group,
            )
        )
    changes += [Change(short_name(o.name), "gone", o.ns, 0.0, group=o.group) for o in vanished]
    changes += [Change(short_name(o.name), "new", 0.0, o.ns, group=o.group) for o in new]
    return changes


def _match_renamed_kernels(
    vanished: Sequence[Operation], new: Sequence[Operation]
) -> list[tuple[Operation, Operation]]:
    """Kernels that have another name, each with the most similar one that came; each once.

    A single kernel in place of a single one is that one written anew, whose launches may have another shape; but a
    product's shape is that of its matrices.
    """
    is_single = len(vanished) == len(new) == 1 and vanished[0].group not in _PRODUCTS
    if is_single and _are_launched_alike(vanished[0], new[0]):
        return [(vanished[0], new[0])]
    pairs = [
        (likeness, old, now)
        for old in vanished
        for now in new
        if (likeness := _count_matching_marks(old, now)) is not None
    ]
    pairs.sort(key=lambda pair: (-pair[0], abs(pair[1].ns - pair[2].ns)))
    used: set[int] = set()
    matched = []
    for _, old, now in pairs:
        if not {id(old), id(now)} & used:
            used |= {id(old), id(now)}
            matched.append((old, now))
    return matched


def _are_launched_alike(old: Operation, now: Operation) -> bool:
    return old.group == now.group and abs(old.calls - now.calls) <= _ALIKE * max(old.calls, now.calls)


def _count_matching_marks(old: Operation, now: Operation) -> int | None:
    """How many marks agree; None where the class, the launches or a mark that both have differs."""
    if not _are_launched_alike(old, now):
        return None
    likeness = 0
    for old_marks, theirs in ((old.shapes, now.shapes), (old.ranges, now.ranges)):
        if old_marks and theirs:
            if not old_marks & theirs:
                return None
            likeness += 1
    return likeness
