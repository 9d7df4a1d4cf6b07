"""What the numbers say, in sentences, each with the cases that prove it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.comparison import Scaling, ScalingPoint, is_time
from nsw.analysis.figures import RUN_TIME
from nsw.analysis.idle_gpu import BUSY_PCT, IdleGpu
from nsw.quantities import changed_by, duration, rate
from nsw.wording import first_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary


_POOR_PCT = 70.0  # efficiency below which a point is worth a sentence
_MUCH_COMMUNICATION_PCT = 20.0
_MUCH_COPYING_PCT = 20.0
_MUCH_WAITING = 1 / 3  # of the time in NCCL kernels
_SLOW_TIMES = 3.0  # the median


def findings(cases: Sequence[CaseSummary], curve: Scaling | None) -> list[Finding]:
    """The most telling facts of a campaign, a handful at most."""
    found = _of_scaling(curve, {c.id: c for c in cases}) if curve else []
    return [*found, *of_idle_gpus(cases), *_of_copies(cases), *_of_slow_iterations(cases), *_of_profiling(cases)]


def _of_scaling(curve: Scaling, by_id: Mapping[str, CaseSummary]) -> list[Finding]:
    known = [p for p in curve.points if p.efficiency_pct is not None]
    last = max((p.at for p in known), default=0.0)
    at_end = [p for p in known if p.at == last and p.at != min(q.at for q in known)]
    if not at_end:
        return []
    best, worst = max(at_end, key=_efficiency), min(at_end, key=_efficiency)
    head = f"At {curve.axis}={_plain(last)} {curve.kind}-scaling efficiency"
    if len(at_end) == 1:
        said = f"{head} is {_efficiency(worst):.1f} %."
    else:
        said = (f"{head} runs from {_efficiency(worst):.1f} % ({_where(worst)}) to {_efficiency(best):.1f} %"
                f" ({_where(best)}).")  # fmt: skip
    result = [_statement("scaling", said, "scaling", dict.fromkeys((worst.case_id, best.case_id)))]
    share = worst.communication_pct
    if _efficiency(worst) < _POOR_PCT and share is not None and share >= _MUCH_COMMUNICATION_PCT:
        result.append(
            _statement("communication", _communication(by_id[worst.case_id], share), "communication", (worst.case_id,))
        )
    return result


def _communication(case: CaseSummary, share: float) -> str:
    """What NCCL kernels take; how much of it is waiting for a late rank, where the ranks are known apart."""
    text = f"In {case.id} NCCL kernels take {share:.1f} % of {_gpu_time(case)}"
    if case.waiting is None:
        return text + ": communication, or waiting for the slowest rank inside it, is what the extra GPUs are spent on."
    waited = case.waiting.pct
    if waited < _MUCH_WAITING * share:
        return text + ", on all ranks alike: no rank is late throughout; it is communication, or ranks late in turn."
    return (
        text
        + f", but at least {waited:.1f} points of it are waiting: {case.waiting.late} reaches the collectives last."
        " Look at what delays it, not at the network."
    )


def _of_copies(cases: Sequence[CaseSummary]) -> list[Finding]:
    """Copies that take much of every iteration: not those of set-up, of a single iteration, or hidden by kernels."""
    heavy = []
    for case in cases:
        copied = 100 * sum(c.total_ns for c in case.copies) / case.gpu_ns if case.gpu_ns else 0.0
        each = case.iterations.memory_pct if case.iterations else None
        share = copied if each is None else each
        alone = case.iterations.memory_alone_pct if case.iterations else None
        if min(share, share if alone is None else alone) >= _MUCH_COPYING_PCT:
            heavy.append((share, case))
    if not heavy:
        return []
    share, case = max(heavy, key=lambda item: item[0])
    more = f" and over {_MUCH_COPYING_PCT:.0f} % in {len(heavy) - 1} more" if len(heavy) > 1 else ""
    what = "all GPU time, set-up included,"
    if case.iterations:
        alone = case.iterations.memory_alone_pct
        part = f" ({alone:.1f} % without a kernel beside them)" if alone is not None and share - alone >= 1 else ""
        what = f"the GPU time of an iteration{part}"
    text = f"Copies and sets take {share:.1f} % of {what} in {case.id}{more}.{_remedy(case) if case.iterations else ''}"
    return [_statement("copies", text, "copies", (c.id for _, c in heavy))]


def _remedy(case: CaseSummary) -> str:
    """What takes most of the copies' time, how fast it is, and what to do about it."""
    most = max(case.copies, key=lambda copy: copy.total_ns, default=None)
    if most is None or not any(way in most.name for way in ("Host-to-Device", "Device-to-Host", "HtoD", "DtoH")):
        return ""
    speed = f" ({rate(most.bytes_per_s)})" if most.bytes_per_s else ""
    return (
        f" Most of it is {most.name}{speed}: keep the data on the GPU, or copy it from pinned memory while kernels run"
        " (cudaMemcpyAsync on a stream of its own)."
    )


