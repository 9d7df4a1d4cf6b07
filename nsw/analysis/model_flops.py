"""Model FLOP/s and MFU: the operations that a step needs by the recipe, beside what the GPUs can do in that time.

The time of a step is a figure of an unprofiled run whose unit says so (ms/step, steps/s); else an iteration of the
timeline, as without the profiler. Peaks are the data sheets', of dense operations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from nsw.analysis.blocks import Block, Evidence, Note
from nsw.analysis.groups import group_by
from nsw.analysis.rules.profiler_cost import time_without_profiler
from nsw.metrics.catalogue import find_gpu
from nsw.quantities import format_ns, rate
from nsw.wording import first_names, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsw.analysis.cases import CaseSummary

__all__ = ["ModelFlops", "StepFlops", "measure_model_flops", "mfu_notes"]

# the peaks that a precision may have, by what the data sheet counts; of several the largest
_PEAKS: Final[Mapping[str, tuple[str, ...]]] = {
    "fp64": ("tensor_ops_fp64", "flop_count_dp"), "fp32": ("flop_count_sp",), "tf32": ("tensor_ops_tf32",),
    "fp16": ("tensor_ops_fp16", "flop_count_hp"), "bf16": ("tensor_ops_bf16",), "fp8": ("tensor_ops_fp8",),
}  # fmt: skip
_STEPS: Final = r"(?:step|iteration|iter|it)s?"
_STEP_TIME: Final = re.compile(
    rf"(?P<time>s|secs?|seconds?|ms|msecs?|milliseconds?|[uµμ]s|usecs?|microseconds?)\s*(?:/|per\b)\s*{_STEPS}"
    rf"|{_STEPS}\s*(?:/|per\b)\s*(?:s|secs?|seconds?)",
    re.IGNORECASE,
)
_NS: Final = (("micro", 1e3), ("u", 1e3), ("µ", 1e3), ("μ", 1e3), ("m", 1e6), ("s", 1e9))  # by how a unit begins
_NO_STEP_TIME: Final = (
    "no step time was measured: add a pass `timeline: {}`, or a figure whose unit is ms/step or steps/s"
)
_COMPUTING_PCT: Final = 95.0  # of a step, from which waits are not worth a word
_CASES: Final = 3  # named


@dataclass(frozen=True, slots=True)
class StepFlops:
    """What the recipe says of a case: FLOP of a step on all GPUs, their precision, and the campaign's GPU if known."""

    flop: float
    precision: str
    gpu: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFlops:
    """The model FLOP/s of a case; `missing` says why there is no MFU.

    Attributes:
        precision: Whose dense peak counts.
        step_flop: FLOP of a step on all GPUs.
        gpus: How many GPUs the case was given.
        step_ns: How long a step takes.
        step_by: What says so: `figure NAME`, or `timeline`.
        flop_per_s: Of all GPUs.
        peak_flop_per_s: The dense peak of all GPUs.
        mfu_pct: The first of the second.
        computing_mfu_pct: What it would be if kernels computed throughout: how near to the peak they come.
    """

    case_id: str
    precision: str | None = None
    step_flop: float | None = None
    gpus: int | None = None
    step_ns: float | None = None
    step_by: str | None = None
    flop_per_s: float | None = None
    peak_flop_per_s: float | None = None
    mfu_pct: float | None = None
    computing_mfu_pct: float | None = None
    missing: str | None = None


def measure_model_flops(
    cases: Sequence[CaseSummary], request: Mapping[str, StepFlops | str], runs: Sequence[Any]
) -> tuple[ModelFlops, ...]:
    """The model FLOP/s of each case that the recipe has operations for.

    Args:
        cases: The cases.
        request: By case what the recipe says of it, or why it cannot be computed.
        runs: The campaign's runs, which have `case_id` and `gpus`.
    """
    gpus = {run.case_id: run.gpus for run in runs if run.case_id in request}
    return tuple(_model_flops(case, request[case.id], gpus[case.id]) for case in cases if case.id in request)


