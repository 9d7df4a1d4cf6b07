"""Rules over whole timelines: idle GPUs and why, and that a GPU is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nsw.analysis.idle_gpu import BUSY_PCT, IdleGpu
from nsw.analysis.rules.binding import LATENCY, binding_part, busiest_part_pct
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.counters import is_library_kernel_name
from nsw.analysis.rules.gaps import first_idle_part, idle_gpu_hits, idle_time_parts_text, remove_profiler_slowdown
from nsw.analysis.rules.gpu_work import counters_command_text
from nsw.analysis.rules.hits import COPIED_PCT, Context, Hit, detect_framework
from nsw.analysis.rules.idle_causes import GAP_WORDS
from nsw.analysis.rules.profiler_cost import least_gpu_busy_pct, profiler_slowdown, time_without_profiler
from nsw.quantities import format_ns, rate
from nsw.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsw.analysis.cases import CaseSummary, Share
    from nsw.analysis.idle_gpu import Copies

__all__ = ["RULES", "fusible_work_hit", "healthy_gpu_hit", "is_first_of_all", "unmeasured_kernel_hit"]

_ALL: Final = 0.9  # of the time: copies that decide it
_MOST_PCT: Final = 50.0  # of the GPU's work: a kernel that stands out
_OUTWEIGHS: Final = 4.0  # times the largest gain
_FEW_BLOCKS: Final = 2.0  # an SM, which holds up to 32
# the largest part of idle time of which no cause takes much -> the cause whose remedy helps
_CURES: Final = {"values read back": "scalar-reads", "allocation": "allocation-in-loop"}
_RUN_AHEAD: Final = (
    "Let the host run ahead: no wait for the GPU in the loop but for what the iteration before copied back"
    " (asynchronously, to pinned memory)."
)
_FUSIBLE: Final = "elementwise, normalisation and reduction"
_PRODUCTS: Final = ("GEMM", "convolution", "attention", "matrix-vector", "recurrence")  # work that nothing fuses
_FUSE: Final = "Each of them passes over memory by itself; torch.compile fuses many of them."
_LARGE_PCT: Final = 30.0  # of the time, and more than the GPU is idle: a kernel that is worth counters, or work to fuse


def healthy_gpu_hit(case: CaseSummary) -> Hit | None:
    """That a GPU is busy, of a case of which nothing else is said."""
    idle, busy = case.idle_gpu, least_gpu_busy_pct(case)
    if idle is None or busy is None or idle.operations < 1:
        return None
    if busy < BUSY_PCT:
        return _partly_idle_gpu_hit(case, idle)
    copies = [copy for copy in idle.copies if copy.direction != "on the GPU"]
    if copies and (largest := max(copies, key=lambda copy: copy.total_ns)).total_ns >= _ALL * idle.med_ns:
        return _copy_bound_hit(case, idle, largest)
    copied = sum(copy.total_ns - copy.alone_ns for copy in copies)
    cause, also = "gpu-busy", ""
    if idle.collectives and (spent := time_without_profiler(case)) is not None and spent.hidden_pct:
        cause, also = "scales", f", collectives hidden behind other work ({spent.hidden_pct:.0f} %)"
    elif copied >= COPIED_PCT / 100 * idle.med_ns:
        cause, also = "overlapped", ", copies beside kernels"
    elif any(name.startswith(("cudaGraphLaunch", "cuGraphLaunch")) for name in idle.calls):
        cause, also = "graphs", ", launched by CUDA graphs"
    span = f"an iteration of {format_ns(idle.med_ns)}" if idle.is_iteration else idle.counted_time
    known = causes()[cause]
    counters = "" if any(kernel.metrics for kernel in case.kernels) else counters_command_text(case)
    total, first = sum(work.total_ns or 0.0 for work in case.gpu_work), next(iter(case.gpu_work), None)
    share = 100 * _variants_ns(case, first) / total if first is not None and total else 0.0
    stands_out, advice = "nothing stands out", "" if cause == "gpu-busy" else known.remedy()
    what, size, share_of, do, table = f"GPU busy {busy:.0f} %", f"{busy:.0f} %", "", known.do, "iterations"
    if first is not None and first.kind == "kernel" and share >= _MOST_PCT:
        limit = _bound_text(case, first) or _few_blocks_text(case, first)
        stands_out = f"{first.short_name} is {share:.0f} % of its work{limit}{_second_kernel_text(case, first)}"
    elif (fusible := _fusible_work_pct(case)) >= _LARGE_PCT:
        stands_out, advice, table = f"{fusible:.0f} % of its work is {_FUSIBLE} kernels", _FUSE, "hotspots"
        if fusible >= _class_pct(case, _PRODUCTS):
            size, share_of, do = f"{fusible:.0f} %", "of GPU work is", "torch.compile"
            what = f"{size} {_FUSIBLE}"
    elif first is not None and _is_large_kernel(first, share):
        limit = _bound_text(case, first) or _few_blocks_text(case, first)
        stands_out = f"its largest kernel is {first.short_name} ({share:.0f} % of its work{limit})"
    return Hit(
        cause, case.id, 0.0, what, do, f"{idle.gpu} is busy {busy:.0f} % of {span}{also}; {stands_out}",
        " ".join(filter(None, (advice, counters))), size, table, share_of,
    )  # fmt: skip


def _second_kernel_text(case: CaseSummary, first: Share) -> str:
    """The other kernel of the program's own that takes much of the GPU's work; empty: there is none."""
    total = sum(work.total_ns or 0.0 for work in case.gpu_work)
    for work in case.gpu_work:
        share = 100 * _variants_ns(case, work) / total
        if work.short_name != first.short_name and _is_large_kernel(work, share):
            return f", and {work.short_name} {share:.0f} %"
    return ""


def _is_large_kernel(work: Share, share: float) -> bool:
    """Whether work of this share (%) of the GPU's is a kernel of the program's own that is worth counters."""
    return work.kind == "kernel" and share >= _LARGE_PCT and not is_library_kernel_name(work.name)


def _bound_text(case: CaseSummary, work: Share) -> str:
    """What binds a kernel, by its counters; empty: they are not there, or do not tell."""
    kernel = next((row for row in case.kernels if row.short_name == work.short_name), None)
    limit = binding_part(kernel) if kernel is not None else None
    if kernel is None or limit is None:
        return ""
    return f", bound by {limit}" + ("" if limit == LATENCY else f" ({busiest_part_pct(kernel):.0f} % of its peak)")


def _few_blocks_text(case: CaseSummary, kernel: Share) -> str:
    """How many blocks a launch of a kernel has, where they are few for the GPU; else empty."""
    blocks, sms = case.blocks.get(kernel.name), case.sm_count
    if not blocks or not sms or blocks >= _FEW_BLOCKS * sms:
        return ""
    return f", in launches of {plural(round(blocks), 'block')} for {sms:.0f} SMs"


def fusible_work_hit(case: CaseSummary, hits: Sequence[Hit]) -> Hit | None:
    """Beside faults of another kind: that a compiler would fuse much of the work of a GPU that is mostly busy.

    Args:
        case: The case.
        hits: What else is said of it.
    """
    busy = least_gpu_busy_pct(case)
    faults = [hit for hit in hits if hit.gain_pct > 0]
    is_said = any("torch.compile" in hit.advice or hit.table == "hotspots" for hit in hits)
    if busy is None or busy < _MOST_PCT or not faults or is_said or (fusible := _fusible_work_pct(case)) < _LARGE_PCT:
        return None
    return Hit("gpu-busy", case.id, 0.0, f"{fusible:.0f} % elementwise work", "torch.compile",
               f"{fusible:.0f} % of the GPU's work is {_FUSIBLE} kernels", _FUSE, f"{fusible:.0f} %",
               "hotspots")  # fmt: skip


def _fusible_work_pct(case: CaseSummary) -> float:
    """How much of the GPU's work are kernels of PyTorch that a compiler fuses; 0 where one has."""
    if case.spent is None or detect_framework(case) != "pytorch":
        return 0.0
    if any(work.name.startswith("triton_") for work in case.gpu_work):
        return 0.0
    return _class_pct(case, ("elementwise", "normalisation", "reduction"))


