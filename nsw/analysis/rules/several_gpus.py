"""Rules over several GPUs in a timeline: communication that nothing hides, late ranks, stray contexts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nsw.analysis.collective_speed import collective_speed_text
from nsw.analysis.kernel_classes import NCCL
from nsw.analysis.pipeline import pipeline_text
from nsw.analysis.rules.causes import causes
from nsw.analysis.rules.hits import Context, Hit, detect_framework, make_hit
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.analysis.stragglers import DELAYED, DELAYED_PCT
from nsw.quantities import format_ns
from nsw.wording import first_names, plural, singular_or_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from nsw.analysis.cases import CaseSummary
    from nsw.analysis.placement import StrayContext
    from nsw.analysis.steady import Collectives, Waiting

__all__ = ["RULES"]

_EXPOSED_PCT: Final = 10.0  # of an iteration
_WAITING: Final = 1 / 3  # of the time in NCCL's kernels
_COLLECTIVES, _FEW_BUCKETS = 16, 8  # an iteration: many, and as many as suffice
_SMALL_COLLECTIVE_NS: Final = 50e3  # of which starting, and meeting the other GPUs, is most
_FEW_CHANNELS, _LARGE_COLLECTIVE_NS = 4, 500e3  # NCCL's over PCIe or the host's memory; over NVLink it has 16 or more
_NVLINK: Final = 0.8  # of such a collective's time: what NVLink saves at least
_HIDDEN: Final = 0.1  # times the exposed time: hardly anything is hidden
_BACKWARD: Final = 0.6  # of computing: beside which collectives can run
_LEAST_WORK_PCT: Final = 1.0  # of an iteration: less computing is none
_LATE_GAP: Final = 0.05  # of an iteration: what the late rank's GPU waits longer for its host
_MORE_WORK_PCT, _SAME_KERNELS_PCT, _SAME_BLOCKS_PCT = 5.0, 3.0, 5.0
_NAMED: Final = 4  # processes in a sentence


def _exposed_communication_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Communication that nothing hides, with the speed that it reaches where the sizes of messages are recorded."""
    hit = _pipeline_hit(case) or _cause_of_exposed_communication(case)
    return hit and replace(hit, fact=hit.fact + collective_speed_text(case.bandwidth))


def _pipeline_hit(case: CaseSummary) -> Hit | None:
    """Ranks of a pipeline that wait for each other, and what more micro-batches leave of that."""
    pipeline = case.pipeline
    if pipeline is None or pipeline.waiting_pct < _EXPOSED_PCT:
        return None
    size = f"{pipeline.waiting_pct:.0f} %"
    hit = make_hit(
        case, "pipeline-bubble", pipeline.waiting_pct, f"ranks of a pipeline wait {size}", pipeline_text(pipeline),
        size, "communication",
    )  # fmt: skip
    twice = f" Twice the micro-batches would leave {pipeline.bubble_pct(2):.0f} %."
    return replace(hit, advice=hit.advice + twice * (not pipeline.is_uneven))