def _of_slow_iterations(cases: Sequence[CaseSummary]) -> list[Finding]:
    """An iteration that takes many times the median: it spoils means and totals, not the other iterations."""
    slow = [
        (case.iterations.most_ns / case.iterations.med_ns, case, case.iterations)
        for case in cases
        if case.iterations
        and case.iterations.med_ns
        and case.iterations.most_ns >= _SLOW_TIMES * case.iterations.med_ns
    ]
    if not slow:
        return []
    times, case, iterations = max(slow, key=lambda item: item[0])
    busy = iterations.slowest_busy_pct
    text = (
        f"Iteration {iterations.slowest} of {case.id} takes {_time(iterations.most_ns)}, {times:.0f} times the median"
        f" of {_time(iterations.med_ns)}"
        + (f", with a GPU at work {busy:.0f} % of it" if busy is not None else "")
        + (f"; {len(slow) - 1} more cases have such a one" if len(slow) > 1 else "")
        + "."
    )
    return [_statement("slow iteration", text, "iterations", (c.id for _, c, _ in slow))]


def _of_profiling(cases: Sequence[CaseSummary]) -> list[Finding]:
    """How much a profiler slowed the program: a finding only where repeats show that it is more than their scatter."""
    certain = [(p, case) for case in cases for p in case.perturbation if p.certain and p.is_much]
    if not certain:
        return []
    most, case = max(certain, key=lambda item: (item[0].figure != RUN_TIME, abs(item[0].change_pct)))
    what = "the run time, start and end included," if most.figure == RUN_TIME else most.figure
    text = (
        f"Profiling changed {what} by up to {changed_by(most.change_pct).lstrip('+-')} (pass"
        f" {most.pass_name}, {case.id}): figures here are those of the baseline pass."
    )
    return [_statement("profiling", text, "perturbation", (case.id,))]


def _statement(name: str, text: str, table: str, cases: Iterable[str]) -> Finding:
    """A sentence, and the rows that prove it."""
    return Finding(name, text, evidence=(Evidence(table, tuple(cases)),))


def _gpu_time(case: CaseSummary) -> str:
    return "GPU time in the steady state" if case.phases else "GPU time"


def _time(ns: float) -> str:
    return next(
        f"{ns / size:.3g} {unit}" for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1)) if ns >= size
    )


def _efficiency(point: ScalingPoint) -> float:
    return point.efficiency_pct or 0.0


def _where(point: ScalingPoint) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.series.items()) or point.case_id


def _plain(number: float) -> str:
    return f"{number:g}"


Reason = Literal["call", "gap", "host", "synchronisation", "launches"]
_NAMED: Final = 4  # other cases of the same reason
_SLOWED_TIMES: Final = 2.0  # by the profiler; above it a timeline tells nothing of waiting for the host
_SLOWED_LITTLE: Final = 1.05
_PART: Final = 0.25  # of the idle time: a call that takes as much explains it
_LONG: Final = 0.5  # of the idle time: a gap that is as long is what to look for
_MANY: Final = 20  # operations of an iteration, of which each waits for its launch
_ALLOCATES: Final = re.compile(r"cu(?:da)?(?:Malloc|Free|Mem(?:Alloc|Free)|Host(?:Alloc|Register))")
_A_TIME: Final = re.compile(r"(?:/|\bper )\s*(?:s|secs?|seconds?|min|minutes?|h|hours?)$|\bs\^?-1$", re.IGNORECASE)
_COPIES: Final = re.compile(r"cu(?:da)?Memcpy")
_LOOK: Final = "A pass `host: {tool: torch}` (PyTorch) or `host: {tool: cprofile}` (Python) shows what the host does."


def of_idle_gpus(cases: Sequence[CaseSummary]) -> list[Finding]:
    """For each reason a sentence on the case whose GPU is idle most, where one is idle in every iteration."""
    found: dict[Reason, list[tuple[float, CaseSummary, IdleGpu]]] = {}
    for case in cases:
        one = case.idle_gpu
        if one is not None and (times := slowed_times(case)) <= _SLOWED_TIMES and one.busy_pct * times < BUSY_PCT:
            found.setdefault(_reason(one), []).append((one.busy_pct, case, one))
    worst = sorted(found.items(), key=lambda item: min(busy for busy, _, _ in item[1]))
    return [_idle_finding(reason, some) for reason, some in worst]


def _idle_finding(reason: Reason, idle: Sequence[tuple[float, CaseSummary, IdleGpu]]) -> Finding:
    _, case, one = min(idle, key=lambda item: item[0])
    others = [f"{other.id} ({100 - busy:.0f} %{_whose(its)})" for busy, other, its in idle if other is not case]
    text = f"In {case.id} {_head(case, one)}: {_why(reason, one)}"
    text += f" Likewise in {first_of(others, _NAMED)}." if others else ""
    return Finding("idle GPU", text, evidence=(Evidence("iterations", tuple(c.id for _, c, _ in idle)),))