def _class_pct(case: CaseSummary, classes: Sequence[str]) -> float:
    """How much of the GPU's work is of these classes, %."""
    return sum(case.spent.share_pct(part) for part in classes) if case.spent is not None else 0.0


def _copy_bound_hit(case: CaseSummary, idle: IdleGpu, copy: Copies) -> Hit:
    """That copies fill the time, and kernels run beside them."""
    share = min(100.0, 100 * copy.total_ns / idle.med_ns)
    speed = f" at {rate(1e9 * copy.total_bytes / copy.total_ns)}" if copy.total_bytes else ""
    span = f"an iteration of {format_ns(idle.med_ns)}" if idle.is_iteration else idle.counted_time
    return Hit("overlapped", case.id, 0.0, f"{share:.0f} % copies {copy.direction}", "copy fewer bytes",
               f"copies {copy.direction} take {share:.0f} % of {span}{speed}, and kernels run beside them",
               "Only fewer bytes help: a narrower type, packed data, or data that stay on the GPU.",
               f"{share:.0f} %", "host_copies")  # fmt: skip


def unmeasured_kernel_hit(case: CaseSummary, hits: Sequence[Hit]) -> Hit | None:
    """The kernel of the program's own that takes much of the time, where no counters say why and no hit names it.

    Args:
        case: The case.
        hits: What else is said of it.
    """
    largest = next((share for share in case.gpu_work if share.kind == "kernel"), None)
    busy = least_gpu_busy_pct(case)
    if largest is None or busy is None or case.kernels or is_library_kernel_name(largest.name):
        return None
    share = _time_pct(case, largest)
    if share < max(_LARGE_PCT, 100 - busy) or any(largest.short_name in hit.fact for hit in hits):
        return None
    fact = f"the kernel {largest.short_name} takes {share:.0f} % of the time{_few_blocks_text(case, largest)}"
    return Hit("gpu-busy", case.id, 0.0, f"{share:.0f} % {largest.short_name}", "measure its counters",
               f"{fact}; no counters tell what binds it", counters_command_text(case), f"{share:.0f} %",
               "hotspots")  # fmt: skip


