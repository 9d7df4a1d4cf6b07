"""Rules over summaries of CUDA calls, of reports without a time axis: waits and allocations by counts and times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import Context, Hit, detect_framework, gpu_copy_direction
from nsw.quantities import duration
from nsw.wording import first_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Share

__all__ = ["RULES", "startup_text"]

_WAITS: Final = re.compile(r"cu(?:da)?(?:Device|Stream|Thread|Ctx)Synchronize")
_ALLOCATES: Final = re.compile(r"cu(?:da)?(?:Malloc|Free|Mem(?:Alloc|Free)|Host(?:Alloc|Register))(?!.*Async)")
_PINS: Final = re.compile(
    r"cuda(?:MallocHost|HostAlloc|HostRegister|FreeHost|HostUnregister)|cuMem(?:AllocHost|FreeHost|Host)"
)
# calls of which the first of a program starts CUDA, or loads its code; the latter may wait for the GPU instead
_STARTS: Final = re.compile(
    r"cu(?:da)?(?:Init|DevicePrimaryCtxRetain|CtxCreate|SetDevice|(?:Get)?Device(?:Get|Count|Total)\w*|MemGetInfo|"
    r"Malloc\w*|MemAlloc\w*|HostAlloc|StreamCreate\w*|EventCreate\w*|LibraryLoadData|ModuleLoad\w*)(?:_v\d+)?\Z"
)
_MAY_WAIT: Final = re.compile(r"cu(?:da)?(?:Free|MemcpyToSymbol)\Z")
_LONG_NS: Final = 10e6  # of a call at the start that is worth a word
_START_NS: Final = 50e6  # of all of them
_MANY: Final = 100  # calls: fewer may be of set-up
_EACH: Final = 0.9  # waits a kernel or copy, from which there is one behind each
_WAIT_NS: Final = 10e3  # from the end of a kernel to the next, at least, where the host waits for it
_STEP: Final = 0.5  # allocations a launch of the kernel that takes most
_WORTH_PCT: Final = 8.0  # of GPU time
_TIMES: Final = 5.0  # the GPU's work, without the longest call, which may start CUDA
_CALLS_IN_SENTENCE: Final = 2  # calls in a sentence


def _has_time_axis(case: CaseSummary) -> bool:
    """Whether the report has a timeline, which tells more than counts of calls."""
    return case.idle_gpu is not None or case.iterations is not None or case.one_phase is not None


def _kernels(case: CaseSummary) -> list[Share]:
    return [share for share in case.gpu_work if share.kind == "kernel" and share.calls and share.total_ns]


def _wait_for_each_kernel_hit(case: CaseSummary, _: Context) -> Hit | None:
    """As many waits for the GPU as short kernels and copies together."""
    if _has_time_axis(case):
        return None
    kernels = _kernels(case)
    launches = sum(share.calls or 0.0 for share in kernels)
    waits = max((s for s in case.api if _WAITS.match(s.name)), key=lambda share: share.calls or 0.0, default=None)
    if waits is None or launches < _MANY:
        return None
    copies = sum(copy.calls for copy in case.copies if gpu_copy_direction(copy.name))
    if (waits.calls or 0.0) < _EACH * (launches + copies):
        return None
    mean_ns = sum(share.total_ns or 0.0 for share in kernels) / launches
    gain = 100 * _WAIT_NS / (_WAIT_NS + mean_ns)
    if gain < _WORTH_PCT:
        return None
    cause = causes()["sync-each-operation"]
    return Hit(
        cause.id, case.id, gain, f"the host waits after each of {launches:,.0f} kernels", cause.do,
        f"the host calls {waits.short_name} {waits.calls:,.0f} times for {launches:,.0f} kernels of {duration(mean_ns)}"
        " on average: it waits after each, and the GPU waits for the next launch",
        cause.remedy(detect_framework(case)), f"{launches:,.0f}", "api", gain_of="the time of kernels and waits",
    )  # fmt: skip


def _allocation_in_each_step_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Allocations as often as the largest kernel, which take much beside the GPU's work."""
    if _has_time_axis(case):
        return None
    calls = [s for s in case.api if _ALLOCATES.match(s.name) and (s.calls or 0.0) >= _MANY and s.total_ns]
    largest = max(_kernels(case), key=lambda share: share.total_ns or 0.0, default=None)
    if not calls or largest is None or not case.gpu_ns:
        return None
    took, often = sum(share.total_ns or 0.0 for share in calls), max(share.calls or 0.0 for share in calls)
    longest = max(case.longest_calls_ns.get(share.name, 0.0) for share in calls)  # which may start CUDA
    gain = 100 * (took - longest) / (took + case.gpu_ns)
    if gain < _WORTH_PCT or (largest.calls or 0.0) < _MANY or often < _STEP * (largest.calls or 0.0):
        return None
    cause = causes()["allocation-in-loop"]
    names = first_names([share.short_name for share in calls], _CALLS_IN_SENTENCE)
    count_text = f"{often:,.0f} calls{'' if len(calls) == 1 else ' each at most'}"
    waits = ", and cudaFree waits for the GPU" if any(share.name == "cudaFree" for share in calls) else ""
    return Hit(
        cause.id, case.id, gain, f"{duration(took)} of {names} in each step", cause.do,
        f"memory is allocated or freed in each step ({names}: {duration(took)}, {count_text},"
        f" {often / (largest.calls or 1.0):.1f} for each launch of {largest.short_name}){waits}",
        cause.remedy(detect_framework(case)), duration(took), "api", gain_of="the time of these calls and GPU work",
    )  # fmt: skip


