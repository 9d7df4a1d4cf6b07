"""What a GPU that is idle in every iteration means, in a sentence: what the host does meanwhile, and what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from nsw.analysis.blocks import Evidence, Finding
from nsw.analysis.idle_gpu import BUSY_PCT
from nsw.analysis.scaling import is_time
from nsw.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.idle_gpu import IdleGpu

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
    return [_finding(reason, some) for reason, some in worst]


def _finding(reason: Reason, idle: Sequence[tuple[float, CaseSummary, IdleGpu]]) -> Finding:
    _, case, one = min(idle, key=lambda item: item[0])
    others = [f"{other.id} ({100 - busy:.0f} %{_whose(its)})" for busy, other, its in idle if other is not case]
    named = ", ".join(others[:_NAMED]) + (f" and {len(others) - _NAMED} more" if len(others) > _NAMED else "")
    text = f"In {case.id} {_head(case, one)}: {_why(reason, one)}" + (f" Likewise in {named}." if others else "")
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