def _whose(one: IdleGpu) -> str:
    """Which process waits for its host, and why all GPUs together may look busy."""
    if not one.process:
        return ""
    return f", {one.process}{'; the others wait for it in NCCL kernels' if one.collectives else ''}"


def _reason(one: IdleGpu) -> Reason:
    """What the GPU waits for, as far as the data tells."""
    if one.call and one.call_ns >= _PART * one.idle_ns:
        return "call"
    if one.gap_ns is not None and one.gap_ns >= _LONG * one.idle_ns:
        return "gap"
    if one.operations < _MANY:
        return "host"
    return "synchronisation" if one.synchronisations >= _PART * one.operations else "launches"


def slowed_times(case: CaseSummary, pass_name: str | None = None) -> float:
    """How many times slower the program's own rates and times are under a profiler; 1 where that is not known.

    Args:
        case: The case.
        pass_name: The profiler's pass; by default the one of the case's timeline.
    """
    of = case.traced_by if pass_name is None else pass_name
    times = [
        held.median / free.median if is_time(free.unit) else free.median / held.median
        for free in case.figures if not free.profiled and free.median > 0 and _is_speed(free.unit)
        for held in case.figures if held.pass_name == of and held.name == free.name and held.median > 0
    ]  # fmt: skip
    return max(1.0, *times) if times else 1.0


def _is_speed(unit: str | None) -> bool:
    return is_time(unit) or _A_TIME.search(unit or "") is not None


def _head(case: CaseSummary, one: IdleGpu) -> str:
    """How much of an iteration a GPU is idle, and how far the profiler has a part in that."""
    whose = f"the GPU of {one.process}" if one.process else "the GPU"
    idle = f"{whose} is idle {100 - one.busy_pct:.0f} % of an iteration of {duration(one.med_ns)}"
    times = slowed_times(case)
    if times > _SLOWED_LITTLE:
        return f"{idle} while profiled, some {100 - times * one.busy_pct:.0f} % without the profiler"
    if any(not figure.profiled for figure in case.figures):
        return idle
    return f"{idle} (under the profiler, which slows the host)"


def _why(reason: Reason, one: IdleGpu) -> str:
    """What the host does meanwhile, as far as the data tells, and what to do."""
    waits = ""
    if one.processes > 1:
        waits = " The others wait for it in NCCL kernels." if one.collectives else " Or it waits for another process."
    idle = duration(one.idle_ns)
    if reason == "call":
        took = f"{duration(one.call_ns)} of an iteration in {one.call}, and the GPU is idle for {idle}"
        return f"the host spends {took}. {_instead(one.call)}.{waits}"
    if reason == "gap":
        calls = "no CUDA call explains it" if one.calls_known else "CUDA calls were not recorded"
        return (
            f"{duration(one.gap_ns)} of these {idle} are one gap, and {calls}. The host does something else there, such"
            f" as loading data, I/O or computing. {_LOOK}{waits}"
        )
    if reason == "host":
        return f"between its {one.operations:.0f} operations it waits for the host. {_LOOK}{waits}"
    return f"{_launches(reason, one)}{waits}"


def _launches(reason: Reason, one: IdleGpu) -> str:
    """That the GPU waits for many launches, each a little."""
    spacing, work = one.med_ns / one.operations, one.busy_pct / 100 * one.med_ns / one.operations
    text = (
        f"the host gives it {one.operations:.0f} operations, one every {duration(spacing)}, which keep it busy for"
        f" {duration(work)} each"
    )
    if reason == "synchronisation":
        return (
            f"{text}, and waits for it {one.synchronisations:.0f} times: after each wait the GPU is idle until the next"
            " launch. Synchronise less often (cudaDeviceSynchronize, .item(), printing a tensor)."
        )
    if one.gap_ns is None:
        text += " on average, if no gap is much longer (`nsw reread` tells)"
    if one.graph_launches >= 1:
        return f"{text}, although CUDA graphs launch some. Put more of the iteration into graphs."
    call = f" (the launch call alone takes {duration(one.launch_ns)})" if one.launch_ns is not None else ""
    return (
        f"{text}{call}. The host cannot launch faster: give it fewer and larger operations (a larger batch, fused"
        " kernels, torch.compile), or launch them together as CUDA graphs."
    )


def _instead(call: str) -> str:
    if _ALLOCATES.match(call):
        return "Allocate before the loop, or from a pool (cudaMallocAsync)"
    if _COPIES.match(call):
        return "Copy from pinned memory with cudaMemcpyAsync, while kernels run"
    return "Move it out of the loop"