def _cause_of_exposed_communication(case: CaseSummary) -> Hit | None:
    """Communication that nothing hides, and why: a late rank, small buckets, a slow link, none beside computing."""
    spent, talk = time_without_profiler(case), case.collectives
    many_small = talk is not None and talk.calls >= _COLLECTIVES and talk.own_ns < _SMALL_COLLECTIVE_NS
    exposed = spent.exposed_pct if spent else None
    if talk is not None and many_small and exposed is None and talk.share_pct >= _EXPOSED_PCT:
        head = f"{talk.share_pct:.0f} % of the time in kernels, set-up included, is NCCL"
        return _small_collective_hit(case, talk, min(talk.own_pct, talk.share_pct), head)
    if exposed is None or spent is None or exposed < _EXPOSED_PCT or not spent.span_ns:
        return None
    hidden = f", and {spent.hidden_pct:.0f} % more beside kernels" if round(spent.hidden_pct or 0.0) else ""
    head = f"NCCL alone takes {exposed:.0f} % of an iteration{hidden}"
    late = not case.stragglers and _nccl_waiting_share(case) >= _WAITING  # of four ranks and more each is looked at
    if late and case.waiting is not None and _is_late_rank_explained(case.waiting, spent.span_ns):
        return _late_rank_hit(case, case.waiting, exposed, head)
    if talk is not None and many_small:
        return _small_collective_hit(case, talk, exposed, head)
    if talk is not None and talk.own_ns >= _LARGE_COLLECTIVE_NS and 0 < (talk.channels or 0) <= _FEW_CHANNELS:
        return make_hit(
            case, "slow-link", _NVLINK * exposed, f"NCCL alone {exposed:.0f} %, on {talk.channels:.0f} channels",
            f"{head}, in {talk.calls:.0f} collectives of {format_ns(talk.own_ns)} on {talk.channels:.0f} channels, as"
            " over PCIe or the host's memory; over NVLink NCCL uses 16 or more", f"{exposed:.0f} %", "gpu_use",
        )  # fmt: skip
    if (spent.hidden_pct or 0.0) < _HIDDEN * exposed and spent.share_pct(NCCL):
        computing = spent.computing_pct or 0.0
        if _LEAST_WORK_PCT <= computing < exposed:
            return make_hit(
                case, "too-little-work", exposed - computing / 2,
                f"NCCL alone {exposed:.0f} %, computing {computing:.0f} %",
                f"{head}, computing only {computing:.0f} %: communication dominates, since a GPU has so little work",
                f"{exposed:.0f} %", "communication",
            )  # fmt: skip
        return make_hit(
            case, "no-backward-overlap", min(exposed, _BACKWARD * computing),
            f"NCCL alone {exposed:.0f} %, none hidden",
            f"{head}{_late_rank_text(case)}: the collectives begin after the backward pass, and none runs beside it",
            f"{exposed:.0f} %", "communication",
        )  # fmt: skip
    first, do = "", "overlap or shrink communication"
    if late and case.waiting is not None:
        do = f"let {_short_process_name(case.waiting.late)} launch sooner, overlap the rest"
        first = "Let the host of the late process launch sooner (CUDA graphs, less work between launches). "
    held_up = sum(entry.cost_pct for entry in case.stragglers if entry.late)
    return Hit(
        "exposed-communication", case.id, max(exposed - held_up, 0.0) * (1 - _nccl_waiting_share(case) * late),
        f"NCCL alone {exposed:.0f} %", do, f"{head}{_late_rank_text(case)}",
        f"{first}Overlap it with computing (fewer and larger collectives), or move less (bf16 gradients).",
        f"{exposed:.0f} %", "communication",
    )  # fmt: skip


def _small_collective_hit(case: CaseSummary, talk: Collectives, share: float, head: str) -> Hit:
    """Many collectives that move little each."""
    each = " an iteration" if case.iterations else ""
    return make_hit(
        case, "small-buckets", share * (1 - _FEW_BUCKETS / talk.calls),
        f"{talk.calls:.0f} collectives of {format_ns(talk.own_ns)}",
        f"{head}, in {talk.calls:.0f} collectives{each} a GPU that move little: without waiting the median one takes"
        f" {format_ns(talk.own_ns)}", f"{talk.calls:.0f} collectives", "gpu_use",
    )  # fmt: skip


def _is_late_rank_explained(waiting: Waiting, span_ns: float) -> bool:
    """Whether the late rank's own timeline shows a reason, where it was looked at."""
    work = waiting.late_work_pct
    return work is None or work >= _MORE_WORK_PCT or waiting.late_gap_ns >= _LATE_GAP * span_ns


def _late_rank_hit(case: CaseSummary, waiting: Waiting, exposed: float, head: str) -> Hit:
    """A rank that reaches the collectives last, with the reason that its own timeline shows beside the others'."""
    name, cause = _short_process_name(waiting.late), "late-rank-host"
    text = f"{head}; {_nccl_waiting_text(case)}: {waiting.late} reaches the collectives last"
    if waiting.late_work_pct is not None and waiting.late_work_pct >= _MORE_WORK_PCT:
        text += f"; its kernels other than NCCL's take {waiting.late_work_pct:.0f} % longer than the others'"
        if (waiting.late_blocks_pct or 0.0) >= _SAME_BLOCKS_PCT:
            cause = "uneven-work"
            text += f", and have {waiting.late_blocks_pct:.0f} % more blocks: it has more work"
        elif abs(waiting.late_kernels_pct or 0.0) >= _SAME_KERNELS_PCT:
            cause = "uneven-work"
            text += ": it has more work"
        elif (waiting.late_delayed_pct or 0.0) >= DELAYED_PCT:
            cause = "late-rank-shared-gpu"
            text += f", {waiting.late_delayed_pct:.0f} % of their time in {DELAYED}"
        else:
            cause = "late-rank-heat"
            text += " at the same number of them: a lower clock, or another process on its GPU"
    elif waiting.late_input:
        cause = "late-rank-data"
        text += f"; its GPU waits {format_ns(waiting.late_gap_ns)} an iteration for its input"
    elif waiting.late_gap_ns:
        text += f"; its GPU waits {format_ns(waiting.late_gap_ns)} an iteration for its host"
    known = causes()[cause]
    ranks = max(case.iterations.processes if case.iterations else 2, 2)
    gain = min(95.0, exposed * ranks / (ranks - 1))  # of those that wait: the late one does not
    return Hit(cause, case.id, gain, f"{name} is late, NCCL alone {exposed:.0f} %", known.do, text,
               known.remedy(detect_framework(case)), f"{exposed:.0f} %", "communication")  # fmt: skip