def _slow_pinning_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Pinned memory whose allocation takes far longer than all of the GPU's work."""
    calls = [share for share in case.api if _PINS.match(share.name) and share.total_ns]
    took = sum(share.total_ns or 0.0 for share in calls)
    longest = max((case.longest_calls_ns.get(share.name, share.total_ns or 0.0) for share in calls), default=0.0)
    if _has_time_axis(case) or not case.gpu_ns or took - longest < _TIMES * case.gpu_ns:
        return None
    cause, names = causes()["slow-pinning"], first_names([share.short_name for share in calls], _CALLS_IN_SENTENCE)
    took -= longest  # which may start CUDA
    return Hit(
        cause.id, case.id, 100 * took / (took + case.gpu_ns),
        f"{duration(took)} for pinned memory, the GPU works {duration(case.gpu_ns)}", cause.do,
        f"allocating and freeing pinned memory ({names}) takes {duration(took)} without the longest call, which may"
        f" start CUDA: {took / case.gpu_ns:.0f} times the GPU's work of {duration(case.gpu_ns)}",
        cause.remedy(), duration(took), "api", gain_of="the time of these calls and GPU work",
    )  # fmt: skip


def startup_text(case: CaseSummary) -> str:
    """That starting CUDA takes longer than the GPU works, by the longest call of each kind; empty: it does not."""
    gpu_ns = sum(part.ns for part in case.spent.parts) if case.spent is not None else case.gpu_ns or 0.0
    calls = {
        name: longest
        for name, longest in sorted(case.longest_calls_ns.items(), key=lambda call: -call[1])
        if longest >= _LONG_NS and (_STARTS.match(name) or (_MAY_WAIT.match(name) and longest > gpu_ns))
    }
    took = sum(calls.values())
    if case.iterations is not None or not gpu_ns or took < max(gpu_ns, _START_NS):
        return ""
    names = first_names([f"{name} {duration(longest)}" for name, longest in calls.items()], _CALLS_IN_SENTENCE)
    at_least = "at least " if len(calls) > 1 else ""  # by the longest call of each
    return f"Starting CUDA takes {at_least}{duration(took)} ({names}), the GPU's work {duration(gpu_ns)}."


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | Sequence[Hit] | None]]] = {
    "waits by count": _wait_for_each_kernel_hit,
    "allocations by count": _allocation_in_each_step_hit,
    "slow pinning": _slow_pinning_hit,
}