def _time_pct(case: CaseSummary, kernel: Share) -> float:
    """How much of the time a kernel takes, as the case's table has it: its part of the GPU's work, and of the time."""
    total, spent = sum(work.total_ns or 0.0 for work in case.gpu_work), time_without_profiler(case)
    if spent is not None and spent.span_ns:
        part = next((part for part in spent.shown if part.name == kernel.short_name), None)
        if part is not None:
            return min(100.0, 100 * part.ns / spent.span_ns)
    work_pct = 100 * spent.gpu_ns / spent.span_ns if spent and spent.span_ns else least_gpu_busy_pct(case) or 0.0
    return min(work_pct, 100.0) * _variants_ns(case, kernel) / total if total else 0.0


def _variants_ns(case: CaseSummary, work: Share) -> float:
    """How long work takes; of a kernel of the program's own all variants of its template, as a table has them."""
    if is_library_kernel_name(work.name):
        return work.total_ns or 0.0
    alike = (each for each in case.gpu_work if each.short_name == work.short_name and each.kind == work.kind)
    return sum(each.total_ns or 0.0 for each in alike)


def is_first_of_all(case: CaseSummary, hits: Sequence[Hit]) -> bool:
    """Whether the largest kernel, of which nothing is known, takes so much more than hits win that it comes first."""
    largest = next((share for share in case.gpu_work if share.kind == "kernel"), None)
    gain = max((hit.gain_pct for hit in hits), default=0.0)
    return largest is not None and _time_pct(case, largest) >= _OUTWEIGHS * gain


def _partly_idle_gpu_hit(case: CaseSummary, measured: IdleGpu) -> Hit | None:
    """That a GPU is idle for reasons of which each takes little, with what a profiler adds to each launch in them."""
    idle = remove_profiler_slowdown(measured, profiler_slowdown(case))
    parts = idle_time_parts_text(case, idle)
    if not idle.is_iteration or not parts:
        return None
    fact = (
        f"{idle.gpu} is busy {idle.busy_pct:.0f} % of an iteration of {format_ns(idle.med_ns)} with"
        f" {plural(round(idle.operations), 'operation')}; {parts}"
    )
    first, fusible = first_idle_part(case, idle), _fusible_work_pct(case)
    advice = _RUN_AHEAD
    if first != GAP_WORDS["synchronise"]:
        advice = f"Fewer gaps: {causes()[_CURES.get(first, 'launch-bound')].remedy(detect_framework(case))}"
    if fusible >= _LARGE_PCT:
        fact += f"; {fusible:.0f} % of the GPU's work is {_FUSIBLE} kernels"
        advice = "torch.compile fuses many of them, which leaves fewer gaps too."
    return Hit("gpu-busy", case.id, 0.0, f"GPU busy {idle.busy_pct:.0f} %", "fewer, longer operations", fact, advice,
               f"{idle.busy_pct:.0f} %", "gaps")  # fmt: skip


def _idle_gpu_hits(case: CaseSummary, context: Context) -> list[Hit]:
    return idle_gpu_hits(case, profiler_slowdown(case), reports=context.reports)


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], list[Hit]]]] = {"idle": _idle_gpu_hits}
