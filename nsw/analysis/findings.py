"""What the numbers say, in sentences, each with the cases that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nsw.analysis.cases import CaseSummary, Figure
    from nsw.analysis.scaling import Point, Scaling

_POOR_PCT = 70.0  # efficiency below which a point is worth a sentence
_MUCH_COMMUNICATION_PCT = 20.0
_MUCH_COPYING_PCT = 20.0
_SLOWED_PCT = 10.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence and the cases whose rows prove it."""

    text: str
    cases: tuple[str, ...]


def findings(cases: Sequence[CaseSummary], curve: Scaling | None) -> list[Finding]:
    """The most telling facts of a campaign, a handful at most."""
    found = _of_scaling(curve) if curve else []
    return [*found, *_of_copies(cases), *_of_profiling(cases)]


def _of_scaling(curve: Scaling) -> list[Finding]:
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
    result = [Finding(said, tuple(dict.fromkeys((worst.case_id, best.case_id))))]
    for p in (worst,):
        share = p.communication_pct
        if _efficiency(p) < _POOR_PCT and share is not None and share >= _MUCH_COMMUNICATION_PCT:
            result.append(
                Finding(f"In {p.case_id} NCCL kernels take {share:.1f} % of GPU time: communication, or waiting for the"
                        " slowest rank inside it, is what the extra GPUs are spent on.", (p.case_id,))
            )  # fmt: skip
    return result


def _of_copies(cases: Sequence[CaseSummary]) -> list[Finding]:
    heavy = []
    for case in cases:
        copied = sum(c.total_ns for c in case.copies)
        if case.gpu_ns and 100 * copied / case.gpu_ns >= _MUCH_COPYING_PCT:
            heavy.append((100 * copied / case.gpu_ns, case))
    if not heavy:
        return []
    share, case = max(heavy, key=lambda item: item[0])
    return [Finding(f"Copies and sets take {share:.1f} % of GPU time in {case.id}"
                    + (f" and over {_MUCH_COPYING_PCT:.0f} % in {len(heavy) - 1} more" if len(heavy) > 1 else "") + ".",
                    tuple(c.id for _, c in heavy))]  # fmt: skip


def _of_profiling(cases: Sequence[CaseSummary]) -> list[Finding]:
    """How much a profiler slowed the program: told only where repeats show that it is more than their scatter."""
    worst: tuple[float, CaseSummary, Figure] | None = None
    for case in cases:
        for free in (f for f in case.figures if not f.profiled and f.runs > 1 and f.median):
            for held in (f for f in case.figures if f.profiled and f.name == free.name and f.runs > 1):
                apart = held.most < free.least or held.least > free.most
                change = 100 * abs(held.median - free.median) / abs(free.median)
                if apart and change >= _SLOWED_PCT and (worst is None or change > worst[0]):
                    worst = (change, case, held)
    if worst is None:
        return []
    change, case, held = worst
    return [Finding(f"Profiling changed {held.name} by up to {change:.0f} % (pass {held.pass_name}, {case.id}):"
                    " figures here are those of the baseline pass.", (case.id,))]  # fmt: skip


def _efficiency(point: Point) -> float:
    return point.efficiency_pct or 0.0


def _where(point: Point) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.series.items()) or point.case_id


def _plain(number: float) -> str:
    return f"{number:g}"