def _late_rank_text(case: CaseSummary) -> str:
    """For whom NCCL's kernels wait, behind what they take."""
    if case.waiting is None:
        return ", which may be waiting for a late rank"
    if _nccl_waiting_share(case) >= _WAITING and not case.stragglers:
        return f"; {_nccl_waiting_text(case)} for {case.waiting.late}, whose launches come last"
    if late := [entry for entry in case.stragglers if entry.late]:
        names = first_names([entry.name for entry in late], _NAMED)
        return f"; {sum(entry.cost_pct for entry in late):.0f} % of an iteration is waiting for {names}"
    return ", on all ranks alike: no rank is late throughout"


def _nccl_waiting_text(case: CaseSummary) -> str:
    """What of NCCL's time is waiting for the latest rank, of an iteration of the mean GPU."""
    spent = time_without_profiler(case)
    exposed, hidden = (spent.exposed_pct or 0.0, spent.hidden_pct or 0.0) if spent else (0.0, 0.0)
    alike = ", hidden or not," if round(hidden) else ""
    return f"{_nccl_waiting_share(case) * (exposed + hidden):.0f} % of an iteration{alike} is waiting"


def _nccl_waiting_share(case: CaseSummary) -> float:
    """How much of the time in NCCL's kernels is waiting for the latest rank, 0 to 1."""
    share_pct = case.spent.share_pct(NCCL) if case.spent else 0.0
    return min(case.waiting.pct / share_pct, 1.0) if case.waiting and share_pct else 0.0


def _short_process_name(process: str) -> str:
    return process.removeprefix("the process on ")


def _stray_context_hit(case: CaseSummary, _: Context) -> Hit | None:
    """Contexts that processes hold on GPUs on which they do not work: of the GPU that has most of them."""
    by_gpu: dict[int, list[StrayContext]] = {}
    for context in case.stray_contexts:
        by_gpu.setdefault(context.device, []).append(context)
    if not by_gpu:
        return None
    gpu, held = max(by_gpu.items(), key=lambda item: len(item[1]))
    whose, holds = first_names([context.process for context in held], _NAMED), "holds" if len(held) == 1 else "hold"
    kernels, copies = sum(context.kernels for context in held), sum(context.copies for context in held)
    work = [plural(kernels, "kernel")] * bool(kernels) + [
        singular_or_count(copies, "1 copy or set", "copies or sets")
    ] * bool(copies)
    use = f"hardly used: {' and '.join(work)}, {format_ns(sum(c.gpu_ns for c in held))} in all" if work else "not used"
    each, med_ns = max(c.iteration_ns or 0.0 for c in held), case.iterations.med_ns if case.iterations else 0.0
    use += f", {format_ns(each)} an iteration" if each else ""
    others = f" (and {plural(len(by_gpu) - 1, 'GPU')} more)" if len(by_gpu) > 1 else ""
    what = f"{whose} also {holds} a context on GPU {gpu}"
    return Hit(
        "stray-context", case.id, min(100.0, 100 * each / med_ns) if med_ns else 0.0, what,
        "set the device before the first CUDA call",
        f"{what}{others} that is {use}",
        "It takes some hundred MB of that GPU's memory, and comes mostly of a CUDA call before the process chooses its"
        " GPU: call torch.cuda.set_device(local_rank) (cudaSetDevice) before all others, or set CUDA_VISIBLE_DEVICES,"
        " and load with map_location.", str(len(held)), "process_gpus",
    )  # fmt: skip


RULES: Final[Mapping[str, Callable[[CaseSummary, Context], Hit | None]]] = {
    "communication": _exposed_communication_hit,
    "stray context": _stray_context_hit,
}