def _model_flops(case: CaseSummary, request: StepFlops | str, gpus: int) -> ModelFlops:
    if isinstance(request, str):
        return ModelFlops(case.id, missing=f"report.flops_per_step: {request}")
    flops = ModelFlops(case.id, request.precision, request.flop, gpus)
    step_ns, step_by = _step_time(case)
    if not step_ns:
        return replace(flops, missing=_NO_STEP_TIME)
    flop_per_s = request.flop / step_ns * 1e9
    flops = replace(flops, step_ns=step_ns, step_by=step_by, flop_per_s=flop_per_s)
    peak = _gpu_peak(case.gpus or ((request.gpu,) if request.gpu else ()), request.precision)
    if isinstance(peak, str):
        return replace(flops, missing=peak)
    if not gpus:
        return replace(flops, missing="its runs were given no GPU")
    flops = replace(flops, peak_flop_per_s=gpus * peak)
    mfu_pct = 100 * flop_per_s / (gpus * peak)
    if mfu_pct > 100:
        reason = (
            f"{request.flop:.3g} FLOP in {format_ns(step_ns)} a step ({step_by}) are {mfu_pct:.0f} % of the dense"
            f" {request.precision.upper()} peak of {plural(gpus, 'GPU')}: check value and precision of"
            " report.flops_per_step, and report.steps, which names the range that is a step"
        )
        return replace(flops, missing=reason)
    spent = time_without_profiler(case)
    computing_pct = spent.computing_pct if spent is not None else None
    return replace(flops, mfu_pct=mfu_pct, computing_mfu_pct=100 * mfu_pct / computing_pct if computing_pct else None)


def _step_time(case: CaseSummary) -> tuple[float | None, str | None]:
    """How long a step takes (ns), and what says so."""
    for figure in case.figures:
        if not figure.profiled and figure.median > 0 and (match := _STEP_TIME.fullmatch((figure.unit or "").strip())):
            unit = (match["time"] or "").lower()
            scale = next((ns for begin, ns in _NS if unit.startswith(begin)), None)
            return (figure.median * scale if scale else 1e9 / figure.median), f"figure {figure.name}"
    spent = time_without_profiler(case)
    return (spent.span_ns, "timeline") if spent is not None and spent.is_iteration else (None, None)


def _gpu_peak(names: Sequence[str], precision: str) -> float | str:
    """The dense peak of a GPU in FLOP/s; or why it is not known."""
    if len(names) != 1 or " | " in names[0]:
        return f"its GPUs differ ({', '.join(names)})" if names else "no report names its GPU"
    if "MIG" in names[0].split():
        return f"a part of a GPU ({names[0]}) has no data sheet"
    gpu = find_gpu(names[0])
    if gpu is None:
        return f"the peaks of {names[0]} are not known"
    peaks = [gpu.flop_per_s[counted] for counted in _PEAKS[precision] if counted in gpu.flop_per_s]
    return max(peaks) if peaks else f"the data sheet of {gpu.name} has no peak for {precision.upper()}"


def mfu_notes(cases: Sequence[CaseSummary], measured: Sequence[ModelFlops]) -> list[Block]:
    """Of a single case its MFU and what limits it; of all cases why it is not known."""
    notes: list[Block] = []
    if len(cases) == 1 and measured and measured[0].mfu_pct is not None:
        notes.append(Note("mfu", _mfu_text(cases[0], measured[0]), evidence=(Evidence("gpu_summary", (cases[0].id,)),)))
    lacking = group_by((flops for flops in measured if flops.missing), lambda flops: flops.missing)
    for reason, members in lacking.items():
        names = first_names([flops.case_id for flops in members], _CASES)
        notes.append(Note("mfu", f"no MFU of {names}: {reason}", tone="warning"))
    return notes


def _mfu_text(case: CaseSummary, flops: ModelFlops) -> str:
    """How near to the peak a case is, and whether waits or kernels keep it from there."""
    rates = (flops.flop_per_s, flops.peak_flop_per_s)
    reached_rate, peak = (rate((flop_per_s or 0.0) / (flops.gpus or 1), "FLOP") for flop_per_s in rates)
    text = (
        f"MFU {flops.mfu_pct:.1f} %: {reached_rate} a GPU of {peak} (dense {(flops.precision or '').upper()}),"
        f" {format_ns(flops.step_ns)} a step by {'the ' if flops.step_by == 'timeline' else ''}{flops.step_by}."
    )
    spent = time_without_profiler(case)
    if flops.computing_mfu_pct is None or spent is None or spent.computing_pct is None:
        return text
    text += f" Kernels compute {spent.computing_pct:.0f} % of a step"
    reached = f"{flops.computing_mfu_pct:.0f} %"
    if flops.computing_mfu_pct > 100:
        return f"{text}, at {reached} of the peak: check value and precision of report.flops_per_step."
    if spent.computing_pct >= _COMPUTING_PCT:
        return f"{text}: only faster kernels raise MFU."
    return f"{text}: if nothing waited, MFU would be {reached}."
